//! What people look at: the progress of a run, a question with all that is known of it
//! ([`question`]), and its time line ([`waterfall`]).
//!
//! Progress views all show the same snapshots: [`follow`] reads the run's row, a view prints it. To add one, copy the smallest file
//! here and add a line to [`view`].

mod bar;
mod json_lines;
mod plain;
pub(crate) mod question;
pub(crate) mod waterfall;

use std::{io::IsTerminal, path::PathBuf, sync::Arc, time::Duration};

use bench_proto::{CLUSTER_DOMAIN, ids::RunNo, session::SessionInfo};
use bench_store::{RunRow, Sessions, Store};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::Display,
    standing::{
        Standing, latency, outages,
        progress::{self, ProgressMeter, Snapshot},
        refused_calls, score,
        waiting::Waiting,
    },
};

/// A progress view. Everything goes to standard error.
pub(crate) trait View: Send {
    /// Time between two looks.
    fn every(&self) -> Duration;

    /// Shows a snapshot.
    fn show(&mut self, snapshot: &Snapshot);

    /// Takes down what would be in the way of the result.
    fn finish(&mut self);
}

/// The view for a choice; `None` shows nothing.
#[must_use]
pub(crate) fn view(display: Display) -> Option<Box<dyn View>> {
    let terminal = std::io::stderr().is_terminal();
    match display {
        Display::None => None,
        Display::JsonLines => Some(Box::new(json_lines::JsonLines)),
        Display::Bar => Some(Box::new(bar::Bar::new())),
        Display::Auto if terminal => Some(Box::new(bar::Bar::new())),
        Display::Auto | Display::Plain => Some(Box::new(plain::Plain::default())),
    }
}

/// Workers of the run's pool that are alive, and how many of them are busy; nothing for a run of one process.
async fn workers(store: &dyn Sessions, run: &RunRow) -> Option<(usize, usize)> {
    if run.domain != CLUSTER_DOMAIN {
        return None;
    }
    let sessions = store.open_sessions(CLUSTER_DOMAIN).await.ok()?;
    let of_pool = sessions
        .iter()
        .filter(|worker| worker.is_alive() && SessionInfo::from_json(&worker.info_json).pool == run.spec.limits.pool);
    Some(of_pool.fold((0, 0), |(alive, busy), worker| (alive + 1, busy + usize::from(worker.leased > 0))))
}

/// The rows of some runs.
async fn look(store: &dyn Store, runs: &[RunNo]) -> Option<Vec<RunRow>> {
    let mut rows = Vec::with_capacity(runs.len());
    for run in runs {
        rows.push(store.run(*run).await.ok()?);
    }
    Some(rows)
}

/// Shows a run's progress until stopped; the view is taken down before the returned task ends.
pub(crate) fn follow(
    store: Arc<dyn Store>,
    run: RunNo,
    display: Display,
    stop: CancellationToken,
) -> tokio::task::JoinHandle<()> {
    follow_all(store, vec![run], display, stop)
}

/// Shows the progress of several runs as if they were one.
pub(crate) fn follow_all(
    store: Arc<dyn Store>,
    runs: Vec<RunNo>,
    display: Display,
    stop: CancellationToken,
) -> tokio::task::JoinHandle<()> {
    show(store, runs, display, stop, |_| true)
}

/// The same for one who only looks on: runs of a local store may be nobody's, which is told by the locks beside its file.
pub(crate) fn look_on(
    store: Arc<dyn Store>,
    runs: Vec<RunNo>,
    display: Display,
    stop: CancellationToken,
    store_file: Option<PathBuf>,
) -> tokio::task::JoinHandle<()> {
    let works = move |run: &RunRow| matches!(Standing::of_run(run, store_file.as_deref()), Standing::Running { .. });
    show(store, runs, display, stop, works)
}

fn show(
    store: Arc<dyn Store>,
    runs: Vec<RunNo>,
    display: Display,
    stop: CancellationToken,
    somebody_works: impl Fn(&RunRow) -> bool + Send + 'static,
) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        let Some(mut view) = view(display) else { return };
        let mut meter = ProgressMeter::default();
        loop {
            // a look that fails is left out: progress never stops a run
            if let Some(rows) = look(store.as_ref(), &runs).await {
                let is_open = rows.iter().any(&somebody_works);
                if let Some(snapshot) = snapshot(store.as_ref(), &mut meter, rows).await {
                    view.show(&if is_open { snapshot } else { snapshot.of_nobody() });
                }
            }
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(view.every()) => {}
            }
        }
        view.finish();
    })
}

/// What is known of runs at this look.
async fn snapshot(store: &dyn Store, meter: &mut ProgressMeter, rows: Vec<RunRow>) -> Option<Snapshot> {
    let reported = score::reported(store, &rows).await;
    let refused_calls = refused_calls::of_runs(store, &rows).await.unwrap_or_default();
    let row = progress::together(rows)?;
    let mut snapshot = meter.look(&row);
    snapshot.workers = workers(store, &row).await;
    snapshot.outages = outages::away(store, &row).await.unwrap_or_default();
    snapshot.refused_calls = refused_calls;
    snapshot.latency_probe = latency::probing(store, &row).await.unwrap_or_default();
    if snapshot.outages.is_empty() && meter.is_still() {
        snapshot.waits = Waiting::read(store, &row).await.unwrap_or_default();
    }
    if reported.is_some() {
        (snapshot.score, snapshot.score_is_of_report) = (reported, true);
    }
    Some(snapshot)
}
