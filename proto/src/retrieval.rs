//! Retrieval metrics, all from the ranks of gold evidence in a deduplicated ranked list.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::step::RankHits;

/// The cut-offs that reports show, as far as the run's top-k reaches.
pub const CUTOFFS: [u32; 5] = [1, 3, 5, 10, 20];

/// The cut-offs up to `top_k`.
pub fn cutoffs(top_k: u32) -> impl Iterator<Item = u32> {
    CUTOFFS.into_iter().filter(move |&k| k <= top_k)
}

/// Metrics at one cut-off k; each is in [0, 1].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RetrievalMetrics {
    /// 1 when some gold id is among the first k.
    pub recall_any: f64,
    /// 1 when all gold ids are among the first k.
    pub recall_all: f64,
    /// Gold ids among the first k / gold ids.
    pub recall: f64,
    /// Gold ids among the first k / k: what a short list leaves empty was not found (Manning, Raghavan and Schütze 2008, 8.4).
    pub precision: f64,
    /// Gold ids among the first k / ids among the first k: a list shorter than k is not blamed for its length.
    pub precision_of_returned: f64,
    /// 1 / rank of the first gold id, 0 when it is not among the first k.
    pub mrr: f64,
    /// Σ 1/log2(rank + 1) over gold ids among the first k, divided by the same sum over ranks 1 to min(gold ids, k).
    pub ndcg: f64,
}

impl RetrievalMetrics {
    /// The metrics at cut-off `k`; `None` when there is no ground truth, or `k` is 0.
    #[must_use]
    pub fn at(hits: &RankHits, k: u32) -> Option<Self> {
        if hits.gold == 0 || k == 0 {
            return None;
        }
        let found = &hits.ranks[..hits.ranks.partition_point(|&rank| rank <= k)];
        // a rank is at least 1; 0 from a broken store counts for nothing
        let within = &found[found.partition_point(|&rank| rank == 0)..];
        let found = within.len() as f64;
        let shown = hits.ranked.min(k);
        let dcg = total(within.iter().copied().map(gain));
        Some(Self {
            recall_any: f64::from(u8::from(!within.is_empty())),
            recall_all: f64::from(u8::from(within.len() as u64 == u64::from(hits.gold))),
            recall: found / f64::from(hits.gold),
            precision: found / f64::from(k),
            precision_of_returned: if shown == 0 { 0.0 } else { found / f64::from(shown) },
            mrr: within.first().map_or(0.0, |&rank| 1.0 / f64::from(rank)),
            ndcg: dcg / ideal_gain(hits.gold.min(k)),
        })
    }
}

/// NDCG at cut-off `k` with the gains of LongMemEval's published program: 1 at rank 1 and 1/log2(rank) behind it, so that ranks 1
/// and 2 weigh the same. `None` when there is no ground truth, or `k` is 0.
#[must_use]
pub fn ndcg_lme(hits: &RankHits, k: u32) -> Option<f64> {
    if hits.gold == 0 || k == 0 {
        return None;
    }
    let gain = |rank: u32| if rank == 1 { 1.0 } else { 1.0 / f64::from(rank).log2() };
    let reached = total(hits.ranks.iter().copied().filter(|rank| (1..=k).contains(rank)).map(gain));
    Some(reached / (1..=hits.gold.min(k)).map(gain).sum::<f64>())
}

/// A sum that is 0 where there is nothing: that of no floats is -0, which reports would show.
fn total(gains: impl Iterator<Item = f64>) -> f64 {
    gains.fold(0.0, |sum, gain| sum + gain)
}

/// Ranks up to the largest cut-off have their gains in a table: logarithms would be most of the cost of a question.
const TABLE: usize = CUTOFFS[CUTOFFS.len() - 1] as usize;

/// The gain of a hit at each rank, and of that many hits at the top; index = rank, or number of hits.
static GAINS: LazyLock<([f64; TABLE + 1], [f64; TABLE + 1])> = LazyLock::new(|| {
    let (mut gains, mut ideals) = ([0.0; TABLE + 1], [0.0; TABLE + 1]);
    for rank in 1..=TABLE {
        gains[rank] = discounted(rank as u32);
        ideals[rank] = ideals[rank - 1] + gains[rank];
    }
    (gains, ideals)
});

fn discounted(rank: u32) -> f64 {
    1.0 / (f64::from(rank) + 1.0).log2()
}

fn gain(rank: u32) -> f64 {
    GAINS.0.get(rank as usize).copied().unwrap_or_else(|| discounted(rank))
}

