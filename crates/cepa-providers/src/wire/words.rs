//! Words for the model where a message has none.

use cepa_core::ToolStatus;

/// Stands before a history that begins with the assistant.
pub(super) const START: &str = "(start of the conversation)";
/// Stands for a user message in which there is nothing.
pub(super) const BLANK: &str = "(empty message)";
/// Stands behind an assistant message that nobody answered.
pub(super) const GO_ON: &str = "Continue.";

/// What a result without a text says: an error without a word would read as a result. `None` for one that went well.
pub(super) fn without_words(status: ToolStatus) -> Option<&'static str> {
    match status {
        ToolStatus::Ok => None,
        ToolStatus::Error => Some("The call failed."),
        ToolStatus::Rejected => Some("The call was rejected and did not run."),
        ToolStatus::Cancelled => Some("The call was cancelled and did not run."),
        ToolStatus::Expired => Some("Nobody decided in time; the call did not run."),
        ToolStatus::Unknown => Some("It is not known whether the call ran."),
    }
}
