//! What is opened, created, refused, and what is left beside it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test that fails panics")]

mod common;

use std::{fs, path::Path, time::Duration};

use cepa_agent::ChatMemory;
use cepa_core::ErrorKind;
use cepa_store::{Options, Sqlite};
use common::{Place, at, entry, kind_of, open, texts};

/// Opens what must be refused, and returns the message. The folder is as it was before, to the byte.
fn refused(place: &Place, kind: ErrorKind) -> String {
    let look = || {
        let read = |name: String| (fs::read(place.folder().join(&name)).unwrap(), name);
        place.names().into_iter().map(read).collect::<Vec<_>>()
    };
    let before = look();
    let error = Sqlite::open(place.path()).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.message().contains("chat.db"), "{error}");
    assert!(look() == before, "the files changed");
    error.message().to_owned()
}

// D5: files of others are refused with a typed error and stay as they are.
#[test]
fn a_file_of_another_program_is_refused_and_untouched() {
    for sql in [
        "CREATE TABLE theirs(x)",
        "PRAGMA application_id = 1",
        "PRAGMA application_id = 1; CREATE TABLE conversations(key)",
        "PRAGMA journal_mode = wal; CREATE TABLE theirs(x)",
        "CREATE TABLE theirs(x); DROP TABLE theirs; PRAGMA application_id = 7",
    ] {
        let place = Place::new();
        place.sql(sql);
        assert!(refused(&place, ErrorKind::Store).contains("another program"), "{sql}");
    }
}

#[test]
fn a_file_that_another_program_has_open_is_refused_and_untouched() {
    let place = Place::new();
    let theirs = rusqlite::Connection::open(place.path()).unwrap();
    // Their table is only in the log: the file itself looks empty.
    theirs.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE theirs(x)").unwrap();
    assert_eq!(place.names(), ["chat.db", "chat.db-shm", "chat.db-wal"]);
    assert!(refused(&place, ErrorKind::Store).contains("another program"));
    theirs.execute_batch("INSERT INTO theirs VALUES (1)").unwrap();
}

#[test]
fn what_is_not_a_database_is_refused_and_untouched() {
    for bytes in ["hello", "SQLite format 3", &"x".repeat(5000)] {
        let place = Place::new();
        fs::write(place.path(), bytes).unwrap();
        assert!(refused(&place, ErrorKind::Store).contains("not a database"));
    }
    let place = Place::new();
    fs::create_dir(place.path()).unwrap();
    assert!(Sqlite::open(place.path()).unwrap_err().message().contains("not a file"));
    let error = Sqlite::open(place.folder().join("no").join("chat.db")).unwrap_err();
    assert!(error.message().contains("make the folder first"), "{error}");
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_untouched() {
    let place = Place::new();
    let store = place.open();
    store.append("c", at(0, 0), vec![entry("a", "1")]).await.unwrap();
    drop(store);
    place.sql("PRAGMA user_version = 3");
    assert!(refused(&place, ErrorKind::Store).contains("newer version"));
    // The newer program is running, and its version is still in the log.
    place.sql("PRAGMA user_version = 2");
    let theirs = rusqlite::Connection::open(place.path()).unwrap();
    theirs.execute_batch("PRAGMA user_version = 3").unwrap();
    let before = fs::read(place.path()).unwrap();
    let error = Sqlite::open(place.path()).unwrap_err();
    assert!(error.message().contains("schema 3"), "{error}");
    assert!(fs::read(place.path()).unwrap() == before);
}

#[tokio::test]
async fn an_empty_file_or_database_becomes_ours() {
    let place = Place::new();
    fs::write(place.path(), "").unwrap();
    place.open().append("c", at(0, 0), vec![entry("a", "1")]).await.unwrap();
    let place = Place::new();
    place.sql("PRAGMA user_version = 5; VACUUM");
    assert!(fs::metadata(place.path()).unwrap().len() > 0);
    place.open().append("c", at(0, 0), vec![entry("a", "1")]).await.unwrap();
    assert_eq!(place.ask::<i64>("PRAGMA user_version"), 2);
    assert_eq!(place.ask::<i64>("PRAGMA application_id"), i64::from(u32::from_be_bytes(*b"cepa")));
    assert_eq!(place.ask::<String>("PRAGMA journal_mode"), "wal");
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for made_before in [false, true] {
        let place = Place::new();
        if made_before {
            fs::write(place.path(), "").unwrap();
            fs::set_permissions(place.path(), fs::Permissions::from_mode(0o644)).unwrap();
        }
        let store = place.open();
        store.append("c", at(0, 0), vec![entry("a", "1")]).await.unwrap();
        texts(&store, "c").await;
        assert_eq!(place.names(), ["chat.db", "chat.db-shm", "chat.db-wal"]);
        for name in place.names() {
            assert_eq!(mode(&place.folder().join(&name)), 0o600, "{name}");
        }
        // The last handle leaves one file, which can be copied.
        drop(store);
        assert_eq!(place.names(), ["chat.db"]);
    }
}

#[tokio::test]
async fn a_database_in_memory_is_one_with_its_clones() {
    let store = Sqlite::open(":memory:").unwrap();
    store.clone().append("c", at(0, 0), vec![entry("a", "1")]).await.unwrap();
    assert_eq!(texts(&store, "c").await, ["1"]);
    assert_eq!(texts(&Sqlite::open(":memory:").unwrap(), "c").await, Vec::<String>::new());
}

// D5: a write into a file that is no longer there is not acknowledged.
#[cfg(unix)]
#[tokio::test]
async fn a_file_that_was_deleted_while_open_is_noticed() {
    let place = Place::new();
    let store = place.open();
    store.append("c", at(0, 0), vec![entry("a", "1")]).await.unwrap();
    for name in place.names() {
        fs::remove_file(place.folder().join(name)).unwrap();
    }
    let error = store.append("c", at(0, 1), vec![entry("b", "2")]).await.unwrap_err();
    assert_eq!((error.kind(), error.message().contains("deleted")), (ErrorKind::Store, true), "{error}");
    let other = place.open();
    assert_eq!(kind_of(store.append("c", at(0, 1), vec![entry("b", "2")]).await), "store");
    assert_eq!(texts(&other, "c").await, Vec::<String>::new());
}

#[tokio::test]
async fn many_open_a_new_file_at_once() {
    for _ in 0..20 {
        let place = Place::new();
        let path = place.path();
        let threads: Vec<_> = (0..6)
            .map(|_| {
                let path = path.clone();
                std::thread::spawn(move || Sqlite::open_with(path, Options::default()))
            })
            .collect();
        let stores: Vec<Sqlite> = threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect();
        stores[0].append("c", at(0, 0), vec![entry("a", "1")]).await.unwrap();
        assert_eq!(texts(&stores[5], "c").await, ["1"]);
    }
}

#[test]
fn opening_is_quick() {
    let place = Place::new();
    drop(place.open());
    let begun = std::time::Instant::now();
    let _store = open(&place.path());
    assert!(begun.elapsed() < Duration::from_millis(250), "{:?}", begun.elapsed());
}
