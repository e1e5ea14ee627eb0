//! The worker loop: receive, claim, ack, run in a slot, free the slot by the commit (P1, P8, P11, P26).

use std::{collections::HashMap, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use bench_proto::{
    call::CallRecord,
    failure::Failure,
    ids::{Role, RunNo, TaskKey},
    step::StepRecord,
    task::{QueueName, TaskEvent},
};
use bench_queue::{Consumer, Delivery, Queue, QueueError};
use bench_store::{ClaimedTask, Release, RunState, SessionId, Store, StoreError};
use futures::FutureExt;
use tokio::{
    sync::{Mutex, Notify, OwnedSemaphorePermit, Semaphore, mpsc, watch},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::{
    banks::BankCache,
    concluder,
    context::{RunContext, WorkerEnvironment},
    tasks::{self, GivenUp, TaskEnd},
    writer::{Writer, WriterHooks},
};

/// Most tasks claimed in one statement.
const CLAIM_BATCH: usize = 128;
/// How long a consumer waits for the first delivery before it looks around.
const RECEIVE_WAIT: Duration = Duration::from_millis(500);
/// How often the states of the runs at hand are read, so that no call starts later than 1 s after a stop (P23).
const STATE_POLL: Duration = Duration::from_millis(400);
/// How often the session's counter is raised (P4).
const RENEW_EVERY: Duration = Duration::from_secs(2);

/// How a worker is set up.
#[derive(Debug, Clone)]
pub struct WorkerConfig {
    /// Name of the worker, for people.
    pub name: String,
    /// Queue domain of its session (P21).
    pub domain: String,
    /// Pool it serves.
    pub pool: String,
    /// Roles with their slots.
    pub slots: Vec<(Role, usize)>,
    /// Longest wait for calls in flight after a stop.
    pub drain: Duration,
}

/// What the parts of a worker share.
pub struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) queue: Arc<dyn Queue>,
    pub(crate) writer: Writer,
    pub(crate) banks: BankCache,
    pub(crate) session: SessionId,
    environment: Arc<WorkerEnvironment>,
    contexts: Mutex<HashMap<RunNo, Arc<RunContext>>>,
    opened: Arc<Notify>,
    to_conclude: mpsc::UnboundedSender<(RunNo, TaskKey)>,
}

impl Shared {
    /// The context of a run, built once per process.
    pub(crate) async fn context(&self, run: RunNo) -> Result<Arc<RunContext>, Failure> {
        let mut contexts = self.contexts.lock().await;
        if let Some(context) = contexts.get(&run) {
            return Ok(Arc::clone(context));
        }
        let row = self.store.run(run).await.map_err(|e| store_failure(&e))?;
        let context = Arc::new(RunContext::build(&self.environment, Arc::clone(&self.store), row).await?);
        contexts.insert(run, Arc::clone(&context));
        Ok(context)
    }
}

/// A store error as the failure of a task: what may pass is retried.
pub(crate) fn store_failure(error: &StoreError) -> Failure {
    if error.is_transient() {
        Failure::transient("store", error.to_string())
    } else {
        Failure::permanent("store", error.to_string())
    }
}

/// A running worker.
pub struct Worker {
    shared: Arc<Shared>,
    stop: CancellationToken,
    drop_calls: CancellationToken,
    loops: JoinSet<()>,
    drain: Duration,
    background: JoinSet<()>,
    /// Set when the store is broken for good: the process has to stop with this message.
    pub broken: watch::Receiver<Option<String>>,
    /// Woken when questions were concluded.
    pub concluded: Arc<Notify>,
}

