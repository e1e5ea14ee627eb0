//! Embeddings are calls like any other: counted, capped, paced, stored, and never paid twice.

use bench_testkit::{
    bench::{Bench, signal, submit_sim, wait},
    provider::{KEY, Provider},
};
use serde_json::{Value, json};

const PRICED: [&str; 4] = ["--price", "text-embedding-3-small=0.02/0", "--price", "gpt-4o-mini=0.15/0.60"];

/// `submit` of 50 questions to `vector`, answered without a model. No probe: what its recalls embed is paid again.
fn submit<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let fixed = ["--preset", "quick", "--max-banks", "5", "--system", "vector", "--latency-probe", "off"];
    submit_sim(&[&fixed[..], more].concat())
}

/// Requests for embeddings that were answered.
fn embedded(provider: &Provider) -> u64 {
    provider.stats()["by_endpoint"]["embeddings"]["200"].as_u64().unwrap_or(0)
}

fn usd(report: &Value, phase: &str) -> f64 {
    report["usage"][phase]["usd"].as_f64().unwrap_or_else(|| panic!("no dollars of {phase}: {}", report["usage"]))
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

#[test]
fn embeddings_are_estimated_counted_to_the_last_token_and_paid_once() {
    let provider = Provider::start(&[&PRICED[..], &["--tokens", "o200k"]].concat());
    let bench = provider.bench();
    let models = ["--answerer", "openai:gpt-4o-mini", "--judge", "openai:gpt-4o-mini"];
    let first = [&models[..], &["--run-id", "first"]].concat();
    let told = bench.run(submit(&first).into_iter().chain(["--dry-run"])).expect_code(0).json();
    let report = bench.run(submit(&first)).expect_code(0).json();
    let stats = provider.stats();
    let asked = embedded(&provider);
    let usage = &report["usage"];
    assert_eq!(usage["recall"]["calls"], 50, "one for each question");
    assert_eq!(usage["retain"]["calls"].as_u64().map(|calls| calls + 50), Some(asked), "every session once");
    for (phases, model) in [(["retain", "recall"], "text-embedding-3-small"), (["answer", "judge"], "gpt-4o-mini")] {
        let theirs = &stats["by_model"][model];
        for key in ["prompt_tokens", "completion_tokens"] {
            let ours = phases.iter().map(|phase| usage[*phase][key].as_u64().expect("a count")).sum::<u64>();
            assert_eq!(theirs[key], json!(ours), "{key} of {model}");
        }
        let ours: f64 = phases.iter().map(|phase| usd(&report, phase)).sum();
        assert!((number(&theirs["cost_pico_usd"]) / 1e12 - ours).abs() < 1e-12, "{model}: ${ours}");
    }
    for phase in told["phases"].as_array().expect("phases") {
        let name = phase["phase"].as_str().expect("a name");
        let (low, worst) = (number(&phase["usd"]["low"]), number(&phase["usd"]["worst"]));
        let real = usd(&report, name);
        assert!(low <= real && real <= worst, "{name}: {low} to {worst} do not hold {real}");
        if matches!(name, "retain" | "recall") {
            let (told, real) = (number(&phase["prompt_tokens"]), number(&usage[name]["prompt_tokens"]));
            assert!((told - real).abs() <= 0.1 * real, "{name}: {told} tokens told, {real} counted");
            assert_eq!(phase["calls"], usage[name]["calls"], "{name}");
        }
    }
    let model = report["models"].as_array().and_then(|models| models.last()).expect("models");
    assert_eq!((&model["role"], &model["model"]), (&json!("embeddings"), &json!("openai:text-embedding-3-small")));
    assert_eq!(model["served"][0]["model"], "text-embedding-3-small");
    // embeddings are no draw: another run pays for none of them, and is not called dependent for that
    let again = bench.run(submit(&[&models[..], &["--run-id", "again"]].concat())).expect_code(0).json();
    assert_eq!(embedded(&provider), asked);
    assert_eq!((usd(&again, "retain"), usd(&again, "recall")), (0.0, 0.0));
    assert_eq!(again["usage"]["retain"]["cached_calls"], usage["retain"]["calls"]);
    let (list, total) = (number(&again["usage"]["total"]["usd_list"]), number(&usage["total"]["usd"]));
    assert!((list - total).abs() < 1e-12, "${list} as if uncached, ${total} the first time");
    assert_eq!(again["run"]["calls_of"], json!([]));
    assert_eq!(again["result_digest"], report["result_digest"]);
    // a run that shares nothing pays again, once
    let _ = bench.run(submit(&["--cache", "off"])).expect_code(0);
    assert_eq!(embedded(&provider), 2 * asked);
}

#[test]
fn a_fork_that_searches_for_more_is_estimated_with_what_it_embeds() {
    let provider = Provider::start(&[&PRICED[..], &["--tokens", "o200k"]].concat());
    let bench = provider.bench();
    let models = ["--answerer", "openai:gpt-4o-mini"];
    let _ = bench.run(submit(&[&models[..], &["--run-id", "first"]].concat())).expect_code(0);
    let mut before = embedded(&provider);
    let fork = ["submit", "--fork", "first", "--from", "recall", "--latency-probe", "off", "--json"];
    for (run, more) in
        [("rephrased", &["--multi-query", "2"][..]), ("agent", &["--scenario", "agentic", "--max-recalls", "3"])]
    {
        let fork = [&fork[..], more].concat();
        let told = bench.run(fork.iter().chain(&["--dry-run"])).expect_code(0).json();
        // a row for what words the queries, one for what embeds them
        let rows = || told["phases"].as_array().into_iter().flatten().filter(|phase| phase["phase"] == "recall");
        let calls: u64 = rows().filter_map(|row| row["calls"].as_u64()).sum();
        let worst: f64 = rows().map(|row| number(&row["usd"]["worst"])).sum();
        // answers that a fork makes anew may find nothing and make it INVALID
        let done = bench.run(fork.iter().chain(&["--run-id", run]));
        assert!([0, 5].contains(&done.code), "{run}: {}", done.stderr);
        let report = done.json();
        let paid = usd(&report, "recall");
        assert!(paid > 0.0 && paid <= worst, "{run}: ${paid} of {told}");
        let asked = embedded(&provider) - before;
        assert!(asked > 0 && asked <= calls, "{run}: {asked} requests of {told}");
        before += asked;
    }
}

#[test]
fn p10_embeddings_are_under_the_cap_and_go_on_where_they_stopped() {
    let provider = Provider::start(&[&PRICED[..], &["--tokens", "o200k", "--latency-ms", "10"]].concat());
    let bench = provider.bench();
    let capped = ["--run-id", "r", "--concurrency", "4", "--set", "run.max_cost_retain=0.00005"];
    let paused = bench.run(submit(&capped)).expect_code(3);
    assert!(paused.stderr.contains("run.max_cost_retain"), "{}", paused.stderr);
    assert!(provider.paid() <= 0.00005 && embedded(&provider) > 0, "${}", provider.paid());
    let done = bench.run(["resume", "r", "--set", "run.max_cost_retain=1", "--json"]).expect_code(0).json();
    assert_eq!(done["outcomes"]["coverage"], 1.0);
    assert_eq!(provider.repeated_requests(), 0, "nothing was paid twice");
    assert!((usd(&done, "total") - provider.paid()).abs() < 1e-12);
    assert_eq!(done["usage"]["total"]["usd_cap"], 20.0, "embeddings alone make a run a paid one");
}

#[test]
fn embeddings_without_a_price_an_account_or_a_model_are_refused() {
    let provider = Provider::start(&["--unknown-model", "no-such-model"]);
    let bench = provider.bench();
    let unpriced = bench.run(submit(&["--set", "vector.model=my-embedder"])).expect_code(2);
    assert!(unpriced.stderr.contains("no price is known for my-embedder"), "{}", unpriced.stderr);
    let nobody = bench.run(submit(&["--set", "vector.account=nobody"])).expect_code(2);
    assert!(nobody.stderr.contains("vector.account=nobody"), "{}", nobody.stderr);
    let keyless = Bench::new().run(submit(&[])).expect_code(2);
    assert!(keyless.stderr.contains("OPENAI_API_KEY"), "{}", keyless.stderr);
    let missing = ["--set", "vector.model=no-such-model", "--price", "1,1", "--run-id", "gone"];
    let stopped = bench.run(submit(&missing)).expect_code(3);
    assert!(stopped.stderr.contains("no-such-model") && stopped.stderr.contains("resume gone"), "{}", stopped.stderr);
}

#[test]
fn an_account_that_is_used_up_stops_the_run_with_the_providers_words() {
    let provider = Provider::start(&[&PRICED[..], &["--quota-after", "5"]].concat());
    let stopped = provider.bench().run(submit(&["--run-id", "stopped", "--concurrency", "4"])).expect_code(3);
    assert!(stopped.stderr.contains("quota"), "{}", stopped.stderr);
    assert!(provider.count("requests") < 60, "calls went on after the account was refused");
}

#[test]
fn p24_embeddings_keep_to_an_allowance_of_their_own() {
    let provider = Provider::start(&[&PRICED[..], &["--rpm", "1200"]].concat());
    let report = provider.bench().run(submit(&["--max-rpm", "1200"])).expect_code(0).json();
    assert_eq!(provider.count("rate_limited"), 0);
    assert!(number(&report["usage"]["retain"]["calls"]) > 20.0, "more than the burst: {}", report["usage"]);
}

#[test]
fn faults_of_embeddings_never_change_a_digest() {
    let expected = Provider::start(&PRICED).bench().run(submit(&[])).expect_code(0).json();
    let faults = ["--fault-500", "0.1", "--fault-cut", "0.1", "--fault-garbage", "0.1"];
    let provider = Provider::start(&[&PRICED[..], &faults].concat());
    let fast = ["--set", "backoff.initial_interval=10ms", "--set", "backoff.max_interval=50ms", "--retries", "12"];
    let report = provider.bench().run(submit(&fast)).expect_code(0).json();
    assert_eq!(report["result_digest"], expected["result_digest"]);
    assert!(number(&report["usage"]["retain"]["retries"]) > 0.0, "{}", report["usage"]);
    let total = &report["usage"]["total"];
    assert!(provider.paid() <= number(&total["usd_booked"]) + 1e-12, "{total}");
}

#[test]
fn embeddings_that_a_kill_cut_off_are_made_again_and_no_others() {
    let provider = Provider::start(&[&PRICED[..], &["--latency-ms", "40"]].concat());
    let bench = provider.bench();
    let child = bench.start(submit(&["--run-id", "victim", "--set", "models.max_concurrency=4"]));
    provider.wait_for_requests(12);
    signal(&child, "KILL");
    let _ = wait(child);
    let before = provider.count("requests");
    let report = bench.run(["resume", "victim", "--json"]).expect_code(0).json();
    assert_eq!(report["outcomes"]["coverage"], 1.0);
    let whole = number(&report["usage"]["retain"]["calls"]) + number(&report["usage"]["recall"]["calls"]);
    assert!(provider.count("requests") >= before && (provider.count("answers") as f64) >= whole);
    assert!(provider.paid() <= number(&report["usage"]["total"]["usd_booked"]) + 1e-12, "{}", report["usage"]["total"]);
}

#[test]
fn p32_embeddings_may_come_from_elsewhere_with_a_key_of_their_own() {
    let (chat, embeds) =
        (Provider::start(&PRICED), Provider::start(&[&PRICED[..], &["--api-key", "sk-other"]].concat()));
    let bench = Bench::new()
        .with_env("OPENAI_BASE_URL", chat.base_url())
        .with_env("OPENAI_API_KEY", KEY)
        .with_env("BENCH_EMBEDDER_BASE_URL", embeds.base_url())
        .with_env("BENCH_EMBEDDER_API_KEY", "sk-other");
    let report = bench.run(submit(&["--answerer", "openai:gpt-4o-mini"])).expect_code(0).json();
    assert_eq!(report["outcomes"]["coverage"], 1.0);
    assert_eq!((embedded(&chat), embedded(&embeds) > 50), (0, true));
}
