//! What a gate found: `gate --json`, schema version 1.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::comparison::{Comparison, MarkedDifference};

/// How much a rule matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// A regression fails the gate; an interval that decides nothing leaves it inconclusive.
    Critical,
    /// A regression fails the gate.
    Supporting,
    /// It is only said.
    Advisory,
}

impl Level {
    /// The level's word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Supporting => "supporting",
            Self::Advisory => "advisory",
        }
    }
}

/// How a rule ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    /// It holds.
    Pass,
    /// It does not.
    Regression,
    /// These questions do not decide it.
    Inconclusive,
    /// There are no data for it.
    NotChecked,
}

impl CheckOutcome {
    /// The outcome's word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Regression => "regression",
            Self::Inconclusive => "inconclusive",
            Self::NotChecked => "not checked",
        }
    }
}

/// A rule with what was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Stable name: `overall`, `category:temporal`, `retrieval:turn`, `latency:recall:p95`, `cost`, `calls`, `floor:overall`,
    /// `floor:PATH`, `ceiling:PATH`, …
    pub rule: String,
    /// How much it matters.
    pub level: Level,
    /// How it ended.
    pub outcome: CheckOutcome,
    /// The figure that decided: a bound of an interval, a quotient, a score.
    pub value: Option<f64>,
    /// What it was held against.
    pub bound: Option<f64>,
    /// One line for people.
    pub detail: String,
    /// The figure that the rule is about, before and after; null where there is none to show.
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
}

/// A figure of the run at the gate beside its baseline's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// What is measured: a metric, or the path of a figure in the report.
    pub metric: String,
    /// Of the run at the gate.
    pub current: f64,
    /// Of the baseline; of a floor or a ceiling the bound itself.
    pub baseline: f64,
    /// current − baseline.
    pub delta: f64,
    /// The same in percent of the baseline; null where that is 0.
    pub delta_percent: Option<f64>,
}

impl Change {
    /// From `baseline` to `current`.
    #[must_use]
    pub fn new(metric: &str, current: f64, baseline: f64) -> Self {
        let delta = current - baseline;
        let delta_percent = (baseline != 0.0).then(|| 100.0 * delta / baseline);
        Self { metric: metric.to_owned(), current, baseline, delta, delta_percent }
    }
}

/// Version of [`GateReport`] as written.
pub const GATE_SCHEMA_VERSION: u32 = 1;

/// How a gate ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum GateVerdict {
    /// Nothing regressed.
    Pass,
    /// Something did.
    Fail,
    /// A critical rule cannot be decided with these questions.
    Inconclusive,
    /// One of the runs is invalid, or they cannot be compared.
    Invalid,
}

impl GateVerdict {
    /// As it is printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::Inconclusive => "INCONCLUSIVE",
            Self::Invalid => "INVALID",
        }
    }

    /// Exit code of the program (docs/CLI.md).
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Fail => 1,
            Self::Invalid => 5,
            Self::Inconclusive => 6,
        }
    }
}

/// What a gate found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateReport {
    /// [`GATE_SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// The run at the gate.
    pub run: String,
    /// What it was held against: a run, a file, or `mean of the last k runs`; null with floors alone.
    pub baseline: Option<String>,
    /// How it ended, by the rules.
    pub verdict: GateVerdict,
    /// The exit code, flags such as `--advisory` counted in.
    pub exit_code: u8,
    /// Failures are only said.
    pub advisory: bool,
    /// Why the runs cannot be held against each other.
    pub reasons: Vec<String>,
    /// All rules.
    pub checks: Vec<Check>,
    /// `warning` or `critical`, when somebody should hear of it.
    pub severity: Option<String>,
    /// The comparison that it rests on; null with floors alone.
    pub comparison: Option<Comparison>,
    /// The runs that `last:K` has found, the newest first; absent of a baseline that was named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub baseline_runs: Vec<BaselineRun>,
}

/// A run that the baseline is the mean of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BaselineRun {
    /// Public id.
    pub id: String,
    /// Name given by the user.
    pub name: Option<String>,
    /// What has to be known beside its figures.
    pub notes: Vec<String>,
    /// In what its fingerprint differs from that of the run at the gate.
    pub differences: Vec<MarkedDifference>,
}

/// How gates with a policy end, by simulated pairs of runs or of means of runs: `gate RUN|GROUP --plan --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GatePlan {
    /// Pairs of each case.
    pub draws: u32,
    /// Questions that each simulated run asks.
    pub questions: u64,
    /// Banks that the questions of a run are about.
    pub banks: u64,
    /// Runs whose mean is the baseline.
    pub baseline_runs: u32,
    /// Runs whose mean is held against it: the repeats of a group; 1 for a single run.
    pub runs: u32,
    /// Variance of a question's verdict from run to run.
    pub verdict_variance: f64,
    /// Runs that it was measured over; of one run it is an assumption.
    pub measured_over: u64,
    /// Standard deviation, on the logit scale, of what a run does to all questions of a bank: an assumption.
    pub bank_noise: f64,
    /// No change, a fall by the tolerance of the overall score, and one by twice as much.
    pub cases: Vec<PlannedGate>,
    /// Those of these falls that are left out: the score cannot fall so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beyond_score: Vec<f64>,
    /// Rules of the policy that are not simulated, and can keep a run from passing beside those that are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_simulated: Vec<String>,
}

/// How gates end where a score has truly fallen so much.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedGate {
    /// Fall of the score, as a fraction.
    pub drop: f64,
    /// Share of PASS.
    pub pass: f64,
    /// Share of FAIL; without a fall the family-wise false alarm of all rules on scores.
    pub fail: f64,
    /// Share of INCONCLUSIVE.
    pub inconclusive: f64,
}
