//! What people do to a run that a cluster carries out: pause, resume, cancel, retry, submit again, leave, look.

use std::time::{Duration, Instant};

use bench_e2e::faults::{PATIENCE, RUN, Size, Stage};
use bench_testkit::{
    bench::Done,
    cluster::{Cluster, Setup},
    process::{Process, wait_until},
    provider::{KEY, Provider},
    proxy::Faults,
};
use serde_json::{Value, json};

/// P23: no call starts later than this after the commit. A tenth of a second is the test's own: the commit is somewhere
/// inside the command that it times.
const STOPPED_WITHIN: Duration = Duration::from_millis(1_100);

/// Asserts that no call started later than a second after `since`.
fn no_call_after(stage: &Stage, since: Instant) {
    let last = stage.provider.last_request_at();
    assert!(last < since + STOPPED_WITHIN, "a call started {:?} after the commit", last.duration_since(since));
}

#[test]
fn p23_pause_holds_all_workers_within_a_second_and_resume_goes_on() {
    let stage = Stage::set(Size::Small, Setup::default(), 200);
    let (_coordinator, _workers) = stage.people(2);
    let client = stage.submit(&[]);
    stage.wait_for_percent(20);
    let _ = stage.cluster.run(&["pause", RUN]).expect_code(0);
    let paused = Instant::now();
    let left = client.wait(Duration::from_secs(30)).expect_code(3);
    assert!(left.stderr.contains(&format!("bench-coord resume {RUN}")), "{}", left.stderr);
    std::thread::sleep(Duration::from_secs(2));
    no_call_after(&stage, paused);
    let status = stage.cluster.status(RUN);
    assert_eq!(status["status"], "paused");
    let leased: i64 =
        ["retain", "question", "judge"].iter().filter_map(|role| status["tasks"][role]["leased"].as_i64()).sum();
    assert_eq!(leased, 0, "everything was handed back: {status:#}");
    let resumed = stage.cluster.client(&["resume", RUN, "--json"]);
    stage.check(resumed, 0);
    assert_eq!(stage.cluster.sql("SELECT COALESCE(sum(losses), 0) FROM tasks"), "0");
}

#[test]
fn p23_cancel_ends_a_run_and_reopen_brings_it_back() {
    let stage = Stage::set(Size::Small, Setup::default(), 200);
    let (_coordinator, _workers) = stage.people(2);
    let client = stage.submit(&[]);
    stage.wait_for_percent(20);
    let _ = stage.cluster.run(&["cancel", RUN]).expect_code(0);
    let cancelled = Instant::now();
    let _ = client.wait(Duration::from_secs(30)).expect_code(3);
    std::thread::sleep(Duration::from_secs(2));
    no_call_after(&stage, cancelled);
    let refused = stage.cluster.run(&["resume", RUN]).expect_code(2);
    assert!(refused.stderr.contains("--reopen"), "{}", refused.stderr);
    let report = stage.cluster.run(&["report", RUN, "--format", "json"]).expect_code(0).json();
    assert_eq!(report["run"]["verdict"], "INVALID", "a part of a run is no result");
    let reopened = stage.cluster.client(&["resume", RUN, "--reopen", "--json"]);
    stage.check(reopened, 0);
}

#[test]
fn p23_cancel_now_drops_the_calls_of_all_workers() {
    let stage = Stage::set(Size::Small, Setup::default(), 20_000);
    let (_coordinator, workers) = stage.people(2);
    let client = stage.submit(&[]);
    stage.provider.wait_for_requests(8);
    let _ = stage.cluster.run(&["cancel", RUN, "--now"]).expect_code(0);
    let cancelled = Instant::now();
    let _ = client.wait(Duration::from_secs(10)).expect_code(3);
    let _ =
        stage.cluster.wait_for_status(RUN, Duration::from_secs(5), |status| status["tasks"]["question"]["leased"] == 0);
    assert!(cancelled.elapsed() < Duration::from_secs(6), "calls were waited for: {:?}", cancelled.elapsed());
    // the workers live on, and nothing stays reserved: what was under way is uncertain
    let books = "SELECT sum(reserved) || ' ' || (SELECT count(*) FROM reservations WHERE state = 0) || ' ' || \
        (sum(uncertain) > 0) FROM run_counters";
    let waited = Instant::now();
    while stage.cluster.sql(books).trim() != "0 0 true" {
        assert!(waited.elapsed() < Duration::from_secs(30), "{}", stage.cluster.sql(books));
        std::thread::sleep(Duration::from_millis(50));
    }
    for worker in workers {
        worker.signal("TERM");
        let _ = worker.wait(Duration::from_secs(10)).expect_code(0);
    }
}

