//! Calls that the meter refuses and that somebody has to do something about, counted by reason, so that status and report can say why a
//! memory system gets nothing. The store is told of the first one, each time that there are twice as many, and at the end of the process:
//! a system may be refused without end.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bench_meter::Refusal;
use bench_models::classify;
use bench_proto::{ids::RunNo, meter_refused::MeterRefusedNote};
use bench_store::{METER_REFUSED_EVENT, Runs};
use tracing::{debug, warn};
use uuid::Uuid;

use super::told::shown;

/// Most reasons that are told apart in one process: each model that has no price is one.
const MOST_REASONS: usize = 32;
/// The reason of all further ones.
const OTHER_REASONS: &str = "for further reasons; what the memory system was answered says which";
/// Longest reason that is told of a request that cannot be read, in letters: it may quote the request.
const LONGEST_WHY: usize = 400;
/// Longest wait for the store: the memory system waits for its answer meanwhile.
const LONGEST: Duration = Duration::from_secs(2);

/// `code` of the answer, and why.
type Reason = (&'static str, String);

/// Counts them for one run in this process.
pub(crate) struct RefusedCalls {
    store: Arc<dyn Runs>,
    run: RunNo,
    /// Stands for this process in notes.
    process: String,
    counts: Mutex<BTreeMap<Reason, Count>>,
}

#[derive(Debug, Default)]
struct Count {
    calls: u64,
    /// Of these, those that the store knows of, or is being told of.
    noted: u64,
    /// It has been told that there are no more.
    is_last: bool,
}

/// Why a request was refused, where that does not pass by itself and is of this run.
fn reason(refusal: &Refusal) -> Option<Reason> {
    match refusal {
        Refusal::ModelNotAllowed { model, allowed } => {
            let (model, allowed) = (shown(model), allowed.join(", "));
            let why = format!(
                "the run may not use {model}, since --meter-allow names {allowed} alone: submit it with --meter-allow {model} too"
            );
            Some(("model_not_allowed", why))
        }
        Refusal::UnknownModel(why) => Some(("model_not_found", classify::one_line(why, None))),
        Refusal::UnknownBank(bank) => {
            Some(("unknown_bank", format!("the run has no bank {}, which the base URL names", shown(bank))))
        }
        _ => None,
    }
}

impl RefusedCalls {
    pub(crate) fn new(store: Arc<dyn Runs>, run: RunNo) -> Self {
        Self { store, run, process: Uuid::now_v7().to_string(), counts: Mutex::default() }
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<Reason, Count>> {
        // every change is complete when the lock is dropped
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request that was refused, before it hears so: what fails by it is told of afterwards.
    pub(super) async fn count(&self, refusal: &Refusal) {
        if let Some(reason) = reason(refusal) {
            self.count_for(reason).await;
        }
    }

    /// Counts a request that the meter cannot read, or that asks for what is not forwarded.
    pub(super) async fn count_unreadable(&self, code: &'static str, why: &str) {
        let why = classify::one_line(why, None).chars().take(LONGEST_WHY).collect();
        self.count_for((code, why)).await;
    }

    async fn count_for(&self, reason: Reason) {
        let Some((reason, calls)) = add(&mut self.counts(), reason) else { return };
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
        let telling = async {
            for (reason, calls) in &due {
                self.note(reason, *calls, true).await;
            }
        };
        if tokio::time::timeout(LONGEST, telling).await.is_err() {
            debug!("how many calls were refused could not be noted in full: the store does not answer");
        }
    }

    async fn note(&self, reason: &Reason, calls: u64, is_last: bool) {
        let (process, (code, why)) = (self.process.clone(), reason.clone());
        let note = MeterRefusedNote { process, code: code.to_owned(), why, calls, is_last };
        let Ok(message) = serde_json::to_string(&note) else { return };
        let adding = self.store.add_event(self.run, METER_REFUSED_EVENT, &message);
        match tokio::time::timeout(LONGEST, adding).await {
            Ok(Ok(())) => {
                if let Some(of) = self.counts().get_mut(reason) {
                    of.is_last = is_last && of.calls == calls;
                    if is_last && !of.is_last {
                        // it was not the last: the next one says so
                        of.noted = 0;
                    }
                }
                return;
            }
            Ok(Err(error)) => debug!("that calls were refused could not be noted yet: {error}"),
            Err(_) => debug!("that calls were refused could not be noted yet: the store does not answer"),
        }
        // the next one tells of it
        if let Some(of) = self.counts().get_mut(reason) {
            of.noted = of.noted.min(calls / 2);
        }
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

#[cfg(test)]
mod tests {
    use bench_proto::meter_refused::together;
    use bench_store::conformance::{Scene, bank, store_in};

    use super::*;

    #[tokio::test]
    async fn p34_a_refusal_without_end_is_noted_a_few_times_and_counted_in_full() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = store_in(folder.path()).await;
        let run = Scene::start(store.as_ref(), &[bank(0, &[(1, &[0])])]).await.run;
        let told = async || {
            let events = store.events(run).await.expect("are read");
            let notes = events.into_iter().filter(|event| event.kind == METER_REFUSED_EVENT);
            let notes: Vec<MeterRefusedNote> =
                notes.map(|event| serde_json::from_str(&event.message).expect("a note")).collect();
            (notes.len(), together(notes))
        };
        let refused = RefusedCalls::new(Arc::clone(&store) as Arc<dyn Runs>, run);
        let unpriced = Refusal::UnknownModel("m has no price".to_owned());
        for _ in 0..50 {
            refused.count(&unpriced).await;
        }
        let busy = Refusal::Busy { retry_after: LONGEST, reason: "its turn".to_owned() };
        refused.count(&busy).await;
        refused.count(&Refusal::Unavailable("no store".to_owned())).await;
        let (notes, all) = told().await;
        assert_eq!((notes, all.len(), all[0].calls, all[0].at_least), (6, 1, 32, true), "{all:?}");
        refused.count_unreadable("invalid_request", "tools: the provider\n runs web_search").await;
        let (notes, all) = told().await;
        assert_eq!((notes, all[1].why.as_str(), all[1].calls), (7, "tools: the provider runs web_search", 1));
        refused.note_last().await;
        refused.note_last().await;
        let (notes, all) = told().await;
        assert_eq!((notes, all.len(), all[0].calls, all[0].at_least), (9, 2, 50, false), "{all:?}");
        // one that comes all the same
        refused.count(&unpriced).await;
        let (notes, all) = told().await;
        assert_eq!((notes, all[0].calls, all[0].at_least), (10, 51, true), "{all:?}");
        // another process, which goes on with the run
        let next = RefusedCalls::new(Arc::clone(&store) as Arc<dyn Runs>, run);
        next.count(&unpriced).await;
        next.note_last().await;
        assert_eq!(told().await.1[0].calls, 52);
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

    #[test]
    fn p34_what_a_refused_call_is_told_of_says_what_to_do() {
        let allowed = vec!["gpt-4o".to_owned(), "text-*".to_owned()];
        let not_allowed = Refusal::ModelNotAllowed { model: "o1\npro".to_owned(), allowed };
        let (code, why) = reason(&not_allowed).expect("is counted");
        assert!(code == "model_not_allowed" && why.contains("gpt-4o, text-*") && why.contains("--meter-allow o1pro"));
        assert_eq!(reason(&Refusal::RunEnded("finished".to_owned())), None);
    }
}
