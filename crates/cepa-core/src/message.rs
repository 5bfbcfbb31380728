//! Neutral messages: the only form in which a conversation is kept.

use std::sync::Arc;

use crate::{Args, Content, Extra, RawJson};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Instructions.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
}

/// One entry of a conversation.
///
/// ```
/// use cepa_core::Message;
/// let json = r#"{"role":"tool","tool_call_id":"c1","name":"get_weather","content":"晴 22°C"}"#;
/// let message: Message = serde_json::from_str(json)?;
/// assert_eq!(serde_json::to_string(&message)?, json);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Instructions.
    System(SystemMessage),
    /// What the person said.
    User(UserMessage),
    /// What the model said and which tools it calls.
    Assistant(AssistantMessage),
    /// The result of one call.
    Tool(ToolMessage),
}

/// Instructions inside a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemMessage {
    /// The instructions.
    pub content: Content,
    /// Members of the stored object that this version does not know.
    pub extra: Extra,
}

/// What the person said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserMessage {
    /// Text, images, documents.
    pub content: Content,
    /// Members of the stored object that this version does not know.
    pub extra: Extra,
}

/// What the model said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AssistantMessage {
    /// Text and reasoning; `None` where it only calls tools.
    pub content: Option<Content>,
    /// The calls, in the model's order.
    pub tool_calls: Vec<ToolCall>,
    /// Which model wrote it.
    pub origin: Option<Origin>,
    /// Why it ended.
    pub finish_reason: Option<FinishReason>,
    /// What it cost.
    pub usage: Option<Usage>,
    /// Blocks that only the model that made them may see again (signed thinking, reasoning items).
    pub replay: Vec<Replay>,
    /// Members of the stored object that this version does not know.
    pub extra: Extra,
}

/// The result of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolMessage {
    /// The id of the call that it answers.
    pub tool_call_id: String,
    /// The tool's name.
    pub name: String,
    /// What the model gets to read.
    pub content: Content,
    /// How the call ended.
    pub status: ToolStatus,
    /// What the tool wrote to the context, if anything: a JSON object.
    pub writes: Option<RawJson>,
    /// The arguments that ran, where a person changed them.
    pub executed_args: Option<RawJson>,
    /// Members of the stored object that this version does not know.
    pub extra: Extra,
}

/// One call that the model asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// The provider's id, or one made for it: unique within a reply.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments.
    pub args: Args,
    /// What the provider put beside the call (a thought signature) and wants back; bound like [`Replay`].
    pub extra: Extra,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ToolStatus {
    /// The body returned.
    #[default]
    Ok,
    /// The body failed, or the call could not be made.
    Error,
    /// A person or the gate refused it: it did not run.
    Rejected,
    /// The turn was cancelled or cut before it ran.
    Cancelled,
    /// Nobody decided in time: it did not run.
    Expired,
    /// It started and nobody knows whether it finished.
    Unknown,
}

/// Why a reply ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FinishReason {
    /// The model was done.
    Stop,
    /// The model waits for tools.
    ToolCalls,
    /// The output limit or the context window was reached.
    Length,
    /// A filter of the provider cut it.
    ContentFilter,
    /// The model refused.
    Refusal,
    /// The provider paused a long turn and wants it continued.
    PauseTurn,
    /// The caller cancelled while it was written.
    Cancelled,
    /// Something this version does not know.
    Other,
}

/// Which model wrote a message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The catalog entry of the provider.
    pub provider: Arc<str>,
    /// The model's name.
    pub model: Arc<str>,
}

/// What a reply cost, in tokens. Inputs include cache reads and writes; outputs include reasoning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens read, cached ones included.
    pub input: u64,
    /// Tokens written, reasoning included.
    pub output: u64,
    /// Of the input: read from the provider's cache.
    pub cache_read: u64,
    /// Of the input: written to the provider's cache.
    pub cache_write: u64,
    /// Of the output: reasoning.
    pub reasoning: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}

/// A block that goes back verbatim to the very model that made it, and to no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// The dialect it is written in.
    pub format: String,
    /// The catalog entry that made it.
    pub provider: String,
    /// The model that made it.
    pub model: String,
    /// The block.
    pub data: RawJson,
}

impl Message {
    /// A system message.
    pub fn system(content: impl Into<Content>) -> Self {
        Self::System(SystemMessage { content: content.into(), extra: Extra::new() })
    }
    /// A user message.
    pub fn user(content: impl Into<Content>) -> Self {
        Self::User(UserMessage { content: content.into(), extra: Extra::new() })
    }
    /// An assistant message with text only.
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self::Assistant(AssistantMessage { content: Some(content.into()), ..AssistantMessage::default() })
    }
    /// The result of a call.
    pub fn tool(
        tool_call_id: impl Into<String>,
        name: impl Into<String>,
        status: ToolStatus,
        content: impl Into<Content>,
    ) -> Self {
        Self::Tool(ToolMessage {
            tool_call_id: tool_call_id.into(),
            name: name.into(),
            content: content.into(),
            status,
            writes: None,
            executed_args: None,
            extra: Extra::new(),
        })
    }

    /// Who speaks.
    pub fn role(&self) -> Role {
        match self {
            Self::System(_) => Role::System,
            Self::User(_) => Role::User,
            Self::Assistant(_) => Role::Assistant,
            Self::Tool(_) => Role::Tool,
        }
    }

    /// The content, where there is one.
    pub fn content(&self) -> Option<&Content> {
        match self {
            Self::System(m) => Some(&m.content),
            Self::User(m) => Some(&m.content),
            Self::Assistant(m) => m.content.as_ref(),
            Self::Tool(m) => Some(&m.content),
        }
    }

    /// The text of the content; empty where there is none.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        self.content().map_or(std::borrow::Cow::Borrowed(""), Content::text)
    }

    /// The calls; empty for all but assistant messages.
    pub fn tool_calls(&self) -> &[ToolCall] {
        match self {
            Self::Assistant(m) => &m.tool_calls,
            Self::System(_) | Self::User(_) | Self::Tool(_) => &[],
        }
    }
}

impl ToolCall {
    /// A call.
    pub fn new(id: impl Into<String>, name: impl Into<String>, args: Args) -> Self {
        Self { id: id.into(), name: name.into(), args, extra: Extra::new() }
    }
}

macro_rules! words {
    ($type:ty, $($variant:ident => $word:literal),+ $(,)?) => {
        impl $type {
            /// The word in JSON.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
            /// The value of a word in JSON.
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
words!(Role, System => "system", User => "user", Assistant => "assistant", Tool => "tool");
words!(ToolStatus, Ok => "ok", Error => "error", Rejected => "rejected", Cancelled => "cancelled",
    Expired => "expired", Unknown => "unknown");
words!(FinishReason, Stop => "stop", ToolCalls => "tool_calls", Length => "length",
    ContentFilter => "content_filter", Refusal => "refusal", PauseTurn => "pause_turn",
    Cancelled => "cancelled", Other => "other");
