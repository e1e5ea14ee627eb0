//! What the model calls of one run share in a process, and how a call that brought nothing ends its task.
//!
//! In come the parts of a process that calls need (store, pace, routes, prices) and the run's spec; out comes a caller for each
//! model of the run (`RunCaller`). Start reading at `RunCallers::open`, then at `RunCaller::call`, which every answer, judgement
//! and embedding goes through; `RunCaller::end` turns a call without a reply into the end of its task.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bench_grading::prompts::Messages;
use bench_meter::Faults;
use bench_models::{
    ChatMessage, ChatModel, ChatReply, ChatRequest, MessageRole, ReplySchema,
    budget::{Budget, reservations::Reservations},
    call_store::{CallStore, StoredCalls, StoredEmbeddings},
    caller::{
        Accept, Bookkeeper as _, CallContext, CallResult, CallSettings, CallStop, Caller, CallerParts, Named,
        PROBE_PATIENCE,
    },
    capabilities,
    openai::embeddings::request as embedding_request,
    prices,
    registry::{Account, build_embeddings, build_model, embedding_account},
    routes::{Probed, Prober, Routes},
    stop::{StopCause, StopFlag},
};
use bench_proto::{
    CLUSTER_DOMAIN,
    call::{CacheScope, CallRecord, Phase, Usage},
    failure::{
        Failure,
        code::{CANNOT_SERVE, MODEL_NOT_FOUND},
    },
    ids::{RunId, RunNo, Sha256Hash, TaskKey},
    metered::FAULT_SETTING,
    outage::{RouteKey, RouteKind},
    served::ServedNote,
    server::ServerAddress,
    spec::ModelSpec,
    step::{Served, StepNo, Timing},
    trace::{RunTrace, StepTrace, conventional_provider},
};
use bench_store::{Allowance, CallKind, Calls, ClaimedTask, Money, PaceLimits, Paces, RunRow, Runs, SessionId, Store};
use bench_systems::embed::EmbeddingModel;
use serde_json::Value;
use tracing::{debug, warn};

use crate::{
    clock::StepClock,
    cost_ledger::CostLedger,
    ending::{BUDGET, GivenUp, TaskEnd},
    environment::WorkerEnvironment,
    metering::{Beside, MeteredRun, ModelLabels, Outages, RefusedCalls, Said, Upstreams, Waits},
    served::ServedNotes,
    tools::Tools,
};

/// What the callers of one run share.
pub(crate) struct RunCallers<'a> {
    environment: &'a WorkerEnvironment,
    row: &'a RunRow,
    stop: StopFlag,
    budget: Arc<Reservations>,
    store: Arc<dyn Store>,
    stored: Option<Arc<dyn CallStore>>,
    ledger: CostLedger,
    routes: &'a Arc<Routes>,
    served: Arc<ServedNotes>,
}

/// What the callers of a run are made of.
pub(crate) struct CallersParts<'a> {
    pub(crate) environment: &'a WorkerEnvironment,
    pub(crate) tools: &'a Tools,
    pub(crate) row: &'a RunRow,
    /// The session under which the run's money is reserved.
    pub(crate) session: SessionId,
    pub(crate) stop: StopFlag,
    pub(crate) routes: &'a Arc<Routes>,
}

/// A model of the run, as a caller asks it.
struct CalledModel<'a> {
    model: Arc<dyn ChatModel>,
    account: &'a Account,
    kind: CallKind,
    /// As traces and prices name it.
    provider: &'a str,
    phase: Phase,
    /// What its route is probed by.
    probe: ChatRequest,
    /// Calls that were paid before.
    stored: Option<Arc<dyn CallStore>>,
}

