//! Which worker sessions are dead (P4): their counter stood still for 15 s of this process's own monotonic time, with every
//! read succeeding.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use bench_proto::ids::RunNo;
use bench_store::{SessionId, SessionRow, Store, StoreResult};
use bench_telemetry::{
    metrics::catalogue,
    outage::{self, Upset},
};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::standing::domains::planner_domain;

/// How often the counters of sessions are read.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long a counter must stand still.
const PATIENCE: Duration = Duration::from_secs(15);
/// Two looks that are further apart than this are no watch.
const LONGEST_GAP: Duration = Duration::from_secs(4);

/// Watches the counters of sessions.
#[derive(Debug, Default)]
struct SessionWatch {
    seen: HashMap<SessionId, (i64, Instant)>,
    looked: Option<Instant>,
}

impl SessionWatch {
    /// The sessions that are dead by what was read now.
    fn see(&mut self, open: &[SessionRow], now: Instant) -> Vec<SessionId> {
        if self.looked.is_some_and(|looked| now.saturating_duration_since(looked) > LONGEST_GAP) {
            self.seen.clear();
        }
        self.looked = Some(now);
        self.seen.retain(|session, _| open.iter().any(|row| row.session == *session));
        let mut dead = Vec::new();
        for row in open {
            let (counter, since) = self.seen.entry(row.session).or_insert((row.counter, now));
            if *counter != row.counter {
                (*counter, *since) = (row.counter, now);
            } else if now.saturating_duration_since(*since) >= PATIENCE {
                dead.push(row.session);
            }
        }
        dead
    }

    /// A read failed: everything is counted anew.
    fn forget(&mut self) {
        *self = Self::default();
    }
}

/// Watches the sessions of a domain, and ends those that are dead.
pub(crate) struct Watch {
    store: Arc<dyn Store>,
    domain: String,
    workers: SessionWatch,
    planners: HashMap<RunNo, SessionWatch>,
}

impl Watch {
    /// A watch that has seen nobody yet.
    pub(crate) fn new(store: Arc<dyn Store>, domain: String) -> Self {
        Self { store, domain, workers: SessionWatch::default(), planners: HashMap::new() }
    }

    /// Watches until stopped.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let mut upset = Upset::default();
        loop {
            match self.look().await {
                Ok(()) => upset.over(),
                Err(error) => {
                    // nobody is dead because this process could not read
                    self.workers.forget();
                    self.planners.clear();
                    if error.is_transient() {
                        upset.away(&outage::STORE, &error);
                    } else if upset.is_news(&error.to_string()) {
                        warn!(code = "supervise", "watching the workers waits: {error}");
                    }
                }
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    async fn look(&mut self) -> StoreResult<()> {
        let now = Instant::now();
        let workers = self.store.open_sessions(&self.domain).await?;
        for session in self.workers.see(&workers, now) {
            let lost = self.store.end_session(session).await?;
            let name = workers.iter().find(|row| row.session == session).map_or("?", |row| row.worker.as_str());
            catalogue::LEASES_LOST.add(lost as f64, &[]);
            warn!(worker = name, code = "worker_silent", "worker {name} is silent: {lost} of its tasks go to others");
        }
        let running = self.store.running_runs(&self.domain).await?;
        self.planners.retain(|run, _| running.iter().any(|(running, _)| running == run));
        for (run, _) in running {
            let planners = self.store.open_sessions(&planner_domain(run)).await?;
            if planners.is_empty() {
                continue;
            }
            for session in self.planners.entry(run).or_default().see(&planners, now) {
                self.store.end_session(session).await?;
                // a run that cannot be read has a planner all the same
                let run = self.store.run(run).await.map_or_else(|_| run.0.to_string(), |row| row.run_id.0);
                warn!(
                    run,
                    code = "planner_gone",
                    "who wrote the plan of run {run} is gone: `bench-coord resume {run}` writes the rest"
                );
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(session: i64, counter: i64) -> SessionRow {
        SessionRow {
            session: SessionId(session),
            worker: "w".into(),
            info_json: "{}".into(),
            counter,
            silent_ms: 0,
            leased: 0,
            evidence: bench_proto::outage::SessionEvidence::default(),
        }
    }

    #[test]
    fn p4_a_session_dies_after_15_s_of_a_counter_that_stands_still() {
        let (mut watch, start) = (SessionWatch::default(), Instant::now());
        for second in 0..15 {
            let rows = [row(1, 7), row(2, second)];
            assert_eq!(watch.see(&rows, start + Duration::from_secs(second as u64)), []);
        }
        assert_eq!(watch.see(&[row(1, 7), row(2, 99)], start + Duration::from_secs(15)), [SessionId(1)]);
    }

    #[test]
    fn p4_after_an_outage_or_a_freeze_it_counts_anew() {
        let (mut watch, start) = (SessionWatch::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(watch.see(&[row(1, 7)], at(0)), []);
        assert_eq!(watch.see(&[row(1, 7)], at(30)), [], "this process slept, perhaps the worker too");
        for second in (33..45).step_by(3) {
            assert_eq!(watch.see(&[row(1, 7)], at(second)), []);
        }
        watch.forget();
        for second in (45..60).step_by(3) {
            assert_eq!(watch.see(&[row(1, 7)], at(second)), []);
        }
        assert_eq!(watch.see(&[row(1, 7)], at(60)), [SessionId(1)]);
    }
}
