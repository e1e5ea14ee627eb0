//! Questions between the parts of a session, asked by the real engine of a system that notes everything it is sent.
//!
//! The banks are a user's file, so that ids, gold and hidden fields are as telling as they can be.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use bench_proto::{
    dataset::{Bank, BankContent, Gold, GoldRecord, Memory, Question, Session, StreamEntry, Turn},
    ids::Sha256Hash,
    profile::Profile,
};
use bench_testkit::{bench::Bench, fakes::Fake, provider::Provider};
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};

/// Words that stand in nothing but what is expected and what stays in the harness.
const TELLING: [&str; 4] = ["_abs", "goldword", "hiddenword", "facetword"];

fn adapter() -> Value {
    json!({
        "name": "spy",
        "can": { "order": true },
        "retain": {
            "request": "POST /banks/{bank}/items",
            "body": { "id": "{id}", "key": "{key}", "text": "{content}", "session": "{session_id}", "fields": "{fields?}" },
        },
        "update": { "request": "PUT /banks/{bank}/items/{replaces_key}", "body": { "id": "{id}", "key": "{key}", "text": "{content}" } },
        "forget": { "request": "DELETE /banks/{bank}/items/{replaces_key}" },
        "recall": {
            "request": "POST /banks/{bank}/search",
            "body": { "query": "{query}", "k": "{k}", "question": "{question_id}", "time": "{time?}", "asked": "{time_text?}" },
            "hits": [{ "list": "hits", "text": "text", "id": "id" }],
        },
        "answer": {
            "request": "POST /banks/{bank}/search",
            "body": { "query": "{query}", "k": "{k}", "question": "{question_id}" },
            "text": "hits.0.text|none",
        },
        "verify": { "request": "GET /banks/{bank}", "count": "items" },
        "reset": { "request": "DELETE /banks/{bank}" },
        "health": { "request": "GET /health" },
    })
}

/// A bank whose sessions come in parts of any length, with questions between any two of them.
fn bank(number: u32, draw: &mut StdRng) -> Bank {
    let mut entries = Vec::new();
    for session in 1..=draw.random_range(1..4_u32) {
        for part in 0..draw.random_range(1..6_u32) {
            let turn = |at: u32| Turn {
                id: format!("S{session}:{part}.{at}"),
                speaker: ["user", "assistant"][at as usize % 2].to_owned(),
                text: format!("lanterns of bank {number}, session {session}, part {part}, line {at}"),
                ..Turn::default()
            };
            let turns = (0..draw.random_range(1..4_u32)).map(turn).collect();
            entries.push(StreamEntry::Session(Session {
                id: format!("S{session}"),
                part,
                turns,
                ..Session::default()
            }));
        }
    }
    let memory = |text: &str| Memory { id: format!("M{text}"), text: format!("lanterns {text}"), ..Memory::default() };
    entries.push(StreamEntry::Memory(memory("one")));
    entries.push(StreamEntry::Update { replaces: "Mone".to_owned(), memory: Some(memory("two")) });
    entries.push(StreamEntry::Update { replaces: "Mtwo".to_owned(), memory: None });
    let question = |index: u32| Question {
        question_id: format!("b{number}-{index}_abs"),
        shown_id: Some(format!("b{number}-q{index}")),
        index,
        category: "single-hop".to_owned(),
        text: format!("which lanterns, question {number}-{index}?"),
        ask_after: draw.random_range(1..=entries.len() as u32),
        ..Question::default()
    };
    let questions: Vec<Question> = (0..8).map(question).collect();
    let gold = |question: &Question| GoldRecord {
        question_id: question.question_id.clone(),
        gold: Gold::Text("goldword".to_owned()),
        facets: BTreeMap::from([("abstention".to_owned(), "facetword".to_owned())]),
        hidden: BTreeMap::from([("answer_session_ids".to_owned(), json!("hiddenword"))]),
        ..GoldRecord::default()
    };
    let gold = questions.iter().map(gold).collect();
    Bank { content: BankContent { bank_id: format!("b{number}"), speakers: Vec::new(), entries }, questions, gold }
}

/// What must have been sent when a question is asked, by the question's words.
type Expected = BTreeMap<String, BTreeSet<String>>;

