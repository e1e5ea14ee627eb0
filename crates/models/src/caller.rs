//! The one way in which steps call models: call store, pace, budget, stop flag, attempts, retries and the records of what
//! was paid. A [`ChatModel`] makes single attempts; everything around them is here, once for all providers.

mod first_call;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use bench_proto::{
    call::{CallOutcome, CallRecord, Phase, Usage},
    failure::{Failure, FailureClass},
    ids::{RunNo, Sha256Hash, TaskKey},
    money::PicoUsd,
    price::{ModelPrice, TokenCounts},
    step::{ReplyNote, SHORTEST_WAIT_US, Served, Timing, WaitFor},
    trace::StepTrace,
};

use bench_telemetry::metrics::{Histogram, catalogue};
use tracing::warn;

use self::first_call::FirstCall;
use crate::routes::{NotNow, Probed, Route, Sent, Way};

use super::{
    Attempt, AttemptError, ChatModel, ChatReply, ChatRequest, PaceHint,
    backoff::{BackoffSettings, Delays},
    budget::{Budget, OverCap, Refusal, Reservation},
    call_key::call_key,
    call_store::{CallStore, Found},
    classify,
    gate::{Entry, Gate},
    limiter::{Permit, Seen},
    pace::{Pace, Paced},
    stop::{StopCause, StopFlag},
    tokens::{self, Encoding},
};

/// Longest time that a probe waits for its reply.
pub const PROBE_PATIENCE: Duration = Duration::from_secs(30);

/// A place is kept for a call that waits for money no longer than this.
const HOLD_PLACE: Duration = Duration::from_millis(100);
/// The most that one call is booked with, $10,000: sums of what a million calls cost stay numbers.
const MOST_COST: PicoUsd = PicoUsd(10_000_000_000_000_000);

/// Settings of calls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallSettings {
    /// Attempts after the first that may fail; answers of 429 and outages of the route are not counted.
    pub retries: u32,
    /// Delays between attempts.
    pub backoff: BackoffSettings,
    /// Longest wait for pace or Retry-After that is spent in place; a longer one parks the task (P11).
    pub patience: Duration,
}

impl Default for CallSettings {
    fn default() -> Self {
        Self { retries: 6, backoff: BackoffSettings::default(), patience: Duration::from_secs(5) }
    }
}

/// What a caller is made of: one per run and model.
pub struct CallerParts {
    /// The model.
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
    /// Its provider.
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

/// What a call belongs to.
#[derive(Debug, Clone, Copy)]
pub struct CallContext<'a> {
    /// The run.
    pub run: RunNo,
    /// The task.
    pub task: TaskKey,
    /// The dataset's question id.
    pub question_id: &'a str,
    /// Repeat or vote: independent draws never share a reply.
    pub draw: u32,
    /// Phase that pays.
    pub phase: Phase,
    /// Scope of the call store.
    pub lineage: &'a str,
    /// False when the lineage holds no calls that could be found: spares the look-up.
    pub known_calls: bool,
    /// Failed attempts of this call before it was parked.
    pub failed_attempts: u32,
    /// The trace that its requests bring along.
    pub trace: Option<&'a StepTrace>,
}

/// A reply that passed its parser.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered<T> {
    /// What the parser made of it.
    pub value: T,
    /// The reply.
    pub reply: ChatReply,
    /// It came from the call store and cost nothing.
    pub cached: bool,
}

/// Why a call brought no value.
#[derive(Debug, Clone, PartialEq)]
pub enum CallStop {
    /// Given up: the failure is permanent, or transient and its attempts are used up.
    Failed(Failure),
    /// No call of this account can work; the stop flag is set.
    Terminal(Failure),
    /// The next attempt does not fit under the cap, and nothing is outstanding that could make room.
    Budget(OverCap),
    /// The stop flag was set before the call could be sent.
    Stopped(StopCause),
    /// The wait is longer than the caller's patience: give the slot back and come again.
    Park {
        /// Time until a call may work.
        wait: Duration,
        /// Why, for people.
        reason: String,
        /// Failed attempts so far, for [`CallContext::failed_attempts`].
        failed_attempts: u32,
        /// The route is away: nothing is to be noted of the task.
        outage: bool,
    },
}

