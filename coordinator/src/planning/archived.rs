//! Banks out of an archive, for a run that asks them instead of filling its own (`--banks-from`).

use std::{collections::HashMap, path::Path};

use bench_proto::{
    banks_archive::{ArchivedBank, BanksManifest, FILES},
    ids::Sha256Hash,
    spec::{AskedArchive, RunSpec, TakenOver},
};
use bench_store::{FilledBank, RunRow};
use bench_systems::adapter;

use super::{
    PlannedRun,
    filled::{ask_by_name, is_asked_at_its_end, looked_up, note},
};
use crate::{
    app::{App, Deployment},
    banks::{import::check_unchanged, imported::ImportedBanks},
    exit::CliError,
    out::{self, amounts::counted},
};

/// The banks of an archive that a run asks, as its memory system has them, by the hash of what they were given.
///
/// # Errors
/// Exit 2 when it is not here, or another one has its name.
pub(super) fn banks(
    home: &Path,
    asked: &AskedArchive,
    spec: &RunSpec,
) -> Result<HashMap<Sha256Hash, FilledBank>, CliError> {
    let here = ImportedBanks::open(home, &asked.name)?;
    if here.sha256 != asked.sha256 {
        return Err(CliError::usage(format!(
            "the banks that were imported as '{}' are not those that the run began with: import these again",
            asked.name
        )));
    }
    let host = host(spec);
    let bank = |bank: &ArchivedBank| FilledBank {
        name: bank.name.clone(),
        handle: format!("{host}{}", bank.handle),
        by: None,
    };
    // of equal ones that of the first
    let mut all = HashMap::new();
    for one in &here.manifest.banks {
        all.entry(one.content).or_insert_with(|| bank(one));
    }
    Ok(all)
}

/// Whether the archive that a run asks is still here: instances that have not been started yet begin with its files.
///
/// # Errors
/// Exit 2 with what to import again.
pub(crate) fn check_here(home: &Path, run: &RunRow) -> Result<(), CliError> {
    let spec = &run.spec;
    let asked = spec.taken_over.archive.as_ref().filter(|_| spec.taken_over.recalls_of.is_none());
    asked.map_or(Ok(()), |asked| banks(home, asked, spec).map(drop))
}

/// What stands in front of the handles of a run's banks: the machine on which its system is started, where it is.
pub(super) fn host(spec: &RunSpec) -> String {
    if adapter::is_started(&spec.system.settings) { format!("{}|", adapter::host()) } else { String::new() }
}

/// Lets a planned run ask what an archive holds of its banks; it fills the others. `bank`: the bank's name in the memory system, for an
/// archive that does not say what its banks hold.
///
/// # Errors
/// Exit 2 where the archive is not here, the memory system cannot be given its files, and when it holds none of the run's banks.
pub(super) async fn ask(app: &App, name: &str, bank: Option<&str>, planned: &mut PlannedRun) -> Result<(), CliError> {
    let archive = ImportedBanks::open(&app.home(), name)?;
    if app.deployment()? != Deployment::Local {
        return Err(CliError::usage(
            "--banks-from: imported banks lie on this machine, and workers of a cluster cannot take them from here; start their server \
             on a copy (`banks import --data DIR`) and ask it with --bank",
        ));
    }
    if planned.capabilities.from_items {
        out::note(&format!(
            "--banks-from {name}: {} is computed from the stored texts: it has nothing to take from an archive",
            planned.spec.system.name
        ));
        return Ok(());
    }
    check_system(&planned.spec, &archive)?;
    let (home, here) = (app.home(), archive.clone());
    let checked = tokio::task::spawn_blocking(move || check_unchanged(&home, &here)).await;
    checked.map_err(|e| CliError::infrastructure(format!("the archive could not be read: {e}")).because(e))??;
    let asked = AskedArchive {
        name: archive.name.clone(),
        sha256: archive.sha256.clone(),
        filled_by: differs(&planned.spec, &archive.manifest),
    };
    match (bank, archive.manifest.banks.is_empty()) {
        (None, true) => {
            return Err(CliError::usage(format!(
                "--banks-from {name}: it does not say which banks it holds; name the one that is to be asked, as its memory system knows \
                 it, with --bank"
            )));
        }
        (Some(_), false) => {
            return Err(CliError::usage(format!(
                "--banks-from {name}: it says itself what each of its banks holds; leave --bank out"
            )));
        }
        (Some(bank), true) => ask_by_name(bank, &mut planned.spec)?,
        (None, false) => find(planned, &archive, &asked).await?,
    }
    if let Some(filler) = &asked.filled_by {
        let of = &archive.manifest.dataset.name;
        note(
            &mut planned.spec,
            format!(
                "the banks of the archive {name} (manifest {}) were filled by {filler} with {of}: they are a part of what is measured \
                 here",
                &asked.sha256[..12]
            ),
        );
    }
    planned.spec.taken_over = TakenOver { archive: Some(asked), ..planned.spec.taken_over.clone() };
    Ok(())
}

