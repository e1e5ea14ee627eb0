//! What a person does to the state of one run: holds it, cancels it.

use bench_proto::ids::RunNo;
use bench_store::{CANCELLED_NOW, RunRow, RunState, Store};

use crate::{
    exit::CliError,
    standing::{FILLER_PAUSED, group::RunsOfGroup},
};

/// Reason of a run that somebody holds.
pub(crate) const PAUSED_BY_USER: &str = "paused by a user";

/// Holds a run that is at work; false where it is not.
///
/// # Errors
/// What the store meets.
pub(crate) async fn pause_one(store: &dyn Store, run: RunNo) -> Result<bool, CliError> {
    Ok(store.set_run_state(run, &[RunState::Running], RunState::Paused, Some(PAUSED_BY_USER)).await?)
}

/// Cancels a run that has not ended, and one that was cancelled before and is to be at once; false where there is nothing to cancel.
///
/// # Errors
/// What the store meets.
pub(crate) async fn cancel_one(store: &dyn Store, run: &RunRow, reason: &str) -> Result<bool, CliError> {
    let again = reason == CANCELLED_NOW && run.reason.as_deref() != Some(CANCELLED_NOW);
    let from: &[RunState] = match again {
        true => &[RunState::Running, RunState::Paused, RunState::Cancelled],
        false => &[RunState::Running, RunState::Paused],
    };
    Ok(store.set_run_state(run.run_no, from, RunState::Cancelled, Some(reason)).await?)
}

/// Lets runs of its group that were paused with a cancelled run, because it was to fill their banks, go on without it.
///
/// # Errors
/// What the store meets.
pub(crate) async fn leave_alone(store: &dyn Store, run: &RunRow) -> Result<(), CliError> {
    let group = RunsOfGroup::around(store, Some(run.clone())).await?;
    for other in group.into_iter().flat_map(|group| group.runs) {
        let waits = other.reason.as_deref().is_some_and(|reason| reason.starts_with(FILLER_PAUSED));
        if waits && other.spec.taken_over.banks_of.contains(&run.run_id.0) {
            let why = Some("the run that was to fill its banks was cancelled");
            store.set_run_state(other.run_no, &[RunState::Paused], RunState::Paused, why).await?;
        }
    }
    Ok(())
}
