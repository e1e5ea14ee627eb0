//! A run goes on where it stopped; nothing that is stored is done again. `resume`, `retry` and a submit that attaches come
//! through here.

use std::{collections::BTreeMap, sync::Arc};

use bench_proto::{call::Phase, ids::RunNo, money::PicoUsd, spec::Limits, stop::Looks, usage_cap::UsageCap};
use bench_store::{Right, RunRow, RunState, Store};

use crate::{
    app::App,
    cli::{LimitArgs, OutputArgs, ResumeArgs},
    exit::{CliError, CliResult},
    out,
    planning::{archived, filled::paused_filler, parse_usd, planner::Planner},
    results,
    runs::{
        carry_out::carry_out, controls, elsewhere, ending::finish, execution::Execution, executor::RunExecutor,
        local::end_dead_sessions, missing_plan::planner_if_missing, start::check_detach, takers::check_allowed,
        taking_up::take_up,
    },
    standing::{Standing, check_banks, check_whole, is_restored, keeps_banks, latency::all_ended, outages},
};

/// Goes on with a run, or prints the result of one that is finished.
///
/// # Errors
/// Exit 2 when another process owns it or it was cancelled without `--reopen`.
pub(crate) async fn resume(app: &App, store: Arc<dyn Store>, run: RunRow, args: &ResumeArgs) -> CliResult {
    check_detach(args.detach, app.deployment()?)?;
    if args.release_uncertain {
        store.may(Right::Results).await?;
    }
    let before = run.looks.clone();
    let run = if args.no_stop { to_the_end(app, store.as_ref(), run).await? } else { run };
    // one that has stopped early goes on with what it has left out
    let goes_on = run.spec.stop.is_some() && !all_ended(&run);
    // a measured run goes on with the controls that have not ended
    let mut controls = controls::going_on(store.as_ref(), run.run_no, args.reopen).await?;
    match run.state {
        RunState::Finished if controls.is_empty() && !goes_on => {
            if args.release_uncertain {
                release_uncertain(app, store.as_ref(), std::slice::from_ref(&run), &[]).await?;
            }
            let (json, folder) = (args.output.json, args.output.output_dir.as_deref());
            return finish(app, store.as_ref(), run.run_no, json, folder).await;
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
    if let Some(why) = paused_filler(store.as_ref(), &run).await? {
        return Err(CliError::usage(format!("{}: {why}", run.run_id)));
    }
    results::check_run_folder(app, &run.run_id, args.output.output_dir.as_deref())?;
    let limits = NewLimits::from_flags(app, &args.limits);
    let (executor, planner) = make_ready(app, store.as_ref(), &run, &limits).await?;
    if run.looks != before {
        keep_looks(store.as_ref(), &run, &before).await?;
    }
    for control in &controls {
        change_limits(store.as_ref(), control, &limits).await?;
    }
    if args.release_uncertain {
        release_uncertain(app, store.as_ref(), std::slice::from_ref(&run), &[run.run_no]).await?;
    }
    controls::reopen(store.as_ref(), &mut controls).await?;
    let execution = Execution { app, store: &store, run: &run, executor: &executor, planner, planned: None };
    if run.state == RunState::Running && executor.is_cluster() {
        // it goes on without anybody's help: attach to it
        return go_on(execution, args.detach, &args.output).await;
    }
    if executor.is_cluster() {
        controls::start_beside(store.as_ref(), &run, &controls).await?;
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
    go_on(execution, args.detach, &args.output).await
}

/// A run as it is when it asks all of its questions, whatever its looks say. Nothing is written here: what still refuses it must
/// leave the run as it is ([`keep_looks`]).
///
/// # Errors
/// Exit 2 for a run without a rule, and as [`check_goes_on`].
async fn to_the_end(app: &App, store: &dyn Store, run: RunRow) -> Result<RunRow, CliError> {
    if run.spec.stop.is_none() {
        return Err(CliError::usage(format!(
            "--no-stop: run {} asks all of its questions anyway: it was submitted without --stop-when; leave it out",
            run.run_id
        )));
    }
    // also one that has ended asks again from here on
    check_goes_on(app, store, &run).await?;
    check_can_recall(store, &run).await?;
    let looks = Looks { to_the_end: true, ..run.looks.clone() };
    Ok(RunRow { looks, ..run })
}

/// Refuses more questions of a run that came from an archive without the banks that they would be asked of: a bank that nobody has filled
/// holds nothing, and every recall from it would find that.
///
/// # Errors
/// Exit 2 with what to do.
async fn check_can_recall(store: &dyn Store, run: &RunRow) -> Result<(), CliError> {
    if !keeps_banks(&run.spec) || run.spec.taken_over.asks_filled_banks() || !is_restored(store, run).await? {
        return Ok(());
    }
    Err(CliError::usage(format!(
        "--no-stop: run {} came from an archive, and what {} had stored for it did not come along: submit it anew without --stop-when, or \
         go on with it where it was made",
        run.run_id, run.spec.system.name
    )))
}

/// Writes the looks that a run goes on by, when nothing can refuse it any more.
///
/// # Errors
/// Infrastructure where somebody has looked meanwhile.
async fn keep_looks(store: &dyn Store, run: &RunRow, before: &Looks) -> Result<(), CliError> {
    if store.set_looks(run.run_no, before, &run.looks).await? {
        return Ok(());
    }
    Err(CliError::infrastructure(format!(
        "another process has just decided by --stop-when whether run {} goes on, and nothing was changed: give the same command again",
        run.run_id
    )))
}

/// Refuses to ask more questions of a run that is there in part, whose memory system may not be asked here, or whose banks were
/// removed.
///
/// # Errors
/// Exit 2 with what to do.
pub(crate) async fn check_goes_on(app: &App, store: &dyn Store, run: &RunRow) -> Result<(), CliError> {
    check_whole(store, run).await?;
    check_allowed(app, store, run).await?;
    archived::check_here(&app.home(), run)?;
    check_banks(store, run).await
}

/// What a run needs to go on: whoever executes it, and what writes the rest of its plan. Everything that could refuse is found
/// here, before the run's state is touched; its limits are changed.
///
/// # Errors
/// Exit 2 with what stands in the way.
pub(crate) async fn make_ready(
    app: &App,
    store: &dyn Store,
    run: &RunRow,
    limits: &NewLimits,
) -> Result<(RunExecutor, Option<Planner>), CliError> {
    if run.state != RunState::Finished {
        check_goes_on(app, store, run).await?;
    }
    app.check_queue().await?;
    app.check_run_accounts(&run.spec)?;
    let executor = RunExecutor::for_run(app, &run.run_id)?;
    executor.check_domain(run)?;
    let planner = planner_if_missing(app, store, run).await?;
    change_limits(store, run, limits).await?;
    outages::probe_now(store, run).await?;
    Ok((executor, planner))
}

/// Executes a run that was put into state `running`, and prints what came of it.
///
/// # Errors
/// As [`carry_out`].
pub(crate) async fn go_on(execution: Execution<'_>, detach: bool, output: &OutputArgs) -> CliResult {
    let (app, store) = (execution.app, execution.store);
    let row = store.run(execution.run.run_no).await?;
    let (all, ended) = (row.sample_size(), u64::try_from(row.counters.ended()).unwrap_or(0));
    out::note(&format!("run {}: {} of {all} questions to go", row.run_id, all.saturating_sub(ended)));
    elsewhere::tell(app, store.as_ref(), &[&row]).await?;
    carry_out(Execution { run: &row, ..execution }, detach, output).await
}

/// Another cap, of the unit that the run has counted until now.
fn change_cap(limits: &mut Limits, text: &str, run: &RunRow) -> Result<(), CliError> {
    let (given, had) = (UsageCap::parse(text), limits.max_usage);
    match (given, had) {
        (Some(cap), Some(before)) if cap.unit == before.unit => limits.max_usage = Some(cap),
        (None, None) => limits.max_cost = Some(parse_usd("--max-cost", text)?),
        (_, before) => {
            let unit = before.map_or("dollars", |cap| cap.unit.name());
            return Err(CliError::usage(format!(
                "--max-cost {text}: run {} has counted {unit} until now, and cannot be capped in anything else; give {unit}",
                run.run_id.0
            )));
        }
    }
    Ok(())
}

/// What a command says of the limits of a run that goes on.
#[derive(Debug, Clone, Default)]
pub(crate) struct NewLimits {
    /// Caps and bounds that the command names.
    pub(crate) flags: LimitArgs,
    /// `run.max_cost_PHASE` of its settings.
    pub(crate) by_phase: BTreeMap<Phase, PicoUsd>,
}

impl NewLimits {
    /// As flags and the settings of a process say.
    pub(crate) fn from_flags(app: &App, flags: &LimitArgs) -> Self {
        Self { flags: flags.clone(), by_phase: app.settings().run.max_cost_by_phase.clone() }
    }
}

/// Gives a run the limits that a command names; all others stay what they are.
///
/// # Errors
/// Exit 2 for a cap in another unit.
pub(crate) async fn change_limits(store: &dyn Store, run: &RunRow, new: &NewLimits) -> Result<(), CliError> {
    let (flags, mut limits) = (&new.flags, run.spec.limits.clone());
    if let Some(text) = &flags.max_cost {
        change_cap(&mut limits, text, run)?;
    }
    if let Some(text) = &flags.max_cost_per_day {
        if let Some(cap) = limits.max_usage {
            return Err(CliError::usage(format!(
                "--max-cost-per-day is in dollars, and run {} is capped in {}: leave it out",
                run.run_id.0,
                cap.unit.name()
            )));
        }
        limits.max_cost_per_day = Some(parse_usd("--max-cost-per-day", text)?);
    }
    limits.max_cost_by_phase.extend(new.by_phase.clone());
    limits.max_rpm = flags.max_rpm.or(limits.max_rpm);
    limits.max_tpm = flags.max_tpm.or(limits.max_tpm);
    limits.concurrency = flags.concurrency.or(limits.concurrency);
    limits.outage_timeout_s = flags.outage_timeout.or(limits.outage_timeout_s);
    limits.retries = flags.retries.unwrap_or(limits.retries);
    if limits != run.spec.limits {
        store.set_limits(run.run_no, &limits).await?;
    }
    Ok(())
}

/// Takes what uncertain attempts of runs and of their controls may have cost out of what counts against the cap. Of those that are
/// not `ours`, what somebody else may be at work on is left.
///
/// # Errors
/// What the store meets.
pub(crate) async fn release_uncertain(
    app: &App,
    store: &dyn Store,
    runs: &[RunRow],
    ours: &[RunNo],
) -> Result<(), CliError> {
    let (mut released, mut is_made_anew) = (PicoUsd::default(), false);
    for run in runs {
        let controls = controls::all(store, run.run_no).await?;
        for run in std::iter::once(run).chain(&controls) {
            let owned = match ours.contains(&run.run_no) {
                true => None,
                false => Some(RunExecutor::for_run(app, &run.run_id)),
            };
            if !matches!(owned, Some(Err(_))) {
                // a killed owner's reservations become uncertain when its session ends
                end_dead_sessions(store, run.run_no).await?;
                released = released.saturating_add(store.release_uncertain(run.run_no).await?);
                // not by dollars: calls of no known price are released too
                if !is_made_anew && run.state == RunState::Finished {
                    is_made_anew = store.run(run.run_no).await?.result_version != run.result_version;
                }
            }
        }
    }
    let report = if is_made_anew { "; the report of a run that has ended is made anew" } else { "" };
    out::note(&format!("{released} of uncertain attempts no longer count against the cap{report}"));
    Ok(())
}
