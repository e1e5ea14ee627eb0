//! What a run's meter and the workers of other processes tell each other by the store: that the run is paused, before a call is told so,
//! and what calls were told to wait for (P11, P39).
//!
//! A worker asks when its memory system has failed something: the call that the failure is due to may have met the meter of another
//! process. Where all is done in one process nothing of this is needed.

use std::{
    sync::{Arc, Mutex as SyncMutex, PoisonError},
    time::{Duration, Instant},
};

use bench_proto::{CLUSTER_DOMAIN, ids::RunNo, outage::MeterTold};
use bench_store::{RunState, Store, StoreError};
use tokio::sync::Mutex;
use tracing::{debug, warn};

use super::outages::Away;
use crate::ending::BUDGET;

/// Longest wait for the store: what it does not say in time changes nothing.
const LONGEST: Duration = Duration::from_secs(2);
/// What is told of a provider that is away holds for so long: it is told again with every renewal of the session, while it is.
pub(super) const LONGEST_AWAY: Duration = Duration::from_secs(5);

/// The other processes that a run concerns.
pub(crate) struct Others {
    store: Arc<dyn Store>,
    run: RunNo,
    /// It was paused from here.
    paused: Mutex<bool>,
    /// When the last look began.
    looked: Mutex<Option<Instant>>,
    /// Until when a provider counts as away, of which another process has told.
    away: SyncMutex<Option<(Instant, Away)>>,
}

/// What the store says of a run.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) state: RunState,
    pub(super) told: Vec<MeterTold>,
}

impl Others {
    pub(super) fn new(store: Arc<dyn Store>, run: RunNo) -> Self {
        Self { store, run, paused: Mutex::default(), looked: Mutex::default(), away: SyncMutex::default() }
    }

    /// Pauses the run, once, before the memory system is told that its money is spent: what it fails by that is judged elsewhere.
    pub(super) async fn pause(&self, run: &str, reason: &str) {
        let mut paused = self.paused.lock().await;
        if *paused {
            return;
        }
        let pausing = self.store.set_run_state(self.run, &[RunState::Running], RunState::Paused, Some(reason));
        match tokio::time::timeout(LONGEST, pausing).await {
            Ok(Ok(here)) => {
                *paused = true;
                if here {
                    warn!(run, code = BUDGET, "run {run} is paused: {reason}");
                }
            }
            // the look at the runs at hand pauses it
            Ok(Err(error)) => debug!("run {run} is not paused yet: {error}"),
            Err(_) => debug!("run {run} is not paused yet: the store does not answer"),
        }
    }

    /// Hands what the store says to `take`, by a look that began after this was called. What several fail at once shares a look.
    pub(super) async fn hear(&self, take: impl FnOnce(Heard)) {
        let failed = Instant::now();
        let mut looked = self.looked.lock().await;
        if looked.is_some_and(|begun| begun >= failed) {
            return;
        }
        let begun = Instant::now();
        match tokio::time::timeout(LONGEST, self.look()).await {
            Ok(Ok(heard)) => take(heard),
            Ok(Err(error)) => debug!("what the meters have told could not be read: {error}"),
            Err(_) => debug!("what the meters have told could not be read: the store does not answer"),
        }
        *looked = Some(begun);
    }

    async fn look(&self) -> Result<Heard, StoreError> {
        let states = self.store.run_states(&[self.run]).await?;
        // one that is not there was deleted
        let state = states.first().map_or(RunState::Cancelled, |(_, state, _)| *state);
        let sessions = self.store.open_sessions(CLUSTER_DOMAIN).await?;
        let told = sessions.into_iter().flat_map(|session| session.evidence.metered);
        Ok(Heard { state, told: told.filter(|told| told.run == self.run).collect() })
    }

    /// Another process has told that a provider is away.
    pub(super) fn note_away(&self, told: MeterTold, now: Instant) {
        let Ok(left) = u64::try_from(told.left_ms) else { return };
        let away = Away {
            since: Duration::ZERO,
            reason: told.reason,
            // whoever has met it decides whether the run stops by it
            has_answered: true,
            is_settled: false,
            refused: None,
        };
        let until = now + Duration::from_millis(left).min(LONGEST_AWAY);
        *self.away.lock().unwrap_or_else(PoisonError::into_inner) = Some((until, away));
    }

    /// The provider that is away as far as another process has told.
    pub(super) fn away(&self) -> Option<Away> {
        let away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        away.as_ref().filter(|(until, _)| Instant::now() < *until).map(|(_, away)| away.clone())
    }
}

#[cfg(test)]
mod tests {
    use bench_proto::outage::SessionEvidence;
    use bench_store::conformance::{Scene, bank, store_in};

    use super::*;

    fn told(run: RunNo, is_away: bool) -> MeterTold {
        MeterTold { run, bank: None, left_ms: 4_000, reason: "account openai is in full use".to_owned(), is_away }
    }

    #[tokio::test]
    async fn p34_a_worker_that_is_failed_hears_that_a_meter_elsewhere_has_paused_the_run() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = store_in(folder.path()).await;
        let run = Scene::start(store.as_ref(), &[bank(0, &[(1, &[0])])]).await.run;
        let [meter, worker] = [(); 2].map(|()| Others::new(Arc::clone(&store), run));
        let mut states = Vec::new();
        worker.hear(|heard| states.push(heard.state)).await;
        meter.pause("r", "budget: nothing is left").await;
        worker.hear(|heard| states.push(heard.state)).await;
        assert_eq!(states, [RunState::Running, RunState::Paused]);
        // somebody has resumed it: what is late changes nothing
        assert!(store.set_run_state(run, &[RunState::Paused], RunState::Running, None).await.expect("goes on"));
        meter.pause("r", "budget: nothing is left").await;
        worker.hear(|heard| states.push(heard.state)).await;
        assert_eq!(states.last(), Some(&RunState::Running));
    }

    #[tokio::test]
    async fn p11_a_worker_hears_what_the_meters_have_told_of_its_run() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = store_in(folder.path()).await;
        let run = Scene::start(store.as_ref(), &[bank(0, &[(1, &[0])])]).await.run;
        let session = store.open_session("meter", CLUSTER_DOMAIN, "{}").await.expect("opens");
        let metered = vec![told(run, false), told(RunNo(run.0 + 1), false)];
        let evidence = SessionEvidence { metered, ..SessionEvidence::default() };
        let _ = store.renew_session(session, Some(&evidence.to_json())).await.expect("renews");
        let worker = Others::new(Arc::clone(&store), run);
        let mut all = Vec::new();
        worker.hear(|heard| all = heard.told).await;
        assert!(matches!(all.as_slice(), [one] if one.run == run && one.left_ms > 0), "{all:?}");
        assert_eq!(worker.away(), None);
        worker.note_away(told(run, true), Instant::now());
        assert!(worker.away().is_some_and(|away| away.reason.contains("in full use") && away.has_answered));
    }
}
