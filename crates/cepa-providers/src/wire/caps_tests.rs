//! W1: whatever comes, in whatever pieces, no more than the bounds is kept, and what passed them is told.

use cepa_core::{ChatResponse, Origin};
use serde_json::json;

use super::*;
use crate::wire::{
    Dialect,
    anthropic::{AnthropicMessages, ApiVersion},
    gemini::GenerateContent,
    openai_chat::{OpenAiChat, Quirks},
    openai_responses::{self, Responses},
    reply::{ReplyDecoder, whole},
};

fn openai() -> OpenAiChat {
    OpenAiChat::new(Origin { provider: "p".into(), model: "m".into() }, Quirks::default())
}

fn anthropic() -> AnthropicMessages {
    AnthropicMessages::new(Origin { provider: "p".into(), model: "m".into() })
}

/// What a stream gives in pieces of this size, and what was heard.
fn stream(
    dialect: &impl Dialect,
    caps: Caps,
    body: &str,
    size: usize,
) -> (Result<ChatResponse, Error>, Vec<ChatEvent>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&heard);
    let sink = EventSink::new(move |event| keep.lock().unwrap().push(event));
    let mut reply = ReplyDecoder::new(dialect, sink).with_caps(caps);
    let pushed = body.as_bytes().chunks(size).try_for_each(|chunk| reply.push(chunk));
    let result = pushed.and_then(|()| reply.finish());
    let heard = heard.lock().unwrap().clone();
    (result, heard)
}

/// The same for every cut; without an error, how many calls there are.
fn outcome(dialect: &impl Dialect, caps: Caps, body: &str) -> Result<usize, String> {
    let one = |size| {
        let (result, heard) = stream(dialect, caps, body, size);
        let result = result.map(|response| response.message.tool_calls.len());
        (result.map_err(|error| format!("{error} {:?}", error.partial_text())), heard)
    };
    let at_once = one(body.len());
    for size in [1, 7, 64] {
        // (A reader stops at the end of a reply; this one goes on, which must not matter either.)
        let (result, heard) = one(size);
        assert_eq!((&result, heard.len()), (&at_once.0, at_once.1.len()), "in pieces of {size}");
    }
    let begun = at_once.1.iter().filter(|event| matches!(event, ChatEvent::CallBegun { .. })).count();
    assert!(begun <= caps.calls, "{begun} calls were told");
    at_once.0
}

fn data(events: impl IntoIterator<Item = serde_json::Value>) -> String {
    events.into_iter().map(|event| format!("data: {event}\n\n")).collect()
}

fn openai_calls(count: usize, args: &str) -> String {
    let call = |index| {
        let call = json!({"index": index, "id": format!("c{index}"), "function": {"name": "f", "arguments": args}});
        json!({"choices": [{"delta": {"tool_calls": [call]}}]})
    };
    let end = json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]});
    data((0..count).map(call).chain([end]))
}

fn anthropic_calls(count: usize, args: &str) -> String {
    let call = |index| {
        let block = json!({"type": "tool_use", "id": format!("c{index}"), "name": "f", "input": {}});
        let delta = json!({"type": "input_json_delta", "partial_json": args});
        [
            json!({"type": "content_block_start", "index": index, "content_block": block}),
            json!({"type": "content_block_delta", "index": index, "delta": delta}),
            json!({"type": "content_block_stop", "index": index}),
        ]
    };
    data((0..count).flat_map(call).chain([json!({"type": "message_stop"})]))
}

const SMALL: Caps = Caps { event_bytes: 1_000, reply_bytes: 4_000, calls: 3, args_bytes: 20, json_depth: 127 };

// W10
#[test]
fn calls_past_the_bounds_end_the_reply() {
    let args = r#"{"a":"12345678"}"#;
    for count in 1..=3 {
        assert_eq!(outcome(&openai(), SMALL, &openai_calls(count, args)), Ok(count));
        assert_eq!(outcome(&anthropic(), SMALL, &anthropic_calls(count, args)), Ok(count));
    }
    for result in
        [outcome(&openai(), SMALL, &openai_calls(4, args)), outcome(&anthropic(), SMALL, &anthropic_calls(4, args))]
    {
        let error = result.unwrap_err();
        assert!(error.starts_with("decode: the reply holds more than 3 tool calls"), "{error}");
    }
    let large = r#"{"a":"1234567890123"}"#;
    for result in
        [outcome(&openai(), SMALL, &openai_calls(1, large)), outcome(&anthropic(), SMALL, &anthropic_calls(1, large))]
    {
        let error = result.unwrap_err();
        assert!(error.starts_with("decode: the arguments of a tool call are larger than 20 bytes"), "{error}");
    }
}

