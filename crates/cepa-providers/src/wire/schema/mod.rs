//! Schemas of tools, adapted to what a provider takes. What cannot be kept as a rule is kept in words.

pub mod gemini;
mod members;
pub mod openai_strict;

pub use members::Members;
