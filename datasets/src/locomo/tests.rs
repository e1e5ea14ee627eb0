//! The loader on a small file with every oddity of the published one, and on the published one where it is at hand.

use std::{collections::HashSet, fs, path::PathBuf};

use serde_json::json;

use super::*;
use crate::{Manifest, OpenOptions, checksum};

/// Two conversations of this test's own making, with everything that is odd about the published file.
fn odd_file() -> Value {
    let turn = |speaker: &str, id: &str, text: &str| json!({ "speaker": speaker, "dia_id": id, "text": text });
    json!([
        {
            "sample_id": "conv-1",
            "event_summary": { "events_session_1": { "Ann": ["leak"], "date": "x" } },
            "observation": { "session_1_observation": { "Ann": [["leak", "D1:1"], ["leak", ["D1:1", "D1:2"]]] } },
            "session_summary": { "session_1_summary": "leak" },
            "conversation": {
                "speaker_a": "Ann",
                "speaker_b": "Ben",
                "session_10_date_time": "12:05 am on 1 February, 2023",
                "session_10": [turn("Ben", "D10:1", "Tenth."), turn("Ann", "D10:2", "Still the tenth.")],
                "session_2_date_time": "12:30 pm on 9 January, 2023",
                "session_2": [turn("Ann", "D2:1", "Second.")],
                "session_1_date_time": "1:56 pm on 8 January, 2023",
                "session_1": [
                    {
                        "speaker": "Ann", "dia_id": "D1:1", "text": "Look \"at\" this.", "img_url": ["http://leak"],
                        "blip_caption": "a photo of a hat", "query": "leak", "re-download": true
                    },
                    turn("Ben", "D1:2", "Nice.")
                ],
                "session_11_date_time": "a date without a session",
                "session_3": [turn("Ben", "D3:1", "No date.")],
                "session_4_date_time": "some day in spring",
                "session_4": [],
                "other": { "deeply": ["ignored"] }
            },
            "qa": [
                { "question": "Year? ", "answer": 2022, "evidence": ["D1:1"], "category": 2 },
                { "question": "Count?", "answer": 3, "evidence": ["D1:1", "D1:1", "D2:1"], "category": 1 },
                { "question": "Same?", "answer": " text", "evidence": [], "category": 3 },
                { "question": "Same?", "answer": "text", "evidence": ["D1:1; D10:2"], "category": 4 },
                { "question": "Lone letter?", "answer": "a", "evidence": ["D1:1", "D", "D2:1"], "category": 4 },
                { "question": "Colon?", "answer": "a", "evidence": ["D:10:1"], "category": 4 },
                { "question": "Zero?", "answer": "a", "evidence": ["D10:02"], "category": 4 },
                { "question": "Dangling?", "answer": "a", "evidence": ["D10:19", "D1:2"], "category": 4 },
                { "question": "Partly?", "answer": "a", "evidence": ["D1:2 D9:9"], "category": 4 },
                { "question": "Unsaid?", "evidence": ["D1:2"], "category": 5, "adversarial_answer": "a hat" },
                { "question": "No?", "answer": "No", "evidence": ["D1:2"], "category": 5, "adversarial_answer": "Yes" },
                { "question": "Bare?", "evidence": [], "category": 5 }
            ]
        },
        { "sample_id": "конв-2", "conversation": { "speaker_a": "A", "speaker_b": "B" }, "qa": [] }
    ])
}

fn open(options: &OpenOptions) -> Result<Box<dyn Dataset>, DatasetError> {
    crate::open("locomo", options, &|_, _| ())
}

fn manifest() -> &'static Manifest {
    &crate::find("locomo").expect("registered").manifest
}

fn open_text(text: &str, allow_modified: bool) -> Result<Box<dyn Dataset>, DatasetError> {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("file.json");
    fs::write(&path, text).expect("write");
    open(&OpenOptions { path: Some(path), allow_modified, ..Default::default() })
}

fn open_odd() -> Box<dyn Dataset> {
    open_text(&odd_file().to_string(), true).expect("odd, but readable")
}

