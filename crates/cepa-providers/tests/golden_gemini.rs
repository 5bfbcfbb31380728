//! Whole requests to Gemini, as files that a person can read and that the official SDK's types judge (`peers/`).
//!
//! `UPDATE_GOLDEN=1 cargo test -p cepa-providers --test golden_gemini` writes them anew.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod golden;

use cepa_core::{ChatOptions, ChatRequest, EventSink, Media, Message, Part, Thinking, ToolChoice, ToolSet, ToolStatus};
use cepa_providers::wire::{
    anthropic::AnthropicMessages,
    gemini::{GenerateContent, Generation},
};
use cepa_testkit::validate::{self, gemini::Model};
use golden::{CITY, body, calls, compare, decoded, origin, result, tool, weather};
use serde_json::json;

fn gemini() -> GenerateContent {
    GenerateContent::new(origin("gemini", "gemini-3.8-flash"))
}

fn older() -> GenerateContent {
    GenerateContent::new(origin("gemini", "gemini-2.5-flash"))
}

/// Compares the request with its file; the judge of this project has to take it as well.
fn check(name: &str, dialect: &GenerateContent, request: &ChatRequest) {
    let body = body(dialect, request);
    let model = match dialect.generation() {
        Generation::Before3 => Model::Before3,
        Generation::From3 => Model::From3,
    };
    let violations = validate::gemini::validate_for(&serde_json::from_str(&body).expect("JSON"), model);
    assert!(violations.is_empty(), "{name}:\n{}\n{body}", validate::list(&violations));
    compare("gemini", name, &body);
}

fn request(history: Vec<Message>) -> ChatRequest {
    ChatRequest::new(history)
}

/// A reply with these parts.
fn reply(parts: serde_json::Value) -> serde_json::Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}]})
}

#[test]
fn text() {
    let mut request = request(vec![
        Message::user("Hi, I am 小明."),
        Message::assistant("Hello!"),
        Message::user(vec![Part::Text("Two".into()), Part::Text(" ".into()), Part::Text("texts.".into())]),
    ]);
    request.system_prompt = Some("Be brief.".into());
    request.options = ChatOptions {
        max_tokens: Some(1024),
        temperature: Some(0.2),
        top_p: Some(0.9),
        stop: vec!["END".into()],
        ..ChatOptions::default()
    };
    request.options.extra.insert("generationConfig".into(), json!({"seed": 7, "temperature": 0.3}));
    request.options.extra.insert("cachedContent".into(), json!("cachedContents/x"));
    check("text", &gemini(), &request);
}

// W3
#[test]
fn media() {
    let parts = vec![
        Part::Text("What differs?".into()),
        Part::Image(Media::bytes("image/png", &b"\x89PNG"[..])),
        Part::Image(Media::url("https://example.com/b.webp?x=1")),
        Part::Audio(Media::bytes("audio/mpeg", &b"ID3"[..])),
        Part::Document(Media::bytes("application/pdf", &b"%PDF-1.7"[..]).named("report.pdf")),
        Part::Document(Media::bytes("text/markdown", "# Notes\n晴".as_bytes().to_vec()).named("notes.md")),
        Part::Image(Media::url("data:image/jpg;base64,/9j/4A==")),
    ];
    check("media", &gemini(), &request(vec![Message::user(parts)]));
}

