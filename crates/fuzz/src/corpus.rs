//! The corpus: small files below `corpus/TARGET`, a few written by hand for each kind, and every one that once broke something.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The folder of a target's corpus in the source tree.
#[must_use]
pub fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target)
}

/// The inputs of a folder with their names, in the order of these; none when it is not there.
///
/// # Errors
/// What the disk meets.
pub fn read(folder: &Path) -> io::Result<Vec<(String, Vec<u8>)>> {
    let listed = match fs::read_dir(folder) {
        Ok(listed) => listed.collect::<Result<Vec<_>, _>>()?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let mut paths: Vec<PathBuf> = listed.into_iter().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    paths.sort();
    let named = |path: PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        fs::read(path).map(|bytes| (name, bytes))
    };
    paths.into_iter().map(named).collect()
}
