//! A process that dies at any commit of a turn, and what the next process finds and does.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that fails panics")]

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use cepa_agent::{
    Agent, AuditEntry, ChatMemory, Commit, ConversationInfo, Decision, InMemory, Lease, LiveTurn, Loaded, Pause,
    PauseKind, StoredTurn, TurnRow, TurnStatus, TurnStore, Version, load_whole,
};
use cepa_core::{BoxFuture, Entry, Error, RawJson, Tool, ToolFlags, ToolOutput, ToolSpec, ToolStatus, pairing};
use cepa_testkit::scripted::{Reply, ScriptedModel};
use tokio::sync::Notify;

/// Where a process dies: at its n-th write, before or after the store has it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Death {
    Before(usize),
    After(usize),
    /// It does not die: this one write fails, and the store has nothing of it.
    Fails(usize),
}

/// A store of a process that dies: from then on nothing comes back.
#[derive(Clone)]
struct Mortal {
    store: InMemory,
    writes: Arc<AtomicUsize>,
    death: Option<Death>,
    died: Arc<Notify>,
    /// Whether the lease can no longer be renewed: the process hangs, or is cut off for a while.
    stalled: Arc<AtomicBool>,
}

impl Mortal {
    fn new(store: &InMemory, death: Option<Death>) -> Self {
        Self { store: store.clone(), writes: Arc::default(), death, died: Arc::default(), stalled: Arc::default() }
    }

    async fn die(&self) {
        self.died.notify_one();
        std::future::pending().await
    }

    async fn write<T>(&self, write: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let n = self.writes.fetch_add(1, Ordering::SeqCst);
        if self.death == Some(Death::Fails(n)) {
            return Err(Error::new(cepa_core::ErrorKind::Store, "the disk is full"));
        }
        if self.death == Some(Death::Before(n)) {
            self.die().await;
        }
        let done = write.await;
        if self.death == Some(Death::After(n)) {
            self.die().await;
        }
        done
    }
}

impl ChatMemory for Mortal {
    fn load<'a>(&'a self, id: &'a str, held: Option<Version>) -> BoxFuture<'a, Result<Loaded, Error>> {
        self.store.load(id, held)
    }
    fn append<'a>(&'a self, id: &'a str, at: Version, new: Vec<Arc<Entry>>) -> BoxFuture<'a, Result<Version, Error>> {
        Box::pin(self.write(self.store.append(id, at, new)))
    }
    fn clear<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.write(self.store.clear(id)))
    }
    fn list(&self, skip: usize, limit: usize) -> BoxFuture<'_, Result<Vec<ConversationInfo>, Error>> {
        self.store.list(skip, limit)
    }
    fn page<'a>(&'a self, id: &'a str, after: u64, limit: usize) -> BoxFuture<'a, Result<Vec<Arc<Entry>>, Error>> {
        self.store.page(id, after, limit)
    }
}

impl TurnStore for Mortal {
    fn lease<'a>(&'a self, id: &'a str, holder: &'a str, now: i64, until: i64) -> BoxFuture<'a, Result<Lease, Error>> {
        if self.stalled.load(Ordering::SeqCst) {
            return Box::pin(async { Err(Error::new(cepa_core::ErrorKind::Store, "stalled")) });
        }
        self.store.lease(id, holder, now, until)
    }
    fn release<'a>(&'a self, id: &'a str, token: u64) -> BoxFuture<'a, Result<(), Error>> {
        self.store.release(id, token)
    }
    fn begin<'a>(&'a self, turn: TurnRow, token: u64) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.write(self.store.begin(turn, token)))
    }
    fn commit<'a>(&'a self, turn: &'a str, token: u64, commit: Commit) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.write(self.store.commit(turn, token, commit)))
    }
    fn forget<'a>(&'a self, turn: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.write(self.store.forget(turn)))
    }
    fn turn<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<StoredTurn>, Error>> {
        self.store.turn(id)
    }
    fn live_turns<'a>(&'a self, conversation: Option<&'a str>) -> BoxFuture<'a, Result<Vec<LiveTurn>, Error>> {
        self.store.live_turns(conversation)
    }
    fn pending<'a>(&'a self, conversation: Option<&'a str>) -> BoxFuture<'a, Result<Vec<Pause>, Error>> {
        self.store.pending(conversation)
    }
    fn pause<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Pause>, Error>> {
        self.store.pause(id)
    }
    fn decide<'a>(&'a self, id: &'a str, what: Decision, by: &'a str, now: i64) -> BoxFuture<'a, Result<Pause, Error>> {
        Box::pin(self.write(self.store.decide(id, what, by, now)))
    }
    fn audit<'a>(
        &'a self,
        conversation: Option<&'a str>,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<AuditEntry>, Error>> {
        self.store.audit(conversation, after, limit)
    }
    fn full_result<'a>(&'a self, message: &'a str) -> BoxFuture<'a, Result<Option<RawJson>, Error>> {
        self.store.full_result(message)
    }
}

