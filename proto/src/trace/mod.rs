//! Traces of questions (P20): ids that every process derives alike, the decision which traces are kept, and the tree of spans
//! that is built of stored timings alone.
//!
//! `ids` derives, `decide` decides, `tree` builds. Nothing here knows of a collector: `bench-telemetry` exports what `tree` made,
//! `bench-coord trace` draws it.

mod decide;
mod ids;
mod tree;

pub use decide::{FLOOR_US, Kept, LatencySketch, MIN_QUESTIONS, TIMES_MEDIAN, TracePolicy, decide, own_us};
pub use ids::{SpanId, TRACEPARENT, TraceContext, TraceId};
pub use tree::{
    AttemptEnd, AttemptNote, BankSpan, Link, Span, SpanClass, SpanKind, SpanValue, StoredSpan, TraceInput, TraceTexts,
    bank_spans, question_spans, span_of_call, span_of_dispatch, span_of_step,
};
