use std::collections::BTreeMap;

use bench_proto::{
    call::{Ledger, Phase, Usage},
    facts::PhaseUsage,
    failure::Failure,
    ids::{RunId, TaskKey},
    metered::{MeteredCalls, MeteredEnd, MeteredKey, Service, Stage},
    metric::{Better, MetricSpec, Scale},
    money::PicoUsd,
    scenario::{RecallPlan, Scenario},
    spec::{
        DatasetSpec, JudgingSpec, Limits, ModelSpec, RunSpec, SPEC_VERSION, SampleSpec, ScorerSpec, SystemSpec,
        TakenOver,
    },
    step::{Canary, RankHits, Retrieval, StepNo},
    stop::{Look, LookOutcome, Looks, StopGoal, StopRule},
    strata::Stratum,
    summary::{
        BankLeak, CategoryScore, CheckState, ControlScore, FacetScore, LABEL_DEMO_ANSWERER, LABEL_MODIFIED_DATASET,
        LatencySummary, Verdict,
    },
};
use proptest::prelude::*;

use super::*;
use crate::input::{Canaries, RunIdentity, SelfCheck};

/// Categories of the tests with their population.
const CATEGORIES: [(&str, u64); 3] = [("adversarial", 446), ("single-hop", 841), ("temporal", 321)];

fn model(provider: &str) -> ModelSpec {
    ModelSpec {
        provider: provider.into(),
        name: String::new(),
        account: String::new(),
        params: BTreeMap::new(),
        prompts: BTreeMap::from([("answer".to_owned(), "ab".repeat(32))]),
        version: 1,
    }
}

pub(crate) fn spec(n: u64) -> RunSpec {
    RunSpec {
        spec_version: SPEC_VERSION,
        dataset: DatasetSpec {
            name: "locomo".into(),
            version: "1".into(),
            sha256: "cd".repeat(32),
            modified: true,
            loader: 1,
            population: CATEGORIES.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect(),
            banks: 10,
            sessions: 272,
            ..DatasetSpec::default()
        },
        sample: SampleSpec {
            preset: "fair".into(),
            sampler: "hash".into(),
            sampler_version: 1,
            n,
            banks: 10,
            stratified: true,
            ..SampleSpec::default()
        },
        system: SystemSpec { name: "bm25".into(), version: "1".into(), top_k: 10, settings: BTreeMap::new() },
        scenario: Scenario::default(),
        recalls: RecallPlan::default(),
        answerer: model("extractive"),
        judges: vec![model("openai")],
        votes: 1,
        judging: JudgingSpec::default(),
        scorers: vec![ScorerSpec { name: "locomo-f1".into(), version: 1, ..ScorerSpec::default() }],
        counting: None,
        headline: None,
        limits: Limits { max_cost: Some(PicoUsd(20_000_000_000_000)), ..Limits::default() },
        canaries: None,
        stop: None,
        lists: false,
        taken_over: Default::default(),
    }
}

pub(crate) fn input(n: u64) -> AggregateInput {
    let run = RunIdentity {
        id: RunId("run-1".into()),
        name: None,
        status: "finished".into(),
        code_versions: vec!["0.1.0".into()],
        started_at: None,
        finished_at: None,
        wall_seconds: Some(12.5),
        resumed_times: 0,
    };
    AggregateInput {
        effective_k: Some(10),
        self_check: SelfCheck::Passed,
        controls: vec![ControlScore { name: "none".into(), metric: "judge".into(), value: Some(0.2), n: 20 }],
        ..AggregateInput::new(spec(n), run)
    }
}

/// Whether the judge accepts question `i`.
fn right(i: u64) -> bool {
    i * 13 % 5 > 1
}

