//! Exact match by LoCoMo's rule: prediction and gold have equal sets of normalised tokens (not stemmed, order and repeats
//! do not matter).

use std::collections::HashSet;

use bench_proto::{dataset::Gold, profile::CategoryRules};

use super::{Origin, ScoreCase, Scorer, category::used_part, normalize};

/// 1 for equal sets of normalised tokens, else 0.
pub struct Exact;

impl Scorer for Exact {
    fn name(&self) -> &str {
        "exact"
    }

    fn description(&self) -> &str {
        "1 when prediction and gold have the same set of normalised words, else 0"
    }

    fn version(&self) -> u32 {
        1
    }

    fn origin(&self) -> Origin {
        Origin { source: "LoCoMo, task_eval/evaluation.py::exact_match_score", vectors: &["locomo_f1"] }
    }

    fn score(&self, case: &ScoreCase<'_>) -> Option<f64> {
        score(&token_set(case.answer?), case)
    }

    fn used_gold<'a>(&self, gold: &'a str, rules: &CategoryRules) -> &'a str {
        used_part(gold, rules)
    }

    fn score_many(&self, answer: &str, cases: &[ScoreCase<'_>]) -> Vec<Option<f64>> {
        let answer = token_set(answer);
        cases.iter().map(|case| score(&answer, case)).collect()
    }
}

fn score(answer: &HashSet<String>, case: &ScoreCase<'_>) -> Option<f64> {
    let equals = |gold: &str| *answer == token_set(used_part(gold, case.rules));
    let right = match case.gold() {
        // what a question without an answer expects, whatever else its data hold
        _ if case.rules.unanswerable => equals(&Gold::Abstain.text()),
        Some(gold @ (Gold::Text(_) | Gold::Number(_) | Gold::Choice(_) | Gold::Abstain)) => equals(&gold.text()),
        Some(Gold::Unanswerable(_)) => equals(&Gold::Abstain.text()),
        Some(Gold::AnyOf(texts)) => texts.iter().any(|text| equals(text)),
        _ => return None,
    };
    Some(f64::from(u8::from(right)))
}

fn token_set(text: &str) -> HashSet<String> {
    let mut set = HashSet::new();
    normalize::for_each_token(text, &mut String::new(), |token| {
        set.insert(token.to_owned());
    });
    set
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scorers::{case, reference};

    fn score(prediction: &str, gold: &Gold, category: &str) -> Option<f64> {
        case::score(&Exact, prediction, Some(gold), category)
    }

    #[test]
    fn sets_of_words() {
        let text = |text: &str| Gold::Text(text.to_owned());
        for (prediction, gold, category, expected) in [
            ("the Blue, blue car", text("car blue"), "single-hop", 1.0),
            ("cars", text("car"), "single-hop", 0.0),
            ("2022", Gold::Number(2022.into()), "temporal", 1.0),
            ("Likely no", text("Likely no; because"), "open-domain", 1.0),
            ("Likely no", text("Likely no; because"), "single-hop", 0.0),
            ("the red car", Gold::AnyOf(vec!["blue car".to_owned(), "car, red".to_owned()]), "single-hop", 1.0),
            ("the red", Gold::AnyOf(vec!["blue car".to_owned(), "car, red".to_owned()]), "single-hop", 0.0),
            ("No information available.", Gold::Abstain, "adversarial", 1.0),
            ("No", text("No"), "adversarial", 0.0),
            ("No information available", Gold::Unanswerable("nobody said".to_owned()), "any", 1.0),
            ("Nobody said", Gold::Unanswerable("nobody said".to_owned()), "any", 0.0),
            ("", text("car"), "single-hop", 0.0),
        ] {
            assert_eq!(score(prediction, &gold, category), Some(expected), "{prediction}");
        }
        assert_eq!(score("x", &Gold::Rubric(vec![]), "any"), None);
        assert_eq!(case::score(&Exact, "x", None, "temporal"), None);
    }

    #[test]
    fn locomo_f1_exact_match() {
        let Some(vectors) = reference::json("vectors/locomo-f1.json") else {
            return;
        };
        for case in reference::list(&vectors["vectors"]) {
            if let Some(expected) = case.get("exact_match").and_then(serde_json::Value::as_bool) {
                let gold = Gold::Text(reference::str(&case["gold_used"]).to_owned());
                let score = score(reference::str(&case["prediction"]), &gold, "single-hop");
                assert_eq!(score, Some(f64::from(u8::from(expected))), "{case}");
            }
        }
    }
}
