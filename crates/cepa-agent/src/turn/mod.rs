//! The turn: a plain state machine. Events go in, commits come out; nothing here reads a clock or a socket.
//!
//! Rule for whoever drives it: persist the [`Commit`] in one transaction, then act on [`Turn::todo`].

mod batch;
mod data;
mod machine;
mod restore;
#[cfg(test)]
mod rig;
#[cfg(test)]
mod turn_events_tests;
#[cfg(test)]
mod turn_pauses_tests;
#[cfg(test)]
mod turn_tests;

use std::sync::Arc;

use cepa_core::{AssistantMessage, Entry, FinishReason, History, Message, Origin, RawJson, ToolCall, ToolFlags, Usage};
use serde::{Deserialize, Serialize};

pub use batch::PlannedCall;
pub(crate) use batch::rejected;
pub use data::{OnExhausted, Siblings, TurnData, TurnSettings};
pub use restore::Restored;

use crate::{
    ids,
    pause::Pause,
    result::{Record, TurnStatus},
    store::{CallResult, Commit, TurnRow, TurnState, carried_json},
    texts::Texts,
};
use batch::Batch;

/// A turn, from the user's message to the answer or a pause.
#[derive(Clone, Debug)]
pub struct Turn {
    id: String,
    conversation: Option<String>,
    carries: bool,
    input: Vec<Message>,
    data: TurnData,
    transcript: History,
    records: Vec<Record>,
    reply: Option<AssistantMessage>,
    direct: Option<String>,
    phase: Phase,
    created: i64,
    texts: Arc<Texts>,
}

/// The messages that the model has not seen.
#[derive(Clone, Debug)]
struct Delta {
    entries: Vec<Arc<Entry>>,
    /// Whether they joined the conversation with the step that made them.
    stored: bool,
}

impl Delta {
    fn nothing() -> Self {
        Self { entries: Vec::new(), stored: false }
    }
}

#[derive(Clone, Debug)]
enum Phase {
    /// The model is to be called with these messages.
    Call(Delta),
    /// Calls are to be decided on and run.
    Batch(Batch),
    /// It is over.
    Done(TurnState),
}

/// What happened.
#[derive(Clone, Debug)]
pub enum Did {
    /// The model replied.
    Replied {
        /// The reply.
        reply: AssistantMessage,
        /// What it cost.
        usage: Option<Usage>,
        /// Why it ended.
        finish: FinishReason,
        /// When, in milliseconds since 1970.
        at: i64,
    },
    /// The model could not be called, or the store could not be written: the turn is over.
    Failed {
        /// When.
        at: i64,
    },
    /// What becomes of each call of the batch, in call order.
    Verdicts {
        /// One ruling per call.
        rulings: Vec<Ruling>,
        /// When.
        at: i64,
    },
    /// A body is about to be entered.
    Started {
        /// The call's place in the batch.
        idx: u32,
        /// When.
        at: i64,
    },
    /// A call has its result.
    Finished {
        /// The call's place in the batch.
        idx: u32,
        /// Its result.
        result: CallResult,
        /// How long the body took, in milliseconds.
        took_ms: u64,
        /// When.
        at: i64,
    },
    /// A body was entered, and nobody will ever know how it ended.
    Lost {
        /// The call's place in the batch.
        idx: u32,
        /// Whether the tool may simply be run again.
        repeatable: bool,
        /// When.
        at: i64,
    },
    /// A person decided (the pause as the store has it).
    Decided {
        /// The decided pause.
        pause: Pause,
        /// When.
        at: i64,
    },
    /// The caller gave up.
    Cancelled {
        /// Why: for the text that the model reads about calls that never ran.
        why: CancelReason,
        /// The reply that was being written.
        partial: Option<PartialReply>,
        /// When.
        at: i64,
    },
    /// Time went by: what has expired is closed.
    Now {
        /// The time.
        at: i64,
    },
}

/// A reply that was cut while it was written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartialReply {
    /// The text that was received.
    pub text: String,
    /// Who wrote it.
    pub origin: Option<Origin>,
}

/// Why a turn was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelReason {
    /// The caller cancelled.
    Caller,
    /// It took longer than it was given.
    Deadline,
    /// A new message came while the turn was paused.
    Superseded,
}

