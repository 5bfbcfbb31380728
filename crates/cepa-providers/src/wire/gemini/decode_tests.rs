//! Whole replies: what they say, why they ended, what they cost, what went wrong.

use cepa_core::{Args, ChatResponse, Content, Error, ErrorKind, FinishReason, Origin, Part, Usage};
use serde_json::{Value, json};

use super::*;

fn dialect() -> GenerateContent {
    GenerateContent::new(Origin { provider: "gemini".into(), model: "gemini-3-flash".into() })
}

fn decode(body: Value) -> Result<ChatResponse, Error> {
    dialect().decode(body.to_string().as_bytes())
}

fn reply(parts: Value, finish: &str) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": finish, "index": 0}]})
}

#[test]
fn text_thoughts_and_calls_are_told_apart() {
    let response = decode(reply(
        json!([
            {"text": "I think", "thought": true}, {"text": " so.", "thought": true}, {"text": "Hel"}, {"text": "lo."},
            {"functionCall": {"id": "fc1", "name": "get_weather", "args": {"n": 1}}, "thoughtSignature": "c2ln"},
            {"functionCall": {"name": "now"}}, {"functionCall": {"id": "fc1", "name": "_2fa", "args": null}},
        ]),
        "STOP",
    ))
    .unwrap();
    let message = response.message;
    let parts = vec![Part::Reasoning("I think so.".into()), Part::Text("Hello.".into())];
    assert_eq!(message.content, Some(Content::Parts(parts)));
    assert_eq!(response.finish_reason, FinishReason::ToolCalls);
    let names: Vec<&str> = message.tool_calls.iter().map(|call| call.name.as_str()).collect();
    assert_eq!(names, ["get_weather", "now", "2fa"]);
    let ids: std::collections::HashSet<&str> = message.tool_calls.iter().map(|call| call.id.as_str()).collect();
    assert!(ids.len() == 3 && ids.contains("fc1"), "{ids:?}");
    assert!(message.tool_calls.iter().all(|call| matches!(call.args, Args::Object(_))));
}

// The digits that the model wrote are the digits that the tool gets.
#[test]
fn arguments_keep_their_text() {
    let body = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"t","args":{"id": 123456789012345678901234, "f":1.50}}}]},
        "finishReason":"STOP"}]}"#;
    let response = dialect().decode(body.as_bytes()).unwrap();
    assert_eq!(response.message.tool_calls[0].args.as_str(), r#"{"id": 123456789012345678901234, "f":1.50}"#);
}

#[test]
fn arguments_that_are_no_object_are_kept_and_not_run() {
    let response = decode(reply(json!([{"functionCall": {"name": "t", "args": [1]}}]), "STOP")).unwrap();
    assert!(response.message.tool_calls[0].args.is_invalid());
}

#[test]
fn each_reason_has_its_meaning() {
    let said = json!([{"text": "so"}]);
    for (word, wanted) in [
        ("STOP", FinishReason::Stop),
        ("MAX_TOKENS", FinishReason::Length),
        ("SAFETY", FinishReason::ContentFilter),
        ("RECITATION", FinishReason::ContentFilter),
        ("PROHIBITED_CONTENT", FinishReason::ContentFilter),
        ("SPII", FinishReason::ContentFilter),
        ("BLOCKLIST", FinishReason::ContentFilter),
        ("OTHER", FinishReason::Other),
        ("SOMETHING_NEW", FinishReason::Other),
    ] {
        let response = decode(reply(said.clone(), word)).unwrap();
        assert_eq!(response.finish_reason, wanted, "{word}");
        let kept = response.message.extra.get("finishReason").map(|word| word.as_str().to_owned());
        let is_kept = matches!(wanted, FinishReason::ContentFilter | FinishReason::Other);
        assert_eq!(kept, is_kept.then(|| format!("\"{word}\"")), "{word}");
    }
}

// L17: a reply that was cut keeps its reason although it has calls, so that they are not run.
#[test]
fn a_cut_reply_with_calls_stays_cut() {
    let calls = json!([{"functionCall": {"name": "t", "args": {}}}]);
    assert_eq!(decode(reply(calls.clone(), "MAX_TOKENS")).unwrap().finish_reason, FinishReason::Length);
    assert_eq!(decode(reply(calls.clone(), "SAFETY")).unwrap().finish_reason, FinishReason::ContentFilter);
    // A call of a tool that was not given is answered by the loop, as any unknown tool.
    assert_eq!(decode(reply(calls, "UNEXPECTED_TOOL_CALL")).unwrap().finish_reason, FinishReason::ToolCalls);
}

#[test]
fn a_call_that_nobody_can_read_is_an_error_to_retry() {
    for word in ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"] {
        let body = json!({"candidates": [{"content": {"parts": [{"text": "Let me"}]}, "finishReason": word,
            "finishMessage": "Malformed function call: print(get("}]});
        let error = decode(body).unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Provider, true), "{word}");
        assert_eq!((error.code(), error.partial_text()), (Some(word), Some("Let me")));
        assert!(error.message().contains("print(get("), "{error}");
    }
    let error = decode(json!({"candidates": [{"finishReason": "MISSING_THOUGHT_SIGNATURE"}]})).unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::InvalidRequest, false));
}

