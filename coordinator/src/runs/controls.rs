//! The controls of a run (`--controls`): the same sample with memory systems of known strength, each as a run of its own.
//!
//! They are in the measured run's group: one cap, one estimate, one confirmation (P41). The measured run goes first, the controls
//! share what it leaves. They are created with it, paused; whoever executes the runs starts them when it has ended, so that
//! `resume` of the measured run goes on with all that its command began.

use std::sync::Arc;

use bench_proto::{ids::RunNo, probe::ProbePlan, spec::TakenOver};
use bench_store::{CANCELLED_NOW, MEASURED_FIRST, NewRun, RunFilter, RunRow, RunState, Runs, Store};
use futures::future::join_all;
use tokio_util::sync::CancellationToken;

use crate::{
    app::App,
    cli::SubmitArgs,
    exit::CliError,
    out,
    planning::{PlannedRun, filled, plan_run},
    runs::{
        by_hand::{PAUSED_BY_USER, cancel_one, pause_one},
        client::{Planning, spawn_planner},
        executor::{RunExecutor, Watching},
        missing_plan::planner_if_missing,
        rest::RunEnd,
        taking_up::take_up,
    },
    standing::{group::id_of_control, raised_with, without_commands},
};

/// The memory systems of controls.
const SYSTEMS: [&str; 3] = ["none", "random", "oracle"];

/// A measured run and its controls, planned on one sample.
pub(crate) struct PlannedGroup {
    /// The run that was asked for.
    pub measured: PlannedRun,
    /// The controls of that run: only the memory system differs.
    pub controls: Vec<PlannedRun>,
}

impl PlannedGroup {
    /// Plans a run, and its controls if it is to have any.
    ///
    /// # Errors
    /// As [`plan_run`]; exit 2 when settings of a control's system make no sense.
    pub(crate) async fn plan(app: &App, args: &SubmitArgs, will_call: bool) -> Result<Self, CliError> {
        let mut measured = plan_run(app, args, will_call).await?;
        filled::choose(app, &args.banks, &mut measured, will_call).await?;
        let systems = SYSTEMS.into_iter().filter(|system| *system != measured.spec.system.name);
        let controls = match app.settings().run.controls {
            true => systems.map(|system| control(app, &measured, system)).collect::<Result<_, _>>()?,
            false => Vec::new(),
        };
        Ok(Self { measured, controls })
    }

    /// The controls as runs that wait for `measured`, to be created with it.
    #[must_use]
    pub(crate) fn new_controls(&self, measured: &NewRun) -> Vec<NewRun> {
        let control = |plan: &PlannedRun| {
            let (id, system) = (&measured.run_id, &plan.spec.system.name);
            let own = id_of_control(id, system);
            NewRun {
                name: Some(format!("control {system} of {id}")),
                lineage: own.0.clone(),
                run_id: own,
                spec: plan.spec.clone(),
                waits: true,
                // what is noted with the measured run is said of that one
                events: Vec::new(),
                ..measured.clone()
            }
        };
        self.controls.iter().map(control).collect()
    }
}

/// A run like the measured one with another memory system.
fn control(app: &App, measured: &PlannedRun, system: &str) -> Result<PlannedRun, CliError> {
    let settings = app.system_settings(system);
    let built = bench_systems::registry::build(system, &settings, &Default::default()).map_err(CliError::usage_of)?;
    let mut spec = measured.spec.clone();
    spec.system.name = system.to_owned();
    spec.system.version.clone_from(&built.capabilities().version);
    spec.system.settings = settings;
    // what the measured system cannot do is not said of another one
    spec.sample.notes.clone_from(&measured.sample.spec.notes);
    // it is computed from what is stored, and loses nothing
    spec.canaries = None;
    spec.lists = false;
    spec.taken_over = TakenOver::default();
    // a control calls nothing that is not counted already
    spec.limits.meter = None;
    // a control is there for its score
    spec.limits.latency_probe = ProbePlan::default();
    Ok(PlannedRun {
        dataset: Arc::clone(&measured.dataset),
        sample: measured.sample.clone(),
        spec,
        capabilities: built.capabilities().clone(),
        rounds: None,
    })
}

