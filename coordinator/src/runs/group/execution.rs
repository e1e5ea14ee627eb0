//! The runs of a group from state `running` to their rest, interleaved in time.

use std::sync::Arc;

use bench_store::{RunRow, RunState, Store};
use futures::{FutureExt as _, StreamExt as _, future::join_all, stream};
use tokio_util::sync::CancellationToken;

use super::ending;
use crate::{
    app::{App, Deployment},
    cli::{Display, OutputArgs},
    display,
    exit::{CliError, CliResult},
    out,
    planning::{PlannedRun, planner::Planner},
    runs::{
        client::{Following, INCOMPLETE, spawn_planner},
        controls,
        execution::plan_fully,
        executor::{RunExecutor, Watching},
        local::hold,
        missing_plan::planner_if_missing,
        rest::{RunEnd, left_running},
    },
    standing::group::RunsOfGroup,
};

/// Runs that one process executes at the same time; of more the next begins when one is at rest. What differs between repeats, or
/// between cells of a matrix, must not be the hour at which they were asked.
const AT_ONCE: usize = 32;

/// A run of a group that somebody is about to execute.
pub(super) struct Taken {
    /// In state `running`.
    pub(super) run: RunRow,
    /// Who executes it; of a local run it holds the lock.
    pub(super) executor: RunExecutor,
    /// What writes its plan, where somebody has to.
    pub(super) planner: Option<Planner>,
    /// The settings of its own command line, where it has one: a cell of a matrix.
    pub(super) app: Option<Arc<App>>,
}

/// A group that is about to be executed, and what its command says of that.
pub(super) struct GroupExecution<'a> {
    pub(super) app: &'a App,
    pub(super) store: &'a Arc<dyn Store>,
    pub(super) group: &'a RunsOfGroup,
    /// The plan of the measured run, where this process has made it.
    pub(super) planned: Option<&'a PlannedRun>,
    pub(super) output: &'a OutputArgs,
    /// Whether the command returns at once.
    pub(super) detach: bool,
}

/// Executes the runs, or looks on while a cluster does, and says what came of them.
pub(super) async fn to_the_end(execution: GroupExecution<'_>, taken: Vec<Taken>) -> CliResult {
    let GroupExecution { app, store, group, planned, output, detach } = execution;
    let Some(first) = group.runs.first() else {
        return ending::show(app, store.as_ref(), &group.id, None, output).await;
    };
    let is_cluster = app.deployment()? == Deployment::Cluster;
    let plans_of_controls = match is_cluster {
        true => controls::plan_missing(app, store, first.run_no, planned).await?,
        false => Vec::new(),
    };
    let interrupts = app.interrupts();
    if detach {
        let written = plan_all(app, store, taken).await;
        if !matches!(written, Ok(true)) {
            controls::leave(plans_of_controls).await;
            return Err(written.err().unwrap_or_else(|| left_running(&group.id, INCOMPLETE)));
        }
        if !controls::planned(plans_of_controls, &interrupts.stop).await? {
            return Err(left_running(&group.id, INCOMPLETE));
        }
        return detached(group, output.json);
    }
    let stop = CancellationToken::new();
    let all = group.runs.iter().map(|run| run.run_no).collect();
    let progress = display::follow_all(Arc::clone(store), all, output.display, stop.clone());
    let ended = match is_cluster {
        true => follow(app, store, taken, output).await,
        false => execute(app, store, taken, output).await,
    };
    stop.cancel();
    let _ = progress.await;
    let mut left = match ended {
        Ok(left) => left,
        Err(error) => {
            controls::leave(plans_of_controls).await;
            return Err(error);
        }
    };
    if !controls::planned(plans_of_controls, &interrupts.now).await? && left.is_some() {
        left = Some(INCOMPLETE.to_owned());
    }
    // who leaves begins no controls
    if !is_cluster && !interrupts.stop.is_cancelled() {
        let first = store.run(first.run_no).await?;
        if first.state == RunState::Finished {
            controls::execute(app, store, &first, planned, &Watching::new(output, &interrupts)).await?;
        }
    }
    match ending::show(app, store.as_ref(), &group.id, left, output).await {
        // a store that is away does not keep who leaves
        Err(error) if interrupts.now.is_cancelled() && error.is_transient() => {
            Err(CliError::resumable(format!("interrupted; `bench-coord resume {}` goes on", group.id)))
        }
        shown => shown,
    }
}

