//! The conversations of a store in the process: those used last are there as entries, the others packed.

use std::{cmp::Reverse, collections::VecDeque, sync::Arc};

use cepa_core::{EncodedSlot, Entry, Error, History};

use super::packed::{pack, unpack};
use crate::{
    held::{MAX_BYTES, bytes},
    memory::{ConversationInfo, Loaded, Version},
    quick_hash::{QuickMap, QuickSet},
    rules,
};

pub(super) struct Conversations {
    all: QuickMap<Arc<str>, Conversation>,
    /// Counts the changes, so that a list can tell which conversation changed last within one millisecond.
    changes: u64,
    /// Those that are open, in the order in which they are looked at when there are too many.
    hot: VecDeque<Arc<str>>,
    hot_bytes: usize,
    max_hot_bytes: usize,
}

#[derive(Default)]
struct Conversation {
    epoch: u64,
    len: u64,
    created: i64,
    updated: i64,
    changed: u64,
    /// Its rows, unless it is open.
    packed: Box<[u8]>,
    open: Option<Box<Open>>,
}

/// A conversation in use.
#[derive(Default)]
struct Open {
    history: History,
    ids: QuickSet<Arc<str>>,
    /// About what it takes.
    bytes: usize,
    /// Whether it was used since it was last looked at.
    used: bool,
}

impl Open {
    fn push(&mut self, entry: Arc<Entry>) {
        self.bytes = self.bytes.saturating_add(bytes(&entry.message));
        self.history.push_shared(entry);
    }

    /// Appends an entry, unless it is there.
    fn add(&mut self, entry: Arc<Entry>, epoch: u64) {
        match &entry.id {
            Some(id) if !self.ids.insert(id.clone()) => {}
            Some(_) => self.push(entry),
            None => {
                let entry = self.named(&entry, epoch);
                self.ids.extend(entry.id.clone());
                self.push(entry);
            }
        }
    }

    fn has_all(&self, entries: &[Arc<Entry>]) -> bool {
        entries.iter().all(|entry| entry.id.as_ref().is_some_and(|id| self.ids.contains(id)))
    }

    fn named(&self, entry: &Entry, epoch: u64) -> Arc<Entry> {
        let place = Version { epoch, seq: self.history.len() as u64 + 1 };
        let free = (0..).map(|n| rules::message_id(place, n)).find(|id| !self.ids.contains(id.as_str()));
        let message = entry.message.clone();
        Arc::new(Entry { id: free.map(Arc::from), created: entry.created, message, encoded: EncodedSlot::default() })
    }
}

impl Conversation {
    fn version(&self) -> Version {
        Version { epoch: self.epoch, seq: self.len }
    }

    fn open(&mut self) -> Result<&mut Open, Error> {
        if self.open.is_none() {
            let mut open = Box::<Open>::default();
            for entry in unpack(&self.packed) {
                open.add(entry?, self.epoch);
            }
            self.packed = Box::default();
            self.open = Some(open);
        }
        let open = self.open.get_or_insert_default();
        open.used = true;
        Ok(open)
    }

    fn changed(&mut self, at: i64, changes: u64) {
        self.updated = self.updated.max(at);
        self.changed = changes;
    }

    fn open_bytes(&self) -> Option<usize> {
        self.open.as_ref().map(|open| open.bytes)
    }

    fn since(&mut self, held: Option<Version>) -> Result<Loaded, Error> {
        let version = self.version();
        if held == Some(version) {
            if let Some(open) = &mut self.open {
                open.used = true;
            }
            return Ok(Loaded::Unchanged);
        }
        let history = &self.open()?.history;
        Ok(match held {
            Some(held) if held.epoch == version.epoch && held.seq < version.seq => {
                let known = usize::try_from(held.seq).unwrap_or(usize::MAX);
                Loaded::Added { version, entries: history.iter_from(known).cloned().collect() }
            }
            Some(_) | None => Loaded::Whole { version, history: history.clone() },
        })
    }
}

impl Default for Conversations {
    fn default() -> Self {
        let (all, hot) = (QuickMap::default(), VecDeque::new());
        Self { all, changes: 0, hot, hot_bytes: 0, max_hot_bytes: MAX_BYTES }
    }
}

impl Conversations {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn set_max_hot_bytes(&mut self, bytes: usize) {
        self.max_hot_bytes = bytes;
        self.cool(None);
    }