#[test]
fn retry_repeats_what_failed_with_the_workers_that_are_there() {
    let stage = Stage::set(Size::Small, Setup::default(), 5);
    let (_coordinator, _workers) = stage.people(2);
    stage.provider.control(&json!({"faults": {"http_500": 0.4, "permanent": true}}));
    let fast = ["--retries", "0", "--set", "backoff.initial_interval=5ms"];
    let broken = stage.submit(&fast).wait(Duration::from_secs(60)).expect_code(5).json();
    let failed = broken["outcomes"]["infra_error"].as_u64().expect("a count");
    assert!(failed > 5, "the faults were met: {}", broken["outcomes"]);
    stage.provider.control(&json!({"faults": {"http_500": 0.0}}));
    let retried = stage.cluster.client(&["retry", RUN, "--errors", "--json"]);
    let report = stage.check_end(retried.wait(Duration::from_secs(60)));
    assert_eq!(report["outcomes"]["infra_error"], 0);
}

#[test]
fn p30_submit_with_a_run_id_attaches_and_a_client_that_leaves_only_detaches() {
    let stage = Stage::set(Size::Small, Setup::default(), 200);
    let (_coordinator, _workers) = stage.people(2);
    let first = stage.submit(&[]);
    stage.wait_for_percent(10);
    // the same Job again, while the first one still waits
    let second = stage.submit(&[]);
    let other = stage.submit(&["--top-k", "3"]).wait(Duration::from_secs(60)).expect_code(2);
    assert!(other.stderr.contains("system.top_k: 10 there, 3 here"), "{}", other.stderr);
    first.signal("INT");
    let left = first.wait(Duration::from_secs(20)).expect_code(3);
    for words in ["detached", &format!("bench-coord watch {RUN}"), &format!("bench-coord cancel {RUN}")] {
        assert!(left.stderr.contains(words), "'{words}' is missing in {}", left.stderr);
    }
    assert_eq!(stage.cluster.status(RUN)["status"], "running", "the run goes on");
    stage.check(second, 0);
    let again = stage.submit(&[]);
    stage.check(again, 0);
    assert_eq!(stage.cluster.sql("SELECT count(*) FROM runs"), "1");
}

#[test]
fn p30_of_four_that_submit_at_once_one_creates_the_run_and_the_others_attach() {
    // all four have seen that there is no such run before one can create it
    const LOCK: &str = "BEGIN; LOCK TABLE runs IN SHARE ROW EXCLUSIVE MODE; SELECT pg_sleep(50)";
    const UNLOCK: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(50)' \
                          AND datname = current_database()";
    const HELD: &str = "SELECT count(*) FROM pg_locks WHERE relation = 'runs'::regclass AND mode = 'ShareRowExclusiveLock' AND granted";
    const WAITING: &str = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'INSERT INTO runs%' \
                           AND datname = current_database()";
    let stage = Stage::set(Size::Small, Setup::default(), 5);
    let (_coordinator, _workers) = stage.people(2);
    let locker = stage.cluster.sql_beside(LOCK);
    wait_until("nobody creates a run", PATIENCE, || stage.cluster.sql(HELD) == "1");
    let clients: Vec<Process> = (0..4).map(|_| stage.submit(&[])).collect();
    wait_until("all are about to create it", PATIENCE, || stage.cluster.sql(WAITING) == "4");
    assert_eq!(stage.cluster.sql(UNLOCK), "1");
    assert!(locker.join().expect("no panic").is_err(), "its connection was ended");
    let ended: Vec<Done> = clients.into_iter().map(|client| client.wait(PATIENCE)).collect();
    let attached = ended.iter().filter(|done| done.stderr.contains("exists with the same settings")).count();
    assert_eq!(attached, 3);
    for done in ended {
        let _ = stage.check_end(done);
    }
    assert_eq!(stage.provider.count("repeated_requests"), 0);
    assert_eq!(stage.cluster.sql("SELECT count(*) FROM runs"), "1");
}

#[test]
fn p30_detach_leaves_a_run_that_exists_at_once() {
    let stage = Stage::set(Size::Small, Setup::default(), 400);
    let (_coordinator, _workers) = stage.people(2);
    let first = stage.submit(&[]);
    stage.wait_for_percent(10);
    // however long the clients take to start, it is not over when they ask
    stage.provider.control(&json!({"latency": {"median_ms": 8_000.0}}));
    let leaves = |client: Process| {
        let left = client.wait(Duration::from_secs(20)).expect_code(3);
        assert_eq!(left.json()["id"], RUN);
        for words in ["detached", &format!("bench-coord watch {RUN}"), &format!("bench-coord cancel {RUN}")] {
            assert!(left.stderr.contains(words), "'{words}' is missing in {}", left.stderr);
        }
        assert_eq!(stage.cluster.status(RUN)["status"], "running", "it goes on, and is not over yet");
    };
    leaves(stage.submit(&["--detach"]));
    leaves(stage.cluster.client(&["resume", RUN, "--detach", "--json"]));
    let other = stage.submit(&["--detach", "--top-k", "3"]).wait(Duration::from_secs(20)).expect_code(2);
    assert!(other.stderr.contains("system.top_k: 10 there, 3 here"), "{}", other.stderr);
    let _ = stage.cluster.run(&["pause", RUN]).expect_code(0);
    let _ = first.wait(Duration::from_secs(30)).expect_code(3);
    leaves(stage.cluster.client(&["resume", RUN, "--detach", "--json"]));
    stage.provider.control(&json!({"latency": {"median_ms": 20.0}}));
    stage.check(stage.submit(&[]), 0);
    let over = stage.submit(&["--detach"]);
    stage.check(over, 0);
}

