//! The ids of messages as they are kept. Most derive from their turn's id: such a message keeps the turn's key and what
//! follows the slash, every other one its conversation's key, negative, and the whole id.
//!
//! One id is always kept in one way, so that the index on both columns makes it unique in its conversation.

use cepa_agent::ids;
use rusqlite::{Connection, OptionalExtension, params};

use crate::failure::Failure;

/// An id as it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name<'a> {
    pub(crate) scope: i64,
    pub(crate) id: &'a str,
}

/// Names the messages of a conversation.
pub(crate) struct Names<'a> {
    conversation: i64,
    /// The turn of the last id, with its key if the conversation has it.
    last: Option<(&'a str, Option<i64>)>,
}

impl<'a> Names<'a> {
    /// `turn`, if given, is a turn of the conversation that is not ephemeral.
    pub(crate) fn new(conversation: i64, turn: Option<(&'a str, i64)>) -> Self {
        Self { conversation, last: turn.map(|(id, key)| (id, Some(key))) }
    }

    /// The key of the turn that it was made with, as long as nothing else was named.
    pub(crate) fn turn(&self) -> Option<i64> {
        self.last.and_then(|(_, key)| key)
    }

    pub(crate) fn of(&mut self, connection: &Connection, id: &'a str) -> Result<Name<'a>, Failure> {
        let whole = Name { scope: -self.conversation, id };
        let (Some(turn), Some((_, rest))) = (ids::turn_of(id), id.split_once('/')) else { return Ok(whole) };
        let key = match self.last {
            Some((last, key)) if last == turn => key,
            _ => turn_key(connection, self.conversation, turn)?,
        };
        self.last = Some((turn, key));
        Ok(key.map_or(whole, |scope| Name { scope, id: rest }))
    }
}

/// An ephemeral turn goes when it is over; what names it must not depend on its row.
fn turn_key(connection: &Connection, conversation: i64, turn: &str) -> Result<Option<i64>, Failure> {
    let mut statement =
        connection.prepare_cached("SELECT key FROM turns WHERE id = ?1 AND conversation = ?2 AND NOT ephemeral")?;
    Ok(statement.query_row(params![turn, conversation], |row| row.get(0)).optional()?)
}

pub(crate) fn has(connection: &Connection, Name { scope, id }: Name<'_>) -> Result<bool, Failure> {
    let mut statement = connection.prepare_cached("SELECT 1 FROM messages WHERE scope = ?1 AND id = ?2")?;
    Ok(statement.exists(params![scope, id])?)
}

/// Renames the messages that bear a turn's name from before the conversation had the turn.
pub(crate) fn turn_has_come(connection: &Connection, conversation: i64, turn: &str, key: i64) -> Result<(), Failure> {
    if turn.contains('/') {
        return Ok(());
    }
    // Behind the slash comes the nought.
    let (from, until) = (format!("{turn}/"), format!("{turn}0"));
    let mut select =
        connection.prepare_cached("SELECT place, id FROM messages WHERE scope = ?1 AND id >= ?2 AND id < ?3")?;
    let found = select.query_map(params![-conversation, from, until], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let found: Vec<(i64, String)> = found.collect::<rusqlite::Result<_>>()?;
    for (place, id) in found {
        let rest = id.strip_prefix(&from).unwrap_or(&id);
        let mut update = connection.prepare_cached("UPDATE messages SET scope = ?2, id = ?3 WHERE place = ?1")?;
        update.execute(params![place, key, rest])?;
    }
    Ok(())
}

/// Reads ids back. Messages of a turn stand side by side: each turn is asked for once.
#[derive(Default)]
pub(crate) struct Ids {
    last: Option<(i64, Option<String>)>,
}

impl Ids {
    /// `None` if the turn that the id names is missing.
    pub(crate) fn read(&mut self, connection: &Connection, name: Name<'_>) -> rusqlite::Result<Option<String>> {
        if name.scope <= 0 {
            return Ok(Some(name.id.to_owned()));
        }
        let turn = match self.last.take() {
            Some((scope, turn)) if scope == name.scope => turn,
            _ => connection
                .prepare_cached("SELECT id FROM turns WHERE key = ?1")?
                .query_row([name.scope], |row| row.get(0))
                .optional()?,
        };
        let id = turn.as_ref().map(|turn| [turn, "/", name.id].concat());
        self.last = Some((name.scope, turn));
        Ok(id)
    }
}
