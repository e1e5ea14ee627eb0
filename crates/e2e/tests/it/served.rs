//! A report says where its models were, what answered there, and how it was asked.

use bench_testkit::provider::Provider;
use serde_json::{Value, json};

/// How a provider's builds are told apart.
fn fingerprint(seed: u32) -> String {
    format!("fp_{seed:010x}")
}

fn server(provider: &Provider) -> String {
    provider.base_url().trim_start_matches("http://").trim_end_matches("/v1").to_owned()
}

#[test]
fn a_report_says_where_its_models_were_what_answered_and_how_they_were_asked() {
    // of the first provider no judgement can be read; what its URL holds beside the place is nobody's business
    let first = Provider::start(&["--fault-malformed-judge", "1", "--permanent-faults"]);
    let second = Provider::start(&["--seed", "9"]);
    let bench = first.bench().with_env("OPENAI_BASE_URL", format!("{}?tenant=sk-in-the-query", first.base_url()));
    let flags = ["--run-id", "moved", "--retries", "0"];
    let _ = bench.run(first.submit(&flags)).expect_code(5);
    let one = |provider: &Provider, seed| {
        let served = json!([{"model": "gpt-4o-mini", "system_fingerprint": fingerprint(seed)}]);
        (json!([server(provider)]), served)
    };
    let of = |report: &Value, at: usize| {
        let model = &report["models"][at];
        (model["servers"].clone(), model["served"].clone())
    };
    let report = bench.report("moved");
    assert_eq!((of(&report, 0), of(&report, 1)), (one(&first, 5), one(&first, 5)), "{}", report["models"]);
    let roles: Vec<_> =
        report["models"].as_array().expect("models").iter().map(|m| (&m["role"], &m["model"])).collect();
    assert_eq!(
        roles,
        [(&json!("answerer"), &json!("openai:gpt-4o-mini")), (&json!("judge"), &json!("openai:gpt-4o-mini"))]
    );
    assert_eq!(report["models"][1]["params"]["temperature"], 0.0, "of judges too: {}", report["models"]);

    // the judge goes on elsewhere
    let bench = bench.with_env("OPENAI_BASE_URL", second.base_url());
    let _ = bench.run(["retry", "moved", "--errors", "--json"]).expect_code(0);
    let report = bench.report("moved");
    assert_eq!(of(&report, 0), one(&first, 5), "nothing was answered again");
    let both = json!([
        {"model": "gpt-4o-mini", "system_fingerprint": fingerprint(5)},
        {"model": "gpt-4o-mini", "system_fingerprint": fingerprint(9)},
    ]);
    assert_eq!(of(&report, 1), (json!([server(&first), server(&second)]), both));

    // prompts as text once, and with each question their names
    let texts = report["spec"]["prompt_texts"].as_object().expect("texts");
    let named = report["spec"]["prompts"].as_object().expect("hashes");
    assert!(texts.keys().eq(named.keys()) && texts.values().all(Value::is_object), "{texts:?}");
    let begin = "You answer questions about conversations that took place in the past.";
    assert!(texts["answerer.answer"]["system"].as_str().is_some_and(|text| text.starts_with(begin)));
    for question in bench.questions("moved") {
        let used: Vec<&str> = question["prompts"].as_array().expect("names").iter().filter_map(Value::as_str).collect();
        assert!(used.len() == 2 && used.iter().all(|name| named.contains_key(*name)), "{question}");
        assert!(used[0].starts_with("answerer.answer") && used[1].starts_with("judge.judge-"), "{used:?}");
    }
    let page = std::fs::read_to_string(bench.path().join(".bench/runs/moved/report.html")).expect("a page");
    assert!(page.contains(begin) && page.contains(&fingerprint(9)) && page.contains(&server(&second)));
    assert!(!(page + &report.to_string()).contains("sk-in-the-query"));

    // a fork has what it takes over, and the commit of the build is known or said to be unknown
    let _ = bench.run(["rejudge", "moved", "--judge", "openai:gpt-4o", "--run-id", "again", "--json"]).expect_code(0);
    let forked = bench.report("again");
    assert_eq!(of(&forked, 0), one(&first, 5));
    assert_eq!(of(&forked, 1).0, json!([server(&second)]));
    let version = bench.run(["--version"]).expect_code(0).stdout;
    assert_eq!(bench.run(["version"]).expect_code(0).stdout, version);
    assert!(bench.run(["help", "submit"]).expect_code(0).stdout.contains("--dataset"));
    let built = version.trim().strip_prefix("bench-coord ").expect("its name");
    assert!(built.ends_with(')') && built.contains(" ("), "{built}");
    assert_eq!(forked["run"]["code_version"], built);
}
