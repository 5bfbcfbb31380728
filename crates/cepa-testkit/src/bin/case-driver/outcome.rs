//! The outcome of one model reply, with the next request that follows from it.

use cepa_core::{ChatRequest, ChatResponse, Content, Error, History, Message, RawJson, ToolStatus};
use serde::Serialize;

use crate::{line::Fail, neutral, neutral::Neutral, wire::Wire};

/// Exactly one of a reply and an error.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Ok(Box<Reply>),
    Error(Failure),
}

#[derive(Serialize)]
pub(crate) struct Reply {
    message: Neutral,
    finish: &'static str,
    usage: Option<Usage>,
    invalid_args: Vec<String>,
    reasoning: Option<String>,
    replay: RawJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deltas: Option<Vec<String>>,
}

#[derive(Serialize)]
struct Usage {
    input: u64,
    output: u64,
    /// Of the input, read from a cache.
    cache_read: u64,
    /// Of the output, not shown.
    reasoning: u64,
}

impl From<cepa_core::Usage> for Usage {
    fn from(usage: cepa_core::Usage) -> Self {
        let cepa_core::Usage { input, output, cache_read, reasoning, .. } = usage;
        Self { input, output, cache_read, reasoning }
    }
}

#[derive(Serialize)]
pub(crate) struct Failure {
    class: &'static str,
    retryable: bool,
    status: Option<u16>,
    code: Option<String>,
    retry_after_ms: Option<u64>,
    message: String,
    partial_text: Option<String>,
}

impl Outcome {
    /// The outcome of a call; `deltas` are the texts that were delivered while it streamed.
    pub(crate) fn of(
        wire: &Wire,
        result: Result<ChatResponse, Error>,
        deltas: Option<Vec<String>>,
    ) -> Result<Self, Fail> {
        Ok(match result {
            Ok(response) => Self::Ok(Box::new(Reply::of(wire, response, deltas)?)),
            Err(error) => Self::Error(Failure::of(&error)),
        })
    }
}

impl Reply {
    fn of(wire: &Wire, response: ChatResponse, deltas: Option<Vec<String>>) -> Result<Self, Fail> {
        let message = &response.message;
        let reasoning = message.content.as_ref().map(Content::reasoning).filter(|text| !text.is_empty());
        let invalid = message.tool_calls.iter().filter(|call| call.args.is_invalid());
        Ok(Self {
            message: neutral::reply(message),
            finish: neutral::finish(response.finish_reason),
            usage: response.usage.map(Usage::from),
            invalid_args: invalid.map(|call| call.id.clone()).collect(),
            reasoning,
            replay: replay(wire, &response)?,
            deltas,
        })
    }
}

/// The body of the next request: the user's `x`, the reply, then a result `R` for each call, or the user's `y`.
fn replay(wire: &Wire, response: &ChatResponse) -> Result<RawJson, Fail> {
    let mut messages = vec![Message::user("x"), Message::Assistant(response.message.clone())];
    for call in &response.message.tool_calls {
        messages.push(Message::tool(&call.id, &call.name, ToolStatus::Ok, "R"));
    }
    if response.message.tool_calls.is_empty() {
        messages.push(Message::user("y"));
    }
    let body = wire.encode(&ChatRequest::new(History::from(messages)))?;
    Ok(RawJson::parse(&body)?)
}

impl Failure {
    pub(crate) fn of(error: &Error) -> Self {
        Self {
            class: error.kind().as_str(),
            retryable: error.is_retryable(),
            status: error.status(),
            code: error.code().map(str::to_owned),
            retry_after_ms: error.retry_after().and_then(|wait| u64::try_from(wait.as_millis()).ok()),
            message: error.message().to_owned(),
            partial_text: error.partial_text().map(str::to_owned),
        }
    }
}
