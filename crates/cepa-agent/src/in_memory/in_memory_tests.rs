//! Tests of the stores in the process. That they answer as the SQLite store does is tested beside that one.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use cepa_core::{BoxFuture, Entry, Error, ErrorKind, Message, RawJson};

use super::{Bare, InMemory};
use crate::{
    memory::{ChatMemory, ConversationInfo, Loaded, Version, load_whole},
    pause::{Decision, Pause, PauseKind, PauseState},
    rules,
    store::{CallKey, Commit, SharedEntry, TurnChange, TurnRow, TurnState, TurnStore},
};

fn entry(id: &str) -> Arc<Entry> {
    Arc::new(Entry::with_id(id, 1, Message::user(id)))
}

fn row(id: &str) -> TurnRow {
    TurnRow {
        id: id.into(),
        conversation: "c".into(),
        state: TurnState::Running,
        ephemeral: false,
        input: RawJson::empty_object(),
        carried: None,
        data: RawJson::empty_object(),
        created: 1,
        updated: 1,
    }
}

fn pause(id: &str, turn: &str) -> Pause {
    Pause {
        id: id.into(),
        kind: PauseKind::Approval,
        conversation: "c".into(),
        turn: turn.into(),
        key: CallKey { batch: 0, idx: 0 },
        call_id: "c1".into(),
        tool: "pay".into(),
        args: RawJson::empty_object(),
        args_hash: String::new(),
        schema_hash: String::new(),
        reason: None,
        created: 2,
        expires: Some(100),
        state: PauseState::Pending,
        decision: None,
        actor: None,
        decided: None,
    }
}

fn says(id: &str) -> Commit {
    Commit { messages: vec![SharedEntry(entry(id))], at: 3, ..Commit::default() }
}

fn over() -> Commit {
    let turn = Some(TurnChange { state: TurnState::Completed, data: RawJson::empty_object().into(), carried: None });
    Commit { turn, ..Commit::default() }
}

async fn ids(memory: &dyn ChatMemory) -> Vec<String> {
    let (_, history) = load_whole(memory, "c").await.unwrap();
    history.iter().map(|entry| entry.id.as_deref().unwrap().to_owned()).collect()
}

// M1: of appends at one version one is done, the others are conflicts that leave nothing.
#[tokio::test]
async fn appends_conflict_or_are_done_once() {
    let memory = InMemory::new();
    let start = Version::default();
    let version = memory.append("c", start, vec![entry("a"), entry("b")]).await.unwrap();
    assert_eq!(memory.append("c", start, vec![entry("b"), entry("a")]).await.unwrap(), version);
    let error = memory.append("c", start, vec![entry("b"), entry("x")]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    memory.append("c", version, vec![Arc::new(Entry::new(Message::user("?")))]).await.unwrap();
    assert_eq!(ids(&memory).await, ["a", "b", "m0-3"]);
    memory.clear("c").await.unwrap();
    assert!(
        matches!(memory.load("c", Some(version)).await.unwrap(), Loaded::Whole { version, .. } if version.epoch == 1)
    );
}

// M8: a load shares the rows that are there; the next one gives what is new, however long the rest is.
#[tokio::test]
async fn a_load_copies_no_rows() {
    let memory = InMemory::new();
    let rows: Vec<_> = (0..1000).map(|n| entry(&n.to_string())).collect();
    let version = memory.append("c", Version::default(), rows.clone()).await.unwrap();
    let (_, history) = load_whole(&memory, "c").await.unwrap();
    assert!(history.iter().zip(&rows).all(|(loaded, appended)| Arc::ptr_eq(loaded, appended)));
    memory.append("c", version, vec![entry("new")]).await.unwrap();
    assert!(
        matches!(memory.load("c", Some(version)).await.unwrap(), Loaded::Added { entries, .. } if entries.len() == 1)
    );
}

// H4: a decision holds, whoever makes it again; another is refused.
#[tokio::test]
async fn a_decision_holds() {
    let store = InMemory::new();
    store.begin(row("t"), 0).await.unwrap();
    let waits = Commit { pauses: vec![pause("p", "t")], ..Commit::default() };
    store.commit("t", 0, waits.clone()).await.unwrap();
    let decided = store.decide("p", Decision::Approve, "ann", 50).await.unwrap();
    assert_eq!((decided.state, decided.actor.as_deref()), (PauseState::Approved, Some("ann")));
    // The step that made it wait, written again, does not undo the decision.
    store.commit("t", 0, waits).await.unwrap();
    assert_eq!(store.clone().decide("p", Decision::Approve, "bob", 500).await.unwrap(), decided);
    let other = store.decide("p", Decision::Reject { reason: None }, "bob", 50).await.unwrap_err();
    assert_eq!(other.kind(), ErrorKind::AlreadyDecided);
    let give_up = Commit { closed_pauses: vec![("p".into(), PauseState::Cancelled)], ..says("x") };
    assert_eq!(store.commit("t", 0, give_up).await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(ids(&store).await, Vec::<String>::new());
}

// D1: a holder that was taken over writes nothing, beside a bare memory too.
#[tokio::test]
async fn an_old_token_writes_nothing() {
    let memory = InMemory::new();
    let store = Bare::new(memory.clone());
    let old = store.lease("c", "me", 0, 10).await.unwrap().token;
    store.begin(row("t"), old).await.unwrap();
    assert_eq!(store.lease("c", "you", 9, 20).await.unwrap_err().kind(), ErrorKind::Busy);
    let new = store.lease("c", "you", 10, 20).await.unwrap().token;
    assert_eq!(store.commit("t", old, says("late")).await.unwrap_err().kind(), ErrorKind::Busy);
    store.commit("t", new, says("mine")).await.unwrap();
    assert_eq!(ids(&memory).await, ["mine"]);
}

/// A memory of a user: `InMemory`, into which somebody else appends before each of the first appends.
struct Rival {
    memory: InMemory,
    appends: AtomicU32,
}

impl ChatMemory for Rival {
    fn load<'a>(&'a self, id: &'a str, held: Option<Version>) -> BoxFuture<'a, Result<Loaded, Error>> {
        self.memory.load(id, held)
    }
    fn append<'a>(
        &'a self,
        id: &'a str,
        expected: Version,
        entries: Vec<Arc<Entry>>,
    ) -> BoxFuture<'a, Result<Version, Error>> {
        Box::pin(async move {
            let n = self.appends.fetch_add(1, Ordering::Relaxed);
            if n < 3 {
                let (version, _) = load_whole(&self.memory, id).await?;
                self.memory.append(id, version, vec![entry(&format!("rival {n}"))]).await?;
            }
            self.memory.append(id, expected, entries).await
        })
    }
    fn clear<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        self.memory.clear(id)
    }
    fn list(&self, skip: usize, limit: usize) -> BoxFuture<'_, Result<Vec<ConversationInfo>, Error>> {
        self.memory.list(skip, limit)
    }
    fn page<'a>(&'a self, id: &'a str, after: u64, limit: usize) -> BoxFuture<'a, Result<Vec<Arc<Entry>>, Error>> {
        self.memory.page(id, after, limit)
    }
}

