//! `submit`: plan a run, estimate it, start it, and stay with it to its end.

use std::{io::IsTerminal, path::Path, sync::Arc};

use bench_proto::{
    ids::{RunId, RunNo},
    spec::{ModelSpec, RunSpec},
    trace::{TraceId, span_of_submit},
};
use bench_store::{Creation, NewGroup, NewRun, RunRow, RunState, Store};
use bench_telemetry::{process, process_span};
use bench_worker::systems::adapter::{ADAPTER, file::STARTED};
use tracing::Instrument as _;

use crate::{
    app::{App, Place},
    cli::SubmitArgs,
    cluster::{client::spawn_planner, takers::look_for_takers},
    commands::{
        controls,
        estimate::{Counting, RunEstimate},
    },
    executor::RunExecutor,
    exit::{CliError, CliResult, Exit},
    local::RunEnd,
    out,
    planner::Planner,
    planning::{DEFAULT_CAP, PlannedRun, plan_run},
    progress::dollars,
    reach::look_first,
    results,
    runs::{Standing, current_user},
    self_check,
};

/// Estimates above this are confirmed on a terminal.
const CONFIRM_ABOVE_USD: f64 = 5.0;
/// Samples that a name is enough for.
const PRESETS: [&str; 3] = ["quick", "fair", "full"];

/// Runs the verb.
pub(super) async fn run(app: &App, args: &SubmitArgs) -> CliResult {
    let place = app.place()?;
    check_detach(args.detach, place)?;
    if let Some(floor) = args.output.floor.filter(|floor| !(0.0..=1.0).contains(floor)) {
        return Err(CliError::usage(format!("--floor {floor}: give a fraction; 90 % are 0.9")));
    }
    if let (Some(source), Some(from)) = (&args.fork, args.from) {
        return super::fork::run(app, args, source, from).await;
    }
    let run_id = args.naming.id()?;
    if !args.dry_run {
        app.check_queue().await?;
    }
    if !args.dry_run {
        app.telemetry()?;
    }
    let span = process::started(process_span!("submit", run = tracing::field::Empty));
    // in a cluster the keys are with the workers
    let planned = plan_run(app, args, !args.dry_run && place == Place::Local).instrument(span.clone()).await?;
    equal_votes(&planned.spec).iter().for_each(|warning| out::note(warning));
    let controls = controls::plans(app, &planned)?;
    let counting = if args.dry_run { Counting::Exact } else { Counting::Rough };
    let estimate = RunEstimate::of_group(app, &planned, &controls, counting).await;
    if args.dry_run {
        return estimate.print(args.output.json);
    }
    let run_id = run_id.unwrap_or_else(RunId::fresh);
    let folder = args.output.output_dir.clone().unwrap_or_else(|| app.home().join("runs").join(&run_id.0));
    results::check_writable(&folder)?;
    let store = app.open_store().await?;
    if let Some(existing) = store.run_by_id(&run_id).await? {
        return attach(app, store, &planned.spec, existing, args).await;
    }
    match place {
        Place::Local => look_first(app, &planned.spec, true).await?,
        Place::Cluster => {
            look_for_takers(store.as_ref(), &planned.spec).await?;
            // what its person has named may be cleaned up from here
            app.trust(&planned.spec.system.settings)?;
        }
    }
    confirm(&estimate, &planned.spec, args).await?;
    tracing::debug!("planned");
    let check = self_check::run(&planned).await?;
    tracing::debug!("graders checked");

    let executor = RunExecutor::of(app, &run_id)?;
    let new_run = NewRun {
        run_id: run_id.clone(),
        name: args.naming.name.clone(),
        tags: args.naming.tag.clone(),
        user: current_user(),
        spec: planned.spec.clone(),
        lineage: run_id.0.clone(),
        control_of: None,
        domain: executor.domain().to_owned(),
        imported: false,
        code_version: bench_worker::version::VERSION.to_owned(),
        group: (!controls.is_empty()).then(|| NewGroup { id: run_id.0.clone(), cap: planned.spec.limits.max_cost }),
        waits: false,
    };
    out::note(&headline(&run_id, &planned, &estimate));
    let interrupts = app.interrupts();
    span.record("run", run_id.0.as_str());
    process::link(&span, TraceId::of_run(&run_id).0, span_of_submit(&run_id).0);
    let run_no = match store
        .create_or_find(&new_run, &controls::new_runs(&controls, &new_run))
        .instrument(span.clone())
        .await?
    {
        Creation::Made(run_no) => run_no,
        Creation::Found(existing) => {
            // its lock, where there is one, is taken anew like that of any run that exists
            drop(executor);
            return attach(app, store, &planned.spec, *existing, args).await;
        }
    };
    store.add_event(run_no, results::SELF_CHECK_EVENT, &check.event()).await?;
    let run = store.run(run_no).await?;
    tracing::debug!("run created");
    drop(span);
    let plans_of_controls = match place {
        Place::Cluster => controls::plan_missing(app, &store, run_no, Some(&planned)).await?,
        Place::Local => Vec::new(),
    };
    if args.detach {
        let own = spawn_planner(Arc::clone(&store), planner(&planned, run_no));
        controls::planned(plans_of_controls.into_iter().chain([own]).collect()).await?;
        return detached(&run, args.output.json);
    }
    let watching = args.output.watching(&interrupts);
    let end = executor.execute(app, &store, &run, Some(planner(&planned, run_no)), &watching).await?;
    tracing::debug!("run at rest");
    controls::planned(plans_of_controls).await?;
    if end == RunEnd::Finished && place == Place::Local {
        controls::execute(app, &store, &run, Some(&planned), &watching).await?;
    }
    conclude(
        app,
        store.as_ref(),
        &run,
        end,
        &Ending {
            json: args.output.json,
            output_dir: args.output.output_dir.as_deref(),
            folder: &folder,
            floor: args.output.floor,
        },
    )
    .await
}

