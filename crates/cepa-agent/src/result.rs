//! What comes of a turn.

use std::time::Duration;

use cepa_core::{Args, AssistantMessage, Error, FinishReason, ToolContext, ToolStatus, Usage};

use crate::{pause::Pause, paused::PausedState, turn::CancelReason};

/// How a turn ended, or why it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TurnStatus {
    /// The model answered.
    Completed,
    /// Calls wait for a person.
    Paused,
    /// It was given up; [`TurnResult::cancelled`] says why.
    Cancelled,
    /// The batches were used up.
    Exhausted,
}

impl TurnStatus {
    /// The word in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Paused => "paused",
            Self::Cancelled => "cancelled",
            Self::Exhausted => "exhausted",
        }
    }
}

/// One call of a turn, as it went.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The call's id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments as the model wrote them.
    pub args: Args,
    /// How it ended.
    pub outcome: ToolStatus,
    /// What the model reads of it.
    pub result: String,
    /// How long the body took, as far as it ran.
    pub duration: Duration,
}

/// What comes of a turn that did not fail.
#[derive(Clone, Debug)]
pub struct TurnResult {
    /// How it ended, or that it waits.
    pub status: TurnStatus,
    /// Why it was given up, if it was cancelled.
    pub cancelled: Option<CancelReason>,
    /// The turn's id.
    pub turn: String,
    /// The conversation's id; `None` for an ephemeral turn.
    pub conversation: Option<String>,
    /// The answer; empty unless completed.
    pub text: String,
    /// The last reply.
    pub message: Option<AssistantMessage>,
    /// Why the last reply ended.
    pub finish_reason: Option<FinishReason>,
    /// All calls of the turn so far, in order.
    pub records: Vec<Record>,
    /// What the turn has cost so far.
    pub usage: Usage,
    /// The context with what the tools wrote.
    pub context: ToolContext,
    /// What waits for a person, in call order.
    pub pending: Vec<Pause>,
    /// The whole turn as plain data, while it is paused.
    pub state: Option<PausedState>,
}

impl TurnResult {
    /// Whether calls wait for a person.
    pub fn is_paused(&self) -> bool {
        self.status == TurnStatus::Paused
    }
}

/// A turn that failed, with what it did before.
#[derive(Clone, Debug)]
pub struct TurnError {
    /// What went wrong.
    pub error: Error,
    /// All calls of the turn, in order.
    pub records: Vec<Record>,
    /// What the turn has cost.
    pub usage: Usage,
    /// The context with what the tools wrote.
    pub context: ToolContext,
}

impl From<Error> for TurnError {
    fn from(error: Error) -> Self {
        Self { error, records: Vec::new(), usage: Usage::default(), context: ToolContext::new() }
    }
}

impl From<TurnError> for Error {
    fn from(error: TurnError) -> Self {
        error.error
    }
}

impl std::fmt::Display for TurnError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for TurnError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}
