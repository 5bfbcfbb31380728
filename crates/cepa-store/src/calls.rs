//! The calls of a turn.

use cepa_agent::{
    ids, rules,
    store::{CallChange, CallKey, CallRow},
};
use cepa_core::{Args, RawJson};
use rusqlite::{Connection, OptionalExtension, params};

use crate::{
    audit,
    failure::Failure,
    rows::{self, call_columns},
};

pub(crate) fn of_turn(connection: &Connection, turn: i64) -> Result<Vec<CallRow>, Failure> {
    let mut statement = connection.prepare_cached(concat!(
        "SELECT ",
        call_columns!(),
        " FROM calls WHERE turn = ?1 ORDER BY batch, idx"
    ))?;
    Ok(statement.query_map([turn], rows::call)?.collect::<rusqlite::Result<_>>()?)
}

pub(crate) fn change(connection: &Connection, turn: i64, change: &CallChange) -> Result<(), Failure> {
    let CallKey { batch, idx } = change.key();
    let mut statement = connection.prepare_cached(concat!(
        "SELECT ",
        call_columns!(),
        " FROM calls WHERE turn = ?1 AND batch = ?2 AND idx = ?3"
    ))?;
    let before = statement.query_row(params![turn, batch, idx], rows::call).optional()?;
    let row = rules::change_call(before.as_ref(), change)?;
    write(connection, turn, &row, if before.is_some() { UPDATE } else { INSERT })?;
    audit::call(connection, turn, before.as_ref(), &row, change)
}

const INSERT: &str =
    "INSERT INTO calls(turn, batch, idx, call_id, tool, schema_hash, args, args_why, args_hash, verdict,
        reason, state, attempt, executed_args, status, result, writes, failure, started, finished, full)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)";

const UPDATE: &str = "UPDATE calls SET call_id = ?4, tool = ?5, schema_hash = ?6, args = ?7, args_why = ?8,
        args_hash = ?9, verdict = ?10, reason = ?11, state = ?12, attempt = ?13, executed_args = ?14, status = ?15,
        result = ?16, writes = ?17, failure = ?18, started = ?19, finished = ?20, full = ?21
     WHERE turn = ?1 AND batch = ?2 AND idx = ?3";

fn write(connection: &Connection, turn: i64, row: &CallRow, sql: &str) -> Result<(), Failure> {
    let why = match &row.args {
        Args::Object(_) => None,
        Args::Invalid { why, .. } => Some(why),
    };
    let result = row.result.as_ref();
    connection.prepare_cached(sql)?.execute(params![
        turn,
        row.batch,
        row.idx,
        row.call_id,
        row.tool,
        row.schema_hash,
        row.args.as_str(),
        why,
        row.args_hash(),
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
        result.and_then(|result| result.full.as_ref()).map(RawJson::as_str),
    ])?;
    Ok(())
}

pub(crate) fn full_result(connection: &Connection, message: &str) -> Result<Option<RawJson>, Failure> {
    let Some((turn, CallKey { batch, idx })) = of_result(message) else { return Ok(None) };
    let mut statement = connection.prepare_cached(
        "SELECT full FROM calls l JOIN turns t ON t.key = l.turn
         WHERE t.id = ?1 AND l.batch = ?2 AND l.idx = ?3 AND full IS NOT NULL",
    )?;
    Ok(statement.query_row(params![turn, batch, idx], |row| rows::json(row, 0)).optional()?)
}

/// The turn and the call that [`ids::result_id`] made the id of.
fn of_result(message: &str) -> Option<(&str, CallKey)> {
    let turn = ids::turn_of(message)?;
    let (batch, idx) = message.get(turn.len()..)?.strip_prefix("/t")?.split_once('.')?;
    let key = CallKey { batch: batch.parse().ok()?, idx: idx.parse().ok()? };
    (ids::result_id(turn, key) == message).then_some((turn, key))
}
