//! What every Rust client shares: the work, and how its cost is read.
//!
//! A client implements [`Client`]; the scenarios are written once, over it, so that everybody does the same. A run prints
//! one JSON line. A binary that uses `stats_alloc` as its allocator also counts allocations.

mod cost;
mod scenarios;
mod wal;
mod work;

use std::{error, future::Future};

pub use crate::{
    scenarios::run,
    work::{ADD_SCHEMA, SYSTEM, Work, tool_name, tools_json},
};

/// What a client fails with.
pub type Error = Box<dyn error::Error + Send + Sync>;
/// What a client returns.
pub type Result<T> = std::result::Result<T, Error>;

/// One way of doing the work.
pub trait Client: Clone + Send + Sync + Sized + 'static {
    /// A conversation: what has to be held between two turns.
    type Talk: Send + 'static;

    /// An agent whose model has this name (the mock server's script), as the work wants it.
    fn new(work: &Work, model: &str) -> impl Future<Output = Result<Self>> + Send;

    /// A new conversation.
    fn open(&self, id: &str) -> impl Future<Output = Result<Self::Talk>> + Send;

    /// One turn: from this message to the answer's text.
    fn turn(&self, talk: &mut Self::Talk, text: &str) -> impl Future<Output = Result<String>> + Send;

    /// One streamed turn: how many pieces of text came.
    fn stream(&self, talk: &mut Self::Talk, text: &str) -> impl Future<Output = Result<usize>> + Send;

    /// How many bytes of JSON the client would store of a conversation, if its form differs from what is sent.
    fn stored_bytes(&self, _talk: &Self::Talk) -> impl Future<Output = Result<Option<usize>>> + Send {
        async { Ok(None) }
    }
}

/// Runs a client's scenario, as the command line tells it, on a runtime of one thread.
pub fn main<C: Client>() -> Result<()> {
    let work = Work::from_args()?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run::<C>(&work))
}
