//! What is held, how it is found out to be old, and what a hot load costs.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use cepa_core::{
    Args, AssistantMessage, BoxFuture, EncodedSlot, Entry, Error, History, Message, RawJson, ToolCall, ToolStatus,
    WireKey,
};
use proptest::{collection::vec, prelude::*};

use super::Held;
use crate::{
    ChatMemory, Commit, ConversationInfo, InMemory, Loaded, TurnRow, TurnState, TurnStore, Version, Window, Windowed,
    memory::load_whole, store::SharedEntry,
};

/// A memory that gives out copies, as a database does, and remembers how much it was asked for.
#[derive(Clone, Default)]
struct Rows {
    inner: InMemory,
    read: Arc<AtomicUsize>,
    asked: Arc<Mutex<Vec<Option<Version>>>>,
}

impl Rows {
    fn copies(&self, entries: impl Iterator<Item = Arc<Entry>>) -> Vec<Arc<Entry>> {
        let copy = |entry: Arc<Entry>| {
            self.read.fetch_add(1, Ordering::Relaxed);
            let encoded = EncodedSlot::default();
            Arc::new(Entry { id: entry.id.clone(), created: entry.created, message: entry.message.clone(), encoded })
        };
        entries.map(copy).collect()
    }

    fn take_read(&self) -> usize {
        self.read.swap(0, Ordering::Relaxed)
    }
}

impl ChatMemory for Rows {
    fn load<'a>(&'a self, id: &'a str, held: Option<Version>) -> BoxFuture<'a, Result<Loaded, Error>> {
        Box::pin(async move {
            self.asked.lock().unwrap().push(held);
            Ok(match self.inner.load(id, held).await? {
                Loaded::Unchanged => Loaded::Unchanged,
                Loaded::Added { version, entries } => {
                    Loaded::Added { version, entries: self.copies(entries.into_iter()) }
                }
                Loaded::Whole { version, history } => {
                    Loaded::Whole { version, history: self.copies(history.iter().cloned()).into_iter().collect() }
                }
            })
        })
    }
    fn append<'a>(
        &'a self,
        id: &'a str,
        expected: Version,
        entries: Vec<Arc<Entry>>,
    ) -> BoxFuture<'a, Result<Version, Error>> {
        self.inner.append(id, expected, entries)
    }
    fn clear<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        self.inner.clear(id)
    }
    fn list(&self, skip: usize, limit: usize) -> BoxFuture<'_, Result<Vec<ConversationInfo>, Error>> {
        self.inner.list(skip, limit)
    }
    fn page<'a>(&'a self, id: &'a str, after: u64, limit: usize) -> BoxFuture<'a, Result<Vec<Arc<Entry>>, Error>> {
        self.inner.page(id, after, limit)
    }
}

fn said(ids: std::ops::Range<usize>) -> Vec<Arc<Entry>> {
    let entry = |n: usize| Entry::with_id(format!("m{n}"), n as i64, Message::user(format!("message {n}")));
    ids.map(|n| Arc::new(entry(n))).collect()
}

fn calling(id: &str) -> Message {
    let tool_calls = vec![ToolCall::new(id, "f", Args::empty())];
    Message::Assistant(AssistantMessage { tool_calls, ..AssistantMessage::default() })
}

async fn whole<M: ChatMemory>(memory: &M) -> History {
    load_whole(memory, "c").await.unwrap().1
}

#[tokio::test]
async fn a_hot_load_reads_what_is_new() {
    // M8: whatever the length.
    let rows = Rows::default();
    let held = Held::new(rows.clone());
    let mut version = held.append("c", Version::default(), said(0..10_000)).await.unwrap();
    assert_eq!(whole(&held).await.len(), 10_000);
    rows.take_read();
    for n in 10_000..10_020 {
        version = held.append("c", version, said(n..n + 1)).await.unwrap();
        assert_eq!(whole(&held).await.len(), n + 1);
        assert_eq!(rows.take_read(), 1);
    }
    assert_eq!(whole(&held).await.len(), 10_020);
    assert_eq!(rows.take_read(), 0);
    assert_eq!(rows.asked.lock().unwrap().last(), Some(&Some(version)), "it is asked whether it is still so");
}

#[tokio::test]
async fn what_a_wire_made_of_a_message_stays_with_it() {
    // P2: also when the window moves and everything is read anew.
    let rows = Rows::default();
    let held = Held::new(Windowed::new(rows.clone(), Window::messages(8).unwrap()));
    let key = WireKey::new("wire");
    let mut version = Version::default();
    for n in 0..60 {
        let new = said(n..n + 1);
        version = held.append("c", version, new.clone()).await.unwrap();
        new[0].encoded.set(&key, format!("{n}").into());
        let history = whole(&held).await;
        assert!(history.iter().all(|entry| entry.encoded.get(&key).is_some()), "at {n}: {history:?}");
    }
    // What another process wrote is not ours.
    let mine = whole(&held).await;
    rows.append("c", version, said(60..61)).await.unwrap();
    let history = whole(&held).await;
    assert_eq!(history.iter().filter(|entry| entry.encoded.get(&key).is_none()).count(), 1);
    assert!(Arc::ptr_eq(mine.last().unwrap(), history.iter().rev().nth(1).unwrap()));
}

#[tokio::test]
async fn an_entry_of_the_same_id_with_another_message_is_another() {
    let rows = Rows::default();
    let held = Held::new(rows.clone());
    held.append("c", Version::default(), said(0..1)).await.unwrap();
    let other = vec![Arc::new(Entry::with_id("m0", 0, Message::user("another conversation's")))];
    held.append("d", Version::default(), other).await.unwrap();
    assert_eq!(whole(&held).await, whole(&rows).await);
    assert_eq!(load_whole(&held, "d").await.unwrap(), load_whole(&rows, "d").await.unwrap());
}

