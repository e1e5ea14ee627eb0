//! `retry RUN`: repeats what failed or never ran, and keeps everything else.

use bench_store::{RetryScope, Right, RunState};

use super::{gc, resume};
use crate::{
    app::App,
    cli::{LimitArgs, ResumeArgs, RetryArgs},
    executor::RunExecutor,
    exit::{CliError, CliResult},
    out, results,
    runs::{check_whole, find_run},
};

/// Runs the verb.
pub(super) async fn run(app: &App, args: &RetryArgs) -> CliResult {
    let store = app.open_store().await?;
    let run = find_run(store.as_ref(), &args.run).await?;
    if run.imported {
        return Err(CliError::usage(format!("{} was imported: there is nothing that could be repeated", run.run_id)));
    }
    store.may(Right::Results).await?;
    check_whole(store.as_ref(), &run).await?;
    app.check_allowed(store.as_ref(), &run).await?;
    gc::check_banks(store.as_ref(), &run).await?;
    let resume_args = ResumeArgs {
        run: run.run_id.0.clone(),
        limits: LimitArgs::default(),
        release_uncertain: false,
        reopen: !args.errors,
        detach: false,
        output: args.output.clone(),
    };
    let folder = resume::run_folder(app, &run, args.output.output_dir.as_ref());
    results::check_writable(&folder)?;
    app.check_run_accounts(&run.spec)?;
    let executor = RunExecutor::of(app, &run.run_id)?;
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
        return results::finish(app, store.as_ref(), run.run_no, args.output.json, args.output.output_dir.as_deref())
            .await;
    }
    out::note(&format!("{reopened} questions are repeated"));
    let from = [RunState::Paused, RunState::Cancelled, RunState::Finished];
    if !store.set_run_state(run.run_no, &from, RunState::Running, None).await? {
        return Err(CliError::usage(format!("{} was changed by somebody else just now; try again", run.run_id)));
    }
    let planner = resume::planner_if_missing(app, store.as_ref(), &run).await?;
    resume::go_on(app, store, &run, &executor, planner, &resume_args, &folder).await
}
