//! Which of several coordinators works (P14): a row in the store, taken over when its counter stands still. No clocks are
//! compared; the patience is this process's own monotonic time, with every read succeeding.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bench_store::{LeaderRow, Store, StoreError};
use bench_telemetry::outage::{self, Upset};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::dispatch::{past::Past, trouble::Trouble};

/// How often the leader raises its counter, and others look at it.
const BEAT: Duration = Duration::from_millis(1000);
/// Shortest time between two renewals.
const SOON: Duration = Duration::from_millis(250);
/// How long the counter must stand still before another takes over.
const PATIENCE: Duration = Duration::from_secs(6);
/// Two looks that are further apart than this are no watch: something held this process up.
const LONGEST_GAP: Duration = Duration::from_secs(3);

/// A candidate for the lead of a scope.
pub(crate) struct Candidate {
    /// Where runs and results are kept.
    pub store: Arc<dyn Store>,
    /// What is led: a queue domain.
    pub scope: String,
    /// Name of this process.
    pub holder: String,
    /// Where this coordinator notes what keeps it from working.
    pub trouble: Trouble,
    /// What this coordinator was told of the store (P44).
    pub past: Past,
    /// Whether it leads.
    pub lead: Lead,
}

/// When the store last confirmed that this process leads; shared with those who show whether it does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lead(Arc<Mutex<Option<Instant>>>);

impl Lead {
    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store has confirmed what was asked of it at `sent`.
    fn confirm(&self, sent: Instant) {
        *self.lock() = Some(sent);
    }

    fn end(&self) {
        *self.lock() = None;
    }

    /// Whether this process leads, as far as it can know: whoever is not confirmed for as long as others have patience may have been
    /// replaced, and can do nothing without the store.
    pub(crate) fn is_held(&self, now: Instant) -> bool {
        self.lock().is_some_and(|confirmed| now.saturating_duration_since(confirmed) < PATIENCE)
    }
}

/// Watches a leader's counter.
#[derive(Debug, Default)]
struct LeaderWatch {
    seen: Option<((i64, i64), Instant)>,
    looked: Option<Instant>,
}

impl LeaderWatch {
    /// Whether the lead may be taken from what was seen now.
    fn see(&mut self, row: Option<&LeaderRow>, now: Instant) -> bool {
        let gap = self.looked.is_some_and(|looked| now.saturating_duration_since(looked) > LONGEST_GAP);
        self.looked = Some(now);
        let Some(row) = row else { return true };
        if row.holder.is_empty() {
            return true;
        }
        let current = (row.epoch, row.counter);
        match self.seen {
            Some((seen, since)) if seen == current && !gap => now.saturating_duration_since(since) >= PATIENCE,
            _ => {
                self.seen = Some((current, now));
                false
            }
        }
    }

    /// A look that failed: the watch begins anew.
    fn forget(&mut self) {
        *self = Self::default();
    }
}

impl Candidate {
    /// Waits for the lead. `None` when stopped first.
    pub(crate) async fn wait(&self, stop: &CancellationToken) -> Option<i64> {
        let (mut watch, mut upset) = (LeaderWatch::default(), Upset::default());
        loop {
            match self.look(&mut watch).await {
                Ok(Some(epoch)) => {
                    info!("{} leads {} (epoch {epoch})", self.holder, self.scope);
                    return Some(epoch);
                }
                Ok(None) => upset.over(),
                Err(error) => {
                    watch.forget();
                    tell(&mut upset, &error);
                }
            }
            tokio::select! {
                () = stop.cancelled() => return None,
                () = tokio::time::sleep(BEAT) => {}
            }
        }
    }

    async fn look(&self, watch: &mut LeaderWatch) -> Result<Option<i64>, StoreError> {
        let interruptions = self.store.interruptions();
        let row = self.store.leader(&self.scope).await?;
        if !watch.see(row.as_ref(), Instant::now()) {
            return Ok(None);
        }
        let (seen, sent) = (row.map(|row| (row.epoch, row.counter)), Instant::now());
        let taken = self.store.take_lead(&self.scope, &self.holder, seen).await?;
        if taken.is_some() {
            self.past.begin(interruptions);
            self.lead.confirm(sent);
        }
        Ok(taken)
    }

    /// Keeps the lead until stopped, then resigns; returns early when another has it. While the store is out of reach it goes
    /// on: whatever a leader does goes to the same store, and two of them only publish twice.
    pub(crate) async fn keep(&self, epoch: i64, stop: &CancellationToken) {
        self.hold(epoch, stop).await;
        self.lead.end();
    }

    async fn hold(&self, epoch: i64, stop: &CancellationToken) {
        let mut upset = Upset::default();
        loop {
            tokio::select! {
                () = stop.cancelled() => {
                    if let Err(error) = self.store.resign_lead(&self.scope, epoch).await {
                        warn!(code = "store", "the lead could not be given up, others take it after {} s: {error}", PATIENCE.as_secs());
                    }
                    return;
                }
                () = self.beat() => {}
            }
            let sent = Instant::now();
            match self.renew(epoch).await {
                Ok(true) => {
                    self.lead.confirm(sent);
                    upset.over();
                }
                Ok(false) => {
                    warn!(code = "lead_lost", "another coordinator leads {} now", self.scope);
                    return;
                }
                Err(error) => tell(&mut upset, &error),
            }
        }
    }

