//! Getting runs out of the archive, with every byte checked.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
    time::{Duration, Instant},
};

use bench_proto::{json_bound, summary::Summary};
use serde_json::{Map, Value};

use super::{
    ArchiveError,
    manifest::{FileEntry, IndexEntry, MANIFEST_VERSION, Manifest, is_of_run, is_plain, parse, shown},
    pack::Hashing,
    place::{ArchivePlace, Found},
};

/// What the index of an archive holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listed {
    /// The archived runs, oldest first.
    pub entries: Vec<IndexEntry>,
    /// Why entries were left out, one line each: one that is damaged hides no other.
    pub left_out: Vec<String>,
}

/// What may come out of a file, in bytes for each byte of it, however much its manifest says; results give less than a hundred.
const MOST_RATIO: u64 = 1_000;
/// What may come out of any file, however small.
const ALWAYS_ALLOWED: u64 = 1 << 30;

/// The file that has a run's figures.
const REPORT: &str = "report.json";
/// Largest one that is read to be held against the index.
const MOST_REPORT: u64 = 256 << 20;

/// Time that may be lost with entries that cannot be read, each of which is asked for again and again: beyond it the store is
/// away, not an entry damaged.
const PATIENCE: Duration = Duration::from_secs(20);

/// All archived runs.
///
/// # Errors
/// What the store meets, unless it is a single entry that cannot be read.
pub async fn list(place: &ArchivePlace) -> Result<Listed, ArchiveError> {
    let Found { names, left_out } = place.look("index").await?;
    let left_out = left_out.iter().map(|(name, why)| format!("{} is left out: {why}", shown(name))).collect();
    let mut listed = Listed { entries: Vec::new(), left_out };
    let (mut lost, mut first) = (Duration::ZERO, None);
    for name in names {
        let began = Instant::now();
        let read = place.read(&name).await.and_then(|bytes| {
            let entry = bytes.map(|bytes| parse::<IndexEntry>(&name, &bytes)).transpose()?;
            entry.map(|entry| named_as_told(&name, entry)).transpose()
        });
        match read {
            Ok(entry) => listed.entries.extend(entry),
            Err(why) => {
                listed.left_out.push(format!("{} is left out: {why}", shown(&name)));
                if matches!(why, ArchiveError::Store(_)) {
                    lost += began.elapsed();
                    if lost > PATIENCE {
                        return Err(why);
                    }
                    first.get_or_insert(why);
                }
            }
        }
    }
    if let Some(away) = first.filter(|_| listed.entries.is_empty()) {
        return Err(away);
    }
    listed.entries.sort_by(|a, b| (&a.finished_at, &a.run_id).cmp(&(&b.finished_at, &b.run_id)));
    Ok(listed)
}

/// An entry that may be used: its object is named by it, so that none takes the place of another run.
fn named_as_told(name: &str, entry: IndexEntry) -> Result<IndexEntry, ArchiveError> {
    entry.check().map_err(ArchiveError::Damaged)?;
    let told = entry.object();
    match told == name {
        true => Ok(entry),
        false => Err(ArchiveError::Damaged(format!("what it says belongs into {}", shown(&told)))),
    }
}

/// The archived run with this id, with this name (of several the one that finished last), or with the only id that starts or ends
/// so; `latest` is the one that finished last of all. With it, what the index holds and nobody could read, unless that could not
/// change which run is meant.
///
/// # Errors
/// [`ArchiveError::Missing`] when none or several fit.
pub async fn find(place: &ArchivePlace, selector: &str) -> Result<(IndexEntry, Vec<String>), ArchiveError> {
    let Listed { entries, left_out } = list(place).await?;
    if let Some(exact) = entries.iter().find(|entry| entry.run_id == selector) {
        only_one(&entries, exact)?;
        return Ok((exact.clone(), Vec::new()));
    }
    let missing = |what: String| {
        let damaged = left_out.iter().map(|line| format!("; {line}")).collect::<String>();
        ArchiveError::Missing(format!("{what}{damaged}"))
    };
    match chosen(&entries, selector)[..] {
        [] if selector == "latest" => Err(missing(format!("{} holds no run", place.describe()))),
        [] => Err(missing(format!(
            "{} holds no run '{selector}'; `bench-coord archive list` shows all",
            place.describe()
        ))),
        [one] => only_one(&entries, one).map(|()| (one.clone(), left_out)),
        ref several => Err(ArchiveError::Missing(format!(
            "'{selector}' is the start or end of {} archived runs; type more of it",
            several.len()
        ))),
    }
}

/// Refuses a run whose id another entry has too: which of them is meant nobody can say.
fn only_one(entries: &[IndexEntry], one: &IndexEntry) -> Result<(), ArchiveError> {
    several_times(entries).remove(&one.run_id).map_or(Ok(()), |why| Err(ArchiveError::Missing(why)))
}

