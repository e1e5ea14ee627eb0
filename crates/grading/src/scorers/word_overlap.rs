//! Word overlap: the share of the gold's words that occur in the prediction. A legacy measure, for comparison with old
//! reports only: it passes answers that merely mention the right words, and a gold without words scores 1.
//!
//! Words are split at white space, stripped of ASCII punctuation at both ends, lower-cased; stop words and words of one
//! character do not count. The stop words are ours, chosen so that the pass rates published for constant answers and for
//! the question itself as the answer come out (a pass is a score above 0.3).

use std::collections::HashSet;

use bench_proto::{
    dataset::Gold,
    metric::{MetricSpec, Scale},
};

use super::{Origin, ScoreCase, Scorer, text::is_space};

const NAME: &str = "word-overlap";

/// The share of the gold's words that occur in the answer.
pub struct WordOverlap;

impl Scorer for WordOverlap {
    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> &str {
        "legacy: share of the gold's words found in the prediction; 1 when the gold is missing or has only stop words"
    }

    fn version(&self) -> u32 {
        1
    }

    fn origin(&self) -> Origin {
        Origin {
            source: "Astrocyte, metrics.word_overlap_score (stop words ours)",
            vectors: &["word_overlap", "locomo_full_dataset_baselines"],
        }
    }

    fn metrics(&self) -> Vec<MetricSpec> {
        vec![MetricSpec { name: NAME.to_owned(), scale: Scale { threshold: 0.3, beyond: true, ..Scale::PLAIN } }]
    }

    fn score(&self, case: &ScoreCase<'_>) -> Option<f64> {
        score(&words(case.answer?).collect(), case.gold())
    }

    fn score_many(&self, answer: &str, cases: &[ScoreCase<'_>]) -> Vec<Option<f64>> {
        let present = words(answer).collect();
        cases.iter().map(|case| score(&present, case.gold())).collect()
    }
}

fn score(present: &HashSet<String>, gold: Option<&Gold>) -> Option<f64> {
    let gold = match gold {
        Some(gold @ (Gold::Text(_) | Gold::Number(_) | Gold::Choice(_))) => gold.text(),
        Some(Gold::AnyOf(texts)) => return texts.iter().map(|text| share(present, text)).reduce(f64::max),
        Some(Gold::Abstain | Gold::Unanswerable(_)) | None => String::new(),
        Some(Gold::Rubric(_) | Gold::Keywords(_) | Gold::Retrieval { .. } | Gold::Assertions(_)) => return None,
    };
    Some(share(present, &gold))
}

/// The part of a gold's words that is present; all of it when it has none.
fn share(present: &HashSet<String>, gold: &str) -> f64 {
    let expected: Vec<String> = words(gold).collect();
    if expected.is_empty() {
        return 1.0;
    }
    let found = expected.iter().filter(|word| present.contains(*word)).count();
    found as f64 / expected.len() as f64
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(is_space)
        .map(|word| word.trim_matches(|c: char| c.is_ascii_punctuation()).to_lowercase())
        .filter(|word| word.chars().nth(1).is_some() && !is_stop_word(word))
}

fn is_stop_word(word: &str) -> bool {
    matches!(
        word,
        "an" | "and"
            | "are"
            | "at"
            | "be"
            | "been"
            | "but"
            | "by"
            | "can"
            | "could"
            | "did"
            | "do"
            | "does"
            | "for"
            | "had"
            | "has"
            | "have"
            | "he"
            | "her"
            | "his"
            | "in"
            | "is"
            | "it"
            | "its"
            | "may"
            | "might"
            | "my"
            | "no"
            | "not"
            | "of"
            | "on"
            | "or"
            | "our"
            | "she"
            | "should"
            | "that"
            | "the"
            | "their"
            | "they"
            | "this"
            | "to"
            | "was"
            | "we"
            | "were"
            | "will"
            | "with"
            | "would"
            | "you"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::scorers::{case, category, reference};

    fn score(prediction: &str, gold: &str) -> f64 {
        let gold = Gold::Text(gold.to_owned());
        case::score(&WordOverlap, prediction, Some(&gold), "").expect("text has a score")
    }

    #[test]
    fn share_of_the_golds_words() {
        assert_eq!(score("They moved to New-York!", "(New-York) City"), 0.5);
        assert_eq!(score("cat's", "cats"), 0.0);
        assert_eq!(score("", "blue car"), 0.0);
        assert_eq!(score("anything", "7"), 1.0);
        assert_eq!(case::score(&WordOverlap, "x", None, "adversarial"), Some(1.0));
    }

    #[test]
    fn word_overlap() {
        let Some(vectors) = reference::json("vectors/astrocyte-and-jeffs-brain.json") else {
            return;
        };
        for case in reference::list(&vectors["sections"]["word_overlap"]["vectors"]) {
            let score = score(reference::str(&case["actual"]), reference::str(&case["expected"]));
            assert_eq!(score, reference::number(&case["score"]), "{case}");
        }
    }

    #[test]
    fn locomo_full_dataset_baselines() {
        let Some((baselines, data)) = reference::locomo_baselines() else { return };
        let mut checked = 0;
        for baseline in &baselines {
            if !reference::str(&baseline["scorer"]).contains("word_overlap") {
                continue;
            }
            for (category, expected) in baseline["per_category_mean"].as_object().expect("means by category") {
                let (mut passed, mut all) = (0, 0);
                for qa in reference::list(&data).iter().flat_map(|conversation| reference::list(&conversation["qa"])) {
                    if category::of_number(qa["category"].as_u64().expect("a number")) == Some(category) {
                        let gold = match &qa["answer"] {
                            Value::String(text) if category != "adversarial" => text.clone(),
                            Value::Number(number) => number.to_string(),
                            _ => String::new(),
                        };
                        let echo = reference::str(&baseline["predictor"]) == "echo the question";
                        let prediction = if echo { reference::str(&qa["question"]) } else { "zzz" };
                        passed += u32::from(WordOverlap.metrics()[0].scale.passes(score(prediction, &gold)));
                        all += 1;
                    }
                }
                let rate = f64::from(passed) / f64::from(all);
                assert!((rate - reference::number(expected)).abs() < 1e-12, "{category}: {rate}, {baseline}");
            }
            checked += 1;
        }
        assert_eq!(checked, 2);
    }
}
