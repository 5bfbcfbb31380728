//! Calls that the server did not finish, and replies that do not say that their calls are to run.

use cepa_core::{ChatResponse, EventSink, FinishReason, Origin};
use serde_json::{Value, json};

use super::GenerateContent;
use crate::wire::{Dialect, reply::ReplyDecoder};

fn dialect() -> GenerateContent {
    GenerateContent::new(Origin { provider: "gemini".into(), model: "gemini-3-flash".into() })
}

fn chunk(parts: Value, word: Value) -> Value {
    json!({"candidates": [{"content": {"parts": parts}, "finishReason": word}]})
}

fn streamed(chunks: &[Value]) -> ChatResponse {
    let mut reply = ReplyDecoder::new(&dialect(), EventSink::none());
    for chunk in chunks {
        reply.push(format!("data: {chunk}\n\n").as_bytes()).unwrap();
    }
    reply.finish().unwrap()
}

// L17: only a good end asks for the calls of a reply.
#[test]
fn calls_are_asked_for_by_a_good_end_only() {
    let call = json!([{"functionCall": {"name": "danger", "args": {}}}]);
    for (word, wanted) in [
        ("STOP", FinishReason::ToolCalls),
        ("FUNCTION_CALL", FinishReason::ToolCalls),
        ("MAX_TOKENS", FinishReason::Length),
        ("OTHER", FinishReason::Other),
        ("NO_IMAGE", FinishReason::Other),
        ("TOO_MANY_TOOL_CALLS", FinishReason::Other),
        ("stop", FinishReason::Other),
        ("some_future_word", FinishReason::Other),
    ] {
        let whole = chunk(call.clone(), json!(word));
        assert_eq!(dialect().decode(whole.to_string().as_bytes()).unwrap().finish_reason, wanted, "{word}");
        assert_eq!(streamed(std::slice::from_ref(&whole)).finish_reason, wanted, "{word}");
        // A reply that was cut stays cut; one that was well may still be cut.
        assert_eq!(streamed(&[whole.clone(), chunk(json!([]), json!("STOP"))]).finish_reason, wanted, "{word}");
        assert_eq!(streamed(&[chunk(json!([]), json!("STOP")), whole]).finish_reason, wanted, "{word}");
    }
    for nothing in [json!(null), json!(""), json!("FINISH_REASON_UNSPECIFIED"), json!(7)] {
        let whole = chunk(call.clone(), nothing.clone());
        assert_eq!(dialect().decode(whole.to_string().as_bytes()).unwrap().finish_reason, FinishReason::Other);
        let chunks = [whole, chunk(json!([]), json!("STOP"))];
        assert_eq!(streamed(&chunks).finish_reason, FinishReason::ToolCalls, "{nothing}");
    }
}

#[test]
fn a_call_that_comes_in_pieces_never_runs() {
    let piece = json!([{"functionCall": {"name": "danger", "partialArgs": [], "willContinue": true}}]);
    let response = streamed(&[chunk(piece, json!("STOP"))]);
    assert!(response.message.tool_calls[0].args.is_invalid());
}
