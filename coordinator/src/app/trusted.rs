//! Adapters that a person has named here (P42): on the command line of a local run, or with `--trust-system`. They stand in a list
//! of this user's own (`trusted`), each with the home that it was named for, so that `resume`, `retry` and `gc` of one's own runs go
//! on, and nothing that a folder, a store, an archive or an import holds can add to them.

use std::path::{Path, PathBuf};

use bench_settings::{OwnList, homes, private};
use bench_systems::{
    SystemSettings, adapter,
    policy::{Policy, SystemHash},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{exit::CliError, out};

/// Name of the list.
const LIST: &str = "trusted";

/// An adapter, and the home that it was named for: another folder under the same path is another home.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct Named {
    home: String,
    folder: String,
    sha256: String,
    url: Option<String>,
    /// Folder of its class, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<PathBuf>,
    /// Name of the system, for people who read the list.
    name: Option<String>,
}

/// Adds what was named for a home to a policy.
pub(crate) fn added_to(policy: Policy, home: &Path) -> Policy {
    let (Some(list), Ok((home, folder))) = (OwnList::named(LIST), homes::identity_of(home)) else { return policy };
    let lines = list.lines().unwrap_or_else(|why| {
        out::note(&format!("{} is not looked at: {why}", list.path().display()));
        Vec::new()
    });
    added(policy, &lines, &home, &folder)
}

fn added(policy: Policy, lines: &[String], home: &str, folder: &str) -> Policy {
    let named = lines.iter().filter_map(|line| serde_json::from_str::<Named>(line).ok());
    named.filter(|named| named.home == home && named.folder == folder).fold(policy, |policy, named| {
        match SystemHash::from_hex(&named.sha256) {
            Some(hash) => {
                let policy = policy.trusting(hash, named.url);
                match named.code {
                    Some(folder) => policy.with_code_in(hash, folder),
                    None => policy,
                }
            }
            None => policy,
        }
    })
}

/// Notes that the adapter of these settings may do here what it says, and in which folder its class was named.
///
/// # Errors
/// Exit 2 when the list cannot be written.
pub(crate) fn add(home: &Path, settings: &SystemSettings, code: Option<PathBuf>) -> Result<(), CliError> {
    let Some(hash) = SystemHash::of_settings(settings) else { return Ok(()) };
    let list = OwnList::named(LIST).ok_or_else(|| {
        CliError::usage(
            "there is no place to note which adapters may run here: set BENCH_HOME to a full path".to_owned(),
        )
    })?;
    let written = private::create_folder(home).and_then(|()| {
        let line = line(hash, settings, homes::identity_of(home)?, code)?;
        list.change(|lines| {
            lines.retain(|old| *old != line);
            lines.push(line);
        })
    });
    written.map_err(|error| {
        let path = list.path().display();
        CliError::usage(format!("{path} cannot be written: {error}; it holds which adapters may run here"))
            .because(error)
    })
}

fn line(
    hash: SystemHash,
    settings: &SystemSettings,
    (home, folder): (String, String),
    code: Option<PathBuf>,
) -> std::io::Result<String> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let url = text(settings.get(adapter::URL));
    let name = text(settings.get(adapter::ADAPTER).and_then(|spec| spec.get("name")));
    Ok(serde_json::to_string(&Named { home, folder, sha256: hash.hex(), url, code, name })?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn p42_what_was_named_here_is_allowed_here_and_a_file_from_elsewhere_names_nothing() {
        let spec = json!({"name": "mine", "command": ["python3", "memory.py"]});
        let mine = SystemSettings::from([(adapter::ADAPTER.to_owned(), spec)]);
        let (here, there) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let identity = |home: &Path| homes::identity_of(home).expect("is there");
        let hash = SystemHash::of_settings(&mine).expect("has one");
        let lines = [line(hash, &mine, identity(here.path()), None).expect("is written"), "no line of ours".to_owned()];
        let allowed = |home: &Path| {
            let (home, folder) = identity(home);
            added(Policy::default(), &lines, &home, &folder).check(&mine).is_ok()
        };
        assert!(allowed(here.path()));
        assert!(!allowed(there.path()), "it was named for another home");
        // a home brings no list along
        std::fs::write(there.path().join(LIST), lines.join("\n")).expect("is written");
        assert!(!allowed(there.path()));
        // nor is another folder of the same name the same home
        let path = here.path().to_owned();
        std::fs::rename(&path, path.with_extension("old")).expect("is moved");
        std::fs::create_dir(&path).expect("is made");
        assert!(!allowed(&path));
        std::fs::remove_dir_all(path.with_extension("old")).expect("is removed");
    }
}
