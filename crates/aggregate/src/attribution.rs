//! Where a failed question lost: before the answerer (the evidence was not among the hits) or after.

use bench_proto::{
    facts::{Outcome, QuestionFacts},
    summary::FailureAttribution,
};

/// Where a failed question lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attribution {
    /// No evidence among the hits.
    EvidenceMissing,
    /// Some of it.
    EvidencePartial,
    /// All of it: the answer failed.
    EvidenceFound,
    /// The dataset names no evidence, or nothing was recalled.
    NoGroundTruth,
}

impl Attribution {
    /// Its word in `questions.jsonl`; the key in `failure_attribution`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::EvidenceMissing => "evidence_missing",
            Self::EvidencePartial => "evidence_partial",
            Self::EvidenceFound => "evidence_found",
            Self::NoGroundTruth => "no_ground_truth",
        }
    }

    pub(crate) fn count(self, counts: &mut FailureAttribution) {
        match self {
            Self::EvidenceMissing => counts.evidence_missing += 1,
            Self::EvidencePartial => counts.evidence_partial += 1,
            Self::EvidenceFound => counts.evidence_found += 1,
            Self::NoGroundTruth => counts.no_ground_truth += 1,
        }
    }
}

/// Attributes a question that has a score below `pass_threshold` by `metric`; `None` for every other.
///
/// Evidence is looked for at the level of turns, or of sessions where the dataset names only these.
#[must_use]
pub fn attribute(facts: &QuestionFacts, metric: &str, pass_threshold: f64) -> Option<Attribution> {
    if !matches!(facts.outcome, Outcome::Scored | Outcome::Abstained) {
        return None;
    }
    let (_, score) = facts.scores.iter().find(|(name, _)| name == metric)?;
    if *score >= pass_threshold {
        return None;
    }
    let levels = facts.retrieval.iter().flat_map(|retrieval| [&retrieval.turn, &retrieval.session]);
    let Some(hits) = levels.into_iter().find(|hits| hits.gold > 0) else {
        return Some(Attribution::NoGroundTruth);
    };
    Some(match hits.ranks.len() {
        0 => Attribution::EvidenceMissing,
        found if found < hits.gold as usize => Attribution::EvidencePartial,
        _ => Attribution::EvidenceFound,
    })
}
