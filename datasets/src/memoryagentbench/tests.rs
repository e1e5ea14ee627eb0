use serde_json::{Value, json};

use super::*;
use crate::{lines, reference};

fn row() -> Value {
    json!({
        "context": "Here is a list of facts:\n0. The lamp stands in the hall.\n1. The lamp stands\nin the attic.\n3. Bo plays the harp.\n",
        "questions": ["Where does the lamp stand?", "What does Bo play?"],
        "answers": [["the attic", "attic"], "harp"],
        "metadata": { "source": "factconsolidation_sh_6k", "qa_pair_ids": ["a", "b"], "question_dates": ["2024-05-01", "in May"], "question_types": null, "keypoints": null },
    })
}

fn long() -> Value {
    json!({
        "context": format!("{}\n\nThe end.", "A ship came in. ".repeat(126)),
        "questions": ["Sum up."],
        "answers": [["A ship came in."]],
        "metadata": { "source": "infbench_sum", "keypoints": ["the ship"], "question_types": ["summary"], "demo": "passed over" },
    })
}

fn banks(split: &str, path: &str, content: &[u8], notes: &mut Notes) -> Result<Vec<Bank>, DatasetError> {
    super::banks(split, path, lines::objects(path, content)?, notes)
}

fn read(split: &str, text: &str) -> Result<(Vec<Bank>, Vec<String>), DatasetError> {
    let mut notes = Notes::default();
    banks(split, "rows.json", text.as_bytes(), &mut notes).map(|banks| (banks, notes.lines()))
}

fn text(entry: &StreamEntry) -> &str {
    match entry {
        StreamEntry::Memory(memory) => &memory.text,
        other => panic!("{other:?} is no memory"),
    }
}

fn texts(bank: &Bank) -> Vec<&str> {
    bank.content.entries.iter().map(text).collect()
}

#[test]
fn facts_are_memories_with_their_numbers() {
    let (banks, notes) = read("conflict-resolution", &json!([row()]).to_string()).expect("readable");
    assert_eq!(
        notes,
        ["row-1: fact 3 does not follow the one before it", "row-1:b: question_dates in May cannot be read"]
    );
    assert_eq!(
        texts(&banks[0]),
        ["0. The lamp stands in the hall.", "1. The lamp stands\nin the attic.", "3. Bo plays the harp."]
    );
    let (question, gold) = (&banks[0].questions[0], &banks[0].gold[0]);
    assert_eq!((question.question_id.as_str(), question.ask_after), ("row-1:a", 3));
    assert_eq!(question.time.as_deref(), Some("2024-05-01T00:00:00"));
    assert_eq!(gold.gold, Gold::AnyOf(vec!["the attic".to_owned(), "attic".to_owned()]));
    assert_eq!(banks[0].gold[1].gold, Gold::AnyOf(vec!["harp".to_owned()]));
    assert_eq!(gold.facets["source"], "factconsolidation_sh_6k");
}

#[test]
fn questions_of_one_id_are_told_apart() {
    let mut row = row();
    row["metadata"]["qa_pair_ids"] = json!(["a", "a"]);
    let (banks, notes) = read("conflict-resolution", &row.to_string()).expect("readable");
    assert_eq!(banks[0].gold[1].question_id, "row-1:a#1");
    assert!(notes.contains(&"row-1:a#1: the id is there twice".to_owned()), "{notes:?}");
}

#[test]
fn the_largest_number_that_a_fact_can_have_is_followed_by_none() {
    let mut row = row();
    row["context"] = json!("18446744073709551615. a is b\n1. c is d");
    let (banks, notes) = read("conflict-resolution", &row.to_string()).expect("readable");
    assert_eq!(texts(&banks[0]), ["18446744073709551615. a is b", "1. c is d"]);
    assert!(notes.contains(&"row-1: fact 1 does not follow the one before it".to_owned()), "{notes:?}");
}

#[test]
fn other_texts_come_in_pieces_and_rows_in_lines() {
    let lines = format!("{}\n\n{}\n", long(), row());
    let (banks, _) = read("long-range-understanding", &lines).expect("readable");
    assert_eq!(banks.iter().map(|bank| bank.content.bank_id.as_str()).collect::<Vec<_>>(), ["row-1", "row-2"]);
    assert_eq!(texts(&banks[0]).iter().map(|text| text.len()).collect::<Vec<_>>(), [1_999, 26]);
    let gold = &banks[0].gold[0];
    assert_eq!((&gold.hidden["keypoints"], gold.facets["type"].as_str()), (&json!(["the ship"]), "summary"));
    assert_eq!(gold.style.as_deref(), Some("free"), "a summary is no answer of a few words");
    let mut without = row();
    without["metadata"]["keypoints"] = json!([]);
    let (banks_without, _) = read("long-range-understanding", &without.to_string()).expect("readable");
    let gold = &banks_without[0].gold[0];
    assert_eq!((gold.style.as_deref(), gold.hidden.len()), (None, 0), "an empty list asks for no summary");
    let marked = read("long-range-understanding", &format!("\u{feff}{}", json!([long(), row()]))).expect("a list");
    assert_eq!(marked.0, banks, "with a mark of UTF-8");
    assert_eq!(
        (banks[0].questions[0].question_id.as_str(), banks[0].questions[0].category.as_str()),
        ("row-1:0", "long-range-understanding")
    );
}

