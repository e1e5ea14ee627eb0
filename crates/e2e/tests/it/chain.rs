//! What results go through when they matter: compared, gated, archived, fetched where nothing is, judged again, reported again.

use bench_testkit::{bench::Bench, provider::Provider, s3::S3};
use serde_json::{Value, json};

/// A bench that has this S3 server for its archive, and a provider for its judge.
fn at(provider: &Provider, s3: &str, environment: &[(&str, String)]) -> Bench {
    let bench = provider.bench().with_env("BENCH_ARCHIVE_URL", "s3://bench/results");
    let bench = S3::environment(s3).into_iter().fold(bench, |bench, (name, value)| bench.with_env(name, value));
    environment.iter().fold(bench, |bench, (name, value)| bench.with_env(name, value))
}

/// The whole chain over a full run of a dataset of LoCoMo's shape, with the archive on the S3 server at `s3`.
pub(crate) fn from_two_full_runs_to_another_machine_and_back(dataset: &str, s3: &str, environment: &[(&str, String)]) {
    let provider = Provider::start(&[]);
    let here = at(&provider, s3, environment);
    let submit = |id: &str, top_k: &str| -> Value {
        let fixed = ["submit", "--dataset", dataset, "--preset", "full", "--judge", "openai:gpt-4o-mini", "--json"];
        let own = ["--display", "none", "--run-id", id, "--top-k", top_k];
        here.run(fixed.iter().chain(&own)).expect_code(0).json()
    };
    let (first, second) = (submit("first", "10"), submit("second", "3"));
    assert_eq!((&first["outcomes"]["sample"], &first["headline"]["metric"]), (&json!(1986), &json!("judge")));

    let compare = |bench: &Bench| {
        let done = bench.run(["compare", "first", "second", "--json"]);
        assert!(done.code <= 1, "{}", done.stderr);
        done.json()
    };
    let compared = compare(&here);
    assert_eq!((&compared["comparable"], &compared["paired"]["n"]), (&json!(true), &json!(1986)));
    let gate = |bench: &Bench| bench.run(["gate", "second", "--baseline", "first", "--json"]);
    let gated = gate(&here);
    assert_eq!(here.run(["gate", "first", "--baseline", "first", "--json"]).expect_code(0).json()["verdict"], "PASS");

    let _ = here.run(["archive", "verify"]).expect_code(0);
    let there = at(&provider, s3, environment);
    for id in ["first", "second"] {
        let _ = there.run(["archive", "fetch", id, "--restore"]).expect_code(0);
    }
    let report = |id: &str| there.run(["report", id, "--format", "json"]).expect_code(0).json();
    assert_eq!((report("first"), report("second")), (first.clone(), second));
    assert_eq!(compare(&there)["paired"], compared["paired"], "what was restored compares the same");
    assert_eq!((gate(&there).code, &gate(&there).json()["checks"]), (gated.code, &gated.json()["checks"]));

    let paid = provider.count("requests");
    let rejudge = ["rejudge", "first", "--judge", "openai:gpt-4o-mini", "--run-id", "again", "--json"];
    let again = there.run(rejudge.iter().chain(&["--display", "none"])).expect_code(0).json();
    assert_eq!(provider.count("requests"), paid + 1986, "every answer is judged once more, and nothing else is asked");
    assert_eq!(again["result_digest"], first["result_digest"]);
    assert_eq!(report("again")["result_digest"], first["result_digest"], "reported again");
    assert_eq!(again["retrieval"], first["retrieval"]);
}
