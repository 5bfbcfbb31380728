//! Each rule refuses what it is for and nothing else, and a full request of every kind passes.

use serde_json::{Value, json};

use super::{
    super::trial::{Trials, insert, remove, swap},
    *,
};

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

#[test]
fn a_full_request_is_taken() {
    assert_eq!(validate(&good()), vec![]);
    assert_eq!(validate_for(&good(), Version::V2026_10_21), vec![]);
}

fn settings(trials: &mut Trials) {
    trials.refuse("AN-01", |b| b["model"] = json!(" "));
    trials.refuse("AN-01", |b| b["messages"][1]["content"] = json!(null));
    trials.refuse("AN-01", |b| b["system"][0] = json!({"type": "image"}));
    trials.refuse("AN-01", |b| remove(b, "/messages/0/content/1/source"));
    trials.refuse("AN-02", |b| b["nonsense"] = json!(1));
    trials.refuse("AN-02", |b| b["messages"][4]["content"][0]["status"] = json!("ok"));
    trials.beside("AN-03", without_thinking, |b| b["max_tokens"] = json!(0));
    trials.beside("AN-03", without_thinking, |b| remove(b, "/max_tokens"));
    trials.beside("AN-04", without_thinking, |b| b["temperature"] = json!(1.1));
    trials.beside("AN-04", without_thinking, |b| b["top_p"] = json!(-0.1));
    trials.under(newer, "AN-05", without_thinking, |b| b["temperature"] = json!(1));
    trials.under(newer, "AN-05", without_thinking, |b| b["top_k"] = json!(3));
    trials.refuse("AN-06", |b| b["stop_sequences"] = json!([" "]));
    trials.beside(
        "AN-07",
        |b| b["output_config"] = json!({"effort": "low"}),
        |b| {
            b["output_config"] = json!({"effort": "minimal"});
        },
    );
    trials.refuse("AN-08", |b| b["system"][0]["cache_control"]["ttl"] = json!("1d"));
    trials.refuse("AN-08", |b| b["tools"][0]["cache_control"] = json!({"type": "persistent"}));
    trials.beside("AN-09", |b| cached(b, 3), |b| cached(b, 4));
    trials.refuse("AN-10", |b| b["messages"][3]["content"][0]["cache_control"] = json!(null));
}

fn content(trials: &mut Trials) {
    trials.refuse("AN-11", |b| b["messages"][1]["role"] = json!("tool"));
    trials.refuse("AN-11", |b| b["messages"][1]["role"] = json!("system"));
    trials.refuse("AN-12", |b| b["messages"][1]["content"] = json!(" "));
    trials.refuse("AN-12", |b| b["messages"][1]["content"] = json!([]));
    trials.refuse("AN-13", |b| b["system"] = json!(""));
    trials.refuse("AN-13", |b| b["system"] = json!([]));
    trials.refuse("AN-13", |b| b["system"][0]["text"] = json!("\n"));
    trials.refuse("AN-13", |b| b["messages"][4]["content"][2]["text"] = json!(""));
    trials.refuse("AN-13", |b| b["messages"][4]["content"][1]["content"][0]["text"] = json!(""));
    trials.refuse("AN-14", |b| b["messages"][4]["content"][1]["content"] = json!(""));
    trials.refuse("AN-14", |b| remove(b, "/messages/4/content/1/content"));
    trials.refuse("AN-15", |b| b["messages"][2]["content"] = json!([{"type": "redacted_thinking", "data": "x"}]));
    trials.refuse("AN-15", |b| {
        let image = b["messages"][0]["content"][1].clone();
        b["messages"][1]["content"] = json!([image]);
    });
    trials.under(
        newer,
        "AN-15",
        |_| {},
        |b| {
            let document = b["messages"][0]["content"][2].clone();
            b["messages"][1]["content"] = json!([document]);
        },
    );
    trials.refuse("AN-16", |b| b["messages"][4]["content"][1]["content"][0]["type"] = json!("tool_use"));
    trials.refuse("AN-17", |b| b["messages"][1]["content"] = json!([{"type": "reasoning", "text": "x"}]));
    trials.refuse("AN-18", |b| b["messages"][3]["content"][1]["name"] = json!(""));
    trials.beside("AN-18", |b| use_name(b, 200), |b| use_name(b, 201));
    trials.refuse("AN-19", |b| b["messages"][3]["content"][1]["input"] = json!("{}"));
    trials.refuse("AN-20", |b| {
        b["messages"][3]["content"][1]["id"] = json!("f:0");
        b["messages"][4]["content"][1]["tool_use_id"] = json!("f:0");
    });
    trials.refuse("AN-21", |b| b["messages"][3]["content"][0]["signature"] = json!(""));
    trials.refuse("AN-21", |b| b["messages"][3]["content"][0] = json!({"type": "redacted_thinking"}));
    trials.refuse("AN-22", |b| b["messages"][0]["content"][1]["source"]["media_type"] = json!("image/bmp"));
    trials.refuse("AN-22", |b| b["messages"][0]["content"][1]["source"] = json!({"type": "url", "url": "/a.png"}));
    trials.refuse("AN-23", |b| b["messages"][0]["content"][2]["source"]["data"] = json!("%"));
    trials.refuse("AN-23", |b| b["messages"][0]["content"][2]["source"]["media_type"] = json!("text/html"));
}

