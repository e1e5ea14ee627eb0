//! Updates, withdrawals, labels, parts of sessions and filters reach systems of others as the built-ins honour them.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use bench_proto::{
    dataset::{BankContent, Filter, FilterParts, Memory, Session, StreamEntry, Turn},
    failure::FailureClass,
    ids::Sha256Hash,
    step::HitLevel,
};
use bench_systems::{
    BankRef, BuildContext, Capabilities, MemorySystem, RecallQuery, StepContext, SystemSettings, check::Outcome,
    filled_again, registry,
};
use bench_testkit::fakes::Fake;
use serde_json::{Value, json};

use super::{checked, of_text, outcome};

const ALL: &str = "
name: whole
can: {order: true}
retain:
  request: POST /banks/{bank}/items
  body: &item {id: '{id}', key: '{key}', text: '{content}', session: '{session_id}', time: '{time?}', tags: '{tags?}', user: '{user?}', scopes: '{scopes?}', kind: '{field.kind?}', fields: '{fields?}'}
update: {request: 'PUT /banks/{bank}/items/{replaces_key}', body: *item}
forget: {request: 'DELETE /banks/{bank}/items/{replaces_key}'}
ready: {when: count, call: {request: 'GET /banks/{bank}', count: items}, every: 10ms, stalled_after: 100ms}
recall:
  request: POST /banks/{bank}/search
  body: {query: '{query}', k: '{k}', asked: '{time?}', filter: {tags: '{tags?}', user: '{user?}', scopes: '{scopes?}', from: '{from?}', until: '{until?}'}}
  hits: [{list: hits, text: text, id: id, score: score}]
verify: {request: 'GET /banks/{bank}', count: items}
reset: {request: 'DELETE /banks/{bank}'}
health: {request: GET /health}
";

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

fn memory(id: &str, text: &str) -> Memory {
    Memory { id: id.to_owned(), text: format!("kites {text}"), ..Memory::default() }
}

fn part(number: u32, time: Option<&str>) -> StreamEntry {
    let turn = |at: u32| Turn {
        id: format!("S1:{number}.{at}"),
        speaker: ["user", "assistant"][at as usize % 2].to_owned(),
        text: format!("kites and more of part {number}, line {at}"),
        time: time.map(str::to_owned).filter(|_| at == 1),
        ..Turn::default()
    };
    StreamEntry::Session(Session {
        id: "S1".to_owned(),
        part: number,
        time: Some("2031-05-01T09:00:00".to_owned()),
        turns: (0..2).map(turn).collect(),
        ..Session::default()
    })
}

/// A stream with everything that one may hold.
fn stream() -> BankContent {
    let labelled = Memory {
        time: Some("2031-05-03T08:00:00".to_owned()),
        tags: words(&["food", "home"]),
        user: Some("ann".to_owned()),
        scopes: words(&["work", "all"]),
        fields: [("kind".to_owned(), "belief".to_owned())].into(),
        ..memory("m1", "green tea")
    };
    let of_bo = Memory {
        user: Some("bo".to_owned()),
        scopes: words(&["all"]),
        tags: words(&["food"]),
        ..memory("m2", "rye bread")
    };
    let update = |replaces: &str, memory| StreamEntry::Update { replaces: replaces.to_owned(), memory };
    BankContent {
        bank_id: "b".to_owned(),
        speakers: Vec::new(),
        entries: vec![
            part(0, None),
            StreamEntry::Memory(labelled.clone()),
            StreamEntry::Memory(of_bo.clone()),
            part(1, Some("2031-05-04T10:00:00")),
            update("m1", Some(Memory { text: "kites black tea".to_owned(), id: "m3".to_owned(), ..labelled })),
            StreamEntry::Memory(Memory { user: Some("ann".to_owned()), ..memory("m4", "a red bicycle") }),
            update("m2", None),
            update("m4", Some(Memory { user: Some("ann".to_owned()), ..memory("m4", "a blue bicycle") })),
        ],
    }
}

