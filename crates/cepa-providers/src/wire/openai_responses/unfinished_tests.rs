//! Calls that the server did not finish: kept, and never to be run.

use std::sync::{Arc, Mutex};

use cepa_core::{ChatEvent, EventSink, FinishReason, Origin, ToolCall};
use serde_json::{Value, json};

use super::{Quirks, Responses};
use crate::wire::{Dialect, reply::ReplyDecoder};

fn dialect() -> Responses {
    Responses::new(Origin { provider: "openai".into(), model: "gpt".into() }, Quirks::default())
}

/// The calls of a streamed reply, which are those that its listeners were told to be ready.
fn streamed(events: &[Value]) -> Vec<ToolCall> {
    let told = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&told);
    let mut reply = ReplyDecoder::new(&dialect(), EventSink::new(move |event| sink.lock().unwrap().push(event)));
    for event in events {
        reply.push(format!("data: {event}\n\n").as_bytes()).unwrap();
    }
    let calls = reply.finish().unwrap().message.tool_calls;
    let mut ready = Vec::new();
    for event in told.lock().unwrap().drain(..) {
        match event {
            ChatEvent::Reset => ready.clear(),
            ChatEvent::CallReady { call, .. } => ready.push(call),
            _ => {}
        }
    }
    assert_eq!(ready, calls, "{events:?}");
    calls
}

fn call(args: &str, status: Value) -> Value {
    json!({"type": "function_call", "id": "fc", "call_id": "c", "name": "danger", "arguments": args, "status": status})
}

fn completed(output: Value) -> Value {
    json!({"type": "response.completed", "response": {"status": "completed", "output": output}})
}

// L17: only what was said to be complete can run, whatever came of its arguments.
#[test]
fn a_call_that_was_not_finished_never_runs() {
    let added = |args: &str| json!({"type": "response.output_item.added", "output_index": 0, "item": call(args, json!("in_progress"))});
    let done = |item: Value| json!({"type": "response.output_item.done", "output_index": 0, "item": item});
    let delta =
        |delta: &str| json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": delta});
    let args_done =
        |args: &str| json!({"type": "response.function_call_arguments.done", "output_index": 0, "arguments": args});
    for args in ["", " ", "{}", r#"{"a":1}"#, r#"{"a":"#] {
        let mut cut = vec![vec![added(args), completed(json!([]))], vec![added(""), delta(args), completed(json!([]))]];
        for status in ["incomplete", "in_progress", "failed", "some_future_word"] {
            let item = call(args, json!(status));
            cut.push(vec![done(item.clone()), completed(json!([]))]);
            cut.push(vec![completed(json!([item]))]);
            cut.push(vec![added(""), delta(args), done(item.clone()), completed(json!([item]))]);
            cut.push(vec![added(""), args_done(args), done(item.clone()), completed(json!([]))]);
            // The later word counts.
            cut.push(vec![done(call(args, json!("completed"))), completed(json!([item]))]);
            let body = json!({"status": "completed", "output": [item]}).to_string();
            let calls = dialect().decode(body.as_bytes()).unwrap().message.tool_calls;
            assert!(calls.len() == 1 && calls[0].args.is_invalid(), "{body}");
        }
        for events in cut {
            let calls = streamed(&events);
            assert_eq!((calls.len(), calls[0].name.as_str()), (1, "danger"), "{events:?}");
            assert!(calls[0].args.is_invalid(), "{events:?}");
        }
    }
    for status in [json!("completed"), json!(null)] {
        let item = call("", status);
        for events in [
            vec![added(""), done(item.clone()), completed(json!([]))],
            vec![completed(json!([item]))],
            vec![added(""), args_done(""), completed(json!([]))],
            vec![done(call("", json!("incomplete"))), completed(json!([item]))],
        ] {
            assert_eq!(streamed(&events)[0].args.as_str(), "{}", "{events:?}");
            assert!(!streamed(&events)[0].args.is_invalid(), "{events:?}");
        }
    }
}

#[test]
fn an_ending_that_is_not_known_asks_for_no_calls() {
    for status in ["stopped", "paused", "COMPLETED?"] {
        let body = json!({"status": status, "output": [call("{}", json!("completed"))]}).to_string();
        assert_eq!(dialect().decode(body.as_bytes()).unwrap().finish_reason, FinishReason::Other, "{status}");
    }
}
