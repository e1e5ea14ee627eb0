//! `retry RUN`: repeats what failed or never ran, and keeps everything else.

use bench_store::{RetryScope, Right, RunState};

use crate::{
    app::App,
    cli::RetryArgs,
    exit::{CliError, CliResult},
    out,
    results::{check_writable, run_folder},
    runs::{
        ending::finish,
        execution::Execution,
        executor::RunExecutor,
        resume::{go_on, planner_if_missing},
        takers::check_allowed,
    },
    standing::{check_banks, check_whole, find_run},
};

/// Opens the failed questions of a run again, executes them, and prints the result.
pub(super) async fn run(app: &App, args: &RetryArgs) -> CliResult {
    let store = app.open_store().await?;
    let run = find_run(store.as_ref(), &args.run).await?;
    if run.imported {
        return Err(CliError::usage(format!("{} was imported: there is nothing that could be repeated", run.run_id)));
    }
    store.may(Right::Results).await?;
    check_whole(store.as_ref(), &run).await?;
    check_allowed(app, store.as_ref(), &run).await?;
    check_banks(store.as_ref(), &run).await?;
    let folder = args.output.output_dir.as_deref();
    check_writable(&run_folder(app, &run.run_id, folder))?;
    app.check_run_accounts(&run.spec)?;
    let executor = RunExecutor::for_run(app, &run.run_id)?;
    executor.check_domain(&run)?;
    if run.state == RunState::Running && executor.is_cluster() {
        return Err(CliError::usage(format!(
            "{0} is running: wait for it with `bench-coord watch {0}`, or `bench-coord pause {0}` first",
            run.run_id
        )));
    }
    let scope = if args.errors { RetryScope::Errors } else { RetryScope::ErrorsAndNotRun };
    if run.state == RunState::Running {
        store.close_lost_interval(run.run_no).await?;
        store.set_run_state(run.run_no, &[RunState::Running], RunState::Paused, Some("interrupted")).await?;
    }
    let reopened = store.reopen(run.run_no, scope).await?;
    if reopened == 0 && run.state == RunState::Finished {
        out::note(&format!("{} has nothing to repeat", run.run_id));
        return finish(app, store.as_ref(), run.run_no, args.output.json, folder).await;
    }
    out::note(&format!("{reopened} questions are repeated"));
    let from = [RunState::Paused, RunState::Cancelled, RunState::Finished];
    if !store.set_run_state(run.run_no, &from, RunState::Running, None).await? {
        return Err(CliError::usage(format!("{} was changed by somebody else just now; try again", run.run_id)));
    }
    let planner = planner_if_missing(app, store.as_ref(), &run).await?;
    let execution = Execution { app, store: &store, run: &run, executor: &executor, planner, planned: None };
    go_on(execution, false, &args.output).await
}
