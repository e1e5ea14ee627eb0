//! What was not measured passes nothing: a memory of nothing, figures that a fork has from its baseline, graders that have nothing
//! to look at. And what a reader has to know of a dataset is in the report.

use bench_testkit::{bench::Bench, provider::Provider};
use serde_json::{Value, json};

const QUIETLY: [&str; 6] = ["--preset", "full", "--json", "--latency-probe", "off", "--display"];

/// A file of the bench's folder.
fn file(bench: &Bench, name: &str, text: &str) -> String {
    let path = bench.path().join(name);
    std::fs::write(&path, text).expect("writable");
    path.display().to_string()
}

fn check<'a>(report: &'a Value, rule: &str) -> &'a Value {
    let mut checks = report["run"]["checks"].as_array().expect("checks").iter();
    checks.find(|check| check["rule"] == rule).expect("is there")
}

#[test]
fn a_memory_of_nothing_is_invalid() {
    let bench = Bench::new();
    let suite = file(&bench, "n.yaml", "recall:\n- query: Which colour has it?\n  expected_contains: [red]\n");
    let submit = ["submit", "--dataset", &suite, "--floor", "0", "--run-id", "n"];
    let report = bench.run(submit.iter().chain(&QUIETLY).chain(&["none"])).expect_code(5).json();
    assert_eq!(check(&report, "empty_context")["state"], "failed", "{}", report["run"]);
}

#[test]
fn what_did_not_resolve_in_a_dataset_is_in_its_report() {
    let bench = Bench::new();
    let text = r#"{"memory": {"id": "m1", "text": "Ben lives in Oslo.", "date": "2026-13-45"}}
{"id": "q1", "question": "Where does Ben live?", "expected_substrings": ["Oslo"], "evidence": ["m1", "nope"]}
"#;
    let set = file(&bench, "mine.jsonl", text);
    let submit = ["submit", "--dataset", &set, "--preset", "full", "--latency-probe", "off", "--run-id", "noted"];
    let _ = bench.run(submit);
    let shown = bench.run(["report", "noted", "--full"]).stdout;
    let folder = bench.path().join(".bench/runs/noted");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("is written");
    assert!(shown.contains("Dataset note: "), "{shown}");
    for view in [&read("report.md"), &read("report.html"), &read("report.json")] {
        assert!(view.contains("2026-13-45") && view.contains("nope"), "{view}");
    }
    assert_eq!(bench.report("noted")["dataset"]["notes"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_fork_that_answers_has_the_scorers_of_its_dataset_and_copies_pass_no_gate() {
    let bench = Bench::new();
    let only = ["submit", "--dataset", "locomo-sim", "--scenario", "retrieve-only", "--preset", "quick", "--json"];
    let only = bench.run(only.iter().chain(&["--run-id", "only"])).expect_code(0).json();
    let fork =
        ["submit", "--fork", "only", "--from", "answer", "--scenario", "answer", "--run-id", "answered", "--json"];
    let answered = bench.run(fork).expect_code(0).json();
    assert_eq!(answered["headline"]["metric"], "locomo-f1");
    assert_eq!(check(&answered, "self_check")["state"], "passed", "{}", answered["run"]);
    let of = |report: &Value| {
        let mut scores = report["scores"].as_array().expect("scores").iter();
        scores.find(|score| score["metric"] == "session-recall@10").expect("is there")["micro"].clone()
    };
    assert_eq!(of(&answered), of(&only));

    let compared = ["compare", "only", "answered", "--json"];
    let compared = bench.run(compared).expect_code(0).json();
    assert_eq!((&compared["copied"], &compared["metric"]), (&json!(true), &json!("session-recall@10")));
    let gated = bench.run(["gate", "answered", "--baseline", "only", "--json"]).expect_code(6).json();
    assert!(gated["checks"].as_array().expect("checks").iter().any(|check| check["rule"] == "measured"), "{gated}");
    let refused = bench.run(["rejudge", "only", "--judge", "openai:gpt-4o-mini", "--dry-run"]).expect_code(2).stderr;
    assert!(refused.contains("has no answers") && refused.contains("--scenario answer"), "{refused}");
    let refused = bench.run(["submit", "--dataset", "locomo-sim", "--votes", "3", "--dry-run"]).expect_code(2).stderr;
    assert!(refused.contains("add --judge"), "{refused}");
}

#[test]
fn scoring_again_needs_no_key_and_status_says_what_the_report_says() {
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let first = bench.run(provider.submit(&["--run-id", "first"])).expect_code(0).json();
    let status = bench.run(["status", "first", "--json"]).expect_code(0).json();
    let status = if status.is_array() { status[0].clone() } else { status };
    assert_eq!(status["progress"]["score"], first["headline"]["value"], "{status}");
    let watched = bench.run(["watch", "first", "--display", "json-lines"]).expect_code(0).stderr;
    let shown = watched.lines().find(|line| line.starts_with('{')).expect("a look");
    let shown: serde_json::Value = serde_json::from_str(shown).expect("JSON");
    assert_eq!((&shown["score"], &shown["per_second"]), (&first["headline"]["value"], &json!(0.0)), "{shown}");

    let bench = bench.with_env("OPENAI_API_KEY", "").with_env("OPENAI_BASE_URL", "https://models.invalid/v1");
    let rescored = ["rescore", "first", "--scorer", "locomo-f1", "--run-id", "again", "--json"];
    let _ = bench.run(rescored).expect_code(0);
    let _ = bench.run(["submit", "--fork", "first", "--from", "answer", "--run-id", "never"]).expect_code(2);
    let listed = bench.run(["list", "--json"]).expect_code(0).json();
    let mut ids: Vec<&str> = listed.as_array().expect("runs").iter().filter_map(|run| run["id"].as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["again", "first"], "what is refused leaves no run behind");
}

#[test]
fn files_are_not_written_over_and_paths_that_are_not_there_are_said() {
    let bench = Bench::new();
    let mine = file(&bench, "mine.jsonl", "my own\n");
    let small = ["--set", "sim.conversations=1"];
    let generate = ["datasets", "generate", "locomo-sim", "--output", &mine, small[0], small[1]];
    let refused = bench.run(generate).expect_code(2).stderr;
    assert!(refused.contains("--force"), "{refused}");
    assert_eq!(std::fs::read_to_string(&mine).expect("is there"), "my own\n");
    let _ = bench.run(generate.iter().chain(&["--force"])).expect_code(0);
    let absent = bench.path().join("absent.json").display().to_string();
    let _ = bench.run(["datasets", "show", "locomo", "--dataset-path", &absent]).expect_code(2);
}
