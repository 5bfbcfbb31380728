//! A conversation's messages, shared: cloning is O(1), pushing is O(1), nothing is copied that was there before.

use std::{fmt, sync::Arc};

use crate::{EncodedSlot, Message};

/// One message with what is known about it.
#[derive(Debug)]
pub struct Entry {
    /// The message's id, unique in its conversation; `None` for a message that no turn and no store has named.
    pub id: Option<Arc<str>>,
    /// When it was made, in milliseconds since 1970; 0 where nobody knows.
    pub created: i64,
    /// The message.
    pub message: Message,
    /// What a wire made of it.
    pub encoded: EncodedSlot,
}

impl Entry {
    /// An entry without id and time.
    pub fn new(message: Message) -> Self {
        Self { id: None, created: 0, message, encoded: EncodedSlot::default() }
    }

    /// An entry with an id and a time.
    pub fn with_id(id: impl Into<Arc<str>>, created: i64, message: Message) -> Self {
        Self { id: Some(id.into()), created, message, encoded: EncodedSlot::default() }
    }
}

impl From<Message> for Entry {
    fn from(message: Message) -> Self {
        Self::new(message)
    }
}

/// How many entries a chunk holds. Pushing onto a shared history copies at most this many pointers.
const CHUNK: usize = 64;

/// A full chunk; it points back to the chunk before it, so that histories share their beginnings.
struct Chunk {
    before: Option<Arc<Chunk>>,
    /// Number of entries up to the end of this chunk.
    end: usize,
    entries: Box<[Arc<Entry>]>,
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // One after another: a long chain dropped recursively would overflow the stack.
        let mut next = self.before.take();
        while let Some(mut chunk) = next.and_then(Arc::into_inner) {
            next = chunk.before.take();
        }
    }
}

/// The messages of a conversation in order.
///
/// ```
/// use cepa_core::{History, Message};
/// let mut history: History = [Message::user("hi")].into_iter().collect();
/// let before = history.clone();
/// history.push(Message::assistant("hello"));
/// assert_eq!((before.len(), history.len()), (1, 2));
/// ```
#[derive(Clone, Default)]
pub struct History {
    sealed: Option<Arc<Chunk>>,
    tail: Arc<Vec<Arc<Entry>>>,
    checked: usize,
}

impl History {
    /// An empty history.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of messages.
    pub fn len(&self) -> usize {
        self.sealed_len() + self.tail.len()
    }

    /// Whether there is no message.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn sealed_len(&self) -> usize {
        self.sealed.as_ref().map_or(0, |chunk| chunk.end)
    }

    /// Adds a message at the end.
    pub fn push(&mut self, entry: impl Into<Entry>) {
        self.push_shared(Arc::new(entry.into()));
    }

    /// Adds an entry that another history may hold too.
    pub fn push_shared(&mut self, entry: Arc<Entry>) {
        if self.tail.len() == CHUNK {
            let entries = std::mem::take(&mut self.tail);
            let end = self.sealed_len() + CHUNK;
            let entries = Arc::try_unwrap(entries).unwrap_or_else(|shared| shared.to_vec()).into_boxed_slice();
            self.sealed = Some(Arc::new(Chunk { before: self.sealed.take(), end, entries }));
        }
        Arc::make_mut(&mut self.tail).push(entry);
    }

    /// The last entry.
    pub fn last(&self) -> Option<&Arc<Entry>> {
        self.tail.last().or_else(|| self.sealed.as_ref().and_then(|chunk| chunk.entries.last()))
    }

    /// Whether an entry of this id is among the last ones.
    pub fn has_lately(&self, entry: &Entry) -> bool {
        const LATELY: usize = 64;
        let last = self.iter_from(self.len().saturating_sub(LATELY)).rev();
        entry.id.is_some() && last.take(LATELY).any(|known| known.id == entry.id)
    }

    /// All entries in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Entry>> {
        self.iter_from(0)
    }

    /// The entries from an index on; costs what it returns, not what lies before.
    pub fn iter_from(&self, start: usize) -> impl DoubleEndedIterator<Item = &Arc<Entry>> {
        let mut chunks = Vec::new();
        let mut next = self.sealed.as_ref();
        while let Some(chunk) = next.filter(|chunk| chunk.end > start) {
            chunks.push(chunk);
            next = chunk.before.as_ref();
        }
        let sealed_len = self.sealed_len();
        let from = move |first: usize, entries: &'_ [Arc<Entry>]| start.saturating_sub(first).min(entries.len());
        let tail = self.tail.get(from(sealed_len, &self.tail)..).unwrap_or_default();
        chunks
            .into_iter()
            .rev()
            .flat_map(move |chunk| {
                let first = chunk.end - chunk.entries.len();
                chunk.entries.get(from(first, &chunk.entries)..).unwrap_or_default()
            })
            .chain(tail)
    }

    /// All messages in order.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = &Message> {
        self.iter().map(|entry| &entry.message)
    }

    /// How many leading messages are known to be well paired; [`pairing::heal`](crate::pairing::heal) starts behind them.
    pub fn checked(&self) -> usize {
        self.checked
    }

    /// Remembers that the first `len` messages are well paired and all their calls are answered.
    pub(crate) fn mark_checked(&mut self, len: usize) {
        self.checked = len.min(self.len());
    }
}

impl FromIterator<Arc<Entry>> for History {
    fn from_iter<I: IntoIterator<Item = Arc<Entry>>>(entries: I) -> Self {
        let mut history = Self::new();
        entries.into_iter().for_each(|entry| history.push_shared(entry));
        history
    }
}

impl FromIterator<Message> for History {
    fn from_iter<I: IntoIterator<Item = Message>>(messages: I) -> Self {
        let mut history = Self::new();
        messages.into_iter().for_each(|message| history.push(message));
        history
    }
}

impl Extend<Arc<Entry>> for History {
    fn extend<I: IntoIterator<Item = Arc<Entry>>>(&mut self, entries: I) {
        entries.into_iter().for_each(|entry| self.push_shared(entry));
    }
}

impl From<Vec<Message>> for History {
    fn from(messages: Vec<Message>) -> Self {
        messages.into_iter().collect()
    }
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.messages()).finish()
    }
}

impl PartialEq for History {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.messages().eq(other.messages())
    }
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
