//! The side of `submit`, `resume` and `watch` of a run that a cluster executes: it writes the plan, looks on, and may leave
//! at any time (P30).

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bench_proto::{CLUSTER_DOMAIN, ids::RunNo, session::SessionInfo};
use bench_settings::signals::Interrupts;
use bench_store::{Renewal, RunRow, SessionId, SessionRow, Sessions, Store, StoreError};
use bench_telemetry::outage;
use bench_worker::version::VERSION;
use tokio::{sync::Notify, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::{
    exit::CliError,
    out,
    planning::planner::{Ahead, Planner},
    runs::ending::RunEnd,
    standing::{domains::planner_domain, row_of},
};

/// How often the run's row is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// How often it is checked that a coordinator and workers are there.
const LOOK_FOR_WORKERS: Duration = Duration::from_secs(2);
/// How long a run may be without a coordinator or workers before the person is told.
const SAY_AFTER: Duration = Duration::from_secs(4);
/// What nobody but a client can do.
const INCOMPLETE: &str = "its plan is incomplete, `resume` writes the rest";
/// How often the session of a plan's writer is renewed (P4).
const RENEW_EVERY: Duration = Duration::from_secs(2);

/// Writes the plan of a run under a session, so that others can see whether somebody does.
pub(crate) fn spawn_planner(store: Arc<dyn Store>, mut planner: Planner) -> JoinHandle<Result<(), CliError>> {
    tokio::spawn(async move {
        let info = SessionInfo::of_this_process(VERSION, "", Default::default(), "").to_json();
        let session = store.open_session("planner", &planner_domain(planner.run), &info).await?;
        let mut counter = 0;
        let written = loop {
            match write_plan(&store, &planner, session, &mut counter).await {
                // rows that were written before may be forgotten (P44)
                Ok(true) => planner.done = 0,
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        if let Err(error) = store.close_session(session).await {
            warn!(code = "store", "the plan's session could not be ended: {error}");
        }
        written
    })
}

/// Writes a plan, and renews its session. True when the store went back in time meanwhile.
async fn write_plan(
    store: &Arc<dyn Store>,
    planner: &Planner,
    session: SessionId,
    counter: &mut i64,
) -> Result<bool, CliError> {
    let writing = planner.run(Arc::clone(store), Arc::new(Notify::new()), CancellationToken::new(), Ahead::Unbounded);
    tokio::pin!(writing);
    let (mut waiting, mut went_back) = (None, false);
    loop {
        tokio::select! {
            written = &mut writing => return written.map(|()| went_back),
            () = tokio::time::sleep(RENEW_EVERY) => {
                // an ended session only means that somebody may think nobody writes: planning twice makes the same rows
                match store.renew_session(session, None).await {
                    Err(error) if error.is_transient() => outage::STORE.met(&mut waiting, &error),
                    Err(error) => warn!(code = "store", "the plan's session could not be renewed: {error}"),
                    Ok(Renewal::Alive(told)) => {
                        went_back |= told.counter <= *counter;
                        (waiting, *counter) = (None, told.counter);
                    }
                    Ok(Renewal::Unknown) => (waiting, went_back) = (None, true),
                    Ok(Renewal::Ended) => waiting = None,
                }
            }
        }
    }
}

/// Whether somebody writes the plan of a run.
///
/// # Errors
/// What the store meets.
pub(crate) async fn has_planner(store: &dyn Sessions, run: RunNo) -> Result<bool, StoreError> {
    Ok(store.open_sessions(&planner_domain(run)).await?.iter().any(SessionRow::is_alive))
}

/// Why nobody works on the runs of a pool, when that is so.
///
/// # Errors
/// What the store meets.
pub(crate) async fn who_is_missing(store: &dyn Store, pool: &str) -> Result<Option<String>, StoreError> {
    let leader = store.leader(CLUSTER_DOMAIN).await?;
    if leader.is_none_or(|leader| !leader.is_alive()) {
        return Ok(Some("no coordinator hands out tasks: start `bench-coord serve`".to_owned()));
    }
    let workers = store.open_sessions(CLUSTER_DOMAIN).await?;
    let serving = workers.iter().filter(|worker| worker.is_alive());
    if serving.map(|worker| SessionInfo::from_json(&worker.info_json)).any(|info| info.pool == pool) {
        return Ok(None);
    }
    Ok(Some(format!("no worker serves pool '{pool}': start `bench-worker --pool {pool}`")))
}

/// Follows a run until it comes to rest, nobody has worked for `patience`, or the person leaves.
///
/// # Errors
/// When the plan cannot be written or the store is broken.
pub(crate) async fn follow(
    store: &dyn Store,
    run: &RunRow,
    mut planning: Option<JoinHandle<Result<(), CliError>>>,
    patience: Duration,
    interrupts: &Interrupts,
) -> Result<RunEnd, CliError> {
    let (mut alive, mut looked, mut said) = (Instant::now(), None::<Instant>, false);
    let mut waiting = None;
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = interrupts.stop.cancelled() => return leave(run, planning, interrupts).await,
            planned = async { planning.as_mut().expect("guarded by the condition").await }, if planning.is_some() => {
                planning = None;
                planned.map_err(|e| CliError::infrastructure(format!("planning stopped: {e}")).because(e))??;
            }
        }
        let Some(row) = row_of(store, run.run_no, &mut waiting).await? else { continue };
        if let Some(end) = RunEnd::of_row(&row) {
            return Ok(end);
        }
        if looked.is_some_and(|looked| looked.elapsed() < LOOK_FOR_WORKERS) {
            continue;
        }
        looked = Some(Instant::now());
        match who_is_missing(store, &run.spec.limits.pool).await {
            Ok(None) => (alive, said) = (Instant::now(), false),
            Ok(Some(missing)) if alive.elapsed() >= patience => {
                let rest = if planning.is_some() { format!("; {INCOMPLETE}") } else { String::new() };
                return Ok(RunEnd::LeftRunning {
                    reason: format!("{missing} (waited {} s){rest}", patience.as_secs()),
                });
            }
            Ok(Some(missing)) if !said && alive.elapsed() >= SAY_AFTER => {
                said = true;
                out::note(&format!("waiting: {missing}"));
            }
            Ok(Some(_)) => {}
            // the run's row is read next, and says when the store is away
            Err(error) if error.is_transient() => {}
            Err(error) => warn!(code = "store", "workers could not be looked for: {error}"),
        }
    }
}

/// The person leaves: the cluster goes on, but only this process can write the rest of the plan.
async fn leave(
    run: &RunRow,
    planning: Option<JoinHandle<Result<(), CliError>>>,
    interrupts: &Interrupts,
) -> Result<RunEnd, CliError> {
    if let Some(planning) = planning {
        // of several runs that are left at once the first one tells
        if !interrupts.now.is_cancelled() {
            out::note(&match run.spec.taken_over.banks_of.first() {
                Some(of) => format!(
                    "waiting for the banks that run {of} fills and {} asks; Ctrl-C again leaves its plan incomplete",
                    run.run_id
                ),
                None => "writing the rest of the plan first; Ctrl-C again leaves it incomplete".to_owned(),
            });
        }
        tokio::select! {
            planned = planning => planned.map_err(|e| CliError::infrastructure(format!("planning stopped: {e}")).because(e))??,
            () = interrupts.now.cancelled() => {
                return Ok(RunEnd::LeftRunning { reason: INCOMPLETE.to_owned() });
            }
        }
    }
    Ok(RunEnd::LeftRunning { reason: "detached".to_owned() })
}
