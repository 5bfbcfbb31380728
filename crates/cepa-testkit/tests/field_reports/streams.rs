//! Streams: how calls come together, what usage says, and how a stream may end.

use cepa_core::{ChatEvent, ErrorKind, FinishReason};
use serde_json::{Value, json};

use super::wires::Wire;

/// A chunk with these pieces of calls.
fn pieces(pieces: Value) -> String {
    json!({"choices": [{"index": 0, "delta": {"tool_calls": pieces}, "finish_reason": null}]}).to_string()
}

fn chunk(delta: Value, finish: Value, usage: Value) -> String {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "usage": usage}).to_string()
}

fn end(reason: &str) -> Vec<String> {
    vec![chunk(json!({}), json!(reason), Value::Null), "[DONE]".to_owned()]
}

/// Names and arguments of the calls in a stream of these chunks.
fn calls(chunks: &[String], reason: &str) -> Vec<(String, String)> {
    let data = [chunks, &end(reason)].concat();
    let (result, events) = Wire::named("openai").streamed(&data);
    let message = result.unwrap().message;
    // Everybody who listens hears the same calls.
    let ready = events.iter().filter_map(|event| match event {
        ChatEvent::CallReady { call, .. } => Some(call.clone()),
        _ => None,
    });
    assert_eq!(ready.collect::<Vec<_>>(), message.tool_calls);
    message.tool_calls.into_iter().map(|call| (call.name, call.args.as_str().to_owned())).collect()
}

fn of(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(name, args)| ((*name).to_owned(), (*args).to_owned())).collect()
}

