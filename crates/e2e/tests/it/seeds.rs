//! Generated datasets of several seeds: a matrix whose report counts each seed as one figure.

use bench_testkit::bench::Bench;
use serde_json::{Value, json};

const LINE: [&str; 6] = ["submit", "--preset", "quick", "--latency-probe", "off", "--json"];

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn several_seeds_have_a_mean_and_systems_are_compared_seed_by_seed() {
    let bench = Bench::new();
    let axes = ["--dataset", "locomo-sim", "--system", "bm25,random", "--dataset-seed", "4,5,6", "--run-id", "seeds"];
    let report = bench.run([&LINE[..], &axes, &["--display", "none"]].concat()).expect_code(0).json();
    let cells = report["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 6);
    let groups = report["seeds"].as_array().expect("groups");
    let systems: Vec<&Value> = groups.iter().map(|group| &group["values"]["system"]).collect();
    assert_eq!(systems, [&json!("bm25"), &json!("random")]);
    let scores = |group: &Value| -> Vec<f64> {
        group["of_seeds"].as_array().expect("seeds").iter().map(|seed| number(&seed["value"])).collect()
    };
    for group in groups {
        let seeds: Vec<&Value> = group["of_seeds"].as_array().expect("seeds").iter().map(|s| &s["seed"]).collect();
        assert_eq!(seeds, [&json!("4"), &json!("5"), &json!("6")]);
        let (values, mean) = (scores(group), number(&group["mean"]));
        assert!((values.iter().sum::<f64>() / 3.0 - mean).abs() < 1e-12, "{group}");
        let half = 4.302_652_729_7 * number(&group["sd"]) / 3_f64.sqrt();
        let low = number(&group["ci95"]["low"]);
        assert!((low - (mean - half).max(0.0)).abs() < 1e-9, "{group}");
        for seed in group["of_seeds"].as_array().expect("seeds") {
            let cell = cells.iter().find(|cell| cell["number"] == seed["cell"]).expect("its cell");
            assert_eq!((&cell["values"]["dataset-seed"], &cell["value"]), (&seed["seed"], &seed["value"]));
        }
    }
    let pair = &report["seed_pairs"][0];
    let differences: Vec<f64> =
        scores(&groups[0]).iter().zip(scores(&groups[1])).map(|(first, second)| second - first).collect();
    assert!((number(&pair["difference"]) - differences.iter().sum::<f64>() / 3.0).abs() < 1e-12, "{pair}");
    assert_eq!((&pair["differ_in"], &pair["seeds"]), (&json!(["system"]), &json!(["4", "5", "6"])));
    assert!(number(&pair["ci95"]["low"]) <= number(&pair["difference"]), "{pair}");
    // a seed makes data of its own: no pair of cells crosses seeds
    let pairs = report["pairs"].as_array().expect("pairs");
    assert!(pairs.len() == 3 && pairs.iter().all(|pair| pair["differ_in"] == json!(["system"])), "{pairs:#?}");
    let text = bench.run(["report", "seeds", "--format", "md"]).expect_code(0).stdout;
    assert!(text.contains("## Over seeds") && text.contains("seed by seed, second minus first"), "{text}");
    // each cell is the run that the setting makes
    let alone = ["--dataset", "locomo-sim", "--system", "bm25", "--set", "sim.seed=5", "--run-id", "alone"];
    let alone = bench.run([&LINE[..], &alone].concat()).expect_code(0).json();
    assert_eq!(bench.report("seeds-c3-r1")["result_digest"], alone["result_digest"]);
}

#[test]
fn seeds_that_share_dialogues_have_no_interval_and_wrong_seeds_are_refused() {
    let bench = Bench::new();
    let small = ["--dataset", "long-horizon", "--set", "horizon.turns=300", "--system", "bm25"];
    let shared = [&LINE[..], &small, &["--dataset-seed", "42,43", "--run-id", "shared", "--display", "none"]].concat();
    let report = bench.run(shared).expect_code(0).json();
    let group = &report["seeds"][0];
    assert!(group["mean"].is_number() && group["ci95"].is_null(), "{group}");
    assert!(
        group["note"].as_str().is_some_and(|note| note.contains("seeds 42 and 43 have dialogues in common")),
        "{group}"
    );
    for (args, said) in [
        (&["--dataset", "locomo", "--dataset-seed", "1"][..], "'locomo' is the same whatever the seed"),
        (&["--dataset", "long-horizon", "--dataset-seed", "night"], "horizon.seed"),
        (&["--dataset", "locomo-sim", "--dataset-seed", "1,1"], "axis dataset-seed has the value 1 twice"),
        (&["--dataset", "smoke", "--dataset-seed", "1,2"], "datasets that are made of one are"),
    ] {
        let refused = bench.run([&LINE[..], args].concat()).expect_code(2);
        assert!(refused.stderr.contains(said), "{args:?}: {}", refused.stderr);
    }
}
