//! What every registered system must do. Tests run over the whole registry, so a new system is held to it unasked.

use std::{collections::HashSet, sync::Arc};

use bench_proto::{
    dataset::{BankContent, Memory, Session, StreamEntry, Turn},
    ids::Sha256Hash,
    step::RetrievedHit,
};

use crate::{
    BankRef, BuildContext, Capabilities, MemorySystem, Readiness, Recall, RecallQuery, StepContext, SystemSettings,
    documents,
    registry::{self, SYSTEMS},
};

fn session(number: usize, lines: &[&str]) -> StreamEntry {
    let turn = |(at, line): (usize, &&str)| Turn {
        id: format!("D{number}:{}", at + 1),
        speaker: ["Ann", "Bo"][at % 2].to_owned(),
        text: (*line).to_owned(),
        caption: (at == 1).then(|| "a red kite over the sea".to_owned()),
    };
    StreamEntry::Session(Session {
        id: format!("D{number}"),
        time_text: Some(format!("{number}:30 pm on {number} May, 2031")),
        time: Some(format!("2031-05-{number:02}T12:30:00")),
        turns: lines.iter().enumerate().map(turn).collect(),
    })
}

fn content(bank_id: &str, entries: Vec<StreamEntry>) -> BankContent {
    BankContent { bank_id: bank_id.to_owned(), speakers: vec!["Ann".to_owned(), "Bo".to_owned()], entries }
}

/// Five sessions with the same few words, so that every prefix of the stream has something to find.
fn kites() -> BankContent {
    let lines = ["I bought a kite at the market", "Nice kite, which colour?", "Red, the kite is red", "", "Bye"];
    content("kites", (1..=5).map(|number| session(number, &lines)).collect())
}

fn awkward() -> BankContent {
    let long = "kite ".repeat(60_000) + &"x".repeat(70_000);
    let lines = [
        "",
        "   ",
        "🪁🪁 ﷽ \u{202e}etik\u{0} a\u{301}",
        "我买了一只风筝 kite",
        "KITE's “kite” AND (kite OR -kite)^2 kite~ \"",
        &long,
    ];
    let mut entries = vec![session(1, &lines), session(2, &[])];
    let memory =
        |id: &str, text: &str| Memory { id: id.into(), text: text.into(), time: None, fields: Default::default() };
    entries.push(StreamEntry::Memory(memory("m1", "the kite is blue")));
    entries.push(StreamEntry::Update { replaces: "m1".into(), memory: Some(memory("m2", "the kite is green")) });
    entries.push(StreamEntry::Update { replaces: "m0".into(), memory: None });
    content("awkward", entries)
}

fn banks() -> Vec<BankContent> {
    vec![kites(), awkward(), content("empty", vec![]), content("no-turns", vec![session(1, &[])])]
}

fn bank(content: BankContent) -> BankRef {
    let json = serde_json::to_vec(&content).expect("serialises");
    BankRef {
        name: "bench-1-g1".to_owned(),
        handle: None,
        bank_id: content.bank_id.clone(),
        content_hash: Sha256Hash::of(&json),
        content: Some(Arc::new(content)),
    }
}

/// A system that has retained a bank, as a worker would do it.
struct Subject {
    name: &'static str,
    system: Arc<dyn MemorySystem>,
    bank: BankRef,
}

impl Subject {
    async fn recall(&self, text: &str, k: u32, visible_entries: u32) -> Recall {
        let evidence: Vec<String> = ["D1:3", "D9:99", "D2:1", "D1:3", "m2"].map(str::to_owned).to_vec();
        let query = RecallQuery {
            question_id: text,
            text,
            time_text: None,
            k,
            visible_entries,
            evidence: self.capabilities().sees_gold.then_some(&evidence),
            ..RecallQuery::default()
        };
        self.system.recall(&self.bank, &query).await.expect(self.name)
    }

    fn capabilities(&self) -> &Capabilities {
        self.system.capabilities()
    }

    fn content(&self) -> &BankContent {
        self.bank.content.as_ref().expect("test banks have content")
    }
}

/// Settings under which a system needs nobody else.
fn alone(name: &str) -> SystemSettings {
    let hash = ("vector.model".to_owned(), "hash".into());
    if ["vector", "hybrid"].contains(&name) { SystemSettings::from([hash]) } else { SystemSettings::new() }
}

