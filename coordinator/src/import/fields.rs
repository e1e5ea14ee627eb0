//! The names under which published files keep answer, grade, hits and question.

use serde_json::{Map, Value};

use super::{ImportError, read::Record};
use crate::cli::Reduce;

/// Names of the question's id.
const ID: &[&str] = &["question_id", "questionId", "qid", "query_id", "id"];
/// Names of its text.
const TEXT: &[&str] = &["question", "query", "question_text"];
/// Names of its place within its conversation, counted from 0.
const INDEX: &[&str] = &["question_index", "question_idx", "qa_index", "qa_idx"];
/// Names of its conversation.
const BANK: &[&str] = &[
    "bank_id",
    "sample_id",
    "conversation_id",
    "conv_id",
    "conversation",
    "conversation_idx",
    "conv_idx",
    "sample_idx",
    "user_id",
    "group_id",
    "haystack_id",
];
/// Names of the answer that was given; `answer` comes last, because files with one of the others keep the gold in it.
const ANSWER: &[&str] = &[
    "prediction",
    "predicted_answer",
    "generated_answer",
    "hypothesis",
    "response",
    "model_answer",
    "system_answer",
    "output",
    "answer",
];
/// Names of the grade.
const GRADE: &[&str] = &[
    "score",
    "grade",
    "correct",
    "is_correct",
    "autoeval_label",
    "llm_judgments",
    "llm_judgements",
    "judgments",
    "judgements",
    "llm_score",
    "judge_score",
    "judgment",
    "judgement",
    "verdict",
    "label",
];
/// Names of the ids that were retrieved.
const RETRIEVED: &[&str] = &["retrieved", "retrieved_ids", "ranked"];
/// Names of a grade inside an object.
const INNER: &[&str] = &["label", "score", "grade", "correct", "is_correct", "verdict"];

/// A record as it is understood.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Line {
    /// Where it stands.
    pub(crate) place: String,
    /// The question's id as the file has it.
    pub(crate) id: Option<String>,
    /// The question's text.
    pub(crate) text: Option<String>,
    /// The question's place within its conversation.
    pub(crate) index: Option<u32>,
    /// Names that may be the conversation's, the best first.
    pub(crate) banks: Vec<String>,
    /// The answer.
    pub(crate) answer: Option<String>,
    /// Retrieved ids, best first.
    pub(crate) retrieved: Option<Vec<String>>,
    /// What the file says about the grade.
    pub(crate) grade: Grade,
    /// The metric's name.
    pub(crate) metric: Option<String>,
}

/// The grade of a record.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) enum Grade {
    /// It has none.
    #[default]
    None,
    /// It has one, in [0, 1].
    Score(f64),
    /// It says that there is none (`null`, or an outcome of ours without a score): the question failed.
    Failed,
}

/// What a person says about a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reading {
    /// The grade's field, dotted, instead of the known names.
    pub(crate) score_field: Option<String>,
    /// Grades are divided by this.
    pub(crate) scale: f64,
    /// Several grades of one answer.
    pub(crate) reduce: Reduce,
    /// The metric's name.
    pub(crate) metric: Option<String>,
}