#[tokio::test]
async fn what_is_well_paired_is_known() {
    // M6: nobody looks at the checked part again; stored rows stay as they are.
    let held = Held::new(Rows::default());
    let checked = async |messages: Vec<Message>| {
        let (version, _) = load_whole(&held, "c").await.unwrap();
        let entries = messages.into_iter().map(|message| Arc::new(Entry::new(message))).collect();
        held.append("c", version, entries).await.unwrap();
        let history = whole(&held).await;
        (history.checked(), history.len())
    };
    assert_eq!(checked(vec![Message::user("hi"), Message::assistant("hello"), Message::user("go")]).await, (3, 3));
    // A batch that is still open is not answered by us.
    assert_eq!(checked(vec![calling("x")]).await, (3, 4));
    assert_eq!(checked(vec![Message::tool("x", "f", ToolStatus::Ok, "1")]).await, (5, 5));
    // One that nobody will answer is: not in what is held.
    assert_eq!(checked(vec![calling("y"), Message::user("never mind")]).await, (5, 7));
    assert_eq!(checked(vec![Message::assistant("well")]).await, (5, 8));
}

#[tokio::test]
async fn as_many_bytes_as_allowed() {
    let rows = Rows::default();
    let held = Held::new(rows.clone()).max_bytes(40_000);
    for n in 0..50 {
        let id = format!("c{n}");
        held.append(&id, Version::default(), said(0..10)).await.unwrap();
        assert_eq!(load_whole(&held, &id).await.unwrap().1.len(), 10);
        assert!(held.bytes() <= 40_000, "{}", held.bytes());
    }
    assert!(held.bytes() > 20_000);
    rows.take_read();
    load_whole(&held, "c49").await.unwrap();
    assert_eq!(rows.take_read(), 0);
    load_whole(&held, "c0").await.unwrap();
    assert_eq!(rows.take_read(), 10, "the longest unused was let go");
    // One that is too large by itself is held while it is the one in use, and alone.
    let large = vec![Arc::new(Entry::new(Message::user("x".repeat(50_000))))];
    held.append("large", Version::default(), large).await.unwrap();
    load_whole(&held, "large").await.unwrap();
    rows.take_read();
    assert_eq!(load_whole(&held, "large").await.unwrap().1.len(), 1);
    assert_eq!(rows.take_read(), 0);
    load_whole(&held, "c0").await.unwrap();
    assert!(held.bytes() <= 40_000, "{}", held.bytes());
}

#[derive(Clone, Debug)]
enum Step {
    Append(usize),
    /// By another process.
    AppendBehind(usize),
    Commit(usize),
    Clear,
    ClearBehind,
    /// The caller looks, with what he holds.
    Look,
    /// Another caller looks.
    LookAnew,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..4usize).prop_map(Step::Append),
        2 => (0..4usize).prop_map(Step::AppendBehind),
        2 => (0..3usize).prop_map(Step::Commit),
        1 => Just(Step::Clear),
        1 => Just(Step::ClearBehind),
        6 => Just(Step::Look),
        3 => Just(Step::LookAnew),
    ]
}

async fn begin(store: &InMemory) -> Result<u64, Error> {
    let json = |text| RawJson::parse(text).unwrap();
    let token = store.lease("c", "me", 0, i64::MAX).await?.token;
    let row = TurnRow {
        id: "t".into(),
        conversation: "c".into(),
        state: TurnState::Running,
        ephemeral: false,
        input: json("[]"),
        carried: None,
        data: json("{}"),
        created: 0,
        updated: 0,
    };
    store.begin(row, token).await?;
    Ok(token)
}

async fn run<M: TurnStore>(held: Held<M>, store: InMemory, steps: Vec<Step>) -> Result<(), Error> {
    let (mut mine, mut count) = ((Version::default(), History::new()), 0);
    let mut some = |n: usize| {
        count += n;
        said(count - n..count)
    };
    for step in steps {
        let version = load_whole(&store, "c").await?.0;
        match step {
            Step::Append(n) => drop(held.append("c", version, some(n)).await?),
            Step::AppendBehind(n) => drop(store.append("c", version, some(n)).await?),
            Step::Commit(n) => {
                let token = begin(&store).await?;
                let messages = some(n).into_iter().map(SharedEntry).collect();
                held.commit("t", token, Commit { messages, ..Commit::default() }).await?;
            }
            Step::Clear => held.clear("c").await?,
            Step::ClearBehind => store.clear("c").await?,
            Step::Look => {
                match held.load("c", Some(mine.0)).await? {
                    Loaded::Unchanged => {}
                    Loaded::Added { version, entries } => {
                        mine.0 = version;
                        mine.1.extend(entries);
                    }
                    Loaded::Whole { version, history } => mine = (version, history),
                }
                assert_eq!(mine, load_whole(held.inner(), "c").await?);
            }
            Step::LookAnew => assert_eq!(load_whole(&held, "c").await?, load_whole(held.inner(), "c").await?),
        }
    }
    Ok(())
}

proptest! {
    // M8, M1: whatever happens in front of it and behind it, what is held is what is there.
    #[test]
    fn what_is_held_is_what_is_there(steps in vec(step(), 0..40), most in 1..12u64, bytes in 0..12_000usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let store = InMemory::new();
        runtime.block_on(run(Held::new(store.clone()).max_bytes(bytes), store, steps.clone())).unwrap();
        let store = InMemory::new();
        let window = Windowed::new(store.clone(), Window::messages(most).unwrap());
        runtime.block_on(run(Held::new(window), store, steps)).unwrap();
    }
}
