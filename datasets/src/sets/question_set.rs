//! Question sets, as the field writes them: JSON lines `{"id", "question", "expected_substrings" | "reference_answer", "tags",
//! "question_date"}`. What is to be remembered stands in lines `{"session": …}` and `{"memory": …}`, in the same file or in one
//! of the same name with `.memories.jsonl` at its end. Blank lines and lines that begin with `#` are skipped.

use std::collections::{BTreeMap, HashMap, hash_map::Entry};

use aho_corasick::AhoCorasick;
use bench_proto::dataset::{
    ABSTENTION, Bank, BankContent, Filter, Gold, GoldRecord, Memory, Question, Session, StreamEntry, Turn,
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::Number;

use super::{Problem, Said, check_span, dated, hits, or_nothing, see_half, time};
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

/// What an id of a file means: the session or memory, and the turn where it is one.
type Meant = (String, Option<String>);

/// A set in the making.
#[derive(Default)]
pub(crate) struct Set {
    /// What it says of itself.
    pub(crate) said: Option<Said>,
    bank: Bank,
    /// The user's ids of what is remembered.
    known: HashMap<String, Meant>,
    /// Our ids of what has none of the user's, the entry's own first: they stand for it where the user's do not.
    unnamed: Vec<Vec<(String, Meant)>>,
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
        // the kind of a line must be known before it is read, so that errors speak of the right fields
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

    /// Notes what the ids of a line mean: given ones may be there once, ours wait until all that are given are known.
    fn know(&mut self, number: usize, is_named: bool, ids: Vec<(String, Meant)>) -> Result<(), Problem> {
        if !is_named {
            self.unnamed.push(ids);
            return Ok(());
        }
        for (given, meant) in ids {
            match self.known.entry(given) {
                Entry::Vacant(free) => drop(free.insert(meant)),
                Entry::Occupied(taken) => {
                    let told = format!("'{}' is already the id of an earlier line", taken.key());
                    return Err((format!("line {number}, field id"), told));
                }
            }
        }
        Ok(())
    }

    /// Lets our ids stand for what has none, where the user's mean nothing else by them. Of an entry whose own id is taken those
    /// of its turns would say something else too.
    fn name_the_rest(&mut self) {
        for ids in std::mem::take(&mut self.unnamed) {
            if ids.first().is_some_and(|(own, _)| self.known.contains_key(own)) {
                continue;
            }
            for (own, meant) in ids {
                self.known.entry(own).or_insert(meant);
            }
        }
    }

    fn session(&mut self, number: usize, session: SessionText) -> Result<(), Problem> {
        let id = format!("S{}", self.bank.content.entries.len() + 1);
        let is_named = session.id.is_some();
        let given = session.id.map_or_else(|| id.clone(), |given| given.text());
        let mut ids = vec![(given.clone(), (id.clone(), None))];
        let mut turns = Vec::with_capacity(session.turns.len());
        for (at, turn) in (1..).zip(session.turns) {
            let turn_id = format!("{id}:{at}");
            ids.push((format!("{given}:{at}"), (id.clone(), Some(turn_id.clone()))));
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
        self.know(number, is_named, ids)?;
        let time = dated(&mut self.notes, &given, session.date.as_ref());
        let session = Session { id, time_text: session.date, time, turns, ..Session::default() };
        self.bank.content.entries.push(StreamEntry::Session(session));
        Ok(())
    }

    fn memory(&mut self, number: usize, memory: MemoryText) -> Result<(), Problem> {
        let id = format!("m{}", self.bank.content.entries.len() + 1);
        let is_named = memory.id.is_some();
        let given = memory.id.map_or_else(|| id.clone(), |given| given.text());
        self.know(number, is_named, vec![(given.clone(), (id.clone(), Some(id.clone())))])?;
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
        see_half(&mut self.notes, line.filter.from.iter().chain(&line.filter.until));
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
        self.name_the_rest();
        let is_sought = |(gold, evidence): (&GoldRecord, &Vec<String>)| match &gold.gold {
            Gold::AnyOf(texts) if evidence.is_empty() => texts.iter().map(|text| text.to_lowercase()).collect(),
            _ => Vec::new(),
        };
        let sought: Vec<Vec<String>> = self.bank.gold.iter().zip(&self.evidence).map(is_sought).collect();
        let held = holding(&self.bank.content.entries, &sought);
        for ((gold, evidence), held) in self.bank.gold.iter_mut().zip(&self.evidence).zip(held) {
            (gold.evidence_turns, gold.evidence_sessions) = held;
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

    /// The user's ids of sessions, turns and memories, with ours; when everything is read.
    pub(crate) fn given(&mut self) -> BTreeMap<String, String> {
        self.name_the_rest();
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

/// What holds one of several expected texts, in any case, is evidence where none is named: turns, and what they stand in. `sought`
/// are the texts of each question, in lower case; all of them are looked for in one pass.
fn holding(entries: &[StreamEntry], sought: &[Vec<String>]) -> Vec<(Vec<String>, Vec<String>)> {
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut texts: Vec<&str> = Vec::new();
    for text in sought.iter().flatten() {
        if let Entry::Vacant(new) = numbers.entry(text) {
            new.insert(texts.len());
            texts.push(text);
        }
    }
    let said = if texts.is_empty() { Vec::new() } else { said(entries) };
    let lines: Vec<String> = said.iter().map(|(_, _, text)| text.to_lowercase()).collect();
    let places = places(&texts, &lines);
    let of_question = |texts: &Vec<String>| {
        let numbers = texts.iter().filter_map(|text| numbers.get(text.as_str()));
        let mut held: Vec<usize> = numbers.filter_map(|number| places.get(*number)).flatten().copied().collect();
        held.sort_unstable();
        held.dedup();
        let (mut turns, mut sessions): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        for (session, turn, _) in held.into_iter().filter_map(|at| said.get(at)) {
            if sessions.last().is_none_or(|last| last != session) {
                sessions.push((*session).to_owned());
            }
            turns.push((*turn).to_owned());
        }
        (turns, sessions)
    };
    sought.iter().map(of_question).collect()
}

/// All turns and memories in their order: what they stand in, their own id, and their text.
fn said(entries: &[StreamEntry]) -> Vec<(&str, &str, &str)> {
    let mut said = Vec::new();
    for entry in entries {
        match entry {
            StreamEntry::Session(session) => {
                said.extend(session.turns.iter().map(|turn| (entry.id(), turn.id.as_str(), turn.text.as_str())));
            }
            StreamEntry::Memory(memory) => said.push((entry.id(), memory.id.as_str(), memory.text.as_str())),
            StreamEntry::Update { .. } => {}
        }
    }
    said
}

/// For each text the lines that hold it, in their order.
fn places(texts: &[&str], lines: &[String]) -> Vec<Vec<usize>> {
    let Ok(all) = AhoCorasick::new(texts) else {
        // more than it can number: one by one
        let of_text =
            |text: &&str| (0_usize..).zip(lines).filter(|(_, line)| line.contains(*text)).map(|(at, _)| at).collect();
        return texts.iter().map(of_text).collect();
    };
    let mut places: Vec<Vec<usize>> = vec![Vec::new(); texts.len()];
    for (at, line) in lines.iter().enumerate() {
        for found in all.find_overlapping_iter(line) {
            let held = &mut places[found.pattern().as_usize()];
            if held.last() != Some(&at) {
                held.push(at);
            }
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(lines: impl IntoIterator<Item = String>) -> Result<Set, DatasetError> {
        let text = lines.into_iter().collect::<Vec<_>>().join("\n");
        let mut set = Set::default();
        for line in Lines::new("f", text.as_bytes()) {
            set.add("f", &line?, true)?;
        }
        Ok(set)
    }

    /// A minute and more where each question looks through all memories, which every command waits for.
    #[test]
    fn many_questions_find_their_evidence_among_many_memories() {
        let memories = (0..3_000).map(|n| {
            let text = format!("ENTRY {n} of {}: nothing else of note is said here on that day", n / 3);
            format!(r#"{{"memory": {{"text": "{text}"}}}}"#)
        });
        let questions = (0..30_000).map(|n| {
            let text = format!(" of {}:", n % 1_000);
            format!(r#"{{"id": {n}, "question": "Which?", "expected_substrings": ["{text}", "of nothing"]}}"#)
        });
        let (bank, notes) = set(memories.chain(questions)).expect("reads").settle();
        assert!(notes.lines().is_empty());
        for n in [0, 7, 999, 29_999] {
            let first = 3 * (n % 1_000) + 1;
            let expected = [0, 1, 2].map(|more| format!("m{}", first + more));
            assert_eq!(bank.gold[n].evidence_turns, expected, "{n}");
            assert_eq!(bank.gold[n].evidence_sessions, expected, "{n}");
        }
    }

    #[test]
    fn texts_that_overlap_are_found_each_and_a_session_is_named_once() {
        let lines = [
            r#"{"session": {"turns": [{"speaker": "a", "text": "New York"}, {"speaker": "b", "text": "no"}, {"speaker": "a", "text": "in York"}]}}"#,
            r#"{"memory": {"text": "YORKSHIRE"}}"#,
            r#"{"id": 1, "question": "?", "expected_substrings": ["york", "new york"]}"#,
            r#"{"id": 2, "question": "?", "expected_substrings": ["New York"]}"#,
            r#"{"id": 3, "question": "?", "expected_substrings": ["ork", "nowhere"], "evidence": ["m2"]}"#,
        ];
        let (bank, _) = set(lines.map(str::to_owned)).expect("reads").settle();
        let evidence = |n: usize| (bank.gold[n].evidence_turns.join(" "), bank.gold[n].evidence_sessions.join(" "));
        assert_eq!(evidence(0), ("S1:1 S1:3 m2".to_owned(), "S1 m2".to_owned()));
        assert_eq!(evidence(1), ("S1:1".to_owned(), "S1".to_owned()));
        assert_eq!(evidence(2), ("m2".to_owned(), "m2".to_owned()), "what is named is all of it");
    }

    #[test]
    fn our_ids_take_none_of_the_users() {
        let lines = [
            r#"{"memory": {"text": "one"}}"#,
            r#"{"session": {"turns": [{"speaker": "a", "text": "two"}]}}"#,
            r#"{"memory": {"text": "three", "id": "m1"}}"#,
            r#"{"memory": {"text": "four", "id": "S2"}}"#,
            r#"{"memory": {"text": "five"}}"#,
            r#"{"id": 1, "question": "?", "reference_answer": "x", "evidence": ["m1", "S2", "m5"]}"#,
            r#"{"id": 2, "question": "?", "reference_answer": "x", "evidence": ["S2:1"]}"#,
        ];
        let mut read = set(lines.map(str::to_owned)).expect("their ids are theirs");
        assert_eq!(
            read.given().into_iter().map(|(given, ours)| format!("{given}={ours}")).collect::<Vec<_>>(),
            ["S2=m4", "m1=m3", "m5=m5"]
        );
        let (bank, notes) = read.settle();
        assert_eq!(bank.gold[0].evidence_turns, ["m3", "m4", "m5"]);
        assert_eq!(notes.lines(), ["2: evidence S2:1 names nothing that is remembered"]);
        let twice = [r#"{"memory": {"text": "a", "id": 1}}"#, r#"{"memory": {"text": "b", "id": 1}}"#];
        let error = set(twice.map(str::to_owned)).err().expect("given twice").to_string();
        assert_eq!(error, "f: line 2, field id: '1' is already the id of an earlier line");
    }
}
