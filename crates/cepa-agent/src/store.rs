//! The rows that a turn leaves behind, and the contract of every store that keeps them.

use std::{collections::HashSet, sync::Arc};

use cepa_core::{Args, BoxFuture, Error, RawJson, ToolStatus};
use serde::{Deserialize, Serialize};

pub use crate::commit::{Commit, SharedEntry, TurnChange, TurnNote, carried_json};
use crate::{
    audit::AuditEntry,
    memory::ChatMemory,
    pause::{Decision, Pause},
};

/// Where a turn stands. Kept as a hint: the phase is derived from the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnState {
    /// Somebody drives it, or somebody did and is gone.
    Running,
    /// It waits for decisions.
    Paused,
    /// It ended with an answer.
    Completed,
    /// It was cancelled.
    Cancelled,
    /// It used up its batches.
    Exhausted,
    /// It ended with an error.
    Failed,
}

impl TurnState {
    /// Whether the turn is not over.
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Running | Self::Paused)
    }

    /// The word in JSON and SQL.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Exhausted => "exhausted",
            Self::Failed => "failed",
        }
    }

    /// The value of a word in SQL.
    pub fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "running" => Self::Running,
            "paused" => Self::Paused,
            "completed" => Self::Completed,
            "cancelled" => Self::Cancelled,
            "exhausted" => Self::Exhausted,
            "failed" => Self::Failed,
            _ => return None,
        })
    }
}

/// A row of `turns`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnRow {
    /// The turn's id.
    pub id: String,
    /// The conversation's id; for an ephemeral turn the turn's own id.
    pub conversation: String,
    /// Where it stands.
    pub state: TurnState,
    /// Whether nothing of it stays when it is over.
    pub ephemeral: bool,
    /// What the person said: a JSON array of messages.
    pub input: RawJson,
    /// The transcript that an ephemeral turn carries itself: a JSON array of messages.
    pub carried: Option<RawJson>,
    /// Settings and counters ([`TurnData`](crate::turn::TurnData)).
    pub data: RawJson,
    /// When it began, in milliseconds since 1970.
    pub created: i64,
    /// When it last changed.
    pub updated: i64,
}

/// How far a call has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// Its verdict is known.
    Planned,
    /// Its body was entered.
    Started,
    /// Its result is known.
    Finished,
    /// It started and nobody knows how it ended.
    Unknown,
}

impl CallState {
    /// The word in SQL.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Started => "started",
            Self::Finished => "finished",
            Self::Unknown => "unknown",
        }
    }
    /// The value of a word in SQL.
    pub fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "planned" => Self::Planned,
            "started" => Self::Started,
            "finished" => Self::Finished,
            "unknown" => Self::Unknown,
            _ => return None,
        })
    }
}

/// What was decided about a call before it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// It runs.
    Proceed,
    /// A person decides.
    Pause,
    /// The gate refused it.
    Reject,
    /// The gate answered in its place.
    Reply,
    /// It cannot run (unknown tool, broken arguments, a cut reply).
    Refuse,
}

impl VerdictKind {
    /// The word in SQL.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Proceed => "proceed",
            Self::Pause => "pause",
            Self::Reject => "reject",
            Self::Reply => "reply",
            Self::Refuse => "refuse",
        }
    }
    /// The value of a word in SQL.
    pub fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "proceed" => Self::Proceed,
            "pause" => Self::Pause,
            "reject" => Self::Reject,
            "reply" => Self::Reply,
            "refuse" => Self::Refuse,
            _ => return None,
        })
    }
}

/// The result of a call as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallResult {
    /// How it ended.
    #[serde(with = "crate::words::status")]
    pub status: ToolStatus,
    /// What the model reads: the JSON of a message's `content`.
    pub content: RawJson,
    /// The full content where `content` was cut for the model.
    pub full: Option<RawJson>,
    /// What it wrote to the context: a JSON object.
    pub writes: Option<RawJson>,
    /// The class of a failure: semantic, transient, environment.
    pub failure: Option<String>,
}

