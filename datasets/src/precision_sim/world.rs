//! One bank: three users, what they know, and what they are asked. It depends on seed and number alone.
//!
//! Two users share a scope and know other things of the same name there; each has a second scope, in which one name means
//! something else. What is superseded reaches a system as an update, as it happened.

use bench_proto::{assertions::Counting, dataset::Bank};

use super::lives::{Chain, LIVES, Scope, THINGS, Thing, VALUES};
use crate::{
    generator::{fill, rng::Rng},
    precisionmembench::{
        harness::{Harness, Pins, Rules, Told},
        schema::Belief,
    },
};

/// Systems are told everything that they need to know.
pub(super) const RULES: Rules = Rules {
    counting: Counting::Case,
    pins: Pins::OfScopes,
    told: Told::All,
    all_scopes: true,
    routes_questions: true,
    mends_nesting: false,
};

/// Given names of the users.
const USERS: [&str; 6] = ["nora", "anton", "mirjam", "oskar", "leyla", "piet"];
/// Of the user's scopes the one whose beliefs hold everywhere.
const EVERYWHERE: &str = "user:universal";

/// A user with two scopes.
#[derive(Debug)]
pub(super) struct User {
    pub(super) name: &'static str,
    pub(super) scopes: [&'static Scope; 2],
    /// Text about them, of what holds everywhere.
    pub(super) prelude: String,
}

/// The people of a bank.
#[derive(Debug)]
pub(super) struct World {
    pub(super) rng: Rng,
    pub(super) users: [User; 3],
    /// The name that means something else in every scope.
    pub(super) namesake: &'static str,
}

/// A belief's name: `nora work:bakery deck oven`. It stays in the harness.
pub(super) fn id(user: &User, scope: &Scope, name: &str) -> String {
    format!("{} {} {name}", user.name, scope.name)
}

/// Name of the belief that a chain has a value.
pub(super) fn value_id(user: &User, scope: &Scope, chain: &Chain, value: usize) -> String {
    id(user, scope, &format!("{} {value}", chain.name))
}

/// Name of the belief that an open question was decided.
pub(super) fn decision_id(user: &User, scope: &Scope) -> String {
    id(user, scope, &format!("{} decided", scope.question.name))
}

impl World {
    /// The people of a bank; `None` when the table is broken.
    pub(super) fn new(mut rng: Rng) -> Option<Self> {
        let mut scopes: Vec<&'static Scope> = LIVES.scopes.iter().collect();
        rng.shuffle(&mut scopes);
        let [shared, second, third, fourth, ..] = scopes[..] else { return None };
        let whole =
            |scope: &Scope| scope.things.len() == THINGS && scope.chains.len() == 2 && scope.counters.len() == 2;
        if !scopes.iter().all(|scope| whole(scope)) || LIVES.namesakes.is_empty() || LIVES.places.is_empty() {
            return None;
        }
        let mut names = USERS;
        rng.shuffle(&mut names);
        let namesake = rng.pick(&LIVES.namesakes);
        let mut tones = ["without greetings", "with an example each time", "in plain words"];
        rng.shuffle(&mut tones);
        let mut user = |at: usize, scopes| {
            let (sentences, tone) = (rng.between(2, 5), tones[at]);
            let prelude = format!("Wants answers of at most {sentences} sentences, {tone}.");
            User { name: names[at], scopes, prelude }
        };
        let users = [user(0, [shared, second]), user(1, [shared, third]), user(2, [fourth, second])];
        Some(Self { rng, users, namesake })
    }

