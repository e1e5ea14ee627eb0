//! A record as it is understood: which question it means, what was answered, how that was graded.

use serde_json::{Map, Value};

use super::{
    ImportError,
    advice::advice,
    forms::{self, Known},
    grades::{self, Grade, Reading, literal},
    lookup::{By, FieldPlace, Fields, Found, plain},
    ours::{Given, Ours},
    records::Record,
};

/// Names of an index that may mean something else: only a whole number counts.
const LOOSE_INDEX: [&str; 3] = ["index", "idx", "i"];

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
    pub(crate) answer: Option<String>,
    /// The answer stands in a field that others keep the gold in.
    pub(crate) may_be_gold: bool,
    /// Retrieved ids, best first.
    pub(crate) retrieved: Option<Vec<String>>,
    /// It says how the question ended, as files of ours do; nothing else in it is then an answer of no words, or a recall of no hits.
    pub(crate) ended: Option<Ended>,
    /// What the file says about the grade.
    pub(crate) grade: Grade,
    /// The field that the grade was read from.
    pub(crate) graded_by: Option<String>,
    /// The metric's name.
    pub(crate) metric: Option<String>,
}

/// How a question of ours ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// A result with scores.
    Whole,
    /// With a failure, or not at all.
    Failed,
}

impl Line {
    /// Whether it says what was answered, or how that was graded.
    pub(crate) fn is_answered(&self) -> bool {
        self.answer.is_some() || (self.grade != Grade::None && self.ended != Some(Ended::Failed))
    }

    /// Whether there is anything in it that can be graded, or why there is not.
    fn says_something(&self) -> bool {
        self.is_answered() || self.retrieved.is_some() || self.ended.is_some()
    }
}

/// Whether a file of ours says that the question of a record was not run.
pub(super) fn was_not_run(record: &Record) -> bool {
    Fields::in_record(&record.fields).exact("outcome").and_then(Value::as_str) == Some("not_run")
}

/// What a file of ours says of how the question of a record ended.
fn ended(fields: &Fields<'_>) -> Option<Ended> {
    match fields.exact("outcome")?.as_str()? {
        "scored" | "abstained" => Some(Ended::Whole),
        "infra_error" | "not_run" => Some(Ended::Failed),
        _ => None,
    }
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Whether an object holds an answer, a grade or what was retrieved, in any known form.
pub(super) fn is_graded(fields: &Fields<'_>, given: &Given) -> bool {
    let says = |form: &'static Known| {
        let answers = form.find(fields, given, Ours::Answer);
        let grades = form.find(fields, given, Ours::Score);
        answers.iter().any(|found| text_of(&found.value).is_some()) || grades.iter().any(|found| found.by != By::Ending)
    };
    let retrieved = forms::by_names().find(fields, given, Ours::Retrieved);
    says(forms::by_names())
        || retrieved.iter().any(|found| ids_of(&found.value).is_some())
        || !fields.find(&[FieldPlace::Name("scores".to_owned())]).is_empty()
        || forms::all().any(|form| form.is_marked_in(fields) && says(form))
}

/// Whether an object names a question.
pub(super) fn names_a_question(fields: &Fields<'_>, given: &Given) -> bool {
    [Ours::QuestionId, Ours::Question, Ours::Index].into_iter().any(|ours| {
        let first = forms::by_names().find(fields, given, ours).into_iter().next();
        first.is_some_and(|found| text_of(&found.value).is_some() && !(ours == Ours::Index && is_loose(&found)))
    })
}

/// The conversation that an object names.
pub(super) fn conversation_of(object: &Map<String, Value>, given: &Given) -> Option<String> {
    let named = forms::by_names().find(&Fields::in_record(object), given, Ours::Conversation);
    named.first().and_then(|found| text_of(&found.value))
}

/// Whether a field is called `answer`, which some keep the gold in.
fn is_plain_answer(found: &Found<'_>) -> bool {
    found.by != By::User && found.name.eq_ignore_ascii_case("answer")
}

fn is_loose(index: &Found<'_>) -> bool {
    index.by == By::Name && LOOSE_INDEX.contains(&plain(&index.name).as_str())
}

/// Understands a record of a form.
///
/// # Errors
/// A grade that is none, or out of range; a record that holds nothing to grade. Says what the record lacks of the nearest form.
pub(crate) fn line(record: &Record, form: &Known, reading: &Reading) -> Result<Line, ImportError> {
    let fields = Fields::in_record(&record.fields);
    let problem = |problem: String| ImportError::at(&record.place, problem);
    let find = |ours| form.find(&fields, &reading.given, ours);
    let text = |ours| find(ours).first().and_then(|found| text_of(&found.value));
    let answers = find(Ours::Answer);
    // beside a reply that is empty (`response: null`) a field `answer` holds the gold
    let replies = if answers.len() > 1 { answers.iter().filter(|found| !is_plain_answer(found)).count() } else { 0 };
    let mut answers = answers.into_iter().filter(|found| replies == 0 || !is_plain_answer(found));
    let answer = answers.find_map(|found| Some((text_of(&found.value)?, found)));
    let conversations = find(Ours::Conversation);
    let conversations = conversations.iter().filter_map(|found| text_of(&found.value));
    let graded = grades::grade(&fields, form, reading).map_err(problem)?;
    let line = Line {
        place: record.place.clone(),
        id: text(Ours::QuestionId),
        text: text(Ours::Question),
        index: index_of(find(Ours::Index).first()).map_err(problem)?,
        banks: conversations.chain(record.groups.iter().cloned()).collect(),
        category: text(Ours::Category),
        may_be_gold: answer.as_ref().is_some_and(|(_, found)| is_plain_answer(found)),
        answer: answer.map(|(text, _)| text),
        retrieved: find(Ours::Retrieved).first().and_then(|found| ids_of(&found.value)),
        ended: ended(&fields),
        grade: graded.grade,
        graded_by: graded.field,
        metric: text(Ours::Metric),
    };
    if line.id.is_none() && line.text.is_none() && line.index.is_none() {
        let advice = advice(&fields, &reading.given);
        return Err(problem(format!("it names no question by question_id, question or index; {advice}")));
    }
    if !line.says_something() {
        let advice = advice(&fields, &reading.given);
        return Err(problem(format!(
            "neither answer nor score nor retrieved ids: there is nothing to grade; {advice}"
        )));
    }
    Ok(line)
}

