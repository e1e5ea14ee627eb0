//! What the store has acknowledged to this process lately, to be written again should the store forget it (P44): a failover that
//! loses commits, a restore. Writes are repeated whole for a minute; of older ones only what they cost is known.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use bench_proto::{
    call::{CallRecord, Ledger},
    ids::{RunNo, TaskKey},
    money::PicoUsd,
    step::StepRecord,
};
use bench_store::{
    BudgetAnswer, BudgetChange, BudgetState, CommitMark, Conclusion, GroupState, Money, RunRow, SessionId, StoreResult,
    Told, Want,
};
use uuid::Uuid;

/// How long a write is kept whole. It ages only while the store confirms that the session lives.
const KEPT_FOR: Duration = Duration::from_secs(60);
/// Most bytes of writes that are kept whole.
const KEPT_BYTES: usize = 64 << 20;
/// Calls of older writes whose cost is kept: 60 bytes each.
const OLDER_CALLS: usize = 100_000;

/// A write that the store has acknowledged.
#[derive(Debug, Clone)]
pub(crate) enum Write {
    /// A batch of the checkpoint writer with its number in its session.
    Batch(i64, Arc<(Vec<StepRecord>, Vec<Conclusion>)>),
    /// Attempts that belong to no stored step.
    Calls(RunNo, Arc<Vec<(TaskKey, CallRecord)>>),
    /// The memory system's handle of a bank's generation.
    Handle { run: RunNo, bank_no: u32, generation: i64, handle: String },
}

impl Write {
    /// Whether a store that knows of the session's batches up to `mark` may have forgotten it.
    pub(crate) fn is_beyond(&self, mark: i64) -> bool {
        !matches!(self, Self::Batch(number, _) if *number <= mark)
    }

    /// The runs that it is about.
    pub(crate) fn runs(&self) -> BTreeSet<RunNo> {
        match self {
            Self::Batch(_, batch) => batch.0.iter().map(|record| record.run).collect(),
            Self::Calls(run, _) | Self::Handle { run, .. } => BTreeSet::from([*run]),
        }
    }

    fn calls(&self) -> Vec<(RunNo, Want)> {
        let paid =
            |run, call: &CallRecord| (run, Want { attempt: call.attempt_id, phase: call.phase, amount: call.cost });
        match self {
            Self::Batch(_, batch) => {
                batch.0.iter().flat_map(|record| record.calls.iter().map(|call| paid(record.run, call))).collect()
            }
            Self::Calls(run, calls) => calls.iter().map(|(_, call)| paid(*run, call)).collect(),
            Self::Handle { .. } => Vec::new(),
        }
    }
}

/// Money of a run that is known to be out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outstanding {
    /// Reserved, and not known to have ended.
    pub(crate) open: Vec<Want>,
    /// Paid, or given up for lost, so long ago that no record is kept.
    pub(crate) lost: Vec<Want>,
}

struct Kept {
    write: Write,
    at: Instant,
    bytes: usize,
}

/// The writes that are kept, and the money of the calls that they were about.
#[derive(Default)]
struct JournalState {
    /// Number of the last batch of the session.
    number: i64,
    told: Told,
    kept: VecDeque<Kept>,
    bytes: usize,
    /// Calls of writes that are not kept any more.
    older: VecDeque<(RunNo, Want)>,
    /// Calls whose cost is not known any more either.
    forgotten: u64,
    reserved: HashMap<Uuid, (RunNo, Want)>,
    lost: VecDeque<(RunNo, Want)>,
}

/// The writes of a process.
#[derive(Default)]
pub(crate) struct Journal {
    state: Mutex<JournalState>,
    /// Held by each commit of a batch, and while writes are repeated: batches are numbered in the order of their commits.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

impl Journal {
    fn lock(&self) -> MutexGuard<'_, JournalState> {
        // every change is complete when the lock is dropped
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session begins: batches are numbered anew.
    pub(crate) fn begin(&self) {
        let mut state = self.lock();
        let incarnation = state.told.incarnation;
        (state.number, state.told) = (0, Told { incarnation, ..Told::default() });
        for kept in &mut state.kept {
            if let Write::Batch(number, _) = &mut kept.write {
                *number = i64::MAX; // of an earlier session: no mark tells of it
            }
        }
    }

    /// The mark of the next batch.
    pub(crate) fn next(&self, session: SessionId) -> CommitMark {
        CommitMark { session, number: self.lock().number + 1 }
    }

    /// What the session was told last, with the batches that were acknowledged since.
    pub(crate) fn told(&self) -> Told {
        let state = self.lock();
        Told { mark: state.number, ..state.told }
    }

