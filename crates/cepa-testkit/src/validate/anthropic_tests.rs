//! Each rule refuses what it is for, and a full request of every kind passes.

use serde_json::{Value, json};

use super::*;

fn good() -> Value {
    json!({
        "model": "m",
        "max_tokens": 4096,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "weather?"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}},
                {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}, "title": "a"},
            ]},
            {"role": "assistant", "content": "Which town?"},
            {"role": "user", "content": "Oslo"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Oslo"}},
                {"type": "tool_use", "id": "c2", "name": "weather", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c2"},
                {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "sunny"}], "is_error": true},
                {"type": "text", "text": "hurry"},
            ]},
        ],
        "tools": [{"name": "weather", "description": "d", "input_schema": {"type": "object", "properties": {}}}],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": true},
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "stop_sequences": ["x"],
        "stream": true,
        "metadata": {"user_id": "u"},
    })
}

fn rules(body: &Value) -> Vec<&'static str> {
    validate(body).iter().map(|violation| violation.rule).collect()
}

#[test]
fn a_full_request_is_taken() {
    assert_eq!(validate(&good()), vec![]);
    assert_eq!(validate_for(&good(), Version::V2026_10_21), vec![]);
}

#[test]
fn each_rule_refuses_what_it_is_for() {
    type Change = fn(&mut Value);
    let cases: &[(&str, Change)] = &[
        ("an.shape", |b| b["model"] = json!(" ")),
        ("an.shape", |b| b["messages"][1]["content"] = json!(null)),
        ("an.shape", |b| b["stop_sequences"] = json!([" "])),
        ("an.shape", |b| b["messages"][3]["content"][0]["signature"] = json!("")),
        ("an.shape", |b| b["messages"][3]["content"][1]["name"] = json!("")),
        ("an.unknown_member", |b| b["nonsense"] = json!(1)),
        ("an.unknown_member", |b| b["messages"][4]["content"][0]["status"] = json!("ok")),
        ("an.unknown_member", |b| b["messages"][3]["content"][0]["cache_control"] = json!(null)),
        ("an.max_tokens", |b| {
            b["max_tokens"] = json!(0);
            b["thinking"] = json!({"type": "disabled"});
        }),
        ("an.no_empty_text", |b| b["system"] = json!("")),
        ("an.no_empty_text", |b| b["system"] = json!([])),
        ("an.no_empty_text", |b| b["system"][0]["text"] = json!("\n")),
        ("an.no_empty_text", |b| b["messages"][1]["content"] = json!(" ")),
        ("an.no_empty_text", |b| b["messages"][1]["content"] = json!([])),
        ("an.no_empty_text", |b| b["messages"][4]["content"][2]["text"] = json!("")),
        ("an.no_empty_text", |b| b["messages"][4]["content"][1]["content"][0]["text"] = json!("")),
        ("an.no_empty_text", |b| b["messages"][4]["content"][1]["content"] = json!("")),
        ("an.names", |b| b["tools"][0]["name"] = json!("files.read")),
        ("an.names", |b| b["tools"][0]["name"] = json!("x".repeat(129))),
        ("an.tool_schema_object", |b| b["tools"][0]["input_schema"] = json!({})),
        ("an.tool_schema_object", |b| b["tools"][0]["input_schema"]["oneOf"] = json!([])),
        ("an.tool_names_unique", |b| {
            let tool = b["tools"][0].clone();
            b["tools"].as_array_mut().unwrap().push(tool);
        }),
        ("an.tool_choice", |b| b["tool_choice"] = json!({"type": "required"})),
        ("an.tool_choice", |b| drop(b.as_object_mut().unwrap().remove("tools"))),
        ("an.tool_choice", |b| {
            b["thinking"] = json!({"type": "disabled"});
            b["tool_choice"] = json!({"type": "tool", "name": "other"});
        }),
        ("an.thinking", |b| b["thinking"]["budget_tokens"] = json!(1023)),
        ("an.thinking", |b| b["thinking"]["budget_tokens"] = json!(4096)),
        ("an.thinking", |b| b["temperature"] = json!(0.5)),
        ("an.thinking", |b| b["top_k"] = json!(5)),
        ("an.thinking", |b| b["tool_choice"] = json!({"type": "any"})),
        ("an.thinking_first", |b| drop(b["messages"][3]["content"].as_array_mut().unwrap().remove(0))),
        ("an.no_system_role", |b| b["messages"][1]["role"] = json!("tool")),
        ("an.alternate", |b| drop(b["messages"].as_array_mut().unwrap().remove(0))),
        ("an.alternate", |b| drop(b["messages"].as_array_mut().unwrap().remove(1))),
        ("an.block_role", |b| b["messages"][2]["content"] = json!([{"type": "redacted_thinking", "data": "x"}])),
        ("an.block_role", |b| {
            let image = b["messages"][0]["content"][1].clone();
            b["messages"][1]["content"] = json!([image]);
        }),
        ("an.block_role", |b| b["messages"][4]["content"][1]["content"][0]["type"] = json!("tool_use")),
        ("an.block_type", |b| b["messages"][1]["content"] = json!([{"type": "reasoning", "text": "x"}])),
        ("an.input_object", |b| b["messages"][3]["content"][1]["input"] = json!("{}")),
        ("an.source", |b| b["messages"][0]["content"][1]["source"]["media_type"] = json!("image/bmp")),
        ("an.source", |b| b["messages"][0]["content"][2]["source"]["data"] = json!("%")),
        ("an.results_first", |b| b["messages"][4]["content"].as_array_mut().unwrap().swap(1, 2)),
        ("an.pairing", |b| drop(b["messages"][4]["content"].as_array_mut().unwrap().remove(0))),
        ("an.pairing", |b| b["messages"][4]["content"][0]["tool_use_id"] = json!("c1")),
        ("an.cache_max4", |b| {
            let mark = json!({"type": "ephemeral"});
            b["tools"][0]["cache_control"] = mark.clone();
            for block in b["messages"][0]["content"].as_array_mut().unwrap() {
                block["cache_control"] = mark.clone();
            }
        }),
    ];
    for (number, (rule, change)) in cases.iter().enumerate() {
        let mut body = good();
        change(&mut body);
        let found = rules(&body);
        let allowed = |found: &&str| found == rule || (*rule == "an.no_system_role" && *found == "an.alternate");
        assert!(found.iter().all(allowed) && found.contains(rule), "change {number}: {rule} is not {found:?}");
    }
}

