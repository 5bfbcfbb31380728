//! Calls and their results: what is legal, and how a history becomes legal.

use std::{collections::HashMap, sync::Arc};

use proptest::{collection::vec, prelude::*, sample::select};

use super::{MISSING_RESULT, Problem, groups, heal, validate};
use crate::{
    Entry, History, Message, Role, ToolStatus,
    toys::{calls, result},
};

/// A history in shorthand: `u`, `s`, `a`; `a:x,y` calls x and y; `x=1` is the result `1` of x.
fn history(text: &str) -> History {
    let message = |word: &str| match word.split_once(['=', ':']) {
        Some(("a", ids)) => calls(&ids.split(',').collect::<Vec<_>>()),
        Some((id, text)) => result(id, text),
        None => match word {
            "u" => Message::user("u"),
            "s" => Message::system("s"),
            _ => Message::assistant("a"),
        },
    };
    text.split_whitespace().map(message).collect()
}

/// The same shorthand of a history; `x=?` is a result that was made up.
fn shorthand(history: &History) -> String {
    let word = |message: &Message| match message {
        Message::System(_) => "s".to_owned(),
        Message::User(_) => "u".to_owned(),
        Message::Assistant(reply) if reply.tool_calls.is_empty() => "a".to_owned(),
        Message::Assistant(reply) => {
            format!("a:{}", reply.tool_calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>().join(","))
        }
        Message::Tool(result) if result.status == ToolStatus::Unknown => format!("{}=?", result.tool_call_id),
        Message::Tool(result) => format!("{}={}", result.tool_call_id, message.text()),
    };
    history.messages().map(word).collect::<Vec<_>>().join(" ")
}

/// The same entries in a history of which nothing is known.
fn unchecked(history: &History) -> History {
    history.iter().cloned().collect()
}

fn same_entries(a: &History, b: &History) -> bool {
    a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| Arc::ptr_eq(a, b))
}

#[test]
fn what_healing_makes_of_a_history() {
    // M6: each line is a report of some system's users that could not go on.
    for (before, after) in [
        ("", ""),
        ("u a", "u a"),
        ("s u a:x x=1 a", "s u a:x x=1 a"),
        // Interrupted before the results: all, one of two, the last thing that happened.
        ("u a:x", "u a:x x=?"),
        ("u a:x,y x=1", "u a:x,y x=1 y=?"),
        ("u a:x,y y=1", "u a:x,y x=? y=1"),
        ("u a:x u", "u a:x x=? u"),
        ("u a:x a:y y=1", "u a:x x=? a:y y=1"),
        ("u a:x a:y", "u a:x x=? a:y y=?"),
        // Orphans: a beginning that was cut off, a call that nobody made.
        ("x=1 u a", "u a"),
        ("u x=1 a", "u a"),
        ("a:x x=1 y=2", "a:x x=1"),
        ("x=1", ""),
        // Doubled: stored twice, answered twice.
        ("u a:x x=1 x=1 a", "u a:x x=1 a"),
        ("u a:x x=1 u x=2", "u a:x x=1 u"),
        // Out of order: results of a parallel batch as they came in.
        ("u a:x,y y=2 x=1", "u a:x,y x=1 y=2"),
        ("u a:x,y,z z=3 y=2", "u a:x,y,z x=? y=2 z=3"),
        // Late: the person wrote before the tool was done.
        ("u a:x u x=1 a", "u a:x x=1 u a"),
        ("u a:x,y x=1 u y=2", "u a:x,y x=1 y=2 u"),
        // Ids used again, in later batches and in one: by occurrence, the latest open call first.
        ("u a:x x=1 a:x x=2", "u a:x x=1 a:x x=2"),
        ("u a:x a:x x=1", "u a:x x=? a:x x=1"),
        ("u a:x a:x x=1 x=2", "u a:x x=2 a:x x=1"),
        ("u a:x,x x=1 x=2", "u a:x,x x=1 x=2"),
        ("u a:x,x x=1", "u a:x,x x=1 x=?"),
        ("u a:x,x a:x x=1 x=2 x=3 x=4", "u a:x,x x=2 x=3 a:x x=1"),
        // A result before its call answers nothing.
        ("u x=1 a:x", "u a:x x=?"),
        // Empty ids are ids.
        ("u a:,x =1", "u a:,x =1 x=?"),
    ] {
        let healed = heal(&history(before));
        assert_eq!(shorthand(&healed), after, "{before}");
        assert_eq!(validate(&healed), Ok(()), "{before}");
    }
}

