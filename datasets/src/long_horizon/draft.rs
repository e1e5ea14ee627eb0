//! A dialogue in the making: what is spoken of, the facts told so far, and the turns.

use std::{
    collections::{BTreeMap, HashSet},
    hash::BuildHasher,
    ops::Range,
};

use foldhash::fast::FixedState;

use super::{
    Edition,
    shape::Block,
    tables::{Attribute, Kind, TABLE},
};
use crate::generator::rng::Rng;

/// Something that is spoken of.
#[derive(Debug)]
pub(super) struct Entity {
    pub(super) kind: &'static Kind,
    pub(super) name: String,
    /// Half of the questions that it belongs to: of our edition no fact is asked for in both.
    pub(super) half: usize,
    /// Another entity that it is easily mistaken for.
    pub(super) twin: Option<usize>,
    facts: Vec<usize>,
}

/// A value as it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) text: String,
    /// Bytes of the text that are its keys; empty where there are fewer.
    keys: [Range<usize>; 2],
    /// Index of the entity that it names.
    pub(super) names: Option<usize>,
}

impl Value {
    /// Of a text in which brackets mark the keys, two at most.
    pub(super) fn new(mut text: String) -> Self {
        let mut keys = [0..0, 0..0];
        for key in &mut keys {
            let Some(start) = text.find('[') else { break };
            text.remove(start);
            let Some(length) = text[start..].find(']') else { break };
            text.remove(start + length);
            *key = start..start + length;
        }
        Self { text, keys, names: None }
    }

    /// Parts that are enough of an answer; none: it takes all of it.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().filter(|key| !key.is_empty()).map(|key| &self.text[key.clone()])
    }

    /// Of somebody's name.
    pub(super) fn person(name: &str, entity: usize) -> Self {
        Self { names: Some(entity), ..Self::new(name.to_owned()) }
    }
}

/// A fact: a value of an attribute, told in one turn.
#[derive(Debug)]
pub(super) struct Fact {
    pub(super) entity: usize,
    pub(super) attribute: &'static Attribute,
    pub(super) value: Value,
    /// Who says so, where sources differ.
    pub(super) source: &'static str,
    pub(super) turn: usize,
}

/// A turn that misleads: what is said of somebody who shares a name.
#[derive(Debug)]
pub(super) struct Namesake {
    /// The fact about the one of the staff.
    pub(super) fact: usize,
    /// The value that holds for the other one.
    pub(super) value: Value,
}

/// What a turn says before it has a place.
#[derive(Debug, Default)]
pub(super) struct Statement {
    pub(super) text: String,
    /// The facts that it tells, one after the other; their turn is filled in when it is placed.
    pub(super) facts: Range<usize>,
    /// The fact that is to be forgotten.
    pub(super) forgets: Option<usize>,
}

/// Where a text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextPlace {
    /// In a turn of the block of this index.
    Block(usize),
    /// In a note of its own.
    Note,
    /// Nowhere: the note at this index is deleted.
    Deletion(usize),
}

/// The dialogue so far.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) rng: Rng,
    pub(super) edition: Edition,
    pub(super) narrator: &'static str,
    pub(super) entities: Vec<Entity>,
    pub(super) facts: Vec<Fact>,
    pub(super) namesakes: Vec<Namesake>,
    /// Facts that were deleted or asked to be forgotten, with the places where that happens.
    pub(super) forgotten: BTreeMap<usize, usize>,
    /// The turns of the dialogue, and the notes between them.
    pub(super) turns: Vec<(String, TextPlace)>,
    /// Hashes of the texts that were drawn.
    used: HashSet<u64, FixedState>,
    /// Indexes of the entities of each kind.
    by_kind: BTreeMap<&'static str, Vec<usize>>,
}

impl Draft {
    /// An empty one, with room for so many turns.
    pub(super) fn new(mut rng: Rng, edition: Edition, turns: usize) -> Self {
        let narrator = if TABLE.narrators.is_empty() { "" } else { rng.word(&TABLE.narrators) };
        Self {
            rng,
            edition,
            narrator,
            entities: Vec::new(),
            facts: Vec::with_capacity(turns),
            namesakes: Vec::new(),
            forgotten: BTreeMap::new(),
            turns: Vec::with_capacity(turns + turns / 16),
            used: HashSet::with_capacity_and_hasher(turns, FixedState::default()),
            by_kind: BTreeMap::new(),
        }
    }

