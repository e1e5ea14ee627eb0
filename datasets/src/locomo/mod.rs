//! LoCoMo: ten long conversations of two people over many sessions, with questions in five categories.
//!
//! The data is CC BY-NC 4.0 and not part of this project: it is found on this machine or downloaded. One published file
//! is known by its checksum; copies with changed text go round (one has an answer written into a caption), so anything
//! else is refused or marked as modified.

mod evidence;
pub(crate) mod schema;
#[cfg(test)]
mod tests;
pub(crate) mod time;
pub(crate) mod write;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::{Path, PathBuf},
};

use bench_proto::dataset::{Bank, BankContent, Gold, GoldRecord, Question, Session, StreamEntry, Turn};
use serde_json::Value;

use crate::{
    Dataset, DatasetError, Manifest, OnProgress, OpenOptions, SourceFile,
    loaded::{Loaded, count},
    sources,
};
use evidence::Place;
use schema::{Answer, Category, Conversation, Qa, Sample};

/// What is known about LoCoMo.
pub(crate) static MANIFEST: Manifest = Manifest {
    name: "locomo",
    description: "LoCoMo: 10 long conversations of two people, 1,986 questions in 5 categories (1,540 without adversarial)",
    version: "2024-08-12",
    licence: "CC-BY-NC-4.0",
    source: "https://raw.githubusercontent.com/snap-research/locomo/3eb6f2c585f5e1699204e3c3bdf7adc5c28cb376/data/locomo10.json",
    files: &[SourceFile {
        path: "locomo10.json",
        sha256s: &["79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4"],
        bytes: 2_805_274,
    }],
    categories: CATEGORIES,
    banks: 10,
    sessions: 272,
    turns: 5_882,
    abstention_phrases: ABSTENTION_PHRASES,
    scorers: &["locomo-f1"],
    loader_version: 1,
    section: "",
};

/// LoCoMo's profile, which LoCoMo-sim shares.
pub(crate) const PROFILE: &str = include_str!("profile.toml");

/// Questions of each category, in the order of LoCoMo's numbers 1 to 5.
pub(crate) const CATEGORIES: &[(&str, u64)] =
    &[("multi-hop", 282), ("temporal", 321), ("open-domain", 96), ("single-hop", 841), ("adversarial", 446)];

/// The two phrases of the official scorer.
pub(crate) const ABSTENTION_PHRASES: &[&str] = &["no information available", "not mentioned"];

/// Finds, checks and reads the file.
pub(crate) fn open(options: &OpenOptions, on_progress: OnProgress<'_>) -> Result<Box<dyn Dataset>, DatasetError> {
    if let Some(key) = options.settings.keys().next() {
        return Err(DatasetError::Setting(format!("dataset 'locomo' has no setting '{key}': it has none; remove it")));
    }
    let sources = sources::read(&MANIFEST, options, on_progress)?;
    let (mut banks, mut notes) = (Vec::new(), Vec::new());
    for (path, content) in &sources.files {
        let mut reader = Reader { path: path.clone(), notes: Vec::new() };
        banks.extend(reader.banks(parse(path, content)?)?);
        notes.extend(reader.notes);
    }
    Ok(Box::new(Loaded::new(&MANIFEST, &sources, banks, notes)))
}

/// Reads the JSON. The path of a broken field costs time to track, so it is looked for only after a failure.
fn parse(path: &Path, content: &[u8]) -> Result<Vec<Sample>, DatasetError> {
    serde_json::from_slice(content).map_err(|error| {
        let mut again = serde_json::Deserializer::from_slice(content);
        let field = serde_path_to_error::deserialize::<_, Vec<Sample>>(&mut again).err();
        broken(path, &error, field.map_or(String::new(), |error| error.path().to_string()))
    })
}

fn broken(path: &Path, error: &serde_json::Error, field: String) -> DatasetError {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    // the place is a field of our own error
    let problem = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text).to_owned();
    let field = if field.is_empty() || field == "." { String::new() } else { format!(", field {field}") };
    DatasetError::Broken {
        path: path.display().to_string(),
        place: format!("line {line}, column {column}{field}"),
        problem,
    }
}

/// Turns the file's objects into banks, collecting what does not resolve.
struct Reader {
    path: PathBuf,
    notes: Vec<String>,
}

impl Reader {
    fn broken(&self, place: String, problem: &str) -> DatasetError {
        DatasetError::Broken { path: self.path.display().to_string(), place, problem: problem.to_owned() }
    }

    fn banks(&mut self, samples: Vec<Sample>) -> Result<Vec<Bank>, DatasetError> {
        let mut seen = HashSet::new();
        let mut banks = Vec::with_capacity(samples.len());
        for (index, sample) in samples.into_iter().enumerate() {
            if !seen.insert(sample.sample_id.clone()) {
                let problem = format!("sample_id '{}' is there twice", sample.sample_id);
                return Err(self.broken(format!("field [{index}].sample_id"), &problem));
            }
            banks.push(self.bank(index, sample)?);
        }
        Ok(banks)
    }

