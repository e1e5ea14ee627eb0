use std::collections::{BTreeMap, HashSet};

use bench_proto::dataset::{Gold, Session, StreamEntry};
use serde_json::{Value, json};

use super::*;
use crate::reference;

type Files = BTreeMap<String, Vec<u8>>;

fn read(size: &str, files: &Files) -> Result<(Vec<Bank>, Vec<String>), DatasetError> {
    let mut notes = Notes::default();
    let chats = chats(size, files.keys().map(String::as_str))?;
    let banks = chats.iter().map(|chat| bank(chat, |name| Ok(files[name].clone()), &mut notes));
    Ok((banks.collect::<Result<_, _>>()?, notes.lines()))
}

fn files<const N: usize>(files: [(&str, Value); N]) -> Files {
    files.into_iter().map(|(name, content)| (name.to_owned(), content.to_string().into_bytes())).collect()
}

fn session(entry: &StreamEntry) -> &Session {
    match entry {
        StreamEntry::Session(session) => session,
        other => panic!("{other:?} is no session"),
    }
}

fn sessions(bank: &Bank) -> Vec<&Session> {
    bank.content.entries.iter().map(session).collect()
}

/// Two groups of messages in the first batch, one in the second.
fn chat() -> Value {
    json!([
        { "batch_number": 1, "time_anchor": null, "turns": [
            [
                { "role": "user", "id": 0, "time_anchor": "March-15-2024", "content": "Which glue for oak? ->-> 1,1" },
                { "role": "assistant", "id": 1, "content": "A bone glue ->-> x holds." },
            ],
            [{ "role": "user", "id": 2, "content": "And for ash? ->-> 1,2)" }, { "role": "assistant", "id": 3, "content": "The same." }],
        ] },
        { "batch_number": 2, "turns": [
            [{ "role": "user", "id": 4, "time_anchor": "some day", "content": "I moved to elm. ->-> 2,N/A" }],
        ] },
    ])
}

fn questions() -> Value {
    json!({
        "abstention": [
            { "question": "Which saw?", "ideal_response": "Not said.", "difficulty": "medium", "rubric": ["says that no saw is named"] },
            { "question": "Who helped?", "rubric": ["says that nobody is named"], "difficulty": "" },
        ],
        "knowledge_update": [{
            "question": "Which wood now?", "answer": "Elm", "difficulty": "easy", "rubric": ["elm", "no longer oak"],
            "source_chat_ids": { "original_info": [0, 2], "updated_info": [4] },
        }],
        "event_ordering": [{
            "question": "In which order?", "answer": "oak, ash, elm", "difficulty": "hard", "rubric": ["oak", "ash", "elm"],
            "source_chat_ids": [0, [2, 3], ["--"], 99],
        }],
        "summarization": [{ "question": "Sum up.", "ideal_summary": "Glues.", "rubric": ["glues"], "source_chat_ids": null }],
    })
}

