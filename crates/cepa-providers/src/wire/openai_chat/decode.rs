//! The body of a reply that is not streamed.

use std::fmt::Display;

use cepa_core::{ChatResponse, Error, EventSink, Origin};
use serde::{Deserialize, de::IgnoredAny};

use super::{assembly::Assembly, shape::Body, tolerant::elements};
use crate::wire::{failed, surrogates};

/// The response in a body.
///
/// # Errors
/// As [`Dialect::decode`](crate::wire::Dialect::decode).
pub(super) fn decode(origin: &Origin, body: &[u8]) -> Result<ChatResponse, Error> {
    let text = surrogates::text(body);
    let text = text.trim_start_matches('\u{feff}').trim();
    let mut mended = String::new();
    let body = read(origin, text, &mut mended)?;
    let sink = EventSink::none();
    let mut assembly = Assembly::new(origin.clone());
    if let Some(usage) = body.usage {
        assembly.usage(usage, &sink);
    }
    let is_error = body.is_error();
    let choice = match body.choices.and_then(|choices| choices.0.into_iter().next()) {
        Some(choice) => choice,
        None if is_error => return Err(failed::reported(origin, text)),
        None => return Err(unreadable(origin, "it holds no choice", text)),
    };
    let failed = choice.message.is_none() || choice.finish_reason.0.as_deref() == Some("error");
    if let Some(error) = choice.error.or(body.error.filter(|_| failed)) {
        return Err(failed::reported(origin, &format!(r#"{{"error":{error}}}"#)));
    }
    match (choice.message.map(|message| *message).or(choice.delta), &choice.finish_reason.0) {
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

/// Reads a body or the data of a chunk; `mended` is where half characters in it are mended if need be.
pub(super) fn read<'a>(origin: &Origin, text: &'a str, mended: &'a mut String) -> Result<Body<'a>, Error> {
    // Structs can be read from arrays too; here an array is an error of Gemini's, or nothing we know.
    if text.starts_with('[') {
        return Err(if is_list_of_errors(text) {
            failed::reported(origin, text)
        } else {
            unreadable(origin, "it is an array", text)
        });
    }
    surrogates::read_in(text, mended).map_err(|error| unreadable(origin, &error, text).with_source(error))
}

fn is_list_of_errors(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Report {
        #[serde(default)]
        error: Option<IgnoredAny>,
    }
    let mut first = None;
    let read = elements(text, |element| {
        first.get_or_insert_with(|| {
            element.starts_with('{') && serde_json::from_str(element).is_ok_and(|report: Report| report.error.is_some())
        });
        Ok(())
    });
    read.is_ok() && first == Some(true)
}

fn unreadable(origin: &Origin, why: impl Display, text: &str) -> Error {
    failed::unreadable(origin, "chat completion", why, text)
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
