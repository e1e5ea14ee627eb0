//! Question facts: the one row per question that aggregation reads, derived from its steps by a pure function.

use serde::{Deserialize, Serialize};

use crate::{
    call::{Usage, is_default},
    failure::Failure,
    ids::{Sha256Hash, TaskKey, TaskKind},
    step::{Retrieval, StepFacts, StepNo, StoredStep, Timing},
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
    /// Recall.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recall_us: Option<u64>,
    /// Answer.
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
    /// The same of the answer, at whoever answers.
    #[serde(skip_serializing_if = "is_default")]
    pub answer_in_flight: u32,
    /// The same of the judgement: the largest of its votes.
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
    /// Its task.
    pub task: TaskKey,
    /// The dataset's id.
    pub question_id: String,
    /// The dataset's id of its bank: the cluster of the statistics.
    pub bank_id: String,
    /// Its category.
    pub category: String,
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
    /// The answerer had an empty context.
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
    /// See [`StepFacts::Scored`].
    #[serde(default)]
    pub answer_hash: u64,
    /// Times.
    #[serde(default, skip_serializing_if = "is_default")]
    pub times: PhaseTimes,
    /// Usage.
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
    /// Its task.
    pub task: TaskKey,
    /// The dataset's id.
    pub question_id: String,
    /// The dataset's id of its bank.
    pub bank_id: String,
    /// Its category.
    pub category: String,
}

/// The judges of a run, as far as concluding needs them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgePlan {
    /// Metric name of each judge (`judge`, `judge-2`), by judge number.
    pub metrics: Vec<String>,
    /// Votes per judge.
    pub votes: u32,
}

/// Derives a question's facts from its stored steps (its own and those of its judge tasks, in any order).
///
/// The grade of a judge with several votes is their median; votes that failed are missing, and a judge without any vote
/// makes the question an `infra_error`. Returns `None` while a step is missing and nothing has failed.
#[must_use]
pub fn conclude(identity: QuestionIdentity, steps: &[StoredStep], judges: &JudgePlan) -> Option<QuestionFacts> {
    let mut gathered = Gathered::new(identity, judges);
    for stored in steps {
        gathered.see(stored);
    }
    let own_failure = steps.iter().any(|s| s.task == gathered.facts.task && s.step == StepNo::FAILED);
    let is_complete = gathered.scored && gathered.votes_missing == 0;
    (own_failure || is_complete).then(|| gathered.end(own_failure, judges))
}

/// What the steps of a question say, as far as they have been looked at.
struct Gathered {
    facts: QuestionFacts,
    scored: bool,
    /// Grades of each judge.
    votes: Vec<Vec<f64>>,
    votes_missing: usize,
    /// Of the vote that took longest: all of its time, the provider's part, and the wait for pace.
    slowest_vote: (u64, u64, u64),
}

impl Gathered {
    fn new(identity: QuestionIdentity, judges: &JudgePlan) -> Self {
        let facts = QuestionFacts {
            task: identity.task,
            question_id: identity.question_id,
            bank_id: identity.bank_id,
            category: identity.category,
            outcome: Outcome::Scored,
            scores: Vec::new(),
            retrieval: None,
            hits: None,
            top1_score: None,
            empty_context: false,
            context_bytes: None,
            judge_in_doubt: false,
            finish: None,
            answer_hash: 0,
            times: PhaseTimes { started_us: i64::MAX, ..PhaseTimes::default() },
            usage: PhaseUsage::default(),
            attempts: 0,
            failure: None,
            kept: None,
        };
        Self {
            facts,
            scored: false,
            votes: vec![Vec::new(); judges.metrics.len()],
            votes_missing: judges.metrics.len() * judges.votes as usize,
            slowest_vote: (0, 0, 0),
        }
    }

