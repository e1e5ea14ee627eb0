//! Runs with a model as answerer and judge, against the simulated provider: faults, limits, money, keys.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
    time::{Duration, Instant},
};

use bench_testkit::{
    process::wait_until,
    provider::{KEY, PASSING_FAULTS, Provider},
};
use serde_json::{Value, json};

#[test]
fn faults_never_change_a_digest() {
    let expected = Provider::start(&[]).digest(&[]);
    let flags = ["--fault-500", "0.05", "--fault-503", "0.05", "--fault-429", "0.05", "--fault-hang", "0.02"];
    let faulty = Provider::start(&[&flags[..], &PASSING_FAULTS].concat());
    let bench = faulty.bench();
    let fast = [
        "--set",
        "backoff.initial_interval=20ms",
        "--set",
        "backoff.max_interval=100ms",
        // what hangs is given up; a busy machine may be slow too
        "--set",
        "models.timeout=2s",
        "--retries",
        "12",
    ];
    let report = bench.run(faulty.submit(&fast)).expect_code(0).json();
    assert_eq!(report["result_digest"].as_str(), Some(expected.as_str()));
    assert_eq!(report["outcomes"]["coverage"], 1.0);
    assert!(report["total"]["retries"].as_u64() > Some(5), "the faults were really met: {}", report["total"]);
}

#[test]
fn a_provider_that_stays_broken_pauses_the_run_and_is_never_a_wrong_answer() {
    let broken = Provider::start(&["--fault-500", "1", "--permanent-faults"]);
    let bench = broken.bench();
    let fast = ["--outage-timeout", "1", "--set", "backoff.initial_interval=5ms", "--run-id", "down"];
    let paused = bench.run(broken.submit(&fast)).expect_code(3);
    assert!(paused.stderr.contains("has been away"), "{}", paused.stderr);
    let report = bench.run(["report", "down", "--format", "json"]).expect_code(0).json();
    assert_eq!(report["outcomes"]["infra_error"], 0, "nothing is given up because a provider is away");
    assert_eq!(report["outcomes"]["scored"], 0);
    assert_eq!(report["headline"]["value"], Value::Null, "nothing was scored: no score may be invented");
    assert_eq!(report["run"]["verdict"], "INVALID");

    let healthy = Provider::start(&[]);
    let expected = healthy.digest(&[]);
    let mended = bench
        .command(["resume", "down", "--json", "--outage-timeout", "60"])
        .env("OPENAI_BASE_URL", healthy.base_url())
        .spawn()
        .expect("starts");
    let mended = bench_testkit::bench::wait(mended).expect_code(0).json();
    assert_eq!(mended["result_digest"].as_str(), Some(expected.as_str()));
}

#[test]
fn the_providers_count_of_tokens_and_dollars_is_ours() {
    // by the model's own vocabulary, a part of the prompts from a cache, and with faults that are paid for nothing
    let counted = ["--tokens", "o200k", "--cached-share", "0.3", "--price", "gpt-4o-mini=0.15/0.60/0.075"];
    let provider = Provider::start(&counted);
    let report = provider.bench().run(provider.submit(&[])).expect_code(0).json();
    assert!(provider.count("cached_tokens") > 0);
    let stats = provider.stats();
    assert_eq!(report["total"]["calls"], 100);
    assert_eq!(report["total"]["prompt_tokens"], stats["prompt_tokens"]);
    assert_eq!(report["total"]["completion_tokens"], stats["completion_tokens"]);
    let ours = report["total"]["usd"].as_f64().expect("dollars");
    let theirs = provider.paid();
    assert!((ours - theirs).abs() < 1e-12, "{ours} against {theirs}");
    assert_eq!(report["headline"]["metric"], "judge");
    assert_eq!(report["spec"]["judge"], "openai:gpt-4o-mini");
}

