//! Conversations by id: the contract of every memory.

use std::sync::Arc;

use cepa_core::{BoxFuture, Entry, Error, History};

/// How far a conversation has come. `clear` raises the epoch; an epoch is never used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// How often the conversation was cleared.
    pub epoch: u64,
    /// How many messages were appended since.
    pub seq: u64,
}

/// What a load found, compared with what the caller holds.
#[derive(Clone, Debug)]
pub enum Loaded {
    /// The caller's version is the newest.
    Unchanged,
    /// The caller's version is a beginning: these entries follow it.
    Added {
        /// The version now.
        version: Version,
        /// The entries after the caller's version.
        entries: Vec<Arc<Entry>>,
    },
    /// The caller holds nothing, or what it holds is void: this is all there is.
    Whole {
        /// The version now.
        version: Version,
        /// All messages that the view shows.
        history: History,
    },
}

/// A conversation in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationInfo {
    /// Its id.
    pub id: String,
    /// Its title, if it has one.
    pub title: Option<String>,
    /// Number of messages.
    pub messages: u64,
    /// When it began, in milliseconds since 1970.
    pub created: i64,
    /// When it last changed, in milliseconds since 1970.
    pub updated: i64,
}

/// A row that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorruptRow {
    /// Its place in the conversation, from 1.
    pub seq: u64,
    /// What is wrong with it.
    pub why: String,
}

/// Conversations by id. Append-only: a row is written once and never changed.
///
/// An unknown conversation is an empty one at version 0/0.
pub trait ChatMemory: Send + Sync + 'static {
    /// Reads a conversation, or what is new in it since `held`.
    ///
    /// # Errors
    /// `corrupt` naming the row that does not parse; `store` if the store cannot be read.
    fn load<'a>(&'a self, id: &'a str, held: Option<Version>) -> BoxFuture<'a, Result<Loaded, Error>>;

    /// Appends entries in one unit. An entry whose id the conversation already has is left out, so that the same
    /// append can be made again. An entry without an id gets one.
    ///
    /// # Errors
    /// `conflict` if the conversation is not at `expected` (unless all entries are already there); `store` if it
    /// cannot be written. Nothing of the append is there then.
    fn append<'a>(
        &'a self,
        id: &'a str,
        expected: Version,
        entries: Vec<Arc<Entry>>,
    ) -> BoxFuture<'a, Result<Version, Error>>;

    /// Removes all messages of a conversation; its epoch rises.
    ///
    /// # Errors
    /// `store` if it cannot be written.
    fn clear<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Error>>;

    /// The conversations, last changed first, `limit` of them after the first `skip`.
    ///
    /// # Errors
    /// `store` if the store cannot be read.
    fn list(&self, skip: usize, limit: usize) -> BoxFuture<'_, Result<Vec<ConversationInfo>, Error>>;

    /// Messages of a conversation after sequence number `after` (0 = from the start), at most `limit`.
    ///
    /// # Errors
    /// As [`ChatMemory::load`].
    fn page<'a>(&'a self, id: &'a str, after: u64, limit: usize) -> BoxFuture<'a, Result<Vec<Arc<Entry>>, Error>>;

    /// Reads a conversation and leaves out what cannot be read, saying what was left out.
    ///
    /// # Errors
    /// `store` if the store cannot be read.
    fn load_lossy<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(History, Vec<CorruptRow>), Error>> {
        Box::pin(async move { Ok((load_whole(self, id).await?.1, Vec::new())) })
    }
}

/// Loads a conversation whole.
///
/// # Errors
/// As [`ChatMemory::load`].
pub async fn load_whole<M: ChatMemory + ?Sized>(memory: &M, id: &str) -> Result<(Version, History), Error> {
    match memory.load(id, None).await? {
        Loaded::Whole { version, history } => Ok((version, history)),
        Loaded::Added { version, entries } => Ok((version, entries.into_iter().collect())),
        Loaded::Unchanged => Ok((Version::default(), History::new())),
    }
}
