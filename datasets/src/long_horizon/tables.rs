//! What the dialogues speak of: kinds of things with their attributes, and the words that fill turns.

use std::{
    collections::BTreeMap,
    sync::{LazyLock, OnceLock},
};

use serde::Deserialize;

use crate::{
    generator::{Part, Template, parts, rng::Rng},
    locomo_sim::tables::{read, words},
};

pub(super) static TABLE: LazyLock<Tables> = LazyLock::new(|| {
    let mut tables: Tables = read(include_str!("tables.toml"));
    tables.number();
    tables
});

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

impl Tables {
    /// Numbers the attributes of all kinds in the order of their ids.
    fn number(&mut self) {
        let mut all: Vec<(&str, &mut Attribute)> = Vec::new();
        for Kind { id, attributes, links, .. } in &mut self.kinds {
            all.extend(attributes.iter_mut().chain(links).map(|attribute| (*id, attribute)));
        }
        all.sort_by_key(|(kind, attribute)| (*kind, attribute.id));
        for (number, (_, attribute)) in all.into_iter().enumerate() {
            attribute.number = number;
        }
    }
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
    pub(super) namesakes: Vec<Template>,
    pub(super) trivia: Vec<Drawn>,
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
    /// From what names of single things are drawn.
    #[serde(default)]
    pub(super) name: Drawn,
    /// Tells facts: `{all}` is what the attributes say.
    pub(super) leads: Vec<Template>,
    /// Replaces a value.
    #[serde(default)]
    pub(super) updates: Vec<Template>,
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
    /// Its values; `@person` is somebody of the staff, `[…]` the part that is enough of an answer.
    #[serde(default)]
    pub(super) value: Drawn,
    /// Among the attributes of all kinds, in the order of kinds and attributes by their ids.
    #[serde(skip)]
    pub(super) number: usize,
    pub(super) says: Template,
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

/// A template that is drawn, with other words each time; taken apart the first time.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "&'static str")]
pub(super) struct Drawn {
    template: &'static str,
    parts: OnceLock<Vec<Draw>>,
}

impl From<&'static str> for Drawn {
    fn from(template: &'static str) -> Self {
        Self::new(template)
    }
}

impl Drawn {
    pub(super) const fn new(template: &'static str) -> Self {
        Self { template, parts: OnceLock::new() }
    }

    /// As the table has it.
    pub(super) fn template(&self) -> &'static str {
        self.template
    }

    /// Draws words of lists, and numbers of ranges.
    pub(super) fn draw(&self, rng: &mut Rng) -> String {
        let mut text = String::with_capacity(32);
        self.draw_to(rng, &mut text);
        text
    }

    /// Draws a phrase and adds it to a text.
    pub(super) fn draw_to(&self, rng: &mut Rng, text: &mut String) {
        for part in self.parts.get_or_init(|| draws(self.template).collect()) {
            match part {
                Draw::Text(part) => text.push_str(part),
                Draw::Word([]) => {}
                Draw::Word(list) => text.push_str(rng.word(list)),
                Draw::Number(low, high) => push_number(text, rng.between(*low, *high)),
            }
        }
    }
}

/// Adds a number to a text, several times as fast as by a format.
pub(super) fn push_number(text: &mut String, number: usize) {
    text.push_str(itoa::Buffer::new().format(number));
}

/// What a part of a template draws.
#[derive(Debug)]
enum Draw {
    Text(&'static str),
    Word(&'static [&'static str]),
    Number(usize, usize),
}

fn draws(template: &'static str) -> impl Iterator<Item = Draw> {
    parts(template).map(|part| match part {
        Part::Text(text) => Draw::Text(text),
        Part::Gap(name) => match name.split_once("..").map(|(low, high)| (low.parse(), high.parse())) {
            Some((Ok(low), Ok(high))) => Draw::Number(low, high),
            _ => Draw::Word(TABLE.words.get(name).map_or_else(|| words::list(name), Vec::as_slice)),
        },
    })
}
