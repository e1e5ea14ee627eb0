//! Ranked lists as the Astrocyte and the Hebb harness count them: an id that comes back again counts again, so that gain and NDCG can
//! exceed 1. Without gold everything is 0.

use std::collections::HashSet;

/// Figures at one cut-off.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Figures {
    /// Distinct gold ids among the first k / gold ids.
    pub recall: f64,
    /// Places among the first k that hold a gold id / places among the first k.
    pub precision: f64,
    /// 1 / rank of the first gold id among the first k.
    pub mrr: f64,
    /// Σ 1/log2(rank + 1) over these places / the same sum over ranks 1 to min(gold ids, k).
    pub ndcg: f64,
}

/// The figures of a ranking at `k`; without one k is its length, as Astrocyte has it.
#[must_use]
pub fn figures(ranked: &[&str], gold: &[&str], k: Option<usize>) -> Figures {
    let k = k.unwrap_or(ranked.len());
    let first = &ranked[..k.min(ranked.len())];
    let gold: HashSet<&str> = gold.iter().copied().collect();
    let found: HashSet<&str> = first.iter().copied().filter(|id| gold.contains(id)).collect();
    if found.is_empty() {
        return Figures::default();
    }
    let places: Vec<usize> = (1..).zip(first).filter(|(_, id)| gold.contains(*id)).map(|(rank, _)| rank).collect();
    let gain = |rank: usize| 1.0 / (rank as f64 + 1.0).log2();
    let ideal: f64 = (1..=gold.len().min(k)).map(gain).sum();
    Figures {
        recall: found.len() as f64 / gold.len() as f64,
        precision: places.len() as f64 / first.len() as f64,
        mrr: places.first().map_or(0.0, |rank| 1.0 / *rank as f64),
        ndcg: places.into_iter().map(gain).sum::<f64>() / ideal,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::scorers::reference;

    fn of_case(case: &Value, k: Option<usize>) -> Figures {
        let [ranked, gold] = ["retrieved", "relevant"]
            .map(|key| reference::list(&case[key]).iter().map(reference::str).collect::<Vec<_>>());
        figures(&ranked, &gold, k)
    }

    #[test]
    fn ranked_metrics_with_their_repeats() {
        let Some(vectors) = reference::json("vectors/astrocyte-and-jeffs-brain.json") else { return };
        let cases = reference::list(&vectors["sections"]["ranked_metrics"]["vectors"]);
        assert_eq!(cases.len(), 6);
        for case in cases {
            let got = of_case(case, None);
            let hit = case["hit"].as_bool().expect("a flag");
            assert_eq!(
                (got.precision, got.mrr),
                (reference::number(&case["precision"]), reference::number(&case["rr"]))
            );
            assert!((got.ndcg - reference::number(&case["ndcg"])).abs() < 1e-12, "{}: {case}", got.ndcg);
            assert_eq!(got.recall > 0.0, hit, "{case}");
        }
    }

    #[test]
    fn hebb_ranked_metrics_with_their_repeats() {
        let Some(vectors) = reference::json("vectors/hebb-amplihack-precisionmembench.json") else { return };
        let cases = reference::list(&vectors["hebb_ranked_metrics"]["cases"]);
        assert_eq!(cases.len(), 5);
        for case in cases {
            let got = of_case(case, case["k"].as_u64().map(|k| k as usize));
            let expected = ["recall", "precision", "mrr", "ndcg"].map(|key| reference::number(&case[key]));
            assert_eq!([got.recall, got.precision, got.mrr], [expected[0], expected[1], expected[2]], "{case}");
            assert!((got.ndcg - expected[3]).abs() < 1e-12, "{}: {case}", got.ndcg);
        }
        let repeated = figures(&["a", "a", "b"], &["a", "b"], Some(3));
        assert!((repeated.ndcg - 1.306_574).abs() < 1e-6, "the list of repeats that its notes name: {repeated:?}");
    }
}
