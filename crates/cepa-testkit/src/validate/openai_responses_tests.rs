//! Each rule refuses what it is for, and a full request of every kind passes.

use serde_json::{Value, json};

use super::*;

fn good() -> Value {
    json!({
        "model": "m",
        "instructions": "Be brief.",
        "input": [
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "weather? and what is this?"},
                {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,iVBORw=="},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="},
                {"type": "input_file", "file_url": "https://example.com/b.pdf"},
            ]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "commentary",
                "content": [{"type": "output_text", "text": "I look.", "annotations": [], "logprobs": []}]},
            {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "weather", "arguments": "{\"city\":\"Oslo\"}"},
            {"type": "function_call", "call_id": "c2", "name": "weather", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c2", "output": ""},
            {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "sunny"}]},
            {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}},
            {"type": "message", "role": "assistant", "content": "Sunny."},
            {"role": "developer", "content": "In French now."},
            {"role": "user", "content": "thanks"},
        ],
        "tools": [
            {"type": "function", "name": "weather", "description": "d", "strict": false,
                "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
            {"type": "function", "name": "strict", "strict": true, "parameters": {
                "type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}},
                "required": ["a"], "additionalProperties": false,
            }},
            {"type": "web_search"},
        ],
        "tool_choice": {"type": "function", "name": "weather"},
        "parallel_tool_calls": true,
        "max_output_tokens": 16,
        "temperature": 0.5,
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"verbosity": "low"},
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "stream": true,
        "stream_options": {"include_obfuscation": false},
    })
}

fn rules(body: &Value) -> Vec<&'static str> {
    let mut rules: Vec<_> = validate(body).iter().map(|violation| violation.rule).collect();
    rules.dedup();
    rules
}

#[test]
fn a_full_request_passes() {
    assert_eq!(validate(&good()), []);
    assert_eq!(validate(&json!({"model": "m", "input": "hi"})), []);
}

/// Spoils a good body at a place.
fn spoilt(at: &str, value: Value) -> Value {
    let mut body = good();
    let (parent, name) = at.rsplit_once('/').expect("a path");
    match body.pointer_mut(parent).expect("the place is there") {
        Value::Object(object) if value.is_null() => drop(object.remove(name).expect("the member is there")),
        Value::Object(object) => drop(object.insert(name.to_owned(), value)),
        Value::Array(items) if value.is_null() => drop(items.remove(name.parse().expect("a number"))),
        Value::Array(items) => items.insert(name.parse().expect("a number"), value),
        other => panic!("{other} has no members"),
    }
    body
}

#[test]
fn every_rule_refuses_what_it_is_for() {
    let none = Value::Null;
    let call = json!({"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"});
    let bare = json!({"type": "reasoning", "id": "rs_2", "summary": [{"type": "summary_text", "text": "x"}]});
    let encrypted = json!({"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "x"});
    let chat_tool = json!({"type": "function", "function": {"name": "x", "parameters": {}}});
    for (at, value, rule) in [
        ("/model", none.clone(), "or.shape"),
        ("/input", json!([]), "or.shape"),
        ("/input", json!(" "), "or.shape"),
        ("/max_output_tokens", json!(15), "or.shape"),
        ("/include", json!(["everything"]), "or.shape"),
        ("/reasoning/effort", json!("a lot"), "or.shape"),
        ("/stop", json!(["x"]), "or.unknown_member"),
        ("/messages", json!([]), "or.unknown_member"),
        ("/stream", json!(false), "or.stream_options"),
        ("/background", json!(true), "or.background"),
        ("/input/0/content/0/text", json!(" "), "or.shape"),
        ("/input/0/content/0/type", json!("output_text"), "or.part_type"),
        ("/input/0/content/1/detail", none.clone(), "or.shape"),
        ("/input/0/content/1/image_url", json!({"url": "https://x"}), "or.shape"),
        ("/input/0/content/1/image_url", none.clone(), "or.image"),
        ("/input/0/content/2/filename", none.clone(), "or.file"),
        ("/input/0/content/2/file_data", json!("JVBERg=="), "or.shape"),
        ("/input/0/role", json!("tool"), "or.shape"),
        ("/input/1/summary", none.clone(), "or.shape"),
        ("/input/1", bare, "or.reasoning_stateless"),
        ("/input/8", encrypted, "or.reasoning_followed"),
        ("/input/2/id", none.clone(), "or.shape"),
        ("/input/2/id", json!("rs_1"), "or.item_ids_unique"),
        ("/input/2/content/0/annotations", none.clone(), "or.shape"),
        ("/input/2/content/0/type", json!("input_text"), "or.part_type"),
        ("/input/3/call_id", json!("c|1"), "or.shape"),
        ("/input/3/name", json!("get weather"), "or.names"),
        ("/input/3/arguments", json!({}), "or.args_json_object"),
        ("/input/3/arguments", json!("[1]"), "or.args_json_object"),
        ("/input/3", call, "or.call_ids_unique"),
        ("/input/3", none.clone(), "or.pairing"),
        ("/input/5", none.clone(), "or.pairing"),
        ("/input/4", json!({"role": "user", "content": "wait"}), "or.pairing"),
        ("/input/5/status", json!("ok"), "or.shape"),
        ("/input/8/content", json!(""), "or.shape"),
        ("/input/0", json!({"type": "item", "id": "x"}), "or.item_type"),
        ("/tools/0", chat_tool, "or.shape"),
        ("/tools/0/strict", none.clone(), "or.shape"),
        ("/tools/0/strict", json!(true), "or.strict"),
        ("/tools/1/parameters/properties/a/items/default", json!("x"), "or.strict"),
        ("/tools/0/parameters", json!({}), "or.tool_schema_object"),
        ("/tools/1/name", json!("weather"), "or.tool_names_unique"),
        ("/tools", none.clone(), "or.tool_choice"),
        ("/tool_choice/name", json!("other"), "or.tool_choice"),
        ("/tool_choice", json!("any"), "or.tool_choice"),
    ] {
        let found = rules(&spoilt(at, value.clone()));
        assert!(found.contains(&rule), "{at} = {value}: {found:?}");
    }
}
