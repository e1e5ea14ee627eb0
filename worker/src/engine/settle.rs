//! How a task's end reaches the store when it is not the commit of its last step. A store that is away is waited for: the lease of
//! a task that is neither ended nor handed back lasts as long as this worker, and nobody else can end it.

use std::sync::PoisonError;

use bench_proto::{
    call::CallRecord,
    failure::{
        Failure, FailureClass,
        code::{self, CANNOT_SERVE, NOT_ALLOWED},
    },
    ids::TaskKind,
    step::StepRecord,
    task::TaskEvent,
    trace::{AttemptEnd, AttemptNote},
};
use bench_store::{ClaimedTask, Release, RunState, retry};
use bench_telemetry::metrics::catalogue;
use tracing::{debug, warn};

use super::{
    Shared,
    alike::{self, Telling},
    refused, unread,
};
use crate::{
    clock::StepClock,
    ending::{GivenUp, TaskEnd, failed_record, may_retry, retry_delay_ms},
    writer::WriteError,
};

/// Wait before a task that this worker cannot serve is offered again, perhaps to another.
const CANNOT_SERVE_DELAY_MS: u64 = 1_000;
/// Wait before a task is offered again that the store has failed.
const STORE_FAILED_DELAY_MS: u64 = 500;

/// Carries out how a task ended, unless its result is already stored. `clock` began with the task.
pub(super) async fn settle(shared: &Shared, task: ClaimedTask, clock: &StepClock, end: TaskEnd) {
    let Some(release) = release_after(shared, task, end).await else { return };
    if shared.tools.active.is_overtaken(task) {
        shared.opened.notify_one();
        return;
    }
    let note = note(task, clock, &release);
    let role = task.task.kind().role().name();
    match &note {
        Some(AttemptNote { end: AttemptEnd::Retried, .. }) => catalogue::TASK_RETRIES.add(1.0, &[role]),
        Some(_) => catalogue::TASKS_PARKED.add(1.0, &[role]),
        None => {}
    }
    hand_over(shared, task, release).await;
    if let Some(note) = note
        && let Err(error) = shared.tools.store.note_attempts(task.run, &[note]).await
    {
        // only its picture in traces is lost
        debug!("a try of {:?} could not be noted: {error}", task.task);
    }
}

/// What gives a task back in the store after `end`; nothing when it has ended there already, or was put off without a note.
async fn release_after(shared: &Shared, task: ClaimedTask, end: TaskEnd) -> Option<Release> {
    let release = |event, delay_ms, reason| Release {
        run: task.run,
        task: task.task,
        epoch: task.epoch,
        event,
        delay_ms,
        reason,
    };
    let unserved = |failure: Failure| {
        let reason = format!("{}: {}", shared.session.name, failure.message);
        release(TaskEvent::Park, CANNOT_SERVE_DELAY_MS, Some(reason))
    };
    Some(match end {
        TaskEnd::Stored => return None,
        TaskEnd::HandBack { reason, calls } => {
            keep_calls(shared, task, calls).await;
            shared.look_at_runs.notify_one();
            release(TaskEvent::Park, 0, Some(reason))
        }
        TaskEnd::Overtaken => {
            // a bank that has begun anew is a new row
            shared.tools.banks.forget(task.run, task.task.bank()).await;
            release(TaskEvent::Park, 0, Some("overtaken".to_owned()))
        }
        TaskEnd::Park { delay_ms, reason, calls } => {
            keep_calls(shared, task, calls).await;
            release(TaskEvent::Park, delay_ms, Some(reason))
        }
        TaskEnd::PutOff { delay_ms, reason } => {
            hand_over(shared, task, release(TaskEvent::Park, delay_ms, Some(reason))).await;
            return None;
        }
        TaskEnd::RetryLater { failure, calls } => {
            keep_calls(shared, task, calls).await;
            if may_retry(&failure, task, retries(shared, task).await) {
                let delay_ms = failure.retry_after_ms.unwrap_or(0);
                release(TaskEvent::Retry, delay_ms, Some(failure.message))
            } else {
                say_failed(shared, task, &failure, false).await;
                let record = failed_record(task, GivenUp::without_calls(task, failure));
                give_up(shared, task, record).await;
                return None;
            }
        }
        TaskEnd::GiveUp(given_up) => {
            say_failed(shared, task, &given_up.failure, false).await;
            give_up(shared, task, failed_record(task, *given_up)).await;
            return None;
        }
        // not the question's fault: another worker may have what this one lacks (P12)
        TaskEnd::Failed(failure) if failure.code == CANNOT_SERVE => {
            say_unserved(shared, task, &failure).await;
            unserved(failure)
        }
        TaskEnd::Failed(failure) if failure.code == NOT_ALLOWED => {
            let first = say_unserved(shared, task, &failure).await;
            refused::leave_to_others(shared, task, &failure, first).await;
            unserved(failure)
        }
        // an outage of the store is nobody's fault here: no attempt is counted
        TaskEnd::Failed(failure) if failure.code == code::STORE && failure.class == FailureClass::Transient => {
            release(TaskEvent::Park, STORE_FAILED_DELAY_MS, Some(failure.message))
        }
        TaskEnd::Failed(failure) => {
            let retries = retries(shared, task).await;
            let again = may_retry(&failure, task, retries);
            say_failed(shared, task, &failure, again).await;
            if again {
                let delay_ms = failure.retry_after_ms.unwrap_or_else(|| retry_delay_ms(task.attempts));
                release(TaskEvent::Retry, delay_ms, Some(failure.to_string()))
            } else {
                let record = failed_record(task, GivenUp::without_calls(task, failure));
                give_up(shared, task, record).await;
                return None;
            }
        }
    })
}

