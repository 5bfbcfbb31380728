//! The HTTP client against servers on this machine that behave, misbehave, and go away.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod bodies;
mod failures;
mod pool;
mod proxies;
mod requests;
mod server;
mod tls;
