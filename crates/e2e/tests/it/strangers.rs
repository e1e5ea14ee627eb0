//! What comes from elsewhere decides nothing here: archives that somebody else may have written.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use bench_testkit::bench::{Bench, submit_sim};
use serde_json::{Value, json};

/// An archive with one run of a memory system that writes to `ran` each time it is started.
fn archive_of_a_started_system(ran: &Path) -> (Bench, PathBuf) {
    let bench = Bench::new();
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/../testkit/systems/memory_server.py");
    let readme = include_str!("../../../../README.md");
    let file = readme.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("README has a file");
    let shell = format!("echo ran >> {}; exec python3 '{server}' {{port}}", ran.display());
    let start = format!("start: {{command: [sh, -c, \"{shell}\"]}}");
    fs::write(bench.path().join("mine.yaml"), file.replace("url: http://127.0.0.1:8080", &start)).expect("is written");
    let submit = ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--system", "./mine.yaml", "--run-id", "a"];
    let _ = bench.run(submit).expect_code(0);
    let _ = bench.run(["archive", "push", "a", "--archive", "kept"]).expect_code(0);
    let kept = bench.path().join("kept");
    (bench, kept)
}

fn find(folder: &Path, wanted: &dyn Fn(&str) -> bool) -> PathBuf {
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).expect("readable") {
            let path = entry.expect("readable").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
            if path.is_dir() {
                folders.push(path);
            } else if wanted(&name) {
                return path;
            }
        }
    }
    panic!("nothing fits in {}", folder.display());
}

fn change(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut document: Value = serde_json::from_slice(&fs::read(path).expect("readable")).expect("is JSON");
    change(&mut document);
    fs::write(path, document.to_string()).expect("writable");
}

fn sha256(path: &Path) -> Value {
    let told = Command::new("sha256sum").arg(path).output().expect("sha256sum is there").stdout;
    let text = String::from_utf8(told).expect("is text");
    text.split(' ').next().map_or(Value::Null, Value::from)
}

/// Rewrites a file of an archived run, with sums that are right: whoever can write to an archive can do that.
fn rewrite(kept: &Path, name: &str, with: impl FnOnce(Vec<u8>) -> Vec<u8>) {
    let manifest = find(kept, &|found| found == "manifest.json");
    let folder = manifest.parent().expect("a folder").to_owned();
    change(&manifest, |manifest| {
        let files = manifest["files"].as_array_mut().expect("files");
        let file = files.iter_mut().find(|file| file["name"] == name).expect("the file");
        let object = folder.join(file["object"].as_str().expect("an object"));
        let plain = with(zstd::decode_all(fs::read(&object).expect("readable").as_slice()).expect("is zstd"));
        let packed = zstd::encode_all(plain.as_slice(), 1).expect("is packed");
        fs::write(folder.join("plain"), &plain).expect("writable");
        fs::write(&object, &packed).expect("writable");
        file["bytes"] = json!(packed.len());
        file["plain_bytes"] = json!(plain.len());
        file["sha256"] = sha256(&object);
        file["plain_sha256"] = sha256(&folder.join("plain"));
    });
}

fn times(ran: &Path) -> usize {
    fs::read_to_string(ran).unwrap_or_default().lines().count()
}

#[test]
fn a_run_of_an_archive_starts_nothing_before_its_system_is_trusted() {
    let folder = tempfile::tempdir().expect("a folder");
    let ran = folder.path().join("ran");
    let (_bench, kept) = archive_of_a_started_system(&ran);
    let before = times(&ran);
    // as if a question had failed, and as if somebody here had said that its system is trusted
    rewrite(&kept, "run.json", |bytes| {
        let mut run: Value = serde_json::from_slice(&bytes).expect("is JSON");
        run["events"].as_array_mut().expect("events").push(json!([0, "system_trusted", "--trust-system"]));
        run.to_string().into_bytes()
    });
    let there = Bench::new().with_env("BENCH_ARCHIVE_URL", kept.display().to_string());
    let _ = there.run(["archive", "fetch", "a", "--restore"]).expect_code(0);
    let refused = there.run(["retry", "a"]).expect_code(2);
    assert!(refused.stderr.contains("--trust-system"), "{}", refused.stderr);
    let _ = there.run(["report", "a"]).expect_code(0);
    let _ = there.run(["rescore", "a", "--scorer", "locomo-f1"]).expect_code(0);
    assert_eq!(times(&ran), before, "it was read, and nothing was started");
    let _ = there.run(["archive", "fetch", "a", "--restore", "--trust-system"]).expect_code(0);
    let retried = there.run(["retry", "a"]).expect_code(0);
    assert!(retried.stderr.contains("nothing to repeat"), "a person has said that it may: {}", retried.stderr);
}

