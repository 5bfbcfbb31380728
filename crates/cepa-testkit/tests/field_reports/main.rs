//! What has gone wrong elsewhere (`docs/field-reports.md`), one row a report: conversations, replies and streams through every
//! dialect, judged by the testkit and by what the report itself asks for.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that fails panics"
)]

mod history;
mod ids;
mod parts;
mod providers;
mod replies;
mod requests;
mod story;
mod streams;
mod windows;
mod wires;
