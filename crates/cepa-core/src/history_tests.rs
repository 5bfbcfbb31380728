//! Histories: shared, never copied, and always the same as a plain list.

use std::sync::Arc;

use proptest::prelude::*;

use super::{CHUNK, Entry, History};
use crate::{Message, toys};

fn numbered(count: usize) -> History {
    (0..count).map(|index| Message::user(index.to_string())).collect()
}

fn texts(history: &History) -> Vec<String> {
    history.messages().map(|message| message.text().into_owned()).collect()
}

/// The address of the list that takes the next entry.
fn tail(history: &History) -> *const Vec<Arc<Entry>> {
    Arc::as_ptr(&history.tail)
}

#[test]
fn cloning_shares_everything() {
    for count in [0, 1, CHUNK, CHUNK + 1, 10_000] {
        let history = numbered(count);
        let clone = history.clone();
        assert_eq!(tail(&history), tail(&clone));
        match (&history.sealed, &clone.sealed) {
            (Some(a), Some(b)) => assert!(Arc::ptr_eq(a, b)),
            (None, None) => assert!(count < CHUNK),
            _ => panic!("{count}: one of two clones has chunks"),
        }
    }
}

#[test]
fn pushing_copies_at_most_one_chunk_of_pointers() {
    let mut history = numbered(10_001);
    let before = history.clone();
    // Shared: the tail is copied once, what is sealed never.
    history.push(Message::user("new"));
    assert!(history.tail.len() <= CHUNK && tail(&history) != tail(&before));
    assert!(Arc::ptr_eq(history.sealed.as_ref().unwrap(), before.sealed.as_ref().unwrap()));
    // Not shared any more: nothing is copied until the chunk is full.
    let own = tail(&history);
    while history.tail.len() < CHUNK - 1 {
        history.push(Message::user("new"));
        assert_eq!(tail(&history), own);
    }
    // A full chunk is sealed behind all others, which stay where they are.
    history.push(Message::user("new"));
    let sealed = history.sealed.as_ref().unwrap();
    assert!(Arc::ptr_eq(sealed.before.as_ref().unwrap(), before.sealed.as_ref().unwrap()));
    assert_eq!((sealed.entries.len(), history.tail.len(), before.len()), (CHUNK, 0, 10_001));
}

#[test]
fn ten_thousand_messages_are_the_same_entries_in_every_clone() {
    let mut clones = Vec::new();
    let mut history = History::new();
    for index in 0..10_000 {
        history.push(Message::user(index.to_string()));
        if index % 1000 == 0 {
            clones.push(history.clone());
        }
    }
    for clone in &clones {
        assert!(clone.iter().zip(history.iter()).all(|(a, b)| Arc::ptr_eq(a, b)));
    }
    assert_eq!((history.len(), clones.last().map(History::len)), (10_000, Some(9001)));
}

#[test]
fn a_million_messages_are_dropped_without_a_million_frames() {
    // A small stack: a recursive drop of 60,000 chunks would not fit.
    let work = || {
        let entry = Arc::new(Entry::new(Message::user("x")));
        let mut history: History = std::iter::repeat_n(entry.clone(), 1_000_000).collect();
        let clone = history.clone();
        history.push(Message::user("y"));
        drop(history);
        assert_eq!((clone.len(), clone.iter().count()), (1_000_000, 1_000_000));
        drop(clone);
        assert_eq!(Arc::strong_count(&entry), 1);
    };
    std::thread::Builder::new().stack_size(128 * 1024).spawn(work).unwrap().join().unwrap();
}

#[test]
fn reading_from_an_index_does_not_touch_what_lies_before() {
    let history = numbered(10_000);
    for start in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 9_983, 9_984, 9_985, 9_999, 10_000, 10_001, usize::MAX] {
        let wanted: Vec<String> = texts(&history).into_iter().skip(start).collect();
        let found: Vec<String> = history.iter_from(start).map(|entry| entry.message.text().into_owned()).collect();
        assert_eq!(found, wanted, "from {start}");
        let mut backwards: Vec<String> =
            history.iter_from(start).rev().map(|entry| entry.message.text().into_owned()).collect();
        backwards.reverse();
        assert_eq!(backwards, wanted, "back to {start}");
    }
}

