//! Databases that are held, damaged or read-only: typed errors that say what to do, and nothing lost.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test that fails panics")]

mod common;

use std::{
    io::{Seek, SeekFrom, Write},
    time::{Duration, Instant},
};

use cepa_agent::{ChatMemory, load_whole};
use cepa_core::ErrorKind;
use cepa_store::{Options, Sqlite};
use common::{Place, at, entry, kind_of, texts, unnamed};

fn holding(place: &Place) -> rusqlite::Connection {
    let theirs = rusqlite::Connection::open(place.path()).unwrap();
    theirs.execute_batch("BEGIN IMMEDIATE").unwrap();
    theirs
}

// D5: a database that another process holds gives a typed, retryable error; reading goes on, and so does the runtime.
#[tokio::test]
async fn a_held_database_is_waited_for_and_then_said() {
    let place = Place::new();
    let store = Sqlite::open_with(place.path(), Options::default().busy_timeout(Duration::from_millis(200))).unwrap();
    store.append("c", at(0, 0), vec![entry("a", "1")]).await.unwrap();
    let theirs = holding(&place);
    let begun = Instant::now();
    let append = store.append("c", at(0, 1), vec![entry("b", "2")]);
    let ticks = async {
        // One thread runs both: were it blocked, the first tick would come late.
        let late = Instant::now();
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(late.elapsed() < Duration::from_millis(150), "the runtime was blocked");
        assert_eq!(texts(&store, "c").await, ["1"]);
    };
    let (error, ()) = tokio::join!(append, ticks);
    let error = error.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Store, true));
    assert!(error.message().contains("another process") && error.message().contains("chat.db"), "{error}");
    assert!(begun.elapsed() >= Duration::from_millis(200));
    drop(theirs);
    assert_eq!(store.append("c", at(0, 1), vec![entry("b", "2")]).await.unwrap(), at(0, 2));
}

#[tokio::test]
async fn ten_that_wait_do_not_wait_ten_times() {
    let place = Place::new();
    let store = Sqlite::open_with(place.path(), Options::default().busy_timeout(Duration::from_millis(500))).unwrap();
    let _theirs = holding(&place);
    let begun = Instant::now();
    let appends: Vec<_> = (0..10)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move { store.append(&n.to_string(), at(0, 0), vec![unnamed("1")]).await })
        })
        .collect();
    for append in appends {
        assert_eq!(kind_of(append.await.unwrap()), "store");
    }
    assert!(begun.elapsed() < Duration::from_millis(1500), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_held_database_that_is_let_go_in_time_is_written() {
    let place = Place::new();
    let store = place.open();
    let theirs = holding(&place);
    let release = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        drop(theirs);
    };
    let (done, ()) = tokio::join!(store.append("c", at(0, 0), vec![entry("a", "1")]), release);
    assert_eq!(done.unwrap(), at(0, 1));
}

// D5: a damaged file is said to be corrupt.
#[tokio::test]
async fn a_damaged_file_is_corrupt() {
    let place = Place::new();
    let store = place.open();
    store.append("c", at(0, 0), (0..200).map(|n| unnamed(&"x".repeat(n * 10))).collect()).await.unwrap();
    drop(store);
    let len = std::fs::metadata(place.path()).unwrap().len();
    let mut file = std::fs::OpenOptions::new().write(true).open(place.path()).unwrap();
    file.seek(SeekFrom::Start(4096)).unwrap();
    file.write_all(&vec![0xa5; usize::try_from(len - 4096).unwrap()]).unwrap();
    let error = match Sqlite::open(place.path()) {
        Ok(store) => load_whole(&store, "c").await.map(|_| ()).unwrap_err(),
        Err(error) => error,
    };
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.message().contains("chat.db") && error.message().contains("backup"), "{error}");
}

// D5: tables that somebody dropped are corrupt, not empty.
#[tokio::test]
async fn missing_tables_are_corrupt() {
    let place = Place::new();
    let store = place.open();
    store.append("c", at(0, 0), vec![entry("a", "1")]).await.unwrap();
    place.sql("DROP TABLE messages");
    assert_eq!(kind_of(load_whole(&store, "c").await), "corrupt");
    assert_eq!(kind_of(store.append("c", at(0, 1), vec![entry("b", "2")]).await), "corrupt");
}

// No text of a conversation is in an error.
#[tokio::test]
async fn errors_tell_no_secrets() {
    let place = Place::new();
    let store = place.open();
    place.sql("CREATE TRIGGER stop BEFORE INSERT ON messages BEGIN SELECT raise(ABORT, 'stop'); END");
    let error = store.append("c", at(0, 0), vec![entry("a", "sk-secret")]).await.unwrap_err();
    assert!(!format!("{error} {error:?} {store:?}").contains("secret"));
    place.sql("DROP TRIGGER stop");
    store.append("c", at(0, 0), vec![entry("a", "sk-secret")]).await.unwrap();
    place.sql("UPDATE messages SET body = replace(body, '}', '')");
    let error = load_whole(&store, "c").await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
}

// D5, M7: a head that tells of more rows than there are is corrupt at once, however many; what is there can be read.
#[tokio::test]
async fn a_damaged_head_is_corrupt() {
    let place = Place::new();
    let store = place.open();
    store.append("c", at(0, 0), vec![entry("a", "1"), entry("b", "2")]).await.unwrap();
    for (head, why) in [(3, "the row is missing"), (1_i64 << 62, "the rows from here to"), (i64::MAX, "missing")] {
        place.sql(&format!("UPDATE conversations SET head = {head}"));
        let error = load_whole(&store, "c").await.unwrap_err();
        assert!(
            error.kind() == ErrorKind::Corrupt && error.message().contains("message 3 of conversation `c`"),
            "{error}"
        );
        let (history, lost) = store.load_lossy("c").await.unwrap();
        assert_eq!((history.len(), lost.len(), lost[0].seq), (2, 1, 3));
        assert!(lost[0].why.contains(why), "{lost:?}");
    }
    place.sql("UPDATE conversations SET head = -1");
    assert_eq!(kind_of(load_whole(&store, "c").await), "corrupt");
}