/// Where the time of a call went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallTiming {
    /// Waiting for pace, a place, money, or a retry's delay, in microseconds.
    pub rate_wait_us: u64,
    /// Inside attempts, in microseconds.
    pub provider_us: u64,
    /// Attempts made.
    pub attempts: u32,
    /// One entry per attempt: start offset and duration in microseconds, HTTP status or 0.
    pub calls: Vec<(u64, u64, u16)>,
    /// What was answered.
    pub replies: Vec<ReplyNote>,
    /// Waits that are long enough to be seen: start offset and duration in microseconds, what for.
    pub waits: Vec<(u64, u64, WaitFor)>,
}

impl CallTiming {
    /// Adds the call to a step's timing; `offset_us` is where in the step the call began.
    pub fn add_to(&self, timing: &mut Timing, offset_us: u64) {
        timing.rate_wait_us += self.rate_wait_us;
        timing.provider_us += self.provider_us;
        timing.attempts += self.attempts;
        timing.add_calls(&self.calls, &self.waits, &self.replies, offset_us);
    }
}

/// What a call brought and cost.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResult<T> {
    /// The value, or why there is none.
    pub outcome: Result<Answered<T>, CallStop>,
    /// Every attempt that was or may have been paid, for the step's commit.
    pub records: Vec<CallRecord>,
    /// What was consumed.
    pub usage: Usage,
    /// Where the time went.
    pub timing: CallTiming,
}

/// A parser: makes a value of a reply, or says in one line why it cannot.
pub type Accept<'a, T> = &'a (dyn Fn(&ChatReply) -> Result<T, String> + Sync);

impl Caller {
    /// A caller of its parts. Where tokens are paced, the token table begins to load.
    #[must_use]
    pub fn new(parts: CallerParts) -> Self {
        let encoding = Encoding::of(parts.model.model());
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
                drop(call.judge_reply(reply, duration_us, reservation, &not_kept));
                Probed::Through
            }
            Err(error) => {
                call.settle_error(&error, duration_us, reservation);
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
    delays: Option<Delays>,
    records: Vec<CallRecord>,
    usage: Usage,
    timing: CallTiming,
}

/// Whether a failed attempt counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counts {
    Yes,
    /// Refused for the sake of pace.
    No,
    /// It failed on the way: the route decides, by when it was sent.
    ByRoute(Instant),
}

/// What to do after an attempt.
enum Next<T> {
    Done(Answered<T>),
    /// Repeat after a delay that the other side may have asked for.
    Retry {
        failure: Failure,
        counts: Counts,
    },
    /// Repeat at once.
    Again,
    Stop(CallStop),
}

