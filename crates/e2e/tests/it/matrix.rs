//! A grid of runs as one group, with the real programs: one cap, mistakes before anything is paid, kills, the same in a cluster.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use bench_e2e::faults::locomo;
use bench_testkit::{
    bench::{Bench, signal, wait},
    cluster::Cluster,
    process::{Process, wait_until},
    provider::{KEY, Provider},
};
use serde_json::{Value, json};

use crate::repeats::people;

const PATIENCE: Duration = Duration::from_secs(240);
/// A judge by rule, and prices, so that caps mean something.
const PRICED: [&str; 4] = ["--price", "gpt-4o-mini=0.15/0.60", "--judge", "reference"];

/// Two systems and two cut-offs, one of the four combinations left out, without any model.
const FREE: &str = r#"
name = "grid"
flags = ["--preset", "quick", "--dataset", "locomo-sim", "--latency-probe", "off"]
[axes]
system = ["bm25", "random"]
top-k = [5, 10]
[[exclude]]
system = "random"
top-k = 5
"#;
/// Two cells with a model, twice each.
const PAID: &str = r#"
flags = ["--preset", "quick", "--dataset", "locomo-sim", "--latency-probe", "off", "--answerer", "openai:gpt-4o-mini",
  "--judge", "openai:gpt-4o-mini", "--set", "answerer.params={\"seed\":7}"]
repeats = 2
[axes]
top-k = [5, 10]
"#;
/// Calls of a run of the paid matrix.
const CALLS: u64 = 100;

