//! What is written about a started system, so that whoever comes after a killed runner can end it, and nothing else.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use bench_settings::private;
use reqwest::Url;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use tracing::warn;

use super::{
    child::{Child, remove_container, signal_group},
    leads_elsewhere,
};

/// Folder of an instance that holds what it stores.
pub(super) const DATA: &str = "data";
/// The same while it is put in place.
pub(super) const NEW_DATA: &str = "data.new";

/// Time that an orphan has to end by itself.
const GRACE: Duration = Duration::from_secs(3);

/// A started system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceRecord {
    /// Name of the memory system.
    pub system: String,
    /// Process id, also of its group.
    pub pid: u32,
    /// When the process began, in the kernel's ticks since boot: a pid that was given again is another process.
    pub begun: Option<u64>,
    /// Boot of the machine.
    pub boot: Option<String>,
    /// Container, when it is one.
    pub container: Option<String>,
    /// Where it listens.
    pub url: String,
    /// Machine.
    pub host: String,
    /// Answered a health check.
    pub healthy: bool,
    /// Version that it reported.
    pub version: Option<String>,
    /// Files in its folder `data` that hold what nobody should find there later.
    #[serde(default)]
    pub secret_files: Vec<String>,
}

impl InstanceRecord {
    pub(super) fn new(child: &Child, system: &str, url: &Url, host: &str, secret_files: Vec<String>) -> Self {
        Self {
            secret_files,
            system: system.to_owned(),
            pid: child.pid(),
            begun: begun(child.pid()),
            boot: boot(),
            container: child.container_name().map(str::to_owned),
            url: url.to_string(),
            host: host.to_owned(),
            healthy: false,
            version: None,
        }
    }

