//! MemBench: one choice of four about a trajectory, which is what a person told an assistant or what an agent observed.
//!
//! Two layouts of files are read: one file for each type (`{scenario: [trajectory]}`) below a folder for the perspective, and
//! merged ones for a perspective and a level (`{type: {scenario: [trajectory]}}`). Written from the official code and its
//! documents; not seen on real data.
//!
//! The loader's version was not raised when `am` and `pm` behind a time came to be read: no such time is known
//! of these files, and times of 24 hours are read as before.

mod schema;
mod steps;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use bench_proto::dataset::{Bank, BankContent, Gold, GoldRecord, Question};
use serde_json::Value;

use crate::{
    Dataset, DatasetError, Opening,
    broken::{broken, json},
    by_file::ByFile,
    files::Files,
    loaded::count,
    neutral,
    notes::Notes,
};
use schema::{Layout, Qa, Trajectory};
use steps::Base;

pub(crate) const MANIFEST: &str = include_str!("manifest.toml");
pub(crate) const PROFILE: &str = include_str!("profile.toml");

/// Opens all files that are of a perspective; steps are counted as the variant says.
pub(crate) fn open(opening: &Opening<'_>) -> Result<Box<dyn Dataset>, DatasetError> {
    let files = opening.files()?;
    let base = if opening.manifest().name.ends_with("from-1") { Base::One } else { Base::Zero };
    let names =
        files.list("").filter(|name| name.ends_with(".json") && PERSPECTIVES.iter().any(|word| name.contains(word)));
    let parts = names.map(|name| (name.to_owned(), base)).collect();
    let read =
        |files: &Files, (name, base): &(String, Base), notes: &mut Notes| banks(name, &files.read(name)?, *base, notes);
    Ok(Box::new(ByFile::open(opening, files, parts, read)?))
}

/// The letters of choices. Options are shown by their places, so that one that is left out would give the others another letter.
const LETTERS: [&str; 4] = ["A", "B", "C", "D"];

/// What paths are called by the perspective of their trajectories.
const PERSPECTIVES: [&str; 2] = ["FirstAgent", "ThirdAgent"];

/// The types of questions, in the order of the official code; the last three are of the first perspective only.
const TYPES: [&str; 11] = [
    "simple",
    "conditional",
    "comparative",
    "aggregative",
    "post_processing",
    "noisy",
    "knowledge_update",
    "highlevel",
    "highlevel_rec",
    "lowlevel_rec",
    "RecMultiSession",
];

/// Reads one file, whose path tells perspective, level and, in the layout of one file for each type, the type. `base` is
/// the number that the data give to the first step. Gives a bank for each trajectory.
///
/// # Errors
/// Broken input, with file and field; unknown perspectives and types; letters that are no option.
fn banks(path: &str, content: &[u8], base: Base, notes: &mut Notes) -> Result<Vec<Bank>, DatasetError> {
    let perspective = PERSPECTIVES.into_iter().find(|word| path.contains(word));
    let Some(perspective) = perspective.and_then(|word| word.strip_suffix("Agent")).map(str::to_lowercase) else {
        return Err(broken(path, "name", "FirstAgent or ThirdAgent is expected in the path"));
    };
    let stem = path.rsplit('/').next().and_then(|name| name.split('.').next()).unwrap_or(path);
    let of_file = ["LowLevel", "HighLevel"].into_iter().find(|level| stem.ends_with(level));
    let layout: Layout = json(path, content)?;
    let groups = if of_file.is_some() { Ok(layout.merged()) } else { layout.of_type(stem) };
    let groups = groups.map_err(|(field, problem)| broken(path, format!("field {field}"), problem))?;

    let (mut banks, mut seen) = (Vec::new(), HashSet::new());
    for group in groups {
        if !TYPES.contains(&group.kind.as_str()) {
            let problem = format!("'{}' is none of the types: {}", group.kind, TYPES.join(", "));
            return Err(broken(path, format!("field {}", group.field), problem));
        }
        let is_high = of_file.map_or(group.kind.starts_with("highlevel"), |level| level == "HighLevel");
        let level = if is_high { "high" } else { "low" };
        for (trajectory, at) in group.trajectories.into_iter().zip(0_usize..) {
            let field = format!("{}[{at}]", group.field);
            let mut name = format!("{perspective}/{level}/{}/{}/{}", group.kind, group.scenario, trajectory.tid);
            if !seen.insert(name.clone()) {
                name = format!("{name}#{at}");
                notes.say("tid that is there twice", || format!("{name}: the tid {} is there twice", trajectory.tid));
            }
            let facets = [("perspective", perspective.as_str()), ("level", level), ("scenario", &group.scenario)];
            let maker = Maker { path, field, name, category: &group.kind, facets, base };
            banks.push(maker.bank(trajectory, notes)?);
        }
    }
    Ok(banks)
}

