//! What the dialogues speak of: kinds of things with their attributes, and the words that fill turns.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;

use crate::{
    generator::{fill_with, rng::Rng},
    locomo_sim::tables::{read, words},
};

pub(super) static TABLE: LazyLock<Tables> = LazyLock::new(|| read(include_str!("tables.toml")));

/// All kinds and words.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub(super) struct Tables {
    pub(super) narrators: Vec<&'static str>,
    pub(super) filler: Filler,
    pub(super) distractors: Distractors,
    pub(super) words: BTreeMap<&'static str, Vec<&'static str>>,
    pub(super) measures: Vec<Measure>,
    pub(super) kinds: Vec<Kind>,
}

/// Turns that say nothing, in three parts.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub(super) struct Filler {
    pub(super) openers: Vec<&'static str>,
    pub(super) middles: Vec<&'static str>,
    pub(super) closers: Vec<&'static str>,
}

/// Turns that mislead: `{says}` is said of somebody who shares the name `{e}`.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub(super) struct Distractors {
    pub(super) namesakes: Vec<&'static str>,
    pub(super) trivia: Vec<&'static str>,
}

/// What a metric measures: whole numbers from `low` to `high`.
#[derive(Debug, Deserialize)]
pub(super) struct Measure {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) low: usize,
    pub(super) high: usize,
}

/// A kind of thing that is spoken of.
#[derive(Debug, Deserialize)]
pub(super) struct Kind {
    pub(super) id: &'static str,
    /// Category of questions for one of its facts.
    pub(super) category: &'static str,
    /// Tells facts: `{all}` is what the attributes say.
    pub(super) leads: Vec<&'static str>,
    /// Replaces a value.
    #[serde(default)]
    pub(super) updates: Vec<&'static str>,
    pub(super) attributes: Vec<Attribute>,
    /// Attributes whose value is another one of the kind, told one by one.
    #[serde(default)]
    pub(super) links: Vec<Attribute>,
}

/// Something that is known of a thing.
#[derive(Debug, Deserialize)]
pub(super) struct Attribute {
    pub(super) id: &'static str,
    pub(super) label: &'static str,
    /// Template of its values; `@person` is somebody of the staff, `[…]` the part that is enough of an answer.
    #[serde(default)]
    pub(super) value: &'static str,
    pub(super) says: &'static str,
    /// Two ways to ask for it.
    #[serde(default)]
    pub(super) asks: Vec<&'static str>,
    /// Whether it is replaced later.
    #[serde(default)]
    pub(super) changes: bool,
    /// How a question speaks of whoever is the value: `{e}'s lead`.
    #[serde(default)]
    pub(super) phrase: &'static str,
}

/// A kind by its id.
pub(super) fn kind(id: &str) -> Option<&'static Kind> {
    TABLE.kinds.iter().find(|kind| kind.id == id)
}

/// Draws what a template says: words of lists, and numbers of ranges.
pub(super) fn draw(rng: &mut Rng, template: &str) -> String {
    fill_with(template, |name, text| {
        if let Some((low, high)) = name.split_once("..") {
            if let (Ok(low), Ok(high)) = (low.parse(), high.parse()) {
                text.push_str(&rng.between(low, high).to_string());
            }
            return;
        }
        let list = TABLE.words.get(name).map_or_else(|| words::list(name), Vec::as_slice);
        if !list.is_empty() {
            text.push_str(rng.word(list));
        }
    })
}
