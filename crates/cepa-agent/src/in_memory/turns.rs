//! The turns, pauses and leases of a store that keeps them in the process.

use std::collections::{BTreeMap, HashMap, VecDeque};

use cepa_core::{Error, RawJson};

use crate::{
    audit::{AuditEntry, may_have_been_shown},
    ids,
    pause::{self, Decision, Pause, PauseState, Settled},
    rules::{self, Closing, Holding},
    store::{
        CallChange, CallKey, CallRow, CallState, Commit, Lease, LiveTurn, Opened, StoredTurn, TurnRow, TurnState,
        carried_json,
    },
};

/// A turn; `order` counts the turns of the store.
#[derive(Debug)]
struct Kept {
    order: u64,
    row: TurnRow,
    calls: BTreeMap<CallKey, CallRow>,
    pauses: Vec<Pause>,
}

/// Oldest first: when a pause began to wait, its turn, its call, its place in the turn.
type Waiting = (i64, u64, CallKey, usize);

impl Kept {
    fn waiting(&self, place: usize, pause: &Pause) -> Waiting {
        (pause.created, self.order, pause.key, place)
    }

    fn pause_mut(&mut self, id: &str) -> Option<(Waiting, &mut Pause)> {
        let order = self.order;
        let (place, pause) = self.pauses.iter_mut().enumerate().find(|(_, pause)| pause.id == id)?;
        Some(((pause.created, order, pause.key, place), pause))
    }
}

/// What a [`TurnStore`](crate::TurnStore) keeps beside the messages.
#[derive(Debug, Default)]
pub(super) struct Turns {
    begun: u64,
    turns: HashMap<String, Kept>,
    live: BTreeMap<u64, String>,
    /// Turns that are over, oldest first, where only some of them are kept.
    over: VecDeque<String>,
    keep: Option<usize>,
    /// The ids of the pauses that wait.
    waiting: BTreeMap<Waiting, String>,
    /// The turns of all pauses.
    pauses: HashMap<String, String>,
    /// Full texts of cut results, by message.
    full: HashMap<String, RawJson>,
    leases: HashMap<String, Holding>,
    /// Oldest first; the newest part where only some turns are kept.
    audit: VecDeque<AuditEntry>,
    noted: u64,
}

/// A commit that was found to be legal, ready to be done.
struct Planned {
    calls: BTreeMap<CallKey, CallRow>,
    new_pauses: Vec<Pause>,
    closed: Vec<(String, PauseState)>,
}

impl Turns {
    /// Keeps at most so many turns that are over.
    pub(super) fn keeping(keep: usize) -> Self {
        Self { keep: Some(keep), ..Self::default() }
    }

    fn note(&mut self, entry: AuditEntry) {
        /// About what a turn with a pause leaves behind.
        const A_TURN: usize = 4;
        self.noted += 1;
        self.audit.push_back(AuditEntry { seq: self.noted, ..entry });
        if self.keep.is_some_and(|keep| self.audit.len() > keep.saturating_mul(A_TURN)) {
            self.audit.pop_front();
        }
    }

    pub(super) fn audit(&self, conversation: Option<&str>, after: u64, limit: usize) -> Vec<AuditEntry> {
        let later = self.audit.iter().skip_while(|entry| entry.seq <= after);
        let of_it = later.filter(|entry| conversation.is_none_or(|conversation| entry.conversation() == conversation));
        of_it.take(limit).cloned().collect()
    }

    pub(super) fn lease(&mut self, conversation: &str, holder: &str, now: i64, until: i64) -> Result<Lease, Error> {
        let holding = self.leases.get(conversation).cloned().unwrap_or_default();
        let taken = holding.take(conversation, holder, now, until)?;
        let lease = Lease { token: taken.token, until };
        self.leases.insert(conversation.to_owned(), taken);
        Ok(lease)
    }

    pub(super) fn release(&mut self, conversation: &str, token: u64) {
        if let Some(holding) = self.leases.get_mut(conversation).filter(|holding| holding.token == token) {
            holding.by = None;
            holding.until = 0;
        }
    }

    fn check(&self, conversation: &str, token: u64) -> Result<(), Error> {
        match self.leases.get(conversation) {
            Some(holding) => holding.check(conversation, token),
            None => Holding::default().check(conversation, token),
        }
    }

    pub(super) fn open(&mut self, row: TurnRow, holder: &str, now: i64, until: i64) -> Result<Opened, Error> {
        let lease = self.lease(&row.conversation, holder, now, until)?;
        let begun = self.live_turns(Some(&row.conversation)).is_empty();
        if begun {
            self.begin(row, lease.token)?;
        }
        Ok(Opened { lease, begun })
    }

    pub(super) fn begin(&mut self, row: TurnRow, token: u64) -> Result<(), Error> {
        self.check(&row.conversation, token)?;
        if !rules::add_turn(self.turns.get(&row.id).map(|kept| &kept.row), &row)? {
            return Ok(());
        }
        self.begun += 1;
        let order = self.begun;
        if row.state.is_live() {
            self.live.insert(order, row.id.clone());
        }
        self.turns.insert(row.id.clone(), Kept { order, row, calls: BTreeMap::new(), pauses: Vec::new() });
        Ok(())
    }

