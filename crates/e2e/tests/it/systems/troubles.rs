//! Systems that are away for a while, and systems that lose what they were given. They are fakes made from contracts, so that
//! their troubles come when a test wants them.

use bench_testkit::{
    bench::{Bench, wait},
    fakes::Fake,
    process::wait_until,
};

use super::{PATIENCE, retained, submit};

/// Asks the store of a run.
fn sql(bench: &Bench, query: &str) -> String {
    let file = bench.path().join(".bench/bench.db");
    let program = "import sqlite3, sys; print(sqlite3.connect(f'file:{sys.argv[1]}?mode=ro', uri=True).execute(sys.argv[2]).fetchone()[0])";
    let asked = std::process::Command::new("python3").args(["-c", program]).arg(file).arg(query).output();
    String::from_utf8_lossy(&asked.expect("python3 runs").stdout).trim().to_owned()
}

#[test]
fn a_system_that_is_away_costs_no_attempt_and_the_run_goes_on_when_it_is_back() {
    let mut fake = Fake::start("graphiti");
    // what was sent is taken in later: until then the run asks, and waits without holding anything
    fake.with(|world| world.worker_dead = true);
    let bench = Bench::new().with_env("GRAPHITI_URL", fake.url());
    let child = bench.start(submit("graphiti", "away"));
    let asked_for = |fake: &Fake| {
        let requests = fake.with(|world| world.requests.clone());
        let polls = requests.into_iter().filter(|request| request.starts_with("GET /episodes/"));
        polls.collect::<std::collections::BTreeSet<_>>().len()
    };
    wait_until("everything was sent, and both banks are asked for", PATIENCE, || asked_for(&fake) == 2);
    fake.leave();
    let mut said = String::new();
    wait_until("the breaker is open", PATIENCE, || {
        let status = bench.run(["status", "away"]);
        said = status.stdout;
        said.contains("system unavailable")
    });
    assert!(said.contains("graphiti@") && said.contains("wait for another try"), "{said}");
    let opened: u32 =
        sql(&bench, "SELECT max(opened) FROM breakers WHERE operation = 'ready'").parse().expect("a number");
    assert!(opened >= 1, "the store knows it, for all workers");
    fake.with(|world| {
        world.take_in();
        world.worker_dead = false;
    });
    fake.come_back();
    let done = wait(child).expect_code(0);
    let report = done.json();
    assert_eq!(report["outcomes"]["coverage"], 1.0, "{report}");
    assert_eq!(sql(&bench, "SELECT max(attempts) FROM tasks"), "0", "waiting is no attempt");
    assert_eq!(sql(&bench, "SELECT max(opened) FROM breakers"), "0", "and the breaker is closed");
}

#[test]
fn p33_gc_removes_the_banks_of_cancelled_runs_and_of_those_that_are_named() {
    let fake = Fake::start("jeffs-brain");
    let bench = Bench::new().with_env("JB_URL", fake.url());
    let banks = || fake.with(|world| world.banks.keys().cloned().collect::<Vec<_>>());
    fake.with(|world| drop(world.store("somebody-else", "a memory", serde_json::Value::Null)));
    let _finished = bench.run(submit("jeffs-brain", "kept")).expect_code(0);
    let kept = banks();
    assert_eq!(kept.len(), 3, "{kept:?}");
    fake.with(|world| world.slow = std::time::Duration::from_millis(100));
    let child = bench.start(submit("jeffs-brain", "given-up"));
    wait_until("some sessions are stored", PATIENCE, || retained(&bench, "given-up") >= 2);
    let _ = bench.run(["cancel", "given-up"]).expect_code(0);
    let _ = wait(child);
    fake.with(|world| world.slow = std::time::Duration::ZERO);
    assert!(banks().len() > 3, "a cancelled run leaves its banks");
    let _ = bench.run(["gc"]).expect_code(0);
    assert_eq!(banks(), kept, "gone; the finished run's and somebody else's are not");
    let refused = bench.run(["resume", "given-up", "--reopen"]).expect_code(2);
    assert!(refused.stderr.contains("removed from its memory system"), "{}", refused.stderr);
    let named = bench.run(["gc", "--banks", "kept"]).expect_code(0);
    assert!(named.stdout.contains("2 banks"), "{}", named.stdout);
    assert_eq!(banks(), ["somebody-else"]);
    assert!(bench.run(["gc"]).expect_code(0).stdout.contains("0 banks"), "once is enough");
}

#[test]
fn a_model_that_only_says_ok_is_seen_by_the_checks() {
    let fake = Fake::start("jeffs-brain");
    fake.with(|world| world.always_answers = Some("ok".to_owned()));
    let bench = Bench::new().with_env("JB_URL", fake.url());
    let table = bench.run(["systems", "check", "jeffs-brain"]).expect_code(5).stdout;
    let row = table.lines().find(|line| line.contains("real answers")).expect("is checked");
    assert!(row.contains("fail") && row.contains("three different questions"), "{table}");
    let failed = |line: &&str| line.contains(" fail ");
    assert_eq!(table.lines().filter(failed).count(), 1, "and nothing else is wrong: {table}");
    assert_eq!(fake.with(|world| world.banks.len()), 0, "it has cleaned up");
}

#[test]
fn a_system_that_loses_memories_makes_the_run_invalid() {
    let fake = Fake::start("jeffs-brain");
    fake.with(|world| world.loses_every = 7);
    let bench = Bench::new().with_env("JB_URL", fake.url());
    let done = bench.run(submit("jeffs-brain", "lossy")).expect_code(5);
    let report = done.json();
    assert_eq!(report["run"]["verdict"], "INVALID", "{report}");
    assert_eq!(report["errors"]["memories_lost"], report["outcomes"]["infra_error"], "{report}");
    assert!(report["outcomes"]["infra_error"].as_u64().is_some_and(|lost| lost > 0), "{report}");
    let reasons = report["run"]["reasons"].to_string();
    assert!(reasons.contains("coverage") || reasons.contains("infra"), "{reasons}");
    let questions = bench.questions("lossy");
    assert!(questions.iter().all(|q| q["outcome"] == "infra_error"), "nothing is graded of a bank with holes");
    let error = questions[0]["error"].to_string();
    assert!(error.contains("items that were stored in it"), "{error}");
    let status = bench.run(["status", "lossy"]).stdout;
    assert!(status.contains("failed: ") && status.contains("memories_lost"), "{status}");
    // once the system keeps what it is given, the same run is made good
    fake.with(|world| world.loses_every = 0);
    let mended = bench.run(["retry", "lossy", "--errors", "--json"]).expect_code(0).json();
    assert_eq!(mended["outcomes"]["coverage"], 1.0, "{mended}");
}
