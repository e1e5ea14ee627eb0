//! The `score` verb's line: one JSON object in, the same object with `score` (or `error`) out.

use bench_proto::{dataset::Gold, retrieval::RetrievalMetrics, step::RankHits};
use serde_json::{Map, Value, json};

use super::{
    ScoreCase, Scorer,
    category::Category,
    locomo_f1,
    registry::{UnknownScorer, find},
    rubric::{KeywordRubric, Rubric},
};

/// The name that takes ranked ids instead of an answer.
pub const RETRIEVAL: &str = "retrieval";

/// Cut-off when a retrieval line names none.
const DEFAULT_K: u64 = 10;

/// What scores the lines, looked up once.
#[derive(Clone, Copy)]
pub enum LineScorer {
    /// An answer scorer: `{"prediction", "gold", "category"}`.
    Answer(&'static dyn Scorer),
    /// Ranked ids: `{"ranked", "gold", "k"}`.
    Retrieval,
}

impl LineScorer {
    /// By the name that `score --scorer` takes.
    ///
    /// # Errors
    /// [`UnknownScorer`], with the nearest name.
    pub fn find(name: &str) -> Result<Self, UnknownScorer> {
        if name == RETRIEVAL { Ok(Self::Retrieval) } else { find(name).map(Self::Answer) }
    }

    /// The line with `score` (for retrieval also `scores`), or with `error` and no score.
    #[must_use]
    pub fn score(self, line: Value) -> Value {
        let Value::Object(mut object) = line else {
            return json!({ "error": "a line must be a JSON object", "line": line });
        };
        let result = match self {
            Self::Answer(scorer) => score_answer(scorer, &object).map(|score| (json!(score), None)),
            Self::Retrieval => score_retrieval(&object).map(|(score, scores)| (score, Some(scores))),
        };
        // what an earlier pass left must not be taken for this one's
        for key in ["score", "scores", "error"] {
            object.remove(key);
        }
        match result {
            Ok((score, scores)) => {
                object.insert("score".to_owned(), score);
                object.extend(scores.map(|scores| ("scores".to_owned(), scores)));
            }
            Err(error) => {
                object.insert("error".to_owned(), error.into());
            }
        }
        Value::Object(object)
    }
}

/// Scores one line by the scorer's name; for many lines look the scorer up once with [`LineScorer::find`].
#[must_use]
pub fn score_line(scorer_name: &str, line: &Value) -> Value {
    match LineScorer::find(scorer_name) {
        Ok(scorer) => scorer.score(line.clone()),
        Err(error) => json!({ "error": error.to_string() }),
    }
}

fn score_answer(scorer: &dyn Scorer, line: &Map<String, Value>) -> Result<f64, String> {
    let prediction = match line.get("prediction") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => return Err("`prediction` must be a string".to_owned()),
    };
    let category = category(scorer, line.get("category"))?;
    let gold = match line.get("gold") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(Gold::Text(text.clone())),
        Some(Value::Number(number)) => Some(Gold::Number(number.clone())),
        Some(Value::Array(items)) => Some(Gold::Rubric(strings(items, "gold")?)),
        Some(object @ Value::Object(_)) if scorer.name() == Rubric.name() => {
            let rubric: KeywordRubric =
                serde_json::from_value(object.clone()).map_err(|error| format!("`gold`: {error}"))?;
            return Ok(rubric.grade(&prediction));
        }
        Some(_) => return Err("`gold` must be a string, a number or null".to_owned()),
    };
    let case = ScoreCase { prediction: &prediction, gold: gold.as_ref(), category: &category };
    scorer.score(&case).ok_or_else(|| match gold {
        None => "no gold: only category adversarial is scored without one".to_owned(),
        Some(_) => format!("{} does not apply to this gold", scorer.name()),
    })
}

