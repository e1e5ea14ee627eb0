//! The latency probe (P43): recalls that are made one at a time when all questions of a run have ended, so that the figure is
//! the system's and not that of a queue in front of it.
//!
//! It is one task of the run ([`crate::ids::TaskKey::PROBE`]). What it has measured is stored in parts, so that a probe that was
//! interrupted goes on where it stopped. No part of it reaches a score, the verdict or the digest.

use serde::{Deserialize, Serialize};

use crate::{call::Usage, failure::Failure, step::StepNo, step::StoredStep, step::Timing};

/// Recalls of a pass when nobody says otherwise.
pub const DEFAULT_RECALLS: u32 = 200;
/// Most recalls of a pass.
pub const MOST_RECALLS: u32 = 10_000;
/// Most rates at which a run may be probed beside one at a time.
pub const MOST_RATES: usize = 8;
/// Highest rate, in recalls per second.
pub const HIGHEST_RATE: f64 = 10_000.0;

/// First step number of a probe: below are those of questions, which share its kind of key.
const FIRST_STEP: i32 = 10;
/// Distance between the step numbers of two passes.
const PASS_STEPS: i32 = 100_000;

/// What a run wants of its probe.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProbePlan {
    /// Recalls of each pass; 0: no probe.
    pub recalls: u32,
    /// Rates in recalls per second at which recalls are begun whether or not those before them have ended, a pass each, after the
    /// pass of one at a time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<f64>,
}

impl ProbePlan {
    /// Whether nothing is to be probed.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.recalls == 0
    }

    /// The rate of each pass; `None` is one at a time.
    pub fn passes(&self) -> impl Iterator<Item = Option<f64>> + '_ {
        std::iter::once(None).chain(self.rates.iter().copied().map(Some))
    }

    /// Recalls of all passes of a sample of `questions`: each asks a question at most once.
    #[must_use]
    pub fn recalls_of(&self, questions: u64) -> u64 {
        if self.is_off() { 0 } else { u64::from(self.recalls).min(questions) * (1 + self.rates.len() as u64) }
    }
}

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
            crate::step::StepFacts::Probed(part) => Some(&**part),
            _ => None,
        })
    }

    /// Recalls of a pass that are stored.
    #[must_use]
    pub fn made_of(steps: &[StoredStep], pass: u32) -> u32 {
        Self::among(steps).filter(|part| part.pass == pass).map(Self::made).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::StepFacts;

    #[test]
    fn p43_parts_have_step_numbers_of_their_own() {
        let last = ProbePart::step(MOST_RATES as u32, MOST_RECALLS);
        assert!(ProbePart::step(0, 0) > StepNo::SCORE && last < StepNo::FAILED, "{last:?}");
        assert!(ProbePart::step(0, MOST_RECALLS) < ProbePart::step(1, 0));
    }

    #[test]
    fn p43_a_stored_part_matches_its_golden_file() {
        let part = ProbePart {
            pass: 1,
            rate: Some(25.0),
            first: 3,
            of: 200,
            us: vec![50_100, 50_200],
            failed: 1,
            failure: Some(Failure::transient("system_http_503", "busy")),
            in_flight: 2,
            others: 0,
            machine: "linux x86_64, EPYC, 2 cores".into(),
            build: "release".into(),
            timing: Timing { started_us: 7, total_us: 150_400, attempts: 1, session: 4, ..Timing::default() },
            usage: Usage::default(),
        };
        let facts = StepFacts::Probed(Box::new(part.clone()));
        let golden = include_str!("../golden/probe_part.v1.json");
        assert_eq!(serde_json::to_string_pretty(&facts).expect("serialises"), golden.trim_end());
        let newer = golden.replacen('{', "{\"later\": 1,", 1);
        assert_eq!(serde_json::from_str::<StepFacts>(&newer).expect("reads"), facts);
        assert_eq!(part.made(), 3);
    }

    #[test]
    fn p43_a_pass_asks_each_question_once() {
        let plan = ProbePlan { recalls: 200, rates: vec![10.0, 50.0] };
        assert_eq!((plan.recalls_of(50), plan.recalls_of(1986)), (150, 600));
        assert_eq!(ProbePlan::default().recalls_of(50), 0);
        assert_eq!(plan.passes().collect::<Vec<_>>(), [None, Some(10.0), Some(50.0)]);
    }
}