async fn retained(name: &'static str, content: BankContent, context: &BuildContext) -> Subject {
    let system = registry::build(name, &alone(name), context).expect(name);
    let mut bank = bank(content);
    bank.handle = Some(system.open_bank(&bank).await.expect(name));
    let entries = bank.content.as_ref().expect("test banks have content").entries.clone();
    let batch = (system.capabilities().max_batch as usize).clamp(1, entries.len().max(1));
    let mut written = 0;
    for entries in entries.chunks(batch) {
        written += system.retain(&bank, entries, StepContext::default()).await.expect(name).written;
    }
    assert_eq!(written, entries.iter().map(|entry| entry.turns() as u64).sum::<u64>(), "{name}");
    let ready = system.readiness(&bank, entries.len() as u32).await.expect(name);
    assert_eq!(ready, Readiness::Proven, "{name}");
    Subject { name, system, bank }
}

async fn all_retained(content: &BankContent) -> Vec<Subject> {
    let context = BuildContext::default();
    let mut subjects = Vec::new();
    for entry in SYSTEMS {
        subjects.push(retained(entry.name, content.clone(), &context).await);
    }
    subjects
}

fn ids(hits: &[RetrievedHit]) -> Vec<&str> {
    hits.iter().map(|hit| hit.id.as_str()).collect()
}

const QUERIES: &[&str] = &[
    "What colour is the kite?",
    "kite",
    "",
    "  ?!  ",
    "who is she",
    "kite AND (red OR -blue)^3 \"market",
    "风筝 🪁 \u{0}",
    "zebra",
];