    /// Whether a renewal tells less than was told before it was sent: the store went back in time.
    pub(crate) fn is_less(before: Told, told: Told) -> bool {
        told.incarnation != before.incarnation || told.counter <= before.counter || told.mark < before.mark
    }

    /// A renewal that was sent at `sent` is confirmed: what was acknowledged long before is safe by any standard.
    pub(crate) fn confirm(&self, told: Told, sent: Instant) {
        let mut state = self.lock();
        state.told = told;
        while state.kept.front().is_some_and(|kept| sent.saturating_duration_since(kept.at) > KEPT_FOR) {
            state.let_go();
        }
    }

    /// A batch was acknowledged; `bytes` is its rough size.
    pub(crate) fn batch(&self, number: i64, records: Vec<StepRecord>, conclusions: Vec<Conclusion>, bytes: usize) {
        self.lock().number = number;
        self.keep(Write::Batch(number, Arc::new((records, conclusions))), bytes);
    }

    /// Attempts were acknowledged.
    pub(crate) fn calls(&self, run: RunNo, calls: Vec<(TaskKey, CallRecord)>) {
        let bytes = calls.iter().map(|(_, call)| 256 + call.reply.len()).sum();
        self.keep(Write::Calls(run, Arc::new(calls)), bytes);
    }

    /// A bank's handle was acknowledged.
    pub(crate) fn handle(&self, run: RunNo, bank_no: u32, generation: i64, handle: String) {
        let bytes = 64 + handle.len();
        self.keep(Write::Handle { run, bank_no, generation, handle }, bytes);
    }

    fn keep(&self, write: Write, bytes: usize) {
        let mut state = self.lock();
        for (_, call) in write.calls() {
            state.reserved.remove(&call.attempt);
        }
        state.bytes += bytes;
        state.kept.push_back(Kept { write, at: Instant::now(), bytes });
        while state.bytes > KEPT_BYTES {
            state.let_go();
        }
    }

    /// Writes that a store which knows of the batches up to `mark` may have forgotten, in their order.
    pub(crate) fn beyond(&self, mark: i64) -> Vec<Write> {
        let state = self.lock();
        state.kept.iter().map(|kept| &kept.write).filter(|write| write.is_beyond(mark)).cloned().collect()
    }

    /// What is out of each run, and how many older calls are not known any more.
    pub(crate) fn outstanding(&self) -> (HashMap<RunNo, Outstanding>, u64) {
        let state = self.lock();
        let mut runs: HashMap<RunNo, Outstanding> = HashMap::new();
        for (run, want) in state.reserved.values() {
            runs.entry(*run).or_default().open.push(*want);
        }
        for (run, want) in state.older.iter().chain(&state.lost) {
            runs.entry(*run).or_default().lost.push(*want);
        }
        (runs, state.forgotten)
    }

    /// The store's money, with a note of what is reserved and lost.
    pub(crate) fn money(self: &Arc<Self>, store: Arc<dyn Money>) -> Arc<dyn Money> {
        Arc::new(Noted { store, journal: Arc::clone(self) })
    }
}

impl JournalState {
    /// Forgets the oldest write, but not what it cost.
    fn let_go(&mut self) {
        let Some(kept) = self.kept.pop_front() else { return };
        self.bytes -= kept.bytes;
        let paid = kept.write.calls().into_iter().filter(|(_, call)| call.amount > PicoUsd::ZERO);
        self.older.extend(paid);
        while self.older.len() > OLDER_CALLS {
            self.older.pop_front();
            self.forgotten += 1;
        }
    }
}

/// Money of the store; what changes is noted once it was acknowledged.
struct Noted {
    store: Arc<dyn Money>,
    journal: Arc<Journal>,
}

#[async_trait]
impl Money for Noted {
    async fn change_budget(&self, change: &BudgetChange) -> StoreResult<BudgetAnswer> {
        let answer = self.store.change_budget(change).await?;
        let mut state = self.journal.lock();
        for attempt in &change.release {
            state.reserved.remove(attempt);
        }
        for attempt in &change.lose {
            if let Some(lost) = state.reserved.remove(attempt) {
                state.lost.push_back(lost);
            }
        }
        while state.lost.len() > OLDER_CALLS {
            state.lost.pop_front();
            state.forgotten += 1;
        }
        if !answer.stopped {
            for (place, want) in change.wants.iter().enumerate() {
                if !answer.refused.iter().any(|(refused, _)| *refused == place) {
                    state.reserved.insert(want.attempt, (change.run, *want));
                }
            }
        }
        drop(state);
        Ok(answer)
    }

