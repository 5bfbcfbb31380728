//! The turns, pauses and leases of a store that keeps them in the process.

use std::collections::{BTreeMap, VecDeque};

use cepa_core::{Error, RawJson};

use super::live::Live;
use crate::{
    audit::{AuditEntry, may_have_been_shown},
    ids,
    pause::{self, Decision, Pause, PauseState, Settled},
    quick_hash::QuickMap,
    rules::{self, Closing, Holding},
    store::{
        CallChange, CallKey, CallRow, CallState, Commit, Lease, LiveTurn, Opened, StoredTurn, TurnNote, TurnRow,
        TurnState, carried_json,
    },
};

/// A turn; `order` counts the turns of the store.
#[derive(Debug)]
struct Kept {
    order: u64,
    row: TurnRow,
    /// The row's data since it began: made JSON of when somebody reads the row.
    note: Option<TurnNote>,
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

/// Which turns that are over are kept, beside those that are always.
#[derive(Clone, Copy, Debug)]
pub(super) enum Keeping {
    /// Those that asked a person, or have a result that was cut, and the last so many others.
    Asked(usize),
    /// The last so many.
    Last(usize),
}

impl Default for Keeping {
    fn default() -> Self {
        /// Nobody needs them but to look at what just happened.
        const OTHERS: usize = 100;
        Self::Asked(OTHERS)
    }
}

/// What a [`TurnStore`](crate::TurnStore) keeps beside the messages.
#[derive(Debug, Default)]
pub(super) struct Turns {
    begun: u64,
    turns: QuickMap<String, Kept>,
    live: Live,
    /// Turns that are over and of which only the last are kept, oldest first.
    over: VecDeque<String>,
    keeping: Keeping,
    /// The ids of the pauses that wait.
    waiting: BTreeMap<Waiting, String>,
    /// The turns of all pauses.
    pauses: QuickMap<String, String>,
    /// Full texts of cut results, by message.
    full: QuickMap<String, RawJson>,
    /// Who holds a conversation now.
    leases: QuickMap<Box<str>, Holding>,
    /// The newest tokens of the conversations that were held before.
    tokens: QuickMap<Box<str>, u64>,
    /// Oldest first; the newest part where only some turns are kept.
    audit: VecDeque<AuditEntry>,
    noted: u64,
}

/// What was found about a commit that is legal.
struct Checked {
    new_pauses: Vec<Pause>,
    closed: Vec<(String, PauseState)>,
}

impl Turns {
    /// Keeps at most so many turns that are over.
    pub(super) fn keeping(last: usize) -> Self {
        Self { keeping: Keeping::Last(last), ..Self::default() }
    }

    fn note(&mut self, entry: AuditEntry) {
        /// About what a turn with a pause leaves behind.
        const A_TURN: usize = 4;
        self.noted += 1;
        self.audit.push_back(AuditEntry { seq: self.noted, ..entry });
        if matches!(self.keeping, Keeping::Last(keep) if self.audit.len() > keep.saturating_mul(A_TURN)) {
            self.audit.pop_front();
        }
    }

    pub(super) fn audit(&self, conversation: Option<&str>, after: u64, limit: usize) -> Vec<AuditEntry> {
        let later = self.audit.iter().skip_while(|entry| entry.seq <= after);
        let of_it = later.filter(|entry| conversation.is_none_or(|conversation| entry.conversation() == conversation));
        of_it.take(limit).cloned().collect()
    }

    /// Who holds a conversation, or held it last.
    fn holding(&self, conversation: &str) -> Holding {
        let free =
            || Holding { token: self.tokens.get(conversation).copied().unwrap_or_default(), ..Holding::default() };
        self.leases.get(conversation).cloned().unwrap_or_else(free)
    }

    pub(super) fn lease(&mut self, conversation: &str, holder: &str, now: i64, until: i64) -> Result<Lease, Error> {
        let taken = self.holding(conversation).take(conversation, holder, now, until)?;
        let lease = Lease { token: taken.token, until };
        match self.leases.get_mut(conversation) {
            Some(holding) => *holding = taken,
            None => {
                let known = self.tokens.remove_entry(conversation);
                self.leases.insert(known.map_or_else(|| conversation.into(), |(key, _)| key), taken);
            }
        }
        Ok(lease)
    }

    pub(super) fn release(&mut self, conversation: &str, token: u64) {
        if self.leases.get(conversation).is_some_and(|holding| holding.token == token)
            && let Some((key, holding)) = self.leases.remove_entry(conversation)
        {
            self.tokens.insert(key, holding.token);
        }
    }

    fn check(&self, conversation: &str, token: u64) -> Result<(), Error> {
        match self.leases.get(conversation) {
            Some(holding) => holding.check(conversation, token),
            None => self.holding(conversation).check(conversation, token),
        }
    }

