//! Keyword rubrics as the two graders of amplihack score them, for comparison with published figures.
//!
//! Both look for substrings without regard to case, start from the share of required keywords (one half when there are
//! none), add something for every acceptable paraphrase, and round to four decimals. They differ in what a paraphrase is
//! worth and in whether a wrong pattern counts in an answer that is otherwise right.

use bench_proto::dataset::{Gold, KeywordRubric};

use super::{Origin, ScoreCase, Scorer};

/// A variant.
pub struct RubricAmplihack {
    name: &'static str,
    description: &'static str,
    source: &'static str,
    version: u32,
    /// What an acceptable paraphrase adds.
    bonus: f64,
    /// A wrong pattern is forgiven when all keywords or a paraphrase occur.
    forgiving: bool,
}

/// As the package `amplihack-agent-eval` grades. (Version 1 rounded a half up.)
pub static AGENT_EVAL: RubricAmplihack = RubricAmplihack {
    name: "rubric-agent-eval",
    description: "keyword grade of the package amplihack-agent-eval: substrings, a tenth per paraphrase, 0 with a wrong pattern",
    source: "amplihack-agent-eval, core/runner.py::_deterministic_grade",
    version: 2,
    bonus: 0.1,
    forgiving: false,
};

/// As the repository `amplihack` grades. (Version 1 of this name was the package's rule, version 2 rounded a half up.)
pub static AMPLIHACK: RubricAmplihack = RubricAmplihack {
    name: "rubric-amplihack",
    description: "keyword grade of amplihack itself: a quarter per paraphrase, wrong patterns forgiven in right answers",
    source: "amplihack, eval/long_horizon_memory.py::_deterministic_grade",
    version: 3,
    bonus: 0.25,
    forgiving: true,
};

impl RubricAmplihack {
    fn grade(&self, rubric: &KeywordRubric, answer: &str) -> f64 {
        let answer = answer.to_lowercase();
        let count = |list: &[String]| list.iter().filter(|text| answer.contains(&text.to_lowercase())).count();
        let (required, matched) = (rubric.required_keywords.len(), count(&rubric.required_keywords));
        let paraphrases = count(&rubric.acceptable_paraphrases);
        let is_right = paraphrases > 0 || (required > 0 && matched == required);
        if count(&rubric.incorrect_patterns) > 0 && !(self.forgiving && is_right) {
            return 0.0;
        }
        let share = if required == 0 { 0.5 } else { matched as f64 / required as f64 };
        let score = (share + self.bonus * paraphrases as f64).min(1.0);
        // the decimal nearest to the binary value, of two the even one, as their Python rounds
        format!("{score:.4}").parse().unwrap_or(score)
    }
}

impl Scorer for RubricAmplihack {
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &str {
        self.description
    }

    fn version(&self) -> u32 {
        self.version
    }

    fn origin(&self) -> Origin {
        Origin { source: self.source, vectors: &["amplihack_deterministic_grade"] }
    }

    fn long_answers_win(&self) -> bool {
        true
    }

    fn score(&self, case: &ScoreCase<'_>) -> Option<f64> {
        let Gold::Keywords(rubric) = case.gold()? else { return None };
        Some(self.grade(rubric, case.answer?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scorers::{case, reference};

    #[test]
    fn paraphrases_and_wrong_patterns() {
        let rubric = KeywordRubric {
            required_keywords: vec!["1.4".to_owned(), "million".to_owned()],
            acceptable_paraphrases: vec!["one point four".to_owned()],
            incorrect_patterns: vec!["1.2".to_owned()],
            ..KeywordRubric::default()
        };
        let gold = Gold::Keywords(rubric);
        for (prediction, agent_eval, amplihack) in [
            ("1.4 million", 1.0, 1.0),
            ("1.4 million, up from 1.2", 0.0, 1.0),
            ("1.4, not 1.2", 0.0, 0.0),
            ("one point four, not 1.2", 0.0, 0.25),
            ("1.4, one point four", 0.6, 0.75),
        ] {
            let score = |scorer| case::score(scorer, prediction, Some(&gold), "");
            assert_eq!((score(&AGENT_EVAL), score(&AMPLIHACK)), (Some(agent_eval), Some(amplihack)), "{prediction}");
        }
        // Python's round(1 / 32, 4) is 0.0312
        let words = (0..32).map(|word| format!("word{word}x")).collect();
        let half = Gold::Keywords(KeywordRubric { required_keywords: words, ..KeywordRubric::default() });
        for scorer in [&AGENT_EVAL, &AMPLIHACK] {
            assert_eq!(case::score(scorer, "word7x", Some(&half), ""), Some(0.0312), "{}", scorer.name());
        }
        let text = Gold::Text("1.4".to_owned());
        assert_eq!(case::score(&AGENT_EVAL, "1.4", Some(&text), ""), None);
    }

    #[test]
    fn amplihack_deterministic_grade() {
        let Some(vectors) = reference::json("vectors/hebb-amplihack-precisionmembench.json") else { return };
        let cases = reference::list(&vectors["amplihack_deterministic_grade"]["cases"]);
        assert_eq!(cases.len() * 2, 26, "pairs of rubric and answer, each graded twice");
        for case in cases {
            let rubric = serde_json::from_value(case["rubric"].clone()).expect("a rubric");
            let gold = Gold::Keywords(rubric);
            let prediction = reference::str(&case["answer"]);
            for (scorer, published) in [(&AGENT_EVAL, "agent_eval"), (&AMPLIHACK, "amplihack_head")] {
                let expected = reference::number(&case[published]["factual_accuracy"]["score"]);
                assert_eq!(
                    case::score(scorer, prediction, Some(&gold), ""),
                    Some(expected),
                    "{}: {case}",
                    scorer.name()
                );
            }
        }
    }
}
