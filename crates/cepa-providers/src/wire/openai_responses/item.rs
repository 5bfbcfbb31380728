//! An output item as it is received: whole, or growing.

use cepa_core::{Args, Error, Extra, RawJson};
use serde_json::value::RawValue;

use super::{layout::TextKind, reply::GAP};
use crate::wire::{caps::check_items, cut, index::Index, pick};

/// One item of a reply.
#[derive(Debug)]
pub(super) enum Item {
    /// What the model says.
    Message {
        /// The parts of its content.
        parts: Vec<Said>,
        /// Status and phase.
        extra: Extra,
    },
    /// A call of one of our tools.
    Call(Call),
    /// What the model thought, as far as it tells.
    Reasoning { raw: Option<RawJson>, text: String },
    /// Any other item, and its type: kept, not understood.
    Opaque(RawJson, String),
}

/// A part of what the model says.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// The place that the provider gave it.
    pub(super) index: Option<Index>,
    pub(super) kind: TextKind,
    pub(super) text: String,
    pub(super) annotations: Option<RawJson>,
    /// Whether its text came in one piece: no more is added to it.
    pub(super) is_whole: bool,
}

/// A call as it grows.
#[derive(Debug, Default)]
pub(super) struct Call {
    pub(super) call_id: Option<String>,
    pub(super) name: String,
    pub(super) args: String,
    /// Whether the arguments came in one piece: no more is added to them.
    pub(super) is_whole: bool,
    /// Whether the provider said that the call is complete.
    pub(super) is_complete: bool,
    pub(super) extra: Extra,
}

impl Call {
    /// The arguments as they are to be run, or not.
    pub(super) fn decoded(&self) -> Args {
        if self.is_complete { Args::decode(&self.args) } else { cut::unfinished(&self.args) }
    }
}

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Message,
    Call,
    Reasoning,
    Opaque,
}

/// What an item is, more exactly: those that are not understood have a type too.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sort(Kind, Option<String>);

impl Item {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Message { .. } => Kind::Message,
            Self::Call(_) => Kind::Call,
            Self::Reasoning { .. } => Kind::Reasoning,
            Self::Opaque(..) => Kind::Opaque,
        }
    }

    pub(super) fn sort(&self) -> Sort {
        let kind = match self {
            Self::Opaque(_, kind) => Some(kind.clone()),
            Self::Message { .. } | Self::Call(_) | Self::Reasoning { .. } => None,
        };
        Sort(self.kind(), kind)
    }

    /// Whether both are of one [`sort`](Self::sort).
    pub(super) fn is_of_sort(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Opaque(_, one), Self::Opaque(_, other)) => one == other,
            _ => self.kind() == other.kind(),
        }
    }

    /// The id of the call that it is.
    pub(super) fn call_id(&self) -> Option<&str> {
        match self {
            Self::Call(call) => call.call_id.as_deref(),
            Self::Message { .. } | Self::Reasoning { .. } | Self::Opaque(..) => None,
        }
    }

    /// Whether it is a message that says nothing.
    pub(super) fn is_silent(&self) -> bool {
        matches!(self, Self::Message { parts, .. } if parts.iter().all(|part| part.text.is_empty()))
    }

    /// Whether both can be one item: two ids are two calls.
    pub(super) fn may_be(&self, other: &Self) -> bool {
        self.kind() == other.kind() && self.call_id().zip(other.call_id()).is_none_or(|(one, other)| one == other)
    }

    /// Whether one of them is said by the other.
    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Message { parts, .. }, Self::Message { parts: others, .. }) => {
                let text = |part: &Said| part.text.clone();
                parts.iter().map(text).collect::<String>() == others.iter().map(text).collect::<String>()
            }
            // The same function may be called twice with the same.
            (Self::Call(_), Self::Call(_)) => self.call_id().is_some() && self.call_id() == other.call_id(),
            (Self::Reasoning { text, .. }, Self::Reasoning { text: other, .. }) => text == other,
            (Self::Opaque(raw, _), Self::Opaque(other, _)) => raw == other,
            _ => false,
        }
    }

    /// How much of what a reply may hold it takes.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Message { parts, .. } => parts.len(),
            Self::Call(call) => call.extra.len(),
            Self::Reasoning { .. } | Self::Opaque(..) => 0,
        }
    }

    /// An item and its id; `None` for what is no item.
    ///
    /// # Errors
    /// `decode` if it holds more than a reply does.
    pub(super) fn read(raw: &RawValue) -> Result<Option<(Option<String>, Self)>, Error> {
        let Some([kind, id, role]) = pick::members(raw.get(), ["type", "id", "role"]) else { return Ok(None) };
        let item = match word(kind) {
            Some(kind) if kind == "message" => Self::message(raw.get())?,
            Some(kind) if kind == "function_call" => Self::Call(Call::read(raw.get())?),
            Some(kind) if kind == "reasoning" => Self::Reasoning { text: thoughts(raw.get())?, raw: pick::keep(raw) },
            Some(kind) => match pick::keep(raw) {
                Some(raw) => Self::Opaque(raw, kind),
                None => return Ok(None),
            },
            // Servers that leave the type out send messages only.
            None if role.is_some() => Self::message(raw.get())?,
            None => return Ok(None),
        };
        Ok(Some((word(id), item)))
    }

    fn message(json: &str) -> Result<Self, Error> {
        let [content, status, phase] = pick::members(json, ["content", "status", "phase"]).unwrap_or_default();
        let mut parts = Vec::new();
        match content {
            Some(content) if content.get().starts_with('"') => {
                parts.extend(pick::text(content).map(|text| Said { text, ..Said::default() }));
            }
            Some(content) => {
                let mut place = 0;
                pick::each(content.get(), |part| {
                    parts.extend(Said::read(part, place));
                    place += 1;
                    check_items(parts.len(), "parts")
                })?;
            }
            None => {}
        }
        // Whatever else there may be is not known to be taken back.
        let kept = [("status", status), ("phase", phase)].into_iter();
        let kept = kept.filter_map(|(name, raw)| Some((name.to_owned(), pick::keep(raw?)?)));
        Ok(Self::Message { parts, extra: kept.filter(|(_, value)| value.as_str().starts_with('"')).collect() })
    }
}