#[test]
fn broken_rows_are_refused_with_row_and_field() {
    let with = |pointer: &str, value: Value| {
        let mut rows = json!([long(), row()]);
        *rows.pointer_mut(pointer).expect("is there") = value;
        read("conflict-resolution", &rows.to_string()).expect_err("broken").to_string()
    };
    assert_eq!(with("/1/answers", json!([["attic"]])), "rows.json: row 2, field answers: 1 for 2 questions");
    assert_eq!(
        with("/1/metadata/qa_pair_ids", json!(["a"])),
        "rows.json: row 2, field metadata.qa_pair_ids: 1 for 2 questions"
    );
    assert_eq!(
        with("/1/metadata/question_types", json!(["a", "a", "a"])),
        "rows.json: row 2, field metadata.question_types: 3 for 2 questions"
    );
    assert_eq!(with("/1/answers/1", json!([" "])), "rows.json: row 2, field answers[1]: has no text");
    assert_eq!(with("/1/questions/0", json!("")), "rows.json: row 2, field questions[0]: is empty");
    assert!(
        with("/0/context", json!(1)).contains("field [0].context: invalid type"),
        "{}",
        with("/0/context", json!(1))
    );
    let error =
        read("conflict-resolution", &format!("{}\n{{\"context\": 1}}\n", row())).expect_err("broken").to_string();
    assert!(error.starts_with("rows.json: line 2, column ") && error.contains("field context"), "{error}");
}

/// The real text of FactConsolidation with 6k tokens and its first ten questions.
/// The published tables are told from broken JSON.
#[test]
fn a_parquet_table_is_refused_with_what_reads_it() {
    let table = b"PAR1\x15\x04\x15\x10";
    let error =
        banks("conflict-resolution", "t.parquet", table, &mut Notes::default()).expect_err("a table").to_string();
    assert!(error.starts_with("t.parquet: file: is a parquet table, and rows of JSON are read; "), "{error}");
}

#[test]
fn factconsolidation_6k_is_read_and_its_newest_facts_answer() {
    let Some(content) = reference::data("memoryagentbench/factconsolidation_sh_6k_first10.json") else { return };
    let mut notes = Notes::default();
    let banks = banks("conflict-resolution", "first10.json", &content, &mut notes).expect("readable");
    assert_eq!((banks.len(), notes.lines()), (1, Vec::new()));
    let facts = texts(&banks[0]);
    assert_eq!((facts.len(), banks[0].questions.len()), (455, 10));
    assert!(facts.iter().zip(0..).all(|(fact, serial): (_, usize)| fact.starts_with(&format!("{serial}. "))));
    let whole = reference::data("memoryagentbench/factconsolidation_6k_context.txt").expect("beside the questions");
    let whole = String::from_utf8(whole).expect("UTF-8");
    assert_eq!(whole.lines().skip(1).map(str::trim_end).collect::<Vec<_>>(), facts);

    // a fact says something of a subject; of the facts that begin alike the newest holds the answer
    let said: Vec<&str> = facts.iter().filter_map(|fact| Some(fact.split_once(". ")?.1)).collect();
    let mut contradicted = 0;
    for (question, gold) in banks[0].questions.iter().zip(&banks[0].gold) {
        let Gold::AnyOf(answers) = &gold.gold else { panic!("{gold:?}") };
        let ending = format!("{}.", answers[0]);
        let newest = said.iter().enumerate().find_map(|(at, fact)| {
            let subject = fact.strip_suffix(&ending)?;
            let others: Vec<usize> =
                (0..said.len()).filter(|other| *other != at && said[*other].starts_with(subject)).collect();
            others.iter().all(|other| *other < at).then_some(others.len())
        });
        let older = newest.unwrap_or_else(|| panic!("{}: no newest fact says {ending}", question.text));
        contradicted += usize::from(older > 0);
    }
    assert!(contradicted >= 5, "{contradicted} of ten answers contradict an older fact");
}

/// The sample is opened by its path, in place of the split.
#[test]
fn a_file_of_rows_is_a_split() {
    let Some(path) = reference::path("memoryagentbench/factconsolidation_sh_6k_first10.json") else { return };
    let options = crate::OpenOptions { path: Some(path), ..Default::default() };
    let dataset = crate::open("memoryagentbench", &options, &|_, _| ()).expect("opens");
    assert_eq!((dataset.bank_count(), dataset.about().checksum_unknown), (1, true));
    assert_eq!(dataset.about().manifest.name, "memoryagentbench@conflict-resolution");
    assert_eq!(dataset.bank(0).expect("a bank").questions[9].category, "conflict-resolution");
}

proptest::proptest! {
    #[test]
    fn a_spoiled_file_is_read_or_refused_by_its_name(at in 0_usize..100_000, bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..4)) {
        let spoiled = reference::spoiled(json!([row(), long()]).to_string().as_bytes(), at, &bytes);
        if let Err(error) = banks("conflict-resolution", "rows.json", &spoiled, &mut Notes::default()) {
            proptest::prop_assert!(error.to_string().starts_with("rows.json: "), "{}", error);
        }
    }
}
