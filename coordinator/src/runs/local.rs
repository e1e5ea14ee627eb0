//! Runs in this process (P21): the owner's lock, the worker library, the dispatcher and the watch over completion. Only
//! the URLs differ from a cluster; the code is the same.

use std::{sync::Arc, time::Duration};

use bench_proto::{
    ids::{Role, RunNo},
    task::QueueName,
};
use bench_queue::Queue;
use bench_settings::signals::Interrupts;
use bench_store::{RunRow, RunState, Runs, Sessions, Store, retry_until};
use bench_telemetry::{process, process_span};
use bench_worker::{
    engine::{Worker, WorkerConfig},
    environment::WorkerEnvironment,
};
use tokio::{sync::Notify, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, debug, info};

use super::{probe_turns::ProbeTurn, rest::RunEnd};
use crate::{
    dispatch::{Dispatcher, OUTAGE_TIMEOUT, Scope, WakeUps, past::Past, trouble::Trouble},
    exit::CliError,
    planning::planner::{Ahead, Planner},
    results::looks,
    standing::{
        domains::{LOCAL_DOMAIN, session_domain},
        latency::{self, all_ended},
        lock::OwnerLock,
        own_meter::{OwnMeter, ToldMeter},
        row_of,
    },
};

/// How often the owner looks at the run's state (P21, P23).
pub(super) const STATE_POLL: Duration = Duration::from_millis(250);
/// Pause after a conclusion before the run's row is looked at.
const GATHER: Duration = Duration::from_millis(5);
/// How often the level-triggered sweep runs (P7).
const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// What an owner needs.
pub(crate) struct LocalRun {
    /// Where the run and its results are kept.
    pub store: Arc<dyn Store>,
    /// Through which the run's tasks reach the worker of this process.
    pub queue: Arc<dyn Queue>,
    /// Accounts, settings and shared clients.
    pub environment: Arc<WorkerEnvironment>,
    /// Slots per role.
    pub slots: Vec<(Role, usize)>,
    /// Longest wait for calls in flight after a stop.
    pub drain: Duration,
    /// Bytes of banks that its worker keeps in memory.
    pub bank_bytes: u64,
}

impl LocalRun {
    /// Owns a run from here to its rest: takes over what a dead owner left, plans, works, and finds the end.
    ///
    /// The caller holds `lock` and has put the run into state `running`. `planner` is absent when all banks are planned.
    ///
    /// # Errors
    /// When the store breaks or the worker cannot start; the run stays resumable.
    pub(crate) async fn own(
        self,
        run: &RunRow,
        lock: &OwnerLock,
        planner: Option<Planner>,
        (interrupts, turn): (&Interrupts, ProbeTurn),
    ) -> Result<RunEnd, CliError> {
        let end = self.work(run, lock, planner, (interrupts, turn)).await;
        if let Err(error) = &end {
            let (from, why) = ([RunState::Running], Some(error.message.as_str()));
            // best effort: the store may be what is broken, and then the lock alone tells that nobody runs it
            let _ = self.store.set_run_state(run.run_no, &from, RunState::Paused, why).await;
        }
        end
    }

    /// The same; whatever stands in the way of it is told, and the run is left as it is.
    async fn work(
        &self,
        run: &RunRow,
        lock: &OwnerLock,
        planner: Option<Planner>,
        (interrupts, mut turn): (&Interrupts, ProbeTurn),
    ) -> Result<RunEnd, CliError> {
        let run_no = run.run_no;
        self.take_over(run_no).await?;
        let opened = Arc::new(Notify::new());
        let worker = self.start_worker(run, &opened).await?;
        let told = self.tell_meter(run, lock, &worker).await;
        let stop = CancellationToken::new();
        let planning = planner.map(|planner| {
            let (store, opened, stop) = (Arc::clone(&self.store), Arc::clone(&opened), stop.clone());
            tokio::spawn(async move { planner.run(store, opened, stop, Ahead::Bounded).await })
        });
        let dispatcher = tokio::spawn(self.dispatcher(run_no, &opened, &worker).run(stop.clone()));

        debug!("worker started");
        let end = self.watch(run, &worker, &opened, planning, (interrupts, &mut turn)).await;
        debug!("run ended");

        stop.cancel();
        // a run that is finished has nothing in flight; everything else drains what it paid for
        match end {
            Ok(RunEnd::Cancelled { now: true }) => worker.stop_now().await,
            _ => stop_worker(worker, interrupts, cancelled_at_once(self.store.as_ref(), run_no)).await,
        }
        let _ = dispatcher.await;
        drop(told);
        // what was in flight until now would have been in the probe of another run
        drop(turn);
        end
    }

