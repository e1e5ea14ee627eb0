//! Panels: a cheap judge on all questions and a strong one on a sample, and several judges together.

use bench_testkit::provider::Provider;
use serde_json::Value;

const ASKED: [&str; 6] = ["--dataset", "locomo-sim", "--preset", "full", "--display", "none"];

#[test]
fn a_strong_judge_on_a_sample_tells_what_it_would_say_of_all() {
    let provider = Provider::start(&["--judge", "reference"]);
    let bench = provider.bench();
    let judges = ["--judge", "openai:gpt-4o-mini", "--judge", "openai:gpt-4o=60"];
    let estimate = bench.run(["estimate", "--json"].iter().chain(&ASKED).chain(&judges)).expect_code(0).json();
    let part = &estimate["judged_samples"][0];
    assert_eq!((part["judge"].as_str(), part["questions"].as_u64()), (Some("openai:gpt-4o"), Some(60)));
    let number = |of: &Value| of.as_f64().unwrap_or_else(|| panic!("no number: {of}"));
    assert!(
        number(&part["usd"]) < number(&part["usd_of_all"]) && number(&part["points"]) < number(&part["points_alone"])
    );
    let told = bench.run(["estimate"].iter().chain(&ASKED).chain(&judges)).expect_code(0).stdout;
    assert!(told.contains("judge openai:gpt-4o on 60 of"), "{told}");

    let run = |id: &'static str| {
        let args = ["submit", "--json", "--run-id", id];
        bench.run(args.iter().chain(&ASKED).chain(&judges)).expect_code(0).json()
    };
    let first = run("first");
    let asked = first["outcomes"]["sample"].as_u64().expect("a count");
    assert_eq!(provider.count("requests"), asked + 60, "the strong judge is paid for its sample alone");
    assert_eq!(estimate["calls"].as_u64(), Some(asked + 60));
    let judge = &first["panel"]["sampled"][0];
    assert_eq!((judge["metric"].as_str(), judge["helped_by"].as_str()), (Some("judge-2"), Some("judge")));
    assert_eq!((judge["n"].as_u64(), judge["sampled"].as_u64()), (Some(asked), Some(60)));
    // both judge by the reference: what the one says of all is what the other would have said
    assert!((number(&judge["value"]) - number(&first["headline"]["value"])).abs() < 1e-9, "{judge}");
    assert!((number(&judge["weight"]) - 1.0).abs() < 1e-9 && number(&judge["width"]) < number(&judge["alone_width"]));
    assert!(number(&judge["usd"]) > 0.0 && number(&judge["all_usd"]) > 0.0, "{judge}");
    let agreement = &first["judge_agreement"][0];
    assert_eq!((agreement["n"].as_u64(), agreement["agreement"].as_f64()), (Some(60), Some(1.0)));
    let told = bench.run(["report", "first", "--full"]).expect_code(0).stdout;
    assert!(told.contains("Panel") && told.contains("openai:gpt-4o by its sample alone"), "{told}");
    assert!(!told.contains("the judge moves this by"), "scores of other questions are not held against each other");

    // the same sample and the same digest again, and in a fork of a run without a strong judge
    assert_eq!(run("second")["result_digest"], first["result_digest"]);
    let cheap = ["submit", "--judge", "openai:gpt-4o-mini", "--run-id", "cheap"];
    let _ = bench.run(cheap.iter().chain(&ASKED)).expect_code(0);
    let paid = provider.count("requests");
    let fork = ["rejudge", "cheap", "--run-id", "fork", "--json", "--display", "none"];
    let fork = bench.run(fork.iter().chain(&judges)).expect_code(0).json();
    assert_eq!((&fork["result_digest"], &fork["panel"]), (&first["result_digest"], &first["panel"]));
    assert_eq!(provider.count("requests"), paid + 60, "what the cheap judge has said is not paid again");
    // a fork that changes nothing of the judges keeps the sample
    let kept = bench.run(["rescore", "fork", "--scorer", "exact", "--run-id", "kept", "--json"]).expect_code(0).json();
    assert!(kept["panel"].is_null(), "no judge is asked by `rescore`");
    let longer = ["submit", "--fork", "fork", "--from", "judge", "--run-id", "again", "--json", "--display", "none"];
    assert_eq!(bench.run(longer).expect_code(0).json()["panel"]["sampled"][0]["sampled"], 60);
    let other = bench.run(["compare", "first", "cheap", "--json"]);
    assert!(other.stderr.is_empty() || !other.stderr.contains("graders of 'judge' differ"), "{}", other.stderr);
}

