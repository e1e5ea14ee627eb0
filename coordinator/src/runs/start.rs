//! Before a run starts: what is refused, and what the person is asked.

use bench_proto::{
    call::CacheScope,
    ids::RunId,
    spec::{ModelSpec, RunSpec},
};
use bench_store::{NewRun, Store};
use bench_systems::adapter::{self, given::Given};

use crate::{
    app::{App, Deployment, reach::look_first},
    cli::{NamingArgs, SubmitArgs},
    exit::CliError,
    out::{self, amounts::dollars},
    planning::{DEFAULT_CAP, self_check},
    runs::{controls::PlannedGroup, estimate::RunEstimate, executor::RunExecutor, stopping, takers::look_for_takers},
    standing::current_user,
};

/// Estimates above this are confirmed on a terminal.
const CONFIRM_ABOVE_USD: f64 = 5.0;

/// Refuses `--detach` where a run lives in the process that submitted it.
///
/// # Errors
/// Exit 2 with the reason.
pub(crate) fn check_detach(detach: bool, place: Deployment) -> Result<(), CliError> {
    if detach && place == Deployment::Local {
        return Err(CliError::usage(
            "--detach needs a cluster that works on the run: with the in-process queue memory: the run would end with this command; leave --detach out",
        ));
    }
    Ok(())
}

/// Plans the run of a command and its controls; what `submit` refuses by its flags, `estimate` does.
///
/// # Errors
/// As [`PlannedGroup::plan`] and [`stopping::plan`]; exit 2 for repeats that would be none.
pub(crate) async fn plan(app: &App, args: &SubmitArgs, will_call: bool) -> Result<PlannedGroup, CliError> {
    let mut planned = PlannedGroup::plan(app, args, will_call).await?;
    stopping::plan(app, args, &mut planned.measured).await?;
    if args.repeats.is_some_and(|n| n > 1) {
        prepare_repeats(args, &mut planned)?;
        check_meter_address(app, &[&planned.measured.spec], args.repeats.unwrap_or(1))?;
    }
    equal_votes(&planned.measured.spec).iter().for_each(|warning| out::note(warning));
    self_check::left_out(&planned.measured).await?.iter().for_each(|warning| out::note(warning));
    Ok(planned)
}

/// Makes of a planned run one that is repeated, or refuses.
///
/// # Errors
/// Exit 2 where a repeat would be answered from another one's stored calls.
pub(crate) fn prepare_repeats(args: &SubmitArgs, planned: &mut PlannedGroup) -> Result<(), CliError> {
    let PlannedGroup { measured, controls } = planned;
    if measured.spec.limits.cache == CacheScope::Shared {
        return Err(CliError::usage(
            "--repeats with --cache shared: a repeat would be given what another has stored, and is no draw of its own; leave --cache out",
        ));
    }
    if args.repeat_ingest && measured.spec.limits.cache == CacheScope::Lineage {
        // embeddings are shared by all runs otherwise, and a second filling would be the first
        for spec in std::iter::once(&mut measured.spec).chain(controls.iter_mut().map(|control| &mut control.spec)) {
            spec.limits.cache = CacheScope::Refresh;
        }
    }
    Ok(())
}