fn ideal_gain(hits: u32) -> f64 {
    GAINS.1.get(hits as usize).copied().unwrap_or_else(|| (1..=hits).map(gain).sum())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(ranked: &[&str], gold: &[&str], k: u32) -> Option<RetrievalMetrics> {
        RetrievalMetrics::at(&RankHits::find(ranked.iter().copied(), gold.iter().copied()), k)
    }

    #[test]
    fn by_hand() {
        let metrics = at(&["a", "b", "c", "d"], &["b", "d"], 10).expect("there is gold");
        assert_eq!((metrics.recall_any, metrics.recall_all, metrics.recall), (1.0, 1.0, 1.0));
        assert_eq!((metrics.precision, metrics.precision_of_returned, metrics.mrr), (0.2, 0.5, 0.5));
        assert!((metrics.ndcg - 0.650_920_929_807_132_6).abs() < 1e-12);

        let metrics = at(&["x", "y", "a", "b", "z"], &["a", "b", "c"], 5).expect("there is gold");
        assert_eq!((metrics.recall_any, metrics.recall_all), (1.0, 0.0));
        assert_eq!((metrics.recall, metrics.precision), (2.0 / 3.0, 0.4));
        assert!((metrics.ndcg - 0.436_746_709_511_925_8).abs() < 1e-12);

        let metrics = at(&["a", "b", "c"], &["c"], 2).expect("there is gold");
        assert_eq!(
            metrics,
            RetrievalMetrics {
                recall_any: 0.0,
                recall_all: 0.0,
                recall: 0.0,
                precision: 0.0,
                precision_of_returned: 0.0,
                mrr: 0.0,
                ndcg: 0.0
            }
        );
    }

    #[test]
    fn edges() {
        assert_eq!(at(&["a"], &[], 5), None);
        assert_eq!(at(&["a"], &["a"], 0), None);
        assert_eq!(at(&[], &["a"], 5).map(|metrics| (metrics.recall, metrics.precision)), Some((0.0, 0.0)));
        // repeats in the list cannot lift anything above 1
        let repeated = at(&["a", "a", "a"], &["a"], 3).expect("there is gold");
        assert_eq!((repeated.ndcg, repeated.precision, repeated.precision_of_returned), (1.0, 1.0 / 3.0, 1.0));
        let broken = RankHits { gold: 2, ranked: 5, ranks: vec![0, 2] };
        assert_eq!(RetrievalMetrics::at(&broken, 5).map(|metrics| (metrics.mrr, metrics.recall)), Some((0.5, 0.5)));
        // more gold than k: the best possible list still has NDCG 1
        assert_eq!(
            at(&["a", "b", "c"], &["a", "b", "c"], 1).map(|metrics| (metrics.ndcg, metrics.recall_all)),
            Some((1.0, 0.0))
        );
    }

    #[test]
    fn nothing_found_is_plain_zero() {
        let hits = RankHits { gold: 1, ranked: 5, ranks: vec![] };
        let metrics = RetrievalMetrics::at(&hits, 5).expect("there is gold");
        for figure in [metrics.ndcg, metrics.mrr, metrics.recall, ndcg_lme(&hits, 5).expect("there is gold")] {
            assert!(figure == 0.0 && figure.is_sign_positive(), "{metrics:?}");
        }
    }

    #[test]
    fn cut_offs_end_at_top_k() {
        assert_eq!(cutoffs(10).collect::<Vec<_>>(), [1, 3, 5, 10]);
        assert_eq!(cutoffs(0).count(), 0);
        assert_eq!(cutoffs(100).count(), 5);
    }

    proptest! {
        #[test]
        fn ranks_beyond_the_table_go_on_where_it_ends(rank in 1_u32..60) {
            prop_assert_eq!(gain(rank), discounted(rank));
            prop_assert_eq!(ideal_gain(rank), (1..=rank).map(discounted).sum::<f64>());
        }

        #[test]
        fn bounded_and_monotone(
            ranked in prop::collection::vec(0_u8..20, 0..30),
            gold in prop::collection::vec(0_u8..20, 0..10),
        ) {
            let name = |ids: &[u8]| ids.iter().map(u8::to_string).collect::<Vec<_>>();
            let (ranked, gold) = (name(&ranked), name(&gold));
            let hits = RankHits::find(ranked.iter().map(String::as_str), gold.iter().map(String::as_str));
            let mut last: Option<RetrievalMetrics> = None;
            for k in 1..25 {
                let metrics = RetrievalMetrics::at(&hits, k);
                prop_assert_eq!(metrics.is_none(), gold.is_empty());
                let Some(metrics) = metrics else { continue };
                for value in [metrics.recall_any, metrics.recall_all, metrics.recall, metrics.precision, metrics.mrr, metrics.ndcg] {
                    prop_assert!((0.0..=1.0).contains(&value), "{:?}", metrics);
                }
                prop_assert!(metrics.recall_all <= metrics.recall && metrics.recall <= metrics.recall_any);
                if let Some(last) = last {
                    prop_assert!(metrics.recall_any >= last.recall_any);
                    prop_assert!(metrics.recall_all >= last.recall_all);
                    prop_assert!(metrics.recall >= last.recall);
                    prop_assert!(metrics.mrr >= last.mrr);
                }
                last = Some(metrics);
            }
        }

        #[test]
        fn gold_first_is_ideal(gold in 1_u32..40, rest in 0_u32..12, k in 1_u32..50) {
            let hits = RankHits { gold, ranked: gold + rest, ranks: (1..=gold).collect() };
            let metrics = RetrievalMetrics::at(&hits, k);
            prop_assert_eq!(metrics.map(|metrics| (metrics.ndcg, metrics.mrr)), Some((1.0, 1.0)));
        }
    }
}