#[test]
fn a_spent_budget_pauses_and_a_higher_cap_goes_on() {
    let provider = Provider::start(&["--latency-ms", "5", "--price", "gpt-4o-mini=0.15/0.60"]);
    let bench = provider.bench();
    let paused = bench.run(provider.submit(&["--run-id", "capped", "--max-cost", "0.003"])).expect_code(3);
    assert!(paused.stderr.contains("--max-cost"), "{}", paused.stderr);
    let spent = provider.paid();
    assert!(spent <= 0.003, "${spent} is above the cap");
    let status = bench.run(["status", "capped", "--json"]).expect_code(0).json();
    assert_eq!(status["status"], "paused");
    let resumed = bench.run(["resume", "capped", "--max-cost", "1", "--json"]).expect_code(0).json();
    assert_eq!(resumed["outcomes"]["coverage"], 1.0);
    assert_eq!(provider.repeated_requests(), 0, "nothing was paid twice");
}

#[test]
fn quota_and_bad_keys_stop_the_run_with_the_providers_words() {
    for (flags, word) in [(&["--quota-after", "20"][..], "quota"), (&["--bad-key", KEY][..], "key")] {
        let provider = Provider::start(flags);
        let bench = provider.bench();
        let stopped = bench.run(provider.submit(&["--run-id", "stopped", "--concurrency", "4"])).expect_code(3);
        assert!(stopped.stderr.to_lowercase().contains(word), "{}", stopped.stderr);
        assert!(stopped.stderr.contains("bench-coord resume stopped"), "{}", stopped.stderr);
        assert!(provider.count("requests") < 60, "calls went on after the account was refused");
    }
}

#[test]
fn p39_a_refusal_of_every_request_pauses_the_run_before_it_is_spent_and_resume_goes_on() {
    let provider = Provider::start(&[]);
    let expected = provider.digest(&[]);
    let asked = provider.count("requests");
    provider.outage(&json!({"kind": "status", "status": 400, "message": "Unsupported parameter: 'temperature'"}));
    let bench = provider.bench();
    let stopped = bench.run(provider.submit(&["--run-id", "refused", "--concurrency", "4"])).expect_code(3);
    assert!(stopped.stderr.contains("Unsupported parameter: 'temperature'"), "{}", stopped.stderr);
    assert!(stopped.stderr.contains("bench-coord resume refused"), "{}", stopped.stderr);
    let wasted = provider.count("requests") - asked;
    assert!(wasted <= 5, "four questions and one probe, not {wasted}");
    provider.end_outages();
    let report = bench.run(["resume", "refused", "--json"]).expect_code(0).json();
    assert_eq!((&report["outcomes"]["coverage"], report["result_digest"].as_str()), (&json!(1.0), Some(&*expected)));
    // one question of many that is refused is that question's own failure
    provider.outage(&json!({"kind": "status", "status": 400, "times": 1}));
    let report = provider.bench().run(provider.submit(&["--concurrency", "1"])).json();
    assert_eq!(report["errors"]["bad_request"], 1, "{}", report["errors"]);
}

#[test]
fn p40_a_provider_that_asks_for_a_day_is_believed_for_five_minutes_and_resume_asks_at_once() {
    let provider = Provider::start(&["--latency-ms", "5"]);
    let expected = provider.digest(&[]);
    let day = provider.outage(&json!({"kind": "status", "status": 429, "retry_after_s": 86_400, "times": 1}));
    let bench = provider.bench();
    let mut held = bench.command(provider.submit(&["--run-id", "held"]));
    let mut held = held.stderr(Stdio::piped()).spawn().expect("starts");
    provider.wait_for_end_of(day, Duration::from_secs(30));
    // what tasks are given back with: the account's hold, or the reply of the call that met it where that was the last
    let says_why = |text: &str| text.contains("asked to wait") || text.contains("the provider answered 429");
    wait_until("the run says what it waits for", Duration::from_secs(60), || {
        says_why(&bench.run(["status", "held", "--json"]).json()["why"].to_string())
    });
    let progress = BufReader::new(held.stderr.take().expect("is piped")).lines().map_while(Result::ok);
    assert!({ progress }.any(|line| line.contains("questions · ") && says_why(&line)), "progress says why");
    bench_testkit::bench::signal(&held, "INT");
    assert_eq!(held.wait().expect("ends").code(), Some(3));
    let began = Instant::now();
    let report = bench.run(["resume", "held", "--json"]).expect_code(0).json();
    assert_eq!((&report["outcomes"]["coverage"], report["result_digest"].as_str()), (&json!(1.0), Some(&*expected)));
    assert!(began.elapsed() < Duration::from_secs(20), "resume waited for {:?}", began.elapsed());
}