/// The ids that several entries have, each with what is wrong with it and what is to be done.
#[must_use]
pub fn several_times(entries: &[IndexEntry]) -> BTreeMap<String, String> {
    let mut objects: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for entry in entries {
        objects.entry(&entry.run_id).or_default().push(entry.object());
    }
    let told = |(id, objects): (&str, Vec<String>)| {
        let named = objects.join(", ");
        let why = format!("the archive has several runs of the id '{id}' ({named}): take away those that are wrong");
        (objects.len() > 1).then(|| (id.to_owned(), why))
    };
    objects.into_iter().filter_map(told).collect()
}

/// The names of the index for whoever brings several runs, one after the other: listed once, when they are first asked for. What
/// others write meanwhile is not among them.
#[derive(Debug, Default)]
pub struct IndexNames {
    names: Option<Vec<String>>,
}

impl IndexNames {
    /// Adds what was written since.
    pub fn add(&mut self, entry: &IndexEntry) {
        // a list that is still to come has it
        self.names.iter_mut().for_each(|names| names.push(entry.object()));
    }

    /// Those that a run has, under any day.
    async fn of_run(&mut self, place: &ArchivePlace, run_id: &str) -> Result<Vec<String>, ArchiveError> {
        if self.names.is_none() {
            self.names = Some(place.names("index").await?);
        }
        let object = format!("/{run_id}.json");
        Ok(self.names.iter().flatten().filter(|name| name.ends_with(&object)).cloned().collect())
    }
}

/// What the index says of a run under any day, whoever wrote it.
///
/// # Errors
/// [`ArchiveError::Damaged`] for an entry that cannot be read; what the store meets.
pub(super) async fn entries_of(
    place: &ArchivePlace,
    run_id: &str,
    names: &mut IndexNames,
) -> Result<Vec<IndexEntry>, ArchiveError> {
    let mut entries = Vec::new();
    for name in names.of_run(place, run_id).await? {
        let Some(bytes) = place.read(&name).await? else { continue };
        let entry = named_as_told(&name, parse(&name, &bytes)?);
        // its words do not say which object they are about
        let damaged = |why: ArchiveError| ArchiveError::Damaged(format!("{} cannot be used: {why}", shown(&name)));
        entries.push(entry.map_err(damaged)?);
    }
    Ok(entries)
}

/// The runs that a word may mean, which is no id, of all runs in the order in which they finished.
fn chosen<'a>(entries: &'a [IndexEntry], selector: &str) -> Vec<&'a IndexEntry> {
    let last = |fits: &dyn Fn(&IndexEntry) -> bool| entries.iter().rfind(|entry| fits(entry));
    if selector == "latest" {
        return last(&|_| true).into_iter().collect();
    }
    match last(&|entry| entry.name.as_deref() == Some(selector)) {
        Some(named) => vec![named],
        None => entries
            .iter()
            .filter(|entry| entry.run_id.starts_with(selector) || entry.run_id.ends_with(selector))
            .collect(),
    }
}

/// The manifest of a run.
///
/// # Errors
/// [`ArchiveError::Damaged`] when it is missing, unreadable, or of a newer build.
pub async fn manifest(place: &ArchivePlace, entry: &IndexEntry) -> Result<Manifest, ArchiveError> {
    let name = format!("{}/manifest.json", entry.folder);
    let bytes = place.read(&name).await?.ok_or_else(|| ArchiveError::Damaged(format!("{name} is missing")))?;
    let manifest: Manifest = parse(&name, &bytes)?;
    if manifest.manifest_version > MANIFEST_VERSION {
        return Err(ArchiveError::Damaged(format!(
            "{name} has version {}, this build reads {MANIFEST_VERSION}: use a newer one",
            manifest.manifest_version
        )));
    }
    let told = |entry: &IndexEntry| (entry.run_id.clone(), entry.folder.clone(), entry.result_digest.clone());
    if told(&manifest.entry) != told(entry) {
        return Err(ArchiveError::Damaged(format!("{name} and the index tell different runs, folders or digests")));
    }
    let names = manifest.files.iter().flat_map(|file| [&file.name, &file.object]);
    let wrong: Vec<String> = names.filter(|name| !is_plain(name)).map(|name| shown(name)).collect();
    if let Some(wrong) = wrong.first() {
        return Err(ArchiveError::Damaged(format!("the archive names a file '{wrong}'")));
    }
    // they are put into folders of people, where a name decides what is replaced
    let mut once = BTreeSet::new();
    let other = manifest.files.iter().find(|file| !is_of_run(&file.name) || !once.insert(&file.name));
    if let Some(FileEntry { name, .. }) = other {
        return Err(ArchiveError::Damaged(format!("the archive names a file '{}', which no run has", shown(name))));
    }
    let is_far_more = |file: &&FileEntry| file.plain_bytes > file.bytes.saturating_mul(MOST_RATIO).max(ALWAYS_ALLOWED);
    match manifest.files.iter().find(is_far_more) {
        Some(FileEntry { name, bytes, plain_bytes, .. }) => Err(ArchiveError::Damaged(format!(
            "{name} would become {plain_bytes} bytes of {bytes}, far more than results do: it is not unpacked"
        ))),
        None => Ok(manifest),
    }
}

