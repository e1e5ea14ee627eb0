//! A dataset of this project's own, as small as one can be: the worked example of CONTRIBUTING.md. Built for tests only.

use bench_proto::dataset::{Bank, BankContent, Gold, GoldRecord, Question, Session, StreamEntry, Turn};
use serde::Deserialize;

use crate::{
    Dataset, DatasetError, Opening,
    loaded::{Loaded, count},
    notes::Notes,
};

pub(crate) const MANIFEST: &str = r#"
name = "example"
description = "what three pairs of friends told each other, for tests"
version = "1"
licence = "Apache-2.0"
source = "https://raw.githubusercontent.com/bench-coord/bench-coord/main/datasets/testdata/example/"
files = [
    { path = "sessions.jsonl", bytes = 951, sha256s = ["5d1a8e765b19805b63af270f932e60de76504bfe22c68383b8dbce2449eb4766"] },
    { path = "questions.jsonl", bytes = 1532, sha256s = ["64875f47f29b0a388e0e7e33ed639d28b6265e6d579048bc44bc8b40f2b909ba"] },
]
categories = [["fact", 6], ["trap", 3], ["when", 3]]
banks = 3
sessions = 6
turns = 12
abstention_phrases = ["no information available"]
scorers = ["exact", "locomo-f1"]
loader_version = 2
"#;

pub(crate) const PROFILE: &str = r#"
style = { name = "one-thing", rules = "- Give one word or one date, as it was said." }
rubrics.judge-fact.rules = "- The answer must name the thing that the reference names; articles do not matter."
categories.fact = { rubric = "judge-fact" }
categories.when = { rubric = "judge-temporal" }
categories.trap = { rubric = "judge-abstain", unanswerable = true }
headline.without = ["trap"]
totals = [{ without = [] }]
presets = { quick = 5, fair_per_bank = 3 }
checks = [{ scorer = "exact", category = "fact", gold = { kind = "text", value = "a cello" }, answer = "Cello.", score = 1.0 }]
"#;

#[derive(Deserialize)]
struct SessionLine {
    bank: String,
    id: String,
    said_at: String,
    turns: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct QuestionLine {
    bank: String,
    kind: String,
    question: String,
    answer: Option<String>,
    evidence: Vec<String>,
}

pub(crate) fn open(opening: &Opening<'_>) -> Result<Box<dyn Dataset>, DatasetError> {
    let files = opening.files()?;
    // in the order of their first sessions
    let mut banks: Vec<Bank> = Vec::new();
    for SessionLine { bank: bank_id, id, said_at, turns } in files.objects("sessions.jsonl")? {
        let turn = |(n, (speaker, text))| Turn { id: format!("{id}:{n}"), speaker, text, ..Turn::default() };
        let turns = (1..).zip(turns).map(turn).collect();
        let entry = StreamEntry::Session(Session { time_text: Some(said_at), turns, id, ..Session::default() });
        match banks.iter_mut().find(|bank| bank.content.bank_id == bank_id) {
            Some(bank) => bank.content.entries.push(entry),
            None => {
                let content = BankContent { bank_id, entries: vec![entry], ..BankContent::default() };
                banks.push(Bank { content, ..Bank::default() });
            }
        }
    }
    for line in files.objects::<QuestionLine>("questions.jsonl")? {
        let Some(bank) = banks.iter_mut().find(|bank| bank.content.bank_id == line.bank) else { continue };
        let (index, ask_after) = (count(bank.questions.len()), count(bank.content.entries.len()));
        let (question_id, category, text) = (format!("{}:{}-{index}", line.bank, line.kind), line.kind, line.question);
        let gold = line.answer.map_or(Gold::Abstain, Gold::Text);
        let mut record = GoldRecord { question_id: question_id.clone(), gold, ..GoldRecord::default() };
        for (session, turn) in line.evidence.iter().filter_map(|turn| Some((turn.split_once(':')?.0, turn))) {
            record.add_evidence(session, turn);
        }
        bank.gold.push(record);
        bank.questions.push(Question { question_id, index, category, text, ask_after, ..Question::default() });
    }
    Ok(Box::new(Loaded::new(opening, &files, banks, Notes::default())))
}
