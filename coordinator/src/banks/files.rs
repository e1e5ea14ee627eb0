//! The files of a memory system: which there are, and their sums. Only plain files are handed on, under names that every machine
//! can have.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use bench_datasets::{MOST_ARCHIVED, unpackable_name};
use bench_proto::{banks_archive::ArchivedFile, text};
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

/// What a file holds: its size, its sum, and which of some texts stands in it.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
    /// Position of the first text that stands in it.
    pub(crate) has: Option<usize>,
}

impl Content {
    /// Reads a file, and looks for texts in it.
    ///
    /// # Errors
    /// What the disk says.
    pub(crate) fn read(path: &Path, texts: &[String]) -> io::Result<Self> {
        let finders: Vec<_> = texts.iter().map(|text| memchr::memmem::Finder::new(text.as_bytes())).collect();
        let kept = texts.iter().map(String::len).max().unwrap_or(1).saturating_sub(1);
        let (mut file, mut sum) = (File::open(path)?, Sha256::new());
        let (mut content, mut window) = (Self { bytes: 0, sha256: String::new(), has: None }, Vec::new());
        let mut piece = vec![0; PIECE];
        loop {
            let read = file.read(&mut piece)?;
            if read == 0 {
                break;
            }
            content.bytes += read as u64;
            sum.update(&piece[..read]);
            if content.has.is_none() && !finders.is_empty() {
                window.extend_from_slice(&piece[..read]);
                content.has = finders.iter().position(|finder| finder.find(&window).is_some());
                // a text may begin in one piece and end in the next
                window.drain(..window.len().saturating_sub(kept));
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
        let key = "sk-planted-key".to_owned();
        for at in [0, PIECE - 5, PIECE, 2 * PIECE - 1] {
            let mut bytes = vec![b'x'; 3 * PIECE];
            bytes[at..at + key.len()].copy_from_slice(key.as_bytes());
            fs::write(&path, &bytes).expect("is written");
            let content = Content::read(&path, &["other-key".to_owned(), key.clone()]).expect("is read");
            assert_eq!((content.has, content.bytes), (Some(1), bytes.len() as u64), "{at}");
        }
        fs::write(&path, "abc").expect("is written");
        let content = Content::read(&path, &[]).expect("is read");
        assert_eq!(content.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(Content::read(&path, &[key]).expect("is read").has, None);
    }
}
