//! Questions that no single turn answers: lists over sessions, what both have in common, who has more, third persons,
//! and what was before a change.

use bench_proto::dataset::Gold;

use super::Swap;
use crate::{
    locomo::schema::Category,
    locomo_sim::{
        draft::{Draft, fill},
        tables::{
            pairs,
            sets::{self, Set},
            words::{Pool, with_article},
        },
    },
};

const CATEGORY: Category = Category::MultiHop;

/// Shares of the kinds of questions in percent, at least one of each; lists are the rest.
const BOTH: usize = 10;
const MORE: usize = 5;
const COUNT: usize = 10;
const BRIDGE: usize = 18;
const CHANGE: usize = 12;

/// A list that one speaker has told, in order of sessions.
struct Told {
    who: usize,
    set: &'static Set,
    values: Vec<String>,
    facts: Vec<usize>,
}

pub(super) fn write(draft: &mut Draft, questions: usize, swaps: &mut Vec<Swap>) -> Option<()> {
    let share = |percent: usize| (questions * percent / 100).max(1);
    let (both, more, counts) = (share(BOTH), share(MORE), share(COUNT));
    let (bridges, changes) = (share(BRIDGE), share(CHANGE));
    let lists = questions.checked_sub(both + more + counts + bridges + changes)?;

    let mut kinds: Vec<&'static Set> = sets::TABLE.sets.iter().collect();
    draft.rng.shuffle(&mut kinds);
    let (pairs, others) = kinds.split_at_checked(both + more)?;
    let mut told = Vec::new();
    for (index, set) in pairs.iter().enumerate() {
        let (first, second) = if index < both { in_common(draft, set)? } else { compared(draft, set)? };
        told.extend([first, second]);
    }
    let mut single: Vec<(usize, &'static Set)> = others.iter().flat_map(|set| [(0, *set), (1, *set)]).collect();
    draft.rng.shuffle(&mut single);
    for (who, set) in single {
        if told.len() >= lists + counts {
            break;
        }
        let size = draft.rng.between(2, 4);
        told.push(tell_set(draft, who, set, size, None)?);
    }

    draft.rng.shuffle(&mut told);
    for (index, list) in told.into_iter().enumerate().take(lists + counts) {
        if index < lists { ask_list(draft, &list, swaps) } else { ask_count(draft, &list) }
    }
    for _ in 0..bridges {
        bridge(draft, swaps)?;
    }
    for _ in 0..changes {
        change(draft, swaps)?;
    }
    Some(())
}

/// Tells a list, one thing per session. `shared` is a thing that the other one has told too, with its session.
fn tell_set(
    draft: &mut Draft,
    who: usize,
    set: &'static Set,
    size: usize,
    shared: Option<(&str, usize)>,
) -> Option<Told> {
    draft.claim((who, set.id, ""));
    let without: Vec<usize> = shared.iter().map(|(_, scene)| *scene).collect();
    let scenes = draft.free_scenes(who, size, &without)?;
    let (place, first) = (draft.rng.below(size), draft.rng.below(set.says.len()));
    let (mut values, mut facts) = (Vec::new(), Vec::new());
    for (index, scene) in scenes.into_iter().enumerate() {
        let value = match shared {
            Some((value, _)) if index == place => value.to_owned(),
            _ => draft.value(set.value)?,
        };
        // the wording changes from one thing to the next
        let template = set.says[(first + index) % set.says.len()];
        let said = fill(template, &[("v", &value), ("av", &with_article(&value))]);
        facts.push(draft.tell(who, scene, &said, None)?);
        values.push(value);
    }
    Some(Told { who, set, values, facts })
}

/// Two lists with exactly one thing in common, told in two sessions.
fn in_common(draft: &mut Draft, set: &'static Set) -> Option<(Told, Told)> {
    let (first_size, second_size) = (draft.rng.between(2, 3), draft.rng.between(2, 3));
    let who = draft.rng.below(2);
    let first = tell_set(draft, who, set, first_size, None)?;
    let place = draft.rng.below(first_size);
    let (value, fact) = (first.values[place].clone(), first.facts[place]);
    let second = tell_set(draft, 1 - who, set, second_size, Some((&value, draft.facts[fact].scene)))?;
    let other = *second.facts.iter().zip(&second.values).find(|(_, other)| **other == value)?.0;
    let text = draft.ask(set.both, who, &[]);
    draft.push(CATEGORY, text, Gold::Text(value), vec![fact, other]);
    Some((first, second))
}

/// Two lists of different length.
fn compared(draft: &mut Draft, set: &'static Set) -> Option<(Told, Told)> {
    let (short, long) = (2, draft.rng.between(3, 4));
    let more = draft.rng.below(2);
    let first = tell_set(draft, more, set, long, None)?;
    let second = tell_set(draft, 1 - more, set, short, None)?;
    let asked = draft.rng.below(2);
    let text = draft.ask("Who told of more {k}, {n} or {o}?", asked, &[("k", set.noun)]);
    let evidence = first.facts.iter().chain(&second.facts).copied().collect();
    draft.push(CATEGORY, text, Gold::Text(draft.names[more].clone()), evidence);
    Some((first, second))
}

fn ask_list(draft: &mut Draft, list: &Told, swaps: &mut Vec<Swap>) {
    let template = draft.rng.word(&list.set.asks);
    let text = draft.ask(template, list.who, &[]);
    let gold = Gold::Text(list.values.join(", "));
    draft.push(CATEGORY, text, gold.clone(), list.facts.clone());
    let claim = (1 - list.who, list.set.id, "");
    swaps.push(Swap { claim, template, key: String::new(), value: gold, evidence: list.facts.clone() });
}

fn ask_count(draft: &mut Draft, list: &Told) {
    let text = draft.ask(list.set.count, list.who, &[]);
    draft.push(CATEGORY, text, Gold::Number(list.values.len().into()), list.facts.clone());
}

/// Somebody is introduced in one session, and in another something is said of them by name only.
fn bridge(draft: &mut Draft, swaps: &mut Vec<Swap>) -> Option<()> {
    let who = draft.speaker();
    let relation = loop {
        let relation = draft.rng.word(&pairs::TABLE.relations);
        if draft.claim((who, "relation", relation)) {
            break relation;
        }
    };
    let bridge = draft.rng.pick(&pairs::TABLE.bridges);
    draft.claim((who, bridge.id, relation));
    let (person, value) = (draft.value(Pool::Person)?, draft.value(bridge.value)?);
    let scenes = draft.free_scenes(who, 2, &[])?;
    let introduction = fill(draft.rng.word(&pairs::TABLE.introductions), &[("k", relation), ("v", &person)]);
    let said = fill(draft.rng.word(&bridge.says), &[("k", &person), ("v", &value), ("av", &with_article(&value))]);
    let introduced = draft.tell(who, scenes[0], &introduction, None)?;
    let told = draft.tell(who, scenes[1], &said, None)?;

    let template = draft.rng.word(&bridge.asks);
    let text = draft.ask(template, who, &[("k", relation)]);
    let (gold, evidence) = (Gold::Text(value), vec![introduced, told]);
    draft.push(CATEGORY, text, gold.clone(), evidence.clone());
    let claim = (1 - who, bridge.id, relation);
    swaps.push(Swap { claim, template, key: relation.to_owned(), value: gold, evidence });
    Some(())
}

/// Something is so, later it is otherwise, and the question is what was before.
fn change(draft: &mut Draft, swaps: &mut Vec<Swap>) -> Option<()> {
    let (who, change) = loop {
        let (who, change) = (draft.speaker(), draft.rng.pick(&pairs::TABLE.changes));
        if draft.claim((who, change.id, "")) {
            break (who, change);
        }
    };
    let (old, new) = (draft.value(change.value)?, draft.value(change.value)?);
    let scenes = draft.free_scenes(who, 2, &[])?;
    let before = fill(draft.rng.word(&change.before), &[("v", &old), ("av", &with_article(&old))]);
    let after = fill(draft.rng.word(&change.after), &[("v", &new), ("av", &with_article(&new))]);
    let before = draft.tell(who, scenes[0], &before, None)?;
    let after = draft.tell(who, scenes[1], &after, None)?;
    let template = draft.rng.word(&change.asks_before);
    let keys = [("k", new.as_str()), ("ak", &with_article(&new))];
    let text = draft.ask(template, who, &keys);
    draft.push(CATEGORY, text, Gold::Text(old), vec![before, after]);
    let template = draft.rng.word(&change.asks_after);
    let claim = (1 - who, change.id, "");
    swaps.push(Swap { claim, template, key: String::new(), value: Gold::Text(new), evidence: vec![after] });
    Some(())
}