/// What becomes of a call, with what was found out about it.
#[derive(Clone, Debug)]
pub struct Ruling {
    /// What becomes of it.
    pub outcome: RulingOutcome,
    /// What the loop knows of the tool; the default for an unknown one.
    pub flags: ToolFlags,
    /// The arguments as they would run; `None` if they cannot.
    pub prepared: Option<RawJson>,
    /// The hash of the tool's schema; empty for an unknown tool.
    pub schema_hash: Arc<str>,
}

/// What becomes of a call.
#[derive(Clone, Debug)]
pub enum RulingOutcome {
    /// It runs.
    Proceed,
    /// A person decides.
    Pause {
        /// Why a person is asked.
        reason: Option<String>,
    },
    /// The gate refused it.
    Reject {
        /// Why, for the model.
        reason: Option<String>,
    },
    /// The gate answered in its place.
    Reply {
        /// The result.
        content: String,
    },
    /// It cannot run.
    Refuse {
        /// What the model is told.
        text: String,
    },
}

/// What is to be done next.
#[derive(Clone, Debug)]
pub enum Todo {
    /// Call the model.
    CallModel(ModelCall),
    /// Find out what becomes of these calls: [`Did::Verdicts`].
    Decide(Vec<ToolCall>),
    /// Run these calls, in order. Empty while the last ones that were started have not ended.
    Run(Vec<PlannedCall>),
    /// Wait for a person.
    Wait(Vec<Pause>),
    /// Nothing: the turn is over.
    Done(TurnState),
}

/// A model call that is to be made.
#[derive(Clone, Debug)]
pub struct ModelCall {
    /// What is new; the whole transcript for a turn that carries it itself.
    pub messages: History,
    /// The id of the reply that will come.
    pub reply_id: String,
    /// Whether the new messages open the turn: they are stored together with the reply.
    pub opens: bool,
    /// Whether the new messages are in the conversation already.
    pub stored: bool,
    /// Whether the last message is a reply that the provider paused.
    pub continue_pause: bool,
    /// Whether tools are withheld, so that the model must answer.
    pub without_tools: bool,
}

/// The event does not fit the turn's state: a mistake of whoever drives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Illegal(pub &'static str);

impl From<Illegal> for cepa_core::Error {
    fn from(illegal: Illegal) -> Self {
        Self::new(cepa_core::ErrorKind::Conflict, format!("the turn cannot go on: {}", illegal.0))
    }
}

impl Turn {
    /// A new turn. One that `carries` keeps its own transcript: it has no memory, or no conversation.
    pub fn new(
        id: String,
        conversation: Option<String>,
        carries: bool,
        input: Vec<Message>,
        data: TurnData,
        at: i64,
        texts: Arc<Texts>,
    ) -> Self {
        let delta = Delta { entries: Self::input_entries(&id, &input, at), stored: false };
        Self {
            id,
            conversation,
            carries,
            input,
            data,
            transcript: History::new(),
            records: Vec::new(),
            reply: None,
            direct: None,
            phase: Phase::Call(delta),
            created: at,
            texts,
        }
    }

    fn input_entries(id: &str, input: &[Message], at: i64) -> Vec<Arc<Entry>> {
        let entry =
            |(n, message): (usize, &Message)| Arc::new(Entry::with_id(ids::input_id(id, n), at, message.clone()));
        input.iter().enumerate().map(entry).collect()
    }

    /// The row to be written before the first model call.
    pub fn row(&self, at: i64) -> TurnRow {
        TurnRow {
            id: self.id.clone(),
            conversation: self.conversation.clone().unwrap_or_else(|| self.id.clone()),
            state: self.state(),
            ephemeral: self.carries,
            input: json(&self.input),
            carried: self.carries.then(|| carried_json(&self.transcript)),
            data: json(&self.data),
            created: self.created,
            updated: at,
        }
    }

