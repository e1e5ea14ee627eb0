//! Memory systems as settings name them, and what they may do in this process.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use bench_settings::{CommandLine, ExtraKey, Settings, bounded, signals::Interrupts};
use bench_systems::{
    BuildContext, MemorySystem, SystemSettings,
    adapter::{self, AdapterSpec, code, code::libraries, dispositions, given::Given, literal, settings as of_run},
    closing::unless_hurried,
    policy::{Policy, SystemHash},
    registry::{self, Named, SYSTEMS},
    vector,
};
use bench_worker::{
    environment::{Rights, WorkerEnvironment},
    transport,
};
use serde_json::Value;

use super::{App, trusted};
use crate::{
    cli::{Cli, SystemsVerb, Verb},
    exit::CliError,
    out,
};

/// What a command line names as its memory system, by `--system` or as an argument.
fn named_system<'a>(cli: &'a Cli, line: &'a CommandLine) -> Option<&'a str> {
    let flagged = line.flags.iter().filter(|flag| flag.key == "run.system").find_map(|flag| flag.values.first());
    let set = line.sets.iter().rev().find_map(|set| set.strip_prefix("run.system="));
    match &cli.verb {
        Verb::Systems(
            SystemsVerb::Check { system, .. } | SystemsVerb::Hash { system, .. } | SystemsVerb::Try { system, .. },
        ) => Some(system.as_str()),
        Verb::Load(args) => args.system.as_deref(),
        _ => flagged.map(String::as_str).or(set),
    }
}

/// The settings of the adapter file that a command line names: they have the file's own name as their section. What is wrong with
/// the file is said when it is used.
pub(super) fn section_of_file(cli: &Cli, line: &CommandLine) -> Option<ExtraKey> {
    let named = named_system(cli, line)?;
    if !registry::is_file(named) {
        return None;
    }
    let text = bounded::text(Path::new(named), bounded::BY_HAND).ok()?;
    let spec = adapter::file::parse(&text).ok()?;
    Some(ExtraKey { name: format!("{}.*", spec.name), default: None })
}

/// Settings that the command line of a fork gives and nobody here knows, by their dotted names: the memory system of its source, which
/// is not known yet, may have them.
pub(super) fn set_of_source(cli: &Cli, line: &CommandLine, known: &[ExtraKey]) -> Vec<String> {
    let (Verb::Submit(args) | Verb::Estimate(args)) = &cli.verb else { return Vec::new() };
    if args.fork.is_none() {
        return Vec::new();
    }
    let is_known = |section: &str| is_taken(section, known.iter().map(|key| key.name.as_str()));
    let names = line.sets.iter().filter_map(|set| set.split_once('=').map(|(name, _)| name.trim()));
    let unknown = names.filter(|name| name.split_once('.').is_some_and(|(section, _)| !is_known(section)));
    unknown.map(str::to_owned).collect()
}

/// Whether settings of the runner, or some of these, begin with this name and a dot.
fn is_taken<'a>(section: &str, mut others: impl Iterator<Item = &'a str>) -> bool {
    bench_settings::has_section(section) || others.any(|name| name.split_once('.').is_some_and(|(of, _)| of == section))
}

/// Whether settings of the runner or of a dataset begin with this name and a dot.
fn is_of_others(section: &str) -> bool {
    is_taken(section, bench_datasets::setting_names().iter().map(String::as_str))
}

/// A class that the command line names, as it was imported.
pub(super) struct OfClass {
    given: String,
    spec: Box<AdapterSpec>,
    /// Its settings that the command line gives, by their dotted names.
    set: Vec<String>,
}

impl OfClass {
    /// Imports the class, whose name is the section of its settings. What is wrong with it is said when it is used.
    pub(super) fn from_line(cli: &Cli, line: &CommandLine) -> Option<Self> {
        let given =
            named_system(cli, line).filter(|named| code::split(named).is_some() || libraries::find(named).is_some())?;
        let Ok(Named::Adapter(spec)) = registry::named(given) else { return None };
        let names = line.sets.iter().filter_map(|set| set.split_once('=').map(|(name, _)| name.trim()));
        let of_class = |name: &&str| name.split_once('.').is_some_and(|(section, _)| section == spec.name);
        let set = names.filter(of_class).map(str::to_owned).collect();
        Some(Self { given: given.to_owned(), spec, set })
    }