#[test]
fn a_group_of_messages_is_a_session_on_the_day_of_its_batch() {
    let files = files([
        ("BEAM/chats/100K/2/chat.json", json!([])),
        ("BEAM/chats/100K/2/probing_questions/probing_questions.json", json!({})),
        ("BEAM/chats/100K/10/chat.json", json!("the long one is not read")),
        ("BEAM/chats/100K/10/chat_trunecated.json", chat()),
        ("BEAM/chats/100K/10/probing_questions/probing_questions.json", questions()),
        ("BEAM/chats/500K/1/probing_questions/probing_questions.json", json!("of another size")),
    ]);
    let (banks, notes) = read("100K", &files).expect("readable");
    assert_eq!(
        notes,
        [
            "chat-10:event_ordering:0: source_chat_ids \"--\" names no message",
            "chat-10:event_ordering:0: source_chat_ids 99 names no message",
            "chat-10: S3: time_anchor some day is no date such as March-15-2024",
        ]
    );
    assert_eq!(banks.iter().map(|bank| bank.content.bank_id.as_str()).collect::<Vec<_>>(), ["chat-2", "chat-10"]);
    let bank = &banks[1];
    let found: Vec<_> = sessions(bank)
        .iter()
        .map(|session| {
            let turns: Vec<String> = session.turns.iter().map(|turn| format!("{} {}", turn.id, turn.line())).collect();
            (session.id.as_str(), session.time_text.as_deref(), session.time.as_deref(), turns.join("\n"))
        })
        .collect();
    let (day, time) = (Some("March-15-2024"), Some("2024-03-15T00:00:00"));
    let expected = [
        ("S1", day, time, "S1:1 user: Which glue for oak?\nS1:2 assistant: A bone glue ->-> x holds.".to_owned()),
        ("S2", day, time, "S2:1 user: And for ash?\nS2:2 assistant: The same.".to_owned()),
        ("S3", Some("some day"), None, "S3:1 user: I moved to elm.".to_owned()),
    ];
    assert_eq!(found, expected);

    let gold = |id: &str| bank.gold.iter().find(|gold| gold.question_id == id).unwrap_or_else(|| panic!("no {id}"));
    let update = gold("chat-10:knowledge_update:0");
    assert_eq!(update.gold, Gold::Rubric(vec!["elm".to_owned(), "no longer oak".to_owned()]));
    assert_eq!(
        (update.evidence_turns.join(" "), update.evidence_sessions.join(" ")),
        ("S1:1 S2:1 S3:1".to_owned(), "S1 S2 S3".to_owned())
    );
    assert_eq!((&update.facets["difficulty"], &update.hidden["ideal_answer"]), (&"easy".to_owned(), &json!("Elm")));
    let order = gold("chat-10:event_ordering:0");
    assert_eq!(
        (order.evidence_turns.join(" "), &order.hidden["source_chat_ids"]),
        ("S1:1 S2:1 S2:2".to_owned(), &json!([0, [2, 3], ["--"], 99]))
    );
    assert!(
        gold("chat-10:abstention:1").facets.is_empty() && gold("chat-10:summarization:0").evidence_turns.is_empty()
    );

    assert!(bank.questions.iter().all(|question| question.ask_after == 3));
}

#[test]
fn plans_are_folders_or_objects() {
    let batch =
        |id: u64, text: &str| json!({ "batch_number": 1, "turns": [[{ "role": "user", "id": id, "content": text }]] });
    let asked = ("chats/10M/1/probing_questions/probing_questions.json", questions());
    let in_folders = files([
        asked.clone(),
        ("chats/10M/1/plan-10/chat.json", json!([batch(2, "third")])),
        ("chats/10M/1/plan-2/chat.json", json!([batch(1, "second")])),
        ("chats/10M/1/plan-0/chat.json", json!("the long one is not read")),
        ("chats/10M/1/plan-0/chat_trunecated.json", json!([batch(0, "first")])),
        ("chats/10M/1/plan-0/topic.json", json!({})),
    ]);
    let in_objects = files([
        asked,
        (
            "chats/10M/1/chat.json",
            json!([{ "plan-10": [batch(2, "third")], "plan-2": [batch(1, "second")] }, { "plan-0": [batch(0, "first")], "plan-2": null }]),
        ),
    ]);
    for files in [in_folders, in_objects] {
        let (banks, _) = read("10M", &files).expect("readable");
        let said: Vec<_> =
            sessions(&banks[0]).iter().map(|session| (session.id.as_str(), session.turns[0].text.as_str())).collect();
        assert_eq!(said, [("S1", "first"), ("S2", "second"), ("S3", "third")]);
    }
    // ids that two plans give to different messages are evidence of neither
    let ambiguous = files([
        ("chats/10M/1/probing_questions/probing_questions.json", questions()),
        ("chats/10M/1/plan-0/chat.json", json!([batch(4, "one")])),
        ("chats/10M/1/plan-1/chat.json", json!([batch(4, "other")])),
    ]);
    let (banks, notes) = read("10M", &ambiguous).expect("readable");
    assert!(banks[0].gold.iter().all(|gold| gold.evidence_turns.is_empty()));
    assert!(notes.contains(&"chat-1:knowledge_update:0: source_chat_ids 4 names no message".to_owned()), "{notes:?}");
}

