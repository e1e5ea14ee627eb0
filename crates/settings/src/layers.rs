//! Puts the layers on top of each other: defaults < file < profile < environment < flags.

use std::{collections::BTreeMap, fmt, io, path::Path};

use bench_proto::nearest::distance;

use crate::{
    DEFAULT_CONFIG,
    error::Problem,
    file::{self, Assignment},
    origin::Origin,
    schema::{ExtraKey, Key, Kind, Schema, within_two},
    value::{Value, found_text},
};

/// Where settings are read from. Nothing here touches the process: [`crate::from_process`] fills it in.
pub struct Sources<'a> {
    /// The configuration file: its path, for messages, and its text.
    pub file: Option<(String, String)>,
    /// The profile to use.
    pub profile: Option<String>,
    /// Looks up an environment variable. Empty ones count as not set.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// Reads a file that holds a key.
    pub read_key_file: &'a dyn Fn(&Path) -> io::Result<String>,
    /// The values of `--set`, `key=value` each; of several for one key the last counts.
    pub sets: Vec<String>,
    /// Named flags that were given; they beat `--set`.
    pub flags: Vec<FlagValue>,
    /// Settings of datasets and memory systems.
    pub extra: Vec<ExtraKey>,
}

impl fmt::Debug for Sources<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources").field("profile", &self.profile).field("sets", &self.sets).finish_non_exhaustive()
    }
}

impl Default for Sources<'_> {
    /// No sources but the defaults.
    fn default() -> Self {
        Self {
            file: None,
            profile: None,
            env: &|_| None,
            read_key_file: &|_| Err(io::ErrorKind::NotFound.into()),
            sets: Vec::new(),
            flags: Vec::new(),
            extra: Vec::new(),
        }
    }
}

/// A named flag that was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlagValue {
    /// The setting, such as `run.top_k`.
    pub key: String,
    /// The flag as typed, such as `--top-k`.
    pub flag: String,
    /// Its value or values, as typed.
    pub values: Vec<String>,
}

impl FlagValue {
    /// A flag with one value.
    pub fn new(key: impl Into<String>, flag: impl Into<String>, value: impl Into<String>) -> Self {
        Self { key: key.into(), flag: flag.into(), values: vec![value.into()] }
    }
}

/// An effective value and where it comes from.
#[derive(Debug, Clone)]
pub struct Entry {
    /// What is in force.
    pub value: Value,
    /// Where it comes from.
    pub origin: Origin,
}

pub(crate) type Entries = BTreeMap<String, Entry>;

/// All layers on top of each other: what is set, and what is wrong with it.
pub(crate) struct Layers {
    pub(crate) schema: Schema,
    pub(crate) entries: Entries,
    pub(crate) problems: Vec<Problem>,
}

impl Layers {
    /// Reads all sources, the lowest first.
    pub(crate) fn read(sources: &Sources<'_>) -> Self {
        let mut layers = Self { schema: Schema::new(&sources.extra), entries: Entries::new(), problems: Vec::new() };
        layers.defaults(&sources.extra);
        layers.file(sources);
        layers.environment(sources.env);
        layers.sets(&sources.sets);
        layers.flags(&sources.flags);
        layers.follow_home();
        layers
    }

    fn put(&mut self, key: impl Into<String>, value: Value, origin: Origin) {
        self.entries.insert(key.into(), Entry { value, origin });
    }

    fn defaults(&mut self, extra: &[ExtraKey]) {
        let defaults = file::read("default-config.toml", DEFAULT_CONFIG, &self.schema, &mut self.problems);
        for Assignment { key, value, .. } in defaults.base {
            self.put(key, value, Origin::Default);
        }
        for extra in extra {
            if let Some(value) = extra.default.as_deref().and_then(|text| Value::from_text(Kind::Scalar, text)) {
                self.put(extra.name.clone(), value, Origin::Default);
            }
        }
    }

    fn file(&mut self, sources: &Sources<'_>) {
        let Some((path, text)) = &sources.file else {
            self.problems.extend(sources.profile.clone().map(|name| Problem::NoFileForProfile { name }));
            return;
        };
        let file = file::read(path, text, &self.schema, &mut self.problems);
        for Assignment { key, value, place } in file.base {
            self.put(key, value, Origin::File(place));
        }
        let Some(wanted) = &sources.profile else { return };
        let known: Vec<String> = file.profiles.iter().map(|(name, _)| name.clone()).collect();
        match file.profiles.into_iter().find(|(name, _)| name == wanted) {
            Some((name, assignments)) => {
                for Assignment { key, value, place } in assignments {
                    self.put(key, value, Origin::Profile(name.clone(), place));
                }
            }
            None => {
                let nearest = within_two(known.iter().map(String::as_str), |known| distance(wanted, known));
                self.problems.push(Problem::UnknownProfile {
                    name: wanted.clone(),
                    path: path.clone(),
                    nearest,
                    known,
                });
            }
        }
    }

    fn environment(&mut self, env: &dyn Fn(&str) -> Option<String>) {
        let variables: Vec<(String, Kind, &str)> = self
            .schema
            .keys
            .iter()
            .filter_map(|Key { name, kind, env, .. }| env.map(|variable| (name.to_string(), *kind, variable)))
            .collect();
        for (key, kind, variable) in variables {
            if let Some(text) = env(variable).filter(|text| !text.is_empty()) {
                self.text(key, kind, &[text], Origin::Env(variable.to_owned()));
            }
        }
    }

    fn sets(&mut self, sets: &[String]) {
        for set in sets {
            let Some((key, text)) = set.split_once('=') else {
                self.problems.push(Problem::NotAnAssignment { text: set.clone() });
                continue;
            };
            let key = key.trim();
            self.flag(key, &[text.to_owned()], format!("--set {key}"));
        }
    }

    fn flags(&mut self, flags: &[FlagValue]) {
        for FlagValue { key, flag, values } in flags {
            self.flag(key, values, flag.clone());
        }
    }

    fn flag(&mut self, key: &str, values: &[String], flag: String) {
        match self.schema.find(key) {
            _ if key == "api_key" || key.ends_with(".api_key") => {
                self.problems.push(Problem::SecretInTheOpen { place: flag, key: key.to_owned() });
            }
            Some(kind) => self.text(key.to_owned(), kind, values, Origin::Flag(flag)),
            None => {
                let nearest = self.schema.nearest(key);
                self.problems.push(Problem::UnknownKey { place: flag, key: key.to_owned(), nearest });
            }
        }
    }

    fn text(&mut self, key: String, kind: Kind, values: &[String], origin: Origin) {
        let value = match (kind, values) {
            // each of several may be several, as a single one may
            (Kind::List, [_, _, ..]) => Value::from_text(kind, &values.join(",")),
            _ => values.last().and_then(|text| Value::from_text(kind, text)),
        };
        match value {
            Some(value) => self.put(key, value, origin),
            None => self.problems.push(Problem::BadValue {
                place: origin.to_string(),
                key,
                found: values.last().map_or_else(|| "empty".to_owned(), |text| found_text(kind, text)),
                expected: kind.expected(values.last().map(String::as_str)),
            }),
        }
    }

    /// The default store lies in `home`.
    fn follow_home(&mut self) {
        let Some(Entry { value: Value::Path(home), origin }) = self.entries.get("home") else {
            return;
        };
        let origin = if *origin == Origin::Default { Origin::Default } else { Origin::Follows("home") };
        let url = Value::Url(format!("sqlite:{}/bench.db", home.display()));
        self.entries.entry("store.url".to_owned()).or_insert(Entry { value: url, origin });
    }
}
