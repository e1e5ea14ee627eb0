//! Whose stored replies a run uses (P9), and providers other than OpenAI.

use bench_testkit::provider::{KEY, PASSING_FAULTS, Provider};
use serde_json::{Value, json};

fn usd(report: &Value, key: &str) -> f64 {
    report["usage"]["total"][key].as_f64().unwrap_or_else(|| panic!("no {key}: {}", report["usage"]["total"]))
}

#[test]
fn p9_shared_replies_cost_nothing_and_say_whose_they_are() {
    let provider = Provider::start(&["--price", "gpt-4o-mini=0.15/0.60"]);
    let bench = provider.bench();
    let first = bench.run(provider.submit(&["--run-id", "first"])).expect_code(0).json();
    let asked = provider.count("requests");
    // lineage: another run, and nothing of the first
    let apart = bench.run(provider.submit(&["--run-id", "apart"])).expect_code(0).json();
    assert_eq!(apart["total"]["cached_calls"], 0);
    assert_eq!(apart["run"]["calls_of"], json!([]));
    assert_eq!(provider.count("requests"), 2 * asked, "an independent repeat draws anew");
    // shared: everything is there
    let shared = bench.run(provider.submit(&["--run-id", "shared", "--cache", "shared"])).expect_code(0).json();
    assert_eq!(provider.count("requests"), 2 * asked, "nothing was sent");
    assert_eq!((&shared["total"]["calls"], &shared["total"]["cached_calls"]), (&json!(0), &json!(100)));
    assert_eq!(shared["run"]["calls_of"], json!(["apart"]), "the newest replies");
    assert_eq!(usd(&shared, "usd"), 0.0);
    assert!((usd(&shared, "usd_list") - usd(&first, "usd")).abs() < 1e-12);
    assert_eq!(shared["result_digest"], first["result_digest"]);
    let measured = shared["latency_ms"]["answer"]["n"].as_u64().unwrap_or(0);
    assert_eq!(measured, 0, "latency is that of real calls");
    let compared = bench.run(["compare", "apart", "shared", "--json"]).expect_code(0).json();
    assert_eq!(compared["independent"], false);
    assert!(compared["notes"].to_string().contains("shared used stored answers of apart"), "{}", compared["notes"]);
    // off and refresh pay, but only the replies of refresh are found by others
    for (id, scope) in [("fresh", "refresh"), ("private", "off")] {
        let report = bench.run(provider.submit(&["--run-id", id, "--cache", scope])).expect_code(0).json();
        assert_eq!((&report["total"]["cached_calls"], &report["spec"]["cache"]), (&json!(0), &json!(scope)));
    }
    assert_eq!(provider.count("requests"), 4 * asked);
    let again = bench.run(provider.submit(&["--run-id", "again", "--cache", "shared"])).expect_code(0).json();
    assert_eq!(again["run"]["calls_of"], json!(["fresh"]));
    assert_eq!(provider.count("requests"), 4 * asked);
    // those that are forked from it find them, unless they are to draw anew
    let rejudge = ["rejudge", "private", "--judge", "openai:gpt-4o-mini", "--display", "none"];
    let _ = bench.run(rejudge).expect_code(0);
    assert_eq!(provider.count("requests"), 4 * asked, "nothing was sent");
    let _ = bench.run(rejudge.iter().chain(&["--set", "run.cache=off"])).expect_code(0);
    assert_eq!(provider.count("requests"), 4 * asked + 50, "each answer was judged anew");
    let wrong = bench.run(provider.submit(&["--cache", "sharde"])).expect_code(2);
    assert!(wrong.stderr.contains("lineage, shared, off, refresh"), "{}", wrong.stderr);
}

/// A working folder whose Anthropic is the provider; another key would be refused.
fn anthropic(provider: &Provider) -> bench_testkit::bench::Bench {
    let root = provider.base_url().trim_end_matches("/v1").to_owned();
    bench_testkit::bench::Bench::new().with_env("ANTHROPIC_BASE_URL", root).with_env("ANTHROPIC_API_KEY", KEY)
}

