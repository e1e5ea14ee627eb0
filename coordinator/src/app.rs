//! What every verb needs: settings, store, queue, accounts.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bench_models::registry;
use bench_proto::{
    ids::Role,
    spec::{IMPORTED_SYSTEM, RunSpec},
};
use bench_queue::{Queue, QueueError};
use bench_settings::{Account, ApiKey, CommandLine, FlagValue, ModelRole, Settings};
use bench_store::{PaceLimits, RunRow, Store};
use bench_worker::{
    context::WorkerEnvironment,
    environment::{LOCAL_SLOTS, RETAIN_SLOTS, Rights},
    systems::{
        self, SystemSettings, adapter,
        policy::Policy,
        registry::{Named, SYSTEMS},
        vector::{self, EmbeddingModel},
    },
    traces::ProcessTelemetry,
    transport,
};
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::{
    cli::{Cli, GlobalArgs, SampleArgs, SubmitArgs, SystemsVerb, Verb},
    cluster::takers::look_for_takers,
    exit::CliError,
    local::Interrupts,
    runs, trusted,
};

/// Longest wait for the store to close: one that is out of reach does not keep a person waiting.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);

/// Where runs are carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the process that submitted them.
    Local,
    /// By workers that a coordinator looks after.
    Cluster,
}

/// A queue's error for people.
pub(crate) fn queue_error(error: QueueError) -> CliError {
    match &error {
        QueueError::Setup(_) => CliError::usage(error.to_string()),
        QueueError::Unavailable(_) | QueueError::Closed => {
            CliError::infrastructure(format!("{error}; is the broker up? `bench-coord doctor` looks at everything"))
        }
    }
}

/// A command's surroundings.
pub(crate) struct App {
    settings: Settings,
    /// The store, once a verb has opened it.
    store: OnceCell<Arc<dyn Store>>,
    /// The ways to a collector, once a verb does something that is worth looking at.
    telemetry: OnceLock<ProcessTelemetry>,
    interrupts: OnceLock<Interrupts>,
    /// Whether the verb ends in its own way when it is interrupted.
    listens: AtomicBool,
}

impl App {
    /// Reads the settings of this process.
    ///
    /// # Errors
    /// Exit 2: unknown keys, wrong types, unreadable files, each with its place.
    pub(crate) fn load(cli: &Cli) -> Result<Self, CliError> {
        let line = CommandLine {
            config: cli.global.config.clone(),
            profile: cli.global.profile.clone(),
            sets: cli.global.set.clone(),
            flags: flags(cli),
        };
        let settings = bench_settings::from_process(line, bench_worker::environment::extra_keys())
            .map_err(|e| CliError::usage(e.to_string()))?;
        Ok(Self {
            settings,
            store: OnceCell::new(),
            telemetry: OnceLock::new(),
            interrupts: OnceLock::new(),
            listens: AtomicBool::new(false),
        })
    }

    /// The effective settings.
    #[must_use]
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// `$BENCH_HOME`.
    #[must_use]
    pub(crate) fn home(&self) -> PathBuf {
        self.settings.home.clone()
    }

    /// `$BENCH_DATASETS_DIR`.
    #[must_use]
    pub(crate) fn datasets_dir(&self) -> Option<PathBuf> {
        self.settings.datasets_dir.clone()
    }

    /// File of the store, when it is a local one.
    #[must_use]
    pub(crate) fn store_file(&self) -> Option<PathBuf> {
        runs::store_file(&self.settings.store_url)
    }

    /// The store, opened by the first who asks and closed at the end of the verb.
    ///
    /// # Errors
    /// With what to do.
    pub(crate) async fn open_store(&self) -> Result<Arc<dyn Store>, CliError> {
        transport::warn(&self.settings, transport::to_store(&self.settings));
        let store = self.store.get_or_try_init(|| bench_store::open(&self.settings.store_url)).await?;
        Ok(Arc::clone(store))
    }

    /// Signals of the person at the terminal, which are the verb's business from now on.
    pub(crate) fn interrupts(&self) -> Interrupts {
        self.listens.store(true, Ordering::SeqCst);
        self.interrupts.get_or_init(Interrupts::listen).clone()
    }

    /// Waits for a signal that is not the verb's business.
    pub(crate) async fn interrupted(&self) {
        self.interrupts.get_or_init(Interrupts::listen).stop.cancelled().await;
        if self.listens.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }

