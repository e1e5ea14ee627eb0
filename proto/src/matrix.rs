//! A matrix of runs as one result: what `report GROUP --json` prints of a group that `matrix` started, schema version 1.
//!
//! Figures, differences and intervals are fractions; a figure that was not computed is `null`, with a note that says why.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    call::is_default,
    comparison::Word,
    metric::Better,
    summary::{Interval, MemoryCost, Verdict},
};

/// Version of [`MatrixReport`] as written.
pub const MATRIX_SCHEMA_VERSION: u32 = 1;

/// Kind of the run event that says which values of the axes a run has: [`CellNote`] as JSON.
pub const CELL_EVENT: &str = "cell";

/// What a run of a matrix knows of its cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellNote {
    /// Axis → value.
    pub values: BTreeMap<String, String>,
}

/// What the runs of a matrix came to: its cells, all pairs of them and the effects of its axes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MatrixReport {
    /// [`MATRIX_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Public id of the group.
    pub id: String,
    /// Name given by the user.
    pub name: Option<String>,
    /// The cap of the whole group, in dollars.
    pub cap_usd: Option<f64>,
    /// What the ledger of the group holds, in dollars.
    pub booked_usd: f64,
    /// Axis → its values, in the order of the cells.
    pub axes: BTreeMap<String, Vec<String>>,
    /// The cells, in the order of their numbers.
    pub cells: Vec<MatrixCell>,
    /// All pairs of cells that ended and share a dataset, with Holm's correction over all of them.
    pub pairs: Vec<MatrixPair>,
    /// What changing one axis does, on average over the cells of a dataset and metric that differ in nothing else.
    pub effects: Vec<MainEffect>,
    /// What cells that differ in the seed of a generated dataset alone come to together; absent where [`SEED_AXIS`] is no axis.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seeds: Vec<SeedGroup>,
    /// All pairs of these, seed by seed, with Holm's correction over all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seed_pairs: Vec<SeedPair>,
    /// What a reader should know beside the figures.
    pub notes: Vec<String>,
}

/// One combination of values of the axes, with the mean of its runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MatrixCell {
    /// Its number, from 1.
    pub number: u32,
    /// Axis → value.
    pub values: BTreeMap<String, String>,
    /// Public ids of its runs.
    pub runs: Vec<String>,
    /// Runs of it that have ended.
    pub ended: u32,
    /// The metric of its figure: the headline's.
    pub metric: String,
    /// In which direction its scores are better.
    #[serde(default, skip_serializing_if = "is_default")]
    pub better: Better,
    /// Mean of the headlines of its runs.
    pub value: Option<f64>,
    /// *Conversations like these*: holds questions, banks and repeats.
    pub ci95: Option<Interval>,
    /// Why there is no interval, or how it is to be read.
    pub ci95_note: Option<String>,
    /// Sample standard deviation between its repeats.
    pub sd: Option<f64>,
    /// Questions of the sample.
    pub questions: u64,
    /// Whether all of its results may be used.
    pub verdict: Option<Verdict>,
    /// What was spent on all of its runs, in dollars.
    pub usd: f64,
    /// What a run of it that has ended cost on average, in dollars; null where nobody knows what its memory system spends. A call
    /// that a run was given from the store cost it nothing.
    pub usd_per_run: Option<f64>,
    /// What it would have cost had nothing come from the call store, with what a metered memory spent: by this cells are held against
    /// each other. Absent in reports of older builds, where the front is by `usd_per_run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_list_per_run: Option<f64>,
    /// Whether no other VALID cell with the same questions, metric and judges is at least as good for no more dollars a run by list
    /// price, and better in one of the two; null before one of its runs has ended, and where it is not VALID.
    pub on_front_of_usd: Option<bool>,
    /// Latency of recalls made one at a time after all questions; null where it was not measured.
    pub probe: Option<CellProbe>,
    /// Why there is no latency, or why it is not held against that of other cells.
    pub probe_note: Option<String>,
    /// The same as `on_front_of_usd` for the median latency of the probe; null where it is not held against that of other cells.
    pub on_front_of_probe: Option<bool>,
    /// What the memory system spent on models, metered or by calls of the runner, mean of its runs; absent where one of them does not
    /// know it, and a figure is null where one of them does not know that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryCost>,
    /// The same as `on_front_of_usd` for what filling a thousand turns costs the memory system; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_front_of_filling: Option<bool>,
    /// The same for what asking a question costs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_front_of_asking: Option<bool>,
    /// Number of the first cell with the same questions, metric and judges: only such cells are held against each other on a front.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alike_with: Option<u32>,
    /// Axes in which it differs from the cell that is nearest to it, where these are more than one: what is between the two cannot
    /// be told apart.
    pub differs_in: Vec<String>,
}

