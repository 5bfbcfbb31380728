//! Streamed replies.

use std::sync::{Arc, Mutex};

use cepa_core::{Args, ChatEvent, ChatResponse, Error, ErrorKind, EventSink, FinishReason, Origin, ToolCall, Usage};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::AnthropicMessages;
use crate::{
    sse::SseEvent,
    wire::{Accumulator, Dialect},
};

fn dialect() -> AnthropicMessages {
    AnthropicMessages::new(Origin { provider: "anthropic".into(), model: "m".into() })
}

fn run(events: impl IntoIterator<Item = SseEvent>) -> (Result<ChatResponse, Error>, Vec<ChatEvent>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let inner = Arc::clone(&heard);
    let sink = EventSink::new(move |event| inner.lock().expect("no panic before").push(event));
    let mut fold = dialect().accumulator();
    let mut fed = Ok(());
    for event in events {
        fed = fold.event(event.lend(), &sink);
        if fed.is_err() {
            break;
        }
    }
    let response = fed.and_then(|()| fold.finish(&sink));
    let heard = heard.lock().expect("no panic before").clone();
    (response, heard)
}

fn data(events: &[Value]) -> Vec<SseEvent> {
    events.iter().map(|data| SseEvent { event: None, data: data.to_string() }).collect()
}

fn begin(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn end(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn text_delta(index: u64, text: &str) -> Value {
    delta(index, json!({"type": "text_delta", "text": text}))
}

fn reason(reason: &str) -> Value {
    json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 5}})
}

fn stop() -> Value {
    json!({"type": "message_stop"})
}

#[test]
fn a_reply_is_told_as_it_grows() {
    let events = [
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 10, "output_tokens": 1}}}),
        begin(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        delta(0, json!({"type": "signature_delta", "signature": "s=="})),
        end(0),
        begin(1, json!({"type": "text", "text": ""})),
        text_delta(1, "He"),
        text_delta(1, ""),
        text_delta(1, "y"),
        end(1),
        begin(2, json!({"type": "tool_use", "id": "c1", "name": "f", "input": {}})),
        delta(2, json!({"type": "input_json_delta", "partial_json": ""})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "{\"a\": 1"})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "}"})),
        end(2),
        reason("tool_use"),
        stop(),
    ];
    let (response, heard) = run(data(&events));
    let response = response.expect("a reply");
    let call = ToolCall::new("c1", "f", Args::decode("{\"a\": 1}"));
    let piece = |text: &str| ChatEvent::CallArguments { index: 0, delta: text.into() };
    assert_eq!(
        heard,
        [
            ChatEvent::Usage(Usage { input: 10, output: 1, ..Usage::default() }),
            ChatEvent::Reasoning("hm".into()),
            ChatEvent::Text("He".into()),
            ChatEvent::Text("y".into()),
            ChatEvent::CallBegun { index: 0, id: "c1".into(), name: "f".into() },
            piece("{\"a\": 1"),
            piece("}"),
            ChatEvent::CallReady { index: 0, call: call.clone() },
            ChatEvent::Usage(Usage { input: 10, output: 5, ..Usage::default() }),
        ]
    );
    assert_eq!(response.message.tool_calls, [call]);
    assert_eq!(response.finish_reason, FinishReason::ToolCalls);
    let thinking = r#"{"type":"thinking","thinking":"hm","signature":"s=="}"#;
    assert_eq!(response.message.replay[0].data.as_str(), thinking);
}

