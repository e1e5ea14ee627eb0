//! The one way in which steps call models: call store, pace, budget, stop flag, attempts, retries and the records of what
//! was paid. A [`ChatModel`] makes single attempts; everything around them is here, once for all providers.
//!
//! In: a request, what it belongs to ([`CallContext`]) and a parser. Out: a [`CallResult`] with every attempt that may have been
//! paid. `Call::drive` is the loop: `admission` is what stands before a send, `settling` what an attempt means and costs, `measures`
//! where the time went; `first_call` doubts the first refusals of a caller, `result` is what callers are given.

mod admission;
mod first_call;
mod measures;
mod result;
mod settling;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use bench_proto::{
    call::{CallRecord, Usage},
    failure::Failure,
    ids::{Sha256Hash, TaskKey},
    price::ModelPrice,
    step::WaitFor,
    usage_cap::UsageUnit,
};
use tracing::warn;

use self::{
    admission::Admitted,
    first_call::FirstCall,
    settling::{Counts, Next, held, lost, seen, unanswered, way_of},
};
pub use self::{
    result::{Accept, Answered, CallContext, CallResult, CallStop, CallTiming},
    settling::is_unread,
};
use super::{
    ChatModel, ChatReply, ChatRequest,
    backoff::{BackoffSettings, Delays},
    budget::Budget,
    call_key::call_key,
    call_store::{CallStore, Found},
    gate::Gate,
    pace::Pace,
    routes::{NotNow, Probed, Route, Way},
    stop::StopFlag,
    tokens::Encoding,
};

/// When a call may come again that was put off while it is to be found out whether its route is away.
const FOUND_OUT: Duration = Duration::from_secs(1);
/// Longest time that a probe waits for its reply.
pub const PROBE_PATIENCE: Duration = Duration::from_secs(30);

/// How patient a caller is, and what it counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallSettings {
    /// Attempts after the first that may fail; answers of 429 and outages of the route are not counted.
    pub retries: u32,
    /// Delays between attempts.
    pub backoff: BackoffSettings,
    /// Longest wait for pace, for Retry-After, or from a failure until the route may be used, that is spent in place; a longer one
    /// parks the task (P11).
    pub patience: Duration,
    /// What the run's cap counts in the place of dollars.
    pub counts: Option<UsageUnit>,
}

impl Default for CallSettings {
    fn default() -> Self {
        Self { retries: 6, backoff: BackoffSettings::default(), patience: Duration::from_secs(5), counts: None }
    }
}

/// What a caller is made of: one per run and model.
pub struct CallerParts {
    /// The provider's model that the calls go to.
    pub model: Arc<dyn ChatModel>,
    /// Name of the account: part of the call's key.
    pub account: String,
    /// What OpenTelemetry calls it.
    pub named: Named,
    /// The allowance in this process, shared by all callers of it.
    pub gate: Arc<Gate>,
    /// The run's explicit pace, shared by its callers.
    pub pace: Option<Arc<dyn Pace>>,
    /// The provider counts the reply that came: the slots of what a reply did not use go back to the pace.
    pub returns_unused_reply: bool,
    /// The run's stop flag.
    pub stop: StopFlag,
    /// The run's money.
    pub budget: Arc<dyn Budget>,
    /// Price of the model; `None` counts as free.
    pub price: Option<ModelPrice>,
    /// Stored calls, if any can be there.
    pub store: Option<Arc<dyn CallStore>>,
    /// Books attempts that brought nothing before the next one asks for money; without it they stay with their call.
    pub ledger: Option<Arc<dyn Bookkeeper>>,
    /// The way to the model (P39); without one each failure is an attempt at once.
    pub route: Option<Arc<Route>>,
    /// Retries, delays, patience.
    pub settings: CallSettings,
}

/// A model and where it is, in the words of OpenTelemetry's conventions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    /// What is asked of it: `chat`, `embeddings`.
    pub operation: &'static str,
    /// Name of the provider, such as `openai`.
    pub provider: String,
    /// Name and port of its server, as texts.
    pub server: (String, String),
}

/// Stores attempts ahead of the step that they belong to.
#[async_trait]
pub trait Bookkeeper: Send + Sync {
    /// Stores them and waits for the commit.
    ///
    /// # Errors
    /// When they cannot be stored.
    async fn put(&self, task: TaskKey, calls: Vec<CallRecord>) -> Result<(), Failure>;
}

/// Calls one model for one run.
pub struct Caller {
    parts: CallerParts,
    encoding: Encoding,
    first: FirstCall,
    /// It was said that the provider's counts cannot be true.
    doubted: AtomicBool,
}