impl MatrixCell {
    /// Dollars a run by which it is held against others.
    #[must_use]
    pub fn usd_held(&self) -> Option<f64> {
        self.usd_list_per_run.or(self.usd_per_run)
    }

    /// Whether its results may be used: only such cells are on a front, or push others off it.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.verdict == Some(Verdict::Valid)
    }

    /// Whether a run of it may not be used.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        self.verdict == Some(Verdict::Invalid)
    }
}

/// The latency probes of a cell's runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellProbe {
    /// Recalls of all its runs.
    pub n: u64,
    /// Mean of its runs' medians, in milliseconds.
    pub p50_ms: f64,
    /// Mean of its runs' 95th percentiles, in milliseconds.
    pub p95_ms: f64,
}

/// Two cells side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MatrixPair {
    /// Number of the first.
    pub a: u32,
    /// Number of the second.
    pub b: u32,
    /// Axes in which they differ.
    pub differ_in: Vec<String>,
    /// Second minus first, on the questions that both scored.
    pub difference: Option<f64>,
    /// Its interval.
    pub ci95: Option<Interval>,
    /// Why there is no interval.
    pub note: Option<String>,
    /// Two-sided.
    pub p_value: Option<f64>,
    /// Corrected over all pairs.
    pub p_holm: Option<f64>,
    /// What the interval says.
    pub verdict: Word,
    /// Whether nothing but what the axes say differs.
    pub comparable: bool,
    /// Why not.
    pub reasons: Vec<String>,
}

/// What an axis does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MainEffect {
    /// Name of the axis: a flag of `submit`.
    pub axis: String,
    /// Its value in the first cells.
    pub from: String,
    /// Its value in the others.
    pub to: String,
    /// Axis → value that its cells have in common, where cells of another dataset or metric have an effect of their own; `dataset` or
    /// `metric` → which, where no value tells them apart.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub within: BTreeMap<String, String>,
    /// Pairs of cells that differ in nothing else.
    pub pairs: u32,
    /// Mean difference over these pairs, question by question.
    pub difference: Option<f64>,
    /// Its interval, clustered by bank.
    pub ci95: Option<Interval>,
    /// Why there is none.
    pub note: Option<String>,
    /// Two-sided.
    pub p_value: Option<f64>,
}

/// The axis that is the seed of a generated dataset: the flag of `submit` without its dashes.
pub const SEED_AXIS: &str = "dataset-seed";

/// Cells that differ in the seed of a generated dataset alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeedGroup {
    /// Axis → value, without the seed.
    pub values: BTreeMap<String, String>,
    /// The metric of its figures: the headline's.
    pub metric: String,
    /// Its cells that have a score, in the order of their numbers.
    pub of_seeds: Vec<SeedScore>,
    /// Mean of their scores: each seed counts alike.
    pub mean: Option<f64>,
    /// Sample standard deviation between the seeds.
    pub sd: Option<f64>,
    /// Where the mean over further seeds would lie: mean ± t · sd / √n, n − 1 degrees of freedom, clipped to [0, 1].
    pub ci95: Option<Interval>,
    /// Why there is no interval.
    pub note: Option<String>,
}

/// The score on the dataset that one seed makes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeedScore {
    /// Value of the axis of seeds.
    pub seed: String,
    /// Number of the cell.
    pub cell: u32,
    /// Its score: the mean over its repeats, where it has several.
    pub value: f64,
}

/// Two groups of cells side by side, seed by seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeedPair {
    /// Place of the first in `seeds`, from 1.
    pub a: u32,
    /// Place of the second.
    pub b: u32,
    /// Axes in which they differ.
    pub differ_in: Vec<String>,
    /// Seeds on which both have a score.
    pub seeds: Vec<String>,
    /// Mean over the seeds of second minus first.
    pub difference: Option<f64>,
    /// Sample standard deviation of the differences between the seeds.
    pub sd: Option<f64>,
    /// Student's t interval over the seeds.
    pub ci95: Option<Interval>,
    /// Why there is no interval, or no comparison.
    pub note: Option<String>,
    /// Two-sided.
    pub p_value: Option<f64>,
    /// Corrected over all pairs.
    pub p_holm: Option<f64>,
    /// What the interval says; BETTER and WORSE only where `p_holm` is at most 0.05.
    pub verdict: Word,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_golden_report_of_a_matrix_is_read_and_written_unchanged() {
        let text = include_str!("../golden/matrix.v1.json");
        let report: MatrixReport = serde_json::from_str(text).expect("the golden report is one");
        assert_eq!(report.schema_version, MATRIX_SCHEMA_VERSION);
        assert_eq!(serde_json::to_string_pretty(&report).expect("serialises"), text.trim_end());
        assert_eq!((report.cells.len(), report.pairs.len()), (4, 6));
    }
}
