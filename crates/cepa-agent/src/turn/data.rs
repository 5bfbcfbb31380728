//! What a turn must know to go on anywhere: settings and counters, small and without history.

use std::sync::Arc;

use cepa_core::{ToolChoice, Usage};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::CancelReason;

/// What happens when the batches of a turn are used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnExhausted {
    /// The turn ends as exhausted.
    #[default]
    Stop,
    /// The model is called once more, without tools.
    Finish,
}

/// What happens to the other calls of a batch while one waits for a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Siblings {
    /// They wait too.
    #[default]
    Hold,
    /// They run now.
    RunOthers,
}

/// The settings of one turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnSettings {
    /// The most batches of calls.
    pub max_batches: u32,
    /// What happens after them.
    pub on_exhausted: OnExhausted,
    /// What happens to siblings of a waiting call.
    pub siblings: Siblings,
    /// Whether calls can wait for a person.
    pub pausing: bool,
    /// How long a pause may be decided, in milliseconds; for ever if `None`.
    pub expires_ms: Option<i64>,
    /// How long the turn may be driven, in milliseconds, from its beginning or from a resumption; for ever if `None`.
    pub deadline_ms: Option<u64>,
    /// The system prompt.
    pub system_prompt: Option<String>,
    /// The tags of which a tool must have one to be offered; all tools if `None`.
    pub tags: Option<Vec<String>>,
    /// The tool choice of the first model call.
    #[serde(with = "crate::words::tool_choice")]
    pub tool_choice: Option<ToolChoice>,
    /// The most characters of a result that the model is given.
    pub max_result_chars: Option<usize>,
}

impl Default for TurnSettings {
    fn default() -> Self {
        Self {
            max_batches: 25,
            on_exhausted: OnExhausted::default(),
            siblings: Siblings::default(),
            pausing: false,
            expires_ms: None,
            deadline_ms: None,
            system_prompt: None,
            tags: None,
            tool_choice: None,
            max_result_chars: None,
        }
    }
}

/// Settings and counters of a turn: the `data` of its row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnData {
    /// The settings.
    pub settings: Arc<TurnSettings>,
    /// The values of the context, with what closed batches wrote.
    pub values: Arc<Map<String, Value>>,
    /// What the turn has cost.
    pub usage: Usage,
    /// How many replies there were.
    pub replies: u32,
    /// How many batches there were, the open one included.
    pub batches: u32,
    /// Whether the last batch is not closed.
    pub open_batch: bool,
    /// Whether the next model call continues a reply that the provider paused.
    pub continue_pause: bool,
    /// The text of the replies that the provider paused.
    pub paused_text: String,
    /// Whether the model was asked to answer without tools, because the batches are used up.
    pub finishing: bool,
    /// Whether a result was cut for the model.
    pub cut: bool,
    /// Why it was given up, if it was.
    pub cancelled: Option<CancelReason>,
}
