//! What comparisons must do where few pairs, or pairs that all agree, leave little to go by.

use std::collections::BTreeMap;

use bench_proto::{
    comparison::{PairedDifference, Word},
    metric::Better,
    summary::Estimator,
};
use proptest::prelude::*;

use super::{
    difference::{Means, paired_difference},
    pairs::Pair,
};
use crate::{kinds::Kind, strata::Strata};

/// Pairs of two categories, of which the dataset has three and one part.
fn difference(pairs: &[Pair], estimator: Estimator) -> PairedDifference {
    let kinds = ["c0", "c1"].map(|name| Kind { category: name.to_owned(), facets: BTreeMap::new() });
    let populations = BTreeMap::from([("c0".to_owned(), 3_000), ("c1".to_owned(), 1_000)]);
    let strata = Strata::new(&[], &populations, [], &kinds);
    paired_difference(&Means { estimator, better: Better::Higher, strata: &strata }, pairs, 0.02)
}

/// `n` equal pairs in `banks` banks.
fn equal(n: u32, banks: u32, (a, b): (f64, f64)) -> Vec<Pair> {
    (0..n).map(|i| Pair { a, b, cluster: i % banks, kind: i / banks % 2 }).collect()
}

#[test]
fn a_handful_of_pairs_that_agree_decides_nothing() {
    for n in 3..6 {
        for scores in [(0.0, 1.0), (1.0, 0.0), (1.0, 1.0), (0.0, 0.0), (0.4, 0.6)] {
            let paired = difference(&equal(n, 3, scores), Estimator::Mean);
            let interval = paired.ci95.expect("has one");
            assert_eq!(paired.verdict, Word::Inconclusive, "{n} pairs of {scores:?}: {interval:?}");
            assert!(interval.high - interval.low > 0.3 && interval.method.ends_with("rule of three"), "{interval:?}");
            assert!(paired.p_value.is_some_and(|p| p >= 0.05), "{:?}", paired.p_value);
        }
    }
    // of six that all changed the sign test has 2 / 2^6
    let paired = difference(&equal(6, 3, (0.0, 1.0)), Estimator::Mean);
    assert_eq!((paired.verdict, paired.p_value), (Word::Better, Some(0.031_25)));
}

#[test]
fn ties_leave_open_what_so_many_could_hide() {
    // 1 − scipy.stats.beta.ppf(0.025, n, 1)
    for (n, reach) in [(50, 0.071_121_736_464_197_6), (200, 0.018_275_340_355_136_2)] {
        let paired = difference(&equal(n, 10, (1.0, 1.0)), Estimator::Mean);
        let interval = paired.ci95.clone().expect("has one");
        assert!((interval.low + reach).abs() < 1e-9 && (interval.high - reach).abs() < 1e-9, "{interval:?}");
        assert_eq!((paired.difference, paired.p_value), (Some(0.0), Some(1.0)));
        assert_eq!(paired.naive_ci95.map(|naive| naive.high), Some(interval.high));
        // and so much can be found, not every difference
        assert!(paired.mde.is_some_and(|mde| mde > reach && mde < 2.0 * reach), "{:?}", paired.mde);
        assert_eq!(paired.verdict, if n == 200 { Word::NoChange } else { Word::Inconclusive });
    }
}

/// Pairs of two categories and some banks, often all alike.
fn any_pairs() -> impl Strategy<Value = Vec<Pair>> {
    let one = (0_u32..8, 0_u32..2, 0_u8..3, 0_u8..3);
    let alike = prop_oneof![Just(None), Just(Some((1.0, 1.0))), Just(Some((0.0, 1.0))), Just(Some((0.5, 0.0)))];
    (proptest::collection::vec(one, 1..80), alike).prop_map(|(pairs, alike)| {
        let pair = |(cluster, kind, a, b): (u32, u32, u8, u8)| {
            let (a, b) = alike.unwrap_or((f64::from(a) / 2.0, f64::from(b) / 2.0));
            Pair { a, b, cluster, kind }
        };
        pairs.into_iter().map(pair).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn an_interval_holds_its_difference_has_a_width_and_says_what_the_p_value_says(
        pairs in any_pairs(), weighted in any::<bool>(),
    ) {
        let paired = difference(&pairs, if weighted { Estimator::Weighted } else { Estimator::Mean });
        let d = paired.difference.expect("has pairs");
        for i in [&paired.ci95, &paired.naive_ci95].into_iter().flatten() {
            prop_assert!(-1.0 <= i.low && i.high <= 1.0 && i.low - 1e-12 <= d && d <= i.high + 1e-12, "{d} in {i:?}");
            prop_assert!(i.high - i.low > 1e-3, "{i:?}");
        }
        if let (Some(i), Some(p)) = (&paired.ci95, paired.p_value) {
            let zero = i.low <= 0.0 && 0.0 <= i.high;
            prop_assert!((p >= 0.05 - 1e-9) == zero || (p - 0.05).abs() < 1e-6, "p {p} with {i:?}");
            prop_assert!(paired.mde.is_some_and(|mde| 0.0 < mde && mde <= 1.0));
        } else {
            prop_assert!(paired.ci95_note.is_some() && paired.verdict == Word::Inconclusive);
        }
    }

    #[test]
    fn runs_that_change_places_change_the_sign(pairs in any_pairs(), weighted in any::<bool>()) {
        let estimator = if weighted { Estimator::Weighted } else { Estimator::Mean };
        let turned: Vec<Pair> = pairs.iter().map(|pair| Pair { a: pair.b, b: pair.a, ..*pair }).collect();
        let (one, other) = (difference(&pairs, estimator), difference(&turned, estimator));
        if let (Some(a), Some(b)) = (one.ci95, other.ci95) {
            prop_assert!((a.low + b.high).abs() < 1e-9 && (a.high + b.low).abs() < 1e-9, "{a:?} and {b:?}");
        }
    }

    #[test]
    fn more_pairs_that_agree_leave_less_open(n in 3_u32..200, more in 1_u32..200, b in 0_u8..3) {
        let of = |n: u32| difference(&equal(n, 3, (0.5, f64::from(b) / 2.0)), Estimator::Mean).ci95.expect("has one");
        let (few, many) = (of(n), of(n + more));
        prop_assert!(many.high - many.low < few.high - few.low, "{many:?} after {few:?}");
    }

    #[test]
    fn one_pair_that_differs_makes_an_interval_no_narrower(n in 3_u32..200, b in 0_u8..3) {
        let same = equal(n, 3, (0.5, f64::from(b) / 2.0));
        let mut other = same.clone();
        other[0].b = 1.0 - other[0].b + if b == 1 { 0.5 } else { 0.0 };
        let of = |pairs: &[Pair]| difference(pairs, Estimator::Mean).ci95.expect("has one");
        let (same, other) = (of(&same), of(&other));
        // as far as the bounds of what a difference can be
        prop_assert!(other.low <= same.low + 1e-12 || other.high >= same.high - 1e-12, "{other:?} after {same:?}");
    }
}
