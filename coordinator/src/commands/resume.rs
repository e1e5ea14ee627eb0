//! `resume RUN`: goes on where a run stopped; nothing that is stored is done again.

use std::{path::PathBuf, sync::Arc, time::Duration};

use bench_store::{Right, RunRow, RunState, Store};

use super::{
    controls, gc,
    submit::{Ending, RESUMABLE, check_detach, conclude, detached},
};
use crate::{
    app::{App, Place},
    cli::{ResumeArgs, SampleArgs},
    cluster::client::{has_planner, spawn_planner},
    executor::RunExecutor,
    exit::{CliError, CliResult},
    local::RunEnd,
    out,
    planner::Planner,
    planning::{accounts, banks_in_order, open_dataset, parse_usd, take_sample},
    results,
    runs::{Standing, check_whole, find_run},
};

/// How often a plan that another process writes is looked at.
const LOOK_AT_PLAN: Duration = Duration::from_millis(250);

/// Runs the verb.
pub(super) async fn run(app: &App, args: &ResumeArgs) -> CliResult {
    let store = app.open_store().await?;
    let run = find_run(store.as_ref(), &args.run).await?;
    resume(app, store, run, args).await
}

/// Goes on with a run, or prints the result of one that is finished.
///
/// # Errors
/// Exit 2 when another process owns it or it was cancelled without `--reopen`.
pub(super) async fn resume(app: &App, store: Arc<dyn Store>, run: RunRow, args: &ResumeArgs) -> CliResult {
    check_detach(args.detach, app.place()?)?;
    // a measured run that has ended goes on with the controls that have not
    let mut controls = Vec::new();
    if run.state == RunState::Finished {
        controls = controls::not_ended(store.as_ref(), run.run_no).await?;
    }
    match run.state {
        RunState::Finished if controls.is_empty() => {
            return results::finish(
                app,
                store.as_ref(),
                run.run_no,
                args.output.json,
                args.output.output_dir.as_deref(),
            )
            .await;
        }
        RunState::Cancelled if !args.reopen => {
            return Err(CliError::usage(format!(
                "{}: {}",
                run.run_id,
                Standing::Cancelled.advice(&run.run_id).unwrap_or_default()
            )));
        }
        RunState::Running | RunState::Paused | RunState::Cancelled | RunState::Finished => {}
    }
    if run.state != RunState::Finished {
        check_whole(store.as_ref(), &run).await?;
        app.check_allowed(store.as_ref(), &run).await?;
        gc::check_banks(store.as_ref(), &run).await?;
    }
    let ending = run_folder(app, &run, args.output.output_dir.as_ref());
    results::check_writable(&ending)?;
    if args.release_uncertain {
        store.may(Right::Results).await?;
    }
    // everything that could refuse comes before the run's state is touched
    app.check_queue().await?;
    app.check_run_accounts(&run.spec)?;
    let executor = RunExecutor::of(app, &run.run_id)?;
    executor.check_domain(&run)?;
    let planner = planner_if_missing(app, store.as_ref(), &run).await?;
    change_limits(app, store.as_ref(), &run, args).await?;
    crate::outages::probe_now(store.as_ref(), &run).await?;
    if run.state == RunState::Running && executor.is_cluster() {
        // it goes on without anybody's help: attach to it
        return go_on(app, store, &run, &executor, planner, args, &ending).await;
    }
    if executor.is_cluster() {
        controls::start(store.as_ref(), &controls).await?;
    }
    let more: &[RunState] = match run.state {
        RunState::Finished => &[RunState::Finished],
        _ if args.reopen => &[RunState::Cancelled],
        _ => &[],
    };
    if !take_up(store.as_ref(), &run, more).await? {
        // that one decides
        drop(executor);
        let run = store.run(run.run_no).await?;
        return Box::pin(resume(app, store, run, args)).await;
    }
    go_on(app, store, &run, &executor, planner, args, &ending).await
}

/// Puts a run that nobody works on into state `running`, from the states of [`RESUMABLE`] and `more`; false when somebody else
/// has brought it to another state just now.
///
/// # Errors
/// What the store meets.
pub(super) async fn take_up(store: &dyn Store, run: &RunRow, more: &[RunState]) -> Result<bool, CliError> {
    if run.state == RunState::Running {
        // its owner was killed: the lock is ours, so nobody else can be at work
        store.close_lost_interval(run.run_no).await?;
        store.set_run_state(run.run_no, &[RunState::Running], RunState::Paused, Some("interrupted")).await?;
    }
    store.release_holds(run.run_no, &accounts(&run.spec)).await?;
    let from: Vec<RunState> = RESUMABLE.iter().chain(more).copied().collect();
    Ok(store.set_run_state(run.run_no, &from, RunState::Running, None).await?)
}

