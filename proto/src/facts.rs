//! Question facts: the one row per question that aggregation reads, derived from its steps by a pure function.

mod conclude;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::conclude::conclude;
use crate::{
    call::{Usage, is_default},
    failure::Failure,
    ids::{Sha256Hash, TaskKey},
    panel::JudgedSample,
    step::Retrieval,
};

/// How a question ended. The four classes are disjoint and sum to the sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Has a score.
    Scored,
    /// Has a score too, but the answer is empty or abstains by the dataset's rule.
    Abstained,
    /// A call, the system or the judge failed after its retries, or the bank could not be retained.
    InfraError,
    /// The run ended before it.
    NotRun,
}

impl Outcome {
    /// The outcome's word in reports, the digest and the store.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scored => "scored",
            Self::Abstained => "abstained",
            Self::InfraError => "infra_error",
            Self::NotRun => "not_run",
        }
    }

    /// Whether a question that ended so has scores.
    #[must_use]
    pub const fn has_score(self) -> bool {
        matches!(self, Self::Scored | Self::Abstained)
    }
}

/// Times of a question in microseconds, per phase; waits apart. `None`: the phase did not happen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhaseTimes {
    /// When its first step started, microseconds since 1970.
    #[serde(skip_serializing_if = "is_default")]
    pub started_us: i64,
    /// Waiting in queues, summed over its tasks.
    #[serde(skip_serializing_if = "is_default")]
    pub queue_wait_us: u64,
    /// Waiting for pace, connection slots and retries: recall, answer and the slowest vote, as in `question_us`.
    #[serde(skip_serializing_if = "is_default")]
    pub rate_wait_us: u64,
    /// Inside calls to the memory system and the models: recall, answer and the slowest vote.
    #[serde(skip_serializing_if = "is_default")]
    pub provider_us: u64,
    /// Microseconds of recalling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recall_us: Option<u64>,
    /// Microseconds of answering.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_us: Option<u64>,
    /// Judge (longest vote of the slowest judge).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge_us: Option<u64>,
    /// Building what the recall rests on, where the question's own task did it; in no other figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build_us: Option<u64>,
    /// Waiting for another task that built the same; in no other figure.
    #[serde(skip_serializing_if = "is_default")]
    pub build_wait_us: u64,
    /// Operations of the run in flight at the memory system when the recall began, in its worker; 0: not noted.
    #[serde(skip_serializing_if = "is_default")]
    pub recall_in_flight: u32,
    /// Calls in flight when the answer was made, at whoever answers.
    #[serde(skip_serializing_if = "is_default")]
    pub answer_in_flight: u32,
    /// Calls in flight when the question was judged: the largest of its votes.
    #[serde(skip_serializing_if = "is_default")]
    pub judge_in_flight: u32,
    /// Sum of the phases: the question's own time, queue waits excluded.
    #[serde(skip_serializing_if = "is_default")]
    pub question_us: u64,
}

/// Usage of a question, per phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhaseUsage {
    /// Recall phase.
    #[serde(skip_serializing_if = "is_default")]
    pub recall: Usage,
    /// Answer phase.
    #[serde(skip_serializing_if = "is_default")]
    pub answer: Usage,
    /// Judge phase.
    #[serde(skip_serializing_if = "is_default")]
    pub judge: Usage,
}

/// Everything that aggregation needs of one question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuestionFacts {
    /// Key of its question task.
    pub task: TaskKey,
    /// The dataset's id.
    pub question_id: String,
    /// The dataset's id of its bank: the cluster of the statistics.
    pub bank_id: String,
    /// The dataset's kind of question.
    pub category: String,
    /// What it counts as beside its category, see [`crate::dataset::GoldRecord::facets`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facets: BTreeMap<String, String>,
    /// How it ended.
    pub outcome: Outcome,
    /// (metric, score in [0, 1]); empty for infra_error. Deterministic scorers first, in the run's order, then judges.
    pub scores: Vec<(String, f64)>,
    /// Ranks of the evidence; absent when nothing was recalled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retrieval: Option<Retrieval>,
    /// Number of hits; absent when nothing was recalled or it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hits: Option<u32>,
    /// Score that the system gave its best hit, on its own scale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top1_score: Option<f64>,
    /// The context was empty, and should not have been.
    #[serde(default, skip_serializing_if = "is_default")]
    pub empty_context: bool,
    /// Length of the context handed to the answerer, in bytes; absent when nothing was recalled or it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_bytes: Option<u64>,
    /// The votes of a judge are split, or two judges disagree about passing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub judge_in_doubt: bool,
    /// Why the answer ended, when not by itself with some text (`length`, `content_filter`, `refusal`, `empty`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
    /// See [`StepFacts::Scored`](crate::step::StepFacts::Scored).
    #[serde(default)]
    pub answer_hash: u64,
    /// Where its time went.
    #[serde(default, skip_serializing_if = "is_default")]
    pub times: PhaseTimes,
    /// What it used and cost, by phase.
    #[serde(default, skip_serializing_if = "is_default")]
    pub usage: PhaseUsage,
    /// Attempts over all steps.
    pub attempts: u32,
    /// Why it ended as infra_error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Why its trace is kept, when it is: decided by the process that ends it (P20).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Kept>,
}

