//! What one command starts has one cap, one estimate, one confirmation (P41), with the real programs.

use std::time::Duration;

use bench_testkit::{
    bench::{signal, wait},
    provider::Provider,
};
use serde_json::Value;

/// A judge by lot would make runs with controls invalid (P45).
const PRICED: [&str; 4] = ["--price", "gpt-4o-mini=0.15/0.60", "--judge", "reference"];

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn controls(report: &Value) -> usize {
    report["controls"].as_array().expect("controls").len()
}

#[test]
fn p41_controls_are_under_the_cap_of_their_command() {
    // enough for a part of the measured run, for a part of the controls, for everything
    for (cap, code) in [("0.004", 3), ("0.02", 3), ("0.05", 0)] {
        let provider = Provider::start(&[PRICED.as_slice(), &["--latency-ms", "5"]].concat());
        let bench = provider.bench();
        let ended = bench.run(provider.submit(&["--run-id", "r", "--controls", "--max-cost", cap])).expect_code(code);
        let limit: f64 = cap.parse().expect("a number");
        let paid = provider.paid();
        assert!(paid > 0.0 && paid <= limit, "${paid} of ${cap}");
        let status = bench.run(["status", "r", "--json"]).expect_code(0).json();
        assert_eq!((&status["group"]["id"], number(&status["group"]["cap_usd"])), (&Value::from("r"), limit));
        let booked = number(&status["group"]["booked_usd"]);
        assert!((booked - paid).abs() < 1e-12, "${booked} booked, ${paid} paid");
        if code == 0 {
            assert_eq!(controls(&ended.json()), 3);
            continue;
        }
        for words in ["the group's cap of $0.0", "resume r --max-cost USD", "its controls"] {
            assert!(ended.stderr.contains(words), "'{words}' is missing in:\n{}", ended.stderr);
        }
        if cap == "0.004" {
            assert!(ended.stderr.contains("controls none, random and oracle have not been run"), "{}", ended.stderr);
            let waits = bench.run(["status", "r-none"]).expect_code(0);
            assert!(waits.stdout.contains("the measured run goes first"), "{}", waits.stdout);
        } else {
            let report = ended.json();
            assert_eq!(report["outcomes"]["coverage"], 1.0, "the measured run's result stands");
            assert_eq!(controls(&report), 1, "{}", report["controls"]);
            assert_eq!(report["group"]["not_ended"], serde_json::json!(["r-oracle", "r-random"]));
        }
        // any run of the group raises the cap of all; the measured run's command goes on with all that it began
        let oracle = bench.run(["resume", "r-oracle", "--max-cost", "1", "--json"]);
        assert!(oracle.json()["outcomes"]["coverage"] == 1.0, "{}", oracle.stderr);
        let done = bench.run(["resume", "r", "--json"]).expect_code(0).json();
        assert_eq!((&done["outcomes"]["coverage"], controls(&done)), (&Value::from(1.0), 3));
        assert_eq!(number(&done["group"]["cap_usd"]), 1.0);
        assert!((number(&done["group"]["booked_usd"]) - provider.paid()).abs() < 1e-12);
    }
}

#[test]
fn p41_kills_never_lift_the_cap_of_a_group() {
    const CAP: f64 = 0.025;
    let provider = Provider::start(&[PRICED.as_slice(), &["--latency-ms", "60"]].concat());
    let bench = provider.bench();
    let submit = ["--run-id", "r", "--controls", "--max-cost", "0.025", "--concurrency", "16"];
    let mut child = bench.start(provider.submit(&submit));
    // the measured run makes 100 calls: some of the kills meet a control
    for requests in [30, 80, 130, 170] {
        let began = std::time::Instant::now();
        while provider.count("requests") < requests && began.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(10));
        }
        signal(&child, "KILL");
        let _ = wait(child);
        child = bench.start(["resume", "r", "--json"]);
    }
    let ended = wait(child);
    assert!(matches!(ended.code, 0 | 3), "{}", ended.stderr);
    assert!(provider.paid() <= CAP, "${} of ${CAP}", provider.paid());
    let more = ["resume", "r", "--release-uncertain", "--max-cost", "1", "--json"];
    let done = bench.run(more).expect_code(0).json();
    assert_eq!((&done["outcomes"]["coverage"], controls(&done)), (&Value::from(1.0), 3));
    assert!(provider.paid() <= number(&done["group"]["booked_usd"]) + CAP, "{}", done["group"]);
}

