//! Facts of a run's own (P45): what a memory server does to them says what it does to the rest. Each fault has a real
//! server.

use bench_testkit::{
    bench::{Bench, submit_sim, wait},
    cluster::{Cluster, wait_until_ready},
    fakes::{Fake, World},
    process::wait_until,
};
use serde_json::{Value, json};

use super::{LONG, PATIENCE, digest, retained, write_whole};

/// A server, and a bench that knows it as `./mine.yaml`; the file says what the README's says.
fn served(change: impl FnOnce(&mut World)) -> (Fake, Bench) {
    let fake = Fake::start("whole");
    fake.with(change);
    let bench = Bench::new();
    write_whole(&bench, fake.url(), "");
    (fake, bench)
}

const SUBMIT: [&str; 12] = [
    "submit",
    "--dataset",
    "locomo-sim",
    "--preset",
    "quick",
    "--exclude-category",
    "adversarial",
    "--system",
    "./mine.yaml",
    "--latency-probe",
    "off",
    "--json",
];

/// Over four conversations, where no other number is given.
fn submit<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let banks: &[&str] = if more.contains(&"--max-banks") { &[] } else { &["--max-banks", "4"] };
    SUBMIT.iter().chain(banks).chain(more).copied().collect()
}

/// The report of a run over a server with a fault.
fn report(change: impl FnOnce(&mut World), more: &[&str]) -> Value {
    let (_fake, bench) = served(change);
    let done = bench.run(submit(more));
    let report = done.json();
    let invalid = report["run"]["verdict"] == "INVALID";
    assert_eq!(done.code, if invalid { 5 } else { 0 }, "{}", done.stderr);
    report
}

fn reasons(report: &Value) -> String {
    report["run"]["reasons"].to_string()
}

#[test]
fn p45_a_server_that_loses_a_tenth_is_invalid_whichever_tenth_that_is() {
    let mut noticed = 0;
    for seed in 0..12 {
        let report = report(|world| world.loses_share = Some((seed, 0.1)), &["--max-banks", "1"]);
        let lost = &report["canaries"]["lost"];
        assert_eq!((&report["canaries"]["planted"], &lost["of"]), (&json!(true), &json!(60)), "{}", report["canaries"]);
        let (low, share) = (lost["ci95"]["low"].as_f64(), lost["share"].as_f64());
        assert!(low <= share && share < Some(0.3), "{lost}");
        noticed += u32::from(reasons(&report).contains("the system loses what it was given: "));
    }
    // of 12 one is missed in 15 % of such tests, two in 1 %
    assert!(noticed >= 11, "{noticed} of 12 were noticed");
}

#[test]
fn p45_an_honest_server_is_valid_however_few_hits_are_asked_for() {
    for (seed, k, bm25) in [("1", "1", true), ("2", "1", true), ("3", "1", false), ("4", "10", true)] {
        let seed = format!("sim.seed={seed}");
        let report = report(|world| world.bm25 = bm25, &["--top-k", k, "--set", &seed]);
        assert_eq!((&report["run"]["verdict"], reasons(&report).as_str()), (&json!("VALID"), "[]"));
        let canaries = &report["canaries"];
        assert_eq!((&canaries["lost"]["n"], &canaries["lost"]["of"]), (&json!(0), &json!(60)), "{canaries}");
        assert_eq!((&canaries["leaked"]["n"], &canaries["clipped_at"]), (&json!(0), &Value::Null), "{canaries}");
        assert!(canaries["leaked"]["of"].as_u64() >= Some(15), "{canaries}");
        assert_eq!(canaries["verbatim"], true);
    }
}

#[test]
fn p45_a_server_that_mixes_banks_and_one_that_clips_k_are_invalid() {
    let mixing = report(|world| world.mixes_banks = true, &[]);
    assert!(reasons(&mixing).contains("banks leak into each other: "), "{}", reasons(&mixing));
    assert!(mixing["canaries"]["leaked"]["ci95"]["low"].as_f64() > Some(0.5), "{}", mixing["canaries"]);
    for banks in ["1", "3"] {
        let clipping = report(|world| world.clips = Some(5), &["--max-banks", banks]);
        let said = reasons(&clipping);
        assert!(said.contains("k is clipped: ") && said.contains("brought 5 hits"), "{banks} banks: {said}");
        assert_eq!(clipping["canaries"]["clipped_at"], 5);
    }
    // more hits than a bank has sessions: the file stores turns
    let clipping = report(|world| world.clips = Some(20), &["--max-banks", "2", "--top-k", "50"]);
    let said = reasons(&clipping);
    assert!(said.contains("k is clipped: ") && said.contains("brought 20 hits"), "{said}");
}