    /// A text that this dialogue does not have yet, if one comes up in a few draws; else one with a number.
    pub(super) fn fresh(&mut self, mut draw: impl FnMut(&mut Rng) -> String) -> String {
        for _ in 0..64 {
            let text = draw(&mut self.rng);
            if self.is_new(&text) {
                return text;
            }
        }
        for number in 2.. {
            let text = format!("{} {number}", draw(&mut self.rng));
            if self.is_new(&text) {
                return text;
            }
        }
        String::new()
    }

    fn is_new(&mut self, text: &str) -> bool {
        self.used.insert(self.used.hasher().hash_one(text))
    }

    /// Begins to speak of something; every other one of a kind belongs to the other half.
    pub(super) fn begin(&mut self, kind: &'static Kind, name: String) -> usize {
        let half = self.of_kind(kind.id).len() % 2;
        self.entity(kind, name, half)
    }

    /// Begins to speak of something of this half.
    pub(super) fn entity(&mut self, kind: &'static Kind, name: String, half: usize) -> usize {
        let entity = self.entities.len();
        self.entities.push(Entity { kind, name, half, twin: None, facts: Vec::new() });
        self.by_kind.entry(kind.id).or_default().push(entity);
        entity
    }

    /// Indexes of the entities of a kind.
    pub(super) fn of_kind(&self, id: &str) -> &[usize] {
        self.by_kind.get(id).map_or(&[], Vec::as_slice)
    }

    /// The facts about an entity's attribute, in the order in which they were told: its value is the last one's.
    pub(super) fn history(&self, entity: usize, attribute: &Attribute) -> Vec<usize> {
        let facts = self.entities[entity].facts.iter().copied();
        facts.filter(|fact| self.facts[*fact].attribute.number == attribute.number).collect()
    }

    /// All facts about an entity.
    pub(super) fn facts_of(&self, entity: usize) -> &[usize] {
        &self.entities[entity].facts
    }

    /// Adds a fact; its turn is not known yet.
    pub(super) fn fact(
        &mut self,
        entity: usize,
        attribute: &'static Attribute,
        value: Value,
        source: &'static str,
    ) -> usize {
        let fact = self.facts.len();
        self.facts.push(Fact { entity, attribute, value, source, turn: 0 });
        self.entities[entity].facts.push(fact);
        fact
    }

    /// A value for an attribute that none of the facts `without` tells; people are of the entity's half.
    pub(super) fn value(&mut self, entity: usize, attribute: &'static Attribute, without: &[usize]) -> Value {
        if attribute.value.template() == "@person"
            && let Some(person) = self.person(self.entities[entity].half, without)
        {
            return Value::person(&self.entities[person].name, person);
        }
        let mut value = Value::new(attribute.value.draw(&mut self.rng));
        for _ in 0..64 {
            if !self.tells(without, &value.text) {
                break;
            }
            value = Value::new(attribute.value.draw(&mut self.rng));
        }
        value
    }

    /// Whether one of these facts has this value.
    fn tells(&self, facts: &[usize], text: &str) -> bool {
        facts.iter().any(|fact| self.facts[*fact].value.text == text)
    }

    /// One of the staff whom none of the facts `without` tells, of this half if there is one.
    fn person(&mut self, half: usize, without: &[usize]) -> Option<usize> {
        let people = self.of_kind("person").iter().copied();
        let (of_half, others): (Vec<usize>, Vec<usize>) = people
            .filter(|person| !self.tells(without, &self.entities[*person].name))
            .partition(|person| self.entities[*person].half == half);
        let people = if of_half.is_empty() { others } else { of_half };
        (!people.is_empty()).then(|| *self.rng.pick(&people))
    }

    /// Tells several facts about an entity in one turn.
    pub(super) fn introduce(
        &mut self,
        entity: usize,
        attributes: impl IntoIterator<Item = &'static Attribute>,
    ) -> Statement {
        let first = self.facts.len();
        for attribute in attributes {
            let value = self.value(entity, attribute, &[]);
            self.fact(entity, attribute, value, "");
        }
        self.state(entity, first..self.facts.len())
    }

