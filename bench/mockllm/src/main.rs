//! A model server that does not think, on loopback: OpenAI chat completions and Anthropic messages, streamed or not.
//!
//! The model's name is the script: `loop-K` asks for one call of `add` in each of K rounds and then answers,
//! `par-K` asks for K calls at once and then answers, `say-N` answers with N words; `-dMS` behind it waits that many
//! milliseconds first. A stream has one event a word and is sent in one piece. `GET /stats` counts calls and bytes.

mod anthropic;
mod openai;
mod script;

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

use crate::script::{Request, Script};

#[derive(Default)]
struct Counts {
    calls: AtomicU64,
    bytes: AtomicU64,
    ids: AtomicU64,
}

/// What an answer is made of.
struct Answer<'a> {
    model: &'a str,
    script: Script,
    /// Which round of the turn this is.
    round: usize,
    /// The ids of the calls to make; none at the end of the turn.
    ids: Vec<u64>,
    bytes_read: usize,
}

type Writer = fn(&Answer<'_>) -> String;

/// Counts a request, reads it, and lets one of these two answer it.
async fn serve(counts: &Counts, body: &Bytes, whole: Writer, stream: Writer) -> Response {
    counts.calls.fetch_add(1, Relaxed);
    counts.bytes.fetch_add(body.len() as u64, Relaxed);
    let Ok(request) = serde_json::from_slice::<Request>(body) else {
        let error = json!({"error": {"message": "not a request", "type": "invalid_request_error"}});
        return (StatusCode::BAD_REQUEST, error.to_string()).into_response();
    };
    let (script, round) = (Script::of(&request.model), request.rounds_so_far());
    if !script.delay.is_zero() {
        tokio::time::sleep(script.delay).await;
    }
    let calls = if round < script.rounds { script.calls } else { 0 };
    let ids = (0..calls).map(|_| counts.ids.fetch_add(1, Relaxed)).collect();
    let answer = Answer { model: &request.model, script, round, ids, bytes_read: body.len() };
    let (kind, text) =
        if request.stream { ("text/event-stream", stream(&answer)) } else { ("application/json", whole(&answer)) };
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

async fn openai(State(counts): State<Arc<Counts>>, body: Bytes) -> Response {
    serve(&counts, &body, openai::whole, openai::stream).await
}

async fn anthropic(State(counts): State<Arc<Counts>>, body: Bytes) -> Response {
    serve(&counts, &body, anthropic::whole, anthropic::stream).await
}

async fn stats(State(counts): State<Arc<Counts>>) -> String {
    let value: Value = json!({"calls": counts.calls.load(Relaxed), "bytes": counts.bytes.load(Relaxed)});
    value.to_string()
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
