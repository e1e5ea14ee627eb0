//! Whether what was stored can be found: the rules of `ready`, and how far a bank has come.

use std::{
    collections::{BTreeSet, HashMap},
    sync::PoisonError,
    time::{Duration, Instant},
};

use bench_proto::failure::Failure;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::Value;

use super::{
    call::Call,
    items::Item,
    metric,
    path::Path,
    said::excerpt,
    spec::ReadyRule,
    steps::Waiting,
    system::{AdapterSystem, CHECKS_IN_FLIGHT, bank_vars, handle},
    time,
};
use crate::{BankRef, Readiness};

/// Banks whose progress is remembered.
const PROGRESS_KEPT: usize = 4096;

/// How far a bank has come on its way to be ready, seen from this process.
pub(super) struct Progress {
    /// The most entries of which anything was seen since it began.
    entries: u32,
    /// The state or number that was seen last.
    seen: Option<Value>,
    /// When anything has moved last.
    since: Instant,
    /// Since when it is looked at for what it holds now; of a value of the whole server, since this process stored anything last.
    begun: Instant,
    /// The most that was done.
    most: Option<u64>,
    done: BTreeSet<String>,
    /// Since when a request of the look says that it has to be asked again.
    waiting: Option<Instant>,
    /// Entries that the bank had when it was flushed.
    flushed: Option<u32>,
}

impl Progress {
    fn begun() -> Self {
        Self {
            entries: 0,
            seen: None,
            since: Instant::now(),
            begun: Instant::now(),
            most: None,
            done: BTreeSet::new(),
            waiting: None,
            flushed: None,
        }
    }

    /// What was seen so far says nothing of what comes now. Items that are done stay done.
    fn begin_anew(&mut self) {
        *self = Self { done: std::mem::take(&mut self.done), flushed: self.flushed, ..Self::begun() };
    }

    /// Begins anew where there are more entries than before: what earlier ones had left says nothing of them.
    fn grow(&mut self, entries: u32) {
        if entries > self.entries {
            self.begin_anew();
            self.entries = entries;
        }
    }

    /// How many are done of so many entries. Only more than ever is a move: a number that goes to and fro comes to nothing.
    fn count(&mut self, entries: u32, done: u64) {
        self.grow(entries);
        if self.most.is_none_or(|most| entries == self.entries && done > most) {
            (self.most, self.since) = (Some(done), Instant::now());
        }
    }

    /// What is seen of so many entries. Another value than before is a move.
    fn see(&mut self, entries: u32, value: Value) {
        self.grow(entries);
        if self.seen.as_ref() != Some(&value) {
            (self.seen, self.since) = (Some(value), Instant::now());
        }
    }

    /// For how long the same request has had to be asked again for these entries.
    fn wait(&mut self, entries: u32) -> Duration {
        self.grow(entries);
        let now = Instant::now();
        now.duration_since(*self.waiting.get_or_insert(now))
    }
}

/// Not ready yet: when to look again.
fn again_after(every: Duration) -> Readiness {
    Readiness::NotYet { poll_after_ms: u64::try_from(every.as_millis()).unwrap_or(u64::MAX) }
}

/// What is known of a bank's way; it begins here where nothing is.
fn of_bank<'a>(progress: &'a mut HashMap<String, Progress>, bank: &BankRef) -> &'a mut Progress {
    if progress.len() >= PROGRESS_KEPT && !progress.contains_key(&bank.name) {
        progress.clear();
    }
    progress.entry(bank.name.clone()).or_insert_with(Progress::begun)
}

impl AdapterSystem {
    /// One look at a bank; its flush is sent first, once.
    pub(super) async fn look_ready(&self, bank: &BankRef, entries: u32) -> Result<Readiness, Failure> {
        self.flush(bank, entries).await?;
        let spec = &self.adapter.spec.ready;
        let Some(call) = &self.adapter.ready else {
            return Ok(if spec.when == ReadyRule::Promised { Readiness::Promised } else { Readiness::Returned });
        };
        if spec.when == ReadyRule::EachDone {
            return self.each_done(call, bank, entries).await;
        }
        let expected = self.expected(bank, entries)?.len() as u64;
        let read = self.send(call, Some(bank), &bank_vars(bank).with("expected", expected)).await?;
        if let Some(waiting) = &read.waiting {
            return self.still_waiting(call, bank, entries, waiting);
        }
        self.note(bank, |progress| progress.waiting = None);
        match spec.when {
            ReadyRule::Count => self.counted(call, bank, &read.value, (entries, expected)),
            ReadyRule::AllDone => self.all_done(call, bank, &read.value, (entries, expected)),
            ReadyRule::Status | ReadyRule::Stable => self.told(call, bank, &read.value, entries),
            // their own rules, looked at before
            ReadyRule::Returned | ReadyRule::EachDone => Ok(Readiness::Proven),
            ReadyRule::Promised => Ok(Readiness::Promised),
        }
    }

