//! What an append and a load cost, counted in the steps of SQLite's machine: they read and write what is new, however
//! long the conversation is.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use cepa_agent::{
    Agent, ChatMemory, Commit, Loaded, TurnRow, TurnState, TurnStore, Version,
    store::{SharedEntry, TurnChange},
};
use cepa_core::{Entry, Message, RawJson, Tool, ToolOutput, ToolSpec};
use cepa_testkit::{
    scripted::{Reply, ScriptedModel},
    watched::{Watch, Watched},
};

use super::Sqlite;

const LENGTHS: [u64; 4] = [10, 100, 1_000, 10_000];
/// What may differ: a transaction does not always have the same housekeeping to do. A look at each row would be
/// thousands.
const SLACK: usize = 16;

/// A database whose steps are counted.
async fn counted(steps: &Arc<AtomicUsize>) -> Sqlite {
    let store = Sqlite::open(":memory:").unwrap();
    let steps = steps.clone();
    let count = move |connection: &mut rusqlite::Connection| {
        let step = move || {
            steps.fetch_add(1, Ordering::Relaxed);
            false
        };
        connection.progress_handler(1, Some(step)).unwrap();
        Ok(())
    };
    store.0.writer.run(count).await.unwrap();
    store
}

fn entries(from: u64, until: u64) -> Vec<Arc<Entry>> {
    let message = |n: u64| {
        if n.is_multiple_of(2) {
            Message::user(format!("question {n}"))
        } else {
            Message::assistant(format!("answer {n}"))
        }
    };
    (from..until).map(|n| Arc::new(Entry::with_id(format!("n{n}"), 7, message(n)))).collect()
}

fn turn(n: u64) -> TurnRow {
    TurnRow {
        id: format!("t{n}"),
        conversation: "c".into(),
        state: TurnState::Running,
        ephemeral: false,
        input: RawJson::parse("[]").unwrap(),
        carried: None,
        data: RawJson::parse("{}").unwrap(),
        created: 100,
        updated: 100,
    }
}

/// What each call costs in a conversation that is so long, by name.
async fn costs(length: u64) -> Vec<(&'static str, usize)> {
    let steps = Arc::new(AtomicUsize::new(0));
    let store = counted(&steps).await;
    let mut at = store.append("c", Version::default(), entries(0, length)).await.unwrap();
    let token = store.lease("c", "me", 0, 1_000).await.unwrap().token;
    let mut costs = Vec::new();
    // The first time statements are parsed, too.
    for round in 0..2 {
        costs.clear();
        let mut spent = |name: &'static str| costs.push((name, steps.swap(0, Ordering::Relaxed)));
        steps.store(0, Ordering::Relaxed);

        let before = at;
        at = store.append("c", at, entries(at.seq, at.seq + 2)).await.unwrap();
        spent("append");
        store.append("c", before, entries(before.seq, at.seq)).await.unwrap();
        spent("the same append again");
        at = store.append("c", at, vec![Arc::new(Entry::new(Message::user("who am I?")))]).await.unwrap();
        spent("append without an id");
        assert!(matches!(store.load("c", Some(at)).await.unwrap(), Loaded::Unchanged));
        spent("load unchanged");
        let Loaded::Added { entries: new, .. } = store.load("c", Some(before)).await.unwrap() else { panic!() };
        assert_eq!(new.len(), 3);
        spent("load what is new");
        assert_eq!(store.page("c", at.seq - 3, 10).await.unwrap().len(), 3);
        spent("page");

        store.lease("c", "me", round, 1_000).await.unwrap();
        spent("lease");
        store.begin(turn(length + round as u64), token).await.unwrap();
        spent("begin");
        assert!(!store.live_turns(Some("c")).await.unwrap().is_empty());
        store.pending(Some("c")).await.unwrap();
        spent("what is live");
        let messages = entries(at.seq, at.seq + 2).into_iter().map(SharedEntry).collect();
        let commit = Commit { messages, at: 120, ..Commit::default() };
        store.commit(&format!("t{}", length + round as u64), token, commit).await.unwrap();
        at.seq += 2;
        spent("commit");
        store.list(0, 10).await.unwrap();
        spent("list");
    }
    costs
}

// M8, FR-082: what an append, a commit and the next load cost does not depend on the conversation's length.
#[tokio::test]
async fn a_long_conversation_costs_no_more_than_a_short_one() {
    let short = costs(LENGTHS[0]).await;
    for length in &LENGTHS[1..] {
        for ((name, short), (_, long)) in short.iter().zip(costs(*length).await) {
            assert!(*short > 0 && short.abs_diff(long) <= SLACK, "{name}: {short} steps, {long} at {length} messages");
        }
    }
    println!("{short:?}");
}

