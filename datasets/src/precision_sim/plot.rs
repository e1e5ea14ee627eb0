//! The questions of a bank: cases of every category, and a session in which beliefs change between turns.

use super::{
    lives::{Chain, Scope, Thing},
    world::{User, World, id, value_id},
};
use crate::{
    generator::rng::Rng,
    precisionmembench::{
        harness::{Asking, Harness},
        schema::{Budget, Expect, ExpectList, ExpectNoise, ExpectSet},
    },
};

/// How something is asked for by name. None of these words is part of a name.
const BY_NAME: [&str; 6] = [
    "What do you know about {x}?",
    "Remind me: {x}.",
    "{x} – what was agreed?",
    "I have to deal with {x} again. Anything that I should keep in mind?",
    "before I forget it, {x}?",
    "Sorry, it was a long week, everybody was ill at once and I lost track of half of what we talked about, but there was \
     something about {x}, and I would rather know it now than tomorrow.",
];
/// How the value of something is asked for by an earlier one.
const BY_OLD_VALUE: [&str; 3] = [
    "Is {old} still our {chain}?",
    "I wrote down {old} as the {chain}. Is that up to date?",
    "{chain}: do we stay with {old}?",
];
/// How something is proposed that a habit rules out.
const PROPOSED: [&str; 3] =
    ["Would {x} be an option for us?", "Somebody suggested {x} to me. What do I say?", "Let us get {x} after all?"];
/// What nobody has spoken of.
const UNKNOWN: [&str; 6] = [
    "How is an old penny graded?",
    "Which moons does Saturn have?",
    "What is a fair price for a used accordion?",
    "How do I fold a paper crane?",
    "When was the first marathon run?",
    "Why do cats purr?",
];
/// All phrases of questions, for the test that none holds a name.
#[cfg(test)]
pub(super) const PHRASES: [&[&str]; 4] = [&BY_NAME, &BY_OLD_VALUE, &PROPOSED, &UNKNOWN];
/// Names that something is given in the session.
const NICKNAMES: [&str; 4] = ["Old Faithful", "Bertha", "the workhorse", "Methuselah"];
/// A user of whom nothing is known.
const STRANGER: &str = "somebody-new";

/// The category in which finding nothing is right.
const NOTHING: &str = "nothing-known";

/// Names of the categories, with the number of their questions in a bank.
pub(super) const CATEGORIES: [(&str, usize); 13] = [
    ("alias", 3),
    ("misspelling", 3),
    ("description", 3),
    ("scope", 3),
    ("isolation", 2),
    ("supersession", 3),
    ("counter-signal", 2),
    ("relation", 2),
    ("ranking", 2),
    ("budget", 2),
    ("type-routing", 2),
    (NOTHING, 2),
    ("session", 9),
];

/// Writes all questions of a bank.
pub(super) fn write(world: &mut World, bank_id: &str, harness: &mut Harness<'_>) -> Result<(), String> {
    let mut plot = Plot { bank_id, harness, category: "", number: 0, drift: None };
    for (category, count) in CATEGORIES {
        (plot.category, plot.number) = (category, 0);
        if category == "session" {
            plot.session(world)?;
            continue;
        }
        for number in 0..count {
            // every user in turn, and of theirs either scope
            let at = number % 3;
            let side = world.rng.below(2);
            plot.case(world, number, at, world.users[at].scopes[side]);
        }
    }
    Ok(())
}

struct Plot<'a, 'b> {
    bank_id: &'a str,
    harness: &'a mut Harness<'b>,
    category: &'static str,
    /// Questions of the category so far.
    number: usize,
    /// What the session has drifted through; none: it has not begun.
    drift: Option<Vec<String>>,
}

impl Plot<'_, '_> {
    fn case(&mut self, world: &mut World, number: usize, at: usize, scope: &'static Scope) {
        let things = two(&mut world.rng);
        match self.category {
            "alias" | "misspelling" | "description" => self.of_one(world, at, scope, things),
            "scope" => self.of_scope(world, number, at),
            "isolation" => self.of_isolation(world, number, things),
            "supersession" | "counter-signal" | "relation" => self.of_ties(world, number, at, scope),
            "ranking" | "budget" | "type-routing" => self.of_room(world, at, scope, things),
            _ => self.of_nothing(world, number, at, scope, things),
        }
    }

