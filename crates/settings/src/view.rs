//! The settings as typed sections.
//!
//! In come the entries by name, each with its origin; out comes [`Settings`], one struct for each section, and the problems
//! that no single value has. Start reading at [`Settings::load`]; what a key is and takes stands in `schema.rs`, which source
//! wins in `layers`.

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use bench_proto::{
    call::{CacheScope, Phase},
    ids::Sha256Hash,
    money::PicoUsd,
    nearest::distance,
    policy::SystemPolicy,
    usage_cap::UsageCap,
};

use crate::{
    accounts::{Account, ApiKey, ModelRole, accounts},
    error::{Problem, SettingsError},
    layers::{Entries, Entry, Layers, Sources},
    origin::Origin,
    schema::{Schema, within_two},
    value::Value,
};

/// The provider whose models run on this machine, and where it listens unless it is told otherwise.
const OLLAMA: (&str, &str) = ("ollama", "http://127.0.0.1:11434/v1");

/// The provider whose models are simulated; whoever runs them says where.
const FAKE: &str = "fake";

/// Effective settings; each value knows its origin ([`Settings::entry`]).
#[derive(Clone)]
pub struct Settings {
    /// Folder of store, runs and caches.
    pub home: PathBuf,
    /// Folder that is looked at before any download.
    pub datasets_dir: Option<PathBuf>,
    /// Object store that datasets come from instead of their source.
    pub datasets_url: Option<String>,
    /// URL of the store. May hold a password: shown by [`Settings::show`] only.
    pub store_url: String,
    /// URL of the queue. May hold a password.
    pub queue_url: String,
    /// Hosts that may be reached without encryption.
    pub allow_plaintext: Vec<String>,
    /// What a run asks, and how.
    pub run: RunSettings,
    /// Delays between attempts.
    pub backoff: BackoffSettings,
    /// Calls of models.
    pub models: ModelCallSettings,
    /// Parameters of the answerer.
    pub answerer: RoleSettings,
    /// Parameters of judges.
    pub judge: RoleSettings,
    /// Where finished runs are archived: a folder or the URL of an object store.
    pub archive_url: Option<String>,
    /// Whether texts go there: `by-licence`, `always` or `never`.
    pub archive_texts: String,
    /// How memory systems' own calls are let through.
    pub meter: MeterSettings,
    /// Seed of bootstraps.
    pub stats_seed: u64,
    /// What a worker serves.
    pub worker: WorkerSettings,
    /// What memory systems may do in this process (P42).
    pub allow: SystemPolicy,
    /// Where traces and metrics go.
    pub telemetry: TelemetrySettings,
    /// Which questions keep their traces.
    pub trace: TraceSettings,
    /// Accounts by name.
    pub accounts: BTreeMap<String, Account>,
    pub(crate) entries: Entries,
    pub(crate) schema: Schema,
}

impl fmt::Debug for Settings {
    /// Names and values as shown: without keys and passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&self.entries).finish()
    }
}

/// The provider whose account is the default of all roles.
const DEFAULT_PROVIDER: &str = "openai";

/// Section `[run]`; see the default file for what they do.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "default-config.toml says it once")]
pub struct RunSettings {
    pub dataset: Option<String>,
    pub preset: String,
    pub sampler: String,
    pub seed: Option<String>,
    pub limit: Option<u64>,
    pub sample: Option<u64>,
    pub sample_total: Option<u64>,
    pub per_bank: Option<u64>,
    pub max_banks: Option<u64>,
    pub max_sessions: Option<u32>,
    pub category: Vec<String>,
    pub exclude_category: Vec<String>,
    pub facet: Vec<String>,
    pub exclude_facet: Vec<String>,
    pub system: String,
    pub top_k: u32,
    pub scenario: String,
    /// Most recalls of a question whose model searches by itself.
    pub max_recalls: u32,
    /// Rephrasings that are searched for beside the question.
    pub multi_query: u32,
    pub answerer: String,
    pub judge: Vec<String>,
    pub votes: u32,
    pub rubric: Option<String>,
    pub scorer: Vec<String>,
    pub headline: Option<String>,
    pub controls: bool,
    /// Facts of the run's own are stored in banks of systems that are another process.
    pub canaries: bool,
    pub concurrency: Option<u32>,
    pub retries: u32,
    pub outage_timeout: Option<u64>,
    pub latency_probe: u32,
    pub latency_probe_rate: Vec<String>,
    pub pool: String,
    pub max_cost: Option<PicoUsd>,
    /// In the place of all caps on dollars.
    pub max_usage: Option<UsageCap>,
    pub max_cost_per_day: Option<PicoUsd>,
    pub max_cost_by_phase: BTreeMap<Phase, PicoUsd>,
    pub max_rpm: Option<u64>,
    pub max_tpm: Option<u64>,
    pub unpriced_ok: bool,
    pub cache: CacheScope,
}

