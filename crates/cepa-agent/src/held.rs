//! Hot conversations kept in the process: a load then costs what is new, not what there is.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cepa_core::{BoxFuture, Content, Entry, Error, History, Message, Part, RawJson, Role, Source, pairing};

use crate::{
    audit::AuditEntry,
    delegate::delegate_turns,
    lru::Lru,
    memory::{ChatMemory, ConversationInfo, CorruptRow, Loaded, Version},
    pause::{Decision, Pause},
    store::{Commit, Lease, LiveTurn, StoredTurn, TurnRow, TurnStore},
};

/// A memory in front of which the conversations used last are held, up to a number of bytes.
///
/// What is held is asked about before it is used, so that what another process appends or clears is seen at once. With
/// a conversation is also held what is known of it: how far it is well paired, and the bytes that a wire made of each
/// message; both are lost when it is read anew.
///
/// ```
/// use cepa_agent::{Held, InMemory, Window, Windowed};
/// let store = InMemory::new(); // in earnest: a database
/// let memory = Held::new(Windowed::new(store, Window::messages(200)?)).max_bytes(16 << 20);
/// # let _ = memory;
/// # Ok::<(), cepa_core::Error>(())
/// ```
pub struct Held<M> {
    inner: M,
    hot: Mutex<Hot>,
}

const MAX_BYTES: usize = 64 << 20;

struct Hot {
    conversations: Lru<Kept>,
    /// Entries that were just handed to the memory, by id: it may give back others that are equal, but of which nothing
    /// is known.
    fresh: Lru<Arc<Entry>>,
}

impl Hot {
    fn new(max_bytes: usize) -> Self {
        Self { conversations: Lru::new(max_bytes - max_bytes / 8), fresh: Lru::new(max_bytes / 8) }
    }

    /// The entry that was handed over or held before, if this is the same.
    fn known(&mut self, entry: Arc<Entry>, before: &HashMap<&str, &Arc<Entry>>) -> Arc<Entry> {
        let Some(id) = entry.id.as_deref() else { return entry };
        let known = self.fresh.remove(id).or_else(|| before.get(id).map(|known| Arc::clone(known)));
        let same = |known: &Arc<Entry>| known.created == entry.created && known.message == entry.message;
        known.filter(same).unwrap_or(entry)
    }
}

/// A conversation as it was at a version.
#[derive(Clone)]
struct Kept {
    version: Version,
    /// Since when it has only grown; an earlier view may have been another.
    whole_at: u64,
    history: History,
    bytes: usize,
    /// Whether it is as it would be healed, but for a batch that is still open.
    is_paired: bool,
}

impl Kept {
    fn new(version: Version) -> Self {
        Self { version, whole_at: version.seq, history: History::new(), bytes: 0, is_paired: true }
    }

    fn push(&mut self, entry: Arc<Entry>) {
        self.bytes = self.bytes.saturating_add(bytes(&entry.message));
        self.history.push_shared(entry);
    }

    /// Notes how far it is well paired, so that nobody has to look at that part again. Stored rows stay as they are: a
    /// conversation that healing would change is held unhealed.
    fn checked(mut self) -> Self {
        if !self.is_paired || is_open(&self.history) {
            return self;
        }
        let from = self.history.checked();
        let healed = pairing::heal(&self.history);
        let same = healed.iter_from(from).zip(self.history.iter_from(from)).all(|(a, b)| Arc::ptr_eq(a, b));
        if same && healed.len() == self.history.len() {
            self.history = healed;
        } else {
            self.is_paired = false;
        }
        self
    }

    /// For a caller who holds an earlier version.
    fn since(&self, held: Option<Version>) -> Loaded {
        match held {
            Some(held) if held == self.version => Loaded::Unchanged,
            Some(held) if held.epoch == self.version.epoch && (self.whole_at..self.version.seq).contains(&held.seq) => {
                let new = usize::try_from(self.version.seq - held.seq).unwrap_or(usize::MAX);
                let from = self.history.len().saturating_sub(new);
                Loaded::Added { version: self.version, entries: self.history.iter_from(from).cloned().collect() }
            }
            Some(_) | None => Loaded::Whole { version: self.version, history: self.history.clone() },
        }
    }
}

/// Whether the last calls wait for results: then healing would answer them.
fn is_open(history: &History) -> bool {
    let unchecked = || history.iter_from(history.checked()).rev();
    let results = unchecked().take_while(|entry| entry.message.role() == Role::Tool).count();
    unchecked().nth(results).is_some_and(|entry| entry.message.tool_calls().len() > results)
}

