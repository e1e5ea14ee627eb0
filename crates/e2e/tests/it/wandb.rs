//! `export RUN --wandb PROJECT`, with the package that people log with: what it writes offline is read by its own reader, what it
//! sends is heard by a server that says what it keeps.

use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use bench_testkit::{
    bench::{Bench, Done, submit_sim},
    ports,
    process::{Process, mortal, wait_until},
    python::{self, Packages},
};
use serde_json::{Value, json};

const WANDB: Packages = Packages { name: "wandb", with_dependencies: &["wandb==0.31.0"], alone: &[] };
/// As long as a key is, and no word of anything else.
const KEY: &str = "5ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2";

fn bench() -> Bench {
    Bench::new().with_env("VIRTUAL_ENV", python::virtual_env(WANDB))
}

/// What the package's own reader says of a kept run.
fn inspected(folder: &Path, flags: &[&str]) -> String {
    let mut command = Command::new(python::python(WANDB).with_file_name("wandb"));
    let output = command.args(["leet", "inspect", "--json"]).args(flags).arg(folder).env("HOME", folder).output();
    let output = output.expect("the package has a reader");
    let (told, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {told}{error}", folder.display());
    told.into_owned()
}

/// Config, summary, tags and name of a kept run.
fn summary_of(folder: &Path) -> Value {
    serde_json::from_str(&inspected(folder, &["--summary"])).expect("JSON")
}

/// What the package has noted of the run itself: its group and its kind.
fn run_of(folder: &Path) -> Value {
    let records = inspected(folder, &[]);
    let records = records.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    records.filter(|record| record["type"] == "run").map(|mut record| record["run"].take()).next().expect("a run")
}

/// The table of questions in its folder.
fn table_of(folder: &Path) -> Value {
    let tables = fs::read_dir(folder.join("files/media/table")).expect("tables").flatten();
    let paths: Vec<PathBuf> = tables.map(|entry| entry.path()).collect();
    assert_eq!(paths.len(), 1, "{paths:?}");
    serde_json::from_str(&fs::read_to_string(&paths[0]).expect("readable")).expect("JSON")
}

fn folders(done: &Done) -> Vec<PathBuf> {
    done.stdout.lines().map(PathBuf::from).collect()
}

#[test]
fn a_result_is_kept_offline_with_its_settings_figures_and_questions_and_texts_only_where_they_are_asked_for() {
    let bench = bench().with_env("WANDB_MODE", "offline");
    let submit = ["--preset", "quick", "--run-id", "first", "--name", "a name", "--tag", "mine"];
    let _ = bench.run(submit_sim(&submit)).expect_code(0);
    // what lies where the command is typed is no module of the process
    fs::write(bench.path().join("wandb.py"), "raise SystemExit('a strange module')").expect("writable");
    let export = ["export", "first", "--wandb", "us/memory"];
    let done = bench.run(export).expect_code(0);
    let kept = folders(&done);
    assert_eq!(kept.len(), 1, "{}", done.stdout);
    assert!(kept[0].starts_with(bench.path().join("wandb")) && done.stderr.contains("`wandb sync "), "{}", done.stderr);

    let (report, told) = (bench.report("first"), summary_of(&kept[0]));
    let digest = report["result_digest"].as_str().expect("a digest");
    assert_eq!(told["run_id"], format!("first-{}", &digest[..12]));
    for (name, expected) in
        [("project", "memory"), ("entity", "us"), ("name", "a name"), ("state", "finished")].map(|(n, e)| (n, json!(e)))
    {
        assert_eq!(told[name], expected, "{name}: {told:#}");
    }
    assert_eq!(told["tags"], json!(["mine", "locomo-sim", "bm25"]));
    let (config, figures) = (&told["config"], &told["summary"]);
    for (name, expected) in [
        ("run", &report["run"]["id"]),
        ("fingerprint", &report["run"]["fingerprint"]),
        ("dataset", &report["dataset"]["name"]),
        ("system", &report["spec"]["system"]),
        ("top_k", &report["spec"]["top_k"]),
        ("preset", &json!("quick")),
    ] {
        assert_eq!(&config[name], expected, "{name}: {config:#}");
    }
    let (headline, score) = (&report["headline"], &report["scores"][0]);
    let category = &score["by_category"][0];
    let name = |of: &Value| of.as_str().expect("a name").to_owned();
    for (name, expected) in [
        ("score".to_owned(), &headline["value"]),
        ("score/low".to_owned(), &headline["ci95"]["low"]),
        ("score/high".to_owned(), &headline["ci95"]["high"]),
        ("coverage".to_owned(), &report["outcomes"]["coverage"]),
        ("latency_probe/p50_ms".to_owned(), &report["latency_probe"]["p50_ms"]),
        (format!("scores/{}/{}", name(&score["metric"]), name(&category["category"])), &category["value"]),
    ] {
        let (kept, expected) = (figures[&name].as_f64(), expected.as_f64());
        assert!(kept.is_some() && kept == expected, "{name}: {kept:?} instead of {expected:?}");
    }
    assert_eq!((&figures["verdict"], &figures["result_digest"]), (&json!("VALID"), &report["result_digest"]));

    let questions = bench.questions("first");
    let column = |table: &Value, name: &str| table["columns"].as_array()?.iter().position(|column| column == name);
    let bare = table_of(&kept[0]);
    let ids: Vec<&Value> = bare["data"].as_array().expect("rows").iter().map(|row| &row[0]).collect();
    assert_eq!(ids, questions.iter().map(|question| &question["question_id"]).collect::<Vec<_>>());
    let metric = column(&bare, &format!("score:{}", name(&score["metric"]))).expect("a column of scores");
    assert_eq!(bare["data"][0][metric].as_f64(), questions[0]["scores"][name(&score["metric"])].as_f64());
    let texts: Vec<String> = questions.iter().map(|question| name(&question["question"])).collect();
    assert!(!everything_in(&kept[0]).iter().any(|file| texts.iter().any(|text| file.contains(text))));

    let whole = folders(&bench.run(export.iter().chain(&["--texts", "by-licence"])).expect_code(0));
    let whole = table_of(&whole[0]);
    let place = column(&whole, "question").expect("a column of questions");
    assert_eq!(whole["data"][0][place], texts[0].as_str());
}

/// The texts of all files below a folder, as far as they are texts.
fn everything_in(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).expect("readable").flatten() {
        match entry.path() {
            path if path.is_dir() => all.extend(everything_in(&path)),
            path => all.push(String::from_utf8_lossy(&fs::read(path).expect("readable")).into_owned()),
        }
    }
    all
}

