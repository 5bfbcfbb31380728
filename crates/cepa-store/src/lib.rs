//! Durable stores of cepa: conversations, turns and pauses in an SQLite file.
//!
//! ```
//! # use std::sync::Arc;
//! use cepa_agent::{ChatMemory, Version, load_whole};
//! use cepa_core::{Entry, Message};
//! use cepa_store::Sqlite;
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("chat.db");
//! let store = Sqlite::open(&path)?;
//! store.append("c", Version::default(), vec![Arc::new(Entry::new(Message::user("hi")))]).await?;
//! drop(store);
//!
//! let store = Sqlite::open(&path)?;
//! assert_eq!(load_whole(&store, "c").await?.1.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod audit;
mod calls;
mod conversations;
mod failure;
mod kept;
mod migrate;
mod names;
mod open;
mod pauses;
mod rows;
mod schema;
mod sqlite;
mod transaction;
mod turns;
mod worker;

pub use sqlite::{Options, Sqlite, Synchronous};
