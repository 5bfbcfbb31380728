//! The blocks of a reply as one neutral message.

use cepa_core::{AssistantMessage, ChatResponse, Content, FinishReason, Origin, Part, RawJson, ToolCall, Usage};

use super::{
    layout::{self, Slot},
    received::Piece,
};

/// The response of these blocks.
pub(super) fn response(
    pieces: Vec<Piece>,
    stop_reason: Option<&str>,
    usage: Option<Usage>,
    origin: &Origin,
) -> ChatResponse {
    let mut message = AssistantMessage { origin: Some(origin.clone()), usage, ..AssistantMessage::default() };
    let (mut parts, mut slots) = (Vec::new(), Vec::new());
    // A server's call and its result only go back together.
    let whole = !pieces.iter().any(|piece| matches!(piece, Piece::Lost));
    for piece in pieces {
        match piece {
            Piece::Text { text, .. } if text.is_empty() => {}
            Piece::Text { text, citations } => {
                slots.push(Slot::Text { length: text.len(), citations });
                parts.push(Part::Text(text));
            }
            Piece::Thinking { text, block } => {
                slots.extend(block.map(Slot::Opaque));
                if !text.is_empty() {
                    parts.push(Part::Reasoning(text));
                }
            }
            Piece::Call { id, name, args, extra } => {
                slots.push(Slot::Call { index: message.tool_calls.len(), extra });
                message.tool_calls.push(ToolCall::new(id, name, args));
            }
            Piece::Opaque(block) if whole || !block.is_tool() => slots.push(Slot::Opaque(block)),
            Piece::Opaque(_) | Piece::Lost => {}
        }
    }
    message.content = content(parts);
    message.replay = layout::keep(slots, origin);
    let finish = finish(stop_reason, !message.tool_calls.is_empty());
    message.finish_reason = Some(finish.unwrap_or(FinishReason::Other));
    if let (None, Some(Ok(word))) = (finish, stop_reason.map(RawJson::of)) {
        message.extra.insert("stop_reason".to_owned(), word);
    }
    ChatResponse::new(message)
}

/// Text alone is a text; blocks of text follow on each other without anything between.
fn content(parts: Vec<Part>) -> Option<Content> {
    if parts.is_empty() {
        return None;
    }
    let content = Content::Parts(parts);
    let has_reasoning = !content.reasoning().is_empty();
    Some(if has_reasoning { content } else { Content::Text(content.text().into_owned()) })
}

/// Whether a later reason may take the place of this one: a reply that was cut stays cut.
pub(super) fn is_replaceable(stop_reason: &str) -> bool {
    matches!(finish(Some(stop_reason), false), Some(FinishReason::Stop))
}

/// <https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons>; `None` for one that is not known, with calls
/// too: nobody said that they are to run.
fn finish(stop_reason: Option<&str>, has_calls: bool) -> Option<FinishReason> {
    match stop_reason {
        Some("max_tokens" | "model_context_window_exceeded") => Some(FinishReason::Length),
        Some("refusal") => Some(FinishReason::Refusal),
        Some("pause_turn") => Some(FinishReason::PauseTurn),
        Some("end_turn" | "stop_sequence" | "tool_use") if has_calls => Some(FinishReason::ToolCalls),
        Some("end_turn" | "stop_sequence" | "tool_use") => Some(FinishReason::Stop),
        Some(_) | None => None,
    }
}