#[test]
fn a_broken_archive_leaves_nothing_in_the_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_bench, kept) = archive_of_a_started_system(&folder.path().join("ran"));
    rewrite(&kept, "results.jsonl", |mut lines| {
        lines.extend(b"{\"no\": \"result\"}\n");
        lines
    });
    let there = Bench::new().with_env("BENCH_ARCHIVE_URL", kept.display().to_string());
    let refused = there.run(["archive", "fetch", "a", "--restore"]).expect_code(5);
    assert!(refused.stderr.contains("results.jsonl cannot be read"), "{}", refused.stderr);
    let runs = there.run(["list", "--json"]).expect_code(0).json();
    assert_eq!(runs, json!([]), "nothing that could be resumed");
}

#[test]
fn names_in_an_index_lead_nowhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_bench, kept) = archive_of_a_started_system(&folder.path().join("ran"));
    let index = find(&kept.join("index"), &|name| name == "a.json");
    let sound = fs::read(&index).expect("readable");
    for (field, value) in [
        ("run_id", "../../../evil"),
        ("run_id", "..\\evil"),
        ("folder", "../../somewhere/else/v1/a"),
        ("folder", "runs/2026-01-01/../v1/a"),
        ("dataset", ".."),
        ("finished_at", "../../../../"),
    ] {
        fs::write(index.with_file_name("b.json"), &sound).expect("writable");
        change(&index.with_file_name("b.json"), |entry| entry[field] = value.into());
        let there = Bench::new().with_env("BENCH_ARCHIVE_URL", kept.display().to_string());
        let listed = there.run(["archive", "list", "--json"]).expect_code(0);
        if field != "finished_at" {
            assert!(listed.stderr.contains("b.json is left out"), "{field} {value}: {}", listed.stderr);
            assert_eq!(listed.json().as_array().map(Vec::len), Some(1), "the other run is there");
        }
        let _ = there.run(["archive", "fetch", "a"]).expect_code(0);
    }
    fs::write(index.with_file_name("b.json"), "{").expect("writable");
    let manifest = find(&kept.join("runs"), &|name| name == "manifest.json");
    change(&manifest, |manifest| manifest["files"][0]["name"] = json!("../../evil"));
    let there = Bench::new().with_env("BENCH_ARCHIVE_URL", kept.display().to_string());
    let refused = there.run(["archive", "fetch", "a"]).expect_code(5);
    assert!(refused.stderr.contains("names a file"), "{}", refused.stderr);
    assert!(!there.path().parent().expect("a folder").join("evil").exists());
    // a name of its own that would take the place of a person's file
    change(&manifest, |manifest| manifest["files"][0]["name"] = json!("Makefile"));
    fs::write(there.path().join("Makefile"), "all: mine\n").expect("writable");
    let refused = there.run(["archive", "fetch", "a", "--output-dir", "."]).expect_code(5);
    assert!(refused.stderr.contains("'Makefile', which no run has"), "{}", refused.stderr);
    assert_eq!(fs::read_to_string(there.path().join("Makefile")).expect("is there"), "all: mine\n");
}

