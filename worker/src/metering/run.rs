//! What stands before and behind the calls that a memory system makes in one run: the same stop flag, allowance and money as for the
//! runner's own calls (P34), and a record of each in the call store.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use bench_meter::{
    Admitted, Asked, Ended, Faults, Operation, Outcome, PromptTokens, Refusal, StoredReply, Tokens, Upstream,
};
use bench_models::{
    budget::{Budget as _, Refusal as NoMoney, Reservation, reservations::Reservations},
    call_store::CallStore,
    caller::Bookkeeper as _,
    classify,
    gate::{Entry, Gate},
    limiter::Seen,
    look::key_headers,
    pace::{Pace, Paced},
    prices,
    registry::Account,
    stop::{StopCause, StopFlag},
    tokens,
};
use bench_proto::{
    call::{CacheScope, CallOutcome, CallRecord, Phase},
    failure::Failure,
    ids::{RunNo, Sha256Hash},
    metered::{MeterPlan, MeteredEnd, MeteredKey, Service},
    money::PicoUsd,
    price::{ModelPrice, TokenCounts},
    spec::Limits,
    usage_cap::UsageUnit,
};
use bench_store::{Allowance, CallKind, PaceLimits, Paces};
use tokio::sync::oneshot;
use tracing::warn;
use uuid::Uuid;

use super::{
    in_flight::InFlight,
    outages::{Away, Missed, Outages, PROVIDER_AWAY, Target},
};
use crate::{cost_ledger::CostLedger, ending::BUDGET, environment::WorkerEnvironment};

/// How long a request is held until its turn: SDKs wait a minute and more for a reply, and most repeat what is refused.
const HOLD: Duration = Duration::from_secs(20);
/// Tokens of a reply at most, where the request sets no limit: the most that widely used models give.
const LONGEST_REPLY: u64 = 16_384;
/// How long an outage is waited for, where the run does not say (`--outage-timeout`).
const LONGEST_OUTAGE: Duration = Duration::from_secs(1_800);
/// When to come again who could not be given a place.
const COME_AGAIN: Duration = Duration::from_secs(5);
/// The provider whose paths name a deployment.
const AZURE: &str = "azure";

/// A run whose memory system's calls are metered.
pub(crate) struct MeteredRun {
    pub(crate) run: RunNo,
    pub(crate) lineage: String,
    pub(crate) limits: Limits,
    pub(crate) plan: MeterPlan,
    /// The account of the run's answerer: that of providers without one of their own.
    pub(crate) answerer: (String, String),
    pub(crate) stop: StopFlag,
    pub(crate) budget: Arc<Reservations>,
    pub(crate) ledger: CostLedger,
    pub(crate) stored: Option<Arc<dyn CallStore>>,
    pub(crate) paces: Arc<dyn Paces>,
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) outages: Outages,
    /// No other process works for this run.
    pub(crate) is_alone: bool,
    pub(crate) faults: Faults,
    pub(crate) environment: Arc<WorkerEnvironment>,
}

/// Where the requests of an operation go.
struct Way<'a> {
    provider: &'a str,
    account: &'a Account,
    gate: Arc<Gate>,
    pace: Arc<dyn Pace>,
}

impl MeteredRun {
    /// Lets a request through, once its turn has come and there is money for it.
    ///
    /// # Errors
    /// Why not, for the memory system.
    pub(super) async fn admit(self: &Arc<Self>, asked: &Asked) -> Result<Box<dyn Admitted>, Refusal> {
        let by = Instant::now() + HOLD;
        self.check_running()?;
        let way = self.way(asked)?;
        let price = self.price(asked, &way)?;
        let named = asked.address.bank.as_deref().zip(asked.address.generation);
        let (bank, stage) = self.in_flight.attribute(named);
        let key = MeteredKey { bank, stage, service: service_of(asked.operation) };
        let mut call = MeteredCall {
            run: Arc::clone(self),
            key,
            call_key: self.call_key(asked, way.account),
            model: asked.model.clone(),
            upstream: upstream(way.provider, way.account)?,
            prompt_tokens: asked.prompt_tokens.clone(),
            max_reply: longest_reply(asked),
            price,
            // bodies are kept where runs share them, and nowhere else
            is_kept: asked.cacheable && matches!(self.limits.cache, CacheScope::Shared | CacheScope::Refresh),
            stored: None,
            reservation: None,
            taken: None,
            place: None,
            gate: Arc::clone(&way.gate),
            target: Target {
                account: way.account.name.clone(),
                model: asked.model.clone(),
                embeds: asked.operation == Operation::Embeddings,
            },
        };
        if !asked.operation.costs() {
            return Ok(Box::new(call));
        }
        call.stored = self.stored_reply(asked, &call).await?;
        if call.stored.is_none() {
            self.wait_for_provider(&call.target, by).await?;
            call.taken = self.wait_for_pace(&call, asked, &way, by).await?;
            call.place = Some(self.wait_for_place(&way, by).await?);
            call.reservation = self.reserve(&call, asked, by).await?;
            self.check_running()?;
        }
        Ok(Box::new(call))
    }

