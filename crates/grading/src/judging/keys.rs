//! An answer as judges get it: by the published key, and where that is known to be wrong by the corrected one as well, in one vote.

use bench_proto::{
    dataset::{BankContent, GoldRecord, Question},
    label_fixes::CORRECTED,
    profile::Profile,
};

use super::{Grade, JudgeCall, MOST_CALLS, Next, Replies, evidence::Evidence, judge_input::JudgeInput};
use crate::prompts::ProfileError;

/// What a vote is cast on.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    published: JudgeInput<'a>,
    /// The question with the corrected answer, where there is one.
    corrected: Option<JudgeInput<'a>>,
}

impl<'a> Case<'a> {
    /// An answer to a question, by the rubric that a profile has for it; what the bank holds of the evidence is shown where the
    /// rubric asks for it.
    ///
    /// # Errors
    /// As [`JudgeInput::by_profile`].
    pub fn by_profile(
        profile: &'a Profile,
        question: &'a Question,
        gold: Option<&'a GoldRecord>,
        answer: &'a str,
        bank: &'a BankContent,
    ) -> Result<Self, ProfileError> {
        let evidence = gold.map(|gold| Evidence { bank, gold });
        let published = JudgeInput { evidence, ..JudgeInput::by_profile(profile, question, gold, answer)? };
        let fixed = gold.and_then(|record| record.fix.as_ref()?.gold.as_ref());
        let corrected = fixed.map(|gold| JudgeInput { gold: Some(gold), ..published });
        // a vote has room for so many calls, and both keys have half of it
        let fits = |input: &JudgeInput<'_>| input.rubric.program.calls(input) <= MOST_CALLS / 2;
        Ok(Self { published, corrected: corrected.filter(|corrected| fits(&published) && fits(corrected)) })
    }

    /// Calls of one vote, as far as they are known.
    #[must_use]
    pub fn calls(&self) -> u32 {
        let of = |input: &JudgeInput<'_>| input.rubric.program.calls(input);
        of(&self.published) + self.corrected.as_ref().map_or(0, of)
    }

    /// The most calls that one vote can be; as [`Program::most_calls`](super::Program::most_calls).
    #[must_use]
    pub fn most_calls(&self, answered: bool) -> u32 {
        let of = |input: &JudgeInput<'_>| input.rubric.program.most_calls(input, answered);
        of(&self.published) + self.corrected.as_ref().map_or(0, of)
    }

    /// The next calls, or the grade: that by the published key, with the other beside it.
    #[must_use]
    pub fn next(&self, replies: &Replies) -> Next {
        let program = self.published.rubric.program;
        let Some(corrected) = &self.corrected else { return program.next(&self.published, replies) };
        // calls by the published key have the even numbers
        let of = |odd: u32| -> Replies {
            let own = replies.iter().filter(|(no, _)| *no % 2 == odd);
            own.map(|(no, reply)| (no / 2, reply.clone())).collect()
        };
        let numbered = |calls: Vec<JudgeCall>, odd: u32| {
            calls.into_iter().map(move |call| JudgeCall { no: call.no * 2 + odd, ..call }).collect::<Vec<_>>()
        };
        match (program.next(&self.published, &of(0)), program.next(corrected, &of(1))) {
            (Next::Done(published), Next::Done(corrected)) => {
                let beside = corrected.score.map(|score| (CORRECTED.to_owned(), score));
                Next::Done(Grade { parts: published.parts.into_iter().chain(beside).collect(), ..published })
            }
            (Next::Ask(published), Next::Ask(corrected)) => {
                Next::Ask(numbered(published, 0).into_iter().chain(numbered(corrected, 1)).collect())
            }
            (Next::Ask(calls), Next::Done(_)) => Next::Ask(numbered(calls, 0)),
            (Next::Done(_), Next::Ask(calls)) => Next::Ask(numbered(calls, 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use bench_proto::{dataset::Gold, label_fixes::LabelFix};

    use super::*;

    fn gold(fix: Option<LabelFix>) -> GoldRecord {
        let mut record = GoldRecord { gold: Gold::Text("Sunday".to_owned()), ..GoldRecord::default() };
        record.annotate(fix.as_ref());
        record
    }

    #[test]
    fn a_known_mistake_of_the_key_is_judged_by_both_keys_in_one_vote() {
        let profile = Profile::implied();
        let question = Question { category: "temporal".to_owned(), text: "When?".to_owned(), ..Question::default() };
        let fix = LabelFix { kind: "temporal-error".to_owned(), gold: Some(Gold::Text("Saturday".to_owned())) };
        let bank = BankContent::default();
        let (sound, wrong) = (gold(None), gold(Some(fix)));
        let case = |gold| Case::by_profile(&profile, &question, Some(gold), "on Saturday", &bank).expect("is graded");
        let asked = |case: &Case<'_>| match case.next(&Replies::new()) {
            Next::Ask(calls) => calls,
            Next::Done(grade) => panic!("{grade:?}"),
        };
        assert_eq!((case(&sound).calls(), asked(&case(&sound)).len()), (1, 1), "as without label fixes");
        let both = case(&wrong);
        let calls = asked(&both);
        assert_eq!((both.calls(), calls.iter().map(|call| call.no).collect::<Vec<_>>()), (2, vec![0, 1]));
        assert_eq!(calls[0].messages, asked(&case(&sound))[0].messages, "the published key is asked as ever");
        assert!(calls[0].messages.user.contains("Sunday") && calls[1].messages.user.contains("\"Saturday\""));
        let reply = |no: usize, verdict: &str| {
            let read = calls[no].form.read(&format!(r#"{{"reasoning": "x", "verdict": "{verdict}"}}"#));
            (no as u32, read.expect("reads"))
        };
        let Next::Ask(rest) = both.next(&Replies::from([reply(0, "incorrect")])) else { panic!("one is missing") };
        assert_eq!(rest.iter().map(|call| call.no).collect::<Vec<_>>(), [1]);
        let replies = Replies::from([reply(0, "incorrect"), reply(1, "correct")]);
        let Next::Done(grade) = both.next(&replies) else { panic!("all was asked") };
        assert_eq!(
            (grade.score, grade.parts, grade.word.as_str()),
            (Some(0.0), vec![("corrected".to_owned(), 1.0)], "incorrect")
        );
    }
}
