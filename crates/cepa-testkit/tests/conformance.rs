//! Every store that comes with the library keeps the promises of its contract.

use std::sync::Arc;

use cepa_agent::{
    Bare, ChatMemory, ConversationInfo, Held, InMemory, Loaded, TokenEstimate, Version, Window, Windowed, load_whole,
};
use cepa_core::{BoxFuture, Entry, Error};
use cepa_store::Sqlite;
use cepa_testkit::conformance::{self, Broken};

// M1, M7, M8: the in-memory store.
#[tokio::test(flavor = "multi_thread")]
async fn in_memory() -> Result<(), Broken> {
    conformance::turn_store(async || InMemory::new()).await
}

// P3: also where every conversation is packed as soon as it was used.
#[tokio::test(flavor = "multi_thread")]
async fn in_memory_packed() -> Result<(), Broken> {
    conformance::turn_store(async || InMemory::new().hot_bytes(0)).await?;
    conformance::turn_store(async || Held::new(InMemory::new().hot_bytes(0))).await
}

/// A memory that knows no turns, with the store of turns that is put beside it.
#[tokio::test(flavor = "multi_thread")]
async fn bare() -> Result<(), Broken> {
    conformance::turn_store(async || Bare::new(InMemory::new())).await
}

// M1, M7, H1, H4: SQLite, in files of its own for each check.
#[tokio::test(flavor = "multi_thread")]
async fn sqlite() -> Result<(), Broken> {
    let folder = tempfile::tempdir().expect("a folder");
    let number = std::sync::atomic::AtomicU32::new(0);
    let fresh = async || {
        let number = number.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Sqlite::open(folder.path().join(format!("{number}.db"))).expect("a new file")
    };
    conformance::turn_store(fresh).await
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_in_memory() -> Result<(), Broken> {
    conformance::turn_store(async || Sqlite::open(":memory:").expect("a database")).await
}

// D1, H1: what was acknowledged is there when the file is opened again.
#[tokio::test(flavor = "multi_thread")]
async fn sqlite_opened_again() -> Result<(), Broken> {
    let folder = tempfile::tempdir().expect("a folder");
    conformance::durable(async || Sqlite::open(folder.path().join("case.db")).expect("the file")).await
}

// M5: a window that is wide enough is not noticed.
#[tokio::test(flavor = "multi_thread")]
async fn windowed() -> Result<(), Broken> {
    let wide = || Window::messages(1_000_000).expect("a window");
    conformance::turn_store(async || Windowed::new(InMemory::new(), wide())).await
}

// M8, P3: what is held is never older than what is there.
#[tokio::test(flavor = "multi_thread")]
async fn held() -> Result<(), Broken> {
    conformance::turn_store(async || Held::new(InMemory::new())).await?;
    // So little that everything is dropped at once.
    conformance::turn_store(async || Held::new(InMemory::new()).max_bytes(1)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn held_window_over_sqlite() -> Result<(), Broken> {
    let wide = || Window::tokens(1_000_000_000, TokenEstimate).expect("a window");
    let database = || Sqlite::open(":memory:").expect("a database");
    conformance::turn_store(async || Held::new(Windowed::new(database(), wide()))).await
}

/// A suite that finds nothing is worth nothing: a store that forgets is told so.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_forgets_is_found_out() {
    let broken = conformance::durable(async || InMemory::new()).await.expect_err("memory is not durable");
    assert_eq!(broken.0.len(), 1, "{broken}");
}

/// A memory with one fault.
struct Faulty {
    inside: InMemory,
    fault: Fault,
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    IgnoresVersions,
    ForgetsIds,
    MixesCase,
    ListsBackwards,
    PagesOneTooEarly,
    SaysNothingIsNew,
    LosesTheLast,
}

impl Faulty {
    fn id(&self, id: &str) -> String {
        if matches!(self.fault, Fault::MixesCase) { id.to_lowercase() } else { id.to_owned() }
    }
}

impl ChatMemory for Faulty {
    fn load<'a>(&'a self, id: &'a str, held: Option<Version>) -> BoxFuture<'a, Result<Loaded, Error>> {
        Box::pin(async move {
            let loaded = self.inside.load(&self.id(id), held).await?;
            Ok(match loaded {
                Loaded::Added { .. } if matches!(self.fault, Fault::SaysNothingIsNew) => Loaded::Unchanged,
                other => other,
            })
        })
    }
    fn append<'a>(
        &'a self,
        id: &'a str,
        mut expected: Version,
        mut entries: Vec<Arc<Entry>>,
    ) -> BoxFuture<'a, Result<Version, Error>> {
        Box::pin(async move {
            let id = self.id(id);
            match self.fault {
                Fault::IgnoresVersions => expected = load_whole(&self.inside, &id).await?.0,
                Fault::ForgetsIds => {
                    entries = entries.iter().map(|entry| Arc::new(Entry::new(entry.message.clone()))).collect();
                }
                Fault::LosesTheLast if entries.len() > 1 => drop(entries.pop()),
                _ => {}
            }
            self.inside.append(&id, expected, entries).await
        })
    }
    fn clear<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move { self.inside.clear(&self.id(id)).await })
    }
    fn list(&self, skip: usize, limit: usize) -> BoxFuture<'_, Result<Vec<ConversationInfo>, Error>> {
        Box::pin(async move {
            let mut list = self.inside.list(skip, limit).await?;
            if matches!(self.fault, Fault::ListsBackwards) {
                list.reverse();
            }
            Ok(list)
        })
    }
    fn page<'a>(&'a self, id: &'a str, after: u64, limit: usize) -> BoxFuture<'a, Result<Vec<Arc<Entry>>, Error>> {
        Box::pin(async move {
            let early = u64::from(matches!(self.fault, Fault::PagesOneTooEarly));
            self.inside.page(&self.id(id), after.saturating_sub(early), limit).await
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_of_a_memory_is_found_out() {
    for (fault, promise) in [
        (Fault::IgnoresVersions, "a wrong expected version is a conflict"),
        (Fault::ForgetsIds, "the same append can be made again"),
        (Fault::MixesCase, "conversations do not touch each other"),
        (Fault::ListsBackwards, "a list has each conversation once"),
        (Fault::PagesOneTooEarly, "pages are pieces of the whole"),
        (Fault::SaysNothingIsNew, "a load tells what is new"),
        (Fault::LosesTheLast, "what comes back equals what went in"),
    ] {
        let broken = conformance::memory(async || Faulty { inside: InMemory::new(), fault }).await;
        let broken = broken.expect_err("the fault is found");
        assert!(broken.0.iter().any(|line| line.starts_with(promise)), "{fault:?}: {broken}");
    }
}
