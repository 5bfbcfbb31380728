//! A map that holds a bounded weight and forgets what was used longest ago.

use std::{collections::BTreeMap, sync::Arc};

use crate::quick_hash::QuickMap;

/// See the module.
#[derive(Debug)]
pub(crate) struct Lru<V> {
    kept: QuickMap<Arc<str>, Kept<V>>,
    /// Keys by a use of theirs, mostly not the last: a use is only noted, and looked up when room is made.
    order: BTreeMap<u64, Arc<str>>,
    uses: u64,
    weight: usize,
    max: usize,
}

#[derive(Debug)]
struct Kept<V> {
    value: V,
    weight: usize,
    /// When it was last used.
    used: u64,
    /// Its place in the order.
    placed: u64,
}

impl<V> Lru<V> {
    /// An empty map that holds this weight at most, or the value that was used last if that alone is heavier; nothing if
    /// it is 0.
    pub(crate) fn new(max: usize) -> Self {
        Self { kept: QuickMap::default(), order: BTreeMap::new(), uses: 0, weight: 0, max }
    }

    /// The value of a key, which is used by this.
    pub(crate) fn get(&mut self, key: &str) -> Option<&V> {
        self.get_mut(key).map(|value| &*value)
    }

    /// The value of a key, to be changed. If that makes it heavier, [`Lru::weigh`] it.
    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut V> {
        let kept = self.kept.get_mut(key)?;
        self.uses += 1;
        kept.used = self.uses;
        Some(&mut kept.value)
    }

    /// Puts a value in place of what its key had, and forgets others until everything fits.
    pub(crate) fn insert(&mut self, key: &str, value: V, weight: usize) {
        if let Some(known) = self.get_mut(key) {
            *known = value;
            return self.weigh(key, weight);
        }
        self.uses += 1;
        self.weight = self.weight.saturating_add(weight);
        let key: Arc<str> = key.into();
        self.order.insert(self.uses, key.clone());
        self.kept.insert(key, Kept { value, weight, used: self.uses, placed: self.uses });
        self.make_room();
    }

    /// Says what a value weighs by now.
    pub(crate) fn weigh(&mut self, key: &str, weight: usize) {
        if let Some(kept) = self.kept.get_mut(key) {
            self.weight = self.weight.saturating_sub(kept.weight).saturating_add(weight);
            kept.weight = weight;
            self.make_room();
        }
    }

    fn make_room(&mut self) {
        // Who comes back to a value that is too heavy would otherwise make it anew each time.
        while self.weight > self.max
            && (self.kept.len() > 1 || self.max == 0)
            && let Some((placed, key)) = self.order.pop_first()
        {
            let Some(kept) = self.kept.get_mut(&key) else { continue };
            if kept.used == placed {
                self.weight -= kept.weight;
                self.kept.remove(&key);
            } else {
                kept.placed = kept.used;
                self.order.insert(kept.used, key);
            }
        }
    }

    /// Forgets a key.
    pub(crate) fn remove(&mut self, key: &str) -> Option<V> {
        let kept = self.kept.remove(key)?;
        self.order.remove(&kept.placed);
        self.weight -= kept.weight;
        Some(kept.value)
    }

    /// What everything that is held weighs.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }
}

#[cfg(test)]
#[path = "lru_tests.rs"]
mod tests;