fn sessions(bank: &Bank) -> Vec<&Session> {
    let mut sessions = Vec::new();
    for entry in &bank.content.entries {
        let StreamEntry::Session(session) = entry else { panic!("{entry:?} is no session") };
        sessions.push(session);
    }
    sessions
}

#[test]
fn sessions_are_in_order_of_their_numbers() {
    let bank = open_odd().bank(0).expect("a bank");
    let found: Vec<_> = sessions(&bank).iter().map(|s| (s.id.as_str(), s.time.as_deref())).collect();
    let expected = [
        ("D1", Some("2023-01-08T13:56:00")),
        ("D2", Some("2023-01-09T12:30:00")),
        ("D3", None),
        ("D4", None),
        ("D10", Some("2023-02-01T00:05:00")),
    ];
    assert_eq!(found, expected);
    assert_eq!(sessions(&bank)[3].time_text.as_deref(), Some("some day in spring"));
    assert!(bank.questions.iter().all(|question| question.ask_after == 5));
}

#[test]
fn only_what_the_speakers_see_is_retained() {
    let dataset = open_odd();
    let bank = dataset.bank(0).expect("a bank");
    let json = serde_json::to_string(&bank).expect("a bank is JSON");
    assert!(!json.contains("leak") && !json.contains("http"), "{json}");
    let first = &sessions(&bank)[0].turns[0];
    assert_eq!((first.text.as_str(), first.caption.as_deref()), ("Look \"at\" this.", Some("a photo of a hat")));
    assert_eq!(dataset.bank(1).expect("a bank").content.entries, []);
    assert_eq!(dataset.bank(1).expect("a bank").content.bank_id, "конв-2");
}

#[test]
fn golds_and_evidence_survive() {
    let dataset = open_odd();
    let bank = dataset.bank(0).expect("a bank");
    let gold = |index: usize| &bank.gold[index];
    assert_eq!(gold(0).gold, Gold::Number(2022.into()));
    assert_eq!(gold(1).gold, Gold::Number(3.into()));
    assert_eq!(gold(2).gold, Gold::Text(" text".to_owned()));
    assert_eq!((bank.questions[0].text.as_str(), bank.questions[0].category.as_str()), ("Year? ", "temporal"));
    assert_eq!((bank.questions[3].question_id.as_str(), bank.questions[3].index), ("conv-1:3", 3));

    let evidence: Vec<String> = bank.gold.iter().map(|gold| gold.evidence_turns.join(" ")).collect();
    let expected =
        ["D1:1", "D1:1 D2:1", "", "D1:1 D10:2", "D1:1 D2:1", "D10:1", "D10:2", "D1:2", "D1:2", "D1:2", "D1:2", ""];
    assert_eq!(evidence, expected);
    assert_eq!(gold(3).evidence_sessions, ["D1", "D10"]);
    assert_eq!(gold(3).hidden["evidence"], json!(["D1:1; D10:2"]));
    assert!(gold(0).hidden.is_empty() && gold(1).hidden.is_empty());
    assert_eq!(
        dataset.notes(),
        [
            "conv-1:4: evidence D names no turn",
            "conv-1:7: evidence D10:19 names no turn",
            "conv-1:8: evidence D1:2 D9:9 names no turn",
        ]
    );
    for index in 9..12 {
        assert_eq!(gold(index).gold, Gold::Abstain);
    }
    assert_eq!(
        serde_json::to_value(&gold(10).hidden).expect("JSON"),
        json!({ "answer": "No", "adversarial_answer": "Yes" })
    );
    assert_eq!(serde_json::to_value(&gold(9).hidden).expect("JSON"), json!({ "adversarial_answer": "a hat" }));
}

