//! Files that come packed: `.gz` and `.tar.gz` are unpacked once into the cache, below the sha256 of the packed file, whole or
//! not at all, with a list of what came out, to which it is held whenever it is used.

mod tar;

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, BufReader, BufWriter, Read, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use bench_proto::text;
use flate2::read::MultiGzDecoder;

use crate::{
    DatasetError, OpenOptions, SourceFile, checksum,
    place::{self, Content, Hashed, OneFile, Place},
    whole_file::sync_folder,
};

/// What may come out of a packed file, in bytes for each byte of it: text seldom gives more than thirty.
const MOST_RATIO: u64 = 200;
/// What may come out of any packed file, however small.
const ALWAYS_ALLOWED: u64 = 16 << 20;
/// What may come out of the largest.
const MOST_BYTES: u64 = 64 << 30;

/// Most bytes of a list of files.
const MOST_LIST: u64 = 64 << 20;
/// How the names of folders begin that are in the making.
const MAKING: &str = ".making-";

/// How the words begin by which a file is refused that would fill the disk.
pub const TOO_MUCH_COMES_OUT: &str = "far more comes out of it";

/// How a file is packed, as its name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    /// One file.
    Gzip,
    /// A folder of files.
    Archive,
}

impl Packing {
    /// What is called so in the cache.
    const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "file",
            Self::Archive => "files",
        }
    }

    /// Of a path or URL, in whatever letters its ending is written.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        if name.ends_with(".tar.gz") || name.ends_with(".tgz") {
            Some(Self::Archive)
        } else if name.ends_with(".gz") {
            Some(Self::Gzip)
        } else {
            None
        }
    }
}

/// The list of what was unpacked, beside it: a line for each file, as `sha256sum` writes it.
const LIST: &str = "sha256sums";
/// How often something is unpacked that does not stay as it came out.
const TRIES: usize = 2;
/// After so long an unpacking is one that was killed.
const KILLED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// Unpacks a file into the cache and hashes what is wanted of it, which `inside` finds there; `bytes` is what should come out,
/// 0 where this is not known. What lies unpacked already is taken when it is what came out then, which costs no more than the
/// hashing; anything else is unpacked anew. Several processes may do so at once.
pub(crate) fn content(
    packed: &Path,
    packing: Packing,
    bytes: u64,
    file: &SourceFile,
    options: &OpenOptions,
    inside: impl Fn(&Path) -> Result<Place, DatasetError>,
) -> Result<Content, DatasetError> {
    let (size, sha256) = checksum::of_file(packed)?;
    let home = options.cache_dir.join("unpacked");
    let place = home.join(&sha256);
    let path = place.join(packing.name());
    for tried in 0..=TRIES {
        if let Some(list) = listed(&place)
            && let Ok(wanted) = inside(&path)
            && let Ok(hashed) = place::hash(file, &wanted)
            && is_as_listed(&list, wanted.path(), &hashed.inside)
        {
            return Ok(Content { hashed: shown(hashed, packed, wanted.path()), packed: Some(sha256) });
        }
        if tried == TRIES {
            break;
        }
        let io = |source| DatasetError::io(&place, source);
        fs::create_dir_all(&home).map_err(io)?;
        remove(&home, &place).map_err(io)?;
        let most = bytes.max(most_of(size)).min(MOST_BYTES);
        make(packed, packing, most, &place)?;
        // what is not there will not be there the next time
        inside(&path)?;
    }
    let problem = "does not stay as it was unpacked; see what else writes there".to_owned();
    Err(DatasetError::Broken { path: path.display().to_string(), place: "unpacked content".to_owned(), problem })
}

/// What was unpacked to a path, with the names of the packed file: nobody knows those in the cache.
fn shown(mut hashed: Hashed, packed: &Path, below: &Path) -> Hashed {
    for file in &mut hashed.inside {
        file.shown = match file.path.strip_prefix(below) {
            Ok(inside) if !inside.as_os_str().is_empty() => packed.join(inside),
            _ => packed.to_owned(),
        };
    }
    hashed
}

/// Whether the files below a path are those of the list, all of them and no others.
fn is_as_listed(list: &BTreeMap<PathBuf, String>, below: &Path, found: &[OneFile]) -> bool {
    let expected = list.keys().filter(|path| path.starts_with(below)).count();
    expected == found.len() && found.iter().all(|file| list.get(&file.path) == Some(&file.sha256))
}

/// The sha256 of each file that was unpacked to a place; none where no list of them can be read.
fn listed(place: &Path) -> Option<BTreeMap<PathBuf, String>> {
    let mut text = String::new();
    File::open(place.join(LIST)).ok()?.take(MOST_LIST).read_to_string(&mut text).ok()?;
    let line = |line: &str| line.split_once("  ").map(|(sha256, name)| (place.join(name), sha256.to_owned()));
    text.lines().map(line).collect()
}

