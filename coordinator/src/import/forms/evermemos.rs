//! `eval_results.json` of EverMemOS and of the audit of LoCoMo's labels: several judgments of each answer.

use super::{Form, Ours};

pub(super) const FORM: Form = Form {
    name: "evermemos",
    about: "eval_results.json of EverMemOS and of the LoCoMo audit: several judgments of each answer",
    marks: "question_id generated_answer llm_judgments",
    fields: &[
        (Ours::QuestionId, "question_id"),
        (Ours::Question, "question"),
        (Ours::Category, "category"),
        (Ours::Answer, "generated_answer"),
        (Ours::Score, "llm_judgments"),
    ],
    scale: 1.0,
};