impl Caller {
    /// A caller of its parts. Where tokens are paced, the token table begins to load.
    #[must_use]
    pub fn new(parts: CallerParts) -> Self {
        let encoding = Encoding::for_model(parts.model.model());
        // far from the cap the free byte bound is reserved: the table (46 MB) is loaded only where tokens are paced, or
        // when the cap comes near
        if parts.pace.as_ref().is_some_and(|pace| pace.counts_tokens()) {
            encoding.prepare();
        }
        Self { parts, encoding, first: FirstCall::default(), doubted: AtomicBool::new(false) }
    }

    /// Says once that the provider counts what cannot be.
    fn doubt_count(&self, reply: &ChatReply) {
        if !self.doubted.swap(true, Ordering::Relaxed) {
            let count = |tokens: Option<u64>| tokens.map_or_else(|| "no".to_owned(), |tokens| tokens.to_string());
            warn!(
                code = "implausible_usage",
                "{} (account {}) counts {} prompt and {} completion tokens for one call, which cannot be: such calls are booked \
                 with the most that they can cost",
                self.parts.model.model(),
                self.parts.account,
                count(reply.prompt_tokens),
                count(reply.completion_tokens)
            );
        }
    }

    /// The model that is called.
    #[must_use]
    pub fn model(&self) -> &dyn ChatModel {
        &*self.parts.model
    }

    /// The run's stop flag.
    #[must_use]
    pub const fn stop_flag(&self) -> &StopFlag {
        &self.parts.stop
    }

    /// The key of a request in the call store (P9).
    #[must_use]
    pub fn key(&self, request: &ChatRequest, question_id: &str, draw: u32) -> Sha256Hash {
        let model = &*self.parts.model;
        call_key(model.endpoint(), &self.parts.account, model.model(), request, question_id, draw)
    }

    /// Calls the model until `accept` takes a reply, or until there is a reason to stop.
    pub async fn call<T: Send>(
        &self,
        context: CallContext<'_>,
        request: &ChatRequest,
        accept: Accept<'_, T>,
    ) -> CallResult<T> {
        let mut call = Call::new(self, context, request);
        let outcome = call.drive(accept).await;
        CallResult { outcome, records: call.records, usage: call.usage, timing: call.timing }
    }

    /// Makes one attempt that belongs to no question: whether anything comes through (P39). It is reserved and recorded like
    /// any other, and waits neither for pace nor for the account's Retry-After.
    pub async fn probe(&self, context: CallContext<'_>, request: &ChatRequest) -> (Probed, Vec<CallRecord>) {
        let mut call = Call::new(self, context, request);
        let reserved = tokio::time::timeout(self.parts.settings.patience, call.reserve()).await;
        let Ok(Ok(mut reservation)) = reserved else { return (Probed::NotMade, Vec::new()) };
        if self.parts.stop.cause().is_some() {
            return (Probed::NotMade, Vec::new());
        }
        if let Some(reservation) = &mut reservation {
            reservation.sent();
        }
        // the smallest reply is there soon or not at all: a provider that lets requests hang would hold a probe for minutes
        let attempt = tokio::time::timeout(PROBE_PATIENCE, self.parts.model.attempt(request, context.trace)).await;
        let attempt = attempt.unwrap_or_else(|_| unanswered("a probe was not answered", PROBE_PATIENCE));
        let (way, duration_us) = (way_of(&attempt), attempt.duration_us);
        let probed = match attempt.result {
            Ok(reply) => {
                let not_kept = |_: &ChatReply| Err::<(), _>("a probe".to_owned());
                drop(call.settle_reply(reply, duration_us, reservation, &not_kept));
                Probed::Through
            }
            Err(error) => {
                call.record_failure(&error, duration_us, reservation);
                match way {
                    Way::Failed | Way::OwnFault | Way::Refused => Probed::Failed(error.failure),
                    // who refuses for the sake of pace, or does not like the request, is there
                    Way::Through | Way::Other => Probed::Through,
                }
            }
        };
        (probed, call.records)
    }
}

/// One call on its way.
struct Call<'a> {
    caller: &'a Caller,
    context: CallContext<'a>,
    request: &'a ChatRequest,
    key: Sha256Hash,
    begun: Instant,
    /// Counted prompt tokens, once needed.
    prompt_tokens: Option<u64>,
    /// Tokens that the attempt under way took slots for.
    slot_tokens: u64,
    failed_attempts: u32,
    /// When attempts were sent that failed on the way, while nobody knows whose fault it was.
    pending: Vec<Instant>,
    /// The last attempt may have been billed for nothing.
    maybe_billed: bool,
    /// When the last attempt failed, while the next one is waited for.
    failed_at: Option<tokio::time::Instant>,
    delays: Option<Delays>,
    records: Vec<CallRecord>,
    usage: Usage,
    timing: CallTiming,
}

