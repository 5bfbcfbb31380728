//! The members of replies and chunks that mean something; everything else is ignored.
//!
//! Read tolerantly: servers leave members out, write `null`, or a number where a text belongs. What carries the reply
//! itself (content, arguments) must still be of a type that can be read. What a chunk seldom has is in a box: its parts are
//! handed on many times while it is read.

use serde::{Deserialize, Deserializer, de};
use serde_json::value::RawValue;

use super::tolerant::{Few, Text, Word, elements};
use crate::wire::surrogates;

/// More calls, or pieces of some in one chunk, than any model makes at once.
pub(super) const MAX_CALLS: usize = 1024;
/// As many as can be asked for (<https://platform.openai.com/docs/api-reference/chat/create>).
const MAX_CHOICES: usize = 128;

/// A whole reply, or a chunk of a streamed one.
#[derive(Debug, Deserialize)]
pub(super) struct Body<'a> {
    #[serde(borrow, default)]
    pub(super) choices: Option<Few<Choice<'a>, MAX_CHOICES>>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    /// Anything but `null` is a failure.
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
    /// `error` where the whole object is one (vLLM, Mistral).
    #[serde(borrow, default)]
    pub(super) object: Option<&'a RawValue>,
    /// Where Groq put the usage of a stream.
    #[serde(borrow, default)]
    pub(super) x_groq: Option<Groq<'a>>,
}

impl Body<'_> {
    /// Whether the whole object is an error, or holds one.
    pub(super) fn is_error(&self) -> bool {
        self.error.is_some() || self.object.is_some_and(|object| object.get() == r#""error""#)
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Groq<'a> {
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice<'a> {
    /// Its place, as the text it is written in.
    #[serde(borrow, default)]
    pub(super) index: Option<&'a RawValue>,
    /// Of a whole reply.
    #[serde(borrow, default)]
    pub(super) message: Option<Box<Delta<'a>>>,
    /// Of a chunk.
    #[serde(borrow, default)]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    pub(super) finish_reason: Word<'a>,
    /// Where OpenRouter reports that this choice failed.
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
    /// Where Moonshot puts the usage of a stream.
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
}

/// What a message holds, or what a chunk adds to it.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, default)]
    pub(super) content: Words<'a>,
    #[serde(borrow, default)]
    pub(super) refusal: Text<'a>,
    #[serde(borrow, default)]
    pub(super) reasoning_content: Text<'a>,
    #[serde(borrow, default)]
    pub(super) reasoning: Text<'a>,
    #[serde(borrow, default)]
    pub(super) reasoning_details: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) extra_content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) tool_calls: Option<Few<Option<CallPart<'a>>, MAX_CALLS>>,
    /// The form before `tool_calls`, which some servers still use.
    #[serde(borrow, default)]
    pub(super) function_call: Option<Box<FunctionPart<'a>>>,
}

/// A call, or a piece of one.
#[derive(Debug, Deserialize)]
pub(super) struct CallPart<'a> {
    /// Its place, as the text it is written in: a key, not a position.
    #[serde(borrow, default)]
    pub(super) index: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) id: Word<'a>,
    #[serde(borrow, default)]
    pub(super) function: Option<FunctionPart<'a>>,
    #[serde(borrow, default)]
    pub(super) extra_content: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct FunctionPart<'a> {
    #[serde(borrow, default)]
    pub(super) name: Word<'a>,
    /// A text as a rule; an object from servers that read the specification otherwise.
    #[serde(borrow, default)]
    pub(super) arguments: Option<&'a RawValue>,
}

/// Content: a text, or parts of which some are reasoning (Mistral).
#[derive(Debug, Default)]
pub(super) struct Words<'a> {
    /// A text alone.
    pub(super) written: Text<'a>,
    pub(super) parts: Option<Box<Said>>,
}

/// What the parts of a content say.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) text: String,
    pub(super) reasoning: String,
    pub(super) refusal: String,
}

impl<'de: 'a, 'a> Deserialize<'de> for Words<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        let mut words = Self::default();
        match raw.get().as_bytes().first() {
            Some(b'"') => words.written = Text::of(raw),
            Some(b'[') => {
                let said = words.parts.insert(Box::default());
                elements(raw.get(), |part| said.part(part)).map_err(de::Error::custom)?;
            }
            _ if raw.get() == "null" => {}
            _ => return Err(de::Error::custom("content is neither a text nor parts")),
        }
        Ok(words)
    }
}

/// A part of content; of thinking too.
#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Word<'a>,
    #[serde(borrow, default)]
    text: Word<'a>,
    #[serde(borrow, default)]
    refusal: Word<'a>,
    #[serde(borrow, default)]
    thinking: Option<&'a RawValue>,
}

impl Said {
    fn part(&mut self, json: &str) -> Result<(), serde_json::Error> {
        let mut mended = String::new();
        let part: Part<'_> = match json.as_bytes().first() {
            Some(b'{') => surrogates::read_in(json, &mut mended)?,
            Some(b'"') => {
                self.text.push_str(&surrogates::read::<String>(json)?);
                return Ok(());
            }
            _ => return Ok(()),
        };
        match part.kind.0.as_deref().unwrap_or_default() {
            "thinking" => part.thinking.iter().try_for_each(|thinking| self.thinking(thinking.get()))?,
            "refusal" => self.refusal.push_str(&part.refusal.0.unwrap_or_default()),
            // References, images and what may come have no place in a text.
            _ => self.text.push_str(&part.text.0.unwrap_or_default()),
        }
        Ok(())
    }

    /// Mistral's thinking is a list of text parts, or a text.
    fn thinking(&mut self, json: &str) -> Result<(), serde_json::Error> {
        if json.starts_with('"') {
            self.reasoning.push_str(&surrogates::read::<String>(json)?);
        }
        elements(json, |part| {
            match part.as_bytes().first() {
                Some(b'{') => {
                    let mut mended = String::new();
                    let part: Part<'_> = surrogates::read_in(part, &mut mended)?;
                    self.reasoning.push_str(&part.text.0.unwrap_or_default());
                }
                Some(b'"') => self.reasoning.push_str(&surrogates::read::<String>(part)?),
                _ => {}
            }
            Ok(())
        })
    }
}
