use bench_proto::{
    call::Phase,
    comparison::{CategoryDifference, ComparedRun, Comparison, PairedDifference},
    gate::{Check, CheckOutcome, GateVerdict},
    metered::{Service, Stage},
    metric::Better,
    summary::{
        Booked, Interval, LatencyProbe, MemoryCost, MeteredBank, MeteredFigures, MeteredModel, MeteredStage,
        MeteredSummary, ProbeConditions, Summary, UsageFigures, UsageSummary, Verdict,
    },
};

use super::*;
use crate::{
    Aggregator,
    aggregator::tests::{input, question},
    compare::{CompareOptions, RunFacts, Side, compare},
};

fn summary() -> Summary {
    let mut aggregator = Aggregator::new(input(300));
    (0..300).for_each(|i| aggregator.add(&question(i)));
    let mut summary = aggregator.finish(std::iter::empty::<&str>()).summary;
    summary.run.verdict = Verdict::Valid;
    summary.run.reasons.clear();
    summary
}

/// A comparison of a run with itself, to be changed by the tests.
fn comparison() -> Comparison {
    let (input, summary) = (input(300), summary());
    let mut facts = RunFacts::new("judge", 10);
    (0..300).for_each(|i| facts.add(&question(i)));
    let side = Side { spec: &input.spec, summary: &summary, facts: &facts, members: &[] };
    compare(&side, &side, &CompareOptions::default())
}

fn set(paired: &mut PairedDifference, low: f64, high: f64) {
    paired.ci95 = Some(Interval { low, high, method: String::new() });
    paired.difference = Some(f64::midpoint(low, high));
}

fn gated(change: impl Fn(&mut Comparison)) -> GateReport {
    let mut comparison = comparison();
    change(&mut comparison);
    gate(&summary(), Some(("base".to_owned(), comparison)), &Policy::default(), GateFlags::default())
}

#[test]
fn a_gate_keeps_what_is_true_of_its_runs() {
    let own = "the baseline is the newest run";
    let report = gated(|comparison| {
        assert!(comparison.equal, "{:?}", comparison.notes);
        comparison.notes.push(own.to_owned());
    });
    let comparison = report.comparison.expect("there is a baseline");
    assert!(comparison.equal && comparison.notes.iter().any(|note| note == own), "{:?}", comparison.notes);
}

#[test]
fn absurd_counts_of_a_report_end_neither_a_comparison_nor_a_gate() {
    let (input, now) = (input(300), summary());
    let mut facts = RunFacts::new("judge", 10);
    (0..300).for_each(|i| facts.add(&question(i)));
    let mut before = now.clone();
    (before.outcomes.scored, before.outcomes.abstained) = (u64::MAX, u64::MAX);
    let absurd = UsageFigures { calls: u64::MAX, cached_calls: u64::MAX, ..UsageFigures::default() };
    let usage = &mut before.usage;
    for phase in [&mut usage.retain, &mut usage.recall, &mut usage.answer, &mut usage.judge] {
        phase.clone_from(&absurd);
    }
    let side = |summary| Side { spec: &input.spec, summary, facts: &facts, members: &[] };
    let comparison = compare(&side(&before), &side(&now), &CompareOptions::default());
    assert_eq!((comparison.a.n, comparison.b.n), (u64::MAX, now.outcomes.scored + now.outcomes.abstained));
    let policy = Policy { calls: Some(policy::Ratio { ratio: 2.0, level: Level::Critical }), ..Policy::default() };
    let report = gate(&now, Some(("base".to_owned(), comparison)), &policy, GateFlags::default());
    assert!(report.checks.iter().any(|check| check.rule == "calls"), "{report:?}");
}

#[test]
fn the_shipped_policy_is_the_default_one() {
    let shipped: Policy = serde_norway::from_str(policy::DEFAULT_POLICY_YAML).expect("the shipped policy is a policy");
    assert_eq!(shipped, Policy::default());
    assert_eq!(shipped.check(), Ok(()));
}

