//! Postgres restarts and goes away: results wait for it, nobody is declared dead meanwhile. And rows that cannot be read.

use std::time::Duration;

use bench_e2e::faults::{PATIENCE, RUN, Size, Stage};
use bench_testkit::{
    cluster::{Setup, health_of},
    http,
};

const OWN: Setup = Setup { own_postgres: true, own_broker: false, proxies: false, pooler: false, one_role: false };

#[test]
fn fault_12_postgres_restarts() {
    let stage = Stage::set(Size::Middle, OWN, 150);
    let (_coordinator, mut workers) = stage.people(2);
    let client = stage.submit(&[]);
    for percent in [10, 25, 40, 55, 70] {
        stage.wait_for_percent(percent);
        stage.cluster.postgres().restart().expect("Postgres comes back");
    }
    stage.check(client, 0);
    assert!(workers.iter_mut().all(|worker| worker.runs()), "workers outlive restarts");
}

#[test]
fn fault_13_postgres_is_away_for_twenty_seconds() {
    let stage = Stage::set(Size::Middle, OWN, 150);
    let (mut coordinator, mut workers) = stage.people(2);
    let place = health_of(&mut coordinator);
    let page = |path: &str| http::get(&place, path).expect("the coordinator answers");
    let client = stage.submit(&[]);
    stage.wait_for_percent(25);
    let asked_for = page("/api/scale/default/question");
    stage.cluster.postgres().stop().expect("stops");
    std::thread::sleep(Duration::from_secs(12));
    let quiet = stage.provider.count("requests");
    std::thread::sleep(Duration::from_secs(8));
    assert_eq!(stage.provider.count("requests"), quiet, "no call starts while the store is out of reach (P4)");
    let metrics = page("/metrics").body;
    assert!(metrics.lines().any(|line| line == "bench_coordinator_leading 0"), "an alert rings:\n{metrics}");
    let still = page("/api/scale/default/question");
    assert_eq!((still.status, still.body), (200, asked_for.body), "no worker is ended by a scaler");
    let done = stage.cluster.run(&["status", RUN]).expect_code(4);
    assert!(done.stderr.contains("postgres://") && !done.stderr.contains("planted"), "{}", done.stderr);
    stage.cluster.postgres().start_again().expect("Postgres comes back");
    stage.check(client, 0);
    assert_eq!(stage.cluster.sql("SELECT COALESCE(sum(losses), 0) FROM tasks"), "0", "an outage is nobody's death");
    assert!(workers.iter_mut().all(|worker| worker.runs()), "workers outlive the outage");
}

#[test]
fn runs_that_cannot_be_read_hold_up_no_other() {
    let stage = Stage::set(Size::Small, Setup::default(), 50);
    for broken in ["broken-1", "broken-2", "broken-3"] {
        let _ = stage.cluster.run(&Size::Small.submit(&["--run-id", broken, "--detach"])).expect_code(3);
    }
    for damage in [
        "DELETE FROM run_counters WHERE run_no = (SELECT run_no FROM runs WHERE run_id = 'broken-1')",
        "UPDATE runs SET spec = '{}' WHERE run_id = 'broken-2'",
        "UPDATE runs SET run_id = '../../broken' WHERE run_id = 'broken-3'",
    ] {
        let _ = stage.cluster.sql(damage);
    }
    let (mut leader, _workers) = stage.people(2);
    let client = stage.submit(&[]);
    let _ = leader.wait_for_line("is left out", PATIENCE);
    stage.check(client, 0);
    let listed = stage.cluster.run(&["list", "--json"]).expect_code(0);
    let rows = listed.json();
    let ids: Vec<&str> = rows.as_array().into_iter().flatten().filter_map(|row| row["id"].as_str()).collect();
    assert_eq!(ids, [RUN], "{}", listed.stderr);
    for said in ["run broken-1 has no counters", "the spec of run broken-2", "'../../broken' is no id of a run"] {
        assert!(listed.stderr.contains(said), "{said}: {}", listed.stderr);
    }
    let status = stage.cluster.run(&["status"]).expect_code(0);
    assert!(status.stdout.contains("run broken-1 has no counters"), "{}", status.stdout);
}
