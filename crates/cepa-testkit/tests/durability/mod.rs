//! What the tests with real processes share: starting and killing children, reading what they left, judging it.
#![allow(dead_code, unused_imports, reason = "each of the tests uses its part")]

mod child;
mod judge;
mod left;
#[path = "../../src/bin/turn-child/program.rs"]
pub(crate) mod program;
#[path = "../../src/bin/turn-child/task.rs"]
pub(crate) mod task;

pub(crate) use child::{Child, Exit};
pub(crate) use judge::judge;
pub(crate) use left::{CallLeft, Left, Ran, TurnLeft};

/// The whole number in an environment variable.
pub(crate) fn number(variable: &str) -> Option<usize> {
    let value = std::env::var(variable).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{variable} is a whole number, not {value:?}")))
}