/// Books attempts that belong to no stored step.
async fn keep_calls(shared: &Shared, task: ClaimedTask, calls: Vec<CallRecord>) {
    if !calls.is_empty() {
        shared.tools.keep_calls(task, shared.run_id(task.run).await, calls).await;
    }
}

/// Gives a task back in the store.
async fn hand_over(shared: &Shared, task: ClaimedTask, release: Release) {
    if let Err(error) = retry(|| shared.tools.store.release(std::slice::from_ref(&release))).await {
        let about = shared.about(task).await;
        about.warn(code::STORE, &format!("could not be handed back, its lease will expire: {error}"));
    }
    shared.opened.notify_one();
}

/// One line about a failure, where it is handled: what failed, of which run, and where its trace is.
async fn say_failed(shared: &Shared, task: ClaimedTask, failure: &Failure, again: bool) {
    let about = shared.about(task).await;
    let message = &failure.message;
    if again {
        about.info(&failure.code, &format!("failed and is tried again: {message}"));
        return;
    }
    let what = format!("is given up: {message}");
    match shared.runs.unread.add(task.run, task.task, failure) {
        // a model that keeps to no form fails at every task in the same way
        Some(count @ 2..) => {
            about.info(&failure.code, &what);
            if unread::is_told(count) {
                say_unread(shared, task, failure, count).await;
            }
        }
        Some(_) => about.warn(&failure.code, &what),
        // and a class that has a mistake at every task that asks it
        None => match shared.runs.alike.add(task.run, failure) {
            Telling::ByItself => about.warn(&failure.code, &what),
            Telling::Quietly => about.info(&failure.code, &what),
            Telling::Counted(count) => {
                about.info(&failure.code, &what);
                let run = shared.run_id(task.run).await.map_or_else(|| task.run.0.to_string(), |run| run.0);
                alike::say(&run, (&failure.code, alike::first_line(failure)), count);
            }
        },
    }
}

/// How many tasks of a run were given up for replies of a model that cannot be read.
async fn say_unread(shared: &Shared, task: ClaimedTask, failure: &Failure, count: u64) {
    let context = shared.runs.contexts.lock().await.get(&task.run).cloned();
    let Some(context) = context else { return };
    let (run, model) = (context.row().run_id.0.as_str(), unread::model_of(&context, task.task));
    let (code, message) = (failure.code.as_str(), &failure.message);
    warn!(
        run,
        code,
        "replies of {model} cannot be read: {count} tasks of run {run} are given up, the last one for: {message} \
         (bench-coord show {run} --failed lists their questions)"
    );
}

/// The same about a run that this worker cannot serve: said once, although its tasks are offered again and again. True when it
/// was said now.
async fn say_unserved(shared: &Shared, task: ClaimedTask, failure: &Failure) -> bool {
    if !shared.runs.unserved.lock().unwrap_or_else(PoisonError::into_inner).insert(task.run) {
        return false;
    }
    let run = match shared.tools.store.run(task.run).await {
        Ok(row) => row.run_id.0,
        Err(_) => task.run.0.to_string(),
    };
    let (worker, code) = (shared.session.name.as_str(), failure.code.as_str());
    warn!(run, worker, code, "worker {worker} cannot serve run {run}: {}", failure.message);
    true
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
    match retry(|| shared.tools.store.run(task.run)).await {
        Ok(row) => row.spec.limits.retries,
        Err(error) => {
            shared
                .about(task)
                .await
                .warn(code::STORE, &format!("is not tried again, its run could not be read: {error}"));
            0
        }
    }
}

async fn give_up(shared: &Shared, task: ClaimedTask, record: StepRecord) {
    match shared.tools.writer.submit(vec![record]).await {
        // a store that is broken is told when the process ends, and what another holds is another's
        Ok(_) | Err(WriteError::Broken(_) | WriteError::Overtaken) => {}
        Err(error @ (WriteError::Refused(_) | WriteError::Damaged(_))) => {
            shared.about(task).await.warn(code::STORE, &format!("has a failure that could not be stored: {error}"));
            if let WriteError::Damaged(why) = error {
                pause_damaged(shared, task, &why).await;
            }
        }
    }
}

/// Pauses a run of which not even failures can be stored: its tasks would be tried, and paid for, again and again.
async fn pause_damaged(shared: &Shared, task: ClaimedTask, why: &str) {
    let reason = format!("{why}; mend the store or restore it from a copy, then resume the run");
    let paused =
        shared.tools.store.set_run_state(task.run, &[RunState::Running], RunState::Paused, Some(&reason)).await;
    let run = shared.run_id(task.run).await.map_or_else(|| task.run.0.to_string(), |run| run.0);
    match paused {
        Ok(true) => warn!(run, code = code::STORE, "run {run} is paused: {reason}"),
        Ok(false) => {}
        Err(error) => warn!(run, code = code::STORE, "run {run} could not be paused ({error}): {reason}"),
    }
}