/// A row of `calls`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallRow {
    /// The batch, from 0.
    pub batch: u32,
    /// The call's place in the batch, from 0.
    pub idx: u32,
    /// The call's id in its message.
    pub call_id: Arc<str>,
    /// The tool's name.
    pub tool: Arc<str>,
    /// The hash of the tool's schema when the verdict was made; empty for an unknown tool.
    pub schema_hash: Arc<str>,
    /// The arguments as the model wrote them.
    #[serde(with = "crate::words::args")]
    pub args: Args,
    /// The verdict.
    pub verdict: VerdictKind,
    /// The gate's reason or reply, if any.
    pub reason: Option<String>,
    /// How far it has come.
    pub state: CallState,
    /// How often its body was entered.
    pub attempt: u32,
    /// The arguments that run: normalised by the tool, or edited by a person.
    pub executed_args: Option<RawJson>,
    /// Its result.
    pub result: Option<CallResult>,
    /// When its body was entered, in milliseconds since 1970.
    pub started: Option<i64>,
    /// When its result was known.
    pub finished: Option<i64>,
}

/// The name of a call inside a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CallKey {
    /// The batch, from 0.
    pub batch: u32,
    /// The call's place in the batch, from 0.
    pub idx: u32,
}

/// A change of one call.
#[derive(Clone, Debug, PartialEq)]
pub enum CallChange {
    /// The call with its verdict; replaces a row of the same key that has not started.
    Planned(CallRow),
    /// The body is about to be entered.
    Started {
        /// Which call.
        key: CallKey,
        /// How often, this time included.
        attempt: u32,
        /// The arguments that run.
        executed_args: Option<RawJson>,
        /// When.
        at: i64,
    },
    /// The result is known.
    Finished {
        /// Which call.
        key: CallKey,
        /// Its result.
        result: CallResult,
        /// When.
        at: i64,
    },
    /// Nobody knows how it ended.
    Unknown {
        /// Which call.
        key: CallKey,
        /// When that was found.
        at: i64,
    },
}

/// A turn with all that it left behind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredTurn {
    /// Its row.
    pub row: TurnRow,
    /// Its calls by batch and place.
    pub calls: Vec<CallRow>,
    /// Its pauses, in order of batch and place, decided ones included.
    pub pauses: Vec<Pause>,
}

/// The right to drive the turns of a conversation: whoever holds a newer token has taken it over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Rises with each holder; a write with an older token is refused.
    pub token: u64,
    /// Until when it is held, in milliseconds since 1970.
    pub until: i64,
}

/// A conversation that was taken for a new turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The lease.
    pub lease: Lease,
    /// Whether the turn has begun; else another one is live.
    pub begun: bool,
}

/// A memory that also keeps turns: what is needed to survive a crash and to decide from elsewhere.
///
/// Where a call says `token`, a token that is not the conversation's newest is refused with `busy`, and nothing is
/// written.
pub trait TurnStore: ChatMemory {
    /// What two handles of one store in one process have in common (a file's path), so that turns on one conversation
    /// wait for each other in a fair queue. `None`: every handle counts as a store of its own.
    fn identity(&self) -> Option<String> {
        None
    }

