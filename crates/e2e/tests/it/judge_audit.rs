//! Judges that grade planted answers: how often they err is told, and a run of theirs is like any other.

use bench_e2e::faults::locomo;
use bench_testkit::{bench::Bench, provider::Provider, small};
use serde_json::{Value, json};

/// The rate of a kind of planted answers, or of all that can err in a direction: (mean of judgements, by majority, answers).
fn rate(report: &Value, metric: &str, error: &str, kind: Option<&str>) -> (f64, f64, u64) {
    let rates = report["judge_audit"]["rates"].as_array().expect("rates").iter();
    let mut of = rates.filter(|rate| {
        rate["metric"] == metric && rate["error"] == error && rate["kind"].as_str() == kind && rate["part"].is_null()
    });
    let rate = of.next().unwrap_or_else(|| panic!("no {error} of {kind:?} in {}", report["judge_audit"]));
    assert!(rate["naive_ci95"]["low"].is_number(), "{rate}");
    (
        rate["value"].as_f64().expect("a share"),
        rate["by_majority"].as_f64().expect("a share"),
        rate["n"].as_u64().expect("a count"),
    )
}

#[test]
fn a_judge_by_the_reference_is_told_from_one_by_lot() {
    let audit = |bench: &Bench, more: &[&str]| {
        let args = ["judge-audit", "--dataset", "locomo-sim", "--preset", "quick", "--json", "--display", "none"];
        bench.run(args.iter().chain(more)).expect_code(0).json()
    };
    let by_reference = Provider::start(&["--judge", "reference"]);
    let bench = by_reference.bench();
    let first = audit(&bench, &["--judge", "openai:gpt-4o-mini"]);
    assert_eq!(first["labels"][0], "judge audit: planted answers");
    let asked = first["outcomes"]["sample"].as_u64().expect("a count");
    assert!(asked > 150 && by_reference.count("requests") == asked, "{asked}");
    let (specific, ..) = rate(&first, "judge", "false_accept", Some("specific"));
    let (verbatim, ..) = rate(&first, "judge", "false_reject", Some("verbatim"));
    assert_eq!((specific, verbatim), (0.0, 0.0), "no word of a wrong answer is in the reference");
    // the same answers again are the same run, and a second judge is paid alone
    let second = audit(&bench, &["--judge", "openai:gpt-4o-mini", "--judge", "openai:gpt-4o", "--name", "both"]);
    assert_eq!(by_reference.count("requests"), 2 * asked);
    assert_eq!((&second["judge_agreement"][0]["agreement"], second["result_digest"].is_string()), (&1.0.into(), true));
    assert_eq!(rate(&second, "judge-2", "false_accept", None), rate(&first, "judge", "false_accept", None));

    let by_lot = Provider::start(&["--judge-accept", "0.5"]);
    let bench = by_lot.bench();
    let lot = audit(
        &bench,
        &[
            "--judge",
            "openai:gpt-4o-mini",
            "--votes",
            "3",
            "--plant",
            "specific",
            "--plant",
            "verbatim",
            "--run-id",
            "lot",
        ],
    );
    let (accepts, by_majority, n) = rate(&lot, "judge", "false_accept", None);
    assert!(
        (0.3..0.7).contains(&accepts) && (0.2..0.8).contains(&by_majority) && n > 30,
        "{accepts} {by_majority} {n}"
    );
    // planted answers are no system's
    let _ = bench.run(["submit", "--dataset", "locomo-sim", "--preset", "quick", "--run-id", "plain"]).expect_code(0);
    let _ = bench.run(["compare", "plain", "lot"]).expect_code(5);
    // grades that are reduced in another way are another run
    let voted =
        |line: &Value| json!({"question_id": line["question_id"], "answer": "x", "score": [1, 1, 0]}).to_string();
    let votes: Vec<String> = bench.questions("plain").iter().map(voted).collect();
    let file = bench.path().join("votes.jsonl");
    std::fs::write(&file, votes.join("\n")).expect("is written");
    let reduced = |how: &str| {
        let file = file.display().to_string();
        let args =
            ["judge-audit", "--dataset", "locomo-sim", "--answers", &file, "--plant", "specific", "--reduce", how];
        let report = bench.run(args.iter().chain(&["--json", "--display", "none"])).expect_code(0).json();
        rate(&report, "imported", "false_accept", Some("specific")).0
    };
    assert_eq!((format!("{:.2}", reduced("mean")), reduced("majority")), ("0.67".to_owned(), 1.0));
}

