//! Facts that are said once, in one turn: single-hop questions, and the material of adversarial ones.
//!
//! In all tables: `{v}` value, `{av}` value with its article, `{k}` key, `{n}` who is asked about, `{o}` the other speaker.
//! Two topics never ask for the same thing, so that a question about what was not said has no answer.

use std::sync::LazyLock;

use serde::Deserialize;

use super::{read, words::Pool};

pub(crate) static TABLE: LazyLock<Singles> = LazyLock::new(|| read(include_str!("singles.toml")));

/// All kinds.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub(crate) struct Singles {
    pub(crate) singles: Vec<Single>,
}

/// One kind of fact.
#[derive(Debug, Deserialize)]
pub(crate) struct Single {
    pub(crate) id: &'static str,
    /// What tells facts of this kind apart, `as said=as asked` where the words differ; one empty key when there is one
    /// fact of the kind per speaker.
    pub(crate) keys: Vec<&'static str>,
    pub(crate) value: Pool,
    pub(crate) says: Vec<&'static str>,
    pub(crate) asks: Vec<&'static str>,
    /// When set, the value is only on the shared image.
    pub(crate) caption: Option<&'static str>,
}

/// The key as it is said and as it is asked.
pub(crate) fn key_forms(key: &'static str) -> (&'static str, &'static str) {
    key.split_once('=').unwrap_or((key, key))
}
