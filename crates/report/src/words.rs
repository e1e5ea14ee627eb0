//! Words of a report that a newcomer does not know, in a sentence each, said where they stand. docs/GLOSSARY.md has all of them.

/// What the banks of a sample are.
pub(crate) const BANK: &str = "A bank is everything that shares one memory, such as one conversation.";
/// What the first interval of a score is about,
pub(crate) const LIKE_THESE: &str =
    "Conversations like these: what to expect of other such conversations; whole banks count as drawn by chance.";
/// and the second.
pub(crate) const THIS_BENCHMARK: &str = "This benchmark: what to expect of all questions of the dataset.";
/// The strict score.
pub(crate) const STRICT: &str = "Strict: questions that failed or were not run count as 0.";
/// The phases in which the memory system works.
pub(crate) const RETAIN_AND_RECALL: &str =
    "Retain writes a bank into the memory system, recall searches it for a question.";
/// Recall as a metric of retrieval.
pub(crate) const RECALL_AT_K: &str = "Recall at k is the part of a question's evidence that is among the first k hits.";
