//! Vectors that were made while a bank was retained, kept for its index: the time that they take belongs to retaining, and
//! no first question waits for them. Bounded by bytes; what has been put out is computed again.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use bench_proto::{failure::Failure, ids::Sha256Hash};

use crate::embed::{Embed, EmbeddingModel};

/// Bytes of vectors that are kept: 64 MiB, 40,000 vectors of 384 dimensions.
const KEPT_BYTES: usize = 64 << 20;

/// A model of this machine that keeps the vectors of banks.
pub(super) struct Kept {
    model: Arc<dyn Embed>,
    most: usize,
    vectors: Mutex<Vectors>,
}

#[derive(Default)]
struct Vectors {
    by_text: HashMap<Sha256Hash, Vec<f32>>,
    /// Oldest first.
    order: VecDeque<Sha256Hash>,
    bytes: usize,
}

impl Kept {
    pub(super) fn around(model: Arc<dyn Embed>) -> Self {
        Self { model, most: KEPT_BYTES, vectors: Mutex::default() }
    }

    fn vectors(&self) -> MutexGuard<'_, Vectors> {
        self.vectors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One vector per text: those that are there, and the others computed and kept.
    async fn known_or_made(&self, model: &EmbeddingModel, texts: &[String]) -> Result<Vec<Vec<f32>>, Failure> {
        let keys: Vec<Sha256Hash> = texts.iter().map(|text| Sha256Hash::of_bytes(text.as_bytes())).collect();
        let mut found: Vec<Option<Vec<f32>>> = {
            let vectors = self.vectors();
            keys.iter().map(|key| vectors.by_text.get(key).cloned()).collect()
        };
        let missing: Vec<usize> = (0..texts.len()).filter(|at| found[*at].is_none()).collect();
        if !missing.is_empty() {
            let wanted: Vec<String> = missing.iter().map(|at| texts[*at].clone()).collect();
            let made = self.model.embed(model, &wanted).await?;
            let mut vectors = self.vectors();
            for (at, vector) in missing.into_iter().zip(made) {
                vectors.keep(keys[at], vector.clone(), self.most);
                found[at] = Some(vector);
            }
        }
        Ok(found.into_iter().flatten().collect())
    }
}

impl Vectors {
    fn keep(&mut self, key: Sha256Hash, vector: Vec<f32>, most: usize) {
        self.bytes += size_of_val(vector.as_slice());
        match self.by_text.insert(key, vector) {
            // two made it at the same time
            Some(before) => self.bytes -= size_of_val(before.as_slice()),
            None => self.order.push_back(key),
        }
        while self.bytes > most {
            let Some(oldest) = self.order.pop_front() else { return };
            if let Some(gone) = self.by_text.remove(&oldest) {
                self.bytes -= size_of_val(gone.as_slice());
            }
        }
    }
}

#[async_trait]
impl Embed for Kept {
    async fn embed(&self, model: &EmbeddingModel, texts: &[String]) -> Result<Vec<Vec<f32>>, Failure> {
        self.model.embed(model, texts).await
    }

    async fn ahead(&self, model: &EmbeddingModel, texts: &[String]) -> Result<(), Failure> {
        self.known_or_made(model, texts).await.map(drop)
    }

    async fn of_bank(&self, model: &EmbeddingModel, texts: &[String]) -> Result<Vec<Vec<f32>>, Failure> {
        self.known_or_made(model, texts).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A vector with the length of the text; counts what it computes.
    #[derive(Default)]
    struct Lengths(AtomicUsize);

    #[async_trait]
    impl Embed for Lengths {
        async fn embed(&self, _: &EmbeddingModel, texts: &[String]) -> Result<Vec<Vec<f32>>, Failure> {
            self.0.fetch_add(texts.len(), Ordering::SeqCst);
            Ok(texts.iter().map(|text| vec![text.len() as f32]).collect())
        }
    }

    fn texts(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[tokio::test]
    async fn what_was_made_ahead_is_not_made_again() {
        let lengths = Arc::new(Lengths::default());
        let kept = Kept::around(Arc::<Lengths>::clone(&lengths));
        let model = EmbeddingModel { name: "local".to_owned(), account: String::new() };
        kept.ahead(&model, &texts(&["a", "bb", "a"])).await.expect("computes");
        let found = kept.of_bank(&model, &texts(&["bb", "ccc", "a"])).await.expect("computes");
        assert_eq!(found, [[2.0], [3.0], [1.0]], "in the order of the texts");
        assert_eq!(lengths.0.load(Ordering::SeqCst), 3 + 1, "only the new one was computed");
    }

    #[tokio::test]
    async fn what_is_kept_is_bounded() {
        let lengths = Arc::new(Lengths::default());
        let kept = Kept { most: 3 * size_of::<f32>(), ..Kept::around(Arc::<Lengths>::clone(&lengths)) };
        let model = EmbeddingModel { name: "local".to_owned(), account: String::new() };
        for word in ["a", "bb", "ccc", "dddd", "ccc", "dddd"] {
            kept.ahead(&model, &texts(&[word])).await.expect("computes");
        }
        assert_eq!(lengths.0.load(Ordering::SeqCst), 4);
        let found = kept.of_bank(&model, &texts(&["a", "bb"])).await.expect("computes");
        assert_eq!(found, [[1.0], [2.0]], "the oldest was put out and is computed again");
        assert!(kept.vectors().bytes <= 3 * size_of::<f32>(), "{}", kept.vectors().bytes);
    }
}
