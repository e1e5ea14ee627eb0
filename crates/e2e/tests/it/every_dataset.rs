//! Every dataset walks the whole way, whichever there are: sampled, retained, searched, answered, scored, reported; in one
//! process, and in a cluster whose processes are killed while all runs are under way, with the same digest.

use std::time::Duration;

use bench_e2e::{
    at_hand::{self, AtHand, Source},
    lanes::side_by_side,
};
use bench_proto::ids::{TaskKey, TaskKind};
use bench_testkit::{
    bench::{Bench, Done},
    cluster::{Cluster, wait_until_ready},
    process::{Process, wait_until},
};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(240);
/// Scenarios that need no model.
const SCENARIOS: [&str; 2] = ["answer", "retrieve-only"];
/// Of these only the questions are at hand, and nothing that answers them.
const WITHOUT_MEMORIES: [&str; 1] = ["lifebench@en-questions"];
/// What is said of a dataset that a scenario cannot grade, before anything is done.
const NOTHING_TO_GRADE: [&str; 2] = ["nothing would grade the answers", "has nothing to measure"];
/// These name no evidence: without answers there is nothing to measure. The others walk with and without answers.
const WITHOUT_EVIDENCE: [&str; 3] = ["lifebench", "memoryagentbench", "personamem"];
/// How often all workers are killed while questions are under way.
const KILLS: u64 = 3;

/// A run of a dataset in a scenario, and what it gave undisturbed.
struct Walk<'a> {
    dataset: &'a AtHand,
    scenario: &'static str,
    run: String,
    code: i32,
    report: Value,
}

impl Walk<'_> {
    fn submit(&self) -> Vec<&str> {
        submit(self.dataset, self.scenario, &self.run)
    }
}

fn submit<'a>(dataset: &'a AtHand, scenario: &'a str, run: &'a str) -> Vec<&'a str> {
    let fixed = ["submit", "--dataset", &dataset.name, "--preset", "quick", "--system", "bm25", "--run-id", run];
    let fixed = fixed.into_iter().chain(["--scenario", scenario, "--latency-probe", "off", "--json"]);
    fixed.chain(dataset.flags.iter().map(String::as_str)).collect()
}

/// What every report must say of a run that went through. Of very small memories, or none, words alone find nothing now and
/// then, which makes no valid result.
fn check(dataset: &AtHand, run: &str, done: Done) -> (i32, Value) {
    let may_be_invalid = dataset.from == Source::Ours || WITHOUT_MEMORIES.contains(&dataset.name.as_str());
    assert!(done.code == 0 || (may_be_invalid && done.code == 5), "{run}: {}\n{}", done.code, done.stderr);
    let report = done.json();
    let reasons = report["run"]["reasons"].as_array().expect("reasons");
    let is_of_size = |reason: &Value| reason.as_str().is_some_and(|text| text.contains("an empty context"));
    assert!(reasons.iter().all(is_of_size), "{run}: {reasons:?}");
    let outcomes = &report["outcomes"];
    assert_eq!(outcomes["coverage"], 1.0, "{run}: {outcomes}");
    assert!(outcomes["sample"].as_u64() > Some(0), "{run}: {outcomes}");
    let scores = report["scores"].as_array().expect("scores");
    assert!(scores.iter().any(|score| score["n"].as_u64() > Some(0)), "{run}: nothing was scored: {scores:?}");
    for score in scores {
        assert!(score["micro"].as_f64().is_none_or(|mean| (0.0..=1.0).contains(&mean)), "{run}: {score}");
    }
    (done.code, report)
}

/// Every dataset in one process, undisturbed, in each scenario that can grade it.
fn undisturbed<'a>(datasets: &'a [AtHand], data: &str) -> Vec<Walk<'a>> {
    let asked = datasets.iter().flat_map(|dataset| SCENARIOS.map(|scenario| (dataset, scenario))).collect();
    let walks = side_by_side(asked, |(dataset, scenario)| {
        let bench = Bench::new().with_env("BENCH_DATASETS_DIR", data);
        let run = format!("{}-{scenario}", dataset.name.replace('@', "-"));
        let done = bench.run(submit(dataset, scenario, &run));
        if done.code == 2 && NOTHING_TO_GRADE.iter().any(|said| done.stderr.contains(said)) {
            let has_none = WITHOUT_EVIDENCE.iter().any(|name| dataset.name.split('@').next() == Some(name));
            assert!(scenario == "retrieve-only" && has_none, "{run}: {}", done.stderr);
            return None;
        }
        let (code, report) = check(dataset, &run, done);
        Some(Walk { dataset, scenario, run, code, report })
    });
    walks.into_iter().flatten().collect()
}

