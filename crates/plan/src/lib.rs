//! From a dataset's outlines and a request to a plan: which questions, in which banks, in which order, at what price.
//!
//! Pure: no I/O, no clock, no randomness. In come a [`SampleRequest`] and, one by one,
//! [`bench_proto::dataset::BankOutline`]s; out come a [`Sample`], the order of its banks, and what it will cost and tell. Nothing
//! here keeps the ids of questions that it can do without, so that a million of them fit. Start reading at [`sample()`].
//!
//! - [`Sampling`] chooses the questions: presets, counts, filters ([`SampleRequest`] holds the rules).
//! - [`bank_order()`] numbers the banks by length, [`segments()`] cuts a bank's stream at its question points.
//! - [`rounds()`] spreads the questions of a run that may stop early over the rounds between its looks.
//! - [`announce()`] says before a run how wide its interval will be.
//! - [`estimate()`] turns counts, tokens, prices and limits into dollars and minutes.
//!
//! To add a sampler, add a variant to [`Sampler`] and its order to `sampling/order.rs`; when an existing sample would
//! change, raise [`SAMPLER_VERSION`], whose doc names the one change for which it was not raised.

mod announce;
mod bank_order;
mod error;
mod estimate;
mod request;
mod rounds;
mod sample;
mod sampling;
mod segments;

pub use announce::{Announcement, DISCORDANCE, FacetHalfWidth, WeightedHalfWidth, announce, announce_spec};
pub use bank_order::bank_order;
pub use error::SampleError;
pub use estimate::{
    CallProfile, Estimate, EstimateInput, LookedFor, PhaseCalls, PhaseEstimate, TokenGuess, TokenPrice, estimate,
};
pub use request::{Preset, SampleRequest, Sampler};
pub use rounds::{Rounds, rounds};
pub use sample::{Population, Sample, SampledBank};
pub use sampling::{SAMPLER_VERSION, Sampling, sample};
pub use segments::{Segment, segments};
