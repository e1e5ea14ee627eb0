use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::reference;

fn queries() -> Value {
    let query = |id: &str, query: &str, answers: Value, user: &str, category: &str, time: &str| {
        json!({ "id": id, "query": query, "gold_answers": answers, "gold_ids": ["d2", "nowhere"], "user_id": user,
            "meta": { "sample_id": user, "category": category, "query_timestamp": time } })
    };
    json!([
        query(
            "王_q0",
            "When did I move? A: In May. B: In June: late. C: Never.",
            json!(["B"]),
            "王",
            "information-extraction",
            "2025-12-31T00:00:00+00:00"
        ),
        query("王_q1", "Where do I live now?", json!(["In the old mill"]), "王", "temporal-updating", "2026-01-01"),
        query("Åsa_q0", "Which of the fees did I pay?", json!(["Unable to answer"]), "Åsa", "unanswerable", "new year"),
        query("Åsa_q1", "Which two? A: Tea. B: Rice. C: Wood.", json!(["A, C"]), "Åsa", "multi-hop", "2026-01-01"),
    ])
}

fn documents() -> Value {
    json!([
        { "id": "d1", "content": "Diary: I moved in June.", "user_id": "王", "timestamp": "2025-06-28T10:00:00+08:00" },
        { "id": "d2", "content": "user: The old mill is cold.", "user_id": "王", "timestamp": "2025-11-02",
            "messages": [{ "role": "user", "content": "The old mill is cold." }, { "role": "assistant", "content": "Light a fire." }] },
        { "id": "d3", "content": "of nobody", "user_id": "Eve", "timestamp": null },
    ])
}

fn read(queries: &Value, documents: Option<&Value>) -> Result<(Vec<Bank>, Vec<String>), DatasetError> {
    let documents = documents.map(ToString::to_string);
    let documents = documents.as_deref().map(|text| ("documents.json", text.as_bytes()));
    banks(("queries.json", queries.to_string().as_bytes()), documents).map(|(banks, notes)| (banks, notes.lines()))
}

#[test]
fn letters_in_a_question_are_options_only_where_a_letter_is_expected() {
    let asked = |text: &str, gold: Value| {
        let mut queries = queries();
        (queries[0]["query"], queries[0]["gold_answers"]) = (json!(text), gold);
        read(&queries, None).map(|(banks, _)| (banks[0].questions[0].clone(), banks[0].gold[0].gold.clone()))
    };
    let text = "Did I take plan A: the train, or plan B: the bus?";
    let (question, gold) = asked(text, json!(["the train"])).expect("a free answer");
    assert_eq!((question.text.as_str(), question.choices.len(), gold), (text, 0, Gold::Text("the train".to_owned())));
    let (question, gold) = asked(text, json!(["B"])).expect("a letter");
    assert_eq!((question.choices.len(), gold), (2, Gold::Choice("B".to_owned())));
    let error = asked(text, json!(["C"])).expect_err("no such letter").to_string();
    assert!(error.contains("'C' is the letter of no option"), "{error}");
}

#[test]
fn evidence_counts_once() {
    let mut queries = queries();
    queries[0]["gold_ids"] = json!(["d2", "d1", "d2", "d1"]);
    let (banks, _) = read(&queries, Some(&documents())).expect("readable");
    let gold = &banks[0].gold[0];
    assert_eq!((gold.evidence_turns.len(), gold.evidence_sessions.len()), (1, 2), "{gold:?}");
}

