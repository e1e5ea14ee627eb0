//! The list of memory systems. To add one: a file beside this one, and a line here.

use std::sync::Arc;

use super::{BuildContext, Capabilities, MemorySystem, Setting, SystemSettings, settings};
use super::{bm25, faulty, full_context, none, oracle, random};

/// Builds a system from its settings.
pub type BuildSystem = fn(&SystemSettings, &BuildContext) -> Result<Arc<dyn MemorySystem>, BuildError>;

/// A registered system.
#[derive(Debug, Clone, Copy)]
pub struct SystemEntry {
    /// Name, as given to `--system`.
    pub name: &'static str,
    /// One line for `systems list`.
    pub description: &'static str,
    /// Settings that it knows; all others are refused.
    pub settings: &'static [Setting],
    /// Builds it from checked names of settings; values are its own to check.
    pub build: BuildSystem,
}

/// All systems, competitors before controls.
#[rustfmt::skip]
pub const SYSTEMS: &[SystemEntry] = &[
    SystemEntry { name: "bm25", description: "keyword search over single turns (BM25, English stemming)", settings: bm25::SETTINGS, build: bm25::build },
    SystemEntry { name: "full-context", description: "the whole bank as context, in order", settings: &[], build: full_context::build },
    SystemEntry { name: "none", description: "control: no memory at all, the floor", settings: &[], build: none::build },
    SystemEntry { name: "random", description: "control: turns by lot, chance level", settings: random::SETTINGS, build: random::build },
    SystemEntry { name: "oracle", description: "control: the gold evidence itself, the ceiling", settings: &[], build: oracle::build },
    SystemEntry { name: "faulty", description: "rehearsal: bm25 that fails or panics by lot, once per question", settings: faulty::SETTINGS, build: faulty::build },
];

/// Why a system cannot be built: always the user's to mend, before anything is spent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// No system of that name.
    #[error("unknown memory system '{name}', {}known systems: {}", did_you_mean(.nearest), .known.join(", "))]
    UnknownSystem {
        /// The name given.
        name: String,
        /// A registered name that looks like it.
        nearest: Option<&'static str>,
        /// All names.
        known: Vec<&'static str>,
    },
    /// The system has no such setting.
    #[error("memory system '{system}' has no setting '{setting}', {}", valid_settings(.known))]
    UnknownSetting {
        /// The system.
        system: String,
        /// The setting given.
        setting: String,
        /// Its settings.
        known: Vec<&'static str>,
    },
    /// The setting does not take that value.
    #[error("setting {setting} must be {expected}, not {value}")]
    BadSetting {
        /// The setting.
        setting: &'static str,
        /// What it takes.
        expected: String,
        /// The value given, as JSON.
        value: String,
    },
}

fn did_you_mean(nearest: &Option<&'static str>) -> String {
    nearest.map(|name| format!("did you mean '{name}'? ")).unwrap_or_default()
}

fn valid_settings(known: &[&'static str]) -> String {
    if known.is_empty() { "it takes none".to_owned() } else { format!("its settings: {}", known.join(", ")) }
}

/// The entry of a name.
///
/// # Errors
/// [`BuildError::UnknownSystem`], with the nearest name.
pub fn find(name: &str) -> Result<&'static SystemEntry, BuildError> {
    SYSTEMS.iter().find(|entry| entry.name == name).ok_or_else(|| BuildError::UnknownSystem {
        name: name.to_owned(),
        nearest: nearest(name),
        known: SYSTEMS.iter().map(|entry| entry.name).collect(),
    })
}

/// Builds a system.
///
/// # Errors
/// Unknown names and settings, values that a setting does not take.
pub fn build(
    name: &str,
    settings: &SystemSettings,
    context: &BuildContext,
) -> Result<Arc<dyn MemorySystem>, BuildError> {
    let entry = find(name)?;
    settings::check(entry.name, entry.settings, settings)?;
    (entry.build)(settings, context)
}

/// A row of `systems list`.
#[derive(Debug, Clone)]
pub struct SystemInfo {
    /// The entry.
    pub entry: &'static SystemEntry,
    /// What it can do with default settings, or why it cannot be built with them.
    pub capabilities: Result<Capabilities, BuildError>,
}

/// All systems with their capabilities.
#[must_use]
pub fn list(context: &BuildContext) -> Vec<SystemInfo> {
    let capabilities = |entry: &SystemEntry| {
        (entry.build)(&SystemSettings::new(), context).map(|system| system.capabilities().clone())
    };
    SYSTEMS.iter().map(|entry| SystemInfo { entry, capabilities: capabilities(entry) }).collect()
}

/// The registered name that is most like `name`, when any is alike.
fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase().replace('_', "-");
    SYSTEMS
        .iter()
        .map(|entry| (strsim::jaro_winkler(&name, entry.name), entry.name))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(name: &str, settings: &[(&str, serde_json::Value)]) -> String {
        let settings = settings.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        build(name, &settings, &BuildContext::default()).err().expect("must be refused").to_string()
    }

    #[test]
    fn mistakes_are_named_with_what_to_do() {
        insta::assert_snapshot!(error("bm52", &[]), @"unknown memory system 'bm52', did you mean 'bm25'? known systems: bm25, full-context, none, random, oracle, faulty");
        insta::assert_snapshot!(error("full_context", &[]), @"unknown memory system 'full_context', did you mean 'full-context'? known systems: bm25, full-context, none, random, oracle, faulty");
        insta::assert_snapshot!(error("zep", &[]), @"unknown memory system 'zep', known systems: bm25, full-context, none, random, oracle, faulty");
        insta::assert_snapshot!(error("bm25", &[("bm25.k3", 1.into())]), @"memory system 'bm25' has no setting 'bm25.k3', its settings: bm25.k1, bm25.b");
        insta::assert_snapshot!(error("none", &[("seed", 1.into())]), @"memory system 'none' has no setting 'seed', it takes none");
        insta::assert_snapshot!(error("bm25", &[("bm25.b", "x".into())]), @r#"setting bm25.b must be a number from 0 to 1, not "x""#);
    }

    #[test]
    fn defaults_that_are_shown_can_be_given() {
        for entry in SYSTEMS {
            let settings = entry.settings.iter().map(|s| (s.name.to_owned(), s.default.into())).collect();
            build(entry.name, &settings, &BuildContext::default()).expect("a default is a valid value");
        }
    }

    #[test]
    fn the_capability_table_is_pinned() {
        let rows: Vec<String> = list(&BuildContext::default())
            .into_iter()
            .map(|row| {
                let c = row.capabilities.expect("built-ins need no settings");
                let flags = [
                    ("from_items", c.from_items),
                    ("ignores_k", c.ignores_k),
                    ("sees_gold", c.sees_gold),
                    ("empty_by_design", c.empty_by_design),
                ];
                let flags: Vec<&str> = flags.iter().filter(|flag| flag.1).map(|flag| flag.0).collect();
                format!("{} {}: {}", row.entry.name, c.version, flags.join(" "))
            })
            .collect();
        insta::assert_snapshot!(rows.join("\n"), @r"
        bm25 1.0.0: from_items
        full-context 1.0.0: from_items ignores_k
        none 1.0.0: from_items empty_by_design
        random 1.0.0: from_items
        oracle 1.0.0: from_items sees_gold
        faulty 1.0.0: from_items
        ");
    }
}