/// Section `[backoff]`: names that users of exponential back-off know.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BackoffSettings {
    /// Delay before the first repeat.
    pub initial_interval: Duration,
    /// Factor from one delay to the next.
    pub multiplier: f64,
    /// Jitter r: a delay d becomes one of [(1 − r) d, (1 + r) d].
    pub randomization_factor: f64,
    /// Longest delay before jitter.
    pub max_interval: Duration,
}

/// Section `[models]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelCallSettings {
    /// Prices that come before the built-in ones.
    pub price_file: Option<PathBuf>,
    /// Time for a whole reply.
    pub timeout: Duration,
    /// Time for a connection.
    pub connect_timeout: Duration,
    /// Calls in flight per process.
    pub max_concurrency: u32,
    /// Look whether servers can be reached before a run starts.
    pub look_first: bool,
}

/// Sections `[answerer]` and `[judge]`.
#[derive(Debug, Clone, PartialEq)]
pub struct RoleSettings {
    /// Sampling temperature.
    pub temperature: f64,
    /// Largest number of completion tokens.
    pub max_output_tokens: u32,
    /// Further parameters, as a JSON object.
    pub params: Option<String>,
}

/// Section `[meter]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeterSettings {
    /// Runs meter what their memory systems call themselves.
    pub on: bool,
    /// Where this process lets such calls through: an address with a port, 0 for any that is free.
    pub listen: String,
    /// Base URL under which memory systems reach it, where that is another one.
    pub url: Option<String>,
    /// Names by which a meter on loopback may be called, beside those of this machine.
    pub hosts: Vec<String>,
    /// Models that memory systems may call; a name that ends with `*` stands for all that begin so.
    pub allow: Vec<String>,
    /// Accounts that calls go to, each as `openai=NAME` or `anthropic=NAME`.
    pub accounts: Vec<String>,
    /// Variables that tell a memory system where the meter is, each as `NAME=TEXT` with `{url}` and `{key}` in the text.
    pub variables: Vec<String>,
    /// What is failed on purpose, such as `429=0.05,500=0.01,slow=0.02`.
    pub fault: Option<String>,
}

/// Section `[worker]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerSettings {
    /// Slots; its own choice when absent.
    pub slots: Option<u32>,
    /// How long it may finish its calls when it stops.
    pub drain: Duration,
    /// MiB of banks that it keeps in memory.
    pub bank_cache: u32,
}

impl WorkerSettings {
    /// Bytes of banks that it keeps in memory.
    #[must_use]
    pub const fn bank_bytes(&self) -> u64 {
        (self.bank_cache as u64) << 20
    }
}

/// Section `[telemetry]`.
#[derive(Debug, Clone, PartialEq)]
pub struct TelemetrySettings {
    /// URL of an OTLP receiver; nothing is sent without one.
    pub endpoint: Option<String>,
    /// `grpc` or `http/protobuf`.
    pub protocol: String,
    /// How often metrics are sent.
    pub metrics_interval: Duration,
    /// Longest wait for the collector at the end of a process.
    pub patience: Duration,
    /// Share of the process's own spans that are sent although they tell nothing.
    pub process_rate: f64,
}