#[test]
fn people_are_banks_and_options_come_out_of_the_question() {
    let (banks, notes) = read(&queries(), Some(&documents())).expect("readable");
    let expected = [
        "documents.json: 1 documents are of people who are asked nothing, and are left out",
        "王_q0: gold_ids nowhere names no document",
        "王_q1: gold_ids nowhere names no document",
        "Åsa_q0: gold_ids d2 names no document",
        "Åsa_q0: gold_ids nowhere names no document",
        "Åsa_q1: gold_ids d2 names no document",
        "Åsa_q1: gold_ids nowhere names no document",
        "Åsa_q0: query_timestamp new year cannot be read",
    ];
    assert_eq!(notes, expected);
    assert_eq!(banks.iter().map(|bank| bank.content.bank_id.as_str()).collect::<Vec<_>>(), ["person-1", "person-2"]);

    let [StreamEntry::Memory(diary), StreamEntry::Session(talk)] = &banks[0].content.entries[..] else {
        panic!("{banks:?}")
    };
    assert_eq!((diary.id.as_str(), diary.time.as_deref()), ("M1", Some("2025-06-28T10:00:00")));
    assert_eq!(
        (talk.id.as_str(), talk.turns[1].id.as_str(), talk.turns[1].line()),
        ("S2", "S2:2", "assistant: Light a fire.".to_owned())
    );

    let (question, gold) = (&banks[0].questions[0], &banks[0].gold[0]);
    assert_eq!((question.text.as_str(), question.ask_after), ("When did I move?", 2));
    assert_eq!(question.choices, ["(A) In May.", "(B) In June: late.", "(C) Never."]);
    assert_eq!((question.time.as_deref(), &gold.gold), (Some("2025-12-31T00:00:00"), &Gold::Choice("B".to_owned())));
    assert_eq!((&gold.evidence_sessions, &gold.evidence_turns), (&vec!["S2".to_owned()], &Vec::new()));
    assert_eq!(
        gold.facets,
        BTreeMap::from([("person", "王"), ("answer_form", "letter")].map(|(k, v)| (k.to_owned(), v.to_owned())))
    );
    assert_eq!(banks[0].gold[1].gold, Gold::Text("In the old mill".to_owned()));
    assert_eq!(
        (&banks[1].gold[0].gold, &banks[1].gold[0].hidden["answer"]),
        (&Gold::Abstain, &json!("Unable to answer"))
    );
    assert_eq!(banks[1].gold[1].gold, Gold::Choice("A, C".to_owned()));
    assert_eq!(banks[1].questions[0].time_text.as_deref(), Some("new year"));
}

#[test]
fn broken_files_are_refused_with_their_field() {
    let with = |pointer: &str, value: Value| {
        let mut queries = queries();
        *queries.pointer_mut(pointer).expect("is there") = value;
        read(&queries, Some(&documents())).expect_err("broken").to_string()
    };
    assert_eq!(
        with("/0/gold_answers/0", json!("D")),
        "queries.json: field [0].gold_answers: 'D' is the letter of no option in the question"
    );
    assert_eq!(with("/1/gold_answers", json!([])), "queries.json: field [1].gold_answers: is empty");
    assert_eq!(with("/1/id", json!("王_q0")), "queries.json: field [1].id: is that of [0]: 王_q0");
    assert!(
        with("/2/meta/category", json!(7)).contains("field [2].meta.category: invalid type"),
        "{}",
        with("/2/meta/category", json!(7))
    );
}

#[test]
fn documents_of_one_id_are_told_apart_by_their_people() {
    let mut twice = documents();
    twice[1]["id"] = json!("d1");
    let (banks, notes) = read(&queries(), Some(&twice)).expect("readable");
    assert_eq!(banks[0].content.entries.len(), 2);
    assert_eq!(notes[0], "document d1 of 王: is there twice, and evidence is the first");
    twice[1]["user_id"] = json!("Åsa");
    twice[1]["id"] = json!("d2");
    let (banks, _) = read(&queries(), Some(&twice)).expect("readable");
    assert_eq!(banks[1].gold[1].evidence_sessions, ["S1"]);
    assert!(banks[0].gold[0].evidence_sessions.is_empty(), "the document is of somebody else");
}

