//! A published file on its way into the cache: bounded by the manifest's size, checked by its sha256, there whole or not at all.

use std::{io::Write as _, path::Path};

use bench_proto::reason::Reason;
use sha2::{Digest, Sha256};

use crate::{DatasetError, SourceFile, packed::Packing, partial::Partial, whole_file::WholeFile};

/// Why a file did not arrive.
pub(crate) enum Problem {
    /// The local disk.
    Disk(std::io::Error),
    /// The network, the server, the content.
    Other(Reason),
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

/// Most bytes of a file whose size is not known: far more than any dataset has.
const MOST_BYTES: u64 = 16 << 30;

/// What is known of a file before it arrives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Expected<'a> {
    /// Its size.
    pub(crate) bytes: Option<u64>,
    pub(crate) sha256: Option<&'a str>,
}

impl<'a> Expected<'a> {
    /// Of a file of a manifest that arrives under a name. What arrives packed is compared when it is unpacked: its size and its
    /// checksum may be those of what comes out of it.
    pub(crate) fn of_file(file: &'a SourceFile, name: &str) -> Self {
        match Packing::by_name(name) {
            Some(_) => Self::default(),
            None => Self { bytes: (file.bytes > 0).then_some(file.bytes), sha256: file.sha256() },
        }
    }
}

/// Where the bytes go until they are checked.
enum Sink {
    /// A file that is written whole: nothing of it is left when it fails.
    Whole(WholeFile),
    /// What has arrived is of use to the next try.
    Partial(Partial),
}

/// A file that is being received. Dropped without [`Incoming::keep`], it leaves at most what the next try goes on with.
pub(crate) struct Incoming<'a> {
    sink: Sink,
    path: &'a Path,
    hash: Sha256,
    received: u64,
    expected: Expected<'a>,
    /// Its size as the source tells it.
    total: Option<u64>,
}

impl<'a> Incoming<'a> {
    /// Starts a file that will be at `path`.
    pub(crate) fn new(path: &'a Path, expected: Expected<'a>) -> Result<Self, Problem> {
        let sink = Sink::Whole(WholeFile::create(path)?);
        Ok(Self { sink, path, hash: Sha256::new(), received: 0, expected, total: None })
    }

    /// Begins with what an earlier try has left.
    pub(crate) fn resumed(path: &'a Path, expected: Expected<'a>) -> Result<Self, Problem> {
        let Some(mut partial) = Partial::open(path)? else { return Self::new(path, expected) };
        let (mut hash, mut received) = (Sha256::new(), 0);
        partial.each_block(|block| {
            hash.update(block);
            received += block.len() as u64;
        })?;
        let mut incoming = Self { sink: Sink::Partial(partial), path, hash, received, expected, total: None };
        if received > incoming.most() || incoming.goes_on_from().is_none() {
            incoming.restart(None)?;
        }
        Ok(incoming)
    }

    /// Where to go on, and the tag of the version that this is a part of.
    pub(crate) fn goes_on_from(&self) -> Option<(u64, &str)> {
        match &self.sink {
            Sink::Partial(partial) if self.received > 0 => Some((self.received, partial.tag()?)),
            _ => None,
        }
    }

    /// Bytes of the whole, where they are known: as published, else as the source tells.
    fn whole(&self) -> Option<u64> {
        self.expected.bytes.or(self.total)
    }

    /// The most that it may have.
    fn most(&self) -> u64 {
        self.expected.bytes.unwrap_or(MOST_BYTES)
    }

    /// Whether its size or its checksum is known beforehand.
    pub(crate) fn is_known(&self) -> bool {
        self.expected != Expected::default()
    }

    /// Whether all bytes are here; none where nobody knows how many there are.
    pub(crate) fn is_complete(&self) -> Option<bool> {
        self.whole().map(|whole| self.received >= whole)
    }

    /// Begins anew, with the tag of the version that comes now.
    pub(crate) fn restart(&mut self, tag: Option<&str>) -> Result<(), Problem> {
        match &mut self.sink {
            Sink::Whole(_) if self.received == 0 => {}
            Sink::Whole(whole) => *whole = WholeFile::create(self.path)?,
            Sink::Partial(partial) => partial.restart(tag)?,
        }
        (self.hash, self.received, self.total) = (Sha256::new(), 0, None);
        Ok(())
    }

    fn too_large(&self) -> Problem {
        let what = if self.expected.bytes.is_some() { "the published" } else { "the most that is taken," };
        Problem::Other(format!("the file is larger than {what} {} bytes", self.most()).into())
    }

    /// Notes how many bytes the source says the whole file has, and refuses one that is too large.
    pub(crate) fn announced(&mut self, total: Option<u64>) -> Result<(), Problem> {
        self.total = total.or(self.total);
        if total.is_some_and(|total| total > self.most()) { Err(self.too_large()) } else { Ok(()) }
    }

    /// Takes the next bytes.
    pub(crate) fn write(&mut self, chunk: &[u8]) -> Result<(), Problem> {
        self.received += chunk.len() as u64;
        if self.received > self.most() {
            // of no use to another try
            let too_large = self.too_large();
            self.restart(None)?;
            return Err(too_large);
        }
        self.hash.update(chunk);
        match &mut self.sink {
            Sink::Whole(whole) => whole.write_all(chunk)?,
            Sink::Partial(partial) => partial.write_all(chunk)?,
        }
        Ok(())
    }

    /// Bytes so far.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Checks the whole and gives it its name.
    pub(crate) fn keep(mut self) -> Result<(), Problem> {
        let found = hex::encode(self.hash.finalize_reset());
        if let Some(whole) = self.whole().filter(|whole| self.received < *whole) {
            // the next try may go on with it
            return Err(Problem::Other(format!("only {} of {whole} bytes arrived", self.received).into()));
        }
        if let Some(expected) = self.expected.sha256.filter(|expected| *expected != found) {
            self.restart(None)?;
            return Err(Problem::Other(format!("sha256 is {found}, expected {expected}").into()));
        }
        match self.sink {
            Sink::Whole(whole) => whole.keep()?,
            Sink::Partial(partial) => partial.keep(self.path)?,
        }
        Ok(())
    }
}
