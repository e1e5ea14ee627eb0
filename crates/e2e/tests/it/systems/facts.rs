//! `facts` with `bench-sim` as its model: newer facts in the place of older ones, calls that are estimated, counted, capped and
//! paid once, kills after which the rest is asked.

use bench_e2e::faults::PATIENCE;
use bench_testkit::{
    bench::{Bench, signal, wait},
    cluster::{Cluster, wait_until_ready},
    provider::{KEY, PASSING_FAULTS, Provider},
};
use serde_json::{Value, json};

const PRICED: [&str; 4] = ["--price", "gpt-4o-mini=0.15/0.60", "--tokens", "o200k"];

/// A run over generated dialogues in which facts change, and the questions that ask for them.
fn submit<'a>(system: &'a str, run: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let data = ["submit", "--dataset", "long-horizon", "--preset", "full", "--set", "horizon.turns=300"];
    let changing = ["--set", "horizon.seeds=2", "--category", "temporal_evolution", "--scorer", "recall@1"];
    let quiet = ["--latency-probe", "off", "--display", "none", "--json", "--run-id", run, "--system", system];
    [&data[..], &changing, &quiet, more].concat()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Chats that were answered.
fn chats(provider: &Provider) -> u64 {
    provider.stats()["by_endpoint"]["chat"]["200"].as_u64().unwrap_or(0)
}

#[test]
fn notes_beat_keywords_where_facts_change_and_are_paid_once() {
    let provider = Provider::start(&PRICED);
    let bench = provider.bench();
    let told = bench.run(submit("facts", "first", &["--dry-run"])).expect_code(0).json();
    let words = bench.run(submit("bm25", "words", &[])).expect_code(0).json();
    assert_eq!(chats(&provider), 0, "nobody is asked by keywords");
    let notes = bench.run(submit("facts", "first", &[])).expect_code(0).json();
    let mean = |report: &Value, metric: &str| {
        let scores = report["scores"].as_array().into_iter().flatten();
        scores.filter(|score| score["metric"] == metric).map(|score| number(&score["micro"])).sum::<f64>()
    };
    for metric in ["rubric", "recall@1"] {
        let (noted, said) = (mean(&notes, metric), mean(&words, metric));
        assert!(noted > said + 0.1, "{metric}: {noted} with notes, {said} by keywords");
    }

    // as estimated, counted as the provider counts, and told of the model
    let usage = &notes["usage"];
    let asked = chats(&provider);
    assert_eq!(usage["retain"]["calls"], json!(asked));
    assert!((number(&usage["total"]["usd"]) - provider.paid()).abs() < 1e-12, "{}", usage["total"]);
    let phase = told["phases"].as_array().into_iter().flatten().find(|phase| phase["phase"] == "retain");
    let phase = phase.unwrap_or_else(|| panic!("no phase of notes in {told}"));
    assert_eq!(phase["calls"], usage["retain"]["calls"]);
    let real = number(&usage["retain"]["usd"]);
    assert!(number(&phase["usd"]["low"]) <= real && real <= number(&phase["usd"]["worst"]), "{real}: {phase}");
    assert_eq!(usage["total"]["usd_cap"], 20.0, "notes alone make a run a paid one");
    let model = notes["models"].as_array().and_then(|models| models.last()).expect("models");
    assert_eq!((&model["role"], &model["model"]), (&json!("facts"), &json!("openai:gpt-4o-mini")));
    // a hit is a note at the place that it is from; what was not noted is not said to be stored
    let question = &bench.questions("first")[0];
    assert!(question["retrieved"][0]["id"].is_string(), "{question}");

    // a fork asks the same notes, another run draws its own, and one that may share pays for none
    let fork = ["submit", "--fork", "first", "--from", "recall", "--top-k", "3", "--json", "--run-id", "fork"];
    let forked = bench.run(fork.iter().chain(&["--latency-probe", "off"]));
    assert!([0, 5].contains(&forked.code), "{}", forked.stderr);
    assert_eq!(chats(&provider), asked, "notes are read back");
    let _ = bench.run(submit("facts", "second", &[])).expect_code(0);
    assert_eq!(chats(&provider), 2 * asked);
    let shared = bench.run(submit("facts", "shared", &["--cache", "shared"])).expect_code(0).json();
    assert_eq!((chats(&provider), &shared["result_digest"]), (2 * asked, &notes["result_digest"]));
    assert_eq!(shared["usage"]["retain"]["cached_calls"], json!(asked));
    assert_ne!(shared["run"]["calls_of"], json!([]), "the report says whose notes they are");
    // a run that shares nothing reads back its own
    let alone = bench.run(submit("facts", "alone", &["--cache", "off"])).expect_code(0).json();
    assert_eq!((chats(&provider), &alone["result_digest"]), (3 * asked, &notes["result_digest"]));
}

