//! What a request says beside its messages: tools and schemas, caching, usage, thinking; and that its bytes stay.

use cepa_core::{ChatOptions, ChatRequest, EventSink, Thinking};
use serde_json::{Value, json};

use super::{
    story::story,
    wires::{Wire, all, request, tools},
};

/// The description of the first tool's arguments.
fn schema(body: &Value) -> Value {
    let tool = &body["tools"][0];
    let found = [tool.get("input_schema"), tool["function"].get("parameters"), tool.get("parameters")];
    let declared = &tool["functionDeclarations"][0]["parametersJsonSchema"];
    found.into_iter().flatten().next().unwrap_or(declared).clone()
}

fn with_tool(schema: Option<&str>) -> ChatRequest {
    ChatRequest { tools: tools(&[("look", schema)]), ..request(&story("u")) }
}

// FR-132: a stream is asked to tell its usage, except where the question is refused and the answer comes anyway.
#[test]
fn streams_are_asked_for_their_usage() {
    let sink = EventSink::new(|_| ());
    for (name, asked) in
        [("openai", true), ("ollama", true), ("llama.cpp", true), ("deepseek", true), ("mistral", false)]
    {
        let body = Wire::named(name).body(&ChatRequest { events: sink.clone(), ..request(&story("u")) });
        assert_eq!(body["stream_options"]["include_usage"] == true, asked, "{name}: {body}");
        assert_eq!(body["stream"], true, "{name}");
    }
}

// FR-139, FR-140, FR-167: the same request has the same bytes: tools in the order in which they were given, members of a
// schema in theirs, however often a set is made.
#[test]
fn the_same_request_has_the_same_bytes() {
    let schema =
        r#"{"type":"object","required":["zeta"],"properties":{"zeta":{"type":"string"},"alpha":{"type":"string"}}}"#;
    let names = ["zeta", "alpha", "m_3", "m_1", "m_2"];
    for wire in all() {
        let made = || {
            let list: Vec<_> = names.iter().map(|name| (*name, Some(schema))).collect();
            let body = ChatRequest { tools: tools(&list), ..request(&story("s u c:a r:a u")) };
            wire.text(&body)
        };
        let first = made();
        let places: Vec<usize> = names.iter().map(|name| first.find(&format!(r#""name":"{name}""#)).unwrap()).collect();
        assert!(places.is_sorted(), "{}: {first}", wire.name);
        let own_order = first.find(r#""zeta":{"#).unwrap() < first.find(r#""alpha":{"#).unwrap();
        assert!(own_order, "{}: {first}", wire.name);
        assert!((0..5).all(|_| made() == first), "{}", wire.name);
    }
}

#[test]
fn schemas_are_ones_that_the_provider_takes() {
    let nothing = json!({"type": "object", "properties": {}});
    for (given, sent) in [
        // FR-173: a tool without parameters.
        (None, &nothing),
        (Some("{}"), &nothing),
        (Some(r#"{"type":"object","properties":{}}"#), &nothing),
    ] {
        for wire in all() {
            let body = wire.body(&with_tool(given));
            // Gemini takes a tool without any description of arguments.
            if wire.name != "gemini" {
                assert_eq!(&schema(&body), sent, "{}: {body}", wire.name);
            }
        }
    }
    for given in [
        // FR-166: what a caller says about its arguments arrives: what is required, and how.
        r#"{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"]}"#,
        // FR-174: types that may be null.
        r#"{"type":"object","properties":{"city":{"type":["string","null"]},"days":{"anyOf":[{"type":"integer"},{"type":"null"}]}},"required":["city"]}"#,
        // FR-175, FR-226: members that Gemini's older field refuses.
        r#"{"type":"object","additionalProperties":false,"properties":{"city":{"type":"string"},"days":{"type":"object","additionalProperties":false,"properties":{"n":{"type":"integer"}}}},"required":["city"]}"#,
    ] {
        for wire in all() {
            let body = wire.body(&with_tool(Some(given)));
            let sent = schema(&body);
            assert_eq!(sent["required"], json!(["city"]), "{}: {body}", wire.name);
            assert!(sent["properties"]["days"].is_object(), "{}: {body}", wire.name);
            match wire.name {
                "gemini" => assert!(body["tools"][0]["functionDeclarations"][0].get("parameters").is_none(), "{body}"),
                _ => assert_eq!(sent, serde_json::from_str::<Value>(given).unwrap(), "{}: {body}", wire.name),
            }
        }
    }
}

// FR-164: effort in words is adaptive thinking for Anthropic; a budget is one.
#[test]
fn thinking_is_asked_for_as_the_caller_means_it() {
    let wire = Wire::named("anthropic");
    let body = |thinking| {
        let options = ChatOptions { max_tokens: Some(8192), thinking: Some(thinking), ..ChatOptions::default() };
        wire.body(&ChatRequest { options, ..request(&story("u")) })
    };
    let effort = body(Thinking::Effort("low".to_owned()));
    assert_eq!((&effort["thinking"]["type"], &effort["output_config"]["effort"]), (&json!("adaptive"), &json!("low")));
    assert_eq!(body(Thinking::Budget(2048))["thinking"], json!({"type": "enabled", "budget_tokens": 2048}));
}

// FR-168: the cache has a mark behind the tools and behind the conversation, four at most; without the switch there is none.
#[test]
fn tools_are_cached_too() {
    let wire = Wire::named("anthropic");
    let body = |cache| {
        let options = ChatOptions { cache, ..ChatOptions::default() };
        let tools = tools(&[("look", None), ("see", None)]);
        wire.body(&ChatRequest { tools, options, ..request(&story("s u c:a r:a a u c:b r:b a u")) })
    };
    let marked = body(Some(true));
    assert!(marked["tools"][1].get("cache_control").is_some() && marked["tools"][0].get("cache_control").is_none());
    assert!((2..=4).contains(&marked.to_string().matches("cache_control").count()), "{marked}");
    assert!(!body(None).to_string().contains("cache_control"));
}

// FR-209: several calls at once can be switched off.
#[test]
fn one_call_at_a_time_can_be_asked_for() {
    let options = ChatOptions { parallel_tool_calls: Some(false), ..ChatOptions::default() };
    let request = ChatRequest { options, ..with_tool(None) };
    assert_eq!(Wire::named("openai").body(&request)["parallel_tool_calls"], false);
    assert_eq!(Wire::named("anthropic").body(&request)["tool_choice"]["disable_parallel_tool_use"], true);
    let gemini = Wire::named("gemini").body(&request);
    assert!(gemini["systemInstruction"].to_string().contains("one"), "{gemini}");
}
