//! Grades alone, by conversation and place, as they are published where the texts may not be.

use super::{Form, Ours};

pub(super) const FORM: Form = Form {
    name: "grades",
    about: "grades without texts: conversation, place of the question in it, one or several grades",
    marks: "sample_id qa_index grades",
    fields: &[
        (Ours::Index, "qa_index"),
        (Ours::Conversation, "sample_id"),
        (Ours::Category, "category"),
        (Ours::Score, "grades"),
    ],
    scale: 1.0,
};