#[test]
fn exit_codes_follow_the_bounds() {
    let overall = |low: f64, high: f64| gated(|c| set(&mut c.paired, low, high)).exit_code;
    assert_eq!(overall(0.0, 0.0), 0);
    assert_eq!(overall(-0.02, 0.05), 0, "the bound itself is allowed");
    assert_eq!(overall(-0.06, -0.01), 1);
    assert_eq!(overall(-0.04, -0.01), 6, "surely a fall, and not surely more than what is tolerated");
    assert_eq!(overall(-0.06, 0.01), 6);
    let invalid = gated(|c| {
        c.comparable = false;
        c.reasons = vec!["the datasets differ".to_owned()];
    });
    assert_eq!((invalid.exit_code, invalid.verdict), (5, GateVerdict::Invalid));
}

#[test]
fn equal_runs_that_are_too_small_are_told_how_many_questions_would_do() {
    let report = gated(|comparison| {
        let paired = &mut comparison.paired;
        set(paired, -0.071_121_736, 0.071_121_736);
        (paired.n, paired.difference) = (50, Some(0.0));
        if let Some(interval) = &mut paired.ci95 {
            interval.method = "paired t, 49 df, rule of three".to_owned();
        }
    });
    let check = report.checks.iter().find(|check| check.rule == "overall").expect("is there");
    assert_eq!((check.outcome, report.exit_code), (CheckOutcome::Inconclusive, 6));
    // the smallest n of 1 - 0.025^(1/n) <= 0.03
    assert!(check.detail.ends_with("; equal runs pass with 122 questions or more"), "{}", check.detail);
}

#[test]
fn flags_forgive() {
    let mut comparison = comparison();
    set(&mut comparison.paired, -0.06, 0.01);
    let with = |flags| gate(&summary(), Some(("base".to_owned(), comparison.clone())), &Policy::default(), flags);
    assert_eq!(with(GateFlags { allow_inconclusive: true, ..GateFlags::default() }).exit_code, 0);
    let advisory = with(GateFlags { advisory: true, ..GateFlags::default() });
    assert_eq!((advisory.exit_code, advisory.verdict), (0, GateVerdict::Inconclusive));
    assert_eq!(advisory.severity.as_deref(), Some("warning"));
}

#[test]
fn a_category_must_survive_the_correction() {
    let with = |p_holm: f64| {
        gated(|c| {
            let temporal: &mut CategoryDifference =
                c.by_category.iter_mut().find(|c| c.category == "temporal").expect("there is one");
            set(&mut temporal.paired, -0.25, -0.01);
            temporal.paired.p_holm = Some(p_holm);
        })
    };
    assert_eq!(with(0.01).exit_code, 1);
    let chance = with(0.2);
    assert_eq!(chance.exit_code, 0, "supporting rules do not stop at what may be chance");
    let check = chance.checks.iter().find(|check| check.rule == "category:temporal").expect("is checked");
    assert_eq!(check.outcome, CheckOutcome::Inconclusive);
}

#[test]
fn advisory_rules_are_only_said() {
    let slow = gated(|c| {
        c.a.latency_probe = Some(probe(100.0));
        c.b.latency_probe = Some(probe(400.0));
    });
    let check = slow.checks.iter().find(|check| check.rule == "latency:probe:p95").expect("is checked");
    assert_eq!((check.outcome, slow.exit_code), (CheckOutcome::Regression, 0));
    assert_eq!(slow.severity.as_deref(), Some("warning"));
}

fn probe(ms: f64) -> LatencyProbe {
    LatencyProbe {
        version: 1,
        n: 200,
        p50_ms: Some(ms),
        p95_ms: Some(ms),
        p99_ms: Some(ms),
        failed: 0,
        failure: None,
        conditions: ProbeConditions { concurrency: 1, recalls: 200, ..ProbeConditions::default() },
        at_rates: Vec::new(),
        curve: Vec::new(),
    }
}

