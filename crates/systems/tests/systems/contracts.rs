//! Every shipped adapter passes the checks against its contract, and its traps are handled.

use std::time::Duration;

use bench_systems::{
    BuildContext, SystemSettings, adapter,
    check::{self, Form, Outcome, Told},
    policy::Policy,
    registry,
};
use bench_testkit::fakes::{Fake, SYSTEMS, World};

use super::{
    changes_of, checked, outcome, over_http,
    robust::bank,
    start, system,
    traps::{fill, filled, query},
};

#[test]
fn every_shipped_adapter_has_a_contract_to_be_tested_against() {
    for name in over_http() {
        assert!(SYSTEMS.iter().any(|(known, _)| *known == name), "{name} has no system in the testkit");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_shipped_adapter_passes_the_checks() {
    for name in over_http() {
        let (_fake, system) = start(name);
        let (lines, steps) = checked(system.as_ref()).await;
        assert!(steps.iter().all(|step| step.outcome != Outcome::Fail), "{name}: {steps:#?}");
        assert!(lines.len() >= 12, "{name}: {lines:?}");
    }
}

/// Shipped adapters whose servers list what a bank holds.
const LISTS: [&str; 8] = ["hebb-mind", "mem0", "mem0-cloud", "graphiti", "hindsight", "memmachine", "evermemos", "zep"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_can_be_asked_what_they_hold_are_asked() {
    for name in LISTS {
        let (_fake, system) = start(name);
        assert!(system.capabilities().lists, "{name}");
        let (_, steps) = checked(system.as_ref()).await;
        assert_eq!(outcome(&steps, "lists"), Outcome::Pass, "{name}: {steps:#?}");
    }
}

/// What systems say of a hit beside its text: of each, and once of all of them.
const SAID: [(&str, &[&str], &[&str]); 4] = [
    ("hebb-mind", &["before_rerank", "importance", "recency", "relevance"], &[]),
    ("hindsight", &["scores", "type"], &[]),
    ("jeffs-brain", &["bm25_rank", "vector_similarity"], &["mode"]),
    ("astrocyte", &[], &["fusion", "strategies"]),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_systems_say_of_their_hits_is_kept() {
    for (name, of_each, of_reply) in SAID {
        let (_fake, system) = start(name);
        let mut bank = filled(3);
        fill(system.as_ref(), &mut bank).await.expect("stores");
        let hits = system.recall(&bank, &query("heron", 3)).await.expect("finds").hits;
        let kept = |at: usize| hits[at].details.keys().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(kept(1), of_each, "{name}");
        let mut first = [of_each, of_reply].concat();
        first.sort_unstable();
        assert_eq!(kept(0), first, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn built_in_systems_pass_the_checks() {
    for name in ["bm25", "full-context"] {
        let system = registry::build(name, &SystemSettings::new(), &BuildContext::default()).expect("is built");
        let (_, steps) = checked(system.as_ref()).await;
        assert_eq!(outcome(&steps, "the future"), Outcome::Pass, "{name}: {steps:#?}");
        assert!(steps.iter().all(|step| step.outcome != Outcome::Fail), "{name}: {steps:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_system_that_finds_by_names_alone_is_asked_by_them() {
    let system = registry::build("alias", &SystemSettings::new(), &BuildContext::default()).expect("is built");
    let told = Told { top_k: 10, names_ids: false, by_names: registry::finds_by_names("alias"), form: Form::File };
    let steps = check::run(system.as_ref(), "bench-check-1", told).await;
    assert!(steps.iter().all(|step| step.outcome != Outcome::Fail), "{steps:#?}");
    assert_eq!(outcome(&steps, "ready is true"), Outcome::Pass, "{steps:#?}");
}

/// A file of which an operation takes long.
const LONG: &str = "
name: mine
url: http://127.0.0.1:9
retain: {request: POST /add, body: {text: '{text}', user: '{bank}'}}
recall: {request: POST /search, body: {query: '{query}'}, hits: [{list: results, text: memory}]}
reset: {request: 'DELETE /users/{bank}'}
";

#[test]
fn the_last_resort_cuts_nothing_that_a_file_allows() {
    let deadline = |text: &str| {
        let spec = adapter::file::parse(text).expect("reads");
        adapter::check(&spec).expect("compiles").deadline.expect("has one")
    };
    assert_eq!(deadline(LONG), Duration::from_secs(600));
    for (from, to) in [
        ("recall: {", "recall: {timeout: 30m, "),
        ("reset: {", "flush: {request: POST /flush, timeout: 30m}\nreset: {"),
        ("reset: {", "verify: {request: GET /count, count: n, timeout: 30m}\nreset: {"),
        ("reset: {", "list: {request: GET /all, hits: [{list: all, text: text}], timeout: 30m}\nreset: {"),
        ("retain: {", "retain: {then: [{request: GET /e, until: {path: s, done: [1], within: 30m}}], "),
        ("url: http://127.0.0.1:9", "start: {command: [mem], timeout: 30m}"),
    ] {
        let deadline = deadline(&LONG.replace(from, to));
        assert!(deadline >= Duration::from_secs(1860), "{to}: {deadline:?}");
    }
    for (name, text) in adapter::shipped::SHIPPED {
        let hours = text.match_indices("timeout: 4h").count();
        assert!(hours == 0 || deadline(text) > Duration::from_secs(4 * 3600), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fake_model_that_answers_ok_is_found() {
    let (fake, system) = start("jeffs-brain");
    fake.with(|world| world.always_answers = Some("ok".to_owned()));
    let (_, steps) = checked(system.as_ref()).await;
    assert_eq!(outcome(&steps, "real answers"), Outcome::Fail);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_system_that_loses_memories_is_found() {
    let (fake, system) = start("hebb-mind");
    fake.with(|world| world.loses_every = 3);
    let (_, steps) = checked(system.as_ref()).await;
    assert_eq!(outcome(&steps, "counts"), Outcome::Fail, "{steps:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_worker_of_graphiti_is_no_readiness() {
    let fake = Fake::start("graphiti");
    let changes = [changes_of("graphiti"), vec![("stalled_after: 10m", "stalled_after: 100ms")]].concat();
    let system = system("graphiti", fake.url(), &changes);
    fake.with(|world| world.worker_dead = true);
    let (_, steps) = checked(system.as_ref()).await;
    let store = steps.iter().find(|step| step.check == "store").expect("was tried");
    assert!(store.outcome == Outcome::Fail && store.detail.contains("system_stalled"), "{store:?}");
}

/// A trouble, a system that has it, and the check that finds it.
type Trouble = (&'static str, fn(&mut World), &'static str);

const TROUBLES: &[Trouble] = &[
    ("mem0", |world| world.loses_every = 1, "ready is true"),
    ("hindsight", |world| world.loses_every = 3, "counts"),
    ("mem0", |world| world.ascii_only = true, "unicode and length"),
    ("astrocyte", |world| world.stores_twice = true, "repeat"),
    ("mem0", |world| world.mixes_banks = true, "isolation"),
    ("mem0", |world| world.resets_everything = true, "reset"),
    ("mem0", |world| world.resets_nothing = true, "reset"),
    ("astrocyte", |world| world.always_answers = Some("I am not sure.".to_owned()), "real answers"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_trouble_is_found_by_its_check() {
    for (name, trouble, check) in TROUBLES {
        let (fake, system) = start(name);
        fake.with(*trouble);
        let (_, steps) = checked(system.as_ref()).await;
        assert_eq!(outcome(&steps, check), Outcome::Fail, "{name}: {steps:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_system_says_about_itself_is_read() {
    let (_fake, hebb) = start("hebb-mind");
    let said = hebb.statistics(&bank()).await.expect("answers");
    assert_eq!((said.version.as_deref(), said.numbers.len()), (Some("0.3.0"), 0));
    let (_fake, hindsight) = start("hindsight");
    let said = hindsight.statistics(&bank()).await.expect("answers");
    assert_eq!(said.numbers.get("failed_operations"), Some(&0.0), "{said:?}");
    let (_fake, mem0) = start("mem0");
    assert!(mem0.statistics(&bank()).await.expect("answers").is_empty(), "it says nothing, and is not asked");
}

/// What a system is sent: the bodies that make a bank, and all other requests in order.
async fn sent(asked: Option<&str>) -> (serde_json::Value, Vec<String>) {
    let fake = Fake::start("hindsight");
    let Some(Ok(mut spec)) = adapter::shipped::find("hindsight") else { panic!("is shipped") };
    spec.ready.every = Some("10ms".to_owned());
    let told = adapter::dispositions::take(&mut spec, asked).expect("it has them");
    let adapter = serde_json::to_value(&spec).expect("serialises");
    let mut settings =
        SystemSettings::from([(adapter::ADAPTER.to_owned(), adapter), (adapter::URL.to_owned(), fake.url().into())]);
    settings.extend(told.map(|told| (adapter::dispositions::DISPOSITIONS.to_owned(), told)));
    let context = BuildContext { policy: Policy::anything().into(), ..BuildContext::default() };
    let system = registry::build("hindsight", &settings, &context).expect("builds");
    let said = registry::capabilities("hindsight", &settings, &context).expect("is known");
    assert_eq!(said.version, system.capabilities().version, "a plan says what is built");
    let (_, steps) = checked(system.as_ref()).await;
    assert!(steps.iter().all(|step| step.outcome != Outcome::Fail), "{steps:#?}");
    fake.with(|world| {
        let opened = world.requests.iter().position(|request| request.starts_with("PUT ")).expect("a bank is made");
        (world.bodies[opened].clone(), world.requests.clone())
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dispositions_are_said_when_a_bank_is_made_and_to_a_run_without_them_nothing_is_new() {
    let (plain, requests) = sent(None).await;
    let name = plain["name"].clone();
    assert_eq!(plain, serde_json::json!({ "name": name }), "what it was sent before it had dispositions");
    let (told, same) = sent(Some("skepticism=4,empathy=2")).await;
    assert_eq!(told, serde_json::json!({ "name": name, "disposition_skepticism": 4, "disposition_empathy": 2 }));
    assert_eq!(requests, same, "everything else is as without them");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_removes_everything_is_ever_sent() {
    for name in over_http().filter(|name| *name != "amplihack") {
        let (fake, system) = start(name);
        fake.with(|world| world.store("somebody-else", "a memory of somebody else", serde_json::Value::Null));
        checked(system.as_ref()).await;
        let kept = fake.with(|world| world.banks.get("somebody-else").map(Vec::len));
        assert_eq!(kept, Some(1), "{name}");
    }
}
