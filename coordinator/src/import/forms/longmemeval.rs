//! Hypotheses of LongMemEval, before and after its judge has added `autoeval_label`.

use super::{Form, Ours};

pub(super) const FORM: Form = Form {
    name: "longmemeval",
    about: "hypotheses of LongMemEval, with or without the label of its judge",
    marks: "question_id hypothesis",
    fields: &[
        (Ours::QuestionId, "question_id"),
        (Ours::Question, "question"),
        (Ours::Category, "question_type"),
        (Ours::Answer, "hypothesis answer"),
        (Ours::Score, "autoeval_label"),
    ],
    scale: 1.0,
};
