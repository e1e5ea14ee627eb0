//! The comparison of two runs on the questions that both scored: what `compare --json` prints, schema version 1.
//!
//! Differences are `b − a`: positive means that the second run is better, unless `better` says that lower scores are. Scores,
//! differences and intervals are fractions; a figure that was not computed is `null`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    call::is_default,
    ids::short_id,
    metric::{Better, Scale},
    spec::Difference,
    summary::{
        Estimator, Interval, JudgementLine, LatencyProbe, LatencySummary, MemoryCost, RetrievalSummary, UsageSummary,
        Verdict,
    },
};

/// Version of [`Comparison`] as written.
pub const COMPARISON_SCHEMA_VERSION: u32 = 1;

/// What a paired interval says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Word {
    /// The interval lies above 0, or below where lower scores are better.
    #[serde(rename = "BETTER")]
    Better,
    /// The interval lies on the other side of 0.
    #[serde(rename = "WORSE")]
    Worse,
    /// The interval lies inside ± the tolerance.
    #[serde(rename = "NO CHANGE")]
    NoChange,
    /// None of these.
    #[serde(rename = "INCONCLUSIVE")]
    Inconclusive,
}

impl Word {
    /// As it is printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Better => "BETTER",
            Self::Worse => "WORSE",
            Self::NoChange => "NO CHANGE",
            Self::Inconclusive => "INCONCLUSIVE",
        }
    }
}

/// What one of the two sides is, and its own score, latency and cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedRun {
    /// Public id.
    pub id: String,
    /// Name given by the user.
    pub name: Option<String>,
    /// Name of the memory system.
    pub system: String,
    /// Who answered, such as `openai:MODEL` or `extractive`.
    pub answerer: String,
    /// First judge.
    pub judge: Option<String>,
    /// All judges; absent where there is none, and in comparisons of earlier builds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub judges: Vec<String>,
    /// Sample preset.
    pub preset: String,
    /// Hash of what can change a score.
    pub fingerprint: String,
    /// Whether the run may be used.
    pub verdict: Verdict,
    /// Why not.
    pub reasons: Vec<String>,
    /// Its own headline over all of its questions, by the compared metric; null where nobody computed it.
    pub value: Option<f64>,
    /// The interval of that.
    pub ci95: Option<Interval>,
    /// Questions with a score.
    pub n: u64,
    /// Scored and abstained questions as a part of the sample, from 0 to 1; null when it is not known.
    pub coverage: Option<f64>,
    /// Hash over question ids, outcomes and scores: equal for equal results.
    pub result_digest: String,
    /// Retrieval against evidence ids.
    pub retrieval: RetrievalSummary,
    /// Latency percentiles under the load of the run: not compared.
    pub latency_ms: LatencySummary,
    /// Latency of one recall at a time.
    #[serde(default)]
    pub latency_probe: Option<LatencyProbe>,
    /// Usage and cost.
    pub usage: UsageSummary,
    /// Dollars per passed question; null when none passed.
    pub usd_per_correct: Option<f64>,
    /// What the memory system spent on models itself; absent where nobody metered it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metered: Option<MemoryCost>,
}

impl ComparedRun {
    /// In a few words: its name, or what of its id tells it from others.
    #[must_use]
    pub fn called(&self) -> &str {
        self.name.as_deref().unwrap_or_else(|| short_id(&self.id))
    }

    /// Who judged it, as far as that was noted.
    #[must_use]
    pub fn judged_by(&self) -> &[String] {
        if self.judges.is_empty() { self.judge.as_slice() } else { &self.judges }
    }

    /// What the memory system spends, metered or by calls of the runner; `None` where nobody knows.
    #[must_use]
    pub fn memory(&self) -> Option<&MemoryCost> {
        self.metered.as_ref().or(self.usage.memory.as_ref())
    }

