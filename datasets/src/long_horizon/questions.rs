//! What is asked about a finished dialogue: candidates of every category, and the questions made of those that are chosen.

use std::collections::BTreeSet;

use bench_proto::dataset::{KeywordRubric, MONTHS};

use super::{
    Edition,
    draft::{Draft, Fact, Value},
    shape::CATEGORIES,
};
use crate::generator::{fill, rng::Rng};

/// Wrong patterns of a rubric.
const WRONG: usize = 6;

/// Ways to say that something is gone; any of them is right.
const GONE: &str = "forgotten|forgot|deleted|erased|removed|withdrawn|no longer|no information|not available|unavailable|\
                    not known|unknown|do not know|don't know|do not have|don't have|not mentioned|cannot|can't|gone";

/// Something that can be asked. Numbers are indexes of facts; a series of values is known by its last one.
#[derive(Debug, Clone, Copy)]
enum Ask {
    /// For one fact.
    One(usize),
    /// For one fact of which another value holds for a namesake.
    Namesake(usize, usize),
    /// For one fact of which another value holds for something with a similar name; two ways to say so.
    Twin(usize, bool),
    /// Who made a claim.
    WhoSaid(usize),
    /// For the value that holds now, of several.
    Now(usize),
    /// For the first value and the one that holds now.
    FirstAndNow(usize),
    /// For the value before the last one.
    Before(usize),
    /// For the value that holds now, and nothing else.
    OnlyNow(usize),
    /// How often a value was replaced.
    Changes(usize),
    /// For a fact, the last one, about somebody who is named by one or two others only.
    Through(usize, Option<usize>, usize),
    /// How far a value is from its target.
    Gap(usize, usize),
    /// The sum of two values.
    Sum(usize, usize),
    /// For a fact that was deleted or to be forgotten, and where that happened.
    Gone(usize, usize),
}

/// A question with what is expected.
#[derive(Debug)]
pub(super) struct Posed {
    pub(super) category: usize,
    pub(super) text: String,
    pub(super) rubric: KeywordRubric,
    /// Turns that hold the answer, ascending.
    pub(super) evidence: Vec<usize>,
}

/// All that can be asked of a half, by category.
#[derive(Debug)]
pub(super) struct Candidates {
    half: usize,
    pools: [Vec<Ask>; 16],
}

/// Index of a category.
fn category(name: &str) -> usize {
    CATEGORIES.iter().position(|(known, _)| *known == name).unwrap_or(0)
}

impl Candidates {
    /// What can be asked of a half. The halves of our edition share no fact; those of the compatible one, which has too
    /// few facts for that, ask in other words.
    pub(super) fn new(draft: &Draft, half: usize) -> Self {
        let mut candidates = Self { half, pools: Default::default() };
        for entity in 0..draft.entities.len() {
            if draft.edition == Edition::Compatible || draft.entities[entity].half == half {
                candidates.about(draft, entity);
            }
        }
        let counts = |fact: &usize| {
            draft.edition == Edition::Compatible || draft.entities[draft.facts[*fact].entity].half == half
        };
        for namesake in draft.namesakes.iter().enumerate().filter(|(_, namesake)| counts(&namesake.fact)) {
            candidates.add("distractor_resistance", Ask::Namesake(namesake.1.fact, namesake.0));
        }
        for (fact, turn) in draft.forgotten.iter().filter(|(fact, _)| counts(fact)) {
            candidates.add("forgotten", Ask::Gone(*fact, *turn));
        }
        candidates.sums(draft);
        candidates
    }

    /// Number of candidates of each category.
    pub(super) fn stock(&self) -> [usize; 16] {
        std::array::from_fn(|index| self.pools[index].len())
    }

    fn add(&mut self, name: &str, ask: Ask) {
        self.put(category(name), ask);
    }

    fn put(&mut self, category: usize, ask: Ask) {
        self.pools[category].push(ask);
    }

