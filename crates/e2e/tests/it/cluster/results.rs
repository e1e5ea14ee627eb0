//! What becomes of the results of a cluster: archived by the coordinator, however long that takes; taken over by other runs.

use std::{
    fs,
    time::{Duration, Instant},
};

use bench_e2e::faults::{RUN, Size, Stage};
use bench_testkit::{
    cluster::{Cluster, Setup, wait_until_ready},
    process::wait_until,
    provider::{KEY, Provider},
    s3::S3,
    troubled_s3::{Trouble, TroubledS3},
};
use serde_json::json;

use crate::repeats::people;

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
fn the_document_of_a_matrix_is_brought_by_another_coordinator_when_the_first_could_not() {
    const PATIENCE: Duration = Duration::from_secs(120);
    let archive = tempfile::tempdir().expect("a folder");
    // runs find their place there, documents of matrices do not
    let documents = archive.path().join("matrices");
    fs::write(&documents, "").expect("writable");
    let cluster = Cluster::new().with_env("BENCH_ARCHIVE_URL", &archive.path().display().to_string());
    let (mut coordinator, _workers) = people(&cluster, ["leader", "one", "two"]);
    let line = ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--latency-probe", "off"];
    let grid = ["--system", "bm25,random", "--run-id", "grid", "--json", "--display", "none"];
    let _ = cluster.run(&[&line[..], &grid].concat()).expect_code(0);
    wait_until("both runs are archived", PATIENCE, || {
        let listed = cluster.run(&["archive", "list", "--json"]);
        listed.code == 0 && listed.json().as_array().is_some_and(|runs| runs.len() == 2)
    });
    // a round after that: it has found no place for the document
    std::thread::sleep(Duration::from_secs(6));
    coordinator.kill();
    fs::remove_file(&documents).expect("removable");
    let mut coordinator = cluster.coordinator("another");
    wait_until_ready(&mut coordinator);
    let found = || -> Vec<String> {
        let matrix = fs::read_dir(&documents).into_iter().flatten().flatten();
        let files = matrix.filter_map(|date| fs::read_dir(date.path().join("grid")).ok()).flatten().flatten();
        let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("results-matrix-") && name.ends_with(".json")).collect()
    };
    wait_until("the document is there", PATIENCE, || !found().is_empty());
    // it is noted, and not written again
    std::thread::sleep(Duration::from_secs(6));
    assert_eq!(found().len(), 1, "{:?}", found());
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