#[test]
fn a_blocked_prompt_is_an_empty_reply_that_a_filter_cut() {
    let body =
        json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 7}});
    let response = decode(body).unwrap();
    assert_eq!((response.finish_reason, &response.message.content), (FinishReason::ContentFilter, &None));
    assert_eq!(response.message.extra["blockReason"].as_str(), "\"PROHIBITED_CONTENT\"");
    assert_eq!(response.usage.unwrap().input, 7);
}

#[test]
fn counts_are_whole() {
    let cases = [
        (
            json!({"promptTokenCount": 10, "cachedContentTokenCount": 4, "candidatesTokenCount": 5, "thoughtsTokenCount": 7,
                "totalTokenCount": 22}),
            Usage { input: 10, output: 12, cache_read: 4, cache_write: 0, reasoning: 7 },
        ),
        // Counted inside, as the total tells.
        (
            json!({"promptTokenCount": 10, "candidatesTokenCount": 12, "thoughtsTokenCount": 7, "totalTokenCount": 22}),
            Usage { input: 10, output: 12, cache_read: 0, cache_write: 0, reasoning: 7 },
        ),
        (
            json!({"promptTokenCount": 10, "toolUsePromptTokenCount": 3, "thoughtsTokenCount": 2, "candidatesTokenCount": 1}),
            Usage { input: 13, output: 3, cache_read: 0, cache_write: 0, reasoning: 2 },
        ),
        (
            json!({"promptTokenCount": 10, "cachedContentTokenCount": 99}),
            Usage { input: 10, output: 0, cache_read: 10, cache_write: 0, reasoning: 0 },
        ),
    ];
    for (metadata, wanted) in cases {
        let mut body = reply(json!([{"text": "a"}]), "STOP");
        body["usageMetadata"] = metadata.clone();
        assert_eq!(decode(body).unwrap().usage, Some(wanted), "{metadata}");
    }
    for nothing in [json!({}), json!(null), json!("many"), json!({"promptTokenCount": -1})] {
        let mut body = reply(json!([{"text": "a"}]), "STOP");
        body["usageMetadata"] = nothing.clone();
        assert_eq!(decode(body).unwrap().usage, None, "{nothing}");
    }
}

// W4
#[test]
fn errors_behind_a_200_are_told_as_what_they_are() {
    let error =
        decode(json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Quota exceeded", "details": [
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "23.5s"}]}}))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RateLimit);
    assert_eq!(error.retry_after(), Some(std::time::Duration::from_millis(23_500)));
    let list = json!([{"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "API key not valid.", "details": [
        {"reason": "API_KEY_INVALID"}]}}]);
    assert_eq!(decode(list).unwrap_err().kind(), ErrorKind::Auth);
    let unavailable = json!({"error": {"code": 503, "status": "UNAVAILABLE", "message": "The model is overloaded."}});
    assert!(decode(unavailable).unwrap_err().is_retryable());
}

#[test]
fn what_is_no_reply_is_a_decode_error() {
    for body in ["", "{}", "[]", "nonsense", "<html>", r#"{"candidates":[]}"#, r#"{"candidates":7}"#, "null", "[1]"] {
        let error = dialect().decode(body.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Decode, "{body}");
        assert_eq!(error.provider(), Some("gemini"));
    }
}

#[test]
fn odd_parts_do_not_cost_the_reply() {
    let parts = json!([null, 7, {}, {"text": null}, {"text": 5}, {"functionCall": null}, {"inlineData": {"data": "?"}}, {"text": "ok"}]);
    let response = decode(reply(parts, "STOP")).unwrap();
    assert_eq!(response.message.content, Some(Content::Text("ok".into())));
    let chunks = json!([reply(json!([{"text": "a"}]), ""), reply(json!([{"text": "b"}]), "STOP")]);
    assert_eq!(decode(chunks).unwrap().message.content, Some(Content::Text("ab".into())));
    let half = r#"{"candidates":[{"content":{"parts":[{"text":"a\ud83d"}]},"finishReason":"STOP"}]}"#;
    assert_eq!(dialect().decode(half.as_bytes()).unwrap().message.content, Some(Content::Text("a\u{fffd}".into())));
}

#[test]
fn pictures_are_parts() {
    let parts = json!([{"text": "Here:"}, {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}}]);
    let message = decode(reply(parts, "STOP")).unwrap().message;
    let picture = Part::Image(cepa_core::Media::bytes("image/png", &b"\x89PNG"[..]));
    assert_eq!(message.content, Some(Content::Parts(vec![Part::Text("Here:".into()), picture])));
}

#[test]
fn the_method_is_in_the_address() {
    let dialect = dialect();
    for (endpoint, reply, wanted) in [
        ("http://h/v1beta/models/m", Delivery::Whole, "http://h/v1beta/models/m:generateContent"),
        ("http://h/v1beta/models/m", Delivery::Streamed, "http://h/v1beta/models/m:streamGenerateContent?alt=sse"),
        ("http://h/m?a=b", Delivery::Whole, "http://h/m:generateContent?a=b"),
        ("http://h/m?a=b", Delivery::Streamed, "http://h/m:streamGenerateContent?alt=sse&a=b"),
    ] {
        assert_eq!(dialect.address(endpoint, reply), wanted);
    }
}
