//! OpenAI's chat completions, the format that most servers speak.
//!
//! <https://platform.openai.com/docs/api-reference/chat>; the differences between servers are [`Quirks`].
//!
//! What is converted, because the wire has no place for it:
//! * Media in the result of a tool: tool messages hold text only. The text says where they are, and a user message
//!   behind the batch's results holds them. What no user message can hold is named in the text as left out.
//! * Media in an assistant message (of another provider) are named in the text.
//! * Text documents become text; a thinking budget becomes the nearest effort where only efforts are known.
//! * Where a server wants user and assistant to take turns and they did not, a short message stands between them.
//! * Arguments that could not be decoded are sent as `{}`; the result that follows says what was wrong with them.
//!
//! What is refused: media in system messages; documents and sounds behind a URL; sounds other than wav and mp3.

mod assembly;
mod calls;
mod decode;
mod encode;
mod ending;
pub(super) mod media;
pub(super) mod messages;
pub(super) mod options;
mod quirks;
mod replay;
mod shape;
mod stream;
mod tolerant;
pub(super) mod tools;
mod usage;

use cepa_core::{ChatRequest, ChatResponse, Error, Origin, WireKey};

use super::Dialect;
pub use quirks::{
    AfterTools, MaxTokensName, NullContent, Quirks, ReplayReasoning, Roles, StreamUsage, SystemPlace, ThinkingName,
};
pub use stream::Fold;

/// The format of replayed blocks in [`Replay`](cepa_core::Replay).
const FORMAT: &str = "openai_chat";

/// Chat completions for one model at one endpoint.
#[derive(Clone, Debug)]
pub struct OpenAiChat {
    origin: Origin,
    quirks: Quirks,
    /// For whom encoded messages are kept.
    key: WireKey,
}

impl OpenAiChat {
    /// The dialect of this endpoint (a catalog entry's name) and model.
    pub fn new(origin: Origin, quirks: Quirks) -> Self {
        let key = WireKey::new(format!("{FORMAT}\n{}\n{}\n{quirks:?}", origin.provider, origin.model));
        Self { origin, quirks, key }
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

impl Dialect for OpenAiChat {
    type Accumulator = Fold;

    fn encode(&self, request: &ChatRequest) -> Result<Vec<bytes::Bytes>, Error> {
        encode::encode(self, request)
    }

    fn decode(&self, body: &[u8]) -> Result<ChatResponse, Error> {
        decode::decode(&self.origin, body)
    }

    fn accumulator(&self) -> Fold {
        Fold::new(self.origin.clone())
    }
}
