//! Coordinators that die, freeze, or are two.

use std::time::{Duration, Instant};

use bench_e2e::faults::{Size, Stage};
use bench_testkit::{
    cluster::{Setup, wait_until_ready},
    process::Process,
};
use serde_json::json;

/// Longest time without a leader (P14).
const TAKEOVER: Duration = Duration::from_secs(10);

fn leader(stage: &Stage) -> String {
    stage.cluster.sql("SELECT holder FROM leaders WHERE scope = 'cluster'")
}

/// Waits until somebody else leads, and returns how long that took.
fn wait_for_another_leader(stage: &Stage, than: &str) -> Duration {
    let began = Instant::now();
    loop {
        let now = leader(stage);
        if now != than && !now.is_empty() {
            return began.elapsed();
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{than} still leads");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn fault_4_the_only_coordinator_is_killed_again_and_again() {
    let stage = Stage::set(Size::Middle, Setup::default(), 150);
    let (mut coordinator, _workers) = stage.people(2);
    let client = stage.submit(&[]);
    for percent in [10, 35, 60] {
        stage.wait_for_percent(percent);
        coordinator.kill();
        // another name: nothing tells the new one that it is the old one's successor
        coordinator = stage.cluster.coordinator(&format!("coordinator-{percent}"));
    }
    stage.check(client, 0);
}

#[test]
fn fault_5_the_leader_of_two_is_killed_and_the_other_takes_over() {
    let stage = Stage::set(Size::Middle, Setup::default(), 150);
    let (first, _workers) = stage.people(2);
    let mut second = stage.cluster.coordinator("second");
    wait_until_ready(&mut second);
    assert_eq!(leader(&stage), "coordinator");
    let client = stage.submit(&[]);
    stage.wait_for_percent(20);
    let mut leaders = [first, second];
    for (n, percent) in [(0, 20), (1, 50)] {
        stage.wait_for_percent(percent);
        let name = leaders[n].name().to_owned();
        leaders[n].kill();
        let took = wait_for_another_leader(&stage, &name);
        eprintln!("{name} was replaced after {:.1} s", took.as_secs_f64());
        assert!(took < TAKEOVER, "{took:?}");
        leaders[n] = stage.cluster.coordinator(&format!("again{n}"));
        wait_until_ready(&mut leaders[n]);
    }
    stage.check(client, 0);
}

#[test]
fn fault_6_a_frozen_leader_is_replaced_and_stands_down_when_it_wakes() {
    let stage = Stage::set(Size::Middle, Setup::default(), 200);
    let (mut first, _workers) = stage.people(2);
    let mut second: Process = stage.cluster.coordinator("second");
    wait_until_ready(&mut second);
    let client = stage.submit(&[]);
    stage.wait_for_percent(15);
    first.signal("STOP");
    let took = wait_for_another_leader(&stage, "coordinator");
    eprintln!("the frozen leader was replaced after {:.1} s", took.as_secs_f64());
    assert!(took < TAKEOVER, "{took:?}");
    stage.wait_for_percent(40);
    first.signal("CONT");
    stage.provider.control(&json!({"latency": {"median_ms": 20.0}}));
    stage.check(client, 0);
    assert_eq!(leader(&stage), "second", "who woke does not take the lead back");
    assert!(first.runs() && second.runs());
}