    /// Everything about one entity.
    fn about(&mut self, draft: &Draft, entity: usize) {
        let kind = draft.entities[entity].kind;
        let of_kind = category(kind.category);
        if kind.id == "topic" {
            for fact in draft.facts_of(entity) {
                self.put(of_kind, Ask::One(*fact));
                self.put(of_kind, Ask::WhoSaid(*fact));
            }
            return;
        }
        let number = |fact: &usize| draft.facts[*fact].attribute.number;
        let mut facts: Vec<usize> = draft.facts_of(entity).to_vec();
        facts.retain(|fact| !draft.forgotten.contains_key(fact));
        facts.sort_by_key(number);
        for facts in facts.chunk_by(|one, other| number(one) == number(other)) {
            let &[.., last] = facts else { continue };
            let attribute = draft.facts[last].attribute;
            if facts.len() > 1 {
                self.add("temporal_evolution", Ask::Now(last));
                self.add("temporal_evolution", Ask::FirstAndNow(last));
                self.add("temporal_trap", Ask::Before(last));
                self.add("temporal_trap", Ask::OnlyNow(last));
                self.add("meta_memory", Ask::Changes(last));
                if kind.category == "incident_tracking" {
                    self.put(of_kind, Ask::Now(last));
                }
            } else if !attribute.asks.is_empty() && kind.category != "temporal_evolution" {
                let twin = draft.entities[entity].twin;
                if twin.is_some_and(|twin| !draft.history(twin, attribute).is_empty()) {
                    self.add("adversarial_distractor", Ask::Twin(last, false));
                    self.add("adversarial_distractor", Ask::Twin(last, true));
                } else {
                    self.put(of_kind, Ask::One(last));
                }
            }
            if !attribute.phrase.is_empty() {
                let name = if kind.id == "person" { "multi_hop_reasoning" } else { "cross_reference" };
                self.through(draft, name, last, None);
            }
        }
        if let &[value, target] = draft.facts_of(entity)
            && kind.id == "metric"
        {
            self.add("numerical_reasoning", Ask::Gap(value, target));
        }
    }

    /// Everything that is known of whoever the last of these facts names; of a lead also what is known of the mentor.
    fn through(&mut self, draft: &Draft, name: &str, first: usize, second: Option<usize>) {
        let Some(person) = draft.facts[second.unwrap_or(first)].value.names else { return };
        if draft.edition == Edition::Own && draft.entities[person].half != self.half {
            return;
        }
        let pool = category(name);
        for fact in draft.facts_of(person) {
            let told = &draft.facts[*fact];
            if draft.forgotten.contains_key(fact) {
                continue;
            }
            if told.value.names.is_none() {
                self.put(pool, Ask::Through(first, second, *fact));
            } else if name == "cross_reference" && second.is_none() {
                self.through(draft, "multi_hop_reasoning", first, Some(*fact));
            }
        }
    }

    /// Sums of two figures with the same unit, of metrics that were told near each other.
    fn sums(&mut self, draft: &Draft) {
        let metrics = draft.of_kind("metric");
        for (index, first) in metrics.iter().enumerate() {
            for second in metrics.iter().skip(index + 1).take(3) {
                let (&[one, _], &[two, _]) = (draft.facts_of(*first), draft.facts_of(*second)) else { continue };
                let half = draft.entities[*first].half;
                let is_half =
                    draft.edition == Edition::Compatible || (half == self.half && draft.entities[*second].half == half);
                if is_half && number(draft, one).1 == number(draft, two).1 {
                    self.add("numerical_reasoning", Ask::Sum(one, two));
                }
            }
        }
    }

    /// The chosen questions, so many of each category, in the order of the categories; no text comes twice.
    pub(super) fn pose(mut self, draft: &Draft, rng: &mut Rng, counts: [usize; 16]) -> Vec<Posed> {
        let values = Values::new(draft);
        let mut texts = BTreeSet::new();
        let mut posed = Vec::new();
        for (category, count) in counts.into_iter().enumerate() {
            let mut pool = std::mem::take(&mut self.pools[category]);
            rng.shuffle(&mut pool);
            let mut left = count;
            for ask in pool {
                if left == 0 {
                    break;
                }
                let question = pose(draft, &values, rng, self.half, category, ask);
                if texts.insert(question.text.clone()) {
                    posed.push(question);
                    left -= 1;
                }
            }
        }
        posed
    }
}

/// The values that were told, by the numbers of their attributes: what wrong answers are taken from.
struct Values<'a> {
    by_attribute: Vec<Vec<&'a Value>>,
}

impl<'a> Values<'a> {
    fn new(draft: &'a Draft) -> Self {
        let numbers = draft.facts.iter().map(|fact| fact.attribute.number + 1).max().unwrap_or(0);
        let mut by_attribute = vec![Vec::new(); numbers];
        for fact in &draft.facts {
            by_attribute[fact.attribute.number].push(&fact.value);
        }
        Self { by_attribute }
    }

