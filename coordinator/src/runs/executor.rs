//! Who executes a run: this process, or the workers of a cluster. The verbs do not care which.

use std::{sync::Arc, time::Duration};

use bench_proto::{
    CLUSTER_DOMAIN,
    ids::{Role, RunId},
};
use bench_settings::signals::Interrupts;
use bench_store::{RunRow, Store};
use futures::FutureExt as _;
use tokio_util::sync::CancellationToken;

use super::{
    client::{Following, spawn_planner},
    ending::RunEnd,
    local::{LocalRun, hold},
    probe_turns::{Place, ProbeTurns},
    resume::planner_if_missing,
};
use crate::{
    app::{App, Deployment},
    cli::{Display, OutputArgs},
    display,
    exit::CliError,
    planning::planner::Planner,
    standing::{domains::LOCAL_DOMAIN, lock::OwnerLock},
};

/// Who executes a run.
pub(crate) enum RunExecutor {
    /// This process executes the run, and holds its lock.
    Owner(OwnerLock),
    /// Whoever serves and works there.
    Cluster,
}

impl RunExecutor {
    /// The executor of a run by the URLs of this process.
    ///
    /// # Errors
    /// Exit 2 when another process owns the run, or the URLs do not fit together.
    pub(crate) fn for_run(app: &App, run: &RunId) -> Result<Self, CliError> {
        match app.deployment()? {
            Deployment::Cluster => Ok(Self::Cluster),
            Deployment::Local => {
                let file = app.store_file().ok_or_else(|| CliError::usage("local runs need a sqlite: store"))?;
                Ok(Self::Owner(OwnerLock::take(&file, run)?))
            }
        }
    }

    /// Whether others do the work.
    #[must_use]
    pub(crate) const fn is_cluster(&self) -> bool {
        matches!(self, Self::Cluster)
    }

    /// A run stays where it began: its tasks are dispatched there (P21).
    ///
    /// # Errors
    /// Exit 2 with the way to reach it.
    pub(crate) fn check_domain(&self, run: &RunRow) -> Result<(), CliError> {
        if run.domain == self.domain() {
            return Ok(());
        }
        let queue = if self.is_cluster() { "memory:" } else { "amqp://…" };
        Err(CliError::usage(format!("run {} belongs to the domain '{}': use --queue {queue}", run.run_id, run.domain)))
    }

    /// The queue domain of its runs (P21).
    #[must_use]
    pub(crate) const fn domain(&self) -> &'static str {
        match self {
            Self::Owner(_) => LOCAL_DOMAIN,
            Self::Cluster => CLUSTER_DOMAIN,
        }
    }

    /// Executes a run that is in state `running` until it is at rest, or looks on while others do, with its progress on display.
    ///
    /// # Errors
    /// What that meets; the run stays resumable.
    pub(crate) async fn execute(
        &self,
        app: &App,
        store: &Arc<dyn Store>,
        run: &RunRow,
        planner: Option<Planner>,
        view: &Watching<'_>,
    ) -> Result<RunEnd, CliError> {
        let stop = CancellationToken::new();
        let progress = display::follow(Arc::clone(store), run.run_no, view.display, stop.clone());
        let end = match self {
            Self::Owner(lock) => match view.begin().await {
                Some(place) => {
                    let telemetry = app.telemetry()?;
                    let local = LocalRun {
                        store: Arc::clone(store),
                        queue: app.open_queue().await?,
                        environment: app.worker_environment(&run.spec, telemetry)?,
                        slots: view.part_of_slots(app.slots(&run.spec)),
                        drain: app.drain(),
                        bank_bytes: app.settings().worker.bank_bytes() / view.at_once.max(1) as u64,
                    };
                    local.own(run, lock, planner, (view.interrupts, place)).await
                }
                None => hold(store.as_ref(), run.run_no, view.interrupts).await,
            },
            Self::Cluster => {
                let planning = planner.map(|planner| spawn_planner(Arc::clone(store), planner));
                let following = Following::new(store, 1, view.worker_timeout, view.interrupts);
                following
                    .follow(run, planning, &|row| {
                        async move { planner_if_missing(app, store.as_ref(), &row).await }.boxed()
                    })
                    .await
            }
        };
        stop.cancel();
        let _ = progress.await;
        end
    }
}

/// How a person looks on.
pub(crate) struct Watching<'a> {
    /// How progress is shown.
    pub display: Display,
    /// `--worker-timeout`: how long nobody may work on a cluster's run.
    pub worker_timeout: Duration,
    /// Signals.
    pub interrupts: &'a Interrupts,
    /// Runs that this process executes at the same time, each with its part of the slots.
    pub at_once: usize,
    /// When each of them is probed.
    pub turns: Arc<ProbeTurns>,
}

impl<'a> Watching<'a> {
    /// As the flags of a verb say.
    pub(crate) fn new(output: &OutputArgs, interrupts: &'a Interrupts) -> Self {
        Self {
            display: output.display,
            worker_timeout: Duration::from_secs(output.worker_timeout),
            interrupts,
            at_once: 1,
            turns: Arc::default(),
        }
    }

    /// Waits until a run may begin beside the others; nothing where the person leaves before that.
    async fn begin(&self) -> Option<Place> {
        tokio::select! {
            place = self.turns.begin() => Some(place),
            () = self.interrupts.stop.cancelled() => None,
        }
    }

    /// Slots of one of the runs.
    fn part_of_slots(&self, slots: Vec<(Role, usize)>) -> Vec<(Role, usize)> {
        slots.into_iter().map(|(role, all)| (role, all.div_ceil(self.at_once.max(1)))).collect()
    }
}
