//! The harness's own copy of the beliefs: what it tells the memory system, and what it puts beside the system's hits when a
//! question is asked. It writes a bank as it goes.

use std::collections::{BTreeMap, HashMap};

use bench_proto::{
    assertions::{Assertions, Beside, Counting, ListAssertions, SetAssertions},
    dataset::{Bank, BankContent, Filter, Gold, GoldRecord, Memory, Question, StreamEntry},
};
use serde_json::json;

use super::schema::{Belief, Budget, Expect, ExpectSet};

/// By which rules contexts are put together and counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// How cases are counted; turns are counted as turns.
    pub(crate) counting: Counting,
    /// Which beliefs are pinned facts, and in which order.
    pub(crate) pins: Pins,
    /// What a system is told of a belief beside its text, its user and its scopes.
    pub(crate) told: Told,
    /// Questions are put for all their scopes, not for the first alone.
    pub(crate) all_scopes: bool,
    /// Open questions are shown by the harness alone: hits of them are dropped, and relations do not add them, nor anything
    /// that no longer holds.
    pub(crate) routes_questions: bool,
    /// Expectations of pinned facts that stand one level too deep are looked at.
    pub(crate) mends_nesting: bool,
}

/// Which beliefs are pinned facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pins {
    /// The pinned facts of the scopes, in the order of the file.
    OfScopes,
    /// Those of the scopes and all that the user has edited, but none of universal scope; edited ones first, then the latest.
    /// Relations add nothing.
    Paper,
}

/// What a system is told of a belief beside its text, its user and its scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// The aliases of what is there from the start.
    Aliases,
    /// Those; type, pin and successor of every belief.
    Kinds,
    /// All of that, and whether it is resolved, of every belief.
    All,
}

/// A question with its expectation, in the names of the dataset.
pub(crate) struct Asking<'a> {
    pub(crate) question_id: String,
    pub(crate) category: String,
    pub(crate) user: &'a str,
    pub(crate) scopes: &'a [String],
    pub(crate) query: &'a str,
    pub(crate) budget: Budget,
    pub(crate) expect: &'a Expect,
    pub(crate) structural: bool,
    /// Label of the turn and beliefs that the session has drifted through; none: it is no turn.
    pub(crate) turn: Option<(&'a str, Vec<String>)>,
}

/// What the harness knows of a bank while it writes its stream and questions.
pub(crate) struct Harness<'a> {
    rules: Rules,
    /// Text about a user; empty when there is none.
    prelude: &'a dyn Fn(&str) -> String,
    beliefs: Vec<Belief>,
    /// Place of each belief, by its name in the dataset.
    places: HashMap<String, usize>,
    /// Id of each belief in the bank, and of the entry that tells its newest text.
    ids: Vec<(String, String)>,
    stands_for: BTreeMap<String, String>,
    bank: Bank,
    pub(crate) notes: Vec<String>,
}

impl<'a> Harness<'a> {
    pub(crate) fn new(bank_id: &str, rules: Rules, prelude: &'a dyn Fn(&str) -> String) -> Self {
        let content = BankContent { bank_id: bank_id.to_owned(), ..BankContent::default() };
        Self {
            rules,
            prelude,
            beliefs: Vec::new(),
            places: HashMap::new(),
            ids: Vec::new(),
            stands_for: BTreeMap::new(),
            bank: Bank { content, ..Bank::default() },
            notes: Vec::new(),
        }
    }

    /// The bank, and what did not resolve in it.
    pub(crate) fn finish(mut self) -> (Bank, Vec<String>) {
        for belief in &self.beliefs {
            let named = belief.superseded_by.iter().chain(&belief.participants);
            let unknown = named.filter(|name| !self.places.contains_key(*name));
            self.notes.extend(unknown.map(|name| format!("belief {}: there is no belief {name}", belief.id)));
        }
        (self.bank, self.notes)
    }