#[test]
fn p41_estimates_and_confirmations_are_of_everything_that_a_command_starts() {
    // a thousand times the usual price: the measured run alone fits under the default cap
    let dear = ["--price", "150,600"];
    let provider = Provider::start(&["--latency-ms", "5"]);
    let bench = provider.bench();
    let estimate = |more: &[&str]| {
        let flags: Vec<&str> = provider.submit(more).into_iter().skip(1).collect();
        bench.run(["estimate"].into_iter().chain(flags)).expect_code(0).json()
    };
    let (alone, all) = (estimate(&dear), estimate(&[&dear[..], &["--controls"]].concat()));
    assert_eq!((&alone["calls"], &all["calls"]), (&Value::from(100), &Value::from(400)));
    assert_eq!(all["measured"]["usd"], alone["usd"]);
    assert!(number(&all["minutes"]) > 3.0 * number(&alone["minutes"]));
    let of = |part: &Value| number(&part["usd"]["expected"]);
    let parts = ["none", "random", "oracle"].map(|name| of(&all["controls"][name]));
    assert!((of(&all) - of(&alone) - parts.iter().sum::<f64>()).abs() < 1e-6, "{all:#}");
    let text = bench.run(provider.submit(&["--dry-run", "--controls"]).into_iter().filter(|arg| *arg != "--json"));
    let text = text.expect_code(0).stdout;
    let total = text.lines().find(|line| line.contains("total with its 3 controls: 400 calls"));
    assert!(total.is_some_and(|line| line.contains("(cap $20.00)")), "{text}");
    assert!(of(&alone) < 20.0 && of(&all) > 20.0, "{} and {}", of(&alone), of(&all));
    let refused = bench.run(provider.submit(&[&dear[..], &["--controls"]].concat())).expect_code(2);
    assert!(refused.stderr.contains("with its 3 controls is above the default cap"), "{}", refused.stderr);
    assert_eq!(provider.count("requests"), 0, "nothing was started");
    let _ = bench.run(provider.submit(&dear)).expect_code(0);
}

#[test]
fn p41_the_total_is_the_ledgers_and_names_the_rest_apart() {
    let faults = ["--fault-cut", "0.1", "--latency-ms", "5"];
    let provider = Provider::start(&[PRICED.as_slice(), &faults].concat());
    let bench = provider.bench();
    let check = |report: &Value| {
        let (usage, booked) = (&report["usage"], &report["usage"]["booked"]);
        let of = |part: &Value| number(&part["usd"]);
        let phases: f64 = ["retain", "recall", "answer", "judge"].map(|phase| of(&usage[phase])).iter().sum();
        let beside: f64 = ["unfinished", "unused", "overhead"].map(|part| of(&booked[part])).iter().sum();
        assert!((of(&usage["total"]) - phases - beside).abs() < 1e-9, "{usage:#}");
        let total = of(&usage["total"]) + of(&booked["uncertain"]);
        assert!((total - of(booked)).abs() < 1e-9 && (of(booked) - number(&usage["total"]["usd_booked"])).abs() < 1e-9);
        // replies that were cut may have been paid, and are no part of what was
        let paid = provider.paid();
        assert!(of(&usage["total"]) <= paid + 1e-9 && paid <= of(booked) + 1e-9, "${paid} paid: {usage:#}");
        assert!(of(&booked["uncertain"]) > 0.0, "{usage:#}");
        (of(&booked["unfinished"]), usage["total"]["calls"].as_u64())
    };
    let _ = bench.run(provider.submit(&["--run-id", "r", "--max-cost", "0.006"])).expect_code(3);
    let (unfinished, _) = check(&bench.run(["report", "r", "--format", "json"]).json());
    assert!(unfinished > 0.0, "answers were paid that no judge has seen");
    let done = bench.run(["resume", "r", "--max-cost", "1", "--json"]).expect_code(0).json();
    assert_eq!(check(&done), (0.0, Some(100)), "every call was paid for a result");
}
