//! Wires: what a provider's requests and responses look like. Pure functions and a fold, no I/O.

pub mod anthropic;
pub mod caps;
mod closed;
mod cut;
pub(crate) mod failed;
pub mod gemini;
mod hash;
pub mod ids;
mod index;
pub mod json;
mod members;
pub mod names;
pub mod openai_chat;
pub mod openai_responses;
mod pick;
pub mod reply;
pub mod schema;
mod seen;
pub mod surrogates;
mod texts;
mod words;

use std::borrow::Cow;

use bytes::Bytes;
use cepa_core::{ChatRequest, ChatResponse, Error, EventSink, Origin};

use crate::sse::LentEvent;

/// One provider's format, for one model at one endpoint.
///
/// Names of tools are those of the wire in what [`decode`](Self::decode) and the fold return;
/// [`names::ToolNames`] turns them back.
pub trait Dialect: Send + Sync + 'static {
    /// Folds the events of a stream into a response.
    type Accumulator: Accumulator;

    /// The request's body as pieces of JSON, to be sent one after another.
    /// It asks for a stream if [`ChatRequest::events`] wants events.
    ///
    /// # Errors
    /// `invalid_input` or `invalid_config` for what this provider cannot take; nothing is dropped silently.
    fn encode(&self, request: &ChatRequest) -> Result<Vec<Bytes>, Error>;

    /// The body of a successful answer.
    ///
    /// # Errors
    /// `decode`, or what an error object inside the body says.
    fn decode(&self, body: &[u8]) -> Result<ChatResponse, Error>;

    /// The start of a fold.
    fn accumulator(&self) -> Self::Accumulator;

    /// The address that a request goes to, from the endpoint's; another one where it tells whether the reply is streamed.
    fn address<'a>(&self, endpoint: &'a str, _reply: Delivery) -> Cow<'a, str> {
        endpoint.into()
    }
}

/// How a reply is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// In one piece.
    Whole,
    /// As a stream of events.
    Streamed,
}

/// The fold of a stream. Emits each event as it becomes known.
pub trait Accumulator: Send {
    /// Who writes the reply.
    fn origin(&self) -> &Origin;

    /// Takes one event.
    ///
    /// # Errors
    /// `decode`, or what an error object inside the stream says, with the text so far.
    fn event(&mut self, event: LentEvent<'_>, sink: &EventSink) -> Result<(), Error>;

    /// Whether the terminal event was seen: what follows need not be waited for.
    fn is_done(&self) -> bool;

    /// Whether the reply is complete, though figures about it may still follow: a connection that breaks or falls
    /// silent from here on takes nothing away.
    fn is_whole(&self) -> bool {
        self.is_done()
    }

    /// The text so far, to be kept with an error.
    fn partial_text(&self) -> &str;

    /// The response, at the end of the stream.
    ///
    /// # Errors
    /// `truncated` if the terminal event is missing.
    fn finish(self, sink: &EventSink) -> Result<ChatResponse, Error>;
}

#[cfg(test)]
mod items_tests;
