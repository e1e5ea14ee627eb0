use std::collections::HashSet;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::reference;

const QUESTIONS: &str = include_str!("../../testdata/personamem/small_questions.csv");
const OLDER: &str = include_str!("../../testdata/personamem/small_questions_older.csv");
const CONTEXTS: &str = include_str!("../../testdata/personamem/small_contexts.jsonl");

/// The banks in the order in which questions name their contexts, those of a bank in the order of the table, and the notes.
fn banks(
    (path, questions): (&str, &[u8]),
    (contexts_path, contexts): (&str, &[u8]),
) -> Result<(Vec<Bank>, Notes), DatasetError> {
    let asked = Asked::read(path, questions)?;
    let mut banks = BTreeMap::new();
    let notes = asked.each_bank(contexts_path, contexts, |number, _, bank| {
        banks.insert(number, bank);
    })?;
    Ok((banks.into_values().collect(), notes))
}

fn read(questions: &str, contexts: &str) -> Result<(Vec<Bank>, Vec<String>), DatasetError> {
    let read = banks(("questions.csv", questions.as_bytes()), ("contexts.jsonl", contexts.as_bytes()));
    read.map(|(banks, notes)| (banks, notes.lines()))
}

fn refused(questions: &str, contexts: &str) -> String {
    read(questions, contexts).expect_err("broken").to_string()
}

fn session(entry: &StreamEntry) -> &Session {
    match entry {
        StreamEntry::Session(session) => session,
        other => panic!("{other:?} is no session"),
    }
}

fn sessions(entries: &[StreamEntry]) -> Vec<&Session> {
    entries.iter().map(session).collect()
}

/// The texts of all turns that a question may be answered from.
fn seen<'a>(bank: &'a Bank, question: &Question) -> Vec<&'a str> {
    let entries = sessions(&bank.content.entries[..question.ask_after as usize]);
    entries.iter().flat_map(|session| &session.turns).map(|turn| turn.text.as_str()).collect()
}

#[test]
fn a_type_that_is_not_known_is_refused_with_its_line() {
    let profile = &crate::find("personamem@32k").expect("is registered").profile;
    let check = |table: &str| Asked::read("questions.csv", table.as_bytes()).expect("a table").check_types(profile);
    assert!(check(QUESTIONS).is_ok() && check(OLDER).is_ok());
    let unknown = QUESTIONS.replacen("recall_user_shared_facts", "recall_it_all", 1);
    let error = check(&unknown).expect_err("is refused").to_string();
    assert!(error.starts_with("questions.csv: line 2, field question_type: 'recall_it_all' is none of "), "{error}");
}

#[test]
fn blocks_are_sessions_and_questions_cut_them() {
    let (banks, notes) = read(QUESTIONS, CONTEXTS).expect("readable");
    assert_eq!(notes, ["contexts.jsonl: 1 contexts have no question and are left out"]);
    assert_eq!(banks.iter().map(|bank| bank.content.bank_id.as_str()).collect::<Vec<_>>(), ["P1", "P2"]);
    let parts: Vec<_> = sessions(&banks[0].content.entries)
        .iter()
        .map(|s| (s.id.as_str(), s.part, s.turns.iter().map(|turn| turn.id.as_str()).collect::<Vec<_>>().join(" ")))
        .collect();
    let expected = [
        ("S1", 0, "S1:1 S1:2 S1:3".to_owned()),
        ("S1", 1, "S1:4".to_owned()),
        ("S2", 0, "S2:1 S2:2 S2:3".to_owned()),
        ("S2", 1, "S2:4 S2:5".to_owned()),
    ];
    assert_eq!(parts, expected);
    assert_eq!(
        banks[0].questions.iter().map(|q| (q.question_id.as_str(), q.ask_after)).collect::<Vec<_>>(),
        [("q-one", 1), ("q-two", 3), ("q-four", 1)]
    );
    assert_eq!(banks[1].questions[0].ask_after, 1);

    let (question, gold) = (&banks[0].questions[1], &banks[0].gold[1]);
    assert_eq!(gold.gold, Gold::Choice("(c)".to_owned()));
    assert_eq!(question.choices[2], "(c) You're back at chess; a club might help.");
    assert_eq!(
        serde_json::to_value(&gold.facets).expect("JSON"),
        json!({ "topic": "hobbies", "distance_in_blocks": "2" })
    );
    assert_eq!(gold.hidden["persona_id"], json!("0"));
    assert_eq!(banks[0].questions[0].text, "What did I begin to collect,\r\nand when?");
}

