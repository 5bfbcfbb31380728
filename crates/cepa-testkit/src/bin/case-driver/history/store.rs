//! The stores of the kind `history`.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use cepa_agent::{ChatMemory, InMemory, Window, Windowed};
use cepa_core::{Error, Message};
use cepa_store::Sqlite;
use serde::Deserialize;

use crate::line::Fail;

/// A store as the input describes it.
#[derive(Clone, Deserialize)]
pub(crate) struct StoreWords {
    kind: String,
    over: Option<String>,
    max_messages: Option<u64>,
    max_tokens: Option<u64>,
    tokens: Option<String>,
}

/// An open store.
pub(crate) struct Store {
    /// What a caller sees.
    pub(crate) shown: Arc<dyn ChatMemory>,
    /// What lies beneath.
    pub(crate) base: Arc<dyn ChatMemory>,
    file: Option<PathBuf>,
}

impl Store {
    /// Opens it; the inner error is the library's refusal.
    pub(crate) fn open(words: &StoreWords, folder: &Path) -> Result<Result<Self, Error>, Fail> {
        let window = match words.kind.as_str() {
            "windowed" => match window(words)? {
                Ok(window) => Some(window),
                Err(error) => return Ok(Err(error)),
            },
            _ => None,
        };
        let kind = if window.is_some() { words.over.as_deref().unwrap_or("memory") } else { &words.kind };
        match kind {
            "memory" => Ok(Ok(Self::over(InMemory::new(), window, None))),
            "sqlite" => {
                let path = folder.join("case.db");
                Ok(Sqlite::open(&path).map(|store| Self::over(store, window, Some(path))))
            }
            kind => Err(Fail::Crash(format!("the store `{kind}` is not known"))),
        }
    }

    fn over(memory: impl ChatMemory + Clone, window: Option<Window>, file: Option<PathBuf>) -> Self {
        let base: Arc<dyn ChatMemory> = Arc::new(memory.clone());
        let shown = match window {
            Some(window) => Arc::new(Windowed::new(memory, window)),
            None => base.clone(),
        };
        Self { shown, base, file }
    }

    /// The database's file.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }
}

fn window(words: &StoreWords) -> Result<Result<Window, Error>, Fail> {
    match (words.max_messages, words.max_tokens, words.tokens.as_deref()) {
        (Some(most), None, _) => Ok(Window::messages(most)),
        (None, Some(most), Some("chars/4")) => Ok(Window::tokens(most, quarter_of_characters)),
        _ => Err(Fail::Crash("the window has no size that is known".to_owned())),
    }
}

/// A token for four characters of content, call names and arguments as JSON.
fn quarter_of_characters(message: &Message) -> u64 {
    let text = message.text().chars().count();
    let calls = message.tool_calls().iter();
    let calls: usize = calls.map(|call| call.name.chars().count() + call.args.as_str().chars().count()).sum();
    (text + calls) as u64 / 4
}
