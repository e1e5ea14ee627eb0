//! The order of events: the lines of an answer are matched with the expected items one after the other, then Kendall's tau-b says
//! how far both orders agree. How BEAM's questions on the order of events are graded.
//!
//! Each line is one call: which of the items that no line before it has taken does it mean, if any? So each call rests on those before
//! it. When all items are taken, what is left of the answer matches none and costs no call; lines beyond the first [`MOST_CALLS`]
//! are not looked at. The formula is that of [`beam_order`](crate::scorers::beam_order). It has no value where there is nothing to
//! order, as with one item that was told; an answer that tells nothing is worth 0, so that silence does not take a question out of
//! the mean.

use bench_proto::dataset::Gold;

use super::{
    Grade, JudgeCall, MOST_CALLS, Next, Program, Replies, Reply, ReplyForm,
    forms::{Match, in_two_digits},
    judge_input::{JudgeInput, Rubric, object_text, sample_input},
    lines::lines_of,
    told::{sample, system},
};
use crate::{prompts::Messages, scorers::beam_order::ordering};

const TASK: &str = "\
An assistant was asked in which order things came up in past conversations with a user. You get a JSON object with the question, a \
numbered list of things, and one line of the assistant's answer. Say which of the things this line is about.";

const RULES: &str = "\
- Judge the meaning, not the wording: a line may say more or less than the thing in the list, as long as both are the same event or \
subject.
- A line that is about several of them is about the one that it speaks of most. A line that only leads up to the answer, or is about \
something else, is about none.
- The number that a line itself may begin with says nothing.";

const REPLY: &str = r#"{"reasoning": "one sentence", "which": the number of the thing, or 0 if it is none of them}"#;

/// One call for each line of an answer, until all items are found.
#[derive(Debug)]
pub struct EventOrder;

/// The program.
pub static ORDERING: EventOrder = EventOrder;

fn call(no: u32, input: &JudgeInput<'_>, items: &[&str], line: &str) -> Option<JudgeCall> {
    let listed: Vec<String> = (1..).zip(items).map(|(number, item): (u32, _)| format!("{number}. {item}")).collect();
    let user = object_text([
        ("question", Some(input.question.trim().into())),
        ("things", Some(listed.into())),
        ("line", Some(line.into())),
    ]);
    let messages = Messages { system: system(TASK, &[RULES], REPLY), user };
    Some(JudgeCall { no, messages, form: Match::among(items.len())? })
}

/// The lines of an answer that say something.
fn told(answer: &str) -> impl Iterator<Item = &str> {
    answer.lines().map(str::trim).filter(|line| !line.is_empty())
}

