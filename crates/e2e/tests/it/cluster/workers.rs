//! Workers that die, freeze, drain, or meet a task that kills them.

use std::time::{Duration, Instant};

use bench_e2e::faults::{PATIENCE, RUN, SLOTS, Size, Stage, randomness};
use bench_testkit::{
    cluster::{Cluster, Setup, wait_until_ready},
    provider::{KEY, Provider},
};
use rand::Rng;
use serde_json::json;

/// Kills in one run.
const KILLS: u64 = 50;
/// Calls that a worker has in flight at most: it answers and judges.
const IN_FLIGHT: u64 = 2 * SLOTS;

#[test]
fn fault_1_workers_are_killed_at_random_moments() {
    let mut random = randomness();
    let stage = Stage::set(Size::Large, Setup::default(), 700);
    let (_coordinator, mut workers) = stage.people(4);
    let mut client = stage.submit(&[]);
    stage.provider.wait_for_requests(1);
    let mut kills = 0;
    while kills < KILLS {
        std::thread::sleep(Duration::from_millis(random.random_range(20..400)));
        assert!(client.runs(), "the run was over after {kills} kills:\n{}", client.stderr());
        let victim = random.random_range(0..workers.len());
        workers[victim].kill();
        workers[victim] = stage.worker(&format!("worker{victim}"));
        kills += 1;
    }
    stage.provider.control(&json!({"latency": {"median_ms": 20.0}}));
    stage.check(client, kills * IN_FLIGHT);
}

#[test]
fn p10_killed_workers_and_lost_replies_never_lift_the_cap() {
    const CAP: f64 = 0.02;
    let faults = ["--fault-cut", "0.05", "--fault-500", "0.05", "--latency-ms", "60"];
    let provider = Provider::start(&[&["--price", "gpt-4o-mini=0.15/0.60"], &faults[..]].concat());
    let cluster = Cluster::with(Setup::default()).with_provider(provider.base_url(), KEY);
    let stage = Stage::new(Size::Middle, provider, cluster);
    let (_coordinator, mut workers) = stage.people(16);
    let mut client = stage.submit(&["--max-cost", "0.02"]);
    stage.provider.wait_for_requests(8);
    for victim in [0, 5, 10, 15, 0, 7] {
        if !client.runs() {
            break;
        }
        workers[victim].kill();
        workers[victim] = stage.worker(&format!("worker{victim}"));
        std::thread::sleep(Duration::from_millis(250));
    }
    let paused = client.wait(PATIENCE).expect_code(3);
    assert!(paused.stderr.contains("--max-cost"), "{}", paused.stderr);
    let paid = stage.provider.paid();
    assert!(paid > 0.0 && paid <= CAP, "${paid} of ${CAP}");
    let more = ["resume", RUN, "--release-uncertain", "--max-cost", "1", "--json"];
    let done = stage.cluster.client(&more).wait(PATIENCE).expect_code(0).json();
    assert_eq!(done["outcomes"]["coverage"], 1.0);
    assert!(stage.provider.paid() <= 1.0);
}

#[test]
fn fault_2_a_frozen_worker_wakes_after_its_lease() {
    // sweeps wait for a bank of a second run, as they do for what a worker locked before it froze
    const LOCK: &str = "BEGIN; SELECT count(*) FROM (SELECT FROM banks JOIN runs USING (run_no) WHERE run_id = 'locked' FOR \
                        UPDATE OF banks) AS held; SELECT pg_sleep(60)";
    const UNLOCK: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)' \
                          AND datname = current_database()";
    let stage = Stage::set(Size::Middle, Setup::default(), 600);
    let (_coordinator, mut workers) = stage.people(2);
    let mut client = stage.submit(&[]);
    let second = Size::Small.submit(&["--run-id", "locked", "--pool", "nobody", "--detach"]);
    let _ = stage.cluster.client(&second).wait(PATIENCE).expect_code(3);
    let locker = stage.cluster.sql_beside(LOCK);
    stage.wait_for_percent(15);
    workers[0].signal("STOP");
    let frozen = Instant::now();
    let given_away = "SELECT count(*) FROM tasks WHERE losses > 0";
    while stage.cluster.sql(given_away) == "0" {
        assert!(frozen.elapsed() < Duration::from_secs(40), "nobody has noticed the frozen worker");
        std::thread::sleep(Duration::from_millis(200));
    }
    let noticed = frozen.elapsed();
    assert_eq!(stage.cluster.sql(UNLOCK), "1", "the sweeps have waited until now");
    assert!(locker.join().expect("no panic").is_err(), "its connection was ended");
    assert!(client.runs(), "the run is over: nothing can be late");
    workers[0].signal("CONT");
    let _ = workers[0].wait_for_line("session was ended", Duration::from_secs(20));
    stage.provider.control(&json!({"latency": {"median_ms": 20.0}}));
    stage.check(client, IN_FLIGHT);
    // 15 s after its last sign of life, up to 2 s before it froze and somewhat more on a busy machine
    assert!(noticed >= Duration::from_secs(12), "its lease was taken after {noticed:?}");
    eprintln!("the lease of a frozen worker was taken after {:.1} s", noticed.as_secs_f64());
}

