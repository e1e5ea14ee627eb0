//! ConvoMem: what an assistant remembers of its conversations with a person, in six kinds of evidence.
//!
//! Published as many files of two forms: evidence files, in which each item brings the conversations that hold its answer,
//! and mixed test cases, in which several items share a haystack of conversations. Both are read, whatever the folders are
//! called. Seen on real data only where LoCoMo was put into this form.

mod schema;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use bench_proto::dataset::{Bank, BankContent, Gold, GoldRecord, Question, Session, StreamEntry, Turn};
use serde_json::Value;

use crate::{
    Dataset, DatasetError, Opening,
    broken::{broken, is_list, json},
    by_file::ByFile,
    files::Files,
    loaded::count,
    neutral,
    notes::Notes,
};
use schema::{Case, Conversation, Item, Message};

pub(crate) const MANIFEST: &str = include_str!("manifest.toml");
pub(crate) const PROFILE: &str = include_str!("profile.toml");

/// Opens all files of the variant.
pub(crate) fn open(opening: &Opening<'_>) -> Result<Box<dyn Dataset>, DatasetError> {
    let files = opening.files()?;
    let names: Vec<String> = files.list("").filter(|name| plain(name).ends_with(".json")).map(str::to_owned).collect();
    if let Some(twice) =
        names.iter().find(|name| plain(name) != name.as_str() && names.iter().any(|other| other == plain(name)))
    {
        let problem = "lies beside the same file unpacked; take one of them away";
        return Err(files.located(broken(twice, "file", problem)));
    }
    let read = |files: &Files, name: &String, notes: &mut Notes| banks(plain(name), &files.read_unpacked(name)?, notes);
    Ok(Box::new(ByFile::open(opening, files, names, read)?))
}

/// The name of a file as it is unpacked: packed or not, it is the same.
fn plain(name: &str) -> &str {
    name.trim_end_matches(".gz")
}

/// The six kinds of evidence, as folders of the published files are called.
const KINDS: [&str; 6] = [
    "user_evidence",
    "assistant_facts_evidence",
    "changing_evidence",
    "abstention_evidence",
    "preference_evidence",
    "implicit_connection_evidence",
];

/// How items name their category where LoCoMo was put into this form.
const LOCOMO: &str = "locomo_category_";

/// The categories whose questions nothing answers.
const ABSTENTIONS: [&str; 2] = ["abstention_evidence", "locomo_category_5"];

/// The categories of facts that the user has stated, which are graded more strictly where one message is the evidence.
const FACTS: [&str; 3] = ["user_evidence", "locomo_category_1", "locomo_category_4"];

/// The rubric for one message.
const ONE_FACT: &str = "judge-convomem-fact";

/// Reads one file. Gives its banks (one for each test case, or for each item of an evidence file), and what does not resolve.
///
/// # Errors
/// Broken input, with file and field; files of neither form; items whose kind is told neither by folder nor by item.
fn banks(path: &str, content: &[u8], notes: &mut Notes) -> Result<Vec<Bank>, DatasetError> {
    let is_list = is_list(content);
    let documents = if is_list { json(path, content)? } else { vec![json(path, content)?] };
    let mut banks = Vec::new();
    for (document, at) in documents.into_iter().zip(0_usize..) {
        let within = if is_list { format!("[{at}].") } else { String::new() };
        let cases = schema::cases(document)
            .map_err(|problem| broken(path, format!("field {within}evidence_items"), problem))?;
        for (case, of_field) in cases {
            let number = banks.len() + 1;
            let file = File { path, field: format!("{within}{of_field}") };
            banks.push(bank(&file, number, case, notes)?);
        }
    }
    Ok(banks)
}

/// Where a case stands.
struct File<'a> {
    path: &'a str,
    /// The field that its items are elements of, as in `evidence_items`.
    field: String,
}

impl File<'_> {
    /// The kind that one of the folders is called by.
    fn kind(&self) -> Option<&str> {
        self.path.split('/').find(|part| KINDS.contains(part))
    }

    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(self.path)
    }

    /// The person by the file's name: `<person>_<role>.json`.
    fn person(&self) -> &str {
        let name = self.name();
        name.split_once('_').map_or_else(|| name.trim_end_matches(".json"), |(person, _)| person)
    }
}

