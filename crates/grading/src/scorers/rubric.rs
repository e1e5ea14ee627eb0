//! Keyword rubrics on whole words, our own rule: pasting everything loses.
//!
//! A wrong pattern in the answer makes 0. Otherwise the share of required keywords that occur, plus a tenth for every acceptable
//! paraphrase, at most 1. A keyword or pattern may be written in several ways (`3 May|May 3`), of which one is enough. It
//! occurs where it stands between the ends of words and of numbers, without regard to case.
//!
//! An answer may have two hundred words, and ten more for each word of what is required. One that is longer keeps that part of
//! its score: who recites a dialogue of five thousand words to hit three keywords has 0.046. How this was weighed is in ADR
//! 0047. Criteria in prose need a model judge; here they only match word for word.

use bench_proto::dataset::{Gold, KeywordRubric};

use super::{
    Origin, ScoreCase, Scorer, abstention,
    text::{contains_any, flag, is_space, stands_in},
};

/// Words that any answer may have.
const ROOM: usize = 200;
/// Words that an answer may have besides for each word of what is required.
const ROOM_PER_WORD: usize = 10;

/// Scores [`Gold::Keywords`], and [`Gold::Rubric`] as if its lines were required keywords; texts and numbers are one keyword, of
/// several right texts one is enough, and where nothing is known the answer must say so.
pub struct Rubric;

impl Scorer for Rubric {
    fn name(&self) -> &str {
        "rubric"
    }

    fn description(&self) -> &str {
        "share of the rubric's keywords found as whole words, each in one of its ways; 0 with a wrong pattern, less for reciting"
    }

    /// Version 2 took blank lines of a list for keywords.
    fn version(&self) -> u32 {
        3
    }

    fn origin(&self) -> Origin {
        Origin::OURS
    }

    fn score(&self, case: &ScoreCase<'_>) -> Option<f64> {
        Answer::new(case.answer?).score(case.gold())
    }

    fn score_many(&self, answer: &str, cases: &[ScoreCase<'_>]) -> Vec<Option<f64>> {
        let answer = Answer::new(answer);
        cases.iter().map(|case| answer.score(case.gold())).collect()
    }

    fn room(&self, case: &ScoreCase<'_>) -> usize {
        case.gold().map_or(0, room)
    }

    fn gold_of_list(&self, texts: Vec<String>) -> Gold {
        Gold::Rubric(texts)
    }
}

/// An answer in small letters with its number of words.
struct Answer {
    text: String,
    words: usize,
}

impl Answer {
    fn new(answer: &str) -> Self {
        Self { text: answer.to_lowercase(), words: words(answer) }
    }

    fn score(&self, gold: Option<&Gold>) -> Option<f64> {
        let gold = gold?;
        let says = |text: &String| self.says(text);
        let score = match gold {
            Gold::Keywords(rubric) => self.keywords(rubric)?,
            Gold::Rubric(lines) => {
                let required = lines.iter().filter(|line| !line.trim().is_empty()).count();
                if required == 0 {
                    return None;
                }
                lines.iter().filter(|line| says(line)).count() as f64 / required as f64
            }
            Gold::Text(_) | Gold::Number(_) => flag(self.says(&gold.text())),
            Gold::AnyOf(texts) if texts.is_empty() => return None,
            Gold::AnyOf(texts) => {
                let score = |text: &String| self.held(flag(says(text)), room(&Gold::Text(text.clone())));
                return texts.iter().map(score).reduce(f64::max);
            }
            Gold::Abstain | Gold::Unanswerable(_) => flag(contains_any(&self.text, abstention::ASTROCYTE)),
            Gold::Choice(_) | Gold::Retrieval { .. } | Gold::Assertions(_) => return None,
        };
        Some(self.held(score, room(gold)))
    }

    fn keywords(&self, rubric: &KeywordRubric) -> Option<f64> {
        if rubric.required_keywords.is_empty() {
            return None;
        }
        let one_way = |written: &String| written.split('|').any(|way| self.says(way));
        if rubric.incorrect_patterns.iter().any(one_way) {
            return Some(0.0);
        }
        let count = |list: &[String]| list.iter().filter(|written| one_way(written)).count() as f64;
        let share = count(&rubric.required_keywords) / rubric.required_keywords.len() as f64;
        Some((share + 0.1 * count(&rubric.acceptable_paraphrases)).min(1.0))
    }

    fn says(&self, words: &str) -> bool {
        stands_in(&self.text, words)
    }