    fn check_running(&self) -> Result<(), Refusal> {
        self.stop.cause().map_or(Ok(()), |cause| Err(stopped(&cause)))
    }

    /// The account that an operation's requests go to: the one that the run names, that of the provider's name, or the answerer's.
    fn way(&self, asked: &Asked) -> Result<Way<'_>, Refusal> {
        let wire = if is_anthropic(asked.operation) { "anthropic" } else { "openai" };
        let accounts = &self.environment.accounts;
        let (provider, own) = &self.answerer;
        let of_answerer = || (!own.is_empty() && wire_of(provider) == wire).then_some((wire, own.as_str()));
        let found = account_of(providers_of(asked), &self.plan.accounts, |name| accounts.contains_key(name));
        let found = found.or_else(of_answerer);
        let account = found.and_then(|(_, name)| accounts.get(name)).ok_or_else(|| {
            let name = found.map_or(wire, |(_, name)| name);
            Refusal::Unavailable(format!(
                "the meter has no account '{name}': set its key and base URL where the meter runs, or name another with --meter-account"
            ))
        })?;
        let provider = match account.name.as_str() {
            _ if found.is_some_and(|(of, _)| of == AZURE) => AZURE,
            AZURE => AZURE,
            name if name == own => provider,
            _ => wire,
        };
        let kind = if asked.operation == Operation::Embeddings { CallKind::Embeddings } else { CallKind::Chat };
        let allowance = Allowance {
            endpoint: bench_proto::redact::identity(account.base_url.trim_end_matches('/')),
            account: account.name.clone(),
            limit_group: prices::limit_group(&asked.model).to_owned(),
            kind,
        };
        let limits = PaceLimits {
            rpm: self.limits.max_rpm.or(account.limits.rpm),
            tpm: self.limits.max_tpm.or(account.limits.tpm),
        };
        let gates = &self.environment.gates;
        Ok(Way { provider, account, gate: gates.gate(&allowance), pace: gates.pace(&self.paces, &allowance, limits) })
    }

    /// The price of the model that is asked for, if the run may use it.
    fn price(&self, asked: &Asked, way: &Way<'_>) -> Result<Option<ModelPrice>, Refusal> {
        if !asked.operation.costs() {
            return Ok(None);
        }
        let allowed = &self.plan.allow;
        if !allowed.is_empty() && !allowed.iter().any(|pattern| matches(pattern, &asked.model)) {
            return Err(Refusal::ModelNotAllowed { model: asked.model.clone(), allowed: allowed.clone() });
        }
        let price = prices::price_at(way.provider, &asked.model, &self.limits);
        let is_free = !bench_models::registry::is_paid(way.provider);
        // a model of no price would be outside of every cap
        if price.is_none() && !is_free && !self.limits.unpriced_ok && self.is_capped() {
            return Err(Refusal::UnknownModel(format!(
                "{} has no price, and the run has a cap: give one with --price {0}=INPUT,OUTPUT or allow it with --unpriced-ok",
                asked.model
            )));
        }
        Ok(price)
    }

    fn is_capped(&self) -> bool {
        let Limits { max_cost, max_cost_by_phase, max_cost_per_day, .. } = &self.limits;
        max_cost.is_some() || max_cost_per_day.is_some() || !max_cost_by_phase.is_empty()
    }

    /// Equal requests of one account have equal keys, and none of the runner's own calls has one of them.
    fn call_key(&self, asked: &Asked, account: &Account) -> Sha256Hash {
        let endpoint = bench_proto::redact::identity(&account.base_url);
        let parts = ["bench-metered-v1", &endpoint, &account.name, &asked.model, &asked.body_hash.hex()];
        Sha256Hash::of(parts.join("\n").as_bytes())
    }

    /// A reply to an equal request, where the run shares calls (`--cache shared`).
    async fn stored_reply(&self, asked: &Asked, call: &MeteredCall) -> Result<Option<StoredReply>, Refusal> {
        let Some(stored) = self.stored.as_ref().filter(|_| asked.cacheable && self.limits.cache == CacheScope::Shared)
        else {
            return Ok(None);
        };
        let found = stored.find(&self.lineage, call.call_key, call.key.task()).await;
        let found = found.map_err(|failure| Refusal::Unavailable(failure.message))?;
        Ok(found.map(|found| StoredReply::json(found.record.reply.into_bytes().into())))
    }

    /// While the provider is away, one request at a time finds out whether it is back, and the others wait (P39).
    async fn wait_for_provider(&self, target: &Target, by: Instant) -> Result<(), Refusal> {
        match self.stop.unless_stopped(self.outages.wait(target, by)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(away)) => Err(Refusal::Unavailable(away.reason)),
            Err(cause) => Err(stopped(&cause)),
        }
    }

    /// The provider that is away, to which what the system has just failed may be due. One that is away for longer than the run waits
    /// for outages stops the run, which can be resumed; one that has always refused the key does at once. Where others work beside
    /// this process, only a provider that has answered here before stops the run: else it is this process that lacks the way, or the
    /// key, and others may have it (P40).
    pub(crate) fn away(&self) -> Option<Away> {
        let away = self.outages.away()?;
        let longest = self.limits.outage_timeout_s.map_or(LONGEST_OUTAGE, Duration::from_secs);
        let is_hopeless = away.is_refused && !away.has_answered;
        if (self.is_alone && is_hopeless) || (away.since > longest && (self.is_alone || away.has_answered)) {
            let message =
                format!("{}; this is what the memory system calls: mend it, then resume the run", away.reason);
            self.stop.set(StopCause::Terminal(Failure::terminal(PROVIDER_AWAY, message)));
        }
        Some(away)
    }

    /// A slot of the pace, with the tokens of the request, where they are counted.
    async fn wait_for_pace(
        &self,
        call: &MeteredCall,
        asked: &Asked,
        way: &Way<'_>,
        by: Instant,
    ) -> Result<Option<Taken>, Refusal> {
        let counted = way.pace.counts_tokens().then(|| (call.prompt_tokens.count(), call.max_reply));
        let tokens = counted.map_or(0, |(prompt, reply)| prompt.saturating_add(reply));
        let lane = (self.run, call.key.stage.phase());
        match self.stop.unless_stopped(way.pace.acquire(lane, tokens, left(by))).await {
            Ok(Paced::Go { .. }) => {
                let returns_reply = way.account.counts_used_tokens || asked.max_reply_tokens.is_none();
                Ok(counted.map(|counted| Taken::new(&way.pace, counted, returns_reply)))
            }
            Ok(Paced::Later { wait }) => {
                Err(Refusal::Busy { retry_after: wait, reason: "the run's pace is used up".to_owned() })
            }
            Err(cause) => Err(stopped(&cause)),
        }
    }

    /// A place among the calls in flight. Its permit lives in a task of its own, which is told how the call went.
    async fn wait_for_place(&self, way: &Way<'_>, by: Instant) -> Result<oneshot::Sender<Seen>, Refusal> {
        let (enter, entered) = oneshot::channel();
        let (tell, told) = oneshot::channel();
        let (gate, patience) = (Arc::clone(&way.gate), left(by));
        tokio::spawn(async move {
            match gate.enter(patience).await {
                Entry::Later { wait } => drop(enter.send(Err(wait))),
                Entry::Go(permit) => {
                    // whoever has left needs no place
                    if enter.send(Ok(())).is_ok()
                        && let Ok(seen) = told.await
                    {
                        permit.finish(seen);
                    }
                }
            }
        });
        let busy =
            |retry_after| Refusal::Busy { retry_after, reason: format!("account {} is in full use", way.account.name) };
        match self.stop.unless_stopped(tokio::time::timeout(left(by), entered)).await {
            Err(cause) => Err(stopped(&cause)),
            Ok(Ok(Ok(Ok(())))) => Ok(tell),
            Ok(Ok(Ok(Err(wait)))) => Err(busy(wait)),
            Ok(Ok(Err(_)) | Err(_)) => Err(busy(COME_AGAIN)),
        }
    }

    /// Reserves the worst case of a request (P10): by its bytes while money is plenty, else by its counted tokens.
    async fn reserve(&self, call: &MeteredCall, asked: &Asked, by: Instant) -> Result<Option<Reservation>, Refusal> {
        let Some(bound) = call.to_reserve(asked.prompt_bytes) else { return Ok(None) };
        let phase = call.key.stage.phase();
        let generous = self.budget.reserve_generously(phase, bound);
        match self.stop.unless_stopped(generous).await {
            Ok(Some(reservation)) => return Ok(Some(reservation)),
            Ok(None) => {}
            Err(cause) => return Err(stopped(&cause)),
        }
        let worst = call.to_reserve(call.prompt_tokens.count()).unwrap_or(bound);
        let exact = self.budget.reserve(phase, worst);
        match self.stop.unless_stopped(tokio::time::timeout(left(by), exact)).await {
            Err(cause) => Err(stopped(&cause)),
            Ok(Err(_)) => {
                let reason = "the rest of the money is reserved for calls in flight".to_owned();
                Err(Refusal::Busy { retry_after: COME_AGAIN, reason })
            }
            Ok(Ok(Ok(reservation))) => Ok(Some(reservation)),
            Ok(Ok(Err(NoMoney::Stopped(why)))) => Err(Refusal::Stopped(why)),
            Ok(Ok(Err(NoMoney::OverCap(over)))) => {
                let reason = format!("{BUDGET}: {over}");
                // what the system does meanwhile is given back and not failed: the run waits for its owner
                self.stop.set(StopCause::Terminal(Failure::terminal(BUDGET, reason.clone())));
                Err(Refusal::OverBudget(reason))
            }
        }
    }
}

