//! A download that can go on after a cut: what has arrived stays beside its place as `<name>.partial`, with the server's tag of
//! its version in `<name>.partial.tag`. One process at a time writes it, which a lock sees to that ends with the process.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use crate::whole_file::sync_folder;

/// Most bytes of a tag.
const MOST_TAG: u64 = 1024;

/// A file in the making that outlives a process. Dropped without a tag, it leaves nothing behind.
pub(crate) struct Partial {
    file: File,
    path: PathBuf,
    tag: Option<String>,
}

fn beside(target: &Path, ending: &str) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    target.with_file_name(name)
}

impl Partial {
    /// What there is of a file that will be at `target`; nothing when another process is at it.
    pub(crate) fn open(target: &Path) -> io::Result<Option<Self>> {
        let path = beside(target, ".partial");
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        // whoever made the folder can know these names: a link goes, and what it leads to stays
        for name in [&path, &beside(&path, ".tag")] {
            if name.is_symlink() {
                remove(name)?;
            }
        }
        let file = File::options().create(true).truncate(false).read(true).write(true).open(&path)?;
        // whoever had it may have given it its name between these two steps: then it is no part any more
        if file.try_lock().is_err() || !is_still(&file, &path) {
            return Ok(None);
        }
        let tag = read_tag(&beside(&path, ".tag"));
        Ok(Some(Self { file, path, tag }))
    }

    /// The server's tag of the version that this is a part of.
    pub(crate) fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// All bytes so far, in blocks; then it is ready for more.
    pub(crate) fn each_block(&mut self, mut with: impl FnMut(&[u8])) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        let mut block = vec![0; 1 << 17];
        loop {
            match self.file.read(&mut block)? {
                0 => return Ok(()),
                read => with(&block[..read]),
            }
        }
    }

    /// Begins anew, with the tag of the version that comes now.
    pub(crate) fn restart(&mut self, tag: Option<&str>) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.tag = tag.map(str::to_owned);
        let noted = beside(&self.path, ".tag");
        match tag {
            Some(tag) => fs::write(noted, tag),
            None => remove(&noted),
        }
    }

    /// Gives the file its name, in place of any earlier file of that name.
    pub(crate) fn keep(mut self, target: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.path, target)?;
        sync_folder(target)?;
        remove(&beside(&self.path, ".tag"))?;
        // nothing of it is left to be dropped
        self.tag = Some(String::new());
        Ok(())
    }
}

impl Write for Partial {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.file.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if self.tag.is_none() {
            // what cannot be removed is found by the next download
            let _ = remove(&self.path);
            let _ = remove(&beside(&self.path, ".tag"));
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn read_tag(path: &Path) -> Option<String> {
    let mut tag = String::new();
    File::open(path).ok()?.take(MOST_TAG).read_to_string(&mut tag).ok()?;
    (!tag.is_empty() && tag.bytes().all(|byte| matches!(byte, b' '..=b'~'))).then_some(tag)
}

/// Whether a name still leads to an open file.
#[cfg(unix)]
fn is_still(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let of = |kind: io::Result<fs::Metadata>| kind.ok().map(|kind| (kind.dev(), kind.ino()));
    of(file.metadata()) == of(fs::metadata(path))
}

/// Where this cannot be told, downloads do not go on.
#[cfg(not(unix))]
fn is_still(_: &File, _: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_arrives_is_written_through_no_link() {
        let folder = tempfile::tempdir().expect("a folder");
        let (victim, target) = (folder.path().join("victim"), folder.path().join("f"));
        fs::write(&victim, "precious").expect("is written");
        for name in ["f.partial", "f.partial.tag"] {
            symlink(&victim, folder.path().join(name)).expect("is linked");
        }
        let mut partial = Partial::open(&target).expect("opens").expect("nobody is at it");
        partial.restart(Some("\"v1\"")).expect("begins anew");
        partial.write_all(b"new").expect("is written");
        partial.keep(&target).expect("is kept");
        assert_eq!(fs::read(&target).expect("is there"), b"new");
        assert_eq!(fs::read(&victim).expect("is there"), b"precious");
    }
}
