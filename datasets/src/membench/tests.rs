use bench_proto::dataset::{Session, StreamEntry};
use serde_json::json;

use super::*;

fn qa(target: Value) -> Value {
    json!({ "qid": 0, "question": "Where does Bo work?", "answer": "In the mill", "target_step_id": target,
        "choices": { "A": "At sea", "B": "In the mill", "C": "At home", "D": "Nowhere" }, "ground_truth": "B", "time": "2024-10-02 09:00" })
}

fn observed(message: &str, time: &str) -> Value {
    json!({ "mid": 0, "message": message, "time": time, "place": "Malmö", "rel": "boss", "attr": "work", "value": "mill" })
}

fn trajectory(messages: Value, target: Value) -> Value {
    json!({ "tid": 7, "message_list": messages, "QA": qa(target) })
}

fn read(path: &str, content: &Value, base: Base) -> Result<(Vec<Bank>, Vec<String>), DatasetError> {
    let mut notes = Notes::default();
    banks(path, content.to_string().as_bytes(), base, &mut notes).map(|banks| (banks, notes.lines()))
}

/// The only bank of a file, and its notes.
fn one(path: &str, content: &Value, base: Base) -> (Bank, Vec<String>) {
    let (mut banks, notes) = read(path, content, base).expect("readable");
    assert_eq!(banks.len(), 1);
    (banks.remove(0), notes)
}

fn lines(bank: &Bank) -> Vec<String> {
    let line = |entry: &StreamEntry| match entry {
        StreamEntry::Session(Session { turns, .. }) => {
            turns.iter().map(|turn| format!("{} {}", turn.id, turn.line())).collect::<Vec<_>>()
        }
        other => panic!("{other:?} is no session"),
    };
    bank.content.entries.iter().flat_map(line).collect()
}

const RAW: &str = "MemData/ThirdAgent/simple.json";

#[test]
fn observations_are_steps_of_one_session() {
    let messages = json!([
        observed("Bo hums.", "2024-10-01 08:00"),
        observed("Bo works in the mill.", "at noon"),
        "Noise (place: Oslo; time: later)"
    ]);
    let (bank, notes) = one(RAW, &json!({ "roles": [trajectory(messages, json!([1, 1]))] }), Base::Zero);
    assert_eq!(notes, ["third/low/simple/roles/7: 1 times cannot be read, such as at noon"]);
    let expected = [
        "S1:1 user: Bo hums. (place: Malmö)",
        "S1:2 user: Bo works in the mill. (place: Malmö)",
        "S1:3 user: Noise (place: Oslo; time: later)",
    ];
    assert_eq!(lines(&bank), expected);
    let StreamEntry::Session(session) = &bank.content.entries[0] else { panic!("{bank:?}") };
    assert_eq!(
        (session.turns[0].time.as_deref(), session.turns[1].time.as_deref()),
        (Some("2024-10-01T08:00:00"), None)
    );
    let (question, gold) = (&bank.questions[0], &bank.gold[0]);
    assert_eq!(question.choices, ["(A) At sea", "(B) In the mill", "(C) At home", "(D) Nowhere"]);
    assert_eq!((question.category.as_str(), question.time.as_deref()), ("simple", Some("2024-10-02T09:00:00")));
    assert_eq!((&gold.gold, gold.evidence_turns.join(" ")), (&Gold::Choice("B".to_owned()), "S1:2".to_owned()));
    assert_eq!(
        serde_json::to_value(&gold.facets).expect("JSON"),
        json!({ "perspective": "third", "level": "low", "scenario": "roles" })
    );
    let bank_id = &bank.content.bank_id;
    assert!(!bank_id.contains("simple") && question.question_id == "third/low/simple/roles/7/0", "{bank_id}");
}

#[test]
fn steps_are_counted_from_the_base_that_is_given() {
    let messages = json!([observed("one", ""), observed("two", ""), observed("three", "")]);
    let evidence = |target: Value, base| {
        let (bank, notes) = one(RAW, &json!({ "roles": [trajectory(messages.clone(), target)] }), base);
        (bank.gold[0].evidence_turns.join(" "), notes.join(" "))
    };
    assert_eq!(evidence(json!([0, 2]), Base::Zero), ("S1:1 S1:3".to_owned(), String::new()));
    assert_eq!(evidence(json!([1, 3]), Base::One), ("S1:1 S1:3".to_owned(), String::new()));
    let unresolved = |step: u64| format!("third/low/simple/roles/7/0: target_step_id {step} names no step");
    assert_eq!(evidence(json!([3]), Base::Zero), (String::new(), unresolved(3)));
    assert_eq!(evidence(json!([0]), Base::One), (String::new(), unresolved(0)));
    assert_eq!(evidence(json!([]), Base::Zero), (String::new(), String::new()));
    assert_eq!(evidence(json!("1"), Base::Zero), ("S1:2".to_owned(), String::new()));
    assert_eq!(evidence(json!(null), Base::Zero), (String::new(), String::new()));
    let text = "third/low/simple/roles/7/0: target_step_id \"two\" names no step".to_owned();
    assert_eq!(evidence(json!("two"), Base::Zero), (String::new(), text));
}

