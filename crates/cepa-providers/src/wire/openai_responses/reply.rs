//! The neutral reply from its items.

use cepa_core::{
    AssistantMessage, ChatResponse, Content, Error, ErrorKind, Extra, FinishReason, Origin, Part, ToolCall, Usage,
};

use super::{
    item::Item,
    layout::{self, MessageSlot, Opaque, Slot, TextKind, TextSlot},
};

/// Parts the text of one message from the text of the next.
pub(super) const GAP: &str = "\n\n";

/// How a reply ended.
#[derive(Debug, Default)]
pub(super) struct Ending {
    pub(super) status: Option<String>,
    /// Why it is incomplete.
    pub(super) reason: Option<String>,
    pub(super) usage: Option<Usage>,
}

/// An item that is complete.
pub(super) struct Received {
    pub(super) id: Option<String>,
    pub(super) call_id: String,
    pub(super) item: Item,
}

/// The response.
///
/// # Errors
/// If the status says that the reply was not finished.
pub(super) fn response(items: Vec<Received>, ending: Ending, origin: &Origin) -> Result<ChatResponse, Error> {
    let cut = cut_by(&ending, origin)?;
    let mut message = AssistantMessage { usage: ending.usage, ..AssistantMessage::default() };
    let (mut parts, mut slots, mut refused) = (Vec::new(), Vec::new(), false);
    for Received { id, call_id, item } in items {
        match item {
            Item::Message { parts: said, extra } => {
                let text: String = said.iter().map(|part| part.text.as_str()).collect();
                if text.is_empty() {
                    continue;
                }
                refused |= said.iter().any(|part| part.kind == TextKind::Refusal && !part.text.is_empty());
                let gap = if parts.iter().any(|part| matches!(part, Part::Text(_))) { GAP } else { "" };
                parts.push(Part::Text(format!("{gap}{text}")));
                // A blank one is not sent back, so nothing may hold on to it.
                if !text.trim().is_empty() {
                    let texts = said.into_iter().map(|part| TextSlot {
                        length: part.text.len(),
                        kind: part.kind,
                        annotations: part.annotations,
                    });
                    slots.push(Slot::Message(MessageSlot { id, gap: gap.len(), parts: texts.collect(), extra }));
                }
            }
            Item::Call(call) => {
                let args = call.decoded();
                slots.push(Slot::Call { id, index: message.tool_calls.len(), extra: call.extra });
                message.tool_calls.push(ToolCall { id: call_id, name: call.name, args, extra: Extra::new() });
            }
            Item::Reasoning { raw, text } => {
                slots.extend(raw.and_then(Opaque::new).map(Slot::Opaque));
                if !text.is_empty() {
                    parts.push(Part::Reasoning(text));
                }
            }
            Item::Opaque(raw, _) => slots.extend(Opaque::new(raw).map(Slot::Opaque)),
        }
    }
    message.content = content(parts);
    message.replay = layout::keep(slots, origin);
    message.origin = Some(origin.clone());
    message.finish_reason = Some(match cut {
        Some(cut) => cut,
        None if refused => FinishReason::Refusal,
        None if !message.tool_calls.is_empty() => FinishReason::ToolCalls,
        None => FinishReason::Stop,
    });
    Ok(ChatResponse::new(message))
}

/// Text alone is a text.
fn content(parts: Vec<Part>) -> Option<Content> {
    if parts.is_empty() {
        return None;
    }
    let has_reasoning = parts.iter().any(|part| matches!(part, Part::Reasoning(_)));
    let content = Content::Parts(parts);
    Some(if has_reasoning { content } else { Content::Text(content.text().into_owned()) })
}

/// What cut the reply; `None` if nothing did.
fn cut_by(ending: &Ending, origin: &Origin) -> Result<Option<FinishReason>, Error> {
    let provider = &origin.provider;
    let failed = |kind, what: &str| {
        let message = format!("{provider} ended the reply before it was complete: {what}");
        Err(Error::new(kind, message).with_provider(provider.clone()))
    };
    match ending.status.as_deref() {
        Some("incomplete") => Ok(Some(match ending.reason.as_deref() {
            Some("max_output_tokens" | "max_tokens" | "length") => FinishReason::Length,
            Some("content_filter") => FinishReason::ContentFilter,
            Some(_) | None => FinishReason::Other,
        })),
        Some("failed") => failed(ErrorKind::Server, "an error that it does not explain"),
        Some("cancelled") => failed(ErrorKind::Provider, "it was cancelled there"),
        Some("queued" | "in_progress") => {
            failed(ErrorKind::Provider, "it goes on in the background, which is not supported: leave `background` out")
        }
        Some("completed") | None => Ok(None),
        // A word that is not known does not say that all is well.
        Some(_) => Ok(Some(FinishReason::Other)),
    }
}
