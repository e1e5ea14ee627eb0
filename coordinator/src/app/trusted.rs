//! Adapters that a person has named here (P42): on the command line of a local run, or with `--trust-system`. They stand in
//! `$BENCH_HOME/trusted`, outside of the store, so that `resume`, `retry` and `gc` of one's own runs go on, and nothing that a
//! store, an archive or an import holds can add to them.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use bench_settings::private;
use bench_systems::{
    SystemSettings, adapter,
    policy::{Policy, SystemHash},
};
use serde_json::{Value, json};

use crate::{exit::CliError, out};

/// Name of the file.
const FILE: &str = "trusted";
/// Version of its lines.
const VERSION: u64 = 1;

/// Adds what was named here to a policy. A file that others could have written, or that was copied here, names nothing.
pub(crate) fn added_to(policy: Policy, home: &Path) -> Policy {
    let path = home.join(FILE);
    let Ok(file) = File::open(&path) else { return policy };
    match read(file) {
        Ok(named) => named.into_iter().fold(policy, |policy, (hash, url)| policy.trusting(hash, url)),
        Err(why) => {
            out::note(&format!("{} is not looked at: {why}", path.display()));
            policy
        }
    }
}

/// Notes that the adapter of these settings may do here what it says.
///
/// # Errors
/// Exit 2 when the file cannot be written.
pub(crate) fn add(home: &Path, settings: &SystemSettings) -> Result<(), CliError> {
    let Some(hash) = SystemHash::of_settings(settings) else { return Ok(()) };
    let path = home.join(FILE);
    let written = private::create_folder(home).and_then(|()| {
        let mut file = private::options().create(true).read(true).append(true).open(&path)?;
        file.lock()?;
        if read(file.try_clone()?).is_err() {
            // what was not written here is not kept
            file.set_len(0)?;
        }
        let mut lines = String::new();
        let about = file.metadata()?;
        if about.len() == 0 {
            file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
            lines += &format!("{}\n", header(about.ino()));
        }
        let url = settings.get(adapter::URL).and_then(Value::as_str);
        let name = settings.get(adapter::ADAPTER).and_then(|spec| spec.get("name"));
        lines += &format!("{}\n", json!({"sha256": hash.hex(), "url": url, "name": name}));
        file.write_all(lines.as_bytes())
    });
    written.map_err(|error| {
        CliError::usage(format!("{} cannot be written: {error}; it holds which adapters may run here", path.display()))
    })
}

/// The first line: the very file that was written here, and not one that came with a folder.
fn header(number: u64) -> Value {
    json!({"trusted": VERSION, "file": number})
}

fn read(mut file: File) -> Result<Vec<(SystemHash, Option<String>)>, String> {
    let about = file.metadata().map_err(|error| error.to_string())?;
    if !about.is_file() || !private::is_private(&about) {
        return Err("others may read or write it; chmod 600 when it is yours".to_owned());
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(|error| error.to_string())?;
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap_or_default());
    match lines.next() {
        None => return Ok(Vec::new()),
        Some(first) if first == header(about.ino()) => {}
        Some(_) => return Err("it was not written here; what it named has to be named again".to_owned()),
    }
    let named = |line: Value| {
        let hash = SystemHash::from_hex(line.get("sha256")?.as_str()?)?;
        Some((hash, line.get("url").and_then(Value::as_str).map(str::to_owned)))
    };
    Ok(lines.filter_map(named).collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn p42_what_was_named_here_is_allowed_here_and_a_file_from_elsewhere_names_nothing() {
        let home = tempfile::tempdir().expect("a folder");
        let spec = json!({"name": "mine", "command": ["python3", "memory.py"]});
        let mine = SystemSettings::from([(adapter::ADAPTER.to_owned(), spec)]);
        let allowed = |home: &Path| added_to(Policy::default(), home).check(&mine).is_ok();
        assert!(!allowed(home.path()));
        add(home.path(), &mine).expect("is written");
        add(home.path(), &SystemSettings::new()).expect("built-in systems need nothing");
        assert!(allowed(home.path()));
        let path = home.path().join(FILE);
        assert_eq!(std::fs::metadata(&path).expect("is there").permissions().mode() & 0o777, 0o600);
        let elsewhere = tempfile::tempdir().expect("a folder");
        let copied = elsewhere.path().join(FILE);
        std::fs::copy(&path, &copied).expect("is copied");
        assert!(!allowed(elsewhere.path()), "one that came with a folder");
        add(
            elsewhere.path(),
            &SystemSettings::from([(adapter::ADAPTER.to_owned(), json!({"name": "other", "command": ["x"]}))]),
        )
        .expect("is written");
        assert!(!allowed(elsewhere.path()), "nor does it come to life by what is added");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).expect("is changed");
        assert!(!allowed(home.path()), "one that others read");
    }
}