    fn see(&mut self, stored: &StoredStep) {
        let (facts, of_judge) = (&mut self.facts, stored.task.kind() == TaskKind::Judge);
        match &stored.facts {
            StepFacts::Recalled { retrieval, hits, top1_score, context_bytes, usage, timing, .. } => {
                facts.retrieval = Some(retrieval.clone());
                facts.hits = Some(*hits);
                facts.top1_score = *top1_score;
                facts.empty_context = *context_bytes == 0;
                facts.context_bytes = Some(*context_bytes);
                facts.usage.recall += *usage;
                facts.times.recall_us = Some(timing.operation_us());
                facts.times.build_us = (timing.build_us > 0).then_some(timing.build_us);
                facts.times.build_wait_us = timing.build_wait_us;
                facts.times.recall_in_flight = timing.in_flight;
                facts.times.provider_us += timing.provider_us;
                self.took(timing, of_judge);
            }
            StepFacts::Answered { finish, usage, timing } => {
                facts.finish = (finish != "stop").then(|| finish.clone());
                facts.usage.answer += *usage;
                facts.times.answer_us = Some(timing.total_us);
                facts.times.answer_in_flight = timing.in_flight;
                facts.times.provider_us += timing.provider_us;
                self.took(timing, of_judge);
            }
            StepFacts::Scored { scores, abstained, answer_hash } => {
                self.scored = true;
                facts.scores.clone_from(scores);
                facts.answer_hash = *answer_hash;
                if *abstained {
                    facts.outcome = Outcome::Abstained;
                }
            }
            StepFacts::Judged { score, usage, timing } => {
                if let Some(of_this_judge) = self.votes.get_mut(stored.task.judge_no() as usize) {
                    of_this_judge.push(*score);
                    self.votes_missing = self.votes_missing.saturating_sub(1);
                }
                facts.usage.judge += *usage;
                facts.times.judge_us = facts.times.judge_us.max(Some(timing.total_us));
                facts.times.judge_in_flight = facts.times.judge_in_flight.max(timing.in_flight);
                self.slowest_vote = self.slowest_vote.max((timing.total_us, timing.provider_us, timing.rate_wait_us));
                self.took(timing, of_judge);
            }
            StepFacts::Failed { failure, usage, timing } => {
                if of_judge {
                    self.votes_missing = self.votes_missing.saturating_sub(1);
                    facts.usage.judge += *usage;
                } else {
                    facts.usage.answer += *usage;
                }
                // the question's own failure outranks a judge's; among judges the first in key order stays
                if facts.failure.is_none() || !of_judge {
                    facts.failure = Some(failure.clone());
                }
                self.took(timing, of_judge);
            }
            StepFacts::Retained { .. }
            | StepFacts::Consolidated { .. }
            | StepFacts::Ready { .. }
            | StepFacts::Probed(_) => {}
        }
    }

    fn took(&mut self, timing: &Timing, of_judge: bool) {
        let facts = &mut self.facts;
        facts.times.started_us = facts.times.started_us.min(timing.started_us);
        facts.times.queue_wait_us += timing.queue_wait_us;
        // votes are cast at the same time: what all of them waited is more than the question took
        if !of_judge {
            facts.times.rate_wait_us += timing.rate_wait_us;
        }
        facts.attempts += timing.attempts;
    }

    /// The facts, when nothing is missing or the question itself has failed.
    fn end(self, own_failure: bool, judges: &JudgePlan) -> QuestionFacts {
        let Self { mut facts, mut votes, slowest_vote, .. } = self;
        if own_failure || votes.iter().any(Vec::is_empty) {
            facts.outcome = Outcome::InfraError;
            facts.scores.clear();
        } else {
            facts.failure = None;
            facts.judge_in_doubt = in_doubt(&votes);
            for (metric, of_this_judge) in judges.metrics.iter().zip(&mut votes) {
                facts.scores.push((metric.clone(), median(of_this_judge)));
            }
        }
        let times = &mut facts.times;
        if times.started_us == i64::MAX {
            times.started_us = 0;
        }
        times.provider_us += slowest_vote.1;
        times.rate_wait_us += slowest_vote.2;
        times.question_us = [times.recall_us, times.answer_us, times.judge_us].into_iter().flatten().sum();
        facts
    }
}

/// Whether judges leave a doubt: any two votes, of one judge or of several, lie on different sides of one half.
fn in_doubt(votes: &[Vec<f64>]) -> bool {
    let mut passes = votes.iter().flatten().map(|score| *score >= 0.5);
    let first = passes.next();
    passes.any(|pass| Some(pass) != first)
}

