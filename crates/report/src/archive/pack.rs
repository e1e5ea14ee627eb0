//! Packing and unpacking, piece by piece: a file of any size needs no more memory than a few pieces of it.

use std::{
    fs::File,
    io::{self, Read as _, Write},
    path::Path,
};

use sha2::{Digest as _, Sha256};

/// Level of compression: packed once, fetched rarely.
const LEVEL: i32 = 9;
/// Bytes handled at once.
const PIECE: usize = 256 << 10;

/// Counts and hashes what goes through it.
pub(super) struct Hashing<W> {
    inner: W,
    hash: Sha256,
    bytes: u64,
    /// More than this is an error.
    most: u64,
}

impl<W: Write> Hashing<W> {
    pub(super) fn new(inner: W, most: u64) -> Self {
        Self { inner, hash: Sha256::new(), bytes: 0, most }
    }

    /// What it wrote into, the hexadecimal sha256, and the number of bytes.
    pub(super) fn finish(self) -> (W, String, u64) {
        (self.inner, hex::encode(self.hash.finalize()), self.bytes)
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.bytes += written as u64;
        if self.bytes > self.most {
            return Err(io::Error::other("it holds more bytes than were packed"));
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// What packing a file found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Packed {
    pub(super) plain_sha256: String,
    pub(super) plain_bytes: u64,
    pub(super) sha256: String,
    pub(super) bytes: u64,
}

/// Packs a file into another.
pub(super) fn pack(plain: &Path, packed: &Path) -> io::Result<Packed> {
    let mut from = File::open(plain)?;
    let mut into = zstd::Encoder::new(Hashing::new(File::create(packed)?, u64::MAX), LEVEL)?;
    let mut read = Hashing::new(io::sink(), u64::MAX);
    let mut piece = vec![0; PIECE];
    loop {
        let n = from.read(&mut piece)?;
        if n == 0 {
            break;
        }
        read.write_all(&piece[..n])?;
        into.write_all(&piece[..n])?;
    }
    let (_, sha256, bytes) = into.finish()?.finish();
    let (_, plain_sha256, plain_bytes) = read.finish();
    Ok(Packed { plain_sha256, plain_bytes, sha256, bytes })
}
