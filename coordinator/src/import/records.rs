//! From a parsed document to its records, wherever they lie in it.
//!
//! A record is an object that names a question and holds an answer or a grade. Around it there may be lists and objects of any
//! depth, whose names and `sample_id`s say the conversation. Besides: objects whose names are the questions' ids
//! (`{"conv-26:0": {"score": 1}}`, `{"conv-26:0": true}`), and tables by column, as pandas writes them.

use bench_proto::json_bound;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{
    ImportError,
    fields::{conversation_of, is_graded, names_a_question},
    forms::by_names,
    lookup::Fields,
    ours::{Given, Ours},
};

/// Deepest nesting of a document that is looked through.
pub(super) const MOST_LEVELS: usize = 16;

/// One record with where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record {
    /// `line 12`, or `record 12` of a document.
    pub(crate) place: String,
    /// Names of what it lies in, the innermost first: often the conversation.
    pub(crate) groups: Vec<String>,
    pub(crate) fields: Map<String, Value>,
}

/// What tells a record from other objects.
#[derive(Clone, Copy)]
pub(crate) struct Search<'a> {
    /// Whether a name is that of a question of the dataset.
    pub(crate) is_question: &'a dyn Fn(&str) -> bool,
    /// Where the user says that fields lie.
    pub(crate) given: &'a Given,
}

/// Records of one kind: a JSON list, or one object a line.
///
/// # Errors
/// Text that is neither, with the line.
pub(crate) fn list_or_lines<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, ImportError> {
    if text.trim_start().starts_with('[') {
        return json_bound::from_str(text, json_bound::LIST).map_err(|e| ImportError::file(e.to_string()));
    }
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let read = |(number, line)| {
        json_bound::from_str(line, json_bound::REPORT)
            .map_err(|e| ImportError::at(&format!("line {number}"), e.to_string()))
    };
    lines.map(read).collect()
}

/// Objects that are looked at for a specimen.
const MOST_SPECIMENS: usize = 1_000;

/// An object that is no record, but more like one than the others.
#[derive(Debug, Default)]
pub(super) struct Specimen {
    pub(super) fields: Map<String, Value>,
    /// Whether it lies in a list and holds none; whether it names a question or is graded; how many single values it has. A part of
    /// a record may be graded, and says less than the record.
    likeness: (bool, bool, usize),
    looked_at: usize,
}

impl Specimen {
    /// The more likely one of two files.
    pub(super) fn or(self, other: Self) -> Self {
        if other.likeness > self.likeness { other } else { self }
    }

    fn consider(&mut self, object: &Map<String, Value>, is_half: bool, is_listed: bool) {
        self.looked_at += 1;
        if self.looked_at > MOST_SPECIMENS {
            return;
        }
        let single_of = |value: &Map<String, Value>| value.values().filter(|value| is_single(value)).count();
        let singles = single_of(object) + object.values().filter_map(Value::as_object).map(single_of).sum::<usize>();
        let likeness = (is_listed && !holds_lists(object), is_half, singles);
        if singles == 0 || likeness <= self.likeness {
            return;
        }
        self.likeness = likeness;
        // single values and those of its fields; what lies deeper is looked at by itself
        let single = |fields: &Map<String, Value>| {
            let fields = fields.iter().filter(|(_, value)| is_single(value));
            fields.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<String, Value>>()
        };
        self.fields = single(object);
        let within = object.iter().filter_map(|(name, value)| Some((name.clone(), single(value.as_object()?).into())));
        self.fields.extend(within);
    }
}

/// Whether a value holds no object.
fn is_single(value: &Value) -> bool {
    !value.is_object() && value.as_array().is_none_or(|list| !list.iter().any(Value::is_object))
}

/// Finds the records of a document, in its order.
pub(super) struct Finder<'a> {
    search: Search<'a>,
    /// Where the document stands; `None` counts its records.
    pub(super) place: Option<String>,
    /// What was found.
    pub(super) records: Vec<Record>,
    /// What comes nearest, until something is found.
    pub(super) specimen: Specimen,
    groups: Vec<String>,
    is_listed: bool,
}

