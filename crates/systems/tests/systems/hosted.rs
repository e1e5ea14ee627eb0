//! Systems whose operations are several requests: events that are waited for, bodies of several parts, counters that have to stand
//! still, replies of two shapes.

use std::sync::Arc;

use bench_proto::{
    dataset::{BankContent, Memory, StreamEntry},
    failure::Failure,
    step::HitLevel,
};
use bench_systems::{BankRef, Readiness, StepContext};
use bench_testkit::fakes::Fake;

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_carried_on_has_to_be_there() {
    let (fake, cloud) = start("mem0-cloud");
    fake.with(|world| world.other_shape = true);
    let failure = fill(cloud.as_ref(), &mut filled(1)).await.expect_err("no event");
    assert_eq!(failure.code, "system_shape", "{failure}");
    assert!(failure.message.contains("field 'event_id' is missing: 'event' is needed by what follows"), "{failure}");
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_has_the_servers_id_and_long_passages_their_turns() {
    let (fake, letta) = start("letta");
    let long = format!("{} and the heron sleeps in a bathtub", "tea ".repeat(400));
    let entry = StreamEntry::Memory(Memory { id: "m7".to_owned(), text: long, ..Memory::default() });
    let content = BankContent { bank_id: "b".to_owned(), speakers: Vec::new(), entries: vec![entry] };
    let mut bank = BankRef { handle: None, content: Some(Arc::new(content)), ..bank() };
    fill(letta.as_ref(), &mut bank).await.expect("is stored");
    assert!(bank.handle.as_deref().is_some_and(|handle| handle.starts_with("agent-")), "{bank:?}");
    assert!(fake.with(|world| world.banks.values().map(Vec::len).sum::<usize>()) > 1, "it came in parts");
    let found = letta.recall(&bank, &query("where does the heron sleep", 3)).await.expect("finds");
    assert_eq!((found.hits[0].id.as_str(), found.hits[0].level), ("m7", Some(HitLevel::Turn)), "{found:?}");
    let answer = letta.answer(&bank, &query("where does the heron sleep", 3)).await.expect("answers");
    assert!(answer.text.contains("bathtub"), "the assistant's message, not what it reasoned: {answer:?}");
    assert_eq!((answer.usage.prompt_tokens, answer.usage.completion_tokens), (40, 4));
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
    let made = found.hits.last().expect("a fact");
    assert_eq!((made.level, &made.details["category"]), (Some(HitLevel::Unknown), &"profile".into()), "{made:?}");
    let changes = [changes_of("memmachine"), vec![("usage_input_tokens_total", "usage_tokens")]].concat();
    let other = system("memmachine", fake.url(), &changes);
    let failure = other.readiness(&bank, 3).await.expect_err("no such metric");
    assert!(failure.message.contains("no metric 'language_model_openai_usage_tokens'"), "{failure}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_segment_is_flushed_once() {
    let (fake, evermemos) = start("evermemos");
    let mut bank = filled(4);
    bank.handle = Some(evermemos.open_bank(&bank).await.expect("is named"));
    let entries = bank.content.clone().expect("has content").entries.clone();
    for until in [2, 4_usize] {
        for entry in &entries[until - 2..until] {
            evermemos.retain(&bank, std::slice::from_ref(entry), StepContext::default()).await.expect("is stored");
        }
        while let Readiness::NotYet { .. } = evermemos.readiness(&bank, until as u32).await.expect("is asked") {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        assert_eq!(fake.with(|world| world.banks.values().map(Vec::len).sum::<usize>()), until, "the tail too");
    }
    assert_eq!(requests(&fake, "/memories/flush"), 2);
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
