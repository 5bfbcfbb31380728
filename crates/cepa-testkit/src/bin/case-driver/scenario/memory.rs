//! The stores of a scenario.

use std::{path::Path, sync::Arc};

use cepa_agent::{Bare, ChatMemory, ConversationInfo, InMemory, Loaded, TurnStore, Version, Window, Windowed};
use cepa_core::{BoxFuture, Entry, Error, ErrorKind};
use cepa_store::Sqlite;

use super::input::MemoryWords;
use crate::line::Fail;

/// A store as the input describes it; a database lies in `folder`.
pub(crate) fn open(words: Option<&MemoryWords>, folder: &Path) -> Result<Option<Arc<dyn TurnStore>>, Fail> {
    let Some(words) = words else { return Ok(None) };
    Ok(Some(match words.kind.as_str() {
        "none" => return Ok(None),
        "memory" => Arc::new(InMemory::new()),
        "sqlite" => Arc::new(Sqlite::open(folder.join("case.db"))?),
        "windowed" => {
            let most = words.max_messages.ok_or_else(|| "the window has no size".to_owned())?;
            Arc::new(Windowed::new(InMemory::new(), Window::messages(most)?))
        }
        "failing" => Arc::new(Bare::new(Failing(InMemory::new()))),
        kind => return Err(Fail::Crash(format!("the memory `{kind}` is not known"))),
    }))
}

/// A memory of a user's own whose disk is full.
struct Failing(InMemory);

impl ChatMemory for Failing {
    fn load<'a>(&'a self, id: &'a str, held: Option<Version>) -> BoxFuture<'a, Result<Loaded, Error>> {
        self.0.load(id, held)
    }
    fn append<'a>(
        &'a self,
        _id: &'a str,
        _expected: Version,
        _entries: Vec<Arc<Entry>>,
    ) -> BoxFuture<'a, Result<Version, Error>> {
        Box::pin(async { Err(Error::new(ErrorKind::Store, "the disk is full")) })
    }
    fn clear<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        self.0.clear(id)
    }
    fn list(&self, skip: usize, limit: usize) -> BoxFuture<'_, Result<Vec<ConversationInfo>, Error>> {
        self.0.list(skip, limit)
    }
    fn page<'a>(&'a self, id: &'a str, after: u64, limit: usize) -> BoxFuture<'a, Result<Vec<Arc<Entry>>, Error>> {
        self.0.page(id, after, limit)
    }
}
