//! Prompts of the answerer and the judges: versioned, hashed, ours.
//!
//! The answerer is told the question, what was recalled and, where there are any, the options: never the category, the
//! gold or the evidence. A judge may know the category and the gold. Whatever changes a prompt changes its hash; golden
//! tests hold every hash to its version.

pub mod answer;
pub mod judge;
pub mod verdict;

use std::collections::BTreeMap;

use bench_proto::ids::Sha256Hash;

/// What is sent to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Messages {
    /// Instructions: the same for every question of a kind.
    pub system: String,
    /// The question at hand.
    pub user: String,
}

/// Hashes of prompts, name → 64 hexadecimal characters, as the run spec keeps them.
pub type PromptHashes = BTreeMap<String, String>;

/// What prompts make of a fixed sample, name → messages.
type Samples = BTreeMap<String, Messages>;

/// All prompts of this build as text, by their hashes: what they make of a fixed sample.
#[must_use]
pub fn texts() -> BTreeMap<String, Messages> {
    answer::samples().into_values().chain(judge::samples().into_values()).map(|text| (hash(&text), text)).collect()
}

fn hashes(samples: Samples) -> PromptHashes {
    samples.into_iter().map(|(name, sample)| (name, hash(&sample))).collect()
}

/// Hash of a prompt, from what it makes of a fixed sample: instructions and layout are both in it.
fn hash(sample: &Messages) -> String {
    Sha256Hash::of(format!("{}\n\u{0}\n{}", sample.system, sample.user).as_bytes()).hex()
}
