//! Deterministic scorers. To add one, copy the smallest file here and add a line to the registry.

pub mod abstention;
mod category;
pub mod choice;
pub mod exact;
pub mod locomo_f1;
pub mod locomo_recall;
pub mod normalize;
pub mod porter2;
pub mod porter_nltk;
#[cfg(test)]
pub(crate) mod reference;
pub mod registry;
pub mod rubric;
pub mod score_line;
pub mod self_check;
pub mod stem;
mod text;
pub mod word_overlap;

use bench_proto::dataset::Gold;

/// What is scored.
#[derive(Debug, Clone, Copy)]
pub struct ScoreCase<'a> {
    /// The answer.
    pub prediction: &'a str,
    /// What was expected; `None` when the data has no gold.
    pub gold: Option<&'a Gold>,
    /// The question's category name.
    pub category: &'a str,
}

/// A pure function from answer and gold to a score in [0, 1].
pub trait Scorer: Send + Sync {
    /// Name: the metric's name in reports.
    fn name(&self) -> &'static str;

    /// One line for `score --list`.
    fn description(&self) -> &'static str;

    /// Version: raised whenever a score can change (golden tests force it).
    fn version(&self) -> u32;

    /// The score; `None` when this scorer does not apply to the case.
    fn score(&self, case: &ScoreCase<'_>) -> Option<f64>;

    /// The part of a gold's text that counts in a category: what the self-check expects to score 1.
    fn used_gold<'a>(&self, gold: &'a str, category: &str) -> &'a str {
        let _ = category;
        gold
    }

    /// Scores one prediction against many golds; scorers override it where preparing the prediction once is worth it.
    fn score_many(&self, prediction: &str, cases: &[(Option<&Gold>, &str)]) -> Vec<Option<f64>> {
        cases.iter().map(|(gold, category)| self.score(&ScoreCase { prediction, gold: *gold, category })).collect()
    }
}