/// The category's name. Numbers and spellings are LoCoMo's; the scorers that depend on them refuse others.
fn category(scorer: &dyn Scorer, value: Option<&Value>) -> Result<String, String> {
    let (known, given) = match value {
        None | Some(Value::Null) => return Ok(String::new()),
        Some(Value::Number(number)) => (number.as_u64().and_then(Category::from_number), number.to_string()),
        Some(Value::String(text)) => {
            let name = text.trim().to_lowercase().replace(['_', ' '], "-");
            let number = name.parse().ok().and_then(Category::from_number);
            (number.or_else(|| Category::from_name(&name)), text.clone())
        }
        Some(_) => return Err("`category` must be a name or a number".to_owned()),
    };
    match known {
        Some(category) => Ok(category.name().to_owned()),
        None if [locomo_f1::OFFICIAL.name(), locomo_f1::ASTROCYTE.name()].contains(&scorer.name()) => Err(format!(
            "unknown category '{given}'; use 1 to 5 or multi-hop, temporal, open-domain, single-hop, adversarial"
        )),
        None => Ok(given),
    }
}

fn score_retrieval(line: &Map<String, Value>) -> Result<(Value, Value), String> {
    let ids = |key: &str| match line.get(key) {
        Some(Value::Array(items)) => strings(items, key),
        None | Some(Value::Null) if key == "gold" => Ok(Vec::new()),
        _ => Err(format!("`{key}` must be a list of ids")),
    };
    let k = match line.get("k") {
        None | Some(Value::Null) => DEFAULT_K,
        Some(k) => k.as_u64().filter(|&k| k > 0).ok_or("`k` must be a whole number of at least 1")?,
    };
    let (ranked, gold) = (ids("ranked")?, ids("gold")?);
    let hits = RankHits::of(ranked.iter().map(String::as_str), gold.iter().map(String::as_str));
    let metrics = RetrievalMetrics::at(&hits, u32::try_from(k).unwrap_or(u32::MAX));
    let of = |value: fn(&RetrievalMetrics) -> f64| metrics.as_ref().map(value);
    let scores = json!({
        "recall_any": of(|m| m.recall_any),
        "recall_all": of(|m| m.recall_all),
        "recall": of(|m| m.recall),
        "precision": of(|m| m.precision),
        "mrr": of(|m| m.mrr),
        "ndcg": of(|m| m.ndcg),
    });
    Ok((json!(of(|m| m.recall)), scores))
}

