//! How the questions ended and what they scored, with the intervals, and how far graders agree.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    call::is_default,
    metric::{Better, Scale},
    profile::{Part, Written},
};

/// How the questions of the sample ended: four disjoint classes that sum to `sample`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcomes {
    /// Have a score.
    pub scored: u64,
    /// Have a score too; the answer is empty or abstains by the dataset's rule.
    pub abstained: u64,
    /// A call, the system or the judge failed, or the bank could not be retained.
    pub infra_error: u64,
    /// The run ended before them.
    pub not_run: u64,
    /// Sum of the four: the questions of the sample.
    pub sample: u64,
    /// (scored + abstained) / sample; null for an empty sample.
    pub coverage: Option<f64>,
}

/// How a total is made from the scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Estimator {
    /// Mean over the questions of the sample.
    Mean,
    /// Category means weighted to the whole dataset, Σ (N_h / N) · mean_h.
    Weighted,
}

impl Estimator {
    /// The estimator's word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Weighted => "weighted",
        }
    }
}

/// A 95 % interval, clipped to [0, 1].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// How it was made, in words.
    pub method: String,
}

/// The one number of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Headline {
    /// Its metric: the first judge's, else the first scorer's.
    pub metric: String,
    /// Categories that it leaves out, as the dataset's profile says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// Score over scored and abstained questions.
    pub value: Option<f64>,
    /// How it was made.
    pub estimator: Estimator,
    /// Questions behind it.
    #[serde(default)]
    pub n: u64,
    /// Questions of its categories that have ended with scores, but with none of this metric: it does not apply to them. A weighted
    /// score is then about the questions of the dataset that it applies to.
    #[serde(default, skip_serializing_if = "is_default")]
    pub without_figure: u64,
    /// Questions of the whole dataset in the categories of the sample.
    #[serde(default)]
    pub population: Option<u64>,
    /// Banks behind it.
    #[serde(default)]
    pub clusters: u64,
    /// "Conversations like these": what new conversations would say; banks are the clusters.
    pub ci95: Option<Interval>,
    /// Why `ci95` is null, or what to know about it.
    #[serde(default)]
    pub ci95_note: Option<String>,
    /// The cluster-robust t interval alone, which is the `ci95` of earlier builds; null where banks do not differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub t_ci95: Option<Interval>,
    /// Questions taken as independent; for comparison with what others print.
    pub naive_ci95: Option<Interval>,
    /// "This benchmark": what the full run would say; null on a full run.
    pub benchmark_ci95: Option<Interval>,
    /// Why `benchmark_ci95` is null.
    #[serde(default)]
    pub benchmark_note: Option<String>,
    /// A wild cluster bootstrap-t interval: a check on `ci95`.
    #[serde(default)]
    pub bootstrap_ci95: Option<Interval>,
    /// Why `bootstrap_ci95` is null.
    #[serde(default)]
    pub bootstrap_note: Option<String>,
    /// The same score with infra_error and not_run as 0, or as 1 where lower is better.
    pub strict: Option<f64>,
}

/// The headline metric over a part of the categories.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartScore {
    /// Name of the run's headline metric.
    pub metric: String,
    /// Score over scored and abstained questions of the part.
    pub value: Option<f64>,
    /// How it was made.
    pub estimator: Estimator,
    /// Questions behind it.
    pub n: u64,
    /// Questions of the whole dataset in the part.
    pub population: Option<u64>,
    /// Banks behind it.
    pub clusters: u64,
    /// "Conversations like these".
    pub ci95: Option<Interval>,
    /// Questions taken as independent.
    pub naive_ci95: Option<Interval>,
    /// "This benchmark"; null on a full run.
    pub benchmark_ci95: Option<Interval>,
    /// The same with infra_error and not_run as in the headline's.
    pub strict: Option<f64>,
}

/// A total over a part of the categories.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TotalScore {
    /// Which categories it counts.
    #[serde(flatten)]
    pub part: Part,
    /// The headline metric over these.
    #[serde(flatten)]
    pub score: PartScore,
}

/// A figure of the headline metric as the published results of the dataset count it: a plain mean, without an interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedFigure {
    /// What those results call it.
    pub name: String,
    /// Its value; null for a mean of nothing.
    pub value: Option<f64>,
    /// Questions behind it.
    pub n: u64,
    /// How those results write it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub written: Written,
}

/// All totals of one metric. Categories that the headline leaves out count in `by_category` alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricScore {
    /// Name of the metric.
    pub metric: String,
    /// Mean over the questions of the sample.
    pub micro: Option<f64>,
    /// Mean of the category scores.
    #[serde(rename = "macro")]
    pub macro_: Option<f64>,
    /// Σ (N_h / N) · mean_h over the categories of the sample.
    pub weighted: Option<f64>,
    /// Interval of the run's estimator, by banks.
    pub ci95: Option<Interval>,
    /// Interval of the run's estimator, questions taken as independent.
    pub naive_ci95: Option<Interval>,
    /// Questions with this metric.
    pub n: u64,
    /// Share of them that passed: at `pass_threshold` or on its better side.
    pub pass_rate: Option<f64>,
    /// From which score a question counts as passed.
    pub pass_threshold: f64,
    /// Whether the threshold itself does not pass.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pass_beyond: bool,
    /// In which direction scores are better.
    #[serde(default, skip_serializing_if = "is_default")]
    pub better: Better,
    /// Per category, in alphabetical order.
    pub by_category: Vec<CategoryScore>,
    /// Facet → value → score, over the questions of all categories; at most [`MOST_FACETS`] facets with [`MOST_FACET_VALUES`]
    /// values each, the rest of a facet's values together under [`OTHER_FACET_VALUES`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_facet: BTreeMap<String, BTreeMap<String, FacetScore>>,
}

