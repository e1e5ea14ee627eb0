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
    path::PathBuf,
};

use bench_proto::dataset::{Bank, BankContent, Gold, GoldRecord, Question, Session, StreamEntry, Turn};
use serde_json::Value;

use crate::{
    Dataset, DatasetError, Opening,
    broken::json,
    loaded::{Loaded, count},
    notes::Notes,
};
use evidence::TurnPlace;
use schema::{Answer, Category, Conversation, Qa, Sample};

pub(crate) const MANIFEST: &str = include_str!("manifest.toml");
/// LoCoMo's profile, which LoCoMo-sim shares.
pub(crate) const PROFILE: &str = include_str!("profile.toml");

const FILE: &str = "locomo10.json";

/// Finds, checks and reads the file.
pub(crate) fn open(opening: &Opening<'_>) -> Result<Box<dyn Dataset>, DatasetError> {
    let files = opening.files()?;
    let path = files.shown(FILE)?;
    let mut reader = SampleReader { path: path.to_owned(), notes: Notes::default() };
    let banks = reader.banks(json(&path.display().to_string(), &files.read(FILE)?)?)?;
    Ok(Box::new(Loaded::as_published(opening.about(&files, reader.notes), banks)))
}

/// Turns the file's objects into banks, collecting what does not resolve.
struct SampleReader {
    path: PathBuf,
    notes: Notes,
}

impl SampleReader {
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
            let mut record = GoldRecord { question_id: question_id.clone(), ..GoldRecord::default() };
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
                ..Question::default()
            });
            bank.gold.push(record);
        }
        Ok(bank)
    }

    /// The turns by their place, as evidence names them: (session id, turn id).
    fn turns(&self, index: usize, content: &BankContent) -> Result<HashMap<TurnPlace, (String, String)>, DatasetError> {
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

    fn evidence(&mut self, qa: &Qa, turns: &HashMap<TurnPlace, (String, String)>, record: &mut GoldRecord) {
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
                record.add_evidence(session, turn);
            }
            if !resolves {
                repaired = true;
                let id = &record.question_id;
                self.notes.say("evidence that names no turn", || format!("{id}: evidence {text} names no turn"));
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
            ..Turn::default()
        });
        StreamEntry::Session(Session {
            id: format!("D{number}"),
            time: time_text.as_deref().and_then(time::parse).map(time::iso),
            time_text,
            turns: turns.collect(),
            ..Session::default()
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
