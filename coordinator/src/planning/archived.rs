//! Banks out of an archive, for a run that asks them instead of filling its own (`--banks-from`).

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use bench_proto::{
    banks_archive::{ArchivedBank, BanksManifest, FILES},
    ids::Sha256Hash,
    spec::{AskedArchive, RunSpec, TakenOver},
};
use bench_store::{FilledBank, RunRow};
use bench_systems::adapter;

use super::{
    PlannedRun,
    filled::{
        look::{is_asked_at_its_end, looked_up, note},
        named::ask_by_name,
    },
};
use crate::{
    app::{App, Deployment},
    banks::{
        by_calls,
        import::check_unchanged,
        imported::{self, ImportedBanks},
    },
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

/// Whether the archive that a run asks is still here: instances that have not been started yet begin with its files, and what is not
/// planned yet is looked up in its manifest.
///
/// # Errors
/// Exit 2 with what to import again.
pub(crate) fn check_here(home: &Path, run: &RunRow) -> Result<(), CliError> {
    let spec = &run.spec;
    if run.planned && adapter::server_of(&spec.system.settings).is_some() {
        return Ok(());
    }
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
    if planned.capabilities.from_items {
        out::note(&format!(
            "--banks-from {name}: {} is computed from the stored texts: it has nothing to take from an archive",
            planned.spec.system.name
        ));
        return Ok(());
    }
    check_system(&planned.spec, &archive)?;
    // what a server has that stands somewhere is asked from everywhere
    if app.deployment()? == Deployment::Cluster && adapter::server_of(&planned.spec.system.settings).is_none() {
        return Err(CliError::usage(format!(
            "--banks-from {name}: {} is started by the workers of the cluster, which do not have the files of this machine; start its \
             server on a copy where they reach it (`bench-coord banks import FILE --data DIR`), and add --set system.url=ADDRESS",
            planned.spec.system.name
        )));
    }
    let (home, here) = (app.home(), archive.clone());
    let checked = tokio::task::spawn_blocking(move || check_unchanged(&home, &here)).await;
    checked.map_err(|e| CliError::internal_fault("checking the archive of banks", e))??;
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

/// Name of the archive here that the same memory system has filled with what a planned run would store; of several that with most of
/// it, of equal ones the first by name.
///
/// # Errors
/// What the dataset meets; exit 4 for a folder that cannot be read.
pub(super) async fn fitting(home: &Path, planned: &PlannedRun) -> Result<Option<String>, CliError> {
    let fits = |archive: &ImportedBanks| {
        differs(&planned.spec, &archive.manifest).is_none() && check_system(&planned.spec, archive).is_ok()
    };
    let here: Vec<ImportedBanks> = imported::all(home)?.into_iter().filter(fits).collect();
    if here.is_empty() {
        return Ok(None);
    }
    let wanted = looked_up(planned, |bank| is_asked_at_its_end(bank).then_some(bank.content)).await?;
    Ok(fullest(here.iter().map(|archive| (archive.name.as_str(), &archive.manifest)), &wanted).map(str::to_owned))
}

/// The archive that holds most of what is wanted, by its name; `None` where none holds any of it.
fn fullest<'a>(archives: impl Iterator<Item = (&'a str, &'a BanksManifest)>, wanted: &[Sha256Hash]) -> Option<&'a str> {
    let held = |manifest: &BanksManifest| {
        let of: HashSet<Sha256Hash> = manifest.banks.iter().map(|bank| bank.content).collect();
        wanted.iter().filter(|content| of.contains(*content)).count()
    };
    let all = archives.map(|(name, manifest)| (held(manifest), name)).filter(|(held, _)| *held > 0);
    all.reduce(|first, other| if other.0 > first.0 { other } else { first }).map(|(_, name)| name)
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
            "--banks-from {name}: no bank of this run is among the {} of the archive: a bank is asked again only where it holds the very \
             same texts; those of the archive are of {}{} (sha256 {}): take the dataset with its settings, the banks and sessions of the sample, \
             and --no-canaries or not, from the run {}",
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
    if by_calls::are_in(&archive.manifest) {
        return refused(String::from(
            "a server has handed its banks on by calls of its own, and no folder is in it: give them to one \
             (`bench-coord banks import FILE --into ADAPTER`), and say where it listens with --set system.url=ADDRESS",
        ));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archive_that_holds_most_of_a_run_is_asked() {
        let hashes: Vec<Sha256Hash> = (0..4_u8).map(|n| Sha256Hash::of_bytes(&[n])).collect();
        let manifest = |held: &[usize]| {
            let bank = |at: &usize| ArchivedBank {
                bank_id: format!("b{at}"),
                name: format!("n{at}"),
                handle: format!("n{at}"),
                content: hashes[*at],
                retained: 1,
                items: None,
            };
            BanksManifest { banks: held.iter().map(bank).collect(), ..BanksManifest::default() }
        };
        let all = [("a", manifest(&[3])), ("b", manifest(&[0, 1])), ("c", manifest(&[1, 2])), ("d", manifest(&[]))];
        let of = |wanted: &[Sha256Hash]| fullest(all.iter().map(|(name, manifest)| (*name, manifest)), wanted);
        assert_eq!(of(&hashes[..3]), Some("b"), "of equal ones the first");
        assert_eq!(of(&hashes[2..]), Some("a"));
        assert_eq!(of(&hashes[1..3]), Some("c"));
        assert_eq!((of(&[Sha256Hash::of_bytes(b"other")]), of(&[])), (None, None));
    }
}
