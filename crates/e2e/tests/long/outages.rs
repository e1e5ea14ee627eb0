//! Outages at their full length, on a full LoCoMo (P39, P40): coverage, digest and attempts are those of an undisturbed run.

use std::time::{Duration, Instant};

use bench_e2e::faults::{PATIENCE, RUN, SLOTS, Size, Stage};
use bench_testkit::{
    bench::wait,
    cluster::{Cluster, Setup, wait_until_ready},
    ports,
    process::{Process, wait_until},
    provider::{KEY, Provider},
};
use serde_json::{Value, json};

/// HTTP attempts and tasks of an undisturbed question: recall, answer, judgement.
const UNDISTURBED: u64 = 3;
/// The model of answerers, and of judges that are not away alone.
const MODEL: &str = "openai:gpt-4o-mini";
/// Another one.
const OTHER_MODEL: &str = "openai:gpt-4o";

fn check_attempts(questions: &[Value]) {
    let other: Vec<(&Value, &Value)> = questions
        .iter()
        .filter(|question| question["attempts"] != UNDISTURBED)
        .map(|question| (&question["question_id"], &question["attempts"]))
        .collect();
    assert!(other.is_empty(), "an outage is not an attempt: {} of {} {other:?}", other.len(), questions.len());
}

/// A local run under these outages, which begin after a fifth of its calls.
fn local(latency_ms: &str, judge: &str, outages: &[Value]) {
    let (size, provider) = (Size::Full, Provider::start(&["--latency-ms", latency_ms]));
    let (bench, began) = (size.bench(&provider), Instant::now());
    let fixed = ["submit", "--dataset", size.dataset(), "--preset", "full", "--json", "--run-id", "away"];
    let submit = [&fixed[..], &["--answerer", MODEL, "--judge", judge]].concat();
    let running = bench.start(&submit);
    provider.wait_for_requests(800);
    for outage in outages {
        provider.outage(outage);
    }
    let done = wait(running).expect_code(0);
    let report = done.json();
    assert_eq!(report["outcomes"]["coverage"], 1.0);
    // simulated judges say other things under other names
    let undisturbed = Provider::start(&[]);
    let undisturbed = size.bench(&undisturbed).run(submit).expect_code(0).json();
    assert_eq!(report["result_digest"], undisturbed["result_digest"]);
    check_attempts(&bench.questions("away"));
    eprintln!("{} s, outages: {}", began.elapsed().as_secs(), report["outages"]);
}

/// A run of a cluster under these outages, with as many workers.
fn in_cluster(workers: usize, provider: &[&str], outages: &[Value]) -> (Stage, Value) {
    let provider = Provider::start(provider);
    let cluster = Cluster::with(Setup::default()).with_provider(provider.base_url(), KEY);
    let stage = Stage::new(Size::Full, provider, cluster);
    let (_coordinator, _workers) = stage.people(workers);
    let client = stage.submit(&[]);
    stage.wait_for_percent(20);
    let last = outages.iter().map(|outage| stage.provider.outage(outage)).max().expect("an outage");
    let report = stage.check(client, 2 * 2 * SLOTS * workers as u64);
    check_attempts(&stage.cluster.questions(RUN));
    let after = stage.provider.seen_of(last)["after"].clone();
    eprintln!("outages: {}", report["outages"]);
    (stage, after)
}

fn overloaded_then_gone() -> [Value; 2] {
    [
        json!({"kind": "status", "status": 503, "for_ms": 40_000}),
        json!({"kind": "refuse", "after_ms": 40_000, "for_ms": 15_000}),
    ]
}

#[test]
fn p39_local_503_for_40_seconds_then_refused() {
    local("60", MODEL, &overloaded_then_gone());
}

#[test]
fn p39_cluster_503_for_40_seconds_then_refused() {
    drop(in_cluster(3, &["--latency-ms", "150"], &overloaded_then_gone()));
}

#[test]
fn p39_local_everything_hangs_for_60_seconds() {
    local("60", MODEL, &[json!({"kind": "hang", "for_ms": 60_000})]);
}

#[test]
fn p39_cluster_everything_hangs_for_60_seconds() {
    drop(in_cluster(3, &["--latency-ms", "150"], &[json!({"kind": "hang", "for_ms": 60_000})]));
}

#[test]
fn p39_local_the_judge_alone_is_away_for_40_seconds() {
    local("60", OTHER_MODEL, &[json!({"kind": "status", "status": 503, "model": "gpt-4o", "for_ms": 40_000})]);
}

