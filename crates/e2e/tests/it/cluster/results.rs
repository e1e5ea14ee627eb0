//! What becomes of the results of a cluster: archived by the coordinator, however long that takes; taken over by other runs.

use std::time::{Duration, Instant};

use bench_e2e::faults::{RUN, Size, Stage};
use bench_testkit::{
    cluster::{Cluster, Setup},
    provider::{KEY, Provider},
    s3::S3,
    troubled_s3::{Trouble, TroubledS3},
};
use serde_json::json;

#[test]
fn a_coordinator_archives_finished_runs_as_soon_as_the_archive_is_back() {
    let s3 = TroubledS3::start();
    s3.trouble_after(0, Trouble::Busy);
    let provider = Provider::start(&[]);
    let cluster = Cluster::with(Setup::default()).with_provider(provider.base_url(), KEY);
    let cluster = S3::environment(s3.place()).iter().fold(cluster, |c, (name, value)| c.with_env(name, value));
    let cluster = cluster.with_env("BENCH_ARCHIVE_URL", "s3://bench/cluster");
    let stage = Stage::new(Size::Small, provider, cluster);
    let (_coordinator, _workers) = stage.people(1);
    let report = stage.check(stage.submit(&[]), 0);
    let listed = || {
        let done = stage.cluster.run(&["archive", "list", "--json"]);
        (done.code == 0).then(|| done.json())
    };
    assert_eq!(listed(), None, "nobody can look while the archive is away");
    s3.heal();
    let began = Instant::now();
    let entry = loop {
        if let Some(entry) = listed().and_then(|runs| runs.as_array()?.first().cloned()) {
            break entry;
        }
        assert!(began.elapsed() < Duration::from_secs(90), "the coordinator did not come back to it");
        std::thread::sleep(Duration::from_millis(200));
    };
    assert_eq!((&entry["run_id"], &entry["result_digest"]), (&json!(RUN), &report["result_digest"]));
    let _ = stage.cluster.run(&["archive", "verify"]).expect_code(0);
}

#[test]
fn a_fork_in_a_cluster_asks_only_for_what_is_new() {
    let stage = Stage::set(Size::Small, Setup::default(), 0);
    let (_coordinator, _workers) = stage.people(2);
    let source = stage.check(stage.submit(&[]), 0);
    let questions = source["outcomes"]["sample"].as_u64().expect("a count");
    let paid = stage.provider.count("requests");
    let fixed = ["submit", "--fork", RUN, "--json", "--from"];
    let fork = |more: &[&str]| -> Vec<String> { fixed.iter().chain(more).map(|arg| (*arg).to_owned()).collect() };
    let run = |more: &[&str]| {
        let args = fork(more);
        stage.cluster.run(&args.iter().map(String::as_str).collect::<Vec<_>>()).expect_code(0).json()
    };
    // the estimate is about what is left to do
    let dry = run(&["judge", "--judge", "openai:gpt-4o", "--dry-run"]);
    assert_eq!((&dry["calls"], dry["phases"].as_array().map(Vec::len)), (&json!(questions), Some(1)));
    let judged = run(&["judge", "--judge", "openai:gpt-4o", "--run-id", "judged"]);
    assert_eq!(stage.provider.count("requests"), paid + questions);
    assert_eq!(judged["usage"]["answer"]["cached_calls"], source["usage"]["answer"]["calls"]);
    assert_eq!(judged["retrieval"], source["retrieval"]);
    let answered = run(&["answer", "--answerer", "openai:gpt-4o", "--run-id", "answered"]);
    assert_eq!(answered["usage"]["answer"]["calls"], json!(questions));
    assert_eq!(answered["retrieval"], source["retrieval"], "nothing was recalled again");
    let recalled = run(&["recall", "--top-k", "3", "--run-id", "recalled"]);
    assert_eq!(recalled["spec"]["top_k"], 3);
    assert_eq!(recalled["outcomes"]["coverage"], 1.0);
}
