//! The banks of a run as a file: what its memory system keeps is copied while nothing writes it, and searched for keys first.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use bench_proto::{
    banks_archive::{
        ArchivedBank, BANKS_ARCHIVE_VERSION, BanksManifest, EXPORTED, FILES, FilledDataset, FilledSystem, MANIFEST,
    },
    dataset::StreamEntry,
    ids::Sha256Hash,
    redact,
    spec::{RunSpec, SystemSpec},
};
use bench_settings::private;
use bench_store::{BankRow, RunRow, RunState, Store};
use bench_systems::{
    BuildContext, SystemSettings,
    adapter::{self, KeptData, KeySource, given::Given},
    registry::{self, Named},
};
use bench_worker::banks::BankData;
use flate2::{Compression, write::GzEncoder};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::{
    app::App,
    banks::{
        by_calls,
        files::{self, Content},
    },
    exit::CliError,
    planning::filled::is_filled,
    standing::{is_restored, keeps_banks, removed_banks},
};

/// What is exported, and whereto.
pub(crate) struct BanksExport<'a> {
    /// The new file.
    pub(crate) to: &'a Path,
    /// The folder in which a server keeps what it stores, where the runner does not start it.
    pub(crate) data: Option<&'a Path>,
    /// The adapter of today that takes the place of the run's.
    pub(crate) adapter: Option<&'a str>,
    /// Under what terms it may be handed on, where a person says it.
    pub(crate) licence: Option<&'a str>,
}

/// The adapter by which a run's memory system is asked.
struct RunAdapter<'a> {
    /// The run's settings, with this adapter among them.
    settings: SystemSettings,
    /// How a person has named it just now.
    given: Option<&'a str>,
}

impl<'a> RunAdapter<'a> {
    /// # Errors
    /// Exit 2 for an adapter that says something else to the system than the one that the run was submitted with.
    fn new(run: &RunRow, given: Option<&'a str>) -> Result<Self, CliError> {
        let recorded = &run.spec.system.settings;
        let settings = given.map_or_else(|| Ok(recorded.clone()), |given| of_today(&run.spec.system, given))?;
        Ok(Self { settings, given })
    }

    /// What nobody else may read of it, and of what the run was submitted with.
    fn secrets(&self, run: &RunRow) -> Vec<String> {
        let mut secrets = adapter::secrets_of(&self.settings);
        if self.given.is_some() {
            secrets.extend(adapter::secrets_of(&run.spec.system.settings));
        }
        secrets
    }

    /// Refuses where a key that the system was given cannot be looked for in what it has kept.
    ///
    /// # Errors
    /// Exit 2 with the variables that have to be set, and the files that have to be there.
    fn check_keys(&self, run: &RunRow) -> Result<(), CliError> {
        // what the meter gives is the run's own key, which is told by its form
        let given = Given::before_the_meter(run.spec.limits.meter.as_ref().map(|meter| &meter.variables));
        let settings = [&self.settings, &run.spec.system.settings];
        let keys: BTreeSet<KeySource> =
            settings.into_iter().flat_map(|settings| adapter::keys_not_read(settings, &given)).collect();
        if keys.is_empty() {
            return Ok(());
        }
        let of_files = keys.iter().filter(|key| matches!(key, KeySource::File(_))).count();
        let how = match (of_files, keys.len()) {
            (0, _) => "set it",
            (files, all) if files == all => "put the key there",
            _ => "set the variables, and put the key into the file",
        };
        let names: Vec<String> = keys.iter().map(ToString::to_string).collect();
        Err(CliError::usage(format!(
            "the banks of {} cannot be exported: the adapter names {}, and this process cannot read it: {how}, so that the files of the \
             banks can be searched for the key",
            run.run_id,
            names.join(", ")
        )))
    }
}

