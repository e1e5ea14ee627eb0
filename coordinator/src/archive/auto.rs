//! Pushes that nobody asks for: at the end of a run, and again later when the archive was away. Never a reason to lose a run.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bench_proto::{ids::RunNo, matrix::MatrixReport};
use bench_report::archive::{
    ArchiveError, ArchivePlace, IndexEntry,
    matrix::{ARCHIVED_MATRIX_VERSION, ArchivedMatrix, push as push_matrix},
    push::{Pushed, push},
};
use bench_store::{RunRow, Store};
use tokio_util::sync::CancellationToken;

use super::{
    bundle,
    noted::{ARCHIVED, ARCHIVED_MATRIX, Due, MatrixNotes},
    texts::kept_back,
};
use crate::{
    app::App,
    cli::ArchivedTexts,
    comparison::matrix::matrix_report,
    exit::{CliError, Exit},
    out, results,
    standing::group::RunsOfGroup,
};

/// Longest time that the end of a run waits for the archive.
const PATIENCE: Duration = Duration::from_secs(30);
/// Older runs, and documents of older matrices, that one command brings along.
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
    let kept_back = kept_back(app, texts, &run.spec.dataset)?;
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

/// Brings the document of a matrix into the archive and notes it; returns its name, `None` while a run of it is not
/// there: the document says where they lie. `report` is that of the matrix, where it is made already.
///
/// # Errors
/// What the store or the archive meets.
async fn archive_matrix(
    app: &App,
    store: &dyn Store,
    place: &ArchivePlace,
    group: &RunsOfGroup,
    report: Option<&MatrixReport>,
) -> Result<Option<String>, CliError> {
    let notes = MatrixNotes::read(store, place, group).await?;
    if !notes.waits_for.is_empty() {
        return Ok(None);
    }
    let report = match report {
        Some(report) => report.clone(),
        None => matrix_report(app, store, group).await?,
    };
    let (mut runs, mut date) = (BTreeMap::new(), String::new());
    for run in &group.runs {
        let entry = IndexEntry::of_run(&run.spec, &results::summary_of(app, store, run).await?);
        let finished = entry.finished_at.as_deref().and_then(|at| at.get(..10)).unwrap_or_default();
        date = date.max(finished.to_owned());
        runs.insert(entry.run_id, entry.folder);
    }
    let matrix = ArchivedMatrix { matrix_version: ARCHIVED_MATRIX_VERSION, date, runs, report };
    let (name, _) = push_matrix(place, &matrix).await.map_err(|error| at(place, error))?;
    for run in notes.in_no_document {
        store.add_event(run, ARCHIVED_MATRIX, place.describe()).await?;
    }
    Ok(Some(name))
}

/// Brings runs into the archive, one after the other, and then the documents of matrices; `done` hears of each with its
/// folder. What cannot be archived, whatever whoever writes the store has made of it, holds up nothing else.
///
/// # Errors
/// When store or archive are away, at once; at the end what the first meets that was left out.
pub(crate) async fn archive_each(
    app: &App,
    store: &dyn Store,
    place: &ArchivePlace,
    (due, texts): (&Due, Option<ArchivedTexts>),
    mut done: impl FnMut(&Archived) + Send,
) -> Result<(), CliError> {
    let mut refused: Vec<RunNo> = Vec::new();
    let mut first = None;
    for run in &due.runs {
        match archive(app, store, place, run, texts).await {
            Ok(archived) => done(&archived),
            Err(error) => {
                refused.push(run.run_no);
                first.get_or_insert(left_out(error, &format!("run {}", run.run_id))?);
            }
        }
    }
    for group in &due.matrices {
        // of a run that was refused there may be another result
        if group.runs.iter().any(|run| refused.contains(&run.run_no)) {
            continue;
        }
        match archive_matrix(app, store, place, group, None).await {
            Ok(None) => {}
            Ok(Some(folder)) => done(&Archived { folder, said: None }),
            Err(error) => {
                first.get_or_insert(left_out(error, &format!("matrix {}", group.id))?);
            }
        }
    }
    first.map_or(Ok(()), Err)
}

/// Why something is left out.
///
/// # Errors
/// When nothing else could be archived either.
fn left_out(error: CliError, what: &str) -> Result<CliError, CliError> {
    if error.exit == Exit::Infrastructure {
        return Err(error);
    }
    let message = match error.message.starts_with(what) {
        true => error.message.clone(),
        false => format!("{what}: {}", error.message),
    };
    Ok(CliError::new(error.exit, message).because(error))
}

/// At the end of a local run: brings it into the configured archive, and what an earlier push could not bring.
pub(crate) async fn after_run(app: &App, store: &dyn Store, run: &RunRow) {
    if app.settings().archive_url.is_none() {
        return;
    }
    let work = async {
        let place = super::open(app, None)?;
        let archived = archive(app, store, &place, run, None).await?;
        out::note(&format!("archived: {}/{}", place.describe(), archived.folder));
        archived.said.iter().for_each(|said| out::note(said));
        let mut older = Due::missing(store, &place).await?;
        // that of its own matrix follows with the report that is made for people
        older.matrices.retain(|group| run.group.as_ref().is_none_or(|own| own.id != group.id.0));
        older.runs.truncate(BROUGHT_ALONG);
        older.matrices.truncate(BROUGHT_ALONG);
        archive_each(app, store, &place, (&older, None), |_| ()).await
    };
    not_yet(tokio::time::timeout(PATIENCE, work).await, "the next run or `bench-coord archive push` brings it");
}

/// At the end of a local matrix: brings its document into the configured archive, with the report that was made of it.
pub(crate) async fn after_matrix(app: &App, store: &dyn Store, group: &RunsOfGroup, report: &MatrixReport) {
    if app.settings().archive_url.is_none() {
        return;
    }
    let work = async {
        let place = super::open(app, None)?;
        if MatrixNotes::read(store, &place, group).await?.in_no_document.is_empty() {
            return Ok(());
        }
        let name = archive_matrix(app, store, &place, group, Some(report)).await?.ok_or_else(|| {
            CliError::infrastructure(format!("the document of matrix {} waits for its runs to be there", group.id))
        })?;
        out::note(&format!("archived: {}/{name}", place.describe()));
        Ok(())
    };
    let advice = format!("the next run or `bench-coord archive push {}` brings it", group.id);
    not_yet(tokio::time::timeout(PATIENCE, work).await, &advice);
}

/// Says why something is not in the archive yet.
fn not_yet(ended: Result<Result<(), CliError>, tokio::time::error::Elapsed>, advice: &str) {
    let failed = match ended {
        Ok(Ok(())) => return,
        // the same would be said each time
        Ok(Err(error)) if error.exit == Exit::Usage => return out::note(&format!("not archived: {}", error.message)),
        Ok(Err(error)) => error.message,
        Err(_) => format!("no end after {} s", PATIENCE.as_secs()),
    };
    out::note(&format!("not archived yet: {failed}; the result is in the store, {advice}"));
}

/// In a coordinator: brings every finished run and every matrix that has ended into the configured archive, again and
/// again until they are there.
pub(crate) async fn keep_archiving(app: Arc<App>, store: Arc<dyn Store>, stop: CancellationToken) {
    if app.settings().archive_url.is_none() {
        return;
    }
    let mut said: Option<String> = None;
    loop {
        let round = async {
            let place = super::open(&app, None)?;
            let due = Due::missing(store.as_ref(), &place).await?;
            let told = |archived: &Archived| {
                tracing::info!(folder = %archived.folder, said = archived.said.as_deref(), "archived");
            };
            archive_each(&app, store.as_ref(), &place, (&due, None), told).await
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
