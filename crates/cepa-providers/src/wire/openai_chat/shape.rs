//! The members of replies and chunks that mean something; everything else is ignored.
//!
//! Read tolerantly: servers leave members out, write `null`, or a number where a text belongs. What carries the reply
//! itself (content, arguments) must still be of a type that can be read.

use cepa_core::RawJson;
use serde::{Deserialize, Deserializer, de};

use super::tolerant::{Few, Text, Word, elements};
use crate::wire::surrogates;

/// More calls, or pieces of some in one chunk, than any model makes at once.
pub(super) const MAX_CALLS: usize = 1024;
/// As many as can be asked for (<https://platform.openai.com/docs/api-reference/chat/create>).
const MAX_CHOICES: usize = 128;

/// A whole reply, or a chunk of a streamed one.
#[derive(Debug, Deserialize)]
pub(super) struct Body {
    #[serde(default)]
    pub(super) choices: Option<Few<Choice, MAX_CHOICES>>,
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
    /// Its place, as the text it is written in.
    #[serde(default)]
    pub(super) index: Option<RawJson>,
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
    pub(super) refusal: Text,
    #[serde(default)]
    pub(super) reasoning_content: Text,
    #[serde(default)]
    pub(super) reasoning: Text,
    #[serde(default)]
    pub(super) reasoning_details: Option<RawJson>,
    #[serde(default)]
    pub(super) extra_content: Option<RawJson>,
    #[serde(default)]
    pub(super) tool_calls: Option<Few<Option<CallPart>, MAX_CALLS>>,
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

/// Content: a text, or parts of which some are reasoning (Mistral).
#[derive(Debug, Default)]
pub(super) struct Words {
    /// A text alone.
    pub(super) written: Text,
    /// What the parts say.
    pub(super) text: String,
    pub(super) reasoning: String,
    pub(super) refusal: String,
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut words = Self::default();
        let Some(raw) = Option::<RawJson>::deserialize(deserializer)? else { return Ok(words) };
        match raw.as_str().as_bytes().first() {
            Some(b'"') => words.written = Text::of(raw),
            Some(b'[') => elements(raw.as_str(), |part| words.part(part)).map_err(de::Error::custom)?,
            _ => return Err(de::Error::custom("content is neither a text nor parts")),
        }
        Ok(words)
    }
}

/// A part of content; of thinking too.
#[derive(Deserialize)]
struct Part {
    #[serde(default, rename = "type")]
    kind: Word,
    #[serde(default)]
    text: Word,
    #[serde(default)]
    refusal: Word,
    #[serde(default)]
    thinking: Option<RawJson>,
}

impl Words {
    fn part(&mut self, json: &str) -> Result<(), serde_json::Error> {
        let part: Part = match json.as_bytes().first() {
            Some(b'{') => surrogates::read(json)?,
            Some(b'"') => {
                self.text.push_str(&surrogates::read::<String>(json)?);
                return Ok(());
            }
            _ => return Ok(()),
        };
        match part.kind.0.as_deref().unwrap_or_default() {
            "thinking" => part.thinking.iter().try_for_each(|thinking| self.thinking(thinking.as_str()))?,
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
                    self.reasoning.push_str(&surrogates::read::<Part>(part)?.text.0.unwrap_or_default());
                }
                Some(b'"') => self.reasoning.push_str(&surrogates::read::<String>(part)?),
                _ => {}
            }
            Ok(())
        })
    }
}
