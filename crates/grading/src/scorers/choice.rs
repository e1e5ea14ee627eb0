//! Multiple choice: by PersonaMem's rule, by a stricter one of our own, by that of the Hebb harness and by MemBench's.
//! PersonaMem's:
//!
//! Read the text after the last `<final_answer>` (less a closing tag at its end), lower-cased: the letters a to d in
//! round brackets, or else those that stand alone. Right when they are exactly the gold's letter; if not, the same is
//! tried on the whole reply. (The article *a* counts as option a where nothing is in brackets: that is the rule.)

use bench_proto::dataset::Gold;

use super::{
    Origin, ScoreCase, Scorer,
    text::{flag, is_space, is_word_of_re, trim},
};

/// PersonaMem's rule: right when the letters that are named are exactly the gold's.
pub struct Choice;

impl Scorer for Choice {
    fn name(&self) -> &str {
        "choice"
    }

    fn description(&self) -> &str {
        "1 when the reply names exactly the right option, (a) to (d), by PersonaMem's rule; else 0"
    }

    /// Version 1 took marks and circled letters for parts of a word.
    fn version(&self) -> u32 {
        2
    }

    fn origin(&self) -> Origin {
        Origin { source: "PersonaMem, inference_standalone_openai.py::extract_answer", vectors: &["personamem_choice"] }
    }

    fn score(&self, case: &ScoreCase<'_>) -> Option<f64> {
        let reply = trim(case.answer?);
        let named = [Letters::named(final_answer(reply)), Letters::named(reply)];
        best(case, |gold| named.contains(&gold))
    }
}

/// The text after the last `<final_answer>`, less a closing tag at its end; all of a reply without one.
fn final_answer(reply: &str) -> &str {
    let answer = trim(reply.rsplit("<final_answer>").next().unwrap_or(reply));
    answer.strip_suffix("</final_answer>").unwrap_or(answer)
}

/// 1 when one of the case's golds is right, 0 when none is; none without a gold that is a letter.
fn best(case: &ScoreCase<'_>, is_right: impl Fn(Letters) -> bool) -> Option<f64> {
    letters(case.gold()?).into_iter().map(|gold| flag(is_right(gold))).reduce(f64::max)
}

/// Our own rule: what is named must be named as an option. The final answer holds exactly the right letter in brackets, or is
/// that letter and nothing else; the article *a* is no option, and there is no second try on the whole reply.
pub struct ChoiceStrict;

impl Scorer for ChoiceStrict {
    fn name(&self) -> &str {
        "choice-strict"
    }

    fn description(&self) -> &str {
        "1 when the final answer has exactly the right option in brackets, or is its letter alone: the article a is no option"
    }

    fn version(&self) -> u32 {
        1
    }

    fn origin(&self) -> Origin {
        Origin::OURS
    }

    fn score(&self, case: &ScoreCase<'_>) -> Option<f64> {
        let answer = trim(final_answer(trim(case.answer?)));
        let in_brackets = Letters::in_brackets(&answer.to_lowercase().chars().collect::<Vec<_>>());
        let alone = || Letters::only(answer.trim_end_matches(['.', ':', ')']));
        let named = if in_brackets.0 == 0 { alone() } else { Some(in_brackets) };
        best(case, |gold| named == Some(gold))
    }
}

/// The rule of the Hebb harness: the last option in brackets counts, else the last letter of an option that stands alone.
pub struct ChoiceHebb;

impl Scorer for ChoiceHebb {
    fn name(&self) -> &str {
        "choice-hebb"
    }

    fn description(&self) -> &str {
        "1 when the last option in brackets, else the last letter that stands alone, is the right one (Hebb on PersonaMem)"
    }

    /// Version 1 took marks and circled letters for parts of a word.
    fn version(&self) -> u32 {
        2
    }

    fn origin(&self) -> Origin {
        Origin {
            source: "hebb-mind, eval/benchmarks/personamem_bench.py::parse_choice",
            vectors: &["hebb_personamem_parse_choice"],
        }
    }

    fn score(&self, case: &ScoreCase<'_>) -> Option<f64> {
        let named = last_option(case.answer?).map(|letter| Letters(Letters::bit(letter)));
        best(case, |gold| named == Some(gold))
    }
}

