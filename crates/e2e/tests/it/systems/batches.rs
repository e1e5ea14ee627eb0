//! Banks of single memories in whole runs: they go in batches, and a kill in the middle of one loses nothing and stores nothing twice.
//! Settings that a run chooses of its system.

use std::time::Duration;

use bench_proto::{
    dataset::{Bank, BankContent, Gold, GoldRecord, Memory, Question, StreamEntry},
    profile::Profile,
};
use bench_testkit::{
    bench::{Bench, signal, wait},
    fakes::Fake,
    process::wait_until,
};
use serde_json::json;

use super::{PATIENCE, retained};

const MEMORIES: usize = 400;

/// One bank of many memories, as a user's file has it.
fn write_bank(bench: &Bench) {
    let memory = |n: usize| {
        StreamEntry::Memory(Memory { id: format!("M{n}"), text: format!("lantern number {n}"), ..Memory::default() })
    };
    let question = Question {
        question_id: "q".to_owned(),
        category: "single-hop".to_owned(),
        text: "which lantern?".to_owned(),
        ask_after: MEMORIES as u32,
        ..Question::default()
    };
    let gold =
        GoldRecord { question_id: "q".to_owned(), gold: Gold::Text("number 7".to_owned()), ..GoldRecord::default() };
    let content =
        BankContent { bank_id: "b".to_owned(), speakers: Vec::new(), entries: (0..MEMORIES).map(memory).collect() };
    let head = json!({ "form": "bench-coord banks", "version": 1, "profile": Profile::implied() });
    let bank = Bank { content, questions: vec![question], gold: vec![gold] };
    let text = format!("{head}\n{}\n", serde_json::to_string(&bank).expect("serialises"));
    std::fs::write(bench.path().join("memories.jsonl"), text).expect("is written");
}

fn write_adapter(bench: &Bench, url: &str, more: &str) {
    let text = format!(
        "
name: batching
url: {url}
limits: {{batch: 50}}
item: {{id: '{{id}}', key: '{{key}}', text: '{{text}}'}}
retain: {{request: 'POST /banks/{{bank}}/batch', body: {{items: '{{items}}'}}, stored: stored}}
recall: {{request: 'POST /banks/{{bank}}/search', body: {{query: '{{query}}', k: '{{k}}'}}, hits: [{{list: hits, text: text, id: id}}]}}
verify: {{request: 'GET /banks/{{bank}}', count: items}}
reset: {{request: 'DELETE /banks/{{bank}}'}}
health: {{request: GET /health}}
{more}
"
    );
    std::fs::write(bench.path().join("batching.yaml"), text).expect("is written");
}

fn submit(run: &str) -> Vec<&str> {
    let of = ["submit", "--dataset", "./memories.jsonl", "--preset", "full", "--system", "./batching.yaml", "--json"];
    of.into_iter()
        .chain(["--scorer", "locomo-f1", "--latency-probe", "off", "--no-canaries", "--run-id", run])
        .collect()
}

