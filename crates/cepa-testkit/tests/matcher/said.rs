//! What the assistant says in a request, in the words of each wire.

use super::json::Json;

/// The text and the calls of a request's assistant.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) calls: Vec<SaidCall>,
}

/// One call.
#[derive(Debug)]
pub(crate) struct SaidCall {
    /// None where the wire can do without.
    pub(crate) id: Option<String>,
    pub(crate) name: String,
    pub(crate) args: Json,
}

/// What the assistant says in a request to this provider.
pub(crate) fn of(provider: &str, body: &Json) -> Said {
    match provider {
        "openai-responses" => responses(body),
        "gemini" => gemini(body),
        _ => messages(provider, body),
    }
}

fn word(value: &Json, name: &str) -> String {
    value.get(name).and_then(Json::text).unwrap_or_default().to_owned()
}

fn items<'a>(value: &'a Json, name: &str) -> &'a [Json] {
    value.get(name).map_or(&[], Json::items)
}

/// Chat completions and Anthropic's messages.
fn messages(provider: &str, body: &Json) -> Said {
    let mut said = Said::default();
    for turn in items(body, "messages").iter().filter(|turn| word(turn, "role") == "assistant") {
        let content = turn.get("content").unwrap_or(&Json::Null);
        said.text.push_str(content.text().unwrap_or_default());
        for block in content.items() {
            match word(block, "type").as_str() {
                "text" => said.text.push_str(&word(block, "text")),
                "tool_use" if provider == "anthropic" => said.calls.push(SaidCall {
                    id: Some(word(block, "id")),
                    name: word(block, "name"),
                    args: block.get("input").cloned().unwrap_or(Json::Null),
                }),
                _ => {}
            }
        }
        for call in items(turn, "tool_calls") {
            let function = call.get("function").unwrap_or(&Json::Null);
            said.calls.push(SaidCall {
                id: Some(word(call, "id")),
                name: word(function, "name"),
                args: Json::parse(&word(function, "arguments")).unwrap_or(Json::Null),
            });
        }
    }
    said
}

/// OpenAI's Responses: messages are items of their own, parted by a blank line where they are one text.
fn responses(body: &Json) -> Said {
    let mut said = Said::default();
    let mut texts = Vec::new();
    for item in items(body, "input") {
        if word(item, "type") == "function_call" {
            said.calls.push(SaidCall {
                id: Some(word(item, "call_id")),
                name: word(item, "name"),
                args: Json::parse(&word(item, "arguments")).unwrap_or(Json::Null),
            });
        } else if word(item, "role") == "assistant" {
            let parts = items(item, "content").iter().map(|part| word(part, "text") + &word(part, "refusal"));
            texts.push(word(item, "content") + &parts.collect::<String>());
        }
    }
    said.text = texts.join("\n\n");
    said
}

fn gemini(body: &Json) -> Said {
    let mut said = Said::default();
    let turns = items(body, "contents").iter().filter(|turn| word(turn, "role") == "model");
    for part in turns.flat_map(|turn| items(turn, "parts")) {
        if matches!(part.get("thought"), Some(Json::Bool(true))) {
            continue;
        }
        said.text.push_str(&word(part, "text"));
        if let Some(call) = part.get("functionCall") {
            said.calls.push(SaidCall {
                id: call.get("id").and_then(Json::text).map(str::to_owned),
                name: word(call, "name"),
                args: call.get("args").cloned().unwrap_or(Json::Null),
            });
        }
    }
    said
}
