//! The closed part of a history: encoded once and sent as shared pieces, with what a wire must know to go on behind it.
//!
//! What lies before the end of a full chunk never changes, so what a wire makes of it depends on nothing else but the wire.
//! It is kept beside the chunk; a later request takes it from the newest chunk that has it and reads only what comes after.

use std::sync::Arc;

use bytes::Bytes;
use cepa_core::{Chunk, Entry, Error, History, WireKey};

use super::json::{Pieces, SHARED_FROM};

/// A wire that writes entry by entry, and can go on from where it was.
pub(super) trait Writer<'a> {
    /// Where it was: all that its next bytes depend on, but for the entries to come.
    type State: Clone + Send + Sync + 'static;

    /// Writes an entry; `place` is its index in the history.
    fn entry(&mut self, place: usize, entry: &'a Arc<Entry>) -> Result<(), Error>;

    /// Where it is; `None` if that cannot be kept, because it hangs on entries to come.
    fn state(&mut self) -> Option<Self::State>;

    fn written(&mut self) -> &mut Written<'a>;
}

/// All that lies before the end of a chunk, as a wire sends it.
struct Closed<S> {
    before: Option<Arc<Closed<S>>>,
    /// What it adds.
    pieces: Vec<Bytes>,
    /// The number of bytes of them.
    size: usize,
    /// The number of entries up to here.
    end: usize,
    state: S,
}

impl<S> Drop for Closed<S> {
    fn drop(&mut self) {
        // One after another, as the chunks.
        let mut next = self.before.take();
        while let Some(mut closed) = next.and_then(Arc::into_inner) {
            next = closed.before.take();
        }
    }
}

/// What was written since the last closed part.
#[derive(Default)]
pub(super) struct Written<'a> {
    pieces: Pieces,
    /// The entries whose bytes stand somewhere in them as they would in every request.
    kept: Vec<Kept<'a>>,
}

struct Kept<'a> {
    entry: &'a Entry,
    at: usize,
    size: usize,
    is_new: bool,
}

impl<'a> Written<'a> {
    /// The end, to be appended to.
    pub(super) fn tail(&mut self) -> &mut Vec<u8> {
        self.pieces.tail()
    }

    /// Appends what this wire always makes of an entry, or has made of it for an earlier request, with `lead` in front;
    /// nothing, and `false`, if that is empty.
    pub(super) fn keep(
        &mut self,
        entry: &'a Entry,
        key: &WireKey,
        lead: &[u8],
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        let known = entry.encoded.get(key);
        if known.as_ref().is_some_and(Bytes::is_empty) {
            return Ok(false);
        }
        let is_new = known.is_none();
        self.pieces.tail().extend_from_slice(lead);
        let at = self.pieces.size();
        match known {
            Some(bytes) => self.pieces.share(bytes),
            None => {
                let tail = self.pieces.tail();
                let begin = tail.len();
                write(tail)?;
                if tail.len() == begin {
                    tail.truncate(begin - lead.len());
                    entry.encoded.set(key, Bytes::new());
                    return Ok(false);
                }
                if tail.len() - begin >= SHARED_FROM {
                    let bytes = Bytes::from(tail.split_off(begin));
                    entry.encoded.set(key, bytes.clone());
                    self.pieces.share(bytes);
                    return Ok(true);
                }
            }
        }
        self.kept.push(Kept { entry, at, size: self.pieces.size() - at, is_new });
        Ok(true)
    }

    /// Appends what belongs to this place only.
    pub(super) fn share(&mut self, bytes: Bytes) {
        self.pieces.share(bytes);
    }

    /// The number of bytes.
    pub(super) fn size(&self) -> usize {
        self.pieces.size()
    }

    /// The pieces, of which the entries keep their parts.
    fn close(&mut self, key: &WireKey) -> Vec<Bytes> {
        let pieces = std::mem::take(&mut self.pieces).finish();
        for Kept { entry, at, size, .. } in self.kept.drain(..) {
            if let Some(bytes) = part(&pieces, at, size) {
                entry.encoded.set(key, bytes);
            }
        }
        pieces
    }

    /// The pieces of a part that goes on to grow; the entries keep copies.
    fn leave_open(self, key: &WireKey) -> Vec<Bytes> {
        let pieces = self.pieces.finish();
        for Kept { entry, at, size, .. } in self.kept.into_iter().filter(|kept| kept.is_new) {
            if let Some(bytes) = part(&pieces, at, size) {
                entry.encoded.set(key, Bytes::copy_from_slice(&bytes));
            }
        }
        pieces
    }
}

/// So many bytes of one of these pieces.
fn part(pieces: &[Bytes], mut at: usize, size: usize) -> Option<Bytes> {
    for piece in pieces {
        match at.checked_sub(piece.len()) {
            Some(behind) => at = behind,
            None => return (at + size <= piece.len()).then(|| piece.slice(at..at + size)),
        }
    }
    None
}

/// The first bytes of these pieces.
fn first(pieces: &[Bytes], mut size: usize) -> Vec<Bytes> {
    let mut first = Vec::new();
    for piece in pieces {
        let taken = size.min(piece.len());
        if taken > 0 {
            first.push(piece.slice(..taken));
        }
        size -= taken;
    }
    first
}

/// A history, as far as it is known to a wire and what comes after.
pub(super) struct Parts<'a, S> {
    key: &'a WireKey,
    known: Option<Arc<Closed<S>>>,
    /// Full chunks that nothing is known of, the newest first.
    chunks: Vec<&'a Arc<Chunk>>,
    tail: &'a [Arc<Entry>],
}

