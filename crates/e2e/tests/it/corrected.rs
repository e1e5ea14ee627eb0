//! `report --corrected`: the score without the errors of its judge, from graded answers of the run or a range from planted ones.

use std::fmt::Write as _;

use bench_testkit::{bench::Bench, provider::Provider};
use serde_json::{Value, json};

/// A run of locomo-sim that a judge has graded.
fn judged(bench: &Bench, run: &str, more: &[&str]) -> Value {
    let args = ["submit", "--dataset", "locomo-sim", "--judge", "openai:gpt-4o-mini", "--run-id", run, "--json"];
    bench.run(args.iter().chain(&["--display", "none"]).chain(more)).expect_code(0).json()
}

/// What the judge made of each question of a run: (id, category, grade).
fn grades(bench: &Bench, run: &str) -> Vec<(String, String, f64)> {
    let lines = bench.run(["export", run, "--format", "jsonl"]).expect_code(0).stdout;
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("a line of JSON");
        let text = |name: &str| line[name].as_str().expect("a text").to_owned();
        (text("question_id"), text("category"), line["scores"]["judge"].as_f64().expect("a grade"))
    };
    lines.lines().map(line).collect()
}

/// A file of grades by somebody who finds every `wrong`-th accepted answer wrong and agrees with the judge on all others.
fn graded_by_hand(bench: &Bench, run: &str, wrong: usize) -> (String, [u64; 3]) {
    let (mut text, mut accepted, mut counts) = (String::new(), 0, [0; 3]);
    for (id, _, grade) in grades(bench, run) {
        accepted += usize::from(grade == 1.0);
        let right = grade == 1.0 && !accepted.is_multiple_of(wrong);
        counts[if right { 0 } else { 1 + usize::from(grade == 1.0) }] += 1;
        writeln!(text, "{}", json!({"question_id": id, "correct": right})).expect("is text");
    }
    let file = bench.path().join("grades.jsonl");
    std::fs::write(&file, text).expect("is written");
    (file.display().to_string(), counts)
}

#[test]
fn graded_answers_of_the_run_give_a_value_beside_the_score() {
    let provider = Provider::start(&["--judge", "reference"]);
    let bench = provider.bench();
    let run = judged(&bench, "mine", &["--preset", "full"]);
    let (file, [right, rejected, accepted]) = graded_by_hand(&bench, "mine", 4);
    assert!(right > 20 && rejected > 20 && accepted > 5, "{right} {rejected} {accepted}");
    let paid = provider.count("requests");
    let audit = ["judge-audit", "--of", "mine", "--grades", &file, "--name", "by-hand", "--json", "--display", "none"];
    let audit = bench.run(audit).expect_code(0).json();
    assert_eq!(audit["labels"][0], "judge audit: graded answers of a run");
    assert_eq!(
        (audit["judge_audit"]["planted"]["answers_of"].as_str(), provider.count("requests")),
        (Some("mine"), paid)
    );
    let audited = "by-hand";
    let report = bench.run(["report", "mine", "--corrected", audited, "--json"]).expect_code(0).json();
    let corrected = &report["corrected"];
    // everything else is what it was
    let mut without = report.clone();
    without.as_object_mut().expect("an object").remove("corrected");
    assert_eq!(without, bench.run(["report", "mine", "--json"]).expect_code(0).json());
    assert_eq!(corrected["raw"], run["headline"]["value"]);
    assert_eq!((corrected["own_answers"].as_bool(), corrected["metric"].as_str()), (Some(true), Some("judge")));
    let number = |of: &Value| of.as_f64().unwrap_or_else(|| panic!("no number in {corrected}"));
    let by = &corrected["by_kind"][0];
    let specificity = rejected as f64 / (rejected + accepted) as f64;
    assert!((number(&by["sensitivity"]["value"]) - 1.0).abs() < 1e-12);
    assert!((number(&by["specificity"]["value"]) - specificity).abs() < 1e-12, "{by}");
    // all were graded: the share of right answers itself
    let truth = right as f64 / (right + rejected + accepted) as f64;
    assert!((number(&corrected["value"]) - truth).abs() < 1e-9, "{truth}: {corrected}");
    let ci = |of: &Value| (number(&of["low"]), number(&of["high"]));
    let ((low, high), (raw_low, raw_high)) = (ci(&corrected["ci95"]), ci(&run["headline"]["ci95"]));
    assert!(low < truth && truth < high && high - low > raw_high - raw_low, "{corrected}");
    assert!(corrected["by_category"].as_array().is_some_and(|all| all.len() > 2), "{corrected}");
    for (format, words) in
        [("terminal", "Corrected for the judge"), ("md", "## Corrected for"), ("html", "Corrected for")]
    {
        let told = bench.run(["report", "mine", "--corrected", audited, "--format", format]).expect_code(0).stdout;
        assert!(told.contains(words), "{format}: {told}");
    }
    // a second judge of the same answers is paid for, and is another judge
    let other = ["judge-audit", "--of", "mine", "--grades", &file, "--judge", "openai:gpt-4o", "--run-id", "other"];
    let _ = bench.run(other.iter().chain(&["--display", "none"])).expect_code(0);
    assert!(provider.count("requests") > paid);
    let refused = bench.run(["report", "mine", "--corrected", "other"]).expect_code(2).stderr;
    assert!(refused.contains("judges.0.model is \"openai:gpt-4o-mini\" in the run"), "{refused}");
}