    /// Tells the beliefs that are there before the first question.
    pub(crate) fn seed(&mut self, beliefs: impl IntoIterator<Item = Belief>) -> Result<(), String> {
        // all have their ids before the first is told: some name others that come later
        let places: Vec<usize> = beliefs.into_iter().map(|belief| self.add(belief)).collect::<Result<_, _>>()?;
        for place in places {
            let memory = self.memory(place, true);
            self.bank.content.entries.push(StreamEntry::Memory(memory));
        }
        Ok(())
    }

    /// Tells a new belief.
    pub(crate) fn create(&mut self, belief: Belief) -> Result<(), String> {
        let place = self.add(belief)?;
        let memory = self.memory(place, false);
        self.bank.content.entries.push(StreamEntry::Memory(memory));
        Ok(())
    }

    /// Tells a belief that takes the place of another one.
    pub(crate) fn supersede(&mut self, name: &str, by: Belief) -> Result<(), String> {
        let old = self.place(name)?;
        self.beliefs[old].superseded_by = Some(by.id.clone());
        let new = self.add(by)?;
        self.update(old, Some(self.memory(new, false)));
        Ok(())
    }

    /// Tells that a belief no longer holds.
    pub(crate) fn withdraw(&mut self, name: &str) -> Result<(), String> {
        let place = self.place(name)?;
        self.beliefs[place].resolved_at = Some("withdrawn".to_owned());
        self.update(place, None);
        Ok(())
    }

    /// Tells a belief again with further aliases: trimmed, in lower case, none twice.
    pub(crate) fn enrich(&mut self, name: &str, aliases: &[String]) -> Result<(), String> {
        let place = self.place(name)?;
        let belief = &mut self.beliefs[place];
        for alias in aliases.iter().map(|alias| alias.trim().to_lowercase()) {
            if !belief.aliases.contains(&alias) {
                belief.aliases.push(alias);
            }
        }
        let newest = self.next_id();
        self.stands_for.insert(newest.clone(), self.ids[place].0.clone());
        let before = std::mem::replace(&mut self.ids[place].1, newest);
        let memory = Some(self.memory(place, false));
        self.bank.content.entries.push(StreamEntry::Update { replaces: before, memory });
        Ok(())
    }

    fn update(&mut self, place: usize, memory: Option<Memory>) {
        let replaces = self.ids[place].1.clone();
        self.bank.content.entries.push(StreamEntry::Update { replaces, memory });
    }

    fn place(&self, name: &str) -> Result<usize, String> {
        self.places.get(name).copied().ok_or_else(|| format!("there is no belief {name} to change"))
    }

    /// Takes a belief into the copy; returns its place.
    fn add(&mut self, belief: Belief) -> Result<usize, String> {
        let place = self.beliefs.len();
        if self.places.insert(belief.id.clone(), place).is_some() {
            return Err(format!("belief {} is there twice", belief.id));
        }
        let id = self.next_id();
        self.beliefs.push(belief);
        self.ids.push((id.clone(), id));
        Ok(place)
    }

    /// Memories are numbered as they come, so that an id tells nothing.
    fn next_id(&self) -> String {
        format!("M{}", self.beliefs.len() + self.stands_for.len() + 1)
    }

    /// A belief as it is told now.
    fn memory(&self, place: usize, at_start: bool) -> Memory {
        let (belief, told) = (&self.beliefs[place], self.rules.told);
        let mut fields = BTreeMap::new();
        if !belief.aliases.is_empty() && (at_start || told == Told::All) {
            fields.insert("aliases".to_owned(), belief.aliases.join("\n"));
        }
        if told != Told::Aliases {
            fields.insert("type".to_owned(), belief.kind.clone());
            fields.insert("pinned".to_owned(), belief.pinned.to_string());
            let successor = belief.superseded_by.as_ref().and_then(|name| self.id_of(name));
            fields.extend(successor.map(|id| ("superseded_by".to_owned(), id)));
        }
        if told == Told::All && belief.resolved_at.is_some() {
            fields.insert("resolved".to_owned(), true.to_string());
        }
        Memory {
            id: self.ids[place].1.clone(),
            text: belief.text(),
            user: Some(belief.user_id.clone()),
            scopes: self.scopes(&belief.scope),
            fields,
            ..Memory::default()
        }
    }

