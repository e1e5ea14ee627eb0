//! A run that was put into state `running`, with the controls that go with it, from there to its rest.

use std::{sync::Arc, time::Duration};

use bench_proto::ids::RunNo;
use bench_store::{RunRow, Store};

use crate::{
    app::App,
    cli::OutputArgs,
    exit::{CliError, CliResult},
    out,
    planning::{PlannedRun, planner::Planner},
    runs::{
        account_watch::AccountWatch,
        client::{INCOMPLETE, Planning, renewals_of_planners, spawn_planner},
        controls,
        executor::{RunExecutor, Watching},
        missing_plan::planner_if_missing,
        rest::{RunEnd, detached, left_running},
    },
};

/// How often a plan that another process writes is looked at.
const LOOK_AT_PLAN: Duration = Duration::from_millis(250);

/// A run that is about to be executed.
pub(crate) struct Execution<'a> {
    /// Settings of this process.
    pub app: &'a App,
    /// Where the run and its results are kept.
    pub store: &'a Arc<dyn Store>,
    /// The run, in state `running`.
    pub run: &'a RunRow,
    /// Who executes it.
    pub executor: &'a RunExecutor,
    /// What writes its plan, where somebody has to.
    pub planner: Option<Planner>,
    /// What it was planned from, when that was in this process: its controls need no second reading of the dataset.
    pub planned: Option<&'a PlannedRun>,
}

impl Execution<'_> {
    /// Executes the run until it is at rest, or looks on while a cluster does; in this process its controls follow it.
    ///
    /// # Errors
    /// What that meets; everything stays resumable.
    pub(crate) async fn execute_to_rest(self, output: &OutputArgs) -> Result<RunEnd, CliError> {
        let plans_of_controls = self.plans_of_controls().await?;
        let Self { app, store, run, executor, planner, planned } = self;
        let interrupts = app.interrupts();
        let watching = Watching::new(output, &interrupts);
        let watch = match executor.is_cluster() {
            true => None,
            false => AccountWatch::begin(app, store.as_ref(), run).await?,
        };
        let end = match executor.execute(app, store, run, planner, &watching).await {
            Ok(end) => end,
            Err(error) => {
                controls::leave(plans_of_controls).await;
                return Err(error);
            }
        };
        if let Some(watch) = watch {
            let told = watch.end(store.as_ref(), run, end == RunEnd::Finished).await;
            // a store that is away does not keep who leaves
            if !(interrupts.now.is_cancelled() && told.as_ref().is_err_and(CliError::is_transient)) {
                told?;
            }
        }
        tracing::debug!("run at rest");
        if !controls::planned(plans_of_controls, &interrupts.now).await? && matches!(end, RunEnd::LeftRunning { .. }) {
            return Ok(RunEnd::LeftRunning { reason: INCOMPLETE.to_owned() });
        }
        if end == RunEnd::Finished && !executor.is_cluster() {
            controls::execute(app, store, run, planned, &watching).await?;
        }
        Ok(end)
    }

    /// Leaves the run to a cluster (`--detach`) as soon as nothing is undone that only this client can do: all plans are written, or
    /// another client writes what is left.
    ///
    /// # Errors
    /// Exit 3 with the way back to the run, always; before that what writing the plans meets.
    pub(crate) async fn leave_to_cluster(self, json: bool) -> CliResult {
        let plans_of_controls = self.plans_of_controls().await?;
        let interrupts = self.app.interrupts();
        let written = plan_fully(self.app, self.store, self.run.run_no, self.planner).await;
        if !matches!(written, Ok(true)) {
            controls::leave(plans_of_controls).await;
            return Err(written.err().unwrap_or_else(|| left_running(&self.run.run_id, INCOMPLETE)));
        }
        if !controls::planned(plans_of_controls, &interrupts.stop).await? {
            return Err(left_running(&self.run.run_id, INCOMPLETE));
        }
        detached(self.run, json)
    }

    /// In a cluster a control may begin when nobody looks on any more: its plan is written beside that of the run.
    async fn plans_of_controls(&self) -> Result<Vec<Planning>, CliError> {
        match self.executor.is_cluster() {
            true => controls::plan_missing(self.app, self.store, self.run.run_no, self.planned).await,
            false => Ok(Vec::new()),
        }
    }
}

/// Writes the rest of a run's plan, or waits for whoever does, and takes over when that one is gone; false when the person leaves before
/// that. What other runs are about to fill is not waited for: a client that is there for that is left to it, and without one the run
/// fills it too.
///
/// # Errors
/// What writing it meets.
pub(crate) async fn plan_fully(
    app: &App,
    store: &Arc<dyn Store>,
    run: RunNo,
    mut planner: Option<Planner>,
) -> Result<bool, CliError> {
    let interrupts = app.interrupts();
    let mut renewals = None;
    loop {
        if let Some(planner) = planner {
            let mut planning = spawn_planner(Arc::clone(store), Planner { waits: false, ..planner });
            tokio::select! {
                written = planning.written() => return written.map(|()| true),
                () = interrupts.stop.cancelled() => {}
            }
            planning.leave().await;
            return Ok(false);
        }
        let row = store.run(run).await?;
        if row.planned {
            return Ok(true);
        }
        if let Some(of) = row.spec.taken_over.banks_of.first() {
            let now = renewals_of_planners(store.as_ref(), run).await?;
            let before = renewals.map_or(now, |before: i64| before.min(now));
            renewals = Some(before);
            if now > before {
                let id = &row.run_id;
                out::note(&format!("another command writes the plan of run {id} as run {of} fills its banks"));
                return Ok(true);
            }
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_AT_PLAN) => {}
            () = interrupts.stop.cancelled() => return Ok(false),
        }
        planner = planner_if_missing(app, store.as_ref(), &row).await?;
    }
}