/// Section `[trace]`.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceSettings {
    /// Where people find a trace, with `{trace_id}` in it.
    pub url: Option<String>,
    /// Traces hold texts.
    pub content: bool,
    /// What is slow; the run's own times decide when absent.
    pub slow: Option<Duration>,
    /// Quantile above which a question may be slow.
    pub quantile: f64,
    /// Share of questions that keep their trace.
    pub rate: f64,
}

impl Settings {
    /// Reads the settings from `sources`.
    ///
    /// # Errors
    /// All problems at once: unknown names, wrong types, keys in the open, unknown profiles and accounts.
    pub fn load(sources: &Sources<'_>) -> Result<Self, SettingsError> {
        let Layers { schema, entries, mut problems } = Layers::read(sources);
        let settings = Self::view(schema, entries, sources, &mut problems);
        if problems.is_empty() { Ok(settings) } else { Err(SettingsError { problems }) }
    }

    fn view(schema: Schema, entries: Entries, sources: &Sources<'_>, problems: &mut Vec<Problem>) -> Self {
        let read = Read(&entries);
        check_votes(&entries, problems);
        let accounts: BTreeMap<String, Account> =
            accounts(&entries, sources).into_iter().map(|account| (account.name.clone(), account)).collect();
        check_accounts(&entries, &accounts, problems);
        Self {
            home: read.path("home").unwrap_or_default(),
            datasets_dir: read.path("datasets_dir"),
            datasets_url: read.maybe_text("datasets_url").filter(|url| !url.is_empty()),
            store_url: read.text("store.url"),
            queue_url: read.text("queue.url"),
            allow_plaintext: read.list("allow_plaintext"),
            run: run(&read),
            backoff: BackoffSettings {
                initial_interval: read.duration("backoff.initial_interval"),
                multiplier: read.number("backoff.multiplier").unwrap_or_default(),
                randomization_factor: read.number("backoff.randomization_factor").unwrap_or_default(),
                max_interval: read.duration("backoff.max_interval"),
            },
            models: ModelCallSettings {
                price_file: read.path("models.price_file"),
                timeout: read.duration("models.timeout"),
                connect_timeout: read.duration("models.connect_timeout"),
                max_concurrency: read.whole("models.max_concurrency").unwrap_or_default(),
                look_first: read.flag("models.look_first"),
            },
            answerer: role(&read, ModelRole::Answerer),
            judge: role(&read, ModelRole::Judge),
            archive_url: read.maybe_text("archive.url").filter(|url| !url.is_empty()),
            archive_texts: read.text("archive.texts"),
            meter: MeterSettings {
                on: read.flag("meter.on"),
                listen: read.text("meter.listen"),
                url: read.maybe_text("meter.url").filter(|url| !url.is_empty()),
                hosts: read.list("meter.hosts"),
                allow: read.list("meter.allow"),
                accounts: read.list("meter.accounts"),
                variables: read.list("meter.variables"),
                fault: read.maybe_text("meter.fault").filter(|fault| !fault.is_empty()),
            },
            stats_seed: read.whole("stats.seed").unwrap_or_default(),
            worker: WorkerSettings {
                slots: read.whole("worker.slots"),
                drain: read.duration("worker.drain"),
                bank_cache: read.whole("worker.bank_cache").unwrap_or(96),
            },
            allow: allow(&entries, problems),
            telemetry: TelemetrySettings {
                patience: read.duration("telemetry.patience"),
                process_rate: read.number("telemetry.process_rate").unwrap_or_default(),
                endpoint: read.maybe_text("telemetry.endpoint"),
                protocol: read.text("telemetry.protocol"),
                metrics_interval: read.duration("telemetry.metrics_interval"),
            },
            trace: TraceSettings {
                url: read.maybe_text("trace.url"),
                content: read.flag("trace.content"),
                slow: read.maybe_duration("trace.slow"),
                quantile: read.number("trace.quantile").unwrap_or_default(),
                rate: read.number("trace.rate").unwrap_or_default(),
            },
            accounts,
            entries,
            schema,
        }
    }