/// What is read one context at a time is what the files hold, and a file that changes meanwhile is refused.
#[test]
fn contexts_are_read_one_by_one() {
    let (mut whole, _) = read(QUESTIONS, CONTEXTS).expect("readable");
    let places: Vec<Vec<u32>> = whole.iter_mut().map(neutral::hide_order).collect();
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("contexts.jsonl");
    // blank lines and marks of encoding move what comes behind them
    std::fs::write(&path, format!("\u{feff}\n{CONTEXTS}")).expect("writes");
    let asked = Asked::read("questions.csv", QUESTIONS.as_bytes()).expect("a table");
    let shown = Path::new("contexts.jsonl.gz");
    let (contexts, notes) = Contexts::open(asked, "contexts.jsonl", &path, shown).expect("readable");
    assert_eq!(
        notes.lines(),
        ["contexts.jsonl: 1 contexts have no question and are left out"],
        "no path of this machine"
    );
    for (number, bank) in whole.iter().enumerate() {
        assert_eq!(contexts.places[number].1, neutral::outline(bank, &places[number]));
        assert_eq!(contexts.bank(number).expect("reads").as_ref(), Some(bank));
    }
    assert_eq!(contexts.bank(whole.len()).expect("reads"), None);
    std::fs::write(&path, format!("\u{feff}\n{}", CONTEXTS.replace("chess", "cards"))).expect("writes");
    let error = contexts.bank(0).expect_err("another").to_string();
    assert!(error.starts_with("contexts.jsonl.gz: "), "{error}");
    assert!(error.ends_with("changed since the dataset was opened; start again"), "{error}");
}

#[test]
fn older_columns_give_the_same_questions() {
    let (mut newer, _) = read(QUESTIONS, CONTEXTS).expect("readable");
    let (older, notes) = read(OLDER, CONTEXTS).expect("readable");
    assert_eq!(notes.len(), 1);
    for gold in newer.iter_mut().flat_map(|bank| &mut bank.gold) {
        assert!(gold.hidden.remove("persona_id").is_some());
    }
    assert_eq!(newer, older);
}

