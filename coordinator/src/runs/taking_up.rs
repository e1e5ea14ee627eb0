//! A run that nobody works on is put into state `running` again.

use bench_store::{RunRow, RunState, Store};

use crate::{exit::CliError, planning::accounts};

/// States from which a run goes on by itself.
const RESUMABLE: [RunState; 2] = [RunState::Running, RunState::Paused];

/// Puts a run that nobody works on into state `running`, from the states of [`RESUMABLE`] and `more`; false when somebody else
/// has brought it to another state just now.
///
/// # Errors
/// What the store meets.
pub(crate) async fn take_up(store: &dyn Store, run: &RunRow, more: &[RunState]) -> Result<bool, CliError> {
    pause_interrupted(store, run).await?;
    store.release_holds(run.run_no, &accounts(&run.spec)).await?;
    let from: Vec<RunState> = RESUMABLE.iter().chain(more).copied().collect();
    Ok(store.set_run_state(run.run_no, &from, RunState::Running, None).await?)
}

/// Pauses a run whose owner was killed, as of its last result: the lock is ours, so nobody else can be at work.
///
/// # Errors
/// What the store meets.
pub(crate) async fn pause_interrupted(store: &dyn Store, run: &RunRow) -> Result<(), CliError> {
    if run.state == RunState::Running {
        store.close_lost_interval(run.run_no).await?;
        store.set_run_state(run.run_no, &[RunState::Running], RunState::Paused, Some("interrupted")).await?;
    }
    Ok(())
}