fn tools(trials: &mut Trials) {
    trials.refuse("AN-24", |b| b["tools"][0]["name"] = json!("files.read"));
    trials.refuse("AN-24", |b| b["tools"][0]["name"] = json!("x".repeat(129)));
    trials.refuse("AN-25", |b| b["tools"][0]["input_schema"] = json!({}));
    trials.refuse("AN-26", |b| b["tools"][0]["input_schema"]["oneOf"] = json!([]));
    trials.refuse("AN-27", |b| {
        let tool = b["tools"][0].clone();
        insert(b, "/tools/-", tool);
    });
    trials.refuse("AN-28", |b| remove(b, "/tools"));
    trials.refuse("AN-29", |b| b["tool_choice"] = json!({"type": "required"}));
    trials.beside("AN-29", without_thinking, |b| b["tool_choice"] = json!({"type": "tool", "name": "other"}));
    trials.refuse("AN-30", |b| b["tool_choice"]["type"] = json!("none"));
    trials.refuse("AN-30", |b| b["tool_choice"]["disable_parallel_tool_use"] = json!("yes"));
    trials.refuse("AN-31", |b| b["thinking"]["type"] = json!("adaptive"));
    trials.refuse("AN-31", |b| b["thinking"] = json!({"type": "on"}));
    trials.refuse("AN-32", |b| b["thinking"]["budget_tokens"] = json!(1023));
    trials.refuse("AN-32", |b| b["thinking"]["budget_tokens"] = json!(4096));
    trials.refuse("AN-32", |b| remove(b, "/thinking/budget_tokens"));
    trials.refuse("AN-33", |b| b["temperature"] = json!(0.5));
    trials.refuse("AN-33", |b| b["top_k"] = json!(5));
    trials.beside("AN-33", |b| b["top_p"] = json!(0.95), |b| b["top_p"] = json!(0.9));
    trials.beside("AN-34", |b| choice(b, "none"), |b| choice(b, "any"));
    trials.refuse("AN-35", |b| remove(b, "/messages/3/content/0"));
}

fn turns(trials: &mut Trials) {
    trials.refuse("AN-36", |b| remove(b, "/messages/0"));
    trials.refuse("AN-36", |b| remove(b, "/messages/1"));
    trials.refuse("AN-37", |b| remove(b, "/messages/4/content/0"));
    trials.refuse("AN-37", |b| b["messages"][4]["content"] = json!("Never mind."));
    trials.refuse("AN-38", |b| insert(b, "/messages/4/content/0", json!({"type": "tool_result", "tool_use_id": "c1"})));
    trials.beside("AN-38", without_thinking, |b| {
        b["messages"][2]["content"] = json!([{"type": "tool_result", "tool_use_id": "c0"}]);
    });
    trials.refuse("AN-39", |b| swap(b, "/messages/4/content/1"));
    trials.refuse("AN-40", |b| insert(b, "/messages/-", json!({"role": "assistant", "content": "Sunny,"})));
    trials.refuse("AN-41", |b| {
        let again: Vec<Value> = b["messages"].as_array().unwrap()[3..5].to_vec();
        b["messages"].as_array_mut().unwrap().extend(again);
    });
}

#[test]
fn every_rule_refuses_what_it_is_for() {
    let mut trials = Trials::new(good(), validate);
    settings(&mut trials);
    content(&mut trials);
    tools(&mut trials);
    turns(&mut trials);
    trials.complete(rules::ALL);
}

fn newer(body: &Value) -> Vec<Violation> {
    validate_for(body, Version::V2026_10_21)
}

fn without_thinking(body: &mut Value) {
    body["thinking"] = json!({"type": "disabled"});
}

fn choice(body: &mut Value, kind: &str) {
    body["tool_choice"] = json!({"type": kind});
}

fn use_name(body: &mut Value, chars: usize) {
    body["messages"][3]["content"][1]["name"] = json!("é".repeat(chars));
}

/// Cache marks beside the one on the system prompt.
fn cached(body: &mut Value, marks: usize) {
    let mark = json!({"type": "ephemeral"});
    for at in ["/tools/0", "/messages/0/content/0", "/messages/0/content/1", "/messages/0/content/2"].iter().take(marks)
    {
        body.pointer_mut(at).unwrap()["cache_control"] = mark.clone();
    }
}

#[test]
fn version_2023_06_01_takes_documents_in_replies_and_sampling() {
    let mut body = good();
    without_thinking(&mut body);
    body["temperature"] = json!(1);
    let document = body["messages"][0]["content"][2].clone();
    body["messages"][1]["content"] = json!([document]);
    assert_eq!(validate(&body), vec![]);
}

#[test]
fn anything_at_all_is_judged_without_a_panic() {
    for body in [json!(null), json!([]), json!({}), json!({"model": 1, "messages": [1, null, {"role": 1}], "tools": 3})]
    {
        assert!(!validate(&body).is_empty(), "{body} was taken");
    }
}