fn strings(items: &[Value], key: &str) -> Result<Vec<String>, String> {
    let text = |item: &Value| match item {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(format!("`{key}` must hold strings")),
    };
    items.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scorers::reference;

    fn score(scorer: &str, line: Value) -> Value {
        score_line(scorer, &line)
    }

    #[test]
    fn answers() {
        for (scorer, line, expected) in [
            ("locomo-f1", json!({"prediction": "7 May 2023", "gold": "May 7, 2023", "category": 2}), 1.0),
            ("locomo-f1", json!({"prediction": "in 2022", "gold": 2022, "category": "temporal"}), 2.0 / 3.0),
            ("locomo-f1", json!({"prediction": "red", "gold": "red, blue", "category": "Multi_Hop"}), 0.5),
            ("locomo-f1", json!({"prediction": "red", "gold": "red, blue", "category": "1"}), 0.5),
            ("locomo-f1", json!({"prediction": "Not mentioned.", "gold": null, "category": 5}), 1.0),
            ("locomo-f1", json!({"prediction": "I don't know", "category": "adversarial"}), 0.0),
            ("locomo-f1-astrocyte", json!({"prediction": "I don't know", "category": 5}), 1.0),
            ("locomo-f1", json!({"prediction": "red", "gold": "red"}), 1.0),
            ("exact", json!({"prediction": "the Red", "gold": "red"}), 1.0),
            ("choice", json!({"prediction": "(b)", "gold": "(b)", "category": "recall_user_shared_facts"}), 1.0),
            ("word-overlap", json!({"prediction": "x", "category": 5}), 1.0),
            ("rubric", json!({"prediction": "a red car", "gold": ["red", "blue"]}), 0.5),
            (
                "rubric",
                json!({"prediction": "a red car", "gold": {"required_keywords": ["red"], "incorrect_patterns": ["car"]}}),
                0.0,
            ),
        ] {
            let scored = score(scorer, line.clone());
            assert_eq!(scored["score"].as_f64(), Some(expected), "{scorer} {scored}");
            for (key, value) in line.as_object().expect("an object") {
                assert_eq!(&scored[key], value);
            }
        }
    }

    #[test]
    fn errors_take_the_place_of_scores() {
        for (scorer, line) in [
            ("locomo-f1", json!({"gold": "red"})),
            ("locomo-f1", json!({"prediction": null, "gold": "red"})),
            ("locomo-f1", json!({"prediction": "red", "category": "temporal", "score": 1})),
            ("locomo-f1", json!({"prediction": "red", "gold": "red", "category": 6})),
            ("locomo-f1", json!({"prediction": "red", "gold": "red", "category": "multihops"})),
            ("locomo-f1", json!({"prediction": "red", "gold": true})),
            ("locomo-f1", json!({"prediction": "red", "gold": ["red"]})),
            ("choice", json!({"prediction": "(b)", "gold": "second"})),
            ("rubric", json!({"prediction": "(b)", "gold": {"required_keywords": 3}})),
            ("locomo-f1", json!([1])),
            ("no-such", json!({"prediction": "red", "gold": "red"})),
            ("retrieval", json!({"ranked": "a", "gold": []})),
            ("retrieval", json!({"ranked": ["a"], "gold": ["a"], "k": 0})),
        ] {
            let scored = score(scorer, line);
            assert!(scored["error"].is_string() && scored.get("score").is_none(), "{scored}");
        }
    }

    #[test]
    fn a_new_score_replaces_an_old_error() {
        let scored = score("exact", json!({"prediction": "red", "gold": "red", "error": "old", "id": 7}));
        assert_eq!(scored, json!({"prediction": "red", "gold": "red", "id": 7, "score": 1.0}));
    }

    #[test]
    fn retrieval() {
        let scored = score(RETRIEVAL, json!({"ranked": ["a", "a", "b", 3], "gold": ["b", 3, "z"], "k": 2}));
        assert_eq!(scored["score"], json!(1.0 / 3.0));
        assert_eq!(scored["scores"]["precision"], json!(0.5));
        assert_eq!(scored["scores"]["mrr"], json!(0.5));
        assert_eq!(scored["scores"]["recall_any"], json!(1.0));
        let empty = score(RETRIEVAL, json!({"ranked": ["a"], "gold": [], "k": 2}));
        assert_eq!((&empty["score"], &empty["scores"]["ndcg"]), (&Value::Null, &Value::Null));
        assert!(empty.as_object().is_some_and(|object| object.contains_key("score") && !object.contains_key("error")));
    }

    #[test]
    fn published_retrieval_vectors() {
        if let Some(vectors) = reference::json("vectors/hebb-amplihack-precisionmembench.json") {
            for case in reference::list(&vectors["hebb_ranked_metrics"]["cases"]) {
                let scored =
                    score(RETRIEVAL, json!({"ranked": case["retrieved"], "gold": case["relevant"], "k": case["k"]}));
                check_metrics(&scored, case, ["recall", "precision", "mrr", "ndcg"].map(|name| (name, name)));
            }
        }
        if let Some(vectors) = reference::json("vectors/astrocyte-and-jeffs-brain.json") {
            for case in reference::list(&vectors["sections"]["ranked_metrics"]["vectors"]) {
                let ranked = reference::list(&case["retrieved"]);
                let mut unique = ranked.to_vec();
                unique.dedup();
                if unique.len() == ranked.len() {
                    let scored =
                        score(RETRIEVAL, json!({"ranked": ranked, "gold": case["relevant"], "k": ranked.len()}));
                    check_metrics(&scored, case, [("precision", "precision"), ("mrr", "rr"), ("ndcg", "ndcg")]);
                }
            }
        }
    }

    /// Published programs print 0 where nothing can be measured; we say null.
    fn check_metrics<const N: usize>(scored: &Value, case: &Value, names: [(&str, &str); N]) {
        for (ours, theirs) in names {
            match scored["scores"][ours].as_f64() {
                Some(value) => assert!((value - reference::number(&case[theirs])).abs() < 1e-12, "{ours}: {case}"),
                None => assert!(reference::list(&case["relevant"]).is_empty(), "{ours}: {case}"),
            }
        }
    }
}
