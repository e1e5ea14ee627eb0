//! The table of questions: CSV as RFC 4180 has it, in the columns of the published files or of older ones.

use std::collections::{BTreeMap, HashSet};

use serde::Deserialize;
use serde_json::Value;

use super::python;
use crate::{DatasetError, broken::broken};

/// The column that says how many messages come before a question.
pub(super) const END: &str = "end_index_in_shared_context";

/// A row as it stands. Older files have other columns beside these, and no `persona_id`.
#[derive(Debug, Deserialize)]
struct Record {
    question_id: String,
    question_type: String,
    topic: String,
    #[serde(default)]
    persona_id: Option<String>,
    #[serde(default)]
    context_length_in_letters: Option<usize>,
    #[serde(default)]
    distance_to_ref_in_blocks: Option<String>,
    #[serde(alias = "question")]
    user_question_or_message: String,
    correct_answer: String,
    all_options: String,
    shared_context_id: String,
    end_index_in_shared_context: usize,
}

/// A question.
#[derive(Debug)]
pub(super) struct Row {
    line: usize,
    pub(super) question_id: String,
    pub(super) category: String,
    pub(super) text: String,
    pub(super) options: Vec<String>,
    /// The letter of the right option in its brackets.
    pub(super) gold: String,
    pub(super) context_id: String,
    /// Number of messages that come before it.
    pub(super) end: usize,
    /// Number of their characters, as the table states it.
    pub(super) letters: Option<usize>,
    pub(super) facets: BTreeMap<String, String>,
    pub(super) hidden: BTreeMap<String, Value>,
}

impl Row {
    /// An error about one of its fields.
    pub(super) fn broken(&self, path: &str, field: &str, problem: String) -> DatasetError {
        broken(path, place(self.line, field), problem)
    }
}

fn place(line: usize, field: &str) -> String {
    format!("line {line}, field {field}")
}

/// Reads the table.
///
/// # Errors
/// Rows of unequal length, fields that are not what they should be, ids that are there twice: with line and field.
pub(super) fn read(path: &str, content: &[u8]) -> Result<Vec<Row>, DatasetError> {
    let mut reader = csv::Reader::from_reader(content);
    let headers = reader.headers().map_err(|error| unreadable(path, content, &error, None))?.clone();
    let unreadable = |error: csv::Error| unreadable(path, content, &error, Some(&headers));
    let (mut ids, mut rows) = (HashSet::new(), Vec::new());
    let (mut at, mut line) = (0, 1);
    for record in reader.records() {
        let record = record.map_err(unreadable)?;
        let start = start(content, record.position());
        line += content.get(at..start).map_or(0, newlines);
        at = start;
        let row = row(path, line, record.deserialize(Some(&headers)).map_err(unreadable)?)?;
        if !ids.insert(row.question_id.clone()) {
            return Err(row.broken(path, "question_id", format!("{} is there twice", row.question_id)));
        }
        rows.push(row);
    }
    Ok(rows)
}

/// The byte at which a row begins. The reader counts the second half of a line end of two bytes, and empty lines, to the row
/// behind it, so that the line that it tells may be an earlier one.
fn start(content: &[u8], position: Option<&csv::Position>) -> usize {
    let told = position.map_or(0, csv::Position::byte);
    let told = usize::try_from(told).map_or(content.len(), |told| told.min(content.len()));
    told + content[told..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count()
}

fn newlines(content: &[u8]) -> usize {
    content.iter().filter(|byte| **byte == b'\n').count()
}

fn row(path: &str, line: usize, record: Record) -> Result<Row, DatasetError> {
    let options = python::texts(&record.all_options).map_err(|fault| {
        broken(path, format!("{}, character {}", place(line, "all_options"), fault.at), fault.problem)
    })?;
    let lettered = options.iter().zip('a'..='z').all(|(option, letter)| option.starts_with(&format!("({letter})")));
    if !lettered || options.len() < 2 || options.len() > 26 {
        let problem = "two options or more are expected that begin with (a), (b) and so on";
        return Err(broken(path, place(line, "all_options"), problem));
    }
    let gold = record.correct_answer.trim().to_owned();
    if gold.len() != 3 || !options.iter().any(|option| option.starts_with(&gold)) {
        return Err(broken(
            path,
            place(line, "correct_answer"),
            format!("'{gold}' is the letter of no option, such as (a)"),
        ));
    }
    let facets = [("topic", Some(record.topic)), ("distance_in_blocks", record.distance_to_ref_in_blocks)];
    let hidden = [
        ("shared_context_id", Some(Value::from(record.shared_context_id.clone()))),
        (END, Some(record.end_index_in_shared_context.into())),
        ("persona_id", record.persona_id.map(Value::from)),
    ];
    Ok(Row {
        line,
        question_id: record.question_id,
        category: record.question_type,
        text: record.user_question_or_message,
        options,
        gold,
        context_id: record.shared_context_id,
        end: record.end_index_in_shared_context,
        letters: record.context_length_in_letters,
        facets: facets.into_iter().filter_map(|(facet, value)| Some((facet.to_owned(), value?))).collect(),
        hidden: hidden.into_iter().filter_map(|(field, value)| Some((field.to_owned(), value?))).collect(),
    })
}

/// What the reader of CSV says, with line and field.
fn unreadable(path: &str, content: &[u8], error: &csv::Error, headers: Option<&csv::StringRecord>) -> DatasetError {
    let line = 1 + newlines(&content[..start(content, error.position())]);
    match error.kind() {
        csv::ErrorKind::Deserialize { err, .. } => {
            let field = usize::try_from(err.field().unwrap_or(u64::MAX)).ok().and_then(|field| headers?.get(field));
            broken(
                path,
                field.map_or_else(|| format!("line {line}"), |field| place(line, field)),
                err.kind().to_string(),
            )
        }
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            broken(path, format!("line {line}"), format!("{len} fields, and the first line has {expected_len}"))
        }
        csv::ErrorKind::Utf8 { err, .. } => {
            let field = headers.and_then(|headers| headers.get(err.field())).unwrap_or("?");
            broken(path, place(line, field), "is not UTF-8")
        }
        _ => broken(path, format!("line {line}"), error.to_string()),
    }
}
