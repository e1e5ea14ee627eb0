//! Results as they are used: imported, compared, gated.

use std::{io::Write, net::TcpListener, time::Duration};

use bench_testkit::{
    bench::{Bench, Done},
    http::answering,
};
use serde_json::{Value, json};

fn submit(bench: &Bench, id: &str, more: &[&str]) -> Done {
    let preset: &[&str] = if more.contains(&"--preset") { &[] } else { &["--preset", "fair"] };
    let args = ["submit", "--dataset", "locomo-sim", "--display", "none", "--json", "--run-id", id];
    bench.run(args.iter().chain(preset).chain(more))
}

fn write(bench: &Bench, name: &str, text: &str) {
    std::fs::write(bench.path().join(name), text).expect("the folder is writable");
}

/// Ids and texts of the questions of a run's file, by bank.
fn questions_by_bank(bench: &Bench, run: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut banks: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for line in bench.questions(run) {
        let text = |key: &str| line[key].as_str().expect("text").to_owned();
        let question = (text("question_id"), text("question"));
        match banks.iter_mut().find(|(bank, _)| *bank == text("bank_id")) {
            Some((_, questions)) => questions.push(question),
            None => banks.push((text("bank_id"), vec![question])),
        }
    }
    // files count conversations in the dataset's order
    banks.sort();
    banks
}

#[test]
fn a_worse_run_is_found_listed_and_stopped() {
    let bench = Bench::new();
    let _ = submit(&bench, "good", &["--preset", "full"]).expect_code(0);
    let _ = submit(&bench, "poor", &["--preset", "full", "--top-k", "3"]).expect_code(0);
    let compared = bench.run(["compare", "good", "poor", "--json", "--output-dir", "out"]).expect_code(1).json();
    assert_eq!((&compared["verdict"], &compared["comparable"]), (&json!("WORSE"), &json!(true)));
    assert_eq!(compared["paired"]["n"], 1986);
    assert_eq!(compared["under_test"], "system");
    assert_eq!(compared["differences"][0]["key"], "system.top_k");
    let (low, high) = (compared["paired"]["ci95"]["low"].as_f64(), compared["paired"]["ci95"]["high"].as_f64());
    assert!(low < high && high < Some(0.0), "{low:?} {high:?}");
    let flips = compared["flips"].as_array().expect("flips");
    assert!(!flips.is_empty());
    for flip in flips {
        assert!(
            flip["question"].is_string() && flip["a"]["answer"].is_string() && flip["b"]["answer"].is_string(),
            "{flip}"
        );
    }
    for name in ["comparison.json", "comparison.md", "comparison.svg"] {
        assert!(bench.path().join("out").join(name).exists(), "{name}");
    }
    assert_eq!(bench.run(["compare", "good", "good", "--json"]).expect_code(0).json()["verdict"], "NO CHANGE");

    for (flag, value, said) in [("--metric", "f2", "has locomo-f1"), ("--under-test", "memory", "system, answerer")] {
        for verb in [&["compare", "good", "poor"][..], &["gate", "poor", "--baseline", "good"]] {
            let refused = bench.run(verb.iter().chain(&[flag, value])).expect_code(2);
            assert!(refused.stderr.contains(said), "{}", refused.stderr);
        }
    }

    let gated =
        bench.run(["gate", "poor", "--baseline", "good", "--json", "--junit", "gate.xml"]).expect_code(1).json();
    assert_eq!((&gated["verdict"], &gated["severity"]), (&json!("FAIL"), &json!("critical")));
    let junit = std::fs::read_to_string(bench.path().join("gate.xml")).expect("written");
    assert!(junit.contains("<failure"), "{junit}");
    let _ = bench.run(["gate", "poor", "--baseline", "good", "--advisory"]).expect_code(0);
    let _ = bench.run(["gate", "good", "--baseline", "good"]).expect_code(0);
    let _ = bench.run(["gate", "good", "--floor", "0.999"]).expect_code(1);
    let _ = bench.run(["gate", "good", "--floor", "0.001"]).expect_code(0);
    let folder = bench.path().join(".bench/runs/good").display().to_string();
    let from_files = bench.run(["gate", "poor", "--baseline", &folder, "--json"]).expect_code(1).json();
    assert_eq!(from_files["comparison"]["paired"]["difference"], gated["comparison"]["paired"]["difference"]);
    // two folders, in a store that knows neither
    let elsewhere = Bench::new();
    let folders = ["good", "poor"].map(|id| bench.path().join(".bench/runs").join(id).display().to_string());
    let of_folders = elsewhere.run(["compare", &folders[0], &folders[1], "--json"]).expect_code(1).json();
    for key in ["difference", "ci95", "p_value", "n", "clusters", "estimator"] {
        assert_eq!(of_folders["paired"][key], compared["paired"][key], "{key}");
    }
    assert_eq!((&of_folders["comparable"], &of_folders["under_test"]), (&json!(true), &json!("system")));
}

