//! The `score` verb's line: one JSON object in, the same object with `score` (or `error`) out.

use bench_proto::{
    assertions::Beside,
    dataset::{Gold, GoldRecord},
    step::{Retrieval, RetrievedHit},
};
use serde_json::{Map, Value, json};

use super::{
    Reads, ScoreCase, Scorer, category,
    line_rules::{self, LineRule, gold, rank_hits, ranked, strings},
    locomo_f1,
    registry::{UnknownScorer, find},
};

/// What scores the lines, looked up once.
#[derive(Clone, Copy)]
pub enum LineScorer {
    /// A scorer of answers: `{"prediction", "gold", "category"}`.
    Answer(&'static dyn Scorer),
    /// A figure of recalls: `{"ranked", "gold"}`, ids of turns or of sessions as its name says.
    Ranks(&'static dyn Scorer),
    /// A scorer of what surfaced: `{"ranked", "gold"}`, ids in the order of the hits, and the assertions.
    Hits(&'static dyn Scorer),
    /// A rule that scores nothing but lines, with fields of its own.
    Rule(&'static LineRule),
}

/// A line's score, and what stands beside it.
type Scored = Result<(Value, Option<Value>), String>;

impl LineScorer {
    /// By the name that `score --scorer` takes.
    ///
    /// # Errors
    /// [`UnknownScorer`], with the nearest name.
    pub fn find(name: &str) -> Result<Self, UnknownScorer> {
        if let Some(rule) = line_rules::find(name) {
            return Ok(Self::Rule(rule));
        }
        find(name).map(|scorer| match scorer.reads() {
            Reads::Answer => Self::Answer(scorer),
            Reads::Hits if !scorer.metrics().is_empty() => Self::Hits(scorer),
            // a figure of hits by official labels is one of ranks in a line, which says what is counted
            Reads::Ranks | Reads::Hits => Self::Ranks(scorer),
        })
    }

    /// The line with `score` (and `scores` where there are several), or with `error` and no score.
    #[must_use]
    pub fn score(self, line: Value) -> Value {
        let Value::Object(mut object) = line else {
            return json!({ "error": "a line must be a JSON object", "line": line });
        };
        let added = self.added(&object);
        for key in ADDED {
            object.remove(key);
        }
        object.extend(added);
        Value::Object(object)
    }

    /// What a line gets: `score` (and `scores` where there are several), or `error`.
    #[must_use]
    pub fn added(self, line: &Map<String, Value>) -> Map<String, Value> {
        let result = match self {
            Self::Answer(scorer) => score_answer(scorer, line).map(|score| (json!(score), None)),
            Self::Ranks(scorer) => score_ranks(scorer, line).map(|score| (score, None)),
            Self::Hits(scorer) => score_hits(scorer, line),
            Self::Rule(rule) => rule.score(line).map(|(score, beside)| (json!(score), by_name(beside))),
        };
        let mut added = Map::new();
        match result {
            Ok((score, scores)) => {
                added.insert("score".to_owned(), score);
                added.extend(scores.map(|scores| ("scores".to_owned(), scores)));
            }
            Err(error) => {
                added.insert("error".to_owned(), error.into());
            }
        }
        added
    }
}

/// What a line gets; what an earlier pass left there must not be taken for this one's.
pub const ADDED: [&str; 3] = ["score", "scores", "error"];

/// Figures by their names; none where there are none.
fn by_name(figures: impl IntoIterator<Item = (impl Into<String>, Option<f64>)>) -> Option<Value> {
    let figures: Map<String, Value> = figures.into_iter().map(|(name, figure)| (name.into(), json!(figure))).collect();
    (!figures.is_empty()).then_some(Value::Object(figures))
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
    let category = category_name(scorer, line.get("category"))?;
    let gold = match line.get("gold") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(Gold::Text(text.clone())),
        Some(Value::Number(number)) => Some(Gold::Number(number.clone())),
        Some(Value::Array(items)) => Some(scorer.gold_of_list(strings(items, "gold")?)),
        Some(object @ Value::Object(_)) => Some(gold_of_object(object, Gold::Keywords)?),
        Some(Value::Bool(_)) => return Err("`gold` must be a string, a number, a list, an object or null".to_owned()),
    };
    let gold = gold.map(|gold| GoldRecord { gold, ..GoldRecord::default() });
    let rules = category::rules(&category);
    let case = ScoreCase { answer: Some(&prediction), gold: gold.as_ref(), rules, ..ScoreCase::default() };
    scorer.score(&case).ok_or_else(|| match gold {
        None if is_of_locomo(scorer) => "no gold: only category adversarial is scored without one".to_owned(),
        None => format!("no gold: {} compares with one", scorer.name()),
        Some(_) => format!("{} does not apply to this gold", scorer.name()),
    })
}

/// Whether a scorer goes by LoCoMo's categories.
fn is_of_locomo(scorer: &dyn Scorer) -> bool {
    [locomo_f1::OFFICIAL.name(), locomo_f1::ASTROCYTE.name()].contains(&scorer.name())
}

/// The category's name. Numbers and spellings are LoCoMo's; the scorers that depend on them refuse others.
fn category_name(scorer: &dyn Scorer, value: Option<&Value>) -> Result<String, String> {
    let (known, given) = match value {
        None | Some(Value::Null) => return Ok(String::new()),
        Some(Value::Number(number)) => (number.as_u64().and_then(category::of_number), number.to_string()),
        Some(Value::String(text)) => {
            let name = text.trim().to_lowercase().replace(['_', ' '], "-");
            let number = name.parse().ok().and_then(category::of_number);
            (number.or_else(|| category::of_name(&name)), text.clone())
        }
        Some(_) => return Err("`category` must be a name or a number".to_owned()),
    };
    match known {
        Some(category) => Ok(category.to_owned()),
        None if is_of_locomo(scorer) => Err(format!(
            "unknown category '{given}'; use 1 to 5 or multi-hop, temporal, open-domain, single-hop, adversarial"
        )),
        None => Ok(given),
    }
}

/// A gold with its `kind` and `value`, or the value alone of the kind that the scorer is for.
fn gold_of_object<T: serde::de::DeserializeOwned>(object: &Value, of: fn(T) -> Gold) -> Result<Gold, String> {
    let read = if object.get("kind").is_some() {
        serde_json::from_value(object.clone())
    } else {
        serde_json::from_value(object.clone()).map(of)
    };
    read.map_err(|error| format!("`gold`: {error}"))
}

/// The figure of the line; null when it names no gold.
fn score_ranks(scorer: &dyn Scorer, line: &Map<String, Value>) -> Result<Value, String> {
    let hits = rank_hits(&ranked(line)?, &gold(line)?);
    let retrieval = Retrieval { turn: hits.clone(), session: hits, ..Retrieval::default() };
    Ok(json!(scorer.score(&ScoreCase { retrieval: Some(&retrieval), ..ScoreCase::default() })))
}

/// What surfaced against what is asserted of it.
fn score_hits(scorer: &dyn Scorer, line: &Map<String, Value>) -> Scored {
    let hit = |id| RetrievedHit { id, ..RetrievedHit::default() };
    let ranked = ranked(line)?;
    let Some(object @ Value::Object(_)) = line.get("gold") else {
        return Err("`gold` must be an object: what is asserted".to_owned());
    };
    let mut gold = gold_of_object(object, |all| Gold::Assertions(Box::new(all)))?;
    if let Gold::Assertions(assertions) = &mut gold
        && assertions.beside == Beside::default()
    {
        // nothing is told of what the harness adds: it adds nothing, and takes all that came
        let max_memories = u32::try_from(ranked.len()).unwrap_or(u32::MAX);
        assertions.beside = Beside { known: ranked.clone(), max_memories, ..Beside::default() };
    }
    let hits: Vec<RetrievedHit> = ranked.into_iter().map(hit).collect();
    let gold = GoldRecord { gold, ..GoldRecord::default() };
    // a line says what surfaced: something was asked, though nothing need have been found
    let recalled = Retrieval::default();
    let case = ScoreCase { gold: Some(&gold), hits: &hits, retrieval: Some(&recalled), ..ScoreCase::default() };
    let scores = scorer.scores(&case);
    let named = scorer.metrics().into_iter().map(|metric| metric.name).zip(scores.iter().copied());
    Ok((json!(scores.first().copied().flatten()), by_name(named)))
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
            ("locomo-f1", json!({"prediction": "red", "gold": ["blue", "red"]}), 1.0),
            ("exact", json!({"prediction": "red", "gold": {"kind": "any_of", "value": ["blue", "red"]}}), 1.0),
            ("contains", json!({"prediction": "predicted", "gold": ["red"]}), 1.0),
            ("contains-word", json!({"prediction": "predicted", "gold": ["red"]}), 0.0),
            ("keywords", json!({"prediction": "predicted", "gold": ["red", "blue"]}), 0.5),
            ("keywords", json!({"prediction": "x", "gold": []}), 1.0),
            ("rubric-agent-eval", json!({"prediction": "x", "gold": {"acceptable_paraphrases": ["x"]}}), 0.6),
            ("rubric-amplihack", json!({"prediction": "x", "gold": {"acceptable_paraphrases": ["x"]}}), 0.75),
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
            ("locomo-f1", json!({"prediction": "red", "gold": {"required_keywords": ["red"]}})),
            ("locomo-f1", json!({"prediction": "red", "gold": {"kind": "nonsense"}})),
            ("assertions", json!({"ranked": ["a"], "gold": ["a"]})),
            ("assertions", json!({"prediction": "a", "gold": {}})),
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
        let scored = score("retrieval", json!({"ranked": ["a", "a", "b", 3], "gold": ["b", 3, "z"], "k": 2}));
        assert_eq!(scored["score"], json!(1.0 / 3.0));
        assert_eq!(scored["scores"]["precision"], json!(0.5));
        assert_eq!(scored["scores"]["mrr"], json!(0.5));
        assert_eq!(scored["scores"]["recall_any"], json!(1.0));
        let empty = score("retrieval", json!({"ranked": ["a"], "gold": [], "k": 2}));
        assert_eq!((&empty["score"], &empty["scores"]["ndcg"]), (&Value::Null, &Value::Null));
        assert!(empty.as_object().is_some_and(|object| object.contains_key("score") && !object.contains_key("error")));
    }

    #[test]
    fn what_surfaced() {
        let gold =
            json!({"relevant": {"should_only_include": ["a"]}, "beside": {"known": ["a", "b"], "max_memories": 5}});
        let scored = score("assertions", json!({"ranked": ["a", "b"], "gold": gold}));
        assert_eq!((&scored["score"], &scored["scores"]["relevant-precision"]), (&json!(0.0), &json!(0.5)), "{scored}");
        assert_eq!(scored["scores"]["relevant-recall"], json!(1.0));
        assert_eq!(score("assertions", json!({"ranked": ["a"], "gold": gold}))["score"], json!(1.0));
        let alone = json!({"relevant": {"must_include": ["b"], "must_exclude": ["c"]}});
        for (ranked, expected) in [(json!(["a", "b"]), 1.0), (json!(["b", "c"]), 0.0), (json!([]), 0.0)] {
            assert_eq!(score("assertions", json!({"ranked": ranked, "gold": alone}))["score"], json!(expected));
        }
    }

    #[test]
    fn one_figure_of_a_recall() {
        let line = json!({"ranked": ["a", "b"], "gold": ["b", "z"]});
        for (name, expected) in [("recall@1", 0.0), ("session-recall@2", 0.5), ("hit@2", 1.0), ("ndcg-lme@2", 0.5)] {
            assert_eq!(score(name, line.clone())["score"], json!(expected), "{name}");
        }
        assert_eq!(score("recall@2", json!({"ranked": ["a"], "gold": []}))["score"], Value::Null);
        assert!(score("recall@2", json!({"prediction": "a"}))["error"].is_string());
        assert!(score("recall@99", line)["error"].as_str().is_some_and(|error| error.contains("1 to 50")));
    }

    #[test]
    fn ranked_metrics() {
        if let Some(vectors) = reference::json("vectors/hebb-amplihack-precisionmembench.json") {
            for case in reference::list(&vectors["hebb_ranked_metrics"]["cases"]) {
                let scored =
                    score("retrieval", json!({"ranked": case["retrieved"], "gold": case["relevant"], "k": case["k"]}));
                // that program divides by what was returned
                let names =
                    [("recall", "recall"), ("precision_of_returned", "precision"), ("mrr", "mrr"), ("ndcg", "ndcg")];
                check_metrics(&scored, case, names);
            }
        }
        if let Some(vectors) = reference::json("vectors/astrocyte-and-jeffs-brain.json") {
            for case in reference::list(&vectors["sections"]["ranked_metrics"]["vectors"]) {
                let ranked = reference::list(&case["retrieved"]);
                let mut unique = ranked.to_vec();
                unique.dedup();
                if unique.len() == ranked.len() {
                    let scored =
                        score("retrieval", json!({"ranked": ranked, "gold": case["relevant"], "k": ranked.len()}));
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
