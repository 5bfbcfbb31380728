//! The body of an answer that was not streamed.

use std::fmt::Display;

use cepa_core::{ChatResponse, Error, Origin};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{received::Received, reply, usage::Counts};
use crate::wire::{caps::check_items, failed, ids::ReplyIds, pick, surrogates};

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    stop_reason: Option<String>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// The response in a body.
pub(super) fn decode(origin: &Origin, body: &[u8]) -> Result<ChatResponse, Error> {
    let text = surrogates::text(body);
    let text = surrogates::whole(&text);
    let body: Body<'_> =
        serde_json::from_str(&text).map_err(|error| unreadable(origin, &error, &text).with_source(error))?;
    let Some(content) = body.content else {
        return Err(match body.error {
            Some(_) => failed::reported(origin, &text),
            None => unreadable(origin, "it has no content", &text),
        });
    };
    let (mut ids, mut pieces) = (ReplyIds::new(), Vec::new());
    let is_list = pick::each(content.get(), |block| {
        check_items(pieces.len() + 1, "blocks")?;
        let block = pick::keep(block).ok_or_else(|| unreadable(origin, "a block is not JSON", &text))?;
        let block = Received::read(block, &mut ids).map_err(|what| unreadable(origin, what, &text))?;
        pieces.push(block.piece());
        Ok(())
    });
    if !is_list.map_err(|error| error.with_provider(origin.provider.clone()))? {
        return Err(unreadable(origin, "its content is no list", &text));
    }
    let usage = Counts::of(body.usage).usage();
    Ok(reply::response(pieces, body.stop_reason.as_deref(), usage, origin))
}

pub(super) fn unreadable(origin: &Origin, why: impl Display, text: &str) -> Error {
    failed::unreadable(origin, "message of Anthropic's API", why, text)
}
