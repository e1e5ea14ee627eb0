//! LongMemEval's own counting of retrieval (`src/retrieval/eval_utils.py` of the published program), for comparison with its
//! figures. Lists are ids, best first; a list may hold an id more than once, and each time counts.
//!
//! What differs from [`bench_proto::retrieval`]: the gain of rank 1 is 1 and that of rank i is 1/log2(i), so that ranks 1 and 2
//! weigh the same; without any gold `recall_all` is 1 and NDCG 0; the ideal list is the whole corpus in its best order.

use std::collections::HashSet;

/// Figures at one cut-off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// 1 when a gold id is among the first k.
    pub recall_any: f64,
    /// 1 when all gold ids are.
    pub recall_all: f64,
    /// DCG of the first k over that of the best order of the corpus.
    pub ndcg_any: f64,
}

/// The figures of a ranking at `k`: sessions among sessions, or turns among turns.
#[must_use]
pub fn figures(ranked: &[&str], gold: &[&str], corpus: &[&str], k: usize) -> Figures {
    let first = &ranked[..k.min(ranked.len())];
    let found: HashSet<&str> = first.iter().copied().collect();
    let wanted: HashSet<&str> = gold.iter().copied().collect();
    let best = corpus.iter().filter(|id| wanted.contains(*id)).count().min(k);
    let ideal: f64 = (1..=best).map(gain).sum();
    let reached: f64 = (1..).zip(first).filter(|(_, id)| wanted.contains(*id)).map(|(rank, _)| gain(rank)).sum();
    let flag = |holds: bool| f64::from(u8::from(holds));
    Figures {
        recall_any: flag(wanted.iter().any(|id| found.contains(id))),
        recall_all: flag(wanted.iter().all(|id| found.contains(id))),
        ndcg_any: if ideal == 0.0 { 0.0 } else { reached / ideal },
    }
}

/// The figures of sessions from a ranking of turns, whose ids are those of their sessions, `_` and a number. The cut-off grows
/// until `k` different sessions are in it, or the ranking ends; repeated sessions stay in the list, so that NDCG can fall as k
/// grows.
#[must_use]
pub fn figures_by_session(ranked: &[&str], gold: &[&str], corpus: &[&str], k: usize) -> Figures {
    let [ranked, gold, corpus] = [ranked, gold, corpus].map(|ids| ids.iter().map(|id| session(id)).collect::<Vec<_>>());
    let mut cut = k;
    let mut covered: HashSet<&str> = ranked.iter().take(cut).copied().collect();
    while cut <= corpus.len() && covered.len() < k {
        covered.extend(ranked.get(cut));
        cut += 1;
    }
    figures(&ranked, &gold, &corpus, cut)
}

/// The session of a turn's id.
fn session(turn: &str) -> &str {
    turn.rsplit_once('_').map_or(turn, |(session, _)| session)
}

fn gain(rank: usize) -> f64 {
    if rank == 1 { 1.0 } else { 1.0 / (rank as f64).log2() }
}

#[cfg(test)]
mod tests {
    use bench_proto::{
        retrieval::{RetrievalMetrics, ndcg_lme},
        step::RankHits,
    };
    use serde_json::Value;

    use super::*;
    use crate::scorers::reference;

    #[test]
    fn by_hand() {
        let corpus = ["a_1", "a_2", "b_1", "c_1"];
        let flat = figures(&["b_1", "a_2", "c_1"], &["a_2"], &corpus, 2);
        assert_eq!(flat, Figures { recall_any: 1.0, recall_all: 1.0, ndcg_any: 1.0 }, "ranks 1 and 2 weigh the same");
        assert_eq!(figures(&["b_1"], &[], &corpus, 1), Figures { recall_any: 0.0, recall_all: 1.0, ndcg_any: 0.0 });
        // two sessions are covered by three turns
        let by_session = figures_by_session(&["a_1", "a_2", "b_1", "c_1"], &["b_1"], &corpus, 2);
        assert_eq!((by_session.recall_any, by_session.ndcg_any), (1.0, 1.0 / 3_f64.log2()));
    }

    /// `longmemeval-retrieval.json`: all of it by the functions here, and what our own scorers have in common with it by them.
    #[test]
    fn longmemeval_retrieval() {
        let Some(vectors) = reference::json("vectors/longmemeval-retrieval.json") else {
            return;
        };
        let cases = reference::list(&vectors["cases"]);
        assert_eq!(cases.len(), 105);
        let mut by_our_ranks = 0;
        for case in cases {
            let ids = |key: &str| reference::list(&case[key]).iter().map(reference::str).collect::<Vec<_>>();
            let (corpus, gold) = (ids("corpus_ids"), ids("correct_docs"));
            let at = |index: &Value| corpus[usize::try_from(index.as_u64().expect("an index")).expect("fits")];
            let ranked: Vec<&str> = reference::list(&case["rankings"]).iter().map(at).collect();
            let k = case["k"].as_u64().expect("a cut-off") as usize;
            let flat = reference::str(&case["fn"]) == "flat";
            let got = if flat { figures } else { figures_by_session }(&ranked, &gold, &corpus, k);
            let expected = ["recall_any", "recall_all", "ndcg_any"].map(|key| reference::number(&case[key]));
            assert_eq!([got.recall_any, got.recall_all], [expected[0], expected[1]], "{case}");
            assert!((got.ndcg_any - expected[2]).abs() < 1e-12, "{}: {case}", got.ndcg_any);

            let unique: HashSet<&str> = corpus.iter().copied().collect();
            if flat
                && k > 0
                && !gold.is_empty()
                && unique.len() == corpus.len()
                && gold.iter().all(|id| unique.contains(id))
            {
                let hits = RankHits::find(ranked.iter().copied(), gold.iter().copied());
                let k = u32::try_from(k).expect("fits");
                let metrics = RetrievalMetrics::at(&hits, k).expect("there is gold");
                let lme = ndcg_lme(&hits, k).expect("there is gold");
                assert_eq!([metrics.recall_any, metrics.recall_all], [expected[0], expected[1]], "{case}");
                assert!((lme - expected[2]).abs() < 1e-12, "{lme}: {case}");
                by_our_ranks += 1;
            }
        }
        assert!(by_our_ranks > 40, "{by_our_ranks}");
    }
}
