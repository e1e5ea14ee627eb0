//! The side of `submit`, `resume` and `watch` of a run that a cluster executes: it writes the plan, looks on, and may leave
//! at any time (P30).

use std::{
    collections::HashMap,
    future::{Future, pending},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use bench_proto::{
    CLUSTER_DOMAIN,
    ids::{Role, RunNo},
    session::SessionInfo,
};
use bench_settings::signals::Interrupts;
use bench_store::{OpenByRole, Renewal, RunRow, SessionId, SessionRow, Sessions, Store, StoreError};
use bench_telemetry::outage;
use bench_worker::version::VERSION;
use futures::{StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use tokio::{sync::Notify, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::{
    exit::CliError,
    out,
    planning::planner::{Ahead, Planner},
    runs::rest::RunEnd,
    standing::{
        domains::{planner_domain, workers_of},
        row_of,
    },
};

/// How often the run's row is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// Runs of one command after which their rows are looked at no more seldom.
const MOST_LOOKS: usize = 8;
/// How often it is checked that a coordinator and workers are there.
const LOOK_FOR_WORKERS: Duration = Duration::from_secs(2);
/// How long a run may be without a coordinator or workers before the person is told.
const SAY_AFTER: Duration = Duration::from_secs(4);
/// What is told is not told again so soon.
const TELL_AGAIN: Duration = Duration::from_secs(60);
/// Longest wait for the writer of a plan to end when this process leaves.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);
/// What nobody but a client can do.
pub(crate) const INCOMPLETE: &str = "its plan is incomplete, `resume` writes the rest";
/// How often the session of a plan's writer is renewed (P4).
const RENEW_EVERY: Duration = Duration::from_secs(2);

/// A plan that this process writes.
pub(crate) struct Planning {
    task: JoinHandle<Result<(), CliError>>,
    stop: CancellationToken,
}

impl Planning {
    /// Waits until it is written. Nobody waits for it again.
    ///
    /// # Errors
    /// What writing it met.
    pub(crate) async fn written(&mut self) -> Result<(), CliError> {
        let written = (&mut self.task).await;
        written.map_err(|e| CliError::internal_fault("writing the plan", e))?
    }

    /// Leaves the rest to somebody else, who sees at once that nobody writes it.
    pub(crate) async fn leave(self) {
        self.stop.cancel();
        // a store that is out of reach does not keep the person waiting
        let _ = tokio::time::timeout(LEAVE_WITHIN, self.task).await;
    }
}

/// Writes the plan of a run under a session, so that others can see whether somebody does.
pub(crate) fn spawn_planner(store: Arc<dyn Store>, mut planner: Planner) -> Planning {
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let task = tokio::spawn(async move {
        let info = SessionInfo::of_this_process(VERSION, "", Default::default(), "").to_json();
        let session = store.open_session("planner", &planner_domain(planner.run), &info).await?;
        let mut counter = 0;
        let written = loop {
            match write_plan(&store, &planner, &stopped, (session, &mut counter)).await {
                // rows that were written before may be forgotten (P44)
                Ok(true) if !stopped.is_cancelled() => planner.done = 0,
                Ok(_) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        if let Err(error) = store.close_session(session).await {
            warn!(code = "store", "the plan's session could not be ended: {error}");
        }
        written
    });
    Planning { task, stop }
}

/// Writes a plan, and renews its session. True when the store went back in time meanwhile.
async fn write_plan(
    store: &Arc<dyn Store>,
    planner: &Planner,
    stop: &CancellationToken,
    (session, counter): (SessionId, &mut i64),
) -> Result<bool, CliError> {
    let writing = planner.run(Arc::clone(store), Arc::new(Notify::new()), stop.clone(), Ahead::Unbounded);
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

/// How often those who write the plan of a run have renewed their sessions: a number that rises while one of them lives.
///
/// # Errors
/// What the store meets.
pub(crate) async fn renewals_of_planners(store: &dyn Sessions, run: RunNo) -> Result<i64, StoreError> {
    Ok(store.open_sessions(&planner_domain(run)).await?.iter().map(|session| session.counter).sum())
}

/// Why nobody works on the runs of a pool, or on those of their tasks that could be worked on now, when that is so.
///
/// # Errors
/// What the store meets.
pub(crate) async fn who_is_missing(
    store: &dyn Store,
    pool: &str,
    open: &OpenByRole,
) -> Result<Option<String>, StoreError> {
    let leader = store.leader(CLUSTER_DOMAIN).await?;
    if leader.is_none_or(|leader| !leader.is_alive()) {
        return Ok(Some("no coordinator hands out tasks: start `bench-coord serve`".to_owned()));
    }
    let workers = workers_of(store, pool).await?;
    if workers.is_empty() {
        return Ok(Some(format!("no worker serves pool '{pool}': start `bench-worker --pool {pool}`")));
    }
    let waits = open.iter().filter(|(_, tasks)| tasks.unpublished + tasks.queued > 0).map(|(role, _)| *role);
    let unserved = waits.filter(|role| workers.iter().all(|worker| worker.slots_of(pool, *role) == 0));
    let roles: Vec<&str> = unserved.map(Role::name).collect();
    if roles.is_empty() {
        return Ok(None);
    }
    Ok(Some(format!(
        "no worker of pool '{pool}' takes {} tasks: start `bench-worker --pool {pool} --roles {}`",
        roles.join(" or "),
        roles.join(",")
    )))
}

/// The same for one run.
async fn who_is_missing_of(store: &dyn Store, run: &RunRow) -> Result<Option<String>, StoreError> {
    // whether there are any is asked, not how many
    let open = store.open_tasks_of(&[run.run_no], 1).await?.remove(&run.run_no).unwrap_or_default();
    who_is_missing(store, &run.spec.limits.pool, &open).await
}

/// What writes the rest of a run's plan, where nobody does.
pub(crate) type MissingPlanner<'a> = dyn Fn(RunRow) -> BoxFuture<'a, Result<Option<Planner>, CliError>> + Sync + 'a;

/// How the runs of one command are followed while a cluster executes them.
pub(crate) struct Following<'a> {
    store: &'a Arc<dyn Store>,
    /// How long nobody may work on a run.
    patience: Duration,
    /// How often the row of each run is looked at.
    look: Duration,
    interrupts: Interrupts,
    /// What was told of any of them, and when.
    told: Mutex<HashMap<String, Instant>>,
}

impl<'a> Following<'a> {
    /// Of so many runs.
    pub(crate) fn new(store: &'a Arc<dyn Store>, runs: usize, patience: Duration, interrupts: &Interrupts) -> Self {
        // an error of one run ends all of them, and no other command of this process
        let interrupts = Interrupts { stop: interrupts.stop.child_token(), now: interrupts.now.child_token() };
        let look = LOOK * runs.clamp(1, MOST_LOOKS) as u32;
        Self { store, patience, look, interrupts, told: Mutex::default() }
    }

    /// Follows a run until it comes to rest, nobody has worked for as long as there is patience, or the person leaves. `missing` is
    /// asked for what writes the rest of its plan when nobody does.
    ///
    /// # Errors
    /// When the plan cannot be written or the store is broken.
    pub(crate) async fn follow(
        &self,
        run: &RunRow,
        mut planning: Option<Planning>,
        missing: &MissingPlanner<'_>,
    ) -> Result<RunEnd, CliError> {
        let store = self.store.as_ref();
        let (mut alive, mut looked, mut said) = (Instant::now(), None::<Instant>, false);
        let (mut waiting, mut leaves, mut unwritten) = (None, false, None);
        let end = loop {
            tokio::select! {
                () = tokio::time::sleep(self.look) => {}
                () = self.interrupts.stop.cancelled(), if !leaves => {
                    if planning.is_none() {
                        break left("detached");
                    }
                    leaves = true;
                    self.tell_of_leaving(run);
                }
                () = self.interrupts.now.cancelled(), if leaves => {
                    break left(if planning.is_some() { INCOMPLETE } else { "detached" });
                }
                written = written(&mut planning) => {
                    planning = None;
                    written?;
                }
            }
            let Some(row) = row_of(store, run.run_no, &mut waiting).await? else { continue };
            if let Some(end) = RunEnd::of_row(&row) {
                break end;
            }
            if leaves && planning.is_none() {
                break left("detached");
            }
            if looked.is_some_and(|looked| looked.elapsed() < LOOK_FOR_WORKERS) {
                continue;
            }
            looked = Some(Instant::now());
            if planning.is_none() && !row.planned {
                planning = self.take_over(&row, missing, &mut unwritten).await?;
            }
            match who_is_missing_of(store, run).await {
                Ok(None) => (alive, said) = (Instant::now(), false),
                Ok(Some(missing)) if alive.elapsed() >= self.patience => {
                    let rest = if row.planned { String::new() } else { format!("; {INCOMPLETE}") };
                    break left(&format!("{missing} (waited {} s){rest}", self.patience.as_secs()));
                }
                Ok(Some(missing)) if !said && alive.elapsed() >= SAY_AFTER => {
                    said = true;
                    self.tell(format!("waiting: {missing}"));
                }
                Ok(Some(_)) => {}
                // the run's row is read next, and says when the store is away
                Err(error) if error.is_transient() => {}
                Err(error) => warn!(code = "store", "workers could not be looked for: {error}"),
            }
        };
        if let Some(planning) = planning {
            planning.leave().await;
        }
        Ok(end)
    }

    /// Follows runs beside each other. What one of them meets is told at once: the others are left.
    ///
    /// # Errors
    /// What the first of them met.
    pub(crate) async fn side_by_side(
        &self,
        runs: impl IntoIterator<Item = impl Future<Output = Result<RunEnd, CliError>>>,
    ) -> Result<Vec<RunEnd>, CliError> {
        let mut runs: FuturesUnordered<_> = runs.into_iter().collect();
        let (mut ends, mut met) = (Vec::new(), None);
        while let Some(end) = runs.next().await {
            match end {
                Ok(end) => ends.push(end),
                Err(error) => {
                    self.interrupts.now.cancel();
                    self.interrupts.stop.cancel();
                    met.get_or_insert(error);
                }
            }
        }
        met.map_or(Ok(ends), Err)
    }

    /// Writes the rest of a plan whose writer is gone. `unwritten`: since when nobody was seen to write it; one look may fall between a
    /// writer and the next one.
    async fn take_over(
        &self,
        row: &RunRow,
        missing: &MissingPlanner<'_>,
        unwritten: &mut Option<Instant>,
    ) -> Result<Option<Planning>, CliError> {
        let is_written = match has_planner(self.store.as_ref(), row.run_no).await {
            Ok(is_written) => is_written,
            // the run's row is read next, and says when the store is away
            Err(error) if error.is_transient() => true,
            Err(error) => return Err(error.into()),
        };
        if is_written {
            *unwritten = None;
            return Ok(None);
        }
        if unwritten.get_or_insert_with(Instant::now).elapsed() < RENEW_EVERY {
            return Ok(None);
        }
        tokio::select! {
            planner = missing(row.clone()) => match planner {
                Ok(planner) => Ok(planner.map(|planner| spawn_planner(Arc::clone(self.store), planner))),
                // asked for again at a later look
                Err(error) if error.is_transient() => Ok(None),
                Err(error) => Err(error),
            },
            // the next look leaves
            () = self.interrupts.stop.cancelled() => Ok(None),
        }
    }

    /// The person leaves: the cluster goes on, but only this process can write the rest of the plan.
    fn tell_of_leaving(&self, run: &RunRow) {
        if self.interrupts.now.is_cancelled() {
            return;
        }
        self.tell(match run.spec.taken_over.banks_of.first() {
            Some(of) => format!(
                "waiting until run {of} has filled the banks that are asked here; Ctrl-C again leaves the plan incomplete"
            ),
            None => "writing the rest of the plan first; Ctrl-C again leaves it incomplete".to_owned(),
        });
    }

    /// Says once what is to be said of several runs.
    fn tell(&self, line: String) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.get(&line).is_none_or(|before| before.elapsed() >= TELL_AGAIN) {
            out::note(&line);
            told.insert(line, Instant::now());
        }
    }
}

/// Waits until a plan is written, where this process writes one.
async fn written(planning: &mut Option<Planning>) -> Result<(), CliError> {
    match planning {
        Some(planning) => planning.written().await,
        None => pending().await,
    }
}

fn left(reason: &str) -> RunEnd {
    RunEnd::LeftRunning { reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use bench_store::{NewRun, OpenTasks, conformance};
    use futures::FutureExt as _;

    use super::*;

    /// A run of a cluster whose plan is not written.
    async fn new_run(store: &dyn Store, id: &str) -> RunRow {
        let new = NewRun { domain: CLUSTER_DOMAIN.to_owned(), ..conformance::new_run(id) };
        conformance::created(store, &new).await
    }

    #[tokio::test]
    async fn a_plan_is_taken_over_when_its_writer_is_gone() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let run = new_run(store.as_ref(), "r").await;
        let writer = store.open_session("planner", &planner_domain(run.run_no), "{}").await.expect("begins");
        let following = Following::new(&store, 1, Duration::from_secs(60), &Interrupts::default());
        let asked = AtomicU32::new(0);
        let missing = |_: RunRow| -> BoxFuture<'_, Result<Option<Planner>, CliError>> {
            let is_first = asked.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                Err(match is_first {
                    true => CliError::from(StoreError::Unavailable("away".into())),
                    false => CliError::usage("the dataset is gone"),
                })
            }
            .boxed()
        };
        let looks = tokio::time::timeout(LOOK * 4, following.follow(&run, None, &missing)).await;
        assert!(looks.is_err() && asked.load(Ordering::SeqCst) == 0, "somebody writes it");
        assert_eq!(renewals_of_planners(store.as_ref(), run.run_no).await.expect("are read"), 0);
        let _ = store.renew_session(writer, None).await.expect("is renewed");
        assert_eq!(renewals_of_planners(store.as_ref(), run.run_no).await.expect("are read"), 1);

        store.close_session(writer).await.expect("ends");
        let looks = tokio::time::timeout(LOOK * 4, following.follow(&run, None, &missing)).await;
        assert!(looks.is_err() && asked.load(Ordering::SeqCst) == 0, "another one may be about to write it");
        let error = following.follow(&run, None, &missing).await.expect_err("it cannot be written here");
        let told = (error.message.as_str(), asked.load(Ordering::SeqCst));
        assert_eq!(told, ("the dataset is gone", 2), "a store that is away comes back");
    }

    #[tokio::test]
    async fn a_role_that_no_worker_takes_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let _ = store.take_lead(CLUSTER_DOMAIN, "coordinator", None).await.expect("leads");
        let queued = |roles: &[Role]| -> OpenByRole {
            let count = |role| OpenTasks { queued: i64::from(roles.contains(&role)), ..OpenTasks::default() };
            Role::ALL.into_iter().map(|role| (role, count(role))).collect()
        };
        let missing = async |roles: &[Role]| {
            who_is_missing(store.as_ref(), "default", &queued(roles)).await.expect("is read").unwrap_or_default()
        };
        assert!(missing(&[]).await.starts_with("no worker serves pool 'default'"), "nobody is there at all");
        let slots = [(Role::Retain, 1), (Role::Question, 4)].into();
        let info = SessionInfo::of_this_process(VERSION, "default", slots, "").to_json();
        let session = store.open_session("main", CLUSTER_DOMAIN, &info).await.expect("begins");
        assert_eq!(missing(&[Role::Retain, Role::Question]).await, "");
        let told = "no worker of pool 'default' takes judge tasks: start `bench-worker --pool default --roles judge`";
        assert_eq!(missing(&[Role::Question, Role::Judge]).await, told);
        store.end_session(session).await.expect("ends");
        let info = SessionInfo::of_this_process(VERSION, "gpu", [(Role::Judge, 4)].into(), "").to_json();
        let _ = store.open_session("elsewhere", CLUSTER_DOMAIN, &info).await.expect("begins");
        assert!(missing(&[Role::Judge]).await.starts_with("no worker serves pool 'default'"));
    }

    #[tokio::test]
    async fn an_error_of_one_run_is_told_at_once_and_the_others_are_left() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let (first, second) = (new_run(store.as_ref(), "g-r1").await, new_run(store.as_ref(), "g-r2").await);
        let following = Following::new(&store, 2, Duration::from_secs(60), &Interrupts::default());
        let nobody = |_: RunRow| -> BoxFuture<'_, Result<Option<Planner>, CliError>> { async { Ok(None) }.boxed() };
        let (left, stop) = (CancellationToken::new(), CancellationToken::new());
        let stopped = left.clone();
        let waits = tokio::spawn(async move {
            stopped.cancelled().await;
            Ok::<(), CliError>(())
        });
        let fails = tokio::spawn(async { Err::<(), _>(CliError::usage("the second cannot be planned")) });
        let runs = [
            following.follow(&first, Some(Planning { task: waits, stop: left.clone() }), &nobody),
            following.follow(&second, Some(Planning { task: fails, stop }), &nobody),
        ];
        let ended = tokio::time::timeout(Duration::from_secs(30), following.side_by_side(runs)).await;
        let error = ended.expect("is told at once").expect_err("cannot be planned");
        assert_eq!(error.message, "the second cannot be planned");
        assert!(left.is_cancelled(), "nobody thinks that its plan is still written");
    }

    #[tokio::test]
    async fn all_runs_of_a_command_have_one_patience() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let mut all = Vec::new();
        for number in 1..=MOST_LOOKS {
            all.push(new_run(store.as_ref(), &format!("g-r{number}")).await);
        }
        let following = Following::new(&store, all.len(), Duration::ZERO, &Interrupts::default());
        let nobody = |_: RunRow| -> BoxFuture<'_, Result<Option<Planner>, CliError>> { async { Ok(None) }.boxed() };
        let began = Instant::now();
        let ends = following.side_by_side(all.iter().map(|run| following.follow(run, None, &nobody))).await;
        let ends = ends.expect("are left");
        // one after the other they would take eight times as long
        assert!(ends.len() == MOST_LOOKS && began.elapsed() < following.look * 4, "{:?}", began.elapsed());
        let told = "no coordinator hands out tasks: start `bench-coord serve` (waited 0 s)";
        let waited = |end: &RunEnd| matches!(end, RunEnd::LeftRunning { reason } if reason.starts_with(told));
        assert!(ends.iter().all(waited), "{ends:?}");
    }
}
