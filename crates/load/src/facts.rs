//! Made-up memories: each has two words that no other memory has, and a word of its bank, so that whoever searched knows whether
//! the right one was found, and whether one of another bank came with it.

use std::collections::HashMap;

/// Most banks that have words of their own.
pub const MOST_BANKS: u32 = 1 << 12;
/// Most memories of a bank that have words of their own.
pub const MOST_MEMORIES: u32 = 1 << 20;

const CONSONANTS: &[u8; 16] = b"bdfghjklmnprstvz";
const VOWELS: &[u8; 4] = b"aeio";
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const COLOURS: [&str; 8] = ["green", "amber", "violet", "white", "copper", "scarlet", "grey", "turquoise"];
const THINGS: [&str; 8] = ["kettle", "ladder", "lantern", "compass", "violin", "anchor", "teapot", "barometer"];

/// A memory that was made up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// What is stored.
    pub text: String,
    /// What is asked for it: it shares one rare word with the text.
    pub query: String,
    /// A word that only its text has and its query has not: where it stands, the memory was found.
    pub sign: String,
}

/// The made-up memories of a seed.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    seed: u32,
}

impl Facts {
    /// Other seeds have other words.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { seed: (seed ^ (seed >> 32)) as u32 }
    }

    /// Memory number `index` of a bank; both count from 0.
    #[must_use]
    pub fn fact(self, bank: u32, index: u32) -> Fact {
        let number = ((bank % MOST_BANKS) << 20) | (index % MOST_MEMORIES);
        let (subject, sign) = (self.word(number, 'k'), self.word(number, 'x'));
        let place = self.bank_word(bank);
        let lot = scrambled(number ^ self.seed);
        let pick = |of: usize, shift: u32| (lot >> shift) as usize % of;
        let (day, colour, thing) = (DAYS[pick(7, 0)], COLOURS[pick(8, 8)], THINGS[pick(8, 16)]);
        Fact {
            text: format!(
                "In {place} the drawer {subject} holds the seal {sign}; it was put there on a {day}, beside the {colour} {thing}."
            ),
            query: format!("Which seal does the drawer {subject} hold?"),
            sign,
        }
    }

    /// The word that all memories of a bank have, and those of no other.
    #[must_use]
    pub fn bank_word(self, bank: u32) -> String {
        self.word(bank, 'n')
    }

    /// A word for a number: different numbers and endings have different words.
    fn word(self, number: u32, ending: char) -> String {
        let mut left = u64::from(scrambled(number ^ self.seed));
        let mut word = String::with_capacity(13);
        for _ in 0..6 {
            word.push(char::from(CONSONANTS[(left & 15) as usize]));
            word.push(char::from(VOWELS[(left >> 4 & 3) as usize]));
            left >>= 6;
        }
        word.push(ending);
        word
    }
}

/// Which banks a text is from, by the words of some banks.
#[derive(Debug, Clone, Default)]
pub struct BankWords(HashMap<String, u32>);

impl BankWords {
    /// Of the first banks.
    #[must_use]
    pub fn from_facts(facts: Facts, banks: u32) -> Self {
        Self((0..banks).map(|bank| (facts.bank_word(bank), bank)).collect())
    }

    /// Whether a text has the word of another bank than this one.
    #[must_use]
    pub fn is_foreign(&self, text: &str, bank: u32) -> bool {
        let mut words = text.split(|c: char| !c.is_alphanumeric());
        words.any(|word| self.0.get(word).is_some_and(|of| *of != bank))
    }
}

/// Another number for each number (the finalizer of MurmurHash3): neighbours get words that do not look alike.
const fn scrambled(mut number: u32) -> u32 {
    number ^= number >> 16;
    number = number.wrapping_mul(0x85eb_ca6b);
    number ^= number >> 13;
    number = number.wrapping_mul(0xc2b2_ae35);
    number ^ (number >> 16)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_memories_share_a_rare_word() {
        let facts = Facts::new(42);
        let mut words = HashSet::new();
        for bank in 0..40 {
            assert!(words.insert(facts.bank_word(bank)));
            for index in 0..2_000 {
                let Fact { text, query, sign } = facts.fact(bank, index);
                let subject = query.split(' ').nth(5).expect("the drawer's name");
                assert!(text.contains(&sign) && text.contains(subject) && !query.contains(&sign));
                assert!(words.insert(sign) && words.insert(subject.to_owned()), "{text}");
            }
        }
    }

    #[test]
    fn a_memory_of_another_bank_is_known_by_its_place() {
        let facts = Facts::new(1);
        let words = BankWords::from_facts(facts, 3);
        let text = facts.fact(2, 5).text;
        assert!(words.is_foreign(&text, 0) && !words.is_foreign(&text, 2));
        assert!(!words.is_foreign("nothing of any bank", 1));
    }

    #[test]
    fn memories_are_the_same_for_the_same_seed() {
        assert_eq!(Facts::new(9).fact(1, 2), Facts::new(9).fact(1, 2));
        assert_ne!(Facts::new(9).fact(1, 2), Facts::new(10).fact(1, 2));
    }
}