    /// One thing, called by another name.
    fn of_one(&mut self, world: &mut World, at: usize, scope: &Scope, [one, _]: [usize; 2]) {
        let (rng, user, thing) = (&mut world.rng, &world.users[at], &scope.things[one]);
        let query = match self.category {
            "alias" => by_alias(rng, thing),
            "misspelling" => {
                let wrong = misspelled(rng, thing);
                by_name(rng, &wrong)
            }
            _ => thing.asks.clone(),
        };
        self.ask(user, &[scope], &query, &exactly(&[id(user, scope, &thing.name)]));
    }

    /// A name that means something else in the next scope; at last what it means in both.
    fn of_scope(&mut self, world: &mut World, number: usize, at: usize) {
        let World { rng, users, namesake } = world;
        let user = &users[at];
        let query = by_name(rng, namesake);
        let [here, there] = user.scopes;
        let names = [here, there].map(|scope| id(user, scope, &scope.namesake.name));
        if number == 2 {
            return self.ask(user, &[here, there], &query, &exactly(&names));
        }
        let mut expect = exactly(&names[number..=number]);
        expect.relevant_beliefs.must_exclude = vec![names[1 - number].clone()];
        self.ask(user, &[user.scopes[number]], &query, &expect);
    }

    /// What one of two users knows of a thing in the scope that they share.
    fn of_isolation(&mut self, world: &mut World, number: usize, [one, _]: [usize; 2]) {
        let World { rng, users, .. } = world;
        let shared = users[0].scopes[0];
        let (user, stranger, thing) = (&users[number], &users[1 - number], &shared.things[one]);
        let mut expect = exactly(&[id(user, shared, &thing.name)]);
        expect.relevant_beliefs.must_exclude = vec![id(stranger, shared, &thing.name)];
        expect.persona_prelude.must_not_contain = vec![stranger.prelude.clone()];
        self.ask(user, &[shared], &by_alias(rng, thing), &expect);
    }

    /// What is found by what it took the place of, by what it rules out, by what it belongs to.
    fn of_ties(&mut self, world: &mut World, number: usize, at: usize, scope: &Scope) {
        let (rng, user) = (&mut world.rng, &world.users[at]);
        let own = |thing: &Thing| id(user, scope, &thing.name);
        match self.category {
            "supersession" => {
                let chain = &scope.chains[0];
                let mut expect = exactly(&[value_id(user, scope, chain, 2)]);
                expect.relevant_beliefs.must_exclude =
                    (0..2).map(|value| value_id(user, scope, chain, value)).collect();
                let query = by_old_value(rng, chain, number % 2);
                self.ask(user, &[scope], &query, &expect);
            }
            "counter-signal" => {
                let habit = &scope.counters[number];
                self.ask(user, &[scope], &proposed(rng, habit), &exactly(&[own(habit)]));
            }
            _ => {
                let tied = [&scope.relation, &scope.things[0], &scope.things[1]].map(own);
                let query = by_name(rng, &scope.relation.aliases[number]);
                self.ask(user, &[scope], &query, &exactly(&tied));
            }
        }
    }

