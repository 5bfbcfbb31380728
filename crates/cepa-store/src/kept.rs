//! What is kept of a turn's `input` and `data` without being kept twice. What is read is what was written, to the byte.
//!
//! The input of most turns joins the conversation as their first messages. The data of a turn says, but for a few numbers,
//! what the turn before it in the conversation says: settings, the system prompt, values. Such a turn keeps the difference
//! from one that is over, its base, which keeps all.

use rusqlite::{Connection, OptionalExtension, params};

use crate::failure::Failure;

/// Reads the input of a turn `t`.
macro_rules! input_sql {
    () => {
        "CASE typeof(t.input) WHEN 'integer' THEN (
            SELECT '[' || group_concat(m.body, ',' ORDER BY m.place) || ']' FROM messages m
            WHERE m.scope = t.key AND m.id >= 'u' AND m.id < 'v' AND m.id = 'u' || CAST(substr(m.id, 2) AS INTEGER)
                AND CAST(substr(m.id, 2) AS INTEGER) < t.input
         ) ELSE t.input END"
    };
}

/// Reads the data of a turn `t` with the base `b`.
macro_rules! data_sql {
    () => {
        "CASE WHEN t.base IS NULL THEN t.data ELSE substr(b.data, 1, t.first) || t.data || substr(b.data, -t.last) END"
    };
}

pub(crate) use {data_sql, input_sql};

/// A turn's data as it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Data<'a> {
    pub(crate) text: &'a str,
    pub(crate) base: Option<Base>,
}

/// The turn whose data is the rest, and how many characters of it, from its beginning and from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Base {
    pub(crate) key: i64,
    pub(crate) first: i64,
    pub(crate) last: i64,
}

impl<'a> Data<'a> {
    const fn whole(text: &'a str) -> Self {
        Self { text, base: None }
    }

    /// The columns `base`, `first` and `last`.
    pub(crate) fn columns(self) -> (Option<i64>, Option<i64>, Option<i64>) {
        (self.base.map(|base| base.key), self.base.map(|base| base.first), self.base.map(|base| base.last))
    }

    /// The data of a turn: the difference from an earlier turn of the conversation, if that is short. A `turn` without a
    /// key is new; an ephemeral one is alone in its conversation.
    pub(crate) fn of(
        connection: &Connection,
        conversation: i64,
        turn: Option<i64>,
        ephemeral: bool,
        text: &'a str,
    ) -> Result<Self, Failure> {
        if ephemeral {
            return Ok(Self::whole(text));
        }
        let mut statement = connection.prepare_cached(
            "SELECT b.key, b.data FROM turns t JOIN turns b ON b.key = coalesce(t.base, t.key)
             WHERE t.conversation = ?1 AND t.key < ?2 AND b.base IS NULL AND NOT b.ephemeral
                AND b.state NOT IN ('running', 'paused')
             ORDER BY t.key DESC LIMIT 1",
        )?;
        let difference = |row: &rusqlite::Row<'_>| Ok(difference(row.get(0)?, row.get_ref(1)?.as_str()?, text));
        let found = statement.query_row(params![conversation, turn.unwrap_or(i64::MAX)], difference).optional()?;
        Ok(found.flatten().unwrap_or(Self::whole(text)))
    }
}

/// `None` if little of a text is in the base.
fn difference<'a>(key: i64, base: &str, text: &'a str) -> Option<Data<'a>> {
    let same = |(a, b): &(u8, u8)| a == b;
    // To `substr` nought is no number of last characters: one is left for them.
    let most = text.len().saturating_sub(1);
    let mut from = base.bytes().zip(text.bytes()).take(most).take_while(same).count();
    while !text.is_char_boundary(from) {
        from -= 1;
    }
    let (first, rest) = text.split_at_checked(from)?;
    let base = base.get(from..)?;
    let mut until = rest.len() - base.bytes().rev().zip(rest.bytes().rev()).take_while(same).count();
    while !rest.is_char_boundary(until) {
        until += 1;
    }
    let (middle, last) = rest.split_at_checked(until)?;
    if last.is_empty() || middle.len() > text.len() / 2 {
        return None;
    }
    let characters = |part: &str| i64::try_from(part.chars().count()).ok();
    Some(Data { text: middle, base: Some(Base { key, first: characters(first)?, last: characters(last)? }) })
}

/// Gives those that keep a difference from a turn all of their data: the turn's own is about to change.
pub(crate) fn stand_alone(connection: &Connection, conversation: i64, base: i64) -> Result<(), Failure> {
    let mut statement = connection.prepare_cached(concat!(
        "UPDATE turns AS t SET data = ",
        data_sql!(),
        ", base = NULL, first = NULL, last = NULL FROM turns b
         WHERE t.conversation = ?1 AND t.base = ?2 AND b.key = ?2"
    ))?;
    statement.execute([conversation, base])?;
    Ok(())
}

#[cfg(test)]
#[path = "kept_tests.rs"]
mod kept_tests;
