//! `random`: k turns by lot. Chance level: a system that does not beat it remembers nothing.

use std::sync::Arc;

use bench_proto::{failure::Failure, ids::Sha256Hash};
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{RngCore, SeedableRng},
};

use crate::{
    BankRef, BuildContext, BuildError, Capabilities, MemorySystem, RecallQuery, SystemSettings,
    documents::Document,
    from_items::{FromItems, Pick},
    settings::{Setting, text},
};

/// Raised whenever a recall can change.
const VERSION: &str = "1.0.0";

const SEED: Setting = Setting { name: "random.seed", description: "seed of the lot", default: "0" };

pub(crate) const SETTINGS: &[Setting] = &[SEED];

struct Lot {
    seed: String,
}

pub(crate) fn build(settings: &SystemSettings, _: &BuildContext) -> Result<Arc<dyn MemorySystem>, BuildError> {
    let seed = text(settings, &SEED)?;
    Ok(FromItems::system(Capabilities::from_items(VERSION), Lot { seed }))
}

impl Pick for Lot {
    fn pick<'a>(
        &self,
        bank: &BankRef,
        documents: Vec<Document<'a>>,
        query: &RecallQuery<'_>,
    ) -> Result<Vec<Document<'a>>, Failure> {
        let drawn = draw(&self.seed, &bank.content_hash, query.question_id, documents.len(), query.k as usize);
        Ok(drawn.into_iter().map(|at| documents[at]).collect())
    }
}

/// Draws `k` different numbers below `n`, as a pure function of seed, bank content and question id: a partial
/// Fisher-Yates shuffle. Own arithmetic, because the crates promise the stream of a generator, not of a shuffle.
fn draw(seed: &str, content: &Sha256Hash, question_id: &str, n: usize, k: usize) -> Vec<usize> {
    let key = Sha256Hash::of_bytes(format!("bench-random-v1\n{seed}\n{}\n{question_id}", content.hex()).as_bytes());
    let mut rng = ChaCha8Rng::from_seed(key.0);
    let mut numbers: Vec<usize> = (0..n).collect();
    let k = k.min(n);
    for at in 0..k {
        // multiply and shift: the bias is below n / 2^64
        let offset = (u128::from(rng.next_u64()) * (n - at) as u128) >> 64;
        numbers.swap(at, at + offset as usize);
    }
    numbers.truncate(k);
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lot_is_pinned() {
        let content = Sha256Hash::of_bytes(b"content");
        assert_eq!(draw("0", &content, "conv-1:7", 100, 5), [51, 20, 85, 22, 1], "a change must raise VERSION");
        assert_ne!(draw("0", &content, "conv-1:7", 100, 5), draw("1", &content, "conv-1:7", 100, 5));
        assert_ne!(draw("0", &content, "conv-1:7", 100, 5), draw("0", &content, "conv-1:8", 100, 5));
        assert_ne!(draw("0", &content, "conv-1:7", 100, 5), draw("0", &Sha256Hash::of_bytes(b"x"), "conv-1:7", 100, 5));
    }

    #[test]
    fn every_document_comes_up_equally_often() {
        let content = Sha256Hash::of_bytes(b"content");
        let mut counts = [0_u32; 20];
        for question in 0..4_000 {
            for at in draw("0", &content, &question.to_string(), 20, 5) {
                counts[at] += 1;
            }
        }
        // expected 1,000 each, standard deviation about 27
        assert!(counts.iter().all(|count| (850..=1_150).contains(count)), "{counts:?}");
    }
}
