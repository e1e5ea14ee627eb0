//! How tasks end: what is stored, given back, tried again or given up.

use bench_proto::{
    call::{CallRecord, Usage},
    failure::{Failure, FailureClass},
    step::{Effect, StepFacts, StepNo, StepRecord, Timing},
};
use bench_store::{ClaimedTask, StoreError};

use crate::{clock::now_us, writer::WriteError};

/// Losses after which a task is given up (P3).
const MAX_LOSSES: i32 = 10;

/// Result of a task's body: `Ok` when its last step is stored.
pub(crate) type TaskResult = Result<(), TaskEnd>;

/// How a task ended for its slot. `calls` are attempts that belong to no stored step but may have been paid.
#[derive(Debug)]
pub(crate) enum TaskEnd {
    /// Its last step is in the store.
    Stored,
    /// Given back at once, nothing counted: the run or the worker stops.
    HandBack { reason: String, calls: Vec<CallRecord> },
    /// The store did not take its result: another holds the task, or its bank has begun anew.
    Overtaken,
    /// Given back for a while, nothing counted (P11).
    Park { delay_ms: u64, reason: String, calls: Vec<CallRecord> },
    /// The same because what it needs is away: nothing is noted of it either (P39).
    PutOff { delay_ms: u64, reason: String },
    /// Given back for a while after failed attempts: one of its own is counted, so that none is forgotten.
    RetryLater { failure: Failure, calls: Vec<CallRecord> },
    /// It failed: retried or given up by its class and attempts.
    Failed(Failure),
    /// It failed for good: its calls have used up their attempts.
    GiveUp(Box<GivenUp>),
}

/// What is stored of a task whose calls have used up their attempts.
#[derive(Debug)]
pub(crate) struct GivenUp {
    pub(crate) failure: Failure,
    pub(crate) calls: Vec<CallRecord>,
    pub(crate) usage: Usage,
    pub(crate) timing: Timing,
}

impl TaskEnd {
    /// Given back at once, without calls.
    pub(crate) fn hand_back(reason: impl Into<String>) -> Self {
        Self::HandBack { reason: reason.into(), calls: Vec::new() }
    }
}

impl From<Failure> for TaskEnd {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<StoreError> for TaskEnd {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<WriteError> for TaskEnd {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Refused(reason) => Self::Failed(Failure::permanent("result_refused", reason)),
            WriteError::Overtaken => Self::Overtaken,
            WriteError::Broken(reason) => Self::hand_back(reason),
        }
    }
}

/// Whether a failed task gets another attempt (P3).
pub(crate) fn may_retry(failure: &Failure, task: ClaimedTask, retries: u32) -> bool {
    failure.class == FailureClass::Transient && i64::from(task.attempts) < i64::from(retries) && !lost_too_often(task)
}

/// Whether every worker that held the task was lost with it: the next one is not risked (P3).
pub(crate) fn lost_too_often(task: ClaimedTask) -> bool {
    task.losses >= MAX_LOSSES
}

/// Delay before another attempt of a whole task: 0.5 s doubling to 30 s. Calls have their own, shorter back-off inside.
pub(crate) fn retry_delay_ms(attempts: i32) -> u64 {
    500_u64.saturating_mul(1 << attempts.clamp(0, 6)).min(30_000)
}

/// The record that stores why a task was given up, with what it cost up to then.
pub(crate) fn failed_record(task: ClaimedTask, given_up: GivenUp) -> StepRecord {
    let GivenUp { failure, calls, usage, timing } = given_up;
    StepRecord {
        run: task.run,
        task: task.task,
        step: StepNo::FAILED,
        epoch: task.epoch,
        facts: StepFacts::Failed { failure, usage, timing },
        text: None,
        calls,
        effect: Effect::Failed,
    }
}

impl GivenUp {
    /// A failure without calls of its own.
    pub(crate) fn without_calls(task: ClaimedTask, failure: Failure) -> Self {
        let attempts = u32::try_from(task.attempts).unwrap_or(0) + 1;
        let timing = Timing { started_us: now_us(), attempts, session: task.session.0, ..Timing::default() };
        Self { failure, calls: Vec::new(), usage: Usage::default(), timing }
    }
}