/// What ran, with the key it ran under.
type Runs = Arc<Mutex<Vec<(String, String)>>>;

fn tool(name: &'static str, flags: ToolFlags, runs: &Runs) -> Tool {
    let (runs, spec) = (runs.clone(), ToolSpec::new(name, "", None).unwrap().with_flags(flags));
    Tool::new(spec, move |_, context| {
        let key = context.idempotency_key().unwrap_or_default().to_owned();
        runs.lock().unwrap().push((name.to_owned(), key));
        async move { Ok(ToolOutput::new(format!("{name} done"))) }
    })
}

/// The model of any process: what it says depends on what it reads, as a real one's does.
fn model() -> ScriptedModel {
    ScriptedModel::choosing(|_, request| {
        let results = request.messages.messages().filter(|message| message.role() == cepa_core::Role::Tool).count();
        match results {
            0 => Reply::text("Two things.").call("c1", "once", "{}").call("c2", "again", "{}"),
            2 => Reply::empty().call("c1", "once", "{}"),
            _ => Reply::text("done"),
        }
    })
}

const LEASE: Duration = Duration::from_millis(100);

fn agent(store: Mortal, runs: &Runs, pausing: bool) -> Agent {
    let idempotent = ToolFlags { idempotent: true, ..ToolFlags::default() };
    Agent::builder(model())
        .tool(tool("once", ToolFlags::default(), runs))
        .tool(tool("again", idempotent, runs))
        .memory(store)
        .conversation_id("c")
        .pausing(pausing)
        .lease(LEASE)
        .lease_wait(Duration::from_secs(5))
        .build()
        .unwrap()
}

/// Lets a process die, and the next one recover. Returns whether the first one lived.
async fn die_and_recover(death: Death, pausing: bool) -> bool {
    let (store, runs) = (InMemory::new(), Runs::default());
    let mortal = Mortal::new(&store, Some(death));
    let died = mortal.died.clone();
    let first = agent(mortal, &runs, pausing);
    let lived = tokio::select! {
        done = first.chat("go") => done.is_ok(),
        () = died.notified() => false,
    };

    let second = agent(Mortal::new(&store, None), &runs, pausing);
    let live = store.live_turns(Some("c")).await.unwrap();
    let recovered = second.own_conversation().recover().await.unwrap();
    if let Some(result) = &recovered {
        match result.status {
            TurnStatus::Completed => assert_eq!(result.text, "done", "{death:?}"),
            TurnStatus::Paused => {
                // D2: what started and did not finish, and may not be repeated, is for a person to look at.
                assert!(pausing && result.pending.iter().all(|pause| pause.kind == PauseKind::Unknown), "{death:?}");
            }
            TurnStatus::Cancelled | TurnStatus::Exhausted => panic!("{death:?}: {result:?}"),
        }
    } else {
        assert!(live.is_empty(), "{death:?}: a live turn was not recovered");
    }
    // The conversation goes on whatever happened.
    let after = second.chat("and now?").await.unwrap();
    assert_eq!(after.status, TurnStatus::Completed, "{death:?}");

    let (_, history) = load_whole(&store, "c").await.unwrap();
    assert_eq!(pairing::validate(&history), Ok(()), "{death:?}: {history:?}");
    let ids: Vec<_> = history.iter().map(|entry| entry.id.clone()).collect();
    let distinct: std::collections::HashSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len(), "D4 {death:?}: a message is doubled");

    let runs = runs.lock().unwrap();
    let keys: std::collections::HashSet<_> =
        runs.iter().filter(|(name, _)| name == "once").map(|(_, key)| key).collect();
    let once = runs.iter().filter(|(name, _)| name == "once").count();
    assert_eq!(once, keys.len(), "D2, D3 {death:?}: a call that is not idempotent ran twice: {runs:?}");
    for message in history.messages() {
        if let cepa_core::Message::Tool(result) = message
            && result.status == ToolStatus::Cancelled
        {
            panic!("{death:?}: a call of a recovered turn never ran: {history:?}");
        }
    }
    lived
}

