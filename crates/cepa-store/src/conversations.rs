//! Conversations and their messages.

use std::sync::Arc;

use cepa_agent::{ConversationInfo, CorruptRow, Loaded, Version, ids, rules};
use cepa_core::{Entry, Error, ErrorKind, History, Message};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::{
    audit,
    failure::{Failure, corrupt},
    rows::{number, sql_number},
};

/// A conversation's row, as far as appends need it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) key: i64,
    pub(crate) version: Version,
}

pub(crate) fn head(connection: &Connection, id: &str) -> Result<Option<Head>, Failure> {
    let mut statement = connection.prepare_cached("SELECT key, epoch, head FROM conversations WHERE id = ?1")?;
    let row = |row: &Row<'_>| {
        let version = Version { epoch: number(row, 1)?, seq: number(row, 2)? };
        Ok(Head { key: row.get(0)?, version })
    };
    Ok(statement.query_row([id], row).optional()?)
}

/// The conversation's row, made if there is none.
pub(crate) fn ensure(connection: &Connection, id: &str, at: i64) -> Result<Head, Failure> {
    if let Some(head) = head(connection, id)? {
        return Ok(head);
    }
    let mut statement =
        connection.prepare_cached("INSERT INTO conversations(id, created, updated) VALUES (?1, ?2, ?2)")?;
    let key = statement.insert(params![id, at])?;
    Ok(Head { key, version: Version::default() })
}

pub(crate) fn load(connection: &Connection, id: &str, held: Option<Version>) -> Result<Loaded, Failure> {
    let Some(Head { key, version }) = head(connection, id)? else {
        return Ok(match held {
            Some(held) if held == Version::default() => Loaded::Unchanged,
            Some(_) | None => Loaded::Whole { version: Version::default(), history: History::new() },
        });
    };
    match held {
        Some(held) if held == version => Ok(Loaded::Unchanged),
        Some(held) if held.epoch == version.epoch && held.seq < version.seq => {
            let entries = whole(connection, id, key, held.seq, version.seq)?;
            Ok(Loaded::Added { version, entries })
        }
        Some(_) | None => {
            let history = whole(connection, id, key, 0, version.seq)?.into_iter().collect();
            Ok(Loaded::Whole { version, history })
        }
    }
}

pub(crate) fn page(connection: &Connection, id: &str, after: u64, limit: usize) -> Result<Vec<Arc<Entry>>, Failure> {
    let Some(Head { key, version }) = head(connection, id)? else { return Ok(Vec::new()) };
    let until = after.saturating_add(limit as u64).min(version.seq);
    if after >= until { Ok(Vec::new()) } else { whole(connection, id, key, after, until) }
}

pub(crate) fn load_lossy(connection: &Connection, id: &str) -> Result<(History, Vec<CorruptRow>), Failure> {
    let Some(Head { key, version }) = head(connection, id)? else { return Ok((History::new(), Vec::new())) };
    let mut lost = Vec::new();
    let mut history = History::new();
    for (seq, entry) in rows(connection, key, 0, version.seq)? {
        match entry {
            Ok(entry) => history.push_shared(entry),
            Err(why) => lost.push(CorruptRow { seq, why }),
        }
    }
    Ok((history, lost))
}

/// The entries of the rows behind `after` up to `until`, or the error of the first that cannot be read.
fn whole(connection: &Connection, id: &str, key: i64, after: u64, until: u64) -> Result<Vec<Arc<Entry>>, Failure> {
    let corrupt = |(seq, why)| {
        let what = format_args!("message {seq} of conversation `{id}`");
        corrupt(what, format_args!("{why} (`load_lossy` reads the rest)"))
    };
    let rows = rows(connection, key, after, until)?.into_iter();
    Ok(rows.map(|(seq, entry)| entry.map_err(|why| corrupt((seq, why)))).collect::<Result<_, Error>>()?)
}

type Read = (u64, Result<Arc<Entry>, String>);

/// Each row behind `after` up to `until`, with what is wrong with it. Rows that should be there and are not are wrong;
/// each gap is said once: a damaged head may tell of more rows than there is memory for.
fn rows(connection: &Connection, key: i64, after: u64, until: u64) -> Result<Vec<Read>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT seq, id, created, body FROM messages WHERE conversation = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq",
    )?;
    let mut found = statement.query(params![key, sql_number(after), sql_number(until)])?;
    let mut rows: Vec<Read> =
        Vec::with_capacity(usize::try_from(until.saturating_sub(after)).unwrap_or(0).min(1 << 16));
    let missing = |next: u64, until: u64| {
        let why = match until.saturating_sub(next) {
            0 => return None,
            1 => "the row is missing".to_owned(),
            _ => format!("the rows from here to {} are missing", until - 1),
        };
        Some((next, Err(why)))
    };
    let mut next = after + 1;
    while let Some(row) = found.next()? {
        let seq = number(row, 0)?;
        rows.extend(missing(next, seq));
        rows.push((seq, entry(row).map(Arc::new)));
        next = seq + 1;
    }
    rows.extend(missing(next, until.saturating_add(1)));
    Ok(rows)
}