impl<'a> Call<'a> {
    fn new(caller: &'a Caller, context: CallContext<'a>, request: &'a ChatRequest) -> Self {
        let key = caller.key(request, context.question_id, context.draw);
        let pending = caller.parts.route.as_ref().map(|route| route.kept(&key)).unwrap_or_default();
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
            delays: None,
            records: Vec::new(),
            usage: Usage::default(),
            timing: CallTiming::default(),
        }
    }

    async fn drive<T: Send>(&mut self, accept: Accept<'_, T>) -> Result<Answered<T>, CallStop> {
        if let Some(answered) = self.look_up(accept).await? {
            return Ok(answered);
        }
        loop {
            let waiting = Instant::now();
            let caller = self.caller;
            let admitted = self.admit().await;
            self.waited(waiting, WaitFor::Pace);
            let Admitted { reservation, permit, sent } = admitted?;
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
            if attempt.result.is_ok() {
                caller.first.replied();
            }
            let mut next = self.judge(attempt, reservation, accept, failed);
            self.count_allowance();
            if let Next::Stop(CallStop::Failed(failure)) = &next
                && caller.first.doubts(failure)
            {
                next = self.doubt(failure.clone()).await;
            }
            match next {
                Next::Done(answered) => return Ok(answered),
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
        let Some(books) = self.caller.parts.ledger.as_ref().filter(|_| !self.records.is_empty()) else { return };
        if books.put(self.context.task, self.records.clone()).await.is_ok() {
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
            route.keep(self.key, std::mem::take(&mut self.pending));
        }
        CallStop::Park { wait, reason, failed_attempts: self.failed_attempts, outage }
    }

    /// Waits until the route may be used; a call that has failed is decided about first.
    async fn find_way(&mut self) -> Result<(), CallStop> {
        let CallerParts { stop, route: Some(route), settings, .. } = &self.caller.parts else { return Ok(()) };
        match stop.unless_stopped(route.wait(settings.patience)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(NotNow { wait, reason })) => {
                let reason = format!("{} is away: {reason}", route.key());
                Err(self.put_off(wait, reason, true))
            }
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

    /// Everything that stands before a send: money, pace, place, and last of all the stop flag (P23).
    async fn admit(&mut self) -> Result<Admitted<'a>, CallStop> {
        loop {
            if let Some(admitted) = self.try_admit().await? {
                return Ok(admitted);
            }
        }
    }

    /// `None` when the route was closed while the call waited for the rest.
    async fn try_admit(&mut self) -> Result<Option<Admitted<'a>>, CallStop> {
        let CallerParts { stop, pace, gate, settings, account, route, .. } = &self.caller.parts;
        if let Some(cause) = stop.cause() {
            return Err(CallStop::Stopped(cause));
        }
        self.find_way().await?;
        if let Some(pace) = pace {
            let tokens = if pace.counts_tokens() { self.prompt_tokens() + self.request.output_limit() } else { 0 };
            match stop
                .unless_stopped(pace.acquire((self.context.run, self.context.phase), tokens, settings.patience))
                .await
            {
                Ok(Paced::Go { .. }) => self.slot_tokens = tokens,
                Ok(Paced::Later { wait }) => return Err(self.park(wait, "waiting for the run's pace".to_owned())),
                Err(cause) => return Err(CallStop::Stopped(cause)),
            }
        }
        let permit = self.enter(gate, account).await?;
        // last of all, so that a kill loses no money of calls that only waited; who waits long for money leaves the place to others
        let (waiting, mut permit) = (Instant::now(), Some(permit));
        let reserved = {
            let mut reserving = std::pin::pin!(self.reserve());
            tokio::select! {
                biased;
                reserved = &mut reserving => reserved,
                () = tokio::time::sleep(HOLD_PLACE) => {
                    permit = None;
                    reserving.await
                }
            }
        };
        let mut reservation = reserved?;
        self.noted(waiting, WaitFor::Budget);
        let permit = match permit {
            Some(permit) => permit,
            None => self.enter(gate, account).await?,
        };
        if let Some(cause) = stop.cause() {
            return Err(CallStop::Stopped(cause));
        }
        let sent = match route {
            Some(route) => match route.send() {
                Some(sent) => Some(sent),
                None => return Ok(None),
            },
            None => None,
        };
        if let Some(reservation) = &mut reservation {
            reservation.sent();
        }
        Ok(Some(Admitted { reservation, permit, sent }))
    }

    async fn enter(&mut self, gate: &'a Gate, account: &str) -> Result<Permit<'a>, CallStop> {
        let CallerParts { stop, settings, .. } = &self.caller.parts;
        match stop.unless_stopped(gate.enter(settings.patience)).await {
            Ok(Entry::Go(permit)) => Ok(permit),
            Ok(Entry::Later { wait }) => Err(self.park(wait, format!("account {account} asked to wait"))),
            Err(cause) => Err(CallStop::Stopped(cause)),
        }
    }

    /// Reserves the worst case of an attempt (P10). Far from the cap a bound that costs nothing to compute will do; close
    /// to it the prompt is counted.
    async fn reserve(&mut self) -> Result<Option<Reservation>, CallStop> {
        let CallerParts { stop, budget, price, .. } = &self.caller.parts;
        let Some(price) = price else { return Ok(None) };
        let bound = self.worst_case(price, tokens::prompt_bound(self.request));
        let phase = self.context.phase;
        match stop.unless_stopped(budget.reserve_generously(phase, bound)).await {
            Ok(Some(reservation)) => return Ok(Some(reservation)),
            Ok(None) => {}
            Err(cause) => return Err(CallStop::Stopped(cause)),
        }
        let prompt_tokens = self.prompt_tokens();
        let worst = self.worst_case(price, prompt_tokens);
        match stop.unless_stopped(budget.reserve(phase, worst)).await {
            Ok(Ok(reservation)) => Ok(Some(reservation)),
            Ok(Err(Refusal::OverCap(over_cap))) => Err(CallStop::Budget(over_cap)),
            Ok(Err(Refusal::Stopped(why))) => Err(CallStop::Stopped(StopCause::Asked(why))),
            Err(cause) => Err(CallStop::Stopped(cause)),
        }
    }

    /// Counted prompt × 1.05 and the largest completion.
    fn worst_case(&self, price: &ModelPrice, prompt_tokens: u64) -> PicoUsd {
        let prompt = (prompt_tokens * 21).div_ceil(20);
        price.worst(prompt, self.request.output_limit(), self.request.service_tier(), self.request.writes_cache())
    }

    fn prompt_tokens(&mut self) -> u64 {
        let Caller { parts, encoding, .. } = self.caller;
        *self.prompt_tokens.get_or_insert_with(|| parts.model.prompt_tokens(*encoding, self.request))
    }

    /// Counts a wait that ends now; what was noted of it already under another name stays so.
    fn waited(&mut self, since: Instant, what: WaitFor) {
        self.timing.rate_wait_us += micros(since.elapsed());
        let (begin, before) = (self.offset_of(since), self.timing.waits.last().copied());
        let from = before.map_or(begin, |(start, duration, _)| begin.max(start + duration));
        self.push_wait(from, what);
    }

    /// Notes a wait that ends now, as a part of one that goes on.
    fn noted(&mut self, since: Instant, what: WaitFor) {
        self.push_wait(self.offset_of(since), what);
    }

    fn offset_of(&self, moment: Instant) -> u64 {
        micros(moment.saturating_duration_since(self.begun))
    }

    fn push_wait(&mut self, from: u64, what: WaitFor) {
        let duration = micros(self.begun.elapsed()).saturating_sub(from);
        if duration >= SHORTEST_WAIT_US {
            self.timing.waits.push((from, duration, what));
        }
    }

    fn note(&mut self, offset_us: u64, attempt: &Attempt) {
        let status = attempt.result.as_ref().map_or_else(|error| error.status, |_| 200);
        self.timing.attempts += 1;
        self.timing.provider_us += attempt.duration_us;
        self.timing.calls.push((offset_us, attempt.duration_us, status));
        let (account, model) = (self.caller.parts.account.as_str(), self.caller.parts.model.model());
        let outcome = match status {
            200 => "ok",
            429 => "rate_limited",
            0 => "transport",
            _ => "error",
        };
        catalogue::CALLS.add(1.0, &[account, model, outcome]);
        catalogue::CALL_SECONDS.record(attempt.duration_us as f64 / 1e6, &[account, model]);
        if status == 429 {
            catalogue::RATE_LIMITED.add(1.0, &[account]);
        }
        let status = status.to_string();
        let (served, error) = match &attempt.result {
            Ok(reply) => (reply.model.as_str(), ""),
            Err(error) if error.status == 0 => ("", "transport"),
            Err(error) if error.status >= 400 => ("", status.as_str()),
            Err(error) => ("", error.failure.code.as_str()),
        };
        self.measure(&catalogue::CLIENT_SECONDS, attempt.duration_us as f64 / 1e6, served, error);
    }

    /// Records a value of one of the conventions' metrics; `last` is the value of its last label.
    fn measure(&self, of: &Histogram, value: f64, served: &str, last: &str) {
        let CallerParts { model, named: Named { operation, provider, server }, .. } = &self.caller.parts;
        let served = Served::named(served, None).model;
        of.record(value, &[operation, provider, model.model(), &served, &server.0, &server.1, last]);
    }

    /// Notes what a reply said of itself, with the tokens that are counted for it.
    fn note_reply(&mut self, reply: &ChatReply, (prompt_tokens, completion_tokens): (u64, u64)) {
        self.measure(&catalogue::CLIENT_TOKENS, prompt_tokens as f64, &reply.model, "input");
        self.measure(&catalogue::CLIENT_TOKENS, completion_tokens as f64, &reply.model, "output");
        // a probe belongs to no step
        let Some(call) = self.timing.calls.len().checked_sub(1) else { return };
        let served = Served::named(&reply.model, reply.fingerprint.as_deref());
        self.timing.replies.push(ReplyNote { call, prompt_tokens, completion_tokens, served });
    }

    /// Counts what an attempt took of the account's allowance, what it gave back left out.
    fn count_allowance(&mut self) {
        let account = self.caller.parts.account.as_str();
        catalogue::RATE_USED.add(1.0, &[account, "requests"]);
        catalogue::RATE_USED.add(std::mem::take(&mut self.slot_tokens) as f64, &[account, "tokens"]);
    }

    /// Settles and records an attempt, and decides what follows.
    fn judge<T>(
        &mut self,
        attempt: Attempt,
        reservation: Option<Reservation>,
        accept: Accept<'_, T>,
        failed: Option<Instant>,
    ) -> Next<T> {
        let duration_us = attempt.duration_us;
        match attempt.result {
            Ok(reply) => self.judge_reply(reply, duration_us, reservation, accept),
            Err(error) => self.judge_error(error, duration_us, reservation, failed),
        }
    }

    fn judge_reply<T>(
        &mut self,
        mut reply: ChatReply,
        duration_us: u64,
        reservation: Option<Reservation>,
        accept: Accept<'_, T>,
    ) -> Next<T> {
        let believed = tokens::is_plausible(self.request, &reply);
        if !believed {
            self.caller.doubt_count(&reply);
            (reply.prompt_tokens, reply.completion_tokens) = (None, None);
        }
        // a server that does not count is counted for
        let prompt_tokens = reply.prompt_tokens.unwrap_or_else(|| self.prompt_tokens());
        let completion_tokens = reply.completion_tokens.unwrap_or_else(|| self.caller.encoding.count(&reply.text));
        if let (Some(pace), Some(counted)) = (&self.caller.parts.pace, self.prompt_tokens)
            && pace.counts_tokens()
        {
            // the bound of an unknown vocabulary is far too large: what the prompt did not use goes to the next call
            let of_reply = match self.caller.parts.returns_unused_reply {
                true => self.request.output_limit().saturating_sub(completion_tokens),
                false => 0,
            };
            let unused = counted.saturating_sub(prompt_tokens).saturating_add(of_reply);
            pace.settled(unused);
            self.slot_tokens = self.slot_tokens.saturating_sub(unused);
        }
        let price = self.caller.parts.price.as_ref();
        let tokens = TokenCounts {
            prompt: prompt_tokens,
            cached: reply.cached_prompt_tokens,
            cache_write: reply.cache_write_tokens,
            cache_write_1h: reply.cache_write_1h_tokens,
            completion: completion_tokens,
        };
        // what was served is charged, also where another tier was asked for
        let served = reply.service_tier.as_deref().or_else(|| self.request.service_tier());
        let cost = price.map_or(PicoUsd::ZERO, |price| match believed {
            true => price.cost(&tokens, served).min(MOST_COST),
            // nobody knows what will be charged
            false => self.worst_case(price, prompt_tokens),
        });
        let accepted = accept(&reply);
        let outcome = if accepted.is_ok() { CallOutcome::Accepted } else { CallOutcome::Rejected };
        self.record(reservation, outcome, &reply, (prompt_tokens, completion_tokens), cost, duration_us);
        self.usage.prompt_tokens += prompt_tokens;
        self.usage.completion_tokens += completion_tokens;
        self.note_reply(&reply, (prompt_tokens, completion_tokens));
        match accepted {
            Ok(value) => {
                self.usage.calls += 1;
                Next::Done(Answered { value, reply, cached: false })
            }
            Err(why) => match unusable(self.context.phase, &reply) {
                // the same words would be withheld again, and paid again
                code @ ("content_filter" | "refusal") => Next::Stop(CallStop::Failed(Failure::permanent(code, why))),
                code => {
                    self.usage.retries += 1;
                    Next::Retry { failure: Failure::transient(code, why), counts: Counts::Yes }
                }
            },
        }
    }

    fn judge_error<T>(
        &mut self,
        error: AttemptError,
        duration_us: u64,
        reservation: Option<Reservation>,
        failed: Option<Instant>,
    ) -> Next<T> {
        let rate_limited = error.status == 429 && error.failure.class == FailureClass::Transient;
        self.usage.retries += 1;
        self.usage.rate_limited += u64::from(rate_limited);
        self.settle_error(&error, duration_us, reservation);
        let AttemptError { failure, adapted, .. } = error;
        match failure.class {
            _ if adapted => Next::Again,
            FailureClass::Transient => {
                let counts = match failed {
                    _ if rate_limited => Counts::No,
                    Some(sent) => Counts::ByRoute(sent),
                    None => Counts::Yes,
                };
                Next::Retry { failure, counts }
            }
            // others may get through: the task is theirs, and the route finds out (P40)
            FailureClass::Terminal if self.leaves_to_others(&failure) => {
                Next::Stop(self.put_off(Duration::from_millis(300), failure.message, true))
            }
            FailureClass::Permanent => Next::Stop(CallStop::Failed(failure)),
            FailureClass::Terminal => {
                self.caller.parts.stop.set(StopCause::Terminal(failure.clone()));
                Next::Stop(CallStop::Terminal(failure))
            }
        }
    }

    /// Records a failed attempt that may have been billed; the money of others goes back.
    fn settle_error(&mut self, error: &AttemptError, duration_us: u64, reservation: Option<Reservation>) {
        if error.maybe_billed {
            let prompt_tokens = self.prompt_tokens();
            let price = self.caller.parts.price.as_ref();
            let worst = price.map_or(PicoUsd::ZERO, |price| self.worst_case(price, prompt_tokens));
            let tokens = (prompt_tokens, self.request.output_limit());
            self.record(reservation, CallOutcome::Uncertain, &ChatReply::default(), tokens, worst, duration_us);
        } else if let Some(reservation) = reservation {
            reservation.free();
        }
    }

    /// A refused key, URL or model name is this process's own trouble, unless it is alone and they have never worked.
    fn leaves_to_others(&self, failure: &Failure) -> bool {
        let route = self.caller.parts.route.as_ref();
        classify::is_refusal(&failure.code) && route.is_some_and(|route| !route.is_alone() || route.ever_worked())
    }

    /// Records an attempt under the id of its reservation, which the record settles.
    fn record(
        &mut self,
        reservation: Option<Reservation>,
        outcome: CallOutcome,
        reply: &ChatReply,
        tokens: (u64, u64),
        cost: PicoUsd,
        duration_us: u64,
    ) {
        let attempt_id = reservation.as_ref().map_or_else(uuid::Uuid::now_v7, Reservation::id);
        if let Some(reservation) = reservation {
            reservation.settle(cost);
        }
        let model = if reply.model.is_empty() { self.caller.parts.model.model() } else { &reply.model };
        if outcome != CallOutcome::Uncertain {
            self.usage.cost = self.usage.cost.saturating_add(cost);
        }
        self.records.push(CallRecord {
            attempt_id,
            key: self.key,
            phase: self.context.phase,
            outcome,
            reply: reply.text.clone(),
            finish: reply.finish.clone(),
            model: model.to_owned(),
            prompt_tokens: tokens.0,
            completion_tokens: tokens.1,
            cost,
            duration_us,
        });
    }

    /// Waits before the next attempt, if there is to be one.
    async fn delay(&mut self, failure: Failure, counts: Counts) -> Result<(), CallStop> {
        let CallSettings { retries, backoff, patience } = self.caller.parts.settings;
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
        match self.caller.parts.stop.unless_stopped(tokio::time::sleep(delay)).await {
            Ok(()) => {}
            Err(cause) => return Err(CallStop::Stopped(cause)),
        }
        self.decide();
        if self.failed_attempts > retries { Err(CallStop::Failed(failure)) } else { Ok(()) }
    }
}

/// A call that may be sent now.
struct Admitted<'a> {
    reservation: Option<Reservation>,
    permit: Permit<'a>,
    sent: Option<Sent<'a>>,
}

