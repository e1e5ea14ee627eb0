//! Pushes that nobody asks for: at the end of a run, and again later when the archive was away. Never a reason to lose a run.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use bench_proto::{ids::RunNo, matrix::MatrixReport};
use bench_report::archive::{
    ArchiveError, ArchivePlace, IndexEntry,
    fetch::IndexNames,
    matrix::{ARCHIVED_MATRIX_VERSION, ArchivedMatrix, push as push_matrix},
    push::{Pushed, bring, there},
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
/// Longest time between two looks while the archive is away.
const MOST_AWAY: Duration = Duration::from_secs(300);
/// Longest time for which it waits with a run that was refused.
const MOST_REFUSED: Duration = Duration::from_secs(3_600);

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
    names: &mut IndexNames,
) -> Result<Archived, CliError> {
    let kept_back = kept_back(app, texts, &run.spec.dataset)?;
    let bundled = bundle::of_run(app, store, run, kept_back.clone()).await?;
    // before anything is made that the archive would refuse
    let (folder, pushed) = match there(place, &bundled.entry, names).await.map_err(|error| at(place, error))? {
        Some((there, pushed)) => (there.folder, pushed),
        None => {
            let made = tempfile::tempdir().map_err(|e| {
                CliError::infrastructure(format!("no folder for the files of the archive: {e}")).because(e)
            })?;
            let files = bundle::files(store, run, &bundled, made.path()).await?;
            let pushed = bring(place, &bundled.entry, &files).await.map_err(|error| at(place, error))?;
            names.add(&bundled.entry);
            (bundled.entry.folder, pushed)
        }
    };
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
    Ok(Archived { folder, said })
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
/// Exit 2 where another result of one of its runs is archived; what the store or the archive meets.
async fn archive_matrix(
    app: &App,
    store: &dyn Store,
    place: &ArchivePlace,
    group: &RunsOfGroup,
    report: Option<&MatrixReport>,
    names: &mut IndexNames,
) -> Result<Option<String>, CliError> {
    let notes = MatrixNotes::read(store, place, group).await?;
    if !notes.waits_for.is_empty() {
        return Ok(None);
    }
    let (mut runs, mut date) = (BTreeMap::new(), String::new());
    for run in &group.runs {
        let entry = IndexEntry::of_run(&run.spec, &results::summary_of(app, store, run).await?);
        // a note says that some result of it is there: figures of another one are not those of this document
        let there = there(place, &entry, names).await.map_err(|error| at(place, error))?;
        let (entry, _) = there.ok_or_else(|| {
            let id = &run.run_id;
            CliError::usage(format!(
                "run {id} was in {} and is not there any more: `bench-coord archive push {id}` brings it again",
                place.describe()
            ))
        })?;
        let finished = entry.finished_at.as_deref().and_then(|at| at.get(..10)).unwrap_or_default();
        date = date.max(finished.to_owned());
        runs.insert(entry.run_id, entry.folder);
    }
    let report = match report {
        Some(report) => report.clone(),
        None => matrix_report(app, store, group).await?,
    };
    let matrix = ArchivedMatrix { matrix_version: ARCHIVED_MATRIX_VERSION, date, runs, report };
    let (name, _) = push_matrix(place, &matrix).await.map_err(|error| at(place, error))?;
    for run in notes.in_no_document {
        store.add_event(run, ARCHIVED_MATRIX, place.describe()).await?;
    }
    Ok(Some(name))
}

/// What could not be archived, whatever whoever writes the store has made of it.
#[derive(Debug, Default)]
pub(crate) struct Refused {
    tried: Vec<Tried>,
    first: Option<CliError>,
}

impl Refused {
    /// What a command ends with.
    ///
    /// # Errors
    /// What the first met that was left out.
    pub(crate) fn ended(self) -> Result<(), CliError> {
        self.first.map_or(Ok(()), Err)
    }

    fn add(&mut self, what: Tried, why: CliError) {
        self.tried.push(what);
        self.first.get_or_insert(why);
    }
}

/// Brings runs into the archive, one after the other, and then the documents of matrices; `done` hears of each with its
/// folder. What cannot be archived holds up nothing else.
///
/// # Errors
/// When store or archive are away, at once.
pub(crate) async fn archive_each(
    app: &App,
    store: &dyn Store,
    place: &ArchivePlace,
    (due, texts): (&Due, Option<ArchivedTexts>),
    mut done: impl FnMut(&Archived) + Send,
) -> Result<Refused, CliError> {
    let (mut refused, mut names) = (Refused::default(), IndexNames::default());
    for run in &due.runs {
        match archive(app, store, place, run, texts, &mut names).await {
            Ok(archived) => done(&archived),
            Err(error) => refused.add(Tried::run(run), left_out(error, &format!("run {}", run.run_id))?),
        }
    }
    for group in &due.matrices {
        // of a run that was refused there may be another result
        if group.runs.iter().any(|run| refused.tried.contains(&Tried::run(run))) {
            continue;
        }
        match archive_matrix(app, store, place, group, None, &mut names).await {
            Ok(None) => {}
            Ok(Some(folder)) => done(&Archived { folder, said: None }),
            Err(error) => refused.add(Tried::matrix(group), left_out(error, &format!("matrix {}", group.id))?),
        }
    }
    Ok(refused)
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
        let archived = archive(app, store, &place, run, None, &mut IndexNames::default()).await?;
        out::note(&format!("archived: {}/{}", place.describe(), archived.folder));
        archived.said.iter().for_each(|said| out::note(said));
        let mut older = Due::missing(store, &place).await?;
        // that of its own matrix follows with the report that is made for people
        older.matrices.retain(|group| run.group.as_ref().is_none_or(|own| own.id != group.id.0));
        older.runs.truncate(BROUGHT_ALONG);
        older.matrices.truncate(BROUGHT_ALONG);
        archive_each(app, store, &place, (&older, None), |_| ()).await?.ended()
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
        let name = archive_matrix(app, store, &place, group, Some(report), &mut IndexNames::default()).await?;
        let name = name.ok_or_else(|| {
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
    let (mut said, mut pauses, mut away): (Option<String>, Pauses, u32) = (None, Pauses::default(), 0);
    loop {
        let round = async {
            let place = super::open(&app, None)?;
            let mut due = Due::missing(store.as_ref(), &place).await?;
            pauses.hold_back(&mut due, Instant::now());
            let told = |archived: &Archived| {
                tracing::info!(folder = %archived.folder, said = archived.said.as_deref(), "archived");
            };
            archive_each(&app, store.as_ref(), &place, (&due, None), told).await
        };
        let ended = tokio::select! {
            () = stop.cancelled() => return,
            ended = round => ended,
        };
        let trouble = match ended {
            Ok(refused) => {
                away = 0;
                pauses.add(&refused.tried, Instant::now());
                refused.first
            }
            Err(error) => {
                away = away.saturating_add(1);
                Some(error)
            }
        };
        // said once, not in every round
        match trouble.map(|error| error.message) {
            Some(trouble) if said.as_ref() != Some(&trouble) => {
                tracing::warn!("archiving waits: {trouble}");
                said = Some(trouble);
            }
            None if pauses.of.is_empty() => said = None,
            _ => {}
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause_after(away).min(MOST_AWAY)) => {}
        }
    }
}

/// Something that was to be archived, as it was then: another result of a run and a matrix that has grown are tried at once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Tried {
    /// A run with the version of its result.
    Run(RunNo, i64),
    /// A matrix with the versions of the results of its runs.
    Matrix(Vec<(RunNo, i64)>),
}

impl Tried {
    const fn run(run: &RunRow) -> Self {
        Self::Run(run.run_no, run.result_version)
    }

    fn matrix(group: &RunsOfGroup) -> Self {
        Self::Matrix(group.runs.iter().map(|run| (run.run_no, run.result_version)).collect())
    }
}

/// What was refused, and how long each of it waits: all of its figures would be read again to be refused again.
#[derive(Debug, Default)]
struct Pauses {
    /// How often it was refused, and until when it waits.
    of: HashMap<Tried, (u32, Instant)>,
}

impl Pauses {
    /// Takes out of what is due what waits, and forgets what is due no longer.
    fn hold_back(&mut self, due: &mut Due, now: Instant) {
        let runs = due.runs.iter().map(Tried::run);
        let all: HashSet<Tried> = runs.chain(due.matrices.iter().map(Tried::matrix)).collect();
        self.of.retain(|tried, _| all.contains(tried));
        let is_free = |tried: &Tried| self.of.get(tried).is_none_or(|(_, until)| *until <= now);
        // the document of a matrix waits for all of its runs
        due.matrices.retain(|group| {
            is_free(&Tried::matrix(group)) && group.runs.iter().all(|run| !self.of.contains_key(&Tried::run(run)))
        });
        due.runs.retain(|run| is_free(&Tried::run(run)));
    }

    /// Notes what was refused: each time it waits twice as long.
    fn add(&mut self, refused: &[Tried], now: Instant) {
        for tried in refused {
            let (times, until) = self.of.entry(tried.clone()).or_insert((0, now));
            *times = times.saturating_add(1);
            *until = now + pause_after(*times).min(MOST_REFUSED);
        }
    }
}

/// How long to wait after so many failures in a row.
fn pause_after(failures: u32) -> Duration {
    EVERY.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use bench_store::conformance::{created, new_run, store_in};

    use super::*;

    #[tokio::test]
    async fn what_was_refused_waits_longer_each_time_and_another_result_of_it_does_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store_in(folder.path()).await;
        let mut run = created(store.as_ref(), &new_run("a")).await;
        let (begun, mut pauses) = (Instant::now(), Pauses::default());
        let due = |run: &RunRow| Due { runs: vec![run.clone()], matrices: Vec::new() };
        let is_tried = |pauses: &mut Pauses, run: &RunRow, after: Duration| {
            let mut due = due(run);
            pauses.hold_back(&mut due, begun + after);
            !due.runs.is_empty()
        };
        assert!(is_tried(&mut pauses, &run, Duration::ZERO));
        for times in 1..=3 {
            pauses.add(&[Tried::run(&run)], begun);
            let pause = EVERY * 2_u32.pow(times - 1);
            assert!(!is_tried(&mut pauses, &run, pause - Duration::from_millis(1)), "{times}");
            assert!(is_tried(&mut pauses, &run, pause), "{times}");
        }
        (0..100).for_each(|_| pauses.add(&[Tried::run(&run)], begun));
        assert!(is_tried(&mut pauses, &run, MOST_REFUSED));
        assert!(!is_tried(&mut pauses, &run, Duration::ZERO));
        run.result_version += 1;
        assert!(is_tried(&mut pauses, &run, Duration::ZERO));
        assert!(pauses.of.is_empty(), "the result that was refused is due no longer");
    }
}