/// A question made from a number: every field depends on it.
pub(crate) fn question(i: u64) -> QuestionFacts {
    let bank = (i % 7) as u32;
    let outcome = match i % 11 {
        0 => Outcome::Abstained,
        1 => Outcome::InfraError,
        _ => Outcome::Scored,
    };
    let scores = match outcome {
        Outcome::InfraError => vec![],
        _ => vec![
            ("locomo-f1".to_owned(), (i * 31 % 97) as f64 / 96.0),
            ("judge".to_owned(), f64::from(u8::from(right(i)))),
        ],
    };
    let hits =
        RankHits { gold: (i % 4) as u32, ranked: 10, ranks: (1..=(i % 3).min(i % 4) as u32).map(|r| r * 2).collect() };
    QuestionFacts {
        task: TaskKey::question(bank, i as u32),
        question_id: format!("conv-{bank}:{i}"),
        bank_id: format!("conv-{bank}"),
        category: CATEGORIES[(i % 3) as usize].0.to_owned(),
        facets: BTreeMap::from([("abstention".to_owned(), if i.is_multiple_of(4) { "yes" } else { "no" }.to_owned())]),
        outcome,
        scores,
        retrieval: Some(Retrieval { turn: hits.clone(), session: hits, ..Retrieval::default() }),
        hits: Some(10),
        top1_score: None,
        empty_context: false,
        context_bytes: Some(4_000),
        judge_in_doubt: false,
        finish: None,
        answer_hash: 1 + i % 5,
        times: bench_proto::facts::PhaseTimes {
            started_us: i as i64,
            queue_wait_us: i * 3,
            rate_wait_us: i % 2,
            provider_us: i * 500,
            recall_us: Some(i * 100),
            answer_us: Some(i * 700),
            judge_us: i.is_multiple_of(2).then_some(i),
            question_us: i * 801,
            ..Default::default()
        },
        usage: PhaseUsage {
            answer: Usage { calls: 1, prompt_tokens: i, cost: PicoUsd(7), ..Usage::default() },
            ..PhaseUsage::default()
        },
        attempts: 1,
        failure: (outcome == Outcome::InfraError).then(|| Failure::transient("timeout", "no reply")),
        kept: (i % 2 == 1).then_some(bench_proto::trace::Kept::Slow),
    }
}

fn ready(bank: u32, proven: bool) -> StoredStep {
    let facts = StepFacts::Ready {
        polls: 1,
        proven,
        stats: Default::default(),
        returned: false,
        canary: None,
        holdings: None,
        timing: Timing { total_us: 10, ..Timing::default() },
    };
    StoredStep { task: TaskKey::ready(bank, 0), step: StepNo::READY, facts }
}

fn retained(bank: u32, us: u64) -> StoredStep {
    let usage = Usage { calls: 2, ..Usage::default() };
    let facts =
        StepFacts::Retained { generation: 1, turns: 20, usage, timing: Timing { total_us: us, ..Timing::default() } };
    StoredStep { task: TaskKey::retain(bank, 0), step: StepNo::retain(0), facts }
}

fn aggregate(questions: impl IntoIterator<Item = u64>) -> Aggregator {
    let mut aggregator = Aggregator::new(input(60));
    for i in questions {
        aggregator.add(&question(i));
        aggregator.add_retain_step(&retained((i % 7) as u32, i * 1_000));
        aggregator.add_retain_step(&ready((i % 7) as u32, true));
    }
    aggregator
}

const NONE: [&str; 0] = [];

#[test]
fn p22_outcomes_sum_to_the_sample_and_coverage_counts_abstentions() {
    let summary = aggregate(0..55).finish(["late-1", "late-2", "late-3", "late-4", "late-5"]).summary;
    let o = &summary.outcomes;
    assert_eq!((o.scored, o.abstained, o.infra_error, o.not_run, o.sample), (45, 5, 5, 5, 60));
    assert_eq!(o.coverage, Some(50.0 / 60.0));
    assert_eq!(summary.run.verdict, Verdict::Invalid);
    assert_eq!(summary.run.reasons, ["coverage 83.3 % is under 99 %: 10 of 60 questions have no score"]);
    assert_eq!(summary.errors, BTreeMap::from([("timeout".to_owned(), 5)]));
    assert_eq!(summary.error_examples, BTreeMap::from([("timeout".to_owned(), "no reply".to_owned())]));
    assert_eq!(
        summary.warnings,
        [
            "fewer than 8 banks behind some categories, their intervals are rough: adversarial (7), single-hop (7), temporal (7)"
        ]
    );
}

#[test]
fn the_example_of_an_error_is_the_same_in_any_order_and_one_line() {
    // every eleventh question has failed
    let failed = |at: usize, message: &str| {
        let mut facts = question(1 + 11 * at as u64);
        facts.failure = Some(Failure::permanent("system_refused", message));
        facts
    };
    let messages = ["b: later", "a: first\nand more", "c"];
    let in_order = |order: [usize; 3]| {
        let (mut all, mut others) = (aggregate(0..0), aggregate(0..0));
        for (at, message) in order.into_iter().enumerate() {
            let of = if at == 0 { &mut all } else { &mut others };
            of.add(&failed(message, messages[message]));
        }
        all.merge(others);
        all.finish(NONE).summary.error_examples
    };
    let told = BTreeMap::from([("system_refused".to_owned(), "a: first and more".to_owned())]);
    for order in [[0, 1, 2], [1, 2, 0], [2, 0, 1]] {
        assert_eq!(in_order(order), told);
    }
    let mut long = aggregate(0..0);
    long.add(&failed(0, &"é".repeat(1_000)));
    let told = long.finish(NONE).summary.error_examples["system_refused"].clone();
    assert_eq!(told.chars().count(), 300, "it is bounded");
}

