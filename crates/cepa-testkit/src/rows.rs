//! Everything that an SQLite file says, row by row: two states of a database can be compared.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, types::ValueRef};

/// The messages as a table with their ids in full and, where one made them, the ids of their turns.
pub const MESSAGES: &str =
    "(SELECT m.conversation, m.seq, coalesce(t.id || '/', '') || m.id AS id, t.id AS turn, m.body
     FROM messages m LEFT JOIN turns t ON t.key = m.scope)";

/// The turns as a table with their input and data in full.
pub const TURNS: &str = "(SELECT t.key, t.id, t.conversation, t.state, t.ephemeral, t.token,
        iif(typeof(t.input) = 'text', t.input, (
            SELECT '[' || group_concat(m.body, ',' ORDER BY m.seq) || ']' FROM messages m
            WHERE m.scope = t.key AND m.id GLOB 'u[0-9]*' AND CAST(substr(m.id, 2) AS INTEGER) < t.input
        )) AS input,
        iif(t.base IS NULL, t.data, substr(b.data, 1, t.first) || t.data || substr(b.data, -t.last)) AS data
     FROM turns t LEFT JOIN turns b ON b.key = t.base)";

/// All rows of all tables, sorted, and what marks the file as its program's. What other connections are writing is not
/// among it.
///
/// # Errors
/// SQLite's, for a file that it cannot read; whether the file is sound otherwise is not looked at.
pub fn rows(path: impl AsRef<Path>) -> rusqlite::Result<Vec<String>> {
    // An empty log can only be read by who may make its index; nothing is written otherwise.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    let connection = connection.transaction()?;
    let mut all = Vec::new();
    for pragma in ["application_id", "user_version"] {
        let value: i64 = connection.pragma_query_value(None, pragma, |row| row.get(0))?;
        all.push(format!("{pragma} = {value}"));
    }
    let mut tables = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")?;
    let tables: Vec<String> = tables.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    for table in tables {
        // Asked for as rows: a name that damage has made no text is an error then, and no panic.
        let mut names = connection.prepare("SELECT name FROM pragma_table_xinfo(?1) ORDER BY cid")?;
        let names: Vec<String> = names.query_map([&table], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        let mut statement = connection.prepare(&format!("SELECT * FROM \"{table}\" NOT INDEXED"))?;
        let mut found = statement.query([])?;
        let mut of_table = Vec::new();
        while let Some(row) = found.next()? {
            let mut line = table.clone();
            for (column, name) in names.iter().enumerate() {
                line += &match row.get_ref(column)? {
                    ValueRef::Text(text) => format!(" {name}={:?}", String::from_utf8_lossy(text)),
                    other => format!(" {name}={other:?}"),
                };
            }
            of_table.push(line);
        }
        of_table.sort();
        all.append(&mut of_table);
    }
    Ok(all)
}