fn count(cluster: &Cluster, what: &str) -> u64 {
    cluster.sql(&format!("SELECT {what}")).parse().expect("a count")
}

/// Starts all runs and kills coordinator and worker when each has stored something and none can have ended: nobody takes
/// questions yet.
fn killed_when_all_have_begun(cluster: &Cluster, walks: &[Walk<'_>]) {
    let mut coordinator = cluster.coordinator("coordinator");
    let mut retainer = cluster.worker("retainer", &["--roles", "retain"]);
    wait_until_ready(&mut coordinator);
    wait_until_ready(&mut retainer);
    let left = side_by_side(walks.iter().collect(), |walk| {
        cluster.client(&[&walk.submit()[..], &["--detach"]].concat()).wait(PATIENCE)
    });
    left.into_iter().for_each(|done| drop(done.expect_code(3)));
    let begun = || count(cluster, "count(DISTINCT run_no) FROM tasks WHERE state = 2");
    wait_until("all runs have begun", PATIENCE, || begun() == walks.len() as u64);
    [&mut retainer, &mut coordinator].into_iter().for_each(Process::kill);
    let running = count(cluster, "count(*) FROM runs WHERE finished_us IS NULL");
    assert_eq!(running, walks.len() as u64, "every run was met by the kill");
}

/// Kills all workers again and again while they hold tasks: frozen first, so that what they hold can be counted.
fn killed_with_tasks_in_hand(cluster: &Cluster, questions: u64) -> Vec<Process> {
    let start = |life: u64| -> Vec<Process> {
        let mut workers = ["one", "two"].map(|name| cluster.worker(&format!("{name}-{life}"), &[]));
        workers.iter_mut().for_each(wait_until_ready);
        workers.into()
    };
    let (first, last) = TaskKey::range_of_kind(TaskKind::Question);
    let of_questions = format!("task_key BETWEEN {} AND {}", first.0, last.0);
    let ended = || count(cluster, &format!("count(*) FROM tasks WHERE state >= 2 AND {of_questions}"));
    let mut workers = start(0);
    for life in 1..=KILLS {
        wait_until("a part is done", PATIENCE, || ended() >= questions * life / (KILLS + 1));
        let mut held = 0;
        while held == 0 {
            assert!(ended() < questions, "all ended before kill {life}");
            workers.iter().for_each(|worker| worker.signal("STOP"));
            held = count(cluster, "count(*) FROM tasks WHERE state = 1");
            if held == 0 {
                workers.iter().for_each(|worker| worker.signal("CONT"));
            }
        }
        let runs = count(cluster, "count(DISTINCT run_no) FROM tasks WHERE state = 1");
        workers.iter_mut().for_each(Process::kill);
        eprintln!("kill {life}: {held} tasks of {runs} runs were in hand");
        workers = start(life);
    }
    workers
}

#[test]
fn every_dataset_runs_with_and_without_answers_and_again_after_kills() {
    let data = at_hand::published().to_str().expect("a path").to_owned();
    let maker = Bench::new().with_env("BENCH_DATASETS_DIR", &*data);
    let folder = tempfile::tempdir().expect("a folder");
    let datasets = at_hand::all(&maker, folder.path());
    let walks = undisturbed(&datasets, &data);
    let walked = |dataset: &AtHand| walks.iter().any(|walk| walk.dataset.name == dataset.name);
    assert!(datasets.iter().all(walked), "each walks in one scenario at least");

    let cluster = Cluster::new().with_env("BENCH_DATASETS_DIR", &data);
    killed_when_all_have_begun(&cluster, &walks);
    let mut successor = cluster.coordinator("successor");
    wait_until_ready(&mut successor);
    let questions = walks.iter().map(|walk| walk.report["outcomes"]["sample"].as_u64().expect("a count")).sum();
    let _workers = killed_with_tasks_in_hand(&cluster, questions);
    let resumed = side_by_side(walks.iter().collect(), |walk| {
        (walk, cluster.client(&["resume", &walk.run, "--json", "--display", "none"]).wait(PATIENCE))
    });
    for (Walk { run, code, report, .. }, resumed) in resumed {
        let resumed = resumed.expect_code(*code).json();
        assert_eq!(resumed["result_digest"], report["result_digest"], "{run}: undisturbed and killed");
        assert_eq!(resumed["run"]["fingerprint"], report["run"]["fingerprint"], "{run}");
    }
    let losses = count(&cluster, "coalesce(sum(losses), 0) FROM tasks");
    assert!(losses > 0, "kills took tasks from their workers");
    eprintln!("{} datasets, {} runs, {losses} tasks were lost with their workers", datasets.len(), walks.len());
}