    /// Tells everything that is known before the first question.
    pub(super) fn tell(&mut self, harness: &mut Harness<'_>) -> Result<(), String> {
        let (mut first, mut later) = (Vec::new(), Vec::new());
        for at in 0..self.users.len() {
            let user = &self.users[at];
            first.push(Belief {
                kind: "preference".to_owned(),
                pinned: true,
                scope: vec![EVERYWHERE.to_owned()],
                ..belief(user, user.scopes[0], "manner of answers", &[], user.prelude.clone())
            });
            for scope in user.scopes {
                for (number, thing) in scope.things.iter().enumerate() {
                    let mut belief = self.thing(at, scope, thing, "entity");
                    belief.pinned = number + 1 == THINGS;
                    first.push(belief);
                }
                first.extend(scope.counters.iter().map(|habit| self.thing(at, scope, habit, "preference")));
                let mut question = self.thing(at, scope, &scope.question, "open_question");
                question.pinned = true;
                let mut relation = self.thing(at, scope, &scope.relation, "relation");
                relation.participants =
                    scope.things.iter().take(2).map(|thing| id(&self.users[at], scope, &thing.name)).collect();
                let mut namesake = self.thing(at, scope, &scope.namesake, "entity");
                namesake.canonical_name = self.namesake.to_owned();
                first.extend([question, relation, namesake]);
                for (number, chain) in scope.chains.iter().enumerate() {
                    // the last value of one chain is told in the session alone
                    let told =
                        if at == 0 && number == 1 && scope.name == self.users[0].scopes[0].name { 2 } else { VALUES };
                    let values: Vec<Belief> = (0..told).map(|value| self.value(at, scope, chain, value)).collect();
                    let mut values = values.into_iter();
                    first.extend(values.next());
                    later.extend(
                        values
                            .enumerate()
                            .map(|(before, value)| (value_id(&self.users[at], scope, chain, before), value)),
                    );
                }
            }
        }
        self.rng.shuffle(&mut first);
        harness.seed(first)?;
        for (old, new) in later {
            harness.supersede(&old, new)?;
        }
        Ok(())
    }

    /// What a user knows of something.
    fn thing(&mut self, at: usize, scope: &'static Scope, thing: &Thing, kind: &str) -> Belief {
        let says = self.says(&thing.says, "");
        let belief = belief(&self.users[at], scope, &thing.name, &thing.aliases, says);
        Belief { kind: kind.to_owned(), ..belief }
    }

    /// The belief that a chain has a value.
    pub(super) fn value(&mut self, at: usize, scope: &'static Scope, chain: &Chain, value: usize) -> Belief {
        let names = chain.values.get(value).map(Vec::as_slice).unwrap_or_default();
        let (name, aliases) = names.split_first().map_or(("", names), |(name, aliases)| (name.as_str(), aliases));
        let says = self.says(&chain.says, name);
        Belief {
            id: value_id(&self.users[at], scope, chain, value),
            kind: "decision".to_owned(),
            ..belief(&self.users[at], scope, &format!("{} {name}", chain.name), aliases, says)
        }
    }

    /// The belief that the open question of a scope was decided.
    pub(super) fn decision(&mut self, at: usize, scope: &'static Scope) -> Belief {
        let day = self.rng.pick(&LIVES.days);
        let says = format!("Decided at last: yes, on trial, to be looked at again on {day}.");
        Belief {
            id: decision_id(&self.users[at], scope),
            kind: "decision".to_owned(),
            ..belief(&self.users[at], scope, &scope.question.name, &scope.question.aliases, says)
        }
    }

    /// A template with its words drawn; `value` is the chain's.
    fn says(&mut self, template: &str, value: &str) -> String {
        let rng = &mut self.rng;
        let [person, day, place] = [&LIVES.persons, &LIVES.days, &LIVES.places].map(|words| rng.pick(words).as_str());
        let number = rng.between(2, 9).to_string();
        fill(
            template,
            &[
                ("person", person),
                ("day", day),
                ("place", place),
                ("number", &number),
                ("value", value),
                ("name", self.namesake),
            ],
        )
    }

    /// The bank of a number, with its questions.
    pub(super) fn bank(mut self, bank_id: &str) -> Result<(Bank, Vec<String>), String> {
        let preludes: Vec<(&str, String)> = self.users.iter().map(|user| (user.name, user.prelude.clone())).collect();
        let prelude = |name: &str| {
            let known = preludes.iter().find(|(known, _)| *known == name);
            known.map_or_else(String::new, |(_, text)| text.clone())
        };
        let mut harness = Harness::new(bank_id, RULES, &prelude);
        self.tell(&mut harness)?;
        super::plot::write(&mut self, bank_id, &mut harness)?;
        Ok(harness.finish())
    }
}

fn belief(user: &User, scope: &Scope, name: &str, aliases: &[String], content: String) -> Belief {
    Belief {
        id: id(user, scope, name),
        user_id: user.name.to_owned(),
        canonical_name: name.to_owned(),
        aliases: aliases.to_vec(),
        content,
        scope: vec![scope.name.clone()],
        ..Belief::default()
    }
}
