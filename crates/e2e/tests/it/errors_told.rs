//! What a person is told whose memory system fails at every question: why, once, wherever they look.

use std::fs;

use bench_testkit::bench::Bench;

/// A class that stores everything and finds nothing, by a mistake.
const MISTAKEN: &str = "
import bench_coord

class Mine(bench_coord.System):
    def retain(self, bank, items):
        pass

    def recall(self, bank, query, k):
        raise KeyError('the index of this bank was never opened')
";

fn mistaken() -> Bench {
    let bench = Bench::new();
    fs::write(bench.path().join("mine.py"), MISTAKEN).expect("is written");
    bench
}

const SUBMIT: [&str; 13] = [
    "submit",
    "--dataset",
    "locomo-sim",
    "--preset",
    "quick",
    "--limit",
    "12",
    "--system",
    "mine.py:Mine",
    "--latency-probe",
    "off",
    "--run-id",
    "bad",
];

#[test]
fn a_mistake_of_a_class_is_told_by_every_view_and_not_once_for_each_question() {
    let bench = mistaken();
    let done = bench.run(SUBMIT).expect_code(5);
    let warned = |words: &str| done.stderr.lines().filter(|line| line.contains("WARN") && line.contains(words)).count();
    assert_eq!(warned("is given up"), 3, "the first few: {}", done.stderr);
    assert_eq!(warned("10 tasks of run bad are given up for the same reason"), 1, "{}", done.stderr);
    assert_eq!(warned("12 tasks of run bad are given up for the same reason"), 1, "{}", done.stderr);

    let brief = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in
        ["12 of 12 questions ended in an error, system_refused: recall: ", "failed bench-coord show bad --failed"]
    {
        assert!(brief.contains(words), "'{words}' is missing:\n{}", done.stdout);
    }
    assert!(done.stdout.lines().count() <= 24, "{}", done.stdout);
    let report = bench.report("bad");
    assert_eq!(report["errors"]["system_refused"], 12);
    let example = report["error_examples"]["system_refused"].as_str().expect("an example");
    assert!(example.contains("KeyError: 'the index of this bank was never opened'"), "{example}");
    let full = bench.run(["report", "bad", "--full"]).expect_code(0).stdout;
    assert!(full.contains("One of them") && full.contains("never opened"), "{full}");

    let failed = bench.run(["show", "bad", "--failed"]).expect_code(0).stdout;
    assert!(failed.lines().next().is_some_and(|head| head.contains("error")), "{failed}");
    assert!(failed.matches("system_refused: recall: mine says: KeyError").count() == 12, "{failed}");
    let found = bench.run(["show", "bad", "--search", "NEVER opened", "--json"]).expect_code(0).json();
    assert_eq!(found.as_array().map(Vec::len), Some(12), "errors are looked into");
    for nothing in ["", " "] {
        let refused = bench.run(["show", "bad", "--search", nothing]).expect_code(2).stderr;
        assert!(refused.contains("no text is named for --search"), "{refused}");
    }
}

#[test]
fn a_rehearsal_is_marked_wherever_its_result_stands() {
    let bench = Bench::new();
    let submit = ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--limit", "4", "--latency-probe", "off"];
    let models = ["--answerer", "fake", "--judge", "fake", "--run-id", "rehearsed"];
    let done = bench.run(submit.iter().chain(&models)).expect_code(0);
    assert!(done.stdout.contains("[simulated answerer] [simulated judge]"), "{}", done.stdout);
    let _ = bench.run(submit.iter().chain(&["--run-id", "real"])).expect_code(0);
    let listed = bench.run(["list", "--json"]).expect_code(0).json();
    assert_eq!(listed[1]["labels"], serde_json::json!(["simulated answerer", "simulated judge"]), "{listed}");
    assert_eq!(bench.report("rehearsed")["labels"], listed[1]["labels"]);
    let _ = bench.run(["report", "--index"]).expect_code(0);
    let page = fs::read_to_string(bench.path().join(".bench/runs/index.html")).expect("a page");
    assert!(page.contains("simulated answerer, simulated judge"), "{page}");
    let narrow = bench.with_env("COLUMNS", "80");
    let list = narrow.run(["list"]).expect_code(0).stdout;
    let row = |run: &str| list.lines().find(|line| line.trim_start().starts_with(run)).expect("a row").to_owned();
    assert!(row("rehearsed").contains("simulated") && !row("real").contains("simulated"), "{list}");
}
