//! Whole requests to Anthropic, as files that a person can read and that the official SDK's types judge (`peers/`).
//!
//! `UPDATE_GOLDEN=1 cargo test -p cepa-providers --test golden_anthropic` writes them anew.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod golden;

use cepa_core::{ChatOptions, ChatRequest, EventSink, Media, Message, Part, Thinking, ToolChoice, ToolSet, ToolStatus};
use cepa_providers::wire::{
    anthropic::{AnthropicMessages, ApiVersion},
    openai_chat::{OpenAiChat, Quirks},
};
use cepa_testkit::validate::{self, anthropic::Version};
use golden::{CITY, body, calls, compare, decoded, origin, result, tool, weather};
use serde_json::json;

fn claude() -> AnthropicMessages {
    AnthropicMessages::new(origin("anthropic", "claude-sonnet-4-5"))
}

/// Compares the request with its file; the judge of this project has to take it as well.
fn check(name: &str, dialect: &AnthropicMessages, request: &ChatRequest) {
    let body = body(dialect, request);
    let version = match dialect.version() {
        ApiVersion::V2023_06_01 => Version::V2023_06_01,
        ApiVersion::V2026_10_21 => Version::V2026_10_21,
    };
    let mut violations = validate::anthropic::validate_for(&serde_json::from_str(&body).expect("JSON"), version);
    violations.retain(|violation| !(request.options.continue_pause && violation.rule == "an.last_user"));
    assert!(violations.is_empty(), "{name}:\n{}", validate::list(&violations));
    compare("anthropic", name, &body);
}

fn request(history: Vec<Message>) -> ChatRequest {
    let options = ChatOptions { max_tokens: Some(1024), ..ChatOptions::default() };
    ChatRequest { options, ..ChatRequest::new(history) }
}

// W7
#[test]
fn text() {
    let mut request = request(vec![
        Message::user("Hi, I am 小明."),
        Message::assistant("Hello!"),
        Message::user(vec![Part::Text("Two".into()), Part::Text(" ".into()), Part::Text("texts.".into())]),
    ]);
    request.system_prompt = Some("Be brief.".into());
    request.options.temperature = Some(0.2);
    request.options.stop = vec!["END".into()];
    check("text", &claude(), &request);
}

#[test]
fn images() {
    let parts = vec![
        Part::Text("What differs?".into()),
        Part::Image(Media::bytes("image/png", &b"\x89PNG"[..])),
        Part::Image(Media::url("https://example.com/b.webp")),
    ];
    check("images", &claude(), &request(vec![Message::user(parts)]));
}

// W3
#[test]
fn documents() {
    let parts = vec![
        Part::Document(Media::bytes("application/pdf", &b"%PDF-1.7"[..]).named("report.pdf")),
        Part::Document(Media::url("https://example.com/paper.pdf")),
        Part::Document(Media::bytes("text/markdown", "# Notes\n晴".as_bytes().to_vec()).named("notes.md")),
        Part::Text("Sum up.".into()),
    ];
    check("documents", &claude(), &request(vec![Message::user(parts)]));
}

