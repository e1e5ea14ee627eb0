//! A person decides what runs here (P42): what a store or an archive says decides nothing, and secrets stay where they belong.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use bench_testkit::bench::{Bench, submit_sim};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/memory.py");

/// An adapter file for a process that notes each start with its working folder and its variables.
pub(crate) fn process(folder: &Path, more: &str) -> (PathBuf, String) {
    let ran = folder.join("ran");
    let script = format!("(echo start; pwd; env) >> {}; exec python3 {EXAMPLE}", ran.display());
    let text = format!("name: mine\ncommand: [sh, -c, '{script}']\n{more}");
    fs::write(folder.join("mine.yaml"), text).expect("is written");
    (ran, "./mine.yaml".to_owned())
}

pub(crate) fn starts(ran: &Path) -> usize {
    fs::read_to_string(ran).unwrap_or_default().lines().filter(|line| *line == "start").count()
}

fn submit<'a>(system: &'a str, run: &'a str) -> Vec<&'a str> {
    submit_sim(&["--max-banks", "2", "--per-bank", "4", "--system", system, "--run-id", run])
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())).permissions().mode() & 0o777
}

/// Copies a folder, as somebody would hand it on.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("readable").flatten() {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            let _ = fs::copy(&path, &to).expect("is copied");
        }
    }
}

#[test]
fn p42_a_file_that_a_person_names_runs_here_and_what_a_store_brings_does_not() {
    let bench = Bench::new();
    let (ran, mine) = process(bench.path(), "");
    let _ = bench.run(submit(&mine, "a")).expect_code(0);
    assert_eq!(mode(&bench.home().join(".bench/trusted")), 0o600);
    assert!(!bench.path().join(".bench/trusted").exists(), "a folder brings no such list along");
    let _ = bench.run(["retry", "a"]).expect_code(0);
    let here = starts(&ran);
    let there = Bench::new();
    copy(&bench.path().join(".bench"), &there.path().join(".bench"));
    copy(&bench.home().join(".bench"), &there.path().join(".bench"));
    let _ = there.run(["retry", "a"]).expect_code(2);
    // that the home is one's own says nothing of what its runs start
    let _ = there.run(["config", "trust"]).expect_code(0);
    let refused = there.run(["retry", "a"]).expect_code(2);
    for said in ["memory system mine is not allowed here: it runs sh -c", "BENCH_ALLOW_SYSTEMS="] {
        assert!(refused.stderr.contains(said), "{said}: {}", refused.stderr);
    }
    let refused = there.run(["gc", "--banks", "a"]).expect_code(2);
    assert!(refused.stderr.contains("allow it where its banks are to be removed"), "{}", refused.stderr);
    let _ = there.run(["gc"]).expect_code(0);
    let fork = ["submit", "--fork", "a", "--from", "recall", "--top-k", "3", "--run-id", "b"];
    let _ = there.run(fork).expect_code(2);
    // what needs no memory system goes on
    let _ = there.run(["report", "a"]).expect_code(0);
    let _ = there.run(["rescore", "a", "--scorer", "locomo-f1"]).expect_code(0);
    assert_eq!(starts(&ran), here, "nothing was started");
    let hash = bench.run(["systems", "hash", &mine, "--json"]).expect_code(0).json();
    let hash = hash["sha256"].as_str().expect("a hash").to_owned();
    let lines = bench.run(["systems", "hash", &mine]).expect_code(0);
    assert!(lines.stdout.contains(&format!("BENCH_ALLOW_SYSTEMS={hash}")), "{}", lines.stdout);
    assert!(lines.stderr.contains("not the programs and scripts that it names"), "{}", lines.stderr);
    let told = there.with_env("BENCH_ALLOW_SYSTEMS", hash);
    let _ = told.run(["retry", "a"]).expect_code(0);
    let removed = bench.run(["gc", "--banks", "a"]).expect_code(0).stdout;
    assert!(removed.starts_with("2 banks"), "one's own goes on: {removed}");
}