#[test]
fn p43_only_probes_of_equal_conditions_are_compared() {
    let not_compared = |change: &dyn Fn(&mut Comparison), words: &str| {
        let report = gated(change);
        let check = report.checks.iter().find(|check| check.rule == "latency:probe:p95").expect("is named");
        assert_eq!((check.outcome, report.exit_code), (CheckOutcome::NotChecked, 0), "{}", check.detail);
        assert!(check.detail.starts_with("not compared: ") && check.detail.contains(words), "{}", check.detail);
    };
    not_compared(&|_| {}, "the first run has no latency probe");
    not_compared(&|c| c.a.latency_probe = Some(probe(1.0)), "the second run has no latency probe");
    not_compared(
        &|c| {
            let mut other = probe(400.0);
            other.conditions.recalls = 50;
            (c.a.latency_probe, c.b.latency_probe) = (Some(probe(1.0)), Some(other));
        },
        "recalls 200 and 50",
    );
    not_compared(
        &|c| {
            let failed = LatencyProbe { failure: Some("busy".to_owned()), ..probe(1.0) };
            (c.a.latency_probe, c.b.latency_probe) = (Some(probe(1.0)), Some(failed));
        },
        "not whole: busy",
    );
    let of_few = |c: &mut Comparison| {
        let few = |ms: f64| LatencyProbe { n: 3, ..probe(ms) };
        (c.a.latency_probe, c.b.latency_probe) = (Some(few(1.0)), Some(few(400.0)));
    };
    not_compared(&of_few, "3 recalls do not tell a p95");
    let critical = "version: 1\nlatency: [{phase: probe, percentile: p50, ratio: 1.1, level: critical}]";
    let critical: Policy = serde_norway::from_str(critical).expect("is a policy");
    let mut slower = comparison();
    of_few(&mut slower);
    let report = gate(&summary(), Some(("base".to_owned(), slower)), &critical, GateFlags::default());
    assert_eq!(report.exit_code, 6, "what is critical and was not measured did not pass: {report:?}");
    // what was measured under load is not compared whatever a policy asks for
    let policy: Policy =
        serde_norway::from_str("version: 1\nlatency: [{phase: recall, percentile: p95, ratio: 1.1, level: critical}]")
            .expect("is a policy");
    assert_eq!(policy.check(), Ok(()));
    let mut loaded = comparison();
    let p = |p95: f64| Some(bench_proto::summary::Percentiles { p50: 1.0, p95, p99: p95, n: 10 });
    (loaded.a.latency_ms.recall, loaded.b.latency_ms.recall) = (p(0.1), p(470.0));
    let report = gate(&summary(), Some(("base".to_owned(), loaded)), &policy, GateFlags::default());
    let check = report.checks.iter().find(|check| check.rule == "latency:recall:p95").expect("is named");
    assert_eq!((check.outcome, report.exit_code), (CheckOutcome::NotChecked, 0));
}

#[test]
fn floors_need_no_baseline_and_hold_for_the_unrounded_score() {
    let summary = summary();
    let value = summary.headline.value.expect("has a score");
    let with = |floor: f64| {
        let policy = Policy { floors: Floors { overall: Some(floor), ..Floors::default() }, ..Policy::default() };
        gate(&summary, None, &policy, GateFlags::default()).exit_code
    };
    assert_eq!((with(value), with(value + 1e-6), with(value - 1e-6)), (0, 1, 0));
}

