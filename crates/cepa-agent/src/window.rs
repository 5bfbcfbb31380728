//! A window over a memory: what a model is shown of a long conversation. A view; nothing is ever deleted.

mod cut;
mod tokens;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cepa_core::{BoxFuture, Entry, Error, ErrorKind, History, Message, RawJson};

pub use self::tokens::{TokenCounter, TokenEstimate};

use self::cut::Cut;
use crate::{
    audit::AuditEntry,
    delegate::delegate_turns,
    lru::Lru,
    memory::{ChatMemory, ConversationInfo, CorruptRow, Loaded, Version},
    pause::{Decision, Pause},
    store::{Commit, Lease, LiveTurn, StoredTurn, TurnRow, TurnStore},
};

/// How large a window is.
///
/// It shows the newest messages: whole groups of calls and results, beginning with a user message, with the system
/// messages of everything before in front. The last user message and all that follows it is always shown, however much
/// that is. Once the limit is passed it is cut to three quarters, so that it begins at the same message for a long time
/// (and the provider's cache of it holds), not at another one after each.
#[derive(Clone)]
pub struct Window(Arc<Limit>);

/// What a window counts, and how much of it there may be.
enum Limit {
    Messages(u64),
    Tokens(u64, Box<dyn TokenCounter>),
}

impl Window {
    /// At most so many messages. System messages do not count.
    ///
    /// # Errors
    /// `invalid_config` for 0: a window of nothing would show everything or nothing, and nobody wants either.
    pub fn messages(most: u64) -> Result<Self, Error> {
        Ok(Self(Arc::new(Limit::Messages(positive(most)?))))
    }

    /// At most so many tokens, system messages included. [`TokenEstimate`] is a counter for any model.
    ///
    /// What is sent beside the conversation (the system prompt of the agent, the tools) is not counted: leave room for
    /// it, and for the answer.
    ///
    /// # Errors
    /// `invalid_config` for 0.
    pub fn tokens(most: u64, counter: impl TokenCounter) -> Result<Self, Error> {
        Ok(Self(Arc::new(Limit::Tokens(positive(most)?, Box::new(counter)))))
    }
}

fn positive(most: u64) -> Result<u64, Error> {
    if most == 0 {
        let message = "a window of 0 shows nothing: give it at least 1, or leave the window out to show everything";
        return Err(Error::new(ErrorKind::InvalidConfig, message));
    }
    Ok(most)
}

impl Limit {
    const fn most(&self) -> u64 {
        match self {
            Self::Messages(most) | Self::Tokens(most, _) => *most,
        }
    }

    fn is_estimate(&self) -> bool {
        match self {
            Self::Messages(_) => false,
            Self::Tokens(_, counter) => counter.is_estimate(),
        }
    }

    fn weight(&self, message: &Message) -> u64 {
        match (self, message) {
            (Self::Tokens(_, counter), message) => counter.count(message),
            // The results of a call come with it: missing ones are filled in, others are left out before anything is sent.
            (Self::Messages(_), Message::System(_) | Message::Tool(_)) => 0,
            (Self::Messages(_), Message::User(_)) => 1,
            (Self::Messages(_), Message::Assistant(reply)) => 1 + reply.tool_calls.len() as u64,
        }
    }
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Limit::Messages(most) => write!(f, "Window({most} messages)"),
            Limit::Tokens(most, _) => write!(f, "Window({most} tokens)"),
        }
    }
}

/// Of how many conversations the cut is remembered; of others it is found again by reading them whole.
const REMEMBERED: usize = 1024;

/// A memory seen through a [`Window`]. Appending, paging and everything about turns goes to the memory as it is.
///
/// Put [`Held`](crate::Held) around it, not inside: then only what the window shows is kept hot.
///
/// ```
/// # use std::sync::Arc;
/// use cepa_agent::{ChatMemory, InMemory, Version, Window, Windowed, load_whole};
/// use cepa_core::{Entry, Message};
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let memory = InMemory::new();
/// let window = Windowed::new(memory.clone(), Window::messages(2)?);
/// let said = ["hi", "hello", "how are you?"].map(|text| Arc::new(Entry::new(Message::user(text))));
/// window.append("c", Version::default(), said.to_vec()).await?;
/// assert_eq!(load_whole(&window, "c").await?.1.len(), 1);
/// assert_eq!(load_whole(&memory, "c").await?.1.len(), 3);
/// # Ok::<(), cepa_core::Error>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Windowed<M> {
    inner: M,
    window: Window,
    cuts: Mutex<Lru<Known>>,
}

/// The cut of a conversation at a version.
#[derive(Clone)]
struct Known {
    version: Version,
    cut: Cut,
}

impl<M> Windowed<M> {
    /// Looks at a memory through a window.
    pub fn new(memory: M, window: Window) -> Self {
        Self { inner: memory, window, cuts: Mutex::new(Lru::new(REMEMBERED)) }
    }

