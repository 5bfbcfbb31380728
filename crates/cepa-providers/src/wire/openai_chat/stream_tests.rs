//! Streams of chunks as servers send them, folded.

use std::sync::{Arc, Mutex};

use cepa_core::{AssistantMessage, ChatEvent, FinishReason, Part, Usage};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn origin() -> Origin {
    Origin { provider: "p".into(), model: "m".into() }
}

fn feed(data: &[String]) -> (Result<ChatResponse, Error>, Vec<ChatEvent>) {
    let events = Arc::new(Mutex::new(Vec::new()));
    let sink = EventSink::new({
        let events = Arc::clone(&events);
        move |event| events.lock().unwrap().push(event)
    });
    let mut fold = Fold::new(origin());
    let mut result = Ok(());
    for data in data {
        result = fold.event(LentEvent { event: None, data }, &sink);
        if result.is_err() {
            break;
        }
    }
    let result = result.and_then(|()| fold.finish(&sink));
    let events = std::mem::take(&mut *events.lock().unwrap());
    (result, events)
}

fn chunks(chunks: &[Value]) -> (Result<ChatResponse, Error>, Vec<ChatEvent>) {
    feed(&chunks.iter().map(Value::to_string).collect::<Vec<_>>())
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn end(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

#[test]
fn every_step_of_a_reply_is_told_as_it_becomes_known() {
    let (response, events) = chunks(&[
        delta(json!({"role": "assistant", "content": "", "reasoning_content": "hm"})),
        delta(json!({"content": "Look"})),
        delta(json!({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "get", "arguments": ""}}]})),
        delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"a\":"}}]})),
        delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]})),
        end("tool_calls"),
        json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}),
    ]);
    let response = response.unwrap();
    let usage = Usage { input: 7, output: 3, ..Usage::default() };
    assert_eq!(
        events,
        [
            ChatEvent::Reasoning("hm".into()),
            ChatEvent::Text("Look".into()),
            ChatEvent::CallBegun { index: 0, id: "c1".into(), name: "get".into() },
            ChatEvent::CallArguments { index: 0, delta: "{\"a\":".into() },
            ChatEvent::CallArguments { index: 0, delta: "1}".into() },
            ChatEvent::Usage(usage),
            ChatEvent::CallReady { index: 0, call: response.message.tool_calls[0].clone() },
        ]
    );
    let parts = vec![Part::Reasoning("hm".into()), Part::Text("Look".into())];
    assert_eq!(
        response.message,
        AssistantMessage {
            content: Some(parts.into()),
            tool_calls: response.message.tool_calls.clone(),
            origin: Some(origin()),
            finish_reason: Some(FinishReason::ToolCalls),
            usage: Some(usage),
            ..AssistantMessage::default()
        }
    );
}

#[test]
fn the_last_usage_that_tells_something_wins_wherever_it_stands() {
    let usage = |n: u64| json!({"prompt_tokens": n, "completion_tokens": n});
    let cases = [
        vec![json!({"choices": [], "usage": usage(0)}), json!({"choices": [], "usage": usage(5)})],
        vec![json!({"choices": [], "usage": usage(5)}), json!({"choices": [], "usage": null})],
        vec![json!({"choices": [], "usage": usage(5)}), json!({"choices": [], "usage": {}})],
        vec![json!({"choices": [{"index": 0, "delta": {}, "usage": usage(5)}]})],
        vec![json!({"choices": [], "x_groq": {"usage": usage(5)}})],
    ];
    for case in cases {
        let mut all = vec![delta(json!({"content": "x"}))];
        all.extend(case.clone());
        all.push(end("stop"));
        let usage = chunks(&all).0.unwrap().usage;
        assert_eq!(usage, Some(Usage { input: 5, output: 5, ..Usage::default() }), "{case:?}");
    }
}

#[test]
fn two_names_for_one_reasoning_are_one_reasoning() {
    let (response, events) =
        chunks(&[delta(json!({"reasoning": "a", "reasoning_content": "a", "content": "x"})), end("stop")]);
    assert_eq!(response.unwrap().message.content.unwrap().reasoning(), "a");
    assert_eq!(events.len(), 2);
}

#[test]
fn parts_of_content_are_told_apart() {
    let content = json!([
        {"type": "thinking", "thinking": [{"type": "text", "text": "why"}]},
        {"type": "text", "text": "so"},
        {"type": "reference", "reference_ids": [1]}
    ]);
    let content = chunks(&[delta(json!({"content": content})), end("stop")]).0.unwrap().message.content.unwrap();
    assert_eq!((content.reasoning().as_str(), &*content.text()), ("why", "so"));
}

