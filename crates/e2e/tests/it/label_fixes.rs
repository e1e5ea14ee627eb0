//! Known mistakes of the answer key of the real LoCoMo, beside the published key.

use bench_e2e::faults::locomo;
use bench_testkit::{
    bench::{Bench, signal, wait},
    provider::Provider,
};
use serde_json::{Value, json};

/// Ceilings of the categories, in percent.
fn ceilings(report: &Value) -> Vec<(String, String)> {
    let by_category = report["answer_key"]["by_category"].as_array().expect("categories");
    let ceiling = |of: &Value| {
        let percent = of["ceiling"].as_f64().expect("a share") * 100.0;
        (of["category"].as_str().expect("a name").to_owned(), format!("{percent:.2}"))
    };
    by_category.iter().map(ceiling).collect()
}

#[test]
fn both_keys_stand_beside_each_other_whenever_they_are_asked_for() {
    let Some(data) = locomo() else { return };
    let bench = Bench::new().with_env("BENCH_DATASETS_DIR", data.display().to_string());
    let submit = ["submit", "--dataset", "locomo", "--preset", "full", "--json", "--run-id", "with"];
    let with = bench.run(submit.iter().chain(&["--label-fixes", "locomo-audit"])).expect_code(0).json();
    let key = &with["answer_key"];
    assert_eq!((&key["source"], &key["n"], &key["wrong"]), (&json!("locomo-audit"), &json!(1540), &json!(99)));
    let expected = [("multi-hop", "90.07"), ("open-domain", "90.62"), ("single-hop", "95.72"), ("temporal", "91.90")];
    assert_eq!(ceilings(&with), expected.map(|(name, ceiling)| (name.to_owned(), ceiling.to_owned())));
    assert_eq!(format!("{:.2}", key["ceiling"].as_f64().expect("a share") * 100.0), "93.57");
    assert!(key["corrected"].is_number() && key["corrected"] != key["published"], "{key}");
    assert_eq!(with["scores"].as_array().expect("scores").len(), 1, "a score of 99 questions heads no table");

    // the same figures of a run that was made without
    let plain = ["submit", "--dataset", "locomo", "--preset", "full", "--json", "--run-id", "plain"];
    let plain = bench.run(plain).expect_code(0).json();
    assert!(plain["answer_key"].is_null() && plain["headline"]["value"] == with["headline"]["value"]);
    let report = ["report", "plain", "--label-fixes", "locomo-audit", "--format", "json"];
    assert_eq!(bench.run(report).expect_code(0).json()["answer_key"], *key);
    let rescored = ["rescore", "plain", "--label-fixes", "locomo-audit", "--json", "--run-id", "rescored"];
    let rescored = bench.run(rescored).expect_code(0).json();
    assert_eq!((&rescored["answer_key"], &rescored["result_digest"]), (key, &with["result_digest"]));
    assert_eq!(bench.run(["compare", "plain", "rescored", "--json"]).expect_code(0).json()["comparable"], true);
    let unknown = bench.run(["submit", "--dataset", "locomo", "--label-fixes", "locomo-audits"]).expect_code(2);
    assert!(unknown.stderr.contains("did you mean 'locomo-audit'"), "{}", unknown.stderr);
}

