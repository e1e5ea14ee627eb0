//! What a latency probe has measured (P43), in parts: each is a step of its task.

use serde::{Deserialize, Serialize};

use super::{StepFacts, StepNo, StoredStep, Timing};
use crate::{call::Usage, failure::Failure};

/// First step number of a probe: below are those of questions, which share its kind of key.
const FIRST_STEP: i32 = 10;
/// Distance between the step numbers of two passes.
const PASS_STEPS: i32 = 100_000;

/// A stored part of a pass.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProbePart {
    /// Number of the pass: 0 is one at a time, then the rates in their order.
    pub pass: u32,
    /// Recalls per second; none: one at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Number of its first recall within the pass, failed ones counted.
    pub first: u32,
    /// Recalls that were to be made in the pass.
    pub of: u32,
    /// Those among them that are not made, for their questions failed in the run.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: u32,
    /// Microseconds of each recall that succeeded: of the recall alone, building, warming up and waits for pace left out; with a rate,
    /// from the moment at which it was to begin.
    pub us: Vec<u64>,
    /// Recalls that failed.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed: u32,
    /// Why the last one failed, or why the probe ended before its time, or was not made at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Most recalls of the probe that were in flight at once.
    pub in_flight: u32,
    /// Most other tasks that the worker had in hand meanwhile.
    pub others: u32,
    /// The machine: system, processor and its number of cores.
    pub machine: String,
    /// How the worker was built: `release` or `debug`.
    pub build: String,
    /// Where the time went.
    pub timing: Timing,
    /// Usage that the system reported, and calls for it.
    pub usage: Usage,
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

impl ProbePart {
    /// The step under which it is stored.
    #[must_use]
    pub const fn step(pass: u32, first: u32) -> StepNo {
        StepNo(FIRST_STEP + pass as i32 * PASS_STEPS + first as i32)
    }

    /// Recalls that it tells of.
    #[must_use]
    pub fn made(&self) -> u32 {
        u32::try_from(self.us.len()).unwrap_or(u32::MAX).saturating_add(self.failed)
    }

    /// The parts among stored steps.
    pub fn among(steps: &[StoredStep]) -> impl Iterator<Item = &Self> {
        steps.iter().filter_map(|stored| match &stored.facts {
            StepFacts::Probed(part) => Some(&**part),
            _ => None,
        })
    }

    /// Recalls of a pass that are stored.
    #[must_use]
    pub fn made_of(steps: &[StoredStep], pass: u32) -> u32 {
        Self::among(steps).filter(|part| part.pass == pass).map(Self::made).sum()
    }
}
