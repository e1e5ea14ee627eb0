use std::collections::{BTreeMap, BTreeSet};

use bench_grading::scorers::assertions::{Evaluation, PassType, evaluate};
use bench_proto::{
    assertions::Assertions,
    dataset::{Gold, Memory, Question, StreamEntry},
};
use proptest::prelude::*;

use super::{lives::LIVES, *};

fn made(seed: i64, worlds: usize) -> Vec<Bank> {
    let settings = Settings { seed: seed.into(), banks: worlds };
    (0..worlds).map(|bank| make(&settings, bank).expect("a bank")).collect()
}

/// The memories that hold when a question is asked.
fn holding<'a>(bank: &'a Bank, question: &Question) -> Vec<&'a Memory> {
    let mut memories: Vec<&Memory> = Vec::new();
    for entry in bank.content.entries.iter().take(question.ask_after as usize) {
        match entry {
            StreamEntry::Memory(memory) => memories.push(memory),
            StreamEntry::Update { replaces, memory } => {
                memories.retain(|known| known.id != *replaces);
                memories.extend(memory);
            }
            StreamEntry::Session(_) => panic!("no sessions here"),
        }
    }
    memories
}

fn assertions(gold: &Gold) -> &Assertions {
    let Gold::Assertions(assertions) = gold else { panic!("no assertions") };
    assertions
}

/// What comes of a retriever's hits, question by question.
fn evaluated<'a>(
    banks: &'a [Bank],
    retriever: impl Fn(&'a Bank, &'a Question, &Assertions) -> Vec<String>,
) -> Vec<(&'a str, Evaluation)> {
    let mut results = Vec::new();
    for bank in banks {
        for (question, gold) in bank.questions.iter().zip(&bank.gold) {
            let assertions = assertions(&gold.gold);
            let mut hits = retriever(bank, question, assertions);
            hits.truncate(question.k.expect("a number of hits") as usize);
            results.push((question.category.as_str(), evaluate(assertions, hits.iter().map(String::as_str))));
        }
    }
    results
}

fn passed(results: &[(&str, Evaluation)]) -> usize {
    results.iter().filter(|(_, result)| result.passed()).count()
}

/// What is expected, each in the order in which it must come.
fn oracle(_: &Bank, _: &Question, assertions: &Assertions) -> Vec<String> {
    assertions.expected().into_iter().map(str::to_owned).collect()
}

fn of_user<'a>(bank: &'a Bank, question: &Question) -> Vec<&'a Memory> {
    let mut memories = holding(bank, question);
    memories.retain(|memory| memory.user == question.filter.user);
    memories
}

fn in_scope<'a>(bank: &'a Bank, question: &Question) -> Vec<&'a Memory> {
    let mut memories = of_user(bank, question);
    memories.retain(|memory| memory.scopes.iter().any(|scope| question.filter.scopes.contains(scope)));
    memories
}

fn ids(memories: Vec<&Memory>) -> Vec<String> {
    memories.into_iter().map(|memory| memory.id.clone()).collect()
}

/// `the "big" oven` → ` the big oven `.
fn words(text: &str) -> String {
    let text = text.to_lowercase();
    let parts: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty()).collect();
    format!(" {} ", parts.join(" "))
}

/// Whether one of a memory's names occurs in a text. Its text begins with them, the aliases behind the first.
fn is_named(memory: &Memory, text: &str) -> bool {
    let aliases: Vec<&str> = memory.fields.get("aliases").into_iter().flat_map(|aliases| aliases.lines()).collect();
    let first_word = memory.text.split(' ').next().unwrap_or_default();
    let name = aliases.first().map_or(first_word, |alias| memory.text.split(alias).next().unwrap_or_default());
    let text = words(text);
    aliases.into_iter().chain([name]).any(|name| text.contains(&words(name)))
}

#[test]
fn silence_and_floods_fail_and_the_oracle_passes() {
    let banks = made(1, 4);
    let all = evaluated(&banks, oracle);
    let failed: Vec<_> = all.iter().filter(|(_, result)| !result.passed()).collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert!(all.len() >= 120, "{}", all.len());
    let active = all.iter().filter(|(_, result)| result.pass_type(true) == Some(PassType::Active)).count();

    let silent = passed(&evaluated(&banks, |_, _, _| Vec::new()));
    let everything = passed(&evaluated(&banks, |bank, question, _| ids(of_user(bank, question))));
    let scope = passed(&evaluated(&banks, |bank, question, _| ids(in_scope(bank, question))));
    let alias = evaluated(&banks, |bank, question, _| {
        ids(in_scope(bank, question).into_iter().filter(|memory| is_named(memory, &question.text)).collect())
    });
    // all but what expects nothing, which silence passes
    assert_eq!((all.len(), active, silent), (152, 144, 8));
    assert!(everything * 10 < all.len() && scope * 10 < all.len());
    assert!(passed(&alias) < all.len() * 8 / 10);
    // which categories a matcher of names can pass
    let mut by_category: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (category, result) in &alias {
        let (passed, asked) = by_category.entry(category).or_default();
        *passed += usize::from(result.passed());
        *asked += 1;
    }
    for (category, (passed, asked)) in by_category {
        match category {
            "misspelling" | "description" => assert_eq!(passed, 0, "{category}"),
            // orders and names that fit are a matter of luck, and a session has some of everything
            "ranking" | "budget" | "supersession" | "session" => assert!(passed < asked, "{category}"),
            _ => assert_eq!(passed, asked, "{category}"),
        }
    }
}

