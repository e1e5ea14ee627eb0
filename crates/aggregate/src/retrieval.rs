//! Retrieval metrics at k from the ranks of the gold ids.
//!
//! Definitions (binary gain): recall-any and recall-all (found some, found all), recall (share of the gold ids found),
//! precision (found / ids shown, at most k: a shorter list is not blamed for its length), MRR (1 / rank of the first, 0
//! beyond k), NDCG with discount 1 / log2(rank + 1) and the ideal of min(gold, k) ones at the top, so that it never
//! exceeds 1.

use std::{collections::BTreeMap, sync::LazyLock};

use bench_proto::{
    step::{RankHits, Retrieval},
    summary::{RetrievalAtK, RetrievalSummary},
};

use crate::exact::ExactSum;

/// The cut-offs of the report.
const CUTOFFS: [u32; 5] = [1, 3, 5, 10, 20];
/// The largest of them.
const MOST: usize = 20;
const METRICS: usize = 6;

/// The cut-offs up to `top_k`.
fn cutoffs(top_k: u32) -> impl Iterator<Item = u32> {
    CUTOFFS.into_iter().filter(move |k| *k <= top_k)
}

/// Discounted gain of a hit at each rank up to the largest cut-off (index = rank − 1), and the gains of as many hits at the
/// top (index = number of hits). Logarithms per question would be most of the cost of adding one.
static DISCOUNTS: LazyLock<([f64; MOST], [f64; MOST + 1])> = LazyLock::new(|| {
    let (mut gains, mut ideals) = ([0.0; MOST], [0.0; MOST + 1]);
    for rank in 1..=MOST {
        gains[rank - 1] = 1.0 / (rank as f64 + 1.0).log2();
        ideals[rank] = ideals[rank - 1] + gains[rank - 1];
    }
    (gains, ideals)
});

/// recall_any, recall_all, recall, precision, mrr, ndcg at `k` of a question with at least one gold id.
fn metrics_at(hits: &RankHits, k: u32) -> [f64; METRICS] {
    let found_ranks = hits.ranks.iter().take_while(|rank| **rank <= k);
    let found = found_ranks.clone().count() as f64;
    let first = hits.ranks.first().filter(|rank| **rank <= k);
    let shown = hits.ranked.min(k);
    let (gains, ideals) = &*DISCOUNTS;
    let ideal = ideals[hits.gold.min(k) as usize];
    // a rank is at least 1; 0 from a broken store counts for nothing
    let gain: f64 = found_ranks.filter_map(|rank| gains.get((*rank as usize).wrapping_sub(1))).sum();
    [
        f64::from(u8::from(found > 0.0)),
        f64::from(u8::from(found >= f64::from(hits.gold))),
        found / f64::from(hits.gold),
        if shown == 0 { 0.0 } else { found / f64::from(shown) },
        first.map_or(0.0, |rank| 1.0 / f64::from(*rank)),
        gain / ideal,
    ]
}

/// Sums of one level.
#[derive(Debug, Clone, Default)]
struct LevelSums {
    n: u64,
    by_cutoff: [[ExactSum; METRICS]; CUTOFFS.len()],
}

