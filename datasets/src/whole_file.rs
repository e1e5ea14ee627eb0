//! Files that are there whole or not at all: written beside their place, made durable, then given their name.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

/// A file in the making. Dropped without [`WholeFile::keep`], it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct WholeFile {
    file: tempfile::NamedTempFile,
    path: PathBuf,
}

impl WholeFile {
    /// Starts a file that will be at `path`; makes the folders above it.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let folder = folder(path);
        // a file takes the place of whatever has its name: of a device or a pipe that is not meant
        if path.metadata().is_ok_and(|there| !there.is_file() && !there.is_dir()) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a device or a pipe, and no file"));
        }
        fs::create_dir_all(folder)?;
        let mut builder = tempfile::Builder::new();
        // readable as any other file (the umask applies), not for the owner alone as temporary files are
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        Ok(Self { file: builder.tempfile_in(folder)?, path: path.to_owned() })
    }

    /// Gives the file its name, in place of any earlier file of that name.
    pub(crate) fn keep(self) -> io::Result<()> {
        self.file.as_file().sync_all()?;
        self.file.persist(&self.path).map_err(|error| error.error)?;
        sync_folder(&self.path)
    }
}

/// Makes the name of a file durable, which it is once its folder is; where folders cannot be opened there is nothing to do.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(folder(path)).map_or(Ok(()), |folder| folder.sync_all())
}

/// The folder of a path, also of a bare file name.
fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

impl Write for WholeFile {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.file.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A writer that hashes and counts what goes through it.
pub(crate) struct Hashed<W> {
    inner: W,
    hash: Sha256,
    bytes: u64,
}

impl<W: Write> Hashed<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, hash: Sha256::new(), bytes: 0 }
    }

    /// The writer itself, how many bytes went through, and their sha256.
    pub(crate) fn finish(self) -> (W, u64, String) {
        (self.inner, self.bytes, hex::encode(self.hash.finalize()))
    }
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(buffer)?;
        self.hash.update(&buffer[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_only_when_kept() {
        let root = tempfile::tempdir().expect("temporary folder");
        let path = root.path().join("a").join("b");
        let mut file = WholeFile::create(&path).expect("create");
        file.write_all(b"half").expect("write");
        assert!(!path.exists());
        drop(file);
        assert_eq!(fs::read_dir(root.path().join("a")).expect("folder").count(), 0);

        let mut file = WholeFile::create(&path).expect("create");
        file.write_all(b"whole").expect("write");
        file.keep().expect("keep");
        assert_eq!(fs::read(&path).expect("read"), b"whole");
        assert_eq!(fs::read_dir(root.path().join("a")).expect("folder").count(), 1);
        assert_eq!(folder(Path::new("bare")), Path::new("."));
    }
}