/// Executes the runs in this process, as many at once as it has room for. All of them come to rest before an error is told.
async fn execute(
    app: &App,
    store: &Arc<dyn Store>,
    taken: Vec<Taken>,
    output: &OutputArgs,
) -> Result<Option<String>, CliError> {
    let interrupts = app.interrupts();
    let at_once = taken.len().clamp(1, AT_ONCE);
    if let Some(words) = one_after_the_other(taken.len()) {
        out::note(&words);
    }
    let watching = Watching { display: Display::None, at_once, ..Watching::new(output, &interrupts) };
    let watching = &watching;
    let runs: Vec<_> = taken.into_iter().map(|taken| own(app, store, taken, watching)).collect();
    let ends: Vec<Result<RunEnd, CliError>> = stream::iter(runs).buffer_unordered(at_once).collect().await;
    ends.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(None)
}

/// Says of more runs than are executed at the same time that they are not.
fn one_after_the_other(runs: usize) -> Option<String> {
    (runs > AT_ONCE).then(|| {
        format!(
            "{AT_ONCE} of these {runs} runs are executed at the same time, each further one begins when another has ended: a provider \
             that drifts does not meet all of them alike; a cluster executes all at once"
        )
    })
}

/// Executes one of the runs; holds it where its turn did not come.
async fn own(
    app: &App,
    store: &Arc<dyn Store>,
    Taken { run, executor, planner, app: own }: Taken,
    watching: &Watching<'_>,
) -> Result<RunEnd, CliError> {
    if watching.interrupts.stop.is_cancelled() {
        return hold(store.as_ref(), run.run_no, watching.interrupts).await;
    }
    executor.execute(own.as_deref().unwrap_or(app), store, &run, planner, watching).await
}

/// Writes the rest of all plans beside each other; false when the person leaves before that.
async fn plan_all(app: &App, store: &Arc<dyn Store>, taken: Vec<Taken>) -> Result<bool, CliError> {
    let plans = join_all(taken.into_iter().map(|one| plan(app, store, one))).await;
    let written = plans.into_iter().collect::<Result<Vec<bool>, _>>()?;
    Ok(written.into_iter().all(|written| written))
}

/// The same of one of the runs.
async fn plan(
    app: &App,
    store: &Arc<dyn Store>,
    Taken { run, planner, app: own, .. }: Taken,
) -> Result<bool, CliError> {
    plan_fully(own.as_deref().unwrap_or(app), store, run.run_no, planner).await
}

/// Looks on while a cluster executes the runs; why this process left before their end, where it did.
async fn follow(
    app: &App,
    store: &Arc<dyn Store>,
    taken: Vec<Taken>,
    output: &OutputArgs,
) -> Result<Option<String>, CliError> {
    let interrupts = app.interrupts();
    let watching = Watching::new(output, &interrupts);
    let following = Following::new(store, taken.len(), watching.worker_timeout, &interrupts);
    // all plans are written beside each other: the dispatcher shares its room between runs that have something to give
    let ends = following.side_by_side(taken.into_iter().map(|one| followed(app, store, &following, one))).await?;
    let mut left: Vec<String> = Vec::new();
    for end in ends {
        if let RunEnd::LeftRunning { reason } = end
            && !left.contains(&reason)
        {
            left.push(reason);
        }
    }
    Ok((!left.is_empty()).then(|| left.join("; ")))
}

/// Looks on while a cluster executes one of the runs, and writes its plan.
async fn followed(
    app: &App,
    store: &Arc<dyn Store>,
    following: &Following<'_>,
    Taken { run, planner, app: own, .. }: Taken,
) -> Result<RunEnd, CliError> {
    let app = own.as_deref().unwrap_or(app);
    let planning = planner.map(|planner| spawn_planner(Arc::clone(store), planner));
    following
        .follow(&run, planning, &|row| async move { planner_if_missing(app, store.as_ref(), &row).await }.boxed())
        .await
}

/// Says what a person needs to come back to a group.
fn detached(group: &RunsOfGroup, json: bool) -> CliResult {
    if json {
        let runs: Vec<&str> = group.runs.iter().map(|run| run.run_id.0.as_str()).collect();
        out::json(&serde_json::json!({"id": group.id, "status": "running", "runs": runs}));
    } else {
        out::result(&group.id.to_string());
    }
    Err(left_running(&group.id, "detached"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_repeats_run_at_the_same_time_and_more_than_there_is_room_for_are_told() {
        assert_eq!((one_after_the_other(10), one_after_the_other(32)), (None, None));
        let words = one_after_the_other(40).expect("more than 32");
        assert!(
            words.starts_with("32 of these 40 runs") && words.contains("does not meet all of them alike"),
            "{words}"
        );
    }
}
