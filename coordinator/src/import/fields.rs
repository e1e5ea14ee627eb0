//! A record as it is understood: which question it means, what was answered, how that was graded.

use serde_json::{Map, Value};

use super::{
    ImportError,
    grades::{self, Grade, Reading, literal},
    names::{
        ANSWER, ANSWER_ENDS, BANK, CATEGORY, Fields, GRADE, ID, INDEX, LOOSE_INDEX, PLAIN_ANSWER, RETRIEVED, TEXT, VOTE,
    },
    records::Record,
};

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
    /// Its category, as the file has it.
    pub(crate) category: Option<String>,
    /// The answer.
    pub(crate) answer: Option<String>,
    /// The answer stands in a field that others keep the gold in.
    pub(crate) may_be_gold: bool,
    /// Retrieved ids, best first.
    pub(crate) retrieved: Option<Vec<String>>,
    /// What the file says about the grade.
    pub(crate) grade: Grade,
    /// The field that the grade was read from.
    pub(crate) graded_by: Option<String>,
    /// The metric's name.
    pub(crate) metric: Option<String>,
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The answer, with the name of its field.
fn answer_of<'a>(fields: &Fields<'a>) -> Option<(&'a str, String)> {
    let named = fields.all(ANSWER).chain(fields.ending(ANSWER_ENDS)).chain(fields.first(PLAIN_ANSWER));
    named.filter_map(|(name, value)| Some((name, text_of(value)?))).next()
}

/// Whether an object holds an answer or a grade.
pub(super) fn is_graded(fields: &Fields<'_>) -> bool {
    answer_of(fields).is_some()
        || fields.first(GRADE).is_some()
        || fields.first(&["scores"]).is_some()
        || fields.numbered(VOTE).is_some()
}

/// Whether an object names a question.
pub(super) fn names_a_question(fields: &Fields<'_>) -> bool {
    [ID, TEXT, INDEX].into_iter().any(|names| fields.first(names).is_some_and(|(_, value)| text_of(value).is_some()))
}

/// The conversation that an object names.
pub(super) fn bank_of(object: &Map<String, Value>) -> Option<String> {
    Fields::of(object).first(BANK).and_then(|(_, value)| text_of(value))
}

/// Understands a record.
///
/// # Errors
/// A grade that is none, or out of range; a record that holds nothing to grade.
pub(crate) fn line(record: &Record, reading: &Reading) -> Result<Line, ImportError> {
    let fields = Fields::of(&record.fields);
    let problem = |problem: String| ImportError::at(&record.place, problem);
    let scalar = |names: &'static [&'static str]| fields.first(names).and_then(|(_, value)| text_of(value));
    let mut banks: Vec<String> = fields.all(BANK).filter_map(|(_, value)| text_of(value)).collect();
    banks.extend(record.groups.iter().cloned());
    let index = match fields.first(INDEX) {
        Some((name, value)) => {
            let number = text_of(value).and_then(|text| text.parse().ok());
            Some(number.ok_or_else(|| problem(format!("{name} is no whole number")))?)
        }
        None => scalar(LOOSE_INDEX).and_then(|text| text.parse().ok()),
    };
    let answer = answer_of(&fields);
    let (grade, graded_by) = grades::grade(&record.fields, &fields, reading).map_err(problem)?;
    let line = Line {
        place: record.place.clone(),
        id: scalar(ID),
        text: scalar(TEXT),
        index,
        banks,
        category: scalar(CATEGORY),
        may_be_gold: answer.as_ref().is_some_and(|(name, _)| name.eq_ignore_ascii_case("answer")),
        answer: answer.map(|(_, text)| text),
        retrieved: fields.first(RETRIEVED).and_then(|(_, value)| ids_of(value)),
        grade,
        graded_by,
        metric: scalar(&["metric"]),
    };
    if line.id.is_none() && line.text.is_none() && line.index.is_none() {
        return Err(problem("it names no question: give question_id".to_owned()));
    }
    if line.answer.is_none() && line.grade == Grade::None {
        let figures = fields.figures();
        let hint = if figures.is_empty() {
            String::new()
        } else {
            format!("; --score-field NAME names the grade among {}", figures.join(", "))
        };
        return Err(problem(format!("neither answer nor score: there is nothing to grade{hint}")));
    }
    Ok(line)
}

/// Ids as strings, or as objects with an id; in CSV separated by blanks or semicolons.
fn ids_of(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Array(values) => {
            Some(values.iter().filter_map(|v| text_of(v).or_else(|| text_of(v.get("id")?))).collect())
        }
        Value::String(text) if text.trim_start().starts_with('[') => ids_of(&literal(text)?),
        Value::String(text) => Some(text.split([';', ' ']).filter(|id| !id.is_empty()).map(str::to_owned).collect()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::Reduce;

    fn understood(fields: Value) -> Result<Line, ImportError> {
        let Value::Object(fields) = fields else { panic!("an object") };
        let reading = Reading { score_field: None, scale: 1.0, reduce: Reduce::Mean, metric: None };
        line(&Record { place: "line 1".into(), groups: vec!["g".into()], fields }, &reading)
    }

    #[test]
    fn the_answer_is_the_generated_one_and_not_the_gold() {
        for (fields, sure) in [
            (json!({"question": "q", "answer": "gold", "response": "said", "llm_score": 1}), true),
            (json!({"question": "q", "answer": "gold", "gpt-4_prediction": "said", "gpt-4_f1": 1}), true),
            (json!({"question": "q", "answer": "said", "golden_answer": "gold", "grade": true}), false),
            (json!({"Question": "q", "Model Answer": "said", "Grade": true}), true),
        ] {
            let line = understood(fields.clone()).expect("reads");
            assert_eq!((line.answer.as_deref(), !line.may_be_gold), (Some("said"), sure), "{fields}");
            assert_eq!(line.grade, Grade::Score(1.0), "{fields}");
        }
    }

    #[test]
    fn conversations_categories_and_indices_are_read() {
        let line =
            understood(json!({"sample_id": "conv-26", "qa_index": 3, "category": 2, "score": 1})).expect("reads");
        assert_eq!(
            (line.banks, line.index, line.category.as_deref()),
            (vec!["conv-26".into(), "g".into()], Some(3), Some("2"))
        );
        let line = understood(json!({"question": "?", "idx": "no number", "score": 1})).expect("reads");
        assert_eq!(line.index, None);
    }

    #[test]
    fn nonsense_is_refused_with_its_place() {
        for (fields, word) in [
            (json!({"question_id": "a", "score": 1.5}), "[0, 1]"),
            (json!({"question_id": "a", "score": "maybe"}), "maybe"),
            (json!({"question_id": "a", "weight": 2}), "--score-field"),
            (json!({"answer": "a"}), "question_id"),
            (json!({"qa_idx": "x", "score": 1}), "whole number"),
        ] {
            let message = understood(fields).expect_err("is refused").to_string();
            assert!(message.starts_with("line 1: ") && message.contains(word), "{message}");
        }
    }
}
