//! Signs of life: the session that guards a worker's leases, and whether calls may start at all (P4, P23).

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bench_models::stop::{Liveness, OUT_OF_REACH, StopCause};
use bench_proto::{failure::code, ids::RunNo, task::TaskEvent};
use bench_store::{CANCELLED_NOW, Release, RunState, SessionId, StoreError};
use bench_telemetry::outage::{self, Waiting};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{Shared, alike};
use crate::{
    active::LostLeases,
    context::{RunContext, StopReason},
};

/// How often the session's counter is raised; at least every 3 s by P4.
const RENEW_EVERY: Duration = Duration::from_secs(2);
/// How soon it is tried again when the store was not there: whoever is there next may have forgotten something (P44).
const RENEW_SOON: Duration = Duration::from_millis(300);
/// Without a confirmed renewal for so long, no call starts.
const LONGEST_SILENCE: Duration = Duration::from_secs(10);
/// How often the states of the runs at hand are read, so that no call starts later than 1 s after a stop (P23).
const STATE_POLL: Duration = Duration::from_millis(400);

/// When the session was last known to be alive. The clock is monotonic and goes on while the process is frozen.
#[derive(Debug)]
pub(super) struct Heartbeat {
    origin: Instant,
    renewed_ms: AtomicU64,
}

impl Default for Heartbeat {
    fn default() -> Self {
        Self { origin: Instant::now(), renewed_ms: AtomicU64::new(0) }
    }
}

impl Heartbeat {
    /// A renewal that was sent at `sent` is confirmed.
    pub(super) fn renewed(&self, sent: Instant) {
        let ms = u64::try_from(sent.saturating_duration_since(self.origin).as_millis()).unwrap_or(u64::MAX);
        self.renewed_ms.fetch_max(ms, Ordering::Relaxed);
    }
}

impl Liveness for Heartbeat {
    fn alive(&self) -> bool {
        let renewed = Duration::from_millis(self.renewed_ms.load(Ordering::Relaxed));
        self.origin.elapsed().saturating_sub(renewed) < LONGEST_SILENCE
    }
}

/// Renews the session. When a supervisor has ended it, its tasks are somebody else's: calls of the old session stop, and a
/// new session begins.
pub(super) async fn renew(shared: Arc<Shared>, stop: CancellationToken) {
    let (mut silent, mut waiting, mut lost, mut pause) = (false, None, LostLeases::default(), RENEW_EVERY);
    loop {
        tokio::time::sleep(pause).await;
        pause = RENEW_EVERY;
        if bench_telemetry::metrics::enabled() {
            shared.refresh_metrics();
        }
        let session = shared.session.id();
        match shared.renew_now().await {
            Ok(true) => {
                (silent, waiting) = (false, None);
                shared.hand_back_lost(&mut lost).await;
            }
            Ok(false) if stop.is_cancelled() => return,
            Ok(false) => {
                if let Err(error) = shared.begin_again(session).await {
                    tell(&mut waiting, &error, "a new session could not be opened");
                }
            }
            Err(error) => {
                tell(&mut waiting, &error, "the session could not be renewed");
                pause = RENEW_SOON;
                if !silent && !shared.session.heartbeat.alive() {
                    silent = true;
                    info!("no renewal for {} s: no call starts until the store is back", LONGEST_SILENCE.as_secs());
                    shared.drop_contexts(OUT_OF_REACH).await;
                }
            }
        }
    }
}

/// Says what a failure of the store is about, unless it is an outage that is told as a whole.
fn tell(waiting: &mut Option<Waiting>, error: &StoreError, what: &str) {
    if error.is_transient() {
        outage::STORE.met(waiting, error);
    } else {
        warn!(code = code::STORE, "{what}: {error}");
    }
}

impl Shared {
    /// Leaves a session behind that was ended, with everything that was begun under it, and opens another, unless that has
    /// been done already.
    pub(super) async fn begin_again(&self, ended: SessionId) -> Result<(), StoreError> {
        let _beginning = self.session.beginning.lock().await;
        if self.session.id() != ended {
            return Ok(());
        }
        self.drop_contexts("the session was ended").await;
        let sent = Instant::now();
        let session =
            self.tools.store.open_session(&self.session.name, &self.session.domain, &self.session.info).await?;
        self.session.number.store(session.0, Ordering::SeqCst);
        if let Some(journal) = &self.tools.journal {
            journal.begin();
        }
        self.session.heartbeat.renewed(sent);
        let (worker, no) = (self.session.name.as_str(), session.0);
        warn!(
            worker,
            code = "session_ended",
            "this worker's session was ended by a supervisor: its tasks go to others, session {no} begins"
        );
        Ok(())
    }

