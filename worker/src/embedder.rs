//! Who makes the embeddings of a run: a model behind an account, paced, capped, stored and retried like any other call.
//!
//! Each call is in the store before its vectors are used (`ledger`). What a bank is given is embedded once, while the bank
//! is retained: the vectors are in the call store from then on, and whoever builds an index of the bank reads them there.
//! Embeddings are no draw, so that runs share them (P9) unless `--cache` says otherwise; a run always reads back its own.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use async_trait::async_trait;
use bench_models::{
    ChatReply,
    call_store::CallStore,
    caller::Bookkeeper,
    openai::embeddings::{request, vectors},
};
use bench_proto::{
    call::{CallRecord, Phase, Usage},
    failure::Failure,
    step::Timing,
    trace::StepTrace,
};
use bench_store::ClaimedTask;
use bench_systems::{
    StepContext,
    embed::{Embed, EmbeddingModel},
};

use crate::{
    calls::{AskedFor, RunCaller, RunCallers},
    cost_ledger::CostLedger,
    ending::TaskEnd,
};

/// Code of the failure of an index that waited for embeddings that another task could not get: its own turn may do better.
pub(crate) const NOT_MADE: &str = "embedding_not_made";
/// Wait before such a task looks again, in milliseconds.
pub(crate) const NOT_MADE_DELAY_MS: u64 = 500;

/// The step of a task that pays for the embeddings that are made for it.
pub(crate) struct Payer {
    step: Arc<PayingStep>,
    /// The embedding model as memory systems ask it.
    embeddings: Arc<dyn Embed>,
}

struct PayingStep {
    task: ClaimedTask,
    begun: Instant,
    /// What its requests bring along.
    trace: Option<StepTrace>,
    /// The embeddings of the run, where its system wants any of a server.
    run: Option<Arc<PaidEmbeddings>>,
    paid: Mutex<Paid>,
    end: Mutex<Option<TaskEnd>>,
}

/// What a step has paid for embeddings. The calls themselves are booked.
#[derive(Debug, Default)]
pub(crate) struct Paid {
    pub(crate) usage: Usage,
    /// Waits and requests, from the beginning of the step.
    pub(crate) timing: Timing,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // nothing is left half changed under these locks
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Payer {
    /// A step of a task that begins now; `run` makes its embeddings.
    pub(crate) fn begin(task: ClaimedTask, trace: Option<StepTrace>, run: Option<&Arc<PaidEmbeddings>>) -> Self {
        let (run, begun) = (run.cloned(), Instant::now());
        let step = Arc::new(PayingStep { task, begun, trace, run, paid: Mutex::default(), end: Mutex::default() });
        Self { embeddings: Arc::<PayingStep>::clone(&step), step }
    }

    /// What an operation of a memory system is told of the step.
    pub(crate) fn step(&self) -> StepContext<'_> {
        StepContext { embeddings: Some(&self.embeddings), trace: self.step.trace.as_ref() }
    }

    /// What became of an operation that may have embedded: what it returned and what was paid, or how the task ends: as a call
    /// says, else as the system's failure does.
    pub(crate) fn settle<T>(
        self,
        result: Result<T, Failure>,
        system_end: impl FnOnce(Failure) -> TaskEnd,
    ) -> Result<(T, Paid), TaskEnd> {
        let paid = std::mem::take(&mut *lock(&self.step.paid));
        match result {
            Ok(value) => Ok((value, paid)),
            Err(failure) => match lock(&self.step.end).take() {
                Some(TaskEnd::GiveUp(mut given_up)) => {
                    given_up.usage += paid.usage;
                    Err(TaskEnd::GiveUp(given_up))
                }
                Some(end) => Err(end),
                None => Err(system_end(failure)),
            },
        }
    }
}

impl PayingStep {
    fn add(&self, begun: Instant, usage: Usage, spent: &Timing) {
        let offset_us = begun.saturating_duration_since(self.begun).as_micros() as u64;
        let mut paid = lock(&self.paid);
        paid.usage += usage;
        let timing = &mut paid.timing;
        timing.rate_wait_us += spent.rate_wait_us;
        timing.add_calls(&spent.calls, &spent.waits, &spent.replies, offset_us);
        timing.server = spent.server.clone().or(timing.server.take());
    }

    /// A call brought nothing, and the first of them decides how the task ends. Returns the attempts that are still to be
    /// booked: other calls of the step may wait for their money.
    fn ended(&self, mut end: TaskEnd) -> (Failure, Vec<CallRecord>) {
        let (calls, words) = match &mut end {
            TaskEnd::HandBack { reason, calls } | TaskEnd::Park { reason, calls, .. } => {
                (std::mem::take(calls), reason.clone())
            }
            TaskEnd::RetryLater { failure, calls } => (std::mem::take(calls), failure.message.clone()),
            TaskEnd::GiveUp(given_up) => (std::mem::take(&mut given_up.calls), given_up.failure.message.clone()),
            TaskEnd::PutOff { reason, .. } => (Vec::new(), reason.clone()),
            TaskEnd::Failed(failure) => (Vec::new(), failure.message.clone()),
            TaskEnd::Stored | TaskEnd::Overtaken => (Vec::new(), "the task has ended".to_owned()),
        };
        lock(&self.end).get_or_insert(end);
        (not_made(&words), calls)
    }

    /// Refuses further calls once one has ended the step.
    fn check(&self) -> Result<(), Failure> {
        match &*lock(&self.end) {
            Some(_) => Err(not_made("the step has ended")),
            None => Ok(()),
        }
    }
}

