//! Where the meter of a local run is (P34), for whoever asks while its owner lives: a file beside the owner's lock, for its user alone.
//! Unless the settings say otherwise, address and key are drawn anew by each process, so that a file that a killed one has left behind
//! opens nothing; it is not read either, and goes when the next owner takes the lock.

use std::{
    io,
    path::{Path, PathBuf},
};

use bench_proto::ids::RunId;
use bench_settings::private;
use serde::{Deserialize, Serialize};

use super::lock::{OwnerLock, lock_path, meter_path};

/// Where the meter of a run is, and what opens the run's part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OwnMeter {
    /// The address of the run, without `/v1`.
    pub(crate) address: String,
    /// The key of the run.
    pub(crate) key: String,
}

/// The file, as long as this lives.
#[derive(Debug)]
pub(crate) struct ToldMeter(PathBuf);

impl OwnMeter {
    /// Tells it to the other processes of this user, until what is returned is dropped.
    ///
    /// # Errors
    /// What the disk says.
    pub(crate) fn tell(&self, lock: &OwnerLock) -> io::Result<ToldMeter> {
        let told = ToldMeter(meter_path(lock.path()));
        private::write(&told.0, &serde_json::to_vec(self)?)?;
        Ok(told)
    }

    /// What the living owner of a run tells; `None` where nobody owns it, or it is not metered.
    pub(crate) fn find(store_file: &Path, run: &RunId) -> Option<Self> {
        OwnerLock::owner(store_file, run)?;
        let bytes = std::fs::read(meter_path(&lock_path(store_file, run))).ok()?;
        serde_json::from_slice(&bytes).ok()
    }
}

impl Drop for ToldMeter {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn p34_the_meter_of_a_local_run_is_told_as_long_as_its_owner_lives() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (store, run) = (folder.path().join("bench.db"), RunId("my.run".to_owned()));
        let meter = OwnMeter { address: "http://127.0.0.1:7/m/my.run".to_owned(), key: "bm-1".to_owned() };
        let lock = OwnerLock::take(&store, &run).expect("nobody holds it");
        assert_eq!(OwnMeter::find(&store, &run), None, "it is not metered");
        let told = meter.tell(&lock).expect("is written");
        assert_eq!(OwnMeter::find(&store, &run), Some(meter.clone()));
        let file = folder.path().join("bench.db.my.run.meter");
        assert_eq!(std::fs::metadata(&file).expect("is there").permissions().mode() & 0o777, 0o600);
        // as after a kill: the kernel frees the lock, and the file stays
        drop(lock);
        assert!(file.exists() && OwnMeter::find(&store, &run).is_none());
        let next = OwnerLock::take(&store, &run).expect("nobody holds it");
        assert_eq!(OwnMeter::find(&store, &run), None, "the next owner has told nothing yet");
        drop(told);
        let told = meter.tell(&next).expect("is written");
        assert_eq!(OwnMeter::find(&store, &run), Some(meter));
        drop(told);
        assert!(!file.exists());
    }
}
