//! Opening a file: looked at before it is touched, created whole or not at all.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use cepa_core::Error;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior, config::DbConfig};

use crate::{
    failure::{Failure, store},
    migrate,
    schema::{self, APPLICATION_ID, PAGE_SIZE, SCHEMA_VERSION},
    sqlite::{Options, Synchronous},
};

/// What a file is before we touch it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// Nothing is in it.
    Empty,
    /// It is a database of ours.
    Ours,
}

/// Opens the file for writing, and creates it if there is none. Returns the file's true path: a later connection must
/// find the same file, even if the process has changed its folder.
pub(crate) fn open_file(path: &Path, options: Options) -> Result<(PathBuf, Connection), Error> {
    create_if_missing(path)?;
    let path = path.canonicalize().map_err(|error| store(path, format_args!("cannot find the database ({error})")))?;
    if look(&path)? == Found::Empty {
        restrict(&path)?;
    }
    let open = || {
        let mut connection = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_WRITE | FLAGS)?;
        connection.busy_timeout(options.busy_timeout)?;
        create_tables(&mut connection, &path)?;
        set_up(&connection, options)?;
        use_wal(&connection, options.busy_timeout)?;
        Ok(connection)
    };
    let connection = open().map_err(|failure: Failure| failure.explain(&path))?;
    Ok((path, connection))
}

/// A database in memory, for tests.
pub(crate) fn open_memory(options: Options) -> Result<Connection, Error> {
    let path = Path::new(":memory:");
    let open = || {
        let mut connection = Connection::open_in_memory()?;
        create_tables(&mut connection, path)?;
        set_up(&connection, options)?;
        Ok(connection)
    };
    open().map_err(|failure: Failure| failure.explain(path))
}

/// Opens the file for reading.
pub(crate) fn open_reader(path: &Path, options: Options) -> Result<Connection, Error> {
    let open = || {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | FLAGS)?;
        connection.busy_timeout(options.busy_timeout)?;
        keep_statements(&connection)?;
        Ok(connection)
    };
    open().map_err(|failure: Failure| failure.explain(path))
}

/// Each connection stays on its thread, so SQLite need not lock it.
const FLAGS: OpenFlags = OpenFlags::SQLITE_OPEN_NO_MUTEX;
/// More than we have.
const STATEMENTS: usize = 128;

/// No statement is ever parsed twice. That takes plans that do not depend on what is bound: else SQLite plans a statement
/// anew with its values, most times that it runs.
fn keep_statements(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(|_| ())
}

fn create_if_missing(path: &Path) -> Result<(), Error> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    // What people said to each other is nobody else's business. SQLite gives its side files the same mode.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        // Also what some systems answer for a folder or a read-only place where the file is there.
        Err(_) if path.exists() => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(store(path, "there is no folder for the database; make the folder first"))
        }
        Err(error) => Err(store(path, format_args!("cannot create the database ({error})"))),
    }
}

/// Gives an empty file that somebody else made the mode of one that we make.
fn restrict(path: &Path) -> Result<(), Error> {
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .map_err(|error| store(path, format_args!("cannot set the mode of the database ({error})")))?;
    let _ = path;
    Ok(())
}

/// The first bytes of a database, <https://www.sqlite.org/fileformat2.html#the_database_header>: 100 bytes of header and
/// the first 5 of the table of tables.
struct Header([u8; 105]);

impl Header {
    /// `None` if the file does not begin like a database.
    fn read(path: &Path) -> io::Result<Option<Self>> {
        let mut bytes = [0; 105];
        match File::open(path)?.read_exact(&mut bytes) {
            Ok(()) => Ok(Some(Self(bytes)).filter(|header| header.0.starts_with(b"SQLite format 3\0"))),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn number(&self, at: usize) -> u32 {
        self.0.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes)
    }

    fn application_id(&self) -> u32 {
        self.number(68)
    }

    fn user_version(&self) -> u32 {
        self.number(60)
    }

    /// Whether no table was ever made: the first page is a leaf without cells.
    fn has_no_tables(&self) -> bool {
        self.0.get(100) == Some(&0x0d) && self.0.get(103..105) == Some(&[0, 0])
    }
}

/// Looks at a file without SQLite, which would create files beside it, or write back a log that it finds.
fn look(path: &Path) -> Result<Found, Error> {
    let cannot = |error: io::Error| store(path, format_args!("cannot read the database ({error})"));
    let metadata = fs::metadata(path).map_err(cannot)?;
    if !metadata.is_file() {
        return Err(store(path, "this is not a file; name a file for the database"));
    }
    if metadata.len() == 0 {
        return Ok(Found::Empty);
    }
    let Some(header) = Header::read(path).map_err(cannot)? else {
        return Err(store(path, "the file is not a database; it was left as it is, name another file"));
    };
    if header.application_id() == APPLICATION_ID {
        check_version(path, header.user_version())?;
        if has_log(path) {
            check_version(path, version_in_log(path)?)?;
        }
        return Ok(Found::Ours);
    }
    if header.application_id() == 0 && header.has_no_tables() && !has_log(path) {
        return Ok(Found::Empty);
    }
    Err(foreign(path))
}

fn foreign(path: &Path) -> Error {
    store(path, "the database belongs to another program; it was left as it is, name another file")
}

fn check_version(path: &Path, version: u32) -> Result<(), Error> {
    if version <= SCHEMA_VERSION {
        return Ok(());
    }
    let what = format_args!(
        "the database was written by a newer version of cepa (schema {version}, this one knows {SCHEMA_VERSION}); it was \
         left as it is, use the newer version"
    );
    Err(store(path, what))
}

/// Whether commits are waiting in a log beside the file.
fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    fs::metadata(log).is_ok_and(|metadata| metadata.len() > 0)
}

