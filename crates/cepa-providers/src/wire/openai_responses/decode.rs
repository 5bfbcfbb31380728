//! The body of a reply that is not streamed.

use std::fmt::Display;

use cepa_core::{ChatResponse, Error, EventSink, Extra, Origin, RawJson};
use serde_json::Value;

use super::{assembly::Assembly, reply::Ending, usage};
use crate::wire::{failed, surrogates};

/// The response in a body.
///
/// # Errors
/// As [`Dialect::decode`](crate::wire::Dialect::decode).
pub(super) fn decode(origin: &Origin, body: &[u8]) -> Result<ChatResponse, Error> {
    let text = String::from_utf8_lossy(body);
    let text = surrogates::whole(text.trim_start_matches('\u{feff}').trim());
    let raw = RawJson::parse(&text).map_err(|error| unreadable(origin, &error, &text).with_source(error))?;
    let whole = Whole::read(&raw).ok_or_else(|| unreadable(origin, "it is no object", &text))?;
    let sink = EventSink::none();
    let mut assembly = Assembly::new(origin.clone());
    match (whole.failure(origin), whole.output) {
        (Some(failure), _) => return Err(failure),
        (None, Some(output)) => assembly.output(output, &sink)?,
        (None, None) => return Err(unreadable(origin, "it holds no output", &text)),
    }
    let partial = assembly.text().to_owned();
    assembly
        .finish(whole.ending, &sink)
        .map_err(|error| if partial.is_empty() { error } else { error.with_partial_text(partial) })
}

/// The members of a response that mean something; all may be missing.
pub(super) struct Whole {
    pub(super) output: Option<Vec<RawJson>>,
    pub(super) ending: Ending,
    error: Option<RawJson>,
}

impl Whole {
    /// A response; `None` if it is no object.
    pub(super) fn read(raw: &RawJson) -> Option<Self> {
        let members: Extra = raw.read().ok()?;
        let given = |name: &str| members.get(name).filter(|value| value.as_str() != "null");
        let word = |name: &str| given(name)?.read::<String>().ok();
        let details = given("incomplete_details").and_then(|raw| raw.read::<Value>().ok());
        Some(Self {
            output: given("output").and_then(|raw| raw.read().ok()),
            ending: Ending {
                status: word("status"),
                reason: details.and_then(|details| Some(details.get("reason")?.as_str()?.to_owned())),
                usage: given("usage").and_then(usage::read),
            },
            error: given("error").cloned(),
        })
    }

    /// The error that it reports.
    pub(super) fn failure(&self, origin: &Origin) -> Option<Error> {
        let error = self.error.as_ref()?;
        Some(failed::reported(origin, &format!(r#"{{"error":{error}}}"#)))
    }
}

pub(super) fn unreadable(origin: &Origin, why: impl Display, text: &str) -> Error {
    failed::unreadable(origin, "response", why, text)
}
