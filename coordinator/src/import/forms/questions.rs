//! `questions.jsonl` of a run of ours. Of its `scores`, `--metric` counts, else the judge's, else the only one.

use super::{Form, Ours};

pub(super) const FORM: Form = Form {
    name: "questions",
    about: "questions.jsonl of a run of ours; of its scores --metric, else the judge's, else the only one",
    marks: "question_id outcome scores",
    fields: &[
        (Ours::QuestionId, "question_id"),
        (Ours::Question, "question"),
        (Ours::Conversation, "bank_id"),
        (Ours::Category, "category"),
        (Ours::Answer, "answer"),
        (Ours::Score, "scores judgements"),
        (Ours::Retrieved, "retrieved"),
    ],
    scale: 1.0,
};
