//! Single messages as this wire writes them.

use std::borrow::Cow;

use cepa_core::{AssistantMessage, Content, Error, Part, ToolCall, ToolMessage, UserMessage};

use super::{NullContent, OpenAiChat, ReplayReasoning, media, replay};
use crate::wire::{json::Object, names::wire_name, words::without_words};

/// A system message's text.
///
/// # Errors
/// `invalid_input` if it holds anything but text.
pub(in crate::wire) fn system_text(content: &Content) -> Result<Cow<'_, str>, Error> {
    if let Content::Parts(parts) = content
        && let Some(part) = parts.iter().find(|part| !matches!(part, Part::Text(_) | Part::Reasoning(_)))
    {
        let what = media::describe(part);
        return Err(media::refused(format!("a system message holds text only, not {what}: put it in a user message")));
    }
    Ok(content.text())
}

pub(super) fn system(out: &mut Vec<u8>, text: &str) -> Result<(), Error> {
    plain(out, "system", text)
}

/// What the assistant says where a provider wants it to speak and it did not.
pub(super) fn no_reply(out: &mut Vec<u8>) -> Result<(), Error> {
    plain(out, "assistant", "(no reply)")
}

pub(super) fn user_text(out: &mut Vec<u8>, text: &str) -> Result<(), Error> {
    plain(out, "user", text)
}

fn plain(out: &mut Vec<u8>, role: &'static str, text: &str) -> Result<(), Error> {
    let mut object = Object::start(out);
    object.member("role", role)?;
    object.member("content", text)?;
    object.end();
    Ok(())
}

pub(super) fn user(out: &mut Vec<u8>, message: &UserMessage) -> Result<(), Error> {
    let mut object = Object::start(out);
    object.member("role", "user")?;
    media::user_content(object.key("content"), &message.content)?;
    object.end();
    Ok(())
}

pub(super) fn assistant(
    dialect: &OpenAiChat,
    out: &mut Vec<u8>,
    message: &AssistantMessage,
    ids: &[Cow<'_, str>],
) -> Result<(), Error> {
    let mut object = Object::start(out);
    object.member("role", "assistant")?;
    let text = message.content.as_ref().map(assistant_text).unwrap_or_default();
    // A message with neither text nor calls is refused, so without calls the text is sent even if it is empty.
    let no_text = text.is_empty() && !message.tool_calls.is_empty();
    match dialect.quirks.null_content {
        NullContent::Null if no_text => object.raw("content", "null"),
        NullContent::Null | NullContent::EmptyString => object.member("content", &*text)?,
    }
    if let ReplayReasoning::As(name) = &dialect.quirks.replay_reasoning
        && let Some(reasoning) = reasoning(dialect, message)
    {
        object.foreign(name, &serde_json::Value::String(reasoning).to_string())?;
    }
    let is_own = message.origin.as_ref() == Some(&dialect.origin);
    if is_own {
        replay::write(&dialect.origin, &message.replay, &mut object)?;
    }
    if !message.tool_calls.is_empty() {
        let list = object.key("tool_calls");
        list.push(b'[');
        for (place, (call, id)) in message.tool_calls.iter().zip(ids).enumerate() {
            if place > 0 {
                list.push(b',');
            }
            tool_call(list, call, id, is_own)?;
        }
        list.push(b']');
    }
    object.end();
    Ok(())
}

/// The reasoning to send back. It is plain text, so another model of the same provider may see it too.
fn reasoning(dialect: &OpenAiChat, message: &AssistantMessage) -> Option<String> {
    let is_own = message.origin.as_ref().is_some_and(|origin| origin.provider == dialect.origin.provider);
    let known = message.content.as_ref().filter(|_| is_own).map(Content::reasoning).unwrap_or_default();
    (!known.is_empty() || !message.tool_calls.is_empty()).then_some(known)
}

/// Assistant messages hold text only; media can only be of another provider's making, and nobody can do anything about
/// them now: they are named.
pub(in crate::wire) fn assistant_text(content: &Content) -> Cow<'_, str> {
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

pub(in crate::wire) fn left_out(part: &Part) -> String {
    format!("[{}: left out, it cannot be sent to this model]", media::describe(part))
}

fn tool_call(out: &mut Vec<u8>, call: &ToolCall, id: &str, is_own: bool) -> Result<(), Error> {
    let mut object = Object::start(out);
    object.member("id", id)?;
    object.member("type", "function")?;
    let mut function = Object::start(object.key("function"));
    function.member("name", &*wire_name(&call.name))?;
    function.member("arguments", call.args.as_object_str())?;
    function.end();
    if is_own {
        for (name, value) in call.extra.iter().filter(|(name, _)| replay::is_call_member(name)) {
            object.foreign(name, value.as_str())?;
        }
    }
    object.end();
    Ok(())
}

/// Writes a result and returns its media, which belong into a user message behind the batch.
pub(super) fn tool<'a>(out: &mut Vec<u8>, message: &'a ToolMessage, id: &str) -> Result<Vec<&'a Part>, Error> {
    let mut attached = Vec::new();
    let text: Cow<'_, str> = match &message.content {
        Content::Text(text) => text.into(),
        Content::Parts(parts) => {
            let mut text = String::new();
            for part in parts {
                match part {
                    Part::Text(words) => text.push_str(words),
                    Part::Reasoning(_) => {}
                    part if media::is_sendable(part) => {
                        attached.push(part);
                        text.push_str(&format!("[{}: in the user message below]", media::describe(part)));
                    }
                    part => text.push_str(&left_out(part)),
                }
            }
            text.into()
        }
    };
    let mut object = Object::start(out);
    object.member("role", "tool")?;
    object.member("tool_call_id", id)?;
    // An error without a word would read as a result.
    let text = if text.trim().is_empty() { without_words(message.status).unwrap_or(&text) } else { &text };
    object.member("content", text)?;
    object.end();
    Ok(attached)
}

/// The media of one result.
pub(super) struct Attached<'a> {
    /// The call's id on the wire.
    pub(super) id: Cow<'a, str>,
    /// The tool's name.
    pub(super) tool: &'a str,
    pub(super) parts: Vec<&'a Part>,
}

/// The user message that holds the media of a batch's results.
pub(super) fn attachments(out: &mut Vec<u8>, results: &[Attached<'_>]) -> Result<(), Error> {
    let mut object = Object::start(out);
    object.member("role", "user")?;
    let list = object.key("content");
    list.push(b'[');
    for (place, Attached { id, tool, parts }) in results.iter().enumerate() {
        if place > 0 {
            list.push(b',');
        }
        media::text_part(list, &format!("From the result of {tool} ({id}):"))?;
        for part in parts {
            list.push(b',');
            media::part(list, part)?;
        }
    }
    list.push(b']');
    object.end();
    Ok(())
}
