//! Replies that were not streamed.

use cepa_core::{ChatRequest, ChatResponse, Content, ErrorKind, FinishReason, Message, Origin, Part, Usage};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::AnthropicMessages;
use crate::wire::Dialect;

fn dialect() -> AnthropicMessages {
    AnthropicMessages::new(Origin { provider: "anthropic".into(), model: "m".into() })
}

fn reply(content: Value, stop_reason: &str) -> ChatResponse {
    let body = json!({"type": "message", "content": content, "stop_reason": stop_reason});
    dialect().decode(body.to_string().as_bytes()).expect("a reply")
}

/// The assistant message of the next request; null where nothing of it can be sent.
fn replayed(response: &ChatResponse) -> Value {
    let mut history = vec![Message::user("x"), Message::Assistant(response.message.clone())];
    if response.message.tool_calls.is_empty() {
        history.push(Message::user("y"));
    }
    let body = dialect().encode(&ChatRequest::new(history)).expect("encoded").concat();
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    body["messages"].get(1).cloned().unwrap_or_default()
}

#[test]
fn the_stop_reason_becomes_one_of_ours() {
    let call = json!({"type": "tool_use", "id": "c1", "name": "f", "input": {}});
    let finish = |content, reason: &str| reply(content, reason).finish_reason;
    for (reason, without, with) in [
        ("end_turn", FinishReason::Stop, FinishReason::ToolCalls),
        ("stop_sequence", FinishReason::Stop, FinishReason::ToolCalls),
        ("tool_use", FinishReason::Stop, FinishReason::ToolCalls),
        ("max_tokens", FinishReason::Length, FinishReason::Length),
        ("model_context_window_exceeded", FinishReason::Length, FinishReason::Length),
        ("refusal", FinishReason::Refusal, FinishReason::Refusal),
        ("pause_turn", FinishReason::PauseTurn, FinishReason::PauseTurn),
        // Nobody said that the calls are to run.
        ("some_future_reason", FinishReason::Other, FinishReason::Other),
    ] {
        assert_eq!((finish(json!([]), reason), finish(json!([call]), reason)), (without, with), "{reason}");
    }
    let unknown = reply(json!([]), "some_future_reason").message;
    assert_eq!(unknown.extra["stop_reason"].as_str(), "\"some_future_reason\"");
}

