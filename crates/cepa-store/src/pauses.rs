//! Pauses and the decisions on them.

use cepa_agent::{
    AuditEntry, Decision, Pause, PauseState,
    pause::{Settled, no_such_pause, settle},
    rules,
};
use cepa_core::Error;
use rusqlite::{Connection, OptionalExtension, params};

use crate::{
    audit,
    failure::Failure,
    rows::{self, PAUSE},
};

pub(crate) const TABLES: &str =
    "pauses p JOIN turns t ON t.key = p.turn JOIN conversations c ON c.key = t.conversation";

pub(crate) fn by_id(connection: &Connection, id: &str) -> Result<Option<Pause>, Failure> {
    let mut statement = connection.prepare_cached(&format!("SELECT {PAUSE} FROM {TABLES} WHERE p.id = ?1"))?;
    Ok(statement.query_row([id], rows::pause).optional()?)
}

pub(crate) fn pending(connection: &Connection, conversation: Option<&str>) -> Result<Vec<Pause>, Failure> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {PAUSE} FROM {TABLES} WHERE p.state = 'pending' AND (?1 IS NULL OR c.id = ?1)
         ORDER BY p.created, p.turn, p.batch, p.idx, p.rowid"
    ))?;
    let found = statement.query_map([conversation], rows::pause)?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

/// The pauses of a turn, by batch and place.
pub(crate) fn of_turn(connection: &Connection, turn: i64) -> Result<Vec<Pause>, Failure> {
    let mut statement = connection
        .prepare_cached(&format!("SELECT {PAUSE} FROM {TABLES} WHERE p.turn = ?1 ORDER BY p.batch, p.idx, p.rowid"))?;
    let found = statement.query_map([turn], rows::pause)?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

/// Writes a new pause of a turn, unless it is there.
pub(crate) fn add(connection: &Connection, turn: i64, pause: &Pause) -> Result<(), Failure> {
    if !rules::add_pause(by_id(connection, &pause.id)?.as_ref(), pause)? {
        return Ok(());
    }
    let mut statement = connection.prepare_cached(
        "INSERT INTO pauses(id, turn, batch, idx, kind, call_id, tool, args, args_hash, schema_hash, reason, created,
            expires, state, decision, actor, decided)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
    )?;
    statement.execute(params![
        pause.id,
        turn,
        pause.key.batch,
        pause.key.idx,
        pause.kind.as_str(),
        pause.call_id,
        pause.tool,
        pause.args.as_str(),
        pause.args_hash,
        pause.schema_hash,
        pause.reason,
        pause.created,
        pause.expires,
        pause.state.as_str(),
        pause.decision.as_ref().map(rows::text).transpose()?,
        pause.actor,
        pause.decided,
    ])?;
    audit::add(connection, &AuditEntry::shown(pause))
}

/// Closes a pause of a turn without a decision.
pub(crate) fn close(connection: &Connection, turn: i64, id: &str, state: PauseState, at: i64) -> Result<(), Failure> {
    let stored = of_turn(connection, turn)?.into_iter().find(|pause| pause.id == id);
    match (rules::close_pause(id, stored.as_ref().map(|pause| pause.state))?, stored) {
        (rules::Closing::Now, Some(pause)) => mark(connection, &pause, state, at),
        (rules::Closing::Now | rules::Closing::Before, _) => Ok(()),
    }
}

fn mark(connection: &Connection, pause: &Pause, state: PauseState, at: i64) -> Result<(), Failure> {
    let mut statement = connection.prepare_cached("UPDATE pauses SET state = ?2 WHERE id = ?1")?;
    statement.execute(params![pause.id, state.as_str()])?;
    audit::add(connection, &AuditEntry::closed(pause, state, at))
}

/// Decides a pause. The transaction began with the right to write, so nobody decides between the look and the update.
/// The inner error is for the caller and lets the transaction commit.
pub(crate) fn decide(
    connection: &Connection,
    id: &str,
    decision: &Decision,
    actor: &str,
    now: i64,
) -> Result<Result<Pause, Error>, Failure> {
    let mut pause = by_id(connection, id)?.ok_or_else(|| no_such_pause(id))?;
    match settle(&pause, decision, now)? {
        Settled::Before => Ok(Ok(pause)),
        Settled::Expired(error) => {
            mark(connection, &pause, PauseState::Expired, now)?;
            Ok(Err(error))
        }
        Settled::Now => {
            let state = decision.state();
            let mut statement = connection.prepare_cached(
                "UPDATE pauses SET state = ?2, decision = ?3, actor = ?4, decided = ?5 WHERE id = ?1",
            )?;
            statement.execute(params![id, state.as_str(), rows::text(decision)?, actor, now])?;
            audit::add(connection, &AuditEntry::decided(&pause, decision, actor, now))?;
            pause.state = state;
            pause.decision = Some(decision.clone());
            pause.actor = Some(actor.to_owned());
            pause.decided = Some(now);
            Ok(Ok(pause))
        }
    }
}