    /// Dollars by list price as far as they are known, with those of the memory system where it was metered: the least that a run
    /// took whose memory system tells nothing. `None` of a result that came without its dollars, such as an imported one.
    #[must_use]
    pub fn usd_at_least(&self) -> Option<f64> {
        let usd = self.usage.total.usd_list + self.metered.as_ref().map_or(0.0, |metered| metered.usd);
        let is_told = usd > 0.0 || self.usage.booked.is_some() || self.memory().is_some();
        is_told.then_some(usd)
    }

    /// Dollars by list price with those of the memory system; `None` where nobody knows these, or the dollars of the run.
    #[must_use]
    pub fn usd_list(&self) -> Option<f64> {
        self.usd_at_least().filter(|_| !self.usage.is_incomplete())
    }
}

/// A difference of fingerprints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MarkedDifference {
    /// Dotted name.
    pub key: String,
    /// Value in the first run.
    pub left: String,
    /// Value in the second run.
    pub right: String,
    /// `dataset`, `sample`, `system`, `answerer` or `grading`.
    pub group: String,
    /// It belongs to the thing under test.
    pub under_test: bool,
}

impl MarkedDifference {
    /// A difference in its group.
    #[must_use]
    pub fn new(difference: Difference, group: &str, under_test: bool) -> Self {
        let Difference { key, left, right } = difference;
        Self { key, left, right, group: group.to_owned(), under_test }
    }
}

/// Mean of paired differences with everything that rests on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairedDifference {
    /// Questions that both runs scored.
    pub n: u64,
    /// Banks behind them.
    pub clusters: u64,
    /// Mean of the first run over these questions, by the estimator.
    pub a: Option<f64>,
    /// Mean of the second.
    pub b: Option<f64>,
    /// b − a.
    pub difference: Option<f64>,
    /// How means are made.
    pub estimator: Estimator,
    /// T interval of the paired differences, by banks or by questions taken as independent, whichever is wider: the decision
    /// rests on it.
    pub ci95: Option<Interval>,
    /// Why it is null, or what to know about it.
    pub ci95_note: Option<String>,
    /// Of the same difference, questions taken as independent; for comparison.
    pub naive_ci95: Option<Interval>,
    /// Two-sided: the larger one of both t tests.
    pub p_value: Option<f64>,
    /// The same after Holm's correction over the categories; null outside of them.
    pub p_holm: Option<f64>,
    /// The smallest true difference that this sample finds with 80 % power at 5 %.
    pub mde: Option<f64>,
    /// Distance from 0 up to which a change does not matter.
    pub tolerance: f64,
    /// What the interval says; of categories and facets BETTER and WORSE only where `p_holm` is at most 0.05.
    pub verdict: Word,
}

/// A category's paired difference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CategoryDifference {
    /// Name of the category.
    pub category: String,
    /// Its figures.
    #[serde(flatten)]
    pub paired: PairedDifference,
}

/// McNemar's exact test on passed and failed questions; it ignores clusters and decides nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct McNemar {
    /// From which score a question counts as passed.
    pub pass_threshold: f64,
    /// Whether the threshold itself does not pass.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pass_beyond: bool,
    /// Passed in both runs.
    pub both: u64,
    /// Passed in the first only: lost.
    pub only_a: u64,
    /// Passed in the second only: won.
    pub only_b: u64,
    /// Passed in none.
    pub neither: u64,
    /// Two-sided, exact.
    pub p_value: f64,
}

/// Paired difference of one retrieval figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RetrievalDifference {
    /// `turn` or `session`.
    pub level: String,
    /// Cut-off: the largest that both runs have.
    pub k: u32,
    /// `recall`.
    pub metric: String,
    /// Its figures.
    #[serde(flatten)]
    pub paired: PairedDifference,
}

/// What one of the two runs made of the question.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlipSide {
    /// Score of the question in this run, by the compared metric.
    pub score: f64,
    /// What this run answered; null where texts are not at hand.
    pub answer: Option<String>,
    /// What the judges said of it; empty where only scorers graded.
    pub judgements: Vec<JudgementLine>,
}