    async fn lose_open(&self, run: RunNo, session: SessionId) -> StoreResult<()> {
        self.store.lose_open(run, session).await?;
        let mut state = self.journal.lock();
        let lost: Vec<Uuid> = state.reserved.iter().filter(|(_, (of, _))| *of == run).map(|(id, _)| *id).collect();
        for attempt in lost {
            let lost = state.reserved.remove(&attempt);
            state.lost.extend(lost);
        }
        Ok(())
    }

    async fn stop_account(
        &self,
        run: RunNo,
        account: &str,
        model: Option<&str>,
        reason: &str,
    ) -> StoreResult<Vec<RunNo>> {
        self.store.stop_account(run, account, model, reason).await
    }

    async fn release_uncertain(&self, run: RunNo) -> StoreResult<PicoUsd> {
        self.store.release_uncertain(run).await
    }

    async fn group(&self, run: RunNo) -> StoreResult<Option<GroupState>> {
        self.store.group(run).await
    }

    async fn usage(&self, run: &RunRow) -> StoreResult<Option<BudgetState>> {
        self.store.usage(run).await
    }

    async fn ledger(&self, run: &RunRow) -> StoreResult<Ledger> {
        self.store.ledger(run).await
    }
}

#[cfg(test)]
mod tests {
    use bench_proto::call::CallOutcome;
    use bench_store::conformance::{answered, call, record};

    use super::*;

    const RUN: RunNo = RunNo(1);

    fn batch(journal: &Journal, cost: i64, bytes: usize) -> Uuid {
        let mut step = record(RUN, TaskKey::question(0, 0), bench_proto::step::StepNo::ANSWER, 1, answered());
        step.calls = vec![call("x", CallOutcome::Accepted, cost)];
        let attempt = step.calls[0].attempt_id;
        let number = journal.next(SessionId(1)).number;
        journal.batch(number, vec![step], Vec::new(), bytes);
        attempt
    }

    fn told(counter: i64, mark: i64) -> Told {
        Told { counter, mark, incarnation: 0 }
    }

    #[test]
    fn p44_who_is_told_less_than_before_knows_that_the_store_went_back() {
        let journal = Journal::default();
        let is_less = |told| Journal::is_less(journal.told(), told);
        assert!(!is_less(told(1, 0)));
        journal.confirm(told(1, 0), Instant::now());
        batch(&journal, 1, 1);
        batch(&journal, 1, 1);
        assert!(!is_less(told(2, 2)));
        assert!(is_less(told(2, 1)), "a batch is missing");
        assert!(is_less(told(1, 2)), "a renewal is missing");
        assert!(is_less(Told { incarnation: 7, ..told(2, 2) }), "somebody else has noticed");
        let beyond = |mark| journal.beyond(mark).len();
        assert_eq!([beyond(0), beyond(1), beyond(2)], [2, 1, 0]);
        journal.begin();
        assert!(!is_less(told(1, 0)), "a new session");
        assert_eq!(beyond(9), 2, "of the earlier session nothing is known");
    }

    #[test]
    fn p44_writes_age_while_the_store_confirms_and_their_cost_stays_known() {
        let journal = Journal::default();
        let first = batch(&journal, 5, 10);
        batch(&journal, 0, 10);
        journal.confirm(told(1, 2), Instant::now() + KEPT_FOR - Duration::from_secs(1));
        assert_eq!(journal.beyond(0).len(), 2);
        journal.confirm(told(2, 2), Instant::now() + KEPT_FOR + Duration::from_secs(1));
        assert_eq!(journal.beyond(0).len(), 0);
        let (runs, forgotten) = journal.outstanding();
        let lost: Vec<_> = runs[&RUN].lost.iter().map(|want| (want.attempt, want.amount.0)).collect();
        assert_eq!((lost, forgotten), (vec![(first, 5)], 0), "what cost nothing is not missed");
    }

    #[test]
    fn p44_memory_is_bounded() {
        let journal = Journal::default();
        for _ in 0..5 {
            batch(&journal, 1, KEPT_BYTES / 2);
        }
        assert_eq!(journal.beyond(0).len(), 2);
        assert_eq!(journal.outstanding().0[&RUN].lost.len(), 3);
        for _ in 0..OLDER_CALLS {
            batch(&journal, 1, KEPT_BYTES + 1);
        }
        let (runs, forgotten) = journal.outstanding();
        assert_eq!((runs[&RUN].lost.len(), forgotten), (OLDER_CALLS, 5));
    }
}
