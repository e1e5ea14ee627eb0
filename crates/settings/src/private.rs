//! Files and folders that nobody else on the machine reads, whatever the umask says.

use std::{
    fs::{DirBuilder, File, Metadata, OpenOptions, Permissions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

/// Mode of a file that is its owner's alone.
const FILE: u32 = 0o600;
/// Mode of such a folder.
const FOLDER: u32 = 0o700;

/// Makes a folder and those above it that are missing. Folders that exist stay as they are.
///
/// # Errors
/// What the disk says.
pub fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER).create(path)
}

/// Options for a file; one that exists keeps its mode.
#[must_use]
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE);
    options
}

/// Opens a file to write at its end, making it first.
///
/// # Errors
/// What the disk says.
pub fn append(path: &Path) -> io::Result<File> {
    options().create(true).append(true).open(path)
}

/// Writes a whole file; one that exists becomes private before anything is in it.
///
/// # Errors
/// What the disk says.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = options().create(true).truncate(true).write(true).open(path)?;
    file.set_permissions(Permissions::from_mode(FILE))?;
    file.write_all(bytes)
}

/// Refuses a file that is written into by its name, where somebody else may have put a link under that name.
///
/// # Errors
/// When it is a link.
pub fn check_no_link(path: &Path) -> io::Result<()> {
    match path.is_symlink() {
        true => Err(io::Error::other("it is a link, and what it leads to is not written into: remove it")),
        false => Ok(()),
    }
}

/// Whether this user alone may read and write it.
pub(crate) fn is_own(about: &Metadata) -> bool {
    about.permissions().mode() & 0o077 == 0 && about.uid() == rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_its_owners_alone_also_over_an_open_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let mode = |path: &Path| std::fs::metadata(path).expect("is there").permissions().mode() & 0o777;
        let inner = folder.path().join("a/b");
        create_folder(&inner).expect("is made");
        assert_eq!((mode(&inner), mode(&folder.path().join("a"))), (0o700, 0o700));
        let file = inner.join("file");
        std::fs::write(&file, "a long text").expect("is written");
        std::fs::set_permissions(&file, Permissions::from_mode(0o644)).expect("is open to all");
        write(&file, b"short").expect("is written");
        assert_eq!((std::fs::read(&file).expect("reads").as_slice(), mode(&file)), (&b"short"[..], 0o600));
        append(&inner.join("log")).expect("is made").write_all(b"line").expect("is written");
        assert_eq!(mode(&inner.join("log")), 0o600);
    }
}
