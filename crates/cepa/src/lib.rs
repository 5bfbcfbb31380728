//! cepa: an agent framework with a kernel of two primitives in onion filters. What users add to their `Cargo.toml`.
//!
//! Everything of `cepa-core` and `cepa-agent` is here by name; model clients are in [`providers`], the SQLite store is
//! [`Sqlite`].

pub use cepa_agent::*;
pub use cepa_core::*;
#[cfg(feature = "macros")]
pub use cepa_macros::tool;
#[cfg(feature = "http")]
pub use cepa_providers as providers;
#[cfg(feature = "sqlite")]
pub use cepa_store::{Options as SqliteOptions, Sqlite, Synchronous};