#[test]
fn both_ways_of_answering_say_the_same() {
    let whole = json!({"content": [
        {"type": "thinking", "thinking": "hm", "signature": "s=="},
        {"type": "server_tool_use", "id": "srv_1", "input": {"query": "q"}, "name": "web_search"},
        {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []},
        {"type": "text", "text": "Hey", "citations": [{"type": "char_location"}]},
        {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
    ], "stop_reason": "tool_use", "usage": {"output_tokens": 5}});
    let events = [
        begin(0, json!({"type": "thinking", "thinking": "h", "signature": ""})),
        begin(1, json!({"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}})),
        delta(0, json!({"type": "thinking_delta", "thinking": "m"})),
        delta(1, json!({"type": "input_json_delta", "partial_json": "{\"query\":"})),
        delta(0, json!({"type": "signature_delta", "signature": "s=="})),
        delta(1, json!({"type": "input_json_delta", "partial_json": "\"q\"}"})),
        begin(2, json!({"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []})),
        begin(3, json!({"type": "text", "text": "H"})),
        text_delta(3, "ey"),
        delta(3, json!({"type": "citations_delta", "citation": {"type": "char_location"}})),
        begin(4, json!({"type": "tool_use", "id": "c1", "name": "f"})),
        delta(4, json!({"type": "input_json_delta", "partial_json": "{\"a\":1}"})),
        reason("tool_use"),
        stop(),
    ];
    let streamed = run(data(&events)).0.expect("a reply").message;
    let decoded = dialect().decode(whole.to_string().as_bytes()).expect("a reply").message;
    assert_eq!(
        (&streamed.content, &streamed.tool_calls, streamed.usage),
        (&decoded.content, &decoded.tool_calls, decoded.usage)
    );
    let values = |message: &cepa_core::AssistantMessage| -> Vec<Value> {
        message.replay.iter().map(|kept| kept.data.read().expect("JSON")).collect()
    };
    assert_eq!(values(&streamed), values(&decoded));
}

#[test]
fn what_is_not_known_is_passed_over() {
    let events = [
        json!({"type": "ping"}),
        json!({"type": "vendor_status", "index": "odd", "delta": 7}),
        json!([1]),
        json!(null),
        begin(0, json!({"type": "tool_use", "id": "c1", "name": "f", "input": {}})),
        delta(0, json!({"type": "input_json_delta", "partial_json": "{}"})),
        text_delta(0, "\n"),
        delta(0, json!({"type": "new_delta", "text": {}})),
        end(0),
        end(9),
        begin(1, json!({"type": "text", "text": ""})),
        delta(1, json!({"type": "compaction_delta", "content": "z"})),
        text_delta(1, "Hi"),
        stop(),
        text_delta(1, "after the end"),
    ];
    let message = run(data(&events)).0.expect("a reply").message;
    assert_eq!(message.content, Some("Hi".into()));
    assert_eq!(message.tool_calls, [ToolCall::new("c1", "f", Args::empty())]);
}

#[test]
fn a_block_that_could_not_be_followed_does_not_go_back() {
    let events = [
        begin(0, json!({"type": "thinking", "thinking": "hm", "signature": "s=="})),
        begin(1, json!({"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}})),
        begin(2, json!({"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []})),
        delta(2, json!({"type": "search_delta", "found": []})),
        begin(3, json!({"type": "text", "text": "Hi"})),
        reason("end_turn"),
        stop(),
    ];
    let message = run(data(&events)).0.expect("a reply").message;
    assert_eq!(message.content.map(|content| content.text().into_owned()).as_deref(), Some("Hi"));
    let kept: Vec<&str> = message.replay.iter().map(|kept| kept.data.as_str()).collect();
    // As it came: nothing was added to it.
    let thinking = r#"{"signature":"s==","thinking":"hm","type":"thinking"}"#;
    assert_eq!(kept, [thinking, r#"{"text":2}"#]);
}

#[test]
fn blocks_without_an_index_follow_on_each_other() {
    let events = [
        json!({"type": "content_block_start", "content_block": {"type": "text", "text": "A"}}),
        json!({"type": "content_block_stop"}),
        json!({"type": "content_block_start", "content_block": {"type": "tool_use", "id": "c1", "name": "f"}}),
        json!({"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": "{\"a\":1}"}}),
        json!({"type": "content_block_stop"}),
        stop(),
    ];
    let message = run(data(&events)).0.expect("a reply").message;
    assert_eq!(message.tool_calls, [ToolCall::new("c1", "f", Args::decode("{\"a\":1}"))]);
}

#[test]
fn a_stream_without_its_end_is_cut() {
    let (response, _) = run(data(&[begin(0, json!({"type": "text", "text": "The answer is"})), reason("end_turn")]));
    let error = response.expect_err("it is cut");
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Truncated, true));
    assert_eq!(error.partial_text(), Some("The answer is"));
    assert_eq!(run([]).0.map_err(|error| error.kind()).err(), Some(ErrorKind::Truncated));
}

#[test]
fn an_error_event_is_an_error_however_it_is_written() {
    let overloaded = json!({"type": "overloaded_error", "message": "Overloaded"});
    let named = |event: Option<&str>, data: Value| SseEvent { event: event.map(str::to_owned), data: data.to_string() };
    for event in [
        named(None, json!({"type": "error", "error": overloaded})),
        named(Some("error"), json!({"error": overloaded})),
        named(None, json!({"error": overloaded})),
    ] {
        let text = data(&[begin(0, json!({"type": "text", "text": "Half"}))]);
        let error = run(text.into_iter().chain([event])).0.expect_err("an error");
        assert_eq!((error.kind(), error.code()), (ErrorKind::Overloaded, Some("overloaded_error")));
        assert_eq!((error.partial_text(), error.provider()), (Some("Half"), Some("anthropic")));
    }
}

#[test]
fn what_cannot_be_read_is_said() {
    let kind = |data: &str| {
        let event = SseEvent { event: None, data: data.to_owned() };
        run([event]).0.map_err(|error| error.kind()).err()
    };
    assert_eq!(kind("{\"type\":"), Some(ErrorKind::Decode));
    assert_eq!(kind("not JSON"), Some(ErrorKind::Decode));
    assert_eq!(kind(r#"{"type":"content_block_start","index":0}"#), Some(ErrorKind::Decode));
    assert_eq!(
        kind(r#"{"type":"content_block_start","index":0,"content_block":{"type":"text"}}"#),
        Some(ErrorKind::Decode)
    );
    // Comments and blank data are nothing; nor is the end of another wire's streams.
    for nothing in ["", " ", ": keep-alive", "[DONE]"] {
        assert_eq!(kind(nothing), Some(ErrorKind::Truncated));
    }
}

#[test]
fn a_second_message_is_not_mixed_into_the_first() {
    let start = json!({"type": "message_start", "message": {}});
    let text = begin(0, json!({"type": "text", "text": "A"}));
    let (response, _) = run(data(&[start.clone(), start.clone(), text.clone(), stop()]));
    assert_eq!(response.expect("a reply").message.content, Some("A".into()));
    let (response, _) = run(data(&[start.clone(), text.clone(), start, text, stop()]));
    assert_eq!(response.map_err(|error| error.kind()).err(), Some(ErrorKind::Decode));
}

fn any_event() -> impl Strategy<Value = Value> {
    let index = prop_oneof![Just(json!(0)), Just(json!(1)), Just(json!(null)), Just(json!("x"))];
    let word = prop::sample::select(vec!["", "a", "\n", "{\"a\":", "1}", "\u{1f600}", "s=="]);
    let block = (
        prop::sample::select(vec!["text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "new"]),
        prop::sample::select(vec![json!("c1"), json!(""), json!(null)]),
        word.clone(),
    )
        .prop_map(|(kind, id, word)| {
            json!({"type": kind, "id": id, "name": "f", "text": word, "thinking": word, "signature": word, "input": {}})
        });
    let kinds =
        vec!["text_delta", "thinking_delta", "signature_delta", "input_json_delta", "citations_delta", "new_delta"];
    let change = (prop::sample::select(kinds), word).prop_map(|(kind, word)| {
        json!({"type": kind, "text": word, "thinking": word, "signature": word, "partial_json": word, "citation": {}})
    });
    let odd = prop_oneof![Just(json!(null)), Just(json!(3)), Just(json!({})), Just(json!([]))];
    prop_oneof![
        1 => odd.clone().prop_map(|message| json!({"type": "message_start", "message": message})),
        6 => (index.clone(), prop_oneof![9 => block, 1 => odd.clone()])
            .prop_map(|(index, block)| json!({"type": "content_block_start", "index": index, "content_block": block})),
        9 => (index.clone(), prop_oneof![9 => change, 1 => odd.clone()])
            .prop_map(|(index, delta)| json!({"type": "content_block_delta", "index": index, "delta": delta})),
        4 => index.prop_map(|index| json!({"type": "content_block_stop", "index": index})),
        1 => odd.prop_map(|usage| json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage})),
        1 => Just(json!({"type": "ping"})),
    ]
}

proptest! {
    // W1: no stream makes it panic; what was told is what the reply says.
    #[test]
    fn any_stream_is_a_reply_or_an_error(events in prop::collection::vec(any_event(), 0..24)) {
        // What belongs to no block is an error, so that these begin first.
        let known = [json!(0), json!(1), json!("x")];
        let known = known.map(|index| json!({"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}));
        let (response, heard) = run(data(&known).into_iter().chain(data(&events)).chain(data(&[stop()])));
        let Ok(response) = response else { return Ok(()) };
        let mut told = (0, String::new(), Vec::new());
        for event in heard {
            match event {
                ChatEvent::Text(text) => told.1.push_str(&text),
                ChatEvent::CallBegun { index, .. } => { prop_assert_eq!(index, told.0); told.0 += 1; }
                ChatEvent::CallReady { index, call } => told.2.push((index, call)),
                _ => {}
            }
        }
        let (begun, text, mut ready) = told;
        ready.sort_by_key(|(index, _)| *index);
        let ready: Vec<ToolCall> = ready.into_iter().map(|(_, call)| call).collect();
        prop_assert_eq!(begun, response.message.tool_calls.len());
        prop_assert_eq!(&ready, &response.message.tool_calls);
        let said = response.message.content.as_ref().map(|content| content.text().len()).unwrap_or_default();
        prop_assert_eq!(said, text.len());
        let ids: std::collections::HashSet<&str> = ready.iter().map(|call| call.id.as_str()).collect();
        prop_assert_eq!(ids.len(), ready.len());
    }

    // W1
    #[test]
    fn any_data_is_taken_without_a_panic(data in prop::collection::vec((prop::option::of(".{0,8}"), ".{0,40}"), 0..6)) {
        let _ = run(data.into_iter().map(|(event, data)| SseEvent { event, data }));
    }
}