    /// Only what the command line says is the class's: a file of the current folder was written by somebody else.
    pub(super) fn keys(&self) -> impl Iterator<Item = ExtraKey> {
        let takes = !self.spec.settings.is_empty() && !is_of_others(&self.spec.name);
        self.set.iter().filter(move |_| takes).map(|name| ExtraKey { name: name.clone(), default: None })
    }
}

/// Says of settings of memory systems that the command line gives that this one has none of them.
fn unused(settings: &Settings, system: &str) -> Option<String> {
    let of_built_in = SYSTEMS.iter().find(|entry| entry.name == system).map(|entry| entry.settings);
    let is_used = |key: &str| {
        let section = key.split_once('.').map(|(section, _)| section);
        let is_of_control = settings.run.controls && section == Some("random");
        is_of_control
            || of_built_in.map_or(section == Some(system), |own| own.iter().any(|setting| setting.name == key))
    };
    let of_all = SYSTEMS.iter().flat_map(|entry| entry.settings).filter_map(|setting| setting.name.split_once('.'));
    let shipped = adapter::shipped::SHIPPED.iter().map(|(name, _)| *name);
    let sections: BTreeSet<&str> = of_all.map(|(section, _)| section).chain(shipped).collect();
    let typed = sections.into_iter().flat_map(|section| settings.typed(section)).map(|(key, _)| key);
    let unused: Vec<&str> = typed.filter(|key| !is_used(key)).collect();
    (!unused.is_empty())
        .then(|| format!("--set {}: {system} has no such setting, and nothing of this run reads it", unused.join(", ")))
}

impl App {
    /// Says of settings of memory systems that the command line gives that the one of a run has none of them.
    pub(crate) fn unused_settings(&self, system: &str) -> Option<String> {
        unused(&self.settings, system)
    }

    /// The memory system that a name, or the path of an adapter file, stands for: its name and its settings. An adapter goes
    /// with the run as a whole, so that workers need no file.
    ///
    /// # Errors
    /// Exit 2: unknown names, files with mistakes, a mode, dispositions or settings that the system does not have.
    pub(crate) fn system(&self, given: &str) -> Result<(String, BTreeMap<String, Value>), CliError> {
        let usage = |e: String| CliError::usage(e);
        let section = self.settings.section("system");
        let mode = section.get("mode").and_then(Value::as_str).unwrap_or("raw");
        if !["raw", "consolidated"].contains(&mode) {
            return Err(usage(format!("--mode {mode}: give raw or consolidated")));
        }
        let asked = section.get("dispositions").and_then(Value::as_str);
        let no_such = |asked: &str, problem: String| usage(format!("--dispositions {asked}: {problem}"));
        let named = match &self.class {
            Some(class) if class.given == given => Named::Adapter(class.spec.clone()),
            _ => registry::named(given).map_err(CliError::usage_of)?,
        };
        let (name, mut settings, consolidates) = match named {
            Named::BuiltIn(entry) => match asked {
                None => {
                    let settings = self.system_settings(entry.name);
                    of_run::check_secrets(None, &settings).map_err(usage)?;
                    (entry.name.to_owned(), settings, false)
                }
                Some(asked) => return Err(no_such(asked, format!("{} has no dispositions", entry.name))),
            },
            Named::Adapter(spec) if SYSTEMS.iter().any(|entry| entry.name == spec.name) => {
                return Err(usage(format!(
                    "{given}: `name: {0}` is the name of a built-in system, whose results it would be mixed up with; give it another \
                     name",
                    spec.name
                )));
            }
            Named::Adapter(mut spec) => {
                let told = dispositions::take(&mut spec, asked).map_err(|e| no_such(asked.unwrap_or_default(), e))?;
                let adapter = serde_json::to_value(&spec).map_err(|e| usage(e.to_string()))?;
                let mut settings = BTreeMap::from([(adapter::ADAPTER.to_owned(), adapter)]);
                if let Some(url) = section.get("url") {
                    literal::check_url(url.as_str().unwrap_or_default()).map_err(usage)?;
                    settings.insert(adapter::URL.to_owned(), url.clone());
                }
                settings.extend(told.map(|told| (dispositions::DISPOSITIONS.to_owned(), told)));
                settings.extend(of_run::take(&spec, &self.asked_of(&spec)?).map_err(usage)?);
                of_run::check_secrets(Some(&spec), &settings).map_err(usage)?;
                (spec.name.clone(), settings, spec.consolidate.is_some() || spec.command.is_some())
            }
        };
        if mode == "consolidated" {
            if !consolidates {
                return Err(usage(format!(
                    "--mode consolidated: {name} has no consolidation of its own; use --mode raw"
                )));
            }
            settings.insert(adapter::MODE.to_owned(), mode.into());
        }
        Ok((name, settings))
    }