impl<'a> RunCallers<'a> {
    /// Opens the run's money, pace and stored calls.
    pub(crate) async fn open(parts: CallersParts<'a>) -> Result<Self, Failure> {
        let CallersParts { environment, tools, row, session, stop, routes } = parts;
        let (store, journal) = (Arc::clone(&tools.store), tools.journal.clone());
        // a run that no earlier run shares its calls with has nothing to look up
        let scope = row.spec.limits.cache;
        let known = match scope {
            CacheScope::Shared => true,
            CacheScope::Lineage => store.call_count(&row.lineage).await? > 0,
            CacheScope::Off | CacheScope::Refresh => false,
        };
        let money = Arc::clone(&store) as Arc<dyn Money>;
        let money = journal.as_ref().map_or_else(|| Arc::clone(&money), |journal| journal.money(Arc::clone(&money)));
        let budget = Arc::new(Reservations::open(money, row, session));
        let stored: Option<Arc<dyn CallStore>> =
            known.then(|| Arc::new(StoredCalls::new(Arc::clone(&store), row.run_no, scope)) as Arc<dyn CallStore>);
        let ledger = CostLedger::open(Arc::clone(&store) as Arc<dyn Calls>, row.run_no, journal);
        let served = Arc::new(ServedNotes::new(Arc::clone(&store) as Arc<dyn Runs>, row.run_no));
        Ok(Self { environment, row, stop, budget, store, stored, ledger, routes, served })
    }

    /// The run's money in this process.
    pub(crate) fn reservations(&self) -> Arc<Reservations> {
        Arc::clone(&self.budget)
    }

    /// A caller of a model of the run.
    pub(crate) fn caller(&self, model: &ModelSpec, phase: Phase) -> Result<RunCaller, Failure> {
        let account = self.account(&model.account)?;
        let chat = self.model_of_run(model, account)?;
        let trace =
            self.environment.spans.as_ref().map(|_| RunTrace::new(&self.row.run_id, &self.row.spec.limits.trace));
        let called = chat_model(model, chat, (account, phase), self.stored.clone());
        Ok(RunCaller { trace, ..self.make_caller(called) })
    }

    /// A caller of the chat model of the run's memory system. What it sends carries the trace of the step that it is sent for.
    pub(crate) fn of_system(
        &self,
        model: &ModelSpec,
        phase: Phase,
        stored: &Arc<dyn CallStore>,
    ) -> Result<RunCaller, Failure> {
        let account = self.account(&model.account)?;
        let chat = self.model_of_run(model, account)?;
        Ok(self.make_caller(chat_model(model, chat, (account, phase), Some(Arc::clone(stored)))))
    }

    fn model_of_run(&self, model: &ModelSpec, account: &Account) -> Result<Arc<dyn ChatModel>, Failure> {
        let price = prices::price_at(&model.provider, &model.name, &self.row.spec.limits);
        build_model(model, account, price.as_ref(), &self.environment.http)
    }

