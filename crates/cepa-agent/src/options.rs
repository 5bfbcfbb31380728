//! What a caller says about one turn.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use cepa_core::{CancellationToken, ChatOptions, Content, Message, Stage, ToolChoice, ToolContext};

use crate::{
    event::{AgentEvent, Listeners},
    pause::Decision,
    result::{TurnError, TurnResult},
    turn::{OnExhausted, Siblings, Turn, TurnSettings},
};

/// What becomes of a call whose tool is another than when the call was decided on: its schema differs, or it is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChangedTools {
    /// It does not run.
    #[default]
    Refuse,
    /// It runs with the tool as it is now. One that is gone runs nowhere.
    Accept,
}

/// Options of one turn; what is `None` is as the agent was built.
#[derive(Clone, Debug, Default)]
pub struct TurnOptions {
    /// The system prompt.
    pub system_prompt: Option<String>,
    /// The most batches of calls.
    pub max_batches: Option<u32>,
    /// What happens after them.
    pub on_exhausted: Option<OnExhausted>,
    /// What happens to siblings of a waiting call.
    pub siblings: Option<Siblings>,
    /// How long the turn may be driven.
    pub deadline: Option<Duration>,
    /// The tags of which a tool must have one to be offered.
    pub tags: Option<Vec<String>>,
    /// The tool choice of the first model call.
    pub tool_choice: Option<ToolChoice>,
    /// Sampling and limits of the turn's model calls.
    pub chat: ChatOptions,
    /// Values and handles for the tools.
    pub context: ToolContext,
    /// Cancels the turn.
    pub cancel: CancellationToken,
    /// Who decides in [`Conversation::resume`](crate::Conversation::resume), as the store keeps it.
    pub actor: Option<String>,
    /// Whether a call may run though its tool has changed, or is not known here, since the call was decided on.
    pub changed_tools: ChangedTools,
    /// The token under which the conversation is held, where it is.
    pub(crate) token: Option<u64>,
    /// The turn, where it has begun together with taking the conversation.
    pub(crate) begun: Option<Box<Turn>>,
    /// Where the turn's last step may give the conversation back: set once it did.
    pub(crate) released: Option<Arc<AtomicBool>>,
    pub(crate) listeners: Listeners,
    pub(crate) stream: bool,
}

impl TurnOptions {
    /// Options that change nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the system prompt.
    pub fn system_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.system_prompt = Some(prompt.into());
        self
    }
    /// Sets the most batches of calls.
    pub fn max_batches(mut self, batches: u32) -> Self {
        self.max_batches = Some(batches);
        self
    }
    /// Sets how long the turn may be driven; see [`AgentBuilder::turn_deadline`](crate::AgentBuilder::turn_deadline).
    pub fn deadline(mut self, time: Duration) -> Self {
        self.deadline = Some(time);
        self
    }
    /// Offers only tools that have one of these tags.
    pub fn tags(mut self, tags: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tags = Some(tags.into_iter().map(Into::into).collect());
        self
    }
    /// Sets the tool choice of the first model call.
    pub fn tool_choice(mut self, choice: ToolChoice) -> Self {
        self.tool_choice = Some(choice);
        self
    }
    /// Sets sampling and limits.
    pub fn chat(mut self, options: ChatOptions) -> Self {
        self.chat = options;
        self
    }
    /// Sets the values and handles for the tools.
    pub fn context(mut self, context: ToolContext) -> Self {
        self.context = context;
        self
    }
    /// Cancels the turn when this token is cancelled.
    pub fn cancel(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel;
        self
    }
    /// Lets calls run though their tool has changed since they were shown; without this they are refused. A call whose
    /// tool is gone is refused in any case.
    pub fn accept_changed_tools(mut self) -> Self {
        self.changed_tools = ChangedTools::Accept;
        self
    }
    /// Says who decides.
    pub fn actor(mut self, actor: impl Into<String>) -> Self {
        self.actor = Some(actor.into());
        self
    }
    /// Adds a listener; the model's replies are streamed then.
    pub fn on_event(mut self, listener: impl Fn(&AgentEvent) + Send + Sync + 'static) -> Self {
        self.listeners.push(Arc::new(listener));
        self.stream = true;
        self
    }

    /// The settings of a turn with these options, over the agent's.
    pub(crate) fn over(&self, agent: &TurnSettings) -> TurnSettings {
        TurnSettings {
            max_batches: self.max_batches.unwrap_or(agent.max_batches),
            on_exhausted: self.on_exhausted.unwrap_or(agent.on_exhausted),
            siblings: self.siblings.unwrap_or(agent.siblings),
            pausing: agent.pausing,
            expires_ms: agent.expires_ms,
            deadline_ms: self.deadline.map(millis).or(agent.deadline_ms),
            system_prompt: self.system_prompt.clone().or_else(|| agent.system_prompt.clone()),
            tags: self.tags.clone().or_else(|| agent.tags.clone()),
            tool_choice: self.tool_choice.clone().or_else(|| agent.tool_choice.clone()),
            max_result_chars: agent.max_result_chars,
        }
    }
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// What a person says: a text, or messages with images and documents.
#[derive(Clone, Debug)]
pub struct Input(pub Vec<Message>);

impl From<&str> for Input {
    fn from(text: &str) -> Self {
        Self(vec![Message::user(text)])
    }
}
impl From<String> for Input {
    fn from(text: String) -> Self {
        Self(vec![Message::user(text)])
    }
}
impl From<&String> for Input {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}
impl From<Content> for Input {
    fn from(content: Content) -> Self {
        Self(vec![Message::user(content)])
    }
}
impl From<Message> for Input {
    fn from(message: Message) -> Self {
        Self(vec![message])
    }
}
impl From<Vec<Message>> for Input {
    fn from(messages: Vec<Message>) -> Self {
        Self(messages)
    }
}

/// What is decided about waiting calls.
#[derive(Clone, Debug, PartialEq)]
pub enum Decisions {
    /// This for every call that waits and was shown.
    All(Decision),
    /// This for each of these pauses.
    Each(Vec<(String, Decision)>),
}

impl Decisions {
    /// All that waits may run.
    pub const fn approved() -> Self {
        Self::All(Decision::Approve)
    }
    /// Nothing that waits may run.
    pub const fn rejected() -> Self {
        Self::All(Decision::Reject { reason: None })
    }
    /// One decision on one pause.
    pub fn one(pause: impl Into<String>, decision: Decision) -> Self {
        Self::Each(vec![(pause.into(), decision)])
    }
}

/// A whole turn on its way through the turn filters.
#[derive(Clone, Debug)]
pub struct TurnRequest {
    /// How it begins.
    pub start: TurnStart,
    /// The conversation's id; `None` for an ephemeral turn.
    pub conversation: Option<String>,
    /// What the caller says about it.
    pub options: TurnOptions,
}

/// How a turn begins.
#[derive(Clone, Debug)]
pub enum TurnStart {
    /// With new messages.
    Message(Vec<Message>),
    /// It goes on: after decisions, or after a crash.
    Resume {
        /// The turn's id.
        turn: String,
    },
}

impl Stage for Turn {
    type Request = TurnRequest;
    type Response = TurnResult;
    type Error = TurnError;
}
