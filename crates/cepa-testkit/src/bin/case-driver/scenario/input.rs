//! The input of a scenario, as the protocol writes it.

use std::collections::BTreeMap;

use cepa_core::{Message, RawJson};
use serde::Deserialize;

use crate::{
    client::{LimitWords, RetryWords},
    server::HttpReply,
};

#[derive(Clone, Deserialize)]
pub(crate) struct Input {
    pub(crate) agent: Option<AgentWords>,
    pub(crate) agents: Option<BTreeMap<String, AgentWords>>,
    #[serde(default)]
    pub(crate) tools: Vec<ToolWords>,
    #[serde(default)]
    pub(crate) inner_tools: Vec<ToolWords>,
    pub(crate) gate: Option<GateWords>,
    pub(crate) model: Option<Script>,
    #[serde(default)]
    pub(crate) model_by_prompt: BTreeMap<String, Vec<ReplyWords>>,
    pub(crate) http: Option<Vec<HttpReply>>,
    pub(crate) retry: Option<RetryWords>,
    #[serde(default)]
    pub(crate) client: LimitWords,
    #[serde(default)]
    pub(crate) filters: Vec<FilterWords>,
    #[serde(default)]
    pub(crate) observers: Vec<ObserverWords>,
    pub(crate) steps: Option<Vec<Step>>,
    #[serde(default)]
    pub(crate) stream: bool,
}

#[derive(Clone, Default, Deserialize)]
pub(crate) struct AgentWords {
    pub(crate) conversation_id: Option<String>,
    pub(crate) memory: Option<MemoryWords>,
    pub(crate) system_prompt: Option<String>,
    pub(crate) tool_choice: Option<String>,
    pub(crate) max_batches: Option<u32>,
    pub(crate) on_exhausted: Option<String>,
    #[serde(default)]
    pub(crate) on_pause: bool,
    pub(crate) max_result_chars: Option<usize>,
    pub(crate) tool_timeout_ms: Option<u64>,
}

#[derive(Clone, Deserialize)]
pub(crate) struct MemoryWords {
    pub(crate) kind: String,
    /// Of a window over a memory.
    pub(crate) max_messages: Option<u64>,
}

#[derive(Clone, Deserialize)]
pub(crate) struct ToolWords {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: String,
    pub(crate) schema: Option<RawJson>,
    #[serde(default)]
    pub(crate) sensitive: bool,
    pub(crate) sleep_ms: Option<u64>,
    #[serde(default, deserialize_with = "given")]
    pub(crate) returns: Option<RawJson>,
    pub(crate) raises: Option<String>,
    #[serde(default)]
    pub(crate) echo: bool,
    #[serde(default)]
    pub(crate) hang: bool,
    pub(crate) gate: Option<String>,
    pub(crate) agent: Option<InnerAgent>,
}

/// A member that is there, even if it is null.
fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<RawJson>, D::Error> {
    RawJson::deserialize(deserializer).map(Some)
}

#[derive(Clone, Deserialize)]
pub(crate) struct InnerAgent {
    #[serde(default)]
    pub(crate) tools: Vec<String>,
    #[serde(default)]
    pub(crate) on_pause: bool,
    pub(crate) model: Vec<ReplyWords>,
}

#[derive(Clone, Deserialize)]
pub(crate) struct GateWords {
    pub(crate) pause_if: Option<PauseIf>,
    #[serde(default)]
    pub(crate) script: BTreeMap<String, Vec<String>>,
}

#[derive(Clone, Deserialize)]
pub(crate) struct PauseIf {
    pub(crate) arg: String,
    pub(crate) greater_than: f64,
}

/// Scripted replies in order, or the word that they depend on the user's message.
#[derive(Clone)]
pub(crate) enum Script {
    Replies(Vec<ReplyWords>),
    ByPrompt,
}

impl<'de> Deserialize<'de> for Script {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = RawJson::deserialize(deserializer)?;
        match raw.as_str() {
            "\"by_prompt\"" => Ok(Self::ByPrompt),
            _ => raw.read().map(Self::Replies).map_err(serde::de::Error::custom),
        }
    }
}

#[derive(Clone, Deserialize)]
pub(crate) struct ReplyWords {
    pub(crate) content: Option<String>,
    #[serde(default)]
    pub(crate) tool_calls: Vec<CallWords>,
    pub(crate) finish: Option<String>,
    pub(crate) error: Option<ErrorWords>,
}

#[derive(Clone, Deserialize)]
pub(crate) struct CallWords {
    pub(crate) id: Option<String>,
    pub(crate) name: String,
    pub(crate) args: Option<RawJson>,
    pub(crate) args_raw: Option<String>,
}

#[derive(Clone, Deserialize)]
pub(crate) struct ErrorWords {
    pub(crate) status: Option<u16>,
    pub(crate) class: String,
}

#[derive(Clone, Deserialize)]
pub(crate) struct FilterWords {
    pub(crate) name: String,
    pub(crate) phase: String,
    #[serde(default)]
    pub(crate) order: i32,
    #[serde(default)]
    pub(crate) trace: bool,
    pub(crate) retry: Option<u32>,
    pub(crate) short_circuit: Option<ShortCircuit>,
    pub(crate) append_system: Option<String>,
    pub(crate) add_tool: Option<ToolWords>,
    pub(crate) set_args: Option<BTreeMap<String, RawJson>>,
}

#[derive(Clone, Deserialize)]
pub(crate) struct ShortCircuit {
    pub(crate) if_contains: String,
    pub(crate) reply: String,
}

#[derive(Clone, Deserialize)]
pub(crate) struct ObserverWords {
    pub(crate) on: String,
    pub(crate) raises: String,
}

#[derive(Clone, Deserialize)]
pub(crate) struct Step {
    pub(crate) op: String,
    pub(crate) agent: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) cancel_when: Option<When>,
    pub(crate) cancel_after_ms: Option<u64>,
    pub(crate) drop_when: Option<When>,
    pub(crate) decision: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) edits: Option<BTreeMap<String, RawJson>>,
    pub(crate) pauses: Option<Vec<String>>,
    pub(crate) with_state: Option<RawJson>,
    pub(crate) name: Option<String>,
    pub(crate) ms: Option<u64>,
    #[serde(default)]
    pub(crate) msgs: Vec<Message>,
    #[serde(default)]
    pub(crate) of: Vec<Step>,
}

/// A moment of a turn.
#[derive(Clone, Deserialize)]
pub(crate) struct When {
    pub(crate) text_delta: Option<usize>,
    pub(crate) tool_started: Option<String>,
    pub(crate) bytes_sent: Option<usize>,
    pub(crate) wait_ms: Option<u64>,
}
