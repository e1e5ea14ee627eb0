//! What stands before the calls that a memory system makes in one run: the same stop flag, allowance and money as for the runner's own
//! calls (P34).

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use bench_meter::{Admitted, Asked, Faults, Operation, Refusal, StoredReply, Upstream};
use bench_models::{
    budget::{Budget as _, Refusal as NoMoney, Reservation, reservations::Reservations},
    call_store::CallStore,
    classify,
    gate::{Entry, Gate},
    limiter::Seen,
    look::key_headers,
    pace::{Lane, Pace, Paced},
    prices,
    registry::{Account, SERVICE_TIER, TIERS_THAT_PASS, has_price_of},
    stop::{StopCause, StopFlag},
};
use bench_proto::{
    call::CacheScope,
    failure::Failure,
    ids::{RunNo, Sha256Hash},
    metered::{MeterPlan, MeteredKey, Service, Stage},
    outage::MeterTold,
    price::ModelPrice,
    spec::{Limits, RunSpec},
};
use bench_store::{Allowance, CallKind, PaceLimits, Paces, RunState, Store};
use tokio::sync::oneshot;

use super::{
    call::{MeteredCall, Taken, Terms},
    excuse::{Excuse, Waits},
    in_flight::InFlight,
    leased::{Leased, Looking},
    measures::ModelLabels,
    others::{Heard, LONGEST_AWAY, Others},
    outages::{Away, Outages, PROVIDER_AWAY, Refused, Target},
    refused::RefusedCalls,
    told::{Said, shown},
};
use crate::{cost_ledger::CostLedger, ending::BUDGET, environment::WorkerEnvironment};

/// How long a request is held until its turn: SDKs wait a minute and more for a reply, and most repeat what is refused.
const HOLD: Duration = Duration::from_secs(20);
/// Tokens that are reserved for each reply where the request sets no limit.
pub(super) const LONGEST_REPLY: u64 = 16_384;
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
    /// The provider and the account of the run's answerer: that of what is asked in the same way and has no account of its own.
    pub(crate) answerer: (String, String),
    pub(crate) stop: StopFlag,
    pub(crate) budget: Arc<Reservations>,
    pub(crate) ledger: CostLedger,
    pub(crate) stored: Option<Arc<dyn CallStore>>,
    pub(crate) paces: Arc<dyn Paces>,
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) outages: Outages,
    /// What requests were told to wait for.
    pub(crate) waits: Waits,
    /// Models of no known price that have answered in the place of others.
    pub(crate) unpriced: Said,
    /// What was refused here that does not pass by itself.
    pub(crate) refused: RefusedCalls,
    /// Models that metrics name.
    pub(crate) measured: ModelLabels,
    /// No other process works for this run.
    pub(crate) is_alone: bool,
    /// Those that may.
    pub(crate) beside: Beside,
    pub(crate) faults: Faults,
    pub(crate) upstreams: Upstreams,
    pub(crate) environment: Arc<WorkerEnvironment>,
}

/// The processes that work for a run beside this one; by default there are none.
#[derive(Default)]
pub(crate) struct Beside {
    others: Option<Others>,
    /// What they are doing, where this process does none of it.
    leased: Option<Arc<Leased>>,
}

impl Beside {
    /// There may be some; `is_apart`: this process takes no task, and all are done by them.
    pub(crate) fn of_run(store: &Arc<dyn Store>, run: RunNo, spec: &RunSpec, is_apart: bool) -> Self {
        let leased = is_apart.then(|| Arc::new(Leased::new(Arc::clone(store), run, spec)));
        Self { others: Some(Others::new(Arc::clone(store), run)), leased }
    }
}

/// Where the requests of accounts go, by provider and account: what is secret of one is looked for once.
#[derive(Default)]
pub(crate) struct Upstreams(Mutex<HashMap<(String, String), Upstream>>);