fn bank(content: &BankContent) -> BankRef {
    BankRef {
        name: "bench-1-g1".to_owned(),
        handle: Some("bench-1-g1".to_owned()),
        bank_id: content.bank_id.clone(),
        content_hash: Sha256Hash::of_bytes(&serde_json::to_vec(content).expect("serialises")),
        content: Some(Arc::new(content.clone())),
    }
}

fn filters() -> Vec<Filter> {
    let time = |time: &str| Some(time.to_owned());
    vec![
        Filter::default(),
        Filter { tags: words(&["food"]), ..Filter::default() },
        Filter { tags: words(&["food", "home"]), ..Filter::default() },
        Filter { tags: words(&["food", "garden"]), ..Filter::default() },
        Filter { user: Some("ann".to_owned()), ..Filter::default() },
        Filter { scopes: words(&["all"]), ..Filter::default() },
        Filter { scopes: words(&["nowhere", "work"]), ..Filter::default() },
        Filter { from: time("2031-05-03T08:00:00"), ..Filter::default() },
        Filter { until: time("2031-05-03T08:00:00"), ..Filter::default() },
        Filter { from: time("2031-05-02T00:00:00"), until: time("2031-05-04T09:59:59"), ..Filter::default() },
        Filter {
            user: Some("ann".to_owned()),
            tags: words(&["home"]),
            from: time("2031-01-01T00:00:00"),
            ..Filter::default()
        },
    ]
}

async fn retained(system: &dyn MemorySystem, bank: &BankRef, entries: usize) {
    let content = bank.content.as_deref().expect("has content");
    for entry in &content.entries[..entries] {
        system.retain(bank, std::slice::from_ref(entry), StepContext::default()).await.expect("stores");
    }
}

async fn found(
    system: &dyn MemorySystem,
    bank: &BankRef,
    visible: usize,
    filter: &Filter,
) -> BTreeSet<(String, String, String)> {
    let query = RecallQuery {
        question_id: "q",
        text: "kites",
        k: 100,
        visible_entries: visible as u32,
        filter,
        ..RecallQuery::default()
    };
    let hits = system.recall(bank, &query).await.expect("finds").hits;
    hits.into_iter().map(|hit| (hit.id, hit.session_id, hit.text)).collect()
}