/// Carries a run that has been put into state `running` to its rest.
///
/// # Errors
/// As [`conclude`].
pub(super) async fn go_on(
    app: &App,
    store: Arc<dyn Store>,
    run: &RunRow,
    executor: &RunExecutor,
    planner: Option<Planner>,
    args: &ResumeArgs,
    folder: &std::path::Path,
) -> CliResult {
    let row = store.run(run.run_no).await?;
    let left = row.spec.sample.n.saturating_sub(u64::try_from(row.counters.ended()).unwrap_or(0));
    out::note(&format!("run {}: {left} of {} questions to go", row.run_id, row.spec.sample.n));
    let plans_of_controls = match executor.is_cluster() {
        true => controls::plan_missing(app, &store, row.run_no, None).await?,
        false => Vec::new(),
    };
    if args.detach {
        plan_fully(app, &store, &row, planner).await?;
        controls::planned(plans_of_controls).await?;
        return detached(&row, args.output.json);
    }
    let interrupts = app.interrupts();
    let watching = args.output.watching(&interrupts);
    let end = executor.execute(app, &store, &row, planner, &watching).await?;
    controls::planned(plans_of_controls).await?;
    if end == RunEnd::Finished && !executor.is_cluster() {
        controls::execute(app, &store, &row, None, &watching).await?;
    }
    let ending = Ending {
        json: args.output.json,
        output_dir: args.output.output_dir.as_deref(),
        folder,
        floor: args.output.floor,
    };
    conclude(app, store.as_ref(), &row, end, &ending).await
}

/// Leaves nothing undone that only a client can do: writes the rest of a run's plan, or waits for whoever does, and takes over
/// when that one is gone.
async fn plan_fully(
    app: &App,
    store: &Arc<dyn Store>,
    run: &RunRow,
    mut planner: Option<Planner>,
) -> Result<(), CliError> {
    loop {
        if let Some(planner) = planner {
            let written = spawn_planner(Arc::clone(store), planner).await;
            return written.map_err(|e| CliError::infrastructure(format!("planning stopped: {e}")))?;
        }
        let row = store.run(run.run_no).await?;
        if row.planned {
            return Ok(());
        }
        tokio::time::sleep(LOOK_AT_PLAN).await;
        planner = planner_if_missing(app, store.as_ref(), &row).await?;
    }
}

/// Folder of the run's files.
#[must_use]
pub(super) fn run_folder(app: &App, run: &RunRow, output_dir: Option<&PathBuf>) -> PathBuf {
    results::run_folder(app, run, output_dir.map(PathBuf::as_path))
}

/// The rest of a run's plan, when it has to be written and nobody does.
///
/// # Errors
/// As [`planner_of`].
pub(super) async fn planner_if_missing(
    app: &App,
    store: &dyn Store,
    run: &RunRow,
) -> Result<Option<Planner>, CliError> {
    if run.planned || (app.place()? == Place::Cluster && has_planner(store, run.run_no).await?) {
        return Ok(None);
    }
    if super::fork::adopt_again(store, run).await? {
        return Ok(None);
    }
    planner_of(app, store, run).await.map(Some)
}

/// A run that was killed while its plan was being written needs its dataset again; the sample must be the same.
///
/// # Errors
/// Exit 2 when the dataset is another one now.
async fn planner_of(app: &App, store: &dyn Store, run: &RunRow) -> Result<Planner, CliError> {
    let spec = &run.spec;
    let args = SampleArgs {
        dataset_path: spec.dataset.path.clone(),
        allow_modified_dataset: spec.dataset.modified,
        ..SampleArgs::default()
    };
    let dataset = open_dataset(app, &spec.dataset.name, &args, spec.dataset.settings.clone()).await?;
    let request = serde_json::from_value(spec.sample.request.clone())
        .map_err(|e| CliError::infrastructure(format!("the run's sample request cannot be read: {e}")))?;
    let sample = take_sample(&dataset, request).await?;
    if sample.spec.signature != spec.sample.signature || dataset.sha256() != spec.dataset.sha256 {
        return Err(CliError::usage(format!(
            "the dataset found now is not the one that run {} began with (sha256 {} then); give the same file",
            run.run_id, spec.dataset.sha256
        )));
    }
    let done = store.banks(run.run_no, None).await?.len();
    let banks = banks_in_order(&sample);
    Ok(Planner {
        run: run.run_no,
        dataset,
        banks,
        max_sessions: spec.sample.max_sessions,
        done: u32::try_from(done).unwrap_or(u32::MAX),
    })
}

async fn change_limits(app: &App, store: &dyn Store, run: &RunRow, args: &ResumeArgs) -> Result<(), CliError> {
    let mut limits = run.spec.limits.clone();
    if let Some(text) = &args.limits.max_cost {
        limits.max_cost = Some(parse_usd("--max-cost", text)?);
    }
    if let Some(text) = &args.limits.max_cost_per_day {
        limits.max_cost_per_day = Some(parse_usd("--max-cost-per-day", text)?);
    }
    limits.max_cost_by_phase.extend(app.settings().run.max_cost_by_phase.clone());
    limits.max_rpm = args.limits.max_rpm.or(limits.max_rpm);
    limits.max_tpm = args.limits.max_tpm.or(limits.max_tpm);
    limits.concurrency = args.limits.concurrency.or(limits.concurrency);
    limits.outage_timeout_s = args.limits.outage_timeout.or(limits.outage_timeout_s);
    limits.retries = args.limits.retries.unwrap_or(limits.retries);
    if limits != run.spec.limits {
        store.set_limits(run.run_no, &limits).await?;
    }
    if args.release_uncertain {
        // a killed owner's reservations become uncertain when its session ends
        crate::local::end_dead_sessions(store, run.run_no).await?;
        let mut released = store.release_uncertain(run.run_no).await?;
        for control in controls::not_ended(store, run.run_no).await? {
            // somebody else may be at work on it
            if let Ok(_owned) = RunExecutor::of(app, &control.run_id) {
                crate::local::end_dead_sessions(store, control.run_no).await?;
                released = released.saturating_add(store.release_uncertain(control.run_no).await?);
            }
        }
        out::note(&format!("{released} of uncertain attempts no longer count against the cap"));
    }
    Ok(())
}