    /// The conversation of a turn, if this token may commit this.
    pub(super) fn check_commit(&self, turn: &str, token: u64, commit: &Commit) -> Result<String, Error> {
        let kept = self.turns.get(turn).ok_or_else(|| rules::no_such_turn(turn))?;
        self.plan(kept, token, commit)?;
        Ok(kept.row.conversation.clone())
    }

    fn plan(&self, kept: &Kept, token: u64, commit: &Commit) -> Result<Planned, Error> {
        self.check(&kept.row.conversation, token)?;
        let mut calls: BTreeMap<CallKey, CallRow> = BTreeMap::new();
        for change in &commit.calls {
            let key = change.key();
            let row = rules::change_call(calls.get(&key).or_else(|| kept.calls.get(&key)), change)?;
            calls.insert(key, row);
        }
        let mut new_pauses: Vec<Pause> = Vec::new();
        for pause in &commit.pauses {
            let stored = self.pause(&pause.id).or_else(|| new_pauses.iter().find(|new| new.id == pause.id));
            if rules::add_pause(stored, pause)? {
                new_pauses.push(pause.clone());
            }
        }
        let mut closed: Vec<(String, PauseState)> = Vec::new();
        for (id, state) in &commit.closed_pauses {
            let closed_here = closed.iter().find(|(closed, _)| closed == id).map(|(_, state)| *state);
            let stored = new_pauses.iter().chain(&kept.pauses).find(|pause| pause.id == *id);
            if rules::close_pause(id, closed_here.or(stored.map(|pause| pause.state)))? == Closing::Now {
                closed.push((id.clone(), *state));
            }
        }
        Ok(Planned { calls, new_pauses, closed })
    }

    /// Writes all of a commit but its messages; returns the turn's conversation.
    pub(super) fn commit(&mut self, turn: &str, token: u64, commit: &Commit) -> Result<String, Error> {
        let Some(row) = &commit.begins else { return self.write(turn, token, commit) };
        let is_new = !self.turns.contains_key(&row.id);
        self.begin(row.clone(), token)?;
        let written = self.write(turn, token, commit);
        if written.is_err() && is_new {
            self.remove(&row.id);
        }
        written
    }

    /// Whether nothing of a turn is to stay.
    pub(super) fn leaves_nothing(&self, turn: &str) -> bool {
        self.turns.get(turn).is_some_and(|kept| rules::leaves_nothing(&kept.row))
    }

    fn write(&mut self, turn: &str, token: u64, commit: &Commit) -> Result<String, Error> {
        let kept = self.turns.get(turn).ok_or_else(|| rules::no_such_turn(turn))?;
        let planned = self.plan(kept, token, commit)?;
        let Some(kept) = self.turns.get_mut(turn) else { return Err(rules::no_such_turn(turn)) };

        let mut notes = notes(&planned, kept, commit);
        for (key, row) in planned.calls {
            if let Some(full) = row.result.as_ref().and_then(|result| result.full.clone()) {
                self.full.insert(ids::result_id(turn, key), full);
            }
            kept.calls.insert(key, row);
        }
        for pause in planned.new_pauses {
            self.pauses.insert(pause.id.clone(), turn.to_owned());
            if pause.state == PauseState::Pending {
                self.waiting.insert(kept.waiting(kept.pauses.len(), &pause), pause.id.clone());
            }
            kept.pauses.push(pause);
        }
        for (id, state) in planned.closed {
            if let Some((waiting, pause)) = kept.pause_mut(&id) {
                self.waiting.remove(&waiting);
                pause.state = state;
                notes.push(AuditEntry::closed(pause, state, commit.at));
            }
        }
        kept.row.updated = kept.row.updated.max(commit.at);
        let conversation = kept.row.conversation.clone();
        if let Some(change) = &commit.turn {
            kept.row.state = change.state;
            kept.row.data = change.data.json();
            if let Some(transcript) = &change.carried {
                kept.row.carried = Some(carried_json(transcript));
            }
            if change.state.is_live() {
                self.live.insert(kept.order, turn.to_owned());
            } else if self.live.remove(&kept.order).is_some() {
                self.is_over(turn);
            }
        }
        if commit.releases {
            self.release(&conversation, token);
        }
        notes.into_iter().for_each(|note| self.note(note));
        Ok(conversation)
    }

    fn is_over(&mut self, turn: &str) {
        let Some(keep) = self.keep else { return };
        self.over.push_back(turn.to_owned());
        while self.over.len() > keep {
            if let Some(oldest) = self.over.pop_front() {
                self.remove(&oldest);
            }
        }
    }

    fn remove(&mut self, turn: &str) {
        let Some(kept) = self.turns.remove(turn) else { return };
        self.live.remove(&kept.order);
        for key in kept.calls.keys() {
            self.full.remove(&ids::result_id(turn, *key));
        }
        for (place, pause) in kept.pauses.iter().enumerate() {
            self.waiting.remove(&kept.waiting(place, pause));
            self.pauses.remove(&pause.id);
        }
    }

