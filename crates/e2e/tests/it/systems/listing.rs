//! What a memory system holds, by its own listing, in whole runs: a fake that drops a known part is told exactly, a kill in the
//! middle of a listing asks for no page twice that is stored, and canaries are nobody's facts.

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
use serde_json::{Value, json};

use super::PATIENCE;

/// Memories of which each has a question.
const ASKED: usize = 30;

fn memory(id: &str, text: String) -> Memory {
    Memory { id: id.to_owned(), text, ..Memory::default() }
}

/// One bank of so many memories, of which one is replaced and one withdrawn at the end. Every third question names its memory
/// by its only word, the others ask for nothing that anybody knows; no answer is right.
fn write_bank(bench: &Bench, memories: usize) {
    let stored = |n: usize| {
        StreamEntry::Memory(memory(
            &format!("M{n}"),
            format!("The lantern with the mark item{n:04} hangs in room {n} beside the window"),
        ))
    };
    let new = memory("M40b", "The lantern with the mark item0040 went to the museum of the harbour".to_owned());
    let changes = [
        StreamEntry::Update { replaces: "M40".to_owned(), memory: Some(new) },
        StreamEntry::Update { replaces: "M41".to_owned(), memory: None },
    ];
    let entries: Vec<StreamEntry> = (0..memories).map(stored).chain(changes).collect();
    let question = |n: usize| Question {
        question_id: format!("q{n:02}"),
        index: n as u32,
        category: "single-hop".to_owned(),
        text: if n.is_multiple_of(3) { format!("item{n:04}?") } else { "who knows?".to_owned() },
        ask_after: entries.len() as u32,
        ..Question::default()
    };
    let gold = |n: usize| GoldRecord {
        question_id: format!("q{n:02}"),
        gold: Gold::Text("purple elephants".to_owned()),
        evidence_turns: vec![format!("M{n}")],
        evidence_sessions: vec![format!("M{n}")],
        ..GoldRecord::default()
    };
    let (questions, gold) = ((0..ASKED).map(question).collect(), (0..ASKED).map(gold).collect());
    let content = BankContent { bank_id: "b".to_owned(), speakers: Vec::new(), entries };
    let head = json!({ "form": "bench-coord banks", "version": 1, "profile": Profile::implied() });
    let bank = Bank { content, questions, gold };
    let text = format!("{head}\n{}\n", serde_json::to_string(&bank).expect("serialises"));
    std::fs::write(bench.path().join("memories.jsonl"), text).expect("is written");
}

const LIST: &str = "list: {request: 'POST /banks/{bank}/list', body: {offset: '{offset}', limit: '{limit}'}, \
                    hits: [{list: items, text: text, id: id}]}";

fn write_adapter(bench: &Bench, url: &str, more: &str) {
    let text = format!(
        "
name: listing
url: {url}
limits: {{batch: 50}}
item: {{id: '{{id}}', key: '{{key}}', text: '{{text}}'}}
retain: {{request: 'POST /banks/{{bank}}/batch', body: {{items: '{{items}}'}}, stored: stored}}
recall: {{request: 'POST /banks/{{bank}}/search', body: {{query: '{{query}}', k: '{{k}}'}}, hits: [{{list: hits, text: text, id: id}}]}}
reset: {{request: 'DELETE /banks/{{bank}}'}}
health: {{request: GET /health}}
can: {{repeat: true}}
{more}
"
    );
    std::fs::write(bench.path().join("listing.yaml"), text).expect("is written");
}

fn submit<'a>(system: &'a str, run: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let of = ["submit", "--dataset", "./memories.jsonl", "--preset", "full", "--system", system, "--json"];
    of.into_iter()
        .chain(["--scorer", "locomo-f1", "--latency-probe", "off", "--run-id", run])
        .chain(more.iter().copied())
        .collect()
}

fn report(bench: &Bench, args: Vec<&str>) -> Value {
    let done = bench.run(args);
    assert!([0, 5].contains(&done.code), "{}", done.stderr);
    let report = done.json();
    assert_eq!(report["outcomes"]["coverage"], 1.0, "{}", report["errors"]);
    report
}

/// The causes of all questions, by what is known of what was dropped.
fn check_causes(bench: &Bench, report: &Value, run: &str, is_lost: impl Fn(usize) -> bool) {
    let lines = bench.questions(run);
    assert_eq!(lines.len(), ASKED);
    let mut counts = [0_u64; 3];
    for line in &lines {
        let n: usize = line["question_id"].as_str().and_then(|id| id[1..].parse().ok()).expect("has its number");
        let (at, kind, stored, retrieved) = match (is_lost(n), n.is_multiple_of(3)) {
            (true, _) => (0, "not_stored", false, false),
            (false, false) => (1, "not_retrieved", true, false),
            (false, true) => (2, "answered_wrongly", true, true),
        };
        counts[at] += 1;
        let cause = json!({ "kind": kind, "stored": stored, "retrieved": retrieved });
        assert_eq!(line["cause"], cause, "{}: {}", line["question_id"], line["retrieved"]);
    }
    assert!(counts.iter().all(|n| *n > 0), "{counts:?}");
    let causes = &report["causes"];
    assert_eq!(causes["wrong"], ASKED as u64);
    for (n, key) in counts.iter().zip(["not_stored", "not_retrieved", "answered_wrongly"]) {
        assert_eq!(causes[key], json!({ "n": n, "share": *n as f64 / ASKED as f64 }), "{key}");
    }
    assert_eq!(causes["unknown"]["n"], 0);
}

