//! `cancel RUN`: ends a run; what was scored stays readable (P23). Of a group of repeats it ends all.

use bench_store::{CANCELLED_NOW, RunRow, RunState, Store};

use crate::{
    app::App,
    cli::CancelArgs,
    exit::{CliError, CliResult, Exit},
    out,
    runs::controls,
    standing::group::find_runs,
};

/// Puts a run and the controls that wait for it into state `cancelled`; exit 2 when it had ended before.
pub(super) async fn run(app: &App, args: &CancelArgs) -> CliResult {
    let store = app.open_store().await?;
    let runs = find_runs(store.as_ref(), &args.run).await?;
    let several = runs.len() > 1;
    for run in runs {
        // repeats that have ended stay what they are
        if !several || matches!(run.state, RunState::Running | RunState::Paused) {
            cancel(store.as_ref(), &run, args.now).await?;
        }
    }
    Ok(Exit::Done)
}

async fn cancel(store: &dyn Store, run: &RunRow, now: bool) -> CliResult {
    let reason = if now { CANCELLED_NOW } else { "cancelled by a user" };
    if store
        .set_run_state(run.run_no, &[RunState::Running, RunState::Paused], RunState::Cancelled, Some(reason))
        .await?
    {
        controls::cancel_waiting(store, run.run_no).await?;
        out::note(&format!(
            "{} is cancelled; `bench-coord report {}` shows what was scored, `resume {} --reopen` goes on all the same",
            run.run_id, run.run_id, run.run_id
        ));
        return Ok(Exit::Done);
    }
    match run.state {
        RunState::Cancelled => {
            out::note(&format!("{} was cancelled already", run.run_id));
            Ok(Exit::Done)
        }
        state => Err(CliError::usage(format!("{} is {}: there is nothing to cancel", run.run_id, state.name()))),
    }
}