#[test]
fn a_run_that_gets_next_to_nothing_right_fails_although_its_baseline_was_no_better() {
    let ended = |value: Option<f64>, better: Better, policy: &Policy| {
        let (mut summary, comparison) = (summary(), comparison());
        summary.headline.value = value;
        summary.scores.iter_mut().for_each(|score| score.better = better);
        let report = gate(&summary, Some(("b".to_owned(), comparison)), policy, GateFlags::default());
        let check = report.checks.iter().find(|check| check.rule == "floor:least");
        (report.exit_code, check.map(|check| check.outcome))
    };
    let shipped = Policy::default();
    let [higher, lower] = [Better::Higher, Better::Lower];
    assert_eq!(ended(Some(0.01), higher, &shipped), (0, Some(CheckOutcome::Pass)));
    assert_eq!(ended(Some(0.009), higher, &shipped), (1, Some(CheckOutcome::Regression)));
    assert_eq!(ended(Some(0.0), lower, &shipped), (0, Some(CheckOutcome::Pass)), "the best there is");
    assert_eq!(ended(Some(0.995), lower, &shipped), (1, Some(CheckOutcome::Regression)));
    assert_eq!(ended(None, higher, &shipped).1, None);
    let without = Policy { floors: Floors::default(), ..Policy::default() };
    assert_eq!(ended(Some(0.0), higher, &without), (0, None));
    let only =
        Policy { floors: shipped.floors.clone(), overall: None, category: None, retrieval: None, ..shipped.clone() };
    let only = Policy { latency: Vec::new(), cost: None, calls: None, ..only };
    assert_eq!(only.check(), Ok(()), "it is a rule");
    let mut broken = summary();
    broken.headline.value = Some(0.0);
    let floor = Policy { floors: Floors { overall: Some(0.0), ..shipped.floors.clone() }, ..only };
    assert_eq!(gate(&broken, None, &floor, GateFlags::default()).exit_code, 1, "without a baseline as well");
    assert!(!shipped.stands_alone(), "a gate needs a baseline or a floor of somebody's own");
}

#[test]
fn a_floor_fails_without_a_score_and_shows_how_far_it_was_missed() {
    let check = |value: Option<f64>, floors: Floors| {
        let mut summary = summary();
        summary.headline.value = value;
        let report = gate(&summary, None, &Policy { floors, ..Policy::default() }, GateFlags::default());
        (report.exit_code, report.checks[0].detail.clone())
    };
    let overall = |floor| Floors { overall: Some(floor), ..Floors::default() };
    assert_eq!(check(None, overall(0.9)), (1, "there is no score to hold against 90.00 %".to_owned()));
    let category = Floors { category: [("unknown".to_owned(), 0.5)].into(), ..Floors::default() };
    assert_eq!(check(Some(1.0), category), (1, "there is no score to hold against 50.00 %".to_owned()));
    assert_eq!(check(Some(0.888_87), overall(0.8889)), (1, "88.887 % is below 88.890 %".to_owned()));
    assert_eq!(check(Some(0.5), overall(0.8889)), (1, "50.00 % is below 88.89 %".to_owned()));
}

#[test]
fn figures_that_are_copied_from_the_baseline_pass_no_gate() {
    let report = gated(|comparison| {
        comparison.copied = true;
        comparison.copied_of = Some("g3-r1".to_owned());
    });
    let check = report.checks.iter().find(|check| check.rule == "measured").expect("is a line");
    assert_eq!((report.exit_code, check.outcome), (6, CheckOutcome::Inconclusive));
    assert!(check.detail.contains("(made by g3-r1)"), "{}", check.detail);
    assert_eq!(gated(|_| {}).exit_code, 0);
}

#[test]
fn an_invalid_run_passes_no_gate() {
    let mut invalid = summary();
    invalid.run.verdict = Verdict::Invalid;
    invalid.run.reasons = vec!["coverage".to_owned()];
    assert_eq!(gate(&invalid, None, &Policy::default(), GateFlags::default()).exit_code, 5);
}

#[test]
fn figures_are_found_by_their_path_also_where_names_hold_points() {
    let report = serde_json::json!({
        "usage": {"total": {"usd": 1.5}},
        "scores": [{"metric": "judge", "micro": 0.5}, {"metric": "judge.part", "by_category": [{"category": "a.b", "value": 0.25}]}],
    });
    let at = |path: &str| checks::figure_at(&report, path);
    assert_eq!(at("usage.total.usd"), Some(1.5));
    assert_eq!(at("scores.judge.micro"), Some(0.5));
    assert_eq!(at("scores.judge.part.by_category.a.b.value"), Some(0.25));
    assert_eq!((at("scores.judge"), at("usage.total.none"), at("")), (None, None, None));
}

