//! Pushes that nobody asks for: at the end of a run, and again later when the archive was away. Never a reason to lose a run.

use std::{sync::Arc, time::Duration};

use bench_report::archive::{ArchiveError, ArchivePlace, push::push};
use bench_store::{RunFilter, RunRow, RunState, Runs, Store};
use tokio_util::sync::CancellationToken;

use super::bundle;
use crate::{
    app::App,
    exit::{CliError, Exit},
    out,
};

/// Kind of the run event that says where a run is archived.
pub(crate) const ARCHIVED: &str = "archived";
/// Longest time that the end of a run waits for the archive.
const PATIENCE: Duration = Duration::from_secs(30);
/// Runs that are looked at for ones that are not archived yet.
const LOOK_BACK: u32 = 200;
/// Older runs that one command brings along.
const BROUGHT_ALONG: usize = 5;
/// How often a coordinator looks for runs that are not archived.
const EVERY: Duration = Duration::from_secs(5);

/// Brings a run into the archive and notes it.
///
/// # Errors
/// What the store or the archive meets.
pub(crate) async fn archive(
    app: &App,
    store: &dyn Store,
    place: &ArchivePlace,
    run: &RunRow,
) -> Result<String, CliError> {
    let folder = tempfile::tempdir()
        .map_err(|e| CliError::infrastructure(format!("no folder for the files of the archive: {e}")).because(e))?;
    let (entry, files) = bundle::files(app, store, run, folder.path()).await?;
    push(place, &entry, &files).await.map_err(|error| match error {
        // a person reads where
        ArchiveError::Store(what) => CliError::from(ArchiveError::Store(format!("{} ({what})", place.describe()))),
        other => other.into(),
    })?;
    store.add_event(run.run_no, ARCHIVED, place.describe()).await?;
    Ok(entry.folder)
}

/// Finished runs of this store that are not in this archive, oldest first; controls and restored ones are left out.
///
/// # Errors
/// What the store meets.
pub(crate) async fn missing(store: &dyn Runs, place: &ArchivePlace) -> Result<Vec<RunRow>, CliError> {
    let mut missing = Vec::new();
    for run in store.list_runs(&RunFilter { limit: Some(LOOK_BACK), ..RunFilter::default() }).await? {
        if run.state != RunState::Finished {
            continue;
        }
        let events = store.events(run.run_no).await?;
        let is_there =
            |kind: &str, message: &str| (kind == ARCHIVED && message == place.describe()) || kind == "restored";
        if !events.iter().any(|event| is_there(&event.kind, &event.message)) {
            missing.push(run);
        }
    }
    missing.reverse();
    Ok(missing)
}

/// Brings runs into the archive, one after the other; `done` hears of each with its folder. One that cannot be archived, whatever
/// whoever writes the store has made of it, holds up no other.
///
/// # Errors
/// What store and archive meet, at once; at the end what the first meets that was left out.
pub(crate) async fn archive_each(
    app: &App,
    store: &dyn Store,
    place: &ArchivePlace,
    runs: &[RunRow],
    mut done: impl FnMut(&RunRow, &str) + Send,
) -> Result<(), CliError> {
    let mut first = None;
    for run in runs {
        match archive(app, store, place, run).await {
            Ok(folder) => done(run, &folder),
            Err(away) if away.exit == Exit::Infrastructure => return Err(away),
            Err(refused) => {
                let told = CliError::new(refused.exit, format!("run {}: {}", run.run_id, refused.message));
                first.get_or_insert(told.because(refused));
            }
        }
    }
    first.map_or(Ok(()), Err)
}

/// At the end of a local run: brings it into the configured archive, and older ones that an earlier push could not bring.
pub(crate) async fn after_run(app: &App, store: &dyn Store, run: &RunRow) {
    if app.settings().archive_url.is_none() {
        return;
    }
    let work = async {
        let place = super::open(app, None)?;
        let folder = archive(app, store, &place, run).await?;
        out::note(&format!("archived: {}/{folder}", place.describe()));
        let older: Vec<RunRow> = missing(store, &place).await?.into_iter().take(BROUGHT_ALONG).collect();
        archive_each(app, store, &place, &older, |_, _| ()).await
    };
    let failed = match tokio::time::timeout(PATIENCE, work).await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.message,
        Err(_) => format!("no end after {} s", PATIENCE.as_secs()),
    };
    out::note(&format!(
        "not archived yet: {failed}; the result is in the store, the next run or `bench-coord archive push` brings it"
    ));
}

/// In a coordinator: brings every finished run into the configured archive, again and again until it is there.
pub(crate) async fn keep_archiving(app: Arc<App>, store: Arc<dyn Store>, stop: CancellationToken) {
    if app.settings().archive_url.is_none() {
        return;
    }
    let mut said: Option<String> = None;
    loop {
        let round = async {
            let place = super::open(&app, None)?;
            let runs = missing(store.as_ref(), &place).await?;
            archive_each(&app, store.as_ref(), &place, &runs, |run, _| tracing::info!(run = %run.run_id, "archived"))
                .await
        };
        let ended = tokio::select! {
            () = stop.cancelled() => return,
            ended = round => ended,
        };
        // said once, not every few seconds
        let trouble = ended.err().map(|error| error.message);
        if trouble.is_some() && trouble != said {
            tracing::warn!("archiving waits: {}", trouble.as_deref().unwrap_or_default());
        }
        said = trouble;
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}