impl MetricScore {
    /// Its value over all questions, as an estimator makes it.
    #[must_use]
    pub const fn total(&self, estimator: Estimator) -> Option<f64> {
        match estimator {
            Estimator::Weighted => self.weighted,
            Estimator::Mean => self.micro,
        }
    }

    /// How its scores are read.
    #[must_use]
    pub fn scale(&self) -> Scale {
        Scale { better: self.better, threshold: self.pass_threshold, beyond: self.pass_beyond }
    }
}

/// The most facets that are told apart: those that come first by their names.
pub const MOST_FACETS: usize = 16;
/// The most values of a facet that are told apart: those with the most questions.
pub const MOST_FACET_VALUES: usize = 64;
/// Stands for the other values of a facet.
pub const OTHER_FACET_VALUES: &str = "(other)";

/// One metric over the questions with one value of a facet: a plain mean, by the method of [`CategoryScore`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FacetScore {
    /// Questions with this metric.
    pub n: u64,
    /// Mean score.
    pub value: Option<f64>,
    /// Banks behind it.
    pub clusters: u64,
    /// By banks.
    pub ci95: Option<Interval>,
    /// Why `ci95` is null, or a warning about few banks.
    pub ci95_note: Option<String>,
    /// Questions taken as independent.
    pub naive_ci95: Option<Interval>,
}

/// One metric in one category.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CategoryScore {
    /// Name of the category.
    pub category: String,
    /// Questions with this metric.
    pub n: u64,
    /// Questions of the whole dataset in this category.
    pub population: Option<u64>,
    /// Mean score.
    pub value: Option<f64>,
    /// Lowest score.
    pub min: Option<f64>,
    /// Highest score.
    pub max: Option<f64>,
    /// Banks behind it.
    pub clusters: u64,
    /// By banks.
    pub ci95: Option<Interval>,
    /// Why `ci95` is null, or a warning about few banks.
    #[serde(default)]
    pub ci95_note: Option<String>,
    /// Questions taken as independent.
    pub naive_ci95: Option<Interval>,
}

/// What known mistakes of the dataset's answer key mean for the headline metric: plain means over the scored questions of the
/// categories that were looked through.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerKeyScore {
    /// Name of the label fixes, or of the file with the mistakes.
    pub source: String,
    /// The headline metric.
    pub metric: String,
    /// Categories whose answers were looked through: of a file those that it names questions of.
    pub categories: Vec<String>,
    /// All of these categories together.
    #[serde(flatten)]
    pub all: KeyedScore,
    /// Each of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_category: Vec<KeyedCategory>,
}

/// A category by both keys.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeyedCategory {
    /// Name of the category.
    pub category: String,
    /// Its figures.
    #[serde(flatten)]
    pub score: KeyedScore,
}

/// Questions by the published and by the corrected key; plain means.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeyedScore {
    /// Questions with a score by the published key.
    pub n: u64,
    /// Those of them whose expected answer is wrong.
    pub wrong: u64,
    /// What a perfect system reaches by the published key: 1 − wrong / n.
    pub ceiling: Option<f64>,
    /// By the published key.
    pub published: Option<f64>,
    /// By the corrected key, without the questions of which nobody knows the right answer; null for grades that were given by
    /// the published key alone.
    pub corrected: Option<f64>,
    /// Those of the wrong ones of which no right answer is known: `corrected` is without them, and null where these are all.
    #[serde(default, skip_serializing_if = "is_default")]
    pub without_correction: u64,
    /// Without the questions whose expected answer is wrong.
    pub without_wrong: Option<f64>,
    /// The score by the published key is above what a perfect system reaches: wrong answers were taken for right.
    #[serde(default, skip_serializing_if = "is_default")]
    pub above_ceiling: bool,
}

/// How far graders of the same answers agree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Agreement {
    /// Whose grades: `judge (votes)`, or `judge / judge-2`.
    pub between: String,
    /// Grades per answer.
    pub raters: u32,
    /// Answers that all of them graded.
    pub n: u64,
    /// Share of agreeing pairs of grades.
    pub agreement: Option<f64>,
    /// Agreement beyond chance; null when every grade is the same.
    pub kappa: Option<f64>,
    /// By answers; null where `kappa` is.
    #[serde(default)]
    pub kappa_ci95: Option<Interval>,
    /// Grades of the rarer kind, passed or failed, over all of them.
    #[serde(default)]
    pub rarer: Option<u64>,
    /// `Fleiss` or `Cohen`.
    pub statistic: String,
}

/// A control run beside the measured one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ControlScore {
    /// `none`, `random`, `full-context`, `bm25`, `oracle`.
    pub name: String,
    /// Name of the metric by which controls are compared with the run.
    pub metric: String,
    /// Its score by the run's estimator.
    pub value: Option<f64>,
    /// Questions behind it.
    pub n: u64,
}

/// One of the worst scores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorstQuestion {
    /// The dataset's id of the question.
    pub question_id: String,
    /// Score by the headline metric.
    pub score: f64,
    /// The expected answer; null until somebody filled it in.
    pub gold: Option<String>,
    /// What was answered; null until somebody filled it in.
    pub answer: Option<String>,
}