#[test]
fn figures_of_the_meter_are_found_by_stage_model_and_bank() {
    let of = |usd: f64| MeteredFigures { usd, ..MeteredFigures::default() };
    let model =
        |model: &str, service: Service, usd: f64| MeteredModel { model: model.into(), service, figures: of(usd) };
    let bank = |bank: Option<&str>, usd: f64| MeteredBank {
        bank: bank.map(str::to_owned),
        figures: of(usd),
        usd_filling: Some(usd / 2.0),
        usd_filling_range: None,
    };
    let mut run = summary();
    run.metered = Some(MeteredSummary {
        by_stage: vec![MeteredStage { stage: Stage::Retain, figures: of(1.0) }],
        by_model: vec![
            model("gpt-4.1-mini", Service::Chat, 4.0),
            model("text-embedding-3-small", Service::Embeddings, 2.0),
            model("gpt-4.1-mini", Service::Responses, 0.5),
        ],
        by_bank: vec![bank(Some("sim-1-0"), 8.0), bank(None, 16.0)],
        ..MeteredSummary::default()
    });
    let report = serde_json::to_value(&run).expect("serialises");
    let at = |path: &str| checks::figure_at(&report, path);
    assert_eq!(at("metered.by_stage.retain.usd"), Some(1.0));
    assert_eq!(at("metered.by_model.text-embedding-3-small.usd"), Some(2.0));
    assert_eq!(at("metered.by_model.gpt-4.1-mini.usd"), Some(4.5), "of all that it was asked for");
    assert_eq!([at("metered.by_bank.sim-1-0.usd"), at("metered.by_bank.sim-1-0.usd_filling")], [Some(8.0), Some(4.0)]);
    assert_eq!([at("metered.by_model.gpt-4.usd"), at("metered.by_bank.null.usd")], [None; 2]);
}

#[test]
fn more_calls_for_a_question_are_said() {
    let report = gated(|c| {
        c.a.usage.answer.calls = 100;
        (c.b.usage.answer.calls, c.b.usage.judge.cached_calls) = (100, 200);
    });
    let check = report.checks.iter().find(|check| check.rule == "calls").expect("is checked");
    assert_eq!((check.outcome, report.exit_code), (CheckOutcome::Regression, 0), "advisory in the shipped policy");
    let change = check.change.as_ref().expect("has figures");
    assert!(
        (change.current / change.baseline - 3.0).abs() < 1e-12 && change.delta_percent == Some(200.0),
        "{change:?}"
    );
}

