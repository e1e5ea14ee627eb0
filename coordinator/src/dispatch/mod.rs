//! The dispatcher: select, publish, await the confirm, then note (P2). It publishes only a window of ready tasks (P15), so
//! the broker's memory does not grow with the run, and pause and cancel act at once.
//!
//! The same loop serves one local run and all runs of a cluster: what differs is where it learns of runs and slots.

mod context;
mod losses;
mod outages;
mod rest;
pub(crate) mod window;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use bench_models::routes::Needs;
use bench_proto::{
    ids::{Role, RunId, RunNo},
    session::SessionInfo,
    task::{QueueName, TASK_MESSAGE_VERSION, TaskMessage},
    trace::TracePolicy,
};
use bench_queue::{Outgoing, Queue, QueueError};
use bench_store::{OpenByRole, ReadyTask, RunState, SessionRow, Store, StoreError};
use bench_telemetry::{
    outage::{self, Upset},
    process, process_span,
};
use bench_worker::traces::link_messages;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, info, warn};

use crate::{
    cluster::{past::Past, trouble::Trouble},
    local::session_domain,
};
use context::Contexts;
use losses::{LossWatch, Seen};
use outages::OutageWatch;
pub(crate) use rest::WakeUps;
use rest::{Standing, gather};
use window::{AtOnce, Demand, Slots, fills, in_flight_of_all, is_at_limit, shares, worth_counting};

/// Longest time between two looks at the store while tasks are open, and while none is.
const POLL: Duration = Duration::from_millis(250);
/// Shortest time between two looks of a cluster's dispatcher: it hears of commits only by looking.
const QUICK_POLL: Duration = Duration::from_millis(5);
/// Pause while most of the window is in flight: workers hold enough, and a look that hands out more costs no more.
const FULL_POLL: Duration = Duration::from_millis(25);
/// A look at many open tasks takes its time: a cluster's dispatcher pauses so many times as long, up to [`MOVING_POLL`].
const PAUSES_PER_LOOK: u32 = 8;
/// While work moves, a cluster's dispatcher looks at least this often.
const MOVING_POLL: Duration = Duration::from_millis(40);
/// Work counts as moving for so long after the last change.
const MOVING: Duration = Duration::from_secs(3);
/// Pause after an error of the queue or the store.
const ERROR_PAUSE: Duration = Duration::from_millis(500);
/// Pause while it is not certain that the store remembers what it has said.
const UNSETTLED_POLL: Duration = Duration::from_millis(100);
/// How often live workers and the broker's queues are looked at.
const SURVEY: Duration = Duration::from_secs(1);

/// How long a run waits for a provider that is away when nothing else of it can move, unless it or `serve` is told otherwise.
pub(crate) const OUTAGE_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// Which runs a dispatcher looks after, and who works on them.
#[derive(Debug, Clone)]
pub(crate) enum Scope {
    /// A run of this process, with its slots.
    Run(RunNo, Slots),
    /// All running runs of a domain, with the slots of its live workers.
    #[cfg_attr(not(feature = "cluster"), expect(dead_code, reason = "a build for one machine has no `serve`"))]
    Domain(String),
}

/// Publishes ready tasks until stopped.
pub(crate) struct Dispatcher {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The queue.
    pub queue: Arc<dyn Queue>,
    /// What it looks after.
    pub scope: Scope,
    /// What wakes it between two looks.
    pub wake_ups: WakeUps,
    /// Told what keeps it from publishing.
    pub trouble: Trouble,
    /// Whether a cluster's store still knows what it has said (P44).
    pub past: Past,
    /// Messages carry their trace context.
    pub traced: bool,
    /// How long runs that do not say it themselves wait for a provider that is away when nothing else of them can move.
    pub outage_timeout: Duration,
}

/// What the dispatcher needs to know of a run besides its tasks.
#[derive(Debug, Clone)]
struct RunFacts {
    run_id: RunId,
    pool: String,
    most: AtOnce,
    state_version: i64,
    trace: TracePolicy,
    needs: Needs,
    outage_timeout: Option<Duration>,
}

/// A pool as its workers describe it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Pool {
    slots: Slots,
    /// Lowest version of task messages that every live worker reads (P12).
    message_version: Option<u32>,
}

