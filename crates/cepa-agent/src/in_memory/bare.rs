//! A memory that only keeps conversations, with an in-process store of turns beside it.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cepa_core::{BoxFuture, Entry, Error, ErrorKind, History, RawJson};

use super::{Turns, ready};
use crate::{
    audit::AuditEntry,
    ids,
    memory::{ChatMemory, ConversationInfo, CorruptRow, Loaded, Version},
    pause::{Decision, Pause},
    store::{Commit, Lease, LiveTurn, Opened, StoredTurn, TurnRow, TurnStore},
};

/// How many turns that are over are kept, so that a decision made twice still finds its pause.
pub(super) const TURNS_KEPT: usize = 1000;
/// How often an append of a commit is tried while others append too.
const TRIES: usize = 16;

/// A user's own [`ChatMemory`] as a [`TurnStore`]: messages go to the memory, turns and pauses stay in the process.
///
/// What a store of turns promises and this cannot:
/// * **Nothing of a turn survives the process.** A pause that waits is gone with it, and a call that ran when the
///   process died is known only by what was appended before.
/// * **A step is not one transaction.** Its messages are appended first; if the process dies right then, they are
///   there and the rest is not. The history stays legal: open calls are answered when it is next sent.
/// * **Leases hold within this process only**: a second process that talks in the same conversation is noticed when
///   both append (a conflict), not before.
/// * Of the turns that are over only the last thousand are kept: a late repetition of a decision finds no pause, and
///   the full text of a result that was cut for the model can no longer be read. Of the audit trail the newest part is
///   kept.
pub struct Bare<M>(Arc<Inner<M>>);

struct Inner<M> {
    memory: M,
    turns: Mutex<Turns>,
    /// The last version seen of each conversation, so that a commit need not load what it appends to.
    seen: Mutex<HashMap<String, Version>>,
}

impl<M> Clone for Bare<M> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<M> fmt::Debug for Bare<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bare")
    }
}

impl<M: ChatMemory> Bare<M> {
    /// Puts a store of turns beside a memory.
    pub fn new(memory: M) -> Self {
        let turns = Mutex::new(Turns::keeping(TURNS_KEPT));
        Self(Arc::new(Inner { memory, turns, seen: Mutex::default() }))
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.0.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn saw(&self, conversation: &str, version: Version) {
        let mut seen = self.0.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert(conversation.to_owned(), version);
    }

    async fn version(&self, conversation: &str) -> Result<Version, Error> {
        let held = self.0.seen.lock().unwrap_or_else(PoisonError::into_inner).get(conversation).copied();
        match (self.0.memory.load(conversation, held).await?, held) {
            (Loaded::Unchanged, held) => Ok(held.unwrap_or_default()),
            (Loaded::Added { version, .. } | Loaded::Whole { version, .. }, _) => Ok(version),
        }
    }

    /// Appends to whatever is there: a commit holds the conversation, so what came between is not its rival.
    async fn append_anywhere(&self, conversation: &str, entries: Vec<Arc<Entry>>) -> Result<(), Error> {
        let mut tries = 0;
        loop {
            let version = self.version(conversation).await?;
            match self.0.memory.append(conversation, version, entries.clone()).await {
                Ok(version) => {
                    self.saw(conversation, version);
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Conflict && tries < TRIES => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }
}

impl<M: ChatMemory> ChatMemory for Bare<M> {
    fn load<'a>(&'a self, id: &'a str, held: Option<Version>) -> BoxFuture<'a, Result<Loaded, Error>> {
        self.0.memory.load(id, held)
    }

    fn append<'a>(
        &'a self,
        id: &'a str,
        expected: Version,
        entries: Vec<Arc<Entry>>,
    ) -> BoxFuture<'a, Result<Version, Error>> {
        Box::pin(async move {
            let version = self.0.memory.append(id, expected, entries).await?;
            self.saw(id, version);
            Ok(version)
        })
    }

    fn clear<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            self.0.memory.clear(id).await?;
            self.turns().clear(id, ids::now_ms());
            Ok(())
        })
    }

    fn list(&self, skip: usize, limit: usize) -> BoxFuture<'_, Result<Vec<ConversationInfo>, Error>> {
        self.0.memory.list(skip, limit)
    }

    fn page<'a>(&'a self, id: &'a str, after: u64, limit: usize) -> BoxFuture<'a, Result<Vec<Arc<Entry>>, Error>> {
        self.0.memory.page(id, after, limit)
    }

    fn load_lossy<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(History, Vec<CorruptRow>), Error>> {
        self.0.memory.load_lossy(id)
    }
}

impl<M: ChatMemory> TurnStore for Bare<M> {
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
        Box::pin(async move { self.turns().lease(conversation, holder, now, until) })
    }

    fn release<'a>(&'a self, conversation: &'a str, token: u64) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            self.turns().release(conversation, token);
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
        Box::pin(async move { self.turns().open(turn, holder, now, until) })
    }

    fn begin<'a>(&'a self, turn: TurnRow, token: u64) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move { self.turns().begin(turn, token) })
    }

    fn commit<'a>(&'a self, turn: &'a str, token: u64, mut commit: Commit) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let messages = std::mem::take(&mut commit.messages);
            if !messages.is_empty() {
                // A step that is refused appends nothing.
                let conversation = self.turns().check_commit(turn, token, &commit)?;
                let entries = messages.into_iter().map(|entry| entry.0).collect();
                match commit.expected {
                    Some(expected) => self.0.memory.append(&conversation, expected, entries).await.map(drop)?,
                    None => self.append_anywhere(&conversation, entries).await?,
                }
            }
            self.turns().commit(turn, token, commit, |_| Ok(())).map(drop)
        })
    }

    fn forget<'a>(&'a self, turn: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move { self.turns().forget(turn).map(|_| ()) })
    }

    fn turn<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<StoredTurn>, Error>> {
        ready(Ok(self.turns().turn(id)))
    }

    fn live_turns<'a>(&'a self, conversation: Option<&'a str>) -> BoxFuture<'a, Result<Vec<LiveTurn>, Error>> {
        ready(Ok(self.turns().live_turns(conversation)))
    }

    fn pending<'a>(&'a self, conversation: Option<&'a str>) -> BoxFuture<'a, Result<Vec<Pause>, Error>> {
        ready(Ok(self.turns().pending(conversation)))
    }

    fn pause<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Pause>, Error>> {
        ready(Ok(self.turns().pause(id).cloned()))
    }

    fn decide<'a>(
        &'a self,
        pause: &'a str,
        decision: Decision,
        actor: &'a str,
        now: i64,
    ) -> BoxFuture<'a, Result<Pause, Error>> {
        Box::pin(async move { self.turns().decide(pause, decision, actor, now) })
    }

    fn audit<'a>(
        &'a self,
        conversation: Option<&'a str>,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<AuditEntry>, Error>> {
        ready(Ok(self.turns().audit(conversation, after, limit)))
    }

    fn full_result<'a>(&'a self, message: &'a str) -> BoxFuture<'a, Result<Option<RawJson>, Error>> {
        ready(Ok(self.turns().full(message)))
    }
}