    /// The turn's id.
    pub fn id(&self) -> &str {
        &self.id
    }
    /// The conversation's id.
    pub fn conversation(&self) -> Option<&str> {
        self.conversation.as_deref()
    }
    /// Whether it keeps its own transcript.
    pub fn carries(&self) -> bool {
        self.carries
    }
    /// Settings and counters.
    pub fn data(&self) -> &TurnData {
        &self.data
    }
    /// The calls of closed batches and the settled ones of the open batch, in order.
    pub fn records(&self) -> Vec<Record> {
        let mut records = self.records.clone();
        if let Phase::Batch(batch) = &self.phase {
            records.extend(batch.records());
        }
        records
    }
    /// Whether calls of a batch are not settled.
    pub(crate) fn is_in_batch(&self) -> bool {
        matches!(self.phase, Phase::Batch(_))
    }
    /// Whether one of its calls waits for a person.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(&self.phase, Phase::Batch(batch) if batch.has_pending())
    }
    /// How many of its calls are settled.
    pub(crate) fn settled(&self) -> usize {
        let of_batch = match &self.phase {
            Phase::Batch(batch) => batch.settled(),
            Phase::Call(_) | Phase::Done(_) => 0,
        };
        self.records.len() + of_batch
    }
    /// The last reply.
    pub fn reply(&self) -> Option<&AssistantMessage> {
        self.reply.as_ref()
    }

    /// The answer of a completed turn.
    pub fn text(&self) -> String {
        if let Some(direct) = &self.direct {
            return direct.clone();
        }
        let last = self.reply.as_ref().and_then(|reply| reply.content.as_ref());
        format!("{}{}", self.data.paused_text, last.map(|content| content.text()).unwrap_or_default())
    }

    /// Where it stands.
    pub fn state(&self) -> TurnState {
        match &self.phase {
            Phase::Done(state) => *state,
            Phase::Batch(batch) if batch.waits(self.data.settings.siblings) => TurnState::Paused,
            Phase::Call(_) | Phase::Batch(_) => TurnState::Running,
        }
    }

    /// How it ended or waits, as a caller is told; `None` while it runs or after it failed.
    pub fn status(&self) -> Option<TurnStatus> {
        match self.state() {
            TurnState::Running | TurnState::Failed => None,
            TurnState::Paused => Some(TurnStatus::Paused),
            TurnState::Completed => Some(TurnStatus::Completed),
            TurnState::Cancelled => Some(TurnStatus::Cancelled),
            TurnState::Exhausted => Some(TurnStatus::Exhausted),
        }
    }

    /// The values of the context as a call at this place sees them: what was there, and what earlier calls wrote.
    pub fn values_at(&self, idx: u32) -> Arc<serde_json::Map<String, serde_json::Value>> {
        let mut values = self.data.values.clone();
        if let Phase::Batch(batch) = &self.phase {
            batch.fold_writes(&mut values, Some(idx));
        }
        values
    }

    /// The calls of the open batch whose body was entered and that have no result, with what the loop knows of the tool.
    pub fn started_calls(&self) -> Vec<(u32, ToolFlags)> {
        match &self.phase {
            Phase::Batch(batch) => batch.started(),
            Phase::Call(_) | Phase::Done(_) => Vec::new(),
        }
    }

    /// The transcript of a turn that carries it, with what the next model call would add; empty for any other turn.
    pub(crate) fn whole_transcript(&self) -> History {
        let mut transcript = self.transcript.clone();
        if let Phase::Call(delta) = &self.phase {
            transcript.extend(delta.entries.iter().cloned());
        }
        transcript
    }

    /// What is to be done next.
    pub fn todo(&self) -> Todo {
        self.todo_among(usize::MAX)
    }

    /// As [`Turn::todo`]; of the calls that are to run at least the first ones that may run together.
    pub(crate) fn todo_now(&self) -> Todo {
        self.todo_among(1)
    }

    fn todo_among(&self, groups: usize) -> Todo {
        match &self.phase {
            Phase::Done(state) => Todo::Done(*state),
            Phase::Batch(batch) => batch.todo(self.data.settings.siblings, groups),
            Phase::Call(delta) => {
                let mut messages = self.transcript.clone();
                messages.extend(delta.entries.iter().cloned());
                Todo::CallModel(ModelCall {
                    stored: delta.stored,
                    messages,
                    reply_id: ids::reply_id(&self.id, self.data.replies),
                    opens: self.data.replies == 0,
                    continue_pause: self.data.continue_pause,
                    without_tools: self.data.finishing,
                })
            }
        }
    }

    /// Takes an event. What the commit holds is to be persisted before anything else is done.
    ///
    /// # Errors
    /// [`Illegal`] if the event does not fit; the turn is unchanged then.
    pub fn did(&mut self, what: Did) -> Result<Commit, Illegal> {
        machine::step(self, what)
    }
}

/// JSON of what cannot fail to be JSON.
pub(crate) fn json<T: serde::Serialize + ?Sized>(value: &T) -> RawJson {
    RawJson::of(value).unwrap_or_else(|_| RawJson::empty_object())
}
