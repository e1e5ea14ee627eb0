//! A published file on its way into the cache: bounded by the manifest's size, checked by its sha256, there whole or not at all.

use std::{io::Write as _, path::Path};

use sha2::{Digest, Sha256};

use crate::{DatasetError, whole_file::WholeFile};

/// Why a file did not arrive.
pub(crate) enum Problem {
    /// The local disk.
    Disk(std::io::Error),
    /// The network, the server, the content.
    Other(String),
}

impl Problem {
    /// As an error of the dataset, with where it was to come from and to be.
    pub(crate) fn at(self, source: &str, path: &Path) -> DatasetError {
        match self {
            Self::Disk(error) => DatasetError::io(path, error),
            Self::Other(reason) => DatasetError::Download { url: source.to_owned(), reason },
        }
    }
}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Self {
        Self::Disk(error)
    }
}

/// A file that is being received. Dropped without [`Incoming::keep`], it leaves nothing behind.
pub(crate) struct Incoming<'a> {
    file: WholeFile,
    hash: Sha256,
    received: u64,
    most: u64,
    sha256: Option<&'a str>,
}

impl<'a> Incoming<'a> {
    /// Starts a file that will be at `path`, of at most `most` bytes; of exactly as many when it must have this sha256.
    pub(crate) fn new(path: &Path, most: u64, sha256: Option<&'a str>) -> Result<Self, Problem> {
        Ok(Self { file: WholeFile::create(path)?, hash: Sha256::new(), received: 0, most, sha256 })
    }

    fn too_large(&self) -> Problem {
        Problem::Other(format!("the file is larger than the published {} bytes", self.most))
    }

    /// Refuses what says of itself that it is too large.
    pub(crate) fn announced(&self, bytes: Option<u64>) -> Result<(), Problem> {
        if bytes.is_some_and(|bytes| bytes > self.most) { Err(self.too_large()) } else { Ok(()) }
    }

    /// Takes the next bytes.
    pub(crate) fn write(&mut self, chunk: &[u8]) -> Result<(), Problem> {
        self.received += chunk.len() as u64;
        if self.received > self.most {
            return Err(self.too_large());
        }
        self.hash.update(chunk);
        self.file.write_all(chunk)?;
        Ok(())
    }

    /// Bytes so far.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Checks the whole and gives it its name.
    pub(crate) fn keep(self) -> Result<(), Problem> {
        if let Some(expected) = self.sha256 {
            if self.received < self.most {
                return Err(Problem::Other(format!("only {} of {} bytes arrived", self.received, self.most)));
            }
            let found = hex::encode(self.hash.finalize());
            if found != expected {
                return Err(Problem::Other(format!("sha256 is {found}, expected {expected}")));
            }
        }
        self.file.keep()?;
        Ok(())
    }
}
