//! What every registered system must do. Tests run over the whole registry, so a new system is held to it unasked.

use std::{
    collections::HashSet,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU32, Ordering},
    },
};

use bench_proto::{
    dataset::{BankContent, Filter, Memory, Session, StreamEntry, Turn},
    ids::Sha256Hash,
    step::RetrievedHit,
};
use bench_testkit::postgres;

use crate::{
    BankRef, BuildContext, Capabilities, MemorySystem, Readiness, Recall, RecallQuery, SystemSettings, documents,
    facts::tests::EachLine,
    filling::store,
    registry::{self, SYSTEMS},
};

fn session(number: usize, lines: &[&str]) -> StreamEntry {
    let turn = |(at, line): (usize, &&str)| Turn {
        id: format!("D{number}:{}", at + 1),
        speaker: ["Ann", "Bo"][at % 2].to_owned(),
        text: (*line).to_owned(),
        caption: (at == 1).then(|| "a red kite over the sea".to_owned()),
        ..Turn::default()
    };
    StreamEntry::Session(Session {
        id: format!("D{number}"),
        time_text: Some(format!("{number}:30 pm on {number} May, 2031")),
        time: Some(format!("2031-05-{number:02}T12:30:00")),
        turns: lines.iter().enumerate().map(turn).collect(),
        ..Session::default()
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
    let memory = |id: &str, text: &str| Memory { id: id.into(), text: text.into(), ..Memory::default() };
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
    let content_hash = Sha256Hash::of_bytes(&json);
    BankRef {
        name: format!("bench-{}-g1", &content_hash.hex()[..8]),
        handle: None,
        bank_id: content.bank_id.clone(),
        content_hash,
        content: Some(Arc::new(content)),
    }
}

/// What systems share in a process of its own: none finds what another one has stored.
fn own_context() -> BuildContext {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    static DATABASE: LazyLock<String> =
        LazyLock::new(|| postgres::with_vector().create_database().expect("a database"));
    let pgvector_url = Some(DATABASE.clone());
    let context = BuildContext { pgvector_url, chats: Some(Arc::new(EachLine)), ..BuildContext::default() };
    context.for_run(format!("run-{}", RUNS.fetch_add(1, Ordering::Relaxed)))
}

/// A system that has retained a bank, as a worker would do it.
struct Subject {
    name: &'static str,
    system: Arc<dyn MemorySystem>,
    bank: BankRef,
}

impl Subject {
    async fn recall(&self, text: &str, k: u32, visible_entries: u32) -> Recall {
        self.recall_of(text, k, visible_entries, &Filter::default()).await
    }

    async fn recall_of(&self, text: &str, k: u32, visible_entries: u32, filter: &Filter) -> Recall {
        let evidence: Vec<String> = ["D1:3", "D9:99", "D2:1", "D1:3", "m2"].map(str::to_owned).to_vec();
        let query = RecallQuery {
            question_id: text,
            text,
            k,
            visible_entries,
            filter,
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
    if ["vector", "hybrid", "pgvector"].contains(&name) { SystemSettings::from([hash]) } else { SystemSettings::new() }
}

async fn retained(name: &'static str, content: BankContent, context: &BuildContext) -> Subject {
    let system = registry::build(name, &alone(name), context).expect(name);
    let mut bank = bank(content);
    bank.handle = Some(system.open_bank(&bank).await.expect(name));
    let entries = bank.content.as_ref().expect("test banks have content").entries.clone();
    let written = store(system.as_ref(), &bank, &entries).await.expect(name);
    assert_eq!(written, entries.iter().map(|entry| entry.turns() as u64).sum::<u64>(), "{name}");
    let ready = system.readiness(&bank, entries.len() as u32).await.expect(name);
    assert_eq!(ready, Readiness::Proven, "{name}");
    Subject { name, system, bank }
}

async fn all_retained(content: &BankContent) -> Vec<Subject> {
    let context = own_context();
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

/// Forty memories of two users, ten sessions of a year, and the ids of those that a filter lets through.
fn labelled() -> (BankContent, Vec<(Filter, Vec<String>)>) {
    let user = |n: usize| ["ann", "bo"][n % 2];
    let memory = |n: usize| Memory {
        id: format!("m{n}"),
        text: format!("the kite number {n} is {}", ["red", "blue", "green"][n % 3]),
        time: (!n.is_multiple_of(4)).then(|| format!("2031-06-{:02}T00:00:00", n % 28 + 1)),
        tags: if n.is_multiple_of(5) { vec!["toy".to_owned(), "new".to_owned()] } else { vec!["toy".to_owned()] },
        user: Some(user(n).to_owned()),
        scopes: if n.is_multiple_of(3) { vec!["home".to_owned()] } else { Vec::new() },
        ..Memory::default()
    };
    let memories: Vec<Memory> = (0..40).map(memory).collect();
    let mut entries: Vec<StreamEntry> = memories.iter().cloned().map(StreamEntry::Memory).collect();
    entries.push(session(9, &["a kite of a session", "Nice kite"]));
    let of = |is: fn(&Memory) -> bool, turns: &[&str]| {
        let ids = memories.iter().filter(|memory| is(memory)).map(|memory| memory.id.clone());
        ids.chain(turns.iter().map(|id| (*id).to_owned())).collect::<Vec<_>>()
    };
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let time = |time: &str| Some(time.to_owned());
    let cases = vec![
        (Filter { user: time("ann"), ..Filter::default() }, of(|m| m.user.as_deref() == Some("ann"), &[])),
        (Filter { tags: words(&["toy", "new"]), ..Filter::default() }, of(|m| m.tags.len() == 2, &[])),
        (Filter { scopes: words(&["away", "home"]), ..Filter::default() }, of(|m| !m.scopes.is_empty(), &[])),
        (
            Filter { from: time("2031-06-20T00:00:00"), ..Filter::default() },
            of(|m| m.time.as_deref().is_some_and(|time| time >= "2031-06-20T00:00:00"), &[]),
        ),
        (Filter { until: time("2031-05-31T00:00:00"), ..Filter::default() }, of(|_| false, &["D9:1", "D9:2"])),
        (Filter { user: time("nobody"), ..Filter::default() }, Vec::new()),
    ];
    (content("labelled", entries), cases)
}

#[tokio::test]
async fn filters_are_exact_and_come_before_ranking() {
    let (content, cases) = labelled();
    for subject in all_retained(&content).await {
        for (filter, admitted) in &cases {
            for k in [1, 5, 100] {
                let hits = subject.recall_of("which kite is red", k, u32::MAX, filter).await.hits;
                let case = format!("{} k {k} {filter:?}: {:?}", subject.name, ids(&hits));
                assert!(hits.iter().all(|hit| admitted.contains(&hit.id)), "{case}");
                let all = admitted.len().min(if subject.capabilities().ignores_k { usize::MAX } else { k as usize });
                // a word search finds those with a word of the question, which all memories and turns have
                match subject.name {
                    "none" => assert!(hits.is_empty(), "{case}"),
                    // nothing of it is named
                    "alias" => {}
                    "oracle" => {}
                    _ => assert_eq!(hits.len(), all, "{case}"),
                }
            }
        }
    }
}

#[tokio::test]
async fn a_session_in_parts_is_the_session() {
    let whole = kites();
    let mut parted = whole.clone();
    parted.entries = whole
        .entries
        .iter()
        .flat_map(|entry| {
            let StreamEntry::Session(session) = entry else { unreachable!("kites are sessions") };
            let part = |(part, turns): (usize, &[Turn])| {
                StreamEntry::Session(Session { part: part as u32, turns: turns.to_vec(), ..session.clone() })
            };
            session.turns.chunks(2).enumerate().map(part).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(parted.entries.len(), 15);
    let context = own_context();
    for entry in SYSTEMS {
        let whole = retained(entry.name, whole.clone(), &context).await;
        let mut parted = retained(entry.name, parted.clone(), &own_context()).await;
        // the lot of `random` falls by the content
        parted.bank.content_hash = whole.bank.content_hash;
        for query in QUERIES {
            assert_eq!(parted.recall(query, 7, 15).await, whole.recall(query, 7, 5).await, "{} '{query}'", entry.name);
        }
        let cut = parted.recall("kite", 100, 1).await.hits;
        assert!(ids(&cut).iter().all(|id| ["D1:1", "D1:2"].contains(id)), "{}: of the first part only", entry.name);
    }
}

#[tokio::test]
async fn a_turn_has_its_own_time_where_it_has_one() {
    let mut content = kites();
    if let StreamEntry::Session(session) = &mut content.entries[0] {
        session.turns[2].time_text = Some("noon on 9 May, 2031".to_owned());
    }
    for subject in all_retained(&content).await {
        let hits = subject.recall("Red, the kite is red", 100, 1).await.hits;
        if let Some(hit) = hits.iter().find(|hit| hit.id == "D1:3") {
            assert_eq!(hit.text, "[noon on 9 May, 2031] Ann: Red, the kite is red", "{}", subject.name);
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
    let context = own_context();
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
    let context = own_context();
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
                let fresh = retained(subject.name, content.clone(), &own_context()).await;
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
    pgvector: D1:3 D2:3 D3:3 D1:2
    alias: 
    facts: D1:2 D2:2 D3:2 D1:3
    full-context: D1:1 D1:2 D1:3 D1:4 D1:5 D2:1 D2:2 D2:3 D2:4 D2:5 D3:1 D3:2 D3:3 D3:4 D3:5
    none: 
    random: D2:3 D2:4 D3:3 D2:2
    oracle: D1:3 D2:1
    faulty: D1:2 D2:2 D3:2 D1:3
    ");
}

#[tokio::test]
async fn capabilities_are_coherent_and_health_answers() {
    let context = own_context();
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
    let context = own_context();
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