fn first<'a>(fields: &'a Map<String, Value>, names: &[&str]) -> Option<(&'a str, &'a Value)> {
    names.iter().find_map(|name| fields.get_key_value(*name)).map(|(name, value)| (name.as_str(), value))
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Whether an object is a record: it names a question, and holds an answer or a grade.
pub(crate) fn is_record(fields: &Map<String, Value>) -> bool {
    let has = |names: &[&str]| first(fields, names).is_some_and(|(_, value)| !value.is_object() || names == GRADE);
    (has(ID) || has(TEXT) || has(INDEX)) && (has(ANSWER) || has(GRADE) || fields.contains_key("scores"))
}

/// Understands a record.
///
/// # Errors
/// A grade that is none, or out of range; a record that holds nothing to grade.
pub(crate) fn line(record: &Record, reading: &Reading) -> Result<Line, ImportError> {
    let fields = &record.fields;
    let problem = |problem: String| ImportError::at(&record.place, problem);
    let scalar = |names: &[&str]| first(fields, names).and_then(|(_, value)| text_of(value));
    let mut banks: Vec<String> = scalar(BANK).into_iter().collect();
    banks.extend(record.groups.iter().cloned());
    let index = match first(fields, INDEX) {
        Some((name, value)) => {
            let number = text_of(value).and_then(|text| text.parse().ok());
            Some(number.ok_or_else(|| problem(format!("{name} is no whole number")))?)
        }
        None => None,
    };
    let line = Line {
        place: record.place.clone(),
        id: scalar(ID),
        text: scalar(TEXT),
        index,
        banks,
        answer: first(fields, ANSWER).and_then(|(_, value)| text_of(value)),
        retrieved: first(fields, RETRIEVED).and_then(|(_, value)| ids_of(value)),
        grade: grade(fields, reading).map_err(problem)?,
        metric: scalar(&["metric"]),
    };
    if line.id.is_none() && line.text.is_none() && line.index.is_none() {
        return Err(problem("it names no question: give question_id".to_owned()));
    }
    if line.answer.is_none() && line.grade == Grade::None {
        return Err(problem("neither answer nor score: there is nothing to grade".to_owned()));
    }
    Ok(line)
}

/// Ids as strings, or as objects with an id; in CSV separated by blanks or semicolons.
fn ids_of(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Array(values) => {
            Some(values.iter().filter_map(|v| text_of(v).or_else(|| text_of(v.get("id")?))).collect())
        }
        Value::String(text) if text.trim_start().starts_with('[') => ids_of(&serde_json::from_str(text).ok()?),
        Value::String(text) => Some(text.split([';', ' ']).filter(|id| !id.is_empty()).map(str::to_owned).collect()),
        _ => None,
    }
}

fn grade(fields: &Map<String, Value>, reading: &Reading) -> Result<Grade, String> {
    let ours = fields.get("outcome").and_then(Value::as_str);
    if matches!(ours, Some("infra_error" | "not_run")) {
        return Ok(Grade::Failed);
    }
    let found = match &reading.score_field {
        Some(path) => {
            let mut parts = path.split('.');
            let top = parts.next().and_then(|name| fields.get(name));
            let value = parts.try_fold(top, |value, name| Some(value?.get(name)));
            Some((path.as_str(), value.flatten().ok_or_else(|| format!("it has no field '{path}' (--score-field)"))?))
        }
        // a questions.jsonl of ours has judgements beside its scores, and those are not the grade
        None if fields.contains_key("scores") && !fields.contains_key("score") => {
            ours_score(fields, reading.metric.as_deref())
        }
        None => first(fields, GRADE),
    };
    let Some((name, value)) = found else { return Ok(Grade::None) };
    if value.is_null() {
        return Ok(Grade::Failed);
    }
    let mut grades = Vec::new();
    grades_in(value, &mut grades).map_err(|what| format!("{name}: {what} is no grade"))?;
    if grades.is_empty() {
        return Err(format!("{name} holds no grade"));
    }
    let scaled: Vec<f64> = grades.iter().map(|grade| grade / reading.scale).collect();
    if let Some(wrong) = scaled.iter().find(|grade| !(0.0..=1.0).contains(*grade)) {
        return Err(format!("score {wrong} is not in [0, 1]; --scale N divides grades by N"));
    }
    let mean = scaled.iter().sum::<f64>() / scaled.len() as f64;
    Ok(Grade::Score(match reading.reduce {
        Reduce::Mean => mean,
        Reduce::Majority => {
            let passed = scaled.iter().filter(|grade| **grade >= 0.5).count();
            f64::from(u8::from(passed * 2 > scaled.len()))
        }
    }))
}

/// `scores` of a questions.jsonl of ours: the named metric, else the judge's, else the only one.
fn ours_score<'a>(fields: &'a Map<String, Value>, metric: Option<&str>) -> Option<(&'a str, &'a Value)> {
    let scores = fields.get("scores")?.as_object()?;
    let of = |name: &str| scores.get_key_value(name);
    let found = match metric {
        Some(metric) => of(metric),
        None => of("judge").or_else(|| scores.iter().next().filter(|_| scores.len() == 1)),
    };
    found.map(|(name, value)| (name.as_str(), value))
}

/// All grades of a value: one, a list, an object of votes, or an object with a known field.
fn grades_in(value: &Value, grades: &mut Vec<f64>) -> Result<(), String> {
    match value {
        Value::Bool(right) => grades.push(f64::from(u8::from(*right))),
        Value::Number(number) => grades.push(number.as_f64().ok_or_else(|| number.to_string())?),
        Value::String(word) => grades.push(word_grade(word).ok_or_else(|| format!("'{word}'"))?),
        Value::Array(values) => values.iter().try_for_each(|value| grades_in(value, grades))?,
        Value::Object(fields) => match first(fields, INNER) {
            Some((_, inner)) => grades_in(inner, grades)?,
            None => fields.values().try_for_each(|value| grades_in(value, grades))?,
        },
        Value::Null => {}
    }
    Ok(())
}

