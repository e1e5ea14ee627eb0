//! What models cost, as it is listed, brought up to date and remembered.

use bench_testkit::{
    bench::{Bench, submit_sim},
    provider::Provider,
};
use serde_json::{Value, json};

/// A table as LiteLLM publishes it, in which the model of the tests costs `input` and `output` dollars per token.
fn table(bench: &Bench, input: f64, output: f64) {
    let models = json!({
        "gpt-4o-mini": {"litellm_provider": "openai", "mode": "chat", "max_input_tokens": 128_000,
            "max_output_tokens": 16_384, "supports_vision": true, "supports_audio_input": false,
            "input_cost_per_token": input, "output_cost_per_token": output},
        "new-model": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06},
        "free\u{1b}[2J": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 0, "output_cost_per_token": 0},
        "elsewhere": {"litellm_provider": "another", "mode": "chat", "input_cost_per_token": 1e-06, "output_cost_per_token": 1e-06},
    });
    std::fs::write(bench.path().join("table.json"), models.to_string()).expect("is written");
}

const UPDATE: [&str; 6] = ["prices", "update", "--from", "table.json", "--provider", "openai"];

#[test]
fn prices_are_shown_first_written_when_told_and_stored_runs_keep_theirs() {
    let provider = Provider::start(&["--price", "gpt-4o-mini=0.15/0.60"]);
    let bench = provider.bench();
    let report = bench.run(provider.submit(&["--run-id", "before"])).expect_code(0).json();
    table(&bench, 3e-07, 1.2e-06);

    let shown = bench.run(UPDATE).expect_code(0);
    assert!(
        shown.stdout.contains("1 changed\n  gpt-4o-mini\n    - 0.15 in, 0.075 cached, 0.6 out"),
        "{}",
        shown.stdout
    );
    assert!(shown.stdout.contains("    + 0.3 in, 0.3 cached, 1.2 out"), "{}", shown.stdout);
    assert!(shown.stdout.contains("new-model: 1 in, 1 cached, 2 out"), "{}", shown.stdout);
    assert!(shown.stdout.contains("1 left out") && !shown.stdout.contains('\u{1b}'), "{}", shown.stdout);
    assert!(shown.stderr.contains("--yes writes prices.json"), "{}", shown.stderr);
    assert!(!bench.path().join("prices.json").exists());

    let written = bench.run(UPDATE.iter().chain(&["--yes", "--json"]).copied()).expect_code(0).json();
    assert_eq!((&written["written"], &written["same"]), (&json!("prices.json"), &json!(0)));
    let set = ["--set", "models.price_file=prices.json"];
    let listed =
        bench.run(["models", "list", "--search", "4o-mini", "--json"].iter().chain(&set).copied()).expect_code(0);
    let model = listed.json()["models"][0].clone();
    assert_eq!((&model["usd_per_million"]["input"], &model["from"]), (&json!("0.3"), &json!("price file")));
    assert_eq!((&model["supports"], &model["max_output"]), (&json!(["vision"]), &json!(16_384)));
    assert_eq!(model["source"]["pages"], json!(["table.json"]));
    // twice the price, twice the estimate
    let estimate = |flags: &[&str]| -> f64 {
        let submit = provider.submit(flags);
        let args = std::iter::once("estimate").chain(submit.into_iter().skip(1));
        bench.run(args).expect_code(0).json()["usd"]["worst"].as_f64().expect("dollars")
    };
    let (old, new) = (estimate(&[]), estimate(&set));
    assert!((new / old - 2.0).abs() < 0.01, "{old} and {new}");

    let again = bench.run(["report", "before", "--format", "json"].iter().chain(&set).copied()).expect_code(0).json();
    assert_eq!(again["total"]["usd"], report["total"]["usd"], "a stored run keeps its prices");
    let same = bench.run(UPDATE.iter().chain(&["--json"]).copied()).expect_code(0).json();
    assert_eq!(same["same"], json!(2), "{same}");
}

#[test]
fn a_price_that_was_read_long_ago_is_said() {
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let line = json!({"model": "gpt-4o-mini", "input": "0.15", "output": "0.60"});
    let file = json!({"version": 2, "date": "2020-01-01", "models": [line]});
    std::fs::write(bench.path().join("old.json"), file.to_string()).expect("is written");
    let set = ["--set", "models.price_file=old.json"];
    let told = bench.run(provider.submit(&set)).expect_code(0);
    assert!(told.stderr.contains("the price of gpt-4o-mini is of 2020-01-01"), "{}", told.stderr);
    let args: Vec<&str> = std::iter::once("estimate").chain(provider.submit(&set).into_iter().skip(1)).collect();
    let estimate = bench.run(args).expect_code(0).json();
    assert_eq!(estimate["old_prices"].as_array().map(Vec::len), Some(1), "{estimate}");
    // one that was given now is of now
    let given =
        bench.run(provider.submit(&["--set", "models.price_file=old.json", "--price", "0.15,0.60"])).expect_code(0);
    assert!(!given.stderr.contains("the price of"), "{}", given.stderr);
    // also of one that the memory system alone may call
    let mine = "import bench_coord\nclass Mine(bench_coord.System):\n    def retain(self, bank, items): pass\n    def recall(self, bank, query, k): return []\n";
    std::fs::write(bench.path().join("mine.py"), mine).expect("is written");
    let metered =
        ["estimate", "--dataset", "locomo-sim", "--preset", "quick", "--system", "mine.py:Mine", "--meter", "--json"];
    let allowed = [&metered[..], &["--meter-allow", "gpt-4o-mini"], &set].concat();
    let lines = |args: &[&str]| bench.run(args).expect_code(0).json()["old_prices"].as_array().map_or(0, Vec::len);
    // and of all that it may call where there is no list of them
    assert_eq!((lines(&allowed), lines(&[&metered[..], &set].concat())), (1, 1));
    // or of its family
    let by_family = ["--meter-allow", "gpt-4o-mini-2024-07-18", "--price", "gpt-4o-mini=0.15,0.60"];
    assert_eq!(lines(&[&metered[..], &by_family, &set].concat()), 0);
}

