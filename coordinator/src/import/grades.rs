//! What a field says about an answer: one grade or several, as number, truth value or word, nested or not.

use std::collections::BTreeSet;

use bench_grading::scorers::{Reads, registry};
use bench_proto::{json_bound, metric::Scale};
use serde_json::{Map, Value};

use super::{
    advice::{listed, shown},
    forms::Known,
    lookup::{By, FieldPlace, Fields, plain},
    ours::{Given, Ours},
    records::Record,
};
use crate::cli::Reduce;

/// Names of a grade inside an object, best first.
const INNER: [&str; 14] = [
    "label",
    "score",
    "grade",
    "correct",
    "is_correct",
    "verdict",
    "judgment",
    "judgement",
    "llm_score",
    "passed",
    "pass",
    "accuracy",
    "rating",
    "value",
];
/// Figures that are no votes: an object with a name that contains one of these holds several metrics.
const METRICS: [&str; 17] = [
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

/// The grade of a record.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) enum Grade {
    /// The line has no grade.
    #[default]
    None,
    /// It has one, in [0, 1].
    Score(f64),
    /// It ended with scores, but with none of the metric that is asked for, which does not apply to every question.
    Inapplicable,
    /// It says that there is none (`null`, or an outcome of ours without a score): the question failed.
    Failed,
}

/// What a person says about a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reading {
    /// Where fields lie.
    pub(crate) given: Given,
    /// Grades are divided by this.
    pub(crate) scale: f64,
    /// Several grades of one answer.
    pub(crate) reduce: Reduce,
    /// The metric's name.
    pub(crate) metric: Option<String>,
}

/// A grade with the name of the field that it was read from.
#[derive(Debug, Default)]
pub(crate) struct Graded {
    pub(crate) grade: Grade,
    pub(crate) field: Option<String>,
}

/// The grade of a record of a form.
///
/// # Errors
/// A field that holds no grade, or one out of range; a field that the user names and the record has not.
pub(crate) fn grade(fields: &Fields<'_>, form: &Known, reading: &Reading) -> Result<Graded, String> {
    let outcome = fields.exact("outcome").and_then(Value::as_str);
    if matches!(outcome, Some("infra_error" | "not_run")) {
        return Ok(Graded { grade: Grade::Failed, field: None });
    }
    let scale = reading.scale * form.scale();
    let graded = |name: &str, value: &Value| {
        Ok(Graded { grade: read(name, value, scale, reading.reduce)?, field: Some(name.to_owned()) })
    };
    let named = reading.given.path(Ours::Score);
    // a questions.jsonl of ours has judgements beside its scores, and those are not the grade
    let own = |name: &str| fields.exact(name).filter(|_| !reading.given.is_another(name, Ours::Score));
    if let (None, Some(Value::Object(scores)), None) = (named, own("scores"), own("score")) {
        match of_ours(scores, reading.metric.as_deref()) {
            Some((name, value)) => return graded(name, value),
            None if outcome.is_some() && reading.metric.is_some() && !scores.is_empty() => {
                return Ok(Graded { grade: Grade::Inapplicable, field: None });
            }
            None if outcome.is_some() => return Ok(Graded::default()),
            // other projects keep figures there, and the grade elsewhere
            None => {}
        }
    }
    let mut first_problem = None;
    for found in form.find(fields, &reading.given, Ours::Score) {
        match (graded(&found.name, &found.value), found.by) {
            // the end of a name says little: not when a better name holds something that is no grade
            (_, By::Ending) if first_problem.is_some() => break,
            (Ok(graded), _) => return Ok(graded),
            (Err(problem), By::Name) => first_problem = first_problem.or(Some(problem)),
            (Err(problem), _) => return Err(problem),
        }
    }
    match (first_problem, named) {
        (Some(problem), _) => Err(problem),
        (None, Some(path)) => Err(format!(
            "it has no field '{path}' (--field score={path}){}",
            listed("; fields with figures: ", &fields.figures())
        )),
        (None, None) => Ok(Graded::default()),
    }
}

/// `scores` of a questions.jsonl of ours: the named metric, else [`the_grade`].
fn of_ours<'a>(scores: &'a Map<String, Value>, metric: Option<&str>) -> Option<(&'a str, &'a Value)> {
    let name = metric.or_else(|| the_grade(scores.keys().map(String::as_str)))?;
    scores.get_key_value(name).map(|(name, value)| (name.as_str(), value))
}

