//! Seeing inside (P20): which questions keep their traces, what goes along with messages and requests, and the reading of a
//! question's trace from the store.
//!
//! Nothing here buffers spans: a trace is read from the stored timings when somebody wants it, the `trace` verb as well as the
//! exporter. `keep` decides and sends, `context` is what requests bring along, `meter` counts what is stored.

mod context;
mod gather;
mod keep;
pub(crate) mod meter;
mod process;

pub use context::next_traceparent;
pub(crate) use context::{RunTrace, traced};
pub use gather::{QuestionTrace, Subject, find_subject, gather, read_questions};
pub use keep::Keeper;
pub use process::ProcessTelemetry;
