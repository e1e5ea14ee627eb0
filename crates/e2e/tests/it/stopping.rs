//! Runs that end before their last question because enough is known (P46).

use std::time::Duration;

use bench_testkit::{
    bench::{Bench, Done, signal, wait},
    cluster::{Cluster, wait_until_ready},
    process::wait_until,
};
use serde_json::{Value, json};

/// Longest wait for something that takes seconds.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest wait for a run of a cluster.
const LONG: Duration = Duration::from_secs(180);

/// A run of the generated conversations that may stop early.
fn submit<'a>(run: &'a str, system: &'a str, rule: &'a str) -> Vec<&'a str> {
    let base =
        ["submit", "--dataset", "locomo-sim", "--preset", "full", "--system", system, "--json", "--display", "none"];
    [&base[..], &["--run-id", run, "--stop-when", rule]].concat()
}

/// A run that asks everything.
fn whole(bench: &Bench, run: &str, system: &str) -> Done {
    bench.run([
        "submit",
        "--dataset",
        "locomo-sim",
        "--preset",
        "full",
        "--system",
        system,
        "--json",
        "--display",
        "none",
        "--run-id",
        run,
    ])
}

fn digest(done: &Done) -> Value {
    done.json()["result_digest"].clone()
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

#[test]
fn p46_a_run_ends_when_its_score_is_known_and_goes_on_when_it_is_told_to() {
    let bench = Bench::new();
    let all = whole(&bench, "all", "bm25").expect_code(0).json();
    let stopped = bench.run(submit("known", "bm25", "ci<=4pt")).expect_code(0);
    let report = stopped.json();
    let stop = &report["stop"];
    assert_eq!(
        (&stop["rule"], &stop["stopped"], &stop["to_the_end"]),
        (&json!("ci<=4pt"), &json!(true), &json!(false))
    );
    let looks = stop["looks"].as_array().expect("has looks");
    let last = looks.last().expect("has a last one");
    assert_eq!(last["outcome"], "narrow");
    assert!(looks[..looks.len() - 1].iter().all(|look| look["outcome"] == "continues"), "{stop}");
    let bounds = ["low", "high"].map(|bound| last[bound].as_f64().expect("has bounds"));
    assert!((bounds[1] - bounds[0]) / 2.0 <= 0.04, "{last}");
    let (asked, sample) = (count(&last["asked"]), count(&all["dataset"]["sample"]["n"]));
    assert!(asked < sample, "{asked} of {sample}");
    // the report is one of what was asked: nothing is missing, and the run is valid
    assert_eq!(report["run"]["verdict"], "VALID", "{}", report["run"]["reasons"]);
    assert_eq!(
        (
            &report["outcomes"]["coverage"],
            count(&report["outcomes"]["scored"]) + count(&report["outcomes"]["abstained"])
        ),
        (&json!(1.0), asked)
    );
    assert_eq!((count(&report["dataset"]["sample"]["n"]), count(&stop["saved"]["questions"])), (asked, sample - asked));
    assert!(
        report["headline"]["benchmark_ci95"]["low"].is_number(),
        "a part of the questions says something of the others: {}",
        report["headline"]
    );
    assert_eq!(bench.questions("known").len() as u64, asked);
    let brief = bench.run(["report", "known"]).expect_code(0).stdout;
    assert!(brief.contains("Stopped at look") && brief.lines().all(|line| line.chars().count() <= 80), "{brief}");
    let full = bench.run(["report", "known", "--full"]).expect_code(0).stdout;
    assert!(full.contains("Stopping early") && full.contains("known as exactly as asked for"), "{full}");

    // again, and killed in the middle of it: the same questions, the same result
    let again = bench.run(submit("again", "bm25", "ci<=4pt")).expect_code(0).json();
    assert_eq!(
        (&again["result_digest"], &again["run"]["fingerprint"]),
        (&report["result_digest"], &report["run"]["fingerprint"])
    );
    assert_ne!(again["run"]["fingerprint"], all["run"]["fingerprint"]);

    let goes_on = bench.run(["resume", "known", "--no-stop", "--json", "--display", "none"]).expect_code(0).json();
    assert_eq!(goes_on["result_digest"], all["result_digest"], "it is the run that asks everything");
    assert_eq!((&goes_on["stop"]["to_the_end"], &goes_on["stop"]["saved"]), (&json!(true), &Value::Null));
    assert_eq!(goes_on["canaries"]["lost"], all["canaries"]["lost"]);
    let refused = bench.run(["resume", "all", "--no-stop"]).expect_code(2);
    assert!(refused.stderr.contains("without --stop-when"), "{}", refused.stderr);
}

#[test]
fn what_refuses_a_run_that_was_to_go_on_leaves_it_as_it_stopped() {
    let bench = Bench::new();
    let stopped = bench.run(submit("known", "bm25", "ci<=8pt")).expect_code(0).json();
    // it has counted dollars
    let refused = bench.run(["resume", "known", "--no-stop", "--max-cost", "9 calls"]).expect_code(2);
    assert!(refused.stderr.contains("has counted dollars"), "{}", refused.stderr);
    let status = bench.run(["status", "known"]).expect_code(0).stdout;
    assert!(!status.contains("--no-stop"), "{status}");
    let fork = ["submit", "--fork", "known", "--from", "answer", "--run-id", "fork", "--json", "--display", "none"];
    let fork = bench.run(fork).expect_code(0).json();
    assert_eq!(fork["result_digest"], stopped["result_digest"]);
}

#[test]
fn p46_a_run_ends_when_its_difference_to_another_is_decided() {
    let bench = Bench::new();
    let _ = whole(&bench, "before", "bm25").expect_code(0);
    let same = bench.run(submit("same", "bm25", "decided vs before by 8pt")).expect_code(0).json();
    let looks = same["stop"]["looks"].as_array().expect("has looks");
    assert_eq!(looks.last().expect("has one")["outcome"], "no_difference");
    assert_eq!(looks.last().expect("has one")["estimate"], json!(0.0), "the same system answers the same");
    let worse = bench.run(submit("worse", "none", "decided vs before by 8pt")).expect_code(0).json();
    let last = worse["stop"]["looks"].as_array().and_then(|looks| looks.last()).expect("has one").clone();
    assert_eq!(last["outcome"], "worse", "{last}");
    assert!(
        count(&last["asked"]) * 2
            <= count(&worse["stop"]["planned"].as_array().and_then(|all| all.last()).expect("is planned").clone())
    );

    // what stopped is compared with what did not, and with forks of it
    let compared = bench.run(["compare", "before", "worse", "--json"]).expect_code(1).json();
    assert_eq!(
        (&compared["comparable"], &compared["paired"]["n"]),
        (&json!(true), &last["used"]),
        "{}",
        compared["reasons"]
    );
    let fork = bench
        .run(["submit", "--fork", "same", "--from", "answer", "--run-id", "fork", "--json", "--display", "none"])
        .expect_code(0)
        .json();
    assert_eq!(fork["result_digest"], same["result_digest"]);
    assert!(fork["dataset"]["sample"]["notes"].to_string().contains("stopped early"), "{}", fork["dataset"]["sample"]);
    // a list counts what was asked, as the report does
    let listed = bench.run(["list", "--json"]).expect_code(0).json();
    let row = listed.as_array().into_iter().flatten().find(|row| row["id"] == "same").expect("is listed").clone();
    assert_eq!((&row["questions"], &row["ended"]), (&same["dataset"]["sample"]["n"], &row["questions"]), "{row}");
    let status = bench.run(["status", "same"]).expect_code(0).stdout;
    assert!(status.contains("look"), "{status}");
}

#[test]
fn p46_a_run_that_is_killed_between_its_looks_stops_where_it_would_have() {
    let bench = Bench::new();
    let whole = bench.run(submit("whole", "bm25", "ci<=4pt")).expect_code(0).json();
    // one question at a time: it is still at work when somebody has read that it has looked
    let slowly = submit("killed", "bm25", "ci<=4pt").into_iter().chain(["--concurrency", "1"]);
    let mut child = bench.start(slowly);
    wait_until("a look was made", PATIENCE, || {
        assert!(child.try_wait().expect("is a child").is_none(), "it ended before it was killed");
        bench.run(["status", "killed"]).stdout.contains("look 1 of")
    });
    signal(&child, "KILL");
    let _ = wait(child);
    let resumed = bench.run(["resume", "killed", "--json", "--display", "none"]).expect_code(0).json();
    assert_eq!(resumed["result_digest"], whole["result_digest"]);
    assert_eq!(resumed["stop"]["looks"], whole["stop"]["looks"]);
}

#[test]
fn rules_that_cannot_hold_are_refused_before_anything_is_asked() {
    let bench = Bench::new();
    let refused = |run: &str, more: &[&str], words: &[&str]| {
        let base = ["submit", "--dataset", "locomo-sim", "--run-id", run, "--display", "none"];
        let done = bench.run([&base[..], more].concat()).expect_code(2);
        assert!(words.iter().all(|word| done.stderr.contains(word)), "{words:?}: {}", done.stderr);
    };
    refused(
        "a",
        &["--preset", "fair", "--stop-when", "ci<=0.5pt"],
        &["cannot hold with", "at least 368", "7303 at a score of 95 %", "larger sample"],
    );
    refused("b", &["--stop-when", "ci<=0.03"], &["is no number of points"]);
    refused("c", &["--stop-when", "soon"], &["is no rule", "decided vs RUN by 8pt"]);
    refused("d", &["--stop-when", "decided vs nobody by 8pt"], &["nobody"]);
    refused("e", &["--stop-when", "ci<=8pt", "--repeats", "2"], &["--repeats"]);
    refused("f", &["--stop-when", "ci<=8pt", "--controls"], &["--controls"]);
    refused("g", &["--sample-total", "30", "--stop-when", "ci<=40pt"], &["cannot stop early"]);
    // nor is it estimated
    for (flags, word) in [
        (&["--stop-when", "soon"][..], "is no rule"),
        (&["--stop-when", "ci<=8pt", "--repeats", "2"], "--repeats"),
        (&["--repeats", "2", "--cache", "shared"], "no draw of its own"),
        (&["--detach"], "--detach needs a cluster"),
    ] {
        let estimate = bench.run([&["estimate", "--dataset", "locomo-sim"][..], flags].concat()).expect_code(2);
        assert!(estimate.stderr.contains(word), "{flags:?}: {}", estimate.stderr);
    }
    assert!(
        bench.run(["list", "--json"]).expect_code(0).json().as_array().is_some_and(Vec::is_empty),
        "nothing was created"
    );
}

#[test]
fn p46_a_cluster_that_loses_a_worker_and_a_coordinator_stops_where_one_machine_does() {
    let local = Bench::new();
    let alone = local.run(submit("alone", "bm25", "ci<=4pt")).expect_code(0);
    let cluster = Cluster::new();
    let mut coordinators = [cluster.coordinator("first"), cluster.coordinator("second")];
    coordinators.iter_mut().for_each(wait_until_ready);
    let mut workers = [cluster.worker("one", &[]), cluster.worker("two", &[])];
    workers.iter_mut().for_each(wait_until_ready);
    let client = cluster.client(&submit("clustered", "bm25", "ci<=4pt"));
    let looks =
        || cluster.sql("SELECT coalesce(sum(json_array_length(looks::json -> 'made')), 0) FROM runs").parse::<u64>();
    wait_until("a look was made", PATIENCE, || looks().is_ok_and(|made| made > 0));
    workers[0].kill();
    coordinators[0].kill();
    let done = client.wait(LONG).expect_code(0);
    assert_eq!((digest(&done), &done.json()["stop"]["looks"]), (digest(&alone), &alone.json()["stop"]["looks"]));
    let goes_on =
        cluster.client(&["resume", "clustered", "--no-stop", "--json", "--display", "none"]).wait(LONG).expect_code(0);
    let all = whole(&local, "all", "bm25").expect_code(0);
    assert_eq!(digest(&goes_on), digest(&all), "the rest is asked, and the result is that of a run without a rule");
}
