//! What goes wrong between a runner and a system, and what is said about it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Json, Router, response::Redirect, routing::post};
use bench_proto::failure::FailureClass;
use bench_systems::{BankRef, MemorySystem, RecallQuery};
use bench_testkit::fakes::Fake;
use serde_json::{Value, json};

use super::{of_text, start, system};

const SMALL: &str = "
name: mine
timeout: 300ms
limits: {response_bytes: 4096, max_k: 50}
retain: {request: POST /add, body: {text: '{text}', user_id: '{bank}', metadata: {beliefId: '{id}'}}}
recall:
  request: POST /search
  body: {query: '{query}', user_id: '{bank}', limit: '{k}'}
  hits: [{list: results, text: memory, id: id}]
";

pub(super) fn bank() -> BankRef {
    BankRef {
        name: "bench-1-g1".to_owned(),
        handle: Some("bench-1-g1".to_owned()),
        bank_id: "b".to_owned(),
        content_hash: bench_proto::ids::Sha256Hash::of_bytes(b"b"),
        content: None,
    }
}

async fn failure(system: &Arc<dyn MemorySystem>, k: u32) -> bench_proto::failure::Failure {
    let query = RecallQuery { question_id: "q", text: "heron", k, visible_entries: 1, ..RecallQuery::default() };
    system.recall(&bank(), &query).await.expect_err("must fail")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn troubles_have_their_class_and_name_their_place() {
    let fake = Fake::start("precisionmembench");
    let mine = of_text(SMALL, Some(fake.url()));
    let mut lines = Vec::new();
    let mut note = |what: &str, failure: bench_proto::failure::Failure| {
        let message = failure.message.replace(fake.url(), "URL");
        lines.push(format!("{what}: {:?} {}: {message}", failure.class, failure.code));
    };
    fake.with(|world| world.other_shape = true);
    note("other shape", failure(&mine, 5).await);
    fake.with(|world| world.other_shape = false);
    for status in [500, 429, 401, 404] {
        fake.with(|world| world.fails = (1, status));
        note(&format!("status {status}"), failure(&mine, 5).await);
    }
    fake.with(|world| world.bloat = 10_000);
    note("too long", failure(&mine, 5).await);
    fake.with(|world| {
        world.bloat = 0;
        world.redirects_to = Some("http://169.254.169.254".to_owned());
    });
    note("redirect", failure(&mine, 5).await);
    fake.with(|world| world.redirects_to = None);
    note("k above the limit", failure(&mine, 51).await);
    fake.with(|world| world.slow = Duration::from_secs(3));
    note("hangs", failure(&mine, 5).await);
    insta::assert_snapshot!(lines.join("\n"));
}

/// A server with addresses that lead elsewhere.
async fn server_that_redirects() -> String {
    let found = async |Json(asked): Json<Value>| Json(json!({ "results": [{ "memory": asked["query"], "id": "m1" }] }));
    let router = Router::new()
        .route("/search", post(found))
        .route("/old/search", post(async || Redirect::temporary("/search")))
        .route("/far/search", post(async || Redirect::temporary("http://127.0.0.1:9/search")))
        .route("/round/search", post(async || Redirect::temporary("/round/search")));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("listens");
    let url = format!("http://{}", listener.local_addr().expect("has an address"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

#[tokio::test]
async fn redirects_are_followed_when_allowed_and_to_the_same_server_only() {
    let url = server_that_redirects().await;
    let at = |path: &str, more: &str| of_text(&format!("{SMALL}{more}"), Some(&format!("{url}{path}")));
    let query = RecallQuery { question_id: "q", text: "heron", k: 5, visible_entries: 1, ..RecallQuery::default() };
    let allowed = "allow: [redirects]\n";
    let found = at("/old", allowed).recall(&bank(), &query).await.expect("is followed, with its body");
    assert_eq!(found.hits[0].text, "heron");
    for (path, allow, said) in [
        ("/old", "", "redirected to '/search': use that address, or write `allow: [redirects]`"),
        ("/far", allowed, "redirected to another server: 'http://127.0.0.1:9/search'"),
        ("/round", allowed, "more than 3 redirects"),
    ] {
        let refused = failure(&at(path, allow), 5).await;
        assert_eq!((refused.class, refused.code.as_str()), (FailureClass::Permanent, "system_redirect"), "{path}");
        assert!(refused.message.contains(said), "{path}: {refused}");
    }
}

#[tokio::test]
async fn a_system_that_is_not_there_is_unreachable() {
    let nobody = of_text(SMALL, Some("http://127.0.0.1:9"));
    let failure = failure(&nobody, 5).await;
    assert_eq!((failure.class, failure.code.as_str()), (FailureClass::Transient, "system_unreachable"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_sent_and_never_shown() {
    let fake = Fake::start("mem0");
    // a variable that is there in every test: what it holds stands for a key
    let key = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let with = system("mem0", fake.url(), &[("MEM0_API_KEY", "CARGO_MANIFEST_DIR")]);
    fake.with(|world| world.key = Some(key.clone()));
    with.health().await.expect("the key was sent");
    let (_unused, without) = start("mem0");
    drop(without);
    fake.with(|world| world.key = Some("another".to_owned()));
    let failure = with.health().await.expect_err("the key is wrong");
    assert_eq!(failure.class, FailureClass::Terminal);
    assert!(!failure.message.contains(&key), "{}", failure.message);
}

/// A server that names banks as it is told, and remembers what it was asked.
async fn server_that_names_banks(handle: &'static str) -> (String, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&asked);
    let answer = async move |request: axum::extract::Request| {
        heard.lock().expect("no panic").push(format!("{} {}", request.method(), request.uri()));
        Json(json!({ "id": handle, "ids": [""], "results": [], "used": 9_000_000_000_000_000_000_u64, "made": 7 }))
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("listens");
    let url = format!("http://{}", listener.local_addr().expect("has an address"));
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
    (url, asked)
}

const NAMED_BY_THE_SERVER: &str = "
name: naming
open: {request: POST /users, handle: id}
retain: {request: POST /add, body: {text: '{text}', user_id: '{bank}'}}
recall: {request: POST /search, body: {query: '{query}'}, hits: [{list: results, text: memory}]}
reset: {request: 'DELETE /users/{bank}'}
";

/// `DELETE /users/` removes everybody.
#[tokio::test]
async fn what_names_no_bank_never_becomes_a_request_about_all_of_them() {
    for handle in ["", " ", "|", "ann|", "..", "../admin", "ann\nbob"] {
        let (url, asked) = server_that_names_banks(handle).await;
        let system = of_text(NAMED_BY_THE_SERVER, Some(&url));
        let refused = system.open_bank(&bank()).await.expect_err("is refused");
        assert!(refused.message.contains("names no bank"), "{handle}: {refused}");
        // as a store may hold it
        for stored in ["", "|", "host/1|", "."] {
            let system = of_text(NAMED_BY_THE_SERVER, Some(&url));
            let stored = BankRef { handle: Some(stored.to_owned()), ..bank() };
            let refused = system.reset_bank(&stored).await.expect_err("is refused");
            assert!(refused.message.contains("{bank} names nothing"), "{refused}");
        }
        let asked = asked.lock().expect("no panic");
        assert!(asked.iter().all(|line| line == "POST /users"), "{asked:?}");
    }
    let (url, asked) = server_that_names_banks("a/b?c#d%2e ä").await;
    let system = of_text(NAMED_BY_THE_SERVER, Some(&url));
    let odd = BankRef { handle: Some(system.open_bank(&bank()).await.expect("is a name")), ..bank() };
    system.reset_bank(&odd).await.expect("is removed");
    assert_eq!(asked.lock().expect("no panic")[1], "DELETE /users/a%2Fb%3Fc%23d%252e%20%C3%A4");
}

/// The same of items that are removed one by one.
#[tokio::test]
async fn an_item_without_a_name_is_not_removed() {
    let (url, asked) = server_that_names_banks("b").await;
    let purging = format!(
        "{NAMED_BY_THE_SERVER}purge: {{list: {{request: GET /items}}, ids: ids.*, remove: {{request: 'DELETE /items/{{item}}'}}}}\n"
    );
    let refused = of_text(&purging, Some(&url)).reset_bank(&bank()).await.expect_err("is refused");
    assert!(refused.message.contains("{item} names nothing"), "{refused}");
    assert_eq!(*asked.lock().expect("no panic"), ["GET /items"]);
}

#[tokio::test]
async fn tokens_that_cannot_be_true_are_no_count() {
    let (url, _) = server_that_names_banks("b").await;
    let counting = NAMED_BY_THE_SERVER.replace(
        "hits: [{list: results, text: memory}]",
        "hits: [{list: results, text: memory}], usage: {prompt_tokens: used, completion_tokens: made}",
    );
    let query = RecallQuery { question_id: "q", text: "heron", k: 5, visible_entries: 1, ..RecallQuery::default() };
    let usage = of_text(&counting, Some(&url)).recall(&bank(), &query).await.expect("is read").usage;
    assert_eq!((usage.prompt_tokens, usage.completion_tokens), (0, 7));
}
