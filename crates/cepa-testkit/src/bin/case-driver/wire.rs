//! The provider of a case as a dialect of the library.

use std::sync::{Arc, Mutex, PoisonError};

use cepa_core::{ChatEvent, ChatRequest, ChatResponse, Error, ErrorKind, EventSink, Origin};
use cepa_providers::{
    catalog::Endpoint,
    sse::SseDecoder,
    wire::{
        Dialect,
        anthropic::AnthropicMessages,
        gemini::GenerateContent,
        ids::IdRule,
        openai_chat::{NullContent, OpenAiChat, ReplayReasoning, SystemPlace},
        openai_responses::{EncryptedReasoning, Quirks as ResponsesQuirks, Responses, StrictTools, Summary},
        reply::ReplyDecoder,
    },
};
use serde::Deserialize;

/// The provider of OpenAI's Responses.
pub(crate) const OPENAI_RESPONSES: &str = "openai-responses";
/// The provider of Gemini's own interface.
pub(crate) const GEMINI: &str = "gemini";

/// One of the four dialects.
pub(crate) enum Wire {
    OpenAi(Box<OpenAiChat>),
    Anthropic(AnthropicMessages),
    Responses(Box<Responses>),
    Gemini(GenerateContent),
}

/// Settings of an endpoint, in the protocol's words.
#[derive(Default, Deserialize)]
pub(crate) struct QuirkWords {
    assistant_null_content: Option<String>,
    #[serde(default)]
    single_leading_system: bool,
    replay_reasoning: Option<String>,
    tool_call_id: Option<String>,
    /// Of Responses: `fitting`, `narrowed`, `never`.
    strict_tools: Option<String>,
    /// Of Responses: `asked`, `not-asked`.
    encrypted_reasoning: Option<String>,
    /// Of Responses: `auto`, `concise`, `detailed`.
    reasoning_summary: Option<String>,
}

fn unknown(what: &str) -> Error {
    Error::new(ErrorKind::InvalidConfig, format!("the setting {what} is not known"))
}

impl QuirkWords {
    fn responses(&self) -> Result<ResponsesQuirks, Error> {
        let mut quirks = ResponsesQuirks::default();
        match self.strict_tools.as_deref() {
            None | Some("fitting") => {}
            Some("narrowed") => quirks.strict_tools = StrictTools::Narrowed,
            Some("never") => quirks.strict_tools = StrictTools::Never,
            Some(other) => return Err(unknown(other)),
        }
        match self.encrypted_reasoning.as_deref() {
            None | Some("asked") => {}
            Some("not-asked") => quirks.encrypted_reasoning = EncryptedReasoning::NotAsked,
            Some(other) => return Err(unknown(other)),
        }
        quirks.summary = match self.reasoning_summary.as_deref() {
            None => None,
            Some("auto") => Some(Summary::Auto),
            Some("concise") => Some(Summary::Concise),
            Some("detailed") => Some(Summary::Detailed),
            Some(other) => return Err(unknown(other)),
        };
        Ok(quirks)
    }
}

/// How a body ends.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Eof {
    /// The server closes.
    Clean,
    /// The server says nothing more and does not close.
    Open,
}

impl Wire {
    /// The dialect of a provider for one model.
    pub(crate) fn of(provider: &str, model: &str) -> Result<Self, Error> {
        Self::with_quirks(provider, model, &QuirkWords::default())
    }

    /// The same with the endpoint's settings.
    pub(crate) fn with_quirks(provider: &str, model: &str, words: &QuirkWords) -> Result<Self, Error> {
        let origin = Origin { provider: provider.into(), model: model.into() };
        match provider {
            "anthropic" => return Ok(Self::Anthropic(AnthropicMessages::new(origin))),
            OPENAI_RESPONSES => return Ok(Self::Responses(Box::new(Responses::new(origin, words.responses()?)))),
            GEMINI => return Ok(Self::Gemini(GenerateContent::new(origin))),
            _ => {}
        }
        let mut quirks = (endpoint(provider)?.quirks)();
        match words.assistant_null_content.as_deref() {
            None => {}
            Some("empty-string") => quirks.null_content = NullContent::EmptyString,
            Some(other) => return Err(unknown(other)),
        }
        if words.single_leading_system {
            quirks.system = SystemPlace::Single;
        }
        match words.replay_reasoning.as_deref() {
            None => {}
            Some("none") => quirks.replay_reasoning = ReplayReasoning::Never,
            Some(member) => quirks.replay_reasoning = ReplayReasoning::As(member.to_owned().into()),
        }
        match words.tool_call_id.as_deref() {
            None => {}
            Some("alnum9") => quirks.call_ids = IdRule::ALNUM_9,
            Some(other) => return Err(unknown(other)),
        }
        Ok(Self::OpenAi(Box::new(OpenAiChat::new(origin, quirks))))
    }