    /// Where runs are carried out, by the URLs of store and queue.
    ///
    /// # Errors
    /// Exit 2 for a combination that cannot work, with the reason.
    pub(crate) fn place(&self) -> Result<Place, CliError> {
        let in_process = self.settings.queue_url.starts_with("memory:");
        match (self.store_file().is_some(), in_process) {
            (true, true) => Ok(Place::Local),
            (false, false) => Ok(Place::Cluster),
            (true, false) => Err(CliError::usage(format!(
                "queue {} with a sqlite: store: workers on other machines could not reach the store; use --queue memory:",
                bench_proto::redact::url(&self.settings.queue_url)
            ))),
            (false, true) => Err(CliError::usage(format!(
                "store {} with the in-process queue: name the broker of its coordinator with --queue amqp://…, or work on this machine alone with --store sqlite:PATH",
                bench_proto::redact::url(&self.settings.store_url)
            ))),
        }
    }

    /// Connects to the queue.
    ///
    /// # Errors
    /// Exit 2 for a combination that cannot work and for a broker that refuses, 4 for one that cannot be reached.
    pub(crate) async fn open_queue(&self) -> Result<Arc<dyn Queue>, CliError> {
        self.place()?;
        transport::warn(&self.settings, transport::to_queue(&self.settings));
        bench_queue::connect(&self.settings.queue_url).await.map_err(queue_error)
    }

    /// Makes sure that the queue can be used, before anything is created. Nothing of it is kept.
    ///
    /// # Errors
    /// As [`App::open_queue`].
    pub(crate) async fn check_queue(&self) -> Result<(), CliError> {
        self.open_queue().await?.close().await;
        Ok(())
    }

    /// The memory system that a name, or the path of an adapter file, stands for: its name and its settings. An adapter goes
    /// with the run as a whole, so that workers need no file.
    ///
    /// # Errors
    /// Exit 2: unknown names, files with mistakes, a mode that the system does not have.
    pub(crate) fn system(&self, given: &str) -> Result<(String, BTreeMap<String, Value>), CliError> {
        let usage = |e: String| CliError::usage(e);
        let section = self.settings.section("system");
        let mode = section.get("mode").and_then(Value::as_str).unwrap_or("raw");
        if !["raw", "consolidated"].contains(&mode) {
            return Err(usage(format!("--mode {mode}: give raw or consolidated")));
        }
        let (name, mut settings, consolidates) =
            match systems::registry::named(given).map_err(|e| usage(e.to_string()))? {
                Named::BuiltIn(entry) => (entry.name.to_owned(), self.system_settings(entry.name), false),
                Named::Adapter(spec) => {
                    let adapter = serde_json::to_value(&spec).map_err(|e| usage(e.to_string()))?;
                    let mut settings = BTreeMap::from([(adapter::ADAPTER.to_owned(), adapter)]);
                    if let Some(url) = section.get("url") {
                        settings.insert(adapter::URL.to_owned(), url.clone());
                    }
                    (spec.name.clone(), settings, spec.consolidate.is_some() || spec.command.is_some())
                }
            };
        if mode == "consolidated" {
            if !consolidates {
                return Err(usage(format!(
                    "--mode consolidated: {name} has no consolidation of its own; use --mode raw"
                )));
            }
            settings.insert(adapter::MODE.to_owned(), mode.into());
        }
        Ok((name, settings))
    }

    /// Settings of a built-in memory system, by their dotted names.
    #[must_use]
    pub(crate) fn system_settings(&self, system: &str) -> BTreeMap<String, Value> {
        let known = SYSTEMS.iter().filter(|entry| entry.name == system).flat_map(|entry| entry.settings);
        known
            .filter_map(|setting| {
                let (section, name) = setting.name.split_once('.')?;
                Some((setting.name.to_owned(), self.settings.section(section).remove(name)?))
            })
            .collect()
    }

    /// Settings of a dataset's own section, without its name; none for a dataset without one, and for unknown names.
    #[must_use]
    pub(crate) fn dataset_settings(&self, dataset: &str) -> BTreeMap<String, Value> {
        let section = bench_datasets::find(dataset).map_or("", |entry| entry.manifest.section);
        if section.is_empty() { BTreeMap::new() } else { self.settings.section(section) }
    }

