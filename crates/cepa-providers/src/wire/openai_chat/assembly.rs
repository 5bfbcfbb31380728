//! One reply as it comes together: whole or in chunks, the same rules.

use std::borrow::Cow;

use cepa_core::{
    AssistantMessage, ChatEvent, ChatResponse, Content, Error, ErrorKind, EventSink, FinishReason, Origin, Part, Usage,
};
use serde_json::value::RawValue;

use super::{
    calls::Calls,
    ending::Ending,
    replay::Kept,
    shape::{Delta, Said, Words},
    usage,
};
use crate::wire::{failed, pick, surrogates::Pieces};

/// A reply larger than this is given up: no model writes as much, and memory is finite.
const MAX_REPLY_BYTES: usize = 64 * 1024 * 1024;

/// The reply so far.
#[derive(Debug)]
pub(super) struct Assembly {
    origin: Origin,
    text: String,
    reasoning: String,
    /// The halves of characters between the pieces of each.
    saying: Pieces,
    thinking: Pieces,
    refused: bool,
    kept: Kept,
    calls: Calls,
    ending: Ending,
    usage: Option<Usage>,
    size: usize,
}

impl Assembly {
    pub(super) fn new(origin: Origin) -> Self {
        Self {
            origin,
            text: String::new(),
            reasoning: String::new(),
            saying: Pieces::default(),
            thinking: Pieces::default(),
            refused: false,
            kept: Kept::default(),
            calls: Calls::default(),
            ending: Ending::default(),
            usage: None,
            size: 0,
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn has_finish(&self) -> bool {
        self.ending.is_known()
    }

    /// Whether nothing of a message was seen.
    pub(super) fn is_blank(&self) -> bool {
        self.text.is_empty() && self.reasoning.is_empty() && self.calls.is_empty()
    }

    /// Takes a whole message.
    pub(super) fn message(&mut self, mut message: Delta<'_>, sink: &EventSink) -> Result<(), Error> {
        let calls = message.tool_calls.take();
        self.words(message, sink)?;
        calls.map_or(Ok(()), |calls| self.calls.whole(calls.0, sink))
    }

    /// Takes what a chunk adds; `size` is the chunk's.
    pub(super) fn delta(&mut self, mut delta: Delta<'_>, size: usize, sink: &EventSink) -> Result<(), Error> {
        self.size = self.size.saturating_add(size);
        if self.size > MAX_REPLY_BYTES {
            let message = format!("the reply is larger than {MAX_REPLY_BYTES} bytes: it is given up");
            return Err(Error::new(ErrorKind::Decode, message));
        }
        let calls = delta.tool_calls.take();
        self.words(delta, sink)?;
        calls.map_or(Ok(()), |calls| self.calls.pieces(calls.0, sink))
    }

    fn words(&mut self, delta: Delta<'_>, sink: &EventSink) -> Result<(), Error> {
        let Words { written, parts } = delta.content;
        let Said { text, reasoning, refusal } = parts.map(|said| *said).unwrap_or_default();
        // Servers that changed the member's name send both with the same text.
        if let Some(written) = delta.reasoning_content.0.or(delta.reasoning.0) {
            let thought = self.thinking.piece(written);
            self.think(thought, sink);
        }
        self.think(reasoning, sink);
        if let Some(written) = written.0 {
            let said = self.saying.piece(written);
            self.say(said, sink);
        }
        self.say(text, sink);
        if let Some(written) = delta.refusal.0 {
            self.refused = true;
            let said = self.saying.piece(written);
            self.say(said, sink);
        }
        self.refused |= !refusal.is_empty();
        self.say(refusal, sink);
        if let Some(value) = delta.extra_content.and_then(pick::keep) {
            self.kept.extra_content(value);
        }
        if let Some(blocks) = delta.reasoning_details {
            self.kept.reasoning_details(blocks.get()).map_err(|error| {
                let message = format!("the reasoning of {} cannot be read: {error}", self.origin.provider);
                Error::new(ErrorKind::Decode, message).with_provider(self.origin.provider.clone())
            })?;
        }
        match delta.function_call {
            Some(function) => self.calls.function_call(*function, sink),
            None => Ok(()),
        }
    }

    fn think(&mut self, text: String, sink: &EventSink) {
        if !text.is_empty() {
            self.reasoning.push_str(&text);
            sink.emit(ChatEvent::Reasoning(text));
        }
    }

    fn say(&mut self, text: String, sink: &EventSink) {
        if !text.is_empty() {
            self.text.push_str(&text);
            sink.emit(ChatEvent::Text(text));
        }
    }

    /// Takes the word for why the reply ended.
    pub(super) fn ended(&mut self, word: Cow<'_, str>) {
        self.ending.take(word.into_owned());
    }

    /// Takes a `usage` object; one that tells nothing changes nothing.
    pub(super) fn usage(&mut self, raw: &RawValue, sink: &EventSink) {
        if let Some(usage) = usage::read(raw)
            && self.usage != Some(usage)
        {
            self.usage = Some(usage);
            sink.emit(ChatEvent::Usage(usage));
        }
    }

    /// The response.
    ///
    /// # Errors
    /// If the provider says that it could not finish the reply; `truncated` if it does not say why the reply ended, and a call
    /// is not whole.
    pub(super) fn finish(mut self, sink: &EventSink) -> Result<ChatResponse, Error> {
        let (thought, said) = (self.thinking.rest(), self.saying.rest());
        self.think(thought, sink);
        self.say(said, sink);
        let reason = self.ending.reason(&self.origin)?;
        if reason.is_none() && !self.calls.are_whole() {
            return Err(failed::truncated(&self.origin, "finish reason, and a call without all of its arguments"));
        }
        let tool_calls = self.calls.finish(sink);
        let finish_reason = match (reason, tool_calls.is_empty()) {
            (Some(FinishReason::Stop | FinishReason::Other | FinishReason::ToolCalls) | None, _) if self.refused => {
                FinishReason::Refusal
            }
            (Some(FinishReason::Stop | FinishReason::ToolCalls) | None, false) => FinishReason::ToolCalls,
            (Some(FinishReason::ToolCalls), true) => FinishReason::Stop,
            (Some(reason), _) => reason,
            (None, true) => FinishReason::Other,
        };
        let content = match (self.reasoning.is_empty(), self.text.is_empty()) {
            (true, true) => None,
            (true, false) => Some(Content::Text(self.text)),
            (false, true) => Some(Content::Parts(vec![Part::Reasoning(self.reasoning)])),
            (false, false) => Some(Content::Parts(vec![Part::Reasoning(self.reasoning), Part::Text(self.text)])),
        };
        Ok(ChatResponse::new(AssistantMessage {
            content,
            tool_calls,
            replay: self.kept.finish(&self.origin),
            origin: Some(self.origin),
            finish_reason: Some(finish_reason),
            usage: self.usage,
            ..AssistantMessage::default()
        }))
    }
}
