//! The four kinds of task, one file each (P6), and the latency probe of a run (P43). A task runs in a slot and ends in one of the ways of [`TaskEnd`].

mod canary;
mod judge;
mod probe;
mod question;
mod ready;
mod retain;

use std::{
    collections::HashMap,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use bench_proto::{
    call::{CallRecord, Usage},
    failure::{Failure, FailureClass},
    ids::{RunNo, TaskKey, TaskKind},
    step::{Effect, SHORTEST_WAIT_US, StepFacts, StepNo, StepRecord, StepText, Timing},
};
use bench_store::{ClaimedTask, StoreError};

use crate::{
    context::RunContext,
    engine::{Shared, store_failure},
    writer::WriteError,
};
use bench_systems::{BankRef, Prepared, RecallQuery};

/// Losses after which a task is given up (P3).
const MAX_LOSSES: i32 = 10;

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

impl From<WriteError> for TaskEnd {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Refused(reason) => Self::Failed(Failure::permanent("result_refused", reason)),
            WriteError::Overtaken => Self::Overtaken,
            WriteError::Broken(reason) => Self::hand_back(reason),
        }
    }
}

/// What the store already knows about a task.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaskInput {
    texts: Vec<(TaskKey, StepNo, StepText)>,
}

impl TaskInput {
    /// Text of a stored step of `task`.
    fn text(&self, task: TaskKey, step: StepNo) -> Option<&StepText> {
        self.texts.iter().find(|(t, s, _)| *t == task && *s == step).map(|(_, _, text)| text)
    }
}

/// Reads what the tasks of a claim need from the store, in one round trip per run and kind and not one per task: the
/// answer for judges, the earlier steps for questions that were claimed before.
pub(crate) async fn prepare(
    shared: &Shared,
    claimed: Vec<ClaimedTask>,
) -> Vec<(ClaimedTask, Result<TaskInput, Failure>)> {
    let mut wanted: HashMap<(RunNo, TaskKind), Vec<TaskKey>> = HashMap::new();
    for task in claimed.iter().filter(|task| needs_texts(task)) {
        wanted.entry((task.run, task.task.kind())).or_default().push(task.task.question_of());
    }
    let mut inputs: HashMap<(RunNo, TaskKind, TaskKey), TaskInput> = HashMap::new();
    let mut failed: HashMap<(RunNo, TaskKind), Failure> = HashMap::new();
    for ((run, kind), questions) in wanted {
        match read_texts(shared, run, kind, &questions).await {
            Ok(texts) => {
                for (task, step, text) in texts {
                    inputs.entry((run, kind, task.question_of())).or_default().texts.push((task, step, text));
                }
            }
            Err(error) => drop(failed.insert((run, kind), store_failure(&error))),
        }
    }
    // several votes may share one question, so inputs are copied out
    let input_of = |task: &ClaimedTask| {
        let (run, kind) = (task.run, task.task.kind());
        match failed.get(&(run, kind)) {
            Some(failure) => Err(failure.clone()),
            None => Ok(inputs.get(&(run, kind, task.task.question_of())).cloned().unwrap_or_default()),
        }
    };
    let mut prepared = Vec::with_capacity(claimed.len());
    for task in claimed {
        let input = if needs_texts(&task) { input_of(&task) } else { Ok(TaskInput::default()) };
        prepared.push((task, input));
    }
    prepared
}

fn needs_texts(task: &ClaimedTask) -> bool {
    match task.task.kind() {
        TaskKind::Judge => true,
        TaskKind::Question => task.epoch > 1 && task.task != TaskKey::PROBE,
        TaskKind::Retain | TaskKind::Ready => false,
    }
}

async fn read_texts(
    shared: &Shared,
    run: RunNo,
    kind: TaskKind,
    questions: &[TaskKey],
) -> Result<Vec<(TaskKey, StepNo, StepText)>, StoreError> {
    if kind != TaskKind::Judge {
        return shared.store.question_texts(run, questions).await;
    }
    let answers = shared.store.step_texts(run, questions, StepNo::ANSWER).await?;
    Ok(answers.into_iter().map(|(task, text)| (task, StepNo::ANSWER, text)).collect())
}

/// Runs one claimed task to its end.
pub(crate) async fn run(shared: &Shared, task: ClaimedTask, input: Result<TaskInput, Failure>) -> TaskEnd {
    let work = async {
        let input = input?;
        let context = shared.context(task.run).await?;
        let steps = async {
            match task.task.kind() {
                TaskKind::Retain => retain::run(shared, &context, task).await,
                TaskKind::Ready => ready::run(shared, &context, task).await,
                TaskKind::Question if task.task == TaskKey::PROBE => probe::run(shared, &context, task).await,
                TaskKind::Question => question::run(shared, &context, task, &input).await,
                TaskKind::Judge => judge::run(shared, &context, task, &input).await,
            }
        };
        tokio::select! {
            () = context.dropped() => {
                if task.task.kind() == TaskKind::Retain {
                    retain::leave(shared, &context, task).await;
                }
                Err(TaskEnd::hand_back("dropped"))
            }
            ended = steps => ended,
        }
    };
    work.await.map_or_else(|end: TaskEnd| end, |()| TaskEnd::Stored)
}

/// Result of a task's body: `Ok` when its last step is stored.
pub(crate) type TaskResult = Result<(), TaskEnd>;

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

/// Microseconds since 1970 by this machine's clock; for display only.
pub(crate) fn now_us() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| i64::try_from(d.as_micros()).unwrap_or(i64::MAX))
}

/// Makes sure of what an operation of the memory system rests on, and notes how long building it took, or waiting for somebody
/// else who built it (P43).
pub(crate) async fn prepared(
    context: &RunContext,
    bank: &BankRef,
    query: Option<&RecallQuery<'_>>,
    timing: &mut Timing,
) -> Result<(), Failure> {
    let begun = Instant::now();
    let how = context.system().prepare(bank, query).await?;
    let took_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
    match how {
        Prepared::Built => timing.build_us += took_us,
        // shorter ones are no wait for a build: two looked at the same moment
        Prepared::Waited if took_us >= SHORTEST_WAIT_US => timing.build_wait_us += took_us,
        Prepared::Waited | Prepared::Ready => {}
    }
    Ok(())
}

/// Measures a step.
pub(crate) struct StepClock {
    started_us: i64,
    started: Instant,
}

impl StepClock {
    pub(crate) fn start() -> Self {
        Self { started_us: now_us(), started: Instant::now() }
    }

    /// When it began, microseconds since 1970.
    pub(crate) const fn started_us(&self) -> i64 {
        self.started_us
    }

    pub(crate) fn elapsed_us(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// The timing of a step without waits, of which `provider_us` were spent in the memory system.
    pub(crate) fn timing(&self, task: &ClaimedTask, provider_us: u64) -> Timing {
        Timing {
            started_us: self.started_us,
            queue_wait_us: u64::try_from(task.queue_wait_us).unwrap_or(0),
            dispatch_us: u64::try_from(task.dispatch_us).unwrap_or(0),
            provider_us,
            total_us: self.elapsed_us(),
            attempts: u32::try_from(task.attempts).unwrap_or(0) + 1,
            session: task.session.0,
            ..Timing::default()
        }
    }
}