/// The settings of a run's memory system with the adapter of today in the place of the recorded one, which says the same to it: it has
/// to have the same fingerprint.
fn of_today(system: &SystemSpec, given: &str) -> Result<SystemSettings, CliError> {
    let Named::Adapter(spec) = registry::named(given).map_err(CliError::usage_of)? else {
        return Err(CliError::usage(format!("--adapter {given}: it is a built-in system; name an adapter file")));
    };
    let value = serde_json::to_value(&spec).map_err(CliError::infrastructure_of)?;
    let mut settings = system.settings.clone();
    settings.insert(adapter::ADAPTER.to_owned(), value);
    let version = |settings: &SystemSettings| {
        registry::capabilities(&system.name, settings, &BuildContext::default()).map(|can| can.version)
    };
    // the same build says of both what they are
    let (then, now) = (version(&system.settings).ok(), version(&settings).map_err(CliError::usage_of)?);
    if spec.name == system.name && then.as_ref() == Some(&now) {
        return Ok(settings);
    }
    Err(CliError::usage(format!(
        "--adapter {given}: it is {} {now}, and {} {} has filled the banks: take the file of that run, and change nothing in it but \
         `export`, its `timeout`, and what else is no part of the fingerprint",
        spec.name,
        system.name,
        then.as_ref().unwrap_or(&system.version)
    )))
}

/// Writes the banks that a run has filled, with what its memory system keeps, into a new file; its manifest, and the sha256 of that.
///
/// # Errors
/// Exit 2 for a run that has not ended or has filled nothing that can be handed on, for a system that runs, for files that hold a key
/// or are none; exit 4 for what the disk says.
pub(crate) async fn export(
    app: &App,
    store: &dyn Store,
    run: &RunRow,
    wanted: &BanksExport<'_>,
) -> Result<(BanksManifest, String), CliError> {
    let Filled { mut banks, turns } = filled_banks(store, run).await?;
    if wanted.to.exists() {
        return Err(CliError::usage(format!("{} is there already: name another file", wanted.to.display())));
    }
    let asked = RunAdapter::new(run, wanted.adapter)?;
    asked.check_keys(run)?;
    let kept = kept(app, run, &asked, &mut banks, wanted.data).await?;
    let folders: Vec<(String, PathBuf)> = match &kept {
        Kept::Started(held) => held
            .iter()
            // instances of banks that were begun anew stay behind
            .filter(|kept| kept.instance.is_empty() || banks.iter().any(|bank| bank.name == kept.instance))
            .map(|kept| (in_archive(&kept.instance), kept.folder.clone()))
            .collect(),
        Kept::Named(folder) => vec![(in_archive(""), folder.clone())],
        Kept::HandedOn(folder) => vec![(EXPORTED.to_owned(), folder.path().to_owned())],
    };
    let secrets = asked.secrets(run);
    // one folder for all banks has those too that came with an archive: they are somebody else's to hand on
    if let Some(archive) = &run.spec.taken_over.archive
        && folders.iter().any(|(name, _)| *name == in_archive(""))
    {
        return Err(CliError::usage(format!(
            "the banks of {} cannot be exported: they lie in one folder with those of the archive {}, which the run has not filled; \
             submit a run without --banks-from that fills all of them",
            run.run_id, archive.name
        )));
    }
    let manifest = manifest(run, banks, turns, wanted.licence);
    let to = wanted.to.to_owned();
    let written = tokio::task::spawn_blocking(move || write(&folders, &secrets, manifest, &to)).await;
    drop(kept);
    written.map_err(|e| CliError::internal_fault("writing the archive of banks", e))?
}

/// Name of an instance's data in an archive.
fn in_archive(instance: &str) -> String {
    if instance.is_empty() { "data".to_owned() } else { format!("{instance}/data") }
}

/// Banks that a run has filled itself, to their ends.
struct Filled {
    banks: Vec<ArchivedBank>,
    /// Turns and memories of the dataset that they were given.
    turns: u64,
}