/// Twenty workers that reopen share what the fleet may send: the provider's capacity is met by none of them.
#[test]
fn p39_twenty_workers_reopen_without_a_wave() {
    let flags = ["--latency-ms", "300", "--capacity", "200"];
    let (stage, after) = in_cluster(20, &flags, &overloaded_then_gone());
    let stats = stage.provider.stats();
    assert_eq!((&stats["over_capacity"], &stats["rate_limited"]), (&json!(0), &json!(0)), "a wave of refusals");
    let first = after["per_100ms"][0].as_u64();
    assert!(first <= Some(12), "calls came back as a wave: {after}");
    eprintln!(
        "calls per 100 ms after it: {:?}",
        after["per_100ms"].as_array().map(|parts| parts.iter().take(20).collect::<Vec<_>>())
    );
}

/// Of two runs with two models the one whose model is there ends while the other's is away.
#[test]
fn p39_a_model_that_is_away_does_not_hold_the_runs_of_another() {
    let stage = Stage::set(Size::Full, Setup::default(), 60);
    let (_coordinator, _workers) = stage.people(3);
    let size = Size::Full;
    let models = ["--answerer", OTHER_MODEL, "--judge", OTHER_MODEL];
    let submit = ["submit", "--dataset", size.dataset(), "--preset", "full", "--json", "--run-id", "other"];
    let away = stage.provider.outage(&json!({"kind": "status", "status": 503, "model": "gpt-4o"}));
    let held = stage.cluster.client(&[&submit[..], &models].concat());
    stage.provider.wait_for_requests(10);
    wait_until("the other run's model is away", PATIENCE, || {
        stage.cluster.status("other")["outages"].as_array().is_some_and(|outages| !outages.is_empty())
    });
    let client = stage.submit(&[]);
    // those of the other run were in flight when its model was met away
    let _ = stage.check(client, 3 * 2 * SLOTS);
    check_attempts(&stage.cluster.questions(RUN));
    assert_ne!(stage.provider.seen_of(away)["state"], "over", "it was away all the time");
    stage.provider.end_outages();
    let report = held.wait(PATIENCE).expect_code(0).json();
    assert_eq!(report["outcomes"]["coverage"], 1.0);
    check_attempts(&stage.cluster.questions("other"));
}

/// One worker of three does not get through, in each of five ways, one after the other.
#[test]
fn p40_one_sick_worker_of_three() {
    for way in ["refused", "dns", "tls", "bad-key", "files"] {
        let provider = Provider::start(&["--latency-ms", "60", "--accept-key", KEY]);
        let cluster = Cluster::with(Setup::default()).with_provider(provider.base_url(), KEY);
        let stage = Stage::new(Size::Full, provider, cluster);
        let (_coordinator, _healthy) = stage.people(2);
        let mut sick = sick_worker(&stage, way);
        wait_until_ready(&mut sick);
        if way == "files" {
            sick.leave_no_file_descriptors();
        }
        let client = stage.submit(&[]);
        stage.provider.wait_for_requests(10);
        wait_until("status names the sick worker", Duration::from_secs(60), || {
            let status = stage.cluster.status(RUN);
            let workers = status["cluster"]["workers"].as_array().cloned().unwrap_or_default();
            workers.iter().any(|worker| worker["name"] == way && worker["withdrawn"][0]["reason"].is_string())
        });
        let report = client.wait(PATIENCE).expect_code(0).json();
        assert_eq!(report["result_digest"].as_str(), Some(Size::Full.digest().as_str()), "{way}");
        assert_eq!(report["outcomes"]["coverage"], 1.0, "{way}");
        check_attempts(&stage.cluster.questions(RUN));
        eprintln!("{way}: all questions scored, none asked twice for it");
    }
}

fn sick_worker(stage: &Stage, way: &str) -> Process {
    let base = stage.provider.base_url();
    let url = match way {
        "refused" => {
            let [closed] = ports::reserve().expect("a port");
            format!("http://127.0.0.1:{closed}/v1")
        }
        "dns" => "http://provider.invalid/v1".to_owned(),
        "tls" => base.replace("http://", "https://"),
        _ => base.to_owned(),
    };
    let key = if way == "bad-key" { "sk-of-somebody-else" } else { KEY };
    let slots = SLOTS.to_string();
    let variables = [("OPENAI_BASE_URL", url.as_str()), ("OPENAI_API_KEY", key)];
    stage.cluster.worker_with(way, &["--concurrency", &slots], &variables)
}

/// Failures among successes are attempts with back-off: a run with a third of them finishes.
#[test]
fn p39_failures_mixed_with_successes_finish() {
    let (size, provider) =
        (Size::Full, Provider::start(&["--latency-ms", "20", "--fault-500", "0.15", "--fault-503", "0.15"]));
    let bench = size.bench(&provider);
    let submit = size.submit(&["--run-id", "away", "--set", "backoff.max_interval=1s"]);
    let report = wait(bench.start(submit)).expect_code(0).json();
    assert_eq!(report["outcomes"]["coverage"], 1.0);
    assert_eq!(report["result_digest"].as_str(), Some(size.digest().as_str()));
    assert!(report["outages"].is_null(), "{}", report["outages"]);
}
