//! Where spans are in their traces: a span's id is derived of its path, so that a sender can name one that does not exist yet.

use super::{SpanId, TraceContext, TraceId, TracePolicy};
use crate::{
    ids::{RunId, TaskKey, TaskKind},
    step::StepNo,
};

/// The root of a question's trace.
#[must_use]
pub fn span_of_question(trace: &TraceId) -> SpanId {
    SpanId::derive(trace, "question")
}

/// Path of a step in its question's trace.
pub(super) fn path_of(task: TaskKey, step: StepNo) -> String {
    match (task.kind(), step) {
        (TaskKind::Judge, step) => {
            let vote = format!("judge/{}/{}", task.judge_no(), task.vote());
            step.call_of_vote().map_or_else(|| vote.clone(), |no| format!("{vote}/{no}"))
        }
        (TaskKind::Question, StepNo::RECALL) => "recall".to_owned(),
        (TaskKind::Question, StepNo::ANSWER) => "answer".to_owned(),
        _ => format!("{}/{}", task.0, step.0),
    }
}

/// The span of a step, known before it has begun.
#[must_use]
pub fn span_of_step(trace: &TraceId, task: TaskKey, step: StepNo) -> SpanId {
    SpanId::derive(trace, &path_of(task, step))
}

/// The span of the `number`th call of a step (from 0): what goes along with the request as `traceparent`.
#[must_use]
pub fn span_of_call(trace: &TraceId, task: TaskKey, step: StepNo, number: usize) -> SpanId {
    SpanId::derive(trace, &format!("{}/call/{number}", path_of(task, step)))
}

/// The span of handing a task out: what goes along with its message.
#[must_use]
pub fn span_of_dispatch(trace: &TraceId, task: TaskKey) -> SpanId {
    SpanId::derive(trace, &format!("dispatch/{}", task.0))
}

/// The span of a run's submission, in the run's own trace.
#[must_use]
pub fn span_of_submit(run: &RunId) -> SpanId {
    SpanId::derive(&TraceId::of_run(run), "submit")
}

/// The span of a task that retained for a bank or proved it ready, in the run's own trace.
pub(super) fn span_of_bank(run: &RunId, task: TaskKey) -> SpanId {
    SpanId::derive(&TraceId::of_run(run), &format!("bank/{}", task.0))
}

impl TraceContext {
    /// What goes along with the message of a task that retains for a bank or proves it ready.
    #[must_use]
    pub fn of_bank_message(run: &RunId, policy: &TracePolicy, task: TaskKey) -> Self {
        let trace = TraceId::of_run(run);
        Self { trace, span: span_of_bank(run, task), sampled: policy.samples(&trace) }
    }

    /// What goes along with the message of a question's task.
    #[must_use]
    pub fn of_message(run: &RunId, policy: &TracePolicy, question_id: &str, task: TaskKey) -> Self {
        let trace = TraceId::of_question(run, question_id);
        Self { trace, span: span_of_dispatch(&trace, task), sampled: policy.samples(&trace) }
    }
}
