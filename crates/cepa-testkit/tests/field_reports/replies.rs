//! Replies that are not streamed, and refusals.

use std::time::{Duration, SystemTime};

use cepa_core::{Args, Error, ErrorKind, FinishReason, ToolCall};
use cepa_providers::classify::{Failure, classify};
use http::{HeaderMap, HeaderValue};
use serde_json::{Value, json};

use super::wires::Wire;

fn chat(message: Value, finish: &str) -> Value {
    json!({"choices": [{"index": 0, "finish_reason": finish, "message": message}]})
}

fn called(arguments: &Value) -> ToolCall {
    let function = json!({"name": "look", "arguments": arguments});
    let message = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": function}]});
    let mut response = Wire::named("openai").read(&chat(message, "tool_calls")).unwrap();
    response.message.tool_calls.remove(0)
}

#[test]
fn arguments_are_an_object_or_are_not_run() {
    for (arguments, expected) in [
        // FR-100: nothing at all is an empty object, which is then checked like any other.
        (json!(null), Ok("{}")),
        (json!(""), Ok("{}")),
        (json!("  "), Ok("{}")),
        (json!("null"), Ok("{}")),
        (json!("{}"), Ok("{}")),
        // FR-228: an object that is not put into a text.
        (json!({"n": 1}), Ok(r#"{"n":1}"#)),
        (json!("{\"n\": 1.0}"), Ok(r#"{"n": 1.0}"#)),
        (json!("\"{\\\"n\\\":1}\""), Ok(r#"{"n":1}"#)),
        // FR-101: broken JSON is no empty object: a destructive tool would run with its defaults.
        (json!("{\"path\":"), Err("not valid JSON")),
        (json!("{'path': 'x'}"), Err("not valid JSON")),
        (json!("rm -rf"), Err("not valid JSON")),
        // FR-103, FR-104: nor is anything else an object.
        (json!("[1]"), Err("not a JSON object")),
        (json!([1]), Err("not a JSON object")),
        (json!("5"), Err("not a JSON object")),
        (json!(true), Err("not a JSON object")),
        (json!("\"text\""), Err("a JSON string")),
    ] {
        let call = called(&arguments);
        match (&call.args, expected) {
            (Args::Object(object), Ok(text)) => assert_eq!(object.as_str(), text, "{arguments}"),
            (Args::Invalid { why, .. }, Err(told)) => assert!(why.starts_with(told), "{arguments}: {why}"),
            (args, _) => panic!("{arguments}: {args:?}"),
        }
    }
    // FR-100: a call that leaves the member out.
    let message =
        json!({"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look"}}]});
    let response = Wire::named("openai").read(&chat(message, "tool_calls")).unwrap();
    assert_eq!(response.message.tool_calls[0].args, Args::empty());
}

// FR-090, FR-149: null or no content beside calls costs neither; text beside calls stays.
#[test]
fn content_and_calls_do_not_hide_each_other() {
    for (content, text) in
        [(json!(null), ""), (json!(""), ""), (json!("Let me look."), "Let me look."), (json!([]), "")]
    {
        let call = json!({"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}});
        let message = json!({"role": "assistant", "content": content, "tool_calls": [call]});
        let response = Wire::named("openai").read(&chat(message, "tool_calls")).unwrap();
        let said = response.message.content.as_ref().map(|content| content.text().into_owned()).unwrap_or_default();
        assert_eq!((response.message.tool_calls.len(), said.as_str()), (1, text), "{content}");
    }
    let body = json!({"content": [{"type": "text", "text": "Let me look."}, {"type": "tool_use", "id": "t", "name": "look", "input": {}}],
        "stop_reason": "tool_use"});
    let message = Wire::named("anthropic").read(&body).unwrap().message;
    assert_eq!((message.tool_calls.len(), message.content.unwrap().text().as_ref()), (1, "Let me look."));
}

// FR-095: missing, empty and repeated ids get one of their own at once; a good one stays.
#[test]
fn every_call_of_a_reply_has_an_id_of_its_own() {
    let call = |id: Value| json!({"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}});
    let ids = [json!(null), json!(""), json!("a"), json!("a"), json!(" ")];
    let message = json!({"role": "assistant", "content": null, "tool_calls": ids.map(call)});
    let response = Wire::named("openai").read(&chat(message, "tool_calls")).unwrap();
    let mut ids: Vec<&str> = response.message.tool_calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids[2], "a");
    assert!(ids.iter().all(|id| !id.trim().is_empty()), "{ids:?}");
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 5);
}

// FR-185: calls are calls although the server says that it simply stopped.
#[test]
fn calls_count_whatever_the_reason_says() {
    for finish in ["stop", "tool_calls", "function_call", "", "eos"] {
        let call = json!({"function": {"name": "look", "arguments": {"n": 1}}});
        let message = json!({"role": "assistant", "content": "", "tool_calls": [call]});
        let response = Wire::named("ollama").read(&chat(message, finish)).unwrap();
        assert_eq!(response.finish_reason, FinishReason::ToolCalls, "{finish}");
        assert_eq!(response.message.tool_calls[0].args.as_str(), r#"{"n":1}"#);
    }
}

// FR-201: a reply that was cut says so, with its calls and without.
#[test]
fn a_cut_reply_is_known_to_be_cut() {
    let call = json!({"id": "c", "type": "function", "function": {"name": "look", "arguments": "{\"n\":"}});
    let message = json!({"role": "assistant", "content": "Let", "tool_calls": [call]});
    let cut = Wire::named("openai").read(&chat(message, "length")).unwrap();
    assert_eq!(cut.finish_reason, FinishReason::Length);
    assert!(cut.message.tool_calls[0].args.is_invalid());
    let body = json!({"content": [{"type": "text", "text": "Let"}], "stop_reason": "max_tokens"});
    assert_eq!(Wire::named("anthropic").read(&body).unwrap().finish_reason, FinishReason::Length);
    let body = json!({"candidates": [{"content": {"parts": [{"text": "Let"}]}, "finishReason": "MAX_TOKENS"}]});
    assert_eq!(Wire::named("gemini").read(&body).unwrap().finish_reason, FinishReason::Length);
}

// FR-134: reasoning is part of what was written, also where the provider counts it beside.
#[test]
fn reasoning_is_counted() {
    let usage = |usage: Value| {
        let mut body = chat(json!({"role": "assistant", "content": "hi"}), "stop");
        body["usage"] = usage;
        let usage = Wire::named("openai").read(&body).unwrap().usage.unwrap();
        (usage.input, usage.output, usage.reasoning)
    };
    let details = json!({"reasoning_tokens": 30});
    let inside =
        json!({"prompt_tokens": 9, "completion_tokens": 40, "total_tokens": 49, "completion_tokens_details": details});
    let beside =
        json!({"prompt_tokens": 9, "completion_tokens": 10, "total_tokens": 49, "completion_tokens_details": details});
    assert_eq!((usage(inside), usage(beside)), ((9, 40, 30), (9, 40, 30)));
    let body = json!({"candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 10, "thoughtsTokenCount": 30, "totalTokenCount": 49}});
    let usage = Wire::named("gemini").read(&body).unwrap().usage.unwrap();
    assert_eq!((usage.input, usage.output, usage.reasoning), (9, 40, 30));
}

fn refused(status: u16, headers: &[(&'static str, &'static str)], body: &str) -> Error {
    let headers: HeaderMap =
        headers.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect();
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_792_567_680);
    classify(&Failure { provider: "p", status: Some(status), headers: &headers, body, now, key: None })
}

#[test]
fn refusals_say_what_they_are_and_when_to_come_back() {
    let limit = r#"{"error":{"message":"slow down","type":"rate_limit_error"}}"#;
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    for (status, headers, body, kind, retryable, wait) in [
        // FR-137, FR-202: in seconds, in milliseconds, as a date (2026-10-21T07:28:00Z is now), in the body.
        (429, &[("retry-after", "7")][..], limit, ErrorKind::RateLimit, true, seconds(7)),
        (
            429,
            &[("retry-after-ms", "1500"), ("retry-after", "9")],
            limit,
            ErrorKind::RateLimit,
            true,
            Some(Duration::from_millis(1500)),
        ),
        (503, &[("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT")], "", ErrorKind::Server, true, seconds(30)),
        (
            429,
            &[],
            r#"[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"2s"}]}}]"#,
            ErrorKind::RateLimit,
            true,
            seconds(2),
        ),
        // FR-200, FR-202: a limit has a kind of its own, and none of its forms is a crash.
        (429, &[], "", ErrorKind::RateLimit, true, None),
        (429, &[], "<html>Too many requests</html>", ErrorKind::RateLimit, true, None),
        (429, &[], r#"{"error":{"code":"insufficient_quota"}}"#, ErrorKind::Quota, false, None),
        // FR-092: a request that is refused is not sent again.
        (400, &[], r#"{"error":{"message":"content may not be null"}}"#, ErrorKind::InvalidRequest, false, None),
        // FR-222: Anthropic's own number for an overload.
        (
            529,
            &[],
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            ErrorKind::Overloaded,
            true,
            None,
        ),
    ] {
        let error = refused(status, headers, body);
        assert_eq!(
            (error.kind(), error.is_retryable(), error.retry_after()),
            (kind, retryable, wait),
            "{status} {body}"
        );
        // FR-200: with the status to look at.
        assert_eq!(error.status(), Some(status));
    }
    // FR-201: and with the id that the provider wants to hear.
    assert_eq!(refused(500, &[("request-id", "req_1")], "").request_id(), Some("req_1"));
}