/// The option from a to d that a reply names last.
fn last_option(reply: &str) -> Option<char> {
    let chars: Vec<char> = reply.to_lowercase().chars().collect();
    let is_option = |c: &char| Letters::bit(*c) != 0;
    let in_brackets = chars.windows(3).filter(|w| w[0] == '(' && w[2] == ')').map(|w| w[1]).rfind(is_option);
    in_brackets.or_else(|| {
        chars.split(|&c| !is_word_of_re(c)).filter(|word| word.len() == 1).map(|word| word[0]).rfind(is_option)
    })
}

/// MemBench's rule: the reply is the right letter and nothing else.
pub struct ChoiceLetter;

impl Scorer for ChoiceLetter {
    fn name(&self) -> &str {
        "choice-letter"
    }

    fn description(&self) -> &str {
        "1 when the reply is the letter of the right option, A to D, and nothing else (MemBench; any case, brackets allowed)"
    }

    fn version(&self) -> u32 {
        1
    }

    fn origin(&self) -> Origin {
        Origin { source: "MemBench, env/Membenenv.py (the letter, forced by a JSON schema)", vectors: &[] }
    }

    fn score(&self, case: &ScoreCase<'_>) -> Option<f64> {
        let reply = Letters::only(case.answer?);
        best(case, |gold| reply == Some(gold))
    }
}

/// The letters of which each is right; none for golds that are no letters.
fn letters(gold: &Gold) -> Vec<Letters> {
    let texts = match gold {
        Gold::Choice(gold) | Gold::Text(gold) => std::slice::from_ref(gold),
        Gold::AnyOf(golds) => golds,
        _ => &[],
    };
    texts.iter().filter_map(|text| Letters::only(text)).collect()
}

/// A set of the letters a to d, one bit each.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Letters(u8);

impl Letters {
    fn bit(letter: char) -> u8 {
        match letter {
            'a'..='d' => 1 << (letter as u32 - 'a' as u32),
            _ => 0,
        }
    }

    /// The letter of a gold such as `(c)` or `C`; `None` when it is not one of a to d.
    fn only(gold: &str) -> Option<Self> {
        let gold = gold.trim_matches(|c| is_space(c) || matches!(c, '(' | ')')).to_lowercase();
        let mut chars = gold.chars();
        match (chars.next().map(Self::bit), chars.next()) {
            (Some(bit @ 1..), None) => Some(Self(bit)),
            _ => None,
        }
    }

    /// Letters that stand in round brackets.
    fn in_brackets(chars: &[char]) -> Self {
        Self(chars.windows(3).filter(|w| w[0] == '(' && w[2] == ')').fold(0, |set, w| set | Self::bit(w[1])))
    }

