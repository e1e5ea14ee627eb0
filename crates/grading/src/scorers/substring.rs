//! Normalised substring match: an expected text occurs in the answer, by the rule of MemoryAgentBench's fact consolidation.
//!
//! Both are lower-cased, lose ASCII punctuation and the whole words *a, an, the*, and have their white space collapsed. The gold
//! may begin and end inside a word of the answer: that is the rule. Pasting everything wins.

use bench_proto::dataset::Gold;

use super::{
    Origin, ScoreCase, Scorer,
    text::{is_space, is_word},
};

/// 1 where an expected text occurs in the answer, both normalised, else 0.
pub struct Substring;

impl Scorer for Substring {
    fn name(&self) -> &str {
        "substring"
    }

    fn description(&self) -> &str {
        "1 when an expected text occurs in the prediction (MemoryAgentBench: lower case, no punctuation, no articles), else 0"
    }

    fn version(&self) -> u32 {
        1
    }

    fn origin(&self) -> Origin {
        Origin { source: "MemoryAgentBench, the normalised substring match of fact consolidation", vectors: &[] }
    }

    fn long_answers_win(&self) -> bool {
        true
    }

    fn score(&self, case: &ScoreCase<'_>) -> Option<f64> {
        score(&normalize(case.answer?), case)
    }

    fn score_many(&self, answer: &str, cases: &[ScoreCase<'_>]) -> Vec<Option<f64>> {
        let answer = normalize(answer);
        cases.iter().map(|case| score(&answer, case)).collect()
    }
}

/// `answer` is normalised. Golds of which nothing is left say nothing; a gold that is an abstention is for another scorer.
fn score(answer: &str, case: &ScoreCase<'_>) -> Option<f64> {
    if case.rules.unanswerable || case.gold().is_some_and(Gold::is_unanswerable) {
        return None;
    }
    let golds = case.gold_texts().into_iter().map(|gold| normalize(&gold)).filter(|gold| !gold.is_empty());
    golds.map(|gold| f64::from(u8::from(answer.contains(&gold)))).reduce(f64::max)
}

/// Lower case without ASCII punctuation and articles, white space collapsed.
fn normalize(text: &str) -> String {
    let lower = text.to_lowercase();
    let plain: String = lower.chars().filter(|c| !c.is_ascii_punctuation()).collect();
    let mut out = String::with_capacity(plain.len());
    let mut rest = plain.as_str();
    while let Some(first) = rest.chars().next() {
        let word = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
        let taken = word.len().max(if word.is_empty() { first.len_utf8() } else { 0 });
        let blank = matches!(word, "a" | "an" | "the") || (word.is_empty() && is_space(first));
        if !blank {
            out.push_str(&rest[..taken]);
        } else if !out.is_empty() && !out.ends_with(' ') {
            out.push(' ');
        }
        rest = &rest[taken..];
    }
    out.truncate(out.trim_end_matches(' ').len());
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scorers::case;

    fn score(answer: &str, gold: &Gold) -> Option<f64> {
        case::score(&Substring, answer, Some(gold), "")
    }

    #[test]
    fn normalised() {
        for (text, expected) in [
            ("The  Well-Known, café!", "wellknown café"),
            ("a an the", ""),
            ("anthem of the\tpeople", "anthem of people"),
            ("a “the” b", "“ ” b"),
            ("  x  ", "x"),
            ("", ""),
        ] {
            assert_eq!(normalize(text), expected, "{text:?}");
        }
    }

    #[test]
    fn any_of_the_texts_occurs() {
        let any = Gold::AnyOf(vec!["New York".to_owned(), "the Big Apple".to_owned()]);
        for (answer, gold, expected) in [
            ("They live in New York, I think", &any, Some(1.0)),
            ("big apple", &any, Some(1.0)),
            ("Boston", &any, Some(0.0)),
            ("", &any, Some(0.0)),
            ("in 2022", &Gold::Number(2022.into()), Some(1.0)),
            ("a party", &Gold::Text("art".to_owned()), Some(1.0)),
            ("x", &Gold::Text("the!".to_owned()), None),
            ("x", &Gold::AnyOf(vec![]), None),
            ("x", &Gold::Abstain, None),
            ("x", &Gold::Rubric(vec!["x".to_owned()]), None),
        ] {
            assert_eq!(score(answer, gold), expected, "{answer}");
        }
        let unknown = case::score(&Substring, "x", Some(&Gold::Text("x".to_owned())), "adversarial");
        assert_eq!(unknown, None, "the right answer is that there is none");
    }

    /// That harness has a rule of the same kind, by which punctuation becomes a blank; figures by it are not published.
    #[test]
    fn vectors_jeffs_go_exact_match() {
        let Some(all) = crate::scorers::reference::json("vectors/astrocyte-and-jeffs-brain.json") else { return };
        let cases = crate::scorers::reference::list(&all["sections"]["jeffs_go"]["vectors"]["exact_match"]);
        assert_eq!(cases.len(), 8);
        for case in cases {
            let [agent, truth] = ["agent", "truth"].map(|key| crate::scorers::reference::str(&case[key]));
            let ours = score(agent, &Gold::Text(truth.to_owned())).is_some_and(|score| score > 0.0);
            assert_eq!(ours == (case["match"] == true), !agent.contains("New-York"), "{case}");
        }
    }

    proptest! {
        #[test]
        fn normalising_twice_is_once_and_around_a_gold_it_stays(
            text in "(the|a|an|é|[ab]{1,3}|[,.’“-]| |\\t){0,30}",
            before in "[a-z ]{0,9}",
        ) {
            let once = normalize(&text);
            prop_assert_eq!(normalize(&once), once.clone());
            prop_assert!(!once.starts_with(' ') && !once.ends_with(' ') && !once.contains("  "), "{once:?}");
            if !once.is_empty() {
                prop_assert_eq!(score(&format!("{before} {text}"), &Gold::Text(text.clone())), Some(1.0));
            }
        }
    }
}
