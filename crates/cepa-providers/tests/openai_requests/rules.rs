//! What the API refuses, as rules of our own: strict, and written without the encoder's help.

use std::collections::HashSet;

use cepa_providers::wire::openai_chat::{AfterTools, Quirks, ReplayReasoning, Roles, SystemPlace};
use serde_json::Value;

/// The rules that a body breaks.
pub(crate) fn broken(body: &str, quirks: &Quirks) -> Vec<String> {
    let body: Value = match serde_json::from_str(body) {
        Ok(body) => body,
        Err(error) => return vec![format!("not JSON: {error}")],
    };
    let mut found = Vec::new();
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    if messages.is_empty() {
        found.push("no messages".to_owned());
    }
    if body["tools"].as_array().is_some_and(Vec::is_empty) {
        found.push("tools: []".to_owned());
    }
    if body.get("tools").is_none() && (body.get("tool_choice").is_some() || body.get("parallel_tool_calls").is_some()) {
        found.push("a tool choice without tools".to_owned());
    }
    let mut ids = HashSet::new();
    let mut open: Vec<String> = Vec::new();
    let mut last = "";
    let mut spoke = String::new();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        let mut complain = |what: &str| found.push(format!("message {at}: {what}: {message}"));
        let allowed: &[&str] = match role {
            "system" | "user" => &["role", "content"],
            "tool" => &["role", "content", "tool_call_id"],
            "assistant" => {
                &["role", "content", "tool_calls", "reasoning_content", "extra_content", "reasoning_details"]
            }
            _ => &[],
        };
        if message.as_object().is_none_or(|members| members.keys().any(|name| !allowed.contains(&&**name))) {
            complain("an unknown role or member");
        }
        if quirks.replay_reasoning == ReplayReasoning::Never && message.get("reasoning_content").is_some() {
            complain("reasoning that nobody asked for");
        }
        if role != "tool" && !open.is_empty() {
            complain("results are missing before it");
        }
        if role == "user" && last == "tool" && quirks.after_tools == AfterTools::Assistant {
            complain("a user behind results");
        }
        if quirks.roles == Roles::InTurn
            && matches!(
                (spoke.as_str(), role),
                ("", "assistant") | ("user" | "tool", "user") | ("assistant", "assistant")
            )
        {
            complain("roles that do not take turns");
        }
        if role == "system" && at > 0 && quirks.system == SystemPlace::Single {
            complain("a system message that is not the first");
        }
        match role {
            "tool" => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                if open.first().map(String::as_str) == Some(id) {
                    open.remove(0);
                } else {
                    complain("answers no open call, or out of order");
                }
                if !message["content"].is_string() {
                    complain("content is no text");
                }
            }
            "assistant" => {
                let calls = message.get("tool_calls").map(|calls| calls.as_array().cloned().unwrap_or_default());
                match &calls {
                    Some(calls) if calls.is_empty() => complain("tool_calls: []"),
                    None if !message["content"].is_string() => complain("neither text nor calls"),
                    Some(_) | None => {}
                }
                for call in calls.into_iter().flatten() {
                    let id = call["id"].as_str().unwrap_or_default().to_owned();
                    if !quirks.call_ids.accepts(&id) {
                        complain(&format!("the id {id:?} is not taken"));
                    }
                    if !ids.insert(id.clone()) {
                        complain(&format!("the id {id:?} again"));
                    }
                    if call["type"] != "function" || !is_name(call["function"]["name"].as_str()) {
                        complain("a call without type or legal name");
                    }
                    let args = call["function"]["arguments"].as_str().unwrap_or_default();
                    if !serde_json::from_str::<Value>(args).is_ok_and(|args| args.is_object()) {
                        complain("arguments that are no object");
                    }
                    open.push(id);
                }
            }
            "user" => match &message["content"] {
                Value::String(_) => {}
                Value::Array(parts) if !parts.is_empty() => {
                    if parts
                        .iter()
                        .any(|part| part["type"] == "text" && part["text"].as_str().is_none_or(str::is_empty))
                    {
                        complain("an empty text part");
                    }
                }
                _ => complain("content that is neither text nor parts"),
            },
            _ => {
                if message["content"].as_str().is_none_or(|text| text.trim().is_empty()) {
                    complain("a system message without words");
                }
            }
        }
        if role != "system" {
            spoke = role.to_owned();
        }
        last = match role {
            "tool" => "tool",
            _ => "",
        };
    }
    if !open.is_empty() {
        found.push(format!("results are missing at the end: {open:?}"));
    }
    found
}

fn is_name(name: Option<&str>) -> bool {
    name.is_some_and(|name| {
        (1..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
    })
}
