//! How somebody else counts: which questions, by which judge, what a failure is worth, what of several judgements is the figure.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a question counts as that got no grade.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// Nothing: it leaves the denominator.
    #[default]
    Drop,
    /// It counts as a wrong answer.
    Wrong,
    /// Nothing in the total, and wrong in its category.
    DropFromTotal,
}

impl OnFailure {
    /// For people.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Drop => "leave the denominator",
            Self::Wrong => "count as wrong",
            Self::DropFromTotal => "leave the denominator of the total and are wrong in their category",
        }
    }
}

/// What of a question's grades is counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Counted {
    /// Whether it passed; of several judgements the majority.
    #[default]
    Passes,
    /// Each judgement as a run of its own: the total is the mean of their accuracies, the categories go by the majority.
    MeanOfRuns,
    /// Its score, as it is.
    Score,
    /// Its score, rounded to three decimals before anything is added.
    RoundedScore,
}

impl Counted {
    /// For people.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Passes => "share of questions that passed",
            Self::MeanOfRuns => "mean of the accuracies of single judgements; categories by their majority",
            Self::Score => "mean score",
            Self::RoundedScore => "mean of the scores rounded to three decimals",
        }
    }
}

/// Somebody else's counting, as a run is held to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CountingSpec {
    /// Its name, such as `mem0-2025`.
    pub name: String,
    /// Version of our account of it.
    pub version: u32,
    /// The metric that it counts.
    pub metric: String,
    /// Categories that it leaves out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// What it calls categories where that is not their name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub names: BTreeMap<String, String>,
    /// What failures are worth.
    pub on_failure: OnFailure,
    /// What is counted.
    pub counted: Counted,
    /// How its judge's replies are read; none where no model judges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parser: Option<String>,
    /// In what this run differs from it, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub departures: Vec<String>,
}

impl CountingSpec {
    /// The label that every view prints beside the result.
    #[must_use]
    pub fn label(&self) -> String {
        format!("counted as {}: not comparable with other counting", self.name)
    }
}

/// A run's figures by somebody else's counting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CountingSummary {
    /// What was counted, and how.
    #[serde(flatten)]
    pub counting: CountingSpec,
    /// The total.
    pub value: Option<f64>,
    /// Population standard deviation of the accuracies of single judgements; null for one.
    pub sd: Option<f64>,
    /// Judgements of an answer.
    pub runs: u32,
    /// Questions in the denominator of the total.
    pub n: u64,
    /// Questions without a grade, in the categories that count.
    pub failed: u64,
    /// Questions of categories that it leaves out.
    pub left_out: u64,
    /// Each category that counts.
    pub by_category: Vec<CountedCategory>,
}

/// A category by somebody else's counting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CountedCategory {
    /// Name of the category in our profile.
    pub category: String,
    /// What it is called there.
    pub called: String,
    /// Its figure.
    pub value: Option<f64>,
    /// Questions in its denominator.
    pub n: u64,
}