#[test]
fn broken_files_are_refused_with_file_and_field() {
    let path = "chats/100K/1/probing_questions/probing_questions.json";
    let with = |chat: Value, questions: Value| {
        read("100K", &files([("chats/100K/1/chat.json", chat), (path, questions)])).expect_err("broken").to_string()
    };
    let error = with(json!([{ "turns": [[{ "role": "user", "id": "one", "content": "" }]] }]), questions());
    assert!(
        error.starts_with("chats/100K/1/chat.json: line 1, column ")
            && error.contains("field [0].turns[0][0].id: invalid type"),
        "{error}"
    );
    let mut asked = questions();
    asked["abstention"][1]["rubric"] = json!([]);
    assert_eq!(with(chat(), asked.clone()), format!("{path}: field abstention[1].rubric: is empty"));
    asked["abstention"][1]["question"] = json!(" ");
    assert_eq!(with(chat(), asked.clone()), format!("{path}: field abstention[1].question: is empty"));
    asked["abstention"][1]["rubric"] = json!("one line");
    let error = with(chat(), asked);
    assert!(error.contains("field abstention[1].rubric: invalid type: string"), "{error}");
    assert!(with(chat(), json!({ "guessing": [] })).contains("field guessing: is none of the ten kinds: abstention, "));

    let error = read("100K", &files([(path, questions())])).expect_err("no chat").to_string();
    assert_eq!(
        error,
        "chats/100K/1/: chat: neither chat_trunecated.json nor chat.json nor folders plan-<number> with one"
    );
    let error = read("1M", &files([(path, questions())])).expect_err("another size").to_string();
    let expected = format!("no chat of the size 1M: a file 1M/<number>/{QUESTIONS} is expected for each");
    assert_eq!(error, format!("dataset 'beam' has {expected}"));
}

/// The published 100K data with all its counts.
#[test]
fn beam_100k_has_its_published_counts() {
    let Some(files) = reference::archive("beam/beam_100K_chats_and_questions.tar.gz") else { return };
    let (banks, notes) = read("100K", &files).expect("readable");
    assert_eq!((banks.len(), notes), (20, Vec::new()));
    let ids: Vec<String> = banks.iter().map(|bank| bank.content.bank_id.clone()).collect();
    assert_eq!(ids, (1..=20).map(|number| format!("chat-{number}")).collect::<Vec<_>>());
    let shortened: Vec<&String> = files.keys().filter(|name| name.ends_with(CHATS[0])).collect();
    assert_eq!(shortened.len(), 10);

    let turns: Vec<_> = banks.iter().flat_map(sessions).flat_map(|session| &session.turns).collect();
    assert_eq!(turns.len(), 5_094);
    assert_eq!(turns.iter().filter(|turn| turn.speaker == "user").count(), 2_547);
    assert!(turns.iter().all(|turn| !turn.text.contains("->->")));
    let all = banks.iter().flat_map(sessions);
    assert_eq!((all.clone().count(), all.filter(|session| session.time.is_some()).count()), (1_877, 1_877));

    let (mut batches, mut marked) = (0, BTreeMap::<String, usize>::new());
    for (path, content) in files.iter().filter(|(path, _)| CHATS.iter().any(|chat| path.ends_with(&format!("/{chat}"))))
    {
        let chat: Vec<Value> = serde_json::from_slice(content).unwrap_or_else(|error| panic!("{path}: {error}"));
        batches += chat.len();
        let groups = chat.iter().flat_map(|batch| batch["turns"].as_array().expect("groups"));
        for message in groups.flat_map(|group| group.as_array().expect("messages")) {
            let text = message["content"].as_str().expect("a text");
            *marked.entry(message["role"].to_string()).or_default() +=
                usize::from(marker::without(text).len() < text.trim_end().len());
        }
    }
    // 1,904 user messages end in two numbers or more, and one in N/A; assistants repeat the mark in 41
    assert_eq!((batches, marked["\"user\""], marked["\"assistant\""]), (82, 1_905, 41));

    let mut lines = BTreeMap::<&str, (usize, usize)>::new();
    for (question, gold) in banks.iter().flat_map(|bank| bank.questions.iter().zip(&bank.gold)) {
        let Gold::Rubric(rubric) = &gold.gold else { panic!("{gold:?}") };
        let (questions, of_kind) = lines.entry(&question.category).or_default();
        (*questions, *of_kind) = (*questions + 1, *of_kind + rubric.len());
    }
    let expected = [
        ("abstention", 40),
        ("contradiction_resolution", 160),
        ("event_ordering", 213),
        ("information_extraction", 92),
        ("instruction_following", 59),
        ("knowledge_update", 42),
        ("multi_session_reasoning", 101),
        ("preference_following", 74),
        ("summarization", 195),
        ("temporal_reasoning", 75),
    ];
    assert_eq!(lines.into_iter().collect::<Vec<_>>(), expected.map(|(kind, lines)| (kind, (40, lines))));
    let ids: HashSet<&String> =
        banks.iter().flat_map(|bank| &bank.questions).map(|question| &question.question_id).collect();
    assert_eq!(ids.len(), 400);
    let without: Vec<_> =
        banks.iter().flat_map(|bank| &bank.gold).filter(|gold| gold.evidence_turns.is_empty()).collect();
    let abstentions = without.iter().filter(|gold| gold.question_id.contains(":abstention:")).count();
    assert_eq!((abstentions, without.len()), (40, 45));
}

