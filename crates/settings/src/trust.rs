//! Files that somebody else may have written. `bench.toml` is read because it lies in the current folder, and folders come from
//! everywhere: what decides where texts, keys and files go, what runs and what may be spent counts only after the person has said so
//! (`bench-coord config trust`), for this file as it is. A file that is named is meant.
//!
//! The list lies where no folder can bring it along: in `$BENCH_HOME` when that is a full path, else in `~/.bench`; never in a home
//! that follows from the current folder or from the file itself.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use bench_proto::ids::Sha256Hash;

use crate::{
    error::{Problem, SettingsError},
    file,
    layers::Entry,
    origin::Origin,
    private,
    process::{self, CommandLine},
    schema::{ExtraKey, Schema},
    show::ShownSetting,
    value::Value,
    view::Settings,
};

/// Name of the list: a line for each file, its hash and its path.
const LIST: &str = "trusted-configs";

/// Whether a file of the current folder may set this only with a word: URLs, files and folders, money, accounts, systems, and what
/// these are allowed.
fn wants_a_word(key: &str, value: &Value) -> bool {
    let last = key.rsplit('.').next().unwrap_or_default();
    matches!(value, Value::Url(_) | Value::Path(_) | Value::Usd(_))
        || key.starts_with("accounts.")
        // what this process may run and where it may send secrets (P42), and what goes there unencrypted
        || key.starts_with("allow")
        || ["account", "datasets_url", "params", "unpriced_ok", "url"].contains(&last)
        || key == "run.system"
}

/// A file of the current folder, as it was read.
pub(crate) struct Found<'f> {
    /// As it is shown.
    pub(crate) path: &'f str,
    /// What is in it.
    pub(crate) text: &'f str,
}

impl Found<'_> {
    /// Refuses settings that need a word which was not given.
    pub(crate) fn check(&self, settings: &Settings) -> Result<(), SettingsError> {
        let of_file = |origin: &Origin| matches!(origin, Origin::File(_) | Origin::Profile(..));
        let dangerous = |(key, entry): (&String, &Entry)| {
            (of_file(&entry.origin) && wants_a_word(key, &entry.value)).then(|| key.clone())
        };
        let keys: Vec<String> = settings.entries.iter().filter_map(dangerous).collect();
        if keys.is_empty() || list().is_some_and(|list| lines(&list).contains(&self.line())) {
            return Ok(());
        }
        Err(Problem::Untrusted { path: self.path.to_owned(), keys }.into())
    }

    /// Its line in the list.
    fn line(&self) -> String {
        let path = fs::canonicalize(self.path).unwrap_or_else(|_| self.path.into());
        format!("{}  {}", Sha256Hash::of(self.text.as_bytes()).hex(), path.display())
    }
}

/// Trusts the settings file of the current folder as it is now, for every profile. Returns what it sets that needed the word.
///
/// # Errors
/// When the file cannot be read or has mistakes, and when the list cannot be written.
pub fn trust(line: &CommandLine, extra: &[ExtraKey]) -> Result<Vec<ShownSetting>, SettingsError> {
    let path = process::named(line).unwrap_or_else(|| process::DEFAULT_FILE.into());
    let shown = path.display().to_string();
    let text = fs::read_to_string(&path)
        .map_err(|error| Problem::Unreadable { path: shown.clone(), reason: error.to_string() })?;
    let mut problems = Vec::new();
    let file = file::read(&shown, &text, &Schema::new(extra), &mut problems);
    if !problems.is_empty() {
        return Err(SettingsError { problems });
    }
    let of_profiles = file.profiles.iter().flat_map(|(name, of)| of.iter().map(move |setting| (Some(name), setting)));
    let all = file.base.iter().map(|setting| (None, setting)).chain(of_profiles);
    let settings = all.filter(|(_, setting)| wants_a_word(&setting.key, &setting.value)).map(|(profile, setting)| {
        let origin = match profile {
            None => Origin::File(setting.place.clone()),
            Some(name) => Origin::Profile(name.clone(), setting.place.clone()),
        };
        ShownSetting { name: setting.key.clone(), value: setting.value.shown(), origin: origin.to_string() }
    });
    let settings = settings.collect();
    let list = list().ok_or_else(|| Problem::NoPlaceForTrust { path: shown.clone() })?;
    remember(&list, &Found { path: &shown, text: &text }.line())
        .map_err(|error| Problem::NotRemembered { path: list.display().to_string(), reason: error.to_string() })?;
    Ok(settings)
}

/// Where the list is; `None` where there is no full path for it.
fn list() -> Option<PathBuf> {
    let full = |variable: &str| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    full("BENCH_HOME").or_else(|| Some(full("HOME")?.join(".bench"))).map(|home| home.join(LIST))
}