/// Refuses one address for the meters of several runs of this process: the second would wait for it until the first has ended.
///
/// # Errors
/// Exit 2 with what to leave out.
pub(crate) fn check_meter_address(app: &App, specs: &[&RunSpec], repeats: u32) -> Result<(), CliError> {
    let listen = &app.settings().meter.listen;
    let metered = specs.iter().filter(|spec| spec.limits.meter.is_some()).count();
    if metered * repeats as usize <= 1 || listen.ends_with(":0") || app.deployment()? == Deployment::Cluster {
        return Ok(());
    }
    Err(CliError::usage(format!(
        "meter.listen = \"{listen}\" is one address, and each metered run of this command listens at its own: leave meter.listen \
         out, or start the runs one after the other"
    )))
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
pub(crate) async fn confirm(estimate: &RunEstimate, spec: &RunSpec, args: &SubmitArgs) -> Result<(), CliError> {
    let (expected, what) = (estimate.expected_usd(), estimate.what());
    estimate.tell_old_prices();
    if let Some(cap) = spec.limits.max_usage {
        let unit = cap.unit.name();
        let used = estimate.used(cap.unit);
        if used > cap.most.unsigned_abs() {
            out::note(&format!(
                "the estimate of {used} {unit}{what} is above the cap of {cap}: the run will pause there and can be resumed"
            ));
        }
        if expected > 0.0 {
            let usd = dollars(expected);
            out::note(&format!(
                "the cap is in {unit}: the estimated {usd}{what} of models that have a price are not capped"
            ));
        }
        return Ok(());
    }
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
    if !out::can_ask() {
        if above {
            return Err(CliError::usage(format!(
                "the estimate of {usd}{what} is above the default cap of {cap}: set --max-cost, or --yes to start and pause at the cap"
            )));
        }
        return Ok(());
    }
    if expected > CONFIRM_ABOVE_USD
        && !out::ask(&format!("this run is estimated at {usd}{what} (cap {cap}). Start it?")).await
    {
        return Err(CliError::usage("not started; --yes starts without asking"));
    }
    Ok(())
}

/// Where the run's store is still to be made here: looks at whoever will be asked before, so that a run that cannot start leaves none.
/// Whether that was done.
///
/// # Errors
/// Exit 2 with whoever cannot be asked.
pub(crate) async fn look_before_store(app: &App, spec: &RunSpec) -> Result<bool, CliError> {
    let is_missing = app.store_file().is_some_and(|file| file.symlink_metadata().is_err());
    if is_missing {
        look_from_here(app, spec).await?;
    }
    Ok(is_missing)
}

/// Looks at whoever will be asked: servers of models and the memory system from here, unless that was done (`looked`), workers that
/// take the memory system in a cluster.
///
/// # Errors
/// Exit 2 with whoever cannot be asked, or does not take the system.
pub(crate) async fn check_servers(app: &App, store: &dyn Store, spec: &RunSpec, looked: bool) -> Result<(), CliError> {
    match app.deployment()? {
        Deployment::Local if looked => Ok(()),
        Deployment::Local => look_from_here(app, spec).await,
        Deployment::Cluster => {
            look_for_takers(store, spec).await?;
            // what its person has named may be cleaned up from here
            app.trust(&spec.system.settings, Some(&app.settings().run.system))
        }
    }
}

async fn look_from_here(app: &App, spec: &RunSpec) -> Result<(), CliError> {
    look_first(app, spec, true).await?;
    check_start(app, spec).await
}

/// Runs what a system that is started here wants checked before: who names it in this command lets it do what it does.
///
/// # Errors
/// Exit 2 with what the check says.
async fn check_start(app: &App, spec: &RunSpec) -> Result<(), CliError> {
    // the meter is not there yet, and no key but its own is for the system of a metered run
    let given = Given::before_the_meter(spec.limits.meter.as_ref().map(|meter| &meter.variables));
    let checked = adapter::check_start(&spec.system.settings, &given, &app.home()).await;
    checked.map_err(|why| CliError::usage(format!("{why}; nothing was started")))
}

/// A run of its own lineage and without controls, to be created under the names that were given.
#[must_use]
pub(crate) fn new_run(run_id: &RunId, naming: &NamingArgs, spec: RunSpec, executor: &RunExecutor) -> NewRun {
    NewRun {
        run_id: run_id.clone(),
        name: naming.name.clone(),
        tags: naming.tag.clone(),
        user: current_user(),
        spec,
        lineage: run_id.0.clone(),
        control_of: None,
        domain: executor.domain().to_owned(),
        imported: false,
        code_version: bench_worker::version::VERSION.to_owned(),
        group: None,
        waits: false,
        events: Vec::new(),
    }
}
