//! The worker loop: receive, claim, run in a slot, ack, free the slot by the commit (P1, P8, P11, P26).
//!
//! In: deliveries of the queue. Out: tasks that have ended, in the store. Start with `consume`, which takes tasks and starts them;
//! `settle` carries out how they end, `quarantine` keeps dangerous ones alone, `refused` leaves runs to others that this process may
//! not serve, `unread` counts what is given up for replies that cannot be read, `alike` what is given up for any other reason.
//! `heartbeat` keeps the session alive and follows the states of runs (`former` has what is at work under what they were before),
//! `past` writes again what the store has forgotten, `route_host` is what the watch over routes asks of the worker, `panics` makes
//! failures of panics.

mod alike;
mod consume;
mod former;
mod heartbeat;
mod panics;
mod past;
mod quarantine;
mod refused;
mod route_host;
mod settle;
mod span;
mod unread;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{
        Arc, Mutex as SyncMutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use bench_models::{
    routes::{self, Routes},
    stop::{Liveness, OUT_OF_REACH, StopCause},
};
use bench_proto::{
    CLUSTER_DOMAIN,
    failure::{Failure, code},
    ids::{Role, RunId, RunNo, TaskKey},
    session::SessionInfo,
    task::QueueName,
};
use bench_queue::{Queue, QueueError};
use bench_settings::signals::Interrupts;
use bench_store::{ClaimedTask, RunState, SessionId, Store, StoreError};
use bench_systems::{adapter, closing::unless_hurried};
use bench_telemetry::metrics::catalogue;
use tokio::{
    sync::{Mutex, Notify, Semaphore, mpsc, watch},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::{
    about::About,
    active::Active,
    banks::BankCache,
    concluder::{self, Concluder, ConcluderHooks},
    context::{Building, RunContext},
    environment::WorkerEnvironment,
    journal::Journal,
    metering::{FindRun, Metering},
    tools::Tools,
    traces::Keeper,
    version::VERSION,
    writer::{Writer, WriterHooks},
};
use alike::Alike;
use consume::Lane;
use former::Former;
use heartbeat::Heartbeat;
use quarantine::Quarantine;
use refused::Refused;
use unread::Unread;

pub use panics::catch_all;

/// How a worker is set up.
#[derive(Debug, Clone)]
pub struct WorkerConfig {
    /// Name of the worker, for people.
    pub name: String,
    /// Queue domain of its session (P21).
    pub domain: String,
    /// Pool it serves.
    pub pool: String,
    /// Its machine, for people.
    pub host: String,
    /// Roles with their slots.
    pub slots: Vec<(Role, usize)>,
    /// Longest wait for calls in flight after a stop.
    pub drain: Duration,
    /// Bytes of banks that are kept in memory.
    pub bank_bytes: u64,
}

#[derive(Clone)]
struct RoleSlots {
    role: Role,
    all: usize,
    free: Arc<Semaphore>,
}

/// What the parts of the engine share.
struct Shared {
    /// What tasks work with.
    tools: Tools,
    queue: Arc<dyn Queue>,
    session: Session,
    runs: Runs,
    opened: Arc<Notify>,
    /// Wakes the look at the runs' states before its time.
    look_at_runs: Notify,
    to_conclude: mpsc::UnboundedSender<(RunNo, TaskKey)>,
    quarantine: Quarantine,
    slots: Vec<RoleSlots>,
    /// What keeps a role from receiving.
    disconnected: SyncMutex<BTreeMap<Role, String>>,
}

/// The worker as the store knows it.
struct Session {
    /// Name of the worker.
    name: String,
    /// Its queue domain.
    domain: String,
    /// What it tells of itself.
    info: String,
    /// Number of its session, which changes when a supervisor has ended one.
    number: Arc<AtomicI64>,
    /// Held while a new session is opened.
    beginning: Mutex<()>,
    /// Held while the session is renewed.
    renewing: Mutex<()>,
    /// Interruptions of the store that the last renewal has outlived.
    confirmed: AtomicU64,
    heartbeat: Arc<Heartbeat>,
}

impl Session {
    /// Opens the first session of a worker.
    async fn open(
        config: &WorkerConfig,
        environment: &WorkerEnvironment,
        store: &dyn Store,
    ) -> Result<Self, StoreError> {
        let slots = config.slots.iter().map(|(role, slots)| (*role, u32::try_from(*slots).unwrap_or(u32::MAX)));
        let mut info = SessionInfo::of_this_process(VERSION, &config.pool, slots.collect(), &config.host);
        info.policy = Some(environment.systems.policy.told());
        let info = info.to_json();
        let heartbeat = Arc::new(Heartbeat::default());
        let confirmed = AtomicU64::new(store.interruptions());
        let opened = store.open_session(&config.name, &config.domain, &info).await?;
        Ok(Self {
            name: config.name.clone(),
            domain: config.domain.clone(),
            info,
            number: Arc::new(AtomicI64::new(opened.0)),
            beginning: Mutex::default(),
            renewing: Mutex::default(),
            confirmed,
            heartbeat,
        })
    }

    /// Its number now, as the store names it.
    fn id(&self) -> SessionId {
        SessionId(self.number.load(Ordering::SeqCst))
    }

    /// Whether a cluster carries its runs out.
    fn is_served(&self) -> bool {
        self.domain == CLUSTER_DOMAIN
    }
}

/// The runs that this process works on.
struct Runs {
    environment: Arc<WorkerEnvironment>,
    /// Lets memory systems' own calls through.
    metering: Arc<Metering>,
    /// The ways to models and memory servers.
    routes: Arc<Routes>,
    contexts: Mutex<HashMap<RunNo, Arc<RunContext>>>,
    /// What some of their tasks began under.
    former: SyncMutex<Former<RunContext>>,
    /// Memory systems of runs that have ended, as they are ended.
    closing: SyncMutex<JoinSet<()>>,
    /// Runs of which it was said that this worker cannot serve them.
    unserved: SyncMutex<BTreeSet<RunNo>>,
    /// Runs of which it was said that tasks of theirs cannot be read.
    damaged: SyncMutex<BTreeSet<RunNo>>,
    /// Runs whose memory system is not allowed here.
    refused: SyncMutex<HashMap<RunNo, Refused>>,
    /// Tasks that were given up for replies that cannot be read, since the run's context was built.
    unread: Unread,
    /// The same of tasks that were given up for any other reason.
    alike: Alike,
}

impl Runs {
    /// Those of a process that has begun none; `is_apart`: it takes no task.
    fn new(environment: Arc<WorkerEnvironment>, is_served: bool, is_apart: bool) -> Self {
        Self {
            metering: Metering::new(environment.meter.clone(), is_apart),
            environment,
            routes: Routes::new(!is_served),
            contexts: Mutex::default(),
            former: SyncMutex::new(Former::new()),
            closing: SyncMutex::default(),
            unserved: SyncMutex::default(),
            damaged: SyncMutex::default(),
            refused: SyncMutex::default(),
            unread: Unread::default(),
            alike: Alike::default(),
        }
    }

    fn former(&self) -> MutexGuard<'_, Former<RunContext>> {
        self.former.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn closing(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.closing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the store, beside the caller, what was refused under a context in whose place another comes.
    fn note_refused_later(&self, context: Arc<RunContext>) {
        let mut closing = self.closing();
        while closing.try_join_next().is_some() {}
        closing.spawn(async move { context.note_refused_calls().await });
    }

    /// Says of how many tasks of a run it was not said yet that they were given up for one reason, and counts anew.
    fn tell_alike(&self, context: &RunContext) {
        for (code, line, count) in self.alike.end(context.run_no()) {
            alike::say(&context.row().run_id.0, (&code, &line), count);
        }
    }

    /// Ends what this process has started for a run, beside the caller.
    fn close_later(&self, context: Arc<RunContext>) {
        self.tell_alike(&context);
        let mut closing = self.closing();
        while closing.try_join_next().is_some() {}
        closing.spawn(async move {
            context.note_refused_calls().await;
            context.close_system().await;
        });
    }
}

impl Shared {
    /// Contexts of the runs that this process has worked on and that still run.
    async fn contexts_at_hand(&self) -> Vec<Arc<RunContext>> {
        self.runs.contexts.lock().await.values().cloned().collect()
    }

    /// Runs of the domain that are running; of a local run's process, the runs at hand.
    async fn running_runs(&self) -> Result<Vec<RunNo>, StoreError> {
        if !self.session.is_served() {
            let run = self.session.domain.rsplit('/').next().and_then(|run| run.parse().ok());
            return Ok(run.map(RunNo).into_iter().collect());
        }
        Ok(self.tools.store.running_runs(&self.session.domain).await?.into_iter().map(|(run, _)| run).collect())
    }

    /// Wakes the dispatcher of this process, and the look at the runs' states.
    fn wake(&self) {
        self.opened.notify_one();
        self.look_at_runs.notify_one();
    }

    /// The context of a run, built once per process.
    async fn context(&self, run: RunNo) -> Result<Arc<RunContext>, Failure> {
        let mut contexts = self.runs.contexts.lock().await;
        if let Some(context) = contexts.get(&run) {
            return Ok(Arc::clone(context));
        }
        let row = self.tools.store.run(run).await?;
        let building = RunContext::build(Building {
            environment: &self.runs.environment,
            metering: &self.runs.metering,
            tools: &self.tools,
            routes: &self.runs.routes,
            session: self.session.id(),
            liveness: Arc::<Heartbeat>::clone(&self.session.heartbeat),
            row,
        });
        // rare, and large: every task's future would hold room for it
        let context = Arc::new(Box::pin(building).await?);
        contexts.insert(run, Arc::clone(&context));
        self.runs.unserved.lock().unwrap_or_else(PoisonError::into_inner).remove(&run);
        // a run that ended and is worked on again, after `retry` say, is another stretch of work
        self.runs.unread.forget(run);
        self.runs.tell_alike(&context);
        Ok(context)
    }

    /// Lets no further task have a context, unless another has taken its place.
    async fn forget_context(&self, context: &Arc<RunContext>) {
        let (run, mut contexts) = (context.run_no(), self.runs.contexts.lock().await);
        if contexts.get(&run).is_some_and(|current| Arc::ptr_eq(current, context)) {
            contexts.remove(&run);
            self.runs.former().add(run, context);
        }
    }

    /// Stops the calls of all runs at hand, also of what began before its run got other limits.
    async fn stop_calls_of_all(&self, cause: &StopCause) {
        // locked: what is forgotten just now is found in one of the two
        let contexts = self.runs.contexts.lock().await;
        let former = self.runs.former().all();
        contexts.values().chain(&former).for_each(|context| context.stop_by(cause));
    }

    /// Public id of a run at hand.
    async fn run_id(&self, run: RunNo) -> Option<RunId> {
        self.runs.contexts.lock().await.get(&run).map(|context| context.row().run_id.clone())
    }

    /// How lines of the log name a task.
    async fn about(&self, task: ClaimedTask) -> About {
        About::task(task, self.run_id(task.run).await, &self.tools.banks).await
    }

    /// Says of a run, once, that tasks of it cannot be claimed.
    async fn say_damaged(&self, run: RunNo, task: TaskKey, error: &StoreError) {
        if self.runs.damaged.lock().unwrap_or_else(PoisonError::into_inner).insert(run) {
            let run = self.run_id(run).await.map_or_else(|| run.0.to_string(), |run| run.0);
            warn!(run, code = code::STORE, "{task:?} of run {run} cannot be claimed: {error}; other tasks go on");
        }
    }

    fn refresh_metrics(&self) {
        let role = |role: &Role| vec![role.name().to_owned()];
        catalogue::SLOTS.set_all(self.slots.iter().map(|slots| (role(&slots.role), slots.all as f64)).collect());
        let busy = |slots: &RoleSlots| slots.all.saturating_sub(slots.free.available_permits());
        catalogue::SLOTS_BUSY.set_all(self.slots.iter().map(|slots| (role(&slots.role), busy(slots) as f64)).collect());
        let mut limits = Vec::new();
        for account in self.runs.environment.accounts.values() {
            for (unit, limit) in [("requests", account.limits.rpm), ("tokens", account.limits.tpm)] {
                limits.extend(limit.map(|limit| (vec![account.name.clone(), unit.to_owned()], limit as f64)));
            }
        }
        catalogue::RATE_LIMIT.set_all(limits);
    }

    fn connected(&self, role: Role, state: Result<(), String>) {
        let mut disconnected = self.disconnected.lock().unwrap_or_else(PoisonError::into_inner);
        match state {
            Ok(()) => drop(disconnected.remove(&role)),
            Err(why) => drop(disconnected.insert(role, why)),
        }
    }

    /// Whether tasks can be taken and calls made; else why not.
    fn ready(&self) -> Result<(), String> {
        if !self.session.heartbeat.alive() {
            return Err(OUT_OF_REACH.to_owned());
        }
        let disconnected = self.disconnected.lock().unwrap_or_else(PoisonError::into_inner);
        disconnected.values().next().map_or(Ok(()), |why| Err(why.clone()))
    }
}

#[async_trait]
impl FindRun for Shared {
    async fn find(&self, run: &RunId) -> Result<Option<RunState>, Failure> {
        let Some(row) = self.tools.store.run_by_id(run).await? else { return Ok(None) };
        if row.state == RunState::Running && row.spec.limits.meter.is_some() {
            self.context(row.run_no).await?;
        }
        Ok(Some(row.state))
    }

    async fn tell_others(&self) {
        // the usual renewal says what to do when the session has ended
        if let Err(error) = self.renew_now().await {
            debug!("the others are not told yet: {error}");
        }
    }
}

/// A worker at work, until it is stopped.
pub struct Worker {
    shared: Arc<Shared>,
    stop: CancellationToken,
    drop_calls: CancellationToken,
    lanes: JoinSet<()>,
    drain: Duration,
    background: JoinSet<()>,
    /// Set when the store is broken for good: the process has to stop with this message.
    pub broken: watch::Receiver<Option<String>>,
    /// Woken when tasks ended.
    pub ended: Arc<Notify>,
    /// Woken when questions were concluded.
    pub concluded: Arc<Notify>,
}

/// Tells from outside whether a worker can work.
#[derive(Clone)]
pub struct WorkerHealth(Arc<Shared>);

impl WorkerHealth {
    /// Brings the gauges of this process up to date.
    pub fn refresh_metrics(&self) {
        self.0.refresh_metrics();
    }

    /// `Ok`, or why no task can be taken.
    ///
    /// # Errors
    /// The reason, for people.
    pub fn ready(&self) -> Result<(), String> {
        self.0.ready()
    }
}

impl Worker {
    /// Opens a session and starts consuming; a queue that is not there yet is waited for.
    ///
    /// # Errors
    /// When the store cannot be used.
    pub async fn start(
        config: WorkerConfig,
        environment: Arc<WorkerEnvironment>,
        store: Arc<dyn Store>,
        queue: Arc<dyn Queue>,
        opened: Arc<Notify>,
    ) -> Result<Self, StartError> {
        if let Some(home) = &environment.systems.adapters.home {
            // what a worker that was killed here has left behind
            adapter::end_orphans(home).await;
        }
        let session = Session::open(&config, &environment, store.as_ref()).await?;
        let keeper = environment.spans.as_ref().map(|sink| Keeper::start(Arc::clone(&store), Arc::clone(sink)));
        let with_permits = |(role, all): &(Role, usize)| {
            let (role, all) = (*role, *all);
            RoleSlots { role, all, free: Arc::new(Semaphore::new(all)) }
        };
        let slots: Vec<RoleSlots> = config.slots.iter().map(with_permits).collect();
        let (to_conclude, conclude_receiver) = mpsc::unbounded_channel();
        let (broken_sender, broken) = watch::channel(None);
        let (ended, concluded) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        // a file that is restored has no living processes beside it
        let journal = session.is_served().then(|| Arc::new(Journal::default()));
        let hooks = WriterHooks {
            to_conclude: to_conclude.clone(),
            opened: Arc::clone(&opened),
            ended: Arc::clone(&ended),
            concluded: Arc::clone(&concluded),
            broken: broken_sender.clone(),
            keeper: keeper.clone(),
            journal: journal.clone().map(|journal| (journal, Arc::clone(&session.number))),
        };
        let writer = Writer::start(Arc::clone(&store), hooks);
        let banks = Arc::new(BankCache::with_room(Arc::clone(&store), config.bank_bytes));
        let concluder = Arc::new(Concluder::new(Arc::clone(&store), Arc::clone(&banks), keeper.clone()));
        let waiting = config.slots.iter().map(|(role, _)| (*role, "not consuming yet".to_owned())).collect();
        let runs = Runs::new(environment, session.is_served(), config.slots.is_empty());
        let shared = Arc::new(Shared {
            tools: Tools { store, writer, banks, journal, keeper, active: Active::default() },
            queue,
            session,
            runs,
            opened,
            look_at_runs: Notify::new(),
            to_conclude,
            quarantine: Quarantine::default(),
            slots: slots.clone(),
            disconnected: SyncMutex::new(waiting),
        });
        let finder: Weak<dyn FindRun> = Arc::<Shared>::downgrade(&shared);
        shared.runs.metering.ask(finder);
        let (stop, drop_calls) = (CancellationToken::new(), CancellationToken::new());
        let mut background = JoinSet::new();
        let hooks = ConcluderHooks {
            concluded: Arc::clone(&concluded),
            broken: broken_sender.clone(),
            is_served: shared.session.is_served(),
        };
        background.spawn(concluder::run(concluder, conclude_receiver, hooks));
        background.spawn(heartbeat::renew(Arc::clone(&shared), stop.clone()));
        background.spawn(heartbeat::follow_runs(Arc::clone(&shared)));
        background.spawn(routes::watch(shared.clone()));
        let mut lanes = JoinSet::new();
        for slots in slots {
            let lane = Lane {
                shared: Arc::clone(&shared),
                queue: QueueName::new(config.pool.clone(), slots.role),
                slots: slots.all,
                free: slots.free,
                stop: stop.clone(),
                drop_calls: drop_calls.clone(),
                broken: broken_sender.clone(),
            };
            lanes.spawn(lane.run());
        }
        Ok(Self { shared, stop, drop_calls, lanes, drain: config.drain, background, broken, ended, concluded })
    }

    /// The worker's session.
    #[must_use]
    pub fn session(&self) -> SessionId {
        self.shared.session.id()
    }

    /// A view of the worker's health that outlives it.
    #[must_use]
    pub fn health(&self) -> WorkerHealth {
        WorkerHealth(Arc::clone(&self.shared))
    }

    /// The address of the meter for systems that this process does not start, once it listens.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub async fn listen_for_systems(&self) -> Result<String, Failure> {
        self.shared.runs.metering.listen().await.map(str::to_owned)
    }

    /// Stops claiming, lets calls in flight finish up to the drain deadline, hands back the rest, ends the session and what was started.
    pub async fn stop(mut self) {
        let begun = Instant::now();
        self.stop.cancel();
        let why = "the worker is stopping".to_owned();
        // runs of a cluster go on elsewhere, and a local one rests
        let cause = if self.shared.session.is_served() { StopCause::Here(why) } else { StopCause::Asked(why) };
        self.shared.stop_calls_of_all(&cause).await;
        let drained = tokio::time::timeout(self.drain, async { while self.lanes.join_next().await.is_some() {} }).await;
        if drained.is_err() {
            self.drop_calls.cancel();
            while self.lanes.join_next().await.is_some() {}
        }
        // calls of memory systems that are under way are booked before their money is given back and the session has ended
        self.shared.runs.metering.stop(&self.drop_calls).await;
        let contexts: Vec<_> = self.shared.runs.contexts.lock().await.drain().map(|(_, context)| context).collect();
        for context in &contexts {
            context.close_reservations().await;
        }
        // together: a store that is away keeps nobody waiting once for each run
        futures::future::join_all(contexts.iter().map(|context| context.note_refused_calls())).await;
        contexts.into_iter().for_each(|context| self.shared.runs.close_later(context));
        // before what may take its time: nobody should wait for a session in which nothing is done any more
        if let Err(error) = self.shared.tools.store.end_session(self.shared.session.id()).await {
            // a supervisor ends it when it has been silent for long enough
            let worker = self.shared.session.name.as_str();
            warn!(worker, code = code::STORE, "the session of worker {worker} could not be ended: {error}");
        }
        let mut closing = std::mem::take(&mut *self.shared.runs.closing());
        let left = self.shared.session.is_served().then(|| self.drain.saturating_sub(begun.elapsed()));
        let all_ended = async move { while closing.join_next().await.is_some() {} };
        unless_hurried(all_ended, hurried(&self.drop_calls, left)).await;
        self.shared.runs.environment.systems.adapters.instances.close_all().await;
        self.background.shutdown().await;
        if let Some(keeper) = &self.shared.tools.keeper {
            keeper.close().await;
        }
    }

    /// As [`Worker::stop`]; once `hurry` has come (a second signal, `cancel --now`) calls in flight are dropped.
    pub async fn stop_unless_hurried(self, hurry: impl Future<Output = ()>) {
        let drop_calls = self.drop_calls.clone();
        let stopping = self.stop();
        tokio::pin!(stopping);
        tokio::select! {
            () = &mut stopping => return,
            () = hurry => drop_calls.cancel(),
        }
        stopping.await;
    }

    /// Works until a signal comes or the store is broken for good, then stops; the next signal drops calls in flight. `stopping` says
    /// that a signal has come. Out comes what is wrong with the store, where that was it.
    pub async fn work_until_stopped(self, interrupts: Interrupts, stopping: impl FnOnce() + Send) -> Option<String> {
        let mut broken = self.broken.clone();
        tokio::select! {
            () = interrupts.stop.cancelled() => {}
            _ = broken.changed() => {}
        }
        let reason = broken.borrow().clone();
        if reason.is_none() {
            stopping();
        }
        // the first signal after whatever has stopped it
        let hurry = if reason.is_none() { interrupts.now } else { interrupts.stop };
        self.stop_unless_hurried(hurry.cancelled()).await;
        reason
    }

    /// Drops calls in flight at once (second Ctrl-C, `cancel --now`), then as [`Worker::stop`].
    pub async fn stop_now(self) {
        self.drop_calls.cancel();
        self.stop().await;
    }

    /// Leaves questions that a sweep found complete to the concluder, which works on beside the caller.
    pub fn conclude_later(&self, questions: Vec<(RunNo, TaskKey)>) {
        for question in questions {
            // the concluder lives as long as the worker
            let _ = self.shared.to_conclude.send(question);
        }
    }
}

/// Waits until nothing is to be waited for: until calls are dropped, and no longer than what is `left` of the drain where that is given.
/// Soon behind its drain, a worker of a cluster is killed.
async fn hurried(drop_calls: &CancellationToken, left: Option<Duration>) {
    match left {
        Some(left) => {
            let _ = tokio::time::timeout(left, drop_calls.cancelled()).await;
        }
        None => drop_calls.cancelled().await,
    }
}

/// Why a worker could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// What the store met that no repetition helps against.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What the queue met that no repetition helps against.
    #[error(transparent)]
    Queue(#[from] QueueError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn systems_end_within_the_drain_of_a_cluster_and_a_second_signal_hurries_all() {
        let (calls, begun) = (CancellationToken::new(), tokio::time::Instant::now());
        hurried(&calls, Some(Duration::from_secs(7))).await;
        assert_eq!(begun.elapsed().as_secs(), 7);
        hurried(&calls, Some(Duration::ZERO)).await;
        let day = Duration::from_secs(86_400);
        assert!(tokio::time::timeout(day, hurried(&calls, None)).await.is_err(), "a local run has no deadline");
        calls.cancel();
        hurried(&calls, None).await;
        hurried(&calls, Some(day)).await;
        assert_eq!(begun.elapsed().as_secs(), 7 + day.as_secs());
    }
}
