//! Traces of questions (P20): ids that every process derives alike, the decision which traces are kept, and the tree of spans
//! that is built of stored timings alone.
//!
//! `ids` derives, by the `paths` of spans; `decide` decides; `tree` builds spans of what is stored (`input`) and of its `bank`, with their
//! `attributes`; `sent` is what goes along with requests. Nothing here knows of a collector: `bench-telemetry` exports what `tree` made, `bench-coord trace` draws it.

mod attributes;
mod bank;
mod decide;
mod ids;
mod input;
mod paths;
mod sent;
mod span;
mod tree;

pub use attributes::conventional_provider;
pub use bank::{BankCall, BankSpan, bank_spans};
pub use decide::{FLOOR_US, LatencySketch, MIN_QUESTIONS, TIMES_MEDIAN, decide, own_us};
pub use ids::{SpanId, TRACEPARENT, TraceContext, TraceId};
pub use input::{AttemptEnd, AttemptNote, StoredSpan, TraceInput, TraceTexts};
pub use paths::{span_of_call, span_of_dispatch, span_of_question, span_of_step, span_of_submit};
pub use sent::{RunTrace, StepTrace};
pub use span::{Span, SpanClass, SpanKind, SpanLink, SpanValue};
pub use tree::question_spans;

pub use crate::{facts::Kept, spec::TracePolicy};