/// Looks which of the run's banks the archive has.
async fn find(planned: &mut PlannedRun, archive: &ImportedBanks, asked: &AskedArchive) -> Result<(), CliError> {
    let (name, manifest) = (&archive.name, &archive.manifest);
    let held: HashMap<Sha256Hash, u32> = manifest.banks.iter().map(|bank| (bank.content, bank.retained)).collect();
    let found =
        looked_up(planned, move |bank| held.get(&bank.content).copied().filter(|_| is_asked_at_its_end(bank))).await?;
    let banks = planned.spec.sample.banks;
    if found.is_empty() {
        let what = &manifest.dataset;
        let seeds = what.settings.iter().map(|(name, value)| format!(", {name} {value}"));
        return Err(CliError::usage(format!(
            "--banks-from {name}: none of its {} holds what a bank of this run would: they hold {}{} (sha256 {}) with its canaries, \
             to the last byte; --no-canaries, the sample of banks and sessions, and settings of the dataset have to be those of run {}",
            counted(manifest.banks.len() as u64, "bank"),
            what.name,
            seeds.collect::<String>(),
            what.sha256.as_deref().unwrap_or("not known"),
            manifest.run.as_deref().unwrap_or("that filled them"),
        )));
    }
    let filled_by = manifest.run.as_deref().map_or(String::new(), |run| format!(", filled by run {run}"));
    let rest = banks - found.len() as u64;
    let rest = if rest == 0 { String::new() } else { format!("; {} filled by this run", counted(rest, "bank")) };
    note(
        &mut planned.spec,
        format!(
            "{} of {} from the archive {} (manifest {}){filled_by}{rest}",
            found.len(),
            counted(banks, "bank"),
            asked.name,
            &asked.sha256[..12]
        ),
    );
    Ok(())
}

/// Refuses a memory system that cannot be given the files of an archive.
fn check_system(spec: &RunSpec, archive: &ImportedBanks) -> Result<(), CliError> {
    let (name, system) = (&archive.name, &spec.system.name);
    let refused = |why: String| Err(CliError::usage(format!("--banks-from {name}: {why}")));
    let Some(adapter) = adapter::spec_of(&spec.system.settings) else {
        return refused(format!("{system} has no folder of its own that files could be put into"));
    };
    // whoever starts a server has given it the files
    if adapter::server_of(&spec.system.settings).is_some() {
        return Ok(());
    }
    if adapter.command.is_some() {
        return refused(format!("{system} is a program that keeps what it stores where it likes: no folder is known"));
    }
    if !adapter.can.survives_restart {
        return refused(format!("what {system} stores ends with its process, so that it reads no files"));
    }
    let by_bank = archive.manifest.files.iter().any(|file| !file.name.starts_with("data/"));
    let wants = adapter.start.as_ref().is_some_and(|start| start.per == adapter::InstancePer::Bank);
    match (by_bank, wants) {
        (true, false) => refused(format!("each of its banks had an instance of its own, and {system} has one for all")),
        (false, true) => refused(format!("its banks had one instance, and {system} has one for each (`per: bank`)")),
        _ if archive.manifest.files.is_empty() => refused(format!("it has no {FILES}")),
        _ => Ok(()),
    }
}

/// The memory system that filled an archive, where a run asks another one.
fn differs(spec: &RunSpec, manifest: &BanksManifest) -> Option<String> {
    let (asked, filler) = (&spec.system, &manifest.system);
    let same_settings = adapter::settings_of_banks(&asked.settings).eq(filler.settings.iter());
    if asked.name == filler.name && asked.version == filler.version && same_settings {
        return None;
    }
    let told = format!("{} {}", filler.name, filler.version).trim_end().to_owned();
    Some(if same_settings { told } else { format!("{told} with other settings") })
}