#[test]
fn more_than_none_is_beyond_every_ratio_and_what_is_not_known_does_not_pass() {
    let critical = "{version: 1, calls: {ratio: 1.1, level: critical}, cost: {ratio: 1.1, level: critical}}";
    let critical: Policy = serde_norway::from_str(critical).expect("is a policy");
    let ended = |before: (u64, f64), after: (u64, f64), is_known: bool| {
        let mut comparison = comparison();
        for (run, (calls, usd)) in [(&mut comparison.a, before), (&mut comparison.b, after)] {
            run.usage = UsageSummary::default();
            run.usage.answer.calls = calls;
            run.usage.total.usd_list = usd;
            run.usage.booked = is_known.then(Booked::default);
        }
        let report = gate(&summary(), Some(("base".to_owned(), comparison)), &critical, GateFlags::default());
        let of_rule = |rule: &str| report.checks.iter().find(|check| check.rule == rule).expect("is a line").outcome;
        (report.exit_code, [of_rule("calls"), of_rule("cost")])
    };
    let [pass, regression, inconclusive] =
        [CheckOutcome::Pass, CheckOutcome::Regression, CheckOutcome::Inconclusive].map(|outcome| [outcome; 2]);
    assert_eq!(ended((0, 0.0), (400, 0.1), true), (1, regression));
    assert_eq!(ended((0, 0.0), (0, 0.0), true), (0, pass));
    assert_eq!(ended((400, 0.1), (0, 0.0), true), (0, pass));
    assert_eq!(ended((400, 0.1), (400, 0.1), false), (0, pass), "what is not 0 is known");
    assert_eq!(ended((0, 0.0), (400, 0.1), false), (6, inconclusive));
    assert_eq!(ended((400, 0.1), (0, 0.0), false), (6, inconclusive));
    let of_system = gated(|c| {
        c.a.usage = UsageSummary { booked: Some(Booked::default()), ..UsageSummary::default() };
        c.a.usage.unknown = vec![Phase::Recall];
        c.b.usage.answer.calls = 400;
    });
    let check = of_system.checks.iter().find(|check| check.rule == "calls").expect("is a line");
    assert_eq!((check.outcome, of_system.exit_code), (CheckOutcome::NotChecked, 0), "advisory: {}", check.detail);
}

#[test]
fn floors_and_ceilings_of_repeats_hold_for_their_means() {
    let policy: Policy = serde_norway::from_str(
        "{version: 1, floors: {category: {temporal: 0.5}, figures: {outcomes.coverage: 0.8}}, ceilings: {usage.total.usd: 2}}",
    )
    .expect("is a policy");
    let repeat = |temporal: Option<f64>, usd: f64| {
        let mut run = summary();
        let categories = run.scores.first_mut().map(|score| &mut score.by_category).into_iter().flatten();
        categories.filter(|category| category.category == "temporal").for_each(|category| category.value = temporal);
        (run.outcomes.coverage, run.usage.total.used.usd) = (Some(0.9), usd);
        run
    };
    let ended = |repeats: &[Summary]| gate_of_repeats(&summary(), repeats, None, &policy, GateFlags::default());
    let all = ended(&[repeat(Some(0.3), 1.0), repeat(Some(0.8), 3.0)]);
    assert_eq!(all.exit_code, 0, "{all:#?}");
    assert_eq!(all.checks[0].detail, "55.00 % is not below 50.00 % (mean of 2 repeats)");
    let dear = ended(&[repeat(Some(0.3), 1.0), repeat(Some(0.8), 3.5)]);
    assert_eq!(
        (dear.exit_code, dear.checks[2].detail.as_str()),
        (1, "2.25 is beyond the ceiling 2 (mean of 2 repeats)")
    );
    assert_eq!(ended(&[repeat(Some(0.3), 1.0), repeat(Some(0.6), 1.0)]).exit_code, 1, "45 % of the mean");
    let lacking = ended(&[repeat(Some(0.9), 1.0), repeat(None, 1.0)]);
    assert_eq!((lacking.exit_code, lacking.checks[0].outcome), (6, CheckOutcome::Inconclusive));
    assert!(lacking.checks[0].detail.starts_with("1 of 2 repeats have no score"), "{lacking:#?}");
    assert_eq!(ended(&[repeat(None, 1.0), repeat(None, 1.0)]).exit_code, 1, "as of one run that has none");
}

/// What two runs came to by the rules `cost` and `calls`, both critical. Each had 100 calls of the runner for a dollar.
fn spent(a: impl Fn(&mut ComparedRun), b: impl Fn(&mut ComparedRun)) -> (u8, [Check; 2]) {
    let critical = "{version: 1, calls: {ratio: 1.25, level: critical}, cost: {ratio: 1.25, level: critical}}";
    let critical: Policy = serde_norway::from_str(critical).expect("is a policy");
    let mut comparison = comparison();
    let changes: [&dyn Fn(&mut ComparedRun); 2] = [&a, &b];
    for (run, change) in [&mut comparison.a, &mut comparison.b].into_iter().zip(changes) {
        run.usage = UsageSummary { booked: Some(Booked::default()), ..UsageSummary::default() };
        (run.usage.answer.calls, run.usage.total.usd_list, run.metered) = (100, 1.0, None);
        change(run);
    }
    let report = gate(&summary(), Some(("base".to_owned(), comparison)), &critical, GateFlags::default());
    let of_rule = |rule: &str| report.checks.iter().find(|check| check.rule == rule).cloned().expect("is a line");
    (report.exit_code, ["cost", "calls"].map(of_rule))
}