fn entry(row: &Row<'_>) -> Result<Entry, String> {
    let read = |error: rusqlite::Error| error.to_string();
    let id: Arc<str> = row.get(1).map_err(read)?;
    let created = row.get(2).map_err(read)?;
    let body = row.get_ref(3).map_err(read)?.as_str().map_err(|error| error.to_string())?;
    let message = serde_json::from_str(body).map_err(|error| error.to_string())?;
    Ok(Entry::with_id(id, created, message))
}

pub(crate) fn append(
    connection: &Connection,
    id: &str,
    expected: Version,
    entries: &[Arc<Entry>],
) -> Result<Version, Failure> {
    let found = head(connection, id)?;
    let version = found.map(|found| found.version).unwrap_or_default();
    let mut all_there = true;
    for entry in entries {
        all_there = all_there && found.map_or(Ok(false), |found| has(connection, found.key, entry.id.as_deref()))?;
    }
    if all_there {
        return Ok(version);
    }
    if version != expected {
        return Err(rules::version_conflict(id, expected, version).into());
    }
    let now = ids::now_ms();
    extend(connection, ensure(connection, id, now)?, entries, now)
}

/// Appends what is not there yet to whatever is there.
pub(crate) fn extend(
    connection: &Connection,
    Head { key, mut version }: Head,
    entries: &[Arc<Entry>],
    at: i64,
) -> Result<Version, Failure> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO messages(conversation, seq, id, turn, created, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for entry in entries {
        if has(connection, key, entry.id.as_deref())? {
            continue;
        }
        version.seq += 1;
        let id = match &entry.id {
            Some(id) => id.to_string(),
            None => free_id(connection, key, version)?,
        };
        let turn = ids::turn_of(&id);
        insert.execute(params![key, sql_number(version.seq), id, turn, entry.created, body(&entry.message)?])?;
    }
    let mut update =
        connection.prepare_cached("UPDATE conversations SET head = ?2, updated = max(updated, ?3) WHERE key = ?1")?;
    update.execute(params![key, sql_number(version.seq), at])?;
    Ok(version)
}

fn body(message: &Message) -> Result<String, Error> {
    serde_json::to_string(message).map_err(|error| {
        Error::new(ErrorKind::InvalidInput, format!("a message cannot be written as JSON, nothing was stored: {error}"))
    })
}

fn has(connection: &Connection, key: i64, id: Option<&str>) -> Result<bool, Failure> {
    let Some(id) = id else { return Ok(false) };
    let mut statement = connection.prepare_cached("SELECT 1 FROM messages WHERE conversation = ?1 AND id = ?2")?;
    Ok(statement.exists(params![key, id])?)
}

fn free_id(connection: &Connection, key: i64, place: Version) -> Result<String, Failure> {
    let mut n = 0;
    loop {
        let id = rules::message_id(place, n);
        if !has(connection, key, Some(&id))? {
            return Ok(id);
        }
        n += 1;
    }
}

pub(crate) fn clear(connection: &Connection, id: &str) -> Result<(), Failure> {
    let now = ids::now_ms();
    let Head { key, .. } = ensure(connection, id, now)?;
    audit::cleared(connection, id, now)?;
    // Calls, pauses and full results go with their turns.
    connection.prepare_cached("DELETE FROM turns WHERE conversation = ?1")?.execute([key])?;
    connection.prepare_cached("DELETE FROM messages WHERE conversation = ?1")?.execute([key])?;
    let mut update = connection.prepare_cached(
        "UPDATE conversations SET epoch = epoch + 1, head = 0, updated = max(updated, ?2) WHERE key = ?1",
    )?;
    update.execute(params![key, now])?;
    Ok(())
}

pub(crate) fn list(connection: &Connection, skip: usize, limit: usize) -> Result<Vec<ConversationInfo>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT id, title, head, created, updated FROM conversations WHERE head > 0
         ORDER BY updated DESC, key DESC LIMIT ?1 OFFSET ?2",
    )?;
    let info = |row: &Row<'_>| {
        Ok(ConversationInfo {
            id: row.get(0)?,
            title: row.get(1)?,
            messages: number(row, 2)?,
            created: row.get(3)?,
            updated: row.get(4)?,
        })
    };
    let found = statement.query_map(params![sql_number(limit as u64), sql_number(skip as u64)], info)?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}
