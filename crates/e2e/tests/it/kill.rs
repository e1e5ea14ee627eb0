//! kill -9 at random points, resume at once: nothing lost, nothing scored twice, nothing paid twice but what was in flight.

use std::time::Duration;

use bench_testkit::{
    bench::{signal, wait},
    provider::Provider,
};
use rand::{Rng, SeedableRng, rngs::StdRng};

/// Kills over all rounds of this test.
const KILLS: usize = 24;
/// Questions in flight at most: also the bound on repeated calls per kill.
const IN_FLIGHT: u64 = 8;

#[test]
fn kill_nine_at_random_points_keeps_the_digest() {
    let seed = std::env::var("BENCH_TEST_SEED")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or_else(|| rand::rng().random::<u64>());
    eprintln!("BENCH_TEST_SEED={seed} repeats this schedule");
    let mut random = StdRng::seed_from_u64(seed);
    let expected = Provider::start(&[]).digest(&[]);
    let concurrency = IN_FLIGHT.to_string();

    let mut kills = 0;
    let mut rounds = 0;
    while kills < KILLS {
        rounds += 1;
        let provider = Provider::start(&["--latency-ms", "20"]);
        let bench = provider.bench();
        let mut child = bench.start(provider.submit(&["--run-id", "victim", "--concurrency", &concurrency]));
        let mut killed = 0_u64;
        let done = loop {
            std::thread::sleep(Duration::from_millis(random.random_range(1..400)));
            if kills >= KILLS || child.try_wait().expect("is a child").is_some() {
                let done = wait(child);
                // killed before its run existed: there is nothing to resume yet
                break done;
            }
            signal(&child, "KILL");
            let _ = wait(child);
            kills += 1;
            killed += 1;
            let exists = bench.run(["status", "victim"]).code == 0;
            child = if exists {
                bench.start(["resume", "victim", "--json"])
            } else {
                bench.start(provider.submit(&["--run-id", "victim", "--concurrency", &concurrency]))
            };
        }
        .expect_code(0);
        assert_eq!(done.json()["result_digest"].as_str(), Some(expected.as_str()), "after {killed} kills, seed {seed}");
        let questions = bench.questions("victim");
        let mut ids: Vec<&str> = questions.iter().filter_map(|q| q["question_id"].as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!((ids.len(), questions.len()), (50, 50), "every question exactly once");
        let repeated = provider.repeated_requests();
        assert!(repeated <= killed * IN_FLIGHT, "{repeated} calls were repeated after {killed} kills");
    }
    eprintln!("{kills} kills in {rounds} rounds");
}
