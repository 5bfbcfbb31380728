//! One model call: the request, the response, the stream of events, and the trait of a model.

use std::{fmt, sync::Arc};

use serde_json::{Map, Value};

use crate::{
    AssistantMessage, BoxFuture, Error, FinishReason, History, Origin, Stage, ToolCall, ToolContext, ToolSet, Usage,
};

/// The stage of one model call.
#[derive(Debug)]
pub enum Chat {}

impl Stage for Chat {
    type Request = ChatRequest;
    type Response = ChatResponse;
    type Error = Error;
}

/// A provider's endpoint for one model: neutral request in, neutral response out.
///
/// Streaming is not another path: if [`ChatRequest::events`] wants events, the model streams and emits them;
/// the response is whole in both cases.
pub trait ChatModel: Send + Sync + 'static {
    /// The provider's catalog entry and the model's name.
    fn origin(&self) -> &Origin;

    /// Calls the model once (with its own retries before the first event).
    fn chat(&self, request: ChatRequest) -> BoxFuture<'_, Result<ChatResponse, Error>>;
}

/// Everything that is sent, and what travels beside it. A filter can rewrite all of it.
#[derive(Clone, Debug, Default)]
pub struct ChatRequest {
    /// The conversation, or what is new in it.
    pub messages: History,
    /// Instructions for this call, put before all messages.
    pub system_prompt: Option<Arc<str>>,
    /// The tools that the model may call.
    pub tools: ToolSet,
    /// Whether it may, must or must not call them.
    pub tool_choice: Option<ToolChoice>,
    /// Sampling and limits.
    pub options: ChatOptions,
    /// The request's context; it carries the conversation's id.
    pub context: ToolContext,
    /// Where streamed events go.
    pub events: EventSink,
    /// Who answers in place of the kernel's model; a model itself does not look at it.
    pub model: Option<SharedModel>,
}

/// A model that a filter chose for a request.
///
/// ```
/// use cepa_core::{Chat, ChatModel, Stage, SharedModel};
/// fn for_short_ones(small: impl ChatModel) -> cepa_core::FnFilter<Chat> {
///     let small = SharedModel::new(small);
///     Chat::before("small", move |mut request| {
///         if request.messages.len() < 3 {
///             request.model = Some(small.clone());
///         }
///         Ok(request)
///     })
/// }
/// ```
#[derive(Clone)]
pub struct SharedModel(Arc<dyn ChatModel>);

impl SharedModel {
    /// Shares a model.
    pub fn new(model: impl ChatModel) -> Self {
        Self(Arc::new(model))
    }

    /// The provider's catalog entry and the model's name.
    pub fn origin(&self) -> &Origin {
        self.0.origin()
    }

    pub(crate) fn into_inner(self) -> Arc<dyn ChatModel> {
        self.0
    }
}

impl fmt::Debug for SharedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedModel").field(self.origin()).finish()
    }
}

impl ChatRequest {
    /// A request with these messages and nothing else.
    pub fn new(messages: impl Into<History>) -> Self {
        Self { messages: messages.into(), ..Self::default() }
    }
}

/// What the model said.
#[derive(Clone, Debug)]
pub struct ChatResponse {
    /// The reply.
    pub message: AssistantMessage,
    /// What it cost, where the provider tells.
    pub usage: Option<Usage>,
    /// Why it ended.
    pub finish_reason: FinishReason,
    /// The tools that were offered: a call is looked up here.
    pub offered: ToolSet,
    /// The request's context.
    pub context: ToolContext,
}

impl ChatResponse {
    /// A response with this reply; finish reason and usage are taken from it.
    pub fn new(message: AssistantMessage) -> Self {
        let finish_reason = message.finish_reason.unwrap_or(if message.tool_calls.is_empty() {
            FinishReason::Stop
        } else {
            FinishReason::ToolCalls
        });
        Self {
            usage: message.usage,
            finish_reason,
            message,
            offered: ToolSet::default(),
            context: ToolContext::default(),
        }
    }
}

