//! Every dataset with an answerer and two judges, over RabbitMQ and Postgres: workers and coordinator are killed when one judge
//! has graded everything and the other one has not replied yet. Resumed, each run has the digest of an undisturbed one.

use std::time::Duration;

use bench_e2e::{
    at_hand::{self, AtHand},
    lanes::side_by_side,
};
use bench_proto::ids::{TaskKey, TaskKind};
use bench_testkit::{
    bench::{Bench, Done},
    cluster::{Cluster, wait_until_ready},
    process::{Process, wait_until},
    provider::{KEY, Provider},
};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(240);
const ANSWERER: &str = "gpt-4o-mini";
/// The judge whose votes are all stored when everything is killed.
const FIRST: &str = "gpt-4o";
/// The judge that has not replied until then.
const SECOND: &str = "gpt-4.1-mini";
/// Questions of a dataset, where it has so many: each kind of BEAM's, ConvoMem's and LongMemEval's calls is among them.
const QUESTIONS: &str = "6";
/// Slots of a judging worker: enough that votes of the silent judge, which wait for their turn, hold up none of the other one.
const SLOTS: &str = "256";
/// Datasets that only scorers grade: a choice of letters, or assertions about a recall. Judges get a rubric of the run's.
const WITHOUT_RUBRIC: [&str; 4] = ["membench", "personamem", "precision-sim", "precisionmembench"];
/// Of these the questions alone are published: every context is empty, which makes no valid result.
const WITHOUT_MEMORIES: [&str; 1] = ["lifebench@en-questions"];

/// A dataset, the name of its run, and what an undisturbed run gave.
struct Judged {
    dataset: AtHand,
    run: String,
    undisturbed: Done,
    report: Value,
}

impl Judged {
    fn questions(&self) -> u64 {
        self.report["outcomes"]["sample"].as_u64().expect("a count")
    }

    fn votes(&self) -> u64 {
        2 * self.questions()
    }
}

fn run_of(dataset: &AtHand) -> String {
    dataset.name.replace('@', "-")
}

fn submit<'a>(dataset: &'a AtHand, run: &'a str, judges: &'a [String; 3]) -> Vec<&'a str> {
    let [answerer, first, second] = judges;
    let whom = ["--answerer", answerer, "--judge", first, "--judge", second, "--max-cost", "5"];
    let fixed = ["submit", "--dataset", &dataset.name, "--sample-total", QUESTIONS, "--run-id", run];
    let quietly = ["--latency-probe", "off", "--display", "none", "--json"];
    let has_no_rubric = WITHOUT_RUBRIC.iter().any(|name| dataset.name.split('@').next() == Some(name));
    let rubric: &[&str] = if has_no_rubric { &["--rubric", "judge-graded"] } else { &[] };
    let flags = dataset.flags.iter().map(String::as_str);
    fixed.into_iter().chain(whom).chain(quietly).chain(rubric.iter().copied()).chain(flags).collect()
}

fn models() -> [String; 3] {
    [ANSWERER, FIRST, SECOND].map(|model| format!("openai:{model}"))
}

/// What every run says that nobody disturbs: all answered, all graded by both judges.
fn check(dataset: &AtHand, done: &Done) -> Value {
    let may_be_invalid = dataset.from == at_hand::Source::Ours || WITHOUT_MEMORIES.contains(&dataset.name.as_str());
    assert!(done.code == 0 || (may_be_invalid && done.code == 5), "{}: {}\n{}", dataset.name, done.code, done.stderr);
    let report = done.json();
    let reasons = report["run"]["reasons"].as_array().expect("reasons");
    let is_expected = |reason: &Value| reason.as_str().is_some_and(|text| text.contains("an empty context"));
    assert!(reasons.iter().all(is_expected), "{}: {reasons:?}", dataset.name);
    let outcomes = &report["outcomes"];
    assert_eq!((&outcomes["coverage"], &outcomes["infra_error"]), (&json!(1.0), &json!(0)), "{}", dataset.name);
    for metric in ["judge", "judge-2"] {
        let score = report["scores"].as_array().into_iter().flatten().find(|score| score["metric"] == metric);
        let score = score.unwrap_or_else(|| panic!("{}: no {metric} in {}", dataset.name, report["scores"]));
        assert!(score["n"].as_u64() > Some(0), "{}: {score}", dataset.name);
    }
    report
}

/// Every dataset on one machine, undisturbed.
fn undisturbed(provider: &Provider, datasets: Vec<AtHand>, data: &str) -> Vec<Judged> {
    side_by_side(datasets, |dataset| {
        let bench = provider.bench().with_env("BENCH_DATASETS_DIR", data);
        let run = run_of(&dataset);
        let undisturbed = bench.run(submit(&dataset, &run, &models()));
        let report = check(&dataset, &undisturbed);
        Judged { dataset, run, undisturbed, report }
    })
}

