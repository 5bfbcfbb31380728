//! The body of a reply that is not streamed.

use std::fmt::Display;

use cepa_core::{ChatResponse, Error, EventSink, Origin};

use super::{assembly::Assembly, shape::Chunk};
use crate::wire::{failed, surrogates};

/// The response in a body. A list of chunks is one too: so streams come that were not asked for as events.
///
/// # Errors
/// As [`Dialect::decode`](crate::wire::Dialect::decode).
pub(super) fn decode(origin: &Origin, body: &[u8]) -> Result<ChatResponse, Error> {
    let text = String::from_utf8_lossy(body);
    let text = text.trim_start_matches('\u{feff}').trim();
    let chunks: Vec<Chunk> = match text.starts_with('[') {
        true => serde_json::from_str(&surrogates::whole(text)).map_err(|error| unreadable(origin, &error, text))?,
        false => vec![read(origin, text)?],
    };
    let mut assembly = Assembly::new(origin.clone());
    for chunk in chunks {
        if let Some(error) = &chunk.error {
            return Err(failed::reported(origin, &format!(r#"{{"error":{error}}}"#)));
        }
        assembly.chunk(chunk, 0, &EventSink::none())?;
    }
    if !assembly.is_begun() {
        return Err(unreadable(origin, "it holds no candidate", text));
    }
    let partial = assembly.text().to_owned();
    assembly.finish().map_err(|error| if partial.is_empty() { error } else { error.with_partial_text(partial) })
}

/// Reads a body or the data of a chunk.
pub(super) fn read(origin: &Origin, text: &str) -> Result<Chunk, Error> {
    // Structs can be read from lists too; here a list is none.
    if !text.starts_with('{') {
        return Err(unreadable(origin, "it is no object", text));
    }
    // Parts are kept as the text they are, so half characters are mended before.
    serde_json::from_str(&surrogates::whole(text)).map_err(|error| unreadable(origin, &error, text).with_source(error))
}

fn unreadable(origin: &Origin, why: impl Display, text: &str) -> Error {
    failed::unreadable(origin, "answer of generateContent", why, text)
}
