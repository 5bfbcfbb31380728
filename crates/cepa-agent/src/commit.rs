//! What one step of a turn leaves behind.

use std::sync::Arc;

use cepa_core::{Entry, History, RawJson};

use crate::{
    memory::Version,
    pause::{Pause, PauseState},
    store::{CallChange, TurnRow, TurnState},
    turn::TurnData,
};

/// What one step of a turn leaves behind: written in one transaction, before anything is done about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Commit {
    /// The row of the turn, where the turn begins with this step: an ephemeral one that begins to wait, one that comes
    /// from elsewhere. Such a commit has no `expected`.
    pub begins: Option<TurnRow>,
    /// The turn's new state and data.
    pub turn: Option<TurnChange>,
    /// Changes of calls, in order.
    pub calls: Vec<CallChange>,
    /// New pauses.
    pub pauses: Vec<Pause>,
    /// Pauses that are over without a decision: cancelled, expired.
    pub closed_pauses: Vec<(String, PauseState)>,
    /// Messages that join the conversation with this step; those that are already there by id are left out.
    pub messages: Vec<SharedEntry>,
    /// The version at which the messages join, if it matters: another version is a `conflict`, as for
    /// [`ChatMemory::append`](crate::ChatMemory::append), and nothing of the commit is written.
    pub expected: Option<Version>,
    /// Whether the conversation is given back with this step, as by [`TurnStore::release`](crate::TurnStore::release).
    pub releases: bool,
    /// When, in milliseconds since 1970.
    pub at: i64,
}

/// An entry that is equal to another if id and message are.
#[derive(Clone, Debug)]
pub struct SharedEntry(pub Arc<Entry>);

impl PartialEq for SharedEntry {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id && self.0.message == other.0.message
    }
}

/// A turn's new state.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnChange {
    /// Where it stands.
    pub state: TurnState,
    /// Settings and counters.
    pub data: TurnNote,
    /// The transcript of an ephemeral turn: shared, and made JSON of by [`carried_json`] only where it is written.
    pub carried: Option<History>,
}

/// Settings and counters of a turn as they were at a step: made JSON of only where that is written.
#[derive(Clone, Debug)]
pub struct TurnNote(Note);

#[derive(Clone, Debug)]
enum Note {
    Written(RawJson),
    Unwritten(Box<TurnData>),
}

impl TurnNote {
    /// The JSON, for [`TurnRow::data`].
    pub fn json(&self) -> RawJson {
        match &self.0 {
            Note::Written(json) => json.clone(),
            Note::Unwritten(data) => crate::turn::json(&**data),
        }
    }
}

impl From<RawJson> for TurnNote {
    fn from(json: RawJson) -> Self {
        Self(Note::Written(json))
    }
}

impl From<TurnData> for TurnNote {
    fn from(data: TurnData) -> Self {
        Self(Note::Unwritten(Box::new(data)))
    }
}

impl PartialEq for TurnNote {
    fn eq(&self, other: &Self) -> bool {
        self.json() == other.json()
    }
}

/// A transcript as it stands in [`TurnRow::carried`].
pub fn carried_json(transcript: &History) -> RawJson {
    crate::turn::json(&transcript.messages().collect::<Vec<_>>())
}

impl Commit {
    /// Whether nothing is to be written.
    pub fn is_empty(&self) -> bool {
        let Self { begins, turn, calls, pauses, closed_pauses, messages, expected: _, releases, at: _ } = self;
        !releases
            && begins.is_none()
            && turn.is_none()
            && calls.is_empty()
            && pauses.is_empty()
            && closed_pauses.is_empty()
            && messages.is_empty()
    }

    /// Puts a later step into this one: both are then written in one transaction, or neither.
    pub(crate) fn then(&mut self, next: Self) {
        if self.is_empty() {
            *self = next;
            return;
        }
        let Self { begins, turn, calls, pauses, closed_pauses, messages, expected, releases, at } = next;
        self.begins = self.begins.take().or(begins);
        self.turn = turn.or(self.turn.take());
        self.calls.extend(calls);
        self.pauses.extend(pauses);
        self.closed_pauses.extend(closed_pauses);
        self.messages.extend(messages);
        self.expected = self.expected.or(expected);
        self.releases |= releases;
        self.at = at;
    }
}