#[test]
fn broken_questions_are_refused_with_line_and_field() {
    let with = |from: &str, to: &str| refused(&QUESTIONS.replacen(from, to, 1), CONTEXTS);
    assert_eq!(
        with(r#"back at chess; a club might help."", '(d)"#, r#"back at chess; a club might help."" '(d)"#),
        "questions.csv: line 2, field all_options, character 105: a comma or the ] of the list is expected"
    );
    assert_eq!(
        with("'(d) Bake.'", "'(e) Bake.'"),
        "questions.csv: line 5, field all_options: two options or more are expected that begin with (a), (b) and so on"
    );
    assert_eq!(
        with("and when?\",(a)", "and when?\",a"),
        "questions.csv: line 2, field correct_answer: 'a' is the letter of no option, such as (a)"
    );
    assert_eq!(
        with("c1,7", "c1,7.5"),
        "questions.csv: line 4, field end_index_in_shared_context: invalid digit found in string"
    );
    assert_eq!(with("c1,7", "c1,7,8"), "questions.csv: line 4: 16 fields, and the first line has 15");
    assert_eq!(
        with("c1,7", "c1,10"),
        "questions.csv: line 4, field end_index_in_shared_context: 10 is more than the 9 messages of its context"
    );
    assert_eq!(with("q-two", "q-one"), "questions.csv: line 4, field question_id: q-one is there twice");
    assert_eq!(
        with(&format!("{},4", "c2".repeat(32)), "elsewhere,4"),
        "questions.csv: line 5, field shared_context_id: elsewhere is no context of contexts.jsonl"
    );
    assert_eq!(with(",all_options,", ",options,"), "questions.csv: line 2: missing field `all_options`");
    let mut not_utf8 = QUESTIONS.as_bytes().to_vec();
    let at = QUESTIONS.find("q-two").expect("is there");
    not_utf8[at] = 0xff;
    let error = banks(("questions.csv", &not_utf8), ("contexts.jsonl", CONTEXTS.as_bytes())).expect_err("broken");
    assert_eq!(error.to_string(), "questions.csv: line 4, field question_id: is not UTF-8");
}

#[test]
fn broken_contexts_are_refused_with_line_and_field() {
    let with = |from: &str, to: &str| refused(QUESTIONS, &CONTEXTS.replacen(from, to, 1));
    let error = with("\"content\": \"User: Of seas. I gave up chess for it.\"", "\"content\": 7");
    assert!(
        error.starts_with("contexts.jsonl: line 3, column ") && error.contains("[3].content: invalid type: integer"),
        "{error}"
    );
    assert_eq!(
        with(&"c3".repeat(32), &"c1".repeat(32)),
        format!("contexts.jsonl: line 4: context {} is there twice", "c1".repeat(32))
    );
    assert_eq!(
        refused(QUESTIONS, "{\"a\": [], \"b\": []}"),
        "contexts.jsonl: line 1: an object with one key, the context's id, is expected; it has 2"
    );
}

#[test]
fn lengths_that_differ_are_noted() {
    let (_, notes) = read(&QUESTIONS.replacen(",334,", ",335,", 1), CONTEXTS).expect("readable");
    assert_eq!(notes[0], "q-two: context_length_in_letters is 335, and 334 characters come before it is asked");
}

proptest! {
    /// The end of a question is exclusive: nothing at it or behind it is in what the question may see.
    #[test]
    fn nothing_at_or_behind_a_question_comes_before_it(
        opens in prop::collection::vec(prop::bool::weighted(0.2), 1..40),
        asked in prop::collection::vec(any::<prop::sample::Index>(), 1..12),
    ) {
        let said: Vec<String> = (0..opens.len()).map(|number| format!("said {number}")).collect();
        let messages: Vec<_> = opens.iter().zip(&said)
            .map(|(opens, text)| json!({ "role": if *opens { "system" } else { "user" }, "content": text }))
            .collect();
        let ends: Vec<usize> = asked.iter().map(|index| index.index(opens.len()) + 1).collect();
        let mut table = "question_id,question_type,topic,question,correct_answer,all_options,shared_context_id,end_index_in_shared_context\r\n".to_owned();
        for (number, end) in ends.iter().enumerate() {
            table += &format!("q{number},kind,topic,why?,(a),\"['(a) x', '(b) y']\",c,{end}\r\n");
        }
        let (banks, notes) = read(&table, &json!({ "c": messages }).to_string()).expect("readable");
        prop_assert_eq!(notes, Vec::<String>::new());
        for (question, end) in banks[0].questions.iter().zip(&ends) {
            prop_assert_eq!(seen(&banks[0], question), said[..*end].iter().map(String::as_str).collect::<Vec<_>>());
        }
        // parts of a session follow each other from 0, and a system message is the first turn of a session
        let sessions = sessions(&banks[0].content.entries);
        for (before, session) in sessions.iter().zip(&sessions[1..]) {
            let follows = (session.id == before.id && session.part == before.part + 1) || (session.id != before.id && session.part == 0);
            prop_assert!(follows, "{:?} after {:?}", session, before);
        }
        for session in sessions {
            let later_turns = session.turns.iter().skip(usize::from(session.part == 0));
            prop_assert!(later_turns.map(|turn| &turn.speaker).all(|speaker| speaker == "user"));
        }
    }
}

proptest! {
    #[test]
    fn a_spoiled_file_is_read_or_refused_by_its_name(at in 0_usize..100_000, bytes in prop::collection::vec(any::<u8>(), 0..4)) {
        let questions = reference::spoiled(QUESTIONS.as_bytes(), at, &bytes);
        let contexts = reference::spoiled(CONTEXTS.as_bytes(), at, &bytes);
        for (questions, contexts) in [(questions.as_slice(), CONTEXTS.as_bytes()), (QUESTIONS.as_bytes(), contexts.as_slice())] {
            if let Err(error) = banks(("questions.csv", questions), ("contexts.jsonl", contexts)) {
                let error = error.to_string();
                prop_assert!(error.starts_with("questions.csv: line ") || error.starts_with("contexts.jsonl: line "), "{}", error);
            }
        }
    }
}

/// The published 32k data with all its counts.
#[test]
fn personamem_32k_has_its_published_counts() {
    let Some(questions) = reference::data("personamem/questions_32k.csv") else { return };
    let contexts = reference::data("personamem/shared_contexts_32k.jsonl.gz").expect("beside the questions");
    let (banks, notes) = banks(("questions_32k.csv", &questions), ("contexts", &contexts[..])).expect("readable");
    // no note: the characters before each of the 222 points are as many as the table states
    assert_eq!(notes.lines(), Vec::<String>::new());
    assert_eq!(banks.len(), 37);
    let sessions: Vec<&Session> = banks.iter().flat_map(|bank| sessions(&bank.content.entries)).collect();
    let speakers =
        |speaker: &str| sessions.iter().flat_map(|s| &s.turns).filter(|turn| turn.speaker == speaker).count();
    assert_eq!(["system", "user", "assistant"].map(speakers), [195, 3_363, 2_904]);
    assert_eq!(sessions.iter().map(|session| session.turns.len()).sum::<usize>(), 6_462);
    assert_eq!(sessions.iter().filter(|session| session.part == 0).count(), 195);

    let asked: Vec<(&Bank, &Question, &GoldRecord)> =
        banks.iter().flat_map(|bank| bank.questions.iter().zip(&bank.gold).map(move |(q, g)| (bank, q, g))).collect();
    let mut types: BTreeMap<&str, usize> = BTreeMap::new();
    let mut letters: BTreeMap<String, usize> = BTreeMap::new();
    for (_, question, gold) in &asked {
        *types.entry(&question.category).or_default() += 1;
        *letters.entry(gold.gold.text()).or_default() += 1;
    }
    let mut by_type: Vec<usize> = types.into_values().collect();
    by_type.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(by_type, [139, 129, 99, 93, 57, 55, 17]);
    assert_eq!(letters.into_values().collect::<Vec<_>>(), [143, 146, 158, 142]);
    let not_json = csv::Reader::from_reader(&questions[..])
        .records()
        .filter(|row| serde_json::from_str::<Vec<String>>(&row.as_ref().expect("a row")[12]).is_err())
        .count();
    assert_eq!((asked.len(), not_json), (589, 303));

    // counted once more without the loader's own sums
    let mut points = HashSet::new();
    for (row, at) in csv::Reader::from_reader(&questions[..]).records().zip(0..) {
        let row = row.expect("a row");
        let (bank, question, _) =
            asked.iter().find(|(_, question, _)| question.question_id == row[1]).unwrap_or_else(|| panic!("row {at}"));
        let seen = seen(bank, question);
        assert_eq!(seen.len().to_string(), row[14], "row {at}");
        assert_eq!(seen.iter().map(|text| text.chars().count()).sum::<usize>().to_string(), row[5], "row {at}");
        points.insert((bank.content.bank_id.clone(), question.ask_after));
    }
    assert_eq!(points.len(), 222);
}