/// A question that one run passed and the other did not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Flip {
    /// The dataset's id of the question.
    pub question_id: String,
    /// The dataset's id of the bank that it is asked of.
    pub bank_id: String,
    /// The dataset's kind of question.
    pub category: String,
    /// `won` (the second run passed) or `lost`.
    pub direction: String,
    /// The question's text; null until it was filled in.
    pub question: Option<String>,
    /// The expected answer.
    pub gold: Option<String>,
    /// In the first run.
    pub a: FlipSide,
    /// In the second run.
    pub b: FlipSide,
}

/// Two runs side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// [`COMPARISON_SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// The first run: the baseline.
    pub a: ComparedRun,
    /// The second run.
    pub b: ComparedRun,
    /// Whether the difference may be read as the effect of one thing.
    pub comparable: bool,
    /// Why not.
    pub reasons: Vec<String>,
    /// What has to be known beside the figures.
    pub notes: Vec<String>,
    /// The group of settings that differs; null when none does.
    pub under_test: Option<String>,
    /// All differences of the fingerprints.
    pub differences: Vec<MarkedDifference>,
    /// False when the runs share paid answers, so that their noise is shared too.
    pub independent: bool,
    /// True when one run has from the other, or both from a third, all that the metric looks at: nothing was measured anew.
    #[serde(default, skip_serializing_if = "is_default")]
    pub copied: bool,
    /// The run that made what is copied; absent where nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copied_of: Option<String>,
    /// True when the digests are equal and all questions are shared: every question ended alike in both, with the same scores. The
    /// verdict stays what so many equal pairs say of other questions.
    #[serde(default, skip_serializing_if = "is_default")]
    pub equal: bool,
    /// The compared metric.
    pub metric: String,
    /// In which direction its scores are better.
    #[serde(default, skip_serializing_if = "is_default")]
    pub better: Better,
    /// What the overall interval says.
    pub verdict: Word,
    /// All shared questions.
    pub paired: PairedDifference,
    /// Paired wild cluster bootstrap: a check on the interval.
    pub bootstrap_ci95: Option<Interval>,
    /// Why it is null.
    pub bootstrap_note: Option<String>,
    /// Questions of either sample that both runs did not score.
    pub unpaired: Unpaired,
    /// McNemar's exact test.
    pub mcnemar: McNemar,
    /// Per category, Holm-corrected.
    pub by_category: Vec<CategoryDifference>,
    /// Facet → value → difference, of the facets that both runs have; Holm-corrected over all of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_facet: BTreeMap<String, BTreeMap<String, PairedDifference>>,
    /// What the latency probes say of each other; null in comparisons of earlier builds.
    #[serde(default)]
    pub latency: Option<LatencyComparison>,
    /// Recall at the largest common cut-off, where the dataset has evidence.
    pub retrieval: Vec<RetrievalDifference>,
    /// Flips by direction (`won`, `lost`), counted.
    pub flip_counts: BTreeMap<String, u64>,
    /// The flips, lost ones first; of more than were asked for as many lost as won ones.
    pub flips: Vec<Flip>,
}

impl Comparison {
    /// How scores of the compared metric are read.
    #[must_use]
    pub fn scale(&self) -> Scale {
        Scale { better: self.better, threshold: self.mcnemar.pass_threshold, beyond: self.mcnemar.pass_beyond }
    }

    /// The word that it is told by: equal runs are equal, whatever so few questions say of others.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        if self.equal { "EQUAL" } else { self.verdict.name() }
    }
}

/// The latency probes of two runs, side by side (P43).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyComparison {
    /// Whether they were measured under the same conditions.
    pub compared: bool,
    /// Why not.
    pub reason: Option<String>,
    /// Median of the second run over that of the first; null when they are not compared.
    pub p50_ratio: Option<f64>,
    /// The same of the 95th percentile.
    pub p95_ratio: Option<f64>,
}

/// Questions that are not part of the paired figures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unpaired {
    /// Scored by the first run only.
    pub only_a: u64,
    /// Scored by the second run only.
    pub only_b: u64,
    /// In both samples, scored by neither.
    pub neither: u64,
}
