//! The dispatcher: select, publish, await the confirm, then note (P2). It publishes only a window of ready tasks (P15), so
//! the broker's memory does not grow with the run, and pause and cancel act at once.
//!
//! In come rows of the store: runs, ready tasks, sessions of workers; out go messages, and the note that they are on their way.
//! The same loop serves one local run and all runs of a cluster: what differs is where it learns of runs and slots. Start
//! reading at [`Dispatcher::run`].
//!
//! | module | question |
//! |---|---|
//! | this one | what is handed out now, and when is the next look? |
//! | `survey` | which runs, workers and queues are there? |
//! | [`window`] | how many tasks does each run get? |
//! | `losses` | what has the broker lost? |
//! | `refused` | which pools does the broker refuse? |
//! | `outages` | which runs are held back because a provider is away? |
//! | `context` | which trace does a message belong to? |
//! | `rest` | what wakes the dispatcher before its time? |
//! | [`past`] | does the store still know what it has said (P44)? |
//! | [`trouble`] | what keeps a part of the coordinator from working? |

mod context;
mod losses;
mod outages;
#[cfg_attr(not(feature = "cluster"), expect(dead_code, reason = "a build for one machine has no `serve`"))]
pub(crate) mod past;
mod refused;
mod rest;
mod survey;
pub(crate) mod trouble;
pub(crate) mod window;

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use bench_proto::{
    ids::RunNo,
    task::{QueueName, TASK_MESSAGE_VERSION, TaskMessage},
};
use bench_queue::{Outgoing, Queue, QueueError};
use bench_store::{OpenByRole, ReadyTask, Store, StoreError};
use bench_telemetry::{
    outage::{self, Upset},
    process, process_span,
};
use bench_worker::traces::link_messages;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, info, warn};

pub(crate) use self::rest::WakeUps;
use self::{
    context::Contexts,
    past::Past,
    rest::{Load, gather},
    survey::{DispatchedRun, Learned, by_pool},
    trouble::Trouble,
    window::{Demand, Slots, fills, in_flight_of_all, is_at_limit, shares, worth_counting},
};

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
    /// Where it selects tasks, and notes that they are published.
    pub store: Arc<dyn Store>,
    /// Where it publishes them.
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

impl Dispatcher {
    /// Publishes until stopped. What was published before this dispatcher began is published again: it may be gone (P2).
    pub(crate) async fn run(self, stop: CancellationToken) {
        let (mut learned, mut upset) = (Learned::default(), Upset::default());
        let (mut idle, mut found) = (QUICK_POLL, Load::default());
        loop {
            let began = Instant::now();
            let looked = self.look(&mut learned).await;
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
                    idle = (idle * 2).min(self.longest_pause(&learned));
                    next_due.unwrap_or(POLL).min(idle)
                }
                Err(error) => {
                    tell(&mut upset, &error);
                    self.trouble.set("dispatcher", format!("nothing can be handed out: {error}"));
                    self.after_error(&mut learned, &error);
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
    fn longest_pause(&self, learned: &Learned) -> Duration {
        let moving = learned.moved.is_some_and(|moved| moved.elapsed() < MOVING);
        if moving && !self.is_local() { MOVING_POLL } else { POLL }
    }

    fn after_error(&self, learned: &mut Learned, error: &DispatchError) {
        if let DispatchError::Queue(_) = error {
            // declared again and published again at the next look: both are harmless when nothing was lost
            learned.declared.clear();
            learned.reconnects = None;
        }
    }

    async fn look(&self, learned: &mut Learned) -> Result<Looked, DispatchError> {
        if !self.is_local() {
            if !self.past.is_settled(self.store.interruptions(), Instant::now()) {
                let next_due = Some(UNSETTLED_POLL);
                return Ok(Looked { published: 0, full: true, next_due, found: Load::default() });
            }
            let times = self.past.times();
            if times != learned.went_back {
                // notes of messages that were consumed since are worth nothing: all that is ready is published anew
                info!("the store went back in time: all that is ready is published again");
                (learned.went_back, learned.runs) = (times, BTreeMap::new());
            }
        }
        self.learn_runs(learned).await?;
        self.survey(learned).await?;
        self.read_outages(learned).await?;
        if learned.runs.is_empty() {
            self.tell_left_out(learned);
            learned.open.clear();
            return Ok(Looked { published: 0, full: true, next_due: None, found: Load::default() });
        }
        let runs: Vec<RunNo> = learned.runs.keys().copied().collect();
        let counted = worth_counting(
            learned.pools.values().map(|pool| &pool.slots),
            learned.runs.values().map(|facts| facts.most),
        );
        let open = self.store.open_tasks_of(&runs, counted).await?;
        if open != learned.open {
            learned.moved = Some(Instant::now());
        }
        learned.turn = learned.turn.wrapping_add(1);
        let (published, full, mut found) = self.hand_out(learned, &open).await?;
        self.tell_left_out(learned);
        self.give_up(learned, &open).await?;
        found.in_flight += i64::from(published);
        let next_due = open.values().flat_map(BTreeMap::values).filter_map(|tasks| tasks.next_due_ms).min();
        learned.open = open;
        if published > 0 {
            learned.moved = Some(Instant::now());
        }
        let next_due = next_due.map(|ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0)));
        Ok(Looked { published, full, next_due: next_due.filter(|due| !due.is_zero()), found })
    }