#[test]
fn each_run_of_a_group_is_logged_in_its_group() {
    let bench = bench().with_env("WANDB_MODE", "offline").with_env("WANDB_DIR", "kept");
    let repeats = ["--sample", "2", "--max-banks", "1", "--run-id", "g", "--repeats", "2", "--latency-probe", "off"];
    let _ = bench.run(submit_sim(&repeats)).expect_code(0);
    fs::create_dir(bench.path().join("kept")).expect("is made");
    let kept = folders(&bench.run(["export", "g", "--wandb", "memory"]).expect_code(0));
    assert_eq!(kept.len(), 2, "{kept:?}");
    for (folder, id) in kept.iter().zip(["g-r1", "g-r2"]) {
        let run = run_of(folder);
        assert_eq!((&run["run_group"], &run["job_type"]), (&json!("g"), &json!("repeat")), "{run:#}");
        assert!(run["run_id"].as_str().is_some_and(|found| found.starts_with(id)), "{run:#}");
        assert!(folder.starts_with(bench.path().join("kept/wandb")) && run["host"].is_null(), "{run:#}");
    }
}

/// A server, and what it has heard.
struct Server {
    place: String,
    heard: PathBuf,
    _process: Process,
}

impl Server {
    fn refusing(folder: &Path, what: &str) -> Self {
        let [port] = ports::reserve().expect("a port");
        let (place, heard) = (format!("127.0.0.1:{port}"), folder.join(format!("heard-{what}")));
        let program = folder.join("wandb_server.py");
        fs::write(&program, include_str!("wandb_server.py")).expect("writable");
        let mut command = mortal(&python::python(WANDB));
        command.arg(program).arg(port.to_string()).arg(&heard).arg(what);
        let process = Process::start(command, folder, what);
        wait_until("the server", Duration::from_secs(20), || TcpStream::connect(&place).is_ok());
        Self { place, heard, _process: process }
    }

    fn url(&self) -> String {
        format!("http://{}", self.place)
    }

