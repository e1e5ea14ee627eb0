//! Which worker sessions are dead (P4): their counter stood still for 15 s of this process's own monotonic time, with every
//! read succeeding.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

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
    /// The sessions that are dead by what was read now, of all that are open.
    fn see(&mut self, open: &[SessionRow], now: Instant) -> Vec<SessionId> {
        let dead = self.see_some(open, now);
        self.keep(open);
        dead
    }

    /// The same of some of them: reads of others may come between, and are looks too.
    fn see_some(&mut self, some: &[SessionRow], now: Instant) -> Vec<SessionId> {
        if self.looked.is_some_and(|looked| now.saturating_duration_since(looked) > LONGEST_GAP) {
            self.seen.clear();
        }
        self.looked = Some(now);
        let mut dead = Vec::new();
        for row in some {
            let (counter, since) = self.seen.entry(row.session).or_insert((row.counter, now));
            if *counter != row.counter {
                (*counter, *since) = (row.counter, now);
            } else if now.saturating_duration_since(*since) >= PATIENCE {
                dead.push(row.session);
            }
        }
        dead
    }

    /// Forgets those that are open no more.
    fn keep(&mut self, open: &[SessionRow]) {
        let open: HashSet<SessionId> = open.iter().map(|row| row.session).collect();
        self.seen.retain(|session, _| open.contains(session));
    }

    /// A read failed: everything is counted anew.
    fn forget(&mut self) {
        *self = Self::default();
    }
}

/// Whose sessions are watched.
#[derive(Debug, Clone, Copy)]
enum Whose {
    Workers,
    Planners,
}

/// Watches the sessions of a domain, and ends those that are dead.
pub(crate) struct Watch {
    store: Arc<dyn Store>,
    domain: String,
}

impl Watch {
    /// A watch that has seen nobody yet.
    pub(crate) fn new(store: Arc<dyn Store>, domain: String) -> Self {
        Self { store, domain }
    }

    /// Watches until stopped. Those who write plans are asked for run by run: however long that takes, workers are looked at every
    /// second.
    pub(crate) async fn run(self, stop: CancellationToken) {
        tokio::join!(self.watch(Whose::Workers, &stop), self.watch(Whose::Planners, &stop));
    }

    async fn watch(&self, whose: Whose, stop: &CancellationToken) {
        let (mut watch, mut upset) = (SessionWatch::default(), Upset::default());
        loop {
            let looked = match whose {
                Whose::Workers => self.look_at_workers(&mut watch).await,
                Whose::Planners => self.look_at_planners(&mut watch).await,
            };
            match looked {
                Ok(()) => upset.over(),
                Err(error) => {
                    // nobody is dead because this process could not read
                    watch.forget();
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

    async fn look_at_workers(&self, watch: &mut SessionWatch) -> StoreResult<()> {
        let now = Instant::now();
        let workers = self.store.open_sessions(&self.domain).await?;
        for session in watch.see(&workers, now) {
            let lost = self.store.end_session(session).await?;
            let name = workers.iter().find(|row| row.session == session).map_or("?", |row| row.worker.as_str());
            catalogue::LEASES_LOST.add(lost as f64, &[]);
            warn!(worker = name, code = "worker_silent", "worker {name} is silent: {lost} of its tasks go to others");
        }
        Ok(())
    }

    async fn look_at_planners(&self, watch: &mut SessionWatch) -> StoreResult<()> {
        let mut open = Vec::new();
        for (run, _) in self.store.running_runs(&self.domain).await? {
            let now = Instant::now();
            let planners = self.store.open_sessions(&planner_domain(run)).await?;
            for session in watch.see_some(&planners, now) {
                self.store.end_session(session).await?;
                // a run that cannot be read has a planner all the same
                let run = self.store.run(run).await.map_or_else(|_| run.0.to_string(), |row| row.run_id.0);
                warn!(
                    run,
                    code = "planner_gone",
                    "who wrote the plan of run {run} is gone: `bench-coord resume {run}` writes the rest"
                );
            }
            open.extend(planners);
        }
        watch.keep(&open);
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

    /// Runs are asked one after the other, of which each may take its time.
    #[test]
    fn p4_a_round_over_many_runs_may_take_longer_than_a_gap() {
        let (mut watch, start) = (SessionWatch::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        for round in 0..3 {
            let (first, second) = ([row(1, 7)], [row(2, round)]);
            let begun = 6 * round as u64;
            assert_eq!(watch.see_some(&first, at(begun)), []);
            assert_eq!(watch.see_some(&second, at(begun + 3)), []);
            watch.keep(&[first, second].concat());
        }
        assert_eq!(
            watch.see_some(&[row(1, 7)], at(18)),
            [SessionId(1)],
            "15 s have passed, and somebody looked all the time"
        );
        assert_eq!(watch.see_some(&[row(2, 3)], at(21)), [], "it moves");
        assert_eq!(watch.see_some(&[row(1, 7)], at(26)), [], "nobody looked for 5 s");
    }
}