/// Number of votes with a condition on their tasks; `judge` is 0 for the first one.
fn votes(cluster: &Cluster, condition: &str) -> u64 {
    let (lowest, _) = TaskKey::range_of_kind(TaskKind::Judge);
    let judge = format!("((task_key & {}) / 32)", TaskKey::INDEX_STEP - 1);
    let condition = condition.replace("judge", &judge);
    let count = cluster.sql(&format!("SELECT count(*) FROM tasks WHERE task_key >= {} AND {condition}", lowest.0));
    count.parse().expect("a count")
}

/// All runs up to the point at which one judge has graded everything and the other has been asked and is silent; then nobody
/// is left. Returns how many calls were in flight.
fn judged_by_half(cluster: &Cluster, provider: &Provider, all: &[Judged]) -> u64 {
    let mut coordinator = cluster.coordinator("coordinator");
    let mut asker = cluster.worker("asker", &["--roles", "retain,question"]);
    wait_until_ready(&mut coordinator);
    wait_until_ready(&mut asker);
    let left = side_by_side(all.iter().collect(), |judged| {
        let models = models();
        let detached = [&submit(&judged.dataset, &judged.run, &models)[..], &["--detach"]].concat();
        cluster.client(&detached).wait(PATIENCE)
    });
    left.into_iter().for_each(|done| drop(done.expect_code(3)));
    let expected: u64 = all.iter().map(Judged::votes).sum();
    wait_until("all are answered", PATIENCE, || votes(cluster, "state = 0") == expected);
    let _ = provider.outage(&json!({"kind": "hang", "model": SECOND}));
    let mut judges: Vec<Process> =
        ["one", "two"].map(|name| cluster.worker(name, &["--roles", "judge", "--concurrency", SLOTS])).into();
    judges.iter_mut().for_each(wait_until_ready);
    wait_until("one judge has graded everything", PATIENCE, || votes(cluster, "judge = 0 AND state <> 2") == 0);
    wait_until("the other is asked", PATIENCE, || provider.count_of_model(SECOND, "in_flight") > 0);
    let in_flight = provider.count_of_model(SECOND, "in_flight");
    judges.iter_mut().chain([&mut asker, &mut coordinator]).for_each(Process::kill);
    assert_eq!((votes(cluster, "state = 2"), votes(cluster, "judge = 1 AND state = 2")), (expected / 2, 0));
    in_flight
}

#[test]
fn every_dataset_is_judged_killed_resumed_and_has_the_digest_of_an_undisturbed_run() {
    let data = at_hand::published().to_str().expect("a path").to_owned();
    let maker = Bench::new().with_env("BENCH_DATASETS_DIR", &*data);
    let folder = tempfile::tempdir().expect("a folder");
    let datasets = at_hand::all(&maker, folder.path());
    let calm = Provider::start(&[]);
    let all = undisturbed(&calm, datasets, &data);

    let provider = Provider::start(&[]);
    let cluster = Cluster::new().with_env("BENCH_DATASETS_DIR", &data).with_provider(provider.base_url(), KEY);
    let in_flight = judged_by_half(&cluster, &provider, &all);
    provider.end_outages();
    let mut successor = cluster.coordinator("successor");
    let mut workers: Vec<Process> = ["three", "four"].map(|name| cluster.worker(name, &[])).into();
    wait_until_ready(&mut successor);
    workers.iter_mut().for_each(wait_until_ready);
    let resumed = side_by_side(all.iter().collect(), |judged| {
        (judged, cluster.client(&["resume", &judged.run, "--json", "--display", "none"]).wait(PATIENCE))
    });
    for (judged, resumed) in resumed {
        let name = &judged.dataset.name;
        let resumed = resumed.expect_code(judged.undisturbed.code).json();
        assert_eq!(resumed["result_digest"], judged.report["result_digest"], "{name}: killed and undisturbed");
        assert_eq!(resumed["run"]["fingerprint"], judged.report["run"]["fingerprint"], "{name}");
        let judge = (&resumed["usage"]["judge"], &judged.report["usage"]["judge"]);
        assert_eq!(judge.0["calls"], judge.1["calls"], "{name}: calls of judges");
        eprintln!(
            "{name}: {}, {} questions, {} calls of two judges, killed with half of the votes, digest {:.12}",
            judged.dataset.from,
            judged.questions(),
            judge.0["calls"],
            resumed["result_digest"].as_str().expect("a digest"),
        );
    }
    for model in [ANSWERER, FIRST, SECOND] {
        let paid = [&calm, &provider].map(|provider| provider.count_of_model(model, "paid_replies"));
        assert_eq!(paid[0], paid[1], "{model}: every reply was paid once");
    }
    eprintln!("{} datasets; {in_flight} calls were in flight when all processes were killed", all.len());
}