impl Program for EventOrder {
    fn forms(&self) -> Vec<&'static dyn ReplyForm> {
        // of one thing: with more it is the same form
        Match::among(1).map(|form| form as &dyn ReplyForm).into_iter().collect()
    }

    /// As many as there are items: a good answer has a line for each.
    fn calls(&self, input: &JudgeInput<'_>) -> u32 {
        u32::try_from(lines_of(input.gold).len()).unwrap_or(u32::MAX).min(MOST_CALLS)
    }

    /// An answer that is there has a call for each of its lines, as long as items are left; one that is not may have any number of
    /// lines.
    fn most_calls(&self, input: &JudgeInput<'_>, answered: bool) -> u32 {
        let items = lines_of(input.gold).len();
        if items == 0 || items > MOST_CALLS as usize {
            return 0;
        }
        let lines = if answered { told(input.answer).count() } else { usize::MAX };
        u32::try_from(lines).unwrap_or(u32::MAX).min(MOST_CALLS)
    }

    fn next(&self, input: &JudgeInput<'_>, replies: &Replies) -> Next {
        let items = lines_of(input.gold);
        let none = |word: String| Next::Done(Grade { score: None, parts: Vec::new(), word });
        if items.len() > MOST_CALLS as usize {
            return none(format!("more than {MOST_CALLS} items"));
        }
        let mut told: Vec<&str> = told(input.answer).collect();
        if told.is_empty() && items.len() > 1 {
            return Next::Done(Grade { score: Some(0.0), parts: Vec::new(), word: "nothing was told".to_owned() });
        }
        let mut left: Vec<&str> = items.iter().map(String::as_str).collect();
        told.truncate(MOST_CALLS as usize);
        for (no, line) in (0..).zip(&mut told) {
            if left.is_empty() {
                break;
            }
            match replies.get(&no) {
                // a number beyond the list is none: its form does not let it through
                Some(Reply::Match(which)) => {
                    if let Some(place) = which.filter(|place| *place < left.len()) {
                        *line = left.remove(place);
                    }
                }
                _ => {
                    return call(no, input, &left, line)
                        .map_or_else(|| none("no item".to_owned()), |call| Next::Ask(vec![call]));
                }
            }
        }
        let expected: Vec<&str> = items.iter().map(String::as_str).collect();
        match ordering(&expected, &told).score() {
            Some(score) => Next::Done(Grade {
                score: Some(score),
                parts: Vec::new(),
                word: format!("order {}", in_two_digits(score)),
            }),
            None => none("nothing to order".to_owned()),
        }
    }

    fn sample(&self, rubric: Rubric<'_>) -> Messages {
        let gold = Gold::Rubric(vec!["first".to_owned(), "second".to_owned()]);
        let input = sample_input(rubric, &gold);
        let calls: Vec<JudgeCall> = call(0, &input, &["first", "second"], input.answer).into_iter().collect();
        sample(&calls, "(tau-b of the aligned lines, version 2)")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        judging::testing::{input, run},
        scorers::reference,
    };

    /// The grade where each line that is the text of an item means this item.
    fn grade(items: &[&str], answer: &str) -> (Grade, u32) {
        let gold = Gold::Rubric(items.iter().map(|item| (*item).to_owned()).collect());
        let (grade, calls) = run("judge-ordering", &input(&gold, answer), |call| {
            let shown: serde_json::Value = serde_json::from_str(&call.messages.user).expect("one object");
            let things = shown["things"].as_array().expect("a list");
            let is_it = |thing: &serde_json::Value| {
                thing.as_str().and_then(|thing| thing.split_once(". ")).map(|(_, text)| text) == shown["line"].as_str()
            };
            let which = things.iter().position(is_it).map_or(0, |place| place + 1);
            format!(r#"{{"reasoning": "x", "which": {which}}}"#)
        });
        (grade, calls.len() as u32)
    }

    #[test]
    fn vectors_beam_ordering() {
        let Some(vectors) = reference::json("vectors/beam-ordering.json") else { return };
        let cases = reference::list(&vectors["cases"]);
        assert_eq!(cases.len(), 13);
        for case in cases {
            let [items, told] = ["reference", "system_aligned"]
                .map(|key| reference::list(&case[key]).iter().map(reference::str).collect::<Vec<_>>());
            if told.contains(&"") {
                continue; // a line of nothing is none here; the formula itself is held to this case too
            }
            assert_eq!(grade(&items, &told.join("\n")).0.score, case["tau_norm"].as_f64(), "{case}");
        }
    }

    #[test]
    fn lines_take_items_one_after_the_other() {
        let of = |answer: &str| grade(&["a", "b", "c"], answer);
        assert_eq!(
            of("a\n\n b \nc"),
            (Grade { score: Some(1.0), parts: Vec::new(), word: "order 1.00".to_owned() }, 3)
        );
        assert_eq!((of("c\nb\na").0.score, of("c\nb\na\nx\ny").1), (Some(0.0), 3), "all items are taken");
        assert_eq!(of("").0, Grade { score: Some(0.0), parts: Vec::new(), word: "nothing was told".to_owned() });
        assert_eq!(grade(&["a"], "a").0.score, None, "nothing to order");
        assert_eq!(grade(&["a"], "x").0.score, Some(0.0));
        let long = "x\n".repeat(100_000);
        assert_eq!(of(&long).1, MOST_CALLS);
        let items: Vec<String> = (0..=MOST_CALLS).map(|item| item.to_string()).collect();
        let items: Vec<&str> = items.iter().map(String::as_str).collect();
        assert_eq!(
            grade(&items, "1").0,
            Grade { score: None, parts: Vec::new(), word: "more than 200 items".to_owned() }
        );
    }

    #[test]
    fn a_line_sees_only_what_is_left() {
        let gold = Gold::Rubric(vec!["a".to_owned(), "b".to_owned(), "c".to_owned()]);
        let replies = Replies::from([(0, Reply::Match(Some(1)))]);
        let Next::Ask(calls) = ORDERING.next(&input(&gold, "1. second\n2. first"), &replies) else {
            panic!("one more")
        };
        assert_eq!((calls.len(), calls[0].no), (1, 1));
        assert!(calls[0].messages.user.contains(r#"["1. a","2. c"]"#), "{}", calls[0].messages.user);
        assert!(calls[0].form.read(r#"{"reasoning": "x", "which": 3}"#).is_err(), "two are left");
    }

    #[test]
    fn an_estimate_bounds_the_calls_of_any_answer() {
        let gold = Gold::Rubric(["a", "b", "c"].map(str::to_owned).to_vec());
        let most = |answer: &str, answered| ORDERING.most_calls(&input(&gold, answer), answered);
        assert_eq!(most("it was not mentioned", false), MOST_CALLS);
        assert_eq!((most(&"x\n".repeat(60), true), most("a\nb", true), most("", true)), (60, 2, 0));
        let none = Gold::Rubric(Vec::new());
        assert_eq!(ORDERING.most_calls(&input(&none, "x"), false), 0);
    }

    proptest! {
        #[test]
        fn every_answer_comes_to_an_end(items in prop::collection::vec("[a-d]{0,2}", 0..6), answer in "[a-d\n]{0,30}") {
            let items: Vec<&str> = items.iter().map(String::as_str).collect();
            let (grade, calls) = grade(&items, &answer);
            prop_assert!(grade.score.is_none_or(|score| (0.0..=1.0).contains(&score)) && calls <= MOST_CALLS);
            let gold = Gold::Rubric(items.iter().map(|item| (*item).to_owned()).collect());
            let most = ORDERING.most_calls(&input(&gold, &answer), true);
            prop_assert!(calls <= most, "{calls} calls of at most {most}");
        }
    }
}
