//! Datasets on machines without a way out: from an object store of one's own, and from nowhere else.

use bench_testkit::{
    bench::Bench,
    http,
    s3::{S3, SECRET},
};

const SUBMIT: [&str; 7] = ["submit", "--dataset", "locomo", "--preset", "quick", "--display", "none"];

/// A bench with an object store; `source` stands in place of the public one.
fn at(s3: &S3, source: &str) -> Bench {
    S3::environment(s3.place())
        .into_iter()
        .fold(Bench::new().with_env("BENCH_DATASETS_URL", source), |bench, (name, value)| bench.with_env(name, value))
}

#[test]
fn a_dataset_comes_from_an_object_store_and_from_nowhere_else() {
    let s3 = S3::start();
    let maker = Bench::new();
    let generate = ["datasets", "generate", "locomo-sim", "--set", "sim.conversations=2", "--output", "sim.json"];
    let _ = maker.run(generate).expect_code(0);
    let text = std::fs::read_to_string(maker.path().join("sim.json")).expect("written");
    let put = http::request("PUT", s3.place(), "/bench/data/locomo/locomo10.json", None, &text).expect("moto answers");
    assert_eq!(put.status, 200, "{}", put.body);
    let modified = SUBMIT.iter().chain(&["--allow-modified-dataset", "--json"]);
    let wanted = maker.run(modified.clone().chain(&["--dataset-path", "sim.json"])).expect_code(0).json();

    let bench = at(&s3, "s3://bench/data");
    let cached = bench.path().join(".bench/datasets/locomo/locomo10.json");
    // it is not the published file: refused, and nothing of it is left
    let refused = bench.run(SUBMIT).expect_code(2);
    assert!(refused.stderr.contains("s3://bench/data/locomo/locomo10.json"), "{}", refused.stderr);
    assert!(refused.stderr.contains("bytes arrived") && !refused.stderr.contains(SECRET), "{}", refused.stderr);
    assert!(!cached.exists());
    let done = bench.run(modified.clone()).expect_code(0).json();
    assert_eq!(done["result_digest"], wanted["result_digest"]);
    assert_eq!(std::fs::read_to_string(&cached).expect("is kept"), text);

    // once here, the store is not asked again
    let _ = bench.run(["datasets", "verify", "locomo"]).expect_code(2);
    s3.kill();
    let again = bench.run(modified).expect_code(0).json();
    assert_eq!(again["result_digest"], wanted["result_digest"]);
}

#[test]
fn a_store_without_the_dataset_is_an_error_and_no_download() {
    let s3 = S3::start();
    let missing = at(&s3, "s3://bench/elsewhere").run(["datasets", "fetch", "locomo"]).expect_code(2);
    assert!(missing.stderr.contains("s3://bench/elsewhere/locomo/locomo10.json"), "{}", missing.stderr);
    assert!(missing.stderr.contains("there is no such object"), "{}", missing.stderr);
    let folder = at(&s3, "/data").run(SUBMIT).expect_code(2);
    assert!(folder.stderr.contains("a folder is named by BENCH_DATASETS_DIR"), "{}", folder.stderr);
}