fn memory_cost(usd: f64) -> MemoryCost {
    MemoryCost { usd, usd_per_1000_turns: None, usd_per_question: None }
}

/// A memory that the meter has seen so many calls of, each for a cent.
fn metered(run: &mut ComparedRun, calls: u64) {
    run.metered = Some(memory_cost(calls as f64 / 100.0));
    let own = UsageFigures { calls, ..UsageFigures::default() };
    run.usage.booked = Some(Booked { metered: Some(own), ..Booked::default() });
}

/// A built-in system, which calls no model.
fn free(run: &mut ComparedRun) {
    run.usage.memory = Some(memory_cost(0.0));
}

/// A system of another process that tells nothing.
fn untold(run: &mut ComparedRun) {
    run.usage.unknown = vec![Phase::Retain, Phase::Recall];
}

#[test]
fn a_metered_memory_is_held_against_the_nothing_of_a_built_in_one() {
    let is_near = |value: Option<f64>, expected: f64| value.is_some_and(|value| (value - expected).abs() < 1e-12);
    let (exit_code, checks) = spent(free, |run| metered(run, 50));
    assert_eq!(exit_code, 1, "{checks:?}");
    for check in &checks {
        assert_eq!(check.outcome, CheckOutcome::Regression, "{}", check.detail);
        assert!(is_near(check.value, 1.5), "{}", check.detail);
        assert!(check.change.as_ref().is_some_and(|change| change.metric.contains("metered")), "{check:?}");
    }
    let (exit_code, checks) = spent(|run| metered(run, 50), free);
    assert_eq!(exit_code, 0, "{checks:?}");
    assert!(checks.iter().all(|check| is_near(check.value, 1.0 / 1.5)), "{checks:?}");
    // and a dearer one against a cheaper one, as ever
    let (exit_code, checks) = spent(|run| metered(run, 50), |run| metered(run, 200));
    assert!(exit_code == 1 && checks.iter().all(|check| is_near(check.value, 2.0)), "{checks:?}");
}

#[test]
fn what_the_memory_of_one_side_used_and_nobody_knows_leaves_a_critical_rule_undecided() {
    let ended = |a: fn(&mut ComparedRun), b: fn(&mut ComparedRun), whose: &str| {
        let (exit_code, checks) = spent(a, b);
        for check in checks {
            let said = format!("it is not known what the memory system of the {whose} used itself");
            assert!(check.detail.starts_with(&said), "{}", check.detail);
            assert_eq!((check.outcome, check.change, exit_code), (CheckOutcome::Inconclusive, None, 6));
        }
    };
    let dear = |run: &mut ComparedRun| metered(run, 300);
    // one that tells nothing, imported grades, a meter that saw nothing
    let imported = |run: &mut ComparedRun| run.usage.booked = None;
    let unseen = |run: &mut ComparedRun| {
        untold(run);
        run.metered = Some(memory_cost(0.0));
    };
    let all: [fn(&mut ComparedRun); 3] = [untold, imported, unseen];
    for unknown in all {
        ended(unknown, dear, "baseline");
        ended(dear, unknown, "run");
    }
    ended(free, untold, "run");
    ended(untold, free, "baseline");
}

