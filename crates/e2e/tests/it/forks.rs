//! Runs made from what other runs paid for: judged again, scored again, answered again.

use bench_testkit::{bench::Bench, provider::Provider};
use serde_json::{Value, json};

/// Calls that the provider has answered.
fn calls(provider: &Provider) -> u64 {
    provider.count("requests")
}

#[test]
fn judging_again_calls_the_judge_alone() {
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let first = bench.run(provider.submit(&["--run-id", "first"])).expect_code(0).json();
    assert_eq!(calls(&provider), 100, "fifty answers and fifty judgements");
    // the same judge again: the lineage has paid for its judgements too
    let again = ["rejudge", "first", "--judge", "openai:gpt-4o-mini", "--run-id", "again", "--json"];
    let again = bench.run(again).expect_code(0).json();
    assert_eq!(calls(&provider), 100, "nothing was paid twice");
    assert_eq!(again["result_digest"], first["result_digest"]);
    assert_eq!(
        (&again["usage"]["answer"]["calls"], &again["usage"]["answer"]["cached_calls"]),
        (&json!(0), &json!(50))
    );
    assert_eq!(again["total"]["usd"], 0.0);
    assert_eq!(again["retrieval"], first["retrieval"]);
    // another judge with three votes
    let voted = ["rejudge", "first", "--judge", "openai:gpt-4o", "--votes", "3", "--run-id", "voted", "--json"];
    let voted = bench.run(voted).expect_code(0).json();
    assert_eq!(calls(&provider), 250);
    assert_eq!((&voted["spec"]["judge"], &voted["spec"]["votes"]), (&json!("openai:gpt-4o"), &json!(3)));
    let agreement = &voted["judge_agreement"][0];
    assert_eq!(
        (&agreement["statistic"], &agreement["raters"], &agreement["n"]),
        (&json!("Fleiss"), &json!(3), &json!(50))
    );
    assert!(voted["failure_attribution"]["judge_in_doubt"].as_u64() > Some(0), "split votes leave doubts");
    // graders differ: comparing is allowed when that is what is under test
    let _ = bench.run(["compare", "first", "voted"]).expect_code(5);
    let compared = bench.run(["compare", "first", "voted", "--under-test", "grading", "--json"]).json();
    assert_eq!((&compared["comparable"], &compared["independent"]), (&json!(true), &json!(false)));
}

#[test]
fn two_judges_grade_the_same_answers_and_their_agreement_is_told() {
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let _ = bench.run(provider.submit(&["--run-id", "first"])).expect_code(0);
    let args = ["rejudge", "first", "--judge", "openai:gpt-4o-mini", "--judge", "openai:gpt-4o", "--json"];
    let both = bench.run(args).expect_code(0).json();
    let metrics: Vec<&str> =
        both["scores"].as_array().expect("scores").iter().filter_map(|score| score["metric"].as_str()).collect();
    assert_eq!(metrics[..2], ["judge", "judge-2"]);
    assert_eq!(both["judge_agreement"][0]["between"], "judge / judge-2");
    assert_eq!(both["judge_agreement"][0]["n"], 50);
}

#[test]
fn scoring_again_makes_no_call() {
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let first = bench.run(provider.submit(&["--run-id", "first"])).expect_code(0).json();
    let before = calls(&provider);
    let again =
        bench.run(["rescore", "first", "--scorer", "exact", "--run-id", "exact", "--json"]).expect_code(0).json();
    assert_eq!(calls(&provider), before);
    assert_eq!(again["headline"]["metric"], "exact");
    let of = |report: &Value, metric: &str| {
        report["scores"].as_array().expect("scores").iter().find(|s| s["metric"] == metric).map(|s| s["micro"].clone())
    };
    assert_eq!(of(&again, "locomo-f1"), of(&first, "locomo-f1"), "the dataset's scorer says the same again");
    let answers = |run: &str| -> Vec<Value> { bench.questions(run).iter().map(|q| q["answer"].clone()).collect() };
    assert_eq!(answers("first"), answers("exact"));
}

#[test]
fn a_fork_answers_again_from_the_recalls_it_took_over() {
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let first = bench.run(provider.submit(&["--run-id", "first"])).expect_code(0).json();
    let fork = ["submit", "--fork", "first", "--json"];
    let args = ["--from", "answer", "--answerer", "openai:gpt-4o", "--run-id", "other"];
    let other = bench.run(fork.iter().chain(&args)).expect_code(0).json();
    assert_eq!(calls(&provider), 200, "fifty answers and fifty judgements more");
    assert_eq!((&other["retrieval"], &other["spec"]["answerer"]), (&first["retrieval"], &json!("openai:gpt-4o")));
    let args = ["--from", "recall", "--top-k", "5", "--answerer", "extractive", "--run-id", "five"];
    let five = bench.run(fork.iter().chain(&args)).expect_code(0).json();
    assert_eq!(five["spec"]["top_k"], 5);
    assert!(five["latency_ms"]["retain"].is_null(), "nothing was retained");
    let refused = bench.run(fork.iter().chain(&["--from", "judge", "--top-k", "5"])).expect_code(2);
    assert!(refused.stderr.contains("--top-k"), "{}", refused.stderr);
    let _ = bench.run(["submit", "--fork", "nobody", "--from", "judge"]).expect_code(2);
}

