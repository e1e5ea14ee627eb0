//! From settings to what a process brings to its runs: accounts, HTTP client, limits. The same for a worker process and for
//! a run inside the coordinator's own process.

use std::{collections::BTreeMap, sync::Arc};

use bench_models::{
    backoff::BackoffSettings,
    caller::CallSettings,
    gates::Gates,
    openai::{HttpSettings, SharedHttp},
    registry::Account,
};
use bench_proto::{failure::Failure, ids::Role};
use bench_settings::{ExtraKey, ModelRole, Settings};
use bench_store::PaceLimits;
use bench_systems::{
    BuildContext, Embeddings,
    adapter::{self, AdapterContext},
    chat::HttpChats,
    embed::HttpEmbeddings,
    policy::Policy,
    registry::SYSTEMS,
};
use bench_telemetry::spans::SpanSink;

use crate::meter_place::MeterPlace;

/// What a process brings to the runs it works on; nothing of it is part of a fingerprint.
pub struct WorkerEnvironment {
    /// Accounts by name: base URL and key belong together (P32).
    pub accounts: BTreeMap<String, Account>,
    /// The HTTP client of the process.
    pub http: SharedHttp,
    /// One limiter per endpoint, account and limit group.
    pub gates: Gates,
    /// Delays between attempts and the longest wait in place; `retries` is each run's own.
    pub calls: CallSettings,
    /// What built-in memory systems share (index cache).
    pub systems: BuildContext,
    /// Where traces go; nobody traces without it.
    pub spans: Option<Arc<dyn SpanSink>>,
    /// Where its memory systems' own calls are let through.
    pub meter: MeterPlace,
}

/// Slots for tasks of a run in its owner's process: the call limiter, not the slots, finds the right number of calls in
/// flight, and tasks that only compute make large commits together.
pub const LOCAL_SLOTS: usize = 512;
/// Slots for retaining: whole banks, each with its own memory.
pub const RETAIN_SLOTS: usize = 16;
/// Slots of a role in a worker process, when nobody says otherwise.
pub const WORKER_SLOTS: usize = 64;

/// Settings that memory systems bring along.
#[must_use]
pub fn extra_keys() -> Vec<ExtraKey> {
    let of_systems = SYSTEMS
        .iter()
        .flat_map(|entry| entry.settings)
        .map(|setting| ExtraKey { name: setting.name.to_owned(), default: Some(setting.default.to_owned()) });
    let mut keys: Vec<ExtraKey> = of_systems.collect();
    // two systems may share a setting
    keys.sort_by(|a, b| a.name.cmp(&b.name));
    keys.dedup_by(|a, b| a.name == b.name);
    keys.push(ExtraKey { name: adapter::URL.to_owned(), default: None });
    keys.push(ExtraKey { name: adapter::dispositions::DISPOSITIONS.to_owned(), default: None });
    keys.push(ExtraKey { name: adapter::MODE.to_owned(), default: Some("raw".to_owned()) });
    // an adapter's file says which settings it has: names that it lacks are refused by who reads it
    let sections = adapter::shipped::SHIPPED.iter().map(|(name, _)| format!("{name}.*"));
    keys.extend(sections.map(|name| ExtraKey { name, default: None }));
    keys
}

/// Settings that a worker process takes: those of memory systems. It opens no dataset, and a file that it shares with a coordinator
/// has those of datasets too.
#[must_use]
pub fn keys_of_worker() -> Vec<ExtraKey> {
    let mut keys = extra_keys();
    keys.push(ExtraKey { name: "*".to_owned(), default: None });
    keys
}

/// Keeps other processes of the same user, such as the systems that this one starts, from reading its environment and its memory. It
/// leaves no core either. Whoever is root reads both.
pub fn keep_to_itself() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable) {
        tracing::warn!("other processes of this user can read the environment of this one: {error}");
    }
}