impl<'a, S: Clone + Send + Sync + 'static> Parts<'a, S> {
    pub(super) fn of(history: &'a History, key: &'a WireKey) -> Self {
        let (mut known, mut chunks, mut next) = (None, Vec::new(), history.sealed());
        while let Some(chunk) = next {
            known = chunk.kept().get::<Closed<S>>(key);
            if known.is_some() {
                break;
            }
            chunks.push(chunk);
            next = chunk.before();
        }
        Self { key, known, chunks, tail: history.tail() }
    }

    /// Where the wire was at the end of what is known.
    pub(super) fn state(&self) -> Option<&S> {
        self.known.as_ref().map(|known| &known.state)
    }

    /// The entries of which nothing is known.
    pub(super) fn entries(&self) -> impl Iterator<Item = &'a Arc<Entry>> {
        self.chunks.iter().rev().flat_map(|chunk| chunk.entries()).chain(self.tail)
    }

    /// Writes these entries, and keeps what can be kept.
    pub(super) fn write<W: Writer<'a, State = S>>(&mut self, writer: &mut W) -> Result<(), Error> {
        let mut place = self.known.as_ref().map_or(0, |known| known.end);
        while let Some(chunk) = self.chunks.pop() {
            for entry in chunk.entries() {
                writer.entry(place, entry)?;
                place += 1;
            }
            if let Some(state) = writer.state() {
                self.known = Some(match chunk.kept().get::<Closed<S>>(self.key) {
                    // Somebody has written the same meanwhile: it is not held a second time.
                    Some(known) => {
                        *writer.written() = Written::default();
                        known
                    }
                    None => {
                        let pieces = writer.written().close(self.key);
                        close(self.key, chunk, self.known.take(), pieces, state)
                    }
                });
            }
        }
        for entry in self.tail {
            writer.entry(place, entry)?;
            place += 1;
        }
        Ok(())
    }

    /// All pieces in order.
    pub(super) fn finish(self, written: Written<'a>) -> Vec<Bytes> {
        let closed: Vec<&Closed<S>> =
            std::iter::successors(self.known.as_deref(), |closed| closed.before.as_deref()).collect();
        let mut pieces: Vec<Bytes> = closed.iter().rev().flat_map(|closed| &closed.pieces).cloned().collect();
        pieces.extend(written.leave_open(self.key));
        pieces
    }
}

/// Keeps beside a chunk what was written up to its end. Small pieces stay as they are until together they are worth a piece
/// of their own; then they are joined, and all that had a part of them gets it of the joined one: nothing is held twice.
fn close<S: Clone + Send + Sync + 'static>(
    key: &WireKey,
    chunk: &Arc<Chunk>,
    before: Option<Arc<Closed<S>>>,
    pieces: Vec<Bytes>,
    state: S,
) -> Arc<Closed<S>> {
    let size = pieces.iter().map(Bytes::len).sum();
    let mut closed = Closed { before, pieces, size, end: chunk.end(), state };
    let small = std::iter::successors(closed.before.as_ref(), |closed| closed.before.as_ref());
    let small: Vec<Arc<Closed<S>>> = small.take_while(|closed| closed.size < SHARED_FROM).cloned().collect();
    let joined_size = small.iter().map(|closed| closed.size).sum::<usize>() + size;
    if let Some(oldest) = small.last().filter(|_| joined_size >= SHARED_FROM) {
        closed.before.clone_from(&oldest.before);
        let mut joined = Pieces::new();
        let mut moved = Vec::new();
        for piece in small.iter().rev().flat_map(|closed| &closed.pieces).chain(&closed.pieces) {
            moved.push((joined.size(), piece.clone()));
            joined.share(piece.clone());
        }
        let joined = joined.finish();
        move_entries(key, chunk, closed.before.as_ref().map_or(0, |before| before.end), &moved, &joined);
        let (mut next, mut end) = (chunk.before(), joined_size - size);
        for old in &small {
            while let Some(chunk) = next.filter(|chunk| chunk.end() >= old.end) {
                if chunk.end() == old.end {
                    let (before, pieces) = (closed.before.clone(), first(&joined, end));
                    let moved = Closed { before, pieces, size: end, end: old.end, state: old.state.clone() };
                    chunk.kept().set(key, Arc::new(moved));
                }
                next = chunk.before();
            }
            end -= old.size;
        }
        (closed.pieces, closed.size) = (joined, joined_size);
    }
    let closed = Arc::new(closed);
    chunk.kept().set(key, closed.clone());
    closed
}

/// Gives the entries from `begin` to the end of a chunk their parts of the joined pieces in place of those of the old ones.
fn move_entries(key: &WireKey, chunk: &Arc<Chunk>, begin: usize, old: &[(usize, Bytes)], joined: &[Bytes]) {
    let chunks = std::iter::successors(Some(chunk), |chunk| chunk.before()).take_while(|chunk| chunk.end() > begin);
    for entry in chunks.flat_map(|chunk| chunk.entries()) {
        let Some(bytes) = entry.encoded.get(key) else { continue };
        let place = old.iter().find_map(|(at, piece)| Some(at + place_in(piece, &bytes)?));
        if let Some(bytes) = place.and_then(|at| part(joined, at, bytes.len())) {
            entry.encoded.set(key, bytes);
        }
    }
}

/// Where a part of these bytes stands in them; `None` if it is none.
fn place_in(whole: &Bytes, bytes: &Bytes) -> Option<usize> {
    let at = bytes.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
    (at + bytes.len() <= whole.len()).then_some(at)
}

#[cfg(test)]
#[path = "closed_tests.rs"]
mod tests;