#[test]
fn outlines_agree_with_banks() {
    let dataset = open_odd();
    let (outline, bank) = (dataset.outline(0).expect("an outline"), dataset.bank(0).expect("a bank"));
    assert_eq!((outline.bank_id.as_str(), outline.entries, outline.turns), ("conv-1", 5, 6));
    let ids: Vec<_> = bank.questions.iter().map(|q| (&q.question_id, &q.category)).collect();
    assert_eq!(outline.questions.iter().map(|q| (&q.question_id, &q.category)).collect::<Vec<_>>(), ids);
    let error = dataset.bank(2).expect_err("two banks only").to_string();
    insta::assert_snapshot!(error, @"dataset 'locomo' has 2 banks, so there is no bank 2");
}

#[test]
fn another_checksum_is_refused_or_marked() {
    let text = odd_file().to_string();
    let Err(DatasetError::NotPublished { found, expected, .. }) = open_text(&text, false) else {
        panic!("not refused")
    };
    assert_eq!(
        (found.as_str(), expected.as_str()),
        (&*format!("sha256 is {}", checksum::of_bytes(text.as_bytes())), manifest().files[0].sha256s[0].as_str())
    );
    let dataset = open_text(&text, true).expect("allowed");
    assert!(dataset.is_modified());
    assert_eq!(dataset.sha256(), checksum::of_bytes(text.as_bytes()));
}

#[test]
fn settings_are_refused() {
    let options = OpenOptions { settings: BTreeMap::from([("seed".to_owned(), json!(1))]), ..Default::default() };
    let error = open(&options).err().expect("no settings").to_string();
    insta::assert_snapshot!(error, @"dataset 'locomo' has no setting 'seed': it has none; remove it");
}

#[test]
fn broken_files_are_located() {
    let broken = |change: &dyn Fn(&mut Value)| {
        let mut file = odd_file();
        change(&mut file);
        let error = open_text(&file.to_string(), true).err().expect("broken");
        let DatasetError::Broken { path, place, problem } = error else { panic!("{error}") };
        assert!(path.ends_with("file.json"));
        // the column depends on the order of keys, which is not this test's subject
        let field = place.split_once("field ").expect("a field").1;
        format!("{field}: {problem}")
    };
    let at = |path: &'static str, value: Value| {
        broken(&move |file| *file.pointer_mut(path).expect("a place") = value.clone())
    };
    insta::assert_snapshot!(at("/0/qa/3/category", json!(6)), @"[0].qa[3].category: category 6 is not one of 1 to 5");
    insta::assert_snapshot!(at("/0/qa/3/answer", json!([1])), @"[0].qa[3].answer: invalid type: sequence, expected a string or a number");
    insta::assert_snapshot!(at("/0/conversation/session_2/0/text", json!(null)), @"[0].conversation.session_2[0].text: invalid type: null, expected a string");
    insta::assert_snapshot!(at("/1/sample_id", json!("conv-1")), @"[1].sample_id: sample_id 'conv-1' is there twice");
    insta::assert_snapshot!(at("/0/conversation/session_1/1/dia_id", json!("D1:1")), @"[0].conversation.session_1: dia_id 'D1:1' is there twice");
    let without = |path: &'static str, key: &'static str| {
        broken(&move |file| {
            file.pointer_mut(path).and_then(Value::as_object_mut).expect("an object").remove(key);
        })
    };
    insta::assert_snapshot!(without("/0/qa/5", "answer"), @"[0].qa[5].answer: missing, and the category is not 5");
    insta::assert_snapshot!(without("/0/conversation", "speaker_b"), @"[0].conversation: missing field `speaker_b`");
    let cut = open_text("[{\"sample_id\": \"x\",\n \"qa\": [", true).err().expect("cut off").to_string();
    insta::assert_snapshot!(cut.split_once(": ").expect("a path").1, @"line 2, column 8, field [0].qa: EOF while parsing a list");
}

proptest::proptest! {
    /// No content makes the loader panic.
    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(proptest::arbitrary::any::<u8>(), 0..200)) {
        let _ = json::<Vec<Sample>>("f", &bytes);
    }

    /// A file cut off anywhere is an error with a place.
    #[test]
    fn any_cut_is_an_error(cut in 0_usize..3000) {
        let text = odd_file().to_string();
        let end = (0..=cut.min(text.len() - 1)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        let error = open_text(&text[..end], true).err().expect("cut off").to_string();
        proptest::prop_assert!(error.contains("line 1, column"), "{}", error);
    }
}

