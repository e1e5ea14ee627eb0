use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::reference;

fn item(question: &str, answer: &str, evidence: &[(&str, &str)]) -> Value {
    let evidence: Vec<Value> =
        evidence.iter().map(|(speaker, text)| json!({ "speaker": speaker, "text": text })).collect();
    json!({ "question": question, "answer": answer, "message_evidences": evidence, "category": "Family life",
        "conversations": [conversation(&[("User", "I keep bees."), ("Assistant", "How many hives?"), ("user", "Four.")], true)],
        "use_case_model_name": "a model", "core_model_name": "another" })
}

fn conversation(messages: &[(&str, &str)], contains_evidence: bool) -> Value {
    let messages: Vec<Value> =
        messages.iter().map(|(speaker, text)| json!({ "speaker": speaker, "text": text })).collect();
    json!({ "messages": messages, "id": "evidence-conversation", "containsEvidence": contains_evidence, "model_name": "a model" })
}

fn read(path: &str, content: &Value) -> Result<(Vec<Bank>, Vec<String>), DatasetError> {
    let mut notes = Notes::default();
    banks(path, content.to_string().as_bytes(), &mut notes).map(|banks| (banks, notes.lines()))
}

fn lines(bank: &Bank) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in &bank.content.entries {
        let StreamEntry::Session(session) = entry else { panic!("{entry:?} is no session") };
        lines.extend(session.turns.iter().map(|turn| format!("{} {} {}", session.id, turn.id, turn.line())));
    }
    lines
}

const EVIDENCE: &str = "core_benchmark/evidence_questions/user_evidence/2_evidence/1234_beekeeper.json";

#[test]
fn items_of_evidence_files_bring_their_conversations() {
    let file = json!({ "checkpoint": {}, "evidence_items": [
        item("How many hives?", "Four", &[("User", "I keep bees."), ("User", "Four.")]),
        item("And ants?", "None", &[("User", "I keep ants.")]),
    ] });
    let (banks, notes) = read(EVIDENCE, &file).expect("readable");
    let marked = super::banks(EVIDENCE, format!("\u{feff}{}", json!([file])).as_bytes(), &mut Notes::default());
    assert_eq!(marked.expect("a list with a mark of UTF-8"), banks);
    let ids: Vec<&str> = banks.iter().map(|bank| bank.content.bank_id.as_str()).collect();
    assert!(
        ids.len() == 2 && ids[0].ends_with("-1") && ids[1].ends_with("-2") && !ids[0].contains("evidence"),
        "{ids:?}"
    );
    assert_eq!(notes, [format!("{}:0: message_evidences[0] is no message of its conversations", ids[1])]);
    assert_eq!(
        lines(&banks[0]),
        ["S1 S1:1 user: I keep bees.", "S1 S1:2 assistant: How many hives?", "S1 S1:3 user: Four."]
    );
    let gold = &banks[0].gold[0];
    assert_eq!(
        (gold.evidence_turns.join(" "), gold.evidence_sessions.join(" ")),
        ("S1:1 S1:3".to_owned(), "S1".to_owned())
    );
    assert_eq!(gold.gold, Gold::Text("Four".to_owned()));
    assert_eq!(gold.rubric, None, "two messages are the evidence");
    assert_eq!(
        serde_json::to_value(&gold.facets).expect("JSON"),
        json!({ "context_size": "1", "evidence_count": "2" })
    );
    assert_eq!((&gold.hidden["person"], &gold.hidden["file"]), (&json!("1234"), &json!(EVIDENCE)));
    assert_eq!(banks[0].questions[0].category, "user_evidence");
    let shown = serde_json::to_string(&(&banks[0].content, &banks[0].questions[0].shown_id())).expect("JSON");
    assert!(!shown.contains("evidence") && !shown.contains("model"), "{shown}");
}