#[test]
fn a_policy_holds_any_figure_of_the_report_and_says_what_changed() {
    let bench = Bench::new();
    let _ = submit(&bench, "run", &[]).expect_code(0);
    let recall = bench.report("run")["retrieval"]["session"]["10"]["recall"].as_f64().expect("a figure");
    let policy = |floor: f64, tokens: u64| {
        let text = format!(
            "version: 1\nfloors: {{ figures: {{ retrieval.session.10.recall: {floor} }} }}\nceilings: {{ usage.total.prompt_tokens: {tokens} }}\n"
        );
        write(&bench, "policy.yaml", &text);
        bench.run(["gate", "run", "--policy", "policy.yaml", "--json"])
    };
    let _ = policy(recall, 0).expect_code(0);
    let failed = policy(recall + 0.001, 0).expect_code(1).json();
    let check =
        failed["checks"].as_array().expect("checks").iter().find(|c| c["outcome"] == "regression").expect("one");
    assert_eq!(
        (&check["rule"], &check["metric"], &check["current"]),
        (&json!("floor:retrieval.session.10.recall"), &json!("retrieval.session.10.recall"), &json!(recall))
    );
    assert!(check["delta"].as_f64().is_some_and(|delta| (delta + 0.001).abs() < 1e-9), "{check}");
    assert!(check["delta_percent"].as_f64().is_some_and(|percent| percent < 0.0), "{check}");
    write(&bench, "policy.yaml", "version: 1\nfloors: { figures: { retrieval.no.such: 0.1 } }\n");
    let missing = bench.run(["gate", "run", "--policy", "policy.yaml", "--json"]).expect_code(1).json();
    assert!(missing["checks"][0]["detail"].as_str().is_some_and(|said| said.contains("no figure")), "{missing}");
    write(&bench, "policy.yaml", "version: 1\noverall: { tolerance: 0.02, level: critical }\n");
    let refused = bench.run(["gate", "run", "--policy", "policy.yaml"]).expect_code(2);
    assert!(refused.stderr.contains("--baseline"), "{}", refused.stderr);
}

#[test]
fn precision_of_before_is_read_as_what_it_was_and_not_compared_with_that_of_now() {
    let bench = Bench::new();
    let _ = submit(&bench, "now", &["--scorer", "locomo-f1", "--scorer", "precision@10"]).expect_code(0);
    let mut report = bench.report("now");
    let at = |report: &Value| report["retrieval"]["session"]["10"].clone();
    assert_eq!((&report["schema_version"], &report["spec"]["scorer_versions"]["precision@10"]), (&json!(4), &json!(2)));
    let now = at(&report);
    let (by_k, of_returned) = (now["precision"].as_f64(), now["precision_of_returned"].as_f64());
    assert!(by_k.is_some() && by_k < of_returned, "ten hits are of fewer sessions than ten: {now}");
    // the same run as the version before wrote it
    report["schema_version"] = json!(3);
    report["run"]["fingerprint"] = json!("0".repeat(64));
    report["spec"].as_object_mut().expect("an object").remove("scorer_versions");
    for level in ["turn", "session"] {
        for at in report["retrieval"][level].as_object_mut().expect("an object").values_mut() {
            let of_returned = at.as_object_mut().expect("an object").remove("precision_of_returned");
            at["precision"] = of_returned.expect("is written");
        }
    }
    let before = bench.path().join("before");
    std::fs::create_dir(&before).expect("the folder is writable");
    write(&bench, "before/report.json", &report.to_string());
    let lines = bench.path().join(".bench/runs/now/questions.jsonl");
    std::fs::copy(lines, before.join("questions.jsonl")).expect("is copied");
    for pair in [["now", "before"], ["before", "now"], ["before", ".bench/runs/now"]] {
        let of = |metric: &str| bench.run(["compare", pair[0], pair[1], "--metric", metric, "--json"]);
        let refused = of("precision@10").expect_code(5).json();
        assert!(refused["reasons"].to_string().contains("graders of 'precision@10' differ"), "{refused}");
        let compared = of("locomo-f1").expect_code(0).json();
        let side = if pair[0] == "before" { "a" } else { "b" };
        let old = at(&compared[side]);
        assert_eq!((&old["precision"], old["precision_of_returned"].as_f64()), (&Value::Null, of_returned), "{old}");
    }
}

