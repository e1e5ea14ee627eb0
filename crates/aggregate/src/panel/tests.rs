use bench_proto::{
    facts::QuestionFacts,
    ids::TaskKey,
    panel::JudgedSample,
    step::{StepFacts, StepNo, StoredStep},
    summary::Summary,
};

use super::*;
use crate::{
    Aggregator,
    aggregator::tests::{input, question},
    draws::{Chance, Effects, LOCOMO_BANKS, Spread},
};

/// Questions in three strata and ten banks, all graded by one judge and `sampled` of them by a better one; the better one accepts
/// as many as banks are spread, and the first says the same in a share `agrees` of the questions. With what the better one would say
/// of all.
fn draw(chance: &mut Chance, spread: &Spread, agrees: f64, sampled: usize) -> (Vec<Pair>, f64) {
    let (mut pairs, mut better) = (Vec::new(), Vec::new());
    for (bank, n) in (0..).zip(LOCOMO_BANKS) {
        let p = spread.draw(chance);
        for i in 0..n {
            let y = chance.verdict(p);
            let of_all = if chance.verdict(agrees) > 0.5 { y } else { 1.0 - y };
            pairs.push(Pair { stratum: (i % 3) as u32, bank, of_all, of_sample: None });
            better.push(y);
        }
    }
    // a sample by lot stands for one by rank
    let mut places: Vec<usize> = (0..pairs.len()).collect();
    for _ in 0..sampled {
        let place = places.swap_remove(chance.below(places.len()));
        pairs[place].of_sample = Some(better[place]);
    }
    let of_all = better.iter().sum::<f64>() / better.len() as f64;
    (pairs, of_all)
}

fn spread(p: f64) -> Spread {
    Spread::new(Effects::LogitNormal, p, 0.02)
}

fn equal() -> BTreeMap<u32, f64> {
    (0..3).map(|stratum| (stratum, 1.0)).collect()
}

/// (stratum, bank, grade of the judge of all, grade of the judge of the sample or -1).
const PAIRS: [(u32, u32, u32, i32); 24] = [
    (0, 0, 1, 1),
    (0, 1, 1, -1),
    (0, 2, 1, 1),
    (0, 3, 1, -1),
    (0, 0, 0, -1),
    (0, 1, 1, 1),
    (0, 2, 1, 1),
    (0, 3, 0, -1),
    (0, 0, 1, 0),
    (0, 1, 0, -1),
    (0, 2, 1, 1),
    (0, 3, 1, -1),
    (0, 0, 0, 0),
    (0, 1, 0, -1),
    (1, 2, 1, 1),
    (1, 3, 1, 1),
    (1, 0, 1, -1),
    (1, 1, 1, -1),
    (1, 2, 0, 0),
    (1, 3, 1, -1),
    (1, 0, 1, 1),
    (1, 1, 1, -1),
    (1, 2, 1, -1),
    (1, 3, 0, -1),
];

#[test]
fn the_estimate_is_that_of_the_formulas_written_out() {
    // weights 0.75 and 0.25; variances, slope and errors by loops in Python, quantiles of t by Simpson's rule
    let of = |(stratum, bank, of_all, of_sample): (u32, u32, u32, i32)| Pair {
        stratum,
        bank,
        of_all: f64::from(of_all),
        of_sample: (of_sample >= 0).then(|| f64::from(of_sample)),
    };
    let pairs: Vec<Pair> = PAIRS.into_iter().map(of).collect();
    let got = estimates(&pairs, &BTreeMap::from([(0, 0.75), (1, 0.25)])).expect("has both grades");
    let near = |got: f64, expected: f64| assert!((got - expected).abs() < 1e-7, "{got} instead of {expected}");
    assert_eq!((got.n, got.sampled, got.clusters), (24, 11, 4));
    near(got.alone.value, 0.723_214_285_714_285_7);
    near(got.helped.lambda, 0.881_656_804_733_727_9);
    near(got.correlation.expect("both vary"), 0.782_551_056_895_619_9);
    near(got.helped.value, 0.592_540_152_155_536_9);
    near(got.helped.naive_half, 0.306_080_131_439_558_2);
    near(got.alone.naive_half, 0.343_363_140_781_866_14);
    near(got.helped.these_half, 0.191_663_482_297_865_76);
    near(got.alone.half.expect("has banks"), 0.503_225_945_920_607_2);
    near(got.all_half.expect("has banks"), 0.364_158_647_460_056_1);
    near(got.helped.half.expect("has banks"), 0.453_117_014_921_003_5);
}

