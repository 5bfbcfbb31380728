//! A model server that does not think, on loopback: OpenAI chat completions and Anthropic messages, not streamed.
//!
//! The model's name is the script: `loop-K` asks for one call of `add` in each of K rounds and then answers,
//! `par-K` asks for K calls at once and then answers, `say-N` answers with N words. `GET /stats` counts calls and bytes.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use axum::{
    Router,
    extract::{DefaultBodyLimit, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use bytes::Bytes;
use serde_json::{Value, json};

#[derive(Default)]
struct Counts {
    calls: AtomicU64,
    bytes: AtomicU64,
    ids: AtomicU64,
}

/// What a model's name asks for.
struct Script {
    rounds: usize,
    calls: usize,
    words: usize,
}

impl Script {
    fn of(model: &str) -> Self {
        let mut script = Self { rounds: 0, calls: 1, words: 3 };
        let (what, number) = model.split_once('-').unwrap_or((model, ""));
        let number = number.parse().unwrap_or(0);
        match what {
            "loop" => script.rounds = number,
            "par" => (script.rounds, script.calls) = (1, number),
            "say" => script.words = number,
            _ => {}
        }
        script
    }

    fn text(&self) -> String {
        (0..self.words).map(|word| format!("word{word} ")).collect()
    }
}

/// How many replies there were since the last message of the user that is not a tool result.
fn rounds_so_far(body: &Value) -> usize {
    let is_result = |message: &Value| {
        message["content"].as_array().is_some_and(|parts| parts.iter().any(|part| part["type"] == "tool_result"))
    };
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let turn = messages.iter().rev().take_while(|message| message["role"] != "user" || is_result(message));
    turn.filter(|message| message["role"] == "assistant").count()
}

/// Counts a request and reads it.
fn read(counts: &Counts, body: &Bytes) -> Option<(Value, Script, usize)> {
    counts.calls.fetch_add(1, Relaxed);
    counts.bytes.fetch_add(body.len() as u64, Relaxed);
    let value: Value = serde_json::from_slice(body).ok()?;
    let script = Script::of(value["model"].as_str().unwrap_or_default());
    let rounds = rounds_so_far(&value);
    Some((value, script, rounds))
}

fn answer(body: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

fn refuse() -> Response {
    (StatusCode::BAD_REQUEST, json!({"error": {"message": "not JSON", "type": "invalid_request_error"}}).to_string())
        .into_response()
}

async fn openai(State(counts): State<Arc<Counts>>, body: Bytes) -> Response {
    let Some((request, script, round)) = read(&counts, &body) else { return refuse() };
    let calls: Vec<Value> = (0..if round < script.rounds { script.calls } else { 0 })
        .map(|n| {
            let id = format!("call_{:08}", counts.ids.fetch_add(1, Relaxed));
            let arguments = format!("{{\"a\":{round},\"b\":{n}}}");
            json!({"id": id, "type": "function", "function": {"name": "add", "arguments": arguments}})
        })
        .collect();
    let (message, finish) = if calls.is_empty() {
        (json!({"role": "assistant", "content": script.text()}), "stop")
    } else {
        (json!({"role": "assistant", "content": null, "tool_calls": calls}), "tool_calls")
    };
    let read = body.len() / 4;
    answer(&json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": request["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": null}],
        "usage": {"prompt_tokens": read, "completion_tokens": 5, "total_tokens": read + 5},
    }))
}

async fn anthropic(State(counts): State<Arc<Counts>>, body: Bytes) -> Response {
    let Some((request, script, round)) = read(&counts, &body) else { return refuse() };
    let calls = if round < script.rounds { script.calls } else { 0 };
    let mut blocks: Vec<Value> = (0..calls)
        .map(|n| {
            let id = format!("toolu_{:08}", counts.ids.fetch_add(1, Relaxed));
            json!({"type": "tool_use", "id": id, "name": "add", "input": {"a": round, "b": n}})
        })
        .collect();
    let stop = if blocks.is_empty() { "end_turn" } else { "tool_use" };
    if blocks.is_empty() {
        blocks.push(json!({"type": "text", "text": script.text()}));
    }
    answer(&json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": request["model"], "content": blocks,
        "stop_reason": stop, "stop_sequence": null, "usage": {"input_tokens": body.len() / 4, "output_tokens": 5},
    }))
}

async fn stats(State(counts): State<Arc<Counts>>) -> String {
    json!({"calls": counts.calls.load(Relaxed), "bytes": counts.bytes.load(Relaxed)}).to_string()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port: u16 = std::env::args().nth(1).map(|port| port.parse()).transpose()?.unwrap_or(0);
    let app = Router::new()
        .route("/v1/chat/completions", post(openai))
        .route("/v1/messages", post(anthropic))
        .route("/stats", get(stats))
        .with_state(Arc::new(Counts::default()))
        .layer(DefaultBodyLimit::max(256 << 20));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("http://{}", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}