    fn account(&self, name: &str) -> Result<&'a Account, Failure> {
        self.environment.accounts.get(name).ok_or_else(|| {
            Failure::terminal(CANNOT_SERVE, format!("account '{name}' is not configured on this worker"))
        })
    }

    /// A caller of the run's embedding model. What it sends carries the trace of the step that it is sent for.
    pub(crate) fn embedder(
        &self,
        model: &EmbeddingModel,
        phase: Phase,
        stored: &Arc<dyn CallStore>,
    ) -> Result<RunCaller, Failure> {
        let account = embedding_account(&self.environment.accounts, &model.account).ok_or_else(|| {
            let message = format!("account '{}' for embeddings is not configured on this worker", model.account);
            Failure::terminal(CANNOT_SERVE, message)
        })?;
        let model = build_embeddings(&model.name, account, &self.environment.http)?;
        // as traces have it: an account of Azure's is named so
        let provider = if account.name == "azure" { "azure" } else { "openai" };
        Ok(self.make_caller(CalledModel {
            model,
            account,
            kind: CallKind::Embeddings,
            provider,
            phase,
            probe: embedding_request(&["yes".to_owned()]),
            stored: Some(Arc::clone(stored)),
        }))
    }

    /// Embeddings that this run may use.
    pub(crate) fn stored_embeddings(&self) -> Arc<dyn CallStore> {
        Arc::new(StoredEmbeddings::new(
            Arc::clone(&self.store) as Arc<dyn Calls>,
            self.row.run_no,
            self.row.spec.limits.cache,
        ))
    }

    /// Replies of a chat model that this run's banks may rest on.
    pub(crate) fn stored_of_banks(&self) -> Arc<dyn CallStore> {
        Arc::new(StoredCalls::of_banks(Arc::clone(&self.store), self.row.run_no, self.row.spec.limits.cache))
    }

    /// What lets the memory system's own calls through: with the run's money, stop flag and stored calls. `is_apart`: this process takes
    /// no task.
    ///
    /// # Errors
    /// When the faults that are wanted mean nothing to this build.
    pub(crate) fn metered(&self, environment: &Arc<WorkerEnvironment>, is_apart: bool) -> Result<MeteredRun, Failure> {
        let is_alone = self.routes.is_alone();
        let beside = match is_alone {
            true => Beside::default(),
            false => Beside::of_run(&self.store, self.row.run_no, &self.row.spec, is_apart),
        };
        let answerer = &self.row.spec.answerer;
        let faults = self.row.spec.system.settings.get(FAULT_SETTING).and_then(Value::as_str).unwrap_or_default();
        let faults = Faults::parse(faults).map_err(|error| Failure::terminal(CANNOT_SERVE, error.to_string()))?;
        Ok(MeteredRun {
            run: self.row.run_no,
            lineage: self.row.lineage.clone(),
            limits: self.row.spec.limits.clone(),
            outages: Outages::default(),
            waits: Waits::default(),
            unpriced: Said::default(),
            refused: RefusedCalls::new(Arc::clone(&self.store) as Arc<dyn Runs>, self.row.run_no),
            measured: ModelLabels::default(),
            is_alone,
            beside,
            plan: self.row.spec.limits.meter.clone().unwrap_or_default(),
            answerer: (answerer.provider.clone(), answerer.account.clone()),
            stop: self.stop.clone(),
            budget: Arc::clone(&self.budget),
            ledger: self.ledger.clone(),
            stored: self.stored.clone(),
            paces: Arc::clone(&self.store) as Arc<dyn Paces>,
            in_flight: Arc::default(),
            faults,
            upstreams: Upstreams::default(),
            environment: Arc::clone(environment),
        })
    }

    /// Where attempts are booked ahead of their step.
    pub(crate) fn ledger(&self) -> CostLedger {
        self.ledger.clone()
    }

    /// The run's own limits come before those of the account.
    fn pace_limits(&self, account: &Account) -> PaceLimits {
        let limits = &self.row.spec.limits;
        PaceLimits { rpm: limits.max_rpm.or(account.limits.rpm), tpm: limits.max_tpm.or(account.limits.tpm) }
    }

    fn make_caller(&self, called: CalledModel<'_>) -> RunCaller {
        let CalledModel { model, account, kind, provider, phase, probe, stored } = called;
        let gates = &self.environment.gates;
        let allowance = Allowance {
            endpoint: model.endpoint().to_owned(),
            account: account.name.clone(),
            limit_group: prices::limit_group(model.model()).to_owned(),
            kind,
        };
        let limits = &self.row.spec.limits;
        let paces = Arc::clone(&self.store) as Arc<dyn Paces>;
        let server = ServerAddress::named_in(model.endpoint());
        let (named, route_kind) = named(kind, provider, server.as_ref());
        let route = self.routes.route(&RouteKey::Model {
            kind: route_kind,
            account: account.name.clone(),
            model: model.model().to_owned(),
        });
        let gate = gates.gate(&allowance);
        if self.row.resumed_times > 0 {
            // who resumed it wants to know now; what the account still asks for comes with the next answer of the store
            gate.block.release();
        }
        let caller = Arc::new(Caller::new(CallerParts {
            price: prices::price_at(provider, model.model(), limits),
            model,
            account: account.name.clone(),
            named,
            gate,
            pace: Some(gates.pace(&paces, &allowance, self.pace_limits(account))),
            returns_unused_reply: account.counts_used_tokens,
            stop: self.stop.clone(),
            budget: Arc::clone(&self.budget) as Arc<dyn Budget>,
            store: stored,
            ledger: Some(Arc::new(self.ledger.clone())),
            route: Some(Arc::clone(&route)),
            settings: CallSettings {
                retries: limits.retries,
                counts: limits.max_usage.map(|cap| cap.unit),
                ..self.environment.calls
            },
        }));
        let probe = Arc::new(RouteProbe {
            caller: Arc::clone(&caller),
            request: probe,
            run: self.row.run_no,
            phase,
            lineage: self.row.lineage.clone(),
            ledger: self.ledger.clone(),
        });
        let prober: Weak<RouteProbe> = Arc::downgrade(&probe);
        route.can_be_probed_by(prober);
        RunCaller {
            caller,
            _probe: probe,
            phase,
            lineage: self.row.lineage.clone(),
            stop: self.stop.clone(),
            store: Arc::clone(&self.store) as Arc<dyn Money>,
            account: account.name.clone(),
            refused: AtomicBool::new(false),
            trace: None,
            server,
            notes: Arc::clone(&self.served),
            run: self.row.run_id.clone(),
            repeat: self.row.draw(),
            served: self.row.domain == CLUSTER_DOMAIN,
        }
    }
}

