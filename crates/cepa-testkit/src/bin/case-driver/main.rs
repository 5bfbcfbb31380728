//! Speaks the protocol of the acceptance cases: one JSON line in, one JSON line out, by the library's public interface only.
//!
//! It judges nothing: see `tests/cases/README.md` for the protocol and `tests/cases.rs` for who compares.

mod client;
mod history;
mod line;
mod neutral;
mod outcome;
mod request;
mod response;
mod scenario;
mod server;
mod stream;
mod wire;

use std::io::{BufRead, Write};

use line::{Fail, Line, Observed};

/// The key wherever one is needed; it must show up nowhere.
const API_KEY: &str = "sk-case-key-that-must-not-leak";

fn main() -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build()?;
    let mut stdout = std::io::stdout().lock();
    for text in std::io::stdin().lock().lines() {
        let text = text?;
        if text.trim().is_empty() {
            continue;
        }
        let (id, answer) = match Line::read(&text) {
            Ok(line) => (line.id.clone(), runtime.block_on(answer(line))),
            Err(problem) => (String::new(), Err(Fail::Crash(problem))),
        };
        writeln!(stdout, "{}", line::write(&id, answer))?;
        stdout.flush()?;
    }
    // Bodies that never return are not waited for.
    runtime.shutdown_background();
    Ok(())
}

/// Runs one case. A panic of the library is said, not hidden.
async fn answer(line: Line) -> Result<Observed, Fail> {
    let run = tokio::spawn(async move {
        match line.kind.as_str() {
            "response" => response::run(&line).await,
            "stream" => stream::run(&line),
            "request" => request::run(&line).await,
            "history" => history::run(&line).await,
            "scenario" => scenario::run(&line).await,
            kind => Err(Fail::Crash(format!("the kind `{kind}` is not known"))),
        }
    });
    match run.await {
        Ok(answer) => answer,
        Err(error) => Err(Fail::Crash(format!("panicked: {error}"))),
    }
}