/// What is written reads back the same, also for the oddities (but for raw evidence, which is repaired by then).
#[test]
fn written_banks_read_back() {
    let dataset = open_odd();
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("again.json");
    let (bytes, sha256) = write::write(&*dataset, &path).expect("write");
    assert_eq!(checksum::of_file(&path).expect("hash"), (bytes, sha256));
    let again = open(&OpenOptions { path: Some(path), allow_modified: true, ..Default::default() }).expect("reads");
    for bank in 0..2 {
        let mut expected = dataset.bank(bank).expect("a bank");
        for gold in &mut expected.gold {
            gold.hidden.remove("evidence");
        }
        assert_eq!(again.bank(bank).expect("a bank"), expected);
    }
    assert_eq!(again.notes(), [""; 0]);
}

/// The published file, which is not part of this project; nothing, said loudly, where it is not at hand.
fn published() -> Option<PathBuf> {
    let default = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared"));
    let folder = std::env::var_os("BENCH_REFERENCE_DIR").map_or(default, PathBuf::from);
    let path = folder.join("data/locomo/locomo10.json");
    if !path.is_file() {
        eprintln!("NOT TESTED: the published LoCoMo is not at {}; set BENCH_REFERENCE_DIR", path.display());
        return None;
    }
    Some(path)
}

#[test]
fn the_published_file_is_read_whole() {
    let Some(path) = published() else { return };
    let dataset = open(&OpenOptions { path: Some(path), ..Default::default() }).expect("the published file");
    assert!(!dataset.is_modified());
    assert_eq!((dataset.sha256(), dataset.bank_count()), (manifest().files[0].sha256s[0].as_str(), 10));
    let banks: Vec<Bank> = (0..10).map(|bank| dataset.bank(bank).expect("a bank")).collect();

    let ids: Vec<&str> = banks.iter().map(|bank| bank.content.bank_id.as_str()).collect();
    let expected = [26, 30, 41, 42, 43, 44, 47, 48, 49, 50].map(|number| format!("conv-{number}"));
    assert_eq!(ids, expected);
    let counts: Vec<usize> = banks.iter().map(|bank| bank.content.entries.len()).collect();
    assert_eq!(counts, [19, 19, 32, 29, 29, 28, 31, 30, 25, 30]);
    let turns = |bank: &Bank| bank.content.entries.iter().map(StreamEntry::turns).sum::<usize>();
    let counts: Vec<usize> = banks.iter().map(turns).collect();
    assert_eq!(counts, [419, 369, 663, 629, 680, 675, 689, 681, 509, 568]);
    for (category, expected) in &manifest().categories {
        let found = banks.iter().flat_map(|bank| &bank.questions).filter(|q| q.category == *category).count();
        assert_eq!(found as u64, *expected, "{category}");
    }

    let all_sessions: Vec<&Session> = banks.iter().flat_map(sessions).collect();
    assert_eq!(all_sessions.len(), 272);
    assert!(all_sessions.iter().all(|session| session.time.is_some()), "every date is read");
    for bank in &banks {
        assert!(sessions(bank).is_sorted_by_key(|session| session.time.clone()), "dates never go back");
        for session in sessions(bank) {
            for (index, turn) in session.turns.iter().enumerate() {
                assert_eq!(turn.id, format!("{}:{}", session.id, index + 1));
                assert!(bank.content.speakers.contains(&turn.speaker));
            }
        }
    }
    let captions = all_sessions.iter().flat_map(|session| &session.turns).filter(|turn| turn.caption.is_some()).count();
    assert_eq!(captions, 1_226);
}