    /// Waits until the lead is to be renewed: after a beat, or soon when the store has been away, because others wait for that.
    async fn beat(&self) {
        let began = Instant::now();
        loop {
            tokio::time::sleep(SOON).await;
            if began.elapsed() >= BEAT || !self.past.is_confirmed(self.store.interruptions()) {
                return;
            }
        }
    }

    /// Renews the lead, and notices when the store went back in time (P44). False when another leads.
    async fn renew(&self, epoch: i64) -> Result<bool, StoreError> {
        let interruptions = self.store.interruptions();
        let Some(told) = self.store.renew_lead(&self.scope, epoch, &self.trouble.get()).await? else {
            let row = self.store.leader(&self.scope).await?;
            if row.is_none_or(|row| row.epoch < epoch) {
                let seen = self.store.incarnation().await?.number;
                self.say_went_back(seen, "it has forgotten who leads").await?;
                self.past.went_back(Instant::now());
            }
            return Ok(false);
        };
        if self.past.see(told, interruptions, Instant::now()) {
            let incarnation =
                self.say_went_back(told.incarnation, "it knows of fewer renewals than it confirmed").await?;
            self.past.reborn(incarnation);
        }
        Ok(true)
    }

    async fn say_went_back(&self, seen: i64, why: &str) -> Result<i64, StoreError> {
        let holder = self.holder.as_str();
        warn!(
            holder,
            code = "store_went_back",
            "the store went back in time: {why}; workers write again what they were told"
        );
        self.store.change_incarnation(seen, &format!("the store went back in time, {holder} says: {why}")).await
    }
}

/// Says what keeps the row from being read and renewed.
fn tell(upset: &mut Upset, error: &StoreError) {
    if error.is_transient() {
        upset.away(&outage::STORE, error);
    } else if upset.is_news(&error.to_string()) {
        warn!(code = "store", "who leads can be neither read nor written: {error}");
    }
}

#[cfg(test)]
mod tests {
    use bench_store::conformance;

    use super::*;

    fn row(epoch: i64, counter: i64, holder: &str) -> LeaderRow {
        LeaderRow { holder: holder.into(), epoch, counter, trouble: String::new(), silent_ms: 0 }
    }

    #[test]
    fn p14_a_leader_whose_counter_stands_still_for_6_s_is_replaced() {
        let (mut watch, start) = (LeaderWatch::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(watch.see(None, at(0)), "nobody has led yet");
        assert!(!watch.see(Some(&row(1, 5, "a")), at(1)));
        assert!(!watch.see(Some(&row(1, 5, "a")), at(3)));
        assert!(!watch.see(Some(&row(1, 6, "a")), at(5)), "it moves");
        assert!(!watch.see(Some(&row(1, 6, "a")), at(8)));
        assert!(watch.see(Some(&row(1, 6, "a")), at(11)));
        assert!(watch.see(Some(&row(2, 0, "")), at(11)), "it has resigned");
    }

    #[test]
    fn p14_a_watcher_that_was_frozen_or_saw_errors_counts_anew() {
        let (mut watch, start) = (LeaderWatch::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(!watch.see(Some(&row(1, 5, "a")), at(0)));
        assert!(!watch.see(Some(&row(1, 5, "a")), at(20)), "nobody looked for 20 s");
        for second in [22, 24] {
            assert!(!watch.see(Some(&row(1, 5, "a")), at(second)));
        }
        watch.forget();
        assert!(!watch.see(Some(&row(1, 5, "a")), at(26)));
        assert!(!watch.see(Some(&row(1, 5, "a")), at(29)));
        assert!(watch.see(Some(&row(1, 5, "a")), at(32)));
    }

    #[test]
    fn p14_who_is_not_confirmed_for_6_s_does_not_say_that_it_leads() {
        let (lead, start) = (Lead::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(!lead.is_held(at(0)), "nobody has confirmed it yet");
        lead.confirm(at(0));
        assert!(lead.is_held(at(5)) && !lead.is_held(at(6)), "the store may be away, and another may lead");
        lead.confirm(at(60));
        assert!(lead.is_held(at(65)), "the store is back");
        lead.end();
        assert!(!lead.is_held(at(65)));
    }

    #[tokio::test]
    async fn p14_renewals_confirm_a_lead_until_it_is_given_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let (lead, stop) = (Lead::default(), CancellationToken::new());
        let candidate = Candidate {
            store: conformance::store_in(folder.path()).await,
            scope: "domain".to_owned(),
            holder: "a".to_owned(),
            trouble: Trouble::default(),
            past: Past::default(),
            lead: lead.clone(),
        };
        let epoch = candidate.wait(&stop).await.expect("nobody else leads");
        let taken = *lead.lock();
        assert!(taken.is_some());
        let stopped = stop.clone();
        let keeping = tokio::spawn(async move { candidate.keep(epoch, &stopped).await });
        let began = Instant::now();
        while *lead.lock() <= taken {
            assert!(began.elapsed() < Duration::from_secs(30), "no renewal is confirmed");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        stop.cancel();
        keeping.await.expect("no panic");
        assert!(!lead.is_held(Instant::now()), "it has resigned");
    }
}