// A batch's responses stand in one content right behind the calls, in their order.
#[test]
fn parallel_calls_one_failed() {
    let mut reply = calls(&[
        ("c1", "get_weather", r#"{"city": "Oslo"}"#),
        ("c2", "get_weather", r#"{"city": "北京"}"#),
        ("c3", "get_time", ""),
    ]);
    reply.content = Some("Checking.".into());
    let mut request = request(vec![
        Message::user("Weather in Oslo and Beijing, and the time?"),
        Message::Assistant(reply),
        result("c1", "1°C"),
        Message::tool("c2", "get_weather", ToolStatus::Error, "no such city"),
        Message::tool("c3", "get_time", ToolStatus::Rejected, "The user rejected this call: not now."),
        Message::user("And now?"),
    ]);
    request.tools = weather();
    check("parallel_calls_one_failed", &gemini(), &request);
}

fn results_with_media() -> ChatRequest {
    let image = Part::Image(Media::bytes("image/png", &b"\x89PNG"[..]));
    let sound = Part::Audio(Media::bytes("audio/wav", &b"RIFF"[..]));
    let word = Part::Document(Media::bytes("application/msword", &b"doc"[..]).named("a.doc"));
    let mut request = request(vec![
        Message::user("Look."),
        Message::Assistant(calls(&[("c1", "get_weather", "{}"), ("c2", "get_time", "{}")])),
        result("c1", vec![Part::Text("the map".into()), image.clone(), sound]),
        Message::tool("c2", "get_time", ToolStatus::Error, vec![image, word]),
    ]);
    request.tools = weather();
    request
}

// W3
#[test]
fn media_in_results() {
    check("media_in_results", &gemini(), &results_with_media());
    check("media_behind_results_2.5", &older(), &results_with_media());
}

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
    check("system_messages", &gemini(), &request);
}

// W1: each signature goes back on the very part that it came with.
#[test]
fn signatures_are_replayed() {
    let first = reply(json!([
        {"text": "plan A", "thought": true},
        {"text": "Let me look. "},
        {"functionCall": {"id": "fc1", "name": "get_weather", "args": {"city": "Oslo"}}, "thoughtSignature": "RkMx"},
        {"functionCall": {"id": "fc2", "name": "get_weather", "args": {"city": "Rome"}}},
    ]));
    let second = reply(json!([
        {"text": "All "}, {"text": "done."}, {"text": "", "thoughtSignature": "VFhU"},
    ]));
    let mut request = request(vec![
        Message::user("weather?"),
        decoded(&gemini(), &first),
        result("fc1", "1°C"),
        result("fc2", "20°C"),
        decoded(&gemini(), &second),
        Message::user("thanks"),
    ]);
    request.tools = weather();
    request.options.thinking = Some(Thinking::Effort("low".into()));
    check("signatures_are_replayed", &gemini(), &request);
}

// Ids that the API did not give are not sent to it; thoughts with signatures and parts of unknown types go back as they came.
#[test]
fn replies_of_2_5() {
    let reply = reply(json!([
        {"text": "I think", "thought": true, "thoughtSignature": "VEhP"},
        {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}},
        {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}},
        {"functionCall": {"name": "get_weather", "args": {"city": "Oslo"}}},
        {"functionCall": {"name": "get_weather", "args": {"city": "Rome"}}},
    ]));
    let reply = decoded(&older(), &reply);
    let ids: Vec<String> = reply.tool_calls().iter().map(|call| call.id.clone()).collect();
    let mut request = request(vec![Message::user("weather?"), reply, result(&ids[0], "1°C"), result(&ids[1], "20°C")]);
    request.tools = weather();
    request.options.thinking = Some(Thinking::Budget(2048));
    check("replies_of_2.5", &older(), &request);
}

