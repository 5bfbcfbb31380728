//! Everything that an SQLite file says, row by row: two states of a database can be compared.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, types::ValueRef};

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
        let mut statement = connection.prepare(&format!("SELECT * FROM \"{table}\" NOT INDEXED"))?;
        let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
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
