//! Facets of questions, from a dataset's gold to reports, exports, comparisons and samples.

use bench_testkit::bench::Bench;
use serde_json::{Value, json};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/testdata/longmemeval/whole.json");
const SUBMIT: [&str; 10] = [
    "submit",
    "--dataset",
    "longmemeval",
    "--dataset-path",
    FILE,
    "--allow-modified-dataset",
    "--latency-probe",
    "off",
    "--json",
    "--display=none",
];

fn submit<'a>(more: &[&'a str]) -> Vec<&'a str> {
    SUBMIT.iter().chain(more).copied().collect()
}

#[test]
fn facets_reach_reports_exports_and_comparisons_and_choose_samples() {
    let bench = Bench::new();
    let report = bench.run(submit(&["--preset", "full", "--run-id", "whole"])).json();
    // of the scorer of answers: the first ones count sessions
    let n = |report: &Value, value: &str| {
        let mut scores = report["scores"].as_array().expect("scores").iter();
        let of_answers = scores.find(|score| score["metric"] == "locomo-f1").expect("is there");
        of_answers["by_facet"]["abstention"][value]["n"].as_u64().unwrap_or(0)
    };
    let (yes, no) = (n(&report, "yes"), n(&report, "no"));
    // of nine questions one has criteria for an answer, which this scorer does not grade
    assert_eq!((yes, no), (3, 5), "{}", report["scores"][0]);
    let lines = bench.questions("whole");
    let of_lines = lines.iter().filter(|line| line["facets"]["abstention"] == "yes").count() as u64;
    assert_eq!(of_lines, yes, "the lines say the same");
    let printed = bench.run(["report", "whole", "--full"]).expect_code(0).stdout;
    assert!(printed.contains("Facets: ") && printed.contains("abstention"), "{printed}");
    let csv = bench.run(["export", "whole", "--format", "csv"]).expect_code(0).stdout;
    assert!(csv.lines().next().expect("a header").contains(",facet:abstention,"), "{csv}");

    let answerable = submit(&["--preset", "full", "--facet", "abstention=no", "--run-id", "answerable"]);
    let answerable = bench.run(answerable).json();
    let sample = &answerable["dataset"]["sample"];
    assert_eq!((&sample["n"], &sample["preset"], &sample["census"]), (&json!(6), &json!("custom"), &json!(true)));
    assert_eq!(sample["notes"][0], "only questions with abstention=no");
    let refused = bench.run(submit(&["--exclude-facet", "abstention=yse"])).expect_code(2).stderr;
    assert!(refused.contains("did you mean 'abstention=yes'"), "{refused}");

    // questions that two samples of one dataset share are weighted to the whole of its strata
    let some = bench.run(submit(&["--sample-total", "6", "--run-id", "some", "--top-k", "7"])).json();
    assert_eq!((&some["outcomes"]["sample"], &some["headline"]["estimator"]), (&json!(6), &json!("weighted")));
    let compared = bench.run(["compare", "whole", "some", "--json"]).json();
    assert_eq!((&compared["paired"]["n"], &compared["paired"]["estimator"]), (&json!(6), &json!("weighted")));
    let of_facet = compared["by_facet"]["abstention"].as_object().expect("both runs have it");
    assert_eq!(of_facet.values().map(|paired| paired["n"].as_u64().unwrap_or(0)).sum::<u64>(), 6, "{compared}");
}
