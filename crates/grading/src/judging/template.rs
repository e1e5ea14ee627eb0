//! A prompt that is somebody else's, word for word: one message to the model, one call, and the reply as they read it.
//!
//! The words come with the run ([`OwnRubric::parser`](bench_proto::profile::OwnRubric::parser)), never with this build. In them stand
//! `{question}`, `{answer}` (what is expected) and `{response}` (what was answered), each once, but for a rubric that hides what
//! is expected; and `{evidence}` (the messages that it rests on, one a line) where it is to be shown. Their places are taken by the
//! texts as they are.

use std::{fmt::Write as _, sync::LazyLock};

use super::{
    JudgeCall, Next, Program, Replies, ReplyForm,
    judge_input::{JudgeInput, Rubric, sample_input},
    lenient::{LENIENT, Lenient},
    told::sample,
};
use crate::prompts::Messages;

/// The places of a template, in the order in which [`render`] takes their texts.
pub const PLACES: [&str; 4] = ["{question}", EXPECTED, "{response}", EVIDENCE];
/// The place of what is expected.
const EXPECTED: &str = "{answer}";
/// The place of the messages that it rests on.
const EVIDENCE: &str = "{evidence}";

/// One call by a rubric whose rules are the whole prompt.
#[derive(Debug)]
pub struct Template {
    form: &'static Lenient,
}

static TEMPLATES: LazyLock<Vec<Template>> = LazyLock::new(|| LENIENT.iter().map(|form| Template { form }).collect());

/// The program whose replies are read by the lenient form of a name.
#[must_use]
pub fn read_by(parser: &str) -> Option<&'static Template> {
    TEMPLATES.iter().find(|template| template.form.name() == parser)
}

/// What is wrong with a template, if anything: a place is missing, or stands more than once. One that `hides` what is expected has
/// no place for it, nor for the evidence, which others may leave out.
///
/// # Errors
/// The place, for people.
pub fn check(template: &str, hides: bool) -> Result<(), String> {
    PLACES.into_iter().try_for_each(|place| match template.matches(place).count() {
        0 if hides && place == EXPECTED => Ok(()),
        0 if place == EVIDENCE => Ok(()),
        _ if hides && [EXPECTED, EVIDENCE].contains(&place) => Err(format!("{place} shows what is to be hidden")),
        1 => Ok(()),
        0 => Err(format!("{place} is missing")),
        _ => Err(format!("{place} stands more than once")),
    })
}

/// A template with these texts in its places. Places that stand in a text are none.
#[must_use]
pub fn render(template: &str, texts: [&str; 4]) -> String {
    let (mut out, mut rest) =
        (String::with_capacity(template.len() + texts.map(str::len).iter().sum::<usize>()), template);
    while let Some((at, place, text)) = first_place(rest, texts) {
        let _ = write!(out, "{}{text}", &rest[..at]);
        rest = &rest[at + place.len()..];
    }
    out + rest
}

fn first_place<'a>(rest: &str, texts: [&'a str; 4]) -> Option<(usize, &'static str, &'a str)> {
    let found = PLACES.into_iter().zip(texts).filter_map(|(place, text)| Some((rest.find(place)?, place, text)));
    found.min_by_key(|(at, ..)| *at)
}

impl Template {
    fn call(&self, input: &JudgeInput<'_>) -> JudgeCall {
        let gold = input.gold.map(bench_proto::dataset::Gold::text).unwrap_or_default();
        let rules = input.rubric.rules();
        let evidence =
            input.evidence.filter(|_| rules.contains(EVIDENCE)).map(|evidence| evidence.messages().join("\n"));
        let user = render(rules, [input.question, &gold, input.answer, &evidence.unwrap_or_default()]);
        JudgeCall { no: 0, messages: Messages { system: String::new(), user }, form: self.form }
    }
}