#[test]
fn what_is_wrong_and_where() {
    for (text, wrong) in [
        ("u a", Ok(())),
        ("s u a:x,y x=1 y=2 a", Ok(())),
        ("u a:x,x x=1 x=2", Ok(())),
        ("u a:x", Err((2, Problem::MissingResult))),
        ("u a:x,y x=1", Err((3, Problem::MissingResult))),
        ("u a:x u x=1", Err((2, Problem::MissingResult))),
        ("x=1 u", Err((0, Problem::OrphanResult))),
        ("u a:x x=1 x=1", Err((3, Problem::OrphanResult))),
        ("u a:x y=1", Err((2, Problem::OrphanResult))),
        ("u a:x,y y=2 x=1", Err((2, Problem::ResultOrder))),
    ] {
        assert_eq!(validate(&history(text)), wrong, "{text}");
    }
}

#[test]
fn a_missing_result_says_what_is_known() {
    // M6: the same hole is filled with the same entry, so that what was sent before stays as it was.
    let mut broken = History::new();
    broken.push(Entry::with_id("m7", 99, calls(&["x", "y"])));
    let healed = heal(&broken);
    let made: Vec<_> = healed.iter().skip(1).collect();
    let [first, second] = made.as_slice() else { panic!("{healed:?}") };
    assert_eq!((first.id.as_deref(), second.id.as_deref()), (Some("m7/missing/0"), Some("m7/missing/1")));
    assert_eq!(first.created, 99);
    assert_eq!(first.message, Message::tool("x", "t", ToolStatus::Unknown, MISSING_RESULT));
    assert_eq!(
        heal(&broken).iter().map(|entry| &entry.id).collect::<Vec<_>>(),
        healed.iter().map(|e| &e.id).collect::<Vec<_>>()
    );
    assert_eq!(heal(&history("a:x")).last().unwrap().id, None);
}

#[test]
fn what_was_checked_is_not_looked_at_again() {
    // M6: incremental. The mark moves, and only what came after it is judged.
    let mut healed = heal(&history("u a:x x=1 a"));
    assert_eq!(healed.checked(), 4);
    assert_eq!(healed.clone().checked(), 4);
    healed.push(Message::user("u"));
    healed.push(calls(&["y"]));
    assert_eq!((healed.checked(), healed.len()), (4, 6));
    let again = heal(&healed);
    assert_eq!((again.checked(), again.len()), (7, 7));
    // Proof that the beginning is not read: a broken one that is marked as checked stays as it is.
    let mut marked = history("x=1 u");
    marked.mark_checked(2);
    marked.push(calls(&["y"]));
    assert_eq!(shorthand(&heal(&marked)), "x=1 u a:y y=?");
    // A mark beyond the end is the end.
    marked.mark_checked(100);
    assert_eq!(marked.checked(), marked.len());
}

#[test]
fn a_group_is_a_call_with_its_results_or_a_message_alone() {
    assert_eq!(groups(&history("s u a:x,y x=1 y=2 a u")), [0..1, 1..2, 2..5, 5..6, 6..7]);
    assert_eq!(groups(&History::new()), []);
}

fn message() -> impl Strategy<Value = Message> {
    let id = || select(vec!["x", "y", "z", ""]);
    prop_oneof![
        2 => Just(Message::user("u")),
        1 => Just(Message::system("s")),
        1 => Just(Message::assistant("a")),
        4 => vec(id(), 1..4).prop_map(|ids| calls(&ids)),
        6 => (id(), any::<u8>()).prop_map(|(id, text)| result(id, &text.to_string())),
    ]
}

fn any_history() -> impl Strategy<Value = History> {
    vec(message(), 0..30).prop_map(|messages| {
        let named = |(index, message)| Entry::with_id(format!("m{index}"), 0, message);
        messages.into_iter().enumerate().map(named).map(Arc::new).collect()
    })
}

/// The results that find an open call of their id, counted without regard to batches.
fn used_results(history: &History) -> Vec<Arc<Entry>> {
    let mut open: HashMap<&str, usize> = HashMap::new();
    let mut used = Vec::new();
    for entry in history.iter() {
        for call in entry.message.tool_calls() {
            *open.entry(call.id.as_str()).or_default() += 1;
        }
        if let Message::Tool(result) = &entry.message
            && let Some(count) = open.get_mut(result.tool_call_id.as_str()).filter(|count| **count > 0)
        {
            *count -= 1;
            used.push(Arc::clone(entry));
        }
    }
    used
}

