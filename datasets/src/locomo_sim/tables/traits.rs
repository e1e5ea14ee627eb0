//! What a speaker is like, and what follows from it by common sense: open-domain questions.

use std::sync::LazyLock;

use serde::Deserialize;

use super::read;

pub(crate) static TABLE: LazyLock<Traits> = LazyLock::new(|| read(include_str!("traits.toml")));

/// Traits, and how they are asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub(crate) struct Traits {
    /// Asks: `{k}` is the probe.
    pub(crate) asks: Vec<&'static str>,
    /// Pairs of traits that one speaker does not have together.
    pub(crate) contradictions: Vec<(&'static str, &'static str)>,
    pub(crate) traits: Vec<Trait>,
}

/// One trait. A speaker has at most one of each, and no two contradict each other.
#[derive(Debug, Deserialize)]
pub(crate) struct Trait {
    pub(crate) id: &'static str,
    pub(crate) says: Vec<&'static str>,
    pub(crate) probes: Vec<Probe>,
}

/// A question that the trait decides.
#[derive(Debug, Deserialize)]
pub(crate) struct Probe {
    pub(crate) yes: bool,
    /// After "Would X".
    pub(crate) ask: &'static str,
    pub(crate) reason: &'static str,
}