    /// What is asked of the settings of an adapter, by their names.
    ///
    /// # Errors
    /// Exit 2: its name is that of settings of the runner.
    fn asked_of(&self, spec: &AdapterSpec) -> Result<BTreeMap<String, Value>, CliError> {
        let name = &spec.name;
        let is_taken = is_of_others(name);
        if spec.code.is_none() && !spec.settings.is_empty() && is_taken {
            return Err(CliError::usage(format!(
                "'{name}' has settings of its own (--set {name}.NAME), and settings of bench-coord are named so too: give the \
                 system another name, such as 'my-{name}'"
            )));
        }
        let mut asked = self.settings.section(name);
        if spec.code.is_some() {
            let set = self.class.iter().flat_map(|class| class.set.iter()).filter_map(|set| set.split_once('.'));
            let set: Vec<&str> = set.map(|(_, setting)| setting).collect();
            asked.retain(|setting, _| !is_taken && set.contains(&setting.as_str()));
        }
        Ok(asked)
    }

    /// Settings of a built-in memory system, by their dotted names.
    #[must_use]
    pub(crate) fn system_settings(&self, system: &str) -> BTreeMap<String, Value> {
        let known = SYSTEMS.iter().filter(|entry| entry.name == system).flat_map(|entry| entry.settings);
        known
            .filter_map(|setting| {
                let (section, name) = setting.name.split_once('.')?;
                let given = self.settings.section(section).remove(name)?;
                // a run may go on from another folder
                let whole = given.as_str().filter(|path| vector::is_path(setting.name) && !path.is_empty());
                let whole = whole.and_then(|path| std::path::absolute(path).ok()?.into_os_string().into_string().ok());
                Some((setting.name.to_owned(), whole.map_or(given, Value::from)))
            })
            .collect()
    }

    /// Settings of a dataset's own section, without its name; none for a dataset without one, and for unknown names.
    #[must_use]
    pub(crate) fn dataset_settings(&self, dataset: &str) -> BTreeMap<String, Value> {
        let section = bench_datasets::find(dataset).map_or("", |known| known.manifest.section.as_str());
        if section.is_empty() { BTreeMap::new() } else { self.settings.section(section) }
    }

    /// What memory systems may do in this process: what settings allow, and what a person has named here (P42).
    #[must_use]
    pub(crate) fn policy(&self) -> Policy {
        trusted::added_to(Policy::new(self.settings.allow.clone()), &self.settings.home)
    }

    /// Notes that a person has named the adapter of these settings, by `given` where it was read for this command: it may do here
    /// what it says.
    ///
    /// # Errors
    /// Exit 2 when that cannot be noted.
    pub(crate) fn trust(&self, settings: &SystemSettings, given: Option<&str>) -> Result<(), CliError> {
        let policy = self.policy();
        let code = given.and_then(code::split).and_then(|class| class.folder());
        match policy.check(settings) {
            Ok(()) if code.is_none() || code.as_deref() == policy.own_code(settings) => Ok(()),
            _ => trusted::add(&self.settings.home, settings, code),
        }
    }