    pub(super) fn open(&mut self, row: TurnRow, holder: &str, now: i64, until: i64) -> Result<Opened, Error> {
        let lease = self.lease(&row.conversation, holder, now, until)?;
        let begun = !self.live.has(&row.conversation);
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
            self.live.insert(order, &row.id, &row.conversation);
        }
        self.turns.insert(row.id.clone(), Kept { order, row, note: None, calls: BTreeMap::new(), pauses: Vec::new() });
        Ok(())
    }

    /// The conversation of a turn, if this token may commit this.
    pub(super) fn check_commit(&self, turn: &str, token: u64, commit: &Commit) -> Result<String, Error> {
        self.checked(turn, token, commit).map(|(kept, _)| kept.row.conversation.clone())
    }

    fn checked(&self, turn: &str, token: u64, commit: &Commit) -> Result<(&Kept, Checked), Error> {
        let kept = self.turns.get(turn).ok_or_else(|| rules::no_such_turn(turn))?;
        self.check(&kept.row.conversation, token)?;
        check_calls(&kept.calls, &commit.calls)?;
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
        Ok((kept, Checked { new_pauses, closed }))
    }

    /// Writes all of a commit but its messages, for which `append` is asked: it is given the turn's conversation, when
    /// everything else was found to be legal, and what it refuses is refused whole. Returns the conversation of an
    /// ephemeral turn that is over and gone.
    pub(super) fn commit(
        &mut self,
        turn: &str,
        token: u64,
        mut commit: Commit,
        append: impl FnOnce(&str) -> Result<(), Error>,
    ) -> Result<Option<String>, Error> {
        let mut new = None;
        if let Some(row) = commit.begins.take() {
            new = (!self.turns.contains_key(&row.id)).then(|| row.id.clone());
            self.begin(row, token)?;
        }
        let checked = self.checked(turn, token, &commit).and_then(|(kept, checked)| {
            append(&kept.row.conversation)?;
            Ok(checked)
        });
        match checked {
            Ok(checked) => {
                if self.write(turn, token, checked, commit) {
                    self.forget(turn)
                } else {
                    Ok(None)
                }
            }
            Err(error) => {
                new.iter().for_each(|turn| self.remove(turn));
                Err(error)
            }
        }
    }

    /// Writes what was found to be legal. Says whether nothing of the turn is to stay.
    fn write(&mut self, turn: &str, token: u64, Checked { new_pauses, closed }: Checked, commit: Commit) -> bool {
        let Commit {
            calls,
            at,
            turn: change,
            begins: _,
            pauses: _,
            closed_pauses: _,
            messages: _,
            expected: _,
            releases,
        } = commit;
        let Some(kept) = self.turns.get_mut(turn) else { return false };

        let shown = kept.shown(&calls);
        for change in calls {
            if let CallChange::Finished { key, result, .. } = &change
                && let Some(full) = &result.full
            {
                self.full.insert(ids::result_id(turn, *key), full.clone());
            }
            apply(&mut kept.calls, change);
        }
        let mut notes = kept.notes(shown);
        notes.extend(new_pauses.iter().map(AuditEntry::shown));
        for pause in new_pauses {
            self.pauses.insert(pause.id.clone(), turn.to_owned());
            if pause.state == PauseState::Pending {
                self.waiting.insert(kept.waiting(kept.pauses.len(), &pause), pause.id.clone());
            }
            kept.pauses.push(pause);
        }
        for (id, state) in closed {
            if let Some((waiting, pause)) = kept.pause_mut(&id) {
                self.waiting.remove(&waiting);
                pause.state = state;
                notes.push(AuditEntry::closed(pause, state, at));
            }
        }
        kept.row.updated = kept.row.updated.max(at);
        let mut was_live = false;
        let (order, mut leaves_nothing) = (kept.order, rules::leaves_nothing(&kept.row));
        if let Some(change) = change {
            kept.row.state = change.state;
            kept.note = Some(change.data);
            if let Some(transcript) = &change.carried {
                kept.row.carried = Some(carried_json(transcript));
            }
            leaves_nothing = rules::leaves_nothing(&kept.row);
            if change.state.is_live() {
                self.live.insert(order, turn, &kept.row.conversation);
            } else {
                was_live = self.live.remove(order, &kept.row.conversation);
            }
        }
        let released = releases.then(|| kept.row.conversation.clone());
        if was_live && !leaves_nothing {
            self.is_over(turn);
        }
        if let Some(conversation) = released {
            self.release(&conversation, token);
        }
        notes.into_iter().for_each(|note| self.note(note));
        leaves_nothing
    }

