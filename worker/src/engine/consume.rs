//! Receive, claim, start, ack (P1).
//!
//! In come the messages of one queue; out go tasks that run in slots of their own, each to its end in `settle`. Start reading at
//! [`Lane::run`]: it waits for work that this process can do (`is_wanted`), begins to consume (`begin`), and for each batch that is
//! received claims what it can (`claim_all`), acks all of it, and starts what was claimed (`start`).

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use bench_proto::{
    failure::{Failure, code},
    ids::{RunNo, TaskKey},
    task::{NEWEST_TASK_MESSAGE, QueueName},
};
use bench_queue::{Consumer, Delivery, QueueError};
use bench_store::{ClaimedTask, SessionId, StoreResult, retry_until};
use bench_telemetry::{
    outage::{self, Upset},
    process, process_span,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, debug, warn};

use super::{Shared, panics, settle::settle, span::task_span};
use crate::{
    active::Held,
    batch::by_halves,
    clock::StepClock,
    ending::{GivenUp, TaskEnd, lost_too_often},
    tasks::{self, TaskInput},
    traces::link_messages,
};

/// Most tasks claimed in one statement.
const CLAIM_BATCH: usize = 128;
/// How long a consumer waits for the first delivery before it looks around.
const RECEIVE_WAIT: Duration = Duration::from_millis(500);
/// Longest time that tasks have to store how they ended, when calls are dropped.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Losses after which a task runs alone on its worker: it may be what kills them (P3). A few kills from outside make nothing slow:
/// they are losses of everything that a worker held.
const LOSSES_BEFORE_ALONE: i32 = 5;
/// Wait before a task is offered again that would have run beside one that must run alone.
const MAKE_ROOM_DELAY_MS: u64 = 1_000;
/// Wait before a message that this build cannot read is published again.
const UNREADABLE_DELAY_MS: u64 = 10_000;

/// What one role of a worker consumes with.
pub(super) struct Lane {
    pub(super) shared: Arc<Shared>,
    pub(super) queue: QueueName,
    pub(super) slots: usize,
    /// A permit for each slot that is free.
    pub(super) free: Arc<Semaphore>,
    pub(super) stop: CancellationToken,
    pub(super) drop_calls: CancellationToken,
    /// Told when the store is broken for good.
    pub(super) broken: watch::Sender<Option<String>>,
}

impl Lane {
    /// Receives, claims and acks until stopped, then waits for the tasks it started.
    pub(super) async fn run(self) {
        let mut running = JoinSet::new();
        while self.is_wanted().await
            && let Some(mut consumer) = self.begin().await
        {
            if !self.consume(consumer.as_mut(), &mut running).await {
                break;
            }
            // what was received and not claimed goes back to the queue, and to others, with the consumer
        }
        // deliveries that were not claimed went back to the queue with the consumer
        while running.join_next().await.is_some() {}
    }

    /// Waits until this process can do something in its role (P40); false when it stops.
    async fn is_wanted(&self) -> bool {
        let routes = &self.shared.runs.routes;
        loop {
            let changed = routes.roles_changed.notified();
            if self.stop.is_cancelled() {
                return false;
            }
            if routes.serves(self.queue.role) {
                return true;
            }
            tokio::select! {
                () = self.stop.cancelled() => return false,
                () = changed => {}
                () = tokio::time::sleep(RECEIVE_WAIT) => {}
            }
        }
    }

