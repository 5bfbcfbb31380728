//! A model whose replies are written down beforehand, and which remembers what it was asked.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cepa_core::{
    Args, AssistantMessage, BoxFuture, ChatEvent, ChatModel, ChatRequest, ChatResponse, Content, Error, ErrorKind,
    EventSink, FinishReason, Origin, ToolCall, Usage,
};

/// One scripted reply, or a failure.
///
/// ```
/// use std::time::Duration;
/// use cepa_testkit::scripted::Reply;
/// let reply = Reply::text("Let me look.").call("c1", "read_file", r#"{"path":"a"}"#).after(Duration::from_millis(5));
/// # let _ = reply;
/// ```
#[derive(Clone, Debug)]
pub struct Reply {
    outcome: Outcome,
    delay: Duration,
    events: Option<Vec<ChatEvent>>,
}

#[derive(Clone, Debug)]
enum Outcome {
    Response(Box<ChatResponse>),
    Failure(Error),
    /// The call never comes back, unless it is cancelled.
    Silence,
}

impl Reply {
    /// A reply with this text.
    pub fn text(text: impl Into<String>) -> Self {
        let content = Some(Content::Text(text.into()));
        Self::message(AssistantMessage { content, ..AssistantMessage::default() })
    }

    /// A reply without text; add calls with [`Reply::call`].
    pub fn empty() -> Self {
        Self::message(AssistantMessage::default())
    }

    /// A reply that is this message.
    pub fn message(message: AssistantMessage) -> Self {
        Self::response(ChatResponse::new(message))
    }

    /// A reply that is this response, down to its usage and finish reason.
    pub fn response(response: ChatResponse) -> Self {
        Self { outcome: Outcome::Response(Box::new(response)), delay: Duration::ZERO, events: None }
    }

    /// A call that fails. Text that the error carries as partial is streamed before, if anyone listens.
    pub fn error(error: Error) -> Self {
        Self { outcome: Outcome::Failure(error), delay: Duration::ZERO, events: None }
    }

    /// A call that never comes back; it ends when the request is cancelled.
    pub fn silence() -> Self {
        Self { outcome: Outcome::Silence, delay: Duration::ZERO, events: None }
    }

    /// Adds a call; its arguments are decoded as a provider's text is.
    pub fn call(self, id: impl Into<String>, name: impl Into<String>, args: &str) -> Self {
        let call = ToolCall::new(id, name, Args::decode(args));
        self.change(|response| {
            response.message.tool_calls.push(call);
            if response.finish_reason == FinishReason::Stop {
                response.finish_reason = FinishReason::ToolCalls;
            }
        })
    }

    /// Sets why the reply ended.
    pub fn finish(self, reason: FinishReason) -> Self {
        self.change(|response| {
            response.finish_reason = reason;
            response.message.finish_reason = Some(reason);
        })
    }

    /// Sets what the reply cost.
    pub fn usage(self, usage: Usage) -> Self {
        self.change(|response| {
            response.usage = Some(usage);
            response.message.usage = Some(usage);
        })
    }

    /// Waits this long before anything is streamed or answered; a cancelled request ends the wait.
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Streams these events instead of those that follow from the reply.
    pub fn streaming(mut self, events: impl IntoIterator<Item = ChatEvent>) -> Self {
        self.events = Some(events.into_iter().collect());
        self
    }

    fn change(mut self, change: impl FnOnce(&mut ChatResponse)) -> Self {
        if let Outcome::Response(response) = &mut self.outcome {
            change(response);
        }
        self
    }

    fn stream(&self, sink: &EventSink) {
        match (&self.events, &self.outcome) {
            (Some(events), _) => events.iter().cloned().for_each(|event| sink.emit(event)),
            (None, Outcome::Response(response)) => stream_message(&response.message, response.usage, sink),
            (None, Outcome::Failure(error)) => stream_text(error.partial_text().unwrap_or_default(), sink),
            (None, Outcome::Silence) => {}
        }
    }
}

/// What a script decides by when a call comes.
type Choose = dyn Fn(usize, &ChatRequest) -> Reply + Send + Sync;
type Hook = dyn Fn(usize, &ChatRequest) + Send + Sync;

/// A [`ChatModel`] that answers from a script.
///
/// It is shared when it is cloned: keep a clone to look at the requests afterwards.
///
/// ```
/// use cepa_core::{ChatModel, ChatRequest, Message};
/// use cepa_testkit::scripted::{Reply, ScriptedModel};
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// let model = ScriptedModel::new([Reply::text("hello")]);
/// let response = model.chat(ChatRequest::new(vec![Message::user("hi")])).await?;
/// assert_eq!(Message::Assistant(response.message).text(), "hello");
/// assert_eq!(model.requests()[0].messages.len(), 1);
/// assert!(model.chat(ChatRequest::default()).await.is_err(), "the script is over");
/// # Ok::<(), cepa_core::Error>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ScriptedModel(Arc<Inside>);

struct Inside {
    origin: Origin,
    script: Script,
    requests: Mutex<Vec<ChatRequest>>,
    on_call: Option<Box<Hook>>,
}

enum Script {
    Replies(Mutex<VecDeque<Reply>>),
    Choose(Box<Choose>),
}

