//! Lists of what this user trusts. They lie where no folder can bring them along: in `$BENCH_HOME` when that is a full path, else in
//! `~/.bench`; never in a home that follows from the current folder.

use std::{
    env,
    fs::{self, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use crate::private;

/// One of the lists: a file of lines.
#[derive(Debug, Clone)]
pub struct OwnList(PathBuf);

impl OwnList {
    /// The list of this file name; `None` where there is no full path for it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let variable = env::var_os("BENCH_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let home = || env::home_dir().filter(|path| path.is_absolute()).map(|home| home.join(".bench"));
        Some(Self::in_folder(&variable.or_else(home)?, name))
    }

    pub(crate) fn in_folder(folder: &Path, name: &str) -> Self {
        Self(folder.join(name))
    }

    /// File of the list.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Its lines; none when there is no file.
    ///
    /// # Errors
    /// Why it is not looked at: a link, a file of somebody else, or one that others may read or write.
    pub fn lines(&self) -> Result<Vec<String>, String> {
        let link = match fs::symlink_metadata(&self.0) {
            Ok(about) => about,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error.to_string()),
        };
        if !link.is_file() {
            return Err("it is no file".to_owned());
        }
        let read = || -> io::Result<Option<String>> {
            let mut file = File::open(&self.0)?;
            let about = file.metadata()?;
            let ours = (about.dev(), about.ino()) == (link.dev(), link.ino()) && private::is_own(&about);
            let mut text = String::new();
            if ours {
                file.read_to_string(&mut text)?;
            }
            Ok(ours.then_some(text))
        };
        match read() {
            Ok(Some(text)) => Ok(text.lines().map(str::to_owned).collect()),
            Ok(None) => Err("it is somebody else's, or others may read or write it; chmod 600 when it is yours".into()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Changes the lines. Processes that change lists at the same time wait for each other; a file that was not written here is
    /// replaced, never written into.
    ///
    /// # Errors
    /// What the disk says.
    pub fn change(&self, change: impl FnOnce(&mut Vec<String>)) -> io::Result<()> {
        if let Some(folder) = self.0.parent() {
            private::create_folder(folder)?;
        }
        let lock = private::options().create(true).append(true).open(self.0.with_file_name("lists.lock"))?;
        lock.lock()?;
        let mut lines = self.lines().unwrap_or_default();
        change(&mut lines);
        let new = self.0.with_extension("new");
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut file = private::options().create_new(true).write(true).open(&new)?;
        file.write_all(lines.iter().map(|line| format!("{line}\n")).collect::<String>().as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &self.0)
    }
}

/// The very file or folder behind a path, for as long as it is not another one: its number and when it was made. A copy, and what is
/// unpacked at its place, are others.
pub(crate) fn identity(path: &Path) -> Option<String> {
    let about = fs::symlink_metadata(path).ok()?;
    let made = about.created().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    Some(format!("{}@{}", about.ino(), made.map_or(0, |since| since.as_nanos())))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn add(list: &OwnList, line: &str) {
        list.change(|lines| lines.push(line.to_owned())).expect("is written");
    }

    #[test]
    fn a_list_is_private_and_what_others_could_have_written_says_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let list = OwnList::in_folder(&folder.path().join("home"), "list");
        assert_eq!(list.lines(), Ok(Vec::new()));
        add(&list, "a");
        add(&list, "b");
        assert_eq!(list.lines(), Ok(vec!["a".to_owned(), "b".to_owned()]));
        let mode = |mode| fs::set_permissions(list.path(), fs::Permissions::from_mode(mode)).expect("is changed");
        assert_eq!(fs::metadata(list.path()).expect("is there").permissions().mode() & 0o777, 0o600);
        for open in [0o664, 0o604, 0o640] {
            mode(open);
            assert!(list.lines().is_err(), "{open:o}");
        }
        mode(0o600);
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(list.path(), Some(65534), None).expect("is given away");
            assert!(list.lines().expect_err("is another's").contains("somebody else's"));
        }
        add(&list, "c");
        assert_eq!(list.lines(), Ok(vec!["c".to_owned()]), "nor does it come to life by what is added");
    }

    #[test]
    fn a_link_is_neither_read_nor_written_through() {
        let folder = tempfile::tempdir().expect("a folder");
        let victim = folder.path().join("victim");
        private::write(&victim, b"precious\n").expect("is written");
        let list = OwnList::in_folder(folder.path(), "list");
        for link in ["list", "list.new"] {
            symlink(&victim, folder.path().join(link)).expect("is linked");
        }
        assert!(list.lines().is_err());
        add(&list, "a");
        assert_eq!(list.lines(), Ok(vec!["a".to_owned()]));
        assert_eq!(fs::read(&victim).expect("is there"), b"precious\n");
    }
}