#[test]
fn exchanges_are_two_turns_and_sessions_are_sessions() {
    let exchange = |user: &str, assistant: &str| json!({ "user_message": user, "assistant_message": assistant, "time": "2024-10-01", "place": "" });
    let sessions = json!([
        [exchange("Hello", "Hi"), exchange("I work in the mill", "Noted")],
        [{ "user": "It rains", "agent": "A pity" }, exchange("I hum", "Nice")],
    ]);
    let target = json!([[1, 0], [0, 1], 3, [0, 9]]);
    let merged = json!({ "highlevel": { "movie": [trajectory(sessions.clone(), target.clone())] } });
    let (bank, notes) = one("FirstAgentDataHighLevel.json", &merged, Base::Zero);
    assert_eq!(notes, ["first/high/highlevel/movie/7/0: target_step_id [0,9] names no step"]);
    assert_eq!(lines(&bank)[2..5], ["S1:3 user: I work in the mill", "S1:4 assistant: Noted", "S2:1 user: It rains"]);
    let gold = &bank.gold[0];
    assert_eq!(
        (gold.evidence_turns.join(" "), gold.evidence_sessions.join(" ")),
        ("S1:3 S1:4 S2:1 S2:2 S2:3 S2:4".to_owned(), "S1 S2".to_owned())
    );
    assert_eq!(gold.hidden["target_step_id"], target);
    assert_eq!((gold.facets["level"].as_str(), gold.facets["perspective"].as_str()), ("high", "first"));
    let counted_from_1 = json!({ "highlevel": { "movie": [trajectory(sessions, json!([[2, 1]]))] } });
    assert_eq!(
        one("FirstAgentDataHighLevel.json", &counted_from_1, Base::One).0.gold[0].evidence_turns,
        ["S1:3", "S1:4"]
    );
}

#[test]
fn both_layouts_and_files_of_the_generator_give_the_same() {
    let trajectory = trajectory(json!(["Bo works in the mill"]), json!([0]));
    let mut generated = trajectory.clone();
    generated["question_list"] = json!([generated["QA"].take()]);
    generated.as_object_mut().expect("an object").remove("QA");
    let raw = one(RAW, &json!({ "roles": [trajectory.clone()] }), Base::Zero);
    let merged = "ThirdAgentDataLowLevel.json";
    assert_eq!(raw, one(merged, &json!({ "simple": { "roles": [trajectory.clone()] } }), Base::Zero));
    assert_eq!(raw, one(merged, &json!({ "simple": { "roles": [generated] } }), Base::Zero));
    let (bank, _) = one(merged, &json!({ "simple": [trajectory] }), Base::Zero);
    assert_eq!((bank.gold[0].facets["scenario"].as_str(), &bank.questions[0].text), ("none", &raw.0.questions[0].text));
}