#[test]
fn fault_3_a_task_that_kills_its_worker_ends_alone() {
    let stage = Stage::set(Size::Small, Setup::default(), 20);
    // the tenth loss is what counts; the long suite waits for all ten
    let _ = stage.cluster.sql("ALTER TABLE tasks ALTER COLUMN losses SET DEFAULT 8");
    bench_e2e::faults::poison(&stage, 2);
}

#[test]
fn fault_17_a_bank_whose_last_write_is_unknown_begins_anew() {
    let mut random = randomness();
    let stage = Stage::set(Size::Small, Setup::default(), 10);
    let (_coordinator, mut workers) = stage.people(2);
    // an outside memory in which a session that is written twice shows; some of its answers are lost too
    let memory = format!("faulty.memory={}", stage.cluster.bench().path().join("memory").display());
    let flags = ["--system", "faulty", "--set", &memory, "--set", "faulty.retain=0.02", "--set", "faulty.retain_ms=40"];
    let client = stage.submit(&flags);
    let retained = "SELECT COALESCE(sum(entries_retained), 0) FROM run_counters";
    let mut kills = 0;
    while kills < 4 {
        std::thread::sleep(Duration::from_millis(random.random_range(100..500)));
        if stage.cluster.sql(retained) == "0" {
            continue;
        }
        let victim = random.random_range(0..workers.len());
        workers[victim].kill();
        workers[victim] = stage.worker(&format!("worker{victim}"));
        kills += 1;
    }
    stage.check(client, kills * IN_FLIGHT);
    let generations = stage.cluster.sql("SELECT sum(generation) FROM banks");
    assert_ne!(generations, "0", "some writes were unknown");
    let files = std::fs::read_dir(stage.cluster.bench().path().join("memory")).expect("banks were kept").count();
    eprintln!("{kills} kills, {generations} generations more, {files} banks written");
}

/// A recall that is stored a moment before a worker's own: the answer that it has asked for meanwhile rests on other hits.
#[test]
fn p3_an_answer_follows_the_recall_that_was_stored_first() {
    const SECOND: &str = "\
        CREATE TABLE overtaken (first bigint, task bigint);
        CREATE FUNCTION overtake() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
        DECLARE first bigint;
        BEGIN
            IF NEW.facts LIKE '{\"step\":\"recalled\"%' AND NOT EXISTS (SELECT FROM overtaken) THEN
                SELECT t.task_key INTO first FROM texts AS t JOIN checkpoints AS c USING (run_no, task_key, step_no)
                    WHERE c.facts LIKE '{\"step\":\"recalled\"%' AND t.task_key <> NEW.task_key LIMIT 1;
                IF FOUND THEN
                    INSERT INTO overtaken VALUES (first, NEW.task_key);
                    INSERT INTO checkpoints (run_no, task_key, step_no, facts) SELECT run_no, NEW.task_key, step_no, facts
                        FROM checkpoints WHERE task_key = first AND step_no = NEW.step_no;
                    INSERT INTO texts (run_no, task_key, step_no, body) SELECT run_no, NEW.task_key, step_no, body
                        FROM texts WHERE task_key = first AND step_no = NEW.step_no;
                END IF;
            END IF;
            RETURN NEW;
        END $$;
        CREATE TRIGGER overtake BEFORE INSERT ON checkpoints FOR EACH ROW EXECUTE FUNCTION overtake();";
    let stage = Stage::set(Size::Small, Setup::default(), 20);
    let (_coordinator, _workers) = stage.people(1);
    let _ = stage.cluster.sql(SECOND);
    let report = stage.submit(&[]).wait(PATIENCE).expect_code(0).json();
    assert_eq!(report["outcomes"]["coverage"], 1.0);
    let answers =
        "SELECT count(*), count(DISTINCT call_key) FROM calls JOIN overtaken ON task_key = task WHERE phase = 2";
    assert_eq!(stage.cluster.sql(answers), "2|2", "one answer to its own hits, and one to those that are stored");
    let hits = "SELECT count(DISTINCT body) FROM texts JOIN overtaken ON task_key IN (first, task) WHERE step_no = 0";
    assert_eq!(stage.cluster.sql(hits), "1");
}