/// Hash of an answer for [`StepFacts::Scored`]: the first 8 bytes of the sha256 of the trimmed, lower-cased text as a
/// big-endian number.
#[must_use]
pub fn answer_hash(answer: &str) -> u64 {
    let hash = Sha256Hash::of(answer.trim().to_lowercase().as_bytes());
    hash.0[..8].iter().fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

/// Median of a non-empty list; the mean of the middle two when their number is even.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> QuestionIdentity {
        QuestionIdentity {
            task: TaskKey::question(3, 7),
            question_id: "b:7".into(),
            bank_id: "b".into(),
            category: "single-hop".into(),
        }
    }

    fn step(task: TaskKey, step: StepNo, facts: StepFacts) -> StoredStep {
        StoredStep { task, step, facts }
    }

    fn scored(abstained: bool) -> StoredStep {
        let facts = StepFacts::Scored { scores: vec![("locomo-f1".into(), 0.5)], abstained, answer_hash: 1 };
        step(TaskKey::question(3, 7), StepNo::SCORE, facts)
    }

    fn vote(vote: u32, score: f64) -> StoredStep {
        let facts =
            StepFacts::Judged { score, usage: Usage::default(), timing: Timing { attempts: 1, ..Timing::default() } };
        step(TaskKey::judge(3, 7, 0, vote), StepNo::JUDGE, facts)
    }

    fn failed(task: TaskKey) -> StoredStep {
        let facts = StepFacts::Failed {
            failure: Failure::transient("timeout", "no reply"),
            usage: Usage::default(),
            timing: Timing::default(),
        };
        step(task, StepNo::FAILED, facts)
    }

    #[test]
    fn a_question_without_judges_ends_with_its_scores() {
        let none = JudgePlan { metrics: vec![], votes: 0 };
        assert_eq!(conclude(identity(), &[], &none), None);
        let facts = conclude(identity(), &[scored(true)], &none).expect("is complete");
        assert_eq!(facts.outcome, Outcome::Abstained);
        assert_eq!(facts.scores, vec![("locomo-f1".to_owned(), 0.5)]);
    }

    #[test]
    fn votes_are_reduced_to_their_median_and_failed_votes_are_missing() {
        let judges = JudgePlan { metrics: vec!["judge".into()], votes: 3 };
        assert_eq!(
            conclude(identity(), &[scored(false), vote(0, 1.0), vote(1, 0.0)], &judges),
            None,
            "a vote is missing"
        );
        let facts = conclude(identity(), &[scored(false), vote(0, 1.0), vote(1, 0.0), vote(2, 1.0)], &judges)
            .expect("is complete");
        assert_eq!(facts.scores.last(), Some(&("judge".to_owned(), 1.0)));
        let with_failure = [scored(false), vote(0, 1.0), failed(TaskKey::judge(3, 7, 0, 1)), vote(2, 1.0)];
        assert!(facts.judge_in_doubt, "one vote of three disagrees");
        let facts = conclude(identity(), &with_failure, &judges).expect("is complete");
        assert_eq!((facts.outcome, facts.failure, facts.judge_in_doubt), (Outcome::Scored, None, false));
    }

    #[test]
    fn a_judge_without_any_vote_is_an_infrastructure_error() {
        let judges = JudgePlan { metrics: vec!["judge".into()], votes: 1 };
        let facts =
            conclude(identity(), &[scored(false), failed(TaskKey::judge(3, 7, 0, 0))], &judges).expect("is complete");
        assert_eq!(facts.outcome, Outcome::InfraError);
        assert!(facts.scores.is_empty(), "no score may be invented");
        assert_eq!(facts.failure.expect("has a reason").code, "timeout");
    }

    #[test]
    fn answers_are_equal_up_to_case_and_margins() {
        assert_eq!(answer_hash(" Paris\n"), answer_hash("paris"));
        assert_ne!(answer_hash("Paris"), answer_hash("Lyon"));
    }

    #[test]
    fn an_own_failure_ends_the_question_at_once() {
        let judges = JudgePlan { metrics: vec!["judge".into()], votes: 1 };
        let facts = conclude(identity(), &[failed(TaskKey::question(3, 7))], &judges).expect("is complete");
        assert_eq!(facts.outcome, Outcome::InfraError);
    }

    #[test]
    fn p43_building_is_no_part_of_a_recall() {
        let timing = Timing { total_us: 100, build_us: 60, build_wait_us: 30, in_flight: 4, ..Timing::default() };
        let recalled = StepFacts::Recalled {
            generation: 1,
            hits: 0,
            effective_k: 10,
            context_bytes: 0,
            top1_score: None,
            retrieval: Default::default(),
            usage: Usage::default(),
            timing,
        };
        let steps = [step(TaskKey::question(3, 7), StepNo::RECALL, recalled), scored(false)];
        let none = JudgePlan { metrics: vec![], votes: 0 };
        let times = conclude(identity(), &steps, &none).expect("is complete").times;
        assert_eq!((times.recall_us, times.build_us, times.build_wait_us), (Some(10), Some(60), 30));
        assert_eq!((times.question_us, times.recall_in_flight), (10, 4));
    }

    #[test]
    fn provider_time_and_waits_are_those_of_the_answer_and_the_slowest_vote() {
        let judges = JudgePlan { metrics: vec!["judge".into()], votes: 2 };
        let timing = |total_us, provider_us| {
            let rate_wait_us = total_us - provider_us;
            Timing { total_us, provider_us, rate_wait_us, ..Timing::default() }
        };
        let answered = StepFacts::Answered { finish: "stop".into(), usage: Usage::default(), timing: timing(100, 90) };
        let judged = |no, timing| {
            let facts = StepFacts::Judged { score: 1.0, usage: Usage::default(), timing };
            step(TaskKey::judge(3, 7, 0, no), StepNo::JUDGE, facts)
        };
        let steps = [
            step(TaskKey::question(3, 7), StepNo::ANSWER, answered),
            scored(false),
            judged(0, timing(50, 40)),
            judged(1, timing(70, 30)),
        ];
        let times = conclude(identity(), &steps, &judges).expect("is complete").times;
        assert_eq!((times.provider_us, times.rate_wait_us, times.question_us), (120, 50, 170));
    }
}