async fn filled_banks(store: &dyn Store, run: &RunRow) -> Result<Filled, CliError> {
    let id = &run.run_id;
    let refused = |why: String| Err(CliError::usage(format!("the banks of {id} cannot be exported: {why}")));
    if run.imported || !keeps_banks(&run.spec) {
        return refused(format!("{} is computed from the stored texts", run.spec.system.name));
    }
    if is_restored(store, run).await? {
        return refused("the run came from an archive, and its banks are where it ran".to_owned());
    }
    if let Some(of) = removed_banks(store, run).await? {
        return refused(format!("those of {of} were removed"));
    }
    if !matches!(run.state, RunState::Finished | RunState::Cancelled) {
        return refused("it has not ended, and its memory system is in use".to_owned());
    }
    let system = &run.spec.system;
    let can = registry::capabilities(&system.name, &system.settings, &BuildContext::default());
    if can.is_ok_and(|can| can.recall_mutates) {
        return refused("its questions have changed them, so that they are not what was filled".to_owned());
    }
    let rows = store.banks(run.run_no, None).await?;
    let mut filled = Filled { banks: Vec::new(), turns: 0 };
    for row in rows.iter().filter(|row| is_filled(row)) {
        let Some(bank) = archived(row) else { continue };
        let content = BankData::read(store, row.clone()).await?.content;
        let planted = run.spec.facts_in(row.bank_no, &row.bank_id).len() as u64;
        let turns: usize = content.entries.iter().map(StreamEntry::turns).sum();
        filled.turns += (turns as u64).saturating_sub(planted);
        filled.banks.push(bank);
    }
    if filled.banks.is_empty() {
        let of = run.spec.taken_over.archive.as_ref();
        return refused(of.map_or_else(
            || "it has filled none to its end".to_owned(),
            |archive| format!("they are those of the archive {}", archive.name),
        ));
    }
    Ok(filled)
}

fn archived(row: &BankRow) -> Option<ArchivedBank> {
    let handle = row.handle.as_deref()?;
    Some(ArchivedBank {
        bank_id: row.bank_id.clone(),
        name: row.name_of(row.generation),
        // where a started system ran is of no use elsewhere
        handle: handle.split_once('|').map_or(handle, |(_, own)| own).to_owned(),
        content: row.content,
        // a segment that retains nothing is a step too
        retained: row.position.min(row.segments.last().map_or(0, |segment| segment.until)),
        items: None,
    })
}

/// Where the data lie, which nobody writes meanwhile.
enum Kept {
    /// Of a system that is started for its runs: nobody starts it while this is held.
    Started(Vec<KeptData>),
    /// Of a server that was stopped.
    Named(PathBuf),
    /// As a server has handed it on, in a folder that goes with this.
    HandedOn(TempDir),
}

async fn kept(
    app: &App,
    run: &RunRow,
    asked: &RunAdapter<'_>,
    banks: &mut [ArchivedBank],
    data: Option<&Path>,
) -> Result<Kept, CliError> {
    let (system, settings) = (&run.spec.system, &asked.settings);
    let refused = |why: &str| Err(CliError::usage(format!("the banks of {} cannot be exported: {why}", run.run_id)));
    let Some(spec) = adapter::spec_of(settings) else {
        return refused(&format!(
            "{} keeps them in a database of its own, which has its own way to copy it",
            system.name
        ));
    };
    if let Some(folder) = data {
        if !folder.is_dir() {
            return Err(CliError::usage(format!("--data {}: there is no such folder", folder.display())));
        }
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if real(&app.home()).starts_with(real(folder)) {
            return Err(CliError::usage(format!(
                "--data {}: it holds {}, with the store and all results of this runner: name the folder of the memory system alone",
                folder.display(),
                app.home().display()
            )));
        }
        if adapter::server_of(settings).is_none() {
            return Err(CliError::usage(format!(
                "--data {}: it is for a server that you start; {} is started by the runner, in a folder that the runner knows: leave \
                 --data out",
                folder.display(),
                system.name
            )));
        }
        check_stopped(app, &system.name, settings).await?;
        return Ok(Kept::Named(folder.to_owned()));
    }
    if adapter::server_of(settings).is_some() {
        if spec.export.is_some() {
            return handed_on(app, &system.name, asked, banks).await.map(Kept::HandedOn);
        }
        return refused(
            "its memory system is a server that you start: stop it, and name the folder in which it keeps what it stores with --data; \
             one that can hand a bank on says how with `export` in its adapter: add it there, and name the file with --adapter",
        );
    }
    if !spec.can.survives_restart {
        return refused("what its memory system stores ends with its process");
    }
    let held = adapter::hold_data(&app.home(), &run.run_id.0, &system.name).await;
    let held = held.map_err(|e| CliError::infrastructure(e.to_string()).because(e))?;
    if held.is_empty() {
        return refused(
            "nothing is kept in the folder of the run on this machine: export them on the machine that has started its memory system",
        );
    }
    Ok(Kept::Started(held))
}

