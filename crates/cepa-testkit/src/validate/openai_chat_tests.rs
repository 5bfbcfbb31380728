//! Each rule refuses what it is for and nothing else, and a full request of every kind passes.

use serde_json::{Value, json};

use super::{
    super::trial::{Trials, insert, remove},
    *,
};

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

/// The rules of OpenAI itself.
fn openai(trials: &mut Trials) {
    trials.refuse("OC-01", |b| b["model"] = json!(""));
    trials.refuse("OC-01", |b| remove(b, "/model"));
    trials.refuse("OC-01", |b| b["parallel_tool_calls"] = json!("yes"));
    trials.refuse("OC-01", |b| b["messages"][1]["content"][0]["text"] = json!(1));
    trials.refuse("OC-01", |b| remove(b, "/messages/2/tool_calls/0/function"));
    trials.refuse("OC-02", |b| b["nonsense"] = json!(1));
    trials.refuse("OC-02", |b| b["messages"][5]["reasoning_content"] = json!("I think"));
    trials.refuse("OC-02", |b| b["messages"][3]["name"] = json!("weather"));
    trials.refuse("OC-02", |b| b["messages"][2]["tool_calls"][0]["extra_content"] = json!({}));
    trials.refuse("OC-03", |b| b["messages"] = json!([]));
    trials.refuse("OC-04", |b| b["messages"][6]["role"] = json!("human"));
    trials.refuse("OC-05", |b| b["temperature"] = json!(3));
    trials.refuse("OC-05", |b| b["top_p"] = json!(1.1));
    trials.refuse("OC-05", |b| b["presence_penalty"] = json!(-2.5));
    trials.refuse("OC-06", |b| b["max_completion_tokens"] = json!(0));
    trials.refuse("OC-07", |b| b["stop"] = json!(["a", "b", "c", "d", "e"]));
    trials.refuse("OC-07", |b| b["stop"] = json!([]));
    trials.refuse("OC-08", |b| b["reasoning_effort"] = json!("a lot"));
    trials.refuse("OC-09", |b| b["messages"][6]["content"] = json!([]));
    trials.refuse("OC-09", |b| b["messages"][6]["content"] = json!(null));
    trials.refuse("OC-09", |b| b["messages"][5]["content"] = json!([]));
    trials.refuse("OC-10", |b| b["messages"][1]["content"][0]["type"] = json!("thinking"));
    trials.refuse("OC-10", |b| b["messages"][5]["content"] = json!([{"type": "image_url", "image_url": {}}]));
    trials.refuse("OC-11", |b| b["messages"][1]["content"][1]["image_url"]["url"] = json!("data:image/png;base64,###"));
    trials.refuse("OC-11", |b| b["messages"][1]["content"][1]["image_url"]["detail"] = json!("fine"));
    trials.refuse("OC-12", |b| b["messages"][1]["content"][2]["input_audio"]["format"] = json!("ogg"));
    trials.refuse("OC-12", |b| b["messages"][1]["content"][2]["input_audio"]["data"] = json!("%"));
    trials.refuse("OC-13", |b| remove(b, "/messages/1/content/3/file/filename"));
    trials.refuse("OC-13", |b| b["messages"][1]["content"][3]["file"]["file_data"] = json!("JVBERg=="));
    trials.refuse("OC-14", |b| remove(b, "/messages/1/content/3/file/file_data"));
    trials.refuse("OC-15", |b| b["stream"] = json!(false));
    trials.refuse("OC-16", |b| b["max_tokens"] = json!(9));
    trials.beside("OC-17", without_tools, |b| b["tools"] = json!([]));
    trials.beside("OC-18", without_tools, |b| b["tool_choice"] = json!("auto"));
    trials.beside("OC-18", without_tools, |b| b["parallel_tool_calls"] = json!(true));
    trials.beside("OC-19", |b| tools(b, 128), |b| tools(b, 129));
    trials.refuse("OC-20", |b| b["messages"][2]["tool_calls"][0]["function"]["name"] = json!("files.read"));
    trials.refuse("OC-20", |b| b["messages"][2]["tool_calls"][0]["function"]["name"] = json!("x".repeat(65)));
    trials.refuse("OC-20", |b| insert(b, "/tools/-", tool("files.read")));
    trials.refuse("OC-21", |b| insert(b, "/tools/-", tool("weather")));
    trials.refuse("OC-22", |b| b["tools"][0]["type"] = json!("custom"));
    trials.refuse("OC-22", |b| b["messages"][2]["tool_calls"][1]["type"] = json!("custom"));
    trials.refuse("OC-23", |b| b["tools"][0]["function"]["parameters"] = json!({"type": "object"}));
    trials.refuse("OC-23", |b| remove(b, "/tools/0/function/parameters"));
    trials.refuse("OC-24", |b| b["tool_choice"] = json!("any"));
    trials.refuse("OC-24", |b| b["tool_choice"]["function"]["name"] = json!("other"));
    trials.refuse("OC-25", |b| b["messages"][5]["content"] = json!(null));
    trials.refuse("OC-26", |b| b["messages"][5]["tool_calls"] = json!([]));
    trials.refuse("OC-27", |b| b["messages"][2]["tool_calls"][0]["function"]["arguments"] = json!({}));
    trials.refuse("OC-27", |b| b["messages"][2]["tool_calls"][0]["function"]["arguments"] = json!("[1]"));
    trials.refuse("OC-27", |b| b["messages"][2]["tool_calls"][0]["function"]["arguments"] = json!(""));
    trials.refuse("OC-28", |b| remove(b, "/messages/3"));
    trials.refuse("OC-28", |b| b["messages"].as_array_mut().unwrap().truncate(3));
    trials.refuse("OC-29", |b| insert(b, "/messages/-", json!({"role": "tool", "tool_call_id": "c1", "content": ""})));
    trials.refuse("OC-29", |b| insert(b, "/messages/5", json!({"role": "tool", "tool_call_id": "c1", "content": ""})));
    trials.refuse("OC-30", |b| {
        let again: Vec<Value> = b["messages"].as_array().unwrap()[2..5].to_vec();
        b["messages"].as_array_mut().unwrap().extend(again);
    });
    trials.beside("OC-31", |b| first_id(b, &"c".repeat(40)), |b| first_id(b, &"c".repeat(41)));
}

