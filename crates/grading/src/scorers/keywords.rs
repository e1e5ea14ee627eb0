//! Keywords as substrings: the text overlap of the Astrocyte harness. Without any keyword everything is right; pasting everything
//! wins. For comparison with published figures; our own rule is [`super::rubric`].

use bench_proto::dataset::Gold;

use super::{Origin, ScoreCase, Scorer};

/// Share of the keywords that occur in the answer; wrong patterns and paraphrases of a rubric do not count.
pub struct Keywords;

impl Scorer for Keywords {
    fn name(&self) -> &str {
        "keywords"
    }

    fn description(&self) -> &str {
        "share of the expected keywords that occur in the prediction as substrings, any case; 1 without keywords"
    }

    fn version(&self) -> u32 {
        1
    }

    fn origin(&self) -> Origin {
        Origin { source: "Astrocyte, metrics.text_overlap_score", vectors: &["text_overlap"] }
    }

    fn long_answers_win(&self) -> bool {
        true
    }

    fn score(&self, case: &ScoreCase<'_>) -> Option<f64> {
        score(&case.answer?.to_lowercase(), case.gold())
    }

    fn score_many(&self, answer: &str, cases: &[ScoreCase<'_>]) -> Vec<Option<f64>> {
        let answer = answer.to_lowercase();
        cases.iter().map(|case| score(&answer, case.gold())).collect()
    }

    fn gold_of_list(&self, texts: Vec<String>) -> Gold {
        Gold::Rubric(texts)
    }
}

/// `answer` is in lower case.
fn score(answer: &str, gold: Option<&Gold>) -> Option<f64> {
    match gold? {
        Gold::Keywords(rubric) => Some(share(answer, &rubric.required_keywords)),
        Gold::Rubric(keywords) => Some(share(answer, keywords)),
        gold @ (Gold::Text(_) | Gold::Number(_)) => Some(share(answer, &[gold.text()])),
        Gold::AnyOf(texts) => texts.iter().map(|text| share(answer, std::slice::from_ref(text))).reduce(f64::max),
        Gold::Choice(_) | Gold::Retrieval { .. } | Gold::Assertions(_) | Gold::Abstain | Gold::Unanswerable(_) => None,
    }
}

fn share(answer: &str, keywords: &[String]) -> f64 {
    let found = keywords.iter().filter(|keyword| answer.contains(&keyword.to_lowercase())).count();
    if keywords.is_empty() { 1.0 } else { found as f64 / keywords.len() as f64 }
}

#[cfg(test)]
mod tests {
    use bench_proto::dataset::KeywordRubric;

    use super::*;
    use crate::scorers::{case, reference};

    fn list(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn golds() {
        let of = |gold: Gold| case::score(&Keywords, "He submitted a blue form", Some(&gold), "");
        assert_eq!(of(Gold::Rubric(list(&["MIT", "red"]))), Some(0.5), "inside a word, too");
        assert_eq!(of(Gold::Text("Blue".to_owned())), Some(1.0));
        assert_eq!(of(Gold::AnyOf(list(&["red", "blue"]))), Some(1.0));
        let rubric = KeywordRubric {
            required_keywords: list(&["form"]),
            incorrect_patterns: list(&["blue"]),
            ..KeywordRubric::default()
        };
        assert_eq!(of(Gold::Keywords(rubric)), Some(1.0), "no pattern is wrong by this rule");
        assert_eq!((of(Gold::Abstain), of(Gold::AnyOf(vec![]))), (None, None));
    }

    #[test]
    fn text_overlap() {
        let Some(vectors) = reference::json("vectors/astrocyte-and-jeffs-brain.json") else { return };
        let cases = reference::list(&vectors["sections"]["text_overlap"]["vectors"]);
        assert_eq!(cases.len(), 4);
        for case in cases {
            let words: Vec<&str> = reference::list(&case["expected_keywords"]).iter().map(reference::str).collect();
            let score = case::score(&Keywords, reference::str(&case["text"]), Some(&Gold::Rubric(list(&words))), "");
            assert_eq!(score, Some(reference::number(&case["score"])), "{case}");
        }
    }
}