/// About how many bytes a message takes, with what a wire makes of it.
fn bytes(message: &Message) -> usize {
    const FRAME: usize = 256;
    let of_part = |part: &Part| match part {
        Part::Text(text) | Part::Reasoning(text) => 2 * text.len(),
        Part::Image(medium) | Part::Audio(medium) | Part::Document(medium) => match &medium.source {
            // Three bytes are four letters on the wire.
            Source::Bytes(bytes) => bytes.len() + bytes.len() / 3 * 4,
            Source::Url(url) => 2 * url.len(),
        },
        Part::Other(json) => json.as_str().len(),
    };
    let content = message.content().map_or(0, |content| match content {
        Content::Text(text) => 2 * text.len(),
        Content::Parts(parts) => parts.iter().map(of_part).sum(),
    });
    let calls = message.tool_calls().iter();
    let calls: usize = calls.map(|call| FRAME + 2 * (call.name.len() + call.args.as_str().len())).sum();
    let replay = match message {
        Message::Assistant(reply) => reply.replay.iter().map(|block| 2 * block.data.as_str().len()).sum(),
        Message::System(_) | Message::User(_) | Message::Tool(_) => 0,
    };
    FRAME + content + calls + replay
}

impl<M> Held<M> {
    /// Holds conversations of a memory, up to 64 MiB.
    pub fn new(memory: M) -> Self {
        Self { inner: memory, hot: Mutex::new(Hot::new(MAX_BYTES)) }
    }

    /// Sets about how many bytes are held.
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.hot = Mutex::new(Hot::new(bytes));
        self
    }

    /// The memory behind it.
    pub fn inner(&self) -> &M {
        &self.inner
    }

    /// About how many bytes are held now.
    pub fn bytes(&self) -> usize {
        let hot = self.hot();
        hot.conversations.weight() + hot.fresh.weight()
    }

    fn hot(&self) -> MutexGuard<'_, Hot> {
        self.hot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hand_over(&self, entries: &[Arc<Entry>]) {
        let mut hot = self.hot();
        for entry in entries {
            if let Some(id) = &entry.id {
                hot.fresh.insert(id, entry.clone(), bytes(&entry.message));
            }
        }
    }

    /// Takes what the memory answered, and holds it.
    fn take(&self, id: &str, held: Option<Kept>, found: Loaded) -> Kept {
        let mut hot = self.hot();
        let kept = match (found, held) {
            (Loaded::Unchanged, Some(held)) => return held,
            (Loaded::Unchanged, None) => Kept::new(Version::default()),
            (Loaded::Added { version, entries }, held) => {
                let mut kept = held.unwrap_or_else(|| Kept::new(version));
                kept.version = version;
                entries.into_iter().for_each(|entry| kept.push(hot.known(entry, &HashMap::new())));
                kept
            }
            (Loaded::Whole { version, history }, held) => {
                let held = held.filter(|held| held.version.epoch == version.epoch);
                let before = held.iter().flat_map(|held| held.history.iter());
                let before = before.filter_map(|entry| Some((entry.id.as_deref()?, entry))).collect();
                let mut kept = Kept::new(version);
                history.iter().for_each(|entry| kept.push(hot.known(entry.clone(), &before)));
                kept
            }
        }
        .checked();
        // Another load may have come further meanwhile.
        if hot.conversations.get(id).is_none_or(|other| other.version <= kept.version) {
            hot.conversations.insert(id, kept.clone(), kept.bytes);
        }
        kept
    }
}

impl<M: ChatMemory> Held<M> {
    async fn look(&self, id: &str, held: Option<Version>) -> Result<Loaded, Error> {
        let kept = self.hot().conversations.get(id).cloned();
        let found = self.inner.load(id, kept.as_ref().map(|kept| kept.version)).await?;
        Ok(self.take(id, kept, found).since(held))
    }
}

impl<M> fmt::Debug for Held<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

impl<M: ChatMemory> ChatMemory for Held<M> {
    fn load<'a>(&'a self, id: &'a str, held: Option<Version>) -> BoxFuture<'a, Result<Loaded, Error>> {
        Box::pin(self.look(id, held))
    }

    fn append<'a>(
        &'a self,
        id: &'a str,
        expected: Version,
        entries: Vec<Arc<Entry>>,
    ) -> BoxFuture<'a, Result<Version, Error>> {
        Box::pin(async move {
            // What is held is not made longer here: a window may begin elsewhere from now on. The next load asks.
            let version = self.inner.append(id, expected, entries.clone()).await?;
            self.hand_over(&entries);
            Ok(version)
        })
    }

    fn clear<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            self.inner.clear(id).await?;
            self.hot().conversations.remove(id);
            Ok(())
        })
    }

    fn list(&self, skip: usize, limit: usize) -> BoxFuture<'_, Result<Vec<ConversationInfo>, Error>> {
        self.inner.list(skip, limit)
    }

    fn page<'a>(&'a self, id: &'a str, after: u64, limit: usize) -> BoxFuture<'a, Result<Vec<Arc<Entry>>, Error>> {
        self.inner.page(id, after, limit)
    }

    fn load_lossy<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(History, Vec<CorruptRow>), Error>> {
        self.inner.load_lossy(id)
    }
}

impl<M: TurnStore> TurnStore for Held<M> {
    delegate_turns!(self => self.inner);

    fn commit<'a>(&'a self, turn: &'a str, token: u64, commit: Commit) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let entries: Vec<Arc<Entry>> = commit.messages.iter().map(|entry| entry.0.clone()).collect();
            self.inner.commit(turn, token, commit).await?;
            self.hand_over(&entries);
            Ok(())
        })
    }
}

#[cfg(test)]
#[path = "held_tests.rs"]
mod tests;