/// What can be done to a history and to the list that is its model.
#[derive(Clone, Debug)]
enum Step {
    Push(usize),
    PushMany(usize, usize),
    /// Goes on with a clone; the original stays as it is.
    Clone,
    Extend(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        any::<usize>().prop_map(Step::Push),
        (any::<usize>(), 0..3 * CHUNK).prop_map(|(name, count)| Step::PushMany(name, count)),
        Just(Step::Clone),
        any::<usize>().prop_map(Step::Extend),
    ]
}

proptest! {
    #[test]
    fn a_history_is_a_list(steps in prop::collection::vec(step(), 0..12), start in 0..6 * CHUNK) {
        let (mut history, mut model): (History, Vec<Message>) = (History::new(), Vec::new());
        let mut kept = Vec::new();
        for step in steps {
            match step {
                Step::Push(name) => {
                    history.push(Message::user(name.to_string()));
                    model.push(Message::user(name.to_string()));
                }
                Step::PushMany(name, count) => for index in 0..count {
                    history.push(Message::user(format!("{name}/{index}")));
                    model.push(Message::user(format!("{name}/{index}")));
                },
                Step::Clone => kept.push((history.clone(), model.clone())),
                Step::Extend(name) => {
                    let other = numbered(name % (2 * CHUNK));
                    model.extend(other.messages().cloned());
                    history.extend(other.iter().cloned());
                }
            }
            prop_assert_eq!(history.len(), model.len());
            prop_assert_eq!(history.is_empty(), model.is_empty());
            prop_assert_eq!(history.last().map(|entry| &entry.message), model.last());
        }
        kept.push((history, model));
        for (history, model) in &kept {
            prop_assert!(history.messages().eq(model));
            prop_assert!(history.iter().rev().map(|entry| &entry.message).eq(model.iter().rev()));
            prop_assert!(history.iter_from(start).map(|entry| &entry.message).eq(model.iter().skip(start)));
            prop_assert_eq!(history, &History::from(model.clone()));
        }
    }

    // M7: what is read is what was pushed, whatever it holds.
    #[test]
    fn entries_keep_their_message(messages in prop::collection::vec(toys::message(), 0..5)) {
        prop_assert!(History::from(messages.clone()).messages().eq(&messages));
    }
}

#[test]
fn entries_know_their_id_and_time() {
    let entry = Entry::with_id("m1", 17, Message::user("x"));
    assert_eq!((entry.id.as_deref(), entry.created), (Some("m1"), 17));
    let unnamed = Entry::from(Message::user("x"));
    assert_eq!((unnamed.id, unnamed.created), (None, 0));
    let mut history = History::new();
    history.push(entry);
    assert_eq!(history.last().and_then(|entry| entry.id.as_deref()), Some("m1"));
    // Equal as conversations: ids and what a wire made are not part of a message.
    assert_eq!(history, History::from(vec![Message::user("x")]));
    assert_eq!(format!("{:?}", History::new()), "[]");
}

#[test]
fn encoded_bytes_belong_to_one_wire() {
    use crate::WireKey;
    let history = numbered(1);
    let clone = history.clone();
    let (openai, anthropic) = (WireKey::new("openai"), WireKey::new("anthropic"));
    let slot = &history.last().unwrap().encoded;
    assert_eq!(slot.get(&openai), None);
    slot.set(&openai, "bytes".into());
    // The entry is shared, so the clone has them too.
    assert_eq!(clone.last().unwrap().encoded.get(&openai).as_deref(), Some(&b"bytes"[..]));
    assert_eq!(slot.get(&anthropic), None);
    slot.set(&anthropic, "other".into());
    assert_eq!((slot.get(&openai), slot.get(&anthropic)), (None, Some("other".into())));
}
