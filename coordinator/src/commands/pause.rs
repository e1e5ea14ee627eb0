//! `pause RUN`: holds a run and its controls. Whoever executes them sees the changed rows within half a second (P21, P23). Of a group of
//! repeats it holds all.

use bench_store::{RunRow, RunState, Store};

use crate::{
    app::App,
    cli::RunArg,
    exit::{CliError, CliResult, Exit},
    out,
    runs::controls::{self, PAUSED_BY_USER},
    standing::group::find_runs,
};

/// Puts a run and its controls that are at work into state `paused`, which their owner reads; exit 2 when none is running.
pub(super) async fn run(app: &App, args: &RunArg) -> CliResult {
    let store = app.open_store().await?;
    let runs = find_runs(store.as_ref(), &args.run).await?;
    let several = runs.len() > 1;
    for run in runs {
        pause(store.as_ref(), &run, several).await?;
    }
    Ok(Exit::Done)
}

/// Holds a run; of `several`, those that are not running stay what they are.
async fn pause(store: &dyn Store, run: &RunRow, several: bool) -> CliResult {
    let reason = Some(PAUSED_BY_USER);
    let is_paused = store.set_run_state(run.run_no, &[RunState::Running], RunState::Paused, reason).await?;
    let controls = controls::pause(store, run.run_no).await?;
    let id = &run.run_id;
    let what = match (is_paused, controls) {
        (true, None) => format!("{id} is"),
        (true, Some(controls)) => format!("{id} is paused, and {controls}"),
        (false, Some(controls)) => format!("{id} is {}; {controls}", run.state.name()),
        (false, None) if several => return Ok(Exit::Done),
        (false, None) if run.state == RunState::Paused => {
            out::note(&format!("{id} was paused already"));
            return Ok(Exit::Done);
        }
        (false, None) => {
            let state = run.state.name();
            return Err(CliError::usage(format!("{id} is {state}: only a running run can be paused")));
        }
    };
    out::note(&format!("{what} paused; calls in flight finish; `bench-coord resume {id}` goes on"));
    Ok(Exit::Done)
}