#[test]
fn where_neither_memory_was_metered_the_runners_own_figures_are_compared_and_it_is_said_so() {
    let times = |change: fn(&mut ComparedRun)| {
        let (exit_code, checks) = spent(change, |run| {
            change(run);
            (run.usage.answer.calls, run.usage.total.usd_list) = (120, 1.2);
        });
        assert_eq!(exit_code, 0, "{checks:?}");
        assert!(checks.iter().all(|check| check.value.is_some_and(|value| (value - 1.2).abs() < 1e-12)), "{checks:?}");
        checks.map(|check| check.detail)
    };
    let said = "without what the memory systems use themselves, which is not known of both";
    assert!(times(untold).iter().all(|detail| detail.contains(said)), "{:?}", times(untold));
    assert!(times(free).iter().all(|detail| !detail.contains(said)), "{:?}", times(free));
    // a fork has nothing of the filling that its source does not know of
    let (exit_code, checks) = spent(untold, |_| {});
    assert_eq!(exit_code, 0, "{checks:?}");
    assert!(checks.iter().all(|check| check.detail.contains(said)), "{checks:?}");
}

#[test]
fn broken_policies_name_their_rule() {
    let broken = |yaml: &str| {
        let policy: Policy = serde_norway::from_str(yaml).expect("is YAML");
        policy.check().expect_err("is refused")
    };
    assert!(broken("version: 2").contains("version"));
    assert!(broken("version: 1\noverall: { tolerance: 2, level: critical }").contains("2 points are 0.02"));
    assert!(broken("version: 1\nfloors: { overall: 90 }").contains("floors.overall"));
    assert!(broken("version: 1\nceilings: { '': 1 }").contains("path"));
    assert!(broken("version: 1\ncalls: { ratio: 0, level: advisory }").contains("calls"));
    assert!(serde_norway::from_str::<Policy>("version: 1\ntolerence: 1").is_err(), "unknown keys are errors");
}

#[test]
fn what_was_not_measured_does_not_pass_a_critical_rule_and_is_a_line() {
    let policy = |text: &str| -> Policy { serde_norway::from_str(text).expect("a policy") };
    let with = |text: &str, change: fn(&mut Comparison)| {
        let mut comparison = comparison();
        change(&mut comparison);
        gate(&summary(), Some(("base".to_owned(), comparison)), &policy(text), GateFlags::default())
    };
    let line = |report: &GateReport, rule: &str| -> (CheckOutcome, String) {
        let check = report.checks.iter().find(|check| check.rule == rule).unwrap_or_else(|| panic!("no line {rule}"));
        (check.outcome, check.detail.clone())
    };
    // a category that there is not: a slip of the pen, or left out of the run
    let absent = with("{version: 1, categories: {tempral: {tolerance: 0.1, level: critical}}}", |_| ());
    let (outcome, detail) = line(&absent, "category:tempral");
    assert_eq!((outcome, absent.exit_code), (CheckOutcome::Inconclusive, 6));
    assert!(detail.contains("temporal"), "{detail}");
    let retrieval = with("{version: 1, retrieval: {tolerance: 0.1, level: critical}}", |c| c.retrieval.clear());
    assert_eq!((line(&retrieval, "retrieval").0, retrieval.exit_code), (CheckOutcome::Inconclusive, 6));
    let supporting = with("{version: 1, retrieval: {tolerance: 0.1, level: supporting}}", |c| c.retrieval.clear());
    assert_eq!((line(&supporting, "retrieval").0, supporting.exit_code), (CheckOutcome::NotChecked, 0));
    let less = gated(|c| c.unpaired.only_a = 446);
    let (outcome, detail) = line(&less, "left out");
    assert_eq!((outcome, less.exit_code), (CheckOutcome::NotChecked, 0));
    assert!(detail.contains("446 have a score in the baseline only"), "{detail}");
    let whole = gated(|c| c.unpaired = bench_proto::comparison::Unpaired::default());
    assert!(whole.checks.iter().all(|check| check.rule != "left out"));
    assert!(policy("{version: 1}").check().is_err_and(|problem| problem.contains("no rule")));
}
