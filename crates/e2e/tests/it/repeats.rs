//! The repeats of one run as one group, with the real programs: one cap, draws of their own, kills, the same in a cluster.

use std::{
    fs,
    time::{Duration, Instant},
};

use bench_testkit::{
    bench::{Bench, Done, signal, submit_sim, wait},
    cluster::{Cluster, wait_until_ready},
    process::{Process, wait_until},
    provider::{KEY, Provider},
};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(240);

/// A judge by rule, and prices, so that caps mean something.
const PRICED: [&str; 4] = ["--price", "gpt-4o-mini=0.15/0.60", "--judge", "reference"];
/// A seed among the answerer's parameters: each later repeat sends another one, and the simulated provider draws by it.
const SEEDED: [&str; 2] = ["--set", r#"answerer.params={"seed":7}"#];
/// Calls of one repeat: an answer and a vote for each of the 50 questions.
const CALLS: u64 = 100;

fn provider(more: &[&str]) -> Provider {
    Provider::start(&[PRICED.as_slice(), more].concat())
}

/// `submit` of repeats that draw.
fn submit<'a>(provider: &Provider, more: &[&'a str]) -> Vec<&'a str> {
    provider.submit(&[&SEEDED[..], &["--latency-probe", "off"], more].concat())
}

fn digests(report: &Value) -> Vec<String> {
    let runs = report["runs"].as_array().expect("runs");
    runs.iter().map(|run| run["result_digest"].as_str().unwrap_or("none").to_owned()).collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// What an undisturbed group gives.
fn undisturbed(repeats: &str) -> Vec<String> {
    let provider = provider(&[]);
    let done = provider.bench().run(submit(&provider, &["--run-id", "calm", "--repeats", repeats])).expect_code(0);
    digests(&done.json())
}

#[test]
fn p41_repeats_are_one_group_and_each_is_a_draw_of_its_own() {
    let provider = provider(&["--latency-ms", "5"]);
    let bench = provider.bench();
    let flags = submit(&provider, &["--run-id", "g", "--name", "noise", "--repeats", "3", "--max-cost", "1"]);
    let done = bench.run(&flags).expect_code(0);
    let report = done.json();
    assert_eq!(provider.count("requests"), 3 * CALLS, "no repeat is answered from another's calls");
    assert_eq!(provider.repeated_requests(), 0, "each answer is another draw, and its vote another request");
    let mut different = digests(&report);
    different.sort();
    different.dedup();
    assert_eq!((different.len(), &report["deterministic"]), (3, &json!(false)));
    assert_eq!((&report["group"]["repeats"], &report["group"]["ended"]), (&json!(3), &json!(3)));
    assert!((number(&report["group"]["booked_usd"]) - provider.paid()).abs() < 1e-12, "{}", report["group"]);
    // the first is the run that it would be alone
    let alone = bench.run(submit(&provider, &["--run-id", "alone"])).expect_code(0).json();
    assert_eq!(alone["result_digest"].as_str(), Some(digests(&report)[0].as_str()));
    assert_eq!(alone["run"]["fingerprint"], bench.report("g-r2")["run"]["fingerprint"]);
    // figures with their intervals, and shares that are told apart or joined
    let mean = &report["mean"];
    let values: Vec<f64> = report["runs"].as_array().expect("runs").iter().map(|run| number(&run["value"])).collect();
    assert!((number(&mean["value"]) - values.iter().sum::<f64>() / 3.0).abs() < 1e-12);
    for interval in ["ci95", "benchmark_ci95"] {
        let (low, high) = (number(&mean[interval]["low"]), number(&mean[interval]["high"]));
        assert!(low < number(&mean["value"]) && number(&mean["value"]) < high, "{interval}: {mean}");
    }
    let components = report["variance"]["components"].as_array().expect("components");
    let told: Vec<(&Value, &Value)> = components.iter().map(|c| (&c["source"], &c["joined_with"])).collect();
    let (nothing, judge) = (json!([]), json!(["judge draw"]));
    assert_eq!(
        told,
        [(&json!("bank"), &nothing), (&json!("question"), &nothing), (&json!("answer draw"), &judge)],
        "bm25 fills alike, and one vote cannot tell the judge's draws from the answerer's"
    );
    assert!(components.iter().all(|c| c["share_ci95"]["low"].is_number()), "{components:?}");
    // the same again by every name of the group
    for named in ["g", "noise", "g-r"] {
        let again = bench.run(["report", named, "--json"]).expect_code(0).json();
        assert_eq!(digests(&again), digests(&report), "{named}");
    }
    let lines = bench.questions("g");
    assert_eq!((lines.len(), lines[0]["scores"].as_array().map(Vec::len)), (50, Some(3)), "{}", lines[0]);
    let brief = bench.run(["report", "g"]).expect_code(0).stdout;
    assert!(brief.lines().count() <= 24 && brief.contains("bench-coord report g --full"), "{brief}");
    let text = bench.run(["report", "g", "--full"]).expect_code(0).stdout;
    for words in [
        "3 repeats of 3",
        "Conversations like these",
        "to halve the interval",
        "pass^3",
        "answer draw (with judge draw)",
    ] {
        assert!(text.contains(words), "'{words}' is missing in:\n{text}");
    }
    let listed = bench.run(["list"]).expect_code(0).stdout;
    assert!(listed.contains("g (3 repeats)") && !listed.contains("g-r2"), "{listed}");
    let one = bench.run(["export", "g"]).expect_code(2).stderr;
    assert!(one.contains("'g' is a group of 3 runs") && one.contains("g-r1, g-r2, g-r3"), "{one}");
    let status = bench.run(["status", "g", "--json"]).expect_code(0).json();
    assert_eq!(status.as_array().map(Vec::len), Some(3), "{status}");
    assert!(bench.path().join(".bench/runs/g/report.json").is_file() && bench.path().join(".bench/runs/g-r3").is_dir());
    // what is of single runs is said to be, and the group keeps its name without its first run
    let single = bench.run(["report", "g", "--baseline", "alone", "--raw-csv"]).expect_code(2).stderr;
    assert!(single.contains("`bench-coord report g-r1 --baseline alone --raw-csv`"), "{single}");
    let one = bench.run(["rename", "g-r1", "other"]).expect_code(2).stderr;
    assert!(one.contains("`bench-coord rename g NAME`"), "{one}");
    let _ = bench.run(["rename", "noise", "quiet"]).expect_code(0);
    let _ = bench.run(["delete", "g-r1", "--yes"]).expect_code(0);
    let status = bench.run(["status", "quiet", "--json"]).expect_code(0).json();
    assert_eq!(status.as_array().map(Vec::len), Some(2), "{status}");
    let _ = bench.run(["delete", "g", "--yes"]).expect_code(0);
    let listed = bench.run(["list"]).expect_code(0).stdout;
    assert!(!listed.contains("repeats") && listed.contains("alone"), "{listed}");
    assert!(!bench.path().join(".bench/runs/g").exists() && !bench.path().join(".bench/runs/g-r3").exists());
}

#[test]
fn p30_a_group_is_submitted_once_and_what_makes_no_sense_is_refused() {
    let provider = provider(&[]);
    let bench = provider.bench();
    let flags = |more: &[&'static str]| submit(&provider, &[&["--run-id", "g"], more].concat());
    let first = bench.run(flags(&["--repeats", "2"])).expect_code(0).json();
    let requests = provider.count("requests");
    let again = bench.run(flags(&["--epochs", "2"])).expect_code(0);
    assert!(again.stderr.contains("going on with it"), "{}", again.stderr);
    assert_eq!((digests(&again.json()), provider.count("requests")), (digests(&first), requests));
    for (more, words) in [
        (&["--repeats", "3"][..], "a group of other repeats than the 3 that are asked for"),
        (&["--repeats", "2", "--top-k", "3"], "exists with other settings"),
        (&[], "a group of "),
        (&["--repeats", "0"], "0 is not in 1..=1000"),
        (&["--repeats", "2", "--fork", "g-r1", "--from", "answer"], "cannot be used with"),
        (&["--repeat-ingest"], "--repeats"),
    ] {
        let refused = bench.run(flags(more)).expect_code(2);
        assert!(refused.stderr.contains(words), "{more:?}: {}", refused.stderr);
    }
    let shared = bench.run(submit(&provider, &["--repeats", "2", "--cache", "shared"])).expect_code(2);
    assert!(shared.stderr.contains("no draw of its own"), "{}", shared.stderr);
    assert_eq!(provider.count("requests"), requests, "nothing was started");
    let estimate = |more: &[&'static str]| {
        let all = submit(&provider, more);
        bench.run(["estimate"].into_iter().chain(all.into_iter().skip(1))).expect_code(0).json()
    };
    let (one, three) = (estimate(&[]), estimate(&["--repeats", "3"]));
    assert_eq!((&three["repeats"], 3 * one["calls"].as_u64().expect("calls")), (&json!(3), 3 * CALLS));
    assert_eq!(three["calls"], json!(3 * CALLS));
}

/// A group is found by what is left of it: no other run takes its id, and the same submit goes on with the rest.
#[test]
fn p30_a_group_whose_first_run_was_deleted_keeps_its_id_and_goes_on() {
    let bench = Bench::new();
    let flags = ["--preset", "quick", "--run-id", "k", "--latency-probe", "off", "--display", "none"];
    let run = |more: &[&'static str]| bench.run(submit_sim(&[&flags[..], more].concat()));
    let _ = run(&["--repeats", "3"]).expect_code(0);
    let _ = bench.run(["delete", "k-r1", "--yes"]).expect_code(0);
    let alone = run(&[]).expect_code(2).stderr;
    assert!(alone.contains("k is a group of runs already (2 runs)"), "{alone}");
    let other = run(&["--repeats", "2"]).expect_code(2).stderr;
    assert!(other.contains("it has k-r2, k-r3: `bench-coord resume k` goes on with these"), "{other}");
    let same = run(&["--repeats", "3"]).expect_code(0);
    assert!(same.stderr.contains("k-r1 is gone, and is not made anew"), "{}", same.stderr);
    let status = bench.run(["status", "k", "--json"]).expect_code(0).json();
    assert_eq!(status.as_array().map(Vec::len), Some(2), "{status}");

    // a group is a list, however many of its runs are left
    let _ = bench.run(["delete", "k-r2", "--yes"]).expect_code(0);
    let status = bench.run(["status", "k", "--json"]).expect_code(0).json();
    assert_eq!((status.as_array().map(Vec::len), &status[0]["id"]), (Some(1), &json!("k-r3")), "{status}");
    assert!(bench.run(["status", "k-r3", "--json"]).expect_code(0).json().is_object());

    // the same of a matrix without the first run of its first cell
    let cells = ["--preset", "quick", "--system", "bm25,none", "--run-id", "m", "--latency-probe", "off"];
    let _ = bench.run(submit_sim(&cells)).expect_code(0);
    let _ = bench.run(["delete", "m-c1-r1", "--yes"]).expect_code(0);
    for more in [&["--run-id", "m"][..], &["--run-id", "m", "--repeats", "2"]] {
        let refused = bench.run(submit_sim(&[&["--preset", "quick"][..], more].concat()));
        let said = refused.expect_code(2).stderr;
        assert!(said.contains("`bench-coord resume m` goes on with it"), "{said}");
    }
}

/// A gate holds the mean of repeats against a floor, and against the mean of others.
#[test]
fn repeats_are_gated_by_their_mean() {
    let provider = provider(&[]);
    let bench = provider.bench();
    for id in ["before", "after"] {
        let _ = bench.run(submit(&provider, &["--repeats", "2", "--run-id", id])).expect_code(0);
    }
    let mean = number(&bench.run(["report", "after", "--json"]).expect_code(0).json()["mean"]["value"]);
    let one = number(&bench.report("after-r1")["headline"]["value"]);
    assert!((mean - one).abs() > 1e-9, "two draws differ: {mean} {one}");
    let gate = |floor: f64| bench.run(["gate", "after", "--floor", &floor.to_string(), "--json"]);
    let (below, above) = (mean.min(one) + (mean - one).abs() / 4.0, mean.max(one) - (mean - one).abs() / 4.0);
    let code = |floor: f64| gate(floor).code;
    assert_eq!((code(below), code(above)), if mean > one { (0, 0) } else { (1, 1) }, "the mean decides, not the first");
    let against = bench.run(["gate", "after", "--baseline", "before", "--allow-inconclusive", "--json"]);
    let report = against.expect_code(0).json();
    assert_eq!((&report["run"], &report["baseline"]), (&json!("after"), &json!("before")), "{report:#}");
    // what the policy says of other figures holds for their means too: half of what both have spent
    let usd =
        ["after-r1", "after-r2"].map(|id| number(&bench.report(id)["usage"]["total"]["usd_list"])).iter().sum::<f64>()
            / 2.0;
    let policy = format!(
        "version: 1\nceilings: {{ usage.total.usd_list: {usd} }}\nfloors: {{ category: {{ temporal: 0.0 }} }}\n"
    );
    fs::write(bench.path().join("p.yaml"), policy).expect("written");
    let held = bench.run(["gate", "after", "--policy", "p.yaml", "--json"]).expect_code(0).json();
    let ceiling =
        held["checks"].as_array().into_iter().flatten().find(|check| check["rule"] == "ceiling:usage.total.usd_list");
    assert!(ceiling.is_some_and(|check| (number(&check["value"]) - usd).abs() < 1e-9), "{held:#}");
    let compared = bench.run(["compare", "before", "after", "--json"]).expect_code(0).json();
    assert!((number(&compared["b"]["value"]) - mean).abs() < 1e-9, "the figure that is shown is that of all repeats");
}

/// What one run of a baseline has lent is no evidence beside it, and a mean is not independent of its runs.
#[test]
fn a_mean_is_no_evidence_beside_what_one_of_its_runs_is_made_of() {
    let bench = Bench::new();
    let sample = ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--latency-probe", "off"];
    let _ = bench.run(sample.iter().chain(&["--repeats", "2", "--run-id", "g"])).expect_code(0);
    let _ = bench.run(["rescore", "g-r1", "--scorer", "exact", "--run-id", "fork"]).expect_code(0);
    for baseline in ["g-r1", "g", "last:2"] {
        let gate = ["gate", "fork", "--baseline", baseline, "--metric", "locomo-f1", "--json"];
        let gate = bench.run(gate).expect_code(6).json();
        let measured = gate["checks"].as_array().into_iter().flatten().find(|check| check["rule"] == "measured");
        let detail = measured.map_or("", |check| check["detail"].as_str().unwrap_or_default());
        assert!(detail.contains("(made by g-r1)"), "{baseline}: {gate:#}");
    }
    for (a, b, said) in
        [("g", "g-r2", "run g-r2 is a part of both sides"), ("fork", "g", "g-r1 (one run of the second)")]
    {
        let compared = bench.run(["compare", a, b, "--metric", "locomo-f1", "--json"]).json();
        assert_eq!(compared["independent"], false);
        assert!(compared["notes"].to_string().contains(said), "{compared:#}");
    }
    // one that is named twice is gated, and says so
    for (gated, baseline, said) in [
        ("g", "g", "the baseline is g itself"),
        ("g", "g-r1", "run g-r1 is a part of both sides"),
        ("g-r1", "g", "run g-r1 is a part of both sides"),
        ("g-r1", "g-r1", "the baseline is g-r1 itself"),
    ] {
        let gated = bench.run(["gate", gated, "--baseline", baseline, "--allow-inconclusive"]).expect_code(0);
        assert!(gated.stderr.contains(said), "{said}: {}", gated.stderr);
    }
}

/// What failed in any of the repeats is repeated, and nothing else.
#[test]
fn what_failed_in_a_group_is_repeated_in_each_of_its_runs() {
    let broken = provider(&["--fault-malformed-judge", "1", "--permanent-faults"]);
    let sound = provider(&[]);
    let bench = broken.bench();
    let _ = bench.run(submit(&broken, &["--repeats", "2", "--run-id", "g", "--retries", "0"])).expect_code(5);
    let bench = bench.with_env("OPENAI_BASE_URL", sound.base_url());
    let done = bench.run(["retry", "g", "--json"]).expect_code(0);
    assert!(done.stderr.contains("questions are repeated"), "{}", done.stderr);
    let report = done.json();
    for run in report["runs"].as_array().expect("its repeats") {
        assert_eq!((&run["coverage"], &run["status"]), (&json!(1.0), &json!("finished")), "{run}");
    }
    let asked = sound.count("requests");
    let again = bench.run(["retry", "g"]).expect_code(0);
    assert!(again.stderr.contains("nothing to repeat"), "{}", again.stderr);
    assert_eq!(sound.count("requests"), asked);
}

#[test]
fn p41_the_cap_of_a_group_is_held_by_all_of_its_repeats() {
    let provider = provider(&["--latency-ms", "5"]);
    let bench = provider.bench();
    let (cap, limit) = ("0.012", 0.012);
    let ended = bench.run(submit(&provider, &["--run-id", "g", "--repeats", "3", "--max-cost", cap])).expect_code(3);
    let paid = provider.paid();
    assert!(paid > limit / 2.0 && paid <= limit, "${paid} of ${cap}");
    assert!(ended.stderr.contains("the group's cap of $0.01") && ended.stderr.contains("resume g"), "{}", ended.stderr);
    let done = bench.run(["resume", "g", "--max-cost", "1", "--json"]).expect_code(0).json();
    assert_eq!(digests(&done), undisturbed("3"));
    assert_eq!(done["group"]["cap_usd"], json!(1.0));
    assert!((number(&done["group"]["booked_usd"]) - provider.paid()).abs() < 1e-12);
}

/// What nobody knows the price of is released in all runs of a group, whether or not they have ended.
#[test]
fn uncertain_money_of_repeats_that_have_ended_is_released_with_their_group() {
    let provider = provider(&["--fault-cut", "0.1"]);
    let bench = provider.bench();
    let flags = ["--run-id", "g", "--repeats", "2", "--max-cost", "1"];
    let booked = |report: &Value| number(&report["group"]["booked_usd"]);
    let before = booked(&bench.run(submit(&provider, &flags)).expect_code(0).json());
    let after = booked(&bench.run(["resume", "g", "--release-uncertain", "--json"]).expect_code(0).json());
    assert!(after < before, "${after} of ${before} are booked");
}

#[test]
fn repeats_that_draw_nothing_say_so() {
    let bench = Bench::new();
    let flags = ["submit", "--dataset", "locomo-sim", "--preset", "full", "--run-id", "d", "--repeats", "2", "--json"];
    let done = bench.run(flags).expect_code(0);
    assert!(done.stderr.contains("nothing of this run is drawn"), "{}", done.stderr);
    let report = done.json();
    assert_eq!((&report["deterministic"], &report["mean"]["benchmark_ci95"]), (&json!(true), &Value::Null));
    assert!(
        report["mean"]["benchmark_note"].as_str().is_some_and(|note| note.contains("the same score")),
        "{report:#}"
    );
    // a model that is asked the same without a seed, and samples nothing
    let provider = provider(&[]);
    let plain = provider.submit(&["--latency-probe", "off", "--run-id", "p", "--repeats", "2"]);
    let report = provider.bench().run(plain).expect_code(0).json();
    assert_eq!(
        (&report["deterministic"], provider.count("requests")),
        (&json!(true), 2 * CALLS),
        "asked twice all the same"
    );
    assert!(report["notes"].to_string().contains("they are one draw"), "{}", report["notes"]);
}

#[test]
fn votes_tell_the_draws_of_the_judge_from_those_of_the_answerer() {
    let provider = Provider::start(&["--price", "gpt-4o-mini=0.15/0.60"]);
    let judge = ["--votes", "3", "--set", r#"judge.params={"seed":7,"temperature":0}"#];
    let flags = submit(&provider, &[&["--run-id", "v", "--repeats", "2"], &judge[..]].concat());
    let report = provider.bench().run(flags);
    // a judge by lot says that nothing is measured: exit 5, and the figures stand all the same
    assert!([0, 5].contains(&report.code), "{}", report.stderr);
    let report = report.json();
    let components = report["variance"]["components"].as_array().expect("components");
    let judge = components.iter().find(|c| c["source"] == "judge draw").unwrap_or_else(|| panic!("{components:?}"));
    assert!(number(&judge["variance"]) > 0.05, "three votes by lot differ: {judge}");
    let answer = components.iter().find(|c| c["source"] == "answer draw").expect("is told");
    assert_eq!(answer["joined_with"], json!([]));
}

#[test]
fn killed_and_resumed_repeats_have_the_digests_of_an_undisturbed_group() {
    let provider = provider(&["--latency-ms", "60"]);
    let bench = provider.bench();
    let mut child = bench.start(submit(&provider, &["--run-id", "g", "--repeats", "3", "--max-cost", "1"]));
    for requests in [40, 130, 220] {
        let began = Instant::now();
        while provider.count("requests") < requests && began.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(10));
        }
        signal(&child, "KILL");
        let _ = wait(child);
        child = bench.start(["resume", "g", "--json"]);
    }
    let done = wait(child).expect_code(0).json();
    assert_eq!(digests(&done), undisturbed("3"));
    assert!(provider.paid() <= number(&done["group"]["booked_usd"]) + 1.0, "{}", done["group"]);
}

#[test]
fn repeats_of_one_machine_run_at_the_same_time() {
    let provider = provider(&["--latency-ms", "250"]);
    let bench = provider.bench();
    // four questions of each at a time: the runs take long enough to be looked at
    let child = bench.start(submit(&provider, &["--run-id", "g", "--repeats", "2", "--concurrency", "4"]));
    let ended = |run: &str| {
        let status = bench.run(["status", run, "--json"]);
        if status.code == 0 { status.json()["progress"]["ended"].as_u64().unwrap_or(0) } else { 0 }
    };
    let began = Instant::now();
    let mut both = false;
    while !both && began.elapsed() < Duration::from_secs(30) {
        let (first, second) = (ended("g-r1"), ended("g-r2"));
        both = first > 0 && second > 0 && first < 50;
        if first == 50 {
            break;
        }
    }
    let _ = wait(child).expect_code(0);
    assert!(both, "the second had answers before the first was over");
}

/// Coordinator and two workers.
pub(crate) fn people(cluster: &Cluster, names: [&'static str; 3]) -> (Process, Vec<Process>) {
    let mut coordinator = cluster.coordinator(names[0]);
    let mut workers: Vec<Process> =
        names[1..].iter().map(|name| cluster.worker(name, &["--concurrency", "8"])).collect();
    wait_until_ready(&mut coordinator);
    workers.iter_mut().for_each(wait_until_ready);
    (coordinator, workers)
}

#[test]
fn repeats_in_a_cluster_of_roles_are_killed_twice_and_have_the_same_digests() {
    let provider = provider(&["--latency-ms", "60"]);
    let cluster = Cluster::new().with_provider(provider.base_url(), KEY);
    let (mut coordinator, mut workers) = people(&cluster, ["leader", "one", "two"]);
    let flags = submit(&provider, &["--run-id", "g", "--repeats", "3", "--max-cost", "1", "--display", "none"]);
    let mut client = cluster.client(&flags);
    for (round, requests) in [60, 180].into_iter().enumerate() {
        wait_until("some of the group is done", PATIENCE, || provider.count("requests") >= requests);
        client.kill();
        workers.iter_mut().for_each(Process::kill);
        coordinator.kill();
        let names = if round == 0 { ["leader2", "three", "four"] } else { ["leader3", "five", "six"] };
        (coordinator, workers) = people(&cluster, names);
        client = cluster.client(&["resume", "g", "--json", "--display", "none"]);
    }
    let done: Done = client.wait(PATIENCE).expect_code(0);
    let report = done.json();
    assert_eq!(digests(&report), undisturbed("3"), "killed in a cluster and undisturbed on one machine");
    assert!(provider.paid() <= 1.0 && number(&report["group"]["booked_usd"]) <= 1.0, "{}", report["group"]);
    let shown = cluster.run(&["report", "g", "--json"]).expect_code(0).json();
    assert_eq!(digests(&shown), digests(&report), "a reader sees the same");
    let detached = submit(&provider, &["--run-id", "d", "--repeats", "2", "--detach"]);
    let detached = cluster.run(&detached).expect_code(3);
    assert_eq!(detached.json()["runs"], json!(["d-r1", "d-r2"]));
    let followed = cluster.run(&["resume", "d", "--json", "--display", "none"]).expect_code(0).json();
    assert_eq!(followed["group"]["ended"], json!(2));
    for (name, text) in cluster.logs() {
        assert!(!text.contains("permission denied"), "{name}:\n{text}");
    }
}