impl Worker {
    /// Opens a session and starts consuming.
    ///
    /// # Errors
    /// When the store or the queue cannot be used.
    pub async fn start(
        config: WorkerConfig,
        environment: Arc<WorkerEnvironment>,
        store: Arc<dyn Store>,
        queue: Arc<dyn Queue>,
        opened: Arc<Notify>,
    ) -> Result<Self, StartError> {
        let session = store.open_session(&config.name, &config.domain, "{}").await?;
        let (to_conclude, conclude_receiver) = mpsc::unbounded_channel();
        let (broken_sender, broken) = watch::channel(None);
        let hooks = WriterHooks {
            to_conclude: to_conclude.clone(),
            opened: Arc::clone(&opened),
            broken: broken_sender.clone(),
        };
        let writer = Writer::start(Arc::clone(&store), hooks);
        let shared = Arc::new(Shared {
            banks: BankCache::new(Arc::clone(&store)),
            store,
            queue,
            writer,
            session,
            environment,
            contexts: Mutex::default(),
            opened,
            to_conclude,
        });
        let (stop, drop_calls) = (CancellationToken::new(), CancellationToken::new());
        let concluded = Arc::new(Notify::new());
        let mut background = JoinSet::new();
        background.spawn(concluder::run(
            Arc::clone(&shared),
            conclude_receiver,
            Arc::clone(&concluded),
            broken_sender.clone(),
        ));
        background.spawn(renew_session(Arc::clone(&shared), stop.clone()));
        background.spawn(follow_run_states(Arc::clone(&shared)));
        let mut loops = JoinSet::new();
        for (role, slots) in &config.slots {
            let queue_name = QueueName::new(config.pool.clone(), *role);
            let prefetch = u16::try_from(slots * 2).unwrap_or(u16::MAX);
            let consumer = shared.queue.consume(&queue_name, prefetch).await?;
            let slots = Arc::new(Semaphore::new(*slots));
            loops.spawn(consume(
                Arc::clone(&shared),
                consumer,
                slots,
                stop.clone(),
                drop_calls.clone(),
                broken_sender.clone(),
            ));
        }
        Ok(Self { shared, stop, drop_calls, loops, drain: config.drain, background, broken, concluded })
    }

    /// The worker's session.
    #[must_use]
    pub fn session(&self) -> SessionId {
        self.shared.session
    }

    /// Stops claiming, lets calls in flight finish up to the drain deadline, hands back the rest, ends the session.
    pub async fn stop(mut self) {
        self.stop.cancel();
        for context in self.shared.contexts.lock().await.values() {
            context.stop_calls("the worker is stopping");
        }
        let drained = tokio::time::timeout(self.drain, async { while self.loops.join_next().await.is_some() {} }).await;
        if drained.is_err() {
            self.drop_calls.cancel();
            while self.loops.join_next().await.is_some() {}
        }
        if let Err(error) = self.shared.store.end_session(self.shared.session).await {
            warn!("the worker's session could not be ended: {error}");
        }
        self.background.shutdown().await;
    }

    /// Drops calls in flight at once (second Ctrl-C, `cancel --now`), then as [`Worker::stop`].
    pub async fn stop_now(self) {
        self.drop_calls.cancel();
        self.stop().await;
    }

    /// Concludes questions that a sweep found complete.
    pub fn conclude(&self, questions: Vec<(RunNo, TaskKey)>) {
        for question in questions {
            // the concluder lives as long as the worker
            let _ = self.shared.to_conclude.send(question);
        }
    }

    /// A handle that drops calls in flight when cancelled.
    #[must_use]
    pub fn drop_calls(&self) -> CancellationToken {
        self.drop_calls.clone()
    }

    /// Why a run stopped by itself (budget, quota, invalid key), when it did.
    pub async fn stop_reason(&self, run: RunNo) -> Option<crate::context::StopReason> {
        self.shared.contexts.lock().await.get(&run).and_then(|c| c.stop_reason())
    }
}

/// Why a worker could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The queue.
    #[error(transparent)]
    Queue(#[from] QueueError),
}

async fn renew_session(shared: Arc<Shared>, stop: CancellationToken) {
    loop {
        tokio::time::sleep(RENEW_EVERY).await;
        match shared.store.renew_session(shared.session).await {
            Ok(true) => {}
            Ok(false) => {
                warn!("this worker's session was ended by a supervisor; its tasks go to others");
                stop.cancel();
                return;
            }
            Err(error) => warn!("the session could not be renewed: {error}"),
        }
    }
}