impl ScriptedModel {
    /// A model that gives these replies, one a call. A call after the last is an error of kind `provider`.
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::with_script(Script::Replies(Mutex::new(replies.into_iter().collect())))
    }

    /// A model that chooses each reply by the number of the call (from 0) and the request.
    pub fn choosing(choose: impl Fn(usize, &ChatRequest) -> Reply + Send + Sync + 'static) -> Self {
        Self::with_script(Script::Choose(Box::new(choose)))
    }

    fn with_script(script: Script) -> Self {
        let origin = Origin { provider: "scripted".into(), model: "scripted".into() };
        Self(Arc::new(Inside { origin, script, requests: Mutex::default(), on_call: None }))
    }

    /// The same script under another provider's and model's name. To be called before the model is shared.
    pub fn named(self, provider: &str, model: &str) -> Self {
        self.rebuilt(|inside| inside.origin = Origin { provider: provider.into(), model: model.into() })
    }

    /// Calls a function at the start of each call, with its number from 0 and the request. To be set before the model
    /// is shared.
    pub fn on_call(self, hook: impl Fn(usize, &ChatRequest) + Send + Sync + 'static) -> Self {
        self.rebuilt(|inside| inside.on_call = Some(Box::new(hook)))
    }

    /// Changes a model that nobody shares yet, as builder methods do.
    fn rebuilt(mut self, change: impl FnOnce(&mut Inside)) -> Self {
        if let Some(inside) = Arc::get_mut(&mut self.0) {
            change(inside);
        }
        self
    }

    /// The requests so far, in the order of the calls.
    pub fn requests(&self) -> Vec<ChatRequest> {
        self.0.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How often the model was called.
    pub fn calls(&self) -> usize {
        self.0.requests.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Adds a reply at the end of the script; without effect on a model that chooses.
    pub fn push(&self, reply: Reply) {
        if let Script::Replies(replies) = &self.0.script {
            replies.lock().unwrap_or_else(PoisonError::into_inner).push_back(reply);
        }
    }

    fn next(&self, call: usize, request: &ChatRequest) -> Reply {
        match &self.0.script {
            Script::Choose(choose) => choose(call, request),
            Script::Replies(replies) => {
                let next = replies.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                next.unwrap_or_else(|| Reply::error(Error::new(ErrorKind::Provider, "the script has no more replies")))
            }
        }
    }
}

impl ChatModel for ScriptedModel {
    fn origin(&self) -> &Origin {
        &self.0.origin
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<'_, Result<ChatResponse, Error>> {
        Box::pin(async move {
            let call = {
                let mut requests = self.0.requests.lock().unwrap_or_else(PoisonError::into_inner);
                requests.push(request.clone());
                requests.len() - 1
            };
            if let Some(hook) = &self.0.on_call {
                hook(call, &request);
            }
            let reply = self.next(call, &request);
            let answer = async {
                if !reply.delay.is_zero() {
                    tokio::time::sleep(reply.delay).await;
                }
                if request.events.is_wanted() {
                    reply.stream(&request.events);
                }
                match reply.outcome {
                    Outcome::Response(response) => Ok(self.signed(*response)),
                    Outcome::Failure(error) => Err(error),
                    Outcome::Silence => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = request.context.cancel().cancelled() => Err(Error::new(ErrorKind::Cancelled, "cancelled")),
                answer = answer => answer,
            }
        })
    }
}

impl ScriptedModel {
    /// A reply says who wrote it, as a real model's does.
    fn signed(&self, mut response: ChatResponse) -> ChatResponse {
        let message = &mut response.message;
        message.origin.get_or_insert_with(|| self.0.origin.clone());
        message.finish_reason.get_or_insert(response.finish_reason);
        response
    }
}

impl fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedModel").field("origin", &self.0.origin).field("calls", &self.calls()).finish()
    }
}

/// Emits what a provider would have streamed of a message: reasoning, text word by word, each call, usage.
fn stream_message(message: &AssistantMessage, usage: Option<Usage>, sink: &EventSink) {
    let reasoning = message.content.as_ref().map(Content::reasoning).unwrap_or_default();
    for piece in pieces(&reasoning) {
        sink.emit(ChatEvent::Reasoning(piece.to_owned()));
    }
    if let Some(content) = &message.content {
        stream_text(&content.text(), sink);
    }
    for (index, call) in message.tool_calls.iter().enumerate() {
        sink.emit(ChatEvent::CallBegun { index, id: call.id.clone(), name: call.name.clone() });
        sink.emit(ChatEvent::CallArguments { index, delta: call.args.as_str().to_owned() });
        sink.emit(ChatEvent::CallReady { index, call: call.clone() });
    }
    if let Some(usage) = usage {
        sink.emit(ChatEvent::Usage(usage));
    }
}

fn stream_text(text: &str, sink: &EventSink) {
    for piece in pieces(text) {
        sink.emit(ChatEvent::Text(piece.to_owned()));
    }
}

/// A text in words, each with the space behind it.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ').filter(|piece| !piece.is_empty())
}

#[cfg(test)]
#[path = "scripted_tests.rs"]
mod tests;
