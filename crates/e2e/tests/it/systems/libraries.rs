//! Memory libraries of Python that are systems by name, as they are published, with models and embeddings of the simulator.

use bench_testkit::{
    bench::{Bench, submit_sim},
    provider::Provider,
    python::{Packages, virtual_env},
};
use serde_json::Value;

/// A library, its packages, and where they are installed: those that the runner names when they are missing.
const LIBRARIES: [(&str, Packages); 4] = [
    (
        "langgraph",
        Packages { name: "langgraph", with_dependencies: &["langgraph==1.2.24", "numpy==2.4.6"], alone: &[] },
    ),
    (
        "langmem",
        Packages {
            name: "langmem",
            with_dependencies: &["langmem==0.0.30", "langchain-openai==1.7.4", "numpy==2.4.6"],
            alone: &[],
        },
    ),
    ("llama-index", Packages { name: "llama-index", with_dependencies: &["llama-index-core==0.14.25"], alone: &[] }),
    ("openai-agents", Packages { name: "openai-agents", with_dependencies: &["openai-agents==0.24.0"], alone: &[] }),
];

/// A folder in which the library's environment is active and its models are the simulator's.
fn bench(provider: &Provider, packages: Packages) -> Bench {
    provider.bench().with_env("VIRTUAL_ENV", virtual_env(packages))
}

fn submit(library: &str, run: &str, settings: &[String]) -> Vec<String> {
    let sets = settings.iter().flat_map(|setting| ["--set".to_owned(), setting.clone()]);
    let size = ["--max-banks", "1", "--sample", "4", "--system", library, "--run-id", run];
    submit_sim(&size).into_iter().map(str::to_owned).chain(sets).collect()
}

/// Where a library asks for embeddings and models; a session asks for nothing.
fn settings(provider: &Provider, library: &str) -> Vec<String> {
    let url = format!("{library}.base_url={}", provider.base_url());
    if library == "openai-agents" { Vec::new() } else { vec![url] }
}

#[test]
fn turns_are_stored_found_and_counted_by_each_library_as_it_is_published() {
    let provider = Provider::start(&[]);
    for (library, packages) in LIBRARIES {
        let bench = bench(&provider, packages);
        let settings = settings(&provider, library);
        let done = bench.run(submit(library, "a", &settings));
        let report = done.json();
        assert_eq!(report["outcomes"]["coverage"], 1.0, "{library}: {}", done.stderr);
        let version = report["system_stats"]["version"].as_str().expect("a version");
        let package = packages.with_dependencies[0].replace("==", " ");
        assert!(version.starts_with(&format!("{package}, Python 3.")), "{library}: {version}");
        if matches!(library, "langgraph" | "llama-index") {
            assert_eq!((done.code, &report["canaries"]["found"]), (0, &report["canaries"]["asked"]), "{}", done.stderr);
        }
        let questions = bench.questions("a");
        let hits: Vec<&Value> =
            questions.iter().flat_map(|q| q["retrieved"].as_array().into_iter().flatten()).collect();
        assert!(!hits.is_empty(), "{library}: {}", done.stderr);
        if library == "langmem" {
            assert!(report["system_stats"]["memories"].as_f64().is_some_and(|n| n >= 1.0), "{report}");
            continue;
        }
        assert!(
            hits.iter().all(|hit| hit["level"] == "turn"),
            "{library}: every hit is a turn that was stored: {hits:?}"
        );
        let again = bench.run(submit(library, "b", &settings));
        assert_eq!(again.json()["result_digest"], report["result_digest"], "{library}");
    }
}

#[test]
fn a_store_replaces_and_forgets_and_what_a_server_refuses_is_quoted() {
    let provider = Provider::start(&[]);
    let (library, packages) = LIBRARIES[0];
    let bench = bench(&provider, packages);
    let url = format!("langgraph.base_url={}", provider.base_url());
    let checked = bench.run(["systems", "check", library, "--set", &url]);
    assert_eq!(checked.code, 0, "{}{}", checked.stdout, checked.stderr);
    let elsewhere = format!("{url}/nowhere");
    let refused = bench.run(["systems", "try", library, "--set", &elsewhere]);
    assert!(refused.code == 4 && refused.stderr.contains("Refused: 404: "), "{}", refused.stderr);
    let away = bench.run(["systems", "try", library, "--set", "langgraph.base_url=http://127.0.0.1:9/v1"]);
    assert!(away.code == 4 && away.stderr.contains("is away"), "{}", away.stderr);
}

#[test]
fn a_library_that_is_not_installed_is_named_with_the_line_that_installs_it() {
    let bench = Bench::new().with_env("OPENAI_API_KEY", "not-needed-here");
    for (library, packages) in LIBRARIES {
        let refused = bench.run(submit(library, "a", &[])).expect_code(2);
        let line = format!("python3 -m pip install {}", packages.with_dependencies.join(" "));
        assert!(refused.stderr.contains(&line), "{line}: {}", refused.stderr);
        let tested: Vec<String> = packages.with_dependencies.iter().map(|one| one.replace("==", " ")).collect();
        let row = format!("| `{library}` | {} |", tested.join(", "));
        assert!(include_str!("../../../../../docs/SYSTEMS.md").contains(&row), "docs/SYSTEMS.md has no row {row}");
    }
    let listed = bench.run(["systems", "list", "--json"]).expect_code(0).json();
    let names: Vec<&str> = listed.as_array().into_iter().flatten().filter_map(|row| row["name"].as_str()).collect();
    assert!(LIBRARIES.iter().all(|(library, _)| names.contains(library)), "{names:?}");
}