#[test]
fn a_refusal_is_heard_and_wins() {
    let (response, events) =
        chunks(&[delta(json!({"refusal": "I "})), delta(json!({"refusal": "won't"})), end("stop")]);
    let response = response.unwrap();
    assert_eq!(response.finish_reason, FinishReason::Refusal);
    assert_eq!(response.message.content.unwrap().text(), "I won't");
    assert_eq!(events, [ChatEvent::Text("I ".into()), ChatEvent::Text("won't".into())]);
}

#[test]
fn reasons_become_ours() {
    let call = json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]});
    for (word, plain, with_call) in [
        ("stop", FinishReason::Stop, FinishReason::ToolCalls),
        ("STOP", FinishReason::Stop, FinishReason::ToolCalls),
        ("tool_calls", FinishReason::Stop, FinishReason::ToolCalls),
        ("function_call", FinishReason::Stop, FinishReason::ToolCalls),
        ("length", FinishReason::Length, FinishReason::Length),
        ("model_length", FinishReason::Length, FinishReason::Length),
        ("content_filter: SAFETY", FinishReason::ContentFilter, FinishReason::ContentFilter),
        ("whatever", FinishReason::Other, FinishReason::Other),
    ] {
        let reason = |chunks_: &[Value]| chunks(chunks_).0.unwrap().finish_reason;
        assert_eq!(reason(&[delta(json!({"content": "x"})), end(word)]), plain, "{word}");
        assert_eq!(reason(&[delta(call.clone()), end(word)]), with_call, "{word} with a call");
    }
}

#[test]
fn a_reply_that_the_provider_could_not_finish_is_an_error() {
    for (word, kind) in [("insufficient_system_resource", ErrorKind::Overloaded), ("error", ErrorKind::Server)] {
        let error = chunks(&[delta(json!({"content": "x"})), end(word)]).0.unwrap_err();
        assert_eq!((error.kind(), error.is_retryable(), error.code()), (kind, true, Some(word)));
    }
}

// L17: a call that was not written to its end does not run, whatever the server calls that end. Other words than the known
// ones leave a call in a reply whose reason lets none run.
#[test]
fn a_call_that_may_be_cut_is_in_no_reply_that_lets_calls_run() {
    let call = |args: &str| {
        delta(json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "danger", "arguments": args}}]}))
    };
    let words = [
        "abort",
        "timeout",
        "cancelled",
        "sensitive",
        "SAFETY",
        "max_output_tokens",
        "model_context_window_exceeded",
        "repetition_truncation",
        "token_limit",
        "max_length",
        "pause_turn",
        "unknown",
        "length",
        "content_filter",
    ];
    for (word, args) in words.iter().flat_map(|word| [(word, ""), (word, "{}")]) {
        let streamed = chunks(&[call(args), end(word)]).0.unwrap();
        let later = chunks(&[call(args), end(word), delta(json!({"content": ""}))]).0.unwrap();
        let message = json!({"tool_calls": [{"id": "c", "function": {"name": "danger", "arguments": args}}]});
        let body = json!({"choices": [{"message": message, "finish_reason": word}]});
        let whole = decode::decode(&origin(), body.to_string().as_bytes()).unwrap();
        for response in [streamed, later, whole] {
            let reason = response.finish_reason;
            assert!(
                matches!(reason, FinishReason::Other | FinishReason::Length | FinishReason::ContentFilter),
                "{word}: {reason:?}"
            );
        }
    }
    let cut = chunks(&[call("{\"a\":1}"), end("length"), end("stop")]).0.unwrap();
    assert_eq!(cut.finish_reason, FinishReason::Length);
    for word in ["network_error", "error", "insufficient_system_resource"] {
        assert!(chunks(&[call("{}"), end(word), end("stop")]).0.unwrap_err().is_retryable(), "{word}");
    }
}