/// A system of others finds after each entry, and for each filter, what a built-in finds.
async fn finds_what_a_built_in_finds(system: &dyn MemorySystem) {
    let whole = registry::build("full-context", &SystemSettings::new(), &BuildContext::default()).expect("builds");
    let content = stream();
    for entries in 1..=content.entries.len() {
        let bank = BankRef {
            name: format!("bench-{entries}-g1"),
            handle: Some(format!("bench-{entries}-g1")),
            ..bank(&content)
        };
        system.open_bank(&bank).await.expect("opens");
        retained(system, &bank, entries).await;
        let counted = system.verify(&bank, entries as u32).await.expect("counts").expect("can");
        assert_eq!(counted.expected, counted.found, "after {entries} entries");
        for filter in filters() {
            let (theirs, ours) =
                (found(system, &bank, entries, &filter).await, found(whole.as_ref(), &bank, entries, &filter).await);
            assert_eq!(theirs, ours, "after {entries} entries, {filter:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_adapter_with_everything_finds_what_a_built_in_finds() {
    let fake = Fake::start("whole");
    let system = of_text(ALL, Some(fake.url()));
    let Capabilities { updates, withdraws, filters, .. } = system.capabilities().clone();
    assert_eq!((updates, withdraws, filters), (true, true, FilterParts::ALL));
    finds_what_a_built_in_finds(system.as_ref()).await;
    let bodies = fake.with(|world| world.bodies.clone());
    let kinds: BTreeSet<&str> = bodies.iter().filter_map(|body| body["kind"].as_str()).collect();
    assert_eq!(kinds, BTreeSet::from(["belief"]), "its own fields reach it");
    assert!(bodies.iter().any(|body| body["fields"] == json!({"kind": "belief"})));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_update_what_is_replaced_is_forgotten_and_the_new_one_retained() {
    let fake = Fake::start("whole");
    let update = "update: {request: 'PUT /banks/{bank}/items/{replaces_key}', body: *item}\n";
    let system = of_text(&ALL.replace(update, ""), Some(fake.url()));
    assert!(system.capabilities().updates);
    finds_what_a_built_in_finds(system.as_ref()).await;
    assert!(fake.with(|world| world.requests.iter().all(|request| !request.starts_with("PUT"))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_with_everything_finds_what_a_built_in_finds() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/memory.py");
    let can = "can: {updates: true, withdraws: true, filters: [tags, user, scopes, from, until]}";
    let system = of_text(&format!("name: example\ncommand: [python3, '{example}']\n{can}\n"), None);
    assert_eq!(system.capabilities().filters, FilterParts::ALL, "several scopes are one too");
    finds_what_a_built_in_finds(system.as_ref()).await;
    system.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_forgets_with_its_end_is_given_its_banks_again() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/memory.py");
    let forgets =
        "can: {survives_restart: false, updates: true, withdraws: true, filters: [tags, user, scopes, from, until]}";
    let system = of_text(&format!("name: forgets\ncommand: [python3, '{example}']\n{forgets}\n"), None);
    finds_what_a_built_in_finds(system.as_ref()).await;
    let content = stream();
    let bank = bank(&content);
    let _ = system.open_bank(&bank).await.expect("opens");
    retained(system.as_ref(), &bank, 4).await;
    let all = Filter::default();
    let whole = |entries| found(system.as_ref(), &bank, entries, &all);
    let before = whole(4).await;
    assert!(before.len() > 3, "{before:?}");

    system.close().await;
    let fills = Arc::new(AtomicU32::new(0));
    let noted = async |entries| {
        let fills = Arc::clone(&fills);
        let notes = Arc::new(move || {
            let _ = fills.fetch_add(1, Ordering::SeqCst);
            Box::new(()) as filled_again::Held
        });
        filled_again::noting(notes, whole(entries)).await
    };
    assert_eq!(noted(4).await, before, "the next process is given it before it is asked");
    assert_eq!(noted(4).await, before);
    assert_eq!(fills.load(Ordering::SeqCst), 1, "the second one only asks");
    let counted = system.verify(&bank, 4).await.expect("counts").expect("can");
    assert_eq!((counted.expected, counted.found), (before.len() as u64, before.len() as u64), "and given it once");
    assert_ne!(whole(2).await, before, "a question of earlier on sees no more than there was");
    let next = std::slice::from_ref(&content.entries[4]);
    let lost = system.retain(&bank, next, StepContext::default()).await.expect_err("it begins anew");
    assert_eq!((lost.code.as_str(), lost.class), ("memories_lost", FailureClass::Transient), "{lost}");
    let unknown = BankRef { content: None, ..bank.clone() };
    let lost = system.readiness(&unknown, 4).await.expect_err("nobody can give it again");
    assert_eq!((lost.code.as_str(), lost.class), ("memories_lost", FailureClass::Permanent), "{lost}");
    system.reset_bank(&bank).await.expect("there is nothing to remove");
    system.close().await;
}

/// What a system is not known to do is not sent to it as something else: the plan has said what becomes of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_system_that_only_stores_gets_updates_as_further_memories_and_no_withdrawals() {
    let fake = Fake::start("whole");
    let without = |text: &str, key: &str| {
        text.lines().filter(|line| !line.starts_with(key)).map(|line| format!("{line}\n")).collect::<String>()
    };
    let system = of_text(&without(&without(ALL, "update:"), "forget:"), Some(fake.url()));
    let Capabilities { updates, withdraws, .. } = *system.capabilities();
    assert_eq!((updates, withdraws), (false, false));
    let bank = bank(&stream());
    retained(system.as_ref(), &bank, 8).await;
    let texts: Vec<Value> = fake.with(|world| world.bodies.iter().map(|body| body["id"].clone()).collect());
    assert_eq!(json!(texts), json!(["S1:0.0", "S1:0.1", "m1", "m2", "S1:1.0", "S1:1.1", "m3", "m4", "m4"]));
    let counted = system.verify(&bank, 8).await.expect("counts").expect("can");
    assert_eq!((counted.expected, counted.found), (9, 9));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_memory_in_parts_goes_with_all_of_them() {
    let fake = Fake::start("whole");
    let long = Memory { text: "a long story of kites ".repeat(30), ..memory("m1", "") };
    let update = |memory| StreamEntry::Update { replaces: "m1".to_owned(), memory };
    let entries = vec![StreamEntry::Memory(long), update(Some(memory("m2", "short")))];
    let content = BankContent { bank_id: "b".to_owned(), speakers: Vec::new(), entries };
    let bank = bank(&content);
    let limited = format!("{ALL}limits: {{text_bytes: 200}}\n");
    let system = of_text(&limited, Some(fake.url()));
    retained(system.as_ref(), &bank, 1).await;
    assert!(fake.with(|world| world.banks["bench-1-g1"].len()) > 3);
    retained_from(system.as_ref(), &bank, 1).await.expect("replaces all of them");
    assert_eq!(fake.with(|world| world.banks["bench-1-g1"].len()), 1);

    let only_updates = limited.replace("forget: {request: 'DELETE /banks/{bank}/items/{replaces_key}'}\n", "");
    let refused = retained_from(of_text(&only_updates, Some(fake.url())).as_ref(), &bank, 1).await;
    assert_eq!(refused.expect_err("would leave parts behind").code, "system_cannot");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_forgetting_costs_is_counted() {
    let fake = Fake::start("whole");
    let request = "{request: 'DELETE /banks/{bank}/items/{replaces_key}'";
    let counts = ALL.replace(&format!("{request}}}"), &format!("{request}, usage: {{prompt_tokens: tokens}}}}"));
    let system = of_text(&counts, Some(fake.url()));
    let update = |replaces: &str, memory| StreamEntry::Update { replaces: replaces.to_owned(), memory };
    let entries = vec![StreamEntry::Memory(memory("m1", "tea")), update("m1", None)];
    let bank = bank(&BankContent { bank_id: "b".to_owned(), speakers: Vec::new(), entries: entries.clone() });
    retained(system.as_ref(), &bank, 1).await;
    let receipt = system.retain(&bank, &entries[1..], StepContext::default()).await.expect("forgets");
    assert_eq!(receipt.usage.prompt_tokens, 3);
}

async fn retained_from(
    system: &dyn MemorySystem,
    bank: &BankRef,
    from: usize,
) -> Result<(), bench_proto::failure::Failure> {
    let content = bank.content.as_deref().expect("has content");
    system.retain(bank, &content.entries[from..], StepContext::default()).await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_of_a_session_are_stored_apart_and_found_as_one() {
    let fake = Fake::start("whole");
    let system = of_text(&format!("{ALL}unit: session\n"), Some(fake.url()));
    let mut content = stream();
    content.entries.retain(|entry| matches!(entry, StreamEntry::Session(_)));
    let bank = bank(&content);
    retained(system.as_ref(), &bank, 2).await;
    let bodies = fake.with(|world| world.bodies.clone());
    assert_eq!((&bodies[0]["id"], &bodies[1]["id"]), (&json!("S1"), &json!("S1-part-2")));
    assert_eq!((&bodies[0]["session"], &bodies[1]["session"]), (&json!("S1"), &json!("S1")));
    let text = bodies[1]["text"].as_str().expect("a text");
    assert!(text.contains("[2031-05-04T10:00:00] assistant: kites"), "a turn's own time is shown: {text}");
    let query = RecallQuery { question_id: "q", text: "kites", k: 9, visible_entries: 2, ..RecallQuery::default() };
    let hits = system.recall(&bank, &query).await.expect("finds").hits;
    assert_eq!(hits.len(), 2);
    for hit in hits {
        assert_eq!((hit.id.as_str(), hit.session_id.as_str(), hit.level), ("S1", "S1", Some(HitLevel::Session)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_check_looks_at_changes_and_filters_and_finds_those_that_are_promised_only() {
    let checks = ["store changes", "updates", "withdrawals", "filters"];
    let fake = Fake::start("whole");
    let (_, steps) = checked(of_text(ALL, Some(fake.url())).as_ref()).await;
    assert!(steps.iter().all(|step| step.outcome != Outcome::Fail), "{steps:#?}");
    assert_eq!(checks.map(|check| outcome(&steps, check)), [Outcome::Pass; 4], "{steps:#?}");
    assert!(fake.with(|world| world.banks.is_empty()), "what it stored is gone");

    // its requests say that it can, and nothing comes of it
    let deaf = ALL
        .replace("filter: {", "fillter: {")
        .replace("'DELETE /banks/{bank}/items/{replaces_key}'", "'GET /banks/{bank}', query: {key: '{replaces_key}'}");
    let deaf = deaf.replace(
        "when: count, call: {request: 'GET /banks/{bank}', count: items}, every: 10ms, stalled_after: 100ms",
        "when: promised",
    );
    let (_, steps) = checked(of_text(&deaf, Some(fake.url())).as_ref()).await;
    assert_eq!(
        ["updates", "withdrawals", "filters"].map(|check| outcome(&steps, check)),
        [Outcome::Pass, Outcome::Fail, Outcome::Fail]
    );
    let (plain, _) = checked(super::start("mem0").1.as_ref()).await;
    assert!(checks.iter().all(|check| plain.contains(&format!("{check}: cannot"))), "{plain:?}");
}

/// What is told of a search that has no part of a filter: the plan of a run asks for it.
#[test]
fn the_filters_of_an_adapter_are_those_that_all_its_searches_send() {
    let filters = |text: &str| of_text(text, Some("http://127.0.0.1:9")).capabilities().filters;
    assert_eq!(
        filters(&ALL.replace(", scopes: '{scopes?}', from", ", scope: '{scope?}', from")),
        FilterParts { scopes: false, ..FilterParts::ALL }
    );
    assert_eq!(
        filters(&ALL.replace("filter: {tags: '{tags?}'", "filter: {tags: []")),
        FilterParts { tags: false, ..FilterParts::ALL }
    );
    let also = "recall_also: [{request: POST /other, body: {user: '{user}'}, hits: [{list: hits, text: text}]}]\n";
    assert_eq!(filters(&format!("{ALL}{also}")), FilterParts { user: true, ..FilterParts::default() });
}

/// A memory of several scopes that is stored in the first of them is lost to questions about the others: the plan of a run
/// asks whether it may be.
#[test]
fn a_file_that_sends_one_scope_of_a_memory_says_so() {
    let stores_all = |text: &str| of_text(text, Some("http://127.0.0.1:9")).capabilities().several_scopes;
    let one = ALL.replace("scopes: '{scopes?}', kind", "scope: '{scope?}', kind");
    assert!(stores_all(ALL) && !stores_all(&one));
    assert!(stores_all(&one.replace("kind: ", "all: '{scopes?}', kind: ")), "beside all of them one does no harm");
    assert!(stores_all(&ALL.replace("scopes: '{scopes?}', kind", "kind")), "what has no scopes at all loses none");
    let batch = "name: batch\nitem: {text: '{content}', scope: '{scope?}'}\n\
                 retain: {request: POST /items, body: {items: '{items}'}}\n\
                 recall: {request: POST /search, body: {query: '{query}'}, hits: [{list: hits, text: text}]}\n";
    assert!(!stores_all(batch) && stores_all(&batch.replace("scope: '{scope?}'", "scopes: '{scopes?}'")));
    let update = ALL.replace("body: *item", "body: {text: '{text}', scope: '{scope?}'}");
    assert!(!stores_all(&update), "what replaces another one is stored too");
}

/// Nothing that a system gets of a question tells of its answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn systems_see_an_id_of_this_bank_alone_and_the_time_of_a_question() {
    let fake = Fake::start("whole");
    let system = of_text(&ALL.replace("asked: '{time?}'", "asked: '{time?}', id: '{question_id}'"), Some(fake.url()));
    let question = bench_proto::dataset::Question {
        question_id: "77_abs".to_owned(),
        shown_id: Some("q7".to_owned()),
        text: "kites?".to_owned(),
        time: Some("2031-06-01T10:00:00".to_owned()),
        ask_after: 9,
        k: Some(70),
        ..bench_proto::dataset::Question::default()
    };
    let bank = bank(&stream());
    let query = RecallQuery::from_question(&question, 10, 8);
    assert_eq!((query.k, query.visible_entries), (70, 8), "its own number, and no more than there is");
    system.recall(&bank, &query).await.expect("finds");
    let last = || fake.with(|world| world.bodies.last().cloned().expect("a request"));
    let sent = last();
    let id = sent["id"].as_str().expect("an id").to_owned();
    assert!(id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}: neither of both ids");
    assert_eq!(sent, json!({"query": "kites?", "k": 70, "asked": "2031-06-01T10:00:00Z", "id": &id, "filter": {}}));
    system.recall(&bank, &query).await.expect("finds");
    assert_eq!(last()["id"], json!(id), "the same whenever it is asked");
    let elsewhere = BankRef { name: "bench-77-g1".to_owned(), ..bank.clone() };
    system.recall(&elsewhere, &query).await.expect("finds");
    assert_ne!(last()["id"], json!(id), "another one in another bank");
    assert_eq!(
        RecallQuery::from_question(&bench_proto::dataset::Question { k: None, ..question.clone() }, 10, 8).k,
        10
    );
    let clipping = of_text(&format!("{ALL}limits: {{max_k: 50}}\n"), Some(fake.url()));
    assert_eq!(clipping.recall(&bank, &query).await.expect_err("is not clipped").code, "system_limit");
}

/// A filter of one scope is none for a question that may be answered from several: the first alone would hide the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filter_of_one_scope_is_sent_where_exactly_one_is_asked() {
    let fake = Fake::start("whole");
    let system = of_text(&ALL.replace("scopes: '{scopes?}', from", "scope: '{scope?}', from"), Some(fake.url()));
    assert_eq!(system.capabilities().filters, FilterParts { scopes: false, ..FilterParts::ALL });
    let bank = bank(&stream());
    for (scopes, sent) in [(&["work", "home"][..], json!({})), (&["work"], json!({"scope": "work"})), (&[], json!({}))]
    {
        let filter = Filter { scopes: words(scopes), ..Filter::default() };
        found(system.as_ref(), &bank, 8, &filter).await;
        assert_eq!(fake.with(|world| world.bodies.last().cloned().expect("a request"))["filter"], sent, "{scopes:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bound_in_time_that_cannot_be_read_fails_the_recall_and_a_date_is_its_day() {
    let fake = Fake::start("whole");
    let builtin = registry::build("bm25", &SystemSettings::new(), &BuildContext::default()).expect("builds");
    let bank = bank(&stream());
    for system in [of_text(ALL, Some(fake.url())), builtin] {
        let recall = async |until: &str| {
            let filter = Filter { until: Some(until.to_owned()), ..Filter::default() };
            let query =
                RecallQuery { text: "kites", k: 9, visible_entries: 8, filter: &filter, ..RecallQuery::default() };
            system.recall(&bank, &query).await
        };
        assert_eq!(recall("last May").await.expect_err("is not left out").code, "question_filter");
        recall("2031-05-03").await.expect("can be read");
    }
    let sent = fake.with(|world| world.bodies.last().cloned().expect("a request"));
    assert_eq!(sent["filter"], json!({"until": "2031-05-03T23:59:59Z"}));
}

/// A server that does not find what it is to remove has removed it, or was asked at an address that it does not have.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bank_that_was_not_found_and_still_holds_items_was_not_removed() {
    let fake = Fake::start("whole");
    let elsewhere = ALL.replace("reset: {request: 'DELETE /banks/{bank}'}", "reset: {request: 'POST /nowhere/{bank}'}");
    let content = stream();
    let bank = bank(&content);
    let system = of_text(&elsewhere, Some(fake.url()));
    retained(system.as_ref(), &bank, 2).await;
    let failure = system.reset_bank(&bank).await.expect_err("nothing was removed");
    assert!(failure.message.contains("404") && failure.message.contains("still holds"), "{failure}");
    // without a count nobody knows better, and what is gone may be removed again
    let uncounted = elsewhere.replace("verify: {request: 'GET /banks/{bank}', count: items}\n", "");
    of_text(&uncounted, Some(fake.url())).reset_bank(&bank).await.expect("is taken for removed");
    let right = of_text(ALL, Some(fake.url()));
    right.reset_bank(&bank).await.expect("is removed");
    system.reset_bank(&bank).await.expect("is gone");
}
