//! A child process: started, listened to, killed.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Command, ExitStatus, Stdio},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use super::task::{Said, Task};

/// Longer than any child takes on a busy machine. One that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(600);

const PROGRAM: &str = env!("CARGO_BIN_EXE_turn-child");

/// A child that runs.
pub(crate) struct Child {
    process: std::process::Child,
    said: Option<JoinHandle<Vec<Said>>>,
    complained: Option<JoinHandle<String>>,
    ready: std::sync::mpsc::Receiver<()>,
    task: String,
}

/// A child that is gone.
#[derive(Debug)]
pub(crate) struct Exit {
    /// What it said.
    pub(crate) said: Vec<Said>,
    /// Whether it was killed: it did not come to its end.
    pub(crate) killed: bool,
}

impl Child {
    pub(crate) fn start(task: &Task) -> Self {
        Self::start_as(Command::new(PROGRAM), task)
    }

    /// Starts one whose files cannot grow beyond so many blocks of 512 bytes. It is not killed where it tries.
    pub(crate) fn start_limited(task: &Task, blocks: u64) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\""), PROGRAM]);
        Self::start_as(command, task)
    }

    fn start_as(mut command: Command, task: &Task) -> Self {
        let task = serde_json::to_string(task).unwrap();
        let mut process =
            command.arg(&task).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        let mut stderr = process.stderr.take().unwrap();
        let (tell, ready) = std::sync::mpsc::channel();
        let said = std::thread::spawn(move || {
            let mut said = Vec::new();
            for line in stdout.lines().map_while(Result::ok) {
                // The last line of a child that was killed may be half a line: then it has not said it.
                if let Ok(word) = serde_json::from_str(&line) {
                    if word == Said::Ready {
                        let _ = tell.send(());
                    }
                    said.push(word);
                }
            }
            said
        });
        let complained = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            text
        });
        Self { process, said: Some(said), complained: Some(complained), ready, task }
    }

    /// Waits until it has begun.
    pub(crate) fn wait_until_ready(&self) {
        // A child that died before is seen by who waits for its end.
        let _ = self.ready.recv_timeout(LIMIT);
    }

    /// Kills it with SIGKILL, if it still runs.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> Exit {
        let from = Instant::now();
        let status = loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                break status;
            }
            if from.elapsed() > LIMIT {
                self.process.kill().unwrap();
                panic!("a child hangs: {}", self.task);
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let said = self.said.take().unwrap().join().unwrap();
        let complained = self.complained.take().unwrap().join().unwrap();
        let killed = was_killed(status);
        assert!(killed || status.success(), "a child failed ({status}): {}\n{complained}", self.task);
        Exit { said, killed }
    }

    /// Starts one and waits for its end.
    pub(crate) fn run(task: &Task) -> Exit {
        Self::start(task).wait()
    }
}

#[cfg(unix)]
fn was_killed(status: ExitStatus) -> bool {
    std::os::unix::process::ExitStatusExt::signal(&status) == Some(9)
}

#[cfg(not(unix))]
fn was_killed(status: ExitStatus) -> bool {
    !status.success()
}
