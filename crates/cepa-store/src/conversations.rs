//! Conversations and their messages.

use std::sync::Arc;

use cepa_agent::{ConversationInfo, CorruptRow, Loaded, Version, ids, rules};
use cepa_core::{Entry, Error, ErrorKind, History, Message};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::{
    audit,
    failure::{Failure, corrupt},
    names::{self, Ids, Name, Names},
    rows::{number, sql_number},
};

/// A conversation's row, as far as writes need it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) key: i64,
    pub(crate) version: Version,
    /// The newest lease's.
    pub(crate) token: u64,
}

/// The most messages of a conversation: what `place` has room for.
const LONGEST: u64 = (1 << 24) - 1;

/// The place of a message in the table of messages. That of number 0, which no message has, is where those of the
/// conversation begin.
fn place(key: i64, seq: u64) -> i64 {
    (key << 24) | sql_number(seq.min(LONGEST))
}

pub(crate) fn head(connection: &Connection, id: &str) -> Result<Option<Head>, Failure> {
    let mut statement =
        connection.prepare_cached("SELECT key, epoch, head, lease_token FROM conversations WHERE id = ?1")?;
    let row = |row: &Row<'_>| {
        let version = Version { epoch: number(row, 1)?, seq: number(row, 2)? };
        Ok(Head { key: row.get(0)?, version, token: number(row, 3)? })
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
    Ok(Head { key, version: Version::default(), token: 0 })
}

pub(crate) fn load(connection: &Connection, id: &str, held: Option<Version>) -> Result<Loaded, Failure> {
    let Some(Head { key, version, .. }) = head(connection, id)? else {
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
    let Some(Head { key, version, .. }) = head(connection, id)? else { return Ok(Vec::new()) };
    let until = after.saturating_add(limit as u64).min(version.seq);
    if after >= until { Ok(Vec::new()) } else { whole(connection, id, key, after, until) }
}

pub(crate) fn load_lossy(connection: &Connection, id: &str) -> Result<(History, Vec<CorruptRow>), Failure> {
    let Some(Head { key, version, .. }) = head(connection, id)? else { return Ok((History::new(), Vec::new())) };
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
        "SELECT seq, scope, id, created, body FROM messages WHERE place > ?1 AND place <= ?2 ORDER BY place",
    )?;
    let mut found = statement.query([place(key, after), place(key, until)])?;
    let mut ids = Ids::default();
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
        rows.push((seq, entry(connection, &mut ids, row).map(Arc::new)));
        next = seq + 1;
    }
    rows.extend(missing(next, until.saturating_add(1)));
    Ok(rows)
}

fn entry(connection: &Connection, ids: &mut Ids, row: &Row<'_>) -> Result<Entry, String> {
    let read = |error: rusqlite::Error| error.to_string();
    let text = |column| row.get_ref(column).map_err(read)?.as_str().map_err(|error| error.to_string());
    let name = Name { scope: row.get(1).map_err(read)?, id: text(2)? };
    let id = ids.read(connection, name).map_err(read)?.ok_or("the row of its turn is missing")?;
    let created = row.get(3).map_err(read)?;
    let body = text(4)?;
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
    if version == expected {
        let now = ids::now_ms();
        let head = found.map_or_else(|| ensure(connection, id, now), Ok)?;
        let entries = entries.iter().map(|entry| &**entry);
        return Ok(extend(connection, head, Names::new(head.key, None), entries, now)?.version);
    }
    all_there(connection, id, found, expected, entries.iter().map(|entry| &**entry))?;
    Ok(version)
}

/// An append that was made before may be made again at another version.
///
/// # Errors
/// `conflict` if it was not.
pub(crate) fn all_there<'a>(
    connection: &Connection,
    id: &str,
    head: Option<Head>,
    expected: Version,
    entries: impl IntoIterator<Item = &'a Entry>,
) -> Result<(), Failure> {
    let mut names = head.map(|head| Names::new(head.key, None));
    for entry in entries {
        let there = match (&mut names, entry.id.as_deref()) {
            (Some(names), Some(id)) => names::has(connection, names.of(connection, id)?)?,
            _ => false,
        };
        if !there {
            let version = head.map(|head| head.version).unwrap_or_default();
            return Err(rules::version_conflict(id, expected, version).into());
        }
    }
    Ok(())
}

/// What an append of messages did.
pub(crate) struct Extended {
    pub(crate) version: Version,
    /// The stored text of the input of the turn that `names` has, with the number of its messages, if all of it joined
    /// now.
    pub(crate) input: Option<(String, i64)>,
}

/// Appends what is not there yet to whatever is there.
pub(crate) fn extend<'a>(
    connection: &Connection,
    Head { key, mut version, .. }: Head,
    mut names: Names<'a>,
    entries: impl IntoIterator<Item = &'a Entry>,
    at: i64,
) -> Result<Extended, Failure> {
    let before = version.seq;
    let mut insert = connection.prepare_cached(
        "INSERT INTO messages(place, scope, id, created, body) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT(scope, id) DO NOTHING",
    )?;
    let turn = names.turn();
    let (mut input, mut count) = (String::new(), 0);
    for entry in entries {
        let seq = version.seq + 1;
        if seq > LONGEST {
            let text = format!("a conversation holds at most {LONGEST} messages: begin a new one");
            return Err(Error::new(ErrorKind::Store, text).into());
        }
        let free;
        let name = match &entry.id {
            Some(id) => names.of(connection, id)?,
            None => {
                free = free_id(connection, key, Version { seq, ..version })?;
                Name { scope: -key, id: &free }
            }
        };
        let body = body(&entry.message)?;
        if insert.execute(params![place(key, seq), name.scope, name.id, entry.created, body])? == 0 {
            continue;
        }
        version.seq = seq;
        if Some(name.scope) == turn && is_input(name.id, count) {
            input.push(if count == 0 { '[' } else { ',' });
            input.push_str(&body);
            count += 1;
        }
    }
    if version.seq > before {
        let mut update = connection
            .prepare_cached("UPDATE conversations SET head = ?2, updated = max(updated, ?3) WHERE key = ?1")?;
        update.execute(params![key, sql_number(version.seq), at])?;
    }
    input.push(']');
    Ok(Extended { version, input: (count > 0).then_some((input, count)) })
}

/// Whether this is the name of a turn's n-th input message.
fn is_input(name: &str, n: i64) -> bool {
    name.strip_prefix('u').is_some_and(|number| number.parse() == Ok(n) && !number.starts_with('+'))
}

fn body(message: &Message) -> Result<String, Error> {
    serde_json::to_string(message).map_err(|error| {
        Error::new(ErrorKind::InvalidInput, format!("a message cannot be written as JSON, nothing was stored: {error}"))
    })
}

fn free_id(connection: &Connection, key: i64, place: Version) -> Result<String, Failure> {
    let mut n = 0;
    loop {
        let id = rules::message_id(place, n);
        if !names::has(connection, Name { scope: -key, id: &id })? {
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
    delete_messages(connection, key)?;
    let mut update = connection.prepare_cached(
        "UPDATE conversations SET epoch = epoch + 1, head = 0, updated = max(updated, ?2) WHERE key = ?1",
    )?;
    update.execute(params![key, now])?;
    Ok(())
}

pub(crate) fn delete_messages(connection: &Connection, key: i64) -> Result<(), Failure> {
    let mut delete = connection.prepare_cached("DELETE FROM messages WHERE place > ?1 AND place <= ?2")?;
    delete.execute([place(key, 0), place(key, LONGEST)])?;
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
