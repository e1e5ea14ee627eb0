//! Under which conditions times were measured (P43): how much was in flight, what was built, and the latency probe.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::call::is_default;

/// Version of [`LatencyProbe`] as written: raised when its figures mean something else.
pub const LATENCY_PROBE_VERSION: u32 = 1;

/// How much of a run was in flight while it was timed: latencies under load belong to these numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConcurrencySummary {
    /// Questions in flight that the run allowed over all workers; null when it left that to them.
    pub questions: Option<u32>,
    /// Phase (`retain`, `recall`, `answer`, `judge`) → operations in flight at the same system or model in the same worker when one
    /// began, itself counted.
    pub in_flight: BTreeMap<String, InFlight>,
}

/// How many operations were in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InFlight {
    /// Median over the operations.
    pub p50: u32,
    /// Largest.
    pub max: u32,
}

/// Phases that are no part of a question.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhasesSummary {
    /// Building what recalls rest on (indexes, embeddings of banks, started servers); null when nothing was built.
    pub build: Option<BuildSummary>,
}

/// What building took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BuildSummary {
    /// Builds.
    pub n: u64,
    /// Seconds of all of them.
    pub seconds: f64,
    /// Median in milliseconds.
    pub p50_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
}

/// Recalls made one at a time by one worker when all questions had ended: the latency by which systems are compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyProbe {
    /// [`LATENCY_PROBE_VERSION`] of the writer.
    pub version: u32,
    /// Recalls that succeeded.
    pub n: u64,
    /// Median in milliseconds; null when no recall succeeded.
    pub p50_ms: Option<f64>,
    /// 95th percentile.
    pub p95_ms: Option<f64>,
    /// 99th percentile.
    pub p99_ms: Option<f64>,
    /// Recalls that failed.
    #[serde(default)]
    pub failed: u64,
    /// Why there are no or fewer recalls than were asked for; null when nothing is missing.
    #[serde(default)]
    pub failure: Option<String>,
    /// What the figures belong to.
    pub conditions: ProbeConditions,
    /// Passes at stated rates, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_rates: Vec<ProbeAtRate>,
    /// Milliseconds at the percentiles of [`crate::summary::LatencyCurves::percents`], for the plot: one at a time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<f64>,
}

/// What a probe's figures belong to: two probes are compared when all of this is equal.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProbeConditions {
    /// Recalls in flight at once: 1.
    pub concurrency: u32,
    /// Recalls asked for.
    pub recalls: u64,
    /// sha256 of the dataset's file.
    pub dataset: String,
    /// Hash of the ids of the sample's questions.
    pub sample: String,
    /// Sessions kept per bank; all when absent.
    pub max_sessions: Option<u32>,
    /// Hits asked for.
    pub top_k: u32,
    /// Worker pool.
    pub pool: String,
    /// Kinds of machine that probed: system, processor, cores. One, unless the probe was interrupted.
    pub machines: Vec<String>,
    /// How the workers were built: `release`, `debug`.
    pub builds: Vec<String>,
    /// Worker sessions that probed. One, unless the probe was interrupted.
    pub workers: u64,
    /// Most other tasks that the worker had in hand meanwhile.
    pub other_tasks: u32,
    /// What the memory system asks models itself may have been answered from the call store, which takes no time.
    #[serde(skip_serializing_if = "is_default")]
    pub stored_replies: bool,
}

// Percentiles as in `LatencyProbe`, but from another moment on: two types, so that nobody takes one for the other.
/// Recalls begun at a stated rate, whether or not those before them had ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeAtRate {
    /// Recalls per second.
    pub rate: f64,
    /// Recalls that succeeded.
    pub n: u64,
    /// Median in milliseconds from the moment at which a recall was to begin; null when none succeeded.
    pub p50_ms: Option<f64>,
    /// 95th percentile.
    pub p95_ms: Option<f64>,
    /// 99th percentile.
    pub p99_ms: Option<f64>,
    /// Recalls that failed.
    #[serde(default)]
    pub failed: u64,
    /// Why there are fewer recalls than were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Most recalls in flight at once.
    pub in_flight: u32,
    /// As [`LatencyProbe::curve`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<f64>,
}

impl ProbeConditions {
    /// Why figures of these conditions must not be held against those of `other`; nothing when they may.
    #[must_use]
    pub fn differs(&self, other: &Self) -> Option<String> {
        let said = |what: &str, a: String, b: String| (a != b).then(|| format!("{what} {a} and {b}"));
        let list = |all: &[String]| if all.is_empty() { "unknown".to_owned() } else { all.join(" + ") };
        let short = |hash: &str| hash.chars().take(12).collect::<String>();
        let sessions = |most: Option<u32>| most.map_or_else(|| "all".to_owned(), |most| most.to_string());
        let busy = |conditions: &Self| conditions.other_tasks > 0;
        let used = |conditions: &Self| if conditions.stored_replies { "used" } else { "not used" };
        let differences = [
            said("recalls", self.recalls.to_string(), other.recalls.to_string()),
            said("concurrency", self.concurrency.to_string(), other.concurrency.to_string()),
            said("top k", self.top_k.to_string(), other.top_k.to_string()),
            said("dataset", short(&self.dataset), short(&other.dataset)),
            said("sample", short(&self.sample), short(&other.sample)),
            said("sessions per bank", sessions(self.max_sessions), sessions(other.max_sessions)),
            said("pool", self.pool.clone(), other.pool.clone()),
            said("machine", list(&self.machines), list(&other.machines)),
            said("build", list(&self.builds), list(&other.builds)),
            // two that may have been answered in no time say nothing of their systems
            (self.stored_replies || other.stored_replies)
                .then(|| format!("stored replies {} and {}", used(self), used(other))),
            (busy(self) || busy(other))
                .then(|| format!("other tasks in the worker {} and {}", self.other_tasks, other.other_tasks)),
        ];
        let differences: Vec<String> = differences.into_iter().flatten().collect();
        (!differences.is_empty()).then(|| differences.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p43_conditions_that_differ_are_named() {
        let one = ProbeConditions { recalls: 200, machines: vec!["a".into()], ..ProbeConditions::default() };
        assert_eq!(one.differs(&one.clone()), None);
        let other = ProbeConditions { recalls: 50, machines: vec!["a".into(), "b".into()], ..one.clone() };
        assert_eq!(one.differs(&other).as_deref(), Some("recalls 200 and 50, machine a and a + b"));
        // a worker that did something else meanwhile has measured that too
        let busy = ProbeConditions { other_tasks: 3, ..one.clone() };
        assert!(busy.differs(&busy).is_some() && one.differs(&busy).is_some());
        let stored = ProbeConditions { stored_replies: true, ..one.clone() };
        assert_eq!(one.differs(&stored).as_deref(), Some("stored replies not used and used"));
        assert_eq!(stored.differs(&stored).as_deref(), Some("stored replies used and used"));
        // who continued an interrupted probe does not matter on one kind of machine
        assert_eq!(one.differs(&ProbeConditions { workers: 2, ..one.clone() }), None);
    }
}
