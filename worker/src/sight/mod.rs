//! Seeing inside (P20): which questions keep their traces, what goes along with messages and requests, and the reading of a
//! question's trace from the store.
//!
//! Nothing here buffers spans: a trace is read from the stored timings when somebody wants it, the `trace` verb as well as the
//! exporter.

mod gather;

pub use gather::{QuestionTrace, Subject, find_subject, gather};
