//! Votes of several calls: counted, stored, shown and gone on with call by call.

use std::time::Duration;

use bench_testkit::{
    beam,
    bench::{Bench, signal, wait},
    provider::Provider,
};
use serde_json::{Value, json};

/// A folder with chats whose questions have so many lines each.
fn chats(bench: &Bench, lines: &[Vec<usize>]) -> String {
    let folder = bench.path().join("chats-of-a-test");
    beam::write(&folder, lines).expect("can be written");
    folder.to_str().expect("a path").to_owned()
}

fn submit<'a>(folder: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let fixed =
        ["submit", "--dataset", "beam", "--dataset-path", folder, "--allow-modified-dataset", "--preset", "full"];
    let judged = ["--judge", "openai:gpt-4o-mini", "--rubric", "judge-lines", "--latency-probe", "off", "--json"];
    fixed.iter().chain(&judged).chain(more).copied().collect()
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[test]
fn a_kill_repeats_only_the_calls_in_flight_also_without_the_call_store() {
    let lines = [vec![5, 5, 5]];
    let undisturbed = Provider::start(&[]);
    let bench = undisturbed.bench();
    let expected = bench.run(submit(&chats(&bench, &lines), &["--cache", "off"])).json();
    assert_eq!(undisturbed.count("requests"), 15, "{expected}");

    let provider = Provider::start(&["--latency-ms", "20"]);
    let bench = provider.bench();
    let folder = chats(&bench, &lines);
    // one call of the first vote is never answered, and the four beside it are
    provider.outage(&json!({"kind": "hang", "times": 1}));
    let victim = bench.start(submit(&folder, &["--cache", "off", "--concurrency", "1", "--run-id", "victim"]));
    provider.wait_for_requests(5);
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(provider.count("requests"), 5, "one question at a time, and all its calls at once");
    signal(&victim, "KILL");
    let _ = wait(victim);
    provider.end_outages();
    let resumed = bench.run(["resume", "victim", "--json"]).json();
    assert_eq!(resumed["result_digest"], expected["result_digest"]);
    assert_eq!(provider.repeated_requests(), 0, "no reply that was stored was asked for again");
    assert_eq!(provider.count("requests"), 15 + 1, "and the call that was in flight was made again");
    assert_eq!(resumed["usage"]["judge"]["calls"], 15, "{}", resumed["usage"]["judge"]);
}

#[test]
fn votes_of_several_calls_are_estimated_counted_and_shown_by_their_calls() {
    let provider = Provider::start(&["--price", "gpt-4o-mini=0.15/0.60"]);
    let bench = provider.bench();
    let folder = chats(&bench, &[vec![3, 1, 5, 2], vec![2, 2]]);
    let three = ["--votes", "3", "--max-cost", "5"];
    let estimate = bench.run(submit(&folder, &[&three[..], &["--dry-run"]].concat())).expect_code(0).json();
    let judge = estimate["phases"].as_array().into_iter().flatten().find(|phase| phase["phase"] == "judge");
    let judge = judge.expect("judges are called");
    assert_eq!(judge["calls"], 3 * 15);
    let report = bench.run(submit(&folder, &[&three[..], &["--run-id", "r"]].concat())).json();
    assert_eq!((provider.count("requests"), &report["usage"]["judge"]["calls"]), (45, &json!(45)));
    let worst = judge["usd"]["worst"].as_f64().expect("dollars");
    assert!(provider.paid() <= worst, "{} and at worst {worst}", provider.paid());
    assert_eq!((&report["spec"]["rubric"], &report["spec"]["votes"]), (&json!("judge-lines"), &json!(3)));
    assert_eq!(
        report["spec"]["judge_params"][0]["temperature"].as_f64(),
        Some(0.0),
        "{}",
        report["spec"]["judge_params"]
    );
    assert_eq!(report["outcomes"]["infra_error"], 0);
    for question in bench.questions("r") {
        let judgements = question["judgements"].as_array().expect("a list");
        let chosen: Vec<&Value> = judgements.iter().filter(|judgement| judgement["chosen"] == true).collect();
        assert_eq!((judgements.len(), chosen.len()), (3, 1), "{question}");
        let score = question["scores"]["judge"].as_f64().expect("a score");
        assert_eq!(chosen[0]["grade"].as_f64(), Some(score), "of three votes one is the median");
        // a question of one line is one call, whose reply stands with the vote
        let (calls, raw) = (texts(&chosen[0]["calls"]).len(), chosen[0]["raw"].as_str().map(str::is_empty));
        assert!(matches!((calls, raw), (0, Some(false)) | (2.., Some(true))), "{}", chosen[0]);
    }

    // judged again by one grade for all, and by one that measures more
    let graded = ["rejudge", "r", "--judge", "openai:gpt-4o-mini", "--max-cost", "5", "--json"];
    let again = bench.run(graded.iter().chain(&["--rubric", "judge-graded"])).json();
    assert_eq!((&again["usage"]["judge"]["calls"], &again["spec"]["rubric"]), (&json!(6), &json!("judge-graded")));
    assert_ne!(again["run"]["fingerprint"], report["run"]["fingerprint"]);
    let own = bench.run(graded.iter().chain(&["--rubric", "dataset"])).json();
    assert_eq!(own["spec"]["rubric"], Value::Null, "{}", own["spec"]);
    let reflect = bench.run(graded.iter().chain(&["--rubric", "judge-reflect"])).json();
    let hallucination = reflect["scores"].as_array().into_iter().flatten().find(|score| {
        score["metric"].as_str().is_some_and(|metric| metric.starts_with("judge.") && metric.contains("hallucination"))
    });
    let hallucination = hallucination.unwrap_or_else(|| panic!("{}", reflect["scores"]));
    assert_eq!(hallucination["n"], 6, "{hallucination}");

    for (rubric, said) in
        [("judge-grade", "did you mean 'judge-graded'?"), ("nonsense", "there are dataset, judge-single")]
    {
        let refused = bench.run(graded.iter().chain(&["--rubric", rubric])).expect_code(2);
        assert!(refused.stderr.contains(said), "{}", refused.stderr);
    }
    let nobody = bench.run(["submit", "--dataset", "locomo-sim", "--rubric", "judge-graded"]).expect_code(2);
    assert!(nobody.stderr.contains("add --judge"), "{}", nobody.stderr);
    let ids = ["submit", "--dataset", "precision-sim", "--preset", "quick", "--judge", "openai:gpt-4o-mini", "--json"];
    let _ = bench.run(ids).expect_code(2);
    let ids = bench.run(ids.iter().chain(&["--rubric", "judge-graded", "--run-id", "ids"])).json();
    assert!(ids["spec"]["notes"].to_string().contains("what deterministic scorers expect"), "{}", ids["spec"]);
    let scorer = bench.run(["submit", "--dataset", "locomo-sim", "--scorer", "judge-graded"]).expect_code(2);
    assert!(scorer.stderr.contains("--rubric judge-graded"), "{}", scorer.stderr);
}