    /// A request of the look says that it has to be asked again: whoever waits for the bank comes again, as long as the file says.
    fn still_waiting(
        &self,
        call: &Call,
        bank: &BankRef,
        entries: u32,
        waiting: &Waiting,
    ) -> Result<Readiness, Failure> {
        let patience = call.patience();
        if self.note(bank, |progress| progress.wait(entries)) + waiting.every > patience {
            self.begin_anew(bank);
            let message = format!("bank {}: {} after {}", bank.bank_id, waiting.said, time::show(patience));
            return Err(Failure::permanent("system_stalled", message));
        }
        Ok(again_after(waiting.every))
    }

    /// Whether a bank holds as many as it has to.
    fn counted(
        &self,
        call: &Call,
        bank: &BankRef,
        value: &Value,
        (entries, expected): (u32, u64),
    ) -> Result<Readiness, Failure> {
        let spec = self.adapter.spec.ready.call.as_ref();
        let path = Path::new(spec.and_then(|call| call.count.as_deref()).unwrap_or_default());
        let count = path.count(value).map_err(|error| call.shape(error))?;
        self.so_many(bank, entries, (count, expected), &format!("the count has stayed at {count} of {expected}"))
    }

    /// What a state, or a value that has to stand still, says of a bank.
    fn told(&self, call: &Call, bank: &BankRef, value: &Value, entries: u32) -> Result<Readiness, Failure> {
        let spec = &self.adapter.spec.ready;
        let state = self.state(call, value)?;
        if spec.failed.contains(&state) {
            return Err(Failure::permanent(
                "system_item_failed",
                format!("bank {}: the system says {state}", bank.bank_id),
            ));
        }
        if spec.when == ReadyRule::Status && spec.done.contains(&state) {
            // what is stored next goes through the same states
            self.begin_anew(bank);
            return Ok(Readiness::Proven);
        }
        let said = excerpt(&state.to_string());
        let (still, looked_at) = self.note(bank, |progress| {
            progress.see(entries, state);
            (progress.since.elapsed(), progress.begun.elapsed())
        });
        match spec.when {
            ReadyRule::Stable if still >= self.adapter.stable_for => Ok(Readiness::Promised),
            // a value that keeps moving is no worker that has died: what bounds it is the time of all looks together
            ReadyRule::Stable if looked_at <= self.patience() => Ok(again_after(self.adapter.every)),
            ReadyRule::Stable => {
                self.begin_anew(bank);
                let all = time::show(looked_at);
                let message = format!(
                    "bank {}: the value that has to stand still for {} never stood still in {all}; it is {said} now",
                    bank.bank_id,
                    time::show(self.adapter.stable_for)
                );
                Err(Failure::permanent("system_stalled", message))
            }
            _ => self.unless_stalled(bank, still, &format!("the state has stayed at {said}")),
        }
    }

    /// The state that a response tells: a value, or a metric of a page.
    fn state(&self, call: &Call, value: &Value) -> Result<Value, Failure> {
        let spec = &self.adapter.spec.ready;
        if let Some(name) = &spec.metric {
            let page = value.as_str().ok_or_else(|| call.shape("the response is no page of metrics"))?;
            return metric::read(page, name).map(Value::from).map_err(|error| call.shape(error));
        }
        let path = Path::new(spec.status.as_deref().unwrap_or_default());
        let state = path.first(value).cloned();
        state.ok_or_else(|| call.shape(path.absent("", value)))
    }

    /// Whether as many states as there are items mean done.
    fn all_done(
        &self,
        call: &Call,
        bank: &BankRef,
        value: &Value,
        (entries, expected): (u32, u64),
    ) -> Result<Readiness, Failure> {
        let spec = &self.adapter.spec.ready;
        let path = Path::new(spec.status.as_deref().unwrap_or_default());
        let states = path.list(value).map_err(|error| call.shape(error))?.unwrap_or_default();
        if let Some(failed) = states.iter().find(|state| spec.failed.contains(state)) {
            let message = format!("bank {}: the system says {failed} of an item", bank.bank_id);
            return Err(Failure::permanent("system_item_failed", message));
        }
        let done = states.iter().filter(|state| spec.done.contains(state)).count() as u64;
        self.so_many(bank, entries, (done, expected), &format!("{done} of {expected} items are done, no more"))
    }

