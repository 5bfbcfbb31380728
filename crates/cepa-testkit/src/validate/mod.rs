//! Judges of request bodies, one per dialect, written from the providers' published rules and not from our encoders.
//!
//! Each returns every rule that a body breaks; an empty list means that the provider would take it.

pub mod anthropic;
pub mod gemini;
pub mod neutral;
pub mod openai_chat;
pub mod openai_responses;
mod shape;

use std::fmt;

/// One rule that a body breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule's name: `oa.…` for Chat Completions, `or.…` for Responses, `an.…` for Anthropic, `ge.…` for Gemini, `hist.…` for neutral messages.
    pub rule: &'static str,
    /// Where, as a path into the body.
    pub at: String,
    /// What stands there.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: {}", self.rule, self.at, self.what)
    }
}

/// All violations as one text, one a line; for the message of an assertion.
pub fn list(violations: &[Violation]) -> String {
    violations.iter().map(Violation::to_string).collect::<Vec<_>>().join("\n")
}

/// Collects violations.
#[derive(Default)]
struct Report(Vec<Violation>);

impl Report {
    fn add(&mut self, rule: &'static str, at: impl Into<String>, what: impl Into<String>) {
        self.0.push(Violation { rule, at: at.into(), what: what.into() });
    }
}
