//! One reply as it comes together: whole or in chunks, the same rules.

use cepa_core::{
    Args, AssistantMessage, ChatEvent, ChatResponse, Content, Error, ErrorKind, EventSink, Extra, FinishReason, Origin,
    Part, RawJson, ToolCall, Usage,
};

use serde_json::value::RawValue;

use super::{
    decode,
    finish::finish,
    layout::{self, Slot},
    media, names,
    shape::{self, Blob, Candidate, Chunk, Feedback, FunctionCall},
    usage,
};
use crate::wire::{caps::check_items, cut, ids::ReplyIds, index::Index, pick};

/// A reply larger than this is given up: no model writes as much, and memory is finite.
const MAX_REPLY_BYTES: usize = 64 * 1024 * 1024;

/// The reply so far.
#[derive(Debug)]
pub(super) struct Assembly {
    origin: Origin,
    ids: ReplyIds,
    parts: Vec<Part>,
    slots: Vec<Slot>,
    calls: Vec<ToolCall>,
    text: String,
    finish: Option<String>,
    finish_message: Option<String>,
    blocked: Option<Feedback>,
    usage: Option<Usage>,
    /// The candidate that is followed: the first that was seen.
    candidate: Option<Index>,
    /// How many parts, and members beside them, are held.
    held: usize,
    size: usize,
}

