//! How the messages of Anthropic's wire follow on each other: roles in turn, uses and results, thinking.

use serde_json::Value;

use super::{
    super::{
        Report,
        shape::{first_repeated, text_of},
    },
    blocks, is_thinking, rules,
};

/// Rules about the list as a whole.
pub(super) fn check(report: &mut Report, messages: &[Value]) {
    alternate(report, messages);
    pairing(report, messages);
    let last = messages.last().map_or("", |last| text_of(last, "role"));
    // A reply that is begun for the model ("prefill") is refused by newer models, and never ours.
    if last != "user" {
        report.add(rules::LAST_USER, "body.messages", format!("the last message is of role `{last}`"));
    }
    let ids: Vec<&str> = messages.iter().flat_map(uses).collect();
    // "messages: `tool_use` ids must be unique"
    if let Some(id) = first_repeated(&ids) {
        report.add(rules::IDS_UNIQUE, "body.messages", format!("two uses have the id `{id}`"));
    }
}

/// "The first message must use the user role"; roles in a row are joined by the server, but no longer by gateways.
fn alternate(report: &mut Report, messages: &[Value]) {
    let mut expected = "user";
    for (index, message) in messages.iter().enumerate() {
        let role = text_of(message, "role");
        // Another role is another rule's.
        if role != expected && matches!(role, "user" | "assistant") {
            report.add(
                rules::ALTERNATE,
                format!("body.messages[{index}]"),
                format!("`{role}` where `{expected}` is due"),
            );
        }
        expected = if role == "user" { "assistant" } else { "user" };
    }
}

/// "Each `tool_use` block must have a corresponding `tool_result` block in the next message", "unexpected `tool_use_id` found
/// in `tool_result` blocks", and in the user message "the tool_result blocks must come first".
fn pairing(report: &mut Report, messages: &[Value]) {
    let mut open: Vec<&str> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let at = format!("body.messages[{index}]");
        let mut other_before = false;
        for block in blocks(message) {
            if text_of(block, "type") != "tool_result" {
                other_before = true;
                continue;
            }
            let id = text_of(block, "tool_use_id");
            match open.iter().position(|call| *call == id) {
                Some(place) => drop(open.remove(place)),
                None => {
                    report.add(rules::ANSWERS, &at, format!("the result `{id}` answers no use of the message before"))
                }
            }
            if other_before {
                report.add(rules::RESULTS_FIRST, &at, format!("the result `{id}` stands behind other content"));
            }
        }
        unanswered(report, &open, &at);
        open = uses(message).collect();
    }
    unanswered(report, &open, "the end of body.messages");
}

fn unanswered(report: &mut Report, open: &[&str], at: &str) {
    if !open.is_empty() {
        report.add(rules::ANSWERED, at, format!("the uses {open:?} are not answered here"));
    }
}

fn uses(message: &Value) -> impl Iterator<Item = &str> {
    blocks(message).iter().filter(|block| text_of(block, "type") == "tool_use").map(|block| text_of(block, "id"))
}

/// "When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of
/// `tool_use` and `tool_result` blocks)": while results are sent back, the reply that began the turn starts with its thinking.
pub(super) fn starts_with_thinking(report: &mut Report, messages: &[Value]) {
    let is_results = |message: &Value| blocks(message).iter().any(|block| text_of(block, "type") == "tool_result");
    if !messages.last().is_some_and(is_results) {
        return;
    }
    let start = messages.iter().rposition(|message| text_of(message, "role") == "user" && !is_results(message));
    let first = start.map_or(0, |start| start + 1);
    if let Some(message) = messages.get(first).filter(|message| !blocks(message).first().is_some_and(is_thinking)) {
        let kind = blocks(message).first().map_or("", |block| text_of(block, "type"));
        let what = format!("thinking is on and the turn in progress begins with `{kind}`");
        report.add(rules::THINKING_FIRST, format!("body.messages[{first}]"), what);
    }
}