    /// Starts consuming; waits for a queue that is not there yet.
    async fn begin(&self) -> Option<Box<dyn Consumer>> {
        // fixed when consuming starts: twice the slots, so that the next tasks are there when a slot gets free
        let prefetch = u16::try_from(self.slots * 2).unwrap_or(u16::MAX);
        let mut upset = Upset::default();
        loop {
            let consuming = tokio::select! {
                () = self.stop.cancelled() => return None,
                consuming = self.shared.queue.consume(&self.queue, prefetch) => consuming,
            };
            match consuming {
                Ok(consumer) => {
                    self.shared.connected(self.queue.role, Ok(()));
                    return Some(consumer);
                }
                Err(QueueError::Closed) => return None,
                Err(error) => {
                    tell(&mut upset, &error, &self.queue);
                    self.shared.connected(self.queue.role, Err(error.to_string()));
                    tokio::select! {
                        () = self.stop.cancelled() => return None,
                        () = tokio::time::sleep(RECEIVE_WAIT) => {}
                    }
                }
            }
        }
    }

    /// Works until stopped (false), or until this process can do nothing in its role (true).
    async fn consume(&self, consumer: &mut dyn Consumer, running: &mut JoinSet<()>) -> bool {
        let (slots, mut upset) = (Arc::clone(&self.free), Upset::default());
        while !self.stop.is_cancelled() {
            if !self.shared.runs.routes.serves(self.queue.role) {
                return true;
            }
            while running.try_join_next().is_some() {}
            // without a free slot nothing is claimed
            let first = tokio::select! {
                () = self.stop.cancelled() => break,
                permit = Arc::clone(&slots).acquire_owned() => permit,
            };
            let Ok(first) = first else { break };
            // a commit frees many slots: let the tasks that it wakes give theirs back too
            tokio::task::yield_now().await;
            let mut permits = vec![first];
            while permits.len() < CLAIM_BATCH
                && let Ok(more) = Arc::clone(&slots).try_acquire_owned()
            {
                permits.push(more);
            }
            tokio::select! {
                () = self.stop.cancelled() => break,
                () = self.shared.quarantine.free() => {}
            }
            let received = tokio::select! {
                () = self.stop.cancelled() => break,
                received = consumer.receive(permits.len(), RECEIVE_WAIT) => received,
            };
            let deliveries = match received {
                Ok(deliveries) => {
                    upset.over();
                    self.shared.connected(self.queue.role, Ok(()));
                    if deliveries.is_empty() {
                        continue;
                    }
                    deliveries
                }
                Err(QueueError::Closed) => break,
                Err(error) => {
                    tell(&mut upset, &error, &self.queue);
                    self.shared.connected(self.queue.role, Err(error.to_string()));
                    tokio::time::sleep(RECEIVE_WAIT).await;
                    continue;
                }
            };
            let span = process_span!(
                "claim_batch",
                messaging.destination.name = self.queue.wire_name(),
                messages = process::count(deliveries.len()),
            );
            link_messages(&span, deliveries.iter().map(|delivery| &delivery.headers));
            let claimed = match self.claim_all(&deliveries).instrument(process::started(span)).await {
                Ok(Some(claimed)) => claimed,
                // stopping without an answer of the store: the deliveries go back to the queue with the consumer
                Ok(None) => continue,
                Err(error) => {
                    self.broken.send_replace(Some(error.to_string()));
                    break;
                }
            };
            self.start(running, claimed, permits).await;
            // all of them (P1): those that were not claimed are done, leased, not due, unknown, or of a run that does not run
            if let Err(error) = consumer.ack(deliveries).await {
                // the lease guards what was claimed, a redelivery will be refused; why, the next receive says
                debug!("acks were lost: {error}");
            }
        }
        false
    }

