//! The audit trail in the database. Rows are only ever added; clearing a conversation leaves them.

use cepa_agent::{
    AuditEntry, AuditKind, Pause, PauseState,
    audit::may_have_been_shown,
    store::{CallChange, CallRow, CallState},
};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::{
    failure::Failure,
    pauses,
    rows::{self, PAUSE, number, sql_number, word},
};

pub(crate) fn add(connection: &Connection, entry: &AuditEntry) -> Result<(), Failure> {
    let mut statement =
        connection.prepare_cached("INSERT INTO audit(at, actor, what, pause, data) VALUES (?1, ?2, ?3, ?4, ?5)")?;
    let AuditEntry { seq: _, at, actor, what, pause, data } = entry;
    statement.execute(params![at, actor, what.as_str(), pause, rows::text(data)?])?;
    Ok(())
}

type Note = fn(&Pause, &CallRow, i64) -> AuditEntry;

/// Notes that a call runs or has run, if a person had been shown it.
pub(crate) fn call(
    connection: &Connection,
    turn: i64,
    before: Option<&CallRow>,
    row: &CallRow,
    change: &CallChange,
) -> Result<(), Failure> {
    let ran = before.is_some_and(|before| before.state == CallState::Started);
    let (note, at): (Note, i64) = match change {
        CallChange::Started { at, .. } => (AuditEntry::ran, *at),
        CallChange::Finished { at, .. } if ran => (AuditEntry::finished, *at),
        CallChange::Unknown { at, .. } if ran => (AuditEntry::unknown, *at),
        CallChange::Planned(_) | CallChange::Finished { .. } | CallChange::Unknown { .. } => return Ok(()),
    };
    if !may_have_been_shown(row) {
        return Ok(());
    }
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {PAUSE} FROM {} WHERE p.turn = ?1 AND p.batch = ?2 AND p.idx = ?3 ORDER BY p.rowid DESC LIMIT 1",
        pauses::TABLES
    ))?;
    match statement.query_row(params![turn, row.batch, row.idx], rows::pause).optional()? {
        Some(pause) => add(connection, &note(&pause, row, at)),
        None => Ok(()),
    }
}

/// A conversation is cleared, with all that waits in it.
pub(crate) fn cleared(connection: &Connection, id: &str, now: i64) -> Result<(), Failure> {
    for pause in pauses::pending(connection, Some(id))? {
        add(connection, &AuditEntry::closed(&pause, PauseState::Cancelled, now))?;
    }
    add(connection, &AuditEntry::cleared(id, now))
}

fn entry(row: &Row<'_>) -> rusqlite::Result<AuditEntry> {
    let data = rows::json(row, 5)?;
    Ok(AuditEntry {
        seq: number(row, 0)?,
        at: row.get(1)?,
        actor: row.get(2)?,
        what: word(row, 3, AuditKind::from_word)?,
        pause: row.get(4)?,
        data: data.read().map_err(|error| rows::unreadable(5, error.to_string()))?,
    })
}

pub(crate) fn page(
    connection: &Connection,
    conversation: Option<&str>,
    after: u64,
    limit: usize,
) -> Result<Vec<AuditEntry>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT seq, at, actor, what, pause, data FROM audit
         WHERE seq > ?2 AND (?1 IS NULL OR json_extract(data, '$.conversation') = ?1) ORDER BY seq LIMIT ?3",
    )?;
    let limit = sql_number(u64::try_from(limit).unwrap_or(u64::MAX));
    let found = statement.query_map(params![conversation, sql_number(after), limit], entry)?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}
