//! Streams: as OpenAI writes them, as others do, and broken ones.

use std::sync::{Arc, Mutex};

use cepa_core::{ChatEvent, ChatResponse, Content, Error, ErrorKind, EventSink, FinishReason, Origin, Part, Usage};
use serde_json::{Value, json};

use super::{Quirks, Responses, decode::decode};
use crate::wire::reply::ReplyDecoder;

fn origin() -> Origin {
    Origin { provider: "openai".into(), model: "gpt".into() }
}

fn fold(bytes: &str) -> (Result<ChatResponse, Error>, Vec<ChatEvent>) {
    let events = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&events);
    let dialect = Responses::new(origin(), Quirks::default());
    let mut reply = ReplyDecoder::new(&dialect, EventSink::new(move |event| sink.lock().unwrap().push(event)));
    let result = reply.push(bytes.as_bytes()).and_then(|()| reply.finish());
    let events = events.lock().unwrap().clone();
    (result, events)
}

fn sse(events: &[Value]) -> String {
    let one = |event: &Value| match event["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {event}\n\n"),
        None => format!("data: {event}\n\n"),
    };
    events.iter().map(one).collect()
}

fn run(events: &[Value]) -> (Result<ChatResponse, Error>, Vec<ChatEvent>) {
    fold(&sse(events))
}

