//! A system that knows the answers by the ids of a dataset's questions: with what it is sent it finds none of them. Such a table made
//! a published 589 of 589.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use bench_datasets::OpenOptions;
use bench_proto::{dataset::Bank, ids::Sha256Hash};
use bench_systems::{BankRef, MemorySystem, RecallQuery};
use bench_testkit::fakes::Fake;
use serde_json::Value;

use super::of_text;

/// Questions of a bank, and banks of a dataset, that are asked.
const QUESTIONS: usize = 12;
const BANKS: usize = 3;

/// All that a file can send of a question.
const SPY: &str = "
name: spy
can: {order: true}
retain: {request: 'POST /banks/{bank}/items', body: {id: '{id}', key: '{key}', text: '{content}'}}
recall:
  request: POST /banks/{bank}/search
  body: {query: '{query}', k: '{k}', question: '{question_id}', time: '{time?}', asked: '{time_text?}', filter: {tags: '{tags?}', user: '{user?}', scopes: '{scopes?}', from: '{from?}', until: '{until?}'}}
  hits: [{list: hits, text: text, id: id}]
verify: {request: 'GET /banks/{bank}', count: items}
reset: {request: 'DELETE /banks/{bank}'}
health: {request: GET /health}
";

/// Every text in a value.
fn texts<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| texts(field, found)),
        _ => {}
    }
}

/// Datasets whose files are at hand, and those that need none.
fn at_hand() -> Vec<Box<dyn bench_datasets::Dataset>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let reference = std::env::var_os("BENCH_REFERENCE_DIR").map_or_else(|| here.join("../shared"), PathBuf::from);
    let mut open = Vec::new();
    for known in bench_datasets::known() {
        let options = |folder: PathBuf| OpenOptions {
            datasets_dir: Some(folder),
            cache_dir: here.join("target/datasets-of-tests"),
            ..OpenOptions::default()
        };
        let tried = [here.join("datasets/testdata"), reference.join("data")].into_iter();
        let dataset = tried.map(|folder| bench_datasets::open(&known.manifest.name, &options(folder), &|_, _| ()));
        match dataset.flatten().next() {
            Some(dataset) => open.push(dataset),
            None => eprintln!("NOT TESTED: the files of {} are nowhere; set BENCH_REFERENCE_DIR", known.manifest.name),
        }
    }
    open
}

async fn ask(system: &dyn MemorySystem, bank: &Bank, number: usize) {
    let place = BankRef {
        name: format!("bench-{number}-g1"),
        handle: None,
        bank_id: bank.content.bank_id.clone(),
        content_hash: Sha256Hash::of(bank.content.bank_id.as_bytes()),
        content: Some(Arc::new(bank.content.clone())),
    };
    for question in bank.questions.iter().take(QUESTIONS) {
        // what is found does not matter, nor whether the fake has such a bank
        let _ = system.recall(&place, &RecallQuery::of(question, 10, bank.content.entries.len())).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_of_answers_by_question_ids_is_of_no_use() {
    let (mut datasets, mut sent_in_all) = (0, 0);
    for dataset in at_hand() {
        let fake = Fake::start("whole");
        let system = of_text(SPY, Some(fake.url()));
        let banks: Vec<Bank> =
            (0..dataset.bank_count().min(BANKS)).map(|bank| dataset.bank(bank).expect("a bank")).collect();
        let mut answers: BTreeMap<&str, String> = BTreeMap::new();
        for (question, gold) in banks.iter().flat_map(|bank| bank.questions.iter().zip(&bank.gold)) {
            for id in [question.question_id.as_str(), question.shown_id()] {
                answers.insert(id, gold.gold.text());
            }
        }
        for (number, bank) in banks.iter().enumerate() {
            ask(&*system, bank, number).await;
        }
        let mut bodies = fake.with(|world| world.bodies.clone());
        bodies.retain(|body| body.get("question").is_some());
        assert!(!bodies.is_empty(), "{}: nothing was sent", dataset.manifest().name);
        for body in &bodies {
            let mut seen = Vec::new();
            texts(body, &mut seen);
            let known: Vec<_> = seen.iter().filter_map(|text| answers.get_key_value(*text)).collect();
            assert!(known.is_empty(), "{}: {known:?} in {body}", dataset.manifest().name);
        }
        sent_in_all += bodies.len();
        datasets += 1;
    }
    assert!(datasets >= 8 && sent_in_all >= 100, "{datasets} datasets, {sent_in_all} requests");
}