#[test]
fn planted_answers_give_a_range_and_a_judge_by_lot_nothing() {
    let provider = Provider::start(&["--judge", "reference"]);
    let bench = provider.bench();
    let _ = judged(&bench, "mine", &["--preset", "quick"]);
    let planted = ["judge-audit", "--dataset", "locomo-sim", "--judge", "openai:gpt-4o-mini", "--run-id", "planted"];
    let _ = bench.run(planted.iter().chain(&["--display", "none"])).expect_code(0);
    let report = bench.run(["report", "mine", "--corrected", "planted", "--json"]).expect_code(0).json();
    let corrected = &report["corrected"];
    assert!(corrected["value"].is_null() && corrected["ci95"].is_null(), "{corrected}");
    let bound = |of: &str| corrected["range"][of].as_f64().unwrap_or_else(|| panic!("no {of} in {corrected}"));
    assert!(bound("low") <= bound("high") && corrected["by_kind"].as_array().is_some_and(|all| all.len() == 4));
    // by other words, on other data, or of no judge at all: refused
    let refused = |args: &[&str], words: &str| {
        let refused = bench.run(args).expect_code(2).stderr;
        assert!(refused.contains(words), "{args:?}: {refused}");
    };
    let rubric = ["rejudge", "mine", "--judge", "openai:gpt-4o-mini", "--rubric", "judge-graded", "--run-id", "graded"];
    let _ = bench.run(rubric.iter().chain(&["--display", "none"])).expect_code(0);
    refused(&["report", "graded", "--corrected", "planted"], "judging.rubric");
    let votes = ["rejudge", "mine", "--judge", "openai:gpt-4o-mini", "--votes", "3", "--run-id", "votes"];
    let _ = bench.run(votes.iter().chain(&["--display", "none"])).expect_code(0);
    refused(&["report", "votes", "--corrected", "planted"], "votes is 3 in the run and 1 in the audit");
    refused(&["report", "mine", "--corrected", "votes"], "it is no judge audit; `bench-coord judge-audit --of mine");
    refused(&["report", "planted", "--corrected", "planted"], "is a judge audit itself");
    let plain = ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--run-id", "plain", "--display", "none"];
    let _ = bench.run(plain).expect_code(0);
    refused(&["report", "plain", "--corrected", "planted"], "which no judge gives");
    let _ = judged(&bench, "else", &["--preset", "quick", "--set", "sim.seed=9"]);
    refused(&["report", "else", "--corrected", "planted"], "dataset.s");

    let by_lot = Provider::start(&["--judge-accept", "0.5"]);
    let bench = by_lot.bench();
    let _ = judged(&bench, "lot", &["--preset", "full"]);
    let file = bench.path().join("grades.json");
    let known: Vec<Value> = grades(&bench, "lot")
        .into_iter()
        .enumerate()
        .map(|(i, (id, ..))| json!({"question_id": id, "correct": u8::from(i % 2 == 0)}))
        .collect();
    std::fs::write(&file, serde_json::to_string(&known).expect("is JSON")).expect("is written");
    let file = file.display().to_string();
    let audit = bench.run(["judge-audit", "--of", "lot", "--grades", &file, "--json"]).expect_code(0).json();
    let id = audit["run"]["id"].as_str().expect("an id");
    let report = bench.run(["report", "lot", "--corrected", id, "--json"]).expect_code(0).json();
    assert!(report["corrected"]["value"].is_null() && report["corrected"]["raw"].is_number());
    assert!(
        report["corrected"]["note"].as_str().is_some_and(|note| note.contains("add up to")),
        "{}",
        report["corrected"]
    );
}