    /// Notes something of a bank's way.
    fn note<T>(&self, bank: &BankRef, what: impl FnOnce(&mut Progress) -> T) -> T {
        what(of_bank(&mut self.progress.lock().unwrap_or_else(PoisonError::into_inner), bank))
    }

    /// What it means for a bank that so many of all are done; `said` says it when there were no more for too long.
    fn so_many(&self, bank: &BankRef, entries: u32, (done, all): (u64, u64), said: &str) -> Result<Readiness, Failure> {
        if done >= all {
            return Ok(Readiness::Proven);
        }
        let still = self.note(bank, |progress| {
            progress.count(entries, done);
            progress.since.elapsed()
        });
        self.unless_stalled(bank, still, said)
    }

    /// A bank in which nothing moves for longer than this has failed.
    fn patience(&self) -> Duration {
        let repeated = match (self.adapter.spec.ready.when, &self.adapter.ready) {
            // of many requests, each of which may have to be asked again for so long
            (ReadyRule::EachDone, Some(call)) => call.patience(),
            _ => Duration::ZERO,
        };
        self.adapter.stalled_after.max(repeated)
    }

    /// Whether what has to stand still is a value of the whole server, which moves as long as any bank is filled.
    fn waits_for_all_banks(&self) -> bool {
        let spec = &self.adapter.spec.ready;
        let names_bank = |call: &Call| call.uses("bank") || call.uses("name");
        spec.when == ReadyRule::Stable
            && (spec.metric.is_some() || !self.adapter.ready.as_ref().is_some_and(names_bank))
    }

    /// The system was given work. Where a value of the whole server has to stand still, banks that wait have as long from here on:
    /// they are parked while others are filled, and the value moves meanwhile.
    pub(super) fn note_work(&self) {
        if !self.waits_for_all_banks() {
            return;
        }
        let now = Instant::now();
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.values_mut().for_each(|waiting| waiting.begun = now);
    }

    /// Something was done to the bank: what was seen of it before says nothing of what is seen now.
    pub(super) fn begin_anew(&self, bank: &BankRef) {
        self.note(bank, Progress::begin_anew);
    }

