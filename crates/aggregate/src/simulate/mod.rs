//! What intervals, comparisons and gates do where the truth is known: they run on simulated scores, by the very code that
//! reports run. Pure: a seed gives the same figures everywhere.
//!
//! | module | question |
//! |---|---|
//! | `coverage` | how often does an interval hold the truth? |
//! | `samples` | how often do the two intervals of a stratified sample? |
//! | `decisions` | how often is a difference found that is there, or one that is not? |
//! | `stopping` | the same of runs that end as soon as enough is known, and how early do they? |

mod coverage;
mod decisions;
mod samples;
mod stopping;

pub use coverage::{Coverage, CoverageCase, Scores, coverage};
pub use decisions::{DecisionCase, Ends, Sampled, Words, ends, words};
pub use samples::{SampleCase, SampleCoverage, SampledStratum, sample_coverage};
pub use stopping::{StopCase, Stops, stops};

pub use crate::{
    compare::Rate,
    draws::{Effects, LOCOMO_BANKS},
};

#[cfg(test)]
mod tests;
