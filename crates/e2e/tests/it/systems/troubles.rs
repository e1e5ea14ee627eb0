//! Systems that lose what they were given, or only say so. They are fakes made from contracts, so that their troubles come when a
//! test wants them.

use bench_testkit::{
    bench::{Bench, wait},
    fakes::Fake,
    process::wait_until,
};

use super::{PATIENCE, retained, submit};

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
