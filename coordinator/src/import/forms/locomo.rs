//! The official evaluation of LoCoMo: each conversation with its `qa`, to which a model's fields were added.

use super::{Form, Ours};

pub(super) const FORM: Form = Form {
    name: "locomo",
    about: "the evaluation of LoCoMo's authors: conversations with their qa, fields behind the model's name",
    marks: "question *_prediction",
    fields: &[
        (Ours::Question, "question"),
        (Ours::Category, "category"),
        (Ours::Answer, "*_prediction answer"),
        (Ours::Score, "*_f1"),
    ],
    scale: 1.0,
};
