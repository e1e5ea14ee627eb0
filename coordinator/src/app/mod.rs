//! What every verb needs: settings, store, queue, accounts, and what memory systems may do here.
//!
//! In come the command line, the settings file and the environment; out go opened services. Each is opened by the first who asks
//! and closed at the end of the verb.
//!
//! | module | question |
//! |---|---|
//! | this one | which store, which queue, which signals? |
//! | `flags` | which settings do the flags of a verb set? |
//! | [`accounts`] | with which server and key is a model called? |
//! | [`reach`] | do these servers answer? |
//! | [`systems`] | which memory system is meant, and may it run here? |
//! | `simulator` | where is a model that is simulated? |
//! | [`home`] | is the home that is acted on this user's own? |
//! | `trusted` | which adapters has a person named here (P42)? |

pub(crate) mod accounts;
mod flags;
pub(crate) mod home;
pub(crate) mod reach;
mod simulator;
pub(crate) mod systems;
mod trusted;

use std::{
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bench_proto::{ids::Role, spec::RunSpec};
use bench_queue::{Queue, QueueError};
use bench_settings::{CommandLine, ExtraKey, Settings, signals::Interrupts};
use bench_store::{Access, Store};
use bench_worker::{
    environment::{LOCAL_SLOTS, RETAIN_SLOTS, WorkerEnvironment},
    traces::ProcessTelemetry,
    transport,
};
use tokio::sync::OnceCell;

use crate::{cli::Cli, exit::CliError};

/// Longest wait for the store to close: one that is out of reach does not keep a person waiting.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);

/// Where runs are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deployment {
    /// In the process that submitted them.
    Local,
    /// By workers that a coordinator looks after.
    Cluster,
}

/// A queue's error for people.
pub(crate) fn queue_error(error: QueueError) -> CliError {
    match &error {
        QueueError::Setup(_) | QueueError::Refused(_) => CliError::usage_of(error),
        QueueError::Unavailable(_) | QueueError::Closed => {
            CliError::infrastructure(format!("{error}; is the broker up? `bench-coord doctor` looks at everything"))
                .because(error)
        }
    }
}

/// Settings that datasets and memory systems bring along. Defaults of datasets stay with them: two that share a section may have
/// different ones.
pub(crate) fn extra_keys() -> Vec<ExtraKey> {
    let of_datasets = bench_datasets::setting_names().into_iter().map(|name| ExtraKey { name, default: None });
    of_datasets.chain(bench_worker::environment::extra_keys()).collect()
}

