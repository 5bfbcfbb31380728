//! The body of an answer that was not streamed.

use cepa_core::{ChatResponse, Error, ErrorKind, Origin, RawJson};
use http::HeaderMap;
use serde::Deserialize;
use serde_json::Value;

use super::{received::Received, reply, usage::Counts};
use crate::{
    classify::{Failure, classify},
    wire::{ids::ReplyIds, surrogates},
};

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
    let bad = |what: String| Error::new(ErrorKind::Decode, what).with_provider(origin.provider.clone());
    let body: Body = serde_json::from_str(&text).map_err(|error| {
        let begin: String = text.chars().take(200).collect();
        bad(format!("the answer is not a message of Anthropic's API: {error}: {begin}"))
    })?;
    let Some(content) = body.content else {
        return Err(match body.error {
            Some(_) => reported(origin, &text),
            None => bad("the answer has no content".to_owned()),
        });
    };
    let blocks: Vec<RawJson> = content.read().map_err(|error| bad(format!("the content is not a list: {error}")))?;
    let mut ids = ReplyIds::new();
    let pieces = blocks
        .into_iter()
        .map(|block| Received::read(block, &mut ids).map(|block| block.piece()))
        .collect::<Result<_, _>>()
        .map_err(bad)?;
    let usage = Counts::of(body.usage.as_ref()).usage();
    Ok(reply::response(pieces, body.stop_reason.as_deref(), usage, origin))
}

/// An error object that came where a reply was due, behind a status that said all was well.
pub(super) fn reported(origin: &Origin, body: &str) -> Error {
    let headers = HeaderMap::new();
    let now = std::time::SystemTime::UNIX_EPOCH;
    classify(&Failure { provider: &origin.provider, status: None, headers: &headers, body, now, key: None })
}