/// Ends when a call need not be waited for.
async fn lost(sent: Option<&Sent<'_>>) {
    match sent {
        Some(sent) => sent.lost().await,
        None => std::future::pending().await,
    }
}

/// An attempt that is given up after a time; the provider may have done the work.
fn unanswered(why: &str, after: Duration) -> Attempt {
    Attempt {
        result: Err(classify::transport(classify::Transport::Timeout, 0, why, None)),
        pace: PaceHint::default(),
        duration_us: micros(after),
    }
}

/// What an attempt says about its route.
fn way_of(attempt: &Attempt) -> Way {
    attempt.result.as_ref().err().map_or(Way::Through, classify::way)
}

fn micros(duration: Duration) -> u64 {
    duration.as_micros() as u64
}

/// What an attempt teaches the limiter.
fn seen(attempt: &Attempt) -> Seen {
    match &attempt.result {
        Ok(_) => Seen::Accepted { latency_us: attempt.duration_us },
        Err(error) if error.status == 429 => Seen::RateLimited(attempt.pace),
        Err(error) if matches!(error.status, 503 | 529) => Seen::Overloaded,
        Err(_) => Seen::Failed,
    }
}

/// For how long the account asked to be left alone; zero when it refused a call and named no time.
fn held(attempt: &Attempt) -> Option<Duration> {
    let error = attempt.result.as_ref().err().filter(|error| matches!(error.status, 429 | 503))?;
    let asked = attempt.pace.retry_after_ms.map(Duration::from_millis);
    asked.or_else(|| (error.status == 429).then_some(Duration::ZERO))
}

/// Code of a reply that did not pass its parser: what the provider said of its end, if that explains it.
fn unusable(phase: Phase, reply: &ChatReply) -> &'static str {
    match (reply.finish.as_str(), phase) {
        ("content_filter", _) => return "content_filter",
        ("refusal", _) => return "refusal",
        ("length", _) => return "cut_off",
        _ if reply.text.trim().is_empty() => return "empty_reply",
        _ => {}
    }
    match phase {
        Phase::Judge => "unparsable_judgement",
        Phase::Answer => "unparsable_answer",
        Phase::Retain | Phase::Recall => "unparsable_reply",
    }
}

#[cfg(test)]
mod tests;
