//! Things of one kind that a speaker mentions one by one over several sessions: multi-hop questions.

use std::sync::LazyLock;

use serde::Deserialize;

use super::{read, words::Pool};

pub(crate) static TABLE: LazyLock<Sets> = LazyLock::new(|| read(include_str!("sets.toml")));

/// All kinds.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub(crate) struct Sets {
    pub(crate) sets: Vec<Set>,
}

/// One kind of list.
#[derive(Debug, Deserialize)]
pub(crate) struct Set {
    pub(crate) id: &'static str,
    /// What the things are, in the plural: `cities visited`.
    pub(crate) noun: &'static str,
    pub(crate) value: Pool,
    pub(crate) says: Vec<&'static str>,
    /// Asks for the whole list.
    pub(crate) asks: Vec<&'static str>,
    /// Asks for their number.
    pub(crate) count: &'static str,
    /// Asks for what the two speakers have in common.
    pub(crate) both: &'static str,
}
