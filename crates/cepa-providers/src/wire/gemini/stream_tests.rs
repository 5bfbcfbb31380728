//! Streamed replies: golden streams with what they become, and streams that end too early.

use std::sync::{Arc, Mutex};

use cepa_core::{ChatEvent, ChatResponse, Content, Error, ErrorKind, EventSink, FinishReason, Origin, Part, Usage};

use super::*;
use crate::wire::reply::ReplyDecoder;

fn dialect() -> GenerateContent {
    GenerateContent::new(Origin { provider: "gemini".into(), model: "gemini-3-flash".into() })
}

/// What becomes of a body that comes in pieces of this size.
fn read(body: &str, size: usize) -> (Vec<ChatEvent>, Result<ChatResponse, Error>) {
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let sink = EventSink::new(move |event| seen.lock().unwrap().push(event));
    let mut reply = ReplyDecoder::new(&dialect(), sink);
    let mut failed = None;
    for chunk in body.as_bytes().chunks(size) {
        if let Err(error) = reply.push(chunk) {
            failed = Some(error);
            break;
        }
    }
    let result = failed.map_or_else(|| reply.finish(), Err);
    let events = std::mem::take(&mut *events.lock().unwrap());
    (events, result)
}

fn stream(chunks: &[&str]) -> String {
    chunks.iter().map(|chunk| format!("data: {chunk}\r\n\r\n")).collect()
}

const THINKING_AND_CALLS: [&str; 4] = [
    r#"{"candidates":[{"content":{"parts":[{"text":"Plan","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":9,"totalTokenCount":9}}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"Let me "}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":9,"totalTokenCount":9}}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"look."},{"functionCall":{"id":"fc1","name":"get_weather","args":{"city":"Oslo"}},"thoughtSignature":"c2ln"}],"role":"model"},"index":0}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"functionCall":{"id":"fc2","name":"get_weather","args":{}}}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":5,"thoughtsTokenCount":2,"totalTokenCount":16}}"#,
];

// W1: the same however the network cuts it.
#[test]
fn thinking_text_and_calls() {
    let body = stream(&THINKING_AND_CALLS);
    let (events, whole) = read(&body, body.len());
    let kinds: Vec<String> = events
        .iter()
        .map(|event| match event {
            ChatEvent::Text(text) => format!("text {text}"),
            ChatEvent::Reasoning(text) => format!("reasoning {text}"),
            ChatEvent::CallBegun { index, id, name } => format!("begun {index} {id} {name}"),
            ChatEvent::CallArguments { index, delta } => format!("args {index} {delta}"),
            ChatEvent::CallReady { index, call } => format!("ready {index} {}", call.args.as_str()),
            ChatEvent::Usage(usage) => format!("usage {} {}", usage.input, usage.output),
            other => format!("{other:?}"),
        })
        .collect();
    let wanted = [
        "reasoning Plan",
        "usage 9 0",
        "text Let me ",
        "text look.",
        "begun 0 fc1 get_weather",
        r#"args 0 {"city":"Oslo"}"#,
        r#"ready 0 {"city":"Oslo"}"#,
        "begun 1 fc2 get_weather",
        "args 1 {}",
        "ready 1 {}",
        "usage 9 7",
    ];
    assert_eq!(kinds, wanted);
    let whole = whole.unwrap();
    assert_eq!(whole.finish_reason, FinishReason::ToolCalls);
    assert_eq!(whole.usage, Some(Usage { input: 9, output: 7, reasoning: 2, ..Usage::default() }));
    let parts = vec![Part::Reasoning("Plan".into()), Part::Text("Let me look.".into())];
    assert_eq!(whole.message.content, Some(Content::Parts(parts)));
    for size in 1..40 {
        let (cut_events, cut) = read(&body, size);
        assert_eq!((cut_events, cut.unwrap().message), (events.clone(), whole.message.clone()), "{size}");
    }
}

// F9, W1: both ways of answering say the same.
#[test]
fn streamed_and_whole_are_one() {
    let (_, streamed) = read(&stream(&THINKING_AND_CALLS), 7);
    let list = format!("[{}]", THINKING_AND_CALLS.join(","));
    assert_eq!(streamed.unwrap().message, dialect().decode(list.as_bytes()).unwrap().message);
}

