//! What `start` promises: one instance per run or per bank, containers, versions; and what a run says about the system.

use std::path::Path;

use bench_testkit::{
    bench::{Bench, signal, wait},
    process::wait_until,
};
use serde_json::Value;

use super::{PATIENCE, assert_ended, digest, lives, logs, program, retained, started, submit};

/// An adapter for the testkit's memory server; `start` is how it comes about.
pub(super) fn adapter(folder: &Path, start: &str) -> String {
    let text = format!(
        "
name: mine
start: {start}
can: {{survives_restart: false, order: true}}
retain: {{request: POST /add, body: {{text: '{{content}}', user: '{{bank}}', meta: {{turn: '{{id}}'}}}}}}
recall:
  request: POST /search
  body: {{query: '{{query}}', user: '{{bank}}', limit: '{{k}}'}}
  hits: [{{list: results, text: memory, id: meta.turn, score: score}}]
consolidate:
  request: POST /consolidate
  body: {{user: '{{bank}}'}}
  usage: {{prompt_tokens: usage.prompt, completion_tokens: usage.completion}}
verify: {{request: POST /count, body: {{user: '{{bank}}'}}, count: memories}}
statistics: {{request: POST /count, body: {{user: '{{bank}}'}}, numbers: {{characters: characters}}}}
reset: {{request: 'DELETE /users/{{bank}}'}}
health: {{request: GET /health, version: version}}
"
    );
    std::fs::write(folder.join("mine.yaml"), text).expect("the adapter can be written");
    "./mine.yaml".to_owned()
}

pub(super) fn command() -> String {
    format!("command: [python3, '{}', '{{port}}']", program("memory_server.py"))
}

#[test]
fn a_run_says_which_version_it_measured_and_what_the_system_holds() {
    let bench = Bench::new();
    let adapter = adapter(bench.path(), &format!("{{{}, version: 1.2.3}}", command()));
    let report = bench.run(submit(&adapter, "mine")).expect_code(0).json();
    assert_eq!(report["outcomes"]["coverage"], 1.0, "{report}");
    let stats = &report["system_stats"];
    assert_eq!(stats["version"], "1.2.3", "{stats}");
    assert!(stats["items"].as_f64().is_some_and(|items| items > 500.0), "{stats}");
    assert!(stats["characters"].as_f64().is_some_and(|characters| characters > 10_000.0), "{stats}");
    assert_eq!(report["phase_seconds"].get("consolidate"), None, "{report}");
    assert_ended(&bench.path().join(".bench"));
}

#[test]
fn a_key_that_a_start_needs_is_asked_for_before_the_run_is_created() {
    let bench = Bench::new();
    let refused = bench.run(submit("jeffs-brain-go", "keyless")).expect_code(2).stderr;
    assert!(refused.contains("the environment variable OPENAI_API_KEY is not set"), "{refused}");
    assert_eq!(bench.run(["list", "--json"]).expect_code(0).json(), serde_json::json!([]), "nothing was created");
}

#[test]
fn another_version_than_the_adapter_wants_is_refused() {
    let bench = Bench::new();
    let adapter = adapter(bench.path(), &format!("{{{}, version: 9.9.9}}", command()));
    let done = bench.run(submit(&adapter, "mine")).expect_code(3);
    assert!(done.stderr.contains("reports version 1.2.3, the adapter wants 9.9.9"), "{}", done.stderr);
    assert_ended(&bench.path().join(".bench"));
}

#[test]
fn a_system_that_cannot_work_here_is_refused_before_the_run() {
    let bench = Bench::new();
    let check = "check: [sh, -c, 'echo its SQLite loads no extensions >&2; exit 1']";
    let adapter = adapter(bench.path(), &format!("{{{}, {check}}}", command()));
    let done = bench.run(submit(&adapter, "mine")).expect_code(2);
    let why =
        "mine is not started, its check (`start.check`) has failed (exit status: 1): its SQLite loads no extensions";
    assert!(done.stderr.contains(why) && done.stderr.contains("nothing was started"), "{}", done.stderr);
    assert!(!bench.path().join(".bench").exists(), "it leaves nothing behind");
    let checked = bench.run(["systems", "check", &adapter]).expect_code(2);
    assert!(checked.stderr.contains(why), "{}", checked.stderr);
}

