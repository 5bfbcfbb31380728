//! A working folder with a secret beside it, for the tests of the tools.

use std::{
    fs,
    path::{Path, PathBuf},
};

use cepa::{CancellationToken, ToolError};

use super::{Stop, root::Root};

/// What no tool may ever show or change.
pub(super) const SECRET: &str = "the secret outside";

/// `work/` is the root; `outside/secret.txt` is beside it.
pub(super) struct Sandbox {
    _folder: tempfile::TempDir,
    pub(super) work: PathBuf,
    pub(super) outside: PathBuf,
    pub(super) root: Root,
}

impl Sandbox {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let (work, outside) = (base.join("work"), base.join("outside"));
        fs::create_dir(&work).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret.txt"), SECRET).unwrap();
        let root = Root::open(&work).unwrap();
        Self { _folder: folder, work, outside, root }
    }

    /// Puts a file into the root.
    pub(super) fn with(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.put(path, content);
        self
    }

    pub(super) fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.work.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(super) fn bytes(&self, path: &str) -> Vec<u8> {
        fs::read(self.work.join(path)).unwrap()
    }

    pub(super) fn text(&self, path: &str) -> String {
        String::from_utf8(self.bytes(path)).unwrap()
    }

    /// All names in a folder of the root, sorted.
    pub(super) fn names(&self, path: &str) -> Vec<String> {
        names(&self.work.join(path))
    }

    /// Fails if anything outside was changed or added.
    pub(super) fn assert_outside_untouched(&self) {
        assert_eq!(names(&self.outside), ["secret.txt"]);
        assert_eq!(fs::read_to_string(self.outside.join("secret.txt")).unwrap(), SECRET);
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A call that nobody stops.
pub(super) fn on() -> Stop {
    Stop(CancellationToken::new())
}

/// The arguments of a call, as a model sends them.
pub(super) fn args<A: serde::de::DeserializeOwned>(json: serde_json::Value) -> A {
    serde_json::from_value(json).unwrap()
}

/// The text of a failure that is the model's to repair.
pub(super) fn failure<T: std::fmt::Debug>(result: Result<T, ToolError>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.failure, cepa::ToolFailure::Semantic, "{}", error.message);
    error.message
}

/// Makes a named pipe.
#[cfg(unix)]
pub(super) fn make_pipe(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}
