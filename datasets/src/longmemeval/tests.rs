//! Real records where they are at hand, and files of our own with every quirk.

use std::{
    collections::BTreeMap,
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use bench_grading::{
    judging::official,
    scorers::{
        ScoreCase, registry,
        self_check::{conversation_text, self_check},
    },
};
use bench_proto::{
    dataset::{Gold, GoldRecord, Session, StreamEntry},
    profile::Profile,
};
use serde_json::{Value, json};

use super::*;
use crate::Manifest;

fn ours(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/longmemeval").join(name)
}

/// A file of the reference folder, unpacked; `None`, loudly, on machines without it.
fn reference(name: &str) -> Option<tempfile::NamedTempFile> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared");
    let dir = std::env::var_os("BENCH_REFERENCE_DIR").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    if !dir.is_dir() {
        eprintln!("NOT TESTED: no reference data at {} (set BENCH_REFERENCE_DIR)", dir.display());
        return None;
    }
    let packed = fs::read(dir.join("data/longmemeval").join(name)).expect("the reference folder holds it");
    let mut content = packed.clone();
    if name.ends_with(".gz") {
        content.clear();
        flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut content).expect("unpacks");
    }
    Some(written(&content))
}

#[test]
fn the_authors_prompts_have_their_places_in_the_profile() {
    let mut profile: Profile = toml::from_str(PROFILE).expect("a profile");
    let missing = official::take("{}", &mut profile).expect_err("no prompts");
    assert_eq!(missing, official::OfficialError::Missing("standard"), "all five rubrics are there");
}

fn written(content: &[u8]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("temporary file");
    fs::write(file.path(), content).expect("writes");
    file
}

fn json_of(path: &Path) -> Vec<Value> {
    serde_json::from_slice(&fs::read(path).expect("is there")).expect("is a list")
}

/// All banks, each held to its outline and to what must hold for every one.
fn banks(path: &Path, holds: Holds) -> (Vec<Bank>, Vec<String>) {
    let (opened, notes) = Haystacks::open(path, holds, false).unwrap_or_else(|error| panic!("{error}"));
    let notes = notes.lines();
    let banks: Vec<Bank> = (0..opened.file.len()).map(|index| opened.bank(index).expect("a bank")).collect();
    assert_eq!(banks.iter().map(Bank::outline).collect::<Vec<_>>(), opened.outlines);
    let records = json_of(path);
    assert_eq!(records.len(), banks.len());
    for (bank, record) in banks.iter().zip(&records) {
        nothing_tells(bank, record);
        in_order_of_time(bank);
    }
    (banks, notes)
}

/// What leaves the harness holds no id of the file and no label.
fn nothing_tells(bank: &Bank, record: &Value) {
    let mut question = serde_json::to_value(&bank.questions[0]).expect("JSON");
    question.as_object_mut().expect("an object").remove("question_id");
    let seen = format!("{} {question}", serde_json::to_string(&bank.content).expect("JSON"));
    let id = record["question_id"].as_str().expect("an id");
    let ids = record["haystack_session_ids"].as_array().expect("ids").iter().filter_map(Value::as_str);
    for told in ids.chain([id, "has_answer", "answer_session", "_abs"]) {
        assert!(!seen.contains(told), "{id}: {told} is seen");
    }
    assert_eq!(bank.questions[0].shown_id(), bank.content.bank_id);
}

fn in_order_of_time(bank: &Bank) {
    let times: Vec<_> = sessions(bank).iter().map(|session| session.time.as_deref()).collect();
    assert!(times.contains(&None) || times.is_sorted(), "{}: {times:?}", bank.questions[0].question_id);
}

fn sessions(bank: &Bank) -> Vec<&Session> {
    fn session(entry: &StreamEntry) -> &Session {
        match entry {
            StreamEntry::Session(session) => session,
            other => panic!("no session: {other:?}"),
        }
    }
    bank.content.entries.iter().map(session).collect()
}

fn turns(bank: &Bank) -> usize {
    sessions(bank).iter().map(|session| session.turns.len()).sum()
}

fn by_id<'a>(banks: &'a [Bank], id: &str) -> (&'a Bank, &'a GoldRecord) {
    let bank = banks.iter().find(|bank| bank.gold[0].question_id == id).expect("is there");
    (bank, &bank.gold[0])
}

