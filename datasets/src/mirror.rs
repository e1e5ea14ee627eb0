//! Datasets from a store of one's own in place of their source: what is wanted of it, and how its bytes are taken in.
//! Who talks to the store is not decided here.

use std::{collections::HashSet, path::PathBuf};

use crate::{
    DatasetError, Manifest, OpenOptions,
    incoming::{Expected, Incoming, Problem},
    locate,
    registry::{self, own_file},
};

/// A file that is on no folder of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Its name in the store: `<dataset>/<file>`.
    pub object: String,
    path: PathBuf,
    /// As in [`Expected`].
    bytes: Option<u64>,
    sha256: Option<String>,
}

/// What a mirror is asked for before the dataset is opened: nothing when its files are here, were named, or are generated.
///
/// # Errors
/// Unknown names.
pub fn wanted(name: &str, options: &OpenOptions) -> Result<Vec<Wanted>, DatasetError> {
    if own_file(name, options).is_some() {
        return Ok(Vec::new());
    }
    let manifest = registry::manifest(name)?;
    Ok(if options.path.is_some() { Vec::new() } else { wanted_of(manifest, options) })
}

fn wanted_of(manifest: &Manifest, options: &OpenOptions) -> Vec<Wanted> {
    let missing = manifest.files.iter().filter(|file| locate::find(manifest, file, options).is_none());
    let wanted = missing.map(|file| {
        let arrives = locate::arrives_as(file);
        let expected = if options.allow_modified { Expected::default() } else { Expected::of_file(file, &arrives) };
        let (bytes, sha256) = (expected.bytes, expected.sha256.map(str::to_owned));
        let object = format!("{}/{arrives}", manifest.dataset());
        Wanted { object, path: locate::cache_path(manifest, file, options), bytes, sha256 }
    });
    let mut wanted: Vec<Wanted> = wanted.collect();
    // several folders may be in one archive
    let mut seen = HashSet::new();
    wanted.retain(|wanted| seen.insert(wanted.object.clone()));
    wanted
}

impl Wanted {
    /// Starts to take the file into the cache, with what an earlier try has left of it. `source` names the store in errors.
    ///
    /// # Errors
    /// When the cache cannot be written.
    pub fn receive(&self, source: &str) -> Result<Arrival<'_>, DatasetError> {
        let expected = Expected { bytes: self.bytes, sha256: self.sha256.as_deref() };
        let incoming = Incoming::resumed(&self.path, expected).map_err(|problem| problem.at(source, &self.path))?;
        Ok(Arrival { wanted: self, source: source.to_owned(), incoming })
    }

    /// The error for a file that the store does not give.
    #[must_use]
    pub fn failed(&self, source: &str, reason: String) -> DatasetError {
        Problem::Other(reason.into()).at(source, &self.path)
    }
}

/// A file on its way. Dropped without [`Arrival::keep`], it leaves at most what the next try goes on with.
pub struct Arrival<'a> {
    wanted: &'a Wanted,
    source: String,
    incoming: Incoming<'a>,
}

