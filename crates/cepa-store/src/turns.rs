//! Turns, their calls, and who drives them.

use std::sync::Arc;

use cepa_agent::{
    Commit, Lease, LiveTurn, StoredTurn, TurnRow, ids,
    rules::{self, Holding},
    store::{CallChange, CallKey, CallRow, Opened, carried_json},
};
use cepa_core::{Args, Entry, RawJson};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::{
    audit, conversations,
    conversations::Head,
    failure::Failure,
    pauses,
    rows::{self, CALL, TURN, number, sql_number},
};

fn holding(connection: &Connection, conversation: i64) -> Result<Holding, Failure> {
    let mut statement =
        connection.prepare_cached("SELECT lease_by, lease_token, lease_until FROM conversations WHERE key = ?1")?;
    let row = |row: &Row<'_>| Ok(Holding { by: row.get(0)?, token: number(row, 1)?, until: row.get(2)? });
    Ok(statement.query_row([conversation], row)?)
}

pub(crate) fn lease(
    connection: &Connection,
    conversation: &str,
    holder: &str,
    now: i64,
    until: i64,
) -> Result<Lease, Failure> {
    let Head { key, .. } = conversations::ensure(connection, conversation, now)?;
    let taken = holding(connection, key)?.take(conversation, holder, now, until)?;
    let mut statement = connection
        .prepare_cached("UPDATE conversations SET lease_by = ?2, lease_token = ?3, lease_until = ?4 WHERE key = ?1")?;
    statement.execute(params![key, taken.by, sql_number(taken.token), taken.until])?;
    Ok(Lease { token: taken.token, until })
}

/// Takes a conversation and, where no turn in it is live, begins this one.
pub(crate) fn open(
    connection: &Connection,
    turn: &TurnRow,
    holder: &str,
    now: i64,
    until: i64,
) -> Result<Opened, Failure> {
    let lease = lease(connection, &turn.conversation, holder, now, until)?;
    let begun = live(connection, Some(&turn.conversation))?.is_empty();
    if begun {
        begin(connection, turn, lease.token)?;
    }
    Ok(Opened { lease, begun })
}

pub(crate) fn release(connection: &Connection, conversation: &str, token: u64) -> Result<(), Failure> {
    let mut statement = connection.prepare_cached(
        "UPDATE conversations SET lease_by = NULL, lease_until = 0 WHERE id = ?1 AND lease_token = ?2",
    )?;
    statement.execute(params![conversation, sql_number(token)])?;
    Ok(())
}

fn row(connection: &Connection, id: &str) -> Result<Option<(i64, TurnRow)>, Failure> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {TURN} FROM turns t JOIN conversations c ON c.key = t.conversation WHERE t.id = ?1"
    ))?;
    Ok(statement.query_row([id], rows::turn).optional()?)
}

