//! What a bank holds is listed page by page, to its end, in whatever way a system turns its pages.

use std::sync::Arc;

use axum::{
    Json, Router,
    routing::{MethodRouter, post},
};
use bench_proto::dataset::{BankContent, Memory, StreamEntry};
use bench_systems::{
    BankRef, BuildContext, ListCursor, MemorySystem, SystemSettings, check::Outcome, filling::store, registry,
};
use bench_testkit::fakes::Fake;
use serde_json::{Value, json};

use super::{checked, of_text, outcome, robust::bank};

const MEMORIES: usize = 450;

fn memory(id: &str, text: String) -> Memory {
    Memory { id: id.to_owned(), text, ..Memory::default() }
}

fn filled() -> BankRef {
    let entry = |n: usize| StreamEntry::Memory(memory(&format!("m{n}"), format!("heron number {n}")));
    let entries = (0..MEMORIES).map(entry).collect();
    let content = BankContent { bank_id: "b".to_owned(), speakers: Vec::new(), entries };
    BankRef { content: Some(Arc::new(content)), ..bank() }
}

fn adapter(list: &str) -> String {
    format!(
        "
name: listing
limits: {{batch: 50}}
item: {{id: '{{id}}', key: '{{key}}', text: '{{content}}'}}
retain: {{request: 'POST /banks/{{bank}}/batch', body: {{items: '{{items}}'}}, stored: stored}}
recall: {{request: 'POST /banks/{{bank}}/search', body: {{query: '{{query}}', k: '{{k}}'}}, hits: [{{list: hits, text: text, id: id}}]}}
reset: {{request: 'DELETE /banks/{{bank}}'}}
list: {list}
"
    )
}

const BY_OFFSET: &str = "{request: 'POST /banks/{bank}/list', body: {offset: '{offset}', limit: '{limit}'}, hits: [{list: items, text: text, id: id}]}";
const BY_CURSOR: &str =
    "{request: 'POST /list', body: {after: '{cursor?}'}, hits: [{list: items, text: text, id: id}], next: more.after}";

/// Serves a listing; its address.
async fn served(list: MethodRouter) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let url = format!("http://{}", listener.local_addr().expect("has an address"));
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/list", list)).await });
    url
}

