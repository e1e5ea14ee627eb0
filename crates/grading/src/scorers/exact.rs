//! Exact match by LoCoMo's rule: prediction and gold have equal sets of normalised tokens (not stemmed, order and repeats
//! do not matter).

use std::collections::HashSet;

use bench_proto::dataset::Gold;

use super::{
    ScoreCase, Scorer,
    category::{Category, used_part},
    normalize,
};

/// See the module.
pub struct Exact;

impl Scorer for Exact {
    fn name(&self) -> &'static str {
        "exact"
    }

    fn description(&self) -> &'static str {
        "1 when prediction and gold have the same set of normalised words, else 0"
    }

    fn version(&self) -> u32 {
        1
    }

    fn score(&self, case: &ScoreCase<'_>) -> Option<f64> {
        score(&token_set(case.prediction), case.gold, case.category)
    }

    fn used_gold<'a>(&self, gold: &'a str, category: &str) -> &'a str {
        used_part(gold, category)
    }

    fn score_many(&self, prediction: &str, cases: &[(Option<&Gold>, &str)]) -> Vec<Option<f64>> {
        let prediction = token_set(prediction);
        cases.iter().map(|(gold, category)| score(&prediction, *gold, category)).collect()
    }
}

fn score(prediction: &HashSet<String>, gold: Option<&Gold>, category: &str) -> Option<f64> {
    let gold = match gold {
        // what a question without an answer expects, whatever else its data hold
        _ if category == Category::Adversarial.name() => Gold::Abstain.text(),
        Some(gold @ (Gold::Text(_) | Gold::Number(_) | Gold::Choice(_) | Gold::Abstain)) => gold.text(),
        _ => return None,
    };
    let equal = *prediction == token_set(used_part(&gold, category));
    Some(f64::from(u8::from(equal)))
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
    use crate::scorers::reference;

    fn score(prediction: &str, gold: &Gold, category: &str) -> Option<f64> {
        Exact.score(&ScoreCase { prediction, gold: Some(gold), category })
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
            ("No information available.", Gold::Abstain, "adversarial", 1.0),
            ("No", text("No"), "adversarial", 0.0),
            ("", text("car"), "single-hop", 0.0),
        ] {
            assert_eq!(score(prediction, &gold, category), Some(expected), "{prediction}");
        }
        assert_eq!(score("x", &Gold::Rubric(vec![]), "any"), None);
        assert_eq!(Exact.score(&ScoreCase { prediction: "x", gold: None, category: "temporal" }), None);
    }

    #[test]
    fn published_vectors() {
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