/// One file, unpacked into `out` and checked. Nothing of it may be used when this fails.
///
/// # Errors
/// [`ArchiveError::Damaged`] with the file's name when a byte is not as it was written; what the store or `out` meets.
pub async fn file(
    place: &ArchivePlace,
    manifest: &Manifest,
    entry: &FileEntry,
    out: &mut (impl Write + Send),
) -> Result<(), ArchiveError> {
    let name = format!("{}/{}", manifest.entry.folder, entry.object);
    let damaged = |what: String| ArchiveError::Damaged(format!("{name} {what}"));
    let mut pieces = place.pieces(&name).await?.ok_or_else(|| damaged("is missing".to_owned()))?;
    if pieces.bytes != entry.bytes {
        return Err(damaged(format!("has {} bytes, and {} were written", pieces.bytes, entry.bytes)));
    }
    let mut packed = Hashing::new(io::sink(), u64::MAX);
    // never more than the manifest says: a small object may unpack to anything
    let mut plain = zstd::stream::write::Decoder::new(Hashing::new(out, entry.plain_bytes))
        .map_err(|e| damaged(format!("cannot be unpacked: {e}")))?;
    let mut broken = None;
    while let Some(piece) = pieces.next().await? {
        packed.write_all(&piece).map_err(|e| damaged(e.to_string()))?;
        if broken.is_none() {
            // the packed bytes are read to their end: that they differ says more than what came of them
            broken = plain.write_all(&piece).err();
        }
    }
    if packed.finish().1 != entry.sha256 {
        return Err(damaged("is not what was written: its sha256 differs".to_owned()));
    }
    let unpacked = broken.map_or_else(|| plain.flush(), Err);
    unpacked.map_err(|e| damaged(format!("cannot be unpacked: {e}")))?;
    let (_, sha256, bytes) = plain.into_inner().finish();
    if bytes != entry.plain_bytes || sha256 != entry.plain_sha256 {
        return Err(damaged("does not unpack to what was packed".to_owned()));
    }
    Ok(())
}

/// Checks every file of a run, and what the index says of it; returns what is wrong, one line each.
///
/// # Errors
/// What the store meets; damage is no error here.
pub async fn verify(place: &ArchivePlace, entry: &IndexEntry) -> Result<Vec<String>, ArchiveError> {
    let manifest = match manifest(place, entry).await {
        Ok(manifest) => manifest,
        Err(ArchiveError::Damaged(what)) => return Ok(vec![what]),
        Err(error) => return Err(error),
    };
    let mut wrong = told_otherwise(entry, &manifest.entry, "its manifest");
    for listed in &manifest.files {
        let is_report = listed.name == REPORT && listed.plain_bytes <= MOST_REPORT;
        let mut report = Vec::new();
        let read = match is_report {
            true => file(place, &manifest, listed, &mut report).await,
            false => file(place, &manifest, listed, &mut io::sink()).await,
        };
        match read {
            // one of a newer build is read by that
            Ok(()) if is_report => {
                let summary: Option<Summary> = json_bound::from_slice(&report, json_bound::REPORT).ok();
                wrong.extend(summary.iter().flat_map(|summary| of_another_report(entry, summary)));
            }
            Ok(()) => {}
            Err(ArchiveError::Damaged(what)) => wrong.push(what),
            Err(error) => return Err(error),
        }
    }
    Ok(wrong)
}

/// Where the index says something else of a run than its report does: figures are read from the index.
fn of_another_report(entry: &IndexEntry, summary: &Summary) -> Vec<String> {
    let mut reported = IndexEntry::of_report(summary, entry.folder.clone(), entry.conditions.clone());
    reported.without_texts.clone_from(&entry.without_texts);
    if entry.counted_as.is_none() && entry.counted_value.is_none() {
        // written before the index said it
        (reported.counted_as, reported.counted_value) = (None, None);
    }
    told_otherwise(entry, &reported, REPORT)
}

/// The fields in which the index differs from what stands elsewhere.
fn told_otherwise(entry: &IndexEntry, other: &IndexEntry, place: &str) -> Vec<String> {
    let fields = |entry: &IndexEntry| match serde_json::to_value(entry) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let (index, other) = (fields(entry), fields(other));
    let names: BTreeSet<&String> = index.keys().chain(other.keys()).collect();
    let value = |fields: &Map<String, Value>, name: &String| match fields.get(name) {
        Some(Value::String(text)) => shown(text),
        Some(value) => value.to_string(),
        None => "nothing".to_owned(),
    };
    let differing = names.into_iter().filter(|name| index.get(*name) != other.get(*name));
    differing
        .map(|name| format!("the index says {name} {}, and {place} {}", value(&index, name), value(&other, name)))
        .collect()
}
