//! What the clients share: the work, and how it is measured.
//!
//! The work is one turn in a fresh conversation: ten rounds with one call of `add` each, then the answer: eleven model
//! calls. A client does some turns to warm up, then measures its own CPU time (user and system) over many.

use std::future::Future;

use cpu_time::ProcessTime;

/// The model's name, which is the mock server's script.
pub const MODEL: &str = "loop-10";
/// Model calls of one turn.
pub const CALLS_PER_TURN: u32 = 11;
/// The system prompt of every request.
pub const SYSTEM: &str = "You are a helpful assistant.";
/// The user's message.
pub const USER: &str = "hello there";
/// The schema of the one tool.
pub const ADD_SCHEMA: &str = r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}"#;

const WARM_UP: u32 = 50;

/// Runs the turns and prints one JSON line: CPU microseconds a model call.
pub async fn measure<F, Fut>(name: &str, turn: F) -> Result<(), Box<dyn std::error::Error>>
where
    F: Fn() -> Fut,
    Fut: Future<Output = Result<String, Box<dyn std::error::Error>>>,
{
    let turns: u32 = std::env::args().nth(2).map(|turns| turns.parse()).transpose()?.unwrap_or(500);
    for _ in 0..WARM_UP {
        let text = turn().await?;
        if !text.starts_with("word0") {
            return Err(format!("the answer of {name} is {text:?}").into());
        }
    }
    let start = ProcessTime::now();
    for _ in 0..turns {
        turn().await?;
    }
    let cpu = start.elapsed().as_secs_f64() * 1e6;
    let per_call = cpu / f64::from(turns) / f64::from(CALLS_PER_TURN);
    println!(r#"{{"client":"{name}","turns":{turns},"cpu_us_per_call":{per_call:.2}}}"#);
    Ok(())
}

/// The base URL of the mock server: the first argument.
pub fn base_url() -> Result<String, Box<dyn std::error::Error>> {
    Ok(format!("{}/v1", std::env::args().nth(1).ok_or("usage: CLIENT SERVER_URL [TURNS]")?))
}
