//! What a memory system of the runner asks models: embeddings, and what a chat model notes of a bank; paced, capped, stored and
//! retried like any other call.
//!
//! Each call is in the store before its reply is used (`ledger`). What a bank is given is asked about once, while the bank is
//! retained: the replies are in the call store from then on, and whoever builds an index of the bank reads them there.
//! Embeddings are no draw, so that runs share them (P9) unless `--cache` says otherwise; notes are a draw, shared as answers
//! are. A run always reads back its own.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use async_trait::async_trait;
use bench_models::{
    ChatReply, ChatRequest,
    call_store::CallStore,
    caller::{Accept, Bookkeeper},
    openai::embeddings::{request, vectors},
};
use bench_proto::{
    call::{CallRecord, Phase, Usage},
    failure::Failure,
    spec::ModelSpec,
    step::Timing,
    trace::StepTrace,
};
use bench_store::ClaimedTask;
use bench_systems::{
    StepContext,
    chat::{Asking, Chat},
    embed::{Embed, EmbeddingModel},
};

use crate::{
    calls::{AskedFor, RunCaller, RunCallers},
    cost_ledger::CostLedger,
    ending::TaskEnd,
};

/// Code of the failure of an index that waited for replies that another task could not get: its own turn may do better.
pub(crate) const NOT_MADE: &str = "embedding_not_made";
/// Wait before such a task looks again, in milliseconds.
pub(crate) const NOT_MADE_DELAY_MS: u64 = 500;

/// The step of a task that pays for what its memory system asks models.
pub(crate) struct Payer {
    step: Arc<PayingStep>,
    /// The embedding model as memory systems ask it.
    embeddings: Arc<dyn Embed>,
    /// The chat model as they ask it.
    chats: Arc<dyn Chat>,
}

/// The models that the memory system of a run asks: none for most.
#[derive(Clone, Default)]
pub(crate) struct PaidModels {
    pub(crate) embeddings: Option<Arc<PaidCalls>>,
    pub(crate) chat: Option<Arc<PaidCalls>>,
}

struct PayingStep {
    task: ClaimedTask,
    begun: Instant,
    /// What its requests bring along.
    trace: Option<StepTrace>,
    /// What its system asks.
    run: PaidModels,
    paid: Mutex<Paid>,
    end: Mutex<Option<TaskEnd>>,
}

/// What a step has paid for models. The calls themselves are booked.
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
    /// A step of a task that begins now; its system asks the models of `run`.
    pub(crate) fn begin(task: ClaimedTask, trace: Option<StepTrace>, run: &PaidModels) -> Self {
        let (run, begun) = (run.clone(), Instant::now());
        let step = Arc::new(PayingStep { task, begun, trace, run, paid: Mutex::default(), end: Mutex::default() });
        Self { embeddings: Arc::<PayingStep>::clone(&step), chats: Arc::<PayingStep>::clone(&step), step }
    }

    /// What an operation of a memory system is told of the step.
    pub(crate) fn step(&self) -> StepContext<'_> {
        StepContext { embeddings: Some(&self.embeddings), chats: Some(&self.chats), trace: self.step.trace.as_ref() }
    }

    /// The bank of the step's task.
    pub(crate) fn bank_no(&self) -> u32 {
        self.step.task.task.bank()
    }

    /// What became of an operation that may have asked models: what it returned and what was paid, or how the task ends: as a call
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
    Failure::transient(NOT_MADE, format!("what the memory system asks its model: {why}"))
}

/// What the memory system of one run asks one model.
pub(crate) struct PaidCalls {
    retain: RunCaller,
    recall: RunCaller,
    stored: Arc<dyn CallStore>,
    ledger: CostLedger,
}

impl PaidCalls {
    /// Embeddings over the run's money, pace and stored calls.
    ///
    /// # Errors
    /// When this worker has no such account, or its URL or key cannot be used.
    pub(crate) fn embeddings(callers: &RunCallers<'_>, model: &EmbeddingModel) -> Result<Self, Failure> {
        let stored = callers.stored_embeddings();
        Ok(Self {
            retain: callers.embedder(model, Phase::Retain, &stored)?,
            recall: callers.embedder(model, Phase::Recall, &stored)?,
            stored,
            ledger: callers.ledger(),
        })
    }