    /// Starts the worker library for this run alone.
    async fn start_worker(&self, run: &RunRow, opened: &Arc<Notify>) -> Result<Worker, CliError> {
        let pool = run.spec.limits.pool.clone();
        let queues: Vec<QueueName> = Role::ALL.iter().map(|role| QueueName::new(pool.clone(), *role)).collect();
        self.queue.declare(&queues).await.map_err(CliError::infrastructure_of)?;
        let config = WorkerConfig {
            name: format!("{}-{}", LOCAL_DOMAIN, std::process::id()),
            domain: session_domain(run.run_no),
            pool,
            host: String::new(),
            slots: self.slots.clone(),
            drain: self.drain,
            bank_bytes: self.bank_bytes,
        };
        let (environment, store) = (Arc::clone(&self.environment), Arc::clone(&self.store));
        Ok(Worker::start(config, environment, store, Arc::clone(&self.queue), Arc::clone(opened)).await?)
    }

    /// Says to other processes where the meter of the run is, for systems that a person starts. Without a meter, or where the disk
    /// takes no file, nobody is told; what is wrong with its address is said by the first task that needs it.
    async fn tell_meter(&self, run: &RunRow, lock: &OwnerLock, worker: &Worker) -> Option<ToldMeter> {
        run.spec.limits.meter.as_ref()?;
        let listening = worker.listen_for_systems().await.ok()?;
        let place = &self.environment.meter;
        let (address, key) = (place.address_of(&listening, &run.run_id), place.key_of(&run.run_id));
        let told = OwnMeter { address, key }.tell(lock);
        told.inspect_err(|error| debug!("where the meter is cannot be told: {error}")).ok()
    }

    fn dispatcher(&self, run: RunNo, opened: &Arc<Notify>, worker: &Worker) -> Dispatcher {
        let slots = self.slots.iter().map(|(role, slots)| (*role, u32::try_from(*slots).unwrap_or(u32::MAX)));
        Dispatcher {
            past: Past::default(),
            store: Arc::clone(&self.store),
            queue: Arc::clone(&self.queue),
            scope: Scope::Run(run, slots.collect()),
            wake_ups: WakeUps { opened: Arc::clone(opened), ended: Arc::clone(&worker.ended) },
            trouble: Trouble::default(),
            // messages stay in this process, and who works on them derives the same ids
            traced: false,
            outage_timeout: OUTAGE_TIMEOUT,
        }
    }

    /// The lock proves that no owner lives: open sessions of this run's domain are dead.
    async fn take_over(&self, run_no: RunNo) -> Result<(), CliError> {
        end_dead_sessions(self.store.as_ref(), run_no).await?;
        self.store.forget_published(run_no, None, 0).await?;
        // the sessions that ended will not send the traces that they have decided to keep
        self.store.inherit_traces(run_no).await?;
        Ok(())
    }

