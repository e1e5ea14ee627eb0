//! Who only looks leaves nothing behind: no home, no store, nothing beside a store that cannot be written.

use std::{
    fs,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::Path,
    process::Command,
};

use bench_testkit::{
    bench::{Bench, wait},
    ports,
};
use serde_json::json;

const SMALL: [&str; 7] = ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--limit", "2"];

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").file_name());
    let mut names: Vec<_> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Nobody works on a run here: those that ask for one say so, those that list have nothing to list.
#[test]
fn whoever_only_looks_leaves_an_empty_folder_empty() {
    let unknown: &[&[&str]] = &[
        &["status", "latest"],
        &["report", "latest"],
        &["show", "latest"],
        &["trace", "latest"],
        &["watch", "latest"],
        &["compare", "a", "b"],
        &["gate", "latest", "--floor", "0.1"],
        &["export", "latest"],
        &["pause", "latest"],
        &["cancel", "latest"],
        &["resume", "latest"],
        &["retry", "latest"],
        &["rename", "latest", "x"],
        &["tag", "latest", "x"],
        &["backup", "copy.db"],
        &["restore"],
    ];
    let bench = Bench::new();
    for verb in unknown {
        let done = bench.run(*verb).expect_code(2);
        assert!(done.stderr.contains("no run") || done.stderr.contains("no store"), "{verb:?}: {}", done.stderr);
        assert_eq!(files(bench.path()), [""; 0], "{verb:?}");
    }
    let empty: &[&[&str]] = &[
        &["status"],
        &["list"],
        &["gc"],
        &["datasets", "list"],
        &["datasets", "show", "locomo-sim"],
        &["systems", "list"],
        &["systems", "hash", "mem0"],
        &["config", "show"],
        &["doctor"],
        &["estimate", "--dataset", "locomo-sim"],
        &["submit", "--dataset", "locomo-sim", "--dry-run"],
    ];
    for verb in empty {
        let _ = bench.run(*verb).expect_code(0);
        assert_eq!(files(bench.path()), [""; 0], "{verb:?}");
    }
    assert_eq!(bench.run(["list", "--json"]).expect_code(0).json(), json!([]));
    assert_eq!(bench.run(["status", "--json"]).expect_code(0).json(), json!([]));
    assert!(bench.run(["list"]).stderr.contains("`bench-coord submit` starts one"));
    assert_eq!(files(bench.path()), [""; 0]);
}

/// A file of something else, and one that is no store at all, stay as they were.
#[test]
fn what_is_no_store_stays_as_it_was() {
    let bench = Bench::new();
    let python = "import sqlite3; sqlite3.connect('other.db').execute('CREATE TABLE t (x)')";
    assert!(Command::new("python3").args(["-c", python]).current_dir(bench.path()).status().expect("runs").success());
    fs::write(bench.path().join("text.db"), "no database, and longer than nothing").expect("is written");
    for (name, code) in [("other.db", 2), ("text.db", 4)] {
        let before = fs::read(bench.path().join(name)).expect("is there");
        let mode = || fs::metadata(bench.path().join(name)).expect("is there").permissions().mode() & 0o777;
        fs::set_permissions(bench.path().join(name), fs::Permissions::from_mode(0o644)).expect("is changed");
        let store = format!("sqlite:{name}");
        for verb in [&["list"][..], &SMALL] {
            let _ = bench.run(verb.iter().chain(&["--store", &store])).expect_code(code);
            assert_eq!(fs::read(bench.path().join(name)).expect("is there"), before, "{verb:?} {name}");
            assert_eq!(mode(), 0o644, "{verb:?} {name}");
        }
    }
    let _ = bench.run(["list", "--store", "sqlite:text.db/bench.db"]).expect_code(0);
    // nor is a file a home
    let mut homeless = bench.command(SMALL);
    homeless.env("BENCH_HOME", bench.path().join("text.db"));
    let refused = wait(homeless.spawn().expect("starts")).expect_code(2).stderr;
    assert!(refused.contains("text.db cannot be made") && refused.contains("set BENCH_HOME"), "{refused}");
    assert_eq!(files(bench.path()), ["other.db", "text.db"], "nothing is beside them");
}

