//! The parts of the `cepa` command that others can use: its ready tools.

pub mod tools;