    async fn watch(
        &self,
        run: &RunRow,
        worker: &Worker,
        opened: &Notify,
        mut planning: Option<JoinHandle<Result<(), CliError>>>,
        (interrupts, turn): (&Interrupts, &mut ProbeTurn),
    ) -> Result<RunEnd, CliError> {
        let run_no = run.run_no;
        let (mut broken, mut waiting) = (worker.broken.clone(), None);
        let mut next_sweep = tokio::time::Instant::now() + SWEEP_EVERY;
        // every question has ended, and the latency probe has not
        let mut probing = false;
        loop {
            tokio::select! {
                // conclusions follow each other closely, and one look at the run's row serves several of them
                () = worker.concluded.notified() => tokio::time::sleep(GATHER).await,
                () = tokio::time::sleep(STATE_POLL) => {}
                () = interrupts.stop.cancelled() => {
                    return hold(self.store.as_ref(), run_no, interrupts).await;
                }
                planned = async { planning.as_mut().expect("guarded by the condition").await }, if planning.is_some() => {
                    planning = None;
                    debug!("plan written");
                    planned.map_err(|e| CliError::internal_fault("writing the plan", e))??;
                }
                _ = broken.changed() => {}
            }
            if let Some(reason) = broken.borrow().clone() {
                return Err(CliError::infrastructure(format!(
                    "{reason}; what was stored is kept: `bench-coord resume {}` goes on when the cause is gone",
                    run.run_id
                )));
            }
            let Some(row) = row_of(self.store.as_ref(), run_no, &mut waiting).await? else { continue };
            if let Some(end) = RunEnd::of_row(&row) {
                return Ok(end);
            }
            let due = tokio::time::Instant::now() >= next_sweep;
            if !probing && (all_ended(&row) || row.look_is_due() || due) {
                let began = tokio::time::Instant::now();
                probing = self.sweep(&row, worker).await?;
                if row.look_is_due() {
                    opened.notify_one();
                }
                // a sweep over a very large run takes its time: it may use 5 % of it
                next_sweep = tokio::time::Instant::now() + SWEEP_EVERY.max(began.elapsed() * 20);
                debug!("swept in {:?}", began.elapsed());
                if !probing {
                    continue;
                }
            }
            if probing && (run.spec.limits.latency_probe.is_off() || turn.may_probe()) {
                match latency::is_over(self.store.as_ref(), &row).await {
                    Ok(true) => {
                        self.store.set_run_state(run_no, &[RunState::Running], RunState::Finished, None).await?;
                        return Ok(RunEnd::Finished);
                    }
                    Ok(false) => opened.notify_one(),
                    Err(error) if error.is_transient() => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }

    /// Repairs counters from the checkpoints, concludes what is complete; true when every question of the sample has ended.
    async fn sweep(&self, row: &RunRow, worker: &Worker) -> Result<bool, CliError> {
        let span = process::started(process_span!("sweep", run = row.run_id.0.as_str()));
        let outcome = match self.store.sweep(row.run_no).instrument(span).await {
            Err(error) if error.is_transient() => return Ok(false),
            outcome => outcome?,
        };
        worker.conclude_later(outcome.to_conclude);
        let row = self.store.run(row.run_no).await?;
        if looks::look_if_due(self.store.as_ref(), &row).await? {
            // opens what follows from it, or leaves it out
            return Box::pin(self.sweep(&row, worker)).await;
        }
        Ok(all_ended(&row))
    }
}

/// Holds a run that the person leaves. A store that is away is waited for until the second signal: then the lock alone tells that
/// nobody works on the run.
///
/// # Errors
/// What else the store meets.
pub(crate) async fn hold(store: &dyn Store, run: RunNo, interrupts: &Interrupts) -> Result<RunEnd, CliError> {
    let reason = "interrupted";
    let pause = || store.set_run_state(run, &[RunState::Running], RunState::Paused, Some(reason));
    match retry_until(interrupts.now.cancelled(), pause).await {
        Err(error) if !error.is_transient() => Err(error.into()),
        Ok(_) | Err(_) => Ok(RunEnd::Paused { reason: reason.to_owned() }),
    }
}

/// Waits for calls in flight; they are dropped at a second signal, and when the run is `cancelled_at_once`.
async fn stop_worker(worker: Worker, interrupts: &Interrupts, cancelled_at_once: impl Future<Output = ()>) {
    let hurry = async {
        tokio::select! {
            () = interrupts.now.cancelled() => {}
            () = cancelled_at_once => {}
        }
    };
    worker.stop_unless_hurried(hurry).await;
}

/// Waits until a run is cancelled without waiting for its calls, whatever it was held for before (P23).
async fn cancelled_at_once(store: &dyn Runs, run: RunNo) {
    loop {
        tokio::time::sleep(STATE_POLL).await;
        // a store that is away says nothing: the drain has an end of its own
        if let Ok(row) = store.run(run).await
            && RunEnd::of_row(&row) == Some(RunEnd::Cancelled { now: true })
        {
            return;
        }
    }
}

/// Ends what dead owners of a local run left open: their tasks go on, what they had reserved becomes uncertain. The caller
/// holds the run's lock.
///
/// # Errors
/// What the store meets.
pub(crate) async fn end_dead_sessions(store: &dyn Sessions, run_no: RunNo) -> Result<(), CliError> {
    for open in store.open_sessions(&session_domain(run_no)).await? {
        let lost = store.end_session(open.session).await?;
        if lost > 0 {
            info!("{lost} tasks of {} go on", open.worker);
        }
    }
    Ok(())
}