    /// The same with the adapter of these settings, which a person has named just now as `given`; nothing of it is noted.
    pub(crate) fn policy_naming(&self, settings: &SystemSettings, given: &str) -> Policy {
        let Some(hash) = SystemHash::of_settings(settings) else { return self.policy() };
        let url = settings.get(adapter::URL).and_then(Value::as_str).map(str::to_owned);
        let policy = self.policy().trusting(hash, url);
        match code::split(given).and_then(|class| class.folder()) {
            Some(folder) => policy.with_code_in(hash, folder),
            None => policy,
        }
    }

    pub(super) fn rights(&self, policy: Policy) -> Rights {
        Rights { policy, apart: false }
    }

    /// A memory system that is driven outside of a run, because a person has named it just now: it may do here what its adapter
    /// says. What it starts lies below the home in a folder named `own`.
    ///
    /// # Errors
    /// Exit 2: as [`App::system`], and what the system lacks.
    pub(crate) async fn drive(&self, given: &str, own: &str) -> Result<Driven, CliError> {
        let (name, settings) = self.system(given)?;
        if !vector::embeds_banks(&settings) {
            return Err(CliError::usage(
                "vector.precomputed has the vectors of a dataset's memories, and this verb makes up memories of its own: leave it \
                 out here",
            ));
        }
        self.begin_home(false);
        adapter::end_orphans(&self.home()).await;
        transport::warn(&self.settings, transport::to_pgvector(&name));
        let environment = self.environment_outside_of_runs(self.policy_naming(&settings, given))?;
        adapter::check_start(&settings, &Given::default(), &self.home()).await.map_err(CliError::usage)?;
        let folder = self.home().join("systems").join(own);
        let is_new = !folder.exists();
        let context = environment.systems.for_run(own);
        let system = registry::build(&name, &settings, &context).map_err(CliError::usage_of)?;
        if let Err(failure) = self.has_tools(&settings, system.as_ref()).await {
            system.close().await;
            return Err(failure);
        }
        Ok(Driven { name, settings, system, context, folder, is_new })
    }

    /// Looks whether a server has the tools that its adapter calls. Whatever else is wrong with it is said by who asks it.
    async fn has_tools(&self, settings: &SystemSettings, system: &dyn MemorySystem) -> Result<(), CliError> {
        if settings.get(adapter::ADAPTER).is_none_or(|spec| spec.get("mcp").is_none()) {
            return Ok(());
        }
        match system.health().await {
            Err(failure) if failure.code == adapter::NO_SUCH_TOOL => Err(CliError::usage(failure.message)),
            _ => Ok(()),
        }
    }

    /// What a memory system gets outside of a run: every account that has a server.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub(crate) fn environment_outside_of_runs(&self, policy: Policy) -> Result<Arc<WorkerEnvironment>, CliError> {
        let accounts = bench_worker::environment::usable_accounts(&self.settings);
        bench_worker::environment::environment(&self.settings, accounts, self.rights(policy))
            .map_err(|failure| CliError::infrastructure(failure.to_string()))
    }
}

/// A memory system that is driven outside of a run.
pub(crate) struct Driven {
    /// Name in the registry, or that its adapter file or class says.
    pub(crate) name: String,
    /// Its settings, the adapter among them.
    pub(crate) settings: SystemSettings,
    /// What was built of them, ready to be called.
    pub(crate) system: Arc<dyn MemorySystem>,
    context: BuildContext,
    folder: PathBuf,
    /// Nobody had the folder before.
    is_new: bool,
}

impl Driven {
    /// Ends what was started for it; the second signal does not wait for long.
    pub(crate) async fn close(&self, interrupts: &Interrupts) {
        unless_hurried(self.system.close(), interrupts.now.cancelled()).await;
        self.context.adapters.instances.close_all().await;
    }