/// Takes away what was unpacked to a place, and what unpackings have left that were killed.
fn remove(home: &Path, place: &Path) -> io::Result<()> {
    for entry in fs::read_dir(home)?.filter_map(Result::ok) {
        let is_making = entry.file_name().to_string_lossy().starts_with(MAKING);
        let begun = entry.metadata().and_then(|kind| kind.modified()).ok();
        if is_making && begun.and_then(|begun| begun.elapsed().ok()).is_some_and(|age| age > KILLED_AFTER) {
            // somebody else may remove it too
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    // whoever reads it sees all of it or nothing; what is left of it is removed with the folder
    let away = tempfile::Builder::new().prefix(MAKING).tempdir_in(home)?;
    match fs::rename(place, away.path().join("before")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Unpacks a file to a place where nothing is, whole or not at all.
fn make(packed: &Path, packing: Packing, most: u64, place: &Path) -> Result<(), DatasetError> {
    let io = |source| DatasetError::io(place, source);
    let home = place.parent().unwrap_or(place);
    let making = tempfile::Builder::new().prefix(MAKING).tempdir_in(home).map_err(io)?;
    let refused = |problem: Refused| match problem {
        // of two places the disk is at fault at the one that is written
        Refused::Disk(error) if !is_of_content(&error) => {
            DatasetError::Io { path: format!("{}, unpacking {}", place.display(), packed.display()), source: error }
        }
        other => other.at(packed),
    };
    let content = || Ok(Bounded { inner: open(packed)?, left: most });
    let path = making.path().join(packing.name());
    let made = match packing {
        Packing::Gzip => {
            content().and_then(|mut content| write(&mut content, &path)).map_err(refused)?;
            Place::File(path)
        }
        Packing::Archive => {
            tar::unpack(content, &path).map_err(refused)?;
            Place::Folder(path)
        }
    };
    let folder = if packing == Packing::Archive { "/" } else { "" };
    let all = SourceFile { path: format!("{}{folder}", packing.name()), ..SourceFile::default() };
    let Hashed { inside, .. } = place::hash(&all, &made)?;
    let lines: String = inside.iter().map(|file| format!("{}  {}\n", file.sha256, file.name)).collect();
    write(&mut lines.as_bytes(), &making.path().join(LIST)).map_err(refused)?;
    // whoever is first gives the name; what the other one has made is the same
    let making = making.keep();
    if let Err(error) = fs::rename(&making, place) {
        // it is of no use any more; what cannot be removed is found by its name
        let _ = fs::remove_dir_all(&making);
        if !place.exists() {
            return Err(io(error));
        }
    }
    sync_folder(place).map_err(io)
}

/// Unpacks a `.tar.gz` of plain files into a new folder. What could reach outside of it, or is no plain file, is refused, and so is
/// one from which more than `most` bytes come; without `most`, more than such a file lets expect.
///
/// # Errors
/// What is wrong with the archive, or with the disk; what was unpacked until then stays.
pub fn unpack_archive(packed: &Path, folder: &Path, most: Option<u64>) -> Result<(), DatasetError> {
    let io = |source| DatasetError::io(packed, source);
    let size = fs::metadata(packed).map_err(io)?.len();
    let most = most.unwrap_or_else(|| most_of(size));
    let content = || Ok(Bounded { inner: open(packed)?, left: most });
    tar::unpack(content, folder).map_err(|problem| match problem {
        Refused::Disk(error) if !is_of_content(&error) => {
            let path = format!("{}, unpacking {}", folder.display(), packed.display());
            DatasetError::Io { path, source: error }
        }
        other => other.at(packed),
    })
}

/// What may come out of a packed file of a size, in bytes.
fn most_of(size: u64) -> u64 {
    size.saturating_mul(MOST_RATIO).clamp(ALWAYS_ALLOWED, MOST_BYTES)
}

/// Why a file of this name could not be unpacked from an archive; `None` where it could.
#[must_use]
pub fn unpackable_name(name: &str) -> Option<String> {
    match tar::parts(name) {
        Ok(_) => None,
        Err(Refused::Content(_, problem)) => Some(problem),
        Err(Refused::Disk(error)) => Some(error.to_string()),
    }
}

/// Most files and folders of an archive that is unpacked.
pub const MOST_ARCHIVED: usize = tar::MOST_ENTRIES;

fn open(packed: &Path) -> io::Result<MultiGzDecoder<BufReader<File>>> {
    Ok(MultiGzDecoder::new(BufReader::with_capacity(1 << 17, File::open(packed)?)))
}

/// Why something is not unpacked.
enum Refused {
    /// What it holds: where, and what is wrong there.
    Content(String, String),
    /// Reading it, or writing what it holds.
    Disk(io::Error),
}

impl Refused {
    fn content(place: &str, problem: &str) -> Self {
        // names in an archive are somebody else's words
        Self::Content(text::one_line(place).into_owned(), problem.to_owned())
    }

    fn at(self, packed: &Path) -> DatasetError {
        let path = packed.display().to_string();
        match self {
            Self::Content(place, problem) => DatasetError::Broken { path, place, problem },
            Self::Disk(error) => {
                DatasetError::Broken { path, place: "packed content".to_owned(), problem: error.to_string() }
            }
        }
    }
}

/// Whether an error is about the bytes that were read, not about the disk.
fn is_of_content(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof)
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}

/// A reader that ends with an error when more comes out of it than may.
struct Bounded<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{TOO_MUCH_COMES_OUT} than its size lets expect: it is not unpacked"),
            )
        })?;
        Ok(read)
    }
}

/// Writes a new file, durably.
fn write(content: &mut impl Read, path: &Path) -> Result<(), Refused> {
    let mut file = BufWriter::with_capacity(1 << 17, File::create_new(path)?);
    io::copy(content, &mut file)?;
    file.flush()?;
    file.get_ref().sync_all()?;
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