    /// The scopes that a system is told of a belief or a question.
    fn scopes(&self, scopes: &[String]) -> Vec<String> {
        scopes.iter().take(if self.rules.all_scopes { scopes.len() } else { 1 }).cloned().collect()
    }

    fn id_of(&self, name: &str) -> Option<String> {
        self.places.get(name).map(|place| self.ids[*place].0.clone())
    }

    /// Asks a question now.
    pub(crate) fn ask(&mut self, asking: Asking<'_>) {
        let assertions = self.assertions(&asking);
        let Asking { question_id, category, user, scopes, query, budget, expect: _, structural: _, turn } = asking;
        let index = u32::try_from(self.bank.questions.len()).unwrap_or(u32::MAX);
        let expected = assertions.expected();
        let number_of = |id: &str| self.ids.iter().position(|(known, _)| known == id);
        let places: Vec<usize> = expected.iter().filter_map(|id| number_of(id)).collect();
        // a new text of a belief has an id of its own: it is what a system finds
        let evidence: Vec<String> = places.iter().map(|place| self.ids[*place].1.clone()).collect();
        let names: Vec<&str> = places.iter().map(|place| self.beliefs[*place].id.as_str()).collect();
        let amount = if expected.is_empty() { "nothing" } else { "something" };
        let kind = turn.map_or("case", |(label, _)| if label.is_empty() { "turn" } else { label });
        let facets = [("expected", amount), ("turn", kind)].map(|(facet, value)| (facet.to_owned(), value.to_owned()));
        let hidden = BTreeMap::from([("beliefs".to_owned(), json!(names))]);
        self.bank.questions.push(Question {
            question_id: question_id.clone(),
            index,
            category,
            text: query.to_owned(),
            ask_after: u32::try_from(self.bank.content.entries.len()).unwrap_or(u32::MAX),
            k: Some(budget.max_beliefs.max(1)),
            filter: Filter { user: Some(user.to_owned()), scopes: self.scopes(scopes), ..Filter::default() },
            ..Question::default()
        });
        self.bank.gold.push(GoldRecord {
            question_id,
            evidence_turns: evidence.clone(),
            evidence_sessions: evidence,
            facets: facets.into(),
            hidden,
            gold: Gold::Assertions(Box::new(assertions)),
            ..GoldRecord::default()
        });
    }

    fn assertions(&mut self, asking: &Asking<'_>) -> Assertions {
        let Asking { question_id, expect, turn, .. } = asking;
        let list = &expect.relevant_beliefs;
        let mut notes = Vec::new();
        let mut ids = |part: &str, names: &[String]| -> Vec<String> {
            let id = |name: &String| {
                self.id_of(name).unwrap_or_else(|| {
                    notes.push(format!("{question_id}: {part} names {name}, and there is no such belief"));
                    name.clone()
                })
            };
            names.iter().map(id).collect()
        };
        let relevant = ListAssertions {
            should_only_include: list.should_only_include.as_ref().map(|names| ids("shouldOnlyInclude", names)),
            must_include: ids("mustInclude", &list.must_include),
            must_exclude: ids("mustExclude", &list.must_exclude),
            should_include: ids("shouldInclude", &list.should_include),
            ordered_before: Vec::new(),
            max_count: list.max_count,
            min_count: list.min_count,
        };
        let ordered = list.ordered_before.iter().map(|(first, later)| {
            let pair = ids("orderedBefore", &[first.clone(), later.clone()]);
            (pair[0].clone(), pair[1].clone())
        });
        let ordered_before = ordered.collect();
        let mut set = |part: &str, expect: &ExpectSet| SetAssertions {
            must_include: ids(part, &expect.must_include),
            must_exclude: ids(part, &expect.must_exclude),
        };
        let mut pinned = set("pinnedFacts", &expect.pinned_facts);
        if self.rules.mends_nesting {
            let nested = set("pinnedFacts", &list.pinned_facts);
            pinned.must_include.extend(nested.must_include);
            pinned.must_exclude.extend(nested.must_exclude);
        }
        let questions = set("openQuestions", &expect.open_questions);
        let must_not_surface = ids("mustNotSurface", &expect.noise_check.must_not_surface);
        self.notes.extend(notes);
        Assertions {
            counting: if turn.is_some() { Counting::Turn } else { self.rules.counting },
            relevant: ListAssertions { ordered_before, ..relevant },
            pinned,
            questions,
            prelude: (&expect.persona_prelude).into(),
            must_not_surface,
            beside: self.beside(asking),
        }
    }

