//! Memory systems in whole runs: published Python packages, installed when a test first wants them, started by the runner and
//! killed in the middle; files of the user's own; systems that go away, and systems that lose what they were given.

mod alias;
mod astrocyte;
pub(crate) mod away;
mod banks_archive;
mod batches;
mod canaries;
mod classes;
mod facts;
mod filled;
mod given;
mod half_alive;
mod hebb;
mod libraries;
mod listing;
mod mcp;
mod mine;
mod parts;
mod pgvector;
mod python;
mod servers;
mod started;
mod troubles;
mod typescript;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use bench_testkit::{
    bench::{Bench, Done, submit_sim, wait},
    cluster::{Cluster, wait_until_ready},
    process::wait_until,
};
use serde_json::Value;

/// How long a test waits for what has to happen.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long a run over a real system may take on a busy machine.
const LONG: Duration = Duration::from_secs(240);

/// A run over two conversations of LoCoMo's shape.
fn submit<'a>(system: &'a str, run: &'a str) -> Vec<&'a str> {
    submit_sim(&["--max-banks", "2", "--sample", "2", "--system", system, "--run-id", run])
}

/// Writes `./mine.yaml` for the fake server `whole`: as much as the README's file says of it, and more lines.
fn write_whole(bench: &Bench, url: &str, more: &str) {
    let text = format!(
        "name: mine
url: {url}
retain: {{request: 'POST /banks/{{bank}}/items', body: {{id: '{{id}}', text: '{{content}}'}}}}
recall:
  request: POST /banks/{{bank}}/search
  body: {{query: '{{query}}', k: '{{k}}'}}
  hits: [{{list: hits, text: text, id: id}}]
reset: {{request: 'DELETE /banks/{{bank}}'}}
health: {{request: GET /health}}
{more}"
    );
    std::fs::write(bench.path().join("mine.yaml"), text).expect("is written");
}

/// A file of the testkit that stands for a system.
fn program(name: &str) -> String {
    format!("{}/../testkit/systems/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// The records of the systems that were started below a home, with their folders.
fn instances(home: &Path) -> Vec<(PathBuf, Value)> {
    fn folders(root: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    }
    let of_runs = folders(&home.join("systems")).into_iter().flat_map(|run| folders(&run));
    let all = of_runs.flat_map(|system| folders(&system).into_iter().chain([system]));
    all.filter_map(|folder| {
        let record = std::fs::read(folder.join("instance.json")).ok()?;
        Some((folder, serde_json::from_slice(&record).ok()?))
    })
    .collect()
}

/// The logs of the instances of a run's system.
fn logs(bench: &Bench, run: &str, system: &str) -> Vec<String> {
    let system = bench.path().join(".bench/systems").join(run).join(system);
    let inside = std::fs::read_dir(&system).into_iter().flatten().flatten().map(|entry| entry.path());
    let folders = inside.filter(|path| path.is_dir()).chain([system.clone()]);
    folders.filter_map(|folder| std::fs::read_to_string(folder.join("system.log")).ok()).collect()
}

/// Waits for a started and healthy system; its process id.
fn started(home: &Path) -> i64 {
    let mut pid = None;
    wait_until("the system is started", PATIENCE, || {
        let healthy = instances(home).into_iter().map(|(_, record)| record).find(|record| record["healthy"] == true);
        pid = healthy.and_then(|record| record["pid"].as_i64());
        pid.is_some()
    });
    pid.expect("was waited for")
}

/// Nothing that the runner had started is left.
fn assert_ended(home: &Path) {
    assert_eq!(instances(home), [], "it is ended with the run");
}

/// Whether a process is there and no zombie.
fn lives(pid: i64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

/// Waits until a process is gone.
fn gone(pid: i64) {
    wait_until("the system is gone", PATIENCE, || !lives(pid));
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

/// Runs a run in one process and kills its system once it has so many sessions.
fn killed_while_filled(bench: &Bench, args: &[&str], run: &str, sessions: u64) -> Done {
    let home = bench.path().join(".bench");
    let child = bench.start(args);
    let first = started(&home);
    wait_until("some sessions are stored", PATIENCE, || retained(bench, run) >= sessions);
    kill(first);
    let done = wait(child);
    assert!(!lives(first));
    assert_ended(&home);
    done
}

/// The same over RabbitMQ and Postgres, with two workers.
fn killed_in_a_cluster(cluster: &Cluster, args: &[&str], sessions: u64) -> Done {
    let home = cluster.bench().path().join(".bench");
    let mut coordinator = cluster.coordinator("coordinator");
    wait_until_ready(&mut coordinator);
    let _workers = [cluster.worker("one", &[]), cluster.worker("two", &[])];
    let client = cluster.client(args);
    let first = started(&home);
    let stored = || cluster.sql("SELECT coalesce(sum(position), 0) FROM banks").parse::<u64>().unwrap_or(0);
    wait_until("some sessions are stored", PATIENCE, || stored() >= sessions);
    kill(first);
    let done = client.wait(LONG);
    wait_until("it is ended with the run", PATIENCE, || instances(&home).is_empty());
    done
}

/// The digest of a run that ended well, with all its questions.
fn digest(done: &Done) -> String {
    let report = done.json();
    assert_eq!(report["outcomes"]["coverage"], 1.0, "{report}");
    report["result_digest"].as_str().expect("a digest").to_owned()
}
