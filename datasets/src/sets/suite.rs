//! Suites: small sets of memories with searches and questions, in YAML.
//!
//! Ground truth is made of the memories, not of what a system finds: a memory is evidence when it holds an expected word and
//! no excluded one, and when the question's filter admits it. So recall has a denominator, and a search that expects nothing
//! is one that nothing answers.

use std::collections::{BTreeMap, HashSet};

use bench_proto::{
    dataset::{Bank, BankContent, Filter, Gold, GoldRecord, KeywordRubric, Memory, Question, StreamEntry},
    profile::Form,
};

pub(crate) use super::suite_form::MOST_BYTES;
use super::{
    Problem, check_span, dated, hits, see_half,
    suite_form::{self, Recall, Reflect, Retain, Scenario, Suite},
    time,
};
use crate::{DatasetError, broken::broken, loaded::count, notes::Notes};

/// A suite as banks, with what of it did not resolve.
#[derive(Debug)]
pub(crate) struct ReadSuite {
    /// Its own name.
    pub(crate) name: Option<String>,
    /// Its own line for people.
    pub(crate) description: Option<String>,
    /// One for the suite, or one a scenario.
    pub(crate) banks: Vec<Bank>,
    /// Searches whose words are in no memory, and dates that are none.
    pub(crate) notes: Notes,
}

/// Reads a suite. `stem` is the file's name without its ending: it begins the ids of questions where the suite has no name.
///
/// # Errors
/// Broken YAML, unknown fields, times of filters that are none, replaced entries that are not there: with their places.
pub(crate) fn read(path: &str, stem: &str, text: &[u8]) -> Result<ReadSuite, DatasetError> {
    let Suite { name, description, retain, recall, reflect, mut scenarios } = suite_form::read(path, text)?;
    let broken = |place: String, problem: &str| broken(path, place, problem);
    let has_lists = !(retain.is_empty() && recall.is_empty() && reflect.is_empty());
    if has_lists && !scenarios.is_empty() {
        return Err(broken(
            "scenarios".to_owned(),
            "stand beside retain, recall or reflect; put these into a scenario",
        ));
    }
    let prefix = name.as_deref().unwrap_or(stem).to_owned();
    if has_lists {
        scenarios.push(Scenario { name: prefix.clone(), retain, recall, reflect });
    }
    let (mut banks, mut notes) = (Vec::new(), Notes::default());
    for (number, scenario) in scenarios.iter().enumerate() {
        if scenarios[..number].iter().any(|earlier| earlier.name == scenario.name) {
            return Err(broken(format!("scenarios[{number}].name"), "an earlier scenario has this name already"));
        }
        let place = if has_lists { String::new() } else { format!("scenarios[{number}].") };
        let id = if has_lists { prefix.clone() } else { format!("{prefix}:{}", scenario.name) };
        let mut reader = ScenarioReader { id, bank_id: format!("s{}", number + 1), notes: &mut notes };
        banks.push(reader.bank(scenario).map_err(|(at, problem)| broken(format!("{place}{at}"), &problem))?);
    }
    if banks.iter().all(|bank: &Bank| bank.questions.is_empty()) {
        return Err(broken("suite".to_owned(), "asks nothing: it has neither recall nor reflect"));
    }
    Ok(ReadSuite { name, description, banks, notes })
}

/// Makes a bank of a scenario.
struct ScenarioReader<'a> {
    /// Begins the ids of questions.
    id: String,
    /// Neutral: systems see it.
    bank_id: String,
    notes: &'a mut Notes,
}

