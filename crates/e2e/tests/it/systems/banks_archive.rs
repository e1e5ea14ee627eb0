//! Filled banks as a file: exported from a run, imported elsewhere, asked without being filled again.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use bench_testkit::{
    bench::{Bench, signal, submit_sim, wait},
    cluster::{Cluster, wait_until_ready},
    fakes::Fake,
    ports,
    process::{Process, wait_until},
};
use serde_json::{Value, json};

use super::{PATIENCE, assert_ended, digest, instances, program, submit, write_whole};
use crate::printed::{
    self,
    pages::{BanksExported, BanksImported, ImportedBanks},
};

/// An adapter for the testkit's memory server, which keeps its memories in a file of its folder. `more` is what else is said of its
/// start.
fn write_adapter(bench: &Bench, name: &str, more: &str) -> String {
    let server = program("memory_server.py");
    let text = format!(
        "
name: {name}
start: {{command: [python3, '{server}', '{{port}}'], env: {{MEMORY_FILE: '{{dir}}/memories.json'}}{more}}}
can: {{order: true}}
retain: {{request: POST /add, body: {{text: '{{content}}', user: '{{bank}}', meta: {{turn: '{{id}}'}}}}}}
recall:
  request: POST /search
  body: {{query: '{{query}}', user: '{{bank}}', limit: '{{k}}'}}
  hits: [{{list: results, text: memory, id: meta.turn, score: score}}]
verify: {{request: POST /count, body: {{user: '{{bank}}'}}, count: memories}}
health: {{request: GET /health, version: version}}
"
    );
    fs::write(bench.path().join(format!("{name}.yaml")), text).expect("the adapter can be written");
    format!("./{name}.yaml")
}

fn export(bench: &Bench, run: &str, more: &[&str]) -> PathBuf {
    let done = bench.run([&["banks", "export", run, "--json"], more].concat()).expect_code(0).json();
    printed::held::<BanksExported>(&done);
    bench.path().join(done["file"].as_str().expect("a file"))
}

fn import(bench: &Bench, archive: &Path, more: &[&str]) -> Value {
    let file = archive.to_str().expect("UTF-8");
    let done = bench.run([&["banks", "import", file, "--json"], more].concat()).expect_code(0).json();
    printed::held::<BanksImported>(&done);
    done
}

