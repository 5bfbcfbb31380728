//! Calls that the server did not finish, and replies that do not say that their calls are to run.

use cepa_core::{ChatResponse, EventSink, FinishReason, Origin};
use serde_json::{Value, json};

use super::AnthropicMessages;
use crate::wire::reply::ReplyDecoder;

fn streamed(events: &[Value]) -> ChatResponse {
    let dialect = AnthropicMessages::new(Origin { provider: "anthropic".into(), model: "m".into() });
    let mut reply = ReplyDecoder::new(&dialect, EventSink::none());
    for event in events {
        reply.push(format!("data: {event}\n\n").as_bytes()).unwrap();
    }
    reply.finish().unwrap()
}

fn begin(index: u64) -> Value {
    let block = json!({"type": "tool_use", "id": format!("t{index}"), "name": "danger", "input": {}});
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn json_delta(args: &str) -> Value {
    json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": args}})
}

fn reason(reason: Value) -> Value {
    json!({"type": "message_delta", "delta": {"stop_reason": reason}})
}

// L17: a block without its end, in a reply that does not say why it ended, is no call to run.
#[test]
fn a_call_that_was_not_finished_never_runs() {
    let (end, stop) = (json!({"type": "content_block_stop", "index": 0}), json!({"type": "message_stop"}));
    for args in ["", " ", "{}", r#"{"a":1}"#, r#"{"a":"#] {
        for without in [vec![], vec![reason(json!(null))], vec![reason(json!(""))]] {
            let events = [vec![begin(0), json_delta(args)], without.clone(), vec![stop.clone()]].concat();
            let response = streamed(&events);
            assert_eq!(response.finish_reason, FinishReason::Other, "{events:?}");
            assert!(response.message.tool_calls[0].args.is_invalid(), "{events:?}");
            // Its index is taken by the next block: that is no end.
            let events = [vec![begin(0), begin(0)], without, vec![stop.clone()]].concat();
            assert!(streamed(&events).message.tool_calls.iter().all(|call| call.args.is_invalid()), "{events:?}");
        }
    }
    for events in [
        vec![begin(0), end.clone(), reason(json!("tool_use")), stop.clone()],
        vec![begin(0), reason(json!("tool_use")), stop.clone()],
    ] {
        let response = streamed(&events);
        assert_eq!(response.finish_reason, FinishReason::ToolCalls);
        assert_eq!(response.message.tool_calls[0].args.as_str(), "{}");
        assert!(!response.message.tool_calls[0].args.is_invalid());
    }
}

#[test]
fn a_reply_that_was_cut_stays_cut() {
    let stop = json!({"type": "message_stop"});
    for (words, wanted) in [
        (["max_tokens", "tool_use"], FinishReason::Length),
        (["refusal", "end_turn"], FinishReason::Refusal),
        (["some_future_word", "tool_use"], FinishReason::Other),
        (["end_turn", "max_tokens"], FinishReason::Length),
        (["end_turn", "tool_use"], FinishReason::ToolCalls),
    ] {
        let reasons = words.map(|word| reason(json!(word)));
        let events = [vec![begin(0), json_delta("{}")], reasons.to_vec(), vec![stop.clone()]].concat();
        assert_eq!(streamed(&events).finish_reason, wanted, "{words:?}");
    }
}