/// The pages of a listing: how many items each has, and the ids of all.
async fn pages(system: &dyn MemorySystem, bank: &BankRef) -> (Vec<usize>, Vec<String>) {
    let (mut from, mut sizes, mut ids) = (ListCursor::default(), Vec::new(), Vec::new());
    loop {
        let page = system.list(bank, u32::MAX, &from).await.expect("is listed");
        sizes.push(page.items.len());
        ids.extend(page.items.into_iter().map(|item| item.id));
        match page.next {
            Some(next) => from = next,
            None => return (sizes, ids),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bank_is_listed_by_offsets_until_a_page_is_empty() {
    let fake = Fake::start("whole");
    let system = of_text(&adapter(BY_OFFSET), Some(fake.url()));
    assert!(system.capabilities().lists);
    let bank = filled();
    store(system.as_ref(), &bank, &bank.content.as_ref().expect("has content").entries).await.expect("is stored");
    let (sizes, ids) = pages(system.as_ref(), &bank).await;
    assert_eq!(sizes, [200, 200, 50, 0]);
    assert_eq!(ids, (0..MEMORIES).map(|n| format!("m{n}")).collect::<Vec<_>>(), "placed among what was stored");
    let (_, steps) = checked(system.as_ref()).await;
    assert_eq!(outcome(&steps, "lists"), Outcome::Pass, "{steps:#?}");
    // a listing of all banks is found out
    let all = BY_OFFSET.replace("/banks/{bank}/list", "/banks/bench-check-1-blue/list");
    let system = of_text(&adapter(&all), Some(fake.url()));
    let (_, steps) = checked(system.as_ref()).await;
    assert_eq!(outcome(&steps, "lists"), Outcome::Fail, "what was stored is not in it: {steps:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bank_is_listed_by_cursors_until_there_is_none_and_one_that_stands_still_is_a_failure() {
    let list = |Json(body): Json<Value>| async move {
        let (items, next) = match body["after"].as_str() {
            None => (json!([{ "id": "m1", "text": "heron number 1" }]), json!({ "after": "a" })),
            Some("a") => (json!([]), json!({ "after": "b" })),
            Some("b") => (json!([{ "id": "m2", "text": "heron number 2" }]), json!({ "after": null })),
            Some(other) => (json!([]), json!({ "after": other })),
        };
        Json(json!({ "items": items, "more": next }))
    };
    let system = of_text(&adapter(BY_CURSOR), Some(&served(post(list)).await));
    let (sizes, ids) = pages(system.as_ref(), &filled()).await;
    assert_eq!((sizes, ids), (vec![1, 0, 1], vec!["m1".to_owned(), "m2".to_owned()]));
    let stuck = ListCursor { cursor: Some("stuck".to_owned()), ..ListCursor::default() };
    let failure = system.list(&filled(), 1, &stuck).await.expect_err("has no end");
    assert!(failure.message.contains("the listing has no end"), "{failure}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_listed_is_compared_without_the_time_that_a_hit_has() {
    let list = || async { Json(json!({ "items": [{ "text": "heron number 1", "when": "2023-05-08" }] })) };
    let timed = "{request: 'POST /list', hits: [{list: items, text: text, time: when}]}";
    let system = of_text(&adapter(timed), Some(&served(post(list)).await));
    let page = system.list(&filled(), u32::MAX, &ListCursor::default()).await.expect("is listed");
    assert_eq!((page.items[0].text.as_str(), page.items[0].id.as_str()), ("heron number 1", "m1"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_are_asked_for_by_number_until_the_system_says_that_there_is_no_other() {
    let list = |Json(body): Json<Value>| async move {
        let page = body["page"].as_u64().expect("a number");
        let item = json!({ "id": format!("m{page}"), "text": format!("heron number {page}") });
        Json(json!({ "items": [item], "has_more": page < 3 }))
    };
    let by_number =
        "{request: 'POST /list', body: {page: '{page}'}, hits: [{list: items, text: text, id: id}], next: has_more}";
    let system = of_text(&adapter(by_number), Some(&served(post(list)).await));
    let (sizes, ids) = pages(system.as_ref(), &filled()).await;
    assert_eq!((sizes, ids), (vec![1, 1, 1], ["m1", "m2", "m3"].map(str::to_owned).to_vec()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn built_in_systems_list_what_updates_have_left() {
    let system = registry::build("bm25", &SystemSettings::new(), &BuildContext::default()).expect("builds");
    let entries = vec![
        StreamEntry::Memory(memory("m1", "tea".to_owned())),
        StreamEntry::Memory(memory("m2", "cats".to_owned())),
        StreamEntry::Update { replaces: "m1".to_owned(), memory: Some(memory("m3", "coffee".to_owned())) },
        StreamEntry::Update { replaces: "m2".to_owned(), memory: None },
    ];
    let content = BankContent { bank_id: "b".to_owned(), speakers: Vec::new(), entries };
    let bank = BankRef { content: Some(Arc::new(content)), ..bank() };
    let held = system.list(&bank, 2, &ListCursor::default()).await.expect("is listed").items;
    assert_eq!(held.iter().map(|item| item.id.as_str()).collect::<Vec<_>>(), ["m1", "m2"]);
    assert_eq!(pages(system.as_ref(), &bank).await, (vec![1], vec!["m3".to_owned()]));
}

#[test]
fn a_listing_says_how_its_pages_are_turned() {
    let refused = |list: &str| {
        let spec = bench_systems::adapter::file::parse(&adapter(list)).expect("reads");
        bench_systems::adapter::check(&spec).expect_err("is refused")
    };
    for (list, problem) in [
        ("{request: GET /list}", "list.hits is missing"),
        ("{request: GET /list, hits: [{list: a, text: b}], next: c}", "give both, or neither"),
        ("{request: 'GET /list/{cursor}', hits: [{list: a, text: b}]}", "give both, or neither"),
        ("{request: GET /list, hits: [{list: a, text: b}], count: c}", "list.count: this call does not read it"),
        (BY_OFFSET.replace("}]}", "}], most: 9}").as_str(), "list.most: it is for a listing without pages"),
    ] {
        let said = refused(list);
        assert!(said.contains(problem), "{list}: {said}");
    }
    assert!(
        bench_systems::adapter::check(&bench_systems::adapter::file::parse(&adapter(BY_CURSOR)).expect("reads"))
            .is_ok()
    );
}
