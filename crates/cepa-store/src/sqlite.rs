//! The store: a handle whose calls become jobs of the connections' threads.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use cepa_agent::{
    AuditEntry, ChatMemory, Commit, ConversationInfo, CorruptRow, Decision, Lease, LiveTurn, Loaded, Opened, Pause,
    StoredTurn, TurnRow, TurnStore, Version,
};
use cepa_core::{BoxFuture, Entry, Error, History, RawJson};
use rusqlite::Connection;

use crate::{
    audit, calls, conversations,
    failure::Failure,
    open::{self, FileId},
    pauses,
    transaction::{self, Writing},
    turns,
    worker::Worker,
};

/// What is true when a write has returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// It survives a crash of the process, of the system, and a power cut.
    #[default]
    Full,
    /// It survives a crash of the process. After a power cut the last writes may be gone; what is there is whole.
    /// Many times faster on most disks.
    Normal,
}

/// Settings of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// What is true when a write has returned.
    pub synchronous: Synchronous,
    /// How long a call waits while another process writes.
    pub busy_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { synchronous: Synchronous::Full, busy_timeout: Duration::from_secs(5) }
    }
}

impl Options {
    /// Sets what is true when a write has returned.
    pub const fn synchronous(mut self, synchronous: Synchronous) -> Self {
        self.synchronous = synchronous;
        self
    }

    /// Sets how long a call waits while another process writes.
    pub const fn busy_timeout(mut self, busy_timeout: Duration) -> Self {
        self.busy_timeout = busy_timeout;
        self
    }
}

/// Loads are short and mostly incremental: two keep a long one from holding up the rest.
const READERS: usize = 2;

/// Conversations and turns in an SQLite file. Clones share the connections; any number of processes share the file.
///
/// Every write is one transaction. A write that has returned is kept (see [`Synchronous`]); a write that fails leaves
/// nothing. A caller who drops a call's future does not stop what was begun.
#[derive(Clone)]
pub struct Sqlite(Arc<Inner>);

struct Inner {
    path: Arc<PathBuf>,
    options: Options,
    file: FileId,
    /// None for a database in memory, which has one connection. Dropped first: the writer's connection is the last to
    /// close, and clears away the files beside the database.
    readers: Option<Worker>,
    writer: Worker,
}

impl Sqlite {
    /// Opens a file, and creates it if there is none. `:memory:` is a database of its own, gone with its last handle.
    ///
    /// This reads and may write a few pages at once, on the calling thread.
    ///
    /// # Errors
    /// `store` for a file that cannot be opened, belongs to another program or was written by a newer version (such a
    /// file is left as it is, to the byte); `corrupt` for a damaged one.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, Options::default())
    }

    /// Opens a file with settings.
    ///
    /// ```
    /// use cepa_store::{Options, Sqlite, Synchronous};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("chat.db");
    /// let store = Sqlite::open_with(path, Options::default().synchronous(Synchronous::Normal))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Sqlite::open`].
    pub fn open_with(path: impl AsRef<Path>, options: Options) -> Result<Self, Error> {
        let path = path.as_ref();
        if path.as_os_str() == ":memory:" {
            let path = Arc::new(path.to_owned());
            let file = FileId::default();
            let how = Writing { path: path.clone(), file, busy_timeout: options.busy_timeout };
            let writer = Worker::writer(how, open::open_memory(options)?)?;
            return Ok(Self(Arc::new(Inner { path, options, file, readers: None, writer })));
        }
        let (path, connection) = open::open_file(path, options)?;
        let path = Arc::new(path);
        let (to_read, file) = (path.clone(), FileId::of(&path));
        let how = Writing { path: path.clone(), file, busy_timeout: options.busy_timeout };
        let writer = Worker::writer(how, connection)?;
        let open_reader = move || {
            file.check(&to_read)?;
            let connection = open::open_reader(&to_read, options)?;
            // Opened long after the writer: another file may have taken the name just now.
            file.check(&to_read)?;
            Ok(connection)
        };
        let readers = Worker::readers(path.clone(), READERS, Arc::new(open_reader))?;
        Ok(Self(Arc::new(Inner { path, options, file, readers: Some(readers), writer })))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Reads in one transaction.
    async fn read<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Error> {
        let worker = self.0.readers.as_ref().unwrap_or(&self.0.writer);
        let (path, file) = (self.0.path.clone(), self.0.file);
        let job = move |connection: &mut Connection| {
            file.check(&path)?;
            transaction::read(connection, job)
        };
        worker.run(job).await
    }

    /// Writes in one transaction, which others that wait at the same time may share. Should that fail as a whole, each
    /// write is done again alone.
    async fn write<T: Send + 'static>(
        &self,
        job: impl FnMut(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Error> {
        self.0.writer.write(job).await
    }
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sqlite").field("path", &self.0.path).field("options", &self.0.options).finish()
    }
}

impl ChatMemory for Sqlite {
    fn load<'a>(&'a self, id: &'a str, held: Option<Version>) -> BoxFuture<'a, Result<Loaded, Error>> {
        let id = id.to_owned();
        Box::pin(self.read(move |connection| conversations::load(connection, &id, held)))
    }