#[test]
fn every_table_of_the_report_is_filled() {
    let summary = aggregate(0..60).finish(NONE).summary;
    assert_eq!(summary.headline.metric, "judge", "a judge outranks scorers");
    assert_eq!(summary.headline.estimator, Estimator::Weighted);
    assert_eq!(summary.scores.iter().map(|s| s.metric.as_str()).collect::<Vec<_>>(), ["judge", "locomo-f1"]);
    assert_eq!(summary.headline.value, summary.scores[0].weighted);
    assert_eq!(summary.headline.population, Some(1_608));
    let rest = summary.without_adversarial.expect("the sample has adversarial questions");
    assert_eq!((rest.population, rest.n), (Some(1_162), summary.headline.n - summary.scores[0].by_category[0].n));
    assert_eq!(summary.labels, [LABEL_DEMO_ANSWERER, LABEL_MODIFIED_DATASET]);
    assert_eq!(summary.slowest.len(), 10);
    assert_eq!(summary.slowest[0].question_id, "conv-3:59");
    assert_eq!(summary.slowest[0].ms, 47.259);
    assert_eq!(summary.slowest[0].phase_ms["answer"], 41.3);
    assert!(!summary.slowest[0].phase_ms.contains_key("judge"), "what did not happen is absent");
    assert_eq!(summary.worst.len(), 5);
    assert!(summary.worst.iter().all(|w| w.score == 0.0 && w.gold.is_none()));
    assert!(summary.worst.is_sorted_by(|a, b| a.question_id < b.question_id));
    assert_eq!((summary.usage.retain.calls, summary.usage.answer.calls, summary.total.used.calls), (120, 60, 180));
    assert_eq!(summary.total.usd_cap, Some(20.0));
    assert_eq!(summary.latency_ms.retain.as_ref().map(|p| p.n), Some(60));
    assert_eq!(summary.phase_seconds.recall, Some((0..60).sum::<u64>() as f64 * 100.0 / 1e6));
    let failed: u64 = summary.scores[0].n - (0..60).filter(|i| i % 11 != 1 && right(*i)).count() as u64;
    let a = &summary.failure_attribution;
    assert_eq!(a.evidence_missing + a.evidence_partial + a.evidence_found + a.no_ground_truth, failed);
    assert!(summary.retrieval.turn.keys().copied().eq([1, 3, 5, 10]));
    let bootstrap = summary.headline.bootstrap_ci95.expect("seven banks are enough");
    assert_eq!(bootstrap.method, "wild cluster bootstrap-t, all 128 sign vectors");
}

#[test]
fn facets_are_scored_by_the_method_of_categories() {
    let mut aggregator = Aggregator::new(input(60));
    for i in 0..60 {
        let facts = question(i);
        let facets = BTreeMap::from([("same".to_owned(), facts.category.clone())]);
        aggregator.add(&QuestionFacts { facets, ..facts });
    }
    let summary = aggregator.finish(NONE).summary;
    for score in &summary.scores {
        let of_categories: BTreeMap<String, FacetScore> = score
            .by_category
            .iter()
            .cloned()
            .map(|c| {
                let CategoryScore { n, value, clusters, ci95, ci95_note, naive_ci95, .. } = c;
                (c.category, FacetScore { n, value, clusters, ci95, ci95_note, naive_ci95 })
            })
            .collect();
        assert_eq!(score.by_facet, BTreeMap::from([("same".to_owned(), of_categories)]), "{}", score.metric);
    }
    let plain = QuestionFacts { facets: BTreeMap::new(), ..question(0) };
    let mut aggregator = Aggregator::new(input(1));
    aggregator.add(&plain);
    let scores = serde_json::to_value(aggregator.finish(NONE).summary.scores).expect("serialises");
    assert_eq!(scores[0].get("by_facet"), None, "what a dataset does not have is not written");
}

