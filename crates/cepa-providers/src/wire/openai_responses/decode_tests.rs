//! Whole replies: what is in them, how they end, what is wrong with them.

use cepa_core::{Args, ChatResponse, Content, Error, ErrorKind, FinishReason, Origin, Part, Usage};
use serde_json::{Value, json};

use super::decode::decode;

fn origin() -> Origin {
    Origin { provider: "openai".into(), model: "gpt".into() }
}

fn read(body: &Value) -> Result<ChatResponse, Error> {
    decode(&origin(), body.to_string().as_bytes())
}

fn message(text: &str) -> Value {
    let part = json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []});
    json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [part]})
}

fn call(call_id: Value, args: Value) -> Value {
    json!({"type": "function_call", "id": "fc_1", "call_id": call_id, "name": "look", "arguments": args, "status": "completed"})
}

fn of(output: Value) -> Value {
    json!({"id": "resp_1", "object": "response", "status": "completed", "error": null, "incomplete_details": null, "output": output})
}

fn text(response: &ChatResponse) -> String {
    response.message.content.as_ref().map(|content| content.text().into_owned()).unwrap_or_default()
}

// W1
#[test]
fn a_text_with_its_cost() {
    let mut body = of(json!([message("Hello.")]));
    body["usage"] = json!({
        "input_tokens": 10, "input_tokens_details": {"cached_tokens": 6, "cache_write_tokens": 2},
        "output_tokens": 8, "output_tokens_details": {"reasoning_tokens": 3}, "total_tokens": 18,
    });
    let response = read(&body).unwrap();
    assert_eq!(response.message.content, Some(Content::Text("Hello.".into())));
    assert_eq!(response.finish_reason, FinishReason::Stop);
    assert_eq!(response.message.origin, Some(origin()));
    assert_eq!(response.usage, Some(Usage { input: 10, output: 8, cache_read: 6, cache_write: 2, reasoning: 3 }));
    assert!(response.message.replay.is_empty(), "a text says it all");
    body["usage"] = json!({"input_tokens": 1, "output_tokens": 2, "input_tokens_details": null, "output_tokens_details": {"reasoning_tokens": 9}});
    assert_eq!(read(&body).unwrap().usage, Some(Usage { input: 1, output: 2, reasoning: 2, ..Usage::default() }));
}

