//! What earns nothing on any dataset: reciting, saying nothing, the same answer to every question, and reading ids.

use std::collections::BTreeSet;

use bench_grading::scorers::{
    Reads, ScoreCase, Scorer, registry,
    self_check::{conversation_text, self_check},
};
use bench_proto::dataset::{Bank, StreamEntry};

use crate::{Dataset, conformance::at_hand};

/// Banks of a dataset that are looked at.
const BANKS: usize = 20;
/// The mean score that an answer of no content stays below.
const NOTHING: f64 = 0.02;
/// Questions that are enough to tell that letters are drawn evenly.
const MANY: usize = 10;
/// The highest mean score of one letter on every question: of LifeBench's choices 43.5 % are B, of few questions half.
const ONE_LETTER: f64 = 0.5;

fn banks(dataset: &dyn Dataset) -> Vec<Bank> {
    (0..dataset.bank_count().min(BANKS)).map(|bank| dataset.bank(bank).expect("a bank")).collect()
}

fn cases<'a>(dataset: &'a dyn Dataset, bank: &'a Bank) -> Vec<ScoreCase<'a>> {
    let asked = bank.questions.iter().zip(&bank.gold);
    asked.map(|(question, gold)| ScoreCase::unanswered(dataset.profile(), question, gold)).collect()
}

/// The scorers that a run of the dataset has.
fn scorers(dataset: &dyn Dataset) -> impl Iterator<Item = &'static dyn Scorer> {
    dataset.manifest().scorers.iter().map(|name| registry::find(name).expect("a scorer"))
}

/// The mean score of one answer to everything; none where a scorer applies to nothing.
fn mean(dataset: &dyn Dataset, banks: &[Bank], scorer: &dyn Scorer, answer: &str) -> Option<f64> {
    let scores = graded(dataset, banks, scorer, answer);
    (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64)
}

/// The scores of an answer to every question that the scorer grades.
fn graded(dataset: &dyn Dataset, banks: &[Bank], scorer: &dyn Scorer, answer: &str) -> Vec<f64> {
    banks.iter().flat_map(|bank| scorer.score_many(answer, &cases(dataset, bank))).flatten().collect()
}

#[test]
fn every_dataset_passes_the_self_check_of_its_scorers() {
    for dataset in at_hand() {
        let (name, banks) = (&dataset.manifest().name, banks(dataset.as_ref()));
        for scorer in scorers(dataset.as_ref()) {
            let of_banks = banks.iter().map(|bank| (conversation_text(&bank.content), cases(dataset.as_ref(), bank)));
            let report = self_check(scorer, of_banks);
            if report.checked == 0 {
                // not every dataset names evidence of every kind
                assert_ne!(scorer.reads(), Reads::Answer, "{name}: {} grades nothing", scorer.name());
                continue;
            }
            assert_eq!(report.reasons(), Vec::<String>::new(), "{name}");
        }
    }
}