#[test]
fn p26_a_worker_that_is_told_to_stop_loses_nothing() {
    let stage = Stage::set(Size::Middle, Setup::default(), 300);
    let (_coordinator, mut workers) = stage.people(2);
    let client = stage.submit(&[]);
    stage.wait_for_percent(20);
    let told = Instant::now();
    let leaver = workers.remove(0);
    leaver.signal("TERM");
    let done = leaver.wait(Duration::from_secs(30)).expect_code(0);
    assert!(done.stderr.contains("stopping: no task is claimed"), "{}", done.stderr);
    eprintln!("drained in {:.1} s", told.elapsed().as_secs_f64());
    assert_eq!(
        stage.cluster.sql("SELECT count(*) FROM sessions WHERE ended_us IS NOT NULL AND domain = 'cluster'"),
        "1"
    );
    stage.provider.control(&json!({"latency": {"median_ms": 20.0}}));
    stage.check(client, 0);
    assert_eq!(stage.cluster.sql("SELECT COALESCE(sum(losses), 0) FROM tasks"), "0", "a drain is no loss");
}

/// The rehearsal of docs/OPERATIONS.md: schema first, then new workers beside the old ones, then the coordinator.
#[test]
fn p26_a_rolling_upgrade_loses_nothing() {
    let stage = Stage::set(Size::Middle, Setup::default(), 300);
    let (old_coordinator, old_workers) = stage.people(2);
    let client = stage.submit(&[]);
    stage.wait_for_percent(10);
    let _ = stage.cluster.migrate().expect_code(0);
    let mut new = Vec::new();
    for (number, old) in old_workers.into_iter().enumerate() {
        let mut next = stage.worker(&format!("upgraded{number}"));
        wait_until_ready(&mut next);
        old.signal("TERM");
        let _ = old.wait(Duration::from_secs(60)).expect_code(0);
        new.push(next);
    }
    let mut coordinator = stage.cluster.coordinator("upgraded");
    wait_until_ready(&mut coordinator);
    old_coordinator.signal("TERM");
    let _ = old_coordinator.wait(Duration::from_secs(60)).expect_code(0);
    stage.provider.control(&json!({"latency": {"median_ms": 20.0}}));
    stage.check(client, 0);
    assert_eq!(stage.cluster.sql("SELECT COALESCE(sum(losses), 0) FROM tasks"), "0", "an upgrade is no loss");
}

#[test]
fn a_panic_in_a_worker_is_a_failed_attempt_and_the_process_goes_on() {
    let stage = Stage::set(Size::Small, Setup::default(), 10);
    let (_coordinator, mut workers) = stage.people(1);
    let faults = ["--system", "faulty", "--set", "faulty.panic=0.3", "--set", "faulty.error=0.2"];
    let done = stage.submit(&faults).wait(Duration::from_secs(120)).expect_code(0);
    assert_eq!(done.json()["outcomes"]["coverage"], 1.0);
    assert!(workers[0].runs(), "the worker that panicked is still there");
    let questions = stage.cluster.questions(RUN);
    assert!(questions.iter().any(|q| q["attempts"].as_u64() > Some(2)), "some questions were tried again");
    assert_eq!(
        done.json()["result_digest"].as_str(),
        Some(stage.size.digest().as_str()),
        "faulty finds what bm25 finds"
    );
    wait_until_ready(&mut workers[0]);
}
