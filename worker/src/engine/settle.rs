//! How a task's end reaches the store when it is not the commit of its last step.

use std::time::Duration;

use bench_proto::{
    call::CallRecord,
    failure::{Failure, FailureClass},
    ids::{TaskKind, trace_id},
    step::StepRecord,
    task::TaskEvent,
    trace::{AttemptEnd, AttemptNote},
};
use bench_store::{ClaimedTask, Release, StoreError};
use bench_telemetry::metrics::catalogue;
use tracing::{debug, info, warn};

use super::{STORE, Shared};
use crate::{
    context::CANNOT_SERVE,
    tasks::{self, GivenUp, StepClock, TaskEnd},
};

/// Wait before a task that this worker cannot serve is offered again, perhaps to another.
const CANNOT_SERVE_DELAY_MS: u64 = 1_000;
/// Wait before a task is offered again that the store has failed.
const STORE_FAILED_DELAY_MS: u64 = 500;
/// First and longest wait between tries while the store is unavailable.
const STORE_BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// Carries out how a task ended, unless its result is already stored. `clock` began with the task.
pub(super) async fn settle(shared: &Shared, task: ClaimedTask, clock: &StepClock, end: TaskEnd) {
    let release = |event, delay_ms, reason| Release {
        run: task.run,
        task: task.task,
        epoch: task.epoch,
        event,
        delay_ms,
        reason,
    };
    let release = match end {
        TaskEnd::Stored => return,
        TaskEnd::HandBack { reason, calls } => {
            keep_calls(shared, task, calls).await;
            shared.look_at_runs.notify_one();
            release(TaskEvent::Park, 0, Some(reason))
        }
        TaskEnd::Overtaken => {
            // a bank that has begun anew is a new row
            shared.banks.forget(task.run, task.task.bank()).await;
            release(TaskEvent::Park, 0, Some("overtaken".to_owned()))
        }
        TaskEnd::Park { delay_ms, reason, calls } => {
            keep_calls(shared, task, calls).await;
            release(TaskEvent::Park, delay_ms, Some(reason))
        }
        TaskEnd::GiveUp(given_up) => {
            say_failed(shared, task, &given_up.failure, false).await;
            return give_up(shared, task, tasks::failed_record(task, *given_up)).await;
        }
        // not the question's fault: another worker may have what this one lacks (P12)
        TaskEnd::Failed(failure) if failure.code == CANNOT_SERVE => {
            warn!("{} cannot serve run {}: {}", shared.name, task.run.0, failure.message);
            release(TaskEvent::Park, CANNOT_SERVE_DELAY_MS, Some(format!("{}: {}", shared.name, failure.message)))
        }
        // nor is an outage of the store: no attempt is counted
        TaskEnd::Failed(failure) if failure.code == STORE && failure.class == FailureClass::Transient => {
            release(TaskEvent::Park, STORE_FAILED_DELAY_MS, Some(failure.message))
        }
        TaskEnd::Failed(failure) => {
            let retries = retries(shared, task).await;
            let again = tasks::may_retry(&failure, task, retries);
            say_failed(shared, task, &failure, again).await;
            if again {
                let delay_ms = failure.retry_after_ms.unwrap_or_else(|| tasks::retry_delay_ms(task.attempts));
                release(TaskEvent::Retry, delay_ms, Some(failure.to_string()))
            } else {
                let record = tasks::failed_record(task, GivenUp::without_calls(task, failure));
                return give_up(shared, task, record).await;
            }
        }
    };
    let note = note(task, clock, &release);
    let role = task.task.kind().role().name();
    match &note {
        Some(AttemptNote { end: AttemptEnd::Retried, .. }) => catalogue::TASK_RETRIES.add(1.0, &[role]),
        Some(_) => catalogue::TASKS_PARKED.add(1.0, &[role]),
        None => {}
    }
    if let Err(error) = persist(|| shared.store.release(std::slice::from_ref(&release))).await {
        warn!("a {:?} task could not be handed back, its lease will expire: {error}", task.task.kind());
    }
    shared.opened.notify_one();
    if let Some(note) = note
        && let Err(error) = shared.store.note_attempts(task.run, &[note]).await
    {
        // only its picture in traces is lost
        debug!("a try of {:?} could not be noted: {error}", task.task);
    }
}

/// One line about a failure, where it is handled: what failed, of which run, and where its trace is.
async fn say_failed(shared: &Shared, task: ClaimedTask, failure: &Failure, again: bool) {
    let attempt = task.attempts.saturating_add(1);
    let kind = task.task.kind().role().name();
    let (run, question) = (shared.run_id(task.run).await, shared.question_id(task).await);
    let trace_id = match (&run, &question) {
        (Some(run), Some(question)) => trace_id(run, question),
        _ => String::new(),
    };
    let run = run.map_or_else(|| task.run.0.to_string(), |run| run.0);
    let what = question.unwrap_or_else(|| format!("{:?}", task.task));
    let (code, message) = (failure.code.as_str(), failure.message.as_str());
    if again {
        info!(run, task = task.task.0, trace_id, attempt, code, "{kind} {what} failed and is tried again: {message}");
    } else {
        warn!(run, task = task.task.0, trace_id, attempt, code, "{kind} {what} is given up: {message}");
    }
}

/// What traces show of a try that stored no step; those that were handed back at once are not worth it.
fn note(task: ClaimedTask, clock: &StepClock, release: &Release) -> Option<AttemptNote> {
    let end = match release.event {
        TaskEvent::Retry => AttemptEnd::Retried,
        _ if release.delay_ms > 0 => AttemptEnd::Parked,
        _ => return None,
    };
    let in_question = matches!(task.task.kind(), TaskKind::Question | TaskKind::Judge);
    in_question.then(|| AttemptNote {
        task: task.task,
        epoch: task.epoch,
        started_us: clock.started_us(),
        total_us: clock.elapsed_us(),
        queue_wait_us: u64::try_from(task.queue_wait_us).unwrap_or(0),
        session: task.session.0,
        end,
        delay_us: release.delay_ms.saturating_mul(1000),
        reason: release.reason.clone().unwrap_or_default(),
    })
}

/// How often the run lets a task fail.
async fn retries(shared: &Shared, task: ClaimedTask) -> u32 {
    match persist(|| shared.store.run(task.run)).await {
        Ok(row) => row.spec.limits.retries,
        Err(error) => {
            warn!("the limits of run {} could not be read: {error}", task.run.0);
            0
        }
    }
}

/// Repeats a store call while the store is unavailable. Nobody else can do it: the lease of a task that is neither ended nor
/// handed back lasts as long as this worker.
async fn persist<T, F>(call: impl Fn() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let (mut delay, longest) = STORE_BACKOFF;
    loop {
        match call().await {
            Err(error) if error.is_transient() => {
                debug!("settling waits for the store: {error}");
                tokio::time::sleep(delay).await;
                delay = (delay * 2).min(longest);
            }
            result => return result,
        }
    }
}

/// Books attempts that belong to no stored step.
async fn keep_calls(shared: &Shared, task: ClaimedTask, calls: Vec<CallRecord>) {
    if calls.is_empty() {
        return;
    }
    if let Err(error) = persist(|| shared.store.put_calls(task.run, task.task, &calls)).await {
        warn!("{} paid attempts of {:?} could not be booked: {error}", calls.len(), task.task);
    }
}

async fn give_up(shared: &Shared, task: ClaimedTask, record: StepRecord) {
    debug!("{:?} is given up", task.task);
    if let Err(error) = shared.writer.submit(vec![record]).await {
        warn!("the failure of {:?} could not be stored: {error}", task.task);
    }
}
