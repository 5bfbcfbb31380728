//! A set of hashes that grows with a conversation: a request adds to it, and what it was at the end of a closed part of the
//! history is shared with all requests that go on from there.

use std::{collections::BTreeSet, sync::Arc};

/// The hashes of texts that were seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    new: BTreeSet<u64>,
    before: Option<Arc<Settled>>,
}

/// Sorted, and each at least twice as long as the next newer one: a look goes through few of them.
#[derive(Debug)]
struct Settled {
    hashes: Box<[u64]>,
    before: Option<Arc<Settled>>,
}

impl Seen {
    pub(super) fn has(&self, hash: u64) -> bool {
        let settled = std::iter::successors(self.before.as_deref(), |settled| settled.before.as_deref());
        self.new.contains(&hash) || settled.into_iter().any(|settled| settled.hashes.binary_search(&hash).is_ok())
    }

    /// Adds a hash; whether it is new.
    pub(super) fn insert(&mut self, hash: u64) -> bool {
        !self.has(hash) && self.new.insert(hash)
    }

    /// What was seen so far, to be shared.
    pub(super) fn settle(&mut self) -> Self {
        if !self.new.is_empty() {
            let mut hashes: Vec<u64> = std::mem::take(&mut self.new).into_iter().collect();
            while let Some(shorter) = self.before.take_if(|before| before.hashes.len() < 2 * hashes.len()) {
                hashes.extend_from_slice(&shorter.hashes);
                self.before.clone_from(&shorter.before);
            }
            hashes.sort_unstable();
            self.before = Some(Arc::new(Settled { hashes: hashes.into(), before: self.before.take() }));
        }
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_set_also_where_it_was_shared(steps in prop::collection::vec((0..200_u64, any::<bool>()), 0..200)) {
            let (mut seen, mut model, mut shared) = (Seen::default(), HashSet::new(), Vec::new());
            for (hash, settles) in steps {
                prop_assert_eq!(seen.insert(hash), model.insert(hash));
                if settles {
                    shared.push((seen.settle(), model.clone()));
                }
            }
            shared.push((seen, model));
            for (seen, model) in &shared {
                prop_assert!((0..200).all(|hash| seen.has(hash) == model.contains(&hash)));
                let lists = std::iter::successors(seen.before.as_deref(), |settled| settled.before.as_deref());
                prop_assert!(lists.count() <= 9);
            }
        }
    }
}
