//! The word tables are sound: known placeholders, no repeats, nothing asked that is not said.

use std::collections::HashSet;

use crate::locomo_sim::tables::{
    events::{self, Event},
    pairs, sets,
    singles::{self, key_forms},
    smalltalk, traits,
    words::{self, with_article},
};

/// The event of a noun.
pub(super) fn event_by_noun(noun: &str) -> &'static Event {
    events::TABLE.events.iter().find(|event| event.noun == noun).unwrap_or_else(|| panic!("no event is '{noun}'"))
}

/// Placeholders of a template.
fn placeholders(template: &str) -> HashSet<&str> {
    template.split('{').skip(1).map(|rest| rest.split_once('}').expect("closed").0).collect()
}

fn only(templates: &[&str], known: &[&str]) {
    for template in templates {
        assert!(placeholders(template).is_subset(&known.iter().copied().collect()), "{template}");
    }
}

fn all_have(templates: &[&str], wanted: &[&str]) {
    for template in templates {
        let found = placeholders(template);
        assert!(wanted.iter().any(|placeholder| found.contains(placeholder)), "{template} needs one of {wanted:?}");
    }
}

fn different<'a>(what: &str, ids: impl IntoIterator<Item = &'a str>) {
    let mut seen = HashSet::new();
    for id in ids {
        assert!(!id.is_empty() && seen.insert(id), "{what}: '{id}' is empty or there twice");
    }
}

#[test]
fn templates_have_their_placeholders() {
    for single in &singles::TABLE.singles {
        only(&single.says, &["v", "av", "k"]);
        only(&single.asks, &["n", "k"]);
        all_have(&single.asks, &["n"]);
        match single.caption {
            Some(caption) => all_have(&[caption], &["v", "av"]),
            None => all_have(&single.says, &["v", "av"]),
        }
        if single.keys != [""] {
            all_have(&single.says, &["k"]);
            all_have(&single.asks, &["k"]);
        }
    }
    for set in &sets::TABLE.sets {
        only(&set.says, &["v", "av"]);
        all_have(&set.says, &["v", "av"]);
        only(&set.asks, &["n"]);
        all_have(&set.asks, &["n"]);
        assert_eq!(placeholders(set.both), HashSet::from(["n", "o"]), "{}", set.both);
        assert_eq!(placeholders(set.count), HashSet::from(["n"]), "{}", set.count);
    }
    for bridge in &pairs::TABLE.bridges {
        only(&bridge.says, &["k", "v", "av"]);
        all_have(&bridge.says, &["k"]);
        all_have(&bridge.says, &["v", "av"]);
        only(&bridge.asks, &["n", "k"]);
        all_have(&bridge.asks, &["k"]);
    }
    for change in &pairs::TABLE.changes {
        for says in [&change.before, &change.after] {
            only(says, &["v", "av"]);
            all_have(says, &["v", "av"]);
        }
        only(&change.asks_before, &["n", "k", "ak"]);
        all_have(&change.asks_before, &["k", "ak"]);
        only(&change.asks_after, &["n"]);
    }
    only(&pairs::TABLE.introductions, &["k", "v"]);
    all_have(&events::TABLE.past, &["v", "cv"]);
    all_have(&events::TABLE.planned, &["v", "cv"]);
    all_have(&events::TABLE.ongoing, &["v"]);
    all_have(&traits::TABLE.asks, &["k"]);
    for told in &traits::TABLE.traits {
        only(&told.says, &[]);
        for probe in &told.probes {
            assert_eq!(placeholders(probe.ask), HashSet::new());
            only(&[probe.reason], &["n"]);
        }
    }
    only(&smalltalk::TABLE.greetings, &["o"]);
    only(&smalltalk::TABLE.farewells, &["o"]);
    only(&smalltalk::TABLE.openers, &["o"]);
    only(&smalltalk::TABLE.middles, &[]);
}

