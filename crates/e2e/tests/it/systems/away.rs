//! Memory servers that are away for a time (P39), on one machine: overloaded, gone, hanging. A system that the runner has started
//! is its own matter.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use bench_testkit::{
    bench::{Bench, Done, wait},
    fakes::Fake,
    process::wait_until,
};
use serde_json::Value;

use super::{
    PATIENCE, assert_ended, digest, retained,
    started::{adapter, command},
};

/// A request of a server that works.
const QUICK: Duration = Duration::from_millis(30);

/// After this time the first probe of an outage has failed.
const PROBED: Duration = Duration::from_secs(3);

/// A run over three conversations, twenty questions each.
pub(crate) fn many<'a>(system: &'a str, run: &'a str) -> Vec<&'a str> {
    let of = ["submit", "--dataset", "locomo-sim", "--max-banks", "3", "--per-bank", "20", "--json"];
    of.into_iter().chain(["--system", system, "--run-id", run]).collect()
}

/// An adapter for the server at `url`, which gives up a request soon; it cannot repeat unless it says so.
fn impatient(folder: &Path, url: &str, can: &str) -> String {
    let text = format!(
        "
name: impatient
url: {url}
timeout: 2s
can: {{{can}}}
unit: session
message: {{role: '{{role}}', content: '{{text}}'}}
retain: {{request: POST /memories, body: {{user_id: '{{bank}}', messages: '{{messages}}', metadata: {{session_id: '{{session_id}}'}}}}}}
recall:
  request: POST /search
  body: {{query: '{{query}}', filters: {{user_id: '{{bank}}'}}, top_k: '{{k}}'}}
  hits: [{{list: results, text: memory, id: metadata.session_id, session: metadata.session_id, score: score}}]
health: {{request: GET /openapi.json}}
"
    );
    std::fs::write(folder.join("impatient.yaml"), text).expect("the adapter can be written");
    "./impatient.yaml".to_owned()
}

fn told(done: &Done, words: &str) -> usize {
    done.stderr.lines().filter(|line| line.contains("system_away") && line.contains(words)).count()
}

/// Waits until `status` says that an operation of the server is away.
fn wait_for_outage(bench: &Bench, run: &str, operation: &str) {
    wait_until("status names what is away", PATIENCE, || {
        let status = bench.run(["status", run, "--json"]).expect_code(0).json();
        let outages = status["outages"].as_array().cloned().unwrap_or_default();
        let is_named = |outage: &Value| outage["key"].as_str().is_some_and(|key| key.contains(operation));
        outages.iter().any(is_named) && status["next_probe"].is_number()
    });
}

/// Ends as the undisturbed run did, with one line for each beginning and each end of an outage.
fn check(bench: &Bench, done: Done, run: &str, undisturbed: &str) -> Value {
    let done = done.expect_code(0);
    assert_eq!(digest(&done), undisturbed, "{}", done.stderr);
    assert_eq!(told(&done, "is away:"), told(&done, "is back after"), "{}", done.stderr);
    let report = done.json();
    assert!(report["outages"].as_array().is_some_and(|met| !met.is_empty()), "{report}");
    let attempts: Vec<Value> =
        bench.questions(run).into_iter().map(|mut question| question["attempts"].take()).collect();
    let before: Vec<Value> =
        bench.questions("undisturbed").into_iter().map(|mut question| question["attempts"].take()).collect();
    assert_eq!(attempts, before, "an outage is not an attempt:\n{}", done.stderr);
    report
}

fn undisturbed(bench: &Bench, system: &str) -> String {
    digest(&bench.run(many(system, "undisturbed")).expect_code(0))
}

/// 503 to everything while banks are filled, then nobody listens; the same while they are searched.
fn overloaded_and_gone(fake: &mut Fake, bench: &Bench, system: &str) {
    let expected = undisturbed(bench, system);
    fake.with(|world| world.slow = QUICK);
    let running = bench.start(many(system, "away"));
    wait_until("some sessions are stored", PATIENCE, || retained(bench, "away") >= 6);
    fake.with(|world| world.fails = (usize::MAX, 503));
    wait_for_outage(bench, "away", "retain");
    fake.leave();
    std::thread::sleep(Duration::from_secs(3));
    fake.with(|world| (world.fails, world.requests) = ((0, 200), Vec::new()));
    fake.come_back();
    let searches = |fake: &Fake| fake.with(|world| world.requests.iter().filter(|r| r.ends_with("/search")).count());
    wait_until("questions are asked", PATIENCE, || searches(fake) >= 10);
    fake.with(|world| world.fails = (usize::MAX, 503));
    wait_for_outage(bench, "away", "recall");
    std::thread::sleep(PROBED);
    fake.with(|world| world.fails = (0, 200));
    let report = check(bench, wait(running), "away", &expected);
    assert!(report["outages"].as_array().is_some_and(|met| met.iter().all(|met| met["to"].is_string())), "{report}");
}

