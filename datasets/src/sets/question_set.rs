//! Question sets, as the field writes them: JSON lines `{"id", "question", "expected_substrings" | "reference_answer", "tags",
//! "question_date"}`. What is to be remembered stands in lines `{"session": …}` and `{"memory": …}`, in the same file or in one
//! of the same name with `.memories.jsonl` at its end. Blank lines and lines that begin with `#` are skipped.

use std::collections::{BTreeMap, HashMap};

use bench_proto::dataset::{
    ABSTENTION, Bank, BankContent, Filter, Gold, GoldRecord, Memory, Question, Session, StreamEntry, Turn,
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::Number;

use super::{Problem, Said, check_span, dated, hits, or_nothing, time};
use crate::{
    DatasetError,
    broken::broken,
    lines::{Line, Lines},
    loaded::count,
    notes::Notes,
};

/// Category of questions without tags.
const PLAIN: &str = "question";
/// Category of questions without tags that nothing answers.
const UNANSWERABLE: &str = "unanswerable";

/// A line of the file; which one it is, is told by its key.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DatasetLine {
    dataset: Said,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionLine {
    session: SessionText,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionText {
    /// For evidence; systems see a number.
    #[serde(default)]
    id: Option<Id>,
    #[serde(default)]
    date: Option<String>,
    turns: Vec<TurnText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TurnText {
    #[serde(alias = "role")]
    speaker: String,
    #[serde(alias = "content")]
    text: String,
    #[serde(default)]
    date: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MemoryLine {
    memory: MemoryText,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MemoryText {
    text: String,
    /// As in [`SessionText`].
    #[serde(default)]
    id: Option<Id>,
    #[serde(default)]
    date: Option<String>,
    #[serde(default, deserialize_with = "or_nothing")]
    tags: Vec<String>,
    #[serde(default)]
    user: Option<String>,
    #[serde(default, deserialize_with = "or_nothing")]
    scopes: Vec<String>,
    #[serde(default, deserialize_with = "or_nothing")]
    fields: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QuestionLine {
    id: Id,
    question: String,
    /// Any one of them makes an answer right.
    #[serde(default, deserialize_with = "or_nothing")]
    expected_substrings: Vec<String>,
    #[serde(default)]
    reference_answer: Option<Id>,
    /// The first is the category, the others are facets.
    #[serde(default, deserialize_with = "or_nothing")]
    tags: Vec<String>,
    #[serde(default, alias = "questionDate")]
    question_date: Option<String>,
    /// Whether nothing that was remembered answers it.
    #[serde(default, deserialize_with = "or_nothing")]
    unanswerable: bool,
    /// Ids of sessions, turns (`<session>:<number from 1>`) and memories.
    #[serde(default, deserialize_with = "or_nothing")]
    evidence: Vec<Id>,
    /// Hits to ask for.
    #[serde(default)]
    k: Option<u32>,
    #[serde(default, deserialize_with = "or_nothing")]
    filter: FilterText,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FilterText {
    #[serde(deserialize_with = "or_nothing")]
    tags: Vec<String>,
    user: Option<String>,
    #[serde(deserialize_with = "or_nothing")]
    scopes: Vec<String>,
    from: Option<String>,
    until: Option<String>,
}

/// A text or a number.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text or a number")]
enum Id {
    Text(String),
    Number(Number),
}

impl Id {
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
        }
    }
}

/// The bank of a set that is part of the program, and what did not resolve.
pub(crate) fn of_text(name: &str, text: &str) -> Result<(Bank, Notes), DatasetError> {
    let mut set = Set::default();
    for line in Lines::new(name, text.as_bytes()).with_remarks() {
        set.add(name, &line?, true)?;
    }
    Ok(set.settle())
}

/// A set in the making.
#[derive(Default)]
pub(crate) struct Set {
    /// What it says of itself.
    pub(crate) said: Option<Said>,
    bank: Bank,
    /// The user's ids of what is remembered, with ours: the session or memory, and the turn where it is one.
    known: HashMap<String, (String, Option<String>)>,
    /// Ids of questions, with their lines.
    asked: HashMap<String, usize>,
    /// Evidence by question, looked up when everything is read.
    evidence: Vec<Vec<String>>,
    notes: Notes,
    speakers: Vec<String>,
}

impl Set {
    /// Adds a line of a file; questions stand in one of several files alone.
    ///
    /// # Errors
    /// What is no line of a set, and ids that are there twice: with line and field.
    pub(crate) fn add(&mut self, path: &str, line: &Line, may_ask: bool) -> Result<(), DatasetError> {
        // which line it is must be known before it is read, so that errors speak of the right fields
        let number = line.number;
        let keys: BTreeMap<String, IgnoredAny> = line.json(path)?;
        let is = |key: &str| keys.contains_key(key);
        let added = if is("session") {
            self.session(number, line.json::<SessionLine>(path)?.session)
        } else if is("memory") {
            self.memory(number, line.json::<MemoryLine>(path)?.memory)
        } else if !may_ask {
            let problem = "is neither a session nor a memory; questions stand in the other file";
            Err((format!("line {number}"), problem.to_owned()))
        } else if is("dataset") {
            let said = line.json::<DatasetLine>(path)?.dataset;
            match self.said.replace(said) {
                None => Ok(()),
                Some(_) => Err((
                    format!("line {number}"),
                    "describes the dataset, as an earlier line does: keep one of them".to_owned(),
                )),
            }
        } else {
            self.question(number, line.json(path)?)
        };
        added.map_err(|(place, problem)| broken(path, place, problem))
    }

    fn know(&mut self, number: usize, given: String, entry: String, turn: Option<String>) -> Result<(), Problem> {
        if self.known.contains_key(&given) {
            return Err((
                format!("line {number}, field id"),
                format!("'{given}' is already the id of an earlier line"),
            ));
        }
        self.known.insert(given, (entry, turn));
        Ok(())
    }

    fn session(&mut self, number: usize, session: SessionText) -> Result<(), Problem> {
        let id = format!("S{}", self.bank.content.entries.len() + 1);
        let given = session.id.map_or_else(|| id.clone(), |given| given.text());
        self.know(number, given.clone(), id.clone(), None)?;
        let mut turns = Vec::with_capacity(session.turns.len());
        for (at, turn) in (1..).zip(session.turns) {
            let turn_id = format!("{id}:{at}");
            self.know(number, format!("{given}:{at}"), id.clone(), Some(turn_id.clone()))?;
            if !self.speakers.contains(&turn.speaker) && self.speakers.len() < 100 {
                self.speakers.push(turn.speaker.clone());
            }
            let time = dated(&mut self.notes, &format!("{given}:{at}"), turn.date.as_ref());
            turns.push(Turn {
                id: turn_id,
                speaker: turn.speaker,
                text: turn.text,
                time_text: turn.date,
                time,
                ..Turn::default()
            });
        }
        let time = dated(&mut self.notes, &given, session.date.as_ref());
        let session = Session { id, time_text: session.date, time, turns, ..Session::default() };
        self.bank.content.entries.push(StreamEntry::Session(session));
        Ok(())
    }

    fn memory(&mut self, number: usize, memory: MemoryText) -> Result<(), Problem> {
        let id = format!("m{}", self.bank.content.entries.len() + 1);
        let given = memory.id.map_or_else(|| id.clone(), |given| given.text());
        self.know(number, given.clone(), id.clone(), Some(id.clone()))?;
        let time = dated(&mut self.notes, &given, memory.date.as_ref());
        let MemoryText { text, tags, user, scopes, fields, .. } = memory;
        self.bank.content.entries.push(StreamEntry::Memory(Memory { id, text, time, tags, user, scopes, fields }));
        Ok(())
    }

    fn question(&mut self, number: usize, line: QuestionLine) -> Result<(), Problem> {
        let problem = |field: &str, problem: &str| Err((format!("line {number}, field {field}"), problem.to_owned()));
        let question_id = line.id.text();
        if question_id.trim().is_empty() {
            return problem("id", "is empty");
        }
        if let Some(earlier) = self.asked.insert(question_id.clone(), number) {
            return problem("id", &format!("'{question_id}' is the id of the question in line {earlier}"));
        }
        if line.question.trim().is_empty() {
            return problem("question", "is empty");
        }
        let has_substrings = line.expected_substrings.iter().any(|text| !text.trim().is_empty());
        let texts = line.reference_answer.iter().map(Id::text).chain(line.expected_substrings);
        let texts: Vec<String> = texts.filter(|text| !text.trim().is_empty()).collect();
        let gold = match (line.unanswerable, <[String; 1]>::try_from(texts)) {
            (true, Ok(_)) => return problem("unanswerable", "stands beside an expected answer; leave one of them out"),
            (true, Err(texts)) if texts.is_empty() => Gold::Abstain,
            (true, Err(_)) => return problem("unanswerable", "stands beside expected answers; leave one of them out"),
            // substrings are something else than a text of which all counts
            (false, Ok([text])) if has_substrings => Gold::AnyOf(vec![text]),
            (false, Ok([text])) => Gold::Text(text),
            (false, Err(texts)) if texts.is_empty() => {
                return problem(
                    "expected_substrings",
                    "is empty, and there is no reference_answer: write \"unanswerable\": true where nothing answers it",
                );
            }
            (false, Err(texts)) => Gold::AnyOf(texts),
        };
        let is_unanswerable = gold == Gold::Abstain;
        // a tag of blanks would be a category without a name
        let mut tags = line.tags.into_iter().filter(|tag| !tag.trim().is_empty());
        let category = tags.next().unwrap_or_else(|| if is_unanswerable { UNANSWERABLE } else { PLAIN }.to_owned());
        let mut facets: BTreeMap<String, String> = tags.map(|tag| (tag, "yes".to_owned())).collect();
        // whether there is an answer is said by its field, never by a tag
        facets.remove(ABSTENTION);
        facets.extend(is_unanswerable.then(|| (ABSTENTION.to_owned(), "yes".to_owned())));
        let filter =
            filter(line.filter).map_err(|(field, told)| (format!("line {number}, field filter.{field}"), told))?;
        let k = hits("k", line.k).map_err(|(field, told)| (format!("line {number}, field {field}"), told))?;
        let time = dated(&mut self.notes, &question_id, line.question_date.as_ref());
        let index = count(self.bank.questions.len());
        self.bank.questions.push(Question {
            question_id: question_id.clone(),
            index,
            category,
            text: line.question,
            time_text: line.question_date,
            time,
            k,
            filter,
            ..Question::default()
        });
        self.bank.gold.push(GoldRecord { question_id, gold, facets, ..GoldRecord::default() });
        self.evidence.push(line.evidence.iter().map(Id::text).collect());
        Ok(())
    }

    /// Looks up the evidence of all questions.
    fn resolve(&mut self) {
        for (gold, evidence) in self.bank.gold.iter_mut().zip(&self.evidence) {
            if evidence.is_empty() {
                (gold.evidence_turns, gold.evidence_sessions) = holding(&self.bank.content.entries, &gold.gold);
            }
            for given in evidence {
                let Some((entry, turn)) = self.known.get(given) else {
                    let note = || format!("{}: evidence {given} names nothing that is remembered", gold.question_id);
                    self.notes.say("evidence that names nothing", note);
                    continue;
                };
                match turn {
                    Some(turn) => gold.add_evidence(entry, turn),
                    None => gold.add_evidence_session(entry),
                }
            }
        }
    }

    /// The user's ids of sessions, turns and memories, with ours.
    pub(crate) fn given(&self) -> BTreeMap<String, String> {
        let ours = |(given, (entry, turn)): (&String, &(String, Option<String>))| {
            (given.clone(), turn.as_ref().unwrap_or(entry).clone())
        };
        self.known.iter().map(ours).collect()
    }

    /// Whether it has something to ask, and something to remember.
    pub(crate) fn has(&self) -> (bool, bool) {
        (!self.bank.questions.is_empty(), !self.bank.content.entries.is_empty())
    }

    /// The bank, and what did not resolve, when everything is read.
    pub(crate) fn settle(mut self) -> (Bank, Notes) {
        self.resolve();
        let entries = count(self.bank.content.entries.len());
        for question in &mut self.bank.questions {
            question.ask_after = entries;
        }
        let content = BankContent { bank_id: "b1".to_owned(), speakers: self.speakers, ..self.bank.content };
        (Bank { content, ..self.bank }, self.notes)
    }
}

/// The filter with its times as the dataset model has them; else the field at fault and what is wrong.
fn filter(given: FilterText) -> Result<Filter, Problem> {
    let read = |field: &str, text: &Option<String>, read: fn(&str) -> Option<String>| match text {
        None => Ok(None),
        Some(text) => read(text)
            .map(Some)
            .ok_or_else(|| (field.to_owned(), format!("'{text}' is no date; write 2026-03-04 or 2026-03-04T10:00"))),
    };
    let (from, until) = (read("from", &given.from, time::iso)?, read("until", &given.until, time::iso_at_end)?);
    let FilterText { tags, user, scopes, .. } = given;
    let filter = Filter { tags, user, scopes, from, until };
    check_span(&filter)?;
    Ok(filter)
}

/// What holds one of several expected texts, in any case, is evidence where none is named: turns, and what they stand in.
fn holding(entries: &[StreamEntry], gold: &Gold) -> (Vec<String>, Vec<String>) {
    let Gold::AnyOf(texts) = gold else { return (Vec::new(), Vec::new()) };
    let texts: Vec<String> = texts.iter().map(|text| text.to_lowercase()).collect();
    let holds = |said: &str| texts.iter().any(|text| said.to_lowercase().contains(text));
    let (mut turns, mut sessions) = (Vec::new(), Vec::new());
    for entry in entries {
        let held: Vec<&String> = match entry {
            StreamEntry::Session(session) => {
                session.turns.iter().filter(|turn| holds(&turn.text)).map(|turn| &turn.id).collect()
            }
            StreamEntry::Memory(memory) if holds(&memory.text) => vec![&memory.id],
            StreamEntry::Memory(_) | StreamEntry::Update { .. } => Vec::new(),
        };
        if !held.is_empty() {
            sessions.push(entry.id().to_owned());
        }
        turns.extend(held.into_iter().cloned());
    }
    (turns, sessions)
}
