//! Traces (P20): which questions keep them, what goes along with messages, and the reading of a question's trace from the store.
//!
//! In: facts of questions that have ended, stored timings. Out: spans at a collector, metrics. Start with `gather`, which reads a
//! trace when somebody wants it, the `trace` verb as well as the exporter: nothing here buffers spans. `keep` decides and sends,
//! `meter` counts what is stored, `live` is about the spans that a process makes of its own work, `process` sets the collector up.

mod gather;
mod keep;
mod live;
pub(crate) mod meter;
mod process;

pub use gather::{QuestionTrace, Subject, find_subject, gather, read_questions};
pub use keep::Keeper;
pub use live::link_messages;
pub(crate) use live::link_questions;
pub use process::ProcessTelemetry;
