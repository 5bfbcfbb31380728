//! One reply as it comes together: whole or in chunks, the same rules.

use cepa_core::{
    AssistantMessage, ChatEvent, ChatResponse, Content, Error, ErrorKind, EventSink, FinishReason, Origin, Part,
    RawJson, Usage,
};
use serde_json::{Map, Value};

use super::{
    calls::Calls,
    ending::Ending,
    replay::Kept,
    shape::{Delta, Words},
    usage,
};
use crate::wire::failed;

/// A reply larger than this is given up: no model writes as much, and memory is finite.
const MAX_REPLY_BYTES: usize = 64 * 1024 * 1024;

/// The reply so far.
#[derive(Debug)]
pub(super) struct Assembly {
    origin: Origin,
    text: String,
    reasoning: String,
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
    pub(super) fn message(&mut self, mut message: Delta, sink: &EventSink) -> Result<(), Error> {
        let calls = message.tool_calls.take().unwrap_or_default();
        self.words(message, sink)?;
        self.calls.whole(calls, sink)
    }

    /// Takes what a chunk adds; `size` is the chunk's.
    pub(super) fn delta(&mut self, mut delta: Delta, size: usize, sink: &EventSink) -> Result<(), Error> {
        self.size = self.size.saturating_add(size);
        if self.size > MAX_REPLY_BYTES {
            let message = format!("the reply is larger than {MAX_REPLY_BYTES} bytes: it is given up");
            return Err(Error::new(ErrorKind::Decode, message));
        }
        let calls = delta.tool_calls.take().unwrap_or_default();
        self.words(delta, sink)?;
        self.calls.pieces(calls, sink)
    }

    fn words(&mut self, delta: Delta, sink: &EventSink) -> Result<(), Error> {
        let Words { text, reasoning, refusal } = delta.content;
        // Servers that changed the member's name send both with the same text.
        let named = delta.reasoning_content.0.or(delta.reasoning.0);
        for reasoning in named.into_iter().chain([reasoning]).filter(|text| !text.is_empty()) {
            self.reasoning.push_str(&reasoning);
            sink.emit(ChatEvent::Reasoning(reasoning));
        }
        let refusals = delta.refusal.0.into_iter().chain([refusal]).filter(|text| !text.is_empty());
        for text in [text].into_iter().filter(|text| !text.is_empty()) {
            self.say(text, sink);
        }
        for text in refusals {
            self.refused = true;
            self.say(text, sink);
        }
        if let Some(value) = delta.extra_content {
            self.kept.extra_content(value);
        }
        if let Some(Value::Array(blocks)) = delta.reasoning_details {
            self.kept.reasoning_details(blocks.into_iter().filter_map(object).collect());
        }
        match delta.function_call {
            Some(function) => self.calls.function_call(function, sink),
            None => Ok(()),
        }
    }

    fn say(&mut self, text: String, sink: &EventSink) {
        self.text.push_str(&text);
        sink.emit(ChatEvent::Text(text));
    }

    /// Takes the word for why the reply ended.
    pub(super) fn ended(&mut self, word: String) {
        self.ending.take(word);
    }

    /// Takes a `usage` object; one that tells nothing changes nothing.
    pub(super) fn usage(&mut self, raw: &RawJson, sink: &EventSink) {
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
    pub(super) fn finish(self, sink: &EventSink) -> Result<ChatResponse, Error> {
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

fn object(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(members) => Some(members),
        _ => None,
    }
}
