//! What intervals must do where few or equal scores leave little to go by.

use proptest::prelude::*;

use super::*;
use crate::cells::cells_of;

const MEAN: Sampling = Sampling { estimator: Estimator::Mean, better: Better::Higher, by_chance: false, census: true };
const WEIGHTED: Sampling =
    Sampling { estimator: Estimator::Weighted, better: Better::Higher, by_chance: true, census: false };

/// Scores of (stratum, bank), each stratum a fifth of its part of the dataset.
fn estimated(scores: &[(u32, u32, f64)], sampling: Sampling) -> Estimate {
    let cells = cells_of(scores.iter().copied(), Scale::PLAIN);
    let mut strata: Vec<u32> = scores.iter().map(|(stratum, ..)| *stratum).collect();
    strata.sort_unstable();
    strata.dedup();
    let category = |number: u32| {
        let asked = scores.iter().filter(|(stratum, ..)| *stratum == number).count() as u64;
        Category { number, name: format!("c{number}"), population: Some(5 * asked + u64::from(number)), asked, lost: 0 }
    };
    estimate(&cells, &strata.into_iter().map(category).collect::<Vec<_>>(), sampling)
}

/// `each` equal scores of each of some banks.
fn equal(banks: u32, each: u32, score: f64, sampling: Sampling) -> Estimate {
    let scores: Vec<(u32, u32, f64)> = (0..banks).flat_map(|bank| (0..each).map(move |_| (0, bank, score))).collect();
    estimated(&scores, sampling)
}

fn intervals(total: &Estimate) -> Vec<&Interval> {
    [&total.ci95, &total.naive_ci95, &total.benchmark_ci95].into_iter().flatten().collect()
}

fn width(interval: Option<&Interval>) -> f64 {
    interval.map_or(f64::NAN, |i| i.high - i.low)
}

#[test]
fn banks_that_are_all_right_have_an_interval_however_many_they_are() {
    // the share of others that the likelihood holds falls with every bank, also where banks are counted as equal ones
    let mut before = f64::INFINITY;
    for banks in [3, 10, 100, 199, 200, 201, 202, 500, 5_000] {
        let total = equal(banks, 2, 1.0, MEAN);
        let interval = total.ci95.clone().unwrap_or_else(|| panic!("{banks} banks have none: {total:?}"));
        assert_eq!(interval.high, 1.0);
        let width = 1.0 - interval.low;
        assert!(width > 0.0 && width < before, "{banks} banks: {width} after {before}");
        // no more sure than questions taken as independent: scipy.stats.beta.ppf(0.025, n, 1)
        assert!(interval.low <= 0.025_f64.powf(1.0 / f64::from(2 * banks)) + 1e-12, "{banks} banks: {interval:?}");
        before = width;
    }
}

#[test]
fn one_question_for_each_of_many_banks_has_an_interval_too() {
    for score in [0.0, 0.3, 1.0] {
        for sampling in [MEAN, WEIGHTED] {
            let total = equal(2_000, 1, score, sampling);
            let interval = total.ci95.clone().expect("has one");
            assert_eq!(Some(&interval), total.naive_ci95.as_ref());
            assert!(interval.low <= score && score <= interval.high, "{interval:?}");
            assert!((1e-4..0.01).contains(&(interval.high - interval.low)), "{interval:?}");
        }
    }
}

#[test]
fn a_sample_whose_categories_all_agree_says_how_unsure_it_is() {
    // five categories of ten questions: one is all right, the others are all wrong
    let scores: Vec<(u32, u32, f64)> = (0..5)
        .flat_map(|stratum| (0..10).map(move |bank| (stratum, bank, f64::from(u8::from(stratum == 0)))))
        .collect();
    let total = estimated(&scores, WEIGHTED);
    for interval in intervals(&total) {
        assert!((0.05..0.5).contains(&(interval.high - interval.low)), "{interval:?}");
    }
    let benchmark = total.benchmark_ci95.expect("has one");
    // t(45 df) · √Σ w² (1 − 0.025^(1/10))² / (2 z)² (1 − n/N), by hand: 0.2 · √5 · 0.0785853 · √(1 − 10/52)
    let half = (benchmark.high - benchmark.low) / 2.0;
    assert!((half - 0.063_6).abs() < 1e-3, "{benchmark:?}");
    assert!(benchmark.method.ends_with("rule of three where scores agree"), "{benchmark:?}");
}

#[test]
fn where_all_questions_were_asked_nothing_is_left_to_chance() {
    let cells = cells_of((0..30).map(|i| (0, i % 3, f64::from(u8::from(i % 4 == 0)))), Scale::PLAIN);
    let all = [Category { number: 0, name: "c".into(), population: Some(30), asked: 30, lost: 0 }];
    let total = estimate(&cells, &all, WEIGHTED);
    assert_eq!(total.benchmark_ci95, None);
    assert!(total.benchmark_note.is_some_and(|note| note.contains("every question of the dataset was asked")));
    assert!(total.ci95.is_some() && total.naive_ci95.is_some());
}

