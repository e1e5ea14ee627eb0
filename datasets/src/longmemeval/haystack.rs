//! From a record of the file to a bank: the haystack as a stream, the question, and what is expected.

use std::collections::{BTreeMap, HashMap};

use bench_proto::dataset::{
    ABSTENTION, Bank, BankContent, BankOutline, Gold, GoldRecord, Question, QuestionOutline, Session, StreamEntry, Turn,
};
use jiff::civil::DateTime;
use serde_json::{Value, json};

use super::{
    schema::{RawTurn, Record},
    time,
};
use crate::{
    DatasetError,
    array_file::{LEFT_OUT, RecordAt},
    loaded::count,
    locomo::{schema::Answer, time::iso},
    neutral,
    notes::Notes,
};

/// The question types, which are the categories.
pub(super) const TYPES: [&str; 6] = [
    "single-session-user",
    "single-session-assistant",
    PREFERENCE,
    "multi-session",
    "temporal-reasoning",
    "knowledge-update",
];

/// Its golds are criteria: what a good answer takes into account.
const PREFERENCE: &str = "single-session-preference";

/// What the haystacks of a variant hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    /// Evidence among other sessions.
    Everything,
    /// The evidence alone.
    Evidence,
}

/// Refuses what cannot be read as one question with its haystack.
pub(super) fn check(record: &Record, at: &RecordAt<'_>) -> Result<(), DatasetError> {
    let id = &record.question_id;
    let broken = |field: &str, problem: String| Err(at.broken(field, format!("{problem} (question {id})")));
    let sessions = record.haystack_sessions.len();
    for (field, length) in
        [("haystack_dates", record.haystack_dates.len()), ("haystack_session_ids", record.haystack_session_ids.len())]
    {
        if length != sessions {
            return broken(field, format!("has {length} entries, haystack_sessions has {sessions}"));
        }
    }
    if id == LEFT_OUT {
        return broken("question_id", "is longer than 500 bytes".to_owned());
    }
    if !TYPES.contains(&record.question_type.as_str()) {
        let known = TYPES.join(", ");
        return broken("question_type", format!("'{}' is none of {known}", record.question_type));
    }
    if record.question.trim().is_empty() {
        return broken("question", "is empty".to_owned());
    }
    if record.answer.is_none() && !record.is_abstention() {
        return broken("answer", "is missing, and the question is no abstention (_abs)".to_owned());
    }
    Ok(())
}

/// Field and reason of what shows that a record was put together from two files, or is of another variant than was asked for.
pub(super) fn mixture(record: &Record, holds: Holds) -> Option<(String, &'static str)> {
    let is_evidence = |id: &String| record.answer_session_ids.contains(id);
    let ids = &record.haystack_session_ids;
    let field = "haystack_session_ids".to_owned();
    match holds {
        Holds::Everything if !ids.is_empty() && ids.iter().all(is_evidence) => {
            return Some((
                field,
                "are the evidence alone, as in longmemeval@oracle, where a whole haystack is expected",
            ));
        }
        Holds::Evidence if !ids.iter().all(is_evidence) => {
            return Some((field, "are more than the evidence, as in longmemeval@s, where it alone is expected"));
        }
        _ => {}
    }
    // in no published file is a session of a later day than its question, though some are of a later hour
    let asked = time::parse(&record.question_date)?.date();
    let later =
        record.haystack_dates.iter().position(|date| time::parse(date).is_some_and(|time| time.date() > asked))?;
    let reason =
        "is of a later day than question_date: dates of longmemeval@s and longmemeval@oracle must not be mixed";
    Some((format!("haystack_dates[{later}]"), reason))
}

/// What of a record does not resolve, or is not what everybody expects of a conversation.
pub(super) fn note(record: &Record, notes: &mut Notes) {
    let id = &record.question_id;
    let mut unreadable = |field: String, text: &str| {
        if time::parse(text).is_none() {
            notes.add("date that cannot be read, kept as a text", || format!("{id} {field} '{text}'"));
        }
    };
    unreadable("question_date".to_owned(), &record.question_date);
    for (number, date) in record.haystack_dates.iter().enumerate() {
        unreadable(format!("haystack_dates[{number}]"), date);
    }
    let ids = &record.haystack_session_ids;
    if record.haystack_sessions.is_empty() {
        notes.add("empty haystack, asked of an empty memory", || id.clone());
    }
    for missing in record.answer_session_ids.iter().filter(|session| !ids.contains(session)) {
        notes.add("evidence that names no session", || format!("{id} {missing}"));
    }
    let mut seen = HashMap::new();
    for (number, (session, turns)) in ids.iter().zip(&record.haystack_sessions).enumerate() {
        if let Some(first) = seen.insert(session, number) {
            notes.add("session id twice in a haystack, kept apart", || format!("{id} {session} [{first}] [{number}]"));
        }
        let mut place = |kind| notes.add(kind, || format!("{id} [{number}]"));
        let Some(first) = turns.first() else {
            place("session without turns, left out");
            continue;
        };
        if turns.iter().all(|turn| turn.role == first.role) {
            place("session in which one side speaks");
        } else if !first.is_of_user() {
            place("session that the assistant begins");
        }
    }
}

impl RawTurn {
    fn is_of_user(&self) -> bool {
        self.role == "user"
    }
}

/// Where the sessions that have turns stand in the file, in the order of time, with their times. The authors' reading script
/// orders by date too: whole haystacks are ordered in the file, evidence alone is not. Where a time cannot be read it is the
/// order of the file.
fn stream(record: &Record) -> Vec<(usize, Option<DateTime>)> {
    let dated = record.haystack_dates.iter().map(|date| time::parse(date)).enumerate();
    let mut stream: Vec<_> = dated.filter(|(place, _)| !record.haystack_sessions[*place].is_empty()).collect();
    if stream.iter().all(|(_, time)| time.is_some()) {
        stream.sort_by_key(|(_, time)| *time);
    }
    stream
}