#[test]
fn a_sample_by_facets_is_weighted_by_its_strata() {
    let mut plan = input(60);
    let stratum = |category: &str, abstention: &str, population, n| Stratum {
        category: category.to_owned(),
        facets: BTreeMap::from([("abstention".to_owned(), abstention.to_owned())]),
        population,
        n,
    };
    let mut sizes: BTreeMap<(String, String), (u64, Vec<f64>)> = BTreeMap::new();
    for i in 0..60 {
        let facts = question(i);
        let stratum = sizes.entry((facts.category.clone(), facts.facets["abstention"].clone())).or_default();
        stratum.0 += 1;
        stratum.1.extend(facts.scores.iter().filter(|(metric, _)| metric == "judge").map(|(_, score)| *score));
    }
    // the rarer half of each category counts as little as it is of the dataset
    let population = |abstention: &str| if abstention == "yes" { 30 } else { 970 };
    plan.spec.sample.strata =
        sizes.iter().map(|((category, value), (n, _))| stratum(category, value, population(value), *n)).collect();
    let mut aggregator = Aggregator::new(plan);
    (0..60).for_each(|i| aggregator.add(&question(i)));
    let summary = aggregator.finish(NONE).summary;
    let mean = |scores: &[f64]| scores.iter().sum::<f64>() / scores.len() as f64;
    let expected: f64 = sizes.iter().map(|((_, value), (_, s))| population(value) as f64 / 3_000.0 * mean(s)).sum();
    let got = summary.headline.value.expect("has a score");
    assert!((got - expected).abs() < 1e-12, "{got} instead of {expected}");
    assert_eq!((summary.headline.population, summary.scores[0].by_category.len()), (Some(3_000), 3));
    assert!(summary.headline.benchmark_ci95.is_some(), "{:?}", summary.headline.benchmark_note);
    let of_categories: u64 = summary.scores[0].by_category.iter().map(|category| category.n).sum();
    assert_eq!(of_categories, summary.scores[0].n);
}

#[test]
fn where_lower_is_better_the_worst_are_the_highest_and_what_failed_counts_as_one() {
    let mut plan = input(22);
    plan.spec.judges.clear();
    plan.spec.sample.stratified = false;
    let drift = MetricSpec { name: "drift".into(), scale: Scale::lower(0.25) };
    plan.spec.scorers = vec![ScorerSpec { name: "pairs".into(), version: 1, metrics: vec![drift], of_recalls: false }];
    let mut aggregator = Aggregator::new(plan);
    for i in 0..22 {
        let facts = question(i);
        let scores = if facts.scores.is_empty() { vec![] } else { vec![("drift".to_owned(), i as f64 / 40.0)] };
        aggregator.add(&QuestionFacts { scores, ..facts });
    }
    let summary = aggregator.finish(NONE).summary;
    let score = &summary.scores[0];
    assert_eq!((score.metric.as_str(), score.better, score.pass_threshold), ("drift", Better::Lower, 0.25));
    // 0 to 10 pass, but for question 1, which failed, as 12 did
    assert_eq!((score.n, score.pass_rate), (20, Some(0.5)));
    let worst: Vec<&str> = summary.worst.iter().map(|w| w.question_id.as_str()).collect();
    assert_eq!(worst, ["conv-0:21", "conv-6:20", "conv-5:19", "conv-4:18", "conv-3:17"]);
    let sum = (0..22).filter(|i| i % 11 != 1).map(|i| f64::from(i) / 40.0).sum::<f64>();
    let (value, strict) = (summary.headline.value.expect("a score"), summary.headline.strict.expect("a score"));
    assert!((value - sum / 20.0).abs() < 1e-12 && (strict - (sum + 2.0) / 22.0).abs() < 1e-12, "{value} {strict}");
    let table = &summary.recall_answer;
    let rows = [table.evidence_found, table.evidence_partial, table.evidence_missing, table.no_ground_truth];
    assert_eq!(rows.iter().map(|row| row.passed).sum::<u64>(), 10);
}

#[test]
fn where_recalls_are_graded_no_answer_is_to_blame() {
    let lost = |change: fn(&mut RunSpec)| {
        let mut plan = input(60);
        change(&mut plan.spec);
        let mut aggregator = Aggregator::new(plan);
        (0..60).map(question).for_each(|facts| aggregator.add(&facts));
        aggregator.finish(NONE).summary
    };
    let answers = lost(|spec| spec.headline = Some("locomo-f1".to_owned()));
    assert!(answers.failure_attribution.evidence_found > 0 && answers.usd_per_correct.is_some(), "{answers:?}");
    let by_figure: fn(&mut RunSpec) = |spec| {
        spec.headline = Some("locomo-f1".to_owned());
        spec.scorers[0].of_recalls = true;
    };
    let without_answers: fn(&mut RunSpec) = |spec| {
        spec.scenario = Scenario::RetrieveOnly;
        spec.judges.clear();
    };
    for summary in [lost(by_figure), lost(without_answers)] {
        let (here, there) = (&summary.failure_attribution, &answers.failure_attribution);
        assert_eq!((here.recall_failed, here.evidence_found), (there.evidence_found, 0));
        assert_eq!(here.evidence_missing, there.evidence_missing, "what is missing is missing");
        assert_eq!((summary.recall_answer, summary.usd_per_correct), (Default::default(), None));
    }
}

