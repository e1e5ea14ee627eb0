//! A latency belongs to its conditions (P43): the probe tells the system's own, whatever the load of the run was.

use std::time::Duration;

use bench_testkit::{
    bench::{Bench, Done, signal, wait},
    fakes::Fake,
    process::wait_until,
    provider::Provider,
};
use serde_json::Value;

/// How long a test waits for what has to happen.
const PATIENCE: Duration = Duration::from_secs(120);
/// What a search of the slow system takes.
const SERVICE: Duration = Duration::from_millis(50);

/// A system that makes one search at a time.
fn slow(takes: Duration) -> (Fake, Bench) {
    let fake = Fake::start("astrocyte");
    fake.with(|world| world.searches_take = takes);
    let bench = Bench::new().with_env("ASTROCYTE_URL", fake.url());
    (fake, bench)
}

/// Questions of the runs below.
const QUESTIONS: usize = 42;

/// So many questions of four banks, and no canaries: recalls are counted.
fn submit<'a>(system: &'a str, run: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let fixed =
        ["submit", "--dataset", "locomo-sim", "--max-banks", "4", "--per-bank", "10", "--no-canaries", "--json"];
    fixed.iter().chain(&["--system", system, "--run-id", run]).chain(more).copied().collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

fn searches(fake: &Fake) -> usize {
    fake.with(|world| world.requests.iter().filter(|request| request.ends_with("/recall")).count())
}

/// The gate's rules on latencies.
fn latencies(gate: &Done) -> Vec<Value> {
    let report = gate.json();
    let checks = report["checks"].as_array().expect("rules");
    let of_latency = |check: &&Value| check["rule"].as_str().is_some_and(|rule| rule.starts_with("latency:"));
    checks.iter().filter(of_latency).cloned().collect()
}

#[test]
fn p43_a_probe_tells_the_service_time_at_any_concurrency() {
    let (fake, bench) = slow(SERVICE);
    let runs = [("c1", Some("1")), ("c4", Some("4")), ("c64", Some("64")), ("default", None)];
    let mut reports = Vec::new();
    for (run, concurrency) in runs {
        let flags: Vec<&str> = concurrency.into_iter().flat_map(|most| ["--concurrency", most]).collect();
        let report = bench.run(submit("astrocyte", run, &flags)).expect_code(0).json();
        let probe = &report["latency_probe"];
        let (p50, conditions) = (number(&probe["p50_ms"]), &probe["conditions"]);
        // the quickest of them had the machine for itself, the median of a build for tests has not
        let quickest = number(&probe["curve"][0]);
        let seen = format!("concurrency {concurrency:?}: {probe}");
        assert!((50.0..=55.0).contains(&quickest) && p50 >= quickest, "{seen}");
        assert_eq!(
            (&probe["n"], &conditions["concurrency"], &conditions["workers"]),
            (&QUESTIONS.into(), &1.into(), &1.into())
        );
        assert_eq!((&conditions["other_tasks"], &probe["failure"]), (&0.into(), &Value::Null), "{probe}");
        reports.push(report);
    }
    assert!(
        searches(&fake) <= 4 * (2 * QUESTIONS + 1),
        "a recall more of each question, and one that opens connections"
    );
    let [one, _, many, _] = &reports[..] else { panic!("four reports") };
    // the load figure stays what it is, beside the queue that it is made of
    let (queued, alone) = (number(&many["latency_ms"]["recall"]["p50"]), number(&one["latency_ms"]["recall"]["p50"]));
    assert!(queued > 2.0 * alone, "{queued} and {alone}");
    // a bank may be retained beside it
    assert_eq!(one["concurrency"]["in_flight"]["recall"]["p50"], 1, "{}", one["concurrency"]);
    assert!(number(&many["concurrency"]["in_flight"]["recall"]["p50"]) > 4.0, "{}", many["concurrency"]);
    assert_eq!((&one["concurrency"]["questions"], &many["concurrency"]["questions"]), (&1.into(), &64.into()));
    let text = bench.run(["report", "c64", "--format", "md"]).expect_code(0).stdout;
    assert!(text.contains("Latency probe") && text.contains("with at most 64 questions in flight"), "{text}");
    let page = bench.run(["report", "c64", "--format", "html"]).expect_code(0).stdout;
    assert!(page.contains("latency probe in milliseconds by share of the recalls"), "the probe has a plot of its own");
    for report in &reports {
        assert_eq!(report["result_digest"], one["result_digest"]);
        assert_eq!(report["run"]["fingerprint"], one["run"]["fingerprint"]);
    }
    // 575 ms against 57 is no regression of a system that takes 50
    for run in ["c4", "c64", "default"] {
        // 42 equal questions decide nothing about scores
        let gate = bench.run(["gate", run, "--baseline", "c1", "--json", "--allow-inconclusive"]).expect_code(0);
        let [check] = &latencies(&gate)[..] else { panic!("one latency is looked at: {}", gate.stdout) };
        assert!(check["rule"] == "latency:probe:p95" && check["outcome"] != "not_checked", "{check}");
        let compared = bench.run(["compare", "c1", run, "--json"]).expect_code(0).json();
        let latency = &compared["latency"];
        assert_eq!(latency["compared"], true, "{latency}");
        // on a machine that does nothing else they are within 1.5; the queue of the run was twelve times as long
        let ratio = number(&latency["p50_ratio"]);
        assert!((1.0 / 2.0..=2.0).contains(&ratio), "{run}: {latency}");
    }
}

