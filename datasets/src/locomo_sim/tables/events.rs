//! What happened or will happen at a time: temporal questions.

use std::sync::LazyLock;

use serde::Deserialize;

use super::read;

pub(crate) static TABLE: LazyLock<Events> = LazyLock::new(|| read(include_str!("events.toml")));

/// Events and states, and what is said of them.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub(crate) struct Events {
    /// Says that it happened: `{k}` what, `{v}` when, `{cv}` the same with a capital.
    pub(crate) past: Vec<&'static str>,
    /// Says that it is planned.
    pub(crate) planned: Vec<&'static str>,
    /// Says for how long: `{k}` what, `{v}` how long.
    pub(crate) ongoing: Vec<&'static str>,
    pub(crate) events: Vec<Event>,
    pub(crate) states: Vec<State>,
}

/// One thing that happens to a speaker at most once.
#[derive(Debug, Deserialize)]
pub(crate) struct Event {
    pub(crate) id: &'static str,
    /// After "I": `took my driving test`.
    pub(crate) past: &'static str,
    /// After "I'm", as a plan; empty when nobody plans it.
    pub(crate) plan: &'static str,
    /// After "When did X", in other words: `sit the driving exam`.
    pub(crate) ask: &'static str,
    /// The same as a noun: `the driving exam`.
    pub(crate) noun: &'static str,
}

/// Something that has been going on for a while.
#[derive(Debug, Deserialize)]
pub(crate) struct State {
    pub(crate) id: &'static str,
    /// After "I've been": `keeping bees`.
    pub(crate) doing: &'static str,
    /// After "Since when has X been", in other words.
    pub(crate) ask: &'static str,
}