/// Notes are published with a run, and errors are for who has given the files.
#[test]
fn notes_name_files_without_their_folder_and_errors_the_file_that_was_given() {
    let root = tempfile::tempdir().expect("temporary folder");
    let options = crate::OpenOptions {
        path: Some(root.path().to_owned()),
        cache_dir: root.path().join("cache"),
        allow_modified: true,
        ..Default::default()
    };
    std::fs::write(root.path().join("queries.json"), queries().to_string()).expect("writes");
    let packed = root.path().join("documents.json.gz");
    let put = |content: &str| std::fs::write(&packed, crate::packed::tests::gz(content.as_bytes())).expect("writes");
    put(&documents().to_string());
    let dataset = crate::open("lifebench@en", &options, &|_, _| ()).unwrap_or_else(|error| panic!("{error}"));
    let notes = dataset.notes().join("\n");
    assert!(notes.contains("documents.json: 1 documents are of people"), "{notes}");
    assert!(!notes.contains(&root.path().display().to_string()), "{notes}");
    put("[{}]");
    let error = crate::open("lifebench@en", &options, &|_, _| ()).err().expect("is broken").to_string();
    assert!(error.starts_with(&format!("{}: line 1", packed.display())), "{error}");
}

/// The published English questions, whose documents are not at hand.
#[test]
fn lifebench_questions_have_their_published_counts() {
    let Some(content) = reference::data("lifebench/queries.json.gz") else { return };
    let (banks, notes) = banks(("queries.json", &content), None).expect("readable");
    assert_eq!(
        notes.lines(),
        ["queries.json: there are no documents beside the questions, so that every bank is empty"]
    );
    assert_eq!(banks.len(), 10);
    assert!(banks.iter().all(|bank| bank.content.entries.is_empty()));
    let mut categories = BTreeMap::<&str, usize>::new();
    let mut forms = BTreeMap::<&str, usize>::new();
    let (mut abstentions, mut several) = (0, 0);
    for (question, gold) in banks.iter().flat_map(|bank| bank.questions.iter().zip(&bank.gold)) {
        *categories.entry(&question.category).or_default() += 1;
        *forms.entry(&gold.facets["answer_form"]).or_default() += 1;
        abstentions += usize::from(gold.gold == Gold::Abstain);
        several += usize::from(gold.gold == Gold::Choice("A, C".to_owned()));
        assert!(
            question.time.as_deref().is_some_and(|time| ("2025-12-30"..="2026-01-02").contains(&time)),
            "{question:?}"
        );
        assert!(
            gold.facets["person"].chars().all(|c| !c.is_ascii())
                && question.question_id.starts_with(&gold.facets["person"])
        );
        assert!(question.choices.is_empty() || question.choices.len() == 4, "{question:?}");
    }
    let expected = [
        ("information-extraction", 718),
        ("multi-hop", 597),
        ("nondeclarative", 229),
        ("temporal-updating", 429),
        ("unanswerable", 30),
    ];
    assert_eq!(categories.into_iter().collect::<Vec<_>>(), expected);
    assert_eq!(forms.into_iter().collect::<Vec<_>>(), [("letter", 518), ("text", 1_485)]);
    assert_eq!((abstentions, several), (26, 1));
    // nothing of a question is lost when its options are taken out
    let published: Vec<Value> = serde_json::from_slice(&content).expect("JSON");
    let asked = banks.iter().flat_map(|bank| &bank.questions).map(|question| (question.question_id.as_str(), question));
    let asked: HashMap<&str, &Question> = asked.collect();
    for query in published {
        let (id, text) = (query["id"].as_str().expect("an id"), query["query"].as_str().expect("a text"));
        let squeezed = |text: &str| text.split_whitespace().collect::<String>();
        let mut put = asked[id].text.clone();
        for choice in &asked[id].choices {
            put += &choice.replacen('(', "", 1).replacen(')', ":", 1);
        }
        assert_eq!(squeezed(&put), squeezed(text), "{id}");
    }
}

proptest::proptest! {
    #[test]
    fn a_spoiled_file_is_read_or_refused_by_its_name(at in 0_usize..100_000, bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..4)) {
        let spoiled = reference::spoiled(documents().to_string().as_bytes(), at, &bytes);
        if let Err(error) = banks(("queries.json", queries().to_string().as_bytes()), Some(("documents.json", &spoiled))) {
            proptest::prop_assert!(error.to_string().starts_with("documents.json: "), "{}", error);
        }
    }
}
