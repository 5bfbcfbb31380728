//! A conversation that is given back is given back once, and nobody takes it again by mistake.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that fails panics")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use cepa_agent::{
    Agent, AuditEntry, ChatMemory, Commit, ConversationInfo, Decision, InMemory, Lease, LiveTurn, Loaded, Pause,
    StoredTurn, TurnRow, TurnStatus, TurnStore, Version,
};
use cepa_core::{BoxFuture, Entry, Error, ErrorKind, RawJson};
use cepa_testkit::scripted::{Reply, ScriptedModel};

/// A store of somebody else's: only what has to be written is, and an answer may come late.
#[derive(Clone, Default)]
struct Foreign {
    store: InMemory,
    late: Duration,
    no_begin: Arc<AtomicBool>,
}

impl ChatMemory for Foreign {
    fn load<'a>(&'a self, id: &'a str, held: Option<Version>) -> BoxFuture<'a, Result<Loaded, Error>> {
        self.store.load(id, held)
    }
    fn append<'a>(&'a self, id: &'a str, at: Version, new: Vec<Arc<Entry>>) -> BoxFuture<'a, Result<Version, Error>> {
        self.store.append(id, at, new)
    }
    fn clear<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        self.store.clear(id)
    }
    fn list(&self, skip: usize, limit: usize) -> BoxFuture<'_, Result<Vec<ConversationInfo>, Error>> {
        self.store.list(skip, limit)
    }
    fn page<'a>(&'a self, id: &'a str, after: u64, limit: usize) -> BoxFuture<'a, Result<Vec<Arc<Entry>>, Error>> {
        self.store.page(id, after, limit)
    }
}

impl TurnStore for Foreign {
    fn lease<'a>(&'a self, id: &'a str, holder: &'a str, now: i64, until: i64) -> BoxFuture<'a, Result<Lease, Error>> {
        Box::pin(async move {
            let lease = self.store.lease(id, holder, now, until).await;
            tokio::time::sleep(self.late).await;
            lease
        })
    }
    fn release<'a>(&'a self, id: &'a str, token: u64) -> BoxFuture<'a, Result<(), Error>> {
        self.store.release(id, token)
    }
    fn begin<'a>(&'a self, turn: TurnRow, token: u64) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            if self.no_begin.load(Ordering::SeqCst) {
                return Err(Error::new(ErrorKind::Store, "the disk is full"));
            }
            self.store.begin(turn, token).await
        })
    }
    fn commit<'a>(&'a self, turn: &'a str, token: u64, commit: Commit) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let done = self.store.commit(turn, token, commit).await;
            tokio::time::sleep(self.late).await;
            done
        })
    }
    fn forget<'a>(&'a self, turn: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        self.store.forget(turn)
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
        self.store.decide(id, what, by, now)
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

fn agent(store: &Foreign) -> Agent {
    let model = ScriptedModel::choosing(|_, _| Reply::text("hi"));
    Agent::builder(model).memory(store.clone()).lease(Duration::from_secs(3)).build().unwrap()
}

/// Whether somebody else may have the conversation now.
async fn is_free(store: &Foreign) -> bool {
    let Ok(lease) = store.store.lease("c", "somebody else", 0, i64::MAX).await else { return false };
    store.store.release("c", lease.token).await.unwrap();
    true
}

// L15: the step that ends a turn gives the conversation back; the renewal of the lease, due in that moment, does not take it again.
#[tokio::test(start_paused = true)]
async fn a_lease_is_not_renewed_while_it_is_given_back() {
    for late in [900, 1_000, 1_100, 2_500] {
        let store = Foreign { late: Duration::from_millis(late), ..Foreign::default() };
        let agent = agent(&store);
        for text in ["one", "two"] {
            let done = agent.conversation("c").chat(text).await.unwrap();
            assert_eq!(done.status, TurnStatus::Completed, "{late} {text}");
            assert!(is_free(&store).await, "{late} {text}: it is held by nobody, and nobody may have it");
        }
    }
}

// L15, D5: a turn that cannot begin holds nothing.
#[tokio::test]
async fn a_turn_that_cannot_begin_gives_the_conversation_back() {
    let store = Foreign::default();
    store.no_begin.store(true, Ordering::SeqCst);
    let agent = agent(&store);
    assert_eq!(agent.conversation("c").chat("one").await.unwrap_err().error.kind(), ErrorKind::Store);
    assert!(is_free(&store).await);
    store.no_begin.store(false, Ordering::SeqCst);
    assert_eq!(agent.conversation("c").chat("two").await.unwrap().text, "hi");
}
