//! A request as pieces of JSON: settings first, then the messages, whose bytes never change once they are sent (W2).

use std::sync::Arc;

use bytes::Bytes;
use cepa_core::{ChatRequest, Error, pairing};

use super::{
    AnthropicMessages,
    block::{Block, Blocks},
    cache, params, tools, turns,
};
use crate::wire::json::{Object, Pieces};

/// The body of a request. `model` always stands first, so that what follows begins with a comma.
pub(super) fn encode(dialect: &AnthropicMessages, request: &ChatRequest) -> Result<Vec<Bytes>, Error> {
    let options = &request.options;
    let history = pairing::heal(&request.messages);
    let conversation = turns::of(dialect, request, &history)?;
    let params = params::of(dialect, request, conversation.begun_without_thinking)?;
    let cached = options.cache == Some(true);
    // What the caller puts into the body himself replaces ours.
    let ours = |name: &str| !options.extra.contains_key(name);

    let mut body = Pieces::new();
    let mut object = Object::start(body.tail());
    if ours("model") {
        object.member("model", &*dialect.origin.model)?;
    }
    if ours("max_tokens") {
        object.member("max_tokens", &params.max_tokens)?;
    }
    for (name, value) in params.others.iter().filter(|(name, _)| ours(name)) {
        object.member(name, value)?;
    }
    if request.events.is_wanted() && ours("stream") {
        object.member("stream", &true)?;
    }
    for (name, value) in &options.extra {
        object.foreign(name, &value.to_string())?;
    }
    // From here on the object is written in pieces: it has a member, and is closed at the end.
    if ours("tools") {
        list(&mut body, "tools", &tools::encode(&request.tools)?, cached);
    }
    if ours("system") {
        list(&mut body, "system", &system(&conversation.system)?, cached);
    }
    if ours("messages") {
        body.tail().extend_from_slice(b",\"messages\":[");
        let marks = if cached { conversation.user_turns } else { Vec::new() };
        cache::marked_at(&mut body, conversation.messages, &marks);
        body.tail().push(b']');
    }
    body.tail().push(b'}');
    Ok(body.finish())
}

/// A member that is a list; none if it would be empty.
fn list(body: &mut Pieces, name: &'static str, items: &Bytes, cached: bool) {
    if items.is_empty() {
        return;
    }
    let out = body.tail();
    out.extend_from_slice(format!(",\"{name}\":[").as_bytes());
    if cached {
        cache::marked(body, items)
    } else {
        body.share(items.clone())
    }
    body.tail().push(b']');
}

fn system(texts: &[Arc<str>]) -> Result<Bytes, Error> {
    let mut blocks = Blocks::default();
    texts.iter().try_for_each(|text| blocks.push(&Block::text(&**text)))?;
    Ok(blocks.into_bytes())
}
