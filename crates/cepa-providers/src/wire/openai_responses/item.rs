//! An output item as it is received: whole, or growing.

use cepa_core::{Args, Extra, RawJson};
use serde_json::Value;

use super::layout::TextKind;
use crate::wire::cut;

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
    /// Any other item: kept, not understood.
    Opaque(RawJson),
}

/// A part of what the model says.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// The place that the provider gave it.
    pub(super) index: Option<u64>,
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
            Self::Opaque(_) => Kind::Opaque,
        }
    }

    pub(super) fn sort(&self) -> Sort {
        let kind = match self {
            Self::Opaque(raw) => raw.read::<Extra>().ok().and_then(|mut members| word(members.remove("type"))),
            Self::Message { .. } | Self::Call(_) | Self::Reasoning { .. } => None,
        };
        Sort(self.kind(), kind)
    }

    /// The id of the call that it is.
    pub(super) fn call_id(&self) -> Option<&str> {
        match self {
            Self::Call(call) => call.call_id.as_deref(),
            Self::Message { .. } | Self::Reasoning { .. } | Self::Opaque(_) => None,
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
            (Self::Opaque(raw), Self::Opaque(other)) => raw == other,
            _ => false,
        }
    }

    /// An item and its id; `None` for what is no item.
    pub(super) fn read(raw: RawJson) -> Option<(Option<String>, Self)> {
        let mut members: Extra = raw.read().ok()?;
        let kind = word(members.remove("type"));
        let id = word(members.remove("id"));
        let item = match kind.as_deref() {
            Some("message") => Self::message(&mut members),
            Some("function_call") => {
                let call_id = word(members.remove("call_id"));
                let name = word(members.remove("name")).unwrap_or_default();
                let args = members.remove("arguments").map(|raw| arguments(&raw)).unwrap_or_default();
                // Not every server writes a status; a word that is not known is none that says it is complete.
                let status = members.remove("status").filter(|status| status.as_str() != "null");
                let is_complete = status.is_none_or(|status| word(Some(status)).as_deref() == Some("completed"));
                members.retain(|_, value| value.as_str() != "null");
                Self::Call(Call { call_id, name, args, is_whole: false, is_complete, extra: members })
            }
            Some("reasoning") => Self::Reasoning { text: thoughts(&members), raw: Some(raw) },
            Some(_) => Self::Opaque(raw),
            // Servers that leave the type out send messages only.
            None if members.contains_key("role") => Self::message(&mut members),
            None => return None,
        };
        Some((id, item))
    }

    fn message(members: &mut Extra) -> Self {
        let content = members.remove("content").and_then(|raw| raw.read::<Value>().ok());
        let parts = match content {
            Some(Value::String(text)) => vec![Said { text, ..Said::default() }],
            Some(Value::Array(parts)) => {
                parts.iter().enumerate().filter_map(|(place, part)| Said::read(part, place as u64)).collect()
            }
            _ => Vec::new(),
        };
        // Whatever else there may be is not known to be taken back.
        members.retain(|name, value| ["status", "phase"].contains(&&**name) && value.as_str().starts_with('"'));
        Self::Message { parts, extra: std::mem::take(members) }
    }
}

impl Said {
    /// A part of content; `None` for one that holds no words.
    pub(super) fn read(part: &Value, place: u64) -> Option<Self> {
        let text = |name: &str| part.get(name).and_then(Value::as_str).map(str::to_owned);
        let (kind, text) = match part.get("type").and_then(Value::as_str) {
            Some("refusal") => (TextKind::Refusal, text("refusal")?),
            _ => (TextKind::OutputText, text("text")?),
        };
        let annotations = part.get("annotations").filter(|all| all.as_array().is_some_and(|all| !all.is_empty()));
        let annotations = annotations.and_then(|all| RawJson::of(all).ok());
        Some(Self { index: Some(place), kind, text, annotations, is_whole: true })
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
pub(super) fn arguments(raw: &RawJson) -> String {
    match raw.as_str() {
        "null" => String::new(),
        text if text.starts_with('"') => raw.read().unwrap_or_default(),
        json => json.to_owned(),
    }
}

/// The summary, and the reasoning itself where an open model tells it.
fn thoughts(members: &Extra) -> String {
    let mut texts = Vec::new();
    for name in ["summary", "content"] {
        let parts: Vec<Value> = members.get(name).and_then(|raw| raw.read().ok()).unwrap_or_default();
        let parts = parts.iter().filter_map(|part| part.get("text").or(Some(part))?.as_str());
        texts.extend(parts.filter(|text| !text.is_empty()).map(str::to_owned));
    }
    texts.join("\n\n")
}

/// A text that is not empty; `null`, `""` and anything that is no text count as left out.
fn word(raw: Option<RawJson>) -> Option<String> {
    raw?.read::<String>().ok().filter(|text| !text.is_empty())
}
