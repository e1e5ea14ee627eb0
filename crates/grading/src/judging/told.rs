//! What programs tell a judge: instructions of several parts, and a JSON object that holds what is graded.

use bench_proto::dataset::Gold;
use serde_json::Value;

use super::{
    JudgeCall, ReplyForm,
    judge_input::{DATA, JudgeInput, object_text},
};
use crate::prompts::Messages;

/// The expected answer as rubrics show it that grade golds of every kind: how it is to be read, and its text.
pub(super) fn expected(gold: Option<&Gold>) -> (&'static str, Option<Value>) {
    const REFERENCE: &str = "- The reference is right, even where you know or believe otherwise.";
    const CRITERIA: &str = "- The reference lists what a right answer holds. Each of its lines counts alike.";
    const ANY_OF: &str = "\
- The reference holds one text a line, each of which is right: an answer that states what one of them states lacks nothing. It is \
right, even where you know or believe otherwise.";
    const NOTHING: &str = "\
- The conversations do not hold the answer to this question. An answer that says in any words that the information is not \
available, or that the question rests on a false assumption, is right; one that states an answer as if it were known is wrong.";
    const EXPLAINED: &str = "\
- The conversations do not hold the answer to this question, and the reference explains why. An answer that says in any words that \
the information is not available, or that the question rests on a false assumption, is right; one that states an answer as if it \
were known is wrong.";
    match gold {
        None | Some(Gold::Abstain) => (NOTHING, None),
        Some(Gold::Unanswerable(why)) => (EXPLAINED, Some(why.as_str().into())),
        Some(gold @ (Gold::Rubric(_) | Gold::Keywords(_) | Gold::Retrieval { .. } | Gold::Assertions(_))) => {
            (CRITERIA, Some(gold.text().into()))
        }
        Some(gold @ Gold::AnyOf(texts)) if texts.len() > 1 => (ANY_OF, Some(gold.text().into())),
        Some(gold @ (Gold::Text(_) | Gold::Number(_) | Gold::Choice(_) | Gold::AnyOf(_))) => {
            (REFERENCE, Some(gold.text().into()))
        }
    }
}

/// One gold of each kind that [`expected`] tells apart, for samples.
pub(super) fn golds() -> [Gold; 5] {
    [
        Gold::Text("8 May 2023".to_owned()),
        Gold::AnyOf(vec!["first".to_owned(), "second".to_owned()]),
        Gold::Rubric(vec!["first".to_owned(), "second".to_owned()]),
        Gold::Unanswerable("Ann did not say that she left.".to_owned()),
        Gold::Abstain,
    ]
}

/// Instructions: the task, its rules, and the form of the reply.
pub(super) fn system(task: &str, rules: &[&str], reply: &str) -> String {
    let rules = rules.iter().map(|rule| rule.trim_end()).collect::<Vec<_>>().join("\n");
    format!("{task}\n{rules}\n{DATA}\nReply with a JSON object and nothing else: {reply}")
}

/// A question, what is expected, what is known to be wrong, and the answer, as one JSON object.
pub(super) fn case(input: &JudgeInput<'_>, reference: Option<Value>, wrong: Option<Value>) -> String {
    object_text([
        ("question", Some(input.question.trim().into())),
        ("asked_at", input.asked_at.map(Value::from)),
        ("reference", reference),
        ("wrong", wrong),
        ("answer", Some(input.answer.trim().into())),
    ])
}

/// What calls of a fixed sample say to a model, with the forms of their replies and what is made of them.
pub(super) fn sample(calls: &[JudgeCall], makes: &str) -> Messages {
    let join =
        |part: fn(&Messages) -> &str| calls.iter().map(|call| part(&call.messages)).collect::<Vec<_>>().join("\n\n");
    let mut forms: Vec<String> = calls.iter().map(|call| described(call.form)).collect();
    forms.dedup();
    let system = format!("{}\n\n{}\n{makes}", join(|told| &told.system), forms.join("\n"));
    Messages { system, user: join(|told| &told.user) }
}

fn described(form: &dyn ReplyForm) -> String {
    let schema = form.schema().map_or_else(|| "plain text".to_owned(), |schema| schema.to_string());
    format!("(form {}, version {}: {schema})", form.name(), form.version())
}
