//! The files of a memory system: which there are, and their sums. Only plain files are handed on, under names that every machine
//! can have.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use bench_datasets::{MOST_ARCHIVED, unpackable_name};
use bench_proto::{
    banks_archive::ArchivedFile,
    redact::{RUN_KEY, RUN_KEY_DIGITS, run_key},
    text,
};
use sha2::{Digest as _, Sha256};

use crate::exit::CliError;

/// Bytes that are read at once.
const PIECE: usize = 1 << 20;

/// All files below a folder, by their names there with `/`, in the order of names. `before` is put in front of the names.
///
/// # Errors
/// Exit 2 for links, devices, and names that not every machine can have; exit 4 for what cannot be read.
pub(crate) fn below(folder: &Path, before: &str) -> Result<Vec<(String, PathBuf)>, CliError> {
    let mut found = Vec::new();
    collect(folder, before, &mut found)?;
    found.sort();
    Ok(found)
}

fn collect(folder: &Path, before: &str, found: &mut Vec<(String, PathBuf)>) -> Result<(), CliError> {
    for entry in fs::read_dir(folder).map_err(|e| unreadable(folder, e))? {
        let entry = entry.map_err(|e| unreadable(folder, e))?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(|e| unreadable(folder, e))?);
        let own = entry.file_name().into_string().map_err(|_| refused(&path, "has a name that is not UTF-8"))?;
        let name = if before.is_empty() { own } else { format!("{before}/{own}") };
        if let Some(problem) = unpackable_name(&name) {
            return Err(refused(&path, &problem));
        }
        if kind.is_dir() {
            collect(&path, &name, found)?;
        } else if kind.is_file() {
            found.push((name, path));
        } else {
            return Err(refused(&path, "is no plain file, and what it leads to would not go with it"));
        }
        if found.len() > MOST_ARCHIVED {
            return Err(refused(folder, &format!("holds more than {MOST_ARCHIVED} files")));
        }
    }
    Ok(())
}

fn refused(path: &Path, why: &str) -> CliError {
    let shown = path.display().to_string();
    CliError::usage(format!("{} {why}: it is not handed on", text::one_line(&shown)))
}

/// What is said of a file or folder that cannot be read.
pub(crate) fn unreadable(path: &Path, error: io::Error) -> CliError {
    CliError::infrastructure(format!("{} cannot be read: {error}", path.display())).because(error)
}

/// What a file holds: its size, its sum, and whether a key stands in it.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
    /// One of the keys that were looked for stands in it, or that of a metered run.
    pub(crate) has_key: bool,
}

impl Content {
    /// Reads a file; and looks for these keys in it, and for those of any metered run, unless nobody asks for them.
    ///
    /// # Errors
    /// What the disk says.
    pub(crate) fn read(path: &Path, keys: Option<&[String]>) -> io::Result<Self> {
        let texts = keys.unwrap_or_default();
        let finders: Vec<_> = texts.iter().map(|text| memchr::memmem::Finder::new(text.as_bytes())).collect();
        let longest = texts.iter().map(String::len).fold(RUN_KEY.len() + RUN_KEY_DIGITS, usize::max);
        let (mut file, mut sum) = (File::open(path)?, Sha256::new());
        let (mut content, mut window) = (Self { bytes: 0, sha256: String::new(), has_key: false }, Vec::new());
        let mut piece = vec![0; PIECE];
        loop {
            let read = file.read(&mut piece)?;
            if read == 0 {
                break;
            }
            content.bytes += read as u64;
            sum.update(&piece[..read]);
            if keys.is_some() && !content.has_key {
                window.extend_from_slice(&piece[..read]);
                let is_there = finders.iter().any(|finder| finder.find(&window).is_some());
                content.has_key = is_there || run_key(&window).is_some();
                // a text may begin in one piece and end in the next
                window.drain(..window.len().saturating_sub(longest - 1));
            }
        }
        content.sha256 = hex::encode(sum.finalize());
        Ok(content)
    }

    /// As an entry of a manifest.
    pub(crate) fn entry(self, name: &str) -> ArchivedFile {
        ArchivedFile { name: name.to_owned(), bytes: self.bytes, sha256: self.sha256 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_and_what_is_none_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("b/c")).expect("is made");
        fs::write(folder.path().join("b/c/two"), "2").expect("is written");
        fs::write(folder.path().join("one"), "1").expect("is written");
        let names =
            |before| below(folder.path(), before).map(|found| found.into_iter().map(|(name, _)| name).collect());
        let found: Result<Vec<String>, _> = names("data");
        assert_eq!(found.expect("plain files"), ["data/b/c/two", "data/one"]);
        for wrong in ["a:b", "a\\b"] {
            fs::write(folder.path().join(wrong), "").expect("is written");
            let error: Result<Vec<String>, _> = names("");
            assert!(error.expect_err("is refused").message.contains("is none on every machine"), "{wrong}");
            fs::remove_file(folder.path().join(wrong)).expect("is removed");
        }
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link")).expect("is made");
        let error: Result<Vec<String>, _> = names("");
        assert!(error.expect_err("is refused").message.contains("is no plain file"));
    }

    #[test]
    fn a_text_is_found_wherever_pieces_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let (key, of_run) = ("sk-planted-key", "bm-00112233445566778899aabbccddeeff00112233");
        let keys = ["other-key".to_owned(), key.to_owned()];
        for (at, key) in [0, PIECE - 5, PIECE, 2 * PIECE - 1].into_iter().flat_map(|at| [(at, key), (at, of_run)]) {
            let mut bytes = vec![b'x'; 3 * PIECE];
            bytes[at..at + key.len()].copy_from_slice(key.as_bytes());
            fs::write(&path, &bytes).expect("is written");
            let content = Content::read(&path, Some(&keys)).expect("is read");
            assert_eq!((content.has_key, content.bytes), (true, bytes.len() as u64), "{key} {at}");
            assert!(!Content::read(&path, None).expect("is read").has_key, "nobody has asked");
        }
        assert!(Content::read(&path, Some(&[])).expect("is read").has_key, "that of a run is always one");
        fs::write(&path, "abc").expect("is written");
        let content = Content::read(&path, None).expect("is read");
        assert_eq!(content.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert!(!Content::read(&path, Some(&keys)).expect("is read").has_key);
    }
}