#[test]
fn items_of_mixed_cases_share_a_haystack() {
    let case = |kind: &str| {
        json!({ "contextSize": 2, "evidenceItems": [
            item(&format!("{kind} one?"), "wants bees", &[("ASSISTANT", "Four.")]),
            item(&format!("{kind} two?"), "wants ants", &[]),
        ], "conversations": [conversation(&[("User", "Four."), ("Assistant", "Four.")], false), conversation(&[("User", "Five.")], true)] })
    };
    let read = |kind: &str| {
        let path = format!("core_benchmark/pre_mixed_testcases/{kind}/1_evidence/batched_000.json");
        read(&path, &json!([case(kind), case(kind)])).expect("readable")
    };
    let (banks, notes) = read("preference_evidence");
    assert_eq!((banks.len(), banks[1].questions.len(), notes.len()), (2, 2, 0));
    let (question, gold) = (&banks[1].questions[1], &banks[1].gold[0]);
    assert_eq!((question.ask_after, question.question_id.ends_with("-2:1")), (2, true));
    assert_eq!(gold.gold, Gold::Rubric(vec!["wants bees".to_owned()]));
    assert_eq!((gold.evidence_turns.join(" "), gold.facets["context_size"].as_str()), ("S1:2".to_owned(), "2"));
    assert_eq!(gold.hidden["person"], json!("batched"));
    let (banks, _) = read("abstention_evidence");
    assert_eq!((&banks[0].gold[0].gold, &banks[0].gold[0].hidden["answer"]), (&Gold::Abstain, &json!("wants bees")));
    let (banks, _) = read("changing_evidence");
    assert_eq!(banks[0].gold[0].gold, Gold::Text("wants bees".to_owned()));
}

#[test]
fn broken_files_are_refused_with_their_field() {
    let refused = |path: &str, content: Value| read(path, &content).expect_err("broken").to_string();
    let items = |field: &str, value: Value| {
        let mut item = item("How many?", "Four", &[]);
        item[field] = value;
        json!({ "evidence_items": [self::item("And?", "Four", &[]), item] })
    };
    assert_eq!(
        refused(EVIDENCE, items("answer", json!(""))),
        format!("{EVIDENCE}: field evidence_items[1].answer: is empty")
    );
    let error = refused(EVIDENCE, items("question", json!(7)));
    assert!(error.contains("field evidence_items[1].question: invalid type"), "{error}");
    assert!(
        refused("a.json", items("category", json!("x")))
            .starts_with("a.json: field evidence_items[0].category: no folder of the file and no")
    );
    let neither = "field evidence_items: either this, or evidenceItems with conversations is expected";
    assert_eq!(refused("a.json", json!({})), format!("a.json: {neither}"));
    assert_eq!(
        refused("a.json", json!([{ "evidenceItems": [] }])),
        format!("a.json: {}", neither.replace("evidence_items:", "[0].evidence_items:"))
    );
    assert!(refused("a.json", json!("text")).starts_with("a.json: line 1, column "));
}

/// LoCoMo's first questions in ConvoMem's form, as its authors keep them.
#[test]
fn locomo_in_convomem_has_its_published_counts() {
    let files = [
        ("category_1_basic_facts.dataset_1", 11),
        ("category_2_temporal.dataset_1", 26),
        ("category_3_reasoning.dataset_0", 13),
        ("category_4_multi_session.dataset_1", 44),
        ("category_5_abstention.dataset_1", 24),
    ];
    let (mut turns, mut notes, mut categories) = (0, Notes::default(), BTreeMap::<String, usize>::new());
    for ((file, questions), number) in files.into_iter().zip(1..) {
        let path = format!("convomem/test_cases_locomo/{file}.json.gz");
        let Some(content) = reference::data(&path) else { return };
        let banks = banks(&path, &content, &mut notes).expect("readable");
        let [bank] = &banks[..] else { panic!("{} banks", banks.len()) };
        assert_eq!((bank.questions.len(), bank.content.entries.len()), (questions, 19), "{file}");
        turns += bank.content.entries.iter().map(StreamEntry::turns).sum::<usize>();
        for (question, gold) in bank.questions.iter().zip(&bank.gold) {
            *categories.entry(question.category.clone()).or_default() += 1;
            assert_eq!(gold.facets["context_size"], "19");
            assert_eq!(gold.gold == Gold::Abstain, number == 5, "{question:?}");
            assert!(gold.hidden["person"].as_str().is_some_and(|person| person.starts_with("locomo_")));
        }
    }
    assert_eq!(categories.values().copied().collect::<Vec<_>>(), files.map(|(_, questions)| questions));
    assert_eq!((turns, notes.lines()), (1_895, Vec::new()));
}

