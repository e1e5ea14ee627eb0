//! A conversation in the making: its schedule, who has said what in which turn, and the questions so far.
//!
//! Every fact goes through [`Draft::tell`], which gives it a turn of its own, and is entered into a table of claims. What
//! is not in that table was not said; adversarial questions rest on it.

use std::collections::HashSet;

use bench_proto::dataset::Gold;
use jiff::{
    ToSpan,
    civil::{Date, DateTime},
};

use super::{
    rng::Rng,
    shape::Shape,
    tables::{smalltalk, words::Pool},
};
pub(super) use crate::generator::fill;
use crate::locomo::schema::Category;

/// What a speaker has made known: (speaker, topic, key).
pub(super) type Claim = (usize, &'static str, &'static str);

/// A session that is being filled.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) time: DateTime,
    /// Who has the first turn; the speakers take turns.
    pub(super) first: usize,
    /// Index of the fact that a turn tells.
    pub(super) turns: Vec<Option<usize>>,
    /// Turns that are still free, per speaker, in random order.
    free: [Vec<usize>; 2],
}

/// A fact, told in one turn.
#[derive(Debug)]
pub(super) struct Fact {
    pub(super) scene: usize,
    pub(super) turn: usize,
    pub(super) text: String,
    pub(super) caption: Option<String>,
}

/// A question that is asked.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) category: Category,
    pub(super) text: String,
    pub(super) gold: Gold,
    /// Facts that give the answer; of adversarial questions the facts that mislead.
    pub(super) evidence: Vec<usize>,
    /// Adversarial: a plausible wrong answer, and what was never claimed.
    pub(super) unsaid: Option<(Gold, Claim)>,
}

/// The conversation so far.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) rng: Rng,
    pub(super) names: [String; 2],
    pub(super) scenes: Vec<Scene>,
    pub(super) facts: Vec<Fact>,
    pub(super) claims: HashSet<Claim>,
    pub(super) asked: Vec<Asked>,
    used: HashSet<String>,
    told: [usize; 2],
}

impl Draft {
    /// An empty conversation with its schedule; nothing when there are no names (which the lists rule out).
    pub(super) fn new(mut rng: Rng, shape: &Shape) -> Option<Self> {
        let mut used = HashSet::new();
        let names = [Pool::Person.draw(&mut rng, &mut used)?, Pool::Person.draw(&mut rng, &mut used)?];
        let lengths = lengths(&mut rng, shape);
        let scenes = schedule(&mut rng, &lengths);
        let (facts, claims, asked) = (Vec::new(), HashSet::new(), Vec::new());
        Some(Self { rng, names, scenes, facts, claims, asked, used, told: [0; 2] })
    }

    /// Who is to speak next: by chance, but neither may fall far behind.
    pub(super) fn speaker(&mut self) -> usize {
        let [first, second] = self.told;
        match first.abs_diff(second) {
            0..=8 => self.rng.below(2),
            _ => usize::from(first > second),
        }
    }

    /// A value that this conversation does not have yet.
    pub(super) fn value(&mut self, pool: Pool) -> Option<String> {
        pool.draw(&mut self.rng, &mut self.used)
    }

    /// Enters a claim; false when it is there already.
    pub(super) fn claim(&mut self, claim: Claim) -> bool {
        self.claims.insert(claim)
    }

    /// The day of a session.
    pub(super) fn day(&self, scene: usize) -> Date {
        self.scenes[scene].time.date()
    }

    /// Different sessions, in order, in which this speaker still has a free turn; nothing when there are too few.
    pub(super) fn free_scenes(&mut self, who: usize, count: usize, without: &[usize]) -> Option<Vec<usize>> {
        let is_free = |scene: &usize| !self.scenes[*scene].free[who].is_empty() && !without.contains(scene);
        let mut free: Vec<usize> = (0..self.scenes.len()).filter(is_free).collect();
        self.rng.shuffle(&mut free);
        free.truncate(count);
        free.sort_unstable();
        (free.len() == count).then_some(free)
    }

