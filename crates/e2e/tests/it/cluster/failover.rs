//! A failover of Postgres that loses commits: living processes know what they were told, and the store gets it back (P44).

use std::time::{Duration, Instant};

use bench_e2e::faults::{RUN, SLOTS, Size, Stage};
use bench_testkit::{
    cluster::{Cluster, Setup},
    process::wait_until,
    provider::{KEY, Provider},
};
use serde_json::Value;

const OWN: Setup = Setup { own_postgres: true, own_broker: false, proxies: false, pooler: false, one_role: false };
/// Calls that two workers may have in flight, of both roles.
const IN_FLIGHT: u64 = 2 * 2 * SLOTS;

/// Lets the store forget what is committed within some seconds; returns when it was back.
fn lose(stage: &Stage, span: Duration) -> Instant {
    let copied = stage.cluster.postgres().copy().expect("the server is copied");
    std::thread::sleep(span);
    stage.cluster.postgres().fail_over(copied).expect("the copy comes up");
    Instant::now()
}

/// What the store says to have spent, uncertain included, in dollars.
fn ledger(stage: &Stage) -> f64 {
    let spent = stage.cluster.sql("SELECT spent FROM run_counters ORDER BY run_no LIMIT 1");
    spent.parse::<f64>().expect("a number") / 1e12
}

fn went_back(status: &Value) -> Vec<&str> {
    status["went_back"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[test]
fn fault_30_a_failover_loses_seconds_of_commits() {
    let provider = Provider::start(&["--latency-ms", "150", "--price", "gpt-4o-mini=0.15/0.60"]);
    let cluster = Cluster::with(OWN).with_provider(provider.base_url(), KEY);
    let stage = Stage::new(Size::Large, provider, cluster);
    let (_coordinator, mut workers) = stage.people(2);
    let client = stage.submit(&[]);
    stage.wait_for_percent(25);
    let back = lose(&stage, Duration::from_secs(4));
    let asked = stage.provider.count("requests");
    stage.provider.wait_for_requests(asked + 3 * IN_FLIGHT);
    let again = back.elapsed();
    assert!(again < Duration::from_secs(15), "questions went on after {again:?}");
    let report = stage.check(client, IN_FLIGHT);
    assert!(workers.iter_mut().all(|worker| worker.runs()), "workers outlive the failover");
    let (paid, ledger) = (stage.provider.paid(), ledger(&stage));
    assert!(ledger >= paid - 1e-9, "${paid} were paid, the ledger knows of ${ledger}");
    assert!(ledger <= paid * 1.05, "${paid} were paid, the ledger has ${ledger}");
    let status = stage.cluster.status(RUN);
    let told = went_back(&status);
    assert!(told.iter().any(|event| event.contains("went back in time")), "{status:#}");
    let stored = told.iter().filter(|event| event.contains("results again")).count();
    assert!(stored > 0, "{told:#?}");
    eprintln!("back after {again:?}; {}; {}", told.join("; "), report["usage"]["total"]);
}

#[test]
fn fault_31_a_failover_loses_less_than_a_renewal() {
    let stage = Stage::set(Size::Middle, OWN, 150);
    let (_coordinator, _workers) = stage.people(2);
    let client = stage.submit(&[]);
    stage.wait_for_percent(25);
    lose(&stage, Duration::from_millis(300));
    stage.check(client, IN_FLIGHT);
}

#[test]
fn fault_33_banks_of_the_lost_span_begin_anew_under_names_that_were_never_given() {
    let stage = Stage::set(Size::Small, OWN, 10);
    let (_coordinator, mut workers) = stage.people(2);
    // an outside memory in which a session that is written twice shows
    let memory = format!("faulty.memory={}", stage.cluster.bench().path().join("memory").display());
    let client = stage.submit(&["--system", "faulty", "--set", &memory, "--set", "faulty.retain_ms=150"]);
    let retained = || -> u64 {
        let sum = stage.cluster.sql("SELECT COALESCE(sum(entries_retained), 0) FROM run_counters");
        sum.parse().expect("a number")
    };
    wait_until("something is retained", Duration::from_secs(60), || retained() > 8);
    let copied = stage.cluster.postgres().copy().expect("the server is copied");
    let (asked, known) = (stage.provider.count("requests"), retained());
    std::thread::sleep(Duration::from_millis(1500));
    assert!(retained() > known, "nothing would be lost");
    // who knew what this worker has written dies with the store
    workers[0].kill();
    let unknown = stage.provider.count("requests") - asked;
    stage.cluster.postgres().fail_over(copied).expect("the copy comes up");
    workers[0] = stage.worker("worker3");
    stage.check(client, unknown + IN_FLIGHT);
    let renamed = stage.cluster.sql("SELECT count(*) FROM banks WHERE namespaces LIKE '%:%'");
    let names = std::fs::read_dir(stage.cluster.bench().path().join("memory")).expect("banks were kept");
    let names: Vec<String> = names.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert!(renamed != "0" && names.iter().any(|name| name.contains("-i")), "{renamed}: {names:?}");
    eprintln!("{renamed} banks of 10 began anew: {names:?}");
}