#[test]
fn p22_a_headline_that_no_question_has_is_invalid() {
    let mut plan = input(10);
    plan.spec.headline = Some("recall@10".to_owned());
    let summary = |having: u64| {
        let mut aggregator = Aggregator::new(plan.clone());
        for i in (0..12).filter(|i| i % 11 != 1).take(10) {
            let mut facts = question(i);
            facts.scores.extend((i < having).then(|| ("recall@10".to_owned(), 1.0)));
            aggregator.add(&facts);
        }
        aggregator.finish(NONE).summary
    };
    let nothing = summary(0);
    assert_eq!((nothing.run.verdict, nothing.headline.value), (Verdict::Invalid, None));
    assert!(nothing.run.reasons[0].contains("no question that counts has a figure of 'recall@10'"), "{nothing:?}");
    let some = summary(4);
    let coverage = some.run.checks.iter().find(|check| check.rule == "coverage").expect("is checked");
    assert_eq!((coverage.state, some.headline.n, some.headline.without_figure), (CheckState::Passed, 3, 7));
}

#[test]
fn who_says_ok_to_everything_is_invalid() {
    let mut aggregator = Aggregator::new(input(40));
    for i in 0..40 {
        let scores = vec![("locomo-f1".to_owned(), 0.0), ("judge".to_owned(), 0.0)];
        let answer_hash = bench_proto::facts::answer_hash("ok");
        aggregator.add(&QuestionFacts { outcome: Outcome::Scored, scores, answer_hash, ..question(i) });
    }
    let run = aggregator.finish(NONE).summary.run;
    assert_eq!(run.verdict, Verdict::Invalid);
    let said = "40 of 40 questions (100.0 %) got the same answer";
    assert!(run.reasons.iter().any(|reason| reason == said), "{:?}", run.reasons);
}

#[test]
fn worst_questions_get_their_texts_from_the_caller() {
    let mut summary = aggregate(0..30).finish(NONE).summary;
    crate::fill_worst(&mut summary, |id| (Some(format!("gold of {id}")), None));
    assert_eq!(summary.worst[0].gold.as_deref(), Some(format!("gold of {}", summary.worst[0].question_id).as_str()));
}

#[test]
fn p17_the_digest_is_the_contracts() {
    let summary = aggregate((0..20).rev()).finish(["conv-0:999"]).summary;
    let not_run =
        QuestionFacts { question_id: "conv-0:999".to_owned(), outcome: Outcome::NotRun, scores: vec![], ..question(0) };
    let mut facts: Vec<QuestionFacts> = (0..20).map(question).chain([not_run]).collect();
    facts.sort_by(|a, b| a.question_id.cmp(&b.question_id));
    let mut expected = bench_proto::digest::ResultDigest::default();
    for question in &facts {
        let scores = question.scores.iter().map(|(metric, score)| (metric.as_str(), *score));
        expected.push(&question.question_id, question.outcome, scores);
    }
    assert_eq!(summary.result_digest, expected.finish());
}

#[test]
fn p9_phases_answered_by_the_call_store_are_no_latency() {
    let mut cached = question(5);
    cached.usage.answer = Usage { cached_calls: 1, ..Usage::default() };
    let mut aggregator = Aggregator::new(input(1));
    aggregator.add(&cached);
    let latency = aggregator.finish(NONE).summary.latency_ms;
    assert!(latency.recall.is_some() && latency.answer.is_none() && latency.question.is_none());
}

#[test]
fn tokens_of_a_prompt_are_a_mean_over_the_calls_that_were_paid() {
    let mean = |paid: u64| {
        let mut aggregator = Aggregator::new(input(4));
        for n in 0..4 {
            let mut facts = question(n);
            facts.usage.answer = match n < paid {
                true => Usage { calls: 1, prompt_tokens: 300, ..Usage::default() },
                false => Usage { cached_calls: 1, ..Usage::default() },
            };
            aggregator.add(&facts);
        }
        aggregator.finish(NONE).summary.context.expect("has contexts").mean_prompt_tokens
    };
    assert_eq!([mean(4), mean(1), mean(0)], [Some(300.0), Some(300.0), None]);
}

#[test]
fn rules_without_data_are_not_checked_and_nothing_is_zero_that_was_not_computed() {
    let mut plain = AggregateInput { effective_k: None, self_check: SelfCheck::NotRun, ..input(12) };
    plain.headline_metric = Some("imported".into());
    let mut aggregator = Aggregator::new(plain);
    for i in 0..12 {
        let imported = QuestionFacts {
            outcome: Outcome::Scored,
            scores: vec![("imported".into(), 1.0)],
            retrieval: None,
            answer_hash: 0,
            failure: None,
            ..question(i)
        };
        aggregator.add(&imported);
    }
    let summary = aggregator.finish(NONE).summary;
    assert_eq!(summary.run.verdict, Verdict::Valid);
    let not_checked: Vec<&str> =
        summary.run.checks.iter().filter(|c| c.state == CheckState::NotChecked).map(|c| c.rule.as_str()).collect();
    let without_data = [
        "empty_context",
        "effective_k",
        "k_served",
        "one_answer",
        "banks_ready",
        "banks_apart",
        "nothing_lost",
        "self_check",
        "judges",
        "instrument",
    ];
    assert_eq!(not_checked, without_data);
    assert_eq!(summary.scores[0].metric, "imported");
    assert_eq!((summary.scores[1].micro, summary.scores[1].n), (None, 0), "planned, but nothing has it");
    assert_eq!(summary.retrieval.turn[&1].recall, None);
}

