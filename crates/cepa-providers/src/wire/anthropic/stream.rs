//! The fold of a streamed reply: <https://platform.claude.com/docs/en/build-with-claude/streaming>.
//!
//! The `type` in the data decides what an event is; the name in its `event:` line only where there is none. Events, blocks
//! and deltas that are not known are passed over. `message_stop` is the end.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
};

use cepa_core::{ChatEvent, ChatResponse, Error, EventSink, Origin, ToolCall};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    decode,
    received::{Delta, Piece, Received, Told},
    reply,
    usage::Counts,
};
use crate::{
    sse::LentEvent,
    wire::{Accumulator, caps::check_items, failed, ids::ReplyIds, index::Index, pick, surrogates},
};

/// A reply that is being streamed.
#[derive(Debug)]
pub struct Fold {
    origin: Origin,
    ids: ReplyIds,
    blocks: Vec<Growing>,
    /// The blocks by the index that the provider gave them; of two under one index the later.
    places: HashMap<Index, usize>,
    /// The places of those that are open.
    open: BTreeSet<usize>,
    calls: usize,
    text: String,
    counts: Counts,
    stop_reason: Option<String>,
    done: bool,
}

#[derive(Debug)]
struct Growing {
    block: Received,
    /// The place of a call among the calls of the reply.
    call: Option<usize>,
    open: bool,
    /// Whether its end was told.
    stopped: bool,
}

impl Growing {
    /// What it is now. A call whose end nobody told, in a reply that does not say why it ended, is none to run.
    fn piece(&self, stop_reason: Option<&str>) -> Piece {
        match self.block.piece() {
            Piece::Call { id, name, extra, .. } if !self.stopped && stop_reason.is_none() => {
                Piece::Call { id, name, args: self.block.unfinished(), extra }
            }
            piece => piece,
        }
    }
}

/// The members of all events; which of them matter depends on the type.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    index: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct End {
    stop_reason: Option<String>,
}

impl Fold {
    pub(super) fn new(origin: Origin) -> Self {
        Self {
            origin,
            ids: ReplyIds::new(),
            blocks: Vec::new(),
            places: HashMap::new(),
            open: BTreeSet::new(),
            calls: 0,
            text: String::new(),
            counts: Counts::default(),
            stop_reason: None,
            done: false,
        }
    }

    fn started(&mut self, message: Option<&RawValue>, sink: &EventSink) -> Result<(), Error> {
        // Somebody between us and the model began again. Before any block that is harmless; later the texts would mix.
        if !self.blocks.is_empty() {
            return Err(self.bad("a second message begins inside the first"));
        }
        // Nothing else of it is needed, so nothing else can be wrong with it.
        if let Some([usage]) = message.and_then(|message| pick::members(message.get(), ["usage"])) {
            self.used(usage, sink);
        }
        Ok(())
    }

    fn block_started(&mut self, event: &Event<'_>, sink: &EventSink) -> Result<(), Error> {
        check_items(self.blocks.len() + 1, "blocks").map_err(|error| self.with_text(error))?;
        let raw = event.content_block.and_then(pick::keep);
        let raw = raw.ok_or_else(|| self.bad("a block begins without a content_block"))?;
        let block = Received::read(raw, &mut self.ids).map_err(|what| self.bad(&what))?;
        let mut call = None;
        match &block {
            Received::Text { text, .. } if !text.is_empty() => {
                self.text.push_str(text);
                sink.emit(ChatEvent::Text(text.clone()));
            }
            Received::Thinking { text, .. } if !text.is_empty() => sink.emit(ChatEvent::Reasoning(text.clone())),
            Received::Call { id, name, .. } => {
                let index = self.calls;
                self.calls += 1;
                call = Some(index);
                sink.emit(ChatEvent::CallBegun { index, id: id.clone(), name: name.clone() });
            }
            Received::Text { .. } | Received::Thinking { .. } | Received::Opaque { .. } => {}
        }
        let place = self.blocks.len();
        self.blocks.push(Growing { block, call, open: true, stopped: false });
        // Servers that leave the index out send one block after another.
        let index = event.index.map_or(Index::Number(place as u64), Index::of);
        // One that was open under this index is not over because of it: what it is, the end of the reply tells.
        if let Some(before) = self.places.insert(index, place) {
            self.open.remove(&before);
        }
        self.open.insert(place);
        Ok(())
    }

