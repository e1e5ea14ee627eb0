//! Calls that the meter refuses and that somebody has to do something about, counted by reason, so that status and report can say why a
//! memory system gets nothing. The store is told of the first one, each time that there are twice as many, and at the end of the process:
//! a system may be refused without end.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bench_models::classify;
use bench_proto::{ids::RunNo, meter_refused::MeterRefusedNote};
use bench_store::{METER_REFUSED_EVENT, Runs};
use futures::future::join_all;
use tracing::{debug, warn};
use uuid::Uuid;

/// Most reasons that are told apart in one process: each model that has no price is one.
const MOST_REASONS: usize = 32;
/// The reason of all further ones.
const OTHER_REASONS: &str = "for further reasons; what the memory system was answered says which";
/// Longest wait for the store: the memory system waits for its answer meanwhile.
const LONGEST: Duration = Duration::from_secs(2);

/// `code` of the answer, and why.
type Reason = (&'static str, String);

/// Counts them for one run in this process.
pub(crate) struct RefusedCalls {
    store: Arc<dyn Runs>,
    run: RunNo,
    /// Stands for this process in notes. Drawn each time that one takes the run up: its counts begin anew with it.
    process: String,
    counts: Mutex<BTreeMap<Reason, Count>>,
}

#[derive(Debug, Default)]
struct Count {
    calls: u64,
    /// Of these, those that the store knows of, or is being told of.
    noted: u64,
    /// The store has been told that these are all.
    is_last: bool,
}

impl RefusedCalls {
    pub(crate) fn new(store: Arc<dyn Runs>, run: RunNo) -> Self {
        Self { store, run, process: Uuid::now_v7().to_string(), counts: Mutex::default() }
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<Reason, Count>> {
        // every change is complete when the lock is dropped
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request that was refused, before its client hears so: what fails by it is told of afterwards. `why` may name what the
    /// request does.
    pub(super) async fn count(&self, code: &'static str, why: &str) {
        let Some((reason, calls)) = add(&mut self.counts(), (code, classify::one_line(why, None))) else { return };
        if calls == 1 {
            let (code, why) = (reason.0, reason.1.as_str());
            warn!(code, "calls of the memory system are refused by the meter: {why}");
        }
        self.note(&reason, calls, false).await;
    }

    /// Tells the store the whole count of what this process has refused, now that it refuses nothing more. What the store does not take
    /// in time stays "at least": others wait for the end of the process.
    pub(crate) async fn note_last(&self) {
        let due: Vec<(Reason, u64)> = {
            let counts = self.counts();
            counts.iter().filter(|(_, of)| !of.is_last).map(|(reason, of)| (reason.clone(), of.calls)).collect()
        };
        join_all(due.iter().map(|(reason, calls)| self.note_all(reason, *calls))).await;
    }

    /// Notes the whole count of one reason. A call that has come meanwhile is noted at once: the store would take the count for exact.
    async fn note_all(&self, reason: &Reason, calls: u64) {
        if !self.note(reason, calls, true).await {
            return;
        }
        let more = settle(&mut self.counts(), reason, calls);
        if let Some(calls) = more {
            self.note(reason, calls, false).await;
        }
    }

    /// Whether the store has taken it. Notes may pass each other on the way: those that are not the last say nothing of the last one.
    async fn note(&self, reason: &Reason, calls: u64, is_last: bool) -> bool {
        let (process, (code, why)) = (self.process.clone(), reason.clone());
        let note = MeterRefusedNote { process, code: code.to_owned(), why, calls, is_last };
        let Ok(message) = serde_json::to_string(&note) else { return false };
        let adding = self.store.add_event(self.run, METER_REFUSED_EVENT, &message);
        match tokio::time::timeout(LONGEST, adding).await {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => debug!("that calls were refused could not be noted yet: {error}"),
            Err(_) => debug!("that calls were refused could not be noted yet: the store does not answer"),
        }
        // the next one tells of it
        if let Some(of) = self.counts().get_mut(reason) {
            of.noted = of.noted.min(calls / 2);
        }
        false
    }
}

/// Counts one; returns what the store is to be told now.
fn add(counts: &mut BTreeMap<Reason, Count>, reason: Reason) -> Option<(Reason, u64)> {
    let is_known = counts.contains_key(&reason) || counts.len() < MOST_REASONS;
    let reason = if is_known { reason } else { ("other", OTHER_REASONS.to_owned()) };
    let of = counts.entry(reason.clone()).or_default();
    of.calls = of.calls.saturating_add(1);
    // the store takes its count for the whole one
    let was_last = std::mem::take(&mut of.is_last);
    let is_due = was_last || of.calls >= of.noted.saturating_mul(2);
    if is_due {
        // at once: others that come meanwhile need not tell
        of.noted = of.calls;
    }
    is_due.then_some((reason, of.calls))
}

/// The store has taken `told` for all calls of a reason; returns the count that it is to be told now, where there are more.
fn settle(counts: &mut BTreeMap<Reason, Count>, reason: &Reason, told: u64) -> Option<u64> {
    let of = counts.get_mut(reason)?;
    of.is_last = of.calls == told;
    if of.is_last {
        return None;
    }
    of.noted = of.calls;
    Some(of.calls)
}

#[cfg(test)]
mod tests {
    use bench_proto::{meter_refused::together, summary::MeteredRefused};
    use bench_store::{
        RunEvent, Store,
        conformance::{Scene, bank, store_in},
    };

    use super::*;

    const CODE: &str = "model_not_found";
    const WHY: &str = "m has no price";

    /// A store, a run in it, and what is refused to that.
    async fn run_in(folder: &tempfile::TempDir) -> (Arc<dyn Store>, RunNo, RefusedCalls) {
        let store = store_in(folder.path()).await;
        let run = Scene::start(store.as_ref(), &[bank(0, &[(1, &[0])])]).await.run;
        let refused = RefusedCalls::new(Arc::clone(&store) as Arc<dyn Runs>, run);
        (store, run, refused)
    }

    /// How many notes there are, and what they say together.
    async fn told(store: &dyn Store, run: RunNo) -> (usize, Vec<MeteredRefused>) {
        let events = store.events(run).await.expect("are read");
        let notes: Vec<MeterRefusedNote> = RunEvent::notes(&events, METER_REFUSED_EVENT).collect();
        (notes.len(), together(notes))
    }

    #[tokio::test]
    async fn p34_a_refusal_without_end_is_noted_a_few_times_and_counted_in_full() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (store, run, refused) = run_in(&folder).await;
        let told = async || told(store.as_ref(), run).await;
        for _ in 0..50 {
            refused.count(CODE, WHY).await;
        }
        let (notes, all) = told().await;
        assert_eq!((notes, all.len(), all[0].calls, all[0].at_least), (6, 1, 32, true), "{all:?}");
        refused.count("invalid_request", "tools: the provider\n runs sk-planted0123456789").await;
        let (notes, all) = told().await;
        assert_eq!((notes, all[1].why.as_str(), all[1].calls), (7, "tools: the provider runs [key]", 1));
        refused.note_last().await;
        refused.note_last().await;
        let (notes, all) = told().await;
        assert_eq!((notes, all.len(), all[0].calls, all[0].at_least), (9, 2, 50, false), "{all:?}");
        // one that comes all the same
        refused.count(CODE, WHY).await;
        let (notes, all) = told().await;
        assert_eq!((notes, all[0].calls, all[0].at_least), (10, 51, true), "{all:?}");
        // another process, which goes on with the run
        let next = RefusedCalls::new(Arc::clone(&store) as Arc<dyn Runs>, run);
        next.count(CODE, WHY).await;
        next.note_last().await;
        assert_eq!(told().await.1[0].calls, 52);
    }

    #[tokio::test]
    async fn p34_a_call_that_comes_while_the_last_count_is_noted_leaves_no_count_that_is_short_and_exact() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (store, run, refused) = run_in(&folder).await;
        for _ in 0..3 {
            refused.count(CODE, WHY).await;
        }
        assert_eq!(told(store.as_ref(), run).await.0, 2, "the third is not noted by itself");
        // the last note was made of the two before it
        refused.note_all(&(CODE, WHY.to_owned()), 2).await;
        let (notes, all) = told(store.as_ref(), run).await;
        assert_eq!((notes, all[0].calls, all[0].at_least), (4, 3, true), "{all:?}");
        refused.note_last().await;
        let (notes, all) = told(store.as_ref(), run).await;
        assert_eq!((notes, all[0].calls, all[0].at_least), (5, 3, false), "{all:?}");
    }

    #[tokio::test]
    async fn p34_a_note_that_is_late_does_not_unsay_that_the_last_one_was_the_last() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (store, run, refused) = run_in(&folder).await;
        for _ in 0..2 {
            refused.count(CODE, WHY).await;
        }
        refused.note_last().await;
        // that of the second call was still under way
        assert!(refused.note(&(CODE, WHY.to_owned()), 2, false).await);
        let (notes, all) = told(store.as_ref(), run).await;
        assert_eq!((notes, all[0].calls, all[0].at_least), (4, 2, false), "{all:?}");
        refused.note_last().await;
        assert_eq!(told(store.as_ref(), run).await.0, 4, "all is told");
    }

    #[test]
    fn p34_reasons_without_end_are_counted_together() {
        let mut counts = BTreeMap::new();
        let told = (0..1_000).filter_map(|n| add(&mut counts, ("model_not_found", n.to_string()))).count();
        // the last of them 968 times: with the first, and with each that makes it twice as many
        assert_eq!((counts.len(), told), (MOST_REASONS + 1, MOST_REASONS + 10));
        assert_eq!(counts.values().map(|of| of.calls).sum::<u64>(), 1_000);
        assert_eq!(counts[&("other", OTHER_REASONS.to_owned())].calls, 1_000 - MOST_REASONS as u64);
    }
}