    /// Several things that compete for a place: by their order, by their number, by their kind.
    fn of_room(&mut self, world: &mut World, at: usize, scope: &Scope, [one, other]: [usize; 2]) {
        let (rng, user) = (&mut world.rng, &world.users[at]);
        let (thing, second) = (&scope.things[one], &scope.things[other]);
        let own = |thing: &Thing| id(user, scope, &thing.name);
        match self.category {
            "ranking" => {
                let expect = Expect {
                    relevant_beliefs: ExpectList {
                        must_include: vec![own(thing), own(second)],
                        ordered_before: vec![(own(thing), own(second))],
                        max_count: Some(2),
                        ..ExpectList::default()
                    },
                    ..Expect::default()
                };
                self.ask(user, &[scope], &ranked(thing, second), &expect);
            }
            "budget" => {
                // one fact is pinned in every scope, so one place is left
                let budget = Budget { max_beliefs: 2, ..Budget::default() };
                let mut expect = exactly(&[own(thing)]);
                expect.pinned_facts.must_include = vec![own(&scope.things[4])];
                self.put(user.name, &[scope], &ranked(thing, second), budget, &expect);
            }
            _ => {
                let mut expect = exactly(&[own(thing)]);
                expect.open_questions.must_include = vec![own(&scope.question)];
                let names = [&scope.question, thing].map(|thing| rng.pick(&thing.aliases).as_str());
                let query = format!("{}: where do we stand?", names.join(" and "));
                self.ask(user, &[scope], &query, &expect);
            }
        }
    }

    /// What nobody has spoken of; then what somebody asks of whom nothing is known.
    fn of_nothing(&mut self, world: &mut World, number: usize, at: usize, scope: &Scope, [one, _]: [usize; 2]) {
        let (rng, user) = (&mut world.rng, &world.users[at]);
        let mut expect = exactly(&[]);
        if number == 0 {
            expect.persona_prelude.contains = vec![user.prelude.clone()];
            return self.ask(user, &[scope], rng.word(&UNKNOWN), &expect);
        }
        expect.persona_prelude.is_null = true;
        let query = by_name(rng, &scope.things[one].name);
        self.put(STRANGER, &[scope], &query, Budget::default(), &expect);
    }

    /// A session of the first user: it sets out with one thing, drifts through others, while what is known changes, and comes
    /// back to the first by a name that it was given on the way.
    fn session(&mut self, world: &mut World) -> Result<(), String> {
        let scope = world.users[0].scopes[0];
        let chain = &scope.chains[1];
        let mut order = [0, 1, 2, 3];
        world.rng.shuffle(&mut order);
        let [first, a, b, c] = order.map(|at| &scope.things[at]);
        let nickname = *world.rng.pick(&NICKNAMES);
        let newest = world.value(0, scope, chain, 2);
        let decision = world.decision(0, scope);
        let World { rng, users, .. } = world;
        let user = &users[0];
        let own = |thing: &Thing| id(user, scope, &thing.name);
        let at_first = own(first);
        let drifted = [own(a), own(b), own(&scope.counters[0]), newest.id.clone(), decision.id.clone(), own(c)];
        let question = own(&scope.question);
        self.drift = Some(Vec::new());

        self.turn(user, scope, &by_name(rng, &first.aliases[0]), &exactly(std::slice::from_ref(&at_first)));
        self.turn(user, scope, &by_name(rng, &a.aliases[1]), &exactly(&drifted[..1]));
        self.turn(user, scope, &by_name(rng, &b.aliases[0]), &exactly(&drifted[1..2]));
        let mut expect = exactly(&drifted[2..3]);
        expect.open_questions = ExpectSet { must_include: vec![question.clone()], ..ExpectSet::default() };
        self.turn(user, scope, &proposed(rng, &scope.counters[0]), &expect);
        self.harness.supersede(&value_id(user, scope, chain, 1), newest)?;
        self.turn(user, scope, &by_old_value(rng, chain, 1), &exactly(&drifted[3..4]));
        self.harness.withdraw(&question)?;
        self.harness.create(decision)?;
        let mut expect = exactly(&drifted[4..5]);
        expect.open_questions = ExpectSet { must_exclude: vec![question], ..ExpectSet::default() };
        self.turn(user, scope, &by_name(rng, &scope.question.aliases[0]), &expect);
        self.turn(user, scope, &c.asks, &exactly(&drifted[5..]));
        self.harness.enrich(&at_first, &[nickname.to_owned()])?;

        let mut back = exactly(&[at_first]);
        back.noise_check = ExpectNoise { must_not_surface: drifted.to_vec() };
        self.turn(user, scope, &by_name(rng, nickname), &back);
        self.turn(user, scope, &format!("Back to where we began. {}", first.asks), &back);
        Ok(())
    }

