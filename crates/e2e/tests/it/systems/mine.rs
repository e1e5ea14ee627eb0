//! A user's own adapter files.

use bench_testkit::bench::Bench;

#[test]
fn a_file_with_a_mistake_is_refused_with_its_place() {
    let bench = Bench::new();
    std::fs::write(bench.path().join("mine.yaml"), "name: mine\nurl: http://127.0.0.1:9\nretian: {}\n")
        .expect("is written");
    let done =
        bench.run(["submit", "--dataset", "locomo-sim", "--preset", "quick", "--system", "./mine.yaml"]).expect_code(2);
    assert!(done.stderr.contains("line 3") && done.stderr.contains("retian"), "{}", done.stderr);
}

#[test]
fn a_system_that_is_not_there_is_said_before_anything_is_stored() {
    let bench = Bench::new().with_env("MEM0_URL", "http://127.0.0.1:9");
    let done = bench.run(["submit", "--dataset", "locomo-sim", "--preset", "quick", "--system", "mem0"]).expect_code(4);
    assert!(done.stderr.contains("mem0 does not answer"), "{}", done.stderr);
}