/// Refuses `--detach` where a run lives in the process that submitted it.
///
/// # Errors
/// Exit 2 with the reason.
pub(super) fn check_detach(detach: bool, place: Place) -> Result<(), CliError> {
    if detach && place == Place::Local {
        return Err(CliError::usage(
            "--detach needs a cluster that works on the run: with the in-process queue memory: the run would end with this command; leave --detach out",
        ));
    }
    Ok(())
}

/// Says what a person needs to come back to a run.
pub(super) fn detached(run: &RunRow, json: bool) -> CliResult {
    if json {
        out::json(&serde_json::json!({"id": run.run_id, "status": "running"}));
    } else {
        out::result(&run.run_id.to_string());
    }
    Err(left_running(&run.run_id, "detached"))
}

fn left_running(run: &RunId, reason: &str) -> CliError {
    CliError::resumable(format!(
        "{reason}: run {run} goes on without this command; `bench-coord watch {run}` follows it, `bench-coord cancel {run}` ends it"
    ))
}

/// Writes the plan of a run that has none yet.
pub(super) fn planner(planned: &PlannedRun, run: RunNo) -> Planner {
    Planner {
        run,
        dataset: Arc::clone(&planned.dataset),
        banks: planned.banks_in_order(),
        max_sessions: planned.spec.sample.max_sessions,
        done: 0,
    }
}

/// What happens at a run's rest.
pub(super) struct Ending<'a> {
    /// JSON on standard output.
    pub json: bool,
    /// `--output-dir`.
    pub output_dir: Option<&'a Path>,
    /// Where the files go.
    pub folder: &'a Path,
    /// `--floor`.
    pub floor: Option<f64>,
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
            let exit =
                results::finish_above(app, store, run.run_no, ending.json, ending.output_dir, ending.floor).await?;
            if let Some(hint) = next_step(app, &run.spec) {
                out::note(&hint);
            }
            match controls::left_over(store, run).await? {
                Some(left) if exit == Exit::Done => Err(CliError::resumable(left)),
                left => {
                    left.iter().for_each(|left| out::note(left));
                    Ok(exit)
                }
            }
        }
        RunEnd::LeftRunning { reason } => Err(left_running(&run.run_id, &reason)),
        RunEnd::Paused { .. } | RunEnd::Cancelled { .. } => {
            let row = store.run(run.run_no).await?;
            let summary = results::summary_of(app, store, &row).await?;
            results::write_files(store, &row, &summary, ending.folder).await?;
            let standing = Standing::of(&row, None);
            let ended = row.counters.ended();
            let controls = controls::waiting(store, run.run_no).await?;
            Err(CliError::resumable(format!(
                "{} of {} questions ended; {}{}",
                ended,
                row.spec.sample.n,
                standing.advice(&row.run_id).unwrap_or_default(),
                controls.map(|controls| format!("; {controls}")).unwrap_or_default()
            )))
        }
    }
}

/// Whether two versions of an adapter's system differ in nothing but that the older one does not say what is started.
fn lacks_start(old: &str, new: &str) -> bool {
    let (old, new) = (old.trim_matches('"'), new.trim_matches('"'));
    !old.contains(STARTED) && new.split_once(STARTED).is_some_and(|(said, _)| said == old)
}

