//! Conversations and turns kept in the process: fast, complete, and gone with it.

mod bare;
#[cfg(test)]
mod in_memory_tests;
mod turns;

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cepa_core::{BoxFuture, EncodedSlot, Entry, Error, History, RawJson};

pub use self::bare::Bare;
use self::turns::Turns;
use crate::{
    audit::AuditEntry,
    ids,
    memory::{ChatMemory, ConversationInfo, Loaded, Version},
    pause::{Decision, Pause},
    rules,
    store::{Commit, Lease, LiveTurn, Opened, StoredTurn, TurnRow, TurnStore},
};

/// A memory and store in the process. Clones share what they keep; it keeps everything until it is cleared.
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
    conversations: HashMap<String, Conversation>,
    /// Counts the changes, so that a list can tell which conversation changed last within one millisecond.
    changes: u64,
    turns: Turns,
}

#[derive(Default)]
struct Conversation {
    epoch: u64,
    history: History,
    ids: HashSet<Arc<str>>,
    created: i64,
    updated: i64,
    changed: u64,
}

impl Conversation {
    fn version(&self) -> Version {
        Version { epoch: self.epoch, seq: self.history.len() as u64 }
    }

    fn has(&self, entry: &Entry) -> bool {
        entry.id.as_ref().is_some_and(|id| self.ids.contains(id))
    }

    /// Appends what is not there yet.
    fn extend(&mut self, entries: Vec<Arc<Entry>>) {
        for entry in entries {
            if self.has(&entry) {
                continue;
            }
            let entry = self.named(entry);
            self.ids.extend(entry.id.clone());
            self.history.push_shared(entry);
        }
    }

    fn named(&self, entry: Arc<Entry>) -> Arc<Entry> {
        if entry.id.is_some() {
            return entry;
        }
        let place = Version { epoch: self.epoch, seq: self.history.len() as u64 + 1 };
        let free = (0..).map(|n| rules::message_id(place, n)).find(|id| !self.ids.contains(id.as_str()));
        let message = entry.message.clone();
        Arc::new(Entry { id: free.map(Arc::from), created: entry.created, message, encoded: EncodedSlot::default() })
    }
}

impl State {
    fn change(&mut self, id: &str, at: i64) -> &mut Conversation {
        self.changes += 1;
        let conversation = self.conversations.entry(id.to_owned()).or_default();
        if conversation.created == 0 {
            conversation.created = at;
        }
        conversation.updated = conversation.updated.max(at);
        conversation.changed = self.changes;
        conversation
    }

    fn load(&self, id: &str, held: Option<Version>) -> Loaded {
        let nothing = Conversation::default();
        let conversation = self.conversations.get(id).unwrap_or(&nothing);
        let version = conversation.version();
        match held {
            Some(held) if held == version => Loaded::Unchanged,
            Some(held) if held.epoch == version.epoch && held.seq < version.seq => {
                let known = usize::try_from(held.seq).unwrap_or(usize::MAX);
                Loaded::Added { version, entries: conversation.history.iter_from(known).cloned().collect() }
            }
            Some(_) | None => Loaded::Whole { version, history: conversation.history.clone() },
        }
    }

    /// The version, if entries may be appended at `expected`: it is the present one, or all of them are there already.
    fn check_version<'a>(
        &self,
        id: &str,
        expected: Version,
        mut entries: impl Iterator<Item = &'a Arc<Entry>>,
    ) -> Result<Version, Error> {
        let conversation = self.conversations.get(id);
        let version = conversation.map(Conversation::version).unwrap_or_default();
        let there = entries.all(|entry| conversation.is_some_and(|conversation| conversation.has(entry)));
        if there || version == expected { Ok(version) } else { Err(rules::version_conflict(id, expected, version)) }
    }

    fn append(&mut self, id: &str, expected: Version, entries: Vec<Arc<Entry>>) -> Result<Version, Error> {
        let version = self.check_version(id, expected, entries.iter())?;
        if version != expected {
            // All of them are there.
            return Ok(version);
        }
        let conversation = self.change(id, ids::now_ms());
        conversation.extend(entries);
        Ok(conversation.version())
    }

    fn clear(&mut self, id: &str) {
        let now = ids::now_ms();
        self.turns.clear(id, now);
        let conversation = self.change(id, now);
        conversation.epoch += 1;
        conversation.history = History::new();
        conversation.ids.clear();
    }

    fn list(&self, skip: usize, limit: usize) -> Vec<ConversationInfo> {
        let mut found: Vec<_> = self.conversations.iter().filter(|(_, found)| !found.history.is_empty()).collect();
        found.sort_by_key(|(_, found)| std::cmp::Reverse((found.updated, found.changed)));
        let info = |(id, found): (&String, &Conversation)| ConversationInfo {
            id: id.clone(),
            title: None,
            messages: found.history.len() as u64,
            created: found.created,
            updated: found.updated,
        };
        found.into_iter().skip(skip).take(limit).map(info).collect()
    }

    fn commit(&mut self, turn: &str, token: u64, mut commit: Commit) -> Result<(), Error> {
        let messages = std::mem::take(&mut commit.messages);
        if let Some(expected) = commit.expected {
            let conversation = self.turns.check_commit(turn, token, &commit)?;
            self.check_version(&conversation, expected, messages.iter().map(|entry| &entry.0))?;
        }
        let conversation = self.turns.commit(turn, token, &commit)?;
        if !messages.is_empty() {
            let entries = messages.into_iter().map(|entry| entry.0).collect();
            self.change(&conversation, commit.at).extend(entries);
        }
        if self.turns.leaves_nothing(turn) { self.forget(turn) } else { Ok(()) }
    }

    fn forget(&mut self, turn: &str) -> Result<(), Error> {
        if let Some(conversation) = self.turns.forget(turn)? {
            self.conversations.remove(&conversation);
        }
        Ok(())
    }
}

impl InMemory {
    /// An empty memory.
    pub fn new() -> Self {
        Self::default()
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
        ready(Ok(self.state().load(id, held)))
    }

    fn append<'a>(
        &'a self,
        id: &'a str,
        expected: Version,
        entries: Vec<Arc<Entry>>,
    ) -> BoxFuture<'a, Result<Version, Error>> {
        Box::pin(async move { self.state().append(id, expected, entries) })
    }

    fn clear<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            self.state().clear(id);
            Ok(())
        })
    }

    fn list(&self, skip: usize, limit: usize) -> BoxFuture<'_, Result<Vec<ConversationInfo>, Error>> {
        ready(Ok(self.state().list(skip, limit)))
    }

    fn page<'a>(&'a self, id: &'a str, after: u64, limit: usize) -> BoxFuture<'a, Result<Vec<Arc<Entry>>, Error>> {
        let state = self.state();
        let after = usize::try_from(after).unwrap_or(usize::MAX);
        let page =
            state.conversations.get(id).map(|found| found.history.iter_from(after).take(limit).cloned().collect());
        ready(Ok(page.unwrap_or_default()))
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
        Box::pin(async move { self.state().forget(turn) })
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