/// What the run's server hands on of each bank, by its own call.
async fn handed_on(
    app: &App,
    name: &str,
    asked: &RunAdapter<'_>,
    banks: &mut [ArchivedBank],
) -> Result<TempDir, CliError> {
    let (settings, home) = (&asked.settings, app.home());
    let made = tempfile::Builder::new().prefix(".exported-").tempdir_in(&home);
    let folder =
        made.map_err(|e| CliError::infrastructure(format!("{} cannot be written: {e}", home.display())).because(e))?;
    let policy = asked.given.map_or_else(|| app.policy(), |given| app.policy_naming(settings, given));
    let environment = app.environment_outside_of_runs(policy)?;
    let context = environment.systems.for_run("export");
    let system = registry::build(name, settings, &context).map_err(CliError::usage_of)?;
    let exported = by_calls::export(system.as_ref(), banks, folder.path(), adapter::counts(settings)).await;
    system.close().await;
    exported.map(|()| folder)
}

/// Refuses a server that answers: what it writes while it is copied is neither old nor new.
async fn check_stopped(app: &App, name: &str, settings: &SystemSettings) -> Result<(), CliError> {
    let is_server = adapter::server_of(settings).is_some();
    let policy = app.policy();
    if !is_server || policy.check(settings).is_err() {
        return Ok(());
    }
    let environment = app.environment_outside_of_runs(policy)?;
    let system = registry::build(name, settings, &environment.systems.for_run("export")).map_err(CliError::usage_of)?;
    let health = system.health().await;
    system.close().await;
    match health {
        Ok(_) => Err(CliError::usage(format!(
            "{name} answers: stop it first, since what it writes while its folder is copied is neither old nor new"
        ))),
        Err(failure) if failure.code == adapter::UNREACHABLE => Ok(()),
        Err(failure) => Err(CliError::usage(format!(
            "{name} is there and does not answer as it should ({}): stop it first, since a server that hangs still has its files open",
            failure.message
        ))),
    }
}

fn manifest(run: &RunRow, banks: Vec<ArchivedBank>, turns: u64, licence: Option<&str>) -> BanksManifest {
    let RunSpec { system, dataset, .. } = &run.spec;
    let settings = adapter::settings_of_banks(&system.settings);
    let of_dataset = || {
        let known = bench_datasets::find(&dataset.name).ok()?;
        known.manifest.may_be_handed_on().then(|| known.manifest.licence.clone())
    };
    BanksManifest {
        version: BANKS_ARCHIVE_VERSION,
        run: Some(run.run_id.0.clone()),
        code_version: Some(run.code_version.clone()),
        system: FilledSystem {
            name: system.name.clone(),
            version: system.version.clone(),
            settings: settings.map(|(name, value)| (name.clone(), value.clone())).collect(),
        },
        dataset: FilledDataset {
            name: dataset.name.clone(),
            version: Some(dataset.version.clone()),
            sha256: Some(dataset.sha256.clone()),
            settings: dataset.settings.clone(),
        },
        turns: Some(turns),
        licence: licence.map(str::to_owned).or_else(of_dataset),
        banks,
        files: Vec::new(),
        metadata: None,
    }
}

