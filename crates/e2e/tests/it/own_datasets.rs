//! Datasets of users: a file that is named, one in the datasets folder, and what a generator has written.

use std::time::Duration;

use bench_testkit::{
    bench::Bench,
    cluster::{Cluster, wait_until_ready},
};
use serde_json::json;

const SET: &str = r#"# what two friends told each other
{"dataset": {"name": "friends", "scorers": ["exact"]}}
{"session": {"date": "2026-03-04", "turns": [{"speaker": "Ann", "text": "Cello."}, {"speaker": "Ben", "text": "A cello, really?"}]}}
{"memory": {"text": "Ben lives in Oslo."}}
{"id": "plays_abs", "question": "What does Ann play, cello or violin?", "expected_substrings": ["cello"], "tags": ["music"]}
{"id": "lives", "question": "Where does Ben live?", "reference_answer": "Oslo"}
"#;

const SUITE: &str = r#"# what a team tells its memory
retain:
- {content: "The printer stands on floor two.", tags: [office], at: 2026-03-04}
- {content: "The printer stands on floor four.", tags: [office], at: 2026-04-04, replaces: 1}
- {content: "Ann waters the fern every week.", tags: [plants], metadata: {room: 7}}
recall:
- {query: "Where does the printer stand?", expected_contains: [four], expected_excludes: [two], tags: [office]}
- {query: "Who waters the fern?", expected_contains: [Ann]}
- {query: "Who waters the palm?"}
reflect:
- {query: "What is known of printer and fern?", expected_topics: [floor, week]}
"#;

const QUIETLY: [&str; 5] = ["--preset", "full", "--json", "--latency-probe", "off"];

fn submit<'a>(dataset: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    ["submit", "--dataset", dataset].iter().chain(&QUIETLY).chain(more).copied().collect()
}

#[test]
fn a_users_file_is_a_dataset() {
    let bench = Bench::new();
    let file = bench.path().join("mine.jsonl");
    std::fs::write(&file, SET).expect("writes");
    let named = file.display().to_string();
    let report = bench.run(submit(&named, &["--run-id", "own"])).expect_code(0).json();
    assert_eq!((&report["dataset"]["name"], &report["outcomes"]["sample"]), (&json!("friends"), &json!(2)));
    assert_eq!(report["dataset"]["modified"], false);
    assert_eq!(report["headline"]["metric"], "exact");
    let ids: Vec<_> = bench.questions("own").iter().map(|line| line["question_id"].clone()).collect();
    assert_eq!(ids, [json!("lives"), json!("plays_abs")], "asked in an order that tells nothing");
    // what needs the dataset again finds it by its path
    let key = bench.path().join("key.json");
    std::fs::write(&key, r#"[{"question_id": "lives", "correct_answer": "Bergen"}]"#).expect("writes");
    let _ = bench.run(["report", "own", "--answer-key", &key.display().to_string()]).expect_code(0);

    // what its scorer has nothing to say of is told before anything is paid
    let unanswerable = r#"{"id": "age", "question": "How old is Ben?", "unanswerable": true}"#;
    std::fs::write(&file, format!("{}{unanswerable}\n", SET.replace("exact", "substring"))).expect("writes");
    let told = bench.run(submit(&named, &["--dry-run"])).expect_code(0).stderr;
    assert!(told.contains("1 of 3 questions have no score by it") && told.contains("(age)"), "{told}");

    std::fs::write(&file, SET.replace("\"question\"", "\"qestion\"")).expect("writes");
    let refused = bench.run(submit(&named, &[])).expect_code(2).stderr;
    assert!(
        refused.contains("mine.jsonl: line 5, column") && refused.contains("did you mean 'question'?"),
        "{refused}"
    );
}

/// The generator and the file that it wrote give one result.
#[test]
fn generated_data_in_our_own_form_is_the_same_dataset() {
    let bench = Bench::new();
    let file = bench.path().join("talk.jsonl");
    let small = ["--set", "sim.conversations=1"];
    let path = file.display().to_string();
    let write = ["datasets", "generate", "locomo-sim", "--format", "jsonl", "--output", &path, small[0], small[1]];
    let _ = bench.run(write).expect_code(0);
    let of = |dataset: &str, more: &[&str]| bench.run(submit(dataset, more)).expect_code(0).json();
    let generated = of("locomo-sim", &small);
    let read = of(&path, &[]);
    assert_eq!(read["dataset"]["name"], "talk");
    assert_eq!(read["result_digest"], generated["result_digest"]);
    assert_eq!(read["headline"], generated["headline"]);
    let shown = bench.run(["datasets", "show", &path]).expect_code(0).stdout;
    assert!(shown.starts_with("talk 1: ") && shown.contains("  1 bank, "), "{shown}");
}

/// A suite by its path, the same file in the datasets folder, and both in a cluster, whose workers have no such file: one result.
#[test]
fn a_users_suite_is_a_dataset_wherever_it_lies_and_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let dropped = folder.path().join("mine.yaml");
    std::fs::write(&dropped, SUITE).expect("writes");
    let datasets = folder.path().to_str().expect("a path");
    let alone = Bench::new().with_env("BENCH_DATASETS_DIR", datasets);
    std::fs::write(alone.path().join("mine.yaml"), SUITE).expect("writes");
    let by_path = alone.run(submit("./mine.yaml", &["--run-id", "by-path"])).expect_code(0).json();
    assert_eq!((&by_path["dataset"]["name"], &by_path["outcomes"]["sample"]), (&json!("mine"), &json!(4)));
    assert_eq!(by_path["headline"]["metric"], "rubric");
    assert!(by_path["headline"]["value"].as_f64() > Some(0.0), "{}", by_path["headline"]);
    let listed = alone.run(["datasets", "list", "--json"]).expect_code(0).json();
    let is_listed = |entry: &serde_json::Value| entry["name"] == "mine" && entry["here"] == "own";
    assert!(listed.as_array().expect("a list").iter().any(is_listed), "{listed}");
    let by_name = alone.run(submit("mine", &["--run-id", "by-name"])).expect_code(0).json();

    let cluster = Cluster::new();
    let mut coordinator = cluster.coordinator("coordinator");
    let mut worker = cluster.worker("worker", &[]);
    wait_until_ready(&mut coordinator);
    wait_until_ready(&mut worker);
    let path = dropped.to_str().expect("a path");
    let client = cluster.client(&submit(path, &["--run-id", "together"]));
    let together = client.wait(Duration::from_secs(120)).expect_code(0).json();
    for (report, how) in [(&by_name, "by its name"), (&together, "in a cluster")] {
        assert_eq!(report["result_digest"], by_path["result_digest"], "{how}");
        assert_eq!(report["run"]["fingerprint"], by_path["run"]["fingerprint"], "{how}");
        assert_eq!(report["headline"]["value"], by_path["headline"]["value"], "{how}");
    }
}