    /// Parameters that are wanted of the answerer, before the model's own limits.
    ///
    /// # Errors
    /// Exit 2 when the role's further parameters are no JSON object.
    pub(crate) fn model_params(&self, role: ModelRole) -> Result<BTreeMap<String, Value>, CliError> {
        let of = if role == ModelRole::Judge { &self.settings.judge } else { &self.settings.answerer };
        let mut params = BTreeMap::from([
            ("temperature".to_owned(), Value::from(of.temperature)),
            ("max_completion_tokens".to_owned(), Value::from(of.max_output_tokens)),
        ]);
        if let Some(text) = &of.params {
            let more: BTreeMap<String, Value> = serde_json::from_str(text).map_err(|error| {
                let role = role.name();
                CliError::usage(format!(
                    "{role}.params is no JSON object ({error}): write {role}.params={{\"service_tier\": \"flex\"}}"
                ))
            })?;
            params.extend(more);
        }
        Ok(params)
    }

    /// The account of a role, usable: with a base URL, and with a key unless the server is a local one.
    ///
    /// # Errors
    /// Exit 2 with the variable to set, before the first call.
    pub(crate) fn account(&self, role: ModelRole, provider: &str, flag: &str) -> Result<registry::Account, CliError> {
        self.usable(self.settings.account_for(role, provider), role, flag)
    }

    /// The account that embeds for a memory system.
    ///
    /// # Errors
    /// As [`App::account`].
    pub(crate) fn embedding_account(&self, model: &EmbeddingModel) -> Result<registry::Account, CliError> {
        let account = match model.account.as_str() {
            registry::DEFAULT_EMBEDDING_ACCOUNT => {
                self.settings.account_named(ModelRole::Embedder, model.account.clone())
            }
            named => self.settings.accounts.get(named).cloned().ok_or_else(|| {
                let known: Vec<&str> = self.settings.accounts.keys().map(String::as_str).collect();
                CliError::usage(format!("vector.account={named}: no such account; known are {}", known.join(", ")))
            })?,
        };
        self.usable(account, ModelRole::Embedder, "vector.model")
    }

    fn usable(&self, account: Account, role: ModelRole, flag: &str) -> Result<registry::Account, CliError> {
        transport::warn(&self.settings, transport::to_account(&account));
        let base_url = account.base_url.clone().ok_or_else(|| {
            CliError::usage(format!(
                "{flag}: account '{}' has no base URL; set accounts.{}.base_url",
                account.name, account.name
            ))
        })?;
        let limits = PaceLimits { rpm: account.rpm, tpm: account.tpm };
        let key = account.key.secret().cloned();
        let usable = registry::Account {
            name: account.name.clone(),
            base_url,
            key,
            limits,
            counts_used_tokens: account.tpm_counts_used,
        };
        if usable.key.is_none() && !usable.is_local() {
            return Err(CliError::usage(format!("{flag}: {}", missing_key(&account, role))));
        }
        Ok(usable)
    }

    /// Checks that a stored run's models can be reached from here.
    ///
    /// # Errors
    /// As [`App::account`].
    pub(crate) fn check_run_accounts(&self, spec: &RunSpec) -> Result<(), CliError> {
        if self.place()? == Place::Cluster {
            // the keys are with the workers
            return Ok(());
        }
        self.accounts_of(spec).map(|_| ())
    }

    fn accounts_of(&self, spec: &RunSpec) -> Result<BTreeMap<String, registry::Account>, CliError> {
        let mut accounts = BTreeMap::new();
        if spec.answerer.is_remote() {
            let account = self.account(ModelRole::Answerer, &spec.answerer.provider, "--answerer")?;
            accounts.insert(spec.answerer.account.clone(), account);
        }
        for judge in spec.judges.iter().filter(|judge| judge.is_remote()) {
            accounts.insert(judge.account.clone(), self.account(ModelRole::Judge, &judge.provider, "--judge")?);
        }
        if let Some(model) = vector::remote_model(&spec.system.name, &spec.system.settings) {
            let account = self.embedding_account(&model)?;
            accounts.entry(account.name.clone()).or_insert(account);
        }
        Ok(accounts)
    }

    /// Whether a key for OpenAI's own servers is set.
    #[must_use]
    pub(crate) fn has_openai_key(&self) -> bool {
        matches!(self.settings.account_of(ModelRole::Answerer).key, ApiKey::Set(..))
    }

    /// What this process brings to a run.
    ///
    /// # Errors
    /// Exit 2 when an account is missing.
    pub(crate) fn worker_environment(
        &self,
        spec: &RunSpec,
        telemetry: &ProcessTelemetry,
    ) -> Result<Arc<WorkerEnvironment>, CliError> {
        let (accounts, rights) = (self.accounts_of(spec)?, self.rights(self.policy()));
        bench_worker::environment::traced_environment(&self.settings, accounts, rights, telemetry.spans.clone())
            .map_err(|failure| CliError::infrastructure(failure.to_string()))
    }

