//! Things that can be made again, kept as long as there is room: bounded by bytes, the one that was used longest ago goes first.

use std::{collections::HashMap, hash::Hash};

/// What is kept, each with its weight in bytes. The one that came last stays in any case, so that something larger than the bound is
/// not made again each time it is asked for.
#[derive(Debug)]
pub struct Kept<K, V> {
    max_bytes: u64,
    bytes: u64,
    /// Counts uses: the order in which things go.
    clock: u64,
    things: HashMap<K, Thing<V>>,
}

#[derive(Debug)]
struct Thing<V> {
    value: V,
    bytes: u64,
    last_used: u64,
}

impl<K: Clone + Eq + Hash, V> Kept<K, V> {
    /// An empty cache with room for `max_bytes`.
    #[must_use]
    pub fn new(max_bytes: u64) -> Self {
        Self { max_bytes, bytes: 0, clock: 0, things: HashMap::new() }
    }

    /// Number of things, and their bytes.
    #[must_use]
    pub fn size(&self) -> (usize, u64) {
        (self.things.len(), self.bytes)
    }

    /// Uses what is kept under a key.
    pub fn get(&mut self, key: &K) -> Option<&V> {
        self.clock += 1;
        let thing = self.things.get_mut(key)?;
        thing.last_used = self.clock;
        Some(&thing.value)
    }

    /// Keeps a thing, and returns what had to go for it: freeing it may take long, and who holds a lock does it later.
    #[must_use]
    pub fn keep(&mut self, key: K, value: V, bytes: u64) -> Vec<V> {
        let mut gone: Vec<V> = self.remove(&key).into_iter().collect();
        while self.bytes + bytes > self.max_bytes {
            // few are kept at a time, so a scan is cheaper than keeping an order
            let oldest = self.things.iter().min_by_key(|(_, thing)| thing.last_used).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { break };
            gone.extend(self.remove(&oldest));
        }
        self.clock += 1;
        self.bytes += bytes;
        self.things.insert(key, Thing { value, bytes, last_used: self.clock });
        gone
    }

    /// Takes a thing out.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let thing = self.things.remove(key)?;
        self.bytes -= thing.bytes;
        Some(thing.value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_larger_than_the_bound_is_kept_alone() {
        let mut kept = Kept::new(100);
        assert!(kept.keep("a", 1, 60).is_empty());
        assert!(kept.keep("b", 2, 40).is_empty());
        assert_eq!(kept.get(&"a"), Some(&1));
        assert_eq!(kept.keep("c", 3, 10), [2], "a was used later");
        assert_eq!(kept.keep("a", 4, 70), [1], "the same key holds one thing");
        assert_eq!(kept.size(), (2, 80));
        let mut gone = kept.keep("large", 5, 500);
        gone.sort_unstable();
        assert_eq!((gone, kept.size()), (vec![3, 4], (1, 500)));
        assert_eq!((kept.keep("d", 6, 1), kept.size()), (vec![5], (1, 1)));
    }

    proptest! {
        /// Whatever is kept and taken out, the bound holds unless one thing alone is larger.
        #[test]
        fn the_bound_holds(steps in proptest::collection::vec((0_u8..6, 0_u64..80, any::<bool>()), 0..60)) {
            let mut kept = Kept::new(100);
            for (key, bytes, out) in steps {
                if out {
                    let _ = kept.remove(&key);
                } else {
                    let _ = kept.keep(key, (), bytes);
                    prop_assert!(kept.get(&key).is_some());
                }
                let (things, held) = kept.size();
                prop_assert!(held <= 100 || things == 1);
                prop_assert_eq!(held, kept.things.values().map(|thing| thing.bytes).sum::<u64>());
            }
        }
    }
}