#[test]
fn judges_of_an_audit_see_the_evidence_where_the_rubric_shows_it() {
    let provider = Provider::start(&["--judge", "reference"]);
    let bench = provider.bench();
    let prompt_tokens = |report: &Value| report["usage"]["judge"]["prompt_tokens"].as_u64().expect("a count");
    // the same questions and answers: in one dataset the messages that the answers rest on are longer
    let [short, long] = ["short", "long"].map(|name| {
        let folder = bench.path().join(name);
        assert!(small::write("convomem@mixed", &folder).expect("is written"), "is known");
        let file = folder.join("core_benchmark/pre_mixed_testcases/user_evidence/1_evidence/batch.json");
        let text = std::fs::read_to_string(&file).expect("is there");
        let said = "We have, as I told everybody at the long table in the inn last night over tea, ";
        assert!(text.contains("We have "), "{text}");
        if name == "long" {
            std::fs::write(&file, text.replace("We have ", said)).expect("is written");
        }
        let folder = folder.display().to_string();
        let dataset = ["--dataset", "convomem@mixed", "--dataset-path", &folder, "--allow-modified-dataset"];
        let quiet = ["--preset", "full", "--judge", "openai:gpt-4o-mini", "--display", "none", "--json"];
        let planted = bench.run(["judge-audit"].iter().chain(&dataset).chain(&quiet).chain(&["--plant", "verbatim"]));
        let planted = planted.expect_code(0).json();
        let answered = ["submit", "--latency-probe", "off", "--run-id", name];
        let _ = bench.run(answered.iter().chain(&dataset).chain(&quiet));
        let grades = bench.path().join("grades.jsonl");
        let line = |line: &Value| json!({"question_id": line["question_id"], "correct": true}).to_string();
        let graded: Vec<String> = bench.questions(name).iter().map(line).collect();
        std::fs::write(&grades, graded.join("\n")).expect("is written");
        let grades = grades.display().to_string();
        let own = ["judge-audit", "--of", name, "--grades", &grades, "--judge", "openai:gpt-4o", "--json"];
        let own = bench.run(own.iter().chain(&["--display", "none"])).expect_code(0).json();
        [prompt_tokens(&planted), prompt_tokens(&own)]
    });
    assert!(short[0] > 0 && short[1] > 0 && long[0] > short[0] + 5 && long[1] > short[1] + 5, "{short:?} {long:?}");
}

#[test]
fn a_dry_run_of_an_audit_stores_nothing() {
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let audit =
        ["judge-audit", "--dataset", "locomo-sim", "--preset", "quick", "--json", "--display", "none", "--dry-run"];
    let estimate = bench.run(audit.iter().chain(&["--judge", "openai:gpt-4o-mini"])).expect_code(0).json();
    assert!(estimate["calls"].as_u64().is_some_and(|calls| calls > 150), "{estimate}");
    assert!(!bench.path().join(".bench/bench.db").exists(), "it leaves nothing behind");
    assert_eq!((bench.run(["list", "--json"]).expect_code(0).json(), provider.count("requests")), (json!([]), 0));
    let nobody = bench.run(audit).expect_code(2);
    assert!(nobody.stderr.contains("nobody has graded"), "{}", nobody.stderr);
    let audited = audit.iter().filter(|flag| **flag != "--dry-run").chain(&["--judge", "openai:gpt-4o-mini"]);
    let _ = bench.run(audited).expect_code(0);
    assert_eq!(estimate["calls"], json!(provider.count("requests")));
}

#[test]
fn the_published_verdicts_on_wrong_answers_have_their_published_rates() {
    let Some(data) = locomo() else { return };
    let bench = Bench::new().with_env("BENCH_DATASETS_DIR", data.display().to_string());
    let file = data.join("locomo-audit/ap_v1_scored.json.gz").display().to_string();
    let args = ["judge-audit", "--dataset", "locomo", "--answers", &file, "--plant", "specific", "--json"];
    let report = bench.run(args).expect_code(0).json();
    let (mean, by_majority, n) = rate(&report, "imported", "false_accept", Some("specific"));
    assert_eq!(
        (format!("{:.2}", mean * 100.0), format!("{:.2}", by_majority * 100.0), n),
        ("10.61".into(), "10.65".into(), 1540)
    );
    let source = report["judge_audit"]["planted"]["source"].as_str().expect("a source");
    assert!(source.starts_with("ap_v1_scored.json.gz, sha256 870a8bf4"), "{source}");
    let unsaid = bench.run(["judge-audit", "--dataset", "locomo", "--answers", &file]).expect_code(2);
    assert!(unsaid.stderr.contains("--plant"), "{}", unsaid.stderr);
}