#[test]
fn a_process_sees_a_short_list_of_variables_and_works_where_its_person_does() {
    let bench = Bench::new()
        .with_env("OPENAI_API_KEY", "sk-of-somebody-else")
        .with_env("MINE_KEY", "open-sesame-1234")
        .with_env("BENCH_STORE_URL", "sqlite:.bench/bench.db");
    let (ran, mine) = process(bench.path(), "env: {GIVEN_KEY: '${env:MINE_KEY}'}\n");
    let _ = bench.run(submit(&mine, "a")).expect_code(0);
    let seen = fs::read_to_string(&ran).expect("it ran");
    let here = bench.path().canonicalize().expect("a folder");
    assert!(seen.contains(&format!("\n{}\n", here.display())), "{seen}");
    assert!(seen.contains("GIVEN_KEY=open-sesame-1234\n"), "{seen}");
    for hidden in ["OPENAI_API_KEY", "BENCH_STORE_URL", "MINE_KEY=", "sk-of-somebody-else"] {
        assert!(!seen.replace("GIVEN_KEY", "").contains(hidden) || hidden == "MINE_KEY=", "{hidden}: {seen}");
    }
    assert!(!seen.lines().any(|line| line.starts_with("MINE_KEY=")), "{seen}");
}

#[test]
fn what_a_run_leaves_behind_is_its_owners_alone() {
    let bench = Bench::new().with_env("MINE_KEY", "open-\"sesame\"-1234");
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/../testkit/systems/memory_server.py");
    let readme = include_str!("../../../../README.md");
    let file = readme.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("README has a file");
    let seen = bench.path().join("seen");
    let shell = format!(
        "stat -c %a key.json > {0}; python3 -c \\\"import json; print(json.load(open(chr(107)+chr(101)+chr(121)+chr(46)+chr(106)+chr(115)+chr(111)+chr(110)))[chr(107)])\\\" >> {0}; exec python3 {server} {{port}}",
        seen.display()
    );
    let start = format!(
        "start:\n  command: [sh, -c, \"{shell}\"]\n  files: {{key.json: '{{\"k\": \"${{env:MINE_KEY}}\"}}', plain.txt: 'x'}}"
    );
    fs::write(bench.path().join("mine.yaml"), file.replace("url: http://127.0.0.1:8080", &start)).expect("is written");
    let _ = bench.run(submit("./mine.yaml", "a")).expect_code(0);
    assert_eq!(fs::read_to_string(&seen).expect("it ran"), "600\nopen-\"sesame\"-1234\n");
    let home = bench.path().join(".bench");
    let system = home.join("systems/a/mine");
    assert!(!system.join("data/key.json").exists(), "the key went with the instance");
    assert!(system.join("data/plain.txt").exists());
    for folder in [home.clone(), home.join("runs/a"), system.clone(), system.join("data")] {
        assert_eq!(mode(&folder), 0o700, "{}", folder.display());
    }
    let report = home.join("runs/a/report.json");
    for file in [home.join("bench.db"), report, home.join("runs/a/questions.jsonl"), system.join("system.log")] {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[test]
fn a_key_that_stands_in_an_adapter_file_is_refused_with_the_way_to_name_it() {
    let bench = Bench::new();
    let calls =
        "retain: {request: POST /add}\nrecall: {request: POST /search, hits: [{list: results, text: memory}]}\n";
    for (text, said) in [
        ("url: http://127.0.0.1:9\nheaders: {X-Api-Key: 0123456789abcdef}\n", "auth: {env: NAME}"),
        ("start: {command: [serve], env: {MINE_TOKEN: abcdef123456}}\n", "${env:MINE_TOKEN}"),
    ] {
        fs::write(bench.path().join("mine.yaml"), format!("name: mine\n{text}{calls}")).expect("is written");
        let refused = bench.run(submit("./mine.yaml", "a")).expect_code(2);
        assert!(refused.stderr.contains(said), "{}", refused.stderr);
        assert!(!refused.stderr.contains("abcdef"), "{}", refused.stderr);
    }
    // nor in the address that is set beside it
    fs::write(bench.path().join("mine.yaml"), format!("name: mine\nurl: http://127.0.0.1:9\n{calls}"))
        .expect("is written");
    for set in [
        "system.url=http://127.0.0.1:9/sk-abcdef456789012/v1",
        "system.url=http://127.0.0.1:9/v1?token=abcdef456",
        "system.url=http://user:abcdef456@127.0.0.1:9",
    ] {
        let refused = bench.run(submit("./mine.yaml", "a").iter().chain(&["--set", set])).expect_code(2);
        assert!(refused.stderr.contains("system.url holds what looks like a key"), "{}", refused.stderr);
        assert!(!refused.stderr.contains("abcdef"), "{}", refused.stderr);
    }
    assert!(!bench.home().join(".bench/trusted").exists(), "nothing was noted");
    assert!(!bench.path().join(".bench/bench.db").exists(), "nothing was stored");
}
