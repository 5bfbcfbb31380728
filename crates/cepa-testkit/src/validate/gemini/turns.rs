//! How the contents of Gemini's wire follow on each other: roles in turn, calls and responses, signatures.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{
    super::{
        Report,
        shape::{first_repeated, list, text, text_of},
    },
    Model, rules,
};

/// Rules about the list as a whole.
pub(super) fn check(report: &mut Report, contents: &[Value], model: Model) {
    alternate(report, contents);
    pairing(report, contents);
    let ids: Vec<&str> =
        contents.iter().flat_map(|content| of(content, "functionCall")).filter_map(|call| id(call)).collect();
    if let Some(id) = first_repeated(&ids) {
        report.add(rules::IDS_UNIQUE, "body.contents", format!("two calls have the id `{id}`"));
    }
    if model == Model::From3 {
        signatures(report, contents);
    }
}

/// "Please ensure that multiturn requests alternate between user and model", "ensure that function call turn comes immediately
/// after a user turn or after a function response turn"; the last one is the user's.
fn alternate(report: &mut Report, contents: &[Value]) {
    let mut expected = "user";
    for (index, content) in contents.iter().enumerate() {
        let role = text_of(content, "role");
        if role != expected {
            report.add(
                rules::ALTERNATE,
                format!("body.contents[{index}]"),
                format!("`{role}` where `{expected}` is due"),
            );
        }
        expected = if role == "user" { "model" } else { "user" };
    }
    let last = contents.last().map_or("", |last| text_of(last, "role"));
    if last != "user" {
        report.add(rules::LAST_USER, "body.contents", format!("the last content is of role `{last}`"));
    }
}

/// "The number of function response parts is equal to the number of function call parts of the function call turn", "function
/// response turn comes immediately after a function call turn". Responses in the order of the calls, so that calls without ids
/// have theirs; and nothing before them.
fn pairing(report: &mut Report, contents: &[Value]) {
    let mut open: Vec<&Map<String, Value>> = Vec::new();
    for (index, content) in contents.iter().enumerate() {
        let at = format!("body.contents[{index}]");
        let responses: Vec<_> = of(content, "functionResponse").collect();
        let calls: Vec<_> = of(content, "functionCall").collect();
        let is_user = text_of(content, "role") == "user";
        if (is_user && !calls.is_empty()) || (!is_user && !responses.is_empty()) {
            report.add(rules::PART_ROLE, &at, "a call of the user's, or a response of the model's");
        }
        if responses.len() != open.len() {
            report.add(rules::COUNT, &at, format!("{} responses to {} calls", responses.len(), open.len()));
        }
        for (call, response) in open.iter().zip(&responses) {
            let same = |name| text(call, name) == text(response, name);
            if !same("name") || !same("id") {
                report.add(rules::SAME, &at, format!("{response:?} stands where {call:?} is to be answered"));
            }
        }
        let is_response = |part: &Value| part.get("functionResponse").is_some();
        let first_other = parts(content).iter().position(|part| !is_response(part));
        if first_other.is_some_and(|first| parts(content).iter().skip(first).any(is_response)) {
            report.add(rules::RESPONSES_FIRST, &at, "a response behind other parts");
        }
        open = calls;
    }
    if !open.is_empty() {
        report.add(rules::COUNT, "the end of body.contents", format!("{} calls without response", open.len()));
    }
}

/// "Function call is missing a thought_signature in functionCall parts": the first call of each step of the current turn has one,
/// parallel calls behind it need none. Our rule: in every turn, because the bytes of an earlier one must not change.
fn signatures(report: &mut Report, contents: &[Value]) {
    let mut known: HashMap<&str, usize> = HashMap::new();
    for (index, content) in contents.iter().enumerate() {
        let first = parts(content).iter().find(|part| part.get("functionCall").is_some());
        if first.is_some_and(|part| part.get("thoughtSignature").is_none()) {
            report.add(rules::SIGNED, format!("body.contents[{index}]"), "its first call has no thought signature");
        }
        for signature in parts(content).iter().filter_map(|part| part.get("thoughtSignature")?.as_str()) {
            // A signature belongs to one part; only the dummies are for any.
            let is_dummy =
                matches!(signature, "skip_thought_signature_validator" | "context_engineering_is_the_way_to_go");
            if !is_dummy && known.insert(signature, index).is_some() {
                report.add(rules::OWN_SIGNATURE, format!("body.contents[{index}]"), "the signature of another part");
            }
        }
    }
}

fn parts(content: &Value) -> &[Value] {
    content.as_object().map_or(&[], |content| list(content, "parts"))
}

fn of<'v>(content: &'v Value, name: &str) -> impl Iterator<Item = &'v Map<String, Value>> {
    parts(content).iter().filter_map(move |part| part.get(name)?.as_object())
}

fn id(call: &Map<String, Value>) -> Option<&str> {
    call.get("id").and_then(Value::as_str)
}
