//! Who executes a run: this process, or the workers of a cluster. The verbs do not care which.

use std::{pin::pin, sync::Arc, time::Duration};

use bench_proto::{
    CLUSTER_DOMAIN,
    ids::{Role, RunId, RunNo},
};
use bench_settings::signals::Interrupts;
use bench_store::{RunRow, Store};
use futures::FutureExt as _;
use tokio_util::sync::CancellationToken;

use super::{
    client::{Following, spawn_planner},
    local::{LocalRun, STATE_POLL, hold},
    missing_plan::planner_if_missing,
    probe_turns::{ProbeTurn, ProbeTurns},
    rest::RunEnd,
};
use crate::{
    app::{App, Deployment},
    cli::{Display, OutputArgs},
    display,
    exit::CliError,
    planning::planner::Planner,
    standing::{domains::LOCAL_DOMAIN, lock::OwnerLock, row_of},
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
            Self::Owner(lock) => match view.begin(store.as_ref(), run.run_no).await {
                Ok(Turn::Come(probe_turn)) => {
                    let telemetry = app.telemetry()?;
                    let local = LocalRun {
                        store: Arc::clone(store),
                        queue: app.open_queue().await?,
                        environment: app.worker_environment(&run.spec, telemetry)?,
                        slots: view.part_of_slots(app.slots(&run.spec)),
                        drain: app.drain(),
                        bank_bytes: app.settings().worker.bank_bytes() / view.at_once.max(1) as u64,
                    };
                    local.own(run, lock, planner, (view.interrupts, probe_turn)).await
                }
                Ok(Turn::Gone(end)) => Ok(end),
                Err(error) => Err(error),
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

/// What came of waiting for the turn of a run.
enum Turn {
    /// It begins.
    Come(ProbeTurn),
    /// It came to rest before that.
    Gone(RunEnd),
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

    /// Waits until a run may begin beside the others, unless the person leaves, or somebody holds or ends it before that.
    async fn begin(&self, store: &dyn Store, run: RunNo) -> Result<Turn, CliError> {
        let (mut turn, mut waiting) = (pin!(self.turns.begin()), None);
        loop {
            tokio::select! {
                biased;
                () = self.interrupts.stop.cancelled() => {
                    return hold(store, run, self.interrupts).await.map(Turn::Gone);
                }
                own = &mut turn => return Ok(Turn::Come(own)),
                () = tokio::time::sleep(STATE_POLL) => {}
            }
            let row = row_of(store, run, &mut waiting).await?;
            if let Some(end) = row.as_ref().and_then(RunEnd::of_row) {
                return Ok(Turn::Gone(end));
            }
        }
    }

    /// Slots of one of the runs.
    fn part_of_slots(&self, slots: Vec<(Role, usize)>) -> Vec<(Role, usize)> {
        slots.into_iter().map(|(role, all)| (role, all.div_ceil(self.at_once.max(1)))).collect()
    }
}

#[cfg(test)]
mod tests {
    use bench_store::{CANCELLED_NOW, RunState, conformance};

    use super::*;

    #[tokio::test]
    async fn p23_a_run_that_waits_for_its_turn_hears_what_becomes_of_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let store = store.as_ref();
        let run = store.create_run(&conformance::new_run("r")).await.expect("is created");
        let interrupts = Interrupts::default();
        let watching = Watching {
            display: Display::None,
            worker_timeout: Duration::from_secs(1),
            interrupts: &interrupts,
            at_once: 8,
            turns: Arc::default(),
        };
        let Ok(Turn::Come(mut other)) = watching.begin(store, run).await else { panic!("nobody is there") };
        assert!(other.may_probe(), "it is alone");
        for (to, reason, end) in [
            (RunState::Paused, "paused by a user", RunEnd::Paused { reason: "paused by a user".to_owned() }),
            (RunState::Cancelled, CANCELLED_NOW, RunEnd::Cancelled { now: true }),
        ] {
            let from = [RunState::Running, RunState::Paused];
            assert!(store.set_run_state(run, &from, to, Some(reason)).await.expect("is set"));
            let turn = watching.begin(store, run).await;
            assert!(matches!(turn, Ok(Turn::Gone(of_row)) if of_row == end), "{reason}");
        }
        interrupts.stop.cancel();
        assert!(matches!(watching.begin(store, run).await, Ok(Turn::Gone(RunEnd::Paused { .. }))), "the person leaves");
    }
}
