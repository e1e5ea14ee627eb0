//! One call, one word.

use super::{
    Grade, JudgeCall, Next, Program, Replies, Reply, ReplyForm,
    judge_input::{JudgeInput, Rubric, judge_messages, sample},
};
use crate::prompts::Messages;

/// One call by the rubric's own text, whose reply is the grade.
#[derive(Debug)]
pub struct Single {
    /// The form of the reply.
    pub form: &'static dyn ReplyForm,
}

/// The binary verdict.
pub static VERDICT: Single = Single { form: &super::reply::Verdict };

impl Program for Single {
    fn forms(&self) -> Vec<&'static dyn ReplyForm> {
        vec![self.form]
    }

    fn next(&self, input: &JudgeInput<'_>, replies: &Replies) -> Next {
        match replies.get(&0) {
            Some(Reply::Score { value, parts, word }) => Next::Done(Grade {
                score: Some(*value),
                parts: parts.iter().map(|(name, score)| ((*name).to_owned(), *score)).collect(),
                word: word.clone(),
            }),
            _ => Next::Ask(vec![JudgeCall { no: 0, messages: judge_messages(input), form: self.form }]),
        }
    }

    fn sample(&self, rubric: Rubric<'_>) -> Messages {
        sample(rubric)
    }
}

#[cfg(test)]
mod tests {
    use bench_proto::{dataset::GoldRecord, profile::Profile};

    use super::*;
    use crate::judging::rubric::rubric_of;

    #[test]
    fn a_verdict_is_one_call() {
        let (profile, gold) = (Profile::implied(), GoldRecord::default());
        let rubric = rubric_of(&profile, "temporal", Some(&gold)).expect("there is one");
        let input = JudgeInput {
            rubric,
            question: "When?",
            asked_at: None,
            gold: Some(&gold.gold),
            evidence: None,
            answer: "May",
        };
        let program = rubric.program;
        let Next::Ask(calls) = program.next(&input, &Replies::new()) else { panic!("nothing was asked yet") };
        assert_eq!((calls.len(), calls[0].no, program.calls(&input)), (1, 0, 1));
        assert_eq!(calls[0].messages, judge_messages(&input));
        let read = calls[0].form.read(r#"{"reasoning": "same", "verdict": "correct"}"#).expect("reads");
        let Next::Done(grade) = program.next(&input, &Replies::from([(0, read)])) else { panic!("all was asked") };
        assert_eq!(grade, Grade { score: Some(1.0), parts: Vec::new(), word: "correct".to_owned() });
        assert!(calls[0].form.read("correct").is_err());
    }
}
