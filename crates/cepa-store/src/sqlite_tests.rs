//! What needs the writer's own connection to be shown.

use std::sync::Arc;

use cepa_agent::{ChatMemory, load_whole};
use cepa_core::{Entry, ErrorKind, Message};

use super::{Options, Sqlite};
use crate::failure::Failure;

fn large(n: usize) -> Vec<Arc<Entry>> {
    vec![Arc::new(Entry::with_id(format!("n{n}"), 0, Message::user("x".repeat(100_000))))]
}

async fn limit(store: &Sqlite, pages: u32) {
    let set = move |connection: &mut rusqlite::Connection| {
        connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).map_err(Failure::from)
    };
    store.0.writer.run(set).await.unwrap();
}

// D5: on a full disk an append fails with a typed error; what was acknowledged before stays, and so does the store.
#[tokio::test]
async fn a_full_disk_loses_nothing_that_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chat.db");
    let store = Sqlite::open_with(&path, Options::default()).unwrap();
    limit(&store, 1200).await;
    let mut acknowledged = 0;
    let error = loop {
        let (version, _) = load_whole(&store, "c").await.unwrap();
        match store.append("c", version, large(acknowledged)).await {
            Ok(_) => acknowledged += 1,
            Err(error) => break error,
        }
    };
    assert_eq!((error.kind(), error.code()), (ErrorKind::Store, Some("sqlite 13")));
    assert!(error.message().contains("disk is full") && error.message().contains("chat.db"), "{error}");
    assert!(acknowledged > 5, "{acknowledged}");
    assert_eq!(load_whole(&store, "c").await.unwrap().1.len(), acknowledged);
    // Once there is room the same append succeeds.
    limit(&store, 12_000).await;
    let (version, _) = load_whole(&store, "c").await.unwrap();
    store.append("c", version, large(acknowledged)).await.unwrap();
    drop(store);
    let (_, history) = load_whole(&Sqlite::open(&path).unwrap(), "c").await.unwrap();
    assert_eq!(history.len(), acknowledged + 1);
}

#[tokio::test]
async fn a_panic_in_a_job_ends_the_job_only() {
    let store = Sqlite::open(":memory:").unwrap();
    let panicking = store.write::<()>(|transaction| {
        transaction.execute("INSERT INTO conversations(id, created, updated) VALUES ('x', 0, 0)", []).unwrap();
        panic!("on purpose")
    });
    assert_eq!(panicking.await.unwrap_err().kind(), ErrorKind::Store);
    store.append("c", Default::default(), large(0)).await.unwrap();
    let ids = store
        .read(|connection| Ok(connection.query_row("SELECT group_concat(id) FROM conversations", [], |r| r.get(0))?));
    let ids: String = ids.await.unwrap();
    assert_eq!(ids, "c");
}

#[test]
fn the_faster_setting_is_set_only_where_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let ask = |options: Options, pragma: &'static str| {
        let store = Sqlite::open_with(folder.path().join("chat.db"), options).unwrap();
        let job = move |connection: &mut rusqlite::Connection| {
            connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0)).map_err(Failure::from)
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(store.0.writer.run(job)).unwrap()
    };
    let normal = Options::default().synchronous(super::Synchronous::Normal);
    assert_eq!(ask(Options::default(), "synchronous"), 2);
    assert_eq!(ask(normal, "synchronous"), 1);
    assert_eq!(ask(normal, "foreign_keys"), 1);
    assert_eq!(ask(Options::default(), "busy_timeout"), 5000);
}