#[test]
fn single_scores_of_every_category_say_so() {
    let total = estimated(&[(0, 0, 1.0), (1, 1, 1.0), (2, 2, 0.5)], WEIGHTED);
    assert_eq!((total.ci95, total.naive_ci95, total.benchmark_ci95), (None, None, None));
    assert_eq!(total.ci95_note.as_deref(), Some(SINGLE_SCORES));
    assert_eq!(total.benchmark_note.as_deref(), Some(SINGLE_SCORES));
}

#[test]
fn one_other_verdict_makes_an_interval_no_narrower() {
    for (banks, each) in [(3, 5), (10, 5), (10, 20), (10, 200), (50, 4), (250, 2)] {
        for sampling in [MEAN, WEIGHTED] {
            let low = |others: u32| {
                // all in one bank: spread over many they would show that banks are alike
                let verdict = move |bank: u32, i: u32| f64::from(u8::from(bank > 0 || i >= others));
                let scores = (0..banks).flat_map(|bank| (0..each).map(move |i| (0, bank, verdict(bank, i))));
                estimated(&scores.collect::<Vec<_>>(), sampling).ci95.expect("has one").low
            };
            let lows = [0, 1, 2].map(low);
            assert!(lows.windows(2).all(|two| two[1] < two[0]), "{banks} banks of {each}: {lows:?}");
        }
    }
}

/// Scores of strata and banks: verdicts or thirds, few or many, often all alike.
fn any_scores() -> impl Strategy<Value = Vec<(u32, u32, f64)>> {
    let alike = prop_oneof![Just(None), Just(Some(0.0)), Just(Some(1.0)), Just(Some(1.0 / 3.0))];
    let one = (0_u32..4, 0_u32..12, 0_u8..4, any::<bool>());
    (proptest::collection::vec(one, 1..120), alike, any::<bool>()).prop_map(|(scores, alike, graded)| {
        let score = |thirds: u8, passes: bool| {
            let drawn = if graded { f64::from(thirds) / 3.0 } else { f64::from(u8::from(passes)) };
            alike.unwrap_or(drawn)
        };
        scores.into_iter().map(|(stratum, bank, thirds, passes)| (stratum, bank, score(thirds, passes))).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn intervals_hold_their_score_lie_in_bounds_and_have_a_width(scores in any_scores(), weighted in any::<bool>()) {
        let total = estimated(&scores, if weighted { WEIGHTED } else { MEAN });
        let value = total.value.expect("has scores");
        for i in intervals(&total) {
            prop_assert!(0.0 <= i.low && i.high <= 1.0, "{i:?}");
            prop_assert!(i.low - 1e-12 <= value && value <= i.high + 1e-12, "{value} in {i:?}");
            prop_assert!(i.high - i.low > 1e-6, "{i:?}");
        }
        prop_assert!(total.ci95.is_some() || total.ci95_note.is_some());
        prop_assert!(total.benchmark_ci95.is_some() || total.benchmark_note.is_some());
    }

    #[test]
    fn mirrored_scores_have_mirrored_intervals(scores in any_scores(), weighted in any::<bool>()) {
        let sampling = if weighted { WEIGHTED } else { MEAN };
        let mirrored: Vec<(u32, u32, f64)> = scores.iter().map(|(stratum, bank, s)| (*stratum, *bank, 1.0 - s)).collect();
        let (one, other) = (estimated(&scores, sampling), estimated(&mirrored, sampling));
        prop_assert_eq!(intervals(&one).len(), intervals(&other).len());
        for (a, b) in intervals(&one).into_iter().zip(intervals(&other)) {
            prop_assert!((a.low + b.high - 1.0).abs() < 2e-3 && (a.high + b.low - 1.0).abs() < 2e-3, "{a:?} and {b:?}");
        }
    }

    #[test]
    fn more_equal_scores_never_make_an_interval_wider(
        banks in 3_u32..40, each in 1_u32..30, more in 1_u32..30, third in 0_u8..4, weighted in any::<bool>(),
    ) {
        let (score, sampling) = (f64::from(third) / 3.0, if weighted { WEIGHTED } else { MEAN });
        // one question for each bank and several are two methods
        prop_assume!(each > 1);
        let of = |banks: u32, each: u32| equal(banks, each, score, sampling);
        let (few, many, wide) = (of(banks, each), of(banks, each + more), of(banks + more, each));
        for larger in [many, wide] {
            prop_assert!(width(larger.ci95.as_ref()) <= width(few.ci95.as_ref()) + 1e-4, "{larger:?} after {few:?}");
            prop_assert!(width(larger.naive_ci95.as_ref()) < width(few.naive_ci95.as_ref()));
        }
    }
}
