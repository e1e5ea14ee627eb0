//! LifeBench: what an assistant knows of a person who has told it a year of their life. Ten people.
//!
//! Read in the form in which it is passed on: a list of questions and a list of documents, each with the person's name.
//! Where the documents are missing the questions are still read: their banks are empty. Not seen on real documents.
//!
//! The loader's version was not raised when `am` and `pm` behind a time came to be read: the published questions have times of
//! 24 hours with a zone (`2024-03-01T08:30:00+00:00`), which are read as before.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, hash_map::Entry};

use bench_proto::dataset::{Bank, BankContent, Gold, GoldRecord, Memory, Question, Session, StreamEntry, Turn};
use serde::Deserialize;

use crate::{
    Dataset, DatasetError, Opening,
    broken::{broken, json},
    loaded::{Loaded, count},
    neutral,
    notes::Notes,
};

pub(crate) const MANIFEST: &str = include_str!("manifest.toml");
pub(crate) const PROFILE: &str = include_str!("profile.toml");

/// Opens the questions, and the documents unless the variant has none.
pub(crate) fn open(opening: &Opening<'_>) -> Result<Box<dyn Dataset>, DatasetError> {
    let files = opening.files()?;
    let (queries, documents) = ("queries.json", "documents.json");
    let has_documents = opening.manifest().files.iter().any(|file| file.path == documents);
    let content = has_documents.then(|| files.read(documents)).transpose()?;
    let documents = content.as_deref().map(|content| (documents, content));
    // by their names: notes are published, and where the files lie on this machine is not
    let read = banks((queries, &files.read(queries)?), documents);
    let (banks, notes) = read.map_err(|error| files.located(error))?;
    Ok(Box::new(Loaded::new(opening, &files, banks, notes)))
}

/// The category whose questions nothing answers.
const UNANSWERABLE: &str = "unanswerable";

#[derive(Debug, Deserialize)]
struct Query {
    id: String,
    query: String,
    gold_answers: Vec<String>,
    /// Documents that hold the evidence.
    #[serde(default)]
    gold_ids: Vec<String>,
    user_id: String,
    meta: Meta,
}

