//! MemoryAgentBench: long texts with many questions on each, in four splits.
//!
//! Read as rows of JSON (a list, or one a line) in the columns of the published tables. FactConsolidation is a list of
//! numbered facts of which later ones contradict earlier ones: each fact is a memory with its number, and the answer is what
//! the newest one says. Other texts become memories piece by piece. Only FactConsolidation was seen on real data.

mod pieces;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use bench_proto::dataset::{Bank, BankContent, Gold, GoldRecord, Memory, Question, StreamEntry};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    Dataset, DatasetError, Opening,
    broken::broken,
    loaded::{Loaded, count},
    neutral,
    notes::Notes,
};

pub(crate) const MANIFEST: &str = include_str!("manifest.toml");
pub(crate) const PROFILE: &str = include_str!("profile.toml");

/// Opens the split that is the variant.
pub(crate) fn open(opening: &Opening<'_>) -> Result<Box<dyn Dataset>, DatasetError> {
    let files = opening.files()?;
    let split = opening.manifest().name.split_once('@').map_or("conflict-resolution", |(_, split)| split);
    let (mut banks, mut notes) = (Vec::new(), Notes::default());
    for file in &opening.manifest().files {
        let read = self::banks(split, &file.path, files.objects(&file.path)?, &mut notes);
        banks.extend(read.map_err(|error| files.located(error))?);
    }
    Ok(Box::new(Loaded::new(opening, &files, banks, notes)))
}

/// How the sources of FactConsolidation begin.
const FACTS: &str = "factconsolidation";

#[derive(Debug, Deserialize)]
struct Row {
    context: String,
    questions: Vec<String>,
    /// For each question the answers of which any is right.
    answers: Vec<Answers>,
    metadata: Metadata,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Answers {
    Several(Vec<String>),
    One(String),
}

impl Answers {
    fn texts(self) -> Vec<String> {
        let texts = match self {
            Self::Several(texts) => texts,
            Self::One(text) => vec![text],
        };
        texts.into_iter().filter(|text| !text.trim().is_empty()).collect()
    }
}

/// What comes with a row; the lists have an element for each question, or are empty or null.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    source: Option<String>,
    qa_pair_ids: Option<Vec<String>>,
    question_ids: Option<Vec<String>>,
    question_types: Option<Vec<String>>,
    question_dates: Option<Vec<String>>,
    /// What a summary must mention.
    keypoints: Value,
}

impl Metadata {
    /// Whether a summary is asked for; no list and an empty one are the same.
    fn has_keypoints(&self) -> bool {
        match &self.keypoints {
            Value::Null => false,
            Value::Array(keypoints) => !keypoints.is_empty(),
            _ => true,
        }
    }
}

/// Makes a bank of each row of a split. All questions have the split's name as their category.
///
/// # Errors
/// With file, row and field: lists of unequal length; questions without an answer.
fn banks(split: &str, path: &str, rows: Vec<Row>, notes: &mut Notes) -> Result<Vec<Bank>, DatasetError> {
    let banks = rows.into_iter().zip(1..).map(|(row, number)| {
        bank(split, number, row, notes)
            .map_err(|(field, problem)| broken(path, format!("row {number}, field {field}"), problem))
    });
    banks.collect()
}

/// A row; else the field at fault and what is wrong with it.
fn bank(split: &str, number: usize, row: Row, notes: &mut Notes) -> Result<Bank, (String, String)> {
    let Row { context, questions, answers, metadata } = row;
    let asked = questions.len();
    let wants_summary = metadata.has_keypoints();
    let source = metadata.source.unwrap_or_default();
    let ids = metadata.qa_pair_ids.filter(|ids| !ids.is_empty()).or(metadata.question_ids).unwrap_or_default();
    let types = metadata.question_types.unwrap_or_default();
    let dates = metadata.question_dates.unwrap_or_default();
    if answers.len() != asked {
        return Err(("answers".to_owned(), format!("{} for {asked} questions", answers.len())));
    }
    for (field, length) in
        [("qa_pair_ids", ids.len()), ("question_types", types.len()), ("question_dates", dates.len())]
    {
        if length > 0 && length != asked {
            return Err((format!("metadata.{field}"), format!("{length} for {asked} questions")));
        }
    }

    let bank_id = format!("row-{number}");
    let entries = if source.starts_with(FACTS) {
        facts(&bank_id, &context, notes)
    } else {
        memories(pieces::cut(&context).map(str::to_owned))
    };
    let ask_after = count(entries.len());
    let mut bank = Bank { content: BankContent { bank_id, entries, ..BankContent::default() }, ..Bank::default() };
    let mut seen = HashSet::new();
    for ((text, answers), at) in questions.into_iter().zip(answers).zip(0_usize..) {
        let place = |field: &str| format!("{field}[{at}]");
        if text.trim().is_empty() {
            return Err((place("questions"), "is empty".to_owned()));
        }
        let texts = answers.texts();
        if texts.is_empty() {
            return Err((place("answers"), "has no text".to_owned()));
        }
        let id = ids.get(at).cloned().unwrap_or_else(|| at.to_string());
        let mut question_id = format!("{}:{id}", bank.content.bank_id);
        if !seen.insert(id) {
            question_id = format!("{question_id}#{at}");
            notes.say("id that is there twice", || format!("{question_id}: the id is there twice"));
        }
        let mut record =
            GoldRecord { question_id: question_id.clone(), gold: Gold::AnyOf(texts), ..GoldRecord::default() };
        let facets = [("source", (!source.is_empty()).then_some(&source)), ("type", types.get(at))];
        record.facets =
            facets.into_iter().filter_map(|(facet, value)| Some((facet.to_owned(), value?.clone()))).collect();
        if wants_summary {
            record.style = Some("free".to_owned());
            record.hidden.insert("keypoints".to_owned(), metadata.keypoints.clone());
        }
        let time_text = dates.get(at).cloned();
        let time = time_text.as_deref().and_then(neutral::time);
        if let (Some(text), None) = (&time_text, &time) {
            notes.say("question_dates that cannot be read", || {
                format!("{question_id}: question_dates {text} cannot be read")
            });
        }
        let (index, category) = (count(at), split.to_owned());
        bank.questions.push(Question {
            question_id,
            index,
            category,
            text,
            ask_after,
            time_text,
            time,
            ..Question::default()
        });
        bank.gold.push(record);
    }
    Ok(bank)
}

/// Texts as memories, in their order.
fn memories(texts: impl Iterator<Item = String>) -> Vec<StreamEntry> {
    let memory = |(text, number)| StreamEntry::Memory(Memory { id: format!("M{number}"), text, ..Memory::default() });
    texts.zip(1..).map(memory).collect()
}

/// The numbered facts of a text, one a line; lines before the first belong to none of them.
fn facts(bank_id: &str, context: &str, notes: &mut Notes) -> Vec<StreamEntry> {
    let mut facts: Vec<String> = Vec::new();
    let mut newest: Option<u64> = None;
    for line in context.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
        let serial = line.split_once(". ").and_then(|(serial, _)| serial.parse::<u64>().ok());
        match (serial, facts.last_mut()) {
            (Some(serial), _) => {
                if newest.is_some_and(|newest| newest.checked_add(1) != Some(serial)) {
                    notes.say("fact that does not follow the one before it", || {
                        format!("{bank_id}: fact {serial} does not follow the one before it")
                    });
                }
                newest = Some(serial);
                facts.push(line.to_owned());
            }
            (None, Some(fact)) => fact.extend(["\n", line]),
            (None, None) => {}
        }
    }
    memories(facts.into_iter())
}
