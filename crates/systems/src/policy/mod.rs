//! What this process lets memory systems do (P42). A run carries data, never authority: whoever can write the store, an archive
//! or an import decides neither what is run here nor which secret goes where. Whoever operates the process does, by settings.
//!
//! An adapter that is known by its hash is allowed as it is written; shipped ones are. Of any other each thing that it does is
//! looked at by itself. Built-in systems do nothing of the kind, but for rehearsals that write into a folder or end the process.

mod destination;
mod hash;
mod refusal;
mod refused;
mod rehearsal;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use bench_proto::policy::SystemPolicy;
use reqwest::Url;
use serde_json::Value;

use self::destination::Destination;
pub use self::{
    hash::{SystemHash, shipped},
    refusal::{Lack, Refusal},
    refused::RefusedSystem,
};
use crate::{
    SystemSettings,
    adapter::{
        self, AdapterSpec,
        spec::{AuthSpec, Permission, PortSpec},
        variables,
    },
};

/// Decides for a process.
#[derive(Debug, Clone)]
pub struct Policy {
    listed: SystemPolicy,
    /// Adapters, with where they were pointed, that a person has named.
    trusted: BTreeSet<(SystemHash, Option<String>)>,
    /// Folders in which a person has named the classes of such adapters.
    own_code: BTreeMap<SystemHash, PathBuf>,
}

impl Default for Policy {
    fn default() -> Self {
        Self::new(SystemPolicy::default())
    }
}

impl Policy {
    /// What is listed, and the shipped adapters.
    #[must_use]
    pub fn new(mut listed: SystemPolicy) -> Self {
        listed.systems.extend(shipped().map(str::to_owned));
        Self { listed, trusted: BTreeSet::new(), own_code: BTreeMap::new() }
    }

    /// Everything is allowed.
    #[must_use]
    pub fn anything() -> Self {
        Self::new(SystemPolicy { any: true, ..SystemPolicy::default() })
    }

    /// Allows one adapter as it is written, where it was pointed: `url` takes the place of its own.
    #[must_use]
    pub fn trusting(mut self, hash: SystemHash, url: Option<String>) -> Self {
        self.trusted.insert((hash, url));
        self
    }

    /// Says in which folder a person has named the class of an adapter: its files are run while they say what the adapter carries.
    #[must_use]
    pub fn with_code_in(mut self, hash: SystemHash, folder: PathBuf) -> Self {
        self.own_code.insert(hash, folder);
        self
    }

    /// The folder in which a person has named the class of these settings' adapter.
    #[must_use]
    pub fn own_code(&self, settings: &SystemSettings) -> Option<&Path> {
        self.own_code.get(&SystemHash::of_settings(settings)?).map(PathBuf::as_path)
    }

    /// As a session tells it.
    #[must_use]
    pub fn told(&self) -> SystemPolicy {
        self.listed.clone().told()
    }

    /// Whether the system of these settings may do here what its adapter says.
    ///
    /// # Errors
    /// What it lacks, and how to allow it.
    pub fn check(&self, settings: &SystemSettings) -> Result<(), Box<Refusal>> {
        match Asked::read(settings)? {
            Some(asked) if self.trusts(asked.hash, asked.moved) => Ok(()),
            Some(asked) => asked.check(&self.listed, View::Here),
            None if SystemHash::of_settings(settings).is_some_and(|hash| self.trusts(hash, None)) => Ok(()),
            None => rehearsal::check(settings, &self.listed),
        }
    }

    fn trusts(&self, hash: SystemHash, moved: Option<&str>) -> bool {
        self.trusted.contains(&(hash, moved.map(str::to_owned)))
    }
}

/// Whether a process that has told its policy would probably take a system: its variables are not known here.
///
/// # Errors
/// What it would lack, and how to allow it.
pub fn would_take(told: &SystemPolicy, settings: &SystemSettings) -> Result<(), Box<Refusal>> {
    match Asked::read(settings)? {
        Some(asked) => asked.check(told, View::Elsewhere),
        None => rehearsal::check(settings, told),
    }
}

/// Whose variables are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum View {
    /// Of this process.
    Here,
    /// Of another.
    Elsewhere,
}

/// A command line as it is listed: its words, in quotes where they would not be told apart.
#[must_use]
pub fn command_line(words: &[String]) -> String {
    let plain = |word: &str| {
        !word.is_empty() && !word.contains(|c: char| c.is_whitespace() || c.is_control() || c == '"' || c == '\\')
    };
    let shown =
        words.iter().map(|word| if plain(word) { word.clone() } else { Value::from(word.as_str()).to_string() });
    shown.collect::<Vec<_>>().join(" ")
}

/// What a run asks of a process.
struct Asked<'a> {
    spec: AdapterSpec,
    settings: &'a SystemSettings,
    hash: SystemHash,
    /// Where it was pointed instead of where its file says.
    moved: Option<&'a str>,
}

impl<'a> Asked<'a> {
    /// `None` for systems that are no adapters.
    fn read(settings: &'a SystemSettings) -> Result<Option<Self>, Box<Refusal>> {
        let Some(spec) = settings.get(adapter::ADAPTER) else { return Ok(None) };
        let spec: AdapterSpec =
            serde_json::from_value(spec.clone()).map_err(|error| Box::new(Refusal::unreadable(error.to_string())))?;
        let hash = SystemHash::compute(&spec, settings);
        let moved = settings.get(adapter::URL).and_then(Value::as_str).filter(|_| spec.program().is_none());
        Ok(Some(Self { spec, settings, hash, moved }))
    }

