//! A finished draft as a bank: sessions of some turns each, a day or more apart, notes between them, and the questions at
//! the end.

use std::mem::take;

use bench_proto::dataset::{
    Bank, BankContent, Gold, GoldRecord, KeywordRubric, Memory, Question, Session, StreamEntry, Turn,
};
use jiff::{
    ToSpan,
    civil::{DateTime, date},
};

use super::{
    draft::{Draft, TextPlace},
    questions::Posed,
    shape::{BLOCKS, CATEGORIES},
};
use crate::{loaded::count, locomo::time};

/// The most turns of a session; a session has turns of one block only.
const SESSION: usize = 20;

/// Where a turn of a draft went: the index of its entry, and the one in its session.
type At = (usize, usize);

pub(super) fn bank(bank_id: &str, draft: Draft, questions: Vec<Posed>) -> Bank {
    let Draft { narrator, mut turns, .. } = draft;
    let mut entries = Vec::new();
    let mut places: Vec<At> = Vec::with_capacity(turns.len());
    let (mut sessions, mut notes) = (0, 0);
    let of_one_block =
        |one: &(String, TextPlace), two: &(String, TextPlace)| one.1 == two.1 && one.1 != TextPlace::Note;
    for turns in turns.chunk_by_mut(of_one_block).flat_map(|block| block.chunks_mut(SESSION)) {
        match turns {
            [(text, TextPlace::Note)] => {
                notes += 1;
                places.push((entries.len(), 0));
                let (id, time) = (format!("N{notes}"), Some(time::iso(day(sessions))));
                entries.push(StreamEntry::Memory(Memory { id, text: take(text), time, ..Memory::default() }));
            }
            [(_, TextPlace::Deletion(note))] => {
                let at = places.get(*note).copied().unwrap_or_default();
                let replaces = ids(&entries, at).map(|(note, _)| note.to_owned()).unwrap_or_default();
                entries.push(StreamEntry::Update { replaces, memory: None });
                places.push(at);
            }
            turns => {
                sessions += 1;
                places.extend((0..turns.len()).map(|turn| (entries.len(), turn)));
                entries.push(StreamEntry::Session(session(narrator, sessions, turns)));
            }
        }
    }
    let ask_after = count(entries.len());
    let content = BankContent { bank_id: bank_id.to_owned(), speakers: vec![narrator.to_owned()], entries };
    let mut bank = Bank { content, ..Bank::default() };
    for (posed, index) in questions.into_iter().zip(0..) {
        let Posed { category, text, rubric, evidence } = posed;
        let question_id = format!("{bank_id}:{index}");
        let block = evidence.first().and_then(|turn| Some(turns.get(*turn)?.1));
        let mut record = record(question_id.clone(), rubric, block);
        let evidence = evidence.iter().filter_map(|turn| ids(&bank.content.entries, *places.get(*turn)?));
        evidence.for_each(|(entry, turn)| record.add_evidence(entry, turn));
        bank.gold.push(record);
        let category = CATEGORIES[category].0.to_owned();
        bank.questions.push(Question { question_id, index, category, text, ask_after, ..Question::default() });
    }
    bank
}

/// Ids of the entry and of the turn at a place; of a note both are its own.
fn ids(entries: &[StreamEntry], (entry, turn): At) -> Option<(&str, &str)> {
    match entries.get(entry)? {
        StreamEntry::Session(session) => Some((&session.id, &session.turns.get(turn)?.id)),
        StreamEntry::Memory(note) => Some((&note.id, &note.id)),
        StreamEntry::Update { .. } => None,
    }
}

/// When the session of a number takes place; notes are kept on the day of the session before them.
fn day(number: usize) -> DateTime {
    let day = date(2024, 1, 7).saturating_add(i32::try_from(number).unwrap_or(0).days());
    day.at(9, i8::try_from(number * 7 % 60).unwrap_or(0), 0, 0)
}

fn session(narrator: &str, number: usize, turns: &mut [(String, TextPlace)]) -> Session {
    let (id, day) = (format!("S{number}"), day(number));
    let turns = turns.iter_mut().zip(1_u32..).map(|((text, _), turn)| Turn {
        id: [&id, ":", itoa::Buffer::new().format(turn)].concat(),
        speaker: narrator.to_owned(),
        text: take(text),
        ..Turn::default()
    });
    let turns = turns.collect();
    Session { id, time_text: Some(time::text(day)), time: Some(time::iso(day)), turns, ..Session::default() }
}

fn record(question_id: String, rubric: KeywordRubric, place: Option<TextPlace>) -> GoldRecord {
    let block = place.map(|place| match place {
        TextPlace::Block(block) => BLOCKS[block],
        TextPlace::Note | TextPlace::Deletion(_) => "notes",
    });
    GoldRecord {
        question_id,
        gold: Gold::Keywords(rubric),
        facets: block.map(|block| ("block".to_owned(), block.to_owned())).into_iter().collect(),
        ..GoldRecord::default()
    }
}
