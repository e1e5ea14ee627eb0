//! Deterministic scorers. To add one, copy the smallest file here and add a line to the registry.
//!
//! In comes a [`ScoreCase`]: what was recalled and answered, and the gold. Out come scores in [0, 1], or none where a scorer has
//! nothing to say. Start reading at [`Scorer`], then at `exact`, the smallest one; `registry` has them all by name, and
//! `self_check` holds every run's scorers to answers of known score.

pub mod abstention;
pub mod assertions;
pub mod beam_order;
mod case;
mod category;
pub mod choice;
pub mod contains;
pub mod exact;
#[cfg(test)]
mod golden;
pub mod keywords;
pub mod line_rules;
pub mod locomo_f1;
pub mod locomo_recall;
pub mod normalize;
pub mod porter2;
pub mod porter_nltk;
#[cfg(test)]
pub(crate) mod reference;
pub mod registry;
pub mod retrieval;
pub mod rubric;
pub mod rubric_amplihack;
pub mod score_line;
pub mod self_check;
pub mod stem;
pub mod substring;
mod text;
pub mod word_overlap;

use bench_proto::{
    dataset::{Gold, GoldRecord},
    label_fixes::corrected_metric,
    metric::MetricSpec,
    profile::CategoryRules,
    spec::ScorerSpec,
};

pub use self::case::ScoreCase;

/// What a scorer looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// The answer: without one it has nothing to say.
    Answer,
    /// The ranks of the evidence among the hits.
    Ranks,
    /// The hits themselves.
    Hits,
}

/// Where a rule comes from, and what holds it to that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The program with the file and function whose rule it is; `ours` for rules of this project.
    pub source: &'static str,
    /// Groups of published outputs that it reproduces; each has a test of its name.
    pub vectors: &'static [&'static str],
}

impl Origin {
    /// A rule of this project: nobody else has published outputs of it.
    pub const OURS: Self = Self { source: "ours", vectors: &[] };
}

/// A pure function from what was found and answered, and what was expected, to scores in [0, 1].
pub trait Scorer: Send + Sync {
    /// Its name, and that of its metric where it gives one.
    fn name(&self) -> &str;

    /// One line for `score --list`.
    fn description(&self) -> &str;

    /// Version: raised whenever a score can change (golden tests force it).
    fn version(&self) -> u32;

    /// Whose rule it is.
    fn origin(&self) -> Origin;

    /// What it looks at.
    fn reads(&self) -> Reads {
        Reads::Answer
    }

    /// Its metrics, the first before the others in reports. Empty: one of its own name on the plain scale.
    fn metrics(&self) -> Vec<MetricSpec> {
        Vec::new()
    }

    /// Hits that a recall must bring for its figures to mean what they say.
    fn least_k(&self) -> u32 {
        0
    }

    /// Whether pasting everything is a good answer by it, and nobody is to be told of that as a fault.
    fn long_answers_win(&self) -> bool {
        false
    }

    /// Words that an answer may have at no cost, where length costs something by it; else 0.
    fn room(&self, case: &ScoreCase<'_>) -> usize {
        let _ = case;
        0
    }

    /// What a bare list of texts means to it as a gold: texts of which any one is right.
    fn gold_of_list(&self, texts: Vec<String>) -> Gold {
        Gold::AnyOf(texts)
    }

    /// The score by its first metric; `None` when there is nothing to measure.
    fn score(&self, case: &ScoreCase<'_>) -> Option<f64>;

    /// The scores by all its metrics, in their order.
    fn scores(&self, case: &ScoreCase<'_>) -> Vec<Option<f64>> {
        vec![self.score(case)]
    }

    /// The part of a gold's text that counts by the rules of its category: what the self-check expects to score 1.
    fn used_gold<'a>(&self, gold: &'a str, rules: &CategoryRules) -> &'a str {
        let _ = rules;
        gold
    }

    /// Scores one answer, in place of theirs, in many cases; scorers override it where preparing the answer once is worth it.
    fn score_many(&self, answer: &str, cases: &[ScoreCase<'_>]) -> Vec<Option<f64>> {
        cases.iter().map(|case| self.score(&ScoreCase { answer: Some(answer), ..*case })).collect()
    }
}

/// What scorers of answers say by the corrected key, under names of its own: nothing for questions whose published answer is not
/// known to be wrong.
pub fn corrected_scores(scorers: &[&'static dyn Scorer], case: &ScoreCase<'_>) -> Vec<(String, f64)> {
    let Some(record) = case.gold.and_then(GoldRecord::corrected) else { return Vec::new() };
    let case = ScoreCase { gold: Some(&record), ..*case };
    let of_answers = scorers.iter().filter(|scorer| scorer.reads() == Reads::Answer);
    let scores = of_answers.flat_map(|scorer| scorer.named_scores(&case));
    scores.map(|(metric, score)| (corrected_metric(&metric), score)).collect()
}

impl dyn Scorer {
    /// What the spec of a run says of it.
    #[must_use]
    pub fn spec(&self) -> ScorerSpec {
        ScorerSpec {
            name: self.name().to_owned(),
            version: self.version(),
            metrics: self.metrics(),
            of_recalls: self.reads() != Reads::Answer,
        }
    }

    /// Its scores by the names of its metrics, without those where there is nothing to measure.
    #[must_use]
    pub fn named_scores(&self, case: &ScoreCase<'_>) -> Vec<(String, f64)> {
        let metrics = self.metrics();
        if metrics.is_empty() {
            let score = self.score(case).filter(|score| score.is_finite());
            return score.map(|score| (self.name().to_owned(), score)).into_iter().collect();
        }
        let named = metrics.into_iter().zip(self.scores(case));
        named.filter_map(|(metric, score)| Some((metric.name, score.filter(|score| score.is_finite())?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use bench_proto::{dataset::Gold, label_fixes::LabelFix};

    use super::*;

    #[test]
    fn a_known_mistake_of_the_key_is_scored_by_both_keys() {
        let mut record = GoldRecord { gold: Gold::Text("Sunday".to_owned()), ..GoldRecord::default() };
        let scorers = ["exact", "recall@10"].map(|name| registry::find(name).expect("is registered"));
        let scored = |record: &GoldRecord| {
            let case = ScoreCase { gold: Some(record), answer: Some("saturday"), ..ScoreCase::default() };
            (exact::Exact.score(&case), corrected_scores(&scorers, &case))
        };
        assert_eq!(scored(&record), (Some(0.0), Vec::new()));
        let gold = Some(Gold::Text("Saturday".to_owned()));
        record.annotate(Some(&LabelFix { kind: "temporal-error".to_owned(), gold }));
        assert_eq!(scored(&record), (Some(0.0), vec![("exact.corrected".to_owned(), 1.0)]));
    }
}