#[test]
fn pieces_become_the_calls_that_were_meant() {
    let two = [("look", r#"{"n":1}"#), ("see", r#"{"n":2}"#)];
    for (chunks, expected) in [
        // FR-122: parallel calls whose pieces alternate, told apart by their index.
        (
            vec![
                json!([{"index": 0, "id": "a", "function": {"name": "look", "arguments": ""}}]),
                json!([{"index": 1, "id": "b", "function": {"name": "see", "arguments": ""}}]),
                json!([{"index": 0, "function": {"arguments": "{\"n\""}}]),
                json!([{"index": 1, "function": {"arguments": "{\"n\":"}}]),
                json!([{"index": 0, "function": {"arguments": ":1}"}}]),
                json!([{"index": 1, "function": {"arguments": "2}"}}]),
            ],
            &two[..],
        ),
        // FR-123: every call has the index 0 and an id of its own.
        (
            vec![
                json!([{"index": 0, "id": "a", "function": {"name": "look", "arguments": "{\"n\":1}"}}]),
                json!([{"index": 0, "id": "b", "function": {"name": "see", "arguments": "{\"n\":2}"}}]),
            ],
            &two,
        ),
        // FR-124: two pieces of one index in one chunk are one call.
        (
            vec![
                json!([{"index": 0, "id": "a", "function": {"name": "look", "arguments": "{\"n\""}}, {"index": 0, "function": {"arguments": ":1}"}}]),
                json!([{"index": 1, "id": "b", "function": {"name": "see", "arguments": "{\"n\":2}"}}]),
            ],
            &two,
        ),
        // FR-125: arguments that go on under an index that was never opened, without an id.
        (
            vec![
                json!([{"index": 0, "id": "a", "function": {"name": "look", "arguments": "{\"n\""}}]),
                json!([{"index": 5, "function": {"arguments": ":1}"}}]),
            ],
            &two[..1],
        ),
        // FR-126: a name in pieces, and one that is repeated behind the first arguments.
        (
            vec![
                json!([{"index": 0, "id": "a", "function": {"name": "lo"}}]),
                json!([{"index": 0, "function": {"name": "ok"}}]),
                json!([{"index": 0, "function": {"name": "look", "arguments": "{\"n\":"}}]),
                json!([{"index": 0, "function": {"name": "look", "arguments": "1}"}}]),
            ],
            &two[..1],
        ),
        // FR-102, FR-186: null where a name, an id or arguments belong.
        (
            vec![
                json!([{"index": 0, "id": "a", "type": null, "function": {"name": "look", "arguments": null}}]),
                json!([{"index": 0, "id": null, "function": {"name": null, "arguments": "{\"n\":1}"}}]),
                json!([{"index": 0, "id": null, "function": {"name": null, "arguments": null}}, null]),
                json!(null),
            ],
            &two[..1],
        ),
        // FR-102, FR-182: no arguments at all are the empty object.
        (vec![json!([{"index": 0, "id": "a", "function": {"name": "look"}}])], &[("look", "{}")]),
        (vec![json!([{"index": 0, "id": "a", "function": {"name": "look", "arguments": ""}}])], &[("look", "{}")]),
        // FR-182: arguments in one piece with the name.
        (vec![json!([{"index": 0, "id": "a", "function": {"name": "look", "arguments": "{\"n\":1}"}}])], &two[..1]),
        // FR-185: a whole call in one chunk, without an index and with an object for its arguments.
        (vec![json!([{"id": "a", "function": {"name": "look", "arguments": {"n": 1}}}])], &two[..1]),
        // FR-228: objects, not texts, and no ids.
        (
            vec![
                json!([{"function": {"name": "look", "arguments": {"n": 1}}}, {"function": {"name": "see", "arguments": {"n": 2}}}]),
            ],
            &two,
        ),
    ] {
        let chunks: Vec<String> = chunks.into_iter().map(pieces).collect();
        for reason in ["tool_calls", "stop"] {
            assert_eq!(calls(&chunks, reason), of(expected), "{chunks:?}");
        }
    }
}

// FR-179, FR-183: no piece is lost and none is doubled, however small they are cut; each is heard.
// FR-186: and a hundred thousand of them take no more than a hundred thousand steps.
#[test]
fn arguments_come_character_by_character() {
    let text = "é晴🦀 \\\"x\\\" ".repeat(4_000);
    let whole = format!(r#"{{"text":"{text}"}}"#);
    let mut chunks = vec![pieces(json!([{"index": 0, "id": "a", "function": {"name": "look", "arguments": ""}}]))];
    chunks.extend(whole.chars().map(|c| pieces(json!([{"index": 0, "function": {"arguments": c.to_string()}}]))));
    assert_eq!(calls(&chunks, "tool_calls"), of(&[("look", &whole)]));
    let (_, events) = Wire::named("openai").streamed(&chunks);
    let heard: String = events
        .iter()
        .filter_map(|event| match event {
            ChatEvent::CallArguments { delta, .. } => Some(delta.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(heard, whole);
}

#[test]
fn the_usage_is_the_last_one_that_tells_something() {
    let used = |input: u64, output: u64| json!({"prompt_tokens": input, "completion_tokens": output});
    let (text, nothing) = (json!({"content": "hi"}), Value::Null);
    for (chunks, expected) in [
        // FR-129: in a last chunk that has no choices.
        (
            vec![
                chunk(text.clone(), json!("stop"), nothing.clone()),
                json!({"choices": [], "usage": used(9, 5)}).to_string(),
            ],
            (9, 5),
        ),
        // FR-130: in the middle, and null afterwards.
        (
            vec![
                chunk(text.clone(), nothing.clone(), used(9, 5)),
                chunk(json!({}), json!("stop"), nothing.clone()),
                json!({"choices": [], "usage": null}).to_string(),
            ],
            (9, 5),
        ),
        // FR-131: zeros first, then growing, then with the reason.
        (
            vec![
                chunk(json!({"role": "assistant"}), nothing.clone(), used(0, 0)),
                chunk(text.clone(), nothing.clone(), used(9, 1)),
                chunk(json!({}), json!("stop"), used(9, 5)),
            ],
            (9, 5),
        ),
    ] {
        let data = [chunks, vec!["[DONE]".to_owned()]].concat();
        let (result, events) = Wire::named("openai").streamed(&data);
        let usage = result.unwrap().usage.unwrap();
        assert_eq!((usage.input, usage.output), expected, "{data:?}");
        let heard = events.iter().rev().find_map(|event| match event {
            ChatEvent::Usage(usage) => Some((usage.input, usage.output)),
            _ => None,
        });
        assert_eq!(heard, Some(expected), "{data:?}");
    }
}

// FR-208: counts that come twice and cumulatively are not added up.
#[test]
fn cumulative_usage_is_counted_once() {
    let data = [
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1, "cache_read_input_tokens": 3}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "hi"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"input_tokens": 9, "output_tokens": 5, "cache_read_input_tokens": 3}}),
        json!({"type": "message_stop"}),
    ];
    let (result, _) = Wire::named("anthropic").streamed(&data.map(|event| event.to_string()));
    let usage = result.unwrap().usage.unwrap();
    assert_eq!((usage.input, usage.output, usage.cache_read), (12, 5, 3));
}

/// The start of a reply on each wire: a text, then a call that is not complete.
fn begun(name: &str) -> Vec<String> {
    match name {
        "anthropic" => vec![
            json!({"type": "message_start", "message": {}}).to_string(),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Let me"}}).to_string(),
            json!({"type": "content_block_stop", "index": 0}).to_string(),
            json!({"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "t", "name": "look", "input": {}}}).to_string(),
            json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{\"n\":"}}).to_string(),
        ],
        "openai-responses" => vec![
            json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "m", "role": "assistant", "content": []}}).to_string(),
            json!({"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": "Let me"}).to_string(),
            json!({"type": "response.output_item.added", "output_index": 1, "item": {"type": "function_call", "id": "fc", "call_id": "c", "name": "look", "arguments": ""}}).to_string(),
            json!({"type": "response.function_call_arguments.delta", "item_id": "fc", "output_index": 1, "delta": "{\"n\":"}).to_string(),
        ],
        "gemini" => {
            vec![json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": "Let me"}]}}]}).to_string()]
        }
        _ => vec![
            chunk(json!({"role": "assistant", "content": "Let me"}), Value::Null, Value::Null),
            pieces(json!([{"index": 0, "id": "a", "function": {"name": "look", "arguments": "{\"n\":"}}])),
        ],
    }
}

