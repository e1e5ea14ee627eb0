//! `pause RUN`: holds a run. Its owner sees the changed row within half a second (P21, P23). Of a group of repeats it holds all.

use bench_store::{RunRow, RunState, Runs};

use crate::{
    app::App,
    cli::RunArg,
    exit::{CliError, CliResult, Exit},
    out,
    standing::group::find_runs,
};

/// Puts a run into state `paused`, which its owner reads; exit 2 when it is not running.
pub(super) async fn run(app: &App, args: &RunArg) -> CliResult {
    let store = app.open_store().await?;
    let runs = find_runs(store.as_ref(), &args.run).await?;
    let several = runs.len() > 1;
    for run in runs {
        // repeats that are not running stay what they are
        if !several || run.state == RunState::Running {
            pause(store.as_ref(), &run).await?;
        }
    }
    Ok(Exit::Done)
}

async fn pause(store: &dyn Runs, run: &RunRow) -> CliResult {
    if store.set_run_state(run.run_no, &[RunState::Running], RunState::Paused, Some("paused by a user")).await? {
        out::note(&format!(
            "{} is paused; calls in flight finish; `bench-coord resume {}` goes on",
            run.run_id, run.run_id
        ));
        return Ok(Exit::Done);
    }
    match run.state {
        RunState::Paused => {
            out::note(&format!("{} was paused already", run.run_id));
            Ok(Exit::Done)
        }
        state => Err(CliError::usage(format!("{} is {}: only a running run can be paused", run.run_id, state.name()))),
    }
}
