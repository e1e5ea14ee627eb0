//! Tasks on their way: ready, claimed, given back, adopted, repeated.

use std::collections::BTreeMap;

use bench_proto::{
    bank::planned_generation,
    ids::{Role, RunNo, TaskKey},
    step::StepFacts,
};

use super::processes::SessionId;

/// A ready task that has not been published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadyTask {
    /// Key of the task within its run.
    pub task: TaskKey,
    /// Times it was published before.
    pub publish_count: i32,
    /// Its lease epoch: a claim raises it.
    pub epoch: i64,
}

/// A task that was claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimedTask {
    /// Number of the run in its store.
    pub run: RunNo,
    /// Key of the task within its run.
    pub task: TaskKey,
    /// Lease epoch of this claim; above 1 the task may have stored steps.
    pub epoch: i64,
    /// Failures reported so far.
    pub attempts: i32,
    /// Leases lost so far.
    pub losses: i32,
    /// Microseconds from ready to claimed.
    pub queue_wait_us: i64,
    /// Microseconds from ready to published; 0 when the claim was quicker than the note.
    pub dispatch_us: i64,
    /// The session that claimed it.
    pub session: SessionId,
}

impl ClaimedTask {
    /// The generation of its bank in which it was planned: what is planned anew (`retry`) begins a count anew.
    #[must_use]
    pub const fn planned_generation(&self) -> i64 {
        planned_generation(self.epoch)
    }
}

/// A change of a leased task that is not a result; needs the current epoch (P3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// Number of the run in its store.
    pub run: RunNo,
    /// Key of the task within its run.
    pub task: TaskKey,
    /// Epoch of the claim.
    pub epoch: i64,
    /// `Retry` or `Park` of [`bench_proto::task::TaskEvent`].
    pub event: bench_proto::task::TaskEvent,
    /// Earliest time of the next claim, milliseconds from now.
    pub delay_ms: u64,
    /// Why, for people (`waiting for pace of account openai`).
    pub reason: Option<String>,
}

/// Open tasks of one role of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenTasks {
    /// Ready, due, not published.
    pub unpublished: i64,
    /// Ready and published, waiting for a worker.
    pub queued: i64,
    /// Ready, but not due yet.
    pub delayed: i64,
    /// Claimed.
    pub leased: i64,
    /// Milliseconds until the first delayed one is due.
    pub next_due_ms: Option<i64>,
}

impl OpenTasks {
    /// Their number, whatever they wait for.
    #[must_use]
    pub const fn all(&self) -> i64 {
        self.unpublished + self.queued + self.delayed + self.leased
    }
}

/// Open tasks of a run by role.
pub type OpenByRole = BTreeMap<Role, OpenTasks>;

/// A question of a forked run with what it takes over (see [`crate::Forks`]).
#[derive(Debug, Clone, PartialEq)]
pub struct AdoptedQuestion {
    /// Key of the task within its run.
    pub task: TaskKey,
    /// Steps with their texts, in order; a [`StepFacts::Failed`] under [`bench_proto::step::StepNo::FAILED`] ends it.
    pub steps: Vec<(bench_proto::step::StepNo, StepFacts, Option<bench_proto::step::StepText>)>,
}

/// Which failed questions a user wants repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryScope {
    /// Questions that ended as infra_error.
    Errors,
    /// Questions that ended as infra_error, and those that never ran.
    ErrorsAndNotRun,
}
