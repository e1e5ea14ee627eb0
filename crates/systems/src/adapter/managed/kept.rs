//! What systems keep in their folders on this machine: held still while it is copied out, and put in place for a run that asks
//! banks which were filled elsewhere.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use bench_proto::banks_archive::FILES;
use bench_settings::private;

use super::record::{DATA, InstanceRecord, NEW_DATA, folder_name};

/// What an instance keeps, which nobody starts while this is held.
#[derive(Debug)]
pub struct KeptData {
    /// Name of the instance's folder: empty where all banks have one instance, else of its bank.
    pub instance: String,
    /// The folder that holds it.
    pub folder: PathBuf,
    _lock: File,
}

/// Holds what the instances of a run's system keep on this machine; one that was left behind is ended first.
///
/// # Errors
/// When one of them is in use, or a folder cannot be read.
pub async fn hold_data(home: &Path, run: &str, system: &str) -> io::Result<Vec<KeptData>> {
    let root = home.join("systems").join(folder_name(run)).join(folder_name(system));
    let mut folders = vec![(String::new(), root.clone())];
    for entry in fs::read_dir(&root).into_iter().flatten() {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() && ![DATA, NEW_DATA].contains(&name.as_str()) {
            folders.push((name, entry.path()));
        }
    }
    folders.sort();
    let mut held = Vec::new();
    for (instance, folder) in folders.into_iter().filter(|(_, folder)| folder.join(DATA).is_dir()) {
        let Some(lock) = super::lock(&folder)? else {
            return Err(io::Error::other(format!("the system in {} is in use", folder.display())));
        };
        if let Some(record) = InstanceRecord::read(&folder) {
            record.end(&folder).await;
        }
        held.push(KeptData { instance, folder: folder.join(DATA), _lock: lock });
    }
    Ok(held)
}

/// Folder of an imported archive of filled banks, by its name: `$BENCH_HOME/banks/NAME`.
#[must_use]
pub fn imported_banks(home: &Path, name: &str) -> PathBuf {
    home.join("banks").join(folder_name(name))
}

/// Puts a copy of what an archive has for an instance where that keeps what it stores, unless it has stored something already.
/// `system` is the folder of the run's system, in which the instance's `folder` lies.
pub(in super::super) fn put_in_place(archive: &Path, system: &Path, folder: &Path) -> io::Result<()> {
    let Ok(instance) = folder.strip_prefix(system) else { return Ok(()) };
    let (from, data) = (archive.join(FILES).join(instance).join(DATA), folder.join(DATA));
    if data.exists() || !from.is_dir() {
        return Ok(());
    }
    let making = folder.join(NEW_DATA);
    if making.exists() {
        fs::remove_dir_all(&making)?;
    }
    let copied = copy_folder(&from, &making).and_then(|()| fs::rename(&making, data));
    copied.inspect_err(|_| {
        // half of it is of no use, and may be what has filled the disk
        let _ = fs::remove_dir_all(&making);
    })
}

/// Copies a folder of plain files to a new one, for its owner alone.
///
/// # Errors
/// What the disk says; for anything else than files and folders too.
pub fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    private::create_folder(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else if kind.is_file() {
            let mut new = private::options().create_new(true).write(true).open(target)?;
            io::copy(&mut File::open(entry.path())?, &mut new)?;
        } else {
            return Err(io::Error::other(format!("{} is no plain file", entry.path().display())));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_an_instance_keeps_is_held_and_put_in_place_once() {
        let home = tempfile::tempdir().expect("a folder");
        let run = |run: &str| home.path().join("systems").join(run).join("mine");
        for (folder, text) in [("data", "all"), ("bench-1-g1/data/sub", "of a bank")] {
            let folder = run("filled").join(folder);
            fs::create_dir_all(&folder).expect("is made");
            fs::write(folder.join("notes"), text).expect("is written");
        }
        fs::write(run("filled").join("system.log"), "").expect("is written");
        let held = hold_data(home.path(), "filled", "mine").await.expect("nobody uses it");
        let names: Vec<&str> = held.iter().map(|kept| kept.instance.as_str()).collect();
        assert_eq!(names, ["", "bench-1-g1"]);
        let in_use = hold_data(home.path(), "filled", "mine").await.expect_err("it is held");
        assert!(in_use.to_string().contains("in use"), "{in_use}");
        assert!(hold_data(home.path(), "other", "mine").await.expect("there is none").is_empty());

        let archive = imported_banks(home.path(), "../x");
        assert_eq!(archive, home.path().join("banks/..-x"));
        for kept in &held {
            copy_folder(&kept.folder, &archive.join(FILES).join(&kept.instance).join(DATA)).expect("is copied");
        }
        let (system, bank) = (run("asks"), run("asks").join("bench-1-g1"));
        for folder in [&system, &bank, &system.join("bench-1-g2")] {
            fs::create_dir_all(folder.join(NEW_DATA)).expect("of one that was killed");
            put_in_place(&archive, &system, folder).expect("is put in place");
        }
        let read = |path: PathBuf| fs::read_to_string(path).ok();
        assert_eq!(read(system.join("data/notes")).as_deref(), Some("all"));
        assert_eq!(read(bank.join("data/sub/notes")).as_deref(), Some("of a bank"));
        assert!(!system.join("bench-1-g2/data").exists(), "a bank that is begun anew is empty");
        fs::write(system.join("data/notes"), "more").expect("is written");
        put_in_place(&archive, &system, &system).expect("something is there");
        assert_eq!(read(system.join("data/notes")).as_deref(), Some("more"));
    }
}
