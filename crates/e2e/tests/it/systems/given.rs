//! `vector` over vectors that somebody else has made: held against keywords over equal memories, and refused before the run
//! wherever something has no vector.

use std::{fs, path::Path};

use bench_e2e::faults::PATIENCE;
use bench_testkit::{
    bench::Bench,
    cluster::{Cluster, wait_until_ready},
    data,
};
use serde_json::{Value, json};

/// Two memories whose words say the opposite of their vectors.
const SET: &str = r#"{"dataset": {"name": "drinks"}}
{"memory": {"text": "Ann drinks tea at noon."}}
{"memory": {"text": "Ben cycles to the harbour."}}
{"id": "a", "question": "Who drinks tea?", "expected_substrings": ["Ben"], "evidence": []}
{"id": "b", "question": "Who cycles to the harbour?", "expected_substrings": ["Ann"], "evidence": []}
"#;

fn record(text: &str, numbers: [f64; 2]) -> Value {
    json!({"text": text, "embedding": numbers})
}

fn written(bench: &Bench, name: &str, records: &[Value]) -> String {
    let path = bench.path().join(name);
    fs::write(&path, Value::from(records).to_string()).expect("is written");
    path.display().to_string()
}

/// The beginning of the best hit of each question of a run.
fn best(bench: &Bench, run: &str) -> Vec<String> {
    let mut best: Vec<String> = bench.questions(run).iter().map(begin_of_best).collect();
    best.sort();
    best
}

fn begin_of_best(question: &Value) -> String {
    let text = question["retrieved"][0]["text"].as_str().unwrap_or_default();
    format!("{} {}", question["question_id"].as_str().unwrap_or_default(), text.get(..3).unwrap_or_default())
}

#[test]
fn keywords_and_given_vectors_are_one_matrix_over_equal_memories() {
    let bench = Bench::new();
    let set = bench.path().join("drinks.jsonl");
    fs::write(&set, SET).expect("is written");
    let set = set.display().to_string();
    let memories = [record("Ann drinks tea at noon.", [1.0, 0.1]), record("Ben cycles to the harbour.", [0.0, 2.0])];
    let queries = [record("Who drinks tea?", [0.1, 1.0]), record("Who cycles to the harbour?", [5.0, 0.0])];
    let [memories_file, queries_file] =
        [("m.json", &memories[..]), ("q.json", &queries[..])].map(|(name, records)| written(&bench, name, records));
    let matrix = bench.path().join("m.toml");
    let text = format!(
        "flags = [\"--dataset\", \"{set}\", \"--preset\", \"full\", \"--scenario\", \"retrieve-only\", \"--latency-probe\", \"off\", \
         \"--scorer\", \"session-recall@10\", \"--set\", \"vector.precomputed={memories_file}\", \"--set\", \
         \"vector.queries={queries_file}\"]\n[axes]\nsystem = [\"bm25\", \"vector\"]\n"
    );
    fs::write(&matrix, text).expect("is written");
    let run = ["matrix", &matrix.display().to_string(), "--run-id", "m", "--json", "--display", "none"];
    let report = bench.run(run).expect_code(0).json();
    assert_eq!(report["cells"].as_array().map(Vec::len), Some(2), "{report:#}");
    assert_eq!(best(&bench, "m-c1-r1"), ["a Ann", "b Ben"], "by their words");
    assert_eq!(best(&bench, "m-c2-r1"), ["a Ben", "b Ann"], "by their vectors");
    let told = bench.report("m-c2-r1");
    assert!(told["spec"]["system_version"].as_str().is_some_and(|version| version.contains('+')), "{told:#}");

    // the same run over another file is another run
    let line = ["submit", "--dataset", &set, "--preset", "full", "--scenario", "retrieve-only", "--system", "vector"];
    let given =
        ["--set", &format!("vector.precomputed={memories_file}"), "--set", &format!("vector.queries={queries_file}")];
    let quiet = ["--display", "none", "--latency-probe", "off", "--scorer", "session-recall@10"];
    let submit = |more: &[&str]| bench.run([&line[..], &quiet, more].concat());
    let _ = submit(&[&given[..], &["--run-id", "one"]].concat()).expect_code(0);
    let changed = [memories[0].clone(), record("Ben cycles to the harbour.", [0.0, 3.0])];
    let _ = written(&bench, "m.json", &changed);
    let refused = submit(&[&given[..], &["--run-id", "one"]].concat()).expect_code(2).stderr;
    assert!(refused.contains("system.version"), "{refused}");

    // whatever has no vector is named before anything is stored
    for (name, records, said) in [
        ("m.json", &memories[..1], "bank b1: vector.precomputed"),
        ("q.json", &queries[..1], "there is no vector for the query 'Who cycles to the harbour?'"),
        (
            "m.json",
            &[memories[0].clone(), record("x", [f64::MAX, 1.0])],
            "record 2: number 1 of its embedding is too large",
        ),
        (
            "m.json",
            &[memories[0].clone(), json!({"text": "x", "embedding": [1]})],
            "its embedding has 1 numbers, those before it have 2",
        ),
    ] {
        let whole = [("m.json", &memories[..]), ("q.json", &queries[..])];
        whole.iter().for_each(|(name, records)| drop(written(&bench, name, records)));
        let _ = written(&bench, name, records);
        let refused = submit(&[&given[..], &["--run-id", "two"]].concat()).expect_code(2).stderr;
        assert!(refused.contains(said), "{said}: {refused}");
    }
    let runs = bench.run(["list", "--json"]).expect_code(0).stdout;
    assert!(!runs.contains("\"two\""), "{runs}");
    let check = bench.run([&["systems", "check", "vector"], &given[..]].concat()).expect_code(2).stderr;
    assert!(check.contains("makes up memories of its own"), "{check}");
}

