//! The scaling signal (P15) over a whole run: zero, one, zero.

use std::time::{Duration, Instant};

use bench_e2e::faults::{Size, Stage};
use bench_testkit::{
    cluster::{Setup, health_of, wait_until_ready},
    http,
};
use serde_json::Value;

#[test]
fn p15_zero_one_zero() {
    let stage = Stage::set(Size::Small, Setup::default(), 50);
    let mut coordinator = stage.cluster.coordinator("coordinator");
    wait_until_ready(&mut coordinator);
    let place = health_of(&mut coordinator);
    let desired = |role: &str| {
        let reply = http::get(&place, &format!("/api/scale/default/{role}")).expect("the coordinator answers");
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.json()["desired_workers"].as_u64().expect("a number")
    };
    assert_eq!(["retain", "question", "judge"].map(desired), [0, 0, 0], "no run is open");

    let client = stage.submit(&["--concurrency", "8"]);
    let began = Instant::now();
    while desired("question") == 0 || desired("retain") == 0 {
        assert!(began.elapsed() < Duration::from_secs(20), "nobody is asked for");
        std::thread::sleep(Duration::from_millis(50));
    }
    // what an autoscaler does
    let worker = stage.worker("asked-for");
    let most: u64 = (0..10)
        .map(|_| {
            std::thread::sleep(Duration::from_millis(30));
            desired("question")
        })
        .max()
        .unwrap_or(0);
    assert!((1..=2).contains(&most), "8 questions in flight and 4 slots a worker need 2, not {most}");
    stage.check(client, 0);
    let began = Instant::now();
    while ["retain", "question", "judge"].map(desired) != [0, 0, 0] {
        assert!(began.elapsed() < Duration::from_secs(10), "workers are still asked for");
        std::thread::sleep(Duration::from_millis(50));
    }
    worker.signal("TERM");
    let _ = worker.wait(Duration::from_secs(20)).expect_code(0);
    let reply = http::get(&place, "/api/scale/default/question").expect("the coordinator answers").json();
    assert_eq!((&reply["live_workers"], &reply["runs"]), (&Value::from(0), &Value::from(0)));
    let unknown = http::get(&place, "/api/scale/default/nothing").expect("answers");
    assert_eq!(unknown.status, 404);
}

/// Three workers have twelve slots for questions and twelve for judges; the run allows five questions.
#[test]
fn p25_questions_in_flight_stay_within_the_runs_limit() {
    let stage = Stage::set(Size::Small, Setup::default(), 50);
    let (_coordinator, _workers) = stage.people(3);
    stage.check(stage.submit(&["--concurrency", "5"]), 0);
    // each question has one call in flight at most
    let most = stage.provider.count("max_in_flight");
    assert!((2..=5).contains(&most), "{most} calls in flight");
}