impl Assembly {
    pub(super) fn new(origin: Origin) -> Self {
        Self {
            origin,
            ids: ReplyIds::new(),
            parts: Vec::new(),
            slots: Vec::new(),
            calls: Vec::new(),
            text: String::new(),
            finish: None,
            finish_message: None,
            blocked: None,
            usage: None,
            candidate: None,
            held: 0,
            size: 0,
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the provider said why it ended.
    pub(super) fn is_whole(&self) -> bool {
        self.finish.is_some() || self.blocked.is_some()
    }

    /// Whether anything of a reply was seen.
    pub(super) fn is_begun(&self) -> bool {
        self.candidate.is_some() || self.is_whole()
    }

    /// Counts so many bytes of a stream.
    ///
    /// # Errors
    /// `decode` if that is more than a reply has.
    pub(super) fn grows(&mut self, size: usize) -> Result<(), Error> {
        self.size = self.size.saturating_add(size);
        if self.size > MAX_REPLY_BYTES {
            let message = format!("the reply is larger than {MAX_REPLY_BYTES} bytes: it is given up");
            return Err(Error::new(ErrorKind::Decode, message));
        }
        Ok(())
    }

    /// Takes a chunk.
    ///
    /// # Errors
    /// `decode`: what is wrong with it.
    pub(super) fn chunk(&mut self, chunk: &Chunk<'_>, sink: &EventSink) -> Result<(), Error> {
        let candidates = chunk.candidates.map_or("[]", RawValue::get);
        let is_list = pick::each(candidates, |raw| {
            let candidate: Candidate<'_> = serde_json::from_str(raw.get())
                .map_err(|error| decode::unreadable(&self.origin, format!("a candidate of it: {error}"), raw.get()))?;
            let index = candidate.index.map_or(Index::Number(0), Index::of);
            if *self.candidate.get_or_insert_with(|| index.clone()) == index {
                self.candidate(candidate, sink)?;
            }
            Ok(())
        })?;
        if !is_list {
            return Err(decode::unreadable(&self.origin, "its candidates are no list", candidates));
        }
        if let Some(feedback) = chunk.prompt_feedback.as_ref().filter(|feedback| feedback.block_reason.is_some()) {
            self.blocked = Some(feedback.clone());
        }
        if let Some(usage) = chunk.usage_metadata.and_then(|raw| usage::read(raw.get()))
            && self.usage != Some(usage)
        {
            self.usage = Some(usage);
            sink.emit(ChatEvent::Usage(usage));
        }
        Ok(())
    }

    fn candidate(&mut self, candidate: Candidate<'_>, sink: &EventSink) -> Result<(), Error> {
        let parts = candidate.content.and_then(|content| content.parts).map_or("[]", RawValue::get);
        if !pick::each(parts, |part| self.part(part, sink))? {
            return Err(decode::unreadable(&self.origin, "its parts are no list", parts));
        }
        // "Default value. This value is unused."
        let word = candidate.finish_reason.filter(|word| !["", "FINISH_REASON_UNSPECIFIED"].contains(&&**word));
        // Gateways say `STOP` in each chunk; a reply that was cut stays cut.
        if self.finish.as_deref().is_none_or(|before| before == "STOP") {
            self.finish = word.or(self.finish.take());
        }
        self.finish_message = candidate.finish_message.or(self.finish_message.take());
        Ok(())
    }

    /// Counts what is held of the reply.
    fn hold(&mut self, slot: Slot) -> Result<(), Error> {
        let members = match &slot {
            Slot::Text { extra, .. } | Slot::Media { extra } | Slot::Call { extra, .. } => extra.len(),
            Slot::Opaque(_) => 0,
        };
        self.slots.push(slot);
        self.held = self.held.saturating_add(members.max(1));
        check_items(self.held, "parts")
    }

    fn part(&mut self, raw: &RawValue, sink: &EventSink) -> Result<(), Error> {
        if let Some(text) = shape::text_alone(raw.get()) {
            return self.say(text.into_owned(), Extra::new(), sink);
        }
        let Some(mut members) = pick::all(raw.get())? else { return Ok(()) };
        members.retain(|_, value| value.as_str() != "null");
        let is_thought = members.remove("thought").is_some_and(|value| value.as_str() == "true");
        if let Some(call) = members.remove("functionCall") {
            // Left out, it would be a reply that asks for nothing.
            let read = || if call.is_object() { call.read::<FunctionCall>().ok() } else { None };
            let call =
                read().ok_or_else(|| decode::unreadable(&self.origin, "a functionCall is no call", call.as_str()))?;
            self.call(call, members, sink)
        } else if is_thought {
            self.thought(raw, &members, sink)
        } else if let Some(text) = members.remove("text").and_then(|text| text.read::<String>().ok()) {
            self.say(text, members, sink)
        } else if members.contains_key("inlineData") {
            let blob = members.remove("inlineData").and_then(|blob| blob.read::<Blob>().ok()).unwrap_or_default();
            let (kind, data) = (blob.mime_type.unwrap_or_default(), blob.data.unwrap_or_default());
            if let Some(part) = media::received(&kind, &data) {
                self.parts.push(part);
                self.hold(Slot::Media { extra: members })?;
            }
            Ok(())
        } else if members.keys().eq(["thoughtSignature"]) {
            // "The signature may arrive in a part with an empty text"; here the text is left out.
            self.hold(Slot::Text { length: 0, extra: members })
        } else if !members.is_empty() {
            pick::keep(raw).map_or(Ok(()), |raw| self.hold(Slot::Opaque(raw)))
        } else {
            Ok(())
        }
    }

    fn call(&mut self, call: FunctionCall, extra: Extra, sink: &EventSink) -> Result<(), Error> {
        let id = self.ids.settle(call.id.as_deref());
        let made = call.id.as_deref() != Some(&*id);
        let name = call.name.unwrap_or_default();
        // Calls in pieces are not asked for: the first of them is none to run.
        let args = match call.will_continue {
            Some(true) => cut::unfinished(call.args.as_ref().map_or("", RawJson::as_str)),
            Some(false) | None => Args::decode_value(call.args.as_ref()),
        };
        let call = ToolCall::new(id, names::received(&name), args);
        let index = self.calls.len();
        sink.emit(ChatEvent::CallBegun { index, id: call.id.clone(), name: call.name.clone() });
        sink.emit(ChatEvent::CallArguments { index, delta: call.args.as_str().to_owned() });
        sink.emit(ChatEvent::CallReady { index, call: call.clone() });
        self.calls.push(call);
        self.hold(Slot::Call { made, extra })
    }

    /// A summary of thoughts. Only with a signature is there something that the model wants back.
    fn thought(&mut self, raw: &RawValue, members: &Extra, sink: &EventSink) -> Result<(), Error> {
        if members.contains_key("thoughtSignature") {
            pick::keep(raw).map_or(Ok(()), |raw| self.hold(Slot::Opaque(raw)))?;
        }
        let text = members.get("text").and_then(|text| text.read::<String>().ok()).unwrap_or_default();
        if text.is_empty() {
            return Ok(());
        }
        sink.emit(ChatEvent::Reasoning(text.clone()));
        match self.parts.last_mut() {
            Some(Part::Reasoning(before)) => before.push_str(&text),
            _ => self.parts.push(Part::Reasoning(text)),
        }
        check_items(self.parts.len(), "parts")
    }

    /// "Don't merge one part with a signature with another part without a signature."
    ///
    /// Texts follow on each other without anything between them, calls between them or not: parts are pieces of one text, as
    /// Google's own packages have it ("the concatenation of all text parts", `GenerateContentResponse.text`), and a gap of
    /// ours would not be what the model said. (Messages of Responses are texts of their own, so there a blank line is.)
    fn say(&mut self, text: String, extra: Extra, sink: &EventSink) -> Result<(), Error> {
        if text.is_empty() && extra.is_empty() {
            return Ok(());
        }
        match self.slots.last_mut() {
            Some(Slot::Text { length, extra: before }) if before.is_empty() && extra.is_empty() => {
                *length += text.len()
            }
            _ => self.hold(Slot::Text { length: text.len(), extra })?,
        }
        if text.is_empty() {
            return Ok(());
        }
        self.text.push_str(&text);
        match self.parts.last_mut() {
            Some(Part::Text(before)) => before.push_str(&text),
            _ => self.parts.push(Part::Text(text.clone())),
        }
        sink.emit(ChatEvent::Text(text));
        Ok(())
    }

    /// The response.
    ///
    /// # Errors
    /// If the provider says that it could not finish the reply.
    pub(super) fn finish(self) -> Result<ChatResponse, Error> {
        let has_calls = !self.calls.is_empty();
        let mut message = AssistantMessage { usage: self.usage, ..AssistantMessage::default() };
        let mut note = |name: &str, text: Option<&str>| {
            if let Some(Ok(text)) = text.map(RawJson::of) {
                message.extra.insert(name.to_owned(), text);
            }
        };
        let (word, detail) = (self.finish.as_deref(), self.finish_message.as_deref());
        let finish = match &self.blocked {
            // The prompt was not answered at all: its reply is an empty one that a filter cut.
            Some(feedback) => {
                note("blockReason", feedback.block_reason.as_deref());
                note("blockReasonMessage", feedback.block_reason_message.as_deref());
                FinishReason::ContentFilter
            }
            None => {
                let known = finish(word, detail, has_calls, &self.origin)?;
                if known.is_none() || known == Some(FinishReason::ContentFilter) {
                    note("finishReason", word);
                    note("finishMessage", detail);
                }
                known.unwrap_or(FinishReason::Other)
            }
        };
        message.finish_reason = Some(finish);
        message.tool_calls = self.calls;
        message.content = match self.parts.as_slice() {
            [] => None,
            [Part::Text(_)] => Some(Content::Text(self.text)),
            _ => Some(Content::Parts(self.parts)),
        };
        message.replay = layout::keep(self.slots, &self.origin);
        message.origin = Some(self.origin);
        Ok(ChatResponse::new(message))
    }
}
