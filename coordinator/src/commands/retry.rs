//! `retry RUN`: repeats what failed or never ran, and keeps everything else.

use bench_store::{RetryScope, RunState};

use super::{resume, submit::lock};
use crate::{
    app::App,
    cli::{ResumeArgs, RetryArgs},
    exit::{CliError, CliResult},
    out, results,
    runs::find_run,
};

/// Runs the verb.
pub(super) async fn run(app: &App, args: &RetryArgs) -> CliResult {
    let store = app.open_store().await?;
    let run = find_run(store.as_ref(), &args.run).await?;
    if run.imported {
        return Err(CliError::usage(format!("{} was imported: there is nothing that could be repeated", run.run_id)));
    }
    let resume_args = ResumeArgs {
        run: run.run_id.0.clone(),
        max_cost: None,
        max_cost_per_day: None,
        release_uncertain: false,
        max_rpm: None,
        max_tpm: None,
        concurrency: None,
        retries: None,
        reopen: !args.errors,
        json: args.json,
        display: args.display,
        output_dir: args.output_dir.clone(),
    };
    let folder = resume::run_folder(app, &run, args.output_dir.as_ref());
    results::check_writable(&folder)?;
    app.check_run_accounts(&run.spec)?;
    let lock_held = lock(app, &run.run_id)?;
    let scope = if args.errors { RetryScope::Errors } else { RetryScope::ErrorsAndNotRun };
    if run.state == RunState::Running {
        store.close_lost_interval(run.run_no).await?;
        store.set_run_state(run.run_no, &[RunState::Running], RunState::Paused, Some("interrupted")).await?;
    }
    let reopened = store.reopen(run.run_no, scope).await?;
    if reopened == 0 && run.state == RunState::Finished {
        out::note(&format!("{} has nothing to repeat", run.run_id));
        return results::finish(app, store.as_ref(), run.run_no, args.json, args.output_dir.as_deref()).await;
    }
    out::note(&format!("{reopened} questions are repeated"));
    let from = [RunState::Paused, RunState::Cancelled, RunState::Finished];
    if !store.set_run_state(run.run_no, &from, RunState::Running, None).await? {
        return Err(CliError::usage(format!("{} was changed by somebody else just now; try again", run.run_id)));
    }
    let planner = if run.planned { None } else { Some(resume::planner_of(app, store.as_ref(), &run).await?) };
    resume::go_on(app, store, &run, &lock_held, planner, &resume_args, &folder).await
}
