//! The list of memory systems. To add one: a file beside this one, and a line here.

use std::{io::ErrorKind, path::Path, sync::Arc};

use bench_proto::{nearest, redact};
use bench_settings::bounded;

#[cfg(feature = "pgvector")]
use crate::pgvector;
use crate::{
    BuildContext, BuildError, Capabilities, MemorySystem, Setting, SystemSettings,
    adapter::{self, AdapterSpec, code::libraries, shipped},
    alias, bm25, facts, faulty, full_context, none, oracle, random, settings, vector,
};

/// Builds a system from its settings.
pub type BuildSystem = fn(&SystemSettings, &BuildContext) -> Result<Arc<dyn MemorySystem>, BuildError>;

/// What can be known of a built-in system by its name alone.
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
    SystemEntry { name: "vector", description: "search by embeddings over single turns, exact", settings: vector::SETTINGS, build: vector::build },
    SystemEntry { name: "hybrid", description: "bm25 and vector, joined by reciprocal rank", settings: vector::HYBRID_SETTINGS, build: vector::build_hybrid },
    #[cfg(feature = "pgvector")]
    SystemEntry { name: "pgvector", description: "vector in PostgreSQL: the extension pgvector, exact or by its index", settings: pgvector::SETTINGS, build: pgvector::build },
    SystemEntry { name: "alias", description: "memories whose name or alias the question names, and no others", settings: alias::SETTINGS, build: alias::build },
    SystemEntry { name: "facts", description: "facts that a model notes, newer ones in place of older ones, found by keywords", settings: facts::SETTINGS, build: facts::build },
    SystemEntry { name: "full-context", description: "the whole bank as context, in order", settings: &[], build: full_context::build },
    SystemEntry { name: "none", description: "control: no memory at all, the floor", settings: &[], build: none::build },
    SystemEntry { name: "random", description: "control: turns by lot, chance level", settings: random::SETTINGS, build: random::build },
    SystemEntry { name: "oracle", description: "control: the gold evidence itself, the ceiling", settings: &[], build: oracle::build },
    SystemEntry { name: "faulty", description: "rehearsal: bm25 that fails or panics by lot, once per question", settings: faulty::SETTINGS, build: faulty::build },
];

/// The entry of a name.
///
/// # Errors
/// [`BuildError::UnknownSystem`], with the nearest name.
pub fn find(name: &str) -> Result<&'static SystemEntry, BuildError> {
    SYSTEMS.iter().find(|entry| entry.name == name).ok_or_else(|| BuildError::UnknownSystem {
        name: redact::text(name).into_owned(),
        nearest: nearest::nearest(name, names()).first().copied(),
        known: names().collect(),
    })
}

/// Whether a built-in system asks a server of its own.
#[must_use]
pub fn needs_server(name: &str) -> bool {
    name == "pgvector"
}

/// Whether a built-in system finds nothing but what a question names.
#[must_use]
pub fn finds_by_names(name: &str) -> bool {
    name == "alias"
}

