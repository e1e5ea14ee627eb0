//! Pushes that nobody asks for: at the end of a run, and again later when the archive was away. Never a reason to lose a run.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bench_report::archive::{
    ArchiveError, ArchivePlace, IndexEntry,
    matrix::{ARCHIVED_MATRIX_VERSION, ArchivedMatrix, push as push_matrix},
    push::{Pushed, push},
};
use bench_store::{RunFilter, RunRow, RunState, Runs, Store};
use tokio_util::sync::CancellationToken;

use super::{bundle, texts::kept_back};
use crate::{
    app::App,
    cli::ArchivedTexts,
    comparison::matrix::matrix_report,
    exit::{CliError, Exit},
    out, results,
    standing::group::RunsOfGroup,
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

/// A run that is in the archive.
pub(crate) struct Archived {
    /// Its folder there.
    pub(crate) folder: String,
    /// What a person should know of its texts.
    pub(crate) said: Option<String>,
}

/// Brings a run into the archive and notes it; `texts` is what was asked for.
///
/// # Errors
/// What the store or the archive meets.
pub(crate) async fn archive(
    app: &App,
    store: &dyn Store,
    place: &ArchivePlace,
    run: &RunRow,
    texts: Option<ArchivedTexts>,
) -> Result<Archived, CliError> {
    let folder = tempfile::tempdir()
        .map_err(|e| CliError::infrastructure(format!("no folder for the files of the archive: {e}")).because(e))?;
    let kept_back = kept_back(app, texts, &run.spec.dataset);
    let (entry, files) = bundle::files(app, store, run, folder.path(), kept_back.clone()).await?;
    let pushed = push(place, &entry, &files).await.map_err(|error| at(place, error))?;
    store.add_event(run.run_no, ARCHIVED, place.describe()).await?;
    let id = &run.run_id;
    let said = match (pushed, kept_back) {
        (Pushed::WasThereOtherwise { with_texts }, _) => Some(format!(
            "run {id} is there already {} its texts, and what is archived is never changed: take another archive for the other form",
            if with_texts { "with" } else { "without" }
        )),
        (_, Some(why)) => Some(format!(
            "run {id} is archived without the texts of its questions, memories and answers ({why}): figures, ids and verdicts are there, \
             and it cannot be restored from them; `archive push {id} --texts always` to an archive that nobody else reads"
        )),
        (_, None) => None,
    };
    Ok(Archived { folder: entry.folder, said })
}

/// An error of an archive with the place that it is about.
fn at(place: &ArchivePlace, error: ArchiveError) -> CliError {
    match error {
        // a person reads where
        ArchiveError::Store(what) => ArchiveError::Store(format!("{} ({what})", place.describe())).into(),
        other => other.into(),
    }
}

/// Brings the document of a matrix into the archive, once all of its runs have ended; returns its name.
///
/// # Errors
/// What the store or the archive meets.
pub(crate) async fn archive_matrix(
    app: &App,
    store: &dyn Store,
    place: &ArchivePlace,
    group: &RunsOfGroup,
) -> Result<Option<String>, CliError> {
    if !group.is_matrix() || group.runs.iter().any(|run| run.state != RunState::Finished) {
        return Ok(None);
    }
    let report = matrix_report(app, store, group).await?;
    let (mut runs, mut date) = (BTreeMap::new(), String::new());
    for run in &group.runs {
        let entry = IndexEntry::of_run(&run.spec, &results::summary_of(app, store, run).await?);
        let finished = entry.finished_at.as_deref().and_then(|at| at.get(..10)).unwrap_or_default();
        date = date.max(finished.to_owned());
        runs.insert(entry.run_id, entry.folder);
    }
    let matrix = ArchivedMatrix { matrix_version: ARCHIVED_MATRIX_VERSION, date, runs, report };
    let (name, _) = push_matrix(place, &matrix).await.map_err(|error| at(place, error))?;
    Ok(Some(name))
}

/// The matrices that some runs belong to, each once.
async fn matrices_of(store: &dyn Store, runs: &[RunRow]) -> Result<Vec<RunsOfGroup>, CliError> {
    let mut groups: Vec<RunsOfGroup> = Vec::new();
    for run in runs.iter().filter(|run| run.cell().is_some()) {
        let is_known = |group: &RunsOfGroup| group.runs.iter().any(|of| of.run_no == run.run_no);
        if groups.iter().any(is_known) {
            continue;
        }
        groups.extend(RunsOfGroup::around(store, Some(run.clone())).await?);
    }
    Ok(groups)
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

/// Brings runs into the archive, one after the other, and then the documents of the matrices that they belong to.
///
/// # Errors
/// As [`archive_runs`].
pub(crate) async fn archive_each(
    app: &App,
    store: &dyn Store,
    place: &ArchivePlace,
    (runs, texts): (&[RunRow], Option<ArchivedTexts>),
    mut done: impl FnMut(&Archived) + Send,
) -> Result<(), CliError> {
    let ended = archive_runs(app, store, place, (runs, texts), &mut done).await;
    if ended.as_ref().is_err_and(|away| away.exit == Exit::Infrastructure) {
        return ended;
    }
    for group in matrices_of(store, runs).await? {
        if let Some(folder) = archive_matrix(app, store, place, &group).await? {
            done(&Archived { folder, said: None });
        }
    }
    ended
}

/// Brings runs into the archive, one after the other; `done` hears of each with its folder. One that cannot be archived, whatever whoever
/// writes the store has made of it, holds up no other.
///
/// # Errors
/// What store and archive meet, at once; at the end what the first meets that was left out.
async fn archive_runs(
    app: &App,
    store: &dyn Store,
    place: &ArchivePlace,
    (runs, texts): (&[RunRow], Option<ArchivedTexts>),
    mut done: impl FnMut(&Archived) + Send,
) -> Result<(), CliError> {
    let mut first = None;
    for run in runs {
        match archive(app, store, place, run, texts).await {
            Ok(archived) => done(&archived),
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
        let archived = archive(app, store, &place, run, None).await?;
        out::note(&format!("archived: {}/{}", place.describe(), archived.folder));
        archived.said.iter().for_each(|said| out::note(said));
        let older: Vec<RunRow> = missing(store, &place).await?.into_iter().take(BROUGHT_ALONG).collect();
        archive_runs(app, store, &place, (&older, None), |_| ()).await
    };
    not_yet(tokio::time::timeout(PATIENCE, work).await, "the next run or `bench-coord archive push` brings it");
}

/// At the end of a local matrix: brings its document into the configured archive.
pub(crate) async fn after_matrix(app: &App, store: &dyn Store, group: &RunsOfGroup) {
    if app.settings().archive_url.is_none() {
        return;
    }
    let work = async {
        let place = super::open(app, None)?;
        if let Some(name) = archive_matrix(app, store, &place, group).await? {
            out::note(&format!("archived: {}/{name}", place.describe()));
        }
        Ok(())
    };
    let advice = format!("`bench-coord archive push {}` brings it", group.id);
    not_yet(tokio::time::timeout(PATIENCE, work).await, &advice);
}

/// Says why something is not in the archive yet.
fn not_yet(ended: Result<Result<(), CliError>, tokio::time::error::Elapsed>, advice: &str) {
    let failed = match ended {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.message,
        Err(_) => format!("no end after {} s", PATIENCE.as_secs()),
    };
    out::note(&format!("not archived yet: {failed}; the result is in the store, {advice}"));
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
            let told = |archived: &Archived| {
                tracing::info!(folder = %archived.folder, said = archived.said.as_deref(), "archived");
            };
            archive_each(&app, store.as_ref(), &place, (&runs, None), told).await
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