/// P30: the same id and fingerprint attach; another fingerprint is refused with its differences.
pub(super) async fn attach(
    app: &App,
    store: Arc<dyn Store>,
    spec: &RunSpec,
    existing: RunRow,
    args: &SubmitArgs,
) -> CliResult {
    let differences = existing.spec.differences(spec);
    if !differences.is_empty() {
        let list: Vec<String> =
            differences.iter().take(12).map(|d| format!("\n  {}: {} there, {} here", d.key, d.left, d.right)).collect();
        let older = differences.iter().any(|d| d.key == "system.version" && lacks_start(&d.left, &d.right));
        let why = if older {
            "\n  (the run was made before what is started for it was a part of its fingerprint; it can be compared with runs of its time)"
        } else {
            ""
        };
        return Err(CliError::usage(format!(
            "run {} exists with other settings; choose another --run-id, or make them equal:{}{why}",
            existing.run_id,
            list.concat()
        )));
    }
    out::note(&format!("run {} exists with the same settings: going on with it", existing.run_id));
    let resume = crate::cli::ResumeArgs {
        run: existing.run_id.0.clone(),
        limits: args.limits.clone(),
        release_uncertain: false,
        reopen: false,
        detach: args.detach,
        output: args.output.clone(),
    };
    super::resume::resume(app, store, existing, &resume).await
}

/// Warns of judges whose further votes cannot differ by temperature (P38): equal draws of a deterministic model are one vote.
fn equal_votes(spec: &RunSpec) -> Vec<String> {
    let varies = |judge: &&ModelSpec| judge.params.contains_key("temperature");
    let same = spec.judges.iter().filter(|judge| spec.votes > 1 && !varies(judge));
    same.map(|judge| {
        let name = judge.display();
        format!("{name} takes no temperature: its {} votes may be equal, and are paid each", spec.votes)
    })
    .collect()
}

/// Asks or refuses before money is spent, see docs/CLI.md.
pub(super) async fn confirm(estimate: &RunEstimate, spec: &RunSpec, args: &SubmitArgs) -> Result<(), CliError> {
    let (expected, what) = (estimate.expected_usd(), estimate.what());
    if expected == 0.0 {
        return Ok(());
    }
    let limit = spec.limits.max_cost.unwrap_or(DEFAULT_CAP);
    let (above, usd, cap) = (expected > limit.usd(), dollars(expected), dollars(limit.usd()));
    if args.limits.max_cost.is_some() {
        if above {
            out::note(&format!(
                "the estimate of {usd}{what} is above the cap of {cap}: the run will pause there and can be resumed"
            ));
        }
        return Ok(());
    }
    if args.yes {
        return Ok(());
    }
    let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if !terminal {
        if above {
            return Err(CliError::usage(format!(
                "the estimate of {usd}{what} is above the default cap of {cap}: set --max-cost, or --yes to start and pause at the cap"
            )));
        }
        return Ok(());
    }
    if expected > CONFIRM_ABOVE_USD {
        out::note(&format!("this run is estimated at {usd}{what} (cap {cap}). Start it? [y/N]"));
        // Ctrl-C is heard meanwhile
        let line = tokio::task::spawn_blocking(|| std::io::stdin().lines().next().and_then(Result::ok)).await;
        let line = line.ok().flatten().unwrap_or_default();
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

/// The one line that uses a key which was found but not used, for runs that one short line describes.
fn next_step(app: &App, spec: &RunSpec) -> Option<String> {
    let uses_models = spec.answerer.is_remote() || spec.judges.iter().any(ModelSpec::is_remote);
    let plain = PRESETS.contains(&spec.sample.preset.as_str())
        && spec.sample.max_sessions.is_none()
        && spec.dataset.path.is_none()
        && !spec.dataset.modified
        && !spec.system.settings.contains_key(ADAPTER);
    (plain && !uses_models && app.has_openai_key()).then(|| {
        let (usd, minutes) = RunEstimate::with_a_small_model(spec);
        format!(
            "an OpenAI key is set; with a real answerer and judge (about ${usd:.2}, {minutes:.0} min):\n  bench-coord submit --dataset {} --preset {} --system {} --answerer openai:gpt-4o-mini --judge openai:gpt-4o-mini",
            spec.dataset.name, spec.sample.preset, spec.system.name
        )
    })
}

/// States from which `resume` goes on by itself.
pub(super) const RESUMABLE: [RunState; 2] = [RunState::Running, RunState::Paused];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p13_a_run_of_an_earlier_release_says_why_it_is_not_gone_on_with() {
        assert!(lacks_start("\"1+0a1b2c3d\"", "\"1+0a1b2c3d+start.ffeeddcc\""));
        assert!(!lacks_start("\"1+0a1b2c3d\"", "\"1+99999999+start.ffeeddcc\""), "more has changed");
        assert!(
            !lacks_start("\"1+0a1b2c3d+start.11111111\"", "\"1+0a1b2c3d+start.ffeeddcc\""),
            "something else is started"
        );
        assert!(!lacks_start("\"1.0.0\"", "\"1.1.0\""));
    }
}