#[test]
fn three_judges_are_a_panel_with_a_majority() {
    let provider = Provider::start(&["--judge-accept", "0.6"]);
    let bench = provider.bench();
    let judges = ["--judge", "openai:gpt-4o-mini,openai:gpt-4o,openai:gpt-4.1-mini"];
    let args = ["submit", "--json", "--run-id", "three"];
    // judges by lot agree by chance alone, and the run says so
    let run = bench.run(args.iter().chain(&ASKED).chain(&judges)).expect_code(5).json();
    let panel = &run["panel"];
    let share = |of: &Value| of["value"].as_f64().unwrap_or_else(|| panic!("no share in {panel}"));
    assert!((0.5..0.7).contains(&share(&panel["mean"])) && (0.5..0.8).contains(&share(&panel["majority"])), "{panel}");
    assert_eq!(panel["differing"].as_array().map(Vec::len), Some(3));
    let spread = &panel["spread"];
    assert!(share(spread) > 0.0 && spread["ci95"]["high"].is_number() && spread["low_judge"].is_string(), "{panel}");
    let page = bench.run(["report", "three"]).expect_code(0).stdout;
    let at = |words: &str| page.lines().position(|line| line.contains(words));
    assert!(
        at("the judge moves this by") < at("openai:gpt-4.1-mini ") && at("openai:gpt-4.1-mini ").is_some(),
        "{page}"
    );
    let told = bench.run(["report", "three", "--full"]).expect_code(0).stdout;
    assert!(told.contains("majority of the judges") && told.contains("Against the majority of the others"), "{told}");
}

#[test]
fn what_cannot_be_a_panel_is_refused_before_anything_is_called() {
    let provider = Provider::start(&["--judge", "reference"]);
    let bench = provider.bench();
    let refused = |judges: &[&str], words: &str| {
        let args = ["submit", "--dataset", "locomo-sim", "--preset", "quick"];
        let refused = bench.run(args.iter().chain(judges)).expect_code(2).stderr;
        assert!(refused.contains(words), "{judges:?}: {refused}");
    };
    refused(&["--judge", "openai:gpt-4o=20"], "the first judge grades all questions");
    refused(&["--judge", "openai:gpt-4o-mini", "--judge", "openai:gpt-4o=1"], "at least 2");
    refused(&["--judge", "openai:gpt-4o-mini", "--judge", "openai:gpt-4o=x"], "openai:gpt-4o=200");
    let counted = ["--judge", "openai:gpt-4o-mini", "--judge", "openai:gpt-4o=20", "--count-as", "zep"];
    refused(&counted, "judgements of all questions");
    let heads = ["--judge", "openai:gpt-4o-mini", "--judge", "openai:gpt-4o=20", "--headline", "judge-2"];
    refused(&heads, "a headline is of all");
    assert_eq!(provider.count("requests"), 0);
    // a sample of all is no sample
    let args = ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--json", "--display", "none"];
    let all = ["--judge", "openai:gpt-4o-mini", "--judge", "openai:gpt-4o=5000"];
    let run = bench.run(args.iter().chain(&all)).expect_code(0).json();
    assert!(run["panel"]["sampled"].is_null() && run["panel"]["mean"].is_object(), "{}", run["panel"]);
}
