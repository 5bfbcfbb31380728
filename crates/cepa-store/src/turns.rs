//! Turns, and who drives them.

use cepa_agent::{
    Commit, Lease, LiveTurn, StoredTurn, TurnRow, TurnState, Version,
    rules::{self, Holding},
    store::{Opened, carried_json},
};
use cepa_core::RawJson;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

use crate::{
    calls,
    conversations::{self, Head},
    failure::Failure,
    kept::{self, Data},
    names::{self, Names},
    pauses,
    rows::{self, number, select_turn, sql_number, word},
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
    let mut statement = connection.prepare_cached(concat!(select_turn!(), "WHERE t.id = ?1"))?;
    Ok(statement.query_row([id], rows::turn).optional()?)
}

/// A write with a token that is not the conversation's newest.
fn check(head: Head, conversation: &str, token: u64) -> Result<(), Failure> {
    Ok(Holding { token: head.token, ..Holding::default() }.check(conversation, token)?)
}

pub(crate) fn begin(connection: &Connection, turn: &TurnRow, token: u64) -> Result<(), Failure> {
    let head = conversations::ensure(connection, &turn.conversation, turn.created)?;
    check(head, &turn.conversation, token)?;
    let data = Data::of(connection, head.key, None, turn.ephemeral, turn.data.as_str())?;
    let (base, first, last) = data.columns();
    let mut statement = connection.prepare_cached(
        "INSERT INTO turns(id, conversation, state, ephemeral, input, carried, data, base, first, last, token, created,
            updated)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) ON CONFLICT(id) DO NOTHING",
    )?;
    let added = statement.execute(params![
        turn.id,
        head.key,
        turn.state.as_str(),
        turn.ephemeral,
        turn.input.as_str(),
        turn.carried.as_ref().map(RawJson::as_str),
        data.text,
        base,
        first,
        last,
        sql_number(token),
        turn.created,
        turn.updated,
    ])?;
    if added == 0 {
        rules::add_turn(row(connection, &turn.id)?.as_ref().map(|(_, stored)| stored), turn)?;
    } else if !turn.ephemeral && head.version.seq > 0 {
        names::turn_has_come(connection, head.key, &turn.id, connection.last_insert_rowid())?;
    }
    Ok(())
}

/// A turn's row, as far as a commit needs it.
struct Found {
    key: i64,
    state: TurnState,
    ephemeral: bool,
    conversation: String,
    head: Head,
}

fn find(connection: &Connection, turn: &str) -> Result<Found, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT t.key, t.state, t.ephemeral, c.id, c.key, c.epoch, c.head, c.lease_token
         FROM turns t JOIN conversations c ON c.key = t.conversation WHERE t.id = ?1",
    )?;
    let found = |row: &Row<'_>| {
        let version = Version { epoch: number(row, 5)?, seq: number(row, 6)? };
        Ok(Found {
            key: row.get(0)?,
            state: word(row, 1, TurnState::from_word)?,
            ephemeral: row.get(2)?,
            conversation: row.get(3)?,
            head: Head { key: row.get(4)?, version, token: number(row, 7)? },
        })
    };
    Ok(statement.query_row([turn], found).optional()?.ok_or_else(|| rules::no_such_turn(turn))?)
}

pub(crate) fn commit(connection: &Connection, turn: &str, token: u64, commit: &Commit) -> Result<(), Failure> {
    if let Some(row) = &commit.begins {
        begin(connection, row, token)?;
    }
    let found = find(connection, turn)?;
    check(found.head, &found.conversation, token)?;

    for change in &commit.calls {
        calls::change(connection, found.key, change)?;
    }
    for pause in &commit.pauses {
        pauses::add(connection, found.key, pause)?;
    }
    for (id, state) in &commit.closed_pauses {
        pauses::close(connection, found.key, id, *state, commit.at)?;
    }
    let input = add_messages(connection, turn, &found, commit)?;
    change(connection, &found, token, commit, input)?;
    if found.ephemeral && row(connection, turn)?.is_some_and(|(_, row)| rules::leaves_nothing(&row)) {
        forget(connection, turn)?;
    }
    if commit.releases {
        release(connection, &found.conversation, token)?;
    }
    Ok(())
}

/// Returns the turn's input, if all of it joined the conversation now, and the number of its messages.
fn add_messages(
    connection: &Connection,
    turn: &str,
    found: &Found,
    commit: &Commit,
) -> Result<Option<(String, i64)>, Failure> {
    let entries = || commit.messages.iter().map(|entry| &*entry.0);
    match commit.expected {
        _ if commit.messages.is_empty() => return Ok(None),
        Some(expected) if expected != found.head.version => {
            conversations::all_there(connection, &found.conversation, Some(found.head), expected, entries())?;
            return Ok(None);
        }
        Some(_) | None => {}
    }
    let names = Names::new(found.head.key, (!found.ephemeral).then_some((turn, found.key)));
    Ok(conversations::extend(connection, found.head, names, entries(), commit.at)?.input)
}