#[test]
fn thinking_is_no_text_and_goes_back_as_it_came() {
    let content = r#"[{"type":"thinking", "signature":"EqQB+/=","thinking":"plan é\u00e9"},{"type":"redacted_thinking","data":"Emw="},{"type":"text","text":"Hi"},{"type":"tool_use","id":"c1","name":"f","input":{"n":12345678901234567890123}}]"#;
    let body = format!(r#"{{"content":{content},"stop_reason":"tool_use"}}"#);
    let response = dialect().decode(body.as_bytes()).expect("a reply");
    let parts = vec![Part::Reasoning("plan éé".into()), Part::Text("Hi".into())];
    assert_eq!(response.message.content, Some(Content::Parts(parts)));
    let history = vec![Message::user("x"), Message::Assistant(response.message)];
    let sent = dialect().encode(&ChatRequest::new(history)).expect("encoded").concat();
    let sent = String::from_utf8(sent).expect("UTF-8");
    let (text, call) = (r#"{"type":"text","text":"Hi"}"#, r#""input":{"n":12345678901234567890123}"#);
    assert!(
        sent.contains(r#"{"type":"thinking", "signature":"EqQB+/=","thinking":"plan é\u00e9"},{"type":"redacted_"#)
    );
    assert!(sent.contains(text) && sent.contains(call), "{sent}");
}

#[test]
fn thinking_without_a_signature_is_shown_and_not_sent() {
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": " "});
    let response = reply(json!([thinking, {"type": "text", "text": "A"}]), "end_turn");
    assert_eq!(response.message.content.as_ref().map(Content::reasoning).as_deref(), Some("hm"));
    assert_eq!(response.message.replay, []);
    assert_eq!(replayed(&response)["content"], json!([{"type": "text", "text": "A"}]));
}

#[test]
fn plain_replies_keep_nothing_beside_the_message() {
    let content = json!([
        {"type": "text", "text": "A", "citations": null},
        {"type": "text", "text": "", "citations": []},
        {"type": "text", "text": "B"},
        {"type": "tool_use", "id": "c1", "name": "f", "input": {}, "caller": {"type": "direct"}},
    ]);
    let message = reply(content, "tool_use").message;
    assert_eq!(message.content, Some("AB".into()));
    assert_eq!(message.replay, []);
}

#[test]
fn blocks_of_the_server_keep_their_place() {
    let content = json!([
        {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"encrypted_content": "E"}]},
        {"type": "brand_new_block", "x": 1},
        {"type": "text", "text": "A", "citations": [{"type": "web_search_result_location", "encrypted_index": "I"}]},
        {"type": "tool_use", "id": "c1", "name": "f", "input": {},
            "caller": {"type": "code_execution_20250825", "tool_id": "srv_1"}},
        {"type": "text", "text": "B"},
    ]);
    let response = reply(content.clone(), "tool_use");
    assert_eq!(response.message.tool_calls.len(), 1);
    assert_eq!(replayed(&response)["content"], content);
}

#[test]
fn calls_get_ids_where_there_are_none() {
    let call = |id: Value| json!({"type": "tool_use", "id": id, "name": "f", "input": "{\"a\": 1}"});
    let calls = reply(json!([call(json!("c1")), call(json!("c1")), call(json!("")), call(json!(null))]), "tool_use");
    let calls = calls.message.tool_calls;
    assert_eq!(calls[0].id, "c1");
    let ids: std::collections::HashSet<&str> = calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids.len(), 4);
    assert!(calls.iter().all(|call| call.args.as_str() == r#"{"a": 1}"#));
}

#[test]
fn all_input_tokens_are_input() {
    let usage = |usage: Value| {
        let body = json!({"content": [], "stop_reason": "end_turn", "usage": usage});
        dialect().decode(body.to_string().as_bytes()).expect("a reply").usage
    };
    let counted = json!({"input_tokens": 50, "cache_read_input_tokens": 2400, "cache_creation_input_tokens": 120,
        "output_tokens": 7, "output_tokens_details": {"thinking_tokens": 3}, "service_tier": "standard"});
    let expected = Usage { input: 2570, output: 7, cache_read: 2400, cache_write: 120, reasoning: 3 };
    assert_eq!(usage(counted), Some(expected));
    assert_eq!(usage(json!(null)), None);
    assert_eq!(usage(json!({"input_tokens": null, "output_tokens": "7"})), None);
    assert_eq!(usage(json!("odd")), None);
    assert_eq!(usage(json!({"output_tokens": 7})), Some(Usage { output: 7, ..Usage::default() }));
}

#[test]
fn half_characters_do_not_cost_the_reply() {
    let body = r#"{"content":[{"type":"text","text":"cut \ud83d"}],"stop_reason":"max_tokens"}"#;
    let response = dialect().decode(body.as_bytes()).expect("a reply");
    assert_eq!(response.message.content, Some("cut \u{fffd}".into()));
}

#[test]
fn what_is_no_reply_is_an_error() {
    let kind = |body: &str| dialect().decode(body.as_bytes()).map_err(|error| error.kind());
    assert_eq!(kind("<html>").err(), Some(ErrorKind::Decode));
    assert_eq!(kind("{}").err(), Some(ErrorKind::Decode));
    assert_eq!(kind("[]").err(), Some(ErrorKind::Decode));
    assert_eq!(kind(r#"{"content":[{"text":"A"}]}"#).err(), Some(ErrorKind::Decode));
    assert_eq!(kind(r#"{"content":[{"type":"text"}]}"#).err(), Some(ErrorKind::Decode));
    let overloaded = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let error = dialect().decode(overloaded.as_bytes()).expect_err("an error");
    assert_eq!(
        (error.kind(), error.code(), error.is_retryable()),
        (ErrorKind::Overloaded, Some("overloaded_error"), true)
    );
    assert!(error.message().contains("Overloaded"), "{error}");
}

fn any_json() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "text",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "server_tool_use",
        "end_turn",
        "",
        " ",
        "{\"a\":1}",
        "s==",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word.prop_map(Value::from),
        ".{0,3}".prop_map(Value::from),
    ];
    let name = prop::sample::select(vec![
        "type",
        "text",
        "content",
        "id",
        "name",
        "input",
        "thinking",
        "signature",
        "data",
        "citations",
        "caller",
        "stop_reason",
        "usage",
        "input_tokens",
        "error",
        "tool_use_id",
    ]);
    leaf.prop_recursive(4, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(name.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|members| members.into_iter().collect::<Value>()),
        ]
    })
}

proptest! {
    // W1: no body makes it panic, and what it makes of one can be sent back.
    #[test]
    fn any_body_is_a_reply_or_an_error(content in prop::collection::vec(any_json(), 0..5), more in any_json(), raw in any::<Vec<u8>>()) {
        let _ = dialect().decode(&raw);
        let _ = dialect().decode(more.to_string().as_bytes());
        let body = json!({"content": content, "stop_reason": "end_turn", "usage": more});
        if let Ok(response) = dialect().decode(body.to_string().as_bytes()) {
            let stored = serde_json::to_string(&Message::Assistant(response.message.clone())).expect("JSON");
            let loaded: Message = serde_json::from_str(&stored).expect("what was stored can be read");
            prop_assert_eq!(&loaded, &Message::Assistant(response.message.clone()));
            replayed(&response);
        }
    }
}