/// What the banks of a group have in common, and where a trajectory stands.
struct Maker<'a> {
    path: &'a str,
    field: String,
    /// Name of the trajectory in the dataset.
    name: String,
    category: &'a str,
    facets: [(&'a str, &'a str); 3],
    base: Base,
}

impl Maker<'_> {
    fn broken(&self, field: &str, problem: String) -> DatasetError {
        broken(self.path, format!("field {}.{field}", self.field), problem)
    }

    fn bank(&self, trajectory: Trajectory, notes: &mut Notes) -> Result<Bank, DatasetError> {
        let (entries, steps) = steps::read(&trajectory.message_list)
            .map_err(|(field, problem)| self.broken(&format!("message_list{field}"), problem.to_owned()))?;
        if let Some((unread, first)) = &steps.unread_times {
            notes.say("times that cannot be read", || {
                format!("{}: {unread} times cannot be read, such as {first}", self.name)
            });
        }
        let content = BankContent { bank_id: neutral::id(&self.name), entries, ..BankContent::default() };
        let mut bank = Bank { content, ..Bank::default() };
        let questions = trajectory.qa.into_iter().chain(trajectory.question_list.into_iter().flatten());
        for (qa, number) in questions.zip(0_usize..) {
            let (question, gold) = self.question(qa, number, &bank.content, &steps, notes)?;
            bank.questions.push(question);
            bank.gold.push(gold);
        }
        if bank.questions.is_empty() {
            return Err(self.broken("QA", "neither this nor question_list holds a question".to_owned()));
        }
        Ok(bank)
    }

    fn question(
        &self,
        qa: Qa,
        number: usize,
        content: &BankContent,
        steps: &steps::Steps,
        notes: &mut Notes,
    ) -> Result<(Question, GoldRecord), DatasetError> {
        let question_id = format!("{}/{number}", self.name);
        let letters = qa.choices.keys().map(String::as_str);
        if !letters.eq(LETTERS.into_iter().take(qa.choices.len().max(2))) {
            let problem = format!("an object with the letters {} is expected, two of them or more", LETTERS.join(", "));
            return Err(self.broken("QA.choices", problem));
        }
        let gold = qa.ground_truth.trim().to_owned();
        if !qa.choices.contains_key(&gold) || gold.len() != 1 {
            return Err(self.broken("QA.ground_truth", format!("'{gold}' is the letter of no choice")));
        }
        let mut record =
            GoldRecord { question_id: question_id.clone(), gold: Gold::Choice(gold), ..GoldRecord::default() };
        record.facets = self.facets.map(|(facet, value)| (facet.to_owned(), value.to_owned())).into();
        let mut resolves = true;
        let targets = match &qa.target_step_id {
            Value::Null => &[],
            Value::Array(targets) => targets.as_slice(),
            single => std::slice::from_ref(single),
        };
        for target in targets {
            let Some((session, turns)) = steps.find(target, self.base) else {
                resolves = false;
                notes.say("target_step_id that names no step", || {
                    format!("{question_id}: target_step_id {target} names no step")
                });
                continue;
            };
            record.add_evidence_session(session);
            turns.iter().for_each(|turn| record.add_evidence(session, turn));
        }
        if !resolves {
            record.hidden.insert("target_step_id".to_owned(), qa.target_step_id.clone());
        }
        record.hidden.extend(qa.answer.filter(|answer| !answer.is_null()).map(|answer| ("answer".to_owned(), answer)));
        let time_text = qa.time.as_ref().and_then(Value::as_str).map(str::to_owned);
        let time = time_text.as_deref().and_then(neutral::time);
        if let (Some(text), None) = (&time_text, &time) {
            notes.say("time that cannot be read", || format!("{question_id}: time {text} cannot be read"));
        }
        let question = Question {
            question_id,
            index: count(number),
            category: self.category.to_owned(),
            text: qa.question,
            ask_after: count(content.entries.len()),
            choices: qa.choices.iter().map(choice).collect(),
            time_text,
            time,
            ..Question::default()
        };
        Ok((question, record))
    }
}

/// An option as it is shown.
fn choice((letter, text): (&String, &Value)) -> String {
    match text {
        Value::String(text) => format!("({letter}) {text}"),
        other => format!("({letter}) {other}"),
    }
}
