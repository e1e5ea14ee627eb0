//! Archives of filled banks that lie on this machine, by name: `$BENCH_HOME/banks/NAME`, with the manifest and the files that it
//! names.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use bench_proto::{
    banks_archive::{BANKS_ARCHIVE_VERSION, BanksManifest, MANIFEST},
    ids::Sha256Hash,
    json_bound, text,
};
use bench_systems::adapter;

use crate::exit::CliError;

/// Longest name of an archive.
const MOST_NAME: usize = 128;
/// Largest manifest, in bytes.
const MOST_MANIFEST: u64 = 64 << 20;

/// An archive that lies here.
#[derive(Debug, Clone)]
pub(crate) struct ImportedBanks {
    /// Its name here.
    pub(crate) name: String,
    /// sha256 of its manifest.
    pub(crate) sha256: String,
    pub(crate) manifest: BanksManifest,
}

impl ImportedBanks {
    /// The archive of a name.
    ///
    /// # Errors
    /// Exit 2 when none of this name is here, with the names that are; what [`read_manifest`] says.
    pub(crate) fn open(home: &Path, name: &str) -> Result<Self, CliError> {
        let folder = folder(home, name)?;
        if !folder.join(MANIFEST).is_file() {
            let names: Vec<String> = all(home)?.into_iter().map(|archive| archive.name).collect();
            let known = match names.as_slice() {
                [] => "there are none: `bench-coord banks import FILE` brings one".to_owned(),
                names => format!("there are {}", names.join(", ")),
            };
            return Err(CliError::usage(format!("no banks were imported as '{name}'; {known}")));
        }
        let (manifest, sha256) = read_manifest(&folder.join(MANIFEST))?;
        Ok(Self { name: name.to_owned(), sha256, manifest })
    }
}

/// Folder of an archive by its name.
///
/// # Errors
/// Exit 2 for a name that is none of a folder.
pub(super) fn folder(home: &Path, name: &str) -> Result<PathBuf, CliError> {
    let folder = adapter::imported_banks(home, name);
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let is_plain = folder.file_name().is_some_and(|own| own == name) && begins && name.len() <= MOST_NAME;
    if is_plain {
        return Ok(folder);
    }
    Err(CliError::usage(format!(
        "'{}' is no name of imported banks: at most {MOST_NAME} letters, digits, '.', '_' and '-', and no '.' or '-' in front",
        text::one_line(name)
    )))
}

/// The archives that lie here, by name; what is no archive is left out.
///
/// # Errors
/// Exit 4 for a folder that cannot be read.
pub(crate) fn all(home: &Path) -> Result<Vec<ImportedBanks>, CliError> {
    let root = home.join("banks");
    let entries = match fs::read_dir(&root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|e| super::files::unreadable(&root, e))?,
    };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let read = |name: String| {
        let (manifest, sha256) = read_manifest(&folder(home, &name).ok()?.join(MANIFEST)).ok()?;
        Some(ImportedBanks { name, sha256, manifest })
    };
    let mut found: Vec<ImportedBanks> = names.filter_map(read).collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Reads a manifest, with its sha256.
///
/// # Errors
/// Exit 2 for one that is damaged, too large, or of a newer version.
pub(super) fn read_manifest(path: &Path) -> Result<(BanksManifest, String), CliError> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|e| super::files::unreadable(path, e))?;
    file.take(MOST_MANIFEST + 1).read_to_end(&mut bytes).map_err(|e| super::files::unreadable(path, e))?;
    let broken = |problem: String| CliError::usage(format!("{}: {problem}", path.display()));
    if bytes.len() as u64 > MOST_MANIFEST {
        return Err(broken("it has more than 64 MiB, and no manifest has".to_owned()));
    }
    let manifest: BanksManifest = json_bound::from_slice(&bytes, json_bound::LIST)
        .map_err(|e| broken(format!("it is no manifest of banks: {e}")).because(e))?;
    if manifest.version == 0 || manifest.version > BANKS_ARCHIVE_VERSION {
        return Err(broken(format!(
            "its version is {}, and this build reads up to {BANKS_ARCHIVE_VERSION}: use a newer one",
            manifest.version
        )));
    }
    Ok((manifest, Sha256Hash::of_bytes(&bytes).hex()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_names_and_those_that_are_here_are_told() {
        let home = tempfile::tempdir().expect("a folder");
        for wrong in ["", ".", "..", "../x", "a/b", ".making-1", "-x", &"x".repeat(129), "a b", "a\nb"] {
            let error = ImportedBanks::open(home.path(), wrong).expect_err("is none");
            assert!(error.message.contains("is no name of imported banks"), "{wrong}: {error}");
        }
        let none = ImportedBanks::open(home.path(), "mine").expect_err("there is none");
        assert!(none.message.contains("`bench-coord banks import FILE`"), "{none}");
        let golden = include_str!("../../../proto/golden/banks_archive.v1.json");
        let write = |name: &str, text: &str| {
            fs::create_dir_all(home.path().join("banks").join(name)).expect("is made");
            fs::write(home.path().join("banks").join(name).join(MANIFEST), text).expect("is written");
        };
        write("mine", golden);
        write("new", &golden.replace("\"version\": 1,", "\"version\": 2,"));
        write("none", "{}");
        let other = ImportedBanks::open(home.path(), "other").expect_err("it has another name");
        assert!(other.message.ends_with("there are mine"), "{other}");
        write("bomb", &golden.replacen('{', &format!("{{\"metadata\": [{}0],", "{\"\":0},".repeat(700_000)), 1));
        let bomb = ImportedBanks::open(home.path(), "bomb").expect_err("is refused");
        assert!(bomb.message.contains("values, at most 2000000 are read"), "{bomb}");
        let newer = ImportedBanks::open(home.path(), "new").expect_err("is newer");
        assert!(newer.message.contains("its version is 2"), "{newer}");
        assert!(ImportedBanks::open(home.path(), "none").is_err());
        let here = ImportedBanks::open(home.path(), "mine").expect("it is here");
        assert_eq!(here.sha256, Sha256Hash::of_bytes(golden.as_bytes()).hex());
    }
}