impl Program for Template {
    fn forms(&self) -> Vec<&'static dyn ReplyForm> {
        vec![self.form]
    }

    fn next(&self, input: &JudgeInput<'_>, replies: &Replies) -> Next {
        Next::graded_or_ask(replies, || self.call(input))
    }

    fn sample(&self, rubric: Rubric<'_>) -> Messages {
        let gold = bench_proto::dataset::Gold::Text("8 May 2023".to_owned());
        sample(&[self.call(&sample_input(rubric, &gold))], "(the grade)")
    }
}

#[cfg(test)]
mod tests {
    use bench_proto::{
        dataset::Gold,
        profile::{OwnRubric, Profile},
    };
    use proptest::prelude::*;

    use super::*;
    use crate::judging::rubric::find;

    #[test]
    fn somebody_elses_words_are_one_message_and_read_as_they_read() {
        let mut profile = Profile::implied();
        let rules = "Is {response} right?\nQ: {question} A: {answer}".to_owned();
        let own = OwnRubric { rules, parser: Some("yes-anywhere".to_owned()), ..OwnRubric::default() };
        profile.rubrics.insert("judge-theirs".to_owned(), own);
        let rubric = find(&profile, "judge-theirs").expect("is known");
        let gold = Gold::Number(5.into());
        let input = JudgeInput {
            rubric,
            question: " {answer}? ",
            asked_at: Some("today"),
            gold: Some(&gold),
            evidence: None,
            answer: "{question}",
        };
        let Next::Ask(calls) = rubric.program.next(&input, &Replies::new()) else { panic!("nothing was asked") };
        let told = Messages { system: String::new(), user: "Is {question} right?\nQ:  {answer}?  A: 5".to_owned() };
        assert_eq!((&calls[0].messages, calls[0].form.max_tokens()), (&told, 10));
        let read = calls[0].form.read("Yesterday").expect("reads everything");
        let Next::Done(grade) = rubric.program.next(&input, &Replies::from([(0, read)])) else {
            panic!("all was asked")
        };
        assert_eq!(grade.score, Some(1.0));
        profile.by_gold.criteria = Some("judge-theirs".to_owned());
        assert_eq!(crate::judging::check(&profile, ["temporal"], true), Ok(()));
        let own = OwnRubric {
            rules: "{question}".to_owned(),
            parser: Some("yes-anywhere".to_owned()),
            ..OwnRubric::default()
        };
        profile.rubrics.insert("judge-theirs".to_owned(), own);
        let error = crate::judging::check(&profile, ["temporal"], true).expect_err("places are missing");
        insta::assert_snapshot!(error, @"the rubric 'judge-theirs' in the dataset's profile is a whole prompt, and {answer} is missing");
        profile.rubrics.insert(
            "judge-theirs".to_owned(),
            OwnRubric { parser: Some("of tomorrow".to_owned()), ..OwnRubric::default() },
        );
        assert!(find(&profile, "judge-theirs").is_err(), "a parser that this build does not have");
    }

    #[test]
    fn each_place_stands_once() {
        assert_eq!(check("{question}{answer}{response}", false), Ok(()));
        assert_eq!(check("{question}{answer}", false), Err("{response} is missing".to_owned()));
        let twice = check("{question}{question}{answer}{response}", false);
        assert_eq!(twice, Err("{question} stands more than once".to_owned()));
        assert_eq!(check("{question}{response}", true), Ok(()));
        assert_eq!(check("{evidence}{question}{answer}{response}", false), Ok(()));
        assert!(check("{evidence}{evidence}{question}{answer}{response}", false).is_err());
        assert!(check("{evidence}{question}{response}", true).is_err());
        assert!(check("{question}{answer}{response}", true).is_err() && check("{question}{response}", false).is_err());
    }

    proptest! {
        #[test]
        fn texts_stand_as_they_are(texts in prop::array::uniform4("\\PC{0,9}|\\{(question|answer|response|evidence)\\}")) {
            let [question, answer, response, evidence] = &texts;
            let rendered = render("a{response}b{question}c{answer}d{evidence}", [question, answer, response, evidence]);
            prop_assert_eq!(rendered, format!("a{response}b{question}c{answer}d{evidence}"));
        }
    }
}
