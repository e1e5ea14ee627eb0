//! `submit`: plan a run, estimate it, start it, and stay with it to its end.

use std::{io::IsTerminal, path::Path, sync::Arc};

use bench_proto::{
    ids::RunId,
    spec::{ModelSpec, RunSpec},
};
use bench_store::{NewRun, RunRow, RunState, Store, StoreError};
use tokio_util::sync::CancellationToken;

use crate::{
    app::App,
    cli::{Display, SubmitArgs},
    commands::estimate::{Counting, RunEstimate},
    display,
    exit::{CliError, CliResult},
    local::{Interrupts, LOCAL_DOMAIN, LocalRun, RunEnd},
    lock::OwnerLock,
    out,
    planner::Planner,
    planning::{DEFAULT_CAP, PlannedRun, plan_run},
    results,
    runs::{Standing, current_user},
    self_check,
};

/// Estimates above this are confirmed on a terminal.
const CONFIRM_ABOVE_USD: f64 = 5.0;
/// Systems that `--controls` runs beside the measured one.
const CONTROLS: [&str; 3] = ["none", "random", "oracle"];

/// Runs the verb.
pub(super) async fn run(app: &App, args: &SubmitArgs) -> CliResult {
    if args.detach {
        return Err(CliError::usage(
            "--detach needs a cluster that works on the run: with the in-process queue memory: the run would end with this command; leave --detach out",
        ));
    }
    let run_id = args.run_id.as_deref().map(RunId::parse).transpose().map_err(|e| CliError::usage(e.to_string()))?;
    app.open_queue().await?;
    let planned = plan_run(app, args, !args.dry_run).await?;
    let counting = if args.dry_run { Counting::Exact } else { Counting::Rough };
    let estimate = RunEstimate::of(&planned, counting);
    if args.dry_run {
        return estimate.print(args.json);
    }
    let run_id = run_id.unwrap_or_else(RunId::fresh);
    let folder = args.output_dir.clone().unwrap_or_else(|| app.home().join("runs").join(&run_id.0));
    results::check_writable(&folder)?;
    let store = app.open_store().await?;
    if let Some(existing) = store.run_by_id(&run_id).await? {
        return attach(app, store, &planned.spec, existing, args).await;
    }
    let controls = if args.controls { CONTROLS.len() as u32 } else { 0 };
    confirm(&estimate, &planned, controls, args)?;
    tracing::debug!("planned");
    let check = self_check::run(&planned).await?;
    tracing::debug!("graders checked");

    let new_run = NewRun {
        run_id: run_id.clone(),
        name: args.name.clone(),
        tags: args.tag.clone(),
        user: current_user(),
        spec: planned.spec.clone(),
        lineage: run_id.0.clone(),
        control_of: None,
        domain: LOCAL_DOMAIN.to_owned(),
        imported: false,
        code_version: bench_proto::CODE_VERSION.to_owned(),
    };
    out::note(&headline(&run_id, &planned, &estimate));
    let interrupts = Interrupts::listen();
    let lock = lock(app, &run_id)?;
    let run_no = match store.create_run(&new_run).await {
        Err(StoreError::Exists(_)) => {
            return Err(CliError::usage(format!("run {run_id} was created by somebody else just now")));
        }
        created => created?,
    };
    store.add_event(run_no, results::SELF_CHECK_EVENT, &check.event()).await?;
    let run = store.run(run_no).await?;
    let planner = Planner {
        run: run_no,
        dataset: Arc::clone(&planned.dataset),
        banks: planned.banks_in_order(),
        max_sessions: planned.spec.sample.max_sessions,
        done: 0,
    };
    tracing::debug!("run created");
    let end = own(app, Arc::clone(&store), &run, &lock, Some(planner), args.display, &interrupts).await?;
    tracing::debug!("run at rest");
    if end == RunEnd::Finished && args.controls {
        run_controls(app, &store, &planned, &new_run, &run, args.display, &interrupts).await?;
    }
    conclude(
        app,
        store.as_ref(),
        &run,
        end,
        &Ending { json: args.json, output_dir: args.output_dir.as_deref(), folder: &folder },
    )
    .await
}

/// What happens at a run's rest.
pub(super) struct Ending<'a> {
    /// JSON on standard output.
    pub json: bool,
    /// `--output-dir`.
    pub output_dir: Option<&'a Path>,
    /// Where the files go.
    pub folder: &'a Path,
}

