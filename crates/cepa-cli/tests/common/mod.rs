//! The real binary, in a home of its own, with the offline model.

// Each test file uses a part of it; the lints that helpers of tests may break know only tests.
#![allow(dead_code, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::{
    io::{BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Output, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use serde_json::Value;

/// How long something may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A person's home: a folder to work in, and what is kept.
pub(crate) struct Home {
    folder: tempfile::TempDir,
}

/// What a command printed and how it ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        Self { folder }
    }

    /// A path below the home.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }
    /// A file in the folder that the tools work in.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path("work").join(name)
    }
    pub(crate) fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap()
    }
    pub(crate) fn db(&self) -> PathBuf {
        self.path("cepa.db")
    }

    /// The command as it is, in the work folder, with no variables but these.
    pub(crate) fn bare(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cepa"));
        command.args(words).current_dir(self.path("work")).env_clear().env("HOME", self.folder.path());
        // No server of this machine answers here.
        command.env("OLLAMA_BASE_URL", "http://127.0.0.1:1/v1").env("LLAMA_CPP_BASE_URL", "http://127.0.0.1:1/v1");
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The command with the offline model and a database of its own.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.bare(words);
        command.args(["--model", "offline", "--db"]).arg(self.db());
        command
    }

    pub(crate) fn cepa(&self, words: &[&str]) -> Ran {
        finished(self.command(words).output().unwrap())
    }

    /// Runs a command with this standard input.
    pub(crate) fn fed(&self, words: &[&str], input: &[u8]) -> Ran {
        feed(self.command(words), input)
    }

    /// A turn in the conversation `talk`.
    pub(crate) fn say(&self, prompt: &str) -> Ran {
        self.cepa(&["run", prompt, "--conversation", "talk"])
    }

    pub(crate) fn pending(&self) -> Vec<Value> {
        let ran = self.cepa(&["pending", "--json"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        serde_json::from_str(&ran.out).unwrap()
    }

    /// The id of the one waiting call, which is of this tool.
    pub(crate) fn only_pause(&self, tool: &str) -> String {
        let pending = self.pending();
        assert_eq!(pending.len(), 1, "{pending:?}");
        assert_eq!(pending[0]["tool"], tool);
        pending[0]["pause_id"].as_str().unwrap().to_owned()
    }

    /// Changes the database behind our back; whether there is a Python to do it.
    pub(crate) fn sql(&self, statement: &str) -> bool {
        let script = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute(sys.argv[2]); db.commit()";
        let done = Command::new("python3").args(["-c", script]).arg(self.db()).arg(statement).status();
        done.is_ok_and(|status| status.success())
    }

    /// A chat in the conversation `talk`, to talk with.
    pub(crate) fn chat(&self) -> Chat {
        let mut command = self.command(&["--conversation", "talk"]);
        Chat::new(command.stdin(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap())
    }
}

pub(crate) fn feed(mut command: Command, input: &[u8]) -> Ran {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        // Whoever does not read it to its end closes it.
        scope.spawn(move || drop(stdin.write_all(input)));
        finished(child.wait_with_output().unwrap())
    })
}

pub(crate) fn finished(output: Output) -> Ran {
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Ran {
    /// Checks the exit code and returns what was printed.
    #[track_caller]
    pub(crate) fn ends(&self, code: i32) -> &str {
        assert_eq!(self.code, Some(code), "{self:?}");
        &self.out
    }

    /// Checks that it failed with one line that holds these words, and nothing else was printed.
    #[track_caller]
    pub(crate) fn fails_with(&self, code: i32, words: &str) {
        self.ends(code);
        let line = self.err.lines().find(|line| line.starts_with("cepa: ")).unwrap_or_default();
        assert!(line.contains(words), "{words:?} expected: {self:?}");
        assert_eq!(self.err.matches("cepa: ").count(), 1, "{self:?}");
        assert_eq!(self.out, "", "{self:?}");
    }

    /// The objects of JSON lines.
    #[track_caller]
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// A running chat. Nothing is waited for longer than half a minute.
pub(crate) struct Chat {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    printed: mpsc::Receiver<u8>,
}

impl Chat {
    fn new(mut child: Child) -> Self {
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, printed) = mpsc::channel();
        std::thread::spawn(move || {
            for byte in stdout.bytes() {
                let Ok(byte) = byte else { return };
                let _ = sender.send(byte);
            }
        });
        Self { child, stdin, printed }
    }

    pub(crate) fn say(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Reads until this text; returns what was read.
    #[track_caller]
    pub(crate) fn until(&mut self, text: &str) -> String {
        let mut read = Vec::new();
        let end = Instant::now() + PATIENCE;
        while !read.ends_with(text.as_bytes()) {
            match self.printed.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(byte) => read.push(byte),
                Err(why) => panic!("no {text:?} ({why}) in {}", String::from_utf8_lossy(&read)),
            }
        }
        String::from_utf8(read).unwrap()
    }

    /// Closes its input, and returns what it printed to its end and its exit code.
    pub(crate) fn leave(mut self) -> (String, Option<i32>) {
        drop(self.stdin.take());
        let mut rest = Vec::new();
        while let Ok(byte) = self.printed.recv_timeout(PATIENCE) {
            rest.push(byte);
        }
        let code = self.child.wait().unwrap().code();
        (String::from_utf8(rest).unwrap(), code)
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Chat {
    /// What a test that failed leaves behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends Ctrl-C.
#[cfg(unix)]
pub(crate) fn interrupt(child: &Child) {
    use rustix::process::{Pid, Signal, kill_process};
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
}

/// Waits until a file is there.
pub(crate) fn wait_for(file: &Path) {
    let end = Instant::now() + PATIENCE;
    while !file.exists() {
        assert!(Instant::now() < end, "{} did not come", file.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A server that answers everyone with this status and body; returns its address.
pub(crate) fn server(status: &'static str, body: &'static str) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = vec![0; 1 << 16];
            let _ = stream.read(&mut request);
            let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}", body.len());
            let _ = stream.write_all(format!("{head}\r\nconnection: close\r\n\r\n{body}").as_bytes());
        }
    });
    url
}
