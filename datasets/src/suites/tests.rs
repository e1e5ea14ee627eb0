use std::collections::{BTreeMap, BTreeSet};

use bench_proto::dataset::{Gold, GoldRecord, Memory, Question, StreamEntry};

use super::*;
use crate::sets::{
    question_set,
    suite::{ReadSuite, admits, held, read},
};

fn suites() -> [(&'static str, &'static str); 3] {
    [("basic", basic::TEXT), ("accuracy", accuracy::TEXT), ("reflect", reflect::TEXT)]
}

fn ours(name: &str, text: &str) -> ReadSuite {
    read(name, name, text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

/// Mean share of the evidence among the hits of a ranking, over the questions that have evidence.
fn recall_of(suite: &ReadSuite, rank: impl Fn(&Question, &GoldRecord, &Memory) -> usize) -> f64 {
    let mut shares = Vec::new();
    for bank in &suite.banks {
        for (question, gold) in bank.questions.iter().zip(&bank.gold) {
            let mut found: Vec<&Memory> =
                held(&bank.content).filter(|memory| admits(&question.filter, memory)).collect();
            // stable: equal ones stay in the order of the suite
            found.sort_by_key(|memory| std::cmp::Reverse(rank(question, gold, memory)));
            found.truncate(question.k.expect("ours say it") as usize);
            let hits = found.iter().filter(|memory| gold.evidence_turns.contains(&memory.id)).count();
            if !gold.evidence_turns.is_empty() {
                shares.push(hits as f64 / gold.evidence_turns.len() as f64);
            }
        }
    }
    shares.iter().sum::<f64>() / shares.len() as f64
}

fn words(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

#[test]
fn words_in_common_do_not_solve_ours_and_the_evidence_does() {
    for (name, text) in suites() {
        let suite = ours(name, text);
        assert_eq!(suite.notes.clone().lines(), Vec::<String>::new(), "{name}");
        let by_words =
            recall_of(&suite, |question, _, memory| words(&question.text).intersection(&words(&memory.text)).count());
        let oracle = recall_of(&suite, |_, gold, memory| usize::from(gold.evidence_turns.contains(&memory.id)));
        assert!(by_words < 0.6, "{name}: a ranking by words in common reaches {by_words}");
        assert_eq!(oracle, 1.0, "{name}: as many hits as there is evidence");
    }
}

/// The banks of the suites and of the set, as they are opened.
fn all_of_ours() -> Vec<(&'static str, Vec<Bank>)> {
    let (set, notes) = question_set::of_text("smoke.jsonl", smoke::TEXT).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(notes.lines(), Vec::<String>::new());
    suites().map(|(name, text)| (name, ours(name, text).banks)).into_iter().chain([("smoke", vec![set])]).collect()
}

#[test]
fn each_question_of_smoke_is_answered_by_one_memory() {
    let (_, banks) = all_of_ours().pop().expect("the last one");
    let [bank] = banks.as_slice() else { panic!("one bank") };
    assert_eq!((bank.content.entries.len(), bank.questions.len()), (24, 20));
    let memories: BTreeMap<&str, &str> =
        held(&bank.content).map(|memory| (memory.id.as_str(), memory.text.as_str())).collect();
    for (question, gold) in bank.questions.iter().zip(&bank.gold) {
        let ([evidence], Gold::AnyOf(texts)) = (gold.evidence_turns.as_slice(), &gold.gold) else {
            panic!("{}: {:?}", question.text, gold.evidence_turns);
        };
        let memory = memories[evidence.as_str()].to_lowercase();
        assert!(texts.iter().any(|text| memory.contains(&text.to_lowercase())), "{}", question.text);
        assert_eq!(question.time.as_deref(), Some("2026-04-02T00:00:00"));
    }
}

/// When this fails, a suite has become another: raise its version, then pin anew.
#[test]
fn ours_are_pinned() {
    let pinned = all_of_ours().into_iter().map(|(name, mut banks)| {
        banks.iter_mut().for_each(|bank| drop(crate::neutral::hide_order(bank)));
        let version = &crate::find(name).expect("is registered").manifest.version;
        let hash = checksum::of_bytes(&serde_json::to_vec(&banks).expect("banks are JSON"));
        format!("{name} {version} {}", &hash[..16])
    });
    insta::assert_snapshot!(pinned.collect::<Vec<_>>().join("\n"), @r"
    basic 3 c169e47e9fcd6d0b
    accuracy 2 21a6596da3936318
    reflect 3 5b4c44a7f1cbe4fa
    smoke 2 3eff340d942387e1
    ");
}

#[test]
fn ours_have_the_promised_sizes_and_kinds() {
    let counts = |suite: &ReadSuite| {
        let mut counts = BTreeMap::<String, usize>::new();
        for question in suite.banks.iter().flat_map(|bank| &bank.questions) {
            *counts.entry(question.category.clone()).or_default() += 1;
        }
        counts.into_iter().map(|(category, n)| format!("{category} {n}")).collect::<Vec<_>>().join(", ")
    };
    let [basic, accuracy, reflect] = suites().map(|(name, text)| ours(name, text));
    assert_eq!((basic.banks.len(), basic.banks[0].content.entries.len()), (1, 20));
    assert_eq!(counts(&basic), "exact 5, negative 2, reflect 1, semantic 7, tags 3, times 3");
    assert_eq!((accuracy.banks.len(), accuracy.banks[0].content.entries.len()), (1, 50));
    assert_eq!(counts(&accuracy), "entity 20, negative 10, paraphrase 40, temporal 15, update 15");
    assert_eq!((reflect.banks.len(), counts(&reflect)), (20, "reflect 20".to_owned()));
}

#[test]
fn every_field_counts() {
    let suite = ours(
        "mine",
        r#"
name: team
retain:
- {content: " The limit is 100. ", tags: [api, old], fact_type: world, metadata: {source: wiki, page: 7}, at: 2026-01-02}
- {content: "The limit is 500.", at: "2026-03-04 10:00", tags: [api], replaces: 1}
- {content: "Ann's limit is patience.", at: 2026-03-04T10:00:30Z}
recall:
- {query: limit?, expected_contains: [LIMIT], expected_excludes: [patience], tags: [api], max_results: 3, at: 2026-04-01, from: 2026-03-04, until: 2026-03-04, category: numbers}
- {query: unknown?}
- {query: gone?, expected_contains: ["100"]}
reflect:
- {query: all?, expected_topics: [limit, patience]}
"#,
    );
    let bank = &suite.banks[0];
    let StreamEntry::Memory(first) = &bank.content.entries[0] else { panic!("a memory") };
    assert_eq!((first.id.as_str(), first.text.as_str()), ("m1", "The limit is 100."));
    assert_eq!(
        (first.time.as_deref(), &first.tags),
        (Some("2026-01-02T00:00:00"), &vec!["api".to_owned(), "old".to_owned()])
    );
    let fields: Vec<(&str, &str)> = first.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(fields, [("fact_type", "world"), ("page", "7"), ("source", "wiki")]);
    let StreamEntry::Update { replaces, memory: Some(second) } = &bank.content.entries[1] else { panic!("an update") };
    assert_eq!((replaces.as_str(), second.time.as_deref()), ("m1", Some("2026-03-04T10:00:00")));

    let question = &bank.questions[0];
    assert_eq!(question.question_id, "team:0");
    assert_eq!(
        (question.k, question.category.as_str(), question.time.as_deref()),
        (Some(3), "numbers", Some("2026-04-01T00:00:00"))
    );
    let (from, until) = (question.filter.from.as_deref(), question.filter.until.as_deref());
    assert_eq!((from, until), (Some("2026-03-04T00:00:00"), Some("2026-03-04T23:59:59")));
    let evidence: Vec<&[String]> = bank.gold.iter().map(|gold| gold.evidence_turns.as_slice()).collect();
    assert_eq!(evidence, [&["m2".to_owned()][..], &[], &[], &["m2".to_owned(), "m3".to_owned()]]);
    assert_eq!(bank.gold[1].gold, Gold::Abstain, "nothing is expected");
    assert_eq!(bank.gold[0].gold.text(), "LIMIT");
    assert_eq!(
        suite.notes.clone().lines(),
        ["team:2: no memory that it may be answered from holds what is expected"],
        "it was replaced"
    );
    assert_eq!(
        ours("stem", "retain: [{content: a}]\nrecall: [{query: b}]").banks[0].questions[0].question_id,
        "stem:0"
    );
}

#[test]
fn nonsense_is_refused_with_its_place() {
    for (text, place, word) in [
        ("retain: [{content: a}]", "suite", "asks nothing"),
        ("retain: [{content: ' '}]\nrecall: [{query: b}]", "retain[0].content", "empty"),
        ("retain: [{content: a, replaces: 1}]\nrecall: [{query: b}]", "retain[0].replaces", "no earlier entry"),
        ("recall: [{query: ''}]", "recall[0].query", "empty"),
        ("recall: [{query: b, max_results: 0}]", "recall[0].max_results", "at least one"),
        ("recall: [{query: b, from: 12}]", "recall[0].from", "no time"),
        ("recall: [{query: b, until: soon}]", "recall[0].until", "'soon' is no time"),
        ("reflect: [{query: b, max_results: 0}]", "reflect[0].max_results", "at least one"),
        ("recall: [{query: b}]\nscenarios: [{name: x}]", "scenarios", "stand beside"),
        ("scenarios: [{name: x, recall: [{query: a}]}, {name: x}]", "scenarios[1].name", "earlier"),
        ("scenarios: [{name: x, recall: [{query: ' '}]}]", "scenarios[0].recall[0].query", "empty"),
    ] {
        let error = read("mine.yaml", "mine", text.as_bytes()).expect_err(text).to_string();
        assert!(error.starts_with(&format!("mine.yaml: {place}: ")) && error.contains(word), "{error}");
    }
}

/// What cannot be read is said with its id, as in question sets: nothing is lost but the time. Only filters are refused.
#[test]
fn an_at_that_is_no_time_is_a_note() {
    let text =
        "retain: [{content: a, at: yesterday}, {content: b}]\nrecall: [{query: c, at: soon, expected_contains: [b]}]";
    let suite = ours("mine", text);
    let (bank, notes) = (&suite.banks[0], suite.notes.clone().lines());
    let [memory, question] = ["mine:m1: 'yesterday'", "mine:0: 'soon'"]
        .map(|place| format!("{place} is no date; write 2026-03-04 or 2026-03-04T10:00"));
    assert_eq!(notes, [memory, question]);
    let StreamEntry::Memory(first) = &bank.content.entries[0] else { panic!("a memory") };
    let asked = &bank.questions[0];
    assert_eq!((&first.time, &asked.time, asked.time_text.as_deref()), (&None, &None, Some("soon")));
}

/// What every question of a long suite looks at is made once: this took a minute for each.
#[test]
fn a_long_suite_with_changes_is_read_at_once() {
    let mut text = "retain:\n".to_owned();
    for number in 1..=20_000 {
        let replaces = if number > 10_000 { format!(", replaces: {}", number - 10_000) } else { String::new() };
        text.push_str(&format!("- {{content: note {number}{replaces}}}\n"));
    }
    text.push_str("recall:\n");
    (0..20).for_each(|number| text.push_str(&format!("- {{query: q{number}, expected_contains: [note 1]}}\n")));
    let begun = std::time::Instant::now();
    let suite = read("long.yaml", "long", text.as_bytes()).expect("reads");
    assert_eq!(suite.banks[0].questions.len(), 20);
    // half of them are replaced, and of those that are left all but the last begin so
    assert_eq!(suite.banks[0].gold[0].evidence_turns.len(), 9_999);
    // in seconds, unoptimised; by pairs it is minutes
    assert!(begun.elapsed().as_secs() < 30, "{:?}", begun.elapsed());
}
