//! What a program is: settings of an agent, and steps that people, models, crashes and clocks take.
//!
//! `{:?}` of a program is the code that makes it: what the shrinker found can be put into `found.rs` as it is printed.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A list that is printed as the code that makes it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<T: fmt::Debug> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("list(&")?;
        f.debug_list().entries(&self.0).finish()?;
        f.write_str(")")
    }
}

/// The list with these items.
pub(crate) fn list<T: Clone>(items: &[T]) -> List<T> {
    List(items.to_vec())
}

/// A program.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Program {
    pub(crate) setup: Setup,
    pub(crate) steps: Vec<Step>,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Program {{\n    setup: {:?},\n    steps: vec![", self.setup)?;
        for step in &self.steps {
            writeln!(f, "        {step:?},")?;
        }
        f.write_str("    ],\n}")
    }
}

/// How both agents are built.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) pausing: bool,
    pub(crate) run_others: bool,
    pub(crate) while_paused: Waiting,
    /// In seconds.
    pub(crate) expires: Option<u16>,
    /// In messages.
    pub(crate) window: Option<u8>,
    pub(crate) max_batches: u8,
    /// Whether a used-up turn asks for an answer without tools.
    pub(crate) finishes: bool,
    /// Whether a step that crashes is run by a process of its own, which is killed.
    pub(crate) processes: bool,
}

/// What a new message does to calls that wait.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Waiting {
    Cancel,
    Queue,
    Refuse,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Step {
    /// One of the two does something, and it ends somehow.
    Do(Who, Op, Ending),
    /// Both do something at once.
    Both(Op, Op),
    /// The first is stopped at its n-th write as a laptop that is shut; a minute later the second does something; then
    /// the first goes on as if nothing had been.
    Asleep(Op, u8, Op),
    /// Its agent and its store are closed and opened again.
    Restart(Who),
    /// The clocks of all go forward or back, in seconds.
    Jump(i32),
}

/// Whose agent: two processes on one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Who {
    A,
    B,
}

/// Where something is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Talk {
    C,
    D,
    /// Without a conversation.
    Nowhere,
}

/// What somebody does with an agent, and what the model says to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Op {
    Chat(Talk, How, List<Reply>),
    Decide(Talk, Pick, What, List<Reply>),
    Recover(Talk, List<Reply>),
    Sweep(List<Reply>),
    Reset(Talk),
}

impl Op {
    pub(crate) fn replies(&self) -> &[Reply] {
        match self {
            Self::Chat(_, _, replies)
            | Self::Decide(_, _, _, replies)
            | Self::Recover(_, replies)
            | Self::Sweep(replies) => &replies.0,
            Self::Reset(_) => &[],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum How {
    Whole,
    Streamed,
}

/// How a step ends. A moment is one of those at which the world looks: a write or a model call or a body, begun or over.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Ending {
    /// By itself.
    Runs,
    /// Somebody cancels at this moment.
    Cancelled(u8),
    /// Its future is dropped at this moment.
    Dropped(u8),
    /// Its process dies at this write, before or after it is done.
    Dies(u8, Write),
    /// This write fails.
    WriteFails(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Write {
    Lost,
    Done,
}

/// Which pause is decided.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Pick {
    /// One that waits.
    Waiting(u8),
    /// One that waited.
    Old(u8),
    /// One of another conversation.
    Foreign(u8),
    MadeUp,
    /// A blanket decision.
    All,
}

/// What is decided.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum What {
    Approve,
    Edit(u16),
    /// With arguments that the tool does not take.
    EditWrong,
    Reject,
    RejectWhy,
    Answer,
    /// What was decided before, if anything was.
    Same,
}

/// What the model says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Reply {
    Says,
    Empty,
    Calls(Words, List<Call>),
    /// Cut in the middle of its calls.
    Cut(List<Call>),
    PauseTurn,
    /// The call fails.
    Down,
    /// Some words, and then nothing more.
    Stuck,
}

/// Whether a reply with calls says something too.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Words {
    Some,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Call(pub(crate) Name, pub(crate) Given, pub(crate) Id);

/// The tools. What each is and does says `tools.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Name {
    Plain,
    Idempotent,
    ReadOnly,
    Concurrent,
    Sensitive,
    SensitivePut,
    Stumbles,
    Slips,
    Flaky,
    Broke,
    Direct,
    Long,
    Hangs,
    Panics,
    Unheard,
}

/// The arguments of a call. Those that are an object have a number that no other call has.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Given {
    Number,
    Spaced,
    Blank,
    WrongType,
    Broken,
}

/// What the provider calls a call: its own place, or what another is called too.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Id {
    Fresh,
    Again,
    Odd,
}
