//! Replies that are not streamed.

use cepa_core::{ErrorKind, FinishReason, Usage};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn origin() -> Origin {
    Origin { provider: "p".into(), model: "asked-for".into() }
}

fn of(message: Value) -> ChatResponse {
    let body = json!({"model": "answered", "choices": [{"message": message, "finish_reason": "stop"}]});
    decode(&origin(), body.to_string().as_bytes()).unwrap()
}

#[test]
fn a_message_remembers_the_model_that_was_asked_for() {
    assert_eq!(of(json!({"content": "x"})).message.origin, Some(origin()));
}

#[test]
fn what_is_beside_a_call_stays_with_it_byte_for_byte() {
    let body = r#"{"choices":[{"message":{"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"},"extra_content":{"b": 1, "a":[ ]}}]}}]}"#;
    let message = decode(&origin(), body.as_bytes()).unwrap().message;
    assert_eq!(message.tool_calls[0].extra["extra_content"].as_str(), r#"{"b": 1, "a":[ ]}"#);
}

#[test]
fn numbers_keep_all_their_digits() {
    let args = r#"{"n":123456789012345678901234567890,"x":1.10}"#;
    let call =
        |arguments: Value| json!({"tool_calls": [{"id": "c", "function": {"name": "f", "arguments": arguments}}]});
    assert_eq!(of(call(json!(args))).message.tool_calls[0].args.as_str(), args);
    // The same where the arguments are an object and not a text.
    let body = format!(
        r#"{{"choices":[{{"message":{{"tool_calls":[{{"id":"c","function":{{"name":"f","arguments":{args}}}}}]}}}}]}}"#
    );
    let response = decode(&origin(), body.as_bytes()).unwrap();
    assert_eq!(response.message.tool_calls[0].args.as_str(), args);
    assert_eq!(response.finish_reason, FinishReason::ToolCalls);
}

#[test]
fn half_a_character_costs_that_character_only() {
    let body = r#"{"choices":[{"message":{"content":"smile \ud83d"},"finish_reason":"length"}]}"#;
    let response = decode(&origin(), body.as_bytes()).unwrap();
    assert_eq!(response.message.content.unwrap().text(), "smile \u{fffd}");
    // In arguments it makes them unusable: nobody knows what was meant.
    let body = r#"{"choices":[{"message":{"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{\"a\":\"\\ud83d\"}"}}]},"finish_reason":"stop"}]}"#;
    assert!(decode(&origin(), body.as_bytes()).unwrap().message.tool_calls[0].args.is_invalid());
}

#[test]
fn usage_is_read_in_every_dialect_of_it() {
    let usage = |usage: Value| {
        let body = json!({"choices": [{"message": {"content": "x"}}], "usage": usage});
        decode(&origin(), body.to_string().as_bytes()).unwrap().usage
    };
    let all = |input, output, cache_read, cache_write, reasoning| {
        Some(Usage { input, output, cache_read, cache_write, reasoning })
    };
    let openai = json!({
        "prompt_tokens": 10, "completion_tokens": 8, "total_tokens": 18,
        "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
        "completion_tokens_details": {"reasoning_tokens": 5}
    });
    assert_eq!(usage(openai), all(10, 8, 4, 2, 5));
    // xAI and Gemini leave reasoning out of the completion.
    let beside = json!({
        "prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 18,
        "completion_tokens_details": {"reasoning_tokens": 5}
    });
    assert_eq!(usage(beside), all(10, 8, 0, 0, 5));
    let deepseek = json!({"prompt_tokens": 10, "completion_tokens": 3, "prompt_cache_hit_tokens": 6});
    assert_eq!(usage(deepseek), all(10, 3, 6, 0, 0));
    // Parts are never more than their sum.
    let wild = json!({
        "prompt_tokens": 1, "completion_tokens": 2,
        "prompt_tokens_details": {"cached_tokens": 9}, "completion_tokens_details": {"reasoning_tokens": 9}
    });
    assert_eq!(usage(wild), all(1, 2, 1, 0, 2));
    assert_eq!(usage(json!({"prompt_tokens": 7.0, "completion_tokens": "x"})), all(7, 0, 0, 0, 0));
    for nothing in [json!(null), json!({}), json!([]), json!("x"), json!({"prompt_tokens": -1})] {
        assert_eq!(usage(nothing), None);
    }
}

// W4: a body that holds an error is an error, whatever its status was.
#[test]
fn bodies_that_are_errors_are_told_by_their_code() {
    for (body, kind) in [
        (r#"{"error":{"message":"Rate limited","code":429}}"#, ErrorKind::RateLimit),
        (r#"{"error":"model is loading"}"#, ErrorKind::Provider),
        (r#"{"error":{"code":"insufficient_quota","message":"m"},"choices":[]}"#, ErrorKind::Quota),
        (r#"{"object":"error","message":"boom","code":500}"#, ErrorKind::Server),
        (r#"[{"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}]"#, ErrorKind::Server),
        (r#"{"choices":[{"error":{"code":502,"message":"upstream"},"message":{"content":""}}]}"#, ErrorKind::Server),
        (
            r#"{"choices":[{"message":{"content":"x"},"finish_reason":"error"}],"error":{"code":429}}"#,
            ErrorKind::RateLimit,
        ),
        (r#"{"choices":[]}"#, ErrorKind::Decode),
        (r#"{"choices":[{}]}"#, ErrorKind::Decode),
        (r#"{"choices":[{"message":{"content":{"a":1}}}]}"#, ErrorKind::Decode),
        ("[]", ErrorKind::Decode),
        ("", ErrorKind::Decode),
        ("<html>", ErrorKind::Decode),
    ] {
        let error = decode(&origin(), body.as_bytes()).unwrap_err();
        assert_eq!((error.kind(), error.provider()), (kind, Some("p")), "{body}: {error}");
    }
}

#[test]
fn an_error_behind_a_reply_does_not_undo_it() {
    let body = r#"{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"error":{"code":429}}"#;
    assert_eq!(decode(&origin(), body.as_bytes()).unwrap().message.content.unwrap().text(), "x");
}

#[test]
fn a_filter_that_lets_nothing_through_is_a_reply() {
    let body = r#"{"choices":[{"finish_reason":"content_filter"}]}"#;
    let response = decode(&origin(), body.as_bytes()).unwrap();
    assert_eq!((response.finish_reason, response.message.content), (FinishReason::ContentFilter, None));
}

#[test]
fn bytes_that_are_no_utf_8_cost_no_reply() {
    let body = b"\xEF\xBB\xBF {\"choices\":[{\"message\":{\"content\":\"a\xFFb\"}}]}";
    assert_eq!(decode(&origin(), body).unwrap().message.content.unwrap().text(), "a\u{fffd}b");
}

proptest! {
    // W1: no body makes the decoder panic.
    #[test]
    fn any_bytes_are_survived(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&origin(), &body);
    }

    #[test]
    fn any_change_of_a_good_body_is_survived(at in 0..400_usize, byte in any::<u8>(), cut in any::<bool>()) {
        let body = json!({
            "choices": [{"message": {"content": [{"type": "text", "text": "x"}], "reasoning": "r", "tool_calls": [
                {"id": "c", "function": {"name": "f", "arguments": "{\"a\":[1,{\"b\":\"\\u00e9\"}]}"}, "extra_content": {"k": 1}}
            ]}, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 1}}
        });
        let mut body = body.to_string().into_bytes();
        let at = at % body.len();
        if cut { body.truncate(at) } else { body[at] = byte }
        let _ = decode(&origin(), &body);
    }

    #[test]
    fn deep_nesting_is_an_error_or_fine(depth in 1..5000_usize) {
        let body = format!(r#"{{"choices":[{{"message":{{"content":"x","reasoning_details":{}{}}}}}]}}"#, "[".repeat(depth), "]".repeat(depth));
        let _ = decode(&origin(), body.as_bytes());
    }
}