    fn check(&self, policy: &SystemPolicy, view: View) -> Result<(), Box<Refusal>> {
        let known = policy.lists(&self.hash.hex());
        if policy.any || known && self.moved.is_none() {
            return Ok(());
        }
        // what is listed is what is started and asked: values of settings come with the run, which also says what they may be
        let spec = adapter::filled(self.spec.clone(), self.settings);
        let spec = spec.map_err(|error| Box::new(Refusal::unreadable(error)))?;
        let lacks: Vec<Lack> = Self { spec, ..*self }.lacks(policy, view).into_iter().collect();
        if lacks.is_empty() {
            return Ok(());
        }
        Err(Box::new(Refusal::new(&self.spec.name, self.hash, known, self.moved.is_some(), lacks)))
    }

    /// What is not listed of that which is started or asked.
    fn lacks(&self, policy: &SystemPolicy, view: View) -> BTreeSet<Lack> {
        let mut lacks = BTreeSet::new();
        match (self.spec.program(), &self.spec.start) {
            (Some(words), _) => {
                self.started(policy, Some(words), None, &self.spec.env, &mut lacks);
            }
            (None, Some(start)) if self.moved.is_none() => {
                let words = Some(start.command.as_slice()).filter(|words| !words.is_empty());
                self.started(policy, words, start.image.as_deref(), &start.env, &mut lacks);
                let check = Some(&start.check).filter(|words| !words.is_empty()).map(|words| command_line(words));
                lacks.extend(check.filter(|line| !policy.commands.contains(line)).map(Lack::Command));
                if !start.files.is_empty() {
                    lacks.insert(Lack::Whole("writes files of its own beside what it starts".to_owned()));
                }
                if let PortSpec::Fixed(port) = start.port {
                    lacks.insert(Lack::Whole(format!("asks port {port}, whoever listens there")));
                }
            }
            _ => self.asked_over_the_network(policy, view, &mut lacks),
        }
        lacks
    }

    /// Something is run. What it is given beside its command line decides as much as that line (`LD_PRELOAD`, `PYTHONPATH`).
    fn started(
        &self,
        policy: &SystemPolicy,
        words: Option<&[String]>,
        image: Option<&str>,
        env: &BTreeMap<String, String>,
        lacks: &mut BTreeSet<Lack>,
    ) {
        if let Some(line) = words.map(command_line).filter(|line| !policy.commands.contains(line)) {
            lacks.insert(Lack::Command(line));
        }
        if let Some(image) = image.filter(|image| !policy.images.iter().any(|listed| listed == image)) {
            lacks.insert(Lack::Image(image.to_owned()));
        }
        if let Some(code) = &self.spec.code {
            lacks.insert(Lack::Whole(format!("brings the code of {}", code.file)));
        }
        let mut given = Vec::new();
        for (name, value) in env {
            if *value == format!("${{env:{name}}}") {
                given.push(name.clone());
            } else {
                lacks.insert(Lack::Whole(format!("sets the variable {name}")));
            }
        }
        let in_headers = self.spec.headers.values().flat_map(|value| variables::names(value)).map(str::to_owned);
        given.extend(in_headers);
        let auth = self.spec.auth.as_ref();
        given.extend(auth.and_then(|auth| auth.env.clone()));
        for name in given.into_iter().filter(|name| !policy.variables.contains(name)) {
            lacks.insert(Lack::Variable(name));
        }
        let file = auth.filter(|auth| auth.env.is_none()).and_then(|auth| auth.file.clone());
        if let Some(path) = file.filter(|path| !policy.files.contains(path)) {
            lacks.insert(Lack::File(path));
        }
    }

    /// A server is asked, and may be sent secrets.
    fn asked_over_the_network(&self, policy: &SystemPolicy, view: View, lacks: &mut BTreeSet<Lack>) {
        let Some(text) = self.moved.or(self.spec.address()) else { return };
        let (server, sent) = match Destination::read(text, policy, view) {
            Ok(Some(Destination { server: Some(server), sent })) => (server, sent),
            Ok(_) => return,
            Err(variables) => return lacks.extend(variables),
        };
        if !self.is_open(&server.url) && !policy.hosts.iter().any(|listed| server.is(listed)) {
            lacks.insert(Lack::Host(server.shown.clone()));
        }
        let in_headers = self.spec.headers.values().flat_map(|value| variables::names(value));
        let secrets = in_headers.chain(sent).map(str::to_owned).chain(self.secret(view));
        for secret in secrets {
            let may_go =
                |pair: &String| pair.rsplit_once('@').is_some_and(|(listed, host)| listed == secret && server.is(host));
            if !policy.secrets.iter().any(may_go) {
                lacks.insert(Lack::Secret(format!("{secret}@{}", server.shown)));
            }
        }
    }

    /// Whether a place may be asked although nobody has listed it: a public one, by TLS.
    fn is_open(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        let ip = host.trim_matches(['[', ']']).parse().ok();
        let public = ip.map_or(host.trim_end_matches('.') != "localhost", bench_proto::address::is_public);
        url.scheme() == "https" && public && !self.spec.allow.contains(&Permission::PrivateAddresses)
    }

    /// The secret that goes with each request, by the name of its variable or file.
    fn secret(&self, view: View) -> Option<String> {
        let AuthSpec { env, file, optional, .. } = self.spec.auth.as_ref()?;
        let is_there = |name: &String| match view {
            View::Here => std::env::var_os(name).is_some(),
            View::Elsewhere => false,
        };
        match (env, file) {
            (Some(name), _) => (!optional || is_there(name)).then(|| name.clone()),
            (None, file) => file.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