fn left(by: Instant) -> Duration {
    by.saturating_duration_since(Instant::now())
}

fn stopped(cause: &StopCause) -> Refusal {
    match cause {
        StopCause::Asked(why) => Refusal::Stopped(why.clone()),
        StopCause::Terminal(failure) if failure.code == BUDGET => Refusal::OverBudget(failure.message.clone()),
        StopCause::Terminal(failure) => Refusal::Stopped(failure.message.clone()),
    }
}

/// Whether a model is one of a pattern: its name, or what begins like it where it ends with `*`.
fn matches(pattern: &str, model: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == model, |begin| model.starts_with(begin))
}

const fn is_anthropic(operation: Operation) -> bool {
    matches!(operation, Operation::Messages | Operation::CountTokens)
}

/// Providers that may answer a request, the likeliest first: Azure for its own paths, and elsewhere where there is no other.
fn providers_of(asked: &Asked) -> &'static [&'static str] {
    match asked.operation {
        operation if is_anthropic(operation) => &["anthropic"],
        _ if asked.is_azure() => &[AZURE, "openai"],
        _ => &["openai", AZURE],
    }
}

/// The first of these providers that the run names an account of, or that has one of its name; and that account.
fn account_of<'a>(
    providers: &'static [&'static str],
    named: &'a BTreeMap<String, String>,
    is_known: impl Fn(&str) -> bool,
) -> Option<(&'static str, &'a str)> {
    let of = |provider: &&'static str| match named.get(*provider) {
        Some(name) => Some((*provider, name.as_str())),
        None => is_known(provider).then_some((*provider, *provider)),
    };
    providers.iter().find_map(of)
}

