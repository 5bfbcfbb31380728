//! Appending a question and its answer to a conversation of some length, and loading it.

use std::sync::Arc;

use cepa::{ChatMemory, Entry, History, Message, Version, load_whole, prelude::*};
use divan::Bencher;
use micro::talks;

use crate::on_runtime;

/// A store, empty.
trait Store: ChatMemory + Clone {
    fn empty(folder: &tempfile::TempDir) -> Self;
}

impl Store for InMemory {
    fn empty(_: &tempfile::TempDir) -> Self {
        Self::new()
    }
}

impl Store for Sqlite {
    fn empty(folder: &tempfile::TempDir) -> Self {
        Self::open(folder.path().join("store.db")).expect("a database")
    }
}

fn filled<S: Store>(folder: &tempfile::TempDir, messages: usize) -> (S, Version) {
    let store = S::empty(folder);
    let version = on_runtime(store.append("c", Version::default(), talks::entries(messages))).expect("appended");
    (store, version)
}

#[divan::bench(types = [InMemory, Sqlite], args = [10, 100, 1_000, 10_000])]
fn append<S: Store>(bencher: Bencher<'_, '_>, messages: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, mut version) = filled::<S>(&folder, messages);
    let mut count = 0;
    bencher.bench_local(|| {
        count += 1;
        let entry = |who, message| Arc::new(Entry::with_id(format!("{who}{count}"), 1, message));
        let said = vec![entry("u", Message::user("hello there")), entry("a", Message::assistant("word0 word1"))];
        version = on_runtime(store.append("c", version, said)).expect("appended");
    });
}

/// All of it.
#[divan::bench(types = [InMemory, Sqlite], args = [10, 100, 1_000, 10_000])]
fn load<S: Store>(bencher: Bencher<'_, '_>, messages: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _) = filled::<S>(&folder, messages);
    bencher.bench_local(|| -> (Version, History) { on_runtime(load_whole(&store, "c")).expect("loaded") });
}

/// By somebody who holds it already, as each turn of a hot conversation does.
#[divan::bench(types = [InMemory, Sqlite], args = [10, 100, 1_000, 10_000])]
fn load_held<S: Store>(bencher: Bencher<'_, '_>, messages: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, version) = filled::<S>(&folder, messages);
    bencher.bench_local(|| on_runtime(store.load("c", Some(version))).expect("loaded"));
}

/// One entry to each of so many conversations at the same time: writes that come together share a transaction.
#[divan::bench(types = [InMemory, Sqlite], args = [1, 64])]
fn append_at_once<S: Store>(bencher: Bencher<'_, '_>, conversations: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = S::empty(&folder);
    let mut seq = 0;
    bencher.bench_local(|| {
        on_runtime(async {
            let mut writes = tokio::task::JoinSet::new();
            for n in 0..conversations {
                let (store, at) = (store.clone(), Version { epoch: 0, seq });
                let said = vec![Arc::new(Entry::with_id(format!("u{seq}"), 1, Message::user("hello there")))];
                writes.spawn(async move { store.append(&format!("c{n}"), at, said).await });
            }
            while let Some(written) = writes.join_next().await {
                written.expect("it ends").expect("appended");
            }
        });
        seq += 1;
    });
}
