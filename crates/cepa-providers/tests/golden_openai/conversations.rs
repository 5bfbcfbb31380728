//! The requests whose bodies are kept as golden files.

use cepa_core::{
    Args, AssistantMessage, ChatOptions, ChatRequest, Content, EventSink, Extra, FinishReason, Media, Message, Origin,
    Part, RawJson, Replay, Thinking, Tool, ToolCall, ToolChoice, ToolOutput, ToolSet, ToolSpec, ToolStatus,
};
use serde_json::json;

const WEATHER: &str =
    r#"{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"]}"#;
/// One transparent pixel.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

pub(crate) fn tools(list: &[(&str, &str, Option<&str>)]) -> ToolSet {
    ToolSet::new(list.iter().map(|(name, description, schema)| {
        let spec = ToolSpec::new(name, description, *schema).unwrap();
        Tool::new(spec, |_, _| async { Ok(ToolOutput::new("")) })
    }))
    .unwrap()
}

fn weather() -> ToolSet {
    tools(&[("get_weather", "The weather in a city.", Some(WEATHER)), ("get_time", "The time.", None)])
}

fn call(id: &str, name: &str, args: &str) -> ToolCall {
    ToolCall::new(id, name, Args::decode(args))
}

fn calls(text: &str, calls: Vec<ToolCall>) -> Message {
    let content = (!text.is_empty()).then(|| text.into());
    Message::Assistant(AssistantMessage { content, tool_calls: calls, ..AssistantMessage::default() })
}

fn result(id: &str, name: &str, text: &str) -> Message {
    Message::tool(id, name, ToolStatus::Ok, text)
}

fn request(messages: Vec<Message>) -> ChatRequest {
    ChatRequest::new(messages)
}

pub(crate) fn text() -> ChatRequest {
    let mut request =
        request(vec![Message::user("晴れですか?"), Message::assistant("はい。"), Message::user("ok \"bye\" \u{1}")]);
    request.system_prompt = Some("You are brief.".into());
    request
}

pub(crate) fn images() -> ChatRequest {
    request(vec![Message::user(vec![
        Part::Text("What is the difference?".into()),
        Part::Image(Media::bytes("image/png", PNG)),
        Part::Image(Media::url("https://example.com/cat.jpg")),
    ])])
}

pub(crate) fn documents() -> ChatRequest {
    request(vec![Message::user(vec![
        Part::Document(Media::bytes("application/pdf", &b"%PDF-1.7"[..])),
        Part::Document(Media::bytes("application/pdf", &b"%PDF-1.7"[..]).named("offer.pdf")),
        Part::Document(Media::bytes("text/csv; charset=utf-8", &b"a,b\n1,2\n"[..]).named("data.csv")),
        Part::Audio(Media::bytes("audio/wav", &b"RIFF"[..])),
        Part::Text("Summarise.".into()),
    ])])
}

