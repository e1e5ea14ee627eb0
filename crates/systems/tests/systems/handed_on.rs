//! A bank goes from one server to another by calls of their own, as a file that nobody reads.

use std::{fs, sync::Arc};

use bench_proto::dataset::{BankContent, Memory, StreamEntry};
use bench_systems::{BankRef, SystemSettings, adapter, filling::store};
use bench_testkit::fakes::Fake;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

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

#[test]
fn a_bank_is_counted_before_it_is_given_where_the_server_needs_no_number_for_it() {
    let counts = |verify: &str| {
        let spec = adapter::file::parse(&format!("{STORES}{verify}")).expect("the adapter reads");
        let spec = serde_json::to_value(&spec).expect("serialises");
        adapter::counts(&SystemSettings::from([(adapter::ADAPTER.to_owned(), spec)]))
    };
    assert!(counts("verify: {request: 'GET /banks/{bank}', count: items}\n"));
    // told to look for none it finds none
    assert!(!counts("verify: {request: 'GET /banks/{bank}', query: {last: '{expected}'}, count: items}\n"));
    assert!(!counts(""));
}

/// Where every request is answered with status 200 and this.
async fn answering(kind: &'static str, body: &'static str) -> String {
    answering_with(format!("content-type: {kind}\r\ncontent-length: {}", body.len()), body.to_owned()).await
}

/// Where every request is answered with status 200, these headers and this body, and the connection ends.
async fn answering_with(headers: String, body: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut bytes = Vec::new();
            while !bytes.windows(4).any(|four| four == b"\r\n\r\n") {
                assert!(socket.read_buf(&mut bytes).await.expect("readable") > 0, "the request ends");
            }
            let reply = format!("HTTP/1.1 200 OK\r\n{headers}\r\nconnection: close\r\n\r\n{body}");
            socket.write_all(reply.as_bytes()).await.expect("writes");
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_or_an_error_with_status_200_is_no_bank() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("bank");
    for (kind, body, code) in [
        ("text/html; charset=utf-8", "please log in", "system_no_reply"),
        ("application/octet-stream", "\n<!DOCTYPE html><html>502</html>", "system_no_reply"),
        ("application/json", r#"{"error": {"message": "bank is locked"}}"#, "system_refused"),
        ("text/plain", r#"{"error": "bank is locked"}"#, "system_refused"),
    ] {
        let from = of_text(&format!("{STORES}{HANDS_ON}"), Some(&answering(kind, body).await));
        let failed = from.export_bank(&bank(), &file, MOST).await.expect_err("it is no bank");
        assert!(failed.code == code && !file.exists(), "{kind} {body}: {} {}", failed.code, failed.message);
        assert!(
            ["log in", "502", "is locked"].iter().any(|words| failed.message.contains(words)),
            "{}",
            failed.message
        );
    }
    for body in [r#"{"error": null, "items": []}"#, "[{\"error\": \"is what a memory says\"}]"] {
        let from = of_text(&format!("{STORES}{HANDS_ON}"), Some(&answering("application/json", body).await));
        let bytes = from.export_bank(&bank(), &file, MOST).await.expect("is handed on");
        assert_eq!((bytes, fs::read_to_string(&file).expect("is there").as_str()), (body.len() as u64, body));
        fs::remove_file(&file).expect("is removed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bank_whose_end_nobody_tells_is_no_whole_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("bank");
    let export = async |headers: &str, body: &str| {
        let url = answering_with(headers.to_owned(), body.to_owned()).await;
        of_text(&format!("{STORES}{HANDS_ON}"), Some(&url)).export_bank(&bank(), &file, MOST).await
    };
    let failed = export("content-type: application/octet-stream", "half of").await.expect_err("it may be half of one");
    assert!(failed.code == "system_shape" && !file.exists(), "{} {}", failed.code, failed.message);
    assert!(failed.message.contains("neither Content-Length nor"), "{}", failed.message);
    let bytes = export("transfer-encoding: chunked", "7\r\nall of \r\n2\r\nit\r\n0\r\n\r\n").await;
    assert_eq!(bytes.expect("it is whole"), 9);
}
