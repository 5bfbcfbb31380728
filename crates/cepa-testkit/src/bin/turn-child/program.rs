//! The programs of the kill matrix: what the model says round by round, and which tools it calls.
//!
//! The tests that start children include this file too: they judge by it.

use serde::{Deserialize, Serialize};

/// What a turn does whose message begins with `go`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Program {
    /// One call that must not run twice.
    OneCall,
    /// Three calls in a batch: two that read, side by side, and one that must not run twice.
    Batch,
    /// Calls side by side that must not run twice, then one that may.
    Concurrent,
    /// Two batches.
    TwoBatches,
    /// A call that a person decides on, and one that waits with it.
    Sensitive,
    /// A call that fails until a person has repaired something.
    Environment,
    /// A call whose result is the answer.
    ReturnDirect,
    /// A result that is cut for the model, which then reads more of it.
    CutResult,
    /// A reply that is cut, so that its call must not run.
    CutReply,
    /// The first model call fails.
    NoReply,
    /// The model call after the results fails.
    NoAnswer,
}

/// A call of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Called {
    /// The tool.
    pub(crate) tool: &'static str,
    /// A number that tells the call from all others of the program: its only argument.
    pub(crate) n: u32,
}

/// What the model does when it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// It makes these calls.
    Calls(Vec<Called>),
    /// It makes these calls, and the reply breaks off.
    Cut(Vec<Called>),
    /// It answers.
    Answer,
    /// It fails.
    Failure,
}

impl Program {
    /// What the model does in the round with this number, from 0.
    pub(crate) fn round(self, round: usize) -> Round {
        let calls = |calls: &[(&'static str, u32)]| calls.iter().map(|&(tool, n)| Called { tool, n }).collect();
        match (self, round) {
            (Self::OneCall, 0) => Round::Calls(calls(&[("once", 1)])),
            (Self::Batch, 0) => Round::Calls(calls(&[("look", 1), ("look", 2), ("once", 3)])),
            (Self::Concurrent, 0) => Round::Calls(calls(&[("ring", 1), ("ring", 2), ("put", 3)])),
            (Self::TwoBatches, 0) => Round::Calls(calls(&[("put", 1), ("once", 2)])),
            (Self::TwoBatches, 1) => Round::Calls(calls(&[("once", 3)])),
            (Self::Sensitive, 0) => Round::Calls(calls(&[("pay", 1), ("once", 2)])),
            (Self::Environment, 0) => Round::Calls(calls(&[("mount", 1), ("put", 2)])),
            (Self::ReturnDirect, 0) => Round::Calls(calls(&[("direct", 1)])),
            (Self::CutResult, 0) => Round::Calls(calls(&[("long", 1)])),
            (Self::CutResult, 1) => Round::Calls(calls(&[("read_result", 2)])),
            (Self::CutReply, 0) => Round::Cut(calls(&[("once", 1)])),
            (Self::NoAnswer, 0) => Round::Calls(calls(&[("once", 1)])),
            (Self::NoReply, 0) | (Self::NoAnswer, 1) => Round::Failure,
            _ => Round::Answer,
        }
    }
}

/// What the loop must know of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// It must not run twice.
    Once,
    /// As [`Manner::Once`], and it may run beside others.
    OnceConcurrent,
    /// As [`Manner::Once`], and a person decides.
    OnceSensitive,
    /// As [`Manner::Once`], and its result is the answer.
    OnceDirect,
    /// It may run twice under one key.
    Idempotent,
    /// It only reads.
    ReadOnly,
}

/// The tools, by name.
pub(crate) const TOOLS: [(&str, Manner); 8] = [
    ("once", Manner::Once),
    ("ring", Manner::OnceConcurrent),
    ("pay", Manner::OnceSensitive),
    ("mount", Manner::Once),
    ("direct", Manner::OnceDirect),
    ("long", Manner::Once),
    ("put", Manner::Idempotent),
    ("look", Manner::ReadOnly),
];
