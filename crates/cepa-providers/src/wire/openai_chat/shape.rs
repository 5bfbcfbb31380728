//! The members of replies and chunks that mean something; everything else is ignored.
//!
//! Read tolerantly: servers leave members out, write `null`, or a number where a text belongs. What carries the reply
//! itself (content, arguments) must still be of a type that can be read.

use cepa_core::RawJson;
use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Value};

/// A whole reply, or a chunk of a streamed one.
#[derive(Debug, Deserialize)]
pub(super) struct Body {
    #[serde(default)]
    pub(super) choices: Option<Vec<Choice>>,
    #[serde(default)]
    pub(super) usage: Option<RawJson>,
    /// Anything but `null` is a failure.
    #[serde(default)]
    pub(super) error: Option<RawJson>,
    /// `error` where the whole object is one (vLLM, Mistral).
    #[serde(default)]
    pub(super) object: Word,
    /// Where Groq put the usage of a stream.
    #[serde(default)]
    pub(super) x_groq: Option<Groq>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Groq {
    #[serde(default)]
    pub(super) usage: Option<RawJson>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice {
    #[serde(default)]
    pub(super) index: Option<Value>,
    /// Of a whole reply.
    #[serde(default)]
    pub(super) message: Option<Delta>,
    /// Of a chunk.
    #[serde(default)]
    pub(super) delta: Option<Delta>,
    #[serde(default)]
    pub(super) finish_reason: Word,
    /// Where OpenRouter reports that this choice failed.
    #[serde(default)]
    pub(super) error: Option<RawJson>,
    /// Where Moonshot puts the usage of a stream.
    #[serde(default)]
    pub(super) usage: Option<RawJson>,
}

/// What a message holds, or what a chunk adds to it.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Delta {
    #[serde(default)]
    pub(super) content: Words,
    #[serde(default)]
    pub(super) refusal: Word,
    #[serde(default)]
    pub(super) reasoning_content: Word,
    #[serde(default)]
    pub(super) reasoning: Word,
    #[serde(default)]
    pub(super) reasoning_details: Option<Value>,
    #[serde(default)]
    pub(super) extra_content: Option<RawJson>,
    #[serde(default)]
    pub(super) tool_calls: Option<Vec<Option<CallPart>>>,
    /// The form before `tool_calls`, which some servers still use.
    #[serde(default)]
    pub(super) function_call: Option<FunctionPart>,
}

/// A call, or a piece of one.
#[derive(Debug, Deserialize)]
pub(super) struct CallPart {
    /// Its place, as the text it is written in: a key, not a position.
    #[serde(default)]
    pub(super) index: Option<RawJson>,
    #[serde(default)]
    pub(super) id: Word,
    #[serde(default)]
    pub(super) function: Option<FunctionPart>,
    #[serde(default)]
    pub(super) extra_content: Option<RawJson>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct FunctionPart {
    #[serde(default)]
    pub(super) name: Word,
    /// A text as a rule; an object from servers that read the specification otherwise.
    #[serde(default)]
    pub(super) arguments: Option<RawJson>,
}

/// A text that is not empty, or nothing: `null`, `""` and anything that is no text count as left out.
#[derive(Debug, Default)]
pub(super) struct Word(pub(super) Option<String>);

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Value::deserialize(deserializer)? {
            Value::String(text) if !text.is_empty() => Self(Some(text)),
            _ => Self(None),
        })
    }
}

/// Content: a text, or parts of which some are reasoning (Mistral).
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) text: String,
    pub(super) reasoning: String,
    pub(super) refusal: String,
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut words = Self::default();
        match Value::deserialize(deserializer)? {
            Value::Null => {}
            Value::String(text) => words.text = text,
            Value::Array(parts) => parts.into_iter().for_each(|part| words.part(part)),
            other => return Err(de::Error::custom(format_args!("content is neither a text nor parts: {other}"))),
        }
        Ok(words)
    }
}

impl Words {
    fn part(&mut self, part: Value) {
        let mut part = match part {
            Value::Object(part) => part,
            Value::String(text) => return self.text.push_str(&text),
            _ => return,
        };
        let kind = take_text(&mut part, "type").unwrap_or_default();
        match kind.as_str() {
            "thinking" => self.reasoning.push_str(&thought(part.remove("thinking"))),
            "refusal" => self.refusal.push_str(&take_text(&mut part, "refusal").unwrap_or_default()),
            // References, images and what may come have no place in a text.
            _ => self.text.push_str(&take_text(&mut part, "text").unwrap_or_default()),
        }
    }
}

fn take_text(part: &mut Map<String, Value>, name: &str) -> Option<String> {
    match part.remove(name)? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// Mistral's thinking is a list of text parts, or a text.
fn thought(value: Option<Value>) -> String {
    match value {
        Some(Value::String(text)) => text,
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(|part| part.get("text").or(Some(part))?.as_str()).collect()
        }
        _ => String::new(),
    }
}
