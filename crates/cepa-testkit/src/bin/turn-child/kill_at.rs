//! A store whose process dies at its n-th write.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use cepa_agent::{
    AuditEntry, ChatMemory, Commit, ConversationInfo, CorruptRow, Decision, Lease, LiveTurn, Loaded, Pause, StoredTurn,
    TurnRow, TurnStore, Version,
};
use cepa_core::{BoxFuture, Entry, Error, History, RawJson};

use crate::task::{Kill, When};

/// A store around another. It counts each write (lease, begin, commit, append, decide, release, forget, clear) and kills
/// the process on the chosen side of the chosen one.
#[derive(Clone)]
pub(crate) struct KillAt<S> {
    store: S,
    writes: Arc<AtomicUsize>,
    kill: Option<Kill>,
}

impl<S: TurnStore> KillAt<S> {
    pub(crate) fn new(store: S, kill: Option<Kill>) -> Self {
        Self { store, writes: Arc::default(), kill }
    }

    /// How many writes there were.
    pub(crate) fn writes(&self) -> usize {
        self.writes.load(Ordering::SeqCst)
    }

    async fn write<T>(&self, write: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let number = self.writes.fetch_add(1, Ordering::SeqCst);
        let dies = |when| self.kill == Some(Kill { write: number, when });
        if dies(When::Before) {
            die();
        }
        let done = write.await;
        if dies(When::After) {
            die();
        }
        done
    }
}

/// Nothing of the process runs after this: no destructor, no other thread, no flush.
fn die() -> ! {
    #[cfg(unix)]
    if rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).is_ok() {
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    }
    std::process::abort()
}

impl<S: TurnStore> ChatMemory for KillAt<S> {
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
    fn load_lossy<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(History, Vec<CorruptRow>), Error>> {
        self.store.load_lossy(id)
    }
}

impl<S: TurnStore> TurnStore for KillAt<S> {
    fn identity(&self) -> Option<String> {
        self.store.identity()
    }
    fn lease<'a>(&'a self, id: &'a str, holder: &'a str, now: i64, until: i64) -> BoxFuture<'a, Result<Lease, Error>> {
        Box::pin(self.write(self.store.lease(id, holder, now, until)))
    }
    fn release<'a>(&'a self, id: &'a str, token: u64) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.write(self.store.release(id, token)))
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
