//! Dataset files: the first line is the name of a dataset, or of a user's own file (`mine.yaml`); then its files, with a zero byte
//! between them; each file of a dataset that is a folder begins with a line that is its path. A name that ends in `.gz` is packed
//! here, so that what is inside is what changes. That of a dataset which is a folder may end in `.tar.gz`: the files become an
//! archive whose sums are right, each a letter for what it is and its name, as they stand on its first line.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use bench_datasets::{DatasetError, Known, OpenOptions};
use flate2::{Compression, write::GzEncoder};

use super::{assert_one_line, first_line};

/// Banks that are looked at.
const MOST_BANKS: usize = 20;
/// Notes that a dataset may leave, and those that say how many more there are.
const MOST_NOTES: usize = 400;

pub(super) fn datasets(bytes: &[u8]) {
    let (name, content) = first_line(bytes);
    let parts: Vec<&[u8]> = content.split(|byte| *byte == 0).collect();
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    fs::create_dir(&data).expect("a folder");
    let (plain, is_archive) = name.strip_suffix(".tar.gz").map_or((name, false), |plain| (plain, true));
    let known = bench_datasets::find(plain).ok().filter(|known| !known.manifest.files.is_empty());
    let (name, path) = match known {
        Some(_) if is_archive => (plain.to_owned(), Some(archive(&data, &parts))),
        Some(known) => (name.to_owned(), Some(published(known, &data, &parts))),
        None => match own(name, &data, content) {
            Some(path) => (path.display().to_string(), None),
            None => return,
        },
    };
    let options =
        OpenOptions { path, cache_dir: folder.path().join("cache"), allow_modified: true, ..OpenOptions::default() };
    let result = look(&name, &options);
    let mut around =
        fs::read_dir(folder.path()).expect("a folder").filter_map(Result::ok).map(|entry| entry.file_name());
    assert!(around.all(|name| name == "data" || name == "cache"), "something was written beside its place");
    if let Err(error) = result {
        assert_one_line(&error.to_string());
    }
}

/// Writes the files of a dataset, and says where they are.
fn published(known: &Known, folder: &Path, parts: &[&[u8]]) -> PathBuf {
    let is_folder = |path: &str| path.ends_with('/');
    match known.manifest.files.as_slice() {
        [one] if is_folder(&one.path) => {
            for (path, content) in parts.iter().map(|part| first_line(part)) {
                if is_below(path, &one.path) {
                    write(&folder.join(path), content);
                }
            }
            folder.to_owned()
        }
        [one] => {
            write(&folder.join(&one.path), parts.first().copied().unwrap_or_default());
            folder.join(&one.path)
        }
        several => {
            for (file, part) in several.iter().zip(parts) {
                write(&folder.join(&file.path), part);
            }
            folder.to_owned()
        }
    }
}

/// Writes the files of a dataset as an archive, and says where it is. Names lead wherever they like: the reader has to see that.
fn archive(folder: &Path, parts: &[&[u8]]) -> PathBuf {
    let mut tar = Vec::new();
    for (told, content) in parts.iter().map(|part| first_line(part)) {
        let mut told = told.bytes();
        let kind = told.next().unwrap_or(b'0');
        let mut header = [0_u8; 512];
        header.iter_mut().zip(told.take(100)).for_each(|(at, byte)| *at = byte);
        header[124..136].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
        header[148..156].fill(b' ');
        header[156] = kind;
        header[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        tar.extend_from_slice(&header);
        tar.extend_from_slice(content);
        tar.resize(tar.len().next_multiple_of(header.len()), 0);
    }
    let path = folder.join("archive.tar.gz");
    write(&path, &packed(&tar));
    path
}

fn packed(content: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(content).and_then(|()| gzip.finish()).expect("memory holds it")
}

/// Whether a made-up path stays where it is to be written.
fn is_below(path: &str, folder: &str) -> bool {
    let is_part = |part: &str| {
        (1..=64).contains(&part.len())
            && !part.starts_with('.')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
    };
    path.starts_with(folder) && path.split('/').count() < 8 && path.split('/').all(is_part)
}

/// Writes a file; what the disk refuses (a file where a folder is) is not there.
fn write(path: &Path, content: &[u8]) {
    let _ = path.parent().map(fs::create_dir_all);
    let _ = fs::write(path, content);
}

/// Writes a user's file; nothing when its name is a path.
fn own(name: &str, folder: &Path, content: &[u8]) -> Option<PathBuf> {
    let is_plain = name.len() < 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '.') && name.contains('.');
    let path = folder.join(is_plain.then_some(name)?);
    let content = if name.ends_with(".gz") { packed(content) } else { content.to_vec() };
    fs::write(&path, content).expect("room for a small file");
    Some(path)
}

fn look(name: &str, options: &OpenOptions) -> Result<(), DatasetError> {
    let dataset = bench_datasets::open(name, options, &|_, _| ())?;
    assert!(dataset.notes().len() <= MOST_NOTES, "{} notes", dataset.notes().len());
    dataset.notes().iter().for_each(|note| assert_one_line(note));
    for number in 0..dataset.bank_count().min(MOST_BANKS) {
        let (mut outline, bank) = (dataset.outline(number)?, dataset.bank(number)?);
        // the file alone knows it
        outline.questions.iter_mut().for_each(|question| question.file_place = None);
        assert_eq!(outline, bank.outline(), "the outline is of another bank");
        for gold in &bank.gold {
            assert!(bank.questions.iter().any(|question| question.question_id == gold.question_id), "gold of nothing");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Else the reader behind the archive would never be reached.
    #[test]
    fn an_archive_of_the_corpus_is_read_to_its_questions() {
        let corpus = crate::corpus::read(&crate::corpus::folder("datasets")).expect("is read");
        let (_, bytes) = corpus.iter().find(|(name, _)| name == "beam-packed").expect("is there");
        let parts: Vec<&[u8]> = first_line(bytes).1.split(|byte| *byte == 0).collect();
        let folder = tempfile::tempdir().expect("a folder");
        let options = OpenOptions {
            path: Some(archive(folder.path(), &parts)),
            cache_dir: folder.path().join("cache"),
            allow_modified: true,
            ..OpenOptions::default()
        };
        let dataset = bench_datasets::open("beam@100k", &options, &|_, _| ()).expect("is read");
        assert!(dataset.bank(0).expect("a bank").questions.len() > 1);
    }
}