/// What every commit changes in the row of its turn. The input goes where the conversation says the same.
macro_rules! update_turn {
    ($more:literal) => {
        concat!(
            "UPDATE turns SET token = ?2, updated = max(updated, ?3), input = CASE WHEN input = ?4 THEN ?5 ELSE input END",
            $more,
            " WHERE key = ?1"
        )
    };
}

const UPDATE: &str = update_turn!("");
const UPDATE_DATA: &str =
    update_turn!(", carried = coalesce(?6, carried), data = ?7, base = ?8, first = ?9, last = ?10");
/// A state that is named is a change to the index of live turns, whatever it was.
const UPDATE_STATE: &str =
    update_turn!(", carried = coalesce(?6, carried), data = ?7, base = ?8, first = ?9, last = ?10, state = ?11");

fn change(
    connection: &Connection,
    found: &Found,
    token: u64,
    commit: &Commit,
    input: Option<(String, i64)>,
) -> Result<(), Failure> {
    let (input, count) = input.unzip();
    let (key, token) = (found.key, sql_number(token));
    let Some(change) = &commit.turn else {
        connection.prepare_cached(UPDATE)?.execute(params![key, token, commit.at, input, count])?;
        return Ok(());
    };
    if !found.state.is_live() {
        kept::stand_alone(connection, found.head.key, key)?;
    }
    let json = change.data.json();
    let data = Data::of(connection, found.head.key, Some(key), found.ephemeral, json.as_str())?;
    let carried = change.carried.as_ref().map(carried_json);
    let carried = carried.as_ref().map(RawJson::as_str);
    let (base, first, last) = data.columns();
    if change.state == found.state {
        let params = params![key, token, commit.at, input, count, carried, data.text, base, first, last];
        connection.prepare_cached(UPDATE_DATA)?.execute(params)?;
    } else {
        let state = change.state.as_str();
        let params = params![key, token, commit.at, input, count, carried, data.text, base, first, last, state];
        connection.prepare_cached(UPDATE_STATE)?.execute(params)?;
    }
    Ok(())
}

pub(crate) fn forget(connection: &Connection, id: &str) -> Result<(), Failure> {
    let Some((key, turn)) = row(connection, id)? else { return Ok(()) };
    if !turn.ephemeral {
        return Err(rules::not_ephemeral(id).into());
    }
    connection.prepare_cached("DELETE FROM turns WHERE key = ?1")?.execute([key])?;
    // Its conversation is its own and goes with it.
    let mut alone = connection.prepare_cached(
        "SELECT key FROM conversations c WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.conversation = c.key)",
    )?;
    if let Some(key) = alone.query_row([&turn.conversation], |row| row.get(0)).optional()? {
        conversations::delete_messages(connection, key)?;
        connection.prepare_cached("DELETE FROM conversations WHERE key = ?1")?.execute([key])?;
    }
    Ok(())
}

pub(crate) fn turn(connection: &Connection, id: &str) -> Result<Option<StoredTurn>, Failure> {
    let Some((key, row)) = row(connection, id)? else { return Ok(None) };
    let calls = calls::of_turn(connection, key)?;
    Ok(Some(StoredTurn { row, calls, pauses: pauses::of_turn(connection, key)? }))
}

/// Selects what [`live`] reads: by the index of live turns, else SQLite would look at every turn in order of their keys.
macro_rules! select_live {
    ($more:literal) => {
        concat!(
            "SELECT t.id, c.id, t.state = 'paused'
                AND EXISTS (SELECT 1 FROM pauses p WHERE p.turn = t.key AND p.state = 'pending')
             FROM turns t INDEXED BY turns_live JOIN conversations c ON c.key = t.conversation
             WHERE t.state IN ('running', 'paused') ",
            $more,
            " ORDER BY t.key"
        )
    };
}

pub(crate) fn live(connection: &Connection, conversation: Option<&str>) -> Result<Vec<LiveTurn>, Failure> {
    let live = |row: &Row<'_>| Ok(LiveTurn { id: row.get(0)?, conversation: row.get(1)?, paused: row.get(2)? });
    let (sql, params) = match &conversation {
        None => (select_live!(""), &[] as &[&str]),
        Some(id) => (select_live!("AND c.id = ?1"), std::slice::from_ref(id)),
    };
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_map(params_from_iter(params), live)?.collect::<rusqlite::Result<_>>()?)
}
