//! What people of this dataset may know, read from `lives.toml`. Whoever changes a word there raises the generator's version.

use std::sync::LazyLock;

use serde::Deserialize;

/// The table.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Lives {
    pub(super) persons: Vec<String>,
    pub(super) days: Vec<String>,
    pub(super) places: Vec<String>,
    /// Names that mean something else in every scope.
    pub(super) namesakes: Vec<String>,
    pub(super) scopes: Vec<Scope>,
}

/// What belongs to one side of a life.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scope {
    pub(super) name: String,
    pub(super) things: Vec<Thing>,
    pub(super) chains: Vec<Chain>,
    pub(super) counters: Vec<Thing>,
    pub(super) question: Thing,
    pub(super) relation: Thing,
    pub(super) namesake: Thing,
}

/// Something with names.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Thing {
    pub(super) name: String,
    #[serde(default)]
    pub(super) aliases: Vec<String>,
    pub(super) says: String,
    /// A question about it that uses none of its names.
    #[serde(default)]
    pub(super) asks: String,
}

/// Something whose value changes.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Chain {
    pub(super) name: String,
    pub(super) says: String,
    /// Name and aliases of each value; the last one holds.
    pub(super) values: Vec<Vec<String>>,
}

/// Parts of every scope, which the plot counts on.
pub(super) const THINGS: usize = 5;
pub(super) const VALUES: usize = 3;

/// The table; empty when its text is broken, which the tests of this folder rule out.
pub(super) static LIVES: LazyLock<Lives> =
    LazyLock::new(|| toml::from_str(include_str!("lives.toml")).unwrap_or_default());