pub(crate) fn parallel_calls() -> ChatRequest {
    let mut request = request(vec![
        Message::user("Weather in Oslo and Rome, and the time?"),
        calls(
            "Checking.",
            vec![
                call("call_1", "get_weather", r#"{"city":"Oslo", "days": 12345678901234567890}"#),
                call("call_2", "get_weather", r#"{"city":"Rome"}"#),
                call("call_3", "get_time", ""),
            ],
        ),
        result("call_1", "get_weather", "1°C"),
        result("call_2", "get_weather", ""),
        result("call_3", "get_time", "12:00"),
        Message::user("thanks"),
    ]);
    request.tools = weather();
    request.options.parallel_tool_calls = Some(false);
    request
}

pub(crate) fn tool_errors() -> ChatRequest {
    let mut request = request(vec![
        Message::user("go"),
        calls("", (1..=6).map(|n| call(&format!("c{n}"), "get_time", "{}")).collect()),
        Message::tool("c1", "get_time", ToolStatus::Error, "the clock is broken"),
        Message::tool("c2", "get_time", ToolStatus::Error, ""),
        Message::tool("c3", "get_time", ToolStatus::Rejected, " "),
        Message::tool("c4", "get_time", ToolStatus::Cancelled, ""),
        Message::tool("c5", "get_time", ToolStatus::Expired, ""),
        Message::tool("c6", "get_time", ToolStatus::Unknown, ""),
    ]);
    request.tools = weather();
    request
}

pub(crate) fn several_system_messages() -> ChatRequest {
    let mut request = request(vec![
        Message::system("Second."),
        Message::system("  "),
        Message::system(vec![Part::Text("Third.".into())]),
        Message::user("hi"),
        Message::assistant("hello"),
        Message::system("From now on in French."),
        Message::user("bye"),
    ]);
    request.system_prompt = Some("First.".into());
    request
}

pub(crate) fn damaged_history() -> ChatRequest {
    request(vec![
        result("gone", "x", "nobody asked"),
        Message::user("a"),
        calls("", vec![call("c1", "x", "{}"), call("c2", "y", "{}")]),
        result("c2", "y", "ok"),
        result("c2", "y", "again"),
        Message::user("b"),
    ])
}

pub(crate) fn blank_messages() -> ChatRequest {
    let reasoning = Content::Parts(vec![Part::Reasoning("only thoughts".into())]);
    request(vec![
        Message::user(""),
        Message::assistant(reasoning),
        Message::user(Content::Parts(vec![])),
        Message::Assistant(AssistantMessage::default()),
        Message::user(vec![Part::Text(String::new()), Part::Text("one".into())]),
        Message::user(vec![Part::Text("one".into()), Part::Text("two".into())]),
    ])
}

pub(crate) fn tool_choice() -> ChatRequest {
    let mut request = request(vec![Message::user("hi")]);
    request.tools = tools(&[
        ("files.read", "Reads a file.", Some(r#"{"properties":{"path":{"type":"string"}},"required":["path"]}"#)),
        ("no.type", "", Some("{}")),
        ("plain", "Plain.", Some(r#"{ "type" : "object" }"#)),
    ]);
    request.tool_choice = Some(ToolChoice::Tool("files.read".into()));
    request
}

pub(crate) fn options() -> ChatRequest {
    let mut request = request(vec![Message::user("hi")]);
    request.tools = weather();
    request.tool_choice = Some(ToolChoice::Required);
    let serde_json::Value::Object(extra) =
        json!({"seed": 7, "temperature": 0, "metadata": {"team": "search"}, "service_tier": "flex"})
    else {
        unreachable!()
    };
    request.options = ChatOptions {
        max_tokens: Some(100),
        temperature: Some(0.5),
        top_p: Some(0.9),
        stop: vec!["END".into(), "\n\n".into()],
        parallel_tool_calls: Some(true),
        thinking: Some(Thinking::Effort("minimal".into())),
        extra,
        ..ChatOptions::default()
    };
    request
}

pub(crate) fn streamed() -> ChatRequest {
    let mut request = request(vec![Message::user("hi")]);
    request.events = EventSink::new(|_| {});
    request.options.thinking = Some(Thinking::Budget(4000));
    request
}

pub(crate) fn provider_switch() -> ChatRequest {
    let origin = Origin { provider: "anthropic".into(), model: "claude-sonnet-4-5".into() };
    let block = |data: serde_json::Value| Replay {
        format: "anthropic".into(),
        provider: "anthropic".into(),
        model: "claude-sonnet-4-5".into(),
        data: RawJson::of(&data).unwrap(),
    };
    let mut request = request(vec![
        Message::user("weather?"),
        Message::Assistant(AssistantMessage {
            content: Some(vec![Part::Reasoning("private".into()), Part::Text("I look.".into())].into()),
            tool_calls: vec![call("toolu_01A", "get_weather", r#"{"city":"Oslo"}"#)],
            origin: Some(origin.clone()),
            finish_reason: Some(FinishReason::ToolCalls),
            replay: vec![block(json!({"type": "thinking", "thinking": "private", "signature": "SIG"}))],
            ..AssistantMessage::default()
        }),
        result("toolu_01A", "get_weather", "sunny"),
        Message::Assistant(AssistantMessage {
            content: Some(
                vec![Part::Text("Here: ".into()), Part::Image(Media::bytes("image/png", PNG).named("map.png"))].into(),
            ),
            origin: Some(origin),
            finish_reason: Some(FinishReason::Stop),
            ..AssistantMessage::default()
        }),
        Message::user("and tomorrow?"),
    ]);
    request.tools = weather();
    request
}

pub(crate) fn broken_args() -> ChatRequest {
    let mut request = request(vec![
        Message::user("x"),
        calls("", vec![call("c1", "get_weather", r#"{"city":"Os"#), call("c2", "get_weather", "[1]")]),
        Message::tool("c1", "get_weather", ToolStatus::Error, "the arguments are not valid JSON"),
        Message::tool("c2", "get_weather", ToolStatus::Error, "the arguments are not a JSON object"),
        Message::user("again"),
    ]);
    request.tools = weather();
    request
}

pub(crate) fn mapped_ids() -> ChatRequest {
    let vllm = "chatcmpl-tool-0123456789abcdef0123456789abcdef";
    let ids = ["", "", "get_weather", "get_weather", vllm, "с1", "functions.get_weather:0"];
    let mut messages = vec![Message::user("x")];
    messages.push(calls("", ids.iter().map(|id| call(id, "get_weather", "{}")).collect()));
    messages.extend(ids.iter().enumerate().map(|(n, id)| result(id, "get_weather", &n.to_string())));
    messages.push(calls("", vec![call("get_weather", "get weather!", "{}")]));
    messages.push(result("get_weather", "get weather!", "the same id in another turn"));
    request(messages)
}

pub(crate) fn media_in_results() -> ChatRequest {
    let shot = Content::Parts(vec![
        Part::Text("The screen: ".into()),
        Part::Image(Media::bytes("image/png", PNG).named("screen.png")),
        Part::Audio(Media::bytes("audio/flac", &b"fLaC"[..])),
    ]);
    let page = Content::Parts(vec![Part::Document(Media::bytes("application/pdf", &b"%PDF-1.7"[..]))]);
    request(vec![
        Message::user("look"),
        calls("", vec![call("c1", "screenshot", "{}"), call("c2", "print", "{}"), call("c3", "wait", "{}")]),
        Message::tool("c1", "screenshot", ToolStatus::Ok, shot),
        Message::tool("c2", "print", ToolStatus::Ok, page),
        result("c3", "wait", "done"),
        Message::user("and?"),
    ])
}

/// A turn with reasoning and with what a provider put beside it, made by this very model.
pub(crate) fn own_reasoning(origin: Origin) -> ChatRequest {
    let data = json!({
        "reasoning_details": [{"type": "reasoning.encrypted", "data": "XX", "index": 0}],
        "extra_content": {"google": {"thought_signature": "bWVzc2FnZQ=="}},
        "not_ours": true
    });
    let replay = Replay {
        format: "openai_chat".into(),
        provider: origin.provider.to_string(),
        model: origin.model.to_string(),
        data: RawJson::of(&data).unwrap(),
    };
    let mut signed = call("call_1", "get_weather", r#"{"city":"Oslo"}"#);
    let signature = RawJson::parse(r#"{"google": {"thought_signature": "c2ln+/="}}"#).unwrap();
    signed.extra =
        Extra::from([("extra_content".to_owned(), signature), ("not_ours".to_owned(), RawJson::empty_object())]);
    let mut request = request(vec![
        Message::user("weather?"),
        Message::Assistant(AssistantMessage {
            content: Some(vec![Part::Reasoning("I need the tool.".into())].into()),
            tool_calls: vec![signed, call("call_2", "get_time", "{}")],
            origin: Some(origin),
            replay: vec![replay],
            ..AssistantMessage::default()
        }),
        result("call_1", "get_weather", "sunny"),
        result("call_2", "get_time", "12:00"),
        calls("", vec![call("call_3", "get_time", "{}")]),
        result("call_3", "get_time", "12:01"),
        Message::system("Be brief."),
        Message::user("thanks"),
    ]);
    request.options =
        ChatOptions { max_tokens: Some(50), thinking: Some(Thinking::Budget(2000)), ..ChatOptions::default() };
    request.events = EventSink::new(|_| {});
    request
}