/// A memory that calls a version of a model that no list knows.
const HOUSE: &str = r#"
import json, os, urllib.request
import bench_coord

class Mine(bench_coord.System):
    def __init__(self):
        self.items = {}

    def retain(self, bank, items):
        body = {"model": "house-model-2027-01-01", "max_tokens": 16, "messages": [{"role": "user", "content": "Sum up."}]}
        request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(),
            {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=60).read()
        self.items.setdefault(bank, []).extend(items)

    def recall(self, bank, query, k):
        words = set(str(query).lower().split())
        overlap = lambda item: -len(words & set(item.text.lower().split()))
        return sorted(self.items.get(bank, []), key=overlap)[:k]
"#;

#[test]
fn p34_what_a_metered_memory_calls_gets_its_price_by_a_flag_or_a_file() {
    let provider = Provider::start(&["--price", "house-model-2027-01-01=1/2"]);
    let bench = provider.bench();
    std::fs::write(bench.path().join("mine.py"), HOUSE).expect("is written");
    let line = json!({"model": "house-model", "input": "1", "output": "2"});
    let file = json!({"version": 3, "date": "2027-01-01", "models": [line]});
    std::fs::write(bench.path().join("prices.json"), file.to_string()).expect("is written");
    let metered = ["--system", "mine.py:Mine", "--meter", "--no-canaries", "--latency-probe", "off"];
    let metered = [&metered[..], &["--max-banks", "2", "--sample", "4"]].concat();
    for priced in [["--price", "house-model=1,2"], ["--set", "models.price_file=prices.json"]] {
        let before = provider.paid();
        // under the cap that a metered run has unless it says another
        let report = bench.run(submit_sim(&[&metered[..], &priced].concat())).expect_code(0).json();
        let (booked, paid) = (report["metered"]["usd"].as_f64().expect("dollars"), provider.paid() - before);
        assert!(booked > 0.0 && (booked - paid).abs() < 1e-12, "{}, ${paid}", report["metered"]);
    }
}

#[test]
fn what_is_no_table_or_no_price_file_is_refused_and_nothing_is_written_over() {
    let bench = Bench::new();
    let refused = |args: &[&str], said: &str| {
        let done = bench.run(args).expect_code(2);
        assert!(done.stderr.contains(said), "{args:?}: {}", done.stderr);
    };
    table(&bench, 1e-07, 1e-07);
    refused(&["prices", "update", "--from", "none.json"], "No such file");
    refused(&["prices", "update", "--from", "ftp://example.com/x"], "https://");
    refused(&["prices", "update", "--from", "http://example.com/x.json"], "not encrypted");
    refused(&["prices", "update", "--from", "table.json", "--provider", "nobody"], "no model of the provider 'nobody'");
    std::fs::write(bench.path().join("notes.txt"), "mine").expect("is written");
    refused(&["prices", "update", "--from", "notes.txt"], "LiteLLM");
    let over = [&UPDATE[..], &["--to", "notes.txt", "--yes"]].concat();
    refused(&over, "not written over");
    assert_eq!(std::fs::read_to_string(bench.path().join("notes.txt")).expect("is there"), "mine");
    refused(&["models", "list", "--search", "no-such-model"], "no model with a known price");
    let all = bench.run(["models", "list", "--json"]).expect_code(0).json();
    let models = all["models"].as_array().map_or(0, Vec::len);
    assert!(models > 40 && all["models"].as_array().is_some_and(|all| all.iter().all(has_all)), "{models}");
}

/// Whether a line of the list has what it is to have.
fn has_all(model: &Value) -> bool {
    let is_page = |page: &Value| page.as_str().is_some_and(|page| page.starts_with("https://"));
    let pages = model["source"]["pages"].as_array();
    model["usd_per_million"]["input"].is_string()
        && model["priced"].is_string()
        && model["encoding"].is_string()
        && model["provider"].is_string()
        && pages.is_some_and(|pages| !pages.is_empty() && pages.iter().all(is_page))
}