    /// The ways to a collector for what this process does; opened by the first who asks, closed at the end of the verb.
    ///
    /// # Errors
    /// Exit 2 when the endpoint makes no sense.
    pub(crate) fn telemetry(&self) -> Result<&ProcessTelemetry, CliError> {
        if let Some(open) = self.telemetry.get() {
            return Ok(open);
        }
        let instance = format!("local-{}", std::process::id());
        let started = ProcessTelemetry::start(&self.settings, "bench-coord", &instance, None)
            .map_err(|failure| CliError::usage(failure.message))?;
        Ok(self.telemetry.get_or_init(|| started))
    }

    /// Sends what is left for a collector, and closes the store: a local one is a single file then.
    pub(crate) async fn close(self) {
        if let Some(telemetry) = self.telemetry.into_inner() {
            telemetry.close().await;
        }
        if let Some(store) = self.store.into_inner()
            && tokio::time::timeout(CLOSE_WITHIN, store.close()).await.is_err()
        {
            tracing::debug!("the store did not close in time");
        }
    }

    /// What memory systems may do in this process: what settings allow, and what a person has named here (P42).
    #[must_use]
    pub(crate) fn policy(&self) -> Policy {
        trusted::added_to(Policy::new(self.settings.allow.clone()), &self.settings.home)
    }

    /// Notes that a person has named the adapter of these settings: it may do here what it says.
    ///
    /// # Errors
    /// Exit 2 when that cannot be noted.
    pub(crate) fn trust(&self, settings: &SystemSettings) -> Result<(), CliError> {
        match self.policy().check(settings) {
            Ok(()) => Ok(()),
            Err(_) => trusted::add(&self.settings.home, settings),
        }
    }

    /// Makes sure that the memory system of a stored run may be asked where the run is carried out: what came by a store, an
    /// archive or an import decides nothing.
    ///
    /// # Errors
    /// Exit 2 with what it would do, and how to allow it.
    pub(crate) async fn check_allowed(&self, store: &dyn Store, run: &RunRow) -> Result<(), CliError> {
        if self.place()? == Place::Cluster {
            return look_for_takers(store, &run.spec).await;
        }
        if run.spec.system.version == IMPORTED_SYSTEM {
            return Ok(());
        }
        let Err(refusal) = self.policy().check(&run.spec.system.settings) else { return Ok(()) };
        let reason = refusal.reason();
        if runs::is_restored(store, run).await? {
            return Err(CliError::usage(format!(
                "run {0} came from an archive: {reason}; read system.settings.adapter in its run.json, then                  `bench-coord archive fetch {0} --restore --trust-system`",
                run.run_id
            )));
        }
        Err(CliError::usage(format!(
            "run {}: {reason}; when you know the adapter, name its file in a `submit`, or allow it:\n{}",
            run.run_id,
            refusal.lines()
        )))
    }

    fn rights(&self, policy: Policy) -> Rights {
        Rights { policy, apart: false }
    }

    /// What a check of a memory system gets: every account that has a server.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub(crate) fn environment_for_check(&self, policy: Policy) -> Result<Arc<WorkerEnvironment>, CliError> {
        let accounts = bench_worker::environment::usable_accounts(&self.settings);
        bench_worker::environment::environment(&self.settings, accounts, self.rights(policy))
            .map_err(|failure| CliError::infrastructure(failure.to_string()))
    }

    /// Slots per role for a run in this process.
    #[must_use]
    pub(crate) fn slots(&self, spec: &RunSpec) -> Vec<(Role, usize)> {
        let chosen = self.settings.worker.slots.map(|slots| slots as usize);
        let slots = chosen.unwrap_or(LOCAL_SLOTS);
        let judging = (!spec.judges.is_empty()).then_some((Role::Judge, slots));
        let working = [(Role::Retain, chosen.unwrap_or(RETAIN_SLOTS)), (Role::Question, slots)];
        working.into_iter().chain(judging).collect()
    }

    /// Longest wait for calls in flight after a stop.
    #[must_use]
    pub(crate) fn drain(&self) -> Duration {
        self.settings.worker.drain
    }
}

/// What to do about a missing key.
fn missing_key(account: &Account, role: ModelRole) -> String {
    let own = format!("BENCH_{}_API_KEY", role.name().to_uppercase());
    match &account.key {
        ApiKey::Missing(why) => format!("account '{}' needs a key, but {why}; set it, or {own}", account.name),
        ApiKey::None | ApiKey::Set(..) => {
            format!("account '{}' needs a key; set {own}, or accounts.{}.api_key_env", account.name, account.name)
        }
    }
}