/// A chat model with its account, asked in a phase.
fn chat_model<'a>(
    spec: &'a ModelSpec,
    model: Arc<dyn ChatModel>,
    (account, phase): (&'a Account, Phase),
    stored: Option<Arc<dyn CallStore>>,
) -> CalledModel<'a> {
    let (kind, provider, probe) = (CallKind::Chat, spec.provider.as_str(), probe_request(spec));
    CalledModel { model, account, kind, provider, phase, probe, stored }
}

/// What spans and metrics call the calls of a kind to a provider, and what kind of route they take.
fn named(kind: CallKind, provider: &str, server: Option<&ServerAddress>) -> (Named, RouteKind) {
    let (operation, route_kind) = match kind {
        CallKind::Chat => ("chat", RouteKind::Chat),
        CallKind::Embeddings => ("embeddings", RouteKind::Embeddings),
    };
    let named = Named {
        operation,
        provider: conventional_provider(provider).to_owned(),
        server: server.map(|at| (at.name.clone(), at.port.to_string())).unwrap_or_default(),
    };
    (named, route_kind)
}

/// A caller together with what all its calls have in common.
pub(crate) struct RunCaller {
    caller: Arc<Caller>,
    /// Lives as long as its route may be probed for this run.
    _probe: Arc<RouteProbe>,
    phase: Phase,
    lineage: String,
    stop: StopFlag,
    store: Arc<dyn Money>,
    account: String,
    /// The store knows that the account refuses every call.
    refused: AtomicBool,
    trace: Option<RunTrace>,
    server: Option<ServerAddress>,
    notes: Arc<ServedNotes>,
    run: RunId,
    /// Which repeat of its group the run is; 1 for a run alone.
    repeat: u32,
    /// A cluster carries the run out.
    served: bool,
}

/// Probes the route of a caller, at the expense of its run.
struct RouteProbe {
    caller: Arc<Caller>,
    request: ChatRequest,
    run: RunNo,
    phase: Phase,
    lineage: String,
    ledger: CostLedger,
}

/// Output limit of a probe: the smallest that providers take.
const PROBE_TOKENS: u32 = 16;
/// The longest time that a probe takes: its reply's, and that of asking a few runs for its money.
const PROBE_WITHIN: Duration = PROBE_PATIENCE.saturating_add(Duration::from_secs(20));

#[async_trait]
impl Prober for RouteProbe {
    async fn probe(&self) -> Probed {
        let context = CallContext {
            run: self.run,
            task: TaskKey::OVERHEAD,
            question_id: "",
            draw: 0,
            phase: self.phase,
            lineage: &self.lineage,
            known_calls: false,
            failed_attempts: 0,
            trace: None,
        };
        let (probed, records) = self.caller.probe(context, &self.request).await;
        if let Err(failure) = self.ledger.put(TaskKey::OVERHEAD, records).await {
            debug!("a probe could not be booked: {failure}");
        }
        probed
    }

    fn within(&self) -> Duration {
        PROBE_WITHIN
    }
}

/// The smallest request with a model's parameters.
fn probe_request(model: &ModelSpec) -> ChatRequest {
    let messages = Messages { system: String::new(), user: "Reply with the word yes.".to_owned() };
    let mut model = model.clone();
    for name in capabilities::MAX_TOKENS_NAMES {
        if let Some(limit) = model.params.get_mut(name) {
            *limit = PROBE_TOKENS.into();
        }
    }
    chat_request(&model, messages, None, PROBE_TOKENS)
}

/// A request with a model's parameters as sent, and of the two messages those that say anything.
pub(crate) fn chat_request(
    spec: &ModelSpec,
    messages: Messages,
    schema: Option<ReplySchema>,
    max_output_tokens: u32,
) -> ChatRequest {
    let both = [(MessageRole::System, messages.system), (MessageRole::User, messages.user)];
    let said = both.into_iter().filter(|(_, text)| !text.is_empty());
    let messages = said.map(|(role, text)| ChatMessage { role, text }).collect();
    let max_output_tokens =
        capabilities::max_tokens_of(&spec.params).and_then(|n| u32::try_from(n).ok()).unwrap_or(max_output_tokens);
    ChatRequest { messages, params: spec.params.clone(), schema, max_output_tokens }
}