impl Upstreams {
    fn of_account(&self, provider: &str, account: &Account) -> Result<Upstream, Refusal> {
        let key = (provider.to_owned(), account.name.clone());
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(&key) {
            return Ok(known.clone());
        }
        let made = upstream(provider, account)?;
        known.insert(key, made.clone());
        Ok(made)
    }
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
        let named = asked.address.bank.as_deref().zip(asked.address.generation);
        // before it waits: the operation that it is for may be given up meanwhile
        let here = self.in_flight.attribute(named);
        // a bank that is named and not known here is no other one
        let leased = self.beside.leased.as_ref().filter(|_| named.is_none() || here.0.is_some());
        let (bank, stage) = leased.map_or(here, |leased| leased.guess(here.0));
        let looking = leased.map(|leased| leased.begin(here.0));
        let key = MeteredKey { bank, stage, service: service_of(asked.operation) };
        let admitted = self.let_through(asked, key, looking).await;
        let Some(refused) = admitted.as_ref().err().cloned() else { return admitted };
        match (refused, &self.beside.others) {
            // a guess is not enough to say that another bank has nothing to do with it
            (Refusal::Busy { retry_after, reason }, _) => self.waits.tell(here.0, retry_after, &reason),
            (Refusal::OverBudget(reason), Some(others)) => others.pause(&asked.address.run, &reason).await,
            _ => {}
        }
        admitted
    }

    /// Refuses the name of a bank that is none of the run's, where all are known: the memory system has the names of those that it works
    /// on from this process, or from one before it.
    fn check_bank(&self, named: Option<&str>) -> Result<(), Refusal> {
        let is_known = |bank: &str| !self.is_alone || self.in_flight.has(bank);
        match named.filter(|bank| !is_known(bank)) {
            Some(bank) => Err(Refusal::UnknownBank(bank.to_owned())),
            None => Ok(()),
        }
    }

    /// Whether others do all that the run's calls are for: this process takes no task.
    pub(super) const fn is_apart(&self) -> bool {
        self.beside.leased.is_some()
    }

    /// What requests were told that other processes have to know of.
    pub(super) fn told(&self) -> Vec<MeterTold> {
        let away = self.away().map(|away| MeterTold {
            run: self.run,
            bank: None,
            left_ms: i64::try_from(LONGEST_AWAY.as_millis()).unwrap_or(i64::MAX),
            reason: away.reason,
            is_away: true,
        });
        away.into_iter().chain(self.waits.told(self.run, Instant::now())).collect()
    }

    /// Learns whether the run still runs, and what the meters of other processes have told its calls: for whoever judges what the memory
    /// system has just failed.
    pub(crate) async fn hear(&self) {
        let Some(others) = &self.beside.others else { return };
        let take = |heard: Heard| {
            if heard.state != RunState::Running {
                self.stop.stop(heard.state.name());
            }
            let now = Instant::now();
            for told in heard.told {
                if told.is_away { others.note_away(told, now) } else { self.waits.hear(&told, now) }
            }
        };
        others.hear(take).await;
    }

    async fn let_through(
        self: &Arc<Self>,
        asked: &Asked,
        key: MeteredKey,
        looking: Option<Looking>,
    ) -> Result<Box<dyn Admitted>, Refusal> {
        let by = Instant::now() + HOLD;
        self.check_running()?;
        self.check_bank(asked.address.bank.as_deref())?;
        self.check_allowed(asked)?;
        let way = self.way(asked)?;
        asked.check_parameters(&way.account.parameters, &way.account.name)?;
        let price = self.price(asked, &way)?;
        let mut call = MeteredCall {
            run: Arc::clone(self),
            key,
            looking,
            call_key: self.call_key(asked, way.account),
            model: asked.model.clone(),
            provider: way.provider.to_owned(),
            upstream: self.upstreams.of_account(way.provider, way.account)?,
            prompt_tokens: asked.prompt_tokens.clone(),
            terms: Terms {
                price,
                max_reply: longest_reply(asked),
                tier: asked.service_tier.clone(),
                is_azure: way.provider == AZURE || classify::is_azure(&way.account.base_url),
            },
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
                is_azure: way.provider == AZURE,
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

    /// Whether the run may use the model that is asked for: looked at before anything that would lead to it.
    fn check_allowed(&self, asked: &Asked) -> Result<(), Refusal> {
        let allowed = &self.plan.allow;
        let is_allowed = allowed.is_empty() || allowed.iter().any(|pattern| MeterPlan::is_of(pattern, &asked.model));
        if is_allowed || !asked.operation.costs() {
            return Ok(());
        }
        Err(Refusal::ModelNotAllowed { model: asked.model.clone(), allowed: allowed.clone() })
    }

    /// The account that an operation's requests go to: the one that the run names, that of the provider's name, or the answerer's, where
    /// it is asked in the same way (OpenAI's or Anthropic's).
    fn way(&self, asked: &Asked) -> Result<Way<'_>, Refusal> {
        let wire = if is_anthropic(asked.operation) { "anthropic" } else { "openai" };
        let accounts = &self.environment.accounts;
        let (provider, own) = &self.answerer;
        let of_answerer = || (!own.is_empty() && wire_of(provider) == wire).then_some((wire, own.as_str()));
        let found = account_of(providers_of(asked), &self.plan.accounts, |name| accounts.contains_key(name));
        let found = found.or_else(of_answerer);
        let account = found.and_then(|(_, name)| accounts.get(name)).ok_or_else(|| {
            let name = found.map_or(wire, |(_, name)| name);
            // it does not pass by itself
            Refusal::UnknownModel(no_account(name, wire))
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

    /// The price of the model that is asked for, if it needs none or has one.
    fn price(&self, asked: &Asked, way: &Way<'_>) -> Result<Option<ModelPrice>, Refusal> {
        if !asked.operation.costs() {
            return Ok(None);
        }
        let price = prices::price_at(way.provider, &asked.model, &self.limits);
        let is_free = !bench_models::registry::is_paid(way.provider);
        // a model of no price would be outside of every cap
        if price.is_none() && !is_free && !self.limits.unpriced_ok && self.is_capped() {
            return Err(Refusal::UnknownModel(format!(
                "{} has no price, and the run has a cap: submit the run with --price MODEL=IN,OUT (dollars per million tokens), or allow it with --unpriced-ok",
                shown(&asked.model)
            )));
        }
        check_tier(asked.service_tier.as_deref(), price.as_ref(), &way.account.parameters, &way.account.name)?;
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
        Sha256Hash::of_bytes(parts.join("\n").as_bytes())
    }

    /// A reply to an equal request, where the run shares calls (`--cache shared`).
    async fn stored_reply(&self, asked: &Asked, call: &MeteredCall) -> Result<Option<StoredReply>, Refusal> {
        let is_open = asked.cacheable && may_be_stored(self.limits.cache, call.key.stage);
        let Some(stored) = self.stored.as_ref().filter(|_| is_open) else { return Ok(None) };
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

    /// Why a failure of the system with a bank may not be its own fault: its provider is away (P39), or its calls have to wait (P11).
    pub(crate) fn excuse(&self, bank: Option<u32>, failure: &Failure) -> Option<Excuse> {
        // looked at first: a provider that is away for too long stops the run, whatever else excuses the failure
        let away = self.away();
        self.waits.excuse(bank, failure, Instant::now()).or_else(|| away.map(Excuse::Away))
    }

    /// The provider that is away, to which what the system has just failed may be due. One that is away for longer than the run waits
    /// for outages stops the run, which can be resumed.
    pub(crate) fn away(&self) -> Option<Away> {
        let Some(away) = self.outages.away() else { return self.beside.others.as_ref()?.away() };
        let longest = self.limits.outage_timeout_s.map_or(LONGEST_OUTAGE, Duration::from_secs);
        if stops(&away, self.is_alone, longest) {
            let message = match away.refused {
                // the provider's words say what to do
                Some(_) => format!("the memory system cannot go on: {}", away.reason),
                None => format!("{}; this is what the memory system calls: mend it, then resume the run", away.reason),
            };
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
        let counted = match way.pace.counts_tokens() {
            true => Some((self.counted(call, by).await?, call.terms.max_reply)),
            false => None,
        };
        let tokens = counted.map_or(0, |(prompt, reply)| prompt.saturating_add(reply));
        let lane = (self.run, call.key.stage.phase());
        match self.stop.unless_stopped(paced(way.pace.as_ref(), lane, tokens, by)).await {
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

    /// Tokens of a request's prompt; large ones wait for each other.
    async fn counted(&self, call: &MeteredCall, by: Instant) -> Result<u64, Refusal> {
        match self.stop.unless_stopped(tokio::time::timeout(left(by), call.prompt_tokens.counted())).await {
            Ok(Ok(tokens)) => Ok(tokens),
            Ok(Err(_)) => {
                let reason = "other large requests are counted first".to_owned();
                Err(Refusal::Busy { retry_after: COME_AGAIN, reason })
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
        let generous = tokio::time::timeout(left(by), self.budget.reserve_generously(phase, bound));
        match self.stop.unless_stopped(generous).await {
            Ok(Ok(Some(reservation))) => return Ok(Some(reservation)),
            Ok(Ok(None) | Err(_)) => {}
            Err(cause) => return Err(stopped(&cause)),
        }
        let worst = call.to_reserve(self.counted(call, by).await?).unwrap_or(bound);
        let exact = self.budget.reserve(phase, worst);
        match self.stop.unless_stopped(tokio::time::timeout(left(by), exact)).await {
            Err(cause) => Err(stopped(&cause)),
            Ok(Err(_)) => {
                let reason = "the rest of the money is reserved for calls in flight".to_owned();
                Err(Refusal::Busy { retry_after: COME_AGAIN, reason })
            }
            Ok(Ok(Ok(reservation))) => Ok(Some(reservation)),
            // the run stops, or the store gives nothing
            Ok(Ok(Err(NoMoney::Stopped(why)))) => {
                Err(self.stop.cause().map_or(Refusal::Unavailable(why), |cause| stopped(&cause)))
            }
            Ok(Ok(Err(NoMoney::OverCap(over)))) => {
                let reason = format!("{BUDGET}: {}", over.of_run(&asked.address.run));
                // what the system does meanwhile is given back and not failed: the run waits for its owner
                self.stop.set(StopCause::Terminal(Failure::terminal(BUDGET, reason.clone())));
                Err(Refusal::OverBudget(reason))
            }
        }
    }
}

/// Whether a stored reply may answer a call: none that the latency probe makes, which measures how long the system takes (P43).
const fn may_be_stored(cache: CacheScope, stage: Stage) -> bool {
    matches!(cache, CacheScope::Shared) && !matches!(stage, Stage::Check)
}

fn left(by: Instant) -> Duration {
    by.saturating_duration_since(Instant::now())
}

/// A slot of a pace, if there is one in time: who no longer waits takes none.
async fn paced(pace: &dyn Pace, lane: Lane, tokens: u64, by: Instant) -> Paced {
    let acquired = tokio::time::timeout(left(by), pace.acquire(lane, tokens, left(by))).await;
    acquired.unwrap_or(Paced::Later { wait: COME_AGAIN })
}

/// Whether what is away stops the run. A key that has been refused from the start does at once, a model when it was more than tried, and
/// else what stays away for too long. Where others work beside this process, only a provider that has answered here before does: else it
/// is this process that lacks the way, the key or the deployment, and others may have it (P40); the name of a model is the same for all.
fn stops(away: &Away, is_alone: bool, longest: Duration) -> bool {
    let is_hopeless = match away.refused {
        Some(Refused::Key) => is_alone && !away.has_answered,
        Some(Refused::Model) => away.is_settled && !away.has_answered,
        Some(Refused::Deployment) => is_alone && away.is_settled && !away.has_answered,
        None => false,
    };
    is_hopeless || (away.since > longest && (is_alone || away.has_answered))
}

fn stopped(cause: &StopCause) -> Refusal {
    match cause {
        StopCause::Asked(why) => Refusal::Stopped(why.clone()),
        // the run goes on: another meter takes the request, or this one later
        StopCause::Here(why) => Refusal::Unavailable(format!("{why}, and the run goes on: ask again")),
        StopCause::Terminal(failure) if failure.code == BUDGET => Refusal::OverBudget(failure.message.clone()),
        StopCause::Terminal(failure) => Refusal::Stopped(failure.message.clone()),
    }
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

/// What to do where a provider has no account.
fn no_account(name: &str, wire: &str) -> String {
    format!(
        "the meter has no account '{name}': give it a key and a base URL where the meter runs (accounts.{name} in the settings), or submit the run with --meter-account {wire}=NAME, which names another account"
    )
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

/// Refuses a service tier that the price does not have: it would be booked at the standard one, and may cost many times that.
fn check_tier(
    tier: Option<&str>,
    price: Option<&ModelPrice>,
    let_through: &[String],
    account: &str,
) -> Result<(), Refusal> {
    if has_price_of(price, tier, let_through) {
        return Ok(());
    }
    let (name, account) = (SERVICE_TIER.to_owned(), account.to_owned());
    Err(Refusal::UnknownParameter { name, instead: TIERS_THAT_PASS, account })
}

/// Most tokens of what comes back: of each choice of each prompt, whether or not the request sets a limit.
fn longest_reply(asked: &Asked) -> u64 {
    longest(asked.operation, asked.max_reply_tokens, (asked.choices, asked.thinking_tokens))
}

fn longest(operation: Operation, limit_of_all: Option<u64>, (choices, thinking): (u64, u64)) -> u64 {
    match operation {
        Operation::Embeddings | Operation::Models | Operation::CountTokens => 0,
        _ => limit_of_all.unwrap_or_else(|| LONGEST_REPLY.saturating_mul(choices).saturating_add(thinking)),
    }
}

fn upstream(provider: &str, account: &Account) -> Result<Upstream, Refusal> {
    let wrong = |failure: Failure| Refusal::UnknownModel(format!("account {}: {}", account.name, failure.message));
    let headers = key_headers(provider, account.key.as_ref()).map_err(wrong)?;
    let mut upstream = Upstream::new(account.base_url.clone(), headers);
    upstream.paths = match provider {
        "anthropic" => bench_meter::Paths::Anthropic,
        "azure" => bench_meter::Paths::Azure,
        _ => bench_meter::Paths::OpenAi,
    };
    upstream.asks_usage = account.asks_stream_usage;
    upstream.parameters.clone_from(&account.parameters);
    Ok(upstream)
}

#[cfg(test)]
mod tests {
    use bench_proto::money::PicoUsd;

    use super::*;

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
    fn p34_a_provider_without_an_account_does_not_come_by_waiting_and_is_told_what_to_do() {
        let why = no_account("anthropic", "anthropic");
        assert!(why.contains("accounts.anthropic") && why.contains("--meter-account anthropic=NAME"), "{why}");
    }

    #[test]
    fn p10_replies_without_a_limit_are_reserved_at_the_longest_for_each_choice() {
        assert_eq!(longest(Operation::Chat, None, (1, 0)), LONGEST_REPLY);
        assert_eq!(longest(Operation::Chat, None, (120, 0)), 120 * LONGEST_REPLY);
        assert_eq!(
            longest(Operation::Chat, None, (2, 32_768)),
            2 * LONGEST_REPLY + 32_768,
            "what is thought is beside it"
        );
        assert_eq!(longest(Operation::Completions, None, (u64::MAX, u64::MAX)), u64::MAX);
        assert_eq!(longest(Operation::Completions, Some(700), (100, 5)), 700, "the limit is of all of them already");
        assert_eq!(longest(Operation::Embeddings, None, (120, 0)), 0);
    }

    #[test]
    fn p34_a_service_tier_without_a_known_price_is_refused_unless_the_operator_of_the_account_knows_it() {
        let flat = ModelPrice::flat(PicoUsd(1), PicoUsd(2));
        let services = BTreeMap::from([("priority".to_owned(), flat.standard)]);
        let price = ModelPrice { services, ..flat.clone() };
        for (tier, price, is_known) in [
            (None, Some(&flat), true),
            (Some("auto"), Some(&flat), true),
            (Some("flex"), Some(&flat), true),
            (Some("priority"), Some(&price), true),
            (Some("fast"), Some(&price), true),
            (Some("priority"), Some(&flat), false),
            (Some("ultrafast"), Some(&price), false),
            // without a price and a cap nothing of it is known, nor asked
            (Some("ultrafast"), None, true),
        ] {
            assert_eq!(check_tier(tier, price, &[], "mine").is_ok(), is_known, "{tier:?}");
            assert_eq!(check_tier(tier, price, &[SERVICE_TIER.to_owned()], "mine"), Ok(()), "{tier:?}");
        }
        let refused = check_tier(Some("ultrafast"), Some(&price), &[], "mine").expect_err("has no price");
        assert!(
            matches!(&refused, Refusal::UnknownParameter { name, account, .. } if name == SERVICE_TIER && account == "mine")
        );
    }

    #[test]
    fn p34_a_server_that_refuses_stream_options_is_spared_them() {
        for asks in [true, false] {
            let account = Account {
                name: "mine".to_owned(),
                base_url: "http://127.0.0.1:9/v1".to_owned(),
                key: None,
                limits: PaceLimits::default(),
                counts_used_tokens: false,
                asks_stream_usage: asks,
                parameters: vec!["chat_template".to_owned()],
            };
            let upstream = upstream("openai", &account).expect("has a way");
            assert_eq!((upstream.asks_usage, &upstream.parameters), (asks, &account.parameters));
            let upstreams = Upstreams::default();
            let made = upstreams.of_account("openai", &account).expect("has a way");
            let other = Account { asks_stream_usage: !asks, ..account };
            let again = upstreams.of_account("openai", &other).expect("has a way");
            assert_eq!((made.asks_usage, again.asks_usage), (asks, asks), "it is made once for an account");
        }
    }

    #[test]
    fn p43_the_latency_probe_is_answered_by_the_provider() {
        assert!(may_be_stored(CacheScope::Shared, Stage::Recall) && may_be_stored(CacheScope::Shared, Stage::Retain));
        assert!(!may_be_stored(CacheScope::Shared, Stage::Check));
        assert!(!may_be_stored(CacheScope::Refresh, Stage::Recall), "it pays anew");
    }

    #[test]
    fn p34_the_cause_of_a_stop_is_told_apart_from_money_that_is_spent() {
        let budget = StopCause::Terminal(Failure::terminal(BUDGET, "budget: nothing is left"));
        assert!(matches!(stopped(&budget), Refusal::OverBudget(why) if why.contains("nothing is left")));
        assert!(matches!(stopped(&StopCause::Asked("pause".to_owned())), Refusal::Stopped(why) if why == "pause"));
    }

    #[test]
    fn p34_a_meter_that_stops_or_lacks_its_store_is_told_apart_from_a_run_that_is_stopped() {
        for why in [bench_models::stop::OUT_OF_REACH, "the session was ended", "the worker is stopping"] {
            let refusal = stopped(&StopCause::Here(why.to_owned()));
            assert!(matches!(&refusal, Refusal::Unavailable(said) if said.contains(why)), "{refusal:?}");
        }
    }

    #[test]
    fn p40_what_was_refused_from_the_start_stops_the_run_at_once_and_what_is_away_after_a_while() {
        let minute = Duration::from_secs(60);
        let away = |refused, has_answered, seconds| Away {
            since: Duration::from_secs(seconds),
            reason: String::new(),
            has_answered,
            is_settled: true,
            refused,
        };
        let stops = |away: Away, is_alone| stops(&away, is_alone, minute);
        let (key, model) = (Some(Refused::Key), Some(Refused::Model));
        assert!(stops(away(key, false, 0), true) && !stops(away(key, false, 90), false), "another may have a good one");
        assert!(stops(away(model, false, 0), true) && stops(away(model, false, 0), false));
        let tried = |refused| Away { is_settled: false, ..away(refused, false, 0) };
        let deployment = Some(Refused::Deployment);
        assert!(!stops(tried(model), true) && !stops(tried(model), false) && !stops(tried(deployment), true));
        assert!(stops(away(deployment, false, 0), true) && !stops(away(deployment, false, 90), false));
        for refused in [key, model, deployment, None] {
            assert!(!stops(away(refused, true, 59), true) && stops(away(refused, true, 61), false), "{refused:?}");
        }
        assert!(!stops(away(None, false, 59), true) && stops(away(None, false, 61), true));
        assert!(!stops(away(None, false, 90), false), "this process may lack the way");
    }

    /// A pace whose slot never comes.
    struct Never;

    #[async_trait::async_trait]
    impl Pace for Never {
        async fn acquire(&self, _: Lane, _: u64, _: Duration) -> Paced {
            std::future::pending().await
        }

        fn counts_tokens(&self) -> bool {
            false
        }
    }

    #[tokio::test]
    async fn p34_a_request_is_held_for_no_longer_than_it_may_be() {
        let lane = (RunNo(1), bench_proto::call::Phase::Retain);
        let begun = Instant::now();
        let waited = paced(&Never, lane, 0, begun + Duration::from_millis(50)).await;
        assert_eq!(waited, Paced::Later { wait: COME_AGAIN });
        assert!(begun.elapsed() < HOLD, "{:?}", begun.elapsed());
    }
}