fn pointers<'a>(entries: impl Iterator<Item = &'a Arc<Entry>>) -> Vec<*const Entry> {
    entries.map(Arc::as_ptr).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    // M6: legal, and the same again.
    #[test]
    fn healing_makes_legal_once_and_for_all(broken in any_history()) {
        let healed = heal(&broken);
        prop_assert_eq!(validate(&healed), Ok(()));
        prop_assert!(same_entries(&heal(&healed), &healed));
        prop_assert!(same_entries(&heal(&unchecked(&healed)), &healed));
        prop_assert_eq!(healed.checked(), healed.len());
    }

    // M6: what is legal is the very same entries afterwards, and nothing else counts as legal.
    #[test]
    fn healing_changes_nothing_that_is_legal(broken in any_history()) {
        let legal = unchecked(&heal(&broken));
        prop_assert!(same_entries(&heal(&legal), &legal));
        prop_assert_eq!(validate(&broken).is_ok(), same_entries(&heal(&broken), &broken));
    }

    // M6: deterministic, down to the ids of what is made up.
    #[test]
    fn healing_twice_is_healing_the_same_way(broken in any_history()) {
        let ids = |history: &History| -> Vec<_> { history.iter().map(|entry| entry.id.clone()).collect() };
        let (once, twice) = (heal(&broken), heal(&broken));
        prop_assert_eq!(ids(&once), ids(&twice));
        prop_assert_eq!(once, twice);
    }

    // M6: step by step is all at once.
    #[test]
    fn healing_on_is_healing_from_the_start(pieces in vec(any_history(), 1..5)) {
        let mut grown = History::new();
        for piece in &pieces {
            grown.extend(piece.iter().cloned());
            let from_the_start = heal(&unchecked(&grown));
            grown = heal(&grown);
            prop_assert_eq!(&grown, &from_the_start);
        }
    }

    // M6: no result is lost that had an open call, and nothing else is added, lost or moved.
    #[test]
    fn healing_loses_nothing_that_has_a_place(broken in any_history()) {
        let healed = heal(&broken);
        let is_result = |entry: &&Arc<Entry>| entry.message.role() == Role::Tool;
        let others = |history: &History| pointers(history.iter().filter(|entry| !is_result(entry)));
        prop_assert_eq!(others(&healed), others(&broken));

        let known = pointers(broken.iter());
        let mut kept: Vec<_> = pointers(healed.iter().filter(is_result)).into_iter().filter(|p| known.contains(p)).collect();
        let mut used = pointers(used_results(&broken).iter());
        kept.sort();
        used.sort();
        prop_assert_eq!(kept, used);
        // What was made up says that nothing is known.
        for entry in healed.iter().filter(|entry| !known.contains(&Arc::as_ptr(entry))) {
            let is_unknown = matches!(&entry.message, Message::Tool(made) if made.status == ToolStatus::Unknown);
            prop_assert!(is_unknown);
        }
    }

    #[test]
    fn groups_cover_a_legal_history(broken in any_history()) {
        let healed = heal(&broken);
        let entries: Vec<_> = healed.messages().collect();
        let mut end = 0;
        for group in groups(&healed) {
            prop_assert_eq!(group.start, end);
            end = group.end;
            let members = &entries[group];
            prop_assert_eq!(members.len(), 1 + members[0].tool_calls().len());
        }
        prop_assert_eq!(end, healed.len());
    }
}

// P1: what was found out about a history holds for all that share its chunks, and healing shares what lies before the damage.
#[test]
fn the_paired_beginning_is_found_out_once_and_shared() {
    let history: History = (0..100).map(|index| Message::user(index.to_string())).collect();
    let (mut damaged, stored) = (history.clone(), history.clone());
    let chunks = history.sealed().unwrap();
    assert_eq!(stored.checked(), 0);
    heal(&history);
    assert_eq!(stored.checked(), chunks.end());
    damaged.push(Message::tool("x", "t", ToolStatus::Ok, "orphan"));
    let healed = heal(&damaged);
    assert_eq!((healed.len(), healed.checked()), (100, 100));
    assert!(Arc::ptr_eq(healed.sealed().unwrap(), chunks));
    // An open batch across the end of a chunk is not part of it.
    let calls = (0..20).map(|index| crate::ToolCall::new(index.to_string(), "t", crate::Args::empty())).collect();
    let mut open = history.clone();
    open.push(Message::Assistant(crate::AssistantMessage { tool_calls: calls, ..Default::default() }));
    (0..14).for_each(|index| open.push(Message::tool(index.to_string(), "t", ToolStatus::Ok, "")));
    assert_eq!(validate(&heal(&open)), Ok(()));
    assert_eq!(open.checked(), 100);
    (14..20).for_each(|index| open.push(Message::tool(index.to_string(), "t", ToolStatus::Ok, "")));
    assert!(same_entries(&heal(&open), &open));
}