    /// A value and its origin, by dotted name; `None` when it is not set.
    #[must_use]
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// Whether a user set it: neither a default nor following one.
    #[must_use]
    pub fn is_set(&self, key: &str) -> bool {
        self.entry(key).is_some_and(|entry| entry.origin != Origin::Default)
    }

    /// Keys of a section that were given on the command line of this process, with their sections, and their values.
    pub fn typed(&self, section: &str) -> impl Iterator<Item = (&str, &Value)> {
        let is_below = move |key: &str| key.strip_prefix(section).is_some_and(|rest| rest.starts_with('.'));
        let typed =
            self.entries.iter().filter(move |(key, entry)| is_below(key) && matches!(entry.origin, Origin::Flag(_)));
        typed.map(|(key, entry)| (key.as_str(), &entry.value))
    }

    /// What users set in a section that a dataset or system owns, names without the section (`conversations` of
    /// `sim.conversations`). Defaults are left to the owner.
    #[must_use]
    pub fn section(&self, section: &str) -> BTreeMap<String, serde_json::Value> {
        let below = |key: &str| Some(key.strip_prefix(section)?.strip_prefix('.')?.to_owned());
        self.entries
            .iter()
            .filter(|(_, entry)| entry.origin != Origin::Default)
            .filter_map(|(key, entry)| Some((below(key)?, entry.value.json()?)))
            .collect()
    }

    /// The account that a role uses. A role with a base URL of its own has an account of its own, named like the role:
    /// the key of another account is never sent there. A role with only a key of its own keeps the account's URL.
    #[must_use]
    pub fn account_of(&self, role: ModelRole) -> Account {
        self.account_for(role, DEFAULT_PROVIDER)
    }

    /// [`Self::account_of`] for a model of `provider`: without a choice of the user it is the account of the provider's name.
    #[must_use]
    pub fn account_for(&self, role: ModelRole, provider: &str) -> Account {
        let chosen = self.entries.get(&format!("{}.account", role.name()));
        // embeddings have no section of the kind: their memory system names an account
        let chosen = chosen.and_then(|entry| entry.value.text()).unwrap_or(DEFAULT_PROVIDER).to_owned();
        let of_provider = provider != DEFAULT_PROVIDER && !self.is_set(&format!("{}.account", role.name()));
        let is_known = self.accounts.contains_key(provider) || [OLLAMA.0, FAKE].contains(&provider);
        let name = if of_provider && is_known { provider.to_owned() } else { chosen };
        self.account_named(role, name)
    }

    /// The account of a role that would use the one of this name: the role's own endpoint and key come first.
    #[must_use]
    pub fn account_named(&self, role: ModelRole, name: String) -> Account {
        let own = |field: &str| self.entries.get(&format!("{}.{field}", role.name()));
        let key = match own("api_key") {
            Some(Entry { value: Value::Secret(secret), origin }) => Some(ApiKey::Set(secret.clone(), origin.clone())),
            _ => None,
        };
        let shared = self.accounts.get(&name);
        // what its operator lets through is said under the role's name, as messages have it; server and key are never taken from there
        let let_through = |others: Option<&Account>| -> Vec<String> {
            let own = self.accounts.get(role.name());
            own.into_iter().chain(others).flat_map(|account| account.parameters.iter().cloned()).collect()
        };
        match (own("base_url"), key) {
            (Some(Entry { value: Value::Url(url), .. }), key) => Account {
                base_url: Some(url.clone()),
                key: key.unwrap_or(ApiKey::None),
                parameters: let_through(None),
                ..Account::named(role.name().to_owned())
            },
            (_, Some(key)) => Account {
                base_url: shared.and_then(|account| account.base_url.clone()),
                key,
                // it is the same server
                parameters: let_through(shared),
                ..Account::named(role.name().to_owned())
            },
            (_, None) => self.shared_account(name),
        }
    }

    /// The account of a name, whatever roles have of their own; without a server where nobody has configured it.
    #[must_use]
    pub fn shared_account(&self, name: String) -> Account {
        self.accounts.get(&name).cloned().unwrap_or_else(|| {
            // without an [accounts.ollama] it is the one of this machine
            let base_url = (name == OLLAMA.0).then(|| OLLAMA.1.to_owned());
            Account { base_url, ..Account::named(name) }
        })
    }
}

