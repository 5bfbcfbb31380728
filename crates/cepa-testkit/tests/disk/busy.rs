//! Others who hold the database, again and again or for long.

use std::{
    collections::HashMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use cepa_agent::{TurnError, load_whole};
use cepa_core::{ErrorKind, Message, Role, pairing};
use cepa_store::{Options, Sqlite, Synchronous};
use cepa_testkit::arbitrary::Rng;
use rusqlite::Connection;

use crate::scene::{self, Ran};

/// Takes the right to write and holds it for a moment, until it is told to stop.
fn neighbour(path: &Path, seed: u64, stop: &AtomicBool, holds: &AtomicUsize) {
    let mut rng = Rng::new(seed);
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_millis(20)).unwrap();
    while !stop.load(Ordering::Relaxed) {
        if connection.execute_batch("BEGIN IMMEDIATE").is_ok() {
            std::thread::sleep(Duration::from_micros(rng.below(5_000) as u64));
            let end = if rng.chance(50) { "UPDATE audit SET at = at WHERE seq < 0; COMMIT" } else { "ROLLBACK" };
            // A read that began meanwhile never keeps a writer from its end in a log.
            connection.execute_batch(end).unwrap();
            holds.fetch_add(1, Ordering::Relaxed);
        }
        std::thread::sleep(Duration::from_micros(rng.below(60_000) as u64));
    }
}

/// What came of the turns.
#[derive(Debug, Default)]
struct Turns {
    /// What was said in turns that ended well.
    done: Vec<String>,
    /// What was said in turns that failed.
    failed: Vec<String>,
}

/// Does turns until the time is over. Each ends well or fails with an error after which one may try again.
async fn turns(store: &Sqlite, ran: &Ran, time: Duration) -> Turns {
    let (from, mut turns) = (Instant::now(), Turns::default());
    let agent = scene::agent(store.clone(), ran);
    for n in 0.. {
        if from.elapsed() > time && n >= 4 {
            break;
        }
        let text = if n % 2 == 0 { format!("go {n}") } else { format!("say {n}") };
        match scene::say(&agent, &format!("c{n}"), &text).await {
            Ok(()) => turns.done.push(text),
            Err(TurnError { error, .. }) => {
                assert!(error.kind() == ErrorKind::Store && error.is_retryable(), "D5: {text}: {error:?}");
                assert!(error.message().contains("another process"), "{error}");
                turns.failed.push(text);
            }
        }
    }
    turns
}

/// Nothing acknowledged is lost or doubled, and what failed is whole once it was recovered.
async fn judge(store: &Sqlite, ran: &Ran, turns: &Turns) {
    // A lease that could not be given back is over by then.
    let agent = scene::agent_at(store.clone(), ran, 3_600_000);
    for (text, ended_well) in
        turns.done.iter().map(|text| (text, true)).chain(turns.failed.iter().map(|text| (text, false)))
    {
        let id = format!("c{}", text.split(' ').next_back().unwrap());
        let conversation = agent.conversation(&id);
        if !ended_well {
            conversation.recover().await.unwrap();
            scene::decide(&agent, &id).await.unwrap();
        }
        let (_, history) = load_whole(store, &id).await.unwrap();
        pairing::validate(&history).unwrap();
        let said: Vec<(Role, String)> =
            history.messages().map(|message| (message.role(), Message::text(message).into_owned())).collect();
        let opened = said.iter().filter(|(role, said)| *role == Role::User && said == text).count();
        let answered = said.iter().filter(|(_, said)| *said == format!("the answer to {text}")).count();
        if ended_well {
            assert_eq!((opened, answered), (1, 1), "D5: a turn that was acknowledged: {said:?}");
        } else {
            assert!(opened <= 1 && answered <= opened, "D5: a turn that failed: {said:?}");
        }
    }
    let mut bodies: HashMap<String, usize> = HashMap::new();
    for body in ran.lock().unwrap().iter() {
        *bodies.entry(body.clone()).or_default() += 1;
    }
    let expected = turns.done.iter().filter(|text| text.starts_with("go")).count() * 2;
    assert!(bodies.len() >= expected, "{expected} calls of turns that were acknowledged, {bodies:?}");
    assert!(bodies.values().all(|times| *times == 1), "D2: a body ran twice: {bodies:?}");
}

