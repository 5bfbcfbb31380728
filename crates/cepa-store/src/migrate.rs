//! Files of older versions, brought up to the present tables in one transaction.

use rusqlite::{Connection, params};

use crate::{
    failure::Failure,
    kept::Data,
    schema::{AUDIT, MESSAGES, TURNS, statement},
};

/// From version 1: message ids in full, every turn with its input and data, full results in a table of their own.
///
/// Foreign keys must be off, and `legacy_alter_table` on: references to a table must not follow it to its new name. What
/// becomes free in the file is used again.
pub(crate) fn from_1(connection: &Connection) -> Result<(), Failure> {
    connection.execute_batch(
        "DROP INDEX turns_of_conversation;
         DROP INDEX turns_live;
         ALTER TABLE messages RENAME TO old_messages;
         ALTER TABLE turns RENAME TO old_turns;
         ALTER TABLE audit RENAME TO old_audit;",
    )?;
    connection.execute_batch(&[MESSAGES, TURNS, AUDIT].map(statement).concat())?;
    connection.execute_batch(
        "INSERT INTO turns(key, id, conversation, state, ephemeral, input, carried, data, token, created, updated)
            SELECT key, id, conversation, state, ephemeral, input, carried, data, token, created, updated FROM old_turns;
         INSERT INTO messages(place, scope, id, created, body)
            SELECT (m.conversation << 24) | m.seq, coalesce(t.key, -m.conversation),
                CASE WHEN t.key IS NULL THEN m.id ELSE substr(m.id, length(t.id) + 2) END, m.created, m.body
            FROM old_messages m
            LEFT JOIN turns t ON t.id = m.turn AND t.conversation = m.conversation AND NOT t.ephemeral
            ORDER BY 1;
         INSERT INTO audit SELECT seq, at, actor, what, pause, data FROM old_audit;
         ALTER TABLE calls ADD COLUMN full TEXT;
         UPDATE calls SET full = r.body FROM results r
            WHERE r.turn = calls.turn AND r.batch = calls.batch AND r.idx = calls.idx;
         DROP TABLE results;
         DROP TABLE old_messages;
         DROP TABLE old_turns;
         DROP TABLE old_audit;",
    )?;
    inputs(connection)?;
    datas(connection)
}

/// Takes the inputs out of the turns whose first messages say the same.
fn inputs(connection: &Connection) -> Result<(), Failure> {
    let sql = "UPDATE turns AS t SET input = said.n
        FROM (
            SELECT scope, count(*) AS n, '[' || group_concat(body, ',' ORDER BY place) || ']' AS text FROM messages
            WHERE scope > 0 AND id >= 'u' AND id < 'v' AND id = 'u' || CAST(substr(id, 2) AS INTEGER)
            GROUP BY scope HAVING max(CAST(substr(id, 2) AS INTEGER)) = count(*) - 1
        ) said
        WHERE said.scope = t.key AND said.text = t.input";
    connection.execute(sql, [])?;
    Ok(())
}

/// Leaves of the data of turns that are over what tells them from the turn before.
fn datas(connection: &Connection) -> Result<(), Failure> {
    let mut over = connection.prepare(
        "SELECT key, conversation FROM turns WHERE state NOT IN ('running', 'paused') AND NOT ephemeral ORDER BY key",
    )?;
    let over = over.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    for (key, conversation) in over.collect::<rusqlite::Result<Vec<(i64, i64)>>>()? {
        let text: String =
            connection.prepare_cached("SELECT data FROM turns WHERE key = ?1")?.query_row([key], |row| row.get(0))?;
        let data = Data::of(connection, conversation, Some(key), false, &text)?;
        let (base, first, last) = data.columns();
        let sql = "UPDATE turns SET data = ?2, base = ?3, first = ?4, last = ?5 WHERE key = ?1";
        connection.prepare_cached(sql)?.execute(params![key, data.text, base, first, last])?;
    }
    Ok(())
}