/// The lines of a list; one that others may write says nothing.
fn lines(list: &Path) -> Vec<String> {
    let mine = fs::metadata(list).is_ok_and(|metadata| private::is_private(&metadata));
    let text = mine.then(|| fs::read_to_string(list).ok()).flatten().unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Writes the list with a line for a file in place of the one it had.
fn remember(list: &Path, line: &str) -> io::Result<()> {
    let path_of = |line: &str| line.split_once("  ").map(|(_, path)| path.to_owned());
    let mut lines = lines(list);
    lines.retain(|old| path_of(old) != path_of(line));
    lines.push(line.to_owned());
    if let Some(folder) = list.parent() {
        private::create_folder(folder)?;
    }
    let new = list.with_extension(format!("{}.new", std::process::id()));
    private::write(&new, (lines.join("\n") + "\n").as_bytes())?;
    fs::rename(&new, list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sources;

    fn unasked(text: &str, profile: Option<&str>) -> Vec<String> {
        let extra = ["system.url", "vector.account", "bm25.k1"];
        let sources = Sources {
            file: Some(("bench.toml".into(), text.into())),
            profile: profile.map(str::to_owned),
            extra: extra.map(|name| ExtraKey { name: name.into(), default: None }).into(),
            ..Sources::default()
        };
        let settings = Settings::load(&sources).expect("loads");
        let of_file = |entry: &&Entry| matches!(entry.origin, Origin::File(_) | Origin::Profile(..));
        let wanted = settings.entries.iter().filter(|(key, entry)| of_file(entry) && wants_a_word(key, &entry.value));
        wanted.map(|(key, _)| key.clone()).collect()
    }

    #[test]
    fn what_decides_where_things_go_wants_a_word() {
        for (text, key) in [
            ("home = '/x'", "home"),
            ("datasets_dir = 'x'", "datasets_dir"),
            ("datasets_url = 's3://x'", "datasets_url"),
            ("[store]\nurl = 'sqlite:x'", "store.url"),
            ("[queue]\nurl = 'memory:'", "queue.url"),
            ("[archive]\nurl = 'x'", "archive.url"),
            ("[trace]\nurl = 'https://x/{trace_id}'", "trace.url"),
            ("[telemetry]\nendpoint = 'http://x'", "telemetry.endpoint"),
            ("[answerer]\nbase_url = 'http://x'", "answerer.base_url"),
            ("[judge]\naccount = 'openai'", "judge.account"),
            ("[judge]\nparams = '{}'", "judge.params"),
            ("[answerer]\nparams = '{\"service_tier\": \"flex\"}'", "answerer.params"),
            ("[accounts.openai]\nbase_url = 'http://x'", "accounts.openai.base_url"),
            ("[accounts.openai]\napi_key_env = 'HOME'", "accounts.openai.api_key_env"),
            ("[accounts.openai]\napi_key_file = '/x'", "accounts.openai.api_key_file"),
            ("[run]\nsystem = './mine.yaml'", "run.system"),
            ("[allow]\nsystems = 'any'", "allow.systems"),
            ("[allow]\nhosts = ['10.0.0.7']", "allow.hosts"),
            ("allow_plaintext = ['db.example']", "allow_plaintext"),
            ("[system]\nurl = 'http://x'", "system.url"),
            ("[vector]\naccount = 'openai'", "vector.account"),
            ("[run]\nmax_cost = 5000", "run.max_cost"),
            ("[run]\nunpriced_ok = true", "run.unpriced_ok"),
            ("[models]\nprice_file = 'x.json'", "models.price_file"),
        ] {
            assert_eq!(unasked(text, None), [key], "{text}");
            let profile = match text.strip_prefix('[') {
                Some(section) => format!("[profile.p.{section}"),
                None => format!("[profile.p]\n{text}"),
            };
            assert_eq!(unasked(&profile, Some("p")), [key], "{profile}");
            assert!(unasked(&profile, None).is_empty(), "a profile that is not used: {profile}");
        }
    }

    #[test]
    fn what_only_says_what_is_asked_needs_no_word() {
        let text = "[run]\ntop_k = 5\npreset = 'quick'\nanswerer = 'openai:gpt-4o-mini'\nconcurrency = 3\n\
                    [bm25]\nk1 = 1.5\n[telemetry]\nprocess_rate = 1.0\n[backoff]\nmax_interval = '2s'\n";
        assert!(unasked(text, None).is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn the_list_is_private_and_one_that_others_may_write_says_nothing() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let list = folder.path().join("home").join(LIST);
        remember(&list, "aa  /x/bench.toml").expect("is written");
        remember(&list, "bb  /y/bench.toml").expect("is written");
        remember(&list, "cc  /x/bench.toml").expect("is written");
        assert_eq!(lines(&list), ["bb  /y/bench.toml", "cc  /x/bench.toml"]);
        assert_eq!(fs::metadata(&list).expect("is there").permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&list, fs::Permissions::from_mode(0o664)).expect("is changed");
        assert!(lines(&list).is_empty());
    }
}
