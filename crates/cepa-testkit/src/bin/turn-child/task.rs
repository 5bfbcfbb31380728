//! What a child is told on its command line, and what it says on its standard output: one line of JSON each.
//!
//! The tests that start children include this file too.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::program::Program;

/// Everything a child is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    /// The SQLite file.
    pub(crate) database: PathBuf,
    /// The file in which tools note that they ran.
    pub(crate) ran: PathBuf,
    /// What the model says and which tools it calls.
    pub(crate) program: Program,
    /// Where everything that is chosen is derived from.
    pub(crate) seed: u64,
    /// What to do.
    pub(crate) what: What,
    /// Where to die, if anywhere.
    pub(crate) kill: Option<Kill>,
    /// Whether replies are streamed.
    pub(crate) streamed: bool,
    /// Whether calls can wait for a person.
    pub(crate) pausing: bool,
    /// Whether a new message is refused while calls wait; else it cancels them.
    pub(crate) refuse: bool,
    /// How long a lease lasts.
    pub(crate) lease_ms: u64,
    /// How long to wait for one.
    pub(crate) lease_wait_ms: u64,
    /// How long the model and each tool take.
    pub(crate) pace_ms: u64,
}

/// What a child does.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum What {
    /// One message in one conversation: also how a conversation is touched after a crash.
    Chat {
        /// The conversation.
        conversation: String,
        /// The message.
        text: String,
    },
    /// Drives what a crash left behind in this conversation.
    Recover {
        /// The conversation.
        conversation: String,
    },
    /// Drives what crashes left behind anywhere.
    Sweep,
    /// Decides about everything that waits in the conversation, until nothing does.
    Decide {
        /// The conversation.
        conversation: String,
    },
    /// Many messages, one after another, each in the next of these conversations.
    Write {
        /// The conversations, in this child's order.
        conversations: Vec<String>,
        /// How many messages.
        messages: usize,
        /// What its messages begin with.
        name: String,
    },
}

/// A death at a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kill {
    /// At which write, from 0.
    pub(crate) write: usize,
    /// On which side of it.
    pub(crate) when: When,
}

/// On which side of a write a child dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum When {
    /// The store has not been asked.
    Before,
    /// The store has answered that it has it.
    After,
}

/// What a child says. Once it has said something, that must stay true whatever happens to the child.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "snake_case")]
pub(crate) enum Said {
    /// It begins.
    Ready,
    /// A call has this result.
    Finished {
        /// The call's id.
        call: String,
        /// The status, as the store has it.
        status: String,
    },
    /// A pause is decided.
    Decided {
        /// The pause.
        pause: String,
        /// The pause's state.
        state: String,
    },
    /// A turn is over, or waits.
    Done {
        /// The message that opened it, where this child sent it.
        input: Option<String>,
        /// The turn.
        turn: String,
        /// How it stands.
        status: String,
        /// The answer.
        text: String,
        /// How long it waited for the conversation: until the first model call.
        wait_us: u64,
        /// How long it took, this wait included.
        took_us: u64,
    },
    /// A turn failed.
    Failed {
        /// The message, where this child sent one.
        input: Option<String>,
        /// The error's kind.
        kind: String,
        /// The error's code, if it has one.
        code: Option<String>,
        /// The error.
        message: String,
    },
    /// The store could not be written.
    WriteFailed {
        /// Which write it was, from 0.
        number: usize,
        /// Which kind of write.
        method: String,
    },
    /// How often the store was written to.
    Writes {
        /// How often.
        writes: usize,
    },
}