impl ScenarioReader<'_> {
    fn bank(&mut self, scenario: &Scenario) -> Result<Bank, Problem> {
        let mut entries = Vec::with_capacity(scenario.retain.len());
        for (number, retain) in scenario.retain.iter().enumerate() {
            let entry = self.entry(number, retain);
            entries.push(entry.map_err(|(at, problem)| (format!("retain[{number}].{at}"), problem))?);
        }
        let content = BankContent { bank_id: self.bank_id.clone(), entries, ..BankContent::default() };
        let mut bank = Bank::default();
        let held: Vec<Held<'_>> = held(&content).map(Held::from).collect();
        for (number, recall) in scenario.recall.iter().enumerate() {
            see_half(self.notes, recall.from.iter().chain(&recall.until));
            let asked = recalled(recall).map_err(|(at, problem)| (format!("recall[{number}].{at}"), problem))?;
            self.ask(&mut bank, &held, asked);
        }
        for (number, reflect) in scenario.reflect.iter().enumerate() {
            let asked = reflected(reflect).map_err(|(at, problem)| (format!("reflect[{number}].{at}"), problem))?;
            self.ask(&mut bank, &held, asked);
            // whoever reflects says more than a few words, whatever the category
            bank.gold.last_mut().into_iter().for_each(|gold| gold.style = Some(Form::Free.name().to_owned()));
        }
        let ask_after = count(content.entries.len());
        bank.questions.iter_mut().for_each(|question| question.ask_after = ask_after);
        Ok(Bank { content, ..bank })
    }

    fn entry(&mut self, number: usize, retain: &Retain) -> Result<StreamEntry, Problem> {
        if retain.content.trim().is_empty() {
            return Err(("content".to_owned(), "is empty".to_owned()));
        }
        let mut fields: BTreeMap<String, String> =
            retain.metadata.iter().map(|(name, value)| (name.clone(), value.text())).collect();
        fields.extend(retain.fact_type.clone().map(|kind| ("fact_type".to_owned(), kind)));
        let id = memory_id(number);
        let memory = Memory {
            text: retain.content.trim().to_owned(),
            time: dated(self.notes, &format!("{}:{id}", self.id), retain.at.as_ref()),
            id,
            tags: retain.tags.clone(),
            fields,
            ..Memory::default()
        };
        match retain.replaces.map(|replaces| replaces as usize) {
            None => Ok(StreamEntry::Memory(memory)),
            Some(earlier) if (1..=number).contains(&earlier) => {
                Ok(StreamEntry::Update { replaces: memory_id(earlier - 1), memory: Some(memory) })
            }
            Some(other) => Err(("replaces".to_owned(), format!("{other} is no earlier entry: they are 1 to {number}"))),
        }
    }

    /// Adds a question with its gold, to be asked of what is left when all is retained.
    fn ask(&mut self, bank: &mut Bank, held: &[Held<'_>], asked: Asked) {
        let index = count(bank.questions.len());
        let question_id = format!("{}:{index}", self.id);
        let Asked { mut question, words } = asked;
        let [expected, excluded] = [&words.required_keywords, &words.incorrect_patterns].map(|words| lower(words));
        let evidence: Vec<String> = held
            .iter()
            .filter(|held| holds_any(&held.text, &expected) && !holds_any(&held.text, &excluded))
            .filter(|held| admits(&question.filter, held.memory))
            .map(|held| held.memory.id.clone())
            .collect();
        let gold = if words.required_keywords.is_empty() { Gold::Abstain } else { Gold::Keywords(words) };
        if evidence.is_empty() && gold != Gold::Abstain {
            self.notes.say("questions of which no memory holds what is expected", || {
                format!("{question_id}: no memory that it may be answered from holds what is expected")
            });
        }
        question.time = dated(self.notes, &question_id, question.time_text.as_ref());
        question.time_text = question.time.clone().or(question.time_text);
        question.question_id.clone_from(&question_id);
        question.index = index;
        bank.questions.push(question);
        bank.gold.push(GoldRecord {
            question_id,
            gold,
            evidence_sessions: evidence.clone(),
            evidence_turns: evidence,
            ..GoldRecord::default()
        });
    }
}

/// A question with the words by which it is graded.
struct Asked {
    question: Question,
    words: KeywordRubric,
}

fn memory_id(number: usize) -> String {
    format!("m{}", number + 1)
}

