//! Anthropic's Messages wire: <https://platform.claude.com/docs/en/api/messages>.
//!
//! What is converted, because the wire has no place for it:
//! * System messages inside a conversation: they keep their place as text in the user's turn, marked as `<system>`. Those at
//!   its start go to the top-level `system`.
//! * Blank user messages, a history that begins with the assistant, and an assistant message that nobody answered: short
//!   texts stand in their place or between them, because roles must take turns. Blank texts elsewhere are left out.
//! * Media in an assistant message (of another provider), and media in a tool's result that the API does not take, are
//!   named in the text.
//! * Arguments that could not be decoded are sent as `{}`; the result that follows says what was wrong with them.
//! * A thinking budget is left out while a reply goes on that was begun without thinking: the API refuses the mix.
//!
//! What is refused: sounds, unknown parts, images and documents of other types in a user's message; media in system messages;
//! schemas with alternatives at the top; a thinking budget beside a forced tool, another temperature or too few tokens;
//! sampling parameters where the API version has none.
//!
//! What only the model that wrote it may see again (signed thinking, server tools) is kept beside the message, with the order
//! of the blocks, and goes back word for word to this very provider and model.

mod assistant;
mod block;
mod cache;
mod decode;
mod encode;
mod layout;
mod media;
mod params;
mod received;
mod reply;
mod stream;
mod tools;
mod turns;
mod usage;

use bytes::Bytes;
use cepa_core::{ChatRequest, ChatResponse, Error, ErrorKind, Origin, WireKey};

use super::Dialect;

pub use stream::Fold;

/// The format of replayed blocks in [`Replay`](cepa_core::Replay).
const FORMAT: &str = "anthropic";

/// The most tokens of a reply where neither the request nor the catalog says a number: the API wants one.
pub const DEFAULT_MAX_TOKENS: u32 = 4096;

/// The value of the header `anthropic-version`.
/// <https://platform.claude.com/docs/en/api/versioning>
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ApiVersion {
    /// `2023-06-01`.
    #[default]
    V2023_06_01,
    /// `2026-10-21`: takes no sampling parameters.
    V2026_10_21,
}

impl ApiVersion {
    /// The header's value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2023_06_01 => "2023-06-01",
            Self::V2026_10_21 => "2026-10-21",
        }
    }

    /// The version of a header's value.
    ///
    /// # Errors
    /// `invalid_config` if it is not a known one.
    pub fn from_text(text: &str) -> Result<Self, Error> {
        [Self::V2023_06_01, Self::V2026_10_21].into_iter().find(|version| version.as_str() == text).ok_or_else(|| {
            let message = format!("the Anthropic API version `{text}` is not known: use 2023-06-01 or 2026-10-21");
            Error::new(ErrorKind::InvalidConfig, message)
        })
    }
}

/// Anthropic messages for one model at one endpoint.
///
/// ```
/// use cepa_core::{ChatRequest, Message, Origin};
/// use cepa_providers::wire::{Dialect, anthropic::AnthropicMessages};
///
/// let origin = Origin { provider: "anthropic".into(), model: "claude-sonnet-4-5".into() };
/// let dialect = AnthropicMessages::new(origin);
/// let pieces = dialect.encode(&ChatRequest::new(vec![Message::user("hi")]))?;
/// assert_eq!(
///     String::from_utf8_lossy(&pieces.concat()),
///     concat!(
///         r#"{"model":"claude-sonnet-4-5","max_tokens":4096,"#,
///         r#""messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}"#
///     ),
/// );
/// # Ok::<(), cepa_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct AnthropicMessages {
    origin: Origin,
    version: ApiVersion,
    default_max_tokens: u32,
    /// What the bytes of a message depend on, beside the message.
    key: WireKey,
}

impl AnthropicMessages {
    /// The dialect of this endpoint (a catalog entry's name) and model.
    pub fn new(origin: Origin) -> Self {
        let key = WireKey::new(format!("{FORMAT}\n{}\n{}", origin.provider, origin.model));
        Self { origin, version: ApiVersion::default(), default_max_tokens: DEFAULT_MAX_TOKENS, key }
    }

    /// Sets the API version.
    pub fn with_version(mut self, version: ApiVersion) -> Self {
        self.version = version;
        self
    }

    /// Sets the most tokens of a reply for requests that do not say it: what the catalog knows of the model.
    pub fn with_default_max_tokens(mut self, tokens: u32) -> Self {
        self.default_max_tokens = tokens;
        self
    }

    /// The endpoint's catalog entry and the model.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The API version.
    pub fn version(&self) -> ApiVersion {
        self.version
    }
}

impl Dialect for AnthropicMessages {
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
mod params_tests;
#[cfg(test)]
mod stream_tests;
#[cfg(test)]
mod unfinished_tests;