#[test]
fn p45_a_server_that_keeps_the_first_items_of_a_request_is_invalid() {
    let report = |change: fn(&mut World)| {
        let (_fake, bench) = served(change);
        let file = bench.path().join("mine.yaml");
        let text = std::fs::read_to_string(&file).expect("reads");
        let one = "{request: 'POST /banks/{bank}/items', body: {id: '{id}', text: '{content}'}}";
        let several = "{request: 'POST /banks/{bank}/batch', body: {items: '{items}'}}";
        assert!(text.contains(one), "{text}");
        let batching = "limits: {batch: 50}\nitem: {id: '{id}', text: '{content}'}\n";
        std::fs::write(&file, text.replace(one, several) + batching).expect("is written");
        bench.run(submit(&["--max-banks", "2"])).json()
    };
    let cut = report(|world| world.first_of_batch = Some(10));
    assert!(reasons(&cut).contains("the system loses what it was given: "), "{}", cut["run"]);
    let whole = report(|_| ());
    assert_eq!((&whole["run"]["verdict"], &whole["canaries"]["lost"]["n"]), (&json!("VALID"), &json!(0)), "{whole}");
}

#[test]
fn p45_facts_reach_no_question_and_take_no_place_of_others() {
    let (fake, bench) = served(|_| ());
    let with = bench.run(submit(&["--run-id", "with"])).expect_code(0).json();
    let stored: Vec<String> = fake.with(|world| world.banks.values().flatten().map(|item| item.text.clone()).collect());
    let is_fact = |text: &str| text.contains(" keeps the ") && text.contains(" at ");
    assert_eq!(stored.iter().filter(|text| is_fact(text)).count(), 60, "they were stored");
    let questions = bench.questions("with");
    let hits = |question: &Value| question["retrieved"].as_array().cloned().expect("hits");
    for question in &questions {
        assert!(hits(question).iter().all(|hit| !is_fact(hit["text"].as_str().expect("a text"))), "{question}");
    }
    fake.with(|world| world.requests.clear());
    let without = bench.run(submit(&["--run-id", "without", "--no-canaries"])).expect_code(0).json();
    let asked = fake.with(|world| world.requests.iter().filter(|request| request.ends_with("/search")).count());
    assert_eq!(asked, questions.len(), "nothing is looked for that is no question");
    assert_eq!(without["canaries"], Value::Null);
    assert_ne!(with["run"]["fingerprint"], without["run"]["fingerprint"]);
    for (with, without) in questions.iter().zip(bench.questions("without")) {
        assert_eq!(hits(with).len(), hits(&without).len(), "{with}");
    }
    // turns are counted as the dataset has them
    assert_eq!(with["retrieval"]["turn"]["10"]["n"], without["retrieval"]["turn"]["10"]["n"]);
    let compared = bench.run(["compare", "with", "without", "--json"]).json();
    assert_eq!(compared["comparable"], true, "{compared}");
}

#[test]
fn p45_a_run_that_was_killed_asks_for_the_same_facts_and_finds_the_same() {
    let (fake, bench) = served(|_| ());
    let whole = bench.run(submit(&["--run-id", "whole"])).expect_code(0).json();
    fake.with(|world| world.slow = std::time::Duration::from_millis(5));
    let mut child = bench.start(submit(&["--run-id", "killed"]));
    wait_until("some sessions are stored", PATIENCE, || retained(&bench, "killed") >= 30);
    child.kill().expect("is killed");
    drop(wait(child));
    fake.with(|world| world.slow = std::time::Duration::ZERO);
    let killed = bench.run(["resume", "killed", "--json"]).expect_code(0).json();
    assert_eq!(killed["run"]["verdict"], "VALID", "{}", killed["run"]);
    assert_eq!(killed["result_digest"], whole["result_digest"]);
    assert_eq!(killed["canaries"]["lost"], whole["canaries"]["lost"]);
}

