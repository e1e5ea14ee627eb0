//! `meter`: lets memory systems' own calls through for runs of a cluster, and tells the address of a run's meter (P34).

#[cfg(feature = "cluster")]
use std::{sync::Arc, time::Duration};

#[cfg(feature = "cluster")]
use bench_proto::CLUSTER_DOMAIN;
use bench_proto::ids::RunId;
#[cfg(feature = "cluster")]
use bench_store::Right;
use bench_store::{RunRow, RunState};
use bench_worker::meter_place::MeterPlace;
#[cfg(feature = "cluster")]
use bench_worker::{
    engine::{Worker, WorkerConfig},
    environment::{Rights, traced_environment, usable_accounts},
    traces::ProcessTelemetry,
    transport,
};
use serde_json::json;

use crate::{
    app::App,
    cli::{MeterRoleArgs, MeterVerb},
    exit::{CliError, CliResult, Exit},
    out,
    standing::{find_run, group::RunsOfGroup, look_for_run, own_meter::OwnMeter},
};

/// Longest wait for requests in flight after a stop: it has nothing else to end, and a memory system's call may take its minute.
#[cfg(feature = "cluster")]
const DRAIN: Duration = Duration::from_secs(60);
/// Name of the service at a collector.
#[cfg(feature = "cluster")]
const SERVICE: &str = "bench-meter";
/// Pool of its session: no run is planned for it, since it takes no task.
#[cfg(feature = "cluster")]
const POOL: &str = "meter";

/// Tells an address, or lets calls through until a signal comes.
pub(super) async fn run(app: &App, args: &MeterRoleArgs) -> CliResult {
    match &args.verb {
        Some(MeterVerb::Url { run, json }) => url(app, run, *json).await,
        None => serve(app, args).await,
    }
}

/// Prints where a memory system that nobody starts reaches the meter for a run, and with which key.
async fn url(app: &App, run: &str, as_json: bool) -> CliResult {
    let found = found(app, run).await?;
    let goes_on = |run: &RunRow| matches!(run.state, RunState::Running | RunState::Paused);
    let can_be_resumed = found.as_ref().is_some_and(goes_on);
    let run_id = match found {
        Some(run) if run.spec.limits.meter.is_none() => {
            return Err(CliError::usage(format!("run {} is not metered: submit it with --meter", run.run_id)));
        }
        Some(run) => run.run_id,
        None => {
            let id = RunId::parse(run).map_err(CliError::usage_of)?;
            out::note(&format!(
                "there is no run {id} yet: this is where it will be metered, submit it with --run-id {id} --meter"
            ));
            id
        }
    };
    let place = MeterPlace::of_settings(app.settings()).map_err(|failure| CliError::usage(failure.message))?;
    if place.is_unnamed() {
        let listen = &app.settings().meter.listen;
        return Err(CliError::usage(format!(
            "the meter listens at {listen}, which is every address of its machine and none that others reach: set meter.url (or \
             BENCH_METER_PUBLIC_URL) to the base URL by which memory systems reach it, such as http://meter.example:7070"
        )));
    }
    let OwnMeter { address, key } = match place.told() {
        Some(meter) => OwnMeter { address: place.address_of(&meter, &run_id), key: place.key_of(&run_id) },
        None => app.store_file().and_then(|file| OwnMeter::find(&file, &run_id)).ok_or_else(|| {
            let resumed = match can_be_resumed {
                true => format!(" (`bench-coord resume {run_id}` goes on with it)"),
                false => String::new(),
            };
            CliError::usage(format!(
                "the address of the meter is drawn anew by each process, and so are its keys: ask while one works on run {run_id} on this \
                 machine{resumed}; or set meter.listen to an address with a port (or meter.url), and BENCH_METER_SECRET, here and where \
                 runs are worked on"
            ))
        })?,
    };
    if as_json {
        out::json(&json!({
            "run": run_id.0,
            "url": format!("{address}/v1"),
            "anthropic_url": address,
            "key": key,
            "bank_url": format!("{address}/BANK/GENERATION/v1"),
        }));
    } else {
        out::result(&format!(
            "OPENAI_BASE_URL={address}/v1\nOPENAI_API_KEY={key}\nANTHROPIC_BASE_URL={address}\nANTHROPIC_API_KEY={key}"
        ));
        out::note("the key opens this run's part of the meter and no provider");
    }
    Ok(Exit::Done)
}

