//! Who may depend on whom: the tree is held to the list of docs/ARCHITECTURE.md.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// Crate → workspace crates that it may use (development dependencies aside).
const ARROWS: &[(&str, &[&str])] = &[
    ("bench-proto", &[]),
    ("bench-telemetry", &["bench-proto"]),
    ("bench-settings", &["bench-proto"]),
    ("bench-datasets", &["bench-proto"]),
    ("bench-grading", &["bench-proto"]),
    ("bench-models", &["bench-proto", "bench-store", "bench-telemetry"]),
    ("bench-load", &[]),
    ("bench-meter", &["bench-models", "bench-proto"]),
    ("bench-plan", &["bench-proto"]),
    ("bench-queue", &["bench-proto"]),
    ("bench-store", &["bench-proto", "bench-telemetry"]),
    ("bench-aggregate", &["bench-proto"]),
    ("bench-report", &["bench-proto"]),
    ("bench-sim", &["bench-proto", "bench-settings"]),
    ("bench-systems", &["bench-models", "bench-proto", "bench-settings"]),
    ("bench-testkit", &[]),
    (
        "bench-worker",
        &[
            "bench-grading",
            "bench-meter",
            "bench-models",
            "bench-proto",
            "bench-queue",
            "bench-settings",
            "bench-store",
            "bench-systems",
            "bench-telemetry",
        ],
    ),
    (
        "bench-coord",
        &[
            "bench-aggregate",
            "bench-datasets",
            "bench-grading",
            "bench-load",
            "bench-meter",
            "bench-models",
            "bench-plan",
            "bench-proto",
            "bench-queue",
            "bench-report",
            "bench-settings",
            "bench-store",
            "bench-systems",
            "bench-telemetry",
            "bench-worker",
        ],
    ),
    ("bench-e2e", &["bench-coord", "bench-proto", "bench-sim", "bench-testkit", "bench-worker"]),
    (
        "bench-fuzz",
        &[
            "bench-coord",
            "bench-datasets",
            "bench-grading",
            "bench-meter",
            "bench-models",
            "bench-proto",
            "bench-queue",
            "bench-report",
            "bench-settings",
            "bench-systems",
            "bench-telemetry",
        ],
    ),
    (
        "bench-perf",
        &[
            "bench-aggregate",
            "bench-datasets",
            "bench-grading",
            "bench-load",
            "bench-meter",
            "bench-models",
            "bench-proto",
            "bench-store",
            "bench-systems",
            "bench-testkit",
        ],
    ),
];

/// Crates that do no I/O: they may not even know how.
const PURE: &[&str] = &["bench-proto", "bench-grading", "bench-plan", "bench-aggregate"];
const IO_CRATES: &[&str] = &["tokio", "reqwest", "sqlx", "lapin", "axum"];

/// The packages of the workspace, as cargo describes them.
pub(crate) fn workspace() -> Vec<Value> {
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .expect("cargo metadata runs");
    assert!(metadata.status.success(), "{}", String::from_utf8_lossy(&metadata.stderr));
    let metadata: Value = serde_json::from_slice(&metadata.stdout).expect("cargo metadata prints JSON");
    metadata["packages"].as_array().expect("packages").clone()
}

#[test]
fn the_tree_keeps_its_arrows() {
    let packages = workspace();
    let allowed: BTreeMap<&str, BTreeSet<&str>> =
        ARROWS.iter().map(|(name, uses)| (*name, uses.iter().copied().collect())).collect();
    assert_eq!(packages.len(), ARROWS.len(), "every crate of the workspace has its line");
    for package in &packages {
        let name = package["name"].as_str().expect("a name");
        let uses: BTreeSet<&str> = package["dependencies"]
            .as_array()
            .expect("dependencies")
            .iter()
            .filter(|d| d["kind"].is_null())
            .filter_map(|d| d["name"].as_str())
            .collect();
        let ours: BTreeSet<&str> = uses.iter().copied().filter(|d| d.starts_with("bench-")).collect();
        let may = allowed.get(name).unwrap_or_else(|| panic!("{name} has no line"));
        assert!(
            ours.is_subset(may),
            "{name} uses {:?}, which is not allowed",
            ours.difference(may).collect::<Vec<_>>()
        );
        if PURE.contains(&name) {
            let io: Vec<_> = IO_CRATES.iter().filter(|c| uses.contains(*c)).collect();
            assert!(io.is_empty(), "{name} is pure, but uses {io:?}");
        }
    }
}

/// Libraries without examples in their pages say `doctest = false`, which spares their part of every test run; an example that is
/// written there later would not be run.
#[test]
fn examples_stand_where_they_are_run() {
    let packages = workspace();
    let libraries = packages.iter().flat_map(|package| package["targets"].as_array().expect("targets"));
    let not_run = libraries.filter(|target| target["kind"][0] == "lib" && target["doctest"] == false);
    let mut looked_at = 0;
    for target in not_run {
        let root = Path::new(target["src_path"].as_str().expect("a path")).parent().expect("a folder");
        for file in rust_files(root) {
            let text = fs::read_to_string(&file).expect("is read");
            let fences = text.lines().filter_map(|line| {
                let line = line.trim_start();
                let line = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?.trim_start();
                line.strip_prefix("```")
            });
            // every second one closes what the one before has opened
            for opened in fences.step_by(2) {
                let is_run = matches!(opened.split([',', ' ']).next(), Some("" | "rust" | "no_run" | "should_panic"));
                assert!(!is_run, "{}: an example; take `doctest = false` out of its Cargo.toml", file.display());
            }
            looked_at += 1;
        }
    }
    assert!(looked_at > 500, "{looked_at} files");
}

fn rust_files(root: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(root).expect("a folder").map(|entry| entry.expect("an entry").path());
    let files = listed.flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}
