//! Astrocyte, the published library behind the routes of its gateway, its model at the simulator. It keeps its memories in
//! its process: whoever kills it takes them.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use bench_testkit::{
    bench::Bench,
    cluster::Cluster,
    provider::{KEY, Provider},
    python,
};
use serde_json::Value;

use super::{killed_in_a_cluster, killed_while_filled, program, submit};

/// The shipped adapter, with a start of its own.
fn adapter(folder: &Path) -> String {
    let shipped = include_str!("../../../../../crates/systems/src/adapter/shipped/astrocyte.yaml");
    let (python, gateway) = (python::python(python::ASTROCYTE), program("astrocyte_gateway.py"));
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

fn bench(provider: &Provider) -> Bench {
    Bench::new().with_env("SIM_URL", provider.base_url()).with_env("SIM_KEY", KEY)
}

#[test]
fn astrocyte_answers_by_itself_and_is_killed_while_it_is_filled() {
    let provider = Provider::start(&["--latency-ms", "30"]);
    let bench = bench(&provider);
    let adapter = adapter(bench.path());
    let checked = bench.run(["systems", "check", &adapter]);
    assert_eq!(checked.code, 0, "{}\n{}", checked.stdout, checked.stderr);
    let args = [submit(&adapter, "killed"), vec!["--answerer", "system"]].concat();
    let killed = killed_while_filled(&bench, &args, "killed", 2).expect_code(0);
    assert_eq!(killed.json()["outcomes"]["coverage"], 1.0, "{}", killed.stdout);
    let questions = bench.questions("killed");
    assert!(questions.iter().any(|q| q["answer"].as_str().is_some_and(|answer| !answer.is_empty())), "{questions:?}");
    // its trace says what was asked of it, and where
    let trace = bench.run(["trace", "killed", "--slowest", "--json"]).expect_code(0).json();
    let spans = trace["spans"].as_array().expect("spans");
    for operation in ["search ", "answer "] {
        let asked = spans.iter().find(|span| span["name"].as_str().is_some_and(|name| name.starts_with(operation)));
        let attributes = &asked.unwrap_or_else(|| panic!("no '{operation}': {trace:#}"))["attributes"];
        assert_eq!(attributes["server.address"], "127.0.0.1", "{attributes:#}");
        assert!(attributes["server.port"].as_u64() > Some(0), "{attributes:#}");
    }
}

/// Every question has a result and finds what the undisturbed run found. Not by digest, nor answer by answer: the library's
/// order depends on the clock and on the process, so the last places of its hits, and what is made of them, differ now and
/// then between two undisturbed runs too.
pub(super) fn assert_finds_the_same(killed: &[Value], undisturbed: &[Value]) {
    let hits = |question: &Value| -> BTreeSet<String> {
        let hits = question["retrieved"].as_array().into_iter().flatten();
        hits.filter_map(|hit| hit["id"].as_str().map(str::to_owned)).collect()
    };
    let by_id: BTreeMap<&str, &Value> =
        undisturbed.iter().filter_map(|question| Some((question["question_id"].as_str()?, question))).collect();
    assert_eq!((killed.len(), by_id.len()), (undisturbed.len(), undisturbed.len()));
    let (mut shared, mut all) = (0, 0);
    for question in killed {
        let other = by_id[question["question_id"].as_str().expect("an id")];
        assert!(question["outcome"] == "scored" || question["outcome"] == "abstained", "{question}");
        let (found, expected) = (hits(question), hits(other));
        assert!(!found.is_empty(), "{question}");
        shared += found.intersection(&expected).count();
        all += expected.len();
    }
    println!("{shared} of {all} hits are those of the undisturbed run");
    assert!(4 * shared >= 3 * all, "{shared} of {all} hits are those of the undisturbed run");
}

#[test]
fn astrocyte_is_killed_while_it_is_filled_and_finds_the_same() {
    let provider = Provider::start(&["--latency-ms", "30"]);
    let bench = bench(&provider);
    let adapter = adapter(bench.path());
    let _ = killed_while_filled(&bench, &submit(&adapter, "killed"), "killed", 2).expect_code(0);
    let _ = bench.run(submit(&adapter, "undisturbed")).expect_code(0);
    assert_finds_the_same(&bench.questions("killed"), &bench.questions("undisturbed"));
}

#[test]
fn astrocyte_through_rabbitmq_and_postgres_with_a_kill() {
    let provider = Provider::start(&["--latency-ms", "30"]);
    // it is no shipped file: whoever operates the workers has to allow it
    let cluster = Cluster::new().with_env("BENCH_ALLOW_SYSTEMS", "any");
    let cluster = cluster.with_key("SIM_URL", provider.base_url()).with_key("SIM_KEY", KEY);
    let here = adapter(cluster.bench().path());
    let _ = killed_in_a_cluster(&cluster, &submit(&here, "astro"), 3).expect_code(0);
    let bench = bench(&provider);
    let _ = bench.run(submit(&adapter(bench.path()), "astro")).expect_code(0);
    assert_finds_the_same(&cluster.questions("astro"), &bench.questions("astro"));
}
