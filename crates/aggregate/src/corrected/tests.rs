use bench_proto::profile::Part;

use super::*;
use crate::draws::{Chance, Effects, LOCOMO_BANKS, Spread};

const OWN: [&str; 2] = ["own-wrong", "own-right"];

fn planted(wrong: &[&str], right: &[&str], answers_of: Option<&str>) -> PlantedSpec {
    let named = |kinds: &[&str]| kinds.iter().map(|kind| (*kind).to_owned()).collect();
    PlantedSpec {
        version: 0,
        source: None,
        answers_of: answers_of.map(str::to_owned),
        wrong: named(wrong),
        right: named(right),
    }
}

/// A judged answer: category, bank, whether it is right, and the grade.
type Answer = (u32, u32, bool, f64);

fn audited(answers: &[Answer], kinds: [&str; 2]) -> Vec<AuditedAnswer> {
    let of = |(category, bank, right, score): &Answer| AuditedAnswer {
        kind: kinds[usize::from(*right)].to_owned(),
        category: format!("c{category}"),
        bank: format!("b{bank}"),
        score: *score,
    };
    answers.iter().map(of).collect()
}

/// Headline and scores of judged answers: a plain mean.
fn scored(answers: &[Answer]) -> (Headline, MetricScore) {
    let cells = cells_of(answers.iter().map(|(category, bank, _, score)| (*category, *bank, *score)), Scale::PLAIN);
    let numbers: BTreeSet<u32> = answers.iter().map(|answer| answer.0).collect();
    let category = |number: u32| {
        let n = answers.iter().filter(|answer| answer.0 == number).count() as u64;
        Category { number, name: format!("c{number}"), population: Some(n), asked: n, lost: 0 }
    };
    let categories: Vec<Category> = numbers.into_iter().map(category).collect();
    let sampling = Sampling { estimator: Estimator::Mean, better: Better::Higher, by_chance: false, census: true };
    let all = (&Part::default(), categories.as_slice());
    let headline = crate::sections::headline("judge", &cells, all, sampling, 1);
    let score = crate::score::metric_score("judge", &cells, (&categories, &categories), sampling, Scale::PLAIN);
    (headline, score)
}

/// Answers of ten banks: a share is right, spread over the banks, and a judge accepts right ones and wrong ones with chances of
/// their own that move with the bank.
fn draw(chance: &mut Chance, questions: u64, right: &Spread, accepts: [f64; 2]) -> Vec<Answer> {
    let mut answers = Vec::new();
    for (bank, n) in (0..).zip(LOCOMO_BANKS) {
        let p = right.draw(chance);
        let moved = 0.02 * chance.normal();
        for i in 0..n * questions / LOCOMO_BANKS.iter().sum::<u64>() {
            let is_right = chance.verdict(p) > 0.5;
            let accepted = (accepts[usize::from(is_right)] + moved).clamp(0.0, 1.0);
            answers.push(((i % 3) as u32, bank, is_right, chance.verdict(accepted)));
        }
    }
    answers
}

/// Shares of right answers in banks.
fn right(p: f64) -> Spread {
    Spread::new(Effects::LogitNormal, p, 0.02)
}

/// Some of the answers, by lot.
fn some(answers: &[Answer], of: usize, chance: &mut Chance) -> Vec<Answer> {
    let mut left: Vec<Answer> = answers.to_vec();
    (0..of.min(answers.len())).map(|_| left.swap_remove(chance.below(left.len()))).collect()
}

fn correct(answers: &[Answer], graded: &[Answer]) -> CorrectedScore {
    let (headline, score) = scored(answers);
    let (planted, answers) = (planted(&OWN[..1], &OWN[1..], Some("run")), audited(graded, OWN));
    corrected(&headline, &score, &Audit { run: "audit", planted: &planted, answers: &answers })
}

#[test]
fn the_formula_is_that_of_rogan_and_gladen() {
    // a table of 1,000: 62 % accepted by a judge with sensitivity 0.9 and specificity 0.8
    assert!((share_of_right(0.62, 0.9, 0.8) - 0.6).abs() < 1e-12);
    let bounds = |low, high| Interval { low, high, method: String::new() };
    let (q, se, sp) = (bounds(0.58, 0.66), bounds(0.86, 0.93), bounds(0.72, 0.86));
    let got = squared_distances((0.62, &q), (0.9, &se), (0.8, &sp), "x").expect("has one");
    // python: sqrt(sum(min(0, f(bound) - 0.6)^2)) and the same of what is above
    assert!((got.low - 0.519_147_097_164_254_3).abs() < 1e-12, "{got:?}");
    assert!((got.high - 0.674_731_854_579_779).abs() < 1e-12, "{got:?}");
}