async fn storm(options: Options, time: Duration) -> (Turns, usize) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chat.db");
    let store = Sqlite::open_with(&path, options).unwrap();
    let (stop, holds, ran) = (AtomicBool::new(false), AtomicUsize::new(0), Ran::default());
    let done = std::thread::scope(|scope| {
        for seed in 0..8 {
            let (path, stop, holds) = (&path, &stop, &holds);
            scope.spawn(move || neighbour(path, seed, stop, holds));
        }
        let (store, ran) = (store.clone(), ran.clone());
        let turns = scope.spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(turns(&store, &ran, time))
        });
        let done = turns.join();
        stop.store(true, Ordering::Relaxed);
        done
    });
    let done = done.unwrap();
    judge(&store, &ran, &done).await;
    (done, holds.into_inner())
}

// D5, D2: eight others take the right to write all the time. With patience every turn ends well; with next to none some
// fail, with an error that says to try again; nothing acknowledged is lost or doubled either way.
#[tokio::test]
async fn others_hold_the_database_again_and_again() {
    let patient = Options::default().synchronous(Synchronous::Normal).busy_timeout(Duration::from_secs(120));
    let (turns, holds) = storm(patient, Duration::from_secs(2)).await;
    println!(
        "patient: {} turns ended well, {} failed, the database was held {holds} times",
        turns.done.len(),
        turns.failed.len()
    );
    assert!(turns.failed.is_empty() && holds > 20, "{turns:?}, {holds} holds");

    let hasty = Options::default().synchronous(Synchronous::Normal).busy_timeout(Duration::from_millis(10));
    let (turns, holds) = storm(hasty, Duration::from_secs(2)).await;
    println!(
        "hasty: {} turns ended well, {} failed, the database was held {holds} times",
        turns.done.len(),
        turns.failed.len()
    );
    assert!(!turns.failed.is_empty(), "nobody was in the way: {holds} holds");
}

// D5: who reads for long keeps the log from being cut, not the turns from ending; when he is gone it is cut again.
#[tokio::test]
async fn a_reader_that_stays_for_long() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chat.db");
    let ran = Ran::default();
    let store = Sqlite::open_with(&path, Options::default().synchronous(Synchronous::Normal)).unwrap();
    let agent = scene::agent(store.clone(), &ran);
    scene::say(&agent, "c", "hello").await.unwrap();
    let reader = Connection::open(&path).unwrap();
    let messages =
        |reader: &Connection| reader.query_row("SELECT count(*) FROM messages", [], |row| row.get::<_, i64>(0));
    reader.execute_batch("BEGIN").unwrap();
    assert_eq!(messages(&reader).unwrap(), 2);
    for n in 0..60 {
        scene::say(&agent, "c", &format!("go {n} {}", "x".repeat(40_000))).await.unwrap();
    }
    let wal = || std::fs::metadata(folder.path().join("chat.db-wal")).unwrap().len();
    let grown = wal();
    assert!(grown > 16 << 20, "the log has {grown} bytes");
    assert_eq!(messages(&reader).unwrap(), 2, "he sees what was there when he began");
    drop(reader);
    for n in 0..4 {
        scene::say(&agent, "c", &format!("say {n}")).await.unwrap();
    }
    println!("the log had {grown} bytes, and {} after the reader was gone", wal());
    assert!(wal() <= 16 << 20, "the log still has {} bytes", wal());
    drop((agent, store));
    let store = Arc::new(Sqlite::open(&path).unwrap());
    let (_, history) = load_whole(&*store, "c").await.unwrap();
    assert_eq!(history.len(), 2 + 60 * 5 + 4 * 2);
    assert_eq!(ran.lock().unwrap().len(), 120);
}
