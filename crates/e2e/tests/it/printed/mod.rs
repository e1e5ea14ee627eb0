//! What verbs print with `--json` is what `docs/schemas/cli` says, to the last field: scripts rely on it.

pub(crate) mod forms;
pub(crate) mod pages;
mod plans;

use std::{fs, path::Path, time::Duration};

use bench_testkit::{
    bench::{Bench, submit_sim},
    cluster::{Cluster, wait_until_ready},
    process::wait_until,
};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use self::{
    forms::{Archived, BanksRemoved, Config, Countings, Dataset, Doctor, Fetched, Gc, Models, Published, Runs, Status},
    pages::{Banks, BanksExported, BanksImported, BanksOfRuns, ImportedBanks, Site},
    plans::MatrixPlan,
};

const PATIENCE: Duration = Duration::from_secs(120);

/// Holds the schema of a type to its file, and `BENCH_BLESS=1` writes it.
fn published<T: JsonSchema>(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/schemas/cli/{name}.json"));
    let schema = SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>();
    let text = serde_json::to_string_pretty(&schema).expect("serialises") + "\n";
    if std::env::var_os("BENCH_BLESS").is_some() {
        fs::write(&path, &text).expect("is written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, text, "docs/schemas/cli/{name}.json is not what the types say: BENCH_BLESS=1 rewrites it");
}

/// A document has the fields of its type and no others, those that may be null included.
pub(crate) fn held<T: DeserializeOwned + Serialize>(document: &Value) {
    let read: T = serde_json::from_value(document.clone()).unwrap_or_else(|error| panic!("{error}: {document:#}"));
    assert_eq!(&serde_json::to_value(read).expect("serialises"), document);
}

#[test]
fn schemas_of_small_verbs_are_published() {
    published::<Doctor>("doctor");
    published::<Config>("config-show");
    published::<Gc>("gc");
    published::<Dataset>("datasets-show");
    published::<Archived>("archive-push");
    published::<Fetched>("archive-fetch");
    published::<Countings>("score-counting");
    published::<Models>("models-list");
    published::<Runs>("list");
    published::<Status>("status");
    published::<MatrixPlan>("matrix-dry-run");
    published::<Published>("report-published");
    published::<Site>("site");
    published::<BanksOfRuns>("banks-list");
    published::<Banks>("banks-show");
    published::<BanksRemoved>("banks-remove");
    published::<BanksExported>("banks-export");
    published::<BanksImported>("banks-import");
    published::<ImportedBanks>("banks-list-imported");
    let listed = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas/cli")).expect("a folder");
    let page = include_str!("../../../../../docs/CLI.md");
    for file in listed.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()) {
        assert!(page.contains(&format!("schemas/cli/{file}")), "docs/CLI.md does not name {file}");
    }
}

#[test]
fn small_verbs_print_what_their_schemas_say() {
    let bench = Bench::new();
    let json = |args: &[&str]| bench.run([args, &["--json"]].concat()).expect_code(0).json();
    let _ = bench.run(submit_sim(&["--preset", "quick", "--run-id", "a", "--name", "first"])).expect_code(0);
    let _ = bench.run(submit_sim(&["--sample", "2", "--max-banks", "1", "--run-id", "b", "--controls"])).expect_code(0);
    held::<Doctor>(&json(&["doctor"]));
    held::<Config>(&json(&["config", "show"]));
    held::<Config>(&json(&["config", "show", "--all"]));
    held::<Gc>(&json(&["gc"]));
    let all = json(&["datasets", "list"]);
    let names: Vec<&str> = all.as_array().into_iter().flatten().filter_map(|listed| listed["name"].as_str()).collect();
    assert!(names.len() > 10, "{all}");
    for name in names {
        held::<Dataset>(&json(&["datasets", "show", name]));
    }
    held::<Countings>(&json(&["score", "--counting"]));
    held::<Models>(&json(&["models", "list"]));
    held::<Runs>(&json(&["list"]));
    held::<Runs>(&json(&["list", "--controls"]));
    for run in ["a", "b"] {
        held::<Status>(&json(&["status", run]));
    }
    fs::write(bench.path().join("m.toml"), "flags = ['--dataset=locomo-sim']\n[axes]\ntop-k = [5, 10]\n")
        .expect("is written");
    held::<MatrixPlan>(&json(&["matrix", "m.toml", "--dry-run"]));
    let archive = ["--archive", "kept"];
    let pushed = json(&[&["archive", "push", "a"][..], &archive].concat());
    held::<Archived>(&pushed);
    let folder = pushed["archived"][0].as_str().unwrap_or_default();
    assert!(folder.ends_with("/locomo-sim/v1/a"), "{pushed}");
    assert_eq!(json(&["watch", "a"]), json(&["report", "a"]), "it has ended already");
    held::<Fetched>(&json(&[&["archive", "fetch", "a", "--output-dir", "back"][..], &archive].concat()));
}

/// Of a cluster, and of a run in it that is under way.
#[test]
fn the_status_of_a_cluster_is_what_its_schema_says() {
    let cluster = Cluster::new();
    let mut coordinator = cluster.coordinator("coordinator");
    wait_until_ready(&mut coordinator);
    let mut worker = cluster.worker("one", &[]);
    wait_until_ready(&mut worker);
    let client = cluster.client(&submit_sim(&["--preset", "quick", "--run-id", "a"]));
    wait_until("the run is there", PATIENCE, || cluster.run(&["status", "a", "--json"]).code == 0);
    held::<Status>(&cluster.status("a"));
    let _ = client.wait(PATIENCE).expect_code(0);
    held::<Status>(&cluster.status("a"));
    let listed = cluster.run(&["status", "--json"]).expect_code(0).json();
    assert_eq!(listed, serde_json::json!([]), "no run is open");
}