/// The server on a folder, as somebody starts it by hand.
fn start_server(bench: &Bench, folder: &Path, name: &str) -> (Process, String) {
    let [port] = ports::reserve().expect("a free port");
    let mut command = Command::new("python3");
    command.arg(program("memory_server.py")).arg(port.to_string()).env("MEMORY_FILE", folder.join("memories.json"));
    let server = Process::start(command, bench.path(), name);
    wait_until("the server answers", PATIENCE, || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    (server, format!("system.url=http://127.0.0.1:{port}"))
}

#[test]
fn p33_banks_of_an_archive_are_asked_as_if_the_run_had_filled_them() {
    for (number, more) in ["", ", per: bank"].into_iter().enumerate() {
        let first = Bench::new();
        let mine = write_adapter(&first, "mine", more);
        let filled = first.run(submit(&mine, "filled")).expect_code(0);
        let archive = export(&first, "filled", &["--to", "handed-on.tar.gz", "--licence", "CC-BY-4.0"]);

        let other = Bench::new();
        let mine = write_adapter(&other, "mine", more);
        let imported = import(&other, &archive, &["--name", "theirs"]);
        assert_eq!((&imported["banks"], &imported["run"]), (&json!(2), &json!("filled")));
        assert_eq!((&imported["licence"], &imported["dataset"]), (&json!("CC-BY-4.0"), &json!("locomo-sim")));
        let list = other.run(["banks", "list", "--imported", "--json"]).expect_code(0).json();
        printed::held::<ImportedBanks>(&list);
        assert_eq!((&list[0]["name"], &list[0]["turns"]), (&json!("theirs"), &imported["turns"]));

        // one that is killed goes on with what it was given
        let asks = [submit(&mine, "asks"), vec!["--banks-from", "theirs", "--concurrency", "1"]].concat();
        let child = other.start(&asks);
        wait_until("a system is started", PATIENCE, || !instances(&other.path().join(".bench")).is_empty());
        signal(&child, "KILL");
        let _ = wait(child);
        let done = match other.run(["status", "asks", "--json"]).code {
            0 => other.run(["resume", "asks", "--json", "--display", "none"]).expect_code(0),
            _ => other.run(&asks).expect_code(0),
        };
        assert_eq!(digest(&done), digest(&filled), "{number}");
        let report = other.report("asks");
        assert_eq!((&report["outcomes"]["coverage"], &report["run"]["verdict"]), (&json!(1.0), &json!("VALID")));
        assert_eq!(report["run"]["fingerprint"], filled.json()["run"]["fingerprint"], "it measures the same");
        let notes = report["dataset"].to_string();
        assert!(notes.contains("2 of 2 banks from the archive theirs"), "{notes}");
        let shown = other.run(["banks", "show", "asks", "--json"]).expect_code(0).json();
        let before: Vec<&Value> = shown.as_array().expect("banks").iter().map(|bank| &bank["filled_before"]).collect();
        assert_eq!(before, [&json!(true), &json!(true)], "nothing was stored");
        let refused = other.run(["banks", "export", "asks"]).expect_code(2).stderr;
        assert!(refused.contains("they are those of the archive theirs"), "{refused}");
        assert_ended(&other.path().join(".bench"));
        let removed = other.run(["banks", "remove", "--imported", "theirs"]).expect_code(0).stdout;
        assert_eq!(removed, "theirs removed\n");
        assert!(!other.path().join(".bench/banks/theirs").exists());
    }
}

/// What of a run's banks is handed on to nobody; the archive of those that may be.
fn check_exports(bench: &Bench) -> PathBuf {
    let data = bench.path().join(".bench/systems/filled/mine/data");
    // what a system has kept of its environment does not go with it
    fs::write(data.join("cache"), "before sk-planted-4711-planted behind").expect("is written");
    let refused = bench.run(["banks", "export", "filled"]).expect_code(2).stderr;
    assert!(refused.contains("data/cache holds a key") && !refused.contains("sk-planted"), "{refused}");
    fs::remove_file(data.join("cache")).expect("is removed");
    std::os::unix::fs::symlink("/etc/hostname", data.join("link")).expect("is made");
    let refused = bench.run(["banks", "export", "filled"]).expect_code(2).stderr;
    assert!(refused.contains("is no plain file"), "{refused}");
    fs::remove_file(data.join("link")).expect("is removed");
    let archive = export(bench, "filled", &[]);
    assert!(archive.ends_with("banks-filled.tar.gz"));
    let again = bench.run(["banks", "export", "filled"]).expect_code(2).stderr;
    assert!(again.contains("is there already"), "{again}");
    let computed =
        ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--run-id", "computed", "--display", "none"];
    let _ = bench.run(computed).expect_code(0);
    let none = bench.run(["banks", "export", "computed"]).expect_code(2).stderr;
    assert!(none.contains("is computed from the stored texts"), "{none}");
    archive
}

/// Another system on the same memories is another measurement, and says so.
fn check_other_system(bench: &Bench, mine: &str) {
    let other = write_adapter(bench, "other", "");
    let report = bench.run([submit(&other, "other"), vec!["--banks-from", "filled"]].concat()).expect_code(0).json();
    let notes = report["dataset"].to_string();
    assert!(notes.contains("of the archive filled (manifest") && notes.contains("were filled by mine"), "{notes}");
    let own = bench.run(submit(&other, "own")).expect_code(0).json();
    assert_eq!(report["result_digest"], own["result_digest"]);
    assert_ne!(report["run"]["fingerprint"], own["run"]["fingerprint"]);
    let compared = bench.run(["compare", "own", "other", "--json"]).expect_code(5).json();
    assert!(compared["reasons"].to_string().contains("asks banks of the archive filled"), "{}", compared["reasons"]);
    let asks = [submit(mine, "same"), vec!["--banks-from", "filled"]].concat();
    let _ = bench.run(asks).expect_code(0);
    let _ = bench.run(["compare", "same", "other"]).expect_code(0);
}

#[test]
fn what_cannot_be_asked_of_an_archive_is_refused_before_anything_starts() {
    let bench = Bench::new().with_env("MINE_KEY", "sk-planted-4711-planted");
    let mine = write_adapter(&bench, "mine", "");
    let _ = bench.run(submit(&mine, "filled")).expect_code(0);
    let archive = check_exports(&bench);
    let _ = import(&bench, &archive, &[]);
    let by_bank = write_adapter(&bench, "each", ", per: bank");
    let class =
        "class Mine:\n    def retain(self, bank, items): pass\n    def recall(self, bank, query, k): return []\n";
    fs::write(bench.path().join("mine.py"), class).expect("is written");
    for (system, more, words) in [
        (mine.as_str(), ["--banks-from", "nobody"].as_slice(), "there are filled"),
        (&mine, &["--banks-from", "../filled"], "is no name of imported banks"),
        (&mine, &["--banks-from", "filled", "--bank", "x"], "leave --bank out"),
        (
            &mine,
            &["--banks-from", "filled", "--no-canaries"],
            "no bank of this run is among the 2 banks of the archive",
        ),
        (&mine, &["--banks-from", "filled", "--reuse-banks"], "cannot be used with"),
        (&by_bank, &["--banks-from", "filled"], "has one for each (`per: bank`)"),
        ("mine.py:Mine", &["--banks-from", "filled"], "is a program that keeps what it stores where it likes"),
    ] {
        let refused = bench.run([submit(system, "refused"), more.to_vec()].concat()).expect_code(2).stderr;
        assert!(refused.contains(words), "{system} {more:?}: {refused}");
    }
    let computed = bench.run([submit("bm25", "bm25"), vec!["--banks-from", "filled"]].concat()).expect_code(0).stderr;
    assert!(computed.contains("it has nothing to take from an archive"), "{computed}");
    // what came with an archive is somebody else's to hand on, and neither is the runner's own home handed on
    let bare = |run: &str, banks: &str, more: &[&str]| {
        let flags = ["--max-banks", banks, "--sample", "2", "--system", &mine, "--run-id", run, "--no-canaries"];
        bench.run(submit_sim(&[&flags[..], more].concat())).expect_code(0)
    };
    let _ = bare("bare", "2", &[]);
    let _ = import(&bench, &export(&bench, "bare", &[]), &[]);
    let some = bare("some", "3", &["--banks-from", "bare"]).stderr;
    assert!(some.contains("2 of 3 banks from the archive bare"), "{some}");
    let refused = bench.run(["banks", "export", "some"]).expect_code(2).stderr;
    assert!(refused.contains("they lie in one folder with those of the archive bare"), "{refused}");
    let refused = bench.run(["banks", "export", "bare", "--to", "all.tar.gz", "--data", "."]).expect_code(2).stderr;
    assert!(refused.contains("with the store and all results of this runner"), "{refused}");
    // what has changed since it was imported is not asked
    let kept = bench.path().join(".bench/banks/bare/files/data/memories.json");
    let text = fs::read_to_string(&kept).expect("is there");
    fs::write(&kept, text.replacen('e', "E", 1)).expect("is written");
    let changed = bench.run([submit(&mine, "changed"), vec!["--banks-from", "bare"]].concat()).expect_code(2).stderr;
    assert!(changed.contains("'bare' is not what was imported"), "{changed}");
    // a copy goes with its run
    let copy = bench.path().join(".bench/systems/some/mine/data");
    assert!(copy.exists());
    let _ = bench.run(["banks", "remove", "some"]).expect_code(0);
    assert!(!copy.exists());
    check_other_system(&bench, &mine);
}

#[test]
fn what_cannot_be_searched_for_its_key_is_not_handed_on() {
    let bench = Bench::new().with_env("MINE_TOKEN", "planted-4711-planted");
    let mine = write_adapter(&bench, "mine", "");
    let file = bench.path().join("mine.yaml");
    let text = fs::read_to_string(&file).expect("is there");
    let keyed = text.replace("env: {", "env: {MINE_TOKEN: '${env:MINE_TOKEN}', ");
    assert_ne!(keyed, text);
    fs::write(&file, keyed).expect("is written");
    let _ = bench.run(submit(&mine, "filled")).expect_code(0);
    let cache = bench.path().join(".bench/systems/filled/mine/data/cache");
    fs::write(&cache, "before planted-4711-planted behind").expect("is written");
    let [mut without, mut empty] = [(); 2].map(|()| bench.command(["banks", "export", "filled"]));
    for command in [without.env_remove("MINE_TOKEN"), empty.env("MINE_TOKEN", " ")] {
        let refused = wait(command.spawn().expect("starts")).expect_code(2).stderr;
        assert!(refused.contains("the adapter names MINE_TOKEN, and this process cannot read it: set it"), "{refused}");
    }
    let refused = bench.run(["banks", "export", "filled"]).expect_code(2).stderr;
    assert!(refused.contains("data/cache holds a key") && !refused.contains("planted-4711"), "{refused}");
    fs::remove_file(cache).expect("is removed");
    // the runner knows the folder of what it starts
    let other = bench.path().join("other");
    fs::create_dir(&other).expect("is made");
    let named = bench.run(["banks", "export", "filled", "--data", "other"]).expect_code(2).stderr;
    assert!(named.contains("mine is started by the runner") && named.contains("leave --data out"), "{named}");
    let _ = export(&bench, "filled", &[]);
}

#[test]
fn a_server_that_somebody_starts_is_copied_when_it_stands_still() {
    let bench = Bench::new();
    let mine = write_adapter(&bench, "mine", "");
    let data = bench.path().join("kept");
    fs::create_dir(&data).expect("is made");
    let (mut server, url) = start_server(&bench, &data, "first");
    let filled = bench.run([submit(&mine, "filled"), vec!["--set", &url]].concat()).expect_code(0);
    let needs = bench.run(["banks", "export", "filled"]).expect_code(2).stderr;
    assert!(needs.contains("stop it, and name the folder"), "{needs}");
    let runs = bench.run(["banks", "export", "filled", "--data", "kept"]).expect_code(2).stderr;
    assert!(runs.contains("mine answers: stop it first"), "{runs}");
    server.kill();
    let archive = export(&bench, "filled", &["--data", "kept"]);
    let _ = import(&bench, &archive, &["--data", "copy", "--name", "copy"]);
    let (mut server, url) = start_server(&bench, &bench.path().join("copy"), "second");
    let asks = bench.run([submit(&mine, "asks"), vec!["--set", &url, "--banks-from", "copy"]].concat()).expect_code(0);
    assert_eq!(digest(&asks), digest(&filled));
    let again = bench.run([submit(&mine, "again"), vec!["--set", &url, "--reuse-banks"]].concat()).expect_code(0);
    assert!(again.stderr.contains("2 of 2 banks as run asks asks them, from the archive copy"), "{}", again.stderr);
    assert_eq!(digest(&again), digest(&filled));
    // the same file is started by the runner too
    let started = bench.run([submit(&mine, "started"), vec!["--banks-from", "copy"]].concat()).expect_code(0);
    assert_eq!(digest(&started), digest(&filled));
    // and what is started for each run finds the archive that holds the same by itself
    let found = bench.run([submit(&mine, "found"), vec!["--reuse-banks"]].concat()).expect_code(0);
    assert!(found.stderr.contains("2 of 2 banks from the archive copy"), "{}", found.stderr);
    assert_eq!(digest(&found), digest(&filled));
    server.kill();
}

#[test]
fn p33_in_a_cluster_repeats_share_what_the_first_fills_and_an_archive_is_asked_of_a_server() {
    let cluster = Cluster::new().with_env("BENCH_ALLOW_SYSTEMS", "any");
    let bench = cluster.bench();
    let mine = write_adapter(bench, "mine", "");
    let data = bench.path().join("kept");
    fs::create_dir(&data).expect("is made");
    let (mut server, url) = start_server(bench, &data, "first");
    // whoever hands the banks on is killed: the next command takes its place, also while that one still counts as alive
    let mut first = cluster.client(&[submit(&mine, "g"), vec!["--set", &url, "--repeats", "2"]].concat());
    let plans = "SELECT (SELECT sum(planned) FROM runs) || ' ' || (SELECT count(*) FROM sessions WHERE ended_us IS NULL \
                 AND domain LIKE 'cluster/plan/%')";
    wait_until("one plan is written, and the other one is not", PATIENCE, || cluster.sql(plans).trim() == "1 1");
    first.kill();
    assert!(first.stderr().contains("all repeats ask the same filled banks of mine"), "{}", first.stderr());
    let mut people = [cluster.coordinator("coordinator"), cluster.worker("worker", &["--concurrency", "4"])];
    people.iter_mut().for_each(wait_until_ready);
    let _ = cluster.sql(
        "UPDATE sessions SET renewed_us = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - 11000000 \
         WHERE ended_us IS NULL AND domain LIKE 'cluster/plan/%'",
    );
    let _ = cluster.run(&["resume", "g", "--display", "none"]).expect_code(0);
    assert_eq!(cluster.sql("SELECT count(filled_by) FROM banks").trim(), "2", "those of the second repeat");
    let filled = cluster.report("g-r1")["result_digest"].clone();
    assert!(filled.is_string() && filled == cluster.report("g-r2")["result_digest"], "{filled}");
    server.kill();

    let _ = cluster.run(&["banks", "export", "g-r1", "--data", "kept", "--to", "mine.tar.gz"]).expect_code(0);
    let _ = cluster.run(&["banks", "import", "mine.tar.gz", "--name", "theirs", "--data", "copy"]).expect_code(0);
    let started = cluster.run(&[submit(&mine, "started"), vec!["--banks-from", "theirs"]].concat()).expect_code(2);
    assert!(started.stderr.contains("which do not have the files of this machine"), "{}", started.stderr);
    let (mut server, url) = start_server(bench, &bench.path().join("copy"), "second");
    let asks = cluster.run(&[submit(&mine, "asks"), vec!["--set", &url, "--banks-from", "theirs"]].concat());
    assert_eq!(digest(&asks.expect_code(0)), filled);
    let again = cluster.run(&[submit(&mine, "again"), vec!["--set", &url, "--reuse-banks"]].concat()).expect_code(0);
    assert!(again.stderr.contains("2 of 2 banks as run asks asks them, from the archive theirs"), "{}", again.stderr);
    assert_eq!(digest(&again), filled);
    server.kill();
}

#[test]
fn a_server_hands_its_banks_on_by_a_call_of_its_own_and_another_one_takes_them_in() {
    let (fake, other) = (Fake::start("whole"), Fake::start("whole"));
    let bench = Bench::new();
    let counts = "verify: {request: 'GET /banks/{bank}', count: items}\n";
    write_whole(&bench, fake.url(), counts);
    let filled = bench.run(submit("./mine.yaml", "filled")).expect_code(0);
    let refused = bench.run(["banks", "export", "filled"]).expect_code(2).stderr;
    assert!(refused.contains("with `export` in its adapter"), "{refused}");
    // what a file says of it changes no measurement
    let calls = "export: {request: 'GET /banks/{bank}/export'}\nimport: {request: 'PUT /banks/{bank}/import'}\n";
    // a run that has filled its banks is asked by a file that says no more than that
    write_whole(&bench, fake.url(), &format!("{counts}{calls}bank: 'other-{{name}}'\n"));
    let other_file = bench.run(["banks", "export", "filled", "--adapter", "./mine.yaml"]).expect_code(2).stderr;
    assert!(other_file.contains("has filled the banks"), "{other_file}");
    write_whole(&bench, fake.url(), &format!("{counts}{calls}"));
    let _ = export(&bench, "filled", &["--adapter", "./mine.yaml", "--to", "of-today.tar.gz"]);
    let filled_too = bench.run([submit("./mine.yaml", "again"), vec!["--reuse-banks"]].concat()).expect_code(0);
    assert!(filled_too.stderr.contains("2 of 2 banks were filled by run filled"), "{}", filled_too.stderr);
    let own = bench.run(submit("./mine.yaml", "own")).expect_code(0);
    let archive = export(&bench, "own", &[]);

    let url = format!("system.url={}", other.url());
    let copied = bench.run(["banks", "import", "banks-own.tar.gz", "--data", "copy"]).expect_code(2).stderr;
    assert!(copied.contains("--into gives them to one"), "{copied}");
    let into = ["--name", "theirs", "--into", "./mine.yaml", "--set", url.as_str()];
    let _ = import(&bench, &archive, &into);
    let again = bench.run([&["banks", "import", "banks-own.tar.gz"], &into[..]].concat()).expect_code(0).stderr;
    assert!(again.contains("2 banks were there already"), "{again}");
    let given = |request: &&String| request.ends_with("/import");
    assert_eq!(other.with(|world| world.requests.iter().filter(given).count()), 2, "each once");
    let asks = [submit("./mine.yaml", "asks"), vec!["--set", &url, "--banks-from", "theirs"]].concat();
    let asks = bench.run(asks).expect_code(0);
    assert_eq!((digest(&asks), digest(&own)), (digest(&filled), digest(&filled)));
    let stored = |request: &String| request.starts_with("POST") && request.ends_with("/items");
    assert!(!other.with(|world| world.requests.iter().any(stored)), "it has what was handed on");
    assert_eq!(asks.json()["run"]["fingerprint"], own.json()["run"]["fingerprint"]);
    other.with(|world| world.banks.values_mut().for_each(|items| items.truncate(1)));
    let part = bench.run([&["banks", "import", "banks-own.tar.gz"], &into[..]].concat()).expect_code(2).stderr;
    assert!(part.contains("the memory system counts 1 in it") && part.contains("there first"), "{part}");
}

#[test]
fn an_archive_is_fetched_and_held_to_its_sum() {
    let bench = Bench::new();
    let mine = write_adapter(&bench, "mine", "");
    let _ = bench.run(submit(&mine, "filled")).expect_code(0);
    let archive = export(&bench, "filled", &[]);
    let sum = bench_proto::ids::Sha256Hash::of_bytes(&fs::read(&archive).expect("is there")).hex();
    let [port] = ports::reserve().expect("a free port");
    let mut command = Command::new("python3");
    command.args(["-m", "http.server", "--bind", "127.0.0.1", &port.to_string()]).current_dir(bench.path());
    let mut server = Process::start(command, bench.path(), "files");
    wait_until("the server answers", PATIENCE, || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    let url = format!("http://127.0.0.1:{port}/banks-filled.tar.gz");
    let wrong = bench.run(["banks", "fetch", &url, "--sha256", &"0".repeat(64)]).expect_code(2).stderr;
    assert!(wrong.contains(&sum) && !wrong.contains("dataset"), "{wrong}");
    let fetched = bench.run(["banks", "fetch", &url, "--sha256", &sum, "--json"]).expect_code(0).json();
    printed::held::<BanksImported>(&fetched);
    assert_eq!(fetched["name"], "filled");
    let again = bench.run(["banks", "fetch", &url]).expect_code(0).stdout;
    assert!(again.contains("filled was here already"), "{again}");
    for (url, words) in [
        ("http://example.invalid/banks.tar.gz", "has no TLS"),
        ("ftp://127.0.0.1/banks.tar.gz", "are downloaded by https"),
        ("banks.tar.gz", "is no address"),
    ] {
        let refused = bench.run(["banks", "fetch", url]).expect_code(2).stderr;
        assert!(refused.contains(words), "{url}: {refused}");
    }
    server.kill();
}