#[test]
fn p45_a_recall_that_failed_is_made_again_in_the_bank_that_was_closed_meanwhile() {
    let (fake, bench) = served(|_| ());
    let whole = bench.run(submit(&["--run-id", "whole"])).expect_code(0).json();
    fake.with(|world| world.other_shape = true);
    let failed = bench.run(submit(&["--run-id", "failed", "--retries", "0"])).expect_code(5).json();
    assert_eq!(failed["outcomes"]["infra_error"], failed["outcomes"]["sample"], "{}", failed["outcomes"]);
    assert!(failed["canaries"]["failed"].as_u64() > Some(0) && failed["canaries"]["lost"].is_null());
    fake.with(|world| (world.other_shape, world.requests) = (false, Vec::new()));
    let mended = bench.run(["retry", "failed", "--errors", "--json"]).expect_code(0).json();
    assert_eq!(mended["result_digest"], whole["result_digest"]);
    let stored_anew = |request: &&String| request.ends_with("/items");
    assert_eq!(fake.with(|world| world.requests.iter().filter(stored_anew).count()), 0, "no bank was begun anew");
}

#[test]
fn p45_exact_sets_and_other_peoples_counting_get_no_facts() {
    let (fake, bench) = served(|_| ());
    let facts = || fake.with(|world| world.banks.values().flatten().filter(|i| i.text.contains(" keeps the ")).count());
    let exact = ["submit", "--dataset", "precision-sim", "--system", "./mine.yaml", "--latency-probe", "off", "--json"];
    let report = bench.run(exact.iter().chain(&["--allow-unfiltered"])).json();
    assert_ne!(report["canaries"]["planted"], json!(true), "{report}");
    assert_eq!(facts(), 0);
}

#[test]
fn p45_in_a_cluster_that_loses_a_worker_the_same_facts_are_asked_for_and_found() {
    let run = |id| submit_sim(&["--max-banks", "3", "--sample", "4", "--system", "astrocyte", "--run-id", id]);
    let fake = Fake::start("astrocyte");
    let local = Bench::new().with_env("ASTROCYTE_URL", fake.url()).run(run("local")).expect_code(0);
    fake.with(|world| world.slow = std::time::Duration::from_millis(10));
    let cluster = Cluster::new().with_env("ASTROCYTE_URL", fake.url());
    let mut coordinator = cluster.coordinator("coordinator");
    wait_until_ready(&mut coordinator);
    let mut workers = [cluster.worker("one", &[]), cluster.worker("two", &[])];
    workers.iter_mut().for_each(wait_until_ready);
    let client = cluster.client(&run("clustered"));
    let stored = || cluster.sql("SELECT coalesce(sum(position), 0) FROM banks").parse::<u64>().unwrap_or(0);
    wait_until("some sessions are stored", PATIENCE, || stored() >= 30);
    workers[0].kill();
    let done = client.wait(LONG).expect_code(0);
    assert_eq!(digest(&done), digest(&local));
    let (clustered, local) = (done.json(), local.json());
    assert_eq!((&clustered["canaries"]["lost"]["n"], &clustered["canaries"]["lost"]["of"]), (&json!(0), &json!(60)));
    assert_eq!(clustered["canaries"]["lost"], local["canaries"]["lost"]);
    assert_eq!(clustered["run"]["verdict"], "VALID", "{}", clustered["run"]);
    // the same banks asked again, and another worker killed: nothing is stored, and the answers are the same (P33)
    let retains = || fake.with(|world| world.requests.iter().filter(|request| request.ends_with("/v1/retain")).count());
    let before = retains();
    let mut third = cluster.worker("three", &[]);
    wait_until_ready(&mut third);
    let client = cluster.client(&[run("again"), vec!["--reuse-banks"]].concat());
    let ended = || cluster.sql("SELECT coalesce(sum(scored), 0) FROM run_counters").parse::<u64>().unwrap_or(0);
    let first = ended();
    wait_until("some questions have ended", PATIENCE, || ended() > first + 2);
    workers[1].kill();
    let again = client.wait(LONG).expect_code(0);
    assert!(before > 30 && again.stderr.contains("3 of 3 banks were filled by run clustered"), "{}", again.stderr);
    assert_eq!((digest(&again), retains()), (digest(&done), before));
}