    /// The memory behind the window.
    pub fn inner(&self) -> &M {
        &self.inner
    }

    fn cuts(&self) -> MutexGuard<'_, Lru<Known>> {
        self.cuts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn version_of(&self, id: &str) -> Option<Version> {
        self.cuts().get(id).map(|known| known.version)
    }

    /// Reads what was added since `held`; whether it only made the view longer.
    fn grew(&self, id: &str, held: Version, version: Version, added: &[Arc<Entry>]) -> bool {
        let mut cuts = self.cuts();
        let Some(mut known) = cuts.remove(id).filter(|known| known.version == held) else { return false };
        let before = known.cut.moved_at();
        added.iter().for_each(|entry| known.cut.push(entry, &self.window.0));
        let grew = known.cut.moved_at() == before;
        known.version = version;
        cuts.insert(id, known, 1);
        grew
    }

    /// The cut of a whole history, from what is known of its beginning.
    fn cut(&self, id: &str, version: Version, history: &History) -> Cut {
        let known = self.cuts().get(id).cloned();
        let is_beginning = |known: &Known| {
            known.version.epoch == version.epoch
                && known.version.seq <= version.seq
                && (version.seq - known.version.seq) as usize + known.cut.seen() == history.len()
        };
        let mut cut = known.filter(is_beginning).map(|known| known.cut).unwrap_or_default();
        cut.read(history, &self.window.0);
        self.cuts().insert(id, Known { version, cut: cut.clone() }, 1);
        cut
    }

    /// What the window shows of a history, for a caller who holds an earlier view.
    fn seen(&self, id: &str, held: Option<Version>, version: Version, history: &History) -> Loaded {
        let cut = self.cut(id, version, history);
        let held = held.filter(|held| held.epoch == version.epoch && held.seq <= version.seq);
        match held {
            Some(held) if held == version => Loaded::Unchanged,
            // Counted in messages as in sequence numbers: what the caller holds is the beginning of the view.
            Some(held) if history.len() as u64 == version.seq && held.seq >= cut.moved_at() as u64 => {
                let entries = history.iter_from(held.seq as usize).cloned().collect();
                Loaded::Added { version, entries }
            }
            Some(_) | None => Loaded::Whole { version, history: cut.view(history) },
        }
    }
}

impl<M: ChatMemory> Windowed<M> {
    async fn look(&self, id: &str, held: Option<Version>) -> Result<Loaded, Error> {
        if let Some(held) = held.filter(|held| self.version_of(id) == Some(*held)) {
            match self.inner.load(id, Some(held)).await? {
                Loaded::Unchanged => return Ok(Loaded::Unchanged),
                Loaded::Added { version, entries } => {
                    if self.grew(id, held, version, &entries) {
                        return Ok(Loaded::Added { version, entries });
                    }
                }
                Loaded::Whole { version, history } => return Ok(self.seen(id, None, version, &history)),
            }
        }
        let (version, history) = crate::memory::load_whole(&self.inner, id).await?;
        Ok(self.seen(id, held, version, &history))
    }
}

impl<M> fmt::Debug for Windowed<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Windowed").field("window", &self.window).finish_non_exhaustive()
    }
}

impl<M: ChatMemory> ChatMemory for Windowed<M> {
    fn load<'a>(&'a self, id: &'a str, held: Option<Version>) -> BoxFuture<'a, Result<Loaded, Error>> {
        Box::pin(self.look(id, held))
    }

    fn append<'a>(
        &'a self,
        id: &'a str,
        expected: Version,
        entries: Vec<Arc<Entry>>,
    ) -> BoxFuture<'a, Result<Version, Error>> {
        self.inner.append(id, expected, entries)
    }

    fn clear<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        self.inner.clear(id)
    }

    fn list(&self, skip: usize, limit: usize) -> BoxFuture<'_, Result<Vec<ConversationInfo>, Error>> {
        self.inner.list(skip, limit)
    }

    fn page<'a>(&'a self, id: &'a str, after: u64, limit: usize) -> BoxFuture<'a, Result<Vec<Arc<Entry>>, Error>> {
        self.inner.page(id, after, limit)
    }

    fn load_lossy<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(History, Vec<CorruptRow>), Error>> {
        Box::pin(async move {
            let (history, corrupt) = self.inner.load_lossy(id).await?;
            let mut cut = Cut::default();
            cut.read(&history, &self.window.0);
            Ok((cut.view(&history), corrupt))
        })
    }
}

impl<M: TurnStore> TurnStore for Windowed<M> {
    delegate_turns!(self => self.inner);

    fn commit<'a>(&'a self, turn: &'a str, token: u64, commit: Commit) -> BoxFuture<'a, Result<(), Error>> {
        self.inner.commit(turn, token, commit)
    }
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
