//! A spying system, to which everything is sent that a file of it can name: banks and questions of all datasets. It learns
//! nothing of the gold, and finds no answer by an id. A table of answers by ids made a published 589 of 589.

use std::collections::BTreeSet;

use bench_proto::dataset::{Bank, GoldRecord, StreamEntry, Turn};
use bench_systems::{MemorySystem, RecallQuery, StepContext};
use bench_testkit::fakes::Fake;
use serde_json::Value;

use super::{at_hand, of_text};

/// Questions of a bank, entries of it, and banks of a dataset that are sent.
const QUESTIONS: usize = 40;
const ENTRIES: usize = 60;
const BANKS: usize = 3;
/// What is shorter is found in every text: it is looked for as a whole value.
const SHORT: usize = 8;

/// All that a file can send.
const SPY: &str = "
name: spy
can: {order: true}
retain:
  request: POST /banks/{bank}/items
  body: &item {id: '{id}', key: '{key}', text: '{content}', session: '{session_id}', time: '{time?}', tags: '{tags?}', user: '{user?}', scopes: '{scopes?}', fields: '{fields?}'}
update: {request: 'PUT /banks/{bank}/items/{replaces_key}', body: *item}
forget: {request: 'DELETE /banks/{bank}/items/{replaces_key}'}
recall:
  request: POST /banks/{bank}/search
  body: {query: '{query}', k: '{k}', question: '{question_id}', time: '{time?}', asked: '{time_text?}', filter: {tags: '{tags?}', user: '{user?}', scopes: '{scopes?}', from: '{from?}', until: '{until?}'}}
  hits: [{list: hits, text: text, id: id}]
verify: {request: 'GET /banks/{bank}', count: items}
reset: {request: 'DELETE /banks/{bank}'}
health: {request: GET /health}
";

/// Datasets whose ids of questions, sessions and turns are those that everybody else sends: LoCoMo's, and what is made in its form.
const AS_PUBLISHED: [&str; 2] = ["locomo", "locomo-sim"];

