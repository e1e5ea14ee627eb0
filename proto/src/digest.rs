//! The result digest (P17): equal for equal work by deterministic systems and models.

use sha2::{Digest, Sha256};

use crate::facts::{Outcome, QuestionFacts};

/// Collects (question id, outcome, scores) in any order and hashes them in byte order of the question ids.
///
/// One line per question: `id TAB outcome (TAB metric=units)*`, scores as whole units of 10⁻⁹; no times, costs, attempts.
#[derive(Debug, Default)]
pub struct ResultDigest {
    lines: Vec<(String, String)>,
}

impl ResultDigest {
    /// Adds a question that ended.
    pub fn add(&mut self, facts: &QuestionFacts) {
        self.add_parts(&facts.question_id, facts.outcome, &facts.scores);
    }

    /// Adds a question by its parts (also those that did not run).
    pub fn add_parts(&mut self, question_id: &str, outcome: Outcome, scores: &[(String, f64)]) {
        let mut line = String::from(outcome.name());
        for (metric, score) in scores {
            let units = (score * 1e9).round() as i64;
            line.push_str(&format!("\t{metric}={units}"));
        }
        self.lines.push((question_id.to_owned(), line));
    }

    /// The digest as 64 hexadecimal characters.
    #[must_use]
    pub fn finish(mut self) -> String {
        self.lines.sort();
        let mut hash = Sha256::new();
        hash.update(b"bench-result-v1\n");
        for (id, line) in &self.lines {
            hash.update(id.as_bytes());
            hash.update(b"\t");
            hash.update(line.as_bytes());
            hash.update(b"\n");
        }
        hex::encode(hash.finalize())
    }
}

/// The same digest over results that already come in byte order of the question ids: a large run keeps no second copy.
#[derive(Debug)]
pub struct SortedResultDigest {
    hash: Sha256,
    line: String,
}

impl Default for SortedResultDigest {
    fn default() -> Self {
        let mut hash = Sha256::new();
        hash.update(b"bench-result-v1\n");
        Self { hash, line: String::new() }
    }
}

impl SortedResultDigest {
    /// Adds the next question; its id must not sort before the one added last.
    pub fn push<'a>(&mut self, question_id: &str, outcome: Outcome, scores: impl IntoIterator<Item = (&'a str, f64)>) {
        use std::fmt::Write as _;
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

    #[test]
    fn order_does_not_matter_and_scores_do() {
        let digest = |parts: &[(&str, f64)]| {
            let mut digest = ResultDigest::default();
            for (id, score) in parts {
                digest.add_parts(id, Outcome::Scored, &[("m".to_owned(), *score)]);
            }
            digest.finish()
        };
        assert_eq!(digest(&[("b", 0.5), ("a", 1.0)]), digest(&[("a", 1.0), ("b", 0.5)]));
        assert_ne!(digest(&[("a", 0.5)]), digest(&[("a", 0.500_000_001)]));
        assert_eq!(digest(&[("a", 0.1 + 0.2)]), digest(&[("a", 0.3)]));
    }

    #[test]
    fn sorted_results_give_the_same_digest() {
        let mut any_order = ResultDigest::default();
        any_order.add_parts("b", Outcome::Abstained, &[]);
        any_order.add_parts("a", Outcome::Scored, &[("m".to_owned(), 0.25), ("n".to_owned(), 1.0)]);
        let mut sorted = SortedResultDigest::default();
        sorted.push("a", Outcome::Scored, [("m", 0.25), ("n", 1.0)]);
        sorted.push("b", Outcome::Abstained, []);
        assert_eq!(any_order.finish(), sorted.finish());
    }
}