    /// What the harness puts beside the hits now.
    fn beside(&self, asking: &Asking<'_>) -> Beside {
        let Asking { user, scopes, query, budget, expect, structural, turn, .. } = asking;
        let numbered = || self.beliefs.iter().zip(&self.ids).map(|(belief, (id, _))| (belief, id));
        let of_user = || numbered().filter(|(belief, _)| belief.user_id == *user);
        let ids = |beliefs: Vec<(&Belief, &String)>| beliefs.into_iter().map(|(_, id)| id.clone()).collect::<Vec<_>>();

        let is_fact = |belief: &Belief| belief.pinned && !belief.is_question() && belief.is_active();
        let mut facts: Vec<_> = of_user().filter(|(belief, _)| is_fact(belief)).collect();
        if self.rules.pins == Pins::Paper {
            let is_universal = |scope: &String| scope == "universal" || scope == "user:universal";
            facts.retain(|(belief, _)| !belief.scope.iter().any(is_universal));
            facts.retain(|(belief, _)| belief.user_edited || belief.is_in(scopes));
            facts.sort_by(|(a, _), (b, _)| {
                b.user_edited.cmp(&a.user_edited).then_with(|| b.last_reinforced_at.cmp(&a.last_reinforced_at))
            });
            facts.truncate(budget.max_pinned_facts as usize);
        } else {
            facts.retain(|(belief, _)| belief.is_in(scopes));
        }
        let is_open = |belief: &Belief| belief.is_question() && belief.pinned && belief.resolved_at.is_none();
        let questions = ids(of_user().filter(|(belief, _)| is_open(belief) && belief.is_in(scopes)).collect());
        let pinned = ids(facts);
        let mut shown = pinned.clone();
        if self.rules.routes_questions {
            shown.extend(of_user().filter(|(belief, _)| belief.is_question()).map(|(_, id)| id.clone()));
        }

        let joins = |name: &String| -> Option<String> {
            let place = *self.places.get(name)?;
            let belief = &self.beliefs[place];
            let holds = !self.rules.routes_questions || (belief.is_active() && !belief.is_question());
            (holds && belief.user_id == *user && belief.is_in(scopes)).then(|| self.ids[place].0.clone())
        };
        let relations = numbered().filter(|(belief, _)| belief.kind == "relation" && self.rules.pins != Pins::Paper);
        let participants = relations.map(|(belief, id)| (id.clone(), belief.participants.iter().filter_map(joins)));
        let participants = participants.map(|(id, joined)| (id, joined.collect::<Vec<_>>()));
        let pinned_anywhere = |name: &&String| {
            let belief = self.places.get(*name).map(|place| &self.beliefs[*place]);
            belief.is_some_and(|belief| belief.pinned && belief.user_id == *user)
        };
        let must_include = expect.relevant_beliefs.must_include.iter();
        let drift = turn.iter().flat_map(|(_, drift)| drift);
        Beside {
            known: ids(numbered().collect()),
            stands_for: self.stands_for.clone(),
            shown,
            pinned,
            questions,
            prelude: (self.prelude)(user),
            participants: participants.filter(|(_, joined)| !joined.is_empty()).collect(),
            max_memories: budget.max_beliefs,
            max_questions: budget.max_questions,
            unsearched: query.trim().is_empty() || budget.max_beliefs == 0,
            pinned_elsewhere: must_include.filter(pinned_anywhere).filter_map(|name| self.id_of(name)).collect(),
            drift: drift.filter_map(|name| self.id_of(name)).collect(),
            structural: *structural,
        }
    }
}
