//! Each rule refuses what it is for, and a full request of every kind passes.

use serde_json::{Value, json};

use super::*;

fn good() -> Value {
    json!({
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [
                {"type": "text", "text": "weather? and what is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw==", "detail": "low"}},
                {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
                {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}},
            ]},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Oslo\"}"}},
                {"id": "c2", "type": "function", "function": {"name": "weather", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "c2", "content": ""},
            {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
            {"role": "assistant", "content": "Sunny."},
            {"role": "user", "content": "thanks"},
        ],
        "tools": [{"type": "function", "function": {
            "name": "weather", "description": "d", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        }}],
        "tool_choice": {"type": "function", "function": {"name": "weather"}},
        "parallel_tool_calls": true,
        "max_completion_tokens": 9,
        "temperature": 0.5,
        "stop": ["x"],
        "reasoning_effort": "low",
        "stream": true,
        "stream_options": {"include_usage": true},
    })
}

fn rules(body: &Value) -> Vec<&'static str> {
    validate(body).iter().map(|violation| violation.rule).collect()
}

#[test]
fn a_full_request_is_taken() {
    assert_eq!(validate(&good()), vec![]);
}

#[test]
fn each_rule_refuses_what_it_is_for() {
    type Change = fn(&mut Value);
    let cases: &[(&str, Change)] = &[
        ("oa.shape", |b| b["model"] = json!("")),
        ("oa.shape", |b| b["temperature"] = json!(3)),
        ("oa.shape", |b| b["messages"][6]["role"] = json!("human")),
        ("oa.shape", |b| b["messages"][6]["content"] = json!([])),
        ("oa.shape", |b| b["stop"] = json!(["a", "b", "c", "d", "e"])),
        ("oa.shape", |b| b["max_completion_tokens"] = json!(0)),
        ("oa.shape", |b| b["messages"][1]["content"][1]["image_url"]["url"] = json!("data:image/png;base64,###")),
        ("oa.shape", |b| b["messages"][1]["content"][2]["input_audio"]["format"] = json!("ogg")),
        ("oa.unknown_member", |b| b["nonsense"] = json!(1)),
        ("oa.unknown_member", |b| b["messages"][5]["reasoning_content"] = json!("I think")),
        ("oa.unknown_member", |b| b["messages"][3]["name"] = json!("weather")),
        ("oa.unknown_member", |b| b["messages"][2]["tool_calls"][0]["extra_content"] = json!({})),
        ("oa.stream_options", |b| b["stream"] = json!(false)),
        ("oa.one_limit", |b| b["max_tokens"] = json!(9)),
        ("oa.tool_choice", |b| b["tool_choice"] = json!("any")),
        ("oa.tool_choice", |b| b["tool_choice"]["function"]["name"] = json!("other")),
        ("oa.tool_schema_object", |b| b["tools"][0]["function"]["parameters"] = json!({"type": "object"})),
        ("oa.tool_names_unique", |b| {
            let tool = b["tools"][0].clone();
            b["tools"].as_array_mut().unwrap().push(tool);
        }),
        ("oa.tool_count", |b| {
            let tools = (0..129).map(|n| {
                let name = if n == 0 { "weather".to_owned() } else { format!("t{n}") };
                json!({"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}})
            });
            b["tools"] = tools.collect();
        }),
        ("oa.names", |b| b["messages"][2]["tool_calls"][0]["function"]["name"] = json!("files.read")),
        ("oa.names", |b| b["messages"][2]["tool_calls"][0]["function"]["name"] = json!("x".repeat(65))),
        ("oa.args_json_object", |b| b["messages"][2]["tool_calls"][0]["function"]["arguments"] = json!({})),
        ("oa.args_json_object", |b| b["messages"][2]["tool_calls"][0]["function"]["arguments"] = json!("[1]")),
        ("oa.args_json_object", |b| b["messages"][2]["tool_calls"][0]["function"]["arguments"] = json!("")),
        ("oa.tool_content_string", |b| b["messages"][3]["content"] = json!(null)),
        ("oa.single_leading_system", |b| b["messages"][6]["role"] = json!("system")),
        ("oa.assistant_content", |b| b["messages"][5]["content"] = json!(null)),
        ("oa.no_empty_arrays", |b| b["messages"][5]["tool_calls"] = json!([])),
        ("oa.part_type", |b| b["messages"][1]["content"][0]["type"] = json!("thinking")),
        ("oa.part_type", |b| b["messages"][5]["content"] = json!([{"type": "image_url", "image_url": {}}])),
        ("oa.file", |b| drop(b["messages"][1]["content"][3]["file"].as_object_mut().unwrap().remove("filename"))),
        ("oa.file", |b| b["messages"][1]["content"][3]["file"]["file_data"] = json!("JVBERg==")),
        ("oa.pairing", |b| drop(b["messages"].as_array_mut().unwrap().remove(3))),
        ("oa.pairing", |b| b["messages"].as_array_mut().unwrap().swap(4, 5)),
        ("oa.pairing", |b| b["messages"][3]["tool_call_id"] = json!("c1")),
    ];
    for (number, (rule, change)) in cases.iter().enumerate() {
        let mut body = good();
        change(&mut body);
        let found = rules(&body);
        assert!(
            found.iter().all(|found| found == rule) && !found.is_empty(),
            "change {number}: {rule} is not {found:?}"
        );
    }
}

#[test]
fn ids_are_unique_in_the_whole_request_and_short() {
    let long = "c".repeat(41);
    let mut body = good();
    body["messages"][2]["tool_calls"][0]["id"] = json!(long);
    body["messages"][4]["tool_call_id"] = json!(long);
    assert_eq!(rules(&body), ["oa.id_length"]);

    let mut body = good();
    let again: Vec<Value> = body["messages"].as_array().unwrap()[2..5].to_vec();
    body["messages"].as_array_mut().unwrap().extend(again);
    assert_eq!(rules(&body), ["oa.ids_unique"]);
}

#[test]
fn without_tools_nothing_speaks_of_them() {
    let mut body = good();
    body.as_object_mut().unwrap().remove("tools");
    assert_eq!(rules(&body), ["oa.no_empty_arrays", "oa.no_empty_arrays"]);
    body.as_object_mut().unwrap().remove("tool_choice");
    body.as_object_mut().unwrap().remove("parallel_tool_calls");
    assert_eq!(rules(&body), [""; 0]);
}

#[test]
fn an_endpoint_may_take_more() {
    let mut body = good();
    body["messages"][5]["reasoning_content"] = json!("I think");
    body["messages"][2]["tool_calls"][0]["extra_content"] = json!({});
    body["top_k"] = json!(5);
    let endpoint = Endpoint {
        body_members: &["top_k"],
        assistant_members: &["reasoning_content"],
        call_members: &["extra_content"],
        system_anywhere: true,
        roles_in_turn: false,
    };
    body["messages"][6]["role"] = json!("system");
    assert_eq!(validate_for(&body, endpoint), vec![]);
    assert_eq!(validate(&body).len(), 4);
}

#[test]
fn an_endpoint_may_want_turns() {
    let message = |role: &str| match role {
        "tool" => json!({"role": "tool", "tool_call_id": "c", "content": ""}),
        "calls" => json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "t", "arguments": "{}"}},
        ]}),
        role => json!({"role": role, "content": "x"}),
    };
    let endpoint = Endpoint { roles_in_turn: true, ..Endpoint::default() };
    for (roles, wrong) in [
        ("system user assistant user", 0),
        ("user calls tool assistant user", 0),
        ("user user", 1),
        ("system assistant user", 1),
        ("user assistant assistant", 1),
        ("user calls tool user", 1),
    ] {
        let messages: Vec<Value> = roles.split(' ').map(message).collect();
        let body = json!({"model": "m", "messages": messages});
        let found: Vec<_> = validate_for(&body, endpoint).iter().map(|violation| violation.rule).collect();
        assert_eq!(found, vec!["oa.alternate"; wrong], "{roles}");
        assert_eq!(validate(&body), vec![], "{roles}");
    }
}

#[test]
fn anything_at_all_is_judged_without_a_panic() {
    for body in [json!(null), json!([]), json!({}), json!({"model": 1, "messages": [1, null, {"role": 1}], "tools": 3})]
    {
        assert!(!validate(&body).is_empty(), "{body} was taken");
    }
}