/// The wire that a provider's models speak.
fn wire_of(provider: &str) -> &'static str {
    if provider == "anthropic" { "anthropic" } else { "openai" }
}

const fn service_of(operation: Operation) -> Service {
    match operation {
        Operation::Chat => Service::Chat,
        Operation::Responses => Service::Responses,
        Operation::Completions => Service::Completions,
        Operation::Embeddings => Service::Embeddings,
        Operation::Messages => Service::Messages,
        Operation::Models | Operation::CountTokens => Service::Free,
    }
}

/// Most tokens of a reply.
fn longest_reply(asked: &Asked) -> u64 {
    match asked.operation {
        Operation::Embeddings | Operation::Models | Operation::CountTokens => 0,
        _ => asked.max_reply_tokens.unwrap_or(LONGEST_REPLY),
    }
}

fn upstream(provider: &str, account: &Account) -> Result<Upstream, Refusal> {
    let headers =
        key_headers(provider, account.key.as_ref()).map_err(|failure| Refusal::Unavailable(failure.message))?;
    let mut upstream = Upstream::new(account.base_url.clone(), headers);
    upstream.paths = match provider {
        "anthropic" => bench_meter::Paths::Anthropic,
        "azure" => bench_meter::Paths::Azure,
        _ => bench_meter::Paths::OpenAi,
    };
    Ok(upstream)
}