fn not_made(why: &str) -> Failure {
    Failure::transient(NOT_MADE, format!("embeddings: {why}"))
}

/// The embeddings of one run.
pub(crate) struct PaidEmbeddings {
    retain: RunCaller,
    recall: RunCaller,
    stored: Arc<dyn CallStore>,
    ledger: CostLedger,
}

impl PaidEmbeddings {
    /// Over the run's money, pace and stored calls.
    ///
    /// # Errors
    /// When this worker has no such account, or its URL or key cannot be used.
    pub(crate) fn build(callers: &RunCallers<'_>, model: &EmbeddingModel) -> Result<Self, Failure> {
        let stored = callers.stored_embeddings();
        Ok(Self {
            retain: callers.embedder(model, Phase::Retain, &stored)?,
            recall: callers.embedder(model, Phase::Recall, &stored)?,
            stored,
            ledger: callers.ledger(),
        })
    }
}

impl PayingStep {
    fn run(&self) -> Result<&PaidEmbeddings, Failure> {
        self.run.as_deref().ok_or_else(|| {
            Failure::permanent(
                "embedding_payer",
                "the run's system has no embeddings of a server; report this as a bug",
            )
        })
    }

    async fn call(&self, caller: &RunCaller, texts: &[String]) -> Result<Vec<Vec<f32>>, Failure> {
        self.check()?;
        let (begun, task) = (Instant::now(), self.task);
        let accept = |reply: &ChatReply| vectors(&reply.text, texts.len());
        let asked = AskedFor { task: &task, question_id: "", draw: 0, trace: self.trace.as_ref() };
        let ledger = &self.run()?.ledger;
        match caller.call(asked, &request(texts), &accept).await {
            Ok(called) => {
                ledger.put(task.task, called.records).await?;
                self.add(begun, called.usage, &called.timing);
                Ok(called.value)
            }
            Err(end) => {
                let (failure, calls) = self.ended(end);
                ledger.put(task.task, calls).await?;
                Err(failure)
            }
        }
    }
}

#[async_trait]
impl Embed for PayingStep {
    async fn embed(&self, _: &EmbeddingModel, texts: &[String]) -> Result<Vec<Vec<f32>>, Failure> {
        self.call(&self.run()?.recall, texts).await
    }

    async fn ahead(&self, _: &EmbeddingModel, texts: &[String]) -> Result<(), Failure> {
        self.call(&self.run()?.retain, texts).await.map(drop)
    }

    async fn of_bank(&self, _: &EmbeddingModel, texts: &[String]) -> Result<Vec<Vec<f32>>, Failure> {
        let PaidEmbeddings { recall, stored, .. } = self.run()?;
        // reading back what the bank was given is no call: neither usage nor savings
        let key = recall.key(&request(texts), "", 0);
        let stored = stored.find(recall.lineage(), key, self.task.task).await?;
        match stored.and_then(|found| vectors(&found.record.reply, texts.len()).ok()) {
            Some(vectors) => Ok(vectors),
            None => self.call(recall, texts).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use bench_proto::{
        ids::{RunNo, Sha256Hash, TaskKey},
        money::PicoUsd,
    };
    use bench_store::SessionId;

    use super::*;

    fn step() -> Arc<PayingStep> {
        let task = ClaimedTask {
            run: RunNo(1),
            task: TaskKey::question(0, 0),
            epoch: 1,
            attempts: 0,
            losses: 0,
            queue_wait_us: 0,
            dispatch_us: 0,
            session: SessionId(1),
        };
        Payer::begin(task, None, None).step
    }

    fn record() -> CallRecord {
        CallRecord {
            attempt_id: uuid::Uuid::now_v7(),
            key: Sha256Hash([0; 32]),
            phase: Phase::Recall,
            outcome: bench_proto::call::CallOutcome::Uncertain,
            reply: String::new(),
            finish: String::new(),
            model: "m".to_owned(),
            prompt_tokens: 3,
            completion_tokens: 0,
            cost: PicoUsd(3),
            duration_us: 1,
        }
    }

    #[test]
    fn the_first_call_decides_how_the_task_ends_and_all_of_them_are_booked() {
        let step = step();
        assert_eq!(step.check(), Ok(()));
        let park = TaskEnd::Park { delay_ms: 7_000, reason: "waits for pace".to_owned(), calls: vec![record()] };
        let (failure, calls) = step.ended(park);
        assert_eq!((failure.code.as_str(), failure.message.as_str()), (NOT_MADE, "embeddings: waits for pace"));
        assert_eq!(calls.len(), 1);
        let stop = TaskEnd::HandBack { reason: "stopped".to_owned(), calls: vec![record(), record()] };
        assert_eq!(step.ended(stop).1.len(), 2);
        assert!(step.check().is_err(), "no further calls");
        let end = lock(&step.end).take();
        assert!(matches!(&end, Some(TaskEnd::Park { delay_ms: 7_000, calls, .. }) if calls.is_empty()), "{end:?}");
    }

    #[test]
    fn what_a_step_spent_adds_up_from_its_beginning() {
        let step = step();
        let spent = Timing { rate_wait_us: 5, calls: vec![(1, 10, 200)], ..Timing::default() };
        for calls in [1, 2] {
            step.add(step.begun, Usage { calls, ..Usage::default() }, &spent);
        }
        let paid = std::mem::take(&mut *lock(&step.paid));
        assert_eq!((paid.usage.calls, paid.timing.rate_wait_us), (3, 10));
        assert_eq!(paid.timing.calls, [(1, 10, 200), (1, 10, 200)]);
    }
}
