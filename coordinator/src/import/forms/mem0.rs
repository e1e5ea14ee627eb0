//! The evaluation of mem0 and of the projects that began as copies of it: a list of questions for each conversation's number.
//! `answer` is the expected one.

use super::{Form, Ours};

pub(super) const FORM: Form = Form {
    name: "mem0",
    about: "the evaluation of mem0 and its descendants: lists of questions by conversation, response beside answer",
    marks: "question response llm_score",
    fields: &[
        (Ours::Question, "question"),
        (Ours::Category, "category"),
        (Ours::Answer, "response answer"),
        (Ours::Score, "llm_score f1_score"),
    ],
    scale: 1.0,
};
