//! Banks that are handed on: out of a run into a file, from a file or an address to this machine.

use std::path::Path;

use bench_datasets::DatasetError;
use bench_proto::{banks_archive::BanksManifest, redact};
use bench_settings::signals::Interrupts;
use bench_store::{RunFilter, RunRow, RunState, Store};
use bench_systems::adapter;
use serde::Serialize;
use serde_json::json;

use crate::{
    app::{App, systems::Driven},
    banks::{
        by_calls,
        import::{self, Outcome},
        imported::{self, ImportedBanks},
    },
    cli::{BanksArgs, KeepArgs},
    exit::{CliError, CliResult, Exit},
    out::{
        self,
        amounts::{bytes, counted},
        tables::{render, table},
    },
    runs::banks_archive::{self, BanksExport},
};

/// Names under which this machine may be reached without leaving it.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// An archive of filled banks, as it is told.
#[derive(Debug, Serialize)]
struct Told<'a> {
    name: &'a str,
    /// sha256 of its manifest.
    sha256: &'a str,
    /// The memory system that filled it, with its version.
    system: String,
    dataset: &'a str,
    /// The run that filled it.
    run: Option<&'a str>,
    banks: usize,
    /// Turns or memories that were stored in them.
    turns: Option<u64>,
    licence: Option<&'a str>,
    files: usize,
    bytes: u64,
}

impl<'a> Told<'a> {
    fn new(name: &'a str, sha256: &'a str, manifest: &'a BanksManifest) -> Self {
        Self {
            name,
            sha256,
            system: format!("{} {}", manifest.system.name, manifest.system.version).trim_end().to_owned(),
            dataset: &manifest.dataset.name,
            run: manifest.run.as_deref(),
            banks: manifest.banks.len(),
            turns: manifest.turns,
            licence: manifest.licence.as_deref(),
            files: manifest.files.len(),
            bytes: size(manifest),
        }
    }

    fn from_imported(archive: &'a ImportedBanks) -> Self {
        Self::new(&archive.name, &archive.sha256, &archive.manifest)
    }
}

/// Bytes of what the memory system keeps.
fn size(manifest: &BanksManifest) -> u64 {
    manifest.files.iter().map(|file| file.bytes).sum()
}

/// Writes the banks of a run into a file.
///
/// # Errors
/// As [`banks_archive::export`].
pub(super) async fn export(
    app: &App,
    store: &dyn Store,
    run: &RunRow,
    wanted: &BanksExport<'_>,
    json: bool,
) -> CliResult {
    let (manifest, sha256) = banks_archive::export(app, store, run, wanted).await?;
    let file = wanted.to.display().to_string();
    if json {
        out::json(&json!({ "file": file, "archive": Told::new(&run.run_id.0, &sha256, &manifest) }));
        return Ok(Exit::Done);
    }
    out::result(&format!(
        "{} in {}, {} of {}, in {file}",
        counted(manifest.banks.len() as u64, "bank"),
        counted(manifest.files.len() as u64, "file"),
        bytes(size(&manifest)),
        manifest.system.name
    ));
    if manifest.licence.is_none() {
        out::note(&format!(
            "no licence of the texts of {} is known, so nobody has allowed to hand them on: keep the file to yourself, or say \
             --licence",
            manifest.dataset.name
        ));
    }
    Ok(Exit::Done)
}