    /// The same of a chat model.
    ///
    /// # Errors
    /// As [`Self::embeddings`].
    pub(crate) fn chat(callers: &RunCallers<'_>, model: &ModelSpec) -> Result<Self, Failure> {
        let stored = callers.stored_of_banks();
        Ok(Self {
            retain: callers.of_system(model, Phase::Retain, &stored)?,
            recall: callers.of_system(model, Phase::Recall, &stored)?,
            stored,
            ledger: callers.ledger(),
        })
    }
}

fn asked(model: Option<&Arc<PaidCalls>>) -> Result<&PaidCalls, Failure> {
    model.map(AsRef::as_ref).ok_or_else(|| {
        Failure::permanent("model_payer", "the run's system asks no such model of a server; report this as a bug")
    })
}

impl PayingStep {
    fn embeddings(&self) -> Result<&PaidCalls, Failure> {
        asked(self.run.embeddings.as_ref())
    }

    fn chat(&self) -> Result<&PaidCalls, Failure> {
        asked(self.run.chat.as_ref())
    }

    async fn call<T: Send>(
        &self,
        caller: &RunCaller,
        ledger: &CostLedger,
        request: &ChatRequest,
        accept: Accept<'_, T>,
    ) -> Result<T, Failure> {
        self.check()?;
        let (begun, task) = (Instant::now(), self.task);
        let asked = AskedFor { task: &task, question_id: "", draw: 0, trace: self.trace.as_ref() };
        match caller.call(asked, request, accept).await {
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

    /// What was asked while the bank was retained. Reading it back is no call: neither usage nor savings.
    async fn kept<T>(
        &self,
        calls: &PaidCalls,
        request: &ChatRequest,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Failure> {
        let key = calls.recall.key(request, "", 0);
        let stored = calls.stored.find(calls.recall.lineage(), key, self.task.task).await?;
        Ok(stored.and_then(|found| read(&found.record.reply)))
    }

    async fn embed_by(
        &self,
        calls: &PaidCalls,
        caller: &RunCaller,
        texts: &[String],
    ) -> Result<Vec<Vec<f32>>, Failure> {
        let accept = |reply: &ChatReply| vectors(&reply.text, texts.len());
        self.call(caller, &calls.ledger, &request(texts), &accept).await
    }

    async fn ask_by(&self, calls: &PaidCalls, caller: &RunCaller, asking: Asking<'_>) -> Result<String, Failure> {
        let accept = |reply: &ChatReply| (asking.accept)(&reply.text).map(|()| reply.text.clone());
        self.call(caller, &calls.ledger, asking.request, &accept).await
    }
}

#[async_trait]
impl Embed for PayingStep {
    async fn embed(&self, _: &EmbeddingModel, texts: &[String]) -> Result<Vec<Vec<f32>>, Failure> {
        let calls = self.embeddings()?;
        self.embed_by(calls, &calls.recall, texts).await
    }

    async fn ahead(&self, _: &EmbeddingModel, texts: &[String]) -> Result<(), Failure> {
        let calls = self.embeddings()?;
        self.embed_by(calls, &calls.retain, texts).await.map(drop)
    }

    async fn of_bank(&self, _: &EmbeddingModel, texts: &[String]) -> Result<Vec<Vec<f32>>, Failure> {
        let calls = self.embeddings()?;
        match self.kept(calls, &request(texts), |reply| vectors(reply, texts.len()).ok()).await? {
            Some(vectors) => Ok(vectors),
            None => self.embed_by(calls, &calls.recall, texts).await,
        }
    }
}

#[async_trait]
impl Chat for PayingStep {
    async fn ahead(&self, asking: Asking<'_>) -> Result<(), Failure> {
        let calls = self.chat()?;
        self.ask_by(calls, &calls.retain, asking).await.map(drop)
    }

    async fn of_bank(&self, asking: Asking<'_>) -> Result<String, Failure> {
        let calls = self.chat()?;
        let read = |reply: &str| (asking.accept)(reply).is_ok().then(|| reply.to_owned());
        match self.kept(calls, asking.request, read).await? {
            Some(reply) => Ok(reply),
            None => self.ask_by(calls, &calls.recall, asking).await,
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
        Payer::begin(task, None, &PaidModels::default()).step
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
        assert_eq!(
            (failure.code.as_str(), failure.message.as_str()),
            (NOT_MADE, "what the memory system asks its model: waits for pace")
        );
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
