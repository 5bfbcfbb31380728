//! Whole requests to OpenAI's Responses API, as files that a person can read and that OpenAI's own types judge (`peers/`).
//!
//! `UPDATE_GOLDEN=1 cargo test -p cepa-providers --test golden_responses` writes them anew.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[allow(dead_code, reason = "the chat completions' own")]
#[path = "golden_openai/conversations.rs"]
mod all;
mod golden;

use cepa_core::{ChatOptions, ChatRequest, EventSink, Media, Message, Part, Thinking, ToolChoice};
use cepa_providers::wire::{
    anthropic::AnthropicMessages,
    openai_responses::{EncryptedReasoning, Quirks, Responses, StrictTools, Summary},
};
use cepa_testkit::validate;
use golden::{body, compare, decoded, origin, result};
use serde_json::{Value, json};

fn gpt() -> Responses {
    with(Quirks::default())
}

fn with(quirks: Quirks) -> Responses {
    Responses::new(origin("openai", "gpt-5.4"), quirks)
}

/// Compares the request with its file; the judge of this project has to take it as well.
fn check(name: &str, dialect: &Responses, request: &ChatRequest) {
    let body = body(dialect, request);
    let violations = validate::openai_responses::validate(&serde_json::from_str(&body).expect("JSON"));
    assert!(violations.is_empty(), "{name}:\n{}\n{body}", validate::list(&violations));
    compare("openai_responses", name, &body);
}

/// What a reasoning model answers before it has looked: it thinks, speaks and calls, twice.
fn looks() -> Value {
    let said = json!({"type": "output_text", "text": "I look at both.", "annotations": [], "logprobs": []});
    json!({"object": "response", "status": "completed", "output": [
        {"type": "reasoning", "id": "rs_01", "summary": [{"type": "summary_text", "text": "Two cities."}], "encrypted_content": "gAAAAAB+/="},
        {"type": "message", "id": "msg_01", "role": "assistant", "status": "completed", "phase": "commentary", "content": [said]},
        {"type": "function_call", "id": "fc_01", "call_id": "call_01", "name": "get_weather", "arguments": "{\"city\": \"Oslo\"}", "status": "completed"},
        {"type": "reasoning", "id": "rs_02", "summary": [], "encrypted_content": "gAAAAAC"},
        {"type": "function_call", "id": "fc_02", "call_id": "call_02", "name": "get_weather", "arguments": "{\"city\": \"北京\"}", "status": "completed"},
    ]})
}

// W1: golden bodies. W3: what the wire has no place for is converted in the open.
#[test]
fn conversations_of_chat_completions() {
    let mut options = all::options();
    options.options.stop.clear();
    options.options.extra.remove("seed");
    for (name, request) in [
        ("text", all::text()),
        ("images", all::images()),
        ("parallel_calls", all::parallel_calls()),
        ("tool_errors", all::tool_errors()),
        ("several_system_messages", all::several_system_messages()),
        ("damaged_history", all::damaged_history()),
        ("blank_messages", all::blank_messages()),
        ("tool_choice", all::tool_choice()),
        ("options", options),
        ("after_a_switch_of_provider", all::provider_switch()),
        ("broken_arguments", all::broken_args()),
        ("mapped_and_repeated_ids", all::mapped_ids()),
        ("media_in_results", all::media_in_results()),
    ] {
        check(name, &gpt(), &request);
    }
}

#[test]
fn documents() {
    let parts = vec![
        Part::Document(Media::bytes("application/pdf", &b"%PDF-1.7"[..])),
        Part::Document(Media::bytes("application/pdf", &b"%PDF-1.7"[..]).named("offer.pdf")),
        Part::Document(Media::url("https://example.com/paper.pdf")),
        Part::Document(Media::bytes("text/csv; charset=utf-8", &b"a,b\n1,2\n"[..]).named("data.csv")),
        Part::Text("Summarise.".into()),
    ];
    check("documents", &gpt(), &ChatRequest::new(vec![Message::user(parts)]));
}

// W2
#[test]
fn reasoning_goes_back_before_its_calls() {
    let mut request = ChatRequest::new(vec![
        Message::user("Weather in Oslo and Beijing?"),
        decoded(&gpt(), &looks()),
        result("call_01", "1°C"),
        result("call_02", "晴 22°C"),
    ]);
    request.tools = all::parallel_calls().tools;
    request.options.thinking = Some(Thinking::Effort("high".into()));
    check("reasoning_is_replayed", &gpt(), &request);
    // The same conversation for another model of the same provider: words and calls alone.
    let other = Responses::new(origin("openai", "gpt-5.4-mini"), Quirks::default());
    check("reasoning_of_another_model", &other, &request);
}

#[test]
fn the_providers_own_tools_are_replayed() {
    let cited = json!({"type": "output_text", "text": "Found it.", "logprobs": [], "annotations": [
        {"type": "url_citation", "url": "https://e.org", "title": "t", "start_index": 0, "end_index": 5}]});
    let reply = json!({"object": "response", "status": "completed", "output": [
        {"type": "reasoning", "id": "rs_01", "summary": [], "encrypted_content": "gAAA"},
        {"type": "web_search_call", "id": "ws_01", "status": "completed", "action": {"type": "search", "query": "q"}},
        {"type": "message", "id": "msg_01", "role": "assistant", "status": "completed", "content": [cited]},
    ]});
    let mut request = ChatRequest::new(vec![Message::user("find"), decoded(&gpt(), &reply), Message::user("thanks")]);
    request.options.extra.insert("tools".into(), json!([{"type": "web_search"}]));
    check("hosted_tools_are_replayed", &gpt(), &request);
}

#[test]
fn after_claude_thought() {
    let claude = AnthropicMessages::new(origin("anthropic", "claude-sonnet-4-5"));
    let reply = json!({"content": [
        {"type": "thinking", "thinking": "plan A", "signature": "EqQB+/="},
        {"type": "text", "text": "Calling."},
        {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Oslo"}},
    ], "stop_reason": "tool_use"});
    let messages = vec![Message::user("weather?"), decoded(&claude, &reply), result("toolu_1", "1°C")];
    let request = ChatRequest { tools: all::parallel_calls().tools, ..ChatRequest::new(messages) };
    check("thinking_of_claude", &gpt(), &request);
}

#[test]
fn streamed_with_a_summary_and_strict_tools() {
    let schema = r#"{"type":"object","properties":{"city":{"type":"string"},"days":{"type":["integer","null"],"format":"uint8"}},"required":["city"]}"#;
    let request = ChatRequest {
        tools: all::tools(&[("get_weather", "The weather in a city.", Some(schema)), ("now", "", None)]),
        tool_choice: Some(ToolChoice::Required),
        options: ChatOptions { thinking: Some(Thinking::Budget(20_000)), ..ChatOptions::default() },
        events: EventSink::new(|_| {}),
        ..ChatRequest::new(vec![Message::user("weather?")])
    };
    let quirks = Quirks { summary: Some(Summary::Detailed), strict_tools: StrictTools::Narrowed, ..Quirks::default() };
    check("streamed_summary_strict_tools", &with(quirks), &request);
    let without = Quirks { encrypted_reasoning: EncryptedReasoning::NotAsked, ..Quirks::default() };
    check("model_without_reasoning", &with(without), &ChatRequest::new(vec![Message::user("hi")]));
}