#[test]
fn each_bank_has_an_instance_of_its_own_when_the_file_says_so() {
    let bench = Bench::new();
    let alone = adapter(bench.path(), &format!("{{{}, per: bank}}", command()));
    let checked = bench.run(["systems", "check", &alone]);
    assert_eq!(checked.code, 0, "{}\n{}", checked.stdout, checked.stderr);
    let each = bench.run(submit(&alone, "each")).expect_code(0);
    assert_eq!(logs(&bench, "each", "mine").len(), 2, "one for each bank");
    let shared = adapter(bench.path(), &format!("{{{}}}", command()));
    let one = bench.run(submit(&shared, "one")).expect_code(0);
    assert_eq!(logs(&bench, "one", "mine").len(), 1, "one for the run");
    assert_eq!(digest(&each), digest(&one));
    assert_ended(&bench.path().join(".bench"));
}

#[test]
fn p33_gc_removes_what_started_systems_have_stored() {
    let bench = Bench::new();
    let folder = |run: &str| bench.path().join(".bench/systems").join(run).join("mine");
    let stored = |run: &str| folder(run).join("data/notes.txt").exists();
    let start = |takes: &str| {
        let env = format!("env: {{MEMORY_TAKES: '{takes}'}}, files: {{notes.txt: 'what it has stored'}}");
        adapter(bench.path(), &format!("{{{}, {env}}}", command()))
    };
    let _kept = bench.run(submit(&start("0"), "kept")).expect_code(0);
    let child = bench.start(submit(&start("0.08"), "given-up"));
    wait_until("a session is stored", PATIENCE, || retained(&bench, "given-up") >= 1);
    let _ = bench.run(["gc"]).expect_code(0);
    assert!(stored("given-up") && stored("kept"), "what is in use stays, and what has a result");
    let _ = bench.run(["cancel", "given-up"]).expect_code(0);
    let _ = wait(child);
    assert!(stored("given-up"), "a cancelled run leaves its banks");
    let removed = bench.run(["gc"]).expect_code(0).stdout;
    assert!(!removed.starts_with("0 banks"), "{removed}");
    assert!(!stored("given-up") && stored("kept"));
    assert!(folder("given-up").join("system.log").exists(), "the log stays with the run");
    let refused = bench.run(["resume", "given-up", "--reopen"]).expect_code(2);
    assert!(refused.stderr.contains("removed from its memory system"), "{}", refused.stderr);
    let named = bench.run(["gc", "--banks", "kept"]).expect_code(0).stdout;
    assert!(named.starts_with("2 banks") && !stored("kept"), "{named}");
    let again = bench.run(["gc", "--banks", "kept"]).expect_code(0).stdout;
    assert!(again.starts_with("0 banks"), "once is enough: {again}");
}