/// The run that a word stands for; `None` where there is none yet, or no store.
async fn found(app: &App, run: &str) -> Result<Option<RunRow>, CliError> {
    if app.store_file().is_some_and(|file| !file.exists()) {
        return Ok(None);
    }
    let store = app.open_store().await?;
    match look_for_run(store.as_ref(), run).await? {
        None if RunsOfGroup::find(store.as_ref(), run).await?.is_none() => Ok(None),
        // a group is told to be none
        None => find_run(store.as_ref(), run).await.map(Some),
        found => Ok(found),
    }
}

#[cfg(not(feature = "cluster"))]
async fn serve(_: &App, _: &MeterRoleArgs) -> CliResult {
    Err(CliError::usage("this build works on one machine, where each run has its meter with it"))
}

/// A worker without slots: it takes no task, and meters every run that it is asked for.
#[cfg(feature = "cluster")]
async fn serve(app: &App, args: &MeterRoleArgs) -> CliResult {
    use crate::app::Deployment;
    if app.deployment()? != Deployment::Cluster {
        return Err(CliError::usage(
            "meter serves runs over many machines: give --store postgres://… and --queue amqp://…; a run on one machine has its meter \
             with it",
        ));
    }
    let settings = app.settings();
    let store = app.open_store().await?;
    store.may(Right::Work).await?;
    transport::warn(settings, transport::to_meter(settings));
    let rights = Rights::of_worker(settings);
    let accounts = usable_accounts(settings);
    let mut environment =
        traced_environment(settings, accounts, rights, None).map_err(|f| CliError::usage(f.message))?;
    if let Some(environment) = Arc::get_mut(&mut environment) {
        environment.meter.end_within(DRAIN);
        if let Some(listen) = &args.listen {
            environment.meter.listen_at(listen);
        }
    }
    if !environment.meter.is_shared() {
        return Err(CliError::usage(
            "BENCH_METER_SECRET is not set: workers and meters make the keys of runs of the same secret, so give all of them one",
        ));
    }
    let host = bench_settings::host_name();
    let name = format!("meter-{host}-{}", std::process::id());
    let telemetry = ProcessTelemetry::start(settings, SERVICE, &name, None).map_err(|f| CliError::usage(f.message))?;
    let config = WorkerConfig {
        name,
        domain: CLUSTER_DOMAIN.to_owned(),
        pool: POOL.to_owned(),
        host,
        slots: Vec::new(),
        drain: DRAIN,
        bank_bytes: settings.worker.bank_bytes(),
    };
    let queue = bench_queue::connect("memory:").await.map_err(CliError::infrastructure_of)?;
    let worker = Worker::start(config, environment, Arc::clone(&store), queue, Arc::default()).await?;
    let address = worker.listen_for_systems().await.map_err(|failure| CliError::infrastructure(failure.message))?;
    out::note(&format!("meter of {}, for memory systems at {address}", store.describe()));
    let outcome = until_stopped(app, worker).await;
    telemetry.close().await;
    outcome
}

/// Lets calls through until a signal or a broken store ends it; those in flight come to their end, unless a second signal comes.
#[cfg(feature = "cluster")]
async fn until_stopped(app: &App, worker: Worker) -> CliResult {
    let stopping = || out::note("stopping: no request is taken, those in flight finish; a second signal drops them");
    let reason = worker.work_until_stopped(app.interrupts(), stopping).await;
    reason.map_or(Ok(Exit::Done), |reason| Err(CliError::infrastructure(reason)))
}