/// Identity of a question, as the one who concludes it knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionIdentity {
    /// Key of its question task.
    pub task: TaskKey,
    /// The dataset's id.
    pub question_id: String,
    /// The dataset's id of its bank.
    pub bank_id: String,
    /// The dataset's kind of question.
    pub category: String,
    /// Values by facet, such as `difficulty` → `hard`.
    pub facets: BTreeMap<String, String>,
}

impl QuestionFacts {
    /// Facts of a question that ended so, of which nothing else is known: no scores, no recall, no times, no attempts.
    #[must_use]
    pub fn without_steps(identity: QuestionIdentity, outcome: Outcome) -> Self {
        let QuestionIdentity { task, question_id, bank_id, category, facets } = identity;
        Self {
            task,
            question_id,
            bank_id,
            category,
            facets,
            outcome,
            scores: Vec::new(),
            retrieval: None,
            hits: None,
            top1_score: None,
            empty_context: false,
            context_bytes: None,
            judge_in_doubt: false,
            finish: None,
            answer_hash: 0,
            times: PhaseTimes::default(),
            usage: PhaseUsage::default(),
            attempts: 0,
            failure: None,
            kept: None,
        }
    }

    /// Its score by a metric; none where it ended without one, or is not measured by it.
    #[must_use]
    pub fn score(&self, metric: &str) -> Option<f64> {
        let of_metric = self.scores.iter().find(|(name, _)| name == metric).map(|(_, score)| *score);
        of_metric.filter(|_| self.outcome.has_score())
    }
}

/// The judges of a run, as far as concluding needs them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JudgePlan {
    /// Metric name of each judge (`judge`, `judge-2`), by judge number. Its further metrics are behind a dot:
    /// `judge-2.hallucination`.
    pub metrics: Vec<String>,
    /// Votes per judge.
    pub votes: u32,
    /// Judges that grade a part of the questions.
    pub samples: Vec<JudgedSample>,
}

impl JudgePlan {
    /// Most votes of a question, of all judges together.
    #[must_use]
    pub fn most_votes(&self) -> u32 {
        self.votes.saturating_mul(u32::try_from(self.metrics.len()).unwrap_or(u32::MAX))
    }

    /// Numbers of the judges that grade a question.
    pub fn asked<'a>(&'a self, category: &'a str, question_id: &'a str) -> impl Iterator<Item = u32> + 'a {
        let judges = 0..u32::try_from(self.metrics.len()).unwrap_or(u32::MAX);
        judges.filter(move |judge| {
            let sample = self.samples.iter().find(|sample| sample.judge == *judge);
            sample.is_none_or(|sample| sample.holds(category, question_id))
        })
    }
}

/// Hash of an answer for [`StepFacts::Scored`](crate::step::StepFacts::Scored): the first 8 bytes of the sha256 of the trimmed,
/// lower-cased text as a big-endian number.
#[must_use]
pub fn answer_hash(answer: &str) -> u64 {
    let hash = Sha256Hash::of_bytes(answer.trim().to_lowercase().as_bytes());
    hash.0[..8].iter().fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

/// The metric of the judge at a place: `judge`, `judge-2`, …
#[must_use]
pub fn judge_metric(at: usize) -> String {
    if at == 0 { "judge".to_owned() } else { format!("judge-{}", at + 1) }
}

/// Name of a further metric of a judge: `judge.hallucination`.
#[must_use]
pub fn part_of_judge(judge: &str, part: &str) -> String {
    format!("{judge}.{part}")
}

/// Median, if there is anything; the mean of the middle two when their number is even.
#[must_use]
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len() % 2 == 1 { upper } else { f64::midpoint(values[middle - 1], upper) })
}

/// Why a trace is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    /// The question ended as an infrastructure error.
    Failed,
    /// It was slow by its own and the provider's time.
    Slow,
    /// Something of it had to be repeated; answers of 429 are waits, no repeats.
    Retried,
    /// The base rate fell on it.
    Sampled,
}

impl Kept {
    /// All reasons.
    pub const ALL: [Self; 4] = [Self::Failed, Self::Slow, Self::Retried, Self::Sampled];

    /// Its word in attributes and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Slow => "slow",
            Self::Retried => "retried",
            Self::Sampled => "sampled",
        }
    }
}