impl<'a> Call<'a> {
    fn new(caller: &'a Caller, context: CallContext<'a>, request: &'a ChatRequest) -> Self {
        let key = caller.key(request, context.question_id, context.draw);
        let pending = caller.parts.route.as_ref().map(|route| route.kept(&kept_as(&context, key))).unwrap_or_default();
        // of what was put off before anybody knew whose fault it was
        let maybe_billed = !pending.is_empty();
        Self {
            caller,
            context,
            request,
            key,
            begun: Instant::now(),
            prompt_tokens: None,
            slot_tokens: 0,
            failed_attempts: context.failed_attempts,
            pending,
            maybe_billed,
            failed_at: None,
            delays: None,
            records: Vec::new(),
            usage: Usage::default(),
            timing: CallTiming::default(),
        }
    }

    async fn drive<T: Send>(&mut self, accept: Accept<'_, T>) -> Result<Answered<T>, CallStop> {
        if let Some(answered) = self.look_up(accept).await? {
            self.caller.first.could_read();
            return Ok(answered);
        }
        loop {
            let waiting = Instant::now();
            let caller = self.caller;
            let admitted = self.admit().await;
            self.waited(waiting, WaitFor::Pace);
            let Admitted { reservation, permit, sent } = admitted?;
            self.failed_at = None;
            let offset_us = micros(self.begun.elapsed());
            let sending = Instant::now();
            let attempt = tokio::select! {
                attempt = caller.parts.model.attempt(self.request, self.context.trace) => attempt,
                () = lost(sent.as_ref()) => unanswered("sent before the provider was away", sending.elapsed()),
            };
            self.note(offset_us, &attempt);
            permit.finish(seen(&attempt));
            let failed = sent
                .and_then(|sent| sent.end(way_of(&attempt), attempt.result.as_ref().err().map(|error| &error.failure)));
            if let Some(asked) = held(&attempt) {
                let hold = caller.parts.pace.as_ref().map_or(asked, |pace| pace.told(asked));
                caller.parts.gate.block.hold(hold);
            }
            let replied = attempt.result.is_ok();
            if replied {
                caller.first.replied();
            }
            let mut next = self.settle(attempt, reservation, accept, failed);
            self.count_allowance();
            if let Next::Stop(CallStop::Failed(failure)) = &next
                && caller.first.doubts(failure)
            {
                next = self.doubt(failure.clone()).await;
            }
            if let Next::Retry { failure, .. } = &next
                && replied
                && let Some(failure) =
                    caller.first.could_not_read(caller.parts.model.model(), failure, self.context.task)
            {
                next = Next::Stop(CallStop::Failed(failure));
            }
            match next {
                Next::Done(answered) => {
                    caller.first.could_read();
                    return Ok(answered);
                }
                Next::Stop(stop) => return Err(stop),
                Next::Again => {}
                Next::Retry { failure, counts } => {
                    self.book().await;
                    let waiting = Instant::now();
                    let delayed = self.delay(failure, counts).await;
                    self.waited(waiting, WaitFor::Retry);
                    delayed?;
                }
            }
        }
    }

    /// Books what was paid so far: the next attempt may have to wait for exactly this money. What cannot be booked now stays
    /// with the call.
    async fn book(&mut self) {
        let Some(ledger) = self.caller.parts.ledger.as_ref().filter(|_| !self.records.is_empty()) else { return };
        if ledger.put(self.context.task, self.records.clone()).await.is_ok() {
            self.records.clear();
        }
    }

    /// Serves the call from the call store when it is there (P9).
    async fn look_up<T>(&mut self, accept: Accept<'_, T>) -> Result<Option<Answered<T>>, CallStop> {
        let Some(store) = self.caller.parts.store.as_ref().filter(|_| self.context.known_calls) else {
            return Ok(None);
        };
        let Found { record, own } = match store.find(self.context.lineage, self.key, self.context.task).await {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(None),
            Err(failure) => return Err(self.park(Duration::from_secs(1), failure.message)),
        };
        let cost = record.cost;
        let reply = ChatReply {
            text: record.reply,
            finish: if record.finish.is_empty() { "stop".to_owned() } else { record.finish },
            model: record.model,
            prompt_tokens: Some(record.prompt_tokens),
            completion_tokens: Some(record.completion_tokens),
            ..ChatReply::default()
        };
        // a parser that has become stricter since asks anew
        Ok(accept(&reply).ok().map(|value| {
            if own {
                self.usage.calls += 1;
                self.usage.prompt_tokens += record.prompt_tokens;
                self.usage.completion_tokens += record.completion_tokens;
                self.usage.cost = self.usage.cost.saturating_add(cost);
            } else {
                self.usage.cached_calls += 1;
                self.usage.saved = self.usage.saved.saturating_add(cost);
            }
            Answered { value, reply, cached: true }
        }))
    }