#[tokio::test]
async fn a_turn_survives_a_death_at_every_write() {
    // D1, D2, D3: begun, planned, started, finished; before and after each write; with and without pausing.
    // Real leases run out here, which is why this takes a second.
    let mut cases = Vec::new();
    for n in 0..40 {
        for death in [Death::Before(n), Death::After(n)] {
            for pausing in [false, true] {
                cases.push((n, tokio::spawn(die_and_recover(death, pausing))));
            }
        }
    }
    let mut lived_from = usize::MAX;
    for (n, case) in cases {
        if case.await.unwrap() {
            lived_from = lived_from.min(n);
        }
    }
    // Begun; three replies, each with the turn's note of it; three calls entered, the first of a batch with its verdicts, and
    // ended, one of them with the entry of the next.
    assert!((9..40).contains(&lived_from), "a turn makes {lived_from} writes: not every one of them was tried");
}

#[tokio::test]
async fn two_processes_decide_at_once_and_one_wins() {
    // H4, D2: compare-and-set; the loser is told, and nothing runs twice.
    let (store, runs) = (InMemory::new(), Runs::default());
    let build = || {
        let flags = ToolFlags { sensitive: true, ..ToolFlags::default() };
        let model =
            ScriptedModel::choosing(|_, request| match request.messages.last().map(|last| last.message.role()) {
                Some(cepa_core::Role::User) => Reply::empty().call("c1", "pay", "{}"),
                _ => Reply::text("paid"),
            });
        let store = Mortal::new(&store, None);
        Agent::builder(model).tool(tool("pay", flags, &runs)).memory(store).pausing(true).lease(LEASE).build().unwrap()
    };
    let paused = build().conversation("c").chat("pay").await.unwrap();
    let id = paused.pending[0].id.clone();
    let decide = |decision: Decision| {
        let (agent, id) = (build(), id.clone());
        tokio::spawn(async move { agent.conversation("c").resume(cepa_agent::Decisions::one(id, decision)).await })
    };
    let (approved, rejected) = (decide(Decision::Approve), decide(Decision::Reject { reason: None }));
    let outcomes = [approved.await.unwrap(), rejected.await.unwrap()];
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
    assert!(runs.lock().unwrap().len() <= 1);
}