fn run(read: &Read<'_>) -> RunSettings {
    RunSettings {
        dataset: read.maybe_text("run.dataset"),
        preset: read.text("run.preset"),
        sampler: read.text("run.sampler"),
        seed: read.maybe_text("run.seed"),
        limit: read.whole("run.limit"),
        sample: read.whole("run.sample"),
        sample_total: read.whole("run.sample_total"),
        per_bank: read.whole("run.per_bank"),
        max_banks: read.whole("run.max_banks"),
        max_sessions: read.whole("run.max_sessions"),
        category: read.list("run.category"),
        exclude_category: read.list("run.exclude_category"),
        facet: read.list("run.facet"),
        exclude_facet: read.list("run.exclude_facet"),
        system: read.text("run.system"),
        top_k: read.whole("run.top_k").unwrap_or_default(),
        scenario: read.text("run.scenario"),
        max_recalls: read.whole("run.max_recalls").unwrap_or_default(),
        multi_query: read.whole("run.multi_query").unwrap_or_default(),
        answerer: read.text("run.answerer"),
        judge: read.list("run.judge"),
        votes: read.whole("run.votes").unwrap_or_default(),
        rubric: read.maybe_text("run.rubric"),
        scorer: read.list("run.scorer"),
        headline: read.maybe_text("run.headline"),
        controls: read.flag("run.controls"),
        canaries: read.flag("run.canaries"),
        concurrency: read.whole("run.concurrency"),
        retries: read.whole("run.retries").unwrap_or_default(),
        outage_timeout: read.whole("run.outage_timeout"),
        latency_probe: read.whole("run.latency_probe").unwrap_or_default(),
        latency_probe_rate: read.list("run.latency_probe_rate"),
        pool: read.text("run.pool"),
        max_cost: read.usd("run.max_cost"),
        max_usage: read.usage("run.max_cost"),
        max_cost_per_day: read.usd("run.max_cost_per_day"),
        max_cost_by_phase: Phase::ALL
            .into_iter()
            .filter_map(|phase| Some((phase, read.usd(&format!("run.max_cost_{}", phase.name()))?)))
            .collect(),
        max_rpm: read.whole("run.max_rpm"),
        max_tpm: read.whole("run.max_tpm"),
        // a cap on usage holds without prices
        unpriced_ok: read.flag("run.unpriced_ok") || read.usage("run.max_cost").is_some(),
        cache: CacheScope::from_name(&read.text("run.cache")).unwrap_or_default(),
    }
}

fn role(read: &Read<'_>, role: ModelRole) -> RoleSettings {
    RoleSettings {
        temperature: read.number(&format!("{}.temperature", role.name())).unwrap_or_default(),
        max_output_tokens: read.whole(&format!("{}.max_output_tokens", role.name())).unwrap_or_default(),
        params: read.maybe_text(&format!("{}.params", role.name())),
    }
}

/// Section `[allow]`. Hosts are compared in lower case.
fn allow(entries: &Entries, problems: &mut Vec<Problem>) -> SystemPolicy {
    let read = Read(entries);
    let mut systems: Vec<String> = read.list("allow.systems").iter().map(|hash| hash.to_ascii_lowercase()).collect();
    let any = systems.iter().any(|word| word == ANY_SYSTEM);
    systems.retain(|word| word != ANY_SYSTEM);
    let mut wrong = |key: &str, found: &str, expected: &str| {
        let place = entries.get(key).map(|entry| entry.origin.to_string()).unwrap_or_default();
        let (key, found, expected) = (key.to_owned(), found.to_owned(), expected.to_owned());
        problems.push(Problem::BadValue { place, key, found, expected });
    };
    for hash in systems.iter().filter(|hash| Sha256Hash::from_hex(hash).is_none()) {
        wrong("allow.systems", hash, "hashes that `bench-coord systems hash FILE` prints, or \"any\"");
    }
    let hosts = read.list("allow.hosts").iter().map(|host| host.to_ascii_lowercase()).collect();
    let mut secrets = Vec::new();
    for pair in read.list("allow.secrets") {
        match pair.rsplit_once('@').filter(|(secret, host)| !secret.is_empty() && !host.is_empty()) {
            Some((secret, host)) => secrets.push(format!("{secret}@{}", host.to_ascii_lowercase())),
            None => wrong("allow.secrets", &pair, "a variable or file with the host that it may go to, NAME@host"),
        }
    }
    SystemPolicy {
        any,
        systems,
        commands: read.list("allow.commands"),
        images: read.list("allow.images"),
        variables: read.list("allow.variables"),
        files: read.list("allow.files"),
        hosts,
        secrets,
    }
}