/// A command's surroundings.
pub(crate) struct App {
    settings: Settings,
    /// What the verb opens the store for.
    access: Access,
    /// The class that the command line names.
    class: Option<systems::OfClass>,
    /// Settings of a fork's command line that the memory system of its source may have.
    set_of_source: Vec<String>,
    dataset_lies: flags::DatasetLies,
    /// The store, once a verb has opened it.
    store: OnceCell<Arc<dyn Store>>,
    /// The ways to a collector, once a verb does something that is worth looking at.
    telemetry: OnceLock<ProcessTelemetry>,
    /// The simulator of `fake` models, once one is called.
    simulator: OnceLock<simulator::Simulator>,
    interrupts: OnceLock<Interrupts>,
    /// Whether the verb ends in its own way when it is interrupted.
    listens: AtomicBool,
    /// Whether this process has made the home.
    home_is_new: AtomicBool,
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
            flags: flags::given(cli),
        };
        let mut extra = extra_keys();
        extra.extend(systems::section_of_file(cli, &line));
        let class = systems::OfClass::from_line(cli, &line);
        extra.extend(class.iter().flat_map(systems::OfClass::keys));
        let set_of_source = systems::set_of_source(cli, &line, &extra);
        extra.extend(set_of_source.iter().map(|name| ExtraKey { name: name.clone(), default: None }));
        let settings = bench_settings::from_process(line, extra).map_err(CliError::usage_of)?;
        Ok(Self {
            settings,
            access: home::access(&cli.verb),
            class,
            set_of_source,
            dataset_lies: flags::dataset_lies(cli),
            store: OnceCell::new(),
            telemetry: OnceLock::new(),
            simulator: OnceLock::new(),
            interrupts: OnceLock::new(),
            listens: AtomicBool::new(false),
            home_is_new: AtomicBool::new(false),
        })
    }

    /// The effective settings.
    #[must_use]
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Settings that the command line of a fork gives and that only the memory system of its source can have, by their dotted names.
    #[must_use]
    pub(crate) fn set_of_source(&self) -> &[String] {
        &self.set_of_source
    }

    /// What flags say about the dataset of a run that exists.
    #[must_use]
    pub(crate) fn dataset_lies(&self) -> &flags::DatasetLies {
        &self.dataset_lies
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
        let file = self.settings.store_url.strip_prefix("sqlite:")?;
        Some(PathBuf::from(file.strip_prefix("//").unwrap_or(file)))
    }

    /// The store, opened by the first who asks and closed at the end of the verb. A local one that is missing is made by verbs that
    /// begin something; to all others it holds nothing.
    ///
    /// # Errors
    /// With what to do.
    pub(crate) async fn open_store(&self) -> Result<Arc<dyn Store>, CliError> {
        bench_queue::check(&self.settings.queue_url).map_err(queue_error)?;
        transport::warn(&self.settings, transport::to_store(&self.settings));
        let open = || {
            if self.begins() {
                self.begin_home(true);
            }
            bench_store::open_for(&self.settings.store_url, self.access)
        };
        let store = self.store.get_or_try_init(open).await?;
        Ok(Arc::clone(store))
    }

    /// Signals of the person at the terminal, which are the verb's business from now on.
    pub(crate) fn interrupts(&self) -> Interrupts {
        self.listens.store(true, Ordering::SeqCst);
        self.signals().clone()
    }

    fn signals(&self) -> &Interrupts {
        // where none can be received, they end the process as ever
        self.interrupts.get_or_init(|| Interrupts::listen().unwrap_or_default())
    }

    /// Waits for a signal that is not the verb's business.
    pub(crate) async fn interrupted(&self) {
        self.signals().stop.cancelled().await;
        if self.listens.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }

    /// Where runs are executed, by the URLs of store and queue.
    ///
    /// # Errors
    /// Exit 2 for a combination that cannot work, with the reason.
    pub(crate) fn deployment(&self) -> Result<Deployment, CliError> {
        bench_queue::check(&self.settings.queue_url).map_err(queue_error)?;
        // of what is no store there is nothing to say about a queue
        bench_store::check(&self.settings.store_url)?;
        let in_process = self.settings.queue_url.starts_with("memory:");
        match (self.store_file().is_some(), in_process) {
            (true, true) => Ok(Deployment::Local),
            (false, false) => Ok(Deployment::Cluster),
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

    /// Whether the verb begins something, and makes a store and a home for it.
    pub(crate) fn begins(&self) -> bool {
        self.access == Access::Make
    }

    /// Connects to the queue.
    ///
    /// # Errors
    /// Exit 2 for a combination that cannot work and for a broker that refuses, 4 for one that cannot be reached.
    pub(crate) async fn open_queue(&self) -> Result<Arc<dyn Queue>, CliError> {
        self.deployment()?;
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

    /// What this process brings to a run.
    ///
    /// # Errors
    /// Exit 2 when an account is missing.
    pub(crate) fn worker_environment(
        &self,
        spec: &RunSpec,
        telemetry: &ProcessTelemetry,
    ) -> Result<Arc<WorkerEnvironment>, CliError> {
        transport::warn_of_run(&self.settings, spec);
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

    /// Sends what is left for a collector, and closes the store: a local one is a single file then. A home that was made for nothing
    /// goes.
    pub(crate) async fn close(self) {
        if let Some(telemetry) = self.telemetry.into_inner() {
            telemetry.close().await;
        }
        if let Some(store) = self.store.into_inner()
            && tokio::time::timeout(CLOSE_WITHIN, store.close()).await.is_err()
        {
            tracing::debug!("the store did not close in time");
        }
        if self.home_is_new.load(Ordering::SeqCst) {
            // it stays where something is in it
            let _ = std::fs::remove_dir(&self.settings.home);
        }
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
