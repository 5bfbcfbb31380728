//! Call ids and names: what providers give, and what they take.

use cepa_core::{Message, ToolStatus};
use serde_json::{Value, json};

use super::{
    story::{call, calls, story},
    wires::{Seen, Wire, all, request, tools},
};

/// One batch of calls with these ids, answered in order.
fn batch(ids: &[&str]) -> Vec<Message> {
    let mut messages = vec![Message::user("go"), calls(ids.iter().map(|id| call(id, "{}")))];
    messages.extend(ids.iter().enumerate().map(|(n, id)| Message::tool(*id, "look", ToolStatus::Ok, n.to_string())));
    messages
}

#[test]
fn any_id_becomes_one_that_the_provider_takes() {
    for ids in [
        // FR-095: missing, empty, repeated.
        &["", "", ""][..],
        &["a", "a", "a"],
        // FR-097: unique, and one result each (Anthropic answers "`tool_use` ids must be unique").
        &["toolu_1", "toolu_1", "toolu_2"],
        // FR-098: another provider's alphabet.
        &["functions.look:0", "call/1", "呼", "a b"],
        // FR-098: longer than a provider takes.
        &["call_0123456789012345678901234567890123456789012345678901234567890123"],
        // FR-143, FR-144: each result names its call.
        &["call_1", "call_2"],
    ] {
        for wire in all() {
            let messages = batch(ids);
            let seen = Seen::of(&wire.sent(&messages));
            let (called, answered): (Vec<&str>, Vec<&str>) = (
                seen.calls.iter().map(|(id, _)| id.as_str()).collect(),
                seen.results.iter().map(|(id, _)| id.as_str()).collect(),
            );
            assert_eq!(called, answered, "{}: {ids:?}", wire.name);
            assert_eq!(called.len(), ids.len(), "{}: {ids:?}", wire.name);
            // FR-099: the same again, and in a longer conversation, or the provider's cache is lost.
            let mut longer = messages.clone();
            longer.extend(story("a u"));
            longer.extend(batch(ids));
            let later = Seen::of(&wire.sent(&longer));
            assert_eq!(later.calls[..ids.len()], seen.calls, "{}: {ids:?}", wire.name);
            // FR-096: and what comes in a later turn is another one, where ids are what tells calls apart.
            let again = later.calls[ids.len()..].iter().any(|(id, _)| called.contains(&id.as_str()));
            assert!(!again || wire.name == "gemini", "{}: {ids:?}", wire.name);
        }
    }
}

#[test]
fn an_id_that_is_good_is_not_changed() {
    // FR-098, FR-121: what was mapped for one provider is the original for the one that made it.
    for (name, id) in
        [("openai", "call_1"), ("anthropic", "toolu_01A-b"), ("mistral", "aB3dE6gH9"), ("ollama", "call.1:2")]
    {
        assert_eq!(Seen::of(&Wire::named(name).sent(&batch(&[id]))).calls[0].0, id, "{name}");
    }
}

// FR-172, FR-224: Gemini may give no ids; its calls are told apart all the same, and those made for it are not its own.
#[test]
fn calls_without_ids_get_them() {
    let wire = Wire::named("gemini");
    let call = |city: &str| json!({"functionCall": {"name": "look", "args": {"city": city}}});
    let reply = json!({"candidates": [{"content": {"role": "model", "parts": [call("Oslo"), call("Rome")]}, "finishReason": "STOP"}]});
    let response = wire.read(&reply).unwrap();
    let ids: Vec<&str> = response.message.tool_calls.iter().map(|call| call.id.as_str()).collect();
    assert!(!ids[0].is_empty() && !ids[1].is_empty() && ids[0] != ids[1], "{ids:?}");
    let mut messages = vec![Message::user("go")];
    messages.extend([1, 0].map(|n| Message::tool(ids[n], "look", ToolStatus::Ok, format!("of {n}"))));
    messages.insert(1, Message::Assistant(response.message.clone()));
    let body = wire.sent(&messages);
    assert_eq!(Seen::of(&body).texts(), ["of 0", "of 1"], "{body}");
    assert!(body["contents"][1]["parts"][0]["functionCall"].get("id").is_none(), "{body}");
}

// FR-221: names of tools as the provider takes them, and back.
#[test]
fn names_become_legal_ones() {
    let long = "n".repeat(200);
    for name in ["files.read", "天気", "a b", long.as_str(), "mcp:server/tool"] {
        for wire in all() {
            let mut request = request(&story("u c:a r:a u"));
            request.tools = tools(&[(name, None), ("look", None)]);
            let body = wire.body(&request);
            let names: Vec<&Value> = match body["tools"][0].get("functionDeclarations") {
                Some(list) => list.as_array().unwrap().iter().map(|tool| &tool["name"]).collect(),
                None => body["tools"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|tool| tool.get("name").unwrap_or(&tool["function"]["name"]))
                    .collect(),
            };
            assert!(names[0] != name && names[1] == "look", "{}: {names:?}", wire.name);
        }
    }
}