#[test]
fn a_gate_says_beforehand_how_it_ends() {
    let bench = Bench::new();
    assert!(bench.run(["gate", "--print-policy"]).expect_code(0).stdout.contains("tolerance: 0.03"));
    let _ = submit(&bench, "run", &["--preset", "full"]).expect_code(0);
    let plan = bench.run(["gate", "run", "--plan", "--json"]).expect_code(0).json();
    let cases = plan["cases"].as_array().expect("cases");
    assert_eq!((cases.len(), &plan["questions"], &plan["banks"]), (3, &json!(1986), &json!(10)));
    for case in cases {
        let sum: f64 = ["pass", "fail", "inconclusive"].iter().filter_map(|end| case[end].as_f64()).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{case}");
    }
    let at = |case: usize, end: &str| cases[case][end].as_f64().expect("a share");
    assert!(at(0, "fail") <= 0.03 && at(2, "fail") > at(1, "fail") && at(0, "pass") > at(1, "pass"), "{plan}");
    let said = bench.run(["gate", "run", "--plan"]).expect_code(0).stdout;
    assert!(said.contains("as good as its baseline") && said.contains("INCONCLUSIVE"), "{said}");
    assert!(said.contains("one run is held against one run"), "{said}");
    assert_eq!(plan["not_simulated"], json!(["retrieval", "floors"]), "what can fail beside the scores");
    // of repeats it is their mean that is simulated, against that of others
    for id in ["before", "after"] {
        let _ = submit(&bench, id, &["--preset", "quick", "--repeats", "2"]).expect_code(0);
    }
    let plan = bench.run(["gate", "after", "--plan", "--baseline", "before", "--json"]).expect_code(0).json();
    let of_groups = ["runs", "baseline_runs", "measured_over"].map(|name| plan[name].as_u64());
    assert_eq!(of_groups, [Some(2), Some(2), Some(4)], "{plan}");
    // of the last runs it is those that there are
    let _ = submit(&bench, "single", &["--preset", "quick"]).expect_code(0);
    let plan = bench.run(["gate", "single", "--plan", "--baseline", "last:50", "--json"]).expect_code(0).json();
    assert!(plan["baseline_runs"].as_u64().is_some_and(|runs| (1..=4).contains(&runs)), "{plan}");
}

