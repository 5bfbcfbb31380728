//! The body of a reply that is not streamed.

use std::time::SystemTime;

use cepa_core::{ChatResponse, Error, ErrorKind, EventSink, Extra, Origin, RawJson};
use http::HeaderMap;
use serde_json::{Value, json};

use super::{assembly::Assembly, reply::Ending, usage};
use crate::{
    classify::{Failure, classify},
    wire::surrogates,
};

/// The response in a body.
///
/// # Errors
/// As [`Dialect::decode`](crate::wire::Dialect::decode).
pub(super) fn decode(origin: &Origin, body: &[u8]) -> Result<ChatResponse, Error> {
    let text = String::from_utf8_lossy(body);
    let text = surrogates::whole(text.trim_start_matches('\u{feff}').trim());
    let raw =
        RawJson::parse(&text).map_err(|error| unreadable(origin, &error.to_string(), &text).with_source(error))?;
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
        Some(failure(origin, &format!(r#"{{"error":{error}}}"#)))
    }
}

/// The error that a body or an event reports.
pub(super) fn failure(origin: &Origin, text: &str) -> Error {
    classify(&Failure {
        provider: &origin.provider,
        status: None,
        headers: &HeaderMap::new(),
        body: text,
        // There are no headers, so no date to compare it with.
        now: SystemTime::UNIX_EPOCH,
        key: None,
    })
}

/// The error in an event of type `error`: its members are those of the error, or hold it.
pub(super) fn failure_event(origin: &Origin, data: &str) -> Error {
    let event: Value = serde_json::from_str(data).unwrap_or_default();
    match event.get("error") {
        Some(error) if !error.is_null() => failure(origin, data),
        _ => {
            let member = |name: &str| event.get(name).cloned().unwrap_or_default();
            let error = json!({"message": member("message"), "code": member("code"), "param": member("param")});
            failure(origin, &json!({ "error": error }).to_string())
        }
    }
}

pub(super) fn unreadable(origin: &Origin, why: &str, text: &str) -> Error {
    let provider = &origin.provider;
    let start: String = text.chars().take(200).collect();
    let message = format!("the reply of {provider} is no response: {why}: {start}");
    Error::new(ErrorKind::Decode, message).with_provider(provider.clone())
}
