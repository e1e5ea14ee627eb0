//! Systems whose operations are several requests: events that are waited for, bodies of several parts, counters that have to stand
//! still, replies of two shapes.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Json, Router, extract::Request, http::StatusCode};
use bench_proto::{
    dataset::{BankContent, Memory, Session, StreamEntry, Turn},
    failure::Failure,
    step::HitLevel,
};
use bench_systems::{BankRef, Readiness, StepContext};
use bench_testkit::fakes::Fake;
use serde_json::{Value, json};

use super::{
    changes_of, of_text,
    robust::bank,
    start, system,
    traps::{fill, filled, query},
};

fn requests(fake: &Fake, of: &str) -> usize {
    fake.with(|world| world.requests.iter().filter(|line| line.contains(of)).count())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_is_waited_for_and_one_that_failed_fails_its_bank() {
    let (fake, cloud) = start("mem0-cloud");
    let mut bank = filled(5);
    fill(cloud.as_ref(), &mut bank).await.expect("is stored");
    assert_eq!(fake.with(|world| world.waiting.len()), 0, "nothing is under way when a retain returns");
    assert!(requests(&fake, "GET /v1/event/event-") >= 5);
    cloud.reset_bank(&bank).await.expect("is removed");
    assert_eq!(fake.with(|world| world.banks.len()), 0, "a removal is waited for too");
    fake.with(|world| world.loses_every = 3);
    let failure = fill(cloud.as_ref(), &mut filled(5)).await.expect_err("one is lost");
    assert_eq!(failure.code, "system_item_failed", "{failure}");
    assert!(failure.message.contains("FAILED"), "{failure}");
    // an event that never ends
    let fake = Fake::start("mem0-cloud");
    let changes = [changes_of("mem0-cloud"), vec![("within: 15m", "within: 60ms")]].concat();
    let cloud = system("mem0-cloud", fake.url(), &changes);
    fake.with(|world| world.worker_dead = true);
    let failure = fill(cloud.as_ref(), &mut filled(1)).await.expect_err("does not end");
    assert_eq!(failure.code, "system_stalled", "{failure}");
}

/// What a server replies to a path that it is asked for the n-th time, from 0.
type Reply = fn(&str, usize) -> (u16, Value);

/// A server that replies so, and what it was asked.
async fn server_of(reply: Reply) -> (String, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (heard, times) = (Arc::clone(&asked), Arc::new(Mutex::new(BTreeMap::<String, usize>::new())));
    let answer = async move |request: Request| {
        let path = request.uri().path().to_owned();
        heard.lock().expect("no panic").push(format!("{} {path}", request.method()));
        let time = {
            let mut times = times.lock().expect("no panic");
            let time = times.entry(path.clone()).or_default();
            *time += 1;
            *time - 1
        };
        let (status, value) = reply(&path, time);
        (StatusCode::from_u16(status).expect("a status"), Json(value))
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("listens");
    let url = format!("http://{}", listener.local_addr().expect("has an address"));
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
    (url, asked)
}

const WITH_EVENTS: &str = "
name: mine
retain:
  request: POST /add
  body: {text: '{text}', user: '{bank}'}
  capture: {event: id}
  then: [{request: 'GET /events/{step.event}', until: {path: status, done: [DONE], every: 5ms, within: 500ms}}]
recall: {request: POST /search, body: {query: '{query}'}, hits: [{list: results, text: memory}]}
";

fn one_memory() -> [StreamEntry; 1] {
    let memory = Memory { id: "m1".to_owned(), text: "the heron sleeps".to_owned(), ..Memory::default() };
    [StreamEntry::Memory(memory)]
}

#[tokio::test]
async fn a_poll_that_fails_throws_away_nothing_of_what_was_sent() {
    let (url, asked) = server_of(|path, time| match (path, time) {
        ("/add", _) => (200, json!({ "id": "e1" })),
        (_, 0) => (503, json!("not now")),
        (_, 1) => (429, json!("too much")),
        (_, 2) => (200, json!({ "status": "RUNNING" })),
        _ => (200, json!({ "status": "DONE" })),
    })
    .await;
    let mine = of_text(WITH_EVENTS, Some(&url));
    mine.retain(&bank(), &one_memory(), StepContext::default()).await.expect("is stored");
    let asked = asked.lock().expect("no panic").clone();
    let polls = vec!["GET /events/e1"; 4];
    assert_eq!(asked, [vec!["POST /add"], polls].concat(), "it was stored once");
    // the failure is what is said when it lasts
    let always: Reply = |path, _| match path {
        "/add" => (200, json!({ "id": "e1" })),
        _ => (503, json!("not now")),
    };
    let (url, asked) = server_of(always).await;
    let failure = of_text(WITH_EVENTS, Some(&url)).retain(&bank(), &one_memory(), StepContext::default()).await;
    assert_eq!(failure.expect_err("nobody knows").code, "system_http_503");
    assert!(asked.lock().expect("no panic").len() > 3, "it was asked until its time was over");
    // what refuses is no poll that may come through
    let refuses: Reply = |path, _| match path {
        "/add" => (200, json!({ "id": "e1" })),
        _ => (400, json!("what event?")),
    };
    let (url, asked) = server_of(refuses).await;
    let failure = of_text(WITH_EVENTS, Some(&url)).retain(&bank(), &one_memory(), StepContext::default()).await;
    assert_eq!(failure.expect_err("is refused").code, "system_http_400");
    assert_eq!(asked.lock().expect("no panic").len(), 2);
}

/// A system whose readiness is told by `ready`.
fn ready_by(ready: &str) -> String {
    format!(
        "name: mine\nretain: {{request: POST /add, body: {{text: '{{text}}'}}}}\nconsolidate: {{request: POST /better}}\n\
         recall: {{request: POST /search, hits: [{{list: results, text: memory}}]}}\nready: {ready}\n"
    )
}

#[tokio::test]
async fn a_later_segment_is_not_judged_by_what_an_earlier_one_had_left() {
    let states: Reply = |_, time| (200, json!({ "state": if time.is_multiple_of(2) { "processing" } else { "done" } }));
    let (url, _) = server_of(states).await;
    let ready = "{when: status, call: {request: GET /state}, status: state, done: [done], every: 5ms, \
                 stalled_after: 200ms}";
    let mine = of_text(&ready_by(ready), Some(&url));
    for entries in [1, 2] {
        let look = async || mine.readiness(&bank(), entries).await;
        assert_eq!(look().await, Ok(Readiness::NotYet { poll_after_ms: 5 }), "{entries}");
        assert_eq!(look().await, Ok(Readiness::Proven), "{entries}");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    // a counter that has not moved yet
    let (url, _) = server_of(|_, _| (200, json!({ "n": 5 }))).await;
    let ready = "{when: stable, call: {request: GET /n}, status: n, every: 5ms, stable_for: 100ms}";
    let mine = of_text(&ready_by(ready), Some(&url));
    let stands_still = async |entries: u32| {
        assert_eq!(mine.readiness(&bank(), entries).await, Ok(Readiness::NotYet { poll_after_ms: 5 }));
        tokio::time::sleep(Duration::from_millis(150)).await;
        assert_eq!(mine.readiness(&bank(), entries).await, Ok(Readiness::Promised));
    };
    stands_still(1).await;
    stands_still(2).await;
    mine.consolidate(&bank()).await.expect("is done");
    stands_still(2).await;
}

#[tokio::test]
async fn a_value_that_never_stands_still_is_not_waited_for_for_ever() {
    let (url, _) = server_of(|_, time| (200, json!({ "n": time }))).await;
    let ready = "{when: stable, call: {request: GET /n}, status: n, every: 5ms, stable_for: 10s, stalled_after: 100ms}";
    let mine = of_text(&ready_by(ready), Some(&url));
    let looked = async || loop {
        match mine.readiness(&bank(), 1).await {
            Ok(Readiness::NotYet { .. }) => tokio::time::sleep(Duration::from_millis(20)).await,
            ended => return ended,
        }
    };
    for _ in 0..2 {
        let failure = looked().await.expect_err("it goes on moving");
        assert_eq!(failure.code, "system_stalled", "{failure}");
        assert!(failure.message.contains("stand still for 10 s never stood still in "), "{failure}");
    }
}

#[tokio::test]
async fn banks_that_wait_for_a_value_of_the_whole_server_have_time_from_the_last_that_is_stored() {
    let (url, _) = server_of(|_, time| (200, json!({ "n": time }))).await;
    let by = |path: &str| {
        let ready =
            format!("call: {{request: 'GET {path}'}}, status: n, every: 5ms, stable_for: 10s, stalled_after: 500ms");
        of_text(&ready_by(&format!("{{when: stable, {ready}}}")), Some(&url))
    };
    let other = BankRef { name: "bench-2-g1".to_owned(), handle: Some("bench-2-g1".to_owned()), ..bank() };
    let mine = by("/n");
    let longer = Duration::from_millis(700);
    assert_eq!(mine.readiness(&bank(), 1).await, Ok(Readiness::NotYet { poll_after_ms: 5 }));
    // the other bank is filled for longer than a value may move
    for _ in 0..2 {
        tokio::time::sleep(longer).await;
        mine.retain(&other, &one_memory(), StepContext::default()).await.expect("is stored");
        assert_eq!(mine.readiness(&bank(), 1).await, Ok(Readiness::NotYet { poll_after_ms: 5 }));
    }
    tokio::time::sleep(longer).await;
    assert_eq!(mine.readiness(&bank(), 1).await.expect_err("it goes on moving").code, "system_stalled");
    // what is told of one bank is moved by that one alone
    let mine = by("/n/{bank}");
    assert_eq!(mine.readiness(&bank(), 1).await, Ok(Readiness::NotYet { poll_after_ms: 5 }));
    tokio::time::sleep(longer).await;
    mine.retain(&other, &one_memory(), StepContext::default()).await.expect("is stored");
    assert_eq!(mine.readiness(&bank(), 1).await.expect_err("it goes on moving").code, "system_stalled");
}

#[tokio::test]
async fn p11_a_look_at_a_bank_waits_for_nothing() {
    let ready = "{when: status, status: total, done: [0], every: 5ms, call: {request: GET /pending, \
                 until: {path: total, done: [0], every: 7ms, within: 200ms}, then: [{request: GET /running}]}}";
    let pending: Reply = |path, time| (200, json!({ "total": usize::from(path == "/pending" && time < 3) }));
    let (url, asked) = server_of(pending).await;
    let mine = of_text(&ready_by(ready), Some(&url));
    for looks in 1..=3 {
        assert_eq!(mine.readiness(&bank(), 1).await, Ok(Readiness::NotYet { poll_after_ms: 7 }));
        assert_eq!(asked.lock().expect("no panic").len(), looks, "a look is one request");
    }
    assert_eq!(mine.readiness(&bank(), 1).await, Ok(Readiness::Proven));
    assert_eq!(asked.lock().expect("no panic").last().map(String::as_str), Some("GET /running"));
    // for as long as the file says, over all looks
    let (url, _) = server_of(|_, _| (200, json!({ "total": 1 }))).await;
    let mine = of_text(&ready_by(ready), Some(&url));
    let failure = loop {
        match mine.readiness(&bank(), 1).await {
            Ok(Readiness::NotYet { .. }) => tokio::time::sleep(Duration::from_millis(20)).await,
            Ok(ready) => panic!("{ready:?}"),
            Err(failure) => break failure,
        }
    };
    assert_eq!(failure.code, "system_stalled", "{failure}");
    assert!(failure.message.contains("the state is still 1 after 200 ms"), "{failure}");
}

#[tokio::test]
async fn a_look_that_starts_a_job_starts_one_and_waits_for_it() {
    let ready = "{when: status, status: state, done: [done], every: 5ms, call: {request: POST /index, capture: {job: id}, \
                 then: [{request: 'GET /jobs/{step.job}', until: {path: state, done: [done], every: 5ms, within: 2s}}]}}";
    let jobs: Reply = |path, time| match path {
        "/index" => (200, json!({ "id": format!("j{time}") })),
        _ => (200, json!({ "state": if time < 3 { "running" } else { "done" } })),
    };
    let (url, asked) = server_of(jobs).await;
    let mine = of_text(&ready_by(ready), Some(&url));
    assert_eq!(mine.readiness(&bank(), 1).await, Ok(Readiness::Proven));
    let asked = asked.lock().expect("no panic").clone();
    assert_eq!(asked, [vec!["POST /index"], vec!["GET /jobs/j0"; 4]].concat());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_carried_on_has_to_be_there() {
    let (fake, cloud) = start("mem0-cloud");
    fake.with(|world| world.other_shape = true);
    let failure = fill(cloud.as_ref(), &mut filled(1)).await.expect_err("no event");
    assert_eq!(failure.code, "system_shape", "{failure}");
    let said = "field 'event_id' is missing: it has unexpected; what follows needs it as 'event'";
    assert!(failure.message.contains(said), "{failure}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_episode_is_processed_before_a_graph_is_ready() {
    let (fake, zep) = start("zep");
    let mut bank = filled(30);
    fill(zep.as_ref(), &mut bank).await.expect("is stored");
    assert_eq!(fake.with(|world| world.waiting.len()), 0, "all of them");
    let before = requests(&fake, "/graph/search");
    let found = zep.recall(&bank, &query("where does the heron sleep", 5)).await.expect("finds");
    assert_eq!(requests(&fake, "/graph/search") - before, 3, "edges, nodes and episodes");
    assert_eq!((found.hits.len(), found.effective_k), (5, 5));
    let fake = Fake::start("zep");
    let changes = [changes_of("zep"), vec![("stalled_after: 30m", "stalled_after: 100ms")]].concat();
    let zep = system("zep", fake.url(), &changes);
    fake.with(|world| world.worker_dead = true);
    let failure = fill(zep.as_ref(), &mut filled(3)).await.expect_err("they are never processed");
    assert_eq!(failure.code, "system_stalled", "{failure}");
    assert!(failure.message.contains("0 of 3 items are done"), "{failure}");
}

/// A bank with one session, whose speakers are the user and the assistant.
fn with_a_session(lines: &[&str]) -> BankRef {
    let turn = |(at, text): (usize, &&str)| Turn {
        id: format!("D1:{}", at + 1),
        speaker: ["Ann", "Bo"][at % 2].to_owned(),
        text: (*text).to_owned(),
        ..Turn::default()
    };
    let turns = lines.iter().enumerate().map(turn).collect();
    let entry = StreamEntry::Session(Session { id: "D1".to_owned(), turns, ..Session::default() });
    let content = BankContent { bank_id: "b".to_owned(), speakers: Vec::new(), entries: vec![entry] };
    BankRef { handle: None, content: Some(Arc::new(content)), ..bank() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_has_the_servers_id_its_passages_their_turns_and_its_last_words_are_the_answer() {
    let (fake, letta) = start("letta");
    let mut bank = with_a_session(&["shall we have tea?", "the heron sleeps in a bathtub"]);
    fill(letta.as_ref(), &mut bank).await.expect("is stored");
    assert!(bank.handle.as_deref().is_some_and(|handle| handle.starts_with("agent-")), "{bank:?}");
    let heron = query("where does the heron sleep", 3);
    let found = letta.recall(&bank, &heron).await.expect("finds");
    let hit = &found.hits[0];
    let place = (hit.id.as_str(), hit.session_id.as_str(), hit.level);
    assert_eq!(place, ("D1:2", "D1", Some(HitLevel::Turn)), "{found:?}");
    let answer = letta.answer(&bank, &heron).await.expect("answers");
    assert!(answer.text.contains("bathtub"), "not what it says before it has looked: {answer:?}");
    assert_eq!((answer.usage.prompt_tokens, answer.usage.completion_tokens), (40, 4));
    // of two tags nobody knows which comes first
    let tags = [("tags: [\"{id}\"]", "tags: [\"{id}\", \"{session_id}\"]")];
    let two = system("letta", fake.url(), &tags);
    let mut bank = with_a_session(&["shall we have tea?", "the heron sleeps in a bathtub"]);
    fill(two.as_ref(), &mut bank).await.expect("is stored");
    assert_eq!(two.recall(&bank, &heron).await.expect("finds").hits[0].level, Some(HitLevel::Session));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_counter_has_to_stand_still_and_to_be_there() {
    let (fake, machine) = start("memmachine");
    let mut bank = filled(3);
    bank.handle = Some(machine.open_bank(&bank).await.expect("is made"));
    let entries = bank.content.clone().expect("has content").entries.clone();
    machine.retain(&bank, &entries, StepContext::default()).await.expect("is stored");
    while let Readiness::NotYet { poll_after_ms } = machine.readiness(&bank, 3).await.expect("is asked") {
        tokio::time::sleep(std::time::Duration::from_millis(poll_after_ms)).await;
    }
    assert_eq!(machine.readiness(&bank, 3).await, Ok(Readiness::Promised), "which proves nothing");
    assert_eq!(fake.with(|world| world.tokens), (210, 0), "it was waited for until its model was done");
    let found = machine.recall(&bank, &query("heron", 10)).await.expect("finds");
    assert_eq!(found.hits.iter().filter(|hit| hit.level == Some(HitLevel::Turn)).count(), 3, "{found:?}");
    let made = &found.hits[1];
    assert_eq!((made.level, &made.details["category"]), (Some(HitLevel::Unknown), &"profile".into()), "{made:?}");
    let first = machine.recall(&bank, &query("heron", 2)).await.expect("finds");
    assert!(first.hits.iter().any(|hit| hit.level == Some(HitLevel::Unknown)), "k episodes leave it room: {first:?}");
    let changes = [changes_of("memmachine"), vec![("usage_input_tokens_total", "usage_tokens")]].concat();
    let other = system("memmachine", fake.url(), &changes);
    let failure = other.readiness(&bank, 3).await.expect_err("no such metric");
    let missing = "no metric 'language_model_openai_responses_usage_tokens' or 'language_model_openai_chat";
    assert!(failure.message.contains(missing), "{failure}");
}

fn held(fake: &Fake) -> usize {
    fake.with(|world| world.banks.values().map(Vec::len).sum())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_segment_is_flushed_once() {
    let (fake, cognee) = start("cognee");
    let mut bank = filled(4);
    bank.handle = Some(cognee.open_bank(&bank).await.expect("is named"));
    let entries = bank.content.clone().expect("has content").entries.clone();
    for until in [2, 4_usize] {
        for entry in &entries[until - 2..until] {
            cognee.retain(&bank, std::slice::from_ref(entry), StepContext::default()).await.expect("is stored");
        }
        for _look in 0..2 {
            let ready = cognee.readiness(&bank, until as u32).await.expect("is asked");
            assert!(!matches!(ready, Readiness::NotYet { .. }), "{ready:?}");
        }
        assert_eq!(held(&fake), until, "the tail too");
    }
    assert_eq!(requests(&fake, "/cognify"), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_session_is_flushed_by_its_name() {
    let (fake, evermemos) = start("evermemos");
    fill(evermemos.as_ref(), &mut filled(3)).await.expect("is stored");
    assert_eq!((held(&fake), fake.with(|world| world.accumulated.len())), (3, 0), "the tail of each too");
    assert_eq!(requests(&fake, "/memories/flush"), 3);
    // without a name it is another session that is flushed
    let fake = Fake::start("evermemos");
    let nameless = ("session_id: \"{session_id}\"}}]", "of: \"{session_id}\"}}]");
    let changes = [changes_of("evermemos"), vec![nameless]].concat();
    fill(system("evermemos", fake.url(), &changes).as_ref(), &mut filled(3)).await.expect("is stored");
    assert_eq!((held(&fake), fake.with(|world| world.accumulated.len())), (0, 3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_evermemos_refuses_is_not_sent() {
    let (fake, evermemos) = start("evermemos");
    let lines = ["shall we have tea?", "the heron sleeps in a bathtub"];
    fill(evermemos.as_ref(), &mut with_a_session(&lines)).await.expect("is stored");
    let of = |body: &Value| body["messages"].as_array().cloned().unwrap_or_default();
    let messages: Vec<Value> = fake.with(|world| world.bodies.iter().flat_map(of).collect());
    let said = |at: usize| json!([messages[at]["role"], messages[at]["sender_name"], messages[at]["timestamp"]]);
    // the dataset has no dates
    assert_eq!(said(0), json!(["user", "Ann", 946_684_800_000_u64]));
    assert_eq!(said(1), json!(["assistant", "Bo", 946_684_800_000_u64]));
    for (from, to, problem) in [
        ("undated: \"2000-01-01T00:00:00\"\n", "", "timestamp: unix milliseconds are required"),
        ("sender_name:", "sender_id: \"{speaker?}\", sender_name:", "sender_id: of a message with the role user"),
    ] {
        let changes = [changes_of("evermemos"), vec![(from, to)]].concat();
        let other = system("evermemos", fake.url(), &changes);
        let failure = fill(other.as_ref(), &mut with_a_session(&lines)).await.expect_err(problem);
        assert_eq!(failure.code, "system_http_422", "{failure}");
        assert!(failure.message.contains(problem), "{failure}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_shapes_of_a_reply_are_read_and_a_third_is_an_error() -> Result<(), Failure> {
    let (fake, cognee) = start("cognee");
    let mut bank = filled(6);
    fill(cognee.as_ref(), &mut bank).await?;
    assert_eq!(fake.with(|world| world.banks.values().map(Vec::len).sum::<usize>()), 6, "no file replaced another");
    for access_control in [false, true] {
        fake.with(|world| world.access_control = access_control);
        let found = cognee.recall(&bank, &query("where does the heron sleep", 4)).await?;
        assert_eq!(found.hits.len(), 4, "{found:?}");
        assert_eq!((found.hits[0].id.as_str(), found.hits[0].level), ("m0", Some(HitLevel::Turn)));
        assert_eq!(found.hits[0].text, "[1 May, 2023] the heron sleeps in a bathtub", "without its tag");
        let none = cognee.recall(&bank, &query("giraffes", 4)).await?;
        assert!(none.hits.is_empty(), "nothing, and no list of datasets: {none:?}");
    }
    let changes = [("default: CHUNKS, values: [CHUNKS, SUMMARIES]", "default: RAG, values: [RAG]")];
    let failure = system("cognee", fake.url(), &changes).recall(&bank, &query("heron", 4)).await;
    assert_eq!(failure.expect_err("a text is no hit").code, "system_shape");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_file_says_of_steps_is_looked_at() {
    let file = |more: &str| {
        format!(
            "name: mine\nurl: http://127.0.0.1:9\nretain: {{request: POST /add, body: {{text: '{{text}}'}}, {more}}}\n\
             recall: {{request: POST /search, hits: [{{list: results, text: memory}}]}}\n"
        )
    };
    for (more, problem) in [
        ("then: [{request: 'GET /e/{step.event}', hits: [{list: x, text: y}]}]", "this call does not read it"),
        ("then: [{request: GET /e, then: [{request: GET /f}]}]", "steps stand in one list"),
        ("until: {path: status, done: []}", "until.done: give the states"),
        ("multipart: {a: {text: b}}", "give one of `body`, `text_body` and `multipart`"),
        ("then: [{request: 'GET /e/{event}'}]", "unknown variable {event}"),
    ] {
        let spec = bench_systems::adapter::file::parse(&file(more)).expect("reads");
        let error = bench_systems::adapter::check(&spec).expect_err(more);
        assert!(error.contains(problem), "{more}: {error}");
    }
    let early = file("text_body: '{step.event}'").replace("body: {text: '{text}'}, ", "");
    let spec = bench_systems::adapter::file::parse(&early).expect("reads");
    assert!(bench_systems::adapter::check(&spec).is_err(), "nothing was carried on yet");
    let _ = of_text(&file("capture: {event: id}, then: [{request: 'GET /e/{step.event}'}]"), None);
}