/// A request that may be sent, and what it has reserved.
struct MeteredCall {
    run: Arc<MeteredRun>,
    key: MeteredKey,
    call_key: Sha256Hash,
    model: String,
    upstream: Upstream,
    prompt_tokens: PromptTokens,
    max_reply: u64,
    price: Option<ModelPrice>,
    is_kept: bool,
    stored: Option<StoredReply>,
    reservation: Option<Reservation>,
    taken: Option<Taken>,
    place: Option<oneshot::Sender<Seen>>,
    gate: Arc<Gate>,
    target: Target,
}

/// How an attempt ended that no provider can charge for; `None` where one may.
fn free_end(outcome: &Outcome) -> Option<MeteredEnd> {
    match &outcome.ended {
        Ended::Stored => Some(MeteredEnd::Stored),
        Ended::NotReached(_) => Some(MeteredEnd::NotReached),
        Ended::Refused(status) if outcome.failed_on_purpose() => Some(MeteredEnd::FailedOnPurpose(*status)),
        Ended::Refused(status) if !classify::may_be_billed(*status) => Some(MeteredEnd::Refused(*status)),
        _ => None,
    }
}

/// Tells whether the provider was there.
fn teach_outages(outages: &Outages, (target, request): (&Target, Sha256Hash), outcome: &Outcome) {
    let failed = |reason: String| outages.failed(target, Missed { reason, is_refused: false, request: None });
    match &outcome.ended {
        // the provider was not asked
        _ if outcome.failed_on_purpose() => {}
        Ended::Complete => outages.through(target),
        Ended::NotReached(cause) | Ended::CutByProvider(cause) => failed(cause.clone()),
        Ended::NotAReply => failed("what came is no reply".to_owned()),
        Ended::Refused(429) => outages.limited(target),
        Ended::Refused(status @ (401..=403 | 408 | 500..)) => {
            let request = (*status == 500).then_some(request);
            outages.failed(target, Missed { reason: format!("status {status}"), is_refused: *status < 408, request });
        }
        // of the request, or of the client: nothing is learned
        Ended::Refused(_) | Ended::Stored | Ended::CutByClient => {}
    }
}

/// Tokens that a request has taken of the pace. When it is dropped, what it has not used goes to other calls.
struct Taken {
    pace: Arc<dyn Pace>,
    prompt: u64,
    reply: u64,
    /// The provider's limit counts the reply that came, or the longest one is the meter's own guess.
    returns_reply: bool,
    unused: u64,
}

impl Taken {
    fn new(pace: &Arc<dyn Pace>, (prompt, reply): (u64, u64), returns_reply: bool) -> Self {
        Self { pace: Arc::clone(pace), prompt, reply, returns_reply, unused: prompt.saturating_add(reply) }
    }

    /// It leaves: nobody knows yet what it uses.
    fn sent(&mut self) {
        self.unused = 0;
    }

