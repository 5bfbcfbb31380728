//! The result of a call as a function's response.
//!
//! "Use `output` key to specify function output and `error` key to specify error details"
//! (<https://ai.google.dev/api/caching#FunctionResponse>).

use bytes::Bytes;
use cepa_core::{Content, Error, Part, ToolMessage};

use super::{
    Generation,
    media::{self, Sendable},
    part::{NOTHING, Parts},
};
use crate::wire::{json::Object, words::without_words};

/// The response. Media that it cannot hold are announced in it; see [`lifted`].
pub(super) fn write(
    id: Option<&str>,
    name: &str,
    message: &ToolMessage,
    generation: Generation,
) -> Result<Bytes, Error> {
    let (text, inside) = said(&message.content, generation);
    let words = without_words(message.status);
    let (key, text) = match words {
        Some(words) if text.trim().is_empty() => ("error", words),
        Some(_) => ("error", &*text),
        None => ("output", &*text),
    };
    let mut parts = Parts::default();
    parts.part(&NOTHING, |part| {
        let mut response = Object::start(part.key("functionResponse"));
        if let Some(id) = id {
            response.member("id", id)?;
        }
        response.member("name", name)?;
        let mut object = Object::start(response.key("response"));
        object.member(key, text)?;
        object.end();
        if !inside.is_empty() {
            let out = response.key("parts");
            for (place, media) in inside.iter().enumerate() {
                out.push(if place == 0 { b'[' } else { b',' });
                let mut one = Object::start(out);
                media.write(&mut one)?;
                one.end();
            }
            out.push(b']');
        }
        response.end();
        Ok(())
    })?;
    Ok(parts.into_bytes())
}

/// The media that stand behind the responses of a batch; empty if there are none.
pub(super) fn lifted(name: &str, message: &ToolMessage, generation: Generation) -> Result<Bytes, Error> {
    let mut parts = Parts::default();
    for part in parts_of(&message.content) {
        if let Place::Behind(media) = place(part, generation) {
            if parts.is_empty() {
                parts.text(&format!("(media of the result of {name})"), &NOTHING)?;
            }
            parts.media(&media, &NOTHING)?;
        }
    }
    Ok(parts.into_bytes())
}

/// Where a part of a result goes.
enum Place<'a> {
    Text(&'a str),
    Inside(Sendable<'a>),
    Behind(Sendable<'a>),
    /// The API does not take it: it was the tool's choice, and must not end the conversation.
    Nowhere,
    Unsaid,
}

fn place(part: &Part, generation: Generation) -> Place<'_> {
    match part {
        Part::Text(text) => Place::Text(text),
        Part::Reasoning(_) => Place::Unsaid,
        Part::Image(_) | Part::Audio(_) | Part::Document(_) | Part::Other(_) => match media::of(part) {
            Ok(Some(media)) if generation == Generation::From3 && media.fits_a_response() => Place::Inside(media),
            Ok(Some(media)) => Place::Behind(media),
            Ok(None) | Err(_) => Place::Nowhere,
        },
    }
}

fn parts_of(content: &Content) -> &[Part] {
    match content {
        Content::Text(_) => &[],
        Content::Parts(parts) => parts,
    }
}

/// The text of a response, and its media.
fn said(content: &Content, generation: Generation) -> (String, Vec<Sendable<'_>>) {
    if let Content::Text(text) = content {
        return (text.clone(), Vec::new());
    }
    let (mut text, mut inside) = (String::new(), Vec::new());
    for part in parts_of(content) {
        let note = match place(part, generation) {
            Place::Text(said) => {
                text.push_str(said);
                continue;
            }
            Place::Inside(media) => {
                inside.push(media);
                continue;
            }
            Place::Behind(_) => format!("[{}: below]", media::describe(part)),
            Place::Nowhere => media::left_out(part),
            Place::Unsaid => continue,
        };
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&note);
    }
    (text, inside)
}