// FR-202: a stream that ends in the middle is an error that may be tried again, with the text so far; its call is not run.
#[test]
fn a_stream_without_its_end_is_truncated() {
    for name in ["openai", "ollama", "anthropic", "gemini", "openai-responses"] {
        let (result, events) = Wire::named(name).streamed(&begun(name));
        let error = result.unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Truncated, true), "{name}");
        assert_eq!(error.partial_text(), Some("Let me"), "{name}");
        assert!(!events.iter().any(|event| matches!(event, ChatEvent::CallReady { .. })), "{name}: {events:?}");
    }
}

// FR-184, FR-203, FR-222: an error inside a stream that began with 200 is that error, never an end.
#[test]
fn an_error_in_the_stream_is_an_error() {
    for (name, event, kind) in [
        (
            "anthropic",
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
            ErrorKind::Overloaded,
        ),
        ("openai", json!({"error": {"message": "boom", "type": "server_error"}}), ErrorKind::Server),
        ("openai", json!({"error": {"message": "slow down", "code": 429}}), ErrorKind::RateLimit),
        (
            "llama.cpp",
            json!({"error": {"message": "too long", "type": "exceed_context_size_error", "code": 400}}),
            ErrorKind::ContextLength,
        ),
        ("openai-responses", json!({"type": "error", "code": "server_error", "message": "boom"}), ErrorKind::Server),
        (
            "openai-responses",
            json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "m"}}}),
            ErrorKind::RateLimit,
        ),
        ("gemini", json!({"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}), ErrorKind::Server),
    ] {
        let data = [begun(name), vec![event.to_string()], end("stop")].concat();
        let (result, events) = Wire::named(name).streamed(&data);
        let error = result.unwrap_err();
        assert_eq!((error.kind(), error.partial_text()), (kind, Some("Let me")), "{name}: {error}");
        assert!(!events.iter().any(|event| matches!(event, ChatEvent::CallReady { .. })), "{name}");
    }
    // A server that ends with a reason of its own for having failed.
    let data = [begun("openai"), end("error")].concat();
    assert_eq!(Wire::named("openai").streamed(&data).0.unwrap_err().kind(), ErrorKind::Server);
}

// FR-148, FR-187: a streamed reply is the same message as the whole one: text, calls, reason.
#[test]
fn streamed_and_whole_are_the_same_message() {
    let call =
        json!([{"index": 0, "id": "a", "type": "function", "function": {"name": "look", "arguments": "{\"n\":1}"}}]);
    let message = json!({"role": "assistant", "content": "Let me", "tool_calls": call});
    let whole = json!({"choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]});
    let whole = Wire::named("openai").read(&whole).unwrap();
    let data = [
        vec![
            chunk(json!({"content": "Let "}), Value::Null, Value::Null),
            chunk(json!({"content": "me"}), Value::Null, Value::Null),
            pieces(call),
        ],
        end("tool_calls"),
    ];
    let streamed = Wire::named("openai").streamed(&data.concat()).0.unwrap();
    assert_eq!((streamed.message, streamed.finish_reason), (whole.message, FinishReason::ToolCalls));
}