#[test]
fn the_published_oddities_are_repaired() {
    let Some(path) = published() else { return };
    let dataset = open(&OpenOptions { path: Some(path), ..Default::default() }).expect("the published file");
    let banks: Vec<Bank> = (0..10).map(|bank| dataset.bank(bank).expect("a bank")).collect();
    let find = |id: &str| banks.iter().flat_map(|bank| &bank.gold).find(|gold| gold.question_id == id).expect("an id");

    assert_eq!(
        dataset.notes(),
        [
            "conv-42:58: evidence D10:19 names no turn",
            "conv-42:88: evidence D names no turn",
            "conv-47:38: evidence D4:36 names no turn",
        ]
    );
    let repaired: Vec<(&str, String)> = banks
        .iter()
        .flat_map(|bank| &bank.gold)
        .filter(|gold| gold.hidden.contains_key("evidence"))
        .map(|gold| (gold.question_id.as_str(), gold.evidence_turns.join(" ")))
        .collect();
    assert_eq!(repaired.len(), 9, "{repaired:?}");
    let evidence = |id: &str| find(id).evidence_turns.join(" ");
    assert!(evidence("conv-26:37").contains("D8:6 D9:17"));
    assert!(evidence("conv-43:18").contains("D11:26"));
    assert!(evidence("conv-49:31").contains("D9:1 D4:4 D4:6"));
    assert!(evidence("conv-49:38").contains("D22:1 D22:2 D9:10 D9:11"));
    assert!(evidence("conv-49:46").contains("D21:18 D21:22 D11:15 D11:19"));
    assert!(evidence("conv-50:69").contains("D30:5"));
    for id in ["conv-26:30", "conv-26:46", "conv-50:39", "conv-50:42"] {
        assert_eq!(evidence(id), "", "{id}");
    }
    let repeats = banks
        .iter()
        .flat_map(|bank| &bank.gold)
        .any(|gold| gold.evidence_turns.iter().collect::<HashSet<_>>().len() != gold.evidence_turns.len());
    assert!(!repeats);

    let numbers: Vec<(&str, String)> = banks
        .iter()
        .flat_map(|bank| &bank.gold)
        .filter(|gold| matches!(gold.gold, Gold::Number(_)))
        .map(|gold| (gold.question_id.as_str(), gold.gold.text()))
        .collect();
    let expected = [("1", "2022"), ("26", "2022"), ("40", "2"), ("49", "2022"), ("72", "2022"), ("75", "3")];
    let expected: Vec<_> = expected.map(|(index, text)| (format!("conv-26:{index}"), text)).into();
    assert_eq!(numbers.len(), 6);
    assert!(numbers.iter().zip(&expected).all(|(found, (id, text))| found.0 == id && found.1 == *text), "{numbers:?}");

    let abstain = || banks.iter().flat_map(|bank| &bank.gold).filter(|gold| gold.gold == Gold::Abstain);
    assert_eq!(abstain().count(), 446);
    assert!(abstain().all(|gold| gold.hidden.contains_key("adversarial_answer")));
    let no: Vec<&str> =
        abstain().filter(|gold| gold.hidden.contains_key("answer")).map(|gold| gold.question_id.as_str()).collect();
    assert_eq!(no, ["conv-26:167", "conv-26:178"]);
    assert_eq!(find("conv-26:167").hidden["answer"], json!("No"));

    // texts repeat inside conversations, ids never do
    let repeated = |bank: &Bank| {
        bank.questions.len() - bank.questions.iter().map(|question| &question.text).collect::<HashSet<_>>().len()
    };
    let counts: Vec<usize> = banks.iter().map(repeated).collect();
    assert_eq!(counts, [0, 1, 0, 0, 0, 0, 0, 11, 0, 0]);
    let question =
        |id: &str| banks.iter().flat_map(|bank| &bank.questions).find(|q| q.question_id == id).expect("an id");
    assert!(question("conv-30:22").text.ends_with(' ') && find("conv-30:37").gold.text().starts_with(' '));
}

/// LoCoMo's profile is not written into specs, so that they and their fingerprints stay what they were. When this fails and the
/// change is meant, new runs of LoCoMo store their profile and differ from older ones.
#[test]
fn the_profile_is_the_one_that_stored_runs_imply() {
    let profile = &crate::find("locomo").expect("registered").profile;
    assert_eq!(*profile, bench_proto::profile::Profile::implied());
}