fn written(folder: &Path, text: &str) -> String {
    let file = folder.join("m.toml");
    fs::write(&file, text).expect("the file is written");
    file.display().to_string()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn digests(bench: &Bench, ids: &[&str]) -> Vec<Value> {
    ids.iter().map(|id| bench.report(id)["result_digest"].clone()).collect()
}

/// Several systems on one command line are a matrix, with what a run is told as usual.
#[test]
fn several_systems_and_presets_of_one_submit_are_a_matrix() {
    let bench = Bench::new();
    let line =
        ["submit", "--system", "bm25,none", "--preset=quick", "--dataset", "locomo-sim", "--latency-probe", "off"];
    let dry = bench.run([&line[..], &["--dry-run", "--json"]].concat()).expect_code(0).json();
    assert_eq!(dry["cells"].as_array().map(Vec::len), Some(2), "{dry:#}");
    let estimate = [&["estimate"], &line[1..], &["--json"]].concat();
    assert_eq!(bench.run(estimate).expect_code(0).json(), dry);
    assert!(!bench.path().join(".bench").exists(), "a dry run leaves nothing behind");
    let begin =
        [&line[..], &["-p", "random", "--run-id", "s", "--name", "three", "--json", "--display", "none"]].concat();
    let report = bench.run(&begin).expect_code(0).json();
    let systems: Vec<&Value> =
        report["cells"].as_array().into_iter().flatten().map(|cell| &cell["values"]["system"]).collect();
    assert_eq!((systems, &report["name"]), (vec![&json!("bm25"), &json!("none"), &json!("random")], &json!("three")));
    let again = bench.run(&begin).expect_code(0);
    assert!(again.stderr.contains("going on with it"), "{}", again.stderr);
    for (more, said) in [
        (&["-p", "bm25"][..], "axis system has the value bm25 twice"),
        (&["-p", "elephant"], "unknown memory system 'elephant'"),
        (&["--fork", "s-c1-r1", "--from", "judge"], "--fork makes one run of one run"),
    ] {
        let refused = bench.run([&line[..], more].concat()).expect_code(2);
        assert!(refused.stderr.contains(said), "{said}: {}", refused.stderr);
    }
    let refused = bench.run(["report", "s", "--published"]).expect_code(2);
    assert!(refused.stderr.contains("`bench-coord report s-c1-r1 --published`"), "{}", refused.stderr);
    let nothing = bench.run(["submit", "--dataset", "all"]).expect_code(2);
    assert!(nothing.stderr.contains("no dataset is on this machine"), "{}", nothing.stderr);
    // the page of the group, with the front of what can be held against each other
    let runs = bench.path().join(".bench/runs/s");
    let page = fs::read_to_string(runs.join("report.html")).expect("a page");
    assert!(page.contains("Main effects") && page.contains("</html>"), "{page}");
    let shown = bench.run(["report", "s", "--format", "html"]).expect_code(0).stdout;
    assert_eq!(shown.trim_end(), page.trim_end());
}

#[test]
fn a_matrix_tells_cells_pairs_and_main_effects() {
    let bench = Bench::new();
    let file = written(bench.path(), FREE);
    let done = bench.run(["matrix", &file, "--run-id", "m", "--json", "--display", "none"]).expect_code(0);
    let report = done.json();
    let cells = report["cells"].as_array().expect("cells");
    let values: Vec<&Value> = cells.iter().map(|cell| &cell["values"]).collect();
    assert_eq!(
        values,
        [
            &json!({"system": "bm25", "top-k": "5"}),
            &json!({"system": "bm25", "top-k": "10"}),
            &json!({"system": "random", "top-k": "10"})
        ]
    );
    for cell in cells {
        let (low, high) = (number(&cell["ci95"]["low"]), number(&cell["ci95"]["high"]));
        assert!(low <= number(&cell["value"]) && number(&cell["value"]) <= high, "{cell}");
        assert_eq!((&cell["ended"], &cell["differs_in"]), (&json!(1), &json!([])));
    }
    // each cell is the run that it would be alone
    let alone =
        ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--system", "bm25", "--top-k", "5", "--run-id", "x"];
    let alone = bench.run(alone.into_iter().chain(["--latency-probe", "off", "--json"])).expect_code(0).json();
    assert_eq!(digests(&bench, &["m-c1-r1"]), [alone["result_digest"].clone()]);
    let pairs = report["pairs"].as_array().expect("pairs");
    assert_eq!(pairs.len(), 3);
    assert!(pairs.iter().all(|pair| pair["ci95"]["low"].is_number() && pair["p_holm"].is_number()), "{pairs:?}");
    let both = pairs.iter().find(|pair| pair["a"] == 1 && pair["b"] == 3).expect("the diagonal");
    assert_eq!(both["differ_in"], json!(["system", "top-k"]));
    let effects = report["effects"].as_array().expect("effects");
    let told: Vec<(&Value, &Value)> = effects.iter().map(|effect| (&effect["axis"], &effect["pairs"])).collect();
    assert_eq!(told, [(&json!("system"), &json!(1)), (&json!("top-k"), &json!(1))]);
    let system = effects.iter().find(|effect| effect["axis"] == "system").expect("of the system");
    let pair = pairs.iter().find(|pair| pair["a"] == 2 && pair["b"] == 3).expect("differs in the system alone");
    assert_eq!(system["difference"], pair["difference"], "one pair is the effect");
    let brief = bench.run(["report", "grid"]).expect_code(0).stdout;
    assert!(brief.lines().count() <= 24 && brief.contains("bench-coord report m --full"), "{brief}");
    let text = bench.run(["report", "grid", "--full"]).expect_code(0).stdout;
    for words in ["3 of 3 cells", "Main effects", "p (Holm)", "system: bm25 to random"] {
        assert!(text.contains(words), "'{words}' is missing in:\n{text}");
    }
    let listed = bench.run(["list"]).expect_code(0).stdout;
    assert!(listed.contains("m (3 runs)") && !listed.contains("m-c1"), "{listed}");
    // submitted again it is the same
    let again = bench.run(["matrix", &file, "--run-id", "m", "--json", "--display", "none"]).expect_code(0);
    assert_eq!(again.json()["cells"], report["cells"]);
}

#[test]
fn mistakes_name_file_line_and_cell_before_anything_is_paid() {
    let provider = Provider::start(&PRICED);
    let bench = provider.bench();
    for (text, words) in [
        (
            FREE.replace("\"random\"]", "\"bem25\"]").replace("\"random\"", "\"bem25\""),
            "m.toml:5: cell 3 (system = bem25, top-k = 10)",
        ),
        (FREE.replace("top-k = [5, 10]", "top-k = [5, 10]\ncolour = [1]"), "m.toml:"),
        (FREE.replace("[axes]", "[axis]"), "unknown field `axis`"),
        (
            FREE.replace("\"--preset\", \"quick\"", "\"--preset\", \"qick\""),
            "m.toml:3: cell 1 (system = bm25, top-k = 5): --preset: run.preset is \"qick\"",
        ),
        (format!("{FREE}\n[[exclude]]\nsystem = \"none\"\n"), "system = none is a value of no axis"),
    ] {
        let file = written(bench.path(), &text);
        let refused = bench.run(["matrix", &file]).expect_code(2);
        assert!(refused.stderr.contains(words), "'{words}' is missing in {}", refused.stderr);
    }
    let file = written(bench.path(), PAID);
    let counted = bench.run(["matrix", &file, "--max-cost", "500calls", "--dry-run"]).expect_code(0).stdout;
    assert!(counted.contains("(cap 500 calls)"), "{counted}");
    let dry = bench.run(["matrix", &file, "--dry-run"]).expect_code(0).stdout;
    assert!(dry.contains(&format!("2 cells × 2 runs: {} calls", 4 * CALLS)), "{dry}");
    let dry = bench.run(["matrix", &file, "--dry-run", "--json"]).expect_code(0).json();
    assert_eq!((&dry["cells"][1]["values"], &dry["total"]["calls"]), (&json!({"top-k": "10"}), &json!(4 * CALLS)));
    // a free cell comes first, and the cap is that of the paid ones
    let mixed = PAID
        .replace("top-k = [5, 10]", "answerer = [\"extractive\", \"openai:gpt-4o-mini\"]")
        .replace("\"--answerer\", \"openai:gpt-4o-mini\",", "")
        .replace("\"--judge\", \"openai:gpt-4o-mini\", ", "");
    let file = written(bench.path(), &mixed);
    let dry = bench.run(["matrix", &file, "--dry-run", "--json"]).expect_code(0).json();
    assert_eq!(dry["usd_cap"], json!(20.0), "{dry:#}");
    assert_eq!(provider.count("requests"), 0, "nothing was started");
}

#[test]
fn p41_a_matrix_has_one_cap_and_is_killed_and_resumed_with_the_same_digests() {
    let provider = Provider::start(&[PRICED.as_slice(), &["--latency-ms", "40"]].concat());
    let bench = provider.bench();
    let file = written(bench.path(), PAID);
    let ids = ["m-c1-r1", "m-c1-r2", "m-c2-r1", "m-c2-r2"];
    let ended = bench.run(["matrix", &file, "--run-id", "m", "--max-cost", "0.01", "--display", "none"]).expect_code(3);
    let paid = provider.paid();
    assert!(paid > 0.003 && paid <= 0.01, "${paid} of $0.01");
    assert!(ended.stderr.contains("resume m"), "{}", ended.stderr);
    let mut child = bench.start(["resume", "m", "--max-cost", "1", "--json", "--display", "none"]);
    let (before, began) = (provider.count("requests"), Instant::now());
    while provider.count("requests") < before + 60 && began.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(10));
    }
    signal(&child, "KILL");
    let _ = wait(child);
    child = bench.start(["resume", "m", "--json", "--display", "none"]);
    let report = wait(child).expect_code(0).json();
    assert_eq!((&report["cells"][0]["ended"], &report["cells"][1]["ended"]), (&json!(2), &json!(2)));
    assert!(number(&report["cells"][1]["sd"]) >= 0.0);

    let calm = Provider::start(&PRICED);
    let undisturbed = calm.bench();
    let file = written(undisturbed.path(), PAID);
    let _ = undisturbed.run(["matrix", &file, "--run-id", "m", "--max-cost", "1", "--display", "none"]).expect_code(0);
    assert_eq!(calm.count("requests"), 4 * CALLS, "a matrix makes the calls of its cells");
    assert_eq!(digests(&bench, &ids), digests(&undisturbed, &ids));
}