/// Keeps an archive on this machine.
///
/// # Errors
/// As [`import::import`].
pub(super) async fn import(app: &App, file: &Path, args: &KeepArgs) -> CliResult {
    let (home, file, args) = (app.home(), file.to_owned(), args.clone());
    app.begin_home(false);
    let (json, into) = (args.json, args.into.clone());
    let imported = tokio::task::spawn_blocking(move || {
        import::import(&home, &file, args.name.as_deref(), args.max_bytes, args.data.as_deref())
    })
    .await;
    let Outcome { banks, was_there } =
        imported.map_err(|e| CliError::internal_fault("reading the archive of banks", e))??;
    if let Some(into) = &into {
        take_in(app, into, &banks).await?;
    }
    let told = Told::from_imported(&banks);
    if json {
        out::json(&told);
        return Ok(Exit::Done);
    }
    let turns = told.turns.map_or(String::new(), |turns| format!(", {}", counted(turns, "turn")));
    let word = if was_there { "was here already" } else { "imported" };
    let (n, files) = (counted(told.banks as u64, "bank"), counted(told.files as u64, "file"));
    out::result(&format!(
        "{} {word}: {n}{turns} of {}, filled by {}; {files}, {}",
        told.name,
        told.dataset,
        told.system,
        bytes(told.bytes)
    ));
    out::note(&format!(
        "`bench-coord submit --banks-from {}` asks them. A memory system trusts the files that it is started on: import only what \
         comes from those whom you trust",
        told.name
    ));
    Ok(Exit::Done)
}

/// Gives the banks of an archive to the server of an adapter, as far as it does not hold them.
///
/// # Errors
/// Exit 2 where the archive holds folders, or the adapter does not say how a server takes banks in; as [`by_calls::import`].
async fn take_in(app: &App, into: &str, banks: &ImportedBanks) -> Result<(), CliError> {
    let refused = |why: &str| Err(CliError::usage(format!("--into {into}: {why}")));
    if !by_calls::are_in(&banks.manifest) {
        return refused("the archive holds the folder of a system: --data copies it for a server that you start on it");
    }
    let driven = app.drive(into, "banks-import").await?;
    let takes = adapter::spec_of(&driven.settings).is_some_and(|spec| spec.import.is_some());
    let taken_in = match takes && adapter::server_of(&driven.settings).is_some() {
        true => give(app, into, &driven, banks).await,
        false => refused("its adapter says no `import`, or no address: write one, and add --set system.url=ADDRESS"),
    };
    // the first signal ends this verb wherever it is
    driven.close(&Interrupts::default()).await;
    driven.leave(taken_in.is_ok());
    taken_in
}

async fn give(app: &App, into: &str, driven: &Driven, banks: &ImportedBanks) -> Result<(), CliError> {
    let version = &driven.system.capabilities().version;
    if let Some(filler) = by_calls::other_filler(&banks.manifest, &driven.name, version) {
        out::note(&format!(
            "--into {into}: the banks were filled by {filler}, and are given to {} {version}: whether it reads them is not known here",
            driven.name
        ));
    }
    let counts = adapter::counts(&driven.settings);
    if !counts {
        out::note(&format!(
            "--into {into}: {} cannot count what a bank holds (`verify`), so that each is given to it, also one that it has already: \
             remove there first what an import that stopped has left",
            driven.name
        ));
    }
    let given = by_calls::import(driven.system.as_ref(), banks, &app.home(), counts).await?;
    let there = banks.manifest.banks.len() - given;
    if there > 0 {
        out::note(&format!(
            "--into {into}: {} were there already, and are left as they are",
            counted(there as u64, "bank")
        ));
    }
    Ok(())
}

