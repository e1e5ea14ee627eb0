//! The latency probe (P43): recalls that are made one at a time when all questions of a run have ended, so that the figure is
//! the system's and not that of a queue in front of it.
//!
//! It is one task of the run ([`crate::ids::TaskKey::PROBE`]). What it has measured is stored in parts, so that a probe that was
//! interrupted goes on where it stopped. No part of it reaches a score, the verdict or the digest.

use serde::{Deserialize, Serialize};

pub use crate::step::ProbePart;

/// Recalls of a pass when nobody says otherwise.
pub const DEFAULT_RECALLS: u32 = 200;
/// Most recalls of a pass.
pub const MOST_RECALLS: u32 = 10_000;
/// Most rates at which a run may be probed beside one at a time.
pub const MOST_RATES: usize = 8;
/// Lowest rate, in recalls per second: a probe ends after ten minutes, and at a lower rate has made fewer than sixty recalls by then.
pub const LOWEST_RATE: f64 = 0.1;
/// Highest rate, in recalls per second.
pub const HIGHEST_RATE: f64 = 10_000.0;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        call::Usage,
        failure::Failure,
        step::{StepFacts, StepNo, Timing},
    };

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
            left_out: 0,
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
