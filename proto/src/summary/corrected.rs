//! A score corrected for the errors of the judge that gave it (Rogan and Gladen 1978), beside the score and never in its place.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FacetScore, Interval};

/// The headline metric corrected by an audit of its judge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CorrectedScore {
    /// The corrected metric: that of the judge.
    pub metric: String,
    /// Id of the audit's run.
    pub audit: String,
    /// The audit is of graded answers of this very system. Only then is there a value: how often a judge takes a wrong answer for
    /// right depends on the kind of wrong answer, and planted ones are of other kinds.
    pub own_answers: bool,
    /// Answers of the audit that the judge has graded.
    pub n: u64,
    /// All categories that the headline counts.
    #[serde(flatten)]
    pub all: Corrected,
    /// Each of them, in alphabetical order.
    pub by_category: Vec<CorrectedCategory>,
    /// What to know of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The corrected score of a category.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CorrectedCategory {
    /// Name of the category.
    pub category: String,
    /// Its figures.
    #[serde(flatten)]
    pub score: Corrected,
}

/// A corrected score: a value of graded answers of the system itself, a range of planted ones.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Corrected {
    /// The score as the judge gave it.
    pub raw: Option<f64>,
    /// Share of right answers; null where only a range can be given, and where the judge tells too little.
    pub value: Option<f64>,
    /// With the uncertainty of the score, of sensitivity and of specificity, each as wide as its own interval.
    pub ci95: Option<Interval>,
    /// Questions and answers taken as independent.
    pub naive_ci95: Option<Interval>,
    /// Lowest and highest value over the kinds of planted answers.
    pub range: Option<CorrectedRange>,
    /// Why there is neither value nor range, or no interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What each kind of wrong answers with each kind of right ones makes of the score.
    pub by_kind: Vec<CorrectedBy>,
}

/// The least and the most.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CorrectedRange {
    /// The least.
    pub low: f64,
    /// The most.
    pub high: f64,
}

/// A score corrected by the errors about wrong answers of one kind and right ones of another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CorrectedBy {
    /// Kind of the wrong answers.
    pub wrong: String,
    /// Kind of the right answers.
    pub right: String,
    /// Mean grade of right answers: of verdicts the share that is accepted.
    pub sensitivity: FacetScore,
    /// 1 − mean grade of wrong answers: of verdicts the share that is rejected.
    pub specificity: FacetScore,
    /// (score + specificity − 1) / (sensitivity + specificity − 1), cut to [0, 1].
    pub value: Option<f64>,
    /// Its interval.
    pub ci95: Option<Interval>,
    /// Questions and answers taken as independent.
    pub naive_ci95: Option<Interval>,
    /// Why there is no value, or no interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}
