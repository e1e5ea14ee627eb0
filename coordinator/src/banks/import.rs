//! A file of somebody else becomes banks of this machine: unpacked apart, held to its manifest to the last byte, and only then given
//! its name. Nothing in it says what may run here.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
    time::Duration,
};

use bench_datasets::{TOO_MUCH_COMES_OUT, unpack_archive};
use bench_proto::{
    banks_archive::{ArchivedFile, BANKS_ARCHIVE_VERSION, BanksManifest, FILES, FilledDataset, FilledSystem, MANIFEST},
    ids::Sha256Hash,
    json_bound, text,
};
use bench_settings::private;
use bench_systems::adapter;
use serde_json::Value;

use super::{
    by_calls,
    files::{self, Content, unreadable},
    imported::{ImportedBanks, folder, read_manifest},
};
use crate::exit::CliError;

/// How the names of folders begin in which archives are unpacked.
const MAKING: &str = ".making-";
/// After so long an import is one that was killed.
const KILLED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
/// What another program says of its archive: the runner of amplihack, whose agent keeps its memories in [`MEMORY`].
const METADATA: &str = "metadata.json";
const MEMORY: &str = "memory_db";
/// Largest file of that, in bytes.
const MOST_METADATA: u64 = 1 << 20;

/// What became of an import.
pub(crate) struct Outcome {
    pub(crate) banks: ImportedBanks,
    /// The same archive was here under this name already.
    pub(crate) was_there: bool,
}

/// Unpacks an archive of filled banks below the home and checks it. `name`: what it is called here, else what it calls itself.
/// `most`: bytes that may come out of it. `data`: a new folder for a server, into which its files are copied too.
///
/// # Errors
/// Exit 2 for what is none, is damaged, leads out of its folder or unpacks to more than it may, and for a name that another archive
/// has; exit 4 for what the disk says.
pub(crate) fn import(
    home: &Path,
    archive: &Path,
    name: Option<&str>,
    most: Option<u64>,
    data: Option<&Path>,
) -> Result<Outcome, CliError> {
    if !archive.is_file() {
        return Err(CliError::usage(format!("{}: there is no such file", archive.display())));
    }
    let root = home.join("banks");
    let unwritable =
        |e: io::Error| CliError::infrastructure(format!("{} cannot be written: {e}", root.display())).because(e);
    private::create_folder(&root).map_err(unwritable)?;
    remove_killed(&root);
    let making = tempfile::Builder::new().prefix(MAKING).tempdir_in(&root).map_err(unwritable)?;
    let unpacked = making.path().join("unpacked");
    unpack_archive(archive, &unpacked, most).map_err(|error| {
        let more = "; give --max-bytes if you know that so much belongs to it";
        let message = error.to_string();
        let is_bomb = message.contains(TOO_MUCH_COMES_OUT);
        let usage = CliError::from(error);
        if is_bomb { usage.saying(format!("{message}{more}")) } else { usage }
    })?;
    let unpacked = only_folder(&unpacked)?;
    let (manifest, sha256) = if unpacked.join(MANIFEST).is_file() {
        let read = read_manifest(&unpacked.join(MANIFEST));
        // where it was unpacked is gone before anybody could look there
        let (manifest, sha256) = read.map_err(|error| {
            let place = unpacked.join(MANIFEST).display().to_string();
            let message = error.message.replace(&place, &format!("{}, {MANIFEST}", archive.display()));
            error.saying(message)
        })?;
        if manifest.banks.is_empty() {
            return Err(damaged("it names no bank"));
        }
        check_files(&unpacked, &manifest)?;
        (manifest, sha256)
    } else if unpacked.join(METADATA).is_file() && unpacked.join(MEMORY).is_dir() {
        adopt(&unpacked)?
    } else {
        return Err(CliError::usage(format!(
            "{} is no archive of filled banks: it has neither {MANIFEST} nor {METADATA} beside {MEMORY}",
            archive.display()
        )));
    };
    check_banks(&manifest)?;
    let name = match name {
        Some(name) => name.to_owned(),
        None => own_name(&manifest, archive),
    };
    let place = folder(home, &name)?;
    let mut was_there = place.exists();
    if was_there {
        let there = ImportedBanks::open(home, &name).ok().filter(|there| there.sha256 == sha256);
        let Some(there) = there else {
            return Err(CliError::usage(format!(
                "other banks were imported as '{name}': give this archive another --name"
            )));
        };
        if check_files(&place, &there.manifest).is_err() {
            // what has changed since is made whole again
            fs::rename(&place, making.path().join("changed")).map_err(unwritable)?;
            was_there = false;
        }
    }
    if let Some(data) = data {
        copy_data(&unpacked, &manifest, data)?;
    }
    if !was_there {
        fs::rename(&unpacked, &place).map_err(unwritable)?;
    }
    Ok(Outcome { banks: ImportedBanks { name, sha256, manifest }, was_there })
}