    /// What an answer must not have: first these, then values of other things, none of which is in a text.
    fn wrong(&self, draft: &Draft, rng: &mut Rng, fact: usize, first: &[String], not_in: &str) -> Vec<String> {
        let not_in = not_in.to_lowercase();
        let is_in = |pattern: &str| pattern.split('|').any(|way| not_in.contains(&way.to_lowercase()));
        let values = &self.by_attribute[draft.facts[fact].attribute.number];
        let drawn: Vec<&Value> = (0..24.min(values.len() * 4)).map(|_| *rng.pick(values)).collect();
        let mut wrong: Vec<String> = Vec::new();
        for pattern in first.iter().cloned().chain(drawn.into_iter().map(pattern)) {
            if wrong.len() == WRONG {
                break;
            }
            if !wrong.contains(&pattern) && !is_in(&pattern) {
                wrong.push(pattern);
            }
        }
        if wrong.is_empty() {
            // a dialogue so short that it tells the same of nothing else: any other value shows that all was recited
            let found = self.by_attribute.iter().flatten().map(|value| pattern(value));
            wrong.extend(found.filter(|pattern| !is_in(pattern)).take(1));
        }
        wrong
    }
}

/// The value as a pattern: its key when it has one, all of it when it has none or several.
fn pattern(value: &Value) -> String {
    let mut keys = value.keys();
    match (keys.next(), keys.next()) {
        (None, _) => ways_to_write(&value.text),
        (Some(key), None) => ways_to_write(key),
        _ => value.text.clone(),
    }
}

/// What an answer must have of a value, each in all the ways to write it.
fn keywords(value: &Value) -> Vec<String> {
    let keys: Vec<String> = value.keys().map(ways_to_write).collect();
    if keys.is_empty() { vec![ways_to_write(&value.text)] } else { keys }
}

/// The ways to write a key, as alternatives of a keyword: `3 May|May 3`, `410,000|410000|410k`.
fn ways_to_write(key: &str) -> String {
    let bare = ["a ", "an ", "the "].iter().find_map(|article| key.strip_prefix(article)).unwrap_or(key);
    if let Some((day, month)) = bare.split_once(' ')
        && day.parse::<u8>().is_ok()
        && MONTHS.contains(&month)
    {
        return format!("{bare}|{month} {day}");
    }
    if let Some(thousands) = bare.strip_prefix('$').and_then(|money| money.strip_suffix(",000")) {
        return format!("{thousands},000|{thousands}000|{thousands}k");
    }
    bare.trim_start_matches('$').to_owned()
}

/// A figure: its number, and its unit.
fn number(draft: &Draft, fact: usize) -> (i64, &str) {
    let value = draft.facts[fact].value.text.as_str();
    let (number, unit) = value.split_once(' ').unwrap_or((value, ""));
    (number.parse().unwrap_or(0), unit)
}

/// A number of times, as a person says it and as alternatives of a keyword.
fn times(count: usize) -> (String, String) {
    let (said, ways) = match count {
        1 => ("once", "1|one|once"),
        2 => ("twice", "2|two|twice"),
        3 => ("three times", "3|three|thrice"),
        4 => ("four times", "4|four"),
        other => return (format!("{other} times"), other.to_string()),
    };
    (said.to_owned(), ways.to_owned())
}

/// A question before its wrong patterns are drawn. Numbers are indexes of facts.
struct Told {
    text: String,
    required: Vec<String>,
    answer: String,
    /// The fact whose kind of value is mistaken.
    about: usize,
    evidence: Vec<usize>,
    /// What is wrong before anything else.
    wrong: Vec<String>,
}

/// Puts things into words: those of a half.
struct Words<'a> {
    draft: &'a Draft,
    half: usize,
}

