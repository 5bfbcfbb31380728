//! What most programs begin with: `use cepa::prelude::*;`.

#[cfg(feature = "sqlite")]
pub use crate::Sqlite;
#[cfg(feature = "http")]
pub use crate::providers::{
    anthropic::Anthropic, catalog::Endpoint, gemini::Gemini, openai::OpenAi, responses::OpenAiResponses,
};
#[cfg(feature = "macros")]
pub use crate::tool;
pub use crate::{
    Agent, AgentEvent, Args, Chat, ChatEvent, ChatMemory, ChatModel, ChatOptions, ChatRequest, ChatResponse, Content,
    Conversation, Decision, Decisions, Error, ErrorKind, InMemory, Kernel, Message, Part, Stage, Tool, ToolChoice,
    ToolContext, ToolError, ToolFlags, ToolOutput, ToolSpec, Turn, TurnOptions, TurnStatus, Verdict, Window, Windowed,
    gate_fn, turn::CancelReason,
};
