//! What a field says about an answer: one grade or several, as number, truth value or word, nested or not.

use serde_json::{Map, Value};

use super::names::{Fields, GRADE, GRADE_ENDS, INNER, METRICS, VOTE, plain};
use crate::cli::Reduce;

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

/// A grade with the name of the field that it was read from.
pub(crate) type Found = (Grade, Option<String>);

/// The grade of a record.
///
/// # Errors
/// A field that holds no grade, or one out of range.
pub(crate) fn grade(record: &Map<String, Value>, fields: &Fields<'_>, reading: &Reading) -> Result<Found, String> {
    let ours = record.get("outcome").and_then(Value::as_str);
    if matches!(ours, Some("infra_error" | "not_run")) {
        return Ok((Grade::Failed, None));
    }
    if let Some(path) = &reading.score_field {
        let value = at(record, path).ok_or_else(|| {
            let figures = fields.figures();
            let hint = if figures.is_empty() {
                String::new()
            } else {
                format!("; fields with figures: {}", figures.join(", "))
            };
            format!("it has no field '{path}' (--score-field){hint}")
        })?;
        return Ok((read(path, value, reading)?, Some(path.clone())));
    }
    // a questions.jsonl of ours has judgements beside its scores, and those are not the grade
    if let (Some(scores), None) = (record.get("scores").and_then(Value::as_object), record.get("score")) {
        match of_ours(scores, reading.metric.as_deref()) {
            Some((name, value)) => return Ok((read(name, value, reading)?, Some(name.to_owned()))),
            None if ours.is_some() => return Ok((Grade::None, None)),
            // other projects keep figures there, and the grade elsewhere
            None => {}
        }
    }
    let mut first_problem = None;
    for (name, value) in fields.all(GRADE) {
        match read(name, value, reading) {
            Ok(grade) => return Ok((grade, Some(name.to_owned()))),
            Err(problem) => first_problem = first_problem.or(Some(problem)),
        }
    }
    if let Some((name, votes)) = fields.numbered(VOTE) {
        let votes = Value::Array(votes.into_iter().cloned().collect());
        return Ok((read(name, &votes, reading)?, Some(format!("{name}_1, {name}_2, …"))));
    }
    if let (None, Some((name, value))) = (&first_problem, fields.ending(GRADE_ENDS)) {
        return Ok((read(name, value, reading)?, Some(name.to_owned())));
    }
    first_problem.map_or(Ok((Grade::None, None)), Err)
}

/// A field by its dotted path, each part by its exact name, else by its plain one.
fn at<'a>(record: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let step = |fields: &'a Map<String, Value>, name: &str| {
        fields
            .get(name)
            .or_else(|| fields.iter().find(|(known, _)| plain(known) == plain(name)).map(|(_, value)| value))
    };
    if let Some(whole) = record.get(path) {
        return Some(whole);
    }
    let mut parts = path.split('.');
    let top = step(record, parts.next()?)?;
    parts.try_fold(top, |value, name| step(value.as_object()?, name))
}

/// `scores` of a questions.jsonl of ours: the named metric, else the judge's, else the only one.
fn of_ours<'a>(scores: &'a Map<String, Value>, metric: Option<&str>) -> Option<(&'a str, &'a Value)> {
    let of = |name: &str| scores.get_key_value(name);
    let found = match metric {
        Some(metric) => of(metric),
        None => of("judge").or_else(|| scores.iter().next().filter(|_| scores.len() == 1)),
    };
    found.map(|(name, value)| (name.as_str(), value))
}

/// Reads one field. Nothing in it, or only missing votes: the question failed.
fn read(name: &str, value: &Value, reading: &Reading) -> Result<Grade, String> {
    let mut grades = Vec::new();
    collect(value, &mut grades).map_err(|what| format!("{name}: {what}"))?;
    if grades.is_empty() {
        return Ok(Grade::Failed);
    }
    let scaled: Vec<f64> = grades.iter().map(|grade| grade / reading.scale).collect();
    if let Some(wrong) = scaled.iter().find(|grade| !(0.0..=1.0).contains(*grade)) {
        return Err(format!("{name}: score {wrong} is not in [0, 1]; --scale N divides grades by N"));
    }
    Ok(Grade::Score(match reading.reduce {
        Reduce::Mean => scaled.iter().sum::<f64>() / scaled.len() as f64,
        Reduce::Majority => {
            let passed = scaled.iter().filter(|grade| **grade >= 0.5).count();
            f64::from(u8::from(passed * 2 > scaled.len()))
        }
    }))
}