    /// Items that are changed are looked at again: what was done is what they were before.
    pub(super) fn no_longer_done<'a>(&self, bank: &BankRef, ids: impl Iterator<Item = &'a String>) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(entry) = progress.get_mut(&bank.name) else { return };
        for id in ids {
            entry.done.remove(id);
        }
    }

    /// Not ready yet, and failed where nothing has moved for too long.
    fn unless_stalled(&self, bank: &BankRef, still: Duration, what: &str) -> Result<Readiness, Failure> {
        if still <= self.patience() {
            return Ok(again_after(self.adapter.every));
        }
        // whoever tries the bank again waits for it again
        self.begin_anew(bank);
        let message =
            format!("bank {}: {what} for {}; the system's worker may have died", bank.bank_id, time::show(still));
        Err(Failure::permanent("system_stalled", message))
    }

    /// Ends a segment, once: a bank that has got more entries since is flushed again.
    async fn flush(&self, bank: &BankRef, entries: u32) -> Result<(), Failure> {
        let Some(call) = &self.adapter.flush else { return Ok(()) };
        if self.note(bank, |progress| progress.flushed == Some(entries)) {
            return Ok(());
        }
        self.send(call, Some(bank), &bank_vars(bank)).await?;
        // what was seen before the flush says nothing of what comes of it, and what is seen after it is not forgotten by another look
        self.note(bank, |progress| {
            progress.begin_anew();
            progress.flushed = Some(entries);
        });
        Ok(())
    }

    async fn each_done(&self, call: &Call, bank: &BankRef, entries: u32) -> Result<Readiness, Failure> {
        let spec = &self.adapter.spec.ready;
        let status = Path::new(spec.status.as_deref().unwrap_or_default());
        let done = self.note(bank, |progress| progress.done.clone());
        let items: Vec<(u64, Item)> = (0..).zip(self.expected(bank, entries)?).collect();
        let expected: Vec<String> = items.iter().map(|(_, item)| item.id.clone()).collect();
        let all = expected.len();
        let open = items.into_iter().filter(|(_, item)| !done.contains(&item.id));
        let looks: Vec<(String, bool)> = stream::iter(open)
            .map(|(index, item)| {
                let status = &status;
                async move {
                    let vars = item
                        .vars(handle(bank), index, None, |name| call.uses(name))
                        .with("bank", handle(bank))
                        .with("name", bank.name.as_str());
                    let read =
                        self.send(call, Some(bank), &vars).await.map_err(|failure| match failure.code.as_str() {
                            // what has failed is deleted by some systems, and then it is not done
                            "system_http_404" | "system_http_410" => Failure::permanent(
                                "system_item_failed",
                                format!("item {} is gone: the system could not take it in", item.id),
                            ),
                            _ => failure,
                        })?;
                    if read.waiting.is_some() {
                        return Ok((item.id, false));
                    }
                    let state =
                        status.first(&read.value).cloned().ok_or_else(|| call.shape(status.absent("", &read.value)))?;
                    if spec.failed.contains(&state) {
                        return Err(Failure::permanent(
                            "system_item_failed",
                            format!("item {}: the system says {state}", item.id),
                        ));
                    }
                    Ok((item.id, spec.done.contains(&state)))
                }
            })
            .buffer_unordered(CHECKS_IN_FLIGHT)
            .try_collect()
            .await?;
        let ready = self.note(bank, |progress| {
            progress.done.extend(looks.into_iter().filter(|(_, done)| *done).map(|(id, _)| id));
            // what was taken away since may have been done too
            expected.iter().filter(|id| progress.done.contains(*id)).count()
        });
        let said = format!("{ready} of {all} items are done, no more");
        self.so_many(bank, entries, (ready as u64, all as u64), &said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_more_than_ever_is_a_move_and_more_entries_begin_anew() {
        let mut progress = Progress::begun();
        let mut moves = |entries, done| {
            let before = progress.since;
            // clocks may stand still for a moment
            std::thread::sleep(Duration::from_millis(2));
            progress.count(entries, done);
            progress.since != before
        };
        assert!(moves(4, 0));
        assert!(!moves(4, 0));
        assert!(moves(4, 3));
        assert!(!moves(4, 2) && !moves(4, 3), "it goes to and fro");
        assert!(moves(4, 4));
        assert!(moves(6, 3), "some were taken away, and others came");
        assert!(!moves(6, 3) && !moves(4, 4), "a look at what it was before is none");
    }

    #[test]
    fn what_earlier_entries_had_left_says_nothing_of_those_that_follow() {
        let mut progress = Progress::begun();
        let mut moves = |what: &mut dyn FnMut(&mut Progress)| {
            let before = progress.since;
            std::thread::sleep(Duration::from_millis(2));
            what(&mut progress);
            progress.since != before
        };
        let mut see = |entries, value: &str| moves(&mut |progress| progress.see(entries, value.into()));
        assert!(see(2, "processing"));
        assert!(!see(2, "processing"));
        assert!(see(2, "ranking"));
        assert!(see(4, "ranking"), "a counter that has not moved yet, of more entries");
        assert!(!see(4, "ranking") && !see(2, "ranking"));
        assert!(see(4, "done") && !see(4, "done"));
        assert!(moves(&mut Progress::begin_anew), "it was consolidated");
        let mut see = |entries, value: &str| moves(&mut |progress| progress.see(entries, value.into()));
        assert!(see(4, "done"), "and shows the same");
    }

    #[test]
    fn items_that_are_done_stay_done_and_a_segment_is_flushed_once() {
        let mut progress = Progress { done: ["m1".to_owned()].into(), flushed: Some(2), ..Progress::begun() };
        progress.count(2, 1);
        progress.count(4, 1);
        progress.begin_anew();
        assert_eq!((progress.done.len(), progress.flushed, progress.most), (1, Some(2), None));
    }

    #[test]
    fn how_long_a_request_has_to_be_asked_again_is_measured_over_all_looks() {
        let mut progress = Progress::begun();
        assert_eq!(progress.wait(2), Duration::ZERO);
        std::thread::sleep(Duration::from_millis(2));
        assert!(progress.wait(2) >= Duration::from_millis(2));
        assert_eq!(progress.wait(4), Duration::ZERO, "more entries begin anew");
        progress.begin_anew();
        assert_eq!(progress.wait(4), Duration::ZERO);
    }
}