#[test]
fn an_interval_beyond_what_a_share_can_be_is_none_and_never_one_without_width() {
    let bounds = |low, high| Interval { low, high, method: String::new() };
    let (se, sp) = ((0.94, &bounds(0.88, 0.98)), (0.77, &bounds(0.66, 0.88)));
    let of = |q: f64, low: f64, high: f64| squared_distances((q, &bounds(low, high)), se, sp, "x");
    assert_eq!(of(0.025, 0.01, 0.05), None, "all of it is below 0");
    assert_eq!(of(0.95, 0.93, 0.97).map(|ci| ci.high), Some(1.0), "a part of it is above 1");
    let edge = of(0.2, 0.15, 0.25).expect("reaches above 0");
    assert!(share_of_right(0.2, se.0, sp.0) < 0.0 && edge.low == 0.0 && edge.high > 0.05, "{edge:?}");

    // a judge that accepts two in seven of the wrong answers, and a score of a hundredth
    let graded: Vec<Answer> =
        (0..400).map(|i| (i % 3, i % 10, i % 4 < 2, f64::from(u8::from(i % 4 < 2 || i % 7 < 2)))).collect();
    let answers: Vec<Answer> = (0..1_540).map(|i| (i % 3, i % 10, false, f64::from(u8::from(i % 101 == 7)))).collect();
    let score = correct(&answers, &graded);
    let of_categories = score.by_category.iter().map(|of| &of.score);
    for of in of_categories.chain([&score.all]) {
        assert_eq!((of.value, &of.ci95, &of.naive_ci95), (Some(0.0), &None, &None), "{of:?}");
        let note = of.note.as_deref().expect("says why");
        assert!(note.contains("cut to 0; there is no interval, as all of it lies beyond"), "{note}");
        assert_eq!(of.by_kind.iter().map(|by| &by.ci95).collect::<Vec<_>>(), [&None]);
    }
}

#[test]
fn the_interval_of_a_graded_sample_holds_the_share_of_right_answers() {
    let accepts = [0.3, 0.93];
    for (p, graded, seed) in [(0.75, 200, 11), (0.92, 300, 12), (0.5, 150, 13)] {
        let (mut chance, spread) = (Chance::new(seed), right(p));
        let (draws, mut holds, mut raw_holds, mut off, mut told) = (400, 0, 0, 0.0, 0);
        for _ in 0..draws {
            let answers = draw(&mut chance, 1_540, &spread, accepts);
            let sample = some(&answers, graded, &mut chance);
            let score = correct(&answers, &sample);
            let raw = scored(&answers).0.ci95.expect("has one");
            raw_holds += u32::from(raw.low <= p && p <= raw.high);
            let (Some(value), Some(ci)) = (score.all.value, &score.all.ci95) else { continue };
            told += 1;
            off += value - p;
            holds += u32::from(ci.low <= p && p <= ci.high);
        }
        let share = f64::from(holds) / f64::from(told);
        println!("p {p}, {graded} graded: told {told} of {draws}, holds {share}, off by {:.4}", off / f64::from(told));
        assert!(told * 10 > draws * 8, "p {p}: told {told} of {draws}");
        assert!((0.93..=1.0).contains(&share), "p {p}: {share}");
        assert!((off / f64::from(told)).abs() < 0.015, "p {p}: off by {}", off / f64::from(told));
        let raw_share = f64::from(raw_holds) / f64::from(draws);
        // at 0.92 what is wrongly accepted is about what is wrongly rejected
        assert!(p > 0.9 || raw_share < 0.9, "p {p}: the raw interval holds it in {raw_share}");
    }
}

#[test]
fn a_judge_that_does_not_err_changes_nothing_but_the_width() {
    let mut chance = Chance::new(5);
    let answers = draw(&mut chance, 1_540, &right(0.8), [0.0, 1.0]);
    let exact: Vec<Answer> = answers.iter().map(|a| (a.0, a.1, a.2, f64::from(u8::from(a.2)))).collect();
    let score = correct(&exact, &some(&exact, 300, &mut chance));
    let (headline, _) = scored(&exact);
    assert!((score.all.value.expect("has one") - headline.value.expect("has one")).abs() < 1e-12);
    let (ci, raw) = (score.all.ci95.expect("has one"), headline.ci95.expect("has one"));
    assert!(ci.low < raw.low && ci.high > raw.high, "{ci:?} {raw:?}");
    assert_eq!((score.own_answers, score.n, score.by_category.len()), (true, 300, 3));
    assert!(score.by_category.iter().all(|of| of.score.value.is_some()), "{:?}", score.by_category);
}

