//! Runs whose memory system is not allowed in this process (P42). Their tasks are left to workers that may take them; where no
//! live worker of the pool does, the run is paused with the reason instead of being offered round and round.

use std::{
    collections::BTreeSet,
    sync::PoisonError,
    time::{Duration, Instant},
};

use bench_proto::{
    failure::{
        Failure,
        code::{self, NOT_ALLOWED},
    },
    session::SessionInfo,
};
use bench_store::{ClaimedTask, RunRow, RunState, SYSTEM_REFUSED_EVENT, StoreError};
use bench_systems::policy;
use tracing::warn;

use super::Shared;

/// How long others may take to come up before a run is paused that nobody takes.
const PATIENCE: Duration = Duration::from_secs(5);
/// Wait between two looks for somebody who takes it.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A run that this process refuses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refused {
    since: Instant,
    looked: Instant,
}

/// Notes that this worker refuses the run of a task, and pauses the run when nobody takes it. `first`: it was not known before.
pub(super) async fn leave_to_others(shared: &Shared, task: ClaimedTask, failure: &Failure, first: bool) {
    let now = Instant::now();
    let told = if first { note(shared, task, failure).await } else { Ok(()) };
    let due = {
        let mut refused = shared.runs.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if first {
            refused.insert(task.run, Refused { since: now, looked: now });
        }
        let alone = !shared.session.is_served();
        refused.get_mut(&task.run).is_some_and(|run| {
            let due = alone || run.since.elapsed() >= PATIENCE && run.looked.elapsed() >= LOOK_AGAIN;
            if due {
                run.looked = now;
            }
            due
        })
    };
    let ended = match told {
        Ok(()) if due => pause_unless_taken(shared, task, failure).await,
        told => told,
    };
    if let Err(error) = ended {
        let worker = shared.session.name.as_str();
        warn!(worker, code = code::STORE, "that worker {worker} refuses a run could not be stored: {error}");
    }
}

/// Tells the others: this session refuses the run.
async fn note(shared: &Shared, task: ClaimedTask, failure: &Failure) -> Result<(), StoreError> {
    let message = format!("{} {}: {}", shared.session.id().0, shared.session.name, failure.message);
    shared.tools.store.add_event(task.run, SYSTEM_REFUSED_EVENT, &message).await
}

async fn pause_unless_taken(shared: &Shared, task: ClaimedTask, failure: &Failure) -> Result<(), StoreError> {
    let run = shared.tools.store.run(task.run).await?;
    if is_taken(shared, &run, task).await? {
        return Ok(());
    }
    let (id, pool) = (run.run_id.0.as_str(), &run.spec.limits.pool);
    let reason = match shared.session.is_served() {
        true => format!("no live worker of pool '{pool}' takes it: {}", failure.message),
        false => failure.message.clone(),
    };
    let pausing = shared.tools.store.set_run_state(task.run, &[RunState::Running], RunState::Paused, Some(&reason));
    if pausing.await? {
        warn!(run = id, code = NOT_ALLOWED, "run {id} is paused: {reason}");
    }
    Ok(())
}

/// Whether another live worker that serves the task's role takes the run, by what it tells of itself and has not refused.
async fn is_taken(shared: &Shared, run: &RunRow, task: ClaimedTask) -> Result<bool, StoreError> {
    if !shared.session.is_served() {
        return Ok(false);
    }
    let events = shared.tools.store.events(task.run).await?;
    let refusing = events.iter().filter(|event| event.kind == SYSTEM_REFUSED_EVENT);
    let refusing: BTreeSet<i64> = refusing.filter_map(|event| event.message.split(' ').next()?.parse().ok()).collect();
    let role = task.task.kind().role();
    let takes = |info: &SessionInfo| {
        let told = info.policy.as_ref();
        told.is_none_or(|told| policy::would_take(told, &run.spec.system.settings).is_ok())
    };
    let others = shared
        .tools
        .store
        .open_sessions(&shared.session.domain)
        .await?
        .into_iter()
        .filter(|row| row.session != shared.session.id() && row.is_alive() && !refusing.contains(&row.session.0));
    Ok(others
        .map(|row| SessionInfo::from_json(&row.info_json))
        .any(|info| info.slots_of(&run.spec.limits.pool, role) > 0 && takes(&info)))
}