#[test]
fn reasoning_calls_and_texts_in_their_order() {
    let reasoning = json!({
        "type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA",
        "summary": [{"type": "summary_text", "text": "One."}, {"type": "summary_text", "text": "Two."}],
    });
    let mut commentary = message("Let me look.");
    commentary["phase"] = json!("commentary");
    let output = json!([reasoning, commentary, call(json!("call_1"), json!("{\"n\": 1.50}")), message("Done.")]);
    let response = read(&of(output)).unwrap();
    let parts =
        vec![Part::Reasoning("One.\n\nTwo.".into()), Part::Text("Let me look.".into()), Part::Text("\n\nDone.".into())];
    assert_eq!(response.message.content, Some(Content::Parts(parts)));
    assert_eq!(response.finish_reason, FinishReason::ToolCalls);
    let calls = &response.message.tool_calls;
    assert_eq!((calls.len(), calls[0].id.as_str(), calls[0].args.as_str()), (1, "call_1", "{\"n\": 1.50}"));
    let kept: Vec<&str> = response.message.replay.iter().map(|block| block.data.as_str()).collect();
    assert_eq!(kept.len(), 4);
    assert_eq!(serde_json::from_str::<Value>(kept[0]).unwrap(), reasoning, "reasoning is kept word for word");
    assert_eq!(kept[1], r#"{"id":"msg_1","text":[{"length":12}],"extra":{"phase":"commentary","status":"completed"}}"#);
    assert_eq!(kept[2], r#"{"id":"fc_1","call":0}"#);
}

#[test]
fn arguments_and_ids_as_servers_write_them() {
    for (args, wanted) in [
        (json!(""), "{}"),
        (Value::Null, "{}"),
        (json!({"a": 1}), r#"{"a":1}"#),
        (json!("{\"a\":12345678901234567890}"), r#"{"a":12345678901234567890}"#),
    ] {
        let response = read(&of(json!([call(json!("c"), args.clone())]))).unwrap();
        assert_eq!(response.message.tool_calls[0].args, Args::decode(wanted), "{args}");
    }
    let broken = read(&of(json!([call(json!("c"), json!("{\"a\":"))]))).unwrap();
    assert!(broken.message.tool_calls[0].args.is_invalid());
    let calls = [call(json!("c"), json!("{}")), call(json!("c"), json!("{}")), call(Value::Null, json!("{}"))];
    let response = read(&of(json!(calls))).unwrap();
    let ids: std::collections::HashSet<&str> = response.message.tool_calls.iter().map(|call| &*call.id).collect();
    assert_eq!(ids.len(), 3, "{ids:?}");
}

#[test]
fn what_cut_a_reply_is_told() {
    let cut = |reason: Value| {
        let mut body = of(json!([message("Hel"), call(json!("c"), json!("{\"a"))]));
        body["status"] = json!("incomplete");
        body["incomplete_details"] = reason;
        read(&body).unwrap().finish_reason
    };
    assert_eq!(cut(json!({"reason": "max_output_tokens"})), FinishReason::Length);
    assert_eq!(cut(json!({"reason": "content_filter"})), FinishReason::ContentFilter);
    assert_eq!(cut(Value::Null), FinishReason::Other);
    let mut refusal = message("");
    refusal["content"] = json!([{"type": "refusal", "refusal": "I cannot help with that."}]);
    let response = read(&of(json!([refusal]))).unwrap();
    assert_eq!((text(&response).as_str(), response.finish_reason), ("I cannot help with that.", FinishReason::Refusal));
    let empty = read(&of(json!([]))).unwrap();
    assert_eq!((empty.message.content, empty.finish_reason), (None, FinishReason::Stop));
}

#[test]
fn unknown_items_and_parts_do_not_cost_the_reply() {
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}});
    let mut cited = message("Found.");
    cited["content"][0]["annotations"] =
        json!([{"type": "url_citation", "url": "https://x", "title": "x", "start_index": 0, "end_index": 5}]);
    cited["content"].as_array_mut().unwrap().push(json!({"type": "output_audio", "data": "AAA="}));
    let response = read(&of(json!([search, cited, {"no": "type"}, 7]))).unwrap();
    assert_eq!(text(&response), "Found.");
    assert_eq!(response.message.replay.len(), 2);
    assert!(response.message.replay[1].data.as_str().contains("url_citation"));
}

#[test]
fn servers_that_leave_things_out() {
    let bare = json!({"output": [{"role": "assistant", "content": "Hi."}]});
    let response = read(&bare).unwrap();
    assert_eq!((text(&response).as_str(), response.finish_reason), ("Hi.", FinishReason::Stop));
    let thinks =
        json!({"type": "reasoning", "id": "rs", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]});
    assert_eq!(read(&of(json!([thinks]))).unwrap().message.content.unwrap().reasoning(), "Hm.");
    let half = r#"{"status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a\ud83d"}]}]}"#;
    assert_eq!(text(&decode(&origin(), half.as_bytes()).unwrap()), "a\u{fffd}");
}

// W4
#[test]
fn failures_have_their_kind() {
    let kind = |body: Value| read(&body).unwrap_err().kind();
    let failed = |code: &str| json!({"object": "response", "status": "failed", "output": [], "error": {"code": code, "message": "m"}});
    assert_eq!(kind(failed("rate_limit_exceeded")), ErrorKind::RateLimit);
    assert_eq!(kind(failed("server_error")), ErrorKind::Server);
    assert_eq!(kind(failed("context_length_exceeded")), ErrorKind::ContextLength);
    assert_eq!(kind(json!({"error": {"message": "no", "code": "insufficient_quota"}})), ErrorKind::Quota);
    assert_eq!(kind(json!({"status": "failed", "output": []})), ErrorKind::Server);
    assert_eq!(kind(json!({"status": "in_progress", "output": []})), ErrorKind::Provider);
    assert_eq!(kind(json!({"choices": []})), ErrorKind::Decode);
    assert_eq!(kind(json!([])), ErrorKind::Decode);
    assert_eq!(decode(&origin(), b"<html>").unwrap_err().kind(), ErrorKind::Decode);
    let mut partly = of(json!([message("Half")]));
    partly["status"] = json!("cancelled");
    assert_eq!(read(&partly).unwrap_err().partial_text(), Some("Half"));
}

// W4: what was said before a reply failed stays with the error.
#[test]
fn a_failed_response_keeps_its_text() {
    let mut body = of(json!([message("Half")]));
    body["status"] = json!("failed");
    for (error, kind) in [
        (json!({"code": "rate_limit_exceeded", "message": "m"}), ErrorKind::RateLimit),
        (json!(null), ErrorKind::Server),
    ] {
        body["error"] = error;
        let error = read(&body).unwrap_err();
        assert_eq!((error.kind(), error.partial_text()), (kind, Some("Half")));
    }
}
