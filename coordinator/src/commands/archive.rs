//! `archive`: durable results on a folder or an object store.

use std::{
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use bench_proto::{ids::RunId, text::one_line};
use bench_report::archive::{
    ArchivePlace, IndexEntry, Manifest,
    fetch::{self, find, list, several_times},
    matrix::{self, ArchivedMatrix},
    trajectory::{Trajectory, Wanted},
};
use bench_settings::private;
use bench_store::{RunRow, RunState};
use serde_json::{Value, json};

use crate::{
    app::App,
    archive::{auto, noted::Due, open, open_existing, restore},
    cli::{ArchiveAt, ArchiveVerb, ArchivedTexts},
    exit::{CliError, CliResult, Exit},
    out::{
        self,
        tables::{render, table},
    },
    results,
    runs::group::ending::write_matrix,
    standing::group::find_runs,
};

/// Copies finished runs to an archive and back, and prints what is there; exit 5 for files that are not those that were written.
pub(super) async fn run(app: &App, verb: &ArchiveVerb) -> CliResult {
    let at = |at: &ArchiveAt| open_existing(app, at.archive.as_deref());
    match verb {
        ArchiveVerb::Push { run, texts, at, json } => {
            push(app, at.archive.as_deref(), run.as_deref(), (*texts, *json)).await
        }
        ArchiveVerb::List { at: place, json } => show(&entries(&at(place)?).await?, *json),
        ArchiveVerb::Fetch { run, at: place, output_dir, restore, trust_system, json } => {
            let rebuild = restore.then_some(*trust_system);
            get_named(app, &at(place)?, run, (output_dir.as_deref(), *json), rebuild).await
        }
        ArchiveVerb::Verify { run, at: place, json } => verify(&at(place)?, run.as_deref(), *json).await,
        ArchiveVerb::Trajectory { at: place, dataset, system, preset, svg, json } => {
            let wanted = Wanted { dataset: dataset.clone(), system: system.clone(), preset: preset.clone() };
            let trajectory = Trajectory::through(entries(&at(place)?).await?, &wanted);
            if let Some(path) = svg {
                let picture = trajectory.svg();
                results::write_named(path, &picture)?;
            }
            if *json {
                out::json(&trajectory);
                return Ok(Exit::Done);
            }
            for line in &trajectory.lines {
                let counted = line.counted_as.as_ref().map(|name| format!(" · counted as {name}")).unwrap_or_default();
                out::result(&one_line(&format!("{} · {} · {}{counted}", line.dataset, line.system, line.metric)));
                show(&line.points, false)?;
            }
            Ok(Exit::Done)
        }
        ArchiveVerb::Badge { run, at: place } => {
            out::json(&found(&at(place)?, run).await?.badge());
            Ok(Exit::Done)
        }
    }
}

/// Fetches a matrix or a run; `rebuild` says that it becomes one of the store too, and whether its system is trusted.
async fn get_named(
    app: &App,
    place: &ArchivePlace,
    run: &str,
    (named, json): (Option<&Path>, bool),
    rebuild: Option<bool>,
) -> CliResult {
    let (matrix, left_out) = matrix::find(place, run).await?;
    left_out.iter().for_each(|why| out::note(why));
    if let Some(matrix) = matrix {
        return get_matrix(app, place, &matrix, (named, json), rebuild).await;
    }
    let entry = match found(place, run).await {
        // the run of exactly this id is that run, whatever lies beside it
        Ok(entry) if left_out.is_empty() || entry.run_id == *run => entry,
        Err(error) if left_out.is_empty() => return Err(error),
        _ => {
            let why = format!("the document of matrix {run} cannot be read: `archive verify` says what is damaged");
            return Err(CliError::new(Exit::Invalid, why));
        }
    };
    if rebuild.is_some() {
        check_restorable(place, &entry)?;
    }
    let folder = results::run_folder(app, &RunId(entry.run_id.clone()), named);
    let fetched = get(place, &entry, folder.clone()).await?;
    if let Some(trusted) = rebuild {
        let readable = restore::check(fetched.files(), &entry.run_id)?;
        back(app, &entry, (fetched.files(), readable), trusted).await?;
    }
    let files = fetched.settle()?;
    if json {
        print_fetched(&entry.run_id, &folder, &files, rebuild, entry.without_texts.as_ref());
    } else {
        out::result(&entry.run_id);
    }
    Ok(Exit::Done)
}

/// All archived runs; what is left out is said.
async fn entries(place: &ArchivePlace) -> Result<Vec<IndexEntry>, CliError> {
    let listed = list(place).await?;
    listed.left_out.iter().for_each(|why| out::note(why));
    Ok(listed.entries)
}

/// The archived run that is meant; what nobody could read and might have been meant is said.
async fn found(place: &ArchivePlace, selector: &str) -> Result<IndexEntry, CliError> {
    let (entry, left_out) = find(place, selector).await?;
    left_out.iter().for_each(|why| out::note(why));
    Ok(entry)
}

async fn push(
    app: &App,
    archive: Option<&str>,
    run: Option<&str>,
    (texts, json): (Option<ArchivedTexts>, bool),
) -> CliResult {
    // a folder is made for the archive: not for a store that is refused
    let store = app.open_store().await?;
    let place = &open(app, archive)?;
    let Due { runs, matrices } = match run {
        Some(selector) => Due::asked(store.as_ref(), find_runs(store.as_ref(), selector).await?).await?,
        None => Due::missing(store.as_ref(), place).await?,
    };
    let (ended, open): (Vec<RunRow>, Vec<RunRow>) = runs.into_iter().partition(|run| run.state == RunState::Finished);
    let not_ended: Vec<RunId> = open.iter().map(|run| run.run_id.clone()).collect();
    // of a single run what archives it says how to go on
    let (ended, open) = if ended.is_empty() { (open, ended) } else { (ended, open) };
    let mut there = Vec::new();
    let show = |archived: &auto::Archived| {
        if !json {
            out::result(&format!("{}/{}", place.describe(), archived.folder));
        }
        archived.said.iter().for_each(|said| out::note(said));
        there.push(archived.folder.clone());
    };
    let due = Due { runs: ended, matrices };
    let pushed = auto::archive_each(app, store.as_ref(), place, (&due, texts), show).await;
    if json {
        out::json(&json!({"archive": place.describe(), "archived": there, "not_ended": not_ended}));
    }
    pushed?.ended()?;
    if due.runs.is_empty() {
        out::note("every finished run is archived");
    }
    if let Some(first) = open.first() {
        let group = first.group.as_ref().map_or_else(|| first.run_id.to_string(), |group| group.id.clone());
        out::note(&format!(
            "{} of its runs have not ended, and are not archived; `bench-coord resume {group}` goes on with them",
            open.len()
        ));
    }
    Ok(Exit::Done)
}

fn show(entries: &[IndexEntry], json: bool) -> CliResult {
    if json {
        out::json(&entries);
        return Ok(Exit::Done);
    }
    let percent = |fraction: f64| format!("{:.2}", fraction * 100.0);
    let mut table =
        table(["run", "finished", "dataset", "system", "answerer", "metric", "score", "95 %", "verdict", "name"])
            .sparing(&["answerer", "metric", "finished", "95 %", "name", "system"]);
    for entry in entries {
        let (value, interval) = entry.figure();
        table.add_row([
            entry.run_id.clone(),
            entry.finished_at.clone().unwrap_or_default().get(..16).unwrap_or_default().replace('T', " "),
            format!("{}/{}", entry.dataset, entry.preset),
            format!("{} {}", entry.system, entry.system_version),
            entry.answerer.clone(),
            entry.metric.clone(),
            scored(value, entry.counted_as.as_deref()),
            interval.map_or_else(|| "-".to_owned(), |(low, high)| format!("{} to {}", percent(low), percent(high))),
            entry.verdict.clone(),
            entry.name.clone().unwrap_or_default(),
        ]);
    }
    out::result(&render(&table));
    Ok(Exit::Done)
}

/// A score as a list shows it, in percent; whose counting it is by, where that is not ours, stands with it in every width.
fn scored(value: Option<f64>, counted_as: Option<&str>) -> String {
    let figure = value.map_or_else(|| "-".to_owned(), |value| format!("{:.2}", value * 100.0));
    match counted_as {
        Some(name) => format!("{figure} as {name}"),
        None => figure,
    }
}

/// Refuses to rebuild a run whose texts are not there.
fn check_restorable(place: &ArchivePlace, entry: &IndexEntry) -> Result<(), CliError> {
    let Some(why) = &entry.without_texts else { return Ok(()) };
    Err(CliError::usage(format!(
        "run {0} is in {1} without the texts of its questions, memories and answers ({why}): nothing can be rebuilt of it. Without --restore its \
         report, figures, ids and verdicts are fetched, which `compare` takes as a folder; whoever has the run can push it with its texts \
         to an archive of their own (`archive push {0} --texts always`)",
        entry.run_id,
        place.describe()
    )))
}

/// Makes fetched files a run of the store, whose system is trusted or not.
async fn back(
    app: &App,
    entry: &IndexEntry,
    (folder, readable): (&Path, restore::Readable),
    trusted: bool,
) -> Result<(), CliError> {
    let store = app.open_store().await?;
    let restored = restore::restore(store.as_ref(), folder, readable).await?;
    if trusted && let Some(run) = store.run_by_id(&RunId(entry.run_id.clone())).await? {
        app.trust(&run.spec.system.settings, None)?;
    }
    match restored {
        restore::Restored::New => out::note(&format!("run {} is in {}", entry.run_id, store.describe())),
        restore::Restored::WasThere => {
            out::note(&format!("run {} was in {} already, with the same result", entry.run_id, store.describe()));
        }
    }
    Ok(())
}

/// The files of a run that were fetched, beside the place that they are for: those that lie there stay until nothing is wrong with
/// these.
struct Fetched {
    manifest: Manifest,
    files: tempfile::TempDir,
    folder: PathBuf,
}

/// Fetches a run's files.
async fn get(place: &ArchivePlace, entry: &IndexEntry, folder: PathBuf) -> Result<Fetched, CliError> {
    results::check_writable(&folder)?;
    let manifest = fetch::manifest(place, entry).await?;
    let fetched =
        tempfile::Builder::new().prefix(".fetch-").tempdir_in(&folder).map_err(|e| results::disk(&folder, e))?;
    for file in &manifest.files {
        let path = fetched.path().join(&file.name);
        let mut out = private::append(&path).map(BufWriter::new).map_err(|e| results::disk(&path, e))?;
        fetch::file(place, &manifest, file, &mut out).await?;
        out.flush().map_err(|e| results::disk(&path, e))?;
    }
    Ok(Fetched { manifest, files: fetched, folder })
}

impl Fetched {
    /// The folder that they are in.
    fn files(&self) -> &Path {
        self.files.path()
    }

    /// Puts them in their place and returns their names.
    fn settle(self) -> Result<Vec<String>, CliError> {
        let Self { manifest, files, folder } = self;
        for file in &manifest.files {
            let path = folder.join(&file.name);
            std::fs::rename(files.path().join(&file.name), &path).map_err(|e| results::disk(&path, e))?;
        }
        let text = serde_json::to_vec_pretty(&manifest)
            .map_err(|e| CliError::infrastructure(format!("the manifest cannot be written: {e}")).because(e))?;
        results::write_atomically(&folder.join("manifest.json"), |out| out.write_all(&text))?;
        out::note(&format!("{} files: {}", manifest.files.len() + 1, folder.display()));
        if let Some(why) = &manifest.entry.without_texts {
            out::note(&format!(
                "not among them, as they are not in the archive ({why}): what was asked, remembered, recalled and answered, the judges' words, \
                 and the page; report, figures, ids and verdicts are"
            ));
        }
        let names = manifest.files.iter().map(|file| file.name.clone());
        Ok(names.chain(["manifest.json".to_owned()]).collect())
    }
}

fn print_fetched(id: &str, folder: &Path, files: &[String], rebuild: Option<bool>, without_texts: Option<&String>) {
    out::json(&json!({
        "id": id, "folder": folder, "files": files, "restored": rebuild.is_some(), "without_texts": without_texts,
    }));
}

/// Fetches the report of a matrix and the files of all of its runs: those of a run below the folder that was named, or where they lie
/// without a matrix.
async fn get_matrix(
    app: &App,
    place: &ArchivePlace,
    matrix: &ArchivedMatrix,
    (named, json): (Option<&Path>, bool),
    rebuild: Option<bool>,
) -> CliResult {
    let id = &matrix.report.id;
    let mut listed = self::entries(place).await?;
    let mut entries = Vec::with_capacity(matrix.runs.len());
    for (run, folder) in &matrix.runs {
        let at = listed.iter().position(|entry| (&entry.run_id, &entry.folder) == (run, folder)).ok_or_else(|| {
            let why = format!("the document of matrix {id} says that run {run} lies in {folder}, and it does not");
            CliError::new(Exit::Invalid, why)
        })?;
        let entry = listed.swap_remove(at);
        if rebuild.is_some() {
            check_restorable(place, &entry)?;
        }
        entries.push(entry);
    }
    if let Some(wrong) = matrix.disagreements(&entries).first() {
        return Err(CliError::new(Exit::Invalid, format!("the document of matrix {id} is damaged: {wrong}")));
    }
    let of_run = |run: &str| {
        let named = named.map(|named| named.join(run));
        results::run_folder(app, &RunId(run.to_owned()), named.as_deref())
    };
    let mut fetched = Vec::with_capacity(entries.len());
    for entry in &entries {
        fetched.push(get(place, entry, of_run(&entry.run_id)).await?);
    }
    if let Some(trusted) = rebuild {
        // all of them can be read before the store is touched
        let readable = entries.iter().zip(&fetched).map(|(entry, got)| restore::check(got.files(), &entry.run_id));
        let readable = readable.collect::<Result<Vec<_>, _>>()?;
        for ((entry, got), readable) in entries.iter().zip(&fetched).zip(readable) {
            back(app, entry, (got.files(), readable), trusted).await?;
        }
    }
    // without a folder of its own a run lies beside the report
    let beside = if named.is_some() { "" } else { "../" };
    let mut files = Vec::new();
    for (entry, got) in entries.iter().zip(fetched) {
        files.extend(got.settle()?.into_iter().map(|file| format!("{beside}{}/{file}", entry.run_id)));
    }
    let folder = results::run_folder(app, &RunId(id.clone()), named);
    let written = write_matrix(&matrix.report, &folder)?;
    out::note(&format!("report of the matrix: {}", folder.display()));
    if rebuild.is_some() {
        out::note(&format!(
            "its runs are restored one by one, and are no group any more: the report of matrix {id} is in its folder"
        ));
    }
    files.extend(written);
    match json {
        true => {
            let without = entries.iter().find_map(|entry| entry.without_texts.as_ref());
            print_fetched(id, &folder, &files, rebuild, without);
        }
        false => entries.iter().for_each(|entry| out::result(&entry.run_id)),
    }
    Ok(Exit::Done)
}

async fn verify(place: &ArchivePlace, run: Option<&str>, json: bool) -> CliResult {
    let (entries, left_out) = match run {
        Some(selector) => (vec![found(place, selector).await?], Vec::new()),
        None => {
            let listed = list(place).await?;
            (listed.entries, listed.left_out)
        }
    };
    let mut wrong: Vec<Value> = Vec::new();
    for why in left_out {
        if !json {
            out::result(&format!("index: DAMAGED\n  {why}"));
        }
        wrong.push(json!({"run": null, "sound": false, "damage": [why]}));
    }
    let several = several_times(&entries);
    for entry in &entries {
        let mut found = fetch::verify(place, entry).await?;
        found.extend(several.get(&entry.run_id).cloned());
        if !json {
            let word = if found.is_empty() { "sound" } else { "DAMAGED" };
            out::result(&format!("{}: {word}", entry.run_id));
            found.iter().for_each(|line| out::result(&format!("  {line}")));
        }
        wrong.push(json!({"run": entry.run_id, "sound": found.is_empty(), "damage": found}));
    }
    let documents = if run.is_none() { matrix::verify(place, &entries).await? } else { Vec::new() };
    for (name, found) in documents {
        if !json {
            out::result(&format!("{name}: {}", if found.is_empty() { "sound" } else { "DAMAGED" }));
            found.iter().for_each(|line| out::result(&format!("  {line}")));
        }
        wrong.push(json!({"matrix": name, "sound": found.is_empty(), "damage": found}));
    }
    let sound = wrong.iter().all(|run| run["sound"] == true);
    if json {
        out::json(&wrong);
    }
    Ok(if sound { Exit::Done } else { Exit::Invalid })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_says_whose_counting_it_is_by() {
        assert_eq!([scored(Some(0.625), None), scored(None, None)], ["62.50", "-"]);
        assert_eq!(scored(Some(0.625), Some("mem0-2025")), "62.50 as mem0-2025");
    }
}
