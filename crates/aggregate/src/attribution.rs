//! Where a failed question lost: before the answerer (the evidence was not among the hits) or after. Where the recall itself is
//! graded there is no after.

use bench_proto::{
    facts::QuestionFacts,
    metric::Scale,
    summary::{FailureAttribution, PassCount, RecallAnswer},
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
    /// All of it, and the recall is what is graded: too far down the list, or beside what must not be there.
    RecallFailed,
    /// The dataset names no evidence, or nothing was recalled.
    NoGroundTruth,
    /// What is missing among the hits was never retained.
    NotRetained,
    /// Judges or votes disagree about the answer.
    JudgeInDoubt,
}

impl Attribution {
    /// Its word in `questions.jsonl`; the key in `failure_attribution`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::EvidenceMissing => "evidence_missing",
            Self::EvidencePartial => "evidence_partial",
            Self::EvidenceFound => "evidence_found",
            Self::RecallFailed => "recall_failed",
            Self::NoGroundTruth => "no_ground_truth",
            Self::NotRetained => "not_retained",
            Self::JudgeInDoubt => "judge_in_doubt",
        }
    }

    pub(crate) fn count(self, counts: &mut FailureAttribution) {
        match self {
            Self::EvidenceMissing => counts.evidence_missing += 1,
            Self::EvidencePartial => counts.evidence_partial += 1,
            Self::EvidenceFound => counts.evidence_found += 1,
            Self::RecallFailed => counts.recall_failed += 1,
            Self::NoGroundTruth => counts.no_ground_truth += 1,
            Self::NotRetained => counts.not_retained += 1,
            Self::JudgeInDoubt => counts.judge_in_doubt += 1,
        }
    }

    /// The row of the cross table that a question with this evidence belongs to.
    fn row(self, table: &mut RecallAnswer) -> &mut PassCount {
        match self {
            Self::EvidenceFound | Self::RecallFailed => &mut table.evidence_found,
            Self::EvidencePartial => &mut table.evidence_partial,
            Self::EvidenceMissing | Self::NotRetained => &mut table.evidence_missing,
            Self::NoGroundTruth | Self::JudgeInDoubt => &mut table.no_ground_truth,
        }
    }
}

/// Attributes a question that has a score by `metric` and did not pass; `None` for every other.
///
/// A doubtful judgement outranks the evidence. Evidence is looked for at the level of turns, or of sessions where the dataset
/// names only these. `of_recalls`: what the metric grades is the recall ([`bench_proto::spec::RunSpec::grades_recalls`]).
#[must_use]
pub fn attribute(facts: &QuestionFacts, metric: &str, scale: Scale, of_recalls: bool) -> Option<Attribution> {
    if passed(facts, metric, scale)? {
        return None;
    }
    if facts.judge_in_doubt {
        return Some(Attribution::JudgeInDoubt);
    }
    match evidence(facts) {
        Attribution::EvidenceFound if of_recalls => Some(Attribution::RecallFailed),
        other => Some(other),
    }
}

/// What recall had found for a question that has a score by `metric` and did not pass; `None` for every other.
pub(crate) fn wrong(facts: &QuestionFacts, metric: &str, scale: Scale) -> Option<Attribution> {
    (!passed(facts, metric, scale)?).then(|| evidence(facts))
}

/// Counts a question with a score in the cross table of recall and answer.
pub(crate) fn cross(facts: &QuestionFacts, metric: &str, scale: Scale, table: &mut RecallAnswer) {
    let Some(passed) = passed(facts, metric, scale) else { return };
    let count = evidence(facts).row(table);
    if passed {
        count.passed += 1;
    } else {
        count.failed += 1;
    }
}

fn passed(facts: &QuestionFacts, metric: &str, scale: Scale) -> Option<bool> {
    facts.score(metric).map(|score| scale.passes(score))
}

/// What recall had found.
fn evidence(facts: &QuestionFacts) -> Attribution {
    let levels = facts.retrieval.iter().flat_map(|retrieval| [&retrieval.turn, &retrieval.session]);
    let Some(hits) = levels.into_iter().find(|hits| hits.gold > 0) else {
        return Attribution::NoGroundTruth;
    };
    let unretained = facts.retrieval.as_ref().map_or(0, |retrieval| retrieval.unretained as usize);
    match hits.ranks.len() {
        found if found >= hits.gold as usize => Attribution::EvidenceFound,
        found if unretained > 0 && found + unretained >= hits.gold as usize => Attribution::NotRetained,
        0 => Attribution::EvidenceMissing,
        _ => Attribution::EvidencePartial,
    }
}