#[test]
fn ids_are_unique_and_of_word_characters() {
    let mut body = good();
    body["messages"][3]["content"][1]["id"] = json!("f:0");
    body["messages"][4]["content"][1]["tool_use_id"] = json!("f:0");
    assert_eq!(rules(&body), ["an.ids_charset", "an.ids_charset"]);

    let mut body = good();
    let again: Vec<Value> = body["messages"].as_array().unwrap()[3..5].to_vec();
    body["messages"].as_array_mut().unwrap().extend(again);
    assert_eq!(rules(&body), ["an.ids_unique"]);
}

#[test]
fn the_last_message_is_the_users_and_answers_all_uses() {
    let mut body = good();
    body["messages"].as_array_mut().unwrap().truncate(4);
    assert_eq!(rules(&body), ["an.pairing", "an.last_user"]);
    body["messages"].as_array_mut().unwrap().truncate(2);
    assert_eq!(rules(&body), ["an.last_user"]);
}

#[test]
fn the_newer_version_has_no_sampling_and_no_documents_in_replies() {
    let mut body = good();
    body["thinking"] = json!({"type": "adaptive"});
    body["temperature"] = json!(1);
    let document = body["messages"][0]["content"][2].clone();
    body["messages"][1]["content"] = json!([document]);
    assert_eq!(rules(&body), [""; 0]);
    let newer: Vec<&str> = validate_for(&body, Version::V2026_10_21).iter().map(|violation| violation.rule).collect();
    assert_eq!(newer, ["an.sampling", "an.block_role"]);
}

#[test]
fn anything_at_all_is_judged_without_a_panic() {
    for body in [json!(null), json!([]), json!({}), json!({"model": 1, "messages": [1, null, {"role": 1}], "tools": 3})]
    {
        assert!(!validate(&body).is_empty(), "{body} was taken");
    }
}
