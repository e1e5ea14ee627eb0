//! Words of a report that a newcomer does not know, in a sentence each, said where they stand. docs/GLOSSARY.md has all of them.

use bench_proto::{
    metric::{Better, Scale},
    summary::Summary,
};

/// What the banks of a sample are.
pub(crate) const BANK: &str = "A bank is everything that shares one memory, such as one conversation.";
/// What the first interval of a score is about.
pub(crate) const LIKE_THESE: &str =
    "Conversations like these: what to expect of other such conversations; whole banks count as drawn by chance.";
/// What the second interval of a score is about.
pub(crate) const THIS_BENCHMARK: &str = "This benchmark: what to expect of all questions of the dataset.";
/// What the second interval of repeats is about.
pub(crate) const NEW_DRAWS: &str =
    "This benchmark, new draws: what to expect of the same questions when models answer and judge anew.";
/// What there is to know of equal runs: that nothing differs is certain of these questions, and the figures are about others.
pub(crate) const EQUAL_RUNS: &str = "the runs are equal (equal digests): every question ended alike in both, with the same scores, so \
                                     there is no difference to decide; words and intervals beside the figures say what so many equal questions leave open of others";
/// Where it is shown that intervals hold what they say.
pub(crate) const HOW_OFTEN: &str = concat!(
    "How often these intervals hold: ",
    env!("CARGO_PKG_REPOSITORY"),
    "/blob/main/docs/STATISTICS.md#how-often-the-intervals-hold"
);
/// What the design of `fair` does to a score (docs/adr/0064).
pub(crate) const EQUAL_QUOTAS: &str = concat!(
    "Sample note: fair takes as many questions of each category of a conversation, whatever their sizes. On published grades of LoCoMo \
     it is 0.27 points too low to 0.32 points too high on average, which the intervals do not hold; fair-2 is off by 0.21 at most: ",
    env!("CARGO_PKG_REPOSITORY"),
    "/blob/main/docs/STATISTICS.md#samples"
);
/// The strict score of metrics of which more is better.
const STRICT: &str = "Strict: questions that failed or were not run count as 0.";
/// The strict score of metrics of which less is better.
const STRICT_LOWER: &str = "Strict: questions that failed or were not run count as 1.";
/// The phases in which the memory system works.
pub(crate) const RETAIN_AND_RECALL: &str =
    "Retain writes a bank into the memory system, recall searches it for a question.";
/// Recall as a metric of retrieval.
pub(crate) const RECALL_AT_K: &str = "Recall at k is the part of a question's evidence that is among the first k hits.";

/// What is said of questions of which no evidence could be looked for: of answers from elsewhere some do not say what was recalled.
pub(crate) fn without_evidence(summary: &Summary) -> &'static str {
    match summary.spec.is_imported() {
        true => "name no evidence or do not say what was recalled",
        false => "name no evidence",
    }
}

/// What the strict score is.
pub(crate) fn strict(better: Better) -> &'static str {
    match better {
        Better::Higher => STRICT,
        Better::Lower => STRICT_LOWER,
    }
}

/// The words of the page for a screen, on one of its lines.
pub(crate) fn on_one_line(better: Better, is_recall_timed: bool) -> String {
    let failed = match better {
        Better::Higher => 0,
        Better::Lower => 1,
    };
    let recall = if is_recall_timed { "; recall: a search" } else { "" };
    format!("bank: what shares a memory; strict: failed and not run are {failed}{recall}")
}

/// ` (lower is better)`, where it is.
pub(crate) fn direction(better: Better) -> &'static str {
    match better {
        Better::Higher => "",
        Better::Lower => " (lower is better)",
    }
}

/// `≥ 0.5`: which scores pass.
pub(crate) fn passing(scale: Scale) -> String {
    let sign = match (scale.better, scale.beyond) {
        (Better::Higher, false) => "≥",
        (Better::Higher, true) => ">",
        (Better::Lower, false) => "≤",
        (Better::Lower, true) => "<",
    };
    format!("{sign} {}", scale.threshold)
}

/// `from 0.5`: the same in a sentence.
pub(crate) fn passing_from(scale: Scale) -> String {
    let word = match (scale.better, scale.beyond) {
        (Better::Higher, false) => "from",
        (Better::Higher, true) => "above",
        (Better::Lower, false) => "up to",
        (Better::Lower, true) => "below",
    };
    format!("{word} {}", scale.threshold)
}