/// Which of some metrics grades answers: the judge's, else the only one that does. Figures of recalls do not: they are
/// computed again of what was retrieved.
fn the_grade<'a>(mut metrics: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    const JUDGE: &str = "judge";
    let mut of_answers = metrics.clone().filter(|metric| !is_of_recalls(metric));
    let only = of_answers.next().filter(|_| of_answers.next().is_none());
    metrics.find(|metric| *metric == JUDGE).or(only)
}

/// Leaves of the scores of a file of ours none that grades answers but the one that counts: a question that has fewer
/// of them than others must not be graded by another than these.
pub(crate) fn keep_one_grade(records: &mut [Record]) {
    let is_ours = |record: &Record| record.fields.contains_key("outcome");
    let scores = records.iter().filter(|record| is_ours(record)).filter_map(|record| record.fields.get("scores"));
    let metrics: BTreeSet<String> = scores.filter_map(Value::as_object).flat_map(Map::keys).cloned().collect();
    let kept = the_grade(metrics.iter().map(String::as_str));
    for record in records.iter_mut().filter(|record| is_ours(record)) {
        if let Some(Value::Object(scores)) = record.fields.get_mut("scores") {
            scores.retain(|metric, _| Some(metric.as_str()) == kept || is_of_recalls(metric));
        }
    }
}

fn is_of_recalls(metric: &str) -> bool {
    registry::find(metric).is_ok_and(|scorer| scorer.reads() != Reads::Answer)
}

/// Reads one field. Nothing in it, or only missing votes: the question failed.
fn read(name: &str, value: &Value, scale: f64, reduce: Reduce) -> Result<Grade, String> {
    let mut grades = Vec::new();
    collect(value, scale, &mut grades).map_err(|what| format!("{name}: {what}"))?;
    if grades.is_empty() {
        return Ok(Grade::Failed);
    }
    if let Some(wrong) = grades.iter().find(|grade| !(0.0..=1.0).contains(*grade)) {
        return Err(format!("{name}: score {wrong:?} is not in [0, 1]; --scale N divides grades by N"));
    }
    Ok(Grade::Score(match reduce {
        Reduce::Mean => grades.iter().sum::<f64>() / grades.len() as f64,
        Reduce::Majority => {
            let passed = grades.iter().filter(|grade| Scale::PLAIN.passes(**grade)).count();
            f64::from(u8::from(passed * 2 > grades.len()))
        }
    }))
}

/// All grades of a value: one, a list, an object of votes, or an object with a known field. Numbers are divided by the scale; words, true
/// and false, and percent have none.
fn collect(value: &Value, scale: f64, grades: &mut Vec<f64>) -> Result<(), String> {
    match value {
        Value::Null => {}
        Value::Bool(right) => grades.push(f64::from(u8::from(*right))),
        Value::Number(number) => grades.push(number.as_f64().ok_or_else(|| format!("{number} is no grade"))? / scale),
        Value::String(text) if text.trim_start().starts_with(['[', '{']) => {
            let inner = literal(text).ok_or_else(|| format!("'{}' is no grade", shown(text)))?;
            collect(&inner, scale, grades)?;
        }
        Value::String(word) if is_missing(word) => {}
        Value::String(word) => {
            grades.push(word_grade(word, scale).ok_or_else(|| no_grade(word))?);
        }
        Value::Array(values) => values.iter().try_for_each(|value| collect(value, scale, grades))?,
        Value::Object(object) => {
            match Fields::in_record(object)
                .find(&INNER.map(FieldPlace::read))
                .iter()
                .find(|found| !found.value.is_null())
            {
                Some(inner) => collect(&inner.value, scale, grades)?,
                None => {
                    let is_metric = |name: &String| METRICS.iter().any(|metric| plain(name).contains(metric));
                    if object.keys().any(is_metric) {
                        let names: Vec<&str> = object.keys().map(String::as_str).collect();
                        return Err(format!(
                            "it holds several figures ({}): --field score=FIELD.NAME says which one",
                            names.join(", ")
                        ));
                    }
                    object.values().try_for_each(|value| collect(value, scale, grades))?;
                }
            }
        }
    }
    Ok(())
}

fn no_grade(word: &str) -> String {
    let decimal_comma = word.matches(',').count() == 1 && word.replace(',', ".").trim().parse::<f64>().is_ok();
    let hint = if decimal_comma { "; decimals are written with a point" } else { "" };
    format!("'{}' is no grade{hint}", shown(word))
}