/// What a name given to `--system` means: a built-in system, or an adapter that is shipped or in a file.
#[derive(Debug, Clone)]
pub enum Named {
    /// A system of this crate.
    BuiltIn(&'static SystemEntry),
    /// A system that an adapter describes.
    Adapter(Box<AdapterSpec>),
}

/// Whether a name is the path of an adapter file.
#[must_use]
pub fn is_file(name: &str) -> bool {
    adapter::code::split(name).is_none() && (name.contains('/') || name.ends_with(".yaml") || name.ends_with(".yml"))
}

/// Finds what `name` means. `mine.py:Mine` and `mine.ts:Mine` are classes of a file; whatever else holds a path separator
/// or ends like a YAML file is a path.
///
/// # Errors
/// Unknown names; files that cannot be read, with line and column.
pub fn named(name: &str) -> Result<Named, BuildError> {
    let shown = redact::text(name);
    let wrong = |reason: String| {
        // whoever takes an address for a file may have given a password with it, and the reason repeats the file
        let reason = if name.contains("://") { redact::words(&reason).into_owned() } else { reason };
        BuildError::Adapter { system: shown.to_string(), reason: reason.into() }
    };
    if let Some(library) = libraries::find(name) {
        let spec = library.read().map_err(wrong)?;
        adapter::check(&spec).map_err(wrong)?;
        return Ok(Named::Adapter(Box::new(spec)));
    }
    if let Some(named) = adapter::code::split(name) {
        let spec = adapter::code::read(&named).map_err(wrong)?;
        if names().any(|known| known == spec.name) {
            let reason = format!(
                "'{0}' is the name of another system: give the class one of its own, {1} = \"my-{0}\"",
                spec.name,
                named.naming()
            );
            return Err(wrong(reason));
        }
        adapter::check(&spec).map_err(wrong)?;
        adapter::literal::check(&spec).map_err(wrong)?;
        return Ok(Named::Adapter(Box::new(spec)));
    }
    if is_file(name) {
        let text = bounded::text(Path::new(name), bounded::BY_HAND).map_err(|error| {
            wrong(match error.kind() {
                ErrorKind::NotFound => "there is no such file; `bench-coord init` writes one to begin with".to_owned(),
                _ => error.to_string(),
            })
        })?;
        let spec = adapter::file::parse(&text).map_err(wrong)?;
        adapter::check(&spec).map_err(wrong)?;
        adapter::literal::check(&spec).map_err(wrong)?;
        return Ok(Named::Adapter(Box::new(spec)));
    }
    if let Some(meant) = adapter::code::meant(name) {
        return Err(wrong(meant));
    }
    match shipped::find(name) {
        Some(spec) => Ok(Named::Adapter(Box::new(spec.map_err(wrong)?))),
        None => find(name).map(Named::BuiltIn),
    }
}

/// What can be known of a system before anything is started or sent.
///
/// # Errors
/// As [`build`].
pub fn capabilities(name: &str, settings: &SystemSettings, context: &BuildContext) -> Result<Capabilities, BuildError> {
    let Some(adapter) = settings.get(adapter::ADAPTER) else {
        return built_in(name, settings, context).map(|system| system.capabilities().clone());
    };
    adapter::capabilities(adapter, settings)
        .map_err(|reason| BuildError::Adapter { system: name.to_owned(), reason: reason.into() })
}

/// Builds a system, when this process may.
///
/// # Errors
/// Unknown names and settings, values that a setting does not take; what an adapter needs and lacks, and what it is not allowed.
pub fn build(
    name: &str,
    settings: &SystemSettings,
    context: &BuildContext,
) -> Result<Arc<dyn MemorySystem>, BuildError> {
    context.policy.check(settings).map_err(BuildError::NotAllowed)?;
    if settings.contains_key(adapter::ADAPTER) {
        let own_code = context.policy.own_code(settings).map(Path::to_owned);
        return adapter::build(settings, &context.adapters, own_code)
            .map_err(|reason| BuildError::Adapter { system: name.to_owned(), reason: reason.into() });
    }
    built_in(name, settings, context)
}

fn built_in(
    name: &str,
    settings: &SystemSettings,
    context: &BuildContext,
) -> Result<Arc<dyn MemorySystem>, BuildError> {
    let entry = find(name)?;
    settings::check(entry.name, entry.settings, settings)?;
    (entry.build)(settings, context)
}

/// Names of all systems, the built-in ones first.
pub fn names() -> impl Iterator<Item = &'static str> {
    let libraries = libraries::LIBRARIES.iter().map(|library| library.name);
    SYSTEMS.iter().map(|entry| entry.name).chain(shipped::SHIPPED.iter().map(|(name, _)| *name)).chain(libraries)
}