#[derive(Debug, thiserror::Error)]
enum DispatchError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Queue(#[from] QueueError),
}

/// Says what keeps tasks from being handed out.
fn tell(upset: &mut Upset, error: &DispatchError) {
    match error {
        DispatchError::Store(error) if error.is_transient() => upset.away(&outage::STORE, error),
        DispatchError::Queue(QueueError::Unavailable(_)) => upset.away(&outage::BROKER, error),
        DispatchError::Queue(QueueError::Closed) => {}
        other => {
            if upset.is_news(&other.to_string()) {
                warn!(code = "dispatch", "nothing can be handed out: {other}");
            }
        }
    }
}

/// What a dispatcher remembers between two looks; all of it can be learned anew.
#[derive(Default)]
struct Memory {
    runs: BTreeMap<RunNo, RunFacts>,
    pools: BTreeMap<String, Pool>,
    declared: BTreeSet<QueueName>,
    open: BTreeMap<RunNo, OpenByRole>,
    surveyed: Option<Instant>,
    moved: Option<Instant>,
    reconnects: Option<u64>,
    losses: LossWatch,
    outages: OutageWatch,
    contexts: Contexts,
    turn: usize,
    /// How often the store had gone back when all was published.
    went_back: u64,
}

impl Dispatcher {
    /// Publishes until stopped. What was published before this dispatcher began is published again: it may be gone (P2).
    pub(crate) async fn run(self, stop: CancellationToken) {
        let (mut memory, mut upset) = (Memory::default(), Upset::default());
        let (mut idle, mut found) = (QUICK_POLL, Standing::default());
        loop {
            let began = Instant::now();
            let looked = self.look(&mut memory).await;
            let cost = began.elapsed();
            if let Ok(looked) = &looked {
                upset.over();
                found = looked.found;
            }
            let pause = match looked {
                Ok(Looked { published: 1.., full, .. }) => {
                    self.trouble.set("dispatcher", "");
                    idle = QUICK_POLL;
                    match (self.is_local(), full) {
                        // a few tasks at a time: the next one goes out when one of them has ended
                        _ if found.at_limit && gather(found.in_flight).is_zero() => QUICK_POLL,
                        (true, _) => Duration::ZERO,
                        (false, true) => FULL_POLL,
                        (false, false) => (cost * PAUSES_PER_LOOK).clamp(QUICK_POLL, MOVING_POLL),
                    }
                }
                Ok(Looked { next_due, .. }) => {
                    self.trouble.set("dispatcher", "");
                    idle = (idle * 2).min(self.longest_pause(&memory));
                    next_due.unwrap_or(POLL).min(idle)
                }
                Err(error) => {
                    tell(&mut upset, &error);
                    self.trouble.set("dispatcher", format!("nothing can be handed out: {error}"));
                    self.after_error(&mut memory, &error);
                    ERROR_PAUSE
                }
            };
            if stop.is_cancelled() {
                return;
            }
            if pause.is_zero() {
                continue;
            }
            self.wake_ups.rest(pause, found, &stop).await;
            if stop.is_cancelled() {
                return;
            }
        }
    }

    fn is_local(&self) -> bool {
        matches!(self.scope, Scope::Run(..))
    }

    /// A local dispatcher is woken by commits; a cluster's looks often while something moves.
    fn longest_pause(&self, memory: &Memory) -> Duration {
        let moving = memory.moved.is_some_and(|moved| moved.elapsed() < MOVING);
        if moving && !self.is_local() { MOVING_POLL } else { POLL }
    }

    fn after_error(&self, memory: &mut Memory, error: &DispatchError) {
        if let DispatchError::Queue(_) = error {
            // declared again and published again at the next look: both are harmless when nothing was lost
            memory.declared.clear();
            memory.reconnects = None;
        }
    }