/// Questions and abstentions of each type.
fn counts<'a>(questions: impl Iterator<Item = (&'a str, bool)>) -> BTreeMap<&'a str, (u32, u32)> {
    let mut counts = BTreeMap::new();
    for (kind, is_abstention) in questions {
        let (all, abstentions): &mut (u32, u32) = counts.entry(kind).or_default();
        *all += 1;
        *abstentions += u32::from(is_abstention);
    }
    counts
}

/// Of the 500 questions in all files.
fn published_counts() -> BTreeMap<&'static str, (u32, u32)> {
    BTreeMap::from([
        ("single-session-user", (70, 6)),
        ("single-session-assistant", (56, 0)),
        ("single-session-preference", (30, 0)),
        ("multi-session", (133, 12)),
        ("temporal-reasoning", (133, 6)),
        ("knowledge-update", (78, 6)),
    ])
}

#[test]
fn quirks_of_whole_haystacks_are_survived() {
    let (banks, notes) = banks(&ours("whole.json"), Holds::Everything);
    insta::assert_snapshot!(notes.join("\n"), @r"
    date that cannot be read, kept as a text (1): gpt4_5e6f7081 haystack_dates[1] 'some day in March'
    empty haystack, asked of an empty memory (1): 8192a3b4_abs
    evidence that names no session (1): 4d5e6f70 answer_33cc44dd_4
    session id twice in a haystack, kept apart (1): 1a2b3c4d sharegpt_Kq1_0 [0] [3]
    session in which one side speaks (3): 2b3c4d5e [1], 6f708192 [3], 6f708192 [4]
    session that the assistant begins (2): 1a2b3c4d_abs [2], 2b3c4d5e [0]
    session without turns, left out (1): 6f708192 [2]
    ");
    let (bank, gold) = by_id(&banks, "1a2b3c4d");
    assert_eq!((sessions(bank).len(), turns(bank)), (4, 10));
    assert_eq!(bank.content.bank_id, crate::neutral::id("1a2b3c4d"));
    assert_eq!(
        (&gold.evidence_turns[..], &gold.evidence_sessions[..]),
        (&["S2:3".to_owned()][..], &["S2".to_owned()][..])
    );
    assert_eq!(gold.original_sessions(), BTreeMap::from([("S2".to_owned(), "answer_5f6a7b8c".to_owned())]));
    let question = &bank.questions[0];
    assert_eq!((question.time.as_deref(), question.ask_after), (Some("2024-03-09T18:30:00"), 4));
    assert_eq!(question.time_text.as_deref(), Some("2024/03/09 (Sat) 18:30"));

    // asked before the last session of its day
    let (bank, gold) = by_id(&banks, "1a2b3c4d_abs");
    assert!(matches!(&gold.gold, Gold::Unanswerable(text) if text.starts_with("You did not say")));
    assert_eq!((gold.facets["abstention"].as_str(), bank.questions[0].ask_after), ("yes", 3));
    assert_eq!(bank.questions[0].category, "single-session-user");

    let (_, gold) = by_id(&banks, "2b3c4d5e");
    assert_eq!(gold.evidence_turns, ["S1:3"]);
    assert_eq!((&gold.hidden["official_turns"], &gold.hidden["official_sessions"]), (&json!([]), &json!([])));
    let (_, gold) = by_id(&banks, "3c4d5e6f");
    assert!(matches!(&gold.gold, Gold::Rubric(lines) if lines.len() == 1));

    let (_, gold) = by_id(&banks, "4d5e6f70");
    assert_eq!((&gold.gold, gold.gold.text().as_str()), (&Gold::Number(5.into()), "5"));
    assert_eq!(gold.evidence_turns, ["S1:1", "S3:1"]);
    assert_eq!(gold.evidence_sessions, ["S1", "S3", "S4"], "one is listed and has no labelled turn");
    assert_eq!(gold.hidden["official_sessions"], json!(["S1", "S3"]));

    // a time that cannot be read keeps the order of the file
    let (bank, gold) = by_id(&banks, "gpt4_5e6f7081");
    let times: Vec<_> = sessions(bank).iter().map(|session| session.time.as_deref()).collect();
    assert_eq!(times, [Some("2024-03-19T15:00:00"), None, Some("2024-03-28T15:00:00")]);
    assert_eq!(sessions(bank)[1].time_text.as_deref(), Some("some day in March"));
    assert_eq!(gold.evidence_turns, ["S1:1", "S3:1"]);

    // in the file the newest comes first, and one has no turns
    let (bank, gold) = by_id(&banks, "6f708192");
    assert_eq!((sessions(bank).len(), turns(bank)), (4, 7));
    assert_eq!(gold.evidence_sessions, ["S1", "S4"]);
    assert_eq!(gold.hidden["session_ids"], json!({"S1": "answer_7788_1", "S4": "answer_7788_2"}));

    let (_, gold) = by_id(&banks, "708192a3_abs");
    assert_eq!(
        (&gold.evidence_sessions[..], &gold.evidence_turns[..]),
        (&["S1".to_owned(), "S2".to_owned()][..], &["S1:1".to_owned()][..])
    );
    let (bank, gold) = by_id(&banks, "8192a3b4_abs");
    assert_eq!((bank.content.entries.len(), bank.questions[0].ask_after, gold.evidence_sessions.len()), (0, 0, 0));
}

#[test]
fn evidence_alone_is_ordered_by_time() {
    let (banks, notes) = banks(&ours("evidence.json"), Holds::Evidence);
    assert_eq!(notes, Vec::<String>::new());
    let (bank, gold) = by_id(&banks, "6f708192");
    let times: Vec<_> = sessions(bank).iter().map(|session| session.time.as_deref()).collect();
    assert_eq!(times, [Some("2024-04-01T08:15:00"), Some("2024-04-01T09:30:00")]);
    assert_eq!(gold.hidden["session_ids"], json!({"S1": "answer_7788_1", "S2": "answer_7788_2"}));
}

/// The first error of a file of ours in which one record was changed.
fn refused(name: &str, holds: Holds, change: impl FnOnce(&mut Vec<Value>)) -> String {
    let mut records = json_of(&ours(name));
    change(&mut records);
    let file = written(&serde_json::to_vec_pretty(&records).expect("JSON"));
    let error = Haystacks::open(file.path(), holds, false).expect_err("is refused").to_string();
    error.replace(&file.path().display().to_string(), "FILE")
}

#[test]
fn broken_records_are_refused_with_file_record_and_field() {
    let whole = |change: fn(&mut Value)| refused("whole.json", Holds::Everything, |records| change(&mut records[2]));
    insta::assert_snapshot!(whole(|record| drop(record["haystack_dates"].as_array_mut().map(Vec::pop))), @"FILE: record 3 from line 146, field haystack_dates: has 1 entries, haystack_sessions has 2 (question 2b3c4d5e)");
    insta::assert_snapshot!(whole(|record| drop(record["haystack_session_ids"].as_array_mut().map(Vec::pop))), @"FILE: record 3 from line 146, field haystack_session_ids: has 1 entries, haystack_sessions has 2 (question 2b3c4d5e)");
    insta::assert_snapshot!(whole(|record| drop(record["haystack_sessions"].as_array_mut().map(Vec::pop))), @"FILE: record 3 from line 146, field haystack_dates: has 2 entries, haystack_sessions has 1 (question 2b3c4d5e)");
    insta::assert_snapshot!(whole(|record| record["question_type"] = json!("abstention")), @"FILE: record 3 from line 146, field question_type: 'abstention' is none of single-session-user, single-session-assistant, single-session-preference, multi-session, temporal-reasoning, knowledge-update (question 2b3c4d5e)");
    insta::assert_snapshot!(whole(|record| record["question_id"] = json!("1a2b3c4d")), @"FILE: record 3 from line 146, field question_id: '1a2b3c4d' is there twice");
    insta::assert_snapshot!(whole(|record| record["answer"] = Value::Null), @"FILE: record 3 from line 146, field answer: is missing, and the question is no abstention (_abs) (question 2b3c4d5e)");
    insta::assert_snapshot!(whole(|record| record["answer"] = json!(["Venus"])), @"FILE: record 3, line 148, column 6, field answer: invalid type: sequence, expected a string or a number");
    insta::assert_snapshot!(whole(|record| record["question"] = json!(" ")), @"FILE: record 3 from line 146, field question: is empty (question 2b3c4d5e)");
    insta::assert_snapshot!(whole(|record| record["haystack_sessions"][1][0]["content"] = json!(7)), @"FILE: record 3, line 179, column 22, field haystack_sessions[1][0].content: invalid type: integer `7`, expected a string");
    insta::assert_snapshot!(whole(|record| drop(record.as_object_mut().map(|fields| fields.remove("question_date")))), @"FILE: record 3, line 187, column 3: missing field `question_date`");
}

#[test]
fn mixtures_of_two_files_are_refused() {
    let evidence = json_of(&ours("evidence.json"));
    insta::assert_snapshot!(refused("whole.json", Holds::Everything, |records| records[4] = evidence[3].clone()), @"FILE: record 5 from line 231, field haystack_session_ids: are the evidence alone, as in longmemeval@oracle, where a whole haystack is expected (question 4d5e6f70)");
    insta::assert_snapshot!(refused("evidence.json", Holds::Evidence, |records| records[1] = json_of(&ours("whole.json"))[6].clone()), @"FILE: record 2 from line 42, field haystack_session_ids: are more than the evidence, as in longmemeval@s, where it alone is expected (question 6f708192)");
    // the session dates of one, the question of the other
    let dates = evidence[1]["haystack_dates"].clone();
    insta::assert_snapshot!(refused("whole.json", Holds::Everything, |records| {
        for (from, to) in [(0, 0), (1, 1)] {
            records[6]["haystack_dates"][to] = dates[from].clone();
        }
    }), @"FILE: record 7 from line 361, field haystack_dates[0]: is of a later day than question_date: dates of longmemeval@s and longmemeval@oracle must not be mixed (question 6f708192)");
    insta::assert_snapshot!(refused("evidence.json", Holds::Evidence, |records| records[1]["question_date"] = json!("2024/03/25 (Mon) 22:00")), @"FILE: record 2 from line 42, field haystack_dates[0]: is of a later day than question_date: dates of longmemeval@s and longmemeval@oracle must not be mixed (question 6f708192)");
    // a published file is what it is
    assert!(Haystacks::open(&ours("evidence.json"), Holds::Everything, true).is_ok());
}

#[test]
fn longmemeval_s_real_1() {
    let Some(file) = reference("longmemeval_s_real_1.json") else { return };
    let (banks, notes) = banks(file.path(), Holds::Everything);
    let (bank, gold) = by_id(&banks, "2788b940");
    assert_eq!((banks.len(), sessions(bank).len(), turns(bank)), (1, 47, 475));
    assert_eq!((&gold.gold, gold.gold.text().as_str()), (&Gold::Number(5.into()), "5"));
    assert_eq!(bank.questions[0].category, "multi-session");
    assert_eq!(bank.questions[0].time.as_deref(), Some("2023-05-30T20:00:00"));
    assert_eq!((gold.evidence_turns.len(), gold.evidence_sessions.len()), (5, 4));
    assert_eq!(gold.hidden["official_sessions"], json!(gold.evidence_sessions), "all labelled turns are the user's");
    let originals = &gold.hidden["session_ids"];
    for (session, time) in [(1, "2023/05/20 (Sat) 10:20"), (3, "2023/05/29 (Mon) 11:35"), (2, "2023/05/30 (Tue) 10:51")]
    {
        let id = format!("answer_8f6b938d_{session}");
        let (neutral, _) =
            originals.as_object().expect("ids").iter().find(|(_, own)| **own == json!(id)).expect("is there");
        let found = sessions(bank).into_iter().find(|session| session.id == *neutral).expect("is in the stream");
        assert_eq!(found.time_text.as_deref(), Some(time));
    }
    let first = sessions(bank).iter().filter(|session| session.turns[0].speaker == "assistant").count();
    assert_eq!(first, 7);
    assert!(notes.iter().all(|note| note.starts_with("session ")), "{notes:?}");
    // the same with the dates of the other file
    let mut records = json_of(file.path());
    records[0]["question_date"] = json!("2023/05/28 (Sun) 03:47");
    let mixed = written(&serde_json::to_vec(&records).expect("JSON"));
    let error = Haystacks::open(mixed.path(), Holds::Everything, false).expect_err("is a mixture").to_string();
    assert!(error.contains("record 1 from line 1, field haystack_dates["), "{error}");
}

#[test]
fn oracle_real_2() {
    let Some(file) = reference("longmemeval_oracle_real_2.json") else { return };
    let (banks, notes) = banks(file.path(), Holds::Evidence);
    assert_eq!((banks.len(), banks.iter().map(turns).sum::<usize>(), notes.len()), (2, 48, 0));
    let (bank, gold) = by_id(&banks, "6a1eabeb");
    assert_eq!(gold.gold, Gold::Text("25 minutes and 50 seconds (or 25:50)".to_owned()));
    assert_eq!((gold.facets["abstention"].as_str(), sessions(bank).len(), gold.evidence_turns.len()), ("no", 2, 2));
    let (bank, gold) = by_id(&banks, "gpt4_70e84552_abs");
    assert!(
        matches!(&gold.gold, Gold::Unanswerable(text) if text.starts_with("The information provided is not enough"))
    );
    assert_eq!(
        (gold.facets["abstention"].as_str(), bank.questions[0].category.as_str()),
        ("yes", "temporal-reasoning")
    );
    assert_eq!((gold.evidence_sessions.len(), gold.evidence_turns.len()), (2, 1), "two are listed, one is labelled");
    assert_eq!(gold.hidden["official_sessions"].as_array().map(Vec::len), Some(1));
    let refused = Haystacks::open(file.path(), Holds::Everything, false).expect_err("is another variant").to_string();
    assert!(refused.contains("longmemeval@oracle"), "{refused}");
}

#[test]
fn oracle_rebuilt_16() {
    let Some(file) = reference("longmemeval_oracle_rebuilt_16.json") else { return };
    let (banks, notes) = banks(file.path(), Holds::Evidence);
    let size = (
        banks.len(),
        banks.iter().map(|bank| sessions(bank).len()).sum::<usize>(),
        banks.iter().map(turns).sum::<usize>(),
    );
    assert_eq!((size, notes.len()), ((16, 26, 306), 0), "{notes:?}");
    let labelled = |of: fn(&GoldRecord) -> usize| banks.iter().map(|bank| of(&bank.gold[0])).sum::<usize>();
    assert_eq!(labelled(|gold| gold.evidence_turns.len()), 28);
    assert_eq!(labelled(|gold| gold.hidden["official_turns"].as_array().map_or(0, Vec::len)), 26);
    assert_eq!(labelled(|gold| usize::from(matches!(gold.gold, Gold::Number(_)))), 1);
    assert_eq!(labelled(|gold| usize::from(matches!(gold.gold, Gold::Rubric(_)))), 3);
    // the file is not in order of time: here the one that it has first is the later one
    let (bank, gold) = by_id(&banks, "gpt4_2c50253f");
    assert_eq!(sessions(bank)[0].time.as_deref(), Some("2023-05-30T03:52:00"));
    assert_eq!(gold.hidden["session_ids"]["S2"], json!("answer_9af4e346_1"));
}

#[test]
fn evidence_turns_500() {
    let Some(file) = reference("longmemeval_evidence_turns_500.json.gz") else { return };
    let (banks, notes) = banks(file.path(), Holds::Evidence);
    let questions =
        banks.iter().map(|bank| (bank.questions[0].category.as_str(), bank.gold[0].facets["abstention"] == "yes"));
    assert_eq!(counts(questions), published_counts());
    let empty: Vec<_> = banks.iter().filter(|bank| bank.content.entries.is_empty()).collect();
    assert_eq!(empty.len(), 21);
    assert!(empty.iter().all(|bank| bank.gold[0].facets["abstention"] == "yes" && bank.questions[0].ask_after == 0));
    let note = notes.iter().find(|note| note.starts_with("empty haystack")).expect("is told");
    assert!(note.contains("(21)") && note.ends_with("and 1 more"), "{note}");
    let labelled: usize = banks.iter().map(|bank| bank.gold[0].evidence_turns.len()).sum();
    let of_user = |bank: &&Bank| bank.gold[0].hidden["official_turns"].as_array().map_or(0, Vec::len);
    assert_eq!((labelled, banks.iter().map(|bank| of_user(&bank)).sum::<usize>()), (896, 842));
    // those that the authors' retrieval figures count
    let counted = banks.iter().filter(|bank| bank.gold[0].facets["abstention"] == "no" && of_user(bank) > 0);
    assert_eq!(counted.count(), 419);
    assert_eq!(banks.iter().filter(|bank| matches!(bank.gold[0].gold, Gold::Number(_))).count(), 32);

    // by every gold the scorers of the manifest pass the check that runs before a run
    let profile: Profile = toml::from_str(PROFILE).expect("a profile");
    let [manifest, ..] = &Manifest::read(MANIFEST).expect("manifests")[..] else { panic!("a manifest") };
    for name in &manifest.scorers {
        let scorer = registry::find(name).expect("is known");
        let cases = banks.iter().map(|bank| {
            let case = ScoreCase::unanswered(&profile, &bank.questions[0], &bank.gold[0]);
            (conversation_text(&bank.content), [case])
        });
        let checked = self_check(scorer, cases);
        assert_eq!(checked.reasons(), Vec::<String>::new(), "{name}");
        assert!(checked.checked > 400, "{name}: {}", checked.checked);
    }
}

/// The questions without their haystacks are no dataset; what they say is what the other file says.
#[test]
fn s_questions_500() {
    let Some(file) = reference("longmemeval_s_questions_500.json.gz") else { return };
    let questions = json_of(file.path());
    let kinds = questions.iter().map(|question| {
        let text = |field: &str| question[field].as_str().expect("a text");
        (text("question_type"), text("question_id").contains("_abs"))
    });
    assert_eq!(counts(kinds), published_counts());
    let error = Haystacks::open(file.path(), Holds::Everything, false).expect_err("no haystacks").to_string();
    assert!(error.contains("record 1, line ") && error.contains("missing field `question_date`"), "{error}");
    let Some(with_evidence) = reference("longmemeval_evidence_turns_500.json.gz") else { return };
    let (banks, _) = banks(with_evidence.path(), Holds::Evidence);
    for question in &questions {
        let (bank, gold) = by_id(&banks, question["question_id"].as_str().expect("an id"));
        assert_eq!(json!(bank.questions[0].text), question["question"]);
        let answer = question["answer"].as_str().map_or_else(|| question["answer"].to_string(), str::to_owned);
        assert_eq!(gold.gold.text(), answer, "{}", gold.question_id);
        assert_eq!(
            matches!(gold.gold, Gold::Number(_)),
            question["answer"].is_number() && gold.facets["abstention"] == "no"
        );
        let labelled = question["answer_session_ids_with_labelled_turn"].as_array().map(Vec::len);
        assert_eq!(labelled, Some(gold.evidence_sessions.len()), "{}", gold.question_id);
    }
}

#[test]
fn s_abstention_first_12_sessions_4() {
    let Some(file) = reference("longmemeval_s_abstention_first12sessions_4.json") else { return };
    let (banks, _) = banks(file.path(), Holds::Everything);
    assert_eq!((banks.len(), banks.iter().map(turns).sum::<usize>()), (4, 458));
    for bank in &banks {
        assert_eq!((sessions(bank).len(), bank.gold[0].facets["abstention"].as_str()), (12, "yes"));
        assert!(matches!(&bank.gold[0].gold, Gold::Unanswerable(text) if text.starts_with("You did not mention")));
        assert!(bank.gold[0].evidence_sessions.is_empty() && bank.gold[0].evidence_turns.is_empty());
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
    #[test]
    fn a_damaged_file_is_an_error_or_a_dataset(
        at in 0_usize..9_400,
        cut in 0_usize..60,
        put in proptest::collection::vec(proptest::sample::select(b"[]{},:\" \\0nx\xFF".to_vec()), 0..5),
    ) {
        let mut content = fs::read(ours("whole.json")).expect("is there");
        content.splice(at..at + cut, put);
        let file = written(&content);
        if let Ok((opened, _)) = Haystacks::open(file.path(), Holds::Everything, false) {
            for index in 0..opened.file.len() {
                // what was outlined is what is read; a broken escape in a long text may show only then
                if let Ok(bank) = opened.bank(index) {
                    proptest::prop_assert_eq!(bank.outline(), opened.outlines[index].clone());
                }
            }
        }
    }
}
