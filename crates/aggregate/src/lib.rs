//! STEP 6: stored results to a [`Summary`](bench_proto::summary::Summary) with honest intervals. Pure: no I/O, no clock.
//!
//! In come [`QuestionFacts`](bench_proto::facts::QuestionFacts) in any order, and what is known of the run beside them
//! ([`AggregateInput`]); out come its summary and, of several runs, comparisons, gates and the figures of repeats. Start reading
//! at [`Aggregator`], then at `score`.
//!
//! An [`Aggregator`] keeps about 120 bytes of each question, merges with others, and ends in the same summary, bit for bit,
//! whatever the order and the split were: counts, money, times and retrieval sums are added exactly (integers), scores are
//! summed in byte order of the question ids.
//!
//! | module | question |
//! |---|---|
//! | [`input`] | what must be known of the run beside its questions? |
//! | `questions`, `sums` | how is a question kept in few bytes, and what is only summed? |
//! | `sections` | the parts of the summary that need no other module |
//! | `cells`, `design`, `interval`, `likelihood`, `bootstrap` | sums per (category, bank) → estimate, variance, interval |
//! | `score`, `figures` | which of these stand where in the report, and how do published results count them? |
//! | `retrieval`, `latency`, `extremes`, `examples`, `agreement`, [`attribution`] | the other tables |
//! | [`answer_key`] | what do known mistakes of the answer key mean? |
//! | [`corrected`] | what is a score without the errors of its judge? |
//! | `panel` | what do several judges say together, and one of a sample about all questions? |
//! | [`instrument`] | does a score depend on what was remembered? |
//! | `verdict` | may the result be used? |
//! | [`repeats`] | what of a score is noise, and what is the noise made of? |
//! | [`pareto`] | which results are beaten by no other one in quality and cost? |
//! | [`compare`], [`gate`] | is one run better than another, and does that pass? |
//! | [`stopping`] | is enough known before the last question? |
//! | `draws`, [`simulate`] | how often is any of this right? |

pub mod answer_key;
pub mod attribution;
pub mod compare;
pub mod corrected;
pub mod gate;
pub mod input;
pub mod instrument;
pub mod pareto;
pub mod repeats;
pub mod simulate;
pub mod stopping;

mod aggregator;
mod agreement;
mod audit;
mod bootstrap;
pub mod causes;
mod cells;
mod counting;
mod design;
mod draws;
mod exact;
mod examples;
mod extremes;
mod facets;
mod figures;
mod interval;
mod kinds;
mod latency;
mod likelihood;
mod metered;
mod panel;
mod probe;
mod questions;
mod retrieval;
mod score;
mod sections;
mod strata;
mod sums;
mod verdict;

pub use aggregator::{Aggregator, Finished};
pub use extremes::fill_worst;
pub use input::{AggregateInput, Canaries, RunIdentity, SelfCheck};
