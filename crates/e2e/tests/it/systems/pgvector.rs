//! `pgvector` over a real PostgreSQL with the extension, and over one without it.

use bench_testkit::{
    bench::{Bench, submit_sim},
    postgres,
};
use serde_json::Value;

fn submit<'a>(system: &'a str, run: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let flags = ["--max-banks", "2", "--sample", "8", "--latency-probe", "off", "--system", system, "--run-id", run];
    submit_sim(&[&flags[..], &["--set", "vector.model=hash"], more].concat())
}

/// What each question found, by its id: ids and texts.
fn found(bench: &Bench, run: &str) -> Vec<(String, Vec<(Value, Value)>)> {
    let mut found: Vec<_> = bench
        .questions(run)
        .iter()
        .map(|question| {
            let hits = question["retrieved"].as_array().into_iter().flatten();
            (question["question_id"].to_string(), hits.map(|hit| (hit["id"].clone(), hit["text"].clone())).collect())
        })
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

#[test]
fn it_finds_what_vector_finds_in_a_schema_of_its_own_which_goes_with_its_banks() {
    let server = postgres::with_vector();
    let url = server.create_database().expect("a database");
    let schemas = || postgres::run_sql(&url, "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'bench_%'");
    let schemas = || schemas().expect("is asked").trim().to_owned();
    let bench = Bench::new().with_env("BENCH_PGVECTOR_URL", &url);
    let vector = bench.run(submit("vector", "vector", &[])).expect_code(0);
    let exact = bench.run(submit("pgvector", "exact", &[])).expect_code(0);
    let report = exact.json();
    assert_eq!(report["outcomes"]["coverage"], 1.0, "{report}");
    assert_eq!(report["canaries"]["leaked"]["count"].as_u64().unwrap_or(0), 0, "{}", report["canaries"]);
    assert!(report["system_stats"]["version"].as_str().is_some_and(|v| v.starts_with("pgvector 0.")), "{report}");
    assert_eq!(found(&bench, "exact"), found(&bench, "vector"), "{}", exact.stderr);
    assert_eq!(report["result_digest"], vector.json()["result_digest"]);
    assert_eq!(report["stored"]["evidence"]["missing"], 0, "{}", report["stored"]);
    assert_eq!(schemas(), "1");

    let near = bench.run(submit("pgvector", "near", &["--set", "pgvector.index=hnsw"])).expect_code(0).json();
    assert_eq!(near["outcomes"]["coverage"], 1.0, "{near}");
    let indexes = "SELECT count(*) FROM pg_indexes WHERE indexdef LIKE '%USING hnsw%vector_cosine_ops%'";
    assert_eq!(postgres::run_sql(&url, indexes).expect("is asked").trim(), "2", "one for each bank");
    assert_eq!(schemas(), "2");
    for run in ["exact", "near"] {
        let _ = bench.run(["gc", "--banks", run]).expect_code(0);
    }
    assert_eq!(schemas(), "0");
    let checked =
        bench.run(["systems", "check", "pgvector", "--set", "vector.model=hash", "--json"]).expect_code(0).json();
    assert_eq!((&checked["failed"], schemas().as_str()), (&0.into(), "0"), "{checked}");
}

#[test]
fn a_server_without_the_extension_is_exit_2_with_what_to_install() {
    let bench = Bench::new();
    let unset = bench.run(submit("pgvector", "run", &[])).expect_code(2).stderr;
    assert!(unset.contains("set BENCH_PGVECTOR_URL"), "{unset}");
    let wrong = bench.run(submit("pgvector", "run", &["--set", "pgvector.index=flat"])).expect_code(2).stderr;
    assert!(wrong.contains("pgvector.index must be exact or hnsw"), "{wrong}");
    let bench = bench.with_env("BENCH_PGVECTOR_URL", postgres::shared().create_database());
    let bare = bench.run(submit("pgvector", "run", &[])).expect_code(2).stderr;
    assert!(bare.contains("no extension vector") && bare.contains("apt-get install postgresql-NN-pgvector"), "{bare}");
    let bench = bench.with_env("BENCH_PGVECTOR_URL", "postgres://me:planted-password@127.0.0.1:9/mine");
    let away = bench.run(submit("pgvector", "run", &[])).expect_code(4).stderr;
    assert!(away.contains("no PostgreSQL server listens there") && !away.contains("planted-password"), "{away}");
}
