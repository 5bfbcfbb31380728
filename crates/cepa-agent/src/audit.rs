//! The audit trail: what people were shown, what they decided, and what then ran. Every store keeps the same entries;
//! they are only ever added.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    pause::{Decision, Pause, PauseState, words},
    store::{CallRow, VerdictKind},
};

/// What an entry of the audit trail is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditKind {
    /// A call began to wait: this is what a person is shown.
    Shown,
    /// Somebody let the call run as shown.
    Approved,
    /// Somebody let the call run with other arguments.
    Edited,
    /// Somebody refused the call.
    Rejected,
    /// Somebody answered in the tool's place.
    Replied,
    /// Nobody decided in time.
    Expired,
    /// The turn was given up before anybody decided.
    Cancelled,
    /// The body of a call that had been shown is entered.
    Ran,
    /// A call that had been shown and ran has its result.
    Finished,
    /// A call that had been shown and ran was interrupted: nobody knows how it ended.
    Unknown,
    /// The conversation was cleared.
    Cleared,
}

words!(AuditKind, Shown => "shown", Approved => "approved", Edited => "edited", Rejected => "rejected",
    Replied => "replied", Expired => "expired", Cancelled => "cancelled", Ran => "ran", Finished => "finished",
    Unknown => "unknown", Cleared => "cleared");

impl From<PauseState> for AuditKind {
    fn from(state: PauseState) -> Self {
        match state {
            PauseState::Pending => Self::Shown,
            PauseState::Approved => Self::Approved,
            PauseState::Edited => Self::Edited,
            PauseState::Rejected => Self::Rejected,
            PauseState::Replied => Self::Replied,
            PauseState::Expired => Self::Expired,
            PauseState::Cancelled => Self::Cancelled,
        }
    }
}

/// One entry of the audit trail; see [`TurnStore::audit`](crate::TurnStore::audit).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Its place in the trail; rises, and is given by the store.
    pub seq: u64,
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// Who decided, in a form free to the application; `None` where nobody did.
    pub actor: Option<String>,
    /// What happened.
    pub what: AuditKind,
    /// The pause, if it is about one.
    pub pause: Option<String>,
    /// The rest: `conversation` always; `turn`, `batch`, `idx`, `call_id`, `tool`, `args` (as text, so that their digits
    /// survive) and `args_hash` of the call; then `kind`, `reason`, `expires` (shown), `edited_args`, `reason`,
    /// `content` (decided), `attempt` and `status` (ran, finished).
    pub data: Map<String, Value>,
}

/// The members that entries about a call have in common. The arguments are those shown.
fn about(pause: &Pause) -> Map<String, Value> {
    let members: [(&str, Value); 8] = [
        ("conversation", pause.conversation.clone().into()),
        ("turn", pause.turn.clone().into()),
        ("batch", pause.key.batch.into()),
        ("idx", pause.key.idx.into()),
        ("call_id", pause.call_id.clone().into()),
        ("tool", pause.tool.clone().into()),
        ("args", pause.args.as_str().into()),
        ("args_hash", pause.args_hash.clone().into()),
    ];
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

impl AuditEntry {
    fn new(what: AuditKind, pause: &Pause, at: i64) -> Self {
        Self { seq: 0, at, actor: None, what, pause: Some(pause.id.clone()), data: about(pause) }
    }

    fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.data.insert(name.to_owned(), value.into());
        self
    }

    /// The conversation that it is about.
    pub fn conversation(&self) -> &str {
        self.data.get("conversation").and_then(Value::as_str).unwrap_or_default()
    }

    /// A call begins to wait.
    pub fn shown(pause: &Pause) -> Self {
        Self::new(AuditKind::Shown, pause, pause.created)
            .with("kind", pause.kind.as_str())
            .with("reason", pause.reason.clone())
            .with("expires", pause.expires)
    }

    /// Somebody decided about a call.
    pub fn decided(pause: &Pause, decision: &Decision, actor: &str, at: i64) -> Self {
        let entry = Self { actor: Some(actor.to_owned()), ..Self::new(decision.state().into(), pause, at) };
        match decision {
            Decision::Approve => entry,
            Decision::Edit { args } => entry.with("edited_args", args.clone()),
            Decision::Reject { reason } => entry.with("reason", reason.clone()),
            Decision::Reply { content } => entry.with("content", content.clone()),
        }
    }

    /// A pause is over and nobody decided.
    pub fn closed(pause: &Pause, state: PauseState, at: i64) -> Self {
        Self::new(state.into(), pause, at)
    }

    /// The body of a call that had been shown is entered; `args` are then those that run.
    pub fn ran(pause: &Pause, call: &CallRow, at: i64) -> Self {
        let args = call.executed_args.as_ref().map_or_else(|| call.args.as_str(), |args| args.as_str());
        let entry = Self::new(AuditKind::Ran, pause, at);
        entry.with("args", args).with("args_hash", crate::ids::hash(args)).with("attempt", call.attempt)
    }

    /// A call that had been shown, and ran, has its result.
    pub fn finished(pause: &Pause, call: &CallRow, at: i64) -> Self {
        let status = call.result.as_ref().map(|result| result.status.as_str());
        Self { what: AuditKind::Finished, ..Self::ran(pause, call, at) }.with("status", status)
    }

    /// A call that had been shown, and ran, was interrupted.
    pub fn unknown(pause: &Pause, call: &CallRow, at: i64) -> Self {
        Self { what: AuditKind::Unknown, ..Self::ran(pause, call, at) }
    }

    /// A conversation was cleared.
    pub fn cleared(conversation: &str, at: i64) -> Self {
        let data = Map::from_iter([("conversation".to_owned(), Value::from(conversation))]);
        Self { seq: 0, at, actor: None, what: AuditKind::Cleared, pause: None, data }
    }
}

/// Whether a call may have been shown to a person before it ran: only then a store looks for its pause.
pub fn may_have_been_shown(call: &CallRow) -> bool {
    // Without a verdict to pause, a person is asked only after the body was entered once.
    call.verdict == VerdictKind::Pause || call.attempt > 1
}
