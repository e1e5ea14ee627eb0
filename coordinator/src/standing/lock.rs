//! The lock of a local run's owner (P21): an OS file lock beside the store, freed by the kernel on every kind of end.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{Read, Seek, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use bench_proto::ids::RunId;
use bench_settings::private;

use crate::exit::CliError;

/// Held while a process owns a local run.
#[derive(Debug)]
pub(crate) struct OwnerLock {
    file: File,
    path: PathBuf,
}

/// Why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process owns the run.
    #[error(
        "run {run} is running, pid {pid}; `bench-coord watch {run}` follows it, `bench-coord pause {run}` holds it"
    )]
    Held {
        /// Id of the run that the lock is about.
        run: RunId,
        /// Process id of the owner, or `unknown`.
        pid: String,
    },
    /// The file cannot be used.
    #[error("{path}: {source}")]
    Io {
        /// The lock file.
        path: String,
        /// What the operating system says.
        source: std::io::Error,
    },
}

impl From<LockError> for CliError {
    fn from(error: LockError) -> Self {
        Self::usage_of(error)
    }
}

/// Path of the lock file: `<store>.<run>.lock`.
#[must_use]
pub(crate) fn lock_path(store_file: &Path, run: &RunId) -> PathBuf {
    let mut name = store_file.as_os_str().to_owned();
    name.push(format!(".{run}.lock"));
    PathBuf::from(name)
}

/// Path of the file that says where the meter of a run is (P34), beside that of its lock: `<store>.<run>.meter`.
#[must_use]
pub(super) fn meter_path(lock: &Path) -> PathBuf {
    lock.with_extension("meter")
}

impl OwnerLock {
    /// Takes the lock, or says who holds it.
    ///
    /// # Errors
    /// When another process holds it or the file cannot be used.
    pub(crate) fn take(store_file: &Path, run: &RunId) -> Result<Self, LockError> {
        let path = lock_path(store_file, run);
        let io = |source| LockError::Io { path: path.display().to_string(), source };
        // what is told in it would be written over what somebody has linked
        private::check_no_link(&path).map_err(io)?;
        let mut file = loop {
            let mut file =
                private::options().read(true).write(true).create(true).truncate(false).open(&path).map_err(io)?;
            match file.try_lock() {
                Ok(()) if is_named(&file, &path) => break file,
                // its last holder removed the name between our open and our lock: what counts is the file with the name
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(LockError::Held { run: run.clone(), pid: holder(&mut file) });
                }
                Err(TryLockError::Error(error)) => return Err(io(error)),
            }
        };
        // what a killed owner has told of its meter is not true of the next one
        let _ = std::fs::remove_file(meter_path(&path));
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| write!(file, "{}", std::process::id()))
            .map_err(io)?;
        Ok(Self { file, path })
    }

    /// The lock file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Process id of the owner of a run, when a living process owns it.
    #[must_use]
    pub(crate) fn owner(store_file: &Path, run: &RunId) -> Option<String> {
        let mut file = OpenOptions::new().read(true).open(lock_path(store_file, run)).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Some(holder(&mut file)),
            _ => None,
        }
    }
}

impl Drop for OwnerLock {
    fn drop(&mut self) {
        // removed while still held: whoever opened it before sees that it has lost its name, and opens the new one
        let _ = std::fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}

/// Whether `path` still names this very file.
#[cfg(unix)]
fn is_named(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(held), Ok(named)) => held.ino() == named.ino() && held.dev() == named.dev(),
        _ => false,
    }
}

/// Elsewhere an open file cannot lose its name.
#[cfg(not(unix))]
fn is_named(_file: &File, _path: &Path) -> bool {
    true
}

/// The process id in a file whose lock another process holds. That one has the lock a moment before it has written its
/// id: an empty file is read again for a fifth of a second.
fn holder(file: &mut File) -> String {
    for _ in 0..20 {
        let mut pid = String::new();
        let read = file.rewind().and_then(|()| file.read_to_string(&mut pid));
        match (read, pid.trim()) {
            (Ok(_), "") => std::thread::sleep(Duration::from_millis(10)),
            (Ok(_), pid) => return pid.to_owned(),
            (Err(_), _) => break,
        }
    }
    "unknown".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p21_one_owner_at_a_time_and_the_other_learns_who() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = folder.path().join("bench.db");
        let run = RunId("r1".into());
        assert_eq!(OwnerLock::owner(&store, &run), None);
        let held = OwnerLock::take(&store, &run).expect("nobody holds it");
        let error = OwnerLock::take(&store, &run).expect_err("it is held");
        assert!(error.to_string().contains(&format!("pid {}", std::process::id())), "{error}");
        assert_eq!(OwnerLock::owner(&store, &run), Some(std::process::id().to_string()));
        drop(held);
        assert!(OwnerLock::take(&store, &run).is_ok());
    }

    #[test]
    fn a_lock_that_is_a_link_is_refused_and_what_it_leads_to_stays() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (store, run) = (folder.path().join("bench.db"), RunId("r1".into()));
        let victim = folder.path().join("victim");
        std::fs::write(&victim, "precious").expect("is written");
        std::os::unix::fs::symlink(&victim, lock_path(&store, &run)).expect("is linked");
        let refused = OwnerLock::take(&store, &run).expect_err("is refused").to_string();
        assert!(refused.contains("bench.db.r1.lock: it is a link"), "{refused}");
        assert_eq!(std::fs::read_to_string(&victim).expect("is there"), "precious");
    }

    #[test]
    fn p21_who_has_the_lock_but_has_not_written_its_id_yet_is_waited_for() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = folder.path().join("bench.db");
        let run = RunId("r1".into());
        let mut owner = File::create(lock_path(&store, &run)).expect("a new file");
        owner.try_lock().expect("nobody holds it");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                write!(owner, "4711").expect("writes");
            });
            assert_eq!(OwnerLock::owner(&store, &run).as_deref(), Some("4711"));
        });
    }
}
