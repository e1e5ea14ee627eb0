//! Where the time went.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Percentiles in milliseconds, by linear interpolation on the sorted values (index (n − 1) · p / 100).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Percentiles {
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Values behind it.
    pub n: u64,
}

/// Latency per phase; null where a phase did not happen. Phases that the call store answered are left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencySummary {
    /// Retaining one stream entry (session).
    pub retain: Option<Percentiles>,
    /// Building an index, embeddings of a bank, or starting a server: each build once.
    #[serde(default)]
    pub build: Option<Percentiles>,
    /// Waiting for somebody else's build, per question that waited.
    #[serde(default)]
    pub build_wait: Option<Percentiles>,
    /// Searching for one question, in milliseconds; null where none was searched for.
    pub recall: Option<Percentiles>,
    /// Making one answer, in milliseconds; null where none was made.
    pub answer: Option<Percentiles>,
    /// One judgement (slowest vote).
    pub judge: Option<Percentiles>,
    /// Recall, answer and judge together, queue waits excluded, rate-limit waits included.
    pub question: Option<Percentiles>,
    /// From ready to claimed, per question.
    pub queue_wait: Option<Percentiles>,
    /// Waiting for pace, connection slots and retries, per question.
    pub rate_wait: Option<Percentiles>,
    /// Inside calls to systems and models, per question.
    #[serde(default)]
    pub provider: Option<Percentiles>,
    /// The rest: our own time, per question.
    #[serde(default)]
    pub own: Option<Percentiles>,
}

/// Latency in milliseconds at some percentiles, for plots.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyCurves {
    /// The percentiles, ascending.
    pub percents: Vec<f64>,
    /// Phase (`recall`, `answer`, `judge`, `question`) → milliseconds at each of them; phases that did not happen are left out.
    pub phases: BTreeMap<String, Vec<f64>>,
}

/// One of the slowest questions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowQuestion {
    /// The dataset's id of the question.
    pub question_id: String,
    /// Its own time (queue waits excluded), in milliseconds.
    pub ms: f64,
    /// Where it went, in milliseconds: phases and waits that happened.
    pub phase_ms: BTreeMap<String, f64>,
    /// 32 hexadecimal characters.
    pub trace_id: String,
    /// Where the trace is to be seen: when it was kept, and the run knows a place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_url: Option<String>,
}

/// Seconds of work per phase, summed over all workers; null where a phase did not happen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseSeconds {
    /// Writing banks into the memory system.
    pub retain: Option<f64>,
    /// Building, see [`LatencySummary::build`].
    #[serde(default)]
    pub build: Option<f64>,
    /// Consolidating; absent where it did not happen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consolidate: Option<f64>,
    /// Proving banks ready.
    #[serde(default)]
    pub ready: Option<f64>,
    /// Searching banks for questions.
    pub recall: Option<f64>,
    /// Making answers of what was recalled.
    pub answer: Option<f64>,
    /// Judging (slowest vote of each question).
    pub judge: Option<f64>,
}

impl PhaseSeconds {
    /// Filling banks: storing, and what some systems only do when they are built or consolidate. `None` where nothing was stored.
    #[must_use]
    pub fn filling(&self) -> Option<f64> {
        Some(self.retain? + self.build.unwrap_or_default() + self.consolidate.unwrap_or_default())
    }
}