    fn block_grew(&mut self, event: &Event<'_>, sink: &EventSink) -> Result<(), Error> {
        let delta: Delta<'_> = event.delta.and_then(parse).unwrap_or_default();
        let place = self.place(event);
        let is_open = place.is_some_and(|place| self.open.contains(&place));
        // What belongs to no block would be missing from one: the call of which these are the arguments would run without.
        if event.index.is_some() && (place.is_none() || (!is_open && delta.is_arguments())) {
            return Err(self.bad("it goes on with a block that did not begin, or is over"));
        }
        let Some(growing) = place.filter(|_| is_open).and_then(|place| self.blocks.get_mut(place)) else {
            tracing::debug!("a delta for a block that is not open is left out");
            return Ok(());
        };
        let call = growing.call;
        match growing.block.grow(delta).map_err(|what| self.bad(&what))? {
            Told::Text(text) => {
                self.text.push_str(&text);
                sink.emit(ChatEvent::Text(text));
            }
            Told::Reasoning(text) => sink.emit(ChatEvent::Reasoning(text)),
            Told::Arguments(delta) => {
                if let Some(index) = call {
                    sink.emit(ChatEvent::CallArguments { index, delta });
                }
            }
            Told::Nothing => {}
        }
        Ok(())
    }

    fn block_stopped(&mut self, event: &Event<'_>, sink: &EventSink) {
        if let Some(place) = self.place(event) {
            self.open.remove(&place);
            if let Some(growing) = self.blocks.get_mut(place) {
                growing.stopped = true;
            }
            self.close(place, sink);
        }
    }

    /// The block that an event is about: the one with its index, else the last that is open.
    fn place(&self, event: &Event<'_>) -> Option<usize> {
        match event.index {
            Some(index) => self.places.get(&Index::of(index)).copied(),
            None => self.open.last().copied(),
        }
    }

    fn close(&mut self, place: usize, sink: &EventSink) {
        let Some(growing) = self.blocks.get_mut(place).filter(|growing| growing.open) else { return };
        growing.open = false;
        if let (Some(index), Piece::Call { id, name, args, .. }) =
            (growing.call, growing.piece(self.stop_reason.as_deref()))
        {
            sink.emit(ChatEvent::CallReady { index, call: ToolCall::new(id, name, args) });
        }
    }

    fn message_changed(&mut self, event: &Event<'_>, sink: &EventSink) {
        let reason = event.delta.and_then(parse::<End>).and_then(|end| end.stop_reason);
        if let Some(reason) = reason.filter(|reason| !reason.trim().is_empty())
            && self.stop_reason.as_deref().is_none_or(reply::is_replaceable)
        {
            self.stop_reason = Some(reason);
        }
        self.used(event.usage, sink);
    }

    fn used(&mut self, usage: Option<&RawValue>, sink: &EventSink) {
        let Some(usage) = usage else { return };
        self.counts.update(Counts::of(Some(usage)));
        if let Some(usage) = self.counts.usage() {
            sink.emit(ChatEvent::Usage(usage));
        }
    }

    fn bad(&self, what: &str) -> Error {
        self.with_text(decode::unreadable(&self.origin, what, ""))
    }

    fn with_text(&self, error: Error) -> Error {
        let error = error.with_provider(self.origin.provider.clone());
        if self.text.is_empty() { error } else { error.with_partial_text(self.text.clone()) }
    }
}

impl Accumulator for Fold {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn event(&mut self, event: LentEvent<'_>, sink: &EventSink) -> Result<(), Error> {
        let data = event.data.trim();
        if self.done || data.is_empty() || data.starts_with(':') || data == "[DONE]" {
            return Ok(());
        }
        let data = surrogates::whole(data);
        let members: Event<'_> = match serde_json::from_str(&data) {
            Ok(members) => members,
            // Some JSON that is no event.
            Err(_) if !data.starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(&data).is_ok() => {
                return Ok(());
            }
            Err(error) => return Err(self.with_text(decode::unreadable(&self.origin, error, &data))),
        };
        let kind = members.kind.and_then(pick::lent_text).or(event.event.map(Cow::Borrowed));
        match kind.as_deref() {
            Some("message_start") => self.started(members.message, sink)?,
            Some("content_block_start") => self.block_started(&members, sink)?,
            Some("content_block_delta") => self.block_grew(&members, sink)?,
            Some("content_block_stop") => self.block_stopped(&members, sink),
            Some("message_delta") => self.message_changed(&members, sink),
            Some("message_stop") => self.done = true,
            Some("error") => return Err(self.with_text(failed::reported(&self.origin, &data))),
            None if members.error.is_some() => return Err(self.with_text(failed::reported(&self.origin, &data))),
            Some(_) | None => {}
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn partial_text(&self) -> &str {
        &self.text
    }

    fn finish(mut self, sink: &EventSink) -> Result<ChatResponse, Error> {
        if !self.done {
            return Err(self.with_text(failed::truncated(&self.origin, "message_stop")));
        }
        for place in 0..self.blocks.len() {
            self.close(place, sink);
        }
        let reason = self.stop_reason.as_deref();
        let pieces = self.blocks.iter().map(|growing| growing.piece(reason)).collect();
        Ok(reply::response(pieces, reason, self.counts.usage(), &self.origin))
    }
}

fn parse<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}
