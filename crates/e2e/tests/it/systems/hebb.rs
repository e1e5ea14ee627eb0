//! Hebb Mind, the real server: its memories are in a file, so it comes back with them.

use std::time::Duration;

use bench_testkit::{
    bench::{Bench, signal, wait},
    cluster::{Cluster, wait_until_ready},
    provider::{KEY, Provider},
    python,
};

use super::{gone, kill, lives, retained, started};

const SUBMIT: &[&str] = &[
    "submit",
    "--dataset",
    "locomo-sim",
    "--max-banks",
    "2",
    "--sample",
    "2",
    "--system",
    "hebb-mind",
    "--run-id",
    "hebb",
    "--json",
];

fn env(provider: &Provider) -> [(&'static str, String); 3] {
    [
        ("HEBB_PYTHON", python::python(python::HEBB_MIND).display().to_string()),
        ("HEBB_EMBEDDINGS_URL", format!("{}/embeddings", provider.base_url())),
        ("HEBB_EMBEDDINGS_KEY", KEY.to_owned()),
    ]
}

fn bench(provider: &Provider) -> Bench {
    env(provider).into_iter().fold(Bench::new(), |bench, (name, value)| bench.with_env(name, value))
}

#[test]
fn hebb_mind_is_checked_and_benchmarked_in_one_command() {
    let provider = Provider::start(&[]);
    let bench = bench(&provider);
    let checked = bench.run(["systems", "check", "hebb-mind", "--json"]).expect_code(0).json();
    let of = |check: &str| {
        let steps = checked["steps"].as_array().expect("steps");
        steps.iter().find(|step| step["check"] == check).expect("is checked")["outcome"].clone()
    };
    for passed in [
        "health",
        "store",
        "ready is true",
        "counts",
        "unicode and length",
        "ids come back",
        "limits",
        "isolation",
        "reset",
    ] {
        assert_eq!(of(passed), "pass", "{passed}: {checked}");
    }
    let report = bench.run(SUBMIT).expect_code(0).json();
    assert_eq!(report["outcomes"]["coverage"], 1.0, "{report}");
    let home = bench.path().join(".bench");
    assert!(super::instance(&home).is_none(), "it was ended with the run");
    let log = home.join("systems/hebb/hebb-mind/system.log");
    assert!(log.exists(), "its log is kept with the run");
    let found: u64 =
        bench.questions("hebb").iter().map(|q| q["retrieved"].as_array().map_or(0, |h| h.len() as u64)).sum();
    assert!(found > 0, "it finds something");
}

#[test]
fn hebb_mind_is_killed_while_it_is_filled() {
    let provider = Provider::start(&["--latency-ms", "60"]);
    let bench = bench(&provider);
    let home = bench.path().join(".bench");
    let child = bench.start(SUBMIT);
    let first = started(&home);
    bench_testkit::process::wait_until("some sessions are stored", Duration::from_secs(60), || {
        retained(&bench, "hebb") >= 3
    });
    kill(first);
    let done = wait(child).expect_code(0);
    assert_eq!(done.json()["outcomes"]["coverage"], 1.0, "{}", done.stdout);
    assert!(!lives(first));
    assert!(super::instance(&home).is_none(), "the second one was ended with the run");
}

#[test]
fn a_system_whose_runner_was_killed_is_ended_by_the_next_start() {
    let provider = Provider::start(&["--latency-ms", "60"]);
    let bench = bench(&provider);
    let home = bench.path().join(".bench");
    let child = bench.start(SUBMIT);
    let first = started(&home);
    bench_testkit::process::wait_until("a session is stored", Duration::from_secs(60), || {
        retained(&bench, "hebb") >= 1
    });
    signal(&child, "KILL");
    let _ = wait(child);
    assert!(lives(first), "nobody could end it");
    let done = bench.run(["resume", "hebb", "--json"]).expect_code(0);
    assert_eq!(done.json()["outcomes"]["coverage"], 1.0, "{}", done.stdout);
    gone(first);
    assert!(super::instance(&home).is_none());
}

#[test]
fn hebb_mind_through_rabbitmq_and_postgres_with_a_kill() {
    let provider = Provider::start(&["--latency-ms", "40"]);
    let cluster =
        env(&provider).into_iter().fold(Cluster::new(), |cluster, (name, value)| cluster.with_key(name, &value));
    let home = cluster.bench().path().join(".bench");
    let mut coordinator = cluster.coordinator("coordinator");
    wait_until_ready(&mut coordinator);
    let _workers = [cluster.worker("one", &[]), cluster.worker("two", &[])];
    let client = cluster.client(SUBMIT);
    let first = started(&home);
    let stored = || cluster.sql("SELECT coalesce(sum(position), 0) FROM banks").parse::<u64>().unwrap_or(0);
    bench_testkit::process::wait_until("some sessions are stored", Duration::from_secs(60), || stored() >= 3);
    kill(first);
    let done = client.wait(Duration::from_secs(240)).expect_code(0);
    assert_eq!(done.json()["outcomes"]["coverage"], 1.0, "{}", done.stdout);
    bench_testkit::process::wait_until("it was ended with the run", Duration::from_secs(60), || {
        super::instance(&home).is_none()
    });
}