#[test]
fn p43_building_is_a_phase_of_its_own_and_other_probes_are_not_compared() {
    let bench = Bench::new();
    let runs = [("whole", vec![]), ("few", vec!["--latency-probe", "5"]), ("none", vec!["--latency-probe", "off"])];
    let reports = runs.map(|(run, flags)| bench.run(submit("bm25", run, &flags)).expect_code(0).json());
    let [whole, few, none] = &reports;
    assert_eq!((&whole["latency_probe"]["n"], &few["latency_probe"]["n"]), (&QUESTIONS.into(), &5.into()));
    assert!(none["latency_probe"].is_null(), "{}", none["latency_probe"]);
    for report in [few, none] {
        assert_eq!(report["result_digest"], whole["result_digest"]);
        assert_eq!(report["run"]["fingerprint"], whole["run"]["fingerprint"]);
    }
    // one index for each bank; whoever waited for it has waited, and no recall took as long as the quickest build
    assert_eq!(whole["phases"]["build"]["n"], 4, "{}", whole["phases"]);
    assert!(number(&whole["phase_seconds"]["build"]) > 0.0);
    let (built, recalled) =
        (number(&whole["phases"]["build"]["p50_ms"]), number(&whole["latency_ms"]["recall"]["p50"]));
    assert!(recalled < built, "a recall took {recalled} ms, a build {built} ms");
    for (run, why) in [("few", "other conditions: recalls"), ("none", "the second run has no latency probe")] {
        let compared = bench.run(["compare", "whole", run, "--json"]).expect_code(0).json();
        assert_eq!(compared["latency"]["compared"], false);
        let text = bench.run(["compare", "whole", run]).expect_code(0).stdout;
        assert!(text.contains("not compared: ") && text.contains(why), "{text}");
        let gate = bench.run(["gate", run, "--baseline", "whole", "--json", "--allow-inconclusive"]).expect_code(0);
        let [check] = &latencies(&gate)[..] else { panic!("one latency is looked at: {}", gate.stdout) };
        let detail = check["detail"].as_str().expect("a line");
        assert!(check["outcome"] == "not_checked" && detail.starts_with("not compared: ") && detail.contains(why));
    }
    for rate in ["0", "1e-20", "0.001", "nan"] {
        let refused = bench.run(submit("bm25", "r", &["--latency-probe-rate", rate])).expect_code(2);
        assert!(refused.stderr.contains("recalls per second, from 0.1"), "{}", refused.stderr);
    }
}

#[test]
fn p43_a_kill_in_the_middle_of_a_probe_loses_a_second_of_it() {
    let (fake, bench) = slow(Duration::ZERO);
    let expected = bench.run(submit("astrocyte", "undisturbed", &["--latency-probe", "off"])).expect_code(0).json();
    let of_run = searches(&fake);
    assert_eq!(of_run, QUESTIONS);
    // from the first recall of the probe on, each takes its time
    let child = bench.start(submit("astrocyte", "victim", &[]));
    wait_until("the questions are asked", PATIENCE, || {
        let asked = searches(&fake) >= 2 * of_run;
        if asked {
            fake.with(|world| world.searches_take = Duration::from_millis(150));
        }
        asked
    });
    wait_until("a part of the probe is stored", PATIENCE, || {
        let status = bench.run(["status", "victim", "--json"]);
        status.code == 0 && status.json()["progress"]["latency_probe"]["made"].as_u64().is_some_and(|made| made > 0)
    });
    signal(&child, "KILL");
    let _ = wait(child);
    fake.with(|world| world.searches_take = Duration::from_millis(5));
    let report = bench.run(["resume", "victim", "--json"]).expect_code(0).json();
    assert_eq!(report["result_digest"], expected["result_digest"]);
    let probe = &report["latency_probe"];
    assert_eq!((&probe["n"], &probe["failure"]), (&QUESTIONS.into(), &Value::Null), "{probe}");
    assert_eq!(probe["conditions"]["workers"], 2, "{probe}");
    // two that open connections, and what came within the second before the kill
    let again = searches(&fake) - 2 * of_run - QUESTIONS;
    assert!(again <= 2 + 8, "{again} recalls were made again");
}