    /// Takes the conversation for a holder, if it is free, expired, or already his; the token rises unless he held it.
    ///
    /// # Errors
    /// `busy` while another holds it; the message says until when.
    fn lease<'a>(
        &'a self,
        conversation: &'a str,
        holder: &'a str,
        now: i64,
        until: i64,
    ) -> BoxFuture<'a, Result<Lease, Error>>;

    /// Gives the conversation back, if the token is still the newest.
    ///
    /// # Errors
    /// `store` if it cannot be written.
    fn release<'a>(&'a self, conversation: &'a str, token: u64) -> BoxFuture<'a, Result<(), Error>>;

    /// Takes the conversation as [`TurnStore::lease`] does and, if no turn in it is live, begins this one, in one
    /// transaction.
    ///
    /// # Errors
    /// As [`TurnStore::lease`].
    fn open_turn<'a>(
        &'a self,
        turn: TurnRow,
        holder: &'a str,
        now: i64,
        until: i64,
    ) -> BoxFuture<'a, Result<Opened, Error>> {
        Box::pin(async move {
            let conversation = turn.conversation.clone();
            let lease = self.lease(&conversation, holder, now, until).await?;
            let begun = async {
                let begun = self.live_turns(Some(&conversation)).await?.is_empty();
                if begun {
                    self.begin(turn, lease.token).await?;
                }
                Ok(begun)
            };
            match begun.await {
                Ok(begun) => Ok(Opened { lease, begun }),
                Err(error) => {
                    // It is taken with the turn or not at all. If that fails too, the lease runs out by itself.
                    let _ = self.release(&conversation, lease.token).await;
                    Err(error)
                }
            }
        })
    }

    /// Writes the row of a new turn, before its first model call.
    ///
    /// # Errors
    /// `busy` for an old token; `store` if it cannot be written.
    fn begin<'a>(&'a self, turn: TurnRow, token: u64) -> BoxFuture<'a, Result<(), Error>>;

    /// Writes one step of a turn. A step that ends an ephemeral turn removes it, as [`TurnStore::forget`] does.
    ///
    /// # Errors
    /// `busy` for an old token; `store` if it cannot be written.
    fn commit<'a>(&'a self, turn: &'a str, token: u64, commit: Commit) -> BoxFuture<'a, Result<(), Error>>;

    /// Removes an ephemeral turn with all that it left behind.
    ///
    /// # Errors
    /// `store` if it cannot be written.
    fn forget<'a>(&'a self, turn: &'a str) -> BoxFuture<'a, Result<(), Error>>;

    /// A turn with its calls and pauses.
    ///
    /// # Errors
    /// `corrupt` if a row does not parse; `store` if it cannot be read.
    fn turn<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<StoredTurn>, Error>>;

    /// The ids of the live turns of a conversation, or of all, oldest first. Each with whether it is paused.
    ///
    /// # Errors
    /// `store` if it cannot be read.
    fn live_turns<'a>(&'a self, conversation: Option<&'a str>) -> BoxFuture<'a, Result<Vec<LiveTurn>, Error>>;

    /// The live turns, of all conversations, that could go on without a person: nobody is waited for, or for too long.
    /// Somebody may be driving them now.
    ///
    /// # Errors
    /// `store` if the store cannot be read.
    fn interrupted(&self, now: i64) -> BoxFuture<'_, Result<Vec<LiveTurn>, Error>> {
        Box::pin(async move {
            let mut live = self.live_turns(None).await?;
            if live.iter().any(|turn| turn.paused) {
                let pending = self.pending(None).await?;
                let expired: HashSet<&str> =
                    pending.iter().filter(|pause| pause.is_expired(now)).map(|pause| &*pause.turn).collect();
                live.retain(|turn| !turn.paused || expired.contains(&*turn.id));
            }
            Ok(live)
        })
    }

    /// The pauses that wait for a decision, or were not found to be expired yet, of a conversation or of all, oldest first.
    ///
    /// # Errors
    /// `store` if it cannot be read.
    fn pending<'a>(&'a self, conversation: Option<&'a str>) -> BoxFuture<'a, Result<Vec<Pause>, Error>>;

    /// A pause in any state.
    ///
    /// # Errors
    /// `store` if it cannot be read.
    fn pause<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Pause>, Error>>;

    /// Decides a pause if nobody has (compare-and-set), and returns it as it then is. A pause that already has this
    /// very decision is returned as it is.
    ///
    /// # Errors
    /// `not_paused` if there is no such pause or it was cancelled; `already_decided` if it was decided differently;
    /// `expired` past its time (the pause is marked so).
    fn decide<'a>(
        &'a self,
        pause: &'a str,
        decision: Decision,
        actor: &'a str,
        now: i64,
    ) -> BoxFuture<'a, Result<Pause, Error>>;

    /// The audit trail of a conversation, or of all: at most `limit` entries that come after the place `after` (0: from
    /// the beginning), oldest first. Clearing a conversation leaves its trail.
    ///
    /// # Errors
    /// `store` if the store cannot be read.
    fn audit<'a>(
        &'a self,
        conversation: Option<&'a str>,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<AuditEntry>, Error>>;

    /// The full text of a result that was cut for the model, by the id of its message.
    ///
    /// # Errors
    /// `store` if it cannot be read.
    fn full_result<'a>(&'a self, message: &'a str) -> BoxFuture<'a, Result<Option<RawJson>, Error>>;
}

/// A turn that is not over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveTurn {
    /// Its id.
    pub id: String,
    /// Its conversation.
    pub conversation: String,
    /// Whether it waits for decisions.
    pub paused: bool,
}