impl<'a> Finder<'a> {
    pub(super) fn new(search: Search<'a>) -> Self {
        Self {
            search,
            place: None,
            records: Vec::new(),
            specimen: Specimen::default(),
            groups: Vec::new(),
            is_listed: false,
        }
    }

    /// Looks through what lies in a group, such as a file.
    pub(super) fn within(&mut self, group: Option<String>, value: Value) {
        let before = self.groups.len();
        self.groups.extend(group);
        self.look(value);
        self.groups.truncate(before);
    }

    fn push(&mut self, fields: Map<String, Value>) {
        let place = self.place.clone().unwrap_or_else(|| format!("record {}", self.records.len() + 1));
        self.records.push(Record { place, groups: self.groups.iter().rev().cloned().collect(), fields });
    }

    fn look(&mut self, value: Value) {
        if self.groups.len() > MOST_LEVELS {
            return;
        }
        match value {
            Value::Array(values) => {
                for value in values {
                    self.is_listed = true;
                    self.look(value);
                }
                self.is_listed = false;
            }
            Value::Object(object) => self.object(object),
            _ => {}
        }
    }

    fn object(&mut self, object: Map<String, Value>) {
        let is_listed = std::mem::take(&mut self.is_listed);
        let Search { is_question, given } = self.search;
        let fields = Fields::in_record(&object);
        let table = by_column(&object, &fields, given);
        let (graded, naming) = (is_graded(&fields, given), names_a_question(&fields, given));
        // the id of something that holds lists may be that of a whole run
        let first = |ours| by_names().find(&fields, given, ours).into_iter().next();
        let surely = first(Ours::Question).is_some()
            || first(Ours::QuestionId).is_none_or(|id| id.value.as_str().is_none_or(is_question));
        drop(fields);
        if let Some(rows) = table {
            rows.into_iter().for_each(|row| self.push(row));
            return;
        }
        if graded && naming && (surely || !holds_lists(&object)) {
            self.push(object);
            return;
        }
        let key = self.groups.last().filter(|key| graded && !naming && is_question(key)).cloned();
        if let Some(key) = key {
            self.push(with_id(object, key));
            return;
        }
        if self.records.is_empty() {
            self.specimen.consider(&object, graded || naming, is_listed);
        }
        let found = self.records.len();
        let spare = (graded && naming).then(|| object.clone());
        self.look_within(object);
        if let (Some(object), true) = (spare, self.records.len() == found) {
            self.push(object);
        }
    }

    /// Looks through the fields of an object that is no record itself.
    fn look_within(&mut self, object: Map<String, Value>) {
        let conversation = conversation_of(&object, self.search.given);
        let before = self.groups.len();
        self.groups.extend(conversation);
        for (name, value) in object {
            let is_grade =
                !value.is_object() && value.as_array().is_none_or(|list| list.iter().all(|v| !v.is_object()));
            if is_grade && (self.search.is_question)(&name) {
                self.push(Map::from_iter([
                    ("question_id".to_owned(), Value::String(name)),
                    ("score".to_owned(), value),
                ]));
            } else {
                self.within(Some(name), value);
            }
        }
        self.groups.truncate(before);
    }
}

fn with_id(mut object: Map<String, Value>, id: String) -> Map<String, Value> {
    object.insert("question_id".to_owned(), Value::String(id));
    object
}

fn holds_lists(object: &Map<String, Value>) -> bool {
    object.values().any(|value| value.as_array().is_some_and(|list| list.iter().any(Value::is_object)))
}