#[test]
fn consolidation_has_its_own_time_and_cost() {
    let bench = Bench::new();
    let adapter = adapter(bench.path(), &format!("{{{}}}", command()));
    let args = [submit(&adapter, "better"), vec!["--mode", "consolidated"]].concat();
    let report = bench.run(args).expect_code(0).json();
    assert_eq!(report["outcomes"]["coverage"], 1.0, "{report}");
    assert!(report["phase_seconds"]["consolidate"].as_f64().is_some_and(|seconds| seconds > 0.0), "{report}");
    let used = &report["usage"]["consolidate"];
    assert_eq!((&used["prompt_tokens"], &used["completion_tokens"]), (&Value::from(80), &Value::from(8)), "{used}");
    assert_eq!(report["usage"]["retain"]["prompt_tokens"], 0, "{report}");
    assert_eq!(report["usage"]["total"]["prompt_tokens"], 80, "{report}");
    let log = logs(&bench, "better", "mine").concat();
    assert_eq!(log.matches("consolidate ").count(), 2, "once for each bank: {log}");
    let text = bench.run(["report", "better", "--format", "md"]).expect_code(0).stdout;
    assert!(text.contains("consolidate"), "{text}");
    let raw = bench.run([submit(&adapter, "raw"), vec!["--mode", "raw"]].concat()).expect_code(0);
    let compared = bench.run(["compare", "raw", "better"]);
    assert!(compared.stdout.contains("system.mode") || compared.stderr.contains("system.mode"), "{}", compared.stdout);
    assert_eq!(raw.json()["usage"].get("consolidate"), None);
}

#[test]
fn a_started_system_ends_with_every_exit_of_its_runner() {
    let bench = Bench::new();
    let home = bench.path().join(".bench");
    let mine = adapter(bench.path(), &format!("{{{}, env: {{MEMORY_TAKES: '0.05'}}}}", command()));
    for (how, code) in [("INT", 3), ("TERM", 3), ("pause", 3), ("cancel", 3), ("check", 3)] {
        let child = match how {
            "check" => bench.start(["systems", "check", &mine]),
            run => bench.start(submit(&mine, run)),
        };
        let pid = started(&home);
        match how {
            "INT" | "TERM" => signal(&child, how),
            "check" => signal(&child, "INT"),
            verb => drop(bench.run([verb, verb]).expect_code(0)),
        }
        let done = wait(child);
        assert_eq!(done.code, code, "{how}: {}", done.stderr);
        assert!(!lives(pid), "{how}");
        assert_ended(&home);
    }
}

/// No container engine is needed: a program named `docker` stands for its client.
#[test]
fn an_image_is_started_on_loopback_and_removed() {
    let bench = Bench::new();
    let notes = bench.path().join("docker");
    let programs = bench.path().join("bin");
    std::fs::create_dir_all(&notes).expect("a folder");
    std::fs::create_dir_all(&programs).expect("a folder");
    std::os::unix::fs::symlink(program("docker.py"), programs.join("docker")).expect("a link");
    let bench = bench
        .with_env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display()))
        .with_env("DOCKER_NOTES", notes.display().to_string())
        .with_env("MINE_SECRET", "sesame-1234");
    let start = "{image: 'example.org/mine:1.2.3', image_port: 7000, env: {MINE_KEY: '${env:MINE_SECRET}'}}";
    let adapter = adapter(bench.path(), start);
    let report = bench.run(submit(&adapter, "image")).expect_code(0).json();
    assert_eq!(report["outcomes"]["coverage"], 1.0, "{report}");
    assert_eq!(report["system_stats"]["version"], "1.2.3", "{report}");
    assert_ended(&bench.path().join(".bench"));
    let calls = std::fs::read_to_string(notes.join("calls")).expect("was called");
    let calls: Vec<Vec<String>> = calls.lines().map(|line| serde_json::from_str(line).expect("a list")).collect();
    let (run, remove) = (&calls[0], calls.last().expect("removed"));
    assert_eq!((run[0].as_str(), run[1].as_str()), ("run", "--rm"));
    assert!(run.contains(&"example.org/mine:1.2.3".to_owned()) && run.iter().any(|word| word.ends_with(":7000")));
    assert!(run.contains(&"MINE_KEY".to_owned()), "{run:?}");
    assert!(!calls.concat().iter().any(|word| word.contains("sesame")), "no secret in a list of processes: {run:?}");
    let name = &run[run.iter().position(|word| word == "--name").expect("has a name") + 1];
    assert_eq!(remove[..3], ["rm".to_owned(), "-f".to_owned(), name.clone()]);
}
