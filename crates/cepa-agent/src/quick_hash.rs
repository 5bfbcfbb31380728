//! Maps by ids: hashed in a few instructions, with keys that nobody outside the process knows.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher, Hasher, RandomState},
    sync::OnceLock,
};

/// A map for the path of every turn.
pub(crate) type QuickMap<K, V> = HashMap<K, V, Quick>;
/// A set for the path of every turn.
pub(crate) type QuickSet<K> = HashSet<K, Quick>;

/// Multiplies words with a secret factor and folds the product: ids that were chosen to collide would have to be chosen
/// without knowing the keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quick {
    start: u64,
    factor: u64,
}

impl Default for Quick {
    fn default() -> Self {
        static KEYS: OnceLock<Quick> = OnceLock::new();
        // The standard library seeds a RandomState from the system's randomness.
        *KEYS.get_or_init(|| {
            let chance = RandomState::new();
            Self { start: chance.hash_one(0_u8), factor: chance.hash_one(1_u8) | 1 }
        })
    }
}

impl BuildHasher for Quick {
    type Hasher = QuickHasher;

    fn build_hasher(&self) -> QuickHasher {
        QuickHasher { state: self.start, factor: self.factor }
    }
}

/// See [`Quick`].
pub(crate) struct QuickHasher {
    state: u64,
    factor: u64,
}

impl QuickHasher {
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.state ^ word) * u128::from(self.factor);
        self.state = (product >> 64) as u64 ^ product as u64;
    }
}

impl Hasher for QuickHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.mix(u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            // Seven bytes at most; their number stands in the eighth.
            let rest = rest.iter().rev().fold(rest.len() as u64, |word, byte| word << 8 | u64::from(*byte));
            self.mix(rest);
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.mix(u64::from(byte));
    }

    fn finish(&self) -> u64 {
        self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_are_alike_are_spread() {
        let quick = Quick::default();
        let hashes = |ids: Vec<String>| ids.iter().map(|id| quick.hash_one(id.as_str())).collect::<Vec<u64>>();
        let counted = hashes((0..50_000).map(|n| format!("t1kq0abc{n:05}/u0")).collect());
        let padded = hashes((0..1_000).map(|n| "\0".repeat(n)).collect());
        let lengths = hashes((0..=u8::MAX).map(|n| char::from(n).to_string()).collect());
        for hashes in [counted, padded, lengths] {
            assert_eq!(hashes.iter().collect::<HashSet<_>>().len(), hashes.len(), "two have one hash");
            for shift in [0, 57] {
                // The bits that choose a bucket, and those that are compared in it.
                let mut buckets = [0_usize; 128];
                hashes.iter().for_each(|hash| buckets[(hash >> shift) as usize & 127] += 1);
                let most = buckets.iter().max().unwrap();
                assert!(*most <= 3 * hashes.len().div_ceil(128) + 8, "{most} of {} in one of 128", hashes.len());
            }
        }
    }
}
