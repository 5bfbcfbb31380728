//! The turns that are not over, in the order they began, found by conversation without a look at all others.

use std::collections::BTreeMap;

use crate::quick_hash::QuickMap;

#[derive(Debug, Default)]
pub(super) struct Live {
    turns: BTreeMap<u64, String>,
    /// Nearly always one.
    of: QuickMap<String, Vec<u64>>,
}

impl Live {
    pub(super) fn insert(&mut self, order: u64, turn: &str, conversation: &str) {
        if self.turns.insert(order, turn.to_owned()).is_none() {
            let of = self.of.entry(conversation.to_owned()).or_default();
            of.push(order);
            of.sort_unstable();
        }
    }

    /// Returns whether it was there.
    pub(super) fn remove(&mut self, order: u64, conversation: &str) -> bool {
        if self.turns.remove(&order).is_none() {
            return false;
        }
        if let Some(of) = self.of.get_mut(conversation) {
            of.retain(|known| *known != order);
            if of.is_empty() {
                self.of.remove(conversation);
            }
        }
        true
    }

    pub(super) fn has(&self, conversation: &str) -> bool {
        self.of.contains_key(conversation)
    }

    /// The ids, of a conversation or of all, oldest first.
    pub(super) fn ids(&self, conversation: Option<&str>) -> Vec<&str> {
        match conversation {
            None => self.turns.values().map(String::as_str).collect(),
            Some(conversation) => {
                let of = self.of.get(conversation).into_iter().flatten();
                of.filter_map(|order| self.turns.get(order)).map(String::as_str).collect()
            }
        }
    }
}