#[test]
fn figures_of_an_archive_are_what_figures_can_be() {
    let bench = Bench::new();
    let _ = bench.run(submit_sim(&["--preset", "quick", "--run-id", "a"])).expect_code(0);
    let _ = bench.run(["archive", "push", "a", "--archive", "kept"]).expect_code(0);
    let kept = bench.path().join("kept");
    // the document of a matrix that nobody can read hides no run
    let matrix = kept.join("matrices/2026-01-01/a");
    fs::create_dir_all(&matrix).expect("is made");
    fs::write(matrix.join("results-matrix-2026-01-01.json"), "{").expect("writable");
    let there = Bench::new().with_env("BENCH_ARCHIVE_URL", kept.display().to_string());
    let fetched = there.run(["archive", "fetch", "a"]).expect_code(0);
    assert!(fetched.stderr.contains("results-matrix-2026-01-01.json is left out"), "{}", fetched.stderr);
    rewrite(&kept, "report.json", |bytes| {
        let mut report: Value = serde_json::from_slice(&bytes).expect("is JSON");
        report["headline"]["value"] = json!(1e17);
        report.to_string().into_bytes()
    });
    let refused = there.run(["archive", "fetch", "a", "--restore"]).expect_code(5);
    assert!(refused.stderr.contains("beyond 0 and 1"), "{}", refused.stderr);
    let index = find(&kept.join("index"), &|name| name == "a.json");
    change(&index, |entry| entry["value"] = json!(1e17));
    let drawn = there.run(["archive", "trajectory", "--svg", "t.svg", "--json"]).expect_code(0);
    assert!(drawn.stderr.contains("a.json is left out"), "{}", drawn.stderr);
    assert!(fs::metadata(there.path().join("t.svg")).is_ok_and(|about| about.len() < 100_000));
}

#[test]
fn a_matrix_is_restored_as_a_whole_or_not_at_all() {
    let bench = Bench::new();
    let grid = ["--preset", "quick", "--latency-probe", "off", "--system", "bm25,random", "--run-id", "grid"];
    let _ = bench.run(submit_sim(&[&grid[..], &["--display", "none"]].concat())).expect_code(0);
    let _ = bench.run(["archive", "push", "grid", "--archive", "kept"]).expect_code(0);
    let kept = bench.path().join("kept");
    rewrite(&kept, "banks.jsonl", |_| b"{\"no\": \"bank\"}\n".to_vec());
    let there = Bench::new().with_env("BENCH_ARCHIVE_URL", kept.display().to_string());
    let refused = there.run(["archive", "fetch", "grid", "--restore", "--trust-system"]).expect_code(5);
    assert!(refused.stderr.contains("banks.jsonl cannot be read"), "{}", refused.stderr);
    assert_eq!(there.run(["list", "--json"]).expect_code(0).json(), json!([]), "neither of its runs");
}

/// A folder as somebody else has made it: its settings lead elsewhere, and it brings a list of trusted files along.
fn strange_folder(bench: &Bench, settings: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let file = bench.path().join("bench.toml");
    fs::write(&file, settings).expect("writable");
    let home = bench.path().join(".bench");
    fs::create_dir_all(&home).expect("writable");
    let hash = sha256(&file);
    let path = fs::canonicalize(&file).expect("is there");
    let list = home.join("trusted-configs");
    fs::write(&list, format!("{}  {}\n", hash.as_str().expect("a hash"), path.display())).expect("writable");
    fs::set_permissions(&list, fs::Permissions::from_mode(0o600)).expect("is changed");
}