    /// The body that would be sent.
    pub(crate) fn encode(&self, request: &ChatRequest) -> Result<String, Error> {
        let pieces = match self {
            Self::OpenAi(dialect) => dialect.encode(request)?,
            Self::Anthropic(dialect) => dialect.encode(request)?,
            Self::Responses(dialect) => dialect.encode(request)?,
            Self::Gemini(dialect) => dialect.encode(request)?,
        };
        String::from_utf8(pieces.concat()).map_err(|error| Error::new(ErrorKind::Decode, error.to_string()))
    }

    /// Decodes the body of an answer that was not streamed.
    pub(crate) fn decode(&self, body: &[u8]) -> Result<ChatResponse, Error> {
        match self {
            Self::OpenAi(dialect) => dialect.decode(body),
            Self::Anthropic(dialect) => dialect.decode(body),
            Self::Responses(dialect) => dialect.decode(body),
            Self::Gemini(dialect) => dialect.decode(body),
        }
    }

    /// Decodes a stream that arrives in these pieces; beside the outcome the texts as they were delivered.
    pub(crate) fn stream<'b>(
        &self,
        pieces: impl Iterator<Item = &'b [u8]>,
        eof: Eof,
    ) -> (Result<ChatResponse, Error>, Vec<String>) {
        let (sink, deltas) = deltas();
        let result = match self {
            Self::OpenAi(dialect) => fold(ReplyDecoder::new(&**dialect, sink), pieces, eof),
            Self::Anthropic(dialect) => fold(ReplyDecoder::new(dialect, sink), pieces, eof),
            Self::Responses(dialect) => fold(ReplyDecoder::new(&**dialect, sink), pieces, eof),
            Self::Gemini(dialect) => fold(ReplyDecoder::new(dialect, sink), pieces, eof),
        };
        let deltas = std::mem::take(&mut *deltas.lock().unwrap_or_else(PoisonError::into_inner));
        (result, deltas)
    }
}

/// The catalog's entry for a provider of the protocol.
pub(crate) fn endpoint(provider: &str) -> Result<&'static Endpoint, Error> {
    Endpoint::named(if provider == "openai-chat" || provider == "any" { "openai" } else { provider })
}

/// A sink that collects the texts as they are delivered.
pub(crate) fn deltas() -> (EventSink, Arc<Mutex<Vec<String>>>) {
    let deltas = Arc::new(Mutex::new(Vec::new()));
    let keep = deltas.clone();
    let sink = EventSink::new(move |event| {
        let mut deltas = keep.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            ChatEvent::Text(text) => deltas.push(text),
            ChatEvent::Reset => deltas.clear(),
            _ => {}
        }
    });
    (sink, deltas)
}

/// Feeds the pieces to the decoder as a client does; a server that falls silent is waited for no longer.
fn fold<'b, A: cepa_providers::wire::Accumulator>(
    mut reply: ReplyDecoder<A>,
    pieces: impl Iterator<Item = &'b [u8]>,
    eof: Eof,
) -> Result<ChatResponse, Error> {
    for piece in pieces {
        reply.push(piece)?;
        if reply.is_done() {
            return reply.finish();
        }
    }
    if eof == Eof::Open && !reply.is_whole() {
        return Err(reply.ended_by(Error::new(ErrorKind::Timeout, "the stream fell silent")));
    }
    reply.finish()
}

/// Where replies and their events name their model.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    model: Option<String>,
    /// Anthropic's first event.
    message: Option<Box<Named>>,
    /// The first events of Responses.
    response: Option<Box<Named>>,
    #[serde(rename = "modelVersion")]
    model_version: Option<String>,
}

/// The model that a reply names; `m` if it names none.
pub(crate) fn model_of(body: &str) -> String {
    named(body).unwrap_or_else(|| "m".to_owned())
}

/// The model that the first event with a name names; `m` if none does.
pub(crate) fn model_of_stream(sse: &str) -> String {
    let mut events = Vec::new();
    // A stream past the size limit names no model, and fails when it is decoded.
    let _ = SseDecoder::new().push(sse.as_bytes(), &mut events);
    events.iter().find_map(|event| named(&event.data)).unwrap_or_else(|| "m".to_owned())
}

fn named(json: &str) -> Option<String> {
    let named = serde_json::from_str::<Named>(json).ok()?;
    let inside = [named.message, named.response].into_iter().flatten().find_map(|inner| inner.model);
    let model = named.model.or(inside).or(named.model_version)?;
    (!model.is_empty()).then_some(model)
}
