//! Caps on calls and tokens, for servers whose models have no price (P10): the provider's own count is what they are held to.

use std::{fs, time::Duration};

use bench_testkit::{
    bench::{signal, submit_sim, wait},
    cluster::{Cluster, wait_until_ready},
    provider::{KEY, Provider},
};

/// Longest time of a run in a cluster.
const LONG: Duration = Duration::from_secs(240);

fn submit<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let models = ["--preset", "quick", "--answerer", "openai:house-model", "--judge", "openai:house-model"];
    submit_sim(&[&models[..], &["--run-id", "r"], more].concat())
}

/// Tokens by the provider's count.
fn tokens(provider: &Provider) -> u64 {
    provider.count("prompt_tokens") + provider.count("completion_tokens")
}

#[test]
fn p10_a_cap_in_calls_holds_for_sixteen_at_a_time_and_a_resume_raises_it() {
    let provider = Provider::start(&["--latency-ms", "30"]);
    let bench = provider.bench();
    let paused = bench.run(submit(&["--max-cost", "40calls", "--concurrency", "16"])).expect_code(3);
    let said = "the next call may use 1 call, 0 calls are left under the cap of 40 calls";
    assert!(paused.stderr.contains(said) && paused.stderr.contains("--max-cost Ncalls"), "{}", paused.stderr);
    assert_eq!(provider.count("requests"), 40, "all of the cap is used, and no more");
    for (wrong, unit) in [("5", "calls"), ("9000000tokens", "calls")] {
        let refused = bench.run(["resume", "r", "--max-cost", wrong]).expect_code(2);
        assert!(refused.stderr.contains(&format!("has counted {unit} until now")), "{}", refused.stderr);
    }
    let paused = bench.run(["resume", "r", "--max-cost", "60calls"]).expect_code(3);
    assert!(paused.stderr.contains("the cap of 60 calls"), "{}", paused.stderr);
    assert_eq!(provider.count("requests"), 60);
    let done = bench.run(["resume", "r", "--max-cost", "100000calls", "--json"]).expect_code(0).json();
    assert_eq!(done["outcomes"]["coverage"], 1.0, "nothing has failed by the cap: {}", done["errors"]);
    assert_eq!(provider.repeated_requests(), 0, "nothing was asked twice");
    assert_eq!(done["usage"]["total"]["usd_booked"], 0.0, "no price, no dollars: {}", done["usage"]["total"]);
}

#[test]
fn p10_a_cap_in_tokens_holds_whatever_is_killed() {
    const CAP: u64 = 30_000;
    let provider = Provider::start(&["--latency-ms", "60", "--tokens", "o200k"]);
    let bench = provider.bench();
    let capped = ["--max-cost", "30000tokens", "--concurrency", "16"];
    let mut child = bench.start(submit(&capped));
    for pause in [500, 700, 600] {
        std::thread::sleep(Duration::from_millis(pause));
        signal(&child, "KILL");
        let _ = wait(child);
        child = match bench.run(["status", "r"]).code {
            0 => bench.start(["resume", "r", "--json"]),
            _ => bench.start(submit(&capped)),
        };
    }
    let paused = wait(child).expect_code(3);
    assert!(paused.stderr.contains("tokens are left under the cap of 30000 tokens"), "{}", paused.stderr);
    // what a kill leaves open counts at its worst case, so that the cap may be used up by little that was answered
    let status = bench.run(["status", "r", "--json"]).expect_code(0).json();
    let (used, booked) = (tokens(&provider), status["usage"]["used"].as_u64().expect("a number"));
    assert!(used > 0 && used <= booked && booked <= CAP && booked > CAP / 2, "{used} of {booked} booked of {CAP}");
    let more = ["resume", "r", "--release-uncertain", "--max-cost", "90000000tokens", "--json"];
    let done = bench.run(more).expect_code(0).json();
    assert_eq!(done["outcomes"]["coverage"], 1.0);
}