    fn park(&mut self, wait: Duration, reason: String) -> CallStop {
        self.put_off(wait, reason, false)
    }

    /// Gives the slot back. What nobody has decided about yet waits here for the call to come again: forgotten, a call that
    /// always fails would begin anew for ever; counted, an outage would cost attempts.
    fn put_off(&mut self, wait: Duration, reason: String, outage: bool) -> CallStop {
        self.decide();
        if let Some(route) = &self.caller.parts.route {
            route.keep(kept_as(&self.context, self.key), std::mem::take(&mut self.pending));
        }
        CallStop::Park { wait, reason, failed_attempts: self.failed_attempts, outage }
    }

    /// Waits until the route may be used, and for what may have been billed until it is known whose fault that was: an outage costs
    /// no more than what was on its way when it began. What has failed has waited since then.
    async fn find_way(&mut self) -> Result<(), CallStop> {
        let CallerParts { stop, route: Some(route), settings, .. } = &self.caller.parts else { return Ok(()) };
        let (maybe_billed, patience) = (self.maybe_billed, settings.patience);
        let since = self.failed_at.unwrap_or_else(tokio::time::Instant::now);
        let left = || patience.saturating_sub(since.elapsed());
        let finding = async {
            if maybe_billed && !route.fault_is_known(left()).await {
                return Err((FOUND_OUT, format!("it is being found out whether {} is away", route.key())));
            }
            let not_now = |NotNow { wait, reason }| (wait, format!("{} is away: {reason}", route.key()));
            route.wait(left()).await.map_err(not_now)
        };
        match stop.unless_stopped(finding).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err((wait, reason))) => Err(self.put_off(wait, reason, true)),
            Err(cause) => Err(CallStop::Stopped(cause)),
        }
    }

    /// Counts failures on the way once it is known whose fault they were.
    fn decide(&mut self) {
        if let Some(route) = &self.caller.parts.route {
            let (charged, forgiven) = route.decide(&mut self.pending);
            self.failed_attempts = self.failed_attempts.saturating_add(charged);
            self.timing.attempts = self.timing.attempts.saturating_sub(forgiven);
        }
    }

    /// Waits before the next attempt, if there is to be one.
    async fn delay(&mut self, failure: Failure, counts: Counts) -> Result<(), CallStop> {
        let CallSettings { retries, backoff, patience, .. } = self.caller.parts.settings;
        match counts {
            Counts::No => {}
            Counts::Yes => self.failed_attempts += 1,
            Counts::ByRoute(sent) => self.pending.push(sent),
        }
        self.decide();
        if self.failed_attempts > retries {
            return Err(CallStop::Failed(failure));
        }
        let asked = failure.retry_after_ms.map(Duration::from_millis);
        let delay = self.delays.get_or_insert_with(|| backoff.delays()).next_delay(asked);
        if asked.is_some_and(|asked| asked > patience) {
            return Err(self.park(delay, failure.message));
        }
        let since = *self.failed_at.insert(tokio::time::Instant::now());
        let (CallerParts { stop, route, .. }, maybe_billed) = (&self.caller.parts, self.maybe_billed);
        let waiting = async {
            tokio::time::sleep(delay.min(patience)).await;
            // what is found out now may have used up the attempts; what is not is put off before it is sent
            if let Some(route) = route.as_ref().filter(|_| maybe_billed) {
                route.fault_is_known(patience.saturating_sub(since.elapsed())).await;
            }
        };
        match stop.unless_stopped(waiting).await {
            Ok(()) => {}
            Err(cause) => return Err(CallStop::Stopped(cause)),
        }
        self.decide();
        if self.failed_attempts > retries { Err(CallStop::Failed(failure)) } else { Ok(()) }
    }
}

/// By what a route keeps the failures of a call: equal calls of other runs and tasks, such as repeats, have failed on their own.
fn kept_as(context: &CallContext<'_>, call: Sha256Hash) -> Sha256Hash {
    Sha256Hash::of_bytes(format!("{} {} {}", context.run.0, context.task.0, call.hex()).as_bytes())
}

fn micros(duration: Duration) -> u64 {
    duration.as_micros() as u64
}

#[cfg(test)]
mod tests;