    fn turn(&mut self, user: &User, scope: &Scope, query: &str, expect: &Expect) {
        let expected = expect.relevant_beliefs.should_only_include.clone().unwrap_or_default();
        self.put(user.name, &[scope], query, Budget::default(), expect);
        // what was asked once is of another topic from then on
        if let Some(drift) = &mut self.drift {
            drift.extend(expected.into_iter().filter(|name| !drift.contains(name)).collect::<Vec<_>>());
        }
    }

    fn ask(&mut self, user: &User, scopes: &[&Scope], query: &str, expect: &Expect) {
        self.put(user.name, scopes, query, Budget::default(), expect);
    }

    fn put(&mut self, user: &str, scopes: &[&Scope], query: &str, budget: Budget, expect: &Expect) {
        self.number += 1;
        let scopes: Vec<String> = scopes.iter().map(|scope| scope.name.clone()).collect();
        let expected: Vec<&String> = expect.relevant_beliefs.should_only_include.iter().flatten().collect();
        let drift =
            self.drift.as_ref().map(|drift| drift.iter().filter(|name| !expected.contains(name)).cloned().collect());
        self.harness.ask(Asking {
            question_id: format!("{}:{}-{}", self.bank_id, self.category, self.number),
            category: self.category.to_owned(),
            user,
            scopes: &scopes,
            query,
            budget,
            expect,
            structural: self.category == NOTHING,
            turn: drift.map(|drift| ("turn", drift)),
        });
    }
}

fn exactly(names: &[String]) -> Expect {
    let relevant_beliefs = ExpectList { should_only_include: Some(names.to_vec()), ..ExpectList::default() };
    Expect { relevant_beliefs, ..Expect::default() }
}

/// Two different things of those that are not pinned.
fn two(rng: &mut Rng) -> [usize; 2] {
    let one = rng.below(4);
    [one, (one + rng.between(1, 3)) % 4]
}

fn by_name(rng: &mut Rng, name: &str) -> String {
    rng.pick(&BY_NAME).replace("{x}", name)
}

fn by_alias(rng: &mut Rng, thing: &Thing) -> String {
    let alias = rng.pick(&thing.aliases);
    by_name(rng, alias)
}

/// Proposes what a habit rules out.
fn proposed(rng: &mut Rng, habit: &Thing) -> String {
    let alias = rng.pick(&habit.aliases);
    rng.pick(&PROPOSED).replace("{x}", alias)
}

fn by_old_value(rng: &mut Rng, chain: &Chain, value: usize) -> String {
    let old = chain.values[value].last().map_or("", String::as_str);
    rng.pick(&BY_OLD_VALUE).replace("{old}", old).replace("{chain}", &chain.name)
}

/// Names the first thing three times and the second once, so that whatever matches names puts the first one first.
fn ranked(first: &Thing, second: &Thing) -> String {
    let [one, other] = [0, 1].map(|at| first.aliases[at].as_str());
    format!(
        "First of all the {}, also called {one} or {other}; then, if there is room, the {}.",
        first.name, second.name
    )
}

/// An alias with one slip of the pen: two letters swapped, one left out or one doubled, never among the first two of its word.
fn misspelled(rng: &mut Rng, thing: &Thing) -> String {
    let names = [&thing.name].into_iter().chain(&thing.aliases);
    let words = names.flat_map(|name| name.split(' ').map(move |word| (name, word)));
    let long: Vec<(&String, &str)> = words.filter(|(_, word)| word.len() >= 5 && word.is_ascii()).collect();
    let Some((name, word)) = long.get(rng.below(long.len())).copied() else { return thing.name.clone() };
    let mut letters: Vec<char> = word.chars().collect();
    let at = rng.between(2, letters.len() - 2);
    match rng.below(3) {
        0 if letters[at] != letters[at + 1] => letters.swap(at, at + 1),
        1 => letters.insert(at, letters[at]),
        _ => drop(letters.remove(at)),
    }
    name.replacen(word, &letters.into_iter().collect::<String>(), 1)
}