// The signature that is given for calls of others stands on the first call of each reply, and only from Gemini 3 on.
#[test]
fn after_a_switch_of_provider() {
    let claude = AnthropicMessages::new(origin("anthropic", "claude"));
    let foreign = json!({"content": [
        {"type": "thinking", "thinking": "private musing", "signature": "EqQB"},
        {"type": "text", "text": "Calling."},
        {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Oslo"}},
        {"type": "tool_use", "id": "toolu_2", "name": "get_weather", "input": {"city": "Rome"}},
    ], "stop_reason": "tool_use"});
    let sibling = GenerateContent::new(origin("gemini", "gemini-3-pro"));
    let other = reply(json!([
        {"functionCall": {"id": "fc9", "name": "get_time", "args": {}}, "thoughtSignature": "T1RI"},
    ]));
    let history = vec![
        Message::user("weather?"),
        decoded(&claude, &foreign),
        result("toolu_1", "1°C"),
        result("toolu_2", ""),
        decoded(&sibling, &other),
        Message::tool("fc9", "get_time", ToolStatus::Ok, "12:00"),
    ];
    for (name, dialect) in [("after_a_switch_of_provider", gemini()), ("after_a_switch_of_provider_2.5", older())] {
        let mut request = request(history.clone());
        request.tools = weather();
        check(name, &dialect, &request);
    }
}

#[test]
fn tool_choice() {
    let mut request = request(vec![Message::user("weather?")]);
    request.tools = ToolSet::new([
        tool("weather.current", "Weather of a city.", Some(CITY)),
        tool("2fa", "", Some(r#"{"description":"no arguments"}"#)),
    ])
    .expect("the names differ");
    request.tool_choice = Some(ToolChoice::Tool("2fa".into()));
    request.options.parallel_tool_calls = Some(false);
    request.events = EventSink::new(|_| {});
    check("tool_choice", &gemini(), &request);
}

// W3
#[test]
fn schemas() {
    let schema = r##"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","additionalProperties":false,
        "properties":{"to":{"$ref":"#/$defs/Person"},"when":{"type":["string","null"],"format":"date-time"},
            "kind":{"const":"mail"},"tags":{"type":"array","items":{"type":"string","minLength":1},"uniqueItems":true},
            "more":{"type":["object","null"],"properties":{"cc":{"$ref":"#/$defs/Person"}},"required":["cc","bcc"]}},
        "required":["to"],
        "$defs":{"Person":{"type":"object","properties":{"name":{"type":"string","pattern":"^\\S"},
            "boss":{"$ref":"#/$defs/Person"}},"required":["name"]}}}"##;
    let mut request = request(vec![Message::user("write")]);
    request.tools = ToolSet::new([tool("send", "Sends a mail.", Some(schema)), tool("now", "", None)]).unwrap();
    request.tool_choice = Some(ToolChoice::Required);
    check("schemas", &gemini(), &request);
}

#[test]
fn broken_arguments() {
    let mut request = request(vec![
        Message::user("weather?"),
        Message::Assistant(calls(&[("c1", "get_weather", r#"{"city": "Os"#)])),
        Message::tool("c1", "get_weather", ToolStatus::Error, "The arguments are not valid JSON."),
    ]);
    request.tools = weather();
    check("broken_arguments", &gemini(), &request);
}

#[test]
fn mapped_and_repeated_ids() {
    let mut request = request(vec![
        Message::user("x"),
        Message::Assistant(calls(&[
            ("get_weather", "get_weather", r#"{"city":"A"}"#),
            ("get_weather", "get_weather", r#"{"city":"B"}"#),
            ("编号", "get_weather", r#"{"city":"C"}"#),
        ])),
        result("get_weather", "1"),
        result("get_weather", "2"),
        result("编号", "3"),
        Message::Assistant(calls(&[("get_weather", "get_weather", r#"{"city":"D"}"#)])),
        result("get_weather", "4"),
    ]);
    request.tools = weather();
    check("mapped_and_repeated_ids", &gemini(), &request);
}

// M6
#[test]
fn damaged_history() {
    let mut begun = calls(&[("c1", "get_weather", r#"{"city":"Oslo"}"#), ("c2", "get_time", "{}")]);
    begun.content = Some("Doing it.".into());
    let mut request = request(vec![
        result("c9", "orphan"),
        Message::assistant("So."),
        Message::user("a"),
        Message::Assistant(begun),
        Message::user("  "),
        result("c2", "12:00"),
        Message::assistant(" "),
        Message::assistant("c"),
    ]);
    request.tools = weather();
    request.options.thinking = Some(Thinking::Off);
    check("damaged_history", &gemini(), &request);
}

#[test]
fn thinking_of_2_5() {
    let mut request = request(vec![Message::user("think")]);
    request.options.thinking = Some(Thinking::Effort("medium".into()));
    check("thinking_of_2.5", &older(), &request);
}
