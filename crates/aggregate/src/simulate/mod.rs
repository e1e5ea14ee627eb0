//! What intervals, comparisons and gates do where the truth is known: they run on simulated scores, by the very code that
//! reports run. Pure: a seed gives the same figures everywhere.
//!
//! | module | question |
//! |---|---|
//! | `coverage` | how often does an interval hold the truth? |
//! | `decisions` | how often is a difference found that is there, or one that is not? |

mod coverage;
mod decisions;

pub use coverage::{Coverage, CoverageCase, Scores, coverage};
pub use decisions::{DecisionCase, Ends, Sampled, Words, ends, words};

pub use crate::{
    compare::Rate,
    draws::{Effects, LOCOMO_BANKS},
};

#[cfg(test)]
mod tests;
