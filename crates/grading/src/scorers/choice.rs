//! Multiple choice by PersonaMem's rule.
//!
//! Read the text after the last `<final_answer>` (less a closing tag at its end), lower-cased: the letters a to d in
//! round brackets, or else those that stand alone. Right when they are exactly the gold's letter; if not, the same is
//! tried on the whole reply. (The article *a* counts as option a where nothing is in brackets: that is the rule.)

use bench_proto::dataset::Gold;

use super::{
    ScoreCase, Scorer,
    text::{is_space, trim},
};

/// See the module.
pub struct Choice;

impl Scorer for Choice {
    fn name(&self) -> &'static str {
        "choice"
    }

    fn description(&self) -> &'static str {
        "1 when the reply names exactly the right option, (a) to (d), by PersonaMem's rule; else 0"
    }

    fn version(&self) -> u32 {
        1
    }

    fn score(&self, case: &ScoreCase<'_>) -> Option<f64> {
        let (Gold::Choice(gold) | Gold::Text(gold)) = case.gold? else {
            return None;
        };
        let gold = Letters::only(gold)?;
        let reply = trim(case.prediction);
        let answer = trim(reply.rsplit("<final_answer>").next().unwrap_or(reply));
        let answer = answer.strip_suffix("</final_answer>").unwrap_or(answer);
        let right = Letters::named(answer) == gold || Letters::named(reply) == gold;
        Some(f64::from(u8::from(right)))
    }
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

    /// The letters that a reply names.
    fn named(reply: &str) -> Self {
        let chars: Vec<char> = reply.to_lowercase().chars().collect();
        let in_brackets =
            chars.windows(3).filter(|w| w[0] == '(' && w[2] == ')').fold(0, |set, w| set | Self::bit(w[1]));
        if in_brackets != 0 {
            return Self(in_brackets);
        }
        // word characters of Python's `re`, which counts numbers such as ² and no combining marks
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let alone = chars.split(|&c| !is_word(c)).filter(|word| word.len() == 1);
        Self(alone.fold(0, |set, word| set | Self::bit(word[0])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scorers::reference;

    fn score(prediction: &str, gold: &str) -> Option<f64> {
        let gold = Gold::Choice(gold.to_owned());
        Choice.score(&ScoreCase { prediction, gold: Some(&gold), category: "" })
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
        assert_eq!(score("(b)", "the second"), None);
        assert_eq!(score("(b)", ""), None);
        assert_eq!(Choice.score(&ScoreCase { prediction: "(b)", gold: None, category: "" }), None);
    }

    #[test]
    fn published_vectors() {
        let Some(vectors) = reference::json("vectors/personamem-choice.json") else {
            return;
        };
        for case in reference::list(&vectors["cases"]) {
            let score = score(reference::str(&case["response"]), reference::str(&case["correct_answer"]));
            assert_eq!(score, case["score"].as_bool().map(|right| f64::from(u8::from(right))), "{case}");
        }
    }
}