    /// Removes its folder, to which nobody comes back, or says where it is: what the system has said and stored is in it.
    pub(crate) fn leave(&self, went_well: bool) {
        if went_well && self.is_new {
            let _ = std::fs::remove_dir_all(&self.folder);
        } else if self.folder.is_dir() {
            out::note(&format!("what the system has said and stored is in {}", self.folder.display()));
        }
    }
}

#[cfg(test)]
mod tests {
    use bench_settings::Sources;
    use bench_worker::environment::keys_of_worker;
    use clap::Parser as _;

    use super::*;
    use crate::app::extra_keys;

    #[test]
    fn verbs_that_drive_a_system_take_its_settings() {
        let named = |words: &str| {
            let cli = Cli::try_parse_from(["bench-coord"].into_iter().chain(words.split(' '))).expect("is read");
            named_system(&cli, &CommandLine::default()).map(str::to_owned)
        };
        for words in
            ["load ./mine.yaml --rate 5 --set mine.w=1", "systems check ./mine.yaml", "systems try ./mine.yaml"]
        {
            assert_eq!(named(words).as_deref(), Some("./mine.yaml"), "{words}");
        }
        assert_eq!(named("load --merge one.json"), None);
    }

    #[test]
    fn a_fork_takes_settings_of_a_system_that_it_does_not_know_yet() {
        let set = |words: &str| {
            let cli = Cli::try_parse_from(["bench-coord"].into_iter().chain(words.split(' '))).expect("is read");
            let line = CommandLine { sets: cli.global.set.clone(), ..CommandLine::default() };
            set_of_source(&cli, &line, &extra_keys())
        };
        let fork = "submit --fork a --from judge --set mine.w=1";
        assert_eq!(set(fork), ["mine.w"]);
        assert_eq!(set(&format!("{fork} --set bm25.k1=1 --set run.seed=1 --set w=1")), ["mine.w"]);
        assert_eq!(set(&format!("{fork} --set sim.seed=1")), ["mine.w"], "a dataset's");
        assert_eq!(set("submit --set mine.w=1"), [""; 0], "whose system is named with it");
    }

    #[test]
    fn settings_of_a_system_that_a_run_has_not_are_told() {
        let sets = ["hindsight.budget=low", "bm25.k1=1", "random.seed=2"].map(str::to_owned).to_vec();
        let load = |more: &[&str]| {
            let sets = sets.iter().cloned().chain(more.iter().map(|set| (*set).to_owned())).collect();
            Settings::load(&Sources { sets, extra: extra_keys(), ..Sources::default() }).expect("is known")
        };
        let said = |system: &str, more: &[&str]| unused(&load(more), system).unwrap_or_default();
        assert!(said("bm25", &[]).starts_with("--set hindsight.budget, random.seed: bm25 has no such setting"));
        assert!(said("facts", &[]).starts_with("--set hindsight.budget, random.seed: "), "it searches as bm25 does");
        assert!(said("hindsight", &["run.controls=true"]).starts_with("--set bm25.k1: "));
        let none = Settings::load(&Sources { extra: extra_keys(), ..Sources::default() }).expect("is known");
        assert_eq!(unused(&none, "bm25"), None, "defaults are nobody's");
    }

    #[test]
    fn settings_of_datasets_are_known_here_and_let_alone_by_workers() {
        let load = |sets: Vec<String>, extra| Settings::load(&Sources { sets, extra, ..Sources::default() });
        let names = bench_datasets::setting_names();
        let sets: Vec<String> = names.iter().map(|name| format!("{name}=true")).collect();
        for extra in [extra_keys(), keys_of_worker()] {
            let settings = load(sets.clone(), extra).unwrap_or_else(|error| panic!("{error}"));
            assert!(names.iter().all(|name| settings.is_set(name)), "{names:?}");
        }
        assert!(load(sets, Vec::new()).is_err(), "no list but the registry's knows them");
        let slip = load(vec!["sim.sed=1".to_owned()], extra_keys()).expect_err("a slip").to_string();
        assert!(slip.contains("did you mean 'sim.seed'"), "{slip}");
        assert!(is_of_others("sim") && is_of_others("run") && !is_of_others("mine"));
    }
}
