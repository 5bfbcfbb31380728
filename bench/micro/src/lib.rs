//! What the single parts are given to do: conversations, the answers of models, dialects. Public API only.

pub mod answers;
pub mod talks;
pub mod wires;
