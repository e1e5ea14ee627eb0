//! What of an archived run is read, with bounds, and when it is left out.

use bench_aggregate::compare::{Member, RunFacts};
use bench_proto::{facts::QuestionFacts, stop::Looks, summary::Summary};
use bench_report::{
    archive::{ArchivePlace, IndexEntry, Manifest, fetch},
    site::{
        SameSettings,
        names::{MOST_ID_BYTES, MOST_NAME_BYTES},
    },
};
use futures::{StreamExt as _, stream};
use serde::{Deserialize, de::DeserializeOwned};

use super::super::{
    bundle::{BUNDLE_VERSION, REPORT, RESULTS, RUN, RunBundle},
    restore,
};
use crate::exit::{CliError, Exit};

/// Runs that are looked at, the newest ones.
const MOST_RUNS: usize = 2_000;
/// Runs that are read at a time: an object store takes its time for each.
const AT_ONCE: usize = 8;
/// Longest run and report, in bytes.
const MOST_BYTES: u64 = 64 << 20;

/// A run of an archive, without its report and its questions.
pub(super) struct ArchivedRun {
    pub(super) entry: IndexEntry,
    /// Of a run that has stopped early with the sample that it has asked.
    pub(super) bundle: RunBundle,
    manifest: Manifest,
}

/// A run with what stands on its page.
pub(super) struct ReadRun {
    pub(super) run: ArchivedRun,
    pub(super) summary: Summary,
    pub(super) facts: RunFacts,
    /// The run alone, as comparisons look at it.
    pub(super) members: [Member; 1],
    /// Questions that ended.
    pub(super) questions: usize,
    /// The runs that it stands for.
    pub(super) same_settings: Option<SameSettings>,
}

/// The newest runs of the index, oldest first. Of an id that it has several times nobody can say which is meant, and none is read.
///
/// # Errors
/// What the archive meets.
pub(super) async fn runs(
    place: &ArchivePlace,
    entries: Vec<IndexEntry>,
    left_out: &mut Vec<String>,
) -> Result<Vec<ArchivedRun>, CliError> {
    let several = fetch::several_times(&entries);
    left_out.extend(several.iter().map(|(id, why)| format!("run {id} is left out: {why}")));
    let entries: Vec<IndexEntry> = entries.into_iter().filter(|entry| !several.contains_key(&entry.run_id)).collect();
    let older = entries.len().saturating_sub(MOST_RUNS);
    if older > 0 {
        left_out.push(format!("{older} older runs are left out: the newest {MOST_RUNS} are looked at"));
    }
    let read = stream::iter(entries.into_iter().skip(older)).map(|entry| async move {
        let id = entry.run_id.clone();
        (id, run(place, entry).await)
    });
    let read: Vec<(String, Result<ArchivedRun, CliError>)> = read.buffered(AT_ONCE).collect().await;
    let mut runs: Vec<ArchivedRun> = Vec::with_capacity(read.len());
    for (id, read) in read {
        runs.extend(unless_left_out(&id, read, left_out)?);
    }
    Ok(runs)
}

/// What was read of a run; nothing where its files are damaged or do not fit together, which is said.
///
/// # Errors
/// What the archive meets.
pub(super) fn unless_left_out<T>(
    id: &str,
    read: Result<T, CliError>,
    left_out: &mut Vec<String>,
) -> Result<Option<T>, CliError> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(why) if why.exit == Exit::Invalid => {
            left_out.push(format!("run {id} is left out: {}", why.message));
            Ok(None)
        }
        Err(away) => Err(away),
    }
}

fn damaged(why: impl Into<String>) -> CliError {
    CliError::new(Exit::Invalid, why)
}