    /// What it has used is known, where it is.
    fn settle(mut self, outcome: &Outcome) {
        match (&outcome.ended, outcome.usage) {
            (Ended::NotReached(_), _) => self.unused = self.prompt.saturating_add(self.reply),
            (Ended::Complete, Some(used)) if !outcome.implausible => {
                let of_reply = if self.returns_reply { self.reply.saturating_sub(used.completion) } else { 0 };
                self.unused = self.prompt.saturating_sub(used.prompt).saturating_add(of_reply);
            }
            _ => {}
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if self.unused > 0 {
            self.pace.settled(self.unused);
        }
    }
}

/// What an attempt came to.
struct Spent {
    end: MeteredEnd,
    outcome: CallOutcome,
    tokens: Tokens,
    cost: PicoUsd,
}

impl MeteredCall {
    /// What the run's cap counts in the place of dollars.
    fn counts(&self) -> Option<UsageUnit> {
        self.run.limits.max_usage.map(|cap| cap.unit)
    }

    /// What the run's cap counts of the request at most; `None` where nothing is to be reserved.
    fn to_reserve(&self, prompt_tokens: u64) -> Option<PicoUsd> {
        let most = tokens::with_margin(prompt_tokens).saturating_add(self.max_reply);
        let usage = self.counts().map(|unit| PicoUsd(unit.of_attempt(most)));
        usage.or_else(|| self.price.is_some().then(|| self.worst(prompt_tokens)))
    }

    /// Prompt × 1.05 and the longest reply, as for the runner's own calls.
    fn worst(&self, prompt_tokens: u64) -> PicoUsd {
        let prompt = tokens::with_margin(prompt_tokens);
        self.price.as_ref().map_or(PicoUsd::ZERO, |price| price.worst(prompt, self.max_reply, None, true))
    }

    fn spent(&self, outcome: &Outcome) -> Spent {
        let nothing =
            |end| Spent { end, outcome: CallOutcome::Rejected, tokens: Tokens::default(), cost: PicoUsd::ZERO };
        if let Some(end) = free_end(outcome) {
            return nothing(end);
        }
        match (&outcome.ended, outcome.usage) {
            (Ended::Complete, Some(tokens)) if !outcome.implausible => self.answered(outcome, tokens),
            (Ended::Complete, None) if !self.key_costs() => nothing(MeteredEnd::Answered { counted_here: false }),
            (_, seen) => {
                let seen = seen.unwrap_or_default();
                let prompt = seen.prompt.max(self.prompt_tokens.count());
                let tokens = Tokens { prompt, completion: seen.completion.max(self.max_reply), ..Tokens::default() };
                Spent { end: MeteredEnd::Cut, outcome: CallOutcome::Uncertain, tokens, cost: self.worst(prompt) }
            }
        }
    }

    fn key_costs(&self) -> bool {
        self.key.service != Service::Free
    }

    fn answered(&self, outcome: &Outcome, tokens: Tokens) -> Spent {
        let counts = TokenCounts {
            prompt: tokens.prompt,
            cached: tokens.cached,
            cache_write: tokens.cache_write,
            cache_write_1h: tokens.cache_write_1h,
            completion: tokens.completion,
        };
        let tier = outcome.service_tier.as_deref();
        let cost = self.price.as_ref().map_or(PicoUsd::ZERO, |price| price.cost(&counts, tier));
        let kept = self.is_kept && outcome.reply.as_ref().is_some_and(|reply| std::str::from_utf8(reply).is_ok());
        Spent {
            end: MeteredEnd::Answered { counted_here: outcome.counted_here },
            // only what is kept may be served again
            outcome: if kept { CallOutcome::Accepted } else { CallOutcome::Rejected },
            tokens,
            cost,
        }
    }

    /// What the run's cap counts of an attempt.
    fn booked(&self, spent: &Spent) -> PicoUsd {
        let tokens = spent.tokens.prompt.saturating_add(spent.tokens.completion);
        match (self.counts(), &spent.end) {
            (Some(unit), MeteredEnd::Answered { .. } | MeteredEnd::Cut) => PicoUsd(unit.of_attempt(tokens)),
            (Some(_), _) => PicoUsd::ZERO,
            (None, _) => spent.cost,
        }
    }