#[test]
fn a_detached_run_goes_on_by_itself_and_watch_follows_it() {
    let stage = Stage::set(Size::Small, Setup::default(), 50);
    let (_coordinator, _workers) = stage.people(2);
    let detached = stage.submit(&["--detach"]).wait(Duration::from_secs(60)).expect_code(3);
    assert_eq!(detached.json()["id"], RUN);
    let watched = stage.cluster.run(&["watch", RUN]).expect_code(0);
    assert!(watched.stdout.contains("VALID"), "{}", watched.stdout);
    let again = stage.submit(&[]);
    stage.check(again, 0);
}

#[test]
fn controls_run_beside_the_measured_run() {
    let cluster = Stage::set(Size::Small, Setup::default(), 0);
    let (_coordinator, _workers) = cluster.people(2);
    // without the unanswerable questions: their evidence misleads by design, so it helps nobody
    let args = ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--exclude-category", "adversarial"];
    let report = cluster.cluster.run(&[&args[..], &["--controls", "--json", "--run-id", RUN]].concat());
    let report = report.expect_code(0).json();
    let control = |name: &str| {
        let all = report["controls"].as_array().expect("controls");
        all.iter()
            .find(|control| control["name"] == name)
            .and_then(|control| control["value"].as_f64())
            .unwrap_or_else(|| panic!("no control {name}: {report}"))
    };
    let headline = report["headline"]["value"].as_f64().expect("a headline");
    assert!(control("oracle") > headline && control("random") < headline && control("none") < headline);
    let local = cluster.provider.bench().run(args.iter().chain(&["--json"])).expect_code(0).json();
    assert_eq!(report["result_digest"], local["result_digest"]);
}

#[test]
fn p41_controls_of_a_cluster_share_what_the_measured_run_leaves() {
    const CAP: f64 = 0.02;
    // a judge by lot would make a run with controls invalid (P45)
    let priced = ["--price", "gpt-4o-mini=0.15/0.60", "--latency-ms", "10", "--judge", "reference"];
    let provider = Provider::start(&priced);
    let cluster = Cluster::with(Setup::default()).with_provider(provider.base_url(), KEY);
    let stage = Stage::new(Size::Small, provider, cluster);
    let (_coordinator, _workers) = stage.people(2);
    let detached = stage.submit(&["--controls", "--max-cost", "0.02", "--detach"]);
    let _ = detached.wait(Duration::from_secs(60)).expect_code(3);
    // nobody looks on: the cluster itself starts them when the measured run has ended, and ends it when they are at rest
    let _ = stage.cluster.wait_for_status(RUN, PATIENCE, |status| status["status"] == "finished");
    let first = "SELECT (SELECT max(at_us) FROM calls JOIN runs USING (run_no) WHERE control_of IS NULL) < \
                 (SELECT min(at_us) FROM calls JOIN runs USING (run_no) WHERE control_of IS NOT NULL)";
    assert_eq!(stage.cluster.sql(first), "t", "the measured run goes first");
    let paid = stage.provider.paid();
    assert!(paid > 0.8 * CAP && paid <= CAP, "${paid} of ${CAP}");
    let report = stage.cluster.run(&["report", RUN, "--format", "json"]).json();
    assert_eq!((&report["outcomes"]["coverage"], report["group"]["runs"].as_u64()), (&json!(1.0), Some(4)));
    assert!(!report["group"]["not_ended"].as_array().expect("a list").is_empty(), "{}", report["group"]);
    let done = stage.cluster.run(&["resume", RUN, "--max-cost", "1", "--json"]).expect_code(0).json();
    assert_eq!(done["controls"].as_array().map(Vec::len), Some(3), "{}", done["controls"]);
    assert_eq!(done["result_digest"], report["result_digest"]);
}

