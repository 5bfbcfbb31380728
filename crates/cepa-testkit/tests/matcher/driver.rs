//! The driver as a process: one line to it, one line back.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread::JoinHandle,
    time::Duration,
};

use super::json::Json;

/// The key that the driver uses wherever it needs one.
const API_KEY: &str = "sk-case-key-that-must-not-leak";

/// How long one case may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running driver.
pub(crate) struct Driver {
    child: Child,
    to: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr: JoinHandle<String>,
    asked: usize,
}

impl Driver {
    /// Starts it.
    pub(crate) fn start(path: &str) -> Result<Self, String> {
        let mut child = Command::new(path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{path}: {error}"))?;
        let to = child.stdin.take();
        let stdout = child.stdout.take().ok_or("no stdout")?;
        let mut stderr = child.stderr.take().ok_or("no stderr")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            // Nobody is left to tell when the receiver is gone.
            BufReader::new(stdout).lines().map_while(Result::ok).all(|line| sender.send(line).is_ok())
        });
        let stderr = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = stderr.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        Ok(Self { child, to, lines, stderr, asked: 0 })
    }

    /// Gives it one case and takes what it observed.
    pub(crate) fn ask(&mut self, case: &Json) -> Result<Json, String> {
        self.asked += 1;
        let id = format!("t{}", self.asked);
        let part = |name: &str| (name.to_owned(), case.get(name).cloned().unwrap_or(Json::Null));
        let mut line = vec![("id".to_owned(), Json::Text(id.clone()))];
        line.extend([part("kind"), part("provider"), part("input")]);
        let to = self.to.as_mut().ok_or("the driver has ended")?;
        writeln!(to, "{}", Json::Object(line)).and_then(|()| to.flush()).map_err(|error| error.to_string())?;
        let answer = self.lines.recv_timeout(PATIENCE).map_err(|error| format!("no answer: {error}"))?;
        if answer.contains(API_KEY) {
            return Err("the key is in the answer".to_owned());
        }
        let answer = Json::parse(&answer).map_err(|error| format!("no JSON ({error}): {answer}"))?;
        if answer.get("id").and_then(Json::text) != Some(&id) {
            return Err(format!("an answer to another case: {answer}"));
        }
        // Nothing is optional here: a skipped case is a failed one.
        answer.get("observed").cloned().ok_or_else(|| format!("no observation: {answer}"))
    }

    /// Ends it; the error says what it should not have said or how it ended.
    pub(crate) fn end(mut self) -> Result<(), String> {
        self.to = None;
        let more: Vec<String> = self.lines.iter().collect();
        let status = self.child.wait().map_err(|error| error.to_string())?;
        let stderr = self.stderr.join().map_err(|_| "the reader of stderr panicked")?;
        if !status.success() || !more.is_empty() || stderr.contains(API_KEY) {
            return Err(format!("{status}, more output {more:?}, on stderr: {stderr}"));
        }
        Ok(())
    }

    /// Ends one that hangs or has died.
    pub(crate) fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