const CLAUDE: [&str; 8] = [
    "submit",
    "--dataset",
    "locomo-sim",
    "--preset=quick",
    "--answerer=anthropic:claude-haiku-4-5-20251001",
    "--judge=anthropic:claude-haiku-4-5-20251001",
    "--json",
    "--run-id=claude",
];

#[test]
fn anthropics_messages_are_answered_judged_and_priced_to_the_last_token() {
    let price = ["--price", "claude-haiku-4-5-20251001=1/5/0.10/1.25"];
    let plain = Provider::start(&[&["--api-key", KEY, "--cached-share", "0.25"], price.as_slice()].concat());
    let cached = ["--set", r#"judge.params={"cache_control": {"type": "ephemeral"}, "seed": 7}"#];
    let report = anthropic(&plain).run(CLAUDE.iter().chain(&cached)).expect_code(0).json();
    assert_eq!(report["outcomes"]["coverage"], 1.0);
    assert_eq!(report["total"]["calls"], 100);
    let stats = plain.stats();
    assert!(stats["cached_tokens"].as_u64() > Some(0) && stats["cache_write_tokens"].as_u64() > Some(0), "{stats}");
    assert_eq!(report["total"]["prompt_tokens"], stats["prompt_tokens"]);
    assert_eq!(report["total"]["completion_tokens"], stats["completion_tokens"]);
    let theirs = plain.paid();
    assert!((usd(&report, "usd") - theirs).abs() < 1e-12, "{} against {theirs}", usd(&report, "usd"));
    // a parameter that the API does not know was not sent, or it would have been refused
    let flags = ["--api-key", KEY, "--cached-share", "0.25", "--fault-503", "0.1", "--fault-500", "0.05"];
    let faulty = Provider::start(&[&flags[..], &PASSING_FAULTS].concat());
    let fast = ["--set", "backoff.initial_interval=20ms", "--set", "backoff.max_interval=100ms"];
    let again = anthropic(&faulty).run(CLAUDE.iter().chain(&cached).chain(&fast)).expect_code(0).json();
    assert_eq!(again["result_digest"], report["result_digest"], "faults change no digest");
    assert!(faulty.stats()["by_endpoint"]["chat"]["529"].as_u64() > Some(0), "overloaded as Anthropic says it");
}

#[test]
fn anthropics_refusals_of_account_and_model_stop_the_run_with_its_words() {
    for (flags, words) in [
        (&["--quota-after", "20"][..], "credit balance"),
        (&["--bad-key", KEY][..], "x-api-key"),
        (&["--unknown-model", "claude-haiku-4-5-20251001"][..], "model"),
    ] {
        let provider = Provider::start(flags);
        let stopped = anthropic(&provider).run(CLAUDE.iter().chain(&["--concurrency", "4"])).expect_code(3);
        assert!(stopped.stderr.contains(words), "{}", stopped.stderr);
        assert!(stopped.stderr.contains("bench-coord resume claude"), "{}", stopped.stderr);
        assert!(provider.count("requests") < 60, "calls went on after the account was refused");
    }
}

#[test]
fn azures_deployments_have_their_own_paths_and_keys() {
    let provider = Provider::start(&["--api-key", KEY, "--price", "my-gpt=1/2"]);
    let root = provider.base_url().trim_end_matches("/v1").to_owned();
    let azure = bench_testkit::bench::Bench::new()
        .with_env("AZURE_OPENAI_ENDPOINT", &root)
        .with_env("AZURE_OPENAI_API_KEY", KEY)
        // the judge is elsewhere, with a key of its own
        .with_env("BENCH_JUDGE_BASE_URL", provider.base_url())
        .with_env("BENCH_JUDGE_API_KEY", KEY);
    let submit =
        ["submit", "--dataset=locomo-sim", "--preset=quick", "--answerer=azure:my-gpt", "--judge=openai:my-gpt"];
    let unpriced = azure.run(submit).expect_code(2);
    assert!(unpriced.stderr.contains("--price"), "a deployment's name has no price: {}", unpriced.stderr);
    let report = azure.run(submit.iter().chain(&["--price=1,2", "--json"])).expect_code(0).json();
    assert_eq!(report["outcomes"]["coverage"], 1.0);
    assert_eq!(report["spec"]["answerer"], "azure:my-gpt");
    let theirs = provider.paid();
    assert!((usd(&report, "usd") - theirs).abs() < 1e-12);
}

#[test]
fn prices_of_a_file_come_before_the_built_in_ones() {
    let provider = Provider::start(&["--price", "gpt-4o-mini=3/7"]);
    let bench = provider.bench();
    let file = |output: &str| {
        let text = format!(
            r#"{{"version": 2, "date": "2026-01-01", "models": [{{"model": "gpt-4o-mini", "input": "3", "output": "{output}"}}]}}"#
        );
        std::fs::write(bench.path().join("prices.json"), text).expect("is written");
    };
    file("seven");
    let set = ["--set", "models.price_file=prices.json"];
    let wrong = bench.run(provider.submit(&set)).expect_code(2);
    assert!(wrong.stderr.contains("gpt-4o-mini: 'seven' is no price"), "{}", wrong.stderr);
    file("7");
    let report = bench.run(provider.submit(&set)).expect_code(0).json();
    let theirs = provider.paid();
    assert!((usd(&report, "usd") - theirs).abs() < 1e-12, "{} against {theirs}", usd(&report, "usd"));
}

/// Relative difference of an expected and a measured number.
fn off(expected: &Value, measured: &Value) -> f64 {
    let (expected, measured) = (expected.as_f64().expect("a number"), measured.as_f64().expect("a number"));
    (expected - measured).abs() / measured
}

#[test]
fn estimates_are_within_a_tenth_of_the_run() {
    // the provider counts by the same vocabulary as the model
    let counted = ["--tokens", "o200k", "--price", "gpt-4o-mini=0.15/0.60"];
    let provider = Provider::start(&[&counted[..], &["--latency-ms", "20", "--rpm", "1500"]].concat());
    let bench = provider.bench();
    let limited = ["--max-rpm", "1500"];
    let dry = bench.run(provider.submit(&["--dry-run"]).into_iter().chain(limited)).expect_code(0).json();
    let estimate =
        bench.run(provider.submit(&[]).into_iter().skip(1).chain(limited).fold(vec!["estimate"], |mut all, arg| {
            all.push(arg);
            all
        }));
    assert_eq!(estimate.expect_code(0).json(), dry, "the verb and the flag say the same");
    assert!(!bench.path().join(".bench/bench.db").exists(), "an estimate leaves nothing behind");
    let began = std::time::Instant::now();
    let report = bench.run(provider.submit(&["--run-id", "real"]).into_iter().chain(limited)).expect_code(0).json();
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    let total = &report["total"];
    assert_eq!(dry["calls"], total["calls"]);
    for key in ["prompt_tokens", "completion_tokens"] {
        assert!(off(&dry[key], &total[key]) <= 0.1, "{key}: {} expected, {} measured", dry[key], total[key]);
    }
    let (low, expected, worst) = (&dry["usd"]["low"], &dry["usd"]["expected"], &dry["usd"]["worst"]);
    assert!(off(expected, &total["usd"]) <= 0.1, "${expected} expected, ${} paid", total["usd"]);
    let paid = total["usd"].as_f64();
    assert!(low.as_f64() <= paid && paid <= worst.as_f64(), "{low} to {worst} do not hold {paid:?}");
    // 100 calls at 1,500 a minute; a busy machine may be slower than the limit, never faster
    let told = dry["minutes"].as_f64().expect("minutes");
    assert!((told - 100.0 / 1500.0).abs() < 0.01 && minutes > told * 0.9, "{told} min told, {minutes} min measured");
    assert!(dry["interval"]["naive_points"].as_f64() > Some(0.0), "{dry}");
    // what the store has seen is known better the next time
    let second = bench.run(provider.submit(&["--dry-run"])).expect_code(0).json();
    assert!(off(&second["completion_tokens"], &total["completion_tokens"]) <= 0.05, "{second}");
}