#[test]
fn forks_are_estimated_and_dear_ones_are_not_started_unasked() {
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let _ = bench.run(provider.submit(&["--run-id", "first"])).expect_code(0);
    let before = calls(&provider);
    let phases = |from: &str| -> Vec<(String, u64)> {
        let args = ["submit", "--fork", "first", "--from", from, "--answerer", "openai:gpt-4o", "--dry-run", "--json"];
        let args: Vec<&str> = args.into_iter().filter(|arg| from != "judge" || !arg.contains("answerer")).collect();
        let args: Vec<&str> = args.into_iter().filter(|arg| from != "judge" || !arg.contains("gpt-4o")).collect();
        let estimate = bench.run(args).expect_code(0).json();
        let phases = estimate["phases"].as_array().expect("phases");
        phases
            .iter()
            .map(|p| (p["phase"].as_str().expect("a name").to_owned(), p["calls"].as_u64().expect("a count")))
            .collect()
    };
    assert_eq!(phases("judge"), [("judge".to_owned(), 50)]);
    assert_eq!(phases("answer"), [("answer".to_owned(), 50), ("judge".to_owned(), 50)]);
    assert_eq!(phases("recall"), [("answer".to_owned(), 50), ("judge".to_owned(), 50)]);
    let dear = ["rejudge", "first", "--judge", "openai:dear", "--price", "3000,3000", "--display", "none"];
    let refused = bench.run(dear).expect_code(2);
    assert!(refused.stderr.contains("--max-cost"), "{}", refused.stderr);
    let dry = bench.run(dear.iter().chain(&["--dry-run", "--json"])).expect_code(0).json();
    assert!(dry["usd"]["expected"].as_f64() > Some(20.0), "{dry}");
    assert_eq!(calls(&provider), before, "nothing was asked for any of this");
    let _ = bench.run(dear.iter().chain(&["--max-cost", "1000"])).expect_code(0);
    assert_eq!(calls(&provider), before + 50);
}

#[test]
fn imported_answers_can_be_judged() {
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let _ = bench.run(provider.submit(&["--run-id", "first"])).expect_code(0);
    let lines: String = bench
        .questions("first")
        .iter()
        .map(|q| format!("{}\n", json!({"question_id": q["question_id"], "answer": q["answer"], "score": 1})))
        .collect();
    std::fs::write(bench.path().join("answers.jsonl"), lines).expect("writable");
    let import = ["import", "--dataset", "locomo-sim", "--answers", "answers.jsonl", "--subset", "--system", "theirs"];
    let _ = bench.run(import.iter().chain(&["--run-id", "theirs"])).expect_code(0);
    let before = calls(&provider);
    let args = ["rejudge", "theirs", "--judge", "openai:gpt-4o-mini", "--run-id", "judged", "--json"];
    let judged = bench.run(args).expect_code(0).json();
    assert_eq!(calls(&provider), before + 50);
    assert_eq!((&judged["headline"]["metric"], &judged["spec"]["system"]), (&json!("judge"), &json!("theirs")));
    let own = bench.report("first");
    assert_eq!(judged["scores"][0]["micro"], own["scores"][0]["micro"], "the same answers and the same judge");
}

#[test]
fn judgements_that_cannot_be_read_are_errors_and_no_grades() {
    let first = Provider::start(&[]);
    let bench = first.bench();
    let _ = bench.run(first.submit(&["--run-id", "first"])).expect_code(0);
    let broken = Provider::start(&["--fault-malformed-judge", "1", "--permanent-faults"]);
    let args = ["rejudge", "first", "--judge", "openai:gpt-4o", "--retries", "1", "--json"];
    let judged = bench_testkit::bench::wait(
        bench.command(args).env("OPENAI_BASE_URL", broken.base_url()).spawn().expect("starts"),
    );
    let judged = judged.expect_code(5).json();
    assert_eq!((&judged["outcomes"]["infra_error"], &judged["headline"]["value"]), (&json!(50), &Value::Null));
}

#[test]
fn only_finished_runs_are_forked() {
    let bench = Bench::new();
    let refused = bench.run(["submit", "--fork", "latest", "--from", "judge"]).expect_code(2);
    assert!(refused.stderr.contains("no run"), "{}", refused.stderr);
    let usage = bench.run(["submit", "--fork", "latest"]).expect_code(2);
    assert!(usage.stderr.contains("--from"), "{}", usage.stderr);
}