#[test]
fn gates_tell_whoever_listens() {
    let bench = Bench::new().with_env("GITHUB_ACTIONS", "true").with_env("GITHUB_STEP_SUMMARY", "summary.md");
    let _ = submit(&bench, "good", &[]).expect_code(0);
    let _ = submit(&bench, "poor", &["--system", "none"]).expect_code(0);
    let args = [
        "gate",
        "poor",
        "--baseline",
        "good",
        "--alert-command",
        "cat > alert.json; echo $BENCH_ALERT_SEVERITY > severity",
    ];
    let done = bench.run(args).expect_code(1);
    assert!(done.stderr.contains("::error title=bench-coord gate%3A overall::"), "{}", done.stderr);
    let read = |name: &str| std::fs::read_to_string(bench.path().join(name)).expect("written");
    assert!(read("summary.md").contains("| overall | critical | regression |"), "{}", read("summary.md"));
    let alert: Value = serde_json::from_str(&read("alert.json")).expect("JSON");
    let overall = alert["checks"].as_array().expect("checks").iter().find(|c| c["rule"] == "overall").expect("is one");
    for key in ["current", "baseline", "delta", "delta_percent"] {
        assert!(overall[key].is_number(), "{key}: {overall}");
    }
    assert_eq!(overall["metric"], "locomo-f1");
    assert_eq!(
        (&alert["severity"], &alert["run"], read("severity").trim()),
        (&json!("critical"), &json!("poor"), "critical")
    );

    // over no network that reads along, and nowhere else than it was told
    let gate = |url: &str| bench.run(["gate", "poor", "--baseline", "good", "--alert-url", url]);
    let refused = gate("http://alerts.example/hook?token=hidden-one").expect_code(2).stderr;
    let why = "--alert-url: what goes to alerts.example is not encrypted";
    assert!(refused.contains(why) && !refused.contains("hidden-one"), "{refused}");
    let (place, heard) = answering(|_| "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned());
    let told = gate(&format!("http://{place}/hook")).expect_code(1).stderr;
    assert!(!told.contains("not delivered"), "{told}");
    let heard = heard.recv_timeout(Duration::from_secs(20)).expect("was told");
    let alert: Value = serde_json::from_str(&heard).expect("JSON");
    assert_eq!((&alert["severity"], &alert["run"]), (&json!("critical"), &json!("poor")));
    let trap = TcpListener::bind("127.0.0.1:0").expect("a port");
    trap.set_nonblocking(true).expect("can");
    let to = trap.local_addr().expect("an address");
    let (place, _heard) = answering(move |_| {
        format!(
            "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://{to}/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )
    });
    let led = gate(&format!("http://{place}/hook")).expect_code(1).stderr;
    assert!(led.contains("not delivered: the server leads elsewhere") && trap.accept().is_err(), "{led}");
}

#[test]
fn a_corrected_answer_key_stands_beside_the_published_one() {
    let bench = Bench::new();
    let _ = submit(&bench, "run", &[]).expect_code(0);
    let questions = bench.questions("run");
    let score = |q: &Value| q["scores"]["locomo-f1"].as_f64().expect("a score");
    // three answers that were counted as wrong are right by the corrected key; of one mistake nobody knows the right answer
    let temporal: Vec<&Value> = questions.iter().filter(|q| q["category"] == "temporal").collect();
    let failed: Vec<&Value> =
        temporal.iter().copied().filter(|q| score(q) == 0.0 && q["answer"] != "").take(4).collect();
    assert_eq!(failed.len(), 4, "the demo answerer fails often");
    let mut key: Vec<Value> = failed[..3]
        .iter()
        .map(
            |q| json!({"question_id": q["question_id"], "correct_answer": q["answer"], "error_type": "TEMPORAL_ERROR"}),
        )
        .collect();
    key.push(json!({"question_id": failed[3]["question_id"]}));
    key.push(json!({"question_id": temporal[0]["question_id"], "correct_answer": "x", "error_type": "WRONG_CITATION"}));
    write(&bench, "key.json", &Value::from(key).to_string());
    let args = ["report", "run", "--answer-key", "key.json"];
    let report = bench.run(args.iter().chain(&["--format", "json"])).expect_code(0).json();
    let found = &report["answer_key"];
    let (n, sum) = (temporal.len() as f64, temporal.iter().map(|q| score(q)).sum::<f64>());
    assert_eq!(
        (&found["wrong"], &found["without_correction"], &found["n"], &found["categories"]),
        (&json!(4), &json!(1), &json!(n as u64), &json!(["temporal"]))
    );
    for (figure, expected) in [
        ("ceiling", 1.0 - 4.0 / n),
        ("published", sum / n),
        ("corrected", (sum + 3.0) / (n - 1.0)),
        ("without_wrong", sum / (n - 4.0)),
    ] {
        let got = found[figure].as_f64().expect("a figure");
        assert!((got - expected).abs() < 1e-12, "{figure}: {got} instead of {expected}");
    }
    let text = bench.run(args).expect_code(0).stdout;
    assert!(text.contains("Answer key (key.json): 4 of"), "{text}");
    write(&bench, "key.json", "[{\"question_id\": \"locomo_0_qa0\"}]");
    let told = bench.run(args).expect_code(0).stderr;
    assert!(told.contains("key.json: 1 id is not the dataset's: read as numbers"), "{told}");
    write(&bench, "key.json", "[{\"question_id\": \"nobody:7\"}]");
    let refused = bench.run(args).expect_code(2);
    assert!(refused.stderr.contains("key.json: record 1"), "{}", refused.stderr);
}

#[test]
fn policies_and_the_mean_of_the_last_runs() {
    let bench = Bench::new();
    for id in ["one", "two"] {
        let _ = submit(&bench, id, &[]).expect_code(0);
    }
    let _ = submit(&bench, "new", &[]).expect_code(0);
    let listed = bench.run(["list", "--json"]).expect_code(0).json();
    let headline = &bench.report("new")["headline"];
    assert_eq!(
        (&listed[0]["score"], &listed[0]["estimator"], &listed[0]["metric"]),
        (&headline["value"], &json!("weighted"), &headline["metric"]),
        "a list shows the report's figure"
    );
    let gated = bench.run(["gate", "new", "--baseline", "last:2", "--json"]).expect_code(0).json();
    assert_eq!(gated["baseline"], "mean of the last 2");
    assert_eq!(gated["comparison"]["paired"]["difference"], 0.0);
    // a night that was missed: the one before it takes its place
    let nightly = bench.run(["gate", "new", "--baseline", "nightly-2026-01-02", "--json"]).expect_code(0);
    assert!(nightly.stderr.contains("there is no baseline 'nightly-2026-01-02'"), "{}", nightly.stderr);
    assert_eq!(nightly.json()["baseline"], "two");
    let neither = bench.run(["gate", "one", "--baseline", "nightly-2026-01-02"]).expect_code(2);
    assert!(neither.stderr.contains("and no finished, VALID run before"), "{}", neither.stderr);
    let refused = bench.run(["gate", "one", "--baseline", "last:2"]).expect_code(5);
    assert!(refused.stderr.contains("--baseline RUN"), "{}", refused.stderr);
    let shipped = bench.run(["gate", "--print-policy"]).expect_code(0).stdout;
    write(&bench, "policy.yaml", &shipped.replace("overall: null", "overall: 0.99"));
    let _ = bench.run(["gate", "new", "--baseline", "one", "--policy", "policy.yaml"]).expect_code(1);
    write(&bench, "policy.yaml", "version: 1\noverall: { tolerance: 2, level: critical }\n");
    let refused = bench.run(["gate", "new", "--baseline", "one", "--policy", "policy.yaml"]).expect_code(2);
    assert!(refused.stderr.contains("2 points are 0.02"), "{}", refused.stderr);
    let _ = submit(&bench, "floored", &["--floor", "0.99"]).expect_code(1);
}

#[test]
fn few_questions_leave_a_gate_inconclusive() {
    let bench = Bench::new();
    // two banks make no interval
    for id in ["one", "two"] {
        let _ =
            submit(&bench, id, &["--max-banks", "2", "--limit", "30", "--top-k", if id == "one" { "5" } else { "4" }]);
    }
    let gated = bench.run(["gate", "two", "--baseline", "one", "--json"]);
    assert_eq!(gated.code, 6, "{}", gated.stdout);
    let _ = bench.run(["gate", "two", "--baseline", "one", "--allow-inconclusive"]).expect_code(0);
    assert_eq!(bench.run(["compare", "one", "two", "--json"]).expect_code(0).json()["verdict"], "INCONCLUSIVE");
}

/// A system without memory fails all questions of a category or passes them all: ten equal answers are not a known category, and
/// fifty equal pairs no proof that nothing changed.
#[test]
fn few_answers_that_agree_are_not_certain() {
    let bench = Bench::new();
    let of_none = ["--system", "none", "--preset"];
    let small = submit(&bench, "one", &[&of_none[..], &["quick"]].concat()).expect_code(0).json();
    let larger = submit(&bench, "fair", &[&of_none[..], &["fair"]].concat()).expect_code(0).json();
    let width = |report: &Value, interval: &str| -> f64 {
        let of = |bound: &str| report["headline"][interval][bound].as_f64().expect("a bound");
        of("high") - of("low")
    };
    for interval in ["ci95", "naive_ci95", "benchmark_ci95"] {
        let (of_small, of_larger) = (width(&small, interval), width(&larger, interval));
        assert!(of_small > 0.08 && of_larger > 0.02 && of_larger < of_small, "{interval}: {of_small}, {of_larger}");
    }
    for category in small["scores"][0]["by_category"].as_array().expect("categories") {
        let [low, high] = ["low", "high"].map(|bound| category["ci95"][bound].as_f64().expect("a bound"));
        let value = category["value"].as_f64().expect("a score");
        assert!(low <= value && value <= high && high - low > 0.1, "{category}");
    }

    let _ = submit(&bench, "two", &[&of_none[..], &["quick"]].concat()).expect_code(0);
    let compared = bench.run(["compare", "one", "two", "--json"]).expect_code(0).json();
    let paired = &compared["paired"];
    assert_eq!((&paired["difference"], &compared["verdict"]), (&json!(0.0), &json!("INCONCLUSIVE")), "{paired}");
    assert!(paired["ci95"]["low"].as_f64() < Some(-0.05) && paired["mde"].as_f64() > Some(0.05), "{paired}");
    assert_eq!(compared["equal"], true, "fifty questions that ended alike are equal, whatever they say of others");
    let printed = bench.run(["compare", "one", "two"]).expect_code(0).stdout;
    assert!(printed.contains("EQUAL: +0.00 points") && printed.contains("no difference to decide"), "{printed}");
    let printed = bench.run(["gate", "two", "--baseline", "one"]).expect_code(6).stdout;
    assert!(printed.contains("INCONCLUSIVE"), "{printed}");
    let _ = submit(&bench, "fairly", &[&of_none[..], &["fair"]].concat()).expect_code(0);
    assert_eq!(bench.run(["gate", "fairly", "--baseline", "fair", "--json"]).expect_code(0).json()["verdict"], "PASS");
}

#[test]
fn runs_that_differ_in_two_things_are_not_comparable() {
    let bench = Bench::new();
    let _ = submit(&bench, "one", &[]).expect_code(0);
    let _ = submit(&bench, "two", &["--set", "sim.seed=9"]).expect_code(0);
    let compared = bench.run(["compare", "one", "two", "--json"]).expect_code(5).json();
    assert_eq!(compared["reasons"][0], "the datasets differ");
    let _ = bench.run(["gate", "two", "--baseline", "one"]).expect_code(5);
}

#[test]
fn grades_of_many_forms_are_imported_to_the_same_figures() {
    let bench = Bench::new();
    let full = ["submit", "--dataset", "locomo-sim", "--preset", "full", "--display", "none", "--run-id", "own"];
    let _ = bench.run(full).expect_code(0);
    let banks = questions_by_bank(&bench, "own");
    // three votes for each question, by its number: 0, 1, 2 or 3 of them pass
    let votes = |n: usize| [n.is_multiple_of(2), n.is_multiple_of(3), n.is_multiple_of(5)];
    let mut number = 0;
    let (mut lines, mut nested, mut table) = (String::new(), serde_json::Map::new(), String::from("qid,llm_score\n"));
    let (mut wide, mut by_id) =
        (String::from("Question ID;Judgment 1;Judgment 2;Judgment 3\n"), serde_json::Map::new());
    std::fs::create_dir(bench.path().join("folder")).expect("writable");
    for (place, (bank, questions)) in banks.iter().enumerate() {
        let (mut rows, mut of_bank) = (Vec::new(), Vec::new());
        for (id, text) in questions {
            let of = votes(number);
            let score = of.iter().filter(|pass| **pass).count() as f64 / 3.0;
            lines += &format!("{}\n", json!({"question_id": id, "score": score, "metric": "published"}));
            table += &format!("{id},{score}\n");
            wide += &format!("{id};{};{};{}\n", of[0], of[1], of[2]);
            by_id.insert(id.clone(), json!({"evaluation": {"reason": "because", "score": score}}));
            let word = |pass: bool| if pass { "CORRECT" } else { "incorrect" };
            of_bank.push(json!({"Question": text.to_uppercase(), "verdict": of.map(word)}));
            let of = json!({"judgment_1": of[0], "judgment_2": of[1], "judgment_3": of[2]});
            rows.push(
                json!({"question": text, "answer": "gold", "response": format!("said {number}"), "llm_judgments": of}),
            );
            number += 1;
        }
        nested.insert(format!("experiment_user_{place}"), Value::Array(rows));
        write(&bench, &format!("folder/{bank}.json"), &Value::Array(of_bank).to_string());
    }
    write(&bench, "wide.csv", &wide);
    write(&bench, "by_id.json", &json!({"correct": 1, "graded": by_id}).to_string());
    write(&bench, "lines.jsonl", &lines);
    write(&bench, "table.csv", &table);
    let document = json!({"total": number, "detailed_results": nested}).to_string();
    let mut gzip = std::process::Command::new("gzip")
        .args(["-c"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::fs::File::create(bench.path().join("nested.json.gz")).expect("writable"))
        .spawn()
        .expect("gzip is everywhere");
    gzip.stdin.take().expect("a pipe").write_all(document.as_bytes()).expect("gzip reads");
    assert!(gzip.wait().expect("gzip ends").success());
    let import = |file: &str, more: &[&str]| {
        let args = ["import", "--dataset", "locomo-sim", "--answers", file, "--json"];
        bench.run(args.iter().chain(more)).expect_code(0).json()
    };
    let expected =
        (0..number).map(|n| votes(n).iter().filter(|pass| **pass).count() as f64).sum::<f64>() / 3.0 / number as f64;
    let published = import("lines.jsonl", &[]);
    let value = published["headline"]["value"].as_f64().expect("a value");
    assert!((value - expected).abs() < 1e-12, "{value} instead of {expected}");
    assert_eq!(published["headline"]["metric"], "published");
    assert!(published["headline"]["ci95"]["method"].as_str().is_some_and(|m| m.contains("cluster-robust t")));
    assert!(published["latency_ms"]["question"].is_null(), "nothing was timed");
    for file in ["table.csv", "nested.json.gz", "wide.csv", "by_id.json", "folder"] {
        assert_eq!(import(file, &["--metric", "published"])["headline"], published["headline"], "{file}");
    }
    let majority = import("nested.json.gz", &["--reduce", "majority"]);
    let passed = (0..number).filter(|n| votes(*n).iter().filter(|pass| **pass).count() >= 2).count() as f64;
    assert!((majority["headline"]["value"].as_f64().expect("a value") - passed / number as f64).abs() < 1e-12);
    // what others graded can be compared with what they graded at another time
    let runs = bench.run(["list", "--json"]).expect_code(0).json();
    let id = |place: usize| runs[place]["id"].as_str().expect("an id").to_owned();
    let compared = bench.run(["compare", &id(1), &id(2), "--json"]).expect_code(0).json();
    assert_eq!(compared["paired"]["difference"], 0.0);
}

#[test]
fn a_file_of_no_known_form_is_read_with_the_flags_that_its_refusal_names() {
    let bench = Bench::new();
    let submit = ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--display", "none", "--run-id", "own"];
    let _ = bench.run(submit).expect_code(0);
    let questions = bench.questions("own");
    let record = |(n, q): (usize, &Value)| json!({"prompt": {"asked": q["question"]}, "of": q["bank_id"], "figures": {"points": n % 2}});
    let records: Vec<Value> = questions.iter().enumerate().map(record).collect();
    write(&bench, "theirs.json", &json!({"runs": [{"name": "one", "took": 3.5, "all": records}]}).to_string());
    let import = ["import", "--dataset", "locomo-sim", "--answers", "theirs.json", "--subset", "--json"];
    let refused = bench.run(import).expect_code(2);
    for said in ["theirs.json: no record", "try --field question=prompt.asked --field score=figures.points"] {
        assert!(refused.stderr.contains(said), "{}", refused.stderr);
    }
    let fields = ["--field", "question=prompt.asked", "--field", "conversation=of", "--field", "score=figures.points"];
    let report = bench.run(import.iter().chain(&fields)).expect_code(0).json();
    let share = (questions.len() / 2) as f64 / questions.len() as f64;
    assert_eq!((&report["headline"]["n"], &report["headline"]["value"]), (&json!(questions.len()), &json!(share)));

    for (flag, said) in [("retrieved=nothing", "no record has a field 'nothing'"), ("f1=x", "they are question_id")] {
        let refused = bench.run(import.iter().chain(&fields).chain(&["--field", flag])).expect_code(2);
        assert!(refused.stderr.contains(said), "{}", refused.stderr);
    }
    let forms = bench.run(["import", "--forms"]).expect_code(0).stdout;
    assert!(forms.contains("\nmem0: ") && forms.contains("llm_score"), "{forms}");
}

/// Without a word about it all of the last runs have the settings of the run, and are named; where they are fewer, that is said.
fn check_last(bench: &Bench) {
    for (baseline, name) in [("last:2", "mean of the last 2"), ("last:9", "mean of the last 2 (9 asked for)")] {
        let gate = bench.run(["gate", "newest", "--baseline", baseline, "--json"]).json();
        assert_eq!(gate["baseline"], name);
        let runs: Vec<[&Value; 3]> = gate["baseline_runs"]
            .as_array()
            .expect("its runs")
            .iter()
            .map(|run| [&run["id"], &run["name"], &run["differences"]])
            .collect();
        let expected = ["again", "wide"].map(|id| [json!(id), json!("nightly"), json!([])]);
        assert_eq!(runs, expected.each_ref().map(|run| run.each_ref()), "{gate}");
        assert!(!gate["comparison"]["notes"].to_string().contains("asked for 3 and 10 hits"), "{gate}");
    }
    let said = bench.run(["gate", "newest", "--baseline", "last:9"]).stdout;
    for line in ["again", "wide", "nightly", "9 were asked for"] {
        assert!(said.contains(line), "{line}: {said}");
    }
    // none before it has its settings: those of the newest, which is said
    let gate = bench.run(["gate", "narrow", "--baseline", "last:3", "--json"]).json();
    assert_eq!(
        (&gate["baseline"], &gate["baseline_runs"][0]["id"]),
        (&json!("mean of the last 1 (3 asked for)"), &json!("wide"))
    );
    assert!(gate["comparison"]["notes"].to_string().contains("of other settings (system.top_k)"), "{gate}");
}

/// What a gate holds a run against is what it says: the same metric, the same cut-off, other runs.
#[test]
fn a_gate_against_the_last_runs_takes_those_that_measured_the_same_anew() {
    let bench = Bench::new();
    let submit = |id: &str, more: &[&str]| {
        let args = ["submit", "--dataset", "locomo-sim", "--preset", "fair", "--display", "none", "--run-id", id];
        let _ =
            bench.run(args.iter().chain(&["--name", "nightly", "--latency-probe", "off"]).chain(more)).expect_code(0);
    };
    submit("wide", &["--top-k", "10"]);
    submit("narrow", &["--top-k", "3"]);
    submit("again", &["--top-k", "10"]);
    let gated = |baseline: &str| bench.run(["gate", "again", "--baseline", baseline, "--json"]);
    let check = |gate: &Value, rule: &str| -> Value {
        let checks = gate["checks"].as_array().expect("a list");
        checks.iter().find(|check| check["rule"] == rule).cloned().unwrap_or(Value::Null)
    };
    // what is declared may differ
    let declared = |run: &str, baseline: &str| {
        bench.run(["gate", run, "--baseline", baseline, "--under-test", "system", "--json"]).json()
    };
    let (named, last) = (gated("narrow").json(), declared("again", "last:1"));
    let (of_named, of_last) = (check(&named, "retrieval:turn@3"), check(&last, "retrieval:turn@3"));
    assert!(of_named["current"].is_number(), "{named}");
    for figure in ["current", "baseline", "delta"] {
        assert_eq!(of_named[figure], of_last[figure], "the last run is 'narrow': {figure}");
    }
    assert_eq!(check(&last, "retrieval:session@3"), Value::Null, "{last}");
    assert!(last["comparison"]["notes"].to_string().contains("session recall is not compared"), "{last}");

    // a run that was graded again is no further draw, and its headline is not that of the run under test
    let _ = bench.run(["rescore", "narrow", "--scorer", "exact", "--run-id", "regraded"]).expect_code(0);
    submit("newest", &["--top-k", "10"]);
    let gate = declared("newest", "last:2");
    assert_ne!(gate["verdict"], "INVALID", "{gate}");
    assert_eq!(check(&gate, "overall")["metric"], "locomo-f1", "{gate}");
    // what is shown beside it is the score of both, and not that of the newest, which lends its settings
    let score = |run: &str| bench.report(run)["headline"]["value"].as_f64().expect("a score");
    let (both, shown) = ((score("narrow") + score("again")) / 2.0, gate["comparison"]["a"]["value"].as_f64());
    assert!(shown.is_some_and(|shown| (shown - both).abs() < 1e-9), "{both}: {}", gate["comparison"]["a"]);
    assert_ne!(score("narrow"), score("again"), "a mean of equal scores would show nothing");

    check_last(&bench);

    // the newest run of the name is the run itself
    let refused = bench.run(["gate", "latest", "--baseline", "nightly"]).expect_code(2).stderr;
    assert!(refused.contains("is the run itself") && refused.contains("nightly@2"), "{refused}");

    // a rule that nothing could be held against does not pass
    let policy = "{version: 1, categories: {tempral: {tolerance: 0.1, level: critical}}}";
    std::fs::write(bench.path().join("policy.yaml"), policy).expect("writable");
    let _ = bench.run(["gate", "newest", "--baseline", "again", "--policy", "policy.yaml"]).expect_code(6);

    // who answered otherwise says nothing of the memory system, and repeats are beside each other, not before
    submit("modelled", &["--top-k", "10", "--answerer", "fake"]);
    submit("twice", &["--top-k", "10", "--repeats", "2"]);
    for run in ["twice-r1", "twice-r2"] {
        for baseline in ["last:1", "nobody"] {
            let gate = bench.run(["gate", run, "--baseline", baseline, "--json"]).json();
            assert_eq!(gate["comparison"]["a"]["id"], "newest", "{run} against {baseline}: {gate}");
        }
    }
}

/// Grades of others do not get the name of a scorer of ours, by which they would be compared with its scores.
#[test]
fn grades_of_others_have_a_name_of_their_own() {
    let bench = Bench::new();
    let submit = ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--display", "none", "--run-id", "own"];
    let _ = bench.run(submit).expect_code(0);
    let lines: String = bench
        .questions("own")
        .iter()
        .map(|q| format!("{}\n", json!({"question_id": q["question_id"], "score": 1})))
        .collect();
    std::fs::write(bench.path().join("verdicts.jsonl"), lines).expect("writable");
    let import = ["import", "--dataset", "locomo-sim", "--answers", "verdicts.jsonl", "--subset"];
    let refused = bench.run(import.iter().chain(&["--metric", "locomo-f1"])).expect_code(2).stderr;
    assert!(refused.contains("'locomo-f1' is a scorer of this program"), "{refused}");
    let _ = bench.run(import.iter().chain(&["--metric", "their-f1"])).expect_code(0);
    // what a run of ours exported is its own
    let own = ["import", "--dataset", "locomo-sim", "--subset", "--metric", "locomo-f1", "--answers"];
    let _ = bench.run(own.iter().chain(&[".bench/runs/own/questions.jsonl"])).expect_code(0);
}