// W10
#[test]
fn a_stream_without_end_ends_with_its_text() {
    let text = json!({"choices": [{"delta": {"content": "half"}}]});
    let mut body = data([text]);
    body.push_str(&": still here\n\n".repeat(400));
    let error = outcome(&openai(), SMALL, &body).unwrap_err();
    assert!(error.starts_with("decode: the reply is larger than 4000 bytes"), "{error}");
    assert!(error.ends_with(r#"Some("half")"#), "{error}");
    let blocks = data(std::iter::repeat_n(json!({"type": "ping"}), 400));
    assert!(outcome(&anthropic(), SMALL, &blocks).unwrap_err().contains("larger than 4000 bytes"));
    let event = data([json!({"choices": [{"delta": {"content": "x".repeat(1_000)}}]})]);
    assert!(outcome(&openai(), SMALL, &event).unwrap_err().contains("larger than 1000 bytes"));
    // Exactly as large as allowed is allowed.
    let body = openai_calls(1, "{}");
    let exact = Caps { reply_bytes: body.len(), ..SMALL };
    assert_eq!(outcome(&openai(), exact, &body), Ok(1));
    assert!(outcome(&openai(), Caps { reply_bytes: body.len() - 1, ..SMALL }, &body).is_err());
}

#[test]
fn what_follows_the_end_of_a_reply_is_not_its_fault() {
    let end = json!({"choices": [{"delta": {"content": "all"}, "finish_reason": "stop"}]});
    let body = format!("{}data: [DONE]\n\ndata: {}\n\n", data([end]), "x".repeat(5_000));
    assert_eq!(outcome(&openai(), SMALL, &body), Ok(0));
}

// W10
#[test]
fn a_reply_in_one_piece_has_the_same_bounds() {
    let body = |count: usize, args: &str| {
        let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": args}});
        let calls: Vec<_> = std::iter::repeat_n(call, count).collect();
        json!({"choices": [{"message": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}).to_string()
    };
    let calls = |count, args: &str| {
        whole(&openai(), SMALL, body(count, args).as_bytes())
            .map(|response| response.message.tool_calls.len())
            .map_err(|error| (error.kind(), error.message().to_owned()))
    };
    assert_eq!(calls(3, "{}"), Ok(3));
    assert!(calls(4, "{}").unwrap_err().1.contains("more than 3 tool calls"));
    assert!(calls(1, &" ".repeat(21).replace(' ', "1")).unwrap_err().1.contains("larger than 20 bytes"));
}

#[test]
fn a_flood_of_blocks_is_an_error() {
    let block = json!({"type": "content_block_start", "content_block": {"type": "text", "text": ""}});
    let (result, _) = stream(&anthropic(), Caps::default(), &data(std::iter::repeat_n(block, 5_000)), 1 << 16);
    assert!(result.unwrap_err().message().contains("more than 4096 blocks"));
}

/// A reply and a stream of each dialect, both with something in the place of what may be anything.
fn every_dialect(
    check: impl Fn(&str, Result<ChatResponse, Error>, Result<ChatResponse, Error>),
    caps: Caps,
    value: &str,
) {
    fn both(dialect: &impl Dialect, caps: Caps, body: &str, event: &str) -> [Result<ChatResponse, Error>; 2] {
        [whole(dialect, caps, body.as_bytes()), stream(dialect, caps, &format!("data: {event}\n\n"), 1 << 16).0]
    }
    let origin = || Origin { provider: "p".into(), model: "gemini-3-m".into() };
    let message = format!(r#"{{"type":"message","id":"m","role":"assistant","x":{value},"content":"hi"}}"#);
    let output = format!(r#"{{"status":"completed","output":[{message}]}}"#);
    let chat =
        |name: &str| format!(r#"{{"choices":[{{"finish_reason":"stop","{name}":{{"content":"hi","x":{value}}}}}]}}"#);
    let block = format!(r#"{{"type":"server_tool_use","id":"s","name":"n","input":{value}}}"#);
    let part =
        format!(r#"{{"candidates":[{{"finishReason":"STOP","content":{{"parts":[{{"text":"hi","x":{value}}}]}}}}]}}"#);
    let claude = format!(r#"{{"type":"message","stop_reason":"end_turn","content":[{block}]}}"#);
    let begun = format!(r#"{{"type":"content_block_start","index":0,"content_block":{block}}}"#);
    let begun = format!("{begun}\n\ndata: {}", r#"{"type":"message_stop"}"#);
    let newer = anthropic().with_version(ApiVersion::V2026_10_21);
    for (name, [reply, stream]) in [
        ("openai_chat", both(&openai(), caps, &chat("message"), &chat("delta"))),
        (
            "openai_responses",
            both(
                &Responses::new(origin(), openai_responses::Quirks::default()),
                caps,
                &output,
                &format!(r#"{{"type":"response.completed","response":{output}}}"#),
            ),
        ),
        ("anthropic", both(&anthropic(), caps, &claude, &begun)),
        ("anthropic, newer", both(&newer, caps, &claude, &begun)),
        ("gemini", both(&GenerateContent::new(origin()), caps, &part, &part)),
    ] {
        check(name, reply, stream);
    }
}

/// Brackets in texts, and brackets beside each other, make nothing deep.
#[test]
fn many_brackets_are_no_depth() {
    let text = format!(r#"[{}"{}"]"#, "[],{},".repeat(300), "[{".repeat(300));
    for most in [2, 3] {
        Caps { json_depth: most, ..Caps::default() }.check_depth(text.as_bytes()).unwrap();
    }
    Caps { json_depth: 1, ..Caps::default() }.check_depth(text.as_bytes()).unwrap_err();
    for (json, begins) in
        [(" \r\n\t\x0b {", "{"), ("\u{feff}\u{a0} [", "["), (" \u{2003}", ""), ("", ""), ("\x1fé", "\x1fé")]
    {
        assert_eq!(begin(json.as_bytes()), begins.as_bytes(), "{json:?}");
    }
}

fn nested(depth: usize) -> [String; 2] {
    let list = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    [list, format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth))]
}

// W1, W10: nothing here recurses as deep as a server likes, or keeps it for somebody who would.
#[test]
fn what_is_nested_too_deep_is_an_error() {
    let too_deep = |most: usize| {
        move |name: &str, reply: Result<ChatResponse, Error>, stream: Result<ChatResponse, Error>| {
            for error in [reply.unwrap_err(), stream.unwrap_err()] {
                let expected = format!("the reply is nested deeper than {most} times");
                assert_eq!(error.kind(), ErrorKind::Decode, "{name}: {error}");
                assert!(error.message().starts_with(&expected), "{name}: {error}");
                assert!(error.message().contains("`caps`"), "{name}: {error}");
            }
        }
    };
    let taken = |name: &str, reply: Result<ChatResponse, Error>, stream: Result<ChatResponse, Error>| {
        for result in [reply, stream] {
            assert!(result.is_ok(), "{name}: {result:?}");
        }
    };
    for value in nested(100_000) {
        every_dialect(too_deep(127), Caps::default(), &value);
        // A setting does not make it deeper than is read.
        every_dialect(too_deep(127), Caps { json_depth: usize::MAX, ..Caps::default() }, &value);
    }
    let close = Caps { json_depth: 20, ..Caps::default() };
    for value in nested(20) {
        every_dialect(too_deep(20), close, &value);
        every_dialect(taken, Caps::default(), &value);
    }
    every_dialect(taken, close, r#"{"a":[[["]]]", "[[[[[[[[[[[[[[[[[[[[[[", "\"{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{"]]]}"#);
}

#[test]
fn a_body_of_brackets_is_an_error() {
    let body = "[".repeat(100_000);
    let gemini = GenerateContent::new(Origin { provider: "p".into(), model: "m".into() });
    let responses =
        Responses::new(Origin { provider: "p".into(), model: "m".into() }, openai_responses::Quirks::default());
    let event = format!("data: {body}\n\n");
    let caps = Caps::default();
    for (name, result) in [
        ("openai_chat", whole(&openai(), caps, body.as_bytes())),
        ("openai_responses", whole(&responses, caps, body.as_bytes())),
        ("anthropic", whole(&anthropic(), caps, body.as_bytes())),
        ("gemini", whole(&gemini, caps, body.as_bytes())),
        ("openai_chat, streamed", stream(&openai(), caps, &event, 1 << 16).0),
        ("openai_responses, streamed", stream(&responses, caps, &event, 1 << 16).0),
        ("anthropic, streamed", stream(&anthropic(), caps, &event, 1 << 16).0),
        ("gemini, streamed", stream(&gemini, caps, &event, 1 << 16).0),
        // Without the bounds, which are not the dialect's.
        ("openai_chat, alone", openai().decode(body.as_bytes())),
        ("openai_responses, alone", responses.decode(body.as_bytes())),
        ("anthropic, alone", anthropic().decode(body.as_bytes())),
        ("gemini, alone", gemini.decode(body.as_bytes())),
    ] {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Decode, "{name}");
    }
}

// W10
#[test]
fn arguments_have_the_same_depth() {
    let caps = Caps { json_depth: 20, ..Caps::default() };
    let [list, object] = nested(19);
    assert_eq!(outcome(&openai(), caps, &openai_calls(1, &format!(r#"{{"a":{list}}}"#))), Ok(1));
    assert_eq!(outcome(&anthropic(), caps, &anthropic_calls(1, &format!(r#"{{"a":{object}}}"#))), Ok(1));
    let [list, object] = nested(20);
    for result in [
        outcome(&openai(), caps, &openai_calls(1, &format!(r#"{{"a":{list}}}"#))),
        outcome(&anthropic(), caps, &anthropic_calls(1, &format!(r#"{{"a":{object}}}"#))),
    ] {
        assert!(result.unwrap_err().contains("nested deeper than 20 times"));
    }
    // Too deep for anybody they are no JSON, and the model is told.
    for args in nested(100_000).map(|value| format!(r#"{{"a":{value}}}"#)) {
        assert!(Args::decode(&args).is_invalid());
        assert_eq!(outcome(&openai(), Caps::default(), &openai_calls(1, &args)), Ok(1));
    }
}
