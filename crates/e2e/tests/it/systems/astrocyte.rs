//! Astrocyte, the published library behind the routes of its gateway, its model at the simulator. It keeps its memories in
//! its process: whoever kills it takes them.

use std::{path::Path, time::Duration};

use bench_testkit::{
    bench::{Bench, wait},
    cluster::{Cluster, wait_until_ready},
    provider::{KEY, Provider},
    python,
};

use super::{kill, retained, started};

/// The shipped adapter, with a start of its own.
fn adapter(folder: &Path) -> String {
    let shipped = include_str!("../../../../../worker/src/systems/adapter/shipped/astrocyte.yaml");
    let gateway = concat!(env!("CARGO_MANIFEST_DIR"), "/../testkit/systems/astrocyte_gateway.py");
    let python = python::python(python::ASTROCYTE);
    let start = format!(
        "start:\n  command: ['{}', '{gateway}', '{{port}}']\n  env: {{OPENAI_BASE_URL: '${{env:SIM_URL}}', OPENAI_API_KEY: '${{env:SIM_KEY}}'}}\n",
        python.display()
    );
    let text = shipped
        .replace("name: astrocyte\n", &format!("name: astrocyte-here\n{start}"))
        .replace("can: {", "can: {survives_restart: false, ");
    let path = folder.join("astrocyte.yaml");
    std::fs::write(&path, text).expect("the adapter can be written");
    path.display().to_string()
}

fn submit(adapter: &str) -> Vec<&str> {
    vec![
        "submit",
        "--dataset",
        "locomo-sim",
        "--max-banks",
        "2",
        "--sample",
        "2",
        "--run-id",
        "astro",
        "--json",
        "--system",
        adapter,
    ]
}

#[test]
fn astrocyte_answers_by_itself_and_is_killed_while_it_is_filled() {
    let provider = Provider::start(&["--latency-ms", "30"]);
    let bench = Bench::new().with_env("SIM_URL", provider.base_url()).with_env("SIM_KEY", KEY);
    let adapter = adapter(bench.path());
    let checked = bench.run(["systems", "check", &adapter]);
    assert_eq!(checked.code, 0, "{}\n{}", checked.stdout, checked.stderr);
    let home = bench.path().join(".bench");
    let child = bench.start(submit(&adapter).into_iter().chain(["--answerer", "system"]));
    let first = started(&home);
    bench_testkit::process::wait_until("some sessions are stored", Duration::from_secs(60), || {
        retained(&bench, "astro") >= 2
    });
    kill(first);
    let done = wait(child).expect_code(0);
    let report = done.json();
    assert_eq!(report["outcomes"]["coverage"], 1.0, "{report}");
    assert!(super::instance(&home).is_none(), "it was ended with the run");
    let questions = bench.questions("astro");
    assert!(questions.iter().any(|q| q["answer"].as_str().is_some_and(|answer| !answer.is_empty())), "{questions:?}");
}

#[test]
fn astrocyte_through_rabbitmq_and_postgres() {
    let provider = Provider::start(&[]);
    let cluster = Cluster::new().with_key("SIM_URL", provider.base_url()).with_key("SIM_KEY", KEY);
    let adapter = adapter(cluster.bench().path());
    let mut coordinator = cluster.coordinator("coordinator");
    wait_until_ready(&mut coordinator);
    let _workers = [cluster.worker("one", &[]), cluster.worker("two", &[])];
    let done = cluster.run(&submit(&adapter)).expect_code(0);
    assert_eq!(done.json()["outcomes"]["coverage"], 1.0, "{}", done.stdout);
}