#[test]
fn broken_files_are_refused_with_their_field() {
    let refused = |path: &str, content: Value| read(path, &content, Base::Zero).expect_err("broken").to_string();
    let with = |pointer: &str, value: Value| {
        let mut content = json!({ "roles": [trajectory(json!(["one"]), json!([0]))] });
        *content.pointer_mut(pointer).expect("is there") = value;
        refused(RAW, content)
    };
    assert_eq!(
        with("/roles/0/QA/ground_truth", json!("E")),
        format!("{RAW}: field roles[0].QA.ground_truth: 'E' is the letter of no choice")
    );
    assert_eq!(
        with("/roles/0/QA", json!(null)),
        format!("{RAW}: field roles[0].QA: neither this nor question_list holds a question")
    );
    assert_eq!(
        with("/roles/0/message_list", json!([["one"], "two"])),
        format!(
            "{RAW}: field roles[0].message_list[1]: a list of steps is expected, as the other sessions are: put this one into a list of its own"
        )
    );
    let a_step = "a text, an object with a message, or one of user and agent is expected";
    assert_eq!(
        with("/roles/0/message_list", json!([["one", 2]])),
        format!("{RAW}: field roles[0].message_list[0][1]: {a_step}")
    );
    assert!(
        with("/roles/0/QA/question", json!(7)).contains("field roles[0].QA.question: invalid type"),
        "{}",
        with("/roles/0/QA/question", json!(7))
    );
    // options are shown by their places: a letter that is left out would give another one to those behind it
    for choices in [json!({ "A": "x", "C": "y" }), json!({ "A": "x" }), json!({ "a": "x", "b": "y" })] {
        let refused = with("/roles/0/QA/choices", choices);
        assert!(refused.contains("field roles[0].QA.choices: an object with the letters A, B, C, D"), "{refused}");
    }
    assert_eq!(
        refused("simple.json", json!({})),
        "simple.json: name: FirstAgent or ThirdAgent is expected in the path"
    );
    assert!(
        refused("ThirdAgent/other.json", json!({ "roles": [] }))
            .starts_with("ThirdAgent/other.json: field roles: 'other' is none of the types: simple, ")
    );
    let merged = "is no list: a file of types and scenarios has a name that ends in LowLevel or HighLevel";
    assert_eq!(refused(RAW, json!({ "simple": { "roles": [] } })), format!("{RAW}: field simple: {merged}"));
}

#[test]
fn trajectories_of_one_tid_are_told_apart() {
    let mut other = trajectory(json!(["two"]), json!([0]));
    other["QA"]["choices"]["A"] = json!(3);
    let content = json!({ "roles": [trajectory(json!(["one"]), json!([0])), other] });
    let (banks, notes) = read(RAW, &content, Base::Zero).expect("readable");
    assert_eq!(notes, ["third/low/simple/roles/7#1: the tid 7 is there twice"]);
    assert_ne!(banks[0].content.bank_id, banks[1].content.bank_id);
    assert_eq!(
        (banks[1].questions[0].question_id.as_str(), banks[1].questions[0].choices[0].as_str()),
        ("third/low/simple/roles/7#1/0", "(A) 3")
    );
}

#[test]
fn a_folder_is_opened_with_the_base_of_the_variant() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let files = folder.path().join("membench/MemData/ThirdAgent");
    std::fs::create_dir_all(&files).expect("folders");
    let content = json!({ "roles": [trajectory(json!(["one", "two"]), json!([1]))] }).to_string();
    std::fs::write(files.join("simple.json"), &content).expect("write");
    std::fs::write(files.join("noisy.json"), &content).expect("write");
    std::fs::write(folder.path().join("membench/MemData/readme.json"), "of another kind").expect("write");
    let options = crate::OpenOptions { datasets_dir: Some(folder.path().to_owned()), ..Default::default() };
    let evidence = |name: &str| {
        let dataset = crate::open(name, &options, &|_, _| ()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(dataset.bank_count(), 2);
        let banks = [1, 0].map(|number| dataset.bank(number).expect("a bank"));
        banks.map(|bank| (bank.questions[0].category.clone(), bank.gold[0].evidence_turns.concat()))
    };
    let [noisy, simple] = ["noisy", "simple"].map(str::to_owned);
    assert_eq!(evidence("membench"), [(simple.clone(), "S1:2".to_owned()), (noisy.clone(), "S1:2".to_owned())]);
    assert_eq!(evidence("membench@steps-from-1"), [(simple, "S1:1".to_owned()), (noisy, "S1:1".to_owned())]);
    // the same trajectories once more, in the merged layout
    let merged = json!({ "simple": { "roles": [trajectory(json!(["one"]), json!([0]))] } }).to_string();
    std::fs::write(folder.path().join("membench/MemData/ThirdAgentDataLowLevel.json"), merged).expect("write");
    let error = crate::open("membench", &options, &|_, _| ()).err().expect("twice").to_string();
    assert!(error.starts_with("two files of dataset 'membench@steps-from-0' hold the same bank "), "{error}");
}

proptest::proptest! {
    #[test]
    fn a_spoiled_file_is_read_or_refused_by_its_name(at in 0_usize..100_000, bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..4)) {
        let file = json!({ "roles": [trajectory(json!([["one"], [{ "user": "two", "agent": "three" }]]), json!([[0, 1], 0]))] }).to_string();
        let spoiled = crate::reference::spoiled(file.as_bytes(), at, &bytes);
        if let Err(error) = banks(RAW, &spoiled, Base::One, &mut Notes::default()) {
            proptest::prop_assert!(error.to_string().starts_with("MemData/"), "{}", error);
        }
    }
}
