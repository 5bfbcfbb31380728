//! What goes wrong in a database, in words that say what to do. The one place where SQLite's errors become ours.

use std::path::Path;

use cepa_core::{Error, ErrorKind};
use rusqlite::ErrorCode;

/// Why a job failed: SQLite's error, still to be explained, or one of ours.
#[derive(Debug)]
pub(crate) enum Failure {
    Sql(rusqlite::Error),
    Told(Error),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Told(error)
    }
}

impl Failure {
    /// The error for the caller.
    pub(crate) fn explain(self, path: &Path) -> Error {
        match self {
            Self::Told(error) => error,
            Self::Sql(error) => explain(path, &error),
        }
    }
}

/// A row that does not parse.
pub(crate) fn corrupt(what: impl std::fmt::Display, why: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Corrupt, format!("{what} cannot be read: {why}"))
}

/// An error of the `store` kind about a file.
pub(crate) fn store(path: &Path, what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Store, format!("{what}: {}", path.display()))
}

fn explain(path: &Path, error: &rusqlite::Error) -> Error {
    let file = path.display();
    let said = said(error);
    let sqlite = match error {
        rusqlite::Error::SqlInputError { error, .. } => Some(error),
        _ => error.sqlite_error(),
    };
    let Some(&rusqlite::ffi::Error { code, extended_code }) = sqlite else {
        // A value of another type than the column's was read: somebody else wrote it.
        return Error::new(ErrorKind::Corrupt, format!("a row of the database is not as we wrote it ({said}): {file}"));
    };
    let (kind, text) = match code {
        ErrorCode::DiskFull => (
            ErrorKind::Store,
            format!(
                "the disk is full, or the database has reached its size limit; free some space and try again: {file}"
            ),
        ),
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => (
            ErrorKind::Store,
            format!("another process holds the database; wait for it or stop it, then try again: {file}"),
        ),
        ErrorCode::ReadOnly => (
            ErrorKind::Store,
            format!("the database is read-only; make the file and its folder writable for this user: {file}"),
        ),
        ErrorCode::DatabaseCorrupt => (
            ErrorKind::Corrupt,
            format!(
                "the database is damaged ({said}); keep a copy and try `sqlite3 FILE .recover`, or go back to a backup: \
                 {file}"
            ),
        ),
        ErrorCode::NotADatabase => {
            (ErrorKind::Corrupt, format!("the file is not a database (any more); name another file: {file}"))
        }
        ErrorCode::SystemIoFailure => (
            ErrorKind::Store,
            format!(
                "the disk failed while the database was read or written ({said}); check the disk, and the limit for files (ulimit -f): {file}"
            ),
        ),
        ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied => (
            ErrorKind::Store,
            format!("the database cannot be opened ({said}); check that file and folder may be used: {file}"),
        ),
        ErrorCode::TooBig => (ErrorKind::Store, format!("the message is too large for the database (1 GB): {file}")),
        ErrorCode::OutOfMemory => (ErrorKind::Store, format!("there is not enough memory for the database: {file}")),
        // A missing table or column: somebody changed the schema.
        ErrorCode::Unknown | ErrorCode::SchemaChanged => (
            ErrorKind::Corrupt,
            format!("the tables are not as we made them ({said}); go back to a backup or name another file: {file}"),
        ),
        _ => (ErrorKind::Store, format!("the database refused ({said}); nothing was written: {file}")),
    };
    let retryable = matches!(code, ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked);
    Error::new(kind, text).with_retryable(retryable).with_code(format!("sqlite {extended_code}"))
}

/// SQLite's own words. They name tables and limits, never a value.
fn said(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqliteFailure(_, Some(text)) => text.clone(),
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        rusqlite::Error::FromSqlConversionFailure(column, found, _) => format!("column {column} holds a {found}"),
        rusqlite::Error::InvalidColumnType(_, name, found) => format!("column `{name}` holds a {found}"),
        other => other.to_string(),
    }
}
