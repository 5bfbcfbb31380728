//! A conversation's messages, shared: cloning is O(1), pushing is O(1), nothing is copied that was there before.

use std::{
    fmt, slice,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::{EncodedSlot, KeptSlot, Message};

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

/// How many entries a chunk holds. Pushing onto a shared history copies less than this many pointers.
const CHUNK: usize = 16;

/// A full stretch of a history. It points back to the chunk before it, so that histories share their beginnings; what
/// lies before its end never changes.
pub struct Chunk {
    before: Option<Arc<Chunk>>,
    /// Number of entries up to the end of this chunk.
    end: usize,
    entries: Box<[Arc<Entry>]>,
    /// How many of the entries up to the end are known to be well paired, with no call open.
    paired: AtomicUsize,
    kept: KeptSlot,
}

impl Chunk {
    /// The chunk before it.
    pub fn before(&self) -> Option<&Arc<Chunk>> {
        self.before.as_ref()
    }

    /// The number of entries up to its end.
    pub fn end(&self) -> usize {
        self.end
    }

    /// Its entries.
    pub fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// What a wire keeps of all that lies before its end.
    pub fn kept(&self) -> &KeptSlot {
        &self.kept
    }
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chunk").field("end", &self.end).finish_non_exhaustive()
    }
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
    /// What no chunk holds yet: fewer than one takes.
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

    /// The newest full chunk, through which all others are reached.
    pub fn sealed(&self) -> Option<&Arc<Chunk>> {
        self.sealed.as_ref()
    }

    /// The entries behind the newest full chunk.
    pub fn tail(&self) -> &[Arc<Entry>] {
        &self.tail
    }

    /// Adds a message at the end.
    pub fn push(&mut self, entry: impl Into<Entry>) {
        self.push_shared(Arc::new(entry.into()));
    }

    /// Adds an entry that another history may hold too.
    pub fn push_shared(&mut self, entry: Arc<Entry>) {
        match Arc::get_mut(&mut self.tail) {
            Some(tail) => tail.push(entry),
            None => {
                let mut tail = Vec::with_capacity(self.tail.len() + 2);
                tail.extend_from_slice(&self.tail);
                tail.push(entry);
                self.tail = Arc::new(tail);
            }
        }
        // As soon as it is full, so that whoever clones this history from now on shares the chunk and what wires keep of it.
        if self.tail.len() == CHUNK {
            let entries = std::mem::take(&mut self.tail);
            self.sealed = Some(Arc::new(Chunk {
                end: self.sealed_len() + CHUNK,
                before: self.sealed.take(),
                entries: Arc::unwrap_or_clone(entries).into_boxed_slice(),
                paired: AtomicUsize::new(0),
                kept: KeptSlot::default(),
            }));
        }
    }

    /// The first `len` messages, shared.
    pub(crate) fn up_to(&self, len: usize) -> Self {
        let (mut sealed, mut rest) = (self.sealed.as_ref(), self.tail());
        while let Some(chunk) = sealed.filter(|chunk| chunk.end > len) {
            (sealed, rest) = (chunk.before.as_ref(), &chunk.entries);
        }
        let begin = sealed.map_or(0, |chunk| chunk.end);
        let tail = rest.get(..len.saturating_sub(begin)).unwrap_or(rest).to_vec();
        Self { sealed: sealed.cloned(), tail: Arc::new(tail), checked: self.checked.min(len) }
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

    /// The entries from an index on; costs what it returns, not what lies before. Read backwards it costs what is read.
    pub fn iter_from(&self, start: usize) -> impl DoubleEndedIterator<Item = &Arc<Entry>> {
        Iter {
            history: self,
            start,
            left: self.len().saturating_sub(start),
            stretches: None,
            first: [].iter(),
            last: self.tail.iter(),
            before_last: self.sealed.as_deref(),
        }
    }

    /// All messages in order.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = &Message> {
        self.iter().map(|entry| &entry.message)
    }

    /// How many leading messages are known to be well paired; [`pairing::heal`](crate::pairing::heal) starts behind them.
    pub fn checked(&self) -> usize {
        // What was found out about another history that shares these chunks holds here too.
        let mut next = self.sealed.as_ref();
        while let Some(chunk) = next.filter(|chunk| chunk.end > self.checked) {
            let paired = chunk.paired.load(Ordering::Relaxed);
            if paired > 0 {
                return paired.max(self.checked);
            }
            next = chunk.before.as_ref();
        }
        self.checked
    }

    /// Remembers that the first `len` messages are well paired and all their calls are answered.
    pub(crate) fn mark_checked(&mut self, len: usize) {
        self.checked = len.min(self.len());
    }

    /// Remembers the same in the newest chunk, if it does not end before, for all that share it.
    pub(crate) fn mark_shared(&self, len: usize) {
        if let Some(chunk) = self.sealed.as_ref().filter(|chunk| len <= chunk.end) {
            chunk.paired.fetch_max(len, Ordering::Relaxed);
        }
    }
}

/// Entries from both ends. Stepping from the front needs the way from the newest chunk to the first one wanted, which is
/// gone only then.
struct Iter<'a> {
    history: &'a History,
    start: usize,
    left: usize,
    /// What lies behind `first`, the next one last.
    stretches: Option<Vec<&'a [Arc<Entry>]>>,
    first: slice::Iter<'a, Arc<Entry>>,
    last: slice::Iter<'a, Arc<Entry>>,
    /// What lies before `last`.
    before_last: Option<&'a Chunk>,
}

impl<'a> Iter<'a> {
    fn stretches(history: &'a History, start: usize) -> Vec<&'a [Arc<Entry>]> {
        let mut stretches = vec![history.tail()];
        let (mut next, mut begin) = (history.sealed.as_deref(), history.sealed_len());
        while let Some(chunk) = next.filter(|chunk| chunk.end > start) {
            stretches.push(&chunk.entries);
            begin = chunk.end - chunk.entries.len();
            next = chunk.before.as_deref();
        }
        if let Some(first) = stretches.last_mut() {
            *first = first.get(start.saturating_sub(begin)..).unwrap_or_default();
        }
        stretches
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a Arc<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        loop {
            if let Some(entry) = self.first.next() {
                return Some(entry);
            }
            let stretches = self.stretches.get_or_insert_with(|| Self::stretches(self.history, self.start));
            self.first = stretches.pop()?.iter();
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        loop {
            if let Some(entry) = self.last.next_back() {
                return Some(entry);
            }
            let chunk = self.before_last?;
            (self.last, self.before_last) = (chunk.entries.iter(), chunk.before.as_deref());
        }
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