#[test]
fn a_system_that_drops_a_known_part_is_told_exactly() {
    let fake = Fake::start("whole");
    fake.with(|world| world.loses_every = 5);
    let bench = Bench::new();
    write_bank(&bench, 60);
    write_adapter(&bench, fake.url(), LIST);
    let dropped = report(&bench, submit("./listing.yaml", "dropped", &["--no-canaries"]));
    // every fifth of 61 was lost; what it cannot replace or remove is all there still
    let expected = json!({
        "banks": 1, "items": 49,
        "evidence": { "stored": 24, "missing": 6, "unknown": 0, "share": 0.8 },
        "unsaid": { "n": 0, "of": 49 },
        "updates": { "of": 1, "wrong": 1, "old_kept": 1, "new_missing": 0 },
        "not_withdrawn": { "n": 1, "of": 1 },
    });
    assert_eq!(dropped["stored"], expected);
    check_causes(&bench, &dropped, "dropped", |n| n % 5 == 4);
    let page = bench.run(["report", "dropped", "--format", "md"]).expect_code(0).stdout;
    for words in ["What is stored", "24 of 30", "Why answers are wrong", "stored, not retrieved", "20.0"] {
        assert!(page.contains(words), "{words}: {page}");
    }

    // the same system without a listing: what is not known is not said, and the result is the same
    write_adapter(&bench, fake.url(), "");
    fake.with(|world| world.banks.clear());
    let silent = report(&bench, submit("./listing.yaml", "silent", &["--no-canaries"]));
    assert_eq!(silent.get("stored"), None);
    assert_eq!(silent["causes"]["answered_wrongly"]["n"].as_u64().map(|n| n + 22), silent["causes"]["wrong"].as_u64());
    assert_eq!((&silent["causes"]["not_stored"]["n"], &silent["causes"]["not_retrieved"]["n"]), (&json!(0), &json!(0)));
    assert_eq!(silent["run"]["fingerprint"], dropped["run"]["fingerprint"], "what is listed changes no score");
}

#[test]
fn canaries_are_no_facts_that_are_stored_and_inventions_are() {
    let fake = Fake::start("whole");
    let bench = Bench::new();
    write_bank(&bench, 60);
    write_adapter(&bench, fake.url(), LIST);
    let report = report(&bench, submit("./listing.yaml", "canaries", &[]));
    assert_eq!(report["canaries"]["planted"], true);
    let stored = fake.with(|world| world.banks.values().map(Vec::len).sum::<usize>());
    assert!(stored > 61, "canaries were stored beside the dataset: {stored}");
    assert_eq!((&report["stored"]["items"], &report["stored"]["unsaid"]["n"]), (&json!(61), &json!(0)));
    assert_eq!(report["stored"]["evidence"]["stored"], ASKED as u64);
}

#[test]
fn a_kill_in_the_middle_of_a_listing_asks_for_no_stored_page_again() {
    const MEMORIES: usize = 1_100;
    let fake = Fake::start("whole");
    fake.with(|world| world.loses_every = 5);
    let bench = Bench::new();
    write_bank(&bench, MEMORIES);
    write_adapter(&bench, fake.url(), LIST);
    let child = bench.start(submit("./listing.yaml", "victim", &["--no-canaries"]));
    let offsets = || {
        fake.with(|world| {
            let asked = world.requests.iter().zip(&world.bodies).filter(|(line, _)| line.ends_with("/list"));
            asked.filter_map(|(_, body)| body["offset"].as_u64()).collect::<Vec<_>>()
        })
    };
    wait_until("a bank is asked", PATIENCE, || {
        fake.with(|world| {
            let is_asked = world.requests.iter().any(|line| line.ends_with("/search"));
            if is_asked {
                world.slow = Duration::from_millis(400);
            }
            is_asked
        })
    });
    wait_until("some pages are listed", PATIENCE, || offsets().len() >= 3);
    signal(&child, "KILL");
    let _ = wait(child);
    fake.with(|world| world.slow = Duration::ZERO);
    let before = offsets();
    let resumed = report(&bench, vec!["resume", "victim", "--json"]);
    let after = &offsets()[before.len()..];
    assert!(after.first().is_some_and(|first| *first > 0), "it goes on behind the stored pages: {before:?} {after:?}");
    assert_eq!(resumed["stored"]["items"], 881, "1,101 were sent, every fifth was lost");
    check_causes(&bench, &resumed, "victim", |n| n % 5 == 4);
}

#[test]
fn a_class_of_python_lists_what_it_holds() {
    let bench = Bench::new();
    write_bank(&bench, 60);
    let code = "class Mine:\n    processes = 1\n\n    def __init__(self):\n        self.banks = {}\n\n    def retain(self, bank, items):\n        \
                kept = [i for i in items if not (i.id[1:].isdigit() and int(i.id[1:]) % 5 == 4)]\n        \
                self.banks.setdefault(bank, []).extend(kept)\n\n    def recall(self, bank, query, k):\n        \
                word = query.strip('?')\n        return [i for i in self.banks.get(bank, []) if word in i.text.split()][:k]\n\n    \
                def list(self, bank):\n        for item in self.banks.get(bank, []):\n            yield item\n";
    std::fs::write(bench.path().join("mine.py"), code).expect("is written");
    let report = report(&bench, submit("mine.py:Mine", "python", &["--no-canaries"]));
    assert_eq!(report["stored"]["items"], 49, "{}", report["stored"]);
    check_causes(&bench, &report, "python", |n| n % 5 == 4);

    // whichever of its processes has the bank
    std::fs::write(bench.path().join("mine.py"), code.replace("processes = 1", "processes = 3")).expect("is written");
    let several = self::report(&bench, submit("mine.py:Mine", "several", &["--no-canaries"]));
    assert_eq!(several["stored"], report["stored"]);
    check_causes(&bench, &several, "several", |n| n % 5 == 4);
}
