//! Hostile bytes: what servers send, broken in every way that comes to mind, for every reader of it.
//!
//! Nothing may panic, keep more than came, or depend on how the network cut a body; every failure is a typed error. Runs on
//! the stable toolchain, for a moment in each `cargo test` and for as long as one likes with `cargo xtask fuzz MINUTES`
//! (which sets `CEPA_FUZZ_SECONDS` for each target; `CEPA_FUZZ_SEED` begins elsewhere). A failure prints its input; put it
//! into `corpus/`, where it is tried first ever after.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that fails panics")]

mod mutate;
mod replies;
mod rng;
mod run;
mod small;
