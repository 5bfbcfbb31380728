//! What is called, how long it took and what it cost, for the log.

use std::time::{Duration, Instant};

use cepa_core::{
    BoxFuture, Chat, ChatRequest, ChatResponse, Error, Filter, Message, Next, Tool, ToolFailure, ToolRequest,
    ToolResponse,
};
use tracing::Instrument;

use super::{Place, has_place};

/// Logs model calls or tool calls through [`tracing`]: a span around each, an event at its end.
///
/// * `INFO`: names, durations, usage, how it ended. Never what anybody said, never arguments, never results.
/// * `WARN`: a failure, by its kind. Its text, which may quote what was said, is in a `DEBUG` event.
/// * `TRACE`: the contents. Whoever turns this on wants to read conversations in a log.
///
/// The context, with whatever handles and values the caller put there, is logged at no level.
#[derive(Clone, Debug)]
pub struct Logging {
    place: Place,
}

has_place!(Logging);

impl Default for Logging {
    fn default() -> Self {
        Self::new()
    }
}

impl Logging {
    /// A filter for model calls or tool calls.
    pub fn new() -> Self {
        Self { place: Place::named("logging") }
    }
}

fn ms(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

fn log_failure(what: &'static str, error: &Error, duration_ms: u64) {
    let (kind, retryable) = (error.kind().as_str(), error.is_retryable());
    let failure = error.tool_failure().map(ToolFailure::as_str);
    tracing::warn!(what, kind, failure, retryable, status = error.status(), duration_ms, "failed");
    tracing::debug!(what, error = error.message(), "why it failed");
}

impl Filter<Chat> for Logging {
    fn around(&self, request: ChatRequest, next: Next<Chat>) -> BoxFuture<'_, Result<ChatResponse, Error>> {
        let span = tracing::info_span!("chat", conversation = request.context.conversation_id());
        let chat = async move {
            let (messages, tools) = (request.messages.len(), request.tools.len());
            let streamed = request.events.is_wanted();
            tracing::debug!(messages, tools, streamed, "a model is called");
            if let Some(last) = request.messages.last() {
                tracing::trace!(role = last.message.role().as_str(), text = &*last.message.text(), "the last message");
            }
            let from = Instant::now();
            let result = next.run(request).await;
            let duration_ms = ms(from.elapsed());
            match &result {
                Ok(response) => log_reply(response, streamed, duration_ms),
                Err(error) => log_failure("chat", error, duration_ms),
            }
            result
        };
        Box::pin(chat.instrument(span))
    }
}

fn log_reply(response: &ChatResponse, streamed: bool, duration_ms: u64) {
    let origin = response.message.origin.as_ref();
    let usage = response.usage.as_ref();
    tracing::info!(
        provider = origin.map(|origin| &*origin.provider),
        model = origin.map(|origin| &*origin.model),
        input_tokens = usage.map(|usage| usage.input),
        output_tokens = usage.map(|usage| usage.output),
        cached_tokens = usage.map(|usage| usage.cache_read),
        finish = response.finish_reason.as_str(),
        calls = response.message.tool_calls.len(),
        streamed,
        duration_ms,
        "replied"
    );
    if tracing::enabled!(tracing::Level::TRACE) {
        tracing::trace!(text = &*Message::Assistant(response.message.clone()).text(), "the reply");
    }
}

impl Filter<Tool> for Logging {
    fn around(&self, request: ToolRequest, next: Next<Tool>) -> BoxFuture<'_, Result<ToolResponse, Error>> {
        let span = tracing::info_span!("tool", tool = request.tool.name(), call = request.call.id.as_str());
        let call = async move {
            tracing::trace!(args = request.call.args.as_str(), "the arguments");
            let from = Instant::now();
            let result = next.run(request).await;
            let duration_ms = ms(from.elapsed());
            match &result {
                Ok(response) => {
                    tracing::info!(status = response.output.status.as_str(), duration_ms, "ran");
                    tracing::trace!(text = &*response.output.content.text(), "the result");
                }
                Err(error) => log_failure("tool", error, duration_ms),
            }
            result
        };
        Box::pin(call.instrument(span))
    }
}