/// Every account of the settings that calls can be made with: a base URL, and a key unless the server is a local one.
#[must_use]
pub fn usable_accounts(settings: &Settings) -> BTreeMap<String, Account> {
    let of_roles = ModelRole::ALL.map(|role| settings.account_of(role));
    let named = settings.accounts.values().cloned();
    let accounts = named.chain(of_roles).filter_map(|account| {
        let key = account.key.secret().cloned();
        let limits = PaceLimits { rpm: account.rpm, tpm: account.tpm };
        let usable = Account {
            name: account.name,
            base_url: account.base_url?,
            key,
            limits,
            counts_used_tokens: account.tpm_counts_used,
            asks_stream_usage: account.stream_usage,
            parameters: account.parameters,
        };
        (usable.key.is_some() || usable.is_local()).then(|| (usable.name.clone(), usable))
    });
    accounts.collect()
}

/// What memory systems may do in a process (P42).
#[derive(Debug, Clone)]
pub struct Rights {
    /// What adapters may do.
    pub policy: Policy,
    /// Systems that are processes work in folders of their own.
    pub apart: bool,
}

impl Rights {
    /// Of a worker: what its settings allow.
    #[must_use]
    pub fn of_worker(settings: &Settings) -> Self {
        Self { policy: Policy::new(settings.allow.clone()), apart: true }
    }
}

/// What a process with these settings and accounts brings to its runs.
///
/// # Errors
/// When TLS cannot be set up.
pub fn environment(
    settings: &Settings,
    accounts: BTreeMap<String, Account>,
    rights: Rights,
) -> Result<Arc<WorkerEnvironment>, Failure> {
    traced_environment(settings, accounts, rights, None)
}

/// The same for a process that has a collector.
///
/// # Errors
/// As [`environment`].
pub fn traced_environment(
    settings: &Settings,
    accounts: BTreeMap<String, Account>,
    rights: Rights,
    spans: Option<Arc<dyn SpanSink>>,
) -> Result<Arc<WorkerEnvironment>, Failure> {
    let (models, backoff) = (&settings.models, &settings.backoff);
    let http = HttpSettings {
        request_timeout: models.timeout,
        connect_timeout: models.connect_timeout,
        ..HttpSettings::default()
    };
    let http = SharedHttp::new(http)?;
    let embeddings = HttpEmbeddings::new(accounts.clone(), http.clone());
    let systems = BuildContext {
        policy: Arc::new(rights.policy),
        adapters: AdapterContext {
            home: Some(settings.home.clone()),
            apart: rights.apart,
            ..AdapterContext::default()
        },
        embeddings: Embeddings::Accounts(Arc::new(embeddings)),
        chats: Some(Arc::new(HttpChats::new(accounts.clone(), http.clone()))),
        ..BuildContext::default()
    };
    Ok(Arc::new(WorkerEnvironment {
        accounts,
        http,
        gates: Gates::new(models.max_concurrency as usize),
        calls: CallSettings {
            backoff: BackoffSettings {
                initial_interval: backoff.initial_interval,
                multiplier: backoff.multiplier as f32,
                randomization_factor: backoff.randomization_factor as f32,
                max_interval: backoff.max_interval,
            },
            ..CallSettings::default()
        },
        systems,
        spans,
        meter: MeterPlace::of_settings(settings)?,
    }))
}

/// Slots of a worker process for its roles: `chosen` for each, or a default by role.
#[must_use]
pub fn worker_slots(roles: &[Role], chosen: Option<usize>) -> Vec<(Role, usize)> {
    let default = |role: &Role| if *role == Role::Retain { RETAIN_SLOTS } else { WORKER_SLOTS };
    roles.iter().map(|role| (*role, chosen.unwrap_or_else(|| default(role)).max(1))).collect()
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    #[test]
    fn no_process_of_the_same_user_reads_this_one() {
        use rustix::process::{DumpableBehavior, dumpable_behavior};
        super::keep_to_itself();
        assert_eq!(dumpable_behavior().expect("is told"), DumpableBehavior::NotDumpable);
    }
}
