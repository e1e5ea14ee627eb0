//! What goes along with requests to memory systems and models: the trace, and which span of it the request is.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use super::{SpanId, TraceContext, TraceId, TracePolicy, span_of_call, span_of_question};
use crate::{
    ids::{RunId, TaskKey},
    step::StepNo,
};

/// What a run says about its traces, where this process has a collector.
#[derive(Debug, Clone)]
pub struct RunTrace {
    run: Arc<RunId>,
    policy: Arc<TracePolicy>,
}

impl RunTrace {
    /// The traces of a run, which are sent by its policy.
    #[must_use]
    pub fn new(run: &RunId, policy: &TracePolicy) -> Self {
        Self { run: Arc::new(run.clone()), policy: Arc::new(policy.clone()) }
    }

    /// The trace and the root of a question, when the base rate fell on it: then its trace is sent whatever happens.
    #[must_use]
    pub fn sampled(&self, question_id: &str) -> Option<(TraceId, SpanId)> {
        let trace = TraceId::of_question(&self.run, question_id);
        self.policy.samples(&trace).then(|| (trace, span_of_question(&trace)))
    }

    /// What the requests of a step bring along.
    #[must_use]
    pub fn step(&self, question_id: &str, task: TaskKey, step: StepNo) -> StepTrace {
        StepTrace { run: self.clone(), question_id: question_id.to_owned(), task, step, requests: AtomicUsize::new(0) }
    }
}

/// The step whose requests are being made. Ids are derived when there is a request, which most steps of built-in systems never make.
#[derive(Debug)]
pub struct StepTrace {
    run: RunTrace,
    question_id: String,
    task: TaskKey,
    step: StepNo,
    /// Requests so far.
    requests: AtomicUsize,
}

impl StepTrace {
    /// The `traceparent` of the next request of this step: call it once for each request that is sent, by whatever client.
    #[must_use]
    pub fn next_traceparent(&self) -> String {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let trace = TraceId::of_question(&self.run.run, &self.question_id);
        let span = span_of_call(&trace, self.task, self.step, number);
        TraceContext { trace, span, sampled: self.run.policy.samples(&trace) }.traceparent()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p20_each_request_of_a_step_is_a_span_of_its_own() {
        let run = RunTrace {
            run: Arc::new(RunId("r".into())),
            policy: Arc::new(TracePolicy { rate: 1.0, ..TracePolicy::default() }),
        };
        let task = TaskKey::question(0, 3);
        let step = run.step("q", task, StepNo::ANSWER);
        let trace = TraceId::of_question(&RunId("r".into()), "q");
        for number in 0..2 {
            let context = TraceContext::parse(&step.next_traceparent()).expect("a context");
            assert_eq!(context.span, span_of_call(&trace, task, StepNo::ANSWER, number));
            assert!(context.sampled && context.trace == trace);
        }
    }
}
