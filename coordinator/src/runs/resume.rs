//! A run goes on where it stopped; nothing that is stored is done again. `resume`, `retry` and a submit that attaches come
//! through here.

use std::{collections::BTreeMap, sync::Arc};

use bench_proto::{call::Phase, ids::RunNo, money::PicoUsd, spec::Limits, stop::Looks, usage_cap::UsageCap};
use bench_store::{Plan, Right, RunRow, RunState, Store};

use crate::{
    app::{App, Deployment},
    cli::{LimitArgs, OutputArgs, ResumeArgs, SampleArgs},
    exit::{CliError, CliResult},
    out,
    planning::{
        accounts, archived, banks_in_order, filled::paused_filler, open_dataset, parse_usd, planner::Planner,
        take_rounds, take_sample, with_label_fixes,
    },
    results,
    runs::{
        client::has_planner,
        controls, elsewhere,
        ending::{finish, show_ending},
        execution::Execution,
        executor::RunExecutor,
        fork::adopt::adopt_again,
        local::end_dead_sessions,
        start::check_detach,
        takers::check_allowed,
    },
    standing::{Standing, check_banks, check_whole, latency::all_ended, outages},
};

/// States from which a run goes on by itself.
const RESUMABLE: [RunState; 2] = [RunState::Running, RunState::Paused];