    /// A session in which this speaker still has a free turn.
    pub(super) fn free_scene(&mut self, who: usize) -> Option<usize> {
        self.free_scenes(who, 1, &[])?.pop()
    }

    /// Tells a fact in a turn of its own.
    pub(super) fn tell(&mut self, who: usize, scene: usize, said: &str, caption: Option<String>) -> Option<usize> {
        let turn = self.scenes[scene].free[who].pop()?;
        let fact = self.facts.len();
        self.scenes[scene].turns[turn] = Some(fact);
        self.told[who] += 1;
        let mut text = String::with_capacity(said.len() + 96);
        if self.rng.chance(40) {
            text.push_str(&fill(self.rng.word(&smalltalk::TABLE.openers), &[("o", &self.names[1 - who])]));
            text.push(' ');
        }
        if self.rng.chance(35) {
            text.push_str(self.rng.word(&smalltalk::TABLE.leads));
            text.push(' ');
        }
        text.push_str(said);
        if self.rng.chance(45) {
            text.push(' ');
            text.push_str(self.rng.word(&smalltalk::TABLE.tails));
        }
        self.facts.push(Fact { scene, turn, text, caption });
        Some(fact)
    }

    /// Fills a question's template: the person asked about, the other one, and further values.
    pub(super) fn ask(&self, template: &str, who: usize, values: &[(&str, &str)]) -> String {
        let mut all = vec![("n", self.names[who].as_str()), ("o", self.names[1 - who].as_str())];
        all.extend_from_slice(values);
        fill(template, &all)
    }

    /// Adds a question.
    pub(super) fn push(&mut self, category: Category, text: String, gold: Gold, evidence: Vec<usize>) {
        self.asked.push(Asked { category, text, gold, evidence, unsaid: None });
    }
}

/// Turns of every session: random, at least 10, with the sum of the shape.
fn lengths(rng: &mut Rng, shape: &Shape) -> Vec<usize> {
    const SHORTEST: usize = 10;
    let mut lengths = vec![shape.turns / shape.sessions; shape.sessions];
    for length in lengths.iter_mut().take(shape.turns % shape.sessions) {
        *length += 1;
    }
    for _ in 0..shape.sessions * 4 {
        let (from, to, turns) = (rng.below(shape.sessions), rng.below(shape.sessions), rng.between(1, 3));
        if lengths[from] >= SHORTEST + turns {
            lengths[from] -= turns;
            lengths[to] += turns;
        }
    }
    lengths
}

/// Sessions at rising days, a few days to two weeks apart.
fn schedule(rng: &mut Rng, lengths: &[usize]) -> Vec<Scene> {
    let start = jiff::civil::date(2019, 1, 1);
    let mut day = start.saturating_add((rng.below(365 * 5) as i64).days());
    let scene = |length: &usize| {
        let time = day.at(rng.between(7, 24) as i8 % 24, rng.below(60) as i8, 0, 0);
        day = day.saturating_add((rng.between(2, 14) as i64).days());
        let first = rng.below(2);
        // greeting and farewell tell nothing
        let mut free = [Vec::new(), Vec::new()];
        for turn in 1..length.saturating_sub(1) {
            free[(first + turn) % 2].push(turn);
        }
        rng.shuffle(&mut free[0]);
        rng.shuffle(&mut free[1]);
        Scene { time, first, turns: vec![None; *length], free }
    };
    lengths.iter().map(scene).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locomo_sim::shape;

    #[test]
    fn schedules_keep_the_shape() {
        for bank in 0..10 {
            let shape = shape::of_bank(bank);
            let mut rng = Rng::new(&["lengths", &bank.to_string()]);
            let scenes = Draft::new(rng.clone(), shape).expect("names").scenes;
            let lengths = lengths(&mut rng, shape);
            assert_eq!((lengths.len(), lengths.iter().sum::<usize>()), (shape.sessions, shape.turns));
            assert!(lengths.iter().all(|length| *length >= 10));
            assert!(scenes.is_sorted_by(|a, b| a.time.date() < b.time.date()));
        }
    }
}