#[test]
fn p43_a_probe_that_fails_is_said_and_changes_nothing_else() {
    let (fake, bench) = slow(Duration::ZERO);
    let expected = bench.run(submit("astrocyte", "well", &["--latency-probe", "off"])).expect_code(0).json();
    let of_run = searches(&fake);
    fake.with(|world| world.searches_left = Some(of_run));
    let report = bench.run(submit("astrocyte", "ill", &[])).expect_code(0).json();
    assert_eq!(report["result_digest"], expected["result_digest"]);
    assert_eq!(report["run"]["verdict"], expected["run"]["verdict"]);
    let probe = &report["latency_probe"];
    assert_eq!((&probe["n"], &probe["p50_ms"]), (&0.into(), &Value::Null), "{probe}");
    assert!(probe["failure"].as_str().is_some_and(|why| why.contains("503") || why.contains("unavailable")), "{probe}");
    let text = bench.run(["report", "ill", "--full"]).expect_code(0).stdout;
    assert!(text.contains("Not measured: "), "{text}");
}

#[test]
fn p43_a_system_that_learns_from_recalls_is_not_probed() {
    let (fake, bench) = slow(Duration::ZERO);
    let shipped = format!("{}/../../crates/systems/src/adapter/shipped/astrocyte.yaml", env!("CARGO_MANIFEST_DIR"));
    let shipped = std::fs::read_to_string(shipped).expect("the adapter is there");
    let learns =
        shipped.replace("name: astrocyte", "name: learner").replace("can: {", "can: {learns_from_recall: true, ");
    let file = bench.path().join("learner.yaml");
    std::fs::write(&file, learns).expect("can be written");
    let report = bench.run(submit("./learner.yaml", "learns", &[])).expect_code(0).json();
    let probe = &report["latency_probe"];
    assert!(probe["failure"].as_str().is_some_and(|why| why.contains("changes the system's state")), "{probe}");
    assert_eq!((&probe["n"], searches(&fake)), (&0.into(), QUESTIONS), "nothing but the questions was asked");
}

#[test]
fn p43_stated_rates_show_the_queue_that_they_make() {
    let (_fake, bench) = slow(SERVICE);
    let flags = ["--latency-probe", "20", "--latency-probe-rate", "10,40"];
    let report = bench.run(submit("astrocyte", "rates", &flags)).expect_code(0).json();
    let rates = report["latency_probe"]["at_rates"].as_array().expect("rates");
    let [idle, busy] = &rates[..] else { panic!("two rates: {rates:?}") };
    assert_eq!((&idle["rate"], &idle["n"], &busy["n"]), (&10.0.into(), &20.into(), &20.into()));
    assert!((50.0..80.0).contains(&number(&idle["curve"][0])), "twenty a second are served: {idle}");
    // twenty at 40 a second come in 0.5 s and take 1 s: the last ones wait for half a second
    assert!(number(&busy["p95_ms"]) > 300.0 && number(&busy["in_flight"]) > 5.0, "{busy}");
}

#[test]
fn p43_a_probe_that_costs_money_is_estimated_booked_and_under_the_cap() {
    let provider = Provider::start(&["--price", "text-embedding-3-small=0.02/0"]);
    let bench = provider.bench();
    let estimated = |more: &[&str]| {
        let args = submit("vector", "r", more);
        let args: Vec<&str> = args.into_iter().map(|arg| if arg == "submit" { "estimate" } else { arg }).collect();
        bench.run(args).expect_code(0).json()["calls"].as_u64().expect("calls")
    };
    assert_eq!(estimated(&["--latency-probe", "10"]), estimated(&["--latency-probe", "off"]) + 11);
    let report = bench.run(submit("vector", "r", &["--latency-probe", "10"])).expect_code(0).json();
    assert_eq!(report["latency_probe"]["n"], 10, "{}", report["latency_probe"]);
    let total = &report["usage"]["total"];
    assert!((number(&total["usd_booked"]) - provider.paid()).abs() < 1e-12, "{total}, paid ${}", provider.paid());
    assert!(number(&report["usage"]["booked"]["overhead"]["usd"]) > 0.0, "{}", report["usage"]["booked"]);
    // a cap that is used up ends the probe, and not the run
    let most = format!("run.max_cost_recall={:.12}", number(&report["usage"]["recall"]["usd"]) * 1.5);
    let capped = ["--cache", "off", "--concurrency", "1", "--set", &most];
    let capped = bench.run(submit("vector", "capped", &capped)).expect_code(0).json();
    assert_eq!(capped["result_digest"], report["result_digest"]);
    let probe = &capped["latency_probe"];
    assert!(number(&probe["n"]) > 0.0 && number(&probe["n"]) < QUESTIONS as f64, "{probe}");
    assert!(probe["failure"].as_str().is_some_and(|why| why.contains("budget")), "{probe}");
}