/// Goes on with a run, or prints the result of one that is finished.
///
/// # Errors
/// Exit 2 when another process owns it or it was cancelled without `--reopen`.
pub(crate) async fn resume(app: &App, store: Arc<dyn Store>, run: RunRow, args: &ResumeArgs) -> CliResult {
    check_detach(args.detach, app.deployment()?)?;
    if args.release_uncertain {
        store.may(Right::Results).await?;
    }
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
    let limits = NewLimits::of(app, &args.limits);
    let (executor, planner) = make_ready(app, store.as_ref(), &run, &limits).await?;
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

/// Lets a run ask all of its questions, whatever its looks say.
async fn to_the_end(app: &App, store: &dyn Store, run: RunRow) -> Result<RunRow, CliError> {
    if run.spec.stop.is_none() {
        return Err(CliError::usage(format!(
            "--no-stop: run {} asks all of its questions anyway: it was submitted without --stop-when; leave it out",
            run.run_id
        )));
    }
    // also one that has ended asks again from here on
    check_goes_on(app, store, &run).await?;
    let looks = Looks { to_the_end: true, ..run.looks.clone() };
    if run.looks != looks && !store.set_looks(run.run_no, &run.looks, &looks).await? {
        let run_id = run.run_id;
        return Err(CliError::infrastructure(format!("run {run_id} is being looked at just now: try again")));
    }
    Ok(store.run(run.run_no).await?)
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

/// Puts a run that nobody works on into state `running`, from the states of [`RESUMABLE`] and `more`; false when somebody else
/// has brought it to another state just now.
///
/// # Errors
/// What the store meets.
pub(crate) async fn take_up(store: &dyn Store, run: &RunRow, more: &[RunState]) -> Result<bool, CliError> {
    pause_interrupted(store, run).await?;
    store.release_holds(run.run_no, &accounts(&run.spec)).await?;
    let from: Vec<RunState> = RESUMABLE.iter().chain(more).copied().collect();
    Ok(store.set_run_state(run.run_no, &from, RunState::Running, None).await?)
}

/// Pauses a run whose owner was killed, as of its last result: the lock is ours, so nobody else can be at work.
///
/// # Errors
/// What the store meets.
pub(crate) async fn pause_interrupted(store: &dyn Store, run: &RunRow) -> Result<(), CliError> {
    if run.state == RunState::Running {
        store.close_lost_interval(run.run_no).await?;
        store.set_run_state(run.run_no, &[RunState::Running], RunState::Paused, Some("interrupted")).await?;
    }
    Ok(())
}

/// Executes a run that was put into state `running`, and prints what came of it.
///
/// # Errors
/// As [`show_ending`], and with `detach` as [`Execution::leave_to_cluster`].
pub(crate) async fn go_on(execution: Execution<'_>, detach: bool, output: &OutputArgs) -> CliResult {
    let (app, store) = (execution.app, execution.store);
    let row = store.run(execution.run.run_no).await?;
    let (all, ended) = (row.sample_size(), u64::try_from(row.counters.ended()).unwrap_or(0));
    out::note(&format!("run {}: {} of {all} questions to go", row.run_id, all.saturating_sub(ended)));
    elsewhere::tell(app, store.as_ref(), &[&row]).await?;
    let execution = Execution { run: &row, ..execution };
    if detach {
        return execution.leave_to_cluster(output.json).await;
    }
    let end = execution.execute_to_rest(output).await?;
    show_ending(app, store.as_ref(), &row, end, output).await
}

/// The rest of a run's plan, when it has to be written and nobody does.
///
/// # Errors
/// As [`planner_of`].
pub(crate) async fn planner_if_missing(
    app: &App,
    store: &dyn Store,
    run: &RunRow,
) -> Result<Option<Planner>, CliError> {
    if run.planned || (app.deployment()? == Deployment::Cluster && has_planner(store, run.run_no).await?) {
        return Ok(None);
    }
    if adopt_again(app, store, run).await? {
        return Ok(None);
    }
    planner_of(app, store, run).await.map(Some)
}

/// A run that was killed while its plan was being written needs its dataset again; the sample must be the same.
///
/// # Errors
/// Exit 2 when the dataset is another one now.
async fn planner_of(app: &App, store: &dyn Plan, run: &RunRow) -> Result<Planner, CliError> {
    let (spec, lies) = (&run.spec, app.dataset_lies());
    let args = SampleArgs {
        dataset_path: lies.path.clone().or_else(|| spec.dataset.path.clone()),
        allow_modified_dataset: lies.allow_modified || spec.dataset.modified,
        ..SampleArgs::default()
    };
    let dataset = open_dataset(app, &spec.dataset.name, &args, spec.dataset.settings.clone()).await?;
    let fixes = spec.dataset.label_fixes.as_ref();
    let (dataset, found) = with_label_fixes(
        app,
        fixes.map(|fixes| fixes.name.as_str()),
        dataset,
        fixes.is_some_and(|fixes| fixes.modified),
    )
    .await?;
    if found.as_ref() != fixes {
        return Err(CliError::usage(format!(
            "the label fixes found now are not those that run {} began with; give the same file",
            run.run_id
        )));
    }
    let request = serde_json::from_value(spec.sample.request.clone())
        .map_err(|e| CliError::infrastructure(format!("the run's sample request cannot be read: {e}")).because(e))?;
    let sample = take_sample(&dataset, request).await?;
    check_same(run, dataset.sha256(), &sample.spec.signature)?;
    let rounds = match &spec.stop {
        Some(_) => Some(Arc::new(take_rounds(&dataset, &sample).await?)),
        None => None,
    };
    let done = store.banks(run.run_no, None).await?.len();
    let banks = banks_in_order(&sample);
    Ok(Planner {
        run: run.run_no,
        home: app.home(),
        dataset,
        banks,
        spec: Arc::new(spec.clone()),
        rounds,
        done: u32::try_from(done).unwrap_or(u32::MAX),
        waits: true,
    })
}

/// Whether a plan goes on with the questions that it began with.
///
/// # Errors
/// Exit 2 when the dataset is another one now, or another sample is taken of it.
fn check_same(run: &RunRow, sha256: &str, signature: &str) -> Result<(), CliError> {
    let RunRow { run_id, spec, .. } = run;
    if sha256 != spec.dataset.sha256 {
        return Err(CliError::usage(format!(
            "the dataset found now is not the one that run {run_id} began with (sha256 {} then); give the same file with --dataset-path",
            spec.dataset.sha256
        )));
    }
    if signature != spec.sample.signature {
        return Err(CliError::usage(format!(
            "this release takes another sample for the request of run {run_id}, of the same dataset: start the run anew, or finish it \
             with the release that began it"
        )));
    }
    Ok(())
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
    /// Flags.
    pub(crate) flags: LimitArgs,
    /// `run.max_cost_PHASE` of its settings.
    pub(crate) by_phase: BTreeMap<Phase, PicoUsd>,
}

impl NewLimits {
    /// As flags and the settings of a process say.
    pub(crate) fn of(app: &App, flags: &LimitArgs) -> Self {
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
    let mut released = PicoUsd::default();
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
            }
        }
    }
    out::note(&format!("{released} of uncertain attempts no longer count against the cap"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use bench_store::conformance::{created, new_run, store_in};

    use super::*;

    #[tokio::test]
    async fn another_dataset_and_another_sample_of_the_same_one_are_told_apart() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store_in(folder.path()).await;
        let run = created(store.as_ref(), &new_run("a")).await;
        let (sha256, signature) = (run.spec.dataset.sha256.as_str(), run.spec.sample.signature.as_str());
        assert!(check_same(&run, sha256, signature).is_ok());
        for (found, signature) in [("other", signature), ("other", "other")] {
            let said = check_same(&run, found, signature).expect_err("is another dataset").message;
            assert!(said.contains("--dataset-path") && said.contains(sha256), "{said}");
        }
        let said = check_same(&run, sha256, "other").expect_err("is another sample").message;
        assert!(said.contains("another sample") && !said.contains("--dataset-path"), "{said}");
    }
}