    /// What is left of a score for an answer of this length.
    fn held(&self, score: f64, room: usize) -> f64 {
        if self.words <= room { score } else { score * room as f64 / self.words as f64 }
    }
}

/// Words that an answer may have at no cost.
fn room(gold: &Gold) -> usize {
    let required = match gold {
        Gold::Keywords(rubric) => rubric.required_keywords.iter().map(|keyword| words(keyword)).sum(),
        Gold::Rubric(lines) | Gold::AnyOf(lines) => lines.iter().map(|line| words(line)).sum(),
        gold => words(&gold.text()),
    };
    ROOM + ROOM_PER_WORD * required
}

fn words(text: &str) -> usize {
    text.split(is_space).filter(|word| !word.is_empty()).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scorers::case;

    fn list(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn keywords(required: &[&str], wrong: &[&str]) -> Gold {
        Gold::Keywords(KeywordRubric {
            required_keywords: list(required),
            incorrect_patterns: list(wrong),
            ..KeywordRubric::default()
        })
    }

    fn scored(prediction: &str, gold: &Gold) -> Option<f64> {
        case::score(&Rubric, prediction, Some(gold), "")
    }

    #[test]
    fn shares_ways_and_wrong_patterns() {
        let gold = keywords(&["blue", "car"], &["red|crimson"]);
        for (answer, expected) in
            [("a BLUE car", 1.0), ("blue", 0.5), ("blue car, crimson roof", 0.0), ("blue car, reddish", 1.0), ("", 0.0)]
        {
            assert_eq!(scored(answer, &gold), Some(expected), "{answer}");
        }
        let ways = keywords(&["May 3|3 May"], &[]);
        assert_eq!((scored("due 3 May", &ways), scored("due 13 May", &ways)), (Some(1.0), Some(0.0)));
        assert_eq!(scored("anything", &keywords(&["|"], &[])), Some(0.0));
        assert_eq!(scored("x", &keywords(&[], &["x"])), None, "nothing is required");
        let paraphrase = Gold::Keywords(KeywordRubric {
            required_keywords: list(&["blue", "car"]),
            acceptable_paraphrases: list(&["automobile"]),
            ..KeywordRubric::default()
        });
        assert_eq!(scored("blue automobile", &paraphrase), Some(0.6));
    }

    #[test]
    fn golds() {
        assert_eq!(scored("a blue car", &Gold::Text("Blue Car".to_owned())), Some(1.0));
        assert_eq!(scored("a blue car", &Gold::Rubric(list(&["blue", "red"]))), Some(0.5));
        assert_eq!(
            scored("a blue car", &Gold::Rubric(list(&["blue", "", " \n"]))),
            Some(1.0),
            "blank lines ask nothing"
        );
        assert_eq!(scored("about 7 of them", &Gold::Number(7.into())), Some(1.0));
        assert_eq!(scored("a van", &Gold::AnyOf(list(&["car", "van"]))), Some(1.0));
        assert_eq!(scored("I do not know.", &Gold::Abstain), Some(1.0));
        assert_eq!((scored("", &Gold::Abstain), scored("blue", &Gold::Abstain)), (Some(0.0), Some(0.0)));
        for nothing in [Gold::Choice("x".to_owned()), Gold::Rubric(list(&[""])), Gold::AnyOf(vec![])] {
            assert_eq!(scored("x", &nothing), None, "{nothing:?}");
        }
        assert_eq!(case::score(&Rubric, "x", None, ""), None);
    }

    #[test]
    fn reciting_costs() {
        let gold = keywords(&["blue", "car"], &[]);
        let said = |more: usize| format!("a blue car{}", " and so on".repeat(more));
        assert_eq!(scored(&said(72), &gold), Some(1.0), "220 words are allowed");
        assert_eq!(scored(&said(73), &gold), Some(220.0 / 222.0));
        assert_eq!(scored(&said(3999), &gold), Some(220.0 / 12_000.0));
        let case = ScoreCase::default();
        assert_eq!(Rubric.room(&case), 0, "without a gold nothing is measured");
    }

    proptest! {
        #[test]
        fn any_answer_has_a_score_in_range(answer in ".{0,60}", keyword in ".{0,8}", wrong in ".{0,8}") {
            let score = scored(&answer, &keywords(&[&keyword], &[&wrong])).expect("a score");
            prop_assert!((0.0..=1.0).contains(&score));
        }

        #[test]
        fn a_keyword_between_spaces_is_found(before in "[a-z ]{0,9}", keyword in "[a-z0-9é$]{1,9}", after in "[a-z ]{0,9}") {
            let answer = format!("{before} {keyword} {after}");
            prop_assert_eq!(scored(&answer, &keywords(&[&keyword], &[])), Some(1.0));
        }

        #[test]
        fn saying_more_never_pays_beyond_the_room(more in 100_usize..4_000, further in 1_usize..500) {
            let gold = keywords(&["blue"], &[]);
            let with = |words: usize| scored(&format!("blue{}", " x".repeat(words)), &gold).expect("a score");
            prop_assert!(with(more + further) <= with(more));
        }
    }
}