// W8: the signature of an answer without calls comes last, with an empty text.
#[test]
fn a_signature_in_an_empty_part_is_kept() {
    let body = stream(&[
        r#"{"candidates":[{"content":{"parts":[{"text":"4"}]},"index":0}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"2"}]},"index":0}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"c2ln"}]},"finishReason":"STOP","index":0}]}"#,
    ]);
    let (events, reply) = read(&body, 11);
    assert_eq!(events, [ChatEvent::Text("4".into()), ChatEvent::Text("2".into())]);
    let kept: Vec<String> = reply.unwrap().message.replay.iter().map(|kept| kept.data.as_str().to_owned()).collect();
    assert_eq!(kept, [r#"{"text":2}"#, r#"{"text":0,"extra":{"thoughtSignature":"c2ln"}}"#]);
}

#[test]
fn an_end_without_a_reason_is_truncated_with_the_text_so_far() {
    let body = stream(&THINKING_AND_CALLS);
    for end in 0..body.len() {
        let Some(begun) = body.get(..end) else { continue };
        let (_, reply) = read(begun, 64);
        match reply {
            // A last event whose line is whole counts without its blank line.
            Ok(reply) => assert_eq!(reply.message.tool_calls.len(), 2, "{end}"),
            Err(error) => {
                let kind = error.kind();
                assert!(matches!(kind, ErrorKind::Truncated | ErrorKind::Decode), "{end}: {error}");
                if begun.contains("look.\"},")
                    && begun.contains(
                        "index\":0}]}\r\n\r\ndata: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\"",
                    )
                {
                    assert_eq!(error.partial_text(), Some("Let me look."), "{end}");
                }
            }
        }
    }
}

#[test]
fn an_error_in_the_stream_is_told_with_the_text_so_far() {
    let body = stream(&[
        THINKING_AND_CALLS[1],
        r#"{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}"#,
    ]);
    let (_, reply) = read(&body, 5);
    let error = reply.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    assert_eq!(error.partial_text(), Some("Let me "));
    let (_, reply) = read("event: error\ndata: {\"code\":429,\"status\":\"RESOURCE_EXHAUSTED\"}\n\n", 9);
    assert_eq!(reply.unwrap_err().kind(), ErrorKind::RateLimit);
}

#[test]
fn a_blocked_prompt_and_a_blocked_answer_end_as_such() {
    let (_, reply) = read(&stream(&[r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#]), 8);
    assert_eq!(reply.unwrap().finish_reason, FinishReason::ContentFilter);
    let body = stream(&[THINKING_AND_CALLS[1], r#"{"candidates":[{"finishReason":"SAFETY","index":0}]}"#]);
    let (_, reply) = read(&body, 8);
    let reply = reply.unwrap();
    assert_eq!(
        (reply.finish_reason, reply.message.content.unwrap().text().into_owned()),
        (FinishReason::ContentFilter, "Let me ".to_owned())
    );
}

#[test]
fn only_the_first_candidate_is_followed() {
    let body = stream(&[
        r#"{"candidates":[{"content":{"parts":[{"text":"A"}]},"index":1},{"content":{"parts":[{"text":"B"}]},"index":0}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP","index":1}]}"#,
    ]);
    assert_eq!(read(&body, 8).1.unwrap().message.content, Some(Content::Text("Aa".into())));
}

// What comes behind the reason still counts: the figures about the reply may.
#[test]
fn figures_may_follow_the_end() {
    let body = stream(&[
        r#"{"candidates":[{"content":{"parts":[{"text":"A"}]},"finishReason":"STOP"}]}"#,
        r#"{"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":1,"totalTokenCount":4}}"#,
        "[DONE]",
    ]);
    assert_eq!(read(&body, 8).1.unwrap().usage.unwrap().output, 1);
}

// W4: a list is taken as what it holds, in a stream too; what was said before stays with the error.
#[test]
fn an_error_in_a_list_is_told_as_what_it_is() {
    let limit = r#"[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"slow down"}}]"#;
    let said = r#"{"candidates":[{"content":{"parts":[{"text":"Half"}]}}]}"#;
    for body in [stream(&[said, limit]), stream(&[&format!("[{said},{}", &limit[1..])])] {
        let error = read(&body, 5).1.unwrap_err();
        assert_eq!((error.kind(), error.partial_text()), (ErrorKind::RateLimit, Some("Half")), "{body}");
    }
    let error = dialect().decode(format!("[{said},{}", &limit[1..]).as_bytes()).unwrap_err();
    assert_eq!((error.kind(), error.partial_text()), (ErrorKind::RateLimit, Some("Half")));
    let list = stream(&[&format!("[{said}]"), r#"[{"candidates":[{"finishReason":"STOP"}]}]"#]);
    assert_eq!(read(&list, 9).1.unwrap().message.content, Some(Content::Text("Half".into())));
}

#[test]
fn a_call_that_is_none_is_an_error() {
    for call in [r#""danger""#, "7", "[]", r#"["danger"]"#, "true"] {
        let chunk = format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"text":"Half"}},{{"functionCall":{call}}}]}},"finishReason":"STOP"}}]}}"#
        );
        let error = read(&stream(&[&chunk]), 64).1.unwrap_err();
        assert_eq!((error.kind(), error.partial_text()), (ErrorKind::Decode, Some("Half")), "{call}");
        assert_eq!(dialect().decode(chunk.as_bytes()).unwrap_err().kind(), ErrorKind::Decode, "{call}");
    }
}

#[test]
fn a_part_that_is_text_alone_reads_as_any_other() {
    for (part, text) in [
        (r#"{"text":"a\nb"}"#, "a\nb"),
        (r#"{"text":"a","thought":false}"#, "a"),
        (r#"{"text":"a","text":"b"}"#, "b"),
        (r#"{"text":null}"#, ""),
        (r#"["a"]"#, ""),
    ] {
        let chunk = format!(r#"{{"candidates":[{{"content":{{"parts":[{part}]}},"finishReason":"STOP"}}]}}"#);
        let content = read(&stream(&[&chunk]), 1_000).1.unwrap().message.content;
        assert_eq!(content.map(|content| content.text().into_owned()).unwrap_or_default(), text, "{part}");
    }
}