/// Writes the plans of a run's controls that have none yet and that nobody writes: in a cluster they may have to begin when
/// nobody looks on any more.
///
/// # Errors
/// As [`planner_if_missing`].
pub(crate) async fn plan_missing(
    app: &App,
    store: &Arc<dyn Store>,
    run: RunNo,
    planned: Option<&PlannedRun>,
) -> Result<Vec<Planning>, CliError> {
    let mut writing = Vec::new();
    for control in not_ended(store.as_ref(), run).await?.into_iter().filter(|control| !control.planned) {
        let planner = match planned {
            Some(planned) => Ok(Some(planned.planner(&control, &app.home()))),
            None => planner_if_missing(app, store.as_ref(), &control).await,
        };
        match planner {
            Ok(planner) => writing.extend(planner.map(|planner| spawn_planner(Arc::clone(store), planner))),
            Err(error) => {
                leave(writing).await;
                return Err(error);
            }
        }
    }
    Ok(writing)
}

/// Waits until plans are written; false where the person `leaves` before that, and with them the rest.
///
/// # Errors
/// What one of them met.
pub(crate) async fn planned(mut writing: Vec<Planning>, leaves: &CancellationToken) -> Result<bool, CliError> {
    while let Some(mut planning) = writing.pop() {
        let written = tokio::select! {
            written = planning.written() => Some(written),
            () = leaves.cancelled() => None,
        };
        match written {
            Some(Ok(())) => {}
            Some(Err(error)) => {
                leave(writing).await;
                return Err(error);
            }
            None => {
                writing.push(planning);
                leave(writing).await;
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Leaves the rest of plans to somebody else.
pub(crate) async fn leave(writing: Vec<Planning>) {
    join_all(writing.into_iter().map(Planning::leave)).await;
}

/// Controls of a run, in the order of their creation.
///
/// # Errors
/// What the store meets.
pub(crate) async fn all(store: &dyn Runs, run: RunNo) -> Result<Vec<RunRow>, CliError> {
    listed(store, RunFilter { control_of: Some(run), ..RunFilter::default() }).await
}

/// Controls of a run that have not ended.
///
/// # Errors
/// What the store meets.
pub(crate) async fn not_ended(store: &dyn Runs, run: RunNo) -> Result<Vec<RunRow>, CliError> {
    listed(store, RunFilter { control_of: Some(run), open: true, ..RunFilter::default() }).await
}

async fn listed(store: &dyn Runs, filter: RunFilter) -> Result<Vec<RunRow>, CliError> {
    let mut controls = store.list_runs(&filter).await?;
    controls.reverse();
    Ok(controls)
}

/// Controls with which a run goes on: those that have not ended, and where it is `reopened` those that were cancelled.
///
/// # Errors
/// What the store meets.
pub(crate) async fn going_on(store: &dyn Runs, run: RunNo, reopened: bool) -> Result<Vec<RunRow>, CliError> {
    let mut controls = all(store, run).await?;
    controls.retain(|control| match control.state {
        RunState::Running | RunState::Paused => true,
        RunState::Cancelled => reopened,
        RunState::Finished => false,
    });
    Ok(controls)
}

/// Lets those that were cancelled wait for their run again, as they did before.
///
/// # Errors
/// What the store meets.
pub(crate) async fn reopen(store: &dyn Runs, controls: &mut [RunRow]) -> Result<(), CliError> {
    for control in controls.iter_mut().filter(|control| control.state == RunState::Cancelled) {
        let reason = Some(MEASURED_FIRST);
        store.set_run_state(control.run_no, &[RunState::Cancelled], RunState::Paused, reason).await?;
        *control = store.run(control.run_no).await?;
    }
    Ok(())
}

/// Executes the controls of a measured run that has ended, one after the other, in this process.
///
/// # Errors
/// When the store breaks; everything stays resumable.
pub(crate) async fn execute(
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
        let executor = match RunExecutor::for_run(app, &control.run_id) {
            Ok(executor) => executor,
            Err(error) => {
                out::note(&error.message);
                continue;
            }
        };
        let planner = match planned {
            Some(planned) => Some(planned.planner(&control, &app.home())),
            None => planner_if_missing(app, store.as_ref(), &control).await?,
        };
        if !take_up(store.as_ref(), &control, &[]).await? {
            // somebody has cancelled it
            continue;
        }
        let row = store.run(control.run_no).await?;
        if let RunEnd::Paused { reason } = executor.execute(app, store, &row, planner, watching).await? {
            out::note(&format!("control {system} is paused: {reason}"));
            // whoever holds one of them holds what would come after it
            if reason == PAUSED_BY_USER {
                break;
            }
        }
    }
    Ok(())
}

/// Puts controls that were held into state `running`, where a cluster goes on with their run and with them: those that wait for it
/// begin when it has ended.
///
/// # Errors
/// What the store meets.
pub(crate) async fn start_beside(store: &dyn Runs, run: &RunRow, controls: &[RunRow]) -> Result<(), CliError> {
    for control in controls.iter().filter(|control| run.state == RunState::Finished || !control.waits()) {
        store.set_run_state(control.run_no, &[RunState::Paused], RunState::Running, None).await?;
    }
    Ok(())
}

/// Holds the controls of a run that are at work; those that wait for it, or for each other, are begun by nobody meanwhile. Says which,
/// where there are some: `its control oracle is`.
///
/// # Errors
/// What the store meets.
pub(crate) async fn pause(store: &dyn Store, run: RunNo) -> Result<Option<String>, CliError> {
    let mut held = Vec::new();
    for control in not_ended(store, run).await? {
        if pause_one(store, control.run_no).await? {
            held.push(control);
        }
    }
    Ok(names(&held, "is", "are"))
}

/// Ends the controls of a run which have not ended, and with `now` drops what those have in flight that were cancelled before. Says
/// which, where there are some.
///
/// # Errors
/// What the store meets.
pub(crate) async fn cancel(store: &dyn Store, run: RunNo, now: bool) -> Result<Option<String>, CliError> {
    let reason = if now { CANCELLED_NOW } else { "cancelled with the measured run" };
    let mut ended = Vec::new();
    for control in all(store, run).await? {
        if cancel_one(store, &control, reason).await? {
            ended.push(control);
        }
    }
    Ok(names(&ended, "is", "are"))
}

/// What is to be said of the controls of a finished run that have not ended, and how to go on with them; nothing when all have.
///
/// # Errors
/// What the store meets.
pub(crate) async fn left_over(store: &dyn Store, run: &RunRow) -> Result<Option<String>, CliError> {
    let open = not_ended(store, run.run_no).await?;
    let Some(names) = names(&open, "has", "have") else { return Ok(None) };
    let reason = open.iter().filter_map(|control| control.reason.as_deref()).find(|reason| *reason != MEASURED_FIRST);
    let of_budget = reason.filter(|reason| reason.starts_with("budget"));
    let more = of_budget.map_or_else(String::new, |reason| format!(" {}", raised_with(reason)));
    Ok(Some(format!(
        "the result of run {0} stands; {names} not ended{1}; `bench-coord resume {0}{more}` goes on with what is left",
        run.run_id,
        reason.map(|reason| format!(" ({})", without_commands(reason))).unwrap_or_default()
    )))
}

/// Says that the controls of a run which is at rest wait for it; nothing when it has none.
///
/// # Errors
/// What the store meets.
pub(crate) async fn waiting(store: &dyn Store, run: RunNo) -> Result<Option<String>, CliError> {
    let names = names(&not_ended(store, run).await?, "has", "have");
    Ok(names.map(|names| format!("{names} not been run: the measured run goes first")))
}

/// `its controls none and oracle have`, where several `have` and one `has`.
fn names(controls: &[RunRow], has: &str, have: &str) -> Option<String> {
    let names: Vec<&str> = controls.iter().map(|control| control.spec.system.name.as_str()).collect();
    match names.as_slice() {
        [] => None,
        [one] => Some(format!("its control {one} {has}")),
        [first @ .., last] => Some(format!("its controls {} and {last} {have}", first.join(", "))),
    }
}
