//! The stores of the kind `history`.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use cepa_agent::{ChatMemory, InMemory};
use cepa_core::Error;
use cepa_store::Sqlite;
use serde::Deserialize;

use crate::line::Fail;

/// A store as the input describes it.
#[derive(Clone, Deserialize)]
pub(crate) struct StoreWords {
    kind: String,
    over: Option<String>,
    max_messages: Option<usize>,
    max_tokens: Option<usize>,
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
        let kind = if words.kind == "windowed" { words.over.as_deref().unwrap_or("memory") } else { &words.kind };
        let path = folder.join("case.db");
        let (base, file): (Arc<dyn ChatMemory>, _) = match kind {
            "memory" => (Arc::new(InMemory::new()), None),
            "sqlite" => match Sqlite::open(&path) {
                Ok(store) => (Arc::new(store), Some(path)),
                Err(error) => return Ok(Err(error)),
            },
            kind => return Err(Fail::Crash(format!("the store `{kind}` is not known"))),
        };
        if words.kind != "windowed" {
            return Ok(Ok(Self { shown: base.clone(), base, file }));
        }
        Err(Fail::Crash("the store `windowed` is not known".to_owned()))
    }

    /// The database's file.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }
}
