//! Means of the retrieval metrics over questions; the metrics are those of the contract.

use std::collections::BTreeMap;

use bench_proto::{
    retrieval::{CUTOFFS, RetrievalMetrics, cutoffs},
    step::{RankHits, Retrieval},
    summary::{FilteredRecalls, RetrievalAtK, RetrievalSummary},
};

use crate::{compare::TurnsSeen, exact::ExactSum};

const METRICS: usize = 7;

/// The metrics in the order in which they are summed.
fn values(metrics: RetrievalMetrics) -> [f64; METRICS] {
    let RetrievalMetrics { recall_any, recall_all, recall, precision, precision_of_returned, mrr, ndcg } = metrics;
    [recall_any, recall_all, recall, precision, precision_of_returned, mrr, ndcg]
}

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
            let metrics = RetrievalMetrics::at(hits, k).map(values).into_iter().flatten();
            sums.iter_mut().zip(metrics).for_each(|(sum, value)| sum.add(value));
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
            let [recall_any, recall_all, recall, precision, precision_of_returned, mrr, ndcg] =
                sums.map(|sum| sum.mean(self.n));
            (k, RetrievalAtK { recall_any, recall_all, recall, precision, precision_of_returned, mrr, ndcg, n: self.n })
        };
        self.by_cutoff.iter().zip(cutoffs(top_k)).map(row).collect()
    }
}

/// Sums of both levels.
#[derive(Debug, Clone, Default)]
pub(crate) struct RetrievalSums {
    turn: LevelSums,
    session: LevelSums,
    turns: TurnsSeen,
    filtered: FilteredRecalls,
}

impl RetrievalSums {
    pub(crate) fn add(&mut self, retrieval: &Retrieval, top_k: u32) {
        self.turn.add(&retrieval.turn, top_k);
        self.session.add(&retrieval.session, top_k);
        self.turns.add(retrieval);
        self.filtered.recalls += u64::from(retrieval.outside.is_some());
        self.filtered.ignored += u64::from(retrieval.outside.is_some_and(|outside| outside > 0));
    }

    /// How recalls kept to the filters of their questions, where that is known of any.
    pub(crate) fn filtered(&self) -> Option<FilteredRecalls> {
        Some(self.filtered).filter(|filtered| filtered.recalls > 0)
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.turn.merge(&other.turn);
        self.session.merge(&other.session);
        self.turns.merge(other.turns);
        self.filtered.recalls += other.filtered.recalls;
        self.filtered.ignored += other.filtered.ignored;
    }

    pub(crate) fn finish(&self, top_k: u32) -> RetrievalSummary {
        let turn = if self.turns.can_be_told() { self.turn.finish(top_k) } else { LevelSums::default().finish(top_k) };
        RetrievalSummary { turn, session: self.session.finish(top_k), filtered: self.filtered() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(gold: u32, ranks: &[u32]) -> RankHits {
        RankHits { gold, ranked: 10, ranks: ranks.to_vec() }
    }

    #[test]
    fn means_are_over_the_questions_with_ground_truth() {
        // by hand: gold 3, found at ranks 2 and 5; at k = 5: DCG = 1/log2(3) + 1/log2(6) = 0.6309297536 + 0.3868528072,
        // ideal = 1 + 0.6309297536 + 0.5
        let mut sums = RetrievalSums::default();
        sums.add(&Retrieval { turn: hits(3, &[2, 5]), session: hits(1, &[1]), ..Retrieval::default() }, 5);
        sums.add(&Retrieval { turn: hits(1, &[1]), session: hits(1, &[]), ..Retrieval::default() }, 5);
        let summary = sums.finish(5);
        let at = &summary.turn[&5];
        let close = |mean: Option<f64>, sum: f64| mean.is_some_and(|mean| (mean - sum / 2.0).abs() < 1e-9);
        assert!(close(at.recall_any, 2.0) && close(at.recall_all, 1.0) && close(at.mrr, 1.5), "{at:?}");
        assert!(close(at.recall, 5.0 / 3.0) && close(at.precision, 0.4 + 0.2), "{at:?}");
        assert!(close(at.ndcg, 1.017_782_560_8 / 2.130_929_753_6 + 1.0), "{at:?}");
        assert_eq!((summary.turn[&1].recall_any, summary.session[&5].recall), (Some(0.5), Some(0.5)));
        // a single hit for the second question: k divides, or what was returned
        let short = RankHits { gold: 1, ranked: 1, ranks: vec![1] };
        let mut sums = RetrievalSums::default();
        sums.add(&Retrieval { turn: short, session: hits(1, &[1]), ..Retrieval::default() }, 5);
        let at = &sums.finish(5).turn[&5];
        assert_eq!((at.precision, at.precision_of_returned), (Some(0.2), Some(1.0)));
    }

    #[test]
    fn p45_turn_metrics_of_a_run_whose_hits_carry_no_turn_are_null() {
        let by_session = Retrieval { turn: hits(0, &[]), session: hits(1, &[1]), ..Retrieval::default() };
        let nothing = RankHits { gold: 1, ranked: 0, ranks: vec![] };
        let empty = Retrieval { turn: nothing.clone(), session: nothing, ..Retrieval::default() };
        let mut sums = RetrievalSums::default();
        [&by_session, &empty].into_iter().for_each(|retrieval| sums.add(retrieval, 5));
        let summary = sums.finish(5);
        assert_eq!((summary.turn[&5].n, summary.turn[&5].recall), (0, None));
        assert_eq!((summary.session[&5].n, summary.session[&5].recall), (2, Some(0.5)));
        // a system that brings turns and sometimes nothing is measured by both
        let mut sums = RetrievalSums::default();
        let by_turn = Retrieval { turn: hits(1, &[1]), session: hits(1, &[1]), ..Retrieval::default() };
        [&by_turn, &empty].into_iter().for_each(|retrieval| sums.add(retrieval, 5));
        assert_eq!((sums.finish(5).turn[&5].n, sums.finish(5).turn[&5].recall), (2, Some(0.5)));
    }

    #[test]
    fn questions_without_ground_truth_are_in_no_denominator() {
        let mut sums = RetrievalSums::default();
        sums.add(&Retrieval { turn: hits(0, &[]), session: hits(1, &[1]), ..Retrieval::default() }, 10);
        let summary = sums.finish(10);
        assert_eq!(summary.turn.keys().copied().collect::<Vec<_>>(), [1, 3, 5, 10]);
        assert_eq!((summary.turn[&1].n, summary.turn[&1].recall), (0, None));
        assert_eq!((summary.session[&1].n, summary.session[&1].recall), (1, Some(1.0)));
    }
}