#[tokio::test]
async fn a_commit_beside_a_bare_memory_appends_to_what_came_between() {
    let store = Bare::new(Rival { memory: InMemory::new(), appends: AtomicU32::new(0) });
    store.begin(row("t"), 0).await.unwrap();
    store.commit("t", 0, says("mine")).await.unwrap();
    store.commit("t", 0, says("mine")).await.unwrap();
    assert_eq!(ids(&store).await, ["rival 0", "rival 1", "rival 2", "mine"]);
}

#[tokio::test]
async fn beside_a_bare_memory_only_the_last_turns_are_kept() {
    let store = Bare::new(InMemory::new());
    store.begin(row("live"), 0).await.unwrap();
    for n in 0..=super::bare::TURNS_KEPT {
        let id = format!("t{n}");
        store.begin(row(&id), 0).await.unwrap();
        let waits = Commit { pauses: vec![pause(&format!("p{n}"), &id)], ..Commit::default() };
        store.commit(&id, 0, waits).await.unwrap();
        store.commit(&id, 0, over()).await.unwrap();
    }
    let kept = async |id: &str| store.turn(id).await.unwrap().is_some();
    assert!(kept("live").await && kept("t1").await && !kept("t0").await);
    assert_eq!(store.pause("p0").await.unwrap(), None);
    assert_eq!(store.pending(None).await.unwrap().len(), super::bare::TURNS_KEPT);
}

// L12: nothing of an ephemeral turn stays; a turn of a conversation is not forgotten.
#[tokio::test]
async fn only_an_ephemeral_turn_is_forgotten() {
    let store = InMemory::new();
    store.begin(TurnRow { conversation: "e".into(), ephemeral: true, ..row("e") }, 0).await.unwrap();
    store.commit("e", 0, Commit { pauses: vec![pause("p", "e")], ..Commit::default() }).await.unwrap();
    store.forget("e").await.unwrap();
    store.forget("e").await.unwrap();
    assert_eq!(store.live_turns(None).await.unwrap(), []);
    assert_eq!(store.decide("p", Decision::Approve, "ann", 3).await.unwrap_err().kind(), ErrorKind::NotPaused);
    store.begin(row("t"), 0).await.unwrap();
    assert_eq!(store.forget("t").await.unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn a_lease_passes_on_with_a_rising_token() {
    let free = rules::Holding::default();
    let mine = free.take("c", "me", 0, 10).unwrap();
    assert_eq!((mine.token, mine.until), (1, 10));
    // Renewed, also after its end if nobody came: the token stays, so that what is under way can be written.
    assert_eq!(mine.take("c", "me", 50, 60).unwrap().token, 1);
    assert_eq!(mine.take("c", "you", 10, 20).unwrap().token, 2);
    let busy = mine.take("c", "you", 9, 20).unwrap_err();
    assert_eq!((busy.kind(), busy.retry_after()), (ErrorKind::Busy, Some(std::time::Duration::from_millis(1))));
}