    async fn look(&self, memory: &mut Memory) -> Result<Looked, DispatchError> {
        if !self.is_local() {
            if !self.past.is_settled(self.store.interruptions(), Instant::now()) {
                let next_due = Some(UNSETTLED_POLL);
                return Ok(Looked { published: 0, full: true, next_due, found: Standing::default() });
            }
            let times = self.past.times();
            if times != memory.went_back {
                // notes of messages that were consumed since are worth nothing: all that is ready is published anew
                info!("the store went back in time: all that is ready is published again");
                (memory.went_back, memory.runs) = (times, BTreeMap::new());
            }
        }
        self.learn_runs(memory).await?;
        self.survey(memory).await?;
        self.read_outages(memory).await?;
        if memory.runs.is_empty() {
            memory.open.clear();
            return Ok(Looked { published: 0, full: true, next_due: None, found: Standing::default() });
        }
        let runs: Vec<RunNo> = memory.runs.keys().copied().collect();
        let counted =
            worth_counting(memory.pools.values().map(|pool| &pool.slots), memory.runs.values().map(|facts| facts.most));
        let open = self.store.open_tasks_of(&runs, counted).await?;
        if open != memory.open {
            memory.moved = Some(Instant::now());
        }
        memory.turn = memory.turn.wrapping_add(1);
        let (mut published, mut full, mut found) = (0, true, Standing::default());
        for (name, pool) in by_pool(&memory.runs) {
            let slots = memory.pools.get(name).map(|pool| pool.slots.clone()).unwrap_or_default();
            let version = memory.pools.get(name).and_then(|pool| pool.message_version);
            let demands: Vec<Demand> = pool
                .iter()
                .map(|(run, facts)| Demand {
                    run: **run,
                    most: facts.most,
                    open: open.get(run).cloned().unwrap_or_default(),
                    bounds: memory.outages.bounds(&facts.needs, Instant::now()),
                })
                .collect();
            let granted = shares(&demands, &slots, memory.turn);
            full &= fills(&demands, &slots, &granted);
            found.at_limit |= demands.iter().any(is_at_limit);
            found.in_flight += in_flight_of_all(&demands);
            for (run, role, count) in granted {
                let queue = QueueName::new(name, role);
                published += self.publish(run, &memory.runs[&run], queue, count, version, &mut memory.contexts).await?;
            }
        }
        self.give_up(memory, &open).await?;
        found.in_flight += i64::from(published);
        let next_due = open.values().flat_map(BTreeMap::values).filter_map(|tasks| tasks.next_due_ms).min();
        memory.open = open;
        if published > 0 {
            memory.moved = Some(Instant::now());
        }
        let next_due = next_due.map(|ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0)));
        Ok(Looked { published, full, next_due: next_due.filter(|due| !due.is_zero()), found })
    }

    async fn publish(
        &self,
        run: RunNo,
        facts: &RunFacts,
        queue: QueueName,
        count: u32,
        version: Option<u32>,
        contexts: &mut Contexts,
    ) -> Result<u32, DispatchError> {
        let tasks = self.store.ready_tasks(run, queue.role, count).await?;
        if tasks.is_empty() {
            return Ok(0);
        }
        let message = |ready: &ReadyTask| {
            let mut message = TaskMessage::new(facts.run_id.clone(), run, ready.task);
            message.v = version.unwrap_or(TASK_MESSAGE_VERSION).min(TASK_MESSAGE_VERSION);
            Outgoing { message, headers: Vec::new() }
        };
        let mut messages: Vec<Outgoing> = tasks.iter().map(message).collect();
        if self.traced {
            for (outgoing, ready) in messages.iter_mut().zip(&tasks) {
                let store = self.store.as_ref();
                outgoing.headers = contexts.headers(store, run, &facts.run_id, &facts.trace, ready.task).await?;
            }
        }
        let span = process_span!(
            "dispatch_batch",
            run = facts.run_id.0.as_str(),
            messaging.destination.name = queue.wire_name(),
            messages = process::count(tasks.len()),
        );
        link_messages(&span, messages.iter().map(|outgoing| &outgoing.headers));
        let handing_out = async {
            self.queue.publish(&queue, &messages).await?;
            // a crash before the note only publishes twice: the claim rule makes that harmless
            self.store.note_published(run, &tasks).await?;
            Ok::<u32, DispatchError>(tasks.len() as u32)
        };
        let span = process::started(span);
        let handed_out = handing_out.instrument(span.clone()).await;
        if let Err(error) = &handed_out {
            process::failed(&span, &error.to_string());
        }
        handed_out
    }

    /// Finds out which runs there are; what was published of a run that is new to this dispatcher is published again.
    async fn learn_runs(&self, memory: &mut Memory) -> Result<(), DispatchError> {
        let running = match &self.scope {
            // the owner of a local run has forgotten what was published when it took the run over
            Scope::Run(run, _) if memory.runs.contains_key(run) => return Ok(()),
            Scope::Run(run, _) => vec![(*run, 0)],
            Scope::Domain(domain) => self.store.running_runs(domain).await?,
        };
        memory.runs.retain(|run, _| running.iter().any(|(running, _)| running == run));
        for (run, state_version) in running {
            if memory.runs.get(&run).is_some_and(|known| known.state_version == state_version) {
                continue;
            }
            let row = self.store.run(run).await?;
            if !self.is_local() {
                self.store.forget_published(run, None, 0).await?;
            }
            memory.moved = Some(Instant::now());
            let facts = RunFacts {
                needs: bench_worker::routes::needs(&row.spec),
                outage_timeout: row.spec.limits.outage_timeout_s.map(Duration::from_secs),
                run_id: row.run_id,
                most: AtOnce::of(&row.spec),
                pool: row.spec.limits.pool,
                state_version,
                trace: row.spec.limits.trace,
            };
            memory.runs.insert(run, facts);
        }
        Ok(())
    }

    async fn read_outages(&self, memory: &mut Memory) -> Result<(), DispatchError> {
        if memory.outages.is_due(SURVEY) {
            let rows = match &self.scope {
                Scope::Run(run, _) => self.store.outages(&session_domain(*run)).await?,
                Scope::Domain(domain) => self.store.outages(domain).await?,
            };
            memory.outages.read(rows, Instant::now());
            memory.outages.keep(|run| memory.runs.contains_key(run));
        }
        Ok(())
    }

    /// Pauses runs that have waited for long enough for what is away.
    async fn give_up(&self, memory: &mut Memory, open: &BTreeMap<RunNo, OpenByRole>) -> Result<(), DispatchError> {
        for (run, facts) in &memory.runs {
            let Some(open) = open.get(run) else { continue };
            let longest = facts.outage_timeout.unwrap_or(self.outage_timeout);
            let Some((code, why)) = memory.outages.gives_up(*run, &facts.needs, open, longest, Instant::now()) else {
                continue;
            };
            if self.store.set_run_state(*run, &[RunState::Running], RunState::Paused, Some(&why)).await?
                && !self.is_local()
            {
                let run = facts.run_id.0.as_str();
                warn!(run, code, "run {run} is paused: {why}");
            }
        }
        Ok(())
    }

    /// Looks at workers and queues once a second, and repairs what the broker has lost.
    async fn survey(&self, memory: &mut Memory) -> Result<(), DispatchError> {
        let Scope::Domain(domain) = &self.scope else {
            if let Scope::Run(run, slots) = &self.scope
                && memory.pools.is_empty()
                && let Some(facts) = memory.runs.get(run)
            {
                let pool = Pool { slots: slots.clone(), message_version: None };
                memory.pools.insert(facts.pool.clone(), pool);
            }
            return Ok(());
        };
        let queues: BTreeSet<QueueName> = memory
            .runs
            .values()
            .flat_map(|facts| Role::ALL.map(|role| QueueName::new(facts.pool.clone(), role)))
            .collect();
        let due = memory.surveyed.is_none_or(|surveyed| surveyed.elapsed() >= SURVEY);
        if !due && queues.is_subset(&memory.declared) {
            return Ok(());
        }
        let serving = |session: &SessionRow| {
            let mut info = SessionInfo::from_json(&session.info_json);
            // who can do nothing in a role for now has no slots in it (P40)
            info.slots.retain(|role, _| !session.evidence.idle_roles.contains(role));
            info
        };
        memory.pools = pools(self.store.open_sessions(domain).await?.iter().map(serving));
        memory.surveyed = Some(Instant::now());
        let missing: Vec<QueueName> = queues.difference(&memory.declared).cloned().collect();
        if !missing.is_empty() {
            self.queue.declare(&missing).await?;
            memory.declared.extend(missing);
        }
        self.look_for_losses(memory, &queues).await
    }

    async fn look_for_losses(&self, memory: &mut Memory, queues: &BTreeSet<QueueName>) -> Result<(), DispatchError> {
        let mut lost = None;
        for queue in queues {
            let depth = match self.queue.depth(queue).await {
                Ok(depth) => depth,
                Err(QueueError::Setup(reason)) => {
                    info!("{reason}: declaring it again");
                    self.queue.declare(std::slice::from_ref(queue)).await?;
                    lost = Some("a queue was gone");
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let tasks = |run: &RunNo| memory.open.get(run).and_then(|open| open.get(&queue.role)).copied();
            let of_pool = memory.runs.iter().filter(|(_, facts)| facts.pool == queue.pool);
            let (queued, leased) = of_pool
                .filter_map(|(run, _)| tasks(run))
                .fold((0, 0), |(queued, leased), tasks| (queued + tasks.queued, leased + tasks.leased));
            let slots =
                memory.pools.get(&queue.pool).and_then(|pool| pool.slots.get(&queue.role)).copied().unwrap_or(0);
            let ready = i64::try_from(depth.ready).unwrap_or(i64::MAX);
            let seen = Seen { queued, leased, ready, consumers: depth.consumers, slots: i64::from(slots) };
            if let Some(lasting) = memory.losses.see(queue, seen, Instant::now()) {
                let runs: Vec<RunNo> =
                    memory.runs.iter().filter(|(_, facts)| facts.pool == queue.pool).map(|(run, _)| *run).collect();
                let why = "the store counts more queued tasks than the broker holds";
                let again = self.publish_again(&runs, Some(queue.role), lasting, why).await?;
                memory.losses.repaired(queue, again);
            }
        }
        // counted after the broker has answered: the answer may have needed a new connection
        let reconnects = self.queue.reconnects();
        if memory.reconnects.is_some_and(|known| known != reconnects) {
            lost = Some("the connection to the broker was lost");
        } else if memory.reconnects.is_none() && memory.moved.is_some() {
            lost = Some("the broker was out of reach");
        }
        memory.reconnects = Some(reconnects);
        if let Some(why) = lost {
            let runs: Vec<RunNo> = memory.runs.keys().copied().collect();
            self.publish_again(&runs, None, Duration::ZERO, why).await?;
        }
        Ok(())
    }

    /// Forgets that tasks were published, where that is at least so long ago; returns how many.
    async fn publish_again(
        &self,
        runs: &[RunNo],
        role: Option<Role>,
        older_than: Duration,
        why: &str,
    ) -> Result<u64, DispatchError> {
        let older_than_ms = u64::try_from(older_than.as_millis()).unwrap_or(u64::MAX);
        let mut again = 0;
        for run in runs {
            again += self.store.forget_published(*run, role, older_than_ms).await?;
        }
        if again > 0 {
            info!("{why}: {again} tasks are published again");
        }
        Ok(again)
    }
}

/// What a look brought.
struct Looked {
    published: u32,
    /// Most of the window of each role that got tasks is in flight.
    full: bool,
    next_due: Option<Duration>,
    found: Standing,
}

fn by_pool(runs: &BTreeMap<RunNo, RunFacts>) -> BTreeMap<&str, Vec<(&RunNo, &RunFacts)>> {
    let mut pools: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for (run, facts) in runs {
        pools.entry(facts.pool.as_str()).or_default().push((run, facts));
    }
    pools
}

/// Pools as their live workers describe them.
fn pools(workers: impl Iterator<Item = SessionInfo>) -> BTreeMap<String, Pool> {
    let mut pools: BTreeMap<String, Pool> = BTreeMap::new();
    for worker in workers {
        let pool = pools.entry(worker.pool).or_default();
        for (role, slots) in worker.slots {
            *pool.slots.entry(role).or_default() += slots;
        }
        let reads = worker.reads_messages.max(1);
        pool.message_version = Some(pool.message_version.map_or(reads, |lowest| lowest.min(reads)));
    }
    pools
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p12_the_lowest_version_that_every_worker_reads_is_written() {
        let worker = |pool: &str, slots, reads| SessionInfo {
            reads_messages: reads,
            ..SessionInfo::of_this_process("1", pool, BTreeMap::from([(Role::Question, slots)]), "h")
        };
        let pools = pools([worker("a", 8, 3), worker("a", 16, 2), worker("b", 1, 5)].into_iter());
        assert_eq!(pools["a"], Pool { slots: Slots::from([(Role::Question, 24)]), message_version: Some(2) });
        assert_eq!(pools["b"].message_version, Some(5));
    }
}