#[test]
fn p39_a_memory_server_that_is_away_loses_no_question_and_no_attempt() {
    let mut fake = Fake::start("jeffs-brain");
    let bench = Bench::new().with_env("JB_URL", fake.url());
    overloaded_and_gone(&mut fake, &bench, "jeffs-brain");
}

#[test]
fn p39_nor_does_one_that_cannot_repeat_what_was_in_doubt_when_it_went() {
    let mut fake = Fake::start("mem0");
    let bench = Bench::new();
    let system = impatient(bench.path(), fake.url(), "repeat: false");
    overloaded_and_gone(&mut fake, &bench, &system);
}

#[test]
fn p39_a_memory_server_that_hangs_is_away_too() {
    let fake = Fake::start("mem0");
    let bench = Bench::new();
    let system = impatient(bench.path(), fake.url(), "repeat: false");
    let expected = undisturbed(&bench, &system);
    fake.with(|world| (world.slow, world.requests) = (QUICK, Vec::new()));
    let running = bench.start(many(&system, "away"));
    let searches = || fake.with(|world| world.requests.iter().filter(|r| r.ends_with("/search")).count());
    wait_until("questions are asked", PATIENCE, || searches() >= 10);
    fake.with(|world| world.slow = Duration::from_secs(3_600));
    wait_for_outage(&bench, "away", "recall");
    // a probe that hangs is cut as any request
    std::thread::sleep(PROBED + Duration::from_secs(2));
    fake.with(|world| world.slow = QUICK);
    check(&bench, wait(running), "away", &expected);
}

#[test]
fn p39_a_run_whose_memory_server_stays_away_pauses_and_resume_probes_at_once() {
    let fake = Fake::start("jeffs-brain");
    let bench = Bench::new().with_env("JB_URL", fake.url());
    let expected = undisturbed(&bench, "jeffs-brain");
    fake.with(|world| world.slow = QUICK);
    let running = bench.start([many("jeffs-brain", "away"), vec!["--outage-timeout", "2"]].concat());
    wait_until("some sessions are stored", PATIENCE, || retained(&bench, "away") >= 3);
    fake.with(|world| world.fails = (usize::MAX, 503));
    let paused = wait(running).expect_code(3);
    assert!(paused.stderr.contains("status 503") && paused.stderr.contains("resume"), "{}", paused.stderr);
    fake.with(|world| world.fails = (0, 200));
    let began = Instant::now();
    let done = bench.run(["resume", "away", "--json"]).expect_code(0);
    assert!(began.elapsed() < Duration::from_secs(30), "it did not wait for the next probe of its own");
    assert_eq!(digest(&done), expected);
}

/// What the runner has started is no matter of others: nothing of it is in the store.
#[test]
fn p39_a_started_system_that_is_busy_for_a_while_is_waited_for_by_its_process_alone() {
    let bench = Bench::new();
    let busy = bench.path().join("busy");
    let start = format!("{{{}, env: {{MEMORY_BUSY: '{}'}}}}", command(), busy.display());
    let mine = adapter(bench.path(), &start);
    let expected = undisturbed(&bench, &mine);
    let running = bench.start(many(&mine, "away"));
    wait_until("some sessions are stored", PATIENCE, || retained(&bench, "away") >= 3);
    std::fs::write(&busy, "").expect("can be written");
    std::thread::sleep(Duration::from_secs(8));
    std::fs::remove_file(&busy).expect("is there");
    let done = wait(running).expect_code(0);
    assert_eq!(digest(&done), expected, "{}", done.stderr);
    assert!(told(&done, "is away:") > 0, "{}", done.stderr);
    assert_eq!(told(&done, "is away:"), told(&done, "is back after"), "{}", done.stderr);
    assert!(done.json()["outages"].is_null(), "{}", done.stdout);
    assert_ended(&bench.path().join(".bench"));
}