fn is_missing(word: &str) -> bool {
    matches!(word.trim().to_lowercase().as_str(), "" | "null" | "none" | "nan" | "n/a" | "na" | "-")
}

/// Whole words only: "incorrect" contains "correct".
fn word_grade(word: &str, scale: f64) -> Option<f64> {
    match plain(word).as_str() {
        "correct" | "true" | "yes" | "right" | "pass" | "passed" | "y" | "t" => return Some(1.0),
        "incorrect" | "wrong" | "false" | "no" | "fail" | "failed" | "n" | "f" | "notcorrect" => return Some(0.0),
        "partial" | "partiallycorrect" | "partlycorrect" | "half" => return Some(0.5),
        _ => {}
    }
    let word = word.trim();
    let (number, unit) = word.strip_suffix('%').map_or((word, scale), |number| (number.trim_end(), 100.0));
    number.parse().ok().filter(|number: &f64| number.is_finite()).map(|number| number / unit)
}

/// A list or object that stands as text in a cell: JSON, or as Python prints it. One of very many values stays a text: a table has
/// many cells.
pub(super) fn literal(text: &str) -> Option<Value> {
    if let Ok(value) = json_bound::from_str(text, json_bound::SMALL) {
        return Some(value);
    }
    let json = text
        .replace('\'', "\"")
        .split_inclusive(|c: char| !c.is_alphanumeric())
        .map(|part| {
            let word = part.trim_end_matches(|c: char| !c.is_alphanumeric());
            let json = match word {
                "True" => "true",
                "False" => "false",
                "None" | "nan" | "NaN" => "null",
                other => other,
            };
            format!("{json}{}", &part[word.len()..])
        })
        .collect::<String>()
        .replace('(', "[")
        .replace(')', "]");
    json_bound::from_str(&json, json_bound::SMALL).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::import::forms::by_names;

    #[test]
    fn a_cell_of_many_values_stays_a_text() {
        let list = |values: usize| format!("[{}]", vec!["0"; values].join(", "));
        assert_eq!(literal(&list(3)), Some(json!([0, 0, 0])));
        assert!(literal(&list(5_000)).is_some_and(|list| list.as_array().is_some_and(|list| list.len() == 5_000)));
        assert_eq!(literal(&list(20_000)), None);
        // as Python prints it a long text is one value too
        let text = "so ".repeat(20_000);
        assert_eq!(literal(&format!("['{text}']")), Some(json!([text])));
    }

    fn reading(given: &[&str]) -> Reading {
        let given = Given::read(given.iter().copied()).expect("reads");
        Reading { given, scale: 1.0, reduce: Reduce::Mean, metric: None }
    }

    fn by(fields: Value, reading: &Reading) -> Result<Grade, String> {
        let Value::Object(fields) = fields else { panic!("an object") };
        grade(&Fields::in_record(&fields), by_names(), reading).map(|graded| graded.grade)
    }

    fn graded(fields: Value) -> Grade {
        by(fields.clone(), &reading(&[])).unwrap_or_else(|e| panic!("{fields}: {e}"))
    }

    #[test]
    fn grades_of_published_forms() {
        let third = 1.0 / 3.0;
        let two_thirds = 2.0 / 3.0;
        for (fields, expected) in [
            (json!({"llm_judgments": {"judgment_1": true, "judgment_2": false, "judgment_3": false}}), third),
            (json!({"grade": true}), 1.0),
            (json!({"autoeval_label": {"model": "m", "label": false}}), 0.0),
            (json!({"verdict": "INCORRECT"}), 0.0),
            (json!({"score": "0.25"}), 0.25),
            (json!({"Score (%)": 1, "Is Correct": "TRUE"}), 1.0),
            (json!({"isCorrect": 0}), 0.0),
            (json!({"llmScore": "62.5%"}), 0.625),
            (json!({"scores": {"f1": 0.5, "judge": 1}}), 1.0),
            (json!({"scores": {"f1": 0.5, "bleu": 0.2}, "is_correct": true}), 1.0),
            (json!({"judge": {"model": "gpt", "verdict": "CORRECT", "reason": "because"}}), 1.0),
            (json!({"judge": "gpt-4o-mini", "f1_score": 0.5}), 0.5),
            (json!({"judgements": [{"judge": "a", "verdict": "yes"}, {"judge": "b", "verdict": "no"}]}), 0.5),
            (json!({"judgment_1": "CORRECT", "judgment_2": "WRONG", "judgment_10": "CORRECT"}), two_thirds),
            (json!({"votes": "[True, False, True]"}), two_thirds),
            (json!({"llm_judgments": "{'judgment_1': True, 'judgment_2': None, 'judgment_3': False}"}), 0.5),
            (json!({"verdict": "partially correct"}), 0.5),
            (json!({"judgments": {"judge a": 1, "judge b": 0, "judge c": null}}), 0.5),
            (json!({"metrics": {"f1": 0.3, "llm_score": 1}}), 1.0),
            (json!({"evaluation": {"label": null, "score": 0.25}}), 0.25),
        ] {
            assert_eq!(graded(fields.clone()), Grade::Score(expected), "{fields}");
        }
        for missing in [json!(null), json!({}), json!([]), json!("NaN"), json!([null, null])] {
            assert_eq!(graded(json!({ "score": missing })), Grade::Failed, "{missing}");
        }
        assert_eq!(graded(json!({"outcome": "infra_error", "scores": {}})), Grade::Failed);
        assert_eq!(graded(json!({"question": "?"})), Grade::None);
    }

    #[test]
    fn a_figure_of_recalls_is_no_grade_of_an_answer() {
        assert_eq!(graded(json!({"outcome": "scored", "scores": {"recall@10": 0.5}})), Grade::None);
        assert_eq!(graded(json!({"outcome": "scored", "scores": {"exact": 1}})), Grade::Score(1.0));
        let asked_for = Reading { metric: Some("recall@10".to_owned()), ..reading(&[]) };
        let named = by(json!({"outcome": "scored", "scores": {"recall@10": 0.5}}), &asked_for);
        assert_eq!(named, Ok(Grade::Score(0.5)), "who names it means it");
    }

    #[test]
    fn majorities_need_more_than_half() {
        let majority = Reading { reduce: Reduce::Majority, ..reading(&[]) };
        for (votes, expected) in [([true, true, false], 1.0), ([true, false, false], 0.0)] {
            assert_eq!(by(json!({"judgments": votes}), &majority), Ok(Grade::Score(expected)));
        }
        assert_eq!(by(json!({"judgments": [true, false]}), &majority), Ok(Grade::Score(0.0)));
    }

    #[test]
    fn scales_and_fields_can_be_named() {
        let reading = Reading { scale: 100.0, ..reading(&["score=m.f1"]) };
        assert_eq!(by(json!({"score": true, "m": {"F1": 62.5}}), &reading), Ok(Grade::Score(0.625)));
        // what says its own unit is not divided again
        for (said, grade) in [(json!("62 %"), 0.62), (json!("correct"), 1.0), (json!(true), 1.0), (json!("80"), 0.8)] {
            assert_eq!(by(json!({"m": {"F1": said}}), &reading), Ok(Grade::Score(grade)));
        }
        let missing = by(json!({"score": 0.5}), &reading).expect_err("has no such field");
        assert!(missing.contains("m.f1") && missing.contains("score"), "{missing}");
        let missing = by(json!({"figure": "0.5", "scores": {"f1": 1, "note": "x"}}), &reading).expect_err("has none");
        assert!(missing.ends_with("fields with figures: figure, scores.f1"), "{missing}");
        assert_eq!(
            graded(json!({"outcome": "scored", "scores": {"f1": 1, "exact": 0}, "judgements": [1]})),
            Grade::None
        );
    }

    #[test]
    fn a_question_of_ours_need_not_have_a_score_by_the_metric() {
        let reading = Reading { metric: Some("drift".to_owned()), ..reading(&[]) };
        let of = |scores: Value| by(json!({"outcome": "scored", "scores": scores}), &reading);
        assert_eq!(of(json!({"drift": 0.5, "pairs": 1})), Ok(Grade::Score(0.5)));
        assert_eq!((of(json!({"pairs": 1})), of(json!({}))), (Ok(Grade::Inapplicable), Ok(Grade::None)));
    }

    #[test]
    fn nothing_is_guessed() {
        for (fields, word) in [
            (json!({"score": 1.5}), "--scale"),
            (json!({"score": "maybe"}), "maybe"),
            (json!({"score": "0,75"}), "with a point"),
            (json!({"metrics": {"f1": 0.3, "bleu_1": 0.2}}), "--field score="),
        ] {
            let problem = by(fields, &reading(&[])).expect_err("is refused");
            assert!(problem.contains(word), "{problem}");
        }
    }
}