#[test]
fn a_settings_file_of_a_strange_folder_wants_a_word() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = tempfile::tempdir().expect("a folder");
    let bench = Bench::new().with_env("HOME", home.path().display().to_string());
    let settings =
        "[accounts.openai]\nbase_url = 'http://127.0.0.1:1/v1'\n[run]\nsystem = './theirs.yaml'\ntop_k = 5\n";
    strange_folder(&bench, settings);
    for verb in [&["list"][..], &["config", "show"], &["submit", "--dataset", "locomo-sim", "--preset", "quick"]] {
        let refused = bench.run(verb).expect_code(2);
        for word in
            ["bench.toml", "accounts.openai.base_url, run.system", "`bench-coord config trust`", "--config bench.toml"]
        {
            assert!(refused.stderr.contains(word), "'{word}' is missing in {}", refused.stderr);
        }
    }
    // who names it means it, once
    let _ = bench.run(["list", "--config", "bench.toml"]).expect_code(0);
    let named = bench.command(["list"]).env("BENCH_CONFIG", "bench.toml").output().expect("runs");
    assert_eq!(named.status.code(), Some(0));
    let _ = bench.run(["list"]).expect_code(2);

    let trusted = bench.run(["config", "trust"]).expect_code(0);
    assert!(
        trusted.stdout.contains("http://127.0.0.1:1/v1") && trusted.stdout.contains("bench.toml:2"),
        "{}",
        trusted.stdout
    );
    let list = home.path().join(".bench/trusted-configs");
    assert_eq!(fs::metadata(list).expect("is there").permissions().mode() & 0o777, 0o600);
    let shown = bench.run(["config", "show"]).expect_code(0).stdout;
    assert!(shown.contains("./theirs.yaml"), "{shown}");
    // another file, and the same file elsewhere, are others
    fs::write(bench.path().join("bench.toml"), format!("{settings}# changed\n")).expect("writable");
    let _ = bench.run(["list"]).expect_code(2);
    let other = Bench::new().with_env("HOME", home.path().display().to_string());
    fs::write(other.path().join("bench.toml"), settings).expect("writable");
    let _ = other.run(["list"]).expect_code(2);
    // one that leads nowhere needs no word, and flags and environment are the person's own
    fs::write(bench.path().join("bench.toml"), "[run]\ntop_k = 5\npreset = 'quick'\n").expect("writable");
    let _ = bench.run(["list", "--store", "sqlite:other.db"]).expect_code(0);
}

/// A folder with a home that somebody else has made: the store and the reports of a finished run.
fn handed_on(from: &Bench) -> Bench {
    let there = Bench::new();
    let copied = Command::new("cp").arg("-r").arg(from.path().join(".bench")).arg(there.path()).status();
    assert!(copied.expect("cp is there").success());
    there
}

#[test]
fn a_home_of_a_strange_folder_wants_a_word_before_its_runs_go_on() {
    let bench = Bench::new();
    let submit = |run| ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--display", "none", "--run-id", run];
    let retry = ["retry", "a"];
    let _ = bench.run(submit("a")).expect_code(0);
    let _ = bench.run(retry).expect_code(0);
    let there = handed_on(&bench);
    for verb in [
        &retry[..],
        &["resume", "latest"],
        &["gc"],
        &submit("b"),
        &["rescore", "a", "--scorer", "locomo-f1"],
        &["systems", "check", "bm25"],
        &["systems", "try", "bm25"],
        &["judge-audit", "--dataset", "locomo-sim"],
        &["delete", "a"],
        &["banks", "remove", "a"],
        &["banks", "export", "a"],
    ] {
        let refused = there.run(verb).expect_code(2);
        for said in [".bench of this folder was not made here", "`bench-coord config trust`", "BENCH_HOME=.bench"] {
            assert!(refused.stderr.contains(said), "{verb:?}: '{said}' is missing in {}", refused.stderr);
        }
    }
    // who only looks is not asked, and who names it means it
    let estimate = ["estimate", "--dataset", "locomo-sim"];
    for verb in [&["list"][..], &["status", "a"], &["report", "a"], &["banks", "list"], &estimate] {
        let _ = there.run(verb).expect_code(0);
    }
    let _ = there.run(retry.iter().chain(&["--store", "sqlite:.bench/bench.db"])).expect_code(0);
    let named = there.command(retry).env("BENCH_HOME", ".bench").output().expect("runs");
    assert_eq!(named.status.code(), Some(0));
    let _ = there.run(retry).expect_code(2);

    let taken = there.run(["config", "trust"]).expect_code(0);
    assert!(taken.stderr.contains(".bench is taken as your own"), "{}", taken.stderr);
    let _ = there.run(retry).expect_code(0);
    let _ = there.run(submit("b")).expect_code(0);
    let _ = there.run(["config", "trust"]).expect_code(2);
    // a folder of systems without a store: looking makes a store, and nobody's own of what was there
    let planted = Bench::new();
    fs::create_dir_all(planted.path().join(".bench/systems/r/n")).expect("writable");
    let _ = planted.run(["list"]).expect_code(0);
    let _ = planted.run(submit("c")).expect_code(2);
    // one that was made by `migrate` was made here
    let migrated = Bench::new();
    let _ = migrated.run(["migrate"]).expect_code(0);
    let _ = migrated.run(["gc"]).expect_code(0);
    // another store in the place of the one that was taken
    let store = there.path().join(".bench/bench.db");
    fs::copy(bench.path().join(".bench/bench.db"), there.path().join("theirs.db")).expect("is copied");
    fs::rename(there.path().join("theirs.db"), &store).expect("is moved");
    let _ = there.run(retry).expect_code(2);
}