#[test]
fn what_nothing_answers_needs_no_answer() {
    let with = |kind: &str, answer: Value| {
        let mut item = item("Who?", "x", &[]);
        item["answer"] = answer;
        read(
            &format!("core_benchmark/evidence_questions/{kind}/1_evidence/1234_pilot.json"),
            &json!({ "evidence_items": [item] }),
        )
    };
    let (banks, _) = with("abstention_evidence", Value::Null).expect("readable");
    assert_eq!((&banks[0].gold[0].gold, banks[0].gold[0].hidden.get("answer")), (&Gold::Abstain, None));
    let error = with("user_evidence", Value::Null).expect_err("has one").to_string();
    assert!(error.ends_with("field evidence_items[0].answer: is empty"), "{error}");
}

/// One file is one file, packed or not, and errors say where it lies.
#[test]
fn a_file_beside_itself_packed_is_refused() {
    let root = tempfile::tempdir().expect("temporary folder");
    let folder = root.path().join("core_benchmark/evidence_questions/user_evidence/1_evidence");
    std::fs::create_dir_all(&folder).expect("folder");
    let content = json!({ "evidence_items": [item("How many?", "Four", &[])] }).to_string();
    let packed = crate::packed::tests::gz(content.as_bytes());
    std::fs::write(folder.join("1234_pilot.json.gz"), packed).expect("write");
    let options = crate::OpenOptions { path: Some(root.path().to_owned()), ..Default::default() };
    let open = || crate::open("convomem@evidence", &options, &|_, _| ()).map_err(|error| error.to_string());
    let bank_id = open().expect("packed").outline(0).expect("a bank").bank_id;
    std::fs::write(folder.join("1234_pilot.json"), &content).expect("write");
    let error = open().err().expect("both");
    assert!(error.contains("1234_pilot.json.gz: file: lies beside the same file unpacked"), "{error}");
    std::fs::remove_file(folder.join("1234_pilot.json.gz")).expect("remove");
    assert_eq!(open().expect("unpacked").outline(0).expect("a bank").bank_id, bank_id);
    std::fs::write(folder.join("1234_pilot.json"), "{").expect("write");
    let (error, path) = (open().err().expect("broken"), folder.join("1234_pilot.json"));
    assert!(error.starts_with(&path.display().to_string()), "{error}");
}

proptest::proptest! {
    #[test]
    fn a_spoiled_file_is_read_or_refused_by_its_name(at in 0_usize..100_000, bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..4)) {
        let file = json!({ "evidence_items": [item("How many?", "Four", &[("User", "Four.")])] }).to_string();
        let spoiled = reference::spoiled(file.as_bytes(), at, &bytes);
        if let Err(error) = banks(EVIDENCE, &spoiled, &mut Notes::default()) {
            proptest::prop_assert!(error.to_string().starts_with("core_benchmark/"), "{}", error);
        }
    }
}

#[test]
fn facts_are_judged_with_the_messages_that_tell_them() {
    use bench_grading::{
        counting,
        judging::{Next, Replies, keys::Case},
    };
    let profile: bench_proto::profile::Profile = toml::from_str(PROFILE).expect("a profile");
    let told = |profile: &bench_proto::profile::Profile, path: &str, evidence: &[(&str, &str)]| {
        let file = json!({ "evidence_items": [item("How many hives?", "Four", evidence)] });
        let (banks, _) = read(path, &file).expect("readable");
        let Bank { content, questions, gold } = &banks[0];
        let case =
            Case::by_profile(profile, &questions[0], Some(&gold[0]), "Four hives", content).expect("has a rubric");
        let Next::Ask(calls) = case.next(&Replies::new()) else { panic!("asks") };
        calls[0].messages.user.clone()
    };
    let (one, two) = ([("User", "Four.")], [("User", "I keep bees."), ("User", "Four.")]);
    let facts = told(&profile, EVIDENCE, &two);
    assert!(facts.contains(r#""evidence": ["user: I keep bees.","user: Four."]"#), "{facts}");
    assert!(told(&profile, EVIDENCE, &one).contains(r#""evidence": ["user: Four."]"#));
    let elsewhere = told(&profile, EVIDENCE, &[("User", "I keep ants.")]);
    assert!(elsewhere.contains(r#""evidence": ["I keep ants."]"#), "no message of the bank: {elsewhere}");
    let changing = told(&profile, "changing_evidence/1_b.json", &two);
    assert!(!changing.contains("evidence") && !changing.contains("bees"), "{changing}");
    // and so they are by the authors' counting
    let counted = counting::canonical("convomem").expect("is known").profile(&profile);
    let facts = told(&counted, EVIDENCE, &two);
    assert!(facts.contains("rests:\nuser: I keep bees.\nuser: Four.\nExpected answer: Four\n"), "{facts}");
}
