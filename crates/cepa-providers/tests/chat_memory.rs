//! What a reply costs in memory: a few times its bytes, whatever is in it and wherever the wire expects something else.
//!
//! The replies of each kind are read by a process of its own, which tells the most memory that it ever had (Linux tells it).
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::process::Command;

use cepa_core::{EventSink, Origin};
use cepa_providers::wire::{
    Dialect,
    openai_chat::{OpenAiChat, Quirks},
    reply::ReplyDecoder,
};

/// Names which reply a process reads.
const WHICH: &str = "CEPA_MEMORY_REPLY";
/// The bytes of what is large in a reply.
const LARGE: usize = 600_000;
/// So many times its bytes may a reply cost.
const TIMES: usize = 8;
/// And so much beside it.
const BESIDE: usize = 2_000_000;

/// A list or an object of small things.
fn large(begin: &str, each: &str, end: &str) -> String {
    let mut json = String::with_capacity(LARGE + 64);
    json.push_str(begin);
    while json.len() + each.len() + 1 < LARGE {
        json.push_str(each);
        json.push(',');
    }
    json.push_str(each);
    json.push_str(end);
    json
}

/// What stands where in a message; `{}` is where something large goes.
const PLACES: [&str; 17] = [
    r#"{"choices":[{"message":{"reasoning_details":{}},"finish_reason":"stop"}]}"#,
    r#"{"choices":[{"message":{"content":{}},"finish_reason":"stop"}]}"#,
    r#"{"choices":[{"message":{"content":[{"type":"thinking","thinking":{}}]},"finish_reason":"stop"}]}"#,
    r#"{"choices":[{"message":{"content":[{"type":"text","text":{}}]},"finish_reason":"stop"}]}"#,
    r#"{"choices":[{"message":{"content":"x","reasoning":{}},"finish_reason":"stop"}]}"#,
    r#"{"choices":[{"message":{"content":"x","refusal":{}},"finish_reason":"stop"}]}"#,
    r#"{"choices":[{"message":{"content":"x","extra_content":{}},"finish_reason":"stop"}]}"#,
    r#"{"choices":[{"message":{"content":"x","unheard_of":{}},"finish_reason":"stop"}]}"#,
    r#"{"choices":[{"message":{"content":"x"},"finish_reason":{}}]}"#,
    r#"{"choices":[{"index":{},"message":{"content":"x"},"finish_reason":"stop"}]}"#,
    r#"{"choices":[{"message":{"tool_calls":[{"index":{},"id":"a","function":{"name":"f"}}]},"finish_reason":"stop"}]}"#,
    r#"{"choices":[{"message":{"tool_calls":[{"index":0,"id":{},"function":{"name":{}}}]},"finish_reason":"stop"}]}"#,
    r#"{"choices":[{"message":{"tool_calls":{}},"finish_reason":"stop"}]}"#,
    r#"{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{}}"#,
    r#"{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"object":{}}"#,
    r#"{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"x_groq":{"usage":{}}}"#,
    r#"{"choices":{}}"#,
];

/// What is large and takes little room where it is written: begin, what is repeated, end.
const THINGS: [(&str, &str, &str); 4] = [
    ("[", r#"{"a":0}"#, "]"),
    ("[", "0", "]"),
    ("[", r#"{"text":"a"}"#, "]"),
    (r#"[{"type":"x","a":["#, "0", r#"]}]"#),
];

fn status(field: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.split_whitespace().next().unwrap().parse::<usize>().unwrap() * 1024
}

/// Reads one reply, and says how many bytes came.
fn read(place: &str, (begin, each, end): (&str, &str, &str), is_streamed: bool) -> usize {
    let mut body = place.replace("{}", &large(begin, each, end));
    let dialect = OpenAiChat::new(Origin { provider: "p".into(), model: "m".into() }, Quirks::default());
    // An error is as good as a reply: it is the memory that counts.
    if !is_streamed {
        let _ = dialect.decode(body.as_bytes());
        return body.len();
    }
    body = body.replacen("\"message\"", "\"delta\"", 1);
    let event = format!("data: {body}\n\n");
    drop(body);
    let mut reply = ReplyDecoder::new(&dialect, EventSink::none());
    let mut bytes = 0;
    for piece in [event.as_str(); 2].into_iter().flat_map(|event| event.as_bytes().chunks(64 * 1024)) {
        bytes += piece.len();
        if reply.push(piece).is_err() {
            return bytes;
        }
    }
    let _ = reply.finish();
    bytes
}

// W1: no reply takes more memory than a few times what the server sent.
#[test]
fn a_reply_costs_a_few_times_its_bytes() {
    if let Ok(which) = std::env::var(WHICH) {
        let (place, way) = which.split_once(' ').unwrap();
        let place = PLACES[place.parse::<usize>().unwrap()];
        let before = status("VmHWM:");
        let bytes = THINGS.map(|thing| read(place, thing, way == "streamed")).into_iter().max();
        println!("took {} of {}", status("VmHWM:") - before, bytes.unwrap());
        return;
    }
    for (place, way) in (0..PLACES.len()).flat_map(|place| ["whole", "streamed"].map(|way| (place, way))) {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_reply_costs_a_few_times_its_bytes", "--nocapture"])
            .env(WHICH, format!("{place} {way}"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let name = format!("{way}: {}", PLACES[place]);
        let line = said.lines().find_map(|line| line.split_once("took ")).unwrap_or_else(|| panic!("{name}: {said}")).1;
        let (took, bytes) = line.split_once(" of ").unwrap();
        let (took, bytes): (usize, usize) = (took.parse().unwrap(), bytes.trim().parse().unwrap());
        println!("{took} for {bytes} bytes, {name}");
        assert!(took <= TIMES * bytes + BESIDE, "{took} for {bytes} bytes, {name}");
    }
}