/// The version that the log may have raised. A connection for reading never writes a log back.
fn version_in_log(path: &Path) -> Result<u32, Error> {
    let read = || {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | FLAGS)?;
        connection.busy_timeout(Duration::from_secs(1))?;
        Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?)
    };
    read().map_err(|failure: Failure| failure.explain(path))
}

/// Makes the tables in one transaction, or brings those of an older version up to date. Of two processes that come at
/// once the second finds them made.
fn create_tables(connection: &mut Connection, path: &Path) -> Result<(), Failure> {
    if application_id(connection)? == APPLICATION_ID && user_version(connection)? >= SCHEMA_VERSION {
        return Ok(());
    }
    // Means something only where nothing is written yet.
    connection.pragma_update(None, "page_size", PAGE_SIZE)?;
    // What [`migrate`] needs, and only outside of a transaction.
    connection.pragma_update(None, "foreign_keys", false)?;
    connection.pragma_update(None, "legacy_alter_table", true)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if application_id(&transaction)? == APPLICATION_ID {
        let version = user_version(&transaction)?;
        if version >= SCHEMA_VERSION {
            return Ok(check_version(path, version)?);
        }
        migrate::from_1(&transaction)?;
    } else {
        let tables: u32 = transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        if application_id(&transaction)? != 0 || tables != 0 {
            return Err(foreign(path).into());
        }
        transaction.execute_batch(&schema::tables())?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    }
    transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    Ok(transaction.commit()?)
}

fn user_version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn application_id(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "application_id", |row| row.get(0))
}

fn set_up(connection: &Connection, options: Options) -> Result<(), Failure> {
    let synchronous = match options.synchronous {
        Synchronous::Full => "FULL",
        Synchronous::Normal => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    // On macOS a plain fsync leaves the data in the drive's cache; elsewhere this means nothing.
    connection.pragma_update(None, "fullfsync", options.synchronous == Synchronous::Full)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // A log grows to 4 MB before it is written back.
    connection.pragma_update_and_check(None, "wal_autocheckpoint", (4 << 20) / PAGE_SIZE, |_| Ok(()))?;
    // A log that one large message made long is cut again.
    connection.pragma_update_and_check(None, "journal_size_limit", 16 << 20, |_| Ok(()))?;
    keep_statements(connection)?;
    Ok(())
}

/// Turns the write-ahead log on, which the file then remembers. SQLite does not wait for others here, so we do.
fn use_wal(connection: &Connection, timeout: Duration) -> Result<(), Failure> {
    let until = Instant::now() + timeout;
    loop {
        let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        if mode == "wal" {
            return Ok(());
        }
        match connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(5));
            }
            // Where the file system has no shared memory SQLite stays with its older journal: slower, as safe.
            done => return Ok(done?),
        }
    }
}

/// Which file a path named when it was opened: device and number. `None` where that is not known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FileId(Option<(u64, u64)>);

impl FileId {
    pub(crate) fn of(path: &Path) -> Self {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            Self(fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino())))
        }
        #[cfg(not(unix))]
        {
            let _ = path;
            Self(None)
        }
    }

    /// Fails if the path names another file by now, or none: whoever comes next would not find what is written, and a
    /// connection that is opened now reads something else.
    pub(crate) fn check(self, path: &Path) -> Result<(), Error> {
        if self.0.is_none() || Self::of(path).0 == self.0 {
            return Ok(());
        }
        let what = "the database was deleted or replaced while it was open; start again with the new file, nothing was \
                    read or written";
        Err(store(path, what))
    }
}
