//! Gemini's `generateContent`: <https://ai.google.dev/api/generate-content>.
//!
//! What is converted, because the wire has no place for it:
//! * System messages inside a conversation: they keep their place as text in the user's turn, marked as `<system>`. Those at
//!   its start go to `systemInstruction`; so does the wish for one call at a time, for which there is no setting.
//! * Blank user messages, a history that begins with the assistant, and an assistant message that nobody answered: short
//!   texts stand in their place or between them, because roles must take turns
//!   (<https://github.com/google-gemini/gemini-cli/issues/11814>). Blank texts elsewhere are left out.
//! * Media in the result of a tool: models from Gemini 3 on take images, PDF and text inside the response
//!   (<https://ai.google.dev/gemini-api/docs/function-calling#multimodal>); for older ones, and other media, they stand behind
//!   the batch's responses in the same turn. What the API does not take is named in the text.
//! * Arguments that could not be decoded are sent as `{}`; the result that follows says what was wrong with them.
//! * Names that begin with a digit or a dash get an underscore in front, which replies lose again.
//! * Efforts become budgets for models before Gemini 3, which know no levels.
//! * Schemas: see [`schema::gemini`](super::schema::gemini).
//!
//! What is refused: unknown parts, media of other types in a user's message; media in system messages; more than five stop texts.
//!
//! Thought signatures stay on the very part that they came with, beside the message, and go back word for word to this very
//! provider and model (<https://ai.google.dev/gemini-api/docs/thought-signatures>). From Gemini 3 on the first call of each reply
//! must have one: a reply of another model, or one whose signature is lost, gets the one that the page gives for such calls.

mod assembly;
mod contents;
mod decode;
mod encode;
mod finish;
mod layout;
mod media;
mod names;
mod params;
mod part;
mod reply;
mod response;
mod shape;
mod stream;
mod tools;
mod usage;

use std::borrow::Cow;

use bytes::Bytes;
use cepa_core::{ChatRequest, ChatResponse, Error, Origin, WireKey};

use super::{Delivery, Dialect};

pub use stream::Fold;

/// The format of replayed blocks in [`Replay`](cepa_core::Replay).
const FORMAT: &str = "gemini";

/// What a model knows, by its generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Generation {
    /// Up to Gemini 2.5: thinks by budget, takes calls without signatures.
    Before3,
    /// From Gemini 3 on: thinks by level, wants signatures, takes media inside responses.
    From3,
}

impl Generation {
    /// The generation that a model's name tells: `gemini-2.5-flash` is before 3, `gemini-3-pro` and names without a number
    /// (`gemini-flash-latest`) are not, and models of other names (`gemma-3`) are as the first.
    ///
    /// ```
    /// use cepa_providers::wire::gemini::Generation;
    /// assert_eq!(Generation::of("gemini-2.5-flash"), Generation::Before3);
    /// assert_eq!(Generation::of("models/gemini-3.8-flash"), Generation::From3);
    /// ```
    pub fn of(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or_default();
        let Some(rest) = name.strip_prefix("gemini-") else { return Self::Before3 };
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        match digits.parse::<u32>() {
            Ok(..=2) => Self::Before3,
            Ok(_) | Err(_) => Self::From3,
        }
    }
}

/// `generateContent` for one model at one endpoint.
///
/// ```
/// use cepa_core::{ChatRequest, Message, Origin};
/// use cepa_providers::wire::{Dialect, gemini::GenerateContent};
///
/// let dialect = GenerateContent::new(Origin { provider: "gemini".into(), model: "gemini-3-flash".into() });
/// let pieces = dialect.encode(&ChatRequest::new(vec![Message::user("hi")]))?;
/// assert_eq!(
///     String::from_utf8_lossy(&pieces.concat()),
///     r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#,
/// );
/// # Ok::<(), cepa_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct GenerateContent {
    origin: Origin,
    generation: Generation,
    /// What the bytes of a message depend on, beside the message.
    key: WireKey,
}

impl GenerateContent {
    /// The dialect of this endpoint (a catalog entry's name) and model.
    pub fn new(origin: Origin) -> Self {
        let generation = Generation::of(&origin.model);
        Self { key: key(&origin, generation), origin, generation }
    }

    /// Sets the generation, for a model whose name does not tell it.
    pub fn with_generation(mut self, generation: Generation) -> Self {
        self.generation = generation;
        self.key = key(&self.origin, generation);
        self
    }

    /// The endpoint's catalog entry and the model.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The model's generation.
    pub fn generation(&self) -> Generation {
        self.generation
    }
}

fn key(origin: &Origin, generation: Generation) -> WireKey {
    WireKey::new(format!("{FORMAT}\n{}\n{}\n{generation:?}", origin.provider, origin.model))
}

impl Dialect for GenerateContent {
    type Accumulator = Fold;

    fn encode(&self, request: &ChatRequest) -> Result<Vec<Bytes>, Error> {
        encode::encode(self, request)
    }

    fn decode(&self, body: &[u8]) -> Result<ChatResponse, Error> {
        decode::decode(&self.origin, body)
    }

    fn accumulator(&self) -> Fold {
        Fold::new(self.origin.clone())
    }

    /// The method is part of the path, behind the model.
    fn address<'a>(&self, endpoint: &'a str, reply: Delivery) -> Cow<'a, str> {
        let (path, query) = endpoint.split_once('?').unwrap_or((endpoint, ""));
        let (method, own) = match reply {
            Delivery::Whole => ("generateContent", ""),
            Delivery::Streamed => ("streamGenerateContent", "alt=sse"),
        };
        let query: Vec<&str> = [own, query].into_iter().filter(|part| !part.is_empty()).collect();
        let mark = if query.is_empty() { "" } else { "?" };
        format!("{path}:{method}{mark}{}", query.join("&")).into()
    }
}

#[cfg(test)]
mod decode_tests;
#[cfg(test)]
mod encode_tests;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod stream_tests;
#[cfg(test)]
mod unfinished_tests;
