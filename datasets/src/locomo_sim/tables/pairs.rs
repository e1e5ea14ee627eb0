//! Facts that only two turns of different sessions give together: who somebody is and what they do; what was before a change.

use std::sync::LazyLock;

use serde::Deserialize;

use super::{read, words::Pool};

pub(crate) static TABLE: LazyLock<Pairs> = LazyLock::new(|| read(include_str!("pairs.toml")));

/// What two turns give together.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub(crate) struct Pairs {
    /// Relations that introduce a person.
    pub(crate) relations: Vec<&'static str>,
    /// Introduces a person: `{k}` relation, `{v}` name.
    pub(crate) introductions: Vec<&'static str>,
    pub(crate) bridges: Vec<Bridge>,
    pub(crate) changes: Vec<Change>,
}

/// Something that is said of a third person by name only; who that person is was said elsewhere.
#[derive(Debug, Deserialize)]
pub(crate) struct Bridge {
    pub(crate) id: &'static str,
    pub(crate) value: Pool,
    /// `{k}` is the person's name.
    pub(crate) says: Vec<&'static str>,
    /// `{k}` is the relation.
    pub(crate) asks: Vec<&'static str>,
}

/// Something that changes once.
#[derive(Debug, Deserialize)]
pub(crate) struct Change {
    pub(crate) id: &'static str,
    pub(crate) value: Pool,
    pub(crate) before: Vec<&'static str>,
    /// `{v}` is the new value; the old one is not named.
    pub(crate) after: Vec<&'static str>,
    /// Asks for the old value; `{k}` is the new one, `{ak}` with its article.
    pub(crate) asks_before: Vec<&'static str>,
    /// Asks for the new value, in words that the change alone answers.
    pub(crate) asks_after: Vec<&'static str>,
}