/// The rows of a table by column: `{"question_id": [..], "score": [..]}`, the same with objects by row number, or
/// `{"columns": [..], "data": [[..], ..]}`.
fn by_column(object: &Map<String, Value>, fields: &Fields<'_>, given: &Given) -> Option<Vec<Map<String, Value>>> {
    if let (Some(Value::Array(columns)), Some(Value::Array(rows))) = (object.get("columns"), object.get("data")) {
        let names: Vec<&str> = columns.iter().map(Value::as_str).collect::<Option<_>>()?;
        let row = |row: &Value| {
            let cells = row.as_array()?.iter().cloned();
            Some(names.iter().map(|name| (*name).to_owned()).zip(cells).collect())
        };
        return rows.iter().map(row).collect();
    }
    if !names_columns(fields, given) {
        return None;
    }
    let cells = |column: &Value| -> Option<Vec<Value>> {
        match column {
            Value::Array(cells) => Some(cells.clone()),
            Value::Object(cells) if cells.keys().all(|row| row.parse::<u64>().is_ok()) => {
                let mut rows: Vec<(u64, &Value)> =
                    cells.iter().filter_map(|(row, cell)| Some((row.parse().ok()?, cell))).collect();
                rows.sort_by_key(|(row, _)| *row);
                Some(rows.into_iter().map(|(_, cell)| cell.clone()).collect())
            }
            _ => None,
        }
    };
    let columns: Vec<(&String, Vec<Value>)> =
        object.iter().filter_map(|(name, column)| Some((name, cells(column)?))).collect();
    let rows = columns.first()?.1.len();
    if columns.iter().any(|(_, cells)| cells.len() != rows) {
        return None;
    }
    let row = |at: usize| columns.iter().map(|(name, cells)| ((*name).clone(), cells[at].clone())).collect();
    Some((0..rows).map(row).collect())
}

/// Whether ids or texts of questions stand in a list of their own.
fn names_columns(fields: &Fields<'_>, given: &Given) -> bool {
    [Ours::QuestionId, Ours::Question].into_iter().any(|ours| {
        let first = by_names().find(fields, given, ours).into_iter().next();
        first.is_some_and(|found| found.value.is_array() || found.value.is_object())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(value: Value) -> Vec<Record> {
        let (is_question, given) = (|name: &str| name.starts_with("q:"), Given::default());
        let mut finder = Finder::new(Search { is_question: &is_question, given: &given });
        finder.within(None, value);
        finder.records
    }

    #[test]
    fn records_are_found_wherever_they_lie() {
        for (value, groups) in [
            (json!([{"question_id": "q:0", "answer": "x"}]), vec![]),
            (json!({"runs": {"conv": [{"question_id": "q:0", "answer": "x"}], "n": 1}}), vec!["conv", "runs"]),
            (json!([{"sample_id": "conv-26", "qa": [{"question": "?", "answer": "x"}]}]), vec!["qa", "conv-26"]),
            (json!({"id": "run 1", "score": 0.5, "results": [{"id": 0, "score": 1}]}), vec!["results"]),
            (json!({"accuracy": 0.5, "graded": {"q:0": {"score": 1}}}), vec!["q:0", "graded"]),
            (json!({"correct": 1, "graded": {"q:0": true}}), vec!["graded"]),
            (json!({"question_id": "q:0", "score": 1, "retrieved": [{"id": "D1", "score": 0.9}]}), vec![]),
        ] {
            let records = found(value.clone());
            assert_eq!(records.len(), 1, "{value}");
            assert_eq!(records[0].groups, groups, "{value}");
        }
        assert!(found(json!({"total": 3, "correct": 1, "by": {"temporal": 0.4}})).is_empty());
    }

    #[test]
    fn tables_by_column_are_records_too() {
        for value in [
            json!({"question_id": ["q:0", "q:1"], "score": [1, 0]}),
            json!({"question_id": {"0": "q:0", "1": "q:1"}, "score": {"1": 0, "0": 1}}),
            json!({"columns": ["question_id", "score"], "index": [0, 1], "data": [["q:0", 1], ["q:1", 0]]}),
        ] {
            let records = found(value.clone());
            assert_eq!(records.len(), 2, "{value}");
            assert_eq!((&records[1].fields["question_id"], &records[1].fields["score"]), (&json!("q:1"), &json!(0)));
        }
    }
}
