//! The controls of a run (`--controls`): the same sample with memory systems of known strength, each as a run of its own.
//!
//! They are in the measured run's group: one cap, one estimate, one confirmation (P41). The measured run goes first, the controls
//! share what it leaves. They are created with it, paused; whoever carries the runs out starts them when it has ended, so that
//! `resume` of the measured run goes on with all that its command began.

use std::sync::Arc;

use bench_proto::{
    ids::{RunId, RunNo},
    probe::ProbePlan,
};
use bench_store::{MEASURED_FIRST, NewRun, RunFilter, RunRow, RunState, Store};
use tokio::task::JoinHandle;

use super::{resume, submit::planner};
use crate::{
    app::App,
    cluster::client::spawn_planner,
    executor::{RunExecutor, Watching},
    exit::CliError,
    local::RunEnd,
    out,
    planning::PlannedRun,
};

/// The memory systems of controls.
const SYSTEMS: [&str; 3] = ["none", "random", "oracle"];

/// The controls that belong to a planned run, if it is to have any: only the memory system differs.
///
/// # Errors
/// Exit 2 when settings of a control's system make no sense.
pub(super) fn plans(app: &App, planned: &PlannedRun) -> Result<Vec<PlannedRun>, CliError> {
    if !app.settings().run.controls {
        return Ok(Vec::new());
    }
    let others = SYSTEMS.into_iter().filter(|system| *system != planned.spec.system.name);
    let plan = |system: &str| {
        let settings = app.system_settings(system);
        let built = bench_systems::registry::build(system, &settings, &Default::default())
            .map_err(|e| CliError::usage(e.to_string()))?;
        let mut spec = planned.spec.clone();
        spec.system.name = system.to_owned();
        spec.system.version.clone_from(&built.capabilities().version);
        spec.system.settings = settings;
        // a control is there for its score
        spec.limits.latency_probe = ProbePlan::default();
        Ok(PlannedRun {
            dataset: Arc::clone(&planned.dataset),
            sample: planned.sample.clone(),
            spec,
            capabilities: built.capabilities().clone(),
        })
    };
    others.map(plan).collect()
}

/// The controls as runs that wait for `of`, to be created with it.
pub(super) fn new_runs(plans: &[PlannedRun], of: &NewRun) -> Vec<NewRun> {
    let control = |plan: &PlannedRun| {
        let system = &plan.spec.system.name;
        NewRun {
            run_id: RunId(format!("{}-{system}", of.run_id)),
            name: Some(format!("control {system} of {}", of.run_id)),
            lineage: format!("{}-{system}", of.run_id),
            spec: plan.spec.clone(),
            waits: true,
            ..of.clone()
        }
    };
    plans.iter().map(control).collect()
}

/// Writes the plans of a run's controls that have none yet and that nobody writes: in a cluster they may have to begin when
/// nobody looks on any more.
///
/// # Errors
/// As [`resume::planner_if_missing`].
pub(super) async fn plan_missing(
    app: &App,
    store: &Arc<dyn Store>,
    run: RunNo,
    planned: Option<&PlannedRun>,
) -> Result<Vec<JoinHandle<Result<(), CliError>>>, CliError> {
    let mut writing = Vec::new();
    for control in not_ended(store.as_ref(), run).await?.into_iter().filter(|control| !control.planned) {
        let planner = match planned {
            Some(planned) => Some(planner(planned, control.run_no)),
            None => resume::planner_if_missing(app, store.as_ref(), &control).await?,
        };
        writing.extend(planner.map(|planner| spawn_planner(Arc::clone(store), planner)));
    }
    Ok(writing)
}

/// Waits until plans are written.
///
/// # Errors
/// What one of them met.
pub(super) async fn planned(writing: Vec<JoinHandle<Result<(), CliError>>>) -> Result<(), CliError> {
    for planning in writing {
        planning.await.map_err(|e| CliError::infrastructure(format!("planning stopped: {e}")))??;
    }
    Ok(())
}

/// Controls of a run, in the order of their creation.
async fn all(store: &dyn Store, run: RunNo) -> Result<Vec<RunRow>, CliError> {
    let filter = RunFilter { control_of: Some(run), controls: true, ..RunFilter::default() };
    let mut controls = store.list_runs(&filter).await?;
    controls.reverse();
    Ok(controls)
}

