//! The order of a reply's parts and what stood beside them, kept where the neutral message cannot say it.
//!
//! Signed thoughts and parts of unknown types are kept word for word. Texts, media and calls are kept as places that point into
//! the neutral message: what a filter changed there is what is sent, and nothing is stored twice.

use cepa_core::{AssistantMessage, Extra, Origin, RawJson, Replay};
use serde::{Deserialize, Serialize};

use super::FORMAT;

/// One part of a reply.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Slot {
    /// The next so many bytes of the message's text.
    Text { length: usize, extra: Extra },
    /// The message's next medium.
    Media { extra: Extra },
    /// The message's next call. `made`: its id is ours, the API gave none.
    Call { made: bool, extra: Extra },
    /// A part that goes back as it came.
    Opaque(RawJson),
}

/// A slot as JSON; one of the first four is there.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Place {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<usize>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    media: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<Id>,
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<RawJson>,
    #[serde(skip_serializing_if = "Extra::is_empty")]
    extra: Extra,
}

/// Whose a call's id is.
#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Id {
    Given,
    Made,
}

impl Slot {
    fn place(self) -> Place {
        let place = Place::default();
        match self {
            Self::Text { length, extra } => Place { text: Some(length), extra, ..place },
            Self::Media { extra } => Place { media: true, extra, ..place },
            Self::Call { made, extra } => Place { call: Some(if made { Id::Made } else { Id::Given }), extra, ..place },
            Self::Opaque(part) => Place { part: Some(part), ..place },
        }
    }

    fn read(kept: &Replay) -> Option<Self> {
        let place: Place = kept.data.read().ok()?;
        Some(match place {
            Place { part: Some(part), .. } if part.is_object() => Self::Opaque(part),
            Place { call: Some(id), extra, .. } => Self::Call { made: id == Id::Made, extra },
            Place { text: Some(length), extra, .. } => Self::Text { length, extra },
            Place { media: true, extra, .. } => Self::Media { extra },
            Place { .. } => return None,
        })
    }
}

/// What is kept of a reply's order: nothing, if text before calls says it all.
pub(super) fn keep(slots: Vec<Slot>, origin: &Origin) -> Vec<Replay> {
    let says_more = |slot: &Slot| match slot {
        Slot::Text { extra, .. } | Slot::Media { extra } => !extra.is_empty(),
        Slot::Call { made, extra } => *made || !extra.is_empty(),
        Slot::Opaque(_) => true,
    };
    if !slots.iter().any(says_more) {
        return Vec::new();
    }
    let keep = |slot: Slot| {
        Some(Replay {
            format: FORMAT.to_owned(),
            provider: origin.provider.to_string(),
            model: origin.model.to_string(),
            data: RawJson::of(&slot.place()).ok()?,
        })
    };
    slots.into_iter().filter_map(keep).collect()
}

/// The kept order; `None` where there is none, or of another model.
pub(super) fn kept(message: &AssistantMessage, origin: &Origin) -> Option<Vec<Slot>> {
    let ours =
        |kept: &&Replay| kept.format == FORMAT && *kept.provider == *origin.provider && *kept.model == *origin.model;
    let slots: Vec<Slot> = message.replay.iter().filter(ours).filter_map(Slot::read).collect();
    (!slots.is_empty()).then_some(slots)
}
