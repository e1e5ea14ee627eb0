//! What several judges of a run say together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FacetScore, Interval};

/// What several judges of a run say together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PanelSummary {
    /// The mean of the judges that graded all questions, where there are two or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<FacetScore>,
    /// Their majority: passed by more than half of them, ½ where as many passed it as did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub majority: Option<FacetScore>,
    /// How far two or more of them lie apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<JudgeSpread>,
    /// How often each of three or more of them stands against the majority of the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differing: Vec<DifferingJudge>,
    /// Each judge that graded a sample, held against the first one, which graded all questions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sampled: Vec<SampledJudge>,
}

/// How far the score moves with the judge, over the questions that all of them graded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgeSpread {
    /// The score by the one that gives most, less that by the one that gives least, from 0 to 1.
    pub value: f64,
    /// Metric of the judge with the lowest score.
    pub low_judge: String,
    /// Metric of the judge with the highest score.
    pub high_judge: String,
    /// Questions that all of them graded.
    pub n: u64,
    /// 95 % interval of the difference of these two, for conversations like these. Of three or more judges they are the two that
    /// lie farthest apart, by chance too.
    pub ci95: Option<Interval>,
    /// Why there is no interval, or how to read it.
    pub ci95_note: Option<String>,
}

/// How often a judge stands against the majority of the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DifferingJudge {
    /// Name of its metric.
    pub metric: String,
    /// Questions about which the others have a majority.
    pub n: u64,
    /// Share of them on which its verdict is another.
    pub differs: Option<f64>,
    /// Share that it passes and the majority of the others does not.
    pub accepts_alone: Option<f64>,
}

/// What a judge of a sample would have said of all questions: its grades in the sample, helped by those of the judge of all
/// (difference estimator with a tuned weight; prediction-powered inference, Angelopoulos et al. 2023).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampledJudge {
    /// Name of its metric.
    pub metric: String,
    /// Metric of the judge of all questions.
    pub helped_by: String,
    /// Questions that the judge of all has graded.
    pub n: u64,
    /// Questions that both have graded.
    pub sampled: u64,
    /// Banks of the sample.
    pub clusters: u64,
    /// λ: how far the judge of all is relied on; 0 leaves it out.
    pub weight: f64,
    /// Correlation of both judges' grades in the sample; null where one of them does not vary.
    pub correlation: Option<f64>,
    /// Score that the judge of the sample would have given to all questions.
    pub value: Option<f64>,
    /// Conversations like these: the wider one of a t interval by banks and one of independent questions.
    pub ci95: Option<Interval>,
    /// Why `ci95` is null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci95_note: Option<String>,
    /// Questions taken as independent.
    pub naive_ci95: Option<Interval>,
    /// These questions: what the judge of the sample would say of all of them.
    pub these_ci95: Option<Interval>,
    /// The grades of the sample alone, by the same method.
    pub alone: Option<f64>,
    /// Its interval, never narrower than `ci95`.
    pub alone_ci95: Option<Interval>,
    /// Width of `ci95`, in shares of 1; without cutting at 0 and 1.
    pub width: Option<f64>,
    /// Width of the interval of the sample alone.
    pub alone_width: Option<f64>,
    /// Width that is expected of the same judge on all questions.
    pub all_width: Option<f64>,
    /// Dollars of both judges, as if nothing had been cached.
    pub usd: f64,
    /// Dollars of the judge of the sample on all questions: its mean price of a question times their number.
    pub all_usd: f64,
}
