//! What is refused, what is told, and what is encoded only once. (Bodies are in the golden files.)

use cepa_core::{ChatOptions, Media, Origin, Part, RawJson, Thinking, Tool, ToolChoice, ToolOutput, ToolSet, ToolSpec};
use serde_json::{Value, json};

use super::{super::Quirks, *};
use crate::wire::openai_chat::ThinkingName;

fn dialect(quirks: Quirks) -> OpenAiChat {
    OpenAiChat::new(Origin { provider: "p".into(), model: "m".into() }, quirks)
}

fn body(request: &ChatRequest) -> Result<Value, Error> {
    encode(&dialect(Quirks::default()), request).map(|pieces| serde_json::from_slice(&pieces.concat()).unwrap())
}

fn error(request: &ChatRequest) -> (ErrorKind, String) {
    let error = body(request).unwrap_err();
    (error.kind(), error.message().to_owned())
}

fn user(part: Part) -> ChatRequest {
    ChatRequest::new(vec![Message::user("first"), Message::user(vec![part])])
}

fn tools(list: &[(&str, Option<&str>)]) -> ToolSet {
    ToolSet::new(list.iter().map(|(name, schema)| {
        let spec = ToolSpec::new(name, "", *schema).unwrap();
        Tool::new(spec, |_, _| async { Ok(ToolOutput::new("")) })
    }))
    .unwrap()
}

fn hi() -> ChatRequest {
    ChatRequest::new(vec![Message::user("hi")])
}

