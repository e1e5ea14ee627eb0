//! The names under which published files keep question, answer, gold and grade.
//!
//! Names are compared by their letters and digits alone: `isCorrect`, `is_correct` and `Is Correct` are one name. The first
//! name of a list that a record has counts. To know a further name, add it here.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// The question's id.
pub(crate) const ID: &[&str] = &[
    "questionid",
    "qid",
    "queryid",
    "qaid",
    "itemid",
    "instanceid",
    "exampleid",
    "caseid",
    "testid",
    "uid",
    "id",
    "key",
];
/// Its text.
pub(crate) const TEXT: &[&str] = &["question", "query", "questiontext", "querytext"];
/// Its place within its conversation, counted from 0.
pub(crate) const INDEX: &[&str] = &["questionindex", "questionidx", "qaindex", "qaidx", "qidx"];
/// The same, where the name alone says less: only a whole number counts.
pub(crate) const LOOSE_INDEX: &[&str] = &["index", "idx", "i"];
/// Its conversation.
pub(crate) const BANK: &[&str] = &[
    "bankid",
    "sampleid",
    "conversationid",
    "convid",
    "conversation",
    "conversationidx",
    "conversationindex",
    "convidx",
    "convindex",
    "sampleidx",
    "sampleindex",
    "userid",
    "user",
    "groupid",
    "haystackid",
    "dialogid",
    "dialogueid",
];
/// Its category, by name or number.
pub(crate) const CATEGORY: &[&str] = &["category", "categoryname", "questiontype", "type", "cat"];
/// The answer that was given.
pub(crate) const ANSWER: &[&str] = &[
    "prediction",
    "predictedanswer",
    "predicted",
    "pred",
    "generatedanswer",
    "generated",
    "hypothesis",
    "response",
    "modelanswer",
    "modelresponse",
    "modeloutput",
    "systemanswer",
    "systemresponse",
    "agentanswer",
    "agentresponse",
    "llmanswer",
    "llmresponse",
    "aianswer",
    "airesponse",
    "finalanswer",
    "actualanswer",
    "actual",
    "candidate",
    "completion",
    "output",
];
/// Endings of such names: official LoCoMo results have `<model>_prediction`.
pub(crate) const ANSWER_ENDS: &[&str] = &["prediction", "hypothesis", "generatedanswer"];
/// The answer where none of these is there; files with one of them keep the gold in it.
pub(crate) const PLAIN_ANSWER: &[&str] = &["answer"];
/// The grade.
pub(crate) const GRADE: &[&str] = &[
    "score",
    "grade",
    "correct",
    "iscorrect",
    "autoevallabel",
    "llmjudgments",
    "llmjudgements",
    "judgments",
    "judgements",
    "votes",
    "llmscore",
    "llmgrade",
    "llmjudgescore",
    "llmjudge",
    "llmlabel",
    "llmverdict",
    "llmcorrect",
    "llmiscorrect",
    "judgescore",
    "judgegrade",
    "judgelabel",
    "judgeverdict",
    "judgecorrect",
    "judgeresult",
    "judgment",
    "judgement",
    "verdict",
    "label",
    "answercorrect",
    "isanswercorrect",
    "judge",
    "evaluation",
    "evaluationresult",
    "evalresult",
    "evalscore",
    "eval",
    "passed",
    "pass",
    "accuracy",
    "acc",
    "rating",
    "points",
    "jscore",
    "qascore",
    "metrics",
    "f1score",
    "f1",
];
/// Endings of such names, when nothing else is there.
pub(crate) const GRADE_ENDS: &[&str] = &["judgescore", "llmscore", "iscorrect", "f1"];
/// Grades that stand in several numbered fields: `judgment_1`, `judgment_2`, …
pub(crate) const VOTE: &[&str] = &[
    "judgment",
    "judgement",
    "llmjudgment",
    "llmjudgement",
    "vote",
    "verdict",
    "grade",
    "score",
    "llmscore",
    "judgescore",
    "judge",
    "correct",
    "iscorrect",
    "label",
    "run",
    "trial",
];
/// A grade inside an object.
pub(crate) const INNER: &[&str] = &[
    "label",
    "score",
    "grade",
    "correct",
    "iscorrect",
    "verdict",
    "judgment",
    "judgement",
    "llmscore",
    "passed",
    "pass",
    "accuracy",
    "rating",
    "value",
];
/// Figures that are no votes: an object that holds one of them holds several metrics.
pub(crate) const METRICS: &[&str] = &[
    "f1",
    "em",
    "exactmatch",
    "bleu",
    "rouge",
    "precision",
    "recall",
    "mrr",
    "ndcg",
    "hit",
    "latency",
    "tokens",
    "cost",
    "confidence",
    "similarity",
    "bert",
    "meteor",
];
/// The ids that were retrieved.
pub(crate) const RETRIEVED: &[&str] = &["retrieved", "retrievedids", "ranked"];