    /// Reads the record of a folder, when there is one that can be read.
    #[must_use]
    pub fn read(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(path(folder)).ok()?).ok()
    }

    pub(super) fn write(&self, folder: &Path) -> std::io::Result<()> {
        let json = serde_json::to_vec_pretty(self)?;
        let new = folder.join("instance.json.new");
        private::write(&new, &json)?;
        std::fs::rename(new, path(folder))
    }

    /// Removes the record, and what it says that nobody should find later.
    pub(super) fn forget(folder: &Path) {
        if let Some(record) = Self::read(folder) {
            remove_secrets(folder, record.secret_files.iter());
        }
        let _ = std::fs::remove_file(path(folder));
    }

    /// Tells this instance from one that was started before or after it.
    pub(super) fn id(&self) -> String {
        format!("{}-{}", self.pid, self.begun.unwrap_or_default())
    }

    /// Whether it was written on this machine since it was started. A record that came with a folder names what its author likes.
    fn is_of_here(&self) -> bool {
        self.host == host() && self.boot.is_some() && self.boot == boot()
    }

    /// Whether the very process that was started still runs.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.is_of_here() && self.begun.is_some() && begun(self.pid) == self.begun
    }

    /// The container, when it is one that a runner of this machine has started.
    fn own_container(&self) -> Option<&str> {
        let name = self.container.as_deref().filter(|_| self.is_of_here())?;
        let (port, runner) = name.strip_prefix(&format!("bench-{}-", self.system))?.split_once('-')?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        (is_number(port) && is_number(runner)).then_some(name)
    }

    /// Ends it, when it is still the process that was started. The caller holds the folder's lock.
    pub(super) async fn end(&self, folder: &Path) {
        if let Some(container) = self.own_container() {
            remove_container(container).await;
        }
        if self.is_alive() {
            warn!("{} (pid {}) was left behind by a runner that is gone: ending it", self.system, self.pid);
            signal_group(self.pid, Signal::TERM);
            let asked = Instant::now();
            while self.is_alive() {
                if asked.elapsed() > GRACE {
                    signal_group(self.pid, Signal::KILL);
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        Self::forget(folder);
    }
}

/// Removes files of an instance that hold secrets; they are written anew whenever it is started.
pub(super) fn remove_secrets<'a>(folder: &Path, names: impl Iterator<Item = &'a String>) {
    let data = folder.join(DATA);
    let files = names.filter(|name| super::stays_inside(name)).map(|name| data.join(name));
    for file in files.filter(|file| !leads_elsewhere(folder, file)) {
        // it may have removed them itself
        let _ = std::fs::remove_file(file);
    }
}

fn path(folder: &Path) -> PathBuf {
    folder.join("instance.json")
}

/// Ends every system below `home` that a runner of this machine has started and left behind. Returns how many.
pub async fn end_orphans(home: &Path) -> usize {
    let mut ended = 0;
    for folder in folders(&home.join("systems"), 3) {
        let Some(record) = InstanceRecord::read(&folder) else { continue };
        if record.host != host() {
            continue;
        }
        match super::lock(&folder) {
            Ok(Some(_lock)) => {
                ended += usize::from(record.is_alive());
                record.end(&folder).await;
            }
            // its owner lives
            Ok(None) => {}
            Err(error) => warn!("{}: {error}", folder.display()),
        }
    }
    ended
}

/// Removes what started systems have stored on this machine for a run. Their logs stay. Returns how many of them had stored
/// something.
///
/// # Errors
/// When one of them is in use, or a folder cannot be removed.
pub async fn remove_data(home: &Path, run: &str) -> std::io::Result<usize> {
    let mut removed = 0;
    for folder in folders(&home.join("systems").join(folder_name(run)), 2) {
        let data = folder.join(DATA);
        if !data.is_dir() {
            continue;
        }
        let Some(_lock) = super::lock(&folder)? else {
            return Err(std::io::Error::other(format!("the system in {} is in use", folder.display())));
        };
        if let Some(record) = InstanceRecord::read(&folder) {
            record.end(&folder).await;
        }
        std::fs::remove_dir_all(&data)
            .map_err(|error| std::io::Error::new(error.kind(), format!("{}: {error}", data.display())))?;
        removed += 1;
    }
    Ok(removed)
}

/// Folders below `root` that are an instance's or hold those of instances, at most `depth` deep. What an instance has stored
/// is its own: nothing in it is looked at.
fn folders(root: &Path, depth: usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    let is_folder = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    for entry in
        entries.filter(|entry| is_folder(entry) && ![DATA, NEW_DATA].iter().any(|name| entry.file_name() == *name))
    {
        let path = entry.path();
        if depth > 1 {
            found.extend(folders(&path, depth - 1));
        }
        found.push(path);
    }
    found
}

/// Start of a process by the kernel's clock; `None` when it is gone or has ended.
fn begun(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // the name in parentheses may hold anything
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    if matches!(fields.first(), Some(&"Z" | &"X")) {
        return None;
    }
    fields.get(19)?.parse().ok()
}

fn boot() -> Option<String> {
    Some(std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned())
}

/// Name of this machine, as it begins the handles of banks in systems that were started on it.
#[must_use]
pub fn host() -> String {
    bench_settings::host_name().replace('|', "-")
}

/// A name as a folder's: nothing in it leads elsewhere.
pub(super) fn folder_name(name: &str) -> String {
    let fine = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = name.chars().map(fine).collect();
    if name.trim_matches('.').is_empty() { "run".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(container: &str) -> InstanceRecord {
        InstanceRecord {
            system: "mine".to_owned(),
            pid: 1,
            begun: None,
            boot: boot(),
            container: Some(container.to_owned()),
            url: String::new(),
            host: host(),
            healthy: true,
            version: None,
            secret_files: vec!["key".to_owned(), "sub/key".to_owned()],
        }
    }

    #[test]
    fn only_a_container_that_was_started_here_is_ever_removed() {
        assert_eq!(record("bench-mine-4711-12").own_container(), Some("bench-mine-4711-12"));
        for other in
            ["production-db", "bench-mine", "bench-mine-4711", "bench-other-4711-12", "bench-mine-a-1", "bench-mine-1-"]
        {
            assert_eq!(record(other).own_container(), None, "{other}");
        }
        let elsewhere = InstanceRecord { boot: Some("another".to_owned()), ..record("bench-mine-4711-12") };
        let unknown = InstanceRecord { boot: None, ..record("bench-mine-4711-12") };
        assert_eq!((elsewhere.own_container(), unknown.own_container()), (None, None));
    }

    #[tokio::test]
    async fn nothing_is_removed_or_written_through_a_link_that_came_with_a_folder() {
        use std::os::unix::fs::symlink;
        let (home, other) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let theirs = other.path().join("key");
        std::fs::write(&theirs, "theirs").expect("is written");
        let link = |at: &str, to: &Path| {
            let folder = home.path().join("systems").join(at);
            std::fs::create_dir_all(folder.join("data")).expect("is made");
            std::fs::write(path(&folder), serde_json::to_vec(&record("production-db")).expect("serialises"))
                .expect("is written");
            (folder, to.to_owned())
        };
        let (folder, to) = link("r/linked", other.path());
        std::fs::remove_dir(folder.join("data")).expect("is empty");
        symlink(to, folder.join("data")).expect("is made");
        let (folder, to) = link("r/sub", other.path());
        symlink(to, folder.join("data/sub")).expect("is made");
        let (folder, to) = link("r/log", &theirs);
        symlink(to, folder.join("system.log")).expect("is made");
        symlink(home.path().join("systems/r"), home.path().join("systems/run")).expect("is made");
        end_orphans(home.path()).await;
        assert_eq!(std::fs::read_to_string(&theirs).expect("is still there"), "theirs");
        for refused in ["r/linked", "r/log", "run/new"] {
            let error = super::super::lock(&home.path().join("systems").join(refused)).expect_err("is refused");
            assert!(error.to_string().contains("leads elsewhere"), "{refused}: {error}");
        }
        assert!(remove_data(home.path(), "r").await.is_err());
        assert!(theirs.exists());
    }
}
