//! Seeing inside (P20): which questions keep their traces, what goes along with messages, and the reading of a
//! question's trace from the store.
//!
//! Nothing here buffers spans: a trace is read from the stored timings when somebody wants it, the `trace` verb as well as the
//! exporter. `keep` decides and sends, `meter` counts what is stored. `live` is about the
//! spans that a process makes of its own work.

mod gather;
mod keep;
mod live;
pub(crate) mod meter;
mod process;

pub use gather::{QuestionTrace, Subject, find_subject, gather, read_questions};
pub use keep::Keeper;
pub use live::link_messages;
pub(crate) use live::{link_questions, task_span};
pub use process::ProcessTelemetry;
