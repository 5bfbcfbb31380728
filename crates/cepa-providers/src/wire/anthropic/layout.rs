//! The order of a reply's blocks, kept where the neutral message cannot say it.
//!
//! Thinking, server tools and blocks of unknown types are kept word for word. Text and calls among them are kept as places
//! that point into the neutral message: what a filter changed there is what is sent, and nothing is stored twice.

use std::{collections::HashSet, sync::Arc};

use cepa_core::{AssistantMessage, Entry, Extra, Message, Origin, RawJson, Replay};
use serde::{Deserialize, Serialize};

use super::FORMAT;

/// One block of a reply.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Slot {
    /// The next so many bytes of the message's text.
    Text { length: usize, citations: Option<RawJson> },
    /// The message's call of this index, and what stood beside it.
    Call { index: usize, extra: Extra },
    /// A block that goes back as it came.
    Opaque(Opaque),
}

/// A block that goes back as it came.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Opaque {
    pub(super) raw: RawJson,
    kind: String,
    id: Option<String>,
    answers: Option<String>,
}

#[derive(Deserialize)]
struct Head {
    #[serde(rename = "type")]
    kind: String,
    id: Option<String>,
    tool_use_id: Option<String>,
}

/// A place in the neutral message; unlike a block it has no `type`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    citations: Option<RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<usize>,
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    extra: Extra,
}

impl Opaque {
    /// A block; `None` if it is none (it has no type).
    pub(super) fn new(raw: RawJson) -> Option<Self> {
        let Head { kind, id, tool_use_id } = raw.read().ok()?;
        Some(Self { raw, kind, id, answers: tool_use_id })
    }

    pub(super) fn is_thinking(&self) -> bool {
        matches!(self.kind.as_str(), "thinking" | "redacted_thinking")
    }

    /// Whether it belongs to a pair of server tool call and result.
    pub(super) fn is_tool(&self) -> bool {
        self.kind.contains("tool")
    }

    /// The id of the server tool call that it is.
    pub(super) fn asks(&self) -> Option<&str> {
        self.id.as_deref().filter(|_| self.kind.ends_with("tool_use"))
    }

    /// The id of the server tool call whose result it is.
    pub(super) fn answers(&self) -> Option<&str> {
        self.answers.as_deref()
    }
}

/// What is kept of a reply's order: nothing, if text before calls says it all.
pub(super) fn keep(slots: Vec<Slot>, origin: &Origin) -> Vec<Replay> {
    let says_more = |slot: &Slot| match slot {
        Slot::Text { citations, .. } => citations.is_some(),
        Slot::Call { extra, .. } => !extra.is_empty(),
        Slot::Opaque(_) => true,
    };
    if !slots.iter().any(says_more) {
        return Vec::new();
    }
    let keep = |slot| {
        let place = |text, citations, call, extra| RawJson::of(&Place { text, citations, call, extra }).ok();
        let data = match slot {
            Slot::Text { length, citations } => place(Some(length), citations, None, Extra::new()),
            Slot::Call { index, extra } => place(None, None, Some(index), extra),
            Slot::Opaque(block) => Some(block.raw),
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

/// Whether this very model wrote the message and left something that goes back to it.
pub(super) fn is_kept(message: &AssistantMessage, origin: &Origin) -> bool {
    ours(message, origin).next().is_some()
}

/// The kept order; `None` where there is none, or of another model.
pub(super) fn kept(message: &AssistantMessage, origin: &Origin) -> Option<Vec<Slot>> {
    let slots: Vec<Slot> = ours(message, origin).filter_map(read).collect();
    (!slots.is_empty()).then_some(slots)
}

/// Whether calls or results of server tools go back with it. It looks for their names in the text: reading all blocks for
/// the few that are such would cost more than all the rest of a request.
pub(super) fn has_server_tools(message: &AssistantMessage, origin: &Origin) -> bool {
    ours(message, origin)
        .any(|kept| ["_tool_use\"", "_tool_result\""].iter().any(|name| kept.data.as_str().contains(name)))
}

/// What follows until somebody else than model and tools speaks: a server's tool may give its result as late as there.
pub(super) fn reply_goes_on<'a>(rest: &'a [&'a Arc<Entry>]) -> &'a [&'a Arc<Entry>] {
    let end = rest.iter().position(|entry| matches!(entry.message, Message::System(_) | Message::User(_)));
    rest.get(..end.unwrap_or(rest.len())).unwrap_or_default()
}

/// The calls of server tools whose results stand in these messages.
pub(super) fn answered(entries: &[&Arc<Entry>], origin: &Origin) -> HashSet<String> {
    let mut ids = HashSet::new();
    for entry in entries {
        let Message::Assistant(message) = &entry.message else { continue };
        for slot in kept(message, origin).into_iter().flatten() {
            if let Slot::Opaque(block) = slot {
                ids.extend(block.answers);
            }
        }
    }
    ids
}

/// Whether the reply began with thinking that goes back.
pub(super) fn begins_with_thinking(message: &AssistantMessage, origin: &Origin) -> bool {
    matches!(ours(message, origin).next().and_then(read), Some(Slot::Opaque(block)) if block.is_thinking())
}

fn ours<'a>(message: &'a AssistantMessage, origin: &'a Origin) -> impl Iterator<Item = &'a Replay> {
    message
        .replay
        .iter()
        .filter(|kept| kept.format == FORMAT && *kept.provider == *origin.provider && *kept.model == *origin.model)
}

fn read(kept: &Replay) -> Option<Slot> {
    if let Some(block) = Opaque::new(kept.data.clone()) {
        return Some(Slot::Opaque(block));
    }
    match kept.data.read::<Place>().ok()? {
        Place { text: Some(length), citations, call: None, .. } => Some(Slot::Text { length, citations }),
        Place { call: Some(index), extra, text: None, .. } => Some(Slot::Call { index, extra }),
        Place { .. } => None,
    }
}