pub(crate) fn begin(connection: &Connection, turn: &TurnRow, token: u64) -> Result<(), Failure> {
    let Head { key, .. } = conversations::ensure(connection, &turn.conversation, turn.created)?;
    holding(connection, key)?.check(&turn.conversation, token)?;
    if !rules::add_turn(row(connection, &turn.id)?.as_ref().map(|(_, stored)| stored), turn)? {
        return Ok(());
    }
    let mut statement = connection.prepare_cached(
        "INSERT INTO turns(id, conversation, state, ephemeral, input, carried, data, token, created, updated)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?;
    statement.execute(params![
        turn.id,
        key,
        turn.state.as_str(),
        turn.ephemeral,
        turn.input.as_str(),
        turn.carried.as_ref().map(RawJson::as_str),
        turn.data.as_str(),
        sql_number(token),
        turn.created,
        turn.updated,
    ])?;
    Ok(())
}

pub(crate) fn commit(connection: &Connection, turn: &str, token: u64, commit: &Commit) -> Result<(), Failure> {
    if let Some(row) = &commit.begins {
        begin(connection, row, token)?;
    }
    let mut statement = connection.prepare_cached(
        "SELECT t.key, c.key, c.id, c.epoch, c.head FROM turns t JOIN conversations c ON c.key = t.conversation
         WHERE t.id = ?1",
    )?;
    let found = statement
        .query_row([turn], |row| {
            let version = cepa_agent::Version { epoch: number(row, 3)?, seq: number(row, 4)? };
            Ok((row.get::<_, i64>(0)?, Head { key: row.get(1)?, version }, row.get::<_, String>(2)?))
        })
        .optional()?;
    let (key, head, conversation) = found.ok_or_else(|| rules::no_such_turn(turn))?;
    holding(connection, head.key)?.check(&conversation, token)?;

    for change in &commit.calls {
        change_call(connection, turn, key, change)?;
    }
    for pause in &commit.pauses {
        pauses::add(connection, key, pause)?;
    }
    for (id, state) in &commit.closed_pauses {
        pauses::close(connection, key, id, *state, commit.at)?;
    }
    if !commit.messages.is_empty() {
        let entries: Vec<Arc<Entry>> = commit.messages.iter().map(|entry| entry.0.clone()).collect();
        match commit.expected {
            Some(expected) => conversations::append(connection, &conversation, expected, &entries)?,
            None => conversations::extend(connection, head, &entries, commit.at)?,
        };
    }
    let change = commit.turn.as_ref();
    let mut statement = connection.prepare_cached(
        "UPDATE turns SET state = coalesce(?2, state), data = coalesce(?3, data), carried = coalesce(?4, carried),
            token = ?5, updated = max(updated, ?6)
         WHERE key = ?1",
    )?;
    statement.execute(params![
        key,
        change.map(|change| change.state.as_str()),
        change.map(|change| change.data.json().as_str().to_owned()),
        change
            .and_then(|change| change.carried.as_ref())
            .map(|transcript| carried_json(transcript).as_str().to_owned()),
        sql_number(token),
        commit.at,
    ])?;
    if change.is_some_and(|change| !change.state.is_live())
        && row(connection, turn)?.is_some_and(|(_, row)| rules::leaves_nothing(&row))
    {
        forget(connection, turn)?;
    }
    if commit.releases {
        release(connection, &conversation, token)?;
    }
    Ok(())
}

const CALL_TABLES: &str =
    "calls l LEFT JOIN results r ON r.turn = l.turn AND r.batch = l.batch AND r.idx = l.idx WHERE l.turn = ?1";

fn change_call(connection: &Connection, turn: &str, key: i64, change: &CallChange) -> Result<(), Failure> {
    let CallKey { batch, idx } = change.key();
    let mut statement =
        connection.prepare_cached(&format!("SELECT {CALL} FROM {CALL_TABLES} AND l.batch = ?2 AND l.idx = ?3"))?;
    let before = statement.query_row(params![key, batch, idx], rows::call).optional()?;
    let row = rules::change_call(before.as_ref(), change)?;
    write_call(connection, key, &row)?;

    let full = |row: &CallRow| row.result.as_ref().and_then(|result| result.full.clone());
    let message = ids::result_id(turn, change.key());
    match (before.as_ref().and_then(full), full(&row)) {
        (before, Some(full)) if before.as_ref() != Some(&full) => {
            let mut statement = connection.prepare_cached(
                "INSERT OR REPLACE INTO results(message, turn, batch, idx, body) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?;
            statement.execute(params![message, key, batch, idx, full.as_str()])?;
        }
        (Some(_), None) => {
            connection.prepare_cached("DELETE FROM results WHERE message = ?1")?.execute([message])?;
        }
        (Some(_) | None, Some(_)) | (None, None) => {}
    }
    audit::call(connection, key, before.as_ref(), &row, change)
}

fn write_call(connection: &Connection, turn: i64, row: &CallRow) -> Result<(), Failure> {
    let mut statement = connection.prepare_cached(
        "INSERT OR REPLACE INTO calls(turn, batch, idx, call_id, tool, schema_hash, args, args_why, args_hash, verdict,
            reason, state, attempt, executed_args, status, result, writes, failure, started, finished)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)",
    )?;
    let why = match &row.args {
        Args::Object(_) => None,
        Args::Invalid { why, .. } => Some(why),
    };
    let result = row.result.as_ref();
    statement.execute(params![
        turn,
        row.batch,
        row.idx,
        row.call_id,
        row.tool,
        row.schema_hash,
        row.args.as_str(),
        why,
        row.args_hash,
        row.verdict.as_str(),
        row.reason,
        row.state.as_str(),
        row.attempt,
        row.executed_args.as_ref().map(RawJson::as_str),
        result.map(|result| result.status.as_str()),
        result.map(|result| result.content.as_str()),
        result.and_then(|result| result.writes.as_ref()).map(RawJson::as_str),
        result.and_then(|result| result.failure.as_ref()),
        row.started,
        row.finished,
    ])?;
    Ok(())
}

pub(crate) fn forget(connection: &Connection, id: &str) -> Result<(), Failure> {
    let Some((key, turn)) = row(connection, id)? else { return Ok(()) };
    if !turn.ephemeral {
        return Err(rules::not_ephemeral(id).into());
    }
    connection.prepare_cached("DELETE FROM turns WHERE key = ?1")?.execute([key])?;
    // Its conversation is its own and goes with it.
    let gone =
        "FROM conversations c WHERE c.id = ?1 AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.conversation = c.key)";
    let messages = format!("DELETE FROM messages WHERE conversation IN (SELECT c.key {gone})");
    connection.prepare_cached(&messages)?.execute([&turn.conversation])?;
    let conversation = format!("DELETE FROM conversations WHERE key IN (SELECT c.key {gone})");
    connection.prepare_cached(&conversation)?.execute([&turn.conversation])?;
    Ok(())
}

pub(crate) fn turn(connection: &Connection, id: &str) -> Result<Option<StoredTurn>, Failure> {
    let Some((key, row)) = row(connection, id)? else { return Ok(None) };
    let mut statement =
        connection.prepare_cached(&format!("SELECT {CALL} FROM {CALL_TABLES} ORDER BY l.batch, l.idx"))?;
    let calls = statement.query_map([key], rows::call)?.collect::<rusqlite::Result<_>>()?;
    Ok(Some(StoredTurn { row, calls, pauses: pauses::of_turn(connection, key)? }))
}

pub(crate) fn live(connection: &Connection, conversation: Option<&str>) -> Result<Vec<LiveTurn>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT t.id, c.id, t.state = 'paused'
            AND EXISTS (SELECT 1 FROM pauses p WHERE p.turn = t.key AND p.state = 'pending')
         FROM turns t JOIN conversations c ON c.key = t.conversation
         WHERE t.state IN ('running', 'paused') AND (?1 IS NULL OR c.id = ?1) ORDER BY t.key",
    )?;
    let live = |row: &Row<'_>| Ok(LiveTurn { id: row.get(0)?, conversation: row.get(1)?, paused: row.get(2)? });
    Ok(statement.query_map([conversation], live)?.collect::<rusqlite::Result<_>>()?)
}

pub(crate) fn full_result(connection: &Connection, message: &str) -> Result<Option<RawJson>, Failure> {
    let mut statement = connection.prepare_cached("SELECT body FROM results WHERE message = ?1")?;
    Ok(statement.query_row([message], |row| rows::json(row, 0)).optional()?)
}