/// A name by its letters and digits.
pub(crate) fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The fields of a record by plain name.
pub(crate) struct Fields<'a> {
    by_name: HashMap<String, (&'a str, &'a Value)>,
}

impl<'a> Fields<'a> {
    pub(crate) fn of(fields: &'a Map<String, Value>) -> Self {
        let mut by_name = HashMap::with_capacity(fields.len());
        for (name, value) in fields {
            by_name.entry(plain(name)).or_insert((name.as_str(), value));
        }
        Self { by_name }
    }

    /// Every field of the list that is there, in the list's order, with the name it has in the file.
    pub(crate) fn all(&self, names: &'static [&'static str]) -> impl Iterator<Item = (&'a str, &'a Value)> + '_ {
        names.iter().filter_map(|name| self.by_name.get(*name).copied())
    }

    /// The first of them.
    pub(crate) fn first(&self, names: &'static [&'static str]) -> Option<(&'a str, &'a Value)> {
        self.all(names).next()
    }

    /// The only field whose name ends so.
    pub(crate) fn ending(&self, ends: &[&str]) -> Option<(&'a str, &'a Value)> {
        let mut found = self.by_name.iter().filter(|(name, _)| ends.iter().any(|end| name.ends_with(end)));
        let only = found.next()?.1;
        found.next().is_none().then_some(*only)
    }

    /// Fields with one of these names and a number behind it, in the order of the numbers; the longest such list.
    pub(crate) fn numbered(&self, stems: &'static [&'static str]) -> Option<(&'static str, Vec<&'a Value>)> {
        let mut lists: HashMap<&'static str, Vec<(u32, &'a Value)>> = HashMap::new();
        for (name, (_, value)) in &self.by_name {
            let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
            if let (Some(known), Ok(number)) = (stems.iter().find(|known| **known == stem), name[stem.len()..].parse())
            {
                lists.entry(known).or_default().push((number, *value));
            }
        }
        let (stem, mut list) = lists.into_iter().max_by_key(|(stem, list)| (list.len(), std::cmp::Reverse(*stem)))?;
        list.sort_by_key(|(number, _)| *number);
        Some((stem, list.into_iter().map(|(_, value)| value).collect()))
    }

    /// Dotted names of the fields that hold a number or a truth value (tables hold both as text), for a message.
    pub(crate) fn figures(&self) -> Vec<String> {
        fn is_figure(value: &Value) -> bool {
            match value {
                Value::Number(_) | Value::Bool(_) => true,
                Value::String(text) => text.trim().trim_end_matches('%').parse::<f64>().is_ok(),
                _ => false,
            }
        }
        let mut names = Vec::new();
        for (name, value) in self.by_name.values() {
            if is_figure(value) {
                names.push((*name).to_owned());
            } else if let Value::Object(inner) = value {
                let inner = inner.iter().filter(|(_, value)| is_figure(value));
                names.extend(inner.map(|(inner, _)| format!("{name}.{inner}")));
            }
        }
        names.sort_unstable();
        names
    }
}
