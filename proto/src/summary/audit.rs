//! How often judges erred about planted answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FacetScore;
use crate::audit::PlantedSpec;

/// How often judges erred about planted answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgeAudit {
    /// What was planted.
    pub planted: PlantedSpec,
    /// All wrong answers and all right ones, then each kind, then each kind by form and by length; of each judge.
    pub rates: Vec<AuditRate>,
    /// Its grades are medians of so many votes each, of which none is known singly: a rate is then a share of answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub medians_of: Option<u32>,
}

/// In which direction a judge can err about an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JudgeError {
    /// Takes a wrong answer for right.
    FalseAccept,
    /// Takes a right answer for wrong.
    FalseReject,
}

/// How often a judge erred about some planted answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditRate {
    /// The judge's metric: `judge`, `judge-2`, or that of imported grades.
    pub metric: String,
    /// The direction.
    pub error: JudgeError,
    /// The kind of planted answers; null for all that can err in this direction.
    pub kind: Option<String>,
    /// The facet and its value, where it is a part of the kind: `planted-length`, `bare`.
    pub part: Option<(String, String)>,
    /// Share of judgements that err, with its intervals: the mean of an answer's judgements is its value.
    #[serde(flatten)]
    pub rate: FacetScore,
    /// Share of answers about which most judgements err.
    pub by_majority: Option<f64>,
}
