//! Process spans beside the traces of questions: which of these they are linked to, and which they are part of.

use bench_proto::{
    ids::TaskKind,
    trace::{SpanId, TRACEPARENT, TraceContext, TraceId},
};
use bench_queue::Headers;
use bench_store::ClaimedTask;
use bench_telemetry::{
    process::{self, MOST_LINKS},
    process_span,
};
use tracing::Span;

use crate::engine::Shared;

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

/// The span of an attempt at a task, for questions whose traces are sent whatever happens: linked to the question. It is no child of it:
/// it ends when the store has answered, which is after the question's own end.
pub(crate) async fn task_span(shared: &Shared, task: ClaimedTask) -> Span {
    if !process::on() {
        return Span::none();
    }
    let attempt = i64::from(task.attempts) + 1;
    let kind = task.task.kind();
    if matches!(kind, TaskKind::Retain | TaskKind::Ready) {
        let span = process_span!("bank_task", task = task.task.0, epoch = task.epoch, attempt = attempt);
        return process::started(span);
    }
    let Ok(context) = shared.context(task.run).await else { return Span::none() };
    let Some(question) = shared.question_id(task).await else { return Span::none() };
    let Some((trace, root)) = context.trace().and_then(|trace| trace.sampled(&question)) else { return Span::none() };
    let run = context.row().run_id.0.as_str();
    let span = process_span!(
        "task",
        run = run,
        question = question.as_str(),
        task = task.task.0,
        epoch = task.epoch,
        attempt = attempt,
        bench.role = kind.role().name(),
    );
    process::link(&span, trace.0, root.0);
    process::started(span)
}
