//! `cancel RUN`: ends a run; what was scored stays readable (P23).

use bench_store::{CANCELLED_NOW, RunState};

use crate::{
    app::App,
    cli::CancelArgs,
    exit::{CliError, CliResult, Exit},
    out,
    runs::controls,
    standing::find_run,
};

/// Puts a run and the controls that wait for it into state `cancelled`; exit 2 when it had ended before.
pub(super) async fn run(app: &App, args: &CancelArgs) -> CliResult {
    let store = app.open_store().await?;
    let run = find_run(store.as_ref(), &args.run).await?;
    let reason = if args.now { CANCELLED_NOW } else { "cancelled by a user" };
    if store
        .set_run_state(run.run_no, &[RunState::Running, RunState::Paused], RunState::Cancelled, Some(reason))
        .await?
    {
        controls::cancel_waiting(store.as_ref(), run.run_no).await?;
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