/// A run that cannot start, and an archive for a store that cannot be opened, leave nothing behind.
#[test]
fn what_is_refused_leaves_an_empty_folder_empty() {
    let bench = Bench::new();
    for store in ["sqlite:/proc/x.db", "sqlite:/tmp"] {
        let _ = bench.run(SMALL.iter().chain(&["--store", store])).expect_code(2);
        assert_eq!(files(bench.path()), [""; 0], "{store}");
    }
    let _ = bench.run(["archive", "push", "--archive", "new", "--store", "sqlite:/tmp"]).expect_code(2);
    assert_eq!(files(bench.path()), [""; 0]);
    let [dead] = ports::reserve().expect("a port");
    let bench = bench.with_env("BENCH_ANSWERER_BASE_URL", format!("http://127.0.0.1:{dead}/v1"));
    let model = ["--answerer", "ollama:llama3.1", "--set", "models.look_first=true"];
    let refused = bench.run(SMALL.iter().chain(&model)).expect_code(2).stderr;
    assert!(refused.contains("nothing was started"), "{refused}");
    assert_eq!(files(bench.path()), [""; 0], "{refused}");
}

/// A home that somebody looks into at the moment in which it is made is its maker's all the same.
#[test]
fn a_look_at_the_same_moment_does_not_take_a_home_from_its_maker() {
    for round in 0..8 {
        let bench = Bench::new();
        let lookers: Vec<_> = ["list", "status", "list"].map(|verb| bench.start([verb])).into();
        let started = [0, 1].map(|_| bench.start(SMALL.iter().chain(&["--latency-probe", "off"])));
        let more: Vec<_> = ["status", "list", "status"].map(|verb| bench.start([verb])).into();
        for started in started {
            let done = wait(started);
            assert_eq!(done.code, 0, "round {round}: {}", done.stderr);
        }
        for looker in lookers.into_iter().chain(more) {
            let _ = wait(looker).expect_code(0);
        }
    }
}

/// As somebody who has no right to write: root has it everywhere, and becomes somebody else.
fn as_a_reader(mut command: Command) -> Command {
    if fs::metadata("/proc/self").is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0) {
        command.uid(65534).gid(65534);
    }
    command
}

#[test]
fn a_store_that_cannot_be_written_can_be_read() {
    let bench = Bench::new();
    let _ = bench.run(SMALL.iter().chain(&["--run-id", "done", "--latency-probe", "off"])).expect_code(0);
    let home = bench.path().join(".bench");
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("is changed");
    set(bench.path(), 0o555);
    set(&home.join("bench.db"), 0o444);
    set(&home.join("runs"), 0o555);
    set(&home, 0o555);
    let before = files(&home);
    let run = |words: &[&str]| wait(as_a_reader(bench.command(words)).spawn().expect("starts"));
    assert_eq!(run(&["list", "--json"]).expect_code(0).json()[0]["id"], "done");
    for verb in [&["status", "done"][..], &["report", "done"], &["show", "done"], &["compare", "done", "done"]] {
        let done = run(verb);
        assert!(!done.stderr.contains("store"), "{verb:?}: {}", done.stderr);
        assert_eq!(done.code, 0, "{verb:?}: {}", done.stderr);
    }
    let elsewhere = Bench::new();
    set(elsewhere.path(), 0o777);
    let copy = elsewhere.path().join("copy.db").display().to_string();
    let copied = run(&["backup", &copy]).expect_code(0).stdout;
    assert!(copied.contains("copy.db: 1 runs"), "{copied}");
    let doctor = run(&["doctor"]).expect_code(4).stdout;
    assert!(doctor.contains("set BENCH_HOME to a folder that can be"), "{doctor}");
    assert!(!doctor.contains("--output-dir"), "{doctor}");
    assert_eq!(files(&home), before, "nothing is put beside it");
    let refused = run(&["rename", "done", "x"]).expect_code(2);
    assert!(refused.stderr.contains("cannot be written"), "{}", refused.stderr);
    set(&home, 0o755);
    set(&home.join("runs"), 0o755);
    set(bench.path(), 0o755);
}
