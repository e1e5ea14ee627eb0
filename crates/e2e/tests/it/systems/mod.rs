//! Real memory systems: published Python packages, installed when a test first wants them, started by the runner, driven
//! through the whole pipeline, and killed in the middle.

mod astrocyte;
mod hebb;
mod mine;

use std::{path::Path, time::Duration};

use bench_testkit::bench::Bench;
use serde_json::Value;

/// The record of the one system that was started below a home, when there is one.
fn instance(home: &Path) -> Option<Value> {
    let runs = std::fs::read_dir(home.join("systems")).ok()?;
    let folders = runs.flatten().filter_map(|run| std::fs::read_dir(run.path()).ok()).flatten().flatten();
    let mut records = folders.filter_map(|folder| std::fs::read(folder.path().join("instance.json")).ok());
    records.find_map(|bytes| serde_json::from_slice(&bytes).ok())
}

/// Waits for a started and healthy system; its process id.
fn started(home: &Path) -> i64 {
    let mut pid = None;
    bench_testkit::process::wait_until("the system is started", Duration::from_secs(120), || {
        pid = instance(home).filter(|record| record["healthy"] == true).and_then(|record| record["pid"].as_i64());
        pid.is_some()
    });
    pid.expect("was waited for")
}

/// Whether a process is there and no zombie.
fn lives(pid: i64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

/// Waits until a process is gone.
fn gone(pid: i64) {
    bench_testkit::process::wait_until("the system is gone", Duration::from_secs(60), || !lives(pid));
}

/// Kills a process of a test's own system.
fn kill(pid: i64) {
    let killed = std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status();
    assert!(killed.expect("kill runs").success());
}

/// Sessions that a run has retained so far.
fn retained(bench: &Bench, run: &str) -> u64 {
    let status = bench.run(["status", run, "--json"]);
    if status.code != 0 {
        return 0;
    }
    status.json()["progress"]["entries_retained"].as_u64().unwrap_or(0)
}