impl<'a> Words<'a> {
    fn fact(&self, fact: usize) -> &'a Fact {
        &self.draft.facts[fact]
    }

    fn entity(&self, fact: usize) -> &'a str {
        &self.draft.entities[self.fact(fact).entity].name
    }

    fn value(&self, fact: usize) -> &'a str {
        &self.fact(fact).value.text
    }

    fn keys(&self, fact: usize) -> Vec<String> {
        keywords(&self.fact(fact).value)
    }

    /// `the budget of Project Epidote`.
    fn named(&self, fact: usize) -> String {
        format!("the {} of {}", self.fact(fact).attribute.label, self.entity(fact))
    }

    /// The words of this half.
    fn ways(&self, one: String, other: String) -> String {
        if self.half == 0 { one } else { other }
    }

    fn template(&self, fact: usize, rng: &mut Rng) -> &'a str {
        let asks = &self.fact(fact).attribute.asks;
        // the compatible halves ask for the same in other words
        let way = if self.draft.edition == Edition::Compatible { self.half } else { rng.below(2) };
        asks.get(way).copied().unwrap_or_default()
    }

    fn plain(&self, fact: usize, rng: &mut Rng) -> String {
        fill(self.template(fact, rng), &[("e", self.entity(fact)), ("s", self.fact(fact).source)])
    }

    /// A question for the value of a fact, which alone is evidence.
    fn for_value(&self, text: String, fact: usize) -> Told {
        let (required, answer) = (self.keys(fact), self.value(fact).to_owned());
        Told { text, required, answer, about: fact, evidence: vec![fact], wrong: Vec::new() }
    }

    /// The values of an attribute that were not taken back, of which this is the last.
    fn series(&self, last: usize) -> Vec<usize> {
        let Fact { entity, attribute, .. } = self.fact(last);
        let mut facts = self.draft.history(*entity, attribute);
        facts.retain(|fact| !self.draft.forgotten.contains_key(fact));
        facts
    }

    fn told(&self, rng: &mut Rng, ask: Ask) -> Told {
        match ask {
            Ask::One(one) => self.for_value(self.plain(one, rng), one),
            Ask::Namesake(one, namesake) => self.namesake(rng, one, namesake),
            Ask::Twin(one, second) => self.twin(rng, one, second),
            Ask::WhoSaid(one) => self.who_said(one),
            Ask::Now(last) => self.now(last),
            Ask::FirstAndNow(last) => self.first_and_now(&self.series(last)),
            Ask::Before(last) => self.before(&self.series(last)),
            Ask::OnlyNow(last) => self.only_now(&self.series(last)),
            Ask::Changes(last) => self.changes(&self.series(last)),
            Ask::Through(first, second, one) => self.through(rng, first, second, one),
            Ask::Gap(one, target) => self.gap(one, target),
            Ask::Sum(one, other) => self.sum(one, other),
            Ask::Gone(one, _) => {
                let answer = "That was deleted on request; there is no information about it.".to_owned();
                let told = self.for_value(self.plain(one, rng), one);
                Told { required: vec![GONE.to_owned()], answer, wrong: vec![pattern(&self.fact(one).value)], ..told }
            }
        }
    }

    fn namesake(&self, rng: &mut Rng, one: usize, namesake: usize) -> Told {
        let text = lower(&self.plain(one, rng));
        let text = self.ways(format!("Leaving namesakes aside, {text}"), format!("On our own staff, {text}"));
        let wrong = self.draft.namesakes.get(namesake).map(|other| pattern(&other.value));
        Told { wrong: wrong.into_iter().collect(), ..self.for_value(text, one) }
    }

    fn twin(&self, rng: &mut Rng, one: usize, second: bool) -> Told {
        let twin = self.draft.entities[self.fact(one).entity].twin.unwrap_or_default();
        let of_twin = self.draft.history(twin, self.fact(one).attribute);
        let wrong = of_twin.iter().map(|other| pattern(&self.fact(*other).value)).collect();
        let twin = &self.draft.entities[twin].name;
        let asked = self.plain(one, rng);
        let text = if second {
            format!("{asked} Do not mix it up with {twin}.")
        } else {
            format!("Not {twin} but {}: {}", self.entity(one), lower(&asked))
        };
        Told { wrong, ..self.for_value(text, one) }
    }

    fn who_said(&self, one: usize) -> Told {
        let (said, topic, who) = (self.value(one), self.entity(one), self.fact(one).source);
        let text = self.ways(
            format!("Who says about {topic} that {said}?"),
            format!("Which source has it, on {topic}, that {said}?"),
        );
        let told = self.draft.facts_of(self.fact(one).entity);
        let others = told.iter().map(|other| self.fact(*other).source).filter(|source| *source != who);
        let wrong = others.map(ways_to_write).collect();
        Told { required: vec![ways_to_write(who)], answer: who.to_owned(), wrong, ..self.for_value(text, one) }
    }

    fn now(&self, last: usize) -> Told {
        let named = self.named(last);
        let text = self.ways(format!("What is {named} now?"), format!("What is {named} after all changes?"));
        self.for_value(text, last)
    }

    fn first_and_now(&self, facts: &[usize]) -> Told {
        let (first, last) = ends(facts);
        let named = self.named(last);
        let text = self.ways(
            format!("What was {named} at first, and what is it now?"),
            format!("From what to what did {named} change over time?"),
        );
        Told {
            required: [self.keys(first), self.keys(last)].concat(),
            answer: format!("{} at first, {} now", self.value(first), self.value(last)),
            evidence: facts.to_vec(),
            ..self.for_value(text, last)
        }
    }

    fn before(&self, facts: &[usize]) -> Told {
        let (_, last) = ends(facts);
        let before = facts.iter().rev().nth(1).copied().unwrap_or(last);
        let (named, value) = (self.named(last), self.value(last));
        let text = self.ways(
            format!("What was {named} right before it became {value}?"),
            format!("Which value did {value} replace as {named}?"),
        );
        Told { about: last, evidence: vec![before, last], ..self.for_value(text, before) }
    }

    fn only_now(&self, facts: &[usize]) -> Told {
        let (_, last) = ends(facts);
        let named = self.named(last);
        let text = self.ways(
            format!("Give nothing but the value that holds today: what is {named}?"),
            format!("Without any earlier value, what does {named} amount to today?"),
        );
        let wrong = facts.iter().rev().skip(1).map(|old| pattern(&self.fact(*old).value)).collect();
        Told { wrong, ..self.for_value(text, last) }
    }

    fn changes(&self, facts: &[usize]) -> Told {
        let (_, last) = ends(facts);
        let named = self.named(last);
        let text = self.ways(
            format!("How many times was {named} changed after it was first given?"),
            format!("Count the changes to {named}: how many were there after the first value?"),
        );
        let (answer, ways) = times(facts.len().saturating_sub(1));
        Told { required: vec![ways], answer, evidence: facts.to_vec(), ..self.for_value(text, last) }
    }

    fn through(&self, rng: &mut Rng, first: usize, second: Option<usize>, one: usize) -> Told {
        let links = [first].into_iter().chain(second);
        let link = |name: String, link: usize| fill(self.fact(link).attribute.phrase, &[("e", &name)]);
        let spoken = links.clone().fold(self.entity(first).to_owned(), link);
        let text = fill(self.template(one, rng), &[("e", &spoken)]);
        Told { evidence: links.chain([one]).collect(), ..self.for_value(text, one) }
    }

    fn gap(&self, one: usize, target: usize) -> Told {
        let ((is, unit), (wanted, _)) = (number(self.draft, one), number(self.draft, target));
        let (gap, name) = (is.abs_diff(wanted), self.entity(one));
        let text = self.ways(
            format!("By how many {unit} does {name} miss its target, up or down?"),
            format!("How many {unit} lie between {name} and its target?"),
        );
        let (required, answer) = (vec![gap.to_string()], format!("{gap} {unit}"));
        Told { required, answer, evidence: vec![one, target], ..self.for_value(text, one) }
    }

    fn sum(&self, one: usize, other: usize) -> Told {
        let ((first, unit), (second, _)) = (number(self.draft, one), number(self.draft, other));
        let (sum, name, other_name) = (first + second, self.entity(one), self.entity(other));
        let text = self.ways(
            format!("How many {unit} do {name} and {other_name} add up to?"),
            format!("What is the sum of {name} and {other_name}, in {unit}?"),
        );
        let (required, answer) = (vec![sum.to_string()], format!("{sum} {unit}"));
        Told { required, answer, evidence: vec![one, other], ..self.for_value(text, one) }
    }
}