#[test]
fn a_link_in_a_home_of_a_strange_folder_leads_to_no_file_of_its_reader() {
    let bench = Bench::new();
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/memory.py");
    fs::write(bench.path().join("mine.yaml"), format!("name: mine\ncommand: [python3, '{server}']\n"))
        .expect("writable");
    let victim = bench.path().join("victim");
    fs::write(&victim, "precious").expect("writable");
    fs::create_dir(bench.path().join(".bench")).expect("writable");
    for name in ["trusted", "homes", "trusted-configs"] {
        std::os::unix::fs::symlink(&victim, bench.path().join(".bench").join(name)).expect("is linked");
    }
    let submit =
        ["submit", "--dataset", "locomo-sim", "--max-banks", "2", "--per-bank", "4", "--system", "./mine.yaml"];
    let refused = bench.run(submit).expect_code(2);
    assert!(refused.stderr.contains(".bench/homes leads to"), "{}", refused.stderr);
    // lists lie elsewhere: who takes the home as it is writes them through no link either
    let named = bench.command(submit).env("BENCH_HOME", ".bench").output().expect("runs");
    assert_eq!(named.status.code(), Some(0));
    assert_eq!(fs::read_to_string(&victim).expect("is there"), "precious");
}

#[test]
fn a_word_for_a_fetched_run_is_none_for_the_one_that_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_bench, kept) = archive_of_a_started_system(&folder.path().join("ran"));
    let there = Bench::new().with_env("BENCH_ARCHIVE_URL", kept.display().to_string());
    let sound = Command::new("cp").arg("-r").arg(&kept).arg(folder.path().join("sound")).status();
    assert!(sound.expect("cp is there").success());
    rewrite(&kept, "run.json", |bytes| {
        let mut run: Value = serde_json::from_slice(&bytes).expect("is JSON");
        run["spec"]["system"]["settings"]["system.url"] = "http://127.0.0.1:9".into();
        run.to_string().into_bytes()
    });
    let _ = there.run(["archive", "fetch", "a", "--restore"]).expect_code(0);
    let there = there.with_env("BENCH_ARCHIVE_URL", folder.path().join("sound").display().to_string());
    let own = there.path().join(".bench/runs/a/run.json");
    let before = fs::read(&own).expect("is there");
    let refused = there.run(["archive", "fetch", "a", "--restore", "--trust-system"]).expect_code(2);
    assert!(refused.stderr.contains("with another memory system"), "{}", refused.stderr);
    assert!(fs::read(&own).expect("is there") == before, "the run keeps its own files");
    assert!(!there.home().join(".bench/trusted").exists(), "nothing was trusted");
}

/// What a terminal would obey.
const ACTS: &str = "x\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}1A\u{202e}y\u{2066}";

