//! What goes along with requests to memory systems and models: the trace, and which span of it the request is.

use std::cell::Cell;

use bench_proto::{
    ids::{RunId, TaskKey},
    spec::RunSpec,
    step::StepNo,
    trace::{TraceContext, TraceId, TracePolicy, span_of_call},
};

/// What a run says about its traces, where this process has a collector.
#[derive(Debug, Clone)]
pub(crate) struct RunTrace {
    run: RunId,
    policy: TracePolicy,
}

impl RunTrace {
    /// The traces of a run.
    pub(crate) fn of(run: &RunId, spec: &RunSpec) -> Self {
        Self { run: run.clone(), policy: spec.limits.trace.clone() }
    }

    /// What the requests of a step carry.
    fn step(&self, question_id: &str, task: TaskKey, step: StepNo) -> StepTrace {
        let trace = TraceId::of_question(&self.run, question_id);
        StepTrace { trace, task, step, sampled: self.policy.samples(&trace), calls: Cell::new(0) }
    }
}

/// The step whose requests are being made.
#[derive(Debug)]
struct StepTrace {
    trace: TraceId,
    task: TaskKey,
    step: StepNo,
    sampled: bool,
    /// Requests so far.
    calls: Cell<usize>,
}

tokio::task_local! {
    static STEP: StepTrace;
}

/// Carries out a step whose requests bring their trace along; without a collector nothing is carried and nothing is paid.
pub(crate) async fn traced<T>(
    trace: Option<&RunTrace>,
    question_id: &str,
    task: TaskKey,
    step: StepNo,
    work: impl Future<Output = T>,
) -> T {
    match trace {
        None => work.await,
        Some(trace) => STEP.scope(trace.step(question_id, task, step), work).await,
    }
}

/// The `traceparent` of the next request of this step: call it once for each request that is sent, by whatever client. `None` outside
/// a step, and without a collector.
#[must_use]
pub fn next_traceparent() -> Option<String> {
    let of_step = |step: &StepTrace| {
        let number = step.calls.replace(step.calls.get() + 1);
        let span = span_of_call(&step.trace, step.task, step.step, number);
        TraceContext { trace: step.trace, span, sampled: step.sampled }.traceparent()
    };
    STEP.try_with(of_step).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn p20_each_request_of_a_step_is_a_span_of_its_own() {
        assert_eq!(next_traceparent(), None);
        let run = RunTrace { run: RunId("r".into()), policy: TracePolicy { rate: 1.0, ..TracePolicy::default() } };
        let task = TaskKey::question(0, 3);
        let sent =
            traced(Some(&run), "q", task, StepNo::ANSWER, async { [next_traceparent(), next_traceparent()] }).await;
        let trace = TraceId::of_question(&RunId("r".into()), "q");
        for (number, sent) in sent.into_iter().enumerate() {
            let context = sent.as_deref().and_then(TraceContext::parse).expect("a context");
            assert_eq!(context.span, span_of_call(&trace, task, StepNo::ANSWER, number));
            assert!(context.sampled && context.trace == trace);
        }
        assert_eq!(traced(None, "q", task, StepNo::ANSWER, async { next_traceparent() }).await, None);
    }
}
