//! OpenAI's Responses wire: <https://platform.openai.com/docs/api-reference/responses/create>.
//!
//! Stateless: nothing is stored at the provider (`store: false`), and what a reasoning model wants back is asked for in
//! encrypted form and kept beside the message, so that any process can go on with the conversation. Reasoning items, items
//! of the provider's own tools and the order of all of them go back word for word, to this very provider and model only.
//!
//! What is converted, because the wire has no place for it:
//! * Leading system messages join the system prompt in `instructions`; later ones keep their place.
//! * Blank user messages: a short text stands for them. Blank texts elsewhere are left out.
//! * Media in an assistant message (of another provider), and media in a tool's result that the API does not take, are
//!   named in the text.
//! * Text documents become text; a thinking budget becomes the nearest effort.
//! * Arguments that could not be decoded are sent as `{}`; the result that follows says what was wrong with them.
//! * Ids of items are left out where what belongs to them is not sent: reasoning that cannot be read again, another model's
//!   reply, a reply that was edited or stands twice in the conversation.
//!
//! What is refused: stop sequences, which this API does not know; a limit below 16 tokens; sounds and unknown parts in a user's message; media in
//! system messages.

mod assembly;
mod decode;
mod encode;
mod item;
mod items;
mod layout;
mod media;
mod options;
mod own;
mod quirks;
mod reply;
mod stream;
mod tools;
mod usage;

use bytes::Bytes;
use cepa_core::{ChatRequest, ChatResponse, Error, Origin, WireKey};

use super::Dialect;
use own::Form;
pub use quirks::{EncryptedReasoning, Quirks, StrictTools, Summary};
pub use stream::Fold;

/// The format of replayed items in [`Replay`](cepa_core::Replay).
const FORMAT: &str = "openai_responses";

/// Responses for one model at one endpoint.
///
/// ```
/// use cepa_core::{ChatRequest, Message, Origin};
/// use cepa_providers::wire::{Dialect, openai_responses::{Quirks, Responses}};
///
/// let origin = Origin { provider: "openai-responses".into(), model: "gpt-5.4".into() };
/// let dialect = Responses::new(origin, Quirks::default());
/// let pieces = dialect.encode(&ChatRequest::new(vec![Message::user("hi")]))?;
/// assert_eq!(
///     String::from_utf8_lossy(&pieces.concat()),
///     concat!(
///         r#"{"model":"gpt-5.4","#,
///         r#""input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}],"#,
///         r#""store":false,"include":["reasoning.encrypted_content"]}"#
///     ),
/// );
/// # Ok::<(), cepa_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Responses {
    origin: Origin,
    quirks: Quirks,
    /// What the bytes of a message depend on, beside the message; the second if the provider stores what it is sent.
    keys: [WireKey; 2],
}

impl Responses {
    /// The dialect of this endpoint (a catalog entry's name) and model.
    pub fn new(origin: Origin, quirks: Quirks) -> Self {
        let key = |form| WireKey::new(format!("{FORMAT}\n{}\n{}\n{quirks:?}\n{form:?}", origin.provider, origin.model));
        Self { keys: [key(Form::Whole), key(Form::Stored)], origin, quirks }
    }

    /// The endpoint's catalog entry and the model.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The endpoint's differences.
    pub fn quirks(&self) -> &Quirks {
        &self.quirks
    }
}

impl Dialect for Responses {
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
}

#[cfg(test)]
mod decode_tests;
#[cfg(test)]
mod encode_tests;
#[cfg(test)]
mod stream_tests;
#[cfg(test)]
mod unfinished_tests;
