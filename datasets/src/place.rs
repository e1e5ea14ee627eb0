//! A place on this machine where a dataset lies, and what its content is known by.

use std::{
    fs::{self, Metadata},
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::{DatasetError, SourceFile, checksum};

/// Most files in a folder, and most folders inside each other.
const MOST_FILES: usize = 200_000;
const DEEPEST: usize = 16;

/// Where something lies on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// A file that is read as it is.
    File(PathBuf),
    /// A folder with all that is in it.
    Folder(PathBuf),
    /// One file, packed.
    Gzip(PathBuf),
    /// A folder, packed.
    Archive(PathBuf),
}

/// A file of a dataset.
#[derive(Debug)]
pub(crate) struct OneFile {
    /// Its path in the manifest, or below a folder of the manifest.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// The path as a person knows it: of what was packed, where it came from.
    pub(crate) shown: PathBuf,
    pub(crate) sha256: String,
    /// The file as it was when it was hashed.
    pub(crate) seen: Seen,
}

impl OneFile {
    /// Hashes a file; gives its size too.
    fn hashed(name: String, path: PathBuf) -> Result<(Self, u64), DatasetError> {
        // before it is read, so that a change meanwhile is one
        let seen = Seen::at_path(&path)?;
        let (bytes, sha256) = checksum::of_file(&path)?;
        Ok((Self { name, shown: path.clone(), path, sha256, seen }, bytes))
    }
}

/// By what a change of a file is noticed without reading it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seen {
    bytes: u64,
    modified: Option<SystemTime>,
    /// Number of the file on its disk: another file under the same name has another one.
    number: Option<u64>,
}

impl Seen {
    pub(crate) fn at_path(path: &Path) -> Result<Self, DatasetError> {
        Ok(Self::from(&fs::metadata(path).map_err(|source| DatasetError::io(path, source))?))
    }
}

impl From<&Metadata> for Seen {
    fn from(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let number = Some(std::os::unix::fs::MetadataExt::ino(metadata));
        #[cfg(not(unix))]
        let number = None;
        Self { bytes: metadata.len(), modified: metadata.modified().ok(), number }
    }
}

/// A file, or the files of a folder, hashed.
pub(crate) struct Hashed {
    /// Its files, those of a folder by name.
    pub(crate) inside: Vec<OneFile>,
    /// Bytes of all of them.
    pub(crate) bytes: u64,
    /// sha256 of the file; of a folder that of its list, in which each file has a line as `sha256sum` writes it, by name.
    pub(crate) sha256: String,
}

/// What lies at a place, unpacked, and by what it is known.
pub(crate) struct Content {
    pub(crate) hashed: Hashed,
    /// sha256 of the packed file, where it came as one.
    pub(crate) packed: Option<String>,
}

/// Whether content is what was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Published,
    /// It is something else.
    Other,
    /// Nobody has noted by what it would be known.
    Unknown,
}

impl Content {
    pub(crate) fn standing(&self, file: &SourceFile) -> Standing {
        let Self { hashed: Hashed { bytes, sha256, .. }, packed } = self;
        match file.sha256s.as_slice() {
            // what was cut off is known by its size
            [] if file.bytes > 0 && *bytes != file.bytes => Standing::Other,
            [] => Standing::Unknown,
            known if known.contains(sha256) || packed.as_ref().is_some_and(|packed| known.contains(packed)) => {
                Standing::Published
            }
            _ => Standing::Other,
        }
    }

    /// The error for content that is not the published one, at a path that a person knows.
    pub(crate) fn not_published(&self, name: &str, file: &SourceFile, path: &Path) -> DatasetError {
        let Hashed { bytes, sha256, .. } = &self.hashed;
        let (found, expected) = match file.sha256() {
            Some(expected) => (format!("sha256 is {sha256}"), expected.to_owned()),
            None => (format!("it has {bytes} bytes"), file.bytes.to_string()),
        };
        DatasetError::NotPublished { name: name.to_owned(), path: path.display().to_string(), found, expected }
    }
}

/// Hashes what lies at a place.
pub(crate) fn hash(file: &SourceFile, place: &Place) -> Result<Hashed, DatasetError> {
    let folder = match place {
        Place::File(path) => {
            let (one, bytes) = OneFile::hashed(file.path.clone(), path.clone())?;
            return Ok(Hashed { sha256: one.sha256.clone(), inside: vec![one], bytes });
        }
        Place::Folder(folder) => folder,
        Place::Gzip(path) | Place::Archive(path) => {
            return Err(DatasetError::NotFound(format!("{} is packed still", path.display())));
        }
    };
    let mut names = Vec::new();
    walk(folder, "", 0, &mut names)?;
    names.sort();
    let (mut list, mut inside, mut all_bytes) = (String::new(), Vec::new(), 0);
    for name in names {
        let (one, bytes) = OneFile::hashed(format!("{}{name}", file.path), folder.join(&name))?;
        all_bytes += bytes;
        list.extend([&one.sha256, "  ", &name, "\n"]);
        inside.push(one);
    }
    Ok(Hashed { inside, bytes: all_bytes, sha256: checksum::of_bytes(list.as_bytes()) })
}

/// Names of all files below a folder, with `/` between their parts; hidden ones are not the dataset's.
fn walk(folder: &Path, below: &str, depth: usize, found: &mut Vec<String>) -> Result<(), DatasetError> {
    let io = |source| DatasetError::io(folder, source);
    let refused = |why: String| DatasetError::NotFound(format!("{}: {why}", folder.display()));
    if depth > DEEPEST {
        return Err(refused(format!("has folders more than {DEEPEST} deep; give the folder of the dataset itself")));
    }
    for entry in fs::read_dir(folder).map_err(io)? {
        let entry = entry.map_err(io)?;
        let name = entry.file_name();
        let name = name.to_str().ok_or_else(|| refused("a file has a name that is not UTF-8; rename it".to_owned()))?;
        if name.starts_with('.') {
            continue;
        }
        if name.contains(char::is_control) {
            // a list of files has one on each line
            return Err(refused(format!("a file has a name with control characters ({name:?}); rename it")));
        }
        let (path, name) = (entry.path(), format!("{below}{name}"));
        let kind = fs::metadata(&path).map_err(|source| DatasetError::io(&path, source))?;
        if kind.is_dir() {
            walk(&path, &format!("{name}/"), depth + 1, found)?;
        } else if kind.is_file() {
            found.push(name);
        }
        if found.len() > MOST_FILES {
            return Err(refused(format!("holds more than {MOST_FILES} files; give the folder of the dataset itself")));
        }
    }
    Ok(())
}