fn recalled(recall: &Recall) -> Result<Asked, Problem> {
    let filter = Filter {
        tags: recall.tags.clone(),
        from: moment("from", &recall.from, time::iso)?,
        until: moment("until", &recall.until, time::iso_at_end)?,
        ..Filter::default()
    };
    check_span(&filter)?;
    Ok(Asked {
        question: Question {
            category: recall.category.clone().unwrap_or_else(|| "recall".to_owned()),
            text: query(&recall.query)?,
            time_text: recall.at.clone(),
            k: hits("max_results", recall.max_results)?,
            filter,
            ..Question::default()
        },
        words: KeywordRubric {
            required_keywords: sought("expected_contains", &recall.expected_contains)?,
            incorrect_patterns: sought("expected_excludes", &recall.expected_excludes)?,
            ..KeywordRubric::default()
        },
    })
}

fn reflected(reflect: &Reflect) -> Result<Asked, Problem> {
    Ok(Asked {
        question: Question {
            category: reflect.category.clone().unwrap_or_else(|| "reflect".to_owned()),
            text: query(&reflect.query)?,
            k: hits("max_results", reflect.max_results)?,
            ..Question::default()
        },
        words: KeywordRubric {
            required_keywords: sought("expected_topics", &reflect.expected_topics)?,
            incorrect_patterns: sought("expected_excludes", &reflect.expected_excludes)?,
            ..KeywordRubric::default()
        },
    })
}

/// Words that are looked for in texts; a blank one would be in each.
fn sought(field: &str, words: &[String]) -> Result<Vec<String>, Problem> {
    match words.iter().position(|word| word.trim().is_empty()) {
        Some(at) => Err((format!("{field}[{at}]"), "is blank, and every text holds that; take it away".to_owned())),
        None => Ok(words.to_vec()),
    }
}

fn query(text: &str) -> Result<String, Problem> {
    match text.trim() {
        "" => Err(("query".to_owned(), "is empty".to_owned())),
        text => Ok(text.to_owned()),
    }
}

/// A time of a filter as the dataset model has it.
fn moment(field: &str, text: &Option<String>, read: fn(&str) -> Option<String>) -> Result<Option<String>, Problem> {
    let Some(text) = text else { return Ok(None) };
    match read(text) {
        Some(time) => Ok(Some(time)),
        None => Err((field.to_owned(), format!("'{text}' is no time; write 2026-03-04 or 2026-03-04T10:00:00"))),
    }
}

/// A memory with its text in lower case.
struct Held<'a> {
    memory: &'a Memory,
    text: String,
}

impl<'a> From<&'a Memory> for Held<'a> {
    fn from(memory: &'a Memory) -> Self {
        Self { memory, text: memory.text.to_lowercase() }
    }
}

/// The memories that are left when all of a bank is retained.
pub(crate) fn held(content: &BankContent) -> impl Iterator<Item = &Memory> {
    let replaced = content.entries.iter().filter_map(|entry| match entry {
        StreamEntry::Update { replaces, .. } => Some(replaces.as_str()),
        _ => None,
    });
    let replaced: HashSet<&str> = replaced.collect();
    content.entries.iter().filter_map(move |entry| match entry {
        StreamEntry::Memory(memory) | StreamEntry::Update { memory: Some(memory), .. } => {
            (!replaced.contains(memory.id.as_str())).then_some(memory)
        }
        _ => None,
    })
}

/// Whether a question may be answered from a memory.
pub(crate) fn admits(filter: &Filter, memory: &Memory) -> bool {
    let has_tags = filter.tags.iter().all(|tag| memory.tags.contains(tag));
    let time = memory.time.as_deref();
    has_tags
        && filter.from.as_deref().is_none_or(|from| time.is_some_and(|time| time >= from))
        && filter.until.as_deref().is_none_or(|until| time.is_some_and(|time| time <= until))
}

fn lower(words: &[String]) -> Vec<String> {
    words.iter().map(|word| word.to_lowercase()).collect()
}

/// Whether a text holds one of several words, all in lower case.
fn holds_any(text: &str, words: &[String]) -> bool {
    words.iter().any(|word| text.contains(word))
}
