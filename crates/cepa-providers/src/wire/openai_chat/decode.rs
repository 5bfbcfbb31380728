//! The body of a reply that is not streamed.

use std::time::SystemTime;

use cepa_core::{ChatResponse, Error, ErrorKind, EventSink, Origin};
use http::HeaderMap;
use serde_json::Value;

use super::{assembly::Assembly, shape::Body};
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
    let text = text.trim_start_matches('\u{feff}').trim();
    let body = read(origin, text)?;
    let sink = EventSink::none();
    let mut assembly = Assembly::new(origin.clone());
    if let Some(usage) = &body.usage {
        assembly.usage(usage, &sink);
    }
    let choice = match body.choices.into_iter().flatten().next() {
        Some(choice) => choice,
        None if body.error.is_some() || body.object.0.as_deref() == Some("error") => return Err(failure(origin, text)),
        None => return Err(unreadable(origin, "it holds no choice", text)),
    };
    let failed = choice.message.is_none() || choice.finish_reason.0.as_deref() == Some("error");
    if let Some(error) = choice.error.or(body.error.filter(|_| failed)) {
        return Err(failure(origin, &format!(r#"{{"error":{error}}}"#)));
    }
    match (choice.message.or(choice.delta), &choice.finish_reason.0) {
        (Some(message), _) => assembly.message(message, &sink)?,
        // A filter that lets nothing through.
        (None, Some(_)) => {}
        (None, None) => return Err(unreadable(origin, "its choice holds no message", text)),
    }
    if let Some(reason) = choice.finish_reason.0 {
        assembly.ended(reason);
    }
    let partial = assembly.text().to_owned();
    assembly.finish(&sink).map_err(|error| if partial.is_empty() { error } else { error.with_partial_text(partial) })
}

/// Reads a body or the data of a chunk.
pub(super) fn read(origin: &Origin, text: &str) -> Result<Body, Error> {
    // Structs can be read from arrays too; here an array is an error of Gemini's, or nothing we know.
    if text.starts_with('[') {
        let is_error = serde_json::from_str::<Value>(text).is_ok_and(|list| list.pointer("/0/error").is_some());
        return Err(if is_error { failure(origin, text) } else { unreadable(origin, "it is an array", text) });
    }
    surrogates::read(text).map_err(|error| unreadable(origin, &error.to_string(), text).with_source(error))
}

/// The error that a body or a chunk reports.
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

pub(super) fn unreadable(origin: &Origin, why: &str, text: &str) -> Error {
    let provider = &origin.provider;
    let start: String = text.chars().take(200).collect();
    let message = format!("the reply of {provider} is no chat completion: {why}: {start}");
    Error::new(ErrorKind::Decode, message).with_provider(provider.clone())
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