/// Whether the model may call tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    /// It may.
    Auto,
    /// It must not.
    None,
    /// It must call at least one.
    Required,
    /// It must call this one.
    Tool(String),
}

/// How much the model thinks before it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Thinking {
    /// Not at all.
    Off,
    /// At most this many tokens.
    Budget(u32),
    /// As much as the provider means by this word (`low`, `medium`, `high`).
    Effort(String),
}

/// Sampling and limits of a call. What is `None` is left to the provider.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatOptions {
    /// The most tokens to write.
    pub max_tokens: Option<u32>,
    /// Randomness.
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    pub top_p: Option<f64>,
    /// Texts that end the reply.
    pub stop: Vec<String>,
    /// Whether several calls in one reply are allowed.
    pub parallel_tool_calls: Option<bool>,
    /// Thinking.
    pub thinking: Option<Thinking>,
    /// Whether the provider's prompt cache is used, where it must be asked for.
    pub cache: Option<bool>,
    /// The last message is a paused reply that the provider shall continue.
    pub continue_pause: bool,
    /// Members that are put into the request's body as they are; they override ours.
    pub extra: Map<String, Value>,
}

impl ChatOptions {
    /// These options, with what they leave open taken from `defaults`.
    pub fn or(mut self, defaults: &Self) -> Self {
        self.max_tokens = self.max_tokens.or(defaults.max_tokens);
        self.temperature = self.temperature.or(defaults.temperature);
        self.top_p = self.top_p.or(defaults.top_p);
        if self.stop.is_empty() {
            self.stop.clone_from(&defaults.stop);
        }
        self.parallel_tool_calls = self.parallel_tool_calls.or(defaults.parallel_tool_calls);
        self.thinking = self.thinking.or_else(|| defaults.thinking.clone());
        self.cache = self.cache.or(defaults.cache);
        for (name, value) in &defaults.extra {
            self.extra.entry(name.clone()).or_insert_with(|| value.clone());
        }
        self
    }
}

/// What happens while a reply is written.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ChatEvent {
    /// Some text; never empty.
    Text(String),
    /// Some reasoning; never empty.
    Reasoning(String),
    /// A call begins. `index` counts the calls of this reply.
    CallBegun {
        /// The call's place in the reply.
        index: usize,
        /// Its id.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// A piece of a call's arguments.
    CallArguments {
        /// The call's place in the reply.
        index: usize,
        /// The piece.
        delta: String,
    },
    /// A call is complete.
    CallReady {
        /// The call's place in the reply.
        index: usize,
        /// The call.
        call: ToolCall,
    },
    /// The provider told what the call costs so far; later values replace earlier ones.
    Usage(Usage),
    /// What was emitted for this reply is void: it is written anew.
    Reset,
}

/// Where streamed events go; without a receiver nothing is streamed.
#[derive(Clone, Default)]
pub struct EventSink(Option<Arc<dyn Fn(ChatEvent) + Send + Sync>>);

impl EventSink {
    /// A sink that wants no events.
    pub fn none() -> Self {
        Self::default()
    }

    /// A sink that hands each event to a function. A filter that rewrites tokens wraps the sink it found.
    ///
    /// ```
    /// use cepa_core::{ChatEvent, EventSink};
    /// let inner = EventSink::none();
    /// let shouting = EventSink::new(move |event| inner.emit(match event {
    ///     ChatEvent::Text(text) => ChatEvent::Text(text.to_uppercase()),
    ///     other => other,
    /// }));
    /// # shouting.emit(ChatEvent::Reset);
    /// ```
    pub fn new(receive: impl Fn(ChatEvent) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(receive)))
    }

    /// Whether anyone listens, so that the model should stream.
    pub fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// Hands on an event.
    #[inline]
    pub fn emit(&self, event: ChatEvent) {
        if let Some(receive) = &self.0 {
            receive(event);
        }
    }
}

impl fmt::Debug for EventSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_wanted() { "EventSink(wanted)" } else { "EventSink(none)" })
    }
}

#[cfg(test)]
#[path = "chat_tests.rs"]
mod tests;
