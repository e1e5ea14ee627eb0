//! A bank goes from one server to another by calls of their own, as a file that nobody reads.

use std::{fs, sync::Arc};

use bench_proto::dataset::{BankContent, Memory, StreamEntry};
use bench_systems::{BankRef, filling::store};
use bench_testkit::fakes::Fake;

use super::{of_text, robust::bank};

const STORES: &str = "
name: handing-on
retain: {request: 'POST /banks/{bank}/items', body: {id: '{id}', text: '{content}'}}
recall: {request: 'POST /banks/{bank}/search', body: {query: '{query}', k: '{k}'}, hits: [{list: hits, text: text, id: id}]}
";
const HANDS_ON: &str = "
export: {request: 'GET /banks/{bank}/export'}
import: {request: 'PUT /banks/{bank}/import'}
";
const MOST: u64 = 1 << 20;

fn filled() -> BankRef {
    let memory = |n: usize| Memory { id: format!("m{n}"), text: format!("heron number {n}"), ..Memory::default() };
    let entries = (0..50).map(|n| StreamEntry::Memory(memory(n))).collect();
    let content = BankContent { bank_id: "b".to_owned(), speakers: Vec::new(), entries };
    BankRef { content: Some(Arc::new(content)), ..bank() }
}

fn texts(fake: &Fake) -> Vec<String> {
    fake.with(|world| world.banks.values().flatten().map(|item| item.text.clone()).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_hands_on_another_one_takes_in() {
    let (one, other) = (Fake::start("whole"), Fake::start("whole"));
    let [from, to] = [&one, &other].map(|fake| of_text(&format!("{STORES}{HANDS_ON}"), Some(fake.url())));
    let bank = filled();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("bank");
    let empty = from.export_bank(&bank, &file, MOST).await.expect_err("nothing is there yet");
    assert!(empty.message.contains("nothing is handed on") && !file.exists(), "{}", empty.message);

    let entries = &bank.content.as_ref().expect("has content").entries;
    store(from.as_ref(), &bank, entries).await.expect("is stored");
    let bytes = from.export_bank(&bank, &file, MOST).await.expect("is handed on");
    assert_eq!(bytes, fs::metadata(&file).expect("is there").len());
    let there = from.export_bank(&bank, &file, MOST).await.expect_err("it is there already");
    assert_eq!((there.code.as_str(), fs::metadata(&file).expect("it stays").len()), ("system_request", bytes));
    to.import_bank(&bank, &file).await.expect("is taken in");
    assert_eq!((texts(&one).len(), texts(&other)), (50, texts(&one)));

    let small = folder.path().join("small");
    let large = from.export_bank(&bank, &small, bytes - 1).await.expect_err("it is larger");
    assert!(large.code == "system_response_too_long" && !small.exists(), "{} {}", large.code, large.message);
    one.with(|world| world.fails = (1, 500));
    let failed = from.export_bank(&bank, &small, MOST).await.expect_err("it fails");
    assert!(failed.code == "system_http_500" && !small.exists(), "{} {}", failed.code, failed.message);
    other.with(|world| world.fails = (1, 413));
    let refused = to.import_bank(&bank, &file).await.expect_err("it takes no more");
    assert!(refused.code == "system_http_413", "{} {}", refused.code, refused.message);
    let none = of_text(STORES, Some(one.url()));
    let cannot = none.export_bank(&bank, &small, MOST).await.expect_err("its file has no such call");
    assert!(cannot.code == "system_cannot" && !small.exists(), "{}", cannot.message);
}
