//! A user's own adapter files.

use bench_testkit::{
    bench::{Bench, wait},
    fakes::Fake,
    process::wait_until,
};
use serde_json::Value;

use super::{PATIENCE, program, retained, submit};

#[test]
fn a_file_with_a_mistake_is_refused_with_its_place() {
    let bench = Bench::new();
    std::fs::write(bench.path().join("mine.yaml"), "name: mine\nurl: http://127.0.0.1:9\nretian: {}\n")
        .expect("is written");
    let done =
        bench.run(["submit", "--dataset", "locomo-sim", "--preset", "quick", "--system", "./mine.yaml"]).expect_code(2);
    assert!(done.stderr.contains("line 3") && done.stderr.contains("retian"), "{}", done.stderr);
    // what would be taken for something else, by a run and by the check of a system
    let recall = |limit: &str| {
        format!("recall: {{request: POST /search, body: {{limit: {limit}}}, hits: [{{list: hits, text: text}}]}}\n")
    };
    for (name, recall, said) in
        [("bm25", recall("'{k}'"), "a built-in system"), ("mine", recall("{k}"), "{k} without quotes is an object")]
    {
        let text = format!("name: {name}\nurl: http://127.0.0.1:9\nretain: {{request: POST /add}}\n{recall}");
        std::fs::write(bench.path().join("mine.yaml"), text).expect("is written");
        for verb in
            [&["systems", "check", "./mine.yaml"][..], &["submit", "--dataset", "basic", "--system", "./mine.yaml"]]
        {
            let done = bench.run(verb).expect_code(2);
            assert!(done.stderr.contains(said), "{}", done.stderr);
        }
    }
}

#[test]
fn a_system_that_is_not_there_is_said_before_anything_is_stored() {
    let bench = Bench::new().with_env("MEM0_URL", "http://127.0.0.1:9");
    let done = bench.run(["submit", "--dataset", "locomo-sim", "--preset", "quick", "--system", "mem0"]).expect_code(4);
    assert!(done.stderr.contains("mem0 does not answer"), "{}", done.stderr);
}

#[test]
fn the_twelve_lines_of_the_docs_measure_a_system() {
    let page = include_str!("../../../../../docs/SYSTEMS.md");
    let file = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("the page has a file");
    assert!(file.lines().count() <= 12, "twelve lines: {file}");
    let start = format!("start: {{command: [python3, '{}', '{{port}}']}}", program("memory_server.py"));
    let bench = Bench::new();
    let text = file.replace("url: http://127.0.0.1:8080", &start);
    assert_ne!(text, file, "its server is started here");
    std::fs::write(bench.path().join("mine.yaml"), text).expect("is written");
    let checked = bench.run(["systems", "check", "./mine.yaml"]);
    assert_eq!(checked.code, 0, "{}\n{}", checked.stdout, checked.stderr);
    let passes = |check: &str| checked.stdout.lines().any(|line| line.contains(check) && line.contains(" pass "));
    assert!(
        ["counts", "repeat", "ids come back"].into_iter().all(passes),
        "what it claims is true: {}",
        checked.stdout
    );
    let done = bench.run(submit("./mine.yaml", "mine")).expect_code(0);
    let report = done.json();
    assert_eq!(report["outcomes"]["coverage"], 1.0, "{report}");
    let ready = report["run"]["checks"].as_array().and_then(|all| all.iter().find(|one| one["rule"] == "banks_ready"));
    assert_eq!(ready.expect("is checked")["state"], "passed", "they were counted");
    assert_eq!((&report["canaries"]["lost"]["n"], &report["canaries"]["lost"]["of"]), (&0.into(), &60.into()));
    assert!(report["retrieval"]["turn"]["10"]["recall"].as_f64().is_some_and(|recall| recall > 0.0), "{report}");
    // what the server does with models is its own, and nobody has told
    assert_eq!(report["usage"]["unknown"], serde_json::json!(["retain", "recall"]));
    let shown = |flags: &[&str]| bench.run([&["report", "mine"], flags].concat()).expect_code(0).stdout;
    assert!(shown(&[]).contains("and the system's own, unknown"), "{}", shown(&[]));
    for flags in [&["--full"][..], &["--format", "md"]] {
        let text = shown(flags).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("does with models in retain and recall is unknown"), "{text}");
        assert!(text.contains("at least $0"), "{text}");
    }
    let listed = bench.run(["list", "--json"]).expect_code(0).json();
    assert_eq!(listed[0]["usd_incomplete"], true, "{listed}");
}

