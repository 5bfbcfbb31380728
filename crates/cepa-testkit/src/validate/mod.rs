//! Judges of request bodies, one per dialect, written from the providers' published rules and not from our encoders.
//!
//! Each returns every rule that a body breaks; an empty list means that the provider would take it. The rules of a judge are the
//! list `rules::ALL` in its folder, each with its number and its source; `docs/conformance.md` shows them all with the tests
//! that show each one refusing.

pub mod anthropic;
pub mod gemini;
pub mod neutral;
pub mod openai_chat;
pub mod openai_responses;
mod rule;
mod shape;
#[cfg(test)]
mod trial;

use std::fmt;

pub use rule::Rule;

/// One rule that a body breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule's number: `OC-28`.
    pub id: &'static str,
    /// The name that the rule shares with its kin: `oa.…` for Chat Completions, `or.…` for Responses, `an.…` for Anthropic,
    /// `ge.…` for Gemini, `hist.…` for neutral messages.
    pub rule: &'static str,
    /// Where, as a path into the body.
    pub at: String,
    /// What stands there.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} at {}: {}", self.id, self.rule, self.at, self.what)
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
    fn add(&mut self, rule: &'static Rule, at: impl Into<String>, what: impl Into<String>) {
        self.0.push(Violation { id: rule.id, rule: rule.name, at: at.into(), what: what.into() });
    }
}