    fn record(&mut self, outcome: &Outcome, spent: &Spent) -> CallRecord {
        let booked = self.booked(spent);
        let attempt_id = match self.reservation.take() {
            // what costs nothing gives its reservation to another attempt, which has its id then
            Some(reservation) if booked == PicoUsd::ZERO && spent.outcome != CallOutcome::Uncertain => {
                reservation.free();
                Uuid::now_v7()
            }
            Some(reservation) => {
                let id = reservation.id();
                reservation.settle(booked);
                id
            }
            None => Uuid::now_v7(),
        };
        let reply = outcome.reply.as_ref().filter(|_| spent.outcome == CallOutcome::Accepted);
        let model = if outcome.model.is_empty() { &self.model } else { &outcome.model };
        CallRecord {
            attempt_id,
            key: self.call_key,
            phase: self.phase(),
            outcome: spent.outcome,
            reply: reply.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default(),
            finish: spent.end.to_text(),
            model: model.clone(),
            prompt_tokens: spent.tokens.prompt,
            completion_tokens: spent.tokens.completion,
            cost: spent.cost,
            duration_us: u64::try_from(outcome.latency.as_micros()).unwrap_or(u64::MAX),
        }
    }

    fn phase(&self) -> Phase {
        self.key.stage.phase()
    }

    /// Tells the allowance what the call has shown.
    fn teach(&mut self, outcome: &Outcome) {
        if let Some(taken) = self.taken.take() {
            taken.settle(outcome);
        }
        // the provider was not asked
        if outcome.failed_on_purpose() {
            return;
        }
        if matches!(outcome.status, 429 | 503)
            && let Some(wait) = outcome.retry_after
        {
            self.gate.block.hold(wait);
        }
        teach_outages(&self.run.outages, (&self.target, self.call_key), outcome);
        let Some(place) = self.place.take() else { return };
        let seen = match (&outcome.ended, outcome.status) {
            (Ended::Complete, _) => {
                Seen::Accepted { latency_us: u64::try_from(outcome.latency.as_micros()).unwrap_or(u64::MAX) }
            }
            (_, 429) => Seen::RateLimited(bench_models::PaceHint::default()),
            (_, 503 | 529) => Seen::Overloaded,
            _ => Seen::Failed,
        };
        // the task that holds the place may have ended with the process
        let _ = place.send(seen);
    }
}

#[async_trait]
impl Admitted for MeteredCall {
    fn stored(&mut self) -> Option<StoredReply> {
        self.stored.take()
    }

    fn faults(&self) -> Faults {
        self.run.faults.clone()
    }

    fn upstream(&self) -> Upstream {
        self.upstream.clone()
    }

    fn sent(&mut self) {
        if let Some(reservation) = &mut self.reservation {
            reservation.sent();
        }
        if let Some(taken) = &mut self.taken {
            taken.sent();
        }
    }

