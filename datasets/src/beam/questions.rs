//! The questions of a chat, by their kinds.

use std::collections::BTreeMap;

use bench_proto::dataset::{Bank, BankContent, Gold, GoldRecord, Question};
use serde::Deserialize;
use serde_json::Value;

use super::chat::Messages;
use crate::{
    DatasetError,
    broken::{broken, json},
    loaded::count,
    notes::Notes,
};

/// The ten kinds.
const KINDS: [&str; 10] = [
    "abstention",
    "contradiction_resolution",
    "event_ordering",
    "information_extraction",
    "instruction_following",
    "knowledge_update",
    "multi_session_reasoning",
    "preference_following",
    "summarization",
    "temporal_reasoning",
];

/// The questions of a chat by their kinds.
pub(super) type Kinds = BTreeMap<String, Vec<Probe>>;

/// A question as it stands, as far as it is read.
#[derive(Debug, Deserialize)]
pub(super) struct Probe {
    question: String,
    pub(super) rubric: Vec<String>,
    #[serde(default)]
    difficulty: Option<String>,
    /// Ids of messages, in lists and objects of lists.
    #[serde(default)]
    source_chat_ids: Value,
    // the ideal answer, whose name goes by the kind; no answer is graded by it
    #[serde(default)]
    ideal_response: Option<Value>,
    #[serde(default)]
    ideal_answer: Option<Value>,
    #[serde(default)]
    ideal_summary: Option<Value>,
    #[serde(default)]
    expected_compliance: Option<Value>,
    #[serde(default)]
    answer: Option<Value>,
}

/// Reads a file of questions.
pub(super) fn parse(path: &str, content: &[u8]) -> Result<Kinds, DatasetError> {
    let kinds: Kinds = json(path, content)?;
    for (kind, probes) in &kinds {
        if !KINDS.contains(&kind.as_str()) {
            return Err(broken(
                path,
                format!("field {kind}"),
                format!("is none of the ten kinds: {}", KINDS.join(", ")),
            ));
        }
        for (probe, number) in probes.iter().zip(0..) {
            let missing = |field: &str| broken(path, format!("field {kind}[{number}].{field}"), "is empty");
            if probe.question.trim().is_empty() {
                return Err(missing("question"));
            }
            if probe.rubric.iter().all(|line| line.trim().is_empty()) {
                return Err(missing("rubric"));
            }
        }
    }
    Ok(kinds)
}

/// A chat with its questions, which are asked at its end.
pub(super) fn bank(content: BankContent, kinds: Kinds, messages: &Messages, notes: &mut Notes) -> Bank {
    let (bank_id, ask_after) = (content.bank_id.clone(), count(content.entries.len()));
    let mut bank = Bank { content, ..Bank::default() };
    for (kind, probes) in kinds {
        for (probe, number) in probes.into_iter().zip(0..) {
            let question_id = format!("{bank_id}:{kind}:{number}");
            let mut record = GoldRecord { question_id: question_id.clone(), ..GoldRecord::default() };
            evidence(&probe.source_chat_ids, messages, &mut record, notes);
            record.gold = Gold::Rubric(probe.rubric);
            let difficulty = probe.difficulty.filter(|difficulty| !difficulty.trim().is_empty());
            record.facets.extend(difficulty.map(|difficulty| ("difficulty".to_owned(), difficulty)));
            let ideal = probe.ideal_response.or(probe.ideal_answer).or(probe.ideal_summary);
            let ideal = ideal.or(probe.expected_compliance).or(probe.answer);
            record.hidden.extend(ideal.map(|ideal| ("ideal_answer".to_owned(), ideal)));
            let index = count(bank.questions.len());
            let (category, text) = (kind.clone(), probe.question);
            bank.questions.push(Question { question_id, index, category, text, ask_after, ..Question::default() });
            bank.gold.push(record);
        }
    }
    bank
}

/// The turns and sessions of the messages that a question rests on.
fn evidence(ids: &Value, messages: &Messages, record: &mut GoldRecord, notes: &mut Notes) {
    let mut resolves = true;
    each(ids, &mut |id| {
        let Some((turn, session)) = id.as_u64().and_then(|id| messages.find(id)) else {
            resolves = false;
            notes.say("source_chat_ids that name no message", || {
                format!("{}: source_chat_ids {id} names no message", record.question_id)
            });
            return;
        };
        record.add_evidence(session, turn);
    });
    if !resolves {
        record.hidden.insert("source_chat_ids".to_owned(), ids.clone());
    }
}

/// Visits all values in lists and objects; nothing for null.
fn each(value: &Value, visit: &mut impl FnMut(&Value)) {
    match value {
        Value::Null => {}
        Value::Array(values) => values.iter().for_each(|value| each(value, visit)),
        Value::Object(fields) => fields.values().for_each(|value| each(value, visit)),
        single => visit(single),
    }
}
