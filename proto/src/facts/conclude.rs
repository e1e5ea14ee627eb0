//! From the stored steps of a question to its facts: a pure function, whatever their order.

use std::collections::BTreeMap;

use super::{JudgePlan, Outcome, PhaseTimes, QuestionFacts, QuestionIdentity, median, part_of_judge};
use crate::{
    call::{Phase, Usage},
    ids::{TaskKey, TaskKind},
    metric::Scale,
    step::{StepFacts, StepNo, StoredStep, Timing},
};

/// Derives a question's facts from its stored steps (its own and those of its judge tasks, in any order).
///
/// The score of a judge with several votes is their median, metric by metric; of grades that are 0 or 1 that is the majority. Votes
/// that failed are missing, and a judge without any vote makes the question an `infra_error`. A judge of which every vote says that
/// there is nothing to measure gives no score. Returns `None` while a step is missing and nothing has failed.
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
    /// Of each judge.
    votes: Vec<Votes>,
    votes_missing: usize,
    /// Votes, and what their last step says of their time: all of it, the provider's part, and the wait for pace.
    whole: Vec<(TaskKey, (u64, u64, u64))>,
    /// The calls of votes of several: their times say it better.
    calls: BTreeMap<TaskKey, Vec<Timing>>,
}

/// Votes of a judge.
#[derive(Debug, Clone, Default)]
struct Votes {
    /// Whether the judge grades this question.
    asked: bool,
    cast: usize,
    /// Their grades, of those that measured something.
    grades: Vec<f64>,
    /// Their further scores by metric.
    parts: BTreeMap<String, Vec<f64>>,
}

impl Gathered {
    fn new(identity: QuestionIdentity, judges: &JudgePlan) -> Self {
        let times = PhaseTimes { started_us: i64::MAX, ..PhaseTimes::default() };
        let mut votes = vec![Votes::default(); judges.metrics.len()];
        let mut asked = 0;
        for judge in judges.asked(&identity.category, &identity.question_id) {
            if let Some(votes) = votes.get_mut(judge as usize) {
                votes.asked = true;
                asked += 1;
            }
        }
        let facts = QuestionFacts { times, ..QuestionFacts::without_steps(identity, Outcome::Scored) };
        Self {
            facts,
            scored: false,
            votes,
            votes_missing: asked * judges.votes as usize,
            whole: Vec::new(),
            calls: BTreeMap::new(),
        }
    }

