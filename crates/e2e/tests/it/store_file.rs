//! A local store is one file whenever nobody works on it: after every end of every verb, and in a backup at any time.

use std::{path::PathBuf, time::Duration};

use bench_testkit::{
    bench::{Bench, signal, wait},
    process::{Process, wait_until},
    provider::Provider,
};
use serde_json::Value;

const SMALL: [&str; 6] = ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--json"];
const PATIENCE: Duration = Duration::from_secs(60);

fn store_of(bench: &Bench) -> PathBuf {
    bench.path().join(".bench/bench.db")
}

/// Bytes of the write-ahead log; 0 when there is none.
fn log_of(bench: &Bench) -> u64 {
    std::fs::metadata(bench.path().join(".bench/bench.db-wal")).map_or(0, |log| log.len())
}

fn listed(bench: &Bench, more: &[&str]) -> Vec<String> {
    let list = bench.run(["list", "--json"].iter().chain(more)).expect_code(0).json();
    let id = |run: &Value| run["id"].as_str().expect("an id").to_owned();
    list.as_array().expect("runs").iter().map(id).collect()
}

/// The runs in a copy of the file alone, after a verb that has ended.
fn runs_in_a_copy(bench: &Bench) -> Vec<String> {
    assert_eq!(log_of(bench), 0, "nothing is left in the log");
    let copy = Bench::new();
    std::fs::create_dir(copy.path().join(".bench")).expect("a folder");
    std::fs::copy(store_of(bench), store_of(&copy)).expect("is copied");
    listed(&copy, &[])
}

#[test]
fn p21_after_each_end_of_a_verb_the_file_alone_is_the_store() {
    let provider = Provider::start(&["--latency-ms", "200"]);
    let bench = provider.bench();
    let _ = bench.run(SMALL.iter().chain(&["--run-id", "done"])).expect_code(0);
    assert_eq!(runs_in_a_copy(&bench), ["done"]);
    let _ = bench.run(SMALL.iter().chain(&["--run-id", "done", "--top-k", "3"])).expect_code(2);
    assert_eq!(runs_in_a_copy(&bench), ["done"]);

    // a person stops a run, and one who only looks on goes first
    let owner = bench.start(provider.submit(&["--run-id", "stopped", "--concurrency", "4"]));
    provider.wait_for_requests(4);
    let mut watch = Process::start(bench.command(["watch", "stopped", "--display", "plain"]), bench.path(), "watch");
    let _ = watch.wait_for_line("questions", PATIENCE);
    watch.signal("INT");
    let _ = watch.wait(PATIENCE).expect_code(3);
    signal(&owner, "INT");
    let _ = wait(owner).expect_code(3);
    assert_eq!(runs_in_a_copy(&bench), ["stopped", "done"]);
    let resumed = bench.start(["resume", "stopped"]);
    provider.wait_for_requests(12);
    signal(&resumed, "TERM");
    signal(&resumed, "TERM");
    let _ = wait(resumed).expect_code(3);
    assert_eq!(runs_in_a_copy(&bench), ["stopped", "done"]);

    // nothing can be done at a kill; whoever comes next does it
    let owner = bench.start(provider.submit(&["--run-id", "killed", "--concurrency", "4"]));
    let asked = provider.count("requests");
    provider.wait_for_requests(asked + 8);
    signal(&owner, "KILL");
    let _ = wait(owner);
    assert!(log_of(&bench) > 0, "its commits are in the log");
    assert_eq!(listed(&bench, &[]), ["killed", "stopped", "done"]);
    assert_eq!(runs_in_a_copy(&bench), ["killed", "stopped", "done"]);
}

#[test]
fn a_backup_is_made_while_a_run_goes_on_and_can_be_resumed() {
    let provider = Provider::start(&["--latency-ms", "200"]);
    let bench = provider.bench();
    let owner = bench.start(provider.submit(&["--run-id", "live", "--concurrency", "4"]));
    provider.wait_for_requests(8);
    let copied = bench.run(["backup", "copy.db"]).expect_code(0);
    assert!(copied.stdout.contains("copy.db: 1 runs"), "{}", copied.stdout);
    assert_eq!(bench.run(["status", "live", "--json"]).expect_code(0).json()["status"], "running", "it goes on");
    let again = bench.run(["backup", "copy.db"]).expect_code(2);
    assert!(again.stderr.contains("exists already"), "{}", again.stderr);
    let of_postgres = ["backup", "x.dump", "--store", "postgres://u:secret@h/db", "--queue", "amqp://h"];
    let refused = bench.run(of_postgres).expect_code(2);
    assert!(refused.stderr.contains("pg_dump") && !refused.stderr.contains("secret"), "{}", refused.stderr);
    let owner = wait(owner).expect_code(0).json();
    assert_eq!(listed(&bench, &["--store", "sqlite:copy.db"]), ["live"]);
    let resumed = bench.run(["resume", "live", "--json", "--store", "sqlite:copy.db"]).expect_code(0).json();
    assert_eq!(resumed["result_digest"], owner["result_digest"]);
    wait_until("no file beside the copy", PATIENCE, || !bench.path().join("copy.db-wal").exists());
}

#[test]
fn p21_of_two_local_submits_at_once_one_runs_and_the_other_says_who() {
    let provider = Provider::start(&["--latency-ms", "200"]);
    let bench = provider.bench();
    let both = [(), ()].map(|()| bench.start(provider.submit(&["--run-id", "job", "--concurrency", "4"])));
    let pids = both.each_ref().map(std::process::Child::id);
    let ended = both.map(wait);
    let second = usize::from(ended[0].code == 0);
    let said = &ended[second].stderr;
    assert_eq!((ended[1 - second].code, ended[second].code), (0, 2), "{said}");
    assert!(said.contains(&format!("is running, pid {}", pids[1 - second])), "{said}");
}