    /// Removes an ephemeral turn; returns its conversation, which is its own.
    pub(super) fn forget(&mut self, turn: &str) -> Result<Option<String>, Error> {
        let Some(kept) = self.turns.get(turn) else { return Ok(None) };
        if !kept.row.ephemeral {
            return Err(rules::not_ephemeral(turn));
        }
        let conversation = kept.row.conversation.clone();
        self.remove(turn);
        self.leases.remove(&conversation);
        Ok(Some(conversation))
    }

    /// Removes the turns of a conversation. Its lease stays: tokens never fall.
    pub(super) fn clear(&mut self, conversation: &str, now: i64) {
        let closed = |pause: Pause| AuditEntry::closed(&pause, PauseState::Cancelled, now);
        for note in self.pending(Some(conversation)).into_iter().map(closed) {
            self.note(note);
        }
        self.note(AuditEntry::cleared(conversation, now));
        let of_it = |kept: &&Kept| kept.row.conversation == conversation;
        let gone: Vec<String> = self.turns.values().filter(of_it).map(|kept| kept.row.id.clone()).collect();
        gone.iter().for_each(|turn| self.remove(turn));
        self.over.retain(|turn| self.turns.contains_key(turn));
    }

    pub(super) fn turn(&self, id: &str) -> Option<StoredTurn> {
        let kept = self.turns.get(id)?;
        let mut pauses = kept.pauses.clone();
        pauses.sort_by_key(|pause| pause.key);
        Some(StoredTurn { row: kept.row.clone(), calls: kept.calls.values().cloned().collect(), pauses })
    }

    pub(super) fn live_turns(&self, conversation: Option<&str>) -> Vec<LiveTurn> {
        let live = self.live.values().filter_map(|id| self.turns.get(id));
        live.filter(|kept| conversation.is_none_or(|conversation| kept.row.conversation == conversation))
            .map(|kept| LiveTurn {
                id: kept.row.id.clone(),
                conversation: kept.row.conversation.clone(),
                paused: kept.row.state == TurnState::Paused
                    && kept.pauses.iter().any(|pause| pause.state == PauseState::Pending),
            })
            .collect()
    }

    pub(super) fn pending(&self, conversation: Option<&str>) -> Vec<Pause> {
        let waiting = self.waiting.values().filter_map(|id| self.pause(id));
        waiting
            .filter(|pause| conversation.is_none_or(|conversation| pause.conversation == conversation))
            .cloned()
            .collect()
    }

    pub(super) fn pause(&self, id: &str) -> Option<&Pause> {
        self.turns.get(self.pauses.get(id)?)?.pauses.iter().find(|pause| pause.id == id)
    }

    pub(super) fn decide(&mut self, id: &str, decision: Decision, actor: &str, now: i64) -> Result<Pause, Error> {
        let kept = self.pauses.get(id).and_then(|turn| self.turns.get_mut(turn));
        let found = kept.and_then(|kept| kept.pause_mut(id));
        let (waiting, pause) = found.ok_or_else(|| pause::no_such_pause(id))?;
        match pause::settle(pause, &decision, now)? {
            Settled::Before => {}
            Settled::Now => {
                self.waiting.remove(&waiting);
                let note = AuditEntry::decided(pause, &decision, actor, now);
                pause.state = decision.state();
                pause.decision = Some(decision);
                pause.actor = Some(actor.to_owned());
                pause.decided = Some(now);
                let pause = pause.clone();
                self.note(note);
                return Ok(pause);
            }
            Settled::Expired(error) => {
                self.waiting.remove(&waiting);
                pause.state = PauseState::Expired;
                let note = AuditEntry::closed(pause, PauseState::Expired, now);
                self.note(note);
                return Err(error);
            }
        }
        Ok(pause.clone())
    }

    pub(super) fn full(&self, message: &str) -> Option<RawJson> {
        self.full.get(message).cloned()
    }
}

/// What the audit trail says of a commit, but for the pauses that it closes.
fn notes(planned: &Planned, kept: &Kept, commit: &Commit) -> Vec<AuditEntry> {
    let of_change = |change: &CallChange| {
        let row = planned.calls.get(&change.key()).filter(|row| may_have_been_shown(row))?;
        let pause = kept.pauses.iter().rev().find(|pause| pause.key == change.key())?;
        let ran = kept.calls.get(&change.key()).is_some_and(|before| before.state == CallState::Started);
        match change {
            CallChange::Started { at, .. } => Some(AuditEntry::ran(pause, row, *at)),
            CallChange::Finished { at, .. } if ran => Some(AuditEntry::finished(pause, row, *at)),
            CallChange::Unknown { at, .. } if ran => Some(AuditEntry::unknown(pause, row, *at)),
            CallChange::Planned(_) | CallChange::Finished { .. } | CallChange::Unknown { .. } => None,
        }
    };
    let changed = commit.calls.iter().filter_map(of_change);
    changed.chain(planned.new_pauses.iter().map(AuditEntry::shown)).collect()
}
