//! Looks after the workers and runs of a domain: ends dead sessions (P4), sweeps, finds completion (P7), takes back dead
//! letters (P2), aggregates what is finished (P36). Everything it does is idempotent, so two of them do no harm.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use bench_proto::ids::{RunId, RunNo, TaskKey};
use bench_queue::Queue;
use bench_store::{RunFilter, RunRow, RunState, Store, StoreError};
use bench_telemetry::{
    outage::{self, Upset},
    process, process_span,
};
use bench_worker::{banks::BankCache, concluder::Concluder, traces::Keeper};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, info, warn};

use crate::{
    app::App,
    cluster::sessions::Watch,
    dispatch::trouble::{LeftOut, Trouble},
    results,
    standing::{
        group::{RunsOfGroup, group_of_equals},
        latency::{self, all_ended},
        waiting::keep_its_probe_back,
    },
};

/// How often it looks around.
const TICK: Duration = Duration::from_millis(250);
/// How often the level-triggered sweep of a run is made (P7).
const SWEEP_EVERY: Duration = Duration::from_secs(5);
/// How often dead letters are taken back.
const DEAD_LETTERS_EVERY: Duration = Duration::from_secs(5);
/// Dead letters taken back at once.
const DEAD_LETTERS: usize = 200;

/// Supervises the runs of a domain.
pub(crate) struct Supervisor {
    /// Settings of this process.
    pub app: Arc<App>,
    /// Where runs and results are kept.
    pub store: Arc<dyn Store>,
    /// Where tasks are published, and dead letters lie.
    pub queue: Arc<dyn Queue>,
    /// The runs that it looks after: those that were submitted for this domain.
    pub domain: String,
    /// What troubles the broker or the store.
    pub trouble: Trouble,
    /// Keeps the traces of questions that a sweep ends, where this process has a collector.
    pub keeper: Option<Arc<Keeper>>,
}

/// Why a look around came to nothing.
#[derive(Debug, thiserror::Error)]
enum TickError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0}")]
    Other(String),
}

/// What a supervisor remembers between two ticks; all of it can be learned anew.
struct Supervised {
    next_sweep: HashMap<RunNo, Instant>,
    /// Runs whose questions have ended, and their probe has not.
    probing: BTreeSet<RunNo>,
    /// Runs whose questions have ended, and those of others of their group have not.
    waiting: BTreeSet<RunNo>,
    dead_letters: Option<Instant>,
    left_out: LeftOut,
    concluder: Concluder,
}

