//! The process span of an attempt at a task.

use bench_proto::ids::TaskKind;
use bench_store::ClaimedTask;
use bench_telemetry::{process, process_span};
use tracing::Span;

use super::Shared;
use crate::about::question_id;

/// The span of an attempt at a task, for questions whose traces are sent whatever happens: linked to the question. It is no child of it:
/// it ends when the store has answered, which is after the question's own end.
pub(super) async fn task_span(shared: &Shared, task: ClaimedTask) -> Span {
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
    let Some(question) = question_id(task, &shared.tools.banks).await else { return Span::none() };
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
