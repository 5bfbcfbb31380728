//! A call that waits for a person, and what the person may say.

use cepa_core::{Args, Error, ErrorKind, RawJson};
use serde::{Deserialize, Serialize};

use crate::store::CallKey;

/// Why a call waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseKind {
    /// Somebody must allow it.
    Approval,
    /// It started and nobody knows whether it finished.
    Unknown,
    /// Something a person must repair came in its way.
    Environment,
}

/// Where a pause stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseState {
    /// It waits.
    Pending,
    /// The call may run as shown.
    Approved,
    /// The call may run with other arguments.
    Edited,
    /// The call must not run.
    Rejected,
    /// A person answered in the tool's place.
    Replied,
    /// Nobody decided in time.
    Expired,
    /// The turn was given up before anybody decided.
    Cancelled,
}

/// What a person decides about one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Decision {
    /// Run it as shown. For an unknown outcome: run it again.
    Approve,
    /// Run it with these arguments (the text of a JSON object).
    Edit {
        /// The arguments, as text so that digits and order survive.
        args: String,
    },
    /// Do not run it.
    Reject {
        /// Why, for the model.
        reason: Option<String>,
    },
    /// Do not run it; this is its result.
    Reply {
        /// The result.
        content: String,
    },
}

impl Decision {
    /// The state of a pause with this decision.
    pub const fn state(&self) -> PauseState {
        match self {
            Self::Approve => PauseState::Approved,
            Self::Edit { .. } => PauseState::Edited,
            Self::Reject { .. } => PauseState::Rejected,
            Self::Reply { .. } => PauseState::Replied,
        }
    }

    /// An edit with these arguments.
    ///
    /// # Errors
    /// `invalid_input` if they are not a JSON object.
    pub fn edit(args: &str) -> Result<Self, Error> {
        match Args::decode(args) {
            Args::Object(raw) => Ok(Self::Edit { args: raw.as_str().to_owned() }),
            Args::Invalid { why, .. } => {
                let text = format!("the new arguments are {why}: give an object, such as the one shown");
                Err(Error::new(ErrorKind::InvalidInput, text))
            }
        }
    }
}

/// A call that waits, or waited, for a person: plain data, complete without anything else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pause {
    /// Its id.
    pub id: String,
    /// Why it waits.
    pub kind: PauseKind,
    /// The conversation.
    pub conversation: String,
    /// The turn.
    pub turn: String,
    /// Which call of the turn.
    pub key: CallKey,
    /// The call's id in its message.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// The arguments as they would run.
    pub args: RawJson,
    /// Their hash.
    pub args_hash: String,
    /// The hash of the tool's schema.
    pub schema_hash: String,
    /// Why a person is asked.
    pub reason: Option<String>,
    /// When it began to wait, in milliseconds since 1970.
    pub created: i64,
    /// Until when it may be decided.
    pub expires: Option<i64>,
    /// Where it stands.
    pub state: PauseState,
    /// What was decided.
    pub decision: Option<Decision>,
    /// Who decided, in a form free to the application.
    pub actor: Option<String>,
    /// When.
    pub decided: Option<i64>,
}

impl Pause {
    /// Whether it may no longer be decided: nobody did in time, noticed or not.
    pub fn is_expired(&self, now: i64) -> bool {
        match self.state {
            PauseState::Expired => true,
            PauseState::Pending => self.expires.is_some_and(|expires| now >= expires),
            PauseState::Approved
            | PauseState::Edited
            | PauseState::Rejected
            | PauseState::Replied
            | PauseState::Cancelled => false,
        }
    }
}

macro_rules! words {
    ($type:ty, $($variant:ident => $word:literal),+ $(,)?) => {
        impl $type {
            /// The word in JSON and SQL.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
            /// The value of a word in SQL.
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}
pub(crate) use words;

words!(PauseKind, Approval => "approval", Unknown => "unknown", Environment => "environment");
words!(PauseState, Pending => "pending", Approved => "approved", Edited => "edited", Rejected => "rejected",
    Replied => "replied", Expired => "expired", Cancelled => "cancelled");

/// The decision of [`TurnStore::decide`](crate::TurnStore::decide), the same for every store: what a pause becomes.
///
/// # Errors
/// As there. With `expired` the pause is to be marked [`PauseState::Expired`].
pub fn settle(pause: &Pause, decision: &Decision, now: i64) -> Result<Settled, Error> {
    match pause.state {
        PauseState::Pending => {
            if pause.is_expired(now) {
                return Ok(Settled::Expired(expired(pause)));
            }
            Ok(Settled::Now)
        }
        PauseState::Approved | PauseState::Edited | PauseState::Rejected | PauseState::Replied => {
            if pause.decision.as_ref() == Some(decision) {
                return Ok(Settled::Before);
            }
            let word = pause.state.as_str();
            let message = format!("pause {} was already decided: {word}; the audit trail tells by whom", pause.id);
            Err(Error::new(ErrorKind::AlreadyDecided, message))
        }
        PauseState::Expired => Err(expired(pause)),
        PauseState::Cancelled => {
            let message = format!("pause {} was cancelled: nothing waits for this decision", pause.id);
            Err(Error::new(ErrorKind::NotPaused, message))
        }
    }
}

pub(crate) fn expired(pause: &Pause) -> Error {
    let what = match pause.kind {
        PauseKind::Approval => "the call did not run",
        PauseKind::Unknown => "the call stays unknown: nobody knows whether it ran",
        PauseKind::Environment => "the call stays failed",
    };
    let text =
        format!("pause {} has expired: {what}; say something new, or `recover`, and the model is told", pause.id);
    Error::new(ErrorKind::Expired, text)
}

/// What a decision does to a pause.
#[derive(Clone, Debug)]
pub enum Settled {
    /// It is decided now.
    Now,
    /// It had this very decision before.
    Before,
    /// It is too late: the pause is to be marked expired, and the decision fails with this error.
    Expired(Error),
}

/// The error for a pause id that no pause has.
pub fn no_such_pause(id: &str) -> Error {
    Error::new(ErrorKind::NotPaused, format!("there is no pause {id}: list those that wait with `pending`"))
}
