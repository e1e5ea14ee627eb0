//! What a call belongs to, and what it brings.

use std::time::Duration;

use bench_proto::{
    call::{CallRecord, Phase, Usage},
    failure::Failure,
    ids::{RunNo, TaskKey},
    step::{ReplyNote, Timing, WaitFor},
    trace::StepTrace,
};

use crate::{ChatReply, budget::OverCap, stop::StopCause};

/// What a call belongs to.
#[derive(Debug, Clone, Copy)]
pub struct CallContext<'a> {
    /// The run that pays.
    pub run: RunNo,
    /// The task that the call is made for.
    pub task: TaskKey,
    /// The dataset's question id.
    pub question_id: &'a str,
    /// Repeat or vote: independent draws never share a reply.
    pub draw: u32,
    /// Phase that pays.
    pub phase: Phase,
    /// Scope of the call store.
    pub lineage: &'a str,
    /// False when the lineage holds no calls that could be found: spares the look-up.
    pub known_calls: bool,
    /// Failed attempts of this call before it was parked.
    pub failed_attempts: u32,
    /// The trace that its requests bring along.
    pub trace: Option<&'a StepTrace>,
}

/// A reply that passed its parser.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered<T> {
    /// What the parser made of it.
    pub value: T,
    /// What the model said, and what it used.
    pub reply: ChatReply,
    /// It came from the call store and cost nothing.
    pub cached: bool,
}

/// Why a call brought no value.
#[derive(Debug, Clone, PartialEq)]
pub enum CallStop {
    /// Given up: the failure is permanent, or transient and its attempts are used up.
    Failed(Failure),
    /// No call of this account can work; the stop flag is set.
    Terminal(Failure),
    /// The next attempt does not fit under the cap, and nothing is outstanding that could make room.
    Budget(OverCap),
    /// The stop flag was set before the call could be sent.
    Stopped(StopCause),
    /// The wait is longer than the caller's patience: give the slot back and come again.
    Park {
        /// Time until a call may work.
        wait: Duration,
        /// Why, for people.
        reason: String,
        /// Failed attempts so far, for [`CallContext::failed_attempts`].
        failed_attempts: u32,
        /// The route is away, or that is being found out: nothing is to be noted of the task.
        outage: bool,
    },
}

/// Where the time of a call went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallTiming {
    /// Waiting for pace, a place, money, or a retry's delay, in microseconds.
    pub rate_wait_us: u64,
    /// Inside attempts, in microseconds.
    pub provider_us: u64,
    /// Attempts made.
    pub attempts: u32,
    /// One entry per attempt: start offset and duration in microseconds, HTTP status or 0.
    pub calls: Vec<(u64, u64, u16)>,
    /// What was answered.
    pub replies: Vec<ReplyNote>,
    /// Waits that are long enough to be seen: start offset and duration in microseconds, what for.
    pub waits: Vec<(u64, u64, WaitFor)>,
}

impl CallTiming {
    /// Adds the call to a step's timing; `offset_us` is where in the step the call began.
    pub fn add_to(&self, timing: &mut Timing, offset_us: u64) {
        timing.rate_wait_us += self.rate_wait_us;
        timing.provider_us += self.provider_us;
        timing.attempts += self.attempts;
        timing.add_calls(&self.calls, &self.waits, &self.replies, offset_us);
    }
}

/// What a call brought and cost.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResult<T> {
    /// The value, or why there is none.
    pub outcome: Result<Answered<T>, CallStop>,
    /// Every attempt that was or may have been paid, for the step's commit.
    pub records: Vec<CallRecord>,
    /// What was consumed.
    pub usage: Usage,
    /// Where the time went.
    pub timing: CallTiming,
}

/// A parser: makes a value of a reply, or says in one line why it cannot.
pub type Accept<'a, T> = &'a (dyn Fn(&ChatReply) -> Result<T, String> + Sync);
