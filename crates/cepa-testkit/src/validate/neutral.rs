//! Judge of neutral messages in the form in which they are stored and reported.

pub mod rules;

use serde_json::Value;

use super::{
    Report, Violation,
    shape::{list, text_of},
};

/// Whether each batch of calls is followed at once by exactly its results, in call order, and no other result exists
/// (`hist.paired`); and whether the first message that is not a system message is the user's (`hist.starts_user`).
pub fn validate(messages: &[Value]) -> Vec<Violation> {
    let mut report = Report::default();
    paired(&mut report, messages);
    let first = messages.iter().find(|message| text_of(message, "role") != "system");
    if let Some(first) = first.filter(|first| text_of(first, "role") != "user") {
        report.add(rules::STARTS_USER, "messages", format!("the first message is {}", text_of(first, "role")));
    }
    report.0
}

fn paired(report: &mut Report, messages: &[Value]) {
    let mut open: Vec<&str> = Vec::new();
    let mut behind_calls = false;
    for (index, message) in messages.iter().enumerate() {
        let at = format!("messages[{index}]");
        if text_of(message, "role") == "tool" {
            let id = text_of(message, "tool_call_id");
            match open.first() {
                Some(next) if *next == id => drop(open.remove(0)),
                Some(next) if behind_calls => {
                    report.add(rules::ANSWERED, at, format!("`{next}` is due, `{id}` is there"))
                }
                _ => report.add(rules::ANSWERS, at, format!("the result `{id}` answers no call")),
            }
            continue;
        }
        unanswered(report, &open, &at);
        open =
            message.as_object().map_or(&[][..], |m| list(m, "tool_calls")).iter().map(|c| text_of(c, "id")).collect();
        behind_calls = !open.is_empty();
    }
    unanswered(report, &open, "the end");
}

fn unanswered(report: &mut Report, open: &[&str], at: &str) {
    if !open.is_empty() {
        report.add(rules::ANSWERED, at, format!("the calls {open:?} are not answered before it"));
    }
}

#[cfg(test)]
#[path = "neutral_tests.rs"]
mod tests;
