//! A small file system that can be filled.

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use crate::packages::is_root;

/// A mounted tmpfs; it is unmounted when this is dropped or the test process is gone.
#[derive(Debug)]
pub struct SmallDisk {
    path: PathBuf,
    guardian: Child,
}

impl SmallDisk {
    /// Mounts one of a size such as `8m`.
    ///
    /// # Panics
    /// When this is not root, who alone may mount.
    #[must_use]
    pub fn mount(size: &str) -> Self {
        assert!(is_root(), "a small disk has to be mounted: run this test as root");
        let path = TempDir::with_prefix("bench-disk-").expect("a folder").keep();
        let size = format!("size={size}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&path).status();
        assert!(mounted.expect("mount runs").success(), "tmpfs cannot be mounted");
        let guardian = Command::new("sh")
            .args(["-c", "trap '' INT TERM; read _; cd /; umount -l \"$0\"; rmdir \"$0\""])
            .arg(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh runs");
        Self { path, guardian }
    }

    /// Where it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a user its owner.
    ///
    /// # Panics
    /// When there is no such user.
    pub fn give_to(&self, user: &str) {
        let status = Command::new("chown").arg(user).arg(&self.path).status().expect("chown runs");
        assert!(status.success(), "no user {user}");
    }

    fn ballast(&self) -> PathBuf {
        self.path.join("ballast")
    }

    /// Fills it to the last byte.
    ///
    /// # Panics
    /// When nothing can be written at all.
    pub fn fill(&self) {
        let mut file = File::create(self.ballast()).expect("a file");
        // until there is no space left
        while file.write_all(&[0; 4096]).is_ok() {}
    }

    /// Makes room again.
    ///
    /// # Panics
    /// When it was not filled.
    pub fn make_room(&self) {
        fs::remove_file(self.ballast()).expect("the disk was filled");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(self.guardian.stdin.take());
        let _ = self.guardian.wait();
    }
}