/// The questions of the other sizes, whose chats are not at hand.
#[test]
fn beam_500k_1m_10m_questions_have_their_published_counts() {
    let Some(files) = reference::archive("beam/beam_500K_1M_10M_probing_questions.tar.gz") else { return };
    let mut counts = BTreeMap::<&str, (usize, usize)>::new();
    for (path, content) in &files {
        let size = path.split('/').nth(1).expect("chats/<size>/…");
        let (questions, lines) = counts.entry(size).or_default();
        for probe in questions::parse(path, content).expect("readable").values().flatten() {
            (*questions, *lines) = (*questions + 1, *lines + probe.rubric.len());
        }
    }
    assert_eq!(counts, BTreeMap::from([("500K", (700, 1_959)), ("1M", (700, 2_415)), ("10M", (200, 621))]));
}

/// What is wrong in a plan is told of the plan.
#[test]
fn a_broken_plan_is_told_in_the_form_of_plans() {
    let message = json!({ "role": "user", "id": "seven", "content": "x" });
    let broken = json!([{ "plan-1": [{ "turns": [[message]] }] }]).to_string();
    let error = chat::batches("chat.json", broken.as_bytes()).expect_err("no number").to_string();
    assert!(error.contains("field [0].plan-1[0].turns[0][0].id: invalid type: string"), "{error}");
    let error = chat::batches("chat.json", br#"[{"time_anchor": "x"}]"#).expect_err("no turns").to_string();
    assert!(error.contains("field [0]: missing field `turns`"), "{error}");
}

#[test]
fn equal_questions_have_ids_of_their_own() {
    let mut asked = questions();
    asked["abstention"][1]["question"] = json!("Which saw?");
    let files = files([("100K/1/chat.json", chat()), ("100K/1/probing_questions/probing_questions.json", asked)]);
    let (banks, _) = read("100K", &files).expect("readable");
    let ids: HashSet<&String> = banks[0].questions.iter().map(|question| &question.question_id).collect();
    assert_eq!((ids.len(), banks[0].questions.len()), (5, 5));
}

/// The archive is opened as it was published, chat by chat.
#[test]
fn an_archive_is_a_dataset() {
    let Some(path) = reference::path("beam/beam_100K_chats_and_questions.tar.gz") else { return };
    let cache = tempfile::tempdir().expect("temporary folder");
    let options = crate::OpenOptions { path: Some(path), cache_dir: cache.path().to_owned(), ..Default::default() };
    let dataset = crate::open("beam@100k", &options, &|_, _| ()).expect("opens");
    assert_eq!((dataset.bank_count(), dataset.about().checksum_unknown), (20, true));
    for number in [19, 0, 7] {
        let (bank, mut outline) = (dataset.bank(number).expect("a bank"), dataset.outline(number).expect("an outline"));
        outline.questions.iter_mut().for_each(|question| question.file_place = None);
        assert_eq!((bank.content.bank_id.clone(), bank.outline()), (format!("chat-{}", number + 1), outline));
    }
    assert!(dataset.bank(20).is_err());
    let error = crate::open("beam@1m", &options, &|_, _| ()).err().expect("another size").to_string();
    assert!(error.contains("1M"), "{error}");
}

proptest::proptest! {
    #[test]
    fn a_spoiled_file_is_read_or_refused_by_its_name(at in 0_usize..100_000, bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..4)) {
        let mut files = files([("100K/1/chat.json", chat()), ("100K/1/probing_questions/probing_questions.json", questions())]);
        for content in files.values_mut() {
            *content = reference::spoiled(content, at, &bytes);
        }
        if let Err(error) = read("100K", &files) {
            proptest::prop_assert!(error.to_string().starts_with("100K/1/"), "{}", error);
        }
    }
}