    /// Claims all deliveries in one statement (P1). Holds on to them while the store is out of reach; `None` when the worker
    /// stops meanwhile.
    async fn claim_all(&self, deliveries: &[Delivery]) -> StoreResult<Option<Vec<(ClaimedTask, Held)>>> {
        let (mut tasks, mut unreadable) = (Vec::with_capacity(deliveries.len()), BTreeMap::<_, Vec<TaskKey>>::new());
        for Delivery { message, .. } in deliveries {
            let (run, task) = (RunNo(message.run_no), TaskKey(message.task));
            if message.v > NEWEST_TASK_MESSAGE {
                unreadable.entry((run, message.v)).or_default().push(task);
            } else {
                tasks.push((run, task));
            }
        }
        tasks.sort_unstable();
        tasks.dedup();
        let store = self.shared.tools.store.as_ref();
        for ((run, version), tasks) in unreadable {
            let reason = format!("no worker reads v{version} of task messages: update the workers of this pool");
            let name = self.shared.run_id(run).await.map_or_else(|| run.0.to_string(), |run| run.0);
            warn!(run = name, code = "message_version", "{} tasks of run {name} are put back: {reason}", tasks.len());
            self.patiently(|| store.put_back(run, &tasks, UNREADABLE_DELAY_MS, Some(&reason))).await?;
        }
        // known as active before the store knows of the claim: its answer may be lost
        let held: Vec<Held> = tasks.iter().map(|task| self.shared.tools.active.hold(*task)).collect();
        let Some(claimed) = self.claim(&tasks).await? else { return Ok(None) };
        let mut held: HashMap<_, Held> = held.into_iter().map(|held| (held.task(), held)).collect();
        let hold = |task: ClaimedTask| {
            let key = (task.run, task.task);
            let held = held.remove(&key).unwrap_or_else(|| self.shared.tools.active.hold(key));
            self.shared.tools.active.claimed(task);
            (task, held)
        };
        Ok(Some(claimed.into_iter().map(hold).collect()))
    }

    /// Claims patiently; `None` when the worker stops meanwhile.
    async fn claim(&self, tasks: &[(RunNo, TaskKey)]) -> StoreResult<Option<Vec<ClaimedTask>>> {
        if tasks.is_empty() {
            return Ok(Some(Vec::new()));
        }
        loop {
            if !self.is_sure().await? {
                return Ok(None);
            }
            let session = self.shared.session.id();
            // a try that was committed although its answer was lost is found by `LostLeases`
            let claimed = match self.patiently(|| self.shared.tools.store.claim(session, tasks)).await {
                Err(error) if error.is_about_rows() && self.shared.session.is_served() => {
                    self.claim_apart(session, tasks).await?
                }
                claimed => claimed?,
            };
            if claimed.as_ref().is_none_or(|claimed| !claimed.is_empty()) {
                // the claim itself may have met a store that went back in time
                return Ok(if self.is_sure().await? { claimed } else { None });
            }
            // nothing at all: duplicates, or a session that was ended without this worker knowing
            match self.patiently(|| self.shared.renew_now()).await? {
                Some(true) => return Ok(claimed),
                None => return Ok(None),
                Some(false) => drop(self.patiently(|| self.shared.begin_again(session)).await?),
            }
        }
    }

    /// Claims by halves, and leaves out the tasks of which something cannot be read: they are one run's, and there are others.
    async fn claim_apart(
        &self,
        session: SessionId,
        tasks: &[(RunNo, TaskKey)],
    ) -> StoreResult<Option<Vec<ClaimedTask>>> {
        let (claimed, unreadable) =
            by_halves(tasks, |part| self.patiently(move || self.shared.tools.store.claim(session, part))).await?;
        for ((run, task), error) in unreadable {
            self.shared.say_damaged(*run, *task, &error).await;
        }
        // nothing at all where the worker has stopped meanwhile
        let claimed: Option<Vec<_>> = claimed.into_iter().collect();
        Ok(claimed.map(|claimed| claimed.concat()))
    }

    /// Waits until the store is known to remember what it has acknowledged (P44); false when the worker stops meanwhile.
    async fn is_sure(&self) -> StoreResult<bool> {
        while self.shared.is_unsure() {
            let session = self.shared.session.id();
            match self.patiently(|| self.shared.renew_now()).await? {
                Some(true) => {}
                None => return Ok(false),
                Some(false) => drop(self.patiently(|| self.shared.begin_again(session)).await?),
            }
        }
        Ok(true)
    }

