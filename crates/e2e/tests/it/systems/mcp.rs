//! Servers of the Model Context Protocol, by its own libraries: one of the tests over stdio and over HTTP, and the memory server of
//! the protocol's own collection.

use std::{fs, path::Path};

use bench_testkit::{
    bench::{Bench, submit_sim, wait},
    http::answering,
    node::{NODE, folder_of, programs_of},
    ports,
    process::{Process, mortal, wait_until},
    python,
};
use serde_json::{Value, json};

use super::{PATIENCE, logs, program};

/// The tools of the tests' server, as an adapter calls them.
const TOOLS: &str = "
bank: '{name}'
item: {id: '{id}', text: '{content}'}
limits: {batch: 32}
retain: {tool: retain, arguments: {user: '{bank}', items: '{items}'}, stored: stored}
recall: {tool: search, arguments: {user: '{bank}', query: '{query}', limit: '{k}'}, hits: [{list: result, text: text, id: id, score: score}]}
verify: {tool: count, arguments: {user: '{bank}'}, count: result}
list: {tool: everything, arguments: {user: '{bank}'}, hits: [{list: result, text: text, id: id}]}
answer: {tool: answer, arguments: {user: '{bank}', query: '{query}'}, text: ''}
reset: {tool: remove, arguments: {user: '{bank}'}}
";

/// Writes an adapter for the tests' server, with changes to its text; its path.
fn adapter(bench: &Bench, top: &str, changes: &[(&str, &str)]) -> String {
    let text = changes.iter().fold(format!("name: notes\n{top}{TOOLS}"), |text, (from, to)| {
        assert!(text.contains(from), "{from}: {text}");
        text.replace(from, to)
    });
    fs::write(bench.path().join("notes.yaml"), text).expect("is written");
    "./notes.yaml".to_owned()
}

fn python() -> String {
    python::python(python::MCP).display().to_string()
}

/// How the server is started over stdio, with variables, keeping its notes in a file or not.
fn over_stdio(env: &[(&str, &str)], keeps: bool) -> String {
    let file = keeps.then_some(("NOTES_FILE", "{dir}/notes.jsonl"));
    let env = file.into_iter().chain(env.iter().copied()).map(|(name, value)| format!("{name}: '{value}'"));
    let env: Vec<String> = env.collect();
    format!(
        "mcp: {{command: ['{}', '{}']}}\nenv: {{{}}}\ncan: {{repeat: {keeps}, survives_restart: {keeps}}}",
        python(),
        program("mcp_notes.py"),
        env.join(", ")
    )
}

fn submit<'a>(system: &'a str, run: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let flags = ["--max-banks", "2", "--sample", "4", "--latency-probe", "off", "--system", system, "--run-id", run];
    submit_sim(&[&flags, more].concat())
}

/// How many processes of the server wrote a run's log.
fn processes(bench: &Bench, run: &str) -> usize {
    logs(bench, run, "notes").concat().matches("notes begin").count()
}

/// What was found and answered: the digest of a run whose recalls all came back.
fn whole(report: &Value) -> Value {
    assert_eq!(report["outcomes"]["coverage"], 1.0, "{report}");
    assert_eq!(report["canaries"]["found"], report["canaries"]["asked"], "{report}");
    report["result_digest"].clone()
}

#[test]
fn a_server_over_stdio_is_measured_and_started_again_when_it_dies() {
    let bench = Bench::new().with_env("NOTES_SECRET", "not-for-it");
    let notes = adapter(&bench, &over_stdio(&[], true), &[]);
    let checked = bench.run(["systems", "check", &notes, "--json"]).expect_code(0).json();
    let passed = |check: &str| {
        let mut steps = checked["steps"].as_array().into_iter().flatten();
        steps.any(|step| step["check"] == check && step["outcome"] == "pass")
    };
    for check in ["health", "store", "counts", "lists", "ids come back", "order", "isolation", "reset"] {
        assert!(passed(check), "{check}: {checked}");
    }
    let report = bench.run(submit(&notes, "quiet", &[])).expect_code(0).json();
    let quiet = whole(&report);
    assert_eq!(report["system_stats"]["version"], "notes 1.0");
    assert_eq!(report["stored"]["evidence"]["missing"], 0, "{}", report["stored"]);
    let log = logs(&bench, "quiet", "notes").concat();
    assert!(log.contains("notes begin ['NOTES_FILE']"), "it sees what its file names, and nothing else: {log}");

    let mark = bench.path().join("died").display().to_string();
    let dies = over_stdio(&[("NOTES_DIES_AT", "retain:5"), ("NOTES_MARK", &mark)], true);
    let report = bench.run(submit(&adapter(&bench, &dies, &[]), "killed", &[])).expect_code(0).json();
    assert_eq!((whole(&report), processes(&bench, "killed")), (quiet, 2), "{report}");
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("a process of notes had ended and was started again 1 time"), "{warnings}");
}

