//! What a careful loop written by hand keeps in SQLite: the turn before the model is called, the messages with its end.

use std::{
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use meter::{Result, Work};
use rusqlite::{Connection, params};

pub(crate) struct Db {
    connection: Mutex<Connection>,
    /// How often a turn commits.
    commits: usize,
}

impl Db {
    pub(crate) fn open(path: &Path, work: &Work) -> Result<Self> {
        let connection = Connection::open(path)?;
        let synchronous = if work.full { "full" } else { "normal" };
        connection.execute_batch(&format!(
            "pragma journal_mode = wal;
             pragma synchronous = {synchronous};
             create table messages(conversation text not null, seq integer not null, body text not null,
                 primary key(conversation, seq)) without rowid;
             create table turns(conversation text primary key, input text not null, step integer not null);"
        ))?;
        Ok(Self { connection: Mutex::new(connection), commits: work.commits.max(1) })
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All messages of a conversation, each given to `each`.
    pub(crate) fn load(&self, conversation: &str, mut each: impl FnMut(&str) -> Result<()>) -> Result<()> {
        let connection = self.connection();
        let mut select = connection.prepare_cached("select body from messages where conversation = ?1 order by seq")?;
        let mut rows = select.query([conversation])?;
        while let Some(row) = rows.next()? {
            each(row.get_ref(0)?.as_str()?)?;
        }
        Ok(())
    }

    /// Whether a conversation has come exactly so far: a loop that holds it must ask.
    pub(crate) fn is_at(&self, conversation: &str, length: usize) -> Result<bool> {
        let connection = self.connection();
        let mut select = connection.prepare_cached("select max(seq) from messages where conversation = ?1")?;
        let last: Option<i64> = select.query_one([conversation], |row| row.get(0))?;
        Ok(last.map_or(0, |last| last + 1) == i64::try_from(length)?)
    }

    /// What is written before the model is called: the first commit of the turn, and those that only note a step.
    pub(crate) fn begin(&self, conversation: &str, input: &str) -> Result<()> {
        let connection = self.connection();
        for step in 1..self.commits {
            let mut write = connection.prepare_cached(
                "insert into turns values(?1, ?2, ?3) on conflict do update set step = excluded.step",
            )?;
            write.execute(params![conversation, input, i64::try_from(step)?])?;
        }
        Ok(())
    }

    /// The last commit of the turn: its messages, and that it is over.
    pub(crate) fn end<'a>(
        &self,
        conversation: &str,
        from: usize,
        bodies: impl IntoIterator<Item = &'a str>,
    ) -> Result<()> {
        let mut connection = self.connection();
        let transaction = connection.transaction()?;
        {
            let mut insert = transaction.prepare_cached("insert into messages values(?1, ?2, ?3)")?;
            for (index, body) in bodies.into_iter().enumerate() {
                insert.execute(params![conversation, i64::try_from(from + index)?, body])?;
            }
            transaction.prepare_cached("delete from turns where conversation = ?1")?.execute([conversation])?;
        }
        transaction.commit()?;
        Ok(())
    }
}
