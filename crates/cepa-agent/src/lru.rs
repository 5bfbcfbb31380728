//! A map that holds a bounded weight and forgets what was used longest ago.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// See the module.
#[derive(Debug)]
pub(crate) struct Lru<V> {
    kept: HashMap<Arc<str>, Kept<V>>,
    /// Keys by when they were last used.
    order: BTreeMap<u64, Arc<str>>,
    uses: u64,
    weight: usize,
    max: usize,
}

#[derive(Debug)]
struct Kept<V> {
    value: V,
    weight: usize,
    used: u64,
}

impl<V> Lru<V> {
    /// An empty map that holds this weight at most.
    pub(crate) fn new(max: usize) -> Self {
        Self { kept: HashMap::new(), order: BTreeMap::new(), uses: 0, weight: 0, max }
    }

    /// The value of a key, which is used by this.
    pub(crate) fn get(&mut self, key: &str) -> Option<&V> {
        let kept = self.kept.get_mut(key)?;
        self.uses += 1;
        if let Some(key) = self.order.remove(&kept.used) {
            self.order.insert(self.uses, key);
        }
        kept.used = self.uses;
        Some(&kept.value)
    }

    /// Puts a value in place of what its key had, and forgets others until everything fits. A value that is too heavy
    /// by itself is not kept.
    pub(crate) fn insert(&mut self, key: &str, value: V, weight: usize) {
        self.remove(key);
        if weight > self.max {
            return;
        }
        while self.weight.saturating_add(weight) > self.max
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.weight -= self.kept.remove(&oldest).map_or(0, |kept| kept.weight);
        }
        self.uses += 1;
        self.weight += weight;
        let key: Arc<str> = key.into();
        self.order.insert(self.uses, key.clone());
        self.kept.insert(key, Kept { value, weight, used: self.uses });
    }

    /// Forgets a key.
    pub(crate) fn remove(&mut self, key: &str) -> Option<V> {
        let kept = self.kept.remove(key)?;
        self.order.remove(&kept.used);
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
