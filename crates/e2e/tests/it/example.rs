//! The dataset of CONTRIBUTING.md's worked example, which nothing but its file and its line in the registry knows.

use bench_testkit::{bench::Bench, provider::Provider};
use serde_json::{Value, json};

const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/testdata/example");
const SUBMIT: [&str; 8] =
    ["submit", "--dataset", "example", "--dataset-path", FILES, "--json", "--latency-probe", "off"];

fn submit<'a>(more: &[&'a str]) -> Vec<&'a str> {
    SUBMIT.iter().chain(more).copied().collect()
}

/// Categories of the report with their numbers of questions.
fn categories(report: &Value) -> Vec<(&str, u64)> {
    let all = report["scores"][0]["by_category"].as_array().expect("categories");
    all.iter().map(|c| (c["category"].as_str().expect("a name"), c["n"].as_u64().expect("a number"))).collect()
}

#[test]
fn a_dataset_is_one_file_with_its_own_categories_totals_and_sample_sizes() {
    let bench = Bench::new();
    let report = bench.run(submit(&["--preset", "full", "--run-id", "first"])).expect_code(0).json();
    assert_eq!(categories(&report), [("fact", 6), ("trap", 3), ("when", 3)]);
    let headline = &report["headline"];
    assert_eq!((&headline["metric"], &headline["n"]), (&json!("exact"), &json!(9)));
    assert_eq!(headline["without"], json!(["trap"]));
    assert_eq!(report["totals"][0]["n"], 12, "all categories: {}", report["totals"]);
    assert_eq!((&report["without_adversarial"], &report["scores"][0]["n"]), (&json!(null), &json!(9)));
    let printed = bench.run(["report", "first", "--full"]).expect_code(0).stdout;
    assert!(printed.contains("without trap (9)") && printed.contains("all categories (12)"), "{printed}");
    assert!(printed.contains("whether they count trap questions"), "{printed}");

    let quick = bench.run(submit(&["--preset", "quick"])).expect_code(0).json();
    assert_eq!(quick["outcomes"]["sample"], 5, "as the profile says");

    let again = bench.run(submit(&["--preset", "full", "--run-id", "second", "--top-k", "5"])).expect_code(0).json();
    assert_ne!(again["run"]["fingerprint"], report["run"]["fingerprint"]);
    let compared = bench.run(["compare", "first", "second", "--json"]).json();
    assert_eq!(compared["paired"]["n"], 9, "the same part as the headline: {compared}");
    // nine questions that are equal leave a third of others open
    let gated = bench.run(["gate", "first", "--baseline", "first", "--json"]).expect_code(6).json();
    assert_eq!(gated["verdict"], "INCONCLUSIVE");
}

#[test]
fn its_own_rubric_and_answer_style_reach_the_models_and_the_report() {
    let provider = Provider::start(&["--judge", "reference"]);
    let bench = provider.bench();
    let models = ["--preset", "full", "--run-id", "r", "--answerer", "openai:gpt-4o-mini", "--judge", "openai:gpt-4o"];
    let report = bench.run(submit(&models)).expect_code(0).json();
    let prompts: Vec<&String> = report["spec"]["prompts"].as_object().expect("prompts").keys().collect();
    let of_judge = ["judge.judge-abstain", "judge.judge-fact", "judge.judge-temporal"];
    let of_answerer = ["answerer.answer", "answerer.answer-choice", "answerer.answer-empty"];
    assert_eq!(prompts, of_answerer.iter().chain(&of_judge).collect::<Vec<_>>(), "those in use and no others");
    let text = |name: &str| report["spec"]["prompt_texts"][name]["system"].as_str().expect("a text").to_owned();
    assert!(text("judge.judge-fact").contains("must name the thing that the reference names"));
    assert!(text("answerer.answer").contains("- Give one word or one date, as it was said."));
    assert_eq!((&report["headline"]["metric"], &report["headline"]["n"]), (&json!("judge"), &json!(9)));
    let of_question = |line: &Value| line["prompts"].as_array().expect("a list").last().cloned();
    let used: Vec<_> = bench.questions("r").iter().filter_map(of_question).collect();
    assert!(of_judge.iter().all(|name| used.contains(&json!(name))), "{used:?}");
    assert_eq!(bench.run(["gate", "r", "--baseline", "r", "--json"]).expect_code(6).json()["verdict"], "INCONCLUSIVE");
}