async fn run(place: &ArchivePlace, entry: IndexEntry) -> Result<ArchivedRun, CliError> {
    if entry.dataset.len() > MOST_NAME_BYTES {
        return Err(damaged(format!("the name of its dataset has more than {MOST_NAME_BYTES} bytes")));
    }
    if entry.run_id.len() > MOST_ID_BYTES {
        return Err(damaged(format!("its id has more than {MOST_ID_BYTES} bytes")));
    }
    let manifest = fetch::manifest(place, &entry).await?;
    let mut bundle: RunBundle = document(place, &manifest, RUN).await?;
    if bundle.bundle_version > BUNDLE_VERSION {
        return Err(damaged(format!("it was archived with version {}: use a newer build", bundle.bundle_version)));
    }
    let spec = &bundle.spec;
    restore::check_spec(spec)?;
    if bundle.run_id != entry.run_id
        || spec.dataset.name != entry.dataset
        || spec.fingerprint().hex() != entry.fingerprint
    {
        return Err(damaged(format!("{RUN} and the index tell different runs, datasets or fingerprints")));
    }
    if spec.dataset.planted.is_some() {
        return Err(damaged("it is a judge audit, and measures a judge instead of a memory system"));
    }
    // what is compared is the sample that was asked
    if let Some(look) = bundle.looks.as_ref().filter(|_| spec.stop.is_some()).and_then(Looks::stopped) {
        bundle.spec = bundle.spec.stopped_at(look);
    }
    Ok(ArchivedRun { entry, bundle, manifest })
}

/// A small document of a run.
async fn document<T: DeserializeOwned>(place: &ArchivePlace, manifest: &Manifest, name: &str) -> Result<T, CliError> {
    let mut bytes = Vec::new();
    unpack(place, manifest, (name, MOST_BYTES), &mut bytes).await?;
    restore::parse(name, &bytes)
}

async fn unpack(
    place: &ArchivePlace,
    manifest: &Manifest,
    (name, most): (&str, u64),
    out: &mut (impl std::io::Write + Send),
) -> Result<(), CliError> {
    let file = manifest.files.iter().find(|file| file.name == name);
    let file = file.ok_or_else(|| damaged(format!("it has no {name}")))?;
    if file.plain_bytes > most {
        return Err(damaged(format!("{name} has more than {} MiB: it is not read", most >> 20)));
    }
    Ok(fetch::file(place, manifest, file, out).await?)
}

/// Longest results of a run, in bytes, with the texts of its questions.
const MOST_RESULTS: u64 = 4 << 30;
/// Most questions of a run.
const MOST_QUESTIONS: usize = 2_000_000;

/// The facts of a question: its texts are passed over.
#[derive(Deserialize)]
struct FactsLine {
    facts: QuestionFacts,
}

/// Reads the report of a run, and its questions by a metric for comparisons of so many hits.
///
/// # Errors
/// Exit 5 for what does not fit together, 4 for what the archive meets.
pub(super) async fn read(
    place: &ArchivePlace,
    run: ArchivedRun,
    (metric, top_k): (&str, u32),
) -> Result<ReadRun, CliError> {
    let summary: Summary = document(place, &run.manifest, REPORT).await?;
    check(&run.entry, &summary)?;
    let folder = tempfile::tempdir()
        .map_err(|e| CliError::infrastructure(format!("no folder for the files of the archive: {e}")).because(e))?;
    let mut unpacked = std::fs::File::create(folder.path().join(RESULTS)).map_err(CliError::infrastructure_of)?;
    unpack(place, &run.manifest, (RESULTS, MOST_RESULTS), &mut unpacked).await?;
    drop(unpacked);
    let mut facts = RunFacts::new(metric, top_k).asking_for(run.bundle.spec.system.top_k);
    let mut digested = restore::Digested::default();
    for line in restore::lines::<FactsLine>(folder.path(), RESULTS)? {
        let FactsLine { facts: question } = line?;
        if digested.len() == MOST_QUESTIONS {
            return Err(damaged(format!("it has more than {MOST_QUESTIONS} questions")));
        }
        facts.add(&question);
        digested.add(question)?;
    }
    facts.settle();
    let questions = digested.len();
    digested.check(&summary)?;
    // an archive may have texts, and pages say figures alone
    let summary = summary.without_texts();
    // calls are not archived, and who shares them with whom is not known beyond what the report says
    let RunBundle { spec, imported, .. } = &run.bundle;
    let members = [Member::new(spec, &summary, run.entry.run_id.clone(), *imported)];
    Ok(ReadRun { run, summary, facts, members, questions, same_settings: None })
}

/// Holds a report to what the index says, and its figures to what figures can be.
fn check(entry: &IndexEntry, summary: &Summary) -> Result<(), CliError> {
    let run = &summary.run;
    if (&run.id, &run.fingerprint, &summary.result_digest) != (&entry.run_id, &entry.fingerprint, &entry.result_digest)
        || run.verdict.name() != entry.verdict
    {
        return Err(damaged(format!("{REPORT} and the index tell different runs, digests or verdicts")));
    }
    restore::check_headline(summary)
}