/// Whole words only: "incorrect" contains "correct".
fn word_grade(word: &str) -> Option<f64> {
    match word.trim().to_lowercase().as_str() {
        "correct" | "true" | "yes" | "right" | "pass" | "passed" => Some(1.0),
        "incorrect" | "wrong" | "false" | "no" | "fail" | "failed" => Some(0.0),
        number => number.parse().ok().filter(|number: &f64| number.is_finite()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PLAIN: Reading = Reading { score_field: None, scale: 1.0, reduce: Reduce::Mean, metric: None };

    fn understood(fields: Value, reading: &Reading) -> Result<Line, ImportError> {
        let Value::Object(fields) = fields else { panic!("an object") };
        line(&Record { place: "line 1".into(), groups: vec!["g".into()], fields }, reading)
    }

    fn graded(fields: Value) -> Grade {
        understood(fields, &PLAIN).expect("is understood").grade
    }

    #[test]
    fn grades_of_published_forms() {
        let third = 1.0 / 3.0;
        let votes = json!({"judgment_1": true, "judgment_2": false, "judgment_3": false});
        assert_eq!(graded(json!({"question_id": "a", "llm_judgments": votes})), Grade::Score(third));
        assert_eq!(graded(json!({"question_id": "a", "grade": true})), Grade::Score(1.0));
        assert_eq!(
            graded(json!({"question_id": "a", "autoeval_label": {"model": "m", "label": false}})),
            Grade::Score(0.0)
        );
        assert_eq!(graded(json!({"question_id": "a", "verdict": "INCORRECT"})), Grade::Score(0.0));
        assert_eq!(graded(json!({"question_id": "a", "score": "0.25"})), Grade::Score(0.25));
        assert_eq!(graded(json!({"question_id": "a", "score": null})), Grade::Failed);
        assert_eq!(graded(json!({"question_id": "a", "outcome": "infra_error", "scores": {}})), Grade::Failed);
        assert_eq!(graded(json!({"question_id": "a", "scores": {"f1": 0.5, "judge": 1}})), Grade::Score(1.0));
        let majority = Reading { reduce: Reduce::Majority, ..PLAIN };
        let of = |votes: [bool; 3]| understood(json!({"question_id": "a", "votes": 1, "judgments": votes}), &majority);
        assert_eq!(of([true, true, false]).expect("reads").grade, Grade::Score(1.0));
        assert_eq!(of([true, false, false]).expect("reads").grade, Grade::Score(0.0));
    }

    #[test]
    fn the_answer_is_the_generated_one_and_not_the_gold() {
        let line = understood(json!({"question": "q", "answer": "gold", "response": "said", "llm_score": 1}), &PLAIN);
        assert_eq!(line.expect("reads").answer.as_deref(), Some("said"));
        let line =
            understood(json!({"question": "q", "answer": "said", "golden_answer": "gold", "grade": true}), &PLAIN);
        assert_eq!(line.expect("reads").answer.as_deref(), Some("said"));
    }

    #[test]
    fn scales_and_fields_can_be_named() {
        let reading = Reading { score_field: Some("m.f1".into()), scale: 100.0, ..PLAIN };
        let line = understood(json!({"id": 7, "score": true, "m": {"f1": 62.5}}), &reading).expect("reads");
        assert_eq!((line.grade, line.id.as_deref()), (Grade::Score(0.625), Some("7")));
        let missing = understood(json!({"id": 7, "score": true}), &reading).expect_err("has no such field");
        assert!(missing.to_string().contains("m.f1"), "{missing}");
    }

    #[test]
    fn nonsense_is_refused_with_its_place() {
        for (fields, word) in [
            (json!({"question_id": "a", "score": 1.5}), "[0, 1]"),
            (json!({"question_id": "a", "score": "maybe"}), "maybe"),
            (json!({"question_id": "a"}), "nothing to grade"),
            (json!({"answer": "a"}), "question_id"),
        ] {
            let message = understood(fields, &PLAIN).expect_err("is refused").to_string();
            assert!(message.starts_with("line 1: ") && message.contains(word), "{message}");
        }
    }
}
