//! An expected text occurs in the answer as it is written, in any case: `contains`, the rule that jeffs-brain calls exact, and
//! `contains-word`, the same between the ends of words and numbers. A line break inside a phrase prevents a match.

use bench_proto::dataset::Gold;

use super::{
    Origin, ScoreCase, Scorer,
    text::{flag, stands_in},
};

/// A variant.
pub struct Contains {
    name: &'static str,
    description: &'static str,
    vectors: &'static [&'static str],
    /// Whether a small letter text holds an expected one.
    holds: fn(&str, &str) -> bool,
}

/// As published: inside words, too.
pub static ANYWHERE: Contains = Contains {
    name: "contains",
    description: "1 when an expected text occurs in the prediction as it is written, any case, inside words too; else 0",
    vectors: &["jeffs_exact_scorer"],
    holds: |answer, text| answer.contains(&text.to_lowercase()),
};

/// Whole words.
pub static WORDS: Contains = Contains {
    name: "contains-word",
    description: "the same between the ends of words and numbers: no Au in aura, no 2000 in 20001",
    vectors: &[],
    holds: stands_in,
};

impl Contains {
    /// `answer` is in lower case. Empty texts are not looked for; where all are empty nothing is right.
    fn score(&self, answer: &str, case: &ScoreCase<'_>) -> Option<f64> {
        let gold = case.gold()?;
        if case.rules.unanswerable
            || !matches!(gold, Gold::Text(_) | Gold::Number(_) | Gold::Choice(_) | Gold::AnyOf(_))
        {
            return None;
        }
        let texts = case.gold_texts();
        Some(flag(texts.iter().any(|text| !text.is_empty() && (self.holds)(answer, text))))
    }
}

impl Scorer for Contains {
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &str {
        self.description
    }

    fn version(&self) -> u32 {
        1
    }

    fn origin(&self) -> Origin {
        if self.vectors.is_empty() {
            Origin::OURS
        } else {
            Origin { source: "jeffs-brain memory, eval/scorer/exact.py", vectors: self.vectors }
        }
    }

    fn long_answers_win(&self) -> bool {
        true
    }

    fn score(&self, case: &ScoreCase<'_>) -> Option<f64> {
        self.score(&case.answer?.to_lowercase(), case)
    }

    fn score_many(&self, answer: &str, cases: &[ScoreCase<'_>]) -> Vec<Option<f64>> {
        let answer = answer.to_lowercase();
        cases.iter().map(|case| self.score(&answer, case)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scorers::{case, reference};

    fn scored(scorer: &Contains, answer: &str, texts: &[&str]) -> Option<f64> {
        let gold = Gold::AnyOf(texts.iter().map(|text| (*text).to_owned()).collect());
        case::score(scorer, answer, Some(&gold), "")
    }

    #[test]
    fn inside_words_or_not() {
        for (answer, text, anywhere, words) in [
            ("Because of the aura", "Au", 1.0, 0.0),
            ("Gold is AU.", "Au", 1.0, 1.0),
            ("20001", "2000", 1.0, 0.0),
            ("in 2000, then", "2000", 1.0, 1.0),
            ("reciprocal rank\nfusion", "rank fusion", 0.0, 0.0),
            ("anything", "", 0.0, 0.0),
        ] {
            let got = (scored(&ANYWHERE, answer, &[text]), scored(&WORDS, answer, &[text]));
            assert_eq!(got, (Some(anywhere), Some(words)), "{answer}: {text}");
        }
        let unknown = case::score(&ANYWHERE, "x", Some(&Gold::Text("x".to_owned())), "adversarial");
        assert_eq!((unknown, case::score(&WORDS, "x", Some(&Gold::Abstain), "")), (None, None));
    }

    #[test]
    fn jeffs_exact_scorer() {
        let Some(vectors) = reference::json("vectors/astrocyte-and-jeffs-brain.json") else { return };
        let cases = reference::list(&vectors["sections"]["jeffs_exact_scorer"]["vectors"]);
        assert_eq!(cases.len(), 5);
        for case in cases {
            let texts = case["item"]["expected_substrings"].as_array().map_or(&[][..], Vec::as_slice);
            let texts: Vec<&str> = texts.iter().map(reference::str).collect();
            let score = scored(&ANYWHERE, reference::str(&case["answer"]), &texts);
            assert_eq!(score, Some(reference::number(&case["score"])), "{case}");
        }
    }

    proptest! {
        #[test]
        fn whole_words_are_stricter(answer in "[a-c0-2., ]{0,20}", text in "([a-c0-2.,]([a-c0-2., ]{0,2}[a-c0-2.,])?)?") {
            let [anywhere, words] = [&ANYWHERE, &WORDS].map(|scorer| scored(scorer, &answer, &[&text]).expect("a score"));
            prop_assert!(words <= anywhere);
            prop_assert_eq!(anywhere == 1.0, !text.is_empty() && answer.contains(&text));
        }
    }
}