/// The word that allows everything.
const ANY_SYSTEM: &str = "any";

/// A majority needs an odd number of votes.
fn check_votes(entries: &Entries, problems: &mut Vec<Problem>) {
    if let Some(Entry { value: Value::Whole(votes), origin }) = entries.get("run.votes")
        && votes % 2 == 0
    {
        let (place, found) = (origin.to_string(), votes.to_string());
        problems.push(Problem::BadValue { place, key: "run.votes".into(), found, expected: "an odd number".into() });
    }
}

fn check_accounts(entries: &Entries, accounts: &BTreeMap<String, Account>, problems: &mut Vec<Problem>) {
    for role in ModelRole::ALL {
        let key = format!("{}.account", role.name());
        if let Some(Entry { value: Value::Text(name), origin }) = entries.get(&key)
            && !accounts.contains_key(name)
        {
            problems.push(Problem::UnknownAccount {
                place: origin.to_string(),
                key,
                account: name.clone(),
                nearest: within_two(accounts.keys().map(String::as_str), |known| distance(name, known)),
                known: accounts.keys().cloned().collect(),
            });
        }
    }
}

/// Reads entries by type. Settings with a default are always there (a test holds the default file to the schema), and the
/// layers have checked every type, so the fall-backs of the callers above are never taken.
struct Read<'e>(&'e Entries);

impl Read<'_> {
    fn value(&self, key: &str) -> Option<&Value> {
        self.0.get(key).map(|entry| &entry.value)
    }

    fn maybe_text(&self, key: &str) -> Option<String> {
        match self.value(key)? {
            Value::Text(text) | Value::Url(text) => Some(text.clone()),
            _ => None,
        }
    }

    fn text(&self, key: &str) -> String {
        self.maybe_text(key).unwrap_or_default()
    }

    fn path(&self, key: &str) -> Option<PathBuf> {
        match self.value(key)? {
            Value::Path(path) => Some(path.clone()),
            _ => None,
        }
    }

    fn list(&self, key: &str) -> Vec<String> {
        match self.value(key) {
            Some(Value::List(items)) => items.clone(),
            _ => Vec::new(),
        }
    }

    fn whole<T: TryFrom<i64>>(&self, key: &str) -> Option<T> {
        match self.value(key)? {
            Value::Whole(number) => T::try_from(*number).ok(),
            _ => None,
        }
    }

    fn number(&self, key: &str) -> Option<f64> {
        match self.value(key)? {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    fn flag(&self, key: &str) -> bool {
        matches!(self.value(key), Some(Value::Bool(true)))
    }

    fn duration(&self, key: &str) -> Duration {
        self.maybe_duration(key).unwrap_or_default()
    }

    fn maybe_duration(&self, key: &str) -> Option<Duration> {
        match self.value(key)? {
            Value::Duration(duration) => Some(*duration),
            _ => None,
        }
    }

    fn usage(&self, key: &str) -> Option<UsageCap> {
        match self.value(key)? {
            Value::Usage(cap) => Some(*cap),
            _ => None,
        }
    }

    fn usd(&self, key: &str) -> Option<PicoUsd> {
        match self.value(key)? {
            Value::Usd(amount) => Some(*amount),
            _ => None,
        }
    }
}
