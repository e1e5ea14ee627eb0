//! BEAM's grade of an order of events: Kendall's tau-b between the order that is expected and the one that was told.
//!
//! Items that only one side names share the rank behind all others on the other side. The grade is (tau-b + 1) / 2; its product
//! with the F1 of the items is kept beside it. Where one side has but one rank for everything, as with lists of one item, there
//! is nothing to order and no grade (the published program prints NaN).

use std::collections::HashMap;

/// What an order is worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ordering {
    /// Share of the told items that are expected.
    pub precision: f64,
    /// Share of the expected items that were told.
    pub recall: f64,
    /// The harmonic mean of both.
    pub f1: f64,
    /// Kendall's tau-b of the ranks of all items of both sides, in [-1, 1]; none where one side has no order.
    pub tau_b: Option<f64>,
}

impl Ordering {
    /// The published grade: tau-b brought into [0, 1].
    #[must_use]
    pub fn score(&self) -> Option<f64> {
        self.tau_b.map(|tau| (tau + 1.0) / 2.0)
    }

    /// Its product with the F1: what was told beside the point counts too.
    #[must_use]
    pub fn product(&self) -> Option<f64> {
        self.score().map(|score| score * self.f1)
    }
}

/// Holds the items that were told, in their order, against the expected ones; an item that is told twice has its last
/// rank. As the published program counts, what is told twice beside the point is wrong twice, and the rank behind all
/// others is one more than the number of *distinct* items: an item that is told again and again may stand behind it.
#[must_use]
pub fn ordering(expected: &[&str], told: &[&str]) -> Ordering {
    let (expected_ranks, told_ranks) = (ranks(expected), ranks(told));
    let common = expected_ranks.keys().filter(|item| told_ranks.contains_key(*item)).count();
    let share = |of: &[&str], among: &HashMap<&str, usize>| {
        let beside = of.iter().filter(|item| !among.contains_key(*item)).count();
        if of.is_empty() { 0.0 } else { common as f64 / (common + beside) as f64 }
    };
    let (precision, recall) = (share(told, &expected_ranks), share(expected, &told_ranks));
    let sum = precision + recall;
    let f1 = if sum == 0.0 { 0.0 } else { 2.0 * precision * recall / sum };
    let mut all: Vec<&str> = expected_ranks.keys().chain(told_ranks.keys()).copied().collect();
    all.sort_unstable();
    all.dedup();
    let behind = all.len() + 1;
    let of = |ranks: &HashMap<&str, usize>| -> Vec<usize> {
        all.iter().map(|item| ranks.get(item).copied().unwrap_or(behind)).collect()
    };
    Ordering { precision, recall, f1, tau_b: tau_b(&of(&expected_ranks), &of(&told_ranks)) }
}

/// The rank of each item, from 1.
fn ranks<'a>(items: &[&'a str]) -> HashMap<&'a str, usize> {
    (1..).zip(items).map(|(rank, item)| (*item, rank)).collect()
}

/// Kendall's tau-b of two rankings of the same items, in [-1, 1]; none where one of them ranks all items alike or there are fewer
/// than two. The order of operations is scipy's, to the last bit. Time grows with the square of the length.
#[must_use]
pub fn tau_b(first: &[usize], second: &[usize]) -> Option<f64> {
    let items: Vec<(usize, usize)> = first.iter().copied().zip(second.iter().copied()).collect();
    let (mut pairs, mut ties, mut agreement) = (0_u64, [0_u64; 2], 0_i64);
    for (at, a) in items.iter().enumerate() {
        for b in &items[..at] {
            let (first, second) = (a.0.cmp(&b.0), a.1.cmp(&b.1));
            pairs += 1;
            ties[0] += u64::from(first.is_eq());
            ties[1] += u64::from(second.is_eq());
            agreement += first as i64 * second as i64;
        }
    }
    if ties.contains(&pairs) {
        return None;
    }
    let [first, second] = ties.map(|ties| ((pairs - ties) as f64).sqrt());
    Some((agreement as f64 / first / second).clamp(-1.0, 1.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scorers::reference;

    #[test]
    fn beam_ordering() {
        let Some(vectors) = reference::json("vectors/beam-ordering.json") else { return };
        let cases = reference::list(&vectors["cases"]);
        assert_eq!(cases.len(), 13);
        for case in cases {
            let [expected, told] = ["reference", "system_aligned"]
                .map(|key| reference::list(&case[key]).iter().map(reference::str).collect::<Vec<_>>());
            let got = ordering(&expected, &told);
            for (ours, theirs) in [
                (Some(got.precision), "precision"),
                (Some(got.recall), "recall"),
                (Some(got.f1), "f1"),
                (got.tau_b, "tau_b"),
                (got.score(), "tau_norm"),
                (got.product(), "final_score"),
            ] {
                assert_eq!(ours, case[theirs].as_f64(), "{theirs}: {case}");
            }
        }
    }

    #[test]
    fn without_two_ranks_there_is_no_order() {
        for (expected, told) in [(vec!["a"], vec!["a"]), (vec![], vec![]), (vec!["a", "b"], vec![])] {
            let got = ordering(&expected, &told);
            assert_eq!((got.tau_b, got.score(), got.product()), (None, None, None), "{expected:?} {told:?}");
        }
        assert_eq!(ordering(&["a"], &["x"]).tau_b, Some(-1.0), "one expected, another told: two items");
    }

    /// Figures of the published program (scipy) for an answer that repeats itself.
    #[test]
    fn what_is_told_again_counts_again() {
        for (told, precision, score, product) in [
            (&["x", "x", "x", "x", "a"][..], 0.2, 0.146_446_609_406_726_16, 0.036_611_652_351_681_54),
            (&["a", "a", "x", "x"][..], 1.0 / 3.0, 0.591_287_092_917_527_7, 0.197_095_697_639_175_9),
        ] {
            let got = ordering(&["a", "b", "c"], told);
            assert_eq!(
                (got.precision, got.score(), got.product()),
                (precision, Some(score), Some(product)),
                "{told:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn bounded_and_best_when_equal(told in prop::collection::vec("[a-f]{0,1}", 0..9), expected in 2_usize..6) {
            let expected = &["a", "b", "c", "d", "e", "f"][..expected];
            let told: Vec<&str> = told.iter().map(String::as_str).collect();
            let got = ordering(expected, &told);
            prop_assert!(got.tau_b.is_none_or(|tau| (-1.0..=1.0).contains(&tau)), "{got:?}");
            for part in [got.precision, got.recall, got.f1, got.score().unwrap_or(0.0), got.product().unwrap_or(0.0)] {
                prop_assert!((0.0..=1.0).contains(&part), "{got:?}");
            }
            let best = ordering(expected, expected);
            prop_assert!(best.score().is_some_and(|score| score > 1.0 - 1e-12) && best.f1 == 1.0);
            let backwards: Vec<&str> = expected.iter().rev().copied().collect();
            prop_assert!(ordering(expected, &backwards).score().is_some_and(|score| score < 1e-12));
        }
    }
}