#[test]
fn intervals_of_a_helped_sample_hold_the_truth_and_are_never_wider_than_the_sample_alone() {
    for (p, agrees, sampled, seed) in [(0.7, 0.9, 200, 1), (0.9, 0.95, 300, 2), (0.5, 0.75, 100, 3), (0.6, 0.5, 200, 4)]
    {
        let (mut chance, spread) = (Chance::new(seed), spread(p));
        let (draws, mut holds, mut these_hold, mut off) = (2_000, 0, 0, 0.0);
        let (mut width, mut alone_width, mut all_width) = (0.0, 0.0, 0.0);
        for _ in 0..draws {
            let (pairs, of_all) = draw(&mut chance, &spread, agrees, sampled);
            let got = estimates(&pairs, &equal()).expect("has both grades");
            let (half, alone) = (got.helped.half.expect("has banks"), got.alone.half.expect("has banks"));
            assert!(half <= alone && got.helped.naive_half <= got.alone.naive_half, "{got:?}");
            holds += u32::from((got.helped.value - p).abs() <= half);
            these_hold += u32::from((got.helped.value - of_all).abs() <= got.helped.these_half);
            off += got.helped.value - p;
            width += half;
            alone_width += alone;
            all_width += got.all_half.expect("has banks");
        }
        let share = |count: u32| f64::from(count) / f64::from(draws);
        println!(
            "p {p}, agrees {agrees}, {sampled}: holds {}, of these {}, width {:.3} of {:.3}, all {:.3}",
            share(holds),
            share(these_hold),
            2.0 * width / f64::from(draws),
            2.0 * alone_width / f64::from(draws),
            2.0 * all_width / f64::from(draws)
        );
        assert!((0.935..=0.995).contains(&share(holds)), "p {p}: {}", share(holds));
        assert!((0.925..=0.99).contains(&share(these_hold)), "p {p}: {}", share(these_hold));
        assert!((off / f64::from(draws)).abs() < 0.004, "p {p}: off by {}", off / f64::from(draws));
        let (gained, least) = (width / alone_width, if agrees > 0.85 { 0.85 } else { 1.0 });
        assert!(gained <= least, "p {p}: {gained} of the width of the sample alone");
    }
}

#[test]
fn a_helper_that_says_nothing_is_left_out_and_one_that_always_agrees_gives_the_width_of_all() {
    let mut chance = Chance::new(31);
    let (mut pairs, _) = draw(&mut chance, &spread(0.7), 0.9, 200);
    for pair in &mut pairs {
        pair.of_all = 1.0;
    }
    let got = estimates(&pairs, &equal()).expect("has both grades");
    assert_eq!((got.helped.lambda, got.helped, got.correlation), (0.0, got.alone, None));
    let (pairs, _) = draw(&mut chance, &spread(0.7), 1.0, 200);
    let got = estimates(&pairs, &equal()).expect("has both grades");
    let (half, all) = (got.helped.half.expect("has banks"), got.all_half.expect("has banks"));
    assert!((got.helped.lambda - 1.0).abs() < 1e-9 && half < 1.3 * all && half >= all, "{got:?}");
    // two hundred equal verdicts are no proof that the two never differ
    assert!(got.helped.these_half > 0.01, "{got:?}");
    assert_eq!(estimates(&pairs[..1], &equal()), None);
}

/// A run of 60 questions that several judges grade: a question's number says what each of them makes of it.
fn judged(judges: usize, sampled: Option<u32>) -> Summary {
    let mut input = input(60);
    input.spec.votes = 1;
    let judge = input.spec.judges[0].clone();
    input.spec.judges = vec![judge; judges];
    let ids: Vec<(String, String)> = (0..60).map(question).map(|facts| (facts.category, facts.question_id)).collect();
    let all = || ids.iter().map(|(category, id)| (category.as_str(), id.as_str()));
    let sample = sampled.map(|judge| JudgedSample::choose(judge, 20, all()));
    input.spec.judging.samples = sample.clone().into_iter().collect();
    let mut aggregator = Aggregator::new(input);
    for i in 0..60_u64 {
        let facts = question(i);
        let plan = |judge: u32| {
            sample.as_ref().is_none_or(|s| s.judge != judge || s.holds(&facts.category, &facts.question_id))
        };
        let grade = |judge: u64| f64::from(u8::from(!(i + judge).is_multiple_of(4)));
        let mut scores = Vec::new();
        for judge in (0..judges as u32).filter(|judge| plan(*judge)) {
            scores.push((bench_proto::facts::judge_metric(judge as usize), grade(judge.into())));
            let usage = bench_proto::call::Usage { cost: PicoUsd(1_000_000_000), ..Default::default() };
            let task = TaskKey::judge(facts.task.bank(), facts.task.index(), judge, 0);
            let score = Some(grade(judge.into()));
            let step = StepFacts::Judged { score, parts: vec![], usage, timing: Default::default() };
            aggregator.add_judge_step(&StoredStep { task, step: StepNo::JUDGE, facts: step });
        }
        aggregator.add(&QuestionFacts { scores, outcome: bench_proto::facts::Outcome::Scored, ..facts });
    }
    aggregator.finish(Vec::<String>::new()).summary
}