impl Supervisor {
    /// Supervises until stopped.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let watch = Watch::new(Arc::clone(&self.store), self.domain.clone());
        // apart: a sweep that waits for the locks of a frozen worker must not keep anybody from noticing that it is frozen
        tokio::join!(watch.run(stop.clone()), self.look_around(stop));
    }

    async fn look_around(self, stop: CancellationToken) {
        let banks = Arc::new(BankCache::new(Arc::clone(&self.store)));
        let mut supervised = Supervised {
            next_sweep: HashMap::new(),
            probing: BTreeSet::new(),
            waiting: BTreeSet::new(),
            dead_letters: None,
            left_out: LeftOut::default(),
            concluder: Concluder::new(Arc::clone(&self.store), banks, self.keeper.clone()),
        };
        let mut upset = Upset::default();
        loop {
            match self.tick(&mut supervised).await {
                Ok(()) => upset.over(),
                Err(TickError::Store(error)) if error.is_transient() => upset.away(&outage::STORE, &error),
                Err(error) => {
                    if upset.is_news(&error.to_string()) {
                        warn!(code = "supervise", "supervising waits: {error}");
                    }
                }
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(TICK) => {}
            }
        }
    }

    async fn tick(&self, supervised: &mut Supervised) -> Result<(), TickError> {
        let running = self.store.running_runs(&self.domain).await?;
        supervised.next_sweep.retain(|run, _| running.iter().any(|(running, _)| running == run));
        for open in [&mut supervised.probing, &mut supervised.waiting] {
            open.retain(|run| running.iter().any(|(running, _)| running == run));
        }
        supervised.left_out.keep(|run| running.iter().any(|(running, _)| running == run));
        // what is wrong with one run holds up no other
        let mut wrong = None;
        for (run, _) in running {
            match self.look_after(supervised, run).await {
                Err(TickError::Store(error)) if error.is_about_rows() => supervised.left_out.add(run, &error),
                Err(TickError::Store(error)) => return Err(error.into()),
                looked => wrong = looked.err().or(wrong),
            }
        }
        if supervised.dead_letters.is_none_or(|looked| looked.elapsed() >= DEAD_LETTERS_EVERY) {
            supervised.dead_letters = Some(Instant::now());
            self.take_back_dead_letters().await?;
        }
        self.trouble.set("damaged runs", supervised.left_out.text());
        wrong.map_or(Ok(()), Err)
    }

    /// Sweeps a run when it is time or everything seems to have ended; ends it when everything has.
    async fn look_after(&self, supervised: &mut Supervised, run: RunNo) -> Result<(), TickError> {
        let row = self.store.run(run).await?;
        let due = supervised.next_sweep.get(&run).is_none_or(|next| Instant::now() >= *next);
        if !due && !all_ended(&row) && !row.look_is_due() {
            return Ok(());
        }
        if !due && (supervised.probing.contains(&run) || supervised.waiting.contains(&run)) {
            return self.end(supervised, &row).await;
        }
        let began = Instant::now();
        let span = process::started(process_span!("sweep", run = row.run_id.0.as_str()));
        let swept = self.sweep(supervised, run).instrument(span.clone()).await;
        if let Err(error) = &swept {
            process::failed(&span, &error.to_string());
        }
        drop(span);
        if !matches!(&swept, Err(TickError::Store(error)) if error.is_transient()) {
            // a sweep over a very large run takes its time: it may use 5 % of it; what cannot be read is not read at each tick
            supervised.next_sweep.insert(run, Instant::now() + SWEEP_EVERY.max(began.elapsed() * 20));
        }
        swept?;
        supervised.left_out.forget(run);
        let row = self.store.run(run).await?;
        if row.state != RunState::Running {
            return Ok(());
        }
        let looked = results::looks::look_if_due(self.store.as_ref(), &row).await;
        if looked.map_err(|error| TickError::Other(error.message))? {
            // what follows from it is opened by a sweep
            supervised.next_sweep.remove(&run);
            return Ok(());
        }
        if all_ended(&row) {
            self.end(supervised, &row).await?;
        }
        Ok(())
    }

    /// All questions have ended: the latency probe is waited for, then the run is finished.
    async fn end(&self, supervised: &mut Supervised, row: &RunRow) -> Result<(), TickError> {
        if !supervised.probing.contains(&row.run_no) && self.waits_for_others(supervised, row).await? {
            supervised.waiting.insert(row.run_no);
            return Ok(());
        }
        supervised.waiting.remove(&row.run_no);
        if !latency::is_over(self.store.as_ref(), row).await? {
            supervised.probing.insert(row.run_no);
            return Ok(());
        }
        supervised.probing.remove(&row.run_no);
        self.finish(row).await
    }

    /// Whether a run waits with its latency probe: others of its group still ask, or one is probed (P43).
    async fn waits_for_others(&self, supervised: &Supervised, row: &RunRow) -> Result<bool, StoreError> {
        let Some(group) = group_of_equals(row).filter(|_| !row.spec.limits.latency_probe.is_off()) else {
            return Ok(false);
        };
        let group = RunsOfGroup::of_id(self.store.as_ref(), &RunId(group.id.clone())).await?;
        let runs = group.map(|group| group.runs).unwrap_or_default();
        Ok(!keep_its_probe_back(row, &runs, |other| supervised.probing.contains(&other)).is_empty())
    }

    async fn sweep(&self, supervised: &Supervised, run: RunNo) -> Result<(), TickError> {
        let outcome = self.store.sweep(run).await?;
        let mut by_run: BTreeMap<RunNo, Vec<TaskKey>> = BTreeMap::new();
        for (run, question) in outcome.to_conclude {
            by_run.entry(run).or_default().push(question);
        }
        for (run, questions) in by_run {
            supervised.concluder.conclude_complete(run, questions).await?;
        }
        Ok(())
    }

    async fn finish(&self, row: &RunRow) -> Result<(), TickError> {
        let filter = RunFilter { control_of: Some(row.run_no), controls: true, ..RunFilter::default() };
        let controls = self.store.list_runs(&filter).await?;
        // the measured run goes first: what it left of the cap is theirs (P41)
        for control in controls.iter().filter(|control| control.waits()) {
            self.store.set_run_state(control.run_no, &[RunState::Paused], RunState::Running, None).await?;
        }
        if controls.iter().any(|control| control.state == RunState::Running || control.waits()) {
            // its report shows them
            return Ok(());
        }
        if !self.store.set_run_state(row.run_no, &[RunState::Running], RunState::Finished, None).await? {
            return Ok(());
        }
        let run = row.run_id.0.as_str();
        info!(run, "run {run} is finished");
        let row = self.store.run(row.run_no).await?;
        // whoever asks for it makes it
        let summary = results::summary_of(&self.app, self.store.as_ref(), &row).await;
        summary.map(drop).map_err(|error| TickError::Other(error.message))
    }

    /// Tasks among the dead letters are handed out again if the store still wants them; what cannot be read waits for a person.
    async fn take_back_dead_letters(&self) -> Result<(), TickError> {
        let dead = match self.queue.take_dead_letters(DEAD_LETTERS).await {
            Ok(dead) => dead,
            Err(error) => {
                self.trouble.set("broker", error.to_string());
                return Ok(());
            }
        };
        self.trouble.set("broker", "");
        self.trouble.set(
            "dead letters",
            match dead.unreadable {
                0 => String::new(),
                count => {
                    format!("{count} unreadable messages lie in the dead letters: `bench-coord dead list` shows them")
                }
            },
        );
        let mut by_run: BTreeMap<RunNo, Vec<TaskKey>> = BTreeMap::new();
        for message in dead.tasks {
            if let Some(task) = TaskKey::from_wire(message.task) {
                by_run.entry(RunNo(message.run_no)).or_default().push(task);
            }
        }
        for (run, tasks) in by_run {
            let again = self.store.put_back(run, &tasks, 0, None).await?;
            // the run of an odd message may be nowhere
            let run = self.store.run(run).await.map_or_else(|_| run.0.to_string(), |row| row.run_id.0);
            let count = tasks.len();
            warn!(
                run,
                code = "dead_letters",
                "{count} messages of run {run} were dead letters, {again} of their tasks are handed out again"
            );
        }
        Ok(())
    }
}
