//! `retry RUN`: repeats what failed or never ran, and keeps everything else; of a group in each of its runs.

use std::sync::Arc;

use bench_store::{RetryScope, Right, RunRow, RunState, Store};

use crate::{
    app::App,
    cli::{LimitArgs, ResumeArgs, RetryArgs},
    exit::{CliError, CliResult},
    out,
    planning::filled::paused_filler,
    results::check_run_folder,
    runs::{
        ending::finish,
        execution::Execution,
        executor::RunExecutor,
        group::resume::resume,
        missing_plan::planner_if_missing,
        resume::{check_goes_on, go_on},
        taking_up::{pause_interrupted, take_up},
    },
    standing::{find_run, group::RunsOfGroup},
};

/// Opens the failed questions of a run again, executes them, and prints the result.
pub(super) async fn run(app: &App, args: &RetryArgs) -> CliResult {
    let store = app.open_store().await?;
    store.may(Right::Results).await?;
    if let Some(group) = RunsOfGroup::find(store.as_ref(), &args.run).await? {
        return of_group(app, args, &store, group).await;
    }
    let run = find_run(store.as_ref(), &args.run).await?;
    check(app, store.as_ref(), &run).await?;
    let folder = args.output.output_dir.as_deref();
    check_run_folder(app, &run.run_id, folder)?;
    app.check_run_accounts(&run.spec)?;
    let executor = RunExecutor::for_run(app, &run.run_id)?;
    executor.check_domain(&run)?;
    if run.state == RunState::Running && executor.is_cluster() {
        return Err(CliError::usage(format!(
            "{0} is running: wait for it with `bench-coord watch {0}`, or `bench-coord pause {0}` first",
            run.run_id
        )));
    }
    if let Some(why) = paused_filler(store.as_ref(), &run).await? {
        return Err(CliError::usage(format!("{}: {why}", run.run_id)));
    }
    let planner = planner_if_missing(app, store.as_ref(), &run).await?;
    pause_interrupted(store.as_ref(), &run).await?;
    let reopened = store.reopen(run.run_no, scope(args)).await?;
    if reopened == 0 && run.state == RunState::Finished {
        out::note(&format!("{} has nothing to repeat", run.run_id));
        return finish(app, store.as_ref(), run.run_no, args.output.json, folder).await;
    }
    out::note(&format!("{reopened} questions are repeated"));
    // what had ended is paused by now, but for a cancelled run of which nothing was opened
    if !take_up(store.as_ref(), &run, &[RunState::Cancelled]).await? {
        return Err(CliError::usage(format!("{} was changed by somebody else just now; try again", run.run_id)));
    }
    let execution = Execution { app, store: &store, run: &run, executor: &executor, planner, planned: None };
    go_on(execution, false, &args.output).await
}

fn scope(args: &RetryArgs) -> RetryScope {
    if args.errors { RetryScope::Errors } else { RetryScope::ErrorsAndNotRun }
}

/// Refuses a run of which nothing can be repeated.
async fn check(app: &App, store: &dyn Store, run: &RunRow) -> Result<(), CliError> {
    if run.imported {
        return Err(CliError::usage(format!("{} was imported: there is nothing that could be repeated", run.run_id)));
    }
    check_goes_on(app, store, run).await
}

/// Opens what failed in each run of a group, and goes on with the group.
async fn of_group(app: &App, args: &RetryArgs, store: &Arc<dyn Store>, group: RunsOfGroup) -> CliResult {
    for run in &group.runs {
        check(app, store.as_ref(), run).await?;
        app.check_run_accounts(&run.spec)?;
        RunExecutor::for_run(app, &run.run_id)?.check_domain(run)?;
        if !matches!(run.state, RunState::Finished | RunState::Cancelled) {
            return Err(CliError::usage(format!(
                "{} of group {} has not ended: `bench-coord resume {1}` goes on with it, then repeat what failed",
                run.run_id, group.id
            )));
        }
    }
    let mut reopened = 0;
    for run in &group.runs {
        // pauses each of which something is opened: whoever kills this leaves what `resume` goes on with
        reopened += store.reopen(run.run_no, scope(args)).await?;
    }
    out::note(&match reopened {
        0 => format!("group {} has nothing to repeat", group.id),
        reopened => format!("{reopened} questions are repeated"),
    });
    let id = group.id.0.clone();
    let group = RunsOfGroup::find(store.as_ref(), &id).await?.unwrap_or(group);
    let again = ResumeArgs {
        run: id,
        limits: LimitArgs::default(),
        release_uncertain: false,
        reopen: true,
        no_stop: false,
        dataset_path: None,
        allow_modified_dataset: false,
        detach: false,
        output: args.output.clone(),
    };
    resume(app, store, group, &again).await
}