fn texts(events: &[ChatEvent]) -> String {
    let text = |event: &ChatEvent| match event {
        ChatEvent::Text(text) => Some(text.clone()),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

fn text(response: &ChatResponse) -> String {
    response.message.content.as_ref().map(|content| content.text().into_owned()).unwrap_or_default()
}

fn message(id: &str, text: &str) -> Value {
    let part = json!({"type": "output_text", "text": text, "annotations": []});
    json!({"type": "message", "id": id, "status": "completed", "role": "assistant", "content": [part]})
}

fn completed(output: Value) -> Value {
    let usage = json!({"input_tokens": 3, "output_tokens": 4, "total_tokens": 7});
    json!({"type": "response.completed", "response": {"status": "completed", "output": output, "usage": usage}})
}

/// A reply with everything, as OpenAI streams it.
fn whole() -> Vec<Value> {
    let reasoning = json!({
        "type": "reasoning", "id": "rs_1", "encrypted_content": "final",
        "summary": [{"type": "summary_text", "text": "I look."}, {"type": "summary_text", "text": "Then."}],
    });
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": "{\"a\": 1}", "status": "completed"});
    let said = message("msg_1", "Let me see.");
    vec![
        json!({"type": "response.created", "sequence_number": 0, "response": {"status": "in_progress", "output": []}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "begin"}}),
        json!({"type": "response.reasoning_summary_part.added", "item_id": "rs_1", "output_index": 0, "summary_index": 0, "part": {"type": "summary_text", "text": ""}}),
        json!({"type": "response.reasoning_summary_text.delta", "item_id": "rs_1", "output_index": 0, "summary_index": 0, "delta": "I "}),
        json!({"type": "response.reasoning_summary_text.delta", "item_id": "rs_1", "output_index": 0, "summary_index": 0, "delta": "look."}),
        json!({"type": "response.reasoning_summary_text.done", "item_id": "rs_1", "output_index": 0, "summary_index": 0, "text": "I look."}),
        json!({"type": "response.reasoning_summary_text.delta", "item_id": "rs_1", "output_index": 0, "summary_index": 1, "delta": "Then."}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": reasoning}),
        json!({"type": "response.output_item.added", "output_index": 1, "item": {"type": "message", "id": "msg_1", "status": "in_progress", "role": "assistant", "content": []}}),
        json!({"type": "response.content_part.added", "item_id": "msg_1", "output_index": 1, "content_index": 0, "part": {"type": "output_text", "text": "", "annotations": []}}),
        json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 1, "content_index": 0, "delta": "Let me", "logprobs": []}),
        json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 1, "content_index": 0, "delta": " see."}),
        json!({"type": "response.output_text.done", "item_id": "msg_1", "output_index": 1, "content_index": 0, "text": "Let me see."}),
        json!({"type": "response.content_part.done", "item_id": "msg_1", "output_index": 1, "content_index": 0, "part": said["content"][0]}),
        json!({"type": "response.output_item.done", "output_index": 1, "item": said}),
        json!({"type": "response.output_item.added", "output_index": 2, "item": {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": "", "status": "in_progress"}}),
        json!({"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 2, "delta": "{\"a\""}),
        json!({"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 2, "delta": ": 1}"}),
        json!({"type": "response.function_call_arguments.done", "item_id": "fc_1", "output_index": 2, "name": "look", "arguments": "{\"a\": 1}"}),
        json!({"type": "response.output_item.done", "output_index": 2, "item": call}),
        completed(json!([reasoning, said, call])),
    ]
}

/// The same response, but for what only streams have.
fn assert_is_whole(response: &ChatResponse) {
    let body = whole().last().unwrap()["response"].to_string();
    let wanted = decode(&origin(), body.as_bytes()).unwrap();
    assert_eq!(response.message, wanted.message);
    assert_eq!(response.finish_reason, FinishReason::ToolCalls);
}

// W1: a stream and a body are one reply.
#[test]
fn a_stream_is_the_reply_that_a_body_is() {
    let (response, events) = run(&whole());
    let response = response.unwrap();
    assert_is_whole(&response);
    let parts = vec![Part::Reasoning("I look.\n\nThen.".into()), Part::Text("Let me see.".into())];
    assert_eq!(response.message.content, Some(Content::Parts(parts)));
    let call = response.message.tool_calls[0].clone();
    let wanted = vec![
        ChatEvent::Reasoning("I ".into()),
        ChatEvent::Reasoning("look.".into()),
        ChatEvent::Reasoning("\n\nThen.".into()),
        ChatEvent::Text("Let me".into()),
        ChatEvent::Text(" see.".into()),
        ChatEvent::CallBegun { index: 0, id: "call_1".into(), name: "look".into() },
        ChatEvent::CallArguments { index: 0, delta: "{\"a\"".into() },
        ChatEvent::CallArguments { index: 0, delta: ": 1}".into() },
        ChatEvent::CallReady { index: 0, call },
        ChatEvent::Usage(Usage { input: 3, output: 4, ..Usage::default() }),
    ];
    assert_eq!(events, wanted);
}

#[test]
fn numbers_ids_and_done_events_may_be_missing() {
    let without = |drop: &dyn Fn(&Value) -> bool, members: &[&str]| -> Vec<Value> {
        let mut events: Vec<Value> = whole().into_iter().filter(|event| !drop(event)).collect();
        for event in &mut events {
            for name in members {
                event.as_object_mut().unwrap().remove(*name);
            }
        }
        events
    };
    let is = |event: &Value, end: &str| event["type"].as_str().unwrap().ends_with(end);
    let keep_all = |_: &Value| false;
    let numbers = ["sequence_number", "output_index", "content_index"];
    for events in [
        without(&keep_all, &numbers),
        without(&keep_all, &["item_id"]),
        without(&keep_all, &["sequence_number", "output_index", "content_index", "item_id"]),
        without(&|event| is(event, ".done") && !is(event, "item.done"), &[]),
        without(&|event| is(event, ".done"), &numbers),
        without(&|event| is(event, ".added"), &[]),
        without(&|event| is(event, ".delta"), &[]),
        without(&|event| !is(event, ".completed"), &[]),
    ] {
        let (response, seen) = run(&events);
        let response = response.unwrap_or_else(|error| panic!("{error}\n{}", sse(&events)));
        assert_is_whole(&response);
        assert_eq!(texts(&seen), "Let me see.", "{}", sse(&events));
    }
}

#[test]
fn the_last_event_may_hold_no_output() {
    let mut events = whole();
    *events.last_mut().unwrap() = completed(json!([]));
    assert_is_whole(&run(&events).0.unwrap());
    *events.last_mut().unwrap() = json!({"type": "response.completed"});
    let response = run(&events).0.unwrap();
    assert_eq!((response.message.tool_calls.len(), response.usage), (1, None));
}

#[test]
fn ids_that_change_and_numbers_that_repeat() {
    // Each event has another id (GitHub Copilot), and the number tells.
    let mut events = whole();
    for (at, event) in events.iter_mut().enumerate() {
        for place in ["/item_id", "/item/id"] {
            if let Some(id) = event.pointer_mut(place) {
                *id = json!(format!("opaque{at}"));
            }
        }
    }
    let response = run(&events).0.unwrap();
    assert_eq!((text(&response).as_str(), response.message.tool_calls.len()), ("Let me see.", 1));
    // Each item has the number 0, and the ids tell.
    let mut events = whole();
    for event in &mut events {
        if let Some(index) = event.get_mut("output_index") {
            *index = json!(0);
        }
    }
    assert_is_whole(&run(&events).0.unwrap());
}

#[test]
fn calls_that_are_interleaved() {
    let added = |n: u64| json!({"type": "response.output_item.added", "output_index": n, "item": {"type": "function_call", "id": format!("fc_{n}"), "call_id": format!("c{n}"), "name": "f", "arguments": ""}});
    let delta = |n: u64, delta: &str| json!({"type": "response.function_call_arguments.delta", "output_index": n, "item_id": format!("fc_{n}"), "delta": delta});
    let done = |n: u64| json!({"type": "response.function_call_arguments.done", "output_index": n, "item_id": format!("fc_{n}"), "arguments": format!("{{\"n\":{n}}}")});
    let events = [
        added(0),
        added(1),
        delta(0, "{\"n\":"),
        delta(1, "{\"n\":"),
        delta(1, "1}"),
        delta(0, "0}"),
        done(1),
        done(0),
        completed(json!([])),
    ];
    let response = run(&events).0.unwrap();
    let args: Vec<&str> = response.message.tool_calls.iter().map(|call| call.args.as_str()).collect();
    assert_eq!(args, ["{\"n\":0}", "{\"n\":1}"]);
}

#[test]
fn messages_of_one_reply_are_parted() {
    let events = [
        json!({"type": "response.output_item.done", "output_index": 0, "item": message("m1", "First.")}),
        json!({"type": "response.output_item.done", "output_index": 1, "item": message("m2", "Second.")}),
        completed(json!([])),
    ];
    let (response, seen) = run(&events);
    assert_eq!(text(&response.unwrap()), "First.\n\nSecond.");
    assert_eq!(texts(&seen), "First.\n\nSecond.");
}

#[test]
fn refusals_and_open_models_reasoning() {
    let events = [
        json!({"type": "response.reasoning_text.delta", "item_id": "rs", "content_index": 0, "delta": "Hm."}),
        json!({"type": "response.refusal.delta", "item_id": "m", "content_index": 0, "delta": "I can"}),
        json!({"type": "response.refusal.done", "item_id": "m", "content_index": 0, "refusal": "I cannot."}),
        completed(json!([])),
    ];
    let response = run(&events).0.unwrap();
    assert_eq!((text(&response).as_str(), response.finish_reason), ("I cannot.", FinishReason::Refusal));
    assert_eq!(response.message.content.unwrap().reasoning(), "Hm.");
}

#[test]
fn a_cut_reply_says_why() {
    let mut events = whole();
    events.pop();
    events.push(json!({"type": "response.incomplete", "response": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}}));
    assert_eq!(run(&events).0.unwrap().finish_reason, FinishReason::Length);
}

/// What was heard and not voided.
fn heard(events: &[ChatEvent]) -> (usize, String) {
    let resets = events.iter().filter(|event| **event == ChatEvent::Reset).count();
    let from = events.iter().rposition(|event| *event == ChatEvent::Reset).map_or(0, |reset| reset + 1);
    (resets, texts(&events[from..]))
}

fn delta(text: &str) -> Value {
    json!({"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": text})
}

fn text_done(text: &str) -> Value {
    json!({"type": "response.output_text.done", "item_id": "m", "output_index": 0, "content_index": 0, "text": text})
}

fn item_done(id: &str, text: &str) -> Value {
    json!({"type": "response.output_item.done", "output_index": 0, "item": message(id, text)})
}

// W1: whatever is said again or otherwise, the last whole of it counts, and it is there once.
#[test]
fn text_that_is_repeated_or_contradicted_is_there_once() {
    let end = || completed(json!([]));
    let anonymous = |text: &str| {
        let mut item = message("", text);
        item.as_object_mut().unwrap().remove("id");
        json!({"type": "response.output_item.done", "item": item})
    };
    for (said, resets, events) in [
        // Repeated.
        ("Hello", 0, vec![delta("Hel"), delta("lo"), text_done("Hello"), text_done("Hello"), end()]),
        ("Hello", 0, vec![delta("Hel"), delta("lo"), text_done("Hello"), delta("Hel"), delta("lo"), end()]),
        ("Hello", 0, vec![delta("Hello"), item_done("m", "Hello"), delta("Hello"), text_done("Hello"), end()]),
        ("Hello", 0, vec![item_done("m", "Hello"), item_done("m", "Hello"), end()]),
        ("Hello", 0, vec![item_done("m", "Hello"), item_done("other", "Hello"), end()]),
        ("Hello", 0, vec![anonymous("Hello"), anonymous("Hello"), end()]),
        ("Hello", 0, vec![delta("Hello"), completed(json!([message("other", "Hello")]))]),
        ("Hello", 0, vec![item_done("m", "Hello"), completed(json!([message("other", "Hello")]))]),
        // The list has another order, and something that was not streamed.
        (
            "Hello",
            0,
            vec![delta("Hello"), completed(json!([{"type": "reasoning", "id": "r"}, message("other", "Hello")]))],
        ),
        // The same but for white space around it.
        ("Hello ", 0, vec![delta("Hello "), item_done("m", "Hello"), end()]),
        // Contradicted: by part, by item, by the list.
        ("Hallo!", 1, vec![delta("Hel"), text_done("Hallo!"), delta("lo"), end()]),
        ("Hallo!", 1, vec![delta("Hel"), text_done("Hello"), item_done("m", "Hallo!"), end()]),
        ("Hallo!", 1, vec![delta("Hello"), item_done("m", "Hello"), completed(json!([message("m", "Hallo!")]))]),
        ("Hel", 1, vec![delta("Hello"), completed(json!([message("m", "Hel")]))]),
        // Two that are one in the end, and the other way round.
        ("Hello", 1, vec![item_done("a", "Hel"), item_done("b", "lo"), completed(json!([message("c", "Hello")]))]),
        ("A\n\nB", 1, vec![item_done("b", "B"), completed(json!([message("a", "A"), message("b", "B")]))]),
    ] {
        let (response, events_heard) = run(&events);
        let shown = sse(&events);
        assert_eq!((said, (resets, said.to_owned())), (&*text(&response.unwrap()), heard(&events_heard)), "{shown}");
    }
}

#[test]
fn calls_that_are_repeated_or_contradicted_are_there_once() {
    let call = |id: &str, call_id: &str, args: &str| json!({"type": "function_call", "id": id, "call_id": call_id, "name": "f", "arguments": args});
    let added = |item: Value| json!({"type": "response.output_item.added", "output_index": 0, "item": item});
    let done = |item: Value| json!({"type": "response.output_item.done", "output_index": 0, "item": item});
    let delta = |delta: &str| json!({"type": "response.function_call_arguments.delta", "item_id": "i", "delta": delta});
    let whole =
        |args: &str| json!({"type": "response.function_call_arguments.done", "item_id": "i", "arguments": args});
    let begun = || added(call("i", "c", ""));
    let one = r#"{"a":1}"#;
    let two = r#"{"a":2}"#;
    for (args, resets, events) in [
        (vec![one], 0, vec![begun(), delta(one), whole(one), delta(one), whole(one), completed(json!([]))]),
        (vec![one], 0, vec![done(call("i", "c", one)), done(call("j", "c", one)), completed(json!([]))]),
        (vec![one], 0, vec![begun(), delta(one), completed(json!([call("j", "c", one)]))]),
        // What is told when a call is ready counts, so that nothing is void.
        (vec![two], 0, vec![begun(), delta(one), whole(two), completed(json!([]))]),
        (vec![two], 0, vec![begun(), delta(one), done(call("i", "c", two)), completed(json!([]))]),
        (vec![two], 1, vec![done(call("i", "c", one)), completed(json!([call("i", "c", two)]))]),
        (vec![two], 1, vec![done(call("i", "c", one)), completed(json!([call("j", "d", two)]))]),
        // Two calls are two, though with the same; a list without calls takes none away.
        (vec![one, one], 0, vec![done(call("i", "c", one)), done(call("j", "d", one)), completed(json!([]))]),
        (vec![one], 0, vec![done(call("i", "c", one)), completed(json!([message("m", "Hello")]))]),
    ] {
        let (response, seen) = run(&events);
        let calls = response.unwrap().message.tool_calls;
        let shown = sse(&events);
        assert_eq!(calls.iter().map(|call| call.args.as_str()).collect::<Vec<_>>(), args, "{shown}");
        assert_eq!(heard(&seen).0, resets, "{shown}");
        let from = seen.iter().rposition(|event| *event == ChatEvent::Reset).unwrap_or_default();
        let ready: Vec<_> =
            seen[from..].iter().filter(|event| matches!(event, ChatEvent::CallReady { .. })).cloned().collect();
        let wanted = calls.into_iter().enumerate().map(|(index, call)| ChatEvent::CallReady { index, call });
        assert_eq!(ready, wanted.collect::<Vec<_>>(), "{shown}");
    }
}

// W4: what a stream reports has its kind, and the text so far stays with it.
#[test]
fn errors_in_a_stream() {
    let with = |event: Value| {
        let mut events = whole();
        events.truncate(12);
        events.push(event);
        let (result, _) = run(&events);
        let error = result.unwrap_err();
        assert_eq!(error.partial_text(), Some("Let me see."));
        error.kind()
    };
    let failed = json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "m"}}});
    assert_eq!(with(failed), ErrorKind::RateLimit);
    assert_eq!(with(json!({"type": "response.failed"})), ErrorKind::Server);
    // What only the failed response holds is kept too, and told to nobody: the request may be sent again.
    for kind in ["response.failed", "response.completed"] {
        let response = json!({"status": "failed", "output": [message("m", "Half")], "error": {"code": "server_error", "message": "m"}});
        let (result, heard) = run(&[json!({"type": kind, "response": response})]);
        assert_eq!((result.unwrap_err().partial_text(), heard), (Some("Half"), vec![]), "{kind}");
    }
    assert_eq!(
        with(json!({"type": "error", "code": "server_error", "message": "m", "param": null})),
        ErrorKind::Server
    );
    let held = json!({"type": "error", "error": {"type": "insufficient_quota", "code": "insufficient_quota", "message": "m"}, "status": 429});
    assert_eq!(with(held), ErrorKind::Quota);
    assert_eq!(with(json!({"error": {"message": "m", "code": "overloaded"}})), ErrorKind::Overloaded);
}

#[test]
fn a_stream_without_its_end_is_truncated() {
    for length in 0..whole().len() - 1 {
        let mut events = whole();
        events.truncate(length);
        let error = run(&events).0.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Truncated, "{length}");
    }
    let (result, seen) = fold(&format!("{}data: [DONE]\n\n", sse(&whole()[..12])));
    let error = result.unwrap_err();
    assert_eq!((error.kind(), error.partial_text()), (ErrorKind::Truncated, Some("Let me see.")));
    assert_eq!(texts(&seen), "Let me see.");
}

#[test]
fn what_is_no_event_is_passed_over_and_what_is_no_json_is_told() {
    let noise = "data: [DONE]\n\ndata: 7\n\ndata: null\n\ndata: {}\n\n: ping\n\ndata: {\"type\":\"response.unheard_of\",\"x\":1}\n\n";
    assert_is_whole(&fold(&format!("{noise}{}", sse(&whole()))).0.unwrap());
    let (result, _) = fold("data: {\"type\": \n\n");
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Decode);
}