#[test]
fn p10_notes_are_under_the_cap_and_go_on_where_they_stopped() {
    let expected = Provider::start(&PRICED).bench().run(submit("facts", "whole", &[])).expect_code(0).json();
    let provider = Provider::start(&[&PRICED[..], &["--latency-ms", "40"]].concat());
    let bench = provider.bench();
    let capped = ["--set", "run.max_cost_retain=0.02", "--set", "models.max_concurrency=4"];
    let paused = bench.run(submit("facts", "r", &capped)).expect_code(3);
    assert!(paused.stderr.contains("run.max_cost_retain"), "{}", paused.stderr);
    assert!(provider.paid() <= 0.02 && chats(&provider) > 0, "${}", provider.paid());
    let before = provider.count("requests");
    let child = bench.start(["resume", "r", "--set", "run.max_cost_retain=1", "--display", "none"]);
    provider.wait_for_requests(before + 6);
    signal(&child, "KILL");
    let _ = wait(child);
    let done = bench.run(["resume", "r", "--json", "--display", "none"]).expect_code(0).json();
    assert_eq!((&done["outcomes"]["coverage"], &done["result_digest"]), (&json!(1.0), &expected["result_digest"]));
    assert!(provider.paid() <= number(&done["usage"]["total"]["usd_booked"]) + 1e-12, "{}", done["usage"]["total"]);
}

#[test]
fn notes_of_a_cluster_are_those_of_one_machine_though_a_worker_is_killed_while_it_takes_them() {
    let expected = Provider::start(&PRICED).bench().run(submit("facts", "whole", &[])).expect_code(0).json();
    let provider = Provider::start(&[&PRICED[..], &["--latency-ms", "60"]].concat());
    let cluster = Cluster::new().with_provider(provider.base_url(), KEY);
    let mut coordinator = cluster.coordinator("coordinator");
    let mut workers = ["one", "two"].map(|name| cluster.worker(name, &["--concurrency", "2"]));
    wait_until_ready(&mut coordinator);
    workers.iter_mut().for_each(wait_until_ready);
    let client = cluster.client(&submit("facts", "r", &[]));
    provider.wait_for_requests(20);
    workers[0].kill();
    workers[0] = cluster.worker("three", &["--concurrency", "2"]);
    let done = client.wait(PATIENCE).expect_code(0).json();
    assert_eq!((&done["outcomes"]["coverage"], &done["result_digest"]), (&json!(1.0), &expected["result_digest"]));
    // what the killed worker had under way is asked again, and nothing else
    let (needed, asked) = (number(&expected["usage"]["retain"]["calls"]), chats(&provider) as f64);
    assert!(needed <= asked && asked <= needed + 16.0, "{asked} requests for {needed} calls");
    assert!(provider.paid() <= number(&done["usage"]["total"]["usd_booked"]) + 1e-12, "{}", done["usage"]["total"]);
}

#[test]
fn replies_that_are_no_notes_are_asked_for_again_and_then_fail_what_rests_on_them() {
    let expected = Provider::start(&PRICED).bench().run(submit("facts", "whole", &[])).expect_code(0).json();
    let fast = ["--set", "backoff.initial_interval=10ms", "--set", "backoff.max_interval=50ms", "--retries", "12"];
    let provider = Provider::start(&[&PRICED[..], &PASSING_FAULTS, &["--fault-500", "0.1"]].concat());
    let report = provider.bench().run(submit("facts", "r", &fast)).expect_code(0).json();
    assert_eq!(report["result_digest"], expected["result_digest"]);
    assert!(number(&report["usage"]["retain"]["retries"]) > 0.0, "{}", report["usage"]);
    // a model that never replies with notes: its questions are errors, and no wrong answers
    let deaf = Provider::start(&[&PRICED[..], &["--fault-empty", "1"]].concat());
    let few = ["--retries", "1", fast[0], fast[1], fast[2], fast[3]];
    let failed = deaf.bench().run(submit("facts", "r", &few)).expect_code(5).json();
    assert_eq!(failed["outcomes"]["infra_error"], failed["outcomes"]["sample"], "{}", failed["outcomes"]);
}

#[test]
fn a_model_without_price_account_or_server_is_refused_before_the_run() {
    let provider = Provider::start(&PRICED);
    let bench = provider.bench();
    for (set, said) in [
        ("facts.model=openai:my-model", "no price is known for my-model"),
        ("facts.model=extractive", "facts.model must be a chat model such as openai:gpt-4o-mini"),
        ("facts.model=gpt-4o-mini", "facts.model must be provider:model"),
        ("facts.account=nobody", "facts.account=nobody: no such account"),
    ] {
        let refused = bench.run(submit("facts", "r", &["--set", set])).expect_code(2).stderr;
        assert!(refused.contains(said), "{said}: {refused}");
    }
    let keyless = Bench::new().run(submit("facts", "r", &[])).expect_code(2).stderr;
    assert!(keyless.contains("OPENAI_API_KEY"), "{keyless}");
    // without network and key
    let rehearsed = Bench::new().run(submit("facts", "r", &["--set", "facts.model=fake"])).expect_code(0).json();
    assert_eq!(rehearsed["outcomes"]["coverage"], 1.0);
}