impl Call {
    fn read(json: &str) -> Result<Self, Error> {
        let mut members = pick::all(json)?.unwrap_or_default();
        members.retain(|_, value| value.as_str() != "null");
        members.remove("type");
        members.remove("id");
        let mut text =
            |name: &str| members.remove(name).and_then(|raw| raw.read::<String>().ok()).filter(|text| !text.is_empty());
        let (call_id, name) = (text("call_id"), text("name").unwrap_or_default());
        let args = members.remove("arguments").map(|raw| arguments(raw.as_str())).unwrap_or_default();
        // Not every server writes a status; a word that is not known is none that says it is complete.
        let is_complete = members.remove("status").is_none_or(|status| status.as_str() == "\"completed\"");
        Ok(Self { call_id, name, args, is_whole: false, is_complete, extra: members })
    }
}

impl Said {
    /// A part of content; `None` for one that holds no words.
    fn read(part: &RawValue, place: u64) -> Option<Self> {
        let [kind, text, refusal, annotations] = pick::members(part.get(), ["type", "text", "refusal", "annotations"])?;
        let (kind, text) = match word(kind).as_deref() {
            Some("refusal") => (TextKind::Refusal, refusal),
            _ => (TextKind::OutputText, text),
        };
        let is_some =
            |raw: &&RawValue| raw.get().strip_prefix('[').is_some_and(|inside| !inside.trim_start().starts_with(']'));
        let annotations = annotations.filter(is_some).and_then(pick::keep);
        let (index, text) = (Some(Index::Number(place)), pick::text(text?)?);
        Some(Self { index, kind, text, annotations, is_whole: true })
    }
}

/// What the whole of a text adds to what was streamed of it.
pub(super) enum Wanting<'a> {
    /// It goes on like this, or not at all.
    Rest(&'a str),
    /// It is the same but for white space around it, or there is no whole: what was streamed stands.
    Nothing,
    /// It is another one.
    All,
}

pub(super) fn wanting<'a>(whole: &'a str, streamed: &str) -> Wanting<'a> {
    match whole.strip_prefix(streamed) {
        Some(rest) => Wanting::Rest(rest),
        None if whole.is_empty() || whole.trim() == streamed.trim() => Wanting::Nothing,
        None => Wanting::All,
    }
}

/// The text of arguments; servers that write an object instead mean it.
pub(super) fn arguments(json: &str) -> String {
    match json {
        "null" => String::new(),
        text if text.starts_with('"') => serde_json::from_str(text).unwrap_or_default(),
        json => json.to_owned(),
    }
}

/// The summary, and the reasoning itself where an open model tells it.
fn thoughts(json: &str) -> Result<String, Error> {
    let mut thoughts = String::new();
    for list in pick::members(json, ["summary", "content"]).unwrap_or_default().into_iter().flatten() {
        pick::each(list.get(), |part| {
            let text = pick::members(part.get(), ["text"]).map_or(Some(part), |[text]| text);
            if let Some(text) = word(text) {
                let gap = if thoughts.is_empty() { "" } else { GAP };
                thoughts.extend([gap, &text]);
            }
            Ok(())
        })?;
    }
    Ok(thoughts)
}

/// A text that is not empty; `null`, `""` and anything that is no text count as left out.
fn word(raw: Option<&RawValue>) -> Option<String> {
    raw.and_then(pick::text).filter(|text| !text.is_empty())
}