#[test]
fn planted_answers_give_a_range_over_their_kinds_and_no_value() {
    let mut chance = Chance::new(6);
    let answers = draw(&mut chance, 1_540, &right(0.7), [0.2, 0.95]);
    let (headline, score) = scored(&answers);
    let planted = planted(&["specific", "vague"], &["paraphrase"], None);
    let mut audit = Vec::new();
    for (kind, accepts, n) in [("specific", 0.106, 500), ("vague", 0.628, 500), ("paraphrase", 0.95, 500)] {
        let of = (0..n).map(|i| (i % 3, i % 10, true, chance.verdict(accepts)));
        audit.extend(audited(&of.collect::<Vec<_>>(), [kind, kind]));
    }
    let got = corrected(&headline, &score, &Audit { run: "audit", planted: &planted, answers: &audit });
    let (all, range) = (&got.all, got.all.range.expect("has one"));
    assert_eq!((all.value, &all.ci95, all.by_kind.len(), got.own_answers), (None, &None, 2, false));
    assert!(range.low < 0.5 && range.high > 0.7, "{range:?}");
    let values: Vec<f64> = all.by_kind.iter().map(|by| by.value.expect("has one")).collect();
    assert_eq!((range.high, range.low), (values[0], values[1]), "specific ones are seldom accepted, vague ones often");
    assert!(all.by_kind.iter().all(|by| by.ci95.is_some()));
    // with a kind of which the judge tells nothing there is no range
    let blind: Vec<AuditedAnswer> = audit
        .iter()
        .map(|a| {
            if a.kind == "vague" {
                AuditedAnswer { score: f64::from(u8::from(a.bank != "b0")), ..a.clone() }
            } else {
                a.clone()
            }
        })
        .collect();
    let got = corrected(&headline, &score, &Audit { run: "audit", planted: &planted, answers: &blind });
    let note = got.all.note.expect("says why");
    assert!(got.all.range.is_none() && note.starts_with("vague against paraphrase: sensitivity"), "{note}");
}

#[test]
fn a_judge_by_lot_says_nothing_and_what_was_not_graded_is_said() {
    let mut chance = Chance::new(7);
    let answers = draw(&mut chance, 1_540, &right(0.6), [0.5, 0.55]);
    let score = correct(&answers, &some(&answers, 400, &mut chance));
    assert_eq!((score.all.value, &score.all.ci95, &score.all.range), (None, &None, &None));
    assert!(score.all.note.as_ref().is_some_and(|note| note.contains("add up to 1.0")), "{:?}", score.all.note);
    assert!(score.all.raw.is_some(), "the raw score stays");
    let right: Vec<Answer> = answers.iter().copied().filter(|answer| answer.2).take(100).collect();
    let note = correct(&answers, &right).all.note.expect("says why");
    assert_eq!(note, "no answer that is wrong (own-wrong) is graded");
    assert!(correct(&answers, &[]).all.note.is_some_and(|note| note.contains("no answer that is right")));
}

#[test]
fn answers_that_were_chosen_by_the_verdict_or_by_category_are_noticed() {
    let mut chance = Chance::new(8);
    let answers = draw(&mut chance, 1_540, &right(0.8), [0.2, 0.95]);
    let rejected: Vec<Answer> = answers.iter().copied().filter(|answer| answer.3 == 0.0).collect();
    let notes = correct(&answers, &rejected).notes;
    assert!(notes.iter().any(|note| note.contains("if they were chosen by what it said of them")), "{notes:?}");
    assert!(correct(&answers, &some(&answers, 200, &mut chance)).notes.is_empty());
    let two: Vec<Answer> = answers.iter().copied().filter(|answer| answer.0 < 2).collect();
    let notes = correct(&answers, &some(&two, 300, &mut chance)).notes;
    assert!(notes.iter().any(|note| note.starts_with("no answer of c2 is graded")), "{notes:?}");
}

#[test]
fn categories_that_are_graded_out_of_proportion_are_weighted_to_the_run() {
    // a judge that errs in one category alone, of which half of the graded answers are and a tenth of the run
    let mut chance = Chance::new(9);
    let (mut answers, mut bias, mut pooled_bias) = (Vec::new(), 0.0, 0.0);
    let draws = 60;
    for _ in 0..draws {
        answers.clear();
        for i in 0..1_540_u32 {
            let category = u32::from(i % 10 == 0);
            let right = chance.verdict(0.7) > 0.5;
            let accepts = if right { 0.95 } else { [0.05, 0.7][category as usize] };
            answers.push((category, i % 10, right, chance.verdict(accepts)));
        }
        let of = |category| answers.iter().copied().filter(|a: &Answer| a.0 == category).collect::<Vec<_>>();
        let mut graded = some(&of(0), 120, &mut chance);
        graded.extend(some(&of(1), 120, &mut chance));
        let score = correct(&answers, &graded);
        assert!(score.notes.iter().any(|note| note.contains("not graded in proportion")), "{:?}", score.notes);
        let truth = answers.iter().filter(|a| a.2).count() as f64 / answers.len() as f64;
        bias += score.all.value.expect("has one") - truth;
        let (q, wrong) = (scored(&answers).0.value.expect("has one"), graded.iter().filter(|a| !a.2));
        let accepted = wrong.clone().map(|a| a.3).sum::<f64>() / wrong.count() as f64;
        pooled_bias += share_of_right(q, 0.95, 1.0 - accepted) - truth;
    }
    let (bias, pooled) = (bias / f64::from(draws), pooled_bias / f64::from(draws));
    assert!(bias.abs() < 0.02 && pooled < -0.06, "weighted {bias}, pooled {pooled}");
}