/// A haystack with its questions, which are asked at its end.
fn bank(file: &File<'_>, number: usize, case: Case, notes: &mut Notes) -> Result<Bank, DatasetError> {
    let bank_id = format!("{}-{number}", neutral::id(file.path));
    let context_size = case.context_size.unwrap_or(case.conversations.len() as u64);
    let entries: Vec<StreamEntry> = case.conversations.into_iter().zip(1..).map(session).collect();
    let mut bank = Bank { content: BankContent { bank_id, entries, ..BankContent::default() }, ..Bank::default() };
    let said = Said::from_content(&bank.content);
    for (item, at) in case.items.into_iter().zip(0_usize..) {
        let at = at + case.first;
        let place = |field: &str| format!("field {}[{at}].{field}", file.field);
        let told = item.category.as_deref();
        let told = told.filter(|category| KINDS.contains(category) || category.starts_with(LOCOMO));
        let Some(category) = file.kind().or(told).map(str::to_owned) else {
            let problem = format!("no folder of the file and no category names one of the kinds: {}", KINDS.join(", "));
            return Err(broken(file.path, place("category"), problem));
        };
        // what nothing answers needs no answer
        let answer = item.answer.clone().unwrap_or_default();
        let needed = [("question", &item.question), ("answer", &answer)];
        let needed = &needed[..if ABSTENTIONS.contains(&category.as_str()) { 1 } else { 2 }];
        if let Some((field, _)) = needed.iter().find(|(_, text)| text.trim().is_empty()) {
            return Err(broken(file.path, place(field), "is empty"));
        }
        // the file's name may tell the kind
        let question_id = format!("{}:{}", bank.content.bank_id, bank.questions.len());
        let mut record = GoldRecord { question_id: question_id.clone(), ..GoldRecord::default() };
        said.evidence(&item, &mut record, notes);
        let evidence = item.message_evidences.len().to_string();
        let facets = [("context_size", context_size.to_string()), ("evidence_count", evidence)];
        record.facets = facets.map(|(facet, value)| (facet.to_owned(), value)).into();
        let person = item.person.as_deref().unwrap_or_else(|| file.person());
        record.hidden.insert("person".to_owned(), person.into());
        record.hidden.insert("file".to_owned(), file.path.into());
        let has_one_fact = FACTS.contains(&category.as_str()) && item.message_evidences.len() == 1;
        record.rubric = has_one_fact.then(|| ONE_FACT.to_owned());
        record.gold = gold(&category, answer, &mut record);
        let (index, ask_after) = (count(bank.questions.len()), count(bank.content.entries.len()));
        bank.questions.push(Question {
            question_id,
            index,
            category,
            text: item.question,
            ask_after,
            ..Question::default()
        });
        bank.gold.push(record);
    }
    Ok(bank)
}

/// What is expected: for some kinds the answer is a criterion, for one there is none.
fn gold(category: &str, answer: String, record: &mut GoldRecord) -> Gold {
    match category {
        _ if ABSTENTIONS.contains(&category) => {
            record.hidden.extend((!answer.is_empty()).then(|| ("answer".to_owned(), answer.into())));
            Gold::Abstain
        }
        "preference_evidence" | "implicit_connection_evidence" => Gold::Rubric(vec![answer]),
        _ => Gold::Text(answer),
    }
}

fn session((conversation, number): (Conversation, usize)) -> StreamEntry {
    let id = format!("S{number}");
    let turn = |(message, number): (Message, usize)| Turn {
        id: format!("{id}:{number}"),
        speaker: message.speaker.to_lowercase(),
        text: message.text,
        ..Turn::default()
    };
    let turns = conversation.messages.into_iter().zip(1..).map(turn).collect();
    StreamEntry::Session(Session { id, turns, ..Session::default() })
}

/// The turns of a haystack by their texts: speaker, turn, session.
struct Said(HashMap<String, Vec<[String; 3]>>);

impl Said {
    fn from_content(content: &BankContent) -> Self {
        let mut said: HashMap<String, Vec<[String; 3]>> = HashMap::new();
        for entry in &content.entries {
            let StreamEntry::Session(session) = entry else { continue };
            for turn in &session.turns {
                let place = [turn.speaker.clone(), turn.id.clone(), session.id.clone()];
                said.entry(turn.text.trim().to_owned()).or_default().push(place);
            }
        }
        Self(said)
    }

    /// The turns that are an item's evidence: those with its text, of its speaker where there are any.
    fn evidence(&self, item: &Item, record: &mut GoldRecord, notes: &mut Notes) {
        let mut resolves = true;
        for (evidence, number) in item.message_evidences.iter().zip(0_usize..) {
            let places = self.0.get(evidence.text.trim()).map_or(&[][..], Vec::as_slice);
            let speaker = evidence.speaker.to_lowercase();
            let Some([_, turn, session]) = places.iter().find(|[by, ..]| *by == speaker).or(places.first()) else {
                resolves = false;
                notes.say("message_evidences that are no message", || {
                    format!("{}: message_evidences[{number}] is no message of its conversations", record.question_id)
                });
                continue;
            };
            record.add_evidence(session, turn);
        }
        if !resolves {
            let texts: Vec<Value> =
                item.message_evidences.iter().map(|evidence| evidence.text.clone().into()).collect();
            record.hidden.insert("message_evidences".to_owned(), texts.into());
        }
    }
}
