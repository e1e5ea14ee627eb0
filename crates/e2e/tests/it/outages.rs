//! Providers that are away for a time (P39), on one machine.

use std::time::{Duration, Instant};

use bench_e2e::faults::{PATIENCE, Size};
use bench_testkit::{
    bench::{Bench, Done, wait},
    process::wait_until,
    provider::Provider,
};
use serde_json::{Value, json};

/// HTTP attempts and tasks of an undisturbed question: recall, answer, judgement.
const UNDISTURBED: u64 = 3;

fn told(done: &Done, words: &str) -> usize {
    done.stderr.lines().filter(|line| line.contains("provider_away") && line.contains(words)).count()
}

fn check(size: Size, bench: &Bench, done: Done) -> Value {
    let done = done.expect_code(0);
    assert_eq!((told(&done, "is away:"), told(&done, "is back after")), (1, 1), "one line each:\n{}", done.stderr);
    let report = done.json();
    assert_eq!(report["result_digest"].as_str(), Some(size.digest().as_str()));
    assert_eq!(report["outcomes"]["coverage"], 1.0);
    let attempts = |question: &Value| question["attempts"] == UNDISTURBED;
    assert!(bench.questions("away").iter().all(attempts), "an outage is not an attempt:\n{}", done.stderr);
    report
}

/// 503 for a while, then nobody listens: what an overloaded server does before it is started again.
#[test]
fn p39_an_outage_loses_no_question_and_no_attempt() {
    let (size, provider) = (Size::Large, Provider::start(&["--latency-ms", "60"]));
    let bench = provider.bench();
    let running = bench.start(size.submit(&["--run-id", "away"]));
    provider.wait_for_requests(100);
    provider.outage(&json!({"kind": "status", "status": 503, "for_ms": 8000}));
    let refused = provider.outage(&json!({"kind": "refuse", "after_ms": 8000, "for_ms": 4000}));
    wait_until("status names what is away", PATIENCE, || {
        let status = bench.run(["status", "away", "--json"]).expect_code(0).json();
        let outage = &status["outages"][0];
        outage["key"] == "gpt-4o-mini (account openai)" && status["next_probe"].is_number()
    });
    provider.wait_for_end_of(refused, PATIENCE);
    let report = check(size, &bench, wait(running));
    let met = report["outages"].as_array().expect("a list");
    assert_eq!(met.len(), 1, "{met:?}");
    assert!(met[0]["to"].is_string() && met[0]["calls_held"].as_u64() > Some(0), "{met:?}");
    assert!(report["usage"]["booked"]["overhead"]["usd"].as_f64() > Some(0.0), "a probe came through and was booked");
}

#[test]
fn p39_a_judges_outage_does_not_stop_answers() {
    let (size, provider) = (Size::Small, Provider::start(&["--latency-ms", "20"]));
    let bench = provider.bench();
    provider.outage(&json!({"kind": "status", "status": 503, "model": "gpt-4o", "for_ms": 600_000}));
    let submit = ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--json", "--run-id", "away"];
    // votes that wait for their judge leave the few places of the run to others
    let models = ["--answerer", "openai:gpt-4o-mini", "--judge", "openai:gpt-4o", "--concurrency", "4"];
    let running = bench.start(submit.iter().chain(&models));
    let answered = size.questions() as u64;
    wait_until("all questions are answered", PATIENCE, || {
        provider.count_of_model("gpt-4o-mini", "requests") >= answered
    });
    provider.end_outages();
    let done = wait(running).expect_code(0);
    assert_eq!((told(&done, "gpt-4o (account"), told(&done, "gpt-4o-mini")), (2, 0), "{}", done.stderr);
    assert_eq!(done.json()["outcomes"]["coverage"], 1.0);
    let attempts: Vec<Value> = bench.questions("away").iter().map(|question| question["attempts"].clone()).collect();
    assert!(attempts.iter().all(|attempts| *attempts == UNDISTURBED), "{attempts:?}:\n{}", done.stderr);
}

/// A call that always dies looks like an outage when it is the last one; probes come through, so it ends by itself.
#[test]
fn p39_a_poison_question_ends_alone() {
    let (size, provider) = (Size::Small, Provider::start(&[]));
    let _ = provider.bench().run(size.submit(&["--run-id", "before"])).expect_code(0);
    let bench = provider.bench();
    let _ = bench.run(size.submit(&["--run-id", "sound"])).expect_code(0);
    let questions = bench.questions("sound");
    let poison = questions[7]["question"].as_str().expect("a text");
    let alike = questions.iter().filter(|question| question["question"] == poison).count();
    provider.outage(&json!({"kind": "cut", "contains": poison}));
    let done = bench.run(size.submit(&["--run-id", "away", "--set", "backoff.max_interval=1s"]));
    let report = done.expect_code(5).json();
    assert_eq!(report["outcomes"]["infra_error"], alike, "{}", report["outcomes"]);
    assert_eq!(report["outcomes"]["not_run"], 0);
}

#[test]
fn p39_a_run_that_has_waited_long_enough_pauses_and_resume_probes_at_once() {
    let (size, provider) = (Size::Small, Provider::start(&["--latency-ms", "50"]));
    let bench = provider.bench();
    let running = bench.start(size.submit(&["--run-id", "away", "--outage-timeout", "2"]));
    provider.wait_for_requests(20);
    let message = "we are rebuilding";
    provider.outage(&json!({"kind": "status", "status": 503, "message": message}));
    let paused = wait(running).expect_code(3);
    assert!(paused.stderr.contains(message) && paused.stderr.contains("resume"), "{}", paused.stderr);
    provider.end_outages();
    let began = Instant::now();
    let done = bench.run(["resume", "away", "--json"]).expect_code(0);
    assert!(began.elapsed() < Duration::from_secs(30), "it did not wait for the next probe of its own");
    let report = done.json();
    assert_eq!(report["result_digest"].as_str(), Some(size.digest().as_str()));
}