/// Removes imported banks. Runs that ask them have copies of their own.
///
/// # Errors
/// Exit 2 when none of this name are here.
pub(crate) fn remove(home: &Path, name: &str) -> Result<(), CliError> {
    let there = ImportedBanks::open(home, name)?;
    let place = folder(home, &there.name)?;
    let unwritable =
        |e: io::Error| CliError::infrastructure(format!("{} cannot be removed: {e}", place.display())).because(e);
    // half of an archive has no name
    let away = tempfile::Builder::new().prefix(MAKING).tempdir_in(home.join("banks")).map_err(unwritable)?;
    fs::rename(&place, away.path().join("removed")).map_err(unwritable)?;
    away.close().map_err(unwritable)
}

/// The folder that holds all of an archive: archives are packed with and without one around.
fn only_folder(unpacked: &Path) -> Result<PathBuf, CliError> {
    let entries = fs::read_dir(unpacked).map_err(|e| unreadable(unpacked, e))?;
    let entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    Ok(match entries.as_slice() {
        [one] if one.is_dir() => one.clone(),
        _ => unpacked.to_owned(),
    })
}

fn damaged(what: &str) -> CliError {
    CliError::usage(format!("the archive is damaged: {what}"))
}

/// Removes what imports have left that were killed.
fn remove_killed(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let is_making = entry.file_name().to_string_lossy().starts_with(MAKING);
        let age = entry.metadata().and_then(|about| about.modified()).ok().and_then(|begun| begun.elapsed().ok());
        if is_making && age.is_some_and(|age| age > KILLED_AFTER) {
            // another process may remove it too
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Holds the files of an archive that lies here to its manifest, before a run asks it: somebody may have changed them.
///
/// # Errors
/// Exit 2 with the first file that is not what was imported.
pub(crate) fn check_unchanged(home: &Path, banks: &ImportedBanks) -> Result<(), CliError> {
    check_files(&folder(home, &banks.name)?, &banks.manifest).map_err(|error| {
        let message = format!("'{}' is not what was imported ({}): import it again", banks.name, error.message);
        error.saying(message)
    })
}

/// Holds the files of an archive to its manifest: all of them, and no others.
fn check_files(unpacked: &Path, manifest: &BanksManifest) -> Result<(), CliError> {
    let broken = |what: String| damaged(&what);
    let root = unpacked.join(FILES);
    let found = if root.is_dir() { files::below(&root, "")? } else { Vec::new() };
    let mut listed: BTreeMap<&str, &ArchivedFile> =
        manifest.files.iter().map(|file| (file.name.as_str(), file)).collect();
    for (name, path) in &found {
        let Some(file) = listed.remove(name.as_str()) else {
            return Err(broken(format!("{FILES}/{name} is not in its manifest")));
        };
        let content = Content::read(path, None).map_err(|e| unreadable(path, e))?;
        if content.bytes != file.bytes {
            return Err(broken(format!(
                "{FILES}/{name} has {} bytes, and {} in the manifest",
                content.bytes, file.bytes
            )));
        }
        if !content.sha256.eq_ignore_ascii_case(&file.sha256) {
            return Err(broken(format!(
                "{FILES}/{name} has sha256 {}, and {} in the manifest",
                content.sha256,
                text::one_line(&file.sha256)
            )));
        }
    }
    if let Some(name) = listed.keys().next() {
        return Err(broken(format!("{FILES}/{} is missing", text::one_line(name))));
    }
    let beside = fs::read_dir(unpacked).map_err(|e| unreadable(unpacked, e))?.flatten();
    let mut others = beside.filter(|entry| ![MANIFEST, FILES].iter().any(|own| entry.file_name() == *own));
    others.next().map_or(Ok(()), |other| Err(broken(format!("{} does not belong to it", other.path().display()))))
}

/// Handles become parts of addresses and paths of a memory system.
fn check_banks(manifest: &BanksManifest) -> Result<(), CliError> {
    let is_fine = |word: &str| adapter::is_handle(word);
    let mut seen = BTreeSet::new();
    if let Some(bank) = manifest.banks.iter().find(|bank| !seen.insert(&bank.bank_id)) {
        return Err(damaged(&format!("it names bank {} twice", text::one_line(&bank.bank_id))));
    }
    match manifest.banks.iter().find(|bank| !is_fine(&bank.handle) || !is_fine(&bank.name)) {
        None => Ok(()),
        Some(bank) => Err(damaged(&format!("the handle of its bank {} names no bank", text::one_line(&bank.bank_id)))),
    }
}

/// Gives the archive of another program the form of one's own: what its agent keeps, and what is said of it. Its manifest, and the
/// sha256 of that.
fn adopt(unpacked: &Path) -> Result<(BanksManifest, String), CliError> {
    let path = unpacked.join(METADATA);
    let mut bytes = Vec::new();
    let file = File::open(&path).map_err(|e| unreadable(&path, e))?;
    file.take(MOST_METADATA + 1).read_to_end(&mut bytes).map_err(|e| unreadable(&path, e))?;
    let refused = |problem: &str| CliError::usage(format!("{METADATA} of the archive {problem}"));
    if bytes.len() as u64 > MOST_METADATA {
        return Err(refused("has more than 1 MiB"));
    }
    let metadata: Value = json_bound::from_slice(&bytes, json_bound::DOCUMENT)
        .map_err(|e| refused(&format!("cannot be read: {e}")).because(e))?;
    let word = |name: &str| metadata.get(name).and_then(Value::as_str).map(str::to_owned);
    let unwritable =
        |e: io::Error| CliError::infrastructure(format!("{} cannot be written: {e}", unpacked.display())).because(e);
    let data = unpacked.join(FILES).join("data");
    private::create_folder(&data).map_err(unwritable)?;
    // what belongs to it: its memories, and what its authors measured
    for entry in fs::read_dir(unpacked).map_err(|e| unreadable(unpacked, e))?.flatten() {
        if entry.file_name() != FILES {
            fs::rename(entry.path(), data.join(entry.file_name())).map_err(unwritable)?;
        }
    }
    let mut all = Vec::new();
    for (name, path) in files::below(&data, "data")? {
        all.push(Content::read(&path, None).map_err(|e| unreadable(&path, e))?.entry(&name));
    }
    let seed = metadata.get("seed").map(|seed| ("seed".to_owned(), seed.clone()));
    let manifest = BanksManifest {
        version: BANKS_ARCHIVE_VERSION,
        code_version: word("code_version"),
        system: FilledSystem {
            name: word("agent_type").unwrap_or_else(|| "amplihack".to_owned()),
            version: word("version").unwrap_or_default(),
            settings: BTreeMap::new(),
        },
        dataset: FilledDataset {
            name: "long-horizon".to_owned(),
            version: None,
            sha256: None,
            settings: seed.into_iter().collect(),
        },
        turns: metadata.get("turns").and_then(Value::as_u64),
        files: all,
        metadata: Some(metadata),
        ..BanksManifest::default()
    };
    let text = serde_json::to_vec_pretty(&manifest).map_err(CliError::infrastructure_of)?;
    private::write(&unpacked.join(MANIFEST), &text).map_err(unwritable)?;
    Ok((manifest, Sha256Hash::of_bytes(&text).hex()))
}

/// What an archive calls itself: its run, what another program calls it, else its file.
fn own_name(manifest: &BanksManifest, archive: &Path) -> String {
    let told = manifest.metadata.as_ref().and_then(|metadata| metadata.get("name")?.as_str());
    let of_file = || {
        let name = archive.file_name().unwrap_or_default().to_string_lossy().into_owned();
        [".tar.gz", ".tgz"].iter().find_map(|end| name.strip_suffix(end)).map(str::to_owned).unwrap_or(name)
    };
    manifest.run.clone().or_else(|| told.map(str::to_owned)).unwrap_or_else(of_file)
}

/// Copies what a server keeps into a new folder, in which it is to be started.
fn copy_data(unpacked: &Path, manifest: &BanksManifest, data: &Path) -> Result<(), CliError> {
    let refused = |why: &str| Err(CliError::usage(format!("--data {}: {why}", data.display())));
    if by_calls::are_in(manifest) {
        return refused(
            "a server has handed these banks on by its own calls, so that there is no folder: --into gives them to one",
        );
    }
    if manifest.files.iter().any(|file| !file.name.starts_with("data/")) {
        return refused("each bank of this archive has an instance of its own, and no single server has all of them");
    }
    if fs::read_dir(data).is_ok_and(|mut entries| entries.next().is_some()) {
        return refused("something is there already: name a new folder");
    }
    adapter::copy_folder(&unpacked.join(FILES).join("data"), data)
        .map_err(|e| CliError::infrastructure(format!("{} cannot be written: {e}", data.display())).because(e))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packs files as a `.tar.gz`.
    fn packed(folder: &Path, name: &str, files: &[(&str, &[u8])]) -> PathBuf {
        let path = folder.join(name);
        let file = File::create(&path).expect("is made");
        let mut archive = tar::Builder::new(flate2::write::GzEncoder::new(file, flate2::Compression::fast()));
        for (name, bytes) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            // a name that leads elsewhere is written all the same
            header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
            header.set_mode(0o600);
            header.set_cksum();
            archive.append(&header, *bytes).expect("is written");
        }
        archive.into_inner().expect("ends").finish().expect("ends");
        path
    }

    fn manifest(files: &[(&str, &[u8])]) -> BanksManifest {
        let golden = include_str!("../../../proto/golden/banks_archive.v1.json");
        let mut manifest: BanksManifest = serde_json::from_str(golden).expect("a manifest");
        let entry = |(name, bytes): &(&str, &[u8])| {
            let sha256 = bench_proto::ids::Sha256Hash::of_bytes(bytes).hex();
            ArchivedFile { name: (*name).to_owned(), bytes: bytes.len() as u64, sha256 }
        };
        manifest.files = files.iter().map(entry).collect();
        manifest
    }

    fn import_here(home: &Path, archive: &Path) -> Result<Outcome, String> {
        import(home, archive, None, None, None).map_err(|error| error.message)
    }

    #[test]
    fn what_is_whole_is_imported_once_and_what_is_not_leaves_nothing() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = tempfile::tempdir().expect("a folder");
        let data: [(&str, &[u8]); 2] = [("data/notes", b"all"), ("data/sub/more", b"")];
        let text = serde_json::to_vec(&manifest(&data)).expect("serialises");
        let all: [(&str, &[u8]); 3] = [(MANIFEST, &text), ("files/data/notes", b"all"), ("files/data/sub/more", b"")];
        let whole = packed(folder.path(), "whole.tar.gz", &all);
        let first = import_here(home.path(), &whole).expect("is whole");
        assert_eq!((first.banks.name.as_str(), first.was_there), ("0193-filled", false));
        assert!(import_here(home.path(), &whole).expect("is the same").was_there);
        let place = home.path().join("banks/0193-filled");
        assert_eq!(fs::read_to_string(place.join("files/data/notes")).expect("is there"), "all");
        // what somebody has changed since is not asked, and made whole by another import
        fs::write(place.join("files/data/notes"), "lal").expect("is written");
        let changed = check_unchanged(home.path(), &first.banks).expect_err("it has changed").message;
        assert!(changed.contains("is not what was imported") && changed.contains("import it again"), "{changed}");
        assert!(!import_here(home.path(), &whole).expect("is made whole").was_there);
        check_unchanged(home.path(), &first.banks).expect("is whole");

        let changed = [(MANIFEST, text.as_slice()), ("files/data/notes", b"lal"), ("files/data/sub/more", b"")];
        let more = [all.as_slice(), &[("files/data/key", b"x")]].concat();
        let beside = [all.as_slice(), &[("run.sh", b"x")]].concat();
        let leads_out = [all.as_slice(), &[("../../bench.toml", b"x")]].concat();
        let mut led_out = manifest(&data);
        led_out.banks[0].handle = "../all".to_owned();
        let led_out = serde_json::to_vec(&led_out).expect("serialises");
        let handle = [[(MANIFEST, led_out.as_slice())].as_slice(), &all[1..]].concat();
        for (name, files, words) in [
            ("changed", changed.as_slice(), "files/data/notes has sha256"),
            ("missing", &all[..2], "files/data/sub/more is missing"),
            ("more", &more, "files/data/key is not in its manifest"),
            ("beside", &beside, "does not belong to it"),
            ("leads-out", &leads_out, "'..' in its name"),
            ("handle", &handle, "names no bank"),
            (
                "size",
                &[(MANIFEST, text.as_slice()), ("files/data/notes", b"al"), ("files/data/sub/more", b"")],
                "has 2 bytes, and 3",
            ),
            ("none", &[("a", b"".as_slice()), ("b", b"")], "is no archive of filled banks"),
        ] {
            let archive = packed(folder.path(), &format!("{name}.tar.gz"), files);
            let refused = import_here(home.path(), &archive).err().expect(name);
            assert!(refused.contains(words), "{name}: {refused}");
        }
        let zeros = vec![0; 20 << 20];
        let bomb = packed(folder.path(), "bomb.tar.gz", &[("files/data/zeros", &zeros)]);
        let refused = import_here(home.path(), &bomb).err().expect("a bomb");
        assert!(refused.contains("far more comes out of it") && refused.contains("--max-bytes"), "{refused}");
        let other = manifest(&[]);
        let other = serde_json::to_vec(&other).expect("serialises");
        let other = packed(folder.path(), "other.tar.gz", &[(MANIFEST, &other)]);
        let refused = import_here(home.path(), &other).err().expect("another archive of this name");
        assert!(refused.contains("give this archive another --name"), "{refused}");
        let left: Vec<_> = fs::read_dir(home.path().join("banks")).expect("is there").flatten().collect();
        assert_eq!(left.len(), 1, "{left:?}");
        remove(home.path(), "0193-filled").expect("is removed");
        assert!(fs::read_dir(home.path().join("banks")).expect("is there").next().is_none());
        assert!(remove(home.path(), "0193-filled").is_err());
    }

    #[test]
    fn an_archive_of_amplihack_is_read() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = tempfile::tempdir().expect("a folder");
        let said = br#"{"name": "5000t-seed42-v1.0", "version": "1.0", "turns": 5000, "seed": 42, "agent_type": "LearningAgent"}"#;
        let files: [(&str, &[u8]); 3] = [
            ("5000t-seed42-v1.0/metadata.json", said),
            ("5000t-seed42-v1.0/baseline_results.json", b"{}"),
            ("5000t-seed42-v1.0/memory_db/data.kz", b"KUZU"),
        ];
        let archive = packed(folder.path(), "any.tar.gz", &files);
        let data = folder.path().join("for-a-server");
        let got = import(home.path(), &archive, None, None, Some(&data)).expect("can be read").banks;
        assert_eq!((got.name.as_str(), got.manifest.turns), ("5000t-seed42-v1.0", Some(5000)));
        assert_eq!(got.manifest.dataset.settings["seed"], 42);
        assert!(got.manifest.banks.is_empty(), "nobody says what it holds, to the last byte");
        let names: Vec<&str> = got.manifest.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["data/baseline_results.json", "data/memory_db/data.kz", "data/metadata.json"]);
        assert_eq!(fs::read(data.join("memory_db/data.kz")).expect("is copied"), b"KUZU");
        let again = import(home.path(), &archive, Some("mine"), None, Some(&data)).err().expect("it is not empty");
        assert!(again.message.contains("name a new folder"), "{}", again.message);
    }
}