/// Prints the result of a run that came to rest, or says how to go on.
///
/// # Errors
/// Exit 3 with the way to go on, when it is not finished.
pub(super) async fn conclude(
    app: &App,
    store: &dyn Store,
    run: &RunRow,
    end: RunEnd,
    ending: &Ending<'_>,
) -> CliResult {
    match end {
        RunEnd::Finished => {
            let exit = results::finish(app, store, run.run_no, ending.json, ending.output_dir).await?;
            if let Some(hint) = next_step(app, &run.spec) {
                out::note(&hint);
            }
            Ok(exit)
        }
        RunEnd::Paused { .. } | RunEnd::Cancelled { .. } => {
            let row = store.run(run.run_no).await?;
            let summary = results::summarize(app, store, &row).await?;
            results::write_files(store, &row, &summary, ending.folder).await?;
            let standing = Standing::of(&row, None);
            let ended = row.counters.ended();
            Err(CliError::resumable(format!(
                "{} of {} questions ended; {}",
                ended,
                row.spec.sample.n,
                standing.advice(&row.run_id).unwrap_or_default()
            )))
        }
    }
}

/// Owns a run that is in state `running`, with its progress on display.
///
/// # Errors
/// What owning it meets.
pub(super) async fn own(
    app: &App,
    store: Arc<dyn Store>,
    run: &RunRow,
    lock: &OwnerLock,
    planner: Option<Planner>,
    display: Display,
    interrupts: &Interrupts,
) -> Result<RunEnd, CliError> {
    let local = LocalRun {
        store: Arc::clone(&store),
        queue: app.open_queue().await?,
        environment: app.worker_environment(&run.spec)?,
        slots: app.slots(&run.spec),
        drain: app.drain(),
    };
    let stop = CancellationToken::new();
    let view = display::follow(store, run.run_no, display, stop.clone());
    let end = local.own(run, lock, planner, interrupts).await;
    stop.cancel();
    let _ = view.await;
    end
}

/// Takes the lock of a local run.
///
/// # Errors
/// Exit 2 when another process owns it.
pub(super) fn lock(app: &App, run: &RunId) -> Result<OwnerLock, CliError> {
    let file = app.store_file().ok_or_else(|| CliError::usage("local runs need a sqlite: store"))?;
    Ok(OwnerLock::take(&file, run)?)
}

/// P30: the same id and fingerprint attach; another fingerprint is refused with its differences.
async fn attach(app: &App, store: Arc<dyn Store>, spec: &RunSpec, existing: RunRow, args: &SubmitArgs) -> CliResult {
    let differences = existing.spec.differences(spec);
    if !differences.is_empty() {
        let list: Vec<String> =
            differences.iter().take(12).map(|d| format!("\n  {}: {} there, {} here", d.key, d.left, d.right)).collect();
        return Err(CliError::usage(format!(
            "run {} exists with other settings; choose another --run-id, or make them equal:{}",
            existing.run_id,
            list.concat()
        )));
    }
    out::note(&format!("run {} exists with the same settings: going on with it", existing.run_id));
    let resume = crate::cli::ResumeArgs {
        run: existing.run_id.0.clone(),
        max_cost: args.max_cost.clone(),
        max_cost_per_day: args.max_cost_per_day.clone(),
        release_uncertain: false,
        max_rpm: args.max_rpm,
        max_tpm: args.max_tpm,
        concurrency: args.concurrency,
        retries: args.retries,
        reopen: false,
        json: args.json,
        display: args.display,
        output_dir: args.output_dir.clone(),
    };
    super::resume::resume(app, store, existing, &resume).await
}

