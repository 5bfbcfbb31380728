//! `run_shell`: a command line, run by `sh` in the working folder, with an end to its time and to its output.

use std::{
    ffi::OsString,
    io,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use cepa::{CancellationToken, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de::Error as _};
use tokio::{io::AsyncReadExt, net::unix::pipe, time::timeout};

use super::{
    env::kept_environment,
    group::{Ended, Group},
    output::Capped,
    root::refused,
    text::count,
};

/// How long a command may take if nothing else is said, and at most.
const DEFAULT_SECONDS: u64 = 60;
const MAX_SECONDS: u64 = 600;
/// How much output one call returns.
const MAX_OUTPUT: usize = 32_000;
/// How long output is waited for after the command has ended: something it left behind may hold it open for ever.
const GRACE: Duration = Duration::from_millis(500);

// The arguments of `run_shell`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunShell {
    /// The command line, as for `sh -c`.
    command: String,
    /// How long it may take, 1 to 600 seconds. Default 60.
    #[serde(default, deserialize_with = "seconds")]
    #[schemars(range(min = 1, max = 600))]
    timeout_seconds: Option<u64>,
}

/// Checked while it is read: before a person is asked about a call that would be refused anyway.
fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    match Option::<u64>::deserialize(from)? {
        Some(seconds) if !(1..=MAX_SECONDS).contains(&seconds) => {
            Err(D::Error::custom(format!("must be 1 to {MAX_SECONDS} seconds")))
        }
        seconds => Ok(seconds),
    }
}

/// Why the command is over.
enum Over {
    Ended(Ended),
    TimedOut,
    Cancelled,
}

/// Runs a command. Dropping the future kills it and all that it started.
pub(super) async fn run_shell(folder: &Path, args: &RunShell, cancel: &CancellationToken) -> Result<String, ToolError> {
    let seconds = args.timeout_seconds.unwrap_or(DEFAULT_SECONDS);
    if args.command.trim().is_empty() {
        return Err(refused("command is empty"));
    }
    if args.command.contains('\0') {
        return Err(refused("a command cannot contain a NUL character"));
    }
    if cancel.is_cancelled() {
        return Err(cancelled());
    }
    let started = Instant::now();
    let (mut group, mut pipe) =
        spawn(folder, &args.command).map_err(|error| ToolError::environment(format!("cannot start sh: {error}")))?;
    let mut output = Capped::new(MAX_OUTPUT);
    let over = tokio::select! {
        // In this order: a flood of output spends all of a task's turn, and what comes after it would never be asked.
        biased;
        () = cancel.cancelled() => Over::Cancelled,
        () = tokio::time::sleep(Duration::from_secs(seconds)) => Over::TimedOut,
        ended = drain_until_end(&mut group, &mut pipe, &mut output) => Over::Ended(ended),
    };
    let held = match over {
        Over::Ended(_) => drain_for(GRACE, &mut pipe, &mut output).await == Drained::StillOpen,
        Over::TimedOut | Over::Cancelled => {
            stop_gently(&mut group, &mut pipe, &mut output).await;
            false
        }
    };
    // Also when the command ended by itself: what it left in the background goes with it.
    group.kill();
    let escaped = drain_for(GRACE, &mut pipe, &mut output).await == Drained::StillOpen;
    let left = match (held, escaped) {
        (_, true) => "; something that it started in a session of its own still runs",
        (true, false) => "; what it left running in the background was killed",
        (false, false) => "",
    };
    let how = match over {
        Over::Cancelled => return Err(cancelled()),
        Over::TimedOut => format!("timed out after {} and was killed", count(seconds, "second", "seconds")),
        Over::Ended(ended) => format!("{}, {:.1} s", words(ended), started.elapsed().as_secs_f64()),
    };
    Ok(report(&output, &format!("{how}{left}")))
}

fn cancelled() -> ToolError {
    ToolError::semantic("cancelled: the command was killed")
}

fn spawn(folder: &Path, command: &str) -> io::Result<(Group, pipe::Receiver)> {
    // One pipe for both, so that errors stand where they happened.
    let (reader, writer) = io::pipe()?;
    let pipe = pipe::Receiver::from_owned_fd(reader.into())?;
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .env_clear()
        .envs(kept_environment(std::env::vars_os()))
        .envs(QUIET.map(|(name, value)| (OsString::from(name), OsString::from(value))));
    let group = Group::spawn(&mut shell)?;
    // The command holds our ends for writing: with them open, the output would never end.
    drop(shell);
    Ok((group, pipe))
}

/// Nobody is there to page, to answer or to see colours.
const QUIET: [(&str, &str); 5] =
    [("TERM", "dumb"), ("NO_COLOR", "1"), ("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0")];

#[derive(PartialEq, Eq)]
enum Drained {
    Closed,
    StillOpen,
}

/// Reads on until the leader has ended (which is when what it wrote is in the pipe).
async fn drain_until_end(group: &mut Group, pipe: &mut pipe::Receiver, output: &mut Capped) -> Ended {
    let ended = group.ended();
    tokio::pin!(ended);
    tokio::select! {
        biased;
        ended = &mut ended => ended,
        () = drain(pipe, output) => ended.await,
    }
}

async fn drain_for(time: Duration, pipe: &mut pipe::Receiver, output: &mut Capped) -> Drained {
    match timeout(time, drain(pipe, output)).await {
        Ok(()) => Drained::Closed,
        Err(_) => Drained::StillOpen,
    }
}

/// Reads to the end of the pipe, also what is not kept: a command must not wait for its reader.
async fn drain(pipe: &mut pipe::Receiver, output: &mut Capped) {
    let mut buffer = vec![0; 64 * 1024];
    // Cancel-safe: a read that was dropped has taken nothing.
    while let Ok(length @ 1..) = pipe.read(&mut buffer).await {
        output.push(buffer.get(..length).unwrap_or_default());
    }
}

/// Gives the processes a moment to clean up (lock files, temporary files).
async fn stop_gently(group: &mut Group, pipe: &mut pipe::Receiver, output: &mut Capped) {
    group.terminate();
    let _ = timeout(GRACE, drain_until_end(group, pipe, output)).await;
}

fn words(ended: Ended) -> String {
    match ended {
        Ended::Exit(code) => format!("exit code {code}"),
        Ended::Signal(signal) => match signal_name(signal) {
            Some(name) => format!("killed by signal {signal} ({name})"),
            None => format!("killed by signal {signal}"),
        },
        Ended::Unknown => "ended, exit code unknown".to_owned(),
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    use rustix::process::Signal;
    let names = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::SYS, "SIGSYS"),
    ];
    names.into_iter().find(|(known, _)| known.as_raw() == signal).map(|(_, name)| name)
}

fn report(output: &Capped, how: &str) -> String {
    let mut text = output.text();
    if text.is_empty() {
        return format!("[{how}; no output]");
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&format!("[{how}]"));
    text
}

#[cfg(test)]
#[path = "shell_tests.rs"]
mod tests;
