//! Whether an answer abstains.

use super::text::{contains_any, trim};

/// The official LoCoMo phrases.
pub const LOCOMO_OFFICIAL: &[&str] = &["no information available", "not mentioned"];

/// The phrases of the Astrocyte harness: more permissive, with false positives and negatives of its own.
pub const ASTROCYTE: &[&str] = &[
    "no information available",
    "not mentioned",
    "no information",
    "not available",
    "not found",
    "not stated",
    "not specified",
    "not provided",
    "not discussed",
    "not indicated",
    "cannot find",
    "can't find",
    "don't have",
    "do not have",
    "unable to find",
    "no record",
    "nothing about",
    "not in the memor",
    "not in my memor",
    "not in the conversation",
    "not in the provided",
    "no mention",
    "isn't mentioned",
    "wasn't mentioned",
    "i don't know",
    "i do not know",
];

/// True when the answer is empty or contains, lower-cased, one of the dataset's abstention phrases (lower case).
#[must_use]
pub fn is_abstention<P: AsRef<str>>(answer: &str, phrases: &[P]) -> bool {
    trim(answer).is_empty() || contains_any(answer, phrases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_or_a_phrase() {
        for (answer, expected) in [
            ("", true),
            (" \n\u{a0}", true),
            ("There is NO information Available.", true),
            ("That was not mentioned", true),
            ("I do not know", false),
            ("7 May 2023", false),
        ] {
            assert_eq!(is_abstention(answer, LOCOMO_OFFICIAL), expected, "{answer:?}");
        }
        assert!(is_abstention("I do not know", &["i do not know".to_owned()]));
        assert!(!is_abstention("anything", &[] as &[&str]));
    }

    #[test]
    fn phrases_are_lower_case_and_the_official_ones_are_in_both_lists() {
        assert_eq!((LOCOMO_OFFICIAL.len(), ASTROCYTE.len()), (2, 26));
        assert!(ASTROCYTE.iter().all(|phrase| *phrase == phrase.to_lowercase()));
        assert!(LOCOMO_OFFICIAL.iter().all(|phrase| ASTROCYTE.contains(phrase)));
    }
}