/// Three systems and two judges, twice each, on a small sample.
const WIDE: &str = r#"
flags = ["--sample-total", "10", "--dataset", "locomo-sim", "--answerer", "openai:gpt-4o-mini",
  "--set", "answerer.params={\"seed\":7}"]
repeats = 2
[axes]
system = ["bm25", "random", "full-context"]
judge = ["openai:gpt-4o-mini", "openai:gpt-4o"]
"#;
/// Runs of it, and calls of each.
const WIDE_RUNS: u64 = 12;
const WIDE_CALLS: u64 = 20;

/// The ids of all runs of [`WIDE`].
fn wide_ids() -> Vec<String> {
    (1..=6).flat_map(|cell| (1..=2).map(move |number| format!("m-c{cell}-r{number}"))).collect()
}

/// The report of a matrix under a cap in dollars that loses its client, its coordinator and all workers after so many requests, twice;
/// and the processes that are left.
fn killed_twice(
    cluster: &Cluster,
    provider: &Provider,
    (file, cap): (&str, &str),
    at: [u64; 2],
) -> (Value, (Process, Vec<Process>)) {
    let (mut coordinator, mut workers) = people(cluster, ["leader", "one", "two"]);
    let begin = ["matrix", file, "--run-id", "m", "--display", "none", "--max-cost", cap];
    let mut client = cluster.client(&begin);
    for (requests, names) in at.into_iter().zip([["leader2", "three", "four"], ["leader3", "five", "six"]]) {
        wait_until("some of it is done", PATIENCE, || provider.count("requests") >= requests);
        client.kill();
        workers.iter_mut().for_each(Process::kill);
        coordinator.kill();
        (coordinator, workers) = people(cluster, names);
        client = cluster.client(&["resume", "m", "--json", "--display", "none"]);
    }
    (client.wait(PATIENCE).expect_code(0).json(), (coordinator, workers))
}