#[derive(Debug, Deserialize)]
struct Meta {
    category: String,
    #[serde(default)]
    query_timestamp: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Document {
    id: String,
    content: String,
    #[serde(default)]
    user_id: Option<String>,
    #[serde(default)]
    timestamp: Option<String>,
    /// The event as a conversation, where it is one.
    #[serde(default)]
    messages: Option<Vec<Message>>,
}

#[derive(Debug, Deserialize)]
struct Message {
    role: String,
    content: String,
}

/// Reads questions and, where there are any, documents, each with its name. Gives the banks, one for each person in the
/// order in which questions name them, and what does not resolve.
///
/// # Errors
/// Broken input, with file and field; letters that are no option; ids that are there twice.
fn banks((path, queries): (&str, &[u8]), documents: Option<(&str, &[u8])>) -> Result<(Vec<Bank>, Notes), DatasetError> {
    let queries: Vec<Query> = json(path, queries)?;
    let mut people: HashMap<String, usize> = HashMap::new();
    let mut banks: Vec<Bank> = Vec::new();
    for query in &queries {
        let number = people.len();
        if *people.entry(query.user_id.clone()).or_insert(number) == number {
            let content = BankContent { bank_id: format!("person-{}", number + 1), ..BankContent::default() };
            banks.push(Bank { content, ..Bank::default() });
        }
    }
    let mut notes = Notes::default();
    let entries = match documents {
        Some(documents) => add_documents(documents, &people, &mut banks, &mut notes)?,
        None => {
            notes.say("no documents", || {
                format!("{path}: there are no documents beside the questions, so that every bank is empty")
            });
            HashMap::new()
        }
    };
    let mut ids = HashMap::new();
    for (query, number) in queries.into_iter().zip(0_usize..) {
        if let Some(first) = ids.insert(query.id.clone(), number) {
            return Err(broken(path, format!("field [{number}].id"), format!("is that of [{first}]: {}", query.id)));
        }
        let Some(bank) = people.get(&query.user_id).and_then(|person| banks.get_mut(*person)) else { continue };
        let (question, gold) = question(query, bank, &entries, &mut notes)
            .map_err(|(field, problem)| broken(path, format!("field [{number}].{field}"), problem))?;
        bank.questions.push(question);
        bank.gold.push(gold);
    }
    Ok((banks, notes))
}

/// Where a document of a person went: id of its entry, and whether that is a session.
type Places = HashMap<(String, String), (String, bool)>;

/// Adds the documents to the banks of their people, in their order.
fn add_documents(
    (path, content): (&str, &[u8]),
    people: &HashMap<String, usize>,
    banks: &mut [Bank],
    notes: &mut Notes,
) -> Result<Places, DatasetError> {
    let documents: Vec<Document> = json(path, content)?;
    let (mut places, mut of_nobody) = (HashMap::new(), 0_usize);
    for document in documents {
        let user = document.user_id.unwrap_or_default();
        let Some(bank) = people.get(&user).and_then(|number| banks.get_mut(*number)) else {
            of_nobody += 1;
            continue;
        };
        let time = document.timestamp.as_deref().and_then(neutral::time);
        if let (Some(text), None) = (&document.timestamp, &time) {
            notes.say("timestamp that cannot be read", || {
                format!("document {}: timestamp {text} cannot be read", document.id)
            });
        }
        let entries = &mut bank.content.entries;
        let messages = document.messages.filter(|messages| !messages.is_empty());
        let is_session = messages.is_some();
        let id = format!("{}{}", if is_session { 'S' } else { 'M' }, entries.len() + 1);
        entries.push(match messages {
            Some(messages) => {
                let turn = |(message, number): (Message, usize)| Turn {
                    id: format!("{id}:{number}"),
                    speaker: message.role,
                    text: message.content,
                    ..Turn::default()
                };
                let turns = messages.into_iter().zip(1..).map(turn).collect();
                let time_text = document.timestamp;
                StreamEntry::Session(Session { id: id.clone(), time, time_text, turns, ..Session::default() })
            }
            None => StreamEntry::Memory(Memory { id: id.clone(), text: document.content, time, ..Memory::default() }),
        });
        match places.entry((user, document.id)) {
            Entry::Vacant(place) => drop(place.insert((id, is_session))),
            Entry::Occupied(first) => {
                let (user, document) = first.key();
                notes.say("document that is there twice", || {
                    format!("document {document} of {user}: is there twice, and evidence is the first")
                });
            }
        }
    }
    if of_nobody > 0 {
        notes.say("documents that are left out", || {
            format!("{path}: {of_nobody} documents are of people who are asked nothing, and are left out")
        });
    }
    Ok(places)
}

/// A question with its gold; else the field at fault and what is wrong with it.
fn question(
    query: Query,
    bank: &Bank,
    places: &Places,
    notes: &mut Notes,
) -> Result<(Question, GoldRecord), (String, String)> {
    let Query { id, query, gold_answers, gold_ids, user_id, meta } = query;
    // a question may name its things by letters, and ask for one of them by its name
    let is_letter = |part: &str| part.len() == 1 && part.bytes().all(|byte| byte.is_ascii_uppercase());
    let asks_for_letters = gold_answers.iter().flat_map(|answer| answer.split(',')).all(|part| is_letter(part.trim()));
    let (stem, choices) = if asks_for_letters { options(&query) } else { (query, Vec::new()) };
    let mut record = GoldRecord { question_id: id.clone(), ..GoldRecord::default() };
    let is_option = |letter: &&str| choices.iter().any(|choice| choice.starts_with(&format!("({letter})")));
    let mut letters = gold_answers.iter().flat_map(|answer| answer.split(',')).map(str::trim);
    if let Some(unknown) = letters.find(|letter| !choices.is_empty() && !is_option(letter)) {
        return Err(("gold_answers".to_owned(), format!("'{unknown}' is the letter of no option in the question")));
    }
    record.gold = match <[String; 1]>::try_from(gold_answers) {
        Ok([answer]) if !choices.is_empty() => Gold::Choice(answer),
        Ok([answer]) if meta.category == UNANSWERABLE => {
            record.hidden.insert("answer".to_owned(), answer.into());
            Gold::Abstain
        }
        Ok([answer]) => Gold::Text(answer),
        Err(none) if none.is_empty() => return Err(("gold_answers".to_owned(), "is empty".to_owned())),
        Err(several) => Gold::AnyOf(several),
    };
    let form = if choices.is_empty() { "text" } else { "letter" };
    record.facets =
        [("person", user_id.as_str()), ("answer_form", form)].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    for gold_id in gold_ids {
        match places.get(&(user_id.clone(), gold_id.clone())) {
            Some((entry, true)) => record.add_evidence_session(entry),
            Some((entry, false)) => record.add_evidence(entry, entry),
            None => {
                notes.say("gold_ids that name no document", || format!("{id}: gold_ids {gold_id} names no document"))
            }
        }
    }
    let time = meta.query_timestamp.as_deref().and_then(neutral::time);
    if let (Some(text), None) = (&meta.query_timestamp, &time) {
        notes.say("query_timestamp that cannot be read", || format!("{id}: query_timestamp {text} cannot be read"));
    }
    let question = Question {
        question_id: id,
        index: count(bank.questions.len()),
        category: meta.category,
        text: stem,
        ask_after: count(bank.content.entries.len()),
        choices,
        time_text: meta.query_timestamp,
        time,
        ..Question::default()
    };
    Ok((question, record))
}

/// Question and options, `(A) This.`, of a text such as `Which? A: This. B: That.`; of any other text no options.
fn options(text: &str) -> (String, Vec<String>) {
    let (mut starts, mut rest, mut from) = (Vec::new(), text, 0);
    for letter in 'A'..='Z' {
        let begins = |at: &usize| rest.get(..*at).is_some_and(|before| before.ends_with(char::is_whitespace));
        let mark = format!("{letter}: ");
        let Some(at) = rest.match_indices(&mark).map(|(at, _)| at).find(begins) else { break };
        starts.push(from + at);
        from += at + 1;
        rest = text.get(from..).unwrap_or_default();
    }
    if starts.len() < 2 {
        return (text.to_owned(), Vec::new());
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let option = |((start, end), letter): ((&usize, usize), char)| {
        let option = text.get(*start..end)?.split_once(": ")?.1;
        Some(format!("({letter}) {}", option.trim()))
    };
    let stem = starts.first().and_then(|start| text.get(..*start)).unwrap_or(text);
    (stem.trim().to_owned(), starts.iter().zip(ends).zip('A'..='Z').filter_map(option).collect())
}
