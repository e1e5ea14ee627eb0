//! The published files of a dataset, found, read and checked.

use std::{fs, path::PathBuf};

use crate::{DatasetError, Manifest, OnProgress, OpenOptions, checksum, locate};

/// What was read, in the order of the manifest's files.
#[derive(Debug)]
pub(crate) struct Sources {
    /// Where each was found, and its bytes.
    pub(crate) files: Vec<(PathBuf, Vec<u8>)>,
    /// sha256 of the file; of several the hash of their hashes.
    pub(crate) sha256: String,
    /// True when one of them is not a published one.
    pub(crate) modified: bool,
}

/// Reads all files of a dataset into memory.
///
/// # Errors
/// When one is nowhere, cannot be read, or is not the published one and that is not allowed.
pub(crate) fn read(
    manifest: &Manifest,
    options: &OpenOptions,
    on_progress: OnProgress<'_>,
) -> Result<Sources, DatasetError> {
    let mut sources = Sources { files: Vec::new(), sha256: String::new(), modified: false };
    let mut hashes = Vec::new();
    for file in manifest.files {
        let path = locate::find_or_fetch(manifest, file, options, on_progress)?;
        let content = fs::read(&path).map_err(|source| DatasetError::io(&path, source))?;
        let found = checksum::of_bytes(&content);
        if !file.is_published(&found) {
            if !options.allow_modified {
                return Err(DatasetError::Checksum {
                    name: manifest.name.to_owned(),
                    path: path.display().to_string(),
                    found,
                    expected: file.sha256().to_owned(),
                });
            }
            sources.modified = true;
        }
        hashes.push(found);
        sources.files.push((path, content));
    }
    sources.sha256 = match <[String; 1]>::try_from(hashes) {
        Ok([of_the_file]) => of_the_file,
        Err(several) => checksum::of_bytes(several.join("\n").as_bytes()),
    };
    Ok(sources)
}
