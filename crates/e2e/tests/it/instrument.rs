//! A verdict looks at the instrument (P45): judges, controls, and the memory system's own conduct.

use bench_testkit::{bench::Bench, provider::Provider};
use serde_json::{Value, json};

/// Extractive answers of LoCoMo's shape, graded by the provider.
fn judged<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let fixed = ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--judge", "openai:gpt-4o-mini", "--json"];
    fixed.iter().chain(more).copied().collect()
}

fn check<'a>(report: &'a Value, rule: &str) -> (&'a str, &'a str) {
    let all = report["run"]["checks"].as_array().expect("checks");
    let found = all.iter().find(|check| check["rule"] == rule).unwrap_or_else(|| panic!("no rule {rule}: {report}"));
    (found["state"].as_str().expect("a state"), found["detail"].as_str().expect("a detail"))
}

/// The one reason of an invalid run, which is one line.
fn reason(report: &Value) -> &str {
    assert_eq!(report["run"]["verdict"], "INVALID", "{}", report["run"]);
    let reasons = report["run"]["reasons"].as_array().expect("reasons");
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    let reason = reasons[0].as_str().expect("a line");
    assert!(!reason.contains('\n') && reason.len() < 250, "{reason}");
    reason
}

#[test]
fn p45_a_judge_by_lot_is_invalid_with_the_reason_in_one_line_and_a_proper_one_is_not() {
    let coin = Provider::start(&["--judge-accept", "0.5"]);
    let bench = coin.bench();
    // one vote and no controls: nothing to hold it against, and the report says so
    let alone = bench.run(judged(&["--run-id", "alone"])).expect_code(0).json();
    assert!(check(&alone, "instrument").1.starts_with("controls were not run"), "{}", alone["run"]);
    let printed = bench.run(["report", "alone"]).expect_code(0).stdout;
    assert!(printed.contains("Controls: not run"), "{printed}");
    let report = bench.run(judged(&["--run-id", "controls", "--controls"])).expect_code(5).json();
    assert!(reason(&report).starts_with("the score does not depend on memory: oracle "), "{}", report["run"]);
    // votes of one model on one prompt are one lot, those of two models are two
    let second = ["--run-id", "two", "--judge", "openai:gpt-4o"];
    let report = bench.run(judged(&second)).expect_code(5).json();
    assert!(
        reason(&report).starts_with("the judges agree no better than chance: judge / judge-2"),
        "{}",
        report["run"]
    );
    let printed = bench.run(["report", "two"]).expect_code(0).stdout;
    assert!(printed.contains("INVALID\n  the judges agree no better than chance"), "{printed}");

    let proper = Provider::start(&["--judge", "reference"]);
    let both = judged(&["--controls", "--judge", "openai:gpt-4o"]);
    let report = proper.bench().run(both).expect_code(0).json();
    assert_eq!((&report["run"]["verdict"], &report["run"]["reasons"]), (&json!("VALID"), &json!([])));
    assert_eq!(check(&report, "instrument").0, "passed");
    assert_eq!(report["judge_agreement"][0]["kappa"], 1.0, "{}", report["judge_agreement"]);
}

/// A run over a memory system of ours, with something changed in it.
fn with_memory(changes: &[(&str, &str)]) -> Value {
    let mut program = include_str!("../../../../docs/examples/memory.py").to_owned();
    for (from, to) in changes {
        assert!(program.contains(from), "{from} is not in the example");
        program = program.replace(from, to);
    }
    let bench = Bench::new();
    std::fs::write(bench.path().join("memory.py"), program).expect("is written");
    let path = bench.path().join("memory.py");
    let adapter = format!("name: mine\ncommand: [python3, '{}']\n", path.display());
    std::fs::write(bench.path().join("mine.yaml"), adapter).expect("is written");
    let submit = ["submit", "--dataset", "locomo-sim", "--max-banks", "5", "--sample", "10", "--exclude-category"];
    let more = ["adversarial", "--system", "./mine.yaml", "--run-id", "r", "--json"];
    let done = bench.run(submit.iter().chain(&more));
    let mut report = done.json();
    let invalid = report["run"]["verdict"] == "INVALID";
    assert_eq!(done.code, if invalid { 5 } else { 0 }, "{}", done.stderr);
    report["first"] = bench.questions("r")[0].clone();
    report
}

#[test]
fn p45_canaries_find_banks_that_leak_systems_that_lose_and_a_clipped_k() {
    let healthy = with_memory(&[]);
    for rule in ["banks_apart", "nothing_lost", "k_served"] {
        assert_eq!(check(&healthy, rule).0, "passed", "{}", healthy["run"]["checks"]);
    }
    assert_eq!((&healthy["canaries"]["banks"], &healthy["canaries"]["others_asked"]), (&json!(5), &json!(5)));
    assert!(healthy["top1_score"].as_f64().is_some_and(|score| score >= 1.0), "{}", healthy["top1_score"]);
    let hit = &healthy["first"]["retrieved"][0];
    assert_eq!((&hit["placed_by"], &hit["level"]), (&json!("id"), &json!("turn")), "{hit}");

    let all = "in banks.get(bank, []) if";
    let leaking = with_memory(&[(all, "in sum(banks.values(), []) if")]);
    assert!(reason(&leaking).starts_with("banks leak into each other: "), "{}", leaking["run"]);
    let first = "in banks.get(bank, [])[: len(banks.get(bank, [])) // 5] if";
    let losing = with_memory(&[(all, first)]);
    assert!(reason(&losing).starts_with("the system loses what it was given: "), "{}", losing["run"]);
    let clipping = with_memory(&[("[: r[\"k\"]]", "[:3]")]);
    assert!(reason(&clipping).starts_with("k is clipped: "), "{}", clipping["run"]);
}

#[test]
fn p45_turn_metrics_of_hits_without_a_turn_are_null_and_hits_placed_by_text_are_marked() {
    let hits = "{\"id\": i[\"id\"], \"text\": i[\"content\"], ";
    let by_text = with_memory(&[(hits, "{\"text\": i[\"content\"], ")]);
    assert!(by_text["retrieval"]["turn"]["10"]["recall"].as_f64() > Some(0.0), "{}", by_text["retrieval"]);
    let hit = &by_text["first"]["retrieved"][0];
    assert_eq!((&hit["placed_by"], &hit["level"]), (&json!("text"), &json!("turn")), "{hit}");

    let rewritten = "{\"session_id\": i[\"session_id\"], \"text\": \"It was said that \" + i[\"text\"], ";
    let by_session = with_memory(&[(hits, rewritten)]);
    let (turn, session) = (&by_session["retrieval"]["turn"]["10"], &by_session["retrieval"]["session"]["10"]);
    assert_eq!((&turn["recall"], &turn["mrr"], &turn["n"]), (&Value::Null, &Value::Null, &json!(0)));
    assert!(session["recall"].as_f64() > Some(0.0), "{session}");
    let hit = &by_session["first"]["retrieved"][0];
    assert_eq!((&hit["placed_by"], &hit["level"]), (&json!("id"), &json!("session")), "{hit}");
    let (lost, of_session) = (&by_session["failure_attribution"], session["recall_any"].as_f64().expect("a share"));
    let missing = lost["evidence_missing"].as_u64().expect("a number") as f64;
    let asked = session["n"].as_f64().expect("a number");
    assert!(missing <= (1.0 - of_session) * asked + 1e-9, "lost by sessions, not by turns: {lost} with {session}");
}
