//! The body of a reply that is not streamed.

use std::fmt::Display;

use cepa_core::{ChatResponse, Error, EventSink, Origin};
use serde_json::value::RawValue;

use super::{assembly::Assembly, reply::Ending, usage};
use crate::wire::{failed, pick, surrogates};

/// The response in a body.
///
/// # Errors
/// As [`Dialect::decode`](crate::wire::Dialect::decode).
pub(super) fn decode(origin: &Origin, body: &[u8]) -> Result<ChatResponse, Error> {
    let text = surrogates::text(body);
    let text = surrogates::whole(text.trim_start_matches('\u{feff}').trim());
    serde_json::from_str::<&RawValue>(&text).map_err(|error| unreadable(origin, &error, &text).with_source(error))?;
    let whole = Whole::read(&text).ok_or_else(|| unreadable(origin, "it is no object", &text))?;
    let sink = EventSink::none();
    let mut assembly = Assembly::new(origin.clone());
    let output = whole.output.map(|output| assembly.output(output.get(), &sink));
    let partial = assembly.text().to_owned();
    let finish = || match (whole.failure(origin), output) {
        // What was said before it failed stays.
        (Some(failure), _) => Err(failure),
        (None, Some(taken)) => taken.and_then(|()| assembly.finish(whole.ending, &sink)),
        (None, None) => Err(unreadable(origin, "it holds no output", &text)),
    };
    finish().map_err(|error| if partial.is_empty() { error } else { error.with_partial_text(partial) })
}

/// The members of a response that mean something; all may be missing.
pub(super) struct Whole<'a> {
    /// A list.
    pub(super) output: Option<&'a RawValue>,
    pub(super) ending: Ending,
    error: Option<&'a RawValue>,
}

impl<'a> Whole<'a> {
    /// A response; `None` if it is no object.
    pub(super) fn read(json: &'a str) -> Option<Self> {
        let [output, status, details, usage, error] =
            pick::members(json, ["output", "status", "incomplete_details", "usage", "error"])?;
        let [reason] = details.and_then(|raw| pick::members(raw.get(), ["reason"])).unwrap_or_default();
        Some(Self {
            output: output.filter(|raw| raw.get().starts_with('[')),
            ending: Ending {
                status: status.and_then(pick::text),
                reason: reason.and_then(pick::text),
                usage: usage.and_then(|raw| usage::read(raw.get())),
            },
            error,
        })
    }

    /// The error that it reports.
    pub(super) fn failure(&self, origin: &Origin) -> Option<Error> {
        Some(failed::reported(origin, &format!(r#"{{"error":{}}}"#, self.error?)))
    }
}

pub(super) fn unreadable(origin: &Origin, why: impl Display, text: &str) -> Error {
    failed::unreadable(origin, "response", why, text)
}