/// Downloads an archive, and keeps it on this machine.
///
/// # Errors
/// Exit 2 for an address that cannot be read, and for one without TLS and without a sum; exit 4 for what cannot be had.
pub(super) async fn fetch(app: &App, url: &str, sha256: Option<&str>, args: &KeepArgs) -> CliResult {
    let shown = redact::url(url).into_owned();
    let parsed: reqwest::Url =
        url.parse().map_err(|e| CliError::usage(format!("{shown} is no address: {e}")).because(e))?;
    let is_here = parsed.host_str().is_some_and(|host| LOOPBACK.contains(&host));
    match parsed.scheme() {
        "https" => {}
        "http" if is_here || sha256.is_some() => {}
        "http" => {
            return Err(CliError::usage(format!(
                "{shown} has no TLS: anybody on the way could send something else; say its --sha256, or use https"
            )));
        }
        other => return Err(CliError::usage(format!("{other}: archives of banks are downloaded by https"))),
    }
    let named = parsed.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or_default().to_owned();
    let folder = app.home().join("banks").join(".downloads");
    app.begin_home(false);
    let unwritable =
        |e: std::io::Error| CliError::infrastructure(format!("{} cannot be written: {e}", folder.display())).because(e);
    bench_settings::private::create_folder(&folder).map_err(unwritable)?;
    let name: String = named.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).collect();
    let path = folder.join(if name.trim_matches('.').is_empty() { "banks.tar.gz" } else { &name });
    let (url, sha256, to) = (url.to_owned(), sha256.map(str::to_owned), path.clone());
    let downloaded =
        tokio::task::spawn_blocking(move || bench_datasets::download(&url, sha256.as_deref(), &to, &|_, _| {})).await;
    let downloaded = downloaded.map_err(|e| CliError::internal_fault("downloading the archive of banks", e))?;
    downloaded.map_err(|error| match error {
        DatasetError::Download { ref reason, .. } => {
            // another file than was said is no matter of the network
            let exit = if reason.starts_with("sha256 is") { Exit::Usage } else { Exit::Infrastructure };
            CliError::new(exit, format!("{shown} was not fetched: {reason}")).because(error)
        }
        other => other.into(),
    })?;
    let imported = import(app, &path, args).await;
    // it is kept unpacked, or is none
    let _ = std::fs::remove_file(&path);
    imported
}

/// Prints what was imported.
///
/// # Errors
/// Exit 4 for a folder that cannot be read.
pub(super) fn list(app: &App, args: &BanksArgs) -> CliResult {
    let all = imported::all(&app.home())?;
    let is_wanted =
        |archive: &&ImportedBanks| args.system.as_ref().is_none_or(|system| *system == archive.manifest.system.name);
    let told: Vec<Told<'_>> = all.iter().filter(is_wanted).map(Told::from_imported).collect();
    if args.json {
        out::json(&told);
        return Ok(Exit::Done);
    }
    if told.is_empty() {
        out::note("no banks were imported: `bench-coord banks import FILE` keeps those of somebody else");
        return Ok(Exit::Done);
    }
    let mut lines =
        table(["name", "filled by", "dataset", "banks", "turns", "size", "licence"]).sparing(&["dataset", "licence"]);
    for archive in told {
        let turns = archive.turns.map_or_else(|| "-".to_owned(), |turns| turns.to_string());
        let licence = archive.licence.unwrap_or("-").to_owned();
        lines.add_row([
            archive.name.to_owned(),
            archive.system,
            archive.dataset.to_owned(),
            archive.banks.to_string(),
            turns,
            bytes(archive.bytes),
            licence,
        ]);
    }
    out::result(&render(&lines));
    Ok(Exit::Done)
}

/// Removes imported banks.
///
/// # Errors
/// Exit 2 for names that are none, and for banks that a run asks which has not ended.
pub(super) async fn remove(app: &App, names: &[String], json: bool) -> CliResult {
    for name in names {
        ImportedBanks::open(&app.home(), name)?;
    }
    let open = |run: &RunRow| matches!(run.state, RunState::Running | RunState::Paused);
    let runs = app.open_store().await?.list_runs(&RunFilter::default()).await?;
    for run in runs.iter().filter(|run| open(run)) {
        let asked = run.spec.taken_over.archive.iter().find(|asked| names.contains(&asked.name));
        if let Some(asked) = asked {
            return Err(CliError::usage(format!(
                "run {0} asks the banks of '{1}' and has not ended: `bench-coord resume {0}` or `cancel {0}` first",
                run.run_id, asked.name
            )));
        }
    }
    for name in names {
        import::remove(&app.home(), name)?;
    }
    match json {
        true => out::json(&json!({ "banks_removed": names.len(), "failed": 0 })),
        false => out::result(&format!("{} removed", names.join(", "))),
    }
    Ok(Exit::Done)
}
