//! A block of a reply, whole or still growing. Both ways of answering end here, so that they say the same.

use cepa_core::{Args, Extra, RawJson};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{json, value::RawValue};

use super::layout::Opaque;
use crate::wire::{caps::check_items, cut, ids::ReplyIds, pick};

/// A block as it came so far.
#[derive(Debug)]
pub(super) enum Received {
    Text {
        text: String,
        citations: Vec<RawJson>,
    },
    Thinking {
        text: String,
        signature: String,
        whole: Option<RawJson>,
    },
    Call {
        id: String,
        name: String,
        input: Option<RawJson>,
        json: String,
        extra: Extra,
    },
    /// Thinking that nobody can read, a server's tool, or a type that this version does not know.
    Opaque {
        start: RawJson,
        json: String,
        lost: bool,
    },
}

/// A block at its end.
#[derive(Debug)]
pub(super) enum Piece {
    Text {
        text: String,
        citations: Option<RawJson>,
    },
    Thinking {
        text: String,
        block: Option<Opaque>,
    },
    Call {
        id: String,
        name: String,
        args: Args,
        extra: Extra,
    },
    Opaque(Opaque),
    /// A block whose content this version could not follow.
    Lost,
}

/// What one event adds to a block. Which member counts depends on the type.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Delta<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    partial_json: Option<&'a RawValue>,
    #[serde(borrow)]
    thinking: Option<&'a RawValue>,
    #[serde(borrow)]
    signature: Option<&'a RawValue>,
    #[serde(borrow)]
    citation: Option<&'a RawValue>,
}

impl Delta<'_> {
    /// Whether it holds arguments.
    pub(super) fn is_arguments(&self) -> bool {
        self.partial_json.is_some_and(|json| !["null", "\"\""].contains(&json.get()))
    }
}

/// What of a delta is told to those who listen.
#[derive(Debug, PartialEq)]
pub(super) enum Told {
    Text(String),
    Reasoning(String),
    Arguments(String),
    Nothing,
}

impl Received {
    /// A block as it is, or as it begins. The error says what is wrong with it.
    pub(super) fn read(raw: RawJson, ids: &mut ReplyIds) -> Result<Self, String> {
        let members = pick::all(raw.as_str()).map_err(|error| error.message().to_owned())?;
        let mut members = members.ok_or("a block is not an object")?;
        let kind: String = take(&mut members, "type").ok_or("a block has no type")?;
        Ok(match kind.as_str() {
            "text" => {
                let text = take(&mut members, "text").ok_or("a text block has no text")?;
                let mut citations = Vec::new();
                if let Some(list) = members.remove("citations") {
                    pick::each(list.as_str(), |one| {
                        citations.extend(pick::keep(one));
                        check_items(citations.len(), "citations")
                    })
                    .map_err(|error| error.message().to_owned())?;
                }
                Self::Text { text, citations }
            }
            "thinking" => Self::Thinking {
                text: take(&mut members, "thinking").unwrap_or_default(),
                signature: take(&mut members, "signature").unwrap_or_default(),
                whole: Some(raw),
            },
            "tool_use" => {
                let id: Option<String> = take(&mut members, "id");
                let name = take(&mut members, "name").unwrap_or_default();
                let input = members.remove("input");
                members.retain(|name, value| {
                    let says_nothing = value.as_str() == "null" || (name == "caller" && is_direct(value));
                    !says_nothing && name != "cache_control"
                });
                Self::Call { id: ids.settle(id.as_deref()), name, input, json: String::new(), extra: members }
            }
            _ => Self::Opaque { start: raw, json: String::new(), lost: false },
        })
    }

