//! Turns that say nothing a question asks for, and the words around facts. No dates, no names but the speakers', no facts.

use std::sync::LazyLock;

use serde::Deserialize;

use super::read;

pub(crate) static TABLE: LazyLock<Smalltalk> = LazyLock::new(|| read(include_str!("smalltalk.toml")));

/// Texts by where they stand.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub(crate) struct Smalltalk {
    /// Opens a session; `{o}` is the other speaker.
    pub(crate) greetings: Vec<&'static str>,
    /// Closes a session.
    pub(crate) farewells: Vec<&'static str>,
    /// First part of a reaction.
    pub(crate) openers: Vec<&'static str>,
    /// Middle part.
    pub(crate) middles: Vec<&'static str>,
    /// Last part.
    pub(crate) closers: Vec<&'static str>,
    /// Before a fact; many facts come without.
    pub(crate) leads: Vec<&'static str>,
    /// After a fact; many facts come without.
    pub(crate) tails: Vec<&'static str>,
    /// Shared images that show nothing a question asks for: `{v}` a light, `{k}` a thing.
    pub(crate) captions: Vec<&'static str>,
    /// Lights of a caption.
    pub(crate) lights: Vec<&'static str>,
    /// Things on a caption.
    pub(crate) things: Vec<&'static str>,
}
