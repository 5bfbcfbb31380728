//! Compares what the driver saw of a case with what the case expects.

pub(crate) mod checks;
pub(crate) mod driver;
pub(crate) mod expect;
#[cfg(test)]
mod expect_tests;
pub(crate) mod history;
pub(crate) mod invariants;
pub(crate) mod json;
pub(crate) mod outcome;
pub(crate) mod request;
pub(crate) mod said;
pub(crate) mod scenario;
pub(crate) mod shape;
pub(crate) mod target;
pub(crate) mod written;

use expect::{Difference, Differences};
use json::Json;
use target::Target;

/// Judges the observation of a case by its kind.
pub(crate) fn judge(case: &Json, observed: &Json) -> Differences {
    match case.get("kind").and_then(Json::text) {
        Some("response") => outcome::response(case, observed),
        Some("stream") => outcome::stream(case, observed),
        Some("request") => request::request(case, observed),
        Some("history") => history::history(case, observed),
        Some("scenario") => scenario::scenario(case, observed),
        kind => vec![Difference::new("kind", "a known kind", format!("{kind:?}"))],
    }
}

fn target_and_expectation(case: &Json) -> (Target<'_>, &Json) {
    (Target::of(case), case.get("expect").unwrap_or(&Json::Null))
}
