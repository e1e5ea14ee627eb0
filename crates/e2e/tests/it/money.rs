//! Caps that hold whatever happens (P10), with the real programs.

use std::time::Duration;

use bench_testkit::{
    bench::{signal, wait},
    provider::Provider,
};
use serde_json::Value;

const PRICED: [&str; 2] = ["--price", "gpt-4o-mini=0.15/0.60"];

fn usd(report: &Value, key: &str) -> f64 {
    report["usage"]["total"][key].as_f64().unwrap_or_else(|| panic!("no {key}"))
}

#[test]
fn p10_calls_in_flight_at_a_kill_are_uncertain_until_released() {
    let provider = Provider::start(&[PRICED.as_slice(), &["--latency-ms", "300"]].concat());
    let bench = provider.bench();
    let child = bench.start(provider.submit(&["--run-id", "victim", "--concurrency", "8"]));
    provider.wait_for_requests(12);
    signal(&child, "KILL");
    let _ = wait(child);
    let report = bench.run(["resume", "victim", "--json"]).expect_code(0).json();
    let (booked, uncertain) = (usd(&report, "usd_booked"), usd(&report, "usd_uncertain"));
    assert!(uncertain > 0.0, "calls were in flight: {}", report["usage"]["total"]);
    let paid = provider.paid();
    assert!(paid <= booked + 1e-12, "${paid} were paid, ${booked} booked");
    assert!(booked - uncertain <= paid + 1e-12, "${booked} booked, of which ${uncertain} uncertain; ${paid} were paid");
    assert!(usd(&report, "usd") <= booked);
}

#[test]
fn p10_kills_never_lift_the_cap() {
    const CAP: f64 = 0.02;
    let provider = Provider::start(&[PRICED.as_slice(), &["--latency-ms", "60"]].concat());
    let bench = provider.bench();
    let submit = ["--run-id", "r", "--max-cost", "0.02", "--concurrency", "16"];
    let mut child = bench.start(provider.submit(&submit));
    for pause in [350, 420, 500, 380, 600] {
        std::thread::sleep(Duration::from_millis(pause));
        signal(&child, "KILL");
        let _ = wait(child);
        // killed before its run existed, there is nothing to resume
        child = match bench.run(["status", "r"]).code {
            0 => bench.start(["resume", "r", "--json"]),
            _ => bench.start(provider.submit(&submit)),
        };
    }
    let ended = wait(child);
    assert!(matches!(ended.code, 0 | 3), "{}", ended.stderr);
    assert!(provider.paid() <= CAP, "${} of ${CAP}", provider.paid());
    let done = bench.run(["resume", "r", "--release-uncertain", "--max-cost", "1", "--json"]).expect_code(0).json();
    assert_eq!(done["outcomes"]["coverage"], 1.0);
}

/// The first two amounts of dollars in a text.
fn amounts(text: &str) -> (f64, f64) {
    let mut found = text.split('$').skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        rest[..end].parse::<f64>().ok()
    });
    (found.next().expect("an amount"), found.next().expect("another amount"))
}

#[test]
fn p10_the_cap_is_used_up_as_far_as_the_next_call_lets_it() {
    const CAP: f64 = 0.03;
    let provider = Provider::start(&[PRICED.as_slice(), &["--latency-ms", "20", "--tokens", "o200k"]].concat());
    let bench = provider.bench();
    let capped = ["--preset=fair", "--run-id=r", "--max-cost=0.03", "--concurrency=32"];
    let submit = provider.submit(&capped).into_iter().filter(|arg| !matches!(*arg, "--preset" | "quick"));
    let paused = bench.run(submit).expect_code(3);
    let words = paused.stderr.lines().find(|line| line.contains("the next call may cost")).expect("says why");
    let (needed, left) = amounts(words.split_once("the next call may cost").expect("is there").1);
    // amounts are shown with four decimals
    assert!(left <= needed, "the next call would still fit: {words}");
    assert!(left <= 0.05 * CAP, "more than 5 % of the cap are left: {words}");
    let spent = provider.paid();
    assert!((0.95 * CAP..=CAP).contains(&spent), "${spent} of ${CAP}");
}

#[test]
fn p10_caps_of_a_phase_and_of_the_day() {
    let provider = Provider::start(&[PRICED.as_slice(), &["--latency-ms", "5"]].concat());
    let bench = provider.bench();
    let judged = ["--run-id", "a", "--set", "run.max_cost_judge=0.001"];
    let paused = bench.run(provider.submit(&judged)).expect_code(3);
    assert!(paused.stderr.contains("run.max_cost_judge"), "{}", paused.stderr);
    let done = bench.run(["resume", "a", "--set", "run.max_cost_judge=1", "--json"]).expect_code(0).json();
    assert_eq!(done["outcomes"]["coverage"], 1.0);
    assert_eq!(provider.repeated_requests(), 0, "nothing was paid twice");
    // what the first run spent counts under the day's cap of the second
    let cap = format!("{:.4}", provider.paid() + 0.001);
    let paused = bench.run(provider.submit(&["--run-id", "b", "--max-cost-per-day", &cap])).expect_code(3);
    assert!(paused.stderr.contains("--max-cost-per-day"), "{}", paused.stderr);
    assert!(provider.paid() <= cap.parse::<f64>().expect("a number"), "${} of ${cap}", provider.paid());
    let _ = bench.run(["resume", "b", "--max-cost-per-day", "5", "--json"]).expect_code(0);
}

#[test]
fn p10_calls_dropped_by_cancel_now_are_uncertain() {
    let provider = Provider::start(&[PRICED.as_slice(), &["--latency-ms", "3000"]].concat());
    let bench = provider.bench();
    let child = bench.start(provider.submit(&["--run-id", "c", "--concurrency", "4"]));
    provider.wait_for_requests(4);
    let _ = bench.run(["cancel", "c", "--now"]).expect_code(0);
    let _ = wait(child);
    let report = bench.run(["report", "c", "--format", "json"]).json();
    assert!(usd(&report, "usd_uncertain") > 0.0, "{}", report["usage"]["total"]);
    assert!(provider.paid() <= usd(&report, "usd_booked"));
}

#[test]
fn p10_only_what_replies_cost_above_their_reservation_passes_the_cap() {
    const CAP: f64 = 0.1;
    // a provider that counts several times as many tokens as the model's vocabulary has for the text, and prompts are dear
    let dear = ["--price", "gpt-4o-mini=10/0.1", "--tokens", "bytes", "--latency-ms", "10"];
    let provider = Provider::start(&dear);
    let bench = provider.bench();
    let capped = ["--run-id", "r", "--price", "10,0.1", "--max-cost", "0.1", "--concurrency", "4"];
    let paused = bench.run(provider.submit(&capped));
    assert!(paused.expect_code(3).stderr.contains("--max-cost"));
    let report = bench.run(["report", "r", "--format", "json"]).json();
    let overdraft = usd(&report, "usd_overdraft");
    let spent = provider.paid();
    assert!(overdraft > 0.0 && spent > 0.0, "{}", report["usage"]["total"]);
    assert!(spent <= CAP + overdraft + 1e-12, "${spent} of ${CAP} and ${overdraft}");
    assert!((usd(&report, "usd_booked") - spent).abs() < 1e-12, "{}", report["usage"]["total"]);
    let resumed = bench.run(["resume", "r", "--max-cost", "5", "--json"]).expect_code(0).json();
    assert_eq!(resumed["outcomes"]["coverage"], 1.0);
    assert_eq!(provider.repeated_requests(), 0, "nothing was paid twice");
}