#[test]
fn three_judgements_by_both_keys_are_estimated_and_go_on_after_a_kill() {
    let Some(data) = locomo() else { return };
    let provider = Provider::start(&["--latency-ms", "30"]);
    let bench = || provider.bench().with_env("BENCH_DATASETS_DIR", data.display().to_string());
    // bank after bank, so that questions in error are among them
    let counted = ["--count-as", "evermemos", "--judge", "openai:gpt-4o-mini", "--latency-probe", "off"];
    let sample = ["submit", "--dataset", "locomo", "--sample", "60", "--max-banks", "2", "--json", "--cache", "off"];
    let submit = |run: &'static str, more: &[&'static str]| -> Vec<&'static str> {
        sample.into_iter().chain(counted).chain(["--run-id", run]).chain(more.iter().copied()).collect()
    };
    let fixes = ["--label-fixes", "locomo-audit"];
    let calls = |estimate: &Value| {
        let judge = estimate["phases"].as_array().into_iter().flatten().find(|phase| phase["phase"] == "judge");
        judge.and_then(|phase| phase["calls"].as_u64()).expect("judges are called")
    };
    let first = bench();
    let plain = calls(&first.run(submit("plain", &["--dry-run"])).expect_code(0).json());
    let told = calls(&first.run(submit("told", &[&fixes[..], &["--dry-run"]].concat())).expect_code(0).json());
    let alone = first.run(submit("alone", &fixes)).expect_code(0).json();
    let wrong = alone["answer_key"]["wrong"].as_u64().expect("a count");
    assert!(wrong > 0, "{}", alone["answer_key"]);
    assert_eq!((alone["counting"]["runs"].as_u64(), plain % 3), (Some(3), 0));
    let made = provider.count("requests");
    assert!(
        made > plain && told >= made,
        "{plain} by one key, {told} told, {made} made for {wrong} questions in error"
    );

    let second = bench();
    let victim = second.start(submit("victim", &fixes));
    provider.wait_for_requests(made + made / 2);
    signal(&victim, "KILL");
    let _ = wait(victim);
    let resumed = second.run(["resume", "victim", "--json"]).expect_code(0).json();
    assert_eq!(resumed["result_digest"], alone["result_digest"]);
    assert_eq!(resumed["answer_key"], alone["answer_key"], "both keys are the same");
    assert_eq!(resumed["counting"]["value"], alone["counting"]["value"]);
    assert!(resumed["answer_key"]["corrected"].is_number(), "{}", resumed["answer_key"]);
}

#[test]
fn a_published_score_above_its_ceiling_is_flagged() {
    let Some(data) = locomo() else { return };
    let bench = Bench::new().with_env("BENCH_DATASETS_DIR", data.display().to_string());
    // every question right by the published key, those in error included
    let answers: String = std::iter::once(("conv-26", 0))
        .chain((1..20).map(|at| ("conv-26", at)))
        .map(|(bank, at)| format!("{{\"question_id\": \"{bank}:{at}\", \"answer\": \"answer {at}\", \"score\": 1}}\n"))
        .collect();
    std::fs::write(bench.path().join("all.jsonl"), answers).expect("the folder is writable");
    let args = ["import", "--dataset", "locomo", "--answers", "all.jsonl", "--subset", "--json"];
    let _ = bench.run(args).expect_code(0);
    let report = bench.run(["report", "latest", "--label-fixes", "locomo-audit"]).expect_code(0);
    assert!(report.stdout.contains("above the ceiling"), "{}", report.stdout);
}

#[test]
fn a_key_of_answers_is_told_of_answers_alone() {
    let Some(data) = locomo() else { return };
    let bench = Bench::new().with_env("BENCH_DATASETS_DIR", data.display().to_string());
    let submit = ["submit", "--dataset", "locomo", "--preset", "quick", "--json", "--display", "none"];
    let fixes = ["--label-fixes", "locomo-audit"];
    let refused = |args: &[&str], why: &str| {
        let refused = bench.run(args.iter().chain(&fixes)).expect_code(2);
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
    };
    // recalls head the report; the key is of the answers
    let headed = ["--headline", "recall@10", "--run-id", "headed"];
    let headed = bench.run(submit.iter().chain(&headed).chain(&fixes)).expect_code(0).json();
    assert_eq!(
        (&headed["headline"]["metric"], &headed["answer_key"]["metric"]),
        (&json!("recall@10"), &json!("locomo-f1"))
    );
    let reported = bench.run(["report", "headed", "--format", "json"].iter().chain(&fixes)).expect_code(0).json();
    assert_eq!(reported["answer_key"], headed["answer_key"]);
    // nothing is answered
    let only = ["--scenario", "retrieve-only", "--run-id", "only"];
    refused(&[&submit[..], &only].concat(), "have no answers");
    let _ = bench.run(submit.iter().chain(&only)).expect_code(0);
    for verb in ["report", "rescore"] {
        refused(&[verb, "only"], "have no answers");
    }
    // planted answers are right or wrong by the published key
    let file = data.join("locomo-audit/ap_v1_scored.json.gz").display().to_string();
    let audit = ["judge-audit", "--dataset", "locomo", "--answers", &file, "--plant", "specific", "--json"];
    let audit = bench.run(audit).expect_code(0).json();
    let audited = audit["run"]["id"].as_str().expect("an id");
    refused(&["report", audited], "judge audit");
    refused(&["rejudge", audited, "--judge", "openai:gpt-4o-mini", "--dry-run"], "judge audit");
}
