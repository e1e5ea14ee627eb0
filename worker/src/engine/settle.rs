//! How a task's end reaches the store when it is not the commit of its last step.

use bench_proto::{call::CallRecord, step::StepRecord, task::TaskEvent};
use bench_store::{ClaimedTask, Release};
use tracing::{debug, warn};

use super::Shared;
use crate::{
    context::CANNOT_SERVE,
    tasks::{self, GivenUp, TaskEnd},
};

/// Wait before a task that this worker cannot serve is offered again, perhaps to another.
const CANNOT_SERVE_DELAY_MS: u64 = 5_000;

/// Carries out how a task ended, unless its result is already stored.
pub(super) async fn settle(shared: &Shared, task: ClaimedTask, end: TaskEnd) {
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
        TaskEnd::GiveUp(given_up) => return give_up(shared, task, tasks::failed_record(task, *given_up)).await,
        // not the question's fault: another worker may have what this one lacks (P12)
        TaskEnd::Failed(failure) if failure.code == CANNOT_SERVE => {
            warn!("{} cannot serve run {}: {}", shared.name, task.run.0, failure.message);
            release(TaskEvent::Park, CANNOT_SERVE_DELAY_MS, Some(format!("{}: {}", shared.name, failure.message)))
        }
        TaskEnd::Failed(failure) => {
            let context = shared.context(task.run).await.ok();
            let retries = context.as_ref().map_or(0, |c| c.row().spec.limits.retries);
            if tasks::may_retry(&failure, task, retries) {
                let delay_ms = failure.retry_after_ms.unwrap_or_else(|| tasks::retry_delay_ms(task.attempts));
                release(TaskEvent::Retry, delay_ms, Some(failure.to_string()))
            } else {
                let record = tasks::failed_record(task, GivenUp::without_calls(task, failure));
                return give_up(shared, task, record).await;
            }
        }
    };
    if let Err(error) = shared.store.release(&[release]).await {
        warn!("a {:?} task could not be handed back, its lease will expire: {error}", task.task.kind());
    }
    shared.opened.notify_one();
}

/// Books attempts that belong to no stored step.
async fn keep_calls(shared: &Shared, task: ClaimedTask, calls: Vec<CallRecord>) {
    if calls.is_empty() {
        return;
    }
    if let Err(error) = shared.store.put_calls(task.run, task.task, &calls).await {
        warn!("{} paid attempts of {:?} could not be booked: {error}", calls.len(), task.task);
    }
}

async fn give_up(shared: &Shared, task: ClaimedTask, record: StepRecord) {
    debug!("{:?} is given up", task.task);
    if let Err(error) = shared.writer.submit(vec![record]).await {
        warn!("the failure of {:?} could not be stored: {error}", task.task);
    }
}