/// Writes three banks as a user's file has them.
fn write_banks(path: &Path, draw: &mut StdRng) -> Expected {
    let head = json!({ "form": "bench-coord banks", "version": 1, "profile": Profile::implied() });
    let (mut lines, mut expected) = (vec![head.to_string()], Expected::new());
    for number in 0..3 {
        let bank = bank(number, draw);
        for question in &bank.questions {
            let texts = bank.content.entries[..question.ask_after as usize].iter().flat_map(|entry| match entry {
                StreamEntry::Session(session) => session.turns.iter().map(Turn::line).collect(),
                StreamEntry::Memory(memory) | StreamEntry::Update { memory: Some(memory), .. } => {
                    vec![memory.text.clone()]
                }
                StreamEntry::Update { memory: None, .. } => Vec::new(),
            });
            expected.insert(question.text.clone(), texts.collect());
        }
        lines.push(serde_json::to_string(&bank).expect("serialises"));
    }
    std::fs::write(path, lines.join("\n")).expect("is written");
    expected
}

/// Nothing at or behind a question's end was sent before the question was asked, everything before it was, and nothing that was
/// sent tells what is expected.
fn asks_at_its_points(bench: &Bench, who: &[&str], seed: u64) {
    let fake = Fake::start("whole");
    let expected = write_banks(&bench.path().join("parts.jsonl"), &mut StdRng::seed_from_u64(seed));
    let mut spy = adapter();
    spy["url"] = fake.url().into();
    std::fs::write(bench.path().join("spy.yaml"), spy.to_string()).expect("is written");
    let submit = [
        "submit",
        "--dataset",
        "./parts.jsonl",
        "--preset",
        "full",
        "--system",
        "./spy.yaml",
        "--scorer",
        "locomo-f1",
        "--json",
    ];
    let done = bench.run(submit.iter().chain(&["--latency-probe", "off", "--no-canaries"]).chain(who));
    // words of a model find nothing now and then, which makes a run INVALID: here it is asked what was sent
    let code = if who.contains(&"agentic") && done.code == 5 { 5 } else { 0 };
    let report = done.expect_code(code).json();
    assert_eq!(report["outcomes"]["coverage"], 1.0, "seed {seed}: {report}");

    let (requests, bodies) = fake.with(|world| (world.requests.clone(), world.bodies.clone()));
    let (mut sent, mut asked): (BTreeMap<&str, BTreeSet<String>>, BTreeSet<&str>) = (BTreeMap::new(), BTreeSet::new());
    for (request, body) in requests.iter().zip(&bodies) {
        let bank = request.split('/').nth(2).unwrap_or_default();
        if request.contains("/items") && !body.is_null() {
            sent.entry(bank).or_default().insert(body["text"].as_str().expect("an item has a text").to_owned());
        } else if let Some((question, visible)) = question_of(bank, body).and_then(|text| expected.get_key_value(&text))
        {
            assert_eq!(sent.get(bank), Some(visible), "seed {seed}: {question}");
            asked.insert(question);
        }
        let whole = format!("{request} {body}");
        assert!(TELLING.iter().all(|telling| !whole.contains(telling)), "{whole}");
    }
    assert_eq!(asked.len(), expected.len());
}

/// The words of the question for which a bank is searched, whatever is searched for: a system is told a hash of the question's id.
fn question_of(bank: &str, body: &Value) -> Option<String> {
    let told = body["question"].as_str()?;
    let hash = |id: String| Sha256Hash::of_bytes(format!("bench-question-v1\n{bank}\n{id}").as_bytes()).hex();
    let mut ids = (0..3).flat_map(|number| (0..8).map(move |index| (number, index)));
    let (number, index) = ids.find(|(number, index)| hash(format!("b{number}-q{index}"))[..16] == *told)?;
    Some(format!("which lanterns, question {number}-{index}?"))
}

#[test]
fn p6_nothing_at_or_behind_a_question_is_sent_before_it_is_answered() {
    for seed in 0..3 {
        asks_at_its_points(&Bench::new(), &["--answerer", "extractive"], seed);
    }
    // a system that answers by itself is asked twice, both times before it gets more
    asks_at_its_points(&Bench::new(), &["--answerer", "system"], 3);
}

#[test]
fn p6_all_searches_of_a_question_see_the_same() {
    let provider = Provider::start(&[]);
    let model = ["--answerer", "openai:gpt-4o-mini"];
    for (seed, more) in [(4, ["--scenario", "agentic"]), (5, ["--multi-query", "2"])] {
        asks_at_its_points(&provider.bench(), &[model, more].concat(), seed);
    }
}