#[test]
fn what_stopping_has_saved_is_what_questions_take_and_nothing_that_is_asked_once() {
    let look = Look {
        asked: 10,
        banks: 7,
        used: 10,
        estimate: Some(0.5),
        low: None,
        high: None,
        clustered: None,
        outcome: LookOutcome::Narrow,
        by_category: BTreeMap::new(),
        by_stratum: Vec::new(),
    };
    let mut input = input(40);
    input.spec.stop = Some(StopRule { goal: StopGoal::Interval { half_width: 0.03 }, looks: vec![10, 40] });
    input.looks = Some(Looks { made: vec![look], ..Looks::default() });
    let metered = |stage, calls, usd| MeteredCalls {
        key: MeteredKey { bank: Some(0), stage, service: Service::Chat },
        model: "gpt-4o-mini".to_owned(),
        end: MeteredEnd::Answered { counted_here: false },
        is_uncertain: false,
        calls,
        prompt_tokens: 1,
        completion_tokens: 1,
        cost: PicoUsd::parse(usd).expect("an amount"),
        duration_us: 1,
        saved: PicoUsd::ZERO,
    };
    input.metered =
        Some(vec![metered(Stage::Retain, 100, "9"), metered(Stage::Recall, 20, "0.5"), metered(Stage::Check, 8, "7")]);
    let mut aggregator = Aggregator::new(input);
    (0..10).for_each(|i| aggregator.add(&question(i)));
    let mut sung = ready(0, true);
    let StepFacts::Ready { canary, .. } = &mut sung.facts else { unreachable!("a ready step") };
    let usage = Usage { calls: 5, cost: PicoUsd::parse("3").expect("an amount"), ..Usage::default() };
    *canary = Some(Canary { asked: 3, found: 3, usage, ..Canary::default() });
    aggregator.add_retain_step(&sung);
    let summary = aggregator.finish(NONE).summary;
    assert_eq!(summary.usage.recall.calls, 5, "they were paid all the same");
    let saved = summary.stop.and_then(|stop| stop.saved).expect("it has stopped");
    // ten answers at 7 pico-dollars and twenty calls of the memory system, three times as often
    assert_eq!((saved.questions, saved.calls), (30, 90));
    assert!((saved.usd - 1.5).abs() < 1e-6, "{saved:?}");
}

#[test]
fn p34_questions_of_a_bank_that_failed_were_not_asked() {
    let metered = |asked: u64| {
        let mut input = input(10);
        input.metered = Some(Vec::new());
        let mut aggregator = Aggregator::new(input);
        for i in 0..10 {
            let (outcome, scores, times) = (Outcome::InfraError, Vec::new(), Default::default());
            let never = QuestionFacts { outcome, scores, times, ..question(i) };
            aggregator.add(&if i < asked { question(i) } else { never });
        }
        let metered = aggregator.finish(NONE).summary.metered.expect("is metered");
        (metered.questions, metered.usd_per_question)
    };
    assert_eq!((metered(4), metered(0)), ((4, Some(0.0)), (0, None)));
}

#[test]
fn p45_canaries_and_best_hits_are_told_whatever_their_order() {
    let sung = |bank, found, leaked| {
        let mut step = ready(bank, true);
        let StepFacts::Ready { canary, .. } = &mut step.facts else { unreachable!("a ready step") };
        let other = (bank > 0).then(|| "conv-0".to_owned());
        *canary = Some(Canary { asked: 3, found, verbatim: true, other, leaked, ..Canary::default() });
        step
    };
    let of = |order: [u32; 3]| {
        let mut aggregator = Aggregator::new(AggregateInput { canaries: Canaries::Possible, ..input(60) });
        for i in 0..60 {
            let best = (i % 2 == 0).then_some(i as f64 / 10.0);
            aggregator.add(&QuestionFacts { top1_score: best, hits: Some(5), ..question(i) });
        }
        for bank in order {
            (0..10).for_each(|_| aggregator.add_retain_step(&retained(bank, 1)));
            aggregator.add_retain_step(&sung(bank, 3, bank == 2));
        }
        aggregator.finish(NONE).summary
    };
    let summary = of([0, 1, 2]);
    assert_eq!(summary, of([2, 0, 1]));
    assert_eq!(summary.top1_score, Some(2.9), "of those that have one");
    let seen = summary.canaries.expect("canaries were sent");
    assert_eq!((seen.banks, seen.asked, seen.found, seen.others_asked), (3, 9, 9, 2));
    assert_eq!(seen.leaks, [BankLeak { asked: "conv-0".into(), given: "conv-2".into() }]);
    let failed = |rule: &str| summary.run.checks.iter().any(|c| c.rule == rule && c.state == CheckState::Failed);
    assert!(failed("banks_apart") && failed("k_served") && !failed("nothing_lost"), "{:?}", summary.run.checks);
}