/// The same matrix, three times each, on the preset `fair` of the real LoCoMo.
#[test]
fn the_real_locomo_by_three_systems_two_judges_and_three_repeats_is_killed_twice_under_one_cap() {
    let Some(data) = locomo() else { return };
    let text = WIDE
        .replace(r#""--sample-total", "10", "--dataset", "locomo-sim""#, r#""--preset", "fair", "--dataset", "locomo""#)
        .replace("repeats = 2", "repeats = 3")
        .replace(r#""full-context""#, r#""oracle""#);
    assert!(text.contains("fair") && text.contains("repeats = 3") && text.contains("oracle"), "{text}");
    let prices = [PRICED.as_slice(), &["--price", "gpt-4o=2.5/10"]].concat();
    let provider = Provider::start(&[prices.as_slice(), &["--latency-ms", "20"]].concat());
    let cluster = Cluster::new().with_provider(provider.base_url(), KEY);
    let cluster = cluster.with_env("BENCH_DATASETS_DIR", &data.display().to_string());
    let file = written(cluster.bench().path(), &text);
    let (report, _processes) = killed_twice(&cluster, &provider, (&file, "20"), [1500, 4500]);
    let cells = report["cells"].as_array().expect("cells");
    assert_eq!(cells.iter().map(|cell| &cell["ended"]).collect::<Vec<_>>(), [&json!(3); 6]);
    assert!(provider.paid() <= number(&report["booked_usd"]) && number(&report["booked_usd"]) <= 20.0, "{report:#}");

    let calm = Provider::start(&prices);
    let undisturbed = calm.bench().with_env("BENCH_DATASETS_DIR", data.display().to_string());
    let file = written(undisturbed.path(), &text);
    let _ = undisturbed.run(["matrix", &file, "--run-id", "m", "--max-cost", "20", "--display", "none"]).expect_code(0);
    for id in (1..=6).flat_map(|cell| (1..=3).map(move |number| format!("m-c{cell}-r{number}"))) {
        assert_eq!(cluster.report(&id)["result_digest"], undisturbed.report(&id)["result_digest"], "{id}");
    }
}

#[test]
fn a_matrix_in_a_cluster_of_roles_is_killed_twice_and_has_the_digests_of_one_machine() {
    let prices = [PRICED.as_slice(), &["--price", "gpt-4o=2.5/10"]].concat();
    let provider = Provider::start(&[prices.as_slice(), &["--latency-ms", "60"]].concat());
    let cluster = Cluster::new().with_provider(provider.base_url(), KEY);
    let file = written(cluster.bench().path(), WIDE);
    let cap = ["--max-cost", "1"];
    let (report, _processes) = killed_twice(&cluster, &provider, (&file, cap[1]), [50, 130]);
    let ended: Vec<&Value> = report["cells"].as_array().expect("cells").iter().map(|cell| &cell["ended"]).collect();
    assert_eq!(ended, [&json!(2); 6]);
    assert_eq!((report["pairs"].as_array().map(Vec::len), &report["cap_usd"]), (Some(15), &json!(1.0)));
    assert!(provider.paid() <= number(&report["booked_usd"]) && number(&report["booked_usd"]) <= 1.0, "{report:#}");
    // one probe after the other: nothing else was in a worker's hands while recalls were timed
    for cell in report["cells"].as_array().expect("cells") {
        assert!(number(&cell["probe"]["p50_ms"]) > 0.0, "{cell:#}");
        let id = cell["runs"][0].as_str().expect("a run");
        assert_eq!(cluster.report(id)["latency_probe"]["conditions"]["other_tasks"], json!(0), "{id}");
    }

    let calm = Provider::start(&prices);
    let undisturbed = calm.bench();
    let file = written(undisturbed.path(), WIDE);
    let _ = undisturbed.run(["matrix", &file, "--run-id", "m", "--max-cost", "1", "--display", "none"]).expect_code(0);
    assert_eq!(calm.count("requests"), WIDE_RUNS * WIDE_CALLS, "a matrix makes the calls of its cells");
    for id in wide_ids() {
        assert_eq!(cluster.report(&id)["result_digest"], undisturbed.report(&id)["result_digest"], "{id}");
    }
    let detached =
        [&["matrix", file.as_str(), "--run-id", "d", "--repeats", "1", "--detach", "--json"][..], &cap].concat();
    let detached = cluster.run(&detached).expect_code(3).json();
    assert_eq!(detached["runs"].as_array().map(Vec::len), Some(6), "{detached}");
    let followed = cluster.run(&["resume", "d", "--json", "--display", "none"]).expect_code(0).json();
    assert_eq!(followed["cells"][5]["ended"], json!(1));
    for (name, text) in cluster.logs() {
        assert!(!text.contains("permission denied"), "{name}:\n{text}");
    }
}

#[test]
fn cells_and_repeats_are_added_later_and_keep_their_numbers() {
    let provider = Provider::start(&PRICED);
    let bench = provider.bench();
    let small = PAID.replace("top-k = [5, 10]", "top-k = [10]").replace("repeats = 2", "repeats = 1");
    let run = |text: &str, more: &[&str]| {
        let file = written(bench.path(), text);
        bench.run([&["matrix", file.as_str(), "--run-id", "m", "--json", "--display", "none"][..], more].concat())
    };
    let first = run(&small, &["--max-cost", "1"]).expect_code(0).json();
    let before = (digests(&bench, &["m-c1-r1"]), provider.count("requests"));
    assert_eq!(before.1, CALLS);
    // the new cell stands before the old one in the file, and has the next number all the same; a dry run tells what will be made
    let dry = run(PAID, &["--dry-run"]).expect_code(0).json();
    let told = dry["cells"].as_array().into_iter().flatten();
    let told: Vec<_> = told.map(|cell| (&cell["number"], &cell["values"]["top-k"], &cell["repeats"])).collect();
    assert_eq!(told, [(&json!(2), &json!("5"), &json!(2)), (&json!(1), &json!("10"), &json!(1))]);
    assert_eq!((&dry["usd_cap"], provider.count("requests")), (&json!(1.0), CALLS));
    assert_eq!(run(&small, &["--dry-run"]).expect_code(0).json()["cells"], json!([]), "nothing would be made");
    let grown = run(PAID, &[]).expect_code(0);
    assert!(grown.stderr.contains("3 runs added"), "{}", grown.stderr);
    let report = grown.json();
    let cells: Vec<(&Value, &Value)> = report["cells"]
        .as_array()
        .expect("cells")
        .iter()
        .map(|cell| (&cell["values"]["top-k"], &cell["ended"]))
        .collect();
    assert_eq!(cells, [(&json!("10"), &json!(2)), (&json!("5"), &json!(2))]);
    assert_eq!(
        (digests(&bench, &["m-c1-r1"]), provider.count("requests")),
        (before.0, 4 * CALLS),
        "nothing is done again"
    );
    assert_eq!((&report["cap_usd"], &first["cap_usd"]), (&json!(1.0), &json!(1.0)), "the group keeps its cap");
    // an axis more: what was measured has its first value
    let wider =
        PAID.replace("top-k = [5, 10]", "top-k = [5, 10]\nsystem = [\"bm25\", \"random\"]").replace("repeats = 2", "");
    let report = run(&wider, &["--max-cost", "2"]).expect_code(0).json();
    assert_eq!(report["cells"].as_array().map(Vec::len), Some(4), "{report:#}");
    assert_eq!(report["cells"][0]["values"], json!({"system": "bm25", "top-k": "10"}));
    assert_eq!((&report["cap_usd"], provider.count("requests")), (&json!(2.0), 6 * CALLS));
    let system = report["effects"].as_array().expect("effects").iter().find(|effect| effect["axis"] == "system");
    assert_eq!(system.map(|effect| &effect["pairs"]), Some(&json!(2)), "the old cells are a part of it");
    // what is no longer in the file stays
    let fewer = run(&small, &[]).expect_code(0);
    assert!(fewer.stderr.contains("3 cells of matrix m not in the file"), "{}", fewer.stderr);
    assert_eq!(fewer.json()["cells"].as_array().map(Vec::len), Some(4));
    // the same values with other settings are another cell
    let other = run(&wider.replace("quick", "fair"), &[]).expect_code(2);
    assert!(other.stderr.contains("exists with other settings"), "{}", other.stderr);
    let one = bench.run(provider.submit(&["--run-id", "m"])).expect_code(2);
    assert!(one.stderr.contains("a group of runs already"), "{}", one.stderr);
    let _ = bench.run(["delete", "m", "--yes"]).expect_code(0);
    assert!(!bench.run(["list"]).expect_code(0).stdout.contains("m-c") && !bench.path().join(".bench/runs/m").exists());
}

#[test]
fn fronts_are_those_of_the_figures_and_a_baseline_is_changed_in_one_thing() {
    let bench = Bench::new();
    let text = r#"
flags = ["--preset", "quick", "--dataset", "locomo-sim"]
[baseline]
system = "bm25"
top-k = 10
settings = "plain"
[axes]
system = ["none", "random"]
top-k = [3]
settings = ["soft"]
[settings]
plain = []
soft = ["bm25.k1=0.9"]
"#;
    let file = written(bench.path(), text);
    let report = bench.run(["matrix", &file, "--run-id", "m", "--json", "--display", "none"]).expect_code(0).json();
    let cells = report["cells"].as_array().expect("cells");
    let changed: Vec<Value> = report["pairs"]
        .as_array()
        .expect("pairs")
        .iter()
        .filter(|pair| pair["a"] == 1)
        .map(|pair| pair["differ_in"].clone())
        .collect();
    assert_eq!(changed, [json!(["settings"]), json!(["system"]), json!(["system"]), json!(["top-k"])]);
    let figures: Vec<Option<(f64, f64)>> =
        cells.iter().map(|cell| Some((cell["value"].as_f64()?, cell["probe"]["p50_ms"].as_f64()?))).collect();
    for (cell, figure) in cells.iter().zip(&figures) {
        let Some((value, ms)) = figure else {
            assert!(cell["probe_note"].as_str().is_some_and(|note| note.contains("returns nothing")), "{cell:#}");
            assert_eq!(cell["on_front_of_probe"], Value::Null);
            continue;
        };
        let beaten = figures.iter().flatten().any(|(v, m)| v >= value && m <= ms && (v > value || m < ms));
        assert_eq!(cell["on_front_of_probe"], json!(!beaten), "{cells:#?}");
        assert_eq!(cell["probe_note"], Value::Null, "how many hits are asked for is a setting");
    }
    assert!(figures.iter().flatten().count() == 4, "{cells:#?}");
    let best = cells.iter().map(|cell| number(&cell["value"])).fold(0.0, f64::max);
    // nothing costs anything, so that only the best are on the front of dollars
    for cell in cells {
        assert_eq!(cell["on_front_of_usd"], json!(number(&cell["value"]) >= best), "{cell:#}");
    }
    let shown = bench.run(["report", "m", "--format", "md"]).expect_code(0).stdout;
    assert!(shown.contains("front: no other cell with the same questions"), "{shown}");
    let listed = bench.run(["list"]).expect_code(0).stdout;
    assert!(listed.contains("3 systems"), "{listed}");
    let runs = bench.path().join(".bench/runs");
    assert!(runs.join("m/report.json").is_file() && runs.join("m-c5-r1/report.json").is_file());
    let read =
        |name: &str| -> Value { serde_json::from_slice(&fs::read(runs.join(name)).expect("a file")).expect("JSON") };
    let (cell, report) = (read("m/results-c5.json"), read("m/report.json"));
    assert_eq!((&cell["matrix"], &cell["schema_version"]), (&json!("m"), &report["schema_version"]));
    assert_eq!(cell["cell"], report["cells"][4], "a cell by itself says what the report says of it");
}
