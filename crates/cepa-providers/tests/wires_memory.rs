//! What a hostile reply takes of memory, beside its own bytes: each in a process of its own, asked for its peak.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that fails panics")]

use std::process::Command;

use cepa_core::{EventSink, Origin};
use cepa_providers::wire::{
    Dialect,
    anthropic::AnthropicMessages,
    caps::Caps,
    gemini::GenerateContent,
    openai_responses::{Quirks, Responses},
    reply::{ReplyDecoder, whole},
};

/// Which case a process of its own is to try.
const CASE: &str = "CEPA_MEMORY_CASE";
/// The bytes of each body.
const BYTES: usize = 512 * 1024;
/// So many times its bytes a reply may take, those that it came in included.
const MOST: usize = 8;
/// What a process takes for itself, and for as many items as a reply may hold.
const FLOOR: usize = 2 * 1024 * 1024;

/// A dialect, what stands before very many elements, the element, and what stands behind them.
const CASES: [(&str, &str, &str, &str); 17] = [
    ("responses", r#"{"status":"completed","output":[{"type":"message","content":["#, r#"{"text":"a"}"#, "]}]}"),
    ("responses", r#"{"status":"completed","output":[{"type":"message","content":["#, "0", "]}]}"),
    ("responses", r#"{"status":"completed","output":["#, "0", "]}"),
    ("responses", r#"{"status":"completed","output":["#, r#"{"type":"a"}"#, "]}"),
    ("responses", r#"{"status":"completed","output":[{"type":"reasoning","summary":["#, r#"{"text":"a"}"#, "]}]}"),
    ("responses", r#"{"status":"completed","output":[],"incomplete_details":["#, r#"{"a":0}"#, "]}"),
    ("responses", r#"{"status":"completed","output":[],"usage":{"input_tokens":["#, r#"{"a":0}"#, "]}}"),
    ("responses", r#"{"status":"completed","output":[],"metadata":["#, r#"{"a":0}"#, "]}"),
    ("gemini", r#"{"candidates":[{"content":{"parts":["#, r#"{"text":"","x":1}"#, r#"]},"finishReason":"STOP"}]}"#),
    ("gemini", r#"{"candidates":[{"content":{"parts":["#, "0", r#"]},"finishReason":"STOP"}]}"#),
    ("gemini", r#"{"candidates":["#, "{}", "]}"),
    ("gemini", "[", "{}", "]"),
    ("gemini", r#"{"candidates":[],"usageMetadata":["#, r#"{"a":0}"#, "]}"),
    ("gemini", r#"{"candidates":[],"promptFeedback":{"blockReason":["#, r#"{"a":0}"#, "]}}"),
    ("anthropic", r#"{"stop_reason":"end_turn","content":["#, r#"{"type":"a"}"#, "]}"),
    ("anthropic", r#"{"stop_reason":"end_turn","content":[{"type":"text","text":"","citations":["#, "0", "]}]}"),
    ("anthropic", r#"{"stop_reason":"end_turn","content":[],"usage":["#, r#"{"a":0}"#, "]}"),
];

fn body(start: &str, element: &str, end: &str) -> String {
    let mut body = String::with_capacity(BYTES + end.len() + element.len());
    body.push_str(start);
    while body.len() < BYTES {
        body.push_str(element);
        body.push(',');
    }
    body.pop();
    body.push_str(end);
    body
}

/// A figure of this process, in bytes.
fn status(name: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_matches([':', ' ', '\t', 'k', 'B']).trim().parse::<usize>().unwrap() * 1024
}

/// Reads the body whole, then as an event of a stream; the dialect is another for each caller.
fn read(dialect: &impl Dialect, event: &str) {
    let _ = whole(dialect, Caps::default(), event.as_bytes());
    let mut reply = ReplyDecoder::new(dialect, EventSink::none());
    let _ = reply.push(b"data: ");
    for piece in event.as_bytes().chunks(64 * 1024) {
        let _ = reply.push(piece);
    }
    let _ = reply.push(b"\n\n").and_then(|()| reply.finish().map(|_| ()));
}

fn measure(case: usize) -> usize {
    let (dialect, start, element, end) = CASES.get(case).copied().unwrap();
    let origin = || Origin { provider: "p".into(), model: "m".into() };
    let body = match dialect {
        // Their bodies are a member of the last event.
        "responses" => {
            body(&format!(r#"{{"type":"response.completed","response":{start}"#), element, &format!("{end}}}"))
        }
        _ => body(start, element, end),
    };
    let whole = match dialect {
        "responses" => Some(self::body(start, element, end)),
        _ => None,
    };
    // Forgets the peak so far.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = status("VmRSS");
    match dialect {
        "responses" => {
            let dialect = Responses::new(origin(), Quirks::default());
            read(&dialect, &body);
            read(&dialect, whole.as_deref().unwrap_or_default());
        }
        "gemini" => read(&GenerateContent::new(origin()), &body),
        _ => read(&AnthropicMessages::new(origin()), &body),
    }
    status("VmHWM").saturating_sub(before)
}

#[test]
fn a_reply_takes_little_more_memory_than_its_bytes() {
    if let Ok(case) = std::env::var(CASE) {
        println!("peak={}", measure(case.parse().unwrap()));
        return;
    }
    let mut too_much = Vec::new();
    for (at, case) in CASES.iter().enumerate() {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "a_reply_takes_little_more_memory_than_its_bytes"])
            .env(CASE, at.to_string())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let peak = said.split_once("peak=").and_then(|(_, rest)| rest.lines().next()).expect("its peak");
        let peak: usize = peak.trim().parse().unwrap();
        println!("{:>4.1} times {case:?}", peak as f64 / BYTES as f64);
        if peak > FLOOR + MOST * BYTES {
            too_much.push((peak / BYTES, case));
        }
    }
    assert!(too_much.is_empty(), "{too_much:#?}");
}
