//! The agent of cepa: the turn and its driver, the gate, pauses, memory.

pub mod memory;
pub mod pause;
pub mod store;

pub use memory::{ChatMemory, ConversationInfo, CorruptRow, Loaded, Version, load_whole};
pub use pause::{Decision, Pause, PauseKind, PauseState};
pub use store::{Commit, Lease, LiveTurn, StoredTurn, TurnRow, TurnState, TurnStore};