#[test]
fn replies_that_do_not_end_by_themselves_are_told_apart() {
    let submit =
        ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--answerer", "openai:gpt-4o-mini", "--json"];
    let fast = ["--set", "backoff.initial_interval=5ms", "--set", "backoff.max_interval=20ms"];
    let provider = Provider::start(&["--fault-length", "0.2", "--fault-empty", "0.2"]);
    let bench = provider.bench();
    let report = bench.run(submit.iter().chain(&["--run-id", "r"]).chain(&fast)).json();
    assert!(report["replies"]["length"].as_u64() > Some(0), "{}", report["replies"]);
    assert_eq!(report["replies"]["empty"], provider.stats()["faults"]["empty"]);
    let shown = bench.run(["report", "r", "--format", "md"]).expect_code(0);
    assert!(shown.stdout.contains("Answers that did not end by themselves"), "{}", shown.stdout);
    // what the provider withholds is no answer, and no wrong one either
    let provider = Provider::start(&["--fault-filter", "0.2"]);
    let report = provider.bench().run(submit.iter().chain(&fast)).json();
    let withheld = report["errors"]["content_filter"].as_u64();
    assert!(withheld > Some(0), "{}", report["errors"]);
    assert_eq!(report["outcomes"]["infra_error"].as_u64(), withheld);
    assert_eq!(provider.count("requests"), 50, "what is withheld is not asked for, and paid, again");
    // a refusal in the model's own words is its answer; of a judge it is no verdict
    let provider = Provider::start(&["--fault-refusal", "0.2"]);
    let report = provider.bench().run(submit.iter().chain(&fast)).expect_code(0).json();
    assert!(report["replies"]["refusal"].as_u64() > Some(0), "{}", report["replies"]);
    assert_eq!(report["replies"]["refusal"], provider.stats()["faults"]["refusal"]);
    assert_eq!(report["outcomes"]["infra_error"], 0);
    let provider = Provider::start(&["--fault-refusal", "0.2"]);
    let report = provider.bench().run(provider.submit(&[])).json();
    let refused = report["errors"]["refusal"].as_u64();
    assert!(refused > Some(0), "{}", report["errors"]);
    assert_eq!(report["outcomes"]["infra_error"].as_u64(), refused);
    assert_eq!(provider.repeated_requests(), 0);
}

#[test]
fn several_votes_are_independent_draws_and_their_median_counts() {
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let report = bench.run(provider.submit(&["--votes", "3", "--run-id", "voted"])).expect_code(0).json();
    let reasons =
        ["submit", "--dataset=locomo-sim", "--preset=quick", "--judge=openai:gpt-5-mini", "--votes=3", "--dry-run"];
    let warned = bench.run(reasons).expect_code(0);
    assert!(warned.stderr.contains("openai:gpt-5-mini takes no temperature"), "{}", warned.stderr);
    assert_eq!(report["total"]["calls"], 50 + 150);
    let questions = bench.questions("voted");
    assert!(questions.iter().all(|q| q["judgements"].as_array().map(Vec::len) == Some(3)));
    let split = questions.iter().filter(|q| {
        let verdicts: std::collections::BTreeSet<&str> =
            q["judgements"].as_array().into_iter().flatten().filter_map(|j| j["verdict"].as_str()).collect();
        verdicts.len() > 1
    });
    assert!(split.count() > 0, "three draws of a judge that accepts 70 % do not always agree");
}
