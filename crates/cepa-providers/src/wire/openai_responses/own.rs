//! An assistant message as items: as its author wrote them where that is known and allowed, else its text and its calls.

use std::{borrow::Cow, collections::HashMap, ops::Range};

use cepa_core::{AssistantMessage, Content, Error, Extra, Origin, Part};

use super::{
    items::{self, Items},
    layout::{self, MessageSlot, Opaque, Slot, TextKind},
};
use crate::wire::{json::Object, openai_chat::messages::assistant_text};

/// How much of a reply goes back to its author.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// All of it, as far as the provider can read it without having stored anything.
    Whole,
    /// All of it: the provider has stored it.
    Stored,
    /// What it says and calls, without ids.
    Bare,
}

/// The items of a message; none if there is nothing to send of it.
pub(super) fn items(
    message: &AssistantMessage,
    origin: &Origin,
    call_ids: &[Cow<'_, str>],
    form: Form,
) -> Result<Items, Error> {
    let text = message.content.as_ref().map(assistant_text).unwrap_or_default();
    let slots = layout::kept(message, origin);
    let reply = Reply { message, text: &text, call_ids };
    match reply.places(&slots) {
        Some(places) if !slots.is_empty() => reply.in_order(&slots, &places, form),
        _ => reply.rebuilt(),
    }
}

struct Reply<'a> {
    message: &'a AssistantMessage,
    text: &'a str,
    call_ids: &'a [Cow<'a, str>],
}

impl Reply<'_> {
    /// Where in the text the parts of each message item stand; `None` if the message no longer has the text or the calls of
    /// these items, because somebody edited it.
    fn places(&self, slots: &[Slot]) -> Option<Vec<Vec<Range<usize>>>> {
        let (mut at, mut calls) = (0, 0);
        let mut places = Vec::new();
        for slot in slots {
            let mut parts = Vec::new();
            match slot {
                Slot::Message(message) => {
                    at += message.gap;
                    for part in &message.parts {
                        let range = at..at.checked_add(part.length)?;
                        self.text.get(range.clone())?;
                        at = range.end;
                        parts.push(range);
                    }
                }
                Slot::Call { index, .. } if *index != calls => return None,
                Slot::Call { .. } => calls += 1,
                Slot::Opaque(_) => {}
            }
            places.push(parts);
        }
        let is_plain = |part: &Part| matches!(part, Part::Text(_) | Part::Reasoning(_));
        let has_media = matches!(&self.message.content, Some(Content::Parts(parts)) if !parts.iter().all(is_plain));
        let has_all = at == self.text.len() && calls == self.message.tool_calls.len() && calls <= self.call_ids.len();
        (has_all && !has_media).then_some(places)
    }

    /// In the author's order. If anything that belongs to it cannot go back, then no item has its id: `… was provided
    /// without its required 'reasoning' item` (<https://github.com/openai/openai-node/issues/1791>).
    fn in_order(&self, slots: &[Slot], places: &[Vec<Range<usize>>], form: Form) -> Result<Items, Error> {
        let slots = without_trailing_reasoning(slots);
        let goes_back = match form {
            Form::Bare => false,
            Form::Whole => slots.iter().all(|slot| !is_unreadable(slot)) && belongs_together(slots),
            Form::Stored => belongs_together(slots),
        };
        let mut items = Items::default();
        for (slot, parts) in slots.iter().zip(places) {
            match slot {
                Slot::Message(message) => self.said(&mut items, message, parts, goes_back)?,
                Slot::Call { id, index, extra } => {
                    self.call(&mut items, *index, id.as_deref().filter(|_| goes_back).map(|id| (id, extra)))?;
                }
                Slot::Opaque(item) if goes_back => items.begin().extend_from_slice(item.raw.as_str().as_bytes()),
                Slot::Opaque(_) => {}
            }
        }
        Ok(items)
    }

    /// Text, then calls.
    fn rebuilt(&self) -> Result<Items, Error> {
        let mut items = Items::default();
        if !self.text.trim().is_empty() {
            items::assistant(items.begin(), self.text, None)?;
        }
        for index in 0..self.message.tool_calls.len() {
            self.call(&mut items, index, None)?;
        }
        Ok(items)
    }

    fn call(&self, items: &mut Items, index: usize, item: Option<(&str, &Extra)>) -> Result<(), Error> {
        match (self.message.tool_calls.get(index), self.call_ids.get(index)) {
            (Some(call), Some(call_id)) => items::call(items.begin(), call, call_id, item),
            (_, _) => Ok(()),
        }
    }

    fn said(
        &self,
        items: &mut Items,
        message: &MessageSlot,
        parts: &[Range<usize>],
        goes_back: bool,
    ) -> Result<(), Error> {
        let texts = parts.iter().map(|range| self.text.get(range.clone()).unwrap_or_default());
        let texts: Vec<_> = message.parts.iter().zip(texts).filter(|(_, text)| !text.trim().is_empty()).collect();
        if texts.is_empty() {
            return Ok(());
        }
        let Some(id) = message.id.as_deref().filter(|_| goes_back) else {
            let text: String = texts.iter().map(|(_, text)| *text).collect();
            return items::assistant(items.begin(), &text, message.extra.get("phase").map(|phase| phase.as_str()));
        };
        let mut object = Object::start(items.begin());
        object.member("type", "message")?;
        object.member("id", id)?;
        object.member("role", "assistant")?;
        items::list(object.key("content"), texts, |out, (part, text)| {
            let mut object = Object::start(out);
            match part.kind {
                TextKind::Refusal => {
                    object.member("type", "refusal")?;
                    object.member("refusal", text)?;
                }
                TextKind::OutputText => {
                    object.member("type", "output_text")?;
                    object.member("text", text)?;
                    object.raw("annotations", part.annotations.as_ref().map_or("[]", |all| all.as_str()));
                    object.raw("logprobs", "[]");
                }
            }
            object.end();
            Ok(())
        })?;
        if !message.extra.contains_key("status") {
            object.member("status", "completed")?;
        }
        for (name, value) in &message.extra {
            object.foreign(name, value.as_str())?;
        }
        object.end();
        Ok(())
    }
}