#[test]
fn without_a_reason_a_call_is_whole_only_if_its_arguments_are() {
    let done = "[DONE]".to_owned();
    let call =
        |args: Value| json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": args}}]});
    for args in [json!("{}"), json!(" {\"a\": 1}\n"), json!("\"{}\""), json!({"a": 1})] {
        let response = feed(&[delta(call(args.clone())).to_string(), done.clone()]).0.unwrap();
        assert_eq!(response.finish_reason, FinishReason::ToolCalls, "{args}");
        let body = json!({"choices": [{"message": call(args)}]});
        let response = decode::decode(&origin(), body.to_string().as_bytes()).unwrap();
        assert_eq!(response.finish_reason, FinishReason::ToolCalls, "{body}");
    }
    for args in [json!(null), json!(""), json!("  "), json!("null"), json!("{\"a\":"), json!("[]"), json!([])] {
        let text = delta(json!({"content": "half"})).to_string();
        let error = feed(&[text, delta(call(args.clone())).to_string(), done.clone()]).0.unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Truncated, true), "{args}");
        // A word for no word is none.
        let error = chunks(&[delta(call(args.clone())), end("null")]).0.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Truncated, "{args}");
        let body = json!({"choices": [{"message": call(args), "finish_reason": null}]});
        let error = decode::decode(&origin(), body.to_string().as_bytes()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Truncated, "{body}");
    }
    // One call that is not whole makes the reply one that is not.
    let both = [call(json!("{}")), json!({"tool_calls": [{"index": 1, "id": "d", "function": {"name": "g"}}]})];
    let both: Vec<_> = both.into_iter().map(|call| delta(call).to_string()).chain([done.clone()]).collect();
    assert_eq!(feed(&both).0.unwrap_err().kind(), ErrorKind::Truncated);
    // A text is what it is.
    let text = feed(&[delta(json!({"content": "x"})).to_string(), done]).0.unwrap();
    assert_eq!(text.finish_reason, FinishReason::Other);
}

