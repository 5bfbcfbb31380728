//! Conformance suites: what every memory and every store of turns must do, as checks that any of them can be put to.
//!
//! ```
//! use cepa_agent::InMemory;
//! use cepa_testkit::conformance;
//! # tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(async {
//! conformance::turn_store(async || InMemory::new()).await?;
//! # Ok::<(), conformance::Broken>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod durable;
mod memory;
mod trail;
mod turns;

use std::{fmt, sync::Arc};

use cepa_agent::{ChatMemory, TurnStore, Version};
use cepa_core::{BoxFuture, Entry, Error, ErrorKind, History};

/// The promises that were not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken(pub Vec<String>);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} promises are not kept:\n{}", self.0.len(), self.0.join("\n"))
    }
}

impl std::error::Error for Broken {}

type Outcome = Result<(), String>;
/// A promise and what tries it, on something fresh.
type Check<S> = (&'static str, fn(Arc<S>) -> BoxFuture<'static, Outcome>);

/// Checks the contract of [`ChatMemory`]; each check gets a fresh, empty memory.
///
/// # Errors
/// All promises that are not kept, each with what happened instead.
pub async fn memory<M: ChatMemory>(fresh: impl AsyncFn() -> M) -> Result<(), Broken> {
    let mut broken = Vec::new();
    for (promise, check) in memory::CHECKS {
        tell(&mut broken, promise, check(Arc::new(fresh().await)).await);
    }
    verdict(broken)
}

/// Checks the contracts of [`TurnStore`] and of the [`ChatMemory`] that it is.
///
/// # Errors
/// As [`memory()`].
pub async fn turn_store<S: TurnStore>(fresh: impl AsyncFn() -> S) -> Result<(), Broken> {
    let mut broken = Vec::new();
    for (promise, check) in memory::CHECKS {
        tell(&mut broken, promise, check(Arc::new(fresh().await)).await);
    }
    for (promise, check) in turns::CHECKS {
        tell(&mut broken, promise, check(Arc::new(fresh().await)).await);
    }
    verdict(broken)
}

/// Checks that what a store acknowledged is there when it is opened again. `open` opens the same place each time, which is
/// empty at first.
///
/// # Errors
/// As [`memory()`].
pub async fn durable<S: TurnStore>(open: impl AsyncFn() -> S) -> Result<(), Broken> {
    let mut broken = Vec::new();
    let written = durable::write(Arc::new(open().await)).await;
    match written {
        Ok(written) => tell(&mut broken, durable::PROMISE, written.compare(Arc::new(open().await)).await),
        Err(why) => tell(&mut broken, durable::PROMISE, Err(why)),
    }
    verdict(broken)
}

fn tell(broken: &mut Vec<String>, promise: &str, outcome: Outcome) {
    if let Err(why) = outcome {
        broken.push(format!("{promise}: {why}"));
    }
}

fn verdict(broken: Vec<String>) -> Result<(), Broken> {
    if broken.is_empty() { Ok(()) } else { Err(Broken(broken)) }
}

/// Fails a check with a text unless something holds.
macro_rules! ensure {
    ($holds:expr, $($text:tt)+) => {
        if !$holds {
            return Err(format!($($text)+));
        }
    };
}
use ensure;

/// A table of checks.
macro_rules! checks {
    ($store:ty: $($promise:literal => $check:path),+ $(,)?) => {
        &[$(($promise, |store: std::sync::Arc<$store>| Box::pin($check(store)))),+]
    };
}
use checks;

/// Something that the library must do and failed at.
fn fine<T>(what: &str, result: Result<T, Error>) -> Result<T, String> {
    result.map_err(|error| format!("{what} failed: {error}"))
}

/// Something that must fail with this kind.
fn refused<T: fmt::Debug>(what: &str, kind: ErrorKind, result: Result<T, Error>) -> Outcome {
    match result {
        Err(error) if error.kind() == kind => Ok(()),
        Err(error) => Err(format!("{what} must fail with {kind}, and failed with {error}")),
        Ok(value) => Err(format!("{what} must fail with {kind}, and gave {value:?}")),
    }
}

/// The entries as they can be compared: id, time, the exact JSON.
fn plain(entries: &[Arc<Entry>]) -> Vec<(Option<String>, i64, String)> {
    let json = |entry: &Entry| serde_json::to_string(&entry.message).unwrap_or_default();
    entries.iter().map(|entry| (entry.id.as_deref().map(str::to_owned), entry.created, json(entry))).collect()
}

fn entries_of(history: &History) -> Vec<Arc<Entry>> {
    history.iter().cloned().collect()
}

async fn whole(memory: &(impl ChatMemory + ?Sized), id: &str) -> Result<(Version, Vec<Arc<Entry>>), String> {
    let (version, history) = fine("load", cepa_agent::load_whole(memory, id).await)?;
    Ok((version, entries_of(&history)))
}