    /// Takes what an event adds. A delta that does not belong to the block's type is left out. The error says what is wrong.
    pub(super) fn grow(&mut self, delta: Delta<'_>) -> Result<Told, String> {
        let kind = delta.kind.and_then(pick::lent_text).unwrap_or_default();
        match (self, &*kind) {
            (Self::Text { text, .. }, "text_delta") => {
                let more = string(delta.text)?;
                text.push_str(&more);
                return Ok(if more.is_empty() { Told::Nothing } else { Told::Text(more) });
            }
            (Self::Text { citations, .. }, "citations_delta") => citations.extend(delta.citation.and_then(pick::keep)),
            (Self::Thinking { text, whole, .. }, "thinking_delta") => {
                let more = string(delta.thinking)?;
                *whole = None;
                text.push_str(&more);
                return Ok(if more.is_empty() { Told::Nothing } else { Told::Reasoning(more) });
            }
            (Self::Thinking { signature, whole, .. }, "signature_delta") => {
                *whole = None;
                *signature = string(delta.signature)?;
            }
            (Self::Call { json, .. }, "input_json_delta") => {
                let more = string(delta.partial_json)?;
                json.push_str(&more);
                return Ok(if more.is_empty() { Told::Nothing } else { Told::Arguments(more) });
            }
            (Self::Opaque { json, .. }, "input_json_delta") => json.push_str(&string(delta.partial_json)?),
            (Self::Opaque { lost, .. }, _) => *lost = true,
            (Self::Text { .. } | Self::Thinking { .. } | Self::Call { .. }, _) => {}
        }
        Ok(Told::Nothing)
    }

    /// The arguments of a call that did not come to its end.
    pub(super) fn unfinished(&self) -> Args {
        match self {
            Self::Call { json, .. } => cut::unfinished(json),
            Self::Text { .. } | Self::Thinking { .. } | Self::Opaque { .. } => cut::unfinished(""),
        }
    }

    /// What the block is now.
    pub(super) fn piece(&self) -> Piece {
        match self {
            Self::Text { text, citations } => {
                let citations = (!citations.is_empty()).then(|| RawJson::of(citations).ok()).flatten();
                Piece::Text { text: text.clone(), citations }
            }
            // "Invalid or blank signature" is refused, no block at all is not: without a signature nothing goes back.
            Self::Thinking { text, signature, .. } if signature.trim().is_empty() => {
                Piece::Thinking { text: text.clone(), block: None }
            }
            Self::Thinking { text, signature, whole } => {
                let block = whole.clone().or_else(|| signed_thinking(text, signature));
                Piece::Thinking { text: text.clone(), block: block.and_then(Opaque::new) }
            }
            Self::Call { id, name, input, json, extra } => Piece::Call {
                id: id.clone(),
                name: name.clone(),
                // A streamed block begins with `{}` and grows by text; one that does not grow is what it began with.
                args: if json.trim().is_empty() { Args::decode_value(input.as_ref()) } else { Args::decode(json) },
                extra: extra.clone(),
            },
            Self::Opaque { lost: true, .. } => Piece::Lost,
            Self::Opaque { start, json, .. } if json.trim().is_empty() => opaque(Some(start.clone())),
            Self::Opaque { start, json, .. } => opaque(with_input(start, json)),
        }
    }
}

fn opaque(raw: Option<RawJson>) -> Piece {
    raw.and_then(Opaque::new).map_or(Piece::Lost, Piece::Opaque)
}

fn signed_thinking(text: &str, signature: &str) -> Option<RawJson> {
    // Written by hand for the usual order of members; a map would sort them.
    let (text, signature) = (json!(text), json!(signature));
    RawJson::parse(&format!(r#"{{"type":"thinking","thinking":{text},"signature":{signature}}}"#)).ok()
}

fn with_input(start: &RawJson, json: &str) -> Option<RawJson> {
    let Args::Object(input) = Args::decode(json) else { return None };
    let mut members: Extra = start.read().ok()?;
    members.insert("input".to_owned(), input);
    RawJson::of(&members).ok()
}

/// `{"type": "direct"}`: the model itself made the call, as always.
fn is_direct(caller: &RawJson) -> bool {
    let members = pick::all(caller.as_str()).ok().flatten().unwrap_or_default();
    members.len() == 1 && members.get("type").is_some_and(|kind| kind.as_str() == "\"direct\"")
}

/// A text; nothing where there is none.
fn string(value: Option<&RawValue>) -> Result<String, String> {
    let read =
        |value: &RawValue| serde_json::from_str(value.get()).map_err(|error| format!("a delta is not a text: {error}"));
    value.map_or(Ok(String::new()), read)
}

fn take<T: DeserializeOwned>(members: &mut Extra, name: &str) -> Option<T> {
    members.remove(name)?.read().ok()
}