/// What it costs to begin, end and ask about turns after so many that are over, in one conversation or each in its own.
async fn costs_after(turns: u64, conversations: u64) -> Vec<(&'static str, usize)> {
    let steps = Arc::new(AtomicUsize::new(0));
    let store = counted(&steps).await;
    let mut costs = Vec::new();
    for n in 0..turns {
        costs.clear();
        let mut spent = |name: &'static str| costs.push((name, steps.swap(0, Ordering::Relaxed)));
        let conversation = format!("c{}", n % conversations);
        let row = TurnRow { conversation: conversation.clone(), ..turn(n) };
        let token = store.lease(&conversation, "me", 0, 1_000).await.unwrap().token;
        spent("lease");
        store.begin(row.clone(), token).await.unwrap();
        spent("begin");
        assert_eq!(store.live_turns(Some(&conversation)).await.unwrap().len(), 1);
        spent("what is live in the conversation");
        assert_eq!(store.live_turns(None).await.unwrap().len(), 1);
        spent("what is live");
        let change = TurnChange { state: TurnState::Completed, data: row.data.into(), carried: None };
        store.commit(&row.id, token, Commit { turn: Some(change), at: 120, ..Commit::default() }).await.unwrap();
        spent("end");
    }
    costs
}

// M8: turns that are over cost those that come later nothing.
#[tokio::test]
async fn a_turn_after_many_costs_no_more_than_one_after_few() {
    for conversations in [1, 20] {
        let few = costs_after(30, conversations).await;
        for ((name, few), (_, many)) in few.iter().zip(costs_after(1_000, conversations).await) {
            assert!(few.abs_diff(many) <= SLACK, "{name}: {few} steps, {many} after many turns");
        }
    }
}

/// Counts the entries that loads bring.
#[derive(Default)]
struct Entries(AtomicUsize);

impl Watch for Entries {
    fn loaded(&self, loaded: &Loaded) {
        let count = match loaded {
            Loaded::Unchanged => 0,
            Loaded::Added { entries, .. } => entries.len(),
            Loaded::Whole { history, .. } => history.len(),
        };
        self.0.fetch_add(count, Ordering::Relaxed);
    }
}

/// Steps and loaded entries of a turn with a call, in a conversation that is so long and was used before.
async fn turn_costs(length: u64) -> (usize, usize) {
    let steps = Arc::new(AtomicUsize::new(0));
    let store = counted(&steps).await;
    store.append("c", Version::default(), entries(0, length)).await.unwrap();
    let loaded = Arc::new(Entries::default());
    let model = ScriptedModel::choosing(|call, _| match call % 2 {
        0 => Reply::empty().call(format!("c{call}"), "look", "{}"),
        _ => Reply::text("here it is"),
    });
    let look = Tool::new(ToolSpec::new("look", "Looks.", None).unwrap(), |_, _| async { Ok(ToolOutput::new("seen")) });
    let agent = Agent::builder(model).tool(look).memory(Watched::new(store, loaded.clone())).build().unwrap();
    let conversation = agent.conversation("c");
    conversation.chat("hello").await.unwrap();
    let first = loaded.0.swap(0, Ordering::Relaxed);
    assert!(first >= length as usize, "the first turn of a process reads the conversation: {first}");
    let mut least = (usize::MAX, usize::MAX);
    for _ in 0..3 {
        steps.store(0, Ordering::Relaxed);
        conversation.chat("hello").await.unwrap();
        // On a machine that stands still a lease is renewed in between.
        least = least.min((steps.load(Ordering::Relaxed), loaded.0.swap(0, Ordering::Relaxed)));
    }
    least
}

// M8, FR-082: the next turns of a conversation that a process holds load what the turn before appended, nothing else.
#[tokio::test]
async fn a_turn_of_a_long_conversation_costs_no_more_than_one_of_a_short_one() {
    let (steps, entries) = turn_costs(LENGTHS[0]).await;
    // The question, the call, its result and the answer, each once.
    assert_eq!(entries, 4);
    for length in &LENGTHS[1..] {
        let (long, loaded) = turn_costs(*length).await;
        assert!(steps.abs_diff(long) <= 4 * SLACK, "{steps} steps, {long} at {length} messages");
        assert_eq!(loaded, entries, "at {length} messages");
    }
    println!("a turn with a call: {steps} steps, {entries} entries loaded");
}
