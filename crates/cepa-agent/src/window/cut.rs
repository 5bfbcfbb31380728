//! Where a window begins: found by reading the conversation from its start, message by message, so that it depends on
//! nothing but the conversation, and moves only forward.

use std::{collections::VecDeque, sync::Arc};

use cepa_core::{Entry, History, Message};

use super::{Limit, tokens::Scale};

/// The cut of one conversation, as far as it was read.
///
/// A view begins at a user message; everything between two of them stays or goes as a whole. So no group is ever split,
/// and what follows the last user message is never cut. A message that answers no call weighs nothing by messages and a
/// call as much as its result, so that a damaged conversation is cut where the healed one would be.
#[derive(Clone, Debug, Default)]
pub(super) struct Cut {
    seen: usize,
    start: usize,
    /// How many messages had been read when the view last lost one.
    moved_at: usize,
    has_user: bool,
    /// System messages before the start, which stay in front of it.
    system: Vec<Arc<Entry>>,
    /// System messages behind the start, with their places.
    later_system: VecDeque<(usize, Arc<Entry>)>,
    /// User messages behind the start: their places, and the weight of what is before each.
    starts: VecDeque<(usize, u64)>,
    /// The weight of everything that was read but system messages, and of the part of it before the start.
    weight: u64,
    weight_before: u64,
    system_weight: u64,
    scale: Scale,
}

impl Cut {
    /// Reads on to the end of a history whose beginning was read before.
    pub(super) fn read(&mut self, history: &History, limit: &Limit) {
        history.iter_from(self.seen).for_each(|entry| self.push(entry, limit));
    }

    /// Reads one message.
    pub(super) fn push(&mut self, entry: &Arc<Entry>, limit: &Limit) {
        let (place, weight) = (self.seen, limit.weight(&entry.message));
        self.seen += 1;
        match &entry.message {
            Message::System(_) => {
                self.later_system.push_back((place, entry.clone()));
                self.system_weight = self.system_weight.saturating_add(weight);
            }
            Message::User(_) => {
                self.starts.push_back((place, self.weight));
                self.weight = self.weight.saturating_add(weight);
                if !std::mem::replace(&mut self.has_user, true) {
                    // What stands before the first user message is no beginning.
                    self.move_on();
                }
            }
            Message::Assistant(reply) => {
                if limit.is_estimate() {
                    self.scale.learn(reply, self.weight.saturating_add(self.system_weight));
                }
                self.weight = self.weight.saturating_add(weight);
            }
            Message::Tool(_) => self.weight = self.weight.saturating_add(weight),
        }
        if self.exceeds(limit.most(), 4) {
            while self.exceeds(limit.most(), 3) && self.move_on() {}
        }
    }

    /// Whether the view is larger than so many quarters of the limit.
    fn exceeds(&self, limit: u64, quarters: u64) -> bool {
        let kept = self.weight.saturating_sub(self.weight_before).saturating_add(self.system_weight);
        let (real, of) = self.scale.apply(kept);
        real.saturating_mul(4) > of.saturating_mul(u128::from(limit)).saturating_mul(u128::from(quarters))
    }

    /// Begins at the next user message; false if there is none.
    fn move_on(&mut self) -> bool {
        let Some((start, before)) = self.starts.pop_front() else { return false };
        let lost = self.lost();
        while let Some((_, system)) = self.later_system.pop_front_if(|(place, _)| *place < start) {
            self.system.push(system);
        }
        (self.start, self.weight_before) = (start, before);
        if self.lost() != lost {
            self.moved_at = self.seen;
            self.scale.was_cut();
        }
        true
    }

    /// How many messages the view does not show.
    fn lost(&self) -> usize {
        self.start - self.system.len()
    }

    /// How many messages were read.
    pub(super) fn seen(&self) -> usize {
        self.seen
    }

    /// How many messages had been read when the view last lost one: since then it has only grown.
    pub(super) fn moved_at(&self) -> usize {
        self.moved_at
    }

    /// What the window shows of a history that was read to its end.
    pub(super) fn view(&self, history: &History) -> History {
        if self.lost() == 0 {
            // The beginning of it may be known to be well paired.
            return history.clone();
        }
        self.system.iter().chain(history.iter_from(self.start)).cloned().collect()
    }
}