#[test]
fn an_empty_run_is_all_null() {
    let summary = Aggregator::new(input(0)).finish(NONE).summary;
    assert_eq!((summary.headline.value, summary.headline.strict, summary.outcomes.coverage), (None, None, None));
    assert_eq!(summary.latency_ms, LatencySummary::default());
    assert_eq!(summary.run.verdict, Verdict::Invalid);
}

#[test]
fn what_a_memory_costs_by_calls_of_the_runner_is_known() {
    let cost = |change: fn(&mut AggregateInput)| {
        let mut input = AggregateInput { ledger: Some(Ledger::default()), ..input(10) };
        change(&mut input);
        let mut aggregator = Aggregator::new(input);
        for n in 0..10 {
            let mut facts = question(n);
            let (cost, saved) = (PicoUsd(2_000_000_000_000), PicoUsd(1_000_000_000_000));
            facts.usage.recall = Usage { calls: 1, cost, saved, ..Usage::default() };
            aggregator.add(&facts);
        }
        aggregator.finish(NONE).summary.usage.memory
    };
    let known = cost(|_| {}).expect("is known");
    assert_eq!((known.usd, known.usd_per_1000_turns, known.usd_per_question), (30.0, None, Some(3.0)));
    assert_eq!(cost(|input| input.is_remote = true), None, "of what it retained nothing is told");
    assert_eq!(cost(|input| input.ledger = None), None, "imported grades");
    assert_eq!(cost(|input| input.spec.recalls.rephrased = 2), None, "another model's calls are among them");
}

#[test]
fn a_fork_does_not_take_what_nobody_told_of_its_sources_memory_for_nothing() {
    let cost = |is_remote, recall: Usage| {
        let mut input = AggregateInput { ledger: Some(Ledger::default()), is_remote, ..input(10) };
        input.spec.taken_over = TakenOver::of_fork(Phase::Judge, "source", &TakenOver::default());
        let mut aggregator = Aggregator::new(input);
        for n in 0..10 {
            let mut facts = question(n);
            facts.usage.recall = recall;
            aggregator.add(&facts);
        }
        aggregator.finish(NONE).summary.usage.memory.map(|cost| cost.usd)
    };
    let told = Usage { calls: 1, cost: PicoUsd(2_000_000_000_000), ..Usage::default() };
    assert_eq!(cost(true, Usage::default()), None);
    assert_eq!(cost(true, told), Some(20.0), "what it told stands with the recalls");
    assert_eq!(cost(false, Usage::default()), Some(0.0), "a built-in system calls no model");
}

#[test]
fn what_a_system_of_another_process_uses_is_unknown_until_it_tells() {
    let unknown = |is_remote, told: u64| {
        let mut aggregator = Aggregator::new(AggregateInput { is_remote, ..input(60) });
        for n in 0..60 {
            let mut facts = question(n);
            facts.usage.recall = Usage { prompt_tokens: told, ..Usage::default() };
            aggregator.add(&facts);
        }
        let usage = aggregator.finish(NONE).summary.usage;
        (usage.unknown.clone(), usage.is_unknown(Phase::Recall))
    };
    assert_eq!(unknown(true, 0), (vec![Phase::Retain, Phase::Recall], true));
    assert_eq!(unknown(true, 3), (vec![Phase::Retain], false), "what it told is known");
    let alone = |usage: Usage| {
        let mut aggregator = Aggregator::new(AggregateInput { is_remote: true, ..input(60) });
        for n in 0..60 {
            let mut facts = question(n);
            facts.usage.recall = usage;
            aggregator.add(&facts);
        }
        aggregator.finish(NONE).summary.usage.tokens_alone()
    };
    assert_eq!(alone(Usage { prompt_tokens: 3, ..Usage::default() }), ["recall"], "tokens are no dollars");
    assert_eq!(
        alone(Usage { calls: 1, prompt_tokens: 3, ..Usage::default() }),
        [""; 0],
        "a call of a model that is free"
    );
    assert_eq!(unknown(false, 0), (vec![], false), "who computes from the stored items calls nobody");
    let of_fork = |from| {
        let mut input = AggregateInput { is_remote: true, ..input(60) };
        input.spec.taken_over = TakenOver::of_fork(from, "source", &TakenOver::default());
        sections::phases_of_system(&input)
    };
    assert_eq!(of_fork(Phase::Recall), [Phase::Retain, Phase::Recall]);
    assert_eq!([of_fork(Phase::Answer), of_fork(Phase::Judge)], [[]; 2], "it was not asked");
    let says_where = |is_remote, from| {
        let mut input = AggregateInput { is_remote, ..input(60) };
        input.spec.taken_over = TakenOver::of_fork(from, "source", &TakenOver::default());
        let warnings = Aggregator::new(input).finish(NONE).summary.warnings;
        warnings.iter().any(|line| line.starts_with("the recalls are those of run source"))
    };
    assert!(says_where(true, Phase::Judge) && says_where(true, Phase::Answer));
    assert!(!says_where(true, Phase::Recall) && !says_where(false, Phase::Judge));
}

