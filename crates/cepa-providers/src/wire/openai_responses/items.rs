//! Single items as this wire writes them.

use std::borrow::Cow;

use bytes::Bytes;
use cepa_core::{Content, Error, Extra, Part, ToolCall, ToolMessage};

use super::media;
use crate::wire::{
    json::{self, Object},
    names::wire_name,
    openai_chat::messages::left_out,
    words::{BLANK, without_words},
};

/// Items with commas between them.
#[derive(Default)]
pub(super) struct Items(Vec<u8>);

impl Items {
    /// Where the next item goes.
    pub(super) fn begin(&mut self) -> &mut Vec<u8> {
        if !self.0.is_empty() {
            self.0.push(b',');
        }
        &mut self.0
    }

    pub(super) fn into_bytes(self) -> Bytes {
        self.0.into()
    }
}

/// A system message behind the first other message; nothing if it is blank.
pub(super) fn system(text: &str) -> Result<Items, Error> {
    let mut items = Items::default();
    if !text.trim().is_empty() {
        let mut object = message(items.begin(), "system")?;
        list(object.key("content"), [text], media::text_part)?;
        object.end();
    }
    Ok(items)
}

pub(super) fn user(content: &Content) -> Result<Items, Error> {
    let mut items = Items::default();
    let mut object = message(items.begin(), "user")?;
    let out = object.key("content");
    let sent: Vec<&Part> = match content {
        Content::Text(_) => Vec::new(),
        Content::Parts(parts) => parts.iter().filter(|part| !is_silent(part)).collect(),
    };
    match content {
        Content::Text(text) if !text.trim().is_empty() => list(out, [text.as_str()], media::text_part)?,
        _ if sent.is_empty() => list(out, [BLANK], media::text_part)?,
        Content::Text(_) | Content::Parts(_) => list(out, sent, media::part)?,
    }
    object.end();
    Ok(items)
}

fn is_silent(part: &Part) -> bool {
    match part {
        Part::Text(text) => text.trim().is_empty(),
        Part::Reasoning(_) => true,
        Part::Image(_) | Part::Audio(_) | Part::Document(_) | Part::Other(_) => false,
    }
}

/// What an assistant said, in the form without an id: the one with `output_text` wants the id that the provider gave it.
pub(super) fn assistant(out: &mut Vec<u8>, text: &str, phase: Option<&str>) -> Result<(), Error> {
    let mut object = message(out, "assistant")?;
    object.member("content", text)?;
    if let Some(phase) = phase {
        object.raw("phase", phase);
    }
    object.end();
    Ok(())
}

/// A call; `item` is the id of the item and what the provider put beside the call.
pub(super) fn call(
    out: &mut Vec<u8>,
    call: &ToolCall,
    call_id: &str,
    item: Option<(&str, &Extra)>,
) -> Result<(), Error> {
    let mut object = Object::start(out);
    object.member("type", "function_call")?;
    if let Some((id, _)) = item {
        object.member("id", id)?;
    }
    object.member("call_id", call_id)?;
    object.member("name", &*wire_name(&call.name))?;
    object.member("arguments", call.args.as_object_str())?;
    for (name, value) in item.into_iter().flat_map(|(_, extra)| extra) {
        object.foreign(name, value.as_str())?;
    }
    object.end();
    Ok(())
}

/// The result of a call: a text, or parts if there are media among them.
pub(super) fn result(message: &ToolMessage, call_id: &str) -> Result<Items, Error> {
    let mut items = Items::default();
    let mut object = Object::start(items.begin());
    object.member("type", "function_call_output")?;
    object.member("call_id", call_id)?;
    // An error without a word would read as a result.
    let words = without_words(message.status).filter(|_| message.content.text().trim().is_empty());
    let out = object.key("output");
    match &message.content {
        Content::Parts(parts)
            if parts.iter().any(|part| !matches!(part, Part::Text(_)) && media::is_sendable(part)) =>
        {
            let words = words.map(|words| Cow::Owned(Part::Text(words.to_owned())));
            let sent = parts.iter().filter(|part| !is_silent(part)).map(|part| match media::is_sendable(part) {
                true => Cow::Borrowed(part),
                false => Cow::Owned(Part::Text(left_out(part))),
            });
            list(out, words.into_iter().chain(sent), |out, part| media::part(out, &part))?;
        }
        content => match words {
            Some(words) => json::write(out, words)?,
            None => json::write(out, &*text(content))?,
        },
    }
    object.end();
    Ok(items)
}

/// A result's text; media that cannot be sent are named in it.
fn text(content: &Content) -> Cow<'_, str> {
    match content {
        Content::Text(text) => text.into(),
        Content::Parts(parts) => parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => Cow::Borrowed(text.as_str()),
                Part::Reasoning(_) => Cow::Borrowed(""),
                Part::Image(_) | Part::Audio(_) | Part::Document(_) | Part::Other(_) => left_out(part).into(),
            })
            .collect::<String>()
            .into(),
    }
}

fn message<'o>(out: &'o mut Vec<u8>, role: &str) -> Result<Object<'o>, Error> {
    let mut object = Object::start(out);
    object.member("type", "message")?;
    object.member("role", role)?;
    Ok(object)
}

/// A list; `write` writes one of its elements.
pub(super) fn list<T>(
    out: &mut Vec<u8>,
    all: impl IntoIterator<Item = T>,
    write: impl Fn(&mut Vec<u8>, T) -> Result<(), Error>,
) -> Result<(), Error> {
    out.push(b'[');
    for (place, one) in all.into_iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        write(out, one)?;
    }
    out.push(b']');
    Ok(())
}
