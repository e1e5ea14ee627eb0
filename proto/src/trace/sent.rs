//! What goes along with requests to memory systems and models: the trace, and which span of it the request is.

use std::{cell::Cell, sync::Arc};

use bench_proto::{
    ids::{RunId, TaskKey},
    spec::RunSpec,
    step::StepNo,
    trace::{SpanId, TraceContext, TraceId, TracePolicy, span_of_call, span_of_question},
};

/// What a run says about its traces, where this process has a collector.
#[derive(Debug, Clone)]
pub struct RunTrace {
    run: Arc<RunId>,
    policy: Arc<TracePolicy>,
}

impl RunTrace {
    /// The traces of a run.
    pub fn of(run: &RunId, spec: &RunSpec) -> Self {
        Self { run: Arc::new(run.clone()), policy: Arc::new(spec.limits.trace.clone()) }
    }

    /// The trace and the root of a question, when the base rate fell on it: then its trace is sent whatever happens.
    pub fn sampled(&self, question_id: &str) -> Option<(TraceId, SpanId)> {
        let trace = TraceId::of_question(&self.run, question_id);
        self.policy.samples(&trace).then(|| (trace, span_of_question(&trace)))
    }

    /// What the requests of a step carry.
    fn step(&self, question_id: &str, task: TaskKey, step: StepNo) -> StepTrace {
        StepTrace { run: self.clone(), question_id: question_id.to_owned(), task, step, calls: Cell::new(0) }
    }
}

/// The step whose requests are being made; ids are derived when there is a request, which most steps of built-in systems never make.
#[derive(Debug)]
struct StepTrace {
    run: RunTrace,
    question_id: String,
    task: TaskKey,
    step: StepNo,
    /// Requests so far.
    calls: Cell<usize>,
}

tokio::task_local! {
    static STEP: StepTrace;
}

/// Carries out a step whose requests bring their trace along; without a collector nothing is carried and nothing is paid.
pub async fn traced<T>(
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
        let trace = TraceId::of_question(&step.run.run, &step.question_id);
        let span = span_of_call(&trace, step.task, step.step, number);
        TraceContext { trace, span, sampled: step.run.policy.samples(&trace) }.traceparent()
    };
    STEP.try_with(of_step).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn p20_each_request_of_a_step_is_a_span_of_its_own() {
        assert_eq!(next_traceparent(), None);
        let run = RunTrace {
            run: Arc::new(RunId("r".into())),
            policy: Arc::new(TracePolicy { rate: 1.0, ..TracePolicy::default() }),
        };
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