// W3: refused with the place and what to do about it, never dropped.
#[test]
fn what_the_wire_cannot_take_from_a_user_is_refused() {
    let bytes = &b"x"[..];
    for (part, told) in [
        (Part::Image(Media::bytes("image/*", bytes)), "image/png"),
        (Part::Image(Media::bytes("application/pdf", bytes)), "image/png"),
        (Part::Audio(Media::bytes("audio/flac", bytes)), "audio/wav"),
        (Part::Audio(Media::url("https://x/a.wav")), "bytes"),
        (Part::Document(Media::url("https://x/a.pdf")), "bytes"),
        (Part::Document(Media::bytes("pdf", bytes)), "application/pdf"),
        (Part::Other(RawJson::parse(r#"{"type":"hologram"}"#).unwrap()), "hologram"),
    ] {
        let (kind, message) = error(&user(part));
        assert_eq!(kind, ErrorKind::InvalidInput);
        assert!(message.contains(told) && message.starts_with("message 1 of the conversation"), "{message}");
    }
    let image = Part::Image(Media::bytes("image/png", bytes).named("map.png"));
    for messages in [vec![Message::system(vec![image.clone()])], vec![Message::user("x"), Message::system(vec![image])]]
    {
        let (kind, message) = error(&ChatRequest::new(messages));
        assert_eq!(kind, ErrorKind::InvalidInput);
        assert!(message.contains("map.png"), "{message}");
    }
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    assert_eq!(error(&ChatRequest::default()).0, ErrorKind::InvalidInput);
    let choice = ChatRequest { tool_choice: Some(ToolChoice::Tool("gone".into())), ..hi() };
    assert_eq!(error(&choice).0, ErrorKind::InvalidInput);
    let options = ChatOptions { temperature: Some(f64::NAN), ..ChatOptions::default() };
    assert_eq!(error(&ChatRequest { options, ..hi() }).0, ErrorKind::InvalidConfig);
    let (kind, message) = error(&ChatRequest { tools: tools(&[("odd", Some(r#"{"properties":[]}"#))]), ..hi() });
    assert_eq!(kind, ErrorKind::InvalidTool);
    assert!(message.contains("`odd`"), "{message}");
}

#[test]
fn without_tools_nothing_is_said_of_them() {
    for choice in [ToolChoice::Auto, ToolChoice::None, ToolChoice::Required] {
        let options = ChatOptions { parallel_tool_calls: Some(false), ..ChatOptions::default() };
        let body = body(&ChatRequest { tool_choice: Some(choice), options, ..hi() }).unwrap();
        assert_eq!(body, json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]}));
    }
}

#[test]
fn schemas_keep_their_own_text() {
    let schema =
        "{\"$defs\" : {},  \"required\":[\"b\",\"a\"], \"type\":\"object\",\"properties\":{\"b\":{},\"a\":{}}}";
    let request = ChatRequest { tools: tools(&[("t", Some(schema))]), ..hi() };
    let sent = encode(&dialect(Quirks::default()), &request).unwrap().concat();
    assert!(String::from_utf8(sent).unwrap().contains(schema));
}

#[test]
fn thinking_is_asked_for_in_each_servers_words() {
    let sent = |name, thinking| {
        let quirks = Quirks { thinking: name, ..Quirks::default() };
        let options = ChatOptions { thinking: Some(thinking), ..ChatOptions::default() };
        let pieces = encode(&dialect(quirks), &ChatRequest { options, ..hi() }).unwrap();
        let Value::Object(mut body) = serde_json::from_slice(&pieces.concat()).unwrap() else { panic!("no object") };
        body.remove("model");
        body.remove("messages");
        Value::Object(body)
    };
    let effort = || Thinking::Effort("high".into());
    for (name, thinking, members) in [
        (ThinkingName::ReasoningEffort, Thinking::Off, json!({"reasoning_effort": "none"})),
        (ThinkingName::ReasoningEffort, Thinking::Budget(1), json!({"reasoning_effort": "low"})),
        (ThinkingName::ReasoningEffort, Thinking::Budget(8192), json!({"reasoning_effort": "medium"})),
        (ThinkingName::ReasoningEffort, Thinking::Budget(8193), json!({"reasoning_effort": "high"})),
        (ThinkingName::ReasoningEffort, effort(), json!({"reasoning_effort": "high"})),
        (ThinkingName::ReasoningObject, Thinking::Off, json!({"reasoning": {"effort": "none"}})),
        (ThinkingName::ReasoningObject, Thinking::Budget(7), json!({"reasoning": {"max_tokens": 7}})),
        (ThinkingName::ThinkingSwitch, Thinking::Off, json!({"thinking": {"type": "disabled"}})),
        (ThinkingName::ThinkingSwitch, effort(), json!({"thinking": {"type": "enabled"}, "reasoning_effort": "high"})),
        (ThinkingName::EnableThinking, Thinking::Off, json!({"enable_thinking": false})),
        (ThinkingName::EnableThinking, Thinking::Budget(7), json!({"enable_thinking": true, "thinking_budget": 7})),
        (ThinkingName::EnableThinking, effort(), json!({"enable_thinking": true, "thinking_budget": 24_576})),
    ] {
        assert_eq!(sent(name, thinking.clone()), members, "{name:?} {thinking:?}");
    }
}

#[test]
fn members_that_are_passed_through_take_the_place_of_ours() {
    let Value::Object(extra) = json!({"model": "other", "tools": [], "stream": false, "messages": [], "z": null})
    else {
        panic!("no object")
    };
    let request = ChatRequest {
        options: ChatOptions { extra, ..ChatOptions::default() },
        tools: tools(&[("t", None)]),
        events: cepa_core::EventSink::new(|_| {}),
        ..hi()
    };
    let expected = json!({
        "model": "other", "messages": [], "tools": [], "stream": false, "stream_options": {"include_usage": true}, "z": null
    });
    assert_eq!(body(&request).unwrap(), expected);
}

#[test]
fn large_messages_are_shared_between_requests_and_small_ones_sent_together() {
    let image = Part::Image(Media::bytes("image/png", vec![7; 100_000]));
    let mut request = ChatRequest::new(vec![Message::user("a"), Message::user(vec![image]), Message::user("b")]);
    let dialect = dialect(Quirks::default());
    let before = encode(&dialect, &request).unwrap();
    assert_eq!(before.len(), 3);
    request.messages.push(Message::user("c"));
    let after = encode(&dialect, &request).unwrap();
    assert_eq!(after[1].as_ptr(), before[1].as_ptr());
}

// FR-085: schemas are not written anew for every request.
#[test]
fn tools_are_described_once_per_set() {
    let request = ChatRequest { tools: tools(&[("t", Some(&format!(r#"{{"d":"{}"}}"#, "x".repeat(20_000))))]), ..hi() };
    let dialect = dialect(Quirks::default());
    let (first, second) = (encode(&dialect, &request).unwrap(), encode(&dialect, &request).unwrap());
    assert_eq!(first[1].as_ptr(), second[1].as_ptr());
}