/// A row of `systems list`.
#[derive(Debug, Clone)]
pub struct SystemInfo {
    /// What is known of it before it is built.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn error(name: &str, settings: &[(&str, serde_json::Value)]) -> String {
        let settings = settings.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        build(name, &settings, &BuildContext::default()).err().expect("must be refused").to_string()
    }

    #[test]
    fn mistakes_are_named_with_what_to_do() {
        insta::assert_snapshot!(error("bm52", &[]), @"unknown memory system 'bm52' (did you mean 'bm25'?); known systems: bm25, vector, hybrid, pgvector, alias, facts, full-context, none, random, oracle, faulty, astrocyte, astrocyte-started, jeffs-brain, jeffs-brain-go, jeffs-brain-python, jeffs-brain-typescript, hebb-mind, amplihack, precisionmembench, precisionmembench-scoped, mem0, graphiti, hindsight, supermemory, mem0-cloud, zep, letta, memmachine, evermemos, cognee, mcp-memory, langgraph, langmem, llama-index, openai-agents");
        insta::assert_snapshot!(error("full_context", &[]), @"unknown memory system 'full_context' (did you mean 'full-context'?); known systems: bm25, vector, hybrid, pgvector, alias, facts, full-context, none, random, oracle, faulty, astrocyte, astrocyte-started, jeffs-brain, jeffs-brain-go, jeffs-brain-python, jeffs-brain-typescript, hebb-mind, amplihack, precisionmembench, precisionmembench-scoped, mem0, graphiti, hindsight, supermemory, mem0-cloud, zep, letta, memmachine, evermemos, cognee, mcp-memory, langgraph, langmem, llama-index, openai-agents");
        insta::assert_snapshot!(error("elephant", &[]), @"unknown memory system 'elephant'; known systems: bm25, vector, hybrid, pgvector, alias, facts, full-context, none, random, oracle, faulty, astrocyte, astrocyte-started, jeffs-brain, jeffs-brain-go, jeffs-brain-python, jeffs-brain-typescript, hebb-mind, amplihack, precisionmembench, precisionmembench-scoped, mem0, graphiti, hindsight, supermemory, mem0-cloud, zep, letta, memmachine, evermemos, cognee, mcp-memory, langgraph, langmem, llama-index, openai-agents");
        insta::assert_snapshot!(error("bm25", &[("bm25.k3", 1.into())]), @"memory system 'bm25' has no setting 'bm25.k3', its settings: bm25.k1, bm25.b");
        insta::assert_snapshot!(error("none", &[("seed", 1.into())]), @"memory system 'none' has no setting 'seed', it takes none");
        insta::assert_snapshot!(error("bm25", &[("bm25.b", "x".into())]), @r#"setting bm25.b must be a number from 0 to 1, not "x""#);
        let missing = named("./no-such.yaml").expect_err("is no file").to_string();
        insta::assert_snapshot!(missing, @"memory system './no-such.yaml': there is no such file; `bench-coord init` writes one to begin with");
    }

    #[test]
    fn an_address_that_is_taken_for_a_system_is_repeated_without_its_password() {
        for (name, said) in [
            ("http://u:s3cret@mem.example/v1", "'http://***@mem.example/v1'"),
            ("https://u:s3cret@mem.example/mine.py:Mine", "'https://***@mem.example/mine.py:Mine'"),
            ("https://mem.example/mine.yaml?key=s3cret", "'https://mem.example/mine.yaml?key=***'"),
        ] {
            let refused = named(name).expect_err("is no system").to_string();
            assert!(refused.contains(said) && !refused.contains("s3cret"), "{refused}");
        }
        let unknown = find("http://u:s3cret@mem.example").expect_err("is none").to_string();
        assert!(unknown.contains("'http://***@mem.example/'") && !unknown.contains("s3cret"), "{unknown}");
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
                    ("derived", c.derived),
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
        vector 1.1.0: from_items
        hybrid 1.1.0: from_items
        pgvector 1.1.0: 
        alias 1.0.0: from_items
        facts 1.0.0+02b5c0a258be: from_items derived
        full-context 1.0.0: from_items ignores_k
        none 1.0.0: from_items empty_by_design
        random 1.0.0: from_items
        oracle 1.0.0: from_items sees_gold
        faulty 1.0.0: from_items
        ");
    }
}
