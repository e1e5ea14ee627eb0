//! The grades of Zep's papers: a list of questions for each `locomo_experiment_user_<number>`.

use super::{Form, Ours};

pub(super) const FORM: Form = Form {
    name: "zep",
    about: "the grades of Zep's papers: lists of questions by locomo_experiment_user_<number>",
    marks: "question answer golden_answer grade",
    fields: &[(Ours::Question, "question"), (Ours::Answer, "answer"), (Ours::Score, "grade")],
    scale: 1.0,
};