#[test]
fn p10_two_workers_share_a_cap_in_calls() {
    let provider = Provider::start(&["--latency-ms", "30"]);
    let cluster = Cluster::new().with_provider(provider.base_url(), KEY);
    let mut coordinator = cluster.coordinator("coordinator");
    wait_until_ready(&mut coordinator);
    let mut workers = ["one", "two"].map(|name| cluster.worker(name, &["--concurrency", "16"]));
    workers.iter_mut().for_each(wait_until_ready);
    let paused = cluster.client(&submit(&["--max-cost", "40calls"])).wait(LONG).expect_code(3);
    assert!(paused.stderr.contains("the cap of 40 calls"), "{}", paused.stderr);
    assert_eq!(provider.count("requests"), 40);
    let more = ["resume", "r", "--max-cost", "100000calls", "--json"];
    let done = cluster.client(&more).wait(LONG).expect_code(0).json();
    assert_eq!(done["outcomes"]["coverage"], 1.0);
}

/// A memory that asks a model for each session and each question, with the standard library alone.
const MINE: &str = r#"
import json, os, urllib.request
import bench_coord

def ask(path, body):
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + path, json.dumps(body).encode(),
        {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as reply:
        return json.load(reply)

class Mine(bench_coord.System):
    def __init__(self):
        self.banks = {}

    def retain(self, bank, items):
        for item in items:
            ask("/chat/completions", {"model": "house-model", "max_tokens": 64,
                                      "messages": [{"role": "user", "content": "Sum up: " + item.content}]})
            self.banks.setdefault(bank, []).append(item)

    def recall(self, bank, query, k):
        ask("/embeddings", {"model": "house-embedder", "input": str(query)})
        return [bench_coord.Hit(item.content, id=item.id) for item in self.banks.get(bank, [])[:k]]
"#;

#[test]
fn p34_a_cap_on_usage_holds_for_runner_and_memory_system_together() {
    let mine = ["--max-banks", "2", "--system", "mine.py:Mine", "--meter", "--no-canaries", "--latency-probe", "off"];
    let whole = {
        let provider = Provider::start(&[]);
        let bench = provider.bench();
        fs::write(bench.path().join("mine.py"), MINE).expect("is written");
        let _ = bench.run(submit(&[&mine[..], &["--max-cost", "100000calls"]].concat())).expect_code(0);
        provider.count("requests")
    };
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    fs::write(bench.path().join("mine.py"), MINE).expect("is written");
    // while it is filled, and while it is asked
    for cap in [10, whole - 10] {
        let text = format!("{cap}calls");
        let paused = match cap {
            10 => bench.run(submit(&[&mine[..], &["--max-cost", &text]].concat())),
            _ => bench.run(["resume", "r", "--max-cost", &text]),
        };
        let paused = paused.expect_code(3);
        assert!(paused.stderr.contains(&format!("the cap of {cap} calls")), "{}", paused.stderr);
        assert!(provider.count("requests") <= cap, "{} of {cap}", provider.count("requests"));
    }
    let done = bench.run(["resume", "r", "--max-cost", "100000calls", "--json"]).expect_code(0).json();
    assert_eq!(done["outcomes"]["coverage"], 1.0, "nothing has failed by the cap: {}", done["errors"]);
}

/// One command has one cap (P41): repeats and controls together, whoever of them asks.
#[test]
fn p41_the_runs_of_one_command_share_a_cap_in_calls() {
    let provider = Provider::start(&["--latency-ms", "10"]);
    let bench = provider.bench();
    let group = ["--repeats", "2", "--controls", "--max-cost", "60calls", "--concurrency", "8"];
    let paused = bench.run(submit(&group)).expect_code(3);
    assert!(paused.stderr.contains("is above the cap of 60 calls"), "{}", paused.stderr);
    assert!(paused.stderr.contains("under the cap of 60 calls"), "{}", paused.stderr);
    assert_eq!(provider.count("requests"), 60, "all of the cap is used, and no more");
    let rows = bench.run(["status", "r", "--json"]).expect_code(0).json();
    for row in rows.as_array().expect("a row for each run") {
        assert_eq!(
            (&row["usage"]["used"], &row["usage"]["cap"], &row["usage"]["unit"]),
            (&60.into(), &60.into(), &"calls".into())
        );
    }
    let shown = bench.run(["status", "r"]).expect_code(0).stdout;
    assert!(shown.contains("60 calls of 60 used"), "{shown}");
    // one of its runs raises the cap of all
    let _ = bench.run(["resume", "r", "--max-cost", "75calls"]).expect_code(3);
    assert_eq!(provider.count("requests"), 75);
    let refused = bench.run(["resume", "r", "--max-cost", "5"]).expect_code(2);
    assert!(refused.stderr.contains("has counted calls until now"), "{}", refused.stderr);
    // also when the repeats have ended and controls alone are left
    let left = bench.run(["resume", "r", "--max-cost", "250calls"]).expect_code(3);
    assert!(left.stderr.contains("the result of run r-r1 stands"), "{}", left.stderr);
    assert_eq!(provider.count("requests"), 250);
    // the simulator answers the same whatever was recalled, and the controls find that: INVALID, but whole
    let done = bench.run(["resume", "r", "--max-cost", "100000calls", "--json"]).expect_code(5).json();
    assert!(done["notes"][0].as_str().is_some_and(|note| note.starts_with("r-r1 is INVALID: ")), "{done:#}");
    let runs = done["runs"].as_array().expect("its repeats");
    assert_eq!((runs.len(), &runs[0]["coverage"], &runs[1]["coverage"]), (2, &1.0.into(), &1.0.into()), "{done:#}");
}

#[test]
fn p41_the_cells_of_a_matrix_share_a_cap_in_calls() {
    let provider = Provider::start(&["--latency-ms", "10"]);
    let bench = provider.bench();
    let file = r#"
flags = ["--preset", "quick", "--dataset", "locomo-sim", "--answerer", "openai:house-model", "--judge", "openai:house-model"]
[axes]
system = ["bm25", "none"]
"#;
    fs::write(bench.path().join("m.toml"), file).expect("is written");
    let matrix = |more: &[&str]| bench.run([&["matrix", "m.toml", "--run-id", "m"], more].concat());
    let paused = matrix(&["--max-cost", "50calls"]).expect_code(3);
    assert!(paused.stderr.contains("under the cap of 50 calls"), "{}", paused.stderr);
    assert_eq!(provider.count("requests"), 50);
    // the cap stays, also for cells that come later
    let larger = file.replace("\"none\"]", "\"none\", \"random\"]");
    fs::write(bench.path().join("m.toml"), larger).expect("is written");
    let _ = matrix(&[]).expect_code(3);
    assert_eq!(provider.count("requests"), 50);
    let refused = matrix(&["--max-cost", "9"]).expect_code(2);
    assert!(refused.stderr.contains("has counted calls until now"), "{}", refused.stderr);
    let _ = matrix(&["--max-cost", "100000calls"]).expect_code(0);
}

#[test]
fn a_run_is_capped_in_one_unit() {
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    for (more, said) in [
        (&["--max-cost-per-day", "5"][..], "--max-cost-per-day is in dollars"),
        (&["--set", "run.max_cost_judge=5"], "run.max_cost_judge is in dollars"),
    ] {
        let refused = bench.run(submit(&[more, &["--max-cost", "40calls"]].concat())).expect_code(2);
        assert!(refused.stderr.contains(said), "{said}: {}", refused.stderr);
    }
    let refused = bench.run(submit(&["--max-cost", "40questions"])).expect_code(2);
    assert!(refused.stderr.contains("500calls"), "{}", refused.stderr);
    assert_eq!(provider.count("requests"), 0, "nothing was asked");
}