#[test]
fn answers_that_were_drawn_again_are_others() {
    let provider = Provider::start(&["--judge", "reference"]);
    let bench = provider.bench();
    let _ = judged(&bench, "mine", &["--preset", "quick", "--answerer", "openai:gpt-4o-mini"]);
    let (file, _) = graded_by_hand(&bench, "mine", 4);
    let _ = bench.run(["judge-audit", "--of", "mine", "--grades", &file, "--name", "by-hand"]).expect_code(0);
    let _ = bench.run(["retry", "mine", "--wrong", "--run-id", "again", "--display", "none"]);
    let refused = bench.run(["report", "again", "--corrected", "by-hand"]).expect_code(2).stderr;
    assert!(refused.contains("made them in another way: answered_again is 1"), "{refused}");
    // what has no judge to cast votes, and no file whose grades could be reduced
    for (flag, words) in [(["--votes", "3"], "--judge"), (["--reduce", "majority"], "cannot be used with")] {
        let refused = bench.run(["judge-audit", "--of", "mine", "--grades", &file].iter().chain(&flag)).expect_code(2);
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    }
}

#[test]
fn a_file_of_grades_that_does_not_fit_the_run_is_refused_with_the_place() {
    let provider = Provider::start(&["--judge", "reference"]);
    let bench = provider.bench();
    let _ = judged(&bench, "mine", &["--preset", "quick"]);
    let id = grades(&bench, "mine")[0].0.clone();
    let file = bench.path().join("grades.jsonl").display().to_string();
    let refused = |text: &str, words: &str| {
        std::fs::write(&file, text).expect("is written");
        let refused = bench.run(["judge-audit", "--of", "mine", "--grades", &file]).expect_code(2).stderr;
        assert!(refused.contains(words), "{text}: {refused}");
    };
    refused("", "no grades in it");
    refused(
        "{\"question_id\": \"nowhere:1\", \"correct\": true}",
        "record 1: question id 'nowhere:1' is none of run mine",
    );
    refused(&format!("{}\n{{\"question_id\": 3}}", json!({"question_id": id, "correct": true})), "line 2");
    refused(&json!({"question_id": id, "correct": 0.5}).to_string(), "true or false, or 1 or 0");
    let twice = json!({"question_id": id, "correct": true}).to_string();
    refused(&format!("{twice}\n{twice}"), "is graded twice");
    std::fs::write(&file, twice).expect("is written");
    let usage = |args: &[&str], words: &str| {
        let refused = bench.run(args).expect_code(2).stderr;
        assert!(refused.contains(words), "{args:?}: {refused}");
    };
    usage(&["judge-audit", "--of", "mine"], "--grades");
    usage(&["judge-audit", "--grades", &file], "--of");
    usage(&["judge-audit", "--of", "nobody", "--grades", &file], "nobody");
    usage(&["judge-audit", "--of", "mine", "--grades", &file, "--preset", "full"], "--preset");
    usage(&["judge-audit", "--of", "mine", "--grades", "/nowhere.jsonl"], "/nowhere.jsonl");
    usage(&["judge-audit", "--of", "mine", "--grades", &file, "--dry-run"], "without a judge nothing is called");
}
