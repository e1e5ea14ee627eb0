//! The generator's own random numbers: xoshiro256++ (Blackman and Vigna, 2019), seeded by sha256.
//!
//! Written here so that the output depends on this folder alone: random crates change what they draw between versions.

use sha2::{Digest, Sha256};

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub(crate) struct Rng([u64; 4]);

impl Rng {
    /// The stream of these words; other words give an unrelated one.
    pub(crate) fn new(words: &[&str]) -> Self {
        let mut hash = Sha256::new();
        for word in words {
            hash.update((word.len() as u64).to_le_bytes());
            hash.update(word.as_bytes());
        }
        let mut state = [0; 4];
        for (word, bytes) in state.iter_mut().zip(hash.finalize().as_slice().as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        Self(state)
    }

    fn next(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number below `end`; 0 when there is none. (The bias of 2⁻⁶⁴ · end does not matter here.)
    pub(crate) fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    /// True in `percent` of 100 cases.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of a list, which must not be empty: lists are constants of this folder.
    pub(crate) fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }

    /// One of a list of words.
    pub(crate) fn word(&mut self, list: &[&'static str]) -> &'static str {
        list[self.below(list.len())]
    }

    /// Brings a list into a random order (Fisher and Yates).
    pub(crate) fn shuffle<T>(&mut self, list: &mut [T]) {
        for end in (1..list.len()).rev() {
            list.swap(end, self.below(end + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_the_reference_numbers() {
        // first three numbers of the authors' C code for the state 1, 2, 3, 4
        let mut rng = Rng([1, 2, 3, 4]);
        assert_eq!([rng.next(), rng.next(), rng.next()], [41_943_041, 58_720_359, 3_588_806_011_781_223]);
    }

    #[test]
    fn stays_in_range_and_reaches_all() {
        let mut rng = Rng::new(&["test"]);
        let mut seen = [0; 7];
        for _ in 0..7000 {
            seen[rng.below(7)] += 1;
        }
        assert!(seen.iter().all(|count| (800..1200).contains(count)), "{seen:?}");
        let mut list: Vec<u8> = (0..50).collect();
        rng.shuffle(&mut list);
        assert_ne!(list, (0..50).collect::<Vec<u8>>());
        list.sort_unstable();
        assert_eq!(list, (0..50).collect::<Vec<u8>>());
    }

    #[test]
    fn words_are_kept_apart() {
        assert_ne!(Rng::new(&["ab", "c"]).next(), Rng::new(&["a", "bc"]).next());
    }
}