#[test]
fn the_same_answer_to_everything_earns_nothing() {
    for dataset in at_hand() {
        let (name, banks) = (&dataset.manifest().name, banks(dataset.as_ref()));
        for scorer in scorers(dataset.as_ref()).filter(|scorer| scorer.reads() == Reads::Answer) {
            for answer in ["", "ok", "Yes.", "I think so"] {
                let mean = mean(dataset.as_ref(), &banks, scorer, answer).expect("it grades answers");
                assert!(mean <= NOTHING, "{name}: '{answer}' scores {mean:.3} by {}", scorer.name());
            }
            if scorer.name().starts_with("choice") {
                let letters = ["(a)", "(b)", "(c)", "(d)"];
                let means = letters.map(|letter| mean(dataset.as_ref(), &banks, scorer, letter).expect("it does"));
                let asked = graded(dataset.as_ref(), &banks, scorer, letters[0]).len();
                assert!(asked < MANY || means.iter().all(|mean| *mean <= ONE_LETTER), "{name}: {means:?}");
                assert!((means.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{name}: one of them is right: {means:?}");
            }
        }
    }
}

/// How an id is made: its numbers as one digit, and what was drawn or hashed as nothing but that.
fn shape(id: &str) -> String {
    let of_run = |run: &str| match run {
        drawn if drawn.len() >= 8 && drawn.bytes().all(|byte| byte.is_ascii_hexdigit()) => "drawn".to_owned(),
        run => run.split(|c: char| c.is_ascii_digit()).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("0"),
    };
    id.split_inclusive(|c: char| !c.is_alphanumeric())
        .map(|run| {
            let (word, end) = match run.char_indices().next_back() {
                Some((at, end)) if !end.is_alphanumeric() => (&run[..at], &run[at..]),
                _ => (run, ""),
            };
            of_run(word) + end
        })
        .collect()
}

#[test]
fn numbers_and_drawn_parts_of_an_id_have_no_shape() {
    for (one, other) in [("D1:3", "D12:30"), ("a7e0f4d0b1-2:3", "0123456789-1:1"), ("S1", "S22")] {
        assert_eq!(shape(one), shape(other));
    }
    for (one, other) in [("q7", "q7_abs"), ("answer_12", "s_12"), ("D1:3", "S1:3")] {
        assert_ne!(shape(one), shape(other));
    }
}

/// A system sees ids of banks, sessions, turns and memories, and of questions those that are shown: who reads them learns neither
/// where the evidence is nor what is expected.
#[test]
fn no_id_that_reaches_a_system_tells() {
    for dataset in at_hand() {
        let name = &dataset.manifest().name;
        // shapes of turns and of entries
        let mut evidence = [BTreeSet::new(), BTreeSet::new()];
        let mut others = evidence.clone();
        let (mut answerable, mut unanswerable) = (BTreeSet::new(), BTreeSet::new());
        for bank in banks(dataset.as_ref()) {
            let golds: BTreeSet<&str> = bank
                .gold
                .iter()
                .flat_map(|gold| gold.evidence_turns.iter().chain(&gold.evidence_sessions))
                .map(String::as_str)
                .collect();
            for entry in &bank.content.entries {
                let turns: Vec<&str> = match entry {
                    StreamEntry::Session(session) => session.turns.iter().map(|turn| turn.id.as_str()).collect(),
                    StreamEntry::Memory(_) | StreamEntry::Update { .. } => Vec::new(),
                };
                for (level, id) in turns.into_iter().map(|id| (0, id)).chain([(1, entry.id())]) {
                    let shapes = if golds.contains(id) { &mut evidence } else { &mut others };
                    shapes[level].insert(shape(id));
                }
            }
            for (question, gold) in bank.questions.iter().zip(&bank.gold) {
                let shown = question.shown_id().to_lowercase();
                let of_gold = gold.facets.values().chain(&gold.evidence_sessions).map(|text| text.to_lowercase());
                let telling = of_gold.filter(|text| text.len() > 4 && shown.contains(text.as_str()));
                assert_eq!(telling.collect::<Vec<_>>(), Vec::<String>::new(), "{name}: {shown}");
                let shapes = if gold.gold.is_unanswerable() { &mut unanswerable } else { &mut answerable };
                // behind the id of the bank, which may be a hash
                let id = question.shown_id();
                shapes.insert(shape(id.strip_prefix(&bank.content.bank_id).unwrap_or(id)));
            }
        }
        for (evidence, others) in evidence.iter().zip(&others) {
            // where everything is evidence of something there is nothing to tell apart
            let tells = !others.is_empty() && !evidence.is_subset(others);
            assert!(!tells, "{name}: {evidence:?} of evidence, {others:?} of others");
        }
        assert!(
            answerable.is_empty() || unanswerable.is_subset(&answerable),
            "{name}: {unanswerable:?}, {answerable:?}"
        );
    }
}
