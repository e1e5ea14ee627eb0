use super::*;
use crate::{
    call::Phase,
    step::{StepFacts, StepNo, StoredStep, Timing},
};

fn identity() -> QuestionIdentity {
    QuestionIdentity {
        task: TaskKey::question(3, 7),
        question_id: "b:7".into(),
        bank_id: "b".into(),
        category: "single-hop".into(),
        facets: BTreeMap::new(),
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
    graded(0, vote, Some(score), &[])
}

fn graded(judge: u32, vote: u32, score: Option<f64>, parts: &[(&str, f64)]) -> StoredStep {
    let parts = parts.iter().map(|(name, score)| ((*name).to_owned(), *score)).collect();
    let timing = Timing { attempts: 1, ..Timing::default() };
    let facts = StepFacts::Judged { score, parts, usage: Usage::default(), timing };
    step(TaskKey::judge(3, 7, judge, vote), StepNo::JUDGE, facts)
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
    let none = JudgePlan { metrics: vec![], votes: 0, samples: vec![] };
    assert_eq!(conclude(identity(), &[], &none), None);
    let facts = conclude(identity(), &[scored(true)], &none).expect("is complete");
    assert_eq!(facts.outcome, Outcome::Abstained);
    assert_eq!(facts.scores, vec![("locomo-f1".to_owned(), 0.5)]);
}

#[test]
fn votes_are_reduced_to_their_median_and_failed_votes_are_missing() {
    let judges = JudgePlan { metrics: vec!["judge".into()], votes: 3, samples: vec![] };
    assert_eq!(conclude(identity(), &[scored(false), vote(0, 1.0), vote(1, 0.0)], &judges), None, "a vote is missing");
    let facts =
        conclude(identity(), &[scored(false), vote(0, 1.0), vote(1, 0.0), vote(2, 1.0)], &judges).expect("is complete");
    assert_eq!(facts.scores.last(), Some(&("judge".to_owned(), 1.0)));
    let with_failure = [scored(false), vote(0, 1.0), failed(TaskKey::judge(3, 7, 0, 1)), vote(2, 1.0)];
    assert!(facts.judge_in_doubt, "one vote of three disagrees");
    let facts = conclude(identity(), &with_failure, &judges).expect("is complete");
    assert_eq!((facts.outcome, facts.failure, facts.judge_in_doubt), (Outcome::Scored, None, false));
}

#[test]
fn a_judge_of_a_sample_is_waited_for_in_its_sample_alone() {
    let sample = |id: &str| JudgedSample::choose(1, 1, std::iter::once(("single-hop", id)));
    let plan = |sample| JudgePlan { metrics: vec!["judge".into(), "judge-2".into()], votes: 1, samples: vec![sample] };
    let steps = [scored(false), vote(0, 1.0)];
    assert_eq!(conclude(identity(), &steps, &plan(sample("b:7"))), None, "the second judge is asked too");
    // of the only other question, whose rank is lower
    let other = (0..)
        .map(|i| format!("b:{i}"))
        .find(|id| !sample(id.as_str()).holds("single-hop", "b:7"))
        .expect("there is one");
    let facts = conclude(identity(), &steps, &plan(sample(&other))).expect("is complete");
    let scores: Vec<&str> = facts.scores.iter().map(|(metric, _)| metric.as_str()).collect();
    assert_eq!((facts.outcome, scores), (Outcome::Scored, vec!["locomo-f1", "judge"]));
}

#[test]
fn p38_each_metric_of_a_judge_is_the_median_of_the_votes_that_have_it() {
    let judges = JudgePlan { metrics: vec!["judge".into(), "judge-2".into()], votes: 3, samples: vec![] };
    let steps = [
        scored(false),
        graded(0, 0, Some(0.25), &[("made-up", 1.0)]),
        graded(0, 1, Some(1.0), &[("made-up", 0.0), ("complete", 0.5)]),
        graded(0, 2, Some(0.75), &[]),
        graded(1, 0, None, &[("made-up", 0.5)]),
        graded(1, 1, None, &[]),
        failed(TaskKey::judge(3, 7, 1, 2)),
    ];
    let facts = conclude(identity(), &steps, &judges).expect("is complete");
    let scores: Vec<(&str, f64)> = facts.scores.iter().map(|(metric, score)| (metric.as_str(), *score)).collect();
    let expected = [
        ("locomo-f1", 0.5),
        ("judge", 0.75),
        ("judge.complete", 0.5),
        ("judge.made-up", 0.5),
        ("judge-2.made-up", 0.5),
    ];
    assert_eq!(scores, expected, "a judge that found nothing to measure gives no score of its own");
    assert_eq!((facts.outcome, facts.failure, facts.judge_in_doubt), (Outcome::Scored, None, true));
    let mut turned = steps;
    turned.reverse();
    assert_eq!(conclude(identity(), &turned, &judges).expect("is complete").scores.len(), 5, "in any order");
}

#[test]
fn the_calls_of_a_vote_are_counted_and_timed_as_one() {
    let judges = JudgePlan { metrics: vec!["judge".into()], votes: 1, samples: vec![] };
    let task = TaskKey::judge(3, 7, 0, 0);
    let call = |no: u32, started_us, in_flight| {
        let timing = Timing {
            started_us,
            total_us: 100,
            provider_us: 80,
            rate_wait_us: 20,
            attempts: 2,
            in_flight,
            calls: vec![(20, 80, 200)],
            ..Timing::default()
        };
        step(
            task,
            StepNo::judge_call(no),
            StepFacts::JudgedPart { usage: Usage { calls: 2, ..Usage::default() }, timing },
        )
    };
    let grade = StepFacts::Judged {
        score: Some(0.5),
        parts: vec![],
        usage: Usage::default(),
        timing: Timing { started_us: 9_000, queue_wait_us: 7, total_us: 5_000, ..Timing::default() },
    };
    let parts = [scored(false), call(0, 1_000, 1), call(1, 1_050, 2), call(2, 9_000, 1)];
    assert_eq!(conclude(identity(), &parts, &judges), None, "replies are no vote");
    let all: Vec<StoredStep> = parts.into_iter().chain([step(task, StepNo::JUDGE, grade)]).collect();
    let facts = conclude(identity(), &all, &judges).expect("is complete");
    assert_eq!((facts.attempts, facts.usage.judge.calls), (6, 6));
    let times = &facts.times;
    assert_eq!((times.judge_us, times.provider_us, times.rate_wait_us), (Some(250), 210, 40));
    assert_eq!((times.started_us, times.queue_wait_us, times.judge_in_flight), (1_000, 7, 2));
    assert_eq!(facts.scores.last(), Some(&("judge".to_owned(), 0.5)));
}

#[test]
fn a_judge_without_any_vote_is_an_infrastructure_error() {
    let judges = JudgePlan { metrics: vec!["judge".into()], votes: 1, samples: vec![] };
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
    let judges = JudgePlan { metrics: vec!["judge".into()], votes: 1, samples: vec![] };
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
    let none = JudgePlan { metrics: vec![], votes: 0, samples: vec![] };
    let times = conclude(identity(), &steps, &none).expect("is complete").times;
    assert_eq!((times.recall_us, times.build_us, times.build_wait_us), (Some(10), Some(60), 30));
    assert_eq!((times.question_us, times.recall_in_flight), (10, 4));
}

#[test]
fn times_and_usage_of_several_recalls_and_moves_are_their_sums() {
    let timing = |total_us, in_flight| Timing { total_us, in_flight, attempts: 1, ..Timing::default() };
    let usage = |calls| Usage { calls, ..Usage::default() };
    let searched = |timing| StepFacts::Searched { generation: 1, hits: 2, effective_k: 2, usage: usage(1), timing };
    let phrased = |phase, timing| StepFacts::Phrased { phase, usage: usage(1), timing };
    let task = TaskKey::question(3, 7);
    let union = StepFacts::Recalled {
        generation: 1,
        hits: 3,
        effective_k: 2,
        context_bytes: 9,
        top1_score: None,
        retrieval: Default::default(),
        usage: Usage::default(),
        timing: Timing::default(),
    };
    let answered = StepFacts::Answered { finish: "stop".into(), usage: usage(1), timing: timing(100, 1) };
    let steps = [
        step(task, StepNo::RECALL, union),
        step(task, StepNo::ANSWER, answered),
        scored(false),
        step(task, StepNo::phrase(0), phrased(Phase::Answer, timing(40, 1))),
        step(task, StepNo::search(0), searched(timing(7, 2))),
        step(task, StepNo::phrase(1), phrased(Phase::Answer, timing(50, 1))),
        step(task, StepNo::search(1), searched(timing(8, 1))),
    ];
    let none = JudgePlan { metrics: vec![], votes: 0, samples: vec![] };
    let facts = conclude(identity(), &steps, &none).expect("is complete");
    let times = &facts.times;
    assert_eq!((times.recall_us, times.answer_us, times.question_us), (Some(15), Some(190), 205));
    assert_eq!((facts.usage.recall.calls, facts.usage.answer.calls, facts.hits), (2, 3, Some(3)));
    assert_eq!((times.recall_in_flight, facts.attempts), (2, 5));
    let rephrased = [step(task, StepNo::phrase(0), phrased(Phase::Recall, timing(40, 1))), scored(false)];
    let facts = conclude(identity(), &rephrased, &none).expect("is complete");
    assert_eq!((facts.times.recall_us, facts.times.answer_us, facts.usage.recall.calls), (Some(40), None, 1));
}

#[test]
fn an_expected_empty_recall_is_no_empty_context() {
    let recalled = |nothing_expected| {
        let facts = StepFacts::Recalled {
            generation: 1,
            hits: 0,
            effective_k: 10,
            context_bytes: 0,
            top1_score: None,
            retrieval: Retrieval { nothing_expected, ..Retrieval::default() },
            usage: Usage::default(),
            timing: Timing::default(),
        };
        let steps = [step(TaskKey::question(3, 7), StepNo::RECALL, facts), scored(false)];
        conclude(identity(), &steps, &JudgePlan { metrics: vec![], votes: 0, samples: vec![] })
            .expect("is complete")
            .empty_context
    };
    assert_eq!((recalled(false), recalled(true)), (true, false));
}

#[test]
fn provider_time_and_waits_are_those_of_the_answer_and_the_slowest_vote() {
    let judges = JudgePlan { metrics: vec!["judge".into()], votes: 2, samples: vec![] };
    let timing = |total_us, provider_us| {
        let rate_wait_us = total_us - provider_us;
        Timing { total_us, provider_us, rate_wait_us, ..Timing::default() }
    };
    let answered = StepFacts::Answered { finish: "stop".into(), usage: Usage::default(), timing: timing(100, 90) };
    let judged = |no, timing| {
        let facts = StepFacts::Judged { score: Some(1.0), parts: vec![], usage: Usage::default(), timing };
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