#[test]
fn ids_and_keys_are_different() {
    let topics = singles::TABLE.singles.iter().map(|single| single.id).chain(sets::TABLE.sets.iter().map(|set| set.id));
    different(
        "topics",
        topics
            .chain(pairs::TABLE.bridges.iter().map(|bridge| bridge.id))
            .chain(pairs::TABLE.changes.iter().map(|change| change.id)),
    );
    different("events", events::TABLE.events.iter().map(|event| event.id));
    different("event nouns", events::TABLE.events.iter().map(|event| event.noun));
    different("states", events::TABLE.states.iter().map(|state| state.id));
    different("traits", traits::TABLE.traits.iter().map(|told| told.id));
    different("relations", pairs::TABLE.relations.iter().copied());
    for single in singles::TABLE.singles.iter().filter(|single| single.keys != [""]) {
        different(single.id, single.keys.iter().map(|key| key_forms(key).0));
        different(single.id, single.keys.iter().map(|key| key_forms(key).1));
    }
    for (one, other) in &traits::TABLE.contradictions {
        for id in [one, other] {
            assert!(traits::TABLE.traits.iter().any(|told| told.id == *id), "{id}");
        }
    }
}

#[test]
fn lists_have_no_repeats() {
    for list in [
        &words::FIRST_NAMES,
        &words::SURNAMES,
        &words::PET_NAMES,
        &words::CITIES,
        &words::COUNTRIES,
        &words::ADJECTIVES,
        &words::NOUNS,
        &words::ANIMALS,
        &words::BIRDS,
        &words::PLANTS,
        &words::OBJECTS,
        &words::MATERIALS,
        &words::JOBS,
        &words::SUBJECTS,
        &words::SKILLS,
        &words::INGREDIENTS,
        &words::VEGETABLES,
        &words::DISHES,
        &words::INSTRUMENTS,
        &words::LANGUAGES,
        &words::SPORTS,
        &words::CRAFTS,
        &words::DANCES,
        &words::COLLECTIBLES,
        &words::WONDERS,
        &words::TALKS,
        &words::CLASSES,
        &words::CAUSES,
        &words::SCENES,
        &words::TEAS,
        &words::TIMES,
        &words::FRUITS,
    ] {
        different("words", list.iter().copied());
        for word in list.iter() {
            let part_of = list.iter().find(|other| other.split_once(' ').is_some_and(|(_, last)| last == *word));
            assert!(part_of.is_none(), "'{word}' is part of '{}'", part_of.unwrap_or(&""));
        }
        assert!(list.iter().all(|word| !word.contains(['\n', '{', '"']) && word.trim() == *word));
    }
}

/// Values of several words have no second meaning: they are in no key, template or event.
#[test]
fn values_are_not_in_templates() {
    let mut texts: Vec<&str> = Vec::new();
    for single in &singles::TABLE.singles {
        texts.extend(single.keys.iter().chain(&single.says).chain(&single.asks));
    }
    for set in &sets::TABLE.sets {
        texts.extend(set.says.iter().chain(&set.asks).chain([&set.noun]));
    }
    for event in &events::TABLE.events {
        texts.extend([event.past, event.plan, event.ask, event.noun]);
    }
    texts.extend(events::TABLE.states.iter().flat_map(|state| [state.doing, state.ask]));
    texts.extend(&pairs::TABLE.relations);
    let lists = [&words::JOBS, &words::VENUES, &words::SUBJECTS, &words::SKILLS, &words::WONDERS, &words::TALKS];
    for value in lists.into_iter().flat_map(|list| list.iter()).filter(|value| value.contains(' ')) {
        let second = texts.iter().find(|text| text.contains(value));
        assert!(second.is_none(), "'{value}' is also in '{}'", second.unwrap_or(&""));
    }
}

/// What answers a question must be nowhere but in the turn that tells it.
#[test]
fn small_talk_has_no_dates() {
    let lists = [
        smalltalk::TABLE.greetings.as_slice(),
        smalltalk::TABLE.farewells.as_slice(),
        smalltalk::TABLE.openers.as_slice(),
        smalltalk::TABLE.middles.as_slice(),
        smalltalk::TABLE.closers.as_slice(),
        smalltalk::TABLE.leads.as_slice(),
        smalltalk::TABLE.tails.as_slice(),
    ];
    for text in lists.concat() {
        let lower = text.to_lowercase();
        for word in ["yesterday", "tomorrow", " ago", "last ", "next w", "next m", "next y", "coming "] {
            assert!(!lower.contains(word), "{text}");
        }
    }
}

#[test]
fn articles_follow_the_sound() {
    for (value, expected) in [
        ("otter", "an otter"),
        ("badger", "a badger"),
        ("ukulele", "a ukulele"),
        ("urban planner", "an urban planner"),
        ("euphonium", "a euphonium"),
    ] {
        assert_eq!(with_article(value), expected);
    }
}