/// The request of a later repeat where it carries a seed: with the seed of the first it would ask for the same draw once more
/// (P38). Without a seed the provider draws anew by itself, and nothing changes.
fn drawn_anew(request: &ChatRequest, question_id: &str, repeat: u32) -> Option<ChatRequest> {
    let seed = request.params.get("seed").filter(|_| repeat > 1)?;
    let hash = Sha256Hash::of_bytes(format!("{seed}\n{question_id}\nrepeat {repeat}").as_bytes());
    let seed = hash.0[..4].iter().fold(0_u32, |seed, byte| (seed << 8) | u32::from(*byte));
    let mut anew = request.clone();
    anew.params.insert("seed".to_owned(), seed.into());
    Some(anew)
}

/// What a call is made for.
#[derive(Clone, Copy)]
pub(crate) struct AskedFor<'a> {
    pub(crate) task: &'a ClaimedTask,
    /// The dataset's id, where the call belongs to a question.
    pub(crate) question_id: &'a str,
    /// Repeat or vote: independent draws never share a reply.
    pub(crate) draw: u32,
    /// The step that the call is a part of; where it is none, the call is a step of its own.
    pub(crate) trace: Option<&'a StepTrace>,
}

/// The step that a call of a phase is, when it is one by itself.
const fn step_of(phase: Phase) -> StepNo {
    match phase {
        Phase::Judge => StepNo::JUDGE,
        Phase::Answer => StepNo::ANSWER,
        Phase::Recall => StepNo::RECALL,
        Phase::Retain => StepNo::retain(0),
    }
}

/// A call that brought a value, as a step needs it.
pub(crate) struct Called<T> {
    pub(crate) value: T,
    pub(crate) reply: ChatReply,
    pub(crate) records: Vec<CallRecord>,
    pub(crate) usage: Usage,
    pub(crate) timing: Timing,
}

impl RunCaller {
    /// The key of a request in the call store.
    pub(crate) fn key(&self, request: &ChatRequest, question_id: &str, draw: u32) -> Sha256Hash {
        self.caller.key(request, question_id, draw)
    }

    /// Whose calls the run shares.
    pub(crate) fn lineage(&self) -> &str {
        &self.lineage
    }

    /// Calls the model for a task; a call that brings nothing is how the task ends.
    pub(crate) async fn call<T: Send>(
        &self,
        asked: AskedFor<'_>,
        request: &ChatRequest,
        accept: Accept<'_, T>,
    ) -> Result<Called<T>, TaskEnd> {
        let clock = StepClock::start();
        let AskedFor { task, question_id, draw, trace } = asked;
        let anew = drawn_anew(request, question_id, self.repeat);
        let request = anew.as_ref().unwrap_or(request);
        let own = self.trace.as_ref().map(|trace| trace.step(question_id, task.task, step_of(self.phase)));
        let context = CallContext {
            run: task.run,
            task: task.task,
            question_id,
            draw,
            phase: self.phase,
            lineage: &self.lineage,
            known_calls: true,
            failed_attempts: 0,
            trace: trace.or(own.as_ref()),
        };
        let called = self.caller.call(context, request, accept).await;
        let CallResult { outcome, records, usage, timing: spent } = called;
        let mut timing = clock.timing(task, 0);
        timing.attempts = 0;
        spent.add_to(&mut timing, 0);
        // what was served by the call store went nowhere
        timing.server = self.server.clone().filter(|_| !timing.calls.is_empty());
        for reply in &timing.replies {
            self.note(self.server.as_ref(), reply.served.clone()).await;
        }
        if let Ok(answered) = &outcome
            && answered.cached
        {
            self.note(None, Served::named(&answered.reply.model, None)).await;
        }
        match outcome {
            Ok(answered) => Ok(Called { value: answered.value, reply: answered.reply, records, usage, timing }),
            Err(stop) => {
                if let CallStop::Terminal(failure) = &stop {
                    self.stop_account(task, failure).await;
                }
                Err(self.end(stop, records, usage, timing, task.task == TaskKey::PROBE))
            }
        }
    }

