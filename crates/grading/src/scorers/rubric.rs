//! Keyword rubrics: the deterministic kind, checked by substrings without regard to case.
//!
//! An incorrect pattern in the answer makes 0. Otherwise the share of required keywords that occur (one half when the
//! rubric has none), plus a tenth for every acceptable paraphrase that occurs, at most 1. Criteria in prose need a model
//! judge; here they only match word for word.

use bench_proto::dataset::Gold;
use serde::Deserialize;

use super::{ScoreCase, Scorer};

/// What an answer must and must not contain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct KeywordRubric {
    /// Each must occur.
    pub required_keywords: Vec<String>,
    /// Each earns a tenth.
    pub acceptable_paraphrases: Vec<String>,
    /// None may occur.
    pub incorrect_patterns: Vec<String>,
}

impl KeywordRubric {
    /// The score of an answer, in [0, 1].
    #[must_use]
    pub fn grade(&self, answer: &str) -> f64 {
        self.grade_lower(&answer.to_lowercase())
    }

    fn grade_lower(&self, answer: &str) -> f64 {
        let occurs = |text: &&String| answer.contains(&text.to_lowercase());
        if self.incorrect_patterns.iter().any(|text| occurs(&text)) {
            return 0.0;
        }
        let count = |list: &[String]| list.iter().filter(occurs).count() as f64;
        let share = if self.required_keywords.is_empty() {
            0.5
        } else {
            count(&self.required_keywords) / self.required_keywords.len() as f64
        };
        (share + 0.1 * count(&self.acceptable_paraphrases)).min(1.0)
    }
}

/// Scores [`Gold::Rubric`]: its lines are required keywords; a text gold is one keyword.
pub struct Rubric;

impl Scorer for Rubric {
    fn name(&self) -> &'static str {
        "rubric"
    }

    fn description(&self) -> &'static str {
        "share of the rubric's keywords found in the prediction (substrings, any case); prose rubrics need a model judge"
    }

    fn version(&self) -> u32 {
        1
    }

    fn score(&self, case: &ScoreCase<'_>) -> Option<f64> {
        score(&case.prediction.to_lowercase(), case.gold)
    }

    fn score_many(&self, prediction: &str, cases: &[(Option<&Gold>, &str)]) -> Vec<Option<f64>> {
        let prediction = prediction.to_lowercase();
        cases.iter().map(|(gold, _)| score(&prediction, *gold)).collect()
    }
}

/// `prediction` is in lower case.
fn score(prediction: &str, gold: Option<&Gold>) -> Option<f64> {
    let required_keywords = match gold? {
        Gold::Rubric(lines) => lines.clone(),
        gold @ (Gold::Text(_) | Gold::Number(_)) => vec![gold.text()],
        Gold::Choice(_) | Gold::Retrieval { .. } | Gold::Abstain => return None,
    };
    if required_keywords.iter().all(String::is_empty) {
        return None;
    }
    let rubric = KeywordRubric { required_keywords, ..KeywordRubric::default() };
    Some(rubric.grade_lower(prediction))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scorers::reference;

    fn list(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn keywords_paraphrases_and_wrong_patterns() {
        let rubric = KeywordRubric {
            required_keywords: list(&["Blue", "car"]),
            acceptable_paraphrases: list(&["automobile"]),
            incorrect_patterns: list(&["red"]),
        };
        for (answer, expected) in
            [("a BLUE car", 1.0), ("blue", 0.5), ("blue automobile", 0.6), ("blue car, red roof", 0.0), ("", 0.0)]
        {
            assert!((rubric.grade(answer) - expected).abs() < 1e-12, "{answer}");
        }
        assert_eq!(KeywordRubric::default().grade("x"), 0.5);
    }

    #[test]
    fn golds() {
        let score = |gold: Option<&Gold>| Rubric.score(&ScoreCase { prediction: "a blue car", gold, category: "" });
        assert_eq!(score(Some(&Gold::Rubric(list(&["blue", "red"])))), Some(0.5));
        assert_eq!(score(Some(&Gold::Text("Blue Car".to_owned()))), Some(1.0));
        assert_eq!(score(Some(&Gold::Rubric(vec![]))), None);
        assert_eq!(score(None), None);
    }

    #[test]
    fn published_vectors() {
        if let Some(vectors) = reference::json("vectors/hebb-amplihack-precisionmembench.json") {
            for case in reference::list(&vectors["amplihack_deterministic_grade"]["cases"]) {
                let rubric: KeywordRubric = serde_json::from_value(case["rubric"].clone()).expect("a rubric");
                // published values are rounded to four decimals
                let score = (rubric.grade(reference::str(&case["answer"])) * 1e4).round() / 1e4;
                assert_eq!(score, reference::number(&case["agent_eval"]["factual_accuracy"]["score"]), "{case}");
            }
        }
        if let Some(vectors) = reference::json("vectors/astrocyte-and-jeffs-brain.json") {
            for case in reference::list(&vectors["sections"]["text_overlap"]["vectors"]) {
                let words = reference::list(&case["expected_keywords"]).iter().map(reference::str).collect::<Vec<_>>();
                if !words.is_empty() {
                    let gold = Gold::Rubric(list(&words));
                    let case_of =
                        ScoreCase { prediction: reference::str(&case["text"]), gold: Some(&gold), category: "" };
                    assert_eq!(Rubric.score(&case_of), Some(reference::number(&case["score"])), "{case}");
                }
            }
        }
    }
}