/// "Item 'rs_…' of type 'reasoning' was provided without its required following item."
/// (<https://github.com/continuedev/continue/issues/8933>)
fn without_trailing_reasoning(slots: &[Slot]) -> &[Slot] {
    let end = slots.iter().rposition(|slot| !is_reasoning(slot)).map_or(0, |last| last + 1);
    slots.get(..end).unwrap_or_default()
}

fn is_reasoning(slot: &Slot) -> bool {
    matches!(slot, Slot::Opaque(item) if item.is_reasoning())
}

/// "Item with id 'rs_…' not found. Items are not persisted when `store` is set to false."
/// (<https://github.com/openai/openai-agents-python/issues/919>)
fn is_unreadable(slot: &Slot) -> bool {
    is_reasoning(slot) && matches!(slot, Slot::Opaque(item) if !item.holds_reasoning)
}

/// Whether nothing refers to what is not there.
fn belongs_together(slots: &[Slot]) -> bool {
    let (before, after) = (slots.iter(), slots.iter().skip(1));
    // Without its id a message is not known to be the one that the reasoning led to.
    let is_known = |slot: &Slot| !matches!(slot, Slot::Message(MessageSlot { id: None, .. }));
    before.zip(after).all(|(before, after)| !is_reasoning(before) || is_known(after)) && calls_are_paired(slots)
}

/// Calls of other tools than functions are answered in this very reply, or by nobody: "No tool output found".
fn calls_are_paired(slots: &[Slot]) -> bool {
    let mut open: HashMap<&str, i32> = HashMap::new();
    for slot in slots {
        if let Slot::Opaque(Opaque { call_id: Some(call_id), kind, .. }) = slot {
            let step = if kind.ends_with("_output") { -1 } else { 1 };
            *open.entry(call_id).or_default() += step;
        }
    }
    open.values().all(|count| *count == 0)
}