// FR-183: a character whose halves come in two deltas is that character, wherever it stands.
#[test]
fn halves_of_characters_find_each_other() {
    let raw = |member: &str, text: &str| format!(r#"{{"choices":[{{"delta":{{"{member}":"{text}"}}}}]}}"#);
    let args = |text: &str| {
        format!(
            r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":0,"id":"c","function":{{"name":"f","arguments":"{text}"}}}}]}}}}]}}"#
        )
    };
    for (pieces, wanted) in [
        (&[r"a\ud83d", r"\ude00b"][..], "a😀b"),
        (&[r"\uD83D", "", r"\uDE00"], "😀"),
        (&[r"\ud83d", r"\ude00\ud83d", r"\ude01"], "😀😁"),
        (&[r"a\ud83d", "b"], "a\u{fffd}b"),
        (&["a", r"\ude00"], "a\u{fffd}"),
        (&[r"a\ud83d"], "a\u{fffd}"),
        (&[r"\ud83d\ud83d", r"\ude00"], "\u{fffd}😀"),
        // This is a backslash and a word.
        (&[r"\\ud83d", r"\ude00"], "\\ud83d\u{fffd}"),
    ] {
        for member in ["content", "refusal", "reasoning", "reasoning_content"] {
            let mut data: Vec<_> = pieces.iter().map(|text| raw(member, text)).collect();
            data.push(end("stop").to_string());
            let (response, events) = feed(&data);
            let content = response.unwrap().message.content.unwrap();
            let heard: String = events
                .iter()
                .filter_map(|event| match event {
                    ChatEvent::Text(text) | ChatEvent::Reasoning(text) => Some(text.as_str()),
                    _ => None,
                })
                .collect();
            let is_text = matches!(member, "content" | "refusal");
            let said = if is_text { content.text().into_owned() } else { content.reasoning() };
            assert_eq!((said.as_str(), heard.as_str()), (wanted, wanted), "{member}: {pieces:?}");
        }
        let mut data = vec![args("")];
        data.extend(pieces.iter().map(|text| args(text)));
        data.push(end("length").to_string());
        let (response, events) = feed(&data);
        let heard: String = events
            .iter()
            .filter_map(|event| match event {
                ChatEvent::CallArguments { delta, .. } => Some(delta.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(
            (response.unwrap().message.tool_calls[0].args.as_str(), heard.as_str()),
            (wanted, wanted),
            "{pieces:?}"
        );
    }
}

#[test]
fn lists_without_end_are_no_replies() {
    for body in [
        json!({"choices": vec![json!({}); 129]}),
        json!({"choices": [{"delta": {"tool_calls": vec![Value::Null; 1025]}}]}),
    ] {
        assert_eq!(chunks(&[body]).0.unwrap_err().kind(), ErrorKind::Decode);
    }
}

#[test]
fn reasoning_blocks_are_kept_as_they_are_written() {
    let many: String = (0..100).map(|n| format!(r#","m{n}":{n}"#)).collect();
    let blocks =
        |blocks: &str| format!(r#"{{"choices":[{{"delta":{{"content":"x","reasoning_details":[{blocks}]}}}}]}}"#);
    let data = [
        blocks(r#"{"type":"t","index":0,"text":"a\ud83d","n":1.10},"no block",null"#),
        blocks(r#"{"type":"t","index":0,"text":"\ude00 \u0041","n":12345678901234567890123,"id":null}"#),
        blocks(&format!(r#"{{"type":"t","index":0{many}}}"#)),
        blocks(r#"{"type":"t","index":0,"text":"new","nested":{"b":1, "a":[ ]}},{"index":1,"text":"\ud83d"}"#),
        end("stop").to_string(),
    ];
    let message = feed(&data).0.unwrap().message;
    assert_eq!(
        message.replay[0].data.as_str(),
        format!(
            "{}{many}{}",
            r#"{"reasoning_details":[{"type":"t","index":0,"text":"a\ud83d\ude00 \u0041","n":12345678901234567890123},{"type":"t","index":0"#,
            "},{\"type\":\"t\",\"index\":0,\"text\":\"new\",\"nested\":{\"b\":1, \"a\":[ ]}},{\"index\":1,\"text\":\"\u{fffd}\"}]}"
        )
    );
}

#[test]
fn only_the_first_choice_is_followed() {
    let other = json!({"choices": [{"index": 1, "delta": {"content": "b"}, "finish_reason": "stop"}]});
    let (response, _) = chunks(&[delta(json!({"content": "a"})), other, delta(json!({"content": "c"})), end("stop")]);
    assert_eq!(response.unwrap().message.content.unwrap().text(), "ac");
}

// W4: an error inside a stream is an error like any other.
#[test]
fn errors_inside_a_stream_are_told_by_their_code() {
    let code = json!({"error": {"message": "slow down", "code": 429}});
    let choice = json!({"choices": [{"index": 0, "delta": {}, "error": {"message": "slow down", "code": 429}}]});
    let both =
        json!({"error": {"message": "slow down", "code": 429}, "choices": [{"delta": {}, "finish_reason": "error"}]});
    let vllm = json!({"object": "error", "message": "slow down", "type": "RateLimitError", "code": 429});
    let gemini = json!([{"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}}]);
    for chunk in [code, choice, both, vllm, gemini] {
        let error = chunks(&[delta(json!({"content": "x"})), chunk.clone()]).0.unwrap_err();
        assert_eq!((error.kind(), error.provider()), (ErrorKind::RateLimit, Some("p")), "{chunk}");
        assert!(error.message().contains("slow down"), "{error}");
    }
}

#[test]
fn a_stream_is_whole_at_its_reason_and_done_at_its_end() {
    let sink = EventSink::none();
    let mut fold = Fold::new(origin());
    let event = |data: &Value| crate::sse::SseEvent { event: None, data: data.to_string() };
    fold.event(event(&delta(json!({"content": "x"}))).lend(), &sink).unwrap();
    assert_eq!((fold.is_whole(), fold.is_done()), (false, false));
    fold.event(event(&end("stop")).lend(), &sink).unwrap();
    assert_eq!((fold.is_whole(), fold.is_done()), (true, false));
    fold.event(LentEvent { event: None, data: "[DONE]" }, &sink).unwrap();
    assert_eq!((fold.is_whole(), fold.is_done()), (true, true));
    // What comes behind the end is nobody's.
    fold.event(LentEvent { event: None, data: "garbage" }, &sink).unwrap();
    assert_eq!(fold.finish(&sink).unwrap().finish_reason, FinishReason::Stop);
}

#[test]
fn a_stream_that_only_ends_holds_no_reply() {
    let error = feed(&["[DONE]".to_owned()]).0.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Truncated, true));
}

#[test]
fn a_server_that_sends_one_whole_message_as_its_stream_is_understood() {
    let call = json!({"id": "c", "function": {"name": "f", "arguments": {"a": 1}}});
    let whole = json!({"choices": [{"message": {"content": "x", "tool_calls": [call]}, "finish_reason": "stop"}]});
    let message = chunks(&[whole]).0.unwrap().message;
    assert_eq!((&*message.content.unwrap().text(), message.tool_calls[0].args.as_str()), ("x", r#"{"a":1}"#));
}

#[test]
fn what_goes_back_to_its_maker_is_kept_apart_and_put_together() {
    let block = |text: &str| json!([{"type": "reasoning.text", "index": 0, "text": text}]);
    let signed = json!([{"type": "reasoning.text", "index": 0, "text": "", "signature": "SIG"}]);
    let next = json!([{"type": "reasoning.encrypted", "index": 1, "data": "XX"}]);
    let message = chunks(&[
        delta(json!({"reasoning": "a", "reasoning_details": block("a")})),
        delta(json!({"reasoning": "b", "reasoning_details": block("b")})),
        delta(json!({"reasoning_details": signed})),
        delta(
            json!({"content": "x", "reasoning_details": next, "extra_content": {"google": {"thought_signature": "s"}}}),
        ),
        end("stop"),
    ]);
    let message = message.0.unwrap().message;
    let [replay] = message.replay.as_slice() else { panic!("{:?}", message.replay) };
    assert_eq!((&*replay.format, &*replay.provider, &*replay.model), ("openai_chat", "p", "m"));
    assert_eq!(
        replay.data.read::<Value>().unwrap(),
        json!({
            "extra_content": {"google": {"thought_signature": "s"}},
            "reasoning_details": [
                {"type": "reasoning.text", "index": 0, "text": "ab", "signature": "SIG"},
                {"type": "reasoning.encrypted", "index": 1, "data": "XX"}
            ]
        })
    );
}

/// Chunks of the right and of any other shape.
fn any_chunk() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ -~]{0,6}".prop_map(Value::from),
        Just(json!({"a": 1})),
        Just(json!([])),
    ];
    let index =
        prop_oneof![Just(Value::Null), (0..3_u64).prop_map(Value::from), Just(json!(u64::MAX)), Just(json!("x"))];
    let id = prop_oneof![Just(Value::Null), Just(json!("")), "c[0-2]".prop_map(Value::from), scalar.clone()];
    let args = prop_oneof![r#"(\{|\}|"|a|:|1|,)*"#.prop_map(Value::from), scalar.clone()];
    let name = prop_oneof![Just(Value::Null), "(f|get)".prop_map(Value::from), scalar.clone()];
    let call = (index, id, name, args).prop_map(
        |(index, id, name, args)| json!({"index": index, "id": id, "function": {"name": name, "arguments": args}}),
    );
    let calls = prop::collection::vec(call, 0..3);
    let delta = (scalar.clone(), scalar.clone(), calls).prop_map(
        |(content, reasoning, calls)| json!({"content": content, "reasoning": reasoning, "tool_calls": calls}),
    );
    let reason = prop_oneof![Just(Value::Null), Just(json!("stop")), Just(json!("tool_calls")), scalar.clone()];
    let chunk = (delta, reason, scalar.clone()).prop_map(|(delta, reason, usage)| {
        json!({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}], "usage": usage}).to_string()
    });
    prop_oneof![8 => chunk, 1 => scalar.prop_map(|value| value.to_string()), 1 => ".{0,30}", 1 => Just("[DONE]".to_owned())]
}

proptest! {
    // W1: the fold survives anything and keeps its promises: ids unique, deltas that make the text, no empty delta.
    #[test]
    fn any_chunks_are_survived(data in prop::collection::vec(any_chunk(), 0..10)) {
        let (result, events) = feed(&data);
        let Ok(response) = result else { return Ok(()) };
        let mut ids: Vec<_> = response.message.tool_calls.iter().map(|call| &call.id).collect();
        prop_assert!(ids.iter().all(|id| !id.is_empty()));
        ids.sort();
        ids.dedup();
        prop_assert_eq!(ids.len(), response.message.tool_calls.len());
        let mut text = String::new();
        for event in &events {
            match event {
                ChatEvent::Text(delta) => { prop_assert!(!delta.is_empty()); text.push_str(delta); }
                ChatEvent::Reasoning(delta) | ChatEvent::CallArguments { delta, .. } => prop_assert!(!delta.is_empty()),
                _ => {}
            }
        }
        prop_assert_eq!(text, response.message.content.as_ref().map(|c| c.text().into_owned()).unwrap_or_default());
        let begun = events.iter().filter(|event| matches!(event, ChatEvent::CallBegun { .. })).count();
        let ready: Vec<_> = events.iter().filter_map(|event| match event {
            ChatEvent::CallReady { call, .. } => Some(call.clone()),
            _ => None,
        }).collect();
        prop_assert_eq!(begun, ready.len());
        prop_assert_eq!(ready, response.message.tool_calls);
    }
}