#[test]
fn parallel_calls_one_failed() {
    let mut reply = calls(&[
        ("toolu_1", "get_weather", r#"{"city": "Oslo"}"#),
        ("toolu_2", "get_weather", r#"{"city": "北京"}"#),
        ("toolu_3", "get_time", ""),
    ]);
    reply.content = Some("Checking.".into());
    let mut request = request(vec![
        Message::user("Weather in Oslo and Beijing, and the time?"),
        Message::Assistant(reply),
        result("toolu_1", "1°C"),
        Message::tool("toolu_2", "get_weather", ToolStatus::Error, "no such city"),
        Message::tool("toolu_3", "get_time", ToolStatus::Rejected, "The user rejected this call: not now."),
        Message::user("And now?"),
    ]);
    request.tools = weather();
    check("parallel_calls_one_failed", &claude(), &request);
}

// W3
#[test]
fn results_with_images() {
    let image = Part::Image(Media::bytes("image/png", &b"\x89PNG"[..]));
    let mut request = request(vec![
        Message::user("Look."),
        Message::Assistant(calls(&[("toolu_1", "get_weather", "{}"), ("toolu_2", "get_weather", "{}")])),
        result("toolu_1", vec![Part::Text("the map".into()), image.clone()]),
        Message::tool("toolu_2", "get_weather", ToolStatus::Error, vec![image]),
    ]);
    request.tools = weather();
    check("results_with_images", &claude(), &request);
}

// W7
#[test]
fn system_messages() {
    let mut request = request(vec![
        Message::system("You are Bo."),
        Message::user("hi"),
        Message::assistant("hello"),
        Message::system("From now on answer in Dutch."),
        Message::user("how are you?"),
    ]);
    request.system_prompt = Some("Be brief.".into());
    check("system_messages", &claude(), &request);
}

// W1
#[test]
fn thinking_is_replayed() {
    let reply = json!({"content": [
        {"type": "thinking", "thinking": "plan A", "signature": "EqQB+/="},
        {"type": "redacted_thinking", "data": "Emw="},
        {"type": "text", "text": "Calling."},
        {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Oslo"}},
    ], "stop_reason": "tool_use"});
    let mut request = request(vec![Message::user("weather?"), decoded(&claude(), &reply), result("toolu_1", "1°C")]);
    request.tools = weather();
    request.options.max_tokens = None;
    request.options.thinking = Some(Thinking::Budget(2048));
    check("thinking_is_replayed", &claude(), &request);
}

#[test]
fn server_tools_are_replayed() {
    let reply = json!({"content": [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [
            {"type": "web_search_result", "url": "https://e.org", "title": "t", "encrypted_content": "E"}]},
        {"type": "text", "text": "Found it.", "citations": [{"type": "web_search_result_location", "url": "https://e.org",
            "title": "t", "encrypted_index": "I", "cited_text": "c"}]},
        {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Oslo"}},
    ], "stop_reason": "tool_use"});
    let mut request = request(vec![Message::user("find"), decoded(&claude(), &reply), result("toolu_1", "1°C")]);
    request.tools = weather();
    check("server_tools_are_replayed", &claude(), &request);
}

#[test]
fn paused_turn_is_continued() {
    let reply = json!({"content": [
        {"type": "text", "text": "Searching."},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
    ], "stop_reason": "pause_turn"});
    let mut request = request(vec![Message::user("find"), decoded(&claude(), &reply)]);
    request.options.continue_pause = true;
    let search = json!([{"type": "web_search_20250305", "name": "web_search"}]);
    request.options.extra.insert("tools".into(), search);
    check("paused_turn_is_continued", &claude(), &request);
}

#[test]
fn tool_choice() {
    let mut request = request(vec![Message::user("weather?")]);
    request.tools = ToolSet::new([
        tool("weather.current", "Weather of a city.", Some(CITY)),
        tool("now", "", Some(r#"{"description":"no arguments"}"#)),
    ])
    .expect("the names differ");
    request.tool_choice = Some(ToolChoice::Tool("weather.current".into()));
    request.options.parallel_tool_calls = Some(false);
    check("tool_choice", &claude(), &request);
}

#[test]
fn cache_breakpoints() {
    let mut request = request(vec![
        Message::user("1"),
        Message::Assistant(calls(&[("toolu_1", "get_weather", r#"{"city":"Oslo"}"#)])),
        result("toolu_1", "1°C"),
        Message::assistant("2"),
        Message::user("3"),
    ]);
    request.tools = weather();
    request.system_prompt = Some("Be brief.".into());
    request.options.cache = Some(true);
    check("cache_breakpoints", &claude(), &request);
}

#[test]
fn after_a_switch_of_provider() {
    let other = OpenAiChat::new(origin("deepseek", "deepseek-reasoner"), Quirks::default());
    let message = json!({"role": "assistant", "content": "Calling.", "reasoning_content": "private musing", "tool_calls": [
        {"id": "functions.get_weather:0", "type": "function",
            "function": {"name": "get_weather", "arguments": "{\"city\": \"Oslo\"}"}},
        {"id": "call_b", "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\": \"Rome\"}"}}]});
    let reply = json!({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]});
    let mut request = request(vec![
        Message::system("You are Bo."),
        Message::user("weather?"),
        decoded(&other, &reply),
        result("functions.get_weather:0", "1°C"),
        result("call_b", ""),
    ]);
    request.tools = weather();
    // It goes on with a reply that another model began: there is no thinking of this one to begin with.
    request.options.max_tokens = Some(4096);
    request.options.thinking = Some(Thinking::Budget(1024));
    check("after_a_switch_of_provider", &claude(), &request);
}

#[test]
fn broken_arguments() {
    let mut request = request(vec![
        Message::user("weather?"),
        Message::Assistant(calls(&[("toolu_1", "get_weather", r#"{"city": "Os"#)])),
        Message::tool("toolu_1", "get_weather", ToolStatus::Error, "The arguments are not valid JSON."),
    ]);
    request.tools = weather();
    check("broken_arguments", &claude(), &request);
}

#[test]
fn mapped_and_repeated_ids() {
    let mut request = request(vec![
        Message::user("x"),
        Message::Assistant(calls(&[
            ("get_weather", "get_weather", r#"{"city":"A"}"#),
            ("get_weather", "get_weather", r#"{"city":"B"}"#),
            ("call_a|fc_b", "get_weather", r#"{"city":"C"}"#),
        ])),
        result("get_weather", "1"),
        result("get_weather", "2"),
        result("call_a|fc_b", "3"),
        Message::Assistant(calls(&[("get_weather", "get_weather", r#"{"city":"D"}"#)])),
        result("get_weather", "4"),
    ]);
    request.tools = weather();
    check("mapped_and_repeated_ids", &claude(), &request);
}

#[test]
fn damaged_history() {
    let mut begun = calls(&[("toolu_1", "get_weather", r#"{"city":"Oslo"}"#), ("toolu_2", "get_time", "{}")]);
    begun.content = Some("Doing it.".into());
    let mut request = request(vec![
        result("toolu_9", "orphan"),
        Message::assistant("So."),
        Message::user("a"),
        Message::Assistant(begun),
        Message::user("  "),
        result("toolu_2", "12:00"),
        Message::assistant(" "),
        Message::assistant("c"),
    ]);
    request.tools = weather();
    check("damaged_history", &claude(), &request);
}

// W7
#[test]
fn version_2026_10_21() {
    let newer = AnthropicMessages::new(origin("anthropic", "claude-opus-4-7")).with_version(ApiVersion::V2026_10_21);
    let mut request = request(vec![Message::user("weather?")]);
    request.tools = weather();
    request.tool_choice = Some(ToolChoice::Required);
    request.options.thinking = Some(Thinking::Effort("high".into()));
    request.events = EventSink::new(|_| {});
    check("streamed_with_effort_2026-10-21", &newer, &request);
}