    /// Hands back leases of this session that nobody here works on.
    async fn hand_back_lost(&self, lost: &mut LostLeases) {
        let leases = match self.tools.store.leases(self.session.id()).await {
            Ok(leases) => leases,
            // the renewal says when the store is away
            Err(error) if error.is_transient() => return,
            Err(error) => return warn!(code = code::STORE, "the leases of this session could not be read: {error}"),
        };
        let releases: Vec<Release> = lost
            .see(leases, &self.tools.active)
            .into_iter()
            .map(|lease| Release {
                run: lease.run,
                task: lease.task,
                epoch: lease.epoch,
                event: TaskEvent::Park,
                delay_ms: 0,
                reason: Some("the answer to its claim was lost".to_owned()),
            })
            .collect();
        if releases.is_empty() {
            return;
        }
        match self.tools.store.release(&releases).await {
            Ok(()) => {
                info!("{} leases that nobody works on were handed back", releases.len());
                self.opened.notify_one();
            }
            Err(error) if error.is_transient() => {}
            Err(error) => {
                warn!(
                    code = code::STORE,
                    "leases that nobody works on could not be handed back, the next look tries again: {error}"
                );
            }
        }
    }

    /// Stops the calls of all runs at hand, which go on; a task or a metered call that comes later builds its run's context anew.
    async fn drop_contexts(&self, reason: &str) {
        let cause = StopCause::Here(reason.to_owned());
        self.stop_calls_of_all(&cause).await;
        // locked until the meter has forgotten them too: a context is built under the same lock
        let mut contexts = self.runs.contexts.lock().await;
        for (run, context) in contexts.drain() {
            // one that was built meanwhile
            context.stop_by(&cause);
            self.runs.former().add(run, &context);
            self.runs.note_refused_later(context);
        }
        self.runs.metering.forget_runs();
    }
}

/// Polls the states of the runs that something is at work for, stops the calls of those that are no longer running, and pauses those
/// that cannot go on by themselves: their cap is reached, or their provider refuses every call (P23).
pub(super) async fn follow_runs(shared: Arc<Shared>) {
    let mut waiting = None;
    loop {
        tokio::select! {
            () = tokio::time::sleep(STATE_POLL) => {}
            () = shared.look_at_runs.notified() => {}
        }
        shared.runs.environment.systems.adapters.instances.let_go().await;
        let contexts = shared.contexts_at_hand().await;
        for context in &contexts {
            if let Some(reason) = context.stop_reason() {
                pause(&shared, context, &reason, &mut waiting).await;
            }
        }
        let mut runs: BTreeSet<RunNo> = contexts.iter().map(|c| c.run_no()).collect();
        runs.extend(shared.runs.former().runs());
        runs.extend(shared.runs.alike.runs());
        if runs.is_empty() {
            continue;
        }
        let runs: Vec<RunNo> = runs.into_iter().collect();
        let states = match shared.tools.store.run_states(&runs).await {
            Ok(states) => {
                waiting = None;
                states
            }
            Err(error) => {
                tell(&mut waiting, &error, "the states of runs could not be read");
                continue;
            }
        };
        // runs that were deleted
        let gone = runs.iter().filter(|run| states.iter().all(|(found, ..)| found != *run));
        gone.for_each(|run| drop(shared.runs.alike.end(*run)));
        for (run, state, version) in states {
            let at_hand = contexts.iter().find(|c| c.run_no() == run);
            // a run that was resumed or got other limits is a new context: fresh limits, fresh flag
            if let Some(context) = at_hand
                && (state != RunState::Running || version != context.row().state_version)
            {
                shared.forget_context(context).await;
                if state == RunState::Running {
                    shared.runs.note_refused_later(Arc::clone(context));
                } else {
                    context.stop_calls(state.name());
                    // waits for calls in flight, so it is not waited for here
                    shared.runs.close_later(Arc::clone(context));
                }
            }
            if state != RunState::Running {
                stop_former(&shared, run, state).await;
                tell_late(&shared, run).await;
            }
        }
    }
}