    /// Hands out to each pool what fits into it: how many tasks, whether they fill the windows, and how much is in flight.
    async fn hand_out(
        &self,
        learned: &mut Learned,
        open: &BTreeMap<RunNo, OpenByRole>,
    ) -> Result<(u32, bool, Load), DispatchError> {
        let (mut published, mut full, mut found) = (0, true, Load::default());
        let (now, mut refused) = (Instant::now(), Vec::new());
        learned.granted.clear();
        for (name, pool) in by_pool(&learned.runs) {
            if learned.refused.is_left_alone(name, now) {
                continue;
            }
            let slots = learned.pools.get(name).map(|pool| pool.slots.clone()).unwrap_or_default();
            let version = learned.pools.get(name).and_then(|pool| pool.message_version);
            let demands: Vec<Demand> = pool
                .iter()
                .map(|(run, facts)| Demand {
                    run: **run,
                    most: facts.most,
                    open: open.get(run).cloned().unwrap_or_default(),
                    bounds: learned.outages.bounds(&facts.needs, Instant::now()),
                    judge_is_away: learned.outages.is_any_away(&facts.judges),
                })
                .collect();
            let granted = shares(&demands, &slots, learned.turn);
            full &= fills(&demands, &slots, &granted);
            found.at_limit |= demands.iter().any(is_at_limit);
            found.in_flight += in_flight_of_all(&demands);
            for (run, role, count) in granted {
                learned.granted.entry(run).or_default().insert(role);
                let (facts, queue) = (&learned.runs[&run], QueueName::new(name, role));
                let grant = Grant { run, facts, queue, count, version };
                match self.publish(grant, &mut learned.contexts).await {
                    Err(DispatchError::Store(error)) if error.is_about_rows() && !self.is_local() => {
                        learned.left_out.add(run, &error);
                    }
                    Err(DispatchError::Queue(QueueError::Setup(why))) if !self.is_local() => {
                        refused.push((name.to_owned(), why.to_string()));
                        break;
                    }
                    handed_out => {
                        let count = handed_out?;
                        published += count;
                        if count > 0 {
                            learned.refused.published(name);
                        }
                    }
                }
            }
        }
        for (pool, why) in refused {
            learned.refuse(&pool, why);
        }
        Ok((published, full, found))
    }

    /// Says what is left out, for `status`.
    fn tell_left_out(&self, learned: &Learned) {
        self.trouble.set("runs", learned.left_out.text());
        self.trouble.set("pools", learned.refused.text());
    }

    /// Hands out ready tasks of one run and role; how many.
    async fn publish(&self, grant: Grant<'_>, contexts: &mut Contexts) -> Result<u32, DispatchError> {
        let Grant { run, facts, queue, count, version } = grant;
        let tasks = self.store.ready_tasks(run, queue.role, count).await?;
        if tasks.is_empty() {
            return Ok(0);
        }
        let message = |ready: &ReadyTask| {
            let mut message = TaskMessage::new(facts.run_id.clone(), run, ready.task);
            message.v = version.unwrap_or(TASK_MESSAGE_VERSION).min(TASK_MESSAGE_VERSION).max(facts.message_version);
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
}

/// The share of a window that a run gets.
struct Grant<'a> {
    run: RunNo,
    facts: &'a DispatchedRun,
    queue: QueueName,
    count: u32,
    /// Version of the messages (P12).
    version: Option<u32>,
}

/// What a look brought.
struct Looked {
    published: u32,
    /// Most of the window of each role that got tasks is in flight.
    full: bool,
    next_due: Option<Duration>,
    found: Load,
}