#[test]
fn given_vectors_are_searched_by_the_workers_of_a_cluster() {
    let cluster = Cluster::new();
    let bench = cluster.bench();
    let set = bench.path().join("drinks.jsonl");
    fs::write(&set, SET).expect("is written");
    let memories = [record("Ann drinks tea at noon.", [1.0, 0.1]), record("Ben cycles to the harbour.", [0.0, 2.0])];
    let queries = [record("Who drinks tea?", [0.1, 1.0]), record("Who cycles to the harbour?", [5.0, 0.0])];
    let [memories, queries] =
        [("m.json", &memories[..]), ("q.json", &queries[..])].map(|(name, records)| written(bench, name, records));
    let given = [format!("vector.precomputed={memories}"), format!("vector.queries={queries}")];
    let submit = |run: &'static str| {
        let line = ["submit", "--dataset", &set.display().to_string(), "--preset", "full", "--system", "vector"];
        let quiet = ["--scenario", "retrieve-only", "--latency-probe", "off", "--scorer", "session-recall@10"];
        let named = ["--json", "--display", "none", "--run-id", run, "--set", &given[0], "--set", &given[1]];
        [&line[..], &quiet, &named].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let alone = Bench::new().run(submit("r")).expect_code(0).json();
    let mut coordinator = cluster.coordinator("coordinator");
    let mut worker = cluster.worker("worker", &[]);
    [&mut coordinator, &mut worker].into_iter().for_each(wait_until_ready);
    let line = submit("r");
    let line: Vec<&str> = line.iter().map(String::as_str).collect();
    let done = cluster.client(&line).wait(PATIENCE).expect_code(0).json();
    assert_eq!(done["result_digest"], alone["result_digest"], "{done:#}");
    let mut best: Vec<String> = cluster.questions("r").iter().map(begin_of_best).collect();
    best.sort();
    assert_eq!(best, ["a Ben", "b Ann"]);
}

/// The published vectors of PrecisionMemBench, when they are there.
#[test]
fn the_published_vectors_belong_to_the_beliefs_as_systems_are_given_them() {
    let data = data::published();
    let embedded = data.join("precisionmembench/beliefs.seed.embedded.json");
    if !embedded.exists() {
        eprintln!("NOT TESTED: {} is absent; set BENCH_REFERENCE_DIR to test on the real vectors", embedded.display());
        return;
    }
    let bench = Bench::new().with_env("BENCH_DATASETS_DIR", data.display().to_string());
    let given = format!("vector.precomputed={}", embedded.display());
    let line = ["submit", "--dataset", "precisionmembench@main", "--scenario", "retrieve-only", "--system", "vector"];
    let quiet = ["--preset", "full", "--display", "none", "--latency-probe", "off", "--json", "--set", &given];
    let submit = |more: &[&str]| bench.run([&line[..], &quiet, more].concat());
    // beliefs that change in sessions are others than those that were embedded
    let queries = written(&bench, "q.json", &queries_of(&embedded, &data));
    let queries = format!("vector.queries={queries}");
    let whole = submit(&["--set", &queries]).expect_code(2).stderr;
    assert!(whole.contains("there is no vector for"), "{whole}");
    let cases = ["--facet", "turn=case", "--set", &queries, "--run-id", "cases"];
    let report = submit(&cases).expect_code(0).json();
    assert_eq!(report["outcomes"]["sample"], 77, "{report:#}");
    // each query has the vector of a belief, so that this one is its best hit wherever its filter admits it
    let found = bench
        .questions("cases")
        .into_iter()
        .filter(|question| question["retrieved"][0]["score"].as_f64().is_some_and(|score| score > 0.999));
    assert!(found.count() >= 20, "the vector of a belief finds it");
}

/// A vector for each query: that of the first belief that it expects, else of the first of all.
fn queries_of(embedded: &Path, data: &Path) -> Vec<Value> {
    let read = |path: &Path| -> Vec<Value> {
        serde_json::from_str(&fs::read_to_string(path).expect("is read")).expect("is a list")
    };
    let beliefs = read(embedded);
    let of_belief = |id: &Value| beliefs.iter().find(|belief| belief["_id"] == *id).map(|belief| &belief["embedding"]);
    let mut known = std::collections::BTreeMap::new();
    for case in read(&data.join("precisionmembench/retrieval.cases.json")) {
        let expected = &case["expect"]["relevantBeliefs"]["shouldOnlyInclude"][0];
        let vector = of_belief(expected).unwrap_or(&beliefs[0]["embedding"]);
        let query = case["query"].as_str().unwrap_or_default().trim().to_owned();
        if query.is_empty() {
            continue;
        }
        known.entry(query).or_insert_with(|| vector.clone());
    }
    known.into_iter().map(|(query, vector)| json!({"query": query, "embedding": vector})).collect()
}