/// Controls of a run that have not ended.
///
/// # Errors
/// What the store meets.
pub(super) async fn not_ended(store: &dyn Store, run: RunNo) -> Result<Vec<RunRow>, CliError> {
    let open = |control: &RunRow| matches!(control.state, RunState::Running | RunState::Paused);
    Ok(all(store, run).await?.into_iter().filter(open).collect())
}

/// Carries the controls of a measured run that has ended to their rest, one after the other, in this process.
///
/// # Errors
/// When the store breaks; everything stays resumable.
pub(super) async fn execute(
    app: &App,
    store: &Arc<dyn Store>,
    run: &RunRow,
    planned: Option<&PlannedRun>,
    watching: &Watching<'_>,
) -> Result<(), CliError> {
    for control in not_ended(store.as_ref(), run.run_no).await? {
        if watching.interrupts.stop.is_cancelled() {
            break;
        }
        let system = &control.spec.system.name;
        out::note(&format!("control {system}"));
        let executor = match RunExecutor::of(app, &control.run_id) {
            Ok(executor) => executor,
            Err(error) => {
                out::note(&error.message);
                continue;
            }
        };
        let planner = match planned {
            Some(planned) => Some(planner(planned, control.run_no)),
            None => resume::planner_if_missing(app, store.as_ref(), &control).await?,
        };
        if !resume::take_up(store.as_ref(), &control, &[]).await? {
            // somebody has cancelled it
            continue;
        }
        let row = store.run(control.run_no).await?;
        if let RunEnd::Paused { reason } = executor.execute(app, store, &row, planner, watching).await? {
            out::note(&format!("control {system} is paused: {reason}"));
        }
    }
    Ok(())
}

/// Puts controls that were held into state `running`: a cluster goes on with them.
///
/// # Errors
/// What the store meets.
pub(super) async fn start(store: &dyn Store, controls: &[RunRow]) -> Result<(), CliError> {
    for control in controls {
        store.set_run_state(control.run_no, &[RunState::Paused], RunState::Running, None).await?;
    }
    Ok(())
}

/// Ends the controls that wait for a run which was cancelled.
///
/// # Errors
/// What the store meets.
pub(super) async fn cancel_waiting(store: &dyn Store, run: RunNo) -> Result<(), CliError> {
    for control in all(store, run).await?.into_iter().filter(RunRow::waits) {
        let reason = Some("cancelled with the measured run");
        store.set_run_state(control.run_no, &[RunState::Paused], RunState::Cancelled, reason).await?;
    }
    Ok(())
}

/// What is to be said of the controls of a finished run that have not ended, and how to go on with them; nothing when all have.
///
/// # Errors
/// What the store meets.
pub(super) async fn left_over(store: &dyn Store, run: &RunRow) -> Result<Option<String>, CliError> {
    let open = not_ended(store, run.run_no).await?;
    let Some(names) = names(&open) else { return Ok(None) };
    let reason = open.iter().filter_map(|control| control.reason.as_deref()).find(|reason| *reason != MEASURED_FIRST);
    let more = if reason.is_some_and(|reason| reason.starts_with("budget")) { " --max-cost USD" } else { "" };
    Ok(Some(format!(
        "the result of run {0} stands; {names} not ended{1}; `bench-coord resume {0}{more}` goes on with what is left",
        run.run_id,
        reason.map(|reason| format!(" ({reason})")).unwrap_or_default()
    )))
}

/// That the controls of a run which is at rest wait for it; nothing when it has none.
///
/// # Errors
/// What the store meets.
pub(super) async fn waiting(store: &dyn Store, run: RunNo) -> Result<Option<String>, CliError> {
    let names = names(&not_ended(store, run).await?);
    Ok(names.map(|names| format!("{names} not been run: the measured run goes first")))
}

/// `its controls none and oracle have`.
fn names(controls: &[RunRow]) -> Option<String> {
    let names: Vec<&str> = controls.iter().map(|control| control.spec.system.name.as_str()).collect();
    match names.as_slice() {
        [] => None,
        [one] => Some(format!("its control {one} has")),
        [first @ .., last] => Some(format!("its controls {} and {last} have", first.join(", "))),
    }
}