/// Flags that were given, as settings: so that `config show` and error messages can name them.
fn flags(cli: &Cli) -> Vec<FlagValue> {
    let mut flags = Flags::default();
    global_flags(&cli.global, &mut flags);
    match &cli.verb {
        Verb::Submit(args) | Verb::Estimate(args) => submit_flags(args, &mut flags),
        Verb::Systems(SystemsVerb::Hash { mode, .. }) => flags.one("system.mode", "--mode", mode.as_ref()),
        Verb::Import(args) => sample_flags(&args.sample, &mut flags),
        _ => {}
    }
    flags.0
}

#[derive(Default)]
struct Flags(Vec<FlagValue>);

impl Flags {
    fn one<T: ToString>(&mut self, key: &str, flag: &str, value: Option<&T>) {
        if let Some(value) = value {
            self.0.push(FlagValue::new(key, flag, value.to_string()));
        }
    }

    fn many(&mut self, key: &str, flag: &str, values: &[String]) {
        if !values.is_empty() {
            self.0.push(FlagValue { key: key.to_owned(), flag: flag.to_owned(), values: values.to_vec() });
        }
    }
}

fn global_flags(args: &GlobalArgs, flags: &mut Flags) {
    flags.one("store.url", "--store", args.store.as_ref());
    flags.one("queue.url", "--queue", args.queue.as_ref());
}

fn sample_flags(args: &SampleArgs, flags: &mut Flags) {
    flags.one("run.dataset", "--dataset", args.dataset.as_ref());
    flags.one("run.preset", "--preset", args.preset.as_ref());
    flags.one("run.sampler", "--sampler", args.sampler.as_ref());
    flags.one("run.seed", "--seed", args.seed.as_ref());
    flags.one("run.limit", "--limit", args.limit.as_ref());
    flags.one("run.sample", "--sample", args.sample.as_ref());
    flags.one("run.per_bank", "--per-bank", args.per_bank.as_ref());
    flags.one("run.max_banks", "--max-banks", args.max_banks.as_ref());
    flags.one("run.max_sessions", "--max-sessions", args.max_sessions.as_ref());
    flags.many("run.category", "--category", &args.category);
    flags.many("run.exclude_category", "--exclude-category", &args.exclude_category);
}

fn submit_flags(args: &SubmitArgs, flags: &mut Flags) {
    sample_flags(&args.sample, flags);
    flags.one("run.system", "--system", args.system.as_ref());
    flags.one("system.mode", "--mode", args.mode.as_ref());
    flags.one("run.answerer", "--answerer", args.answerer.as_ref());
    flags.many("run.judge", "--judge", &args.judge);
    flags.many("run.scorer", "--scorer", &args.scorer);
    flags.one("run.top_k", "--top-k", args.top_k.as_ref());
    flags.one("run.votes", "--votes", args.votes.as_ref());
    flags.one("run.controls", "--controls", args.controls.then_some(&true));
    flags.one("run.concurrency", "--concurrency", args.limits.concurrency.as_ref());
    flags.one("run.max_rpm", "--max-rpm", args.limits.max_rpm.as_ref());
    flags.one("run.max_tpm", "--max-tpm", args.limits.max_tpm.as_ref());
    flags.one("run.max_cost", "--max-cost", args.limits.max_cost.as_ref());
    flags.one("run.max_cost_per_day", "--max-cost-per-day", args.limits.max_cost_per_day.as_ref());
    flags.one("run.retries", "--retries", args.limits.retries.as_ref());
    flags.one("run.outage_timeout", "--outage-timeout", args.limits.outage_timeout.as_ref());
    let recalls = args.latency_probe.as_deref().map(|n| if n == "off" { "0" } else { n });
    flags.one("run.latency_probe", "--latency-probe", recalls.as_ref());
    flags.many("run.latency_probe_rate", "--latency-probe-rate", &args.latency_probe_rate);
    flags.one("run.unpriced_ok", "--unpriced-ok", args.prices.unpriced_ok.then_some(&true));
    flags.one("run.cache", "--cache", args.cache.as_ref());
    flags.one("run.pool", "--pool", args.pool.as_ref());
    flags.one("trace.url", "--trace-url", args.trace_url.as_ref());
    flags.one("trace.content", "--trace-content", args.trace_content.then_some(&true));
}
