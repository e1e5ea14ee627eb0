//! The real LoCoMo file, when it is there (`BENCH_REFERENCE_DIR`, by default `../shared`): it may not be part of this
//! repository, so these are the only tests that step aside, and they say so.

use bench_e2e::faults::locomo;
use bench_testkit::{bench::Bench, troubled_s3::TroubledS3};

use crate::printed::{forms::Published, held};

#[test]
fn the_real_locomo_runs_in_all_presets() {
    let Some(data) = locomo() else { return };
    let bench = Bench::new().with_env("BENCH_DATASETS_DIR", data.display().to_string());
    let run =
        |preset: &str| bench.run(["submit", "--dataset", "locomo", "--preset", preset, "--json"]).expect_code(0).json();
    let full = run("full");
    assert_eq!(full["outcomes"]["sample"], 1986);
    assert_eq!(full["outcomes"]["coverage"], 1.0);
    assert_eq!(full["dataset"]["sha256"], "79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4");
    assert_eq!(full["headline"]["estimator"], "mean");
    assert_eq!(full["without_adversarial"]["n"], 1540);
    let by_category = full["scores"][0]["by_category"].as_array().expect("categories");
    let counts: Vec<(&str, u64)> = by_category
        .iter()
        .map(|c| (c["category"].as_str().expect("a name"), c["n"].as_u64().expect("a count")))
        .collect();
    assert_eq!(
        counts,
        [("adversarial", 446), ("multi-hop", 282), ("open-domain", 96), ("single-hop", 841), ("temporal", 321)]
    );
    let fair = run("fair");
    assert_eq!(fair["outcomes"]["sample"], 200);
    assert_eq!(fair["headline"]["estimator"], "weighted");
    let (full, fair) = (full["headline"]["value"].as_f64().expect("a score"), &fair["headline"]);
    let interval =
        (fair["benchmark_ci95"]["low"].as_f64().expect("low"), fair["benchmark_ci95"]["high"].as_f64().expect("high"));
    assert!(interval.0 <= full && full <= interval.1, "the sample's interval {interval:?} holds the full score {full}");
    assert_eq!(run("quick")["outcomes"]["sample"], 50);
    let without = bench
        .run(["submit", "--dataset", "locomo", "--preset", "full", "--exclude-category", "adversarial", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(without["outcomes"]["sample"], 1540);
    // among published results by the categories that these count, and with what differs
    let told = bench.run(["report", "latest", "--published", "--json"]).expect_code(0).json();
    held::<Published>(&told);
    let lines = told["results"].as_array().expect("lines");
    let ours: Vec<_> = lines.iter().filter(|line| line["is_this_run"] == true).collect();
    assert_eq!((ours.len(), &ours[0]["score"]), (1, &without["headline"]["value"]), "{told:#}");
    let of_1540 = |line: &&serde_json::Value| line["questions"] == 1540 && line["is_this_run"] == false;
    let theirs: Vec<_> = lines.iter().filter(of_1540).collect();
    assert!(theirs.len() > 5, "{told:#}");
    for line in theirs {
        let differs: Vec<&str> =
            line["differs_in"].as_array().into_iter().flatten().filter_map(|d| d.as_str()).collect();
        assert!(!differs.contains(&"questions") && differs.iter().any(|d| d.starts_with("judge")), "{line}");
        assert!(differs.contains(&"metric"), "no judge has graded ours: {line}");
        let of_ten = line["runs"] == 10;
        assert!(differs.contains(&if of_ten { "repeats" } else { "repeats not said" }), "ours is one run: {line}");
    }
    let shown = bench.run(["report", "latest", "--published"]).expect_code(0).stdout;
    assert!(shown.contains("> bm25") && shown.contains("this run"), "{shown}");
}

/// What anybody gets who runs LoCoMo with `bm25` and `extractive`: stored runs, resumed and compared ones, rest on these. Who
/// changes one of them on purpose raises a version, says so in the changelog, and writes it down here.
const RUNS: [(&str, &str, &str); 3] = [
    (
        "quick",
        "acf294dcdf1a3b74cc9ffbdd8a387a53b02fa34bd18200f20b14c13011848251",
        "a4ab234a22a1137ef1b45cc8f05c65ed3e50b62293afdeff311132f82e069b6f",
    ),
    (
        "fair",
        "b6c6e225f83e69268dd4fbf5d82c725db39c0145f945e569e036eeb667b0c477",
        "8c0e0034ccb5b7e2fae30e16571d64d298020e3e9b4e993e474912b1b84fac01",
    ),
    (
        "full",
        "87a53fc5f0b4fde7043f4d74398364b0155de444d5221c98f2f83952288d77b0",
        "fead596a575882b1a204f4e18ae55765b85ca299b83a2d8d373d14fecf6e9ab8",
    ),
];

#[test]
fn locomo_keeps_its_fingerprints_and_digests() {
    let Some(data) = locomo() else { return };
    let bench = Bench::new().with_env("BENCH_DATASETS_DIR", data.display().to_string());
    for (preset, fingerprint, digest) in RUNS {
        let whom = ["--system", "bm25", "--answerer", "extractive", "--latency-probe", "off", "--json"];
        let run = [&["submit", "--dataset", "locomo", "--preset", preset][..], &whom].concat();
        let report = bench.run(run).expect_code(0).json();
        assert_eq!(report["run"]["fingerprint"], fingerprint, "{preset}: runs are not the same any more");
        assert_eq!(report["result_digest"], digest, "{preset}: results are not the same any more");
    }
}

/// The page that the README names says of each preset what `estimate` says.
#[test]
fn the_tiers_cost_what_an_estimate_says() {
    let Some(data) = locomo() else { return };
    let bench = Bench::new()
        .with_env("BENCH_DATASETS_DIR", data.display().to_string())
        .with_env("OPENAI_API_KEY", "sk-is-not-used");
    let page = include_str!("../../../../docs/DATASETS.md");
    let section = page.split("## How many questions").nth(1).expect("has the table");
    for preset in ["quick", "fair", "full"] {
        let models = ["--answerer", "openai:gpt-4o-mini", "--judge", "openai:gpt-4o-mini", "--json"];
        let told = [&["estimate", "--dataset", "locomo", "--preset", preset][..], &models].concat();
        let told = bench.run(told).expect_code(0).json();
        let row = section.lines().find(|line| line.starts_with(&format!("| `{preset}` |"))).expect("has a row");
        let dollars = format!("about ${:.2},", told["usd"]["expected"].as_f64().expect("dollars"));
        let points = |at: usize| told["interval"]["clustered_points"][at].as_f64().expect("points");
        assert!(row.contains(&dollars), "{preset}: {dollars} {row}");
        let (low, high) = (points(0), points(1));
        let said = [format!("± {low:.0} to {high:.0} points"), format!("± {low:.1} to {high:.1} points")];
        assert!(said.iter().any(|said| row.contains(said)), "{preset}: {said:?} {row}");
    }
}

#[test]
fn a_planted_copy_is_refused_and_marked() {
    let Some(data) = locomo() else { return };
    let text = std::fs::read_to_string(data.join("locomo/locomo10.json")).expect("readable");
    let bench = Bench::new();
    std::fs::write(bench.path().join("copy.json"), format!("{text}\n")).expect("writable");
    let refused = bench.run(["submit", "--dataset", "locomo", "--dataset-path", "copy.json"]).expect_code(2);
    assert!(refused.stderr.contains("--allow-modified-dataset"), "{}", refused.stderr);
    let args = [
        "submit",
        "--dataset",
        "locomo",
        "--preset",
        "quick",
        "--dataset-path",
        "copy.json",
        "--allow-modified-dataset",
        "--json",
    ];
    let marked = bench.run(args).expect_code(0).json();
    assert_eq!(marked["dataset"]["modified"], true);
    assert_eq!(marked["labels"][1], "modified dataset");
}

#[test]
fn published_verdicts_get_their_published_score_and_a_clustered_interval() {
    let Some(data) = locomo() else { return };
    let bench = Bench::new().with_env("BENCH_DATASETS_DIR", data.display().to_string());
    let file = data.join("locomo-audit/ap_v1_scored.json.gz").display().to_string();
    let args = ["import", "--dataset", "locomo", "--answers", &file, "--subset", "--json"];
    let report = bench.run(args).expect_code(0).json();
    let headline = &report["headline"];
    let value = headline["value"].as_f64().expect("a score");
    assert!((value - 0.106_060_606_060_606_06).abs() < 1e-12, "the file's own figure: {value}");
    assert_eq!((headline["n"].as_u64(), headline["clusters"].as_u64()), (Some(1540), Some(10)));
    // sm.OLS(s, np.ones(1540)).fit(cov_type='cluster', cov_kwds={'groups': conversation}, use_t=True).conf_int()
    let bounds =
        |name: &str| (headline[name]["low"].as_f64().expect("low"), headline[name]["high"].as_f64().expect("high"));
    let ((low, high), wider) = (bounds("t_ci95"), bounds("ci95"));
    assert!((low - AUDIT.0).abs() < 1e-9 && (high - AUDIT.1).abs() < 1e-9, "{low} to {high}");
    assert!(
        wider.0 <= low && high <= wider.1 && wider.1 - wider.0 < 1.5 * (high - low),
        "{wider:?} around {low} to {high}"
    );
    // the audit of the key: 99 of these questions have a wrong expected answer
    let key = data.join("locomo-audit/errors.json").display().to_string();
    let report = bench.run(["report", "latest", "--format", "json", "--answer-key", &key]).expect_code(0).json();
    let ceiling = report["answer_key"]["ceiling"].as_f64().expect("a share");
    assert_eq!((&report["answer_key"]["wrong"], &report["answer_key"]["n"]), (&99.into(), &1540.into()));
    assert!((ceiling - 1441.0 / 1540.0).abs() < 1e-12 && report["answer_key"]["corrected"].is_null(), "{ceiling}");
    let majority = bench.run(args.iter().chain(&["--reduce", "majority"])).expect_code(0).json();
    assert!((majority["headline"]["value"].as_f64().expect("a score") - 164.0 / 1540.0).abs() < 1e-12);
}

#[test]
fn full_runs_of_the_real_locomo_go_the_whole_way() {
    let Some(data) = locomo() else { return };
    let s3 = TroubledS3::start();
    let environment = [("BENCH_DATASETS_DIR", data.display().to_string())];
    crate::chain::from_two_full_runs_to_another_machine_and_back("locomo", s3.place(), &environment);
}

/// Clustered t interval of the published verdicts.
const AUDIT: (f64, f64) = (0.07124712168905147, 0.14087409043216065);