#[test]
fn three_judges_have_a_mean_a_majority_and_one_that_differs() {
    let panel = judged(3, None).panel.expect("has several");
    let (mean, majority) = (panel.mean.expect("is there"), panel.majority.expect("is there"));
    // of four questions in a row one is passed by all, and each of the others fails with one judge
    assert_eq!((mean.n, majority.n, majority.value), (60, 60, Some(1.0)));
    assert!((mean.value.expect("has one") - 0.75).abs() < 1e-12 && mean.ci95.is_some());
    let differing: Vec<(&str, u64, Option<f64>, Option<f64>)> =
        panel.differing.iter().map(|d| (d.metric.as_str(), d.n, d.differs, d.accepts_alone)).collect();
    // the other two differ on half of the questions, and of the rest each judge fails half
    let expected = (30, Some(0.5), Some(0.0));
    assert_eq!(differing, ["judge", "judge-2", "judge-3"].map(|name| (name, expected.0, expected.1, expected.2)));
    assert!(panel.sampled.is_empty());
}

#[test]
fn two_judges_have_a_mean_and_one_alone_no_panel() {
    let panel = judged(2, None).panel.expect("has several");
    assert!(panel.mean.is_some() && panel.majority.is_none() && panel.differing.is_empty());
    // each fails another fifteen of the 60 questions: no points apart, and an interval all the same
    let spread = panel.spread.expect("two graded all");
    assert!(spread.value.abs() < 1e-12 && spread.n == 60, "{spread:?}");
    assert_eq!((spread.low_judge.as_str(), spread.high_judge.as_str()), ("judge", "judge-2"));
    let ci = spread.ci95.expect("has one");
    assert!(ci.low < -0.02 && ci.high > 0.02, "{ci:?}");
    assert_eq!(judged(1, None).panel, None);
}

#[test]
fn a_stratum_counts_for_the_part_of_it_that_is_graded() {
    // twenty of thirty questions ended with scores
    let category = Category { number: 0, name: "a".to_owned(), population: Some(400), asked: 30, lost: 10 };
    assert_eq!([20, 5, 0].map(|graded| weight(Estimator::Weighted, &category, graded)), [400.0, 100.0, 0.0]);
    assert_eq!([20, 5].map(|graded| weight(Estimator::Mean, &category, graded)), [20.0, 5.0]);
}

#[test]
fn a_judge_of_a_sample_is_told_with_widths_and_prices() {
    let summary = judged(2, Some(1));
    let panel = summary.panel.expect("has several");
    assert_eq!((panel.mean, panel.spread, panel.sampled.len()), (None, None, 1));
    let judge = &panel.sampled[0];
    assert_eq!((judge.metric.as_str(), judge.helped_by.as_str(), judge.n, judge.sampled), ("judge-2", "judge", 60, 20));
    // 60 and 20 judgements of a tenth of a cent
    assert!((judge.usd - 0.08).abs() < 1e-12 && (judge.all_usd - 0.06).abs() < 1e-12, "{judge:?}");
    assert!(judge.width <= judge.alone_width && judge.all_width < judge.alone_width, "{judge:?}");
    let (ci, value) = (judge.ci95.as_ref().expect("has banks"), judge.value.expect("has one"));
    assert!(ci.low < value && value < ci.high && judge.these_ci95.is_some());
    // what the second judge has graded is what stands among the metrics
    let score = summary.scores.iter().find(|score| score.metric == "judge-2").expect("is a metric");
    assert_eq!(score.n, 20);
}
