//! Rows as values and values as rows.

use cepa_agent::{
    Pause, PauseKind, PauseState, TurnRow, TurnState,
    store::{CallKey, CallResult, CallRow, CallState, VerdictKind},
};
use cepa_core::{Args, Error, ErrorKind, RawJson, ToolStatus};
use rusqlite::{
    Row,
    types::{FromSqlError, Type},
};
use serde::Serialize;

/// A column that cannot be negative.
pub(crate) fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, number))
}

/// A number as SQLite keeps it.
pub(crate) fn sql_number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn unreadable(column: usize, why: String) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(FromSqlError::Other(why.into())))
}

/// A column that holds JSON.
pub(crate) fn json(row: &Row<'_>, column: usize) -> rusqlite::Result<RawJson> {
    let text = row.get_ref(column)?.as_str()?;
    RawJson::parse(text).map_err(|error| unreadable(column, error.to_string()))
}

fn maybe_json(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<RawJson>> {
    let text: Option<String> = row.get(column)?;
    let parse = |text: String| RawJson::parse(&text).map_err(|error| unreadable(column, error.to_string()));
    text.map(parse).transpose()
}

pub(crate) fn word<T>(row: &Row<'_>, column: usize, parse: impl Fn(&str) -> Option<T>) -> rusqlite::Result<T> {
    let word = row.get_ref(column)?.as_str()?;
    parse(word).ok_or_else(|| unreadable(column, format!("unknown word `{word}`")))
}

/// Selects what [`turn`] reads; a condition on the turn `t` follows.
macro_rules! select_turn {
    () => {
        concat!(
            "SELECT t.key, t.id, c.id, t.state, t.ephemeral, ",
            $crate::kept::input_sql!(),
            ", t.carried, ",
            $crate::kept::data_sql!(),
            ", t.created, t.updated
             FROM turns t JOIN conversations c ON c.key = t.conversation LEFT JOIN turns b ON b.key = t.base "
        )
    };
}

/// A turn with its key.
pub(crate) fn turn(row: &Row<'_>) -> rusqlite::Result<(i64, TurnRow)> {
    let turn = TurnRow {
        id: row.get(1)?,
        conversation: row.get(2)?,
        state: word(row, 3, TurnState::from_word)?,
        ephemeral: row.get(4)?,
        input: json(row, 5)?,
        carried: maybe_json(row, 6)?,
        data: json(row, 7)?,
        created: row.get(8)?,
        updated: row.get(9)?,
    };
    Ok((row.get(0)?, turn))
}

/// The columns of [`call`].
macro_rules! call_columns {
    () => {
        "batch, idx, call_id, tool, schema_hash, args, args_why, verdict, reason, state, attempt, executed_args,
            status, result, writes, failure, started, finished, full"
    };
}

pub(crate) use {call_columns, select_turn};

pub(crate) fn call(row: &Row<'_>) -> rusqlite::Result<CallRow> {
    let why: Option<String> = row.get(6)?;
    let status: Option<String> = row.get(12)?;
    let result = match status {
        None => None,
        Some(_) => Some(CallResult {
            status: word(row, 12, ToolStatus::from_word)?,
            content: json(row, 13)?,
            full: maybe_json(row, 18)?,
            writes: maybe_json(row, 14)?,
            failure: row.get(15)?,
        }),
    };
    Ok(CallRow {
        batch: row.get(0)?,
        idx: row.get(1)?,
        call_id: row.get(2)?,
        tool: row.get(3)?,
        schema_hash: row.get(4)?,
        args: match why {
            None => Args::Object(json(row, 5)?),
            Some(why) => Args::Invalid { raw: row.get(5)?, why },
        },
        verdict: word(row, 7, VerdictKind::from_word)?,
        reason: row.get(8)?,
        state: word(row, 9, CallState::from_word)?,
        attempt: row.get(10)?,
        executed_args: maybe_json(row, 11)?,
        result,
        started: row.get(16)?,
        finished: row.get(17)?,
    })
}

/// The columns of [`pause`]: `p` is the pause, `t` its turn, `c` the conversation.
pub(crate) const PAUSE: &str = "p.id, p.kind, c.id, t.id, p.batch, p.idx, p.call_id, p.tool, p.args, p.args_hash,
    p.schema_hash, p.reason, p.created, p.expires, p.state, p.decision, p.actor, p.decided";

pub(crate) fn pause(row: &Row<'_>) -> rusqlite::Result<Pause> {
    let decision = maybe_json(row, 15)?.map(|raw| raw.read().map_err(|error| unreadable(15, error.to_string())));
    Ok(Pause {
        id: row.get(0)?,
        kind: word(row, 1, PauseKind::from_word)?,
        conversation: row.get(2)?,
        turn: row.get(3)?,
        key: CallKey { batch: row.get(4)?, idx: row.get(5)? },
        call_id: row.get(6)?,
        tool: row.get(7)?,
        args: json(row, 8)?,
        args_hash: row.get(9)?,
        schema_hash: row.get(10)?,
        reason: row.get(11)?,
        created: row.get(12)?,
        expires: row.get(13)?,
        state: word(row, 14, PauseState::from_word)?,
        decision: decision.transpose()?,
        actor: row.get(16)?,
        decided: row.get(17)?,
    })
}

/// The JSON of what is written.
pub(crate) fn text<T: Serialize>(value: &T) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::new(ErrorKind::InvalidInput, error.to_string()))
}