    /// Does something with a conversation, and keeps account of what is open. An unknown one is empty.
    fn using<T>(&mut self, id: &str, what: impl FnOnce(&mut Conversation) -> T) -> T {
        let mut nothing = Conversation::default();
        let conversation = self.all.get_mut(id).unwrap_or(&mut nothing);
        let before = conversation.open_bytes();
        let done = what(conversation);
        let after = conversation.open_bytes();
        self.hot_bytes = (self.hot_bytes + after.unwrap_or_default()).saturating_sub(before.unwrap_or_default());
        if before.is_none()
            && after.is_some()
            && let Some((id, _)) = self.all.get_key_value(id)
        {
            self.hot.push_back(id.clone());
        }
        if self.hot_bytes > self.max_hot_bytes {
            self.cool(Some(id));
        }
        done
    }

    /// Packs what was not used lately, until the rest is small enough. What is used now stays, however large it is,
    /// unless nothing is to stay at all.
    fn cool(&mut self, in_use: Option<&str>) {
        let in_use = in_use.filter(|_| self.max_hot_bytes > 0);
        while self.hot_bytes > self.max_hot_bytes
            && let Some(id) = self.hot.pop_front()
        {
            let is_in_use = in_use == Some(&*id);
            let Some(conversation) = self.all.get_mut(&id) else { continue };
            let Some(open) = &mut conversation.open else { continue };
            if is_in_use && self.hot.is_empty() {
                self.hot.push_back(id);
                return;
            }
            if is_in_use || std::mem::take(&mut open.used) {
                self.hot.push_back(id);
                continue;
            }
            self.hot_bytes = self.hot_bytes.saturating_sub(open.bytes);
            conversation.packed = pack(&open.history);
            conversation.open = None;
        }
    }

    pub(super) fn load(&mut self, id: &str, held: Option<Version>) -> Result<Loaded, Error> {
        self.using(id, |conversation| conversation.since(held))
    }

    /// Appends in one unit, at a version if it matters.
    pub(super) fn append(
        &mut self,
        id: &str,
        expected: Option<Version>,
        entries: Vec<Arc<Entry>>,
        at: i64,
    ) -> Result<Version, Error> {
        if !self.all.contains_key(id) {
            let start = Version::default();
            if let Some(expected) = expected.filter(|expected| *expected != start) {
                return if entries.is_empty() { Ok(start) } else { Err(rules::version_conflict(id, expected, start)) };
            }
            self.all.insert(id.into(), Conversation { created: at, ..Conversation::default() });
        }
        self.changes += 1;
        let changes = self.changes;
        self.using(id, |conversation| {
            let (version, epoch) = (conversation.version(), conversation.epoch);
            let open = conversation.open()?;
            if let Some(expected) = expected.filter(|expected| *expected != version) {
                return if open.has_all(&entries) {
                    Ok(version)
                } else {
                    Err(rules::version_conflict(id, expected, version))
                };
            }
            entries.into_iter().for_each(|entry| open.add(entry, epoch));
            conversation.len = open.history.len() as u64;
            conversation.changed(at, changes);
            Ok(conversation.version())
        })
    }

    pub(super) fn clear(&mut self, id: &str, at: i64) {
        self.changes += 1;
        let changes = self.changes;
        if !self.all.contains_key(id) {
            self.all.insert(id.into(), Conversation { created: at, ..Conversation::default() });
        }
        self.using(id, |conversation| {
            conversation.epoch += 1;
            conversation.len = 0;
            conversation.packed = Box::default();
            if let Some(open) = &mut conversation.open {
                **open = Open::default();
            }
            conversation.changed(at, changes);
        });
    }

    pub(super) fn remove(&mut self, id: &str) {
        if let Some(open) = self.all.remove(id).and_then(|gone| gone.open) {
            self.hot_bytes = self.hot_bytes.saturating_sub(open.bytes);
            // It may come again, and is then to be there once.
            self.hot.retain(|hot| &**hot != id);
        }
    }

    pub(super) fn list(&self, skip: usize, limit: usize) -> Vec<ConversationInfo> {
        let mut found: Vec<_> = self.all.iter().filter(|(_, found)| found.len > 0).collect();
        found.sort_by_key(|(_, found)| Reverse((found.updated, found.changed)));
        let info = |(id, found): (&Arc<str>, &Conversation)| ConversationInfo {
            id: id.as_ref().to_owned(),
            title: None,
            messages: found.len,
            created: found.created,
            updated: found.updated,
        };
        found.into_iter().skip(skip).take(limit).map(info).collect()
    }

    /// Messages after a place. A conversation that is packed stays so.
    pub(super) fn page(&self, id: &str, after: u64, limit: usize) -> Result<Vec<Arc<Entry>>, Error> {
        let Some(conversation) = self.all.get(id) else { return Ok(Vec::new()) };
        let after = usize::try_from(after).unwrap_or(usize::MAX);
        match &conversation.open {
            Some(open) => Ok(open.history.iter_from(after).take(limit).cloned().collect()),
            None => unpack(&conversation.packed).skip(after).take(limit).collect(),
        }
    }
}
