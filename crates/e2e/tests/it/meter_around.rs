//! Memory systems that go around the meter: what the account says was spent is held against what was booked.

use std::{fs, time::Duration};

use bench_testkit::{
    bench::{Bench, signal, submit_sim, wait},
    process::wait_until,
    provider::{KEY, Provider},
};
use serde_json::Value;

/// How long a test waits for what has to happen.
const PATIENCE: Duration = Duration::from_secs(120);
/// As the runner has it: two conversations cost some cents.
const PRICES: [&str; 2] = ["--price", "gpt-4o=2.5/10"];

/// A memory that asks a model through the meter when it stores, and, where it was given another way, around it when it is asked.
const MINE: &str = r#"
import json, os, urllib.request
import bench_coord

def ask(url, key):
    body = {"model": "gpt-4o", "max_tokens": 64, "messages": [{"role": "user", "content": "Sum up: " + 40 * "the ship has a cat. "}]}
    request = urllib.request.Request(url + "/chat/completions", json.dumps(body).encode(),
        {"Authorization": "Bearer " + key, "Content-Type": "application/json"})
    urllib.request.urlopen(request, timeout=60).read()

class Mine(bench_coord.System):
    env = ["AROUND_URL", "AROUND_KEY"]

    def __init__(self):
        self.items = {}

    def retain(self, bank, items):
        ask(os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"])
        self.items.setdefault(bank, []).extend(items)

    def recall(self, bank, query, k):
        if os.environ["AROUND_URL"] != "none":
            ask(os.environ["AROUND_URL"], os.environ["AROUND_KEY"])
        words = set(str(query).lower().split())
        overlap = lambda item: -len(words & set(item.text.lower().split()))
        return sorted(self.items.get(bank, []), key=overlap)[:k]
"#;

fn bench(provider: &Provider, around: &str) -> Bench {
    let bench = provider.bench().with_env("AROUND_URL", around).with_env("AROUND_KEY", KEY);
    fs::write(bench.path().join("mine.py"), MINE).expect("is written");
    bench
}

fn submit<'a>(run: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let metered = ["--system", "mine.py:Mine", "--meter", "--no-canaries", "--latency-probe", "off", "--run-id", run];
    submit_sim(&[&metered[..], &["--max-banks", "2", "--sample", "4", "--max-cost", "1000", "--yes"], more].concat())
}

/// What a report says of going around the meter.
fn warned(report: &Value) -> bool {
    report["warnings"].to_string().contains("goes around the meter, or somebody else")
}

#[test]
fn p34_what_goes_around_the_meter_is_found_where_the_account_says_what_was_spent() {
    let provider = Provider::start(&PRICES);
    let through = bench(&provider, "none");
    for (run, spent) in [("a", "openrouter"), ("b", "litellm")] {
        let told = format!("accounts.openai.spent={spent}");
        let report = through.run(submit(run, &["--set", &told])).expect_code(0).json();
        let accounts = &report["metered"]["accounts"];
        let (usd, booked) = (accounts["usd"].as_f64().expect("told"), accounts["usd_booked"].as_f64().expect("told"));
        assert!(usd > 0.02 && (usd - booked).abs() < 1e-9, "{accounts}");
        assert!(!warned(&report), "{}", report["warnings"]);
    }
    let goes_around = bench(&provider, provider.base_url());
    let before = provider.paid();
    let report = goes_around.run(submit("c", &["--set", "accounts.openai.spent=openrouter"])).expect_code(0).json();
    let accounts = &report["metered"]["accounts"];
    assert!((accounts["usd"].as_f64().expect("told") - (provider.paid() - before)).abs() < 1e-9, "{accounts}");
    assert!(accounts["usd"].as_f64() > accounts["usd_booked"].as_f64(), "{accounts}");
    assert!(warned(&report), "{}", report["warnings"]);
    let text = goes_around.run(["report", "c", "--full"]).expect_code(0).stdout;
    assert!(text.contains("By the accounts (openai)"), "{text}");
    // nothing is lost by a kill: what was spent until then is in the figure of the whole
    let before = provider.paid();
    let child = goes_around.start(submit("k", &["--set", "accounts.openai.spent=openrouter", "--concurrency", "1"]));
    let at_first = provider.count("requests");
    wait_until("some calls are paid", PATIENCE, || provider.count("requests") > at_first + 36);
    signal(&child, "KILL");
    let _ = wait(child);
    let resume = ["resume", "k", "--set", "accounts.openai.spent=openrouter", "--display", "none", "--json"];
    let report = goes_around.run(resume).json();
    let accounts = &report["metered"]["accounts"];
    let paid = provider.paid() - before;
    assert!(accounts["usd"].as_f64().is_some_and(|usd| usd > 0.9 * paid && usd < paid + 1e-9), "{accounts}, ${paid}");
    assert!(accounts["not_watched"].is_null(), "{accounts}");
    // nobody can say whose it was where runs share an account at the same time, and without a figure nothing is said
    let twice = goes_around.run(submit("d", &["--set", "accounts.openai.spent=openrouter", "--repeats", "2"]));
    assert!([0, 5].contains(&twice.code), "{}", twice.stderr);
    assert_eq!(goes_around.report("d-r1")["metered"]["accounts"], Value::Null);
    let silent = goes_around.run(submit("e", &[])).expect_code(0).json();
    assert!(silent["metered"]["accounts"].is_null() && !warned(&silent), "{}", silent["metered"]);
    let wrong = goes_around.run(submit("f", &["--set", "accounts.openai.spent=other"])).expect_code(2).stderr;
    assert!(wrong.contains("openrouter"), "{wrong}");
}