/// Polls the states of the runs at hand and stops the calls of those that are no longer running (P23).
async fn follow_run_states(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(STATE_POLL).await;
        let contexts: Vec<Arc<RunContext>> = shared.contexts.lock().await.values().cloned().collect();
        let runs: Vec<RunNo> = contexts.iter().map(|c| c.run_no()).collect();
        if runs.is_empty() {
            continue;
        }
        match shared.store.run_states(&runs).await {
            Ok(states) => {
                for (run, state, _) in states {
                    if let Some(context) = contexts.iter().find(|c| c.run_no() == run) {
                        match state {
                            RunState::Running => {}
                            RunState::Paused | RunState::Cancelled | RunState::Finished => {
                                context.stop_calls(state.name());
                                // a resumed run is a new context: fresh limits, fresh flag
                                shared.contexts.lock().await.remove(&run);
                            }
                        }
                    }
                }
            }
            Err(error) => warn!("run states could not be read: {error}"),
        }
    }
}

/// Receives, claims and acks for one role until stopped, then waits for the tasks it started.
async fn consume(
    shared: Arc<Shared>,
    mut consumer: Box<dyn Consumer>,
    slots: Arc<Semaphore>,
    stop: CancellationToken,
    drop_calls: CancellationToken,
    broken: watch::Sender<Option<String>>,
) {
    let mut running = JoinSet::new();
    while !stop.is_cancelled() {
        while running.try_join_next().is_some() {}
        // without a free slot nothing is claimed
        let first = tokio::select! {
            () = stop.cancelled() => break,
            permit = Arc::clone(&slots).acquire_owned() => permit,
        };
        let Ok(first) = first else { break };
        let mut permits = vec![first];
        while permits.len() < CLAIM_BATCH
            && let Ok(more) = Arc::clone(&slots).try_acquire_owned()
        {
            permits.push(more);
        }
        let received = tokio::select! {
            () = stop.cancelled() => break,
            received = consumer.receive(permits.len(), RECEIVE_WAIT) => received,
        };
        let deliveries = match received {
            Ok(deliveries) if deliveries.is_empty() => continue,
            Ok(deliveries) => deliveries,
            Err(QueueError::Closed) => break,
            Err(error) => {
                warn!("receiving failed: {error}");
                tokio::time::sleep(RECEIVE_WAIT).await;
                continue;
            }
        };
        match claim_and_ack(&shared, consumer.as_mut(), deliveries).await {
            Ok(claimed) => start_tasks(&shared, &mut running, claimed, permits, &drop_calls).await,
            Err(error) if error.is_transient() => {
                warn!("claiming failed, the deliveries stay unacked: {error}");
                tokio::time::sleep(RECEIVE_WAIT).await;
            }
            Err(error) => {
                broken.send_replace(Some(error.to_string()));
                break;
            }
        }
    }
    while running.join_next().await.is_some() {}
}

/// Claims all deliveries in one statement, then acks them all (P1): those that were not claimed are done, leased, not due,
/// unknown, or of a run that does not run.
async fn claim_and_ack(
    shared: &Shared,
    consumer: &mut dyn Consumer,
    deliveries: Vec<Delivery>,
) -> Result<Vec<ClaimedTask>, StoreError> {
    let mut tasks: Vec<_> = deliveries.iter().map(|d| (RunNo(d.message.run_no), TaskKey(d.message.task))).collect();
    tasks.sort_unstable();
    tasks.dedup();
    let mut tries = 0_u32;
    let claimed = loop {
        match shared.store.claim(shared.session, &tasks).await {
            Err(error) if error.is_transient() && tries < 20 => {
                tries += 1;
                debug!("claim waits for the store: {error}");
                tokio::time::sleep(Duration::from_millis(250)).await;
            }
            result => break result?,
        }
    };
    if let Err(error) = consumer.ack(deliveries).await {
        // the claim is committed: the lease guards the tasks, a redelivery will be refused
        warn!("acks were lost: {error}");
    }
    Ok(claimed)
}

