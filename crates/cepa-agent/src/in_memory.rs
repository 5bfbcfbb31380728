//! Conversations and turns kept in the process: fast, complete, and gone with it.

mod bare;
mod conversations;
#[cfg(test)]
mod in_memory_tests;
mod live;
mod packed;
#[cfg(test)]
mod packed_tests;
mod turns;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cepa_core::{BoxFuture, Entry, Error, RawJson};

pub use self::bare::Bare;
use self::{conversations::Conversations, turns::Turns};
use crate::{
    audit::AuditEntry,
    ids,
    memory::{ChatMemory, ConversationInfo, Loaded, Version},
    pause::{Decision, Pause},
    store::{Commit, Lease, LiveTurn, Opened, StoredTurn, TurnRow, TurnStore},
};

/// A memory and store in the process. Clones share what they keep; it keeps every conversation until it is cleared.
///
/// Conversations that were used lately are there as messages, the others packed: less than their JSON takes. Of the
/// turns that are over it keeps those that asked somebody or have a result that was cut, and the last hundred others.
///
/// ```
/// # use std::sync::Arc;
/// use cepa_agent::{ChatMemory, InMemory, Version, load_whole};
/// use cepa_core::{Entry, Message};
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let memory = InMemory::new();
/// memory.append("c", Version::default(), vec![Arc::new(Entry::new(Message::user("hi")))]).await?;
/// let (version, history) = load_whole(&memory.clone(), "c").await?;
/// assert_eq!((version.seq, history.len()), (1, 1));
/// # Ok::<(), cepa_core::Error>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct InMemory(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    conversations: Conversations,
    turns: Turns,
}

impl State {
    fn clear(&mut self, id: &str) {
        let now = ids::now_ms();
        self.turns.clear(id, now);
        self.conversations.clear(id, now);
    }

    fn commit(&mut self, turn: &str, token: u64, mut commit: Commit) -> Result<(), Error> {
        let Self { conversations, turns } = self;
        let (messages, expected, at) = (std::mem::take(&mut commit.messages), commit.expected, commit.at);
        let append = |conversation: &str| {
            if messages.is_empty() && expected.is_none() {
                return Ok(());
            }
            let entries = messages.into_iter().map(|entry| entry.0).collect();
            conversations.append(conversation, expected, entries, at).map(drop)
        };
        let forgotten = turns.commit(turn, token, commit, append)?;
        self.forgot(forgotten);
        Ok(())
    }

    /// An ephemeral turn is gone, and its conversation with it.
    fn forgot(&mut self, conversation: Option<String>) {
        if let Some(conversation) = conversation {
            self.conversations.remove(&conversation);
        }
    }
}

impl InMemory {
    /// An empty memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets about how many bytes the conversations may take that are not packed, 16 MiB by default. The one in use is
    /// never packed, unless this is 0.
    ///
    /// ```
    /// let memory = cepa_agent::InMemory::new().hot_bytes(4 << 20);
    /// # let _ = memory;
    /// ```
    pub fn hot_bytes(self, bytes: usize) -> Self {
        self.state().conversations.set_max_hot_bytes(bytes);
        self
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing inside can panic half-way; what a poisoned lock guards is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for InMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InMemory({} conversations)", self.state().conversations.len())
    }
}

/// A future that is there at once.
fn ready<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, T> {
    Box::pin(std::future::ready(value))
}

impl ChatMemory for InMemory {
    fn load<'a>(&'a self, id: &'a str, held: Option<Version>) -> BoxFuture<'a, Result<Loaded, Error>> {
        ready(self.state().conversations.load(id, held))
    }

    fn append<'a>(
        &'a self,
        id: &'a str,
        expected: Version,
        entries: Vec<Arc<Entry>>,
    ) -> BoxFuture<'a, Result<Version, Error>> {
        Box::pin(async move { self.state().conversations.append(id, Some(expected), entries, ids::now_ms()) })
    }

    fn clear<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            self.state().clear(id);
            Ok(())
        })
    }

    fn list(&self, skip: usize, limit: usize) -> BoxFuture<'_, Result<Vec<ConversationInfo>, Error>> {
        ready(Ok(self.state().conversations.list(skip, limit)))
    }

    fn page<'a>(&'a self, id: &'a str, after: u64, limit: usize) -> BoxFuture<'a, Result<Vec<Arc<Entry>>, Error>> {
        ready(self.state().conversations.page(id, after, limit))
    }
}

impl TurnStore for InMemory {
    fn identity(&self) -> Option<String> {
        Some(format!("memory {:p}", Arc::as_ptr(&self.0)))
    }

    fn lease<'a>(
        &'a self,
        conversation: &'a str,
        holder: &'a str,
        now: i64,
        until: i64,
    ) -> BoxFuture<'a, Result<Lease, Error>> {
        Box::pin(async move { self.state().turns.lease(conversation, holder, now, until) })
    }

    fn release<'a>(&'a self, conversation: &'a str, token: u64) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            self.state().turns.release(conversation, token);
            Ok(())
        })
    }

    fn open_turn<'a>(
        &'a self,
        turn: TurnRow,
        holder: &'a str,
        now: i64,
        until: i64,
    ) -> BoxFuture<'a, Result<Opened, Error>> {
        Box::pin(async move { self.state().turns.open(turn, holder, now, until) })
    }

    fn begin<'a>(&'a self, turn: TurnRow, token: u64) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move { self.state().turns.begin(turn, token) })
    }

    fn commit<'a>(&'a self, turn: &'a str, token: u64, commit: Commit) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move { self.state().commit(turn, token, commit) })
    }

    fn forget<'a>(&'a self, turn: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let mut state = self.state();
            let forgotten = state.turns.forget(turn)?;
            state.forgot(forgotten);
            Ok(())
        })
    }

    fn turn<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<StoredTurn>, Error>> {
        ready(Ok(self.state().turns.turn(id)))
    }

    fn live_turns<'a>(&'a self, conversation: Option<&'a str>) -> BoxFuture<'a, Result<Vec<LiveTurn>, Error>> {
        ready(Ok(self.state().turns.live_turns(conversation)))
    }

    fn pending<'a>(&'a self, conversation: Option<&'a str>) -> BoxFuture<'a, Result<Vec<Pause>, Error>> {
        ready(Ok(self.state().turns.pending(conversation)))
    }

    fn pause<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Pause>, Error>> {
        ready(Ok(self.state().turns.pause(id).cloned()))
    }

    fn decide<'a>(
        &'a self,
        pause: &'a str,
        decision: Decision,
        actor: &'a str,
        now: i64,
    ) -> BoxFuture<'a, Result<Pause, Error>> {
        Box::pin(async move { self.state().turns.decide(pause, decision, actor, now) })
    }

    fn audit<'a>(
        &'a self,
        conversation: Option<&'a str>,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<AuditEntry>, Error>> {
        ready(Ok(self.state().turns.audit(conversation, after, limit)))
    }

    fn full_result<'a>(&'a self, message: &'a str) -> BoxFuture<'a, Result<Option<RawJson>, Error>> {
        ready(Ok(self.state().turns.full(message)))
    }
}
