//! Whoever operates a worker decides what it runs (P42).

use std::{fs, time::Duration};

use bench_testkit::cluster::{Cluster, wait_until_ready};

use crate::policy::{process, starts};

const PATIENCE: Duration = Duration::from_secs(90);

#[test]
fn p42_workers_run_what_they_were_told_and_a_run_that_nobody_takes_is_refused_or_paused() {
    let cluster = Cluster::new().with_key("OPENAI_API_KEY", "sk-of-the-workers");
    let (ran, mine) = process(cluster.bench().path(), "");
    let fixed =
        ["submit", "--dataset", "locomo-sim", "--max-banks", "2", "--per-bank", "4", "--system", &mine, "--json"];
    let submit = |more: &[&str]| cluster.client(&[&fixed[..], more].concat()).wait(PATIENCE);
    let hash = cluster.run(&["systems", "hash", &mine, "--json"]).expect_code(0).json();
    let hash = hash["sha256"].as_str().expect("a hash").to_owned();

    // nobody is there to say: it is said what will be needed
    let early = submit(&["--run-id", "early", "--detach"]);
    assert!(early.stderr.contains("no worker of pool 'default' is alive"), "{}", early.stderr);
    assert!(early.stderr.contains(&format!("BENCH_ALLOW_SYSTEMS={hash}")), "{}", early.stderr);
    let elsewhere = cluster.bench().path().join("elsewhere");
    let folder = format!("faulty.memory={}", elsewhere.display());
    let rehearsal = ["submit", "--dataset", "locomo-sim", "--max-banks", "1", "--system", "faulty", "--set", &folder];
    let _ = cluster.client(&[&rehearsal[..], &["--run-id", "rehearsal", "--detach"]].concat()).wait(PATIENCE);
    let mut coordinator = cluster.coordinator("coordinator");
    let mut strict = cluster.worker("strict", &[]);
    wait_until_ready(&mut coordinator);
    wait_until_ready(&mut strict);
    // by default it takes no command: the run does not hang
    let paused = cluster.wait_for_status("early", PATIENCE, |status| status["status"] == "paused");
    let said = paused.to_string();
    assert!(said.contains("no live worker of pool 'default' takes it") && said.contains(&hash), "{said}");

    let paused = cluster.wait_for_status("rehearsal", PATIENCE, |status| status["status"] == "paused").to_string();
    assert!(paused.contains("allow.files=") && !elsewhere.exists(), "{paused}");

    // and with a worker alive it is said at once
    let refused = submit(&["--run-id", "late"]).expect_code(2);
    for line in [
        format!("systems = [\"{hash}\"]"),
        format!("allow: {{systems: [\"{hash}\"]}}"),
        format!("BENCH_ALLOW_SYSTEMS={hash}"),
    ] {
        assert!(refused.stderr.contains(&line), "{line}: {}", refused.stderr);
    }
    let refused = cluster.client(&["resume", "early"]).wait(PATIENCE).expect_code(2);
    assert!(refused.stderr.contains(&hash), "{}", refused.stderr);
    let moved = ["--set", "system.url=http://169.254.169.254"];
    let args = ["submit", "--dataset", "locomo-sim", "--system", "supermemory", "--run-id", "moved"];
    let refused = cluster.client(&[&args[..], &moved].concat()).wait(PATIENCE).expect_code(2);
    let pair = "BENCH_ALLOW_SECRETS=SUPERMEMORY_API_KEY@169.254.169.254:80";
    assert!(refused.stderr.contains(pair) && refused.stderr.contains("BENCH_ALLOW_HOSTS="), "{}", refused.stderr);
    assert_eq!(starts(&ran), 0, "nothing was started");

    // one that was told takes it beside the other, in a folder of its own and without the worker's keys
    let mut told = cluster.worker_with("told", &[], &[("BENCH_ALLOW_SYSTEMS", &hash)]);
    wait_until_ready(&mut told);
    let report = cluster.client(&["resume", "early", "--json"]).wait(PATIENCE).expect_code(0).json();
    assert_eq!(report["outcomes"]["coverage"], 1.0, "{report}");
    let seen = fs::read_to_string(&ran).expect("it ran");
    let folder = seen.lines().nth(1).expect("a folder");
    assert!(folder.ends_with("systems/early/mine/data"), "{seen}");
    for hidden in ["OPENAI_API_KEY", "BENCH_STORE_URL", "BENCH_QUEUE_URL"] {
        assert!(!seen.contains(hidden), "{hidden}: {seen}");
    }
}
