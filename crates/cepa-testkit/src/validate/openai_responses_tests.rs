//! Each rule refuses what it is for and nothing else, and a full request of every kind passes.

use serde_json::{Value, json};

use super::{
    super::trial::{Trials, insert, remove},
    *,
};

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

#[test]
fn a_full_request_passes() {
    assert_eq!(validate(&good()), []);
    assert_eq!(validate(&json!({"model": "m", "input": "hi"})), []);
}

fn settings(trials: &mut Trials) {
    trials.refuse("OR-01", |b| remove(b, "/model"));
    trials.refuse("OR-01", |b| b["input"][0]["content"][0]["text"] = json!(" "));
    trials.refuse("OR-01", |b| remove(b, "/input/0/content/1/detail"));
    trials.refuse("OR-01", |b| b["input"][5]["status"] = json!("ok"));
    trials.refuse("OR-02", |b| b["stop"] = json!(["x"]));
    trials.refuse("OR-02", |b| b["messages"] = json!([]));
    trials.beside("OR-03", |b| b["input"] = json!("hi"), |b| b["input"] = json!(" "));
    trials.refuse("OR-03", |b| b["input"] = json!([]));
    trials.refuse("OR-04", |b| b["max_output_tokens"] = json!(15));
    trials.refuse("OR-05", |b| b["temperature"] = json!(2.5));
    trials.refuse("OR-05", |b| b["top_p"] = json!(-1));
    trials.refuse("OR-06", |b| b["reasoning"]["effort"] = json!("a lot"));
    trials.refuse("OR-06", |b| b["reasoning"]["summary"] = json!("long"));
    trials.refuse("OR-07", |b| b["include"] = json!(["everything"]));
    trials.refuse("OR-08", |b| b["stream"] = json!(false));
    trials.refuse("OR-09", |b| b["background"] = json!(true));
    trials.beside("OR-10", |b| b["previous_response_id"] = json!("resp_1"), |b| b["conversation"] = json!("conv_1"));
}

fn items(trials: &mut Trials) {
    trials.refuse("OR-11", |b| b["input"][7] = json!({"type": "item", "id": "x"}));
    trials.refuse("OR-12", |b| b["input"][10]["role"] = json!("tool"));
    trials.refuse("OR-13", |b| b["input"][8]["content"] = json!(""));
    trials.refuse("OR-13", |b| b["input"][0]["content"] = json!([]));
    trials.beside("OR-14", |b| remove(b, "/input/1"), |b| remove(b, "/input/1/id"));
    trials.refuse("OR-14", |b| remove(b, "/input/2/status"));
    trials.refuse("OR-14", |b| remove(b, "/input/2/content/0/annotations"));
    trials.refuse("OR-15", |b| b["input"][0]["content"][0]["type"] = json!("output_text"));
    trials.refuse("OR-15", |b| b["input"][2]["content"][0]["type"] = json!("input_text"));
    trials.refuse("OR-16", |b| remove(b, "/input/0/content/1/image_url"));
    trials.refuse("OR-16", |b| b["input"][0]["content"][1]["file_id"] = json!("file-1"));
    trials.refuse("OR-17", |b| b["input"][0]["content"][1]["image_url"] = json!({"url": "https://x"}));
    trials.refuse("OR-18", |b| remove(b, "/input/0/content/3/file_url"));
    trials.refuse("OR-18", |b| b["input"][0]["content"][3]["file_id"] = json!("file-1"));
    trials.refuse("OR-19", |b| remove(b, "/input/0/content/2/filename"));
    trials.refuse("OR-20", |b| b["input"][0]["content"][2]["file_data"] = json!("JVBERg=="));
    trials.beside("OR-21", |b| first_call(b, &"c".repeat(64)), |b| first_call(b, &"c".repeat(65)));
    trials.refuse("OR-21", |b| first_call(b, "c|1"));
    trials.refuse("OR-22", |b| b["input"][3]["name"] = json!("get weather"));
    trials.refuse("OR-22", |b| b["tools"][1]["name"] = json!("x".repeat(65)));
    trials.refuse("OR-23", |b| b["input"][3]["arguments"] = json!({}));
    trials.refuse("OR-23", |b| b["input"][3]["arguments"] = json!("[1]"));
    trials.refuse("OR-24", |b| remove(b, "/input/5"));
    trials.refuse("OR-24", |b| b["input"].as_array_mut().unwrap().truncate(5));
    trials.refuse("OR-25", |b| {
        insert(b, "/input/7", json!({"type": "function_call_output", "call_id": "c1", "output": ""}))
    });
    trials.refuse("OR-26", |b| {
        let again: Vec<Value> = [4, 5].map(|at| b["input"][at].clone()).to_vec();
        b["input"].as_array_mut().unwrap().extend(again);
    });
    trials.refuse("OR-27", |b| b["input"][2]["id"] = json!("rs_1"));
    trials.refuse("OR-28", |b| remove(b, "/input/1/summary"));
    trials.refuse("OR-29", |b| remove(b, "/input/1/encrypted_content"));
    trials.beside(
        "OR-29",
        |b| b["input"][1]["content"] = json!([{"type": "reasoning_text", "text": "hm"}]),
        |b| {
            remove(b, "/input/1/content");
            b["input"][1]["encrypted_content"] = json!(null);
        },
    );
    trials.refuse("OR-30", |b| {
        insert(b, "/input/8", json!({"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "x"}));
    });
}

fn tools(trials: &mut Trials) {
    trials.refuse("OR-31", |b| insert(b, "/tools/-", json!({"type": "function", "function": {"name": "x"}})));
    trials.refuse("OR-32", |b| remove(b, "/tools/0/strict"));
    trials.refuse("OR-33", |b| b["tools"][0]["parameters"] = json!({}));
    trials.refuse("OR-34", |b| b["tools"][1]["parameters"]["properties"]["a"]["items"]["default"] = json!("x"));
    trials.refuse("OR-35", |b| remove(b, "/tools/1/parameters/additionalProperties"));
    trials.refuse("OR-36", |b| b["tools"][1]["parameters"]["required"] = json!([]));
    trials.refuse("OR-37", |b| b["tools"][1]["name"] = json!("weather"));
    trials.refuse("OR-38", |b| remove(b, "/tools"));
    trials.refuse("OR-39", |b| b["tool_choice"]["name"] = json!("other"));
    trials.refuse("OR-39", |b| b["tool_choice"] = json!("any"));
}

#[test]
fn every_rule_refuses_what_it_is_for() {
    let mut trials = Trials::new(good(), validate);
    settings(&mut trials);
    items(&mut trials);
    tools(&mut trials);
    trials.complete(rules::ALL);
}

fn first_call(body: &mut Value, id: &str) {
    body["input"][3]["call_id"] = json!(id);
    body["input"][6]["call_id"] = json!(id);
}
