//! Reciprocal rank fusion (Cormack, Clarke, Büttcher, SIGIR 2009): a document's score is the sum of `1 / (c + rank)` over
//! the two lists. Ranks need no common scale, which scores of bm25 and cosines do not have. The paper's c = 60 is for many
//! lists; with two it lets whatever is somewhere in both outrank the best of one, and on LoCoMo, a hundred hits
//! deep, falls behind bm25 alone (docs/SYSTEMS.md has the figures), so c is 10 here.

use std::{collections::HashMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use bench_proto::{dataset::StreamEntry, failure::Failure, step::RetrievedHit};

use super::{ACCOUNT, FOLDER, MODEL, PRECOMPUTED, QUERIES, QUERY_PREFIX, TEXT_PREFIX, VectorSearch};
use crate::{
    BuildContext, BuildError, MemorySystem, Prepared, RecallQuery, Setting, StepContext, SystemSettings, bm25,
    from_items::{FromItems, Lookup, Search},
    settings::number,
};

const RRF_K: Setting = Setting { name: "hybrid.rrf_k", description: "constant of the fusion", default: "10" };
const DEPTH: Setting = Setting { name: "hybrid.depth", description: "hits of each list, at least k", default: "100" };

/// Settings of `hybrid`; those of its two halves are the same as when they stand alone.
pub(crate) const HYBRID_SETTINGS: &[Setting] =
    &[MODEL, ACCOUNT, FOLDER, QUERY_PREFIX, TEXT_PREFIX, PRECOMPUTED, QUERIES, bm25::K1, bm25::B, RRF_K, DEPTH];

struct Hybrid {
    words: bm25::Bm25,
    vectors: VectorSearch,
    rrf_k: f64,
    depth: u32,
}

pub(crate) fn build_hybrid(
    settings: &SystemSettings,
    context: &BuildContext,
) -> Result<Arc<dyn MemorySystem>, BuildError> {
    let hybrid = Hybrid {
        words: bm25::Bm25::new(settings, context)?,
        vectors: VectorSearch::new(settings, context)?,
        rrf_k: number(settings, &RRF_K, 0.0, 1e6)?,
        depth: number(settings, &DEPTH, 1.0, 1e6)? as u32,
    };
    Ok(FromItems::system(hybrid.vectors.capabilities(), hybrid))
}

#[async_trait]
impl Search for Hybrid {
    async fn search(&self, lookup: Lookup<'_>) -> Result<Vec<RetrievedHit>, Failure> {
        // the same depth for every k up to it, so that a smaller k is a prefix of a larger one
        let deep = RecallQuery { k: self.depth.max(lookup.query.k), ..lookup.query.clone() };
        let deep = Lookup { query: &deep, ..lookup };
        let (words, vectors) = futures::try_join!(self.words.search(deep), self.vectors.search(deep))?;
        Ok(fuse([words, vectors], self.rrf_k, lookup.query.k as usize))
    }

    async fn index(&self, lookup: Lookup<'_>) -> Result<Prepared, Failure> {
        let (words, vectors) = futures::try_join!(self.words.index(lookup), self.vectors.index(lookup))?;
        Ok(words.max(vectors))
    }

    async fn ahead(&self, entries: &[StreamEntry], step: StepContext<'_>) -> Result<Duration, Failure> {
        self.vectors.ahead(entries, step).await
    }
}

/// The `k` best of several ranked lists; equal scores keep the order in which they first came up.
fn fuse(lists: [Vec<RetrievedHit>; 2], rrf_k: f64, k: usize) -> Vec<RetrievedHit> {
    let mut at: HashMap<String, usize> = HashMap::new();
    let mut fused: Vec<RetrievedHit> = Vec::new();
    for list in lists {
        for (rank, hit) in list.into_iter().enumerate() {
            let score = 1.0 / (rrf_k + rank as f64 + 1.0);
            match at.get(&hit.id) {
                Some(&known) => fused[known].score = fused[known].score.map(|sum| sum + score),
                None => {
                    at.insert(hit.id.clone(), fused.len());
                    fused.push(RetrievedHit { score: Some(score), ..hit });
                }
            }
        }
    }
    // the order in which hits came up must not depend on the depth: ties are broken by id
    fused.sort_by(|a, b| b.score.unwrap_or(0.0).total_cmp(&a.score.unwrap_or(0.0)).then_with(|| a.id.cmp(&b.id)));
    fused.truncate(k);
    fused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_added_up() {
        let hit = |id: &str| RetrievedHit {
            id: id.into(),
            session_id: "s".into(),
            score: None,
            text: id.into(),
            ..RetrievedHit::default()
        };
        let fused = fuse([vec![hit("a"), hit("b"), hit("c")], vec![hit("c"), hit("b"), hit("d")]], 60.0, 3);
        let scores: Vec<(String, f64)> = fused.into_iter().map(|h| (h.id, h.score.expect("has one"))).collect();
        let expected = [("c", 1.0 / 63.0 + 1.0 / 61.0), ("b", 2.0 / 62.0), ("a", 1.0 / 61.0)];
        for ((id, score), (expected_id, expected_score)) in scores.iter().zip(expected) {
            assert_eq!(id, expected_id);
            assert!((score - expected_score).abs() < 1e-12);
        }
    }
}