    async fn settle(mut self: Box<Self>, outcome: Outcome) {
        self.teach(&outcome);
        let spent = self.spent(&outcome);
        let record = self.record(&outcome, &spent);
        let (run, task) = (Arc::clone(&self.run), self.key.task());
        if let Err(failure) = run.ledger.put(task, vec![record]).await {
            warn!(code = failure.code.as_str(), "a call of the memory system could not be booked: {}", failure.message);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use bench_meter::FaultKind;
    use bench_models::pace::Lane;

    use super::*;

    fn outcome(ended: Ended, fault: Option<FaultKind>, usage: Option<Tokens>) -> Outcome {
        Outcome {
            status: if let Ended::Refused(status) = ended { status } else { 200 },
            usage,
            counted_here: false,
            implausible: false,
            latency: Duration::from_millis(5),
            to_first_byte: None,
            ended,
            retry_after: None,
            model: String::new(),
            service_tier: None,
            reply: None,
            error: None,
            fault,
            client_left: false,
        }
    }

    #[test]
    fn p39_a_request_that_is_slow_on_purpose_meets_the_provider_as_it_is() {
        let target = Target { account: "openai".to_owned(), model: "m".to_owned(), embeds: false };
        let away = |fault| {
            let outages = Outages::default();
            for _ in 0..3 {
                let request = Sha256Hash::of(b"x");
                teach_outages(&outages, (&target, request), &outcome(Ended::Refused(503), Some(fault), None));
            }
            outages.away().is_some()
        };
        assert!(away(FaultKind::Slow) && !away(FaultKind::Status(503)));
        let end = |status, fault| free_end(&outcome(Ended::Refused(status), fault, None));
        assert_eq!(end(500, Some(FaultKind::Status(500))), Some(MeteredEnd::FailedOnPurpose(500)));
        assert_eq!(end(500, Some(FaultKind::Slow)), end(500, None), "the provider itself has failed");
        assert_eq!(end(400, Some(FaultKind::Slow)), Some(MeteredEnd::Refused(400)));
    }

    /// Notes what is given back.
    #[derive(Default)]
    struct Noted(Mutex<u64>);

    #[async_trait]
    impl Pace for Noted {
        async fn acquire(&self, _: Lane, _: u64, _: Duration) -> Paced {
            Paced::Go { waited: Duration::ZERO }
        }

        fn counts_tokens(&self) -> bool {
            true
        }

        fn settled(&self, unused_tokens: u64) {
            *self.0.lock().expect("whole") += unused_tokens;
        }
    }

    #[test]
    fn p24_tokens_of_the_pace_that_a_call_has_not_used_go_to_others() {
        let used = Some(Tokens { prompt: 20, completion: 10, ..Tokens::default() });
        let back = |returns_reply, outcome: Option<Outcome>| {
            let noted = Arc::new(Noted::default());
            let pace: Arc<dyn Pace> = Arc::clone(&noted) as Arc<dyn Pace>;
            let mut taken = Taken::new(&pace, (25, LONGEST_REPLY), returns_reply);
            if let Some(outcome) = outcome {
                taken.sent();
                taken.settle(&outcome);
            } else {
                drop(taken);
            }
            *noted.0.lock().expect("whole")
        };
        let all = 25 + LONGEST_REPLY;
        assert_eq!(back(true, Some(outcome(Ended::Complete, None, used))), all - 30);
        assert_eq!(
            back(false, Some(outcome(Ended::Complete, None, used))),
            5,
            "the provider counts what was asked for"
        );
        assert_eq!(back(true, Some(outcome(Ended::CutByClient, None, used))), 0, "nobody knows");
        let not_reached = Ended::NotReached("refused".to_owned());
        assert_eq!(
            (back(false, Some(outcome(not_reached, None, None))), back(false, None)),
            (all, all),
            "nothing left"
        );
    }

    #[test]
    fn p34_azures_paths_lead_to_its_account_where_there_is_one() {
        const OF_AZURE: &[&str] = &[AZURE, "openai"];
        const OF_OPENAI: &[&str] = &["openai", AZURE];
        let (azure, openai) = (OF_AZURE, OF_OPENAI);
        let named: BTreeMap<String, String> = [(AZURE.to_owned(), "west".to_owned())].into();
        let none = BTreeMap::new();
        let both = |_: &str| true;
        assert_eq!(account_of(azure, &none, both), Some((AZURE, AZURE)));
        assert_eq!(account_of(openai, &none, both), Some(("openai", "openai")));
        assert_eq!(account_of(azure, &named, both), Some((AZURE, "west")));
        assert_eq!(account_of(azure, &none, |name| name == "openai"), Some(("openai", "openai")));
        assert_eq!(account_of(openai, &none, |name| name == AZURE), Some((AZURE, AZURE)));
        assert_eq!(account_of(openai, &none, |_| false), None);
    }

    #[test]
    fn models_are_allowed_by_name_or_by_what_they_begin_with() {
        assert!(matches("gpt-4o-mini", "gpt-4o-mini") && !matches("gpt-4o", "gpt-4o-mini"));
        assert!(matches("gpt-4o*", "gpt-4o-mini") && matches("*", "anything") && !matches("text-*", "gpt-4o"));
    }

    #[test]
    fn p34_the_cause_of_a_stop_is_told_apart_from_money_that_is_spent() {
        let budget = StopCause::Terminal(Failure::terminal(BUDGET, "budget: nothing is left"));
        assert!(matches!(stopped(&budget), Refusal::OverBudget(why) if why.contains("nothing is left")));
        assert!(matches!(stopped(&StopCause::Asked("pause".to_owned())), Refusal::Stopped(why) if why == "pause"));
    }
}
