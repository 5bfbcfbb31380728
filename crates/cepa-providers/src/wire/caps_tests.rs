//! W1: whatever comes, in whatever pieces, no more than the bounds is kept, and what passed them is told.

use cepa_core::{ChatResponse, Origin};
use serde_json::json;

use super::*;
use crate::wire::{
    Dialect,
    anthropic::AnthropicMessages,
    openai_chat::{OpenAiChat, Quirks},
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

const SMALL: Caps = Caps { event_bytes: 1_000, reply_bytes: 4_000, calls: 3, args_bytes: 20 };

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

/// Nothing here recurses as deep as a server likes.
#[test]
fn depth_is_bounded() {
    let depth = 100_000;
    let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let caps = Caps::default();
    for value in [deep.clone(), format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth))] {
        let text = format!("data: {{\"choices\":[{{\"delta\":{value}}}]}}\n\n");
        assert!(outcome(&openai(), caps, &text).is_err());
        let text = format!("data: {{\"type\":\"content_block_start\",\"content_block\":{value}}}\n\n");
        assert!(outcome(&anthropic(), caps, &text).is_err());
        let args = cepa_core::Args::decode(&format!("{{\"a\":{value}}}"));
        assert!(args.is_invalid());
        let call = json!([{"type": "tool_use", "id": "c", "name": "f", "input": 0}]).to_string();
        let body = format!("{{\"content\":{}}}", call.replace('0', &format!("{{\"a\":{value}}}")));
        let response = whole(&anthropic(), caps, body.as_bytes()).unwrap();
        assert!(response.message.tool_calls[0].args.is_invalid());
    }
}