/// Every text in a value; of what is no text, its JSON.
fn texts(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => drop(found.insert(text.clone())),
        Value::Object(fields) => fields.values().for_each(|field| texts(field, found)),
        Value::Array(items) => {
            found.insert(value.to_string());
            items.iter().for_each(|item| texts(item, found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What is said in a bank, and asked of it: what anybody may see.
fn said(bank: &Bank) -> String {
    let mut said = bank.content.speakers.clone();
    for entry in &bank.content.entries {
        match entry {
            StreamEntry::Session(session) => {
                let times = session.turns.iter().flat_map(|turn| [&turn.time_text, &turn.time]);
                said.extend(times.chain([&session.time_text, &session.time]).flatten().cloned());
                said.extend(session.turns.iter().map(Turn::line));
            }
            StreamEntry::Memory(memory) | StreamEntry::Update { memory: Some(memory), .. } => {
                said.extend([Some(memory.text.clone()), memory.time.clone()].into_iter().flatten());
                said.extend(memory.user.iter().chain(&memory.scopes).chain(memory.fields.values()).cloned());
            }
            StreamEntry::Update { memory: None, .. } => {}
        }
    }
    for question in &bank.questions {
        said.push(question.text.clone());
        said.extend(question.choices.iter().chain(&question.filter.tags).cloned());
    }
    said.join("\n").to_lowercase()
}

/// What must not be seen of a question: its own id where another is shown, what is hidden, everything expected, and how it is
/// graded; less what is said anyway, and the neutral ids of the evidence.
fn secrets(bank: &Bank, as_published: bool) -> BTreeSet<String> {
    let said = said(bank);
    let mut all = BTreeSet::new();
    for (question, gold) in bank.questions.iter().zip(&bank.gold) {
        let GoldRecord { gold, facets, hidden, rubric, style, .. } = gold;
        if !as_published {
            all.insert(question.question_id.clone());
        }
        texts(&serde_json::to_value((hidden, &gold, facets, rubric, style)).expect("JSON"), &mut all);
    }
    for gold in &bank.gold {
        for id in gold.evidence_turns.iter().chain(&gold.evidence_sessions) {
            all.remove(id);
        }
    }
    let ids: BTreeSet<&str> = bank.content.entries.iter().map(StreamEntry::id).collect();
    all.retain(|secret| secret.len() > 2 && !ids.contains(secret.as_str()) && !said.contains(&secret.to_lowercase()));
    all
}

/// Sends a bank and its questions.
async fn send(system: &dyn MemorySystem, bank: &Bank, number: usize) {
    let place = at_hand::place(bank, number);
    let entries = &bank.content.entries[..bank.content.entries.len().min(ENTRIES)];
    for batch in entries.chunks(system.capabilities().max_batch as usize) {
        // what the fake has does not matter, nor whether it has what an update replaces
        let _ = system.retain(&place, batch, StepContext::default()).await;
    }
    for question in bank.questions.iter().take(QUESTIONS) {
        let _ = system.recall(&place, &RecallQuery::from_question(question, 10, bank.content.entries.len())).await;
    }
}

/// Everything that was sent: requests and the texts of their bodies.
fn sent(fake: &Fake) -> BTreeSet<String> {
    let (mut sent, bodies) = fake.with(|world| (world.requests.drain(..).collect(), std::mem::take(&mut world.bodies)));
    bodies.iter().for_each(|body| texts(body, &mut sent));
    sent
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spying_system_finds_nothing_hidden() {
    let (mut datasets, mut secrets_in_all, mut sent_in_all) = (BTreeSet::new(), 0, 0);
    let mut told = Vec::new();
    for dataset in at_hand::all() {
        let manifest = dataset.manifest();
        let fake = Fake::start("whole");
        let system = of_text(SPY, Some(fake.url()));
        for number in 0..dataset.bank_count().min(BANKS) {
            let bank = dataset.bank(number).expect("a bank");
            send(&*system, &bank, number).await;
            let (sent, secrets) = (sent(&fake), secrets(&bank, AS_PUBLISHED.contains(&manifest.dataset())));
            let kinds = ["/items", "/search"].map(|kind| sent.iter().filter(|text| text.contains(kind)).count());
            assert!(kinds[1] > 0 && (kinds[0] > 0 || bank.content.entries.is_empty()), "{}: {kinds:?}", manifest.name);
            for secret in &secrets {
                let tells =
                    |text: &&String| *text == secret || (secret.len() >= SHORT && text.contains(secret.as_str()));
                let found = sent.iter().find(tells);
                told.extend(found.map(|text| format!("{}: '{secret}' in '{text}'", manifest.name)));
            }
            secrets_in_all += secrets.len();
            sent_in_all += sent.len();
        }
        datasets.insert(manifest.name.clone());
    }
    assert!(told.is_empty(), "{} are told:\n{}", told.len(), told[..told.len().min(20)].join("\n"));
    let counted = format!("{} datasets, {secrets_in_all} secrets, {sent_in_all} texts", datasets.len());
    assert!(datasets.len() >= 30 && secrets_in_all >= 1000 && sent_in_all >= 5000, "{counted}");
}

/// The test above finds what it looks for: an id that tells. (Ids of questions are hashed on their way to a system.)
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spying_system_finds_what_is_planted() {
    let open = || at_hand::all().find(|dataset| dataset.manifest().dataset() == "longmemeval").expect("is at hand");
    let bank = open().bank(0).expect("a bank");
    let secrets = secrets(&bank, false);
    let originals = bank.gold[0].hidden["session_ids"].as_object().expect("by their neutral ids");
    let hidden = originals.values().next().and_then(Value::as_str).expect("a published id").to_owned();
    assert!(secrets.contains(&hidden) && secrets.contains(&bank.questions[0].question_id), "{secrets:?}");
    let mut planted = bank.clone();
    if let StreamEntry::Session(session) = &mut planted.content.entries[0] {
        session.id = hidden.clone();
    }
    let fake = Fake::start("whole");
    send(&*of_text(SPY, Some(fake.url())), &planted, 0).await;
    assert!(sent(&fake).contains(&hidden));
}
