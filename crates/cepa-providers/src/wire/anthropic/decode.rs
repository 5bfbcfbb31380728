//! The body of an answer that was not streamed.

use std::fmt::Display;

use cepa_core::{ChatResponse, Error, Origin, RawJson};
use serde::Deserialize;
use serde_json::Value;

use super::{received::Received, reply, usage::Counts};
use crate::wire::{failed, ids::ReplyIds, surrogates};

#[derive(Deserialize)]
struct Body {
    content: Option<RawJson>,
    stop_reason: Option<String>,
    usage: Option<Value>,
    error: Option<Value>,
}

/// The response in a body.
pub(super) fn decode(origin: &Origin, body: &[u8]) -> Result<ChatResponse, Error> {
    let text = String::from_utf8_lossy(body);
    let text = surrogates::whole(&text);
    let body: Body =
        serde_json::from_str(&text).map_err(|error| unreadable(origin, &error, &text).with_source(error))?;
    let Some(content) = body.content else {
        return Err(match body.error {
            Some(_) => failed::reported(origin, &text),
            None => unreadable(origin, "it has no content", &text),
        });
    };
    let blocks: Vec<RawJson> =
        content.read().map_err(|error| unreadable(origin, format!("its content is no list: {error}"), &text))?;
    let mut ids = ReplyIds::new();
    let pieces = blocks
        .into_iter()
        .map(|block| Received::read(block, &mut ids).map(|block| block.piece()))
        .collect::<Result<_, _>>()
        .map_err(|what| unreadable(origin, what, &text))?;
    let usage = Counts::of(body.usage.as_ref()).usage();
    Ok(reply::response(pieces, body.stop_reason.as_deref(), usage, origin))
}

pub(super) fn unreadable(origin: &Origin, why: impl Display, text: &str) -> Error {
    failed::unreadable(origin, "message of Anthropic's API", why, text)
}
