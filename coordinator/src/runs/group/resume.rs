//! A group goes on where it stopped: each of its runs that has not ended does.

use std::sync::Arc;

use bench_store::{RunRow, RunState, Store};

use super::{
    ending,
    execution::{self, Taken},
};
use crate::{
    app::App,
    cli::ResumeArgs,
    exit::{CliError, CliResult},
    out,
    runs::{
        controls, elsewhere,
        resume::{make_ready, take_up},
        start::check_detach,
    },
    standing::{Standing, group::RunsOfGroup},
};

/// Goes on with a group, or prints the result of one that has ended.
///
/// # Errors
/// Exit 2 when another process owns one of its runs, or one was cancelled without `--reopen`.
pub(crate) async fn resume(app: &App, store: &Arc<dyn Store>, group: RunsOfGroup, args: &ResumeArgs) -> CliResult {
    check_detach(args.detach, app.deployment()?)?;
    if args.no_stop {
        return Err(CliError::usage("--no-stop: the runs of a group ask all of their questions anyway; leave it out"));
    }
    let mut taken = open_runs(app, store, &group, args).await?;
    let first = group.runs.first().ok_or_else(|| CliError::infrastructure(format!("group {} is gone", group.id)))?;
    let controls = controls::not_ended(store.as_ref(), first.run_no).await?;
    if taken.is_empty() && controls.is_empty() {
        return ending::show(app, store.as_ref(), &group.id, None, &args.output).await;
    }
    let more: &[RunState] = if args.reopen { &[RunState::Cancelled] } else { &[] };
    take_up_all(store, &mut taken, more).await?;
    let (all, ended) = group.questions();
    out::note(&format!("group {}: {} of {all} questions to go", group.id, all.saturating_sub(ended)));
    let runs: Vec<&RunRow> = taken.iter().map(|one| &one.run).collect();
    elsewhere::tell(app, store.as_ref(), &runs).await?;
    execution::to_the_end(app, store, &group, taken, (None, &args.output, args.detach)).await
}

/// The runs of a group that have not ended, each ready to go on; nothing of them is changed but limits.
///
/// # Errors
/// Exit 2 as [`resume`].
pub(super) async fn open_runs(
    app: &App,
    store: &Arc<dyn Store>,
    group: &RunsOfGroup,
    args: &ResumeArgs,
) -> Result<Vec<Taken>, CliError> {
    let mut taken = Vec::new();
    for run in group.runs.iter().filter(|run| run.state != RunState::Finished) {
        if run.state == RunState::Cancelled && !args.reopen {
            let advice = Standing::Cancelled.advice(&group.id).unwrap_or_default();
            return Err(CliError::usage(format!("{}: {advice}", run.run_id)));
        }
        let (executor, planner) = make_ready(app, store.as_ref(), run, args).await?;
        taken.push(Taken { run: run.clone(), executor, planner, app: None });
    }
    Ok(taken)
}

/// Puts runs into state `running`, also from the states in `more`.
///
/// # Errors
/// What the store meets.
pub(super) async fn take_up_all(
    store: &Arc<dyn Store>,
    taken: &mut [Taken],
    more: &[RunState],
) -> Result<(), CliError> {
    for one in taken {
        // in a cluster a run that runs goes on without anybody's help
        if one.run.state != RunState::Running || !one.executor.is_cluster() {
            let _theirs = take_up(store.as_ref(), &one.run, more).await?;
        }
        one.run = store.run(one.run.run_no).await?;
    }
    Ok(())
}