/// Sums up the files, and writes them behind their manifest.
fn write(
    folders: &[(String, PathBuf)],
    secrets: &[String],
    mut manifest: BanksManifest,
    to: &Path,
) -> Result<(BanksManifest, String), CliError> {
    let mut all = Vec::new();
    for (name, folder) in folders {
        all.extend(files::below(folder, name)?);
    }
    if all.is_empty() {
        return Err(CliError::usage("the memory system has kept nothing in its folder: there is nothing to export"));
    }
    for (name, path) in &all {
        let content = Content::read(path, Some(secrets)).map_err(|e| files::unreadable(path, e))?;
        let is_named = secrets.iter().any(|secret| name.contains(secret)) || redact::run_key(name.as_bytes()).is_some();
        if content.has_key || is_named {
            let mut shown = redact::run_keys(&path.display().to_string()).into_owned();
            secrets.iter().for_each(|secret| shown = shown.replace(secret, "***"));
            return Err(CliError::usage(format!(
                "{shown} holds a key of this process, of its adapter or of a metered run: it is not handed on; have the system read \
                 its key from its environment and store nothing of it"
            )));
        }
        manifest.files.push(content.entry(name));
    }
    let text = serde_json::to_vec_pretty(&manifest).map_err(CliError::infrastructure_of)?;
    let unwritable =
        |e: io::Error| CliError::infrastructure(format!("{} cannot be written: {e}", to.display())).because(e);
    // what a killed one has left is written over by the next
    let making = to.with_added_extension("part");
    let file = private::options().create(true).truncate(true).write(true).open(&making).map_err(unwritable)?;
    let written = pack(&all, &manifest, &text, &file);
    let written = written.and_then(|()| match to.exists() {
        true => Err(Failed::Write(io::ErrorKind::AlreadyExists.into())),
        false => Ok(fs::rename(&making, to)?),
    });
    // it has its name, or is of no use
    let _ = fs::remove_file(&making);
    written.map(|()| (manifest, Sha256Hash::of_bytes(&text).hex())).map_err(|failed| match failed {
        Failed::Write(error) => unwritable(error),
        Failed::Changed(path) => CliError::usage(format!(
            "{} has changed while it was copied: stop whatever writes there, and try again",
            path.display()
        )),
    })
}

/// Why an archive was not written.
enum Failed {
    Write(io::Error),
    /// A file is not what it was when it was summed up.
    Changed(PathBuf),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

fn pack(all: &[(String, PathBuf)], manifest: &BanksManifest, text: &[u8], to: &File) -> Result<(), Failed> {
    let mut archive = tar::Builder::new(GzEncoder::new(io::BufWriter::new(to), Compression::default()));
    let header = |bytes: u64| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_size(bytes);
        // the same files make the same archive
        header.set_mode(0o600);
        header
    };
    archive.append_data(&mut header(text.len() as u64), MANIFEST, text)?;
    for ((name, path), listed) in all.iter().zip(&manifest.files) {
        let mut content = Summed { inner: File::open(path)?.take(listed.bytes), sum: Sha256::new(), bytes: 0 };
        let appended = archive.append_data(&mut header(listed.bytes), format!("{FILES}/{name}"), &mut content);
        let is_longer = fs::metadata(path)?.len() > listed.bytes;
        if is_longer || content.bytes < listed.bytes || hex::encode(content.sum.finalize()) != listed.sha256 {
            return Err(Failed::Changed(path.clone()));
        }
        appended?;
    }
    let mut file = archive.into_inner()?.finish()?;
    file.flush()?;
    file.get_ref().sync_all()?;
    Ok(())
}

/// Sums up what is read.
struct Summed<R> {
    inner: R,
    sum: Sha256,
    bytes: u64,
}

impl<R: Read> Read for Summed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.sum.update(&buffer[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}
