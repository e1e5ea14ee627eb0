//! Every dataset walks the whole way, whichever there are: sampled, retained, searched, answered, scored, reported; in one
//! process, and in a cluster whose workers are killed, with the same digest.

use std::time::Duration;

use bench_e2e::at_hand::{self, AtHand, Source};
use bench_testkit::{
    bench::Bench,
    cluster::{Cluster, wait_until_ready},
    process::Process,
};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(240);
/// Scenarios that need no model.
const SCENARIOS: [&str; 2] = ["answer", "retrieve-only"];
/// Of the datasets that have nothing but small files of ours these have enough questions; all are judged in `every_judge`.
const SMALL: [&str; 2] = ["longmemeval@oracle", "longmemeval@s"];
/// Of these only the questions are at hand, and nothing that answers them.
const WITHOUT_MEMORIES: [&str; 1] = ["lifebench@en-questions"];
/// What is said of a dataset that a scenario cannot grade, before anything is done.
const NOTHING_TO_GRADE: [&str; 2] = ["nothing would grade the answers", "has nothing to measure"];

/// The datasets that walk the way here.
fn all(bench: &Bench, folder: &std::path::Path) -> Vec<AtHand> {
    let mut all = at_hand::all(bench, folder);
    all.retain(|dataset| {
        let name = dataset.name.as_str();
        let is_large = dataset.from != Source::Ours || SMALL.contains(&name);
        let walks = is_large && !WITHOUT_MEMORIES.contains(&name);
        if !walks {
            eprintln!("NOT TESTED here: of {name} only small files, or no memories, are at hand");
        }
        walks
    });
    all
}

fn submit<'a>(dataset: &'a AtHand, scenario: &'a str, run: &'a str) -> Vec<&'a str> {
    let fixed = ["submit", "--dataset", &dataset.name, "--preset", "quick", "--system", "bm25", "--run-id", run];
    let fixed = fixed.into_iter().chain(["--scenario", scenario, "--latency-probe", "off", "--json"]);
    fixed.chain(dataset.flags.iter().map(String::as_str)).collect()
}

/// What every report must say of a run that went through. In a very small memory words alone find nothing now and then.
fn check(run: &str, report: &Value, small: bool) {
    let reasons = report["run"]["reasons"].as_array().expect("reasons");
    let of_size = |reason: &Value| small && reason.as_str().is_some_and(|text| text.contains("an empty context"));
    assert!(reasons.iter().all(of_size), "{run}: {reasons:?}");
    let outcomes = &report["outcomes"];
    assert_eq!(outcomes["coverage"], 1.0, "{run}: {outcomes}");
    assert!(outcomes["sample"].as_u64() > Some(0), "{run}: {outcomes}");
    let scores = report["scores"].as_array().expect("scores");
    assert!(scores.iter().any(|score| score["n"].as_u64() > Some(0)), "{run}: nothing was scored: {scores:?}");
    for score in scores {
        assert!(score["micro"].as_f64().is_none_or(|mean| (0.0..=1.0).contains(&mean)), "{run}: {score}");
    }
}

#[test]
fn every_dataset_runs_with_and_without_answers_and_again_after_kills() {
    let data = at_hand::published();
    let bench = Bench::new().with_env("BENCH_DATASETS_DIR", data.to_str().expect("a path"));
    let folder = tempfile::tempdir().expect("a folder");
    let datasets = all(&bench, folder.path());
    assert!(datasets.len() >= 8, "those that are made or small are always at hand");
    let cluster = Cluster::new().with_env("BENCH_DATASETS_DIR", data.to_str().expect("a path"));
    let mut coordinator = cluster.coordinator("coordinator");
    let mut workers: Vec<Process> = ["one", "two"].map(|name| cluster.worker(name, &[])).into();
    wait_until_ready(&mut coordinator);
    workers.iter_mut().for_each(wait_until_ready);
    let mut refused = Vec::new();
    for dataset in &datasets {
        let small = dataset.from == Source::Ours;
        for scenario in SCENARIOS {
            let run = format!("{}-{scenario}", dataset.name.replace('@', "-"));
            let alone = bench.run(submit(dataset, scenario, &run));
            if alone.code == 2 && NOTHING_TO_GRADE.iter().any(|said| alone.stderr.contains(said)) {
                refused.push(run);
                continue;
            }
            let code = alone.code;
            let alone = alone.expect_code(if small { code } else { 0 }).json();
            check(&run, &alone, small);
            let client = cluster.client(&submit(dataset, scenario, &run));
            std::thread::sleep(Duration::from_millis(300));
            workers[0].kill();
            workers[0] = cluster.worker("one", &[]);
            let together = client.wait(PATIENCE).expect_code(code).json();
            assert_eq!(together["result_digest"], alone["result_digest"], "{run}: alone and with a killed worker");
            assert_eq!(together["run"]["fingerprint"], alone["run"]["fingerprint"], "{run}");
        }
    }
    // these name no evidence
    let allowed = ["memoryagentbench-conflict-resolution-retrieve-only", "personamem-32k-retrieve-only"];
    assert!(refused.iter().all(|run| allowed.contains(&run.as_str())), "{refused:?}");
}