    /// The letters that a reply names.
    fn named(reply: &str) -> Self {
        let chars: Vec<char> = reply.to_lowercase().chars().collect();
        let in_brackets = Self::in_brackets(&chars);
        if in_brackets.0 != 0 {
            return in_brackets;
        }
        let alone = chars.split(|&c| !is_word_of_re(c)).filter(|word| word.len() == 1);
        Self(alone.fold(0, |set, word| set | Self::bit(word[0])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scorers::{case, reference};

    fn score(prediction: &str, gold: &str) -> Option<f64> {
        case::score(&Choice, prediction, Some(&Gold::Choice(gold.to_owned())), "")
    }

    #[test]
    fn brackets_then_lone_letters_then_the_whole_reply() {
        for (prediction, expected) in [
            ("(b)", 1.0),
            ("B", 1.0),
            ("It is (b), a good one", 1.0),
            ("(a) no. <final_answer>(b)</final_answer>", 1.0),
            ("(b) yes. <final_answer>none", 1.0),
            ("(a) or (b)", 0.0),
            ("a b", 0.0),
            ("ab", 0.0),
            ("", 0.0),
            ("(e)", 0.0),
        ] {
            assert_eq!(score(prediction, "(b)"), Some(expected), "{prediction}");
            assert_eq!(score(prediction, "B"), Some(expected), "{prediction}");
        }
        // a mark ends no word of Python's, and a circled letter is none
        for reply in ["b\u{93e}", "ⓐ b", "e\u{301} b"] {
            assert_eq!(score(reply, "(b)"), Some(1.0), "{reply}");
            assert_eq!(last_option(reply), Some('b'), "{reply}");
        }
        assert_eq!(score("b²", "(b)"), Some(0.0), "a number goes on with the word");
        assert_eq!(score("(b)", "the second"), None);
        assert_eq!(score("(b)", ""), None);
        assert_eq!(case::score(&Choice, "(b)", None, ""), None);
    }

    #[test]
    fn either_of_two_letters() {
        let gold = Gold::AnyOf(vec!["(b)".to_owned(), "D".to_owned()]);
        for (reply, named, alone) in
            [("d", 1.0, 1.0), ("It is (b)", 1.0, 0.0), ("(b) or (d)", 0.0, 0.0), ("c", 0.0, 0.0)]
        {
            assert_eq!(case::score(&Choice, reply, Some(&gold), ""), Some(named), "{reply}");
            assert_eq!(case::score(&ChoiceLetter, reply, Some(&gold), ""), Some(alone), "{reply}");
        }
    }

    #[test]
    fn membench_takes_the_letter_alone() {
        let score =
            |reply: &str, gold: &str| case::score(&ChoiceLetter, reply, Some(&Gold::Choice(gold.to_owned())), "");
        for (reply, expected) in [
            ("B", 1.0),
            ("b", 1.0),
            (" (B)\n", 1.0),
            ("A", 0.0),
            ("B, I think", 0.0),
            ("AB", 0.0),
            ("", 0.0),
            ("E", 0.0),
        ] {
            assert_eq!(score(reply, "B"), Some(expected), "{reply}");
        }
        assert_eq!(score("E", "E"), None, "there are four options");
    }

    #[test]
    fn strict_wants_an_option_to_be_named_as_one() {
        let gold = Gold::Choice("(b)".to_owned());
        for (reply, personamem, strict, hebb) in [
            ("(b)", 1.0, 1.0, 1.0),
            ("B.", 1.0, 1.0, 1.0),
            ("b)", 1.0, 1.0, 1.0),
            ("It is (b), a good one", 1.0, 1.0, 1.0),
            ("Answer: B", 1.0, 0.0, 1.0),
            ("(a) no, (b)", 0.0, 0.0, 1.0),
            ("(b) yes. <final_answer>none", 1.0, 0.0, 1.0),
            ("(b) yes. <final_answer>(c)</final_answer>", 0.0, 0.0, 0.0),
            ("(a) no. <final_answer> B </final_answer>", 1.0, 1.0, 0.0),
            ("A person would say b", 0.0, 0.0, 1.0),
            ("", 0.0, 0.0, 0.0),
        ] {
            let got =
                [&Choice as &dyn Scorer, &ChoiceStrict, &ChoiceHebb].map(|s| case::score(s, reply, Some(&gold), ""));
            assert_eq!(got, [Some(personamem), Some(strict), Some(hebb)], "{reply}");
        }
        let article = Gold::Choice("(a)".to_owned());
        assert_eq!(case::score(&Choice, "a fair point", Some(&article), ""), Some(1.0));
        assert_eq!(case::score(&ChoiceStrict, "a fair point", Some(&article), ""), Some(0.0));
    }

    #[test]
    fn hebb_personamem_parse_choice() {
        let Some(vectors) = reference::json("vectors/hebb-amplihack-precisionmembench.json") else { return };
        let cases = reference::list(&vectors["hebb_personamem_parse_choice"]["cases"]);
        assert_eq!(cases.len(), 5);
        for case in cases {
            let (reply, expected) = (reference::str(&case["reply"]), case["choice"].as_str());
            assert_eq!(last_option(reply).map(String::from).as_deref(), expected, "{case}");
            for option in ["a", "b", "c", "d"] {
                let score = case::score(&ChoiceHebb, reply, Some(&Gold::Choice(option.to_owned())), "");
                assert_eq!(score, Some(flag(expected == Some(option))), "{option}: {case}");
            }
        }
        assert_eq!(last_option("a person would say (z)"), Some('a'), "the article counts");
    }

    #[test]
    fn personamem_choice() {
        let Some(vectors) = reference::json("vectors/personamem-choice.json") else {
            return;
        };
        assert_eq!(reference::list(&vectors["cases"]).len(), 41);
        for case in reference::list(&vectors["cases"]) {
            let score = score(reference::str(&case["response"]), reference::str(&case["correct_answer"]));
            assert_eq!(score, case["score"].as_bool().map(|right| f64::from(u8::from(right))), "{case}");
        }
    }
}
