//! Files that somebody else may have written. `bench.toml` is read because it lies in the current folder, and folders come from
//! everywhere: what decides where texts, keys and files go, what runs and what may be spent counts only after the person has said so
//! (`bench-coord config trust`), for this file as it is. A file that is named is meant.
//!
//! The list is kept as [`OwnList`]s are.

use std::{fs, io};

use bench_proto::ids::Sha256Hash;

use crate::{
    bounded,
    command_line::{self, CommandLine},
    error::{Problem, SettingsError},
    file,
    layers::Entry,
    origin::Origin,
    own::OwnList,
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
    matches!(value, Value::Url(_) | Value::Path(_) | Value::Usd(_) | Value::Usage(_))
        || key.starts_with("accounts.")
        // what this process may run and where it may send secrets (P42), and what goes there unencrypted
        || key.starts_with("allow")
        // where memory systems send what they ask models
        || key.starts_with("meter.")
        || ["account", "datasets_url", "folder", "memory", "params", "precomputed", "queries", "unpriced_ok", "url"].contains(&last)
        || key == "run.system"
        || (key == "run.dataset" && value.text().is_some_and(is_path))
        // what others are given to read
        || key == "archive.texts"
        // questions, answers and what is expected, to whoever collects traces
        || key == "trace.content"
}

/// Whether a dataset is a file that is named and not one that is known: its texts go to a provider, and may be any that lie here.
fn is_path(dataset: &str) -> bool {
    // no name of a known one has a dot
    dataset.contains(['/', '\\', '.'])
}

/// A file of the current folder, as it was read.
pub(crate) struct Found<'f> {
    /// Path of the file as it is shown.
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
        if keys.is_empty() || self.is_trusted() {
            return Ok(());
        }
        Err(Problem::Untrusted { path: self.path.to_owned(), keys }.into())
    }

    fn is_trusted(&self) -> bool {
        let trusted = || Some(OwnList::named(LIST)?.lines().ok()?.contains(&self.line().ok()?));
        trusted().unwrap_or_default()
    }

    /// Its line in the list. A path that is no line of text would be another file's.
    fn line(&self) -> io::Result<String> {
        let path = fs::canonicalize(self.path)?;
        let text = path.to_str().filter(|text| !text.contains(char::is_control));
        let text =
            text.ok_or_else(|| io::Error::other(format!("{:?} has no name that is a line of text", self.path)))?;
        Ok(format!("{}  {text}", Sha256Hash::of_bytes(self.text.as_bytes()).hex()))
    }
}

/// Trusts the settings file of the current folder as it is now, for every profile. Returns what it sets that needed the word; `None`
/// where there is no such file.
///
/// # Errors
/// When the file cannot be read or has mistakes, and when the list cannot be written.
pub fn trust(line: &CommandLine, extra: &[ExtraKey]) -> Result<Option<Vec<ShownSetting>>, SettingsError> {
    let named = command_line::named(line);
    let path = named.clone().unwrap_or_else(|| command_line::DEFAULT_FILE.into());
    if named.is_none() && !path.exists() {
        return Ok(None);
    }
    let shown = path.display().to_string();
    let text = bounded::text(&path, bounded::BY_HAND)
        .map_err(|error| Problem::Unreadable { path: shown.clone(), reason: error.to_string().into() })?;
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
    let list = OwnList::named(LIST).ok_or_else(|| Problem::NoPlaceForTrust { path: shown.clone() })?;
    let remembered = Found { path: &shown, text: &text }.line().and_then(|line| remember(&list, line));
    remembered.map_err(|error| Problem::NotRemembered {
        path: list.path().display().to_string(),
        reason: error.to_string().into(),
    })?;
    Ok(Some(settings))
}