    /// Notes who has answered, for the report.
    async fn note(&self, server: Option<&ServerAddress>, served: Served) {
        let (account, model) = (self.account.clone(), self.caller.model().model().to_owned());
        self.notes.note(ServedNote { phase: self.phase, account, model, server: server.cloned(), served }).await;
    }

    /// Tells the other workers that the account refuses every call, or every call of this model (P23).
    async fn stop_account(&self, task: &ClaimedTask, failure: &Failure) {
        if self.refused.swap(true, Ordering::Relaxed) {
            return;
        }
        let model = (failure.code == MODEL_NOT_FOUND).then(|| self.caller.model().model());
        let (run, account, code) = (self.run.0.as_str(), self.account.as_str(), failure.code.as_str());
        match self.store.stop_account(task.run, account, model, &failure.message).await {
            // a local run tells its owner by how it ends
            Ok(paused) if self.served && !paused.is_empty() => {
                let (others, message) = (paused.len() - 1, &failure.message);
                warn!(run, account, code, "run {run} is paused, and {others} others of account {account}: {message}");
            }
            Ok(_) => {}
            // the look at the runs at hand pauses it, and says so
            Err(error) => debug!(run, account, "run {run} is not paused yet: {error}"),
        }
    }

    fn end(&self, stop: CallStop, calls: Vec<CallRecord>, usage: Usage, timing: Timing, of_probe: bool) -> TaskEnd {
        match stop {
            CallStop::Failed(failure) => TaskEnd::GiveUp(Box::new(GivenUp { failure, calls, usage, timing })),
            CallStop::Terminal(failure) => TaskEnd::HandBack { reason: failure.message, calls },
            CallStop::Stopped(cause) => TaskEnd::HandBack { reason: cause.into_reason(), calls },
            // a cap that is used up ends a probe, and not a run whose questions have all ended
            CallStop::Budget(over_cap) if of_probe => TaskEnd::GiveUp(Box::new(GivenUp {
                failure: Failure::permanent(BUDGET, over_cap.of_run(&self.run.0)),
                calls,
                usage,
                timing,
            })),
            CallStop::Budget(over_cap) => {
                let reason = format!("{BUDGET}: {}", over_cap.of_run(&self.run.0));
                self.stop.set(StopCause::Terminal(Failure::terminal(BUDGET, reason.clone())));
                TaskEnd::HandBack { reason, calls }
            }
            CallStop::Park { wait, reason, failed_attempts, outage } => {
                let delay_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                match failed_attempts {
                    // failed attempts are not forgotten because the call has to wait
                    1.. => {
                        let failure = Failure::transient("waits", reason);
                        TaskEnd::RetryLater { failure: Failure { retry_after_ms: Some(delay_ms), ..failure }, calls }
                    }
                    0 if outage && calls.is_empty() => TaskEnd::PutOff { delay_ms, reason },
                    0 => TaskEnd::Park { delay_ms, reason, calls },
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn p38_later_repeats_ask_for_draws_of_their_own() {
        let with = |params: serde_json::Value| {
            let params = serde_json::from_value(params).expect("parameters");
            let messages = vec![ChatMessage { role: MessageRole::User, text: "hello".to_owned() }];
            ChatRequest { messages, params, schema: None, max_output_tokens: 10 }
        };
        let seeded = with(json!({"seed": 7, "temperature": 0}));
        assert_eq!(drawn_anew(&seeded, "q", 1), None, "the first is the run that it would be alone");
        let seeds: std::collections::BTreeSet<String> = [("q", 2), ("q", 3), ("other", 2)]
            .map(|(question, repeat)| {
                let anew = drawn_anew(&seeded, question, repeat).expect("has a seed");
                assert_eq!((&anew.params["temperature"], &anew.messages), (&json!(0), &seeded.messages));
                anew.params["seed"].to_string()
            })
            .into();
        assert_eq!(seeds.len(), 3, "{seeds:?}");
        assert_eq!(drawn_anew(&seeded, "q", 2), drawn_anew(&seeded, "q", 2), "the same repeat is the same request");
        assert_eq!(
            drawn_anew(&with(json!({"temperature": 1})), "q", 2),
            None,
            "a provider without a seed draws by itself"
        );
    }
}
