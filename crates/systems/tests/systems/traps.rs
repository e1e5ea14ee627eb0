//! The traps of the shipped adapters: what is never sent, and what is made of answers that look like success.

use std::sync::Arc;

use bench_proto::{
    dataset::{BankContent, Filter, Memory, Session, StreamEntry, Turn},
    failure::Failure,
    step::{HitLevel, PlacedBy},
};
use bench_systems::{BankRef, MemorySystem, NativeAnswer, Prepared, Readiness, Recall, RecallQuery, StepContext};
use bench_testkit::fakes::Fake;
use serde_json::{Value, json};

use super::{changes_of, checked, robust::bank, start, system};

/// What is wrong with a request, when something is.
type Rule = fn(&str, &Value) -> Option<&'static str>;

fn when(wrong: bool, what: &'static str) -> Option<&'static str> {
    wrong.then_some(what)
}

const RULES: &[(&str, Rule)] = &[
    ("astrocyte", |request, body| match request {
        "POST /v1/retain" => {
            let content = body["content"].as_str().unwrap_or_default();
            when(!content.contains("2023"), "event times are dropped without a word: the date belongs into the text")
        }
        "POST /v1/recall" => when(body["max_results"].as_u64().unwrap_or(0) == 0, "0 is raised to 1 without a word"),
        _ => None,
    }),
    ("jeffs-brain", |request, body| match request {
        line if line.ends_with("/batch-ops") => {
            let ops = body["ops"].as_array().into_iter().flatten();
            let outside = |op: &Value| !op["path"].as_str().is_some_and(|path| path.starts_with("raw/lme/"));
            when(ops.into_iter().any(outside), "documents have explicit paths")
        }
        line if line.ends_with("/search") => {
            when(!body["filters"].is_null(), "the session filter works in one daemon only")
        }
        line => when(line.contains("ingest"), "`ingest/file` keeps the last part of a path only"),
    }),
    ("hebb-mind", |request, body| match request {
        "POST /api/v1/search" => {
            when(body["partition_ids"].as_array().is_none_or(Vec::is_empty), "a search without partitions")
        }
        "POST /api/v1/memories/batch" => {
            let long = |item: &Value| item["content"].as_str().is_none_or(|text| text.chars().count() > 10_000);
            // what is no turn is a session of its own
            let whole = |id: &Value| id.as_str().and_then(|id| id.split('#').next()).map(str::to_owned);
            let is_turn = |meta: &Value| whole(&meta["turn_id"]) != whole(&meta["session_id"]);
            let unnumbered = |item: &Value| is_turn(&item["metadata"]) && item["metadata"]["turn"].as_u64().is_none();
            let items = body.as_array();
            when(items.is_none_or(|items| items.iter().any(long)), "a text of more than 10,000 characters").or(when(
                items.is_some_and(|items| items.iter().any(unnumbered)),
                "neighbours of a turn are found by its number in its session",
            ))
        }
        _ => None,
    }),
    ("precisionmembench", |request, body| match request {
        "PUT /update" => when(true, "what replaces a memory would have its id"),
        "POST /search" => when(body.get("scope").is_some(), "the scope would be an advantage"),
        line => when(line == "DELETE /reset", "removes all users"),
    }),
    ("precisionmembench-scoped", |request, body| match request {
        "PUT /update" => when(true, "what replaces a memory would have its id"),
        "POST /search" => when(body["scope"].is_array(), "a search has one scope"),
        line => when(line == "DELETE /reset", "removes all users"),
    }),
    ("mem0", |request, body| match request {
        "POST /search" => when(
            body.get("limit").is_some() || body["top_k"].as_u64().is_none(),
            "the number of hits is called `top_k`; `limit` is ignored without a word",
        ),
        "POST /memories" => {
            let dated = |message: &Value| message["content"].as_str().is_some_and(|text| text.starts_with("[2023"));
            let messages = body["messages"].as_array();
            when(!messages.is_some_and(|messages| messages.iter().all(dated)), "the date stands in each message")
        }
        line => when(line == "POST /reset", "removes everything"),
    }),
    ("graphiti", |request, body| match request {
        "POST /messages" => {
            let messages = body["messages"].as_array().into_iter().flatten();
            let wrong = |message: &Value| message.get("uuid").is_some() || message.get("role").is_none();
            when(messages.into_iter().any(wrong), "a uuid ends the worker for good, and a role is required")
        }
        line => when(line == "POST /clear", "removes everything"),
    }),
    ("hindsight", |request, body| match request {
        line if line.ends_with("/memories") => {
            let items = body["items"].as_array().into_iter().flatten();
            let nameless = |item: &Value| item["document_id"].as_str().is_none_or(str::is_empty);
            when(body["async"] != false || items.into_iter().any(nameless), "a repeat would store twice")
        }
        _ => None,
    }),
    ("mem0-cloud", |request, body| match request {
        "POST /v3/memories/search/" => when(
            body["top_k"].as_u64().is_none() || body["threshold"].as_f64().is_none(),
            "ten hits, and none below 0.1, unless something else is said",
        ),
        line => when(line.starts_with("POST") && !line.ends_with('/'), "paths end with a slash"),
    }),
    ("zep", |request, body| match request {
        "POST /graph-batch" => when(
            body["episodes"].as_array().is_none_or(|episodes| episodes.len() > 20),
            "at most 20 episodes of one graph",
        ),
        "POST /graph/search" => {
            when(!body["scope"].is_string() || body["limit"].as_u64().is_none(), "a kind and a number")
        }
        _ => None,
    }),
    ("letta", |request, body| match request {
        line if line.ends_with("/archival-memory") => {
            when(body["tags"].as_array().is_none_or(|tags| tags.len() != 1), "tags come back in any order")
        }
        line => when(line == "POST /v1/agents", "the path ends with a slash"),
    }),
    ("memmachine", |request, body| match request {
        "POST /api/v2/memories/search" => {
            when(body["project_id"].as_str().is_none_or(str::is_empty), "a search of all")
        }
        _ => None,
    }),
    ("evermemos", |request, body| match request {
        "POST /api/v1/memories" => {
            let messages = body["messages"].as_array().into_iter().flatten();
            let seconds = |message: &Value| message["timestamp"].as_u64().is_none_or(|at| at < 1_000_000_000_000);
            when(messages.into_iter().any(seconds), "times are milliseconds, and required")
        }
        "POST /api/v1/memories/search" => when(body["method"] == "agentic", "asks models within a search"),
        _ => None,
    }),
    ("cognee", |request, body| match request {
        "POST /api/v1/search" => when(!body["search_type"].is_string(), "a model would answer"),
        line => when(line == "DELETE /api/v1/datasets", "removes all datasets"),
    }),
    ("supermemory", |request, body| match request {
        "POST /v4/search" => when(body["threshold"] != 0, "the default threshold leaves contexts empty"),
        "POST /v3/documents" => when(body["customId"].as_str().is_none(), "a repeat would store twice"),
        _ => None,
    }),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_sent_that_a_system_takes_wrongly() {
    for (name, rule) in RULES {
        let (fake, system) = start(name);
        checked(system.as_ref()).await;
        let (requests, bodies) = fake.with(|world| (world.requests.clone(), world.bodies.clone()));
        assert!(requests.len() > 20, "{name}: {requests:?}");
        for (request, body) in requests.iter().zip(&bodies) {
            assert_eq!(rule(request, body), None, "{name}: {request} {body}");
        }
    }
}

/// A bank with as many memories.
pub(super) fn filled(number: usize) -> BankRef {
    let memory = |n: usize| {
        let text = if n == 0 { "the heron sleeps in a bathtub".to_owned() } else { format!("heron number {n}") };
        StreamEntry::Memory(Memory {
            id: format!("m{n}"),
            text,
            time: Some("1 May, 2023".to_owned()),
            ..Memory::default()
        })
    };
    let content =
        BankContent { bank_id: "b".to_owned(), speakers: Vec::new(), entries: (0..number).map(memory).collect() };
    BankRef { handle: None, content: Some(Arc::new(content)), ..bank() }
}

/// Opens, fills, and waits for it.
pub(super) async fn fill(system: &dyn MemorySystem, bank: &mut BankRef) -> Result<(), Failure> {
    bank.handle = Some(system.open_bank(bank).await?);
    let entries = bank.content.as_ref().expect("has content").entries.clone();
    for entry in &entries {
        let _ = system.retain(bank, std::slice::from_ref(entry), StepContext::default()).await?;
    }
    while let Readiness::NotYet { .. } = system.readiness(bank, entries.len() as u32).await? {
        tokio::task::yield_now().await;
    }
    Ok(())
}

pub(super) fn query(text: &str, k: u32) -> RecallQuery<'_> {
    RecallQuery { question_id: "q", text, k, visible_entries: u32::MAX, ..RecallQuery::default() }
}

/// A bank with these memories.
fn holding(memories: Vec<Memory>) -> BankRef {
    let entries = memories.into_iter().map(StreamEntry::Memory).collect();
    let content = BankContent { bank_id: "b".to_owned(), speakers: Vec::new(), entries };
    BankRef { handle: None, content: Some(Arc::new(content)), ..bank() }
}

/// Bodies of the requests so far that have this field.
fn sent_with(fake: &Fake, field: &str) -> Vec<Value> {
    fake.with(|world| world.bodies.iter().filter(|body| body.get(field).is_some()).cloned().collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_no_date_is_sent_without_one() {
    let undated = || Memory { id: "m1".to_owned(), text: "the heron sleeps".to_owned(), ..Memory::default() };
    let (fake, graphiti) = start("graphiti");
    let mut bank = holding(vec![undated()]);
    fill(graphiti.as_ref(), &mut bank).await.expect("null would be refused");
    assert!(sent_with(&fake, "messages")[0]["messages"][0].get("timestamp").is_none());
    let (fake, mem0) = start("mem0");
    fill(mem0.as_ref(), &mut holding(vec![undated()])).await.expect("is stored");
    assert_eq!(sent_with(&fake, "messages")[0]["messages"][0]["content"], "the heron sleeps", "and no empty brackets");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn facts_keep_the_episodes_that_they_are_from() {
    let (fake, graphiti) = start("graphiti");
    let mut bank = filled(3);
    fill(graphiti.as_ref(), &mut bank).await.expect("is stored");
    let found = recall(graphiti.as_ref(), &bank, 1).await;
    let episode = fake.with(|world| world.banks.values().flatten().next().map(|item| item.id.clone()));
    assert_eq!(found.hits[0].details["episodes"], json!([episode]), "{found:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn facts_are_placed_by_the_episodes_that_they_are_from() {
    let (fake, graphiti) = start("graphiti");
    let memory = |id: &str, text: &str| Memory { id: id.to_owned(), text: text.to_owned(), ..Memory::default() };
    let mut bank = holding(vec![
        memory("m1", "the heron sleeps in a bathtub"),
        memory("m2", "a heron was bought"),
        memory("m3", "the heron sleeps in a bathtub"),
    ]);
    fill(graphiti.as_ref(), &mut bank).await.expect("is stored");
    let looked_up = || {
        let is_lookup = |line: &&String| line.starts_with("GET /episodes/");
        fake.with(|world| world.requests.iter().filter(is_lookup).count())
    };
    let before = looked_up();
    let asked = query("where does the heron sleep in the bathtub", 9);
    // who was given no content places nothing, and sends nothing beside what is timed
    let bare = BankRef { content: None, ..bank.clone() };
    assert_eq!(graphiti.prepare(&bare, Some(&asked)).await, Ok(Prepared::Ready));
    let found = graphiti.recall(&bare, &asked).await.expect("finds").hits;
    assert!(found.iter().all(|hit| hit.level == Some(HitLevel::Unknown)), "{found:?}");
    assert_eq!(looked_up(), before);
    let prepared = [graphiti.prepare(&bank, Some(&asked)).await, graphiti.prepare(&bank, Some(&asked)).await];
    assert_eq!(prepared, [Ok(Prepared::Built), Ok(Prepared::Ready)], "before a recall is timed");
    let found = graphiti.recall(&bank, &asked).await.expect("finds").hits;
    let placed: Vec<_> = found.iter().map(|hit| (hit.id.as_str(), hit.level, hit.placed_by)).collect();
    let by_id = |id| (id, Some(HitLevel::Turn), Some(PlacedBy::Id));
    assert_eq!(placed, [by_id("m1"), by_id("m2")], "{found:?}");
    assert_eq!((found[0].details.get("made_of"), found[1].details.get("made_of")), (Some(&json!(["m3"])), None));
    assert_eq!(looked_up(), before + 1);

    // an episode that was not there yet is looked up, and one that is nobody's once
    let handle = bank.handle.clone().expect("is open");
    fake.with(|world| {
        world.store(&handle, "another heron sleeps", json!({ "source_description": "m2" }));
        world.store(&handle, "the heron sleeps no more", Value::Null)
    });
    for _ in 0..2 {
        let found = graphiti.recall(&bank, &asked).await.expect("finds").hits;
        let of = |text: &str| found.iter().find(|hit| hit.text == text).map(|hit| (hit.id.as_str(), hit.level));
        assert_eq!(of("another heron sleeps"), Some(("m2", Some(HitLevel::Turn))), "{found:?}");
        let nobodys = of("the heron sleeps no more").expect("is found");
        assert_eq!(nobodys.1, Some(HitLevel::Unknown), "{found:?}");
        assert_eq!(looked_up(), before + 2);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bank_is_looked_up_once_however_many_need_it_at_the_same_time() {
    let (fake, graphiti) = start("graphiti");
    let mut bank = filled(3);
    fill(graphiti.as_ref(), &mut bank).await.expect("is stored");
    let looked_up = || {
        let is_lookup = |line: &&String| line.starts_with("GET /episodes/");
        fake.with(|world| world.requests.iter().filter(is_lookup).count())
    };
    let before = looked_up();
    fake.with(|world| world.slow = std::time::Duration::from_millis(50));
    let asked = query("where does the heron sleep", 3);
    let asking = || graphiti.recall(&bank, &asked);
    let found = futures::future::join_all([asking(), asking(), asking(), asking()]).await;
    for recall in found {
        let hits = recall.expect("finds").hits;
        assert!(!hits.is_empty() && hits.iter().all(|hit| hit.level == Some(HitLevel::Turn)), "{hits:?}");
    }
    assert_eq!(looked_up(), before + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn last_week_is_the_week_before_the_question() {
    let (fake, hindsight) = start("hindsight");
    let mut bank = filled(2);
    fill(hindsight.as_ref(), &mut bank).await.expect("is stored");
    let asked = RecallQuery { time: Some("2031-06-01T10:00:00"), ..query("what did the heron do last week?", 3) };
    hindsight.recall(&bank, &asked).await.expect("finds");
    recall(hindsight.as_ref(), &bank, 3).await;
    let recalls = sent_with(&fake, "max_tokens");
    assert_eq!(recalls[0]["query_timestamp"], "2031-06-01T10:00:00Z");
    assert!(recalls[1].get("query_timestamp").is_none(), "a question without a time has none");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrapper_is_told_the_scope_of_a_memory_and_asked_by_user_and_scope_where_its_file_says_so() {
    let memory = |id: &str, user: &str, scope: &str| Memory {
        id: id.to_owned(),
        text: format!("a heron of {id}"),
        user: Some(user.to_owned()),
        scopes: vec![scope.to_owned()],
        ..Memory::default()
    };
    let memories = || vec![memory("m1", "ann", "work"), memory("m2", "ann", "home"), memory("m3", "bo", "work")];
    let filter = Filter { user: Some("ann".to_owned()), scopes: vec!["work".to_owned()], ..Filter::default() };
    let of_ann = ["m1", "m2"];
    for (name, expected) in [("precisionmembench-scoped", &of_ann[..1]), ("precisionmembench", &of_ann[..])] {
        let (fake, system) = start(name);
        let can = system.capabilities().filters;
        assert_eq!((can.user, can.scope, can.scopes), (true, expected.len() == 1, false), "{name}");
        let mut bank = holding(memories());
        fill(system.as_ref(), &mut bank).await.expect(name);
        let asked = RecallQuery { filter: &filter, ..query("where is the heron", 5) };
        let found = system.recall(&bank, &asked).await.expect(name);
        let ids: Vec<&str> = found.hits.iter().map(|hit| hit.id.as_str()).collect();
        assert_eq!(ids, expected, "{name}");
        assert_eq!(sent_with(&fake, "metadata")[1]["metadata"], json!({ "beliefId": "m2", "scope": "home" }));
        let waits = fake.with(|world| world.requests.iter().filter(|line| line.as_str() == "POST /wait").count());
        assert_eq!(waits, 1, "{name}: once, and its 404 is fine");
    }
}

async fn recall(system: &dyn MemorySystem, bank: &BankRef, k: u32) -> Recall {
    system.recall(bank, &query("where does the heron sleep", k)).await.expect("finds")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_many_hits_come_as_are_asked_for() {
    for (name, asked) in [("mem0", 30), ("supermemory", 40), ("hebb-mind", 100), ("astrocyte", 30), ("graphiti", 30)] {
        let (_fake, system) = start(name);
        let mut bank = filled(120);
        fill(system.as_ref(), &mut bank).await.expect(name);
        let found = recall(system.as_ref(), &bank, asked).await;
        assert_eq!((found.hits.len() as u32, found.effective_k), (asked, asked), "{name}");
        system.reset_bank(&bank).await.expect(name);
        let after = system.recall(&bank, &query("heron", asked)).await;
        assert!(after.is_err() || after.is_ok_and(|after| after.hits.is_empty()), "{name}: nothing is found any more");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_than_a_system_gives_is_refused_before_it_is_asked() {
    for (name, most) in [
        ("mem0", 1000),
        ("zep", 50),
        ("evermemos", 100),
        ("supermemory", 100),
        ("hebb-mind", 100),
        ("jeffs-brain", 100),
    ] {
        let (fake, system) = start(name);
        let refused = system.recall(&bank(), &query("heron", most + 1)).await.expect_err("too many");
        assert_eq!(refused.code, "system_limit", "{name}: {refused}");
        assert_eq!(fake.with(|world| world.requests.len()), 0, "{name} was not asked");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_vanished_while_it_was_taken_in_has_failed() {
    let (fake, supermemory) = start("supermemory");
    fake.with(|world| world.loses_every = 3);
    let failure = fill(supermemory.as_ref(), &mut filled(4)).await.expect_err("one is gone");
    assert_eq!(failure.code, "system_item_failed", "{failure}");
    assert!(failure.message.contains("is gone"), "{failure}");
    let fake = Fake::start("graphiti");
    let changes = [changes_of("graphiti"), vec![("stalled_after: 10m", "stalled_after: 100ms")]].concat();
    let graphiti = system("graphiti", fake.url(), &changes);
    fake.with(|world| world.loses_every = 3);
    let failure = fill(graphiti.as_ref(), &mut filled(4)).await.expect_err("the count stands still");
    assert_eq!(failure.code, "system_stalled", "{failure}");
    assert!(failure.message.contains("3 of 4"), "{failure}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_dies_between_two_items_is_not_waited_for_for_ever() {
    let fake = Fake::start("supermemory");
    let changes = [changes_of("supermemory"), vec![("stalled_after: 15m", "stalled_after: 100ms")]].concat();
    let supermemory = system("supermemory", fake.url(), &changes);
    let mut bank = filled(4);
    bank.handle = Some(supermemory.open_bank(&bank).await.expect("opens"));
    let entries = bank.content.as_ref().expect("has content").entries.clone();
    for (at, entry) in entries.iter().enumerate() {
        fake.with(|world| world.worker_dead = at > 1);
        let _ = supermemory.retain(&bank, std::slice::from_ref(entry), StepContext::default()).await.expect("takes it");
    }
    let waited = async {
        loop {
            match supermemory.readiness(&bank, 4).await {
                Ok(Readiness::NotYet { .. }) => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
                other => return other,
            }
        }
    };
    let waited = tokio::time::timeout(std::time::Duration::from_secs(30), waited).await.expect("it ends");
    let failure = waited.expect_err("the rest never comes");
    assert_eq!(failure.code, "system_stalled", "{failure}");
    assert!(failure.message.contains("of 4 items are done, no more"), "{failure}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_done_and_is_taken_away_is_not_counted_for_what_is_not_done() {
    let text = "
name: replacing
retain:
  request: POST /v3/documents
  body: &item {content: '{content}', containerTag: '{bank}', customId: '{key}', metadata: {unit_id: '{id}'}}
update: {request: POST /v3/documents, body: *item}
ready: {when: each_done, call: {request: 'GET /v3/documents/{key}'}, status: status, done: [done], every: 10ms}
recall: {request: POST /v4/search, body: {q: '{query}', containerTag: '{bank}'}, hits: [{list: results, text: memory, id: metadata.unit_id}]}
";
    let fake = Fake::start("supermemory");
    let system = super::of_text(text, Some(fake.url()));
    let memory = |id: &str| Memory { id: id.to_owned(), text: format!("heron {id}"), ..Memory::default() };
    let entries = vec![
        StreamEntry::Memory(memory("m0")),
        StreamEntry::Update { replaces: "m0".to_owned(), memory: Some(memory("m1")) },
    ];
    let content = BankContent { bank_id: "b".to_owned(), speakers: Vec::new(), entries: entries.clone() };
    let bank = BankRef { content: Some(Arc::new(content)), ..bank() };
    let _ = system.retain(&bank, &entries[..1], StepContext::default()).await.expect("takes it");
    assert_eq!(system.readiness(&bank, 1).await.expect("answers"), Readiness::Proven);
    fake.with(|world| world.worker_dead = true);
    let _ = system.retain(&bank, &entries[1..], StepContext::default()).await.expect("takes it");
    let ready = system.readiness(&bank, 2).await.expect("answers");
    assert!(matches!(ready, Readiness::NotYet { .. }), "its update waits: {ready:?}");
    fake.with(|world| world.worker_dead = false);
    assert_eq!(system.readiness(&bank, 2).await.expect("answers"), Readiness::Proven);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partial_batch_is_no_success() {
    let (fake, hebb) = start("hebb-mind");
    fake.with(|world| world.takes_part = true);
    let failure = fill(hebb.as_ref(), &mut filled(1)).await.expect_err("fewer were stored than were sent");
    assert_eq!(failure.code, "system_partial_batch", "{failure}");
    assert!(failure.message.contains("0 of 1 items were stored"), "{failure}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neighbours_of_a_hit_come_where_they_are_asked_for() {
    for (next_turns, hits) in [("0", 1), ("1", 2)] {
        let fake = Fake::start("hebb-mind");
        let changes = [changes_of("hebb-mind"), vec![("\"{setting.next_turns?}\"", next_turns)]].concat();
        let hebb = system("hebb-mind", fake.url(), &changes);
        let turns = ["a heron", "it sleeps in a bathtub", "really?"].iter().enumerate();
        let turn =
            |(at, text): (usize, &&str)| Turn { id: format!("D1:{at}"), text: (*text).to_owned(), ..Turn::default() };
        let session = Session { id: "D1".to_owned(), turns: turns.map(turn).collect(), ..Session::default() };
        let content = BankContent {
            bank_id: "b".to_owned(),
            entries: vec![StreamEntry::Session(session)],
            ..BankContent::default()
        };
        let mut bank = BankRef { handle: None, content: Some(Arc::new(content)), ..bank() };
        fill(hebb.as_ref(), &mut bank).await.expect("is stored");
        let found = hebb.recall(&bank, &query("heron", 1)).await.expect("finds").hits;
        assert_eq!(found.len(), hits, "{found:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_time_that_stands_beside_a_text_comes_before_it() {
    for (path, text) in [
        ("metadata.session_id", "[m0] the heron sleeps in a bathtub"),
        ("occurred_start|mentioned_at", "the heron sleeps in a bathtub"),
    ] {
        let fake = Fake::start("hindsight");
        let time = format!("time: {path}");
        let changes = [changes_of("hindsight"), vec![("time: occurred_start|mentioned_at", time.as_str())]].concat();
        let hindsight = system("hindsight", fake.url(), &changes);
        let mut bank = filled(1);
        fill(hindsight.as_ref(), &mut bank).await.expect("is stored");
        let hits = hindsight.recall(&bank, &query("heron", 1)).await.expect("finds").hits;
        assert!(hits[0].text.starts_with(text) && hits[0].id == "m0", "{path}: {hits:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_without_its_field_fails_and_is_never_graded() {
    for (name, field) in [("amplihack", "answer"), ("astrocyte", "answer"), ("hindsight", "text")] {
        let (fake, system) = start(name);
        let mut bank = filled(2);
        fill(system.as_ref(), &mut bank).await.expect(name);
        let ask = async || -> Result<NativeAnswer, Failure> { system.answer(&bank, &query("where?", 3)).await };
        assert!(ask().await.is_ok(), "{name}");
        fake.with(|world| world.other_shape = true);
        let failure = ask().await.expect_err("no answer");
        assert_eq!(failure.code, "system_shape", "{name}: {failure}");
        assert!(failure.message.contains(&format!("field '{field}' is missing")), "{name}: {failure}");
    }
}
