//! The result digest (P17): equal for equal work by deterministic systems and models.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::facts::Outcome;

/// Hashes (question id, outcome, scores), which come in byte order of the question ids: a large run keeps no copy.
///
/// One line per question: `id TAB outcome (TAB metric=units)*`, scores as whole units of 10⁻⁹; no times, costs, attempts.
#[derive(Debug)]
pub struct ResultDigest {
    hash: Sha256,
    line: String,
}

impl Default for ResultDigest {
    fn default() -> Self {
        let mut hash = Sha256::new();
        hash.update(b"bench-result-v1\n");
        Self { hash, line: String::new() }
    }
}

impl ResultDigest {
    /// Adds the next question; its id must not sort before the one added last.
    pub fn push<'a>(&mut self, question_id: &str, outcome: Outcome, scores: impl IntoIterator<Item = (&'a str, f64)>) {
        debug_assert!(
            self.line.split('\t').next().is_none_or(|last| last <= question_id),
            "{question_id} comes too late"
        );
        self.line.clear();
        self.line.push_str(question_id);
        self.line.push('\t');
        self.line.push_str(outcome.name());
        for (metric, score) in scores {
            let units = (score * 1e9).round() as i64;
            // writing to a String cannot fail
            let _ = write!(self.line, "\t{metric}={units}");
        }
        self.line.push('\n');
        self.hash.update(self.line.as_bytes());
    }

    /// The digest as 64 hexadecimal characters.
    #[must_use]
    pub fn finish(self) -> String {
        hex::encode(self.hash.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(parts: &[(&str, Outcome, f64)]) -> String {
        let mut digest = ResultDigest::default();
        for (id, outcome, score) in parts {
            digest.push(id, *outcome, [("m", *score)]);
        }
        digest.finish()
    }

    #[test]
    fn it_is_the_hash_of_lines_that_anybody_can_write() {
        let lines = b"bench-result-v1\na\tscored\tm=250000000\nb\tabstained\tm=0\n";
        let expected = hex::encode(Sha256::digest(lines));
        assert_eq!(digest(&[("a", Outcome::Scored, 0.25), ("b", Outcome::Abstained, 0.0)]), expected);
    }

    #[test]
    fn scores_matter_to_a_billionth() {
        let of = |score| digest(&[("a", Outcome::Scored, score)]);
        assert_ne!(of(0.5), of(0.500_000_001));
        assert_eq!(of(0.1 + 0.2), of(0.3));
    }
}