async fn start_tasks(
    shared: &Arc<Shared>,
    running: &mut JoinSet<()>,
    claimed: Vec<ClaimedTask>,
    mut permits: Vec<OwnedSemaphorePermit>,
    drop_calls: &CancellationToken,
) {
    let prepared = tasks::prepare(shared, claimed).await;
    for (task, input) in prepared {
        let Some(permit) = permits.pop() else { break };
        let (shared, drop_calls) = (Arc::clone(shared), drop_calls.clone());
        running.spawn(async move {
            let work = AssertUnwindSafe(tasks::run(&shared, task, input)).catch_unwind();
            let end = tokio::select! {
                () = drop_calls.cancelled() => TaskEnd::hand_back("dropped"),
                end = work => end.unwrap_or_else(|panic| TaskEnd::Failed(panic_failure(panic.as_ref()))),
            };
            settle(&shared, task, end).await;
            drop(permit);
        });
    }
}

/// A panic is a failed attempt, never the end of the worker.
fn panic_failure(panic: &(dyn std::any::Any + Send)) -> Failure {
    let text =
        panic.downcast_ref::<&str>().map(|s| (*s).to_owned()).or_else(|| panic.downcast_ref::<String>().cloned());
    Failure::transient("panic", format!("the task panicked: {}", text.unwrap_or_else(|| "no message".to_owned())))
}

/// Carries out how a task ended, unless its result is already stored.
async fn settle(shared: &Shared, task: ClaimedTask, end: TaskEnd) {
    let release = |event, delay_ms, reason| Release {
        run: task.run,
        task: task.task,
        epoch: task.epoch,
        event,
        delay_ms,
        reason,
    };
    let release = match end {
        TaskEnd::Stored => return,
        TaskEnd::HandBack { reason, calls } => {
            keep_calls(shared, task, calls).await;
            release(TaskEvent::Park, 0, Some(reason))
        }
        TaskEnd::Park { delay_ms, reason, calls } => {
            keep_calls(shared, task, calls).await;
            release(TaskEvent::Park, delay_ms, Some(reason))
        }
        TaskEnd::GiveUp(given_up) => return give_up(shared, task, tasks::failed_record(task, *given_up)).await,
        TaskEnd::Failed(failure) => {
            let context = shared.context(task.run).await.ok();
            let retries = context.as_ref().map_or(0, |c| c.row().spec.limits.retries);
            if tasks::may_retry(&failure, task, retries) {
                let delay_ms = failure.retry_after_ms.unwrap_or_else(|| tasks::retry_delay_ms(task.attempts));
                release(TaskEvent::Retry, delay_ms, Some(failure.to_string()))
            } else {
                let record = tasks::failed_record(task, GivenUp::without_calls(task, failure));
                return give_up(shared, task, record).await;
            }
        }
    };
    if let Err(error) = shared.store.release(&[release]).await {
        warn!("a {:?} task could not be handed back, its lease will expire: {error}", task.task.kind());
    }
    shared.opened.notify_one();
}

/// Books attempts that belong to no stored step.
async fn keep_calls(shared: &Shared, task: ClaimedTask, calls: Vec<CallRecord>) {
    if calls.is_empty() {
        return;
    }
    if let Err(error) = shared.store.put_calls(task.run, task.task, &calls).await {
        warn!("{} paid attempts of {:?} could not be booked: {error}", calls.len(), task.task);
    }
}

async fn give_up(shared: &Shared, task: ClaimedTask, record: StepRecord) {
    debug!("{:?} is given up", task.task);
    if let Err(error) = shared.writer.submit(vec![record]).await {
        warn!("the failure of {:?} could not be stored: {error}", task.task);
    }
}
