//! How tasks end: what is stored, given back, tried again or given up.

use bench_proto::{
    call::{CallRecord, Usage},
    failure::{Failure, FailureClass, code},
    step::{Effect, StepFacts, StepNo, StepRecord, Timing},
};
use bench_store::{ClaimedTask, StoreError};

use crate::{clock::now_us, writer::WriteError};

/// Code of the failure that stops a run at its cap; the reason begins with the same word.
pub(crate) const BUDGET: &str = "budget";

/// Code of the failure of a bank that was begun too often and never filled: another attempt begins nothing any more.
pub(crate) const BEGUN_TOO_OFTEN: &str = "system_cannot_repeat";
/// Code of the failure of a bank that was in doubt and could not begin anew: the next attempt does it, so there has to be one (P5).
pub(crate) const LEFT_BY_THE_NEXT: &str = "system_in_doubt";

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

    /// How a task ends that has stored a step in this claim. It goes on from there, so what failed meanwhile is no attempt of the
    /// whole task: one of many calls would use them up with every call well within its own.
    pub(crate) fn after_progress(self, made: bool) -> Self {
        match self {
            Self::RetryLater { failure, calls } if made => {
                Self::Park { delay_ms: failure.retry_after_ms.unwrap_or(0), reason: failure.message, calls }
            }
            other => other,
        }
    }

    /// How a task ends of which several calls have ended: as the weightiest of them does, and the attempts of the others that are
    /// still to be booked. What cannot come right outweighs what may, and what counts an attempt outweighs a wait.
    pub(crate) fn of_several(mut ends: Vec<Self>) -> Option<(Self, Vec<CallRecord>)> {
        let weight = |end: &Self| match end {
            Self::Stored => 0,
            Self::PutOff { .. } => 1,
            Self::Park { .. } => 2,
            Self::RetryLater { .. } => 3,
            Self::Failed(failure) if failure.class == FailureClass::Transient => 4,
            Self::HandBack { .. } => 5,
            Self::Overtaken => 6,
            Self::Failed(_) => 7,
            Self::GiveUp(_) => 8,
        };
        ends.sort_by_key(weight);
        let mut end = ends.pop()?;
        let mut others = Vec::new();
        for other in ends {
            match (&mut end, other) {
                (Self::GiveUp(end), Self::GiveUp(other)) => {
                    end.usage += other.usage;
                    end.timing.attempts += other.timing.attempts;
                    end.calls.extend(other.calls);
                }
                (_, Self::GiveUp(other)) => others.extend(other.calls),
                (_, Self::HandBack { calls, .. } | Self::Park { calls, .. } | Self::RetryLater { calls, .. }) => {
                    others.extend(calls)
                }
                (_, Self::Stored | Self::Overtaken | Self::PutOff { .. } | Self::Failed(_)) => {}
            }
        }
        Some((end, others))
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
            WriteError::Damaged(reason) => Self::Failed(Failure::permanent(code::STORE, reason)),
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

#[cfg(test)]
mod tests {
    use bench_proto::call::CallOutcome;
    use bench_store::conformance::call;

    use super::*;

    fn given_up(retries: u64) -> TaskEnd {
        TaskEnd::GiveUp(Box::new(GivenUp {
            failure: Failure::transient("timeout", "no reply"),
            calls: vec![call("given up", CallOutcome::Rejected, 1)],
            usage: Usage { retries, ..Usage::default() },
            timing: Timing { attempts: 2, ..Timing::default() },
        }))
    }

    #[test]
    fn who_has_stored_a_step_goes_on_from_there_without_an_attempt() {
        let waits = || Failure { retry_after_ms: Some(7), ..Failure::transient("waits", "pace") };
        let later = || TaskEnd::RetryLater { failure: waits(), calls: vec![call("paid", CallOutcome::Rejected, 1)] };
        assert!(matches!(later().after_progress(false), TaskEnd::RetryLater { .. }));
        let TaskEnd::Park { delay_ms, reason, calls } = later().after_progress(true) else { panic!("is parked") };
        assert_eq!((delay_ms, reason.as_str(), calls.len()), (7, "pace", 1));
        assert!(matches!(given_up(1).after_progress(true), TaskEnd::GiveUp(_)), "a call has used up its own");
    }

    #[test]
    fn of_several_ends_the_weightiest_counts_and_no_paid_attempt_is_lost() {
        let paid = || vec![call("paid", CallOutcome::Rejected, 1)];
        let park = || TaskEnd::Park { delay_ms: 5, reason: "pace".into(), calls: paid() };
        let put_off = || TaskEnd::PutOff { delay_ms: 5, reason: "away".into() };
        let stopping = || TaskEnd::HandBack { reason: "stopping".into(), calls: paid() };
        assert!(TaskEnd::of_several(vec![]).is_none());
        let end = |ends| TaskEnd::of_several(ends).map(|(end, others)| (format!("{end:?}"), others.len()));
        assert!(end(vec![put_off()]).is_some_and(|(end, others)| end.starts_with("PutOff") && others == 0));
        assert!(end(vec![park(), put_off()]).is_some_and(|(end, others)| end.starts_with("Park") && others == 0));
        assert!(end(vec![stopping(), park()]).is_some_and(|(end, others)| end.starts_with("HandBack") && others == 1));
        let Some((TaskEnd::GiveUp(both), others)) = TaskEnd::of_several(vec![given_up(1), stopping(), given_up(3)])
        else {
            panic!("what failed for good has failed")
        };
        assert_eq!((both.usage.retries, both.timing.attempts, both.calls.len(), others.len()), (4, 4, 2, 1));
    }
}