#[test]
fn a_server_that_keeps_nothing_is_given_its_banks_again() {
    let bench = Bench::new();
    let digest = |run: &str, dies: Option<&str>| {
        let mark = bench.path().join(run).display().to_string();
        let env: Vec<_> = dies.iter().flat_map(|at| [("NOTES_DIES_AT", *at), ("NOTES_MARK", mark.as_str())]).collect();
        // whose its notes are is asked of the process that has been given them again too
        let places = "places: {call: {tool: everything, arguments: {user: '{bank}'}}, list: result, id: id, is: id}\nverify: {tool";
        let changes = [("id: id, score: score", "made_of: id, score: score"), ("verify: {tool", places)];
        let notes = adapter(&bench, &over_stdio(&env, false), &changes);
        let report = bench.run(submit(&notes, run, &[])).expect_code(0).json();
        assert_eq!(processes(&bench, run), 1 + usize::from(dies.is_some()), "{run}");
        whole(&report)
    };
    let quiet = digest("quiet", None);
    assert_eq!(digest("while-asked", Some("search:3")), quiet);
    assert_eq!(digest("while-filled", Some("retain:5")), quiet);
}

#[test]
fn a_server_over_http_comes_back_under_its_address() {
    let bench = Bench::new().with_env("NOTES_KEY", "opensesame1234");
    let [port] = ports::reserve::<1>().expect("a port");
    let (file, mark) = (bench.path().join("notes.jsonl"), bench.path().join("died"));
    let start = |dies: &str| {
        let mut command = mortal(Path::new(&python()));
        command.args([program("mcp_notes.py"), port.to_string()]).env("NOTES_FILE", &file);
        command.env("NOTES_DIES_AT", dies).env("NOTES_MARK", &mark);
        let server = Process::start(command, bench.path(), "notes");
        wait_until("the server listens", PATIENCE, || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        server
    };
    let top = format!(
        "mcp: {{url: 'http://127.0.0.1:{port}/mcp'}}\nauth: {{env: NOTES_KEY, prefix: 'Bearer '}}\ncan: {{repeat: true}}"
    );
    let notes = adapter(&bench, &top, &[]);
    let mut server = start("search:8");
    let quiet = bench.start(submit(&notes, "killed", &[]));
    wait_until("it has died", PATIENCE, || server.ended().is_some());
    server = start("never");
    let done = wait(quiet);
    let killed = whole(&done.json());
    let report = bench.run(submit(&notes, "quiet", &["--set", &format!("system.url=http://localhost:{port}/mcp")]));
    assert_eq!(whole(&report.expect_code(0).json()), killed);
    drop(server);
    let away = bench.run(submit(&notes, "away", &[])).expect_code(4).stderr;
    assert!(away.contains("cannot connect") && !away.contains("opensesame"), "{away}");
}

#[test]
fn the_protocols_library_logs_no_key_whatever_is_logged() {
    let (place, asked) = answering(|head| {
        let is_key = |line: &&str| line.to_ascii_lowercase().starts_with("authorization:");
        let said = format!("invalid key {}", head.lines().find(is_key).unwrap_or_default());
        let length = said.len();
        format!("HTTP/1.1 400 Bad Request\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{said}")
    });
    let [nobody] = ports::reserve::<1>().expect("a port");
    let tops = [
        format!("mcp: {{url: 'http://127.0.0.1:{nobody}/mcp?k=${{env:NOTES_KEY}}'}}"),
        format!("mcp: {{url: 'http://{place}/mcp'}}\nauth: {{env: NOTES_KEY, prefix: 'Bearer '}}"),
    ];
    for level in ["", "trace"] {
        let bench = Bench::new().with_env("NOTES_KEY", "opensesame1234").with_env("RUST_LOG", level);
        for (number, top) in tops.iter().enumerate() {
            let notes = adapter(&bench, top, &[]);
            let done = bench.run(submit(&notes, &format!("run-{number}"), &[]));
            let mut lines = done.stdout.lines().chain(done.stderr.lines());
            let line = lines.find(|line| line.contains("opensesame"));
            assert!(done.code != 0 && line.is_none(), "'{level}' {top}: {line:?}");
        }
        assert!(asked.recv_timeout(PATIENCE).is_ok(), "the server has repeated the key");
    }
}

#[test]
fn what_a_server_lacks_is_exit_2_with_the_names_that_there_are() {
    let bench = Bench::new();
    for (from, to, said) in [
        ("tool: search", "tool: find", "recall.tool: the server has no tool 'find', it has "),
        ("user: '{bank}', query", "query", "recall.arguments: 'user' is missing, the tool 'search' requires "),
        ("limit: '{k}'", "top_k: '{k}'", "the tool 'search' has no argument 'top_k', it has limit, query, user"),
        ("tool: search", "request: POST /search", "is asked by `tool: NAME`"),
    ] {
        let notes = adapter(&bench, &over_stdio(&[], true), &[(from, to)]);
        for args in [submit(&notes, "run", &[]), vec!["systems", "check", &notes], vec!["systems", "try", &notes]] {
            let refused = bench.run(args).expect_code(2).stderr;
            assert!(refused.contains(said), "{said}: {refused}");
        }
    }
    assert_eq!(bench.run(["list", "--json"]).expect_code(0).json(), json!([]), "nothing was planned");
}

#[test]
fn errors_of_tools_are_told_and_long_replies_are_not_read() {
    let bench = Bench::new().with_env("NOTES_KEY", "opensesame1234");
    let failure = |tool: &str, run: &str| {
        let top = over_stdio(&[("NOTES_KEY", "${env:NOTES_KEY}")], true);
        let call = "tool: search, arguments: {user: '{bank}', query: '{query}', limit: '{k}'}, hits: [{list: result, text: text, id: id, score: score}]";
        let other = format!(
            "tool: {tool}, arguments: {{user: '{{bank}}', query: '{{query}}'}}, hits: [{{list: '', text: ''}}]"
        );
        let notes = adapter(&bench, &top, &[(call, &other), ("batch: 32", "batch: 32, response_bytes: 100000")]);
        // each attempt at a question starts the server again, which takes seconds of Python
        let few = ["--max-banks", "1", "--sample", "1", "--latency-probe", "off", "--no-canaries"];
        let done = bench.run(submit_sim(&[&few[..], &["--system", &notes, "--run-id", run]].concat()));
        let kept = format!("{}{}{:?}", done.stdout, done.stderr, bench.questions(run));
        assert!(!kept.contains("opensesame"), "{kept}");
        let questions = bench.questions(run);
        questions.iter().map(|question| question["error"].to_string()).collect::<Vec<_>>().join("\n")
    };
    let broken = failure("broken", "broken");
    assert!(
        broken.contains("notes says: ") && broken.contains("is broken, key [key]") && broken.contains("its log ends: "),
        "{broken}"
    );
    let long = failure("long", "long");
    assert!(long.contains("limits.response_bytes"), "{long}");
    // lines of text are hits, and an answer is one text
    let top = over_stdio(&[], true);
    let texts =
        [("tool: search", "tool: lines"), ("{list: result, text: text, id: id, score: score}", "{list: '', text: ''}")];
    let notes = adapter(&bench, &top, &texts);
    let report = bench.run(submit(&notes, "lines", &["--answerer", "system"])).expect_code(0).json();
    assert_eq!(report["outcomes"]["coverage"], 1.0, "{report}");
    let hits = bench.questions("lines");
    assert_eq!(hits[0]["retrieved"][0]["placed_by"], "text", "{hits:?}");
}

#[test]
fn the_memory_server_of_the_protocols_own_collection_is_a_system_by_its_name() {
    let package = "@modelcontextprotocol/server-memory@2026.8.31";
    let path = format!("{}:{}:/usr/bin:/bin", programs_of(package).display(), folder_of(NODE).display());
    let bench = Bench::new().with_env("PATH", path);
    write(bench.path(), "friends.jsonl", FRIENDS);
    let run = [
        "submit",
        "--dataset",
        "./friends.jsonl",
        "--preset",
        "full",
        "--system",
        "mcp-memory",
        "--json",
        "--run-id",
        "friends",
    ];
    let report = bench.run(run).expect_code(5).json();
    assert_eq!(report["outcomes"]["coverage"], 1.0, "{report}");
    assert_eq!(report["system_stats"]["version"], "memory-server 0.6.3");
    assert_eq!(report["stored"]["evidence"]["missing"], 0, "{}", report["stored"]);
    let questions = bench.questions("friends");
    let first = |id: &str| {
        let question = questions.iter().find(|question| question["question_id"] == id).expect("is asked");
        question["retrieved"][0]["text"].as_str().unwrap_or_default().to_owned()
    };
    assert!(first("plays").contains("I play the cello."), "{questions:?}");
    assert!(first("lives").contains("Ben lives in Oslo."), "{questions:?}");
    assert_eq!(first("sentence"), "", "it finds what holds the whole query, letter by letter");
    assert!(include_str!("../../../../../docs/SYSTEMS.md").contains("`mcp-memory` | the real server 2026.8.31"));
}

const FRIENDS: &str = r#"{"dataset": {"name": "friends", "scorers": ["exact"]}}
{"session": {"date": "2026-03-04", "turns": [{"speaker": "Ann", "text": "I play the cello."}, {"speaker": "Ben", "text": "Since when?"}]}}
{"memory": {"text": "Ben lives in Oslo."}}
{"id": "plays", "question": "the cello", "reference_answer": "cello"}
{"id": "lives", "question": "lives in", "reference_answer": "Oslo"}
{"id": "sentence", "question": "Where does Ben live?", "reference_answer": "Oslo"}
"#;

fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).expect("is written");
}
