//! The latency probe at the end of a run (P43): opened when every question has ended, and waited for.

use bench_proto::{
    CLUSTER_DOMAIN, bank::BankState, ids::Role, ids::TaskKey, probe::ProbePart, session::SessionInfo, task::TaskState,
};
use bench_store::{BankRow, Checkpoints, RunRow, RunState, Sessions, Store, StoreError};
use serde::Serialize;

/// How far a probe is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Probing {
    /// Recalls that are stored, of all passes.
    pub made: u64,
    /// Recalls to make.
    pub of: u64,
}

/// Whether nothing of a run is left to ask, all of whose questions have ended: neither canaries (P45), nor what banks hold, nor
/// a latency probe. Opens the probe when it has not been; asked again, it changes nothing.
///
/// # Errors
/// What the store meets.
pub(crate) async fn is_over(store: &dyn Store, run: &RunRow) -> Result<bool, StoreError> {
    if run.spec.closes_banks() && !all_closed(store, run).await? {
        return Ok(false);
    }
    if run.spec.limits.latency_probe.is_off() || run.imported || !is_known(store, run).await? {
        return Ok(true);
    }
    Ok(matches!(store.open_probe(run.run_no).await?, TaskState::Done | TaskState::Failed))
}

/// Whether every bank has come to its end, in which its canaries and what it holds are asked for, or was given up.
async fn all_closed(store: &dyn Store, run: &RunRow) -> Result<bool, StoreError> {
    if run.counters.banks_ready >= run.counters.banks_planned {
        return Ok(true);
    }
    let closed = |bank: &BankRow| match bank.state {
        // of a run that has stopped early
        BankState::Building => bank.waits_for_a_look(),
        BankState::Ready => bank.segment as usize + 1 == bank.segments.len(),
        BankState::Failed => true,
    };
    Ok(store.banks(run.run_no, None).await?.iter().all(closed))
}

/// Whether all workers that may take it know what it is: those of an earlier build would look for a question. Where nobody
/// works, it is opened for whoever comes.
async fn is_known(store: &dyn Sessions, run: &RunRow) -> Result<bool, StoreError> {
    if run.domain != CLUSTER_DOMAIN {
        return Ok(true);
    }
    let sessions = store.open_sessions(CLUSTER_DOMAIN).await?;
    let infos = sessions.iter().map(|session| SessionInfo::from_json(&session.info_json));
    let pool = &run.spec.limits.pool;
    Ok(infos.filter(|info| info.slots_of(pool, Role::Question) > 0).all(|info| info.probes))
}

/// How far the probe of a run is; nothing while questions are open, and when there is none.
///
/// # Errors
/// What the store meets.
pub(crate) async fn probing(store: &dyn Checkpoints, run: &RunRow) -> Result<Option<Probing>, StoreError> {
    let of = run.spec.limits.latency_probe.recalls_of(run.sample_size());
    let is_open = matches!(run.state, RunState::Running | RunState::Paused);
    if of == 0 || !is_open || run.imported || !all_ended(run) {
        return Ok(None);
    }
    let steps = store.question_steps(run.run_no, &[TaskKey::PROBE]).await?;
    let made = ProbePart::among(&steps).map(|part| u64::from(part.made())).sum();
    Ok(Some(Probing { made, of }))
}

/// Whether every question has ended that is asked, by the run's counters, and no look comes next; a sweep checks that the counters
/// are right.
pub(crate) fn all_ended(run: &RunRow) -> bool {
    run.has_ended_what_is_due() && !run.look_is_due()
}
