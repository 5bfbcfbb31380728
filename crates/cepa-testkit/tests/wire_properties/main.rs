//! What holds for every conversation and both wires: what leaves is legal, nothing is lost, and bytes stay as they were.

#![allow(clippy::expect_used, clippy::panic, reason = "a test")]

mod any_history;
mod long_history;
mod provider_switch;
mod windows;
mod wires;
