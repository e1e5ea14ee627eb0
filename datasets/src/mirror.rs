//! Datasets from a store of one's own in place of their source: what is wanted of it, and how its bytes are taken in.
//! Who talks to the store is not decided here.

use std::path::PathBuf;

use crate::{
    DatasetError, OpenOptions, find,
    incoming::{Incoming, Problem},
    locate,
};

/// Most bytes of a file that may differ from the published one: far more than any dataset has.
const MOST_BYTES: u64 = 16 << 30;

/// A file that is on no folder of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Its name in the store: `<dataset>/<file>`.
    pub object: String,
    path: PathBuf,
    bytes: u64,
    sha256: Option<&'static str>,
}

/// What a mirror is asked for before the dataset is opened: nothing when its files are here, were named, or are generated.
///
/// # Errors
/// Unknown names.
pub fn wanted(name: &str, options: &OpenOptions) -> Result<Vec<Wanted>, DatasetError> {
    let manifest = find(name)?.manifest;
    let missing = manifest.files.iter().filter(|file| locate::find(manifest, file, options).is_none());
    let wanted = missing.map(|file| {
        let (bytes, sha256) =
            if options.allow_modified { (MOST_BYTES, None) } else { (file.bytes, Some(file.sha256())) };
        let object = format!("{}/{}", manifest.name, file.path);
        Wanted { object, path: locate::cache_path(manifest, file, options), bytes, sha256 }
    });
    Ok(wanted.collect())
}

impl Wanted {
    /// Starts to take the file into the cache. `source` names the store in errors, `announced` is the size that it tells.
    ///
    /// # Errors
    /// When the cache cannot be written, or the file is larger than the published one.
    pub fn receive(&self, source: &str, announced: u64) -> Result<Arrival<'_>, DatasetError> {
        let begin = || -> Result<_, Problem> {
            let incoming = Incoming::new(&self.path, self.bytes, self.sha256)?;
            incoming.announced(Some(announced))?;
            Ok(incoming)
        };
        let incoming = begin().map_err(|problem| problem.at(source, &self.path))?;
        Ok(Arrival { wanted: self, source: source.to_owned(), announced, incoming })
    }

    /// The error for a file that the store does not give.
    #[must_use]
    pub fn failed(&self, source: &str, reason: String) -> DatasetError {
        Problem::Other(reason).at(source, &self.path)
    }
}

/// A file on its way. Dropped without [`Arrival::keep`], it leaves nothing behind.
pub struct Arrival<'a> {
    wanted: &'a Wanted,
    source: String,
    announced: u64,
    incoming: Incoming<'a>,
}

impl Arrival<'_> {
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
        let received = self.incoming.received();
        let kept = if received < self.announced {
            Err(Problem::Other(format!("only {received} of {} bytes arrived", self.announced)))
        } else {
            self.incoming.keep()
        };
        kept.map_err(|problem| problem.at(&self.source, &self.wanted.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locomo::MANIFEST;

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
    fn another_file_is_taken_only_when_that_is_allowed() {
        let root = tempfile::tempdir().expect("temporary folder");
        let cached = locate::cache_path(&MANIFEST, &MANIFEST.files[0], &options(root.path(), false));
        let bring = |allow: bool, bytes: &[u8], announced: u64| -> Result<(), DatasetError> {
            let [wanted] = &wanted("locomo", &options(root.path(), allow))?[..] else { panic!("one file is nowhere") };
            let mut arrival = wanted.receive("s3://b/d", announced)?;
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
}
