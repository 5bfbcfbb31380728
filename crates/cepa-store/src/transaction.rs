//! Transactions. Writes that wait at the same time share one: a commit costs the same for one of them and for all.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use cepa_core::Error;
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::{failure::Failure, open::FileId};

/// Statements of the path of every turn: each is parsed once.
fn run(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(|_| ())
}

/// A transaction that is rolled back unless it was committed.
struct Transaction<'a>(&'a Connection);

impl<'a> Transaction<'a> {
    fn begin(connection: &'a Connection, sql: &str) -> rusqlite::Result<Self> {
        run(connection, sql)?;
        Ok(Self(connection))
    }

    fn commit(self) -> rusqlite::Result<()> {
        run(self.0, "COMMIT")
    }

    /// SQLite ends a transaction itself when there is no room, for one.
    fn is_over(&self) -> bool {
        self.0.is_autocommit()
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.is_over() {
            // A connection on which not even this works says so at the next touch.
            let _ = run(self.0, "ROLLBACK");
        }
    }
}

/// Reads in one transaction: what several statements see belongs together.
pub(crate) fn read<T>(
    connection: &Connection,
    job: impl FnOnce(&Connection) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let _transaction = Transaction::begin(connection, "BEGIN")?;
    job(connection)
}

/// A write that waits for its turn. It may be done more than once; only the last time counts.
pub(crate) trait Write: Send {
    /// When it began to wait.
    fn queued(&self) -> Instant;
    /// Does it, and tells whether it is to be kept.
    fn work(&mut self, connection: &Connection) -> bool;
    /// Tells its caller: what came of it, unless its transaction has failed.
    fn answer(self: Box<Self>, how: &Writing, committed: Result<(), Failure>);
}

/// How one file is written.
pub(crate) struct Writing {
    pub(crate) path: Arc<PathBuf>,
    pub(crate) file: FileId,
    pub(crate) busy_timeout: Duration,
}

impl Writing {
    /// Does each write, alone or together with the others, and answers it: after the commit, if it is kept.
    pub(crate) fn all(&self, connection: &Connection, mut writes: Vec<Box<dyn Write>>) {
        if writes.len() > 1 && self.together(connection, &mut writes).is_ok_and(|committed| committed) {
            for write in writes {
                write.answer(self, Ok(()));
            }
            return;
        }
        for mut write in writes {
            let committed = self.alone(connection, &mut *write);
            write.answer(self, committed);
        }
    }

    /// Begins with the right to write: what is read cannot change before the commit.
    fn begin<'a>(&self, connection: &'a Connection, queued: Instant) -> Result<Transaction<'a>, Failure> {
        self.file.check(&self.path)?;
        // Waiting in the queue behind others that wait for the lock counts: the tenth does not wait ten times.
        let left = self.busy_timeout.saturating_sub(queued.elapsed());
        connection.busy_timeout(left.max(self.busy_timeout / 50))?;
        Ok(Transaction::begin(connection, "BEGIN IMMEDIATE")?)
    }

    fn alone(&self, connection: &Connection, write: &mut dyn Write) -> Result<(), Failure> {
        let transaction = self.begin(connection, write.queued())?;
        if write.work(connection) {
            transaction.commit()?;
        }
        Ok(())
    }

    /// All in one transaction. One that fails takes back what it did and no more; where the transaction itself fails,
    /// nothing of any is written, and each is to be done alone.
    fn together(&self, connection: &Connection, writes: &mut [Box<dyn Write>]) -> Result<bool, Failure> {
        let Some(first) = writes.first() else { return Ok(true) };
        let transaction = self.begin(connection, first.queued())?;
        for write in writes {
            run(connection, "SAVEPOINT one")?;
            let keep = write.work(connection);
            if transaction.is_over() {
                return Ok(false);
            }
            if !keep {
                run(connection, "ROLLBACK TO one")?;
            }
            run(connection, "RELEASE one")?;
        }
        transaction.commit()?;
        Ok(true)
    }
}

/// The write that a job makes, with its caller.
pub(crate) struct Waiting<T, F> {
    pub(crate) queued: Instant,
    /// None once it has panicked.
    pub(crate) job: Option<F>,
    pub(crate) done: Option<Result<T, Failure>>,
    pub(crate) reply: oneshot::Sender<Result<T, Error>>,
}

impl<T: Send, F: FnMut(&Connection) -> Result<T, Failure> + Send> Write for Waiting<T, F> {
    fn queued(&self) -> Instant {
        self.queued
    }

    fn work(&mut self, connection: &Connection) -> bool {
        let Some(job) = &mut self.job else { return false };
        // A panic ends the job (what it did is rolled back), not the database.
        self.done = catch_unwind(AssertUnwindSafe(|| job(connection))).ok();
        if self.done.is_none() {
            self.job = None;
        }
        self.done.as_ref().is_some_and(Result::is_ok)
    }

    fn answer(self: Box<Self>, how: &Writing, committed: Result<(), Failure>) {
        let done = match committed {
            Ok(()) => self.done,
            Err(failure) => Some(Err(failure)),
        };
        if let Some(done) = done {
            // Nobody may listen any more: the write is done or not, as if the process had died.
            let _ = self.reply.send(done.map_err(|failure| failure.explain(&how.path)));
        }
    }
}
