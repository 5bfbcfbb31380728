//! Writes that wait at the same time.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
    mpsc,
};

use cepa_agent::{ChatMemory, Version, load_whole};
use cepa_core::{Entry, ErrorKind, Message};
use rusqlite::Connection;

use super::{Options, Sqlite};
use crate::failure::Failure;

fn entry(id: &str) -> Vec<Arc<Entry>> {
    vec![Arc::new(Entry::with_id(id, 0, Message::user("hi")))]
}

/// Keeps the writer busy until the other end is dropped, so that what comes meanwhile waits.
fn hold(store: &Sqlite) -> mpsc::Sender<()> {
    let (release, held) = mpsc::channel::<()>();
    let store = store.clone();
    let job = move |_: &mut Connection| {
        let _ = held.recv();
        Ok(())
    };
    tokio::spawn(async move { store.0.writer.run(job).await });
    release
}

/// Counts commits of the writer's connection.
async fn commits(store: &Sqlite) -> Arc<AtomicUsize> {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let hook = move |connection: &mut Connection| {
        let hook = move || {
            counted.fetch_add(1, Ordering::SeqCst);
            false
        };
        connection.commit_hook(Some(hook)).map_err(Failure::from)
    };
    store.0.writer.run(hook).await.unwrap();
    count
}

async fn text(store: &Sqlite, conversation: &str) -> usize {
    load_whole(store, conversation).await.unwrap().1.len()
}

// D5: writes of many conversations share a commit; one that fails or panics takes back its own and no more.
#[tokio::test]
async fn writes_that_wait_share_a_commit() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open_with(folder.path().join("chat.db"), Options::default()).unwrap();
    let commits = commits(&store).await;
    let release = hold(&store);
    let mut writes = tokio::task::JoinSet::new();
    for n in 0..30 {
        let store = store.clone();
        writes.spawn(async move {
            let done = match n % 10 {
                // Writes, and then fails.
                3 => {
                    let fail = |connection: &Connection| {
                        connection.execute("INSERT INTO conversations(id, created, updated) VALUES ('x', 0, 0)", [])?;
                        Err::<(), _>(Failure::Told(cepa_core::Error::new(ErrorKind::Conflict, "on purpose")))
                    };
                    store.write(fail).await.map(|()| Version::default())
                }
                5 => store.append(&format!("c{n}"), Version { epoch: 0, seq: 9 }, entry("a")).await,
                7 => store.write(|_| -> Result<Version, Failure> { panic!("on purpose") }).await,
                _ => store.append(&format!("c{n}"), Version::default(), entry("a")).await,
            };
            (n, done.map_err(|error| error.kind()))
        });
    }
    // All of them are in the queue once each was polled.
    tokio::task::yield_now().await;
    drop(release);
    while let Some(done) = writes.join_next().await {
        let (n, done) = done.unwrap();
        let expected = match n % 10 {
            3 | 5 => Err(ErrorKind::Conflict),
            7 => Err(ErrorKind::Store),
            _ => Ok(Version { epoch: 0, seq: 1 }),
        };
        assert_eq!(done, expected, "{n}");
    }
    assert_eq!(commits.load(Ordering::SeqCst), 1);
    for n in 0..30 {
        assert_eq!(text(&store, &format!("c{n}")).await, usize::from(!matches!(n % 10, 3 | 5 | 7)), "c{n}");
    }
    assert_eq!(text(&store, "x").await, 0);
    assert_eq!(store.list(0, 100).await.unwrap().len(), 21);
}