/// The first and the last of a series.
fn ends(facts: &[usize]) -> (usize, usize) {
    (facts.first().copied().unwrap_or(0), facts.last().copied().unwrap_or(0))
}

fn pose(draft: &Draft, values: &Values<'_>, rng: &mut Rng, half: usize, category: usize, ask: Ask) -> Posed {
    let Told { text, required, answer, about, evidence, wrong } = Words { draft, half }.told(rng, ask);
    let mut turns: Vec<usize> = evidence.iter().map(|fact| draft.facts[*fact].turn).collect();
    if let Ask::Gone(_, turn) = ask {
        turns.push(turn);
    }
    turns.sort_unstable();
    turns.dedup();
    // what the question or the evidence says beside the answer is no sign of a wrong one, except where it is the trap
    let traps = matches!(ask, Ask::OnlyNow(_) | Ask::Gone(..));
    let mut not_in = format!("{text}\n{answer}");
    if !traps {
        turns.iter().for_each(|turn| not_in.push_str(&draft.turns[*turn].0));
    }
    let rubric = KeywordRubric {
        required_keywords: required,
        incorrect_patterns: values.wrong(draft, rng, about, &wrong, &not_in),
        answer: Some(answer),
        ..KeywordRubric::default()
    };
    Posed { category, text, rubric, evidence: turns }
}

/// With a small letter at the beginning, for the middle of a sentence.
fn lower(text: &str) -> String {
    let mut text = text.to_owned();
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    text
}
