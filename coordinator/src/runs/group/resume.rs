//! A group goes on where it stopped: each of its runs that has not ended does.

use std::{collections::BTreeMap, sync::Arc};

use bench_proto::ids::RunNo;
use bench_store::{Right, RunRow, RunState, Store};

use super::{
    ending,
    execution::{GroupExecution, Taken, to_the_end},
};
use crate::{
    app::{App, Deployment},
    cli::ResumeArgs,
    exit::{CliError, CliResult},
    out,
    runs::{
        controls, elsewhere,
        resume::{NewLimits, change_limits, make_ready, release_uncertain},
        start::check_detach,
        taking_up::take_up,
    },
    standing::{Standing, group::RunsOfGroup},
};

/// What a command says of one run of a group, where each has flags of its own: the cells of a matrix.
pub(super) struct OfCell {
    /// The limits that it goes on with.
    pub(super) limits: NewLimits,
    /// The settings of its command line, where it has one.
    pub(super) app: Option<Arc<App>>,
}

/// The same of all of them; a run that is not among them goes on as the flags of the command say.
pub(super) type OfCells = BTreeMap<RunNo, OfCell>;

/// Goes on with a group, or prints the result of one that has ended.
///
/// # Errors
/// Exit 2 when another process owns one of its runs, or one was cancelled without `--reopen`.
pub(crate) async fn resume(app: &App, store: &Arc<dyn Store>, group: RunsOfGroup, args: &ResumeArgs) -> CliResult {
    go_on(app, store, group, args, &OfCells::new()).await
}

/// The same of a group whose runs have flags of their own.
///
/// # Errors
/// As [`resume`].
pub(super) async fn go_on(
    app: &App,
    store: &Arc<dyn Store>,
    group: RunsOfGroup,
    args: &ResumeArgs,
    cells: &OfCells,
) -> CliResult {
    let deployment = app.deployment()?;
    check_detach(args.detach, deployment)?;
    if args.no_stop {
        return Err(CliError::usage("--no-stop: the runs of a group ask all of their questions anyway; leave it out"));
    }
    if args.release_uncertain {
        store.may(Right::Results).await?;
    }
    let first = group.runs.first().ok_or_else(|| CliError::infrastructure(format!("group {} is gone", group.id)))?;
    let mut controls = controls::going_on(store.as_ref(), first.run_no, args.reopen).await?;
    let mut taken = open_runs(app, store, &group, args, cells).await?;
    let limits = NewLimits::from_flags(app, &args.limits);
    if first.state == RunState::Finished && !controls.is_empty() {
        // its report is made anew when they have ended
        let (executor, planner) = make_ready(app, store.as_ref(), first, &NewLimits::default()).await?;
        taken.insert(0, Taken { run: first.clone(), executor, planner, app: None });
    }
    for control in &controls {
        change_limits(store.as_ref(), control, &limits).await?;
    }
    if args.release_uncertain {
        let ours: Vec<RunNo> = taken.iter().map(|one| one.run.run_no).collect();
        release_uncertain(app, store.as_ref(), &group.runs, &ours).await?;
    }
    if taken.is_empty() && controls.is_empty() {
        return ending::show(app, store.as_ref(), &group.id, None, &args.output).await;
    }
    controls::reopen(store.as_ref(), &mut controls).await?;
    if deployment == Deployment::Cluster {
        controls::start_beside(store.as_ref(), first, &controls).await?;
    }
    let more: &[RunState] = if args.reopen { &[RunState::Cancelled] } else { &[] };
    take_up_all(store, &mut taken, more).await?;
    let (all, ended) = group.questions();
    out::note(&format!("group {}: {} of {all} questions to go", group.id, all.saturating_sub(ended)));
    let runs: Vec<&RunRow> = taken.iter().map(|one| &one.run).collect();
    elsewhere::tell(app, store.as_ref(), &runs).await?;
    let (output, detach) = (&args.output, args.detach);
    to_the_end(GroupExecution { app, store, group: &group, planned: None, output, detach }, taken).await
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
    cells: &OfCells,
) -> Result<Vec<Taken>, CliError> {
    let mut taken = Vec::new();
    for run in group.runs.iter().filter(|run| run.state != RunState::Finished) {
        if run.state == RunState::Cancelled && !args.reopen {
            let advice = Standing::Cancelled.advice(&group.id).unwrap_or_default();
            return Err(CliError::usage(format!("{}: {advice}", run.run_id)));
        }
        let of_cell = cells.get(&run.run_no);
        let own = of_cell.and_then(|of| of.app.clone());
        let limits = of_cell.map_or_else(|| NewLimits::from_flags(app, &args.limits), |of| of.limits.clone());
        let (executor, planner) = make_ready(own.as_deref().unwrap_or(app), store.as_ref(), run, &limits).await?;
        taken.push(Taken { run: run.clone(), executor, planner, app: own });
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
        let more = if one.run.state == RunState::Finished { &[RunState::Finished][..] } else { more };
        // in a cluster a run that runs goes on without anybody's help
        if one.run.state != RunState::Running || !one.executor.is_cluster() {
            let _theirs = take_up(store.as_ref(), &one.run, more).await?;
        }
        one.run = store.run(one.run.run_no).await?;
    }
    Ok(())
}