/// Asks or refuses before money is spent, see docs/CLI.md.
fn confirm(estimate: &RunEstimate, planned: &PlannedRun, controls: u32, args: &SubmitArgs) -> Result<(), CliError> {
    let expected = estimate.expected_usd() * f64::from(1 + controls);
    if expected == 0.0 {
        return Ok(());
    }
    let cap = planned.spec.limits.max_cost.unwrap_or(DEFAULT_CAP).usd();
    if args.max_cost.is_some() {
        if expected > cap {
            out::note(&format!(
                "the estimate of ${expected:.2} is above the cap of ${cap:.2}: the run will pause there and can be resumed"
            ));
        }
        return Ok(());
    }
    if args.yes {
        return Ok(());
    }
    let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if !terminal {
        if expected > cap {
            return Err(CliError::usage(format!(
                "the estimate of ${expected:.2} is above the default cap of ${cap:.2}: set --max-cost, or --yes to start and pause at the cap"
            )));
        }
        return Ok(());
    }
    if expected > CONFIRM_ABOVE_USD {
        out::note(&format!("this run is estimated at ${expected:.2} (cap ${cap:.2}). Start it? [y/N]"));
        let mut line = String::new();
        let _ = std::io::stdin().read_line(&mut line);
        if !matches!(line.trim(), "y" | "Y" | "yes") {
            return Err(CliError::usage("not started; --yes starts without asking"));
        }
    }
    Ok(())
}

/// The line that opens a run.
fn headline(run_id: &RunId, planned: &PlannedRun, estimate: &RunEstimate) -> String {
    let spec = &planned.spec;
    let judge = spec.judges.first().map(|j| format!(", judge {}", j.display())).unwrap_or_default();
    format!(
        "run {run_id}: {} {} ({} questions, {} banks), system {}, answerer {}{judge}\n{}",
        spec.dataset.name,
        spec.sample.preset,
        spec.sample.n,
        spec.sample.banks,
        spec.system.name,
        spec.answerer.display(),
        estimate.line()
    )
}

/// The one line that uses a key which was found but not used.
fn next_step(app: &App, spec: &RunSpec) -> Option<String> {
    let uses_models = spec.answerer.is_remote() || spec.judges.iter().any(ModelSpec::is_remote);
    (!uses_models && app.has_openai_key()).then(|| {
        let (usd, minutes) = RunEstimate::with_a_small_model(spec);
        format!(
            "an OpenAI key is set; with a real answerer and judge (about ${usd:.2}, {minutes:.0} min):\n  bench-coord submit --dataset {} --preset {} --answerer openai:gpt-4o-mini --judge openai:gpt-4o-mini",
            spec.dataset.name, spec.sample.preset
        )
    })
}

/// Runs the controls on the same sample, each as a run of its own that belongs to the measured one.
async fn run_controls(
    app: &App,
    store: &Arc<dyn Store>,
    planned: &PlannedRun,
    of: &NewRun,
    run: &RunRow,
    display: Display,
    interrupts: &Interrupts,
) -> Result<(), CliError> {
    for system in CONTROLS.into_iter().filter(|system| *system != planned.spec.system.name) {
        let control = control_run(app, planned, of, run, system)?;
        out::note(&format!("control {system}"));
        let lock = lock(app, &control.run_id)?;
        let run_no = store.create_run(&control).await?;
        let row = store.run(run_no).await?;
        let planner = Planner {
            run: run_no,
            dataset: Arc::clone(&planned.dataset),
            banks: planned.banks_in_order(),
            max_sessions: planned.spec.sample.max_sessions,
            done: 0,
        };
        let end = own(app, Arc::clone(store), &row, &lock, Some(planner), display, interrupts).await?;
        if end != RunEnd::Finished {
            out::note(&format!(
                "control {system} did not finish; `bench-coord resume {}` goes on with it",
                control.run_id
            ));
            if interrupts.stop.is_cancelled() {
                break;
            }
        }
    }
    Ok(())
}

/// The spec of a control: only the memory system differs. What is left of the cap is shared out.
fn control_run(app: &App, planned: &PlannedRun, of: &NewRun, run: &RunRow, system: &str) -> Result<NewRun, CliError> {
    let settings = app.system_settings(system);
    let built = bench_worker::systems::registry::build(system, &settings, &Default::default())
        .map_err(|e| CliError::usage(e.to_string()))?;
    let mut spec = planned.spec.clone();
    spec.system.name = system.to_owned();
    spec.system.version.clone_from(&built.capabilities().version);
    spec.system.settings = settings;
    Ok(NewRun {
        run_id: RunId(format!("{}-{system}", run.run_id)),
        name: Some(format!("control {system} of {}", run.run_id)),
        control_of: Some(run.run_no),
        lineage: format!("{}-{system}", run.run_id),
        spec,
        ..of.clone()
    })
}

/// States from which `resume` goes on by itself.
pub(super) const RESUMABLE: [RunState; 2] = [RunState::Running, RunState::Paused];
