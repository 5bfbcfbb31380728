//! Whether every dialect can send a history.

use cepa_core::{ChatRequest, History, Message, Role, pairing};

#[allow(dead_code, reason = "the other test that has it uses all of it")]
#[path = "../wire_properties/wires.rs"]
mod wires;

use wires::Wire;

/// Whether each call has its result at its place, without healing.
pub(crate) fn paired(history: &History) -> Result<(), String> {
    pairing::validate(history).map_err(|(at, problem)| format!("message {at}: {problem:?}"))
}

/// All five dialects take it.
pub(crate) fn taken(history: &History) -> Result<(), String> {
    if history.is_empty() {
        return Ok(());
    }
    let mut messages = pairing::heal(history);
    if messages.last().is_some_and(|last| last.message.role() == Role::Assistant) {
        messages.push(Message::user("go on"));
    }
    let request = ChatRequest::new(messages);
    let wires =
        [Wire::openai("m"), Wire::strict("m"), Wire::anthropic("m"), Wire::gemini("gemini-3-a"), Wire::responses("m")];
    for wire in wires {
        let body = wire.encode(&request).map_err(|error| format!("{:?}: {error}", wire.origin()))?;
        wire.judge(&body)?;
    }
    Ok(())
}