#[tokio::test]
async fn a_holder_that_lost_the_conversation_writes_nothing() {
    // L15, D1: every write of a turn carries its token; what a stalled process says too late is refused, not interleaved.
    let (store, runs) = (InMemory::new(), Runs::default());
    let stalled = Mortal::new(&store, None);
    let slow = ScriptedModel::choosing(|_, _| Reply::text("too late").after(Duration::from_millis(400)));
    let first = Agent::builder(slow).memory(stalled.clone()).lease(LEASE).build().unwrap();
    let late = tokio::spawn(async move { first.conversation("c").chat("one").await });
    tokio::time::sleep(Duration::from_millis(20)).await;
    stalled.stalled.store(true, Ordering::SeqCst);
    tokio::time::sleep(LEASE * 2).await;

    let second = agent(Mortal::new(&store, None), &runs, false);
    assert_eq!(second.own_conversation().chat("two").await.unwrap().status, TurnStatus::Completed);
    assert_eq!(late.await.unwrap().unwrap_err().error.kind(), cepa_core::ErrorKind::Busy);
    let (_, history) = load_whole(&store, "c").await.unwrap();
    assert!(history.messages().all(|message| message.text() != "too late"));
    assert_eq!(pairing::validate(&history), Ok(()));
}

#[tokio::test]
async fn a_turn_survives_a_failure_of_every_write() {
    // D5, M3, L3: a write that fails is the turn's error; the next message finds everything as it was acknowledged.
    for n in 0..40 {
        for pausing in [false, true] {
            let (store, runs) = (InMemory::new(), Runs::default());
            let agent = agent(Mortal::new(&store, Some(Death::Fails(n))), &runs, pausing);
            if let Err(error) = agent.chat("go").await {
                assert_eq!(error.error.kind(), cepa_core::ErrorKind::Store, "write {n}: {error:?}");
            }
            // The write may be one of this turn's; it fails once.
            let after = match agent.chat("and now?").await {
                Err(error) if error.error.kind() == cepa_core::ErrorKind::Store => agent.chat("and now?").await,
                done => done,
            };
            assert_eq!(after.unwrap().status, TurnStatus::Completed, "write {n}");
            let (_, history) = load_whole(&store, "c").await.unwrap();
            assert_eq!(pairing::validate(&history), Ok(()), "write {n}: {history:?}");
            let runs = runs.lock().unwrap();
            let keys: std::collections::HashSet<_> = runs.iter().filter(|(name, _)| name == "once").collect();
            let once = runs.iter().filter(|(name, _)| name == "once").count();
            assert_eq!(once, keys.len(), "write {n}: a call that is not idempotent ran twice: {runs:?}");
        }
    }
}

#[tokio::test]
async fn a_paused_state_that_somebody_changed_runs_nothing_else() {
    // H1, H8: what comes from outside is input: it is refused, or runs as it stands there and through the same checks.
    let runs = Runs::default();
    let build = || {
        let flags = ToolFlags { sensitive: true, ..ToolFlags::default() };
        let model =
            ScriptedModel::choosing(|_, request| match request.messages.last().map(|last| last.message.role()) {
                Some(cepa_core::Role::Tool) => Reply::text("paid"),
                _ => Reply::empty().call("c1", "pay", "{}"),
            });
        Agent::builder(model).tool(tool("pay", flags, &runs)).pausing(true).build().unwrap()
    };
    let state = build().chat("pay").await.unwrap().state.unwrap();
    let json = serde_json::to_string(&state).unwrap();
    for (from, to) in [
        (r#""schema":1"#, r#""schema":99"#),
        (r#""tool":"pay""#, r#""tool":"nothing""#),
        (r#""state":"pending""#, r#""state":"nonsense""#),
        (r#""data":{"#, r#""data":{"open_batch":7,"x":{"#),
        (r#""batches":1"#, r#""batches":4000000000"#),
        (r#""replies":1"#, r#""replies":0"#),
        (r#""idx":0"#, r#""idx":9"#),
    ] {
        let changed = json.replacen(from, to, 1);
        assert_ne!(changed, json, "{from} is in the state");
        let Ok(state) = serde_json::from_str(&changed) else { continue };
        let options = cepa_agent::TurnOptions::new();
        // An error or an answer, but no panic and no tool that was not shown.
        drop(build().resume_with(state, cepa_agent::Decisions::approved(), options).await);
        assert!(runs.lock().unwrap().iter().all(|(name, _)| name == "pay"));
        runs.lock().unwrap().clear();
    }
}