/// Says of how many tasks of a run it was not said yet that they were given up, which were so after the run was closed here.
async fn tell_late(shared: &Shared, run: RunNo) {
    let open = shared.runs.alike.end(run);
    if open.is_empty() {
        return;
    }
    let id = shared.tools.store.run(run).await.map_or_else(|_| run.0.to_string(), |row| row.run_id.0);
    for (code, line, count) in open {
        alike::say(&id, (&code, &line), count);
    }
}

/// Stops what is still at work for a run that is no longer running; what a run that is cancelled at once has in flight is dropped,
/// whatever it was held for before (P23).
async fn stop_former(shared: &Arc<Shared>, run: RunNo, state: RunState) {
    let former = shared.runs.former().of_run(run);
    if former.is_empty() {
        return;
    }
    if state == RunState::Cancelled && was_cancelled_at_once(shared, &former[0]).await {
        // it is dropped, and booked, once
        let dropped = shared.runs.former().take(run);
        for context in dropped {
            context.drop_calls(state.name());
            tokio::spawn(book_dropped(Arc::clone(shared), context));
        }
    } else {
        former.iter().for_each(|context| context.stop_calls(state.name()));
    }
}

/// Longest wait for dropped tasks to let go of their run.
const DROPPED_WITHIN: Duration = Duration::from_secs(30);

/// Books what dropped calls of a run leave behind: attempts whose records nobody will store any more become uncertain.
async fn book_dropped(shared: Arc<Shared>, context: Arc<RunContext>) {
    let (run, session) = (context.run_no(), context.session());
    let dropped = Instant::now();
    while Arc::strong_count(&context) > 1 && dropped.elapsed() < DROPPED_WITHIN {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    context.close_reservations().await;
    // what the writer still holds settles itself, before or after this
    if let Err(error) = shared.tools.store.lose_open(run, session).await {
        let run = context.row().run_id.0.as_str();
        warn!(
            run,
            code = code::STORE,
            "what dropped calls of run {run} may have cost is booked when this session ends: {error}"
        );
    }
}

async fn was_cancelled_at_once(shared: &Shared, context: &RunContext) -> bool {
    match shared.tools.store.run(context.run_no()).await {
        Ok(row) => row.reason.as_deref() == Some(CANCELLED_NOW),
        // the next look reads it again
        Err(error) if error.is_transient() => false,
        Err(error) => {
            let run = context.row().run_id.0.as_str();
            warn!(run, code = code::STORE, "why run {run} was cancelled could not be read, its calls finish: {error}");
            false
        }
    }
}

/// Pauses a run that cannot go on. The one process that did it says so; a local run tells its owner by how it ends.
async fn pause(shared: &Shared, context: &RunContext, reason: &StopReason, waiting: &mut Option<Waiting>) {
    let message = reason.message.as_str();
    let (no, run) = (context.run_no(), context.row().run_id.0.as_str());
    match shared.tools.store.set_run_state(no, &[RunState::Running], RunState::Paused, Some(message)).await {
        Ok(true) if shared.session.is_served() => warn!(run, code = reason.code, "run {run} is paused: {message}"),
        Ok(_) => {}
        Err(error) => tell(waiting, &error, &format!("run {run} could not be paused, the next look tries again")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p4_without_a_confirmed_renewal_no_call_starts() {
        let Some(origin) = Instant::now().checked_sub(Duration::from_secs(60)) else {
            panic!("the machine has been up for less than a minute");
        };
        let heartbeat = Heartbeat { origin, renewed_ms: AtomicU64::new(0) };
        assert!(!heartbeat.alive());
        heartbeat.renewed(Instant::now());
        assert!(heartbeat.alive());
        // an answer that comes late says nothing about now
        let heartbeat = Heartbeat { origin, renewed_ms: AtomicU64::new(0) };
        heartbeat.renewed(origin + Duration::from_secs(20));
        assert!(!heartbeat.alive());
    }
}
