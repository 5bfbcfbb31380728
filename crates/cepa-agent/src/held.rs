//! Hot conversations kept in the process: a load then costs what is new, not what there is.

use std::{
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
    quick_hash::QuickMap,
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

/// How many bytes of conversations are hot, unless it is said otherwise.
pub(crate) const MAX_BYTES: usize = 16 << 20;

struct Hot {
    conversations: Lru<Kept>,
    fresh: Fresh,
}

impl Hot {
    fn new(max_bytes: usize) -> Self {
        Self { conversations: Lru::new(max_bytes - max_bytes / 8), fresh: Fresh::new(max_bytes / 16) }
    }
}

/// Entries that were just handed to the memory, by id: it may give back others that are equal, but of which nothing is
/// known. When there are too many, those of the generation before are forgotten.
struct Fresh {
    young: QuickMap<Arc<str>, Arc<Entry>>,
    old: QuickMap<Arc<str>, Arc<Entry>>,
    young_bytes: usize,
    old_bytes: usize,
    /// How many bytes a generation may have.
    max: usize,
}

impl Fresh {
    fn new(max: usize) -> Self {
        let (young, old) = (QuickMap::default(), QuickMap::default());
        Self { young, old, young_bytes: 0, old_bytes: 0, max }
    }

    fn insert(&mut self, entry: &Arc<Entry>) {
        let (Some(id), bytes) = (&entry.id, bytes(&entry.message)) else { return };
        if bytes > self.max {
            return;
        }
        if self.young_bytes + bytes > self.max {
            self.old = std::mem::take(&mut self.young);
            self.old_bytes = std::mem::take(&mut self.young_bytes);
        }
        self.young_bytes += bytes;
        if let Some(same) = self.young.insert(id.clone(), entry.clone()) {
            self.young_bytes = self.young_bytes.saturating_sub(self::bytes(&same.message));
        }
    }

    fn remove(&mut self, id: &str) -> Option<Arc<Entry>> {
        if let Some(entry) = self.young.remove(id) {
            self.young_bytes = self.young_bytes.saturating_sub(bytes(&entry.message));
            return Some(entry);
        }
        let entry = self.old.remove(id)?;
        self.old_bytes = self.old_bytes.saturating_sub(bytes(&entry.message));
        Some(entry)
    }

    /// The entry that was handed over or held before, if this is the same.
    fn known(&mut self, entry: Arc<Entry>, before: &QuickMap<&str, &Arc<Entry>>) -> Arc<Entry> {
        let Some(id) = entry.id.as_deref() else { return entry };
        let known = self.remove(id).or_else(|| before.get(id).map(|known| Arc::clone(known)));
        let same = |known: &Arc<Entry>| {
            Arc::ptr_eq(known, &entry) || known.created == entry.created && known.message == entry.message
        };
        known.filter(same).unwrap_or(entry)
    }
}

/// A conversation as it was at a version.
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
    fn check(&mut self) {
        if !self.is_paired || is_open(&self.history) {
            return;
        }
        let from = self.history.checked();
        let healed = pairing::heal(&self.history);
        let same = healed.iter_from(from).zip(self.history.iter_from(from)).all(|(a, b)| Arc::ptr_eq(a, b));
        if same && healed.len() == self.history.len() {
            self.history = healed;
        } else {
            self.is_paired = false;
        }
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
pub(crate) fn bytes(message: &Message) -> usize {
    // Measured: the entry, its id, its place in a history and in the set of ids, the head of what a wire makes of it.
    const FRAME: usize = 512;
    const CALL: usize = 256;
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
    let calls: usize = calls.map(|call| CALL + 2 * (call.name.len() + call.args.as_str().len())).sum();
    let replay = match message {
        Message::Assistant(reply) => reply.replay.iter().map(|block| 2 * block.data.as_str().len()).sum(),
        Message::System(_) | Message::User(_) | Message::Tool(_) => 0,
    };
    FRAME + content + calls + replay
}

impl<M> Held<M> {
    /// Holds conversations of a memory, up to 16 MiB.
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
        hot.conversations.weight() + hot.fresh.young_bytes + hot.fresh.old_bytes
    }

    fn hot(&self) -> MutexGuard<'_, Hot> {
        self.hot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hand_over(&self, entries: &[Arc<Entry>]) {
        if !entries.is_empty() {
            let mut hot = self.hot();
            entries.iter().for_each(|entry| hot.fresh.insert(entry));
        }
    }

    /// Takes what the memory answered to who knew this version, and says what is new since `held`. `None` if what was
    /// known is not held any more: then all has to be read.
    fn take(&self, id: &str, known: Option<Version>, found: Loaded, held: Option<Version>) -> Option<Loaded> {
        let mut hot = self.hot();
        let Hot { conversations, fresh } = &mut *hot;
        let (version, history) = match (found, known) {
            (Loaded::Whole { version, history }, _) => (version, history),
            (Loaded::Added { version, entries }, None) => (version, entries.into_iter().collect()),
            (Loaded::Unchanged, None) => (Version::default(), History::new()),
            (Loaded::Unchanged, Some(known)) => {
                // Another load may have come further meanwhile.
                return conversations.get(id).filter(|kept| kept.version >= known).map(|kept| kept.since(held));
            }
            (Loaded::Added { version, entries }, Some(known)) => {
                let kept = conversations.get_mut(id).filter(|kept| kept.version == known || kept.version >= version)?;
                if kept.version == known {
                    kept.version = version;
                    entries.into_iter().for_each(|entry| kept.push(fresh.known(entry, &QuickMap::default())));
                    kept.check();
                }
                let (loaded, bytes) = (kept.since(held), kept.bytes);
                conversations.weigh(id, bytes);
                return Some(loaded);
            }
        };
        let mut kept = Kept::new(version);
        let other = conversations.get(id);
        let before = other.filter(|other| other.version.epoch == version.epoch);
        let before = before.iter().flat_map(|before| before.history.iter());
        let before = before.filter_map(|entry| Some((entry.id.as_deref()?, entry))).collect();
        history.iter().for_each(|entry| kept.push(fresh.known(entry.clone(), &before)));
        kept.check();
        let (loaded, bytes) = (kept.since(held), kept.bytes);
        if other.is_none_or(|other| other.version <= version) {
            conversations.insert(id, kept, bytes);
        }
        Some(loaded)
    }
}

impl<M: ChatMemory> Held<M> {
    async fn look(&self, id: &str, held: Option<Version>) -> Result<Loaded, Error> {
        let mut known = self.hot().conversations.get(id).map(|kept| kept.version);
        loop {
            let found = self.inner.load(id, known).await?;
            match self.take(id, known, found, held) {
                Some(loaded) => return Ok(loaded),
                None => known = None,
            }
        }
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
