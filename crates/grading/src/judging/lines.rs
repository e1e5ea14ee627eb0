//! One call for each line of what is expected, and their mean: how BEAM's answers are graded.
//!
//! The calls do not rest on each other. A line of nothing is none. What the authors' program does by mistake can be done
//! here too: it never puts the question into the prompt, and it cuts one half to 0 when it adds up.

use std::num::NonZeroU32;

use bench_proto::dataset::Gold;
use serde_json::Value;

use super::{
    Grade, JudgeCall, MOST_CALLS, Next, Program, Replies, Reply, ReplyForm, forms,
    judge_input::{JudgeInput, Rubric, object_text, sample_input},
    told::{sample, system},
};
use crate::prompts::Messages;

const TASK: &str = "\
You grade the answers of an assistant that was asked about past conversations with a user. You get a JSON object with the question, \
one criterion for good answers, and the assistant's answer. Say how far the answer meets this criterion.";

const TASK_UNASKED: &str = "\
You grade the answers of an assistant that was asked about past conversations with a user. You get a JSON object with one criterion \
for good answers, and the assistant's answer. Say how far the answer meets this criterion.";

const RULES: &str = "\
- Judge this criterion alone: what else the answer holds or lacks counts neither for it nor against it.
- Judge the meaning, not the wording, except where the criterion is about the wording or the form.
- A criterion may say what the answer should contain, how it should be given, or that something is not known: it is met by an answer \
that is so.
- 1: the answer meets the criterion fully. 0.5: it meets a part of it, or all of it with a small mistake. 0: it does not meet it, \
contradicts it, is only about the same subject, or is empty.";

const REPLY: &str = r#"{"reasoning": "one or two sentences", "score": 0, 0.5 or 1}"#;

/// One call for each line.
#[derive(Debug)]
pub struct Lines {
    /// The judge is shown the question.
    asks: bool,
    /// One half counts as one half, not as 0.
    halves: bool,
}

/// The program of lines as it should be.
pub static LINES: Lines = Lines { asks: true, halves: true };
/// The program in which one half counts as 0.
pub static WHOLE: Lines = Lines { asks: true, halves: false };
/// The program in which the judge does not see the question.
pub static UNASKED: Lines = Lines { asks: false, halves: true };
/// The authors' own program: no question is seen, and one half counts as 0.
pub static UNASKED_WHOLE: Lines = Lines { asks: false, halves: false };