#[test]
fn replies_without_a_count_and_answers_that_were_cut_are_warned_of() {
    let warnings = |uncounted: u64, cut: u64| {
        let mut aggregator = Aggregator::new(input(60));
        for n in 0..60 {
            let mut facts = question(n);
            facts.usage.answer.uncounted = u64::from(n < uncounted);
            facts.finish = (n < cut).then(|| "length".to_owned());
            aggregator.add(&facts);
        }
        let warnings = aggregator.finish(NONE).summary.warnings;
        let with = |words: &str| warnings.iter().find(|line| line.contains(words)).cloned();
        (with("told no number of tokens"), with("did not end by themselves"))
    };
    assert_eq!(warnings(0, 2), (None, None), "a few are cut in any run");
    let (uncounted, cut) = warnings(7, 20);
    assert!(uncounted.is_some_and(|line| line.contains(" for 7 calls")));
    assert!(cut.is_some_and(|line| line.starts_with("20 of 54 answers ") && line.contains("(length 20)")));
}

#[test]
fn unproven_banks_make_the_run_invalid() {
    let mut aggregator = aggregate((0..44).filter(|i| i % 11 != 1));
    aggregator.add_retain_step(&ready(3, false));
    assert_eq!(aggregator.finish(NONE).summary.run.reasons, ["1 of 7 banks were not proven ready (first: conv-3)"]);
}

#[test]
fn facts_of_our_own_are_paid_and_are_no_sessions_in_the_latency() {
    let mut aggregator = aggregate(0..60);
    let latency = |aggregator: &Aggregator| {
        let summary = aggregator.clone().finish(std::iter::empty::<&str>()).summary;
        let retain = summary.latency_ms.retain.expect("was retained");
        ((retain.n, retain.p50), summary.usage.retain.calls)
    };
    let (before, calls) = latency(&aggregator);
    for _ in 0..200 {
        let mut fact = retained(0, 1);
        if let StepFacts::Retained { turns, timing, .. } = &mut fact.facts {
            (*turns, timing.provider_us) = (0, 1);
        }
        aggregator.add_retain_step(&fact);
    }
    assert_eq!(latency(&aggregator), (before, calls + 400));
}

#[test]
fn a_retain_that_was_given_up_is_paid_and_timed() {
    let mut aggregator = Aggregator::new(input(0));
    let usage = Usage { calls: 3, cost: PicoUsd(5_000_000_000), ..Usage::default() };
    let timing = Timing { total_us: 2_000_000, ..Timing::default() };
    let facts = StepFacts::Failed { failure: Failure::transient("timeout", "no reply"), usage, timing };
    aggregator.add_retain_step(&StoredStep { task: TaskKey::retain(0, 0), step: StepNo::FAILED, facts });
    let summary = aggregator.finish(NONE).summary;
    assert_eq!((summary.usage.retain.calls, summary.usage.retain.usd), (3, 0.005));
    assert_eq!(summary.phase_seconds.retain, Some(2.0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn p36_any_order_and_any_split_give_the_same_summary(
        order in Just((0..40_u64).collect::<Vec<_>>()).prop_shuffle(),
        cuts in proptest::collection::vec(0_usize..40, 0..4),
    ) {
        let whole = aggregate(0..40).finish(["x", "y"]).summary;
        let mut cuts = cuts;
        cuts.extend([0, 40]);
        cuts.sort_unstable();
        let mut parts: Vec<Aggregator> = cuts.windows(2).map(|cut| aggregate(order[cut[0]..cut[1]].iter().copied())).collect();
        let mut merged = parts.pop().expect("there is at least one part");
        for (i, mut part) in parts.into_iter().enumerate() {
            if i % 2 == 0 {
                part.settle();
            }
            merged.merge(part);
        }
        let summary = merged.finish(["y", "x"]).summary;
        prop_assert_eq!(serde_json::to_string(&summary).expect("serialises"), serde_json::to_string(&whole).expect("serialises"));
    }
}
