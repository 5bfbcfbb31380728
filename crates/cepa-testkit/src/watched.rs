//! A store whose reads and writes are watched, wrapped around one that works.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use cepa_agent::{
    AuditEntry, ChatMemory, Commit, ConversationInfo, CorruptRow, Decision, Lease, LiveTurn, Loaded, Opened, Pause,
    StoredTurn, TurnRow, TurnStore, Version,
};
use cepa_core::{BoxFuture, Entry, Error, History, RawJson};

/// One write of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// Its number, from 0.
    pub number: usize,
    /// The method: `append`, `clear`, `lease`, `open_turn`, `release`, `begin`, `commit`, `forget` or `decide`.
    pub method: &'static str,
}

/// Who is told. Each method does nothing unless it is written.
pub trait Watch: Send + Sync + 'static {
    /// The store has not been asked yet.
    fn before(&self, write: Write) {
        let _ = write;
    }
    /// The store has answered, and nobody has been told.
    fn after(&self, write: Write, done: Result<(), &Error>) {
        let _ = (write, done);
    }
    /// A conversation was loaded, or what is new in it.
    fn loaded(&self, loaded: &Loaded) {
        let _ = loaded;
    }
}

/// A store around another, which tells of each write before and after it is done, and of what is loaded.
///
/// ```
/// use std::sync::{Arc, atomic::{AtomicUsize, Ordering}};
/// use cepa_agent::{ChatMemory, InMemory, Version};
/// use cepa_core::Error;
/// use cepa_testkit::watched::{Watch, Watched, Write};
/// #[derive(Default)]
/// struct Failures(AtomicUsize);
/// impl Watch for Failures {
///     fn after(&self, _: Write, done: Result<(), &Error>) {
///         self.0.fetch_add(usize::from(done.is_err()), Ordering::Relaxed);
///     }
/// }
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let failures = Arc::new(Failures::default());
/// let store = Watched::new(InMemory::new(), failures.clone());
/// let nowhere = Version { epoch: 7, seq: 7 };
/// assert!(store.append("c", nowhere, vec![Arc::new(cepa_core::Entry::new(cepa_core::Message::user("hi")))]).await.is_err());
/// assert_eq!(failures.0.load(Ordering::Relaxed), 1);
/// # });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Watched<S> {
    store: S,
    watch: Arc<dyn Watch>,
    writes: Arc<AtomicUsize>,
}

impl<S> Watched<S> {
    /// A store that tells this watcher. Clones count on together.
    pub fn new(store: S, watch: Arc<dyn Watch>) -> Self {
        Self { store, watch, writes: Arc::default() }
    }

    /// How many writes were begun.
    pub fn writes(&self) -> usize {
        self.writes.load(Ordering::SeqCst)
    }

    /// The store inside.
    pub fn inner(&self) -> &S {
        &self.store
    }

    async fn write<T>(
        &self,
        method: &'static str,
        write: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        let number = self.writes.fetch_add(1, Ordering::SeqCst);
        self.watch.before(Write { number, method });
        let done = write.await;
        self.watch.after(Write { number, method }, done.as_ref().map(|_| ()));
        done
    }
}

impl<S: fmt::Debug> fmt::Debug for Watched<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").field("store", &self.store).field("writes", &self.writes()).finish_non_exhaustive()
    }
}

impl<S: ChatMemory> ChatMemory for Watched<S> {
    fn load<'a>(&'a self, id: &'a str, held: Option<Version>) -> BoxFuture<'a, Result<Loaded, Error>> {
        Box::pin(async move {
            let loaded = self.store.load(id, held).await;
            loaded.iter().for_each(|loaded| self.watch.loaded(loaded));
            loaded
        })
    }
    fn append<'a>(&'a self, id: &'a str, at: Version, new: Vec<Arc<Entry>>) -> BoxFuture<'a, Result<Version, Error>> {
        Box::pin(self.write("append", self.store.append(id, at, new)))
    }
    fn clear<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.write("clear", self.store.clear(id)))
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

impl<S: TurnStore> TurnStore for Watched<S> {
    fn identity(&self) -> Option<String> {
        self.store.identity()
    }
    fn lease<'a>(&'a self, id: &'a str, holder: &'a str, now: i64, until: i64) -> BoxFuture<'a, Result<Lease, Error>> {
        Box::pin(self.write("lease", self.store.lease(id, holder, now, until)))
    }
    fn open_turn<'a>(
        &'a self,
        turn: TurnRow,
        holder: &'a str,
        now: i64,
        until: i64,
    ) -> BoxFuture<'a, Result<Opened, Error>> {
        Box::pin(self.write("open_turn", self.store.open_turn(turn, holder, now, until)))
    }
    fn release<'a>(&'a self, id: &'a str, token: u64) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.write("release", self.store.release(id, token)))
    }
    fn begin<'a>(&'a self, turn: TurnRow, token: u64) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.write("begin", self.store.begin(turn, token)))
    }
    fn commit<'a>(&'a self, turn: &'a str, token: u64, commit: Commit) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.write("commit", self.store.commit(turn, token, commit)))
    }
    fn forget<'a>(&'a self, turn: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.write("forget", self.store.forget(turn)))
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
        Box::pin(self.write("decide", self.store.decide(id, what, by, now)))
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