/// All grades of a value: one, a list, an object of votes, or an object with a known field.
fn collect(value: &Value, grades: &mut Vec<f64>) -> Result<(), String> {
    match value {
        Value::Null => {}
        Value::Bool(right) => grades.push(f64::from(u8::from(*right))),
        Value::Number(number) => grades.push(number.as_f64().ok_or_else(|| format!("{number} is no grade"))?),
        Value::String(text) if text.trim_start().starts_with(['[', '{']) => {
            let inner = literal(text).ok_or_else(|| format!("'{}' is no grade", shown(text)))?;
            collect(&inner, grades)?;
        }
        Value::String(word) if is_missing(word) => {}
        Value::String(word) => {
            grades.push(word_grade(word).ok_or_else(|| no_grade(word))?);
        }
        Value::Array(values) => values.iter().try_for_each(|value| collect(value, grades))?,
        Value::Object(object) => match Fields::of(object).all(INNER).find(|(_, inner)| !inner.is_null()) {
            Some((_, inner)) => collect(inner, grades)?,
            None => {
                let is_metric = |name: &String| METRICS.iter().any(|metric| plain(name).contains(metric));
                if object.keys().any(is_metric) {
                    let names: Vec<&str> = object.keys().map(String::as_str).collect();
                    return Err(format!(
                        "it holds several figures ({}): --score-field FIELD.NAME says which one",
                        names.join(", ")
                    ));
                }
                object.values().try_for_each(|value| collect(value, grades))?;
            }
        },
    }
    Ok(())
}

fn no_grade(word: &str) -> String {
    let decimal_comma = word.matches(',').count() == 1 && word.replace(',', ".").trim().parse::<f64>().is_ok();
    let hint = if decimal_comma { "; decimals are written with a point" } else { "" };
    format!("'{}' is no grade{hint}", shown(word))
}

fn shown(text: &str) -> String {
    text.chars().take(60).collect()
}

fn is_missing(word: &str) -> bool {
    matches!(word.trim().to_lowercase().as_str(), "" | "null" | "none" | "nan" | "n/a" | "na" | "-")
}

/// Whole words only: "incorrect" contains "correct".
fn word_grade(word: &str) -> Option<f64> {
    match plain(word).as_str() {
        "correct" | "true" | "yes" | "right" | "pass" | "passed" | "y" | "t" => return Some(1.0),
        "incorrect" | "wrong" | "false" | "no" | "fail" | "failed" | "n" | "f" | "notcorrect" => return Some(0.0),
        "partial" | "partiallycorrect" | "partlycorrect" | "half" => return Some(0.5),
        _ => {}
    }
    let word = word.trim();
    let (number, unit) = word.strip_suffix('%').map_or((word, 1.0), |number| (number.trim_end(), 100.0));
    number.parse().ok().filter(|number: &f64| number.is_finite()).map(|number| number / unit)
}

/// A list or object that stands as text in a cell: JSON, or as Python prints it.
pub(super) fn literal(text: &str) -> Option<Value> {
    if let Ok(value) = serde_json::from_str(text) {
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
    serde_json::from_str(&json).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PLAIN: Reading = Reading { score_field: None, scale: 1.0, reduce: Reduce::Mean, metric: None };

    fn by(fields: Value, reading: &Reading) -> Result<Grade, String> {
        let Value::Object(fields) = fields else { panic!("an object") };
        grade(&fields, &Fields::of(&fields), reading).map(|(grade, _)| grade)
    }

    fn graded(fields: Value) -> Grade {
        by(fields.clone(), &PLAIN).unwrap_or_else(|e| panic!("{fields}: {e}"))
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
    fn majorities_need_more_than_half() {
        let majority = Reading { reduce: Reduce::Majority, ..PLAIN };
        for (votes, expected) in [([true, true, false], 1.0), ([true, false, false], 0.0)] {
            assert_eq!(by(json!({"judgments": votes}), &majority), Ok(Grade::Score(expected)));
        }
        assert_eq!(by(json!({"judgments": [true, false]}), &majority), Ok(Grade::Score(0.0)));
    }

    #[test]
    fn scales_and_fields_can_be_named() {
        let reading = Reading { score_field: Some("m.f1".into()), scale: 100.0, ..PLAIN };
        assert_eq!(by(json!({"score": true, "m": {"F1": 62.5}}), &reading), Ok(Grade::Score(0.625)));
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
    fn nothing_is_guessed() {
        for (fields, word) in [
            (json!({"score": 1.5}), "--scale"),
            (json!({"score": "maybe"}), "maybe"),
            (json!({"score": "0,75"}), "with a point"),
            (json!({"metrics": {"f1": 0.3, "bleu_1": 0.2}}), "--score-field"),
        ] {
            let problem = by(fields, &PLAIN).expect_err("is refused");
            assert!(problem.contains(word), "{problem}");
        }
    }
}