/// The id of a bank and of its question, which tells nothing: neither what the published one does, nor the place in the file,
/// where questions stand by their types.
fn id(record: &Record) -> String {
    neutral::id(&record.question_id)
}

fn facets(record: &Record) -> BTreeMap<String, String> {
    // no type: such questions count in their own type, and by this facet
    let value = if record.is_abstention() { "yes" } else { "no" };
    BTreeMap::from([(ABSTENTION.to_owned(), value.to_owned())])
}

/// What sampling and planning need of a record.
pub(super) fn outline(record: &Record) -> BankOutline {
    let sessions = record.haystack_sessions.iter().filter(|turns| !turns.is_empty());
    let entries = count(sessions.clone().count());
    BankOutline {
        bank_id: id(record),
        entries,
        turns: count(sessions.map(Vec::len).sum()),
        questions: vec![QuestionOutline {
            question_id: record.question_id.clone(),
            category: record.question_type.clone(),
            ask_after: entries,
            facets: facets(record),
            ..QuestionOutline::default()
        }],
        ..BankOutline::default()
    }
}

/// A record as a bank. Sessions and turns get ids of ours, since the file's ids of evidence sessions begin with `answer`.
pub(super) fn bank(mut record: Record) -> Bank {
    let bank_id = id(&record);
    let mut evidence = Evidence::default();
    let (mut entries, stream) = (Vec::new(), stream(&record));
    for (number, (place, time)) in (1..).zip(stream) {
        let id = format!("S{number}");
        let turns = std::mem::take(&mut record.haystack_sessions[place]);
        evidence.see(&id, &record.haystack_session_ids[place], &record.answer_session_ids, &turns);
        let turn = |(n, turn): (u32, RawTurn)| Turn {
            id: turn_id(&id, n),
            speaker: turn.role,
            text: turn.content,
            ..Turn::default()
        };
        let turns = (1..).zip(turns).map(turn).collect();
        let time_text = Some(std::mem::take(&mut record.haystack_dates[place]));
        entries.push(StreamEntry::Session(Session { id, time_text, time: time.map(iso), turns, ..Session::default() }));
    }
    let question = Question {
        question_id: record.question_id.clone(),
        shown_id: Some(bank_id.clone()),
        category: record.question_type.clone(),
        text: std::mem::take(&mut record.question),
        ask_after: count(entries.len()),
        time: time::parse(&record.question_date).map(iso),
        time_text: Some(std::mem::take(&mut record.question_date)),
        ..Question::default()
    };
    let gold = GoldRecord {
        question_id: record.question_id.clone(),
        facets: facets(&record),
        hidden: evidence.hidden(),
        evidence_turns: evidence.turns,
        evidence_sessions: evidence.sessions,
        gold: gold(record),
        ..GoldRecord::default()
    };
    let speakers = vec!["user".to_owned(), "assistant".to_owned()];
    let content = BankContent { bank_id, speakers, entries };
    Bank { content, questions: vec![question], gold: vec![gold] }
}

fn turn_id(session: &str, number: u32) -> String {
    format!("{session}:{number}")
}

/// What holds the answer, in the order of the stream.
#[derive(Default)]
struct Evidence {
    /// The labelled turns.
    turns: Vec<String>,
    /// The sessions that the file lists as evidence, all that have such an id, and those of labelled turns.
    sessions: Vec<String>,
    /// What the authors' retrieval figures count: labelled turns of the user, and their sessions.
    user_turns: Vec<String>,
    user_sessions: Vec<String>,
    /// The file's ids of the evidence sessions.
    originals: BTreeMap<String, String>,
}

impl Evidence {
    fn see(&mut self, session: &str, original: &String, listed: &[String], turns: &[RawTurn]) {
        let labelled = (1..).zip(turns).filter(|(_, turn)| turn.has_answer == Some(true));
        let (before, before_user) = (self.turns.len(), self.user_turns.len());
        for (number, turn) in labelled {
            let id = turn_id(session, number);
            if turn.is_of_user() {
                self.user_turns.push(id.clone());
            }
            self.turns.push(id);
        }
        if self.user_turns.len() > before_user {
            self.user_sessions.push(session.to_owned());
        }
        if self.turns.len() > before || listed.contains(original) {
            self.sessions.push(session.to_owned());
            self.originals.insert(session.to_owned(), original.clone());
        }
    }

    /// What stays in the harness beside the evidence. A question without an entry in `official_sessions`, and every
    /// abstention, is left out of the authors' retrieval figures.
    fn hidden(&self) -> BTreeMap<String, Value> {
        BTreeMap::from([
            (GoldRecord::SESSION_IDS.to_owned(), json!(self.originals)),
            ("official_sessions".to_owned(), json!(self.user_sessions)),
            ("official_turns".to_owned(), json!(self.user_turns)),
        ])
    }
}

fn gold(record: Record) -> Gold {
    let is_abstention = record.is_abstention();
    match record.answer {
        Some(Answer::Text(text)) if is_abstention => Gold::Unanswerable(text),
        Some(Answer::Number(number)) if is_abstention => Gold::Unanswerable(number.to_string()),
        // refused before, unless it is an abstention
        None => Gold::Abstain,
        Some(Answer::Text(text)) if record.question_type == PREFERENCE => Gold::Rubric(vec![text]),
        Some(Answer::Text(text)) => Gold::Text(text),
        Some(Answer::Number(number)) => Gold::Number(number),
    }
}