#[test]
fn words_of_others_drive_no_terminal_no_spreadsheet_and_no_pull_request() {
    let bench = Bench::new();
    let submit = ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--display", "none", "--run-id", "own"];
    let _ = bench.run(submit).expect_code(0);
    let line = |(n, question): (usize, &Value)| {
        let answer = if n == 0 { "=HYPERLINK(\"http://evil.example\")".to_owned() } else { format!("{ACTS} {n}") };
        let id = &question["question_id"];
        format!("{}\n", json!({"question_id": id, "answer": answer, "score": 0, "metric": format!("m{ACTS}")}))
    };
    let lines: String = bench.questions("own").iter().enumerate().map(line).collect();
    fs::write(bench.path().join("answers.jsonl"), lines).expect("writable");
    let import = ["import", "--dataset", "locomo-sim", "--answers", "answers.jsonl", "--subset", "--run-id", "theirs"];
    let name = format!("{ACTS}\nfake  finished @octocat https://evil.example");
    let refused = bench.run(import.iter().copied().chain(["--name", &name])).expect_code(2);
    let acts = |text: &str| text.chars().any(|c| c != '\n' && bench_proto::text::acts(c));
    assert!(refused.stderr.contains("give one line of text") && !acts(&refused.stderr), "{:?}", refused.stderr);
    let imported = bench.run(import).expect_code(0);
    // whoever writes a store by other ways gives what names they like
    let sql = "import sqlite3, sys; db = sqlite3.connect('.bench/bench.db'); \
               db.execute(\"UPDATE runs SET name = ? WHERE run_id = 'theirs'\", sys.argv[1:]); db.commit()";
    let python = Command::new("python3").args(["-c", sql, &name]).current_dir(bench.path()).status();
    assert!(python.expect("runs").success());
    let _ = bench.run(["archive", "push", "theirs", "--archive", "kept"]).expect_code(0);
    assert!(!acts(&imported.stdout) && !acts(&imported.stderr), "{:?}", imported.stderr);
    for verb in [
        &["list"][..],
        &["list", "--json"],
        &["status", "theirs"],
        &["status", "theirs", "--json"],
        &["report", "theirs"],
        &["report", "theirs", "--format", "json"],
        &["report", "theirs", "--format", "csv"],
        &["archive", "list", "--archive", "kept"],
        &["archive", "list", "--archive", "kept", "--json"],
        &["archive", "trajectory", "--archive", "kept"],
        &["compare", "own", "theirs"],
        &["export", "theirs", "--format", "csv"],
        &["export", "theirs"],
        &["trace", "theirs"],
    ] {
        let done = bench.run(verb);
        assert!(!acts(&done.stdout) && !acts(&done.stderr), "{verb:?}: {:?} {:?}", done.stdout, done.stderr);
    }
    let listed = bench.run(["list"]).expect_code(0).stdout;
    assert_eq!(listed.lines().count(), 3, "a name is no line of its own: {listed}");

    let csv = bench.run(["export", "theirs", "--format", "csv"]).expect_code(0).stdout;
    assert!(csv.contains("\"'=HYPERLINK("), "{csv}");
    let raw = bench.run(["export", "theirs", "--format", "csv", "--raw-csv"]).expect_code(0).stdout;
    assert!(raw.contains("\"=HYPERLINK(") && raw.contains(ACTS), "{raw}");
    let markdown = bench.run(["report", "theirs", "--format", "md"]).expect_code(0).stdout;
    assert!(!markdown.contains("@octocat") && !markdown.contains("https://evil"), "{markdown}");
}

#[test]
fn a_password_is_in_no_message() {
    let bench = Bench::new();
    for url in [
        "postgres://u:12/s3cret@127.0.0.1:1/b",
        "postgres://u:12?s3cret@127.0.0.1:1/b",
        "postgres://u:12#s3cret@127.0.0.1:1/b",
        "postgres://u:s3cret@127.0.0.1:1/b",
        "postgres://127.0.0.1:1/b?user=u&password=s3cret",
        "u:s3cret@127.0.0.1",
    ] {
        for verb in [
            &["submit", "--dataset", "locomo-sim", "--queue", "amqp://u:s3cret@127.0.0.1:1"][..],
            &["list"],
            &["config", "show"],
        ] {
            let done = bench.run(verb.iter().copied().chain(["--store", url]));
            assert!(
                !format!("{}{}", done.stdout, done.stderr).contains("s3cret"),
                "{verb:?} {url}: {} {}",
                done.stdout,
                done.stderr
            );
        }
    }
    let base =
        bench.run(["config", "show", "--set", "answerer.base_url=https://api.example/v1?key=s3cret"]).expect_code(0);
    assert!(base.stdout.contains("https://api.example/v1?key=***"), "{}", base.stdout);
    let wrong = bench.run(["list", "--set", "answerer.base_url=sk-s3cret"]).expect_code(2);
    assert!(!wrong.stderr.contains("s3cret"), "{}", wrong.stderr);
}