    fn is_over(&mut self, turn: &str) {
        if !self.may_go(turn) {
            return;
        }
        self.over.push_back(turn.to_owned());
        let (Keeping::Asked(keep) | Keeping::Last(keep)) = self.keeping;
        while self.over.len() > keep {
            // It may have gone on since.
            if let Some(oldest) = self.over.pop_front().filter(|turn| self.may_go(turn)) {
                self.remove(&oldest);
            }
        }
    }

    /// Whether a turn is only kept while it is one of the last.
    fn may_go(&self, turn: &str) -> bool {
        self.turns.get(turn).is_some_and(|kept| {
            let stays = matches!(self.keeping, Keeping::Asked(_)) && kept.asked();
            !stays && !kept.row.state.is_live()
        })
    }

    fn remove(&mut self, turn: &str) {
        let Some(kept) = self.turns.remove(turn) else { return };
        self.live.remove(kept.order, &kept.row.conversation);
        if !self.full.is_empty() {
            for key in kept.calls.keys() {
                self.full.remove(&ids::result_id(turn, *key));
            }
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
        self.leases.remove(&*conversation);
        self.tokens.remove(&*conversation);
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
        let mut row = kept.row.clone();
        if let Some(note) = &kept.note {
            row.data = note.json();
        }
        Some(StoredTurn { row, calls: kept.calls.values().cloned().collect(), pauses })
    }

    pub(super) fn live_turns(&self, conversation: Option<&str>) -> Vec<LiveTurn> {
        let live = self.live.ids(conversation).into_iter().filter_map(|id| self.turns.get(id));
        live.map(|kept| LiveTurn {
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

/// Whether calls may change so, one change after the other.
fn check_calls(calls: &BTreeMap<CallKey, CallRow>, changes: &[CallChange]) -> Result<(), Error> {
    // Mostly each change is of another call, and nothing has to be done to know what the next one finds.
    if changes.is_sorted_by(|a, b| a.key() < b.key()) {
        return changes.iter().try_for_each(|change| rules::check_change(calls.get(&change.key()), change));
    }
    let mut changed: BTreeMap<CallKey, CallRow> = BTreeMap::new();
    for change in changes {
        let key = change.key();
        let row = rules::change_call(changed.get(&key).or_else(|| calls.get(&key)), change)?;
        changed.insert(key, row);
    }
    Ok(())
}

/// Makes a change that was found to be legal.
fn apply(calls: &mut BTreeMap<CallKey, CallRow>, change: CallChange) {
    match change {
        CallChange::Planned(row) => drop(calls.insert(row.key(), row)),
        CallChange::Started { .. } | CallChange::Finished { .. } | CallChange::Unknown { .. } => {
            if let Some(row) = calls.get_mut(&change.key()) {
                rules::apply_change(row, change);
            }
        }
    }
}

/// How an entry of the audit trail is made of a pause and its call.
type Noting = fn(&Pause, &CallRow, i64) -> AuditEntry;

impl Kept {
    /// What the audit trail would say of these changes, which are still to be made, if the calls were shown.
    fn shown(&self, changes: &[CallChange]) -> Vec<(CallKey, Noting, i64)> {
        if self.pauses.is_empty() {
            return Vec::new();
        }
        let ran = |key: &CallKey| self.calls.get(key).is_some_and(|before| before.state == CallState::Started);
        let of_change = |change: &CallChange| match change {
            CallChange::Started { key, at, .. } => Some((*key, AuditEntry::ran as Noting, *at)),
            CallChange::Finished { key, at, .. } if ran(key) => Some((*key, AuditEntry::finished as Noting, *at)),
            CallChange::Unknown { key, at } if ran(key) => Some((*key, AuditEntry::unknown as Noting, *at)),
            CallChange::Planned(_) | CallChange::Finished { .. } | CallChange::Unknown { .. } => None,
        };
        changes.iter().filter_map(of_change).collect()
    }

    /// What the audit trail says of changes that were made.
    fn notes(&self, shown: Vec<(CallKey, Noting, i64)>) -> Vec<AuditEntry> {
        let note = |(key, noting, at): (CallKey, Noting, i64)| {
            let row = self.calls.get(&key).filter(|row| may_have_been_shown(row))?;
            let pause = self.pauses.iter().rev().find(|pause| pause.key == key)?;
            Some(noting(pause, row, at))
        };
        shown.into_iter().filter_map(note).collect()
    }

    /// Whether a person was asked, or can still read what was cut.
    fn asked(&self) -> bool {
        let cut = |call: &CallRow| call.result.as_ref().is_some_and(|result| result.full.is_some());
        !self.pauses.is_empty() || self.calls.values().any(cut)
    }
}