#[test]
fn p5_a_kill_in_the_middle_of_a_batch_loses_nothing_and_stores_nothing_twice() {
    for (repeats, more) in [(true, "can: {repeat: true}"), (false, "")] {
        let fake = Fake::start("whole");
        fake.with(|world| world.slow = Duration::from_millis(150));
        let bench = Bench::new();
        write_bank(&bench);
        write_adapter(&bench, fake.url(), more);
        let child = bench.start(submit("victim"));
        // whoever looks before there is a home makes one that is not the run's own
        let sent = || fake.with(|world| world.requests.iter().any(|line| line.ends_with("/batch")));
        wait_until("a batch is sent", PATIENCE, sent);
        wait_until("some batches are stored", PATIENCE, || retained(&bench, "victim") >= 100);
        signal(&child, "KILL");
        let _ = wait(child);
        let before = retained(&bench, "victim");
        assert!(before.is_multiple_of(50) && before < MEMORIES as u64, "a checkpoint for each of a batch: {before}");
        fake.with(|world| world.slow = Duration::ZERO);
        let report = bench.run(["resume", "victim", "--json"]);
        assert!([0, 5].contains(&report.code), "{}", report.stderr);
        assert_eq!(report.json()["outcomes"]["coverage"], 1.0);
        assert_eq!(retained(&bench, "victim"), MEMORIES as u64);
        let (banks, batches) = fake.with(|world| {
            let ids = |items: &Vec<_>| {
                items.iter().map(|item: &bench_testkit::fakes::Stored| item.text.clone()).collect::<Vec<_>>()
            };
            let banks: Vec<Vec<String>> = world.banks.values().map(ids).collect();
            (banks, world.requests.iter().filter(|line| line.ends_with("/batch")).count())
        });
        let mut last = banks.last().cloned().expect("the last generation");
        assert_eq!(
            (banks.len(), last.len()),
            (if repeats { 1 } else { 2 }, MEMORIES),
            "P5: a new name where it is in doubt"
        );
        last.sort_unstable();
        last.dedup();
        assert_eq!(last.len(), MEMORIES, "each once");
        // two batches may have been under way: one being sent, one being stored
        assert!(!repeats || batches <= MEMORIES / 50 + 2, "{batches}");
    }
}

#[test]
fn a_setting_is_sent_is_a_part_of_the_fingerprint_and_is_refused_with_those_that_exist() {
    let fake = Fake::start("whole");
    let bench = Bench::new();
    write_bank(&bench);
    write_adapter(&bench, fake.url(), "");
    let file = bench.path().join("batching.yaml");
    let text = std::fs::read_to_string(&file)
        .expect("reads")
        .replace("k: '{k}'", "k: '{k}', mode: '{setting.mode}', depth: '{setting.depth?}'");
    let settings = "settings:\n  mode: {about: how it searches, type: text, default: auto, values: [auto, deep]}\n  \
                    depth: {about: how far, type: whole, least: 1, most: 9}\n";
    std::fs::write(&file, format!("{text}{settings}")).expect("is written");
    let run = |name: &str, sets: &[&str]| {
        let sets = sets.iter().flat_map(|set| ["--set", set]);
        bench.run(submit(name).into_iter().chain(sets).collect::<Vec<_>>())
    };
    for (set, problem) in [
        ("batching.modes=deep", "batching has no setting 'modes', it has depth, mode"),
        ("batching.mode=fast", "setting batching.mode must be auto, deep, not \"fast\""),
        ("batching.depth=10", "setting batching.depth must be a whole number from 1 to 9, not 10"),
    ] {
        let refused = run("refused", &[set]).expect_code(2);
        assert!(refused.stderr.contains(problem), "{}", refused.stderr);
    }
    assert_eq!(fake.with(|world| world.requests.len()), 0, "before the first call");
    let fingerprint = |name: &str, sets: &[&str]| {
        let done = run(name, sets);
        assert!([0, 5].contains(&done.code), "{}", done.stderr);
        let report = done.json();
        let sent = fake.with(|world| world.bodies.iter().rev().find(|body| !body["query"].is_null()).cloned());
        (report["run"]["fingerprint"].to_string(), report["spec"]["system_settings"].clone(), sent.expect("was asked"))
    };
    let (plain, _, sent) = fingerprint("plain", &[]);
    assert_eq!((&sent["mode"], sent.get("depth")), (&json!("auto"), None));
    let (named, _, _) = fingerprint("named", &["batching.mode=auto"]);
    let (deep, spec, sent) = fingerprint("deep", &["batching.mode=deep", "batching.depth=3"]);
    assert_eq!((&sent["mode"], &sent["depth"]), (&json!("deep"), &json!(3)));
    assert_eq!((&spec["batching.mode"], &spec["batching.depth"]), (&json!("deep"), &json!(3)), "{spec}");
    assert!(plain == named && plain != deep && plain != "null", "{plain} {named} {deep}");
}
