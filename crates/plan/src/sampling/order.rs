//! The order in which questions are taken from a (bank, category) cell.

use bench_proto::dataset::QuestionOutline;
use sha2::{Digest as _, Sha256};

use crate::request::Sampler;

/// The place of a question in its sampler's order: compared as bytes, then by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OrderKey {
    /// All zero for samplers that go by position.
    digest: [u8; 32],
    /// Bank's position in the file.
    pub(super) file_index: u32,
    /// Question's position in the file, among those of its bank.
    pub(super) file_place: u32,
    /// Question's index in its bank.
    pub(super) index: u32,
    /// Number of the question's stratum; orders nothing, as no two questions share the rest.
    pub(super) stratum: u32,
}

/// Makes places.
#[derive(Debug, Clone)]
pub(super) struct Order {
    /// Hash state after the prefix and the seed; absent for file order.
    prefix: Option<Sha256>,
}

impl Order {
    /// sha256("bench-sample-v1:" + [seed + ":"] + question id), or file order.
    pub(super) fn new(sampler: Sampler, seed: Option<&str>) -> Self {
        let prefix = match sampler {
            Sampler::Hash => {
                let mut state = Sha256::new_with_prefix("bench-sample-v1:");
                if let Some(seed) = seed {
                    state.update(seed);
                    state.update(":");
                }
                Some(state)
            }
            Sampler::Astrocyte | Sampler::GoLcg | Sampler::AstrocyteLme => None,
        };
        Self { prefix }
    }

    /// `file_index` is the bank's; `index` the question's there, which is its place in the file unless it says another.
    pub(super) fn place(&self, (file_index, index): (u32, u32), stratum: u32, question: &QuestionOutline) -> OrderKey {
        let digest = match &self.prefix {
            Some(prefix) => prefix.clone().chain_update(&question.question_id).finalize().into(),
            None => [0; 32],
        };
        OrderKey { digest, file_index, file_place: question.file_place.unwrap_or(index), index, stratum }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_the_documented_hashes() {
        let question = QuestionOutline { question_id: "conv-26:0".to_owned(), ..QuestionOutline::default() };
        let plain = Order::new(Sampler::Hash, None).place((0, 0), 0, &question);
        assert_eq!(plain.digest, <[u8; 32]>::from(Sha256::digest("bench-sample-v1:conv-26:0")));
        let seeded = Order::new(Sampler::Hash, Some("7")).place((0, 0), 0, &question);
        assert_eq!(seeded.digest, <[u8; 32]>::from(Sha256::digest("bench-sample-v1:7:conv-26:0")));
    }
}
