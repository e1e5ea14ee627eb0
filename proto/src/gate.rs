//! What a gate found: `gate --json`, schema version 1.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::comparison::Comparison;

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
    /// Stable name: `overall`, `category:temporal`, `retrieval:turn`, `latency:recall:p95`, `cost`, `floor:overall`, …
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
}
