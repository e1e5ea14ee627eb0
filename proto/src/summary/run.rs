//! Which run it is, and whether its result can be trusted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Identity and verdict of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    /// Public id.
    pub id: String,
    /// Name given by the user.
    pub name: Option<String>,
    /// Hash of what can change a score (P13), 64 hexadecimal characters.
    pub fingerprint: String,
    /// State of the run (`finished`, `paused`, `cancelled`, …).
    pub status: String,
    /// Whether the result may be used.
    pub verdict: Verdict,
    /// Why it is invalid, one line each; empty when it is valid.
    pub reasons: Vec<String>,
    /// All rules of the verdict, with those that could not be checked.
    #[serde(default)]
    pub checks: Vec<VerdictCheck>,
    /// Versions of the builds that worked on it with their commits, `0.1.0 (1f2e3d4c5b6a)`, joined by `, `; builds before this
    /// left the commit out.
    pub code_version: String,
    /// RFC 3339, UTC.
    pub started_at: Option<String>,
    /// RFC 3339, UTC.
    pub finished_at: Option<String>,
    /// Seconds in which the run was being worked on.
    pub wall_seconds: Option<f64>,
    /// Times it was resumed.
    pub resumed_times: u64,
    /// Other runs whose stored replies it used: it is not independent of them (P9).
    #[serde(default)]
    pub calls_of: Vec<String>,
}

/// A provider that was away while the run needed it; nothing of the run was lost by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutageMet {
    /// What was away: `gpt-4o-mini (account openai)`.
    pub key: String,
    /// From when, RFC 3339, UTC.
    pub from: String,
    /// To when; null when it was still away.
    pub to: Option<String>,
    /// The provider's last words, or what calls met instead of it.
    pub reason: String,
    /// Tasks that were put off, of all runs that needed it.
    pub calls_held: u64,
}

/// Whether a run's result may be used as a result and as a baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    /// All rules that could be checked hold.
    Valid,
    /// At least one does not.
    Invalid,
}

impl Verdict {
    /// Stands between what may not be used and why, wherever a sentence says so: by it a page knows such sentences.
    pub const IS_INVALID: &str = " is INVALID: ";

    /// The verdict's word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Valid => "VALID",
            Self::Invalid => "INVALID",
        }
    }
}

/// One rule of the verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerdictCheck {
    /// Short stable name, such as `coverage`.
    pub rule: String,
    /// How it ended.
    pub state: CheckState,
    /// One line: what was seen.
    pub detail: String,
}

/// How a rule ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CheckState {
    /// It holds.
    #[serde(rename = "passed")]
    Passed,
    /// It does not: the run is invalid.
    #[serde(rename = "failed")]
    Failed,
    /// There are no data for it.
    #[serde(rename = "not checked")]
    NotChecked,
}

impl CheckState {
    /// The state's word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::NotChecked => "not checked",
        }
    }
}
