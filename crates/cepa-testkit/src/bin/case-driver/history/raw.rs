//! What a case does to a database behind the library's back, by SQL.

use std::path::Path;

use cepa_core::RawJson;
use rusqlite::{Connection, params};

use crate::line::Fail;

impl From<rusqlite::Error> for Fail {
    fn from(error: rusqlite::Error) -> Self {
        Self::Crash(format!("by SQL: {error}"))
    }
}

const ROW: &str = "conversation = (SELECT key FROM conversations WHERE id = ?1) AND seq = ?2";

/// Makes the text of a row one that does not parse.
pub(crate) fn corrupt_row(file: &Path, conv: &str, position: i64) -> Result<(), Fail> {
    let sql = format!("UPDATE messages SET body = '{{\"role\": \"us' WHERE {ROW}");
    one(Connection::open(file)?.execute(&sql, params![conv, position])?)
}

/// Adds a member to the stored JSON of a row.
pub(crate) fn add_field(file: &Path, conv: &str, position: i64, field: &str, value: &RawJson) -> Result<(), Fail> {
    let database = Connection::open(file)?;
    let select = format!("SELECT body FROM messages WHERE {ROW}");
    let body: String = database.query_row(&select, params![conv, position], |row| row.get(0))?;
    let start = body.trim_end().strip_suffix('}').ok_or_else(|| "the row holds no object".to_owned())?;
    let body = format!("{start},{}:{value}}}", serde_json::to_string(field)?);
    one(database.execute(&format!("UPDATE messages SET body = ?3 WHERE {ROW}"), params![conv, position, body])?)
}

/// The number of rows of a conversation.
pub(crate) fn count(file: &Path, conv: &str) -> Result<i64, Fail> {
    let sql = "SELECT count(*) FROM messages WHERE conversation = (SELECT key FROM conversations WHERE id = ?1)";
    Ok(Connection::open(file)?.query_row(sql, params![conv], |row| row.get(0))?)
}

fn one(changed: usize) -> Result<(), Fail> {
    if changed == 1 { Ok(()) } else { Err(Fail::Crash(format!("{changed} rows were changed"))) }
}

/// A trigger that makes one row of the next append fail inside the database.
pub(crate) struct Trap<'a>(&'a Path);

impl<'a> Trap<'a> {
    /// Sets it for the `row`-th row that is added to a conversation from now on.
    pub(crate) fn set(file: &'a Path, conv: &str, row: i64) -> Result<Self, Fail> {
        let seq = count(file, conv)? + row;
        let sql = format!(
            "CREATE TRIGGER trap BEFORE INSERT ON messages WHEN NEW.seq = {seq} BEGIN SELECT RAISE(ABORT, 'trap'); END"
        );
        Connection::open(file)?.execute_batch(&sql)?;
        Ok(Self(file))
    }

    /// Takes it away.
    pub(crate) fn remove(self) -> Result<(), Fail> {
        Ok(Connection::open(self.0)?.execute_batch("DROP TRIGGER trap")?)
    }
}
