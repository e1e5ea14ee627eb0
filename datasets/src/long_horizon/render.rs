//! A finished draft as a bank: sessions of some turns each, a day or more apart, notes between them, and the questions at
//! the end.

use bench_proto::dataset::{Bank, BankContent, Gold, GoldRecord, Memory, Question, Session, StreamEntry, Turn};
use jiff::{
    ToSpan,
    civil::{DateTime, date},
};

use super::{
    draft::{Draft, Place},
    questions::Posed,
    shape::{BLOCKS, CATEGORIES},
};
use crate::{loaded::count, locomo::time};

/// The most turns of a session; a session has turns of one block only.
const SESSION: usize = 20;

/// Ids of an entry and of a turn; of a note both are its own.
type Ids = (String, String);

pub(super) fn bank(bank_id: &str, draft: &Draft, questions: Vec<Posed>) -> Bank {
    let mut entries = Vec::new();
    let mut ids: Vec<Ids> = Vec::with_capacity(draft.turns.len());
    let (mut sessions, mut notes) = (0, 0);
    let of_one_block = |one: &(String, Place), two: &(String, Place)| one.1 == two.1 && one.1 != Place::Note;
    for turns in draft.turns.chunk_by(of_one_block).flat_map(|block| block.chunks(SESSION)) {
        match turns {
            [(text, Place::Note)] => {
                notes += 1;
                let (id, time) = (format!("N{notes}"), Some(time::iso(day(sessions))));
                ids.push((id.clone(), id.clone()));
                entries.push(StreamEntry::Memory(Memory { id, text: text.clone(), time, ..Memory::default() }));
            }
            [(_, Place::Deletion(note))] => {
                let note = ids.get(*note).cloned().unwrap_or_default();
                entries.push(StreamEntry::Update { replaces: note.0.clone(), memory: None });
                ids.push(note);
            }
            turns => {
                sessions += 1;
                let session = session(draft, sessions, turns);
                ids.extend(session.turns.iter().map(|turn| (session.id.clone(), turn.id.clone())));
                entries.push(StreamEntry::Session(session));
            }
        }
    }
    let ask_after = count(entries.len());
    let speakers = vec![draft.narrator.to_owned()];
    let content = BankContent { bank_id: bank_id.to_owned(), speakers, entries };
    let mut bank = Bank { content, ..Bank::default() };
    for (posed, index) in questions.into_iter().zip(0..) {
        let question_id = format!("{bank_id}:{index}");
        bank.gold.push(record(draft, &ids, question_id.clone(), &posed));
        bank.questions.push(Question {
            question_id,
            index,
            category: CATEGORIES[posed.category].0.to_owned(),
            text: posed.text,
            ask_after,
            ..Question::default()
        });
    }
    bank
}

/// When the session of a number takes place; notes are kept on the day of the session before them.
fn day(number: usize) -> DateTime {
    let day = date(2024, 1, 7).saturating_add(i32::try_from(number).unwrap_or(0).days());
    day.at(9, i8::try_from(number * 7 % 60).unwrap_or(0), 0, 0)
}

fn session(draft: &Draft, number: usize, turns: &[(String, Place)]) -> Session {
    let (id, day) = (format!("S{number}"), day(number));
    let turns = turns.iter().zip(1..).map(|((text, _), turn)| Turn {
        id: format!("{id}:{turn}"),
        speaker: draft.narrator.to_owned(),
        text: text.clone(),
        ..Turn::default()
    });
    let turns = turns.collect();
    Session { id, time_text: Some(time::text(day)), time: Some(time::iso(day)), turns, ..Session::default() }
}

fn record(draft: &Draft, ids: &[Ids], question_id: String, posed: &Posed) -> GoldRecord {
    let block = posed.evidence.first().and_then(|turn| match draft.turns.get(*turn)?.1 {
        Place::Block(block) => Some(BLOCKS[block]),
        Place::Note | Place::Deletion(_) => Some("notes"),
    });
    let mut record = GoldRecord {
        question_id,
        gold: Gold::Keywords(posed.rubric.clone()),
        facets: block.map(|block| ("block".to_owned(), block.to_owned())).into_iter().collect(),
        ..GoldRecord::default()
    };
    for (entry, turn) in posed.evidence.iter().filter_map(|turn| ids.get(*turn)) {
        record.add_evidence(entry, turn);
    }
    record
}