    fn bank(&mut self, index: usize, sample: Sample) -> Result<Bank, DatasetError> {
        let Sample { sample_id, conversation, qa } = sample;
        let content = content(&sample_id, conversation);
        let ask_after = count(content.entries.len());

        let mut bank = Bank { questions: Vec::with_capacity(qa.len()), gold: Vec::with_capacity(qa.len()), content };
        let turns = self.turns(index, &bank.content)?;
        for (number, qa) in qa.into_iter().enumerate() {
            let question_id = format!("{sample_id}:{number}");
            let mut record = GoldRecord {
                gold: Gold::Abstain,
                evidence_turns: Vec::new(),
                evidence_sessions: Vec::new(),
                hidden: BTreeMap::new(),
                question_id: question_id.clone(),
            };
            self.evidence(&qa, &turns, &mut record);
            record.gold = gold(&qa, &mut record.hidden).ok_or_else(|| {
                self.broken(format!("field [{index}].qa[{number}].answer"), "missing, and the category is not 5")
            })?;
            bank.questions.push(Question {
                question_id,
                index: count(number),
                category: qa.category.name().to_owned(),
                text: qa.question,
                ask_after,
                choices: Vec::new(),
                time_text: None,
            });
            bank.gold.push(record);
        }
        Ok(bank)
    }

    /// The turns by their place, as evidence names them: (session id, turn id).
    fn turns(&self, index: usize, content: &BankContent) -> Result<HashMap<Place, (String, String)>, DatasetError> {
        let mut ids = HashSet::new();
        let mut turns = HashMap::new();
        for entry in &content.entries {
            let StreamEntry::Session(session) = entry else { continue };
            for turn in &session.turns {
                if !ids.insert(turn.id.as_str()) {
                    let place = format!("field [{index}].conversation.session_{}", session.id.trim_start_matches('D'));
                    return Err(self.broken(place, &format!("dia_id '{}' is there twice", turn.id)));
                }
                if let [place] = evidence::places(&turn.id)[..] {
                    turns.insert(place, (session.id.clone(), turn.id.clone()));
                }
            }
        }
        Ok(turns)
    }

    fn evidence(&mut self, qa: &Qa, turns: &HashMap<Place, (String, String)>, record: &mut GoldRecord) {
        let mut repaired = false;
        for text in &qa.evidence {
            let places = evidence::places(text);
            let mut resolves = !places.is_empty();
            for place in places {
                let Some((session, turn)) = turns.get(&place) else {
                    resolves = false;
                    continue;
                };
                repaired |= turn != text;
                if !record.evidence_turns.contains(turn) {
                    record.evidence_turns.push(turn.clone());
                }
                if !record.evidence_sessions.contains(session) {
                    record.evidence_sessions.push(session.clone());
                }
            }
            if !resolves {
                repaired = true;
                self.notes.push(format!("{}: evidence {text} names no turn", record.question_id));
            }
        }
        if repaired {
            record.hidden.insert("evidence".to_owned(), qa.evidence.clone().into());
        }
    }
}

fn content(sample_id: &str, conversation: Conversation) -> BankContent {
    let Conversation { speaker_a, speaker_b, sessions, mut dates } = conversation;
    let entries = sessions.into_iter().map(|(number, turns)| {
        let time_text = dates.remove(&number);
        let turns = turns.into_iter().map(|turn| Turn {
            id: turn.dia_id,
            speaker: turn.speaker,
            text: turn.text,
            caption: turn.blip_caption,
        });
        StreamEntry::Session(Session {
            id: format!("D{number}"),
            time: time_text.as_deref().and_then(time::parse).map(time::iso),
            time_text,
            turns: turns.collect(),
        })
    });
    BankContent { bank_id: sample_id.to_owned(), speakers: vec![speaker_a, speaker_b], entries: entries.collect() }
}

/// The gold of a question; what was published beside it for unanswerable ones goes to `hidden`.
fn gold(qa: &Qa, hidden: &mut BTreeMap<String, Value>) -> Option<Gold> {
    if qa.category == Category::Adversarial {
        let published = [("adversarial_answer", &qa.adversarial_answer), ("answer", &qa.answer)];
        for (key, answer) in published {
            hidden.extend(answer.clone().map(|answer| (key.to_owned(), answer.into())));
        }
        return Some(Gold::Abstain);
    }
    qa.answer.clone().map(|answer| match answer {
        Answer::Text(text) => Gold::Text(text),
        Answer::Number(number) => Gold::Number(number),
    })
}
