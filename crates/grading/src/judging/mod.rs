//! How a judge grades: a small program of calls to a model. From what is graded and the replies so far follow the next calls,
//! or the grade; all of it is pure, so a program goes on from stored replies wherever it was stopped.
//!
//! Most rubrics are one call with one word ([`single`]). Others ask once per line of what is expected, or in calls that rest on
//! each other. To add one, copy the smallest file here, and name it in a line of [`rubric`].

pub mod dimensions;
pub mod evidence;
pub mod forms;
pub mod graded;
pub mod judge_input;
pub mod keys;
pub mod lenient;
pub mod lines;
pub mod official;
pub mod ordering;
pub mod reflect;
pub mod reply;
pub mod rubric;
pub mod single;
pub mod template;
mod told;
pub mod verdict;

use std::collections::BTreeMap;

use bench_proto::metric::MetricSpec;

use self::judge_input::{JudgeInput, Rubric};
pub use self::{
    reply::{Reply, ReplyError, ReplyForm},
    rubric::{check, texts},
};
use crate::prompts::Messages;

/// The most calls of one vote on one answer: answers are others' texts, and a program asks by their lines.
pub const MOST_CALLS: u32 = 200;

/// A call that a judge is to make.
#[derive(Debug, Clone)]
pub struct JudgeCall {
    /// Its number within the vote, below [`MOST_CALLS`]: the same call has the same number whenever the program runs.
    pub no: u32,
    /// What the model is told.
    pub messages: Messages,
    /// The form that its reply must have.
    pub form: &'static dyn ReplyForm,
}

/// What a vote says of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Grade {
    /// The score in [0, 1]; none where there is nothing to measure.
    pub score: Option<f64>,
    /// Scores by the further [metrics](Program::metrics) of the program, those that were measured.
    pub parts: Vec<(String, f64)>,
    /// The verdict in a word or two, for people.
    pub word: String,
}

/// What a program wants next.
#[derive(Debug, Clone)]
pub enum Next {
    /// Replies to these calls, which do not rest on each other; never one that has been answered.
    Ask(Vec<JudgeCall>),
    /// Nothing.
    Done(Grade),
}

impl Next {
    /// Of a program of one call: the grade that its reply is, or the call while there is none.
    fn graded_or_ask(replies: &Replies, call: impl FnOnce() -> JudgeCall) -> Self {
        match replies.get(&0) {
            Some(Reply::Score { value, word, .. }) => {
                Self::Done(Grade { score: Some(*value), parts: Vec::new(), word: word.clone() })
            }
            _ => Self::Ask(vec![call()]),
        }
    }
}

/// Replies by the number of their call.
pub type Replies = BTreeMap<u32, Reply>;

/// How many calls grade an answer, what each is told, and what their replies come to.
pub trait Program: std::fmt::Debug + Send + Sync {
    /// What is measured beside the grade itself, without the judge's name: `hallucination`.
    fn metrics(&self) -> Vec<MetricSpec> {
        Vec::new()
    }

    /// The forms of the replies that it asks for.
    fn forms(&self) -> Vec<&'static dyn ReplyForm>;

    /// Calls of one vote, as far as they are known before there is an answer; a vote of one is stored in one step.
    fn calls(&self, _input: &JudgeInput<'_>) -> u32 {
        1
    }

    /// The most calls that one vote can be. `answered`: the answer is the one that will be graded, and no guess of its length.
    fn most_calls(&self, input: &JudgeInput<'_>, answered: bool) -> u32 {
        let _ = answered;
        self.calls(input)
    }

    /// The next calls, or the grade. Equal input makes equal calls.
    fn next(&self, input: &JudgeInput<'_>, replies: &Replies) -> Next;

    /// All that it says to a model of a fixed sample, forms of replies included: what its hash is of.
    fn sample(&self, rubric: Rubric<'_>) -> Messages;
}

#[cfg(test)]
mod tests {
    use bench_proto::facts::median;

    use crate::scorers::reference;

    /// Votes are put together as amplihack does, but for failed ones: those are missing here and 0 there.
    #[test]
    fn vectors_amplihack_multi_vote_median() {
        let Some(all) = reference::json("vectors/hebb-amplihack-precisionmembench.json") else { return };
        let cases = reference::list(&all["amplihack_multi_vote_median"]["cases"]);
        assert_eq!(cases.len(), 5);
        for case in cases {
            let votes = reference::list(&case["votes"]);
            let published = reference::number(&case["median"]);
            // theirs is rounded
            let is_published = |votes: Vec<f64>| median(votes).is_some_and(|median| (median - published).abs() < 1e-9);
            let theirs = votes.iter().map(|vote| vote.as_f64().unwrap_or(0.0)).collect();
            assert!(is_published(theirs), "{case}");
            let ours: Vec<f64> = votes.iter().filter_map(serde_json::Value::as_f64).collect();
            let failed = votes.len() - ours.len();
            assert_eq!(is_published(ours), failed == 0, "{case}");
        }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! Running programs in tests.

    use bench_proto::{dataset::Gold, profile::Profile};

    use super::*;
    use crate::judging::rubric::find;

    /// An answer to a question, without a rubric that matters.
    pub(crate) fn input<'a>(gold: &'a Gold, answer: &'a str) -> JudgeInput<'a> {
        static PROFILE: std::sync::LazyLock<Profile> = std::sync::LazyLock::new(Profile::implied);
        let rubric = find(&PROFILE, "judge-single").expect("is known");
        JudgeInput { rubric, question: "What came first?", asked_at: None, gold: Some(gold), evidence: None, answer }
    }

    /// The grade by a rubric of this build, and the calls that it took.
    pub(crate) fn run(
        rubric: &str,
        input: &JudgeInput<'_>,
        reply: impl Fn(&JudgeCall) -> String,
    ) -> (Grade, Vec<JudgeCall>) {
        let profile = Profile::implied();
        let program = find(&profile, rubric).expect("is known").program;
        let (mut replies, mut made) = (Replies::new(), Vec::new());
        loop {
            match program.next(input, &replies) {
                Next::Done(grade) => return (grade, made),
                Next::Ask(calls) => {
                    assert!(!calls.is_empty(), "nothing is asked and nothing is done");
                    for call in calls {
                        assert!(call.no < MOST_CALLS, "{call:?}");
                        let read = call.form.read(&reply(&call)).expect("the test's reply fits");
                        assert_eq!(replies.insert(call.no, read), None, "call {} is asked twice", call.no);
                        made.push(call);
                    }
                }
            }
        }
    }
}
