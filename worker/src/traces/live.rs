//! Process spans beside the traces of questions: which of these they are linked to, and which they are part of.

use bench_proto::trace::{SpanId, TRACEPARENT, TraceContext, TraceId};
use bench_queue::Headers;
use bench_telemetry::process::{self, MOST_LINKS};
use tracing::Span;

/// Links a span to the questions among these messages whose traces are sent whatever happens: of the others nobody knows yet.
pub fn link_messages<'h>(span: &Span, messages: impl Iterator<Item = &'h Headers>) {
    if span.is_none() {
        return;
    }
    let context = |headers: &Headers| {
        let (_, text) = headers.iter().find(|(name, _)| name == TRACEPARENT)?;
        TraceContext::parse(text).filter(|context| context.sampled)
    };
    for context in messages.filter_map(context).take(MOST_LINKS) {
        process::link(span, context.trace.0, context.span.0);
    }
}

/// Links a span to questions whose traces are sent.
pub(crate) fn link_questions(span: &Span, questions: impl Iterator<Item = (TraceId, SpanId)>) {
    if span.is_none() {
        return;
    }
    for (trace, root) in questions.take(MOST_LINKS) {
        process::link(span, trace.0, root.0);
    }
}