impl LevelSums {
    fn add(&mut self, hits: &RankHits, top_k: u32) {
        if hits.gold == 0 {
            return; // no ground truth: not part of any denominator
        }
        self.n += 1;
        for (sums, k) in self.by_cutoff.iter_mut().zip(cutoffs(top_k)) {
            for (sum, value) in sums.iter_mut().zip(metrics_at(hits, k)) {
                sum.add(value);
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        self.n += other.n;
        for (sum, more) in self.by_cutoff.as_flattened_mut().iter_mut().zip(other.by_cutoff.as_flattened()) {
            sum.merge(*more);
        }
    }

    fn finish(&self, top_k: u32) -> BTreeMap<u32, RetrievalAtK> {
        let row = |(sums, k): (&[ExactSum; METRICS], u32)| {
            let [recall_any, recall_all, recall, precision, mrr, ndcg] = sums.map(|sum| sum.mean(self.n));
            (k, RetrievalAtK { recall_any, recall_all, recall, precision, mrr, ndcg, n: self.n })
        };
        self.by_cutoff.iter().zip(cutoffs(top_k)).map(row).collect()
    }
}

/// Sums of both levels.
#[derive(Debug, Clone, Default)]
pub(crate) struct RetrievalSums {
    turn: LevelSums,
    session: LevelSums,
}

impl RetrievalSums {
    pub(crate) fn add(&mut self, retrieval: &Retrieval, top_k: u32) {
        self.turn.add(&retrieval.turn, top_k);
        self.session.add(&retrieval.session, top_k);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.turn.merge(&other.turn);
        self.session.merge(&other.session);
    }

    pub(crate) fn finish(&self, top_k: u32) -> RetrievalSummary {
        RetrievalSummary { turn: self.turn.finish(top_k), session: self.session.finish(top_k) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hits(gold: u32, ranks: &[u32]) -> RankHits {
        RankHits { gold, ranked: 10, ranks: ranks.to_vec() }
    }

    #[test]
    fn a_worked_example() {
        // by hand: gold 3, found at ranks 2 and 5; at k = 5: DCG = 1/log2(3) + 1/log2(6) = 0.6309297536 + 0.3868528072,
        // ideal = 1 + 0.6309297536 + 0.5
        let [any, all, recall, precision, mrr, ndcg] = metrics_at(&hits(3, &[2, 5]), 5);
        assert_eq!((any, all, mrr), (1.0, 0.0, 0.5));
        assert!((recall - 2.0 / 3.0).abs() < 1e-15 && (precision - 0.4).abs() < 1e-15);
        assert!((ndcg - 1.017_782_560_8 / 2.130_929_753_6).abs() < 1e-9, "{ndcg}");
        assert_eq!(metrics_at(&hits(3, &[2, 5]), 1), [0.0; 6]);
        assert_eq!(metrics_at(&hits(1, &[1]), 1), [1.0; 6]);
        let short = RankHits { gold: 2, ranked: 4, ranks: vec![1, 3] };
        assert_eq!(metrics_at(&short, 10)[3], 0.5, "two of the four ids shown");
        assert_eq!(metrics_at(&RankHits { gold: 2, ranked: 0, ranks: vec![] }, 10), [0.0; 6]);
    }

    #[test]
    fn questions_without_ground_truth_are_in_no_denominator() {
        let mut sums = RetrievalSums::default();
        sums.add(&Retrieval { turn: hits(0, &[]), session: hits(1, &[1]) }, 10);
        let summary = sums.finish(10);
        assert_eq!(summary.turn.keys().copied().collect::<Vec<_>>(), [1, 3, 5, 10]);
        assert_eq!((summary.turn[&1].n, summary.turn[&1].recall), (0, None));
        assert_eq!((summary.session[&1].n, summary.session[&1].recall), (1, Some(1.0)));
    }

    proptest! {
        #[test]
        fn metrics_are_fractions_and_grow_with_k(gold in 1_u32..8, ranks in proptest::collection::btree_set(1_u32..=20, 0..8)) {
            let ranks: Vec<u32> = ranks.into_iter().take(gold as usize).collect();
            let hits = hits(gold, &ranks);
            let mut before = [0.0; METRICS];
            for k in CUTOFFS {
                let now = metrics_at(&hits, k);
                prop_assert!(now.iter().all(|v| (0.0..=1.0 + 1e-12).contains(v)));
                for metric in [0, 2, 4] {
                    prop_assert!(now[metric] >= before[metric], "metric {metric} at {k}");
                }
                prop_assert!(now[0] >= now[2] && now[2] >= now[1]);
                before = now;
            }
        }
    }
}