impl Arrival<'_> {
    /// Where to go on, and the tag of the version that this is a part of; nothing where there is nothing yet.
    #[must_use]
    pub fn goes_on_from(&self) -> Option<(u64, &str)> {
        self.incoming.goes_on_from()
    }

    /// Says what comes now: from which byte on, of which version, and the size of the whole as the store tells it.
    ///
    /// # Errors
    /// When the cache cannot be written, or the file is larger than the published one.
    pub fn comes(&mut self, from: u64, tag: Option<&str>, announced: u64) -> Result<(), DatasetError> {
        let mut begin = || -> Result<(), Problem> {
            if from == 0 || from != self.incoming.received() {
                self.incoming.restart(tag)?;
            }
            self.incoming.announced(Some(announced))
        };
        begin().map_err(|problem| problem.at(&self.source, &self.wanted.path))
    }

    /// Takes the next bytes; returns how many there are by now.
    ///
    /// # Errors
    /// A full disk, or more bytes than the published file has.
    pub fn write(&mut self, chunk: &[u8]) -> Result<u64, DatasetError> {
        self.incoming.write(chunk).map_err(|problem| problem.at(&self.source, &self.wanted.path))?;
        Ok(self.incoming.received())
    }

    /// Checks the whole and gives it its name in the cache.
    ///
    /// # Errors
    /// When bytes are missing, or it is not the published file.
    pub fn keep(self) -> Result<(), DatasetError> {
        self.incoming.keep().map_err(|problem| problem.at(&self.source, &self.wanted.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SourceFile;

    fn options(cache: &std::path::Path, allow_modified: bool) -> OpenOptions {
        OpenOptions { cache_dir: cache.to_owned(), allow_modified, ..Default::default() }
    }

    #[test]
    fn only_what_is_nowhere_here_is_wanted() {
        let root = tempfile::tempdir().expect("temporary folder");
        let asked = |options: &OpenOptions| -> Vec<String> {
            wanted("locomo", options).expect("known").into_iter().map(|wanted| wanted.object).collect()
        };
        let mut here = options(root.path(), false);
        assert_eq!(asked(&here), ["locomo/locomo10.json"]);
        assert_eq!(wanted("locomo-sim", &here).expect("known"), [], "generated");
        here.path = Some(root.path().join("named.json"));
        assert!(asked(&here).is_empty(), "named");
        assert!(wanted("nothing", &here).is_err());
    }

    #[test]
    fn variants_packed_files_and_folders_are_asked_for_by_the_names_under_which_they_arrive() {
        let root = tempfile::tempdir().expect("temporary folder");
        let file = |path: &str, url: Option<&str>| SourceFile {
            path: path.to_owned(),
            sha256s: vec!["00".to_owned()],
            bytes: 7,
            url: url.map(str::to_owned),
        };
        let archive = Some("https://example.com/all.tar.gz");
        let manifest = Manifest {
            name: "many@small".to_owned(),
            files: vec![
                file("a.json", None),
                file("b.json", Some("https://example.com/packed.json.gz")),
                file("chats/", None),
                file("one/", archive),
                file("c.json", None),
                file("two/", archive),
            ],
            ..Manifest::default()
        };
        let wanted = wanted_of(&manifest, &options(root.path(), false));
        let asked: Vec<(&str, Option<u64>)> =
            wanted.iter().map(|wanted| (wanted.object.as_str(), wanted.bytes)).collect();
        let expected = [
            ("many/a.json", Some(7)),
            ("many/packed.json.gz", None),
            ("many/chats.tar.gz", None),
            ("many/all.tar.gz", None),
            ("many/c.json", Some(7)),
        ];
        assert_eq!(asked, expected);
    }

    #[test]
    fn another_file_is_taken_only_when_that_is_allowed() {
        let root = tempfile::tempdir().expect("temporary folder");
        let manifest = &crate::find("locomo").expect("registered").manifest;
        let cached = locate::cache_path(manifest, &manifest.files[0], &options(root.path(), false));
        let bring = |allow: bool, bytes: &[u8], announced: u64| -> Result<(), DatasetError> {
            let [wanted] = &wanted("locomo", &options(root.path(), allow))?[..] else { panic!("one file is nowhere") };
            let mut arrival = wanted.receive("s3://b/d")?;
            arrival.comes(0, None, announced)?;
            arrival.write(bytes)?;
            arrival.keep()
        };
        let error = |outcome: Result<(), DatasetError>| outcome.expect_err("refused").to_string();
        assert!(error(bring(false, b"other", 5)).contains("only 5 of"));
        assert!(error(bring(false, b"", u64::MAX)).contains("larger than the published"));
        assert!(error(bring(true, b"half", 8)).contains("download of s3://b/d failed: only 4 of 8 bytes arrived"));
        assert!(!cached.exists(), "nothing is left of what was refused");
        bring(true, b"other", 5).expect("allowed");
        assert_eq!(std::fs::read(cached).expect("kept"), b"other");
    }

    #[test]
    fn what_was_cut_goes_on_where_it_ended_as_long_as_it_is_the_same_version() {
        let root = tempfile::tempdir().expect("temporary folder");
        let allowed = options(root.path(), true);
        let manifest = registry::manifest("locomo").expect("registered");
        let cached = locate::cache_path(manifest, &manifest.files[0], &allowed);
        let all = wanted("locomo", &allowed).expect("known");
        let [wanted] = &all[..] else { panic!("one file is nowhere") };
        let tries = |from: Option<(u64, &str)>, comes: (u64, &str), bytes: &[u8]| -> Result<(), DatasetError> {
            let mut arrival = wanted.receive("s3://b/d")?;
            assert_eq!(arrival.goes_on_from(), from);
            arrival.comes(comes.0, Some(comes.1), 8)?;
            arrival.write(bytes)?;
            arrival.keep()
        };
        assert!(tries(None, (0, "v1"), b"half").expect_err("is cut").to_string().contains("only 4 of 8"));
        tries(Some((4, "v1")), (4, "v1"), b" way").expect("is whole");
        assert_eq!(std::fs::read(&cached).expect("kept"), b"half way");
        assert!(tries(None, (0, "v1"), b"half").is_err());
        tries(Some((4, "v1")), (0, "v2"), b"all anew").expect("is whole");
        assert_eq!(std::fs::read(&cached).expect("kept"), b"all anew");
        let left = std::fs::read_dir(cached.parent().expect("a folder")).expect("is there").count();
        assert_eq!(left, 1, "nothing but the file");
    }
}
