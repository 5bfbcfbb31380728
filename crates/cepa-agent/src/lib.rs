//! The agent of cepa: the turn and its driver, the gate, pauses, memory.

mod event;
mod gate;
pub mod ids;
mod in_memory;
pub mod memory;
pub mod pause;
mod paused;
mod result;
pub mod rules;
pub mod store;
mod texts;
pub mod turn;
mod words;

pub use in_memory::{Bare, InMemory};
pub use memory::{ChatMemory, ConversationInfo, CorruptRow, Loaded, Version, load_whole};
pub use pause::{Decision, Pause, PauseKind, PauseState};
pub use store::{Commit, Lease, LiveTurn, StoredTurn, TurnRow, TurnState, TurnStore};
pub use event::{AgentEvent, Listeners};
pub use gate::{Gate, GateCall, Verdict, gate_fn};
pub use paused::PausedState;
pub use result::{Record, TurnError, TurnResult, TurnStatus};
pub use texts::Texts;