#[test]
fn what_a_sample_wants_and_a_system_does_not_have_is_refused_or_said() {
    let fake = Fake::start("whole");
    let bench = Bench::new();
    let write = |filter: &str| {
        let text = format!(
            "name: mine
url: {}
retain: {{request: 'POST /banks/{{bank}}/items', body: {{id: '{{id}}', text: '{{content}}', tags: '{{tags?}}', time: '{{time?}}'}}}}
recall:
  request: POST /banks/{{bank}}/search
  body: {{query: '{{query}}', k: '{{k}}', filter: {{{filter}}}}}
  hits: [{{list: hits, text: text, id: id}}]
reset: {{request: 'DELETE /banks/{{bank}}'}}
health: {{request: GET /health}}
",
            fake.url()
        );
        std::fs::write(bench.path().join("mine.yaml"), text).expect("is written");
    };
    let submit = |dataset: &str, run: &str, more: &[&str]| {
        let all =
            ["submit", "--dataset", dataset, "--preset", "full", "--system", "./mine.yaml", "--run-id", run, "--json"];
        bench.run(all.iter().chain(&["--latency-probe", "off"]).chain(more).copied().collect::<Vec<_>>())
    };
    let notes = |report: &Value| report["dataset"]["sample"]["notes"].to_string();

    write("");
    let refused = submit("basic", "none", &[]).expect_code(2);
    assert!(
        refused.stderr.contains("mine has no filter for it (tags") && refused.stderr.contains("--allow-unfiltered")
    );
    assert!(fake.with(|world| world.banks.is_empty()), "nothing was stored before");
    let unfiltered = submit("basic", "unfiltered", &["--allow-unfiltered"]).expect_code(0).json();
    assert!(notes(&unfiltered).contains("asked without a part of the filter (tags"), "{}", notes(&unfiltered));

    write("tags: '{tags?}', from: '{from?}', until: '{until?}'");
    let filtered = submit("basic", "filtered", &[]).expect_code(0).json();
    assert!(!notes(&filtered).contains("filter"), "{}", notes(&filtered));
    assert_eq!(filtered["outcomes"]["coverage"], 1.0);
    let compared = bench.run(["compare", "unfiltered", "filtered", "--json"]).json();
    assert_eq!(compared["comparable"], false, "{compared}");
    assert!(compared["reasons"].to_string().contains("filters were not kept to alike"), "{}", compared["reasons"]);
}

/// A process whose memories end with it, and that says that a retain may be repeated: what it held is given to it again.
#[test]
fn p5_memories_that_end_with_their_process_are_stored_again_after_a_kill() {
    let bench = Bench::new();
    let slow = include_str!("../../../../../docs/examples/memory.py").replace(
        "        banks[bank] += r[\"items\"]",
        "        __import__('time').sleep(0.01)\n        banks[bank] += r[\"items\"]",
    );
    assert!(slow.contains("sleep"), "the example stores as it did");
    std::fs::write(bench.path().join("memory.py"), slow).expect("is written");
    let adapter = format!(
        "name: mine\ncommand: [python3, '{}']\ncan: {{repeat: true, survives_restart: false}}\n",
        bench.path().join("memory.py").display()
    );
    std::fs::write(bench.path().join("mine.yaml"), adapter).expect("is written");
    let run = |id| [submit("./mine.yaml", id), vec!["--latency-probe", "off"]].concat();
    let whole = bench.run(run("whole")).expect_code(0).json();
    let mut child = bench.start(run("killed"));
    wait_until("some sessions are stored", PATIENCE, || retained(&bench, "killed") >= 10);
    child.kill().expect("is killed");
    drop(wait(child));
    let killed = bench.run(["resume", "killed", "--json", "--display", "none"]).expect_code(0).json();
    assert_eq!(
        (&killed["outcomes"]["coverage"], &killed["run"]["verdict"]),
        (&whole["outcomes"]["coverage"], &whole["run"]["verdict"])
    );
    assert_eq!(killed["result_digest"], whole["result_digest"]);
}