    fn heard(&self) -> Vec<Value> {
        let lines = fs::read_to_string(&self.heard).unwrap_or_default();
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

#[test]
fn a_result_goes_to_the_server_of_its_person_alone_once_and_what_was_not_kept_is_said() {
    let logs = tempfile::tempdir().expect("a folder");
    let server = Server::refusing(logs.path(), "nothing");
    let bench = bench().with_env("WANDB_API_KEY", KEY).with_env("OPENAI_API_KEY", "sk-nobody-else-may-see-this");
    let _ = bench.run(submit_sim(&["--sample", "2", "--max-banks", "1", "--run-id", "first"])).expect_code(0);
    // a folder from elsewhere that would lead the key of whoever works there to another place
    let trap = TcpListener::bind("127.0.0.1:0").expect("a port");
    trap.set_nonblocking(true).expect("can");
    let settings = |folder: PathBuf, url: &str| {
        fs::create_dir_all(&folder).expect("is made");
        fs::write(folder.join("settings"), format!("[default]\nbase_url = {url}\n")).expect("writable");
    };
    settings(bench.path().join("wandb"), &format!("http://{}", trap.local_addr().expect("an address")));
    settings(bench.home().join(".config/wandb"), &server.url());

    let export = ["export", "first", "--wandb", "memory"];
    let done = bench.run(export).expect_code(0);
    let digest = bench.report("first")["result_digest"].as_str().expect("a digest").to_owned();
    let page = format!("{}/us/memory/runs/first-{}", server.url(), &digest[..12]);
    assert_eq!(done.stdout.trim(), page, "{}", done.stderr);
    let again = bench.run(export).expect_code(0);
    assert_eq!(again.stdout.trim(), page, "sent twice it is there once: {}", again.stderr);
    assert!(trap.accept().is_err(), "nobody came to the trap");
    let heard = server.heard();
    let sent: String = heard.iter().filter_map(|one| one["body"].as_str()).collect();
    assert!(sent.contains(&digest) && !sent.contains("sk-nobody") && !sent.contains(KEY), "{sent}");
    assert!(heard.iter().any(|one| one["authorization"].is_string()), "{heard:?}");
    let questions = bench.questions("first");
    assert!(!questions.iter().any(|question| sent.contains(question["question"].as_str().expect("a text"))), "{sent}");
    let left: Vec<_> = fs::read_dir(bench.path().join("wandb")).expect("a folder").flatten().collect();
    assert_eq!(left.len(), 1, "what was sent leaves nothing behind: {left:?}");

    // a part is refused after the run was made: the package says nothing of that
    let streams = Server::refusing(logs.path(), "streams");
    let with = |url: &str| bench.command(export).env("WANDB_BASE_URL", url).output().expect("runs");
    let cut = with(&streams.url());
    let said = String::from_utf8_lossy(&cut.stderr);
    assert!(cut.status.code() == Some(4) && said.contains("does not say that it has kept all"), "{said}");
    // nobody is let in
    let closed = Server::refusing(logs.path(), "everybody");
    let refused = with(&closed.url());
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && said.contains("set WANDB_API_KEY"), "{said}");
    for output in [cut, refused] {
        let said = [output.stdout, output.stderr].concat();
        assert!(!String::from_utf8_lossy(&said).contains(KEY));
    }
    for written in everything_in(bench.path()) {
        assert!(!written.contains(KEY), "the key is written: {}", written.chars().take(300).collect::<String>());
    }
}

#[test]
fn what_is_missing_is_said_with_what_to_do() {
    let bench = Bench::new();
    let _ = bench.run(submit_sim(&["--sample", "2", "--max-banks", "1", "--run-id", "first"])).expect_code(0);
    let export = ["export", "first", "--wandb", "memory"];
    let said = |env: &[(&str, &str)], code: i32| {
        let output = bench.command(export).envs(env.iter().copied()).output().expect("runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{env:?}: {said}");
        said
    };
    let nothing = said(&[("PATH", "/nowhere")], 2);
    assert!(nothing.contains("there is no Python"), "{nothing}");
    let bare = bench.path().join("bare");
    let made = Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(&bare).status();
    assert!(made.expect("Python is there").success());
    let missing = said(&[("VIRTUAL_ENV", &bare.display().to_string())], 2);
    assert!(missing.contains("bare/bin/python -m pip install wandb"), "{missing}");

    let with = python::virtual_env(WANDB);
    let nobody = said(&[("VIRTUAL_ENV", &with)], 2);
    assert!(nobody.contains("set WANDB_API_KEY") && nobody.contains("WANDB_MODE=offline"), "{nobody}");
    let off = said(&[("VIRTUAL_ENV", &with), ("WANDB_MODE", "disabled")], 2);
    assert!(off.contains("switched off (WANDB_MODE=disabled)"), "{off}");
    let [port] = ports::reserve().expect("a port");
    let nobody_there = format!("http://127.0.0.1:{port}");
    let away = [
        ("VIRTUAL_ENV", with.as_str()),
        ("WANDB_API_KEY", KEY),
        ("WANDB_BASE_URL", nobody_there.as_str()),
        ("WANDB_INIT_TIMEOUT", "3"),
    ];
    let away = said(&away, 4);
    assert!(away.contains("does not answer") && away.contains("WANDB_MODE=offline") && !away.contains(KEY), "{away}");
    let plain = said(&[("VIRTUAL_ENV", &with), ("WANDB_BASE_URL", "http://wandb.example.com")], 2);
    assert!(plain.contains("not encrypted"), "{plain}");
    for wrong in [
        &["export", "first", "--wandb", "a/b/c"][..],
        &["export", "first", "--wandb", ""],
        &["export", "first", "--wandb", "memory", "--format", "csv"],
        &["export", "first", "--texts", "always"],
    ] {
        let _ = bench.run(wrong).expect_code(2);
    }
}