/// Gives the list a line for a file in place of the one it had.
fn remember(list: &OwnList, line: String) -> io::Result<()> {
    let path_of = |line: &str| line.split_once("  ").map(|(_, path)| path.to_owned());
    list.change(|lines| {
        lines.retain(|old| path_of(old) != path_of(&line));
        lines.push(line);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sources;

    fn unasked(text: &str, profile: Option<&str>) -> Vec<String> {
        let extra = [
            "system.url",
            "vector.account",
            "vector.folder",
            "vector.precomputed",
            "vector.queries",
            "faulty.memory",
            "bm25.k1",
        ];
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
            ("[archive]\ntexts = 'always'", "archive.texts"),
            ("[meter]\nlisten = '0.0.0.0:7070'", "meter.listen"),
            ("[meter]\nurl = 'http://x'", "meter.url"),
            ("[trace]\nurl = 'https://x/{trace_id}'", "trace.url"),
            ("[trace]\ncontent = true", "trace.content"),
            ("[telemetry]\nendpoint = 'http://x'", "telemetry.endpoint"),
            ("[answerer]\nbase_url = 'http://x'", "answerer.base_url"),
            ("[judge]\naccount = 'openai'", "judge.account"),
            ("[judge]\nparams = '{}'", "judge.params"),
            ("[answerer]\nparams = '{\"service_tier\": \"flex\"}'", "answerer.params"),
            ("[accounts.openai]\nbase_url = 'http://x'", "accounts.openai.base_url"),
            ("[accounts.openai]\napi_key_env = 'HOME'", "accounts.openai.api_key_env"),
            ("[accounts.openai]\napi_key_file = '/x'", "accounts.openai.api_key_file"),
            ("[accounts.openai]\nparameters = ['extra_body']", "accounts.openai.parameters"),
            ("[run]\nsystem = './mine.yaml'", "run.system"),
            ("[run]\ndataset = '/home/somebody/notes.jsonl'", "run.dataset"),
            ("[run]\ndataset = 'notes.jsonl'", "run.dataset"),
            ("[run]\ndataset = 'MINE.YAML.gz'", "run.dataset"),
            ("[run]\ndataset = 'mine/notes'", "run.dataset"),
            ("[allow]\nsystems = 'any'", "allow.systems"),
            ("[allow]\nhosts = ['10.0.0.7']", "allow.hosts"),
            ("allow_plaintext = ['db.example']", "allow_plaintext"),
            ("[system]\nurl = 'http://x'", "system.url"),
            ("[vector]\naccount = 'openai'", "vector.account"),
            ("[vector]\nfolder = '/x'", "vector.folder"),
            ("[vector]\nprecomputed = '/x'", "vector.precomputed"),
            ("[vector]\nqueries = '/x'", "vector.queries"),
            ("[faulty]\nmemory = '/x'", "faulty.memory"),
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
        let text = "[run]\ndataset = 'locomo-sim'\ntop_k = 5\npreset = 'quick'\nanswerer = 'openai:gpt-4o-mini'\nconcurrency = 3\n\
                    [bm25]\nk1 = 1.5\n[telemetry]\nprocess_rate = 1.0\n[backoff]\nmax_interval = '2s'\n";
        assert!(unasked(text, None).is_empty());
    }

    #[test]
    fn a_file_has_one_line_and_a_path_that_is_no_line_has_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let list = OwnList::in_folder(&folder.path().join("home"), LIST);
        for line in ["aa  /x/bench.toml", "bb  /y/bench.toml", "cc  /x/bench.toml"] {
            remember(&list, line.to_owned()).expect("is written");
        }
        assert_eq!(list.lines(), Ok(vec!["bb  /y/bench.toml".to_owned(), "cc  /x/bench.toml".to_owned()]));
        let hostile = folder.path().join(format!("x\n{}  ", "0".repeat(64)));
        fs::create_dir(&hostile).expect("is made");
        let file = hostile.join("bench.toml");
        fs::write(&file, "").expect("is written");
        let path = file.display().to_string();
        assert!(Found { path: &path, text: "" }.line().expect_err("is refused").to_string().contains("line of text"));
        assert!(!Found { path: &path, text: "" }.is_trusted());
    }
}