/// The lines of what is expected: those of a list of criteria, else the whole of it as one.
pub(super) fn lines_of(gold: Option<&Gold>) -> Vec<String> {
    let lines = match gold {
        Some(Gold::Rubric(lines)) => lines.clone(),
        Some(Gold::AnyOf(texts)) if texts.len() > 1 => {
            vec![format!("The answer states what one of these states: {}", texts.join("; "))]
        }
        Some(Gold::Abstain) | None => vec!["The answer says that the information is not available.".to_owned()],
        Some(Gold::Unanswerable(why)) => vec![format!("The answer says that the information is not available: {why}")],
        Some(gold) => vec![gold.text()],
    };
    lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

impl Lines {
    fn call(&self, no: u32, input: &JudgeInput<'_>, line: &str) -> JudgeCall {
        let user = object_text([
            ("question", self.asks.then(|| input.question.trim().into())),
            ("asked_at", input.asked_at.filter(|_| self.asks).map(Value::from)),
            ("criterion", Some(line.into())),
            ("answer", Some(input.answer.trim().into())),
        ]);
        let system = system(if self.asks { TASK } else { TASK_UNASKED }, &[RULES], REPLY);
        JudgeCall { no, messages: Messages { system, user }, form: &forms::Criterion }
    }

    fn counts(&self, grade: f64) -> f64 {
        if self.halves { grade } else { grade.floor() }
    }
}

impl Program for Lines {
    fn forms(&self) -> Vec<&'static dyn ReplyForm> {
        vec![&forms::Criterion]
    }

    fn calls(&self, input: &JudgeInput<'_>) -> u32 {
        u32::try_from(lines_of(input.gold).len()).unwrap_or(u32::MAX).min(MOST_CALLS)
    }

    fn next(&self, input: &JudgeInput<'_>, replies: &Replies) -> Next {
        let lines = lines_of(input.gold);
        let count = u32::try_from(lines.len()).ok().filter(|count| *count <= MOST_CALLS).and_then(NonZeroU32::new);
        let Some(count) = count else {
            let word = if lines.is_empty() { "no line".to_owned() } else { format!("more than {MOST_CALLS} lines") };
            return Next::Done(Grade { score: None, parts: Vec::new(), word });
        };
        let (mut sum, mut met, mut missing) = (0.0, 0, Vec::new());
        for (no, line) in (0..).zip(&lines) {
            match replies.get(&no) {
                Some(Reply::Score { value, .. }) => {
                    sum += self.counts(*value);
                    met += u32::from(*value == 1.0);
                }
                _ => missing.push(self.call(no, input, line)),
            }
        }
        if !missing.is_empty() {
            return Next::Ask(missing);
        }
        Next::Done(Grade {
            score: Some(sum / f64::from(count.get())),
            parts: Vec::new(),
            word: format!("{met} of {count} met"),
        })
    }

    fn sample(&self, rubric: Rubric<'_>) -> Messages {
        let gold = Gold::Rubric(vec!["first".to_owned(), "second".to_owned()]);
        let input = sample_input(rubric, &gold);
        let calls: Vec<JudgeCall> =
            (0..).zip(lines_of(input.gold)).map(|(no, line)| self.call(no, &input, &line)).collect();
        sample(&calls, if self.halves { "(the mean)" } else { "(the mean; one half counts as 0)" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judging::testing::{input, run};

    fn rubric(lines: &[&str]) -> Gold {
        Gold::Rubric(lines.iter().map(|line| (*line).to_owned()).collect())
    }

    /// Grades by these scores of the lines.
    fn grade(name: &str, scores: &[f64]) -> (Option<f64>, Vec<JudgeCall>) {
        let lines: Vec<String> = (0..scores.len()).map(|line| format!("line {line}")).collect();
        let gold = Gold::Rubric(lines);
        let reply = |call: &JudgeCall| format!(r#"{{"reasoning": "x", "score": {}}}"#, scores[call.no as usize]);
        let (grade, calls) = run(name, &input(&gold, "an answer"), reply);
        (grade.score, calls)
    }

    #[test]
    fn a_question_is_the_mean_of_its_lines() {
        assert_eq!(grade("judge-lines", &[1.0, 0.5, 0.0]).0, Some(0.5));
        assert_eq!(grade("judge-lines", &[0.5]).0, Some(0.5));
        let gold = rubric(&["one", " ", "two"]);
        let case = input(&gold, "x");
        assert_eq!(LINES.calls(&case), 2);
        let (grade, calls) = run("judge-lines", &case, |_| r#"{"reasoning": "x", "score": 1}"#.to_owned());
        assert_eq!((grade.word.as_str(), calls.len()), ("2 of 2 met", 2));
    }

    #[test]
    fn the_mistakes_of_the_authors_are_switches() {
        assert_eq!(grade("judge-lines-whole", &[1.0, 0.5]).0, Some(0.5), "one half is 0");
        assert_eq!(grade("judge-lines-unasked", &[1.0, 0.5]).0, Some(0.75));
        assert_eq!(grade("judge-lines-unasked-whole", &[1.0, 0.5, 0.5]).0, Some(1.0 / 3.0));
        let asks = |name: &str| {
            let (_, calls) = grade(name, &[1.0]);
            let told = &calls[0].messages;
            assert_eq!(told.user.contains("What came first?"), told.system.contains("the question"), "{name}");
            told.user.contains("What came first?")
        };
        let names = ["judge-lines", "judge-lines-whole", "judge-lines-unasked", "judge-lines-unasked-whole"];
        assert_eq!(names.map(asks), [true, true, false, false]);
    }

    #[test]
    fn only_what_is_missing_is_asked_again() {
        let gold = rubric(&["one", "two", "three"]);
        let met = Reply::Score { value: 1.0, parts: Vec::new(), word: String::new() };
        let Next::Ask(calls) = LINES.next(&input(&gold, "x"), &Replies::from([(1, met)])) else { panic!("two more") };
        assert_eq!(calls.iter().map(|call| call.no).collect::<Vec<_>>(), [0, 2]);
        assert!(calls[1].messages.user.contains("three"));
    }

    #[test]
    fn what_has_no_lines_or_too_many_has_no_grade() {
        let many = Gold::Rubric((0..=MOST_CALLS).map(|line| line.to_string()).collect());
        for (gold, word) in [(rubric(&[" "]), "no line"), (many, "more than 200 lines")] {
            let (grade, calls) = run("judge-lines", &input(&gold, "x"), |_| unreachable!());
            assert_eq!((grade.score, grade.word.as_str(), calls.len()), (None, word, 0));
        }
        for gold in [Gold::Text("x".to_owned()), Gold::Abstain, Gold::Unanswerable("y".to_owned())] {
            assert_eq!(LINES.calls(&input(&gold, "x")), 1, "{gold:?}");
        }
        let any = Gold::AnyOf(vec!["an elm".to_owned(), "a beech".to_owned()]);
        assert_eq!(lines_of(Some(&any)), ["The answer states what one of these states: an elm; a beech"]);
    }
}