    fn see(&mut self, stored: &StoredStep) {
        let (facts, of_judge) = (&mut self.facts, stored.task.kind() == TaskKind::Judge);
        match &stored.facts {
            StepFacts::Recalled { retrieval, hits, top1_score, context_bytes, usage, timing, .. } => {
                facts.retrieval = Some(retrieval.clone());
                facts.hits = Some(*hits);
                facts.top1_score = *top1_score;
                facts.empty_context = *context_bytes == 0 && !retrieval.nothing_expected;
                facts.context_bytes = Some(*context_bytes);
                self.recalled(usage, timing);
            }
            StepFacts::Searched { usage, timing, .. } => self.recalled(usage, timing),
            StepFacts::Phrased { phase: Phase::Answer, usage, timing } => self.answered(usage, timing),
            // what rephrasing takes is a part of what recalling takes
            StepFacts::Phrased { usage, timing, .. } => self.recalled(usage, timing),
            StepFacts::Answered { finish, usage, timing } => {
                facts.finish = (finish != "stop").then(|| finish.clone());
                self.answered(usage, timing);
            }
            StepFacts::Scored { scores, abstained, answer_hash } => {
                self.scored = true;
                facts.scores.clone_from(scores);
                facts.answer_hash = *answer_hash;
                if *abstained {
                    facts.outcome = Outcome::Abstained;
                }
            }
            StepFacts::Judged { score, parts, usage, timing } => {
                if let Some(votes) = self.votes.get_mut(stored.task.judge_no() as usize) {
                    votes.cast += 1;
                    votes.grades.extend(score);
                    for (metric, score) in parts {
                        votes.parts.entry(metric.clone()).or_default().push(*score);
                    }
                    self.votes_missing = self.votes_missing.saturating_sub(1);
                }
                facts.usage.judge += *usage;
                facts.times.judge_in_flight = facts.times.judge_in_flight.max(timing.in_flight);
                self.whole.push((stored.task, (timing.total_us, timing.provider_us, timing.rate_wait_us)));
                self.took(timing, of_judge);
            }
            StepFacts::JudgedPart { usage, timing } => {
                facts.usage.judge += *usage;
                facts.times.judge_in_flight = facts.times.judge_in_flight.max(timing.in_flight);
                self.calls.entry(stored.task).or_default().push(timing.clone());
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
            | StepFacts::Listed(_)
            | StepFacts::Probed(_) => {}
        }
    }

    /// A recall, or one of several: times and usage of a question are their sums.
    fn recalled(&mut self, usage: &Usage, timing: &Timing) {
        let times = &mut self.facts.times;
        self.facts.usage.recall += *usage;
        times.recall_us = Some(times.recall_us.unwrap_or(0) + timing.operation_us());
        if timing.build_us > 0 {
            times.build_us = Some(times.build_us.unwrap_or(0) + timing.build_us);
        }
        times.build_wait_us += timing.build_wait_us;
        times.recall_in_flight = times.recall_in_flight.max(timing.in_flight);
        times.provider_us += timing.provider_us;
        self.took(timing, false);
    }

    /// The answer, or a move of the model that gives it.
    fn answered(&mut self, usage: &Usage, timing: &Timing) {
        let times = &mut self.facts.times;
        self.facts.usage.answer += *usage;
        times.answer_us = Some(times.answer_us.unwrap_or(0) + timing.total_us);
        times.answer_in_flight = times.answer_in_flight.max(timing.in_flight);
        times.provider_us += timing.provider_us;
        self.took(timing, false);
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
        let Self { mut facts, votes, calls, whole, .. } = self;
        if own_failure || votes.iter().any(|votes| votes.asked && votes.cast == 0) {
            facts.outcome = Outcome::InfraError;
            facts.scores.clear();
        } else {
            facts.failure = None;
            facts.judge_in_doubt = in_doubt(&votes);
            for (judge, Votes { grades, parts, .. }) in judges.metrics.iter().zip(votes) {
                let parts = parts.into_iter().map(|(part, scores)| (part_of_judge(judge, &part), scores));
                let scores = std::iter::once((judge.clone(), grades)).chain(parts);
                facts.scores.extend(scores.filter_map(|(metric, scores)| Some((metric, median(scores)?))));
            }
        }
        let times = &mut facts.times;
        let of_calls = |task: &TaskKey| calls.get(task).map(|calls| Timing::together(calls.iter()));
        let votes = whole.iter().map(|(task, took)| of_calls(task).unwrap_or(*took));
        let slowest_vote = votes.max();
        times.judge_us = slowest_vote.map(|(total_us, ..)| total_us);
        let slowest_vote = slowest_vote.unwrap_or_default();
        if times.started_us == i64::MAX {
            times.started_us = 0;
        }
        times.provider_us += slowest_vote.1;
        times.rate_wait_us += slowest_vote.2;
        times.question_us = [times.recall_us, times.answer_us, times.judge_us].into_iter().flatten().sum();
        facts
    }
}

/// Whether judges leave a doubt: any two votes, of one judge or of several, lie on different sides of what passes.
fn in_doubt(votes: &[Votes]) -> bool {
    let mut passes = votes.iter().flat_map(|votes| &votes.grades).map(|score| Scale::PLAIN.passes(*score));
    let first = passes.next();
    passes.any(|pass| Some(pass) != first)
}