    /// The turn that tells these facts about an entity.
    pub(super) fn state(&mut self, entity: usize, facts: Range<usize>) -> Statement {
        let Entity { kind, name, .. } = &self.entities[entity];
        let told = &self.facts[facts.clone()];
        let source = told.first().map_or("", |fact| fact.source);
        let mut text = String::with_capacity(48 + 40 * facts.len());
        if !kind.leads.is_empty() {
            self.rng.pick(&kind.leads).fill_with(&mut text, |gap, text| match gap {
                "e" => text.push_str(name),
                "s" => text.push_str(source),
                _ => say(told, text),
            });
        }
        Statement { text: capital(text), facts, forgets: None }
    }

    /// Replaces the value of an attribute.
    pub(super) fn update(&mut self, entity: usize, attribute: &'static Attribute) -> Statement {
        let before = self.history(entity, attribute);
        let value = self.value(entity, attribute, &before);
        let old = before.last().map_or("", |fact| &self.facts[*fact].value.text);
        let Entity { kind, name, .. } = &self.entities[entity];
        let mut text = String::with_capacity(128);
        if !kind.updates.is_empty() {
            self.rng.pick(&kind.updates).fill_with(&mut text, |gap, text| {
                text.push_str(match gap {
                    "e" => name,
                    "l" => attribute.label,
                    "v" => &value.text,
                    _ => old,
                });
            });
        }
        let fact = self.fact(entity, attribute, value, "");
        Statement { text: capital(text), facts: fact..fact + 1, forgets: None }
    }

    /// Puts the statements of a block at even distances, and something that says nothing between them.
    pub(super) fn place(&mut self, block: Block, statements: Vec<Statement>) {
        let told = statements.len().max(1);
        let mut statements = statements.into_iter().enumerate().peekable();
        for index in 0..block.turns {
            let turn = self.turns.len();
            let text = match statements.next_if(|(number, _)| number * block.turns / told <= index) {
                Some((_, statement)) => {
                    for fact in statement.facts {
                        self.facts[fact].turn = turn;
                    }
                    if let Some(fact) = statement.forgets {
                        self.forgotten.insert(fact, turn);
                    }
                    statement.text
                }
                None => self.fresh(filler),
            };
            self.turns.push((text, TextPlace::Block(block.index)));
        }
    }
}

impl Draft {
    /// The block that a place belongs to; notes belong to the one before them.
    pub(super) fn block_of(&self, turn: usize) -> Option<usize> {
        self.turns.get(..=turn)?.iter().rev().find_map(|(_, place)| match place {
            TextPlace::Block(block) => Some(*block),
            TextPlace::Note | TextPlace::Deletion(_) => None,
        })
    }

    /// Keeps a note.
    pub(super) fn note(&mut self, statement: Statement) {
        for fact in statement.facts {
            self.facts[fact].turn = self.turns.len();
        }
        self.turns.push((statement.text, TextPlace::Note));
    }

    /// Deletes the note that tells a fact.
    pub(super) fn delete(&mut self, fact: usize) {
        self.forgotten.insert(fact, self.turns.len());
        self.turns.push((String::new(), TextPlace::Deletion(self.facts[fact].turn)));
    }
}

/// A turn that says nothing.
fn filler(rng: &mut Rng) -> String {
    let table = &TABLE.filler;
    let [opener, middle, closer] =
        [&table.openers, &table.middles, &table.closers].map(|list| if list.is_empty() { "" } else { rng.word(list) });
    [opener, " ", middle, closer].concat()
}

/// Adds what facts say of their entity, as a list.
fn say(facts: &[Fact], text: &mut String) {
    for (index, fact) in facts.iter().enumerate() {
        text.push_str(match index {
            0 => "",
            last if last + 1 == facts.len() => " and ",
            _ => ", ",
        });
        let Fact { attribute, value, .. } = fact;
        attribute.says.fill_with(text, |_, text| text.push_str(&value.text));
    }
}

/// With a capital at the beginning.
fn capital(mut text: String) -> String {
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    text
}
