//! The core of cepa: messages, history, the onion of filters, tools and the kernel.
//!
//! No I/O, no timers, no database: everything here is data and the rules that hold for it.

mod args;
mod chat;
mod context;
mod encoded;
mod error;
mod history;
mod json;
mod kernel;
mod message;
mod message_json;
mod onion;
pub mod pairing;
mod part;
mod schema;
mod tool;
mod tool_set;
#[cfg(test)]
mod toys;
#[cfg(feature = "typed")]
mod typed;
#[cfg(feature = "typed")]
mod typed_schema;

pub use args::Args;
pub use chat::{
    Chat, ChatEvent, ChatModel, ChatOptions, ChatRequest, ChatResponse, EventSink, SharedModel, Thinking, ToolChoice,
};
pub use context::{CONVERSATION_ID, ToolContext, Writes};
pub use encoded::{EncodedSlot, KeptSlot, WireKey};
pub use error::{Error, ErrorKind, ToolFailure};
pub use history::{Chunk, Entry, History};
pub use json::{Extra, RawJson};
pub use kernel::{Kernel, KernelBuilder};
pub use message::{
    AssistantMessage, FinishReason, Message, Origin, Replay, Role, SystemMessage, ToolCall, ToolMessage, ToolStatus,
    Usage, UserMessage,
};
pub use onion::{BoxFuture, Chain, Filter, FilterInfo, FnFilter, Next, Stage, StageResult};
pub use part::{Content, Media, Part, Source};
#[cfg(feature = "typed")]
pub use schemars;
pub use tokio_util::sync::CancellationToken;
pub use tool::{Tool, ToolBody, ToolError, ToolFlags, ToolOutput, ToolRequest, ToolResponse, ToolSpec};
pub use tool_set::ToolSet;
#[cfg(feature = "typed")]
pub use typed::{IntoToolError, IntoToolOutput};
#[cfg(feature = "typed")]
pub use typed_schema::schema_of;

/// What `#[tool]` expands to; not for use by hand.
#[cfg(feature = "typed")]
#[doc(hidden)]
pub mod __private {
    pub use crate::typed::{Plain, Returned, tool};
    pub use {schemars, serde};
}