    /// The answer of a store that is waited for; `None` when the worker stops meanwhile.
    async fn patiently<T, F>(&self, call: impl FnMut() -> F) -> StoreResult<Option<T>>
    where
        F: Future<Output = StoreResult<T>>,
    {
        match retry_until(self.stop.cancelled(), call).await {
            Err(error) if error.is_transient() => Ok(None),
            result => result.map(Some),
        }
    }

    async fn start(
        &self,
        running: &mut JoinSet<()>,
        claimed: Vec<(ClaimedTask, Held)>,
        mut permits: Vec<OwnedSemaphorePermit>,
    ) {
        let (claimed, held): (Vec<_>, Vec<_>) = claimed.into_iter().unzip();
        // one input for each, in the same order
        let prepared = tasks::prepare(&self.shared.tools, claimed).await;
        for ((task, input), held) in prepared.into_iter().zip(held) {
            let Some(permit) = permits.pop() else { break };
            let (shared, drop_calls) = (Arc::clone(&self.shared), self.drop_calls.clone());
            let at_hand = self.shared.quarantine.at_hand();
            // in boxes, because each wrapper of a future copies it and keeps room for both copies: 43 kB a task otherwise
            let attempt = Box::pin(async move {
                let clock = StepClock::start();
                let dangerous = task.losses >= LOSSES_BEFORE_ALONE;
                let taken = if dangerous { shared.quarantine.take() } else { None };
                let end = if lost_too_often(task) {
                    TaskEnd::GiveUp(Box::new(GivenUp::without_calls(task, lost_failure(task))))
                } else if taken.is_none() && (dangerous || shared.quarantine.is_taken()) {
                    let reason = "its worker makes room for a task that has lost workers".to_owned();
                    TaskEnd::Park { delay_ms: MAKE_ROOM_DELAY_MS, reason, calls: Vec::new() }
                } else {
                    let work = panics::caught(Box::pin(async {
                        if let Some(taken) = &taken {
                            taken.others_ended().await;
                        }
                        run(&shared, task, input).await
                    }));
                    tokio::select! {
                        () = drop_calls.cancelled() => TaskEnd::hand_back("dropped"),
                        end = work => end.unwrap_or_else(TaskEnd::Failed),
                    }
                };
                tokio::select! {
                    () = settle(&shared, task, &clock, end) => {}
                    // a worker that must go does not wait for a store that is away
                    () = async { drop_calls.cancelled().await; tokio::time::sleep(LAST_WORDS).await } => {
                        let about = shared.about(task).await;
                        about.warn(code::STORE, "ended in a way that could not be stored, its lease will expire");
                    }
                }
                drop((taken, at_hand, permit, held));
            });
            let shared = Arc::clone(&self.shared);
            running.spawn(async move {
                let span = task_span(&shared, task).await;
                attempt.instrument(span).await;
            });
        }
    }
}

/// Carries out a claimed task under the context of its run.
async fn run(shared: &Shared, task: ClaimedTask, input: Result<TaskInput, Failure>) -> TaskEnd {
    let work = async {
        let input = input?;
        let context = shared.context(task.run).await?;
        tasks::run(&shared.tools, &context, task, &input).await
    };
    work.await.map_or_else(|end: TaskEnd| end, |()| TaskEnd::Stored)
}

/// Says what keeps a lane from receiving.
fn tell(upset: &mut Upset, error: &QueueError, queue: &QueueName) {
    match error {
        QueueError::Unavailable(_) => upset.away(&outage::BROKER, error),
        QueueError::Setup(why) | QueueError::Refused(why) if upset.is_news(why) => {
            warn!(code = "queue_setup", "waiting for {}: {error}", queue.wire_name());
        }
        QueueError::Setup(_) | QueueError::Refused(_) | QueueError::Closed => {}
    }
}

/// Why a task is given up that has killed or lost every worker that held it.
fn lost_failure(task: ClaimedTask) -> Failure {
    Failure::permanent("lease_lost", format!("{} workers were lost while they worked on it", task.losses))
}