#[tokio::test]
async fn hits_exist_are_distinct_visible_and_at_most_k() {
    for content in banks() {
        for subject in all_retained(&content).await {
            for query in QUERIES {
                for visible in [0, 1, 3, 1_000] {
                    let seen = documents::visible(subject.content(), visible);
                    for k in [0, 1, 4, 10_000] {
                        let case = format!("{} on {} '{query}' visible {visible} k {k}", subject.name, content.bank_id);
                        let recall = subject.recall(query, k, visible).await;
                        if subject.capabilities().ignores_k {
                            assert_eq!(recall.effective_k as usize, recall.hits.len(), "{case}");
                        } else {
                            assert_eq!(recall.effective_k, k, "{case}");
                            assert!(recall.hits.len() <= k as usize, "{case}");
                        }
                        let distinct: HashSet<&str> = ids(&recall.hits).into_iter().collect();
                        assert_eq!(distinct.len(), recall.hits.len(), "{case}: repeats");
                        for hit in &recall.hits {
                            let document = seen.iter().find(|document| document.id() == hit.id).expect(&case);
                            assert_eq!(hit.session_id, document.session_id(), "{case}");
                            assert_eq!(hit.text, document.text(), "{case}");
                        }
                        let scores: Vec<f64> = recall.hits.iter().filter_map(|hit| hit.score).collect();
                        assert!(scores.is_sorted_by(|a, b| a >= b), "{case}: {scores:?}");
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn smaller_k_is_a_prefix_of_larger_k() {
    for subject in all_retained(&kites()).await.iter().filter(|s| !s.capabilities().ignores_k) {
        let all = subject.recall("red kite", 100, 5).await.hits;
        for k in 0..20 {
            let some = subject.recall("red kite", k, 5).await.hits;
            assert_eq!(some, all[..all.len().min(k as usize)], "{} k {k}", subject.name);
        }
    }
}

#[tokio::test]
async fn p6_what_is_not_visible_yet_changes_nothing() {
    let mut short = kites();
    short.entries.truncate(2);
    let context = BuildContext::default();
    for entry in SYSTEMS {
        let long = retained(entry.name, kites(), &context).await;
        let mut short = retained(entry.name, short.clone(), &context).await;
        short.bank.content_hash = long.bank.content_hash;
        for query in QUERIES {
            let (a, b) = (long.recall(query, 7, 2).await, short.recall(query, 7, 2).await);
            assert_eq!(a, b, "{} '{query}'", entry.name);
        }
    }
}

#[tokio::test]
async fn banks_are_apart_even_with_the_same_ids() {
    let context = BuildContext::default();
    let boats = content("boats", (1..=5).map(|number| session(number, &["a boat", "the boat is green"])).collect());
    for entry in SYSTEMS {
        let kites = retained(entry.name, kites(), &context).await;
        let before = kites.recall("red kite", 5, 5).await;
        let boats = retained(entry.name, boats.clone(), &context).await;
        assert_eq!(kites.recall("red kite", 5, 5).await, before, "{}", entry.name);
        let of_boats = boats.recall("green boat", 50, 5).await.hits;
        assert!(of_boats.iter().all(|hit| hit.text.contains("boat")), "{}", entry.name);
        boats.system.reset_bank(&boats.bank).await.expect(entry.name);
        assert_eq!(kites.recall("red kite", 5, 5).await, before, "{}: resetting one touched the other", entry.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn p17_recall_is_the_same_each_time_and_at_the_same_time() {
    for content in [kites(), awkward()] {
        for subject in all_retained(&content).await {
            let subject = Arc::new(subject);
            let alone: Vec<Recall> = {
                let fresh = retained(subject.name, content.clone(), &BuildContext::default()).await;
                let mut recalls = Vec::new();
                for query in QUERIES {
                    recalls.push(fresh.recall(query, 6, 4).await);
                }
                recalls
            };
            let ask = |_| {
                let subject = subject.clone();
                tokio::spawn(async move {
                    let mut recalls = Vec::new();
                    for query in QUERIES {
                        recalls.push(subject.recall(query, 6, 4).await);
                    }
                    recalls
                })
            };
            let together: Vec<_> = (0..16).map(ask).collect();
            for recalls in together {
                assert_eq!(recalls.await.expect("no panic"), alone, "{}", subject.name);
            }
        }
    }
}

#[tokio::test]
async fn equal_scores_keep_the_order_of_the_stream() {
    for subject in all_retained(&kites()).await {
        let hits = subject.recall("market", 10, 5).await.hits;
        if hits.len() > 1 && hits.iter().all(|hit| hit.score.is_some() && hit.score == hits[0].score) {
            assert_eq!(ids(&hits), ["D1:1", "D2:1", "D3:1", "D4:1", "D5:1"], "{}", subject.name);
        }
    }
}

#[tokio::test]
async fn what_each_built_in_is_for() {
    let mut lines = Vec::new();
    for subject in all_retained(&kites()).await {
        let hits = subject.recall("which colour is the red kite", 4, 3).await.hits;
        lines.push(format!("{}: {}", subject.name, ids(&hits).join(" ")));
    }
    insta::assert_snapshot!(lines.join("\n"), @r"
    bm25: D1:2 D2:2 D3:2 D1:3
    vector: D1:3 D2:3 D3:3 D1:2
    hybrid: D1:2 D1:3 D2:2 D2:3
    full-context: D1:1 D1:2 D1:3 D1:4 D1:5 D2:1 D2:2 D2:3 D2:4 D2:5 D3:1 D3:2 D3:3 D3:4 D3:5
    none: 
    random: D2:3 D2:4 D3:3 D2:2
    oracle: D1:3 D2:1
    faulty: D1:2 D2:2 D3:2 D1:3
    ");
}

#[tokio::test]
async fn capabilities_are_coherent_and_health_answers() {
    let context = BuildContext::default();
    for entry in SYSTEMS {
        let system = registry::build(entry.name, &SystemSettings::new(), &context).expect(entry.name);
        let capabilities = system.capabilities();
        assert!(capabilities.max_batch >= 1, "{}", entry.name);
        assert_eq!(capabilities.version.split('.').count(), 3, "{}", entry.name);
        assert!(!capabilities.from_items || capabilities.retain_idempotent, "{}", entry.name);
        assert!(!system.health().await.expect(entry.name).is_empty(), "{}", entry.name);
    }
    let names: HashSet<&str> = SYSTEMS.iter().map(|entry| entry.name).collect();
    assert_eq!(names.len(), SYSTEMS.len(), "names are keys");
}

#[tokio::test]
async fn missing_content_is_a_failure_of_the_task() {
    let context = BuildContext::default();
    for entry in SYSTEMS {
        let mut subject = retained(entry.name, kites(), &context).await;
        if !subject.capabilities().from_items {
            continue;
        }
        subject.bank.content = None;
        let query = RecallQuery { question_id: "q", text: "kite", k: 1, visible_entries: 1, ..RecallQuery::default() };
        let failure = subject.system.recall(&subject.bank, &query).await.expect_err(entry.name);
        assert_eq!(failure.code, "bank_content_missing", "{}", entry.name);
    }
}