/// Who submitted a run is killed before the plans of its controls are written: `resume` writes them.
#[test]
fn p41_controls_without_a_plan_are_planned_by_resume() {
    let provider = Provider::start(&["--latency-ms", "10", "--judge", "reference"]);
    let setup = Setup { proxies: true, ..Setup::default() };
    let cluster = Cluster::with(setup).with_provider(provider.base_url(), KEY);
    let stage = Stage::new(Size::Small, provider, cluster);
    // so slow that plans take seconds
    stage.cluster.postgres_proxy().set(Faults::delay(Duration::from_millis(150)));
    let mut client = stage.submit(&["--controls"]);
    wait_until("the runs are there", PATIENCE, || stage.cluster.sql("SELECT count(*) FROM runs") == "4");
    client.kill();
    let unplanned = "SELECT count(*) FROM runs WHERE planned = 0 AND control_of IS NOT NULL";
    assert_ne!(stage.cluster.sql(unplanned), "0", "killed too late");
    stage.cluster.postgres_proxy().heal();
    let _people = stage.people(1);
    let report = stage.cluster.run(&["resume", RUN, "--json"]).expect_code(0).json();
    assert_eq!(report["controls"].as_array().map(Vec::len), Some(3), "{}", report["controls"]);
    assert_eq!(stage.cluster.sql("SELECT count(*) FROM runs WHERE state <> 'finished'"), "0");
}

#[test]
fn status_shows_who_works_and_what_waits_where() {
    let stage = Stage::set(Size::Small, Setup::default(), 400);
    let (_coordinator, _workers) = stage.people(2);
    let client = stage.submit(&[]);
    stage.wait_for_percent(20);
    let status = stage.cluster.wait_for_status(RUN, Duration::from_secs(20), |status| {
        status["cluster"]["workers"].as_array().is_some_and(|all| all.iter().any(|worker| worker["busy"] == true))
    });
    assert_eq!(status["cluster"]["coordinator"]["name"], "coordinator");
    let names: Vec<&Value> =
        status["cluster"]["workers"].as_array().expect("workers").iter().map(|w| &w["name"]).collect();
    assert_eq!(names, ["worker1", "worker2"]);
    for worker in status["cluster"]["workers"].as_array().expect("workers") {
        assert_eq!((&worker["alive"], &worker["pool"]), (&json!(true), &json!("default")), "{worker}");
        assert_eq!(worker["slots"]["question"], 4);
    }
    let queues = status["cluster"]["queues"].as_array().expect("queues");
    assert_eq!(queues.len(), 3);
    assert!(queues.iter().all(|queue| queue["depth"].is_u64() && queue["consumers"] == 2), "{queues:?}");
    assert_eq!(status["cluster"]["dead_letters"], 0);
    let text = stage.cluster.run(&["status", RUN]).expect_code(0).stdout;
    for words in
        ["coordinator: coordinator leads", "worker worker1: alive", "queue bench.t1.default.judge:", "dead letters: 0"]
    {
        assert!(text.contains(words), "'{words}' is missing in:\n{text}");
    }
    stage.provider.control(&json!({"latency": {"median_ms": 20.0}}));
    stage.check(client, 0);
}

#[test]
fn a_run_that_nobody_works_on_says_so_and_its_client_leaves_in_time() {
    let stage = Stage::set(Size::Small, Setup::default(), 5);
    let left = stage.submit(&["--worker-timeout", "5"]).wait(Duration::from_secs(60)).expect_code(3);
    assert!(left.stderr.contains("no coordinator hands out tasks: start `bench-coord serve`"), "{}", left.stderr);
    let (coordinator, _workers) = stage.people(0);
    let why = stage.cluster.wait_for_status(RUN, Duration::from_secs(20), |status| {
        status["why"].as_str().is_some_and(|why| why.contains("no worker serves pool 'default'"))
    });
    assert_eq!(why["status"], "running");
    let resumed = stage.cluster.client(&["resume", RUN, "--json", "--worker-timeout", "5"]);
    let left = resumed.wait(Duration::from_secs(60)).expect_code(3);
    assert!(left.stderr.contains("start `bench-worker --pool default`"), "{}", left.stderr);
    // the run has waited for them
    let _worker = stage.worker("late");
    let resumed = stage.cluster.client(&["resume", RUN, "--json"]);
    stage.check(resumed, 0);
    drop(coordinator);
}

#[test]
fn a_worker_without_the_account_hands_tasks_to_those_who_have_it() {
    let provider = Provider::start(&["--latency-ms", "20"]);
    let stage = Stage::set(Size::Small, Setup::default(), 20);
    let mut poor =
        stage.cluster.command("bench-worker", &stage.cluster.database().runtime, &stage.cluster.vhost().worker);
    poor.args(["-v", "--name", "poor", "--concurrency", "4"]);
    let (_coordinator, _workers) = stage.people(1);
    let _poor = stage.cluster.spawn(poor, "poor");
    let client = stage.submit(&[]);
    stage.check(client, 0);
    assert_eq!(provider.count("requests"), 0);
    for (name, text) in stage.cluster.logs() {
        assert!(!text.contains(KEY), "the key stands in {name}");
    }
}
