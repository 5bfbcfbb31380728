//! The body of a reply that is not streamed.

use std::fmt::Display;

use cepa_core::{ChatResponse, Error, EventSink, Origin};

use serde::de::IgnoredAny;

use super::{assembly::Assembly, shape::Chunk};
use crate::wire::{failed, pick, surrogates};

/// The response in a body. A list of chunks is one too: so streams come that were not asked for as events.
///
/// # Errors
/// As [`Dialect::decode`](crate::wire::Dialect::decode).
pub(super) fn decode(origin: &Origin, body: &[u8]) -> Result<ChatResponse, Error> {
    let text = surrogates::text(body);
    let text = text.trim_start_matches('\u{feff}').trim();
    let mut assembly = Assembly::new(origin.clone());
    let taken = take(&mut assembly, origin, text, &EventSink::none());
    let partial = assembly.text().to_owned();
    let finish = || {
        taken?;
        if !assembly.is_begun() {
            return Err(unreadable(origin, "it holds no candidate", text));
        }
        assembly.finish()
    };
    finish().map_err(|error| if partial.is_empty() { error } else { error.with_partial_text(partial) })
}

/// Takes a body, or the data of an event: a chunk, or a list of chunks.
///
/// # Errors
/// `decode`, or what an error object in it says.
pub(super) fn take(assembly: &mut Assembly, origin: &Origin, text: &str, sink: &EventSink) -> Result<(), Error> {
    // Parts are kept as the text they are, so half characters are mended before.
    let text = surrogates::whole(text);
    let mut one = |json: &str| {
        // Structs can be read from lists too; here a list is none.
        if !json.starts_with('{') {
            return Err(unreadable(origin, "it is no object", json));
        }
        let chunk: Chunk<'_> =
            serde_json::from_str(json).map_err(|error| unreadable(origin, &error, json).with_source(error))?;
        match chunk.error {
            Some(_) => Err(failed::reported(origin, json)),
            None => assembly.chunk(&chunk, sink),
        }
    };
    if !text.starts_with('[') {
        return one(&text);
    }
    serde_json::from_str::<IgnoredAny>(&text).map_err(|error| unreadable(origin, &error, &text).with_source(error))?;
    pick::each(&text, |chunk| one(chunk.get())).map(|_| ())
}

pub(super) fn unreadable(origin: &Origin, why: impl Display, text: &str) -> Error {
    failed::unreadable(origin, "answer of generateContent", why, text)
}
