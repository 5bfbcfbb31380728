//! The items of a reply, kept where the neutral message cannot say all of them: their order, their ids, what is opaque.
//!
//! Reasoning and items of unknown types are kept word for word. Messages and calls among them are kept as places that point
//! into the neutral message: what a filter changed there is what is sent, and nothing is stored twice.

use cepa_core::{AssistantMessage, Extra, Origin, RawJson, Replay};
use serde::{Deserialize, Serialize};

use super::FORMAT;

/// One item of a reply.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Slot {
    /// The next pieces of the message's text.
    Message(MessageSlot),
    /// The message's call of this index.
    Call { id: Option<String>, index: usize, extra: Extra },
    /// An item that goes back as it came.
    Opaque(Opaque),
}

/// The item that holds a part of the message's text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct MessageSlot {
    pub(super) id: Option<String>,
    /// The bytes before it that only part it from the item before.
    pub(super) gap: usize,
    pub(super) parts: Vec<TextSlot>,
    /// The members beside its text: status, phase.
    pub(super) extra: Extra,
}

/// A part of an item's content.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TextSlot {
    /// So many bytes.
    pub(super) length: usize,
    #[serde(default, skip_serializing_if = "is_text")]
    pub(super) kind: TextKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) annotations: Option<RawJson>,
}

/// What a part of an item's content is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TextKind {
    #[default]
    OutputText,
    Refusal,
}

fn is_text(kind: &TextKind) -> bool {
    *kind == TextKind::OutputText
}

/// An item that goes back as it came.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Opaque {
    pub(super) raw: RawJson,
    pub(super) kind: String,
    pub(super) id: Option<String>,
    /// The call that it makes or answers, for tools that are neither functions nor the provider's alone.
    pub(super) call_id: Option<String>,
    /// Whether it is reasoning that the provider can read again although it stored nothing.
    pub(super) holds_reasoning: bool,
}

#[derive(Deserialize)]
struct Head {
    #[serde(rename = "type")]
    kind: String,
    id: Option<String>,
    call_id: Option<String>,
    encrypted_content: Option<String>,
    content: Option<Vec<serde::de::IgnoredAny>>,
}

/// A place in the neutral message; unlike an item it has no `type`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(default, skip_serializing_if = "is_zero")]
    gap: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Vec<TextSlot>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<usize>,
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    extra: Extra,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Opaque {
    /// An item; `None` if it is none (it has no type).
    pub(super) fn new(raw: RawJson) -> Option<Self> {
        let Head { kind, id, call_id, encrypted_content, content } = raw.read().ok()?;
        let holds_reasoning =
            encrypted_content.is_some_and(|text| !text.is_empty()) || content.is_some_and(|parts| !parts.is_empty());
        Some(Self { raw, kind, id, call_id, holds_reasoning })
    }

    pub(super) fn is_reasoning(&self) -> bool {
        self.kind == "reasoning"
    }
}

/// What is kept of a reply's items: nothing, if text before calls says it all.
pub(super) fn keep(slots: Vec<Slot>, origin: &Origin) -> Vec<Replay> {
    let says_more = |slot: &Slot| match slot {
        Slot::Message(message) => {
            message.extra.keys().any(|name| name != "status")
                || message.parts.iter().any(|part| part.annotations.is_some() || part.kind == TextKind::Refusal)
        }
        Slot::Call { extra, .. } => !extra.is_empty(),
        Slot::Opaque(_) => true,
    };
    let text_behind_call =
        slots.iter().skip_while(|slot| !matches!(slot, Slot::Call { .. })).any(|slot| matches!(slot, Slot::Message(_)));
    if !text_behind_call && !slots.iter().any(says_more) {
        return Vec::new();
    }
    let keep = |slot| {
        let data = match slot {
            Slot::Message(MessageSlot { id, gap, parts, extra }) => {
                RawJson::of(&Place { id, gap, text: Some(parts), call: None, extra }).ok()
            }
            Slot::Call { id, index, extra } => {
                RawJson::of(&Place { id, gap: 0, text: None, call: Some(index), extra }).ok()
            }
            Slot::Opaque(item) => Some(item.raw),
        };
        Some(Replay {
            format: FORMAT.to_owned(),
            provider: origin.provider.to_string(),
            model: origin.model.to_string(),
            data: data?,
        })
    };
    slots.into_iter().filter_map(keep).collect()
}

/// The kept items, if this very model wrote the message.
pub(super) fn kept(message: &AssistantMessage, origin: &Origin) -> Vec<Slot> {
    ours(message, origin).filter_map(read).collect()
}

/// The ids of the kept items: looking at them does not read what is in the items.
pub(super) fn item_ids(message: &AssistantMessage, origin: &Origin) -> Vec<String> {
    #[derive(Deserialize)]
    struct Named {
        id: Option<String>,
    }
    ours(message, origin).filter_map(|kept| kept.data.read::<Named>().ok()?.id).collect()
}

fn ours<'a>(message: &'a AssistantMessage, origin: &'a Origin) -> impl Iterator<Item = &'a Replay> {
    message
        .replay
        .iter()
        .filter(|kept| kept.format == FORMAT && *kept.provider == *origin.provider && *kept.model == *origin.model)
}

fn read(kept: &Replay) -> Option<Slot> {
    if let Some(item) = Opaque::new(kept.data.clone()) {
        return Some(Slot::Opaque(item));
    }
    match kept.data.read::<Place>().ok()? {
        Place { id, gap, text: Some(parts), call: None, extra } => {
            Some(Slot::Message(MessageSlot { id, gap, parts, extra }))
        }
        Place { id, text: None, call: Some(index), extra, .. } => Some(Slot::Call { id, index, extra }),
        Place { .. } => None,
    }
}
