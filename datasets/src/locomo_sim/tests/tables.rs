//! The word tables are sound: known placeholders, no repeats, nothing asked that is not said.

use std::collections::HashSet;

use crate::locomo_sim::tables::{
    events::{EVENTS, Event, ONGOING, PAST, PLANNED, STATES},
    pairs::{BRIDGES, CHANGES, INTRODUCTIONS, RELATIONS},
    sets::SETS,
    singles::{SINGLES, key_forms},
    smalltalk, traits,
    words::{self, with_article},
};

/// The event of a noun.
pub(super) fn event_by_noun(noun: &str) -> &'static Event {
    EVENTS.iter().find(|event| event.noun == noun).unwrap_or_else(|| panic!("no event is '{noun}'"))
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
    for single in SINGLES {
        only(single.says, &["v", "av", "k"]);
        only(single.asks, &["n", "k"]);
        all_have(single.asks, &["n"]);
        match single.caption {
            Some(caption) => all_have(&[caption], &["v", "av"]),
            None => all_have(single.says, &["v", "av"]),
        }
        if single.keys != [""] {
            all_have(single.says, &["k"]);
            all_have(single.asks, &["k"]);
        }
    }
    for set in SETS {
        only(set.says, &["v", "av"]);
        all_have(set.says, &["v", "av"]);
        only(set.asks, &["n"]);
        all_have(set.asks, &["n"]);
        assert_eq!(placeholders(set.both), HashSet::from(["n", "o"]), "{}", set.both);
        assert_eq!(placeholders(set.count), HashSet::from(["n"]), "{}", set.count);
    }
    for bridge in BRIDGES {
        only(bridge.says, &["k", "v", "av"]);
        all_have(bridge.says, &["k"]);
        all_have(bridge.says, &["v", "av"]);
        only(bridge.asks, &["n", "k"]);
        all_have(bridge.asks, &["k"]);
    }
    for change in CHANGES {
        for says in [change.before, change.after] {
            only(says, &["v", "av"]);
            all_have(says, &["v", "av"]);
        }
        only(change.asks_before, &["n", "k", "ak"]);
        all_have(change.asks_before, &["k", "ak"]);
        only(change.asks_after, &["n"]);
    }
    only(INTRODUCTIONS, &["k", "v"]);
    all_have(PAST, &["v", "cv"]);
    all_have(PLANNED, &["v", "cv"]);
    all_have(ONGOING, &["v"]);
    all_have(traits::ASKS, &["k"]);
    for told in traits::TRAITS {
        only(told.says, &[]);
        for probe in told.probes {
            assert_eq!(placeholders(probe.ask), HashSet::new());
            only(&[probe.reason], &["n"]);
        }
    }
    only(smalltalk::GREETINGS, &["o"]);
    only(smalltalk::FAREWELLS, &["o"]);
    only(smalltalk::OPENERS, &["o"]);
    only(smalltalk::MIDDLES, &[]);
}

#[test]
fn ids_and_keys_are_different() {
    let topics = SINGLES.iter().map(|single| single.id).chain(SETS.iter().map(|set| set.id));
    different(
        "topics",
        topics.chain(BRIDGES.iter().map(|bridge| bridge.id)).chain(CHANGES.iter().map(|change| change.id)),
    );
    different("events", EVENTS.iter().map(|event| event.id));
    different("event nouns", EVENTS.iter().map(|event| event.noun));
    different("states", STATES.iter().map(|state| state.id));
    different("traits", traits::TRAITS.iter().map(|told| told.id));
    different("relations", RELATIONS.iter().copied());
    for single in SINGLES.iter().filter(|single| single.keys != [""]) {
        different(single.id, single.keys.iter().map(|key| key_forms(key).0));
        different(single.id, single.keys.iter().map(|key| key_forms(key).1));
    }
    for (one, other) in traits::CONTRADICTIONS {
        for id in [one, other] {
            assert!(traits::TRAITS.iter().any(|told| told.id == *id), "{id}");
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
    for single in SINGLES {
        texts.extend(single.keys.iter().chain(single.says).chain(single.asks));
    }
    for set in SETS {
        texts.extend(set.says.iter().chain(set.asks).chain([&set.noun]));
    }
    for event in EVENTS {
        texts.extend([event.past, event.plan, event.ask, event.noun]);
    }
    texts.extend(STATES.iter().flat_map(|state| [state.doing, state.ask]));
    texts.extend(RELATIONS);
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
        smalltalk::GREETINGS,
        smalltalk::FAREWELLS,
        smalltalk::OPENERS,
        smalltalk::MIDDLES,
        smalltalk::CLOSERS,
        smalltalk::LEADS,
        smalltalk::TAILS,
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