fn index_of(found: Option<&Found<'_>>) -> Result<Option<u32>, String> {
    let Some(found) = found else { return Ok(None) };
    let number = text_of(&found.value).and_then(|text| text.parse().ok());
    if number.is_none() && !is_loose(found) {
        return Err(format!("{} is no whole number", found.name));
    }
    Ok(number)
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

    fn understood_with(given: &[&str], fields: Value) -> Result<Line, ImportError> {
        let Value::Object(fields) = fields else { panic!("an object") };
        let record = Record { place: "line 1".into(), groups: vec!["g".into()], fields };
        let given = Given::read(given.iter().copied()).expect("reads");
        let form = forms::form_of(std::slice::from_ref(&record), &given);
        line(&record, form, &Reading { given, scale: 1.0, reduce: Reduce::Mean, metric: None })
    }

    fn understood(fields: Value) -> Result<Line, ImportError> {
        understood_with(&[], fields)
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
    fn the_gold_is_no_answer_where_the_reply_is_missing() {
        let line = understood(json!({"question": "q", "answer": "gold", "response": null, "llm_score": 0}));
        let line = line.expect("has a grade");
        assert_eq!((line.answer, line.may_be_gold, line.grade), (None, false, Grade::Score(0.0)));
        let refused = understood(json!({"question": "q", "answer": "gold", "response": null})).expect_err("is refused");
        assert!(refused.to_string().contains("neither answer nor score"), "{refused}");
    }

    #[test]
    fn what_was_retrieved_is_enough() {
        let line = understood(json!({"question_id": "a", "retrieved": ["D1:2", "D1"]})).expect("can be graded");
        assert_eq!(line.retrieved, Some(vec!["D1:2".to_owned(), "D1".to_owned()]));
        assert!(!line.is_answered());
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
    fn fields_lie_where_the_user_says() {
        let record = json!({"n": {"q": "who?"}, "prediction": "x", "answer": "y", "score": 1, "ours": 0, "idx": "x"});
        let given = ["question=n.q", "answer=answer", "score=ours", "retrieved=none"];
        let line = understood_with(&given, record.clone()).expect("reads");
        assert_eq!((line.text.as_deref(), line.answer.as_deref()), (Some("who?"), Some("y")));
        assert_eq!((line.grade, line.graded_by.as_deref()), (Grade::Score(0.0), Some("ours")));
        assert!(!line.may_be_gold && line.retrieved.is_none(), "the user knows what the field holds");
        let refused = understood_with(&["index=idx", "question=n.q"], record).expect_err("is refused").to_string();
        assert!(refused.contains("idx is no whole number"), "what a user names is meant: {refused}");
    }

    #[test]
    fn a_field_that_the_user_names_is_no_other_field() {
        let record = json!({"question_id": "a", "evaluation": "13 February 2022"});
        let line = understood_with(&["answer=evaluation"], record).expect("is no grade");
        assert_eq!((line.answer.as_deref(), line.grade), (Some("13 February 2022"), Grade::None));
        let line = understood_with(&["question_id=qa_index"], json!({"qa_index": "a:1", "score": 1})).expect("reads");
        assert_eq!((line.id.as_deref(), line.index), (Some("a:1"), None));
        let record = json!({"question_id": "a", "judge_score": "Paris", "gpt_f1": 0.5, "scores": {"exact": 1}});
        let line = understood_with(&["answer=judge_score", "category=scores"], record).expect("reads");
        assert_eq!((line.grade, line.graded_by.as_deref()), (Grade::Score(0.5), Some("gpt_f1")), "the next best name");
    }

    #[test]
    fn nonsense_is_refused_with_its_place() {
        for (fields, word) in [
            (json!({"question_id": "a", "score": 1.5}), "[0, 1]"),
            (json!({"question_id": "a", "score": "maybe"}), "maybe"),
            (json!({"question_id": "a", "weight": 2}), "--field score=weight"),
            (json!({"answer": "a"}), "question_id"),
            (json!({"qa_idx": "x", "score": 1}), "whole number"),
        ] {
            let message = understood(fields).expect_err("is refused").to_string();
            assert!(message.starts_with("line 1: ") && message.contains(word), "{message}");
        }
    }
}