// D5: where the shared transaction fails as a whole, each write is done alone: only that for which there is no room fails.
#[tokio::test]
async fn a_write_without_room_fails_alone() {
    let store = Sqlite::open(":memory:").unwrap();
    let limit = |connection: &mut Connection| {
        connection.pragma_update_and_check(None, "max_page_count", 100, |_| Ok(())).map_err(Failure::from)
    };
    store.0.writer.run(limit).await.unwrap();
    let release = hold(&store);
    let mut writes = tokio::task::JoinSet::new();
    for n in 0..12 {
        let store = store.clone();
        writes.spawn(async move {
            let text = if n % 4 == 1 { "x".repeat(200_000) } else { "small".to_owned() };
            let entry = Arc::new(Entry::with_id("a", 0, Message::user(text)));
            (n, store.append(&format!("c{n}"), Version::default(), vec![entry]).await)
        });
    }
    tokio::task::yield_now().await;
    drop(release);
    while let Some(done) = writes.join_next().await {
        let (n, done) = done.unwrap();
        assert_eq!(
            done.as_ref().err().map(|error| error.code()),
            (n % 4 == 1).then_some(Some("sqlite 13")),
            "{n}: {done:?}"
        );
        assert_eq!(text(&store, &format!("c{n}")).await, usize::from(n % 4 != 1));
    }
}

// D5: while somebody else writes, those that wait together are told so, each of them, and nothing of them is written.
#[tokio::test]
async fn writes_that_wait_for_somebody_elses_lock() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chat.db");
    let options = Options::default().busy_timeout(std::time::Duration::from_millis(100));
    let store = Sqlite::open_with(&path, options).unwrap();
    let other = Connection::open(&path).unwrap();
    for expected in [Err(ErrorKind::Store), Ok(Version { epoch: 0, seq: 1 })] {
        if expected.is_err() {
            other.execute_batch("BEGIN IMMEDIATE").unwrap();
        }
        let release = hold(&store);
        let mut writes = tokio::task::JoinSet::new();
        for n in 0..20 {
            let store = store.clone();
            writes.spawn(async move { store.append(&format!("c{n}"), Version::default(), entry("a")).await });
        }
        tokio::task::yield_now().await;
        drop(release);
        while let Some(done) = writes.join_next().await {
            let done = done.unwrap();
            assert!(done.as_ref().err().is_none_or(cepa_core::Error::is_retryable), "{done:?}");
            assert_eq!(done.map_err(|error| error.kind()), expected);
        }
        if expected.is_err() {
            other.execute_batch("COMMIT").unwrap();
            assert_eq!(store.list(0, 100).await.unwrap().len(), 0);
        }
    }
}

// D5: writes whose callers are gone are done, together with others, before the last handle closes.
#[tokio::test]
async fn writes_that_nobody_waits_for_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chat.db");
    let store = Sqlite::open_with(&path, Options::default()).unwrap();
    let release = hold(&store);
    let mut writes = tokio::task::JoinSet::new();
    for n in 0..200 {
        let store = store.clone();
        writes.spawn(async move {
            let at = if n % 3 == 0 { Version { epoch: 0, seq: 7 } } else { Version::default() };
            store.append(&format!("c{n}"), at, entry("a")).await
        });
    }
    // The runtime looks up from its tasks now and then.
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    writes.shutdown().await;
    drop(release);
    tokio::task::spawn_blocking(move || drop(store)).await.unwrap();
    // The task that kept the writer busy has a handle too.
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let store = Sqlite::open(&path).unwrap();
    for n in 0..200 {
        assert_eq!(text(&store, &format!("c{n}")).await, usize::from(n % 3 != 0), "c{n}");
    }
}

// D5: what was answered is there for everyone who looks then.
#[tokio::test]
async fn an_answer_comes_after_the_commit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chat.db");
    let store = Sqlite::open_with(&path, Options::default().synchronous(super::Synchronous::Normal)).unwrap();
    let mut writes = tokio::task::JoinSet::new();
    for n in 0..200 {
        let (store, path) = (store.clone(), path.clone());
        writes.spawn(async move {
            store.append(&format!("c{n}"), Version::default(), entry("a")).await.unwrap();
            let there = Connection::open(path).unwrap();
            let sql = "SELECT head FROM conversations WHERE id = ?1";
            assert_eq!(there.query_row(sql, [format!("c{n}")], |row| row.get::<_, i64>(0)).unwrap(), 1);
        });
    }
    while let Some(done) = writes.join_next().await {
        done.unwrap();
    }
}