/// The rules of servers that take less.
fn stricter(trials: &mut Trials) {
    trials.refuse("SC-01", |b| b["messages"][6]["role"] = json!("system"));
    trials.under(in_turn, "SC-02", |_| {}, |b| insert(b, "/messages/1", json!({"role": "user", "content": "x"})));
    trials.under(in_turn, "SC-02", |_| {}, |b| insert(b, "/messages/6", json!({"role": "assistant", "content": "x"})));
    trials.under(in_turn, "SC-02", |_| {}, |b| remove(b, "/messages/1"));
    trials.under(at_mistral, "SC-03", |_| {}, |b| remove(b, "/messages/5"));
    trials.under(in_turn, "SC-03", |_| {}, |b| remove(b, "/messages/5"));
    trials.refuse("SC-04", |b| b["messages"][3]["content"] = json!(null));
    trials.refuse("SC-04", |b| b["messages"][4]["content"] = json!([{"type": "text", "text": "sunny"}]));
    trials.under(with_nine, "SC-05", nine, |b| first_id(b, "call_1234"));
    trials.under(with_nine, "SC-05", nine, |b| first_id(b, "abcd1234"));
    let text: fn(&mut Value) = |b| b["messages"][2]["content"] = json!("");
    trials.under(without_null, "SC-06", text, |b| b["messages"][2]["content"] = json!(null));
    trials.under(without_null, "SC-06", text, |b| remove(b, "/messages/2/content"));
    let thought: fn(&mut Value) = |b| b["messages"][2]["reasoning_content"] = json!("");
    trials.under(with_reasoning, "SC-07", thought, |b| remove(b, "/messages/2/reasoning_content"));
    trials.under(with_reasoning, "SC-07", thought, |b| b["messages"][2]["reasoning_content"] = json!(null));
    let without: fn(&mut Value) = |b| remove(b, "/max_completion_tokens");
    trials.under(without_limit, "SC-08", without, |b| b["max_completion_tokens"] = json!(9));
}

#[test]
fn every_rule_refuses_what_it_is_for() {
    let mut trials = Trials::new(good(), validate);
    openai(&mut trials);
    stricter(&mut trials);
    trials.complete(rules::ALL);
}

fn in_turn(body: &Value) -> Vec<Violation> {
    validate_for(body, Endpoint { roles_in_turn: true, ..Endpoint::default() })
}

fn at_mistral(body: &Value) -> Vec<Violation> {
    validate_for(body, Endpoint { assistant_after_results: true, ..Endpoint::default() })
}

fn with_nine(body: &Value) -> Vec<Violation> {
    validate_for(body, Endpoint { call_ids: CallIds::Nine, ..Endpoint::default() })
}

fn without_limit(body: &Value) -> Vec<Violation> {
    validate_for(body, Endpoint { refused_members: &["max_completion_tokens"], ..Endpoint::default() })
}

fn without_null(body: &Value) -> Vec<Violation> {
    validate_for(body, Endpoint { no_null_content: true, ..Endpoint::default() })
}

fn with_reasoning(body: &Value) -> Vec<Violation> {
    validate_for(body, Endpoint { reasoning_back: Some("reasoning_content"), ..Endpoint::default() })
}

fn without_tools(body: &mut Value) {
    for name in ["/tools", "/tool_choice", "/parallel_tool_calls"] {
        remove(body, name);
    }
}

fn tool(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}})
}

fn tools(body: &mut Value, many: usize) {
    body["tools"] = (1..many).map(|n| tool(&format!("t{n}"))).chain([tool("weather")]).collect();
}

fn first_id(body: &mut Value, id: &str) {
    body["messages"][2]["tool_calls"][0]["id"] = json!(id);
    body["messages"][4]["tool_call_id"] = json!(id);
}

fn nine(body: &mut Value) {
    first_id(body, "abcd12345");
    body["messages"][2]["tool_calls"][1]["id"] = json!("abcd12346");
    body["messages"][3]["tool_call_id"] = json!("abcd12346");
}

#[test]
fn an_endpoint_may_take_more() {
    let mut body = good();
    body["messages"][5]["reasoning_content"] = json!("I think");
    body["messages"][2]["tool_calls"][0]["extra_content"] = json!({});
    body["top_k"] = json!(5);
    body["messages"][6]["role"] = json!("system");
    let endpoint = Endpoint {
        body_members: &["top_k"],
        assistant_members: &["reasoning_content"],
        call_members: &["extra_content"],
        system_anywhere: true,
        ..Endpoint::default()
    };
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