    fn append<'a>(
        &'a self,
        id: &'a str,
        expected: Version,
        entries: Vec<Arc<Entry>>,
    ) -> BoxFuture<'a, Result<Version, Error>> {
        let id = id.to_owned();
        Box::pin(self.write(move |transaction| conversations::append(transaction, &id, expected, &entries)))
    }

    fn clear<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        let id = id.to_owned();
        Box::pin(self.write(move |transaction| conversations::clear(transaction, &id)))
    }

    fn list(&self, skip: usize, limit: usize) -> BoxFuture<'_, Result<Vec<ConversationInfo>, Error>> {
        Box::pin(self.read(move |connection| conversations::list(connection, skip, limit)))
    }

    fn page<'a>(&'a self, id: &'a str, after: u64, limit: usize) -> BoxFuture<'a, Result<Vec<Arc<Entry>>, Error>> {
        let id = id.to_owned();
        Box::pin(self.read(move |connection| conversations::page(connection, &id, after, limit)))
    }

    fn load_lossy<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(History, Vec<CorruptRow>), Error>> {
        let id = id.to_owned();
        Box::pin(self.read(move |connection| conversations::load_lossy(connection, &id)))
    }
}

impl TurnStore for Sqlite {
    fn identity(&self) -> Option<String> {
        // A database in memory is one with its clones only.
        let file = self.0.readers.is_some();
        Some(if file {
            format!("sqlite {}", self.0.path.display())
        } else {
            format!("memory {:p}", Arc::as_ptr(&self.0))
        })
    }

    fn lease<'a>(
        &'a self,
        conversation: &'a str,
        holder: &'a str,
        now: i64,
        until: i64,
    ) -> BoxFuture<'a, Result<Lease, Error>> {
        let (conversation, holder) = (conversation.to_owned(), holder.to_owned());
        Box::pin(self.write(move |transaction| turns::lease(transaction, &conversation, &holder, now, until)))
    }

    fn release<'a>(&'a self, conversation: &'a str, token: u64) -> BoxFuture<'a, Result<(), Error>> {
        let conversation = conversation.to_owned();
        Box::pin(self.write(move |transaction| turns::release(transaction, &conversation, token)))
    }

    fn open_turn<'a>(
        &'a self,
        turn: TurnRow,
        holder: &'a str,
        now: i64,
        until: i64,
    ) -> BoxFuture<'a, Result<Opened, Error>> {
        let holder = holder.to_owned();
        Box::pin(self.write(move |transaction| turns::open(transaction, &turn, &holder, now, until)))
    }

    fn begin<'a>(&'a self, turn: TurnRow, token: u64) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.write(move |transaction| turns::begin(transaction, &turn, token)))
    }

    fn commit<'a>(&'a self, turn: &'a str, token: u64, commit: Commit) -> BoxFuture<'a, Result<(), Error>> {
        let turn = turn.to_owned();
        Box::pin(self.write(move |transaction| turns::commit(transaction, &turn, token, &commit)))
    }

    fn forget<'a>(&'a self, turn: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        let turn = turn.to_owned();
        Box::pin(self.write(move |transaction| turns::forget(transaction, &turn)))
    }

    fn turn<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<StoredTurn>, Error>> {
        let id = id.to_owned();
        Box::pin(self.read(move |connection| turns::turn(connection, &id)))
    }

    fn live_turns<'a>(&'a self, conversation: Option<&'a str>) -> BoxFuture<'a, Result<Vec<LiveTurn>, Error>> {
        let conversation = conversation.map(str::to_owned);
        Box::pin(self.read(move |connection| turns::live(connection, conversation.as_deref())))
    }

    fn pending<'a>(&'a self, conversation: Option<&'a str>) -> BoxFuture<'a, Result<Vec<Pause>, Error>> {
        let conversation = conversation.map(str::to_owned);
        Box::pin(self.read(move |connection| pauses::pending(connection, conversation.as_deref())))
    }

    fn pause<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Pause>, Error>> {
        let id = id.to_owned();
        Box::pin(self.read(move |connection| pauses::by_id(connection, &id)))
    }

    fn decide<'a>(
        &'a self,
        pause: &'a str,
        decision: Decision,
        actor: &'a str,
        now: i64,
    ) -> BoxFuture<'a, Result<Pause, Error>> {
        let (pause, actor) = (pause.to_owned(), actor.to_owned());
        let decided = self.write(move |transaction| pauses::decide(transaction, &pause, &decision, &actor, now));
        // The inner error was committed: a pause that was decided too late is marked expired.
        Box::pin(async move { decided.await? })
    }

    fn audit<'a>(
        &'a self,
        conversation: Option<&'a str>,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<AuditEntry>, Error>> {
        let conversation = conversation.map(str::to_owned);
        Box::pin(self.read(move |connection| audit::page(connection, conversation.as_deref(), after, limit)))
    }

    fn full_result<'a>(&'a self, message: &'a str) -> BoxFuture<'a, Result<Option<RawJson>, Error>> {
        let message = message.to_owned();
        Box::pin(self.read(move |connection| calls::full_result(connection, &message)))
    }
}

#[cfg(test)]
#[path = "full_tests.rs"]
mod full_tests;
#[cfg(test)]
#[path = "growth_tests.rs"]
mod growth_tests;
#[cfg(test)]
#[path = "sqlite_tests.rs"]
mod sqlite_tests;
#[cfg(test)]
#[path = "together_tests.rs"]
mod together_tests;