/// Of `n` memories a retriever by lot returns `k`: what is expected comes up with chance `k / n`, so that is its mean recall.
#[test]
fn a_retriever_by_lot_scores_chance() {
    let banks = made(1, 30);
    let mut rng = crate::generator::rng::Rng::new(&["lot"]);
    let (mut sum, mut chance, mut count, mut lucky) = (0.0, 0.0, 0_u32, 0);
    for bank in &banks {
        for (question, gold) in bank.questions.iter().zip(&bank.gold) {
            let assertions = assertions(&gold.gold);
            // relations add what was not drawn, scarce places take away what was
            if question.category == "relation" || question.category == "budget" || assertions.expected().is_empty() {
                continue;
            }
            let mut memories = holding(bank, question);
            memories.retain(|memory| memory.fields["type"] != "relation");
            let mut drawn = ids(memories);
            let (n, k) = (drawn.len(), 15);
            rng.shuffle(&mut drawn);
            drawn.truncate(k);
            let result = evaluate(assertions, drawn.iter().map(String::as_str));
            sum += result.recall.expect("something is expected");
            chance += k as f64 / n as f64;
            count += 1;
            lucky += usize::from(result.passed());
        }
    }
    let (found, chance) = (sum / f64::from(count), chance / f64::from(count));
    // standard deviation of the mean: sqrt(p (1 - p) / count), at most 0.012 here
    assert!(count > 900 && (found - chance).abs() < 0.04, "{found} of {count}, chance {chance}");
    assert_eq!(lucky, 0, "fifteen by lot are never exactly the right ones");
}

/// When this fails, what a seed gives has changed: raise the generator's version and the manifest's, then write down the hash.
#[test]
fn a_seed_gives_the_same_bank_for_ever() {
    let bank = made(1, 1).remove(0);
    let json = serde_json::to_string(&(&bank.content, &bank.questions, &bank.gold)).expect("JSON");
    insta::assert_snapshot!(format!("v{GENERATOR_VERSION} {}", &crate::checksum::of_bytes(json.as_bytes())[..16]), @"v2 277b8b7b5dee2575");
    assert_ne!(made(2, 1)[0].content.entries, bank.content.entries);
    assert_eq!(made(1, 3)[2], make(&Settings { seed: 1.into(), banks: 9 }, 2).expect("a bank"));
}

#[test]
fn few_memories_say_the_same() {
    let bank = made(1, 1).remove(0);
    let texts: BTreeSet<&str> = bank
        .content
        .entries
        .iter()
        .filter_map(|entry| match entry {
            StreamEntry::Memory(memory) | StreamEntry::Update { memory: Some(memory), .. } => {
                Some(memory.text.as_str())
            }
            _ => None,
        })
        .collect();
    assert!(texts.len() * 100 >= bank.content.entries.len() * 80, "{} of {}", texts.len(), bank.content.entries.len());
}

#[test]
fn the_table_is_whole_and_its_names_are_told_apart() {
    assert_eq!(LIVES.scopes.len(), 8);
    for scope in &LIVES.scopes {
        let things = scope.things.iter().chain(&scope.counters).chain([&scope.question, &scope.relation]);
        let of_things = things.flat_map(|thing| [&thing.name].into_iter().chain(&thing.aliases));
        assert!(scope.chains.iter().all(|chain| chain.values.len() == lives::VALUES), "{}", scope.name);
        let of_chains = scope.chains.iter().flat_map(|chain| chain.values.iter().flatten().chain([&chain.name]));
        let names: Vec<&String> = of_things.chain(of_chains).chain(&LIVES.namesakes).collect();
        let distinct: BTreeSet<String> = names.iter().map(|name| words(name)).collect();
        assert_eq!(distinct.len(), names.len(), "{}: a name is there twice", scope.name);
        for thing in &scope.things {
            assert!(thing.aliases.len() == 2 && !thing.says.is_empty(), "{}", thing.name);
            assert!(names.iter().all(|name| !words(&thing.asks).contains(&words(name))), "{}", thing.asks);
            let long = [&thing.name].into_iter().chain(&thing.aliases).flat_map(|name| name.split(' '));
            assert!(
                long.filter(|word| word.len() >= 5 && word.is_ascii()).count() > 0,
                "{}: no word to misspell",
                thing.name
            );
        }
        for asked in plot::PHRASES {
            assert!(asked.iter().all(|phrase| names.iter().all(|name| !words(phrase).contains(&words(name)))));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_seed_gives_questions_that_can_be_answered(seed in any::<i64>()) {
        let banks = made(seed, 1);
        let bank = &banks[0];
        let entries: BTreeSet<&str> = bank.content.entries.iter().map(StreamEntry::id).collect();
        for (question, gold) in bank.questions.iter().zip(&bank.gold) {
            let holds: BTreeSet<String> = ids(holding(bank, question)).into_iter().collect();
            prop_assert!(gold.evidence_turns.iter().all(|id| entries.contains(id.as_str()) && holds.contains(id)), "{}", question.question_id);
            prop_assert!(question.ask_after as usize <= bank.content.entries.len());
        }
        let results = evaluated(&banks, oracle);
        prop_assert_eq!(passed(&results), results.len());
        // what is seen tells neither names of the harness nor what is expected
        let seen = serde_json::to_string(&bank.content).expect("JSON");
        prop_assert!(!seen.contains("decided\"") && !seen.contains("must_"));
    }
}
